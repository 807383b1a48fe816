//! Timing decides nothing: the same frames come to the same end whatever stalls, clock phases, reset length, and
//! contents of registers before reset (case SIM-10).

use proptest::prelude::*;
use traces::synth::Rng;

use super::bed::{self, Bed, Timing};
use super::coverage::Coverage;
use super::traffic::{self, FrameSpec};
use super::trial::Trial;
use super::{Config, Failure, Property, Report, fewer, runner};
use crate::run::InFrame;

/// Frames of a case.
const FRAMES: usize = 40;
/// Runs of a case, each with another timing.
const TIMINGS: usize = 10;

pub(super) const SAME: Property = Property {
    name: "same",
    doc: "ten timings (stalls, clock phases, initial state, reset length) of one input give the same result",
    needs_rtl: true,
    quick: 4,
    full: 60,
    kept: kept!("same"),
    check,
};

#[derive(Clone, Debug)]
struct Case {
    /// Its own timing is the first.
    bed: Bed,
    /// Of the other timings.
    seed: u64,
    frames: Vec<FrameSpec>,
}

impl Case {
    fn wire(&self) -> Vec<InFrame> {
        traffic::frames(&self.frames, self.bed.width, false)
    }

    /// The same conditions, timed otherwise.
    fn others(&self) -> impl Iterator<Item = Bed> {
        let mut rng = Rng::named(self.seed, "timings");
        (1..TIMINGS).map(move |_| Bed { timing: Timing::any(&mut rng), ..self.bed.clone() })
    }
}

fn case() -> impl Strategy<Value = Case> {
    let frames = fewer::shrinking(traffic::any_frame(), FRAMES);
    (bed::bed(), any::<u64>(), frames).prop_map(|(bed, seed, frames)| Case { bed, seed, frames })
}

fn check(property: &Property, config: &Config<'_>) -> Result<Report, Failure> {
    runner::ready(&[config.rtl], &[1, 2])?;
    runner::cases(property, config, Coverage::default(), &case(), Case::wire, |case, coverage| {
        let wire = case.wire();
        let trial = Trial::fast(&case.bed, &wire);
        let first = trial.run(config.rtl)?;
        trial.check(&first)?;
        for bed in case.others() {
            let trial = Trial::fast(&bed, &wire);
            let with = |wrong| format!("{wrong}\n  with {:?}", bed.timing);
            let again = trial.run(config.rtl).map_err(with)?;
            trial.check(&again).and_then(|()| trial.compare(&again, &first)).map_err(with)?;
            coverage.add(&format!("runs after a reset of {} cycles", bed.timing.reset_cycles), 1);
        }
        coverage.add("runs", TIMINGS as u64);
        Ok(())
    })
}
