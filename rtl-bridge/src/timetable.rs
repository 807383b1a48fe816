//! When clocks rise: exact, and worked out ahead, a common period at a time.
//!
//! The edges of several clocks repeat once all have begun; OpenNIC's three do after 512 ns. Choosing the next edge afresh
//! each time costs as much as everything else that an idle edge has to do.

use crate::clock::{Edge, Timing};

/// Edges worked out at once, at most. Clocks whose common period has more are worked out block by block for ever.
const BLOCK: usize = 4096;

/// One clock's next edge.
#[derive(Clone, Debug)]
struct Riser {
    timing: Timing,
    next_ps: u64,
    /// What `next_ps` was rounded down by, in `1 / den` ps.
    remainder: u64,
}

impl Riser {
    fn new(timing: Timing) -> Riser {
        Riser { timing, next_ps: timing.phase_ps, remainder: 0 }
    }

    /// Move on to the edge after the next.
    fn rise(&mut self) {
        let Timing { num, den, .. } = self.timing;
        self.next_ps += num / den;
        self.remainder += num % den;
        if self.remainder >= den {
            self.remainder -= den;
            self.next_ps += 1;
        }
    }

    /// Does `ps` hold a whole number of its periods? How many, if so.
    fn periods_in(&self, ps: u64) -> Option<u128> {
        let product = u128::from(ps) * u128::from(self.timing.den);
        let num = u128::from(self.timing.num);
        product.is_multiple_of(num).then_some(product / num)
    }
}

/// Edges of all clocks, in order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timetable {
    /// Each clock behind the block.
    risers: Vec<Riser>,
    /// The edges at hand, `base_ps` left out. Empty only without clocks.
    block: Vec<Edge>,
    /// Which of them is next.
    place: usize,
    base_ps: u64,
    /// The block is one common period of this length: it comes again.
    repeats_ps: Option<u64>,
}

impl Timetable {
    /// One clock more. The table begins again, so add clocks before the first step.
    pub(crate) fn add(&mut self, timing: Timing) {
        self.risers.push(Riser::new(timing));
        self.risers.iter_mut().for_each(|riser| *riser = Riser::new(riser.timing));
        self.base_ps = 0;
        self.fill();
    }

    /// The next edge.
    #[inline]
    pub(crate) fn next(&self) -> Edge {
        match self.block.get(self.place) {
            Some(edge) => Edge { time_ps: self.base_ps + edge.time_ps, rising: edge.rising },
            None => Edge::NEVER,
        }
    }

    /// On to the edge after it.
    #[inline]
    pub(crate) fn step(&mut self) {
        self.place += 1;
        if self.place >= self.block.len() {
            self.turn_over();
        }
    }

    /// Let time pass without edges: a whole number of periods of every clock. False, and nothing done, for another time.
    pub(crate) fn skip(&mut self, ps: u64) -> bool {
        let whole = self.risers.iter().all(|riser| riser.periods_in(ps).is_some());
        self.base_ps += if whole { ps } else { 0 };
        whole
    }

    #[cold]
    fn turn_over(&mut self) {
        match self.repeats_ps {
            Some(period_ps) => {
                self.place = 0;
                self.base_ps += period_ps;
            }
            None => self.fill(),
        }
    }

    /// The next block: the time until all clocks have begun, then a common period, or as much as fits.
    fn fill(&mut self) {
        self.place = 0;
        self.block.clear();
        let begin = self.first();
        let all_begun = self.risers.iter().map(|riser| riser.timing.phase_ps).max().unwrap_or(0);
        self.repeats_ps = self.common_period_ps().filter(|_| begin >= all_begun);
        let until = match self.repeats_ps {
            Some(period_ps) => begin + period_ps,
            None if begin < all_begun => all_begun,
            None => u64::MAX,
        };
        while self.block.len() < BLOCK && self.first() < until {
            let mut edge = Edge { time_ps: self.first(), rising: 0 };
            for (n, riser) in self.risers.iter_mut().enumerate() {
                if riser.next_ps == edge.time_ps {
                    edge.rising |= 1 << n;
                    riser.rise();
                }
            }
            self.block.push(edge);
        }
    }

    fn first(&self) -> u64 {
        self.risers.iter().map(|riser| riser.next_ps).min().unwrap_or(u64::MAX)
    }

    /// The least time that holds whole numbers of all clocks' periods, if its edges fit into a block.
    fn common_period_ps(&self) -> Option<u64> {
        let own = |riser: &Riser| riser.timing.num / gcd(riser.timing.num, riser.timing.den);
        let period_ps = self.risers.iter().try_fold(1u64, |all, riser| {
            let own = own(riser);
            (all / gcd(all, own)).checked_mul(own)
        })?;
        let edges = self.risers.iter().try_fold(0, |sum, riser| Some(sum + riser.periods_in(period_ps)?))?;
        (edges <= BLOCK as u128).then_some(period_ps)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn timing(num: u64, den: u64, phase_ps: u64) -> Timing {
        Timing { num, den, phase_ps }
    }

    /// The definition: edge n of each clock at phase + n · num / den, rounded down.
    fn by_definition(timings: &[Timing], count: usize) -> Vec<Edge> {
        let mut all = std::collections::BTreeMap::new();
        for (clock, t) in timings.iter().enumerate() {
            for n in 0..count as u64 {
                *all.entry(t.phase_ps + n * t.num / t.den).or_insert(0) |= 1 << clock;
            }
        }
        all.into_iter().take(count).map(|(time_ps, rising)| Edge { time_ps, rising }).collect()
    }

    fn by_table(timings: &[Timing], count: usize) -> (Timetable, Vec<Edge>) {
        let mut table = Timetable::default();
        timings.iter().for_each(|t| table.add(*t));
        let edges = (0..count).map(|_| {
            let edge = table.next();
            table.step();
            edge
        });
        let edges = edges.collect();
        (table, edges)
    }

    #[test]
    fn every_edge_is_where_the_definition_has_it() {
        let shell =
            |phases: [u64; 3]| [timing(8000, 1, phases[0]), timing(4000, 1, phases[1]), timing(102_400, 33, phases[2])];
        for phases in [[0; 3], [123, 4567, 1], [0, 0, 1_000_000]] {
            let timings = shell(phases);
            let (table, edges) = by_table(&timings, 20_000);
            assert_eq!(edges, by_definition(&timings, 20_000), "{phases:?}");
            assert_eq!(table.repeats_ps, Some(512_000), "{phases:?}");
        }
    }

    #[test]
    fn clocks_without_a_short_common_period_go_on_too() {
        let timings = [timing(1_000_003, 999, 0), timing(10_007, 10, 5)];
        let (table, edges) = by_table(&timings, 20_000);
        assert_eq!(edges, by_definition(&timings, 20_000));
        assert_eq!(table.repeats_ps, None);
    }

    #[test]
    fn no_clocks_no_edges() {
        assert_eq!(Timetable::default().next(), Edge::NEVER);
    }
}
