// Maps in a map: an array of arrays, one of them there from the beginning.
#include "bpf.h"

struct inner {
	NUMBER(type, ARRAY);
	NUMBER(max_entries, 2);
	TYPE(key, u32);
	TYPE(value, u64);
};

struct inner first SEC(".maps");

struct {
	NUMBER(type, ARRAY_OF_MAPS);
	NUMBER(max_entries, 4);
	TYPE(key, u32);
	struct inner *values[];
} tables SEC(".maps") = {
	.values = { [1] = &first },
};

SEC("xdp") int inner(struct xdp_md *ctx)
{
	u32 key = ctx->rx_queue_index;
	void *table = map_lookup(&tables, &key);
	if (!table)
		return XDP_DROP;
	u32 slot = 1;
	u64 *value = map_lookup(table, &slot);
	if (!value)
		return XDP_ABORTED;
	*value += 1;
	return XDP_PASS;
}

LICENSE("Dual MIT/GPL");
