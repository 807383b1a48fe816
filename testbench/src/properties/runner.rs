//! proptest around a check: cases from a seed, shrinking, kept failures; and plain sweeps.

use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::fs;
use std::path::PathBuf;

use proptest::strategy::Strategy;
use proptest::test_runner::{
    Config as ProptestConfig, FileFailurePersistence, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner,
};
use traces::synth::Rng;

use super::bed::Bed;
use super::coverage::Coverage;
use super::{Config, FailedCase, Failure, Property, Report};
use crate::failure;
use crate::run::InFrame;

/// Runs made to shrink a failing case: enough to leave out each of 100 frames and then some, and it ends within
/// minutes.
const SHRINK_RUNS: u32 = 600;

/// See that these cards can be had, and build what they need, before any case wants them.
pub(super) fn ready(cards: &[&str], widths: &[u8]) -> Result<(), Failure> {
    for &width in widths {
        let bed = Bed { width, ..Bed::plain(1) };
        for card in cards {
            bed.card(card).make(&bed.shape())?;
        }
    }
    Ok(())
}

/// A file for passing use in the folder.
pub(super) fn scratch(config: &Config<'_>, name: &str) -> Result<PathBuf, Failure> {
    fs::create_dir_all(config.folder).map_err(|source| Failure::Folder { path: config.folder.into(), source })?;
    Ok(config.folder.join(name))
}

/// Try random cases.
pub(super) fn cases<S: Strategy>(
    property: &Property,
    config: &Config<'_>,
    coverage: Coverage,
    strategy: &S,
    frames: impl Fn(&S::Value) -> Vec<InFrame>,
    check: impl Fn(&S::Value, &mut Coverage) -> Result<(), String>,
) -> Result<Report, Failure>
where
    S::Value: Debug,
{
    let mut runner = TestRunner::new_with_rng(proptest_config(property, config), rng(property, config.seed));
    let coverage = RefCell::new(coverage);
    let done = Cell::new(0);
    let result = runner.run(strategy, |case| {
        check(&case, &mut coverage.borrow_mut()).map_err(TestCaseError::fail)?;
        done.set(done.get() + 1);
        (config.progress)(done.get(), config.cases.into());
        Ok(())
    });
    match result {
        Ok(()) => report(property, config.cases, &coverage.into_inner()),
        Err(TestError::Fail(reason, case)) => Err(failed(property, config, reason.message(), &case, &frames(&case))),
        Err(TestError::Abort(reason)) => Err(failed(property, config, reason.message(), &"no case could be made", &[])),
    }
}

/// Try each of `steps`.
pub(super) fn sweep<T: Debug>(
    property: &Property,
    config: &Config<'_>,
    mut coverage: Coverage,
    steps: &[T],
    frames: impl Fn(&T) -> Vec<InFrame>,
    check: impl Fn(&T, &mut Coverage) -> Result<(), String>,
) -> Result<Report, Failure> {
    for (done, step) in steps.iter().enumerate() {
        check(step, &mut coverage).map_err(|message| failed(property, config, &message, step, &frames(step)))?;
        (config.progress)(done as u64 + 1, steps.len() as u64);
    }
    report(property, steps.len() as u32, &coverage)
}

fn report(property: &Property, cases: u32, coverage: &Coverage) -> Result<Report, Failure> {
    let missing = coverage.missing();
    if cases >= property.full && !missing.is_empty() {
        return Err(Failure::Coverage { cases, missing });
    }
    Ok(Report { cases, coverage: coverage.lines() })
}

fn proptest_config(property: &Property, config: &Config<'_>) -> ProptestConfig {
    ProptestConfig {
        cases: config.cases,
        max_shrink_iters: SHRINK_RUNS,
        max_shrink_time: 0,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(property.kept))),
        source_file: None,
        ..ProptestConfig::default()
    }
}

/// A sequence of its own for each property, so that one more case of one does not shift another's.
fn rng(property: &Property, seed: u64) -> TestRng {
    let mut bytes = [0; 32];
    Rng::named(seed, property.name).fill(&mut bytes);
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}

fn failed(property: &Property, config: &Config<'_>, message: &str, case: &dyn Debug, frames: &[InFrame]) -> Failure {
    let path = config.folder.join(format!("{}-smallest.pcapng", property.name));
    let written = fs::create_dir_all(config.folder).and_then(|()| failure::save_input(&path, frames));
    Failure::Case(Box::new(FailedCase {
        message: message.to_string(),
        case: format!("{case:?}"),
        repro: format!(
            "./onic test {} --card {} --seed {:#x} --seeds {}",
            property.name, config.rtl, config.seed, config.cases
        ),
        inputs: written.unwrap_or_else(|error| vec![format!("{}: {error}", path.display())]),
    }))
}
