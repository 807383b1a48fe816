// Two counters that always agree, under a spin lock; now and then all of the value is replaced under it.
#include "bpf.h"

struct pair {
	struct bpf_spin_lock lock;
	u32 frames;
	u64 bytes;
};

struct {
	NUMBER(type, HASH);
	NUMBER(max_entries, 8);
	TYPE(key, u32);
	TYPE(value, struct pair);
} pairs SEC(".maps");

SEC("xdp") int locked(struct xdp_md *ctx)
{
	u8 *first = packet(ctx, 0, 1);
	if (!first)
		return XDP_ABORTED;
	u32 key = first[0] & 15, len = ctx->data_end - ctx->data;
	struct pair *pair = map_lookup(&pairs, &key);
	if (!pair) {
		struct pair one = { .frames = 1, .bytes = len };
		return map_update(&pairs, &key, &one, NO_EXIST) ? XDP_DROP : XDP_PASS;
	}
	if (first[0] & 0x80) {
		struct pair none = {};
		return map_update(&pairs, &key, &none, EXIST | LOCK) ? XDP_ABORTED : XDP_TX;
	}
	spin_lock(&pair->lock);
	pair->frames++;
	pair->bytes += len;
	spin_unlock(&pair->lock);
	return XDP_PASS;
}

LICENSE("Dual MIT/GPL");
