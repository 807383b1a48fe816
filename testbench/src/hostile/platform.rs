//! The driver's four seams with a [`Card`] behind them that may do as it likes.
//!
//! Host memory is the testbench's own, checks included. Two things are added: the card may act between two loads of the
//! driver's, and a hand-over of a page may be refused.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use driver_core::{
    Clock, DmaError, DmaMemory as _, InterruptError, Interrupts, MapError, Mmio, MmioError, Platform, Vector,
};
use regs::{Bar, FuncId};

use super::card::{Card, Event, Refusal};
use crate::bench::vectors_of;
use crate::host_memory::{CpuPage, DevicePage, DmaTap, FunctionDma, TappedDma};

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
        HostilePlatform { machine: Arc::clone(&machine), dma: TappedDma::new(inner, machine) }
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
pub(super) type HostileDma = TappedDma<Machine>;

impl DmaTap for Machine {
    fn before_load(&self) {
        if self.ambushed.load(Ordering::Relaxed) {
            let more = self.card().before_load();
            self.ambushed.store(more, Ordering::Relaxed);
        }
    }

    #[track_caller]
    fn sync_for_device(
        &self,
        dma: &FunctionDma,
        page: CpuPage,
        offset: usize,
        len_bytes: usize,
    ) -> Result<DevicePage, MapError<CpuPage>> {
        if self.refuse_syncs.load(Ordering::Relaxed) {
            self.card().log.push(Event::SyncRefused);
            return Err(MapError { page, cause: DmaError::Invalid { why: "refused by the hostile test" } });
        }
        dma.sync_for_device(page, offset, len_bytes)
    }
}
