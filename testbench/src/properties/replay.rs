//! The main property: whatever comes in at the wire, the RTL does with it what the model does, and both do what the
//! specification says.

use proptest::prelude::*;

use super::bed::{self, Bed};
use super::coverage::Coverage;
use super::oracle::{self, Fate};
use super::traffic::{self, FrameSpec};
use super::trial::Trial;
use super::{Config, Failure, Property, Report, fewer, runner};
use crate::outcome::Outcome;
use crate::run::InFrame;

/// Frames of a case.
const FRAMES: usize = 100;

pub(super) const REPLAY: Property = Property {
    name: "replay",
    doc: "any frames, key, table, queues, stalls and phases: model = RTL = specification, per queue and in order",
    needs_rtl: true,
    quick: 40,
    full: 500,
    kept: kept!("replay"),
    check,
};

#[derive(Clone, Debug)]
struct Case {
    bed: Bed,
    /// Runts get zeros up to 60 bytes.
    pad: bool,
    frames: Vec<FrameSpec>,
}

impl Case {
    fn wire(&self) -> Vec<InFrame> {
        traffic::frames(&self.frames, self.bed.width, self.pad)
    }
}

fn case() -> impl Strategy<Value = Case> {
    (bed::bed(), any::<bool>(), fewer::shrinking(traffic::any_frame(), FRAMES)).prop_map(|(bed, pad, frames)| Case {
        bed,
        pad,
        frames,
    })
}

fn check(property: &Property, config: &Config<'_>) -> Result<Report, Failure> {
    runner::ready(&["model", config.rtl], &[1, 2])?;
    let scratch = runner::scratch(config, "replay-coverage.dat")?;
    runner::cases(property, config, Coverage::with_goals(goals(config)), &case(), Case::wire, |case, coverage| {
        let wire = case.wire();
        let trial = Trial::fast(&case.bed, &wire);
        let model = trial.run("model")?;
        let (rtl, gaps) = trial.run_covered(config.rtl, &scratch)?;
        // The model first: where it is wrong by itself, what differs is no news.
        trial.check(&model)?;
        trial.check(&rtl)?;
        trial.compare(&rtl, &model)?;
        count(coverage, case, &wire, &rtl, gaps);
        Ok(())
    })
}

fn goals(config: &Config<'_>) -> Vec<(String, u64)> {
    let mut goals: Vec<(String, u64)> = vec![("frames".into(), 30_000)];
    goals.extend([0, 1, 63].map(|rest| (format!("length mod 64 = {rest}"), 100)));
    goals.extend([1, 2, 3].map(|beats| (format!("frames of {beats} beats"), 1_000)));
    goals.push((STALLED_WIRE.into(), 1_000));
    if config.holds_qdma_streams() {
        goals.push((STALLED_C2H.into(), 1_000));
    }
    goals.push((HASH_GAPS.into(), 1_000));
    goals.extend((1..=16).map(|queues| (format!("cases with {queues} queues"), 1)));
    goals.extend((0..2).map(|func| (format!("frames to fn{func}"), 1_000)));
    goals.extend(["MAC errors", "runts kept", "outside the queues"].map(|name| (name.to_string(), 500)));
    goals
}

const STALLED_WIRE: &str = "two-beat frames held between beats, wire";
const STALLED_C2H: &str = "two-beat frames held between beats, C2H";
const HASH_GAPS: &str = "cycles the hash waited for a second beat";

fn count(coverage: &mut Coverage, case: &Case, wire: &[InFrame], rtl: &Outcome, gaps: u64) {
    coverage.add("frames", wire.len() as u64);
    coverage.add(&format!("cases with {} queues", case.bed.queues), 1);
    coverage.add(
        &format!("cases with stalls {}", case.bed.timing.stalls.to_string().split(':').next().unwrap_or_default()),
        1,
    );
    for frame in wire {
        let len = frame.data.len();
        if let rest @ (0 | 1 | 63) = len % 64 {
            coverage.add(&format!("length mod 64 = {rest}"), 1);
        }
        if let beats @ 1..=3 = len.div_ceil(64) {
            coverage.add(&format!("frames of {beats} beats"), 1);
        }
        coverage.add("runts kept", u64::from(len < 60));
        match oracle::fate(&case.bed, frame) {
            Fate::Error => coverage.add("MAC errors", 1),
            Fate::Queue { func, .. } => coverage.add(&format!("frames to fn{}", func.0), 1),
            Fate::QueueRange { .. } => coverage.add("outside the queues", 1),
        }
    }
    coverage.add(STALLED_WIRE, rtl.stalls.wire_in);
    coverage.add(STALLED_C2H, rtl.stalls.c2h);
    coverage.add(HASH_GAPS, gaps);
}
