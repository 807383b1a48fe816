//! More than the host takes: what is lost is lost whole and counted by reason, and the rest comes in order.

use std::collections::BTreeMap;

use proptest::prelude::*;
use regs::{FuncId, PortId};

use super::bed::{self, Bed};
use super::coverage::Coverage;
use super::oracle::{self, Fate};
use super::traffic::{self, FrameSpec};
use super::trial::Trial;
use super::{Config, Failure, Property, Report, fewer, runner};
use crate::outcome::Outcome;
use crate::run::{HostProfile, InFrame};
use crate::scoreboard;
use crate::shape::Pace;

/// Frames of a case.
const FRAMES: usize = 150;

pub(super) const OVERFLOW: Property = Property {
    name: "overflow",
    doc: "a slow host at line or bus pace: drops add up by counters and by monitors, survivors are whole and in order",
    needs_rtl: true,
    quick: 15,
    full: 200,
    kept: kept!("overflow"),
    check,
};

#[derive(Clone, Debug)]
struct Case {
    bed: Bed,
    bus: bool,
    host: HostProfile,
    frames: Vec<FrameSpec>,
}

impl Case {
    fn wire(&self) -> Vec<InFrame> {
        traffic::frames(&self.frames, self.bed.width, false)
    }
}

fn case() -> impl Strategy<Value = Case> {
    // Rings that just hold the longest frame, and a host that comes by seldom.
    let bed = (bed::bed(), 8u16..=64, 1u16..=3).prop_map(|(bed, ring, queues)| Bed { ring, queues, ..bed });
    let host =
        (1_000u64..100_000, 0u64..2_000).prop_map(|(interrupt_ns, packet_ns)| HostProfile { interrupt_ns, packet_ns });
    (bed, any::<bool>(), host, fewer::shrinking(traffic::any_frame(), FRAMES))
        .prop_map(|(bed, bus, host, frames)| Case { bed, bus, host, frames })
}

fn check(property: &Property, config: &Config<'_>) -> Result<Report, Failure> {
    runner::ready(&["model", config.rtl], &[1, 2])?;
    let goals = ["model", config.rtl].map(|card| (format!("cases with overflow on {card}"), 30));
    runner::cases(property, config, Coverage::with_goals(goals), &case(), Case::wire, |case, coverage| {
        let wire = case.wire();
        let pace = if case.bus { Pace::Bus } else { Pace::Line };
        let trial = Trial { pace, host_profile: case.host, ..Trial::fast(&case.bed, &wire) };
        let model = trial.run("model")?;
        let rtl = trial.run(config.rtl)?;
        for outcome in [&model, &rtl] {
            check_survivors(&case.bed, &wire, outcome)?;
            let lost: u64 = outcome
                .by_monitors
                .drops
                .iter()
                .filter(|(reason, _)| reason.ends_with("overflow"))
                .map(|(_, n)| n)
                .sum();
            coverage.add(&format!("cases with overflow on {}", outcome.card), u64::from(lost > 0));
            coverage.add(&format!("frames lost by overflow on {}", outcome.card), lost);
        }
        trial.compare(&rtl, &model)
    })
}

fn check_survivors(bed: &Bed, wire: &[InFrame], outcome: &Outcome) -> Result<(), String> {
    let card = &outcome.card;
    if let Some(finding) = scoreboard::self_check(outcome).into_iter().next() {
        return Err(finding.text);
    }
    let (counters, monitors) = (outcome.by_counters.as_ref().map(|sum| &sum.drops), &outcome.by_monitors.drops);
    if counters != Some(monitors) {
        return Err(format!("{card}: drops by counters {counters:?}, by monitors {monitors:?}"));
    }
    // What the specification calls wrong is lost under that name; overflow takes only from the rest.
    for port in (0..bed.width).map(PortId) {
        let errors =
            wire.iter().filter(|frame| frame.port == port && oracle::fate(bed, frame) == Fate::Error).count() as u64;
        let drops =
            |reason: &str| outcome.by_monitors.drops.get(&format!("port{}.{reason}", port.0)).copied().unwrap_or(0);
        // One that is wrong and finds no room is lost for that.
        if drops("error") > errors || drops("error") + drops("overflow") < errors {
            return Err(format!("{card}: {port}: {errors} wrong frames came, {} are counted", drops("error")));
        }
    }
    let mut last: BTreeMap<(FuncId, u16), usize> = BTreeMap::new();
    for frame in scoreboard::emerged(outcome, wire, bed.width).iter().filter(|frame| frame.drop.is_none()) {
        let place = format!("{card}: {} queue {:?}", frame.point, frame.queue);
        let at = frame.input.ok_or_else(|| format!("{place}: a frame that is none of the input"))?;
        let Fate::Queue { func, hash, queue } = oracle::fate(bed, &wire[at]) else {
            return Err(format!("{place}: frame {at} should have been lost"));
        };
        if (frame.queue, frame.hash) != (Some(queue), Some(hash)) {
            return Err(format!(
                "{place}: frame {at} belongs to queue {queue} by hash {hash:08x}, not {:x?}",
                frame.hash
            ));
        }
        if let Some(before) = last.insert((func, queue), at)
            && before >= at
        {
            return Err(format!("{place}: frame {at} came after frame {before}"));
        }
    }
    Ok(())
}
