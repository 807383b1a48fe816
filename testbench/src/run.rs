//! One run: a card, a driver for each function, frames in at the wire and from the host, until all is quiet.
//!
//! Deterministic and single-threaded. The driver runs when an interrupt tells it to (after the host's latency), as NAPI
//! would: up to a budget, again while there is more, re-armed when there is none. Nothing is polled behind the
//! interrupt's back, so that a lost interrupt shows as what it is, a frame that nobody fetches.

use std::collections::VecDeque;
use std::sync::Arc;

use driver_core::rss::{Key, Table};
use driver_core::{
    BringUpError, ChangeError, Deferral, DeviceConfig, Driver, Interrupts as _, Mmio as _, MmioError, Next, NoHook,
    Platform as _, Polled, QueueFault, QueuePair, TableEntry, TxError, TxFlow, UpError, Vector, WEIGHT,
};
use models::observation::Observation;
use models::time::Time;
use regs::{Bar, FuncId, PortId, Qid};

use crate::bench::{Bench, FunctionPlatform};
use crate::card::{Card, CardError, Shape, WireFrame};
use crate::feed::Feed;
use crate::host_memory::FunctionDma;
use crate::shape::Pace;

/// Frames that wait at a port ahead of time, so that the wire never starves: of the shortest, three times what passes between
/// two looks of the host, which may be as far apart as its interrupt latency.
const WIRE_AHEAD: usize = 128;

/// The host's side of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostProfile {
    /// From a vector becoming pending to the driver's poll, ns.
    pub interrupt_ns: u64,
    /// The driver's cost for each packet, ns.
    pub packet_ns: u64,
}

impl Default for HostProfile {
    fn default() -> HostProfile {
        HostProfile { interrupt_ns: 1_000, packet_ns: 0 }
    }
}

/// What a run is set up with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Functions, ports, queues, limits.
    pub shape: Shape,
    /// RSS key for every function; the card's own without.
    pub rss_key: Option<Key>,
    /// RSS table for every function; equal shares without.
    pub rss_table: Option<Table>,
    /// When frames start at the wire.
    pub pace: Pace,
    /// The host's side of time.
    pub host: HostProfile,
    /// How long interrupts stay off while frames keep coming.
    pub deferral: Deferral,
    /// Cycles of axis_aclk without progress that are a hang.
    pub hang_cycles: u64,
    /// Check host memory accesses.
    pub check_memory: bool,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            shape: Shape::default(),
            rss_key: None,
            rss_table: None,
            pace: Pace::Fast,
            host: HostProfile::default(),
            deferral: Deferral::default(),
            hang_cycles: 1_000_000,
            check_memory: true,
        }
    }
}

/// A frame for a port's wire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InFrame {
    /// Where it goes in.
    pub port: PortId,
    /// Its index in the input, for reports; where there are several captures, counted on from one to the next.
    pub index: u64,
    /// Its time in the capture, ns.
    pub time_ns: Option<u64>,
    /// Ethernet header to payload.
    pub data: Vec<u8>,
    /// Its FCS was wrong.
    pub err: bool,
}

/// A frame that the host sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostFrame {
    /// From which function.
    pub func: FuncId,
    /// On which queue, relative.
    pub queue: u16,
    /// Ethernet header to payload.
    pub data: Vec<u8>,
}

/// Who is told of what a run does, as it does it.
pub trait Sink {
    /// A frame was taken out of a queue.
    fn delivered(&mut self, func: FuncId, queue: u16, time: Time, segments: &mut dyn Iterator<Item = &[u8]>);
    /// A frame left a port. What comes back is a buffer that the sink has no use for, for the card to use again.
    fn sent(&mut self, port: PortId, frame: WireFrame) -> Option<Vec<u8>>;
    /// The card's monitors saw something.
    fn observed(&mut self, observation: Observation);
    /// So many frames of all are through, or lost.
    fn progress(&mut self, _done: u64) {}
}

/// What ended a run early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The driver's bring-up failed.
    #[error("{func}: bring-up failed")]
    BringUp {
        /// Whose.
        func: FuncId,
        /// Where and why.
        source: BringUpError,
    },
    /// The queues did not start.
    #[error("{func}: the queues did not start")]
    Up {
        /// Whose.
        func: FuncId,
        /// Why.
        source: UpError,
    },
    /// A setting was refused, or the queues did not stop.
    #[error("{func}: {source}")]
    Change {
        /// Whose.
        func: FuncId,
        /// Why.
        source: ChangeError,
    },
    /// The card stopped or hung.
    #[error(transparent)]
    Card(#[from] CardError),
    /// A register access failed.
    #[error(transparent)]
    Mmio(#[from] MmioError),
    /// Workers have no simulated time to keep a pace in.
    #[error("workers know no pace but fast: replay in one thread for any other")]
    WorkerPace,
    /// The host was asked to send what the driver refuses.
    #[error("frame {index} from the host: {source}")]
    Tx {
        /// Its number, from 0.
        index: usize,
        /// Why.
        source: TxError,
    },
}

/// What a run leaves behind, beside what its sink was told.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Frames that entered at the wire.
    pub wire_in: u64,
    /// Frames that the driver posted.
    pub host_in: u64,
    /// Frames that the driver took out.
    pub host_out: u64,
    /// Frames that left at the wire.
    pub wire_out: u64,
    /// Faults of queues, as the driver tells them.
    pub queue_errors: Vec<String>,
    /// When it was quiet.
    pub end: Time,
}

/// Where receive queues get their pages.
pub type Source = crate::pool_ring::Pool;
/// The driver of one function of a card on a bench.
pub type CardDriver = Driver<FunctionPlatform, Source>;
/// Two queues of a [`CardDriver`].
pub type CardPair = QueuePair<FunctionPlatform, Source>;

/// A run under way.
pub struct Run {
    pub(crate) bench: Arc<Bench>,
    pub(crate) drivers: Vec<CardDriver>,
    pub(crate) setup: Setup,
    polls: VecDeque<Poll>,
    pub(crate) tally: Tally,
    pub(crate) last_progress: Time,
    progress_mark: u64,
    /// When the first frame that waits at a wire starts.
    next_start: Time,
    /// Until when each function's driver is at work.
    busy_until: Vec<Time>,
    _closer: Closer,
}

/// A vector's queues, to be polled at a time.
#[derive(Clone, Copy, Debug)]
struct Poll {
    due: Time,
    func: FuncId,
    vector: Vector,
}

/// Closes the card when the run is over, however it ends: a driver whose card has stopped keeps its memory, and with it the
/// bench and the card, for good.
struct Closer(Arc<Bench>);

impl Drop for Closer {
    fn drop(&mut self) {
        self.0.card(|card| card.close());
    }
}

impl Run {
    /// Reset the card, bring up a driver for each function, start the queues.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn start(card: Box<dyn Card>, setup: &Setup) -> Result<Run, RunError> {
        let shape = &setup.shape;
        let bench = Bench::new(card, shape.functions, setup.check_memory, setup.hang_cycles);
        let closer = Closer(Arc::clone(&bench));
        bench.reset()?;
        let mut drivers: Vec<CardDriver> = Vec::new();
        for func in (0..shape.functions).map(FuncId) {
            let platform = Arc::new(bench.function(func));
            let driver = Driver::bring_up(platform, device_config(func, setup))
                .map_err(|source| RunError::BringUp { func, source })?;
            drivers.push(driver);
        }
        for driver in &mut drivers {
            let func = driver.config().func;
            driver.up().map_err(|source| RunError::Up { func, source })?;
            driver.queues().iter_mut().for_each(|pair| pair.napi.set_deferral(setup.deferral));
        }
        bench.gate_wire(setup.pace == Pace::Fast);
        let now = bench.now();
        Ok(Run {
            bench,
            drivers,
            setup: setup.clone(),
            polls: VecDeque::new(),
            tally: Tally::default(),
            last_progress: now,
            progress_mark: 0,
            next_start: Time::ZERO,
            busy_until: vec![Time::ZERO; usize::from(setup.shape.functions)],
            _closer: closer,
        })
    }

    /// The bench.
    pub fn bench(&self) -> &Arc<Bench> {
        &self.bench
    }

    /// The drivers, one a function.
    pub fn drivers(&mut self) -> &mut [CardDriver] {
        &mut self.drivers
    }

    /// Move all frames through, in at the wire and from the host, until nothing moves any more.
    ///
    /// # Errors
    /// [`RunError`]. What had come out before was told to `sink`.
    pub fn replay<'a>(
        &mut self,
        wire: &mut dyn Iterator<Item = &'a InFrame>,
        host: &mut dyn Iterator<Item = &'a HostFrame>,
        sink: &mut dyn Sink,
    ) -> Result<(), RunError> {
        let mut feed = Feed::new(self.setup.pace, self.bench.now(), usize::from(self.setup.shape.ports));
        let mut wire_done = false;
        let mut transmit = Transmit::default();
        self.last_progress = self.bench.now();
        loop {
            // The input may have ended while frames for one port still wait for their turn behind others.
            if !wire_done || !feed.is_empty() {
                wire_done |= !self.feed_wire(&mut feed, wire);
            }
            self.next_start = feed.first_start(&self.bench);
            self.transmit(&mut transmit, host)?;
            if self.is_quiet(wire_done && feed.is_empty(), &transmit) {
                break;
            }
            self.bench.advance(self.next_deadline(&transmit))?;
            self.react(sink)?;
            // Quiet at last is no hang, whatever frames have vanished inside.
            if let Err(hang) = self.watch(sink)
                && !self.is_quiet(wire_done && feed.is_empty(), &transmit)
            {
                return Err(hang);
            }
        }
        self.collect(sink);
        self.tally.end = self.bench.now();
        Ok(())
    }

    /// Take the device down and give back what the run counted.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn finish(mut self) -> Result<(Tally, Arc<Bench>), RunError> {
        for driver in self.drivers.drain(..).rev() {
            let func = driver.config().func;
            driver.remove().map_err(|source| RunError::Change { func, source })?;
        }
        Ok((self.tally, self.bench))
    }

    /// What was counted so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Read a BAR2 register by function 0.
    ///
    /// # Errors
    /// [`MmioError`].
    pub fn shell_read(&self, offset: u32) -> Result<u32, MmioError> {
        self.bench.function(FuncId(0)).mmio().read32(Bar::Shell, offset)
    }

    /// Give the wire what it has room for. False once the input has no more.
    pub(crate) fn feed_wire<'a>(
        &mut self,
        feed: &mut Feed<&'a InFrame>,
        wire: &mut dyn Iterator<Item = &'a InFrame>,
    ) -> bool {
        let mut more = true;
        for port in 0..feed.ports() {
            let id = PortId(port as u8);
            let tally = &mut self.tally;
            self.bench.feed(id, WIRE_AHEAD, |buffer| {
                let frame = feed.next_for(port, wire, &mut more)?;
                tally.wire_in += 1;
                Some(feed.timed(frame, buffer))
            });
        }
        more
    }

    /// Take back what the card has sent, where it is time to, and post what the host has to send. A queue that is stopped
    /// holds up its sender until it wakes.
    fn transmit<'a>(
        &mut self,
        state: &mut Transmit<'a>,
        host: &mut dyn Iterator<Item = &'a HostFrame>,
    ) -> Result<(), RunError> {
        if state.outstanding {
            self.expire();
        }
        while !state.done {
            if state.held.is_none() {
                state.held = host.next();
            }
            let Some(frame) = state.held else {
                state.done = true;
                break;
            };
            let pair = self.drivers.get_mut(usize::from(frame.func.0)).and_then(|driver| driver.pair(frame.queue));
            let Some(pair) = pair else {
                state.held = None;
                continue;
            };
            // A sender that was stopped looks for completions itself, as far as its queue allows: with a budget of 0.
            if pair.tx.flow() != TxFlow::Open {
                let polled = pair.poll(0, &mut NoHook, |_| {});
                note(&mut self.tally.queue_errors, pair.tx.qid(), &polled);
            }
            if pair.tx.flow() != TxFlow::Open {
                break;
            }
            match pair.tx.post(&frame.data) {
                Ok(()) => {
                    self.tally.host_in += 1;
                    state.index += 1;
                    state.held = None;
                }
                Err(TxError::Full { .. }) => break,
                Err(source) => return Err(RunError::Tx { index: state.index, source }),
            }
        }
        (state.outstanding, state.due_ns) = (state.held.is_some(), None);
        for pair in self.drivers.iter_mut().flat_map(|driver| driver.queues()) {
            if let Err(fault) = pair.tx.flush() {
                note_fault(&mut self.tally.queue_errors, "tx", pair.tx.qid(), fault);
            }
            state.outstanding |= pair.tx.outstanding() > 0;
            state.due_ns = state.due_ns.into_iter().chain(pair.tx.due_ns()).min();
        }
        Ok(())
    }

    /// Look for transmit completions where it is time to. Only for those: a received frame is fetched when its interrupt
    /// says so, and not before.
    fn expire(&mut self) {
        let now_ns = self.bench.now().as_ns();
        for pair in self.drivers.iter_mut().flat_map(|driver| driver.queues()) {
            if pair.tx.due_ns().is_some_and(|due| due <= now_ns) {
                let polled = pair.poll(0, &mut NoHook, |_| {});
                note(&mut self.tally.queue_errors, pair.tx.qid(), &polled);
            }
        }
    }

    /// All fed, nothing inside, nothing in a ring that nobody has fetched, no poll to come.
    fn is_quiet(&mut self, fed: bool, transmit: &Transmit<'_>) -> bool {
        fed && transmit.done
            && !transmit.outstanding
            && self.polls.is_empty()
            && (0..self.setup.shape.ports).all(|port| self.bench.wire_queued(PortId(port)) == 0)
            && self.bench.idle()
            && !self.drivers.iter_mut().flat_map(|driver| driver.queues()).any(|pair| pair.rx.has_pending())
    }

    /// Since when something should have moved: the last time that it did, or the start of the first frame at a wire, if
    /// that is later. A capture may have gaps of seconds.
    fn owed_since(&self) -> Time {
        self.last_progress.max(self.next_start)
    }

    /// From when on it is a hang that nothing has moved.
    pub(crate) fn hang_deadline(&self) -> Time {
        self.owed_since().saturating_add(self.setup.hang_cycles.saturating_mul(4_000)).saturating_add(1)
    }

    fn next_deadline(&self, transmit: &Transmit<'_>) -> Time {
        let hang = self.hang_deadline();
        let reap = transmit.due_ns.map_or(Time::NEVER, |ns| Time(ns.saturating_mul(1_000)));
        self.polls.iter().map(|poll| poll.due).min().unwrap_or(Time::NEVER).min(hang).min(reap)
    }

    fn react(&mut self, sink: &mut dyn Sink) -> Result<(), RunError> {
        self.schedule();
        self.collect(sink);
        let now = self.bench.now();
        while let Some(at) = self.polls.iter().position(|poll| poll.due <= now)
            && let Some(poll) = self.polls.remove(at)
        {
            self.poll(poll, sink)?;
        }
        Ok(())
    }

    /// Take pending vectors and plan their polls, the host's latency after they were raised.
    fn schedule(&mut self) {
        let (bench, polls, latency) = (&self.bench, &mut self.polls, self.setup.host.interrupt_ns * 1_000);
        let drivers = &self.drivers;
        bench.drain_raised(|func, time| {
            let Some(driver) = drivers.get(usize::from(func.0)) else { return };
            while let Some(vector) = driver.platform().interrupts().take() {
                if !polls.iter().any(|poll| (poll.func, poll.vector) == (func, vector)) {
                    polls.push_back(Poll { due: time + latency, func, vector });
                }
            }
        });
    }

    /// One NAPI poll of each queue on a vector.
    fn poll(&mut self, poll: Poll, sink: &mut dyn Sink) -> Result<(), RunError> {
        let now = self.bench.now();
        let busy_until = &mut self.busy_until[usize::from(poll.func.0)];
        if *busy_until > now {
            self.polls.push_back(Poll { due: *busy_until, ..poll });
            return Ok(());
        }
        let driver = &mut self.drivers[usize::from(poll.func.0)];
        if driver.error_vector() == Some(poll.vector) {
            if let Some(errors) = driver.service_errors()? {
                self.tally.queue_errors.push(format!("card errors: {errors}"));
            }
            return Ok(());
        }
        // Polls that come without an interrupt: at once, or when a deferral ends.
        let (mut again, mut later) = (false, None);
        let mut handled = 0;
        let queues = driver.config().queues;
        for queue in 0..queues {
            if driver.vector_of(queue) != poll.vector {
                continue;
            }
            let Some(pair) = driver.pair(queue) else { continue };
            pair.napi.schedule();
            let polled = pair.poll(WEIGHT, &mut NoHook, |frame| {
                handled += 1;
                sink.delivered(poll.func, queue, now, &mut frame.segments());
            });
            note(&mut self.tally.queue_errors, pair.rx.qid(), &polled);
            match polled.next {
                Next::Again => again = true,
                Next::Deferred { until_ns } => later = later.into_iter().chain([until_ns]).min(),
                Next::Armed | Next::Failed => {}
            }
        }
        self.tally.host_out += handled;
        // One CPU a function: what a poll cost is what the next one waits for, whichever queue it is of.
        *busy_until = now.saturating_add(handled.saturating_mul(self.setup.host.packet_ns).saturating_mul(1_000));
        if again {
            let due = (*busy_until).max(now + 1_000);
            self.polls.push_back(Poll { due, ..poll });
        } else if let Some(until_ns) = later {
            self.polls.push_back(Poll { due: Time(until_ns.saturating_mul(1_000)).max(*busy_until), ..poll });
        }
        Ok(())
    }

    /// Hand on what left the card at its ports and monitors.
    pub(crate) fn collect(&mut self, sink: &mut dyn Sink) {
        for port in (0..self.setup.shape.ports).map(PortId) {
            while let Some(frame) = self.bench.wire_out(port) {
                self.tally.wire_out += 1;
                if let Some(buffer) = sink.sent(port, frame) {
                    self.bench.give_back(buffer);
                }
            }
        }
        self.bench.drain_observations(|observation| sink.observed(observation));
    }

    /// A hang is a long time in which no frame entered or left.
    pub(crate) fn watch(&mut self, sink: &mut dyn Sink) -> Result<(), RunError> {
        let queued: usize = (0..self.setup.shape.ports).map(|port| self.bench.wire_queued(PortId(port))).sum();
        let mark = self.tally.wire_in + self.tally.host_in + self.tally.host_out + self.tally.wire_out - queued as u64;
        let now = self.bench.now();
        if mark != self.progress_mark {
            self.progress_mark = mark;
            self.last_progress = now;
            sink.progress(self.tally.host_out + self.tally.wire_out);
            return Ok(());
        }
        if now.0.saturating_sub(self.owed_since().0) > self.setup.hang_cycles.saturating_mul(4_000) {
            let what = format!(
                "{queued} frames at the wire, card {}, {} delivered of {} in",
                if self.bench.idle() { "idle" } else { "busy" },
                self.tally.host_out,
                self.tally.wire_in
            );
            return Err(CardError::Hang { cycles: self.setup.hang_cycles, at: now, what }.into());
        }
        Ok(())
    }
}

/// What stopped a queue goes into the tally, once.
fn note(errors: &mut Vec<String>, qid: Qid, polled: &Polled) {
    if let Err(fault) = polled.sent {
        note_fault(errors, "tx", qid, fault);
    }
    if let Err(fault) = polled.received {
        note_fault(errors, "rx", qid, fault);
    }
}

pub(crate) fn note_fault(errors: &mut Vec<String>, side: &str, qid: Qid, fault: QueueFault) {
    let text = format!("{side} {qid}: {fault}");
    if !errors.contains(&text) {
        errors.push(text);
    }
}

/// Frames from the host, on their way into rings.
#[derive(Default)]
struct Transmit<'a> {
    held: Option<&'a HostFrame>,
    index: usize,
    done: bool,
    /// Frames are in rings, or wait for one.
    outstanding: bool,
    /// When completions are to be looked for.
    due_ns: Option<u64>,
}

/// How a function's driver is configured for a setup.
pub(crate) fn device_config(func: FuncId, setup: &Setup) -> DeviceConfig {
    let shape = &setup.shape;
    let ports: Vec<PortId> = (0..shape.ports).map(PortId).collect();
    let own_port = ports.get(usize::from(func.0)).copied();
    DeviceConfig {
        queues: shape.queues,
        tx_ring: TableEntry::Value(shape.ring),
        rx_ring: TableEntry::Value(shape.ring),
        mtu: shape.mtu,
        max_frame_len_bytes: shape.max_pkt_len - 4,
        rss_key: setup.rss_key,
        rss_table: setup.rss_table,
        ports,
        own_port,
        ..DeviceConfig::new(func)
    }
}

/// One function's DMA memory, for code that names it.
pub type Dma = FunctionDma;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::Choice;

    #[test]
    fn bring_up_programs_the_queue_range() {
        let setup = Setup::default();
        let run = Run::start(Choice::named("model").make(&setup.shape).expect("a card"), &setup).expect("bring-up");
        let base = regs::shell::qdma_function(FuncId(0));
        assert_eq!(run.shell_read(base + regs::qdma_function::QCONF), Ok(8));
        assert_eq!(run.shell_read(base + regs::qdma_function::INDIRECTION_TABLE + 4 * 9), Ok(1));
    }
}
