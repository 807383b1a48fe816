//! Clocks, streams and registers, on the test top.

mod probe;

use probe::{LITE, Probe, STREAM};
use proptest::prelude::*;
use rtl_bridge::axil::{Master, Response};
use rtl_bridge::axis::{Monitor, Sink, Source, Taken};
use rtl_bridge::clock::{Clocks, Timing};
use rtl_bridge::stall::{Profile, Stall};
use rtl_bridge::verilated::{Input, Options, Output, Simulation, WideOutput};

/// Frames through the probe's stream register and out again, with a monitor on each side. Returns what came out, and how
/// many stream_clk cycles it took.
fn pass(frames: &[Vec<u8>], input: Profile, output: Profile, seed: u64) -> (Vec<Vec<u8>>, u64) {
    let mut probe = Probe::start(&Options { seed: seed as u32, ..Options::default() });
    let simulation = &mut probe.simulation;
    let mut source = Source::bind(simulation, "s_axis_", 0, 1, Stall::new(input, seed, "in")).expect("ports");
    let mut sink = Sink::bind(simulation, "m_axis_", 0, 1, Stall::new(output, seed, "out")).expect("ports");
    let mut monitor = Monitor::bind(simulation, "s_axis_", 0, 1).expect("ports");
    let (mut todo, mut out, mut seen, mut cycles) = (frames.iter().cloned(), Vec::new(), 0, 0);
    while out.len() < frames.len() {
        let edge = probe.clocks.begin(simulation).expect("runs");
        if edge.has(STREAM) {
            cycles += 1;
            assert!(cycles < 100_000, "{} of {} frames came out", out.len(), frames.len());
            if source.is_idle()
                && let Some(frame) = todo.next()
            {
                source.load(frame, false);
            }
            source.drive(simulation);
            source.look(simulation);
            sink.drive(simulation, true);
            if monitor.look(simulation).expect("the source keeps the protocol") == Taken::LastBeat {
                assert_eq!(monitor.take_frame(Vec::new()).0, frames[seen]);
                seen += 1;
            }
            if sink.look(simulation).expect("the RTL keeps the protocol") == Taken::LastBeat {
                out.push(sink.take_frame(Vec::new()).0);
            }
        }
        probe.clocks.commit(simulation, edge).expect("runs");
    }
    (out, cycles)
}

fn frames(lengths: &[usize]) -> Vec<Vec<u8>> {
    lengths.iter().enumerate().map(|(n, &len)| (0..len).map(|i| (i * 7 + n * 13) as u8).collect()).collect()
}

fn profile() -> impl Strategy<Value = Profile> {
    prop_oneof![
        Just(Profile::None),
        (1u8..90).prop_map(|percent| Profile::Random { percent }),
        (1u16..20).prop_map(|max_cycles| Profile::Bursts { max_cycles }),
        (2u16..9).prop_map(|n| Profile::EveryNth { n }),
        Just(Profile::BetweenBeats),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn frames_survive_every_stall(lengths in prop::collection::vec(1usize..400, 1..20), input in profile(), output in profile(), seed: u64) {
        let frames = frames(&lengths);
        prop_assert_eq!(pass(&frames, input, output, seed).0, frames);
    }
}

#[test]
fn without_stalls_each_cycle_carries_a_beat() {
    let frames = frames(&[64; 500]);
    let (out, cycles) = pass(&frames, Profile::None, Profile::None, 1);
    assert_eq!(out, frames);
    assert!(cycles < 510, "500 beats took {cycles} cycles");
}

#[test]
fn a_stall_between_the_beats_of_a_frame_shows_as_cycles() {
    let frames = frames(&[128; 100]);
    let (_, cycles) = pass(&frames, Profile::BetweenBeats, Profile::None, 1);
    assert!((300..=700).contains(&cycles), "1 to 4 cycles before each second beat, got {cycles}");
}

#[test]
fn a_monitor_sees_a_beat_that_changes_while_held() {
    let mut probe = Probe::start(&Options::default());
    let simulation = &mut probe.simulation;
    let mut monitor = Monitor::bind(simulation, "s_axis_", 0, 1).expect("ports");
    let (valid, keep) =
        (simulation.input("s_axis_tvalid").expect("a port"), simulation.input("s_axis_tkeep").expect("a port"));
    let last = simulation.input("s_axis_tlast").expect("a port");
    let data = simulation.wide_input("s_axis_tdata", 0, 1).expect("a port");
    // Fill the register, with nobody taking: tready falls after two beats.
    simulation.set(valid, true);
    simulation.set(last, false);
    simulation.set(keep, u64::MAX);
    simulation.set_bytes(&data, &[1; 64]);
    probe.run(12).expect("runs");
    let simulation = &mut probe.simulation;
    assert_eq!(monitor.look(simulation), Ok(Taken::Nothing));
    simulation.set_bytes(&data, &[2]);
    assert_eq!(monitor.look(simulation).expect_err("byte 0 changed").rule, "tdata changed while the beat was held");
    simulation.set_bytes(&data, &[1]);
    assert_eq!(monitor.look(simulation), Ok(Taken::Nothing));
    simulation.set(last, true);
    assert_eq!(monitor.look(simulation).expect_err("tlast changed").rule, "tlast changed while the beat was held");
    simulation.set(valid, false);
    let error = monitor.look(simulation).expect_err("tvalid fell");
    assert_eq!(error.to_string(), "s_axis: tvalid fell before the beat was taken");
}

#[test]
fn a_monitor_knows_a_bad_tkeep() {
    for (keep, last, rule) in [
        (0b101, true, Some("tkeep is no run of low ones")),
        (0b110, true, Some("tkeep is no run of low ones")),
        (0b111, false, Some("a beat before the last one is not full")),
        (0b111, true, None),
    ] {
        let mut probe = Probe::start(&Options::default());
        let simulation = &mut probe.simulation;
        let mut monitor = Monitor::bind(simulation, "s_axis_", 0, 1).expect("ports");
        probe.drive("s_axis_tvalid", true);
        probe.drive::<u64>("s_axis_tkeep", keep);
        probe.drive("s_axis_tlast", last);
        assert!(probe.read::<bool>("s_axis_tready"));
        assert_eq!(monitor.look(&probe.simulation).err().map(|error| error.rule), rule, "{keep:#b}");
    }
}

/// A stream that the test makes up, with a beat of it on hold before a sink that does not take it.
struct Held {
    probe: Probe,
    sink: Sink,
}

impl Held {
    fn new(prefix: &str) -> Held {
        let mut probe = Probe::start(&Options::default());
        let simulation = &mut probe.simulation;
        let sink = Sink::bind(simulation, prefix, 0, 1, Stall::none()).expect("ports");
        let mut held = Held { probe, sink };
        held.restore(prefix);
        held.sink.drive(&mut held.probe.simulation, false);
        assert_eq!(held.sink.look(&held.probe.simulation), Ok(Taken::Nothing));
        assert!(held.sink.holds());
        held
    }

    /// The pins as they were when the beat was offered: 5 bytes, a frame's last.
    fn restore(&mut self, prefix: &str) {
        self.data(prefix, 0);
        let pin = |signal: &str| format!("{prefix}{signal}");
        self.probe.drive(&pin("tvalid"), true);
        self.probe.drive(&pin("tlast"), true);
        if prefix == "keep_axis_" {
            self.probe.drive::<u64>(&pin("tkeep"), 0b1_1111);
        } else {
            self.probe.drive::<u8>(&pin("tuser_mty"), 64 - 5);
            self.probe.drive(&pin("tuser_err"), false);
        }
    }

    /// Data of which bit 0 of the last byte, which no frame has, is as told.
    fn data(&mut self, prefix: &str, last_byte: u8) {
        let data = self.probe.simulation.wide_input(&format!("{prefix}tdata"), 0, 1).expect("a port");
        let mut bytes = [7; 64];
        bytes[63] = last_byte;
        self.probe.simulation.set_bytes(&data, &bytes);
    }

    /// What one more edge on hold is found to be.
    fn rule(&mut self) -> Option<&'static str> {
        let waited = self.sink.hold_on(&self.probe.simulation);
        waited.and(self.sink.look(&self.probe.simulation)).err().map(|error| error.rule)
    }
}

#[test]
fn a_sink_on_hold_sees_a_beat_that_changes() {
    type Change = fn(&mut Held);
    let changes: [(&str, Change, &str); 8] = [
        ("keep_axis_", |h| h.data("keep_axis_", 1), "tdata changed while the beat was held"),
        (
            "keep_axis_",
            |h| h.probe.drive::<u64>("keep_axis_tkeep", 0b1111),
            "tkeep or mty changed while the beat was held",
        ),
        ("keep_axis_", |h| h.probe.drive("keep_axis_tlast", false), "tlast changed while the beat was held"),
        ("keep_axis_", |h| h.probe.drive("keep_axis_tvalid", false), "tvalid fell before the beat was taken"),
        (
            "mty_axis_",
            |h| h.probe.drive::<u8>("mty_axis_tuser_mty", 58),
            "tkeep or mty changed while the beat was held",
        ),
        ("mty_axis_", |h| h.probe.drive("mty_axis_tuser_err", true), "tuser_err changed while the beat was held"),
        ("mty_axis_", |h| h.probe.drive("mty_axis_tlast", false), "tlast changed while the beat was held"),
        ("mty_axis_", |h| h.probe.drive("mty_axis_tvalid", false), "tvalid fell before the beat was taken"),
    ];
    for (prefix, change, rule) in changes {
        let mut held = Held::new(prefix);
        assert_eq!((held.rule(), held.rule()), (None, None), "as it was");
        change(&mut held);
        assert_eq!(held.rule(), Some(rule), "{prefix}");
        held.restore(prefix);
        assert_eq!(held.rule(), None, "{prefix} as it was again");
        held.sink.drive(&mut held.probe.simulation, true);
        assert_eq!(held.sink.look(&held.probe.simulation), Ok(Taken::LastBeat));
        assert_eq!(held.sink.take_frame(Vec::new()), (vec![7; 5], false), "{prefix}");
    }
}

/// The pins of one of the probe's streams.
struct Pins {
    flags: [Output<bool>; 3],
    tkeep: Output<u64>,
    tdata: WideOutput,
}

/// What stands on them: `tvalid`, `tready`, `tlast`, `tkeep`, `tdata`.
type Shown = ([bool; 3], u64, Vec<u8>);

impl Pins {
    fn bind(simulation: &Simulation, prefix: &str) -> Pins {
        let flag = |signal| simulation.watch_of(&format!("{prefix}{signal}"), 0, 1).expect("a port");
        Pins {
            flags: [flag("tvalid"), flag("tready"), flag("tlast")],
            tkeep: simulation.watch_of(&format!("{prefix}tkeep"), 0, 1).expect("a port"),
            tdata: simulation.watch_wide(&format!("{prefix}tdata"), 0, 1).expect("a port"),
        }
    }

    fn show(&self, simulation: &Simulation) -> Shown {
        let flags = self.flags.map(|pin| simulation.get(pin));
        (flags, simulation.get(self.tkeep), simulation.bytes(&self.tdata).to_vec())
    }
}

/// One edge: both streams' pins before it, and what it takes at either end.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Beat {
    shown: [Shown; 2],
    taken: [Taken; 2],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Path {
    /// `drive`, then `look`.
    Plain,
    /// `step_mid` and `hold_on` where they do.
    Fast,
}

/// What a way through the probe looked like.
#[derive(Default)]
struct Passage {
    beats: Vec<Beat>,
    frames: Vec<Vec<u8>>,
    two_beat_stalls: [u64; 2],
    /// Edges that `step_mid` did for the source and for the sink, and that `hold_on` did.
    fast: [usize; 3],
}

/// Frames through the probe's register, to a reader that agrees to beat after beat, each after `waits` edges.
fn passage(frames: &[Vec<u8>], waits: &[u8], input: Profile, path: Path) -> Passage {
    let mut probe = Probe::start(&Options::default());
    let simulation = &mut probe.simulation;
    let mut source = Source::bind(simulation, "s_axis_", 0, 1, Stall::new(input, 5, "in")).expect("ports");
    let mut sink = Sink::bind(simulation, "m_axis_", 0, 1, Stall::none()).expect("ports");
    let pins = ["s_axis_", "m_axis_"].map(|prefix| Pins::bind(simulation, prefix));
    let (mut todo, mut waits, mut passage) = (frames.iter().cloned(), waits.iter().cycle(), Passage::default());
    let mut wait: u8 = 0;
    while passage.frames.len() < frames.len() {
        let edge = probe.clocks.begin(simulation).expect("runs");
        if edge.has(STREAM) {
            assert!(passage.beats.len() < 20_000, "{} of {} frames", passage.frames.len(), frames.len());
            if source.is_idle()
                && let Some(frame) = todo.next()
            {
                source.load(frame, false);
            }
            let mid = path == Path::Fast && source.step_mid(simulation);
            passage.fast[0] += usize::from(mid);
            let into = if mid {
                Taken::Beat
            } else {
                source.drive(simulation);
                source.look(simulation)
            };
            let willing = wait == 0;
            wait = wait.saturating_sub(1);
            let mid = path == Path::Fast && willing && sink.step_mid(simulation);
            passage.fast[1] += usize::from(mid);
            let out = if mid {
                Taken::Beat
            } else if path == Path::Fast && sink.holds() && !willing {
                passage.fast[2] += 1;
                sink.hold_on(simulation).expect("the RTL keeps the protocol");
                Taken::Nothing
            } else {
                sink.drive(simulation, willing);
                sink.look(simulation).expect("the RTL keeps the protocol")
            };
            if out == Taken::LastBeat {
                passage.frames.push(sink.take_frame(Vec::new()).0);
            }
            if out != Taken::Nothing {
                wait = waits.next().copied().unwrap_or(0);
            }
            let shown = [pins[0].show(simulation), pins[1].show(simulation)];
            passage.beats.push(Beat { shown, taken: [into, out] });
        }
        probe.clocks.commit(simulation, edge).expect("runs");
    }
    passage.two_beat_stalls = [source.two_beat_stalls(), sink.two_beat_stalls()];
    passage
}

/// The fast paths do what the plain ones do, edge for edge and pin for pin. Returns how often each did something.
fn both_paths(lengths: &[usize], waits: &[u8], input: Profile) -> [usize; 3] {
    let frames = frames(lengths);
    let [plain, fast] = [Path::Plain, Path::Fast].map(|path| passage(&frames, waits, input, path));
    let differs = plain.beats.iter().zip(&fast.beats).position(|(plain, fast)| plain != fast);
    let at = differs.map(|at| (at, &plain.beats[at], &fast.beats[at]));
    assert_eq!(at, None, "edge, plain, fast");
    assert_eq!((plain.beats.len(), plain.two_beat_stalls), (fast.beats.len(), fast.two_beat_stalls));
    assert!(plain.frames == frames && fast.frames == frames, "frames are what they were");
    fast.fast
}

#[test]
fn the_fast_paths_do_what_the_plain_ones_do_at_every_length() {
    let lengths: Vec<usize> = (1..=330).collect();
    let done = both_paths(&lengths, &[0, 0, 0, 3, 0, 1, 1], Profile::None);
    assert!(done.iter().all(|&edges| edges > 200), "source, sink, hold: {done:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_fast_paths_do_what_the_plain_ones_do(
        lengths in prop::collection::vec(1usize..1000, 1..12),
        waits in prop::collection::vec(0u8..6, 1..6),
        input in prop_oneof![Just(Profile::None), profile()],
    ) {
        both_paths(&lengths, &waits, input);
    }
}

#[test]
fn pins_driven_together_are_driven_as_one_by_one() {
    let mut probe = Probe::start(&Options::default());
    let names = ["loop1_i", "s_axis_tvalid", "m_axis_tready", "s_axis_tlast"];
    let pins: Vec<Input<bool>> = names.iter().map(|name| probe.simulation.input(name).expect("a port")).collect();
    let shown = |simulation: &Simulation| {
        let pin = |name: &&str| simulation.get(simulation.watch_of::<bool>(name, 0, 1).expect("a port"));
        names.iter().rev().fold(0, |bits, name| bits << 1 | u32::from(pin(name)))
    };
    for count in 1..=pins.len() {
        let together = probe.simulation.bit_pins(&pins[..count]).expect("a byte each");
        let mask = (1 << count) - 1;
        for bits in 0..32 {
            let others = shown(&probe.simulation) & !mask;
            probe.simulation.set_bits(&together, bits);
            assert_eq!(shown(&probe.simulation), others | bits & mask, "{count} pins");
        }
        // The next round must find ones to leave alone, too.
        pins.iter().for_each(|pin| probe.simulation.set(*pin, count % 2 == 1));
    }
}

#[test]
fn pins_that_cannot_be_driven_together_are_refused() {
    let probe = Probe::start(&Options::default());
    let simulation = &probe.simulation;
    let pin: Input<bool> = simulation.input("loop1_i").expect("a port");
    assert!(simulation.bit_pins(&[pin; 4]).is_some());
    assert!(simulation.bit_pins(&[pin; 5]).is_none(), "five");
    let packed: Input<bool> = simulation.input_of("loop11_i", 3, 11).expect("a port");
    assert!(simulation.bit_pins(&[pin, packed]).is_none(), "a bit among others");
    let other = Probe::start(&Options::default());
    assert!(other.simulation.bit_pins(&[pin]).is_none(), "of another simulation");
}

/// One access, or `None` after 200 edges of lite_clk without an answer.
fn access(probe: &mut Probe, master: &mut Master) -> Option<Response> {
    loop {
        let edge = probe.clocks.begin(&mut probe.simulation).expect("runs");
        let answer = if edge.has(LITE) { master.step(&mut probe.simulation) } else { None };
        probe.clocks.commit(&mut probe.simulation, edge).expect("runs");
        if answer.is_some() || master.waited_cycles() > 200 {
            return answer;
        }
    }
}

#[test]
fn registers_answer_with_data_and_with_errors() {
    for profile in [Profile::None, Profile::Random { percent: 60 }] {
        let mut probe = Probe::start(&Options::default());
        let mut master =
            Master::bind(&probe.simulation, "s_axil_", 0, 1, Stall::new(profile, 3, "axil")).expect("ports");
        for value in [1u32, 0x8000_0000, 0xdead_beef] {
            master.write(&mut probe.simulation, 0, value);
            assert_eq!(access(&mut probe, &mut master), Some(Response::Okay(0)));
            master.read(&mut probe.simulation, 0);
            assert_eq!(access(&mut probe, &mut master), Some(Response::Okay(value)));
        }
        master.read(&mut probe.simulation, 0x40);
        assert_eq!(access(&mut probe, &mut master), Some(Response::DecodeError));
        master.write(&mut probe.simulation, 0x40, 1);
        assert_eq!(access(&mut probe, &mut master), Some(Response::DecodeError));
        assert!(master.is_idle());
    }
}

#[test]
fn a_register_that_never_answers_is_seen_by_its_cycles() {
    let mut probe = Probe::start(&Options::default());
    let mut master = Master::bind(&probe.simulation, "s_axil_", 0, 1, Stall::none()).expect("ports");
    master.read(&mut probe.simulation, 8);
    assert_eq!(access(&mut probe, &mut master), None);
    assert!(!master.is_idle());
    master.reset(&mut probe.simulation);
    assert!(master.is_idle());
}

#[test]
fn edges_come_in_order_and_stay_exact() {
    let mut simulation = probe::library().start(&Options::default()).expect("starts");
    let pins = ["stream_clk", "lite_clk"].map(|name| simulation.input::<bool>(name).expect("a port"));
    let timings = [Timing { num: 4000, den: 1, phase_ps: 0 }, Timing { num: 102_400, den: 33, phase_ps: 0 }];
    let mut clocks = Clocks::new();
    for (pin, timing) in pins.into_iter().zip(timings) {
        clocks.add(&mut simulation, pin, timing);
    }
    let (mut counts, mut last, mut together) = ([0u64; 2], 0, 0);
    // 33 cycles of the one and 25.6 of the other coincide: every 512 ns, exactly.
    while last < 512_000 * 20 {
        let edge = clocks.begin(&mut simulation).expect("runs");
        for clock in 0..2 {
            if edge.has(clock) {
                assert_eq!(edge.time_ps, counts[clock] * timings[clock].num / timings[clock].den);
                counts[clock] += 1;
            }
        }
        together += u64::from(edge.rising == 3);
        clocks.commit(&mut simulation, edge).expect("runs");
        last = edge.time_ps;
    }
    assert_eq!((counts, together), ([2561, 3301], 21));
    let edges = counts[0] + counts[1] - together;
    assert!(clocks.evals() < edges + edges / 4, "{} evaluations for {edges} edges", clocks.evals());
}

#[test]
fn settling_shows_what_an_input_does_within_the_cycle() {
    let mut probe = Probe::start(&Options::default());
    probe.drive("loop32_i", 0x0f0f_0f0fu32);
    let edge = probe.clocks.begin(&mut probe.simulation).expect("runs");
    probe.clocks.settle(&mut probe.simulation).expect("runs");
    assert_eq!(probe.read::<u32>("inverted_o"), 0xf0f0_f0f0);
    probe.clocks.commit(&mut probe.simulation, edge).expect("runs");
}

#[test]
fn skipped_time_keeps_every_phase() {
    let mut probe = Probe::start(&Options::default());
    let before = probe.clocks.peek();
    assert!(!probe.clocks.skip(4000), "no whole number of 102400/33 ps");
    assert_eq!(probe.clocks.peek(), before);
    assert!(probe.clocks.skip(512_000 * 3));
    assert_eq!(probe.clocks.peek().time_ps, before.time_ps + 512_000 * 3);
    assert_eq!(probe.clocks.peek().rising, before.rising);
    probe.run(10).expect("goes on");
}
