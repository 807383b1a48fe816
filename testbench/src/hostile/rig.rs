//! One driver on one hostile card, and the steps that cases are made of. Each step holds the driver against the oracle.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use driver_core::{
    ChangeError, DeviceConfig, DmaMemory as _, Driver, NoHook, Page as _, Platform as _, QueueFault, QueueState,
    RxFrame, TableEntry, TakenPage, Timeouts, TxError, UpError, Verdict, XdpBuff,
};
use regs::FuncId;
use traces::synth::Rng;

use super::card::{Card, Event, Queue, Registers, Rx, Tx};
use super::oracle::{Kinds, Look, RxOracle, TxOracle};
use super::platform::{HostileDma, HostilePlatform, Machine};
use super::supply::{Kind, Supply};
use super::tally::Tally;
use crate::host_memory::{CpuPage, MemoryCounts, SharedMemory};

/// Longest frame that the card's MAC lets through.
pub(super) const FRAME_MAX: u16 = 1514;
/// Shortest.
pub(super) const FRAME_MIN: u16 = 60;

/// Short, so that a card that never answers costs little.
pub(super) const TIMEOUTS: Timeouts =
    Timeouts { context_ns: 1_000_000, reset_ns: 1_000_000, quiesce_ns: 20_000, settle_ns: 10_000 };

type HostileDriver = Driver<HostilePlatform, Supply>;

/// What is known of the two queues of one index.
struct Known {
    rx: RxOracle,
    tx: TxOracle,
    /// Frames that the reader should see, by entry of the completion ring.
    expected: Vec<Option<Vec<u8>>>,
    /// Frames that were posted and not fetched yet, oldest first.
    sent: VecDeque<Vec<u8>>,
}

impl Known {
    fn of_no_queue() -> Known {
        Known { rx: RxOracle::new(4, 0, 1, 0), tx: TxOracle::new(4), expected: Vec::new(), sent: VecDeque::new() }
    }

    fn receive_started(&mut self, queue: &Queue) {
        let Rx { entries, qid, buffer, pidx, .. } = queue.rx;
        self.rx = RxOracle::new(entries, qid, buffer, pidx);
        self.expected.clear();
        self.expected.resize(entries.into(), None);
    }

    fn send_started(&mut self, queue: &Queue) {
        self.tx = TxOracle::new(queue.tx.entries);
        self.sent.clear();
    }
}

/// The machine, and what is known of the queue under attack.
pub(super) struct Rig {
    pub(super) machine: Arc<Machine>,
    memory: Arc<SharedMemory>,
    driver: HostileDriver,
    /// The queue under attack, counted from the function's first.
    pub(super) rel_qid: u16,
    pub(super) rng: Rng,
    pub(super) tally: Tally,
    known: Vec<Known>,
    /// Card and driver agree about which buffer is next, so that a frame's bytes can be compared.
    pub(super) in_step: bool,
    /// The card may act while the driver looks.
    pub(super) ambushed: bool,
    /// What stopped the queue, if anything did.
    pub(super) fault: Option<QueueFault>,
    kept: Vec<TakenPage<CpuPage>>,
    /// Length of the good frame behind each start: in one buffer or in several.
    proof_len_bytes: u16,
    supply: Kind,
    words: Vec<u64>,
    words_after: Vec<u64>,
}

/// What a driver is set up with, drawn at random.
fn config(rng: &mut Rng) -> DeviceConfig {
    let master = !rng.one_in(4);
    let mut config = DeviceConfig::new(FuncId(u8::from(!master)));
    config.queues = if rng.one_in(4) { 2 } else { 1 };
    config.timeouts = TIMEOUTS;
    config.max_frame_len_bytes = FRAME_MAX;
    let (buffer, ring) = if !master {
        // What function 0 left: one buffer or several for a frame.
        (*rng.pick(&[2048, 512, 256]), 64)
    } else {
        match rng.below(8) {
            // 24 and 6 buffers for the longest frame, and rings that hold more than 31.
            0 => (64, rng.between(34, 48)),
            1..=3 => (256, rng.between(8, 20)),
            // Rings that hold more buffers than one frame may use.
            4 => (2048, rng.between(34, 40)),
            _ => (*rng.pick(&[2048, 1514, 3520]), rng.between(4, 12)),
        }
    };
    config.rx_buffer = TableEntry::Value(buffer);
    config.rx_ring = TableEntry::Value(ring as u16);
    config.tx_ring = TableEntry::Value(if master { rng.between(4, 40) as u16 } else { 64 });
    config
}

impl Rig {
    /// Bring a driver up on an honest card, and see that every queue passes a frame.
    ///
    /// # Errors
    /// What does not work.
    pub(super) fn new(seed: u64) -> Result<Rig, String> {
        let mut rng = Rng::new(seed);
        let config = config(&mut rng);
        let queues = config.queues;
        let memory = SharedMemory::new(true);
        let card = Card::new(config.func, config.base(), queues.into(), Arc::clone(&memory), rng.next_u64());
        let machine = Machine::new(config.func, card);
        let platform = HostilePlatform::new(Arc::clone(&machine), memory.function(config.func));
        let driver =
            Driver::bring_up(Arc::new(platform), config).map_err(|error| format!("an honest card: {error}"))?;
        let proof_len_bytes = rng.between(FRAME_MIN.into(), FRAME_MAX.into()) as u16;
        let supply = Kind::draw(&mut rng, driver.geometry().hw_len_bytes());
        let mut rig = Rig {
            machine,
            memory,
            driver,
            rel_qid: 0,
            rng,
            tally: Tally::default(),
            known: (0..queues).map(|_| Known::of_no_queue()).collect(),
            in_step: true,
            ambushed: false,
            fault: None,
            kept: Vec::new(),
            proof_len_bytes,
            supply,
            words: Vec::new(),
            words_after: Vec::new(),
        };
        rig.up().map_err(|error| format!("an honest card: {error}"))?;
        rig.prove_all()?;
        Ok(rig)
    }

    /// Start all queues, each with pages of the driver's kind.
    fn up(&mut self) -> Result<(), UpError> {
        let (kind, buffer, entries) =
            (self.supply, self.driver.geometry().hw_len_bytes(), self.driver.rx_ring_entries());
        self.driver.up_with(|_| Supply::new(kind, buffer, entries))
    }

    /// How many queues there are.
    pub(super) fn queues(&self) -> u16 {
        self.driver.config().queues
    }

    /// A case begins, on a queue that was just started and has passed a good frame each way.
    pub(super) fn begin(&mut self, rel_qid: u16, seed: u64) {
        self.rel_qid = rel_qid;
        self.rng = Rng::new(seed);
        self.machine.card().begin(self.rng.next_u64());
        (self.in_step, self.ambushed, self.fault) = (true, false, None);
    }

    /// The case is over: what host memory has to say.
    ///
    /// # Errors
    /// A rule that the driver broke.
    pub(super) fn check_memory(&self) -> Result<(), String> {
        let violations = self.memory.violations();
        if let Some(violation) = violations.first() {
            return Err(format!("{} broken rules, the first: {violation}", violations.len()));
        }
        let card = self.machine.card();
        let late = card.late_faults().first();
        late.map_or(Ok(()), |fault| Err(format!("memory was freed while DMA was on its way: {fault}")))
    }

    /// Remove the driver and see that nothing is left.
    ///
    /// # Errors
    /// What is.
    pub(super) fn end(self) -> Result<Tally, String> {
        let Rig { driver, memory, tally, .. } = self;
        driver.remove().map_err(|error| format!("an honest card, at removal: {error}"))?;
        let left = memory.counts();
        if left != MemoryCounts::default() {
            let first = memory.leaks().into_iter().next().map_or(String::new(), |leak| format!("; {leak}"));
            return Err(format!("left behind: {left:?}{first}"));
        }
        Ok(tally)
    }

    /// The card's side of the receive queue under attack.
    pub(super) fn card_rx(&self) -> Rx {
        self.machine.card().queues[usize::from(self.rel_qid)].rx
    }

    fn at(&self) -> usize {
        usize::from(self.rel_qid)
    }

    fn known(&mut self) -> &mut Known {
        &mut self.known[usize::from(self.rel_qid)]
    }

    // Steps of a receive queue.

    /// Bytes of a frame that the card's posted buffers hold, mostly short.
    pub(super) fn frame_len(&mut self) -> Option<u16> {
        let rx = self.card_rx();
        let room = u32::from(rx.posted()) * u32::from(rx.buffer);
        let most = room.min(FRAME_MAX.into()) as u16;
        let long = self.rng.one_in(4);
        let most = if long { most } else { most.min(300) };
        (most >= FRAME_MIN).then(|| self.rng.between(FRAME_MIN.into(), most.into()) as u16)
    }

    /// The card writes a frame's bytes into buffers. Returns the frame, for [`Rig::expect`].
    ///
    /// # Errors
    /// The buffers are not what the driver said.
    pub(super) fn payload(&mut self, len_bytes: u16) -> Result<Vec<u8>, String> {
        let frame = self.rng.bytes(len_bytes.into());
        self.machine.card().payload(self.at(), &frame)?;
        Ok(frame)
    }

    /// The frame at this entry must be handed up with these bytes.
    pub(super) fn expect(&mut self, index: u16, frame: Vec<u8>) {
        self.known().expected[usize::from(index)] = Some(frame);
    }

    /// The card writes the entry that is due for a frame of this length.
    pub(super) fn due_entry(&mut self, len_bytes: u16) {
        let rx = self.card_rx();
        self.entry(rx.next_entry, rx.entry(len_bytes).0);
        self.advance();
    }

    /// The card goes on to the next entry.
    pub(super) fn advance(&mut self) {
        let at = self.at();
        self.machine.card().queues[at].rx.advance();
    }

    /// The card writes any word as any entry.
    pub(super) fn entry(&mut self, index: u16, word: u64) {
        self.machine.card().write_entry(self.at(), index, word);
    }

    /// The card writes the status word that is due.
    pub(super) fn due_status(&mut self) {
        let word = self.card_rx().status().0;
        self.status(word);
    }

    /// The card writes any status word.
    pub(super) fn status(&mut self, word: u64) {
        self.machine.card().write_rx_status(self.at(), word);
    }

    /// A frame as a correct card brings it, if there is room for one.
    ///
    /// # Errors
    /// The buffers are not what the driver said.
    pub(super) fn good_frame(&mut self) -> Result<bool, String> {
        let Some(len_bytes) = self.frame_len().filter(|_| self.in_step) else { return Ok(false) };
        self.frame_of(len_bytes)?;
        // Moderation leaves some out.
        if !self.rng.one_in(4) {
            self.due_status();
        }
        Ok(true)
    }

    /// A frame and its entry.
    fn frame_of(&mut self, len_bytes: u16) -> Result<(), String> {
        let index = self.card_rx().next_entry;
        let frame = self.payload(len_bytes)?;
        self.expect(index, frame);
        self.due_entry(len_bytes);
        Ok(())
    }

    /// The driver looks, and the oracle judges. A queue that has failed was looked at already.
    ///
    /// # Errors
    /// What the driver did that it must not, or left undone.
    pub(super) fn poll(&mut self, budget: usize) -> Result<usize, String> {
        if self.fault.is_some() {
            return Ok(0);
        }
        let at = self.at();
        let begin = {
            let card = self.machine.card();
            card.completion_words(at, &mut self.words);
            card.log.len()
        };
        let result = self.look(budget)?;
        let card = self.machine.card();
        let after = if self.ambushed {
            card.completion_words(at, &mut self.words_after);
            Some(&self.words_after[..])
        } else {
            None
        };
        let look = Look { before: &self.words, after, log: &card.log[begin..], budget, result };
        self.known[at].rx.judge(&look)?;
        drop(card);
        self.ended(result)
    }

    fn ended(&mut self, result: Result<usize, QueueFault>) -> Result<usize, String> {
        match result {
            Ok(count) => Ok(count),
            Err(fault) => {
                self.tally.fault(&fault);
                self.fault = Some(fault);
                self.check_failed(fault)?;
                Ok(0)
            }
        }
    }

    /// Poll the driver's queue, alone or with its pair and through a hook: what is handed up must have the bytes it should.
    fn look(&mut self, budget: usize) -> Result<Result<usize, QueueFault>, String> {
        let at = self.at();
        let Known { rx: oracle, expected, .. } = &mut self.known[at];
        let way = self.rng.below(4);
        let witness = RefCell::new(Witness {
            entry: oracle.cidx.into(),
            expected,
            machine: &self.machine,
            kept: &mut self.kept,
            rng: &mut self.rng,
            in_step: self.in_step,
            hooked: way == 3,
            wrong: None,
        });
        let pair = self.driver.pair(self.rel_qid).ok_or("the queue is gone")?;
        let sink = |frame: &mut RxFrame<'_, HostileDma>| witness.borrow_mut().sink(frame);
        let result = match way {
            0 | 1 => pair.rx.poll(budget, sink),
            2 => pair.poll(budget, &mut NoHook, sink).received,
            _ => {
                let mut hook = |buff: &mut XdpBuff<'_, HostileDma>| witness.borrow_mut().hook(buff);
                pair.poll(budget, &mut hook, sink).received
            }
        };
        witness.into_inner().wrong.map_or(Ok(result), Err)
    }

    /// A queue that has failed does nothing more, and says so each time.
    fn check_failed(&mut self, fault: QueueFault) -> Result<(), String> {
        let machine = Arc::clone(&self.machine);
        let begin = machine.card().log.len();
        let pair = self.driver.queues().iter_mut().find(|pair| pair.rx.rel_qid() == self.rel_qid);
        let pair = pair.ok_or("the queue is gone")?;
        if pair.rx.state() == QueueState::Faulted(fault) {
            if pair.rx.has_pending() || pair.rx.poll(8, |_| {}) != Err(fault) {
                return Err(format!("the queue failed with `{fault}`, and then looks again"));
            }
        } else if pair.tx.state() == QueueState::Faulted(fault) {
            let tx = &mut pair.tx;
            if tx.reap() != Err(fault) || tx.post(&[0; 60]) != Err(TxError::Fault(fault)) {
                return Err(format!("the queue failed with `{fault}`, and then works again"));
            }
            self.tally.tx(&TxError::Fault(fault));
        } else {
            return Err(format!("`{fault}` was returned, but no queue is in that state"));
        }
        if machine.card().log.len() != begin {
            return Err(format!("the queue failed with `{fault}`, and then rings a doorbell or hands up a frame"));
        }
        Ok(())
    }

    /// Look until nothing more comes or the queue fails.
    ///
    /// # Errors
    /// As [`Rig::poll`].
    pub(super) fn poll_out(&mut self) -> Result<(), String> {
        let budget = self.known().expected.len() + 1;
        for _ in 0..8 {
            if self.poll(budget)? == 0 {
                break;
            }
        }
        // Once more without the card's hand in it: an illegal word that is still there must be seen now.
        self.calm();
        self.poll(budget).map(|_| ())
    }

    /// The card acts no more while the driver looks.
    pub(super) fn calm(&mut self) {
        self.machine.card().leave_ambush();
        self.ambushed = false;
    }

    // Steps of a transmit queue.

    /// The card's side of the transmit queue under attack.
    pub(super) fn card_tx(&self) -> Tx {
        self.machine.card().queues[self.at()].tx
    }

    /// Frames that the driver may still take back.
    pub(super) fn outstanding(&self) -> u16 {
        self.known[self.at()].tx.outstanding()
    }

    /// Post a frame, copied or as a page that is lent.
    ///
    /// # Errors
    /// What the driver did that it must not.
    pub(super) fn post(&mut self) -> Result<bool, String> {
        if self.fault.is_some() {
            return Ok(false);
        }
        let len = self.rng.between(1, 300) as usize;
        let mut frame = self.rng.bytes(len);
        let at = self.at();
        let (was_full, lend) = (self.known[at].tx.is_full(), self.rng.one_in(4));
        let (begin, before) = {
            let card = self.machine.card();
            (card.log.len(), card.tx_status_word(at))
        };
        let platform = Arc::clone(self.driver.platform());
        let dma = platform.dma();
        let tx = self.driver.tx(self.rel_qid).ok_or("the queue is gone")?;
        let completed = tx.counters().completed;
        let posted = if lend {
            let mut page = dma.alloc_page().map_err(|error| error.to_string())?;
            page.bytes_mut()[..len].copy_from_slice(&frame);
            tx.post_page(page, 0, len).map_err(|refused| {
                dma.free_page(refused.page);
                refused.cause
            })
        } else {
            frame.resize(len.max(FRAME_MIN.into()), 0);
            tx.post(&frame[..len])
        };
        let taken = (tx.counters().completed - completed) as u16;
        let fault = match (posted, tx.state()) {
            (Err(TxError::Fault(fault)), _) | (_, QueueState::Faulted(fault)) => Some(fault),
            _ => None,
        };
        if let Err(cause) = &posted {
            self.tally.tx(cause);
        }
        if was_full {
            // A full ring is looked at before the frame goes in.
            self.judge_full(begin, before, taken, fault)?;
        }
        if posted.is_ok() {
            self.known[at].tx.post();
            self.known[at].sent.push_back(frame);
        }
        self.check_doorbells(begin, if was_full { 0 } else { taken }, fault)?;
        match posted {
            Ok(()) => Ok(fault.is_none()),
            Err(TxError::Full { .. }) if !self.known[at].tx.is_full() => {
                Err("the ring is said to be full, and is not".into())
            }
            Err(TxError::Full { .. } | TxError::Fault(_) | TxError::NoPage(_)) => Ok(false),
            Err(other) => Err(format!("a frame of {len} bytes is refused: {other}")),
        }
    }

    /// A post into a full ring looked at the status word.
    fn judge_full(&mut self, begin: usize, before: u64, taken: u16, fault: Option<QueueFault>) -> Result<(), String> {
        let at = self.at();
        let card = self.machine.card();
        if fault.is_some_and(|fault| Kinds::of(&fault) == Kinds::DOORBELL) {
            return Ok(());
        }
        let after = if self.ambushed { card.tx_status_word(at) } else { before };
        debug_assert!(begin <= card.log.len());
        drop(card);
        self.known[at].tx.judge(&[before, after], false, taken, fault)?;
        fault.map_or(Ok(()), |fault| self.ended(Err(fault)).map(|_| ()))
    }

    /// Doorbells of a step that had no need to look at the status word, or has been judged for it.
    fn check_doorbells(&mut self, begin: usize, taken: u16, fault: Option<QueueFault>) -> Result<(), String> {
        let at = self.at();
        let refused = self.known[at].tx.doorbells(&self.machine.card().log[begin..])?;
        match fault {
            Some(_) if self.fault.is_some() => Ok(()),
            Some(fault) if refused && Kinds::of(&fault) == Kinds::DOORBELL => self.ended(Err(fault)).map(|_| ()),
            Some(fault) => Err(format!("a post fails with `{fault}`, and no doorbell was refused")),
            None if refused => Err("a doorbell was refused, and the queue did not fail".into()),
            None if taken > 0 => Err(format!("{taken} frames are taken back by a post that has room")),
            None => Ok(()),
        }
    }

    /// Ring the doorbell for what was posted.
    ///
    /// # Errors
    /// What the driver did that it must not.
    pub(super) fn flush(&mut self) -> Result<(), String> {
        if self.fault.is_some() {
            return Ok(());
        }
        let begin = self.machine.card().log.len();
        let tx = self.driver.tx(self.rel_qid).ok_or("the queue is gone")?;
        let fault = tx.flush().err();
        self.check_doorbells(begin, 0, fault)
    }

    /// The driver looks for frames that are sent, and the oracle judges.
    ///
    /// # Errors
    /// What the driver did that it must not, or left undone.
    pub(super) fn reap(&mut self) -> Result<u16, String> {
        if self.fault.is_some() {
            return Ok(0);
        }
        let at = self.at();
        let (begin, before) = {
            let card = self.machine.card();
            (card.log.len(), card.tx_status_word(at))
        };
        let lent = self.rng.one_in(2);
        let platform = Arc::clone(self.driver.platform());
        let tx = self.driver.tx(self.rel_qid).ok_or("the queue is gone")?;
        let result = if lent { tx.reap_with(|page| platform.dma().free_page(page)) } else { tx.reap() };
        let card = self.machine.card();
        let oracle = &mut self.known[at].tx;
        let refused = oracle.doorbells(&card.log[begin..])?;
        let after = if self.ambushed { card.tx_status_word(at) } else { before };
        oracle.judge(&[before, after], refused, result.unwrap_or(0), result.err())?;
        drop(card);
        self.ended(result.map(usize::from))?;
        Ok(result.unwrap_or(0))
    }

    /// The card fetches up to `count` frames, as a correct one does, and they must be those that were posted.
    ///
    /// # Errors
    /// A frame that can't be fetched, or another one.
    pub(super) fn fetch(&mut self, count: u16) -> Result<(), String> {
        for _ in 0..count {
            let fetched = self.machine.card().fetch(self.at())?;
            let Some(fetched) = fetched else { break };
            let posted = self.known().sent.pop_front().ok_or("the card fetches a frame that nobody posted")?;
            if fetched != posted {
                return Err(format!("posted {} bytes, the card fetches {} others", posted.len(), fetched.len()));
            }
        }
        Ok(())
    }

    /// The card writes the status word that is due.
    pub(super) fn due_tx_status(&mut self) {
        let word = self.card_tx().status().0;
        self.tx_status(word);
    }

    /// The card writes any status word.
    pub(super) fn tx_status(&mut self, word: u64) {
        self.machine.card().write_tx_status(self.at(), word);
    }

    // The way back.

    /// Start the queue afresh; on a card whose registers misbehave too, then set it right and take the device down and up.
    ///
    /// # Errors
    /// A start that fails on an honest card.
    pub(super) fn restart(&mut self, receive: bool, registers: Registers) -> Result<(), String> {
        self.machine.refuse_syncs.store(false, Ordering::Relaxed);
        let at = self.at();
        {
            let mut card = self.machine.card();
            card.set_registers(registers);
            card.queues[at].rx.derailed = !self.in_step;
        }
        if registers == Registers::Honest {
            self.give_back_some();
        } else {
            // The queue may be lost, and its source with it.
            self.give_back();
        }
        let restart = |rig: &mut Rig| match receive {
            true => rig.driver.restart_rx(rig.rel_qid),
            false => rig.driver.restart_tx(rig.rel_qid),
        };
        let mut result = restart(self);
        let mut recovered = false;
        self.tally.restarts += 1;
        if registers != Registers::Honest {
            if let Err(error) = &result {
                self.tally.change(error);
                // Once more: the queue is gone, or it can still not be stopped.
                if let Err(error) = restart(self) {
                    self.tally.change(&error);
                }
                result = self.recover();
                recovered = true;
            }
            self.machine.card().set_registers(Registers::Honest);
        }
        result.map_err(|error| format!("the queue can't be started afresh: {error}"))?;
        self.give_back();
        if recovered { self.prove_all() } else { self.prove(receive, !receive) }
    }

    /// Down and up: first while the card still misbehaves, then when it is itself again. The second must work.
    fn recover(&mut self) -> Result<(), ChangeError> {
        self.tally.recoveries += 1;
        if let Err(error) = self.driver.down() {
            self.tally.stop(&error);
        }
        if let Err(error) = self.up() {
            self.tally.up(&error);
        }
        self.machine.card().set_registers(Registers::Honest);
        self.driver.down().map_err(ChangeError::Stop)?;
        self.up().map_err(ChangeError::Start)
    }

    /// Pages that sinks kept go back to the queue they came from, some before it ends and the others after.
    fn give_back_some(&mut self) {
        let keep = self.kept.len() / 2;
        let pages = self.kept.split_off(keep);
        self.free(pages);
    }

    fn give_back(&mut self) {
        let pages = std::mem::take(&mut self.kept);
        self.free(pages);
    }

    fn free(&mut self, pages: Vec<TakenPage<CpuPage>>) {
        // Cases keep pages only while their queue is there.
        let Some(rx) = self.driver.rx(self.rel_qid) else { return };
        pages.into_iter().for_each(|taken| rx.give_back(taken.page));
    }

    fn prove_all(&mut self) -> Result<(), String> {
        let attacked = self.rel_qid;
        for rel_qid in 0..self.queues() {
            self.rel_qid = rel_qid;
            self.prove(true, true)?;
        }
        self.rel_qid = attacked;
        Ok(())
    }

    /// A good frame passes each way that is asked for, on a queue that was just started.
    fn prove(&mut self, receive: bool, send: bool) -> Result<(), String> {
        let queue = self.machine.card().queues[self.at()];
        (self.in_step, self.ambushed, self.fault) = (true, false, None);
        let explain = |why| format!("a good frame after the start: {why}");
        if receive {
            self.known().receive_started(&queue);
            self.good_receive().map_err(explain)?;
        }
        if send {
            self.known().send_started(&queue);
            self.good_send().map_err(explain)?;
        }
        Ok(())
    }

    fn good_receive(&mut self) -> Result<(), String> {
        // Of one length for each driver, so that every case finds the queue in the same state.
        self.frame_of(self.proof_len_bytes)?;
        self.due_status();
        let count = self.poll(4)?;
        if let Some(fault) = self.fault {
            return Err(format!("the queue fails: {fault}"));
        }
        if count != 1 {
            return Err(format!("{count} frames are handed up"));
        }
        self.give_back();
        self.tally.good_frames += 1;
        Ok(())
    }

    fn good_send(&mut self) -> Result<(), String> {
        if !self.post()? {
            return Err("it is refused".into());
        }
        self.flush()?;
        self.fetch(1)?;
        self.due_tx_status();
        let count = self.reap()?;
        if count != 1 || self.fault.is_some() {
            return Err(format!("{count} frames are taken back"));
        }
        self.tally.good_frames += 1;
        Ok(())
    }
}

/// Who sees the frames of a look.
struct Witness<'a> {
    /// The entry that is due, of those that are `expected`.
    entry: usize,
    expected: &'a mut [Option<Vec<u8>>],
    machine: &'a Machine,
    kept: &'a mut Vec<TakenPage<CpuPage>>,
    rng: &'a mut Rng,
    in_step: bool,
    /// A hook sees them first.
    hooked: bool,
    wrong: Option<String>,
}

impl Witness<'_> {
    /// A frame is there, with these bytes.
    fn seen(&mut self, len_bytes: usize, bytes: &[u8]) {
        self.machine.card().log.push(Event::Delivered { len_bytes });
        let expected = self.expected[self.entry].take().filter(|_| self.in_step);
        self.entry = (self.entry + 1) % (self.expected.len() - 1);
        self.complain(check_bytes(len_bytes, bytes, expected.as_deref()));
    }

    /// The first complaint is the one to tell.
    fn complain(&mut self, why: Option<String>) {
        self.wrong = self.wrong.take().or(why);
    }

    fn sink(&mut self, frame: &mut RxFrame<'_, HostileDma>) {
        let mut bytes = Vec::with_capacity(frame.len_bytes());
        frame.append_to(&mut bytes);
        if self.hooked {
            self.complain(check_bytes(frame.len_bytes(), &bytes, None));
        } else {
            self.seen(frame.len_bytes(), &bytes);
        }
        if !frame.segment(frame.segment_count()).is_empty() || !frame.segment(usize::MAX).is_empty() {
            self.complain(Some("a frame has bytes behind its last segment".into()));
        }
        if self.rng.one_in(8) && !self.machine.refuse_syncs.load(Ordering::Relaxed) {
            let segment = self.rng.below(frame.segment_count() as u64) as usize;
            self.kept.extend(frame.take(segment));
        }
    }

    /// A hook that moves a frame's borders as far as it is let, and drops some.
    fn hook(&mut self, buff: &mut XdpBuff<'_, HostileDma>) -> Verdict {
        let mut bytes = buff.data().to_vec();
        (0..buff.fragment_count()).for_each(|i| bytes.extend_from_slice(buff.fragment(i)));
        self.seen(buff.len_bytes(), &bytes);
        let delta = |rng: &mut Rng| rng.below(600) as i32 - 300;
        if self.rng.one_in(2) {
            // A border that can't be there is refused, which is the hook's to know.
            let _ = buff.adjust_head(delta(self.rng));
            let _ = buff.adjust_meta(delta(self.rng));
            let _ = buff.adjust_tail(delta(self.rng));
            buff.meta_mut().fill(0x5A);
            buff.data_mut().fill(0xC3);
        }
        *self.rng.pick(&[Verdict::Pass, Verdict::Pass, Verdict::Drop, Verdict::Aborted, Verdict::Tx])
    }
}

fn check_bytes(len_bytes: usize, bytes: &[u8], expected: Option<&[u8]>) -> Option<String> {
    if bytes.len() != len_bytes {
        return Some(format!("a frame says {len_bytes} bytes and has {}", bytes.len()));
    }
    let expected = expected?;
    let at = bytes.iter().zip(expected).position(|(got, want)| got != want);
    match at {
        Some(at) => Some(format!("a good frame of {} bytes differs at byte {at}", expected.len())),
        None if bytes.len() != expected.len() => {
            Some(format!("a good frame of {} bytes is handed up with {}", expected.len(), bytes.len()))
        }
        None => None,
    }
}
