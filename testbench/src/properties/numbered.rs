//! Numbered packets through one queue: 70,000 and 140,000, so that 16-bit indices and packet ids wrap once and twice, on
//! rings of 64 to 4096 entries; calmly, and with what a host and a card do to a driver on a bad day.

use std::fmt;

use models::observation::Observation;
use models::qdma::QdmaConfig;
use models::time::Time;
use regs::{FuncId, PortId};

use super::bed::{Bed, Stalls};
use super::coverage::Coverage;
use super::{Config, Failure, Property, Report, runner};
use crate::card::{Card, WireFrame, qdma_config};
use crate::frames::{UDP_HEADERS, udp};
use crate::host_memory::Request;
use crate::run::{InFrame, Run, RunError, Setup, Sink};

pub(super) const NUMBERED: Property = Property {
    name: "numbered",
    doc: "70,000 and 140,000 numbered packets through one queue: all, in order, once, whatever the day is like",
    needs_rtl: false,
    quick: 12,
    full: 68,
    kept: "",
    check,
};

/// Bytes of a packet's payload: its number, and room for the shortest frame.
const PAYLOAD: usize = 18;
/// How many rest periods a day with stops has.
const STOPS: u64 = 7;
/// Packets that are under way at a stop: some for the queue that was, some for the one that comes.
const STORM: u64 = 6_000;

/// What a card has to say of a packet whose queue was stopped under it. Source: qdma.md 8, C2H bit 12.
const STOPPED: &str = "card errors: C2H: completion for an invalid queue (bit 12)";

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Day {
    /// Nothing.
    Calm,
    /// The host is late and slow, so that the ring runs full and the card stalls; on RTL, so do all its streams.
    Stalls,
    /// A completion lands 3 us behind the status and the interrupt that announce it, and its packet's data 2 us before.
    Withheld,
    /// Under load the device is taken down in order, or its queue is started afresh at once, as after a fault; what the card
    /// still writes lands 5 us after the queue is invalid.
    Stops,
    /// Every received page is kept for a while, one thread handles the queue and another the card, and for a third of the
    /// time no page is to be had.
    NoMemory,
}

/// One run.
#[derive(Clone, Copy, Debug)]
struct Step {
    card: &'static str,
    ring: u16,
    packets: u64,
    day: Day,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { card, ring, packets, day } = self;
        write!(f, "{card}, ring of {ring}, {packets} packets, {day:?}")
    }
}

const DAYS: [Day; 5] = [Day::Calm, Day::Stalls, Day::Withheld, Day::Stops, Day::NoMemory];
const RINGS: [u16; 6] = [64, 4096, 1024, 100, 256, 2047];
const PACKETS: [u64; 2] = [70_000, 140_000];

/// Every day with the smallest and the largest ring first, then the rings between, and at the end some on RTL.
fn steps(rtl_card: &'static str) -> impl Iterator<Item = Step> {
    let on_model = |ring, packets, day| Step { card: "model", ring, packets, day };
    let ends = DAYS.into_iter().flat_map(move |day| [on_model(64, 70_000, day), on_model(4096, 140_000, day)]);
    let rest = RINGS.into_iter().flat_map(move |ring| {
        let each = PACKETS.into_iter().flat_map(move |packets| DAYS.map(|day| on_model(ring, packets, day)));
        each.filter(|step| !matches!((step.ring, step.packets), (64, 70_000) | (4096, 140_000)))
    });
    let rtl = DAYS.into_iter().filter(|_| cfg!(feature = "rtl"));
    let rtl = rtl
        .flat_map(move |day| [64, 1024].map(move |ring| Step { card: rtl_card, ring, packets: 70_000, day }))
        .take(8);
    ends.chain(rest).chain(rtl)
}

fn check(property: &Property, config: &Config<'_>) -> Result<Report, Failure> {
    let steps: Vec<Step> = steps(config.rtl).take(config.cases as usize).collect();
    if steps.iter().any(|step| step.card == config.rtl) {
        runner::ready(&[config.rtl], &[1])?;
    }
    let frames = |step: &Step| packets(0..step.packets);
    let report = runner::sweep(property, config, Coverage::default(), &steps, frames, |step, coverage| {
        let Toll { lost, unfed } = through(step, config.seed).map_err(|error| format!("{step}: {error}"))?;
        coverage.add("packets, all in order and once", step.packets);
        if step.day == Day::Stops {
            let stormed = (STOPS - 1) * STORM;
            if lost == 0 || lost == stormed {
                return Err(format!(
                    "{step}: of {stormed} packets under way at stops {lost} were lost: no stop was hard"
                ));
            }
            coverage.add("packets under way at a stop that were lost", lost);
            coverage.add("packets under way at a stop that came", stormed - lost);
        }
        if step.day == Day::NoMemory {
            if unfed == 0 {
                return Err(format!("{step}: no request for a page failed: memory never ran out"));
            }
            coverage.add("requests for a page that failed", unfed);
        }
        Ok(())
    })?;
    // A build without RTL has fewer steps, and did not leave out any.
    Ok(Report { cases: config.cases, ..report })
}

fn packets(numbers: std::ops::Range<u64>) -> Vec<InFrame> {
    let packet = |number| InFrame { port: PortId(0), index: number, time_ns: None, data: data(number), err: false };
    numbers.map(packet).collect()
}

fn data(number: u64) -> Vec<u8> {
    udp(0, number, PAYLOAD).unwrap_or_default() // 18 bytes fit a datagram
}

/// What a day has cost.
struct Toll {
    /// Packets that a stop met under way and that never came.
    lost: u64,
    /// Requests for a page that failed.
    unfed: u64,
}

/// Run one step.
fn through(step: &Step, seed: u64) -> Result<Toll, String> {
    let mut bed = Bed { ring: step.ring, ..Bed::plain(1) };
    bed.timing.seed = seed;
    if step.day == Day::Stalls {
        bed.timing.stalls = Stalls::Random(30);
    }
    let setup = setup(&bed, step.day);
    let choice = bed.card(step.card);
    // What the model is told to do late, RTL does when it does.
    let qdma = if choice.has_qdma_model() { qdma(step.day, &bed) } else { qdma_config(&setup.shape) };
    let card = choice.make_with(&setup.shape, qdma).map_err(|error| error.to_string())?;
    let mut line = Line::default();
    let memory = run(card, &setup, step, &mut line).map_err(|error| format!("{:#}", anyhow::Error::new(error)))?;
    let unfed = line.unfed;
    Ok(Toll { lost: line.end(step, &memory)?, unfed })
}

fn setup(bed: &Bed, day: Day) -> Setup {
    let mut setup = bed.setup();
    if day == Day::Stalls {
        (setup.host.interrupt_ns, setup.host.packet_ns) = (20_000, 150);
    }
    setup
}

fn qdma(day: Day, bed: &Bed) -> QdmaConfig {
    let plain = qdma_config(&bed.shape());
    match day {
        Day::Withheld => QdmaConfig { late_entry_ps: 3_000_000, late_payload_ps: 1_000_000, ..plain },
        Day::Stops => QdmaConfig { late_dma_after_inv_ns: 5_000, ..plain },
        Day::Calm | Day::Stalls | Day::NoMemory => plain,
    }
}

/// Everything through, and down. Returns what the memory checker had to say.
fn run(card: Box<dyn Card>, setup: &Setup, step: &Step, line: &mut Line) -> Result<Vec<String>, RunError> {
    let mut run = Run::start(card, setup)?;
    match step.day {
        Day::Calm | Day::Stalls | Day::Withheld => {
            run.replay(&mut packets(0..step.packets).iter(), &mut [].iter(), line)?;
        }
        Day::Stops => with_stops(&mut run, step.packets, line)?,
        Day::NoMemory => {
            // The pool has fetched pages by the 64 and has at most 63 to spare, so that it asks for more as soon as a few
            // are kept, whatever the ring. For pages alone: each failure is a packet that has to be copied.
            run.bench().memory().fail(Request::Page, 0, step.packets / 3);
            run.replay_with_workers(&mut packets(0..step.packets).iter(), &mut [].iter(), line)?;
        }
    }
    line.unfed = run.bench().memory().failed_requests();
    line.queue_errors = run.tally().queue_errors.clone();
    let (_, bench) = run.finish()?;
    let memory = bench.memory();
    Ok(memory.violations().iter().chain(&memory.leaks()).map(ToString::to_string).collect())
}

/// Between two quiet stretches the queue stops while packets are in the card, in the ring and on the link. By turns it is
/// given the time to end what is under way, and not.
fn with_stops(run: &mut Run, packets_in_all: u64, line: &mut Line) -> Result<(), RunError> {
    let stretch = packets_in_all / STOPS;
    for at in 0..STOPS {
        let begin = at * stretch;
        let end = if at + 1 == STOPS { packets_in_all } else { begin + stretch - STORM };
        run.replay(&mut packets(begin..end).iter(), &mut [].iter(), line)?;
        if at + 1 == STOPS {
            break;
        }
        line.storms.push(end..end + STORM);
        for number in end..end + STORM {
            run.bench().wire_in(PortId(0), WireFrame { time: Time::ZERO, data: data(number), err: false });
        }
        // Some have landed, some are on their way, each time others.
        run.bench().advance(run.bench().now() + 700_000 + at * 430_000)?;
        let func = FuncId(0);
        let driver = &mut run.drivers()[0];
        if at % 2 == 0 {
            driver.restart_rx(0).map_err(|source| RunError::Change { func, source })?;
        } else {
            driver.down().map_err(|source| RunError::Change { func, source: source.into() })?;
            driver.up().map_err(|source| RunError::Up { func, source })?;
        }
    }
    Ok(())
}

/// What has come, looked at as it comes.
#[derive(Default)]
struct Line {
    /// The packet that should be next.
    next: u64,
    delivered: u64,
    /// Packets that a stop met under way: these may be missing.
    storms: Vec<std::ops::Range<u64>>,
    missing: u64,
    /// Requests for a page that failed.
    unfed: u64,
    wrong: Option<String>,
    queue_errors: Vec<String>,
}

impl Line {
    fn take(&mut self, bytes: &[u8]) {
        let number = bytes.get(UDP_HEADERS..UDP_HEADERS + 8).and_then(|bytes| bytes.try_into().ok());
        let number = number.map_or(u64::MAX, u64::from_le_bytes);
        self.delivered += 1;
        while self.next < number && self.may_miss(self.next) {
            self.next += 1;
            self.missing += 1;
        }
        if number != self.next || data(number) != bytes {
            let (at, next) = (self.delivered - 1, self.next);
            self.wrong
                .get_or_insert_with(|| format!("packet {next} was due, {at} were through, and came {bytes:02x?}"));
        }
        self.next = number.saturating_add(1);
    }

    fn may_miss(&self, number: u64) -> bool {
        self.storms.iter().any(|storm| storm.contains(&number))
    }

    /// All through? Returns how many a stop has cost.
    fn end(mut self, step: &Step, memory: &[String]) -> Result<u64, String> {
        while self.next < step.packets && self.may_miss(self.next) {
            self.next += 1;
            self.missing += 1;
        }
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        if self.next != step.packets || self.delivered + self.missing != step.packets {
            return Err(format!("{} packets came, the last before {}", self.delivered, self.next));
        }
        let of_a_stop = |error: &&String| {
            let rest = error.strip_prefix(STOPPED);
            step.day == Day::Stops && rest.is_some_and(|rest| rest.is_empty() || rest == "; first queue 0")
        };
        match self.queue_errors.iter().filter(|error| !of_a_stop(error)).chain(memory).next() {
            Some(error) => Err(error.clone()),
            None => Ok(self.missing),
        }
    }
}

impl Sink for Line {
    fn delivered(&mut self, _: FuncId, _: u16, _: Time, segments: &mut dyn Iterator<Item = &[u8]>) {
        let first = segments.next().unwrap_or(&[]);
        self.take(first);
    }

    fn sent(&mut self, _: PortId, frame: WireFrame) -> Option<Vec<u8>> {
        Some(frame.data)
    }

    fn observed(&mut self, _: Observation) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step() -> Step {
        Step { card: "model", ring: 64, packets: 4, day: Day::Calm }
    }

    fn line(numbers: &[u64]) -> Result<u64, String> {
        let mut line = Line { storms: vec![2..3; 1], ..Line::default() };
        numbers.iter().for_each(|number| line.take(&data(*number)));
        line.end(&step(), &[])
    }

    #[test]
    fn lost_doubled_and_reordered_packets_are_seen() {
        assert_eq!(line(&[0, 1, 2, 3]), Ok(0));
        assert_eq!(line(&[0, 1, 3]), Ok(1), "a stop may cost it");
        for wrong in [&[0, 2, 3][..], &[0, 1, 1, 2, 3], &[1, 0, 2, 3], &[0, 1, 2], &[0, 1, 2, 3, 3]] {
            assert!(line(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn every_day_is_tried_at_once_and_every_ring_in_full() {
        let quick: Vec<Step> = steps("hybrid").take(NUMBERED.quick as usize).collect();
        assert!(DAYS.iter().all(|day| quick.iter().any(|step| step.day == *day)));
        let rtl = if cfg!(feature = "rtl") { 8 } else { 0 };
        assert_eq!(steps("hybrid").count(), 60 + rtl);
    }
}
