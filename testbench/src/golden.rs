//! Golden cases run on cards: from a case to a session, from an outcome to the facts that a case holds.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use driver_core::rss::{Key, Table};
use regs::PortId;
use traces::golden::{Case, Entry, Expected, Origin, Slot};
use traces::{Point, digest};

use crate::card::{Choice, Shape};
use crate::input::{self, Input, Runts, Source};
use crate::outcome::Outcome;
use crate::run::{InFrame, Setup};
use crate::scoreboard;
use crate::shape::{Pace, TableSpec};

/// A case ready to run.
#[derive(Debug)]
pub struct Loaded {
    /// The case as it stands in its folder.
    pub case: Case,
    /// Its settings.
    pub setup: Setup,
    /// Its frames.
    pub input: Input,
    /// Its seed, for stalls and initial state.
    pub seed: u64,
    /// Its stall pattern.
    pub stalls: String,
}

/// Read a case and its captures.
///
/// # Errors
/// A file is missing, damaged or changed; a setting is none.
pub fn load(folder: &Path) -> Result<Loaded> {
    let case = Case::load(folder)?;
    let here = || folder.display().to_string();
    let shape: Shape = case.shape.parse().with_context(here)?;
    let rss_key = case.rss_key.as_deref().map(parse_key).transpose().with_context(here)?;
    let rss_table = case.rss_table.as_deref().map(parse_table).transpose().with_context(here)?;
    let pace = case.pace.as_deref().map_or(Ok(Pace::Fast), str::parse).with_context(here)?;
    let runts = if case.runts.as_deref() == Some("keep") { Runts::Keep } else { Runts::Pad };
    let sources: Vec<Source> =
        case.input.iter().map(|input| Source { path: folder.join(&input.file), port: PortId(input.port) }).collect();
    let input = input::read(&sources, &shape, runts).with_context(here)?;
    // None are told of while the case is being made.
    let told: u64 = case.input.iter().fold(0, |sum, input| sum.saturating_add(input.frames));
    ensure!(
        told == 0 || told == input.packets,
        "{}: case.toml tells of {told} frames, the captures hold {}",
        folder.display(),
        input.packets
    );
    let stalls = case.stalls.clone().unwrap_or_else(|| "none".into());
    ensure!(case.xdp.is_none(), "{}: the case wants an XDP program, and no driver here runs one yet", folder.display());
    if let Some(hash) = case.rss_hash.as_deref().filter(|hash| *hash != "opennic") {
        bail!("{}: the case wants the hash `{hash}`; every card here hashes `opennic`", folder.display());
    }
    let setup = Setup { shape, rss_key, rss_table, pace, ..Setup::default() };
    Ok(Loaded { seed: case.seed, case, setup, input, stalls })
}

/// Give a card the case's seed and stall pattern.
pub fn apply(loaded: &Loaded, card: &mut Choice) {
    card.rtl.seed = loaded.seed;
    // Stalls change no result of a case, so that the command's may take the place of the case's.
    if card.rtl.stalls == "none" {
        card.rtl.stalls.clone_from(&loaded.stalls);
    }
}

/// A key as on the command line.
///
/// # Errors
/// Not 40 bytes in one of the spellings.
pub fn parse_key(text: &str) -> Result<Key> {
    text.parse().with_context(|| format!("RSS key `{text}`"))
}

/// A table as on the command line.
///
/// # Errors
/// Not a table.
pub fn parse_table(text: &str) -> Result<Table> {
    let spec: TableSpec = text.parse().with_context(|| format!("RSS table `{text}`"))?;
    Ok(spec.table()?)
}

/// The facts of an outcome that no pipeline stage can change, in the form of `expected.txt`.
pub fn facts(outcome: &Outcome, input: &[InFrame], functions: u8, origin: Origin) -> Expected {
    let mut expected = Expected::new(origin);
    let place = places(input);
    for frame in scoreboard::emerged(outcome, input, functions) {
        let slot = match (frame.queue, frame.drop) {
            (_, Some(reason)) => Slot::Dropped(reason.into()),
            (Some(queue), None) => Slot::Queue(queue.into()),
            (None, None) => Slot::Out,
        };
        let entry = Entry {
            input: frame.input.map(|at| place[at]),
            len_bytes: frame.data.len() as u32,
            digest: digest(&frame.data),
            hash: frame.hash,
            verdict: None,
        };
        expected.push(frame.point, slot, entry);
    }
    expected
}

/// Port and index at that port of each input frame.
fn places(input: &[InFrame]) -> Vec<(Point, u64)> {
    let mut counts = std::collections::BTreeMap::new();
    input
        .iter()
        .map(|frame| {
            let count: &mut u64 = counts.entry(frame.port).or_default();
            *count += 1;
            (Point::Port(frame.port.0), *count - 1)
        })
        .collect()
}
