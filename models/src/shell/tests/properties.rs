//! Conservation, order and independence of stalls, for random traffic.

use std::collections::BTreeMap;

use proptest::prelude::*;
use regs::{PortId, packet_adapter, qdma_common};

use super::support::{Bench, h2c, two_ports, udp};
use crate::observation::{Fate, Observation, Point};
use crate::shell::{Profile, ShellConfig};

#[derive(Clone, Debug)]
struct Arrival {
    port: u8,
    flow: u32,
    len: usize,
    err: bool,
    gap_ps: u64,
}

fn arrival() -> impl Strategy<Value = Arrival> {
    let len = prop_oneof![4 => 60..200usize, 2 => 200..1515usize, 1 => 0..60usize, 1 => 1515..5000usize];
    let gap_ps = prop_oneof![3 => Just(0u64), 2 => 0..20_000u64, 1 => 0..2_000_000u64];
    let one = (0..2u8, 0..40u32, len, prop::bool::weighted(0.1), gap_ps);
    one.prop_map(|(port, flow, len, err, gap_ps)| Arrival { port, flow, len, err, gap_ps })
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    prop::collection::vec(arrival(), 1..120)
}

fn drive(bench: &mut Bench, arrivals: &[Arrival]) {
    let mut at = [bench.now; 2];
    for a in arrivals {
        let at = &mut at[a.port as usize];
        *at += a.gap_ps;
        bench.shell.wire_rx(*at, PortId(a.port), udp(a.flow, a.len), a.err);
    }
}

fn count(observations: &[Observation], is: impl Fn(Point) -> bool) -> u64 {
    observations.iter().filter(|o| is(o.point)).count() as u64
}

/// Frames by queue, in order.
fn by_queue(bench: &Bench) -> BTreeMap<u16, Vec<Vec<u8>>> {
    let mut queues: BTreeMap<u16, Vec<Vec<u8>>> = BTreeMap::new();
    for (_, frame) in &bench.qdma.frames {
        queues.entry(frame.qid.0).or_default().push(frame.data.clone());
    }
    queues
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// In = out + named drops, once from the card's counters and once from its monitors; nothing inside at the end.
    #[test]
    fn every_frame_is_accounted_for(arrivals in arrivals(), stall_percent in 0..95u64, queues in 1..9u16) {
        let mut bench = Bench::up(two_ports());
        bench.queues(0, 0, queues);
        // Table entries 0…7, of which those from `queues` on are out of range.
        (0..128).for_each(|n| bench.write(0x2400 + 4 * n, n % 8));
        bench.write(0x2000, 64 << 16 | u32::from(queues));
        bench.qdma.stall_percent = stall_percent;
        drive(&mut bench, &arrivals);
        bench.drain();
        let seen = bench.observations();
        let mut into_functions = 0;
        for p in 0..2u8 {
            let read = |bench: &mut Bench, register| bench.adapter(p, register);
            let wire = read(&mut bench, packet_adapter::RX_WIRE_PACKETS);
            let received = read(&mut bench, packet_adapter::RX_PACKETS_RECEIVED);
            let dropped = read(&mut bench, packet_adapter::RX_PACKETS_DROPPED);
            let error = read(&mut bench, packet_adapter::RX_PACKETS_ERROR);
            let named = read(&mut bench, packet_adapter::RX_DROP_OVERFLOW) + read(&mut bench, packet_adapter::RX_DROP_TOO_LONG);
            prop_assert_eq!(wire, arrivals.iter().filter(|a| a.port == p).count() as u64);
            prop_assert_eq!(wire, received + dropped + error);
            prop_assert_eq!(dropped, named);
            let at_end = |fate| count(&seen, |point| point == Point::RxEnd { port: PortId(p), fate });
            prop_assert_eq!([received, error], [at_end(Fate::Accepted), at_end(Fate::Error)]);
            prop_assert_eq!(dropped, at_end(Fate::Overflow) + at_end(Fate::TooLong));
            into_functions += received;
        }
        let (out, out_of_range) = (bench.common(qdma_common::C2H_PACKETS), bench.common(qdma_common::C2H_DROP_QUEUE_RANGE));
        prop_assert_eq!(into_functions, out + out_of_range);
        prop_assert_eq!(out, bench.qdma.frames.len() as u64);
        prop_assert_eq!(out, bench.qdma.completions.len() as u64);
        prop_assert_eq!(out_of_range, count(&seen, |point| matches!(point, Point::Rss { fate: Fate::QueueRange, .. })));
        prop_assert_eq!(bench.shell.inside(), 0);
    }

    /// While nothing overflows, stalls change nothing that lands in a queue.
    #[test]
    fn stalls_change_nothing_but_time(arrivals in arrivals(), stall_percent in 1..95u64) {
        let run = |percent| {
            let mut bench = Bench::up(two_ports());
            bench.qdma.stall_percent = percent;
            for a in &arrivals {
                while !bench.shell.wire_room(PortId(a.port), a.len) {
                    bench.run_ns(100);
                }
                bench.send(a.port, udp(a.flow, a.len), a.err);
            }
            bench.drain();
            by_queue(&bench)
        };
        prop_assert_eq!(run(0), run(stall_percent));
    }

    /// Upstream counts wrongly but loses nothing without a monitor knowing, and never stops or panics.
    #[test]
    fn upstream_takes_any_traffic(arrivals in arrivals(), stall_percent in 0..95u64) {
        let mut bench = Bench::up(ShellConfig { profile: Profile::Upstream, ..two_ports() });
        bench.qdma.stall_percent = stall_percent;
        drive(&mut bench, &arrivals);
        bench.drain();
        let seen = bench.observations();
        prop_assert_eq!(count(&seen, |point| matches!(point, Point::RxEnd { .. })), arrivals.len() as u64);
        let accepted = count(&seen, |point| matches!(point, Point::RxEnd { fate: Fate::Accepted, .. }));
        prop_assert_eq!(accepted, bench.qdma.frames.len() as u64);
    }

    #[test]
    fn every_sent_frame_is_accounted_for(frames in prop::collection::vec((0..80u16, 0..5000usize, any::<u16>()), 1..80)) {
        let mut bench = Bench::up(two_ports());
        for (qid, len, metadata) in &frames {
            let mut frame = h2c(*qid, udp(7, *len));
            if metadata % 4 == 0 {
                frame.metadata = u32::from(*metadata);
            }
            bench.qdma.h2c.push_back(frame);
        }
        bench.drain();
        let stray = bench.common(qdma_common::H2C_DROP_NO_FUNCTION);
        prop_assert_eq!(bench.common(qdma_common::H2C_PACKETS), frames.len() as u64);
        let mut accounted = stray;
        for p in 0..2u8 {
            let wire = bench.adapter(p, packet_adapter::TX_WIRE_PACKETS);
            prop_assert_eq!(wire, bench.sent(p).len() as u64);
            prop_assert_eq!(wire, bench.adapter(p, packet_adapter::TX_PACKETS_SENT));
            accounted += wire + bench.adapter(p, packet_adapter::TX_PACKETS_DROPPED);
        }
        prop_assert_eq!(accounted, frames.len() as u64);
        prop_assert_eq!(bench.shell.inside(), 0);
    }
}

/// What a driver, a wire and a QDMA can do to a shell, in any order.
#[derive(Clone, Debug)]
enum Op {
    Arrive(Arrival),
    Post { qid: u16, len: usize, metadata: u32 },
    Write { offset: u32, value: u32 },
    Read { offset: u32 },
    ShellReset(u32),
    UserReset(u32),
    PowerUp,
    Stall(bool),
    Run(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let arrival = arrival().prop_map(Op::Arrive);
    let block = prop_oneof![
        Just(0x0u32),
        Just(0x1000),
        Just(0x2000),
        Just(0x5000),
        Just(0x8000),
        Just(0xb000),
        Just(0x10_0000)
    ];
    let offset = prop_oneof![4 => (block, 0..0x1000u32).prop_map(|(base, at)| base + at), 1 => any::<u32>()];
    let bits = prop_oneof![
        Just(0x001u32),
        Just(0x010),
        Just(0x020),
        Just(0x331),
        Just(1 << 31),
        Just(1 << 30),
        Just(1 << 16),
        any::<u32>()
    ];
    prop_oneof![
        30 => arrival,
        10 => (0..80u16, 0..5000usize, any::<u32>()).prop_map(|(qid, len, metadata)| Op::Post { qid, len, metadata }),
        4 => (offset.clone(), any::<u32>()).prop_map(|(offset, value)| Op::Write { offset, value }),
        2 => offset.prop_map(|offset| Op::Read { offset }),
        1 => bits.clone().prop_map(Op::ShellReset),
        1 => bits.prop_map(Op::UserReset),
        1 => Just(Op::PowerUp),
        3 => any::<bool>().prop_map(Op::Stall),
        10 => (0..3000u64).prop_map(Op::Run),
    ]
}

/// Apply; how many frames that put in.
fn apply(bench: &mut Bench, op: &Op) -> u64 {
    match op {
        Op::Arrive(a) => bench.send(a.port, udp(a.flow, a.len), a.err),
        Op::Post { qid, len, metadata } => {
            let mut frame = h2c(*qid, udp(1, *len));
            frame.metadata = *metadata;
            bench.qdma.h2c.push_back(frame);
        }
        // Any offset and any value may come from a driver; an error is an answer.
        Op::Write { offset, value } => drop(bench.shell.mmio_write(bench.now, *offset, *value)),
        Op::Read { offset } => drop(bench.shell.mmio_read(bench.now, *offset)),
        Op::ShellReset(bits) => drop(bench.shell.mmio_write(bench.now, 0xc, *bits)),
        Op::UserReset(bits) => drop(bench.shell.mmio_write(bench.now, 0x14, *bits)),
        Op::PowerUp => bench.shell.reset(),
        Op::Stall(stall) => bench.qdma.stall = *stall,
        Op::Run(ns) => bench.run_ns(*ns),
    }
    u64::from(matches!(op, Op::Arrive(_) | Op::Post { .. }))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Resets and stray register writes in the midst of traffic: whatever happens to a frame has a name, and all drains.
    #[test]
    fn no_frame_is_lost_without_a_name_whatever_a_driver_does(ops in prop::collection::vec(op(), 1..200)) {
        let mut bench = Bench::up(two_ports());
        let frames_in: u64 = ops.iter().map(|op| apply(&mut bench, op)).sum();
        bench.qdma.stall = false;
        bench.run_ns(2000);
        for p in 0..2 {
            bench.write(regs::shell::cmac(PortId(p)) + regs::cmac::CONFIGURATION_TX_REG1, 1);
        }
        bench.drain();
        let seen = bench.observations();
        let lost = count(&seen, |point| match point {
            Point::RxEnd { fate, .. } | Point::TxEnd { fate, .. } | Point::Rss { fate, .. } => fate != Fate::Accepted,
            Point::H2cDrop => true,
            Point::C2h { .. } => false,
        });
        let sent: u64 = (0..2).map(|p| bench.sent(p).len() as u64).sum();
        let landed = bench.qdma.completions.len() as u64;
        prop_assert_eq!(frames_in, landed + sent + lost + bench.shell.reset_losses());
    }

    /// The same on the upstream profile, where a port or the bus may stop for good: no panic, and no endless loop.
    #[test]
    fn upstream_survives_whatever_a_driver_does(ops in prop::collection::vec(op(), 1..200)) {
        let mut bench = Bench::up(ShellConfig { profile: Profile::Upstream, ..two_ports() });
        for op in &ops {
            apply(&mut bench, op);
        }
        bench.qdma.stall = false;
        bench.run_ns(100_000);
        prop_assert_eq!(bench.qdma.completions.len() as u64 <= ops.len() as u64, true);
    }
}
