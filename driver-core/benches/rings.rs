//! What the driver itself costs per frame: `cargo bench -p driver-core`.
//!
//! The platform here does nothing that takes time: a page changes hands by a move, a doorbell is one store. What the
//! card would do is done outside the clock. So the figure is the driver's own work on warm caches, no more.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use driver_core::{
    Clock, Coherent, DeviceConfig, Direction, DmaAddr, DmaError, DmaMemory, Driver, InterruptError, Interrupts,
    MapError, Mmio, MmioError, Page, Platform, TableEntry, Vector,
};
use regs::{Bar, FuncId};

const BURST: usize = 64;
const BURSTS: usize = 40_000;
const RUNS: usize = 7;
const RING: u16 = 1024;

/// A card that answers what bring-up asks, and host memory.
#[derive(Default)]
struct Idle {
    doorbells: [AtomicU32; 4],
    addr: AtomicU64,
    rings: std::sync::Mutex<Vec<Arc<Vec<AtomicU64>>>>,
}

struct Words(u64, Arc<Vec<AtomicU64>>);

impl Coherent for Words {
    fn dma_addr(&self) -> DmaAddr {
        DmaAddr(self.0)
    }
    fn len_bytes(&self) -> usize {
        8 * self.1.len()
    }
    fn load16(&self, offset: usize) -> u16 {
        (self.load64(offset & !7) >> (8 * (offset & 7))) as u16
    }
    fn load32(&self, offset: usize) -> u32 {
        (self.load64(offset & !7) >> (8 * (offset & 7))) as u32
    }
    fn load64(&self, offset: usize) -> u64 {
        self.1[offset / 8].load(Ordering::Relaxed)
    }
    fn store32(&self, _: usize, _: u32) {
        unreachable!("the driver stores 64 bits")
    }
    fn store64(&self, offset: usize, value: u64) {
        self.1[offset / 8].store(value, Ordering::Relaxed);
    }
}

/// Bytes, their device address, and 1 if they are mapped. A `bool` would make its moves unaligned, and slow the bench.
struct Sheet(Box<[u8]>, u64, u64);

impl Page for Sheet {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
    fn dma_addr(&self) -> Option<DmaAddr> {
        (self.2 != 0).then_some(DmaAddr(self.1))
    }
}

impl DmaMemory for Idle {
    type Coherent = Words;
    type Page = Sheet;
    type DevicePage = Sheet;

    fn page_size(&self) -> usize {
        4096
    }
    fn alloc_coherent(&self, len_bytes: usize) -> Result<Words, DmaError> {
        let words: Arc<Vec<AtomicU64>> = Arc::new((0..len_bytes / 8).map(|_| AtomicU64::new(0)).collect());
        self.rings.lock().expect("one thread").push(Arc::clone(&words));
        Ok(Words(self.addr.fetch_add(1 << 20, Ordering::Relaxed), words))
    }
    fn alloc_page(&self) -> Result<Sheet, DmaError> {
        Ok(Sheet(vec![0; 4096].into(), self.addr.fetch_add(4096, Ordering::Relaxed), 0))
    }
    fn free_page(&self, _: Sheet) {}
    fn map(&self, page: Sheet, _: Direction, _: usize) -> Result<Sheet, MapError<Sheet>> {
        Ok(Sheet(page.0, page.1, 1))
    }
    fn device_addr(&self, page: &Sheet) -> DmaAddr {
        DmaAddr(page.1)
    }
    fn sync_for_cpu(&self, page: Sheet, _: usize, _: usize) -> Sheet {
        page
    }
    fn sync_for_device(&self, page: Sheet, _: usize, _: usize) -> Result<Sheet, MapError<Sheet>> {
        Ok(page)
    }
    fn unmap(&self, page: Sheet, _: usize) -> Sheet {
        page
    }
    fn split(&self, _: &mut Sheet, _: usize) -> Result<Sheet, DmaError> {
        Err(DmaError::Invalid { why: "the bench has no fragments" })
    }
    fn join(&self, _: &mut Sheet, fragment: Sheet) -> Result<(), MapError<Sheet>> {
        Err(MapError { page: fragment, cause: DmaError::Invalid { why: "the bench has no fragments" } })
    }
    fn dma_rmb(&self) {
        std::sync::atomic::fence(Ordering::Acquire);
    }
    fn dma_wmb(&self) {
        std::sync::atomic::fence(Ordering::Release);
    }
}

impl Mmio for Idle {
    fn read32(&self, bar: Bar, offset: u32) -> Result<u32, MmioError> {
        Ok(match (bar, offset) {
            (Bar::Shell, 0x8024) => 0x301,
            (Bar::Shell, 0x10) => u32::MAX,
            _ => 0,
        })
    }
    fn write32(&self, _: Bar, offset: u32, value: u32) -> Result<(), MmioError> {
        self.doorbells[(offset / 4 % 4) as usize].store(value, Ordering::Relaxed);
        Ok(())
    }
}

impl Clock for Idle {
    fn now(&self) -> u64 {
        self.addr.fetch_add(1_000_000, Ordering::Relaxed)
    }
    fn wait(&self, _: u64) {}
}

impl Interrupts for Idle {
    fn count(&self) -> u16 {
        10
    }
    fn enable(&self, _: Vector) -> Result<(), InterruptError> {
        Ok(())
    }
    fn disable(&self, _: Vector) -> Result<(), InterruptError> {
        Ok(())
    }
    fn take(&self) -> Option<Vector> {
        None
    }
}

impl Platform for Idle {
    type Mmio = Idle;
    type Clock = Idle;
    type Interrupts = Idle;
    type Dma = Idle;

    fn mmio(&self) -> &Idle {
        self
    }
    fn clock(&self) -> &Idle {
        self
    }
    fn interrupts(&self) -> &Idle {
        self
    }
    fn dma(&self) -> &Idle {
        self
    }
}

fn driver() -> (Arc<Idle>, Driver<Idle>) {
    let idle = Arc::new(Idle::default());
    let config = DeviceConfig {
        queues: 1,
        tx_ring: TableEntry::Value(RING),
        rx_ring: TableEntry::Value(RING),
        ..DeviceConfig::new(FuncId(0))
    };
    let mut driver = Driver::bring_up(Arc::clone(&idle), config).expect("bring-up");
    driver.up().expect("up");
    (idle, driver)
}

/// Rings in the order in which `up` allocates them.
fn ring(idle: &Idle, at: usize) -> Arc<Vec<AtomicU64>> {
    Arc::clone(&idle.rings.lock().expect("one thread")[at])
}

/// ns per frame of polling 60-byte frames, one byte of each looked at.
fn receive() -> f64 {
    let (idle, mut driver) = driver();
    let completions = ring(&idle, 2);
    let rx = driver.rx(0).expect("up");
    let (mut at, mut color, mut sum) = (0, true, 0u64);
    let mut spent = Duration::ZERO;
    for _ in 0..BURSTS {
        for _ in 0..BURST {
            completions[at].store(u64::from(color) << 1 | 60 << 32, Ordering::Relaxed);
            at = (at + 1) % usize::from(RING - 1);
            color ^= at == 0;
        }
        let begun = Instant::now();
        let done = rx.poll(BURST, |frame| sum += u64::from(frame.segment(0)[0])).expect("an honest card");
        spent += begun.elapsed();
        assert_eq!(done, BURST);
    }
    black_box(sum);
    spent.as_nanos() as f64 / (BURST * BURSTS) as f64
}

/// ns per frame of posting 60-byte frames, publishing and reaping them.
fn transmit() -> f64 {
    let (idle, mut driver) = driver();
    let status = ring(&idle, 0);
    let tx = driver.tx(0).expect("up");
    let frame = [7; 60];
    let mut spent = Duration::ZERO;
    for _ in 0..BURSTS {
        let begun = Instant::now();
        for _ in 0..BURST {
            tx.post(black_box(&frame)).expect("room");
        }
        tx.flush().expect("a doorbell");
        spent += begun.elapsed();
        let pidx = idle.doorbells[1].load(Ordering::Relaxed);
        status[2 * usize::from(RING - 1)].store(u64::from(pidx) << 16, Ordering::Relaxed);
        let begun = Instant::now();
        assert_eq!(usize::from(tx.reap().expect("an honest card")), BURST);
        spent += begun.elapsed();
    }
    spent.as_nanos() as f64 / (BURST * BURSTS) as f64
}

fn report(name: &str, run: impl Fn() -> f64) {
    let mut runs: Vec<f64> = (0..RUNS).map(|_| run()).collect();
    runs.sort_by(f64::total_cmp);
    println!("{name}: {:.1} ns per frame (median of {RUNS}; {:.1} to {:.1})", runs[RUNS / 2], runs[0], runs[RUNS - 1]);
}

fn main() {
    report("rx, 60 bytes, page reused in place", receive);
    report("tx, 60 bytes, copied into a page of the queue", transmit);
}
