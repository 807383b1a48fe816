// Drops everything.
#include "bpf.h"

SEC("xdp") int drop(struct xdp_md *ctx)
{
	return XDP_DROP;
}

LICENSE("Dual MIT/GPL");
