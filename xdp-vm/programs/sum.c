// Adds up the frame's bytes with bpf_loop, then asks each entry of a hash whether that is its sum.
#include "bpf.h"

struct work {
	struct xdp_md *ctx;
	u32 sum, found;
};

struct {
	NUMBER(type, HASH);
	NUMBER(max_entries, 16);
	TYPE(key, u32);
	TYPE(value, u32);
} sums SEC(".maps");

u32 last;

NOINLINE long add(u64 index, struct work *work)
{
	u8 byte;
	if (load_bytes(work->ctx, index, &byte, 1))
		return 1;
	work->sum += byte;
	return 0;
}

NOINLINE long matches(void *map, u32 *key, u32 *verdict, struct work *work)
{
	if (*key != work->sum)
		return 0;
	work->found = *verdict;
	return 1;
}

SEC("xdp") int sum(struct xdp_md *ctx)
{
	struct work work = { .ctx = ctx, .found = XDP_PASS };
	if (loop(9000, add, &work, 0) < 0)
		return XDP_ABORTED;
	last = work.sum;
	for_each(&sums, matches, &work, 0);
	return work.found;
}

LICENSE("Dual MIT/GPL");
