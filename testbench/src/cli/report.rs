//! What a run found, for people and for scripts. The JSON forms are described by `schema/*.json`; a test holds them to it.
//! Nothing here depends on the wall clock: the same run gives the same text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use regs::FuncId;
use serde::Serialize;

use super::table;
use crate::input::Input;
use crate::outcome::{Outcome, Sum};
use crate::run::InFrame;
use crate::scoreboard::Finding;
use crate::session::{Side, Verdict};

/// The version of every JSON form. It goes up when a field changes its meaning or goes away.
pub(super) const VERSION: u32 = 1;

/// How many findings are printed whole; the rest are counted.
const SHOWN: usize = 10;

/// `onic replay --json`.
#[derive(Serialize)]
pub(super) struct Replay {
    pub(super) version: u32,
    pub(super) command: &'static str,
    pub(super) exit: u8,
    pub(super) input: InputReport,
    pub(super) runs: Vec<RunReport>,
}

/// `onic gen --json`.
#[derive(Serialize)]
pub(super) struct Gen {
    pub(super) version: u32,
    pub(super) command: &'static str,
    pub(super) exit: u8,
    pub(super) run: RunReport,
}

/// What went in.
#[derive(Serialize)]
pub(super) struct InputReport {
    packets: u64,
    frames: u64,
    skips: Vec<SkipReport>,
    notes: BTreeMap<String, u64>,
    damage: Vec<String>,
}

#[derive(Serialize)]
struct SkipReport {
    kind: String,
    packets: u64,
    first: String,
}

impl InputReport {
    /// Of `input`, of which `frames` were run.
    pub(super) fn of(input: &Input, frames: &[InFrame]) -> InputReport {
        let skip = |(kind, skip): (&String, &crate::input::Skip)| SkipReport {
            kind: kind.clone(),
            packets: skip.count,
            first: skip.first.clone(),
        };
        InputReport {
            packets: input.packets,
            frames: frames.len() as u64,
            skips: input.skips.iter().map(skip).collect(),
            notes: input.notes.clone(),
            damage: input.damage.iter().map(ToString::to_string).collect(),
        }
    }
}

/// One run on one or two cards.
#[derive(Serialize)]
pub(super) struct RunReport {
    seed: u64,
    agreed: bool,
    compared: usize,
    cards: Vec<CardReport>,
    findings: Vec<FindingReport>,
    /// The command that makes it fail again.
    pub(super) repro: Option<String>,
}

/// What one card did.
#[derive(Serialize)]
struct CardReport {
    name: String,
    role: &'static str,
    end_ps: u64,
    error: Option<String>,
    queues: Vec<QueueReport>,
    ports: Vec<PortReport>,
    counters: Option<SumReport>,
    monitors: SumReport,
}

#[derive(Serialize)]
struct QueueReport {
    function: u8,
    queue: u16,
    packets: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct PortReport {
    port: u8,
    packets: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct SumReport {
    wire_in: u64,
    host_in: u64,
    host_out: u64,
    wire_out: u64,
    drops: BTreeMap<String, u64>,
    inside: u64,
    missing: i64,
}

/// Something that is not as it should be.
#[derive(Serialize)]
pub(super) struct FindingReport {
    kind: String,
    text: String,
    packet: Option<u64>,
    cycle: Option<u64>,
    place: Option<String>,
    queue: Option<u32>,
    place_got: Option<String>,
    queue_got: Option<u32>,
    byte: Option<usize>,
    field: Option<String>,
    expected: Option<String>,
    got: Option<String>,
    flow: Option<String>,
    count: usize,
}

impl FindingReport {
    pub(super) fn of(finding: &Finding, frames: &[InFrame]) -> FindingReport {
        let difference = finding.difference.as_ref();
        let lane_got = difference.and_then(|difference| difference.lane_got);
        FindingReport {
            kind: finding.kind.clone(),
            text: finding.text.clone(),
            packet: finding.input.and_then(|at| frames.get(at)).map(|frame| frame.index),
            cycle: finding.cycle,
            place: difference.map(|difference| difference.lane.point.to_string()),
            queue: difference.and_then(|difference| difference.lane.queue),
            place_got: lane_got.map(|lane| lane.point.to_string()),
            queue_got: lane_got.and_then(|lane| lane.queue),
            byte: difference.and_then(|difference| difference.byte),
            field: difference.and_then(|difference| difference.field).map(Into::into),
            expected: difference.map(|difference| difference.value_expected.clone()),
            got: difference.map(|difference| difference.value_got.clone()),
            flow: difference.map(|difference| difference.flow.clone()),
            count: difference.map_or(1, |difference| difference.count),
        }
    }
}

impl RunReport {
    pub(super) fn of(verdict: &Verdict, frames: &[InFrame], seed: u64, repro: Option<String>) -> RunReport {
        RunReport {
            seed,
            agreed: verdict.agreed(),
            compared: verdict.compared,
            cards: sides(verdict).map(|(role, side)| CardReport::of(role, side)).collect(),
            findings: verdict.findings.iter().map(|finding| FindingReport::of(finding, frames)).collect(),
            repro,
        }
    }
}

impl CardReport {
    fn of(role: &'static str, side: &Side) -> CardReport {
        let outcome = &side.outcome;
        let queue = |((FuncId(function), queue), (packets, bytes))| QueueReport { function, queue, packets, bytes };
        CardReport {
            name: outcome.card.clone(),
            role,
            end_ps: outcome.end.0,
            error: side.error.as_ref().map(ToString::to_string),
            queues: outcome.by_queue().into_iter().map(queue).collect(),
            ports: by_port(outcome)
                .into_iter()
                .map(|(port, (packets, bytes))| PortReport { port, packets, bytes })
                .collect(),
            counters: outcome.by_counters.as_ref().map(SumReport::of),
            monitors: SumReport::of(&outcome.by_monitors),
        }
    }
}

impl SumReport {
    fn of(sum: &Sum) -> SumReport {
        SumReport {
            wire_in: sum.wire_in,
            host_in: sum.host_in,
            host_out: sum.host_out,
            wire_out: sum.wire_out,
            drops: sum.drops.clone(),
            inside: sum.inside,
            missing: i64::try_from(sum.missing()).unwrap_or(i64::MAX),
        }
    }
}

fn sides(verdict: &Verdict) -> impl Iterator<Item = (&'static str, &Side)> {
    std::iter::once(("card", &verdict.got)).chain(verdict.against.as_ref().map(|side| ("against", side)))
}

fn by_port(outcome: &Outcome) -> BTreeMap<u8, (u64, u64)> {
    let mut ports: BTreeMap<u8, (u64, u64)> = BTreeMap::new();
    for sent in &outcome.sent {
        let (packets, bytes) = ports.entry(sent.port.0).or_default();
        *packets += 1;
        *bytes += sent.data.len() as u64;
    }
    ports
}

/// A JSON object as text, with a line end.
pub(super) fn json(report: &impl Serialize) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(report).map(|text| text + "\n")
}

/// Skips, notes and damage, one line each, as printed to stderr.
pub(super) fn input_lines(input: &Input) -> Vec<String> {
    let notes = input.notes.iter().map(|(note, count)| format!("note: {count} packets: {note}"));
    let skips = input.skips.iter().map(|(kind, skip)| {
        format!("warning: {} of {} packets skipped, {kind}: {}", skip.count, input.packets, skip.first)
    });
    let damage = input.damage.iter().map(|damage| format!("error: {damage}"));
    notes.chain(skips).chain(damage).collect()
}

/// Findings, the first ones whole, as printed to stderr.
pub(super) fn finding_lines(findings: &[Finding]) -> Vec<String> {
    let mut lines: Vec<String> =
        findings.iter().take(SHOWN).map(|finding| format!("error: {}", finding.text)).collect();
    if findings.len() > SHOWN {
        lines.push(format!("error: and {} more", findings.len() - SHOWN));
    }
    lines
}

/// The table of queues, ports and drops, a column for each card; then the sums; then the verdict.
pub(super) fn text(verdict: &Verdict) -> String {
    let sides: Vec<&Side> = sides(verdict).map(|(_, side)| side).collect();
    let mut out = rows(&sides).print(&sides);
    for side in &sides {
        let counters = side.outcome.by_counters.as_ref().map_or("none that can tell".into(), ToString::to_string);
        let _ = writeln!(out, "\n{:<8} counters  {counters}", side.outcome.card);
        let _ = writeln!(out, "{:<8} monitors  {}", "", side.outcome.by_monitors);
    }
    if let (true, Some(against)) = (verdict.agreed(), &verdict.against) {
        let _ = writeln!(
            out,
            "\n{} and {} agree on {} frames",
            verdict.got.outcome.card,
            against.outcome.card,
            verdict.compared / 2
        );
    }
    out
}

/// Packets and bytes of each card, by row: queues, then ports, then drops.
struct Rows {
    rows: BTreeMap<(u8, String), Vec<(u64, u64)>>,
}

fn rows(sides: &[&Side]) -> Rows {
    let mut rows: BTreeMap<(u8, String), Vec<(u64, u64)>> = BTreeMap::new();
    for (column, side) in sides.iter().enumerate() {
        let mut put = |order: u8, name: String, packets: u64, bytes: u64| {
            rows.entry((order, name)).or_insert_with(|| vec![(0, 0); sides.len()])[column] = (packets, bytes);
        };
        for ((FuncId(func), queue), (packets, bytes)) in side.outcome.by_queue() {
            put(0, format!("fn{func} queue {queue:>3}"), packets, bytes);
        }
        by_port(&side.outcome)
            .into_iter()
            .for_each(|(port, (packets, bytes))| put(1, format!("port{port} out"), packets, bytes));
        for (reason, packets) in &side.outcome.by_monitors.drops {
            put(2, format!("drop {reason}"), *packets, 0);
        }
    }
    Rows { rows }
}

impl Rows {
    fn print(&self, sides: &[&Side]) -> String {
        let total = |column: usize| {
            let out = self.rows.iter().filter(|((order, _), _)| *order < 2);
            out.fold((0, 0), |sum, (_, cells)| (sum.0 + cells[column].0, sum.1 + cells[column].1))
        };
        let totals: Vec<(u64, u64)> = (0..sides.len()).map(total).collect();
        let mut header = vec!["where".to_string()];
        for side in sides {
            header.extend([format!(">{} packets", side.outcome.card), ">bytes".into()]);
        }
        let cells = |name: &str, values: &[(u64, u64)]| {
            let mut row = vec![name.to_string()];
            values.iter().for_each(|(packets, bytes)| {
                row.extend([packets.to_string(), if *bytes == 0 { "-".into() } else { bytes.to_string() }])
            });
            row
        };
        let mut lines: Vec<Vec<String>> = self.rows.iter().map(|((_, name), values)| cells(name, values)).collect();
        lines.push(cells("total out", &totals));
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        table::print(&header, &lines)
    }
}
