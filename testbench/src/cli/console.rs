//! `onic console`: lines from a script, a pipe or a terminal into a live session, and its report at the end.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::Path;

use anyhow::Context;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::args::{CardArgs, ConsoleArgs, HashArg, RuntsArg};
use super::exit::{Exit, Failure};
use super::load;
use crate::console::{CommandError, Console, Next, Session, SessionError};
use crate::run::RunError;

pub(super) fn run(args: &ConsoleArgs) -> Result<Exit, Failure> {
    let lines = Lines::open(args.script.as_deref())?;
    let cards = load::cards(&card_args(args))?;
    let session = Session::start(&cards.card, &cards.setup).map_err(not_started)?;
    let mut console = Console::new(session);
    let failed = read(&mut console, lines, args)?;
    let report = console.session.finish();
    let ended = match report {
        Ok(report) => {
            print!("{report}");
            if report.is_clean() { Exit::Agreed } else { Exit::Difference }
        }
        Err(error) => {
            eprintln!("console: the session can't be ended: {}", CommandError::from(error).in_full());
            Exit::Difference
        }
    };
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
    Terminal(Box<DefaultEditor>),
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
            None if io::stdin().is_terminal() => Ok(Lines::Terminal(Box::new(DefaultEditor::new()?))),
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
