// Tail calls: by protocol into one of the programs that the array holds from the beginning; and one that calls itself
// until it may not any more.
#include "bpf.h"

int tcp(struct xdp_md *ctx);
int again(struct xdp_md *ctx);

struct {
	NUMBER(type, PROG_ARRAY);
	NUMBER(max_entries, 32);
	NUMBER(key_size, 4);
	int (*values[])(struct xdp_md *);
} protocols SEC(".maps") = {
	.values = { [PROTO_TCP] = tcp, [PROTO_UDP] = again },
};

u32 rounds;

SEC("xdp/tcp") int tcp(struct xdp_md *ctx)
{
	return XDP_DROP;
}

SEC("xdp/again") int again(struct xdp_md *ctx)
{
	rounds++;
	tail_call(ctx, &protocols, PROTO_UDP);
	return XDP_TX;
}

SEC("xdp/chain") int chain(struct xdp_md *ctx)
{
	struct ipv4 *ip = packet(ctx, sizeof(struct ether), sizeof(*ip));
	if (!ip)
		return XDP_ABORTED;
	tail_call(ctx, &protocols, ip->proto);
	return XDP_PASS;
}

LICENSE("Dual MIT/GPL");
