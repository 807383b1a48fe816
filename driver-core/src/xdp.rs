//! A compiled XDP program as a hook: what `ip link set … xdp obj` attaches to an interface.
//!
//! [`xdp_vm`] runs the program; this gives it the frame where it lies in its page, moves the frame's borders as the program
//! did, and turns what it returned into a [`Verdict`]. Redirected frames wait in [`Program::redirected`] until the poll is
//! over, as Linux keeps them until `xdp_do_flush`: who owns the other queues takes them there.
//!
//! ```text
//!   page ─► XdpBuff ─► xdp_vm::Vm::run ─► borders back ─► Pass / Drop / Aborted / Tx
//!                                                    └──► Redirect ─► redirected ─► (owner) TxQueue::xdp_xmit
//! ```

use alloc::collections::VecDeque;

use xdp_vm::{Abort, Fault, RxMeta, Target, Vm};

use crate::geometry::BufferGeometry;
use crate::hook::{self, Layout, RedirectTarget, Verdict, XdpBuff, XdpFrame, XdpHook};
use crate::napi::WEIGHT;
use crate::platform::{Direction, DmaMemory, Page as _};

// The program sees the same page as a hook in Rust does.
const _: () = assert!(hook::RESERVED_BYTES == xdp_vm::RESERVED_BYTES);
const _: () = assert!(hook::META_BYTES_MAX == xdp_vm::META_BYTES_MAX);
const _: () = assert!(hook::FRAME_BYTES_MIN == xdp_vm::FRAME_BYTES_MIN);
const _: () = assert!(crate::geometry::TAILROOM_BYTES as usize == xdp_vm::TAILROOM_BYTES);

/// Why a program can't be attached to a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AttachError {
    /// The longest frame needs more than one buffer, and a program sees one.
    #[error(
        "frames of up to {frame_len_bytes} bytes do not fit one buffer of {hw_len_bytes}, and XDP programs see one: \
         max_frame_len_bytes of at most {hw_len_bytes}, or a larger rx_buffer"
    )]
    FrameTooLong {
        /// The longest frame that the card's MAC lets through, FCS left out.
        frame_len_bytes: u16,
        /// What the card writes into one buffer.
        hw_len_bytes: u16,
    },
    /// Frames are sent from the pages that they came in.
    #[error(
        "the queue's pages are mapped from the device only: XDP sends from them, so they have to be mapped both ways"
    )]
    OneWayPages,
}

/// Can all frames of a receive queue be shown to a program, and be sent from where they lie?
///
/// # Errors
/// [`AttachError`].
pub fn fits(geometry: BufferGeometry, direction: Direction) -> Result<(), AttachError> {
    if geometry.descriptors_max() > 1 {
        let (frame_len_bytes, hw_len_bytes) = (geometry.frame_len_bytes_max(), geometry.hw_len_bytes());
        return Err(AttachError::FrameTooLong { frame_len_bytes, hw_len_bytes });
    }
    if direction == Direction::Bidirectional { Ok(()) } else { Err(AttachError::OneWayPages) }
}

/// What a program did beside its verdicts, which the receive queues count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProgramCounters {
    /// Frames that it was run on.
    pub runs: u64,
    /// Instructions of all runs.
    pub insns: u64,
    /// Instructions of the longest run.
    pub insns_max: u64,
    /// Runs that ended with a number that is no action, or with a redirection that has no target.
    pub invalid: u64,
    /// Runs that did what the kernel's verifier would never have let through.
    pub faults: u64,
    /// Frames that it could not be shown: in several buffers.
    pub unseen: u64,
}

/// A frame on its way elsewhere, and where.
#[derive(Debug)]
pub struct Redirected<P> {
    /// Where to.
    pub target: Target,
    /// The queue that it came in on, whose page it has.
    pub rel_qid: u16,
    /// The frame.
    pub frame: XdpFrame<P>,
}

/// A program that is attached to an interface.
pub struct Program<D: DmaMemory> {
    vm: Vm,
    ifindex: u32,
    now_ns: u64,
    /// Where the frame at hand goes, between `run` and `redirect`, and the queue that it came in on.
    at_hand: Option<(Target, u16)>,
    redirected: VecDeque<Redirected<D::Page>>,
    counters: ProgramCounters,
    first_fault: Option<Fault>,
}

impl<D: DmaMemory> Program<D> {
    /// A loaded program, attached to the interface of this number.
    pub fn new(vm: Vm, ifindex: u32) -> Self {
        Self {
            vm,
            ifindex,
            now_ns: 0,
            at_hand: None,
            // All frames of one queue's poll may go elsewhere.
            redirected: VecDeque::with_capacity(WEIGHT),
            counters: ProgramCounters::default(),
            first_fault: None,
        }
    }

    /// The time that the program sees, ns: it stands still during a poll.
    pub fn set_time(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// The program and its maps.
    pub fn vm(&mut self) -> &mut Vm {
        &mut self.vm
    }

    /// Take the next frame that was redirected, oldest first. Its page is the taker's. To be called until nothing is left
    /// after each poll of a queue: there is room for one poll's frames, and those of a second are refused.
    pub fn take_redirected(&mut self) -> Option<Redirected<D::Page>> {
        self.redirected.pop_front()
    }

    /// Redirected frames that nobody has taken yet.
    pub fn redirected(&self) -> usize {
        self.redirected.len()
    }

    /// What it did so far.
    pub fn counters(&self) -> ProgramCounters {
        self.counters
    }

    /// The first fault, once: [`Vm::describe`] says where and what.
    pub fn take_fault(&mut self) -> Option<Fault> {
        self.first_fault.take()
    }

    fn run_one(&mut self, buff: &mut XdpBuff<'_, D>) -> Option<Verdict> {
        if buff.is_multi_buffer() {
            return None;
        }
        let Layout { start, first_len, meta_len, .. } = buff.layout;
        let rel_qid = buff.rel_qid;
        let queue = u32::from(rel_qid);
        let meta = RxMeta { ifindex: self.ifindex, queue, cpu: queue, now_ns: self.now_ns };
        let bytes = buff.page.bytes_mut();
        let mut seen =
            xdp_vm::XdpBuff::with_meta(bytes, usize::from(start), usize::from(first_len), usize::from(meta_len))
                .ok()?;
        let outcome = self.vm.run(&mut seen, &meta);
        // A page, and so every place in it, is shorter than 16 bits can say.
        let (start, len, meta_len) = (seen.start() as u16, seen.len_bytes(), seen.meta_len() as u16);
        buff.layout =
            Layout { start, first_len: len as u16, last_len: len as u16, len: len as u32, meta_len, written: true };
        self.counters.runs += 1;
        self.counters.insns += outcome.insns;
        self.counters.insns_max = self.counters.insns_max.max(outcome.insns);
        Some(match outcome.verdict {
            xdp_vm::Verdict::Pass => Verdict::Pass,
            xdp_vm::Verdict::Drop => Verdict::Drop,
            xdp_vm::Verdict::Tx => Verdict::Tx,
            xdp_vm::Verdict::Redirect(target) => {
                self.at_hand = Some((target, rel_qid));
                Verdict::Redirect(RedirectTarget(0))
            }
            xdp_vm::Verdict::Aborted(abort) => {
                self.note(abort);
                Verdict::Aborted
            }
        })
    }

    fn note(&mut self, abort: Abort) {
        match abort {
            Abort::Returned => {}
            Abort::UnknownAction(_) | Abort::NoTarget => self.counters.invalid += 1,
            Abort::Fault(fault) => {
                self.counters.faults += 1;
                self.first_fault.get_or_insert(fault);
            }
        }
    }
}

impl<D: DmaMemory> XdpHook<D> for Program<D> {
    fn run(&mut self, buff: &mut XdpBuff<'_, D>) -> Verdict {
        self.run_one(buff).unwrap_or_else(|| {
            self.counters.unseen += 1;
            Verdict::Aborted
        })
    }

    fn redirect(&mut self, _: RedirectTarget, frame: XdpFrame<D::Page>) -> Result<(), XdpFrame<D::Page>> {
        // The frames of one poll have room: its owner takes them before it polls another queue.
        match self.at_hand.take() {
            Some((target, rel_qid)) if self.redirected.len() < WEIGHT => {
                self.redirected.push_back(Redirected { target, rel_qid, frame });
                Ok(())
            }
            _ => Err(frame),
        }
    }
}
