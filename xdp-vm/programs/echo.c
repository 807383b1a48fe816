// Answers ICMP echo requests (RFC 792) where they come in, so that no CPU's stack sees them. Fragments are left to it.
#include "bpf.h"

enum { ECHO_REPLY = 0, ECHO_REQUEST = 8, TTL = 64 };

u64 answered;

SEC("xdp") int echo(struct xdp_md *ctx)
{
	struct ipv4 *ip = datagram(ctx);
	if (!ip || ip->proto != PROTO_ICMP)
		return XDP_PASS;
	struct ether *ether = (struct ether *)ip - 1;
	if (ip->fragment & BE16(IP_MF | IP_OFFSET))
		return XDP_PASS;
	u32 header = (ip->version_len & 15) * 4;
	if (header < sizeof(*ip))
		return XDP_DROP;
	struct icmp *icmp = packet(ctx, sizeof(*ether) + header, sizeof(*icmp));
	if (!icmp)
		return XDP_DROP;
	if (icmp->type != ECHO_REQUEST || icmp->code)
		return XDP_PASS;
	for (int i = 0; i < 6; i++) {
		u8 byte = ether->dst[i];
		ether->dst[i] = ether->src[i];
		ether->src[i] = byte;
	}
	// Two addresses that change places leave the sum as it is.
	u32 address = ip->dst;
	ip->dst = ip->src;
	ip->src = address;
	ip->csum = mend(ip->csum, BE16(ip->ttl << 8 | PROTO_ICMP), BE16(TTL << 8 | PROTO_ICMP));
	ip->ttl = TTL;
	icmp->csum = mend(icmp->csum, BE16(ECHO_REQUEST << 8), BE16(ECHO_REPLY << 8));
	icmp->type = ECHO_REPLY;
	__sync_fetch_and_add(&answered, 1);
	return XDP_TX;
}

LICENSE("Dual MIT/GPL");
