// IPv4 in IPv4 (RFC 2003): one program wraps datagrams to known destinations, one takes the wrapping off.
//
// The outer header's DF bit is the inner one's. An atomic datagram needs no identification (RFC 6864), so only the others
// draw one.
#include "bpf.h"

enum { TTL = 64 };

struct tunnel {
	u32 local, remote;
	u8 next_hop[6];
	u16 unused;
};

struct {
	NUMBER(type, HASH);
	NUMBER(max_entries, 64);
	TYPE(key, u32);
	TYPE(value, struct tunnel);
} tunnels SEC(".maps");

const volatile u32 mtu = 1500;
u32 next_id;

SEC("xdp/encap") int encap(struct xdp_md *ctx)
{
	struct ipv4 *ip = datagram(ctx);
	if (!ip)
		return XDP_PASS;
	struct ether *ether = (struct ether *)ip - 1;
	struct tunnel *tunnel = map_lookup(&tunnels, &ip->dst);
	if (!tunnel)
		return XDP_PASS;
	u32 frame = ctx->data_end - ctx->data;
	u32 len = BE16(ip->len);
	if (len < sizeof(*ip) || len + sizeof(*ether) > frame)
		return XDP_DROP;
	u16 fragment = ip->fragment & BE16(IP_DF);
	u8 tos = ip->tos;
	if (len + sizeof(*ip) > mtu)
		// The stack tells the sender what fits, or makes fragments.
		return XDP_PASS;
	u8 source[6];
	__builtin_memcpy(source, ether->dst, 6);
	// What Ethernet has put behind a short datagram is none of the tunnel's.
	if (adjust_tail(ctx, len + sizeof(*ether) - frame) || adjust_head(ctx, -(int)sizeof(*ip)))
		return XDP_ABORTED;
	ether = packet(ctx, 0, sizeof(*ether));
	if (!ether)
		return XDP_ABORTED;
	ip = packet(ctx, sizeof(*ether), sizeof(*ip));
	if (!ip)
		return XDP_ABORTED;
	__builtin_memcpy(ether->dst, tunnel->next_hop, 6);
	__builtin_memcpy(ether->src, source, 6);
	ether->type = BE16(ETHER_IPV4);
	ip->version_len = 0x45;
	ip->tos = tos;
	ip->len = BE16(len + sizeof(*ip));
	ip->id = fragment ? 0 : BE16(__sync_fetch_and_add(&next_id, 1));
	ip->fragment = fragment;
	ip->ttl = TTL;
	ip->proto = PROTO_IPIP;
	ip->csum = 0;
	ip->src = tunnel->local;
	ip->dst = tunnel->remote;
	u32 sum = csum_diff(0, 0, ip, sizeof(*ip), 0);
	sum = (sum & 0xffff) + (sum >> 16);
	ip->csum = ~((sum & 0xffff) + (sum >> 16));
	return XDP_TX;
}

SEC("xdp/decap") int decap(struct xdp_md *ctx)
{
	struct ether *ether = packet(ctx, 0, sizeof(*ether));
	if (!ether || ether->type != BE16(ETHER_IPV4))
		return XDP_PASS;
	struct ipv4 *ip = packet(ctx, sizeof(*ether), sizeof(*ip));
	// With options or in fragments it is the stack's.
	if (!ip || ip->version_len != 0x45 || ip->proto != PROTO_IPIP || ip->fragment & BE16(IP_MF | IP_OFFSET))
		return XDP_PASS;
	struct ether saved = *ether;
	if (adjust_head(ctx, sizeof(*ip)))
		return XDP_DROP;
	ether = packet(ctx, 0, sizeof(*ether));
	if (!ether)
		return XDP_ABORTED;
	*ether = saved;
	return XDP_PASS;
}

LICENSE("Dual MIT/GPL");
