// Sends frames elsewhere: by the first byte to an interface, a device map, a CPU or a socket; events to a ring buffer, and
// lines to the trace.
#include "bpf.h"

struct {
	NUMBER(type, DEVMAP);
	NUMBER(max_entries, 8);
	TYPE(key, u32);
	TYPE(value, u64);
} devices SEC(".maps");

struct {
	NUMBER(type, CPUMAP);
	NUMBER(max_entries, 8);
	TYPE(key, u32);
	TYPE(value, u32);
} cpus SEC(".maps");

struct {
	NUMBER(type, XSKMAP);
	NUMBER(max_entries, 8);
	TYPE(key, u32);
	TYPE(value, u32);
} sockets SEC(".maps");

struct event {
	u64 time;
	u32 len, cpu;
};

struct {
	NUMBER(type, RINGBUF);
	NUMBER(max_entries, 4096);
} events SEC(".maps");

struct {
	NUMBER(type, PERF_EVENT_ARRAY);
	NUMBER(key_size, 4);
	NUMBER(value_size, 4);
} samples SEC(".maps");

SEC("xdp") int steer(struct xdp_md *ctx)
{
	u8 *first = packet(ctx, 0, 2);
	if (!first)
		return XDP_ABORTED;
	switch (first[0]) {
	case 0:
		return redirect(first[1], 0);
	case 1:
		return redirect_map(&devices, first[1], XDP_DROP);
	case 2:
		return redirect_map(&devices, 0, 8 | 16);
	case 3:
		return redirect_map(&cpus, first[1], XDP_PASS);
	case 4:
		return redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
	case 5: {
		struct event *event = ring_reserve(&events, sizeof(*event), 0);
		if (!event)
			return XDP_DROP;
		event->time = ktime_get_ns();
		event->len = ctx->data_end - ctx->data;
		event->cpu = get_cpu();
		ring_submit(event, 0);
		return XDP_PASS;
	}
	case 6: {
		u32 mark = 0x1234;
		return perf_event_output(ctx, &samples, 0xffffffff | 6ULL << 32, &mark, 4) ? XDP_DROP : XDP_PASS;
	}
	case 7: {
		char format[] = "%d bytes, %x, %s";
		char text[] = "text";
		trace_printk(format, sizeof(format), (u32)(ctx->data_end - ctx->data), (u32)first[1], text);
		return XDP_PASS;
	}
	case 8:
		return redirect(1, 1);
	case 9:
		return XDP_REDIRECT;
	default:
		return first[0];
	}
}

LICENSE("Dual MIT/GPL");
