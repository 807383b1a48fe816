// What senders do with DF and the IP identification: counted for each CPU, and by flow how often an identification comes
// back too early.
//
// RFC 6864: a datagram is atomic if DF is set and it is no fragment; its identification means nothing. That of any other
// must not repeat for the same source, destination and protocol within a datagram's longest lifetime.
#include "bpf.h"

#define LIFETIME_NS 120000000000ULL

struct statistics {
	u64 datagrams, df, atomic, atomic_id_0, id_0, fragments, reused;
};

struct {
	NUMBER(type, PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct statistics);
} statistics SEC(".maps");

struct flow {
	u32 src, dst, proto;
};

struct use {
	u64 datagrams, reused;
};

// By flow: datagrams that aren't atomic.
struct {
	NUMBER(type, LRU_HASH);
	NUMBER(max_entries, 4096);
	TYPE(key, struct flow);
	TYPE(value, struct use);
} flows SEC(".maps");

struct identification {
	struct flow flow;
	u32 id;
};

// When each was seen last.
struct {
	NUMBER(type, LRU_HASH);
	NUMBER(max_entries, 65536);
	TYPE(key, struct identification);
	TYPE(value, u64);
} seen SEC(".maps");

SEC("xdp") int df(struct xdp_md *ctx)
{
	u32 only = 0;
	struct statistics *total = map_lookup(&statistics, &only);
	if (!total)
		return XDP_ABORTED;
	struct ipv4 *ip = datagram(ctx);
	if (!ip)
		return XDP_PASS;
	u16 fragment = BE16(ip->fragment);
	u32 is_fragment = (fragment & (IP_MF | IP_OFFSET)) != 0;
	total->datagrams++;
	total->df += (fragment & IP_DF) != 0;
	total->fragments += is_fragment;
	if (fragment & IP_DF && !is_fragment) {
		total->atomic++;
		total->atomic_id_0 += ip->id == 0;
		return XDP_PASS;
	}
	// Fragments share their datagram's identification: the first stands for all.
	if (fragment & IP_OFFSET)
		return XDP_PASS;
	total->id_0 += ip->id == 0;
	struct identification key = { { ip->src, ip->dst, ip->proto }, BE16(ip->id) };
	u64 now = ktime_get_ns();
	u64 *last = map_lookup(&seen, &key);
	u32 reused = last && now - *last < LIFETIME_NS;
	total->reused += reused;
	if (map_update(&seen, &key, &now, ANY))
		return XDP_ABORTED;
	struct use *use = map_lookup(&flows, &key.flow);
	if (use) {
		__sync_fetch_and_add(&use->datagrams, 1);
		__sync_fetch_and_add(&use->reused, reused);
	} else {
		struct use first = { 1, reused };
		map_update(&flows, &key.flow, &first, NO_EXIST);
	}
	return XDP_PASS;
}

LICENSE("Dual MIT/GPL");
