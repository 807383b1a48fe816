//! Rings go round: numbered payloads come out all, once and in order, over laps and past 16-bit indices
//! (cases RING-01, RING-03, RING-04).

use driver_core::TxError;
use models::observation::Observation;
use models::time::Time;
use proptest::prelude::*;
use regs::{FuncId, PortId};
use traces::synth::Rng;

use super::bed::{Bed, TablePlan, Timing};
use super::coverage::Coverage;
use super::traffic::{self, HostSpec};
use super::trial::Trial;
use super::{Config, Failure, Property, Report, runner};
use crate::card::WireFrame;
use crate::frames::udp;
use crate::run::{HostFrame, InFrame, Run, Sink};

pub(super) const RINGS: Property = Property {
    name: "rings",
    doc: "rings of 4 to 4096 entries, three laps and more in both directions: all frames once and in order",
    needs_rtl: false,
    quick: 15,
    full: 200,
    kept: kept!("rings"),
    check: check_rings,
};

pub(super) const LAPS: Property = Property {
    name: "laps",
    doc: "70,000 frames in and out through one queue: 16-bit indices and numbers wrap unseen",
    needs_rtl: false,
    quick: 2,
    full: 8,
    kept: "",
    check: check_laps,
};

pub(super) const FULL: Property = Property {
    name: "full-ring",
    doc: "a ring that nobody empties takes all but two of its entries, refuses more, and does so again when emptied",
    needs_rtl: false,
    quick: 6,
    full: 40,
    kept: "",
    check: check_full,
};

/// What goes round.
#[derive(Clone, Debug)]
struct Case {
    bed: Bed,
    /// Frames each way, at each queue on average.
    frames: u32,
    /// The longest.
    len_bytes: u16,
    seed: u64,
}

impl Case {
    fn wire(&self) -> Vec<InFrame> {
        let mut rng = Rng::named(self.seed, "wire");
        let mut one = |number: u64| {
            let flow = rng.below(u64::from(self.bed.queues) * 8) as u16;
            let payload = rng.between(8, u64::from(self.len_bytes) - 42) as usize;
            let data = udp(flow, number, payload).unwrap_or_default(); // no longer than a frame, so it fits a datagram
            InFrame { port: PortId(0), index: number, time_ns: None, data, err: false }
        };
        (0..self.total()).map(&mut one).collect()
    }

    fn host(&self) -> Vec<HostFrame> {
        let mut rng = Rng::named(self.seed, "host");
        let mut one = |_| HostSpec {
            func: 0,
            queue: rng.below(u64::from(self.bed.queues)) as u16,
            len_bytes: rng.between(60, u64::from(self.len_bytes)) as u16,
            seed: rng.next_u64(),
        };
        let specs: Vec<HostSpec> = (0..self.total()).map(&mut one).collect();
        traffic::host_frames(&specs, 1, self.bed.queues)
    }

    fn total(&self) -> u64 {
        u64::from(self.frames) * u64::from(self.bed.queues)
    }

    fn check(&self, coverage: &mut Coverage) -> Result<(), String> {
        let (wire, host) = (self.wire(), self.host());
        let trial = Trial { host: &host, ..Trial::fast(&self.bed, &wire) };
        let outcome = trial.run("model")?;
        trial.check(&outcome)?;
        coverage.add("frames each way", self.total());
        coverage.add("laps of rings", self.total() / u64::from(self.bed.ring));
        Ok(())
    }
}

/// A ring for each number of queues, small ones as often as large ones, and frames that it can hold.
fn case() -> impl Strategy<Value = Case> {
    let ring = prop_oneof![4u16..=16, 17u16..=128, 129u16..=1024, 1025u16..=4096, (2u32..=12).prop_map(|log| 1 << log)];
    let beyond = prop_oneof![Just(0u32), Just(1), 0u32..100];
    (ring, 1u16..=3, 3u32..=5, beyond, any::<u64>(), any::<bool>()).prop_map(
        |(ring, queues, laps, beyond, seed, long)| {
            // Frames of several buffers want room; on large rings they would only take time.
            let max_pkt_len = if long && (16..200).contains(&ring) { 9600 } else { 1518 };
            let len_bytes = if ring < 200 { max_pkt_len - 4 } else { 120 };
            let bed = Bed {
                ring,
                max_pkt_len,
                table: TablePlan::Random(seed),
                timing: Timing::plain(seed),
                ..Bed::plain(queues)
            };
            Case { bed, frames: laps * u32::from(ring) + beyond, len_bytes, seed }
        },
    )
}

fn check_rings(property: &Property, config: &Config<'_>) -> Result<Report, Failure> {
    runner::cases(property, config, Coverage::default(), &case(), Case::wire, Case::check)
}

fn check_laps(property: &Property, config: &Config<'_>) -> Result<Report, Failure> {
    const FRAMES: u32 = 70_000;
    let rings = [64u16, 1024, 4, 4096, 5, 100, 2048, 8];
    let steps: Vec<Case> = rings
        .iter()
        .take(config.cases as usize)
        .map(|&ring| Case { bed: Bed { ring, ..Bed::plain(1) }, frames: FRAMES, len_bytes: 72, seed: config.seed })
        .collect();
    runner::sweep(property, config, Coverage::default(), &steps, Case::wire, Case::check)
}

fn check_full(property: &Property, config: &Config<'_>) -> Result<Report, Failure> {
    let mut rng = Rng::named(config.seed, property.name);
    let sizes: Vec<u16> = [4, 5, 64, 4096]
        .into_iter()
        .chain(std::iter::from_fn(|| Some(rng.between(4, 4096) as u16)))
        .take(config.cases as usize)
        .collect();
    runner::sweep(
        property,
        config,
        Coverage::default(),
        &sizes,
        |_| Vec::new(),
        |&ring, coverage| {
            fill_twice(ring)?;
            coverage.add("rings filled", 1);
            Ok(())
        },
    )
}

/// Fill a transmit ring, let the card empty it, and fill it again.
fn fill_twice(ring: u16) -> Result<(), String> {
    let bed = Bed { ring, ..Bed::plain(1) };
    let setup = bed.setup();
    let card = bed.card("model").make(&setup.shape).map_err(|error| error.to_string())?;
    let mut run = Run::start(card, &setup).map_err(|error| error.to_string())?;
    for round in 1..=2u16 {
        let posted = fill(&mut run)?;
        if posted != ring - 2 {
            return Err(format!("a ring of {ring} took {posted} frames in round {round}, not {}", ring - 2));
        }
        let mut sink = Count::default();
        run.replay(&mut [].iter(), &mut [].iter(), &mut sink).map_err(|error| error.to_string())?;
        if sink.sent != u64::from(posted) {
            return Err(format!("a ring of {ring}: {posted} frames posted in round {round}, {} sent", sink.sent));
        }
    }
    run.finish().map(|_| ()).map_err(|error| error.to_string())
}

/// Post until refused; a second refusal changes nothing.
fn fill(run: &mut Run) -> Result<u16, String> {
    let queue = run.drivers()[0].tx(0).ok_or("no queue 0")?;
    let mut posted = 0;
    while queue.post(&[0; 60]).is_ok() {
        posted += 1;
    }
    let before = (queue.outstanding(), queue.room());
    match queue.post(&[0; 60]) {
        Err(TxError::Full { .. }) if (queue.outstanding(), queue.room()) == before => Ok(posted),
        other => Err(format!("a full ring answers {other:?}, {before:?} before")),
    }
}

#[derive(Default)]
struct Count {
    sent: u64,
}

impl Sink for Count {
    fn delivered(&mut self, _: FuncId, _: u16, _: Time, _: &mut dyn Iterator<Item = &[u8]>) {}
    fn sent(&mut self, _: PortId, frame: WireFrame) -> Option<Vec<u8>> {
        self.sent += 1;
        Some(frame.data)
    }
    fn observed(&mut self, _: Observation) {}
}
