//! A live card with its drivers, a step at a time: what the console's commands act on.
//!
//! Time stands still between calls and passes only within one: while it waits, while registers are read, while the
//! driver waits for the card. Traffic that was started in the background moves whenever time passes, so that an
//! interface can be changed under load; the run is deterministic all the same, since one thread does it all.
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
//! let report = session.finish();
//! assert!(report.is_clean(), "{report}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod engine;
mod record;
mod report;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use driver_core::{ChangeError, Driver, MmioError, Recovered};
use models::time::Time;
use regs::FuncId;

use super::traffic::{Replay, Traffic};
use super::wire_fault::WireFaults;
use crate::bench::Bench;
use crate::card::{Card, Choice};
use crate::execute::ExecuteError;
use crate::outcome::Sum;
use crate::run::{CardDriver, HostFrame, RunError, Setup, device_config};
use crate::shape::Pace;

use engine::Poll;
pub use record::Record;
pub use report::Report;

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
    #[error("there is no {0}: the card has {1}")]
    NoInterface(String, String),
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

/// Frames that a driver gave up since their queue was stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Abandoned {
    /// Of so many it is known whether the card had them.
    settled: u64,
    /// It never had so many of those.
    never_taken: u64,
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
    abandoned: Abandoned,
    /// What the drivers had to say since the log was last cleared.
    log: Vec<String>,
    /// Frames that came out, for somebody who wants them.
    record: Option<Record>,
    progress_mark: u64,
    last_progress: Time,
}

impl Session {
    /// Make the card, reset it, bring up a driver for each function and start its queues.
    ///
    /// # Errors
    /// [`SessionError::NoCard`], [`SessionError::Run`].
    pub fn start(choice: &Choice, setup: &Setup) -> Result<Session, SessionError> {
        Session::start_with(choice.make(&setup.shape)?, setup)
    }

    /// [`Session::start`] on a card of one's own making, of the setup's shape.
    ///
    /// # Errors
    /// [`SessionError::Run`].
    pub fn start_with(card: Box<dyn Card>, setup: &Setup) -> Result<Session, SessionError> {
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
            abandoned: Abandoned::default(),
            log: Vec::new(),
            record: None,
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
        found.ok_or_else(|| {
            let all: Vec<String> = self.interfaces().map(|interface| interface.to_string()).collect();
            SessionError::NoInterface(name.into(), all.join(", "))
        })
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
                self.settle_abandoned();
                return Ok(());
            }
            self.watch()?;
            let hang = self.owed_since().saturating_add(self.hang_ps()).saturating_add(1);
            self.advance(hang)?;
        }
    }

    /// Let time pass until the host has sent what it had to send, and all traffic is through unless a replay goes round
    /// for ever.
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
    /// [`SessionError::Change`].
    pub fn up(&mut self, interface: Interface) -> Result<(), SessionError> {
        self.pump()?;
        let driver = &mut self.drivers[usize::from(interface.0)];
        if !driver.is_up() {
            driver.up().map_err(|source| SessionError::Change { interface, source: source.into() })?;
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
        self.settle_abandoned();
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
        self.settle_abandoned();
        self.defer(interface);
        self.pump()
    }

    /// Start afresh each queue of an interface that has failed; the others run on. What had stopped them, and what came
    /// of it.
    ///
    /// # Errors
    /// [`SessionError::Run`] if the card stops.
    pub fn recover(&mut self, interface: Interface) -> Result<Vec<Recovered>, SessionError> {
        self.pump()?;
        let recovered = self.driver(interface).recover();
        self.settle_abandoned();
        self.defer(interface);
        self.pump()?;
        Ok(recovered)
    }

    /// Queues that were started afresh defer their interrupts as the session is set up.
    fn defer(&mut self, interface: Interface) {
        let deferral = self.setup.deferral;
        self.driver(interface).queues().iter_mut().for_each(|pair| pair.napi.set_deferral(deferral));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Waves and coverage are written out however the session ends.
        self.bench.card(|card| card.close());
    }
}
