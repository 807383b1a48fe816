//! The driver's device management on a card: errors that are served for good, up and down under load, functions that don't
//! disturb each other. On the model, which runs fast enough for hundreds of starts.

use std::sync::Arc;

use driver_core::ethtool::RingsChange;
use driver_core::{
    DeviceConfig, Driver, Interrupts, IpVersion, Mmio, Platform, QueueState, Side, TableEntry, Timeouts, Vector,
};
use models::qdma::QdmaConfig;
use models::shell::Profile;
use models::time::Time;
use regs::{Bar, FuncId, PortId, doorbell};
use testbench::bench::{Bench, FunctionPlatform};
use testbench::card::{Choice, Shape, WireFrame};
use testbench::{counters, frames};

type CardDriver = Driver<FunctionPlatform>;

/// A machine with a model card, checks on.
fn bench(shape: &Shape, qdma: QdmaConfig) -> Arc<Bench> {
    bench_of(Choice::named("model"), shape, qdma)
}

fn bench_of(choice: Choice, shape: &Shape, qdma: QdmaConfig) -> Arc<Bench> {
    let card = choice.make_with(shape, qdma).expect("a model card");
    let bench = Bench::new(card, shape.functions, true, 1_000_000);
    bench.reset().expect("a reset");
    bench
}

fn settings(func: u8, shape: &Shape, ip_version: IpVersion) -> DeviceConfig {
    DeviceConfig {
        ip_version,
        queues: shape.queues,
        tx_ring: TableEntry::Value(shape.ring),
        rx_ring: TableEntry::Value(shape.ring),
        ports: (0..shape.ports).map(PortId).collect(),
        own_port: Some(PortId(func)).filter(|port| port.0 < shape.ports),
        timeouts: Timeouts { quiesce_ns: 100_000, ..Timeouts::default() },
        ..DeviceConfig::new(FuncId(func))
    }
}

fn driver(bench: &Arc<Bench>, func: u8, shape: &Shape, ip_version: IpVersion) -> CardDriver {
    let platform = Arc::new(bench.function(FuncId(func)));
    let mut driver = Driver::bring_up(platform, settings(func, shape, ip_version)).expect("bring-up");
    driver.up().expect("up");
    driver
}

/// Let time pass, whatever happens meanwhile.
fn pass(bench: &Bench, ns: u64) {
    let until = bench.now().saturating_add(Time::from_ns(ns).0);
    while bench.now() < until {
        bench.advance(until).expect("the card goes on");
    }
}

fn frame(flow: u16, number: u64) -> Vec<u8> {
    frames::udp(flow, number, 100).expect("a short frame")
}

fn wire_in(bench: &Bench, port: u8, flow: u16, number: u64) {
    bench.wire_in(PortId(port), WireFrame { data: frame(flow, number), err: false, time: bench.now() });
}

/// Poll every queue until nothing comes; how many frames that were.
fn poll_all(driver: &mut CardDriver) -> u64 {
    let mut frames = 0;
    for pair in driver.queues() {
        while pair.rx.poll(64, |_| frames += 1).expect("a queue without faults") == 64 {}
        pair.tx.reap().expect("a queue without faults");
    }
    frames
}

fn post(driver: &mut CardDriver, queue: u16, number: u64) {
    let tx = driver.tx(queue).expect("a queue");
    tx.post(&frame(queue, number)).expect("room in the ring");
    tx.flush().expect("a doorbell");
}

fn sent(bench: &Bench, port: u8) -> u64 {
    std::iter::from_fn(|| bench.wire_out(PortId(port))).count() as u64
}

/// No rule of the host memory was broken; with `all_gone`, nothing is mapped or allocated either.
fn assert_memory(bench: &Bench, all_gone: bool) {
    let violations = bench.memory().violations();
    assert!(violations.is_empty(), "{}", violations[0]);
    if all_gone {
        let leaks = bench.memory().leaks();
        assert!(leaks.is_empty(), "{}", leaks[0]);
        assert_eq!(bench.memory().counts().pages_out, 0);
    }
}

/// B-39: an error is named, cleared, counted, and the next one interrupts again; in both dialects of the error registers.
#[test]
fn every_error_interrupts_not_only_the_first() {
    let dialects = [
        (models::qdma::IpVersion::Q31, IpVersion::Q31),
        (models::qdma::IpVersion::Q40, IpVersion::Q40),
        (models::qdma::IpVersion::Q50, IpVersion::Q50),
    ];
    for (ip, ip_version) in dialects {
        let shape = Shape::default();
        let bench = bench(&shape, QdmaConfig { ip, ..testbench::card::qdma_config(&shape) });
        let mut driver = driver(&bench, 0, &shape, ip_version);
        let vector = driver.error_vector().expect("function 0 serves errors");
        for round in 1..=3 {
            // A queue that the function doesn't have.
            let stray = doorbell::offset(doorbell::H2C_PIDX, 100).expect("a doorbell");
            driver.platform().mmio().write32(Bar::Qdma, stray, 1).expect("posted");
            pass(&bench, 2_000);
            assert_eq!(raised(&driver), [vector], "{ip_version:?}, error {round}");
            let errors = driver.service_errors().expect("registers answer").expect("function 0");
            let named: Vec<_> = errors.named().map(|(leaf, _, name)| (leaf, name)).collect();
            assert_eq!(named, [("target", Some("queue out of range"))], "{ip_version:?}: {errors}");
        }
        assert!(driver.service_errors().expect("registers answer").expect("function 0").is_empty());
        let statistics = driver.statistics().expect("registers answer");
        assert_eq!(statistics.get("card_error_target"), Some(3));

        // A doorbell that lies breaks its queue and no other.
        let lie = doorbell::offset(doorbell::COMPLETION_CIDX, 2).expect("a doorbell");
        let value = doorbell::CompletionCidx { cidx: 77, en_stat_desc: true, ..Default::default() }.to_word();
        driver.platform().mmio().write32(Bar::Qdma, lie, value).expect("posted");
        pass(&bench, 5_000);
        assert!(raised(&driver).contains(&vector), "{ip_version:?}");
        let errors = driver.service_errors().expect("registers answer").expect("function 0");
        assert!(errors.to_string().starts_with("C2H: invalid CIDX (bit 14)"), "{ip_version:?}: {errors}");
        assert_eq!(errors.first_queue, Some(regs::Qid(2)), "{ip_version:?}");
        let faults = driver.queues().iter_mut().filter_map(|pair| pair.rx.poll(64, |_| {}).err()).count();
        assert_eq!(faults, 1, "{ip_version:?}");
        let recovered = driver.recover();
        assert_eq!(recovered.len(), 1);
        assert_eq!((recovered[0].rel_qid, recovered[0].side, &recovered[0].result), (2, Side::Rx, &Ok(())));
        (0..1000).for_each(|n| wire_in(&bench, 0, n as u16, n));
        let mut came = 0;
        for _ in 0..200 {
            pass(&bench, 1_000);
            came += poll_all(&mut driver);
        }
        assert_eq!(came, 1000, "{ip_version:?}: loss ends when its cause ends");
        assert!(driver.queues().iter().all(|pair| pair.rx.state() == QueueState::Running));
        driver.remove().expect("removal");
        assert_memory(&bench, true);
    }
}

fn raised(driver: &CardDriver) -> Vec<Vector> {
    std::iter::from_fn(|| driver.platform().interrupts().take()).collect()
}

/// A hundred times down and up under load, with another number of queues, ring size and MTU each time, while the card writes
/// to memory as late as it may: no page out, no mapping left, no frame unaccounted for.
#[test]
fn a_hundred_times_down_and_up_under_load() {
    let shape = Shape { queues: 4, ring: 64, ..Shape::default() };
    let late = QdmaConfig { late_dma_after_inv_ns: 5_000, ..testbench::card::qdma_config(&shape) };
    let bench = bench(&shape, late);
    let mut driver = driver(&bench, 0, &shape, IpVersion::Q40);
    let (mut wire, mut host, mut up_to_host, mut out) = (0, 0, 0, 0);
    for round in 0..100u64 {
        for n in 0..40 {
            wire_in(&bench, 0, n as u16, wire);
            wire += 1;
        }
        for n in 0..20 {
            let queue = (n % u64::from(driver.config().queues)) as u16;
            post(&mut driver, queue, host);
            host += 1;
        }
        // Some are through, some under way, some not yet begun.
        pass(&bench, 300 + 37 * (round % 40));
        if round % 3 == 0 {
            up_to_host += poll_all(&mut driver);
        }
        match round % 4 {
            0 => driver.restart().expect("down and up"),
            1 => driver.set_channels(1 + (round % 8) as u16).expect("another number of queues"),
            2 => driver.set_rings(RingsChange { rx: Some(64 + 64 * (round as u16 % 3)), tx: None }).expect("a size"),
            _ => {
                driver.down().expect("down");
                assert_memory(&bench, true);
                driver.set_mtu(1000 + round as u16).expect("an MTU");
                driver.up().expect("up");
            }
        }
        out += sent(&bench, 0);
    }
    for _ in 0..20 {
        pass(&bench, 1_000);
        up_to_host += poll_all(&mut driver);
        out += sent(&bench, 0);
    }
    let link = driver.link_statistics().expect("registers answer");
    driver.down().expect("down");
    let (rx, tx) = (driver.rx_totals(), driver.tx_totals());
    assert_eq!((rx.frames, link.rx_packets()), (up_to_host, up_to_host));
    assert_eq!((tx.posted, tx.completed + tx.abandoned), (host, host));

    let platform = bench.function(FuncId(0));
    let sum = counters::read(platform.mmio(), &shape).expect("registers answer").expect("our shell counts");
    assert_eq!((sum.wire_in, sum.missing(), sum.inside), (wire, 0, 0), "{sum}");
    assert_eq!(sum.host_out, rx.frames + rx.dropped_stopping, "what the card delivered, the driver counted: {sum}");
    assert_eq!(sum.host_in, tx.completed, "what the card took, the driver counted: {sum}");
    assert_eq!(sum.wire_out, out);
    assert!(rx.dropped_stopping > 0 && sum.drops.contains_key("port0.disabled"), "the load was no load: {sum}");
    // The MAC's counts, over all these TICKs and downs.
    let rows = driver.statistics().expect("registers answer");
    assert_eq!(rows.get("stat_tx_total_pkts"), Some(out));
    assert_eq!(rows.get("stat_rx_total_pkts").unwrap() + sum.drops["port0.disabled"], wire);
    driver.remove().expect("removal");
    assert_memory(&bench, true);
}

/// B-38: function 1 is unbound while both are under load. Function 0 loses nothing, and function 1 can come back, at another
/// base.
#[test]
fn unbinding_one_function_under_load_does_not_wedge_the_other() {
    // Upstream's shell blocks all functions for ever on one frame of a queue that no function has; ours drops and counts it.
    for profile in [Profile::Upstream, Profile::Corrected] {
        unbind_under_load(profile);
    }
}

fn unbind_under_load(profile: Profile) {
    let shape = Shape { functions: 2, ports: 2, queues: 4, ring: 64, ..Shape::default() };
    let choice = Choice { profile, ..Choice::named("model") };
    let bench = bench_of(choice, &shape, testbench::card::qdma_config(&shape));
    let mut first = driver(&bench, 0, &shape, IpVersion::Q40);
    let (mut came, mut sent_0, mut number) = (0, 0, 0);
    for round in 0..20u16 {
        let platform = Arc::new(bench.function(FuncId(1)));
        let base = [None, Some(200)][usize::from(round % 2)];
        let second = DeviceConfig { queue_base: base, ..settings(1, &shape, IpVersion::Q40) };
        let mut second = CardDriver::bring_up(platform, second).expect("bring-up");
        second.up().expect("up");
        for n in 0..30 {
            wire_in(&bench, 0, n, number);
            wire_in(&bench, 1, n, number);
            post(&mut first, n % 4, number);
            post(&mut second, n % 4, number);
            number += 1;
        }
        pass(&bench, 50 * u64::from(round));
        second.remove().expect("removal");
        for _ in 0..10 {
            pass(&bench, 1_000);
            came += poll_all(&mut first);
            sent_0 += sent(&bench, 0);
        }
        assert_eq!((came, sent_0), (number, number), "{profile:?}, round {round}: function 0 goes on");
    }
    if profile == Profile::Corrected {
        let rows = first.statistics().expect("registers answer");
        assert_eq!(rows.get("stat_rx_total_pkts"), Some(number), "port 0's counts are port 0's");
        assert_eq!(rows.get("stat_tx_total_pkts"), Some(number));
        let platform = bench.function(FuncId(0));
        let sum = counters::read(platform.mmio(), &shape).expect("registers answer").expect("our shell counts");
        assert!(!sum.drops.contains_key("no_function"), "a frame was sent after its queues were taken away: {sum}");
        assert_eq!(sum.missing(), 0, "{sum}");
    }
    first.remove().expect("removal");
    assert_memory(&bench, true);
}
