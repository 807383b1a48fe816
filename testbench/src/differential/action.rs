//! Actions of a driver and a shell.

use crate::actions::{self, swarm};

/// What is done.
///
/// Those that provoke an error are *hazards*: both engines settle before and after them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    // Life of a queue.
    /// A receive queue starts, with random geometry and moderation; one that runs is stopped first.
    StartRx,
    /// A transmit queue starts.
    StartTx,
    /// A quiet receive queue is invalidated, its memory taken back.
    StopRx,
    /// A quiet transmit queue is invalidated.
    StopTx,
    /// A receive queue is invalidated with frames under way; its memory is taken back at once.
    TearRx,
    /// A transmit queue is invalidated with frames under way.
    TearTx,
    /// A function gets other queues.
    Remap,
    /// All tables are programmed anew: rings, buffers, timers, thresholds, completion format.
    Tables,
    // Traffic.
    /// Buffers are posted.
    Post,
    /// Frames come for which all is there.
    Receive,
    /// Frames are posted and rung for, together or each.
    Send,
    /// Completions are read, all or some, and CIDX rung.
    Poll,
    /// CIDX is rung while frames come.
    PollRunning,
    /// The timer of a queue with unread completions is stopped before it ends.
    StopTimer,
    /// A frame comes that wants more buffers than are posted: it and all behind it wait.
    Starve,
    /// The wait ends: buffers, or the queue stops.
    Feed,
    /// Time passes.
    Pause,
    /// Both settle, and are compared.
    Settle,
    /// The shell takes no H2C frame until both are to settle.
    HoldH2c,
    /// Host memory takes no payload until then.
    HoldPayload,
    /// Host memory takes no completion until then.
    HoldCompletion,
    /// A receive queue's prefetch context is invalid for a while: nothing is fetched, a frame is lost.
    Unprefetch,
    // Errors of a queue.
    /// PIDX outside the ring, or too far, of a receive queue.
    BadPidxRx,
    /// PIDX outside the ring of a transmit queue.
    BadPidxTx,
    /// CIDX outside the ring, or past PIDX.
    BadCidx,
    /// More completions than the ring takes.
    Overflow,
    /// A buffer that host memory refuses, wholly or from a page on.
    MissingBuffer,
    /// H2C data that host memory refuses.
    MissingData,
    /// H2C data that come poisoned.
    PoisonedData,
    /// A C2H descriptor that host memory refuses.
    MissingRingRx,
    /// An H2C descriptor that host memory refuses.
    MissingRingTx,
    /// A C2H descriptor that comes poisoned.
    PoisonedRingRx,
    /// An H2C descriptor that comes poisoned.
    PoisonedRingTx,
    /// An H2C descriptor of length 0.
    ZeroLength,
    /// A frame of more than 31 buffers.
    TooLong,
    /// A queue whose interrupt vector is beyond the table.
    BadVector,
    /// A failed receive queue's error is written away: it does nothing before a doorbell, then runs.
    ReviveRx,
    /// A failed transmit queue's.
    ReviveTx,
    /// A context that asks for what this QDMA can't do.
    WrongContext,
    /// Contexts that name a function above 255, which is nobody.
    WrongFunction,
    /// A ring of fewer than three entries.
    TinyRing,
    // Frames that don't fit.
    /// A frame for a queue that does not run, or does not exist.
    FrameForNobody,
    /// A frame for a queue in error.
    FrameForFailed,
    /// A frame that never gets a completion.
    NoCompletion,
    /// A completion that names another queue than its frame.
    WrongCompletion,
    // Registers.
    /// An access where no register is.
    UnknownRegister,
    /// A doorbell of a queue that the function does not have.
    WrongQueue,
    /// A doorbell of a queue that does not run, or of an interrupt ring.
    IdleDoorbell,
    /// A context command to nothing.
    BadCommand,
    /// A context at rest is written under a mask, read back, cleared or invalidated.
    StoreContext,
    /// A register that only stores is written and read.
    StoreRegister,
    /// Error masks change.
    SetMasks,
    /// Error status is written back, in either order, all or some of it.
    ClearErrors,
    /// The error interrupt is armed.
    ArmErrors,
    /// Contexts and doorbells are read in mid-run.
    Inspect,
}

impl Kind {
    /// All of them, with their weight in an even mix.
    pub const ALL: [(Kind, u32); 55] = [
        (Kind::StartRx, 60),
        (Kind::StartTx, 50),
        (Kind::StopRx, 6),
        (Kind::StopTx, 6),
        (Kind::TearRx, 6),
        (Kind::TearTx, 6),
        (Kind::Remap, 4),
        (Kind::Tables, 4),
        (Kind::Post, 120),
        (Kind::Receive, 200),
        (Kind::Send, 160),
        (Kind::Poll, 100),
        (Kind::PollRunning, 20),
        (Kind::StopTimer, 8),
        (Kind::Starve, 8),
        (Kind::Feed, 30),
        (Kind::Pause, 30),
        (Kind::Settle, 30),
        (Kind::HoldH2c, 12),
        (Kind::HoldPayload, 12),
        (Kind::HoldCompletion, 12),
        (Kind::Unprefetch, 8),
        (Kind::BadPidxRx, 6),
        (Kind::BadPidxTx, 6),
        (Kind::BadCidx, 6),
        (Kind::Overflow, 20),
        (Kind::MissingBuffer, 6),
        (Kind::MissingData, 4),
        (Kind::PoisonedData, 4),
        (Kind::MissingRingRx, 16),
        (Kind::MissingRingTx, 4),
        (Kind::PoisonedRingRx, 16),
        (Kind::PoisonedRingTx, 4),
        (Kind::ZeroLength, 4),
        (Kind::TooLong, 10),
        (Kind::BadVector, 6),
        (Kind::ReviveRx, 12),
        (Kind::ReviveTx, 8),
        (Kind::WrongContext, 6),
        (Kind::WrongFunction, 6),
        (Kind::TinyRing, 4),
        (Kind::FrameForNobody, 6),
        (Kind::FrameForFailed, 20),
        (Kind::NoCompletion, 6),
        (Kind::WrongCompletion, 6),
        (Kind::UnknownRegister, 6),
        (Kind::WrongQueue, 6),
        (Kind::IdleDoorbell, 6),
        (Kind::BadCommand, 6),
        (Kind::StoreContext, 6),
        (Kind::StoreRegister, 6),
        (Kind::SetMasks, 8),
        (Kind::ClearErrors, 16),
        (Kind::ArmErrors, 8),
        (Kind::Inspect, 6),
    ];

    /// Every run needs it: without it nothing moves.
    fn is_vital(self) -> bool {
        matches!(
            self,
            Kind::StartRx | Kind::StartTx | Kind::Post | Kind::Receive | Kind::Send | Kind::Poll | Kind::Feed
        )
    }
}

/// One action.
pub type Action = actions::Action<Kind>;

/// The actions of a run.
pub fn actions(seed: u64, count: usize) -> Vec<Action> {
    swarm("differential", seed, count, &Kind::ALL, Kind::is_vital)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_listed_once() {
        let mut kinds = Kind::ALL.map(|(kind, _)| kind);
        kinds.sort_unstable();
        assert!(kinds.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
