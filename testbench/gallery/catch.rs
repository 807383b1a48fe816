//! What catches a broken driver: the testbench's own machinery, run over whatever a scenario left behind. Nothing here knows
//! which driver ran, or what is wrong with it.
//!
//! | word | what it holds against what |
//! |---|---|
//! | `crash` | a call of the driver was stopped in the middle |
//! | `memory` | host memory's checker: DMA outside its mapping, pages with two owners |
//! | `heap` | blocks used after they were freed |
//! | `frames` | the scoreboard: each frame in its queue, once, in order, byte for byte; each sent frame at the wire |
//! | `contract` | rules between kernel and driver: budget, stopped queues, interrupts |
//! | `liveness` | what should have happened after a time and has not |
//! | `silence` | trouble that the driver had to tell of, and did not |
//! | `setting` | what the card holds, against what the driver said |
//! | `counter` | the driver's books and the MAC's, against what was seen |
//! | `sum` | frames in = frames out + dropped + inside |
//! | `leak` | mappings, regions and blocks that nobody gave back |
//! | `error` | the driver tells of an error, and there is no cause |

use std::collections::{BTreeMap, BTreeSet};

use models::observation::Fate;
use models::time::Time;
use regs::{FuncId, PortId};

use super::evidence::{Caught, Evidence, Posted, Trouble};
use super::excuse::{excuse_received, unexcused_sent};
use super::stage::number_of;
use crate::frames::MIN_FRAME;
use crate::host_memory::Violation;
use crate::outcome::{CYCLE_PS, Delivered, Outcome};
use crate::scoreboard::{self, Emerged, Finding, function_of};
use crate::shape::Pace;

/// Everything that is caught, what says most first.
pub fn catch(evidence: &Evidence) -> Vec<Caught> {
    let mut caught = Vec::new();
    // What was done to memory comes before what came of it.
    caught.extend(evidence.violations.iter().map(|violation| memory("memory", violation)));
    caught.extend(evidence.heap_reports.iter().map(|text| heap("heap", text, evidence)));
    caught.extend(crash(evidence));
    // A driver that crashed leaves frames behind; that they are missing says nothing more.
    let mut told = 0;
    if evidence.crash.is_none() {
        let (lost, excused) = received(evidence);
        told = excused;
        caught.extend(lost);
        caught.extend(sent(evidence));
    }
    caught.extend(evidence.seen.iter().cloned());
    caught.extend(silence(evidence));
    if evidence.crash.is_none() {
        caught.extend(counters(evidence));
        caught.extend(sums(evidence, told));
    }
    caught.extend(evidence.leaks.iter().map(|violation| memory("leak", violation)));
    caught.extend(evidence.heap_leaks.iter().map(|text| heap("leak", text, evidence)));
    caught.extend(errors(evidence));
    caught
}

fn crash(evidence: &Evidence) -> Option<Caught> {
    let (text, time) = evidence.crash.clone()?;
    let place = text.strip_prefix("NULL dereference: ").or_else(|| text.split(':').next()).unwrap_or(&text).to_string();
    Some(Caught { by: "crash", place, text, packet: None, time: Some(time) })
}

fn memory(by: &'static str, violation: &Violation) -> Caught {
    let Violation { func, addr, time, .. } = violation;
    let place = format!("fn{} {:#x}, {}", func.0, addr & !0xfff, violation.rule_id());
    Caught { by, place, text: violation.to_string(), packet: None, time: Some(*time) }
}

/// When it was met is not known but for the end.
fn heap(by: &'static str, text: &str, evidence: &Evidence) -> Caught {
    let place = text.strip_prefix("heap: ").unwrap_or(text);
    let place = place.split(" was ").next().unwrap_or(place).to_string();
    Caught { by, place, text: text.into(), packet: None, time: Some(evidence.end) }
}

/// The scoreboard, against what the card's monitors say came to each queue; and how many missing frames it passes over
/// because their loss was told. Frames that a driver owns up to are no surprise ([`excuse`](super::excuse)).
fn received(evidence: &Evidence) -> (Vec<Caught>, u64) {
    let (got, expected) = (&evidence.outcome, expected(evidence));
    let mut told = 0;
    let excuse = |expected: &[&Emerged], lost: &mut BTreeSet<usize>| told = excuse_received(evidence, expected, lost);
    let findings =
        scoreboard::compare_excusing(got, &expected, &evidence.input, &[], evidence.functions, Pace::Fast, excuse);
    (findings.into_iter().map(|finding| told_by_scoreboard(finding, evidence)).collect(), told)
}

fn told_by_scoreboard(finding: Finding, evidence: &Evidence) -> Caught {
    let subject = finding.text.split(':').next().unwrap_or_default();
    let packet = finding.input.map(|at| evidence.input.get(at).map_or(at as u64, |frame| frame.index));
    Caught {
        by: "frames",
        place: format!("{}, {}", subject.split(", packet").next().unwrap_or(subject), finding.kind),
        text: finding.text,
        packet,
        time: finding.edge.or(finding.cycle.map(|cycle| Time(cycle * CYCLE_PS))),
    }
}

/// What would have come out, had every driver done its part.
fn expected(evidence: &Evidence) -> Outcome {
    let got = &evidence.outcome;
    let paths = got.paths(|port| function_of(port, evidence.functions));
    let mut by_port: BTreeMap<PortId, Vec<&[u8]>> = BTreeMap::new();
    evidence.input.iter().for_each(|frame| by_port.entry(frame.port).or_default().push(&frame.data));
    let mut delivered = Vec::new();
    for path in &paths {
        if let (Fate::Accepted, Some((func, _, queue))) = (path.fate, path.rss)
            && let Some(data) = by_port.get(&path.port).and_then(|list| list.get(path.index))
        {
            delivered.push(Delivered { func, queue, data: data.to_vec(), time: path.time, crossing: None });
        }
    }
    Outcome {
        card: "expected".into(),
        delivered,
        // What leaves is held against what was taken to send, below.
        sent: got.sent.clone(),
        observations: got.observations.clone(),
        ..Outcome::default()
    }
}

/// Frames at the wire, against those that the drivers took to send: every one, in the order of its queue, padded and else
/// unchanged. Each carries its number.
fn sent(evidence: &Evidence) -> Vec<Caught> {
    let mut waiting: BTreeMap<u64, &Posted> = evidence.posted.iter().map(|posted| (posted.number, posted)).collect();
    let mut last: BTreeMap<(FuncId, u16), u64> = BTreeMap::new();
    let mut caught = Vec::new();
    let mut add = |place: String, what: &str, packet, time| {
        let text = format!("{place}: {what}");
        caught.push(Caught { by: "frames", place: format!("{place}, {what}"), text, packet, time: Some(time) });
    };
    for frame in &evidence.outcome.sent {
        let posted = number_of(&frame.data).and_then(|number| waiting.remove(&number));
        let Some(posted) = posted else {
            add(format!("port{}", frame.port.0), "a frame left that nobody had to send", None, frame.time);
            continue;
        };
        let place = format!("fn{} TX queue {}", posted.func.0, posted.queue);
        let mut data = posted.data.clone();
        data.resize(data.len().max(MIN_FRAME), 0);
        if frame.data != data {
            add(place.clone(), "corrupt", Some(posted.number), frame.time);
        }
        if last.insert((posted.func, posted.queue), posted.number).is_some_and(|last| last > posted.number) {
            add(place, "out of order", Some(posted.number), frame.time);
        }
    }
    for posted in unexcused_sent(evidence) {
        add(format!("fn{} TX queue {}", posted.func.0, posted.queue), "lost", Some(posted.number), posted.time);
    }
    caught
}

/// Trouble that a driver had to tell of.
fn silence(evidence: &Evidence) -> Vec<Caught> {
    let mut caught = Vec::new();
    if let Trouble::Certain(what) = evidence.trouble
        && evidence.told.is_empty()
        && evidence.crash.is_none()
    {
        let text = format!("{what}, and the driver told nobody");
        caught.push(Caught { by: "silence", place: what.into(), text, packet: None, time: Some(evidence.end) });
    }
    for (at, fired) in evidence.fired.iter().enumerate() {
        let told = evidence.told.iter().filter(|told| told.time >= fired.time).count();
        let due = evidence.fired.len() - at;
        if told < due && evidence.crash.is_none() {
            let text = format!("{}: the driver told {told} of {due} such faults", fired.what);
            let place = fired.what.split(':').next().unwrap_or_default().to_string();
            caught.push(Caught { by: "silence", place, text, packet: None, time: Some(fired.time) });
        }
    }
    caught
}

/// The drivers' books and the MAC's, against what was seen.
fn counters(evidence: &Evidence) -> Vec<Caught> {
    let mut caught = Vec::new();
    let mut compare = |place: String, said: u64, seen: u64, time| {
        if said != seen {
            let text = format!("{place}: {said} by the driver's count, {seen} by the testbench's");
            caught.push(Caught { by: "counter", place, text, packet: None, time: Some(time) });
        }
    };
    for books in &evidence.books {
        let func = books.func;
        let delivered = || evidence.outcome.delivered.iter().filter(|frame| frame.func == func);
        let posted = evidence.posted.iter().filter(|frame| frame.func == func).count() as u64;
        compare(format!("fn{} rx_packets", func.0), books.totals.rx_packets, delivered().count() as u64, evidence.end);
        let bytes: usize = delivered().map(|frame| frame.data.len()).sum();
        compare(format!("fn{} rx_bytes", func.0), books.totals.rx_bytes, bytes as u64, evidence.end);
        compare(format!("fn{} tx_packets", func.0), books.totals.tx_packets, posted, evidence.end);
    }
    for reading in &evidence.mac {
        let (shown, crossed) = (reading.shown, reading.crossed);
        compare(format!("fn{} MAC rx packets", reading.func.0), shown.rx_packets, crossed.rx_packets, reading.time);
        compare(format!("fn{} MAC tx packets", reading.func.0), shown.tx_packets, crossed.tx_packets, reading.time);
    }
    caught
}

/// The card's books, and the host's: what the card wrote to host memory was handed up, or dropped and counted, or is one of
/// the `told` frames of whose loss the driver told.
fn sums(evidence: &Evidence, told: u64) -> Vec<Caught> {
    let Some(counted) = &evidence.counted else { return Vec::new() };
    let mut caught = Vec::new();
    let mut add = |place: &str, text: String| {
        caught.push(Caught { by: "sum", place: place.into(), text, packet: None, time: Some(evidence.end) });
    };
    if counted.astray() != 0 {
        add("the card", format!("the card's own books: {} frames are unaccounted for: {counted}", counted.astray()));
    }
    let dropped: u64 = evidence.books.iter().map(|books| books.totals.rx_dropped).sum();
    let (out, handed_up) = (counted.host_out, evidence.outcome.delivered.len() as u64 + dropped);
    if !(handed_up..=handed_up + told).contains(&out) {
        let accounted = format!("{handed_up} were handed up or dropped and counted, {told} more told of");
        add("the host", format!("the card completed {out} frames, {accounted}"));
    }
    caught
}

/// A driver that tells of an error for which there is no cause.
fn errors(evidence: &Evidence) -> Vec<Caught> {
    if evidence.trouble != Trouble::None || !evidence.fired.is_empty() {
        return Vec::new();
    }
    let caught = |told: &super::evidence::Told| Caught {
        by: "error",
        place: "the driver".into(),
        text: told.text.clone(),
        packet: None,
        time: Some(told.time),
    };
    evidence.told.iter().map(caught).collect()
}
