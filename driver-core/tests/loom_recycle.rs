//! Every order of events when pages come home from other threads: `RUSTFLAGS="--cfg loom" cargo test -p driver-core --test
//! loom_recycle --release`.
//!
//! The memory here knows the owner of each page, and has a cell in each that loom watches: whoever owns a page touches its
//! cell, and two touches that the pool's atomics don't put in order are a data race. It synchronises nothing itself.
#![cfg(loom)]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use driver_core::pool::{AtomicRing, Numbered, PagePool, PoolConfig};
use driver_core::{Clock, Coherent, Direction, DmaAddr, DmaError, DmaMemory, MapError, Page};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

const PAGES: usize = 6;
const PAGE: usize = 4096;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    Nobody,
    Cpu,
    Device,
}

/// Memory of a few pages.
struct Memory {
    /// A lock that loom doesn't see, so that it orders nothing.
    owners: Mutex<[Owner; PAGES]>,
    given: AtomicUsize,
    cells: [UnsafeCell<()>; PAGES],
}

#[derive(Debug)]
struct CpuPage(usize);

#[derive(Debug)]
struct DevicePage(usize);

impl Numbered for DevicePage {
    fn into_number(self) -> u64 {
        self.0 as u64
    }
    fn from_number(number: u64) -> Self {
        Self(number as usize)
    }
}

impl Page for CpuPage {
    fn bytes(&self) -> &[u8] {
        &[0; PAGE]
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut []
    }
    fn dma_addr(&self) -> Option<DmaAddr> {
        Some(addr(self.0))
    }
}

fn addr(page: usize) -> DmaAddr {
    DmaAddr((page as u64 + 1) << 12)
}

impl Memory {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            owners: Mutex::new([Owner::Nobody; PAGES]),
            given: AtomicUsize::new(0),
            cells: std::array::from_fn(|_| UnsafeCell::new(())),
        })
    }

    fn hand_over(&self, page: usize, from: Owner, to: Owner) {
        let before = std::mem::replace(&mut self.owners.lock().expect("no panic before")[page], to);
        assert_eq!(before, from, "page {page} has two owners");
        self.cells[page].with_mut(|_| ());
    }

    fn allocated(&self) -> usize {
        self.owners.lock().expect("no panic before").iter().filter(|owner| **owner != Owner::Nobody).count()
    }
}

struct NoCoherent;

impl Coherent for NoCoherent {
    fn dma_addr(&self) -> DmaAddr {
        DmaAddr(0)
    }
    fn len_bytes(&self) -> usize {
        0
    }
    fn load16(&self, _: usize) -> u16 {
        0
    }
    fn load32(&self, _: usize) -> u32 {
        0
    }
    fn load64(&self, _: usize) -> u64 {
        0
    }
    fn store32(&self, _: usize, _: u32) {}
    fn store64(&self, _: usize, _: u64) {}
}

impl DmaMemory for Memory {
    type Coherent = NoCoherent;
    type Page = CpuPage;
    type DevicePage = DevicePage;

    fn page_size(&self) -> usize {
        PAGE
    }
    fn alloc_coherent(&self, len_bytes: usize) -> Result<NoCoherent, DmaError> {
        Err(DmaError::OutOfMemory { len_bytes })
    }
    fn alloc_page(&self) -> Result<CpuPage, DmaError> {
        // No page is given twice: how freed memory gets from one thread to another is the platform's affair.
        let page = self.given.fetch_add(1, Ordering::Relaxed);
        *self
            .owners
            .lock()
            .expect("no panic before")
            .get_mut(page)
            .ok_or(DmaError::OutOfMemory { len_bytes: PAGE })? = Owner::Cpu;
        Ok(CpuPage(page))
    }
    fn free_page(&self, page: CpuPage) {
        self.hand_over(page.0, Owner::Cpu, Owner::Nobody);
    }
    fn map(&self, page: CpuPage, _: Direction, _: usize) -> Result<DevicePage, MapError<CpuPage>> {
        self.owners.lock().expect("no panic before")[page.0] = Owner::Device;
        Ok(DevicePage(page.0))
    }
    fn device_addr(&self, page: &DevicePage) -> DmaAddr {
        addr(page.0)
    }
    fn sync_for_cpu(&self, page: DevicePage, _: usize, _: usize) -> CpuPage {
        self.hand_over(page.0, Owner::Device, Owner::Cpu);
        CpuPage(page.0)
    }
    fn sync_for_device(&self, page: CpuPage, _: usize, _: usize) -> Result<DevicePage, MapError<CpuPage>> {
        self.hand_over(page.0, Owner::Cpu, Owner::Device);
        Ok(DevicePage(page.0))
    }
    fn unmap(&self, page: DevicePage, _: usize) -> CpuPage {
        self.hand_over(page.0, Owner::Device, Owner::Cpu);
        CpuPage(page.0)
    }
    fn split(&self, _: &mut CpuPage, _: usize) -> Result<CpuPage, DmaError> {
        Err(DmaError::Invalid { why: "never cut" })
    }
    fn join(&self, _: &mut CpuPage, page: CpuPage) -> Result<(), MapError<CpuPage>> {
        Err(MapError { page, cause: DmaError::Invalid { why: "never cut" } })
    }
    fn dma_rmb(&self) {}
    fn dma_wmb(&self) {}
}

struct NoTime;

impl Clock for NoTime {
    fn now(&self) -> u64 {
        0
    }
    fn wait(&self, _: u64) {}
}

type Pool = PagePool<Memory, AtomicRing<DevicePage>>;

fn pool(pool_size: usize) -> (Arc<Memory>, Pool) {
    (Memory::new(), Pool::new(PoolConfig { pool_size, ..PoolConfig::default() }).expect("a valid pool"))
}

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    // Switches away from a thread that could go on: three find what two miss, and take seconds still.
    builder.preemption_bound.get_or_insert(3);
    builder.check(run);
}

fn received(memory: &Memory, pool: &mut Pool) -> CpuPage {
    let page = pool.alloc(memory).expect("a page");
    memory.sync_for_cpu(page, 0, 0)
}

/// A page goes to another thread, which puts it.
fn elsewhere(memory: &Arc<Memory>, pool: &Pool, page: CpuPage) -> thread::JoinHandle<()> {
    let (memory, recycler) = (Arc::clone(memory), pool.recycler());
    thread::spawn(move || recycler.put(&memory, page, 0))
}

/// So many pages, each to a thread of its own.
fn all_elsewhere<const N: usize>(memory: &Arc<Memory>, pool: &mut Pool) -> [thread::JoinHandle<()>; N] {
    let pages: [CpuPage; N] = std::array::from_fn(|_| received(memory, pool));
    pages.map(|page| elsewhere(memory, pool, page))
}

fn end(memory: &Memory, mut pool: Pool) {
    pool.close(memory);
    assert_eq!((pool.in_flight(), memory.allocated()), (0, 0), "a page is lost");
    pool.destroy(memory, &NoTime, 0).expect("nothing is out");
}

#[test]
fn two_threads_recycle_while_the_pool_takes() {
    model(|| {
        let (memory, mut pool) = pool(2);
        let threads = all_elsewhere::<2>(&memory, &mut pool);
        // From the ring if one is there already, from the platform if not.
        let page = received(&memory, &mut pool);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        pool.put(&memory, page, 0);
        end(&memory, pool);
    });
}

#[test]
fn a_page_that_comes_while_the_pool_closes_is_freed_by_one_of_the_two() {
    model(|| {
        let (memory, mut pool) = pool(2);
        let [thread] = all_elsewhere::<1>(&memory, &mut pool);
        pool.close(&memory);
        thread.join().expect("no panic");
        assert_eq!((pool.in_flight(), memory.allocated()), (0, 0), "a page is lost");
    });
}

#[test]
fn two_pages_that_come_while_the_pool_closes_are_freed() {
    model(|| {
        let (memory, mut pool) = pool(2);
        let threads = all_elsewhere::<2>(&memory, &mut pool);
        pool.close(&memory);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!((pool.in_flight(), memory.allocated()), (0, 0), "a page is lost");
    });
}

#[test]
fn a_pool_opens_again_while_a_page_of_before_comes_home() {
    model(|| {
        let (memory, mut pool) = pool(1);
        let [thread] = all_elsewhere::<1>(&memory, &mut pool);
        pool.close(&memory);
        let page = received(&memory, &mut pool);
        pool.put(&memory, page, 0);
        thread.join().expect("no panic");
        end(&memory, pool);
    });
}

#[test]
fn the_page_that_finds_no_room_in_the_ring_is_freed() {
    model(|| {
        let (memory, mut pool) = pool(1);
        let threads = all_elsewhere::<2>(&memory, &mut pool);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        let recycle = pool.statistics().recycle;
        assert_eq!((recycle.ring, recycle.ring_full), (1, 1));
        end(&memory, pool);
    });
}
