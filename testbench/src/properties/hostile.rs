//! A card that means harm: [`crate::hostile`] as a property.

use super::{Config, FailedCase, Failure, Property, Report};
use crate::hostile::{self, Campaign, Failed, Tally};

pub(super) const RINGS: Property = Property {
    name: "hostile",
    doc: "whatever a card writes into host memory, the driver neither panics nor hangs nor leaves its buffers; what is \
          illegal fails the queue, and a good frame passes after a fresh start",
    needs_rtl: false,
    quick: 20_000,
    full: 1_000_000,
    kept: "",
    check: |property, config| {
        let report = check(property, config, hostile::try_rings)?;
        reached(property, config, report, &hostile::BY_RINGS)
    },
};

pub(super) const REGISTERS: Property = Property {
    name: "hostile-registers",
    doc: "whatever registers answer, each call to the driver ends in time with success or a typed error, and leaves \
          nothing behind",
    needs_rtl: false,
    quick: 2_000,
    full: 100_000,
    kept: "",
    check: |property, config| {
        let report = check(property, config, hostile::try_registers)?;
        reached(property, config, report, &hostile::BY_REGISTERS)
    },
};

/// Cases between two reports of progress.
const PROGRESS_EVERY: u64 = 256;

type Try = fn(&Campaign, &mut dyn FnMut(u64)) -> Result<Tally, Box<Failed>>;

fn check(property: &Property, config: &Config<'_>, attempt: Try) -> Result<Tally, Failure> {
    let campaign = Campaign { cases: config.cases.into(), seed: config.seed, only: config.only };
    let mut progress = |done: u64| {
        if done.is_multiple_of(PROGRESS_EVERY) {
            (config.progress)(done, config.cases.into());
        }
    };
    attempt(&campaign, &mut progress).map_err(|failed| {
        Failure::Case(Box::new(FailedCase {
            message: failed.to_string(),
            case: format!("{} of {}: {}", failed.case, config.cases, failed.deed),
            repro: format!("./onic test {} --seed {:#x} --only {}", property.name, config.seed, failed.case),
            inputs: vec!["none are needed".into()],
        }))
    })
}

/// A full run reaches each error of `names`.
fn reached(property: &Property, config: &Config<'_>, tally: Tally, names: &[&str]) -> Result<Report, Failure> {
    let cases = config.only.map_or(config.cases, |_| 1);
    let missing = tally.missing(names, hostile::GOAL);
    if cases >= property.full && !missing.is_empty() {
        return Err(Failure::Coverage { cases, missing });
    }
    Ok(Report { cases, coverage: tally.lines() })
}
