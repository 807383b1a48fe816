//! A frame that comes while the driver re-arms its interrupt is not forgotten (case RING-11).

use regs::PortId;

use super::bed::Bed;
use super::coverage::Coverage;
use super::trial::Trial;
use super::{Config, Failure, Property, Report, runner};
use crate::frames::udp;
use crate::run::InFrame;
use crate::shape::Pace;

/// Cycles of axis_aclk around the re-arming, before and behind.
const REACH_CYCLES: i64 = 64;
const CYCLE_NS: i64 = 4;
/// From one pair of frames to the next: all is quiet and armed long before, ns.
const PERIOD_NS: u64 = 20_000;

pub(super) const REARM: Property = Property {
    name: "rearm",
    doc: "a frame that arrives up to 64 cycles before or after the re-arming is delivered, with no traffic behind it",
    needs_rtl: true,
    quick: 33,
    full: 129,
    kept: "",
    check,
};

/// `cases` offsets of the second frame, cycles, evenly over the reach.
fn offsets(cases: u32) -> Vec<i64> {
    let last = i64::from(cases.clamp(2, 129)) - 1;
    (0..=last).map(|i| -REACH_CYCLES + i * 2 * REACH_CYCLES / last).collect()
}

fn frame(number: u64, time_ns: u64) -> InFrame {
    let data = udp(0, number, 18).unwrap_or_default(); // 18 bytes of payload fit a datagram
    InFrame { port: PortId(0), index: number, time_ns: Some(time_ns), data, err: false }
}

/// A frame, a second one `apart_ns` later, and then nothing.
fn pairs(apart_ns: impl IntoIterator<Item = u64>) -> Vec<InFrame> {
    let pair = |(n, apart_ns): (u64, u64)| [frame(2 * n, n * PERIOD_NS), frame(2 * n + 1, n * PERIOD_NS + apart_ns)];
    (0..).zip(apart_ns).flat_map(pair).collect()
}

fn check(property: &Property, config: &Config<'_>) -> Result<Report, Failure> {
    runner::ready(&["model", config.rtl], &[1])?;
    let offsets = offsets(config.cases);
    // What a failing sweep leaves behind is its idea of a pair.
    let frames = |_: &&str| pairs([PERIOD_NS / 2]);
    let report =
        runner::sweep(property, config, Coverage::default(), &["model", config.rtl], frames, |card, coverage| {
            let edge_ns = edge_ns(card)?;
            let wire = pairs(offsets.iter().map(|cycles| edge_ns.saturating_add_signed(cycles * CYCLE_NS)));
            let together = together(card, &wire)?;
            let before = together.iter().filter(|&&together| together).count();
            // Both sides of the edge, or it was not the edge.
            if before == 0 || before == offsets.len() {
                return Err(format!(
                    "{card}: of {} arrivals around {edge_ns} ns {before} came in time for the poll",
                    offsets.len()
                ));
            }
            coverage.add(&format!("arrivals on {card} just in time for the poll"), before as u64);
            coverage.add(&format!("arrivals on {card} just after it"), (offsets.len() - before) as u64);
            Ok(())
        })?;
    Ok(Report { cases: config.cases, ..report })
}

/// Run pairs on a card, and see that each frame is delivered. Which second frames were taken in one poll with the
/// first?
fn together(card: &str, wire: &[InFrame]) -> Result<Vec<bool>, String> {
    let bed = Bed::plain(1);
    let trial = Trial { pace: Pace::Capture { max_gap_ns: u64::MAX }, ..Trial::fast(&bed, wire) };
    let outcome = trial.run(card)?;
    trial.check(&outcome)?;
    Ok(outcome.delivered.chunks(2).map(|pair| pair[0].time == pair[pair.len() - 1].time).collect())
}

/// How far behind the first frame the second may be to be taken in the same poll, which re-arms when it has taken it.
/// Found by halving, on the second of two pairs: a ring that was armed empty notifies otherwise than one that went on
/// from there.
fn edge_ns(card: &str) -> Result<u64, String> {
    let (mut early, mut late) = (0, PERIOD_NS / 2);
    while late - early > CYCLE_NS as u64 {
        let middle = early.midpoint(late);
        if together(card, &pairs([PERIOD_NS / 2, middle]))?[1] { early = middle } else { late = middle }
    }
    Ok(early)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_reach_from_end_to_end() {
        assert_eq!(offsets(129), (-64..=64).collect::<Vec<_>>());
        assert_eq!(offsets(0), [-64, 64]);
    }
}
