//! The least input that still fails: delta debugging over frames.
//!
//! Zeller and Hildebrandt's `ddmin` (Simplifying and Isolating Failure-Inducing Input, 2002): leave out one part after the
//! other, ever smaller ones, and keep what still fails. Deterministic; bounded by runs and by frames run, not by the clock,
//! so that the same failure gives the same least input on every machine.

use crate::run::InFrame;

/// How much may be tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Runs.
    pub runs: u64,
    /// Frames in all of them.
    pub frames: u64,
}

impl Budget {
    /// What a failing run spends on its own account: some seconds.
    pub const FAILURE: Budget = Budget { runs: 64, frames: 100_000 };
    /// What `onic reduce` spends.
    pub const COMMAND: Budget = Budget { runs: 4_096, frames: 20_000_000 };
}

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reduced {
    /// Frames that together still fail, in the order of the input.
    pub frames: Vec<InFrame>,
    /// Runs made.
    pub runs: u64,
    /// No single frame of them can be left out. False if the budget ended first.
    pub least: bool,
}

/// Told after each run: runs made, frames left.
pub type Progress<'a> = &'a mut dyn FnMut(u64, usize);

/// Reduce `frames`, which fail as a whole. `suspect` is the position of a frame that is likely to be at fault alone: it is
/// tried first, then everything up to it.
pub fn reduce(
    frames: &[InFrame],
    suspect: Option<usize>,
    budget: Budget,
    fails: &mut dyn FnMut(&[InFrame]) -> bool,
    progress: Progress<'_>,
) -> Reduced {
    let mut search = Search { budget, runs: 0, spent: 0, fails, progress };
    let mut kept = frames.to_vec();
    if let Some(at) = suspect.filter(|&at| at < frames.len()) {
        let alone = vec![frames[at].clone()];
        if search.fails(&alone) == Some(true) {
            return Reduced { frames: alone, runs: search.runs, least: true };
        }
        let until = &frames[..=at];
        if until.len() < frames.len() && search.fails(until) == Some(true) {
            kept = until.to_vec();
        }
    }
    let least = search.ddmin(&mut kept);
    Reduced { frames: kept, runs: search.runs, least }
}

struct Search<'a> {
    budget: Budget,
    runs: u64,
    spent: u64,
    fails: &'a mut dyn FnMut(&[InFrame]) -> bool,
    progress: Progress<'a>,
}

impl Search<'_> {
    /// Whether these fail; `None` if there is no budget left to try.
    fn fails(&mut self, frames: &[InFrame]) -> Option<bool> {
        let cost = frames.len() as u64;
        if self.runs >= self.budget.runs || self.spent.saturating_add(cost) > self.budget.frames {
            return None;
        }
        self.runs += 1;
        self.spent += cost;
        let fails = (self.fails)(frames);
        (self.progress)(self.runs, frames.len());
        Some(fails)
    }

    /// Leave out parts of `kept` until none can be. False if the budget ended before.
    fn ddmin(&mut self, kept: &mut Vec<InFrame>) -> bool {
        let mut parts = 2;
        while kept.len() > 1 {
            match self.without_a_part(kept, parts) {
                None => return false,
                Some(true) => parts = (parts - 1).max(2),
                Some(false) if parts >= kept.len() => return true,
                Some(false) => parts = (2 * parts).min(kept.len()),
            }
        }
        true
    }

    /// Leave out the first of `parts` that is not needed. False if all are.
    fn without_a_part(&mut self, kept: &mut Vec<InFrame>, parts: usize) -> Option<bool> {
        let len = kept.len();
        for part in 0..parts {
            let (from, to) = (len * part / parts, len * (part + 1) / parts);
            let rest: Vec<InFrame> = kept[..from].iter().chain(&kept[to..]).cloned().collect();
            if rest.len() < len && !rest.is_empty() && self.fails(&rest)? {
                *kept = rest;
                return Some(true);
            }
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regs::PortId;

    use super::*;

    fn frames(count: u64) -> Vec<InFrame> {
        (0..count)
            .map(|index| InFrame { port: PortId(0), index, time_ns: None, data: vec![0; 60], err: false })
            .collect()
    }

    fn indices(reduced: &Reduced) -> Vec<u64> {
        reduced.frames.iter().map(|frame| frame.index).collect()
    }

    #[test]
    fn a_suspect_that_fails_alone_takes_one_run() {
        let mut fails = |frames: &[InFrame]| frames.iter().any(|frame| frame.index == 118);
        let reduced = reduce(&frames(4096), Some(118), Budget::FAILURE, &mut fails, &mut |_, _| {});
        assert_eq!((indices(&reduced), reduced.runs, reduced.least), (vec![118], 1, true));
    }

    #[test]
    fn a_budget_ends_the_search_with_what_still_fails() {
        let mut fails = |frames: &[InFrame]| frames.iter().filter(|frame| frame.index % 100 == 7).count() == 10;
        let budget = Budget { runs: 20, frames: u64::MAX };
        let reduced = reduce(&frames(1000), None, budget, &mut fails, &mut |_, _| {});
        assert!(!reduced.least);
        assert_eq!(reduced.runs, 20);
        assert!(fails(&reduced.frames));
        let none = reduce(&frames(1000), None, Budget { runs: 20, frames: 10 }, &mut fails, &mut |_, _| {});
        assert_eq!((none.frames.len(), none.runs), (1000, 0));
    }

    proptest! {
        /// Whatever set of frames it takes to fail, exactly that set is left.
        #[test]
        fn exactly_the_needed_frames_are_left(count in 1u64..200, picks in prop::collection::btree_set(0u64..200, 1..6)) {
            let needed: Vec<u64> = picks.into_iter().filter(|&pick| pick < count).collect();
            prop_assume!(!needed.is_empty());
            let mut fails = |frames: &[InFrame]| needed.iter().all(|need| frames.iter().any(|frame| frame.index == *need));
            let reduced = reduce(&frames(count), Some(needed[0] as usize), Budget::COMMAND, &mut fails, &mut |_, _| {});
            prop_assert!(reduced.least);
            prop_assert_eq!(indices(&reduced), needed);
        }
    }
}
