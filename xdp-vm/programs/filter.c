// A filter: flows by their five fields in a hash, sources by longest prefix, the rest by a global's choice.
#include "bpf.h"

struct flow {
	u32 src, dst;
	struct ports ports;
	u32 proto;
};

struct rule {
	u64 verdict, hits;
};

struct prefix {
	u32 len;
	u32 address;
};

struct {
	NUMBER(type, HASH);
	NUMBER(max_entries, 1024);
	TYPE(key, struct flow);
	TYPE(value, struct rule);
} flows SEC(".maps");

struct {
	NUMBER(type, LPM_TRIE);
	NUMBER(max_entries, 256);
	NUMBER(map_flags, NO_PREALLOC);
	TYPE(key, struct prefix);
	TYPE(value, u32);
} sources SEC(".maps");

const volatile u32 drop_unknown;

SEC("xdp/filter") int filter(struct xdp_md *ctx)
{
	// One after the other: of two pointers checked at once the verifier believes only the first.
	struct ether *ether = packet(ctx, 0, sizeof(*ether));
	if (!ether || ether->type != BE16(ETHER_IPV4))
		return XDP_PASS;
	struct ipv4 *ip = packet(ctx, sizeof(*ether), sizeof(*ip));
	if (!ip)
		return XDP_PASS;
	struct flow flow = { .src = ip->src, .dst = ip->dst, .proto = ip->proto };
	if (ip->proto == PROTO_TCP || ip->proto == PROTO_UDP) {
		struct ports *ports = packet(ctx, sizeof(*ether) + (ip->version_len & 15) * 4, sizeof(*ports));
		if (!ports)
			return XDP_ABORTED;
		flow.ports = *ports;
	}
	struct rule *rule = map_lookup(&flows, &flow);
	if (rule) {
		__sync_fetch_and_add(&rule->hits, 1);
		return rule->verdict;
	}
	struct prefix prefix = { .len = 32, .address = ip->src };
	u32 *verdict = map_lookup(&sources, &prefix);
	if (verdict)
		return *verdict;
	return drop_unknown ? XDP_DROP : XDP_PASS;
}

LICENSE("Dual MIT/GPL");
