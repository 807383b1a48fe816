//! `onic bench`: speed as ratios, against targets.

use anyhow::anyhow;
use serde_json::json;

use super::args::BenchArgs;
use super::exit::{Exit, Failure};
use super::table;
use crate::benchmark::{self, LENGTHS, Runs, Steady, Way};

/// Pins only, over the bare loop (DESIGN section 9 a).
#[cfg(feature = "rtl")]
const PINS_MIN: f64 = 0.93;
/// `hybrid`, over what bare RTL and model allow together (DESIGN section 9 b).
#[cfg(feature = "rtl")]
const HYBRID_MIN: f64 = 0.9;
/// `rtl` with its driver and host memory, over its bare loop (issue 4).
#[cfg(feature = "rtl")]
const CARD_MIN: f64 = 0.85;
/// An opponent slower than that, in cycles of axis_aclk a second, is no honest one.
#[cfg(feature = "rtl")]
const BARE_MIN: f64 = 270_000.0;
/// `model` at 60 bytes, packets a second on one core.
const MODEL_MIN: f64 = 2e6;

/// One line of the verdict.
pub(super) struct Target {
    pub(super) name: String,
    pub(super) got: f64,
    pub(super) bound: Bound,
}

/// What a figure is held to.
#[derive(Clone, Copy)]
pub(super) enum Bound {
    Least(f64),
    Most(f64),
}

impl Target {
    /// A figure that could not be had meets nothing.
    pub(super) fn met(&self) -> bool {
        match self.bound {
            Bound::Least(least) => self.got >= least,
            Bound::Most(most) => self.got <= most,
        }
    }

    fn json(&self) -> serde_json::Value {
        let (word, limit) = match self.bound {
            Bound::Least(least) => ("least", least),
            Bound::Most(most) => ("most", most),
        };
        json!({ "name": self.name, "got": self.got, word: limit, "met": self.met() })
    }

    fn print(&self) {
        let word = if self.met() { "met   " } else { "MISSED" };
        let bound = match self.bound {
            Bound::Least(least) => format!("at least {least:.2}"),
            Bound::Most(most) => format!("at most {most:.2}"),
        };
        println!("{word}  {:<44} {:>12.3}  {bound}", self.name, self.got);
    }
}

/// What a bench has to say: its figures for programs, and what they are held to.
pub(super) struct Report {
    pub(super) json: serde_json::Map<String, serde_json::Value>,
    pub(super) targets: Vec<Target>,
}

pub(super) fn run(args: &BenchArgs) -> Result<Exit, Failure> {
    let Report { mut json, targets } = match args.name.as_str() {
        "replay" if args.versus.is_some() => versus(args)?,
        other if args.versus.is_some() => {
            return Err(
                Failure::from(anyhow!("bench `{other}` knows no --versus")).hint("onic bench replay --versus cocotb")
            );
        }
        "replay" => replay(args)?,
        "driver" => super::bench_driver::run(args)?,
        #[cfg(feature = "rtl")]
        "line-rate" => super::bench_line_rate::run(args)?,
        other => {
            return Err(Failure::from(anyhow!("there is no bench `{other}`"))
                .hint("onic bench replay [--versus cocotb]|driver|line-rate [--check] [--quick] [--json]"));
        }
    };
    if args.json {
        json.insert("version".into(), 1.into());
        json.insert("bench".into(), args.name.clone().into());
        json.insert("targets".into(), targets.iter().map(Target::json).collect());
        println!("{}", serde_json::Value::Object(json));
    } else if args.check {
        targets.iter().for_each(Target::print);
    }
    Ok(if args.check && !targets.iter().all(Target::met) { Exit::Difference } else { Exit::Agreed })
}

fn replay(args: &BenchArgs) -> Result<Report, Failure> {
    let mut targets = Vec::new();
    let mut json = serde_json::Map::new();
    json.insert("model".into(), model(args, &mut targets)?);
    json.insert("rtl".into(), rtl(args, &mut targets)?);
    json.insert("card_rtl".into(), card(args, &mut targets)?);
    Ok(Report { json, targets })
}

#[cfg(feature = "rtl")]
fn versus(args: &BenchArgs) -> Result<Report, Failure> {
    super::bench_versus::run(args)
}

#[cfg(not(feature = "rtl"))]
fn versus(_args: &BenchArgs) -> Result<Report, Failure> {
    Err(Failure::new(Exit::ToolMissing, anyhow!("--versus: this onic was built without RTL (ONIC_NO_RTL=1)")))
}

/// How runs are summed up, said with the figures.
const BEST_OF: &str = "each stretch at its best of";

/// The model and its driver, no output kept, checks off and on.
fn model(args: &BenchArgs, targets: &mut Vec<Target>) -> Result<serde_json::Value, Failure> {
    let (packets, rounds) = if args.quick { (200_000, 7) } else { (500_000, 11) };
    let mut rows = Vec::new();
    let mut list = Vec::new();
    for len_bytes in LENGTHS {
        let measure = |check, packets, rounds: usize| {
            let setup = benchmark::setup(check);
            let runs = (0..rounds).map(|_| benchmark::model_steady(&setup, Way::Receive, len_bytes, packets));
            runs.collect::<Result<Vec<Steady>, _>>()
        };
        let fast = measure(false, packets, rounds)?;
        let allocations = fast.iter().map(|run| run.allocations).min().unwrap_or(u64::MAX);
        let fast: Runs = fast.into_iter().map(|run| run.stretches).collect();
        let checked: Runs = measure(true, packets / 4, rounds)?.into_iter().map(|run| run.stretches).collect();
        let ns = fast.best() * 1e9 / packets as f64;
        let mpps_checked = (packets / 4) as f64 / checked.best() / 1e6;
        let totals = fast.totals();
        let median_ns = benchmark::median(&totals) * 1e9 / packets as f64;
        rows.push(vec![
            len_bytes.to_string(),
            format!("{:.2}", 1e3 / ns),
            format!("{ns:.1}"),
            format!("{:.0} %", benchmark::spread(&totals) * 100.0),
            format!("{mpps_checked:.2}"),
            format!("{:.6}", allocations as f64 / packets as f64),
        ]);
        list.push(
            json!({ "len_bytes": len_bytes, "mpps": 1e3 / median_ns, "ns_per_packet": median_ns, "ns_per_packet_best_stretches": ns, "spread": benchmark::spread(&totals),
                          "mpps_checked": mpps_checked, "allocations": allocations, "packets": packets }),
        );
        if len_bytes == 60 {
            targets.push(Target {
                name: "model at 60 bytes, packets/s".into(),
                // A whole run's, for it is no ratio.
                got: packets as f64 / benchmark::best(&totals),
                bound: Bound::Least(MODEL_MIN),
            });
        }
        // Each run begins with a doorbell and ends with a tail; what is left must not grow with the packets.
        targets.push(Target {
            name: format!("model at {len_bytes} bytes, packets per allocation"),
            got: packets as f64 / (allocations as f64).max(1.0),
            bound: Bound::Least(10_000.0),
        });
    }
    if !args.json {
        println!(
            "model and driver-core, wire to host, one core, checks off (Mpps with checks beside), {BEST_OF} {rounds} runs\n"
        );
        let header = [">bytes", ">Mpps", ">ns/packet", ">spread", ">Mpps checked", ">allocations/packet"];
        println!("{}", table::print(&header, &rows));
    }
    Ok(list.into())
}

#[cfg(feature = "rtl")]
fn rtl(args: &BenchArgs, targets: &mut Vec<Target>) -> Result<serde_json::Value, Failure> {
    // Many short runs: a shared machine is calm for a moment now and then, seldom for long.
    let (rounds, cycles) = if args.quick { (7, 60_000) } else { (21, 100_000) };
    let mut rows = Vec::new();
    let mut list = Vec::new();
    for len_bytes in LENGTHS {
        let frames = cycles / len_bytes.div_ceil(64).max(2);
        let figures = benchmark::rtl(len_bytes, frames, rounds)?;
        let rate = |runs: &Runs| format!("{:.1}", frames as f64 / runs.best() / 1e3);
        rows.push(vec![
            len_bytes.to_string(),
            format!("{:.0}", figures.bare_cycles_per_second() / 1e3),
            rate(&figures.bare),
            rate(&figures.pins),
            format!("{:.3}", figures.pins_ratio()),
            rate(&figures.model),
            rate(&figures.hybrid),
            format!("{:.3}", figures.hybrid_ratio()),
            rate(&figures.hybrid_checked),
            format!("{:.0} %", benchmark::spread(&figures.hybrid.totals()) * 100.0),
        ]);
        targets.push(Target {
            name: format!("pins only / bare, {len_bytes} bytes"),
            got: figures.pins_ratio(),
            bound: Bound::Least(PINS_MIN),
        });
        targets.push(Target {
            name: format!("hybrid / (bare + model), {len_bytes} bytes"),
            got: figures.hybrid_ratio(),
            bound: Bound::Least(HYBRID_MIN),
        });
        targets.push(Target {
            name: format!("bare loop, {len_bytes} bytes, cycles/s"),
            got: figures.bare_cycles_per_second(),
            bound: Bound::Least(BARE_MIN),
        });
        list.push(json!({ "len_bytes": len_bytes, "frames": frames, "cycles": figures.cycles, "bare_s": figures.bare.totals(), "pins_s": figures.pins.totals(),
                          "hybrid_s": figures.hybrid.totals(), "hybrid_checked_s": figures.hybrid_checked.totals(), "model_s": figures.model.totals(),
                          "pins_ratio": figures.pins_ratio(), "hybrid_ratio": figures.hybrid_ratio() }));
    }
    if !args.json {
        println!(
            "RTL 1/1, wire to host, whole runs, {BEST_OF} {rounds} taking turns; kcycles/s of axis_aclk, kpackets/s\n"
        );
        let header = [
            ">bytes",
            ">bare kcyc/s",
            ">bare",
            ">pins only",
            ">(a)",
            ">model",
            ">hybrid",
            ">(b)",
            ">hybrid checked",
            ">spread",
        ];
        println!("{}", table::print(&header, &rows));
    }
    Ok(list.into())
}

/// Card `rtl`: QDMA engine and shell in one top.
#[cfg(feature = "rtl")]
fn card(args: &BenchArgs, targets: &mut Vec<Target>) -> Result<serde_json::Value, Failure> {
    let (rounds, cycles) = if args.quick { (3, 30_000) } else { (7, 100_000) };
    let mut rows = Vec::new();
    let mut list = Vec::new();
    for len_bytes in LENGTHS {
        let frames = cycles / len_bytes.div_ceil(64).max(2);
        let figures = benchmark::card(len_bytes, frames, rounds)?;
        let rate = |runs: &Runs| format!("{:.1}", frames as f64 / runs.best() / 1e3);
        rows.push(vec![
            len_bytes.to_string(),
            format!("{:.0}", figures.cycles_per_second() / 1e3),
            rate(&figures.bare),
            rate(&figures.pins),
            format!("{:.3}", figures.pins_ratio()),
            rate(&figures.rtl),
            format!("{:.3}", figures.rtl_ratio()),
            format!("{:.0} %", figures.engine_share() * 100.0),
            format!("{:.0} %", benchmark::spread(&figures.rtl.totals()) * 100.0),
        ]);
        for (what, got, least) in [
            ("pins only / bare", figures.pins_ratio(), PINS_MIN),
            ("with the driver / bare", figures.rtl_ratio(), CARD_MIN),
        ] {
            targets.push(Target {
                name: format!("card rtl, {what}, {len_bytes} bytes"),
                got,
                bound: Bound::Least(least),
            });
        }
        list.push(json!({ "len_bytes": len_bytes, "frames": frames, "cycles": figures.cycles, "bare_s": figures.bare.totals(),
                          "pins_s": figures.pins.totals(), "rtl_s": figures.rtl.totals(), "shell_bare_s": figures.shell.totals(),
                          "pins_ratio": figures.pins_ratio(), "rtl_ratio": figures.rtl_ratio(),
                          "engine_share": figures.engine_share() }));
    }
    if !args.json {
        println!(
            "card rtl 1/1, engine and shell, wire to host, whole runs, {BEST_OF} {rounds} taking turns; kcycles/s of axis_aclk, \
             kpackets/s;\nengine: what the shell alone does not take of the bare loop's time\n"
        );
        let header = [">bytes", ">kcyc/s", ">bare", ">pins only", ">(a)", ">rtl", ">rtl / bare", ">engine", ">spread"];
        println!("{}", table::print(&header, &rows));
    }
    Ok(list.into())
}

#[cfg(not(feature = "rtl"))]
fn card(_args: &BenchArgs, _targets: &mut Vec<Target>) -> Result<serde_json::Value, Failure> {
    Ok(serde_json::Value::Null)
}

#[cfg(not(feature = "rtl"))]
fn rtl(_args: &BenchArgs, _targets: &mut Vec<Target>) -> Result<serde_json::Value, Failure> {
    eprintln!("note: built without RTL (ONIC_NO_RTL=1), only the model was measured");
    Ok(serde_json::Value::Null)
}
