//! Statistics: the rows of `ethtool -S` and their order, MAC counts that nobody loses, and totals that are the sum of their
//! parts.

mod common;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use common::{Faults, Mock, config, driver_up, numbered};
use driver_core::statistics::{Traffic, VENDOR_ROWS};
use driver_core::{DeviceConfig, Driver, Mmio, MmioError, Platform};
use proptest::prelude::*;
use regs::{Bar, FuncId, PortId};

// ---- names

/// The 71 names and, for the card's 64, their offsets, as `spec/driver.md` section 7 tells them.
fn specified() -> Option<Vec<(String, Option<u32>)>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/spec/driver.md");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: the description {} is not there", path.display());
        return None;
    };
    let begin = text.find("1-25 TX:").expect("section 7 has the rows");
    let end = text[begin..].find("Reading:").expect("and what follows them") + begin;
    let text = text[begin..end].replace('\n', " ");
    let part = |from: &str, to: &str| {
        let begin = text.find(from).expect(from) + from.len();
        let end = if to.is_empty() { text.len() } else { text.find(to).expect(to) };
        text[begin..end].trim().trim_end_matches(['.', ' ']).to_string()
    };
    let mut rows = card_rows(&part("1-25 TX:", "(all prefixed"), "stat_tx_");
    rows.extend(card_rows(&part("26-59 RX (prefix `stat_rx_`):", "60-64 adapter"), "stat_rx_"));
    for (name, offset) in words(&part("(BAR2 0xB000 / 0xF000):", "65-71")) {
        rows.push((name, Some(0x3000 + offset)));
    }
    rows.extend(part("65-71 software sums:", "").split(',').map(|name| (name.trim().to_string(), None)));
    Some(rows)
}

/// Offsets from the CMAC. Sizes are given as ranges.
fn card_rows(text: &str, prefix: &str) -> Vec<(String, Option<u32>)> {
    words(text)
        .into_iter()
        .map(|(name, offset)| {
            let name = name.trim_start_matches("stat_tx_").to_string();
            let range = name.chars().all(|c| c.is_ascii_digit() || c == '_');
            (if range { format!("{prefix}pkt_{name}_bytes") } else { format!("{prefix}{name}") }, Some(offset))
        })
        .collect()
}

fn words(text: &str) -> Vec<(String, u32)> {
    text.split(',')
        .map(|row| {
            let mut words = row.split_whitespace();
            let name = words.next().expect("a name").to_string();
            let offset = words.next().expect("an offset").trim_start_matches('+');
            (name, u32::from_str_radix(offset, 16).expect("a hexadecimal offset"))
        })
        .collect()
}

#[test]
fn the_first_71_rows_are_the_vendors_in_its_order() {
    let Some(specified) = specified() else { return };
    assert_eq!(specified.len(), VENDOR_ROWS);
    let mock = Mock::new(10);
    let driver = driver_up(&mock, config(2, 8));
    let statistics = driver.statistics().unwrap();
    let names: Vec<&str> = statistics.names().take(VENDOR_ROWS).collect();
    assert_eq!(names, specified.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>());
}

/// Each row shows the register that the description gives for it, of the function's own port.
#[test]
fn each_row_shows_its_own_register() {
    let Some(specified) = specified() else { return };
    for func in [0, 1] {
        let port = 0x8000 + 0x4000 * u32::from(func);
        let mock = Mock::new(10);
        mock.state_tables(&[(0x204, 4096), (0x204 + 4, 8), (0xAB0, 2048)]);
        let driver = driver_up(&mock, DeviceConfig { func: FuncId(func), master: func == 0, ..one_port(func) });
        for (i, (_, offset)) in (1..).zip(&specified) {
            if let Some(offset) = offset {
                mock.set_shell(port + offset, 1000 + i);
                mock.set_shell(port + offset + 4, 0);
            }
        }
        let statistics = driver.statistics().unwrap();
        for (i, (name, offset)) in (1..).zip(&specified) {
            let expected = offset.map_or(0, |_| 1000 + i);
            assert_eq!(statistics.get(name), Some(expected), "function {func}, {name}");
        }
    }
}

fn one_port(func: u8) -> DeviceConfig {
    DeviceConfig { ports: vec![PortId(func)], own_port: Some(PortId(func)), ..config(2, 8) }
}

/// B-35: a function without a port reads no port's registers; it doesn't take another's for its own.
#[test]
fn a_function_without_a_port_invents_no_mac_rows() {
    let mock = Mock::new(9);
    mock.state_tables(&[(0x204, 8), (0xAB0, 2048)]);
    for offset in (0x8500..0x8718).chain(0xC500..0xC718).step_by(8) {
        mock.set_shell(offset, 77);
    }
    let settings = DeviceConfig { func: FuncId(2), master: false, ports: vec![], own_port: None, ..config(2, 8) };
    let driver = driver_up(&mock, settings);
    mock.take_log();
    let statistics = driver.statistics().unwrap();
    assert!(statistics.values().take(64).all(|value| value == 0));
    let touched = mock.take_log().iter().any(|access| access.bar == Bar::Shell && access.offset >= 0x8000);
    assert!(!touched, "a port was touched");
}

/// B-10: `ethtool -S` before the first up, and after a down.
#[test]
fn rows_can_be_read_while_the_device_is_down() {
    let mock = Mock::new(10);
    let mut driver = Driver::<Mock>::bring_up(Arc::clone(&mock), config(2, 8)).unwrap();
    let rows = driver.statistics().unwrap().rows().len();
    driver.up().unwrap();
    assert!(mock.receive(1, &numbered(1, 60)));
    driver.rx(1).unwrap().poll(4, |_| {}).unwrap();
    driver.down().unwrap();
    let statistics = driver.statistics().unwrap();
    assert_eq!((statistics.get("rx_queue_1_packets"), statistics.get("rx_queue_1_bytes")), (Some(1), Some(60)));
    assert_eq!(statistics.rows().len(), rows);
    assert_eq!(driver.info().unwrap().n_stats, rows);
}

/// Counters that only our shell has: there by value, or not there at all.
#[test]
fn our_own_rows_are_left_out_where_the_card_has_none() {
    let mock = Mock::new(10);
    let driver = driver_up(&mock, config(2, 8));
    mock.set_shell(0x5008, 5);
    mock.set_shell(0x500C, 1);
    assert_eq!(driver.statistics().unwrap().get("stat_qdma_c2h_drop_queue_range"), Some(1 << 32 | 5));
    for offset in [0x5008, 0x500C] {
        mock.set_shell(offset, 0xDEAD_BEEF);
    }
    assert_eq!(driver.statistics().unwrap().get("stat_qdma_c2h_drop_queue_range"), None);
}

// ---- the MAC

/// A port that counts as PG203 says: a TICK copies the counts to the readable registers and clears them. Reads may fail, and
/// a counter that runs on may carry between the reads of its halves.
struct Mac {
    running: Mutex<[u64; 67]>,
    snapshot: Mutex<[u64; 67]>,
    accesses: AtomicU64,
    fail_at: AtomicU64,
    /// A counter at 0xB000 that grows by so much with each access.
    adapter: AtomicU64,
    step: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Mac {
    fn access(&self, bar: Bar, offset: u32) -> Result<(), MmioError> {
        let n = self.accesses.fetch_add(1, Ordering::Relaxed);
        self.adapter.fetch_add(self.step.load(Ordering::Relaxed), Ordering::Relaxed);
        if n == self.fail_at.load(Ordering::Relaxed) {
            Err(MmioError::TimedOut { bar, offset, waited_ns: 1 })
        } else {
            Ok(())
        }
    }
}

/// Only statistics are asked of it: everything else is the mock's.
struct Port {
    mock: Arc<Mock>,
    mac: Mac,
}

impl Port {
    fn new() -> Arc<Self> {
        let zero = || AtomicU64::new(0);
        let mac = Mac {
            running: Mutex::new([0; 67]),
            snapshot: Mutex::new([0; 67]),
            accesses: zero(),
            fail_at: AtomicU64::new(u64::MAX),
            adapter: zero(),
            step: zero(),
        };
        Arc::new(Self { mock: Mock::new(10), mac })
    }
}

impl Platform for Port {
    type Mmio = Port;
    type Clock = Mock;
    type Interrupts = Mock;
    type Dma = Mock;

    fn mmio(&self) -> &Port {
        self
    }
    fn clock(&self) -> &Mock {
        &self.mock
    }
    fn interrupts(&self) -> &Mock {
        &self.mock
    }
    fn dma(&self) -> &Mock {
        &self.mock
    }
}

impl Mmio for Port {
    fn read32(&self, bar: Bar, offset: u32) -> Result<u32, MmioError> {
        match (bar, offset) {
            (Bar::Shell, 0x8500..0x8718) => {
                self.mac.access(bar, offset)?;
                let value = lock(&self.mac.snapshot)[(offset as usize - 0x8500) / 8];
                Ok(if offset.is_multiple_of(8) { value as u32 } else { (value >> 32) as u32 })
            }
            (Bar::Shell, 0xB000 | 0xB004) => {
                self.mac.access(bar, offset)?;
                let value = self.mac.adapter.load(Ordering::Relaxed);
                Ok(if offset == 0xB000 { value as u32 } else { (value >> 32) as u32 })
            }
            _ => self.mock.read32(bar, offset),
        }
    }

    fn write32(&self, bar: Bar, offset: u32, value: u32) -> Result<(), MmioError> {
        if (bar, offset) == (Bar::Shell, 0x82B0) {
            self.mac.access(bar, offset)?;
            *lock(&self.mac.snapshot) = std::mem::replace(&mut *lock(&self.mac.running), [0; 67]);
            return Ok(());
        }
        self.mock.write32(bar, offset, value)
    }
}

/// Registers of the description's rows, as indices into the MAC's counters.
const ROWS: [usize; 3] = [0, 33, 66];
const ROW_NAMES: [&str; 3] = ["stat_tx_total_pkts", "stat_rx_total_pkts", "stat_rx_truncated"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// B-34: whoever looks, however often, and whatever access fails on the way, the totals are all that was counted. They
    /// pass 32 and 48 bits without a fold.
    #[test]
    fn no_mac_count_is_lost(steps in prop::collection::vec((0u64..1 << 47, 0usize..3, any::<bool>(), 0u64..300), 1..40)) {
        let port = Port::new();
        let driver = Driver::<Port>::bring_up(Arc::clone(&port), config(1, 8)).unwrap();
        let mut counted = [0u64; 3];
        for (amount, row, fails, at) in steps {
            // What a register holds between two ticks has 48 bits.
            let running = lock(&port.mac.running)[ROWS[row]];
            let amount = amount.min((1 << 48) - 1 - running);
            lock(&port.mac.running)[ROWS[row]] += amount;
            counted[row] += amount;
            if fails {
                port.mac.fail_at.store(port.mac.accesses.load(Ordering::Relaxed) + at, Ordering::Relaxed);
            }
            let _ = driver.statistics();
            port.mac.fail_at.store(u64::MAX, Ordering::Relaxed);
        }
        let statistics = driver.statistics().unwrap();
        for (name, counted) in ROW_NAMES.iter().zip(counted) {
            prop_assert_eq!(statistics.get(name), Some(counted), "{}", name);
        }
    }

    /// ONIC-15: a 64-bit counter that runs on between the reads of its halves is never torn.
    #[test]
    fn a_carry_between_two_halves_tears_nothing(start in any::<u32>(), near in any::<bool>(), step in 0u64..1 << 30) {
        let port = Port::new();
        let driver = Driver::<Port>::bring_up(Arc::clone(&port), config(1, 8)).unwrap();
        let start = if near { (7 << 32) - 1 - u64::from(start % 4) } else { u64::from(start) };
        port.mac.adapter.store(start, Ordering::Relaxed);
        port.mac.step.store(step, Ordering::Relaxed);
        let seen = driver.statistics().unwrap().get("stat_adapt_tx_sent").unwrap();
        let end = port.mac.adapter.load(Ordering::Relaxed);
        prop_assert!((start..=end).contains(&seen), "{start:#x} <= {seen:#x} <= {end:#x}");
    }
}

/// Two functions of one port: one owner ticks, and both see everything.
#[test]
fn functions_that_share_a_port_share_its_counts() {
    let port = Port::new();
    let owner = Driver::<Port>::bring_up(Arc::clone(&port), config(1, 8)).unwrap();
    let settings = DeviceConfig { func: FuncId(1), master: false, ports: vec![], own_port: None, ..config(1, 8) };
    let mut guest = Driver::<Port>::bring_up(Arc::clone(&port), settings).unwrap();
    guest.share_mac_statistics(owner.mac_statistics().expect("function 0 owns a port"));
    for round in 1..=10 {
        lock(&port.mac.running)[0] += 5;
        let looks = [owner.statistics().unwrap(), guest.statistics().unwrap()];
        assert_eq!(looks.map(|look| look.get("stat_tx_total_pkts")), [Some(5 * round); 2]);
    }
}

// ---- sums

#[derive(Clone, Debug)]
enum Op {
    Receive { queue: u16, count: u16, len: usize },
    Poll { queue: u16, budget: usize },
    Send { queue: u16, count: u16, len: usize },
    Take { queue: u16, count: usize },
    Refuse { queue: u16 },
    Assign { queue: u16, worker: usize },
    Break { queue: u16, tx: bool },
    Recover,
    Restart,
    Channels { count: u16 },
}

fn op() -> impl Strategy<Value = Op> {
    let queue = 0u16..4;
    prop_oneof![
        6 => (queue.clone(), 1u16..9, 1usize..1515).prop_map(|(queue, count, len)| Op::Receive { queue, count, len }),
        6 => (queue.clone(), 0usize..20).prop_map(|(queue, budget)| Op::Poll { queue, budget }),
        6 => (queue.clone(), 1u16..9, 1usize..1515).prop_map(|(queue, count, len)| Op::Send { queue, count, len }),
        6 => (queue.clone(), 0usize..9).prop_map(|(queue, count)| Op::Take { queue, count }),
        1 => queue.clone().prop_map(|queue| Op::Refuse { queue }),
        2 => (queue.clone(), 0usize..3).prop_map(|(queue, worker)| Op::Assign { queue, worker }),
        1 => (queue, any::<bool>()).prop_map(|(queue, tx)| Op::Break { queue, tx }),
        1 => Just(Op::Recover),
        1 => Just(Op::Restart),
        1 => (1u16..5).prop_map(|count| Op::Channels { count }),
    ]
}

/// What the test has seen with its own eyes.
#[derive(Default)]
struct Seen {
    rx: [u64; 2],
    tx: [u64; 2],
    rx_faults: u64,
    tx_faults: u64,
    refused: u64,
}

fn apply(mock: &Arc<Mock>, driver: &mut Driver<Mock>, seen: &mut Seen, op: Op) {
    match op {
        Op::Receive { queue, count, len } => {
            if driver.rx(queue).is_some() {
                for n in 0..count {
                    mock.receive(queue, &numbered(u32::from(n), len));
                }
            }
        }
        Op::Poll { queue, budget } => {
            let Some(rx) = driver.rx(queue) else { return };
            let sane = matches!(rx.state(), driver_core::QueueState::Running);
            let polled = rx.poll(budget, |frame| {
                seen.rx[0] += 1;
                seen.rx[1] += frame.len_bytes() as u64;
            });
            seen.rx_faults += u64::from(sane && polled.is_err());
        }
        Op::Send { queue, count, len } => {
            let Some(tx) = driver.tx(queue) else { return };
            let sane = matches!(tx.state(), driver_core::QueueState::Running);
            for n in 0..count {
                let _ = tx.post(&numbered(u32::from(n), len));
            }
            let _ = tx.flush();
            // A full ring reaps, and may find what the card has broken.
            seen.tx_faults += u64::from(sane && !matches!(tx.state(), driver_core::QueueState::Running));
        }
        Op::Take { queue, count } => {
            let Some(tx) = driver.tx(queue) else { return };
            if !matches!(tx.state(), driver_core::QueueState::Running) {
                return;
            }
            let frames = mock.transmit(queue, count);
            if tx.reap().is_ok() {
                seen.tx[0] += frames.len() as u64;
                seen.tx[1] += frames.iter().map(|frame| frame.len() as u64).sum::<u64>();
            } else {
                seen.tx_faults += 1;
            }
        }
        Op::Refuse { queue } => {
            let Some(tx) = driver.tx(queue) else { return };
            if matches!(tx.state(), driver_core::QueueState::Running) && tx.post(&[0; 2000]).is_err() {
                seen.refused += 1;
            }
        }
        Op::Assign { queue, worker } => {
            let worker = driver.worker(worker);
            if let Some(pair) = driver.pair(queue) {
                pair.assign(&worker);
            }
        }
        // Frames that the card has taken and nobody has reaped yet are abandoned by a faulted queue, so none may be left.
        Op::Break { queue, tx } if driver.pair(queue).is_some() => {
            if tx {
                apply(mock, driver, seen, Op::Take { queue, count: usize::MAX });
                mock.poke_tx_status(queue, 1);
                let broken = driver.tx(queue).is_some_and(|tx| matches!(tx.state(), driver_core::QueueState::Running));
                seen.tx_faults += u64::from(broken && driver.tx(queue).is_some_and(|tx| tx.reap().is_err()));
            } else {
                mock.poke_rx_status(queue, 1 << 35);
                apply(mock, driver, seen, Op::Poll { queue, budget: 1 });
            }
        }
        Op::Break { .. } => {}
        Op::Recover => {
            assert!(driver.recover().iter().all(|recovered| recovered.result.is_ok()));
        }
        Op::Restart => driver.restart().unwrap(),
        Op::Channels { count } => driver.set_channels(count).unwrap(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// `ip -s` is the sum of the queues and the sum of the workers, and each is what really happened, over faults, restarts,
    /// changes of the queue count and of the worker.
    #[test]
    fn totals_are_the_sum_of_their_parts(ops in prop::collection::vec(op(), 1..80)) {
        let mock = Mock::new(10);
        mock.state().lies = true;
        let mut driver = driver_up(&mock, config(4, 16));
        let mut seen = Seen::default();
        for op in ops {
            apply(&mock, &mut driver, &mut seen, op);
        }
        driver.down().unwrap();

        let queues: Traffic = driver.queue_statistics().iter().map(|queue| queue.traffic()).sum();
        let workers: Traffic = driver.worker_statistics().into_iter().sum();
        prop_assert_eq!(queues, workers);
        let link = driver.link_statistics().unwrap();
        prop_assert_eq!(link.queues, queues);
        prop_assert_eq!([link.rx_packets(), link.rx_bytes()], seen.rx);
        prop_assert_eq!([link.tx_packets(), link.tx_bytes()], seen.tx);
        prop_assert_eq!((link.rx_errors(), link.tx_errors()), (seen.rx_faults, seen.tx_faults));
        let tx = driver.tx_totals();
        prop_assert_eq!(tx.posted, tx.completed + tx.abandoned);
        prop_assert_eq!(tx.refused, seen.refused);
        let rows = driver.statistics().unwrap();
        let sum = |side: &str, what: &str| -> u64 {
            (0..4).filter_map(|q| rows.get(&format!("{side}_queue_{q}_{what}"))).sum()
        };
        prop_assert_eq!(
            [sum("rx", "packets"), sum("rx", "bytes"), sum("rx", "drops"), sum("rx", "errors")],
            [link.rx_packets(), link.rx_bytes(), link.rx_dropped(), link.rx_errors()]
        );
        prop_assert_eq!(
            [sum("tx", "packets"), sum("tx", "bytes"), sum("tx", "drops"), sum("tx", "errors")],
            [link.tx_packets(), link.tx_bytes(), link.tx_dropped(), link.tx_errors()]
        );
        driver.remove().unwrap();
        mock.assert_clean();
    }
}

/// Queues in threads: whoever reads meanwhile sees whole values that never go back, and in the end all of them.
#[test]
fn counters_are_read_while_queues_run_in_threads() {
    const FRAMES: u64 = 2000;
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(2, 64));
    let workers = [driver.worker(0), driver.worker(1)];
    let queues = driver.take_queues();
    std::thread::scope(|scope| {
        let threads: Vec<_> = queues
            .into_iter()
            .zip(&workers)
            .map(|(mut pair, worker)| {
                let mock = Arc::clone(&mock);
                pair.assign(worker);
                scope.spawn(move || {
                    let mut done = 0;
                    while done < FRAMES {
                        mock.receive(pair.rx.qid().0, &numbered(1, 60));
                        done += pair.rx.poll(8, |_| {}).unwrap() as u64;
                    }
                    pair
                })
            })
            .collect();
        let mut last = 0;
        while !threads.iter().all(|thread| thread.is_finished()) {
            let now = driver.traffic();
            assert!(now.rx_packets >= last, "a total went back from {last} to {}", now.rx_packets);
            last = now.rx_packets;
        }
        let back: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        driver.return_queues(back);
    });
    let by_worker: Vec<u64> = driver.worker_statistics().iter().map(|traffic| traffic.rx_packets).collect();
    assert_eq!(by_worker, [FRAMES, FRAMES]);
    assert_eq!(driver.traffic().rx_bytes, 2 * 60 * FRAMES);
}

/// A read that fails loses nothing and says what failed.
#[test]
fn a_card_that_does_not_answer_is_an_error() {
    let mock = Mock::new(10);
    let driver = driver_up(&mock, config(2, 8));
    mock.fail(Faults { mmio_from: Some(0), ..Faults::default() });
    assert!(matches!(driver.statistics(), Err(MmioError::TimedOut { bar: Bar::Shell, offset: 0x82B0, .. })));
    mock.fail(Faults::default());
}

/// A queue that is started afresh is still its worker's.
#[test]
fn a_restarted_queue_keeps_its_worker() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(2, 8));
    let worker = driver.worker(5);
    driver.pair(1).unwrap().assign(&worker);
    driver.restart_rx(1).unwrap();
    driver.restart_tx(1).unwrap();
    assert!(mock.receive(1, &numbered(1, 60)));
    driver.rx(1).unwrap().poll(4, |_| {}).unwrap();
    let tx = driver.tx(1).unwrap();
    tx.post(&numbered(1, 60)).unwrap();
    tx.flush().unwrap();
    mock.transmit(1, 1);
    tx.reap().unwrap();
    assert_eq!((worker.traffic().rx_packets, worker.traffic().tx_packets), (1, 1));
}
