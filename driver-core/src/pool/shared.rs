//! What a pool shares with the threads that its pages go to: the way home, and the accounts.

use core::marker::PhantomData;

use super::PoolConfig;
use super::names::Names;
use super::ring::RecycleRing;
use super::statistics::RecycleStatistics;
use crate::platform::{DmaMemory, Page};
use crate::sync::{Arc, AtomicU64, AtomicUsize, Ordering};

/// Bit of [`Shared::gate`]: the pool takes nothing back. The bits below count the threads inside.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// What all handles of a pool share.
#[derive(Debug)]
pub(super) struct Shared<R> {
    /// Threads that are putting a page into the ring, and [`CLOSED`]. While closed nobody enters, so that exactly one
    /// thread, the closer or the last one inside, finds the ring at rest and empties it: no page stays in a dead ring.
    gate: AtomicUsize,
    /// Whole pages on their way home.
    pub(super) ring: R,
    /// Fragments on their way home. It has room for all of them, since a fragment can't be freed on the way, and no gate:
    /// only the pool takes them out.
    pub(super) fragments: R,
    pub(super) names: Names,
    /// Pages that the pool got from the platform and that were not freed yet.
    held: AtomicU64,
    recycled: AtomicU64,
    ring_full: AtomicU64,
    released: AtomicU64,
}

impl<R> Shared<R> {
    pub(super) fn new<T>(config: &PoolConfig) -> Self
    where
        R: RecycleRing<T>,
    {
        Self {
            gate: AtomicUsize::new(0),
            ring: R::with_capacity(config.pool_size),
            fragments: R::with_capacity(config.fragments_max.max(1)),
            names: Names::with_capacity(config.pool_size),
            held: AtomicU64::new(0),
            recycled: AtomicU64::new(0),
            ring_full: AtomicU64::new(0),
            released: AtomicU64::new(0),
        }
    }

    /// Pages that were not freed yet.
    pub(super) fn held(&self) -> u64 {
        // Acquire: whoever sees 0 sees every page freed.
        self.held.load(Ordering::Acquire)
    }

    /// What any thread counts.
    pub(super) fn recycled(&self) -> RecycleStatistics {
        let [ring, ring_full, released_refcnt] =
            [&self.recycled, &self.ring_full, &self.released].map(|count| count.load(Ordering::Relaxed));
        RecycleStatistics { ring, ring_full, released_refcnt, ..RecycleStatistics::default() }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.gate.load(Ordering::Relaxed) & CLOSED != 0
    }

    fn enter(&self) -> bool {
        let mut gate = self.gate.load(Ordering::Relaxed);
        while gate & CLOSED == 0 {
            match self.gate.compare_exchange_weak(gate, gate + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => gate = now,
            }
        }
        false
    }

    /// Leave, unless this is the last thread inside a closed gate: false then, and the ring is this thread's to empty before
    /// it leaves by [`Shared::leave_empty`].
    fn leave(&self) -> bool {
        // Acquire: the last one sees what all others put into the ring. Release: the others' part of that.
        let mut gate = self.gate.load(Ordering::Acquire);
        while gate != CLOSED + 1 {
            match self.gate.compare_exchange_weak(gate, gate - 1, Ordering::Release, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => gate = now,
            }
        }
        false
    }

    fn leave_empty(&self) {
        self.gate.fetch_sub(1, Ordering::Release);
    }

    /// Take pages back again after a close. False while a thread is still inside: it stays closed then. By the pool.
    pub(super) fn open(&self) -> bool {
        self.gate.compare_exchange(CLOSED, 0, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// A page has come from the platform. By the pool.
    pub(super) fn hold<D: DmaMemory>(&self, dma: &D, page: &D::DevicePage) {
        self.names.add(dma.device_addr(page));
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    /// Free a page.
    pub(super) fn release<D: DmaMemory>(&self, dma: &D, page: D::DevicePage) {
        self.names.remove(dma.device_addr(&page));
        dma.free_page(dma.unmap(page, 0));
        self.held.fetch_sub(1, Ordering::Release);
    }

    /// Free a page that can't be used again. `ours` says that it is in the accounts.
    #[cold]
    pub(super) fn refuse<D: DmaMemory>(&self, dma: &D, page: D::Page, ours: bool) {
        if let Some(addr) = page.dma_addr().filter(|_| ours) {
            self.names.remove(addr);
        }
        dma.free_page(page);
        if ours {
            self.held.fetch_sub(1, Ordering::Release);
        }
        self.released.fetch_add(1, Ordering::Relaxed);
    }
}

/// The ring of whole pages.
impl<R> Shared<R> {
    /// Put a page into the ring, or free it if it is full. By whoever is inside the gate, or is the one to close it.
    pub(super) fn recycle<D: DmaMemory>(&self, dma: &D, page: D::DevicePage)
    where
        R: RecycleRing<D::DevicePage>,
    {
        match self.ring.push(page) {
            Ok(()) => self.recycled.fetch_add(1, Ordering::Relaxed),
            Err(page) => {
                self.release(dma, page);
                self.ring_full.fetch_add(1, Ordering::Relaxed)
            }
        };
    }

    /// Likewise, by any thread.
    pub(super) fn recycle_from_anywhere<D: DmaMemory>(&self, dma: &D, page: D::DevicePage)
    where
        R: RecycleRing<D::DevicePage>,
    {
        if !self.enter() {
            return self.release(dma, page);
        }
        self.recycle(dma, page);
        if !self.leave() {
            self.empty(dma);
            self.leave_empty();
        }
    }

    /// Take nothing back from now on, and free what is in the ring. By the pool.
    pub(super) fn close<D: DmaMemory>(&self, dma: &D)
    where
        R: RecycleRing<D::DevicePage>,
    {
        if self.gate.fetch_or(CLOSED, Ordering::AcqRel) == 0 {
            self.empty(dma);
        }
    }

    fn empty<D: DmaMemory>(&self, dma: &D)
    where
        R: RecycleRing<D::DevicePage>,
    {
        while let Some(page) = self.ring.pop() {
            self.release(dma, page);
        }
    }
}

/// Takes a pool's pages home from any thread. Cheap to clone, and good for as long as there are pages out: once the pool
/// is gone it frees them.
pub struct Recycler<D, R> {
    shared: Arc<Shared<R>>,
    config: PoolConfig,
    _memory: PhantomData<fn(&D)>,
}

impl<D, R> Clone for Recycler<D, R> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), config: self.config, _memory: PhantomData }
    }
}

impl<D, R> core::fmt::Debug for Recycler<D, R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Recycler").field("held", &self.shared.held()).finish_non_exhaustive()
    }
}

impl<D: DmaMemory, R: RecycleRing<D::DevicePage>> Recycler<D, R> {
    pub(super) fn new(shared: Arc<Shared<R>>, config: PoolConfig) -> Self {
        Self { shared, config, _memory: PhantomData }
    }

    /// A page, or a fragment, comes home. `written` says up to where, counted from [`PoolConfig::offset`], somebody may have
    /// written into it; [`usize::MAX`] where that is not known.
    ///
    /// A page is freed if the ring is full or the pool is closed. A fragment waits for its pool, and is lost with it. What
    /// is not this pool's is freed and counted.
    pub fn put(&self, dma: &D, page: D::Page, written: usize) {
        let whole = page.bytes().len() >= dma.page_size();
        let ours = !whole || page.dma_addr().is_some_and(|addr| self.shared.names.may_hold(addr));
        if !ours {
            return self.shared.refuse(dma, page, false);
        }
        let written = self.config.written_in(&page, written);
        match dma.sync_for_device(page, self.config.offset, written) {
            Ok(page) if whole => self.shared.recycle_from_anywhere(dma, page),
            Ok(fragment) => {
                // There is room: the pool lets no more fragments out than its ring holds.
                let _ = self.shared.fragments.push(fragment);
            }
            Err(refused) => self.shared.refuse(dma, refused.page, whole),
        }
    }

    /// Pages that the pool got and that were not freed yet. Once the pool is closed: those that are out.
    pub fn held(&self) -> u64 {
        self.shared.held()
    }
}
