//! Errors of bring-up, start and stop. Those of a running queue are [`crate::QueueFault`] and [`crate::TxError`].

use regs::{PortId, Qid};

use crate::bringup::Step;
use crate::config::ConfigError;
use crate::context::ContextError;
use crate::ethtool::EthtoolError;
use crate::geometry::GeometryError;
use crate::platform::{DmaError, InterruptError, MmioError};
use crate::ring::{ModerationError, QueueFault};
use crate::rss::RssError;
use crate::tables::TableError;

/// Bring-up failed. What was done before was undone, in reverse order; the card can be brought up again.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("bring-up failed at {step}: {cause}")]
pub struct BringUpError {
    /// Where.
    pub step: Step,
    /// Why.
    pub cause: Cause,
}

/// A queue, or the device, could not be started. Nothing is left running of what this call began.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UpError {
    /// It is up already, or its queues are lent out.
    #[error("the device is up already")]
    AlreadyUp,
    /// A queue.
    #[error("{qid} can't be started: {cause}")]
    Queue {
        /// Which.
        qid: Qid,
        /// Why.
        cause: Cause,
    },
    /// Queues of an earlier run are not out of the way.
    #[error(transparent)]
    Stop(#[from] StopError),
    /// The port's receiver.
    #[error("the receiver of {port} can't be switched: {cause}")]
    Port {
        /// Which.
        port: PortId,
        /// Why.
        cause: MmioError,
    },
}

/// The queues could not be stopped.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StopError {
    /// A queue could not be stopped for certain: the card may still reach its memory, so that this is kept until a later
    /// stop succeeds.
    #[error("{qid} can't be stopped, its memory is kept: {cause}")]
    Card {
        /// The first such queue.
        qid: Qid,
        /// Why.
        cause: ContextError,
    },
    /// Queues are lent out and must come back first. Nothing was done, unless the function was removed: then they are
    /// stopped and have no way back.
    #[error("{count} queue pairs are lent out: return them first (return_queues)")]
    LentOut {
        /// How many.
        count: usize,
    },
}

/// A change of settings that was refused or went wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ChangeError {
    /// The setting can't work; nothing was changed.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The RSS setting can't work; nothing was changed.
    #[error(transparent)]
    Rss(#[from] RssError),
    /// Not while the interface is up: take it down first.
    #[error("the device is up: take it down first")]
    Up,
    /// The card could not be written to; the settings are as far as they came.
    #[error(transparent)]
    Mmio(#[from] MmioError),
    /// A context could not be written; the settings are as far as they came.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// A request of ethtool's that the card can't fulfil; nothing was changed.
    #[error(transparent)]
    Ethtool(#[from] EthtoolError),
    /// The setting can't work with the others, or with the platform; nothing was changed.
    #[error(transparent)]
    Refused(Cause),
    /// A port could not be set up.
    #[error("{port} can't be set up: {cause}")]
    Port {
        /// Which.
        port: PortId,
        /// Why.
        cause: Cause,
    },
    /// A queue failed by the change.
    #[error(transparent)]
    Queue(#[from] QueueFault),
    /// Stop.
    #[error(transparent)]
    Stop(#[from] StopError),
    /// Start.
    #[error(transparent)]
    Start(#[from] UpError),
    /// The function could not be removed cleanly.
    #[error("the function can't be removed: {0}")]
    Remove(Cause),
    /// There is no such queue, or it is lent out.
    #[error("queue {rel_qid} is not here: the device is down, the queue is lent out, or there is none")]
    NoSuchQueue {
        /// Counted from the function's first.
        rel_qid: u16,
    },
}

impl From<ModerationError> for ChangeError {
    fn from(error: ModerationError) -> Self {
        match error {
            ModerationError::Config(cause) => cause.into(),
            ModerationError::Fault(cause) => cause.into(),
        }
    }
}

/// Why a step failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Cause {
    /// The configuration can't work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A CSR table has no fitting entry.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The receive buffer doesn't fit its page.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// The ring can't hold the longest frame: its card would wait for ever for a buffer.
    #[error(
        "a ring of {entries} entries lends out {capacity} buffers, but a frame of {frame_len_bytes} bytes needs {needed} (rx_ring, rx_buffer)"
    )]
    RingTooSmall {
        /// Entries, status included.
        entries: u16,
        /// Buffers that can be out.
        capacity: u16,
        /// The longest frame.
        frame_len_bytes: u16,
        /// Buffers that it needs.
        needed: u16,
    },
    /// A register access.
    #[error(transparent)]
    Mmio(#[from] MmioError),
    /// A context command.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// DMA memory.
    #[error(transparent)]
    Dma(#[from] DmaError),
    /// A vector.
    #[error(transparent)]
    Interrupt(#[from] InterruptError),
    /// Too few vectors for any queue.
    #[error("{granted} interrupt vectors were granted: {reserved} are reserved, and a queue needs one")]
    NoVectors {
        /// How many there are.
        granted: u16,
        /// User and error vectors.
        reserved: u16,
    },
    /// No CMAC answers where one should be.
    #[error("{port}: no CMAC, its version register reads {version:#x} (ports)")]
    NoCmac {
        /// Which port.
        port: PortId,
        /// What was read.
        version: u32,
    },
    /// A block did not come out of reset.
    #[error("{port}: the CMAC is still in reset after {waited_ns} ns")]
    InReset {
        /// Which port.
        port: PortId,
        /// How long it was waited for.
        waited_ns: u64,
    },
    /// The queue failed at its first doorbell.
    #[error(transparent)]
    Queue(#[from] QueueFault),
}
