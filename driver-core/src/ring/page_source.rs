//! Where a receive queue gets its pages.

use alloc::vec::Vec;
use core::ops::Range;

use crate::platform::{Direction, DmaError, DmaMemory, Page};
use crate::pool::PoolStatistics;

/// Supplies a receive queue with mapped pages and takes them back.
///
/// A queue needs a page for each descriptor at its start, and one more whenever a sink keeps a page; pages that no sink
/// keeps are used again in place without asking here. One source serves one queue and is called by its owner only.
pub trait PageSource<D: DmaMemory> {
    /// Which way its pages are mapped. Frames can be sent from a page only where it is [`Direction::Bidirectional`].
    fn direction(&self) -> Direction {
        Direction::FromDevice
    }

    /// Bytes of each page or fragment that it gives: the room that a buffer has, headroom and tailroom included.
    fn buffer_bytes(&self, dma: &D) -> usize {
        dma.page_size()
    }

    /// The bytes of each page or fragment that it syncs between two uses: all that the card writes must lie in them.
    fn synced(&self) -> Range<usize> {
        0..usize::MAX
    }

    /// What it has counted: page pools do.
    fn statistics(&self) -> PoolStatistics {
        PoolStatistics::default()
    }

    /// A mapped page for the card to write.
    ///
    /// # Errors
    /// [`DmaError::OutOfMemory`] for now; the queue goes on with the pages it has.
    fn acquire(&mut self, dma: &D) -> Result<D::DevicePage, DmaError>;

    /// Is this page, or fragment, one that it has to have back? Asked of pages that are found in a transmit queue. A source
    /// without accounts need not know: its pages are freed then.
    fn owns(&self, _dma: &D, _page: &D::Page) -> bool {
        false
    }

    /// A page that a sink had kept is free again.
    fn give_back(&mut self, dma: &D, page: D::Page);

    /// The queue ends and this page was in its ring. The card no longer writes to it.
    fn retire(&mut self, dma: &D, page: D::DevicePage);

    /// The queue has ended and every page of its ring was retired: let go of what is left.
    fn drain(&mut self, dma: &D);
}

/// The plain source: pages from the platform, kept mapped from first use until the queue ends, so that a steady state
/// allocates and maps nothing.
#[derive(Debug)]
pub struct KeptPages<D: DmaMemory> {
    free: Vec<D::DevicePage>,
    direction: Direction,
}

impl<D: DmaMemory> KeptPages<D> {
    /// Pages that frames may also be sent from: what a queue needs whose hook answers [`crate::Verdict::Tx`].
    pub fn bidirectional() -> Self {
        Self { free: Vec::new(), direction: Direction::Bidirectional }
    }
}

impl<D: DmaMemory> Default for KeptPages<D> {
    fn default() -> Self {
        Self { free: Vec::new(), direction: Direction::FromDevice }
    }
}

impl<D: DmaMemory> PageSource<D> for KeptPages<D> {
    fn direction(&self) -> Direction {
        self.direction
    }

    fn acquire(&mut self, dma: &D) -> Result<D::DevicePage, DmaError> {
        if let Some(page) = self.free.pop() {
            return Ok(page);
        }
        let page = dma.alloc_page()?;
        dma.map(page, self.direction, 0).map_err(|refused| {
            dma.free_page(refused.page);
            refused.cause
        })
    }

    fn give_back(&mut self, dma: &D, page: D::Page) {
        // Whatever its keeper wrote must not stay in a cache. A page that can't go back to the device, because its keeper
        // unmapped it, is simply freed.
        let len_bytes = page.bytes().len();
        match dma.sync_for_device(page, 0, len_bytes) {
            Ok(page) => self.free.push(page),
            Err(refused) => dma.free_page(refused.page),
        }
    }

    fn retire(&mut self, dma: &D, page: D::DevicePage) {
        dma.free_page(dma.unmap(page, 0));
    }

    fn drain(&mut self, dma: &D) {
        for page in self.free.drain(..) {
            dma.free_page(dma.unmap(page, 0));
        }
    }
}
