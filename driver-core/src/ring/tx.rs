//! A transmit queue: one descriptor, one frame; completions by the index that the card writes into the status entry.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU16, Ordering};

use regs::descriptor::{H2cDescriptor, H2cStatus};
use regs::{Bar, Qid, doorbell};

use super::{QueueFault, QueueState, Span, doorbell_offset};
use crate::config::ETH_HEADER_BYTES;
use crate::context::Contexts;
use crate::error::StopError;
use crate::hook::XdpFrame;
use crate::platform::{Clock, Coherent, Direction, DmaError, DmaMemory, Mmio, Page, Platform};
use crate::statistics::{TxCounters, TxLedger};
use crate::wait::Backoff;

/// Bytes of an H2C descriptor.
pub(crate) const DESC_BYTES: usize = 16;

/// Descriptors that may wait for their doorbell: a longer run is published without being asked for.
const DOORBELL_BATCH: u16 = 32;

/// How long a completion may go unnoticed, ns: well below what a sender's socket buffer holds at 100 Gb/s.
const COMPLETION_NS: u64 = 2_000;

/// Slots for frames longer than a page.
const JUMBO_SLOTS: u16 = 32;

/// 802.1Q tag.
const VLAN_TAG_BYTES: u16 = 4;

/// A frame that was not taken. The queue is as it was, and what was posted before is published.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TxError {
    /// No descriptor is free: reap, and try again once the card has sent something.
    #[error("the ring is full: {outstanding} frames are outstanding")]
    Full {
        /// Frames that the card has.
        outstanding: u16,
    },
    /// Longer than the MTU allows.
    #[error("a frame of {len_bytes} bytes is too long: the MTU allows {limit} (mtu)")]
    TooLong {
        /// Its length, FCS left out.
        len_bytes: usize,
        /// The longest.
        limit: u16,
    },
    /// A frame of no bytes, or a range outside its page.
    #[error("a frame of {len_bytes} bytes at offset {offset} of its page")]
    Range {
        /// Its first byte's offset.
        offset: usize,
        /// Its length.
        len_bytes: usize,
    },
    /// No page for it, for now.
    #[error("no page for the frame: {0}")]
    NoPage(DmaError),
    /// The queue is being stopped.
    #[error("the queue is being stopped")]
    Stopping,
    /// The queue has failed and must be restarted.
    #[error("the queue has failed: {0}")]
    Fault(#[from] QueueFault),
}

/// When a queue tells its users to stop, and when to go on: Linux's `netif_stop_queue` and `netif_wake_queue`. The gap
/// between the two keeps a full ring from waking them for one frame each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thresholds {
    /// Stopped once fewer descriptors than this are free; 1 or more.
    pub stop_below: u16,
    /// Woken once so many are free again; at least `stop_below`, at most the ring's entries less 2.
    pub wake_at: u16,
}

/// What the user of a queue has set, and which outlives the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TxSettings {
    /// None: by the size of the ring.
    thresholds: Option<Thresholds>,
    completion_ns: u64,
}

/// Thresholds that would never stop, never wake, or wake at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a queue can't stop below {} free descriptors and wake at {}: 1 <= stop_below <= wake_at <= {capacity}",
    .asked.stop_below, .asked.wake_at
)]
pub struct ThresholdError {
    /// Asked for.
    pub asked: Thresholds,
    /// Descriptors that can be free.
    pub capacity: u16,
}

/// May frames be posted?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TxFlow {
    /// There is room.
    Open,
    /// Wait for the wake-up ([`crate::Polled::tx_woken`], [`TxQueue::take_wake`]). Whoever posts all the same is served as
    /// long as there is a free descriptor.
    Stopped {
        /// Free descriptors now.
        room: u16,
        /// At how many it wakes.
        wake_at: u16,
    },
}

/// A page that was not taken, given back to its owner.
#[derive(Debug)]
pub struct PostError<P> {
    /// The page.
    pub page: P,
    /// Why.
    pub cause: TxError,
}

/// What every transmit queue of a function obeys. The MTU may change while queues run, in whichever thread.
#[derive(Debug)]
pub(crate) struct TxLimits {
    mtu: AtomicU16,
    min_frame_len_bytes: u16,
}

impl TxLimits {
    pub(crate) fn new(mtu: u16, min_frame_len_bytes: u16) -> Self {
        Self { mtu: AtomicU16::new(mtu), min_frame_len_bytes }
    }

    /// Relaxed is enough: the MTU guards no other memory.
    pub(crate) fn set_mtu(&self, mtu: u16) {
        self.mtu.store(mtu, Ordering::Relaxed);
    }

    /// The longest frame: a VLAN tag comes on top of the MTU, as in Linux.
    fn frame_len_max(&self, frame: &[u8]) -> u16 {
        let tagged = matches!(frame.get(12..14), Some([0x81, 0x00] | [0x88, 0xA8]));
        let limit = self.mtu.load(Ordering::Relaxed).saturating_add(ETH_HEADER_BYTES);
        if tagged { limit.saturating_add(VLAN_TAG_BYTES) } else { limit }
    }
}

/// Who owns the bytes that a descriptor points at.
enum Slot<D: DmaMemory> {
    /// Nothing posted.
    Free,
    /// A page of this queue's own, mapped for as long as the queue lives.
    Own(D::DevicePage),
    /// A page from outside, mapped for this frame.
    Lent(D::DevicePage),
    /// A page from outside that came with its mapping.
    LentMapped(D::DevicePage),
    /// A page of the pair's receive queue, sent back by its hook.
    Received(D::DevicePage),
    /// A slot of the jumbo area.
    Jumbo(u16),
}

/// Frames longer than a page: the card has no scatter/gather, so that they need memory in one piece. A few slots of
/// coherent memory do; frames are copied in.
struct Jumbo<C> {
    area: C,
    slot_bytes: usize,
    free: Vec<u16>,
}

/// Pages that a queue still had at its end.
pub(crate) struct Leftover<P> {
    /// Of the pair's receive queue.
    pub(crate) received: Vec<P>,
    /// Lent with their mapping: of some receive queue, or of somebody unknown.
    pub(crate) lent: Vec<P>,
}

/// What a new queue is made of.
pub(crate) struct TxParts<P: Platform> {
    pub(crate) platform: Arc<P>,
    pub(crate) rel_qid: u16,
    pub(crate) qid: Qid,
    pub(crate) span: Span,
    pub(crate) limits: Arc<TxLimits>,
    /// Longest frame that the MTU could ever allow.
    pub(crate) max_frame_len_bytes: u16,
    /// Where its counters are published.
    pub(crate) ledger: TxLedger,
}

/// A transmit queue: owned by one thread at a time, which both posts and reaps.
///
/// `post` only writes descriptors; [`TxQueue::flush`] rings the doorbell. Frames are never left unpublished by surprise:
/// each refusal, each reap, a full ring and a run of 32 frames flush too.
///
/// Completions are taken back by its owner alone, in [`TxQueue::reap`] or [`crate::QueuePair::poll`]: nobody cleans another
/// one's ring. OpenNIC has no TX interrupt, so while frames are outstanding [`TxQueue::due_ns`] says when to look.
pub struct TxQueue<P: Platform> {
    platform: Arc<P>,
    rel_qid: u16,
    qid: Qid,
    span: Span,
    /// Where PIDX goes, in BAR0.
    pidx_doorbell: u32,
    ring: Coh<P>,
    slots: Vec<Slot<P::Dma>>,
    /// Length of the frame at each descriptor. The ring has it too, but there the card could write.
    lens: Vec<u16>,
    pages: Vec<Pg<P>>,
    jumbo: Option<Jumbo<Coh<P>>>,
    limits: Arc<TxLimits>,
    /// Lent pages that were sent, found when room had to be made for another frame.
    lent_back: Vec<Pg<P>>,
    /// Pages of the receive queue that were sent: the pair's poll gives them to it.
    received_back: Vec<Pg<P>>,
    thresholds: Thresholds,
    stopped: bool,
    /// Was stopped and is open again, and nobody was told yet.
    woken: bool,
    /// How long a frame's completion may go unnoticed, ns.
    completion_ns: u64,
    /// When completions are to be looked for, ns; none while nothing is outstanding.
    due_ns: Option<u64>,
    /// Next descriptor to write.
    pidx: u16,
    /// What the card was told.
    published: u16,
    /// Oldest descriptor not yet reaped.
    cidx: u16,
    state: QueueState,
    counters: TxCounters,
    ledger: TxLedger,
}

type Coh<P> = <<P as Platform>::Dma as DmaMemory>::Coherent;
type Pg<P> = <<P as Platform>::Dma as DmaMemory>::Page;

impl<P: Platform> TxQueue<P> {
    /// Allocate the ring. The card knows nothing of it yet.
    pub(crate) fn new(parts: TxParts<P>) -> Result<Self, DmaError> {
        let TxParts { platform, rel_qid, qid, span, limits, max_frame_len_bytes, ledger } = parts;
        let dma = platform.dma();
        let ring = dma.alloc_coherent(span.len_bytes(DESC_BYTES))?;
        let jumbo = match usize::from(max_frame_len_bytes) {
            len if len <= dma.page_size() => None,
            len => Some(Jumbo::new(dma, len, JUMBO_SLOTS.min(span.capacity()))?),
        };
        let mut slots = Vec::new();
        slots.resize_with(usize::from(span.wrap()), || Slot::Free);
        Ok(Self {
            rel_qid,
            qid,
            span,
            pidx_doorbell: doorbell_offset(doorbell::H2C_PIDX, rel_qid),
            ring,
            slots,
            lens: alloc::vec![0; usize::from(span.wrap())],
            pages: Vec::with_capacity(usize::from(span.capacity())),
            jumbo,
            limits,
            lent_back: Vec::new(),
            received_back: Vec::new(),
            thresholds: usual_thresholds(span),
            stopped: false,
            woken: false,
            completion_ns: COMPLETION_NS,
            due_ns: None,
            pidx: 0,
            published: 0,
            cidx: 0,
            state: QueueState::Running,
            counters: TxCounters::default(),
            ledger,
            platform,
        })
    }

    /// The queue, counted from the function's first.
    pub fn rel_qid(&self) -> u16 {
        self.rel_qid
    }

    /// The queue, as the card counts.
    pub fn qid(&self) -> Qid {
        self.qid
    }

    /// Where it stands.
    pub fn state(&self) -> QueueState {
        self.state
    }

    /// What it has counted.
    pub fn counters(&self) -> TxCounters {
        self.counters
    }

    /// Frames posted and not yet reaped.
    pub fn outstanding(&self) -> u16 {
        self.span.distance(self.cidx, self.pidx)
    }

    /// Frames that can be posted now: what a stop and wake threshold compares with.
    pub fn room(&self) -> u16 {
        self.span.capacity() - self.outstanding()
    }

    /// May frames be posted, or should their sender wait?
    pub fn flow(&self) -> TxFlow {
        match self.stopped {
            false => TxFlow::Open,
            true => TxFlow::Stopped { room: self.room(), wake_at: self.thresholds.wake_at },
        }
    }

    /// Was the queue stopped and is open again since this was last asked?
    pub fn take_wake(&mut self) -> bool {
        core::mem::take(&mut self.woken)
    }

    /// When it stops and wakes.
    pub fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// Change when it stops and wakes.
    ///
    /// # Errors
    /// [`ThresholdError`]; nothing was changed.
    pub fn set_thresholds(&mut self, asked: Thresholds) -> Result<(), ThresholdError> {
        let capacity = self.span.capacity();
        if asked.stop_below == 0 || asked.stop_below > asked.wake_at || asked.wake_at > capacity {
            return Err(ThresholdError { asked, capacity });
        }
        self.thresholds = asked;
        self.note_room();
        Ok(())
    }

    /// When completions are to be looked for, ns of the platform's clock: some time after the first frame that is
    /// outstanding, or after the last look. `None` while nothing is outstanding or the queue has failed.
    pub fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// How long a completion may go unnoticed, ns; counts from the next frame on.
    pub fn set_completion_ns(&mut self, ns: u64) {
        self.completion_ns = ns;
    }

    /// What a queue that takes this one's place shall go by.
    pub(crate) fn settings(&self) -> TxSettings {
        let changed = self.thresholds != usual_thresholds(self.span);
        TxSettings { thresholds: changed.then_some(self.thresholds), completion_ns: self.completion_ns }
    }

    /// Take over what was set. Thresholds that the ring is too small for by now stay as they are.
    pub(crate) fn inherit(&mut self, settings: TxSettings) {
        self.completion_ns = settings.completion_ns;
        if let Some(thresholds) = settings.thresholds {
            let _ = self.set_thresholds(thresholds);
        }
    }

    /// Does somebody wait to be woken?
    pub(crate) fn owes_wake(&self) -> bool {
        self.stopped || self.woken
    }

    /// Whoever waited for the queue before this one is woken: it is empty.
    pub(crate) fn wake(&mut self) {
        self.woken = true;
    }

    pub(crate) fn ring_addr(&self) -> u64 {
        self.ring.dma_addr().0
    }

    /// Copy a frame into the ring, padded to the configured minimum.
    ///
    /// # Errors
    /// [`TxError`]; nothing was posted, and earlier frames are published.
    pub fn post(&mut self, frame: &[u8]) -> Result<(), TxError> {
        self.try_post(frame).map_err(|cause| self.refuse(cause))
    }

    fn try_post(&mut self, frame: &[u8]) -> Result<(), TxError> {
        self.check_state()?;
        let limit = self.limits.frame_len_max(frame);
        if frame.len() > usize::from(limit) {
            return Err(TxError::TooLong { len_bytes: frame.len(), limit });
        }
        if frame.is_empty() {
            return Err(TxError::Range { offset: 0, len_bytes: 0 });
        }
        self.make_room()?;
        let len = frame.len().max(usize::from(self.limits.min_frame_len_bytes));
        let (addr, slot) = if len <= self.platform.dma().page_size() {
            self.fill_page(frame, len)?
        } else {
            self.fill_jumbo(frame, len)?
        };
        // `len` is at most the larger of two u16.
        self.push(addr, len as u16, slot);
        if self.room() == 0 || self.unpublished() >= DOORBELL_BATCH {
            self.flush()?;
        }
        Ok(())
    }

    /// Send bytes of a page that is lent until [`TxQueue::reap_with`] hands it back; a page that came mapped keeps its
    /// mapping. Nothing is padded.
    ///
    /// # Errors
    /// [`PostError`] returns the page.
    pub fn post_page(&mut self, page: Pg<P>, offset: usize, len_bytes: usize) -> Result<(), PostError<Pg<P>>> {
        if let Err(cause) = self.check_page(&page, offset, len_bytes) {
            return Err(PostError { page, cause: self.refuse(cause) });
        }
        let dma = self.platform.dma();
        let mapped = page.dma_addr().is_some();
        let lent = if mapped {
            dma.sync_for_device(page, offset, len_bytes)
        } else {
            dma.map(page, Direction::ToDevice, offset + len_bytes)
        };
        let page = match lent {
            Ok(page) => page,
            Err(refused) => {
                return Err(PostError { page: refused.page, cause: self.refuse(TxError::NoPage(refused.cause)) });
            }
        };
        let addr = self.platform.dma().buffer_addr(&page, offset, len_bytes).0;
        let slot = if mapped { Slot::LentMapped(page) } else { Slot::Lent(page) };
        self.push(addr, len_bytes as u16, slot);
        if self.room() == 0 || self.unpublished() >= DOORBELL_BATCH {
            // The frame is in the ring; a doorbell that fails shows in the queue's state and at the next call.
            let _ = self.flush();
        }
        Ok(())
    }

    /// Send a frame that a hook redirected here (Linux's `ndo_xdp_xmit`, for one frame). It is padded to the minimum in its
    /// page. No doorbell is rung unless the ring is full: [`TxQueue::flush`] once for all frames of a poll. The page comes
    /// back by [`XdpHook::returned`](crate::XdpHook::returned) of this pair's polls, or by [`TxQueue::reap_with`].
    ///
    /// # Errors
    /// [`PostError`] returns the page, which stays the caller's: nothing is freed here. What was posted before is published.
    pub fn xdp_xmit(&mut self, frame: XdpFrame<Pg<P>>) -> Result<(), PostError<Pg<P>>> {
        let sent = self.post_xdp(frame, Slot::LentMapped);
        match &sent {
            Ok(()) => self.counters.xdp_xmit += 1,
            Err(_) => self.counters.xdp_xmit_errors += 1,
        }
        sent
    }

    /// Send back a frame with its page, which is the pair's receive queue's.
    pub(crate) fn post_received(&mut self, frame: XdpFrame<Pg<P>>) -> Result<(), Pg<P>> {
        self.post_xdp(frame, Slot::Received).map_err(|refused| refused.page)
    }

    /// Is a descriptor free, if need be after a look for completions?
    pub(crate) fn has_room(&mut self) -> bool {
        match self.check_state().and_then(|()| self.make_room()) {
            Ok(()) => true,
            Err(cause) => {
                self.refuse(cause);
                false
            }
        }
    }

    fn post_xdp(
        &mut self,
        frame: XdpFrame<Pg<P>>,
        slot: impl FnOnce(<P::Dma as DmaMemory>::DevicePage) -> Slot<P::Dma>,
    ) -> Result<(), PostError<Pg<P>>> {
        let XdpFrame { mut page, offset, len_bytes, .. } = frame;
        if let Err(cause) = self.check_page(&page, offset, len_bytes) {
            return Err(PostError { page, cause: self.decline(cause) });
        }
        let padded = self.pad(&mut page, offset, len_bytes);
        // All of it: its holder may have written anywhere, and the page goes back to a receive ring afterwards.
        let page_len = page.bytes().len();
        let page = match self.platform.dma().sync_for_device(page, 0, page_len) {
            Ok(page) => page,
            Err(refused) => {
                return Err(PostError { page: refused.page, cause: self.decline(TxError::NoPage(refused.cause)) });
            }
        };
        let addr = self.platform.dma().buffer_addr(&page, offset, padded).0;
        self.push(addr, padded as u16, slot(page));
        if self.room() == 0 {
            let _ = self.flush();
        }
        Ok(())
    }

    /// Zeros behind a short frame, as far as its page reaches. Returns the length with them.
    fn pad(&self, page: &mut Pg<P>, offset: usize, len_bytes: usize) -> usize {
        let least = usize::from(self.limits.min_frame_len_bytes);
        match page.bytes_mut().get_mut(offset + len_bytes..offset + len_bytes.max(least)) {
            Some(padding) => {
                padding.fill(0);
                len_bytes.max(least)
            }
            None => len_bytes,
        }
    }

    fn check_page(&mut self, page: &Pg<P>, offset: usize, len_bytes: usize) -> Result<(), TxError> {
        self.check_state()?;
        let range = TxError::Range { offset, len_bytes };
        let end = offset.checked_add(len_bytes).ok_or(range)?;
        let frame = page.bytes().get(offset..end).ok_or(range)?;
        let limit = self.limits.frame_len_max(frame);
        if frame.is_empty() {
            return Err(range);
        }
        if len_bytes > usize::from(limit) {
            return Err(TxError::TooLong { len_bytes, limit });
        }
        self.make_room()
    }

    /// Tell the card of all that was posted. Rings once, and not at all if it knows already.
    ///
    /// # Errors
    /// [`QueueFault::Doorbell`], or what had stopped the queue before: a failed queue rings no more.
    pub fn flush(&mut self) -> Result<(), QueueFault> {
        if let QueueState::Faulted(fault) = self.state {
            return Err(fault);
        }
        if self.published == self.pidx {
            return Ok(());
        }
        // Descriptors (and through them pages) before the doorbell that lets the card read them.
        self.platform.dma().dma_wmb();
        let value = doorbell::H2cPidx { pidx: self.pidx, irq_arm: false }.to_word();
        self.platform
            .mmio()
            .write32(Bar::Qdma, self.pidx_doorbell, value)
            .map_err(|e| self.fail(QueueFault::Doorbell(e)))?;
        self.published = self.pidx;
        self.counters.doorbells += 1;
        self.publish_counters();
        self.start_timer();
        Ok(())
    }

    /// Take back what the card has finished with. Lent pages are freed; one that came mapped is somebody's, a pool's mostly,
    /// and waits for [`TxQueue::reap_with`], the pair's poll, or the end of the queue. Returns how many frames that were.
    ///
    /// # Errors
    /// [`QueueFault`] if the card's index can't be. Nothing is taken back then.
    pub fn reap(&mut self) -> Result<u16, QueueFault> {
        let done = self.collect()?;
        self.free_unmapped();
        Ok(done)
    }

    /// Free those lent pages that have no other home than the platform.
    fn free_unmapped(&mut self) {
        let unmapped = self.lent_back.extract_if(.., |page| page.dma_addr().is_none());
        unmapped.for_each(|page| self.platform.dma().free_page(page));
    }

    /// Like [`TxQueue::reap`], handing each lent page to `on_page`.
    ///
    /// # Errors
    /// [`QueueFault`].
    pub fn reap_with(&mut self, mut on_page: impl FnMut(Pg<P>)) -> Result<u16, QueueFault> {
        let done = self.begin_reap()?;
        self.lent_back.drain(..).for_each(&mut on_page);
        for _ in 0..done {
            if let Some(page) = self.release_oldest() {
                on_page(page);
            }
        }
        self.end_reap();
        Ok(done)
    }

    /// Pages of the receive queue that were sent since the last call.
    pub(crate) fn received_back(&mut self) -> impl Iterator<Item = Pg<P>> + use<'_, P> {
        self.received_back.drain(..)
    }

    /// Descriptors are free again: wake those who wait, and look again if some are still outstanding.
    fn end_reap(&mut self) {
        self.note_room();
        self.due_ns = None;
        self.start_timer();
    }

    /// Start the completion timer, unless it runs or there is nothing to wait for.
    fn start_timer(&mut self) {
        if self.due_ns.is_none() && self.outstanding() > 0 {
            self.due_ns = Some(self.platform.clock().now().saturating_add(self.completion_ns));
        }
    }

    /// Room has changed: does the queue stop or wake?
    fn note_room(&mut self) {
        let room = self.room();
        if room < self.thresholds.stop_below {
            self.stop();
        } else if self.stopped && room >= self.thresholds.wake_at && !self.lacks_slots() {
            self.stopped = false;
            self.woken = true;
            self.counters.woken += 1;
        }
    }

    /// Senders are to wait: for descriptors, or for a slot.
    fn stop(&mut self) {
        if !self.stopped {
            self.stopped = true;
            self.counters.stopped += 1;
        }
    }

    /// Is every slot for long frames in use? Slots come back with their descriptors, so that a queue that waits for one is
    /// woken by a reap.
    fn lacks_slots(&self) -> bool {
        self.jumbo.as_ref().is_some_and(|jumbo| jumbo.free.is_empty())
    }

    /// How many descriptors may be taken back now.
    fn begin_reap(&mut self) -> Result<u16, QueueFault> {
        if let QueueState::Faulted(fault) = self.state {
            return Err(fault);
        }
        self.flush()?;
        let done = self.finished().map_err(|fault| self.fail(fault))?;
        if done > 0 {
            // The status was read before; what it covers may be reused from here on.
            self.platform.dma().dma_rmb();
        }
        self.counters.completed += u64::from(done);
        self.counters.completed_bytes += self.len_bytes_of(done);
        self.publish_counters();
        Ok(done)
    }

    /// Bytes of the oldest `count` frames.
    fn len_bytes_of(&self, count: u16) -> u64 {
        (0..count).map(|i| u64::from(self.lens[usize::from(self.span.add(self.cidx, i))])).sum()
    }

    /// What was counted becomes visible to statistics: with each doorbell, reap and refusal.
    fn publish_counters(&mut self) {
        self.ledger.publish(&self.counters);
    }

    /// Who drives this queue.
    pub(crate) fn worker(&self) -> Arc<crate::statistics::Worker> {
        self.ledger.worker()
    }

    /// From here on another worker drives this queue, and its frames count as that one's ([`crate::Driver::worker`]).
    pub fn assign(&mut self, worker: &Arc<crate::statistics::Worker>) {
        self.publish_counters();
        self.ledger.assign(Arc::clone(worker));
    }

    /// Free the oldest descriptor; a lent page is returned.
    fn release_oldest(&mut self) -> Option<Pg<P>> {
        let page = self.release_slot(self.cidx);
        self.cidx = self.span.add(self.cidx, 1);
        page
    }

    /// How many descriptors the status word says are done, if that can be true.
    fn finished(&self) -> Result<u16, QueueFault> {
        let status = H2cStatus::from_u64(self.ring.load64(self.span.status_offset(DESC_BYTES)));
        if status.err != 0 {
            return Err(QueueFault::Status { code: status.err });
        }
        let to = self.span.index(status.cidx)?;
        let (from, moved) = (self.cidx, self.span.distance(self.cidx, to));
        let outstanding = self.span.distance(self.cidx, self.published);
        if moved > outstanding {
            return Err(QueueFault::IndexJump { from, to, moved, outstanding });
        }
        Ok(moved)
    }

    fn check_state(&self) -> Result<(), TxError> {
        match self.state {
            QueueState::Running => Ok(()),
            QueueState::Stopping => Err(TxError::Stopping),
            QueueState::Faulted(fault) => Err(TxError::Fault(fault)),
        }
    }

    /// A sender's frame is not taken.
    fn refuse(&mut self, cause: TxError) -> TxError {
        match cause {
            TxError::TooLong { .. } | TxError::Range { .. } => self.counters.refused += 1,
            TxError::NoPage(_) => self.counters.no_page += 1,
            TxError::Full { .. } | TxError::Stopping | TxError::Fault(_) => {}
        }
        self.decline(cause)
    }

    /// Every refusal publishes what came before it: a caller that was told "no" may not come back soon. A hook's frame counts
    /// as its own kind of loss, and nowhere else.
    fn decline(&mut self, cause: TxError) -> TxError {
        match cause {
            TxError::Full { .. } => self.counters.full += 1,
            TxError::TooLong { .. } | TxError::Range { .. } | TxError::NoPage(_) => {}
            TxError::Stopping | TxError::Fault(_) => return cause,
        }
        self.publish_counters();
        match self.flush() {
            Ok(()) => cause,
            Err(fault) => TxError::Fault(fault),
        }
    }

    fn make_room(&mut self) -> Result<(), TxError> {
        if self.room() == 0 {
            self.collect()?;
        }
        if self.room() == 0 { Err(TxError::Full { outstanding: self.outstanding() }) } else { Ok(()) }
    }

    /// Take back what the card has finished with. Lent pages wait for whoever reaps next.
    fn collect(&mut self) -> Result<u16, QueueFault> {
        let done = self.begin_reap()?;
        for _ in 0..done {
            if let Some(page) = self.release_oldest() {
                self.lent_back.push(page);
            }
        }
        self.end_reap();
        Ok(done)
    }

    /// Descriptors that the card doesn't know of.
    fn unpublished(&self) -> u16 {
        self.span.distance(self.published, self.pidx)
    }

    /// Copy a frame into one of the queue's own pages and hand that to the card.
    fn fill_page(&mut self, frame: &[u8], len: usize) -> Result<(u64, Slot<P::Dma>), TxError> {
        let dma = self.platform.dma();
        let mut page = match self.pages.pop() {
            Some(page) => page,
            None => dma.alloc_page().map_err(TxError::NoPage)?,
        };
        let bytes = page.bytes_mut();
        bytes[..frame.len()].copy_from_slice(frame);
        bytes[frame.len()..len].fill(0);
        let given = if page.dma_addr().is_some() {
            dma.sync_for_device(page, 0, len)
        } else {
            dma.map(page, Direction::ToDevice, len)
        };
        match given {
            Ok(page) => Ok((dma.buffer_addr(&page, 0, len).0, Slot::Own(page))),
            Err(refused) => {
                dma.free_page(refused.page);
                Err(TxError::NoPage(refused.cause))
            }
        }
    }

    fn fill_jumbo(&mut self, frame: &[u8], len: usize) -> Result<(u64, Slot<P::Dma>), TxError> {
        if self.jumbo.as_ref().is_none_or(|jumbo| jumbo.free.is_empty()) {
            self.collect()?;
        }
        let full = TxError::Full { outstanding: self.outstanding() };
        let jumbo = self.jumbo.as_mut().ok_or(full)?;
        let Some(slot) = jumbo.free.pop() else {
            self.stop();
            return Err(full);
        };
        Ok((jumbo.fill(slot, frame, len), Slot::Jumbo(slot)))
    }

    fn push(&mut self, addr: u64, len_bytes: u16, slot: Slot<P::Dma>) {
        // OpenNIC takes the frame's length from the metadata, the QDMA from `len`: they must agree.
        let desc = H2cDescriptor { metadata: u32::from(len_bytes), len_bytes, flags: 0, address: addr };
        let [w0, w1, w2, w3] = desc.to_words().map(u64::from);
        let offset = self.span.offset(self.pidx, DESC_BYTES);
        self.ring.store64(offset, w1 << 32 | w0);
        self.ring.store64(offset + 8, w3 << 32 | w2);
        self.slots[usize::from(self.pidx)] = slot;
        self.lens[usize::from(self.pidx)] = len_bytes;
        self.pidx = self.span.add(self.pidx, 1);
        self.counters.posted += 1;
        self.counters.posted_bytes += u64::from(len_bytes);
        self.note_room();
    }

    /// Take back what a descriptor points at; a lent page is returned.
    fn release_slot(&mut self, index: u16) -> Option<Pg<P>> {
        let dma = self.platform.dma();
        match core::mem::replace(&mut self.slots[usize::from(index)], Slot::Free) {
            Slot::Free => {}
            // The CPU wants to see none of its bytes: it will overwrite them.
            Slot::Own(page) => self.pages.push(dma.sync_for_cpu(page, 0, 0)),
            Slot::Lent(page) => return Some(dma.unmap(page, 0)),
            Slot::LentMapped(page) => return Some(dma.sync_for_cpu(page, 0, 0)),
            Slot::Received(page) => self.received_back.push(dma.sync_for_cpu(page, 0, 0)),
            Slot::Jumbo(slot) => {
                if let Some(jumbo) = &mut self.jumbo {
                    jumbo.free.push(slot);
                }
            }
        }
        None
    }

    fn fail(&mut self, fault: QueueFault) -> QueueFault {
        self.state = QueueState::Faulted(fault);
        self.due_ns = None;
        self.counters.faults += 1;
        self.publish_counters();
        fault
    }

    /// First part of a stop: no new frames, and time for those that the card has. Frames that it doesn't take within the
    /// limit are abandoned and counted at [`TxQueue::release`].
    pub(crate) fn quiesce(&mut self, limit_ns: u64) {
        if self.state == QueueState::Running {
            self.state = QueueState::Stopping;
        }
        let platform = Arc::clone(&self.platform);
        let mut wait = Backoff::new(platform.clock(), limit_ns);
        while self.reap().is_ok() && self.outstanding() > 0 && wait.again() {}
    }

    /// Second part: the card forgets the ring.
    pub(crate) fn invalidate(&self, contexts: &Contexts<'_, P>) -> Result<(), StopError> {
        contexts.stop_tx(self.qid).map_err(|cause| StopError::Card { qid: self.qid, cause })
    }

    /// Last part, once the card can't reach the memory any more: everything is freed, but for pages that belong to receive
    /// queues, which are handed back.
    pub(crate) fn release(mut self) -> Leftover<Pg<P>> {
        self.counters.abandoned += u64::from(self.outstanding());
        self.publish_counters();
        for index in 0..self.span.wrap() {
            if let Some(page) = self.release_slot(index) {
                self.lent_back.push(page);
            }
        }
        self.free_unmapped();
        for page in self.pages.drain(..) {
            self.platform.dma().free_page(page);
        }
        Leftover { received: self.received_back, lent: self.lent_back }
    }
}

/// What holds until somebody says otherwise.
fn usual_thresholds(span: Span) -> Thresholds {
    Thresholds { stop_below: 1, wake_at: (span.capacity() / 4).max(1) }
}

impl<C: Coherent> Jumbo<C> {
    fn new<D: DmaMemory<Coherent = C>>(dma: &D, frame_len_bytes: usize, slots: u16) -> Result<Self, DmaError> {
        // Stores are 8 bytes wide.
        let slot_bytes = frame_len_bytes.next_multiple_of(64);
        let area = dma.alloc_coherent(slot_bytes * usize::from(slots))?;
        Ok(Self { area, slot_bytes, free: (0..slots).collect() })
    }

    /// Copy a frame in, zeros up to `len`, and return its device address.
    fn fill(&self, slot: u16, frame: &[u8], len: usize) -> u64 {
        let base = usize::from(slot) * self.slot_bytes;
        for at in (0..len).step_by(8) {
            let mut word = [0; 8];
            let bytes = &frame[at.min(frame.len())..(at + 8).min(frame.len())];
            word[..bytes.len()].copy_from_slice(bytes);
            self.area.store64(base + at, u64::from_le_bytes(word));
        }
        self.area.dma_addr().0 + base as u64
    }
}
