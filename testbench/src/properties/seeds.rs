//! Properties whose cases are seeds, a list of actions each: the kept ones first, then the run's own; and how they fail.

use std::fmt::Debug;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use super::coverage::Coverage;
use super::{Config, FailedCase, Failure, Property, Report};
use crate::actions::Differs;

/// Try the kept seeds, and then the seeds of this run. Case n of a run is seed `config.seed` + n, whatever the others
/// are, so that `--only n` is the same case. `count` is told what each of this run's own has reached.
pub(super) fn run<K: Debug, T>(
    property: &Property,
    config: &Config<'_>,
    mut coverage: Coverage,
    run_seed: impl Fn(u64) -> Result<T, Box<Differs<K>>>,
    count: impl Fn(&mut Coverage, &T),
) -> Result<Report, Failure> {
    if config.only.is_none() {
        for seed in kept(property) {
            run_seed(seed).map_err(|differs| failed(property, config, &differs))?;
        }
    }
    let numbers = config.only.map_or(0..u64::from(config.cases), |only| only..only + 1);
    let mut done = 0;
    for number in numbers {
        let reached = run_seed(config.seed.wrapping_add(number)).map_err(|differs| {
            keep(property, &differs);
            failed(property, config, &differs)
        })?;
        count(&mut coverage, &reached);
        done += 1;
        (config.progress)(done, config.cases.into());
    }
    let missing = coverage.missing();
    if config.only.is_none() && config.cases >= property.full && !missing.is_empty() {
        return Err(Failure::Coverage { cases: config.cases, missing });
    }
    Ok(Report { cases: done as u32, coverage: coverage.lines() })
}

fn failed<K: Debug>(property: &Property, config: &Config<'_>, differs: &Differs<K>) -> Failure {
    let number = differs.seed.wrapping_sub(config.seed);
    let (seed, only) = if number < u64::from(u32::MAX) { (config.seed, number) } else { (differs.seed, 0) };
    let card = if config.rtl == "rtl" { String::new() } else { format!(" --card {}", config.rtl) };
    let repro = format!("./onic test {} --seed {seed:#x} --only {only}{card}", property.name);
    Failure::Case(Box::new(FailedCase {
        message: differs.message.clone(),
        case: format!("{} of {} actions: {:?}", differs.actions.len(), differs.of, differs.actions),
        repro,
        inputs: vec!["none are needed".into()],
    }))
}

/// Seeds that once failed: one a line, with what differed behind a `#`.
fn kept(property: &Property) -> Vec<u64> {
    let text = fs::read_to_string(property.kept).unwrap_or_default();
    let seed = |line: &str| u64::from_str_radix(line.split('#').next()?.trim().strip_prefix("0x")?, 16).ok();
    text.lines().filter_map(seed).collect()
}

/// Keep a seed for everybody to try first, once. Where the sources can't be written it is only printed.
fn keep<K>(property: &Property, differs: &Differs<K>) {
    if kept(property).contains(&differs.seed) {
        return;
    }
    let path = Path::new(property.kept);
    if let Some(folder) = path.parent() {
        let _ = fs::create_dir_all(folder);
    }
    let first = differs.message.lines().next().unwrap_or_default();
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
        let _ = writeln!(file, "{:#x} # {first}", differs.seed);
    }
}
