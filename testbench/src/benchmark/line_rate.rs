//! What card `rtl` holds in cycles: frames of one length through the whole card and its driver, and what limits them.
//!
//! Time is the card's, so a figure says nothing of the machine it was measured on and is the same each time. Frame lengths
//! leave the FCS out. The wire takes `(length + 24) * 8` bits at 100 Gb/s a frame, the stream between shell and QDMA one beat
//! of 64 bytes each 4 ns, so that frames of 65 to 75 bytes are bounded by the stream.
//!
//! Received frames are offered at the wire's rate and counted where they leave the RSS function for the QDMA, frames that
//! the receive buffer had no room for apart; sent ones where they leave the port, whose other side is always ready. Both over
//! the middle of the run: its beginning fills pipes and its end drains them.
//!
//! What limits a case that stays behind is found by trying: each cause is taken away alone, and the one without which
//! the case gains most is named.

use anyhow::{Result, ensure};
use driver_core::{Mmio as _, Platform as _};
use models::observation::{Fate, Observation, Point};
use models::time::Time;
use regs::{Bar, FuncId, PortId};

use super::{Way, from_host, traffic};
use crate::card::{Choice, Fetch, Knobs, Link, Shape, WireFrame};
use crate::run::{HostFrame, HostProfile, InFrame, Run, Setup, Sink};
use crate::shape::Pace;

/// Frame lengths measured, FCS left out. The last is the longest that passes: 9600 bytes with FCS.
pub const LENGTHS: [usize; 14] = [60, 64, 65, 76, 128, 250, 256, 512, 1000, 1024, 1500, 1518, 4096, 9596];
/// Queues measured.
pub const QUEUES: [u16; 3] = [1, 8, 64];
/// Costs of a packet in the driver measured, ns.
pub const HOST_NS: [u64; 2] = [0, 50];

/// Beats of a run, and frames at least: some thousands of beats behind the first round through the rings.
const BEATS: usize = 24_000;
const FRAMES_MIN: usize = 500;
/// Entries of each ring: the longest that both vendor drivers' tables have.
const RING: u16 = 4096;
/// Shares of the run, of 8, that the measurement leaves out at its beginning and at its end.
const BEFORE: usize = 3;
const AFTER: usize = 1;

/// One measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// Frame length, FCS left out.
    pub len_bytes: usize,
    /// Direction.
    pub way: Way,
    /// Queues of the function.
    pub queues: u16,
    /// Ethernet ports, all of them used; functions as many.
    pub ports: u8,
    /// What each packet costs the driver, ns.
    pub host_ns: u64,
    /// How far the engine reads ahead.
    pub fetch: Fetch,
    /// The link to host memory.
    pub link: Link,
    /// From a read to its answer, cycles.
    pub latency_cycles: u32,
}

impl Case {
    /// One port, the `wire` set, an ideal link of 250 cycles, a driver that costs nothing.
    pub fn new(len_bytes: usize, way: Way, queues: u16) -> Case {
        Case {
            len_bytes,
            way,
            queues,
            ports: 1,
            host_ns: 0,
            fetch: Fetch::Wire,
            link: Link::Ideal,
            latency_cycles: Knobs::default().latency_cycles,
        }
    }

    /// Millions of frames a second that one port's wire carries.
    pub fn wire_mpps(&self) -> f64 {
        1e5 / ((self.len_bytes + 24) * 8) as f64 * f64::from(self.ports)
    }

    /// Millions of frames a second that the stream carries, one beat a cycle.
    pub fn stream_mpps(&self) -> f64 {
        250.0 / self.len_bytes.div_ceil(64) as f64
    }

    /// What nothing but wire and stream allows.
    pub fn expected_mpps(&self) -> f64 {
        self.wire_mpps().min(self.stream_mpps())
    }

    fn frames(&self) -> usize {
        (BEATS / self.len_bytes.div_ceil(64)).max(FRAMES_MIN).max(4 * usize::from(self.queues))
    }

    fn setup(&self) -> Setup {
        let defaults = Shape::default();
        let max_pkt_len = ((self.len_bytes + 4) as u16).max(defaults.max_pkt_len);
        Setup {
            shape: Shape {
                functions: self.ports,
                ports: self.ports,
                queues: self.queues,
                max_pkt_len,
                mtu: max_pkt_len - 18,
                ring: RING,
                ..defaults
            },
            pace: Pace::Line,
            host: HostProfile { packet_ns: self.host_ns, ..HostProfile::default() },
            check_memory: false,
            ..Setup::default()
        }
    }
}

/// What a case did.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rate {
    /// Frames in the middle of the run.
    pub frames: u64,
    /// Cycles of axis_aclk that they took.
    pub cycles: f64,
    /// Frames of the whole run that the receive buffer had no room for.
    pub overflow: u64,
}

impl Rate {
    /// Millions of frames a second at 250 MHz.
    pub fn mpps(&self) -> f64 {
        self.frames as f64 / self.cycles * 250.0
    }

    /// Gb/s of frames, FCS, preamble and gap left out.
    pub fn gbps(&self, len_bytes: usize) -> f64 {
        self.mpps() * len_bytes as f64 * 8.0 / 1e3
    }
}

/// What a case is limited by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limiter {
    /// 100 Gb/s.
    Wire,
    /// One beat a cycle between shell and QDMA.
    Stream,
    /// How far descriptors are read ahead.
    DescriptorFetch,
    /// The rate of the link to host memory.
    HostPort,
    /// The time until a read is answered.
    HostLatency,
    /// What a packet costs the driver.
    Driver,
    /// None of those alone: what is left, completions first of all.
    Completion,
}

impl Limiter {
    /// In reports.
    pub const fn name(self) -> &'static str {
        match self {
            Limiter::Wire => "wire",
            Limiter::Stream => "stream",
            Limiter::DescriptorFetch => "descriptor fetch",
            Limiter::HostPort => "host port",
            Limiter::HostLatency => "host latency",
            Limiter::Driver => "driver",
            Limiter::Completion => "completion",
        }
    }
}

/// Within this share of what wire and stream allow a case holds the line.
pub const HELD: f64 = 0.99;

/// Run a case.
///
/// # Errors
/// The card could not be made or stopped, or frames are missing at the end.
pub fn measure(case: &Case) -> Result<Rate> {
    let setup = case.setup();
    let mut choice = Choice::named("rtl");
    choice.rtl.knobs =
        Knobs { link: case.link, fetch: case.fetch, latency_cycles: case.latency_cycles, ..Knobs::default() };
    choice.rtl.knobs.spread_cycles = choice.rtl.knobs.spread_cycles.min(case.latency_cycles.saturating_sub(1));
    let mut run = Run::start(choice.make(&setup.shape)?, &setup)?;
    if case.fetch == Fetch::Wire {
        let platform = run.bench().function(FuncId(0));
        // The driver asks for 8 descriptors kept ready for each queue, as the vendor's PMD does; with 0 the pins decide.
        platform.mmio().write32(Bar::Qdma, regs::qdma_csr::C2H_PREFETCH_CFG_2, 0)?;
    }
    let frames = frames_of(case);
    let (wire, host): (Vec<InFrame>, Vec<HostFrame>) = match case.way {
        Way::Receive => (frames, Vec::new()),
        Way::Transmit => (Vec::new(), frames.into_iter().map(|frame| sent_by(frame, &setup)).collect()),
    };
    let mut marks = Marks { way: case.way, times: Vec::with_capacity(wire.len() + host.len()), overflow: 0 };
    run.replay(&mut wire.iter(), &mut host.iter(), &mut marks)?;
    run.finish()?;
    let all = wire.len() + host.len();
    ensure!(
        marks.times.len() as u64 + marks.overflow == all as u64,
        "{} frames passed and {} found no room, of {all}",
        marks.times.len(),
        marks.overflow
    );
    Ok(marks.rate())
}

/// As many frames for each port, in turns.
fn frames_of(case: &Case) -> Vec<InFrame> {
    let ports = usize::from(case.ports);
    let mut frames = traffic(case.len_bytes, case.frames() * ports);
    for (at, frame) in frames.iter_mut().enumerate() {
        frame.port = PortId((at % ports) as u8);
    }
    frames
}

/// The same frame, sent by the function of its port.
fn sent_by(frame: InFrame, setup: &Setup) -> HostFrame {
    let func = FuncId(frame.port.0);
    let index = frame.index / u64::from(setup.shape.ports.max(1));
    HostFrame { func, ..from_host(InFrame { index, ..frame }, setup) }
}

/// What limits a case that did `rate`.
///
/// # Errors
/// As [`measure`].
pub fn limiter(case: &Case, rate: &Rate) -> Result<Limiter> {
    if rate.mpps() >= HELD * case.expected_mpps() {
        return Ok(if case.wire_mpps() <= case.stream_mpps() { Limiter::Wire } else { Limiter::Stream });
    }
    let without = [
        (Limiter::Driver, Case { host_ns: 0, ..*case }),
        (Limiter::DescriptorFetch, Case { fetch: Fetch::Wire, ..*case }),
        (Limiter::HostPort, Case { link: Link::Ideal, ..*case }),
        (Limiter::HostLatency, Case { latency_cycles: 1, ..*case }),
    ];
    let mut most = (Limiter::Completion, rate.mpps() * (2.0 - HELD));
    for (cause, other) in without.into_iter().filter(|(_, other)| other != case) {
        let gained = measure(&other)?.mpps();
        if gained > most.1 {
            most = (cause, gained);
        }
    }
    Ok(most.0)
}

/// When each frame passed the place where it is counted.
struct Marks {
    way: Way,
    times: Vec<Time>,
    overflow: u64,
}

impl Marks {
    fn rate(&self) -> Rate {
        let mut times = self.times.clone();
        times.sort_unstable();
        let (first, last) = (times.len() * BEFORE / 8, times.len() * (8 - AFTER) / 8);
        let span = times.get(last).zip(times.get(first)).map_or(0, |(last, first)| last.0 - first.0);
        Rate { frames: (last - first) as u64, cycles: span as f64 / 4_000.0, overflow: self.overflow }
    }
}

impl Sink for Marks {
    fn delivered(&mut self, _: FuncId, _: u16, _: Time, _: &mut dyn Iterator<Item = &[u8]>) {}

    fn sent(&mut self, _: PortId, frame: WireFrame) -> Option<Vec<u8>> {
        if self.way == Way::Transmit {
            self.times.push(frame.time);
        }
        Some(frame.data)
    }

    fn observed(&mut self, observation: Observation) {
        match observation.point {
            Point::Rss { fate: Fate::Accepted, .. } if self.way == Way::Receive => self.times.push(observation.time),
            Point::RxEnd { fate: Fate::Overflow, .. } => self.overflow += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_five_bytes_are_bounded_by_the_stream() {
        let case = Case::new(65, Way::Receive, 1);
        assert_eq!((case.expected_mpps(), case.stream_mpps()), (125.0, 125.0));
        assert!((case.wire_mpps() - 140.449).abs() < 0.001);
        assert!((Case::new(60, Way::Receive, 1).expected_mpps() - 148.809).abs() < 0.001);
    }

    #[test]
    fn the_rate_is_that_of_the_middle() {
        let times = (0..80).map(|at| Time(at * 8_000)).collect();
        let rate = Marks { way: Way::Transmit, times, overflow: 0 }.rate();
        assert_eq!((rate.frames, rate.cycles, rate.mpps()), (40, 80.0, 125.0));
    }
}
