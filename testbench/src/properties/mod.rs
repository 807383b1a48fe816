//! Properties: what must hold for any traffic, key, table, stall pattern and clock phase, tried on random cases.
//!
//! A failing case is shrunk, its frames are written as a capture, its seed is kept in `testbench/proptest-regressions/`
//! and tried first from then on. The same seed and number of cases give the same cases on every machine.
//!
//! What a card should do is worked out twice: by the other card, and by `oracle`, which is a few lines written from
//! the specification and uses neither models nor RTL.
//!
//! | file | concern |
//! |---|---|
//! | `bed`, `traffic` | what a case is made of: a card's conditions, frames |
//! | `oracle` | what should come out |
//! | `trial` | a case on a card, and what is wrong with what came out |
//! | `runner`, `fewer`, `coverage` | proptest around it; how lists shrink; what was tried how often |
//! | `seeds` | around properties whose cases are lists of actions from a seed |
//! | the others | one property each, or two of a kind |

/// Where a property's failing seeds are kept, for everybody to try first.
macro_rules! kept {
    ($name:literal) => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/properties/", $name, ".txt")
    };
}

mod affinity;
mod bed;
pub mod card_actions;
mod coverage;
mod differential;
mod fewer;
mod hostile;
mod numbered;
mod oracle;
mod overflow;
mod ports;
mod rearm;
mod replay;
mod rings;
mod runner;
mod same;
mod seeds;
mod spread;
mod traffic;
mod transmit;
mod trial;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::execute::ExecuteError;

/// How a property is tried.
#[derive(Clone, Copy)]
pub struct Config<'a> {
    /// Random cases, or steps of a sweep. Cases that once failed come on top.
    pub cases: u32,
    /// Root of all that is random.
    pub seed: u64,
    /// The card with RTL in it: `hybrid` or `rtl`.
    pub rtl: &'static str,
    /// Only the case of this number, where cases have numbers that outlive the run.
    pub only: Option<u64>,
    /// Where the frames of a failing case are written. Made when needed.
    pub folder: &'a Path,
    /// Told after each case: cases done, cases in all.
    pub progress: &'a dyn Fn(u64, u64),
}

impl Config<'_> {
    /// The testbench is at the streams between shell and QDMA, and holds them at random. Inside card `rtl` nobody does.
    fn holds_qdma_streams(&self) -> bool {
        self.rtl != "rtl"
    }
}

/// What was tried.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Cases that held.
    pub cases: u32,
    /// What they reached, a line each.
    pub coverage: Vec<String>,
}

/// Why a property does not hold, or was not tried.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A case fails.
    #[error(transparent)]
    Case(Box<FailedCase>),
    /// Every case held, and yet they did not reach all that they should have: a gap in the cases, no fault of a card.
    #[error("{cases} cases held, but did not reach enough: {}", .missing.join("; "))]
    Coverage {
        /// How many held.
        cases: u32,
        /// What was not reached.
        missing: Vec<String>,
    },
    /// A card can't be had.
    #[error(transparent)]
    Card(#[from] ExecuteError),
    /// [`Config::folder`] can't be written to.
    #[error("{path}: {source}", path = path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A case that fails, as small as it could be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedCase {
    /// What is wrong.
    pub message: String,
    /// The case, as Rust prints it.
    pub case: String,
    /// The command that makes it happen again.
    pub repro: String,
    /// Its frames, one capture a port: `FILE[@PORT]`; and why they could not be written, if so.
    pub inputs: Vec<String>,
}

impl fmt::Display for FailedCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.message)?;
        writeln!(f, "  case      {}", self.case)?;
        writeln!(f, "  frames    {}", self.inputs.join(" "))?;
        write!(f, "hint: {}", self.repro)
    }
}

impl std::error::Error for FailedCase {}

/// Something that must hold for any case.
pub struct Property {
    /// A word, for filters and for its file of kept seeds.
    pub name: &'static str,
    /// What holds, in a sentence.
    pub doc: &'static str,
    /// It is about RTL and needs a build with it.
    pub needs_rtl: bool,
    /// Cases in `onic test`.
    pub quick: u32,
    /// Cases in `onic test --full`. From so many on they must have reached all that they should.
    pub full: u32,
    /// File of the seeds that once failed.
    kept: &'static str,
    check: fn(&Property, &Config<'_>) -> Result<Report, Failure>,
}

impl Property {
    /// Try it.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn run(&self, config: &Config<'_>) -> Result<Report, Failure> {
        (self.check)(self, config)
    }
}

/// Every property, in the order in which they are worth running.
pub fn all() -> &'static [Property] {
    const {
        &[
            replay::REPLAY,
            transmit::TRANSMIT,
            affinity::AFFINITY,
            same::SAME,
            spread::SPREAD,
            ports::PORTS,
            ports::PORT_ONE,
            overflow::OVERFLOW,
            rearm::REARM,
            rings::RINGS,
            rings::LAPS,
            rings::FULL,
            numbered::NUMBERED,
            hostile::RINGS,
            hostile::REGISTERS,
            differential::GOLDEN,
            differential::DIRECTED_CHECKS,
            differential::LAPS,
            differential::ACTIONS,
            card_actions::CARD_ACTIONS,
        ]
    }
}
