//! The driver's four seams with a [`Card`] behind them that may do as it likes.
//!
//! Host memory is the testbench's own, checks included. Two things are added: the card may act between two loads of the
//! driver's, and a hand-over of a page may be refused.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use driver_core::{
    Clock, Coherent, Direction, DmaAddr, DmaError, DmaMemory, InterruptError, Interrupts, MapError, Mmio, MmioError,
    Platform, Vector,
};
use regs::{Bar, FuncId};

use super::card::{Card, Event, Refusal};
use crate::bench::vectors_of;
use crate::host_memory::{CoherentRegion, CpuPage, DevicePage, FunctionDma};

/// What a read that is not answered is waited for, in ns.
const NO_ANSWER_NS: u64 = 1_000;

/// Card, clock and the switches for host memory.
pub(super) struct Machine {
    func: FuncId,
    card: Mutex<Card>,
    now_ns: AtomicU64,
    /// The card waits for a load.
    ambushed: AtomicBool,
    /// Hand-overs to the device are refused.
    pub(super) refuse_syncs: AtomicBool,
}

impl Machine {
    pub(super) fn new(func: FuncId, card: Card) -> Arc<Machine> {
        Arc::new(Machine {
            func,
            card: Mutex::new(card),
            now_ns: AtomicU64::new(0),
            ambushed: AtomicBool::new(false),
            refuse_syncs: AtomicBool::new(false),
        })
    }

    pub(super) fn card(&self) -> MutexGuard<'_, Card> {
        // A panic while the card was locked has failed the run already; its state is plain data.
        self.card.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    /// Let the card write `word` when the driver has made `loads` more loads.
    pub(super) fn lie_in_ambush(&self, loads: u32, addr: u64, word: u64) {
        self.card().lie_in_ambush(loads, addr, word);
        self.ambushed.store(true, Ordering::Relaxed);
    }

    fn before_load(&self) {
        if self.ambushed.load(Ordering::Relaxed) {
            let more = self.card().before_load();
            self.ambushed.store(more, Ordering::Relaxed);
        }
    }

    fn error(&self, bar: Bar, offset: u32, how: Refusal) -> MmioError {
        match how {
            Refusal::TimedOut => MmioError::TimedOut { bar, offset, waited_ns: NO_ANSWER_NS },
            Refusal::Bus => MmioError::Bus { bar, offset, response: "SLVERR" },
            Refusal::Stopped => MmioError::Stopped { bar, offset },
        }
    }
}

impl Mmio for Machine {
    fn read32(&self, bar: Bar, offset: u32) -> Result<u32, MmioError> {
        self.card().read(bar, offset).map_err(|how| {
            self.now_ns.fetch_add(NO_ANSWER_NS, Ordering::Relaxed);
            self.error(bar, offset, how)
        })
    }

    fn write32(&self, bar: Bar, offset: u32, value: u32) -> Result<(), MmioError> {
        self.card().write(bar, offset, value).map_err(|how| self.error(bar, offset, how))
    }
}

impl Clock for Machine {
    fn now(&self) -> u64 {
        self.now_ns()
    }

    fn wait(&self, ns: u64) {
        self.now_ns.fetch_add(ns, Ordering::Relaxed);
        self.card().time_passes();
    }
}

impl Interrupts for Machine {
    fn count(&self) -> u16 {
        vectors_of(self.func)
    }

    fn enable(&self, vector: Vector) -> Result<(), InterruptError> {
        if vector.0 < self.count() {
            Ok(())
        } else {
            Err(InterruptError::NoSuchVector { vector: vector.0, count: self.count() })
        }
    }

    fn disable(&self, vector: Vector) -> Result<(), InterruptError> {
        self.enable(vector)
    }

    fn take(&self) -> Option<Vector> {
        None
    }
}

/// What the driver is given.
pub(super) struct HostilePlatform {
    pub(super) machine: Arc<Machine>,
    pub(super) dma: HostileDma,
}

impl HostilePlatform {
    pub(super) fn new(machine: Arc<Machine>, inner: FunctionDma) -> HostilePlatform {
        HostilePlatform { machine: Arc::clone(&machine), dma: HostileDma { inner, machine } }
    }
}

impl Platform for HostilePlatform {
    type Mmio = Machine;
    type Clock = Machine;
    type Interrupts = Machine;
    type Dma = HostileDma;

    fn mmio(&self) -> &Machine {
        &self.machine
    }

    fn clock(&self) -> &Machine {
        &self.machine
    }

    fn interrupts(&self) -> &Machine {
        &self.machine
    }

    fn dma(&self) -> &HostileDma {
        &self.dma
    }
}

/// Host memory in which the card may act between two loads.
pub(super) struct HostileDma {
    inner: FunctionDma,
    machine: Arc<Machine>,
}

/// A ring.
pub(super) struct Ring {
    inner: CoherentRegion,
    machine: Arc<Machine>,
}

impl Coherent for Ring {
    fn dma_addr(&self) -> DmaAddr {
        self.inner.dma_addr()
    }

    fn len_bytes(&self) -> usize {
        self.inner.len_bytes()
    }

    fn load16(&self, offset: usize) -> u16 {
        self.machine.before_load();
        self.inner.load16(offset)
    }

    fn load32(&self, offset: usize) -> u32 {
        self.machine.before_load();
        self.inner.load32(offset)
    }

    fn load64(&self, offset: usize) -> u64 {
        self.machine.before_load();
        self.inner.load64(offset)
    }

    fn store32(&self, offset: usize, value: u32) {
        self.inner.store32(offset, value);
    }

    fn store64(&self, offset: usize, value: u64) {
        self.inner.store64(offset, value);
    }
}

impl DmaMemory for HostileDma {
    type Coherent = Ring;
    type Page = CpuPage;
    type DevicePage = DevicePage;

    fn page_size(&self) -> usize {
        self.inner.page_size()
    }

    #[track_caller]
    fn alloc_coherent(&self, len_bytes: usize) -> Result<Ring, DmaError> {
        let inner = self.inner.alloc_coherent(len_bytes)?;
        Ok(Ring { inner, machine: Arc::clone(&self.machine) })
    }

    #[track_caller]
    fn alloc_page(&self) -> Result<CpuPage, DmaError> {
        self.inner.alloc_page()
    }

    #[track_caller]
    fn free_page(&self, page: CpuPage) {
        self.inner.free_page(page);
    }

    #[track_caller]
    fn map(&self, page: CpuPage, direction: Direction, len_bytes: usize) -> Result<DevicePage, MapError<CpuPage>> {
        self.inner.map(page, direction, len_bytes)
    }

    fn device_addr(&self, page: &DevicePage) -> DmaAddr {
        self.inner.device_addr(page)
    }

    fn buffer_addr(&self, page: &DevicePage, offset: usize, len_bytes: usize) -> DmaAddr {
        self.inner.buffer_addr(page, offset, len_bytes)
    }

    #[track_caller]
    fn sync_for_cpu(&self, page: DevicePage, offset: usize, len_bytes: usize) -> CpuPage {
        self.inner.sync_for_cpu(page, offset, len_bytes)
    }

    #[track_caller]
    fn sync_for_device(&self, page: CpuPage, offset: usize, len_bytes: usize) -> Result<DevicePage, MapError<CpuPage>> {
        if self.machine.refuse_syncs.load(Ordering::Relaxed) {
            self.machine.card().log.push(Event::SyncRefused);
            return Err(MapError { page, cause: DmaError::Invalid { why: "refused by the hostile test" } });
        }
        self.inner.sync_for_device(page, offset, len_bytes)
    }

    #[track_caller]
    fn unmap(&self, page: DevicePage, len_bytes: usize) -> CpuPage {
        self.inner.unmap(page, len_bytes)
    }

    #[track_caller]
    fn split(&self, page: &mut CpuPage, len_bytes: usize) -> Result<CpuPage, DmaError> {
        self.inner.split(page, len_bytes)
    }

    #[track_caller]
    fn join(&self, page: &mut CpuPage, fragment: CpuPage) -> Result<(), MapError<CpuPage>> {
        self.inner.join(page, fragment)
    }

    fn dma_rmb(&self) {
        self.inner.dma_rmb();
    }

    fn dma_wmb(&self) {
        self.inner.dma_wmb();
    }
}
