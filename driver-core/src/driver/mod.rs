//! The driver of one function: what a user holds.
//!
//! | file | concern |
//! |---|---|
//! | `mod` | its life: bring-up, up, down, removal |
//! | `queues` | one queue: start, restart, recovery |
//! | `settings` | MTU, queue count, ring sizes, RSS, moderation |
//! | `ethtool` | the same settings as ethtool asks for them |
//! | `statistics` | what it has counted |

mod ethtool;
mod queues;
mod settings;
mod statistics;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::bringup::{self, Brought, Vectors};
use crate::card_errors::ErrorTotals;
use crate::cmac;
use crate::config::{DeviceConfig, Moderation};
use crate::csr::Sizes;
use crate::error::{BringUpError, Cause, ChangeError, StopError, UpError};
use crate::geometry::BufferGeometry;
use crate::napi::Napi;
use crate::platform::{Clock, DmaMemory, Interrupts, Platform, Vector};
use crate::ring::{KeptPages, Leftover, PageSource, RxQueue, TxLimits, TxQueue};
use crate::statistics::{Cells, MacStatistics, Worker};
use crate::wait::Backoff;

use queues::PairSettings;
pub use queues::{Recovered, Side};

/// The two queues of one index. They may go to a thread of their own ([`Driver::take_queues`]).
pub struct QueuePair<P: Platform, S> {
    /// To the card.
    pub tx: TxQueue<P>,
    /// From the card.
    pub rx: RxQueue<P, S>,
    /// When they are polled.
    pub napi: Napi,
}

impl<P: Platform, S: PageSource<P::Dma>> QueuePair<P, S> {
    /// The queues, counted from the function's first.
    pub fn rel_qid(&self) -> u16 {
        self.rx.rel_qid()
    }

    /// From here on `worker` drives both queues, and what they move counts as its. Worker 0 drives a new queue.
    pub fn assign(&mut self, worker: &Arc<Worker>) {
        self.tx.assign(worker);
        self.rx.assign(worker);
    }
}

/// A queue that could not be stopped for certain. Its memory is kept, since the card may still write to it.
enum Parked<P: Platform, S> {
    Tx(TxQueue<P>),
    Rx(RxQueue<P, S>),
}

/// The driver of one PCIe function, from bring-up to removal.
///
/// ```text
///   bring_up ─► down ── up ─► up ── down ─► down ── remove ─► gone
/// ```
///
/// Settings outlive an up and a down, those of single queues included (thresholds, timers and deferral of a pair go to the
/// next pair of that number). Dropping it takes it down and removes it, as far as the card answers.
///
/// The driver has no thread and no time of its own: it polls what it is told to poll, and waits only through the
/// platform's clock.
pub struct Driver<P: Platform, S: PageSource<P::Dma> = KeptPages<<P as Platform>::Dma>> {
    platform: Arc<P>,
    config: DeviceConfig,
    /// Queues that bring-up asked for.
    queues_at_birth: u16,
    sizes: Sizes,
    vectors: Vectors,
    limits: Arc<TxLimits>,
    queues: Vec<QueuePair<P, S>>,
    parked: Vec<Parked<P, S>>,
    /// Pairs that [`Driver::take_queues`] gave away.
    lent: usize,
    up: bool,
    /// The port's receiver may be on.
    receiver_on: bool,
    removed: bool,
    /// Settings of single queues ([`Driver::set_coalesce`]) that differ from `config.moderation`.
    moderation: BTreeMap<u16, Moderation>,
    /// What was set on the queues themselves: transmit thresholds, deferral.
    pair_settings: BTreeMap<u16, PairSettings>,
    /// What queues and workers have counted, whoever drives them now.
    cells: Cells,
    /// Errors that the card reported, by register.
    card_errors: ErrorTotals,
    /// The port's MAC counters, which this function collects or another one that it shares the port with.
    mac: Option<Arc<MacStatistics>>,
}

impl<P: Platform, S: PageSource<P::Dma>> Driver<P, S> {
    /// Bring a function up to where its queues can be started.
    ///
    /// # Errors
    /// [`BringUpError`] names the step; all that was done is undone, and a second attempt may succeed.
    pub fn bring_up(platform: Arc<P>, config: DeviceConfig) -> Result<Self, BringUpError> {
        let Brought { sizes, vectors } = bringup::bring_up(&*platform, &config)?;
        let limits = Arc::new(TxLimits::new(config.mtu, config.min_tx_frame_len_bytes));
        let mac = config.own_port.map(|port| Arc::new(MacStatistics::new(port)));
        Ok(Self {
            platform,
            queues_at_birth: config.queues,
            config,
            sizes,
            vectors,
            limits,
            queues: Vec::new(),
            parked: Vec::new(),
            lent: 0,
            up: false,
            receiver_on: false,
            removed: false,
            moderation: BTreeMap::new(),
            pair_settings: BTreeMap::new(),
            cells: Cells::default(),
            card_errors: ErrorTotals::default(),
            mac,
        })
    }

    /// The settings in force.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// The platform.
    pub fn platform(&self) -> &Arc<P> {
        &self.platform
    }

    /// Where in a page the card writes.
    pub fn geometry(&self) -> BufferGeometry {
        self.sizes.geometry
    }

    /// Entries of a TX ring, status included, as programmed.
    pub fn tx_ring_entries(&self) -> u16 {
        self.sizes.tx_ring.value
    }

    /// Entries of an RX descriptor ring and of its completion ring, status included, as programmed.
    pub fn rx_ring_entries(&self) -> u16 {
        self.sizes.rx_ring.value
    }

    /// Are the queues running?
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// The queues, while the device is up and they are not lent out.
    pub fn queues(&mut self) -> &mut [QueuePair<P, S>] {
        &mut self.queues
    }

    /// The pair of queues with this index. One that was lost to a failed restart is not there any more.
    pub fn pair(&mut self, rel_qid: u16) -> Option<&mut QueuePair<P, S>> {
        let at = self.queues.partition_point(|pair| pair.rel_qid() < rel_qid);
        self.queues.get_mut(at).filter(|pair| pair.rel_qid() == rel_qid)
    }

    /// A transmit queue.
    pub fn tx(&mut self, rel_qid: u16) -> Option<&mut TxQueue<P>> {
        self.pair(rel_qid).map(|pair| &mut pair.tx)
    }

    /// A receive queue.
    pub fn rx(&mut self, rel_qid: u16) -> Option<&mut RxQueue<P, S>> {
        self.pair(rel_qid).map(|pair| &mut pair.rx)
    }

    /// Lend the queues out, to threads for instance. They must come back by [`Driver::return_queues`] before the device is
    /// taken down; one that is removed stops them itself.
    pub fn take_queues(&mut self) -> Vec<QueuePair<P, S>> {
        self.lent += self.queues.len();
        core::mem::take(&mut self.queues)
    }

    /// Queues that were lent out come back, in any order.
    pub fn return_queues(&mut self, queues: impl IntoIterator<Item = QueuePair<P, S>>) {
        let before = self.queues.len();
        self.queues.extend(queues);
        self.lent = self.lent.saturating_sub(self.queues.len() - before);
        self.queues.sort_by_key(|pair| pair.rel_qid());
    }

    /// The interrupt vector of a receive queue.
    pub fn vector_of(&self, rel_qid: u16) -> Vector {
        self.vectors.of_queue(rel_qid)
    }

    /// The vector of the card's errors: function 0's.
    pub fn error_vector(&self) -> Option<Vector> {
        self.vectors.error
    }

    /// Start all queues and then the port's receiver. `source` makes the page source of each receive queue.
    ///
    /// # Errors
    /// [`UpError`]; whatever was started is stopped again.
    pub fn up_with(&mut self, mut source: impl FnMut(u16) -> S) -> Result<(), UpError> {
        if self.up {
            return Err(UpError::AlreadyUp);
        }
        self.retry_parked()?;
        let started = self.start_queues(&mut source).and_then(|()| self.switch_port(true));
        self.up = true;
        if let Err(cause) = started {
            // What can't be stopped stays parked; the cause of the failure is the one to tell.
            let _ = self.down();
            return Err(cause);
        }
        Ok(())
    }

    /// Stop the port's receiver, let what is in flight end, stop all queues, and free their memory.
    ///
    /// # Errors
    /// [`StopError::Card`] if a queue could not be stopped for certain. The device is down all the same; that queue's memory
    /// is kept until the next up, down or remove succeeds in stopping it. [`StopError::LentOut`]: nothing was done.
    pub fn down(&mut self) -> Result<(), StopError> {
        if self.lent > 0 {
            return Err(StopError::LentOut { count: self.lent });
        }
        if self.up {
            // A port that can't be switched off only means that frames keep coming until their queues are gone; it is tried
            // again then.
            let _ = self.switch_port(false);
            self.quiesce();
            let queues = core::mem::take(&mut self.queues);
            queues.iter().for_each(|pair| self.keep_settings(pair));
            let (tx, rx): (Vec<_>, Vec<_>) = queues.into_iter().map(|pair| (pair.tx, pair.rx)).unzip();
            self.parked.extend(tx.into_iter().map(Parked::Tx));
            self.parked.extend(rx.into_iter().map(Parked::Rx));
            for rel_qid in 0..self.config.queues {
                // The vector exists, or `up` would have failed.
                let _ = self.platform.interrupts().disable(self.vectors.of_queue(rel_qid));
            }
            self.up = false;
        }
        if self.receiver_on {
            let _ = self.switch_port(false);
        }
        self.retry_parked()
    }

    /// Take the function down for good.
    ///
    /// Queues that are lent out are stopped where they are, without an end for what is in flight: their keeper only has to
    /// drop them.
    ///
    /// # Errors
    /// [`ChangeError`] if the card doesn't answer; dropping the driver tries no more then. [`StopError::LentOut`]: the
    /// function is gone, and so many pairs never came back.
    pub fn remove(mut self) -> Result<(), ChangeError> {
        self.take_away()
    }

    fn take_away(&mut self) -> Result<(), ChangeError> {
        if self.removed {
            return Ok(());
        }
        self.removed = true;
        // Nobody comes after this: whatever a single failing access has left undone is tried once more.
        let cut_off = self.cut_off();
        let stopped = self.down().or_else(|_| self.down());
        let torn_down = bringup::tear_down(&*self.platform, &self.config, self.vectors);
        stopped?;
        cut_off?;
        torn_down.map_err(|cause| match cause {
            Cause::Context(cause) => ChangeError::Context(cause),
            Cause::Mmio(cause) => ChangeError::Mmio(cause),
            other => ChangeError::Remove(other),
        })
    }

    /// Make the card forget the queues that are lent out. Their keeper may free their memory at any time from here on, and
    /// nobody asks the card about it then.
    fn cut_off(&mut self) -> Result<(), StopError> {
        let count = core::mem::take(&mut self.lent);
        if count == 0 {
            return Ok(());
        }
        // Once more if it fails, like everything in a removal.
        let _ = self.switch_port(false).or_else(|_| self.switch_port(false));
        let mut done = Ok(());
        for rel_qid in
            (0..self.config.queues).filter(|rel_qid| self.queues.iter().all(|pair| pair.rel_qid() != *rel_qid))
        {
            done = done.and(self.stop_contexts(rel_qid).or_else(|_| self.stop_contexts(rel_qid)));
            let _ = self.platform.interrupts().disable(self.vectors.of_queue(rel_qid));
        }
        self.platform.clock().wait(self.config.timeouts.settle_ns);
        done.and(Err(StopError::LentOut { count }))
    }

    /// The card's side of a stop, for a pair that somebody else holds. Both queues are tried.
    fn stop_contexts(&self, rel_qid: u16) -> Result<(), StopError> {
        let qid = self.qid(rel_qid);
        let contexts = bringup::contexts(&*self.platform, &self.config);
        let (tx, rx) = (contexts.stop_tx(qid), contexts.stop_rx(qid));
        tx.and(rx).map_err(|cause| StopError::Card { qid, cause })
    }

    fn start_queues(&mut self, source: &mut impl FnMut(u16) -> S) -> Result<(), UpError> {
        let mut transmitters = Vec::with_capacity(usize::from(self.config.queues));
        for rel_qid in 0..self.config.queues {
            match self.start_tx(rel_qid) {
                Ok(tx) => transmitters.push(tx),
                Err(cause) => {
                    self.parked.extend(transmitters.into_iter().map(Parked::Tx));
                    return Err(self.queue_error(rel_qid, cause));
                }
            }
        }
        let mut transmitters = transmitters.into_iter();
        while let Some(tx) = transmitters.next() {
            let rel_qid = tx.rel_qid();
            match self.start_rx(rel_qid, source(rel_qid)) {
                Ok(rx) => self.queues.push(QueuePair { tx, rx, napi: self.new_napi(rel_qid) }),
                Err(cause) => {
                    self.parked.push(Parked::Tx(tx));
                    self.parked.extend(transmitters.map(Parked::Tx));
                    return Err(self.queue_error(rel_qid, cause));
                }
            }
        }
        Ok(())
    }

    fn switch_port(&mut self, on: bool) -> Result<(), UpError> {
        let Some(port) = self.config.own_port else { return Ok(()) };
        // Before the write: one whose answer got lost may have been done.
        self.receiver_on |= on;
        cmac::enable_rx(self.platform.mmio(), port, on).map_err(|cause| UpError::Port { port, cause })?;
        self.receiver_on = on;
        Ok(())
    }

    /// Let the frames in flight end: those to send within the limit, those received until nothing has come for a while.
    fn quiesce(&mut self) {
        let limit_ns = self.config.timeouts.quiesce_ns;
        for pair in &mut self.queues {
            pair.rx.stop_delivery();
            pair.tx.quiesce(limit_ns);
        }
        let platform = Arc::clone(&self.platform);
        let patience = Backoff::new(platform.clock(), limit_ns);
        while patience.waited_ns() < limit_ns {
            platform.clock().wait(self.config.timeouts.settle_ns.max(1));
            let came: usize = self.queues.iter_mut().map(|pair| pair.rx.drain_pending()).sum();
            if came == 0 {
                break;
            }
        }
    }

    /// Stop what is parked, wait for late DMA, and free it. A queue that can't be stopped stays, with its memory.
    fn retry_parked(&mut self) -> Result<(), StopError> {
        if self.parked.is_empty() {
            return Ok(());
        }
        let mut failed = None;
        let mut stopped = Vec::new();
        for queue in core::mem::take(&mut self.parked) {
            match self.invalidate(&queue) {
                Ok(()) => stopped.push(queue),
                Err(cause) => {
                    failed.get_or_insert(cause);
                    self.parked.push(queue);
                }
            }
        }
        self.platform.clock().wait(self.config.timeouts.settle_ns);
        self.release(stopped);
        failed.map_or(Ok(()), Err)
    }

    /// Free queues that the card can't reach any more. Pages that a hook had sent back or redirected go home first: a receive
    /// queue whose transmit queue can't be stopped yet waits for it.
    fn release(&mut self, stopped: Vec<Parked<P, S>>) {
        let mut receivers = Vec::new();
        let mut sent_back = Vec::new();
        for queue in stopped {
            match queue {
                Parked::Tx(queue) => sent_back.push((queue.rel_qid(), queue.release())),
                Parked::Rx(queue) if self.keeps_tx(queue.rel_qid()) => self.parked.push(Parked::Rx(queue)),
                Parked::Rx(queue) => receivers.push(queue),
            }
        }
        for (rel_qid, Leftover { received, lent }) in sent_back {
            for page in received {
                self.send_home(&mut receivers, page, |queue, _| queue.rel_qid() == rel_qid);
            }
            for page in lent {
                self.send_home(&mut receivers, page, RxQueue::owns);
            }
        }
        for queue in receivers {
            queue.release();
        }
    }

    /// A page that was found in a transmit queue goes to the receive queue that it belongs to: one of `these`, of the parked, or
    /// of those that run. One that nobody knows is freed.
    fn send_home(
        &mut self,
        these: &mut [RxQueue<P, S>],
        page: <P::Dma as DmaMemory>::Page,
        is_home: impl Fn(&RxQueue<P, S>, &<P::Dma as DmaMemory>::Page) -> bool,
    ) {
        let parked = self.parked.iter_mut().filter_map(|queue| match queue {
            Parked::Rx(queue) => Some(queue),
            Parked::Tx(_) => None,
        });
        let running = self.queues.iter_mut().map(|pair| &mut pair.rx);
        match these.iter_mut().chain(parked).chain(running).find(|queue| is_home(queue, &page)) {
            Some(queue) => queue.give_back(page),
            None => self.platform.dma().free_page(page),
        }
    }

    /// Is the transmit queue with this index still to be stopped?
    fn keeps_tx(&self, rel_qid: u16) -> bool {
        self.parked.iter().any(|queue| matches!(queue, Parked::Tx(tx) if tx.rel_qid() == rel_qid))
    }

    fn invalidate(&self, queue: &Parked<P, S>) -> Result<(), StopError> {
        let contexts = bringup::contexts(&*self.platform, &self.config);
        match queue {
            Parked::Tx(queue) => queue.invalidate(&contexts),
            Parked::Rx(queue) => queue.invalidate(&contexts),
        }
    }

    /// Queues whose memory is kept because the card would not stop them.
    pub fn parked(&self) -> usize {
        self.parked.len()
    }
}

impl<P: Platform, S: PageSource<P::Dma> + Default> Driver<P, S> {
    /// [`Driver::up_with`], each queue with a page source of its own.
    ///
    /// # Errors
    /// [`UpError`].
    pub fn up(&mut self) -> Result<(), UpError> {
        self.up_with(|_| S::default())
    }
}

impl<P: Platform, S: PageSource<P::Dma>> Drop for Driver<P, S> {
    fn drop(&mut self) {
        // There is nobody to tell.
        let _ = self.take_away();
        // Memory that the card may still write to is lost rather than given to somebody else.
        core::mem::forget(core::mem::take(&mut self.parked));
    }
}
