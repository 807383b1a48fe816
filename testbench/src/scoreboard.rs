//! Two outcomes of one input, held against each other; and one outcome against its own sums.
//!
//! What the card under test did is found by its bytes alone: its monitors name an input frame only where the bytes bear them
//! out, so that a frame which went astray can't lend its number to its neighbours.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use models::observation::Fate;
use models::time::Time;
use regs::{FuncId, PortId};
use traces::Point;
use traces::align::{self, Class, Ignore, Item, Lane, Side};

pub use crate::finding::Finding;
use crate::finding::Teller;
use crate::outcome::{CYCLE_PS, Crossing, Outcome, Path, Sum, cycle_before};
use crate::run::{HostFrame, InFrame};
use crate::shape::Pace;

/// One frame that came out of a card, wherever, with what is known of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Emerged {
    /// Where: a function's host memory, a port's wire, or a drop point.
    pub point: Point,
    /// Queue, relative to the function.
    pub queue: Option<u16>,
    /// Its bytes.
    pub data: Vec<u8>,
    /// Position among the input frames, where the monitors say so and the bytes bear it out.
    pub input: Option<usize>,
    /// RSS hash, likewise.
    pub hash: Option<u32>,
    /// Cycle of axis_aclk in which its last beat left the shell, if that is RTL; else of `time`.
    pub cycle: u64,
    /// When its beats left the shell, likewise.
    pub crossing: Option<Crossing>,
    /// When it was taken out, left, or was lost.
    pub time: Time,
    /// Drop reason.
    pub drop: Option<&'static str>,
    /// `tuser_err` at the wire.
    pub err: bool,
}

/// Where the pass-through plugin sends a port's frames: to the function of the same number, modulo those there are.
pub fn function_of(port: PortId, functions: u8) -> FuncId {
    FuncId(port.0 % functions.max(1))
}

/// Everything that came out of a run, delivered, sent and lost frames alike.
pub fn emerged(outcome: &Outcome, input: &[InFrame], functions: u8) -> Vec<Emerged> {
    let paths = outcome.paths(|port| function_of(port, functions));
    let positions = positions_by_port(input);
    let position = |path: &Path| positions.get(&path.port).and_then(|list| list.get(path.index)).copied();
    let mut frames = Vec::with_capacity(outcome.delivered.len() + outcome.sent.len());
    for (delivered, path) in outcome.delivered.iter().zip(outcome.paths_of_delivered(&paths)) {
        let path = path.map(|at| &paths[at]);
        let known = path.and_then(position).filter(|&at| input[at].data == delivered.data);
        frames.push(Emerged {
            point: Point::Function(delivered.func.0),
            queue: Some(delivered.queue),
            data: delivered.data.clone(),
            input: known,
            hash: known.and(path).and_then(|path| path.rss).map(|(_, hash, _)| hash),
            cycle: delivered
                .crossing
                .as_ref()
                .map_or(delivered.time.0 / CYCLE_PS, |crossing| cycle_before(crossing.last())),
            crossing: delivered.crossing.clone(),
            time: delivered.time,
            drop: None,
            err: false,
        });
    }
    for sent in &outcome.sent {
        frames.push(Emerged {
            point: Point::Port(sent.port.0),
            queue: None,
            data: sent.data.clone(),
            input: None,
            hash: None,
            cycle: sent.time.0 / CYCLE_PS,
            crossing: None,
            time: sent.time,
            drop: None,
            err: sent.err,
        });
    }
    frames.extend(paths.iter().filter(|path| path.fate != Fate::Accepted).filter_map(|path| {
        let at = position(path)?;
        let point = match path.rss {
            Some((func, ..)) => Point::FunctionDropped(func.0),
            None => Point::PortDropped(path.port.0),
        };
        Some(Emerged {
            point,
            queue: None,
            data: input[at].data.clone(),
            input: Some(at),
            hash: path.rss.map(|(_, hash, _)| hash),
            cycle: path.time.0 / CYCLE_PS,
            crossing: None,
            time: path.time,
            drop: Some(path.fate.name()),
            err: false,
        })
    }));
    frames
}

fn positions_by_port(input: &[InFrame]) -> BTreeMap<PortId, Vec<usize>> {
    let mut positions: BTreeMap<PortId, Vec<usize>> = BTreeMap::new();
    input.iter().enumerate().for_each(|(at, frame)| positions.entry(frame.port).or_default().push(at));
    positions
}

/// Hold the card under test against another. Where frames can overflow, drops are compared as counts only. Frames that the
/// host sent are held to an order within the queue that they were sent on: which queue comes next is the engine's choice.
pub fn compare(
    got: &Outcome,
    expected: &Outcome,
    input: &[InFrame],
    host: &[HostFrame],
    functions: u8,
    pace: Pace,
) -> Vec<Finding> {
    compare_excusing(got, expected, input, host, functions, pace, |_, _| {})
}

/// [`compare`], where not every loss is a finding: `excuse` is shown all frames that were expected and which of them are
/// lost, and takes away those of which nothing is to be said.
pub fn compare_excusing(
    got: &Outcome,
    expected: &Outcome,
    input: &[InFrame],
    host: &[HostFrame],
    functions: u8,
    pace: Pace,
    excuse: impl FnOnce(&[&Emerged], &mut BTreeSet<usize>),
) -> Vec<Finding> {
    let (want, have) = (emerged(expected, input, functions), emerged(got, input, functions));
    let exact = !got.observations.is_empty() && !expected.observations.is_empty();
    let overflows = |outcome: &Outcome| outcome.by_monitors.drops.keys().any(|reason| reason.ends_with("overflow"));
    let loose = pace != Pace::Fast && (overflows(got) || overflows(expected));
    // A card without monitors shows no drops, and one that overflowed drops others than the model: only what came out of both
    // can be compared then.
    let comparable = |frame: &&Emerged| (exact && !loose) || !frame.point.is_drop();
    let (mut want, mut have): (Vec<_>, Vec<_>) =
        (want.iter().filter(comparable).collect(), have.iter().filter(comparable).collect());
    if sent_in_other_order(&want, &have) {
        let origins = host.iter().map(|frame| (frame.data.as_slice(), (frame.func, frame.queue))).collect();
        [&mut want, &mut have].into_iter().for_each(|frames| sort_by_origin(frames, &origins));
    }
    let want_items: Vec<Item<'_>> = want.iter().map(|frame| item(frame)).collect();
    let have_items: Vec<Item<'_>> = have.iter().map(|frame| item(frame)).collect();
    let mut differences =
        align::compare_excusing(&want_items, &have_items, &Ignore::default(), |lost| excuse(&want, lost));
    if loose {
        // A whole frame of the input is not a broken one of another: two cards that lost different frames pair them so.
        let whole: HashSet<&[u8]> = input.iter().map(|frame| frame.data.as_slice()).collect();
        let is_whole = |at: Option<usize>| at.is_some_and(|at| whole.contains(have[at].data.as_slice()));
        differences.retain(|difference| match difference.class {
            Class::Lost | Class::Extra => false,
            Class::Corrupt | Class::WrongLength => !is_whole(difference.got),
            _ => true,
        });
    }
    let teller = Teller { want: &want, have: &have, input, got, expected, functions };
    let mut findings: Vec<Finding> = differences.into_iter().map(|difference| teller.tell(difference)).collect();
    if loose {
        findings.extend(compare_drops(got, expected));
    }
    findings
}

/// Did the same frames leave the ports in another order?
fn sent_in_other_order(want: &[&Emerged], have: &[&Emerged]) -> bool {
    fn sent<'a>(frames: &'a [&Emerged]) -> impl Iterator<Item = (Point, &'a [u8])> {
        let at_ports = frames.iter().filter(|frame| matches!(frame.point, Point::Port(_)));
        at_ports.map(|frame| (frame.point, frame.data.as_slice()))
    }
    !sent(want).eq(sent(have))
}

/// Frames at ports by the queue that their bytes were sent on, in order within it. A frame that nobody sent goes with the one
/// before it.
fn sort_by_origin(frames: &mut [&Emerged], origins: &HashMap<&[u8], (FuncId, u16)>) {
    let mut last: BTreeMap<Point, (FuncId, u16)> = BTreeMap::new();
    let mut key = |frame: &&Emerged| {
        let known = last.entry(frame.point).or_default();
        if let (Point::Port(_), Some(origin)) = (frame.point, origins.get(frame.data.as_slice())) {
            *known = *origin;
        }
        (frame.point, *known)
    };
    let keys: Vec<_> = frames.iter().map(&mut key).collect();
    let mut order: Vec<usize> = (0..frames.len()).collect();
    order.sort_by_key(|&at| keys[at]);
    let sorted: Vec<&Emerged> = order.into_iter().map(|at| frames[at]).collect();
    frames.copy_from_slice(&sorted);
}

/// Where frames overflow, how many do may differ between cards: it hangs on the cycle. By every other reason a card may
/// lose more than the other only what it or the other lost by overflow instead.
fn compare_drops(got: &Outcome, expected: &Outcome) -> Vec<Finding> {
    let drops = |outcome: &Outcome, overflow: bool| -> BTreeMap<String, u64> {
        let all = outcome.by_monitors.drops.iter().filter(|(reason, _)| reason.ends_with("overflow") == overflow);
        all.map(|(reason, frames)| (reason.clone(), *frames)).collect()
    };
    let slack: u64 = drops(got, true).values().chain(drops(expected, true).values()).sum();
    let (a, b) = (drops(got, false), drops(expected, false));
    let reasons: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let count = |of: &BTreeMap<String, u64>, reason: &String| of.get(reason).copied().unwrap_or(0);
    let counts = reasons.into_iter().map(|reason| (reason, count(&a, reason), count(&b, reason)));
    counts
        .filter(|(_, a, b)| a.abs_diff(*b) > slack)
        .map(|(reason, a, b)| {
            let text =
                format!("drops by {reason}: {} has {a}, {} has {b}; {slack} overflowed", got.card, expected.card);
            Finding::new("drops", text)
        })
        .collect()
}

fn item(frame: &Emerged) -> Item<'_> {
    Item {
        lane: Lane { point: frame.point, queue: frame.queue.map(u32::from) },
        data: &frame.data,
        input: frame.input.map(|at| at as u64),
        cycle: Some(frame.cycle),
        side: Side { hash: frame.hash, err: Some(frame.err), drop: frame.drop, ..Side::default() },
    }
}

/// What an outcome says against itself: broken sums, memory reports, queue faults.
pub fn self_check(outcome: &Outcome) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |kind: &str, text: String| findings.push(Finding::new(kind, text));
    let counters = outcome.by_counters.as_ref();
    for (source, sum) in [("the card's counters", counters), ("the port monitors", Some(&outcome.by_monitors))] {
        let Some(sum) = sum else { continue };
        match sum.astray() {
            0 => {}
            frames if sum.inside > 0 => {
                add("sum", format!("{}: by {source} {frames} frames never came out: {sum}", outcome.card))
            }
            frames => add("sum", format!("{}: by {source} {frames} frames are unaccounted for: {sum}", outcome.card)),
        }
    }
    let counts = |sum: &Sum| [sum.wire_in, sum.host_in, sum.host_out, sum.wire_out];
    let names = ["frames in at the wire", "frames from the host", "frames to the host", "frames out at the wire"];
    let pairs = counters.map(|counters| counts(counters).into_iter().zip(counts(&outcome.by_monitors)));
    for (name, (a, b)) in names.into_iter().zip(pairs.into_iter().flatten()) {
        if a != b {
            add("counter", format!("{}: {name}: the card counts {a}, the testbench {b}", outcome.card));
        }
    }
    outcome.memory_reports.iter().for_each(|report| add("memory", format!("{}: {report}", outcome.card)));
    outcome.queue_errors.iter().for_each(|fault| add("queue", format!("{}: {fault}", outcome.card)));
    findings
}

/// Fold the sums that lost and extra frames have broken into the first report of those: one cause, one report. Sums that
/// these do not explain stay.
pub fn explain_sums(findings: &mut [Finding], own: &mut Vec<Finding>, got: &Outcome) {
    let frames = |class: Class| -> i128 {
        let of_class = findings
            .iter()
            .filter_map(|finding| finding.difference.as_ref())
            .filter(|difference| difference.class == class);
        of_class.map(|difference| difference.count as i128).sum()
    };
    let missing = frames(Class::Lost) - frames(Class::Extra);
    let explained = |sum: &Sum| missing != 0 && sum.astray() == missing;
    if !got.by_counters.iter().chain([&got.by_monitors]).all(explained) {
        return;
    }
    let is_cause = |finding: &&mut Finding| {
        finding.difference.as_ref().is_some_and(|difference| matches!(difference.class, Class::Lost | Class::Extra))
    };
    if let Some(cause) = findings.iter_mut().find(is_cause) {
        let frames = if missing.abs() == 1 { "frame" } else { "frames" };
        let how = if missing > 0 { "missing" } else { "too many" };
        cause.text += &format!("\n  sums      {} {frames} {how}: {}", missing.abs(), got.by_monitors);
        own.retain(|finding| finding.kind != "sum");
    }
}
