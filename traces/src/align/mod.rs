//! How two sequences of frames differ.
//!
//! Frames are told apart by lane (place and queue) and compared in order within a lane; the order between lanes is
//! nobody's promise. After a lost frame the rest of its lane is aligned again, so that one cause makes one
//! [`Difference`], whose `count` says how many frames it touched.
//!
//! ```
//! use traces::Point;
//! use traces::align::{Class, Ignore, Item, Lane, compare};
//!
//! let lane = Lane { point: Point::Function(0), queue: Some(3) };
//! let frames = [[1u8; 60], [2; 60], [3; 60]];
//! let expected: Vec<_> = frames.iter().map(|data| Item::new(lane, data)).collect();
//! let got = [expected[0], expected[2]];
//!
//! let differences = compare(&expected, &got, &Ignore::default());
//! assert_eq!(differences.len(), 1);
//! assert_eq!((differences[0].class, differences[0].expected), (Class::Lost, Some(1)));
//! ```

mod capture;
mod steps;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;

pub use capture::Capture;
pub use steps::{Step, align};

use crate::fields;
use crate::{Digest, Point, digest};

/// Where frames are held to an order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lane {
    /// Port, function or drop point.
    pub point: Point,
    /// Queue, relative to the function.
    pub queue: Option<u32>,
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.point)?;
        self.queue.map_or(Ok(()), |queue| write!(f, " queue {queue}"))
    }
}

/// A frame to be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item<'a> {
    /// Where it came out.
    pub lane: Lane,
    /// Ethernet header to payload.
    pub data: &'a [u8],
    /// Index in the input, in the caller's numbering. Where both sides have it, pairs are never guessed.
    pub input: Option<u64>,
    /// Cycle, for the report only.
    pub cycle: Option<u64>,
    /// What is known of it beside its bytes. Compared where both sides know it.
    pub side: Side<'a>,
}

/// What goes along with a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Side<'a> {
    /// RSS hash.
    pub hash: Option<u32>,
    /// XDP verdict.
    pub verdict: Option<u64>,
    /// Error flag.
    pub err: Option<bool>,
    /// Time, ns. Two cards never agree on it, two readers of one capture do.
    pub time_ns: Option<u64>,
    /// Name of the drop reason.
    pub drop: Option<&'a str>,
}

impl<'a> Item<'a> {
    /// A frame of which only place and bytes are known.
    #[must_use]
    pub fn new(lane: Lane, data: &'a [u8]) -> Self {
        Self { lane, data, input: None, cycle: None, side: Side::default() }
    }
}

/// Kinds of difference, gravest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// Expected, and nowhere.
    Lost,
    /// There, and not expected. A duplicate is one.
    Extra,
    /// In another lane than expected.
    Misrouted,
    /// In its lane, but not in its place.
    Reordered,
    /// Of another length.
    WrongLength,
    /// Of the right length, with other bytes.
    Corrupt,
    /// The same frame with another hash, verdict, error flag, time or drop reason.
    Side,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Class::Lost => "lost",
            Class::Extra => "extra",
            Class::Misrouted => "misrouted",
            Class::Reordered => "reordered",
            Class::WrongLength => "wrong length",
            Class::Corrupt => "corrupt",
            Class::Side => "side field",
        })
    }
}

/// One cause, told by its first frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Kind.
    pub class: Class,
    /// Index into the expected frames; `None` if extra.
    pub expected: Option<usize>,
    /// Index into the frames got; `None` if lost.
    pub got: Option<usize>,
    /// The lane it should be in, or, if extra, the one that it is in.
    pub lane: Lane,
    /// The lane it is in, if that is another.
    pub lane_got: Option<Lane>,
    /// Offset of the first byte that differs, for corrupt frames and those of wrong length.
    pub byte: Option<usize>,
    /// Name of the field that differs: of a protocol header, or `length`, `hash`, `verdict`, `err`, `time`, `drop`,
    /// `queue`, `point`.
    pub field: Option<&'static str>,
    /// The field's value in the frame expected, empty where there is none.
    pub value_expected: String,
    /// The field's value in the frame got, empty where there is none.
    pub value_got: String,
    /// The frame is one more of an expected one that is there too.
    pub duplicate_of: Option<usize>,
    /// Flow of the frame, as text.
    pub flow: String,
    /// Index in the input.
    pub input: Option<u64>,
    /// Cycle of the frame got, or of the one expected.
    pub cycle: Option<u64>,
    /// Frames that this cause touched, this one included.
    pub count: usize,
    /// (expected, got) of the others.
    pub others: Vec<(Option<usize>, Option<usize>)>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.lane, self.class)?;
        if let Some(index) = self.input {
            write!(f, ", input frame {index}")?;
        } else if let Some(index) = self.expected.or(self.got) {
            let side = if self.expected.is_some() { "expected" } else { "got" };
            write!(f, ", {side} frame {index}")?;
        }
        if let Some(lane) = self.lane_got {
            write!(f, ", found in {lane}")?;
        }
        if let Some(original) = self.duplicate_of {
            write!(f, ", duplicate of expected frame {original}")?;
        }
        if let Some(byte) = self.byte {
            write!(f, ", first at byte {byte}")?;
        }
        if let (Some(field), None) = (self.field, self.lane_got) {
            write!(f, ", {field}: expected {}, got {}", self.value_expected, self.value_got)?;
        }
        write!(f, "; {}", self.flow)?;
        if let Some(cycle) = self.cycle {
            write!(f, "; cycle {cycle}")?;
        }
        match self.count {
            1 => Ok(()),
            count => write!(f, "; and {} more frames alike", count - 1),
        }
    }
}

/// What is not to be compared.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ignore {
    names: BTreeSet<String>,
}

impl Ignore {
    /// By name: one of [`Ignore::SIDE`], or a field as [`fields`] names it, such as `ip.checksum`. Bytes past what the
    /// length fields cover (`padding`) are taken away, so that a padded frame equals the one that is not; those of other
    /// fields count as zero.
    #[must_use]
    pub fn fields<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self { names: names.into_iter().map(Into::into).collect() }
    }

    /// What can be ignored beside the fields of a frame's headers.
    pub const SIDE: [&'static str; 8] = ["time", "queue", "hash", "padding", "point", "verdict", "err", "drop"];

    /// Whether `name` names something that can be ignored.
    #[must_use]
    pub fn knows(name: &str) -> bool {
        Self::SIDE.contains(&name) || fields::NAMES.contains(&name)
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// `data` without ignored padding, the bytes of other ignored fields zeroed.
    fn mask<'a>(&self, data: &'a [u8]) -> Cow<'a, [u8]> {
        if self.names.is_empty() {
            return Cow::Borrowed(data);
        }
        let mut masked = Cow::Borrowed(data);
        for field in fields::all(data).iter().filter(|field| self.has(field.name)) {
            masked.to_mut()[field.start..field.start + field.len].fill(0);
        }
        if self.has("padding")
            && let Some(padding) = fields::all(data).last().filter(|field| field.name == "eth.padding")
        {
            masked.to_mut().truncate(padding.start);
        }
        masked
    }
}

/// How `got` differs from `expected`; empty if it doesn't. In the order of the input where that is known, else of the
/// expected frames, extra ones at their place among those got.
#[must_use]
pub fn compare(expected: &[Item<'_>], got: &[Item<'_>], ignore: &Ignore) -> Vec<Difference> {
    compare_excusing(expected, got, ignore, |_| {})
}

/// [`compare`], where not every loss is a difference: `excuse` is shown the lost frames, as indices into `expected`, and
/// takes away those of which nothing is to be said.
#[must_use]
pub fn compare_excusing(
    expected: &[Item<'_>],
    got: &[Item<'_>],
    ignore: &Ignore,
    excuse: impl FnOnce(&mut BTreeSet<usize>),
) -> Vec<Difference> {
    let mut comparison = Comparison::new(expected, got, ignore);
    // A frame that is whole somewhere is found before any other is taken for what became of it.
    let gaps = comparison.align_lanes();
    comparison.pair_elsewhere();
    gaps.iter().for_each(|gap| comparison.pair_gap(gap));
    excuse(&mut comparison.lost);
    comparison.leave_rest();
    comparison.into_groups()
}

/// One frame's key: equal keys are equal frames.
type Key = (Digest, usize);

/// Expected frames and frames got between two that agree in a lane.
type Gap = (Vec<usize>, Vec<usize>);

struct Comparison<'a> {
    expected: &'a [Item<'a>],
    got: &'a [Item<'a>],
    ignore: &'a Ignore,
    masked_expected: Vec<Cow<'a, [u8]>>,
    masked_got: Vec<Cow<'a, [u8]>>,
    lost: BTreeSet<usize>,
    extra: BTreeSet<usize>,
    /// Expected index of each frame got that was found in its place, for telling duplicates.
    in_place: HashMap<Key, usize>,
    found: Vec<Difference>,
}

impl<'a> Comparison<'a> {
    fn new(expected: &'a [Item<'a>], got: &'a [Item<'a>], ignore: &'a Ignore) -> Self {
        Self {
            expected,
            got,
            ignore,
            masked_expected: expected.iter().map(|item| ignore.mask(item.data)).collect(),
            masked_got: got.iter().map(|item| ignore.mask(item.data)).collect(),
            lost: BTreeSet::new(),
            extra: BTreeSet::new(),
            in_place: HashMap::new(),
            found: Vec::new(),
        }
    }

    fn lane(&self, item: &Item<'_>) -> Lane {
        let queue = if self.ignore.has("queue") { None } else { item.lane.queue };
        let point = if self.ignore.has("point") { Point::Interface(0) } else { item.lane.point };
        Lane { point, queue }
    }

    /// Indices of each lane's frames, in order.
    fn lanes(&self, items: &[Item<'_>]) -> BTreeMap<Lane, Vec<usize>> {
        let mut lanes: BTreeMap<Lane, Vec<usize>> = BTreeMap::new();
        for (at, item) in items.iter().enumerate() {
            lanes.entry(self.lane(item)).or_default().push(at);
        }
        lanes
    }

    /// What of each lane does not agree; all of it is lost and extra for now.
    fn align_lanes(&mut self) -> Vec<Gap> {
        let (mut expected, got) = (self.lanes(self.expected), self.lanes(self.got));
        for lane in got.keys() {
            expected.entry(*lane).or_default();
        }
        let nothing = Vec::new();
        let mut gaps = Vec::new();
        for (lane, of_expected) in &expected {
            gaps.extend(self.align_lane(of_expected, got.get(lane).unwrap_or(&nothing)));
        }
        for (expected, got) in &gaps {
            self.lost.extend(expected);
            self.extra.extend(got);
        }
        gaps
    }

    fn align_lane(&mut self, expected: &[usize], got: &[usize]) -> Vec<Gap> {
        let keys_expected: Vec<Key> = expected.iter().map(|&at| key(&self.masked_expected[at])).collect();
        let keys_got: Vec<Key> = got.iter().map(|&at| key(&self.masked_got[at])).collect();
        let mut gaps = Vec::new();
        for step in align(&keys_expected, &keys_got) {
            match step {
                Step::Same(i, j) => {
                    self.in_place.insert(keys_expected[i], expected[i]);
                    self.compare_side(expected[i], got[j]);
                }
                Step::Gap(a, b) => gaps.push((expected[a].to_vec(), got[b].to_vec())),
            }
        }
        self.pair_reordered(&mut gaps);
        gaps
    }

    /// The same bytes in two gaps of one lane: the frame is there, at another place.
    fn pair_reordered(&mut self, gaps: &mut [Gap]) {
        let mut places: HashMap<Key, VecDeque<usize>> = HashMap::new();
        for &j in gaps.iter().flat_map(|(_, got)| got) {
            places.entry(key(&self.masked_got[j])).or_default().push_back(j);
        }
        let mut moved = BTreeSet::new();
        for (expected, _) in gaps.iter_mut() {
            expected.retain(|&i| {
                let Some(j) = places.get_mut(&key(&self.masked_expected[i])).and_then(VecDeque::pop_front) else {
                    return true;
                };
                moved.insert(j);
                let difference = self.difference(Class::Reordered, Some(i), Some(j));
                self.found.push(difference);
                false
            });
        }
        for (_, got) in gaps.iter_mut() {
            got.retain(|j| !moved.contains(j));
        }
    }

    /// Frames between two that agree: which of those expected became which of those got?
    fn pair_gap(&mut self, (expected, got): &Gap) {
        let expected: Vec<usize> = expected.iter().copied().filter(|i| self.lost.contains(i)).collect();
        let got: Vec<usize> = got.iter().copied().filter(|j| self.extra.contains(j)).collect();
        let pairs = pair(expected.len(), got.len(), |a, b| self.likeness(expected[a], got[b]));
        for (a, b) in pairs {
            self.lost.remove(&expected[a]);
            self.extra.remove(&got[b]);
            self.changed(expected[a], got[b]);
        }
    }

    /// 0 for certainly other frames, up to 1000 for certainly the same.
    fn likeness(&self, expected: usize, got: usize) -> u32 {
        let inputs = (self.expected[expected].input, self.got[got].input);
        if let (Some(a), Some(b)) = inputs {
            return if a == b { 1000 } else { 0 };
        }
        let (a, b) = (&self.masked_expected[expected], &self.masked_got[got]);
        let longer = a.len().max(b.len()).max(1);
        let equal = a.iter().zip(b.iter()).filter(|(x, y)| x == y).count();
        (1000 * equal / longer) as u32
    }

    /// A frame in its lane and place, but with other bytes.
    fn changed(&mut self, i: usize, j: usize) {
        let (a, b) = (&self.masked_expected[i], &self.masked_got[j]);
        let byte = a.iter().zip(b.iter()).position(|(x, y)| x != y).unwrap_or(a.len().min(b.len()));
        let class = if a.len() == b.len() { Class::Corrupt } else { Class::WrongLength };
        let mut difference = self.difference(class, Some(i), Some(j));
        difference.byte = Some(byte);
        if class == Class::WrongLength {
            difference.field = Some("length");
            difference.value_expected = a.len().to_string();
            difference.value_got = b.len().to_string();
        } else {
            let field = fields::at(self.expected[i].data, byte);
            let shown = shown_part(field, byte);
            difference.field = Some(field.name);
            difference.value_expected = hex(shown.bytes(self.expected[i].data));
            difference.value_got = hex(shown.bytes(self.got[j].data));
        }
        self.found.push(difference);
    }

    fn compare_side(&mut self, i: usize, j: usize) {
        let (a, b) = (self.expected[i].side, self.got[j].side);
        let checks = [
            ("hash", both(a.hash, b.hash, |hash| format!("{hash:08x}"))),
            ("verdict", both(a.verdict, b.verdict, |verdict| verdict.to_string())),
            ("err", both(a.err, b.err, |err| err.to_string())),
            ("time", both(a.time_ns, b.time_ns, |ns| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000))),
            ("drop", both(a.drop, b.drop, str::to_owned)),
        ];
        for (name, values) in checks {
            let Some((expected, got)) = values.filter(|(expected, got)| expected != got && !self.ignore.has(name))
            else {
                continue;
            };
            let mut difference = self.difference(Class::Side, Some(i), Some(j));
            difference.field = Some(name);
            difference.value_expected = expected;
            difference.value_got = got;
            self.found.push(difference);
        }
    }

    /// The same frame lost in one lane and extra in another: by input index where both sides know it, else by bytes.
    fn pair_elsewhere(&mut self) {
        let mut by_input: HashMap<u64, usize> = HashMap::new();
        let mut by_key: HashMap<Key, VecDeque<usize>> = HashMap::new();
        for &j in &self.extra {
            match self.got[j].input {
                Some(input) => {
                    by_input.insert(input, j);
                }
                None => by_key.entry(key(&self.masked_got[j])).or_default().push_back(j),
            }
        }
        // Frames got without an index are found by bytes, and so are those with one when the expected frame has none.
        if self.expected.iter().any(|item| item.input.is_none()) {
            for &j in self.extra.iter().filter(|&&j| self.got[j].input.is_some()) {
                by_key.entry(key(&self.masked_got[j])).or_default().push_back(j);
            }
        }
        for i in self.lost.clone() {
            let is_elsewhere =
                |j: &usize| self.extra.contains(j) && self.lane(&self.got[*j]) != self.lane(&self.expected[i]);
            let of_input = self.expected[i].input.and_then(|input| by_input.get(&input).copied()).filter(is_elsewhere);
            let of_bytes = || {
                let places = by_key.get_mut(&key(&self.masked_expected[i]))?;
                places.iter().position(is_elsewhere).and_then(|at| places.remove(at))
            };
            let Some(j) = of_input.or_else(of_bytes) else { continue };
            self.lost.remove(&i);
            self.extra.remove(&j);
            self.misrouted(i, j);
        }
    }

    fn misrouted(&mut self, i: usize, j: usize) {
        let (from, to) = (self.lane(&self.expected[i]), self.lane(&self.got[j]));
        let mut difference = self.difference(Class::Misrouted, Some(i), Some(j));
        difference.lane_got = Some(to);
        if from.point == to.point {
            difference.field = Some("queue");
            difference.value_expected = from.queue.map_or(String::new(), |queue| queue.to_string());
            difference.value_got = to.queue.map_or(String::new(), |queue| queue.to_string());
        } else {
            difference.field = Some("point");
            difference.value_expected = from.point.to_string();
            difference.value_got = to.point.to_string();
        }
        self.found.push(difference);
    }

    fn leave_rest(&mut self) {
        for i in std::mem::take(&mut self.lost) {
            let difference = self.difference(Class::Lost, Some(i), None);
            self.found.push(difference);
        }
        for j in std::mem::take(&mut self.extra) {
            let mut difference = self.difference(Class::Extra, None, Some(j));
            difference.duplicate_of = self.in_place.get(&key(&self.masked_got[j])).copied();
            self.found.push(difference);
        }
    }

    fn difference(&self, class: Class, expected: Option<usize>, got: Option<usize>) -> Difference {
        let (a, b) = (expected.map(|i| &self.expected[i]), got.map(|j| &self.got[j]));
        let one = a.or(b).expect("a difference is about a frame");
        Difference {
            class,
            expected,
            got,
            lane: self.lane(one),
            lane_got: None,
            byte: None,
            field: None,
            value_expected: String::new(),
            value_got: String::new(),
            duplicate_of: None,
            flow: fields::flow(one.data).to_string(),
            input: a.and_then(|item| item.input).or(b.and_then(|item| item.input)),
            cycle: b.and_then(|item| item.cycle).or(a.and_then(|item| item.cycle)),
            count: 1,
            others: Vec::new(),
        }
    }

    /// Differences alike become one: of one class and field; lost and extra ones of one point, since what loses frames rarely
    /// asks for their queue; reordered ones of one lane.
    fn into_groups(self) -> Vec<Difference> {
        let place = |difference: &Difference| (difference.expected.or(difference.got), difference.expected.is_none());
        let mut found = self.found;
        let unknown = |difference: &Difference| (difference.input.is_none(), difference.input);
        found.sort_by_key(|difference| (unknown(difference), place(difference), difference.class));
        let mut groups: Vec<Difference> = Vec::new();
        let mut known: HashMap<(Class, Option<&'static str>, Option<Lane>), usize> = HashMap::new();
        for difference in found {
            let lane = match difference.class {
                Class::Lost | Class::Extra => Some(Lane { queue: None, ..difference.lane }),
                Class::Reordered => Some(difference.lane),
                _ => None,
            };
            let alike = (difference.class, difference.field, lane);
            if let Some(&at) = known.get(&alike) {
                groups[at].count += 1;
                groups[at].others.push((difference.expected, difference.got));
            } else {
                known.insert(alike, groups.len());
                groups.push(difference);
            }
        }
        groups
    }
}

fn key(data: &[u8]) -> Key {
    (digest(data), data.len())
}

fn both<T>(a: Option<T>, b: Option<T>, show: impl Fn(T) -> String) -> Option<(String, String)> {
    Some((show(a?), show(b?)))
}

/// Long fields are shown from the byte that differs on, 16 bytes of them.
fn shown_part(field: fields::Field, byte: usize) -> fields::Field {
    const SHOWN: usize = 16;
    if field.len <= SHOWN {
        return field;
    }
    let len = (field.start + field.len).saturating_sub(byte).min(SHOWN);
    fields::Field { start: byte, len, ..field }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Pairs of two short runs, in order, so that the sum of likenesses is largest; those less alike than half stay alone
/// unless the runs are of one length.
fn pair(a_len: usize, b_len: usize, likeness: impl Fn(usize, usize) -> u32) -> Vec<(usize, usize)> {
    const MAX_CELLS: usize = 250_000;
    const ALIKE: u32 = 500;
    if a_len == b_len && (0..a_len).all(|at| likeness(at, at) > 0) {
        return (0..a_len).map(|at| (at, at)).collect();
    }
    if a_len.saturating_mul(b_len) > MAX_CELLS {
        return (0..a_len.min(b_len)).filter(|&at| likeness(at, at) >= ALIKE).map(|at| (at, at)).collect();
    }
    let mut worth = vec![vec![0u32; b_len + 1]; a_len + 1];
    let score = |a, b| Some(likeness(a, b)).filter(|&like| like >= ALIKE);
    for a in (0..a_len).rev() {
        for b in (0..b_len).rev() {
            let apart = worth[a + 1][b].max(worth[a][b + 1]);
            worth[a][b] = score(a, b).map_or(apart, |like| apart.max(worth[a + 1][b + 1] + like));
        }
    }
    let (mut a, mut b) = (0, 0);
    let mut pairs = Vec::new();
    while a < a_len && b < b_len {
        if worth[a][b] == worth[a + 1][b] {
            a += 1;
        } else if worth[a][b] == worth[a][b + 1] {
            b += 1;
        } else {
            pairs.push((a, b));
            (a, b) = (a + 1, b + 1);
        }
    }
    pairs
}

#[cfg(test)]
mod tests;
