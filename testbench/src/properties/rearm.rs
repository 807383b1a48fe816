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
    runner::ready(&["model", "hybrid"], &[1])?;
    let offsets = offsets(config.cases);
    // A pair that is far apart is what a failing case needs.
    let frames = |_: &&str| pairs([PERIOD_NS / 2]);
    let report = runner::sweep(property, config, Coverage::default(), &["model", "hybrid"], frames, |card, coverage| {
        let poll_ns = poll_after_ns(card)?;
        // An interrupt is owed to the last frame of each pair, so that one forgotten stays in its ring and is missed.
        let wire = pairs(offsets.iter().map(|offset| poll_ns.saturating_add_signed(offset * 4)));
        let trial = trial(&wire, &Bed::plain(1)).check_on(card)?;
        coverage.add(&format!("arrivals on {card}"), offsets.len() as u64);
        coverage.add(&format!("arrivals on {card} taken in the poll before"), trial);
        Ok(())
    })?;
    Ok(Report { cases: config.cases, ..report })
}

struct Rearm<'a>(Trial<'a>);

fn trial<'a>(wire: &'a [InFrame], bed: &'a Bed) -> Rearm<'a> {
    Rearm(Trial { pace: Pace::Capture { max_gap_ns: u64::MAX }, ..Trial::fast(bed, wire) })
}

impl Rearm<'_> {
    /// Run it; how many second frames were taken together with the first.
    fn check_on(&self, card: &str) -> Result<u64, String> {
        let outcome = self.0.run(card)?;
        self.0.check(&outcome)?;
        let together = outcome.delivered.chunks(2).filter(|pair| matches!(pair, [a, b] if a.time == b.time)).count();
        Ok(together as u64)
    }
}

/// From a frame's arrival to the poll that takes it, which re-arms at its end.
fn poll_after_ns(card: &str) -> Result<u64, String> {
    let wire = pairs([PERIOD_NS / 2, PERIOD_NS / 2]);
    let bed = Bed::plain(1);
    let outcome = trial(&wire, &bed).0.run(card)?;
    // Times of the input begin with the run, which is not told: the distance of two arrivals is, and so the third frame's
    // monitor stands for its arrival.
    let arrival = outcome.observations.first().map(|seen| seen.time);
    let poll = outcome.delivered.first().map(|frame| frame.time);
    match (arrival, poll) {
        (Some(arrival), Some(poll)) if poll > arrival => Ok((poll - arrival) / 1_000),
        _ => Err(format!("{card}: a frame alone was not delivered")),
    }
}
