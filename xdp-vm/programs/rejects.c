// What the loader refuses, each in a program of its own, beside one that is good: the object as a whole loads.
#include "bpf.h"

static long (*const skc_lookup_tcp)(void *ctx, void *tuple, u32 size, u64 netns, u64 flags) = (void *)99;
extern int kernel_function(struct xdp_md *ctx) __attribute__((section(".ksyms")));
extern int CONFIG_HZ __attribute__((section(".kconfig"), weak));

struct {
	NUMBER(type, 30);
	NUMBER(max_entries, 16);
	TYPE(value, u32);
} conns SEC(".maps");

struct {
	NUMBER(type, HASH);
	NUMBER(max_entries, 0);
	TYPE(key, u32);
	TYPE(value, u32);
} unsized SEC(".maps");

struct kernel_thing {
	int field;
} __attribute__((preserve_access_index));

SEC("xdp") int good(struct xdp_md *ctx)
{
	return XDP_PASS;
}

SEC("xdp/many") int many(struct xdp_md *ctx)
{
	u32 key = 0;
	if (map_lookup(&conns, &key) || map_lookup(&unsized, &key))
		return XDP_DROP;
	if (skc_lookup_tcp(ctx, &key, 4, 0, 0))
		return XDP_TX;
	return XDP_PASS;
}

SEC("xdp/kfunc") int kfunc(struct xdp_md *ctx)
{
	return kernel_function(ctx);
}

SEC("xdp/kconfig") int kconfig(struct xdp_md *ctx)
{
	return CONFIG_HZ;
}

SEC("tc") int core(struct kernel_thing *thing)
{
	return thing->field;
}

SEC("xdp/walk") int walk(struct xdp_md *ctx)
{
	u8 *at = (u8 *)(u64)ctx->data;
	return at[62] == 1 ? XDP_PASS : XDP_DROP;
}

SEC("xdp/proprietary") int proprietary(struct xdp_md *ctx)
{
	static const char format[] = "never";
	trace_printk(format, sizeof(format));
	return XDP_PASS;
}

LICENSE("Proprietary");
