//! `onic golden`: check, bless, new, diff. Expected results under version control.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use serde::Serialize;
use traces::golden::{Case, Expected, GoldenDifference, Input as CaseInput, Origin, compare};
use traces::{Point, digest};

use super::args::{GoldenAction, GoldenArgs};
use super::exit::{Exit, Failure};
use super::failing::{self, Failing};
use super::load;
use super::progress::Progress;
use super::report::{self, FindingReport};
use super::repro::Repro;
use crate::card::{Choice, Shape};
use crate::golden_check::{self, CheckError, Checked, Ran};
use crate::input::Source;
use crate::junit::{Outcome as Ended, Suite};

/// How many differences of one case are printed; the rest are counted.
const SHOWN: usize = 10;

/// Why a case was blessed, one line each time, oldest first.
const HISTORY: &str = "history.txt";

pub(super) fn run(args: &GoldenArgs) -> Result<Exit, Failure> {
    match &args.action {
        GoldenAction::Check { cases, card, junit, json } => check(cases, card, junit.as_deref(), *json),
        GoldenAction::Bless { cases, card, reason } => bless(cases, card, reason),
        GoldenAction::New { case, inputs, shape, card, reason } => new(case, inputs, shape, card, reason),
        GoldenAction::Diff { cases, card } => diff(cases, card),
    }
}

/// `onic golden check --json`.
#[derive(Serialize)]
struct CheckReport {
    version: u32,
    command: &'static str,
    exit: u8,
    card: String,
    passed: usize,
    failed: usize,
    cases: Vec<CaseReport>,
}

/// One case.
#[derive(Serialize)]
struct CaseReport {
    name: String,
    folder: String,
    origin: Option<&'static str>,
    frames: u64,
    passed: bool,
    error: Option<String>,
    differences: Vec<DifferenceReport>,
    findings: Vec<FindingReport>,
    repro: Option<String>,
}

/// One difference from `expected.txt`.
#[derive(Serialize)]
struct DifferenceReport {
    card: String,
    file: String,
    line: usize,
    class: String,
    place: String,
    slot: String,
    number: usize,
    field: &'static str,
    expected: String,
    got: String,
    input: Option<String>,
}

impl DifferenceReport {
    fn of(folder: &Path, card: &str, difference: &GoldenDifference) -> DifferenceReport {
        DifferenceReport {
            card: card.into(),
            file: golden_check::expected_path(folder).display().to_string(),
            line: difference.line,
            class: difference.class.to_string(),
            place: difference.group.point.to_string(),
            slot: difference.group.slot.to_string(),
            number: difference.number,
            field: difference.field,
            expected: difference.expected.clone(),
            got: difference.got.clone(),
            input: difference.input.map(|(point, index)| format!("{point}/{index}")),
        }
    }
}

/// One case's way to the report.
struct CaseResult {
    report: CaseReport,
    exit: Exit,
    ended: Ended,
}

impl CaseResult {
    /// As the list of cases shows it.
    fn line(&self) -> String {
        let CaseReport { name, passed, frames, error, differences, findings, .. } = &self.report;
        match (passed, error) {
            (true, _) => format!("ok      {name}, {frames} frames"),
            (false, Some(error)) => format!("FAILED  {name}: {error}"),
            (false, None) => format!(
                "FAILED  {name}: {} differences from expected.txt, {} other findings",
                differences.len(),
                findings.len()
            ),
        }
    }
}

fn check(named: &[PathBuf], card: &str, junit: Option<&Path>, json: bool) -> Result<Exit, Failure> {
    let cases = golden_check::cases(named)?;
    let choice = Choice::named(card);
    let mut suite = Suite::new("golden");
    let mut results: Vec<CaseResult> = Vec::new();
    let mut kept = false;
    for (at, folder) in cases.iter().enumerate() {
        let checked = with_progress(|progress| golden_check::check(folder, &choice, progress));
        if let Err(CheckError::Card(error)) = checked {
            return Err(load::no_card(error));
        }
        let result = case_result(folder, card, &choice, checked, &mut kept);
        if !json {
            println!("{:>3}/{} {}", at + 1, cases.len(), result.line());
        }
        suite.push("golden", &name_of(folder), result.ended.clone());
        results.push(result);
    }
    let exit = results.iter().map(|result| result.exit).max().unwrap_or(Exit::NothingCompared);
    let passed = results.iter().filter(|result| result.report.passed).count();
    let failed = results.len() - passed;
    if json {
        let cases = results.into_iter().map(|result| result.report).collect();
        let report = CheckReport {
            version: report::VERSION,
            command: "golden",
            exit: exit.code(),
            card: card.into(),
            passed,
            failed,
            cases,
        };
        print!("{}", report::json(&report)?);
    } else {
        println!("golden: {passed} passed, {failed} failed, {card} and model");
    }
    if let Some(path) = junit {
        suite.save(path).with_context(|| path.display().to_string())?;
    }
    Ok(exit)
}

fn name_of(folder: &Path) -> String {
    folder.file_name().map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn with_progress<T>(run: impl FnOnce(&mut dyn FnMut(&str, u64, u64)) -> T) -> T {
    let mut progress = Progress::new();
    let result = run(&mut |card, done, total| progress.at(card, done, total));
    progress.finish();
    result
}

/// Judge a case, print what is wrong with it, and keep the first failing one in the failure folder.
fn case_result(
    folder: &Path,
    card: &str,
    choice: &Choice,
    checked: Result<Checked, CheckError>,
    kept: &mut bool,
) -> CaseResult {
    let blank = CaseReport {
        name: name_of(folder),
        folder: folder.display().to_string(),
        origin: None,
        frames: 0,
        passed: false,
        error: None,
        differences: Vec::new(),
        findings: Vec::new(),
        repro: None,
    };
    match checked {
        Err(error) => {
            eprintln!("error: {error}");
            if let Some(hint) = error.hint() {
                eprintln!("hint: {hint}");
            }
            let exit = if error.is_input() { Exit::BadInput } else { Exit::Difference };
            let ended = if error.is_input() {
                Ended::Error(error.to_string())
            } else {
                Ended::Failed(error.to_string(), String::new())
            };
            CaseResult { report: CaseReport { error: Some(error.to_string()), ..blank }, exit, ended }
        }
        Ok(checked) => {
            let frames = &checked.ran.loaded.input.frames;
            let mut report = CaseReport {
                origin: Some(checked.ran.loaded.case.origin.name()),
                frames: frames.len() as u64,
                passed: checked.passed(),
                differences: checked
                    .differences
                    .iter()
                    .map(|(card, d)| DifferenceReport::of(folder, card, d))
                    .collect(),
                findings: checked
                    .ran
                    .verdict
                    .findings
                    .iter()
                    .map(|finding| FindingReport::of(finding, frames))
                    .collect(),
                ..blank
            };
            if report.passed {
                return CaseResult { report, exit: Exit::Agreed, ended: Ended::Passed };
            }
            let lines = failure_lines(folder, &checked);
            lines.iter().for_each(|line| eprintln!("{line}"));
            report.repro = Some(keep_or_name(folder, card, choice, &checked, &lines, &report, kept));
            let ended = Ended::Failed(lines.first().cloned().unwrap_or_default(), lines.join("\n"));
            CaseResult { report, exit: Exit::Difference, ended }
        }
    }
}

fn failure_lines(folder: &Path, checked: &Checked) -> Vec<String> {
    let mut lines =
        difference_lines(folder, checked.differences.iter().map(|(card, difference)| (card.as_str(), difference)));
    lines.extend(report::finding_lines(&checked.ran.verdict.findings));
    lines
}

/// `error: traces/golden/x/expected.txt: line 7: … (model)`.
fn difference_lines<'a>(
    folder: &Path,
    differences: impl Iterator<Item = (&'a str, &'a GoldenDifference)>,
) -> Vec<String> {
    let file = golden_check::expected_path(folder);
    let mut lines: Vec<String> =
        differences.map(|(card, difference)| format!("error: {}: {difference} ({card})", file.display())).collect();
    if lines.len() > SHOWN {
        let more = lines.len() - SHOWN;
        lines.truncate(SHOWN);
        lines.push(format!("error: {}: and {more} more", file.display()));
    }
    lines
}

/// The repro line of a failing case; for the first one also the failure folder.
fn keep_or_name(
    folder: &Path,
    card: &str,
    choice: &Choice,
    checked: &Checked,
    lines: &[String],
    report: &CaseReport,
    kept: &mut bool,
) -> String {
    let case = folder.display().to_string();
    let whole = Repro::command(&["golden", "check"]).on(vec![case]).set("card", card);
    if std::mem::replace(kept, true) {
        eprintln!("hint: {whole}");
        return whole.to_string();
    }
    let session = golden_check::session(&checked.ran.loaded, choice);
    let replay = whole.clone().for_command(&["replay"]).set("card", card).set("against", "model");
    let other = failing::with_settings(replay, &checked.ran.loaded);
    let failing = Failing { session: &session, verdict: &checked.ran.verdict, whole, other, from_stdin: false };
    // One packet of a case is a replay's business: check takes whole cases.
    let found = failing.look(&mut Progress::new()).of_whole_input(&failing);
    let text = format!("{}{}\nhint: {}\n", report::text(&checked.ran.verdict), lines.join("\n"), found.repro);
    let kept =
        report::json(report).map_err(anyhow::Error::from).and_then(|json| Ok(failing.keep(&found, &text, &json)?));
    if let Err(error) = kept {
        eprintln!("warning: {}: {error:#}", crate::failure::FOLDER);
    }
    found.repro.to_string()
}

/// Run a case on both cards for its facts, which must agree.
fn agreed(folder: &Path, card: &str) -> Result<Ran, Failure> {
    let ran = with_progress(|progress| golden_check::run(folder, &Choice::named(card), progress)).map_err(failure)?;
    if ran.verdict.agreed() {
        return Ok(ran);
    }
    report::finding_lines(&ran.verdict.findings).iter().for_each(|line| eprintln!("{line}"));
    let error = anyhow!("{}: {card} and model disagree, so there is no result to accept", folder.display());
    Err(Failure::new(Exit::Difference, error)
        .hint(format!("onic replay {} --card {card} --against model", folder.display())))
}

fn failure(error: CheckError) -> Failure {
    match error {
        CheckError::Card(error) => load::no_card(error),
        CheckError::Load(error) => error.into(),
        error => {
            let hint = error.hint();
            let failure = Failure::new(Exit::Difference, anyhow!(error));
            match hint {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        }
    }
}

fn bless(named: &[PathBuf], card: &str, reason: &str) -> Result<Exit, Failure> {
    let reason = checked_reason(reason)?;
    let cases = golden_check::cases(named)?;
    // All or none: what can't be blessed is found before anything is written.
    let mut pending = Vec::new();
    for folder in &cases {
        refuse_measured(folder)?;
        let ran = agreed(folder, card)?;
        pending.push((folder, ran));
    }
    for (folder, ran) in &pending {
        let [_, (_, facts)] = &ran.facts;
        let changes = changes(folder, facts)?;
        println!("{}: {}", folder.display(), changes.summary());
        changes.lines.iter().for_each(|line| println!("  {line}"));
        if changes.count == Some(0) {
            continue;
        }
        write_expected(folder, facts, &reason)?;
    }
    Ok(Exit::Agreed)
}

/// A reason that tells something, on one line.
fn checked_reason(reason: &str) -> Result<String, Failure> {
    let words = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.is_empty() {
        return Err(Failure::from(anyhow!(
            "--reason is empty: a changed result wants a reason that a reviewer can judge"
        )));
    }
    Ok(words)
}

fn refuse_measured(folder: &Path) -> Result<(), Failure> {
    if Case::load(folder)?.origin != Origin::UpstreamMeasured {
        return Ok(());
    }
    let error = anyhow!("{}: its result was measured on upstream's RTL, and is not ours to bless", folder.display());
    Err(Failure::from(error).hint("if the measurements change: cargo run -p traces --example make_golden"))
}

/// What writing `facts` would change.
struct Changes {
    /// Differences; `None` where there was no readable result before.
    count: Option<usize>,
    lines: Vec<String>,
    frames: usize,
}

impl Changes {
    fn summary(&self) -> String {
        match self.count {
            None => format!("new, {} frames", self.frames),
            Some(0) => "unchanged".into(),
            Some(count) => format!("{count} differences"),
        }
    }
}

fn changes(folder: &Path, facts: &Expected) -> Result<Changes, Failure> {
    let frames = facts.frames();
    match golden_check::expected(folder, facts.origin) {
        Ok(before) => {
            let differences = compare(&before, facts);
            let lines = differences.iter().take(SHOWN).map(ToString::to_string).collect();
            Ok(Changes { count: Some(differences.len()), lines, frames })
        }
        Err(CheckError::NotBlessed { .. }) => {
            let lines =
                facts.groups.iter().map(|(group, entries)| format!("{group}: {} frames", entries.len())).collect();
            Ok(Changes { count: None, lines, frames })
        }
        // A broken file is what bless is for; what is broken is shown.
        Err(CheckError::Expected { reason, .. }) => {
            Ok(Changes { count: None, lines: vec![format!("was unreadable: {reason}")], frames })
        }
        Err(error) => Err(failure(error)),
    }
}

fn write_expected(folder: &Path, facts: &Expected, reason: &str) -> Result<(), Failure> {
    let path = golden_check::expected_path(folder);
    fs::write(&path, facts.to_string()).with_context(|| path.display().to_string())?;
    let path = folder.join(HISTORY);
    let before = match fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text.with_context(|| path.display().to_string())?,
    };
    fs::write(&path, format!("{before}{reason}\n")).with_context(|| path.display().to_string())?;
    Ok(())
}

fn new(folder: &Path, inputs: &[String], shape: &Shape, card: &str, reason: &str) -> Result<Exit, Failure> {
    let about = checked_reason(reason)?;
    if folder.exists() {
        return Err(
            Failure::from(anyhow!("{}: already there", folder.display())).hint("onic golden bless changes a case")
        );
    }
    let sources: Vec<Source> = inputs.iter().map(|input| Source::from(input.as_str())).collect();
    load::check_ports(&sources, shape)?;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    match fill(folder, &sources, shape, card, &about) {
        Ok(ran) => {
            println!(
                "{}: {} frames in, {} out, expected.txt written",
                folder.display(),
                ran.loaded.input.frames.len(),
                ran.facts[0].1.frames()
            );
            Ok(Exit::Agreed)
        }
        Err(failure) => {
            // Half a case is none.
            let _ = fs::remove_dir_all(folder);
            Err(failure)
        }
    }
}

fn fill(folder: &Path, sources: &[Source], shape: &Shape, card: &str, about: &str) -> Result<Ran, Failure> {
    let input =
        sources.iter().map(|source| copy_input(folder, source, sources.len())).collect::<Result<Vec<_>, _>>()?;
    let mut case = Case {
        about: about.into(),
        origin: Origin::Ours,
        shape: shape.to_string(),
        rss_key: None,
        rss_table: None,
        rss_hash: None,
        pace: None,
        runts: None,
        stalls: None,
        xdp: None,
        seed: 1,
        input,
    };
    let path = folder.join("case.toml");
    Case::parse(&case.to_toml()).map_err(|reason| anyhow!(reason))?;
    fs::write(&path, case.to_toml()).with_context(|| path.display().to_string())?;
    let ran = agreed(folder, card)?;
    for input in &mut case.input {
        input.frames = ran.loaded.input.frames.iter().filter(|frame| frame.port.0 == input.port).count() as u64;
    }
    fs::write(&path, case.to_toml()).with_context(|| path.display().to_string())?;
    write_expected(folder, &ran.facts[0].1, about)?;
    Ok(ran)
}

/// Copy a capture as it is, named after its port where there are several.
fn copy_input(folder: &Path, source: &Source, inputs: usize) -> Result<CaseInput, Failure> {
    let name = || source.path.display().to_string();
    let mut bytes = Vec::new();
    if source.path == Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes).with_context(name)?;
    } else {
        bytes = fs::read(&source.path).with_context(name)?;
    }
    let stem = if inputs == 1 { "input".to_string() } else { Point::Port(source.port.0).to_string() };
    let extension = match bytes.get(..4) {
        Some([0x0a, 0x0d, 0x0d, 0x0a]) => "pcapng",
        Some([0x1f, 0x8b, ..]) => "pcap.gz",
        _ => "pcap",
    };
    let file = format!("{stem}.{extension}");
    let path = folder.join(&file);
    fs::write(&path, &bytes).with_context(|| path.display().to_string())?;
    Ok(CaseInput { port: source.port.0, file, frames: 0, digest: digest(&bytes).to_string() })
}

fn diff(named: &[PathBuf], card: &str) -> Result<Exit, Failure> {
    let mut exit = Exit::Agreed;
    for folder in golden_check::cases(named)? {
        let ran =
            with_progress(|progress| golden_check::run(&folder, &Choice::named(card), progress)).map_err(failure)?;
        exit = exit.max(diff_case(&folder, &ran)?);
    }
    Ok(exit)
}

fn diff_case(folder: &Path, ran: &Ran) -> Result<Exit, Failure> {
    let mut exit = Exit::Agreed;
    for (card, facts) in &ran.facts {
        let changes = changes(folder, facts)?;
        println!("{} ({card}): {}", folder.display(), changes.summary());
        changes.lines.iter().for_each(|line| println!("  {line}"));
        if changes.count != Some(0) {
            exit = Exit::Difference;
        }
    }
    report::finding_lines(&ran.verdict.findings).iter().for_each(|line| eprintln!("{line}"));
    Ok(if ran.verdict.agreed() { exit } else { Exit::Difference })
}
