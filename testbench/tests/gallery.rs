//! The bug gallery in its quick form: every mutant is caught with its place named, and drivers without fault are silent on a
//! few seeds. The long form is `onic gallery`.

mod common;

use common::Folder;
use driver_core::Side;
use models::observation::{Fate, Observation, Point};
use models::time::Time;
use regs::{FuncId, PortId};
use testbench::card::Choice;
use testbench::frames;
use testbench::gallery::catch::catch;
use testbench::gallery::evidence::{Books, Posted, Told, Trouble};
use testbench::gallery::excuse::Excuse;
use testbench::gallery::nic::Totals;
use testbench::gallery::sweep::sweep;
use testbench::gallery::vendor::{Fault, Vendor, tx};
use testbench::gallery::{Evidence, ROWS, Sound, Standing, Subject, scenarios, try_row, try_sound, try_subject};
use testbench::outcome::{Delivered, Sent, Sum};
use testbench::run::InFrame;

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

const FUNC: FuncId = FuncId(0);
const PORT: PortId = PortId(0);

fn us(us: u64) -> Time {
    Time::from_ns(us * 1_000)
}

fn frame(number: usize) -> Vec<u8> {
    frames::udp(7, number as u64, 100).expect("it is short")
}

/// What is left of a run in which these frames came to queues at these times, and were handed up at those, if at all; us.
fn received(frames: &[(u16, u64, Option<u64>)]) -> Evidence {
    let mut evidence = Evidence { functions: 1, trouble: Trouble::Possible, end: us(1_000), ..Evidence::default() };
    for (number, &(queue, taken, up)) in frames.iter().enumerate() {
        let (data, index) = (frame(number), number as u64);
        let see = |point| Observation { time: us(taken), point };
        evidence.outcome.observations.push(see(Point::RxEnd { port: PORT, fate: Fate::Accepted }));
        let rss = Point::Rss { func: FUNC, hash: 7, entry: queue, fate: Fate::Accepted };
        evidence.outcome.observations.push(see(rss));
        let delivered = |at| Delivered { func: FUNC, queue, data: data.clone(), time: us(at), crossing: None };
        evidence.outcome.delivered.extend(up.map(delivered));
        evidence.input.push(InFrame { port: PORT, index, time_ns: None, data, err: false });
    }
    evidence.outcome.delivered.sort_by_key(|frame| frame.time);
    evidence
}

/// At 10 us a queue's receive side was told to have stopped; at 20 us it ran again.
fn told(queue: u16) -> Told {
    let excuse = Excuse { func: FUNC, queue: Some(queue), side: Some(Side::Rx), until: us(20) };
    Told { text: "a fault".into(), time: us(10), excuse: Some(excuse) }
}

/// The books of a function that has handed up all that came, and dropped so many.
fn books(evidence: &Evidence, func: u8, rx_dropped: u64) -> Books {
    let delivered = || evidence.outcome.delivered.iter().filter(|frame| frame.func.0 == func);
    let rx_bytes = delivered().map(|frame| frame.data.len() as u64).sum();
    let totals = Totals { rx_packets: delivered().count() as u64, rx_bytes, rx_dropped, ..Totals::default() };
    Books { func: FuncId(func), totals }
}

/// Words of the catchers, each once for what it caught.
fn words(evidence: &Evidence) -> Vec<&'static str> {
    catch(evidence).iter().map(|caught| caught.by).collect()
}

#[test]
fn a_told_fault_excuses_what_was_in_its_queue() {
    let mut evidence = received(&[(1, 1, Some(5)), (1, 8, None), (1, 15, None), (1, 30, Some(31))]);
    assert_eq!(words(&evidence), ["frames"]);
    evidence.told.push(told(1));
    assert_eq!(words(&evidence), [""; 0]);
}

#[test]
fn a_told_fault_excuses_no_other_queue() {
    let mut evidence = received(&[(0, 8, None), (1, 8, None)]);
    evidence.told.push(told(1));
    let caught = catch(&evidence);
    assert_eq!((caught.len(), caught[0].by, caught[0].packet), (1, "frames", Some(0)), "{caught:?}");
    evidence.told.push(told(0));
    assert_eq!(words(&evidence), [""; 0]);
}

#[test]
fn a_told_fault_excuses_nothing_that_came_once_the_queue_ran_again() {
    let mut evidence = received(&[(1, 8, None), (1, 21, None)]);
    evidence.told.push(told(1));
    let caught = catch(&evidence);
    assert_eq!((caught.len(), caught[0].by, caught[0].packet), (1, "frames", Some(1)), "{caught:?}");
}

#[test]
fn a_told_fault_excuses_nothing_that_had_been_passed_by_then() {
    let mut evidence = received(&[(1, 1, None), (1, 2, Some(9))]);
    evidence.told.push(told(1));
    assert_eq!(words(&evidence), ["frames"]);
}

#[test]
fn a_told_fault_excuses_one_direction() {
    let posted =
        |number: usize, at| Posted { func: FUNC, queue: 1, number: number as u64, data: frame(number), time: us(at) };
    let mut evidence = received(&[]);
    evidence.posted = vec![posted(0, 1), posted(1, 8)];
    evidence.outcome.sent.push(Sent { port: PORT, data: frame(0), err: false, time: us(2) });
    evidence.told.push(told(1));
    assert_eq!(words(&evidence), ["frames"]);
    let mut both = told(1);
    both.excuse.iter_mut().for_each(|excuse| excuse.side = None);
    evidence.told.push(both);
    assert_eq!(words(&evidence), [""; 0]);
}

#[test]
fn an_error_that_stops_no_queue_excuses_nothing() {
    let mut evidence = received(&[(1, 8, None)]);
    evidence.told.push(Told { excuse: None, ..told(1) });
    assert_eq!(words(&evidence), ["frames"]);
}

#[test]
fn a_count_excuses_so_many_frames_of_its_function() {
    let caught_with = |func, dropped| {
        let mut evidence = received(&[(0, 1, Some(2)), (0, 8, None), (1, 9, None)]);
        evidence.books = vec![books(&evidence, func, dropped)];
        words(&evidence)
    };
    assert_eq!(caught_with(0, 2), [""; 0]);
    assert_eq!(caught_with(0, 1), ["frames"]);
    assert_eq!(caught_with(1, 2), ["frames"]);
}

/// A frame that was told of and counted as well is one frame.
#[test]
fn the_sum_counts_the_frames_that_are_excused() {
    let caught_with = |host_out, dropped| {
        let mut evidence = received(&[(1, 1, Some(5)), (1, 8, None)]);
        evidence.told.push(told(1));
        evidence.books = vec![books(&evidence, 0, dropped)];
        evidence.counted = Some(Sum { wire_in: host_out, host_out, ..Sum::default() });
        words(&evidence)
    };
    assert_eq!(caught_with(1, 0), [""; 0], "it never reached host memory");
    assert_eq!(caught_with(2, 0), [""; 0]);
    assert_eq!(caught_with(2, 1), [""; 0]);
    assert_eq!(caught_with(3, 0), ["sum"]);
}
