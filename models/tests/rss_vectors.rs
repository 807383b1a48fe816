//! The hash against upstream's RTL: 2,034 measured frames, and 192 with a stall between beats 1 and 2.
//!
//! Source: shared vectors, shell.md section 20. Without them these tests say so and pass.

use std::collections::BTreeMap;
use std::path::PathBuf;

use models::rss::upstream::{HashBlock, Stall};
use models::rss::{self, Difference, Driven, Key, OpennicInput};

/// One line of a vector file, by column name.
type Row = BTreeMap<String, String>;

fn rows(file: &str) -> Option<Vec<Row>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors").join(file);
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: {file} is not there (../shared/vectors beside the workspace)");
        return None;
    };
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
    Some(
        lines
            .map(|line| names.iter().map(ToString::to_string).zip(line.split(',').map(str::to_string)).collect())
            .collect(),
    )
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|k| u8::from_str_radix(&hex[2 * k..2 * k + 2], 16).expect("hex")).collect()
}

fn number<T: std::str::FromStr>(row: &Row, column: &str) -> T {
    row[column].parse().unwrap_or_else(|_| panic!("column {column}: {}", row[column]))
}

fn hash(row: &Row, column: &str) -> u32 {
    u32::from_str_radix(&row[column], 16).expect("hex")
}

/// The vectors print the key as one number, most significant digit first.
fn key(row: &Row) -> Key {
    format!("0x{}", row["key_hex"]).parse().expect("40 bytes")
}

/// A change of key costs 10 idle cycles that the gap column leaves out (the file's own header).
fn driven<'a>(rows: &[Row], frames: &'a [Vec<u8>]) -> Vec<Driven<'a>> {
    let rekeyed = |i: usize| i > 0 && rows[i - 1]["key_hex"] != rows[i]["key_hex"];
    (0..rows.len())
        .map(|i| Driven {
            frame: &frames[i],
            beats: number(&rows[i], "beats"),
            gap_cycles: number::<u64>(&rows[i], "gap") + if rekeyed(i) { 10 } else { 0 },
            reset_before: rows[i]["reset_before"] == "1",
        })
        .collect()
}

#[test]
fn upstream_profile_agrees_on_all_2034_rows() {
    let Some(rows) = rows("opennic_rss.csv") else { return };
    assert_eq!(rows.len(), 2034);
    let frames: Vec<_> = rows.iter().map(|row| bytes(&row["frame_hex"])).collect();
    for (row, (input, _)) in rows.iter().zip(rss::classify_stream(&driven(&rows, &frames))) {
        let got = rss::opennic(key(row).bytes(), &input);
        assert_eq!(got, hash(row, "hash_hex"), "row {} ({}): {input}", row["seq"], row["case"]);
        assert_eq!(rss::indirection_index(got), number::<usize>(row, "index"), "row {}", row["seq"]);
    }
}

#[test]
fn corrected_profile_differs_on_exactly_272_classified_rows() {
    let Some(rows) = rows("opennic_rss.csv") else { return };
    let frames: Vec<_> = rows.iter().map(|row| bytes(&row["frame_hex"])).collect();
    let mut counts = BTreeMap::new();
    for ((row, frame), (_, class)) in rows.iter().zip(&frames).zip(rss::classify_stream(&driven(&rows, &frames))) {
        let corrected = rss::opennic(key(row).bytes(), &OpennicInput::parse(frame));
        let differs = corrected != hash(row, "hash_hex");
        assert_eq!(differs, class.is_some(), "row {} ({}): class {class:?}", row["seq"], row["case"]);
        *counts.entry(class).or_insert(0) += 1;
    }
    let count = |class| counts.get(&class).copied().unwrap_or(0);
    assert_eq!(count(Some(Difference::TaggedNotIpv4)), 167);
    assert_eq!(count(Some(Difference::VlanTerm)), 75);
    assert_eq!(count(Some(Difference::NeighbourNibble)) + count(Some(Difference::StaleTail)), 30);
    assert_eq!(count(None), 2034 - 272);
}

#[test]
fn q3_stalls_between_the_first_two_beats_agree_on_all_192_rows() {
    let Some(rows) = rows("opennic_rss_gaps.csv") else { return };
    assert_eq!(rows.len(), 192);
    let (mut doubled, mut wrong) = (0, 0);
    for row in &rows {
        let (frame, beats) = (bytes(&row["frame_hex"]), number(row, "beats"));
        let stall = if row["kind"] == "v" { Stall::Valid } else { Stall::Ready };
        let mut block = HashBlock::new();
        let pushed = block.push_stalled(&frame, beats, 12, stall);
        let inputs = pushed.into_iter().flatten().chain(block.flush());
        let got: Vec<String> = inputs.map(|input| format!("{:08x}", rss::opennic(key(row).bytes(), &input))).collect();
        let expected: Vec<&str> = row["results"].split([';', ' ', '|', '/']).collect();
        assert_eq!(got, expected, "row {} ({}, {} {})", row["seq"], row["case"], row["kind"], row["stall_cycles"]);
        doubled += usize::from(got.len() == 2);
        wrong += usize::from(got.len() == 1 && got[0] != row["contiguous_hash"]);
    }
    assert_eq!((doubled, wrong), (32, 20), "shell.md section 20");
}
