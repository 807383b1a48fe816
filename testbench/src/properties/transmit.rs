//! The way back: frames from the host leave at the wire, while others come in.

use proptest::prelude::*;
use regs::PortId;

use super::bed::{self, Bed};
use super::coverage::Coverage;
use super::traffic::{self, FrameSpec, HostSpec};
use super::trial::Trial;
use super::{Config, Failure, Property, Report, fewer, runner};
use crate::run::{HostFrame, InFrame};

/// Frames of a case from the host, and at the wire beside them.
const HOST_FRAMES: usize = 80;
const WIRE_FRAMES: usize = 20;

pub(super) const TRANSMIT: Property = Property {
    name: "transmit",
    doc: "host frames leave at their function's port, whole and in the order of their queue, whatever comes in meanwhile",
    needs_rtl: true,
    quick: 15,
    full: 200,
    kept: kept!("transmit"),
    check,
};

#[derive(Clone, Debug)]
struct Case {
    bed: Bed,
    host: Vec<HostSpec>,
    wire: Vec<FrameSpec>,
}

impl Case {
    fn host(&self) -> Vec<HostFrame> {
        traffic::host_frames(&self.host, self.bed.width, self.bed.queues)
    }

    fn wire(&self) -> Vec<InFrame> {
        traffic::frames(&self.wire, self.bed.width, false)
    }

    /// Host frames too, as if they came in at their function's port: a capture holds both.
    fn frames(&self) -> Vec<InFrame> {
        let host = self.host().into_iter().map(|frame| InFrame {
            port: PortId(frame.func.0),
            index: 0,
            time_ns: None,
            data: frame.data,
            err: false,
        });
        let all = host.chain(self.wire()).enumerate();
        all.map(|(index, frame)| InFrame { index: index as u64, ..frame }).collect()
    }
}

fn case() -> impl Strategy<Value = Case> {
    let host = fewer::shrinking(traffic::host_frame(), HOST_FRAMES);
    let wire = fewer::shrinking(traffic::any_frame(), WIRE_FRAMES);
    (bed::bed(), host, wire).prop_map(|(bed, host, wire)| Case { bed, host, wire })
}

fn check(property: &Property, config: &Config<'_>) -> Result<Report, Failure> {
    runner::ready(&["model", config.rtl], &[1, 2])?;
    let held = "two-beat frames held between beats";
    let (held_h2c, held_out) = (format!("{held}, H2C"), format!("{held}, wire out"));
    let held_least = if config.holds_qdma_streams() { 500 } else { 0 };
    let goals = [("frames sent".to_string(), 10_000), (held_h2c.clone(), held_least), (held_out.clone(), 500)];
    runner::cases(property, config, Coverage::with_goals(goals), &case(), Case::frames, |case, coverage| {
        let (host, wire) = (case.host(), case.wire());
        let trial = Trial { host: &host, ..Trial::fast(&case.bed, &wire) };
        let model = trial.run("model")?;
        let rtl = trial.run(config.rtl)?;
        trial.check(&model)?;
        trial.check(&rtl)?;
        coverage.add("frames sent", rtl.sent.len() as u64);
        coverage.add(&held_h2c, rtl.stalls.h2c);
        coverage.add(&held_out, rtl.stalls.wire_out);
        (0..case.bed.width).for_each(|func| {
            let sent = host.iter().filter(|frame| frame.func.0 == func).count();
            coverage.add(&format!("frames sent by fn{func}"), sent as u64);
        });
        Ok(())
    })
}
