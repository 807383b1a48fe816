// The little that our programs need of BPF: context, verdicts, map definitions, helpers by number, and packet headers.
// Numbers and layouts are Linux's ABI; the text is our own, so that no header package is needed to build.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))
#define LICENSE(text) char license_text[] SEC("license") = text

// Map definitions: a number is the length of an array, a type is what a pointer points to.
#define NUMBER(field, value) int (*field)[value]
#define TYPE(field, type) type *field

enum { XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT };

enum map_type {
	HASH = 1,
	ARRAY = 2,
	PROG_ARRAY = 3,
	PERF_EVENT_ARRAY = 4,
	PERCPU_HASH = 5,
	PERCPU_ARRAY = 6,
	LRU_HASH = 9,
	LRU_PERCPU_HASH = 10,
	LPM_TRIE = 11,
	ARRAY_OF_MAPS = 12,
	HASH_OF_MAPS = 13,
	DEVMAP = 14,
	CPUMAP = 16,
	XSKMAP = 17,
	QUEUE = 22,
	STACK = 23,
	DEVMAP_HASH = 25,
	RINGBUF = 27,
};

enum { NO_PREALLOC = 1 };

// Flags of an update: create or replace, only create, only replace; take the value's lock for it.
enum { ANY, NO_EXIST, EXIST, LOCK = 4 };

// The kernel finds it in map values by this name.
struct bpf_spin_lock {
	u32 value;
};

struct xdp_md {
	u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const map_delete)(void *map, const void *key) = (void *)3;
static u64 (*const ktime_get_ns)(void) = (void *)5;
static long (*const trace_printk)(const char *format, u32 size, ...) = (void *)6;
static u32 (*const get_cpu)(void) = (void *)8;
static long (*const tail_call)(void *ctx, void *map, u32 index) = (void *)12;
static long (*const redirect)(u32 ifindex, u64 flags) = (void *)23;
static long (*const perf_event_output)(void *ctx, void *map, u64 flags, void *data, u64 len) = (void *)25;
static s64 (*const csum_diff)(void *from, u32 from_len, void *to, u32 to_len, u32 seed) = (void *)28;
static long (*const adjust_head)(void *ctx, int by) = (void *)44;
static long (*const redirect_map)(void *map, u64 key, u64 flags) = (void *)51;
static long (*const adjust_meta)(void *ctx, int by) = (void *)54;
static long (*const adjust_tail)(void *ctx, int by) = (void *)65;
static long (*const map_push)(void *map, const void *value, u64 flags) = (void *)87;
static long (*const map_pop)(void *map, void *value) = (void *)88;
static long (*const map_peek)(void *map, void *value) = (void *)89;
static long (*const ring_output)(void *ring, void *data, u64 len, u64 flags) = (void *)130;
static void *(*const ring_reserve)(void *ring, u64 len, u64 flags) = (void *)131;
static void (*const ring_submit)(void *record, u64 flags) = (void *)132;
static void (*const ring_discard)(void *record, u64 flags) = (void *)133;
static u64 (*const ring_query)(void *ring, u64 what) = (void *)134;
static long (*const for_each)(void *map, void *callback, void *context, u64 flags) = (void *)164;
static void (*const spin_lock)(void *lock) = (void *)93;
static void (*const spin_unlock)(void *lock) = (void *)94;
static long (*const loop)(u32 count, void *callback, void *context, u64 flags) = (void *)181;
static long (*const compare)(const char *text, u32 len, const char *constant) = (void *)182;
static u64 (*const get_buff_len)(void *ctx) = (void *)188;
static long (*const load_bytes)(void *ctx, u32 offset, void *to, u32 len) = (void *)189;
static long (*const store_bytes)(void *ctx, u32 offset, void *from, u32 len) = (void *)190;
static void *(*const map_lookup_percpu)(void *map, const void *key, u32 cpu) = (void *)195;

// The packet's bytes from `offset` on, if there are `len` of them.
INLINE void *packet(struct xdp_md *ctx, u64 offset, u64 len)
{
	u8 *at = (u8 *)(u64)ctx->data + offset;
	return at + len <= (u8 *)(u64)ctx->data_end ? at : 0;
}

#define BE16(x) __builtin_bswap16(x)
#define BE32(x) __builtin_bswap32(x)

enum { ETHER_IPV4 = 0x0800, ETHER_VLAN = 0x8100, PROTO_ICMP = 1, PROTO_IPIP = 4, PROTO_TCP = 6, PROTO_UDP = 17 };

struct ether {
	u8 dst[6], src[6];
	u16 type;
};

struct vlan {
	u16 tci, type;
};

struct ipv4 {
	u8 version_len, tos;
	u16 len, id, fragment;
	u8 ttl, proto;
	u16 csum;
	u32 src, dst;
};

// Of `fragment`, in host order.
enum { IP_DF = 0x4000, IP_MF = 0x2000, IP_OFFSET = 0x1fff };

struct ports {
	u16 src, dst;
};

struct icmp {
	u8 type, code;
	u16 csum, id, sequence;
};

// The IPv4 header of an untagged frame, if it is one. The Ethernet header lies right before it.
INLINE struct ipv4 *datagram(struct xdp_md *ctx)
{
	struct ether *ether = packet(ctx, 0, sizeof(*ether));
	if (!ether || ether->type != BE16(ETHER_IPV4))
		return 0;
	struct ipv4 *ip = packet(ctx, sizeof(*ether), sizeof(*ip));
	return ip && ip->version_len >> 4 == 4 ? ip : 0;
}

// A checksum after one of the 16-bit words below it has changed (RFC 1624, equation 3). Byte order is of no matter, if it
// is the same for all three.
INLINE u16 mend(u16 csum, u16 old, u16 new)
{
	u32 sum = (u16)~csum + (u16)~old + (u32)new;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}
