//! What is done with a card, and lists of it from a seed.

use crate::actions::{self, swarm};

/// What is done.
///
/// After each, both cards come to rest and are compared. Of those whose name ends in `UnderLoad` and of [`Kind::Overrun`]
/// it is timing what becomes of single frames; the table in `compare` says what still holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    // Traffic.
    /// Frames of any sort come in at the wire: runts, wrong FCS and over-long ones too.
    Receive,
    /// Frames go out from the host.
    Send,
    /// Both at once.
    Both,
    /// The host does not poll for a while, and frames wait: in rings, in the card, at the wire.
    Withhold,
    /// The host does not poll for a while, and the wire does not wait: frames are dropped.
    Overrun,
    // Settings, while nothing moves.
    /// An interface goes down.
    Down,
    /// An interface comes up.
    Up,
    /// Another number of queues.
    Channels,
    /// Other ring sizes.
    Rings,
    /// Another MTU.
    Mtu,
    /// Other interrupt moderation, of all queues or one.
    Moderation,
    /// Another RSS key.
    Key,
    /// Another RSS table: default, equal, by weights.
    Table,
    /// A setting that the driver must refuse.
    Refused,
    /// A queue that runs is started afresh.
    Restart,
    /// The port is set up afresh, with FEC or without: its MAC is reset.
    Fec,
    // Settings, while frames come in and go out.
    /// Moderation.
    ModerationUnderLoad,
    /// RSS key or table.
    RssUnderLoad,
    /// An interface goes down, and up again afterwards.
    DownUnderLoad,
    /// An interface comes up.
    UpUnderLoad,
    /// Queues, rings, a queue afresh, the port afresh.
    ChangeUnderLoad,
    // Behind the driver's back.
    /// The RSS table is written by registers, with entries past the function's queues.
    LooseTable,
    /// For a burst, the function's queue range is too short.
    ShortRange,
    /// For a burst, the function's queues are elsewhere, where none runs.
    StrayRange,
    /// A doorbell of a queue that the function does not have.
    WrongQueue,
    /// A CIDX past what was written, or outside the ring.
    BadCidx,
    /// A PIDX outside the ring of a receive queue; then a frame for it.
    BadPidxRx,
    /// A PIDX outside the ring of a transmit queue.
    BadPidxTx,
    /// An access to the QDMA where no register is.
    UnknownRegister,
    /// An access to the shell where no register is.
    UnknownShell,
    /// The user boxes are reset, one or both.
    UserReset,
    // Looking.
    /// Everything that is read at the end, read now: statistics, both sums, RSS registers.
    Look,
}

impl Kind {
    /// All of them, with their weight in an even mix.
    pub const ALL: [(Kind, u32); 32] = [
        (Kind::Receive, 100),
        (Kind::Send, 60),
        (Kind::Both, 60),
        (Kind::Withhold, 40),
        (Kind::Overrun, 20),
        (Kind::Down, 30),
        (Kind::Up, 30),
        (Kind::Channels, 20),
        (Kind::Rings, 16),
        (Kind::Mtu, 12),
        (Kind::Moderation, 30),
        (Kind::Key, 20),
        (Kind::Table, 30),
        (Kind::Refused, 16),
        (Kind::Restart, 16),
        (Kind::Fec, 12),
        (Kind::ModerationUnderLoad, 16),
        (Kind::RssUnderLoad, 16),
        (Kind::DownUnderLoad, 16),
        (Kind::UpUnderLoad, 40),
        (Kind::ChangeUnderLoad, 16),
        (Kind::LooseTable, 24),
        (Kind::ShortRange, 12),
        (Kind::StrayRange, 12),
        (Kind::WrongQueue, 12),
        (Kind::BadCidx, 12),
        (Kind::BadPidxRx, 12),
        (Kind::BadPidxTx, 16),
        (Kind::UnknownRegister, 24),
        (Kind::UnknownShell, 12),
        (Kind::UserReset, 8),
        (Kind::Look, 24),
    ];

    /// Every run needs it: without it nothing moves.
    fn is_vital(self) -> bool {
        matches!(self, Kind::Receive | Kind::Send | Kind::Both | Kind::Up)
    }
}

/// One action.
pub type Action = actions::Action<Kind>;

/// The actions of a run.
pub fn actions(seed: u64, count: usize) -> Vec<Action> {
    swarm("card actions", seed, count, &Kind::ALL, Kind::is_vital)
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
