// Sends each frame back to where it came from.
#include "bpf.h"

SEC("xdp") int macswap(struct xdp_md *ctx)
{
	struct ether *ether = packet(ctx, 0, sizeof(*ether));
	if (!ether)
		return XDP_DROP;
	for (int i = 0; i < 6; i++) {
		u8 byte = ether->dst[i];
		ether->dst[i] = ether->src[i];
		ether->src[i] = byte;
	}
	return XDP_TX;
}

LICENSE("Dual MIT/GPL");
