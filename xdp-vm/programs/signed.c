// What version 4 of the instruction set adds: signed division, loads and moves that extend the sign, swapped bytes, long
// jumps. Two operands stand in the frame, every result goes back into it.
//
// In assembly: the instructions define what C does not, division by zero and of the most negative number.
#include "bpf.h"

#define RESULTS 24

struct frame {
	u8 header[16];
	s64 left, right;
	s64 results[RESULTS];
};

#define BINARY64(operation)                                                                                           \
	({                                                                                                            \
		s64 result = left;                                                                                    \
		asm volatile("%0 " operation " %1" : "+r"(result) : "r"(right));                                      \
		result;                                                                                               \
	})
#define BINARY32(operation)                                                                                           \
	({                                                                                                            \
		u32 result = left;                                                                                    \
		asm volatile("%0 " operation " %1" : "+w"(result) : "w"((u32)right));                                 \
		result;                                                                                               \
	})
#define LOAD(type)                                                                                                    \
	({                                                                                                            \
		s64 result;                                                                                           \
		asm volatile("%0 = *(" type " *)(%1 + 16)" : "=r"(result) : "r"(frame));                              \
		result;                                                                                               \
	})
#define MOVE(type)                                                                                                    \
	({                                                                                                            \
		s64 result;                                                                                           \
		asm volatile("%0 = (" type ")%1" : "=r"(result) : "r"(left));                                         \
		result;                                                                                               \
	})
#define SWAP(operation)                                                                                               \
	({                                                                                                            \
		u64 result = left;                                                                                    \
		asm volatile("%0 = " operation " %0" : "+r"(result));                                                 \
		result;                                                                                               \
	})

SEC("xdp") int with_sign(struct xdp_md *ctx)
{
	struct frame *frame = packet(ctx, 0, sizeof(*frame));
	if (!frame)
		return XDP_PASS;
	s64 left = frame->left, right = frame->right;
	s64 *to = frame->results;
	to[0] = BINARY64("s/=");
	to[1] = BINARY64("s%%=");
	to[2] = BINARY32("s/=");
	to[3] = BINARY32("s%%=");
	to[4] = BINARY64("/=");
	to[5] = BINARY64("%%=");
	to[6] = BINARY32("/=");
	to[7] = BINARY32("%%=");
	to[8] = LOAD("s8");
	to[9] = LOAD("s16");
	to[10] = LOAD("s32");
	to[11] = MOVE("s8");
	to[12] = MOVE("s16");
	to[13] = MOVE("s32");
	to[14] = SWAP("bswap16");
	to[15] = SWAP("bswap32");
	to[16] = SWAP("bswap64");
	to[17] = BINARY64("s>>=");
	to[18] = BINARY32("s>>=");
	to[19] = SWAP("be16");
	to[20] = SWAP("le32");
	u32 half = left;
	asm volatile("%0 = (s8)%0" : "+w"(half));
	to[21] = half;
	half = left;
	asm volatile("%0 = (s16)%0" : "+w"(half));
	to[22] = half;
	// 6 if the long jump is passed by, or else 5.
	u64 jumped = 1;
	asm volatile("if %1 s> 0 goto +1; gotol +1; %0 = 2; %0 += 4" : "+r"(jumped) : "r"(left));
	to[23] = jumped;
	return left < right ? XDP_TX : XDP_DROP;
}

LICENSE("Dual MIT/GPL");
