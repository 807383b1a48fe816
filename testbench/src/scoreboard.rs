//! Two outcomes of one input, held against each other; and one outcome against its own sums.
//!
//! What the card under test did is found by its bytes alone: its monitors name an input frame only where the bytes bear them
//! out, so that a frame which went astray can't lend its number to its neighbours.

use std::collections::BTreeMap;

use models::observation::Fate;
use models::time::Time;
use regs::{FuncId, PortId};
use traces::Point;
use traces::align::{self, Class, Difference, Ignore, Item, Lane, Side};

use crate::outcome::{Outcome, Path};
use crate::run::InFrame;
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
    /// Cycle of axis_aclk.
    pub cycle: u64,
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
            cycle: delivered.time.0 / 4_000,
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
            cycle: sent.time.0 / 4_000,
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
            cycle: path.time.0 / 4_000,
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

/// Something that is not as it should be.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its kind, for scripts: a class of difference, `sum`, `memory`, `queue`, `counter`.
    pub kind: String,
    /// In a sentence or more, for people.
    pub text: String,
    /// Position of the input frame that it is about.
    pub input: Option<usize>,
    /// Where and when, of the card under test.
    pub cycle: Option<u64>,
    /// The difference itself, where it is one between frames.
    pub difference: Option<Difference>,
}

/// Hold the card under test against another. Where frames can overflow, drops are compared as counts only.
pub fn compare(got: &Outcome, expected: &Outcome, input: &[InFrame], functions: u8, pace: Pace) -> Vec<Finding> {
    let (want, have) = (emerged(expected, input, functions), emerged(got, input, functions));
    let exact = !got.observations.is_empty() && !expected.observations.is_empty();
    let overflows = |outcome: &Outcome| outcome.by_monitors.drops.keys().any(|reason| reason.ends_with("overflow"));
    let loose = pace != Pace::Fast && (overflows(got) || overflows(expected));
    // A card without monitors shows no drops, and one that overflowed drops others than the model: only what came out of both
    // can be compared then.
    let comparable = |frame: &&Emerged| (exact && !loose) || !frame.point.is_drop();
    let (want, have): (Vec<_>, Vec<_>) = (want.iter().filter(comparable).collect(), have.iter().filter(comparable).collect());
    let want_items: Vec<Item<'_>> = want.iter().map(|frame| item(frame)).collect();
    let have_items: Vec<Item<'_>> = have.iter().map(|frame| item(frame)).collect();
    let mut differences = align::compare(&want_items, &have_items, &Ignore::default());
    if loose {
        differences.retain(|difference| !matches!(difference.class, Class::Lost | Class::Extra));
    }
    differences.into_iter().map(|difference| finding(difference, &want, &have, input, got, expected)).collect()
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

fn finding(difference: Difference, want: &[&Emerged], have: &[&Emerged], input: &[InFrame], got: &Outcome, expected: &Outcome) -> Finding {
    let position = difference.input.map(|at| at as usize);
    let mut text = match position.and_then(|at| input.get(at)) {
        Some(frame) => format!("{}: {}, packet {} of the input", difference.lane, difference.class, frame.index),
        None => format!("{}: {}", difference.lane, difference.class),
    };
    if let Some(lane) = difference.lane_got {
        text += &format!(", found in {lane}");
    }
    if difference.duplicate_of.is_some() {
        text += ", a duplicate";
    }
    if let Some(byte) = difference.byte {
        text += &format!(", first at byte {byte}");
    }
    if let Some(field) = difference.field.filter(|_| difference.lane_got.is_none()) {
        text += &format!(", {field}");
    }
    let side = |values: &str, index: Option<usize>, frames: &[&Emerged], name: &str| {
        let frame = index.and_then(|at| frames.get(at));
        let bytes = frame.map(|frame| window(&frame.data, difference.byte)).unwrap_or_else(|| "nothing".into());
        let queue = frame.and_then(|f| f.queue).map(|q| format!(", queue {q}")).unwrap_or_default();
        let cycle = frame.map(|frame| format!(", cycle {}", frame.cycle)).unwrap_or_default();
        let shown = if values.is_empty() { bytes } else { format!("{values}  {bytes}") };
        format!("{shown}  ({name}{queue}{cycle})")
    };
    text += &format!("\n  expected  {}", side(&difference.value_expected, difference.expected, want, &expected.card));
    text += &format!("\n  got       {}", side(&difference.value_got, difference.got, have, &got.card));
    text += &format!("\n  flow      {}", difference.flow);
    if difference.count > 1 {
        text += &format!("\n  and       {} more frames by the same cause", difference.count - 1);
    }
    Finding {
        kind: difference.class.to_string(),
        text,
        input: position,
        cycle: difference.cycle,
        difference: Some(difference),
    }
}

/// Sixteen bytes around the one that matters, with their offset.
fn window(data: &[u8], byte: Option<usize>) -> String {
    let start = byte.unwrap_or(0).min(data.len()) & !15;
    let bytes: Vec<String> = data[start.min(data.len())..data.len().min(start + 16)].iter().map(|b| format!("{b:02x}")).collect();
    format!("{start:#06x}: {} ({} bytes)", bytes.join(" "), data.len())
}

/// What an outcome says against itself: broken sums, memory reports, queue faults.
pub fn self_check(outcome: &Outcome) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |kind: &str, text: String| {
        findings.push(Finding { kind: kind.into(), text, input: None, cycle: None, difference: None });
    };
    for (source, sum) in [("the card's counters", &outcome.by_counters), ("the port monitors", &outcome.by_monitors)] {
        if sum.missing() != 0 {
            add("sum", format!("{}: by {source} {} frames are unaccounted for: {sum}", outcome.card, sum.missing()));
        }
    }
    for (name, a, b) in [
        ("frames in at the wire", outcome.by_counters.wire_in, outcome.by_monitors.wire_in),
        ("frames from the host", outcome.by_counters.host_in, outcome.by_monitors.host_in),
        ("frames to the host", outcome.by_counters.host_out, outcome.by_monitors.host_out),
        ("frames out at the wire", outcome.by_counters.wire_out, outcome.by_monitors.wire_out),
    ] {
        if a != b {
            add("counter", format!("{}: {name}: the card counts {a}, the testbench {b}", outcome.card));
        }
    }
    outcome.memory_reports.iter().for_each(|report| add("memory", format!("{}: {report}", outcome.card)));
    outcome.queue_errors.iter().for_each(|fault| add("queue", format!("{}: {fault}", outcome.card)));
    findings
}
