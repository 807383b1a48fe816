//! `onic bench replay --versus cocotb`: card `rtl` against drivers of the same top in Python.

use serde_json::{Map, Value, json};

use super::args::BenchArgs;
use super::bench::{Bound, Report, Target};
use super::exit::{Exit, Failure};
use super::progress::Progress;
use super::table;
use crate::benchmark::cocotb::{LEN_BYTES, Opponent, Opponents, Round, Sample, Unavailable};
use crate::benchmark::{median, spread};

/// How many times as fast as an opponent card `rtl` has to be (DESIGN section 9).
const fn least(opponent: Opponent) -> f64 {
    match opponent {
        Opponent::Minimal => 15.0,
        Opponent::Axi => 100.0,
    }
}

/// What the figures are of; said with them.
const WHAT: &str = "onic_card 1x1 with 8 queues, 60 bytes of UDP from the wire to host memory, the same frames under the \
                    same Verilator; from the first frame at the wire to the last one out of a ring";

pub(super) fn run(args: &BenchArgs) -> Result<Report, Failure> {
    let (frames, rounds) = if args.quick { (2_000, 7) } else { (8_000, 11) };
    let opponents = match Opponents::bring() {
        Ok(opponents) => opponents,
        Err(Unavailable::Skipped(why)) => {
            eprintln!("skipped: cocotb, {why}");
            let json = Map::from_iter([("skipped".to_string(), why.into())]);
            return Ok(Report { json, targets: Vec::new() });
        }
        Err(Unavailable::Failed(error)) => {
            return Err(Failure { exit: Exit::ToolMissing, hint: None, error });
        }
    };
    let mut progress = Progress::counting("runs");
    let measured = opponents.measure(frames, rounds, |done, total| progress.at("cocotb", done, total));
    progress.finish();
    let measured = measured.map_err(|error| Failure { exit: Exit::Difference, hint: None, error })?;
    let rows = rows(&measured);
    if !args.json {
        print(&rows, &measured, frames);
    }
    let mut json = Map::new();
    json.insert("what".into(), WHAT.into());
    json.insert("len_bytes".into(), LEN_BYTES.into());
    json.insert("frames".into(), frames.into());
    json.insert("rows".into(), rows.iter().map(|row| row.json(frames)).collect());
    json.insert("ratios".into(), Opponent::ALL.map(|opponent| ratio_json(opponent, &measured)).into_iter().collect());
    Ok(Report { json, targets: Opponent::ALL.map(|opponent| target(opponent, &measured)).into() })
}

/// Who, and all of its runs.
struct Row {
    name: &'static str,
    runs: Vec<Sample>,
}

fn rows(measured: &[Round]) -> Vec<Row> {
    let mut rows = vec![
        Row { name: "rtl", runs: measured.iter().flat_map(|round| round.rtl.clone()).collect() },
        Row { name: "rtl, host memory checks on", runs: measured.iter().map(|round| round.checked).collect() },
    ];
    rows.extend(Opponent::ALL.map(|opponent| Row {
        name: opponent.name(),
        runs: measured.iter().map(|round| round.opponents[opponent as usize]).collect(),
    }));
    rows
}

impl Row {
    fn seconds(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.seconds).collect()
    }

    /// Cycles of axis_aclk in a run; they are the same in each.
    fn cycles(&self) -> f64 {
        median(&self.runs.iter().map(|run| run.cycles as f64).collect::<Vec<_>>())
    }

    fn cells(&self, frames: usize) -> Vec<String> {
        let seconds = self.seconds();
        vec![
            self.name.into(),
            self.runs.len().to_string(),
            format!("{:.0}", frames as f64 / median(&seconds)),
            format!("{:.0} %", spread(&seconds) * 100.0),
            format!("{:.1}", self.cycles() / median(&seconds) / 1e3),
            format!("{:.2}", self.cycles() / frames as f64),
        ]
    }

    fn json(&self, frames: usize) -> Value {
        let seconds = self.seconds();
        json!({
            "name": self.name, "packets_per_second": frames as f64 / median(&seconds), "spread": spread(&seconds),
            "cycles_per_second": self.cycles() / median(&seconds), "cycles": self.cycles(), "seconds_runs": seconds,
        })
    }
}

/// Of each round: load that changes from one to the next changes both sides.
fn ratios(opponent: Opponent, measured: &[Round]) -> Vec<f64> {
    measured.iter().map(|round| round.ratio(opponent)).collect()
}

fn ratio_json(opponent: Opponent, measured: &[Round]) -> Value {
    let ratios = ratios(opponent, measured);
    json!({ "opponent": opponent.name(), "ratio": median(&ratios), "spread": spread(&ratios), "ratio_runs": ratios })
}

fn target(opponent: Opponent, measured: &[Round]) -> Target {
    Target {
        name: format!("rtl / {}", opponent.name()),
        got: median(&ratios(opponent, measured)),
        bound: Bound::Least(least(opponent)),
    }
}

fn print(rows: &[Row], measured: &[Round], frames: usize) {
    println!("{WHAT}.\n{frames} frames, {} rounds of taking turns, medians.\n", measured.len());
    let header = ["driver", ">runs", ">packets/s", ">spread", ">kcycles/s", ">cycles/packet"];
    println!("{}", table::print(&header, &rows.iter().map(|row| row.cells(frames)).collect::<Vec<_>>()));
    let header = ["rtl over", ">times as fast", ">spread"];
    let cells = Opponent::ALL.map(|opponent| {
        let ratios = ratios(opponent, measured);
        vec![
            opponent.name().to_string(),
            format!("{:.1}", median(&ratios)),
            format!("{:.0} %", spread(&ratios) * 100.0),
        ]
    });
    println!("{}", table::print(&header, &cells));
}
