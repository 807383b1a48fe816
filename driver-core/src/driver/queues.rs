//! One queue of a function: start, restart after a fault, recovery of all that have failed.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use regs::Qid;
use regs::context::{CompletionContext, EntrySize, PrefetchContext, SwDescContext};

use super::{Driver, Parked, QueuePair};
use crate::bringup;
use crate::error::{Cause, ChangeError, UpError};
use crate::geometry::{BufferGeometry, GeometryError};
use crate::napi::{Deferral, Napi};
use crate::platform::{Clock, Interrupts, Platform};
use crate::ring::{Leftover, PageSource, QueueFault, QueueState, RxParts, RxQueue, TxParts, TxQueue, TxSettings};

/// Which of a pair's two queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// From the card.
    Rx,
    /// To the card.
    Tx,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Rx => "RX",
            Side::Tx => "TX",
        })
    }
}

/// A queue that had failed, and what became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recovered {
    /// Counted from the function's first.
    pub rel_qid: u16,
    /// Which of the pair.
    pub side: Side,
    /// What had stopped it.
    pub fault: QueueFault,
    /// `Ok`: it runs again. Otherwise the pair is gone until the next down and up.
    pub result: Result<(), ChangeError>,
}

/// What was set on the queues of a pair themselves: kept for those that come after them.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairSettings {
    tx: TxSettings,
    deferral: Deferral,
}

impl<P: Platform, S: PageSource<P::Dma>> Driver<P, S> {
    /// Remember what was set on a pair that is going to be stopped.
    pub(super) fn keep_settings(&mut self, pair: &QueuePair<P, S>) {
        let settings = PairSettings { tx: pair.tx.settings(), deferral: pair.napi.deferral() };
        self.pair_settings.insert(pair.rel_qid(), settings);
    }

    /// The state of polling of a pair that has not been polled.
    pub(super) fn new_napi(&self, rel_qid: u16) -> Napi {
        let mut napi = Napi::default();
        if let Some(kept) = self.pair_settings.get(&rel_qid) {
            napi.set_deferral(kept.deferral);
        }
        napi
    }

    pub(super) fn queue_error(&self, rel_qid: u16, cause: Cause) -> UpError {
        UpError::Queue { qid: self.qid(rel_qid), cause }
    }

    pub(super) fn qid(&self, rel_qid: u16) -> Qid {
        Qid(self.config.base() + rel_qid)
    }

    pub(super) fn start_tx(&mut self, rel_qid: u16) -> Result<TxQueue<P>, Cause> {
        let qid = self.qid(rel_qid);
        let mut queue = TxQueue::new(TxParts {
            platform: Arc::clone(&self.platform),
            rel_qid,
            qid,
            span: self.sizes.tx_span,
            limits: Arc::clone(&self.limits),
            max_frame_len_bytes: self.config.max_frame_len_bytes.saturating_add(4),
            ledger: self.cells.tx_ledger(rel_qid),
        })?;
        if let Some(kept) = self.pair_settings.get(&rel_qid) {
            queue.inherit(kept.tx);
        }
        let context = self.tx_context(rel_qid, queue.ring_addr());
        match bringup::contexts(&*self.platform, &self.config).start_tx(qid, &context) {
            Ok(()) => Ok(queue),
            Err(cause) => {
                self.parked.push(Parked::Tx(queue));
                Err(cause.into())
            }
        }
    }

    pub(super) fn start_rx(&mut self, rel_qid: u16, mut source: S) -> Result<RxQueue<P, S>, Cause> {
        let geometry = match self.geometry_in(&source) {
            Ok(geometry) => geometry,
            Err(cause) => {
                // It may have pages already.
                source.drain(self.platform.dma());
                return Err(cause.into());
            }
        };
        let parts = RxParts {
            platform: Arc::clone(&self.platform),
            rel_qid,
            qid: self.qid(rel_qid),
            span: self.sizes.rx_span,
            geometry,
            moderation: self.moderation_of(rel_qid),
            ledger: self.cells.rx_ledger(rel_qid, &source.statistics()),
        };
        let mut queue = RxQueue::new(parts, source).map_err(|(cause, mut source)| {
            source.drain(self.platform.dma());
            cause
        })?;
        match self.open_rx(&mut queue) {
            Ok(()) => Ok(queue),
            Err(cause) => {
                self.parked.push(Parked::Rx(queue));
                Err(cause)
            }
        }
    }

    /// The layout of buffers from this source, which may give less than a page for each, and sync less than all of it.
    fn geometry_in(&self, source: &S) -> Result<BufferGeometry, GeometryError> {
        let geometry = self.sizes.geometry.within(source.buffer_bytes(self.platform.dma()))?;
        geometry.synced_by(source.synced())
    }

    /// The card's side of a receive queue. Everything on our side is in place: the first frame may come with the doorbell.
    fn open_rx(&self, queue: &mut RxQueue<P, S>) -> Result<(), Cause> {
        let (descriptors, prefetch, completions) = self.rx_contexts(queue);
        let contexts = bringup::contexts(&*self.platform, &self.config);
        contexts.start_rx(queue.qid(), &descriptors, &prefetch, &completions)?;
        if self.moderation_of(queue.rel_qid()).interrupt {
            self.platform.interrupts().enable(self.vectors.of_queue(queue.rel_qid()))?;
        }
        queue.arm()?;
        Ok(())
    }

    fn tx_context(&self, rel_qid: u16, ring_base: u64) -> SwDescContext {
        SwDescContext {
            func_id: u16::from(self.config.func.0),
            qen: true,
            // Both: a write-back every few descriptors, and one when the card has caught up.
            wbi_chk: true,
            wbi_intvl_en: true,
            ring_size_index: self.sizes.tx_ring.index,
            desc_size: EntrySize::Bytes16,
            wbk_en: true,
            ring_base,
            vector: self.vectors.of_queue(rel_qid).0,
            ..SwDescContext::default()
        }
    }

    fn rx_contexts(&self, queue: &RxQueue<P, S>) -> (SwDescContext, PrefetchContext, CompletionContext) {
        let func_id = u16::from(self.config.func.0);
        let moderation = self.moderation_of(queue.rel_qid());
        let ring_size_index = self.sizes.rx_ring.index;
        let descriptors = SwDescContext {
            func_id,
            qen: true,
            fcrd_en: true,
            ring_size_index,
            desc_size: EntrySize::Bytes8,
            wbk_en: true,
            ring_base: queue.ring_addr(),
            ..SwDescContext::default()
        };
        let prefetch = PrefetchContext {
            buffer_size_index: self.sizes.rx_buffer.index,
            pfch_en: true,
            valid: true,
            ..PrefetchContext::default()
        };
        let completions = CompletionContext {
            en_stat_desc: true,
            // Each doorbell says whether it asks for an interrupt: the setting may change while the queue runs.
            en_int: self.vectors.check_queues().is_ok(),
            // And by which rule: without this the card takes an index from the doorbell and leaves the rule as it was.
            full_upd: true,
            trigger_mode: moderation.mode,
            func_id,
            counter_index: moderation.counter_index,
            timer_index: moderation.timer_index,
            color: true,
            ring_size_index,
            valid: true,
            vector: self.vectors.of_queue(queue.rel_qid()).0,
            ..CompletionContext::default()
        }
        .with_ring_base(queue.completions_addr());
        (descriptors, prefetch, completions)
    }

    /// Start every queue afresh that a fault has stopped; the others run on. Cheap when there is none, so that it may be
    /// called after every poll. Queues lent out are left alone: their keeper sees the fault and gives them back.
    pub fn recover(&mut self) -> Vec<Recovered> {
        let failed: Vec<_> = self.queues.iter().flat_map(faults).collect();
        failed
            .into_iter()
            .map(|(rel_qid, side, fault)| {
                let result = match side {
                    Side::Rx => self.restart_rx(rel_qid),
                    Side::Tx => self.restart_tx(rel_qid),
                };
                Recovered { rel_qid, side, fault, result }
            })
            .collect()
    }

    /// Start a transmit queue afresh: the way out of a [`crate::QueueFault`]. Frames that the card has not taken by now are
    /// given up and counted; senders that wait for room are woken by the new queue, which keeps thresholds and timer.
    ///
    /// # Errors
    /// [`ChangeError`]; the queue is gone then until the next down and up.
    pub fn restart_tx(&mut self, rel_qid: u16) -> Result<(), ChangeError> {
        let QueuePair { mut tx, mut rx, napi } = self.remove_pair(rel_qid)?;
        // A queue that runs: what is done already is counted so.
        tx.quiesce(0);
        let contexts = bringup::contexts(&*self.platform, &self.config);
        if let Err(cause) = tx.invalidate(&contexts) {
            self.parked.extend([Parked::Tx(tx), Parked::Rx(rx)]);
            return Err(cause.into());
        }
        self.platform.clock().wait(self.config.timeouts.settle_ns);
        let (worker, owes_wake) = (tx.worker(), tx.owes_wake());
        let Leftover { received, lent } = tx.release();
        received.into_iter().for_each(|page| rx.give_back(page));
        for page in lent {
            self.send_home(core::slice::from_mut(&mut rx), page, RxQueue::owns);
        }
        match self.start_tx(rel_qid) {
            Ok(mut tx) => {
                tx.assign(&worker);
                if owes_wake {
                    tx.wake();
                }
                self.insert_pair(QueuePair { tx, rx, napi });
                Ok(())
            }
            Err(cause) => {
                self.parked.push(Parked::Rx(rx));
                Err(self.queue_error(rel_qid, cause).into())
            }
        }
    }

    /// Start a receive queue afresh: the way out of a [`crate::QueueFault`]. Of a queue that runs, frames that have come are
    /// counted as dropped; those on their way to it are lost to the card.
    ///
    /// # Errors
    /// [`ChangeError`]; the queue is gone then until the next down and up.
    pub fn restart_rx(&mut self, rel_qid: u16) -> Result<(), ChangeError> {
        let QueuePair { tx, mut rx, napi } = self.remove_pair(rel_qid)?;
        rx.stop_delivery();
        rx.drain_pending();
        let contexts = bringup::contexts(&*self.platform, &self.config);
        if let Err(cause) = rx.invalidate(&contexts) {
            self.parked.extend([Parked::Tx(tx), Parked::Rx(rx)]);
            return Err(cause.into());
        }
        self.platform.clock().wait(self.config.timeouts.settle_ns);
        let worker = rx.worker();
        let source = rx.release();
        match self.start_rx(rel_qid, source) {
            Ok(mut rx) => {
                rx.assign(&worker);
                self.insert_pair(QueuePair { tx, rx, napi });
                Ok(())
            }
            Err(cause) => {
                self.parked.push(Parked::Tx(tx));
                Err(self.queue_error(rel_qid, cause).into())
            }
        }
    }

    fn remove_pair(&mut self, rel_qid: u16) -> Result<QueuePair<P, S>, ChangeError> {
        match self.queues.iter().position(|pair| pair.rx.rel_qid() == rel_qid) {
            Some(at) => {
                let pair = self.queues.remove(at);
                self.keep_settings(&pair);
                Ok(pair)
            }
            None => Err(ChangeError::NoSuchQueue { rel_qid }),
        }
    }

    fn insert_pair(&mut self, pair: QueuePair<P, S>) {
        let at = self.queues.partition_point(|other| other.rx.rel_qid() < pair.rx.rel_qid());
        self.queues.insert(at, pair);
    }
}

/// What has stopped the queues of a pair.
fn faults<P: Platform, S: PageSource<P::Dma>>(
    pair: &QueuePair<P, S>,
) -> impl Iterator<Item = (u16, Side, QueueFault)> + use<P, S> {
    let fault = |side, state| match state {
        QueueState::Faulted(fault) => Some((side, fault)),
        QueueState::Running | QueueState::Stopping => None,
    };
    let rel_qid = pair.rx.rel_qid();
    [fault(Side::Rx, pair.rx.state()), fault(Side::Tx, pair.tx.state())]
        .into_iter()
        .flatten()
        .map(move |(side, fault)| (rel_qid, side, fault))
}
