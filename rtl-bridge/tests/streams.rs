//! Clocks, streams and registers, on the test top.

mod probe;

use probe::{LITE, Probe, STREAM};
use proptest::prelude::*;
use rtl_bridge::axil::{Master, Response};
use rtl_bridge::axis::{Monitor, Sink, Source, Taken};
use rtl_bridge::clock::{Clocks, Timing};
use rtl_bridge::stall::{Profile, Stall};
use rtl_bridge::verilated::Options;

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
