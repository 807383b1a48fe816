//! Wire to QDMA.

use regs::{FuncId, PortId, Qid, cmac, packet_adapter, qdma_common, qdma_function, shell as map};

use super::support::{Bench, one_port, two_ports, udp};
use crate::observation::{Fate, Point};
use crate::rss::{self, HashFunction, HashInput, Key};
use crate::shell::{PassThrough, Shell, ShellConfig};
use crate::time::Time;
use crate::user_box::{BoxFrame, Egress, UserBox};

#[test]
fn a_frame_crosses_unchanged_with_its_completion() {
    for len in [1514, 60, 64, 65, 127, 128, 129] {
        let mut bench = Bench::up(one_port());
        let frame = udp(7, len);
        bench.send(0, frame.clone(), false);
        bench.drain();
        let hash = HashInput::parse(HashFunction::Opennic, &frame).hash(Key::DEFAULT.bytes());
        let qid = Qid((rss::indirection_index(hash) % 8) as u16);
        assert_eq!(bench.qdma.frames[0].1.data, frame);
        let completion = bench.qdma.completions[0].1;
        assert_eq!((bench.qdma.frames[0].1.qid, completion.qid), (qid, qid));
        assert_eq!((completion.len_bytes as usize, completion.pkt_id), (len, 1));
        let counted =
            [packet_adapter::RX_WIRE_PACKETS, packet_adapter::RX_PACKETS_RECEIVED, packet_adapter::RX_BYTES_RECEIVED];
        assert_eq!(counted.map(|register| bench.adapter(0, register)), [1, 1, len as u64]);
        assert_eq!(bench.common(qdma_common::C2H_PACKETS), 1);
        let dropped = [packet_adapter::RX_PACKETS_DROPPED, packet_adapter::RX_PACKETS_ERROR, packet_adapter::RX_INSIDE];
        assert_eq!(dropped.map(|register| bench.adapter(0, register)), [0, 0, 0]);
        assert_eq!(bench.observations().len(), 2, "one at the adapter's end, one at the hash");
    }
}

/// shell.md section 19: a 64-byte frame takes about 25 axis cycles from the MAC to the C2H handshake.
#[test]
fn latency_is_as_measured() {
    let mut bench = Bench::up(one_port());
    let start = bench.shell.wire_free_at(PortId(0)).max(bench.now);
    bench.send(0, udp(0, 64), false);
    bench.drain();
    let cycles = (bench.qdma.frames[0].0 - start) / 4000;
    assert!((23..=30).contains(&cycles), "{cycles} cycles");
}

/// 148.8 Mpps of 60-byte frames, and 65-byte frames at the bus's rate, pass without loss while the sink is ready.
#[test]
fn line_rate_passes_without_loss() {
    for (len, every_ps) in [(60, 6720), (65, 8000), (1514, 123_040)] {
        let mut bench = Bench::up(one_port());
        let start = bench.now;
        for n in 0..2000 {
            bench.shell.wire_rx(start + n * every_ps, PortId(0), udp(n as u32, len), false);
        }
        bench.drain();
        assert_eq!(bench.qdma.frames.len(), 2000, "{len} bytes");
        let span_ps = bench.qdma.frames[1999].0 - bench.qdma.frames[0].0;
        assert!(span_ps < 2000 * every_ps, "{len} bytes: the last frame left {span_ps} ps after the first");
    }
}

/// shell.md section 12.2: 122 one-beat frames wait behind a stalled C2H port with a buffer of 64 beats.
#[test]
fn a_stalled_qdma_fills_the_path_by_beats() {
    for (len, fit) in [(60, 122), (128, 61), (1500, 5)] {
        let mut bench = Bench::up(one_port());
        bench.qdma.stall = true;
        for n in 0..200 {
            bench.send(0, udp(n, len), false);
        }
        bench.run_ns(20_000);
        assert_eq!(bench.rx_fates(0).iter().filter(|fate| **fate == Fate::Accepted).count(), fit, "{len} bytes");
        let lost = 200 - fit as u64;
        assert_eq!(bench.adapter(0, packet_adapter::RX_DROP_OVERFLOW), lost);
        assert_eq!(bench.adapter(0, packet_adapter::RX_PACKETS_DROPPED), lost);
        assert_eq!(bench.adapter(0, packet_adapter::RX_BYTES_DROPPED), lost * len as u64);
        let inside = qdma_common::FUNCTION_C2H_INSIDE;
        assert_eq!(bench.adapter(0, packet_adapter::RX_INSIDE) + bench.common(inside), fit as u64);
        bench.qdma.stall = false;
        bench.drain();
        let kept: Vec<_> = bench.qdma.frames.iter().map(|(_, frame)| frame.data.clone()).collect();
        assert_eq!(kept, (0..fit).map(|n| udp(n as u32, len)).collect::<Vec<_>>(), "the first ones, in order, whole");
    }
}

#[test]
fn the_gate_lets_in_only_what_fits() {
    let mut bench = Bench::up(one_port());
    bench.qdma.stall = true;
    let mut sent = 0;
    for _ in 0..500 {
        while bench.shell.wire_room(PortId(0), 300) {
            bench.send(0, udp(sent, 300), false);
            sent += 1;
        }
        bench.run_ns(100);
        bench.qdma.stall = sent % 3 == 0 && bench.now.as_ns() < 30_000;
    }
    assert!(sent > 100, "{sent} frames");
    bench.drain();
    assert_eq!(bench.qdma.frames.len() as u32, sent, "nothing overflowed");
    assert!(bench.shell.wire_room(PortId(0), 1 << 20), "what no buffer holds is let in, to be dropped and counted");
}

#[test]
fn each_bad_frame_is_counted_once_under_its_name() {
    let mut bench = Bench::up(ShellConfig { max_pkt_len: 1000, ..one_port() });
    let frames = [(60, false), (59, false), (996, false), (997, false), (100, true), (5000, false), (10, true)];
    for (len, err) in frames {
        bench.send(0, udp(1, len), err);
    }
    bench.drain();
    let fates = [Fate::Accepted, Fate::Error, Fate::Accepted, Fate::Error, Fate::Error, Fate::TooLong, Fate::Error];
    assert_eq!(bench.rx_fates(0), fates);
    assert_eq!(bench.received(), [60, 996]);
    assert_eq!(bench.adapter(0, packet_adapter::RX_PACKETS_ERROR), 4);
    assert_eq!(bench.adapter(0, packet_adapter::RX_BYTES_ERROR), 59 + 997 + 100 + 10);
    assert_eq!(bench.adapter(0, packet_adapter::RX_DROP_TOO_LONG), 1);
    assert_eq!(bench.adapter(0, packet_adapter::RX_PACKETS_DROPPED), 1);
    assert_eq!(bench.adapter(0, packet_adapter::RX_WIRE_PACKETS), 7);
}

#[test]
fn a_receiver_that_is_off_discards_and_counts() {
    let mut bench = Bench::up(one_port());
    bench.write(map::cmac(PortId(0)) + cmac::CONFIGURATION_RX_REG1, 0);
    bench.send(0, udp(1, 60), false);
    bench.drain();
    assert_eq!(bench.rx_fates(0), [Fate::Disabled]);
    assert_eq!(bench.adapter(0, packet_adapter::RX_DROP_DISABLED), 1);
    assert_eq!(bench.adapter(0, packet_adapter::RX_WIRE_PACKETS), 1);
    assert_eq!(bench.adapter(0, packet_adapter::RX_PACKETS_RECEIVED), 0);
}

#[test]
fn mac_statistics_count_the_fcs_and_move_at_a_tick() {
    let mut bench = Bench::up(one_port());
    let mut broadcast = udp(1, 60);
    broadcast[..6].fill(0xff);
    let mut tagged = udp(1, 300);
    tagged[12..14].copy_from_slice(&[0x81, 0x00]);
    for (frame, err) in
        [(broadcast, false), (tagged, false), (udp(1, 1514), false), (udp(1, 1515), false), (udp(1, 60), true)]
    {
        bench.send(0, frame, err);
    }
    bench.drain();
    let mac = map::cmac(PortId(0));
    assert_eq!(bench.counter(mac + cmac::STAT_RX_TOTAL_PKTS), 0, "frozen before the tick");
    bench.write(mac + cmac::TICK, 1);
    let expected = [
        (cmac::STAT_RX_TOTAL_PKTS, 5),
        (cmac::STAT_RX_TOTAL_GOOD_PKTS, 3),
        (cmac::STAT_RX_TOTAL_BYTES, 64 + 304 + 1518 + 1519 + 64),
        (cmac::STAT_RX_TOTAL_GOOD_BYTES, 64 + 304 + 1518),
        (cmac::STAT_RX_PKT_64_BYTES, 2),
        (cmac::STAT_RX_PKT_256_511_BYTES, 1),
        (cmac::STAT_RX_PKT_1024_1518_BYTES, 1),
        (cmac::STAT_RX_PKT_1519_1522_BYTES, 1),
        (cmac::STAT_RX_OVERSIZE, 1),
        (cmac::STAT_RX_TOOLONG, 1),
        (cmac::STAT_RX_BAD_FCS, 1),
        (cmac::STAT_RX_PKT_BAD_FCS, 1),
        (cmac::STAT_RX_BROADCAST, 1),
        (cmac::STAT_RX_UNICAST, 2),
        (cmac::STAT_RX_VLAN, 1),
        (cmac::STAT_RX_UNDERSIZE, 0),
        (cmac::STAT_TX_TOTAL_PKTS, 0),
    ];
    for (register, count) in expected {
        assert_eq!(bench.counter(mac + register), count, "{register:#x}");
    }
    bench.write(mac + cmac::TICK, 1);
    assert_eq!(bench.counter(mac + cmac::STAT_RX_TOTAL_PKTS), 0, "a tick clears");
}

/// ONIC-08: for each queue count every frame reaches a queue below it, shares as the table gives them.
#[test]
fn onic_08_each_queue_count_gets_every_frame() {
    for count in 1..=64u16 {
        let mut bench = Bench::up(one_port());
        bench.queues(0, 0, count);
        let mut expected = vec![0u32; count as usize];
        for flow in 0..10_000u32 {
            let frame = udp(flow.wrapping_mul(0x9e37_79b9), 60);
            let hash = HashInput::parse(HashFunction::Opennic, &frame).hash(Key::DEFAULT.bytes());
            expected[rss::indirection_index(hash) % count as usize] += 1;
            bench.shell.wire_rx(bench.now + u64::from(flow) * 6720, PortId(0), frame, false);
        }
        bench.drain();
        let mut got = vec![0u32; count as usize];
        bench.qdma.frames.iter().for_each(|(_, frame)| got[frame.qid.0 as usize] += 1);
        assert_eq!(got, expected, "{count} queues");
        assert_eq!(bench.common(qdma_common::C2H_DROP_QUEUE_RANGE), 0);
    }
}

/// Q20: an entry outside the function's queues.
#[test]
fn q20_an_entry_out_of_range_drops_and_counts() {
    let mut bench = Bench::up(one_port());
    let function = map::qdma_function(FuncId(0));
    bench.write(function + qdma_function::QCONF, 100 << 16 | 4);
    for n in 0..200 {
        bench.shell.wire_rx(bench.now + n * 8000, PortId(0), udp(n as u32 * 77, 90), false);
    }
    bench.drain();
    let dropped = bench.common(qdma_common::C2H_DROP_QUEUE_RANGE);
    assert!(dropped > 50 && bench.qdma.frames.iter().all(|(_, frame)| (100..104).contains(&frame.qid.0)));
    assert_eq!(bench.qdma.frames.len() as u64 + dropped, 200);
    assert_eq!(bench.common(qdma_common::FUNCTION_C2H_DROP_QUEUE_RANGE), dropped);
    let seen = bench
        .observations()
        .into_iter()
        .filter(|o| matches!(o.point, Point::Rss { fate: Fate::QueueRange, entry: 4.., .. }));
    assert_eq!(seen.count() as u64, dropped);
}

/// ONIC-09: two ports into one QDMA, bursts on both; sums balance and both get their share.
#[test]
fn onic_09_two_ports_share_fairly_and_every_loss_is_counted() {
    let mut bench = Bench::up(two_ports());
    let start = bench.now;
    for n in 0..3000u64 {
        for p in 0..2 {
            bench.shell.wire_rx(start + n * 6720, PortId(p), udp(n as u32, 60), false);
        }
    }
    bench.drain();
    for p in 0..2 {
        let [wire, received, dropped] =
            [packet_adapter::RX_WIRE_PACKETS, packet_adapter::RX_PACKETS_RECEIVED, packet_adapter::RX_DROP_OVERFLOW]
                .map(|register| bench.adapter(p, register));
        assert_eq!((wire, received + dropped), (3000, 3000), "port {p}");
        let out = bench.qdma.frames.iter().filter(|(_, frame)| frame.qid.0 / 64 == u16::from(p)).count() as u64;
        assert_eq!(out, received, "port {p}");
        assert!(dropped > 0, "297 Mpps do not go through 250 MHz");
    }
    let shares = [0, 1].map(|f| bench.qdma.frames.iter().filter(|(_, frame)| frame.qid.0 / 64 == f).count());
    assert!(shares[0].abs_diff(shares[1]) <= 2, "{shares:?}");
}

/// ONIC-10: what comes in on port 1 is function 1's, at its base.
#[test]
fn onic_10_port_1_belongs_to_function_1() {
    let mut bench = Bench::up(two_ports());
    for n in 0..20 {
        bench.send(1, udp(n, 200), false);
    }
    bench.drain();
    assert_eq!(bench.qdma.frames.len(), 20);
    assert!(bench.qdma.frames.iter().all(|(_, frame)| (64..72).contains(&frame.qid.0)));
    assert_eq!(bench.common(qdma_common::FUNCTION_C2H_PACKETS), 0);
    assert_eq!(bench.common(qdma_common::FUNCTION_C2H_PACKETS + qdma_common::FUNCTION_C2H_PACKETS_STRIDE), 20);
    assert_eq!(bench.adapter(0, packet_adapter::RX_WIRE_PACKETS), 0);
}

/// ONIC-15: a counter at 2^32-1 and one frame.
#[test]
fn onic_15_counters_carry_into_the_high_word() {
    let mut bench = Bench::up(ShellConfig { counter_preload: u32::MAX, ..one_port() });
    bench.send(0, udp(1, 60), false);
    bench.drain();
    assert_eq!(bench.adapter(0, packet_adapter::RX_PACKETS_RECEIVED), 1 << 32);
    assert_eq!(bench.adapter(0, packet_adapter::RX_BYTES_RECEIVED), (1 << 32) + 59);
    assert_eq!(bench.common(qdma_common::C2H_PACKETS), 1 << 32);
    assert_eq!(bench.adapter(0, packet_adapter::RX_PACKETS_ERROR), u64::from(u32::MAX), "nothing else moved");
}

/// RSS-02: the key goes through the registers in ethtool's byte order, and takes effect.
#[test]
fn rss_02_a_key_written_by_registers_is_the_key_hashed_with() {
    let mut bench = Bench::up(one_port());
    let key = Key(std::array::from_fn(|k| k as u8));
    let register = map::qdma_function(FuncId(0)) + qdma_function::HASH_KEY;
    for i in 0..10 {
        bench.write(register + 4 * i, key.word(i as usize));
    }
    assert_eq!([bench.read(register), bench.read(register + 4)], [0x0302_0100, 0x0706_0504]);
    bench.send(0, udp(5, 60), false);
    bench.drain();
    let expected = HashInput::parse(HashFunction::Opennic, &udp(5, 60)).hash(key.bytes());
    assert!(bench.observations().iter().any(|o| matches!(o.point, Point::Rss { hash, .. } if hash == expected)));
}

/// A plugin that swaps the ports, sends multicast back out, and throws ARP away.
struct Swap;

impl UserBox for Swap {
    fn from_port(&mut self, port: PortId, frame: &mut BoxFrame) -> Egress {
        match frame.data[0] & 1 {
            1 => {
                frame.tuser_dst = 1 << (6 + port.0);
                Egress::Port(port)
            }
            _ if frame.data[12..14] == [8, 6] => Egress::Drop("arp"),
            _ => Egress::Function(FuncId(1 - port.0)),
        }
    }

    fn from_function(&mut self, func: FuncId, frame: &mut BoxFrame) -> Egress {
        PassThrough::new(2, 2).from_function(func, frame)
    }

    fn read(&mut self, offset: u32) -> Option<u32> {
        (offset < 0x10000).then_some(offset + 1)
    }

    fn write(&mut self, _offset: u32, _value: u32) {}

    fn reset(&mut self) {}
}

#[test]
fn a_plugin_chooses_the_egress() {
    let shell = Shell::new(two_ports()).expect("in range").with_box_250(Box::new(Swap));
    let mut bench = Bench::up_with(shell);
    let (mut multicast, mut arp) = (udp(1, 80), udp(1, 60));
    multicast[0] = 1;
    arp[12..14].copy_from_slice(&[8, 6]);
    for frame in [multicast.clone(), arp, udp(9, 60)] {
        bench.send(0, frame, false);
    }
    bench.drain();
    assert_eq!(bench.sent(0).into_iter().map(|(_, data)| data).collect::<Vec<_>>(), [multicast]);
    assert_eq!(bench.shell.box_drops(), [("arp", 1)]);
    assert_eq!(bench.qdma.frames.len(), 1);
    assert_eq!(bench.qdma.frames[0].1.qid.0 / 64, 1, "port 0's frame went to function 1");
    assert_eq!(bench.read(map::BOX_250 + 0xfff0), 0xfff1);
}

#[test]
fn buffers_circulate() {
    let mut bench = Bench::up(one_port());
    bench.shell.observe(false);
    let mut seen = std::collections::BTreeSet::new();
    for round in 0..50 {
        for n in 0..64 {
            let mut buffer = bench.shell.recycle();
            buffer.extend_from_slice(&udp(n, 60));
            if round > 2 {
                assert!(seen.contains(&buffer.as_ptr()), "round {round} used a new buffer");
            }
            seen.insert(buffer.as_ptr());
            bench.shell.wire_rx(bench.now + u64::from(n) * 6720, PortId(0), buffer, false);
        }
        bench.drain();
        bench.qdma.forget();
    }
}

#[test]
fn time_never_goes_back() {
    let mut bench = Bench::up(two_ports());
    bench.qdma.stall_percent = 50;
    for n in 0..100 {
        bench.send((n % 2) as u8, udp(n, 60 + 37 * n as usize % 1400), false);
        bench.run_ns(200);
    }
    bench.drain();
    let times: Vec<Time> = bench.qdma.completions.iter().map(|(time, _)| *time).collect();
    assert!(times.is_sorted());
    let ids: Vec<u16> = bench.qdma.completions.iter().map(|(_, c)| c.pkt_id).collect();
    assert_eq!(ids, (1..=100).collect::<Vec<u16>>());
}
