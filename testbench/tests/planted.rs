//! Faults planted in the QDMA engine, each caught by tests that know nothing of it.
//!
//! The engine is built once more with all of them; `+onic_fault=N` turns one on.
#![cfg(feature = "rtl")]

use testbench::differential::{self, Engine, Shape};

const SHAPE: Shape = Shape { queues: 512, functions: 2, seed: 0 };

/// Number and what is wrong. Source: the `ONIC_FAULTS` sections of rtl-bridge/rtl/qdma.
const FAULTS: [(u8, &str); 10] = [
    (11, "rings wrap at N"),
    (12, "the color does not flip"),
    (13, "status words in slot N-2"),
    (14, "a CIDX doorbell does not look at what is left"),
    (15, "a descriptor's room is lost now and then"),
    (16, "the function's queue is taken for the card's"),
    (17, "data of a stopped queue come late"),
    (18, "a completion does not wait for its payload"),
    (19, "an arming doorbell that finds entries sends no interrupt"),
    (20, "writes cross 4 KiB"),
];

/// Seeds of the differential test that a fault may survive before it counts as missed.
const SEEDS: u64 = 10;

/// Actions of each.
const ACTIONS: usize = 1_000;

/// No fault: the faulty engine with none of them on.
const NONE: u8 = 0;

/// An engine with one of the faults on, just out of power-up. That there is none is no catch.
fn faulty(shape: &Shape, fault: u8) -> Box<dyn Engine> {
    let engine = differential::rtl_with_fault(shape, fault);
    engine.unwrap_or_else(|text| panic!("there is no engine with fault {fault}: {text}"))
}

/// What catches the fault: the acceptance checks, ring laps, or random actions.
fn caught_by(fault: u8) -> Option<String> {
    let faulty = |shape: &Shape| Ok(faulty(shape, fault));
    for check in &differential::CHECKS {
        if let Err(text) = (check.run)(&faulty) {
            return Some(format!("{}: {text}", check.name));
        }
    }
    if let Err(text) = differential::laps_agree(65, SHAPE, &differential::model, &faulty) {
        return Some(format!("laps: {text}"));
    }
    (0..SEEDS).find_map(|seed| {
        let result = differential::run_seed(seed, ACTIONS, SHAPE, &differential::model, &faulty);
        result.err().map(|differs| differs.to_string())
    })
}

#[test]
fn each_is_caught() {
    let missed: Vec<_> = FAULTS
        .into_iter()
        .filter(|(fault, what)| match caught_by(*fault) {
            Some(how) => {
                println!("{fault}, {what}: {how}");
                false
            }
            None => true,
        })
        .collect();
    assert!(missed.is_empty(), "nothing catches {missed:?}");
}

/// The same checks on the same engine are silent while no fault is on: what catches one is no false alarm.
#[test]
fn none_is_found_where_none_is() {
    assert_eq!(caught_by(NONE), None);
}
