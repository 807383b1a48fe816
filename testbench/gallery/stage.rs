//! One machine with one card, and the kernel that runs drivers on it: interrupts, budgets, timers, queues that are stopped and
//! woken. It notes everything for the catchers, and each rule between kernel and driver that it sees broken.
//!
//! Deterministic and single-threaded, as [`crate::run`] is; here the kernel may also do what makes drivers fail: poll with a
//! budget of 0, finish no poll, poll two queues at once.

use std::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use driver_core::{Mmio as _, Platform as _, Side};
use models::observation::Point;
use models::qdma::QdmaConfig;
use models::time::Time;
use regs::{Bar, FuncId, PortId};

use super::evidence::{Books, Caught, Evidence, MacReading, Posted, Told, Trouble};
use super::excuse::{Excuse, untold_sent};
use super::heap::{Heap, Oops};
use super::nic::{Failure, MacTotals, Nic, NicConfig, Polled, Refusal, Timed, Work};
use super::seams::{Bend, Bent, Watchdog};
use super::tamper::{Faults, Handle, tamper};
use crate::bench::Bench;
use crate::card::{Choice, Shape, WireFrame};
use crate::counters;
use crate::execute::ExecuteError;
use crate::frames;
use crate::outcome::{Delivered, Sent};
use crate::run::InFrame;

/// From an interrupt to its poll, ps.
const LATENCY_PS: u64 = 1_000_000;
/// How long a poll runs on its CPU, ps: one that is due meanwhile overlaps with it, where polls can.
const POLL_PS: u64 = 500_000;
/// From a poll that used up its budget to the next, ps.
const AGAIN_PS: u64 = 500_000;
/// Between polls that the host plans by itself, ps.
const DEFERRED_PS: u64 = 10_000_000;
/// How long it must have been quiet for nothing more to be on its way, ps: moderation timers, relaxed writes, and interrupts
/// on the way to their polls.
const QUIET_PS: u64 = 20_000_000;
/// Without any progress for so long, nothing more will come, ps: hundreds of moderation timers and interrupt latencies.
const STILL_PS: u64 = 400_000_000;
/// Cycles that one register access may take on the card.
const HANG_CYCLES: u64 = 1_000_000;

/// What a scenario is set up with.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// Functions, ports, queues, rings, lengths.
    pub shape: Shape,
    /// The QDMA's knobs; its number of functions is the shape's.
    pub qdma: QdmaConfig,
    /// The card's faults.
    pub faults: Faults,
    /// What lies between driver and DMA space.
    pub bend: Bend,
    /// NAPI's budget.
    pub budget: usize,
    /// The host plans its polls itself and wants no interrupts.
    pub deferred: bool,
    /// Queues whose polls are due together are polled together, each on its CPU.
    pub together: bool,
    /// What a driver has to tell.
    pub trouble: Trouble,
}

impl Default for Conditions {
    fn default() -> Conditions {
        Conditions {
            shape: Shape { queues: 2, ring: 64, ..Shape::default() },
            qdma: QdmaConfig::default(),
            faults: Faults::default(),
            bend: Bend::Straight,
            budget: 16,
            deferred: false,
            together: false,
            trouble: Trouble::None,
        }
    }
}

/// What a driver is probed with.
pub struct Ground {
    /// The function's seams.
    pub platform: Arc<Bent>,
    /// The kernel's heap.
    pub heap: Heap,
    /// What the driver is told.
    pub config: NicConfig,
}

/// Probes a driver.
pub type Maker<'a> = dyn Fn(Ground) -> Result<Box<dyn Nic>, String> + Sync + 'a;

/// The scenario is over before its end; the evidence says why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Over;

/// A frame that waits for room in its queue.
struct Outgoing {
    func: usize,
    queue: u16,
    number: u64,
    data: Vec<u8>,
    more: bool,
}

#[derive(Clone, Copy)]
struct Due {
    at: Time,
    func: usize,
    queue: u16,
}

/// The stage.
pub struct Stage<'a> {
    conditions: Conditions,
    bench: Arc<Bench>,
    faults: Handle,
    heap: Heap,
    maker: &'a Maker<'a>,
    nics: Vec<Option<Box<dyn Nic>>>,
    watchdogs: Vec<Arc<Watchdog>>,
    /// Functions whose interface is up.
    is_up: BTreeSet<usize>,
    /// Queues whose polls the host does not end: they have had frames.
    unended: BTreeSet<(usize, u16)>,
    polls: Vec<Due>,
    timers: Vec<Option<Time>>,
    to_send: VecDeque<Outgoing>,
    sent_numbers: u64,
    evidence: Evidence,
}

impl<'a> Stage<'a> {
    /// A machine in which no driver was probed yet.
    ///
    /// # Errors
    /// [`ExecuteError`] if the card can't be had.
    pub fn new(card: &Choice, conditions: Conditions, maker: &'a Maker<'a>) -> Result<Stage<'a>, ExecuteError> {
        let shape = conditions.shape.clone();
        let qdma = QdmaConfig { num_functions: shape.functions, ..conditions.qdma.clone() };
        let (card, faults) = tamper(card.make_with(&shape, qdma)?, conditions.faults.clone());
        let name = crate::card::Card::name(&card).to_string();
        let bench = Bench::new(Box::new(card), shape.functions, true, HANG_CYCLES);
        bench.reset().map_err(|error| ExecuteError::Card(error.to_string()))?;
        bench.gate_wire(true);
        let functions = usize::from(shape.functions);
        let mut evidence = Evidence { functions: shape.functions, trouble: conditions.trouble, ..Evidence::default() };
        evidence.outcome.card = name;
        Ok(Stage {
            conditions,
            bench,
            faults,
            heap: Heap::default(),
            maker,
            nics: (0..functions).map(|_| None).collect(),
            watchdogs: (0..functions).map(|_| Arc::new(Watchdog::default())).collect(),
            is_up: BTreeSet::new(),
            unended: BTreeSet::new(),
            polls: Vec::new(),
            timers: vec![None; functions],
            to_send: VecDeque::new(),
            sent_numbers: 0,
            evidence,
        })
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.bench.now()
    }

    /// The kernel's heap, to make allocations fail.
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// The machine, to make DMA allocations fail.
    pub fn bench(&self) -> &Arc<Bench> {
        &self.bench
    }

    /// Queues of each function.
    pub fn queues(&self) -> u16 {
        self.conditions.shape.queues
    }

    /// Write a register behind every driver's back, as another function's broken driver might.
    ///
    /// # Errors
    /// [`Over`] if the card does not answer.
    pub fn poke(&mut self, func: u8, bar: Bar, offset: u32, value: u32) -> Result<(), Over> {
        self.bench.function(FuncId(func)).mmio().write32(bar, offset, value).map_err(|_| Over)
    }

    /// The card did something of which the driver has to tell.
    pub fn fire(&mut self, what: &str) {
        let time = self.now();
        self.evidence.fired.push(super::tamper::Fired { what: what.into(), time });
    }

    /// Note something that is not as the driver said.
    pub fn see(&mut self, by: &'static str, place: impl Into<String>, text: impl Into<String>) {
        let time = Some(self.now());
        self.evidence.seen.push(Caught { by, place: place.into(), text: text.into(), packet: None, time });
    }

    /// Probe a function's driver. False if it was refused.
    ///
    /// # Errors
    /// [`Over`].
    pub fn probe(&mut self, func: usize) -> Result<bool, Over> {
        let shape = &self.conditions.shape;
        let id = FuncId(func as u8);
        let ports: Vec<PortId> = (0..shape.ports).map(PortId).collect();
        let config = NicConfig {
            func: id,
            queues: shape.queues,
            ring: shape.ring,
            mtu: shape.mtu,
            max_frame_len_bytes: shape.max_pkt_len - 4,
            own_port: ports.get(func).copied(),
            ports,
            deferred_ns: self.conditions.deferred.then_some(DEFERRED_PS / 1_000),
        };
        let (platform, watchdog) = Bent::new(&self.bench, &self.bench.function(id), self.conditions.bend);
        watchdog.begin(self.now().as_ns());
        self.watchdogs[func] = watchdog;
        let ground = Ground { platform, heap: self.heap.clone(), config };
        let maker = self.maker;
        let made = catch_unwind(AssertUnwindSafe(|| maker(ground)));
        match self.survived(func, made)? {
            Ok(nic) => {
                self.nics[func] = Some(nic);
                Ok(true)
            }
            Err(text) => {
                self.told(format!("probe: {text}"));
                Ok(false)
            }
        }
    }

    /// Call a function's driver.
    ///
    /// # Errors
    /// [`Over`] if it crashed, never came back, or is not there.
    pub fn call<R>(&mut self, func: usize, call: impl FnOnce(&mut dyn Nic) -> R) -> Result<R, Over> {
        self.watchdogs[func].begin(self.bench.now().as_ns());
        let Some(nic) = self.nics[func].as_mut() else { return Err(Over) };
        let result = catch_unwind(AssertUnwindSafe(|| call(nic.as_mut())));
        let result = self.survived(func, result)?;
        self.gather(func);
        Ok(result)
    }

    fn survived<R>(&mut self, func: usize, result: Result<R, Box<dyn Any + Send>>) -> Result<R, Over> {
        let time = self.now();
        if let Some((bar, offset)) = self.watchdogs[func].bitten() {
            let place = format!("{bar} {offset:#x}");
            self.see(
                "liveness",
                place,
                format!("the driver never came back: after 2 s it still asks for {bar} {offset:#x}"),
            );
            self.forget(func);
            return Err(Over);
        }
        result.map_err(|payload| {
            let text = match payload.downcast::<Oops>() {
                Ok(oops) => oops.0,
                Err(other) => panic_text(&*other),
            };
            self.evidence.crash = Some((text, time));
            self.forget(func);
            Over
        })
    }

    /// A driver that was stopped in the middle is not tidied up after.
    fn forget(&mut self, func: usize) {
        std::mem::forget(self.nics[func].take());
    }

    /// A driver tells of something that costs no frame.
    fn told(&mut self, text: String) {
        let time = self.now();
        self.evidence.told.push(Told { text, time, excuse: None });
    }

    /// A driver tells that queues of its function do not run any more. Until they do again, what is in them may be lost.
    fn told_of(&mut self, func: usize, queue: Option<u16>, side: Option<Side>, text: String) {
        let time = self.now();
        let excuse = Excuse { func: FuncId(func as u8), queue, side, until: Time::NEVER };
        self.evidence.told.push(Told { text, time, excuse: Some(excuse) });
    }

    /// The queues of whose end telling number `from` and those after it spoke, of this function and, if given, this one queue,
    /// run again.
    fn runs_again(&mut self, func: usize, from: usize, queue: Option<u16>) {
        let now = self.now();
        let excuses = self.evidence.told[from..].iter_mut().filter_map(|told| told.excuse.as_mut());
        let is_meant =
            |excuse: &&mut Excuse| usize::from(excuse.func.0) == func && (queue.is_none() || excuse.queue == queue);
        excuses.filter(is_meant).for_each(|excuse| excuse.until = excuse.until.min(now));
    }

    /// A queue has stopped: note what the driver says of it, and have it started afresh.
    fn failed(&mut self, func: usize, failure: Failure) -> Result<(), Over> {
        let from = self.evidence.told.len();
        let Failure { queue, side, .. } = failure;
        self.told_of(func, Some(queue), side, format!("fn{func} {failure}"));
        match self.call(func, |nic| nic.recover(queue))? {
            Ok(()) => self.runs_again(func, from, Some(queue)),
            Err(failures) => {
                for failure in failures {
                    self.told_of(func, Some(failure.queue), failure.side, format!("fn{func} recover: {failure}"));
                }
            }
        }
        Ok(())
    }

    /// Start the queues.
    ///
    /// # Errors
    /// [`Over`].
    pub fn up(&mut self, func: usize) -> Result<bool, Over> {
        match self.call(func, |nic| nic.up())? {
            Ok(()) => {
                self.is_up.insert(func);
                self.runs_again(func, 0, None);
                Ok(true)
            }
            // The port has not listened yet.
            Err(text) => {
                self.told(format!("up: {text}"));
                Ok(false)
            }
        }
    }

    /// Stop the queues.
    ///
    /// # Errors
    /// [`Over`].
    pub fn down(&mut self, func: usize) -> Result<bool, Over> {
        self.is_up.remove(&func);
        self.unended.retain(|(of, _)| *of != func);
        let result = self.call(func, |nic| nic.down())?;
        self.polls.retain(|due| due.func != func);
        self.to_send.retain(|frame| frame.func != func);
        self.timers[func] = None;
        Ok(self.has_stopped(func, "down", result))
    }

    /// Queues of a function that did not stop take with them what the card still writes to them. True if all did.
    fn has_stopped(&mut self, func: usize, what: &str, result: Result<(), String>) -> bool {
        let is_stopped = result.is_ok();
        if let Err(text) = result {
            self.told_of(func, None, None, format!("fn{func} {what}: {text}"));
        }
        is_stopped
    }

    /// Take a function down for good.
    ///
    /// # Errors
    /// [`Over`].
    pub fn remove(&mut self, func: usize) -> Result<(), Over> {
        self.is_up.remove(&func);
        let result = self.call(func, |nic| nic.remove())?;
        self.polls.retain(|due| due.func != func);
        self.to_send.retain(|frame| frame.func != func);
        self.timers[func] = None;
        self.has_stopped(func, "remove", result);
        self.note_books(func)?;
        // Dropping is the driver's code too.
        let nic = self.nics[func].take();
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(nic)));
        self.survived(func, dropped)
    }

    /// Give frames to a port's wire, `gap_ns` apart.
    pub fn wire(&mut self, port: PortId, frames: impl IntoIterator<Item = Vec<u8>>, gap_ns: u64) {
        let mut time = self.now();
        for data in frames {
            let index = self.evidence.input.len() as u64;
            self.evidence.input.push(InFrame { port, index, time_ns: None, data: data.clone(), err: false });
            self.bench.wire_in(port, WireFrame { data, err: false, time });
            time = time.saturating_add(gap_ns * 1_000);
        }
    }

    /// Give frames of these payload lengths to a driver, to send on a queue. All but the last are said to have others
    /// behind them.
    pub fn send(&mut self, func: usize, queue: u16, payloads: &[usize]) {
        for (i, &payload) in payloads.iter().enumerate() {
            let number = self.sent_numbers;
            self.sent_numbers += 1;
            let flow = 1_000 + u16::try_from(func).unwrap_or(0) * 100 + queue;
            // The longest frame of any shape is one that UDP can make.
            let mut data = frames::udp(flow, number, payload.min(9_500)).unwrap_or_default();
            // A runt is given to the driver as it is: padding is the driver's part.
            data.truncate(frames::UDP_HEADERS + payload);
            self.to_send.push_back(Outgoing { func, queue, number, data, more: i + 1 < payloads.len() });
        }
    }

    /// Go on for a while.
    ///
    /// # Errors
    /// [`Over`].
    pub fn run_for(&mut self, ns: u64) -> Result<(), Over> {
        let end = self.now().saturating_add(ns * 1_000);
        loop {
            self.work()?;
            if self.now() >= end {
                return Ok(());
            }
            let next = self.next_due().min(end);
            self.advance(next)?;
        }
    }

    /// Go on until all is quiet, or nothing happens any more; then look for what should have happened.
    ///
    /// # Errors
    /// [`Over`].
    pub fn settle(&mut self) -> Result<(), Over> {
        let mut mark = self.progress();
        let mut since = self.now();
        loop {
            self.work()?;
            if self.is_quiet() && self.stays_quiet()? {
                break;
            }
            if self.progress() != mark {
                (mark, since) = (self.progress(), self.now());
            } else if self.now().0 - since.0 > STILL_PS {
                break;
            }
            // A card may fall silent without an interrupt: it is looked at now and then.
            let next = self.next_due().min(self.now().saturating_add(QUIET_PS));
            self.advance(next)?;
        }
        self.look_for_stalls()
    }

    /// Nothing comes for a while.
    fn stays_quiet(&mut self) -> Result<bool, Over> {
        let mark = self.progress();
        self.run_for(QUIET_PS / 1_000)?;
        Ok(self.is_quiet() && self.progress() == mark)
    }

    fn progress(&self) -> (usize, usize, usize, u64) {
        let queued = (0..self.conditions.shape.ports).map(|port| self.bench.wire_queued(PortId(port)) as u64).sum();
        let outcome = &self.evidence.outcome;
        (outcome.delivered.len(), outcome.sent.len(), self.evidence.posted.len(), queued)
    }

    fn advance(&mut self, until: Time) -> Result<(), Over> {
        let until = until.max(self.now().saturating_add(1));
        match self.bench.advance(until) {
            Ok(_) => Ok(()),
            Err(error) => {
                self.see("card", "the card", error.to_string());
                Err(Over)
            }
        }
    }

    fn next_due(&self) -> Time {
        let polls = self.polls.iter().map(|due| due.at);
        let retry = (!self.to_send.is_empty()).then(|| self.now().saturating_add(2_000_000));
        polls.chain(self.timers.iter().flatten().copied()).chain(retry).min().unwrap_or(Time::NEVER)
    }

    fn is_quiet(&self) -> bool {
        let wires = (0..self.conditions.shape.ports).all(|port| self.bench.wire_queued(PortId(port)) == 0);
        let polls = self.conditions.deferred || self.polls.is_empty();
        wires && polls && self.to_send.is_empty() && self.timers.iter().all(Option::is_none) && self.bench.idle()
    }

    /// All that is due now.
    fn work(&mut self) -> Result<(), Over> {
        self.take_interrupts()?;
        self.send_some()?;
        self.run_polls()?;
        for func in 0..self.nics.len() {
            self.run_timer(func)?;
        }
        self.collect();
        Ok(())
    }

    fn take_interrupts(&mut self) -> Result<(), Over> {
        self.bench.drain_raised(|_, _| {});
        for func in 0..self.nics.len() {
            if self.nics[func].is_none() {
                continue;
            }
            for work in self.call(func, |nic| nic.interrupts())? {
                match work {
                    Work::Poll(queue) => self.schedule(func, queue),
                    Work::Errors => self.serve_errors(func)?,
                }
            }
        }
        Ok(())
    }

    fn schedule(&mut self, func: usize, queue: u16) {
        if self.unended.contains(&(func, queue)) {
            let text =
                format!("fn{func} queue {queue}: an interrupt came although the host had refused to end its poll");
            self.see("contract", format!("fn{func} queue {queue}"), text);
        } else if self.is_up.contains(&func) && !self.polls.iter().any(|due| (due.func, due.queue) == (func, queue)) {
            let at = self.now().saturating_add(LATENCY_PS);
            self.polls.push(Due { at, func, queue });
        }
    }

    fn serve_errors(&mut self, func: usize) -> Result<(), Over> {
        match self.call(func, |nic| nic.serve_errors())? {
            Ok(Some(text)) | Err(text) => self.told(text),
            Ok(None) => {}
        }
        Ok(())
    }

    fn run_polls(&mut self) -> Result<(), Over> {
        let now = self.now();
        // On CPUs of their own, a poll that is due while another runs begins before that one ends.
        let overlaps = self.conditions.together && self.polls.iter().any(|due| due.at <= now);
        let begins = if overlaps { now.saturating_add(POLL_PS) } else { now };
        let (due, later) = std::mem::take(&mut self.polls).into_iter().partition(|due| due.at <= begins);
        self.polls = later;
        let due: Vec<Due> = due;
        if self.conditions.together && due.len() > 1 && due.iter().all(|one| one.func == due[0].func) {
            return self.poll_together(&due);
        }
        for Due { func, queue, .. } in due {
            if self.is_up.contains(&func) {
                self.poll(func, queue, self.conditions.budget)?;
            }
        }
        Ok(())
    }

    /// One poll, and what follows from it.
    ///
    /// # Errors
    /// [`Over`].
    pub fn poll(&mut self, func: usize, queue: u16, budget: usize) -> Result<(), Over> {
        let may_finish = !self.conditions.deferred;
        let polled = self.call(func, |nic| nic.poll(queue, budget, may_finish))?;
        self.polled(func, queue, budget, polled)
    }

    fn poll_together(&mut self, due: &[Due]) -> Result<(), Over> {
        let (func, budget) = (due[0].func, self.conditions.budget);
        let queues: Vec<u16> = due.iter().map(|one| one.queue).collect();
        let polled = self.call(func, |nic| nic.poll_together(&queues, budget))?;
        queues.into_iter().zip(polled).try_for_each(|(queue, polled)| self.polled(func, queue, budget, polled))
    }

    fn polled(&mut self, func: usize, queue: u16, budget: usize, polled: Result<Polled, Failure>) -> Result<(), Over> {
        let polled = match polled {
            Ok(polled) => polled,
            // What had come before the fault may have been the last for which an interrupt was owed.
            Err(failure) => return self.failed(func, failure),
        };
        let Polled { work, done, rescheduled, trouble } = polled;
        if let Some(failure) = trouble {
            self.failed(func, failure)?;
        }
        let place = format!("fn{func} queue {queue}");
        if work > budget {
            let text = format!("{place}: a poll with a budget of {budget} handled {work} frames");
            self.see("contract", place.clone(), text);
        } else if budget > 0 && work == budget && (done || rescheduled) {
            let text =
                format!("{place}: a poll returned its whole budget of {budget} and had ended or scheduled itself");
            self.see("contract", place, text);
        }
        let now = self.now();
        if self.conditions.deferred && work > 0 {
            self.unended.insert((func, queue));
        }
        let again = budget > 0 && !done && work >= budget;
        let plans = self.nics[func].as_ref().is_some_and(|nic| nic.plans_polls());
        if self.conditions.deferred && !plans {
            self.polls.push(Due { at: now.saturating_add(DEFERRED_PS), func, queue });
        } else if again {
            self.polls.push(Due { at: now.saturating_add(AGAIN_PS), func, queue });
        }
        Ok(())
    }

    fn run_timer(&mut self, func: usize) -> Result<(), Over> {
        if !self.is_up.contains(&func) {
            return Ok(());
        }
        let now = self.now();
        if self.timers[func].is_some_and(|due| due <= now) {
            self.timers[func] = None;
            let Timed { due, failures } = self.call(func, |nic| nic.on_timer())?;
            self.polls.extend(due.into_iter().map(|queue| Due { at: now, func, queue }));
            failures.into_iter().try_for_each(|failure| self.failed(func, failure))?;
        }
        if self.timers[func].is_none() {
            let wanted = self.call(func, |nic| nic.timer_ns())?;
            self.timers[func] = wanted.map(|ns| now.saturating_add(ns.max(1) * 1_000));
        }
        Ok(())
    }

    /// Send what has room, in order.
    fn send_some(&mut self) -> Result<(), Over> {
        while let Some(frame) = self.to_send.pop_front() {
            let (func, queue) = (frame.func, frame.queue);
            if !self.is_up.contains(&func) {
                continue;
            }
            if !self.call(func, |nic| nic.may_send(queue))? {
                self.to_send.push_front(frame);
                return Ok(());
            }
            match self.call(func, |nic| nic.send(queue, &frame.data, frame.more))? {
                Ok(()) => self.posted(frame),
                Err(Refusal::Busy) => {
                    let place = format!("fn{func} queue {queue}");
                    let text = format!("{place}: frame {} was refused by a queue that was not stopped", frame.number);
                    self.see("contract", place, text);
                    self.to_send.push_front(frame);
                    return Ok(());
                }
                Err(Refusal::Dropped(_)) => {}
                Err(Refusal::Failed(failure)) => self.failed(func, failure)?,
            }
        }
        Ok(())
    }

    fn posted(&mut self, frame: Outgoing) {
        let Outgoing { func, queue, number, data, .. } = frame;
        let time = self.now();
        self.evidence.posted.push(Posted { func: FuncId(func as u8), queue, number, data, time });
    }

    /// Take what a driver handed up.
    fn gather(&mut self, func: usize) {
        let Some(nic) = self.nics[func].as_mut() else { return };
        for frame in nic.received() {
            let func = FuncId(func as u8);
            let (queue, data, time) = (frame.queue, frame.data, frame.time);
            self.evidence.outcome.delivered.push(Delivered { func, queue, data, time, crossing: None });
        }
    }

    /// Take what left the card.
    fn collect(&mut self) {
        for port in (0..self.conditions.shape.ports).map(PortId) {
            while let Some(WireFrame { data, err, time }) = self.bench.wire_out(port) {
                self.evidence.outcome.sent.push(Sent { port, data, err, time });
            }
        }
        let observations = &mut self.evidence.outcome.observations;
        self.bench.drain_observations(|seen| match seen.point {
            Point::C2h { .. } => {}
            _ => observations.push(seen),
        });
    }

    /// What should have happened by now and has not. Frames in transmit rings first: a poll may take them back.
    fn look_for_stalls(&mut self) -> Result<(), Over> {
        self.look_for_waiting();
        for func in self.is_up.clone() {
            let held = self.call(func, |nic| nic.unfreed())?;
            if held > 0 && !self.faults.holds() && !self.look_for_unsent() {
                let text = format!("fn{func}: {held} frames were sent, and 20 us later their memory is still held");
                self.see("liveness", format!("fn{func}, {held} TX buffers"), text);
            }
            for queue in 0..self.queues() {
                self.look_for_forgotten(func, queue)?;
            }
        }
        Ok(())
    }

    /// Frames that wait to be sent, or at a wire, although nothing has moved for a long time.
    fn look_for_waiting(&mut self) {
        let stuck = self.to_send.iter().find(|frame| self.is_up.contains(&frame.func));
        if let Some(Outgoing { func, queue, number, .. }) = stuck
            && !self.faults.holds()
        {
            let place = format!("fn{func} TX queue {queue}");
            let text = format!("{place}: frame {number} waits to be sent, and the queue is not woken");
            let (packet, time) = (Some(*number), Some(self.now()));
            self.evidence.seen.push(Caught { by: "liveness", place, text, packet, time });
        }
        for port in (0..self.conditions.shape.ports).map(PortId) {
            let queued = self.bench.wire_queued(port);
            if queued > 0 {
                let place = format!("port{}", port.0);
                self.see(
                    "liveness",
                    place.clone(),
                    format!("{place}: {queued} frames wait at the wire, and none goes in"),
                );
            }
        }
    }

    /// A poll that nobody asked for finds nothing, unless frames were forgotten in the ring.
    fn look_for_forgotten(&mut self, func: usize, queue: u16) -> Result<(), Over> {
        let before = self.evidence.outcome.delivered.len();
        let now = self.now();
        self.poll(func, queue, self.conditions.budget)?;
        let found = self.evidence.outcome.delivered.len() - before;
        if found > 0 {
            let place = format!("fn{func} queue {queue}");
            let text =
                format!("{place}: frames lay in the ring, and no interrupt or poll was to come; {found} at least");
            let packet = Some(before as u64);
            self.evidence.seen.push(Caught { by: "liveness", place, text, packet, time: Some(now) });
        }
        Ok(())
    }

    /// Frames that the driver took, and that the card was never told of. True if there are any.
    fn look_for_unsent(&mut self) -> bool {
        let outcome = &self.evidence.outcome;
        let dropped = outcome.observations.iter().filter(|seen| matches!(seen.point, Point::H2cDrop)).count();
        let untold = untold_sent(&self.evidence);
        let Some(first) = untold.first().filter(|_| untold.len() > dropped) else { return false };
        let sum = counters::read(self.bench.function(FuncId(0)).mmio(), &self.conditions.shape);
        let Ok(Some(sum)) = sum else { return false };
        if sum.host_in >= (outcome.sent.len() + untold.len()) as u64 {
            return false;
        }
        let place = format!("fn{} queue {}", first.func.0, first.queue);
        let text = format!(
            "{place}: frame {} was taken to send at {}, and the card has not been told of it",
            first.number, first.time
        );
        let (packet, time) = (Some(first.number), Some(first.time));
        self.evidence.seen.push(Caught { by: "liveness", place, text, packet, time });
        true
    }

    /// Read the MAC's statistics of a function as `ethtool -S` does, and note them beside the truth.
    ///
    /// # Errors
    /// [`Over`].
    pub fn read_mac(&mut self, func: usize) -> Result<(), Over> {
        self.collect();
        match self.call(func, |nic| nic.mac())? {
            Ok(Some(shown)) => {
                let port = PortId(func as u8);
                let ends = |seen: &&models::observation::Observation| matches!(seen.point, Point::RxEnd { port: at, .. } if at == port);
                let outcome = &self.evidence.outcome;
                let crossed = MacTotals {
                    rx_packets: outcome.observations.iter().filter(ends).count() as u64,
                    tx_packets: outcome.sent.iter().filter(|frame| frame.port == port).count() as u64,
                };
                let time = self.now();
                self.evidence.mac.push(MacReading { func: FuncId(func as u8), shown, crossed, time });
            }
            Ok(None) => {}
            Err(text) => self.told(format!("statistics: {text}")),
        }
        Ok(())
    }

    /// The RSS table, read from the card.
    pub fn table(&self, func: u8) -> Vec<u32> {
        let base = regs::shell::qdma_function(FuncId(func)) + regs::qdma_function::INDIRECTION_TABLE;
        let function = self.bench.function(FuncId(func));
        (0..regs::qdma_function::INDIRECTION_TABLE_COUNT)
            .map(|i| base + regs::qdma_function::INDIRECTION_TABLE_STRIDE * i)
            .map(|offset| function.mmio().read32(Bar::Shell, offset).unwrap_or(u32::MAX) & 0xffff)
            .collect()
    }

    fn note_books(&mut self, func: usize) -> Result<(), Over> {
        let totals = self.call(func, |nic| nic.totals())?;
        self.evidence.books.push(Books { func: FuncId(func as u8), totals });
        Ok(())
    }

    /// Take everything away and hand over the evidence.
    pub fn finish(mut self) -> Evidence {
        let ended = self.take_away();
        self.collect();
        if ended.is_err() {
            (0..self.nics.len()).for_each(|func| self.forget(func));
        }
        let evidence = &mut self.evidence;
        evidence.end = self.bench.now();
        evidence.outcome.end = evidence.end;
        evidence.fired.extend(self.faults.fired());
        evidence.violations = self.bench.memory().violations();
        evidence.heap_reports = self.heap.reports();
        // After a crash nobody tidies up.
        if ended.is_ok() {
            evidence.leaks = self.bench.memory().leaks();
            evidence.heap_leaks = self.heap.leaks();
            let sum = counters::read(self.bench.function(FuncId(0)).mmio(), &self.conditions.shape);
            evidence.counted = sum.ok().flatten();
        }
        self.bench.card(|card| card.close());
        self.evidence
    }

    fn take_away(&mut self) -> Result<(), Over> {
        let over = self.evidence.crash.is_some() || self.evidence.seen.iter().any(|caught| caught.by == "card");
        if over || self.watchdogs.iter().any(|watchdog| watchdog.bitten().is_some()) {
            return Err(Over);
        }
        for func in (0..self.nics.len()).rev() {
            if self.nics[func].is_some() {
                if self.is_up.contains(&func) {
                    self.down(func)?;
                }
                self.remove(func)?;
            }
        }
        Ok(())
    }
}

/// The number that a frame made by [`frames::udp`] carries.
pub fn number_of(data: &[u8]) -> Option<u64> {
    let bytes = data.get(frames::UDP_HEADERS..frames::UDP_HEADERS + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// What a panic says.
fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    format!("panic: {}", text.unwrap_or("without words"))
}
