// Passes everything.
#include "bpf.h"

SEC("xdp") int pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

LICENSE("Dual MIT/GPL");
