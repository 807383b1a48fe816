//! When queues are polled, on a simulated card: moderation that changes while they run, and interrupts that stay off while
//! frames keep coming.

use driver_core::{Deferral, Moderation, TriggerMode};
use models::observation::Observation;
use models::time::Time;
use regs::{FuncId, PortId};
use testbench::card::{Choice, Shape, WireFrame};
use testbench::frames::udp;
use testbench::run::{InFrame, Run, Setup, Sink};
use testbench::shape::Pace;

/// When frames were fetched.
#[derive(Default)]
struct Times(Vec<Time>);

impl Sink for Times {
    fn delivered(&mut self, _: FuncId, _: u16, time: Time, _: &mut dyn Iterator<Item = &[u8]>) {
        self.0.push(time);
    }

    fn sent(&mut self, _: PortId, frame: WireFrame) -> Option<Vec<u8>> {
        Some(frame.data)
    }

    fn observed(&mut self, _: Observation) {}
}

fn start(deferral: Deferral, pace: Pace) -> Run {
    let shape = Shape { queues: 1, ..Shape::default() };
    let setup = Setup { shape: shape.clone(), deferral, pace, ..Setup::default() };
    Run::start(Choice::named("model").make(&shape).expect("a card"), &setup).expect("bring-up")
}

fn frames(count: u64) -> Vec<InFrame> {
    let frame = |number| {
        let data = udp(0, number, 18).expect("a frame");
        InFrame { port: PortId(0), index: number, time_ns: None, data, err: false }
    };
    (0..count).map(frame).collect()
}

/// From the first frame's start to its fetch, ns.
fn latency_ns(run: &mut Run) -> u64 {
    let begin = run.bench().now();
    let mut times = Times::default();
    run.replay(&mut frames(1).iter(), &mut [].iter(), &mut times).expect("a replay");
    (times.0[0].0 - begin.0) / 1_000
}

/// Timer 0 is 1 us, timer 15 is 20 us.
#[test]
fn a_new_timer_counts_from_the_next_frame_on() {
    let mut run = start(Deferral::default(), Pace::Fast);
    // Once around, so that the clocks stand alike at each measurement.
    latency_ns(&mut run);
    let quick = latency_ns(&mut run);
    let slow = Moderation { interrupt: true, mode: TriggerMode::UserTimer, timer_index: 15, counter_index: 0 };
    run.drivers()[0].set_moderation(Some(0), slow).expect("a moderation that works");
    let late = latency_ns(&mut run);
    assert!((18_500..19_500).contains(&(late - quick)), "{quick} ns, then {late} ns");
    let each = Moderation { mode: TriggerMode::Every, ..slow };
    run.drivers()[0].set_moderation(None, each).expect("a moderation that works");
    let at_once = latency_ns(&mut run);
    assert!((700..1_300).contains(&(quick - at_once)), "{quick} ns, then {at_once} ns");
    run.finish().expect("a clean end");
}

/// B-44: all frames come, by far fewer interrupts.
#[test]
fn deferred_interrupts_cost_no_frame() {
    let polls = |deferral| {
        // Frames of 60 bytes come 0.7 us apart, so that a poll finds one or two and completes.
        let mut run = start(deferral, Pace::Rate { mbps: 1_000 });
        let mut times = Times::default();
        run.replay(&mut frames(20_000).iter(), &mut [].iter(), &mut times).expect("a replay");
        assert_eq!(times.0.len(), 20_000);
        let counters = run.drivers()[0].pair(0).expect("queue 0").napi.counters();
        run.finish().expect("a clean end");
        counters
    };
    let plain = polls(Deferral::default());
    assert_eq!(plain.deferred, 0);
    let deferred = polls(Deferral { polls: 2, timeout_ns: 1_500 });
    assert!(deferred.deferred > 10, "{deferred:?}");
    assert!(4 * deferred.completed < plain.completed, "{deferred:?} against {plain:?}");
}
