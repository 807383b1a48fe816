//! A driver as the kernel above it sees it: what a scenario calls, whichever driver stands behind.

use std::fmt;

use driver_core::Side;
use models::time::Time;
use regs::{FuncId, PortId};

/// What a driver is told at its probe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NicConfig {
    /// Which function.
    pub func: FuncId,
    /// Queues in each direction.
    pub queues: u16,
    /// Entries of each ring, status included.
    pub ring: u16,
    /// IP bytes.
    pub mtu: u16,
    /// The longest frame that the card passes, FCS left out.
    pub max_frame_len_bytes: u16,
    /// The card's ports.
    pub ports: Vec<PortId>,
    /// The function's own.
    pub own_port: Option<PortId>,
    /// Once frames have come, the host polls so often of its own accord, ns, and wants no interrupts.
    pub deferred_ns: Option<u64>,
}

/// A frame handed up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Received {
    /// Queue, relative to the function.
    pub queue: u16,
    /// Ethernet header to payload.
    pub data: Vec<u8>,
    /// When.
    pub time: Time,
}

/// What an interrupt asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// A poll of a receive queue.
    Poll(u16),
    /// The card has errors to tell.
    Errors,
}

/// How a poll ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Polled {
    /// Frames handled.
    pub work: usize,
    /// The ring was empty: no poll is needed until the next interrupt.
    pub done: bool,
    /// The driver has scheduled its own next poll.
    pub rescheduled: bool,
    /// What stopped the pair's transmit queue.
    pub trouble: Option<Failure>,
}

/// A queue, or a pair of them, has stopped and has to be started afresh. What it holds by then may be lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Relative to the function.
    pub queue: u16,
    /// Which of the pair; both of them.
    pub side: Option<Side>,
    /// The driver's own words.
    pub text: String,
}

impl Failure {
    /// Of both queues of a pair.
    pub fn of_pair(queue: u16, text: impl Into<String>) -> Failure {
        Failure { queue, side: None, text: text.into() }
    }

    /// Of one of them.
    pub fn of(queue: u16, side: Side, text: impl Into<String>) -> Failure {
        Failure { queue, side: Some(side), text: text.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue {}: {}", self.queue, self.text)
    }
}

/// What a driver's timer did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Timed {
    /// Queues that are to be polled at once.
    pub due: Vec<u16>,
    /// Queues that have stopped.
    pub failures: Vec<Failure>,
}

/// Why a frame was not taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// No room; the caller keeps the frame and tries again when there is.
    #[error("the ring is full")]
    Busy,
    /// The frame is gone, and counted as dropped.
    #[error("dropped: {0}")]
    Dropped(String),
    /// The queue has failed.
    #[error("{0}")]
    Failed(Failure),
}

/// What `ip -s link` shows of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Frames handed up.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames that came and were not handed up: the interface was being stopped, or there was no memory.
    pub rx_dropped: u64,
    /// Frames taken to send.
    pub tx_packets: u64,
    /// Frames of those that were given up.
    pub tx_abandoned: u64,
}

/// What the MAC of a function's port has counted since the driver came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MacTotals {
    /// Frames that came in at the wire.
    pub rx_packets: u64,
    /// Frames that went out.
    pub tx_packets: u64,
}

/// A driver of one function. Errors are the driver's own words.
pub trait Nic {
    /// Start the queues.
    fn up(&mut self) -> Result<(), String>;
    /// Stop them.
    fn down(&mut self) -> Result<(), String>;
    /// Take the function down for good.
    fn remove(&mut self) -> Result<(), String>;
    /// Take the interrupts that are pending.
    fn interrupts(&mut self) -> Vec<Work>;
    /// One poll of a receive queue. With `may_finish` false the host polls again by itself, whatever comes, and wants no
    /// interrupt (`napi_complete_done` would return false).
    fn poll(&mut self, queue: u16, budget: usize, may_finish: bool) -> Result<Polled, Failure>;
    /// Several queues polled at the same time, each on a CPU of its own.
    fn poll_together(&mut self, queues: &[u16], budget: usize) -> Vec<Result<Polled, Failure>> {
        queues.iter().map(|&queue| self.poll(queue, budget, true)).collect()
    }
    /// Frames handed up since the last call.
    fn received(&mut self) -> Vec<Received>;
    /// Read, clear and re-arm the card's errors.
    fn serve_errors(&mut self) -> Result<Option<String>, String>;
    /// May a frame be sent? False while the queue is stopped.
    fn may_send(&mut self, queue: u16) -> bool;
    /// Send a frame; with `more`, others follow at once and the doorbell may wait for them.
    fn send(&mut self, queue: u16, frame: &[u8], more: bool) -> Result<(), Refusal>;
    /// In how many ns the driver's timer wants to run.
    fn timer_ns(&mut self) -> Option<u64>;
    /// It runs.
    fn on_timer(&mut self) -> Timed;
    /// The driver's own NAPI says when polls are due that no interrupt asks for; else the host plans them.
    fn plans_polls(&self) -> bool {
        false
    }
    /// Frames taken to send whose memory the driver still holds.
    fn unfreed(&self) -> u64;
    /// Start a queue pair afresh after an error. Those that can't be started are gone until the next down and up.
    fn recover(&mut self, queue: u16) -> Result<(), Vec<Failure>>;
    /// `ip -s link`.
    fn totals(&mut self) -> Totals;
    /// `ethtool -S`: the MAC's part. `Ok(None)`: the function has no MAC, or the driver shows none.
    fn mac(&mut self) -> Result<Option<MacTotals>, String>;
    /// The MTU in force.
    fn mtu(&self) -> u16;
    /// Set it.
    fn set_mtu(&mut self, mtu: u16) -> Result<(), String>;
    /// Set the RSS table.
    fn set_table(&mut self, entries: &[u16]) -> Result<(), String>;
}
