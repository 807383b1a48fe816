//! One flow, one queue: a frame's hash and queue are its own, whoever comes before, behind or into the same beat
//! (case ONIC-05, quirks Q18 and Q3).

use std::collections::BTreeMap;

use models::observation::Fate;
use proptest::prelude::*;
use traces::synth::Rng;

use super::bed::{self, Bed};
use super::coverage::Coverage;
use super::traffic::{self, FrameSpec};
use super::trial::Trial;
use super::{Config, Failure, Property, Report, fewer, runner};
use crate::outcome::Outcome;
use crate::run::InFrame;
use crate::scoreboard::function_of;
use crate::shape::Pace;

/// Frames that are watched, and others around them.
const WATCHED: usize = 24;
const NEIGHBOURS: usize = 48;
/// A gap in which everything before has long left the shell, ns.
const GAP_NS: u64 = 4_000;

pub(super) const AFFINITY: Property = Property {
    name: "affinity",
    doc: "a frame's hash and queue are the same alone, with gaps, back to back, and among any neighbours",
    needs_rtl: true,
    quick: 10,
    full: 100,
    kept: kept!("affinity"),
    check,
};

#[derive(Clone, Debug)]
struct Case {
    bed: Bed,
    /// How many neighbours stand before each watched frame.
    seed: u64,
    watched: Vec<FrameSpec>,
    neighbours: Vec<FrameSpec>,
}

impl Case {
    fn watched(&self) -> Vec<InFrame> {
        traffic::frames(&self.watched, self.bed.width, false)
    }

    /// Watched ones among neighbours, in their order, and where they stand.
    fn mixed(&self) -> (Vec<InFrame>, Vec<usize>) {
        let mut rng = Rng::named(self.seed, "order");
        let mut neighbours = traffic::frames(&self.neighbours, self.bed.width, false).into_iter();
        let (mut frames, mut places) = (Vec::new(), Vec::new());
        for frame in self.watched() {
            let before = rng.below(5) as usize;
            frames.extend(neighbours.by_ref().take(before));
            places.push(frames.len());
            frames.push(frame);
        }
        frames.extend(neighbours);
        frames.iter_mut().enumerate().for_each(|(index, frame)| frame.index = index as u64);
        (frames, places)
    }
}

fn case() -> impl Strategy<Value = Case> {
    let watched = fewer::shrinking(traffic::good_frame(), WATCHED);
    let neighbours = fewer::shrinking(traffic::any_frame(), NEIGHBOURS);
    (bed::bed(), any::<u64>(), watched, neighbours).prop_map(|(bed, seed, watched, neighbours)| Case {
        bed,
        seed,
        watched,
        neighbours,
    })
}

/// Hash, table entry and fate of a frame.
type Result3 = (u32, u16, Fate);

/// What became of each input frame that reached a function, by its position in the input.
fn results(outcome: &Outcome, input: &[InFrame], width: u8) -> BTreeMap<usize, Result3> {
    let mut positions: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    input.iter().enumerate().for_each(|(at, frame)| positions.entry(frame.port).or_default().push(at));
    let paths = outcome.paths(|port| function_of(port, width));
    let of = |path: &crate::outcome::Path| {
        let (_, hash, entry) = path.rss?;
        Some((*positions.get(&path.port)?.get(path.index)?, (hash, entry, path.fate)))
    };
    paths.iter().filter_map(of).collect()
}

fn check(property: &Property, config: &Config<'_>) -> Result<Report, Failure> {
    runner::ready(&["model", config.rtl], &[1, 2])?;
    runner::cases(
        property,
        config,
        Coverage::default(),
        &case(),
        |case| case.mixed().0,
        |case, coverage| {
            for card in ["model", config.rtl] {
                check_on(card, case)?;
            }
            coverage.add("frames watched", case.watched.len() as u64);
            Ok(())
        },
    )
}

fn check_on(card: &str, case: &Case) -> Result<(), String> {
    let width = case.bed.width;
    let mut apart = case.watched();
    apart.iter_mut().zip(0u64..).for_each(|(frame, n)| frame.time_ns = Some(n * GAP_NS));
    let slow = Trial { pace: Pace::Capture { max_gap_ns: u64::MAX }, ..Trial::fast(&case.bed, &apart) };
    let alone = results(&slow.run(card)?, &apart, width);

    let close = case.watched();
    let together = results(&Trial::fast(&case.bed, &close).run(card)?, &close, width);

    let (mixed, places) = case.mixed();
    let among = results(&Trial::fast(&case.bed, &mixed).run(card)?, &mixed, width);

    let first = &close[..close.len().min(1)];
    let only = results(&Trial::fast(&case.bed, first).run(card)?, first, width);

    let same = |at: usize, how: &str, result: Option<&Result3>| {
        let expected = alone.get(&at);
        if result == expected && expected.is_some() {
            return Ok(());
        }
        Err(format!("{card}: watched frame {at}: hash, entry and fate are {expected:x?} with gaps, {result:x?} {how}"))
    };
    for (at, place) in places.into_iter().enumerate() {
        same(at, "back to back", together.get(&at))?;
        same(at, "among neighbours", among.get(&place))?;
    }
    if first.is_empty() { Ok(()) } else { same(0, "on a fresh card, the only frame", only.get(&0)) }
}
