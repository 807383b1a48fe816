//! `onic diff A B`: two captures, aligned and classed.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::anyhow;
use serde::Serialize;
use traces::Point;
use traces::align::{self, Capture, Class, Difference, Ignore, Item};
use traces::read::{Policy, Reader};

use super::args::DiffArgs;
use super::exit::{Exit, Failure};
use super::report;

/// How many differences are printed; the rest are counted.
const SHOWN: usize = 20;

/// `onic diff --json`.
#[derive(Serialize)]
struct DiffReport {
    version: u32,
    command: &'static str,
    exit: u8,
    a: SideReport,
    b: SideReport,
    ignored: Vec<String>,
    classes: BTreeMap<String, usize>,
    differences: Vec<DifferenceReport>,
}

#[derive(Serialize)]
struct SideReport {
    file: String,
    frames: usize,
    refused: Vec<String>,
    damage: Option<String>,
}

#[derive(Serialize)]
struct DifferenceReport {
    class: String,
    text: String,
    a: Option<usize>,
    b: Option<usize>,
    place: String,
    queue: Option<u32>,
    place_b: Option<String>,
    queue_b: Option<u32>,
    packet: Option<u64>,
    byte: Option<usize>,
    field: Option<&'static str>,
    value_a: String,
    value_b: String,
    flow: String,
    cycle: Option<u64>,
    count: usize,
}

impl DifferenceReport {
    fn of(difference: &Difference) -> DifferenceReport {
        DifferenceReport {
            class: difference.class.to_string(),
            text: difference.to_string(),
            a: difference.expected,
            b: difference.got,
            place: difference.lane.point.to_string(),
            queue: difference.lane.queue,
            place_b: difference.lane_got.map(|lane| lane.point.to_string()),
            queue_b: difference.lane_got.and_then(|lane| lane.queue),
            packet: difference.input,
            byte: difference.byte,
            field: difference.field,
            value_a: difference.value_expected.clone(),
            value_b: difference.value_got.clone(),
            flow: difference.flow.clone(),
            cycle: difference.cycle,
            count: difference.count,
        }
    }
}

/// One capture, and what is wrong with the file.
struct Side {
    file: String,
    capture: Capture,
    damage: Option<String>,
}

impl Side {
    fn read(path: &Path) -> Result<Side, Failure> {
        let reader = Reader::open(path, Policy::lenient())?;
        let file = reader.name().to_string();
        let (capture, damage) = Capture::read(reader);
        Ok(Side { file, capture, damage: damage.map(|error| error.to_string()) })
    }

    fn refused(&self) -> Vec<String> {
        self.capture.refused.iter().map(|refused| format!("{}: {refused}", self.file)).collect()
    }

    fn is_whole(&self) -> bool {
        self.damage.is_none() && self.capture.refused.is_empty()
    }

    /// Whether interfaces are named after places of a card.
    fn names_places(&self) -> bool {
        self.capture.frames.iter().any(|(point, _)| !matches!(point, Point::Interface(_)))
    }

    fn report(&self) -> SideReport {
        SideReport {
            file: self.file.clone(),
            frames: self.capture.frames.len(),
            refused: self.refused(),
            damage: self.damage.clone(),
        }
    }
}

pub(super) fn run(args: &DiffArgs) -> Result<Exit, Failure> {
    let mut ignored = checked(&args.ignore)?;
    if args.a == Path::new("-") && args.b == Path::new("-") {
        return Err(anyhow!("both captures can't come from standard input").into());
    }
    let (a, b) = (Side::read(&args.a)?, Side::read(&args.b)?);
    for side in [&a, &b] {
        side.refused().iter().for_each(|refused| eprintln!("warning: {refused}"));
        side.damage.iter().for_each(|damage| eprintln!("error: {damage}"));
    }
    let empty = a.capture.frames.is_empty() && b.capture.frames.is_empty();
    if !empty && a.names_places() != b.names_places() {
        let plain = if a.names_places() { &b } else { &a };
        eprintln!("note: interfaces of {} name no place of a card: places and queues are not compared", plain.file);
        ignored.extend(["point".to_string(), "queue".into()]);
    }
    let (items_a, items_b): (Vec<Item<'_>>, Vec<Item<'_>>) = (a.capture.items(), b.capture.items());
    let differences = align::compare(&items_a, &items_b, &Ignore::fields(ignored.clone()));
    let exit = exit_of(&differences, a.is_whole() && b.is_whole(), empty);
    let classes = classes(&differences);
    if args.json {
        let differences = differences.iter().map(DifferenceReport::of).collect();
        let (a, b) = (a.report(), b.report());
        let report = DiffReport {
            version: report::VERSION,
            command: "diff",
            exit: exit.code(),
            a,
            b,
            ignored,
            classes,
            differences,
        };
        print!("{}", report::json(&report)?);
    } else {
        print(&a, &b, &differences, &classes);
    }
    Ok(exit)
}

fn exit_of(differences: &[Difference], whole: bool, empty: bool) -> Exit {
    match (differences.is_empty(), whole) {
        (false, _) => Exit::Difference,
        (true, false) => Exit::BadInput,
        (true, true) if empty => Exit::NothingCompared,
        (true, true) => Exit::Agreed,
    }
}

/// Frames by class.
fn classes(differences: &[Difference]) -> BTreeMap<String, usize> {
    let mut classes = BTreeMap::new();
    for difference in differences {
        *classes.entry(difference.class.to_string()).or_default() += difference.count;
    }
    classes
}

/// Names that can be ignored.
fn checked(names: &[String]) -> Result<Vec<String>, Failure> {
    match names.iter().find(|name| !Ignore::knows(name)) {
        None => Ok(names.to_vec()),
        Some(name) => {
            let hint =
                format!("{}, or a field such as {}", Ignore::SIDE.join(", "), "ip.checksum, tcp.seq, vlan.id, payload");
            Err(Failure::from(anyhow!("--ignore {name}: no such thing to ignore")).hint(hint))
        }
    }
}

fn print(a: &Side, b: &Side, differences: &[Difference], classes: &BTreeMap<String, usize>) {
    println!("expected  {}: {} frames", a.file, a.capture.frames.len());
    println!("got       {}: {} frames", b.file, b.capture.frames.len());
    for difference in differences.iter().take(SHOWN) {
        println!("{difference}");
    }
    if differences.len() > SHOWN {
        println!("and {} more", differences.len() - SHOWN);
    }
    let frames: Vec<String> = classes.iter().map(|(class, frames)| format!("{frames} {class}")).collect();
    match differences.iter().map(|difference| difference.class).min() {
        None => println!("no difference"),
        Some(Class::Side) => println!("the frames are the same, what goes with them is not: {}", frames.join(", ")),
        Some(_) => println!("{}", frames.join(", ")),
    }
}
