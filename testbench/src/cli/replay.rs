//! `onic replay`: captures, or a golden case, through a card and the one it is held against.

use std::collections::BTreeMap;

use regs::FuncId;

use super::args::ReplayArgs;
use super::exit::{Exit, Failure};
use super::progress::Progress;
use super::{load, table};
use crate::golden;
use crate::input::Input;
use crate::session::{self, Session, Side, Verdict};

/// How many findings are printed whole; the rest are counted.
const SHOWN: usize = 10;

pub(super) fn run(args: &ReplayArgs) -> Result<Exit, Failure> {
    let mut cards = load::cards(&args.card)?;
    let input = match load::case_folder(&args.inputs) {
        Some(folder) => {
            let loaded = golden::load(folder)?;
            cards.setup = loaded.setup;
            for card in [Some(&mut cards.card), cards.against.as_mut()].into_iter().flatten() {
                card.rtl.seed = loaded.seed;
                card.rtl.stalls.clone_from(&loaded.stalls);
            }
            loaded.input
        }
        None => load::input(&args.inputs, &args.card)?,
    };
    let mut frames = input.frames.clone();
    if let Some(only) = args.only {
        frames.retain(|frame| frame.index == only);
    }
    if let Some(count) = args.count {
        frames.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    }
    let session = Session { card: cards.card, against: cards.against, setup: cards.setup, wire: &frames, host: &[] };
    let mut progress = Progress::new();
    let verdict = session::run(&session, &mut |card, done, total| progress.at(card, done, total))?;
    progress.finish();
    report_input(&input);
    print!("{}", queues(&verdict));
    report_findings(&verdict);
    Ok(exit_of(&verdict, &input, args.out.allow_skips, frames.len()))
}

/// The code: a difference wins, then input that was not whole, then nothing to compare.
fn exit_of(verdict: &Verdict, input: &Input, allow_skips: bool, frames: usize) -> Exit {
    if !verdict.agreed() {
        Exit::Difference
    } else if !input.damage.is_empty() || (!input.skips.is_empty() && !allow_skips) {
        Exit::BadInput
    } else if frames == 0 {
        Exit::NothingCompared
    } else {
        Exit::Agreed
    }
}

fn report_input(input: &Input) {
    for (note, count) in &input.notes {
        eprintln!("note: {count} packets: {note}");
    }
    for (kind, skip) in &input.skips {
        eprintln!("warning: {} of {} packets skipped, {kind}: {}", skip.count, input.packets, skip.first);
    }
    for damage in &input.damage {
        eprintln!("error: {damage}");
    }
}

/// The table of queues, ports and drops, a column for each card.
fn queues(verdict: &Verdict) -> String {
    let sides: Vec<&Side> = [Some(&verdict.got), verdict.against.as_ref()].into_iter().flatten().collect();
    let mut rows: BTreeMap<(u8, String), Vec<(u64, u64)>> = BTreeMap::new();
    for (column, side) in sides.iter().enumerate() {
        let mut put = |order: u8, name: String, packets: u64, bytes: u64| {
            rows.entry((order, name)).or_insert_with(|| vec![(0, 0); sides.len()])[column] = (packets, bytes);
        };
        for ((FuncId(func), queue), (packets, bytes)) in side.outcome.by_queue() {
            put(0, format!("fn{func} queue {queue:>2}"), packets, bytes);
        }
        let mut wire: BTreeMap<u8, (u64, u64)> = BTreeMap::new();
        for sent in &side.outcome.sent {
            let (packets, bytes) = wire.entry(sent.port.0).or_default();
            *packets += 1;
            *bytes += sent.data.len() as u64;
        }
        wire.into_iter().for_each(|(port, (packets, bytes))| put(1, format!("port{port} out"), packets, bytes));
        for (reason, packets) in &side.outcome.by_monitors.drops {
            put(2, format!("drop {reason}"), *packets, 0);
        }
    }
    let total = |column: usize| {
        rows.iter().filter(|((order, _), _)| *order < 2).fold((0, 0), |sum, (_, cells)| (sum.0 + cells[column].0, sum.1 + cells[column].1))
    };
    let totals: Vec<(u64, u64)> = (0..sides.len()).map(total).collect();
    let mut header = vec!["where".to_string()];
    for side in &sides {
        header.push(format!(">{} packets", side.outcome.card));
        header.push(">bytes".into());
    }
    let cells = |name: String, values: &[(u64, u64)]| {
        let mut row = vec![name];
        values.iter().for_each(|(packets, bytes)| row.extend([packets.to_string(), if *bytes == 0 { "-".into() } else { bytes.to_string() }]));
        row
    };
    let mut lines: Vec<Vec<String>> = rows.iter().map(|((_, name), values)| cells(name.clone(), values)).collect();
    lines.push(cells("total".into(), &totals));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut out = table::print(&header, &lines);
    for side in &sides {
        out += &format!("\n{:<8} counters  {}\n", side.outcome.card, side.outcome.by_counters);
        out += &format!("{:<8} monitors  {}\n", "", side.outcome.by_monitors);
    }
    out
}

fn report_findings(verdict: &Verdict) {
    for finding in verdict.findings.iter().take(SHOWN) {
        eprintln!("error: {}", finding.text);
    }
    if verdict.findings.len() > SHOWN {
        eprintln!("error: and {} more", verdict.findings.len() - SHOWN);
    }
    if let (true, Some(against)) = (verdict.agreed(), &verdict.against) {
        println!("\n{} and {} agree on {} frames", verdict.got.outcome.card, against.outcome.card, verdict.compared / 2);
    }
}
