//! What a session does while time passes: frames to the wire and from the host, interrupts and polls, what comes out.

use driver_core::{
    Interrupts as _, Next, NoHook, Platform as _, Polled, QueueFault, QueueState, TxError, TxFlow, Vector, WEIGHT,
};
use models::observation::Observation;
use models::time::Time;
use regs::{FuncId, PortId};

use super::{Interface, Session, SessionError};
use crate::card::{CardError, WireFrame};
use crate::execute::lost;
use crate::outcome::{Delivered, Sent};
use crate::run::RunError;

/// Frames that wait at a port ahead of time, so that the wire never starves between two looks of the host.
const WIRE_AHEAD: usize = 128;
/// How often the host looks after the wire and the transmit rings while it has something for them, ps.
const LOOK_PS: u64 = 1_000_000;
/// From a poll that used up its budget to the next, ps.
const AGAIN_PS: u64 = 1_000;

/// A vector's queues, to be polled at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Poll {
    due: Time,
    func: FuncId,
    vector: Vector,
}

impl Session {
    /// Do all that is due at the present.
    pub(super) fn pump(&mut self) -> Result<(), SessionError> {
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
    pub(super) fn advance(&mut self, until: Time) -> Result<(), SessionError> {
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

    /// Take back what the card has sent, where it is time to, and post what the host has to send. A queue that is
    /// stopped holds up its sender until it wakes.
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

    /// Look for transmit completions where it is time to. Only for those: a received frame is fetched when its
    /// interrupt says so, and not before.
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

    /// Frames are in rings of the host that it still counts as its own. Those of a queue that has failed are nobody's
    /// to wait for: they are given up when it is started afresh.
    pub(super) fn outstanding(&mut self) -> bool {
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
            if let Some(errors) = driver.service_errors()?.filter(|errors| !errors.is_empty()) {
                say(&mut self.log, format!("{}: {errors}", Interface(poll.func.0)));
                self.poll_all(poll.func);
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
            let record = &mut self.record;
            let polled = pair.poll(WEIGHT, &mut NoHook, |frame| {
                handled += 1;
                if let Some(record) = record {
                    let data = frame.segments().flatten().copied().collect();
                    record.delivered.push(Delivered { func: poll.func, queue, data, time: now, crossing: None });
                }
            });
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

    /// A queue that the card has stopped raises no interrupt any more: after an error each is looked at.
    fn poll_all(&mut self, func: FuncId) {
        let driver = &self.drivers[usize::from(func.0)];
        for vector in (0..driver.config().queues).map(|queue| driver.vector_of(queue)) {
            if !self.polls.iter().any(|poll| (poll.func, poll.vector) == (func, vector)) {
                self.polls.push_back(Poll { due: self.bench.now(), func, vector });
            }
        }
    }

    /// Take what left the card at its ports and monitors.
    pub(super) fn collect(&mut self) {
        for port in (0..self.setup.shape.ports).map(PortId) {
            while let Some(frame) = self.bench.wire_out(port) {
                self.tally.wire_out += 1;
                let WireFrame { data, err, time } = frame;
                match &mut self.record {
                    Some(record) => record.sent.push(Sent { port, data, err, time }),
                    None => self.bench.give_back(data),
                }
            }
        }
        let losses = &mut self.tally.lost;
        self.bench.drain_observations(|observation: Observation| {
            if let Some(reason) = lost(&observation) {
                losses.lost(&reason, 1);
            }
        });
    }

    pub(super) fn wire_queued(&self) -> u64 {
        (0..self.setup.shape.ports).map(|port| self.bench.wire_queued(PortId(port)) as u64).sum()
    }

    /// All fed, nothing inside, nothing in a ring that nobody has fetched, no poll to come.
    pub(super) fn is_quiet(&mut self) -> bool {
        self.replay.is_none()
            && self.to_send.is_empty()
            && self.polls.is_empty()
            && !self.outstanding()
            && self.wire_queued() == 0
            && self.bench.idle()
            && !self.drivers.iter_mut().flat_map(|driver| driver.queues()).any(|pair| pair.rx.has_pending())
    }

    pub(super) fn hang_ps(&self) -> u64 {
        self.setup.hang_cycles.saturating_mul(4_000)
    }

    /// Since when something should have moved: a capture may have gaps of seconds.
    pub(super) fn owed_since(&mut self) -> Time {
        let start = self.replay.as_mut().map_or(Time::ZERO, |replay| replay.first_start(&self.bench));
        self.last_progress.max(start)
    }

    /// A hang is a long time in which no frame entered, left or was lost.
    pub(super) fn watch(&mut self) -> Result<(), SessionError> {
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
