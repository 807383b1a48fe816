//! Any number of queues: each frame reaches one of them, and the shares are those of the table (case ONIC-08).

use traces::synth::{Ethernet, Kind, Rng, frame};

use super::bed::Bed;
use super::coverage::Coverage;
use super::trial::Trial;
use super::{Config, Failure, Property, Report, runner};
use crate::run::InFrame;
use regs::PortId;

/// Flows for each number of queues, one frame each, on the model and on the RTL.
const FLOWS_MODEL: usize = 10_000;
const FLOWS_RTL: usize = 600;
const QUEUES_MAX: u16 = 64;

pub(super) const SPREAD: Property = Property {
    name: "spread",
    doc: "with 1 to 64 queues every flow reaches the queue that the equal table gives it, and no frame is lost",
    needs_rtl: true,
    quick: 8,
    full: QUEUES_MAX as u32,
    kept: "",
    check,
};

/// `cases` numbers of queues, evenly from 1 to 64.
fn steps(cases: u32) -> Vec<u16> {
    let last = cases.clamp(2, QUEUES_MAX.into()) - 1;
    (0..=last).map(|i| 1 + (i * u32::from(QUEUES_MAX - 1) / last) as u16).collect()
}

fn flows(seed: u64, queues: u16, count: usize) -> Vec<InFrame> {
    let mut rng = Rng::named(seed, &format!("flows-{queues}"));
    let kinds = [Kind::Udp4, Kind::Tcp4];
    let one = |index: usize| {
        let data = frame(kinds[index % 2], &Ethernet::random(&mut rng), 60, &mut rng);
        InFrame { port: PortId(0), index: index as u64, time_ns: None, data, err: false }
    };
    (0..count).map(one).collect()
}

fn check(property: &Property, config: &Config<'_>) -> Result<Report, Failure> {
    runner::ready(&["model", config.rtl], &[1])?;
    let frames = |&queues: &u16| flows(config.seed, queues, FLOWS_RTL);
    runner::sweep(property, config, Coverage::default(), &steps(config.cases), frames, |&queues, coverage| {
        let bed = Bed { ring: 512, ..Bed::plain(queues) };
        for (card, count) in [("model", FLOWS_MODEL), (config.rtl, FLOWS_RTL)] {
            let wire = flows(config.seed, queues, count);
            let trial = Trial::fast(&bed, &wire);
            let outcome = trial.run(card)?;
            trial.check(&outcome)?;
            if let Some(frame) = outcome.delivered.iter().find(|frame| frame.queue >= queues) {
                return Err(format!("{card}: a frame came out of queue {} of {queues}", frame.queue));
            }
            coverage.add(&format!("flows on {card}"), count as u64);
        }
        coverage.add("numbers of queues", 1);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_reach_from_1_to_64() {
        assert_eq!(steps(64), (1..=64).collect::<Vec<_>>());
        assert_eq!(steps(2), [1, 64]);
        assert_eq!(steps(0), [1, 64]);
        assert_eq!(steps(8).len(), 8);
    }
}
