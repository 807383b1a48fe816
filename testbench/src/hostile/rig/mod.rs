//! One driver on one hostile card, and the steps that cases are made of. Each step holds the driver against the oracle.

mod receive;
mod restart;
mod send;
mod witness;

use std::collections::VecDeque;
use std::sync::Arc;

use driver_core::{DeviceConfig, Driver, QueueFault, QueueState, TableEntry, TakenPage, Timeouts, TxError, UpError};
use regs::FuncId;
use traces::synth::Rng;

use super::card::{Card, Queue, Rx};
use super::oracle::{RxOracle, TxOracle};
use super::platform::{HostilePlatform, Machine};
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
    /// Frames that were posted and not fetched yet, oldest first. Nobody knows the bytes of those that a hook sent
    /// back.
    sent: VecDeque<Option<Vec<u8>>>,
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
    /// A good frame is on its way, which no hook shall change.
    proving: bool,
    /// A hook sent frames back: the transmit queue is not as it was.
    sent_back: bool,
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
            proving: false,
            sent_back: false,
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
        check_memory(&self.memory, &self.machine)
    }

    /// Remove the driver and see that nothing is left.
    ///
    /// # Errors
    /// What is.
    pub(super) fn end(self) -> Result<Tally, String> {
        let Rig { driver, memory, machine, tally, .. } = self;
        driver.remove().map_err(|error| format!("an honest card, at removal: {error}"))?;
        check_memory(&memory, &machine)?;
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

    /// A step that may have failed the queue is over.
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
}

/// What host memory has to say. The card that is played here reaches outside its buffers only by the driver's fault.
fn check_memory(memory: &SharedMemory, machine: &Machine) -> Result<(), String> {
    let card = machine.card();
    if let Some(fault) = card.late_faults().first() {
        return Err(format!("memory was freed while DMA was on its way: {fault}"));
    }
    let violations = memory.violations();
    let first = violations.first();
    first.map_or(Ok(()), |first| Err(format!("{} broken rules, the first: {first}", violations.len())))
}
