//! The QDMA engine in RTL against the QDMA model: [`crate::differential`] as properties.

use super::coverage::Coverage;
use super::{Config, FailedCase, Failure, Property, Report, seeds};
use crate::differential::{self, CHECKS, Check, DIRECTED, Kind, Shape, Tally};

pub(super) const ACTIONS: Property = Property {
    name: "differential",
    doc: "whatever a driver and a shell do, the QDMA model and the engine in RTL agree on frames, host memory, status \
          words, interrupts, errors and contexts",
    needs_rtl: true,
    quick: 2,
    full: 40,
    kept: kept!("differential"),
    check: actions,
};

pub(super) const LAPS: Property = Property {
    name: "engine-laps",
    doc: "after three laps of any ring size, model and RTL have left the same bytes in both rings",
    needs_rtl: true,
    quick: 9,
    full: u32::MAX,
    kept: "",
    check: laps,
};

pub(super) const GOLDEN: Property = Property {
    name: "engine-golden",
    doc: "acceptance checks 1 to 6 of the register specification hold on the model and on the engine in RTL",
    needs_rtl: true,
    quick: CHECKS.len() as u32,
    full: CHECKS.len() as u32,
    kept: "",
    check: golden,
};

pub(super) const DIRECTED_CHECKS: Property = Property {
    name: "engine-directed",
    doc: "single rules that random actions seldom meet hold on the model and on the engine in RTL",
    needs_rtl: true,
    quick: DIRECTED.len() as u32,
    full: DIRECTED.len() as u32,
    kept: "",
    check: directed,
};

/// Actions of a run.
const COUNT: usize = 2_000;

/// The engine as it is built for these tests: 512 queues, two functions.
const SHAPE: Shape = Shape { queues: 512, functions: 2, seed: 0 };

/// What so many runs must have reached, for each run: every action once; and in 40 of them each error that a driver or a
/// shell can provoke.
const PACKETS_PER_RUN: u64 = 500;

/// Runs in which each error bit must have come once. Source: issue 4, five times in 200 runs.
const RUNS_PER_ERROR: u64 = 40;

fn actions(property: &Property, config: &Config<'_>) -> Result<Report, Failure> {
    let run_seed = |seed| differential::run_seed(seed, COUNT, SHAPE, &differential::model, &differential::rtl);
    seeds::run(property, config, Coverage::with_goals(goals(config.cases)), run_seed, count)
}

fn goals(cases: u32) -> Vec<(String, u64)> {
    let cases = u64::from(cases);
    let mut goals = vec![("packets".to_string(), PACKETS_PER_RUN * cases)];
    goals.extend(Kind::ALL.iter().map(|(kind, _)| (format!("action {kind:?}"), cases)));
    let error = |(name, bit): (&str, u32)| (format!("{name}[{bit}]"), cases.div_ceil(RUNS_PER_ERROR));
    goals.extend(differential::REACHABLE_ERRORS.map(error));
    goals
}

fn count(coverage: &mut Coverage, tally: &Tally) {
    coverage.add("packets", tally.packets);
    coverage.add("settlings compared", tally.rounds);
    for (kind, times) in &tally.actions {
        coverage.add(&format!("action {kind:?}"), *times);
    }
    for ((name, bit), times) in &tally.errors {
        coverage.add(&format!("{name}[{bit}]"), *times);
    }
}

fn laps(property: &Property, config: &Config<'_>) -> Result<Report, Failure> {
    let mut sizes = differential::lap_sizes();
    sizes.truncate(config.cases as usize);
    let mut frames = 0;
    for (done, size) in (1..).zip(&sizes) {
        frames +=
            differential::laps_agree(*size, SHAPE, &differential::model, &differential::rtl).map_err(|message| {
                Failure::Case(Box::new(FailedCase {
                    message,
                    case: format!("rings of {size} entries"),
                    repro: format!("./onic test {} --full", property.name),
                    inputs: vec!["none are needed".into()],
                }))
            })?;
        (config.progress)(done, sizes.len() as u64);
    }
    let line = format!("{} ring sizes, {frames} frames, the same bytes in both rings", sizes.len());
    Ok(Report { cases: sizes.len() as u32, coverage: vec![line] })
}

/// Both engines, by name.
const CARDS: [(&str, differential::Maker<'static>); 2] = [("model", &differential::model), ("rtl", &differential::rtl)];

fn golden(property: &Property, config: &Config<'_>) -> Result<Report, Failure> {
    each(&CHECKS, property, config)
}

fn directed(property: &Property, config: &Config<'_>) -> Result<Report, Failure> {
    each(&DIRECTED, property, config)
}

/// Each check on both engines.
fn each(checks: &[Check], property: &Property, config: &Config<'_>) -> Result<Report, Failure> {
    let mut coverage = Vec::new();
    for (done, check) in (1..).zip(checks) {
        for (card, make) in CARDS {
            let seen = (check.run)(make).map_err(|message| {
                Failure::Case(Box::new(FailedCase {
                    message: format!("{} on {card}: {message}", check.name),
                    case: check.name.into(),
                    repro: format!("./onic test {}", property.name),
                    inputs: vec!["none are needed".into()],
                }))
            })?;
            coverage.push(format!("{} on {card}: {seen}", check.name));
        }
        (config.progress)(done, checks.len() as u64);
    }
    Ok(Report { cases: checks.len() as u32, coverage })
}
