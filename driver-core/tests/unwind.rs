//! Every operation of a function's whole life fails once: each register access, allocation, mapping and vector, of bring-up,
//! up, traffic, down and removal. Afterwards nothing is left behind, and a second life works.
//!
//! The operations are counted by a wrapper around the platform; the driver knows nothing of it.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Mock, MockCoherent, MockDevicePage, MockPage, config, numbered};
use driver_core::{
    Cause, ChangeError, DeviceConfig, Direction, DmaAddr, DmaError, DmaMemory, Driver, InterruptError, Interrupts,
    MapError, Mmio, MmioError, Moderation, Platform, Timeouts, Vector,
};
use regs::{Bar, FuncId, PortId};

/// Counts what can fail, and makes one of it fail, or that one and all after it.
struct Injector {
    mock: Arc<Mock>,
    count: AtomicU64,
    from: AtomicU64,
    to: AtomicU64,
}

impl Injector {
    fn new(mock: &Arc<Mock>) -> Arc<Self> {
        let never = AtomicU64::new(u64::MAX);
        Arc::new(Self { mock: Arc::clone(mock), count: AtomicU64::new(0), from: never, to: AtomicU64::new(u64::MAX) })
    }

    /// Operations `from..to` fail, counted from here.
    fn fail(&self, from: u64, to: u64) {
        self.count.store(0, Ordering::Relaxed);
        self.from.store(from, Ordering::Relaxed);
        self.to.store(to, Ordering::Relaxed);
    }

    fn repair(&self) {
        self.fail(u64::MAX, u64::MAX);
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    fn fails(&self) -> bool {
        let n = self.count.fetch_add(1, Ordering::Relaxed);
        (self.from.load(Ordering::Relaxed)..self.to.load(Ordering::Relaxed)).contains(&n)
    }
}

impl Platform for Injector {
    type Mmio = Injector;
    type Clock = Mock;
    type Interrupts = Injector;
    type Dma = Injector;

    fn mmio(&self) -> &Injector {
        self
    }
    fn clock(&self) -> &Mock {
        &self.mock
    }
    fn interrupts(&self) -> &Injector {
        self
    }
    fn dma(&self) -> &Injector {
        self
    }
}

impl Mmio for Injector {
    fn read32(&self, bar: Bar, offset: u32) -> Result<u32, MmioError> {
        if self.fails() {
            Err(MmioError::TimedOut { bar, offset, waited_ns: 1 })
        } else {
            self.mock.read32(bar, offset)
        }
    }

    fn write32(&self, bar: Bar, offset: u32, value: u32) -> Result<(), MmioError> {
        if self.fails() {
            Err(MmioError::TimedOut { bar, offset, waited_ns: 1 })
        } else {
            self.mock.write32(bar, offset, value)
        }
    }
}

impl Interrupts for Injector {
    fn count(&self) -> u16 {
        Interrupts::count(&*self.mock)
    }

    fn enable(&self, vector: Vector) -> Result<(), InterruptError> {
        if self.fails() {
            return Err(InterruptError::NoSuchVector { vector: vector.0, count: 0 });
        }
        self.mock.enable(vector)
    }

    /// Masking a vector is the platform's own affair and doesn't fail.
    fn disable(&self, vector: Vector) -> Result<(), InterruptError> {
        self.mock.disable(vector)
    }

    fn take(&self) -> Option<Vector> {
        self.mock.take()
    }
}

impl DmaMemory for Injector {
    type Coherent = MockCoherent;
    type Page = MockPage;
    type DevicePage = MockDevicePage;

    fn page_size(&self) -> usize {
        self.mock.page_size()
    }

    fn alloc_coherent(&self, len_bytes: usize) -> Result<MockCoherent, DmaError> {
        if self.fails() { Err(DmaError::OutOfMemory { len_bytes }) } else { self.mock.alloc_coherent(len_bytes) }
    }

    fn alloc_page(&self) -> Result<MockPage, DmaError> {
        if self.fails() { Err(DmaError::OutOfMemory { len_bytes: 1 }) } else { self.mock.alloc_page() }
    }

    fn free_page(&self, page: MockPage) {
        self.mock.free_page(page);
    }

    fn map(&self, page: MockPage, way: Direction, len: usize) -> Result<MockDevicePage, MapError<MockPage>> {
        if self.fails() {
            return Err(MapError { page, cause: DmaError::OutOfMemory { len_bytes: len } });
        }
        self.mock.map(page, way, len)
    }

    fn device_addr(&self, page: &MockDevicePage) -> DmaAddr {
        self.mock.device_addr(page)
    }

    fn sync_for_cpu(&self, page: MockDevicePage, offset: usize, len: usize) -> MockPage {
        self.mock.sync_for_cpu(page, offset, len)
    }

    fn sync_for_device(&self, page: MockPage, offset: usize, len: usize) -> Result<MockDevicePage, MapError<MockPage>> {
        if self.fails() {
            return Err(MapError { page, cause: DmaError::Invalid { why: "injected" } });
        }
        self.mock.sync_for_device(page, offset, len)
    }

    fn unmap(&self, page: MockDevicePage, len: usize) -> MockPage {
        self.mock.unmap(page, len)
    }

    fn split(&self, page: &mut MockPage, len: usize) -> Result<MockPage, DmaError> {
        self.mock.split(page, len)
    }

    fn join(&self, page: &mut MockPage, fragment: MockPage) -> Result<(), MapError<MockPage>> {
        self.mock.join(page, fragment)
    }

    fn dma_rmb(&self) {
        self.mock.dma_rmb();
    }

    fn dma_wmb(&self) {
        self.mock.dma_wmb();
    }
}

/// Both ports are there, so that function 0 also sets up the one that is not its own.
fn settings(func: u8) -> DeviceConfig {
    DeviceConfig {
        func: FuncId(func),
        master: func == 0,
        timeouts: Timeouts { context_ns: 1000, reset_ns: 1000, quiesce_ns: 1000, settle_ns: 100 },
        rss_key: Some(driver_core::rss::Key([3; 40])),
        ports: vec![PortId(0), PortId(1)],
        own_port: Some(PortId(func)),
        ..config(2, 8)
    }
}

/// A whole life. The first failure ends it: the driver is dropped where it stands, and has to clean up.
fn live(platform: &Arc<Injector>, config: DeviceConfig) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let mut driver = Driver::<Injector>::bring_up(Arc::clone(platform), config).map_err(|e| text(&e))?;
    driver.up().map_err(|e| text(&e))?;
    let base = driver.config().base();
    for rel_qid in 0..driver.config().queues {
        let pair = driver.pair(rel_qid).expect("the queue is up");
        pair.tx.post(&numbered(8, 60)).map_err(|e| text(&e))?;
        pair.tx.flush().map_err(|e| text(&e))?;
        platform.mock.transmit(base + rel_qid, 9);
        pair.tx.reap().map_err(|e| text(&e))?;
        platform.mock.receive(base + rel_qid, &numbered(7, 60));
        pair.rx.poll(64, |_| {}).map_err(|e| text(&e))?;
    }
    driver.statistics().map_err(|e| text(&e))?;
    driver.down().map_err(|e| text(&e))?;
    driver.remove().map_err(|e| text(&e))
}

/// What [`live`] takes, in operations.
fn operations(func: u8) -> u64 {
    let platform = Injector::new(&Mock::new(10));
    platform.mock.state_tables(&TABLES);
    live(&platform, settings(func)).expect("nothing fails");
    platform.count()
}

/// What function 0 leaves for the others, as far as they use it.
const TABLES: [(u32, u32); 2] = [(0x204 + 4 * 2, 8), (0xAB0 + 4 * 4, 2048)];

/// Nothing is mapped, allocated or enabled, and the card knows the function no more.
fn assert_gone(platform: &Injector, func: u8, n: u64) {
    let mock = &platform.mock;
    mock.assert_clean();
    assert_eq!(mock.reg(2, 0x1000 + 0x1000 * u32::from(func)), 0, "operation {n}: the shell's queue range is left");
    assert_eq!(mock.context(12, u16::from(func))[1], 0, "operation {n}: the function map is left");
    assert_eq!(mock.reg(2, 0x8014 + 0x4000 * u32::from(func)), 0, "operation {n}: the port's receiver is on");
    assert_eq!(mock.reg(0, 0xB04) & 1 << 24, 0, "operation {n}: the error interrupt is armed");
}

#[test]
fn any_operation_that_fails_once_leaves_nothing_behind() {
    for func in [0, 1] {
        let count = operations(func);
        assert!(count > 500, "{count} operations are too few to be a life");
        let mut survived = 0;
        for n in 0..count {
            let mock = Mock::new(10);
            mock.state_tables(&TABLES);
            let platform = Injector::new(&mock);
            platform.fail(n, n + 1);
            survived += u64::from(live(&platform, settings(func)).is_ok());
            assert_gone(&platform, func, n);
            platform.repair();
            live(&platform, settings(func)).unwrap_or_else(|e| panic!("operation {n}: a second life fails: {e}"));
            assert_gone(&platform, func, n);
        }
        // What a stop tries again ends well: the receiver, and each step of removal.
        assert!(survived <= 12, "function {func}: {survived} failures went unseen");
    }
}

/// A vector that can't be had is a refusal: the setting that needs it is not kept.
#[test]
fn a_moderation_without_its_vector_changes_nothing() {
    let platform = Injector::new(&Mock::new(10));
    let polled = Moderation { interrupt: false, ..settings(0).moderation };
    let config = DeviceConfig { moderation: polled, ..settings(0) };
    let mut driver = Driver::<Injector>::bring_up(Arc::clone(&platform), config).expect("nothing fails");
    driver.up().expect("nothing fails");
    for rel_qid in [None, Some(1)] {
        platform.fail(0, 1);
        let refused = driver.set_moderation(rel_qid, Moderation { interrupt: true, ..polled });
        assert!(matches!(refused, Err(ChangeError::Refused(Cause::Interrupt(_)))), "{refused:?}");
        platform.repair();
        driver.restart_rx(1).expect("nothing fails");
        assert_eq!(driver.rx(1).map(|rx| rx.moderation()), Some(polled));
    }
    assert_eq!(driver.config().moderation, polled);
}

#[test]
fn a_card_that_is_gone_from_any_operation_on_keeps_no_memory_once_it_is_back() {
    let count = operations(0);
    for n in 0..count {
        let mock = Mock::new(10);
        let platform = Injector::new(&mock);
        let mut driver = match Driver::<Injector>::bring_up(Arc::clone(&platform), settings(0)) {
            Ok(driver) => driver,
            Err(e) => panic!("nothing fails yet: {e}"),
        };
        platform.fail(n, u64::MAX);
        let up = driver.up();
        let down = driver.down();
        assert!(!driver.is_up());
        platform.repair();
        driver.remove().unwrap_or_else(|e| panic!("operation {n}: {e}"));
        assert_gone(&platform, 0, n);
        if up.is_ok() && down.is_ok() {
            // Past the last operation of both.
            return;
        }
    }
    panic!("up and down never worked");
}
