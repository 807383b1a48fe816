//! Per-CPU statistics: what each worker, a thread that drives queues, has moved.

use core::sync::atomic::{AtomicU64, Ordering};

use super::counters::{RxCounters, TxCounters};

/// The cell of one worker. All queues that it drives add to it, and anybody may read it: each value is one 64-bit atomic.
///
/// Worker 0 is whoever drives queues that were assigned to nobody: the only one in single-threaded use.
#[derive(Debug, Default)]
pub struct Worker {
    rx_packets: AtomicU64,
    rx_bytes: AtomicU64,
    rx_errors: AtomicU64,
    rx_dropped: AtomicU64,
    tx_packets: AtomicU64,
    tx_bytes: AtomicU64,
    tx_errors: AtomicU64,
    tx_dropped: AtomicU64,
}

/// What went through one queue pair or one worker, under the names of Linux's `rtnl_link_stats64`. Bytes leave the FCS out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Frames handed up.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Faults of receive queues.
    pub rx_errors: u64,
    /// Frames that reached the host and were not handed up.
    pub rx_dropped: u64,
    /// Frames that the card has taken.
    pub tx_packets: u64,
    /// Their bytes, padding included.
    pub tx_bytes: u64,
    /// Faults of transmit queues.
    pub tx_errors: u64,
    /// Frames to send that were refused or abandoned.
    pub tx_dropped: u64,
}

impl Traffic {
    /// Of one pair of queues.
    pub fn of(rx: &RxCounters, tx: &TxCounters) -> Self {
        Self {
            rx_packets: rx.frames,
            rx_bytes: rx.bytes,
            rx_errors: rx.faults,
            rx_dropped: rx.dropped(),
            tx_packets: tx.completed,
            tx_bytes: tx.completed_bytes,
            tx_errors: tx.faults,
            tx_dropped: tx.dropped(),
        }
    }
}

impl core::ops::Add for Traffic {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            rx_packets: self.rx_packets.wrapping_add(other.rx_packets),
            rx_bytes: self.rx_bytes.wrapping_add(other.rx_bytes),
            rx_errors: self.rx_errors.wrapping_add(other.rx_errors),
            rx_dropped: self.rx_dropped.wrapping_add(other.rx_dropped),
            tx_packets: self.tx_packets.wrapping_add(other.tx_packets),
            tx_bytes: self.tx_bytes.wrapping_add(other.tx_bytes),
            tx_errors: self.tx_errors.wrapping_add(other.tx_errors),
            tx_dropped: self.tx_dropped.wrapping_add(other.tx_dropped),
        }
    }
}

impl core::iter::Sum for Traffic {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |sum, part| sum + part)
    }
}

impl Worker {
    /// As last published.
    pub fn traffic(&self) -> Traffic {
        let load = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        Traffic {
            rx_packets: load(&self.rx_packets),
            rx_bytes: load(&self.rx_bytes),
            rx_errors: load(&self.rx_errors),
            rx_dropped: load(&self.rx_dropped),
            tx_packets: load(&self.tx_packets),
            tx_bytes: load(&self.tx_bytes),
            tx_errors: load(&self.tx_errors),
            tx_dropped: load(&self.tx_dropped),
        }
    }

    /// Several queues of one worker add here, and during a hand-over two threads may: read-modify-write it is.
    pub(super) fn add_rx(&self, added: &RxCounters) {
        add(&self.rx_packets, added.frames);
        add(&self.rx_bytes, added.bytes);
        add(&self.rx_errors, added.faults);
        add(&self.rx_dropped, added.dropped());
    }

    pub(super) fn add_tx(&self, added: &TxCounters) {
        add(&self.tx_packets, added.completed);
        add(&self.tx_bytes, added.completed_bytes);
        add(&self.tx_errors, added.faults);
        add(&self.tx_dropped, added.dropped());
    }
}

fn add(cell: &AtomicU64, amount: u64) {
    if amount != 0 {
        cell.fetch_add(amount, Ordering::Relaxed);
    }
}
