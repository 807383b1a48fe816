//! A driver's actions on a whole card, shell and QDMA: the model and the card with RTL, driven alike by driver-core.
//!
//! Bring-up, traffic, polls and the rest are the console's [`crate::console::Session`]. Differs from
//! [`crate::differential`], which drives the engine alone by its registers and rings, in that here everything goes the
//! way that a user's does.
//!
//! | file | concern |
//! |---|---|
//! | `action` | kinds of actions, lists of them from a seed |
//! | `draw`, `deed` | what an action is here and now, with all that it drew |
//! | `world` | what both cards should have come to, and what a frame's fate is then |
//! | `side` | one card: a deed done, what came of it |
//! | `compare` | what two cards must share: the table |
//! | `tests` | the test of the test |
//! | `mod` | a seed: conditions, both cards, the list |

mod action;
mod compare;
mod deed;
mod draw;
mod side;
#[cfg(test)]
mod tests;
mod world;

use std::collections::BTreeMap;

use traces::synth::Rng;

use super::bed::Timing;
use super::coverage::Coverage;
use super::{Config, Failure, Property, Report, seeds};
use crate::actions::{self, ListOutcome, run_and_shrink};
use crate::card::{Card, Choice, Fetch, Link, Shape};
use crate::run::{HostProfile, Setup};

use action::actions;
pub use action::{Action, Kind};
use compare::Certainty;
use deed::Deed;
use side::{Account, Rows, Side};
use world::World;

pub(super) const CARD_ACTIONS: Property = Property {
    name: "card-actions",
    doc: "whatever a driver does with a whole card, model and RTL agree on frames, drops, statistics, errors and settings",
    needs_rtl: true,
    quick: 2,
    full: 40,
    kept: kept!("card-actions"),
    check,
};

/// Actions of a seed.
pub const COUNT: usize = 60;
/// Runs made to shrink a failing list.
const SHRINK_RUNS: usize = 200;
/// Of how many seeds one has two functions and ports.
const WIDE: u64 = 4;

/// A list of actions on which two cards differ.
pub type Differs = actions::Differs<Kind>;

/// Makes a card under some conditions, or says why it can't be had.
pub type Maker<'a> = &'a dyn Fn(&Conditions) -> Result<Box<dyn Card>, String>;

/// On what a seed's list is run. Everything here is made from the seed.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// The seed.
    pub seed: u64,
    /// How drivers and host are set up.
    pub setup: Setup,
    timing: Timing,
    fetch: Fetch,
    link: Link,
}

impl Conditions {
    /// Of a seed.
    pub fn of(seed: u64) -> Conditions {
        let mut rng = Rng::named(seed, "card actions conditions");
        let width = if seed.is_multiple_of(WIDE) { 2 } else { 1 };
        let max_pkt_len = *rng.pick(&[1518, 9600]);
        let shape = Shape {
            functions: width,
            ports: width,
            queues: rng.between(1, 6) as u16,
            max_pkt_len,
            mtu: max_pkt_len - 18,
            ring: 64,
            ..Shape::default()
        };
        let host = HostProfile { interrupt_ns: *rng.pick(&[200, 1_000, 5_000]), packet_ns: *rng.pick(&[0, 0, 100]) };
        Conditions {
            seed,
            setup: Setup { shape, host, ..Setup::default() },
            timing: Timing::any(&mut rng),
            fetch: *rng.pick(&[Fetch::Hardware, Fetch::Wire]),
            link: *rng.pick(&[Link::Ideal, Link::Pcie3x16]),
        }
    }

    /// The card of this name under these conditions.
    pub fn card(&self, name: &str) -> Choice {
        let mut choice = Choice::named(name);
        choice.rtl.seed = self.timing.seed;
        choice.rtl.stalls = self.timing.stalls.to_string();
        choice.rtl.phases_ps = self.timing.phases_ps;
        choice.rtl.reset_cycles = Some(self.timing.reset_cycles);
        (choice.rtl.knobs.fetch, choice.rtl.knobs.link) = (self.fetch, self.link);
        choice
    }

    /// It, made.
    ///
    /// # Errors
    /// Why it can't be had.
    pub fn make(&self, name: &str) -> Result<Box<dyn Card>, String> {
        self.card(name).make(&self.setup.shape).map_err(|error| error.to_string())
    }
}

/// What a seed's list reached.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How often each action took effect.
    pub effects: BTreeMap<Kind, u64>,
    /// Frames that came out, of both kinds.
    pub frames: u64,
    /// Frames that overflowed.
    pub overflows: u64,
}

/// Run one seed.
///
/// # Errors
/// The list on which the cards differ.
pub fn run_seed(seed: u64, count: usize, reference: Maker<'_>, tested: Maker<'_>) -> Result<Tally, Box<Differs>> {
    let conditions = Conditions::of(seed);
    run_and_shrink(seed, &actions(seed, count), SHRINK_RUNS, &|list| run_list(list, &conditions, [reference, tested]))
}

/// Run a list. On a difference: what it is, and how many actions it took.
fn run_list(list: &[Action], conditions: &Conditions, makers: [Maker<'_>; 2]) -> ListOutcome<Tally> {
    let mut pair = Pair::start(conditions, makers).map_err(|message| (message, 0))?;
    for (done, action) in list.iter().enumerate() {
        pair.act(*action).map_err(|message| (message, done + 1))?;
    }
    pair.finish().map_err(|message| (message, list.len()))
}

/// Both cards, and what is remembered between two actions.
struct Pair {
    /// Of the cards; two of one name are told apart.
    names: [String; 2],
    sides: [Side; 2],
    world: World,
    /// Counts after the last action, and at the last look.
    counts: [Rows; 2],
    looked: [Rows; 2],
    /// The least since the last look.
    certainty: Certainty,
    tally: Tally,
}

impl Pair {
    fn start(conditions: &Conditions, makers: [Maker<'_>; 2]) -> Result<Pair, String> {
        let start = |make: Maker<'_>| Side::start(make(conditions)?, &conditions.setup);
        let [one, other] = makers;
        let shape = &conditions.setup.shape;
        let mut sides = [start(one)?, start(other)?];
        if sides[0].name == sides[1].name {
            sides[1].name += "'";
        }
        let mut pair = Pair {
            names: sides.each_ref().map(|side| side.name.clone()),
            sides,
            world: World::new(shape.ports, shape.max_pkt_len - 4),
            counts: Default::default(),
            looked: Default::default(),
            certainty: Certainty::Exact,
            tally: Tally::default(),
        };
        pair.follow();
        pair.look()?;
        Ok(pair)
    }

    fn follow(&mut self) {
        let [reference, _] = &mut self.sides;
        for interface in reference.session.interfaces() {
            self.world.follow(reference.session.driver(interface));
        }
    }

    fn act(&mut self, action: Action) -> Result<(), String> {
        let Some(deed) = draw::draw(action, &self.world) else { return Ok(()) };
        self.deed(action.kind, &deed).map_err(|message| format!("{message}\n  after  {:?}: {deed}", action.kind))
    }

    fn deed(&mut self, kind: Kind, deed: &Deed) -> Result<(), String> {
        let [one, other] = &mut self.sides;
        let accounts = [one.act(deed)?, other.act(deed)?];
        let risen: [Rows; 2] = std::array::from_fn(|side| compare::risen(&self.counts[side], &accounts[side].counts));
        for side in &mut self.sides {
            side.alone(false)?;
        }
        compare::settled(self.names.each_ref().map(String::as_str), &self.world, deed, &accounts, &risen)?;
        self.certainty = self.certainty.max(deed.certainty());
        self.tally.frames +=
            accounts.iter().map(|account| account.record.delivered.len() + account.record.sent.len()).sum::<usize>()
                as u64;
        let overflows = risen.each_ref().map(overflows);
        self.tally.overflows += overflows[0];
        if took_effect(kind, &accounts, &risen) {
            *self.tally.effects.entry(kind).or_default() += 1;
        }
        self.world.note(deed, accounts[0].said.iter().any(|said| said == "done"));
        self.counts = accounts.map(|account| account.counts);
        self.follow();
        if let Deed::Look = deed { self.look() } else { Ok(()) }
    }

    fn look(&mut self) -> Result<(), String> {
        let [one, other] = &mut self.sides;
        let looked = [one.look()?, other.look()?];
        let risen: [Rows; 2] = std::array::from_fn(|side| compare::risen(&self.looked[side], &looked[side].rows));
        for side in &mut self.sides {
            side.alone(true)?;
        }
        compare::looked(self.names.each_ref().map(String::as_str), self.certainty, looked.each_ref(), &risen)?;
        self.looked = looked.map(|looked| looked.rows);
        self.certainty = Certainty::Exact;
        Ok(())
    }

    fn finish(mut self) -> Result<Tally, String> {
        self.look()?;
        let [one, other] = self.sides;
        one.finish()?;
        other.finish()?;
        Ok(self.tally)
    }
}

fn overflows(risen: &Rows) -> u64 {
    risen.iter().filter(|(name, _)| name.ends_with(".overflow")).map(|(_, count)| count).sum()
}

/// Did an action do on both cards what it is there for?
fn took_effect(kind: Kind, accounts: &[Account; 2], risen: &[Rows; 2]) -> bool {
    let rose = |rows: &Rows, part: &str| rows.iter().any(|(name, count)| name.contains(part) && *count > 0);
    let on_one = |(account, risen): (&Account, &Rows)| {
        let received = !account.record.delivered.is_empty();
        let sent = !account.record.sent.is_empty();
        let said = |text: &str| account.said.iter().any(|said| said.contains(text));
        match kind {
            Kind::Receive | Kind::Withhold => received,
            Kind::Send => sent,
            Kind::Both => received && sent,
            Kind::Overrun => overflows(risen) > 0,
            Kind::Down
            | Kind::Up
            | Kind::Channels
            | Kind::Rings
            | Kind::Mtu
            | Kind::Moderation
            | Kind::Key
            | Kind::Table
            | Kind::Restart
            | Kind::Fec => said("done"),
            Kind::Refused => said("refused"),
            Kind::ModerationUnderLoad
            | Kind::RssUnderLoad
            | Kind::DownUnderLoad
            | Kind::UpUnderLoad
            | Kind::ChangeUnderLoad => said("done") && (received || sent),
            Kind::ShortRange => rose(risen, "queue_range") || rose(risen, "no_function"),
            Kind::StrayRange => rose(risen, "drop qdma."),
            Kind::WrongQueue | Kind::UnknownRegister => !account.faults.is_empty(),
            Kind::BadCidx | Kind::BadPidxRx | Kind::BadPidxTx => said("runs again"),
            Kind::LooseTable | Kind::UnknownShell | Kind::UserReset | Kind::Look => true,
        }
    };
    accounts.iter().zip(risen).all(on_one)
}

// ---- The property

/// In so many seeds each action must have taken effect once.
const SEEDS_PER_EFFECT: u64 = 8;

fn check(property: &Property, config: &Config<'_>) -> Result<Report, Failure> {
    let goal = u64::from(config.cases).div_ceil(SEEDS_PER_EFFECT);
    let goals = Kind::ALL.map(|(kind, _)| (format!("{kind:?}"), goal));
    let model = |conditions: &Conditions| conditions.make("model");
    let rtl = |conditions: &Conditions| conditions.make(config.rtl);
    let run = |seed| {
        let done = run_seed(seed, COUNT, &model, &rtl);
        done.map_err(|differs| if config.rtl == "rtl" { located(differs, &model) } else { differs })
    };
    seeds::run(property, config, Coverage::with_goals(goals), run, |coverage, tally| {
        coverage.add("frames compared", tally.frames);
        coverage.add("frames that overflowed", tally.overflows);
        tally.effects.iter().for_each(|(kind, times)| coverage.add(&format!("{kind:?}"), *times));
    })
}

/// Say of what fails on `rtl` whether it fails on `hybrid` too, whose QDMA is the model's.
fn located(mut differs: Box<Differs>, model: Maker<'_>) -> Box<Differs> {
    let hybrid = |conditions: &Conditions| conditions.make("hybrid");
    let part = match run_list(&differs.actions, &Conditions::of(differs.seed), [model, &hybrid]) {
        Ok(_) => "not on hybrid, whose QDMA is the model: look into the engine",
        Err(_) => "on hybrid too, whose QDMA is the model: look into the shell, or what is common to all",
    };
    differs.message += &format!("\n  where  {part}");
    differs
}
