//! `onic replay`: captures, or a golden case, through a card and the one it is held against.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, anyhow};
use traces::golden::{self as golden_format, Expected};

use super::args::ReplayArgs;
use super::exit::{Exit, Failure};
use super::failing::{self, Failing};
use super::load::{self, Cards};
use super::progress::Progress;
use super::report;
use super::repro::Repro;
use crate::card::Choice;
use crate::golden::{self, Loaded};
use crate::input::Input;
use crate::junit::{Outcome as Ended, Suite};
use crate::output;
use crate::run::{InFrame, Setup};
use crate::scoreboard::Finding;
use crate::session::{self, Session, Verdict};
use crate::waves::{self, WavesError};

/// Options that name outputs or ways of running, and don't belong to one failing run.
const NOT_OF_THE_RUN: [&str; 8] = ["seeds", "jobs", "json", "junit", "out", "out-against", "waves", "coverage"];

/// Options that a golden case sets itself.
const SET_BY_A_CASE: [&str; 7] = ["shape", "rss-key", "rss-table", "rss-hash", "pace", "runts", "seed"];

/// What a replay is about, read and checked.
struct Request<'a> {
    args: &'a ReplayArgs,
    cards: Cards,
    /// The golden case, if the input is one. Its input is in `input`.
    case: Option<Loaded>,
    input: Input,
    /// The frames that go in.
    frames: Vec<InFrame>,
    expect: Option<(String, Expected)>,
}

/// One run's result.
struct Done {
    seed: u64,
    verdict: Verdict,
    repro: Option<String>,
}

pub(super) fn run(args: &ReplayArgs) -> Result<Exit, Failure> {
    let request = Request::new(args)?;
    let seeds = request.seeds()?;
    report::input_lines(&request.input).iter().for_each(|line| eprintln!("{line}"));
    if request.frames.is_empty() {
        eprintln!("note: there is no frame to send: nothing is compared");
    }
    let mut done = request.run_all(&seeds)?;
    let exit = done.iter().map(|one| request.exit_of(&one.verdict)).max().unwrap_or(Exit::NothingCompared);
    request.print(&done, seeds.len());
    // A file that can't be written is told, and changes no difference into something less.
    let told = request.tell(&mut done, exit);
    Ok(told.map_or_else(|failure| exit.max(failure.printed()), |()| exit))
}

impl<'a> Request<'a> {
    fn new(args: &'a ReplayArgs) -> Result<Request<'a>, Failure> {
        let several = args.seeds.is_some();
        if several && (args.out.out.is_some() || args.out.out_against.is_some() || args.out.waves.is_some()) {
            return Err(anyhow!("--out, --out-against and --waves are of one run, --seeds makes several").into());
        }
        let mut cards = load::cards(&args.card)?;
        let (case, input) = match load::case_folder(&args.inputs) {
            Some(folder) => {
                if let Some(option) = Repro::of_this_process().given(&SET_BY_A_CASE) {
                    let error = anyhow!("a golden case has its own --{option}");
                    return Err(
                        Failure::from(error).hint(format!("replay its capture: {}/input.pcap", folder.display()))
                    );
                }
                let mut loaded = golden::load(folder)?;
                golden::apply(&loaded, &mut cards.card);
                if let Some(card) = &mut cards.against {
                    golden::apply(&loaded, card);
                }
                let Setup { host, hang_cycles, check_memory, .. } = cards.setup;
                cards.setup = Setup { host, hang_cycles, check_memory, ..loaded.setup.clone() };
                let input = std::mem::take(&mut loaded.input);
                (Some(loaded), input)
            }
            None => (None, load::input(&args.inputs, &args.card)?),
        };
        if let Some(path) = &args.out.coverage {
            if cards.card.name == "model" {
                return Err(anyhow!("--coverage is of RTL, and card `model` has none").into());
            }
            // Written when the run is over; found out now whether it can be.
            fs::File::create(path).with_context(|| path.display().to_string())?;
            cards.card.rtl.coverage = Some(path.clone());
        }
        let files = [&args.out.out, &args.out.out_against, &args.out.waves, &args.out.junit].into_iter().flatten();
        for path in files.filter(|path| *path != Path::new("-")) {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            if !folder.is_dir() {
                return Err(anyhow!("{}: there is no folder {}", path.display(), folder.display()).into());
            }
        }
        let frames = chosen(&input, args)?;
        refuse_late_tap(args, frames.len())?;
        let expect = args.expect.as_deref().map(read_expected).transpose()?;
        Ok(Request { args, cards, case, input, frames, expect })
    }

    fn seeds(&self) -> Result<Vec<u64>, Failure> {
        match &self.args.seeds {
            Some(text) => parse_seeds(text)
                .ok_or_else(|| anyhow!("--seeds {text}: wants A..B, A less than B, at most 1,000,000 of them").into()),
            None => Ok(vec![self.cards.card.rtl.seed]),
        }
    }

    fn session(&self, seed: u64) -> Session<'_> {
        let seeded = |card: &Choice| {
            let mut card = card.clone();
            card.rtl.seed = seed;
            card
        };
        Session {
            card: seeded(&self.cards.card),
            against: self.cards.against.as_ref().map(seeded),
            setup: self.cards.setup.clone(),
            wire: &self.frames,
            host: &[],
        }
    }

    fn run_all(&self, seeds: &[u64]) -> Result<Vec<Done>, Failure> {
        if let [seed] = seeds {
            let mut progress = Progress::new();
            let done = self.run_one(*seed, &mut |card, done, total| progress.at(card, done, total));
            progress.finish();
            return Ok(vec![done?]);
        }
        let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let progress = Mutex::new(Progress::new());
        std::thread::scope(|scope| {
            for _ in 0..self.args.jobs.clamp(1, seeds.len()) {
                scope.spawn(|| {
                    while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let done = self.run_one(seed, &mut |_, _, _| {});
                        let mut results = results.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                        results.push((seed, done));
                        let so_far = results.len() as u64;
                        drop(results);
                        progress.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).at(
                            "seeds",
                            so_far,
                            seeds.len() as u64,
                        );
                    }
                });
            }
        });
        progress.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).finish();
        let mut results = results.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        // Which thread was first is nobody's business: the report is in the order of the seeds.
        results.sort_by_key(|(seed, _)| *seed);
        results.into_iter().map(|(_, done)| done).collect()
    }

    fn run_one(&self, seed: u64, progress: session::Progress<'_>) -> Result<Done, Failure> {
        let mut verdict = session::run(&self.session(seed), progress).map_err(load::no_card)?;
        if let Some((name, expected)) = &self.expect {
            let functions = self.cards.setup.shape.functions;
            let facts = golden::facts(&verdict.got.outcome, &self.frames, functions, expected.origin);
            verdict.compared += expected.frames();
            let card = &verdict.got.outcome.card;
            let differences = golden_format::compare(expected, &facts);
            let texts = differences.iter().map(|difference| format!("{card}: {name}: {difference}"));
            verdict.findings.extend(texts.map(|text| Finding::new("expected", text)));
        }
        Ok(Done { seed, verdict, repro: None })
    }

    /// The code: a difference wins, then input that was not whole, then nothing to compare.
    fn exit_of(&self, verdict: &Verdict) -> Exit {
        let input = &self.input;
        if !verdict.agreed() {
            Exit::Difference
        } else if !input.damage.is_empty() || (!input.skips.is_empty() && !self.args.out.allow_skips) {
            Exit::BadInput
        } else if self.frames.is_empty() {
            Exit::NothingCompared
        } else {
            Exit::Agreed
        }
    }

    /// Files and reports.
    fn tell(&self, done: &mut [Done], exit: Exit) -> Result<(), Failure> {
        self.write_captures(done)?;
        self.explain(done, exit)?;
        if self.args.out.json {
            print!("{}", self.json(done, exit)?);
        }
        self.write_junit(done)
    }

    /// Tables to stdout, findings to stderr.
    fn print(&self, done: &[Done], seeds: usize) {
        for one in done {
            if seeds > 1 && !self.args.out.json {
                let how = if one.verdict.agreed() { "agreed" } else { "FAILED" };
                println!("seed {}: {how}, {} frames compared", one.seed, one.verdict.compared);
            } else if !self.args.out.json {
                let text = report::text(&one.verdict);
                // A capture on stdout must not have a table in it.
                if writes_stdout(self.args) { eprint!("{text}") } else { print!("{text}") }
            }
            report::finding_lines(&one.verdict.findings).iter().for_each(|line| eprintln!("{line}"));
        }
    }

    /// After a failure: repro lines for each failing seed; folder, smallest input and waves for the first.
    fn explain(&self, done: &mut [Done], exit: Exit) -> Result<(), Failure> {
        let mut first = true;
        for one in done.iter_mut().filter(|one| !one.verdict.agreed()) {
            let repro = if std::mem::replace(&mut first, false) {
                self.keep_failure(one, exit)?
            } else {
                let repro = self.repro(one.seed).to_string();
                eprintln!("hint: {repro}");
                repro
            };
            one.repro = Some(repro);
        }
        Ok(())
    }

    /// Leave a failing run in its folder. The command that makes it fail again.
    fn keep_failure(&self, one: &Done, exit: Exit) -> Result<String, Failure> {
        let session = self.session(one.seed);
        let (whole, other) = (self.repro(one.seed), self.repro_other(one.seed));
        let is_stdin = |input: &String| crate::input::Source::from(input.as_str()).path == Path::new("-");
        let from_stdin = self.args.inputs.iter().any(is_stdin);
        let failing = Failing { session: &session, verdict: &one.verdict, whole, other, from_stdin };
        let found = failing.look(&mut Progress::new());
        let repro = found.repro.to_string();
        let report = report::Replay {
            version: report::VERSION,
            command: "replay",
            exit: exit.code(),
            input: report::InputReport::of(&self.input, &self.frames),
            runs: vec![report::RunReport::of(&one.verdict, &self.frames, one.seed, Some(repro.clone()))],
        };
        let mut text = report::text(&one.verdict) + "\n";
        one.verdict.findings.iter().for_each(|finding| text += &format!("error: {}\n", finding.text));
        text += &format!("hint: {repro}\n");
        failing
            .keep(&found, &text, &report::json(&report)?)
            .with_context(|| format!("writing {}", crate::failure::FOLDER))?;
        self.keep_waves(&session, &one.verdict)?;
        Ok(repro)
    }

    fn repro(&self, seed: u64) -> Repro {
        let card = &self.args.card;
        let repro = Repro::of_this_process()
            .without(&NOT_OF_THE_RUN)
            .or_set("card", &card.card)
            .or_set("against", &card.against);
        // A case has its own seed; --seeds overrides it and can't be said otherwise than by options.
        match (&self.case, &self.args.seeds) {
            (Some(_), None) => repro,
            (Some(case), Some(_)) => {
                let files = case.case.input.iter().map(|input| {
                    format!("{}@{}", Path::new(&self.args.inputs[0]).join(&input.file).display(), input.port)
                });
                failing::with_settings(repro, case).on(files.collect()).set("seed", seed.to_string())
            }
            (None, _) => repro.set("seed", seed.to_string()),
        }
    }

    /// The command for other captures than those given, with a case's settings as options.
    fn repro_other(&self, seed: u64) -> Repro {
        let repro = self.repro(seed).without(&["only", "count", "expect"]);
        match &self.case {
            Some(case) => failing::with_settings(repro, case).set("seed", seed.to_string()),
            None => repro,
        }
    }

    /// Run the RTL again, with waves around the first reported cycle; a copy goes to the failure folder.
    fn keep_waves(&self, session: &Session<'_>, verdict: &Verdict) -> Result<(), Failure> {
        let Some(path) = &self.args.out.waves else { return Ok(()) };
        let mut progress = Progress::new();
        let total = session.wire.len() as u64;
        let copy = Path::new(crate::failure::FOLDER).join("waves.fst");
        let kept = waves::keep(session, verdict, path, &copy, &mut |done| progress.at("waves", done, total));
        progress.finish();
        let kept = match kept {
            Ok(kept) => kept,
            Err(WavesError::Card(error)) => return Err(load::no_card(error)),
            Err(error) => return Err(anyhow!(error).into()),
        };
        let what = kept
            .cycles
            .map_or("the whole run, no cycle is known".into(), |(from, to)| format!("cycles {from} to {to}"));
        eprintln!("note: {} holds {what}: gtkwave {}", path.display(), kept.save_file.display());
        Ok(())
    }

    fn write_captures(&self, done: &[Done]) -> Result<(), Failure> {
        let [one] = done else { return Ok(()) };
        let shape = &self.cards.setup.shape;
        let sides =
            [(&self.args.out.out, Some(&one.verdict.got)), (&self.args.out.out_against, one.verdict.against.as_ref())];
        for (path, side) in sides {
            let (Some(path), Some(side)) = (path, side) else { continue };
            let file = create(path).with_context(|| path.display().to_string())?;
            output::write(&side.outcome, &self.frames, shape, file).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }

    fn json(&self, done: &[Done], exit: Exit) -> Result<String, Failure> {
        let run = |one: &Done| report::RunReport::of(&one.verdict, &self.frames, one.seed, one.repro.clone());
        Ok(report::json(&report::Replay {
            version: report::VERSION,
            command: "replay",
            exit: exit.code(),
            input: report::InputReport::of(&self.input, &self.frames),
            runs: done.iter().map(run).collect(),
        })?)
    }

    fn write_junit(&self, done: &[Done]) -> Result<(), Failure> {
        let Some(path) = &self.args.out.junit else { return Ok(()) };
        let mut suite = Suite::new("replay");
        for one in done {
            let ended = match one.verdict.findings.first() {
                None => Ended::Passed,
                Some(first) => {
                    let all: Vec<&str> = one.verdict.findings.iter().map(|finding| finding.text.as_str()).collect();
                    Ended::Failed(first.text.lines().next().unwrap_or_default().into(), all.join("\n"))
                }
            };
            suite.push("replay", &format!("{} seed {}", self.args.inputs.join(" "), one.seed), ended);
        }
        suite.save(path).with_context(|| path.display().to_string())?;
        Ok(())
    }
}

/// The frames of the input that `--only` and `--count` leave.
fn chosen(input: &Input, args: &ReplayArgs) -> Result<Vec<InFrame>, Failure> {
    let mut frames = input.frames.clone();
    if let Some(only) = args.only {
        frames.retain(|frame| frame.index == only);
        if frames.is_empty() && !input.frames.is_empty() {
            let error =
                anyhow!("--only {only}: the input has {} packets, and this is none that can be sent", input.packets);
            return Err(Failure::from(error).hint("packets are counted from 0, on from one capture to the next"));
        }
    }
    if let Some(count) = args.count {
        frames.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    }
    Ok(frames)
}

fn read_expected(path: &Path) -> Result<(String, Expected), Failure> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).with_context(|| name.clone())?;
    let expected =
        Expected::parse(&text).with_context(|| name.clone()).map_err(|error| Failure::new(Exit::Difference, error))?;
    Ok((name, expected))
}

/// `A..B`: A and up to B, B left out.
/// A tap on a frame that never comes would look like one that did no harm.
fn refuse_late_tap(args: &ReplayArgs, frames: usize) -> Result<(), Failure> {
    let Some(tap) = &args.card.tap else { return Ok(()) };
    match tap.split(':').nth(1).and_then(|number| number.parse::<usize>().ok()) {
        Some(number) if number >= frames => {
            Err(anyhow!("--tap {tap}: frame {number} of {frames}, counted from 0, never comes").into())
        }
        _ => Ok(()),
    }
}

fn parse_seeds(text: &str) -> Option<Vec<u64>> {
    let (from, to) = text.split_once("..")?;
    let (from, to) = (super::args::parse_seed(from).ok()?, super::args::parse_seed(to).ok()?);
    (from < to && to - from <= 1_000_000).then(|| (from..to).collect())
}

fn writes_stdout(args: &ReplayArgs) -> bool {
    [&args.out.out, &args.out.out_against].into_iter().flatten().any(|path| path == Path::new("-"))
}

/// A file, or standard output.
fn create(path: &Path) -> io::Result<Box<dyn Write>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::BufWriter::new(io::stdout())));
    }
    Ok(Box::new(io::BufWriter::new(fs::File::create(path)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_half_open_range() {
        assert_eq!(parse_seeds("3..6"), Some(vec![3, 4, 5]));
        assert_eq!(parse_seeds("0x10..18"), Some(vec![16, 17]));
        for bad in ["3", "3..3", "4..3", "a..b", "0..18446744073709551615"] {
            assert_eq!(parse_seeds(bad), None, "{bad}");
        }
    }
}
