//! The bug gallery: the known faults of the vendor's driver, each made again as a small mutant, put through a scenario, and
//! caught by the machinery that every run of the testbench has.
//!
//! A mutant is never a flag in driver-core. It is driver-core on a bent seam ([`seams`]), or a small driver of our own that
//! behaves like the vendor's ([`vendor`]) with one strategy replaced ([`mutants`]), on a card that may have a fault of its
//! own ([`tamper`], the QDMA model's knobs). What catches it ([`catch`](mod@catch)) sees what a scenario left behind and
//! knows neither numbers nor mutants. The same scenarios must find nothing on driver-core, and nothing on the vendor-like
//! driver with all its strategies sound.
//!
//! | file | concern |
//! |---|---|
//! | [`rows`] | the 51 faults: what is broken, how it is made, what should catch it |
//! | [`scenarios`] | what drivers are put through |
//! | [`stage`], [`nic`], [`heap`] | the machine and kernel around a driver |
//! | [`tamper`], [`seams`] | faulty cards, bent seams, the watchdog |
//! | [`true_driver`], [`vendor`], [`mutants`] | the drivers |
//! | [`evidence`], [`catch`](mod@catch) | what a scenario leaves behind, and what is wrong with it |
//! | [`excuse`] | which missing frames a driver has owned up to |
//! | [`sweep`] | drivers without fault through many seeds |

pub mod catch;
pub mod evidence;
pub mod excuse;
pub mod heap;
pub mod mutants;
pub mod nic;
pub mod rows;
pub mod scenarios;
pub mod seams;
pub mod stage;
pub mod sweep;
pub mod tamper;
pub mod true_driver;
pub mod vendor;

use std::fmt;

pub use evidence::{Caught, Evidence};
pub use rows::{ROWS, Row, Standing, Subject};
pub use scenarios::Scenario;

use crate::card::Choice;
use crate::execute::ExecuteError;
use nic::Nic;
use seams::Bend;
use stage::{Ground, Maker, Stage};
use traces::synth::Rng;
use true_driver::TrueDriver;
use vendor::{Vendor, Ways};

/// A driver without fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sound {
    /// driver-core.
    Core,
    /// The vendor-like driver, its strategies as they are.
    Vendor,
}

impl fmt::Display for Sound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sound::Core => "driver-core",
            Sound::Vendor => "the vendor-like driver",
        })
    }
}

/// Put a driver without fault through a scenario: what is caught, which should be nothing.
///
/// # Errors
/// [`ExecuteError`] if the card can't be had.
pub fn try_sound(scenario: &Scenario, driver: Sound, card: &Choice, seed: u64) -> Result<Vec<Caught>, ExecuteError> {
    let subject = match driver {
        Sound::Core => Subject::Core(Bend::Straight),
        Sound::Vendor => Subject::Vendor(|_| {}),
    };
    try_subject(scenario, subject, card, seed)
}

/// Put a driver through a scenario: what is caught, what says most first.
///
/// # Errors
/// [`ExecuteError`] if the card can't be had.
pub fn try_subject(
    scenario: &Scenario,
    subject: Subject,
    card: &Choice,
    seed: u64,
) -> Result<Vec<Caught>, ExecuteError> {
    Ok(catch::catch(&play(scenario, subject, card, seed)?))
}

/// Put a driver through a scenario.
///
/// # Errors
/// [`ExecuteError`] if the card can't be had.
pub fn play(scenario: &Scenario, subject: Subject, card: &Choice, seed: u64) -> Result<Evidence, ExecuteError> {
    let mut conditions = (scenario.conditions)(&mut Rng::named(seed, scenario.name));
    if let Subject::Core(bend) = subject
        && bend != Bend::Straight
    {
        conditions.bend = bend;
    }
    let mut card = card.clone();
    card.rtl.seed = seed;
    let maker: &Maker<'_> = &move |ground| make(subject, ground);
    let mut stage = Stage::new(&card, conditions, maker)?;
    // How far it came, the evidence says.
    let _ = (scenario.play)(&mut stage, &mut Rng::named(seed, "play"));
    Ok(stage.finish())
}

fn make(subject: Subject, ground: Ground) -> Result<Box<dyn Nic>, String> {
    Ok(match subject {
        Subject::Core(_) => Box::new(TrueDriver::probe(ground.platform, &ground.config)?),
        Subject::Vendor(change) => {
            let mut ways = Ways::SOUND;
            change(&mut ways);
            Box::new(Vendor::probe(ground, ways)?)
        }
    })
}

/// Seeds that a mutant is given to show itself.
pub const MUTANT_SEEDS: u64 = 200;

/// The first seed, from `seed` on, with which a row's mutant is caught, and all that is caught then. `None` for a row that
/// has no mutant, or one that nothing catches.
///
/// # Errors
/// [`ExecuteError`] if the card can't be had.
pub fn try_row(row: &Row, card: &Choice, seed: u64) -> Result<Option<(u64, Vec<Caught>)>, ExecuteError> {
    let Standing::Here(mutant) = &row.standing else { return Ok(None) };
    for seed in seed..seed + MUTANT_SEEDS {
        let caught = try_subject(mutant.scenario, mutant.subject, card, seed)?;
        if !caught.is_empty() {
            return Ok(Some((seed, caught)));
        }
    }
    Ok(None)
}
