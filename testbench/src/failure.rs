//! `onic-out/last-failure/`: all that is needed to look into a failing run, and to make it happen again.
//!
//! | file | holds |
//! |---|---|
//! | `repro.sh` | the command that fails, and the one for the smallest input |
//! | `smallest.pcapng` | the smallest input found that still fails, `smallest-port1.pcapng` for port 1 |
//! | `input.pcapng` | the whole input, where it came from standard input and would be gone |
//! | `got.pcapng`, `against.pcapng` | what came out of both cards |
//! | `report.txt`, `report.json` | what is wrong |
//! | `waves.fst`, `waves.gtkw` | with `--waves`: the RTL around the reported cycle, and a save file for GTKWave |

use std::fs;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use crate::card::Shape;
use crate::outcome::Outcome;
use crate::output;
use crate::reduce::{self, Budget, Reduced};
use crate::run::InFrame;
use crate::session::{self, Session, Verdict};

/// Where the last failing run is kept, below the current folder.
pub const FOLDER: &str = "onic-out/last-failure";

/// The kinds of finding that a smaller input can show too. A result that is not as written down (`expected`) is about the
/// whole input.
fn is_reducible(kind: &str) -> bool {
    kind != "expected"
}

/// A run without progress costs a whole time-out, so that few are made.
const HANGS: u64 = 6;

/// Find the smallest input that fails as `verdict` says. None where a smaller one can't show it.
pub fn reduce(
    session: &Session<'_>,
    verdict: &Verdict,
    budget: Budget,
    progress: reduce::Progress<'_>,
) -> Option<Reduced> {
    let first = verdict.findings.iter().find(|finding| is_reducible(&finding.kind))?;
    let kind = first.kind.clone();
    let stopped = kind == "stopped";
    let budget = if stopped { Budget { runs: budget.runs.min(HANGS), ..budget } } else { budget };
    // A card that stops in its bring-up stops with any frame.
    let suspect = first.input.or(stopped.then_some(0));
    // Cards keep no state from run to run: each makes its own.
    let mut fails = |frames: &[InFrame]| {
        let smaller = Session { wire: frames, ..session.clone() };
        let again = session::run(&smaller, &mut |_, _, _| {});
        again.is_ok_and(|again| again.findings.iter().any(|finding| finding.kind == kind))
    };
    Some(reduce::reduce(session.wire, suspect, budget, &mut fails, progress))
}

/// Write frames as captures, one for each port among them, and name each as [`input_names`] does.
///
/// # Errors
/// A file can't be written.
pub fn save_input(path: &Path, frames: &[InFrame]) -> io::Result<Vec<String>> {
    for port in ports(frames) {
        let of_port = frames.iter().filter(|frame| frame.port.0 == port);
        output::write_input(of_port, port, BufWriter::new(fs::File::create(port_path(path, port))?))?;
    }
    Ok(input_names(path, frames))
}

/// The captures that [`save_input`] makes of these frames, each as `FILE[@PORT]`.
pub fn input_names(path: &Path, frames: &[InFrame]) -> Vec<String> {
    let name = |port| {
        let path = port_path(path, port);
        if port == 0 { path.display().to_string() } else { format!("{}@{port}", path.display()) }
    };
    ports(frames).into_iter().map(name).collect()
}

fn ports(frames: &[InFrame]) -> Vec<u8> {
    let mut ports: Vec<u8> = frames.iter().map(|frame| frame.port.0).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// `x.pcapng` for port 0, `x-port1.pcapng` for port 1.
fn port_path(path: &Path, port: u8) -> PathBuf {
    if port == 0 {
        return path.to_path_buf();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}-port{port}{extension}"))
}

/// What goes into the folder beside the inputs.
#[derive(Clone, Copy, Debug)]
pub struct Contents<'a> {
    /// Frames that were run.
    pub input: &'a [InFrame],
    /// The card's shape.
    pub shape: &'a Shape,
    /// What the card under test did.
    pub got: Option<&'a Outcome>,
    /// What the other did.
    pub against: Option<&'a Outcome>,
    /// For people.
    pub text: &'a str,
    /// For scripts.
    pub json: &'a str,
    /// Commands, each with what it does.
    pub commands: &'a [(String, String)],
}

/// Make the folder anew, empty.
///
/// # Errors
/// It can't be made.
pub fn clear(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::create_dir_all(folder)
}

/// Fill the folder.
///
/// # Errors
/// A file can't be written.
pub fn keep(folder: &Path, contents: &Contents<'_>) -> io::Result<()> {
    for (name, outcome) in [("got.pcapng", contents.got), ("against.pcapng", contents.against)] {
        if let Some(outcome) = outcome {
            let file = BufWriter::new(fs::File::create(folder.join(name))?);
            output::write(outcome, contents.input, contents.shape, file)?;
        }
    }
    fs::write(folder.join("report.txt"), contents.text)?;
    fs::write(folder.join("report.json"), contents.json)?;
    let script = contents.commands.iter().fold("#!/bin/sh\n".to_string(), |script, (what, command)| {
        let first = script.lines().count() == 1;
        // Only the first is run; the others are there to be pasted.
        script + &format!("# {what}\n{}{command}\n", if first { "" } else { "# " })
    });
    fs::write(folder.join("repro.sh"), script)
}
