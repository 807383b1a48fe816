// The map definition of old: five words in a section `maps`; a program in a section of any name.
#include "bpf.h"

struct {
	u32 type, key_size, value_size, max_entries, map_flags;
} seen SEC("maps") = { ARRAY, 4, 8, 2, 0 };

SEC("any_name_at_all") int legacy(struct xdp_md *ctx)
{
	u32 key = 1;
	u64 *value = map_lookup(&seen, &key);
	if (value)
		*value += 2;
	return XDP_PASS;
}

LICENSE("Dual MIT/GPL");
