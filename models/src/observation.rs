//! What a card lets a bench see beside its interfaces: the fate of each frame at each point where one can be lost.
//!
//! The model and the RTL's monitor outputs give the same ones, so that a scoreboard can name a drop without reading a
//! counter, and count without believing one.

use regs::{FuncId, PortId, Qid};

use crate::time::Time;

/// Why a frame was lost, or that it was not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fate {
    /// It went on.
    Accepted,
    /// The adapter's receive buffer had no room for it.
    Overflow,
    /// Bad FCS, undersize or oversize: the MAC marked it, the adapter dropped it.
    Error,
    /// Longer than the adapter's buffer.
    TooLong,
    /// The MAC's receiver was off.
    Disabled,
    /// `tuser_dst` did not name the port.
    Dst,
    /// The indirection entry lies outside the function's queues.
    QueueRange,
    /// No function owns the H2C queue.
    NoFunction,
}

impl Fate {
    /// The name in reports, golden files and captures.
    pub const fn name(self) -> &'static str {
        match self {
            Fate::Accepted => "accepted",
            Fate::Overflow => "overflow",
            Fate::Error => "error",
            Fate::TooLong => "too_long",
            Fate::Disabled => "disabled",
            Fate::Dst => "dst",
            Fate::QueueRange => "queue_range",
            Fate::NoFunction => "no_function",
        }
    }
}

/// One frame at one point, in that point's order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Observation {
    /// When.
    pub time: Time,
    /// Where and what.
    pub point: Point,
}

/// Where a frame was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// The end of the MAC and adapter's receive side: every frame that arrived at the port, once.
    RxEnd {
        /// Port.
        port: PortId,
        /// What became of it.
        fate: Fate,
    },
    /// A frame entering the adapter's transmit side.
    TxEnd {
        /// Port.
        port: PortId,
        /// What became of it.
        fate: Fate,
    },
    /// A frame hashed in a function; dropped ones too.
    Rss {
        /// Function.
        func: FuncId,
        /// The 32-bit hash.
        hash: u32,
        /// The indirection table's entry for it (relative queue).
        entry: u16,
        /// [`Fate::Accepted`] or [`Fate::QueueRange`].
        fate: Fate,
    },
    /// An H2C frame that no function owns.
    H2cDrop,
    /// Beats of a frame that went from the shell to the QDMA, one each cycle; the time is that of the edge that took the
    /// run's last. Only from RTL: the model has no beats.
    C2h {
        /// Absolute queue.
        qid: Qid,
        /// How many.
        beats: u16,
        /// The run's last beat is the frame's.
        last: bool,
    },
}
