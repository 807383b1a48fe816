// Maps of other kinds: in a hash of maps, recent entries for each CPU, another CPU's value, devices by a hash.
#include "bpf.h"

struct inner {
	NUMBER(type, ARRAY);
	NUMBER(max_entries, 4);
	TYPE(key, u32);
	TYPE(value, u64);
};

struct inner first_shelf SEC(".maps");

struct {
	NUMBER(type, HASH_OF_MAPS);
	NUMBER(max_entries, 8);
	TYPE(key, u32);
	struct inner *values[];
} shelves SEC(".maps") = {
	.values = { [1] = &first_shelf },
};

struct {
	NUMBER(type, LRU_PERCPU_HASH);
	NUMBER(max_entries, 1024);
	TYPE(key, u32);
	TYPE(value, u64);
} recent SEC(".maps");

struct {
	NUMBER(type, PERCPU_ARRAY);
	NUMBER(max_entries, 4);
	TYPE(key, u32);
	TYPE(value, u64);
} percpu SEC(".maps");

struct {
	NUMBER(type, DEVMAP_HASH);
	NUMBER(max_entries, 8);
	TYPE(key, u32);
	TYPE(value, u64);
} devices SEC(".maps");

u64 seen;

SEC("xdp") int shelved(struct xdp_md *ctx)
{
	u8 *first = packet(ctx, 0, 14);
	if (!first)
		return XDP_ABORTED;
	u32 key = first[1] & 7, slot = first[2] & 7;
	u64 value = first[3];
	switch (first[0] & 7) {
	case 0:
	case 1: {
		void *inner = map_lookup(&shelves, &key);
		if (!inner)
			return XDP_DROP;
		u64 *found = map_lookup(inner, &slot);
		if (!found)
			return XDP_ABORTED;
		*found += value;
		return XDP_PASS;
	}
	case 2: {
		key = first[1];
		u64 *found = map_lookup(&recent, &key);
		if (found) {
			*found += value;
			return XDP_PASS;
		}
		return map_update(&recent, &key, &value, slot & 3);
	}
	case 3:
		key = first[1];
		return map_delete(&recent, &key);
	case 4: {
		u64 *found = map_lookup(&percpu, &slot);
		if (!found)
			return XDP_ABORTED;
		*found += value;
		return XDP_PASS;
	}
	case 5: {
		// Of the CPUs that there are, and of some that there are not.
		u64 *found = map_lookup_percpu(&percpu, &slot, first[1]);
		if (!found)
			return XDP_DROP;
		seen += *found;
		return XDP_PASS;
	}
	case 6:
		return redirect_map(&devices, *(u16 *)(first + 1) & 0x1ff, first[3] & 31);
	default: {
		u64 *found = map_lookup(&devices, &key);
		if (!found)
			return XDP_DROP;
		seen += *found;
		return XDP_PASS;
	}
	}
}

LICENSE("Dual MIT/GPL");
