//! The golden cases in the repository are what their makers make, and measured values are the measurements'.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{read_all, shared};
use traces::golden::{Case, Expected, Origin, Slot, built_in, compare, list, measured};
use traces::read::Policy;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")
}

#[test]
fn every_case_can_be_read_and_its_inputs_are_whole() {
    let cases = list(&folder()).unwrap();
    assert!(cases.len() >= 19, "{cases:?}");
    for path in cases {
        let case = Case::load(&path).unwrap_or_else(|error| panic!("{error}"));
        for input in &case.input {
            let bytes = fs::read(path.join(&input.file)).unwrap();
            assert!(bytes.len() < 200_000, "{}: {} bytes", path.display(), bytes.len());
            let read = read_all(bytes, Policy::default());
            assert!(read.error.is_none() && read.refused.is_empty(), "{}", path.display());
            assert_eq!(read.tally.frames, input.frames, "{}", path.display());
        }
        let expected = path.join("expected.txt");
        if let Ok(text) = fs::read_to_string(&expected) {
            let expected = Expected::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", expected.display()));
            assert_eq!(expected.origin, case.origin, "{}", path.display());
        }
    }
}

/// Someone who edits a mix must make the inputs anew, and see what that changes.
#[test]
fn inputs_are_what_the_synthesizer_makes() {
    for made in built_in::all() {
        check_made(&made);
    }
}

fn check_made(made: &built_in::Made) {
    let path = folder().join(made.name);
    let hint = "run `cargo run -p traces --example make_golden`";
    for (file, bytes) in &made.files {
        assert!(fs::read(path.join(file)).unwrap() == *bytes, "{}/{file} is stale: {hint}", made.name);
    }
    assert_eq!(fs::read_to_string(path.join("case.toml")).unwrap(), made.case.to_toml(), "{}: {hint}", made.name);
}

#[test]
fn measured_cases_are_the_measurements() {
    let Some(csv) = shared("vectors/opennic_rss.csv") else { return };
    let rows = measured::parse(&fs::read_to_string(csv).unwrap()).unwrap();
    assert_eq!(rows.len(), 2_034);
    let cases = measured::all(&rows);
    assert_eq!(cases.len(), 5);
    let mut frames = 0;
    for (made, expected) in &cases {
        check_made(made);
        let text = fs::read_to_string(folder().join(made.name).join("expected.txt")).unwrap();
        let committed = Expected::parse(&text).unwrap();
        assert_eq!(compare(&committed, expected), [], "{}", made.name);
        assert_eq!(made.case.origin, Origin::UpstreamMeasured);
        frames += expected.frames();
    }
    assert!(frames > 700, "{frames}");
}

/// What the three exclusions leave out of all measurements: the numbers that are known of them.
#[test]
fn the_exclusions_are_those_known() {
    let Some(csv) = shared("vectors/opennic_rss.csv") else { return };
    let rows = measured::parse(&fs::read_to_string(csv).unwrap()).unwrap();
    let free =
        |at: usize| measured::is_free_of_neighbours(at.checked_sub(1).map(|at| &rows[at]), &rows[at], rows.get(at + 1));
    let left_out = (0..rows.len()).filter(|&at| !free(at)).count();
    println!("{left_out} of {} rows left out", rows.len());
    // 272 rows differ in a corrected card; an exclusion by bytes and gap also leaves out rows that happen to agree.
    assert!((272..=420).contains(&left_out), "{left_out}");
}

/// The hash of shell.md section 9.2 without VLAN term and with bytes past the frame's end as 0, written down here once
/// more: every row that was kept agrees, so none of them needs its neighbours.
#[test]
fn kept_rows_agree_with_the_corrected_hash() {
    let Some(csv) = shared("vectors/opennic_rss.csv") else { return };
    let rows = measured::parse(&fs::read_to_string(csv).unwrap()).unwrap();
    let (mut kept, mut differ) = (0, 0);
    for (at, row) in rows.iter().enumerate() {
        let agrees = corrected_hash(&row.frame(), &row.key) == row.hash;
        differ += usize::from(!agrees);
        if measured::is_free_of_neighbours(at.checked_sub(1).map(|at| &rows[at]), row, rows.get(at + 1)) {
            assert!(agrees, "row {at}");
            kept += 1;
        }
    }
    println!("{kept} rows kept, {differ} of all differ from the corrected hash");
    assert_eq!(differ, 272);
}

fn corrected_hash(frame: &[u8], key: &str) -> u32 {
    let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
    let ip = match (byte(12), byte(13)) {
        (8, 0) => 14,
        (0x81, 0) if (byte(16), byte(17)) == (8, 0) => 18,
        _ => return 0,
    };
    let words = usize::from(byte(ip) & 15);
    let ports = if words >= 5 { ip + 4 * words } else { usize::MAX - 4 };
    let fields = [ip + 9].into_iter().chain(ip + 12..ip + 20).chain(ports..ports + 4);
    let digits: Vec<u32> = key.chars().rev().map(|digit| digit.to_digit(16).unwrap()).collect();
    let key_bit = |n: usize| digits[n / 4] >> (n % 4) & 1;
    let window = |n: usize| (0..32).fold(0, |window, bit| window | key_bit(n + bit) << bit);
    let bits = fields.flat_map(|at| (0..8).map(move |bit| (at, bit)));
    bits.enumerate().filter(|(_, (at, bit))| byte(*at) >> bit & 1 == 1).fold(0, |hash, (n, _)| hash ^ window(4 + n))
}

/// Queues follow from the measured hash and the case's own table.
#[test]
fn measured_queues_follow_the_table() {
    for path in list(&folder()).unwrap() {
        let case = Case::load(&path).unwrap();
        if case.origin != Origin::UpstreamMeasured {
            continue;
        }
        let table = case.rss_table.unwrap();
        let entries: Vec<u32> = match table.strip_prefix("equal ") {
            Some(queues) => (0..128).map(|index| index % queues.parse::<u32>().unwrap()).collect(),
            None => table.split(',').map(|entry| entry.parse().unwrap()).collect(),
        };
        assert_eq!(entries.len(), 128);
        let expected = Expected::parse(&fs::read_to_string(path.join("expected.txt")).unwrap()).unwrap();
        for (group, frames) in &expected.groups {
            let Slot::Queue(queue) = group.slot else { panic!("{group}") };
            assert!(frames.iter().all(|frame| entries[frame.hash.unwrap() as usize & 127] == queue), "{group}");
        }
    }
}
