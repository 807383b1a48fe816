//! What a QDMA under test offers, whatever it is made of.
//!
//! ```text
//!              registers, by (function, offset)
//!   driver ────────────────────────────────────► ┌────────┐ ◄──── C2H frames with their completions, as the shell sends them
//!   host memory ◄──── lent for each call ──────► │ Engine │
//!   driver ◄──────────── interrupts, with times  └────────┘ ────► H2C frames, unless the stream is held
//! ```
//!
//! Time passes only inside calls, and every call in which it may pass is lent host memory. What comes out waits until it
//! is taken; what goes in waits until the engine has room. Two engines are never at the same time at the same place: who
//! compares them lets both settle first.

use models::host_memory::HostMemory;
use models::stream::{C2hCompletion, C2hFrame, H2cFrame};
use models::time::Time;
use regs::FuncId;

/// What every maker of an engine is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Queues in all.
    pub queues: u16,
    /// Physical functions, 1 to 4. MSI-X tables have 10 vectors for function 0 and 9 for the others.
    pub functions: u8,
    /// Root of all that is random inside: latencies, the order of read answers, when a write is accepted.
    pub seed: u64,
}

/// A place at which the other side can hold the engine up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Hold {
    /// The shell takes no H2C frame.
    H2cStream,
    /// The shell ends no C2H frame that it has begun, and begins no more than one. An engine to which frames come whole takes
    /// no notice.
    C2hStream,
    /// Host memory takes no payload. An engine without such a port takes no notice.
    PayloadWrites,
    /// Host memory takes no completion and no status word. An engine without such a port takes no notice.
    CompletionWrites,
}

/// An interrupt message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Interrupt {
    /// Whose MSI-X table.
    pub func: FuncId,
    /// Index into it.
    pub vector: u16,
    /// When it was sent.
    pub at: Time,
}

/// A QDMA under test.
pub trait Engine {
    /// One word, for reports.
    fn name(&self) -> &'static str;

    /// The present. It counts from power-up and never goes back.
    fn now(&self) -> Time;

    /// Read a register of BAR0 as `func` sees it; `offset` counts in bytes and is a multiple of 4. Writes made earlier have
    /// taken effect on what is read.
    fn read(&mut self, func: FuncId, offset: u32, memory: &mut dyn HostMemory) -> u32;

    /// Write a register of BAR0, posted: its effect may come later, but before that of any access made after it.
    fn write(&mut self, func: FuncId, offset: u32, value: u32, memory: &mut dyn HostMemory);

    /// Let time pass until `until`, or not at all if that has passed.
    fn advance(&mut self, until: Time, memory: &mut dyn HostMemory);

    /// Let time pass until nothing goes on by itself: what is left waits for a doorbell, a descriptor, or an end of a
    /// [`Hold`]. Anything that stood still for `quiet_ps` counts as settled: it must be longer than host memory's latency
    /// and any moderation timer that runs. False when it goes on after `limit_ps` still.
    fn settle(&mut self, quiet_ps: u64, limit_ps: u64, memory: &mut dyn HostMemory) -> bool;

    /// Line up a frame at the C2H stream, behind those that wait there already.
    ///
    /// The engine numbers frames itself, the first with 1; the completion's `pkt_id` says for which one it waits. Its
    /// completion follows at once, as the shell sends it; without one the frame never gets any.
    fn receive(&mut self, frame: C2hFrame, completion: Option<C2hCompletion>);

    /// The same, but the shell says another length than the frame has. False, and nothing done, where frames are not beats.
    fn receive_as(&mut self, _frame: C2hFrame, _ctrl_len: u16, _completion: C2hCompletion) -> bool {
        false
    }

    /// Frames lined up whose first beat the engine has not taken.
    fn waiting(&self) -> usize;

    /// Hold the engine up at `place`, or let go.
    fn hold(&mut self, place: Hold, on: bool);

    /// The next H2C frame that the shell took, oldest first.
    fn take_h2c(&mut self) -> Option<H2cFrame>;

    /// The next interrupt, oldest first.
    fn take_interrupt(&mut self) -> Option<Interrupt>;

    /// Why it stopped, if it did: an assertion inside, or a rule of its ports that was broken.
    fn failed(&self) -> Option<String> {
        None
    }
}
