//! When a frame's beats crossed between shell and QDMA.

use models::observation::{Observation, Point};
use models::time::{Clock, Time};
use regs::Qid;

/// Beats taken of the frame at hand: runs of one each cycle, each with the time of the edge that took its last.
#[derive(Default)]
pub(in crate::card) struct Runs {
    earlier: Vec<(Time, u16)>,
    /// The last run, mostly the only one; not in `earlier` yet. Empty before the first beat.
    last: (Time, u16),
}

impl Runs {
    /// The edge at `time` takes a beat.
    #[inline]
    pub(in crate::card) fn note(&mut self, time: Time) {
        match self.last {
            (before, beats) if beats > 0 && before + Clock::AXIS.num == time => self.last = (time, beats + 1),
            (_, beats) => {
                if beats > 0 {
                    self.earlier.push(self.last);
                }
                self.last = (time, 1);
            }
        }
    }

    /// Beats so far.
    pub(in crate::card) fn beats(&self) -> usize {
        self.earlier.iter().chain([&self.last]).map(|&(_, beats)| usize::from(beats)).sum()
    }

    /// The frame at hand, as it crossed to `qid`.
    pub(in crate::card) fn crossing(&self, qid: Qid) -> impl Iterator<Item = Observation> {
        let ends = |at| at == self.earlier.len();
        self.earlier
            .iter()
            .chain([&self.last])
            .enumerate()
            .map(move |(at, &(time, beats))| Observation { time, point: Point::C2h { qid, beats, last: ends(at) } })
    }

    /// The frame at hand is through, or will never be.
    pub(in crate::card) fn clear(&mut self) {
        self.earlier.clear();
        self.last = (Time::ZERO, 0);
    }
}
