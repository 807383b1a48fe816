// Callbacks: over maps, in loops and loops within loops, ended early or not at all, and what the helpers refuse.
#include "bpf.h"

struct work {
	u64 sum, stop_at;
};

struct {
	NUMBER(type, ARRAY);
	NUMBER(max_entries, 8);
	TYPE(key, u32);
	TYPE(value, u64);
} array SEC(".maps");

struct {
	NUMBER(type, PERCPU_ARRAY);
	NUMBER(max_entries, 8);
	TYPE(key, u32);
	TYPE(value, u64);
} percpu SEC(".maps");

struct {
	NUMBER(type, HASH);
	NUMBER(max_entries, 64);
	TYPE(key, u32);
	TYPE(value, u64);
} hash SEC(".maps");

u64 sums;

// Arrays are visited in order, so that ending early means something.
NOINLINE long visit(void *map, u32 *key, u64 *value, struct work *work)
{
	work->sum += *value + *key;
	*value += 1;
	return work->sum > work->stop_at;
}

// The order of a hash is nobody's business: what is added up does not depend on it.
NOINLINE long collect(void *map, u32 *key, u64 *value, struct work *work)
{
	work->sum += *value ^ *key;
	*value += *key;
	return 0;
}

NOINLINE long prune(void *map, u32 *key, u64 *value, struct work *work)
{
	if (*key & 1)
		map_delete(&hash, key);
	return 0;
}

NOINLINE long step(u64 index, struct work *work)
{
	work->sum += index;
	return index == work->stop_at;
}

NOINLINE long outer(u64 index, struct work *work)
{
	work->sum += loop(index, step, work, 0);
	return 0;
}

SEC("xdp") int callbacks(struct xdp_md *ctx)
{
	u8 *first = packet(ctx, 0, 14);
	if (!first)
		return XDP_ABORTED;
	u32 key = first[1] & 63, number = *(u16 *)(first + 2);
	struct work work = { 0, *(u16 *)(first + 4) };
	u64 value = first[6];
	long answer;
	switch (first[0] & 15) {
	case 0:
		answer = for_each(&array, visit, &work, 0);
		break;
	case 1:
		answer = for_each(&percpu, visit, &work, 0);
		break;
	case 2:
	case 3:
	case 4:
		answer = map_update(&hash, &key, &value, ANY);
		break;
	case 5:
		answer = for_each(&hash, collect, &work, 0);
		break;
	case 6:
		answer = for_each(&hash, prune, &work, 0);
		break;
	case 7:
		answer = for_each(&array, visit, &work, 1);
		break;
	case 8:
		answer = loop(number & 1023, step, &work, 0);
		break;
	case 9:
		// Around the most that there may be.
		work.stop_at = 2;
		answer = loop((1 << 23) - 2 + (number & 3), step, &work, 0);
		break;
	case 10:
		answer = loop(number, step, &work, 8);
		break;
	case 11:
		answer = loop(number & 31, outer, &work, 0);
		break;
	default:
		answer = XDP_PASS;
	}
	sums += work.sum;
	return answer;
}

LICENSE("Dual MIT/GPL");
