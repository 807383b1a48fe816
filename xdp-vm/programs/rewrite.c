// Rewrites an IPv4 destination and mends the header's checksum, in a function of its own.
#include "bpf.h"

const volatile u32 new_address = 0x0a000001;

NOINLINE u16 fold(u64 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

SEC("prog") int rewrite(struct xdp_md *ctx)
{
	struct ether *ether = packet(ctx, 0, sizeof(*ether));
	struct ipv4 *ip = packet(ctx, sizeof(*ether), sizeof(*ip));
	if (!ether || !ip || ether->type != BE16(ETHER_IPV4))
		return XDP_PASS;
	u32 address = BE32(new_address);
	u32 old = ip->dst;
	s64 sum = csum_diff(&old, 4, &address, 4, (u16)~ip->csum);
	ip->dst = address;
	ip->csum = fold(sum);
	return XDP_TX;
}

LICENSE("Dual MIT/GPL");
