//! What one queue counts, and where others read it while the queue runs in some thread.
//!
//! A queue counts in plain fields that only its owner touches, and publishes what was added since the last time at the end
//! of each poll, doorbell and reap, once a batch rather than once a frame. It publishes into two places: the cell of its
//! queue number, which outlives the queue (a restart, a down and up), and the cell of the worker that drives it. Each value
//! is one 64-bit atomic, so a reader never sees half of one; two values of a cell may be one batch apart.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use super::workers::Worker;
use crate::pool::PoolStatistics;

/// A block of counters: the plain struct that its owner counts in, and its shared image.
macro_rules! counters {
    ($(#[$doc:meta])* $plain:ident, $cell:ident { $($(#[$field_doc:meta])* $field:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct $plain {
            $($(#[$field_doc])* pub $field: u64,)+
        }

        impl $plain {
            /// Field by field: its name here, its value.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($field), self.$field)),+].into_iter()
            }

            /// What was added since `earlier`.
            fn since(&self, earlier: &Self) -> Self {
                Self { $($field: self.$field.wrapping_sub(earlier.$field),)+ }
            }
        }

        impl core::ops::Add for $plain {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self { $($field: self.$field.wrapping_add(other.$field),)+ }
            }
        }

        impl core::ops::AddAssign for $plain {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl core::iter::Sum for $plain {
            fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
                parts.fold(Self::default(), |sum, part| sum + part)
            }
        }

        /// The shared image of the counters of one queue number.
        #[derive(Debug, Default)]
        pub(crate) struct $cell {
            $($field: AtomicU64,)+
        }

        impl $cell {
            /// One queue at a time has the number, so that there is one writer and an addition needs no atomic
            /// read-modify-write. A queue that follows another was given the number by whoever stopped that one.
            fn add(&self, amount: &$plain) {
                $(if amount.$field != 0 {
                    let sum = self.$field.load(Ordering::Relaxed).wrapping_add(amount.$field);
                    self.$field.store(sum, Ordering::Relaxed);
                })+
            }

            /// As last published.
            pub(crate) fn load(&self) -> $plain {
                $plain { $($field: self.$field.load(Ordering::Relaxed),)+ }
            }
        }
    };
}

counters! {
    /// What a receive queue has counted since it was started.
    RxCounters, RxCell {
        /// Frames that came while the queue ran, whatever the XDP hook then said of them.
        frames,
        /// Their bytes, FCS left out.
        bytes,
        /// Faults: each stopped the queue.
        faults,
        /// Pages that a sink kept.
        pages_kept,
        /// Pages that a sink wanted to keep, but for which no other could be had.
        alloc_failures,
        /// Frames that came while the queue was being stopped.
        dropped_stopping,
        /// Doorbells of the descriptor ring.
        doorbells,
        /// Doorbells of the completion ring.
        credits,
        /// Frames that the XDP hook redirected.
        xdp_redirect,
        /// Frames that it passed on to the sink.
        xdp_pass,
        /// Frames that it dropped, or that were aborted.
        xdp_drop,
        /// Frames that it sent back out.
        xdp_tx,
        /// Frames that it wanted to send back, but that found no room.
        xdp_tx_errors,
        /// Frames that it wanted to redirect, but that the target did not take.
        xdp_redirect_errors,
        /// Frames on which it failed. They are among the dropped ones.
        xdp_aborted,
    }
}

counters! {
    /// What a transmit queue has counted since it was started. Posted is completed, abandoned and outstanding.
    TxCounters, TxCell {
        /// Frames given to the ring.
        posted,
        /// Their bytes, padding included, FCS left out.
        posted_bytes,
        /// Frames that the card has taken from host memory.
        completed,
        /// Their bytes.
        completed_bytes,
        /// Faults: each stopped the queue.
        faults,
        /// Times that the ring was full.
        full,
        /// Frames refused for their length, redirected ones left out.
        refused,
        /// Frames refused for want of a page, redirected ones left out.
        no_page,
        /// Frames given to the ring that the card never took, because the queue was stopped or failed.
        abandoned,
        /// Doorbells rung.
        doorbells,
        /// Times that senders were told to stop, for want of free descriptors.
        stopped,
        /// Times that they were told to go on.
        woken,
        /// Frames redirected here by the XDP hook of another queue, and taken.
        xdp_xmit,
        /// Frames redirected here that were not taken.
        xdp_xmit_errors,
    }
}

impl RxCounters {
    /// Frames that reached the host and were not handed up, whatever the reason; the XDP hook's own verdicts, which are no
    /// loss, left out.
    pub fn dropped(&self) -> u64 {
        self.dropped_stopping + self.xdp_tx_errors + self.xdp_redirect_errors
    }
}

impl TxCounters {
    /// Frames that were to be sent and were not, whatever the reason. One refused because the ring was full is still in the
    /// caller's hands and doesn't count, unless it was redirected here: nobody tries that one again.
    pub fn dropped(&self) -> u64 {
        self.refused + self.no_page + self.abandoned + self.xdp_xmit_errors
    }
}

/// Values of [`PoolStatistics`].
const POOL_VALUES: usize = 11;

/// The shared image of the page pools of one queue number, those of earlier queues included.
#[derive(Debug, Default)]
pub(crate) struct PoolCell([AtomicU64; POOL_VALUES]);

impl PoolCell {
    /// As last published, in the order of [`PoolStatistics::named`].
    pub(crate) fn load(&self) -> [u64; POOL_VALUES] {
        core::array::from_fn(|i| self.0[i].load(Ordering::Relaxed))
    }
}

fn pool_values(pool: &PoolStatistics) -> [u64; POOL_VALUES] {
    pool.named().map(|(_, value)| value)
}

/// Where a receive queue publishes. Made by the driver, owned by the queue.
#[derive(Debug)]
pub(crate) struct RxLedger {
    queue: Arc<RxCell>,
    pool: Arc<PoolCell>,
    worker: Arc<Worker>,
    published: RxCounters,
    pool_published: [u64; POOL_VALUES],
}

impl RxLedger {
    /// `source` is the page source's count so far: what it counted for an earlier queue was published by that one.
    pub(crate) fn new(queue: Arc<RxCell>, pool: Arc<PoolCell>, worker: Arc<Worker>, source: &PoolStatistics) -> Self {
        Self { queue, pool, worker, published: RxCounters::default(), pool_published: pool_values(source) }
    }

    /// Like [`RxLedger::publish`], for the page source. Less often: it has more values, and they matter less.
    pub(crate) fn publish_pool(&mut self, now: &PoolStatistics) {
        let now = pool_values(now);
        for ((cell, now), before) in self.pool.0.iter().zip(now).zip(self.pool_published) {
            if now != before {
                let sum = cell.load(Ordering::Relaxed).wrapping_add(now.wrapping_sub(before));
                cell.store(sum, Ordering::Relaxed);
            }
        }
        self.pool_published = now;
    }

    /// Add what was counted since the last time. Costs a few plain stores; to be called once a batch.
    pub(crate) fn publish(&mut self, now: &RxCounters) {
        let added = now.since(&self.published);
        self.queue.add(&added);
        self.worker.add_rx(&added);
        self.published = *now;
    }

    /// Who drives the queue.
    pub(crate) fn worker(&self) -> Arc<Worker> {
        Arc::clone(&self.worker)
    }

    /// From here on another worker drives the queue. What it counted before must have been published.
    pub(crate) fn assign(&mut self, worker: Arc<Worker>) {
        self.worker = worker;
    }
}

/// Where a transmit queue publishes.
#[derive(Debug)]
pub(crate) struct TxLedger {
    queue: Arc<TxCell>,
    worker: Arc<Worker>,
    published: TxCounters,
}

impl TxLedger {
    pub(crate) fn new(queue: Arc<TxCell>, worker: Arc<Worker>) -> Self {
        Self { queue, worker, published: TxCounters::default() }
    }

    /// See [`RxLedger::publish`].
    pub(crate) fn publish(&mut self, now: &TxCounters) {
        let added = now.since(&self.published);
        self.queue.add(&added);
        self.worker.add_tx(&added);
        self.published = *now;
    }

    /// Who drives the queue.
    pub(crate) fn worker(&self) -> Arc<Worker> {
        Arc::clone(&self.worker)
    }

    /// See [`RxLedger::assign`].
    pub(crate) fn assign(&mut self, worker: Arc<Worker>) {
        self.worker = worker;
    }
}
