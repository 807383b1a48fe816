//! A function's DMA space with something in between: every call goes straight through but for those that a [`DmaTap`] bends.

use std::sync::Arc;

use driver_core::{Coherent, Direction, DmaAddr, DmaError, DmaMemory, MapError};

use super::{CoherentRegion, CpuPage, DevicePage, FunctionDma};

/// What lies between a driver and its DMA space. By default nothing.
pub trait DmaTap: Send + Sync {
    /// The driver is about to load from coherent memory.
    fn before_load(&self) {}

    /// It has loaded; what it got is what memory held before this.
    fn after_load(&self) {}

    /// [`DmaMemory::free_page`].
    #[track_caller]
    fn free_page(&self, dma: &FunctionDma, page: CpuPage) {
        dma.free_page(page);
    }

    /// [`DmaMemory::sync_for_cpu`].
    #[track_caller]
    fn sync_for_cpu(&self, dma: &FunctionDma, page: DevicePage, offset: usize, len_bytes: usize) -> CpuPage {
        dma.sync_for_cpu(page, offset, len_bytes)
    }

    /// [`DmaMemory::sync_for_device`].
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    fn sync_for_device(
        &self,
        dma: &FunctionDma,
        page: CpuPage,
        offset: usize,
        len_bytes: usize,
    ) -> Result<DevicePage, MapError<CpuPage>> {
        dma.sync_for_device(page, offset, len_bytes)
    }

    /// [`DmaMemory::unmap`].
    #[track_caller]
    fn unmap(&self, dma: &FunctionDma, page: DevicePage, len_bytes: usize) -> CpuPage {
        dma.unmap(page, len_bytes)
    }
}

/// A DMA space, tapped.
pub struct TappedDma<T> {
    inner: FunctionDma,
    tap: Arc<T>,
}

impl<T> TappedDma<T> {
    /// Put `tap` in front of `inner`.
    pub fn new(inner: FunctionDma, tap: Arc<T>) -> TappedDma<T> {
        TappedDma { inner, tap }
    }
}

/// Coherent memory of a tapped DMA space.
pub struct TappedRegion<T> {
    inner: CoherentRegion,
    tap: Arc<T>,
}

impl<T: DmaTap> TappedRegion<T> {
    fn load<V>(&self, load: impl FnOnce(&CoherentRegion) -> V) -> V {
        self.tap.before_load();
        let value = load(&self.inner);
        self.tap.after_load();
        value
    }
}

impl<T: DmaTap> Coherent for TappedRegion<T> {
    fn dma_addr(&self) -> DmaAddr {
        self.inner.dma_addr()
    }

    fn len_bytes(&self) -> usize {
        self.inner.len_bytes()
    }

    fn load16(&self, offset: usize) -> u16 {
        self.load(|inner| inner.load16(offset))
    }

    fn load32(&self, offset: usize) -> u32 {
        self.load(|inner| inner.load32(offset))
    }

    fn load64(&self, offset: usize) -> u64 {
        self.load(|inner| inner.load64(offset))
    }

    fn store32(&self, offset: usize, value: u32) {
        self.inner.store32(offset, value);
    }

    fn store64(&self, offset: usize, value: u64) {
        self.inner.store64(offset, value);
    }
}

impl<T: DmaTap> DmaMemory for TappedDma<T> {
    type Coherent = TappedRegion<T>;
    type Page = CpuPage;
    type DevicePage = DevicePage;

    fn page_size(&self) -> usize {
        self.inner.page_size()
    }

    #[track_caller]
    fn alloc_coherent(&self, len_bytes: usize) -> Result<TappedRegion<T>, DmaError> {
        let inner = self.inner.alloc_coherent(len_bytes)?;
        Ok(TappedRegion { inner, tap: Arc::clone(&self.tap) })
    }

    #[track_caller]
    fn alloc_page(&self) -> Result<CpuPage, DmaError> {
        self.inner.alloc_page()
    }

    #[track_caller]
    fn free_page(&self, page: CpuPage) {
        self.tap.free_page(&self.inner, page);
    }

    #[track_caller]
    fn map(&self, page: CpuPage, direction: Direction, len_bytes: usize) -> Result<DevicePage, MapError<CpuPage>> {
        self.inner.map(page, direction, len_bytes)
    }

    fn device_addr(&self, page: &DevicePage) -> DmaAddr {
        self.inner.device_addr(page)
    }

    #[track_caller]
    fn buffer_addr(&self, page: &DevicePage, offset: usize, len_bytes: usize) -> DmaAddr {
        self.inner.buffer_addr(page, offset, len_bytes)
    }

    #[track_caller]
    fn sync_for_cpu(&self, page: DevicePage, offset: usize, len_bytes: usize) -> CpuPage {
        self.tap.sync_for_cpu(&self.inner, page, offset, len_bytes)
    }

    #[track_caller]
    fn sync_for_device(&self, page: CpuPage, offset: usize, len_bytes: usize) -> Result<DevicePage, MapError<CpuPage>> {
        self.tap.sync_for_device(&self.inner, page, offset, len_bytes)
    }

    #[track_caller]
    fn unmap(&self, page: DevicePage, len_bytes: usize) -> CpuPage {
        self.tap.unmap(&self.inner, page, len_bytes)
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
