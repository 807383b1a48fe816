//! The bug gallery in its quick form: every mutant is caught with its place named, and drivers without fault are silent on a
//! few seeds. The long form is `onic gallery`.

mod common;

use common::Folder;
use testbench::card::Choice;
use testbench::gallery::sweep::sweep;
use testbench::gallery::vendor::{Fault, Vendor, tx};
use testbench::gallery::{ROWS, Sound, Standing, Subject, scenarios, try_row, try_sound, try_subject};

/// Seeds of each scenario here; `onic gallery` takes 1000.
const SEEDS: u64 = 4;

#[track_caller]
fn every_mutant_is_caught(card: &str) {
    let card = Choice::named(card);
    let mut caught = 0;
    for row in ROWS {
        let found = try_row(row, &card, 1).expect("a card");
        assert_eq!(found.is_some(), matches!(row.standing, Standing::Here(_)), "{}: {}", row.id, row.broken);
        let Some((seed, reports)) = found else { continue };
        let first = &reports[0];
        let Standing::Here(mutant) = &row.standing else { unreachable!("it was caught") };
        assert_eq!(first.by, mutant.by, "{}: {first:?}", row.id);
        assert!(!first.place.is_empty() && (first.packet.is_some() || first.time.is_some()), "{}: {first:?}", row.id);
        assert!(seed <= 20, "{} needs seed {seed}", row.id);
        caught += 1;
    }
    assert!(caught >= 30, "{caught}");
}

#[track_caller]
fn sound_drivers_are_silent(card: &str, seeds: u64) {
    let card = Choice::named(card);
    for scenario in scenarios::ALL.iter().filter(|scenario| card.name == "model" || scenario.is_square()) {
        for driver in [Sound::Core, Sound::Vendor] {
            let alarms = sweep(scenario, driver, &card, (1, seeds), &|| {}).expect("a card");
            let hint = format!("onic gallery --card {} --seed SEED --seeds 1", card.name);
            assert!(alarms.is_empty(), "{driver}, {}: {alarms:#?}\nhint: {hint}", scenario.name);
        }
    }
}

#[test]
fn every_mutant_is_caught_on_the_model() {
    every_mutant_is_caught("model");
}

#[test]
fn sound_drivers_are_silent_on_the_model() {
    sound_drivers_are_silent("model", SEEDS);
}

#[cfg(feature = "rtl")]
#[test]
fn sound_drivers_are_silent_on_hybrid() {
    sound_drivers_are_silent("hybrid", 1);
}

/// The same seed gives the same reports, to the last letter.
#[test]
fn a_seed_is_a_run() {
    let card = Choice::named("model");
    for row in ROWS.iter().filter(|row| ["B-16", "B-27", "B-38"].contains(&row.id)) {
        let once = || try_row(row, &card, 1).expect("a card").map(|(seed, caught)| (seed, format!("{caught:?}")));
        assert_eq!(once(), once(), "{}", row.id);
    }
}

/// A scenario that a mutant needs is one in which traffic flows, or it would be silent for want of anything to see.
#[test]
fn a_sound_driver_is_silent_although_frames_flow() {
    let card = Choice::named("model");
    let steady = scenarios::ALL.iter().find(|scenario| scenario.name == "steady").expect("it is there");
    assert_eq!(try_sound(steady, Sound::Core, &card, 7).expect("a card"), []);
    let subject = testbench::gallery::Subject::Core(testbench::gallery::seams::Bend::Straight);
    let evidence = testbench::gallery::play(steady, subject, &card, 7).expect("a card");
    assert!(evidence.outcome.delivered.len() > 100 && evidence.outcome.sent.len() > 100);
}

#[test]
fn the_command_prints_a_row_and_its_report() {
    let folder = Folder::new();
    let ran = folder.onic(&["gallery", "P-2", "b-20", "--seeds", "2"]).code(0);
    let out = ran.out();
    for part in ["P-2", "frames", "B-20", "setting", "fn0 mtu", "driver-core: silent in 2 scenarios with 2 seeds each"]
    {
        assert!(out.contains(part), "no `{part}` in:\n{out}");
    }
    folder.onic(&["gallery", "B-99"]).code(2).says("no `B-99`");
    // A row without a mutant compares nothing.
    folder.onic(&["gallery", "B-42"]).code(4);
}

#[test]
fn the_whole_table_fits_and_names_every_row() {
    let folder = Folder::new();
    let out = folder.onic(&["gallery", "--seeds", "1"]).code(0).out();
    for row in ROWS {
        assert!(out.lines().any(|line| line.starts_with(row.id)), "{}:\n{out}", row.id);
    }
    let widest = out.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    assert!(widest <= 120, "{widest} columns:\n{out}");
    assert!(out.contains("40 of 51 caught"), "{out}");
}

/// A transmit queue that the stack was told to leave alone must be woken, or it is said that it was not.
#[test]
fn a_queue_that_is_stopped_and_never_woken_is_caught() {
    fn never_wake(vendor: &mut Vendor, queue: u16) -> Result<(), Fault> {
        let is_stopped = |vendor: &Vendor| vendor.tx[usize::from(queue)].as_ref().is_some_and(|tx| tx.stopped);
        let stopped = is_stopped(vendor);
        tx::clean(vendor, queue)?;
        if let Some(tx) = &mut vendor.tx[usize::from(queue)] {
            tx.stopped |= stopped;
        }
        Ok(())
    }
    let full = scenarios::ALL.iter().find(|scenario| scenario.name == "full ring").expect("it is there");
    let subject = Subject::Vendor(|ways| ways.clean = never_wake);
    let caught = try_subject(full, subject, &Choice::named("model"), 1).expect("a card");
    let stall = caught.iter().find(|caught| caught.by == "liveness").expect("it is caught");
    assert!(stall.text.contains("the queue is not woken"), "{caught:?}");
}
