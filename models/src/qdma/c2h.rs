//! The C2H engine: frames from the shell into the driver's buffers, then their completions.
//!
//! ```text
//!   c2h_frame ─► inbox ─► issue ─────────────► landing ─► finished ─┐
//!                          │ takes descriptors   data in            ├─► completion entry
//!                          │ of the frame's      host memory        │   (or the drop's name)
//!   prefetch ─► descriptors┘ queue          c2h_completion ─────────┘
//! ```
//!
//! One stream, in order: a frame that waits for descriptors holds everything behind it. A completion waits for the frame
//! whose number it carries, as the hardware's `wait_pld_pkt_id` does.
//!
//! Source: qdma.md 5.3, 5.4, 7.5, 8, 9.3; credits and prefetch 3.3, 3.4.

use std::collections::VecDeque;

use regs::context::{CreditContext, EntrySize, HwDescContext, PrefetchContext, SwDescContext};
use regs::descriptor::C2hDescriptor;
use regs::doorbell::C2hPidx;
use regs::{FuncId, Qid};

use super::DropReason;
use super::completion::{CompletionEngine, Delivery};
use super::config::NoDesc;
use super::core::Core;
use super::errors::{self, Fault, Place};
use super::link::{Read, ReadKind};
use super::ring::{self, Ring};
use crate::host_memory::HostMemory;
use crate::stream::{C2hCompletion, C2hFrame, Offer};
use crate::time::Time;

/// Error bits of a software context. Source: qdma.md 3.1 (meaning recalled).
const ERR_DESCRIPTOR: u8 = 1;

#[derive(Clone, Default)]
struct C2hQueue {
    sw: SwDescContext,
    hw: HwDescContext,
    credit: CreditContext,
    prefetch: PrefetchContext,
    /// Buffers fetched and not yet used, oldest first.
    buffers: VecDeque<u64>,
    /// Descriptors of the fetch on its way.
    fetching: u16,
    /// Reads of an earlier generation are void.
    generation: u32,
    /// A doorbell came since the context was written: only then does the engine look at the ring. (onic.ko enables the
    /// queue before it clears the hardware context, whose stale index must not start a fetch.)
    rung: bool,
    /// Descriptors promised to frames in the inbox; counted for [`NoDesc::Drop`] only.
    promised: u16,
}

impl C2hQueue {
    fn enabled(&self) -> bool {
        self.sw.qen && self.prefetch.valid
    }

    fn failed(&self) -> bool {
        self.sw.err != 0 || self.prefetch.err
    }

    fn func(&self) -> FuncId {
        super::dma_func(u32::from(self.sw.func_id))
    }

    /// Where a descriptor lies. The base counts from a whole one on.
    fn desc_addr(&self, slot: u16) -> u64 {
        (self.sw.ring_base & !7).wrapping_add(8 * u64::from(slot))
    }

    /// Index of the oldest descriptor that no frame has used.
    fn cidx(&self, ring: Ring) -> u16 {
        ring.back(self.hw.cidx, self.buffers.len() as u16)
    }

    /// Forget fetched descriptors and reads on their way.
    fn flush(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.fetching = 0;
        self.buffers.clear();
        self.promised = 0;
    }
}

/// A frame on its way in.
struct Inbound {
    frame: C2hFrame,
    pkt_id: u16,
    ready: Time,
    /// Descriptors promised to it.
    promised: u16,
    /// Its queue was enabled when it came.
    enabled: bool,
    /// It is lost already, for this reason.
    lost: Option<DropReason>,
}

/// How a frame went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// Its data were written.
    Written,
    /// Its queue is in error: a completion with the error bit is due.
    Failed,
    /// It is lost.
    Lost(DropReason),
}

/// What the frame at the head of the inbox does.
enum Decision {
    /// It goes on like this, with so many buffers of so many bytes.
    Go(Outcome, u16, u32),
    /// It waits until its queue has so many descriptors.
    Wait(u16),
}

/// A frame whose data are on the link.
struct Landing {
    at: Time,
    frame: C2hFrame,
    pkt_id: u16,
    outcome: Outcome,
    func: FuncId,
    /// Its buffers: this one, if it has any, and as many from [`C2hEngine::landing_buffers`] as make so many.
    first_buffer: u64,
    buffers: u16,
    /// Bytes of each.
    buffer_bytes: u32,
}

/// A frame that waits for its completion.
#[derive(Clone, Copy)]
struct Finished {
    pkt_id: u16,
    qid: Qid,
    len_bytes: u16,
    outcome: Outcome,
}

pub(super) struct C2hEngine {
    queues: Vec<C2hQueue>,
    inbox: VecDeque<Inbound>,
    /// Beats of the stream buffer that `inbox` takes.
    inbox_beats: u32,
    /// The inbox's head waits for descriptors.
    blocked: bool,
    landing: VecDeque<Landing>,
    /// Buffers of frames on the link, but for each one's first.
    landing_buffers: VecDeque<u64>,
    finished: VecDeque<Finished>,
    /// Completions that wait for their frames, each with its arrival.
    completions: VecDeque<(Time, C2hCompletion)>,
    /// Number of the next frame to come; the first is 1.
    next_pkt_id: u16,
    /// Number of the last frame whose data landed.
    landed_pkt_id: u16,
    /// Answer to the last offer, if it was to drop the frame.
    offered: Option<(Qid, u16, DropReason)>,
    /// The last offer was refused for want of room.
    refused: bool,
    /// Room appeared in the stream buffer since the shell was refused.
    pub(super) room_made: bool,
}

impl C2hEngine {
    pub(super) fn new(num_queues: u16) -> C2hEngine {
        C2hEngine {
            queues: vec![C2hQueue::default(); usize::from(num_queues)],
            inbox: VecDeque::new(),
            inbox_beats: 0,
            blocked: false,
            landing: VecDeque::new(),
            landing_buffers: VecDeque::new(),
            finished: VecDeque::new(),
            completions: VecDeque::new(),
            next_pkt_id: 1,
            landed_pkt_id: 0,
            offered: None,
            refused: false,
            room_made: false,
        }
    }

    /// Back to power-up; frames inside are lost and counted.
    pub(super) fn reset(&mut self, core: &mut Core) {
        for _ in 0..self.inside() {
            core.counters.c2h.drop_one(DropReason::Reset);
        }
        core.counters.completions_dropped += self.completions.len() as u64;
        *self = C2hEngine::new(self.queues.len() as u16);
        self.room_made = true;
    }

    /// Frames handed over whose end is not yet counted.
    pub(super) fn inside(&self) -> usize {
        self.inbox.len() + self.landing.len() + self.finished.len()
    }

    fn queue(&mut self, qid: Qid) -> &mut C2hQueue {
        &mut self.queues[usize::from(qid.0)]
    }

    // ---- Context memory

    pub(super) fn sw(&self, qid: Qid) -> &SwDescContext {
        &self.queues[usize::from(qid.0)].sw
    }

    pub(super) fn hw(&self, qid: Qid) -> HwDescContext {
        let queue = &self.queues[usize::from(qid.0)];
        HwDescContext { idl_stp_b: queue.sw.qen, fetch_pending: u8::from(queue.fetching != 0), ..queue.hw }
    }

    pub(super) fn credit(&self, qid: Qid) -> &CreditContext {
        &self.queues[usize::from(qid.0)].credit
    }

    pub(super) fn prefetch(&self, qid: Qid) -> PrefetchContext {
        let queue = &self.queues[usize::from(qid.0)];
        PrefetchContext {
            num_pfch: queue.buffers.len().min(63) as u8,
            in_prefetch: queue.fetching != 0,
            ..queue.prefetch
        }
    }

    /// The software context was written. A queue that runs on keeps what it has fetched; one that starts, or whose error
    /// is taken away, begins at the hardware context's index, at its first doorbell.
    pub(super) fn set_sw(&mut self, core: &mut Core, qid: Qid, sw: SwDescContext) {
        let old = &self.queue(qid).sw;
        if !old.qen || !sw.qen || old.err != 0 && sw.err == 0 {
            self.stop(core, qid);
            let queue = self.queue(qid);
            queue.flush();
            queue.rung = false;
        }
        self.queue(qid).sw = sw;
        self.touched(core, qid);
    }

    /// Clear the software context, or its enable bit only.
    pub(super) fn disable(&mut self, core: &mut Core, qid: Qid, clear: bool) {
        self.stop(core, qid);
        let queue = self.queue(qid);
        queue.flush();
        queue.credit.credits = 0;
        queue.rung = false;
        if clear {
            queue.sw = SwDescContext::default();
        } else {
            queue.sw.qen = false;
        }
        self.blocked = false;
    }

    pub(super) fn set_hw(&mut self, core: &mut Core, qid: Qid, hw: HwDescContext) {
        let queue = self.queue(qid);
        queue.flush();
        queue.hw = hw;
        self.touched(core, qid);
    }

    pub(super) fn set_credit(&mut self, core: &mut Core, qid: Qid, credit: CreditContext) {
        self.queue(qid).credit = credit;
        self.touched(core, qid);
    }

    pub(super) fn set_prefetch(&mut self, core: &mut Core, qid: Qid, prefetch: PrefetchContext) {
        self.queue(qid).prefetch = prefetch;
        self.touched(core, qid);
    }

    /// Something that the head of the inbox may wait for has changed.
    fn touched(&mut self, core: &mut Core, qid: Qid) {
        self.blocked = false;
        self.fetch(core, qid, 0);
    }

    /// The queue goes away under its frames: they are lost, and write nothing, or late (qdma.md 9.3).
    fn stop(&mut self, core: &mut Core, qid: Qid) {
        let late_ps = core.config.late_dma_after_inv_ns.saturating_mul(1000);
        let at = core.now.saturating_add(late_ps);
        // Behind a frame that waits nothing is decided yet: when its turn comes, its queue may run again.
        let waits = self.inbox.front().is_some_and(|head| matches!(self.decide(core, head), Decision::Wait(_)));
        let decided = if waits { 1 } else { usize::MAX };
        let mut skip = 0;
        for landing in &mut self.landing {
            let own = usize::from(landing.buffers.saturating_sub(1));
            if landing.frame.qid == qid && landing.outcome == Outcome::Written {
                if late_ps != 0 {
                    let first = std::iter::once(landing.first_buffer);
                    let buffers = first.chain(self.landing_buffers.range(skip..skip + own).copied());
                    defer_payload(core, at, landing.func, &landing.frame.data, buffers, landing.buffer_bytes);
                }
                landing.outcome = Outcome::Lost(DropReason::QueueStopped);
            }
            skip += own;
        }
        let queue = &mut self.queues[usize::from(qid.0)];
        let (func, bytes) = (queue.func(), core.csr.buffer_bytes(queue.prefetch.buffer_size_index));
        let mut buffers = queue.buffers.drain(..);
        let inbox = self.inbox.iter_mut().take(decided);
        for inbound in inbox.filter(|inbound| inbound.frame.qid == qid && inbound.lost.is_none()) {
            inbound.lost = Some(DropReason::QueueStopped);
            let needed = buffers_needed(inbound.frame.data.len(), bytes, core.config.buffers_per_frame_max);
            if late_ps != 0
                && let Some(needed) = needed
                && buffers.len() >= usize::from(needed)
            {
                let own = buffers.by_ref().take(usize::from(needed));
                defer_payload(core, at, func, &inbound.frame.data, own, bytes);
            }
        }
        drop(buffers);
        if late_ps != 0 && queue.fetching != 0 {
            let (addr, n) = (queue.desc_addr(queue.hw.cidx), usize::from(queue.fetching));
            core.defer_read(at, func, addr, 8 * n);
        }
    }

    // ---- Doorbell and descriptor fetch

    /// A PIDX doorbell, already known to come from the queue's function.
    pub(super) fn doorbell(&mut self, core: &mut Core, qid: Qid, value: C2hPidx) {
        let ring = Ring::new(core.csr.ring_entries(self.queue(qid).sw.ring_size_index));
        let queue = self.queue(qid);
        let place = |cidx| Place { qid, h2c: false, cidx, pidx: (queue.sw.pidx, value.pidx) };
        if !queue.sw.qen {
            core.counters.doorbells_ignored += 1;
            if core.config.error_on_disabled_doorbell {
                core.fault(Fault::InvalidPidx, place(queue.hw.cidx));
            }
            return;
        }
        core.counters.doorbells += 1;
        let accepted = ring.is_some_and(|ring| {
            let used = ring.distance(queue.cidx(ring), queue.sw.pidx);
            let more = ring.distance(queue.sw.pidx, value.pidx);
            ring.contains(value.pidx) && u32::from(used) + u32::from(more) <= u32::from(ring.capacity())
        });
        if !accepted {
            core.fault(Fault::InvalidPidx, place(queue.hw.cidx));
            self.fail(qid);
            return;
        }
        queue.sw.pidx = value.pidx;
        queue.sw.irq_arm = value.irq_arm;
        queue.rung = true;
        self.touched(core, qid);
    }

    /// Fetch descriptors so that as many as the prefetch count, or `needed`, are ready. One fetch at a time, and not
    /// before half of them are used up, so that descriptors come in batches.
    fn fetch(&mut self, core: &mut Core, qid: Qid, needed: u16) {
        let queue = &mut self.queues[usize::from(qid.0)];
        if queue.fetching != 0 || !queue.rung || !queue.enabled() || queue.failed() {
            return;
        }
        let ready = queue.buffers.len() as u16;
        let ahead = if queue.prefetch.pfch_en || !queue.sw.fcrd_en { core.csr.prefetch_descriptors() } else { 0 };
        if ready >= needed && ready > ahead / 2 {
            return;
        }
        let Some(ring) = Ring::new(core.csr.ring_entries(queue.sw.ring_size_index)) else { return };
        if !ring.contains(queue.hw.cidx) || !ring.contains(queue.sw.pidx) {
            return;
        }
        let wanted = ahead.max(needed).saturating_sub(ready);
        let posted = ring.distance(queue.hw.cidx, queue.sw.pidx);
        let addr = queue.desc_addr(queue.hw.cidx);
        let batch = ring::batch(addr, C2hDescriptor::SIZE_BYTES, core.config.max_read_request_bytes);
        let count = wanted.min(posted).min(ring.to_end(queue.hw.cidx)).min(batch);
        if count == 0 {
            return;
        }
        if queue.sw.desc_size != EntrySize::Bytes8 || queue.sw.bypass || queue.sw.is_mm {
            let place = Place { qid, h2c: false, cidx: queue.hw.cidx, ..Place::default() };
            core.fault(Fault::DescriptorParam, place);
            self.fail(qid);
            return;
        }
        queue.fetching = count;
        let bytes = usize::from(count) * C2hDescriptor::SIZE_BYTES;
        core.issue_read(bytes, qid, queue.generation, ReadKind::C2hDescriptors(count));
    }

    /// A descriptor fetch is done.
    pub(super) fn fetched(&mut self, core: &mut Core, memory: &mut dyn HostMemory, read: Read, count: u16) {
        let Read { qid, generation, .. } = read;
        let queue = &mut self.queues[usize::from(qid.0)];
        if queue.generation != generation {
            return;
        }
        queue.fetching = 0;
        let ring = Ring::new(core.csr.ring_entries(queue.sw.ring_size_index));
        let mut raw = core.spare_buffer(usize::from(count) * C2hDescriptor::SIZE_BYTES);
        let addr = queue.desc_addr(queue.hw.cidx);
        core.counters.descriptor_fetches += 1;
        let read = core.read_memory(memory, queue.func(), addr, &mut raw);
        if let (Some(ring), Ok(())) = (ring, read) {
            core.counters.c2h_descriptors += u64::from(count);
            queue.buffers.extend(raw.as_chunks().0.iter().map(|raw| C2hDescriptor::from_bytes(raw).address));
            queue.hw.cidx = ring.advance(queue.hw.cidx, count);
            self.blocked = false;
            self.fetch(core, qid, 0);
        } else {
            let place = Place { qid, h2c: false, cidx: queue.hw.cidx, ..Place::default() };
            core.fault(errors::of_fetch(read), place);
            self.fail(qid);
        }
        core.give_back(raw);
    }

    /// The queue met a descriptor error: its frames end with error completions until it is cleared and written again.
    fn fail(&mut self, qid: Qid) {
        let queue = self.queue(qid);
        queue.sw.err |= ERR_DESCRIPTOR;
        queue.prefetch.err = true;
        queue.flush();
        self.blocked = false;
    }

    // ---- The stream's side

    /// Descriptors that a frame takes, or why it can't go on.
    fn classify(&self, core: &Core, qid: Qid, len_bytes: usize) -> Result<u16, DropReason> {
        let queue = self.queues.get(usize::from(qid.0)).filter(|queue| queue.enabled());
        let queue = queue.ok_or(DropReason::InvalidQueue)?;
        let bytes = core.csr.buffer_bytes(queue.prefetch.buffer_size_index);
        let needed = buffers_needed(len_bytes, bytes, core.config.buffers_per_frame_max).ok_or(DropReason::TooLong)?;
        if core.config.no_desc == NoDesc::Drop && !queue.failed() {
            let ring = Ring::new(core.csr.ring_entries(queue.sw.ring_size_index));
            let posted = ring.map_or(0, |ring| ring.distance(queue.cidx(ring), queue.sw.pidx));
            if posted.saturating_sub(queue.promised) < needed {
                return Err(DropReason::NoDescriptor);
            }
        }
        Ok(needed)
    }

    pub(super) fn offer(&mut self, core: &Core, qid: Qid, len_bytes: u16) -> Offer {
        let beats = beats(usize::from(len_bytes));
        if self.inbox_beats != 0 && self.inbox_beats + beats > core.config.c2h_buffer_beats {
            self.refused = true;
            return Offer::Stall;
        }
        self.refused = false;
        match self.classify(core, qid, usize::from(len_bytes)) {
            Ok(_) => {
                self.offered = None;
                Offer::Ready
            }
            Err(reason) => {
                self.offered = Some((qid, len_bytes, reason));
                Offer::Drop
            }
        }
    }

    pub(super) fn frame(&mut self, core: &mut Core, frame: C2hFrame) {
        core.counters.c2h.frames_in += 1;
        let (qid, len) = (frame.qid, frame.data.len());
        // An answer given is kept, even if a doorbell came before the frame's last beat.
        let told = match self.offered.take() {
            Some((q, l, reason)) if q == qid && usize::from(l) == len => Some(reason),
            _ => None,
        };
        let (mut promised, mut lost) = (0, None);
        let enabled;
        if told.is_none() && core.config.no_desc != NoDesc::Drop {
            // All but this is decided when its turn comes.
            enabled = self.queues.get(usize::from(qid.0)).is_some_and(C2hQueue::enabled);
        } else {
            let fate = told.map_or_else(|| self.classify(core, qid, len), Err);
            if let Ok(needed) = fate
                && core.config.no_desc == NoDesc::Drop
            {
                promised = needed;
                self.queue(qid).promised += needed;
            }
            lost = fate.err().filter(|reason| *reason == DropReason::NoDescriptor);
            enabled = fate != Err(DropReason::InvalidQueue);
        }
        self.inbox_beats += beats(len);
        self.inbox.push_back(Inbound { frame, pkt_id: self.next_pkt_id, ready: core.now, promised, enabled, lost });
        self.next_pkt_id = self.next_pkt_id.wrapping_add(1);
    }

    pub(super) fn completion(&mut self, core: &mut Core, completion: C2hCompletion) {
        core.counters.completions_in += 1;
        self.completions.push_back((core.now, completion));
    }

    // ---- Work

    /// When the frame at the head of the inbox can go on.
    pub(super) fn next_issue(&self, core: &Core) -> Time {
        match self.inbox.front() {
            Some(inbound) if !self.blocked => inbound.ready.max(core.link.up_free()),
            _ => Time::NEVER,
        }
    }

    /// When data land next.
    pub(super) fn next_landing(&self) -> Time {
        self.landing.front().map_or(Time::NEVER, |landing| landing.at)
    }

    /// When the first completion can be joined with its frame: at its arrival, if the frame is there.
    pub(super) fn next_completion(&self) -> Time {
        match self.completions.front() {
            Some((arrival, completion)) if !is_after(completion.pkt_id, self.landed_pkt_id) => *arrival,
            _ => Time::NEVER,
        }
    }

    /// Send the frame at the head of the inbox on its way, if its queue has descriptors for it.
    pub(super) fn issue(&mut self, core: &mut Core) {
        let Some(head) = self.inbox.front() else { return };
        let qid = head.frame.qid;
        match self.decide(core, head) {
            Decision::Wait(needed) => {
                self.blocked = true;
                self.fetch(core, qid, needed);
            }
            Decision::Go(outcome, buffers, buffer_bytes) => {
                match outcome {
                    Outcome::Failed => core.fault(Fault::DescriptorResponse, Place { qid, ..Place::default() }),
                    Outcome::Lost(DropReason::TooLong) => {
                        core.fault(Fault::DescriptorCount, Place { qid, ..Place::default() })
                    }
                    Outcome::Written | Outcome::Lost(_) => {}
                }
                self.launch(core, outcome, buffers, buffer_bytes);
            }
        }
    }

    /// What the frame at the head of the inbox does, as its queue is now.
    #[inline]
    fn decide(&self, core: &Core, head: &Inbound) -> Decision {
        // What writes nothing needs no buffers.
        let ends = |outcome| Decision::Go(outcome, 0, 0);
        if let Some(reason) = head.lost {
            return ends(Outcome::Lost(reason));
        }
        let Some(queue) = self.queues.get(usize::from(head.frame.qid.0)).filter(|queue| queue.enabled()) else {
            let reason = if head.enabled { DropReason::QueueStopped } else { DropReason::InvalidQueue };
            return ends(Outcome::Lost(reason));
        };
        if queue.failed() {
            return ends(Outcome::Failed);
        }
        let buffer_bytes = core.csr.buffer_bytes(queue.prefetch.buffer_size_index);
        match buffers_needed(head.frame.data.len(), buffer_bytes, core.config.buffers_per_frame_max) {
            None => ends(Outcome::Lost(DropReason::TooLong)),
            Some(needed) if usize::from(needed) > queue.buffers.len() => Decision::Wait(needed),
            Some(needed) => Decision::Go(Outcome::Written, needed, buffer_bytes),
        }
    }

    /// Take the inbox's head, and so many of its queue's buffers, to the link.
    #[inline]
    fn launch(&mut self, core: &mut Core, outcome: Outcome, buffers: u16, buffer_bytes: u32) {
        let Some(inbound) = self.inbox.pop_front() else { return };
        let Inbound { frame, pkt_id, promised, .. } = inbound;
        self.inbox_beats -= beats(frame.data.len());
        self.room_made |= self.refused;
        let (mut func, mut first_buffer) = (FuncId::default(), 0);
        if let Some(queue) = self.queues.get_mut(usize::from(frame.qid.0)) {
            func = queue.func();
            queue.promised = queue.promised.saturating_sub(promised);
            // One by one: it is one buffer nearly always, and `drain` costs as much as the rest of a small frame's issue.
            if buffers > 0 {
                first_buffer = queue.buffers.pop_front().unwrap_or_default();
            }
            for _ in 1..buffers {
                self.landing_buffers.push_back(queue.buffers.pop_front().unwrap_or_default());
            }
        }
        let at = match outcome {
            Outcome::Written => core.link.post(core.now, frame.data.len()),
            // Nothing goes over the link, but frames end in order.
            _ => core.link.landing(core.link.up_free().max(core.now)),
        };
        let qid = frame.qid;
        self.landing.push_back(Landing { at, frame, pkt_id, outcome, func, first_buffer, buffers, buffer_bytes });
        if outcome == Outcome::Written {
            self.fetch(core, qid, 0);
        }
    }

    /// The data of the first frame on the link are in host memory now.
    pub(super) fn land(&mut self, core: &mut Core, memory: &mut dyn HostMemory) {
        let Some(landing) = self.landing.pop_front() else { return };
        let Landing { frame, pkt_id, outcome, func, first_buffer, buffers, buffer_bytes, .. } = landing;
        let at_once = (outcome, buffers, core.config.late_payload_ps) == (Outcome::Written, 1, 0);
        if at_once && fits_page(first_buffer, frame.data.len()) {
            core.write_memory(memory, func, first_buffer, &frame.data);
        } else {
            let others = self.landing_buffers.drain(..usize::from(buffers.saturating_sub(1)));
            if outcome == Outcome::Written {
                let own = std::iter::once(first_buffer).chain(others);
                write_payload(core, memory, func, &frame.data, own, buffer_bytes);
            }
        }
        let len_bytes = frame.data.len().min(usize::from(u16::MAX)) as u16;
        self.landed_pkt_id = pkt_id;
        self.finished.push_back(Finished { pkt_id, qid: frame.qid, len_bytes, outcome });
        core.give_back(frame.data);
    }

    /// Join the first completion with its frame.
    pub(super) fn complete(&mut self, core: &mut Core, memory: &mut dyn HostMemory, cmpl: &mut CompletionEngine) {
        let Some((_, completion)) = self.completions.pop_front() else { return };
        // Frames before the one it names never got a completion.
        while self.finished.front().is_some_and(|frame| is_after(completion.pkt_id, frame.pkt_id)) {
            self.finished.pop_front();
            core.counters.c2h.drop_one(DropReason::NoCompletion);
        }
        let Some(frame) = self.finished.front().filter(|frame| frame.pkt_id == completion.pkt_id) else {
            core.counters.completions_orphaned += 1;
            core.counters.completions_dropped += 1;
            return;
        };
        // Field by field: a copy of the whole would wait for the payload's stores to leave the CPU's store buffer.
        let (qid, len_bytes, outcome) = (frame.qid, frame.len_bytes, frame.outcome);
        self.finished.pop_front();
        if qid != completion.qid {
            core.fault(Fault::QidMismatch, Place { qid: completion.qid, ..Place::default() });
        }
        deliver(core, memory, cmpl, outcome, len_bytes, completion);
    }
}

/// Hand a frame's completion on, or count why not.
fn deliver(
    core: &mut Core,
    memory: &mut dyn HostMemory,
    cmpl: &mut CompletionEngine,
    outcome: Outcome,
    len_bytes: u16,
    completion: C2hCompletion,
) {
    if let Outcome::Lost(reason) = outcome {
        cmpl.lose(core, completion.qid);
        core.counters.c2h.drop_one(reason);
        core.counters.completions_dropped += 1;
        return;
    }
    let failed = outcome == Outcome::Failed;
    let reason = match cmpl.deliver(core, memory, completion, failed) {
        Delivery::Written if !failed => {
            core.counters.c2h.out(usize::from(len_bytes));
            return;
        }
        Delivery::Written => {
            core.counters.completions_with_error += 1;
            core.counters.c2h.drop_one(DropReason::DmaFault);
            return;
        }
        // A queue in error loses its completion queue with the first error completion.
        Delivery::InvalidQueue if failed => DropReason::DmaFault,
        Delivery::InvalidQueue => DropReason::CompletionInvalidQueue,
        Delivery::RingFull => DropReason::CompletionRingFull,
    };
    core.counters.c2h.drop_one(reason);
    core.counters.completions_dropped += 1;
}

/// Is 16-bit running number `a` later than `b`?
fn is_after(a: u16, b: u16) -> bool {
    (a.wrapping_sub(b) as i16) > 0
}

/// Beats of 64 bytes, at least one.
fn beats(len_bytes: usize) -> u32 {
    (len_bytes.div_ceil(64) as u32).max(1)
}

/// Buffers that a frame takes, at least one; `None` when that is more than allowed.
fn buffers_needed(len_bytes: usize, buffer_bytes: u32, limit: u16) -> Option<u16> {
    if buffer_bytes == 0 {
        return None;
    }
    if len_bytes <= buffer_bytes as usize {
        return Some(1);
    }
    let needed = len_bytes.div_ceil(buffer_bytes as usize);
    (needed <= usize::from(limit)).then_some(needed as u16)
}

/// A frame cut into its buffers, and those at 4 KiB boundaries, which no PCIe write may cross.
fn pieces(data: &[u8], buffers: impl Iterator<Item = u64>, buffer_bytes: u32) -> impl Iterator<Item = (u64, &[u8])> {
    let parts = buffers.zip(data.chunks((buffer_bytes as usize).max(1)));
    parts.flat_map(|(addr, part)| {
        let first = (4096 - (addr % 4096) as usize).min(part.len());
        let (head, tail) = part.split_at(first);
        let tail_addr = addr.wrapping_add(first as u64);
        let pages = tail.chunks(4096).enumerate();
        std::iter::once((addr, head))
            .chain(pages.map(move |(page, chunk)| (tail_addr.wrapping_add(4096 * page as u64), chunk)))
    })
}

/// Does a write of `len_bytes` at `addr` stay within 4 KiB?
fn fits_page(addr: u64, len_bytes: usize) -> bool {
    (addr % 4096) as usize + len_bytes <= 4096
}

/// A frame's bytes into its buffers, now or as late as the knob says.
fn write_payload(
    core: &mut Core,
    memory: &mut dyn HostMemory,
    func: FuncId,
    data: &[u8],
    buffers: impl Iterator<Item = u64>,
    buffer_bytes: u32,
) {
    if core.config.late_payload_ps == 0 {
        for (addr, part) in pieces(data, buffers, buffer_bytes) {
            core.write_memory(memory, func, addr, part);
        }
    } else {
        let at = core.now.saturating_add(core.config.late_payload_ps);
        defer_payload(core, at, func, data, buffers, buffer_bytes);
    }
}

fn defer_payload(
    core: &mut Core,
    at: Time,
    func: FuncId,
    data: &[u8],
    buffers: impl Iterator<Item = u64>,
    buffer_bytes: u32,
) {
    for (addr, part) in pieces(data, buffers, buffer_bytes) {
        core.defer_write(at, func, addr, part);
    }
}
