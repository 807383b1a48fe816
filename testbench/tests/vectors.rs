//! Upstream's measured hashes (`vectors/opennic_rss.csv`, beside the checkout) against the model's two profiles and our RTL.
//!
//! Which rows a corrected card must hash otherwise is told from frame bytes and gaps, never from a result.

use std::collections::BTreeMap;
use std::path::Path;

use models::rss::Difference;
use testbench::vectors;
use traces::golden::measured::{self, Row};

/// The rows, or none aloud.
fn rows() -> Option<Vec<Row>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors/opennic_rss.csv");
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(measured::parse(&text).expect("a file of vectors")),
        Err(error) => {
            println!("skipped: {}: {error}", path.display());
            None
        }
    }
}

/// Rows that differ, by class; "unexplained" where a corrected card has no reason to.
fn classes(rows: &[Row], computed: &[u32]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for mismatch in vectors::compare(rows, computed) {
        let class = match mismatch.reason {
            Some(Difference::TaggedNotIpv4) => "tagged, not IPv4",
            Some(Difference::VlanTerm) => "tagged IPv4, VLAN term",
            Some(Difference::NeighbourNibble | Difference::StaleTail) => "untagged",
            None => "unexplained",
        };
        *counts.entry(class).or_default() += 1;
    }
    counts
}

/// What corrected behaviour makes of the 2,034 rows. Source: DESIGN.md section 5 and the counts of issue 2.
fn expected() -> BTreeMap<&'static str, usize> {
    BTreeMap::from([("tagged, not IPv4", 167), ("tagged IPv4, VLAN term", 75), ("untagged", 30)])
}

#[test]
fn the_upstream_profile_agrees_on_every_row() {
    let Some(rows) = rows() else { return };
    assert_eq!(rows.len(), 2034);
    assert_eq!(classes(&rows, &vectors::upstream(&rows).expect("keys")), BTreeMap::new());
}

#[test]
fn the_corrected_model_differs_on_272_rows_and_no_other() {
    let Some(rows) = rows() else { return };
    assert_eq!(classes(&rows, &vectors::corrected(&rows).expect("keys")), expected());
}

#[cfg(feature = "rtl")]
#[test]
fn our_rtl_differs_on_272_rows_and_no_other() {
    let Some(rows) = rows() else { return };
    assert_eq!(classes(&rows, &testbench::rtl_hash::hashes(&rows).expect("every frame comes through")), expected());
}
