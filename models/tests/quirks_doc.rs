//! `docs/quirks.md` has one row for each quirk, and every test it names exists.

use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn sources(folder: &Path, into: &mut String) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&std::fs::read_to_string(&path).unwrap_or_default());
        }
    }
}

/// How a test of this name is written down: a function, or a property of testbench.
fn defined_as(name: &str) -> String {
    match name.strip_prefix("properties::") {
        Some(property) => format!("name: \"{property}\""),
        None => format!("fn {name}("),
    }
}

#[test]
fn every_quirk_has_one_row_and_every_test_named_exists() {
    let text = std::fs::read_to_string(PathBuf::from(ROOT).join("docs/quirks.md")).expect("docs/quirks.md");
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("| Q"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let ids: Vec<String> = rows.iter().map(|row| row[1].to_string()).collect();
    assert_eq!(ids, (1..=24).map(|n| format!("Q{n}")).collect::<Vec<_>>());
    let mut code = String::new();
    for member in
        ["models/src", "models/tests", "rtl-bridge/src", "rtl-bridge/tests", "testbench/src", "testbench/tests"]
    {
        sources(&PathBuf::from(ROOT).join(member), &mut code);
    }
    for row in &rows {
        // id, upstream, corrected, then three columns of tests; the line's ends make an empty cell each.
        assert_eq!(row.len(), 8, "{}: six cells", row[1]);
        for cell in &row[4..7] {
            assert!(!cell.is_empty(), "{}: a test, or why there is none", row[1]);
            for name in cell.split('`').skip(1).step_by(2) {
                assert!(code.contains(&defined_as(name)), "{}: no test {name}", row[1]);
            }
        }
    }
}
