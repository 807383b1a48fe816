// Counts frames and bytes on each CPU, by length class, and in globals; an atomic total beside them.
#include "bpf.h"

struct counter {
	u64 frames, bytes;
};

struct {
	NUMBER(type, PERCPU_ARRAY);
	NUMBER(max_entries, 4);
	TYPE(key, u32);
	TYPE(value, struct counter);
} counters SEC(".maps");

u64 total;
u32 largest = 14;
const volatile u32 limits[3] = { 64, 512, 1514 };

SEC("xdp") int count(struct xdp_md *ctx)
{
	u32 len = ctx->data_end - ctx->data;
	u32 class = 0;
	for (int i = 0; i < 3; i++)
		class += len > limits[i];
	struct counter *counter = map_lookup(&counters, &class);
	if (!counter)
		return XDP_ABORTED;
	counter->frames++;
	counter->bytes += len;
	__sync_fetch_and_add(&total, len);
	if (len > largest)
		largest = len;
	return XDP_PASS;
}

LICENSE("Dual MIT/GPL");
