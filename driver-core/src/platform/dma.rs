//! One function's DMA space, by the rules of the Linux DMA API.
//!
//! Two kinds of memory, and types that keep them apart:
//!
//! * **Coherent** ([`Coherent`]): rings and status words. Card and CPU see each other's stores without more ado, so it is
//!   read and written by atomic loads and stores only, never through a slice, and the order between two of them is
//!   asked for with [`DmaMemory::dma_rmb`] and [`DmaMemory::dma_wmb`].
//! * **Streaming** ([`Page`]): frames. A page is a value with one owner. While the CPU owns it there are slices; handing it
//!   to the device moves the value away, and with it every slice.
//!
//! ```text
//!   alloc ─► Page (CPU, unmapped) ─ map ─► DevicePage ─ sync_for_cpu ─► Page (CPU, mapped)
//!              ▲     │                        ▲                             │  │
//!              │     └─► free                 └────── sync_for_device ──────┘  │
//!              └──────────────────────── unmap ────────────────────────────────┘
//! ```
//!
//! A page pool keeps the mapping for the page's life and moves pages along the inner circle only. A mapped page may also
//! be cut into fragments, each of which goes round that circle on its own until it is joined to its page again:
//!
//! ```text
//!   page ─ split 2048 ─► page: the second half     ─ join ─► page, whole again once no fragment is out
//!                  └───► fragment: the first half ────┘
//! ```
//!
//! The ranges of [`sync_for_cpu`](DmaMemory::sync_for_cpu) and [`sync_for_device`](DmaMemory::sync_for_device) are offsets
//! in the page or fragment at hand, and say what a cache or a bounce buffer has to move: no more is known to be moved.

/// A DMA (bus) address of one function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct DmaAddr(pub u64);

impl core::ops::Add<u64> for DmaAddr {
    type Output = DmaAddr;
    fn add(self, bytes: u64) -> DmaAddr {
        DmaAddr(self.0 + bytes)
    }
}

/// Which way a streaming mapping lets data flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The device reads it (TX).
    ToDevice,
    /// The device writes it (RX).
    FromDevice,
    /// Both (RX pages that XDP may send again).
    Bidirectional,
}

/// DMA memory that could not be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DmaError {
    /// No memory, for now: try again after some was freed.
    #[error("no DMA memory left: {len_bytes} bytes were asked for")]
    OutOfMemory {
        /// What was asked for.
        len_bytes: usize,
    },
    /// The request itself can't be met: a length of 0, a page of a foreign function, an alignment that is no power of two.
    #[error("bad DMA request: {why}")]
    Invalid {
        /// The rule that it breaks.
        why: &'static str,
    },
    /// The memory checker reported a broken rule on the way. The platform holds the report.
    #[error("the host memory checker stopped the run: {rule}")]
    Checker {
        /// The rule.
        rule: &'static str,
    },
}

/// A page that could not be mapped, given back to its owner.
#[derive(Debug)]
pub struct MapError<P> {
    /// The page, as it was.
    pub page: P,
    /// Why.
    pub cause: DmaError,
}

/// A piece of coherent memory. Offsets are bytes, aligned to the access; an access that is not, or that lies past the
/// end, is the driver's own mistake and panics.
pub trait Coherent {
    /// The device's address of byte 0.
    fn dma_addr(&self) -> DmaAddr;
    /// Size.
    fn len_bytes(&self) -> usize;
    /// Atomic little-endian load of 16 bits.
    fn load16(&self, offset: usize) -> u16;
    /// Atomic little-endian load of 32 bits.
    fn load32(&self, offset: usize) -> u32;
    /// Atomic little-endian load of 64 bits.
    fn load64(&self, offset: usize) -> u64;
    /// Atomic little-endian store of 32 bits.
    fn store32(&self, offset: usize, value: u32);
    /// Atomic little-endian store of 64 bits.
    fn store64(&self, offset: usize, value: u64);
}

/// A streaming page in the CPU's hands.
pub trait Page {
    /// What the CPU sees. After [`DmaMemory::sync_for_cpu`] only the synced range is known to be what the device wrote.
    fn bytes(&self) -> &[u8];
    /// Likewise, to write.
    fn bytes_mut(&mut self) -> &mut [u8];
    /// Device address of byte 0, while mapped.
    fn dma_addr(&self) -> Option<DmaAddr>;
}

/// One function's DMA space.
pub trait DmaMemory {
    /// Coherent memory. Dropping it frees it, which while the device may still write it is the driver's mistake.
    type Coherent: Coherent;
    /// A page that the CPU owns, or a fragment of one.
    type Page: Page;
    /// A mapped page, or a fragment of one, that the device owns: no bytes, only an address.
    type DevicePage;

    /// Bytes in a streaming page (4096 on the hardware at hand).
    fn page_size(&self) -> usize;

    /// Zeroed coherent memory at a 4 KiB-aligned device address below 4 GiB.
    ///
    /// # Errors
    /// [`DmaError`].
    fn alloc_coherent(&self, len_bytes: usize) -> Result<Self::Coherent, DmaError>;

    /// A page, unmapped, its contents unspecified.
    ///
    /// # Errors
    /// [`DmaError`].
    fn alloc_page(&self) -> Result<Self::Page, DmaError>;

    /// Give a page back; a mapped one is unmapped first. A fragment is never freed: it is [joined](Self::join). Freeing a
    /// page whose fragments are out is the driver's mistake: the fragments' memory goes with it.
    fn free_page(&self, page: Self::Page);

    /// Map a page for `direction` and hand it to the device, with what the CPU wrote in its first `len_bytes`.
    ///
    /// # Errors
    /// [`MapError`] returns the page.
    fn map(
        &self,
        page: Self::Page,
        direction: Direction,
        len_bytes: usize,
    ) -> Result<Self::DevicePage, MapError<Self::Page>>;

    /// The device address of a page that the device owns.
    fn device_addr(&self, page: &Self::DevicePage) -> DmaAddr;

    /// The device address of a buffer in such a page, to be written into a descriptor: what the device is offered until the
    /// page is offered again or unmapped. A platform that checks reports the device if it goes beyond.
    fn buffer_addr(&self, page: &Self::DevicePage, offset: usize, len_bytes: usize) -> DmaAddr {
        let _ = len_bytes;
        self.device_addr(page) + offset as u64
    }

    /// Take a page back from the device; it stays mapped. `offset` and `len_bytes` say which of its bytes the CPU wants to see.
    fn sync_for_cpu(&self, page: Self::DevicePage, offset: usize, len_bytes: usize) -> Self::Page;

    /// Hand a mapped page to the device again, with what the CPU wrote in that range.
    ///
    /// Also where the device only writes: bytes that the CPU changed in its buffer belong in the range, or a cache line that
    /// was left dirty may be written over the next frame. `len_bytes` 0 says that it changed none.
    ///
    /// # Errors
    /// [`MapError`] with [`DmaError::Invalid`] if the page is not mapped.
    fn sync_for_device(
        &self,
        page: Self::Page,
        offset: usize,
        len_bytes: usize,
    ) -> Result<Self::DevicePage, MapError<Self::Page>>;

    /// End a mapping. The CPU owns the page and sees its first `len_bytes` as the device left them. A fragment has no
    /// mapping to end: it comes back still mapped, as from [`sync_for_cpu`](Self::sync_for_cpu), and that is the driver's
    /// mistake.
    fn unmap(&self, page: Self::DevicePage, len_bytes: usize) -> Self::Page;

    /// Cut a fragment of `len_bytes` off the front of what is left of a page that the CPU owns and that is mapped. `page`
    /// keeps the rest, which may be nothing.
    ///
    /// The fragment is a page of its own: [`Page::bytes`] is its part only, its address is its own, it has its own owner
    /// and its own syncs, and offsets count from its first byte. Only the mapping is its page's. It can't be split again.
    ///
    /// # Errors
    /// [`DmaError::Invalid`] if the page is not mapped, is a fragment itself, or has fewer than `len_bytes` left; also for a
    /// fragment of 0 bytes. The page stays as it was.
    fn split(&self, page: &mut Self::Page, len_bytes: usize) -> Result<Self::Page, DmaError>;

    /// A fragment goes back to its page, in any order. The page grows by nothing until the last one is back; then it is whole
    /// again, and its contents are unspecified.
    ///
    /// # Errors
    /// [`MapError`] with [`DmaError::Invalid`] returns the fragment if it is none, or not one of this page.
    fn join(&self, page: &mut Self::Page, fragment: Self::Page) -> Result<(), MapError<Self::Page>>;

    /// Coherent loads before it are done before loads after it (Linux `dma_rmb`).
    fn dma_rmb(&self);

    /// Coherent stores before it are seen by the device before stores and doorbells after it (Linux `dma_wmb`).
    fn dma_wmb(&self);
}
