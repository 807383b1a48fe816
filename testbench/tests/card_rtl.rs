//! Card `rtl`: goldens, with any host.
#![cfg(feature = "rtl")]

use testbench::card::{Choice, Knobs};
use testbench::golden_check;

/// Check these cases of `traces/golden` on `card`.
fn check(card: &Choice, cases: &[&str]) {
    // The cases are found from the repository's root; cargo starts a test in its member's folder.
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).expect("the repository's root");
    let folders = golden_check::cases(&[]).expect("traces/golden");
    for case in cases {
        let folder = folders.iter().find(|folder| folder.ends_with(case)).expect("the case is there");
        let checked =
            golden_check::check(folder, card, &mut |_, _, _| {}).unwrap_or_else(|error| panic!("{case}: {error}"));
        let findings: Vec<_> = checked.ran.verdict.findings.iter().map(|finding| &finding.text).collect();
        assert!(
            checked.passed(),
            "{case}: {:?} {findings:?}\nhint: ./onic golden check traces/golden/{case} --card rtl",
            checked.differences
        );
    }
}

fn with(settings: &[&str], stalls: &str, seed: u64) -> Choice {
    let mut card = Choice::named("rtl");
    card.rtl.knobs = Knobs::from_settings(settings.iter().copied()).expect("good settings");
    card.rtl.stalls = stalls.into();
    card.rtl.seed = seed;
    card
}

#[test]
fn goldens_hold() {
    check(&Choice::named("rtl"), &["rss-mix", "errors", "jumbo", "queues-16"]);
}

#[test]
fn goldens_hold_whatever_the_host_is_like() {
    for (settings, stalls) in [
        (&["fetch=wire", "latency=1", "latency-spread=0"][..], "none"),
        (&["fetch=wire", "latency=700", "latency-spread=600"], "random:40"),
        (&["fetch=hardware", "link=pcie3x16", "reorder=off"], "bursts:20"),
    ] {
        check(&with(settings, stalls, 5), &["size-ladder", "rss-mix"]);
    }
}
