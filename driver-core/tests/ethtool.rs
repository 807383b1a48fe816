//! Settings as ethtool asks for them: in force when accepted, refused with a list otherwise, and the old ones again when the
//! device can't come up with the new.

mod common;

use std::sync::Arc;

use common::{Faults, Mock, config, driver_up, numbered};
use driver_core::ethtool::{
    Choice, CoalesceChange, EthtoolError, Fec, LinkSettings, RingsChange, RssChange, TableChange,
};
use driver_core::rss::{HashFunction, Key, RssError, Table};
use driver_core::{
    Cause, ChangeError, ConfigError, Deferral, DeviceConfig, Driver, Moderation, NoHook, QueueFault, QueueState, Side,
    StopError, TableEntry, Thresholds, TriggerMode, TxFlow,
};
use proptest::prelude::*;
use regs::{FuncId, PortId};

fn settings() -> DeviceConfig {
    DeviceConfig { tx_ring: TableEntry::Value(64), rx_ring: TableEntry::Value(128), ..config(4, 8) }
}

/// A frame through each queue, both ways.
fn assert_works(mock: &Mock, driver: &mut Driver<Mock>) {
    for rel_qid in 0..driver.config().queues {
        let qid = driver.config().base() + rel_qid;
        assert!(mock.receive(qid, &numbered(7, 60)));
        assert_eq!(driver.rx(rel_qid).expect("a queue").poll(64, |_| {}), Ok(1));
        let tx = driver.tx(rel_qid).expect("a queue");
        tx.post(&numbered(8, 60)).unwrap();
        tx.flush().unwrap();
        assert_eq!(mock.transmit(qid, 9).len(), 1);
        assert_eq!(tx.reap(), Ok(1));
    }
}

// ---- rings

#[test]
fn a_ring_size_that_the_card_has_takes_effect_at_once() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, settings());
    assert_eq!((driver.rings().rx, driver.rings().tx, driver.rings().max()), (128, 64, 16384));
    driver.set_rings(RingsChange { rx: Some(512), tx: None }).unwrap();
    assert!(driver.is_up());
    assert_eq!((driver.rings().rx, driver.rings().tx), (512, 64));
    let size = |word: u32| mock.reg(0, 0x204 + 4 * word);
    assert_eq!(size(mock.context(0, 3)[1] >> 12 & 15), 512);
    assert_eq!(size(mock.context(6, 3)[0] >> 28), 512);
    assert_eq!(size(mock.context(1, 3)[1] >> 12 & 15), 64);
    assert_works(&mock, &mut driver);
    driver.remove().unwrap();
    mock.assert_clean();
}

#[test]
fn a_device_that_is_down_stays_down_and_comes_up_with_the_new_size() {
    let mock = Mock::new(10);
    let mut driver = Driver::<Mock>::bring_up(Arc::clone(&mock), settings()).unwrap();
    driver.set_rings(RingsChange { rx: Some(256), tx: Some(256) }).unwrap();
    assert!(!driver.is_up());
    driver.up().unwrap();
    assert_eq!(mock.buffers(0), 254);
    assert_works(&mock, &mut driver);
}

#[test]
fn other_ring_sizes_are_refused_with_the_list() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, settings());
    let before = mock.mmio_count();
    let refused = driver.set_rings(RingsChange { rx: Some(128), tx: Some(1000) }).unwrap_err();
    assert!(matches!(refused, ChangeError::Ethtool(EthtoolError::RingSize { side: Side::Tx, asked: 1000, .. })));
    assert_eq!(
        refused.to_string(),
        "TX ring of 1000 entries: the card has 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 3072, 4096, 6144, 8192, \
         12288, 16384"
    );
    assert_eq!(mock.mmio_count(), before, "nothing was touched");
}

/// A size that another ring has put into the table, and that is too short for this one.
#[test]
fn a_ring_that_cannot_hold_the_longest_frame_is_refused() {
    let mock = Mock::new(10);
    let jumbo = DeviceConfig { max_frame_len_bytes: 9596, rx_ring: TableEntry::Value(64), ..config(2, 6) };
    let mut driver = driver_up(&mock, jumbo);
    let refused = driver.set_rings(RingsChange { rx: Some(6), tx: None });
    let cause = Cause::RingTooSmall { entries: 6, capacity: 4, frame_len_bytes: 9596, needed: 5 };
    assert_eq!(refused, Err(ChangeError::Refused(cause)));
    assert_eq!((driver.rings().rx, driver.is_up()), (64, true));
}

/// Whatever allocation fails while the rings change: the old sizes are in force again, or the new ones are.
#[test]
fn a_change_that_fails_falls_back_to_the_old_setting() {
    let mut fell_back = 0;
    for n in 0.. {
        let mock = Mock::new(10);
        let mut driver = driver_up(&mock, DeviceConfig { queues: 2, ..settings() });
        mock.fail(Faults { alloc_at: Some(n), ..Faults::default() });
        let changed = driver.set_rings(RingsChange { rx: Some(64), tx: Some(128) });
        mock.fail(Faults::default());
        assert!(driver.is_up(), "allocation {n}");
        let sizes = (driver.rings().rx, driver.rings().tx);
        assert_eq!(sizes, if changed.is_ok() { (64, 128) } else { (128, 64) }, "allocation {n}");
        assert_works(&mock, &mut driver);
        driver.remove().unwrap();
        mock.assert_clean();
        if changed.is_ok() {
            break;
        }
        assert!(matches!(changed, Err(ChangeError::Start(_))), "{changed:?}");
        fell_back += 1;
    }
    assert_eq!(fell_back, 2 + 2 * (2 + 63), "two TX rings; two rings and 63 pages for each RX queue");
}

// ---- channels

#[test]
fn the_number_of_queues_changes_while_the_device_is_up() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, settings());
    assert_eq!((driver.channels().combined, driver.channels().max_combined, driver.channels().other), (4, 64, 2));
    for count in [1, 7, 64, 2] {
        driver.set_channels(count).unwrap();
        assert_eq!((driver.channels().combined, mock.reg(2, 0x1000)), (count, u32::from(count)));
        assert_eq!(driver.rss_table(), Ok(Table::equal(count).unwrap()));
        assert_works(&mock, &mut driver);
    }
    for count in [0, 65] {
        let refused = driver.set_channels(count);
        assert_eq!(refused, Err(ChangeError::Ethtool(EthtoolError::Channels { asked: count, max: 64 })));
    }
    driver.set_rss_table(&Table::equal(2).unwrap()).unwrap();
    let refused = driver.set_channels(1);
    assert_eq!(refused, Err(ChangeError::Rss(RssError::NoSuchQueue { entry: 1, queue: 1, last: 0 })));
    assert!(driver.is_up(), "nothing was touched");
    assert_works(&mock, &mut driver);
}

#[test]
fn nothing_changes_while_queues_are_lent_out() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, settings());
    let queues = driver.take_queues();
    let lent = Err(ChangeError::Stop(StopError::LentOut { count: 4 }));
    assert_eq!(driver.set_channels(2), lent);
    assert_eq!(driver.set_rings(RingsChange { rx: Some(64), tx: None }), lent);
    assert_eq!(driver.set_coalesce(None, &CoalesceChange::default()), lent);
    driver.return_queues(queues);
    assert_works(&mock, &mut driver);
}

/// Functions 1 to 3, at their own base and at one of the user's: all settings are about their own queues.
#[test]
fn every_function_has_its_own_queues() {
    for func in 1..=3 {
        for (queue_base, base) in [(None, 64 * u16::from(func)), (Some(1000), 1000)] {
            let mock = Mock::new(9);
            mock.state_tables(&[(0x204, 64), (0x208, 128), (0xAB0, 2048)]);
            let ports = if func == 1 { vec![PortId(1)] } else { vec![] };
            let own_port = ports.first().copied();
            let func = FuncId(func);
            let driver = DeviceConfig { func, master: false, queue_base, ports, own_port, ..settings() };
            let mut driver = driver_up(&mock, driver);
            assert_works(&mock, &mut driver);
            driver.set_channels(3).unwrap();
            assert_eq!(mock.context(12, u16::from(func.0))[..2], [u32::from(base), 3]);
            assert_eq!(mock.reg(2, 0x1000 + 0x1000 * u32::from(func.0)), u32::from(base) << 16 | 3);
            assert_works(&mock, &mut driver);
            driver.remove().unwrap();
            mock.assert_clean();
        }
    }
}

// ---- coalescing

/// Timer, counter and mode of a queue's last completion doorbell.
fn last_doorbell(mock: &Mock, queue: u32) -> (u32, u32, u32, bool) {
    let doorbells = mock.take_doorbells();
    let value = doorbells.iter().rev().find(|(at, _)| *at == 0x1800C + 16 * queue).expect("a completion doorbell").1;
    (value >> 20 & 15, value >> 16 & 15, value >> 24 & 7, value >> 28 & 1 == 1)
}

#[test]
fn moderation_is_set_for_one_queue_or_for_all() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, settings());
    let tables = driver.coalesce_tables().unwrap();
    assert_eq!((tables.timers_ns[0], tables.timers_ns[15], tables.counters.0[0]), (1000, 20_000, 64));

    let slow =
        CoalesceChange { timer: Some(Choice::Value(5000)), counter: Some(Choice::Value(192)), ..Default::default() };
    driver.set_coalesce(Some(2), &slow).unwrap();
    assert_eq!(last_doorbell(&mock, 2), (10, 15, 5, true), "at once");
    let seen = driver.coalesce(Some(2)).unwrap();
    assert_eq!((seen.timer_ns, seen.frames), (5000, 192));
    assert_eq!(driver.coalesce(Some(1)).unwrap().timer_ns, 1000, "the others as before");

    driver.restart().unwrap();
    assert_eq!(driver.rx(2).unwrap().moderation().timer_index, 10, "kept over a down and up");
    assert_eq!(mock.context(6, 2)[0] >> 2 & 7, 5);

    let every = CoalesceChange { mode: Some(TriggerMode::Every), ..Default::default() };
    driver.set_coalesce(None, &every).unwrap();
    for queue in 0..4 {
        assert_eq!(
            driver.coalesce(Some(queue)).unwrap().moderation,
            driver.config().moderation,
            "all, without exception"
        );
        assert_eq!(last_doorbell_of(&mut driver, queue), TriggerMode::Every);
    }
    assert_works(&mock, &mut driver);
}

fn last_doorbell_of(driver: &mut Driver<Mock>, queue: u16) -> TriggerMode {
    driver.rx(queue).unwrap().moderation().mode
}

#[test]
fn moderation_that_cannot_be_is_refused_whole() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, settings());
    let before = driver.config().clone();
    let ask = |timer, counter| CoalesceChange { timer, counter, ..CoalesceChange::default() };
    for change in [
        ask(Some(Choice::Value(1)), None),
        ask(Some(Choice::Index(3)), Some(Choice::Value(5))),
        ask(Some(Choice::Index(16)), None),
    ] {
        assert!(matches!(driver.set_coalesce(None, &change), Err(ChangeError::Ethtool(_))), "{change:?}");
    }
    let count = CoalesceChange { mode: Some(TriggerMode::UserCount), ..CoalesceChange::default() };
    let refused = driver.set_coalesce(Some(0), &count);
    assert!(matches!(refused, Err(ChangeError::Config(ConfigError::ModerationMode { .. }))), "{refused:?}");
    let refused = driver.set_coalesce(Some(4), &ask(None, None));
    assert_eq!(refused, Err(ChangeError::NoSuchQueue { rel_qid: 4 }));
    assert_eq!((driver.config(), driver.coalesce(Some(0)).unwrap().timer_ns), (&before, 1000));
}

#[test]
fn interrupts_can_be_switched_off_and_on_while_queues_run() {
    let mock = Mock::new(10);
    let polled = Moderation { interrupt: false, ..settings().moderation };
    let mut driver = driver_up(&mock, DeviceConfig { moderation: polled, ..settings() });
    assert!(!mock.vector_enabled(3));
    let on = CoalesceChange { interrupt: Some(true), ..CoalesceChange::default() };
    driver.set_coalesce(None, &on).unwrap();
    // A queue that has not been polled yet was not asked to notify; the next poll asks.
    driver.rx(3).unwrap().poll(1, |_| {}).unwrap();
    assert!(mock.vector_enabled(3) && last_doorbell(&mock, 3).3);
    assert_eq!(mock.context(6, 3)[0] >> 1 & 1, 1, "the context lets interrupts through");

    let none = Mock::new(2);
    let mut driver = driver_up(&none, DeviceConfig { moderation: polled, ..settings() });
    let refused = driver.set_coalesce(None, &on);
    assert_eq!(refused, Err(ChangeError::Refused(Cause::NoVectors { granted: 2, reserved: 2 })));
}

// ---- RSS

#[test]
fn rss_is_checked_whole_and_then_written() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, settings());
    let before = driver.rss().unwrap();
    assert_eq!((before.hash.name(), before.queues, before.table), ("opennic", 4, Table::equal(4).unwrap()));
    let (key, table) = (Key([9; 40]), Table::weighted(&[1, 0, 0, 3]).unwrap());
    let bad = Table::equal(5).unwrap();
    let writes = mock.take_log().len();
    for change in [
        RssChange { key: Some(key), table: Some(TableChange::Table(bad)), hash: None },
        RssChange { key: Some(key), table: Some(TableChange::Table(table)), hash: Some(HashFunction::Microsoft) },
    ] {
        assert!(matches!(driver.set_rss(&change), Err(ChangeError::Rss(_))));
        assert_eq!(driver.rss().unwrap(), before);
    }
    assert!(mock.take_log().iter().all(|access| !access.write), "nothing was written after {writes} accesses");
    driver.set_rss(&RssChange { key: Some(key), table: Some(TableChange::Table(table)), hash: None }).unwrap();
    driver.restart().unwrap();
    assert_eq!((driver.rss().unwrap().key, driver.rss().unwrap().table), (key, table), "kept over a down and up");
    driver.set_rss(&RssChange { table: Some(TableChange::Default), ..RssChange::default() }).unwrap();
    assert_eq!((driver.rss().unwrap().key, driver.rss().unwrap().table), (key, before.table));
}

// ---- link

#[test]
fn fec_is_switched_with_a_reset_and_the_receiver_comes_back() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, settings());
    let link = LinkSettings {
        port: PortId(0),
        speed_mbps: 100_000,
        full_duplex: true,
        autoneg: false,
        fec: Fec::Rs,
        detected: true,
    };
    assert_eq!(driver.link_settings(), Ok(link));
    mock.take_log();
    driver.set_fec(Fec::Off).unwrap();
    assert_eq!(driver.link_settings(), Ok(LinkSettings { fec: Fec::Off, ..link }));
    assert_eq!(mock.reg(2, 0x8014), 1, "the receiver is on again");
    let log = mock.take_log();
    let at = |offset| log.iter().position(|access| access.write && access.offset == offset);
    let receiver_off = log.iter().position(|access| access.write && (access.offset, access.value) == (0x8014, 0));
    assert!(
        receiver_off.is_some() && receiver_off < at(0x82B0),
        "the MAC's counts are collected once nothing more comes"
    );
    assert!(at(0x82B0) < at(0xC), "the MAC's counts are collected before the reset");
    assert!(at(0xC) < at(0x907C), "RS-FEC changes after the reset, before the transmitter is on");
    driver.down().unwrap();
    driver.set_fec(Fec::Rs).unwrap();
    assert_eq!((driver.link_settings().unwrap().fec, mock.reg(2, 0x8014)), (Fec::Rs, 0));

    let portless = DeviceConfig { own_port: None, ..settings() };
    let mut driver = Driver::<Mock>::bring_up(Mock::new(10), portless).unwrap();
    assert_eq!(driver.set_fec(Fec::Off), Err(ChangeError::Ethtool(EthtoolError::NoPort)));
}

// ---- recovery

/// ONIC-18: one queue breaks; the others go on, it comes back by itself, and nothing is lost afterwards.
#[test]
fn a_broken_queue_recovers_and_the_others_go_on() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, settings());
    mock.state().lies = true;
    mock.poke_rx_status(1, 1 << 35);
    let fault = driver.rx(1).unwrap().poll(8, |_| {}).unwrap_err();
    mock.poke_tx_status(2, 1);
    let tx_fault = driver.tx(2).unwrap().reap().unwrap_err();
    assert!(matches!((fault, tx_fault), (QueueFault::Status { .. }, QueueFault::Status { .. })));
    let recovered = driver.recover();
    let told: Vec<_> = recovered.iter().map(|r| (r.rel_qid, r.side, r.fault, r.result.is_ok())).collect();
    assert_eq!(told, [(1, Side::Rx, fault, true), (2, Side::Tx, tx_fault, true)]);
    assert_eq!(driver.recover(), []);
    assert!(driver.queues().iter().all(|pair| pair.rx.state() == QueueState::Running));
    for _ in 0..250 {
        assert_works(&mock, &mut driver);
    }
    let statistics = driver.statistics().unwrap();
    assert_eq!((statistics.get("rx_queue_1_errors"), statistics.get("tx_queue_2_errors")), (Some(1), Some(1)));
    assert_eq!(statistics.get("rx_queue_1_packets"), Some(250));
}

/// A sender that was told to stop is woken by the queue that comes after; what was set on the old one holds for it.
#[test]
fn a_restarted_transmit_queue_wakes_who_waits_and_keeps_what_was_set() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, settings());
    let set = Thresholds { stop_below: 60, wake_at: 62 };
    let tx = driver.tx(1).unwrap();
    tx.set_thresholds(set).unwrap();
    tx.set_completion_ns(77);
    (0..3).for_each(|n| tx.post(&numbered(n, 60)).unwrap());
    tx.flush().unwrap();
    assert!(matches!(tx.flow(), TxFlow::Stopped { .. }));
    mock.transmit(1, 2);
    driver.restart_tx(1).unwrap();
    assert_eq!((driver.tx_totals().completed, driver.tx_totals().abandoned), (2, 1), "a queue that ran");
    let pair = driver.pair(1).unwrap();
    assert!(pair.poll(8, &mut NoHook, |_| {}).tx_woken);
    assert_eq!((pair.tx.flow(), pair.tx.thresholds()), (TxFlow::Open, set));
    let now_ns = driver_core::Clock::now(&*mock);
    pair.tx.post(&numbered(0, 60)).unwrap();
    pair.tx.flush().unwrap();
    assert_eq!(pair.tx.due_ns(), Some(now_ns + 77));
    driver.restart_tx(0).unwrap();
    assert!(!driver.tx(0).unwrap().take_wake(), "nobody waited");
}

#[test]
fn a_running_receive_queue_that_is_restarted_counts_what_it_gives_up() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, settings());
    (0..3).for_each(|n| assert!(mock.receive(2, &numbered(n, 60))));
    driver.restart_rx(2).unwrap();
    assert_eq!((driver.rx_totals().dropped_stopping, driver.rx_totals().frames), (3, 0));
    assert_works(&mock, &mut driver);
}

/// From the last look at the ring to the card's forgetting it the card may still write.
#[test]
fn a_frame_that_lands_while_its_queue_is_stopped_is_counted_too() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, settings());
    (0..3).for_each(|n| assert!(mock.receive(2, &numbered(n, 60))));
    mock.fail(Faults { frame_at_stop: Some(2), ..Faults::default() });
    driver.restart_rx(2).unwrap();
    assert_eq!((driver.rx_totals().dropped_stopping, driver.rx_totals().frames), (4, 0));
    mock.fail(Faults { frame_at_stop: Some(1), ..Faults::default() });
    driver.down().unwrap();
    assert_eq!((driver.rx_totals().dropped_stopping, driver.rx_totals().frames), (5, 0));
    driver.up().unwrap();
    assert_works(&mock, &mut driver);
}

#[test]
fn settings_of_single_queues_outlive_a_down_and_an_up() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, settings());
    let set = Thresholds { stop_below: 10, wake_at: 62 };
    let deferral = Deferral { polls: 2, timeout_ns: 20_000 };
    let usual = driver.tx(0).unwrap().thresholds();
    let pair = driver.pair(3).unwrap();
    pair.tx.set_thresholds(set).unwrap();
    pair.napi.set_deferral(deferral);
    driver.down().unwrap();
    driver.up().unwrap();
    let pair = driver.pair(3).unwrap();
    assert_eq!((pair.tx.thresholds(), pair.napi.deferral()), (set, deferral));
    let pair = driver.pair(0).unwrap();
    assert_eq!((pair.tx.thresholds(), pair.napi.deferral()), (usual, Deferral::default()));
    // Thresholds that a larger ring brings with it follow the ring.
    driver.set_rings(RingsChange { rx: None, tx: Some(512) }).unwrap();
    assert_eq!(driver.tx(3).unwrap().thresholds(), set);
    assert_eq!(driver.tx(0).unwrap().thresholds().wake_at, 510 / 4);
}

#[test]
fn an_mtu_below_the_padding_is_refused() {
    let mut driver = driver_up(&Mock::new(10), DeviceConfig { min_tx_frame_len_bytes: 1000, ..settings() });
    let refused = ConfigError::TxPadding { min_tx_frame_len_bytes: 1000, mtu: 985 };
    assert_eq!(driver.set_mtu(985), Err(ChangeError::Config(refused)));
    assert_eq!((driver.config().mtu, driver.set_mtu(986)), (1500, Ok(())));
}

// ---- many changes

#[derive(Clone, Debug)]
enum Step {
    Rings(Option<u16>, Option<u16>),
    Channels(u16),
    Mtu(u16),
    Coalesce(Option<u16>, u8, u8),
    UpDown,
    Fec(bool),
    Traffic,
    NoMemory(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let size = || prop::option::of(prop::sample::select(vec![64u16, 128, 192, 1000]));
    prop_oneof![
        (size(), size()).prop_map(|(rx, tx)| Step::Rings(rx, tx)),
        (0u16..6).prop_map(Step::Channels),
        (0u16..2000).prop_map(Step::Mtu),
        (prop::option::of(0u16..6), 0u8..18, 0u8..18)
            .prop_map(|(queue, timer, counter)| Step::Coalesce(queue, timer, counter)),
        Just(Step::UpDown),
        any::<bool>().prop_map(Step::Fec),
        Just(Step::Traffic),
        (0u64..300).prop_map(Step::NoMemory),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Any settings in any order, accepted or refused, some with an allocation that fails on the way: traffic flows afterwards,
    /// and in the end nothing is left.
    #[test]
    fn any_order_of_settings_leaves_a_device_that_works(steps in prop::collection::vec(step(), 1..25)) {
        let mock = Mock::new(10);
        let mut driver = driver_up(&mock, settings());
        for step in steps {
            match step {
                Step::Rings(rx, tx) => drop(driver.set_rings(RingsChange { rx, tx })),
                Step::Channels(count) => drop(driver.set_channels(count)),
                Step::Mtu(mtu) => {
                    let accepted = driver.set_mtu(mtu).is_ok();
                    prop_assert_eq!(accepted, driver.mtu_range().contains(&mtu));
                    prop_assert_eq!(accepted, driver.config().mtu == mtu);
                }
                Step::Coalesce(queue, timer, counter) => {
                    let (timer, counter) = (Some(Choice::Index(timer)), Some(Choice::Index(counter)));
                    let change = CoalesceChange { timer, counter, ..CoalesceChange::default() };
                    drop(driver.set_coalesce(queue, &change));
                }
                Step::UpDown => drop(driver.restart()),
                Step::Fec(on) => driver.set_fec(if on { Fec::Rs } else { Fec::Off }).unwrap(),
                Step::Traffic => {
                    mock.fail(Faults::default());
                    assert_works(&mock, &mut driver);
                }
                Step::NoMemory(n) => mock.fail(Faults { alloc_at: Some(n), ..Faults::default() }),
            }
            if !driver.is_up() {
                mock.fail(Faults::default());
                driver.up().unwrap();
            }
        }
        mock.fail(Faults::default());
        assert_works(&mock, &mut driver);
        driver.remove().unwrap();
        mock.assert_clean();
    }
}
