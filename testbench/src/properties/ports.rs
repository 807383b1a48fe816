//! Two ports: each keeps its own frames, loses none uncounted, and is heard in fair turn (cases ONIC-09, ONIC-10).

use std::collections::BTreeMap;

use driver_core::{Mmio as _, Platform as _};
use models::observation::{Fate, Point};
use proptest::prelude::*;
use regs::{Bar, FuncId, PortId, qdma_common, shell};

use super::bed::{self, Bed};
use super::coverage::Coverage;
use super::traffic::{self, FrameSpec};
use super::trial::{Trial, delivered_by_queue};
use super::{Config, Failure, Property, Report, fewer, runner};
use crate::outcome::Outcome;
use crate::run::{HostProfile, InFrame};
use crate::scoreboard;
use crate::shape::Pace;

/// Frames of a case.
const FRAMES: usize = 60;

pub(super) const PORTS: Property = Property {
    name: "ports",
    doc: "two ports at once: sums balance for each, the result is the same whichever is listed first, turns are fair",
    needs_rtl: true,
    quick: 6,
    full: 40,
    kept: kept!("ports"),
    check: check_ports,
};

pub(super) const PORT_ONE: Property = Property {
    name: "port-one",
    doc: "traffic on port 1 alone: function 1 gets all of it, function 0 sees and counts none",
    needs_rtl: true,
    quick: 6,
    full: 60,
    kept: kept!("port-one"),
    check: check_port_one,
};

#[derive(Clone, Debug)]
struct Case {
    bed: Bed,
    frames: Vec<FrameSpec>,
}

impl Case {
    fn wire(&self) -> Vec<InFrame> {
        traffic::frames(&self.frames, 2, false)
    }

    /// All of one port's frames, then all of the other's.
    fn listed(&self, first: PortId) -> Vec<InFrame> {
        let (mut one, other): (Vec<InFrame>, Vec<InFrame>) =
            self.wire().into_iter().partition(|frame| frame.port == first);
        one.extend(other);
        one
    }
}

fn case(frame: impl Strategy<Value = FrameSpec>) -> impl Strategy<Value = Case> {
    let wide = bed::bed().prop_map(|bed| Bed { width: 2, ..bed });
    (wide, fewer::shrinking(frame, FRAMES)).prop_map(|(bed, frames)| Case { bed, frames })
}

fn check_ports(property: &Property, config: &Config<'_>) -> Result<Report, Failure> {
    runner::ready(&["model", config.rtl], &[2])?;
    runner::cases(property, config, Coverage::default(), &case(traffic::any_frame()), Case::wire, |case, coverage| {
        for card in ["model", config.rtl] {
            check_order(card, case)?;
            check_burst(card, case, coverage)?;
        }
        Ok(())
    })
}

fn check_order(card: &str, case: &Case) -> Result<(), String> {
    let lists = [PortId(0), PortId(1)].map(|first| case.listed(first));
    let mut outcomes = Vec::new();
    for wire in &lists {
        let trial = Trial::fast(&case.bed, wire);
        let outcome = trial.run(card)?;
        trial.check(&outcome)?;
        check_port_sums(&outcome, wire)?;
        outcomes.push(outcome);
    }
    if delivered_by_queue(&outcomes[0]) == delivered_by_queue(&outcomes[1]) {
        Ok(())
    } else {
        Err(format!("{card}: the queues depend on which port is listed first"))
    }
}

/// Both ports at one beat a cycle, which is more than one function's path takes: the receivers overflow.
fn check_burst(card: &str, case: &Case, coverage: &mut Coverage) -> Result<(), String> {
    let even: Vec<FrameSpec> = (0..2_000u64)
        .map(|n| FrameSpec {
            port: (n % 2) as u8,
            content: traffic::Content::Of(traces::synth::Kind::Udp4),
            tags: traffic::Tags::None,
            len_bytes: 512,
            err: false,
            seed: case.bed.timing.seed ^ n,
        })
        .collect();
    let wire = traffic::frames(&even, 2, false);
    let bed = Bed {
        ring: 1024,
        table: bed::TablePlan::Equal,
        timing: bed::Timing::plain(case.bed.timing.seed),
        ..case.bed.clone()
    };
    let trial = Trial { pace: Pace::Bus, host_profile: HostProfile::default(), ..Trial::fast(&bed, &wire) };
    let outcome = trial.run(card)?;
    if let Some(finding) = scoreboard::self_check(&outcome).into_iter().next() {
        return Err(finding.text);
    }
    check_port_sums(&outcome, &wire)?;
    let accepted = [0, 1].map(|port| ends(&outcome, PortId(port)).get(Fate::Accepted.name()).copied().unwrap_or(0));
    coverage.add(&format!("burst frames accepted on {card}"), accepted.iter().sum());
    coverage.add(&format!("burst frames lost and counted on {card}"), 2_000 - accepted.iter().sum::<u64>());
    // What the larger share exceeds the smaller by is at most what one receive buffer holds more when the burst ends.
    let (less, more) = (accepted[0].min(accepted[1]), accepted[0].max(accepted[1]));
    if less * 10 < more * 9 {
        return Err(format!(
            "{card}: of equal bursts port 0 got {} frames through and port 1 {}",
            accepted[0], accepted[1]
        ));
    }
    Ok(())
}

/// Frames that ended in a port's receive side, by fate.
fn ends(outcome: &Outcome, wanted: PortId) -> BTreeMap<&'static str, u64> {
    let mut fates = BTreeMap::new();
    for seen in &outcome.observations {
        if let Point::RxEnd { port, fate } = seen.point
            && port == wanted
        {
            *fates.entry(fate.name()).or_default() += 1;
        }
    }
    fates
}

/// Each frame given to a port ended there, by some name.
fn check_port_sums(outcome: &Outcome, wire: &[InFrame]) -> Result<(), String> {
    for port in [PortId(0), PortId(1)] {
        let given = wire.iter().filter(|frame| frame.port == port).count() as u64;
        let fates = ends(outcome, port);
        if fates.values().sum::<u64>() != given {
            return Err(format!("{}: {port}: {given} frames came, the ends are {fates:?}", outcome.card));
        }
    }
    Ok(())
}

fn check_port_one(property: &Property, config: &Config<'_>) -> Result<Report, Failure> {
    runner::ready(&["model", config.rtl], &[2])?;
    let on_port_1 = traffic::any_frame().prop_map(|frame| FrameSpec { port: 1, ..frame });
    runner::cases(property, config, Coverage::default(), &case(on_port_1), Case::wire, |case, coverage| {
        let wire = case.wire();
        let trial = Trial::fast(&case.bed, &wire);
        for card in ["model", config.rtl] {
            let mut counted = Vec::new();
            let outcome = trial.run_with(card, &mut |run| {
                let platform = run.bench().function(FuncId(0));
                let read = |offset| platform.mmio().read32(Bar::Shell, shell::QDMA_COMMON + offset);
                counted = [qdma_common::FUNCTION_C2H_PACKETS, qdma_common::FUNCTION_C2H_DROP_QUEUE_RANGE]
                    .map(read)
                    .into_iter()
                    .collect::<Result<_, _>>()?;
                Ok(())
            })?;
            trial.check(&outcome)?;
            if counted != [0, 0] {
                return Err(format!("{card}: function 0 counts {} frames and {} drops", counted[0], counted[1]));
            }
            if outcome.delivered.iter().any(|frame| frame.func != FuncId(1)) {
                return Err(format!("{card}: a frame from port 1 came out of function 0"));
            }
            coverage.add("frames", outcome.delivered.len() as u64);
        }
        Ok(())
    })
}
