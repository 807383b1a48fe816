//! A page pool: a receive queue's own supply of pages, mapped once and used for ever, by the rules of Linux's `page_pool`.
//!
//! One pool serves one queue. The queue's thread owns it and takes pages from a fast cache that nobody else touches; pages
//! that went to other threads come home through a ring that any thread may put into:
//!
//! ```text
//!              alloc                                           the platform
//!   queue ◄──────────── fast cache (128) ◄── 64 at a time ─── alloc_page + map
//!     │                   ▲        ▲
//!     │ put (same thread) │        │ refill, 64 at a time
//!     └───────────────────┘   recycle ring ◄── Recycler::put (any thread)
//!                                  │ full, or the pool is closed: unmap + free
//! ```
//!
//! * A page's mapping lasts as long as the pool has the page. Between two uses nothing is mapped, only synced: at
//!   [`offset`](PoolConfig::offset), and no more than was written, at most [`max_len`](PoolConfig::max_len).
//! * A page may be cut into [fragments](PagePool::alloc_fragment). The pool keeps the page and counts how many of its
//!   fragments are out (the bias); the page is used again when the last one is back.
//! * Every page is accounted for. [`PagePool::destroy`] waits for those that are out, and names them if they don't come.
//!   Pages that come home after that are freed by whoever brings them.
//!
//! Pages are values with one owner, so a page in two places can't be written down; what is checked is that a page comes
//! home to its own pool.
//!
//! Source: Linux `Documentation/networking/page_pool.rst` and the counters of `struct page_pool_stats`.

mod fragments;
mod names;
mod ring;
mod shared;
mod statistics;

pub use ring::{AtomicRing, Numbered, RecycleRing};
pub use shared::Recycler;
pub use statistics::{AllocStatistics, PoolStatistics, RecycleStatistics};

use alloc::boxed::Box;
use alloc::vec::Vec;

use self::fragments::{Fragments, Joined};
use self::shared::Shared;
use crate::geometry::HEADROOM_BYTES;
use crate::platform::{Clock, Direction, DmaAddr, DmaError, DmaMemory, Page};
use crate::ring::PageSource;
use crate::sync::Arc;
use crate::wait::Backoff;

/// Pages in the fast cache: Linux's `PP_ALLOC_CACHE_SIZE`.
pub const CACHE_PAGES: usize = 128;

/// Pages that the cache is filled with at once: Linux's `PP_ALLOC_CACHE_REFILL`.
pub const REFILL_PAGES: usize = 64;

/// The largest recycle ring, Linux's limit.
pub const POOL_SIZE_MAX: usize = 32_768;

/// Addresses that an error lists.
const NAMED_MAX: usize = 8;

/// What a pool is set up with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolConfig {
    /// Pages that the recycle ring holds: as many as the queue has descriptors.
    pub pool_size: usize,
    /// Which way pages are mapped: [`Direction::FromDevice`], or [`Direction::Bidirectional`] where frames may be sent
    /// from the page that they came in.
    pub direction: Direction,
    /// Where in a page, or fragment, the device begins to write.
    pub offset: usize,
    /// Bytes from there on that it may write.
    pub max_len: usize,
    /// Fragments that may be out at once. 0: pages are never cut.
    pub fragments_max: usize,
    /// What a receive queue is given: fragments of so many bytes, or whole pages.
    pub buffer: Buffer,
}

/// What a pool gives a receive queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Buffer {
    /// A page for each buffer.
    #[default]
    Page,
    /// Several buffers in a page.
    Fragment {
        /// Of each, headroom and tailroom included.
        len_bytes: usize,
    },
}

impl PoolConfig {
    /// How much of `page` to sync when up to `written` bytes behind [`PoolConfig::offset`] may have been written.
    fn written_in(&self, page: &impl Page, written: usize) -> usize {
        written.min(self.max_len).min(page.bytes().len().saturating_sub(self.offset))
    }
}

impl Default for PoolConfig {
    /// For a ring of 1024 whole pages that are only received into, behind the headroom.
    fn default() -> Self {
        Self {
            pool_size: 1024,
            direction: Direction::FromDevice,
            offset: usize::from(HEADROOM_BYTES),
            max_len: usize::MAX,
            fragments_max: 0,
            buffer: Buffer::Page,
        }
    }
}

/// A pool that can't be set up so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PoolError {
    /// The device only reads pages mapped so.
    #[error("a page pool can't map its pages ToDevice: receive buffers are written (direction)")]
    Direction,
    /// The ring's size.
    #[error("a recycle ring of {pool_size} pages: 1 to {POOL_SIZE_MAX} are possible (pool_size)")]
    Size {
        /// Asked for.
        pool_size: usize,
    },
    /// Fragments are asked for, and none may be out.
    #[error("buffers are fragments, but none may be out: allow as many as the queue has buffers (fragments_max)")]
    NoFragments,
}

/// Pages that did not come home. The pool goes on waiting if it is asked again.
#[derive(Debug, thiserror::Error)]
#[error("{count} pages of the pool are still out after {waited_ns} ns: {}", Addresses(named, *count))]
pub struct StillOut<P> {
    /// The pool. Dropping it gives its pages up for good.
    pub pool: Box<P>,
    /// How many.
    pub count: u64,
    /// How long it was waited for them.
    pub waited_ns: u64,
    /// Device addresses of the first few.
    pub named: Vec<DmaAddr>,
}

/// `0x1000, 0x3000 and 5 more`.
struct Addresses<'a>(&'a [DmaAddr], u64);

impl core::fmt::Display for Addresses<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (i, addr) in self.0.iter().enumerate() {
            write!(f, "{}{:#x}", if i == 0 { "" } else { ", " }, addr.0)?;
        }
        match self.1.saturating_sub(self.0.len() as u64) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// The pool of one receive queue. See the [module](self).
///
/// ```
/// use driver_core::pool::{PagePool, PoolConfig, RecycleRing};
/// use driver_core::{Clock, DmaError, DmaMemory};
///
/// # fn life<D: DmaMemory, R: RecycleRing<D::DevicePage>, C: Clock>(dma: &D, clock: &C) -> Result<(), Box<dyn std::error::Error>>
/// # where R: 'static, D: 'static {
/// let mut pool = PagePool::<D, R>::new(PoolConfig::default())?;
/// let page = pool.alloc(dma)?;
/// // … the device writes 60 bytes into it …
/// let page = dma.sync_for_cpu(page, 256, 60);
/// // … the frame is looked at, here or on another thread, and nothing is written …
/// pool.recycler().put(dma, page, 0);
/// let counted = pool.destroy(dma, clock, 1_000_000).map_err(|still_out| still_out.to_string())?;
/// assert_eq!((counted.alloc.slow, counted.recycle.ring), (1, 1));
/// # Ok(())
/// # }
/// ```
pub struct PagePool<D: DmaMemory, R> {
    config: PoolConfig,
    cache: Vec<D::DevicePage>,
    fragments: Fragments<D>,
    shared: Arc<Shared<R>>,
    /// What this thread counts.
    counted: PoolStatistics,
}

impl<D: DmaMemory, R: RecycleRing<D::DevicePage>> PagePool<D, R> {
    /// An empty pool.
    ///
    /// # Errors
    /// [`PoolError`].
    pub fn new(config: PoolConfig) -> Result<Self, PoolError> {
        if config.direction == Direction::ToDevice {
            return Err(PoolError::Direction);
        }
        if !(1..=POOL_SIZE_MAX).contains(&config.pool_size) || config.fragments_max > POOL_SIZE_MAX {
            return Err(PoolError::Size { pool_size: config.pool_size.max(config.fragments_max) });
        }
        if config.buffer != Buffer::Page && config.fragments_max == 0 {
            return Err(PoolError::NoFragments);
        }
        Ok(Self::valid(config))
    }

    fn valid(config: PoolConfig) -> Self {
        Self {
            config,
            cache: Vec::with_capacity(CACHE_PAGES),
            fragments: Fragments::default(),
            shared: Arc::new(Shared::new(&config)),
            counted: PoolStatistics::default(),
        }
    }

    /// How it was set up.
    pub fn config(&self) -> &PoolConfig {
        &self.config
    }

    /// The way home for pages on other threads.
    pub fn recycler(&self) -> Recycler<D, R> {
        Recycler::new(Arc::clone(&self.shared), self.config)
    }

    /// What it has counted.
    pub fn statistics(&self) -> PoolStatistics {
        let PoolStatistics { alloc, recycle } = self.counted;
        let RecycleStatistics { cached, cache_full, .. } = recycle;
        PoolStatistics { alloc, recycle: RecycleStatistics { cached, cache_full, ..self.shared.recycled() } }
    }

    /// Pages that are neither in the pool nor freed, whole or in fragments. Exact while no other thread is recycling.
    pub fn in_flight(&self) -> u64 {
        self.shared.held().saturating_sub(self.at_home())
    }

    /// Pages that are here.
    fn at_home(&self) -> u64 {
        let at_hand = usize::from(self.fragments.has_idle_page());
        (self.cache.len() + self.shared.ring.len() + at_hand) as u64
    }

    /// A mapped page for the device.
    ///
    /// # Errors
    /// [`DmaError`], for now.
    #[inline]
    pub fn alloc(&mut self, dma: &D) -> Result<D::DevicePage, DmaError> {
        match self.cache.pop() {
            Some(page) => {
                self.counted.alloc.fast += 1;
                Ok(page)
            }
            None => self.refill(dma),
        }
    }

    /// The cache is empty: fill it from the ring or, if that is empty too, from the platform.
    #[cold]
    fn refill(&mut self, dma: &D) -> Result<D::DevicePage, DmaError> {
        // A closed ring is not ours to take from while somebody is still inside: pages are freed then, until the next time.
        if !self.shared.is_closed() || self.shared.open() {
            let ring = &self.shared.ring;
            self.cache.extend(core::iter::from_fn(|| ring.pop()).take(REFILL_PAGES));
        }
        if let Some(page) = self.cache.pop() {
            self.counted.alloc.refill += 1;
            return Ok(page);
        }
        self.counted.alloc.empty += 1;
        // What was had before a failure is as good as all of it.
        for _ in 0..REFILL_PAGES.min(self.config.pool_size) {
            match self.map_new(dma) {
                Ok(page) => self.cache.push(page),
                Err(cause) if self.cache.is_empty() => return Err(cause),
                Err(_) => break,
            }
        }
        self.counted.alloc.slow += 1;
        self.cache.pop().ok_or(DmaError::Invalid { why: "a page pool of no pages" })
    }

    fn map_new(&self, dma: &D) -> Result<D::DevicePage, DmaError> {
        let page = dma.alloc_page()?;
        let page = dma.map(page, self.config.direction, 0).map_err(|refused| {
            dma.free_page(refused.page);
            refused.cause
        })?;
        self.shared.hold(dma, &page);
        Ok(page)
    }

    /// A page, or a fragment, comes home on the queue's own thread. `written` says up to where, counted from
    /// [`offset`](PoolConfig::offset), somebody may have written into it; [`usize::MAX`] where that is not known.
    ///
    /// A page that is not this pool's, or whose mapping was ended, is freed and counted.
    #[inline]
    pub fn put(&mut self, dma: &D, page: D::Page, written: usize) {
        if page.bytes().len() < dma.page_size() {
            return self.put_fragment(dma, page);
        }
        if !page.dma_addr().is_some_and(|addr| self.shared.names.may_hold(addr)) {
            return self.shared.refuse(dma, page, false);
        }
        let written = self.config.written_in(&page, written);
        match dma.sync_for_device(page, self.config.offset, written) {
            Ok(page) => self.keep(dma, page),
            Err(refused) => self.shared.refuse(dma, refused.page, true),
        }
    }

    /// Into the cache, if there is room, or the ring.
    #[inline]
    fn keep(&mut self, dma: &D, page: D::DevicePage) {
        if self.shared.is_closed() {
            return self.shared.release(dma, page);
        }
        if self.cache.len() < CACHE_PAGES {
            self.cache.push(page);
            self.counted.recycle.cached += 1;
        } else {
            self.counted.recycle.cache_full += 1;
            self.shared.recycle(dma, page);
        }
    }

    /// A fragment of `len_bytes` for the device, cut from a page of this pool.
    ///
    /// # Errors
    /// [`DmaError::OutOfMemory`] if no page can be had, or as many fragments are out as may be;
    /// [`DmaError::Invalid`] for a length that no page has.
    pub fn alloc_fragment(&mut self, dma: &D, len_bytes: usize) -> Result<D::DevicePage, DmaError> {
        self.collect_fragments(dma);
        if len_bytes == 0 || len_bytes >= dma.page_size() {
            return Err(DmaError::Invalid { why: "a fragment is shorter than a page, and not empty" });
        }
        if self.fragments.out() >= self.config.fragments_max {
            return Err(DmaError::OutOfMemory { len_bytes });
        }
        if self.fragments.room() < len_bytes {
            let page = self.alloc(dma)?;
            if let Some(unused) = self.fragments.replace(dma.sync_for_cpu(page, 0, 0)) {
                self.put_whole(dma, unused);
            }
        }
        let fragment = self.fragments.cut(dma, len_bytes)?;
        dma.sync_for_device(fragment, 0, len_bytes).map_err(|refused| {
            self.put_fragment(dma, refused.page);
            refused.cause
        })
    }

    /// Fragments that other threads gave back.
    fn collect_fragments(&mut self, dma: &D) {
        while let Some(fragment) = self.shared.fragments.pop() {
            self.put_fragment(dma, dma.sync_for_cpu(fragment, 0, 0));
        }
    }

    fn put_fragment(&mut self, dma: &D, fragment: D::Page) {
        match self.fragments.join(dma, fragment) {
            Joined::Kept => {}
            Joined::Whole(page) => self.put_whole(dma, page),
            Joined::Foreign(page) => self.shared.refuse(dma, page, false),
        }
    }

    /// A page that was cut is whole again. Anything may have been written anywhere in it.
    fn put_whole(&mut self, dma: &D, page: D::Page) {
        match dma.sync_for_device(page, 0, dma.page_size()) {
            Ok(page) => self.keep(dma, page),
            Err(refused) => self.shared.refuse(dma, refused.page, true),
        }
    }

    /// Free what is here, and from now on what comes home. A pool that is asked for a page afterwards opens again.
    pub fn close(&mut self, dma: &D) {
        self.collect_fragments(dma);
        if let Some(page) = self.fragments.put_aside() {
            self.put_whole(dma, page);
        }
        for page in self.cache.drain(..) {
            self.shared.release(dma, page);
        }
        self.shared.close(dma);
    }

    /// Close the pool and wait for the pages that are out, up to `limit_ns`.
    ///
    /// # Errors
    /// [`StillOut`] names them and returns the pool.
    pub fn destroy<C: Clock>(mut self, dma: &D, clock: &C, limit_ns: u64) -> Result<PoolStatistics, StillOut<Self>> {
        let mut wait = Backoff::new(clock, limit_ns);
        loop {
            self.close(dma);
            let count = self.in_flight();
            if count == 0 {
                return Ok(self.statistics());
            }
            if !wait.again() {
                let waited_ns = wait.waited_ns();
                let named = self.out().take(NAMED_MAX).collect();
                return Err(StillOut { pool: Box::new(self), count, waited_ns, named });
            }
        }
    }

    /// Device addresses of the pages that are the pool's and not freed. After [`PagePool::close`] these are the pages that
    /// are out; of a pool with far more pages than [`PoolConfig::pool_size`], some of them.
    pub fn out(&self) -> impl Iterator<Item = DmaAddr> {
        self.shared.names.all()
    }
}

impl<D: DmaMemory, R> core::fmt::Debug for PagePool<D, R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { config, cache, counted, .. } = self;
        f.debug_struct("PagePool")
            .field("config", config)
            .field("cache", &cache.len())
            .field("counted", counted)
            .finish_non_exhaustive()
    }
}

impl<D: DmaMemory, R: RecycleRing<D::DevicePage>> Default for PagePool<D, R> {
    fn default() -> Self {
        Self::valid(PoolConfig::default())
    }
}

impl<D: DmaMemory, R: RecycleRing<D::DevicePage>> PageSource<D> for PagePool<D, R> {
    fn direction(&self) -> Direction {
        self.config.direction
    }

    fn buffer_bytes(&self, dma: &D) -> usize {
        match self.config.buffer {
            Buffer::Page => dma.page_size(),
            Buffer::Fragment { len_bytes } => len_bytes,
        }
    }

    fn synced(&self) -> core::ops::Range<usize> {
        let PoolConfig { offset, max_len, .. } = self.config;
        offset..offset.saturating_add(max_len)
    }

    fn owns(&self, dma: &D, page: &D::Page) -> bool {
        let whole = page.bytes().len() >= dma.page_size();
        page.dma_addr()
            .is_some_and(|addr| if whole { self.shared.names.may_hold(addr) } else { self.fragments.holds(dma, addr) })
    }

    fn statistics(&self) -> PoolStatistics {
        PagePool::statistics(self)
    }

    #[inline]
    fn acquire(&mut self, dma: &D) -> Result<D::DevicePage, DmaError> {
        match self.config.buffer {
            Buffer::Page => self.alloc(dma),
            Buffer::Fragment { len_bytes } => self.alloc_fragment(dma, len_bytes),
        }
    }

    #[inline]
    fn give_back(&mut self, dma: &D, page: D::Page) {
        self.put(dma, page, usize::MAX);
    }

    fn retire(&mut self, dma: &D, page: D::DevicePage) {
        if self.fragments.holds(dma, dma.device_addr(&page)) {
            self.put_fragment(dma, dma.sync_for_cpu(page, 0, 0));
        } else {
            self.keep(dma, page);
        }
    }

    fn drain(&mut self, dma: &D) {
        self.close(dma);
    }
}
