//! Worker mode delivers what the single-threaded run delivers: queue by queue, the same frames in the same order.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread::{self, ThreadId};
use std::time::Duration;

use models::host_memory::HostMemory;
use models::time::Time;
use regs::{Bar, FuncId, PortId};
use testbench::card::layer::{Layer, Layered};
use testbench::card::{Card, CardError, Choice, Observation, Shape, WireFrame};
use testbench::frames;
use testbench::run::{HostFrame, InFrame, Run, RunError, Setup, Sink, Tally};
use testbench::shape::Pace;

type Lanes<K> = BTreeMap<K, Vec<Vec<u8>>>;

/// Frames by the queue that they came in on, and by the port that they left at.
#[derive(Default)]
struct Seen {
    delivered: Lanes<(FuncId, u16)>,
    /// Frames of one source queue keep their order; those of several meet in the card as they come.
    sent: Lanes<(PortId, Vec<u8>)>,
}

/// Where a host frame says which queue it is of.
const ORIGIN: std::ops::Range<usize> = 6..12;

impl Sink for Seen {
    fn delivered(&mut self, func: FuncId, queue: u16, _: Time, segments: &mut dyn Iterator<Item = &[u8]>) {
        self.delivered.entry((func, queue)).or_default().push(segments.flatten().copied().collect());
    }

    fn sent(&mut self, port: PortId, frame: WireFrame) -> Option<Vec<u8>> {
        self.sent.entry((port, frame.data[ORIGIN].to_vec())).or_default().push(frame.data);
        None
    }

    fn observed(&mut self, _: Observation) {}
}

/// Frames of all lengths, those of several buffers among them, over many flows.
fn wire(ports: u8, count: u64, longest: usize) -> Vec<InFrame> {
    let frame = |number: u64| {
        let payload = 18 + (number as usize * 977) % (longest - 60);
        let data = frames::udp((number % 97) as u16, number, payload).expect("a frame");
        InFrame { port: PortId((number % u64::from(ports)) as u8), index: number, time_ns: None, data, err: false }
    };
    (0..count).map(frame).collect()
}

fn host(functions: u8, queues: u16, count: u64) -> Vec<HostFrame> {
    let frame = |number: u64| {
        let (func, queue) = (FuncId((number % u64::from(functions)) as u8), (number / 3 % u64::from(queues)) as u16);
        let mut data = frames::udp(queue, number, 18 + number as usize % 900).expect("a frame");
        data[ORIGIN].copy_from_slice(&[2, 0, 0, func.0, 0, queue as u8]);
        HostFrame { func, queue, data }
    };
    (0..count).map(frame).collect()
}

fn shape(width: u8, queues: u16, ring: u16) -> Shape {
    Shape { functions: width, ports: width, queues, ring, max_pkt_len: 9600, mtu: 9582, ..Shape::default() }
}

#[derive(Clone, Copy)]
enum Mode {
    OneThread,
    Workers,
}

fn replay(run: &mut Run, mode: Mode, wire: &[InFrame], host: &[HostFrame], seen: &mut Seen) {
    let (wire, host) = (&mut wire.iter(), &mut host.iter());
    match mode {
        Mode::OneThread => run.replay(wire, host, seen),
        Mode::Workers => run.replay_with_workers(wire, host, seen),
    }
    .expect("a replay");
}

fn run(shape: &Shape, wire: &[InFrame], host: &[HostFrame], mode: Mode) -> (Seen, Tally) {
    let setup = Setup { shape: shape.clone(), ..Setup::default() };
    let mut run = Run::start(Choice::named("model").make(shape).expect("a card"), &setup).expect("bring-up");
    let mut seen = Seen::default();
    replay(&mut run, mode, wire, host, &mut seen);
    let (tally, bench) = run.finish().expect("a clean end");
    let memory = bench.memory();
    assert_eq!(
        memory.violations().into_iter().chain(memory.leaks()).map(|v| v.to_string()).collect::<Vec<_>>(),
        [""; 0]
    );
    (seen, tally)
}

/// The first difference, if there is one.
fn same<K: Ord + std::fmt::Debug>(what: &str, got: &Lanes<K>, expected: &Lanes<K>) {
    assert_eq!(got.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{what}");
    for (lane, frames) in expected {
        let others = &got[lane];
        let first = frames.iter().zip(others).position(|(one, other)| one != other);
        assert_eq!((others.len(), first), (frames.len(), None), "{what} {lane:?}: frames, first that differs");
    }
}

fn check(width: u8, queues: u16, ring: u16, frames: u64) {
    let shape = shape(width, queues, ring);
    let (wire, host) = (wire(width, frames, 9000), host(width, queues, frames));
    let (alone, one) = run(&shape, &wire, &host, Mode::OneThread);
    let (together, many) = run(&shape, &wire, &host, Mode::Workers);
    assert_eq!(alone.delivered.values().map(Vec::len).sum::<usize>(), wire.len());
    assert_eq!(alone.sent.values().map(Vec::len).sum::<usize>(), host.len());
    same("delivered", &together.delivered, &alone.delivered);
    same("sent", &together.sent, &alone.sent);
    let counts = |tally: &Tally| (tally.wire_in, tally.host_in, tally.host_out, tally.wire_out);
    assert_eq!(counts(&one), counts(&many));
    assert_eq!(many.queue_errors, [""; 0]);
}

#[test]
fn one_queue() {
    check(1, 1, 64, 3_000);
}

#[test]
fn eight_queues_on_one_function() {
    check(1, 8, 128, 6_000);
}

#[test]
fn two_functions_and_small_rings() {
    check(2, 3, 16, 3_000);
}

/// One replay in threads, one without, and again: queues come back from either as they were.
#[test]
fn the_modes_may_take_turns() {
    let shape = shape(1, 4, 64);
    let setup = Setup { shape: shape.clone(), ..Setup::default() };
    let mut run = Run::start(Choice::named("model").make(&shape).expect("a card"), &setup).expect("bring-up");
    let wire = wire(1, 1_000, 1500);
    for _ in 0..3 {
        for mode in [Mode::OneThread, Mode::Workers] {
            let mut seen = Seen::default();
            replay(&mut run, mode, &wire, &[], &mut seen);
            assert_eq!(seen.delivered.values().map(Vec::len).sum::<usize>(), wire.len());
        }
    }
    // Each worker has counted its own, and the single thread too.
    let workers: Vec<u64> = run.drivers()[0].worker_statistics().iter().map(|worker| worker.rx_packets).collect();
    assert_eq!(workers.iter().sum::<u64>(), 6_000);
    assert_eq!((workers.len(), workers[0]), (5, 3_000));
    run.finish().expect("a clean end");
}

#[test]
fn a_pace_needs_simulated_time() {
    let setup = Setup { pace: Pace::Line, ..Setup::default() };
    let mut run = Run::start(Choice::named("model").make(&setup.shape).expect("a card"), &setup).expect("bring-up");
    let refused = run.replay_with_workers(&mut [].iter(), &mut [].iter(), &mut Seen::default());
    assert!(matches!(refused, Err(RunError::WorkerPace)));
}

/// Panics when a thread other than its maker's writes a register of the queues: in a worker, with the card's lock held.
struct Trap {
    maker: ThreadId,
}

impl Layer for Trap {
    fn mmio_write(
        &mut self,
        card: &mut dyn Card,
        func: FuncId,
        bar: Bar,
        offset: u32,
        value: u32,
        memory: &mut dyn HostMemory,
    ) -> Result<(), CardError> {
        assert!(thread::current().id() == self.maker, "the trap has shut");
        card.mmio_write(func, bar, offset, value, memory)
    }
}

/// A sink that has had enough.
struct Fed;

impl Sink for Fed {
    fn delivered(&mut self, _: FuncId, _: u16, _: Time, _: &mut dyn Iterator<Item = &[u8]>) {
        panic!("enough");
    }

    fn sent(&mut self, _: PortId, _: WireFrame) -> Option<Vec<u8>> {
        panic!("enough");
    }

    fn observed(&mut self, _: Observation) {}
}

/// What a replay with workers panics with. One that hangs is left to itself, and the test fails.
fn panic_of(trapped: bool, mut sink: impl Sink + Send + 'static, wire_frames: u64, host_frames: u64) -> String {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let shape = shape(1, 4, 64);
        let mut card = Choice::named("model").make(&shape).expect("a card");
        if trapped {
            card = Box::new(Layered::new(card, Trap { maker: thread::current().id() }));
        }
        let mut run = Run::start(card, &Setup { shape, ..Setup::default() }).expect("bring-up");
        let (wire, host) = (wire(1, wire_frames, 1500), host(1, 4, host_frames));
        let replay = || run.replay_with_workers(&mut wire.iter(), &mut host.iter(), &mut sink);
        let panic = catch_unwind(AssertUnwindSafe(replay)).err();
        let words = panic.as_ref().and_then(|panic| panic.downcast_ref::<&str>()).map(|words| (*words).to_string());
        // The receiver may have given up.
        let _ = tell.send(words);
    });
    let words = told.recv_timeout(Duration::from_secs(60)).expect("an end of the replay");
    words.expect("a panic with a message")
}

#[test]
fn a_panic_in_a_worker_ends_the_run() {
    for (wire, host) in [(1_000, 0), (0, 1_000), (1_000, 1_000)] {
        assert_eq!(panic_of(true, Seen::default(), wire, host), "the trap has shut", "{wire} and {host} frames");
    }
}

#[test]
fn a_panic_of_the_sink_ends_the_run() {
    assert_eq!(panic_of(false, Fed, 1_000, 1_000), "enough");
}
