//! The pages lead somewhere and count right: every relative link has its file and its heading, the README keeps its first
//! screen, docs/fidelity.md counts what docs/registers lists, and docs/golden.md knows every case.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// README, ARCHITECTURE, CHANGELOG, and everything in docs.
fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"].map(|name| root().join(name)).into();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("docs").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// Lines that are not in a fenced block, with their numbers, first 1.
fn prose(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    page.lines().enumerate().filter_map(move |(at, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fence && !fenced).then_some((at + 1, line))
    })
}

/// What `[text](target)` points at.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// Anchors as GitHub makes them of headings: lower case, blanks to hyphens, other punctuation left out.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = prose(page).map(|(_, line)| line).filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let kept = line.trim_start_matches('#').trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// What is wrong with a link of `page`, if anything is.
fn broken(page: &Path, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let path = if file.is_empty() { page.to_path_buf() } else { page.with_file_name(file) };
    if !path.exists() {
        return Some(format!("{file} is not there"));
    }
    let anchor = anchor?;
    if path.extension().is_none_or(|extension| extension != "md") {
        // A line number or the like would go stale unseen.
        return Some(format!("#{anchor}: only Markdown has anchors"));
    }
    (!anchors(&text(&path)).contains(anchor)).then(|| format!("no heading #{anchor} in {}", path.display()))
}

#[test]
fn every_relative_link_leads_somewhere() {
    let (mut links, mut wrong) = (0, Vec::new());
    for page in pages() {
        for (number, line) in prose(&text(&page)) {
            for target in targets(line) {
                links += 1;
                wrong.extend(broken(&page, target).map(|why| format!("{}:{number}: {why}", page.display())));
            }
        }
    }
    assert!(links > 100, "only {links} links were found: does this test still read them?");
    assert!(wrong.is_empty(), "links that lead nowhere:\n{}", wrong.join("\n"));
}

#[test]
fn broken_links_are_seen() {
    let page = root().join("README.md");
    assert_eq!(targets("see [a](x.md) and [b](y.md#z), not (c)").collect::<Vec<_>>(), ["x.md", "y.md#z"]);
    assert_eq!(prose("a\n```text\nb\n```\nc\n").collect::<Vec<_>>(), [(1, "a"), (5, "c")]);
    assert_eq!(broken(&page, "LICENSE-MIT"), None);
    assert_eq!(broken(&page, "https://example.com/x"), None);
    for target in ["no-such-page.md", "#no-such-heading", "docs/no-such-page.md#x", "onic#L1"] {
        assert!(broken(&page, target).is_some(), "{target}");
    }
    let expected = ["tx_a-b", "what-is-not-there"].map(String::from);
    assert_eq!(anchors("## What is not there\n### `TX_A`, B\n").into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn the_two_commands_and_the_path_are_on_the_readmes_first_screen() {
    let readme = text(&root().join("README.md"));
    let line_of = |start: &str| readme.lines().position(|line| line.starts_with(start)).map_or(usize::MAX, |at| at + 1);
    assert!(line_of("./onic replay traces/golden/rss-mix") <= 20);
    assert!(line_of("./onic test") <= 20);
    assert!(line_of("pcap ─► wire ─► CMAC") <= 24);
}

/// The transcript's queues are those of the case's expected result.
#[test]
fn the_readmes_transcript_is_the_case() {
    let readme = text(&root().join("README.md"));
    let expected = text(&root().join("traces/golden/rss-mix/expected.txt"));
    let row = |line: &str| {
        let (queue, counts) = line.strip_prefix("# fn0 q")?.split_once(": ")?;
        let (frames, bytes) = counts.strip_suffix(" bytes")?.split_once(" frames, ")?;
        Some(["fn0", "queue", queue, frames, bytes, frames, bytes].map(str::to_string))
    };
    let rows: Vec<_> = expected.lines().filter_map(row).collect();
    assert_eq!(rows.len(), 8, "the case has 8 queues");
    for row in rows {
        let found = readme.lines().any(|line| line.split_whitespace().eq(row.iter().map(String::as_str)));
        assert!(found, "the README's transcript lacks `{}`", row.join(" "));
    }
}

const STANDINGS: [&str; 4] = ["measured", "vendor", "assumed", "ours"];

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// Fields of a register page by standing, in the order of [`STANDINGS`].
fn counted(page: &str) -> [usize; 4] {
    let mut counts = BTreeMap::<&str, usize>::new();
    let mut in_fields = false;
    for (_, line) in prose(page) {
        in_fields = line.starts_with("| bits |") || in_fields && line.starts_with('|');
        // A field with a source of its own says so behind its standing.
        let standing = cells(line).last().and_then(|cell| cell.split(':').next()).unwrap_or_default();
        if let Some(known) = STANDINGS.iter().find(|known| in_fields && **known == standing) {
            *counts.entry(known).or_default() += 1;
        }
    }
    STANDINGS.map(|standing| counts.get(standing).copied().unwrap_or(0))
}

#[test]
fn fidelity_counts_the_fields_of_the_map() {
    let fidelity = text(&root().join("docs/fidelity.md"));
    let mut blocks = BTreeSet::new();
    for (_, line) in prose(&fidelity).filter(|(_, line)| line.starts_with("| [")) {
        let Some(block) = targets(line).next().and_then(|to| to.strip_prefix("registers/")?.strip_suffix(".md")) else {
            continue;
        };
        let counts = counted(&text(&root().join(format!("docs/registers/{block}.md"))));
        assert!(counts.iter().sum::<usize>() > 0, "{block}: no fields were found");
        assert_eq!(
            cells(line)[1..5],
            counts.map(|count| count.to_string()),
            "docs/fidelity.md, {block}: measured, vendor, assumed, ours"
        );
        blocks.insert(block.to_string());
    }
    let pages = fs::read_dir(root().join("docs/registers")).expect("docs/registers").flatten();
    let pages = pages.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".md").map(str::to_string));
    assert_eq!(blocks, pages.filter(|page| page != "README").collect(), "every block has a row");
}

#[test]
fn every_golden_case_is_in_the_list_of_cases() {
    let page = text(&root().join("docs/golden.md"));
    let listed = |name: &str| page.lines().any(|line| line.starts_with('|') && line.contains(&format!("`{name}`")));
    let cases = fs::read_dir(root().join("traces/golden")).expect("traces/golden").flatten();
    let cases = cases.filter(|entry| entry.path().join("case.toml").is_file());
    let names: Vec<String> = cases.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(names.len() >= 17, "{names:?}");
    let missing: Vec<_> = names.iter().filter(|name| !listed(name)).collect();
    assert!(missing.is_empty(), "docs/golden.md lacks {missing:?}");
}
