//! Descriptor and completion rings.
//!
//! A ring of N entries (the value in the card's size table) has its status word in entry N-1, so indices wrap at N-1, and
//! one entry stays free to tell full from empty: at most N-2 are outstanding (`spec/qdma.md` 5.1).
//!
//! ```text
//!   0      cidx ─────► pidx                  N-2   N-1
//!   ├ free ┼ outstanding ┼ free … (one spare) ┤ status ┤
//! ```
//!
//! Whatever the card writes is doubted: an index, a length or a color that can't be is a [`QueueFault`], which stops the
//! queue until it is started afresh. Nothing that the card writes panics or reaches memory outside the queue's pages.

mod page_source;
mod rx;
mod tx;

pub use page_source::{KeptPages, PageSource};
pub use rx::{ModerationError, RxFrame, RxQueue, TakenPage};
pub use tx::{PostError, ThresholdError, Thresholds, TxError, TxFlow, TxQueue};

pub(crate) use rx::{Fragments, RxParts};
pub(crate) use tx::{Leftover, TxLimits, TxParts, TxSettings};

use crate::platform::{DmaError, MmioError};

/// What stopped a queue. It stays so until [`crate::Driver::restart_rx`], [`crate::Driver::restart_tx`], or a down and up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum QueueFault {
    /// The card's status word carries an error code: on a receive queue 1 a bad CIDX, 2 a descriptor error, 3 an overflow of
    /// the completion ring.
    #[error("the card's status word reports error {code}")]
    Status {
        /// The code.
        code: u8,
    },
    /// An index in the card's status word lies outside the ring.
    #[error("the card's status word has index {index}, but the ring wraps at {wrap}")]
    IndexRange {
        /// What it holds.
        index: u16,
        /// First index that isn't one.
        wrap: u16,
    },
    /// The card claims to have finished descriptors that it wasn't given; an index that goes backwards looks so too.
    #[error("the card's index moved from {from} to {to}, {moved} entries, with {outstanding} outstanding")]
    IndexJump {
        /// The last index.
        from: u16,
        /// The new one.
        to: u16,
        /// How far that is, modulo the ring.
        moved: u16,
        /// How far it may be.
        outstanding: u16,
    },
    /// A completion with its error bit set: the card failed to fetch a descriptor.
    #[error("completion {cidx} has its error bit set")]
    Completion {
        /// Its index.
        cidx: u16,
    },
    /// A completion of a frame that can't be: no bytes, more than the posted buffers hold, or more than the 31 buffers that
    /// the QDMA spreads one frame over.
    #[error("completion {cidx} has a frame of {len_bytes} bytes, {descriptors} buffers; {outstanding} are posted")]
    Length {
        /// Its index.
        cidx: u16,
        /// The length.
        len_bytes: u16,
        /// Buffers that it would need.
        descriptors: u16,
        /// Buffers that the card has.
        outstanding: u16,
    },
    /// A completion of another queue in this queue's ring.
    #[error("completion {cidx} is of queue {qid}, not {expected}")]
    WrongQueue {
        /// Its index.
        cidx: u16,
        /// The absolute queue that it names.
        qid: u16,
        /// This queue.
        expected: u16,
    },
    /// A page could not be handed to the card.
    #[error("a page can't be given to the card: {0}")]
    Page(DmaError),
    /// A doorbell could not be rung.
    #[error("a doorbell failed: {0}")]
    Doorbell(MmioError),
}

/// Where a queue stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueState {
    /// Frames flow.
    Running,
    /// Being stopped: nothing new is accepted.
    Stopping,
    /// Stopped by what the card did.
    Faulted(QueueFault),
}

/// A queue's doorbell in BAR0.
///
/// # Panics
/// For a queue of 2048 or above; [`crate::DeviceConfig::check`] lets none through.
pub(crate) fn doorbell_offset(register: u32, rel_qid: u16) -> u32 {
    match regs::doorbell::offset(register, rel_qid) {
        Some(offset) => offset,
        None => panic!("queue {rel_qid} has no doorbell"),
    }
}

/// Index arithmetic of a ring: everything that wraps goes through here.
///
/// # Invariants
/// `entries >= 4`; every index handed out is below [`Span::wrap`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    entries: u16,
}

/// Smallest ring: a status entry, a spare one, and two to work with.
pub(crate) const ENTRIES_MIN: u16 = 4;

impl Span {
    /// A ring of `entries`, status entry included; `None` below [`ENTRIES_MIN`].
    pub(crate) const fn new(entries: u16) -> Option<Self> {
        if entries < ENTRIES_MIN { None } else { Some(Self { entries }) }
    }

    /// First index that isn't one: N-1.
    pub(crate) const fn wrap(self) -> u16 {
        self.entries - 1
    }

    /// Most entries that can be outstanding: N-2.
    pub(crate) const fn capacity(self) -> u16 {
        self.entries - 2
    }

    /// `index + count`, `count` at most N-1. The sum is below 2 * 65534, so it is taken in 32 bits.
    pub(crate) const fn add(self, index: u16, count: u16) -> u16 {
        let sum = index as u32 + count as u32;
        let wrap = self.wrap() as u32;
        if sum >= wrap { (sum - wrap) as u16 } else { sum as u16 }
    }

    /// How far `to` is ahead of `from`, both below N-1.
    pub(crate) const fn distance(self, from: u16, to: u16) -> u16 {
        if to >= from { to - from } else { self.wrap() - from + to }
    }

    /// The card's index, if it is one.
    pub(crate) const fn index(self, raw: u16) -> Result<u16, QueueFault> {
        if raw < self.wrap() { Ok(raw) } else { Err(QueueFault::IndexRange { index: raw, wrap: self.wrap() }) }
    }

    /// Offset of an entry.
    pub(crate) const fn offset(self, index: u16, entry_bytes: usize) -> usize {
        index as usize * entry_bytes
    }

    /// Offset of the status word: entry N-1.
    pub(crate) const fn status_offset(self, entry_bytes: usize) -> usize {
        self.wrap() as usize * entry_bytes
    }

    /// Bytes of the whole ring.
    pub(crate) const fn len_bytes(self, entry_bytes: usize) -> usize {
        self.entries as usize * entry_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_below_four_entries_is_none() {
        assert!(Span::new(3).is_none());
        assert!(Span::new(4).is_some());
    }

    #[test]
    fn the_status_lies_in_the_last_entry() {
        let span = Span::new(1024).unwrap();
        assert_eq!(span.status_offset(8), 8 * 1023);
        assert_eq!(span.len_bytes(16), 16 * 1024);
        assert_eq!(span.capacity(), 1022);
    }

    #[test]
    fn the_largest_ring_does_not_overflow() {
        let span = Span::new(u16::MAX).unwrap();
        assert_eq!(span.wrap(), 65534);
        assert_eq!(span.add(65533, 1), 0);
        assert_eq!(span.add(65533, 65534), 65533);
        assert_eq!(span.distance(65533, 65532), 65533);
    }

    #[test]
    fn distance_undoes_add() {
        for entries in [4, 5, 64, 1023] {
            let span = Span::new(entries).unwrap();
            for from in 0..span.wrap() {
                for count in 0..span.wrap() {
                    assert_eq!(span.distance(from, span.add(from, count)), count);
                }
            }
        }
    }
}
