//! A comparison: one input through one or two cards, what was found, and how it ends.

use std::time::{Duration, Instant};

use traces::align::Class;

use crate::card::{CardError, Choice};
use crate::execute::{ExecuteError, Job, execute};
use crate::outcome::Outcome;
use crate::run::{HostFrame, InFrame, RunError, Setup};
use crate::scoreboard::{self, Finding};

/// What is to be run and compared.
#[derive(Clone, Debug)]
pub struct Session<'a> {
    /// The card under test.
    pub card: Choice,
    /// The card it is held against.
    pub against: Option<Choice>,
    /// How both are set up.
    pub setup: Setup,
    /// Frames for the wire.
    pub wire: &'a [InFrame],
    /// Frames from the host.
    pub host: &'a [HostFrame],
}

/// One card's part in a comparison.
#[derive(Debug)]
pub struct Side {
    /// What it did.
    pub outcome: Outcome,
    /// What ended it early.
    pub error: Option<RunError>,
    /// Wall time, for people only.
    pub took: Duration,
}

/// What came of a session.
#[derive(Debug)]
pub struct Verdict {
    /// The card under test.
    pub got: Side,
    /// The card it was held against.
    pub against: Option<Side>,
    /// What is wrong, gravest first.
    pub findings: Vec<Finding>,
    /// Frames compared.
    pub compared: usize,
}

impl Verdict {
    /// Nothing is wrong.
    pub fn agreed(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Told of progress: the card's name, frames done, frames in all.
pub type Progress<'a> = &'a mut dyn FnMut(&str, u64, u64);

/// Run a session.
///
/// # Errors
/// [`ExecuteError`] when a card can't be had.
pub fn run(session: &Session<'_>, progress: Progress<'_>) -> Result<Verdict, ExecuteError> {
    let against = session.against.as_ref().map(|card| side(session, card, progress)).transpose()?;
    let got = side(session, &session.card, progress)?;
    let mut findings = Vec::new();
    for side in [Some(&got), against.as_ref()].into_iter().flatten() {
        findings.extend(side.error.as_ref().map(|error| stopped(side, error)));
    }
    let mut compared = 0;
    if let Some(against) = &against {
        compared = against.outcome.delivered.len()
            + against.outcome.sent.len()
            + got.outcome.delivered.len()
            + got.outcome.sent.len();
        let functions = session.setup.shape.functions;
        let mut differences = scoreboard::compare(
            &got.outcome,
            &against.outcome,
            session.wire,
            session.host,
            functions,
            session.setup.pace,
        );
        // What a card that stopped had not brought out yet is no cause of its own.
        differences.retain(|finding| match finding.difference.as_ref().map(|difference| difference.class) {
            Some(Class::Lost) => got.error.is_none(),
            Some(Class::Extra) => against.error.is_none(),
            _ => true,
        });
        findings.extend(differences);
    }
    if got.error.is_none() {
        let mut own = scoreboard::self_check(&got.outcome);
        scoreboard::explain_sums(&mut findings, &mut own, &got.outcome);
        findings.extend(own);
    }
    if let Some(against) = against.as_ref().filter(|side| side.error.is_none()) {
        findings.extend(scoreboard::self_check(&against.outcome));
    }
    Ok(Verdict { got, against, findings, compared })
}

fn side(session: &Session<'_>, card: &Choice, progress: Progress<'_>) -> Result<Side, ExecuteError> {
    let begin = Instant::now();
    let total = (session.wire.len() + session.host.len()) as u64;
    let job = Job { card: card.clone(), setup: session.setup.clone(), wire: session.wire, host: session.host };
    let (outcome, error) = execute(&job, &mut |done| progress(&card.name, done, total))?;
    Ok(Side { outcome, error, took: begin.elapsed() })
}

fn stopped(side: &Side, error: &RunError) -> Finding {
    let outcome = &side.outcome;
    let mut text = format!("{}: {error}", outcome.card);
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!("\n  caused by: {error}");
        cause = error.source();
    }
    text += &format!(
        "\n  until then {} frames had come to the host, {} to the wire",
        outcome.delivered.len(),
        outcome.sent.len()
    );
    let finding = Finding::new("stopped", text);
    match error {
        RunError::Card(CardError::Hang { at, .. } | CardError::Rtl { at, .. }) => finding.at(*at),
        _ => finding,
    }
}
