//! `expected.txt`: what came out, as text that a person reviews.
//!
//! ```text
//! # onic golden 1, origin: ours
//! # place, queue or drop reason: frames, bytes
//! # fn0 q0: 2 frames, 120 bytes
//! # port0.dropped error: 1 frames, 30 bytes
//! fn0 q0 #0 in=port0/0 len=60 bytes=0123456789abcdef hash=08a4cc88 verdict=-
//! fn0 q0 #1 in=port0/2 len=60 bytes=fedcba9876543210 hash=00000000 verdict=-
//! port0.dropped error #0 in=port0/1 len=30 bytes=1111111111111111 hash=- verdict=-
//! ```
//!
//! Only facts that no pipeline stage can change are in it. A line holds: where the frame came out; its queue, the reason
//! why it was dropped, or `out` on a wire; its number in that place, first 0; the frame of the input it was, if it was one;
//! its length in bytes without FCS; the first 16 digits of its BLAKE3 hash; the card's RSS hash; the XDP verdict.
//! `-` is "has none". There is one way to write each result: anything else is refused, so that no byte of the file can
//! change unnoticed.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;

use super::Origin;
use crate::{Digest, Point};

/// What a frame did at the point where it came out. The order is that of the file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Slot {
    /// Into this queue of a function.
    Queue(u32),
    /// Out on the wire.
    Out,
    /// Dropped, by this reason: a word without blanks.
    Dropped(String),
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slot::Queue(queue) => write!(f, "q{queue}"),
            Slot::Out => f.write_str("out"),
            Slot::Dropped(reason) => f.write_str(reason),
        }
    }
}

/// Frames of one place and slot have an order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Group {
    /// Place.
    pub point: Point,
    /// Queue or reason.
    pub slot: Slot,
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.point, self.slot)
    }
}

/// One frame that came out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Where the frame went in, and its index there.
    pub input: Option<(Point, u64)>,
    /// Bytes without FCS.
    pub len_bytes: u32,
    /// [`digest`](crate::digest) of the bytes.
    pub digest: Digest,
    /// RSS hash.
    pub hash: Option<u32>,
    /// XDP verdict's name: a word without blanks.
    pub verdict: Option<String>,
}

/// Everything that came out of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    /// Where the values come from.
    pub origin: Origin,
    /// Frames, in order.
    pub groups: BTreeMap<Group, Vec<Entry>>,
}

/// An `expected.txt` that no run of ours can have written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {reason}. Undo the change, or write the file anew with `onic golden bless`")]
pub struct ExpectedError {
    /// Line, first 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl Expected {
    /// Nothing came out yet.
    #[must_use]
    pub fn new(origin: Origin) -> Self {
        Self { origin, groups: BTreeMap::new() }
    }

    /// Adds the next frame of a place.
    pub fn push(&mut self, point: Point, slot: Slot, entry: Entry) {
        self.groups.entry(Group { point, slot }).or_default().push(entry);
    }

    /// Frames, all places.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.groups.values().map(Vec::len).sum()
    }

    /// Lines before the first frame's.
    pub(super) fn header_lines(&self) -> usize {
        2 + self.groups.len()
    }

    /// Reads the file's text.
    ///
    /// # Errors
    /// The first line that is not as [`Expected`] writes it.
    pub fn parse(text: &str) -> Result<Self, ExpectedError> {
        let fail = |line: usize, reason: &str| ExpectedError { line, reason: reason.to_owned() };
        let first = text.lines().next().unwrap_or_default();
        let origin = [Origin::Ours, Origin::UpstreamMeasured].into_iter().find(|origin| first == title(*origin));
        let mut expected = Self::new(origin.ok_or_else(|| fail(1, "not the title of a golden result"))?);
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let (group, entry) = parse_line(line).ok_or_else(|| fail(at + 1, "not a frame's line"))?;
            expected.groups.entry(group).or_default().push(entry);
        }
        // Numbers, sums, order, blanks: whatever else may be wrong shows against the one right way to write it.
        let right = expected.to_string();
        if let Some((line, found, wanted)) = first_difference(text, &right) {
            return Err(ExpectedError { line, reason: format!("`{found}` should be `{wanted}`") });
        }
        Ok(expected)
    }
}

fn title(origin: Origin) -> String {
    format!("# onic golden 1, origin: {}", origin.name())
}

/// Line, what `text` has there, what `right` has.
fn first_difference(text: &str, right: &str) -> Option<(usize, String, String)> {
    if text == right {
        return None;
    }
    let (mut a, mut b) = (text.split('\n'), right.split('\n'));
    for line in 1.. {
        match (a.next(), b.next()) {
            (None, None) => break,
            (found, wanted) if found == wanted => {}
            (found, wanted) => {
                return Some((line, found.unwrap_or_default().to_owned(), wanted.unwrap_or_default().to_owned()));
            }
        }
    }
    None
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", title(self.origin))?;
        writeln!(f, "# place, queue or drop reason: frames, bytes")?;
        for (group, entries) in &self.groups {
            let bytes: u64 = entries.iter().map(|entry| u64::from(entry.len_bytes)).sum();
            writeln!(f, "# {group}: {} frames, {bytes} bytes", entries.len())?;
        }
        for (group, entries) in &self.groups {
            for (number, entry) in entries.iter().enumerate() {
                writeln!(f, "{group} #{number} {entry}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Entry { len_bytes, digest, .. } = self;
        let (input, hash, verdict) = (self.input_text(), self.hash_text(), self.verdict_text());
        write!(f, "in={input} len={len_bytes} bytes={digest} hash={hash} verdict={verdict}")
    }
}

impl Entry {
    pub(super) fn input_text(&self) -> String {
        self.input.map_or("-".to_owned(), |(point, index)| format!("{point}/{index}"))
    }

    pub(super) fn hash_text(&self) -> String {
        self.hash.map_or("-".to_owned(), |hash| {
            let mut text = String::new();
            let _ = write!(text, "{hash:08x}");
            text
        })
    }

    pub(super) fn verdict_text(&self) -> String {
        self.verdict.clone().unwrap_or("-".to_owned())
    }
}

fn parse_line(line: &str) -> Option<(Group, Entry)> {
    let mut words = line.split(' ');
    let point: Point = words.next()?.parse().ok()?;
    let slot = match words.next()? {
        "out" => Slot::Out,
        word if point.is_drop() => Slot::Dropped(word.to_owned()),
        word => Slot::Queue(word.strip_prefix('q')?.parse().ok()?),
    };
    words.next()?.strip_prefix('#')?;
    let mut value = |name: &str| words.next()?.strip_prefix(name)?.strip_prefix('=');
    let input = match value("in")? {
        "-" => None,
        text => {
            let (point, index) = text.split_once('/')?;
            Some((point.parse().ok()?, index.parse().ok()?))
        }
    };
    let len_bytes = value("len")?.parse().ok()?;
    let digest = Digest(u64::from_str_radix(value("bytes")?, 16).ok()?);
    let hash = match value("hash")? {
        "-" => None,
        text => Some(u32::from_str_radix(text, 16).ok()?),
    };
    let verdict = Some(value("verdict")?.to_owned()).filter(|verdict| verdict != "-");
    Some((Group { point, slot }, Entry { input, len_bytes, digest, hash, verdict }))
}
