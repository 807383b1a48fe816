// Two programs: one puts a VLAN tag on, one takes it off and keeps it as metadata.
#include "bpf.h"

const volatile u16 vlan_id = 42;

SEC("xdp/push") int push(struct xdp_md *ctx)
{
	if (!packet(ctx, 0, sizeof(struct ether)) || adjust_head(ctx, -4))
		return XDP_ABORTED;
	u8 *to = packet(ctx, 0, sizeof(struct ether) + sizeof(struct vlan));
	if (!to)
		return XDP_ABORTED;
	__builtin_memmove(to, to + 4, 12);
	u16 *tag = (u16 *)(to + 12);
	tag[0] = BE16(ETHER_VLAN);
	tag[1] = BE16(vlan_id);
	return XDP_TX;
}

SEC("xdp/pop") int pop(struct xdp_md *ctx)
{
	u8 *at = packet(ctx, 0, sizeof(struct ether) + sizeof(struct vlan));
	if (!at || ((struct ether *)at)->type != BE16(ETHER_VLAN))
		return XDP_PASS;
	u16 tci = ((struct vlan *)(at + sizeof(struct ether)))->tci;
	u8 macs[12];
	__builtin_memcpy(macs, at, 12);
	if (adjust_head(ctx, 4))
		return XDP_ABORTED;
	u8 *to = packet(ctx, 0, sizeof(struct ether));
	if (!to)
		return XDP_ABORTED;
	__builtin_memcpy(to, macs, 12);
	if (adjust_meta(ctx, -4))
		return XDP_ABORTED;
	u32 *meta = (u32 *)(u64)ctx->data_meta;
	if ((u8 *)(meta + 1) > (u8 *)(u64)ctx->data)
		return XDP_ABORTED;
	*meta = BE16(tci);
	return XDP_PASS;
}

LICENSE("Dual MIT/GPL");
