//! A live card with its drivers, a step at a time: what the console's commands act on.
//!
//! Time stands still between calls and passes only within one: while it waits, while registers are read, while the driver
//! waits for the card. Traffic that was started in the background moves whenever time passes, so that an interface can be
//! changed under load; the run is deterministic all the same, since one thread does it all.
//!
//! ```
//! use testbench::card::Choice;
//! use testbench::console::{Interface, Session, Traffic};
//! use testbench::run::Setup;
//!
//! let mut session = Session::start(&Choice::named("model"), &Setup::default())?;
//! session.replay(Traffic::new(Vec::new()))?;
//! session.wait_idle()?;
//! session.down(Interface(0))?;
//! let report = session.finish()?;
//! assert!(report.is_clean(), "{report}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use driver_core::{
    ChangeError, Driver, Interrupts as _, MmioError, Next, NoHook, Platform as _, Polled, QueueFault, QueueState,
    TxError, TxFlow, Vector, WEIGHT,
};
use models::observation::Observation;
use models::time::Time;
use regs::{FuncId, PortId};

use super::traffic::{Replay, Traffic};
use super::wire_fault::WireFaults;
use crate::bench::Bench;
use crate::card::{CardError, Choice};
use crate::counters;
use crate::execute::{ExecuteError, lost};
use crate::host_memory::MemoryCounts;
use crate::outcome::Sum;
use crate::run::{CardDriver, HostFrame, RunError, Setup, device_config};
use crate::shape::Pace;

/// Frames that wait at a port ahead of time, so that the wire never starves between two looks of the host.
const WIRE_AHEAD: usize = 128;
/// How often the host looks after the wire and the transmit rings while it has something for them, ps.
const LOOK_PS: u64 = 1_000_000;
/// From a poll that used up its budget to the next, ps.
const AGAIN_PS: u64 = 1_000;

/// One network interface: a function with its driver, `onic<f>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Interface(pub u8);

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "onic{}", self.0)
    }
}

/// Why a session could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The card can't be had.
    #[error(transparent)]
    NoCard(#[from] ExecuteError),
    /// Bring-up failed, the card stopped, the host was asked for the impossible.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The driver refused a change, or could not make it.
    #[error("{interface}: {source}")]
    Change {
        /// Whose.
        interface: Interface,
        /// Why.
        source: ChangeError,
    },
    /// No such interface.
    #[error("there is no {0}: the card's interfaces are onic0 to onic{last}", last = .1.saturating_sub(1))]
    NoInterface(String, usize),
    /// A register access failed.
    #[error(transparent)]
    Mmio(#[from] MmioError),
    /// The wire is taken.
    #[error("a replay is under way: wait for it (wait idle) or end it (stop)")]
    ReplayUnderWay,
    /// It would never be idle.
    #[error("a replay goes round for ever: end it first (stop)")]
    Endless,
    /// Frames from the host need an interface that is up.
    #[error("{0} is down")]
    Down(Interface),
}

/// What a session has counted of its own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Tally {
    /// Frames given to the ports.
    wire_in: u64,
    /// Frames that the driver posted.
    host_in: u64,
    /// Frames that the drivers handed up.
    host_out: u64,
    /// Frames that left at the ports.
    wire_out: u64,
    /// Frames that the host had to send and never posted, since their interface went down.
    given_up: u64,
    /// Frames that the card's monitors saw lost, by reason.
    lost: Sum,
}

/// A vector's queues, to be polled at a time.
#[derive(Clone, Copy, Debug)]
struct Poll {
    due: Time,
    func: FuncId,
    vector: Vector,
}

/// Frames of every kind so far, for a command that tells what it moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moved {
    /// In at the wire.
    pub wire_in: u64,
    /// From the host.
    pub host_in: u64,
    /// To the host.
    pub host_out: u64,
    /// Out at the wire.
    pub wire_out: u64,
}

impl Moved {
    /// What was moved since `earlier`.
    pub fn since(self, earlier: Moved) -> Moved {
        Moved {
            wire_in: self.wire_in - earlier.wire_in,
            host_in: self.host_in - earlier.host_in,
            host_out: self.host_out - earlier.host_out,
            wire_out: self.wire_out - earlier.wire_out,
        }
    }
}

/// A live card, its drivers, and the traffic on it.
pub struct Session {
    card: String,
    bench: Arc<Bench>,
    drivers: Vec<CardDriver>,
    setup: Setup,
    replay: Option<Replay>,
    to_send: VecDeque<HostFrame>,
    /// Faults of the wire that are to come.
    pub wire_faults: WireFaults,
    /// The host polls nothing.
    host_held: bool,
    polls: VecDeque<Poll>,
    /// Until when each function's driver is at work.
    busy_until: Vec<Time>,
    tally: Tally,
    /// What the drivers had to say since the log was last cleared.
    log: Vec<String>,
    progress_mark: u64,
    last_progress: Time,
}

impl Session {
    /// Make the card, reset it, bring up a driver for each function and start its queues.
    ///
    /// # Errors
    /// [`SessionError::NoCard`], [`SessionError::Run`].
    pub fn start(choice: &Choice, setup: &Setup) -> Result<Session, SessionError> {
        let card = choice.make(&setup.shape)?;
        let name = card.name().to_string();
        let bench = Bench::new(card, setup.shape.functions, setup.check_memory, setup.hang_cycles);
        bench.reset().map_err(RunError::from)?;
        let mut session = Session {
            card: name,
            drivers: Vec::new(),
            setup: setup.clone(),
            replay: None,
            to_send: VecDeque::new(),
            wire_faults: WireFaults::default(),
            host_held: false,
            polls: VecDeque::new(),
            busy_until: vec![Time::ZERO; usize::from(setup.shape.functions)],
            tally: Tally::default(),
            log: Vec::new(),
            progress_mark: 0,
            last_progress: bench.now(),
            bench,
        };
        for func in (0..setup.shape.functions).map(FuncId) {
            let platform = Arc::new(session.bench.function(func));
            let driver = Driver::bring_up(platform, device_config(func, setup))
                .map_err(|source| RunError::BringUp { func, source })?;
            session.drivers.push(driver);
        }
        for driver in &mut session.drivers {
            let func = driver.config().func;
            driver.up().map_err(|source| RunError::Up { func, source })?;
        }
        session.interfaces().for_each(|interface| session.defer(interface));
        session.bench.gate_wire(setup.pace == Pace::Fast);
        Ok(session)
    }

    // ---- What is there

    /// The card's name.
    pub fn card(&self) -> &str {
        &self.card
    }

    /// How the session was set up.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The machine with the card in it.
    pub fn bench(&self) -> &Arc<Bench> {
        &self.bench
    }

    /// The interfaces.
    pub fn interfaces(&self) -> impl Iterator<Item = Interface> + use<> {
        (0..self.setup.shape.functions).map(Interface)
    }

    /// The interface of this name.
    ///
    /// # Errors
    /// [`SessionError::NoInterface`].
    pub fn interface(&self, name: &str) -> Result<Interface, SessionError> {
        let found = self.interfaces().find(|interface| interface.to_string() == name);
        found.ok_or_else(|| SessionError::NoInterface(name.into(), self.drivers.len()))
    }

    /// An interface's driver.
    ///
    /// # Panics
    /// For an interface that [`Session::interfaces`] doesn't name.
    pub fn driver(&mut self, interface: Interface) -> &mut CardDriver {
        &mut self.drivers[usize::from(interface.0)]
    }

    /// Simulated time.
    pub fn now(&self) -> Time {
        self.bench.now()
    }

    /// What has been moved so far. Frames that still wait outside a port have not come in.
    pub fn moved(&self) -> Moved {
        let Tally { wire_in, host_in, host_out, wire_out, .. } = self.tally;
        Moved { wire_in: wire_in - self.wire_queued(), host_in, host_out, wire_out }
    }

    /// Frames that the host had to send and never posted, since their interface went down.
    pub fn given_up(&self) -> u64 {
        self.tally.given_up
    }

    /// What the drivers had to say since the log was last cleared: queue faults, errors of the card.
    pub fn log(&self) -> &[String] {
        &self.log
    }

    /// The log was read.
    pub fn clear_log(&mut self) {
        self.log.clear();
    }

    /// From here on the host polls nothing, or polls again: interrupts stay pending meanwhile.
    pub fn hold_host(&mut self, held: bool) {
        self.host_held = held;
    }

    /// The host polls nothing.
    pub fn is_host_held(&self) -> bool {
        self.host_held
    }

    /// The host's cost of a packet from here on, ns.
    pub fn set_packet_ns(&mut self, packet_ns: u64) {
        self.setup.host.packet_ns = packet_ns;
    }

    // ---- Traffic

    /// Frames come in at the wire from here on, whenever time passes.
    ///
    /// # Errors
    /// [`SessionError::ReplayUnderWay`].
    pub fn replay(&mut self, traffic: Traffic) -> Result<(), SessionError> {
        self.pump()?;
        if self.replay.is_some() {
            return Err(SessionError::ReplayUnderWay);
        }
        let pace = traffic.pace.unwrap_or(self.setup.pace);
        self.bench.gate_wire(pace == Pace::Fast);
        self.replay = Some(Replay::new(traffic, pace, self.bench.now(), usize::from(self.setup.shape.ports)));
        self.pump()
    }

    /// Frames go out from the host from here on, whenever time passes.
    ///
    /// # Errors
    /// [`SessionError::Down`]; nothing is sent then.
    pub fn send(&mut self, frames: impl IntoIterator<Item = HostFrame>) -> Result<(), SessionError> {
        let frames: Vec<HostFrame> = frames.into_iter().collect();
        let down = |frame: &&HostFrame| !self.drivers[usize::from(frame.func.0)].is_up();
        if let Some(frame) = frames.iter().find(down) {
            return Err(SessionError::Down(Interface(frame.func.0)));
        }
        self.to_send.extend(frames);
        self.pump()
    }

    /// No further frames come in or go out than those under way. Returns how many from the host are given up.
    pub fn stop(&mut self) -> usize {
        self.replay = None;
        std::mem::take(&mut self.to_send).len()
    }

    /// Let so much time pass, ns.
    ///
    /// # Errors
    /// [`SessionError::Run`] if the card stops.
    pub fn wait(&mut self, ns: u64) -> Result<(), SessionError> {
        let until = self.bench.now().saturating_add(ns.saturating_mul(1_000));
        loop {
            self.pump()?;
            if self.bench.now() >= until {
                return Ok(());
            }
            self.advance(until)?;
        }
    }

    /// Let time pass until all traffic is through and nothing moves any more.
    ///
    /// # Errors
    /// [`SessionError::Endless`], and [`SessionError::Run`] if the card stops or nothing moves that should.
    pub fn wait_idle(&mut self) -> Result<(), SessionError> {
        if self.replay.as_ref().is_some_and(Replay::is_endless) {
            return Err(SessionError::Endless);
        }
        self.last_progress = self.bench.now();
        loop {
            self.pump()?;
            if self.is_quiet() {
                return Ok(());
            }
            self.watch()?;
            let hang = self.owed_since().saturating_add(self.hang_ps()).saturating_add(1);
            self.advance(hang)?;
        }
    }

    /// Let time pass until the host has sent what it had to send, and all traffic is through unless a replay goes round for
    /// ever.
    ///
    /// # Errors
    /// [`SessionError::Run`].
    pub fn wait_sent(&mut self) -> Result<(), SessionError> {
        if !self.replay.as_ref().is_some_and(Replay::is_endless) {
            return self.wait_idle();
        }
        self.last_progress = self.bench.now();
        loop {
            self.pump()?;
            if self.to_send.is_empty() && !self.outstanding() {
                return Ok(());
            }
            self.watch()?;
            self.advance(Time::NEVER)?;
        }
    }

    // ---- Up and down

    /// Start an interface's queues. One that is up stays so.
    ///
    /// # Errors
    /// [`SessionError::Run`].
    pub fn up(&mut self, interface: Interface) -> Result<(), SessionError> {
        self.pump()?;
        let driver = &mut self.drivers[usize::from(interface.0)];
        if !driver.is_up() {
            driver.up().map_err(|source| RunError::Up { func: FuncId(interface.0), source })?;
            self.defer(interface);
        }
        self.pump()
    }

    /// Stop an interface's queues, whatever is under way. One that is down stays so.
    ///
    /// # Errors
    /// [`SessionError::Change`].
    pub fn down(&mut self, interface: Interface) -> Result<(), SessionError> {
        self.pump()?;
        let driver = &mut self.drivers[usize::from(interface.0)];
        driver.down().map_err(|source| SessionError::Change { interface, source: source.into() })?;
        self.pump()
    }

    /// Change a setting of an interface. What needs its queues to stop takes it down and up again by itself.
    ///
    /// # Errors
    /// [`SessionError::Change`] as the driver gives it.
    pub fn change(
        &mut self,
        interface: Interface,
        change: impl FnOnce(&mut CardDriver) -> Result<(), ChangeError>,
    ) -> Result<(), SessionError> {
        self.pump()?;
        change(self.driver(interface)).map_err(|source| SessionError::Change { interface, source })?;
        self.defer(interface);
        self.pump()
    }

    /// Queues that were started afresh defer their interrupts as the session is set up.
    fn defer(&mut self, interface: Interface) {
        let deferral = self.setup.deferral;
        self.driver(interface).queues().iter_mut().for_each(|pair| pair.napi.set_deferral(deferral));
    }

    // ---- Books

    /// The sum by the testbench's own count. Frames that are on their way count as inside.
    pub fn sum_by_monitors(&mut self) -> Sum {
        self.collect();
        let moved = self.moved();
        let mut sum = Sum {
            wire_in: moved.wire_in,
            host_in: moved.host_in,
            host_out: moved.host_out,
            wire_out: moved.wire_out,
            drops: self.tally.lost.drops.clone(),
            inside: 0,
        };
        self.bench.card(|card| card.drops(&mut |reason, frames| sum.lost(&format!("qdma.{reason}"), frames)));
        for driver in &self.drivers {
            sum.lost("host.stopping", driver.rx_totals().dropped_stopping);
        }
        // Of what the driver gave up the card may have taken some all the same; it alone knows.
        let abandoned = self.drivers.iter().map(|driver| driver.tx_totals().abandoned).sum();
        if abandoned > 0 {
            let taken = self.bench.card(|card| card.qdma().map(|qdma| qdma.counters().h2c.frames_in));
            sum.lost("host.abandoned", taken.map_or(abandoned, |taken| sum.host_in.saturating_sub(taken)));
        }
        if !self.is_quiet() {
            sum.inside = u64::try_from(sum.missing()).unwrap_or(0);
        }
        sum
    }

    /// The sum by the card's own counters; `None` from a card whose counters can't tell.
    ///
    /// # Errors
    /// [`SessionError::Mmio`].
    pub fn sum_by_counters(&self) -> Result<Option<Sum>, SessionError> {
        Ok(counters::read(self.bench.function(FuncId(0)).mmio(), &self.setup.shape)?)
    }

    /// What is held of host memory.
    pub fn memory(&self) -> MemoryCounts {
        self.bench.memory().counts()
    }

    /// End: no more traffic, wait until all is quiet, draw up the sums, remove the drivers, and look what of host memory is
    /// left.
    ///
    /// # Errors
    /// [`SessionError`] if the card stopped: then there is no sum to draw up.
    pub fn finish(mut self) -> Result<Report, SessionError> {
        self.stop();
        self.host_held = false;
        self.wait_idle()?;
        let by_counters = self.sum_by_counters()?;
        let by_monitors = self.sum_by_monitors();
        for driver in self.drivers.drain(..).rev() {
            let interface = Interface(driver.config().func.0);
            driver.remove().map_err(|source| SessionError::Change { interface, source })?;
        }
        let memory = self.bench.memory();
        let mut memory_reports: Vec<String> =
            memory.violations().into_iter().chain(memory.leaks()).map(|report| report.to_string()).collect();
        if memory.violations_dropped() > 0 {
            memory_reports.push(format!("host memory: and {} more broken rules", memory.violations_dropped()));
        }
        let counts = memory.counts();
        let log = std::mem::take(&mut self.log);
        Ok(Report { card: self.card.clone(), by_counters, by_monitors, memory: counts, memory_reports, log })
    }

    // ---- The engine

    /// Do all that is due at the present.
    fn pump(&mut self) -> Result<(), SessionError> {
        self.feed_wire();
        self.collect();
        if self.host_held {
            return Ok(());
        }
        self.transmit()?;
        self.schedule();
        let now = self.bench.now();
        while let Some(at) = self.polls.iter().position(|poll| poll.due <= now)
            && let Some(poll) = self.polls.remove(at)
        {
            self.poll(poll)?;
        }
        Ok(())
    }

    /// Let time pass until something is to be done, or until `until`.
    fn advance(&mut self, until: Time) -> Result<(), SessionError> {
        let busy = self.replay.is_some() || !self.to_send.is_empty() || self.outstanding();
        let look = if busy { self.bench.now().saturating_add(LOOK_PS) } else { Time::NEVER };
        let due = self.polls.iter().map(|poll| poll.due).min().filter(|_| !self.host_held);
        let poll = due.unwrap_or(Time::NEVER);
        self.bench.advance(until.min(look).min(poll)).map_err(RunError::from)?;
        Ok(())
    }

    fn feed_wire(&mut self) {
        let Some(replay) = &mut self.replay else { return };
        for port in (0..self.setup.shape.ports).map(PortId) {
            let (tally, faults) = (&mut self.tally, &mut self.wire_faults);
            self.bench.feed(port, WIRE_AHEAD, |buffer| {
                let frame = replay.next(port, buffer, faults)?;
                tally.wire_in += 1;
                Some(frame)
            });
        }
        if replay.is_done() {
            self.replay = None;
        }
    }

    /// Take back what the card has sent, where it is time to, and post what the host has to send. A queue that is stopped
    /// holds up its sender until it wakes.
    fn transmit(&mut self) -> Result<(), SessionError> {
        self.expire();
        while let Some(frame) = self.to_send.front() {
            let func = frame.func;
            let Some(pair) = self.drivers[usize::from(func.0)].pair(frame.queue) else {
                // The interface went down, or has fewer queues now: what it had to send is given up, as a stack does.
                self.tally.given_up += 1;
                self.to_send.pop_front();
                continue;
            };
            // A sender that was stopped looks for completions itself, as far as its queue allows: with a budget of 0.
            if pair.tx.flow() != TxFlow::Open {
                let polled = pair.poll(0, &mut NoHook, |_| {});
                note(&mut self.log, func, pair.tx.rel_qid(), &polled);
            }
            if pair.tx.flow() != TxFlow::Open {
                break;
            }
            match pair.tx.post(&frame.data) {
                Ok(()) => {
                    self.tally.host_in += 1;
                    self.to_send.pop_front();
                }
                Err(TxError::Full { .. } | TxError::NoPage(_) | TxError::Stopping) => break,
                // A queue that has failed sends nothing until it is started afresh.
                Err(TxError::Fault(fault)) => {
                    note_fault(&mut self.log, func, "tx", frame.queue, fault);
                    self.tally.given_up += 1;
                    self.to_send.pop_front();
                }
                Err(source) => {
                    let index = usize::try_from(self.tally.host_in).unwrap_or(usize::MAX);
                    self.to_send.clear();
                    return Err(RunError::Tx { index, source }.into());
                }
            }
        }
        for driver in &mut self.drivers {
            let func = driver.config().func;
            for pair in driver.queues() {
                if let Err(fault) = pair.tx.flush() {
                    note_fault(&mut self.log, func, "tx", pair.tx.rel_qid(), fault);
                }
            }
        }
        Ok(())
    }

    /// Look for transmit completions where it is time to. Only for those: a received frame is fetched when its interrupt
    /// says so, and not before.
    fn expire(&mut self) {
        let now_ns = self.bench.now().as_ns();
        for driver in &mut self.drivers {
            let func = driver.config().func;
            for pair in driver.queues() {
                if pair.tx.due_ns().is_some_and(|due| due <= now_ns) {
                    let polled = pair.poll(0, &mut NoHook, |_| {});
                    note(&mut self.log, func, pair.tx.rel_qid(), &polled);
                }
            }
        }
    }

    /// Frames are in rings of the host that it still counts as its own. Those of a queue that has failed are nobody's to wait
    /// for: they are given up when it is started afresh.
    fn outstanding(&mut self) -> bool {
        let pairs = self.drivers.iter_mut().flat_map(|driver| driver.queues());
        pairs.filter(|pair| pair.tx.state() == QueueState::Running).any(|pair| pair.tx.outstanding() > 0)
    }

    /// Take pending vectors and plan their polls, the host's latency after they were raised.
    fn schedule(&mut self) {
        let latency_ps = self.setup.host.interrupt_ns * 1_000;
        let (drivers, polls) = (&self.drivers, &mut self.polls);
        self.bench.drain_raised(|func, time| {
            let Some(driver) = drivers.get(usize::from(func.0)) else { return };
            while let Some(vector) = driver.platform().interrupts().take() {
                if !polls.iter().any(|poll| (poll.func, poll.vector) == (func, vector)) {
                    polls.push_back(Poll { due: time.saturating_add(latency_ps), func, vector });
                }
            }
        });
    }

    /// One NAPI poll of each queue on a vector.
    fn poll(&mut self, poll: Poll) -> Result<(), SessionError> {
        let now = self.bench.now();
        let function = usize::from(poll.func.0);
        if self.busy_until[function] > now {
            self.polls.push_back(Poll { due: self.busy_until[function], ..poll });
            return Ok(());
        }
        let driver = &mut self.drivers[function];
        if driver.error_vector() == Some(poll.vector) {
            if let Some(errors) = driver.service_errors()? {
                say(&mut self.log, format!("{}: card errors: {errors:?}", Interface(poll.func.0)));
            }
            return Ok(());
        }
        // Polls that come without an interrupt: at once, or when a deferral ends.
        let (mut handled, mut again, mut later) = (0, false, None);
        for queue in 0..driver.config().queues {
            if driver.vector_of(queue) != poll.vector {
                continue;
            }
            let Some(pair) = driver.pair(queue) else { continue };
            pair.napi.schedule();
            let polled = pair.poll(WEIGHT, &mut NoHook, |_| handled += 1);
            note(&mut self.log, poll.func, queue, &polled);
            match polled.next {
                Next::Again => again = true,
                Next::Deferred { until_ns } => later = later.into_iter().chain([until_ns]).min(),
                Next::Armed | Next::Failed => {}
            }
        }
        self.tally.host_out += handled;
        let cost_ps = handled.saturating_mul(self.setup.host.packet_ns).saturating_mul(1_000);
        let busy_until = now.saturating_add(cost_ps);
        self.busy_until[function] = busy_until;
        if again {
            self.polls.push_back(Poll { due: busy_until.max(now.saturating_add(AGAIN_PS)), ..poll });
        } else if let Some(until_ns) = later {
            self.polls.push_back(Poll { due: Time::from_ns(until_ns).max(busy_until), ..poll });
        }
        Ok(())
    }

    /// Take what left the card at its ports and monitors.
    fn collect(&mut self) {
        for port in (0..self.setup.shape.ports).map(PortId) {
            while let Some(frame) = self.bench.wire_out(port) {
                self.tally.wire_out += 1;
                self.bench.give_back(frame.data);
            }
        }
        let losses = &mut self.tally.lost;
        self.bench.drain_observations(|observation: Observation| {
            if let Some(reason) = lost(&observation) {
                losses.lost(&reason, 1);
            }
        });
    }

    fn wire_queued(&self) -> u64 {
        (0..self.setup.shape.ports).map(|port| self.bench.wire_queued(PortId(port)) as u64).sum()
    }

    /// All fed, nothing inside, nothing in a ring that nobody has fetched, no poll to come.
    fn is_quiet(&mut self) -> bool {
        self.replay.is_none()
            && self.to_send.is_empty()
            && self.polls.is_empty()
            && !self.outstanding()
            && self.wire_queued() == 0
            && self.bench.idle()
            && !self.drivers.iter_mut().flat_map(|driver| driver.queues()).any(|pair| pair.rx.has_pending())
    }

    fn hang_ps(&self) -> u64 {
        self.setup.hang_cycles.saturating_mul(4_000)
    }

    /// Since when something should have moved: a capture may have gaps of seconds.
    fn owed_since(&mut self) -> Time {
        let start = self.replay.as_mut().map_or(Time::ZERO, |replay| replay.first_start(&self.bench));
        self.last_progress.max(start)
    }

    /// A hang is a long time in which no frame entered, left or was lost.
    fn watch(&mut self) -> Result<(), SessionError> {
        let moved = self.moved();
        let mark = moved.wire_in + moved.host_in + moved.host_out + moved.wire_out;
        let now = self.bench.now();
        if mark != self.progress_mark {
            (self.progress_mark, self.last_progress) = (mark, now);
            return Ok(());
        }
        if now.0.saturating_sub(self.owed_since().0) <= self.hang_ps() {
            return Ok(());
        }
        let what = format!(
            "{} frames at the wire, {} to send, card {}; {} in, {} to the host, {} out",
            self.wire_queued(),
            self.to_send.len(),
            if self.bench.idle() { "idle" } else { "busy" },
            moved.wire_in,
            moved.host_out,
            moved.wire_out
        );
        Err(RunError::from(CardError::Hang { cycles: self.setup.hang_cycles, at: now, what }).into())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Waves and coverage are written out however the session ends.
        self.bench.card(|card| card.close());
    }
}

/// What stopped a queue goes into the log.
fn note(log: &mut Vec<String>, func: FuncId, rel_qid: u16, polled: &Polled) {
    if let Err(fault) = polled.sent {
        note_fault(log, func, "tx", rel_qid, fault);
    }
    if let Err(fault) = polled.received {
        note_fault(log, func, "rx", rel_qid, fault);
    }
}

fn note_fault(log: &mut Vec<String>, func: FuncId, side: &str, rel_qid: u16, fault: QueueFault) {
    say(log, format!("{}: {side} queue {rel_qid}: {fault}", Interface(func.0)));
}

/// Once: a queue that has failed says so at each poll.
fn say(log: &mut Vec<String>, line: String) {
    if !log.contains(&line) {
        log.push(line);
    }
}

/// What a session leaves behind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The card's name.
    pub card: String,
    /// The sum by the card's own counters; `None` where they can't tell.
    pub by_counters: Option<Sum>,
    /// The sum by the testbench's own count.
    pub by_monitors: Sum,
    /// What is held of host memory once the drivers are gone.
    pub memory: MemoryCounts,
    /// Broken rules and leaks.
    pub memory_reports: Vec<String>,
    /// What the drivers said and nobody read.
    pub log: Vec<String>,
}

impl Report {
    /// What is wrong, a line each: broken sums, counts of card and testbench that differ, memory reports, unread faults.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let sums = [("the card's counters", self.by_counters.as_ref()), ("the port monitors", Some(&self.by_monitors))];
        for (source, sum) in sums.into_iter().filter_map(|(source, sum)| Some((source, sum?))) {
            if sum.astray() != 0 {
                faults.push(format!("by {source} {} frames are unaccounted for: {sum}", sum.astray()));
            }
        }
        if let Some(counters) = &self.by_counters {
            let stopping = self.by_monitors.drops.get("host.stopping").copied().unwrap_or(0);
            let pairs = [
                ("in at the wire", counters.wire_in, self.by_monitors.wire_in),
                ("to the host", counters.host_out, self.by_monitors.host_out + stopping),
                ("out at the wire", counters.wire_out, self.by_monitors.wire_out),
            ];
            let differing = pairs.into_iter().filter(|(_, card, testbench)| card != testbench);
            faults.extend(differing.map(|(what, card, testbench)| {
                format!("frames {what}: the card counts {card}, the testbench {testbench}")
            }));
        }
        faults.extend(self.memory_reports.iter().cloned());
        faults.extend(self.log.iter().cloned());
        faults
    }

    /// Nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.faults().is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.by_counters {
            Some(sum) => writeln!(f, "counters  {sum}")?,
            None => writeln!(f, "counters  can't tell on this card")?,
        }
        writeln!(f, "monitors  {}", self.by_monitors)?;
        let MemoryCounts { pages_out, mappings, regions, .. } = self.memory;
        writeln!(f, "memory    {pages_out} pages out, {mappings} mappings, {regions} regions")?;
        self.faults().iter().try_for_each(|fault| writeln!(f, "{fault}"))
    }
}
