//! `onic gallery`: the vendor driver's known faults, each caught; and the drivers without fault, in silence.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::anyhow;
use serde_json::{Value, json};

use super::args::GalleryArgs;
use super::exit::{Exit, Failure};
use super::load;
use super::progress::Progress;
use super::table;
use crate::card::Choice;
use crate::execute::ExecuteError;
use crate::gallery::sweep::{Alarm, sweep};
use crate::gallery::{Caught, MUTANT_SEEDS, ROWS, Row, Scenario, Sound, Standing, scenarios, try_row};
use crate::outcome::cycle_before;

/// So many faults of the whole gallery must be caught.
const LEAST: usize = 30;
/// The vendor-like driver, which is only there to be broken, gets one in so many.
const VENDOR_SHARE: u64 = 10;
/// Alarms of one scenario that are printed.
const ALARMS: usize = 3;

/// What became of a row.
struct Shown {
    row: &'static Row,
    /// The seed, and what was caught, what says most first.
    caught: Option<(u64, Vec<Caught>)>,
}

/// What became of a scenario.
struct Silence {
    scenario: &'static Scenario,
    /// Seeds, by driver.
    seeds: Vec<(Sound, u64)>,
    alarms: Vec<Alarm>,
}

pub(super) fn run(args: &GalleryArgs) -> Result<Exit, Failure> {
    let card = Choice::named(&args.card);
    let (rows, left_out): (Vec<_>, Vec<_>) = rows(&args.ids)?.into_iter().partition(|row| runs_on(row, &card));
    if !left_out.is_empty() {
        let ids: Vec<&str> = left_out.iter().map(|row| row.id).collect();
        eprintln!(
            "gallery: left out, for card {} has no QDMA model to turn the knobs of: {}",
            card.name,
            ids.join(" ")
        );
    }
    let compares = rows.iter().any(|row| matches!(row.standing, Standing::Here(_)));
    let failed = |error: ExecuteError| load::no_card(error);
    let shown = rows
        .into_iter()
        .map(|row| Ok(Shown { row, caught: try_row(row, &card, args.seed)? }))
        .collect::<Result<Vec<Shown>, ExecuteError>>()
        .map_err(failed)?;
    if !args.json {
        print_rows(&shown, &args.card, !args.ids.is_empty());
    }
    let silence = listen(args, &card, &shown).map_err(failed)?;
    let missed: Vec<&str> = shown.iter().filter(|shown| shown.is_missed()).map(|shown| shown.row.id).collect();
    let caught = shown.iter().filter(|shown| shown.caught.is_some()).count();
    let enough = !args.ids.is_empty() || caught + left_out.len() >= LEAST;
    let alarms: usize = silence.iter().map(|silence| silence.alarms.len()).sum();
    let passed = missed.is_empty() && enough && alarms == 0;
    if args.json {
        println!("{}", as_json(args, &shown, &silence, passed));
    } else {
        print_silence(&silence, &args.card);
        print_verdict(&shown, &missed, alarms);
    }
    Ok(match passed {
        // None of the rows asked for has a mutant.
        true if !compares => Exit::NothingCompared,
        true => Exit::Agreed,
        false => Exit::Difference,
    })
}

/// What its mutant is put through can be had on the card.
fn runs_on(row: &Row, card: &Choice) -> bool {
    match &row.standing {
        Standing::Here(mutant) => mutant.scenario.runs_on(card),
        Standing::NotInUserSpace | Standing::Xdp => true,
    }
}

/// The rows asked for, all without.
fn rows(ids: &[String]) -> Result<Vec<&'static Row>, Failure> {
    if ids.is_empty() {
        return Ok(ROWS.iter().collect());
    }
    let find = |id: &String| {
        ROWS.iter().find(|row| row.id.eq_ignore_ascii_case(id)).ok_or_else(|| {
            Failure::from(anyhow!("the gallery has no `{id}`")).hint("onic gallery lists B-01 to B-45 and P-1 to P-6")
        })
    };
    ids.iter().map(find).collect()
}

impl Shown {
    fn is_missed(&self) -> bool {
        matches!(self.row.standing, Standing::Here(_)) && self.caught.is_none()
    }

    /// The first thing caught.
    fn first(&self) -> Option<&Caught> {
        self.caught.as_ref().and_then(|(_, caught)| caught.first())
    }

    fn scenario(&self) -> Option<&'static Scenario> {
        match &self.row.standing {
            Standing::Here(mutant) => Some(mutant.scenario),
            Standing::NotInUserSpace | Standing::Xdp => None,
        }
    }
}

fn cycle(caught: &Caught) -> Option<u64> {
    caught.time.map(cycle_before)
}

fn print_rows(shown: &[Shown], card: &str, whole: bool) {
    println!("The vendor driver's known faults on {card}, each made again in a driver or a card\n");
    let line = |shown: &Shown| {
        let (by, place, at) = match (&shown.row.standing, shown.first()) {
            (_, Some(caught)) => {
                let at = caught.packet.map(|packet| format!("packet {packet}"));
                let at = at.or_else(|| cycle(caught).map(|cycle| format!("cycle {cycle}")));
                (caught.by, caught.place.as_str(), at.unwrap_or_default())
            }
            (Standing::Here(_), None) => ("NOTHING", "", String::new()),
            (Standing::NotInUserSpace, None) => ("-", "not in user space", String::new()),
            (Standing::Xdp, None) => ("-", "XDP issue", String::new()),
        };
        vec![shown.row.id.into(), shown.row.broken.into(), by.into(), place.into(), at]
    };
    let lines: Vec<Vec<String>> = shown.iter().map(line).collect();
    let header = ["id", "what is broken", "caught by", "page, queue, index", "packet or cycle"];
    println!("{}", table::print(&header, &lines));
    if whole {
        shown.iter().for_each(print_whole);
        return;
    }
    for Shown { row, .. } in shown.iter().filter(|shown| matches!(shown.row.standing, Standing::NotInUserSpace)) {
        println!("{}: not in user space because it {}", row.id, row.made);
    }
    println!("`onic gallery ID` prints a fault's whole report.\n");
}

/// All that there is to say of a row.
fn print_whole(shown: &Shown) {
    let Row { id, broken, made, expected, .. } = shown.row;
    println!("{id}  {broken}");
    println!("  made      {made}");
    let Some(scenario) = shown.scenario() else {
        println!("");
        return;
    };
    println!("  scenario  {}: {}", scenario.name, scenario.doc);
    println!("  expected  {expected}");
    let Some((seed, caught)) = &shown.caught else {
        println!("  caught    by nothing, in {MUTANT_SEEDS} seeds\n");
        return;
    };
    println!("  seed      {seed}");
    for caught in caught.iter().take(ALARMS) {
        println!("  {:<9} {}", caught.by, caught.text.replace('\n', "\n            "));
    }
    if caught.len() > ALARMS {
        println!("  and       {} more", caught.len() - ALARMS);
    }
    println!("");
}

/// The drivers without fault through the scenarios that the rows use, or through all of them.
fn listen(args: &GalleryArgs, card: &Choice, shown: &[Shown]) -> Result<Vec<Silence>, ExecuteError> {
    let drivers = [(Sound::Core, args.seeds), (Sound::Vendor, args.seeds.div_ceil(VENDOR_SHARE))];
    let used = |scenario: &Scenario| {
        args.ids.is_empty() || shown.iter().any(|shown| shown.scenario().is_some_and(|own| own.name == scenario.name))
    };
    let runs = |scenario: &&Scenario| used(scenario) && scenario.runs_on(card);
    let list: Vec<&'static Scenario> = scenarios::ALL.iter().copied().filter(runs).collect();
    let total = list.len() as u64 * drivers.iter().map(|(_, count)| count).sum::<u64>();
    let done = AtomicU64::new(0);
    let progress = Mutex::new(Progress::counting("runs"));
    let silence = list
        .into_iter()
        .map(|scenario| {
            let mut silence = Silence { scenario, seeds: drivers.to_vec(), alarms: Vec::new() };
            for (driver, count) in drivers {
                let tell = || {
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    if let Ok(mut progress) = progress.try_lock() {
                        progress.at("silence", done, total);
                    }
                };
                silence.alarms.extend(sweep(scenario, driver, card, (args.seed, count), &tell)?);
            }
            Ok(silence)
        })
        .collect();
    progress.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).finish();
    silence
}

fn print_silence(silence: &[Silence], card: &str) {
    for Silence { scenario, alarms, .. } in silence {
        for Alarm { driver, seed, caught, .. } in alarms.iter().take(ALARMS) {
            let text = caught.text.replace('\n', "\n  ");
            println!("error: {driver}, {}, seed {seed}: {}\n  {text}", scenario.name, caught.by);
        }
        if alarms.len() > ALARMS {
            println!("  and {} more seeds of {}", alarms.len() - ALARMS, scenario.name);
        }
    }
    let Some(Silence { seeds, .. }) = silence.first() else { return };
    for (driver, count) in seeds {
        let alarms = silence.iter().flat_map(|silence| &silence.alarms).filter(|alarm| alarm.driver == *driver).count();
        let word = if alarms == 0 { "silent".to_string() } else { format!("NOT SILENT ({alarms} alarms)") };
        let seeds = if *count == 1 { "seed" } else { "seeds" };
        println!("{driver}: {word} in {} scenarios with {count} {seeds} each on {card}", silence.len());
    }
}

fn print_verdict(shown: &[Shown], missed: &[&str], alarms: usize) {
    let count = |wanted: fn(&Shown) -> bool| shown.iter().filter(|shown| wanted(shown)).count();
    let not_here = count(|shown| matches!(shown.row.standing, Standing::NotInUserSpace));
    let xdp = count(|shown| matches!(shown.row.standing, Standing::Xdp));
    let caught = count(|shown| shown.caught.is_some());
    println!("{caught} of {} caught, {xdp} in the XDP issue, {not_here} not in user space", shown.len());
    if !missed.is_empty() {
        println!("error: nothing catches {}", missed.join(", "));
    }
    if alarms > 0 {
        println!("hint: onic gallery --seed SEED --seeds 1 repeats one seed");
    }
}

fn as_json(args: &GalleryArgs, shown: &[Shown], silence: &[Silence], passed: bool) -> Value {
    let one = |caught: &Caught| {
        json!({ "by": caught.by, "place": caught.place, "packet": caught.packet, "cycle": cycle(caught),
                "text": caught.text })
    };
    let rows: Vec<Value> = shown
        .iter()
        .map(|shown| {
            let standing = match (&shown.row.standing, &shown.caught) {
                (Standing::Here(_), Some(_)) => "caught",
                (Standing::Here(_), None) => "missed",
                (Standing::NotInUserSpace, _) => "not in user space",
                (Standing::Xdp, _) => "XDP issue",
            };
            let (seed, first, all) = match &shown.caught {
                Some((seed, caught)) => (Some(seed), caught.first().map(one), caught.len()),
                None => (None, None, 0),
            };
            json!({ "id": shown.row.id, "broken": shown.row.broken, "made": shown.row.made,
                    "expected": shown.row.expected, "scenario": shown.scenario().map(|scenario| scenario.name),
                    "standing": standing, "seed": seed, "caught": first, "reports": all })
        })
        .collect();
    let scenarios: Vec<Value> = silence
        .iter()
        .map(|silence| {
            let alarms: Vec<Value> = silence
                .alarms
                .iter()
                .map(|alarm| json!({ "driver": alarm.driver.to_string(), "seed": alarm.seed, "caught": one(&alarm.caught) }))
                .collect();
            let seeds: Vec<Value> = silence
                .seeds
                .iter()
                .map(|(driver, count)| json!({ "driver": driver.to_string(), "seeds": count }))
                .collect();
            json!({ "name": silence.scenario.name, "doc": silence.scenario.doc, "runs": seeds, "alarms": alarms })
        })
        .collect();
    json!({ "version": 1, "card": args.card, "first_seed": args.seed, "passed": passed, "rows": rows,
            "scenarios": scenarios })
}
