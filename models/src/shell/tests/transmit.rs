//! QDMA to wire.

use regs::{FuncId, PortId, cmac, packet_adapter, qdma_common, qdma_function, shell as map};

use super::support::{Bench, h2c, one_port, two_ports, udp, upstream};
use crate::observation::{Fate, Point};
use crate::shell::{PassThrough, Shell};
use crate::user_box::{BoxFrame, Egress, UserBox};

#[test]
fn frames_leave_unchanged_and_in_order() {
    let mut bench = Bench::up(two_ports());
    let frames: Vec<_> = (0..60).map(|n| udp(n, [60, 64, 65, 1514, 42, 128][n as usize % 6])).collect();
    for (n, frame) in frames.iter().enumerate() {
        bench.qdma.h2c.push_back(h2c(if n % 2 == 0 { 3 } else { 64 + 7 }, frame.clone()));
    }
    bench.drain();
    for p in 0..2u8 {
        let out: Vec<_> = bench.sent(p).into_iter().map(|(_, data)| data).collect();
        let expected: Vec<_> = frames.iter().skip(p.into()).step_by(2).cloned().collect();
        assert_eq!(out, expected, "port {p}");
        assert_eq!(bench.adapter(p, packet_adapter::TX_PACKETS_SENT), 30);
        assert_eq!(
            bench.adapter(p, packet_adapter::TX_BYTES_SENT),
            expected.iter().map(|f| f.len() as u64).sum::<u64>()
        );
        assert_eq!(bench.adapter(p, packet_adapter::TX_WIRE_PACKETS), 30);
        assert_eq!(bench.adapter(p, packet_adapter::TX_INSIDE), 0);
    }
    assert_eq!(bench.common(qdma_common::H2C_PACKETS), 60);
    assert_eq!(bench.common(qdma_common::FUNCTION_H2C_PACKETS), 30);
}

/// The wire carries a frame each (length + 24) bytes at 100 Gb/s, and the buffer keeps it busy with the largest frames too.
#[test]
fn the_wire_is_kept_busy_at_100_gbps() {
    for len in [60, 1514] {
        let mut bench = Bench::up(one_port());
        bench.qdma.h2c.extend((0..200).map(|n| h2c(0, udp(n, len))));
        bench.drain();
        let times: Vec<_> = bench.sent(0).into_iter().map(|(time, _)| time).collect();
        let wire_ps = 199 * (len as u64 + 24) * 80;
        let span_ps = times[199] - times[0];
        // A frame starts at an edge of the MAC's clock, so each can lose up to one period.
        assert!(span_ps >= wire_ps && span_ps <= wire_ps + 199 * 3104, "{len} bytes: {span_ps} ps for {wire_ps}");
    }
}

#[test]
fn a_transmitter_that_is_off_holds_everything_back() {
    let mut bench = Bench::up(one_port());
    let control = map::cmac(PortId(0)) + cmac::CONFIGURATION_TX_REG1;
    bench.write(control, 0);
    bench.qdma.h2c.extend((0..500).map(|n| h2c(0, udp(n, 128))));
    bench.run_ns(20_000);
    assert_eq!(bench.sent(0).len(), 0);
    assert_eq!(bench.adapter(0, packet_adapter::TX_INSIDE), 33, "32 in the buffer of 64 beats, one before it");
    assert_eq!(bench.qdma.h2c.len(), 500 - 33, "the rest stays with the QDMA");
    bench.write(control, 1);
    bench.drain();
    assert_eq!(bench.sent(0).len(), 500);
}

/// Q6: a queue that no function owns.
#[test]
fn q6_a_queue_of_no_function_drops_and_counts() {
    let mut bench = Bench::up(two_ports());
    for qid in [0, 8, 63, 64, 72, 2047] {
        bench.qdma.h2c.push_back(h2c(qid, udp(u32::from(qid), 60)));
    }
    bench.drain();
    assert_eq!((bench.sent(0).len(), bench.sent(1).len()), (1, 1));
    assert_eq!(bench.common(qdma_common::H2C_PACKETS), 6);
    assert_eq!(bench.common(qdma_common::H2C_DROP_NO_FUNCTION), 4);
    assert_eq!(bench.observations().iter().filter(|o| o.point == Point::H2cDrop).count(), 4);
}

#[test]
fn q6_upstream_blocks_until_qconf_matches() {
    let mut bench = Bench::up(upstream());
    bench.qdma.h2c.extend([h2c(9, udp(1, 60)), h2c(0, udp(2, 60))]);
    bench.run_ns(10_000);
    assert_eq!(bench.qdma.h2c.len(), 2, "neither the stray frame nor the one behind it");
    bench.write(map::qdma_function(FuncId(0)) + qdma_function::QCONF, 16);
    bench.drain();
    assert_eq!(bench.sent(0).len(), 2);
}

/// Q7: a TX frame longer than the buffer.
#[test]
fn q7_an_over_long_frame_drops_and_counts() {
    let mut bench = Bench::up(one_port());
    bench.qdma.h2c.extend([4096, 4097, 4224, 60].map(|len| h2c(0, udp(1, len))));
    bench.drain();
    assert_eq!(bench.sent(0).iter().map(|(_, data)| data.len()).collect::<Vec<_>>(), [4096, 60]);
    assert_eq!(bench.adapter(0, packet_adapter::TX_DROP_TOO_LONG), 2);
    assert_eq!(bench.adapter(0, packet_adapter::TX_PACKETS_DROPPED), 2);
    assert_eq!(bench.adapter(0, packet_adapter::TX_BYTES_DROPPED), 4097 + 4224);
}

/// shell.md section 12.1, D = 64: 4160 bytes pass, 4224 hang the port until its adapter is reset.
#[test]
fn q7_upstream_hangs_the_port() {
    let mut bench = Bench::up(upstream());
    bench.qdma.h2c.extend([4160, 4224, 60].map(|len| h2c(0, udp(1, len))));
    bench.run_ns(100_000);
    assert_eq!(bench.sent(0).iter().map(|(_, data)| data.len()).collect::<Vec<_>>(), [4160]);
    bench.write(0x00c, 1 << 5);
    bench.drain();
    assert_eq!(bench.sent(0).iter().map(|(_, data)| data.len()).collect::<Vec<_>>(), [60]);
    assert_eq!(bench.shell.reset_losses(), 1);
}

#[test]
fn lengths_follow_the_metadata_as_far_as_the_beats_allow() {
    let told = [64u32, 100, 129, 60, 0, 0x5_0064];
    let leave = |mut bench: Bench| {
        for metadata in told {
            let mut frame = h2c(0, udp(1, 128));
            frame.metadata = metadata;
            bench.qdma.h2c.push_back(frame);
        }
        bench.drain();
        bench.sent(0).iter().map(|(_, data)| data.len()).collect::<Vec<_>>()
    };
    assert_eq!(leave(Bench::up(one_port())), [65, 100, 128, 65, 65, 100]);
    assert_eq!(leave(Bench::up(upstream())), [128, 100, 65, 124, 128, 100]);
}

/// A frame posted while the QDMA subsystem is in reset: the shell itself says when it will ask for it.
#[test]
fn a_frame_posted_in_a_reset_is_taken_after_it() {
    let mut bench = Bench::up(one_port());
    bench.write(regs::system_config::SHELL_RESET, 1);
    bench.qdma.h2c.push_back(h2c(0, udp(1, 60)));
    bench.shell.step(bench.now, &mut bench.qdma);
    let asks_at = bench.shell.next_event().expect("the end of the reset");
    assert!(asks_at > bench.now && bench.qdma.h2c.len() == 1);
    bench.shell.step(asks_at, &mut bench.qdma);
    assert!(bench.qdma.h2c.is_empty());
    bench.now = asks_at;
    assert_eq!(bench.common(qdma_common::H2C_DROP_NO_FUNCTION), 1, "the reset took QCONF away");
}

/// A plugin that forgets `tuser_dst`.
struct NoDst;

impl UserBox for NoDst {
    fn from_port(&mut self, port: PortId, frame: &mut BoxFrame) -> Egress {
        PassThrough::new(2, 2).from_port(port, frame)
    }

    fn from_function(&mut self, func: FuncId, _frame: &mut BoxFrame) -> Egress {
        Egress::Port(PortId(func.0))
    }

    fn read(&mut self, _offset: u32) -> Option<u32> {
        None
    }

    fn write(&mut self, _offset: u32, _value: u32) {}

    fn reset(&mut self) {}
}

#[test]
fn a_frame_not_meant_for_the_port_drops_and_counts() {
    let mut bench = Bench::up_with(Shell::new(one_port()).expect("in range").with_box_250(Box::new(NoDst)));
    bench.qdma.h2c.push_back(h2c(0, udp(1, 77)));
    bench.drain();
    assert_eq!(bench.sent(0).len(), 0);
    assert_eq!(bench.adapter(0, packet_adapter::TX_DROP_DST), 1);
    assert_eq!(bench.adapter(0, packet_adapter::TX_BYTES_DROPPED), 77);
    assert!(bench.observations().iter().any(|o| matches!(o.point, Point::TxEnd { fate: Fate::Dst, .. })));
}
