//! The shell in RTL behind its beat adapters, against a QDMA that only notes what it gets.
//!
//! What a frame's queue is comes from the monitors' hash and entry here; that the hash is right is other tests' business.
#![cfg(feature = "rtl")]

use std::collections::VecDeque;

use models::observation::{Fate, Point};
use models::stream::{C2hCompletion, C2hFrame, H2cFrame, Offer, QdmaStream};
use models::time::Time;
use regs::{PortId, Qid};
use rtl_bridge::tops::{self, Library, ShellShape};
use testbench::card::beats::{FrameTap, RtlConfig, ShellRtl, TapKind};
use testbench::card::{CardError, WireFrame};

/// Notes frames and completions; refuses while `closed`.
#[derive(Default)]
struct Notebook {
    frames: Vec<C2hFrame>,
    completions: Vec<C2hCompletion>,
    h2c: VecDeque<H2cFrame>,
    closed: bool,
}

impl QdmaStream for Notebook {
    fn c2h_offer(&mut self, _: Time, _: Qid, _: u16) -> Offer {
        if self.closed { Offer::Stall } else { Offer::Ready }
    }
    fn c2h_frame(&mut self, _: Time, frame: C2hFrame) {
        self.frames.push(frame);
    }
    fn c2h_completion(&mut self, _: Time, completion: C2hCompletion) {
        assert!(self.completions.len() < self.frames.len(), "a completion before its frame");
        self.completions.push(completion);
    }
    fn h2c_peek(&mut self, _: Time) -> Option<&H2cFrame> {
        self.h2c.front()
    }
    fn h2c_take(&mut self, _: Time) -> Option<H2cFrame> {
        self.h2c.pop_front()
    }
    fn recycle(&mut self) -> Vec<u8> {
        Vec::new()
    }
    fn give_back(&mut self, _: Vec<u8>) {}
}

struct Rig {
    shell: ShellRtl,
    qdma: Notebook,
}

const P0: PortId = PortId(0);

impl Rig {
    /// A shell with 8 queues in a table 0, 1, … 7, 0, … and the MACs on.
    fn start(library: &Library, config: RtlConfig) -> Rig {
        let mut shell = ShellRtl::start(library, &config).expect("starts");
        shell.reset().expect("resets");
        let mut rig = Rig { shell, qdma: Notebook::default() };
        for func in 0..u32::from(config.functions) {
            rig.write(0x1000 + 0x1000 * func, (8 * func) << 16 | 8);
            for entry in 0..128 {
                rig.write(0x1400 + 0x1000 * func + 4 * entry, entry & 7);
            }
        }
        for port in 0..u32::from(config.ports) {
            rig.write(0x8014 + 0x4000 * port, 1);
            rig.write(0x800c + 0x4000 * port, 1);
        }
        rig
    }

    fn one_port(config: RtlConfig) -> Rig {
        Rig::start(&shell(1, 1), config)
    }

    fn access(&mut self, offset: u32, value: Option<u32>) -> Result<u32, CardError> {
        self.shell.pins.access(offset, value);
        loop {
            self.edge()?;
            if let Some(data) = self.shell.pins.answer(offset)? {
                return Ok(data);
            }
        }
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.access(offset, Some(value)).expect("the bus answers");
    }

    fn read(&mut self, offset: u32) -> u32 {
        self.access(offset, None).expect("the bus answers")
    }

    fn edge(&mut self) -> Result<(), CardError> {
        self.shell.qdma_moved(true);
        self.shell.edge(&mut self.qdma).map(|_| ())
    }

    /// Until nothing moves; within 100,000 cycles of `axis_aclk`.
    fn drain(&mut self) {
        let end = self.shell.pins.now() + 400_000_000;
        while !(self.shell.idle() && self.qdma.h2c.is_empty()) {
            assert!(self.shell.pins.now() < end, "not idle in time: {} inside", self.shell.pins.inside());
            self.edge().expect("runs");
        }
    }

    fn send(&mut self, port: PortId, frames: &[Vec<u8>]) {
        for data in frames {
            self.shell.pins.wire_in(port, WireFrame { data: data.clone(), err: false, time: Time::ZERO });
        }
    }

    fn points(&mut self) -> Vec<Point> {
        std::iter::from_fn(|| self.shell.pins.observation()).map(|seen| seen.point).collect()
    }
}

/// The shell of a shape, built if it is not there yet.
fn shell(functions: u8, ports: u8) -> Library {
    let shape = ShellShape { functions, ports, ..ShellShape::default() };
    tops::shell(&shape, &|step, done, of| eprintln!("{step} {done}/{of}")).expect("builds")
}

/// UDP frames of one flow each; byte values tell them apart.
fn frames(lengths: impl IntoIterator<Item = usize>) -> Vec<Vec<u8>> {
    let frame = |(n, len): (usize, usize)| {
        let mut data: Vec<u8> = (0..len).map(|i| (i * 31 + n * 7) as u8).collect();
        data[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
        data[23] = 17;
        data
    };
    lengths.into_iter().enumerate().map(frame).collect()
}

fn every_size() -> Vec<Vec<u8>> {
    frames((60..=200).chain([511, 512, 513, 1024, 1499, 1513, 1514]))
}

#[test]
fn frames_reach_the_qdma_whole_and_in_order_whatever_stalls() {
    for stalls in ["none", "random:40", "bursts:20", "every:3", "between-beats"] {
        let config = RtlConfig { stalls: stalls.parse().expect("a profile"), seed: 11, ..RtlConfig::default() };
        let mut rig = Rig::one_port(config);
        let sent = every_size();
        rig.send(P0, &sent);
        rig.drain();
        let got: Vec<&Vec<u8>> = rig.qdma.frames.iter().map(|frame| &frame.data).collect();
        assert!(got.iter().copied().eq(&sent), "{stalls}");
        for (n, (frame, completion)) in rig.qdma.frames.iter().zip(&rig.qdma.completions).enumerate() {
            let expected = C2hCompletion { qid: frame.qid, len_bytes: frame.data.len() as u16, pkt_id: n as u16 + 1 };
            assert_eq!(*completion, expected, "{stalls}");
        }
        let (mut ends, mut beats, mut last_beats) = (0, 0, 0);
        let mut queues = rig.qdma.frames.iter().map(|frame| frame.qid).collect::<VecDeque<_>>();
        for point in rig.points() {
            match point {
                Point::RxEnd { fate: Fate::Accepted, .. } => ends += 1,
                Point::Rss { hash, entry, fate: Fate::Accepted, .. } => {
                    assert_eq!(entry, (hash & 7) as u16);
                    assert_eq!(queues.pop_front(), Some(Qid(entry)));
                }
                Point::C2h { beats: run, last, .. } => {
                    beats += usize::from(run);
                    last_beats += usize::from(last);
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((ends, last_beats, queues.len()), (sent.len(), sent.len(), 0), "{stalls}");
        assert_eq!(beats, sent.iter().map(|data| data.len().div_ceil(64)).sum::<usize>(), "{stalls}");
    }
}

#[test]
fn frames_reach_the_wire_whole_and_in_order_whatever_stalls() {
    for stalls in ["none", "random:40", "bursts:20", "every:3", "between-beats"] {
        let config = RtlConfig { stalls: stalls.parse().expect("a profile"), seed: 12, ..RtlConfig::default() };
        let mut rig = Rig::one_port(config);
        let sent = every_size();
        for (n, data) in sent.iter().enumerate() {
            let frame =
                H2cFrame { data: data.clone(), qid: Qid(n as u16 % 8), metadata: data.len() as u32, err: false };
            rig.qdma.h2c.push_back(frame);
        }
        rig.drain();
        let got: Vec<WireFrame> = std::iter::from_fn(|| rig.shell.pins.wire_out(P0)).collect();
        assert!(got.iter().map(|frame| &frame.data).eq(&sent), "{stalls}");
        assert!(
            got.windows(2).all(|pair| pair[0].time < pair[1].time) && got.iter().all(|frame| !frame.err),
            "{stalls}"
        );
    }
}

/// `--pace fast`: however long the QDMA holds back, no frame is lost, since none starts without room.
#[test]
fn a_gated_wire_never_overflows_the_buffer() {
    for (lengths, count) in [(60..61, 1200), (1514..1515, 60), (60..1514, 400)] {
        let mut rig = Rig::one_port(RtlConfig::default());
        let sent = frames(lengths.cycle_lengths(count));
        rig.qdma.closed = true;
        rig.send(P0, &sent);
        for _ in 0..20_000 {
            rig.edge().expect("runs");
        }
        assert!(rig.shell.pins.wire_queued(P0) > 0, "the buffer would have held everything");
        rig.qdma.closed = false;
        rig.drain();
        assert!(rig.qdma.frames.iter().map(|frame| &frame.data).eq(&sent));
        assert!(rig.points().iter().all(|point| !matches!(point, Point::RxEnd { fate: Fate::Overflow, .. })));
    }
}

trait CycleLengths {
    fn cycle_lengths(self, count: usize) -> impl Iterator<Item = usize>;
}

impl CycleLengths for std::ops::Range<usize> {
    fn cycle_lengths(self, count: usize) -> impl Iterator<Item = usize> {
        self.step_by(7).cycle().take(count)
    }
}

/// Frames back to back at 100 Gb/s, nothing held at the wire: preamble, FCS and gap add 24 bytes to each.
fn at_line_rate(len_bytes: usize, count: usize) -> (Rig, Time, Time) {
    let mut rig = Rig::one_port(RtlConfig::default());
    rig.shell.pins.gate_wire(false);
    let begin = rig.shell.pins.now();
    for (n, data) in frames(std::iter::repeat_n(len_bytes, count)).into_iter().enumerate() {
        let time = begin + (n * (len_bytes + 24) * 80) as u64;
        rig.shell.pins.wire_in(P0, WireFrame { data, err: false, time });
    }
    rig.drain();
    let end = rig.shell.pins.now();
    (rig, begin, end)
}

#[test]
fn sixty_byte_frames_at_148_8_mpps_pass_without_loss() {
    let count = 20_000;
    let (mut rig, begin, end) = at_line_rate(60, count);
    assert_eq!(rig.qdma.frames.len(), count, "the sink was always ready");
    let lost =
        rig.points().into_iter().filter(|point| matches!(point, Point::RxEnd { fate, .. } if *fate != Fate::Accepted));
    assert_eq!(lost.count(), 0);
    // 6.72 ns each on the wire: through in that time, and 2 us for the way through the shell.
    let wire_ps = count as u64 * 6_720;
    assert!(end - begin < wire_ps + 2_000_000, "{} ns for {} ns of wire", (end - begin) / 1_000, wire_ps / 1_000);
}

/// 65 bytes are two beats: 8 ns on the 250 MHz bus, 7.12 ns on the wire. The bus bounds it, and the buffer says so.
#[test]
fn sixty_five_byte_frames_are_bounded_by_the_bus() {
    let count = 20_000;
    let (mut rig, begin, end) = at_line_rate(65, count);
    let arrived = rig.qdma.frames.len() as u64;
    let overflown =
        rig.points().into_iter().filter(|point| matches!(point, Point::RxEnd { fate: Fate::Overflow, .. })).count();
    assert_eq!(arrived + overflown as u64, count as u64, "each frame is through or counted");
    let mpps = arrived as f64 * 1e6 / (end - begin) as f64;
    assert!((124.0..=125.1).contains(&mpps), "{mpps} Mpps of the bus's 125.0");
}

#[test]
fn an_ungated_wire_overflows_and_says_so() {
    let mut rig = Rig::one_port(RtlConfig::default());
    rig.shell.pins.gate_wire(false);
    rig.qdma.closed = true;
    let sent = frames([1514; 60]);
    rig.send(P0, &sent);
    for _ in 0..20_000 {
        rig.edge().expect("runs");
    }
    rig.qdma.closed = false;
    rig.drain();
    let ends: Vec<Fate> = rig
        .points()
        .into_iter()
        .filter_map(|point| if let Point::RxEnd { fate, .. } = point { Some(fate) } else { None })
        .collect();
    assert_eq!(ends.len(), sent.len(), "each frame ends once");
    let lost = ends.iter().filter(|&&fate| fate == Fate::Overflow).count();
    assert!(lost > 0);
    assert_eq!(rig.qdma.frames.len() + lost, sent.len());
    let kept = sent.iter().zip(&ends).filter(|(_, fate)| **fate == Fate::Accepted).map(|(data, _)| data);
    assert!(rig.qdma.frames.iter().map(|frame| &frame.data).eq(kept));
}

#[test]
fn each_fate_has_its_frame() {
    let mut rig = Rig::one_port(RtlConfig::default());
    let good = frames([100]).remove(0);
    for (data, err, fate) in [
        (good.clone(), false, Fate::Accepted),
        (good.clone(), true, Fate::Error),
        (good[..40].to_vec(), false, Fate::Error),
        (frames([1515]).remove(0), false, Fate::Error),
        (good.clone(), false, Fate::Accepted),
    ] {
        rig.shell.pins.wire_in(P0, WireFrame { data, err, time: Time::ZERO });
        rig.drain();
        let end = rig.points().into_iter().find(|point| matches!(point, Point::RxEnd { .. }));
        assert_eq!(end, Some(Point::RxEnd { port: P0, fate }));
    }
    assert_eq!(rig.qdma.frames.len(), 2);
    rig.write(0x8014, 0);
    rig.send(P0, std::slice::from_ref(&good));
    rig.drain();
    assert_eq!(rig.points(), [Point::RxEnd { port: P0, fate: Fate::Disabled }]);
    rig.qdma.h2c.push_back(H2cFrame { data: good, qid: Qid(100), metadata: 100, err: false });
    rig.drain();
    assert_eq!(rig.points(), [Point::H2cDrop]);
}

fn tapped(kind: TapKind) -> (Vec<Vec<u8>>, Notebook) {
    let config = RtlConfig { tap: Some(FrameTap { frame: 2, kind }), ..RtlConfig::default() };
    let mut rig = Rig::one_port(config);
    let sent = frames([100, 101, 102, 103, 104]);
    rig.send(P0, &sent);
    rig.drain();
    let numbers: Vec<u16> = rig.qdma.completions.iter().map(|completion| completion.pkt_id).collect();
    assert_eq!(
        numbers,
        (1..=rig.qdma.frames.len() as u16).collect::<Vec<_>>(),
        "completions number the frames that arrived"
    );
    for (frame, completion) in rig.qdma.frames.iter().zip(&rig.qdma.completions) {
        assert_eq!((frame.qid, frame.data.len()), (completion.qid, usize::from(completion.len_bytes)));
    }
    (sent, rig.qdma)
}

#[test]
fn a_tap_breaks_one_frame_and_no_other() {
    let lengths = |qdma: &Notebook| qdma.frames.iter().map(|frame| frame.data.len()).collect::<Vec<_>>();
    let (sent, qdma) = tapped(TapKind::FlipBit(8 * 62 + 3));
    let mut expected = sent.clone();
    expected[2][62] ^= 1 << 3;
    assert!(qdma.frames.iter().map(|frame| &frame.data).eq(&expected));
    assert_eq!(lengths(&tapped(TapKind::Drop).1), [100, 101, 103, 104]);
    assert_eq!(lengths(&tapped(TapKind::Duplicate).1), [100, 101, 102, 102, 103, 104]);
    let (sent, qdma) = tapped(TapKind::Misroute(Qid(1234)));
    assert_eq!(qdma.frames[2].qid, Qid(1234));
    assert!(qdma.frames.iter().map(|frame| &frame.data).eq(&sent));
}

#[test]
fn taps_are_read_from_text() {
    for (text, kind) in [
        ("flip:7", TapKind::FlipBit(0)),
        ("flip:7:62", TapKind::FlipBit(496)),
        ("flip:7:62:3", TapKind::FlipBit(499)),
        ("drop:7", TapKind::Drop),
        ("dup:7", TapKind::Duplicate),
        ("misroute:7:3", TapKind::Misroute(Qid(3))),
        ("misroute:7", TapKind::MisrouteBeside),
        ("keep:7", TapKind::HoleInKeep),
        ("hold:7", TapKind::Hold),
    ] {
        assert_eq!(text.parse(), Ok(FrameTap { frame: 7, kind }));
    }
    for text in ["", "flip", "flip:x", "flip:1:2:8", "flip:1:2:3:4", "drop:1:2", "misroute:1:70000", "eat:1"] {
        assert!(text.parse::<FrameTap>().is_err(), "{text}");
    }
}

#[test]
fn registers_answer_and_a_missing_window_is_a_bus_error() {
    let mut rig = Rig::one_port(RtlConfig::default());
    assert_eq!(rig.read(0x8024), 0x301);
    let error = rig.access(0x6000, None).expect_err("no window");
    assert!(matches!(error, CardError::Bus { offset: 0x6000, response: "DECERR", .. }), "{error}");
    assert_eq!(rig.read(0x8024), 0x301, "and the bus goes on");
}

#[test]
fn time_can_be_skipped_once_nothing_moves() {
    let mut rig = Rig::one_port(RtlConfig::default());
    for _ in 0..4000 {
        rig.edge().expect("runs");
    }
    assert!(rig.shell.is_quiet());
    let (before, evals) = (rig.shell.pins.now(), rig.shell.pins.evals());
    rig.shell.pins.skip(before + 1_000_000_000);
    assert!(rig.shell.pins.now() > before + 999_000_000 && rig.shell.pins.evals() == evals);
    let sent = every_size();
    rig.send(P0, &sent);
    rig.drain();
    assert!(rig.qdma.frames.iter().map(|frame| &frame.data).eq(&sent));
}

#[test]
fn the_same_seed_is_the_same_run() {
    let run = |seed| {
        let stalls = "random:50".parse().expect("a profile");
        let mut rig = Rig::one_port(RtlConfig { seed, stalls, ..RtlConfig::default() });
        rig.send(P0, &every_size());
        rig.drain();
        (rig.shell.pins.now(), rig.shell.pins.evals())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn two_functions_and_two_ports_keep_apart() {
    let config = RtlConfig { functions: 2, ports: 2, phases_ps: [100, 700, 0, 1234], ..RtlConfig::default() };
    let mut rig = Rig::start(&shell(2, 2), config);
    let sent = every_size();
    let other = frames((60..=300).step_by(3));
    rig.send(P0, &sent);
    rig.send(PortId(1), &other);
    rig.drain();
    let of = |func: u16| rig.qdma.frames.iter().filter(move |frame| frame.qid.0 / 8 == func).map(|frame| &frame.data);
    assert!(of(0).eq(&sent));
    assert!(of(1).eq(&other));
    for (qid, data) in [(9, &other[0]), (0, &sent[3]), (15, &other[5])] {
        rig.qdma.h2c.push_back(H2cFrame { data: data.clone(), qid: Qid(qid), metadata: data.len() as u32, err: false });
    }
    rig.drain();
    assert_eq!(rig.shell.pins.wire_out(P0).map(|frame| frame.data).as_ref(), Some(&sent[3]));
    let second: Vec<Vec<u8>> =
        std::iter::from_fn(|| rig.shell.pins.wire_out(PortId(1))).map(|frame| frame.data).collect();
    assert_eq!(second, [other[0].clone(), other[5].clone()]);
}
