//! Receive queues on page pools, under an honest card: cases PP-01 to PP-04 with the queue around them, and geometry.
#![cfg(not(loom))]

mod common;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use common::{Faults, Mock, config, numbered};
use driver_core::pool::{Buffer, PagePool, PoolConfig, RecycleRing};
use driver_core::{Cause, DeviceConfig, DmaMemory, Driver, GeometryError, PageSource, TableEntry, TakenPage, UpError};

/// A ring that carries any page: the mock's are more than numbers.
struct LockedRing<T>(Mutex<VecDeque<T>>, usize);

impl<T: Send> RecycleRing<T> for LockedRing<T> {
    fn with_capacity(pages: usize) -> Self {
        Self(Mutex::new(VecDeque::new()), pages)
    }
    fn push(&self, page: T) -> Result<(), T> {
        let mut ring = self.0.lock().expect("no panic before");
        if ring.len() == self.1 {
            return Err(page);
        }
        ring.push_back(page);
        Ok(())
    }
    fn pop(&self) -> Option<T> {
        self.0.lock().expect("no panic before").pop_front()
    }
    fn len(&self) -> usize {
        self.0.lock().expect("no panic before").len()
    }
}

type Pool = PagePool<Mock, LockedRing<<Mock as DmaMemory>::DevicePage>>;
type Taken = TakenPage<<Mock as DmaMemory>::Page>;

fn brought_up(config: DeviceConfig) -> (Arc<Mock>, Driver<Mock, Pool>) {
    let mock = Mock::new(10);
    let driver = Driver::bring_up(Arc::clone(&mock), config).expect("bring-up");
    (mock, driver)
}

fn pool(config: PoolConfig) -> impl Fn(u16) -> Pool {
    move |_| Pool::new(config).expect("a valid pool")
}

/// Poll until nothing is left; pages are kept, and what could not be kept is copied.
fn keep_all(driver: &mut Driver<Mock, Pool>) -> (Vec<Taken>, Vec<Vec<u8>>) {
    let (mut kept, mut copied) = (Vec::new(), Vec::new());
    let rx = driver.rx(0).expect("up");
    while rx
        .poll(64, |frame| match frame.take(0) {
            Ok(page) => kept.push(page),
            Err(_) => {
                let mut bytes = Vec::new();
                frame.append_to(&mut bytes);
                copied.push(bytes);
            }
        })
        .expect("an honest card")
        == 64
    {}
    (kept, copied)
}

#[test]
fn frames_are_handed_up_with_their_pages_and_the_pages_come_home() {
    let (mock, mut driver) = brought_up(config(1, 64));
    driver.up_with(pool(PoolConfig { pool_size: 64, ..PoolConfig::default() })).expect("up");
    let mut sent = 0;
    for round in 0..200_u32 {
        let first = sent;
        while sent - first < 1 + round % 60 && mock.receive(0, &numbered(sent, 60)) {
            sent += 1;
        }
        let (kept, copied) = keep_all(&mut driver);
        assert!(copied.is_empty());
        let recycler = driver.rx(0).expect("up").source().recycler();
        for (page, number) in kept.into_iter().zip(first..) {
            assert_eq!(page.bytes(), numbered(number, 60));
            if number % 3 == 0 {
                recycler.put(&*mock, page.page, 0);
            } else {
                driver.rx(0).expect("up").give_back(page.page);
            }
        }
    }
    let pool = driver.rx(0).expect("up").source();
    // The ring's pages are out, and no others.
    assert_eq!(pool.in_flight(), 63);
    let counted = pool.statistics();
    assert!(counted.alloc.slow <= 4, "{counted:?}");
    assert!(counted.alloc.refill > 0 && counted.recycle.ring > 0 && counted.recycle.cached > 0, "{counted:?}");
    driver.remove().expect("removed");
    mock.assert_clean();
}

/// PP-03: up and down a hundred times with frames waiting in the ring, and pages still with the stack.
#[test]
fn pp_03_a_hundred_downs_under_load_leave_no_page() {
    let (mock, mut driver) = brought_up(config(1, 64));
    for round in 0..100 {
        driver.up_with(pool(PoolConfig { pool_size: 64, ..PoolConfig::default() })).expect("up");
        (0..20).for_each(|number| assert!(mock.receive(0, &numbered(number, 60))));
        let (kept, _) = keep_all(&mut driver);
        let recycler = driver.rx(0).expect("up").source().recycler();
        // More that nobody has fetched.
        (0..30).for_each(|number| assert!(mock.receive(0, &numbered(number, 60))));
        driver.down().expect("down");
        assert_eq!((recycler.held(), mock.state().pages_out), (20, 20), "round {round}");
        kept.into_iter().for_each(|page| recycler.put(&*mock, page.page, 0));
        assert_eq!((recycler.held(), mock.state().pages_out), (0, 0), "round {round}");
    }
    driver.remove().expect("removed");
    mock.assert_clean();
}

/// PP-02: a queue that is started afresh keeps its pool, and loses nothing.
#[test]
fn pp_02_a_thousand_restarts_of_a_queue_leave_no_page() {
    let (mock, mut driver) = brought_up(config(1, 16));
    driver.up_with(pool(PoolConfig { pool_size: 16, ..PoolConfig::default() })).expect("up");
    for round in 0..1_000 {
        assert!(mock.receive(0, &numbered(round, 60)));
        let (kept, _) = keep_all(&mut driver);
        driver.restart_rx(0).expect("restarted");
        let rx = driver.rx(0).expect("up");
        kept.into_iter().for_each(|page| rx.give_back(page.page));
        assert_eq!(rx.source().in_flight(), 15, "round {round}");
    }
    driver.remove().expect("removed");
    mock.assert_clean();
}

/// PP-04: memory runs out for a while. Frames go on in the pages that there are, each failure is counted, and pages are had
/// again when memory is back.
#[test]
fn pp_04_without_memory_frames_still_come_and_failures_are_counted() {
    let (mock, mut driver) = brought_up(config(1, 64));
    driver.up_with(pool(PoolConfig { pool_size: 64, ..PoolConfig::default() })).expect("up");
    // What the cache has left is used up first.
    let mut out = Vec::new();
    mock.fail(Faults { no_memory: true, ..Faults::default() });
    let mut copied = 0;
    for number in 0..300 {
        assert!(mock.receive(0, &numbered(number, 60)));
        let (kept, copies) = keep_all(&mut driver);
        kept.iter().for_each(|page| assert_eq!(page.bytes(), numbered(number, 60)));
        copies.iter().for_each(|bytes| assert_eq!(*bytes, numbered(number, 60)));
        assert_eq!(kept.len() + copies.len(), 1);
        copied += copies.len() as u64;
        out.extend(kept);
    }
    assert!(copied > 200, "memory was out all the time, and {copied} frames were copied");
    assert_eq!(driver.rx(0).expect("up").counters().alloc_failures, copied);
    mock.fail(Faults::default());
    assert!(mock.receive(0, &numbered(300, 60)));
    assert_eq!(keep_all(&mut driver).0.into_iter().map(|page| out.push(page)).count(), 1, "memory is back");
    let rx = driver.rx(0).expect("up");
    out.into_iter().for_each(|page| rx.give_back(page.page));
    driver.remove().expect("removed");
    mock.assert_clean();
}

/// Several buffers in a page, several buffers in a frame.
#[test]
fn fragments_carry_frames_of_several_buffers() {
    let config = DeviceConfig { rx_buffer: TableEntry::Value(1024), ..config(1, 64) };
    let (mock, mut driver) = brought_up(config);
    let buffer = Buffer::Fragment { len_bytes: 2048 };
    driver.up_with(pool(PoolConfig { buffer, fragments_max: 256, ..PoolConfig::default() })).expect("up");
    for round in 0..500 {
        let frame = numbered(round, 60 + (round as usize * 37) % 1400);
        assert!(mock.receive(0, &frame));
        let rx = driver.rx(0).expect("up");
        let (mut whole, mut taken) = (Vec::new(), Vec::new());
        let polled = rx.poll(64, |frame| {
            frame.append_to(&mut whole);
            taken.extend((0..frame.segment_count()).filter_map(|i| frame.take(i).ok()));
        });
        assert_eq!((polled, whole), (Ok(1), frame));
        let recycler = rx.source().recycler();
        for (i, page) in taken.into_iter().enumerate() {
            if (i as u32 + round).is_multiple_of(2) {
                rx.give_back(page.page);
            } else {
                recycler.put(&*mock, page.page, 0);
            }
        }
    }
    driver.remove().expect("removed");
    mock.assert_clean();
}

/// A buffer that fits a page doesn't fit half of one: the queue is not set up.
#[test]
fn a_queue_whose_card_could_write_past_its_fragment_is_refused() {
    let (mock, mut driver) = brought_up(config(1, 64));
    let buffer = Buffer::Fragment { len_bytes: 2048 };
    let refused = driver.up_with(pool(PoolConfig { buffer, fragments_max: 64, ..PoolConfig::default() }));
    let Err(UpError::Queue { cause: Cause::Geometry(cause), .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(cause, GeometryError::PastPage { hw_len_bytes: 2048, page_bytes: 2048, limit_bytes: 1472 });
    driver.up_with(|_| Pool::default()).expect("whole pages");
    assert_eq!(driver.rx(0).expect("up").source().buffer_bytes(&*mock), 4096);
    driver.remove().expect("removed");
    mock.assert_clean();
}

/// A source comes with pages, and its queue can't be started: they are let go of, whatever stood against it.
#[test]
fn a_source_that_gets_no_queue_is_drained() {
    let filled = |mock: &Arc<Mock>, config| {
        let mut source = Pool::new(config).expect("a valid pool");
        let page = source.alloc(&**mock).expect("memory");
        let page = mock.sync_for_cpu(page, 0, 0);
        source.put(&**mock, page, 0);
        source
    };
    let stale = PoolConfig { max_len: 2047, ..PoolConfig::default() };
    for (pool, no_memory) in [(stale, false), (PoolConfig::default(), true)] {
        let (mock, mut driver) = brought_up(config(1, 64));
        let up = driver.up_with(|_| {
            let source = filled(&mock, pool);
            mock.fail(Faults { no_memory, ..Faults::default() });
            source
        });
        let unsynced = GeometryError::Unsynced { hw_len_bytes: 2048, start: 256, end: 256 + 2047 };
        match up {
            Err(UpError::Queue { cause: Cause::Geometry(cause), .. }) => assert_eq!(cause, unsynced),
            Err(UpError::Queue { cause: Cause::Dma(_), .. }) => assert!(no_memory),
            other => panic!("{other:?}"),
        }
        assert_eq!(mock.state().pages_out, 0);
        driver.remove().expect("a card that answers");
        mock.assert_clean();
    }
}

/// Pages of one queue's pool that another queue sends are the pool's to have back: a look for completions, a restart and a
/// stop must not free them behind its back.
#[test]
fn pages_found_in_a_transmit_queue_go_home_to_their_pool() {
    let (mock, mut driver) = brought_up(config(2, 64));
    let both_ways = PoolConfig { direction: driver_core::Direction::Bidirectional, ..PoolConfig::default() };
    driver.up_with(pool(both_ways)).expect("up");
    let recycler = driver.rx(0).expect("up").source().recycler();
    let in_ring = driver.rx(0).expect("up").source().in_flight();
    let redirect = |driver: &mut Driver<Mock, Pool>| {
        for n in 0..2 {
            assert!(mock.receive(0, &numbered(n, 60)));
        }
        for TakenPage { page, offset, len_bytes } in keep_all(driver).0 {
            let frame = driver_core::XdpFrame { page, offset, len_bytes, meta_len_bytes: 0 };
            driver.tx(1).expect("up").xdp_xmit(frame).expect("room");
        }
        let tx = driver.tx(1).expect("up");
        tx.flush().expect("a card that answers");
        // One is sent, the other under way.
        mock.transmit(1, 1);
        assert_eq!(tx.reap(), Ok(1));
    };
    redirect(&mut driver);
    assert_eq!(driver.rx(0).expect("up").source().in_flight(), in_ring + 2);
    driver.restart_tx(1).expect("a card that answers");
    let source = driver.rx(0).expect("up").source();
    assert_eq!((source.in_flight(), source.statistics().recycle.released_refcnt), (in_ring, 0));
    redirect(&mut driver);
    driver.down().expect("a card that answers");
    assert_eq!(recycler.held(), 0);
    driver.remove().expect("a card that answers");
    mock.assert_clean();
}
