//! `onic test`: doctor, goldens, the gallery and properties, one line each, and one code.

use std::cell::RefCell;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;

use super::args::TestArgs;
use super::exit::{Exit, Failure};
use super::load;
use super::progress::Progress;
use super::report;
use crate::card::{Choice, Shape};
use crate::doctor;
use crate::execute::ExecuteError;
use crate::gallery::{self, Sound, Standing};
use crate::golden_check;
use crate::junit::{Outcome, Suite};
use crate::properties::{self, Config, Failure as Failed, Property};

/// One thing to be tried.
struct Check {
    class: &'static str,
    name: String,
    run: Box<dyn Fn(&mut Progress) -> Outcome>,
}

pub(super) fn run(args: &TestArgs) -> Result<Exit, Failure> {
    let wanted = |check: &Check| {
        args.filter.as_ref().is_none_or(|filter| format!("{} {}", check.class, check.name).contains(filter.as_str()))
    };
    let checks: Vec<Check> = checks(args)?.into_iter().filter(wanted).collect();
    if args.list {
        checks.iter().for_each(|check| println!("{} {}", check.class, check.name));
        return Ok(Exit::Agreed);
    }
    let mut suite = Suite::new("onic");
    let mut progress = Progress::new();
    for (at, check) in checks.iter().enumerate() {
        let begin = Instant::now();
        let outcome = (check.run)(&mut progress);
        progress.finish();
        let (mark, more) = match &outcome {
            Outcome::Passed => ("ok     ", String::new()),
            Outcome::Failed(_, text) | Outcome::Error(text) => ("FAILED ", format!("\n{text}")),
            Outcome::Skipped(why) => ("skipped", format!(": {why}")),
        };
        println!(
            "{:>3}/{} {mark} {:>5.1} s  {} {}{more}",
            at + 1,
            checks.len(),
            begin.elapsed().as_secs_f64(),
            check.class,
            check.name
        );
        suite.push(check.class, &check.name, outcome);
    }
    finish(&suite, args.junit.as_deref())
}

fn finish(suite: &Suite, junit: Option<&Path>) -> Result<Exit, Failure> {
    if let Some(path) = junit {
        suite.save(path).with_context(|| path.display().to_string())?;
    }
    let count = |wanted: fn(&Outcome) -> bool| suite.checks.iter().filter(|check| wanted(&check.outcome)).count();
    let passed = count(|outcome| matches!(outcome, Outcome::Passed));
    let failed = count(|outcome| matches!(outcome, Outcome::Failed(..) | Outcome::Error(_)));
    println!("{passed} passed, {failed} failed, {} skipped", count(|outcome| matches!(outcome, Outcome::Skipped(_))));
    Ok(match (failed, passed) {
        (0, 0) => Exit::NothingCompared,
        (0, _) => Exit::Agreed,
        _ => Exit::Difference,
    })
}

fn checks(args: &TestArgs) -> Result<Vec<Check>, Failure> {
    let card = Choice::named(&args.card.card);
    let mut checks = doctor_checks(&card, args.full);
    for folder in golden_check::cases(&[])? {
        let name =
            folder.file_name().map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into_owned());
        let card = card.clone();
        let run = move |progress: &mut Progress| golden(&folder, &card, progress);
        checks.push(Check { class: "golden", name, run: Box::new(run) });
    }
    checks.extend(gallery_checks(args));
    checks.extend(property_checks(args));
    Ok(checks)
}

fn doctor_checks(card: &Choice, full: bool) -> Vec<Check> {
    let ended = |result: anyhow::Result<()>| match result {
        Ok(()) => Outcome::Passed,
        Err(error) => Outcome::Failed(error.to_string(), format!("error: {error:#}")),
    };
    let mut checks = vec![Check {
        class: "doctor",
        name: "hash-vectors".into(),
        run: Box::new(move |_| ended(doctor::hash_vectors())),
    }];
    let mut shapes = vec!["1x1"];
    if full {
        shapes.push("2x2");
    }
    for text in shapes {
        for choice in [Choice::named("model"), card.clone()] {
            if choice.name == "model" && checks.iter().any(|check| check.name == format!("registers-model-{text}")) {
                continue;
            }
            let name = format!("registers-{}-{text}", choice.name);
            let run = move |_: &mut Progress| {
                let shape: anyhow::Result<Shape> = text.parse().map_err(anyhow::Error::new);
                ended(shape.and_then(|shape| doctor::registers_agree(&choice, &shape, 1)))
            };
            checks.push(Check { class: "doctor", name, run: Box::new(run) });
        }
    }
    checks
}

fn golden(folder: &Path, card: &Choice, progress: &mut Progress) -> Outcome {
    match golden_check::check(folder, card, &mut |card, done, total| progress.at(card, done, total)) {
        Ok(checked) if checked.passed() => Outcome::Passed,
        Ok(checked) => {
            let mut lines: Vec<String> = checked
                .differences
                .iter()
                .take(5)
                .map(|(card, difference)| format!("error: {card}: {difference}"))
                .collect();
            lines.extend(report::finding_lines(&checked.ran.verdict.findings));
            lines.push(format!("hint: onic golden check {} --card {}", folder.display(), card.name));
            Outcome::Failed(lines.first().cloned().unwrap_or_default(), lines.join("\n"))
        }
        Err(golden_check::CheckError::Card(error)) => Outcome::Error(load::no_card(error).error.to_string()),
        Err(error) => Outcome::Error(format!("error: {error}")),
    }
}

/// The bug gallery: every mutant caught, and driver-core silent.
fn gallery_checks(args: &TestArgs) -> Vec<Check> {
    let (card, seed) = (Choice::named(&args.card.card), args.card.seed);
    // An engine in RTL takes ten times as long as a modelled one.
    let seeds = match (args.full, card.name.as_str()) {
        (true, "rtl") => 10,
        (true, _) => 100,
        (false, _) => 3,
    };
    let seeds = args.seeds.map_or(seeds, u64::from);
    let of_card = card.clone();
    let mutants = move |_: &mut Progress| {
        let here = |row: &&gallery::Row| match &row.standing {
            Standing::Here(mutant) => is_quick(&of_card, mutant.scenario),
            Standing::NotInUserSpace | Standing::Xdp => false,
        };
        let missed = gallery::ROWS.iter().filter(here).try_fold(Vec::new(), |mut missed, row| {
            missed.extend(gallery::try_row(row, &of_card, seed)?.is_none().then_some(row.id));
            Ok(missed)
        });
        judged(missed.map(|missed| missed.into_iter().map(|id| format!("error: nothing catches {id}")).collect()))
    };
    let silence = move |progress: &mut Progress| {
        let mut alarms = Vec::new();
        let quick = gallery::scenarios::ALL.iter().filter(|scenario| is_quick(&card, scenario));
        for (at, scenario) in quick.enumerate() {
            progress.at("silence", at as u64, gallery::scenarios::ALL.len() as u64);
            match gallery::sweep::sweep(scenario, Sound::Core, &card, (seed, seeds), &|| {}) {
                Ok(found) => alarms.extend(
                    found
                        .into_iter()
                        .map(|alarm| format!("error: {}, seed {}: {}", alarm.scenario, alarm.seed, alarm.caught.text)),
                ),
                Err(error) => return judged(Err(error)),
            }
        }
        judged(Ok(alarms))
    };
    vec![
        Check { class: "gallery", name: "mutants-are-caught".into(), run: Box::new(mutants) },
        Check { class: "gallery", name: "driver-core-is-silent".into(), run: Box::new(silence) },
    ]
}

/// The card does it, and no RTL has to be built for it that nothing else needs.
fn is_quick(card: &Choice, scenario: &gallery::Scenario) -> bool {
    scenario.runs_on(card) && (card.name == "model" || scenario.is_square())
}

/// Nothing to say is a pass.
fn judged(lines: Result<Vec<String>, ExecuteError>) -> Outcome {
    match lines {
        Ok(lines) if lines.is_empty() => Outcome::Passed,
        Ok(mut lines) => {
            lines.push("hint: onic gallery".into());
            Outcome::Failed(lines[0].lines().next().unwrap_or_default().into(), lines.join("\n"))
        }
        Err(error) => Outcome::Error(load::no_card(error).error.to_string()),
    }
}

fn property_checks(args: &TestArgs) -> Vec<Check> {
    let (seed, only) = (args.card.seed, args.only);
    let rtl = if args.card.card == "rtl" { "rtl" } else { "hybrid" };
    let has_rtl = cfg!(feature = "rtl") && args.card.card != "model";
    properties::all()
        .iter()
        .map(|property| {
            let cases = args.seeds.unwrap_or(if args.full { property.full } else { property.quick });
            let run = move |progress: &mut Progress| match has_rtl || !property.needs_rtl {
                true => try_property(property, cases, rtl, seed, only, progress),
                false => Outcome::Skipped("it is about RTL".into()),
            };
            Check { class: "property", name: property.name.into(), run: Box::new(run) }
        })
        .collect()
}

fn try_property(
    property: &Property,
    cases: u32,
    rtl: &'static str,
    seed: u64,
    only: Option<u64>,
    progress: &mut Progress,
) -> Outcome {
    let progress = RefCell::new(progress);
    let told = |done, total| progress.borrow_mut().at(property.name, done, total);
    let config = Config { cases, seed, rtl, only, folder: Path::new(crate::failure::FOLDER), progress: &told };
    match property.run(&config) {
        Ok(report) => {
            report.coverage.iter().for_each(|line| eprintln!("{}: {line}", property.name));
            Outcome::Passed
        }
        Err(Failed::Card(error)) => Outcome::Error(load::no_card(error).error.to_string()),
        Err(failure) => {
            let text = failure.to_string();
            Outcome::Failed(text.lines().next().unwrap_or_default().into(), format!("error: {text}"))
        }
    }
}
