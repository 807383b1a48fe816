// Moves the frame's borders and copies bytes in and out, by as much as the frame's bytes 2 and 3 say, and returns what the
// helper answered: how far they may go.
#include "bpf.h"

u64 copied;

static const char word[] = "onic";

SEC("xdp") int borders(struct xdp_md *ctx)
{
	u8 *first = packet(ctx, 0, 14);
	if (!first)
		return XDP_ABORTED;
	s32 by = *(short *)(first + 2);
	u64 bytes = *(u64 *)(first + 4);
	switch (first[0] & 7) {
	case 0:
		return adjust_head(ctx, by);
	case 1:
		return adjust_meta(ctx, by);
	case 2:
		return adjust_tail(ctx, by);
	case 3:
		// Metadata moves along with the head.
		if (adjust_meta(ctx, -8))
			return XDP_ABORTED;
		u64 *meta = (u64 *)(u64)ctx->data_meta;
		if ((u8 *)(meta + 1) > (u8 *)(u64)ctx->data)
			return XDP_DROP;
		*meta = bytes;
		return adjust_head(ctx, by);
	case 4: {
		long answer = load_bytes(ctx, (u16)by, &bytes, sizeof(bytes));
		copied += bytes;
		return answer;
	}
	case 5:
		return store_bytes(ctx, (u16)by, &bytes, sizeof(bytes));
	case 6:
		return get_buff_len(ctx);
	default:
		return compare((char *)&bytes, sizeof(bytes), word);
	}
}

LICENSE("Dual MIT/GPL");
