//! The upstream profile: each quirk that shows in frames and counters, with upstream's measured values.

use regs::{packet_adapter, qdma_common};

use super::support::{Bench, one_port, udp, upstream};
use crate::observation::{Fate, Point};
use crate::rss::{Key, MicrosoftInput, microsoft};

/// Measured: frames 100, 200 (err), 300, 400, 500 leave with lengths 100, 200, 300, 400.
#[test]
fn q4_upstream_lengths_lag_after_an_errored_frame() {
    let mut bench = Bench::up(upstream());
    for (len, err) in [(100, false), (200, true), (300, false), (400, false), (500, false)] {
        bench.send(0, udp(len, len as usize), err);
        bench.run_ns(1000);
    }
    bench.drain();
    assert_eq!(bench.qdma.completions.iter().map(|(_, c)| c.len_bytes).collect::<Vec<_>>(), [100, 200, 300, 400]);
}

#[test]
fn q4_lengths_never_shift() {
    let mut bench = Bench::up(one_port());
    for (len, err) in [(100, false), (200, true), (300, false), (400, false), (500, false)] {
        bench.send(0, udp(len, len as usize), err);
    }
    bench.drain();
    assert_eq!(bench.qdma.completions.iter().map(|(_, c)| c.len_bytes).collect::<Vec<_>>(), [100, 300, 400, 500]);
}

/// Q5: of two 64-byte frames lost to a full buffer upstream counts one.
#[test]
fn q5_upstream_counts_one_loss_of_two() {
    let mut bench = Bench::up(upstream());
    bench.qdma.stall = true;
    for n in 0..132 {
        bench.send(0, udp(n, 64), false);
    }
    bench.run_ns(5000);
    assert_eq!(bench.adapter(0, packet_adapter::RX_PACKETS_RECEIVED), 122);
    assert_eq!(
        bench.adapter(0, packet_adapter::RX_PACKETS_DROPPED),
        0,
        "the buffer stays full, so no last beat is accepted"
    );
    bench.qdma.stall = false;
    bench.drain();
    bench.send(0, udp(200, 64), false);
    bench.send(0, udp(201, 64), false);
    bench.drain();
    assert_eq!(bench.adapter(0, packet_adapter::RX_PACKETS_DROPPED), 1, "the next frame is thrown away, and counted");
    assert_eq!(bench.qdma.frames.len(), 123);
    let fates = bench.rx_fates(0);
    assert_eq!(fates.iter().filter(|fate| **fate == Fate::Overflow).count(), 11, "the model itself knows of each");
}

#[test]
fn q5_each_loss_counts_once() {
    let mut bench = Bench::up(one_port());
    bench.qdma.stall = true;
    for n in 0..132 {
        bench.send(0, udp(n, 64), false);
    }
    bench.run_ns(5000);
    assert_eq!(bench.adapter(0, packet_adapter::RX_PACKETS_DROPPED), 10);
    bench.qdma.stall = false;
    bench.drain();
    bench.send(0, udp(200, 64), false);
    bench.drain();
    assert_eq!(bench.qdma.frames.len(), 123, "and the next frame is taken");
}

/// Measured, D = 64: a 4097-byte frame loses the next one and puts its first beat before the one after; a 4200-byte frame
/// puts its first beat in place of the next one's.
#[test]
fn q10_upstream_over_long_frames_damage_their_neighbours() {
    for (len, ids, spliced) in [(4097, vec![2], true), (4200, vec![1, 2], false)] {
        let mut bench = Bench::up(upstream());
        bench.send(0, udp(77, len), false);
        bench.run_ns(5000);
        for n in [1, 2] {
            bench.send(0, udp(n, 200), false);
            bench.run_ns(1000);
        }
        bench.drain();
        let got: Vec<_> = bench.qdma.frames.iter().map(|(_, frame)| frame.data.clone()).collect();
        assert_eq!(got.len(), ids.len(), "{len}");
        let own = udp(ids[0], 200);
        let rest = if spliced { &own[..136] } else { &own[64..] };
        assert_eq!((&got[0][..64], &got[0][64..]), (&udp(77, 64)[..], rest), "{len}");
        if let Some(second) = got.get(1) {
            assert_eq!(*second, udp(2, 200));
        }
    }
}

#[test]
fn q10_an_over_long_frame_touches_nothing() {
    let mut bench = Bench::up(one_port());
    for (flow, len) in [(77, 4097), (1, 200), (78, 4200), (2, 200)] {
        bench.send(0, udp(flow, len), false);
    }
    bench.drain();
    let got: Vec<_> = bench.qdma.frames.iter().map(|(_, frame)| frame.data.clone()).collect();
    assert_eq!(got, [udp(1, 200), udp(2, 200)]);
    assert_eq!(bench.adapter(0, packet_adapter::RX_DROP_TOO_LONG), 2);
}

/// Q17: received bytes lag one frame; an errored frame counts in both of two registers, with unrelated bytes.
#[test]
fn q17_upstream_byte_counters_lag() {
    let mut bench = Bench::up(upstream());
    for (len, err) in [(100, false), (200, false), (300, true), (400, false)] {
        bench.send(0, udp(1, len), err);
        bench.run_ns(1000);
    }
    bench.drain();
    assert_eq!(bench.adapter(0, packet_adapter::RX_PACKETS_RECEIVED), 3);
    assert_eq!(
        bench.adapter(0, packet_adapter::RX_BYTES_RECEIVED),
        100 + 300,
        "0, then 100, then (300 bytes in error) 300"
    );
    assert_eq!(bench.adapter(0, packet_adapter::RX_PACKETS_ERROR), 1);
    assert_eq!(bench.adapter(0, packet_adapter::RX_PACKETS_DROPPED), 1);
    assert_eq!(bench.adapter(0, packet_adapter::RX_BYTES_ERROR), 100, "what the event queue showed last");
}

#[test]
fn q17_byte_counters_count_their_own_frame() {
    let mut bench = Bench::up(one_port());
    for (len, err) in [(100, false), (200, false), (300, true), (400, false)] {
        bench.send(0, udp(1, len), err);
    }
    bench.drain();
    assert_eq!(bench.adapter(0, packet_adapter::RX_BYTES_RECEIVED), 700);
    assert_eq!(bench.adapter(0, packet_adapter::RX_BYTES_ERROR), 300);
    assert_eq!(bench.adapter(0, packet_adapter::RX_PACKETS_DROPPED), 0, "an errored frame counts once");
}

/// A UDP frame of ONIC-05's flow behind a tag with this VID.
fn tagged(vid: u16) -> Vec<u8> {
    let mut frame = udp(0, 38);
    frame[26..34].copy_from_slice(&[66, 9, 149, 187, 161, 142, 100, 80]);
    frame[34..38].copy_from_slice(&[0x0a, 0xea, 0x06, 0xe6]);
    let [high, low] = vid.to_be_bytes();
    frame.splice(12..12, [0x81, 0x00, high, low]);
    frame.resize(64, 0);
    frame
}

fn hashes(bench: &mut Bench) -> Vec<u32> {
    let hash = |point| if let Point::Rss { hash, .. } = point { Some(hash) } else { None };
    bench.observations().into_iter().filter_map(|o| hash(o.point)).collect()
}

/// ONIC-05 and Q18 through the whole shell, with the default key: a burst and a lone frame of one flow.
#[test]
fn q18_upstream_a_flows_hash_depends_on_its_neighbours() {
    let run = |cfg| {
        let mut bench = Bench::up(cfg);
        // Frames at one beat a MAC cycle come faster than 250 MHz takes them, so they touch there.
        (0..3).for_each(|_| bench.send(0, tagged(0x500), false));
        bench.run_ns(1000);
        bench.send(0, tagged(0x500), false);
        bench.drain();
        hashes(&mut bench)
    };
    let nibble = Key::DEFAULT.word(0) ^ (Key::DEFAULT.word(0) >> 2 | Key::DEFAULT.word(1) << 30);
    assert_eq!(run(upstream()), [0xeef7_e1e4 ^ nibble, 0xeef7_e1e4 ^ nibble, 0xeef7_e1e4, 0xeef7_e1e4]);
    assert_eq!(run(one_port()), [0xeef7_e1e4; 4]);
}

/// Ports are taken for any protocol and for later fragments, IPv6 hashes to 0: unusual, harmless, and kept in both profiles.
#[test]
fn q18_what_stays_as_upstream() {
    for cfg in [one_port(), upstream()] {
        let mut bench = Bench::up(cfg);
        let mut fragment = udp(5, 60);
        fragment[20..22].copy_from_slice(&[0x00, 0x10]);
        let mut ipv6 = udp(5, 60);
        ipv6[12..14].copy_from_slice(&[0x86, 0xdd]);
        for frame in [udp(5, 60), fragment.clone(), ipv6] {
            bench.send(0, frame, false);
            bench.run_ns(500);
        }
        let got = hashes(&mut bench);
        assert_eq!((got[0], got[2]), (got[1], 0));
        let published = microsoft(Key::DEFAULT.bytes(), &MicrosoftInput::parse(&fragment));
        assert_ne!(got[1], published, "the card's hash is not Toeplitz");
    }
}

/// Q20: upstream checks no range; the sum is cut to 11 bits.
#[test]
fn q20_upstream_takes_any_entry() {
    let mut bench = Bench::up(upstream());
    bench.queues(0, 2040, 8);
    (0..128).for_each(|n| bench.write(0x1400 + 4 * n, 100));
    bench.send(0, udp(1, 60), false);
    bench.drain();
    assert_eq!(bench.qdma.frames[0].1.qid.0, (2040 + 100) % 2048);
    assert_eq!(
        bench.read(regs::shell::QDMA_COMMON + qdma_common::C2H_PACKETS),
        0xdead_beef,
        "upstream has no such counter"
    );
}

/// Q23: MIN_PKT_LEN reaches nothing.
#[test]
fn q23_upstream_takes_runts() {
    let mut bench = Bench::up(upstream());
    bench.send(0, udp(1, 42), false);
    bench.drain();
    assert_eq!(bench.received(), [42]);
}
