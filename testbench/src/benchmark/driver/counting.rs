//! A platform whose DMA memory counts what is asked of it.

use std::cell::Cell;
use std::rc::Rc;

use driver_core::{Direction, DmaAddr, DmaError, DmaMemory, MapError, Page, Platform};

/// What was asked between [`Counts::begin`] and [`Counts::end`].
#[derive(Default)]
pub(super) struct Counts {
    /// Pages allocated.
    pub(super) pages: Cell<u64>,
    /// Pages mapped or unmapped.
    pub(super) maps: Cell<u64>,
    /// Syncs, both ways.
    pub(super) syncs: Cell<u64>,
    counting: Cell<bool>,
}

impl Counts {
    pub(super) fn begin(&self) {
        self.counting.set(true);
    }

    pub(super) fn end(&self) {
        self.counting.set(false);
    }

    fn count(&self, which: impl FnOnce(&Self) -> &Cell<u64>) {
        if self.counting.get() {
            let count = which(self);
            count.set(count.get() + 1);
        }
    }
}

/// A platform, counted.
pub(super) struct Counted<P: Platform> {
    platform: P,
    dma: CountedDma<P::Dma>,
}

/// Its memory.
pub(super) struct CountedDma<D> {
    dma: D,
    counts: Rc<Counts>,
}

impl<P: Platform> Counted<P>
where
    P::Dma: Clone,
{
    pub(super) fn new(platform: P, counts: Rc<Counts>) -> Self {
        let dma = CountedDma { dma: platform.dma().clone(), counts };
        Self { platform, dma }
    }
}

impl<P: Platform> Platform for Counted<P> {
    type Mmio = P::Mmio;
    type Clock = P::Clock;
    type Interrupts = P::Interrupts;
    type Dma = CountedDma<P::Dma>;

    fn mmio(&self) -> &P::Mmio {
        self.platform.mmio()
    }
    fn clock(&self) -> &P::Clock {
        self.platform.clock()
    }
    fn interrupts(&self) -> &P::Interrupts {
        self.platform.interrupts()
    }
    fn dma(&self) -> &CountedDma<P::Dma> {
        &self.dma
    }
}

impl<D: DmaMemory> DmaMemory for CountedDma<D> {
    type Coherent = D::Coherent;
    type Page = D::Page;
    type DevicePage = D::DevicePage;

    fn page_size(&self) -> usize {
        self.dma.page_size()
    }

    fn alloc_coherent(&self, len_bytes: usize) -> Result<D::Coherent, DmaError> {
        self.dma.alloc_coherent(len_bytes)
    }

    fn alloc_page(&self) -> Result<D::Page, DmaError> {
        self.counts.count(|counts| &counts.pages);
        self.dma.alloc_page()
    }

    fn free_page(&self, page: D::Page) {
        if page.dma_addr().is_some() {
            self.counts.count(|counts| &counts.maps);
        }
        self.dma.free_page(page);
    }

    fn map(&self, page: D::Page, direction: Direction, len_bytes: usize) -> Result<D::DevicePage, MapError<D::Page>> {
        self.counts.count(|counts| &counts.maps);
        self.dma.map(page, direction, len_bytes)
    }

    fn device_addr(&self, page: &D::DevicePage) -> DmaAddr {
        self.dma.device_addr(page)
    }

    fn buffer_addr(&self, page: &D::DevicePage, offset: usize, len_bytes: usize) -> DmaAddr {
        self.dma.buffer_addr(page, offset, len_bytes)
    }

    fn sync_for_cpu(&self, page: D::DevicePage, offset: usize, len_bytes: usize) -> D::Page {
        self.counts.count(|counts| &counts.syncs);
        self.dma.sync_for_cpu(page, offset, len_bytes)
    }

    fn sync_for_device(&self, page: D::Page, offset: usize, len: usize) -> Result<D::DevicePage, MapError<D::Page>> {
        self.counts.count(|counts| &counts.syncs);
        self.dma.sync_for_device(page, offset, len)
    }

    fn unmap(&self, page: D::DevicePage, len_bytes: usize) -> D::Page {
        self.counts.count(|counts| &counts.maps);
        self.dma.unmap(page, len_bytes)
    }

    fn split(&self, page: &mut D::Page, len_bytes: usize) -> Result<D::Page, DmaError> {
        self.dma.split(page, len_bytes)
    }

    fn join(&self, page: &mut D::Page, fragment: D::Page) -> Result<(), MapError<D::Page>> {
        self.dma.join(page, fragment)
    }

    fn dma_rmb(&self) {
        self.dma.dma_rmb();
    }

    fn dma_wmb(&self) {
        self.dma.dma_wmb();
    }
}
