//! Some of the cases of a hostile card, and what is behind them. `onic test hostile --full` tries a million.
//!
//! A failing case prints its number: `HOSTILE_ONLY=N cargo test --test hostile` tries it alone.

use testbench::hostile::{BY_REGISTERS, BY_RINGS, Campaign, Tally, try_registers, try_rings};

/// Of the cases that everybody tries.
const SEED: u64 = 1;

fn campaign(cases: u64) -> Campaign {
    let number = |name| std::env::var(name).ok().map(|text: String| text.parse().expect("a number"));
    let cases = number("HOSTILE_CASES").unwrap_or(cases);
    Campaign { cases, seed: number("HOSTILE_SEED").unwrap_or(SEED), only: number("HOSTILE_ONLY") }
}

fn show(what: &str, tally: &Tally) {
    println!("{what}\n  {}", tally.lines().join("\n  "));
}

#[test]
fn words_in_host_memory() {
    let campaign = campaign(50_000);
    match try_rings(&campaign, &mut |_| {}) {
        Ok(tally) => {
            show("rings", &tally);
            if campaign.only.is_none() {
                assert!(tally.mutated * 2 >= campaign.cases, "at least half are mutations of a valid run");
                assert_eq!(tally.illegal + tally.legal, campaign.cases);
                assert!(tally.good_frames >= campaign.cases, "one behind each fresh start");
                assert_eq!(tally.missing(&BY_RINGS, 1), [""; 0]);
            }
        }
        Err(failed) => panic!("seed {}: {failed}", campaign.seed),
    }
}

#[test]
fn register_answers() {
    let campaign = campaign(5_000);
    match try_registers(&campaign, &mut |_| {}) {
        Ok(tally) => {
            show("registers", &tally);
            if campaign.only.is_none() {
                assert_eq!(tally.missing(&BY_REGISTERS, 1), [""; 0]);
            }
        }
        Err(failed) => panic!("seed {}: {failed}", campaign.seed),
    }
}

/// What a repro line counts on: a case is the same alone as behind those before it.
#[test]
fn a_case_alone_is_the_case_in_the_run() {
    let whole = Campaign { cases: 400, seed: 7, only: None };
    let mut sum = Tally::default();
    for case in 0..whole.cases {
        sum += try_rings(&Campaign { only: Some(case), ..whole }, &mut |_| {}).expect("no failure");
    }
    let run = try_rings(&whole, &mut |_| {}).expect("no failure");
    assert_eq!((sum.illegal, sum.legal, &sum.deeds), (run.illegal, run.legal, &run.deeds));
    assert_eq!(sum.errors, run.errors);
}
