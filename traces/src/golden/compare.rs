//! A run's result against `expected.txt`: what differs, and on which line.

use std::collections::HashMap;
use std::fmt;

use super::{Entry, Expected, Group};
use crate::Digest;
use crate::align::{Class, Step, align};

/// One difference from the expected text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GoldenDifference {
    /// Line of `expected.txt`, first 1; for an extra frame the line that it would come before.
    pub line: usize,
    /// Kind; `Side` stands for a differing hash, verdict or input index.
    pub class: Class,
    /// Place expected, or found for extra frames.
    pub group: Group,
    /// The frame's number in that place, in the expected text or, if extra, in the run.
    pub number: usize,
    /// Name of what differs.
    pub field: &'static str,
    /// As expected.
    pub expected: String,
    /// As it came out.
    pub got: String,
    /// Index in the input.
    pub input: Option<(crate::Point, u64)>,
}

impl fmt::Display for GoldenDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {} #{}: {}", self.line, self.group, self.number, self.class)?;
        if let Some((point, index)) = self.input {
            write!(f, ", input frame {point}/{index}")?;
        }
        write!(f, ", {}: expected {}, got {}", self.field, self.expected, self.got)
    }
}

/// How a run's result differs from the expected one, in the order of the file. Empty if they agree.
#[must_use]
pub fn compare(expected: &Expected, got: &Expected) -> Vec<GoldenDifference> {
    let mut comparison = Comparison::default();
    let nothing = Vec::new();
    let mut line = expected.header_lines() + 1;
    let places: std::collections::BTreeSet<&Group> = expected.groups.keys().chain(got.groups.keys()).collect();
    for group in places {
        let (a, b) = (expected.groups.get(group).unwrap_or(&nothing), got.groups.get(group).unwrap_or(&nothing));
        comparison.group(group, line, a, b);
        line += a.len();
    }
    comparison.finish()
}

/// A frame that has no partner in its place.
struct Single<'a> {
    line: usize,
    group: &'a Group,
    number: usize,
    entry: &'a Entry,
}

/// Frames with one key are one frame.
type Key = (Digest, u32, Option<(crate::Point, u64)>);

fn key(entry: &Entry) -> Key {
    (entry.digest, entry.len_bytes, entry.input)
}

#[derive(Default)]
struct Comparison<'a> {
    found: Vec<GoldenDifference>,
    lost: Vec<Single<'a>>,
    extra: Vec<Single<'a>>,
}

impl<'a> Comparison<'a> {
    fn group(&mut self, group: &'a Group, line: usize, expected: &'a [Entry], got: &'a [Entry]) {
        let single = |number, at, entry| Single { line: line + at, group, number, entry };
        let content = |entry: &Entry| (entry.digest, entry.len_bytes);
        let keys = |entries: &[Entry]| entries.iter().map(content).collect::<Vec<_>>();
        for step in align(&keys(expected), &keys(got)) {
            match step {
                Step::Same(i, j) => self.fields(&single(i, i, &expected[i]), &got[j]),
                // As many frames as expected, but others: they have changed on the way.
                Step::Gap(a, b)
                    if a.len() == b.len()
                        && a.clone().zip(b.clone()).all(|(i, j)| expected[i].input == got[j].input) =>
                {
                    for (i, j) in a.zip(b) {
                        self.fields(&single(i, i, &expected[i]), &got[j]);
                    }
                }
                Step::Gap(a, b) => {
                    self.extra.extend(b.map(|j| single(j, a.start, &got[j])));
                    self.lost.extend(a.map(|i| single(i, i, &expected[i])));
                }
            }
        }
    }

    /// One report for each frame, of its gravest difference: another length makes other bytes, and those another hash.
    fn fields(&mut self, at: &Single<'a>, got: &Entry) {
        let expected = at.entry;
        let checks = [
            (Class::WrongLength, "len", expected.len_bytes.to_string(), got.len_bytes.to_string()),
            (Class::Corrupt, "bytes", expected.digest.to_string(), got.digest.to_string()),
            (Class::Side, "hash", expected.hash_text(), got.hash_text()),
            (Class::Side, "verdict", expected.verdict_text(), got.verdict_text()),
            (Class::Side, "in", expected.input_text(), got.input_text()),
        ];
        if let Some((class, field, expected, got)) = checks.into_iter().find(|(_, _, a, b)| a != b) {
            self.report(class, at, field, expected, got);
        }
    }

    fn report(&mut self, class: Class, at: &Single<'a>, field: &'static str, expected: String, got: String) {
        let Single { line, group, number, entry } = *at;
        self.found.push(GoldenDifference {
            line,
            class,
            group: group.clone(),
            number,
            field,
            expected,
            got,
            input: entry.input,
        });
    }

    fn finish(mut self) -> Vec<GoldenDifference> {
        let mut extra: HashMap<Key, Vec<Single<'a>>> = HashMap::new();
        for single in std::mem::take(&mut self.extra).into_iter().rev() {
            extra.entry(key(single.entry)).or_default().push(single);
        }
        for lost in std::mem::take(&mut self.lost) {
            match extra.get_mut(&key(lost.entry)).and_then(Vec::pop) {
                Some(found) if found.group == lost.group => {
                    self.report(Class::Reordered, &lost, "number", lost.number.to_string(), found.number.to_string());
                }
                Some(found) => {
                    self.report(Class::Misrouted, &lost, "place", lost.group.to_string(), found.group.to_string())
                }
                None => self.report(Class::Lost, &lost, "frame", lost.entry.to_string(), "none".to_owned()),
            }
        }
        for single in extra.into_values().flatten() {
            self.report(Class::Extra, &single, "frame", "none".to_owned(), single.entry.to_string());
        }
        self.found.sort_by_key(|difference| (difference.line, difference.class, difference.number));
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::{Origin, Slot};
    use crate::{Point, digest};

    fn expected() -> Expected {
        let mut expected = Expected::new(Origin::Ours);
        for n in 0..40u8 {
            let entry = Entry {
                input: Some((Point::Port(0), u64::from(n))),
                len_bytes: 60 + u32::from(n),
                digest: digest(&[n]),
                hash: Some(u32::from(n) << 24),
                verdict: None,
            };
            let (point, slot) = match n % 4 {
                3 => (Point::PortDropped(0), Slot::Dropped("rx_error".to_owned())),
                queue => (Point::Function(0), Slot::Queue(u32::from(queue))),
            };
            expected.push(point, slot, entry);
        }
        expected
    }

    fn queue(result: &mut Expected, queue: u32) -> &mut Vec<Entry> {
        result.groups.get_mut(&Group { point: Point::Function(0), slot: Slot::Queue(queue) }).unwrap()
    }

    #[test]
    fn text_and_back() {
        assert_eq!(Expected::parse(&expected().to_string()), Ok(expected()));
        assert_eq!(compare(&expected(), &expected()), []);
    }

    /// Every bit of every byte: it is a parse error or a difference, and it is told on the line where it is.
    #[test]
    fn no_byte_of_the_file_changes_unnoticed() {
        let text = expected().to_string();
        let mut told_elsewhere = 0;
        for at in 0..text.len() {
            for bit in 0..7 {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                let line = 1 + text[..at].matches('\n').count();
                let changed = String::from_utf8(bytes).unwrap();
                let told = match Expected::parse(&changed) {
                    Err(error) => error.line,
                    Ok(parsed) => {
                        compare(&parsed, &expected()).first().unwrap_or_else(|| panic!("byte {at} bit {bit}")).line
                    }
                };
                // A changed place or length makes the sums above wrong first, and a broken line end joins two lines.
                told_elsewhere += usize::from(told != line);
            }
        }
        assert!(told_elsewhere < text.len(), "{told_elsewhere} of {}", 7 * text.len());
    }

    #[test]
    fn each_kind_is_told_once_with_its_line() {
        let found = |change: &dyn Fn(&mut Expected)| {
            let mut got = expected();
            change(&mut got);
            let differences = compare(&expected(), &got);
            assert_eq!(differences.len(), 1, "{differences:#?}");
            differences[0].to_string()
        };
        assert_eq!(
            found(&|got| queue(got, 1)[2].hash = Some(7)),
            "line 19: fn0 q1 #2: side field, input frame port0/9, hash: expected 09000000, got 00000007"
        );
        assert!(found(&|got| queue(got, 0)[0].digest = digest(b"x")).starts_with("line 7: fn0 q0 #0: corrupt, "));
        assert!(
            found(&|got| queue(got, 0)[1].len_bytes = 1)
                .contains("wrong length, input frame port0/4, len: expected 64, got 1")
        );
        assert!(
            found(&|got| drop(queue(got, 2).remove(4)))
                .contains("line 31: fn0 q2 #4: lost, input frame port0/18, frame: ")
        );
        assert!(found(&|got| queue(got, 2).swap(4, 5)).contains("reordered"));
        assert!(
            found(&|got| {
                let entry = queue(got, 2).remove(3);
                queue(got, 0).insert(4, entry);
            })
            .contains("line 30: fn0 q2 #3: misrouted, input frame port0/14, place: expected fn0 q2, got fn0 q0")
        );
        assert!(
            found(&|got| {
                let entry = queue(got, 1)[0].clone();
                queue(got, 1).push(entry);
            })
            .contains("extra")
        );
    }
}
