//! The driver of one function: what a user holds.

use alloc::sync::Arc;
use alloc::vec::Vec;

use regs::context::{CompletionContext, EntrySize, PrefetchContext, SwDescContext};
use regs::{PortId, Qid};

use crate::bringup::{self, Brought, Vectors};
use crate::card_errors::{self, CardErrors};
use crate::config::{self, DeviceConfig};
use crate::csr::Sizes;
use crate::error::{BringUpError, Cause, ChangeError, StopError, UpError};
use crate::geometry::BufferGeometry;
use crate::platform::{Clock, Interrupts, MmioError, Platform, Vector};
use crate::ring::{KeptPages, PageSource, RxCounters, RxParts, RxQueue, TxCounters, TxLimits, TxParts, TxQueue};
use crate::wait::Backoff;
use crate::{cmac, rss};

/// The two queues of one index. They may go to a thread of their own ([`Driver::take_queues`]).
pub struct QueuePair<P: Platform, S> {
    /// To the card.
    pub tx: TxQueue<P>,
    /// From the card.
    pub rx: RxQueue<P, S>,
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
/// Settings outlive an up and a down. Dropping it takes it down and removes it, as far as the card answers.
///
/// The driver has no thread and no time of its own: it polls what it is told to poll, and waits only through the
/// platform's clock.
pub struct Driver<P: Platform, S: PageSource<P::Dma> = KeptPages<<P as Platform>::Dma>> {
    platform: Arc<P>,
    config: DeviceConfig,
    sizes: Sizes,
    vectors: Vectors,
    limits: Arc<TxLimits>,
    queues: Vec<QueuePair<P, S>>,
    parked: Vec<Parked<P, S>>,
    /// Pairs that [`Driver::take_queues`] gave away.
    lent: usize,
    up: bool,
    removed: bool,
    tx_past: TxCounters,
    rx_past: RxCounters,
}

impl<P: Platform, S: PageSource<P::Dma>> Driver<P, S> {
    /// Bring a function up to where its queues can be started.
    ///
    /// # Errors
    /// [`BringUpError`] names the step; all that was done is undone, and a second attempt may succeed.
    pub fn bring_up(platform: Arc<P>, config: DeviceConfig) -> Result<Self, BringUpError> {
        let Brought { sizes, vectors } = bringup::bring_up(&*platform, &config)?;
        let limits = Arc::new(TxLimits::new(config.mtu, config.min_tx_frame_len_bytes));
        Ok(Self {
            platform,
            config,
            sizes,
            vectors,
            limits,
            queues: Vec::new(),
            parked: Vec::new(),
            lent: 0,
            up: false,
            removed: false,
            tx_past: TxCounters::default(),
            rx_past: RxCounters::default(),
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

    /// A transmit queue.
    pub fn tx(&mut self, rel_qid: u16) -> Option<&mut TxQueue<P>> {
        self.queues.get_mut(usize::from(rel_qid)).map(|pair| &mut pair.tx)
    }

    /// A receive queue.
    pub fn rx(&mut self, rel_qid: u16) -> Option<&mut RxQueue<P, S>> {
        self.queues.get_mut(usize::from(rel_qid)).map(|pair| &mut pair.rx)
    }

    /// Lend the queues out, to threads for instance. They must come back by [`Driver::return_queues`] before the device is
    /// taken down.
    pub fn take_queues(&mut self) -> Vec<QueuePair<P, S>> {
        self.lent += self.queues.len();
        core::mem::take(&mut self.queues)
    }

    /// Queues that were lent out come back, in any order.
    pub fn return_queues(&mut self, queues: impl IntoIterator<Item = QueuePair<P, S>>) {
        let before = self.queues.len();
        self.queues.extend(queues);
        self.lent = self.lent.saturating_sub(self.queues.len() - before);
        self.queues.sort_by_key(|pair| pair.rx.rel_qid());
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
            // A port that can't be switched off only means that frames keep coming until their queues are gone.
            let _ = self.switch_port(false);
            self.quiesce();
            let queues = core::mem::take(&mut self.queues);
            let (tx, rx): (Vec<_>, Vec<_>) = queues.into_iter().map(|pair| (pair.tx, pair.rx)).unzip();
            self.parked.extend(tx.into_iter().map(Parked::Tx));
            self.parked.extend(rx.into_iter().map(Parked::Rx));
            for rel_qid in 0..self.config.queues {
                // The vector exists, or `up` would have failed.
                let _ = self.platform.interrupts().disable(self.vectors.of_queue(rel_qid));
            }
            self.up = false;
        }
        self.retry_parked()
    }

    /// Take the function down for good.
    ///
    /// # Errors
    /// [`ChangeError`] if the card doesn't answer; dropping the driver tries no more then.
    pub fn remove(mut self) -> Result<(), ChangeError> {
        self.take_away()
    }

    fn take_away(&mut self) -> Result<(), ChangeError> {
        if self.removed {
            return Ok(());
        }
        self.removed = true;
        let stopped = self.down();
        let torn_down = bringup::tear_down(&*self.platform, &self.config, self.vectors);
        stopped?;
        torn_down.map_err(|cause| match cause {
            Cause::Context(cause) => ChangeError::Context(cause),
            Cause::Mmio(cause) => ChangeError::Mmio(cause),
            other => ChangeError::Remove(other),
        })
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
                Ok(rx) => self.queues.push(QueuePair { tx, rx }),
                Err(cause) => {
                    self.parked.push(Parked::Tx(tx));
                    self.parked.extend(transmitters.map(Parked::Tx));
                    return Err(self.queue_error(rel_qid, cause));
                }
            }
        }
        Ok(())
    }

    fn queue_error(&self, rel_qid: u16, cause: Cause) -> UpError {
        UpError::Queue { qid: self.qid(rel_qid), cause }
    }

    fn qid(&self, rel_qid: u16) -> Qid {
        Qid(self.config.base() + rel_qid)
    }

    fn start_tx(&mut self, rel_qid: u16) -> Result<TxQueue<P>, Cause> {
        let qid = self.qid(rel_qid);
        let queue = TxQueue::new(TxParts {
            platform: Arc::clone(&self.platform),
            rel_qid,
            qid,
            span: self.sizes.tx_span,
            limits: Arc::clone(&self.limits),
            max_frame_len_bytes: self.config.max_frame_len_bytes.saturating_add(4),
        })?;
        let context = self.tx_context(rel_qid, queue.ring_addr());
        match bringup::contexts(&*self.platform, &self.config).start_tx(qid, &context) {
            Ok(()) => Ok(queue),
            Err(cause) => {
                self.parked.push(Parked::Tx(queue));
                Err(cause.into())
            }
        }
    }

    fn start_rx(&mut self, rel_qid: u16, source: S) -> Result<RxQueue<P, S>, Cause> {
        let parts = RxParts {
            platform: Arc::clone(&self.platform),
            rel_qid,
            qid: self.qid(rel_qid),
            span: self.sizes.rx_span,
            geometry: self.sizes.geometry,
            moderation: self.config.moderation,
        };
        let mut queue = RxQueue::new(parts, source).map_err(|(cause, _)| cause)?;
        match self.open_rx(&mut queue) {
            Ok(()) => Ok(queue),
            Err(cause) => {
                self.parked.push(Parked::Rx(queue));
                Err(cause)
            }
        }
    }

    /// The card's side of a receive queue. Everything on our side is in place: the first frame may come with the doorbell.
    fn open_rx(&self, queue: &mut RxQueue<P, S>) -> Result<(), Cause> {
        let (descriptors, prefetch, completions) = self.rx_contexts(queue);
        let contexts = bringup::contexts(&*self.platform, &self.config);
        contexts.start_rx(queue.qid(), &descriptors, &prefetch, &completions)?;
        if self.config.moderation.interrupt {
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
            en_int: self.config.moderation.interrupt,
            trigger_mode: self.config.moderation.mode,
            func_id,
            counter_index: self.config.moderation.counter_index,
            timer_index: self.config.moderation.timer_index,
            color: true,
            ring_size_index,
            valid: true,
            vector: self.vectors.of_queue(queue.rel_qid()).0,
            ..CompletionContext::default()
        }
        .with_ring_base(queue.completions_addr());
        (descriptors, prefetch, completions)
    }

    fn switch_port(&self, on: bool) -> Result<(), UpError> {
        match self.config.own_port {
            Some(port) => {
                cmac::enable_rx(self.platform.mmio(), port, on).map_err(|cause| UpError::Port { port, cause })
            }
            None => Ok(()),
        }
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
        for queue in stopped {
            match queue {
                Parked::Tx(queue) => self.tx_past += queue.release(),
                Parked::Rx(queue) => self.rx_past += queue.release().0,
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn invalidate(&self, queue: &Parked<P, S>) -> Result<(), StopError> {
        let contexts = bringup::contexts(&*self.platform, &self.config);
        match queue {
            Parked::Tx(queue) => queue.invalidate(&contexts),
            Parked::Rx(queue) => queue.invalidate(&contexts),
        }
    }

    /// Start a transmit queue afresh: the way out of a [`crate::QueueFault`]. Frames that it holds are given up and
    /// counted.
    ///
    /// # Errors
    /// [`ChangeError`]; the queue is gone then until the next down and up.
    pub fn restart_tx(&mut self, rel_qid: u16) -> Result<(), ChangeError> {
        let QueuePair { tx, rx } = self.remove_pair(rel_qid)?;
        let contexts = bringup::contexts(&*self.platform, &self.config);
        if let Err(cause) = tx.invalidate(&contexts) {
            self.parked.extend([Parked::Tx(tx), Parked::Rx(rx)]);
            return Err(cause.into());
        }
        self.platform.clock().wait(self.config.timeouts.settle_ns);
        self.tx_past += tx.release();
        match self.start_tx(rel_qid) {
            Ok(tx) => {
                self.insert_pair(QueuePair { tx, rx });
                Ok(())
            }
            Err(cause) => {
                self.parked.push(Parked::Rx(rx));
                Err(self.queue_error(rel_qid, cause).into())
            }
        }
    }

    /// Start a receive queue afresh: the way out of a [`crate::QueueFault`]. Frames on their way to it are lost to the card.
    ///
    /// # Errors
    /// [`ChangeError`]; the queue is gone then until the next down and up.
    pub fn restart_rx(&mut self, rel_qid: u16) -> Result<(), ChangeError> {
        let QueuePair { tx, rx } = self.remove_pair(rel_qid)?;
        let contexts = bringup::contexts(&*self.platform, &self.config);
        if let Err(cause) = rx.invalidate(&contexts) {
            self.parked.extend([Parked::Tx(tx), Parked::Rx(rx)]);
            return Err(cause.into());
        }
        self.platform.clock().wait(self.config.timeouts.settle_ns);
        let (counters, source) = rx.release();
        self.rx_past += counters;
        match self.start_rx(rel_qid, source) {
            Ok(rx) => {
                self.insert_pair(QueuePair { tx, rx });
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
            Some(at) => Ok(self.queues.remove(at)),
            None => Err(ChangeError::NoSuchQueue { rel_qid }),
        }
    }

    fn insert_pair(&mut self, pair: QueuePair<P, S>) {
        let at = self.queues.partition_point(|other| other.rx.rel_qid() < pair.rx.rel_qid());
        self.queues.insert(at, pair);
    }

    /// Change the MTU, at once and for all queues. Accepted means in force: frames up to it are sent, and the card passes
    /// them.
    ///
    /// # Errors
    /// [`ChangeError::Config`] names the limits.
    pub fn set_mtu(&mut self, mtu: u16) -> Result<(), ChangeError> {
        config::check_mtu(mtu, self.config.max_frame_len_bytes)?;
        self.config.mtu = mtu;
        self.limits.set_mtu(mtu);
        Ok(())
    }

    /// Change the number of queues while the device is down. A default RSS table is rebuilt; one that the user set is kept
    /// if it fits.
    ///
    /// # Errors
    /// [`ChangeError::Rss`] names the entry of the user's table that doesn't fit; nothing was changed.
    pub fn set_queue_count(&mut self, queues: u16) -> Result<(), ChangeError> {
        if self.up {
            return Err(ChangeError::Up);
        }
        config::check_queues(queues, self.config.base())?;
        let table = match &self.config.rss_table {
            Some(table) => {
                table.check(queues)?;
                *table
            }
            None => rss::Table::equal(queues)?,
        };
        self.config.queues = queues;
        let mmio = self.platform.mmio();
        let contexts = bringup::contexts(&*self.platform, &self.config);
        contexts.write_fmap(self.config.func, self.config.base(), queues)?;
        bringup::write_qconf(mmio, &self.config, queues)?;
        rss::write_table(mmio, self.config.func, &table)?;
        Ok(())
    }

    /// How the card hashes.
    pub fn hash_function(&self) -> rss::HashFunction {
        rss::CARD_HASH
    }

    /// Choose the hash function.
    ///
    /// # Errors
    /// [`rss::RssError::HashFunction`] for any but the card's own.
    pub fn set_hash_function(&mut self, asked: rss::HashFunction) -> Result<(), ChangeError> {
        if asked == rss::CARD_HASH { Ok(()) } else { Err(rss::RssError::HashFunction { asked }.into()) }
    }

    /// The RSS table in force, read from the card.
    ///
    /// # Errors
    /// [`MmioError`].
    pub fn rss_table(&self) -> Result<rss::Table, MmioError> {
        rss::read_table(self.platform.mmio(), self.config.func)
    }

    /// Set the RSS table. It is checked whole before its first entry is written.
    ///
    /// # Errors
    /// [`ChangeError::Rss`] names the entry that can't be; nothing was written.
    pub fn set_rss_table(&mut self, table: &rss::Table) -> Result<(), ChangeError> {
        table.check(self.config.queues)?;
        rss::write_table(self.platform.mmio(), self.config.func, table)?;
        self.config.rss_table = Some(*table);
        Ok(())
    }

    /// Back to the default table, entry i being queue i mod n, which follows the number of queues.
    ///
    /// # Errors
    /// [`ChangeError::Mmio`].
    pub fn reset_rss_table(&mut self) -> Result<(), ChangeError> {
        let table = rss::Table::equal(self.config.queues)?;
        rss::write_table(self.platform.mmio(), self.config.func, &table)?;
        self.config.rss_table = None;
        Ok(())
    }

    /// The RSS key in force, read from the card.
    ///
    /// # Errors
    /// [`MmioError`].
    pub fn rss_key(&self) -> Result<rss::Key, MmioError> {
        rss::read_key(self.platform.mmio(), self.config.func)
    }

    /// Set the RSS key.
    ///
    /// # Errors
    /// [`ChangeError::Mmio`].
    pub fn set_rss_key(&mut self, key: rss::Key) -> Result<(), ChangeError> {
        rss::write_key(self.platform.mmio(), self.config.func, key)?;
        self.config.rss_key = Some(key);
        Ok(())
    }

    /// Is the port's receiver aligned?
    ///
    /// # Errors
    /// [`MmioError`].
    pub fn link_up(&self, port: PortId) -> Result<bool, MmioError> {
        cmac::link_up(self.platform.mmio(), port)
    }

    /// Read, clear and re-arm the card's errors: what to do when [`Driver::error_vector`] fires. Function 0 only; others
    /// have nothing to serve and get `None`.
    ///
    /// # Errors
    /// [`MmioError`].
    pub fn service_errors(&self) -> Result<Option<CardErrors>, MmioError> {
        let Some(vector) = self.vectors.error else { return Ok(None) };
        card_errors::service(self.platform.mmio(), self.config.ip_version, self.config.func, vector).map(Some)
    }

    /// What all transmit queues have counted since bring-up, those lent out left out.
    pub fn tx_totals(&self) -> TxCounters {
        self.queues.iter().fold(self.tx_past, |sum, pair| sum + pair.tx.counters())
    }

    /// What all receive queues have counted since bring-up, those lent out left out.
    pub fn rx_totals(&self) -> RxCounters {
        self.queues.iter().fold(self.rx_past, |sum, pair| sum + pair.rx.counters())
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
