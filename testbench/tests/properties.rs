//! Every property, tried as often as `onic test` does.
//!
//! `cargo test --test properties NAME` tries one; `onic test --full` tries each on many more cases.

use std::path::Path;

use testbench::properties::{self, Config};

/// Of the cases that everybody tries.
const SEED: u64 = 1;

fn holds(name: &str) {
    let property = properties::all().iter().find(|property| property.name == name).expect("the name of a property");
    if property.needs_rtl && !cfg!(feature = "rtl") {
        println!("skipped: {name} needs RTL, and this is a build without it");
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("properties");
    // A whole card is what this one is about.
    let rtl = if name == "card-actions" { "rtl" } else { "hybrid" };
    let config = Config { cases: property.quick, seed: SEED, rtl, only: None, folder: &folder, progress: &|_, _| {} };
    match property.run(&config) {
        Ok(report) => println!("{name}: {} cases of seed {SEED}\n  {}", report.cases, report.coverage.join("\n  ")),
        Err(failure) => panic!("{name}: {}\n{failure}", property.doc),
    }
}

macro_rules! properties {
    ($($function:ident $name:literal),* $(,)?) => {
        $(#[test]
        fn $function() {
            holds($name);
        })*

        #[test]
        fn none_is_left_out() {
            let names: Vec<_> = properties::all().iter().map(|property| property.name).collect();
            assert_eq!(names, [$($name),*]);
        }
    };
}

properties! {
    replay "replay",
    transmit "transmit",
    affinity "affinity",
    same "same",
    spread "spread",
    ports "ports",
    port_one "port-one",
    overflow "overflow",
    rearm "rearm",
    rings "rings",
    laps "laps",
    full_ring "full-ring",
    numbered "numbered",
    hostile "hostile",
    hostile_registers "hostile-registers",
    engine_golden "engine-golden",
    engine_directed "engine-directed",
    engine_laps "engine-laps",
    differential "differential",
    card_actions "card-actions",
}
