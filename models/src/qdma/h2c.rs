//! The H2C engine: the driver's frames from host memory to the shell, and the status word that gives them back.
//!
//! ```text
//!   doorbell ─► descriptor fetch ─► descriptors ─► round robin ─► data read ─► outbox ─► taken by the shell
//!                 (batches, one       of each        over queues    (link)                     │
//!                  at a time a queue) queue                             status word ◄──────────┘
//! ```
//!
//! In order within a queue, one descriptor a frame. A frame that the shell has taken is complete, as far as the driver
//! ever learns.
//!
//! Source: qdma.md 5.2, 5.5, 7.3, 8, 9.3.

use std::collections::VecDeque;

use regs::context::{CreditContext, EntrySize, HwDescContext, SwDescContext};
use regs::descriptor::{H2cDescriptor, H2cStatus};
use regs::doorbell::H2cPidx;
use regs::{FuncId, Qid};

use super::DropReason;
use super::config::H2cDataFault;
use super::core::{Core, ReadFault};
use super::errors::{self, Fault, Place};
use super::link::{Read, ReadKind};
use super::ring::{self, Ring};
use crate::host_memory::HostMemory;
use crate::stream::H2cFrame;
use crate::time::Time;

/// Error bits of a software context and of the status word. Source: qdma.md 3.1, 5.5 (meaning recalled).
const ERR_DESCRIPTOR: u8 = 1;
const ERR_DMA: u8 = 2;

/// Descriptors that the engine keeps for one queue: two fetches of 512 bytes.
const DESCRIPTORS_MAX: u16 = 64;

#[derive(Clone, Default)]
struct H2cQueue {
    sw: SwDescContext,
    hw: HwDescContext,
    credit: CreditContext,
    /// Fetched and not yet executed, oldest first.
    descriptors: VecDeque<H2cDescriptor>,
    /// Descriptors of the fetch on its way.
    fetching: u16,
    /// Reads and frames of an earlier generation no longer concern the queue.
    generation: u32,
    /// A doorbell came since the context was written; see the C2H engine.
    rung: bool,
    /// Oldest descriptor whose frame the shell has not taken.
    done_cidx: u16,
    /// Frames taken since the last status word.
    since_writeback: u32,
    /// A status word is on its way.
    writing_back: bool,
    /// In the round.
    in_round: bool,
}

impl H2cQueue {
    fn runs(&self) -> bool {
        self.sw.qen && self.sw.err == 0
    }

    fn func(&self) -> FuncId {
        super::dma_func(u32::from(self.sw.func_id))
    }

    /// Where a descriptor or the status word lies. The base counts from a whole descriptor on.
    fn desc_addr(&self, slot: u16) -> u64 {
        (self.sw.ring_base & !15).wrapping_add(16 * u64::from(slot))
    }

    /// Forget descriptors, and disown reads and frames on their way.
    fn flush(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.fetching = 0;
        self.descriptors.clear();
        self.writing_back = false;
        self.since_writeback = 0;
    }
}

/// A frame that waits for the shell.
struct Outbound {
    frame: H2cFrame,
    generation: u32,
}

/// A status word on its way.
#[derive(Clone, Copy)]
struct Writeback {
    at: Time,
    qid: Qid,
    generation: u32,
}

pub(super) struct H2cEngine {
    queues: Vec<H2cQueue>,
    /// Queues with descriptors to execute, next first.
    round: VecDeque<Qid>,
    outbox: VecDeque<Outbound>,
    /// Beats of the stream buffer taken by frames in the outbox and on the link.
    beats: u32,
    /// The next descriptor's frame waits for room in it.
    no_room: bool,
    /// Data reads on the link.
    reading: usize,
    writebacks: VecDeque<Writeback>,
    /// A frame came into the outbox since the shell last looked.
    pub(super) frame_made: bool,
}

impl H2cEngine {
    pub(super) fn new(num_queues: u16) -> H2cEngine {
        H2cEngine {
            queues: vec![H2cQueue::default(); usize::from(num_queues)],
            round: VecDeque::new(),
            outbox: VecDeque::new(),
            beats: 0,
            no_room: false,
            reading: 0,
            writebacks: VecDeque::new(),
            frame_made: false,
        }
    }

    /// Back to power-up; frames inside are lost and counted.
    pub(super) fn reset(&mut self, core: &mut Core) {
        for _ in 0..self.inside() {
            core.counters.h2c.drop_one(DropReason::Reset);
        }
        *self = H2cEngine::new(self.queues.len() as u16);
    }

    /// Frames whose descriptor was taken up and whose end is not yet counted.
    pub(super) fn inside(&self) -> usize {
        self.reading + self.outbox.len()
    }

    /// Anything that goes on by itself or waits for the shell.
    pub(super) fn busy(&self) -> bool {
        self.inside() != 0 || !self.round.is_empty() || !self.writebacks.is_empty()
    }

    fn queue(&mut self, qid: Qid) -> &mut H2cQueue {
        &mut self.queues[usize::from(qid.0)]
    }

    // ---- Context memory

    pub(super) fn sw(&self, qid: Qid) -> &SwDescContext {
        &self.queues[usize::from(qid.0)].sw
    }

    pub(super) fn hw(&self, qid: Qid) -> HwDescContext {
        let queue = &self.queues[usize::from(qid.0)];
        HwDescContext {
            idl_stp_b: queue.sw.qen,
            desc_pending: !queue.descriptors.is_empty(),
            fetch_pending: u8::from(queue.fetching != 0),
            ..queue.hw
        }
    }

    pub(super) fn credit(&self, qid: Qid) -> &CreditContext {
        &self.queues[usize::from(qid.0)].credit
    }

    /// The software context was written. A queue that runs on keeps what it has fetched; one that starts, or whose error
    /// is taken away, begins at the hardware context's index, at its first doorbell.
    pub(super) fn set_sw(&mut self, core: &mut Core, qid: Qid, sw: SwDescContext) {
        let queue = self.queue(qid);
        if !queue.sw.qen || !sw.qen || queue.sw.err != 0 && sw.err == 0 {
            queue.flush();
            queue.rung = false;
            queue.done_cidx = queue.hw.cidx;
        }
        queue.sw = sw;
        self.fetch(core, qid);
    }

    /// Clear the software context, or its enable bit only.
    pub(super) fn disable(&mut self, core: &mut Core, qid: Qid, clear: bool) {
        let late_ps = core.config.late_dma_after_inv_ns.saturating_mul(1000);
        let at = core.now.saturating_add(late_ps);
        let queue = self.queue(qid);
        if late_ps != 0 && queue.fetching != 0 {
            let addr = queue.desc_addr(queue.hw.cidx);
            core.defer_read(at, queue.func(), addr, 16 * usize::from(queue.fetching));
        }
        queue.flush();
        queue.rung = false;
        queue.credit.credits = 0;
        if clear {
            queue.sw = SwDescContext::default();
        } else {
            queue.sw.qen = false;
        }
    }

    pub(super) fn set_hw(&mut self, core: &mut Core, qid: Qid, hw: HwDescContext) {
        let queue = self.queue(qid);
        queue.flush();
        queue.hw = hw;
        queue.done_cidx = hw.cidx;
        self.fetch(core, qid);
    }

    pub(super) fn set_credit(&mut self, qid: Qid, credit: CreditContext) {
        self.queue(qid).credit = credit;
    }

    // ---- Doorbell and descriptor fetch

    /// A PIDX doorbell, already known to come from the queue's function.
    pub(super) fn doorbell(&mut self, core: &mut Core, qid: Qid, value: H2cPidx) {
        let queue = &mut self.queues[usize::from(qid.0)];
        let ring = Ring::new(core.csr.ring_entries(queue.sw.ring_size_index));
        let place = Place { qid, h2c: true, cidx: queue.hw.cidx, pidx: (queue.sw.pidx, value.pidx) };
        if !queue.sw.qen {
            core.counters.doorbells_ignored += 1;
            if core.config.error_on_disabled_doorbell {
                core.fault(Fault::InvalidPidx, place);
            }
            return;
        }
        core.counters.doorbells += 1;
        let accepted = ring.is_some_and(|ring| {
            let used = ring.distance(queue.done_cidx, queue.sw.pidx);
            let more = ring.distance(queue.sw.pidx, value.pidx);
            ring.contains(value.pidx) && u32::from(used) + u32::from(more) <= u32::from(ring.capacity())
        });
        if !accepted {
            core.fault(Fault::InvalidPidx, place);
            self.fail(core, qid, ERR_DESCRIPTOR);
            return;
        }
        queue.sw.pidx = value.pidx;
        queue.sw.irq_arm = value.irq_arm;
        queue.rung = true;
        self.fetch(core, qid);
    }

    /// Fetch the next descriptors, when half of what the engine keeps is used up.
    fn fetch(&mut self, core: &mut Core, qid: Qid) {
        let queue = &mut self.queues[usize::from(qid.0)];
        let ready = queue.descriptors.len() as u16;
        if queue.fetching != 0 || ready > DESCRIPTORS_MAX / 2 || !queue.rung || !queue.runs() {
            return;
        }
        let Some(ring) = Ring::new(core.csr.ring_entries(queue.sw.ring_size_index)) else { return };
        if !ring.contains(queue.hw.cidx) || !ring.contains(queue.sw.pidx) {
            return;
        }
        let posted = ring.distance(queue.hw.cidx, queue.sw.pidx);
        let addr = queue.desc_addr(queue.hw.cidx);
        let batch = ring::batch(addr, H2cDescriptor::SIZE_BYTES, core.config.max_read_request_bytes);
        let count = posted.min(DESCRIPTORS_MAX - ready).min(ring.to_end(queue.hw.cidx)).min(batch);
        if count == 0 {
            return;
        }
        if queue.sw.desc_size != EntrySize::Bytes16 || queue.sw.bypass || queue.sw.is_mm {
            let place = Place { qid, h2c: true, cidx: queue.hw.cidx, ..Place::default() };
            core.fault(Fault::DescriptorParam, place);
            self.fail(core, qid, ERR_DESCRIPTOR);
            return;
        }
        queue.fetching = count;
        let bytes = usize::from(count) * H2cDescriptor::SIZE_BYTES;
        core.issue_read(bytes, qid, queue.generation, ReadKind::H2cDescriptors(count));
    }

    /// A descriptor fetch is done.
    pub(super) fn fetched(&mut self, core: &mut Core, memory: &mut dyn HostMemory, read: Read, count: u16) {
        let qid = read.qid;
        let queue = &mut self.queues[usize::from(qid.0)];
        if queue.generation != read.generation {
            return;
        }
        queue.fetching = 0;
        core.counters.descriptor_fetches += 1;
        let ring = Ring::new(core.csr.ring_entries(queue.sw.ring_size_index));
        let mut raw = core.spare_buffer(usize::from(count) * H2cDescriptor::SIZE_BYTES);
        let addr = queue.desc_addr(queue.hw.cidx);
        let read = core.read_memory(memory, queue.func(), addr, &mut raw);
        if let (Some(ring), Ok(())) = (ring, read) {
            core.counters.h2c_descriptors += u64::from(count);
            queue.descriptors.extend(raw.as_chunks().0.iter().map(H2cDescriptor::from_bytes));
            queue.hw.cidx = ring.advance(queue.hw.cidx, count);
            if !queue.in_round {
                queue.in_round = true;
                self.round.push_back(qid);
            }
        } else {
            let place = Place { qid, h2c: true, cidx: queue.hw.cidx, ..Place::default() };
            core.fault(errors::of_fetch(read), place);
            self.fail(core, qid, ERR_DESCRIPTOR);
        }
        core.give_back(raw);
    }

    // ---- Data

    /// When the next descriptor can be executed: reads are issued no faster than the link brings their data, so that the
    /// round decides as late as it can.
    pub(super) fn next_issue(&self, core: &Core) -> Time {
        if self.round.is_empty() || self.no_room { Time::NEVER } else { core.link.read_slot(core.now) }
    }

    /// Start the data read of one descriptor of the queue whose turn it is, if the stream buffer has room.
    pub(super) fn issue(&mut self, core: &mut Core) {
        let Some(&qid) = self.round.front() else { return };
        let queue = &mut self.queues[usize::from(qid.0)];
        let Some(descriptor) = queue.descriptors.front().copied().filter(|_| queue.runs()) else {
            queue.in_round = false;
            self.round.pop_front();
            return;
        };
        let beats = beats(descriptor.len_bytes);
        if self.beats != 0 && self.beats + beats > core.config.h2c_buffer_beats {
            self.no_room = true;
            return;
        }
        queue.descriptors.pop_front();
        self.round.rotate_left(1);
        core.counters.h2c.frames_in += 1;
        if descriptor.len_bytes == 0 {
            core.counters.h2c.drop_one(DropReason::ZeroLength);
            core.fault(Fault::ZeroLength, Place { qid, h2c: true, cidx: queue.done_cidx, ..Place::default() });
            self.fail(core, qid, ERR_DMA);
            return;
        }
        self.beats += beats;
        self.reading += 1;
        let kind = ReadKind::H2cData(queue.func(), descriptor);
        core.issue_read(usize::from(descriptor.len_bytes), qid, queue.generation, kind);
        self.fetch(core, qid);
    }

    fn free(&mut self, beats: u32) {
        self.beats -= beats;
        self.no_room = false;
    }

    /// A frame's data are there.
    pub(super) fn data_read(
        &mut self,
        core: &mut Core,
        memory: &mut dyn HostMemory,
        read: Read,
        func: FuncId,
        descriptor: H2cDescriptor,
    ) {
        let Read { qid, generation, .. } = read;
        self.reading -= 1;
        let queue = &mut self.queues[usize::from(qid.0)];
        let len = usize::from(descriptor.len_bytes);
        if queue.generation != generation {
            self.free(beats(descriptor.len_bytes));
            core.counters.h2c.drop_one(DropReason::QueueStopped);
            if core.config.late_dma_after_inv_ns != 0 {
                let at = core.now.saturating_add(core.config.late_dma_after_inv_ns.saturating_mul(1000));
                core.defer_read(at, func, descriptor.address, len);
            }
            return;
        }
        let mut frame = H2cFrame { data: core.spare_buffer(len), qid, metadata: descriptor.metadata, err: false };
        if let Err(why) = core.read_memory(memory, func, descriptor.address, &mut frame.data) {
            frame.err = true;
            frame.data.fill(0);
            let fault = match why {
                ReadFault::Unsupported => Fault::DataRead,
                ReadFault::Poisoned => Fault::DataPoison,
            };
            core.fault(fault, Place { qid, h2c: true, cidx: queue.done_cidx, ..Place::default() });
            self.fail(core, qid, ERR_DMA);
        }
        if frame.err && core.config.h2c_data_fault == H2cDataFault::Drop {
            self.free(beats(descriptor.len_bytes));
            core.counters.h2c.drop_one(DropReason::DmaFault);
            core.give_back(frame.data);
        } else {
            self.outbox.push_back(Outbound { frame, generation });
            self.frame_made = true;
        }
    }

    pub(super) fn peek(&self) -> Option<&H2cFrame> {
        self.outbox.front().map(|outbound| &outbound.frame)
    }

    /// The shell takes the first frame: its descriptor is complete.
    pub(super) fn take(&mut self, core: &mut Core) -> Option<H2cFrame> {
        let Outbound { frame, generation } = self.outbox.pop_front()?;
        core.counters.h2c.out(frame.data.len());
        self.free(beats(frame.data.len() as u16));
        let queue = &mut self.queues[usize::from(frame.qid.0)];
        if queue.generation == generation && queue.runs() {
            self.completed(core, frame.qid);
        }
        Some(frame)
    }

    // ---- Status word

    /// One more descriptor of a running queue is complete. Source: qdma.md 7.3.
    fn completed(&mut self, core: &mut Core, qid: Qid) {
        let queue = &mut self.queues[usize::from(qid.0)];
        let Some(ring) = Ring::new(core.csr.ring_entries(queue.sw.ring_size_index)) else { return };
        queue.done_cidx = ring.next(queue.done_cidx);
        queue.since_writeback += 1;
        let at_interval = queue.sw.wbi_intvl_en && queue.since_writeback >= core.csr.writeback_interval();
        let at_end = queue.sw.wbi_chk && queue.done_cidx == queue.sw.pidx;
        if at_interval || at_end {
            self.write_back(core, qid);
        }
    }

    fn write_back(&mut self, core: &mut Core, qid: Qid) {
        let queue = &mut self.queues[usize::from(qid.0)];
        if !queue.writing_back {
            queue.writing_back = true;
            let at = core.link.landing(core.now);
            self.writebacks.push_back(Writeback { at, qid, generation: queue.generation });
        }
    }

    /// When the next status word lands.
    pub(super) fn next_writeback(&self) -> Time {
        self.writebacks.front().map_or(Time::NEVER, |writeback| writeback.at)
    }

    /// Write the status word that is due, with what is complete by now.
    pub(super) fn run_writeback(&mut self, core: &mut Core, memory: &mut dyn HostMemory) {
        let Some(Writeback { qid, generation, .. }) = self.writebacks.pop_front() else { return };
        let queue = &mut self.queues[usize::from(qid.0)];
        if queue.generation != generation {
            return;
        }
        queue.writing_back = false;
        queue.since_writeback = 0;
        let Some(ring) = Ring::new(core.csr.ring_entries(queue.sw.ring_size_index)) else { return };
        if queue.sw.wbk_en {
            let status = H2cStatus { err: queue.sw.err, cidx: queue.done_cidx, pidx: queue.sw.pidx };
            let addr = queue.desc_addr(ring.status_slot());
            queue.sw.err_wb_sent |= queue.sw.err != 0;
            core.counters.writebacks += 1;
            core.link.post_entry(core.now, H2cStatus::SIZE_BYTES);
            core.write_memory(memory, queue.func(), addr, &status.to_bytes());
        }
        if queue.sw.irq_en && queue.sw.irq_arm && !queue.sw.int_aggr {
            queue.sw.irq_arm = false;
            core.interrupt(queue.func(), queue.sw.vector, qid);
        }
    }

    /// The queue met an error: it stops until cleared, and says so in a forced status word, once.
    fn fail(&mut self, core: &mut Core, qid: Qid, error: u8) {
        let queue = self.queue(qid);
        let failed = queue.sw.err != 0;
        queue.sw.err |= error;
        if !failed {
            queue.flush();
            self.write_back(core, qid);
        }
    }
}

/// Beats of 64 bytes, at least one.
fn beats(len_bytes: u16) -> u32 {
    u32::from(len_bytes).div_ceil(64).max(1)
}
