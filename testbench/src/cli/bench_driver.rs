//! `onic bench driver`: what the receive path costs for each packet, by what is done with pages.

use anyhow::Context;
use serde_json::{Map, Value, json};

use super::args::BenchArgs;
use super::bench::{Bound, Report, Target};
use super::exit::Failure;
use super::table;
use crate::benchmark::driver::{self, Figures, LENGTHS, Row};
use crate::benchmark::{best, median, spread};

/// What the copy adds to the driver's work, over a bare allocate, copy and free: (a) is no straw man.
const COPY_MOST: f64 = 1.3;
/// Page pool at 64 bytes, card and driver on one core, packets a second.
const POOL_LEAST: f64 = 5e6;

/// One stream at each of [`LENGTHS`], Gb/s, without and with a page pool, as published for the OpenNIC driver: a whole
/// machine with its network stack.
const PUBLISHED: [(f64, f64); 5] = [(0.18, 0.19), (1.69, 2.00), (3.56, 4.43), (7.70, 9.12), (10.53, 13.47)];

/// What stands between these figures and the published ones.
const NOTE: &str = "no stack, no IOMMU, cache-warm";

pub(super) fn run(args: &BenchArgs) -> Result<Report, Failure> {
    let (bursts, rounds) = if args.quick { (800, 7) } else { (4_000, 15) };
    let mut all = Vec::new();
    for len_bytes in LENGTHS {
        let figures = driver::measure_length(len_bytes, bursts, rounds)
            .with_context(|| format!("onic bench driver at {len_bytes} bytes"))?;
        all.push(figures);
    }
    if !args.json {
        print(&all, rounds);
    }
    let mut json = Map::new();
    json.insert("note".into(), NOTE.into());
    json.insert("in_the_loop".into(), IN_THE_LOOP.into());
    json.insert(
        "lengths".into(),
        all.iter().zip(PUBLISHED).map(|(figures, published)| value(figures, published)).collect(),
    );
    Ok(Report { json, targets: all.iter().flat_map(targets).collect() })
}

/// Said with the figures, since they mean nothing without it.
const IN_THE_LOOP: &str = "one core: a generator, the QDMA model's C2H engine, host memory with checks off, one queue of \
                           driver-core polled in bursts of 64; no shell, no wire. `driver` is the driver's share of it: \
                           poll, sink, and the page's way back";

fn print(all: &[Figures], rounds: usize) {
    println!("{IN_THE_LOOP}.\nMedians of {rounds} runs taking turns.\n");
    let header = [
        ">bytes",
        "row",
        ">driver ns/packet",
        ">spread",
        ">with card",
        ">Mpps",
        ">allocations",
        ">maps",
        ">syncs",
        ">bytes copied",
    ];
    let rows: Vec<Vec<String>> = all.iter().flat_map(rows).collect();
    println!("{}", table::print(&header, &rows));
    println!(
        "(a) against a bare malloc + memcpy + free loop, whole and without what it costs to serve the ring; the page"
    );
    println!("pool's saving, (a) - (c), beside the published one (one stream of a whole machine). {NOTE}.\n");
    let header = [
        ">bytes",
        ">bare ns",
        ">(a) / bare",
        ">its copy / bare",
        ">saved ns",
        ">published Gb/s",
        ">published ns saved",
    ];
    let rows: Vec<Vec<String>> =
        all.iter().zip(PUBLISHED).map(|(figures, published)| against(figures, published)).collect();
    println!("{}", table::print(&header, &rows));
}

fn rows(figures: &Figures) -> Vec<Vec<String>> {
    Row::ALL
        .into_iter()
        .zip(&figures.costs)
        .map(|(row, costs)| {
            let (driver, all) = (figures.driver_ns(row), figures.all_ns(row));
            vec![
                figures.len_bytes.to_string(),
                row.name().into(),
                format!("{:.1}", median(&driver)),
                format!("{:.0} %", spread(&driver) * 100.0),
                format!("{:.1}", median(&all)),
                format!("{:.2}", 1e3 / median(&all)),
                format!("{:.2}", costs.allocations),
                format!("{:.2}", costs.maps),
                format!("{:.2}", costs.syncs),
                format!("{:.0}", costs.copied_bytes),
            ]
        })
        .collect()
}

/// Row (a) whole, over the bare loop. Least against least: what is left of a busy machine's noise.
fn copy_ratio(figures: &Figures) -> f64 {
    best(&figures.driver_ns(Row::Copy)) / best(&figures.bare_ns)
}

/// What the copy alone adds to row (a), over the bare loop: the loop has no ring to serve.
fn added_ratio(figures: &Figures) -> f64 {
    (best(&figures.driver_ns(Row::Copy)) - best(&figures.driver_ns(Row::InPlace))) / best(&figures.bare_ns)
}

fn saved_ns(figures: &Figures) -> f64 {
    median(&figures.driver_ns(Row::Copy)) - median(&figures.driver_ns(Row::Pool))
}

/// ns that a packet of this length takes at so many Gb/s.
fn packet_ns(len_bytes: usize, gbps: f64) -> f64 {
    len_bytes as f64 * 8.0 / gbps
}

fn published_ns(figures: &Figures, (before, after): (f64, f64)) -> f64 {
    packet_ns(figures.len_bytes, before) - packet_ns(figures.len_bytes, after)
}

fn against(figures: &Figures, published: (f64, f64)) -> Vec<String> {
    vec![
        figures.len_bytes.to_string(),
        format!("{:.1}", median(&figures.bare_ns)),
        format!("{:.2}", copy_ratio(figures)),
        format!("{:.2}", added_ratio(figures)),
        format!("{:.1}", saved_ns(figures)),
        format!("{:.2} -> {:.2}", published.0, published.1),
        format!("{:.0}", published_ns(figures, published)),
    ]
}

fn targets(figures: &Figures) -> Vec<Target> {
    let len_bytes = figures.len_bytes;
    let allocations =
        figures.rows.iter().find(|(row, ..)| *row == Row::Pool).map_or(f64::NAN, |(.., most)| *most as f64);
    let mut targets = vec![
        Target {
            name: format!("(a)'s copy / bare loop, {len_bytes} bytes"),
            got: added_ratio(figures),
            bound: Bound::Most(COPY_MOST),
        },
        Target {
            name: format!("page pool, {len_bytes} bytes, allocations in a run"),
            got: allocations,
            bound: Bound::Most(0.0),
        },
    ];
    if len_bytes == 64 {
        targets.push(Target {
            name: "page pool, 64 bytes, with the card, packets/s".into(),
            got: 1e9 / best(&figures.all_ns(Row::Pool)),
            bound: Bound::Least(POOL_LEAST),
        });
    }
    targets
}

fn value(figures: &Figures, published: (f64, f64)) -> Value {
    let rows: Vec<Value> = figures
        .rows
        .iter()
        .zip(&figures.costs)
        .map(|((row, _, allocations), costs)| {
            let (driver, all) = (figures.driver_ns(*row), figures.all_ns(*row));
            json!({
                "row": row.id(), "driver_ns": median(&driver), "spread": spread(&driver), "with_card_ns": median(&all),
                "mpps_with_card": 1e3 / median(&all), "driver_ns_runs": driver, "with_card_ns_runs": all,
                "allocations": costs.allocations, "maps": costs.maps, "syncs": costs.syncs,
                "copied_bytes": costs.copied_bytes, "heap_allocations_in_a_run": allocations,
            })
        })
        .collect();
    json!({
        "len_bytes": figures.len_bytes, "packets": figures.packets, "bare_ns": median(&figures.bare_ns),
        "bare_ns_runs": figures.bare_ns, "copy_row_over_bare": copy_ratio(figures), "copy_alone_over_bare": added_ratio(figures), "saved_ns": saved_ns(figures),
        "published": { "baseline_gbps": published.0, "page_pool_gbps": published.1,
                       "saved_ns": published_ns(figures, published) },
        "rows": rows,
    })
}
