//! The QDMA (BAR0): registers, queues, and DMA between host memory and the shell's streams.
//!
//! A register-accurate model of the streaming subset that the unmodified OpenNIC drivers use (qdma.md section 11):
//! indirect contexts, doorbells, descriptor engines both ways, completion rings with moderation, direct MSI-X, the error
//! tree. Not modelled: bypass, memory-mapped queues, SR-IOV and mailbox, interrupt aggregation, markers, virtio, PASID.
//!
//! ```text
//!             registers                     ┌── csr, errors, context window (mod, csr, errors, context)
//!   driver ──► doorbells ──► [c2h] [h2c] [completion]        one file an engine
//!                              │     │        │
//!   host memory ◄──────────────┴─ link ───────┘              when a read's data are there, when a write lands
//!                              │     │
//!   shell ◄────────────── QdmaStream                         frames and completions
//! ```
//!
//! Register accesses and stream calls only record. All DMA happens in [`Qdma::step`], in order of time, so that the
//! card's owner decides how often it looks; what is due is never lost between calls, and the result does not depend on
//! how often `step` is called, as long as it has been stepped up to the time of each register access.
//!
//! It promises: no panic and no unbounded work for any register value or memory content, no allocation per frame once
//! its queues have grown to their working size, and for each direction at any time
//! `frames in = frames out + drops + frames inside`.
//!
//! ```
//! use models::qdma::{Qdma, QdmaConfig};
//! use models::time::Time;
//! use regs::{FuncId, qdma_csr};
//!
//! let mut qdma = Qdma::new(QdmaConfig::default());
//! assert_eq!(qdma.mmio_read(FuncId(0), qdma_csr::CONFIG_BLOCK_ID) >> 16, 0x1FD3);
//! qdma.mmio_write(Time::ZERO, FuncId(0), qdma_csr::GLBL_RING_SIZE, 64);
//! assert_eq!(qdma.mmio_read(FuncId(0), qdma_csr::GLBL_RING_SIZE), 64);
//! assert_eq!(qdma.next_event(), None, "nothing to do");
//! ```

mod c2h;
mod completion;
mod config;
mod context;
mod core;
mod counters;
mod csr;
mod errors;
mod h2c;
mod link;
mod ring;

pub use config::{
    BusyPolls, ErrorLog, H2cDataFault, IpVersion, Knob, Leftover, NoDesc, NotifyPolicy, QdmaConfig, TimerStart,
};
pub use counters::{Counters, DirectionCounters, DropReason};

use regs::context::FmapContext;
use regs::doorbell::{self, C2hPidx, CompletionCidx, H2cPidx};
use regs::qdma_csr;
use regs::{FuncId, Qid};

use self::c2h::C2hEngine;
use self::completion::CompletionEngine;
use self::context::Window;
use self::core::Core;
use self::csr::Csr;
use self::errors::Fault;
use self::h2c::H2cEngine;
use self::link::ReadKind;
use crate::host_memory::HostMemory;
use crate::stream::{C2hCompletion, C2hFrame, H2cFrame, Offer, QdmaStream};
use crate::time::Time;

/// Entries of the function map: a function number has 8 bits here.
const FUNCTIONS_MAX: usize = 256;

/// One QDMA. See the [module](self).
pub struct Qdma {
    core: Core,
    window: Window,
    fmap: Vec<FmapContext>,
    c2h: C2hEngine,
    h2c: H2cEngine,
    cmpl: CompletionEngine,
}

/// What is due next. Works due at the same time are done in this order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Completion,
    C2hLanding,
    Read,
    Alarm,
    C2hIssue,
    H2cIssue,
    Writeback,
    Deferred,
}

impl Qdma {
    /// A QDMA just out of reset, at time 0.
    pub fn new(config: QdmaConfig) -> Qdma {
        let config = config.clamped();
        Qdma {
            window: Window::default(),
            fmap: vec![FmapContext::default(); FUNCTIONS_MAX],
            c2h: C2hEngine::new(config.num_queues),
            h2c: H2cEngine::new(config.num_queues),
            cmpl: CompletionEngine::new(config.num_queues),
            core: Core::new(config),
        }
    }

    /// Back to the state after power-up. Frames inside are lost and counted as [`DropReason::Reset`]; time and
    /// [`Counters`] go on, counters read by MMIO start from 0.
    pub fn reset(&mut self) {
        self.c2h.reset(&mut self.core);
        self.h2c.reset(&mut self.core);
        self.cmpl.reset();
        self.window = Window::default();
        self.fmap.fill(FmapContext::default());
        self.core.reset();
    }

    /// How it was configured.
    pub fn config(&self) -> &QdmaConfig {
        &self.core.config
    }

    /// From now on context commands are busy for so many polls.
    pub fn set_context_busy(&mut self, polls: BusyPolls) {
        self.core.config.context_busy = polls;
    }

    /// Change what may change while it runs; from now on it holds.
    pub fn turn(&mut self, knob: Knob) {
        let config = &mut self.core.config;
        match knob {
            Knob::ContextBusy(polls) => config.context_busy = polls,
            Knob::NoDesc(answer) => config.no_desc = answer,
            Knob::LatePayloadPs(ps) => config.late_payload_ps = ps,
            Knob::LateEntryPs(ps) => config.late_entry_ps = ps,
            Knob::LateDmaAfterInvNs(ns) => config.late_dma_after_inv_ns = ns,
        }
    }

    // ---- Registers

    /// Read a register of BAR0 as `func` sees it. `offset` counts in bytes; an access that is not a whole word reads 0.
    /// Reading has one side effect, on the busy bit of the context command.
    pub fn mmio_read(&mut self, func: FuncId, offset: u32) -> u32 {
        if !offset.is_multiple_of(4) {
            self.core.counters.unmapped_accesses += 1;
            return 0;
        }
        if let Some(value) = self.window.read(offset) {
            return value;
        }
        if let Some(value) = self.core.errors.read(offset) {
            return value;
        }
        if offset < csr::CSR_BYTES {
            self.check_mapped(func, offset);
            return self.core.csr.read(func, offset, &self.core.counters, &self.core.counters_at_reset);
        }
        self.read_doorbell(func, offset)
    }

    /// Write a register of BAR0, posted: nothing but the model's state changes, DMA that follows is done by
    /// [`Qdma::step`].
    pub fn mmio_write(&mut self, now: Time, func: FuncId, offset: u32, value: u32) {
        self.core.access_at(now);
        if !offset.is_multiple_of(4) {
            self.core.counters.unmapped_accesses += 1;
        } else if offset == qdma_csr::IND_CTXT_CMD {
            self.context_command(func, value);
        } else if offset < csr::CSR_BYTES {
            self.write_csr(func, offset, value);
        } else {
            self.write_doorbell(func, offset, value);
        }
    }

    fn write_csr(&mut self, func: FuncId, offset: u32, value: u32) {
        if self.window.write(offset, value) {
            return;
        }
        let writable = self.core.csr.writable(offset);
        if let Some(interrupt) = self.core.errors.write(offset, value, writable) {
            self.core.emit_error(interrupt);
            return;
        }
        self.check_mapped(func, offset);
        self.core.csr.write(offset, value);
    }

    /// Count an access to nothing; outside CSR space it is an error too.
    fn check_mapped(&mut self, func: FuncId, offset: u32) {
        if !self.core.csr.is_mapped(offset) {
            self.core.counters.unmapped_accesses += 1;
            if Csr::is_outside(offset) {
                self.core.fault_access(Fault::CsrUnmapped, func, offset);
            }
        }
    }

    /// Doorbells read 0, but for the completion ring's, which gives the CIDX that it was last told (qdma.md 6).
    fn read_doorbell(&mut self, func: FuncId, offset: u32) -> u32 {
        let Some((rel_qid, register)) = doorbell_of(offset) else {
            self.core.counters.unmapped_accesses += 1;
            return 0;
        };
        match self.absolute(func, rel_qid) {
            Some(qid) if register == doorbell::COMPLETION_CIDX => u32::from(self.cmpl.context(qid).cidx),
            _ => 0,
        }
    }

    fn write_doorbell(&mut self, func: FuncId, offset: u32, value: u32) {
        let Some((rel_qid, register)) = doorbell_of(offset) else {
            self.core.counters.unmapped_accesses += 1;
            return;
        };
        let Some(qid) = self.absolute(func, rel_qid) else {
            self.core.counters.doorbells_ignored += 1;
            self.core.fault_access(Fault::QidRange, func, offset);
            return;
        };
        let core = &mut self.core;
        match register {
            doorbell::H2C_PIDX => self.h2c.doorbell(core, qid, H2cPidx::from_word(value)),
            doorbell::C2H_PIDX => self.c2h.doorbell(core, qid, C2hPidx::from_word(value)),
            doorbell::COMPLETION_CIDX => self.cmpl.doorbell(core, qid, CompletionCidx::from_word(value)),
            // The interrupt ring's CIDX: aggregation is not modelled.
            _ => core.counters.doorbells_ignored += 1,
        }
    }

    /// The absolute queue that a function means by its relative one, if it owns it.
    fn absolute(&self, func: FuncId, rel_qid: u16) -> Option<Qid> {
        let map = self.fmap[usize::from(func.0)];
        if rel_qid >= map.qmax {
            return None;
        }
        let qid = map.qbase.checked_add(rel_qid)?;
        (qid < self.core.config.num_queues).then_some(Qid(qid))
    }

    // ---- Time

    /// When [`Qdma::step`] next has something to do; it may lie in the past. What only the shell can move on (a frame
    /// that waits to be taken) is no event: see [`Qdma::take_stream_change`].
    pub fn next_event(&self) -> Option<Time> {
        let (time, _) = self.next_work();
        (time != Time::NEVER).then_some(time)
    }

    /// Before when no C2H frame that was refused can be taken: what is due earlier makes no room.
    pub fn next_room(&self) -> Time {
        // The stream buffer's head either waits for the link, or for descriptors that a read brings.
        self.c2h.next_issue(&self.core).min(self.core.link.next_done())
    }

    /// Do all that is due at or before `now`, in order of time. The only call that touches host memory.
    pub fn step(&mut self, now: Time, memory: &mut dyn HostMemory) {
        self.core.disturbed = false;
        let mut rarer = self.next_rarer();
        loop {
            let (time, work) = self.with_frames(rarer);
            if time > now {
                break;
            }
            self.core.work_at(time);
            self.run(work, memory);
            let frames = matches!(work, Work::Completion | Work::C2hLanding | Work::C2hIssue);
            if !frames || self.core.disturbed {
                self.core.disturbed = false;
                rarer = self.next_rarer();
            }
        }
        self.core.work_at(now);
        self.cmpl.flush(&mut self.core, memory);
        self.core.access_at(now);
    }

    /// The earliest work.
    fn next_work(&self) -> (Time, Work) {
        self.with_frames(self.next_rarer())
    }

    /// The earliest of what there is for each frame, and of the rarer work. Ties go in the order of [`Work`].
    #[inline]
    fn with_frames(&self, [before, after]: [(Time, Work); 2]) -> (Time, Work) {
        // The first of two, where both are due at the same time. Half against half: a chain would have to wait for each
        // comparison.
        let earlier = |a: (Time, Work), b: (Time, Work)| if b.0 < a.0 { b } else { a };
        let completion = (self.c2h.next_completion(), Work::Completion);
        let landing = (self.c2h.next_landing(), Work::C2hLanding);
        let c2h_issue = (self.c2h.next_issue(&self.core), Work::C2hIssue);
        let h2c_issue = (self.h2c.next_issue(&self.core), Work::H2cIssue);
        earlier(earlier(earlier(completion, landing), before), earlier(earlier(c2h_issue, h2c_issue), after))
    }

    /// The earliest of the rest, which does not depend on the present time: what goes before the issue of frames, and what
    /// goes after. C2H frames change it only where they say so, by `Core::disturbed`.
    fn next_rarer(&self) -> [(Time, Work); 2] {
        let (read, alarm) = (self.core.link.next_done(), self.core.next_alarm());
        let (writeback, deferred) = (self.h2c.next_writeback(), self.core.next_deferred());
        [
            if alarm < read { (alarm, Work::Alarm) } else { (read, Work::Read) },
            if deferred < writeback { (deferred, Work::Deferred) } else { (writeback, Work::Writeback) },
        ]
    }

    fn run(&mut self, work: Work, memory: &mut dyn HostMemory) {
        let core = &mut self.core;
        match work {
            Work::Deferred => core.run_deferred(memory),
            Work::Read => self.read_done(memory),
            Work::C2hLanding => {
                self.c2h.land(core, memory);
                // The completion is mostly there already: spare it a round of its own.
                if self.c2h.next_completion() <= core.now {
                    self.c2h.complete(core, memory, &mut self.cmpl);
                }
            }
            Work::Completion => self.c2h.complete(core, memory, &mut self.cmpl),
            Work::C2hIssue => self.c2h.issue(core),
            Work::H2cIssue => self.h2c.issue(core),
            Work::Writeback => self.h2c.run_writeback(core, memory),
            Work::Alarm => {
                if let Some(alarm) = core.take_alarm() {
                    self.cmpl.alarm(core, memory, alarm);
                }
            }
        }
    }

    fn read_done(&mut self, memory: &mut dyn HostMemory) {
        let core = &mut self.core;
        let Some(read) = core.link.take_done() else { return };
        match read.kind {
            ReadKind::C2hDescriptors(count) => self.c2h.fetched(core, memory, read, count),
            ReadKind::H2cDescriptors(count) => self.h2c.fetched(core, memory, read, count),
            ReadKind::H2cData(func, descriptor) => self.h2c.data_read(core, memory, read, func, descriptor),
        }
    }

    // ---- Interrupts, counters

    /// The next interrupt: function, index into its MSI-X table, and when it was sent.
    pub fn take_interrupt(&mut self) -> Option<(FuncId, u16, Time)> {
        self.core.interrupts.pop_front()
    }

    /// The same without taking it.
    pub fn peek_interrupt(&self) -> Option<(FuncId, u16, Time)> {
        self.core.interrupts.front().copied()
    }

    /// DMA that relaxed ordering or an invalidation has put off is still to come, though its frame has left.
    pub fn owes_dma(&self) -> bool {
        self.core.next_deferred() != Time::NEVER
    }

    /// Frames inside, both directions. A C2H frame leaves when its completion entry is written or dropped, an H2C frame
    /// when the shell takes it.
    pub fn inside(&self) -> usize {
        self.c2h_inside() + self.h2c_inside()
    }

    /// C2H frames inside.
    pub fn c2h_inside(&self) -> usize {
        self.c2h.inside()
    }

    /// H2C frames inside.
    pub fn h2c_inside(&self) -> usize {
        self.h2c.inside()
    }

    /// Something of the H2C side is under way in here, from a descriptor that was fetched to its status word.
    pub fn h2c_busy(&self) -> bool {
        self.h2c.busy()
    }

    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        &self.core.counters
    }

    /// Did the QDMA's side of the streams change since the last call: a new H2C frame, or room for a C2H frame that was
    /// refused ([`Offer::Stall`])? Then a shell that waited should look again; nothing else will tell it.
    pub fn take_stream_change(&mut self) -> bool {
        let made = self.h2c.frame_made || self.c2h.room_made;
        (self.h2c.frame_made, self.c2h.room_made) = (false, false);
        made
    }
}

impl QdmaStream for Qdma {
    fn c2h_offer(&mut self, now: Time, qid: Qid, len_bytes: u16) -> Offer {
        self.core.access_at(now);
        self.c2h.offer(&self.core, qid, len_bytes)
    }

    fn c2h_frame(&mut self, now: Time, frame: C2hFrame) {
        self.core.access_at(now);
        self.c2h.frame(&mut self.core, frame);
    }

    fn c2h_completion(&mut self, now: Time, completion: C2hCompletion) {
        self.core.access_at(now);
        self.c2h.completion(&mut self.core, completion);
    }

    fn h2c_peek(&mut self, now: Time) -> Option<&H2cFrame> {
        self.core.access_at(now);
        self.h2c.peek()
    }

    fn h2c_take(&mut self, now: Time) -> Option<H2cFrame> {
        self.core.access_at(now);
        self.h2c.take(&mut self.core)
    }

    fn recycle(&mut self) -> Vec<u8> {
        self.core.empty_buffer()
    }

    fn give_back(&mut self, buffer: Vec<u8>) {
        self.core.give_back(buffer);
    }
}

/// Relative queue and register of a doorbell's offset.
fn doorbell_of(offset: u32) -> Option<(u16, u32)> {
    let slot = offset.checked_sub(regs::qdma::DOORBELL).filter(|slot| *slot < regs::qdma::DOORBELL_SIZE_BYTES)?;
    Some(((slot / doorbell::H2C_PIDX_STRIDE) as u16, slot % doorbell::H2C_PIDX_STRIDE))
}

/// Function numbers above 255 belong to nobody: host memory refuses them.
fn dma_func(number: u32) -> FuncId {
    FuncId(u8::try_from(number).unwrap_or(u8::MAX))
}
