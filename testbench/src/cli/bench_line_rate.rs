//! `onic bench line-rate`: what card `rtl` holds in cycles, by frame length, direction and queues, and what limits it.

use anyhow::Context;
use serde_json::{Map, Value, json};

use super::args::BenchArgs;
use super::bench::{Bound, Report, Target};
use super::exit::Failure;
use super::progress::Progress;
use super::table;
use crate::benchmark::Way;
use crate::benchmark::line_rate::{self, Case, HELD, HOST_NS, LENGTHS, Limiter, QUEUES, Rate};
use crate::card::{Fetch, Link};

/// With `--quick`: the shortest frames, those bounded by the stream, and the usual longest.
const QUICK: [usize; 3] = [60, 65, 1518];

/// Published beside OpenNIC's XDP: Gb/s of dropped frames, two ports, by frame length. The generator offered about 25 Gb/s at
/// 64 bytes and 75 at 250, so that those rows are bounds of the generator; whether the lengths include the FCS is not said.
const PUBLISHED: [(usize, f64); 4] = [(64, 10.02), (250, 40.94), (1000, 94.53), (1500, 97.73)];

/// One measurement and what limits it.
struct Row {
    case: Case,
    rate: Rate,
    limiter: Limiter,
}

pub(super) fn run(args: &BenchArgs) -> Result<Report, Failure> {
    let cases = cases(args.quick);
    let mut progress = Progress::counting("cases");
    let total = cases.len() as u64;
    let mut rows = Vec::new();
    for case in cases {
        let at =
            || format!("{} bytes, {}, {} queues, {}", case.len_bytes, way(case.way), case.queues, fetch(case.fetch));
        let rate = line_rate::measure(&case).with_context(at)?;
        let limiter = line_rate::limiter(&case, &rate).with_context(at)?;
        rows.push(Row { case, rate, limiter });
        progress.at("rtl", rows.len() as u64, total);
    }
    progress.finish();
    if !args.json {
        print(&rows);
    }
    let mut json = Map::new();
    json.insert("clock_mhz".into(), 250.into());
    json.insert("rows".into(), rows.iter().map(value).collect());
    json.insert("published_xdp_drop_gbps".into(), PUBLISHED.iter().map(|(len, gbps)| json!([len, gbps])).collect());
    Ok(Report { json, targets: rows.iter().filter_map(target).collect() })
}

/// The `wire` set alone and `hardware` beside it; a driver that costs nothing and one that does; the slower link and two
/// ports for some lengths.
fn cases(quick: bool) -> Vec<Case> {
    let lengths = if quick { &QUICK[..] } else { &LENGTHS[..] };
    let mut cases = Vec::new();
    for &len_bytes in lengths {
        for way in [Way::Receive, Way::Transmit] {
            let one = |queues| Case::new(len_bytes, way, queues);
            cases.extend(QUEUES.map(one));
            if quick {
                continue;
            }
            cases.extend(HOST_NS.into_iter().filter(|ns| *ns != 0).map(|host_ns| Case { host_ns, ..one(8) }));
            cases.push(Case { link: Link::Pcie3x16, ..one(8) });
            cases.push(Case { ports: 2, ..one(8) });
            for host_ns in HOST_NS {
                cases.extend(QUEUES.map(|queues| Case { fetch: Fetch::Hardware, host_ns, ..one(queues) }));
            }
        }
    }
    cases
}

/// The line is held with the `wire` set, one port, an ideal link, a driver that costs nothing.
fn target(Row { case, rate, .. }: &Row) -> Option<Target> {
    (*case == Case::new(case.len_bytes, case.way, case.queues)).then(|| Target {
        name: format!("{} bytes, {}, {} queues, share of the line", case.len_bytes, way(case.way), case.queues),
        got: rate.mpps() / case.expected_mpps(),
        bound: Bound::Least(HELD),
    })
}

fn print(rows: &[Row]) {
    println!(
        "card rtl with its driver, cycles of axis_aclk at 250 MHz, 250 cycles of host latency; lengths without FCS.\n\
         line: what wire (100 Gb/s, 24 bytes around each frame) and stream (a beat a cycle) allow. rx comes at the wire's\n\
         rate; tx is what the card offers a MAC that is always ready, which may be more than the wire carries.\n\
         `hardware` is an estimate from the vendor's text, not silicon.\n"
    );
    let header = [
        ">bytes",
        "way",
        ">queues",
        ">ports",
        ">host ns",
        "fetch",
        "link",
        ">frames",
        ">cycles",
        ">Mpps",
        ">Gb/s",
        ">line Mpps",
        ">share",
        "limiter",
    ];
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    println!("{}", table::print(&header, &cells));
    println!(
        "Published for OpenNIC's XDP, frames dropped on two ports of a real card (Gb/s); the generator offered about"
    );
    println!("25 Gb/s at 64 bytes and 75 at 250, and whether the lengths include the FCS is not said:\n");
    let published: Vec<Vec<String>> =
        PUBLISHED.iter().map(|(len, gbps)| vec![len.to_string(), format!("{gbps:.2}")]).collect();
    println!("{}", table::print(&[">bytes", ">Gb/s"], &published));
}

fn cells(Row { case, rate, limiter }: &Row) -> Vec<String> {
    vec![
        case.len_bytes.to_string(),
        way(case.way).into(),
        case.queues.to_string(),
        case.ports.to_string(),
        case.host_ns.to_string(),
        fetch(case.fetch).into(),
        link(case.link).into(),
        rate.frames.to_string(),
        format!("{:.0}", rate.cycles),
        format!("{:.2}", rate.mpps()),
        format!("{:.2}", rate.gbps(case.len_bytes)),
        format!("{:.2}", case.expected_mpps()),
        format!("{:.3}", rate.mpps() / case.expected_mpps()),
        limiter.name().into(),
    ]
}

fn value(Row { case, rate, limiter }: &Row) -> Value {
    json!({
        "len_bytes": case.len_bytes, "way": way(case.way), "queues": case.queues, "ports": case.ports,
        "host_ns": case.host_ns, "fetch": fetch(case.fetch), "link": link(case.link),
        "latency_cycles": case.latency_cycles, "frames": rate.frames, "cycles": rate.cycles, "overflow": rate.overflow,
        "mpps": rate.mpps(), "gbps": rate.gbps(case.len_bytes), "line_mpps": case.expected_mpps(),
        "limiter": limiter.name(),
    })
}

fn way(way: Way) -> &'static str {
    match way {
        Way::Receive => "rx",
        Way::Transmit => "tx",
    }
}

fn fetch(fetch: Fetch) -> &'static str {
    match fetch {
        Fetch::Wire => "wire",
        Fetch::Hardware => "hardware",
    }
}

fn link(link: Link) -> &'static str {
    match link {
        Link::Ideal => "ideal",
        Link::Pcie3x16 => "pcie3x16",
    }
}
