//! The four seams of a function with something in between: a watchdog over register accesses, and DMA calls that are dropped
//! or take time. A driver built on them is bent without a line of it being changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use driver_core::{Clock as _, DmaMemory as _, Mmio, MmioError, Page as _, Platform};
use models::time::Time;
use regs::Bar;

use crate::bench::{Bench, FunctionPlatform, FunctionPort};
use crate::host_memory::{CpuPage, DevicePage, DmaTap, FunctionDma, TappedDma};

/// How long one call of a driver may go on, simulated: twice what the slowest honest one needs, a stop of eight queues each of
/// which waits 100 ms for a context command.
const CALL_NS: u64 = 2_000_000_000;

/// What lies between a driver and its DMA space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Bend {
    /// Nothing.
    #[default]
    Straight,
    /// `sync_for_cpu` moves no bytes.
    SyncNothing,
    /// No mapping is ever ended.
    NeverUnmap,
    /// Each load from coherent memory takes so many ns, in which the card works on.
    SlowLoads(u64),
}

/// Ends calls that would never end.
#[derive(Default)]
pub struct Watchdog {
    begun_ns: AtomicU64,
    /// The access at which it bit, bar and offset + 1; 0 before.
    bitten: AtomicU64,
}

impl Watchdog {
    /// A call of the driver begins.
    pub fn begin(&self, now_ns: u64) {
        self.begun_ns.store(now_ns, Ordering::Relaxed);
    }

    /// The register that was still being asked for when it bit.
    pub fn bitten(&self) -> Option<(Bar, u32)> {
        let at = self.bitten.load(Ordering::Relaxed).checked_sub(1)?;
        Some((if at >> 32 == 0 { Bar::Qdma } else { Bar::Shell }, at as u32))
    }

    fn check(&self, now_ns: u64, bar: Bar, offset: u32) -> Result<(), MmioError> {
        let waited_ns = now_ns.saturating_sub(self.begun_ns.load(Ordering::Relaxed));
        if waited_ns < CALL_NS {
            return Ok(());
        }
        let at = u64::from(bar == Bar::Shell) << 32 | u64::from(offset);
        // The first access is the one that it waited for; those of its way out follow.
        let _ = self.bitten.compare_exchange(0, at + 1, Ordering::Relaxed, Ordering::Relaxed);
        Err(MmioError::TimedOut { bar, offset, waited_ns })
    }
}

/// Register access under a watchdog.
pub struct Watched {
    port: FunctionPort,
    watchdog: Arc<Watchdog>,
}

impl Mmio for Watched {
    fn read32(&self, bar: Bar, offset: u32) -> Result<u32, MmioError> {
        self.watchdog.check(self.port.now(), bar, offset)?;
        self.port.read32(bar, offset)
    }

    fn write32(&self, bar: Bar, offset: u32, value: u32) -> Result<(), MmioError> {
        self.watchdog.check(self.port.now(), bar, offset)?;
        self.port.write32(bar, offset, value)
    }
}

/// A bend in a DMA space.
pub struct BentTap {
    bench: Arc<Bench>,
    bend: Bend,
}

/// DMA space with a bend in it.
pub type BentDma = TappedDma<BentTap>;

impl DmaTap for BentTap {
    fn after_load(&self) {
        if let Bend::SlowLoads(ns) = self.bend {
            let until = Time(self.bench.now().0 + ns * 1_000);
            while self.bench.now() < until && self.bench.advance(until).is_ok() {}
        }
    }

    #[track_caller]
    fn free_page(&self, dma: &FunctionDma, page: CpuPage) {
        match page.dma_addr() {
            // The page is gone, its mapping stays.
            Some(_) if self.bend == Bend::NeverUnmap => drop(page),
            _ => dma.free_page(page),
        }
    }

    #[track_caller]
    fn sync_for_cpu(&self, dma: &FunctionDma, page: DevicePage, offset: usize, len_bytes: usize) -> CpuPage {
        let len_bytes = if self.bend == Bend::SyncNothing { 0 } else { len_bytes };
        dma.sync_for_cpu(page, offset, len_bytes)
    }

    #[track_caller]
    fn unmap(&self, dma: &FunctionDma, page: DevicePage, len_bytes: usize) -> CpuPage {
        match self.bend {
            Bend::NeverUnmap => dma.sync_for_cpu(page, 0, len_bytes),
            _ => dma.unmap(page, len_bytes),
        }
    }
}

/// A function's platform, bent.
pub struct Bent {
    mmio: Watched,
    dma: BentDma,
}

impl Bent {
    /// Put `bend` and a watchdog in front of a function.
    pub fn new(bench: &Arc<Bench>, platform: &FunctionPlatform, bend: Bend) -> (Arc<Bent>, Arc<Watchdog>) {
        let watchdog = Arc::new(Watchdog::default());
        let mmio = Watched { port: platform.mmio().clone(), watchdog: Arc::clone(&watchdog) };
        let dma = TappedDma::new(platform.dma().clone(), Arc::new(BentTap { bench: Arc::clone(bench), bend }));
        (Arc::new(Bent { mmio, dma }), watchdog)
    }
}

impl Platform for Bent {
    type Mmio = Watched;
    type Clock = FunctionPort;
    type Interrupts = FunctionPort;
    type Dma = BentDma;

    fn mmio(&self) -> &Watched {
        &self.mmio
    }

    fn clock(&self) -> &FunctionPort {
        &self.mmio.port
    }

    fn interrupts(&self) -> &FunctionPort {
        &self.mmio.port
    }

    fn dma(&self) -> &BentDma {
        &self.dma
    }
}
