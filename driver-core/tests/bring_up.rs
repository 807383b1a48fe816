//! Bring-up, start, stop and removal: every step can fail, and what was done is undone; settings are in force or refused.

mod common;

use std::sync::Arc;

use common::{Faults, Mock, config, driver_up, numbered};
use driver_core::rss::{HashFunction, Key, RssError, Table};
use driver_core::{
    Cause, ChangeError, ConfigError, DeviceConfig, Driver, IpVersion, Moderation, Page, Step, StopError, TableEntry,
    TableError, Timeouts, TxError, UpError, Vector,
};
use regs::{FuncId, PortId};

fn bring_up(mock: &Arc<Mock>, config: DeviceConfig) -> Result<Driver<Mock>, driver_core::BringUpError> {
    Driver::bring_up(Arc::clone(mock), config)
}

/// One frame each way.
fn assert_works(mock: &Arc<Mock>, driver: &mut Driver<Mock>, base: u16) {
    for rel_qid in 0..driver.config().queues {
        let qid = base + rel_qid;
        assert!(mock.receive(qid, &numbered(7, 60)));
        let mut frames = 0;
        let frame = |frame: &mut driver_core::RxFrame<'_, Mock>| {
            assert_eq!(frame.segment(0), numbered(7, 60));
            frames += 1;
        };
        driver.rx(rel_qid).unwrap().poll(64, frame).unwrap();
        assert_eq!(frames, 1);
        let tx = driver.tx(rel_qid).unwrap();
        tx.post(&numbered(8, 60)).unwrap();
        tx.flush().unwrap();
        assert_eq!(mock.transmit(qid, 9), [numbered(8, 60)]);
        assert_eq!(tx.reap(), Ok(1));
    }
}

fn small() -> DeviceConfig {
    DeviceConfig {
        timeouts: Timeouts { context_ns: 1000, reset_ns: 1000, quiesce_ns: 1000, settle_ns: 100 },
        rss_key: Some(Key([3; 40])),
        ports: vec![PortId(0), PortId(1)],
        ..config(2, 8)
    }
}

// ---- failures, one at a time (ONIC-12)

/// Fail access `n` and all after it (the card is gone), or only access `n`; then repair the card and start again.
fn fail_register_access(only_one: bool) {
    let count = {
        let mock = Mock::new(10);
        let mut driver = bring_up(&mock, small()).unwrap();
        driver.up().unwrap();
        mock.mmio_count()
    };
    let mut failed = 0;
    for n in 0..count {
        let mock = Mock::new(10);
        let faults = if only_one {
            Faults { mmio_at: Some(n), ..Faults::default() }
        } else {
            Faults { mmio_from: Some(n), ..Faults::default() }
        };
        mock.fail(faults);
        let started = bring_up(&mock, small()).map_err(|e| e.to_string()).and_then(|mut driver| {
            let up = driver.up().map_err(|e| e.to_string());
            assert!(!driver.is_up() || up.is_ok());
            mock.fail(Faults::default());
            // What could not be stopped while the card was gone is stopped now.
            driver.remove().map_err(|e| e.to_string())?;
            up
        });
        failed += u64::from(started.is_err());
        mock.fail(Faults::default());
        mock.assert_clean();
        let mut driver = bring_up(&mock, small()).expect("a second start works");
        driver.up().expect("a second up works");
        assert_works(&mock, &mut driver, 0);
    }
    assert_eq!(failed, count, "every register access matters: none is ignored");
}

#[test]
fn a_card_that_goes_away_at_any_access_leaves_nothing_behind() {
    fail_register_access(false);
}

#[test]
fn one_failing_access_leaves_nothing_behind() {
    fail_register_access(true);
}

#[test]
fn a_context_command_that_stays_busy_leaves_nothing_behind() {
    let count = {
        let mock = Mock::new(10);
        driver_up(&mock, small());
        mock.command_count()
    };
    for n in 0..count {
        let mock = Mock::new(10);
        mock.fail(Faults { busy_at: Some(n), ..Faults::default() });
        let text = match bring_up(&mock, small()) {
            Err(e) => e.to_string(),
            Ok(mut driver) => match driver.up() {
                Err(e) => e.to_string(),
                // The last commands are those of `drop`, in the count above.
                Ok(()) => continue,
            },
        };
        assert!(text.contains("still busy after"), "{text}");
        mock.fail(Faults::default());
        mock.assert_clean();
        let mut driver = driver_up(&mock, small());
        assert_works(&mock, &mut driver, 0);
    }
}

#[test]
fn an_allocation_that_fails_leaves_nothing_behind() {
    let count = {
        let mock = Mock::new(10);
        let driver = driver_up(&mock, small());
        let count = mock.alloc_count();
        drop(driver);
        count
    };
    // Two queues: TX rings, RX rings, completion rings, 7 pages each.
    assert_eq!(count, 2 + 2 * (2 + 7));
    for n in 0..count {
        let mock = Mock::new(10);
        let mut driver = bring_up(&mock, small()).unwrap();
        mock.fail(Faults { alloc_at: Some(n), ..Faults::default() });
        assert!(matches!(driver.up(), Err(UpError::Queue { cause: Cause::Dma(_), .. })));
        assert!(!driver.is_up());
        assert_eq!(mock.state().pages_out, 0, "allocation {n}");
        mock.fail(Faults::default());
        driver.up().expect("a second up works");
        assert_works(&mock, &mut driver, 0);
        drop(driver);
        mock.assert_clean();
    }
}

/// A queue that the card does not let go keeps its memory until it does.
#[test]
fn memory_of_a_queue_that_cannot_be_stopped_is_kept() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, small());
    mock.fail(Faults { busy_from: Some(0), ..Faults::default() });
    assert!(matches!(driver.down(), Err(StopError::Card { .. })));
    assert_eq!((driver.is_up(), driver.parked()), (false, 4));
    assert_eq!(mock.state().pages_out, 14, "nothing was freed");
    mock.fail(Faults::default());
    driver.down().unwrap();
    assert_eq!((driver.parked(), mock.state().pages_out), (0, 0));
    driver.up().unwrap();
    assert_works(&mock, &mut driver, 0);
}

/// A queue that can't be restarted takes its partner down with it, but nothing is lost.
#[test]
fn a_restart_that_fails_loses_nothing() {
    for (rx, busy_at) in [(true, 0), (true, 6), (false, 0), (false, 4)] {
        let mock = Mock::new(10);
        let mut driver = driver_up(&mock, small());
        mock.fail(Faults { busy_at: Some(busy_at), ..Faults::default() });
        let restarted = if rx { driver.restart_rx(1) } else { driver.restart_tx(1) };
        assert!(restarted.is_err());
        assert_eq!(driver.restart_rx(1), Err(ChangeError::NoSuchQueue { rel_qid: 1 }));
        driver.down().unwrap();
        driver.up().unwrap();
        assert_works(&mock, &mut driver, 0);
        driver.remove().unwrap();
        mock.assert_clean();
    }
}

#[test]
fn a_cmac_that_is_not_there_is_named() {
    let mock = Mock::new(10);
    mock.fail(Faults { cmac_version: Some(0xDEAD_BEEF), ..Faults::default() });
    let error = bring_up(&mock, small()).err().unwrap();
    assert_eq!(error.step, Step::Cmac(PortId(0)));
    assert_eq!(error.cause, Cause::NoCmac { port: PortId(0), version: 0xDEAD_BEEF });
    assert_eq!(mock.reg(2, 0x1000), 0, "the shell's queue range is taken back");
    mock.assert_clean();
}

#[test]
fn a_reset_that_never_ends_is_an_error_and_not_a_hang() {
    let mock = Mock::new(10);
    mock.fail(Faults { in_reset: true, ..Faults::default() });
    let error = bring_up(&mock, small()).err().unwrap();
    assert!(matches!(error.cause, Cause::InReset { port: PortId(0), waited_ns: 1000.. }), "{error}");
    mock.assert_clean();
}

#[test]
fn too_few_vectors_are_an_error_unless_everything_is_polled() {
    for granted in 0..3 {
        let mock = Mock::new(granted);
        let error = bring_up(&mock, small()).err().unwrap();
        assert_eq!(error.step, Step::Settings);
        assert_eq!(error.cause, Cause::NoVectors { granted, reserved: 2 });
        assert_eq!(mock.mmio_count(), 0, "nothing was touched");
        let polled = DeviceConfig { moderation: Moderation { interrupt: false, ..small().moderation }, ..small() };
        let mut driver = driver_up(&mock, polled);
        assert_works(&mock, &mut driver, 0);
        assert!(mock.take_doorbells().iter().all(|(at, value)| at % 16 != 12 || value >> 28 == 0), "never armed");
    }
}

/// ONIC-11.
#[test]
fn no_queues_is_an_error_before_anything_is_touched() {
    let mock = Mock::new(10);
    let error = bring_up(&mock, DeviceConfig { queues: 0, ..small() }).err().unwrap();
    assert_eq!(error.cause, Cause::Config(ConfigError::NoQueues));
    assert_eq!(mock.mmio_count(), 0);
    let mut driver = driver_up(&mock, small());
    driver.down().unwrap();
    assert_eq!(driver.set_queue_count(0), Err(ChangeError::Config(ConfigError::NoQueues)));
}

// ---- settings

#[test]
fn a_ring_that_cannot_hold_the_longest_frame_is_refused() {
    let mock = Mock::new(10);
    // 9596 bytes need 38 buffers of 256: more than 31 per frame.
    let tiny = DeviceConfig { rx_buffer: TableEntry::Value(256), max_frame_len_bytes: 9596, ..small() };
    assert!(matches!(bring_up(&mock, tiny).err().unwrap().cause, Cause::Geometry(_)));
    // 5 buffers of 2048, in a ring that lends out 4.
    let short = DeviceConfig { max_frame_len_bytes: 9596, rx_ring: TableEntry::Value(6), ..small() };
    let error = bring_up(&mock, short.clone()).err().unwrap();
    assert_eq!(
        error.cause,
        Cause::RingTooSmall { entries: 6, capacity: 4, frame_len_bytes: 9596, needed: 5 },
        "{error}"
    );
    assert_eq!(mock.mmio_count(), 0, "nothing was touched");
    driver_up(&mock, DeviceConfig { rx_ring: TableEntry::Value(7), ..short });
    for entries in [0, 2, 3] {
        let refused = bring_up(&mock, DeviceConfig { tx_ring: TableEntry::Value(entries), ..small() });
        assert!(matches!(refused.err().unwrap().cause, Cause::Table(TableError::TooSmall { .. })));
    }
}

#[test]
fn any_ring_size_is_programmed_where_the_contexts_look() {
    for (tx, rx) in [(4, 5), (77, 4096), (65535, 4), (1024, 64)] {
        let mock = Mock::new(10);
        let rings = DeviceConfig { tx_ring: TableEntry::Value(tx), rx_ring: TableEntry::Value(rx), ..small() };
        let driver = driver_up(&mock, rings);
        let size = |index: u32| mock.reg(0, 0x204 + 4 * index);
        assert_eq!(size(mock.context(1, 0)[1] >> 12 & 15), u32::from(tx));
        assert_eq!(size(mock.context(0, 0)[1] >> 12 & 15), u32::from(rx));
        assert_eq!(size(mock.context(6, 0)[0] >> 28), u32::from(rx));
        assert_eq!((driver.tx_ring_entries(), driver.rx_ring_entries()), (tx, rx));
        assert_eq!(mock.buffers(0), rx - 2);
    }
}

/// Another function takes the tables as function 0 left them, and its queues begin at its base.
#[test]
fn other_functions_use_the_tables_of_function_0() {
    let mock = Mock::new(9);
    mock.state_tables(&[(0x204 + 4 * 3, 100), (0xAB0 + 4 * 9, 1600)]);
    let second = DeviceConfig {
        rx_ring: TableEntry::Value(100),
        tx_ring: TableEntry::Index(3),
        rx_buffer: TableEntry::Value(1600),
        queues: 3,
        ..DeviceConfig::new(FuncId(1))
    };
    let mut driver = driver_up(&mock, second.clone());
    assert_eq!(driver.geometry().hw_len_bytes(), 1600);
    assert_eq!(mock.context(12, 1)[..2], [64, 3]);
    assert_eq!(mock.reg(2, 0x2000), 64 << 16 | 3);
    assert_works(&mock, &mut driver, 64);
    assert!(mock.take_log().iter().all(|access| !access.write || access.offset != 0xB04), "no error interrupt");
    driver.remove().unwrap();
    mock.assert_clean();
    let refused = bring_up(&mock, DeviceConfig { rx_ring: TableEntry::Value(101), ..second });
    assert!(matches!(refused.err().unwrap().cause, Cause::Table(TableError::NotProgrammed { value: 101, .. })));
}

#[test]
fn eqdma_gets_its_own_masks() {
    let mock = Mock::new(10);
    let driver = bring_up(&mock, DeviceConfig { ip_version: IpVersion::Q40, ..small() }).unwrap();
    // Queue range (bit 5) is reported, and H2C hangs on root bit 16 (`spec/qdma.md` section 0).
    assert_eq!((mock.reg(0, 0x268) >> 5 & 1, mock.reg(0, 0x24C) >> 16 & 1), (1, 1));
    assert_eq!(mock.reg(0, 0xB04), 9 << 12 | 1 << 24);
    assert_eq!(driver.error_vector(), Some(Vector(9)));
    assert!(mock.vector_enabled(9));
}

/// ONIC-18: an error is named, cleared and the interrupt is armed again.
#[test]
fn errors_are_named_cleared_and_rearmed() {
    let mock = Mock::new(10);
    let driver = bring_up(&mock, small()).unwrap();
    mock.state_tables(&[(0x248, 1 << 3), (0x264, 1 << 5), (0xAF0, 1), (0xB04, 9 << 12)]);
    let errors = driver.service_errors().unwrap().expect("function 0");
    assert_eq!(errors.iter().collect::<Vec<_>>(), [("target", 1 << 5)]);
    assert_eq!(mock.reg(0, 0xB04), 9 << 12 | 1 << 24);
    let writes: Vec<u32> = mock.take_log().iter().rev().filter(|a| a.write).take(3).map(|a| a.offset).collect();
    assert_eq!(writes, [0xB04, 0x248, 0x264], "leaf, root, arm; latest first");
}

// ---- RSS

#[test]
fn what_is_set_is_what_is_read() {
    let mock = Mock::new(10);
    let mut driver = bring_up(&mock, DeviceConfig { queues: 4, ..small() }).unwrap();
    assert_eq!(driver.rss_table(), Ok(Table::equal(4).unwrap()));
    let key = Key(std::array::from_fn(|k| k as u8));
    driver.set_rss_key(key).unwrap();
    assert_eq!(driver.rss_key(), Ok(key));
    assert_eq!((mock.reg(2, 0x1600), mock.reg(2, 0x1604)), (0x0302_0100, 0x0706_0504));
    let table = Table::weighted(&[1, 2, 3, 4]).unwrap();
    driver.set_rss_table(&table).unwrap();
    assert_eq!(driver.rss_table(), Ok(table));
    assert_eq!(driver.hash_function().name(), "opennic");
    let refused = driver.set_hash_function(HashFunction::Microsoft);
    assert_eq!(refused, Err(ChangeError::Rss(RssError::HashFunction { asked: HashFunction::Microsoft })));
}

/// B-33: a bad entry late in the list writes nothing at all.
#[test]
fn a_bad_table_is_refused_whole() {
    let mock = Mock::new(10);
    let mut driver = bring_up(&mock, DeviceConfig { queues: 4, ..small() }).unwrap();
    let before = mock.mmio_count();
    let mut entries = [1; 128];
    entries[127] = 4;
    let refused = driver.set_rss_table(&Table::from_slice(&entries).unwrap());
    assert_eq!(refused, Err(ChangeError::Rss(RssError::NoSuchQueue { entry: 127, queue: 4, last: 3 })));
    assert_eq!(mock.mmio_count(), before);
}

/// RSS-08.
#[test]
fn a_new_queue_count_rebuilds_the_default_table_and_spares_the_users() {
    let mock = Mock::new(10);
    let mut driver = bring_up(&mock, DeviceConfig { queues: 4, ..small() }).unwrap();
    for queues in [2, 8] {
        driver.set_queue_count(queues).unwrap();
        assert_eq!(driver.rss_table(), Ok(Table::equal(queues).unwrap()));
        assert_eq!((mock.reg(2, 0x1000), mock.context(12, 0)[1]), (u32::from(queues), u32::from(queues)));
    }
    let table = Table::equal(3).unwrap();
    driver.set_rss_table(&table).unwrap();
    driver.set_queue_count(3).unwrap();
    assert_eq!(driver.rss_table(), Ok(table), "a table that fits is kept");
    let before = mock.mmio_count();
    let refused = driver.set_queue_count(2);
    assert_eq!(refused, Err(ChangeError::Rss(RssError::NoSuchQueue { entry: 2, queue: 2, last: 1 })));
    assert_eq!((mock.mmio_count(), driver.config().queues), (before, 3));
    driver.reset_rss_table().unwrap();
    driver.set_queue_count(2).unwrap();
    driver.up().unwrap();
    assert_works(&mock, &mut driver, 0);
    assert_eq!(driver.set_queue_count(4), Err(ChangeError::Up));
}

// ---- up and down

#[test]
fn a_hundred_times_up_and_down_under_load() {
    let mock = Mock::new(10);
    let mut driver = bring_up(&mock, small()).unwrap();
    let (mut sent, mut seen) = (0, 0);
    for round in 0..100 {
        driver.up().unwrap();
        for n in 0..5 {
            sent += u64::from(mock.receive(round % 2, &numbered(n, 60)));
        }
        seen += driver.rx(round % 2).unwrap().poll(3, |_| {}).unwrap() as u64;
        driver.tx(1).unwrap().post(&numbered(1, 60)).unwrap();
        driver.down().unwrap();
        assert_eq!(mock.state().pages_out, 0);
    }
    let rx = driver.rx_totals();
    assert_eq!((rx.frames, rx.frames + rx.dropped_stopping), (seen, sent), "every frame is accounted for");
    // The card never took the frames to send: they are counted, not forgotten.
    assert_eq!((driver.tx_totals().posted, driver.tx_totals().abandoned), (100, 100));
    driver.remove().unwrap();
    mock.assert_clean();
}

#[test]
fn a_stop_waits_for_frames_that_the_card_still_takes() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, small());
    let tx = driver.tx(0).unwrap();
    tx.post(&numbered(0, 60)).unwrap();
    // Never flushed by hand: the stop publishes it. Here the card has taken it before.
    tx.flush().unwrap();
    mock.transmit(0, 1);
    driver.down().unwrap();
    assert_eq!((driver.tx_totals().completed, driver.tx_totals().abandoned), (1, 0));
}

#[test]
fn the_receiver_follows_the_queues() {
    let mock = Mock::new(10);
    let mut driver = bring_up(&mock, small()).unwrap();
    assert_eq!((mock.reg(2, 0x8014), mock.reg(2, 0xC014)), (0, 1), "port 0 is ours, port 1 another function's");
    driver.up().unwrap();
    assert_eq!(mock.reg(2, 0x8014), 1);
    assert!(mock.vector_enabled(0) && mock.vector_enabled(1));
    driver.down().unwrap();
    assert_eq!(mock.reg(2, 0x8014), 0);
    assert!(!mock.vector_enabled(0));
    assert_eq!(driver.link_up(PortId(0)), Ok(true));
}

#[test]
fn lent_queues_work_elsewhere_and_must_come_back() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, small());
    let queues = driver.take_queues();
    assert_eq!(driver.down(), Err(StopError::LentOut { count: 2 }));
    assert!(driver.rx(0).is_none());
    let back: Vec<_> = queues
        .into_iter()
        .map(|mut pair| {
            let mock = Arc::clone(&mock);
            std::thread::spawn(move || {
                assert!(mock.receive(pair.rx.qid().0, &numbered(1, 60)));
                assert_eq!(pair.rx.poll(64, |_| {}), Ok(1));
                pair
            })
        })
        .map(|thread| thread.join().unwrap())
        .rev()
        .collect();
    driver.return_queues(back);
    assert_works(&mock, &mut driver, 0);
    driver.down().unwrap();
    driver.remove().unwrap();
    mock.assert_clean();
}

/// Whoever holds the queues may free their rings at any time from then on: the card must know nothing of them.
#[test]
fn a_driver_that_goes_away_stops_the_queues_that_it_has_lent() {
    for removed in [true, false] {
        let mock = Mock::new(10);
        let mut driver = driver_up(&mock, small());
        let mut lent = driver.take_queues();
        // One has come back.
        driver.return_queues(lent.pop());
        let before_ns = driver_core::Clock::now(&*mock);
        if removed {
            let gone = driver.remove();
            assert_eq!(gone, Err(driver_core::ChangeError::Stop(StopError::LentOut { count: 1 })));
        } else {
            drop(driver);
        }
        assert!(driver_core::Clock::now(&*mock) > before_ns, "nothing in flight was waited for");
        for qid in [0, 1] {
            assert_eq!([0, 1].map(|selector| mock.context(selector, qid)[1] & 1), [0, 0], "descriptors of {qid}");
            assert_eq!(mock.context(6, qid)[3] >> 28 & 1, 0, "completions of {qid}");
            assert_eq!(mock.context(7, qid)[1] >> 13 & 1, 0, "prefetch of {qid}");
            assert!(!mock.vector_enabled(qid));
        }
        assert_eq!((mock.reg(2, 0x8014), mock.reg(2, 0x1000)), (0, 0), "receiver and range of queues");
    }
}

#[test]
fn a_driver_that_is_dropped_takes_all_down() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, small());
    driver.tx(0).unwrap().post(&[1; 60]).unwrap();
    drop(driver);
    mock.assert_clean();
    assert_eq!((mock.reg(2, 0x1000), mock.reg(0, 0xB04)), (0, 0));
}

#[test]
fn pages_handed_out_by_a_stopped_ring_are_unmapped() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, small());
    assert!(mock.receive(0, &numbered(0, 60)));
    let mut kept = None;
    driver.rx(0).unwrap().poll(1, |frame| kept = frame.take(0).ok()).unwrap();
    driver.down().unwrap();
    assert_eq!(mock.state().pages_out, 1, "the kept page only");
    let kept = kept.unwrap();
    assert_eq!(kept.bytes(), numbered(0, 60));
    assert!(kept.page.dma_addr().is_some());
    driver_core::DmaMemory::free_page(&*mock, kept.page);
    assert_eq!(driver.tx(0).map(|tx| tx.post(&[1; 60])), None::<Result<(), TxError>>);
    driver.remove().unwrap();
    mock.assert_clean();
}
