// Every atomic operation of the instruction set, in 32 and 64 bits, with and without the old value; what they returned is
// kept.
#include "bpf.h"

struct words {
	u64 word, old;
	u32 half, old_half;
};

struct {
	NUMBER(type, ARRAY);
	NUMBER(max_entries, 16);
	TYPE(key, u32);
	TYPE(value, struct words);
} cells SEC(".maps");

SEC("xdp") int atomics(struct xdp_md *ctx)
{
	u8 *first = packet(ctx, 0, 14);
	if (!first)
		return XDP_ABORTED;
	u32 key = first[0] & 15;
	struct words *cell = map_lookup(&cells, &key);
	if (!cell)
		return XDP_DROP;
	u64 operand = *(u64 *)(first + 2);
	u32 half = operand;
	switch (key) {
	case 0:
		__sync_fetch_and_add(&cell->word, operand);
		__sync_fetch_and_add(&cell->half, half);
		return XDP_PASS;
	case 1:
		__sync_fetch_and_or(&cell->word, operand);
		__sync_fetch_and_or(&cell->half, half);
		return XDP_PASS;
	case 2:
		__sync_fetch_and_and(&cell->word, operand);
		__sync_fetch_and_and(&cell->half, half);
		return XDP_PASS;
	case 3:
		__sync_fetch_and_xor(&cell->word, operand);
		__sync_fetch_and_xor(&cell->half, half);
		return XDP_PASS;
	case 4:
		cell->old = __sync_fetch_and_add(&cell->word, operand);
		cell->old_half = __sync_fetch_and_add(&cell->half, half);
		break;
	case 5:
		cell->old = __sync_fetch_and_or(&cell->word, operand);
		cell->old_half = __sync_fetch_and_or(&cell->half, half);
		break;
	case 6:
		cell->old = __sync_fetch_and_and(&cell->word, operand);
		cell->old_half = __sync_fetch_and_and(&cell->half, half);
		break;
	case 7:
		cell->old = __sync_fetch_and_xor(&cell->word, operand);
		cell->old_half = __sync_fetch_and_xor(&cell->half, half);
		break;
	case 8:
		cell->old = __sync_lock_test_and_set(&cell->word, operand);
		cell->old_half = __sync_lock_test_and_set(&cell->half, half);
		break;
	case 9:
		// In half of the frames what is expected is there.
		cell->old = __sync_val_compare_and_swap(&cell->word, first[1] & 1 ? cell->word : operand, operand);
		cell->old_half = __sync_val_compare_and_swap(&cell->half, first[1] & 1 ? cell->half : half, half);
		break;
	default:
		return XDP_DROP;
	}
	return XDP_TX;
}

LICENSE("Dual MIT/GPL");
