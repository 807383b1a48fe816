// Changes maps as the frame's first two bytes say, and returns what the helper answered: what maps do at their limits.
#include "bpf.h"

struct {
	NUMBER(type, HASH);
	NUMBER(max_entries, 16);
	TYPE(key, u32);
	TYPE(value, u64);
} hash SEC(".maps");

struct {
	NUMBER(type, PERCPU_HASH);
	NUMBER(max_entries, 16);
	TYPE(key, u32);
	TYPE(value, u32);
} percpu SEC(".maps");

struct {
	NUMBER(type, LRU_HASH);
	NUMBER(max_entries, 1024);
	TYPE(key, u32);
	TYPE(value, u64);
} recent SEC(".maps");

struct prefix {
	u32 len, address;
};

struct {
	NUMBER(type, LPM_TRIE);
	NUMBER(max_entries, 16);
	NUMBER(map_flags, NO_PREALLOC);
	TYPE(key, struct prefix);
	TYPE(value, u32);
} prefixes SEC(".maps");

struct {
	NUMBER(type, ARRAY);
	NUMBER(max_entries, 16);
	TYPE(key, u32);
	TYPE(value, u64);
} array SEC(".maps");

struct {
	NUMBER(type, QUEUE);
	NUMBER(max_entries, 8);
	TYPE(value, u32);
} queue SEC(".maps");

struct {
	NUMBER(type, STACK);
	NUMBER(max_entries, 8);
	TYPE(value, u32);
} stack SEC(".maps");

struct {
	NUMBER(type, RINGBUF);
	NUMBER(max_entries, 4096);
} ring SEC(".maps");

u64 frames, popped;

// All that maps with keys have: the upper bits choose the operation.
INLINE long change(void *map, u32 operation, void *key, void *value)
{
	switch (operation & 7) {
	case 0:
	case 1:
		return map_update(map, key, value, ANY);
	case 2:
		return map_update(map, key, value, NO_EXIST);
	case 3:
		return map_update(map, key, value, EXIST);
	case 4:
		// A lock, in values that have none; a flag that there isn't.
		return map_update(map, key, value, operation & 8 ? LOCK : 8);
	case 5:
		return map_delete(map, key);
	default:
		return map_lookup(map, key) ? 1 : 0;
	}
}

INLINE long line(void *map, u32 operation, u32 *value)
{
	switch (operation & 7) {
	case 0:
	case 1:
		return map_push(map, value, ANY);
	case 2:
		return map_push(map, value, EXIST);
	case 3:
		return map_peek(map, value);
	default:
		return map_pop(map, value);
	}
}

INLINE long records(u32 operation, u32 len)
{
	switch (operation & 7) {
	case 0:
	case 1:
		return ring_output(&ring, &frames, len & 7, 0);
	case 2: {
		u64 *record = ring_reserve(&ring, 400, 0);
		if (!record)
			return -1;
		for (int i = 0; i < 50; i++)
			record[i] = frames;
		ring_submit(record, 0);
		return 0;
	}
	case 3: {
		u64 *record = ring_reserve(&ring, 24, 0);
		if (!record)
			return -1;
		record[0] = frames;
		ring_discard(record, 0);
		return 0;
	}
	default:
		return ring_query(&ring, operation & 3);
	}
}

SEC("xdp") int tables(struct xdp_md *ctx)
{
	u8 *first = packet(ctx, 0, 2);
	if (!first)
		return XDP_ABORTED;
	frames++;
	u32 operation = (first[0] & 7) | (first[1] >> 2 & 8), key = first[1] & 31, word = frames;
	struct prefix prefix = { key, BE32(0x0a010203) };
	u64 value = frames;
	long answer;
	switch (first[0] >> 3 & 7) {
	case 0:
		answer = change(&hash, operation, &key, &value);
		break;
	case 1:
		answer = change(&percpu, operation, &key, &word);
		break;
	case 2:
		key = first[1];
		answer = change(&recent, operation, &key, &value);
		break;
	case 3:
		prefix.len = first[1] % 36;
		answer = change(&prefixes, operation, &prefix, &word);
		break;
	case 4:
		answer = change(&array, operation, &key, &value);
		break;
	case 5:
		answer = line(&queue, operation, &word);
		popped += word;
		break;
	case 6:
		answer = line(&stack, operation, &word);
		popped += word;
		break;
	default:
		answer = records(operation, first[1]);
	}
	return answer;
}

LICENSE("Dual MIT/GPL");
