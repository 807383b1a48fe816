//! `onic console`: lines from a script, a pipe or a terminal into a live session, and its report at the end.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::Path;

use anyhow::Context;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{Context as LineContext, Editor, Helper};

use super::args::{CardArgs, ConsoleArgs, HashArg, RuntsArg};
use super::exit::{Exit, Failure};
use super::load;
use crate::console::{COMMANDS, CommandError, Console, Next, Session, SessionError};
use crate::run::RunError;

pub(super) fn run(args: &ConsoleArgs) -> Result<Exit, Failure> {
    let lines = Lines::open(args.script.as_deref())?;
    let cards = load::cards(&card_args(args))?;
    let session = Session::start(&cards.card, &cards.setup).map_err(not_started)?;
    let mut console = Console::new(session);
    let failed = read(&mut console, lines, args)?;
    let report = console.session.finish();
    print!("{report}");
    let ended = if report.is_clean() { Exit::Agreed } else { Exit::Difference };
    // What went wrong at the end weighs no less than a line that failed.
    Ok(if ended == Exit::Difference { ended } else { failed.unwrap_or(Exit::Agreed) })
}

/// Options of one live card, as those of a card that is held against none.
fn card_args(args: &ConsoleArgs) -> CardArgs {
    CardArgs {
        card: args.card.clone(),
        against: "none".into(),
        shape: args.shape.clone(),
        profile: args.profile,
        rss_key: None,
        rss_table: None,
        rss_hash: HashArg::Opennic,
        pace: args.pace,
        runts: RuntsArg::Pad,
        stalls: args.stalls.clone(),
        seed: args.seed,
        host_ns: args.host_ns,
        hang_cycles: args.hang_cycles,
        no_memory_checks: args.no_memory_checks,
        tap: args.tap.clone(),
        rtl_fault: args.rtl_fault,
        settings: args.settings.clone(),
    }
}

fn not_started(error: SessionError) -> Failure {
    match error {
        SessionError::NoCard(error) => load::no_card(error),
        error @ SessionError::Run(RunError::Card(_) | RunError::BringUp { .. } | RunError::Up { .. }) => {
            Failure::new(Exit::Difference, error)
        }
        error => error.into(),
    }
}

/// Line after line until the end, `quit`, or a failure. The exit code that failing lines ask for.
fn read(console: &mut Console, mut lines: Lines, args: &ConsoleArgs) -> Result<Option<Exit>, Failure> {
    let typed = lines.is_typed();
    let mut failed = None;
    let mut number = 0u64;
    while let Some(line) = lines.next()? {
        number += 1;
        if args.echo {
            println!("> {line}");
        }
        match console.line(&line, &mut |said| print!("{said}")) {
            Ok(Next::Go) => {}
            Ok(Next::Quit) => break,
            // Whoever types sees it, and goes on.
            Err(error) if typed => eprintln!("console: {error}"),
            Err(error) => {
                eprintln!("console: line {number}: {error}");
                let code = match error.cause {
                    CommandError::Usage(_) => Exit::BadInput,
                    CommandError::Failed(_) => Exit::Difference,
                };
                failed = failed.max(Some(code));
                if !args.keep_going {
                    break;
                }
            }
        }
    }
    Ok(failed)
}

/// Where lines come from.
enum Lines {
    Script(io::Lines<Box<dyn BufRead>>, String),
    Terminal(Box<Editor<Completion, DefaultHistory>>),
}

impl Lines {
    fn open(script: Option<&Path>) -> Result<Lines, Failure> {
        match script.filter(|path| *path != Path::new("-")) {
            Some(path) => {
                let name = path.display().to_string();
                let file = File::open(path).with_context(|| name.clone())?;
                let reader: Box<dyn BufRead> = Box::new(BufReader::new(file));
                Ok(Lines::Script(reader.lines(), name))
            }
            None if io::stdin().is_terminal() => {
                let mut editor = Editor::new()?;
                editor.set_helper(Some(Completion(FilenameCompleter::new())));
                Ok(Lines::Terminal(Box::new(editor)))
            }
            None => {
                let reader: Box<dyn BufRead> = Box::new(BufReader::new(io::stdin()));
                Ok(Lines::Script(reader.lines(), "standard input".into()))
            }
        }
    }

    fn is_typed(&self) -> bool {
        matches!(self, Lines::Terminal(_))
    }

    /// The next line, or the end.
    fn next(&mut self) -> Result<Option<String>, Failure> {
        match self {
            Lines::Script(lines, name) => Ok(lines.next().transpose().with_context(|| name.clone())?),
            Lines::Terminal(editor) => loop {
                match editor.readline("onic> ") {
                    Ok(line) => {
                        // A line that can't be kept is only missing in the history.
                        let _ = editor.add_history_entry(&line);
                        return Ok(Some(line));
                    }
                    // Ctrl-C throws the line away, Ctrl-D ends.
                    Err(ReadlineError::Interrupted) => {}
                    Err(ReadlineError::Eof) => return Ok(None),
                    Err(error) => return Err(error.into()),
                }
            },
        }
    }
}

/// The tab key: a command's name where one begins, a file's anywhere else.
struct Completion(FilenameCompleter);

impl Completer for Completion {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, context: &LineContext<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..pos).unwrap_or(line);
        match command_under_way(before) {
            Some(start) => Ok((start, commands(&before[start..]))),
            None => self.0.complete(line, pos, context),
        }
    }
}

impl Hinter for Completion {
    type Hint = String;
}
impl Highlighter for Completion {}
impl Validator for Completion {}
impl Helper for Completion {}

/// Where the word begins that is being typed, if it is a command's name.
fn command_under_way(before: &str) -> Option<usize> {
    let start = before.rfind([';', ' ', '\t']).map_or(0, |at| at + 1);
    let ahead = before[..start].trim_end();
    (ahead.is_empty() || ahead.ends_with([';', '!'])).then_some(start)
}

fn commands(prefix: &str) -> Vec<Pair> {
    let matching = COMMANDS.iter().filter(|spec| spec.name.starts_with(prefix));
    matching.map(|spec| Pair { display: spec.name.into(), replacement: format!("{} ", spec.name) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_completed_where_one_begins() {
        for (line, start) in [("", 0), ("et", 0), ("up; do", 4), ("up;do", 3), ("! re", 2)] {
            assert_eq!(command_under_way(line), Some(start), "{line}");
        }
        for line in ["replay tr", "up onic0 ", "replay a;b c"] {
            assert_eq!(command_under_way(line), None, "{line}");
        }
        let names = |prefix| commands(prefix).into_iter().map(|pair| pair.replacement).collect::<Vec<_>>();
        assert_eq!(names("re"), ["replay ", "recover ", "regs "]);
        assert!(names("zz").is_empty());
    }
}
