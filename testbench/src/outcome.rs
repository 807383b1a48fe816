//! What one run on one card did, as data: frames delivered and sent, the fate of each frame, counters, and the sums.
//!
//! A frame's way through the card is followed by the card's own observations, in order at each point: the n-th frame that
//! arrives at a port has the n-th [`Point::RxEnd`]; the n-th accepted one the n-th [`Point::Rss`] of the function that the
//! port belongs to; and the n-th of a queue is the n-th that the driver takes out of it. Nothing is looked up by content.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use models::observation::{Fate, Observation, Point};
use models::time::Time;
use regs::{FuncId, PortId};

use crate::card::Stalls;

/// A frame that the driver took out of a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivered {
    /// Function.
    pub func: FuncId,
    /// Queue, relative to the function.
    pub queue: u16,
    /// The frame, FCS left out.
    pub data: Vec<u8>,
    /// When the driver took it.
    pub time: Time,
    /// When its beats left the shell, where the shell is RTL.
    pub crossing: Option<Crossing>,
}

/// When a frame's beats went from a shell in RTL to the DMA engine: each at one edge of `axis_aclk`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Crossing {
    /// Runs of beats at one edge after the other: the time of the last of them, and how many.
    runs: Vec<(Time, u16)>,
}

/// One cycle of axis_aclk, in ps.
pub const CYCLE_PS: u64 = 4_000;

/// The cycle that an edge ends, for what is taken by that edge: it stands on the pins at `cycle * CYCLE_PS`.
pub fn cycle_before(edge: Time) -> u64 {
    edge.0.saturating_sub(1) / CYCLE_PS
}

impl Crossing {
    /// Append a run.
    pub fn push(&mut self, last: Time, beats: u16) {
        self.runs.push((last, beats));
    }

    /// Beats of the frame.
    pub fn beats(&self) -> usize {
        self.runs.iter().map(|&(_, beats)| usize::from(beats)).sum()
    }

    /// The edge that took the frame's last beat.
    pub fn last(&self) -> Time {
        self.runs.last().map_or(Time::ZERO, |&(time, _)| time)
    }

    /// The edge that took the beat with this byte; for one past the end, the last.
    pub fn of_byte(&self, byte: usize) -> Time {
        let mut end = 0;
        for &(last, beats) in &self.runs {
            end += usize::from(beats);
            if byte / 64 < end {
                return Time(last.0 - (end - 1 - byte / 64) as u64 * CYCLE_PS);
            }
        }
        self.last()
    }
}

/// A frame that left a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Port.
    pub port: PortId,
    /// The frame, FCS left out.
    pub data: Vec<u8>,
    /// `tuser_err`.
    pub err: bool,
    /// When its last beat left.
    pub time: Time,
}

/// What became of one frame in, as the monitors saw it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    /// Index of the frame among those given to this port.
    pub index: usize,
    /// Port.
    pub port: PortId,
    /// When it ended its way through the adapter.
    pub time: Time,
    /// Its fate there, or in the function.
    pub fate: Fate,
    /// Function, hash and table entry, once it has reached the function.
    pub rss: Option<(FuncId, u32, u16)>,
    /// When the function had hashed it.
    pub hashed: Option<Time>,
}

/// One reason for which frames were lost, or a place where they still are.
pub type Counts = BTreeMap<String, u64>;

/// The sum of one run, from one source: in + made = out + drops + inside.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sum {
    /// Frames that entered at the wire.
    pub wire_in: u64,
    /// Frames that the host made.
    pub host_in: u64,
    /// Frames that the driver took out.
    pub host_out: u64,
    /// Frames that left at the wire.
    pub wire_out: u64,
    /// Named drops.
    pub drops: Counts,
    /// Frames still inside the card.
    pub inside: u64,
}

impl Sum {
    /// Add `frames` to a named drop; none adds nothing.
    pub fn lost(&mut self, reason: &str, frames: u64) {
        if frames > 0 {
            *self.drops.entry(reason.to_string()).or_default() += frames;
        }
    }

    /// in + made − out − drops − inside; 0 when the books balance.
    pub fn missing(&self) -> i128 {
        let gone: u64 = self.host_out + self.wire_out + self.drops.values().sum::<u64>() + self.inside;
        i128::from(self.wire_in) + i128::from(self.host_in) - i128::from(gone)
    }
}

impl Sum {
    /// What a clean end must not leave: frames that are missing, or that the card says are inside it still.
    pub fn astray(&self) -> i128 {
        self.missing() + i128::from(self.inside)
    }
}

impl fmt::Display for Sum {
    /// `in 10 + made 0 = out 9 + 0 + drops 1 (port0.error 1) + inside 0`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in {} + made {} = host {} + wire {}", self.wire_in, self.host_in, self.host_out, self.wire_out)?;
        write!(f, " + drops {}", self.drops.values().sum::<u64>())?;
        if !self.drops.is_empty() {
            let list: Vec<String> = self.drops.iter().map(|(reason, frames)| format!("{reason} {frames}")).collect();
            write!(f, " ({})", list.join(", "))?;
        }
        write!(f, " + inside {}", self.inside)
    }
}

/// Everything that one run did.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The card's name.
    pub card: String,
    /// Frames taken out by the driver, in that order.
    pub delivered: Vec<Delivered>,
    /// Frames that left a port, in that order.
    pub sent: Vec<Sent>,
    /// What the monitors saw. Empty for a card without monitors.
    pub observations: Vec<Observation>,
    /// The sum by the card's own counters, read by MMIO; `None` for a card whose counters can't tell.
    pub by_counters: Option<Sum>,
    /// The sum by the testbench's own count at the ports.
    pub by_monitors: Sum,
    /// Reports of the host memory checker.
    pub memory_reports: Vec<String>,
    /// Simulated time at the end.
    pub end: Time,
    /// Queue errors that the driver met.
    pub queue_errors: Vec<String>,
    /// How often a stall pattern struck between the beats of a two-beat frame.
    pub stalls: Stalls,
}

impl Outcome {
    /// Follow each frame given to a port. `function_of` names the function that a port's frames go to.
    pub fn paths(&self, function_of: impl Fn(PortId) -> FuncId) -> Vec<Path> {
        let mut arrived: BTreeMap<PortId, usize> = BTreeMap::new();
        let mut paths: Vec<Path> = Vec::new();
        let mut waiting: BTreeMap<FuncId, VecDeque<usize>> = BTreeMap::new();
        // Two passes: at two clocks, a function's observation may be reported before the port's that caused it.
        for observation in &self.observations {
            if let Point::RxEnd { port, fate } = observation.point {
                let index = arrived.entry(port).or_default();
                paths.push(Path { index: *index, port, time: observation.time, fate, rss: None, hashed: None });
                *index += 1;
                if fate == Fate::Accepted {
                    waiting.entry(function_of(port)).or_default().push_back(paths.len() - 1);
                }
            }
        }
        for observation in &self.observations {
            if let Point::Rss { func, hash, entry, fate } = observation.point
                && let Some(path) = waiting.get_mut(&func).and_then(|queue| queue.pop_front())
            {
                paths[path].rss = Some((func, hash, entry));
                paths[path].hashed = Some(observation.time);
                paths[path].fate = fate;
            }
        }
        paths
    }

    /// For each delivered frame, the path that it took, by order in its queue.
    pub fn paths_of_delivered(&self, paths: &[Path]) -> Vec<Option<usize>> {
        let mut queues: BTreeMap<(FuncId, u16), VecDeque<usize>> = BTreeMap::new();
        for (i, path) in paths.iter().enumerate() {
            if let (Some((func, _, entry)), Fate::Accepted) = (path.rss, path.fate) {
                queues.entry((func, entry)).or_default().push_back(i);
            }
        }
        self.delivered.iter().map(|d| queues.get_mut(&(d.func, d.queue)).and_then(|q| q.pop_front())).collect()
    }

    /// Packets and bytes of each (function, queue).
    pub fn by_queue(&self) -> BTreeMap<(FuncId, u16), (u64, u64)> {
        let mut table = BTreeMap::new();
        for frame in &self.delivered {
            let (packets, bytes): &mut (u64, u64) = table.entry((frame.func, frame.queue)).or_default();
            *packets += 1;
            *bytes += frame.data.len() as u64;
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64, point: Point) -> Observation {
        Observation { time: Time::from_ns(ns), point }
    }

    #[test]
    fn a_frame_is_followed_past_the_ones_that_are_lost() {
        let (port, func) = (PortId(0), FuncId(0));
        let rss = |hash, entry, fate| Point::Rss { func, hash, entry, fate };
        let outcome = Outcome {
            observations: vec![
                at(1, Point::RxEnd { port, fate: Fate::Error }),
                at(2, Point::RxEnd { port, fate: Fate::Accepted }),
                at(3, rss(7, 1, Fate::QueueRange)),
                at(4, Point::RxEnd { port, fate: Fate::Accepted }),
                at(5, rss(8, 0, Fate::Accepted)),
            ],
            delivered: vec![Delivered { func, queue: 0, data: vec![1], time: Time::from_ns(6), crossing: None }],
            ..Outcome::default()
        };
        let paths = outcome.paths(|_| func);
        assert_eq!(paths.iter().map(|p| p.fate).collect::<Vec<_>>(), [Fate::Error, Fate::QueueRange, Fate::Accepted]);
        assert_eq!(outcome.paths_of_delivered(&paths), [Some(2)]);
        assert_eq!(paths[2].rss, Some((func, 8, 0)));
    }

    #[test]
    fn each_byte_has_the_edge_of_its_beat() {
        let mut crossing = Crossing::default();
        crossing.push(Time(12_000), 2); // beats at 8 and 12 ns
        crossing.push(Time(24_000), 1);
        assert_eq!([0, 63, 64, 128, 500].map(|byte| crossing.of_byte(byte).0), [8_000, 8_000, 12_000, 24_000, 24_000]);
        assert_eq!((crossing.beats(), crossing.last(), cycle_before(crossing.last())), (3, Time(24_000), 5));
    }

    #[test]
    fn an_uncounted_loss_shows_in_the_sum() {
        let mut sum = Sum { wire_in: 10, host_out: 7, ..Sum::default() };
        sum.drops.insert("error".into(), 2);
        assert_eq!(sum.missing(), 1);
        sum.inside = 1;
        assert_eq!(sum.missing(), 0);
    }
}
