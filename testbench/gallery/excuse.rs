//! Which missing frames a driver has owned up to. Everything else that is missing was lost in silence.
//!
//! A [`Told`](super::evidence::Told) excuses a frame if all of this holds:
//!
//! - The frame is of the function, queue and direction that was told of.
//! - It was taken by the time that the queue ran again ([`Excuse::until`]): by the card, where it came from the wire (the end
//!   of its way through the packet adapter), or by the driver, where it was to be sent. What then lay between adapter and host
//!   memory, or in the queue's rings, goes with the old queue, and so does what comes while there is none. What is taken
//!   later meets the new queue.
//! - No later frame of its queue had come through before the telling. A queue has an order: a frame that was passed by then
//!   had been lost by something else.
//!
//! Whether the driver had cause to tell is another question, and asked elsewhere.
//!
//! Frames that no telling excuses may be among those that the driver counted as dropped or given up: so many of its function,
//! and no more. Which ones, a count does not say.

use std::collections::{BTreeMap, BTreeSet};

use driver_core::Side;
use models::time::Time;
use regs::FuncId;
use traces::Point;

use super::evidence::{Evidence, Posted};
use super::stage::number_of;
use crate::scoreboard::Emerged;

/// The frames of which a telling makes no secret.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Excuse {
    /// Whose.
    pub func: FuncId,
    /// Of which queue, relative; of all of them.
    pub queue: Option<u16>,
    /// In which direction; in both.
    pub side: Option<Side>,
    /// Taken by then. [`Time::NEVER`] while the queue has not run again.
    pub until: Time,
}

impl Excuse {
    fn covers(&self, lane: Lane) -> bool {
        self.func == lane.func
            && self.queue.is_none_or(|queue| queue == lane.queue)
            && self.side.is_none_or(|side| side == lane.side)
    }
}

/// One direction of a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Lane {
    func: FuncId,
    queue: u16,
    side: Side,
}

/// A frame on its way through a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Passage<Id> {
    id: Id,
    /// When the card, or else the driver, took it.
    taken: Time,
    /// When it came through.
    through: Option<Time>,
}

/// Of one queue's frames, in their order, those that are missing and that no telling excuses.
fn untold<Id: Copy>(evidence: &Evidence, lane: Lane, frames: &[Passage<Id>]) -> Vec<Id> {
    // The first time at which a later frame came through.
    let mut passed = Time::NEVER;
    let mut untold = Vec::new();
    for frame in frames.iter().rev() {
        match frame.through {
            Some(time) => passed = passed.min(time),
            None if evidence.excuses(lane, frame.taken, passed) => {}
            None => untold.push(frame.id),
        }
    }
    untold
}

impl Evidence {
    fn excuses(&self, lane: Lane, taken: Time, passed: Time) -> bool {
        self.told
            .iter()
            .filter(|told| told.time < passed)
            .filter_map(|told| told.excuse)
            .any(|excuse| excuse.covers(lane) && taken <= excuse.until)
    }
}

/// Takes away from the received frames that are missing, `lost`, those that are excused, and returns how many of them were
/// told of rather than counted. `expected` is what should have come, each queue's frames in order, with the time at which
/// the card took them.
pub fn excuse_received(evidence: &Evidence, expected: &[&Emerged], lost: &mut BTreeSet<usize>) -> u64 {
    let mut told = 0;
    let mut left: BTreeMap<FuncId, Vec<usize>> = BTreeMap::new();
    for ((func, queue), positions) in queues_of(expected) {
        let mut arrivals = evidence.outcome.delivered.iter().filter(|frame| (frame.func, frame.queue) == (func, queue));
        let passages: Vec<Passage<usize>> = positions
            .into_iter()
            .map(|id| {
                // One that came through elsewhere counts as passed at the end: it is told for itself.
                let mut arrival = || arrivals.next().map_or(evidence.end, |frame| frame.time);
                let through = (!lost.contains(&id)).then(&mut arrival);
                Passage { id, taken: expected[id].time, through }
            })
            .collect();
        let missing = passages.iter().filter(|passage| passage.through.is_none()).count();
        let untold = untold(evidence, Lane { func, queue, side: Side::Rx }, &passages);
        told += (missing - untold.len()) as u64;
        for passage in passages.iter().filter(|passage| !untold.contains(&passage.id)) {
            lost.remove(&passage.id);
        }
        left.entry(func).or_default().extend(untold);
    }
    for (func, positions) in left {
        if positions.len() as u64 <= evidence.rx_dropped(func) {
            positions.iter().for_each(|position| {
                lost.remove(position);
            });
        }
    }
    told
}

/// Positions of what was expected in each queue, in order.
fn queues_of(expected: &[&Emerged]) -> BTreeMap<(FuncId, u16), Vec<usize>> {
    let mut queues: BTreeMap<(FuncId, u16), Vec<usize>> = BTreeMap::new();
    for (position, frame) in expected.iter().enumerate() {
        if let (Point::Function(func), Some(queue)) = (frame.point, frame.queue) {
            queues.entry((FuncId(func), queue)).or_default().push(position);
        }
    }
    queues
}

/// Frames taken to send that never left, and that nothing excuses.
pub fn unexcused_sent(evidence: &Evidence) -> Vec<&Posted> {
    let mut left: BTreeMap<FuncId, Vec<&Posted>> = BTreeMap::new();
    for posted in untold_sent(evidence) {
        left.entry(posted.func).or_default().push(posted);
    }
    left.retain(|func, frames| frames.len() as u64 > evidence.tx_abandoned(*func));
    left.into_values().flatten().collect()
}

/// Frames taken to send that have not left, and of which no driver has told; in the order in which they were taken.
pub fn untold_sent(evidence: &Evidence) -> Vec<&Posted> {
    let sent = evidence.outcome.sent.iter();
    let left: BTreeMap<u64, Time> = sent.filter_map(|frame| Some((number_of(&frame.data)?, frame.time))).collect();
    let mut queues: BTreeMap<(FuncId, u16), Vec<Passage<usize>>> = BTreeMap::new();
    for (id, posted) in evidence.posted.iter().enumerate() {
        let through = left.get(&posted.number).copied();
        queues.entry((posted.func, posted.queue)).or_default().push(Passage { id, taken: posted.time, through });
    }
    let of_queue = |((func, queue), frames): ((FuncId, u16), Vec<Passage<usize>>)| {
        untold(evidence, Lane { func, queue, side: Side::Tx }, &frames)
    };
    let positions: BTreeSet<usize> = queues.into_iter().flat_map(of_queue).collect();
    positions.into_iter().map(|position| &evidence.posted[position]).collect()
}
