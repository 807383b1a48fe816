//! A receive queue: a descriptor ring that offers pages, and a completion ring that says what was written into them.
//!
//! One completion stands for one frame, which lies in as many buffers as its length needs. Pages are used again in place:
//! a frame that its sink doesn't keep costs no store to the descriptor ring, only a new PIDX.

use alloc::sync::Arc;
use alloc::vec::Vec;

use regs::context::CompletionQueueError;
use regs::descriptor::{C2hDescriptor, Completion, CompletionStatus};
use regs::{Bar, Qid, doorbell};

use super::{PageSource, QueueFault, QueueState, Span, TxQueue, doorbell_offset};
use crate::config::{ConfigError, Moderation};
use crate::context::Contexts;
use crate::error::StopError;
use crate::geometry::{BufferGeometry, FRAME_BUFFERS_MAX};
use crate::hook::{Layout, NoHook, RedirectTarget, Verdict, XdpBuff, XdpFrame, XdpHook};
use crate::platform::{Coherent, Direction, DmaError, DmaMemory, MapError, Mmio, Page, Platform};
use crate::statistics::{RxCounters, RxLedger};

/// Bytes of a C2H descriptor.
pub(crate) const DESC_BYTES: usize = 8;

/// Bytes of a completion: the only size OpenNIC uses.
pub(crate) const COMPLETION_BYTES: usize = 8;

/// Completions after which credits go back to the card although the poll goes on.
const CREDIT_STEP_MAX: u16 = 64;

/// Freed descriptors that may wait for their doorbell.
const REFILL_SLACK_MAX: u16 = 32;

/// Who owns the page at a descriptor.
pub(crate) enum Slot<D: DmaMemory> {
    /// The card, or nobody yet.
    Device(D::DevicePage),
    /// This queue, while a sink looks at it.
    Cpu(D::Page),
    /// Lost: only between a failure and the stop of the queue.
    Empty,
}

/// What a new queue is made of.
pub(crate) struct RxParts<P: Platform> {
    pub(crate) platform: Arc<P>,
    pub(crate) rel_qid: u16,
    pub(crate) qid: Qid,
    pub(crate) span: Span,
    pub(crate) geometry: BufferGeometry,
    pub(crate) moderation: Moderation,
    /// Where its counters are published.
    pub(crate) ledger: RxLedger,
}

/// A receive queue: owned by one thread at a time.
pub struct RxQueue<P: Platform, S> {
    platform: Arc<P>,
    rel_qid: u16,
    qid: Qid,
    span: Span,
    geometry: BufferGeometry,
    moderation: Moderation,
    /// Where PIDX and CIDX go, in BAR0.
    pidx_doorbell: u32,
    cidx_doorbell: u32,
    ring: Coh<P>,
    completions: Coh<P>,
    slots: Vec<Slot<P::Dma>>,
    source: S,
    /// Oldest descriptor that the card may still use.
    desc_cidx: u16,
    /// PIDX that the card was told.
    published: u16,
    /// Next completion to look at.
    cidx: u16,
    /// CIDX that the card was told.
    credited: u16,
    /// Color of this lap's completions.
    color: bool,
    /// The card notifies when the next completion comes: the last CIDX doorbell asked for it.
    armed: bool,
    credit_step: u16,
    refill_slack: u16,
    state: QueueState,
    counters: RxCounters,
    ledger: RxLedger,
}

type Coh<P> = <<P as Platform>::Dma as DmaMemory>::Coherent;
type Pg<P> = <<P as Platform>::Dma as DmaMemory>::Page;

impl<P: Platform, S: PageSource<P::Dma>> RxQueue<P, S> {
    /// Allocate rings and fill every descriptor with a page. The card knows nothing of it yet.
    pub(crate) fn new(parts: RxParts<P>, source: S) -> Result<Self, (DmaError, S)> {
        let RxParts { platform, rel_qid, qid, span, geometry, moderation, ledger } = parts;
        let rings = platform
            .dma()
            .alloc_coherent(span.len_bytes(DESC_BYTES))
            .and_then(|ring| Ok((ring, platform.dma().alloc_coherent(span.len_bytes(COMPLETION_BYTES))?)));
        let (ring, completions) = match rings {
            Ok(rings) => rings,
            Err(cause) => return Err((cause, source)),
        };
        let (credit_step, refill_slack) = steps(span, geometry);
        let mut queue = Self {
            platform,
            rel_qid,
            qid,
            span,
            geometry,
            moderation,
            pidx_doorbell: doorbell_offset(doorbell::C2H_PIDX, rel_qid),
            cidx_doorbell: doorbell_offset(doorbell::COMPLETION_CIDX, rel_qid),
            ring,
            completions,
            slots: Vec::with_capacity(usize::from(span.wrap())),
            source,
            desc_cidx: 0,
            published: 0,
            cidx: 0,
            credited: 0,
            color: true,
            armed: false,
            credit_step,
            refill_slack,
            state: QueueState::Running,
            counters: RxCounters::default(),
            ledger,
        };
        match queue.fill() {
            Ok(()) => Ok(queue),
            Err(cause) => Err((cause, queue.release())),
        }
    }

    fn fill(&mut self) -> Result<(), DmaError> {
        let platform = Arc::clone(&self.platform);
        for index in 0..self.span.wrap() {
            let page = self.source.acquire(platform.dma())?;
            write_descriptor(platform.dma(), &self.ring, self.span, index, self.geometry, &page);
            self.slots.push(Slot::Device(page));
        }
        Ok(())
    }

    /// The queue, counted from the function's first.
    pub fn rel_qid(&self) -> u16 {
        self.rel_qid
    }

    /// The queue, as the card counts.
    pub fn qid(&self) -> Qid {
        self.qid
    }

    pub(crate) fn platform(&self) -> &Arc<P> {
        &self.platform
    }

    /// Where it stands.
    pub fn state(&self) -> QueueState {
        self.state
    }

    /// What it has counted.
    pub fn counters(&self) -> RxCounters {
        self.counters
    }

    /// Where in a page the card writes, and the longest frame.
    pub fn geometry(&self) -> BufferGeometry {
        self.geometry
    }

    /// Where its pages come from.
    pub fn source(&self) -> &S {
        &self.source
    }

    pub(crate) fn ring_addr(&self) -> u64 {
        self.ring.dma_addr().0
    }

    pub(crate) fn completions_addr(&self) -> u64 {
        self.completions.dma_addr().0
    }

    /// A page that a sink kept is free again.
    pub fn give_back(&mut self, page: Pg<P>) {
        self.source.give_back(self.platform.dma(), page);
    }

    /// Does a page that was found elsewhere belong here?
    pub(crate) fn owns(&self, page: &Pg<P>) -> bool {
        self.source.owns(self.platform.dma(), page)
    }

    /// First doorbells: all buffers, then the first notification. The contexts must be in place.
    pub(crate) fn arm(&mut self) -> Result<(), QueueFault> {
        self.publish()?;
        self.credit(true)
    }

    /// Is a frame waiting? Looks at the next completion's color only.
    pub fn has_pending(&self) -> bool {
        self.state == QueueState::Running && self.peek().color == self.color
    }

    /// Hand up to `budget` frames to `sink`, in order, and return how many that were.
    ///
    /// Fewer than `budget` means that the ring was seen empty and the card was asked to notify at the next completion; one
    /// that came in between makes it notify at once. Exactly `budget` means that there may be more: call again, no
    /// notification will come (Linux's NAPI contract). Pages that `sink` doesn't take are used again in place.
    ///
    /// [`crate::QueuePair::poll`] does this and the rest of a poll.
    ///
    /// # Errors
    /// [`QueueFault`] if the card wrote something that can't be; frames before it were handed up.
    pub fn poll(&mut self, budget: usize, sink: impl FnMut(&mut RxFrame<'_, P::Dma>)) -> Result<usize, QueueFault> {
        let done = self.receive(budget, &mut NoHook, None, sink)?;
        self.complete(done < budget)?;
        Ok(done)
    }

    /// The frames of a poll: up to `budget` of them through `hook`, and those that pass to `sink`. Credits go back on the
    /// way; [`RxQueue::complete`] must follow.
    pub(crate) fn receive<H: XdpHook<P::Dma>>(
        &mut self,
        budget: usize,
        hook: &mut H,
        mut tx: Option<&mut TxQueue<P>>,
        mut sink: impl FnMut(&mut RxFrame<'_, P::Dma>),
    ) -> Result<usize, QueueFault> {
        if let QueueState::Faulted(fault) = self.state {
            return Err(fault);
        }
        let status = self.check_status().map_err(|fault| self.fail(fault))?;
        let mut done = 0;
        while done < budget {
            let Some(completion) = self.next().map_err(|fault| self.fail(fault))? else { break };
            self.deliver(completion, hook, tx.as_deref_mut(), &mut sink).map_err(|fault| self.fail(fault))?;
            done += 1;
            if self.span.distance(self.credited, self.cidx) >= self.credit_step {
                self.give_credit(false)?;
            }
        }
        if self.promised(&status) {
            // The status came before its entry is seen (relaxed ordering). The card has notified and would wait for CIDX for
            // ever, so it is told again that this entry was not read yet, and notifies once more.
            self.armed = false;
        }
        Ok(done)
    }

    /// The end of a poll: what was read goes back to the card, which with `arm` is asked to notify again.
    pub(crate) fn complete(&mut self, arm: bool) -> Result<(), QueueFault> {
        self.give_credit(arm)?;
        self.publish_counters();
        if arm {
            // The ring is empty: there is time.
            self.ledger.publish_pool(&self.source.statistics());
        }
        Ok(())
    }

    /// What was counted becomes visible to statistics: with each poll.
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

    /// Will the card notify at the next completion, without any further doorbell?
    pub fn is_armed(&self) -> bool {
        self.armed
    }

    /// When it notifies.
    pub fn moderation(&self) -> Moderation {
        self.moderation
    }

    /// Change when the card notifies, at once: mode and both indices go with the completion doorbell, so that the queue goes
    /// on meanwhile (`spec/qdma.md` section 6). A queue that waits for a notification waits for the next one by the new rule.
    ///
    /// [`crate::Driver::set_moderation`] also keeps it for the next up and enables the vector.
    ///
    /// # Errors
    /// [`ConfigError`] for a rule that can't work, [`QueueFault`] if the doorbell fails; see [`ModerationError`].
    pub fn set_moderation(&mut self, moderation: Moderation) -> Result<(), ModerationError> {
        moderation.check()?;
        if let QueueState::Faulted(fault) = self.state {
            return Err(fault.into());
        }
        self.moderation = moderation;
        self.credit(self.armed)?;
        Ok(())
    }

    /// Does the status word cover an entry that is not seen yet? Index and color together tell ahead from behind: the two
    /// are never a whole lap apart.
    fn promised(&self, status: &CompletionStatus) -> bool {
        if status.color == self.color { status.pidx > self.cidx } else { status.pidx < self.cidx }
    }

    /// The status word is not needed to find completions (their color says it), but it alone carries the card's errors.
    fn check_status(&self) -> Result<CompletionStatus, QueueFault> {
        let raw = self.completions.load64(self.span.status_offset(COMPLETION_BYTES));
        let status = CompletionStatus::from_u64(raw);
        if status.err != CompletionQueueError::None {
            return Err(QueueFault::Status { code: status.err as u8 });
        }
        self.span.index(status.pidx)?;
        Ok(status)
    }

    #[inline]
    fn peek(&self) -> Completion {
        Completion::from_u64(self.completions.load64(self.span.offset(self.cidx, COMPLETION_BYTES)))
    }

    /// The next completion, if the card has written it and it can be true.
    #[inline]
    fn next(&mut self) -> Result<Option<Completion>, QueueFault> {
        let completion = self.peek();
        if completion.color != self.color {
            return Ok(None);
        }
        // The entry is one atomic word. What it speaks of, the payload, may be read from here on.
        self.platform.dma().dma_rmb();
        self.check(&completion)?;
        Ok(Some(completion))
    }

    #[inline]
    fn check(&self, completion: &Completion) -> Result<(), QueueFault> {
        let cidx = self.cidx;
        if completion.err {
            return Err(QueueFault::Completion { cidx });
        }
        if completion.qid != self.qid.0 {
            return Err(QueueFault::WrongQueue { cidx, qid: completion.qid, expected: self.qid.0 });
        }
        // Frames longer than the MAC's limit are taken: upstream's shell has no such limit on its way to the host, and a user
        // box may lengthen frames. Nothing that comes from the wire may stop a queue; only what can't lie in its buffers does.
        let len_bytes = completion.len_bytes;
        let descriptors = self.geometry.descriptors_for(len_bytes);
        let outstanding = self.span.distance(self.desc_cidx, self.published);
        if len_bytes == 0 || descriptors > outstanding.min(FRAME_BUFFERS_MAX) {
            return Err(QueueFault::Length { cidx, len_bytes, descriptors, outstanding });
        }
        Ok(())
    }

    /// Show one frame to the hook and the sink and put its pages, or those that replace them, back into the ring.
    #[inline]
    fn deliver<H: XdpHook<P::Dma>>(
        &mut self,
        completion: Completion,
        hook: &mut H,
        tx: Option<&mut TxQueue<P>>,
        sink: &mut impl FnMut(&mut RxFrame<'_, P::Dma>),
    ) -> Result<(), QueueFault> {
        let len_bytes = completion.len_bytes;
        let count = self.geometry.descriptors_for(len_bytes);
        self.take_pages(len_bytes, count);
        let mut layout = whole(self.geometry, len_bytes, count);
        if self.state == QueueState::Running {
            self.counters.frames += 1;
            self.counters.bytes += u64::from(len_bytes);
            if !H::ACTIVE || self.passes(completion.pkt_id, count, &mut layout, hook, tx)? {
                sink(&mut self.frame(completion.pkt_id, count, layout));
            }
        } else {
            self.counters.dropped_stopping += 1;
        }
        self.return_pages(count, layout.written)?;
        self.desc_cidx = self.span.add(self.desc_cidx, count);
        self.cidx = self.span.add(self.cidx, 1);
        self.color ^= self.cidx == 0;
        Ok(())
    }

    #[inline]
    fn frame(&mut self, pkt_id: u16, count: u16, layout: Layout) -> RxFrame<'_, P::Dma> {
        RxFrame {
            rel_qid: self.rel_qid,
            pkt_id,
            layout,
            first: self.desc_cidx,
            count,
            span: self.span,
            geometry: self.geometry,
            dma: self.platform.dma(),
            ring: &self.ring,
            slots: &mut self.slots,
            source: &mut self.source,
            kept: &mut self.counters.pages_kept,
            failures: &mut self.counters.alloc_failures,
        }
    }

    /// Run the hook on a frame and do as it says. True if the frame is to be handed up, as `layout` then has it.
    fn passes<H: XdpHook<P::Dma>>(
        &mut self,
        pkt_id: u16,
        count: u16,
        layout: &mut Layout,
        hook: &mut H,
        tx: Option<&mut TxQueue<P>>,
    ) -> Result<bool, QueueFault> {
        let Some((page, fragments)) = split_frame(&mut self.slots, self.span, self.geometry, self.desc_cidx, count)
        else {
            // Every page of the frame was taken from the card just before.
            return Ok(true);
        };
        let mut buff = XdpBuff { page, fragments, layout: *layout, rel_qid: self.rel_qid, pkt_id };
        let verdict = hook.run(&mut buff);
        *layout = buff.layout;
        match verdict {
            Verdict::Pass => self.counters.xdp_pass += 1,
            Verdict::Drop => self.counters.xdp_drop += 1,
            Verdict::Aborted => {
                self.counters.xdp_drop += 1;
                self.counters.xdp_aborted += 1;
            }
            Verdict::Tx => self.send_back(count, *layout, tx),
            Verdict::Redirect(target) => self.redirect(count, *layout, target, hook),
        }
        Ok(verdict == Verdict::Pass)
    }

    /// The frame goes out of `tx` with its page. Whatever stands against it leaves the page in this ring or brings it back.
    fn send_back(&mut self, count: u16, layout: Layout, tx: Option<&mut TxQueue<P>>) {
        let possible = count == 1 && self.source.direction() == Direction::Bidirectional;
        let sent = possible && tx.is_some_and(|tx| self.try_send_back(layout, tx));
        if sent { self.counters.xdp_tx += 1 } else { self.counters.xdp_tx_errors += 1 }
    }

    fn try_send_back(&mut self, layout: Layout, tx: &mut TxQueue<P>) -> bool {
        // Room is asked for first: a page that can't be sent shall not cost another one.
        if !tx.has_room() {
            return false;
        }
        let Some(frame) = self.take_frame(layout) else { return false };
        tx.post_received(frame).map_err(|page| self.source.give_back(self.platform.dma(), page)).is_ok()
    }

    fn redirect<H: XdpHook<P::Dma>>(&mut self, count: u16, layout: Layout, target: RedirectTarget, hook: &mut H) {
        let frame = if count == 1 { self.take_frame(layout) } else { None };
        let gone = frame.is_some_and(|frame| match hook.redirect(target, frame) {
            Ok(()) => true,
            Err(frame) => {
                self.source.give_back(self.platform.dma(), frame.page);
                false
            }
        });
        if gone { self.counters.xdp_redirect += 1 } else { self.counters.xdp_redirect_errors += 1 }
    }

    /// The frame's one page, for good; another takes its place in the ring. `None` if there is no other.
    fn take_frame(&mut self, layout: Layout) -> Option<XdpFrame<Pg<P>>> {
        let taken = self.frame(0, 1, layout).take(0).ok()?;
        let TakenPage { page, offset, len_bytes } = taken;
        Some(XdpFrame { page, offset, len_bytes, meta_len_bytes: usize::from(layout.meta_len) })
    }

    /// The CPU takes a frame's pages, and sees of each what the frame covers.
    #[inline]
    fn take_pages(&mut self, len_bytes: u16, count: u16) {
        let dma = self.platform.dma();
        for i in 0..count {
            let slot = &mut self.slots[usize::from(self.span.add(self.desc_cidx, i))];
            let range = segment_len(self.geometry, len_bytes, i);
            *slot = match core::mem::replace(slot, Slot::Empty) {
                Slot::Device(page) => {
                    Slot::Cpu(dma.sync_for_cpu(page, usize::from(self.geometry.headroom()), usize::from(range)))
                }
                other => other,
            };
        }
    }

    /// Pages that the sink left go back to the card. Those of a frame that a hook has written are synced whole: a line that
    /// stays in a cache would be written over the next frame.
    #[inline]
    fn return_pages(&mut self, count: u16, written: bool) -> Result<(), QueueFault> {
        let dma = self.platform.dma();
        let headroom = usize::from(self.geometry.headroom());
        for i in 0..count {
            let slot = &mut self.slots[usize::from(self.span.add(self.desc_cidx, i))];
            *slot = match core::mem::replace(slot, Slot::Empty) {
                Slot::Cpu(page) => match give(dma, page, headroom, written) {
                    Ok(page) => Slot::Device(page),
                    Err(refused) => {
                        // Its source knows whether it is a whole page, and what becomes of one that can't be used.
                        self.source.give_back(dma, refused.page);
                        return Err(QueueFault::Page(refused.cause));
                    }
                },
                other => other,
            };
        }
        Ok(())
    }

    /// Completions go back first, then descriptors: the card can then never have more frames to report than the completion
    /// ring has room for. The notification is asked for only once, and only if something changed since.
    fn give_credit(&mut self, arm: bool) -> Result<(), QueueFault> {
        let arm = arm && self.state == QueueState::Running;
        if self.credited != self.cidx || (arm && !self.armed) {
            self.credit(arm)?;
        }
        if self.refill() > self.refill_slack {
            self.publish()?;
        }
        Ok(())
    }

    /// Descriptors that are ready and that the card doesn't know of.
    fn refill(&self) -> u16 {
        self.span.capacity() - self.span.distance(self.desc_cidx, self.published)
    }

    fn publish(&mut self) -> Result<(), QueueFault> {
        let pidx = self.span.add(self.desc_cidx, self.span.capacity());
        self.platform.dma().dma_wmb();
        let value = doorbell::C2hPidx { pidx, irq_arm: false }.to_word();
        self.ring_doorbell(self.pidx_doorbell, value)?;
        self.published = pidx;
        self.counters.doorbells += 1;
        Ok(())
    }

    fn credit(&mut self, arm: bool) -> Result<(), QueueFault> {
        let value = doorbell::CompletionCidx {
            cidx: self.cidx,
            counter_index: self.moderation.counter_index,
            timer_index: self.moderation.timer_index,
            trigger_mode: self.moderation.mode,
            en_stat_desc: true,
            irq_arm: arm && self.moderation.interrupt,
        };
        self.ring_doorbell(self.cidx_doorbell, value.to_word())?;
        self.credited = self.cidx;
        self.armed = arm;
        self.counters.credits += 1;
        Ok(())
    }

    fn ring_doorbell(&mut self, offset: u32, value: u32) -> Result<(), QueueFault> {
        self.platform.mmio().write32(Bar::Qdma, offset, value).map_err(|e| self.fail(QueueFault::Doorbell(e)))
    }

    fn fail(&mut self, fault: QueueFault) -> QueueFault {
        self.state = QueueState::Faulted(fault);
        self.counters.faults += 1;
        self.publish_counters();
        fault
    }

    /// First part of a stop: from here on frames are counted and not handed up.
    pub(crate) fn stop_delivery(&mut self) {
        if self.state == QueueState::Running {
            self.state = QueueState::Stopping;
        }
    }

    /// Take what has come meanwhile. Returns how many frames that were; a fault ends it.
    pub(crate) fn drain_pending(&mut self) -> usize {
        self.poll(usize::from(self.span.capacity()), |_| {}).unwrap_or(0)
    }

    /// Second part: the card forgets the rings.
    pub(crate) fn invalidate(&self, contexts: &Contexts<'_, P>) -> Result<(), StopError> {
        contexts.stop_rx(self.qid).map_err(|cause| StopError::Card { qid: self.qid, cause })
    }

    /// Last part, once the card can't reach the memory any more: every page is let go of.
    pub(crate) fn release(mut self) -> S {
        self.count_landed();
        self.publish_counters();
        let platform = Arc::clone(&self.platform);
        let dma = platform.dma();
        for slot in self.slots.drain(..) {
            match slot {
                Slot::Device(page) => self.source.retire(dma, page),
                // Left by a frame in the midst of which the queue failed.
                Slot::Cpu(page) => self.source.give_back(dma, page),
                Slot::Empty => {}
            }
        }
        self.source.drain(dma);
        self.ledger.publish_pool(&self.source.statistics());
        self.source
    }

    /// Frames that the card wrote after the last look and before it forgot the rings are lost, and have a name like those
    /// before them. No doorbell is rung for them: the queue has none any more. What a queue in error wrote last is not
    /// believed.
    fn count_landed(&mut self) {
        if matches!(self.state, QueueState::Faulted(_)) {
            return;
        }
        // Each takes a descriptor at least, and a completion that takes more than there are ends it.
        while let Ok(Some(completion)) = self.next() {
            self.counters.dropped_stopping += 1;
            self.desc_cidx = self.span.add(self.desc_cidx, self.geometry.descriptors_for(completion.len_bytes));
            self.cidx = self.span.add(self.cidx, 1);
            self.color ^= self.cidx == 0;
        }
    }
}

/// How many completions, and how many freed descriptors, may wait for a doorbell. The slack leaves enough descriptors with
/// the card for the longest frame, or it could wait for ever for a buffer that is already free.
fn steps(span: Span, geometry: BufferGeometry) -> (u16, u16) {
    let quarter = span.capacity() / 4;
    let spare = span.capacity().saturating_sub(geometry.descriptors_max());
    (quarter.clamp(1, CREDIT_STEP_MAX), quarter.min(spare).min(REFILL_SLACK_MAX))
}

/// A setting that was not taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ModerationError {
    /// It can't work; nothing was changed.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The queue has failed, before or by this.
    #[error(transparent)]
    Fault(#[from] QueueFault),
}

/// Hand a page of the ring to the card again.
#[inline]
fn give<D: DmaMemory>(
    dma: &D,
    page: D::Page,
    headroom: usize,
    written: bool,
) -> Result<D::DevicePage, MapError<D::Page>> {
    if written {
        let len_bytes = page.bytes().len();
        dma.sync_for_device(page, 0, len_bytes)
    } else {
        dma.sync_for_device(page, headroom, 0)
    }
}

/// A frame as the card wrote it.
#[inline]
fn whole(geometry: BufferGeometry, len_bytes: u16, count: u16) -> Layout {
    Layout {
        start: geometry.headroom(),
        first_len: segment_len(geometry, len_bytes, 0),
        last_len: segment_len(geometry, len_bytes, count - 1),
        len: u32::from(len_bytes),
        meta_len: 0,
        written: false,
    }
}

/// A frame's first page, and the others.
fn split_frame<D: DmaMemory>(
    slots: &mut [Slot<D>],
    span: Span,
    geometry: BufferGeometry,
    first: u16,
    count: u16,
) -> Option<(&mut D::Page, Fragments<'_, D>)> {
    let (before, rest) = slots.split_at_mut(usize::from(first));
    let (slot, after) = rest.split_first_mut()?;
    let Slot::Cpu(page) = slot else { return None };
    Some((page, Fragments { before, after, span, geometry, first, count: count - 1 }))
}

/// The buffers of a frame behind its first, which may lie on both sides of it in the ring.
pub(crate) struct Fragments<'a, D: DmaMemory> {
    before: &'a mut [Slot<D>],
    after: &'a mut [Slot<D>],
    span: Span,
    geometry: BufferGeometry,
    /// Descriptor of the first buffer, which is not among them.
    first: u16,
    count: u16,
}

impl<D: DmaMemory> Fragments<'_, D> {
    pub(crate) fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// First byte of the frame in each.
    pub(crate) fn offset(&self) -> u16 {
        self.geometry.headroom()
    }

    /// The frame's bytes in fragment `i`: all but the last are full.
    pub(crate) fn bytes(&self, i: usize, last_len: u16) -> &[u8] {
        let Some(i) = u16::try_from(i).ok().filter(|i| *i < self.count) else { return &[] };
        let len = if i + 1 == self.count { last_len } else { self.geometry.hw_len_bytes() };
        let at = usize::from(self.span.add(self.first, i + 1));
        let first = usize::from(self.first);
        let slot = if at > first { self.after.get(at - first - 1) } else { self.before.get(at) };
        let start = usize::from(self.offset());
        match slot {
            Some(Slot::Cpu(page)) => page.bytes().get(start..start + usize::from(len)).unwrap_or(&[]),
            _ => &[],
        }
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut D::Page> {
        let at = usize::from(self.span.add(self.first, self.count));
        let first = usize::from(self.first);
        let slot = match at.cmp(&first) {
            core::cmp::Ordering::Greater => self.after.get_mut(at - first - 1),
            core::cmp::Ordering::Less => self.before.get_mut(at),
            core::cmp::Ordering::Equal => None,
        };
        match slot {
            Some(Slot::Cpu(page)) => Some(page),
            _ => None,
        }
    }
}

/// Bytes of a frame that lie in its buffer `i`: all but the last are full.
#[inline]
fn segment_len(geometry: BufferGeometry, len_bytes: u16, i: u16) -> u16 {
    (len_bytes - i * geometry.hw_len_bytes()).min(geometry.hw_len_bytes())
}

fn write_descriptor<D: DmaMemory>(
    dma: &D,
    ring: &D::Coherent,
    span: Span,
    index: u16,
    geometry: BufferGeometry,
    page: &D::DevicePage,
) {
    let address = dma.buffer_addr(page, geometry.headroom().into(), geometry.hw_len_bytes().into()).0;
    ring.store64(span.offset(index, DESC_BYTES), C2hDescriptor { address }.to_u64());
}

/// A frame that has come, in the hands of a sink for the length of one call.
///
/// Its bytes lie in one or more segments, each in a page of its own behind 256 bytes of headroom. A sink that wants to
/// keep a page [takes](RxFrame::take) it; what it leaves goes back to the card when it returns.
pub struct RxFrame<'a, D: DmaMemory> {
    rel_qid: u16,
    pkt_id: u16,
    layout: Layout,
    first: u16,
    count: u16,
    span: Span,
    geometry: BufferGeometry,
    dma: &'a D,
    ring: &'a D::Coherent,
    slots: &'a mut [Slot<D>],
    source: &'a mut dyn PageSource<D>,
    kept: &'a mut u64,
    failures: &'a mut u64,
}

impl<D: DmaMemory> RxFrame<'_, D> {
    /// The queue, counted from the function's first.
    pub fn rel_qid(&self) -> u16 {
        self.rel_qid
    }

    /// The shell's packet number: starts at 1, counts over all queues, wraps at 16 bits.
    pub fn pkt_id(&self) -> u16 {
        self.pkt_id
    }

    /// Ethernet header to payload, FCS left out.
    pub fn len_bytes(&self) -> usize {
        self.layout.len as usize
    }

    /// What a hook left right before the frame.
    pub fn meta(&self) -> &[u8] {
        let (start, len) = (usize::from(self.layout.start), usize::from(self.layout.meta_len));
        match self.slot(0) {
            Some((Slot::Cpu(page), ..)) => page.bytes().get(start - len..start).unwrap_or(&[]),
            _ => &[],
        }
    }

    /// How many pages the frame lies in.
    pub fn segment_count(&self) -> usize {
        usize::from(self.count)
    }

    /// The bytes in page `i`, or nothing if that page was taken or isn't of this frame.
    #[inline]
    pub fn segment(&self, i: usize) -> &[u8] {
        match self.slot(i) {
            Some((Slot::Cpu(page), start, len)) => page.bytes().get(start..start + len).unwrap_or(&[]),
            _ => &[],
        }
    }

    /// All segments in order.
    #[inline]
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.segment_count()).map(|i| self.segment(i))
    }

    /// Copy the frame to the end of `out`. Taken pages are missing in it.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        for segment in self.segments() {
            out.extend_from_slice(segment);
        }
    }

    /// Keep page `i`; another takes its place in the ring in the same act, so that the ring never has a hole. The page stays
    /// mapped; hand it back with [`RxQueue::give_back`].
    ///
    /// # Errors
    /// The [`DmaError`] if no other page can be had: the frame stays as it is, to be copied or dropped.
    /// [`DmaError::Invalid`] if the page was taken before or `i` is not of this frame.
    pub fn take(&mut self, i: usize) -> Result<TakenPage<D::Page>, DmaError> {
        let Some((Slot::Cpu(_), offset, len_bytes)) = self.slot(i) else {
            return Err(DmaError::Invalid { why: "the frame has no such page, or it was taken" });
        };
        let other = self.source.acquire(self.dma).inspect_err(|_| *self.failures += 1)?;
        let index = self.span.add(self.first, i as u16);
        write_descriptor(self.dma, self.ring, self.span, index, self.geometry, &other);
        let slot = core::mem::replace(&mut self.slots[usize::from(index)], Slot::Device(other));
        *self.kept += 1;
        match slot {
            Slot::Cpu(page) => Ok(TakenPage { page, offset, len_bytes }),
            // Seen above to be `Cpu`, and nothing in between changes it.
            Slot::Device(_) | Slot::Empty => Err(DmaError::Invalid { why: "the page was taken" }),
        }
    }

    /// Slot `i` of the frame, with offset and length of the bytes in it.
    #[inline]
    fn slot(&self, i: usize) -> Option<(&Slot<D>, usize, usize)> {
        let i = u16::try_from(i).ok().filter(|i| *i < self.count)?;
        let slot = &self.slots[usize::from(self.span.add(self.first, i))];
        let (start, len) = match i {
            0 => (self.layout.start, self.layout.first_len),
            i if i + 1 == self.count => (self.geometry.headroom(), self.layout.last_len),
            _ => (self.geometry.headroom(), self.geometry.hw_len_bytes()),
        };
        Some((slot, usize::from(start), usize::from(len)))
    }
}

/// A page that a sink keeps, and where the frame's bytes lie in it.
#[derive(Debug)]
pub struct TakenPage<P> {
    /// The page, still mapped.
    pub page: P,
    /// First byte of the frame in it.
    pub offset: usize,
    /// Bytes of the frame in it.
    pub len_bytes: usize,
}

impl<P: Page> TakenPage<P> {
    /// The frame's bytes.
    pub fn bytes(&self) -> &[u8] {
        self.page.bytes().get(self.offset..self.offset + self.len_bytes).unwrap_or(&[])
    }
}
