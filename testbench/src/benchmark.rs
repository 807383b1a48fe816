//! What speed is measured by: the model with its driver, and RTL against a bare C++ loop over the same pins.
//!
//! A figure means something only as a ratio within one run: machines are shared and noisy. Opponents therefore take turns,
//! and the loop that RTL is held against is as fast as one can be: it plays the pin values that a run recorded, evaluation
//! by evaluation, on the same library, and decides nothing.

#[cfg(feature = "rtl")]
pub mod cocotb;
pub mod driver;
#[cfg(feature = "rtl")]
pub mod line_rate;

use std::time::{Duration, Instant};

use models::observation::Observation;
use models::time::Time;
use regs::{FuncId, PortId};

use crate::card::{Card, Choice, WireFrame};
use crate::frames;
use crate::run::{HostFrame, InFrame, Run, RunError, Setup, Sink};

/// Frame lengths measured, FCS left out.
pub const LENGTHS: [usize; 3] = [60, 512, 1514];

/// A run's frames are counted and dropped.
#[derive(Default)]
struct Counting {
    frames: u64,
    bytes: u64,
}

impl Sink for Counting {
    fn delivered(&mut self, _: FuncId, _: u16, _: Time, segments: &mut dyn Iterator<Item = &[u8]>) {
        self.frames += 1;
        self.bytes += segments.map(|segment| segment.len() as u64).sum::<u64>();
    }

    fn sent(&mut self, _: PortId, frame: WireFrame) -> Option<Vec<u8>> {
        self.frames += 1;
        self.bytes += frame.data.len() as u64;
        Some(frame.data)
    }

    fn observed(&mut self, _: Observation) {}
}

/// Flows of UDP frames of one length, as many as there are queues and more.
pub fn traffic(len_bytes: usize, frames: usize) -> Vec<InFrame> {
    let payload = len_bytes.saturating_sub(frames::UDP_HEADERS);
    (0..frames)
        .filter_map(|number| {
            let data = frames::udp((number % 61) as u16, number as u64, payload).ok()?;
            Some(InFrame { port: PortId(0), index: number as u64, time_ns: None, data, err: false })
        })
        .collect()
}

/// The setup that is measured: one function, one port, 8 queues.
pub fn setup(check_memory: bool) -> Setup {
    Setup { check_memory, ..Setup::default() }
}

/// A whole run, from power-up to quiet; how long it took. Nobody asks what the monitors saw.
///
/// # Errors
/// [`RunError`]; a frame that is missing at the end is a [`RunError::Card`] hang or shows in the count.
pub fn whole_run(mut card: Box<dyn Card>, setup: &Setup, wire: &[InFrame]) -> Result<(Duration, u64), RunError> {
    card.observe(false);
    let mut sink = Counting::default();
    let begin = Instant::now();
    let mut run = Run::start(card, setup)?;
    run.replay(&mut wire.iter(), &mut [].iter(), &mut sink)?;
    let took = begin.elapsed();
    run.finish()?;
    Ok((took, sink.frames))
}

/// What a steady run costs: time and heap allocations for each packet, bring-up and a warm-up left out.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    /// Wall time of one packet, ns.
    pub ns_per_packet: f64,
    /// Heap allocations in the measured part.
    pub allocations: u64,
    /// Packets in the measured part.
    pub packets: u64,
    /// How many of them came out at the other end.
    pub delivered: u64,
}

/// Which way frames go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Wire to host.
    Receive,
    /// Host to wire.
    Transmit,
}

/// Measure the model with its driver in steady state.
///
/// # Errors
/// [`RunError`].
pub fn model_steady(setup: &Setup, way: Way, len_bytes: usize, packets: usize) -> Result<Steady, RunError> {
    let frames = traffic(len_bytes, packets);
    let (wire, host): (Vec<InFrame>, Vec<HostFrame>) = match way {
        Way::Receive => (frames, Vec::new()),
        Way::Transmit => (Vec::new(), frames.into_iter().map(|frame| from_host(frame, setup)).collect()),
    };
    let mut card = Choice::named("model").make(&setup.shape).map_err(|error| unreachable_card(&error))?;
    // As in whole runs: what nobody takes is not recorded.
    card.observe(false);
    let mut run = Run::start(card, setup)?;
    let mut sink = Counting::default();
    // Once around: queues and pools take their size.
    run.replay(&mut wire.iter(), &mut host.iter(), &mut sink)?;
    let mut result = Ok(());
    let mut took = Duration::ZERO;
    let before = sink.frames;
    let counted = allocation_counter::measure(|| {
        let begin = Instant::now();
        result = run.replay(&mut wire.iter(), &mut host.iter(), &mut sink);
        took = begin.elapsed();
    });
    result?;
    run.finish()?;
    Ok(Steady {
        ns_per_packet: took.as_nanos() as f64 / packets as f64,
        allocations: counted.count_total,
        packets: packets as u64,
        delivered: sink.frames - before,
    })
}

/// The same frame, sent by the host; queues take turns.
fn from_host(frame: InFrame, setup: &Setup) -> HostFrame {
    HostFrame { func: FuncId(0), queue: (frame.index % u64::from(setup.shape.queues.max(1))) as u16, data: frame.data }
}

fn unreachable_card(error: &crate::execute::ExecuteError) -> RunError {
    RunError::Card(crate::card::CardError::Rtl { at: Time::ZERO, message: error.to_string() })
}

/// Median of some figures.
pub fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Best (least) of some figures.
pub fn best(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Half the distance of the quartiles, over the median.
pub fn spread(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |part: usize| sorted.get(sorted.len() * part / 4).copied().unwrap_or(f64::NAN);
    (at(3) - at(1)) / 2.0 / median(figures)
}

#[cfg(feature = "rtl")]
pub use with_rtl::{CardFigures, RtlFigures, card, rtl};

#[cfg(feature = "rtl")]
mod with_rtl {
    //! RTL against the bare loop.

    use std::any::Any;

    use anyhow::{Context, Result, anyhow, ensure};
    use models::qdma::Qdma;
    use rtl_bridge::tops::{self, Library, ShellShape};
    use rtl_bridge::verilated::{BareLoop, Recording, Simulation};

    use super::*;
    use crate::card::beats::RtlConfig;
    use crate::card::hybrid::HybridCard;
    use crate::card::rtl::RtlCard;
    use crate::card::{Knobs, qdma_config};

    /// One frame length, seconds for each whole run, opponents taking turns.
    #[derive(Clone, Debug)]
    pub struct RtlFigures {
        /// Frame length.
        pub len_bytes: usize,
        /// Frames in a run.
        pub frames: usize,
        /// Cycles of axis_aclk that were evaluated.
        pub cycles: u64,
        /// C++ over recorded pins.
        pub bare: Vec<f64>,
        /// Rust over recorded pins.
        pub pins: Vec<f64>,
        /// `hybrid`, host memory checks off.
        pub hybrid: Vec<f64>,
        /// `hybrid`, host memory checks on.
        pub hybrid_checked: Vec<f64>,
        /// `model`, host memory checks off.
        pub model: Vec<f64>,
    }

    impl RtlFigures {
        /// DESIGN section 9 (a): pins only from Rust over the bare loop, best against best.
        pub fn pins_ratio(&self) -> f64 {
            best(&self.bare) / best(&self.pins)
        }

        /// DESIGN section 9 (b): hybrid's packets/s over 1 / (1/bare + 1/model).
        pub fn hybrid_ratio(&self) -> f64 {
            (best(&self.bare) + best(&self.model)) / best(&self.hybrid)
        }

        /// The bare loop's speed, cycles of axis_aclk a second.
        pub fn bare_cycles_per_second(&self) -> f64 {
            self.cycles as f64 / best(&self.bare)
        }
    }

    /// One frame length on card `rtl`, seconds for each whole run, opponents taking turns.
    #[derive(Clone, Debug)]
    pub struct CardFigures {
        /// Frame length.
        pub len_bytes: usize,
        /// Frames in a run.
        pub frames: usize,
        /// Cycles of axis_aclk that were evaluated.
        pub cycles: u64,
        /// C++ over recorded pins of the whole card.
        pub bare: Vec<f64>,
        /// Rust over recorded pins of the whole card.
        pub pins: Vec<f64>,
        /// `rtl`, host memory checks off.
        pub rtl: Vec<f64>,
        /// C++ over recorded pins of the shell alone, the same frames.
        pub shell: Vec<f64>,
    }

    impl CardFigures {
        /// DESIGN section 9 (a): pins only from Rust over the bare loop, best against best.
        pub fn pins_ratio(&self) -> f64 {
            best(&self.bare) / best(&self.pins)
        }

        /// The whole run, driver and host memory in it, over the bare loop, best against best.
        pub fn rtl_ratio(&self) -> f64 {
            best(&self.bare) / best(&self.rtl)
        }

        /// Of the card's evaluation time, what the shell alone does not take.
        pub fn engine_share(&self) -> f64 {
            1.0 - best(&self.shell) / best(&self.bare)
        }

        /// Cycles of axis_aclk a second of the whole run.
        pub fn cycles_per_second(&self) -> f64 {
            self.cycles as f64 / best(&self.rtl)
        }
    }

    fn config(setup: &Setup) -> RtlConfig {
        RtlConfig { max_pkt_len: setup.shape.max_pkt_len, ..RtlConfig::default() }
    }

    fn hybrid_card(library: &Library, setup: &Setup) -> Result<Box<dyn Card>> {
        Ok(Box::new(HybridCard::new(library, &config(setup), Qdma::new(qdma_config(&setup.shape)))?))
    }

    fn rtl_card(library: &Library, setup: &Setup) -> Result<Box<dyn Card>> {
        Ok(Box::new(RtlCard::new(library, &config(setup), &Knobs::default())?))
    }

    /// The RTL in a card.
    fn simulation(card: &mut dyn Card) -> Result<&mut Simulation> {
        let card: &mut dyn Any = card;
        if card.is::<HybridCard>() {
            return card
                .downcast_mut::<HybridCard>()
                .map(|hybrid| hybrid.shell().pins.simulation())
                .context("no hybrid");
        }
        card.downcast_mut::<RtlCard>().map(|rtl| rtl.pins().simulation()).context("no RTL in this card")
    }

    /// Record the pins of one run of a fresh card; with it the cycles of axis_aclk.
    fn record(mut card: Box<dyn Card>, setup: &Setup, wire: &[InFrame]) -> Result<(Recording, u64)> {
        simulation(card.as_mut())?.record_pins();
        let mut run = Run::start(card, setup)?;
        let mut sink = Counting::default();
        run.replay(&mut wire.iter(), &mut [].iter(), &mut sink)?;
        ensure!(sink.frames == wire.len() as u64, "{} of {} frames came through", sink.frames, wire.len());
        let recording = run.bench().card(|card| Ok::<_, anyhow::Error>(simulation(card)?.take_recording()))?;
        // axis_aclk rises at multiples of its period; other clocks' edges that fall there are evaluated with it.
        let cycles =
            recording.times_ps().filter(|time| time.is_multiple_of(models::time::Clock::AXIS.num)).count() as u64;
        Ok((recording, cycles))
    }

    /// Play recorded pins into a fresh card: seconds.
    fn play(mut card: Box<dyn Card>, recording: &Recording, bare: bool) -> Result<f64> {
        let simulation = simulation(card.as_mut())?;
        let begin;
        if bare {
            let replay = BareLoop::new(recording, simulation);
            begin = Instant::now();
            replay.run(simulation).map_err(|stopped| anyhow!("{stopped:?}"))?;
        } else {
            begin = Instant::now();
            recording.play(simulation).map_err(|stopped| anyhow!("{stopped:?}"))?;
        }
        Ok(begin.elapsed().as_secs_f64())
    }

    /// Measure one length, `rounds` times, opponents taking turns.
    ///
    /// # Errors
    /// The RTL stopped, or frames are missing.
    pub fn rtl(len_bytes: usize, frames: usize, rounds: usize) -> Result<RtlFigures> {
        let library = tops::shell(&ShellShape::default(), &|_, _, _| {})?;
        let (fast, checked) = (setup(false), setup(true));
        let wire = traffic(len_bytes, frames);
        let (recording, cycles) = record(hybrid_card(&library, &fast)?, &fast, &wire)?;
        let mut figures = RtlFigures {
            len_bytes,
            frames,
            cycles,
            bare: Vec::new(),
            pins: Vec::new(),
            hybrid: Vec::new(),
            hybrid_checked: Vec::new(),
            model: Vec::new(),
        };
        for _ in 0..rounds {
            figures.bare.push(play(hybrid_card(&library, &fast)?, &recording, true)?);
            figures.pins.push(play(hybrid_card(&library, &fast)?, &recording, false)?);
            figures.hybrid.push(whole_run(hybrid_card(&library, &fast)?, &fast, &wire)?.0.as_secs_f64());
            let model = Choice::named("model").make(&fast.shape)?;
            figures.model.push(whole_run(model, &fast, &wire)?.0.as_secs_f64());
            figures.hybrid_checked.push(whole_run(hybrid_card(&library, &checked)?, &checked, &wire)?.0.as_secs_f64());
        }
        Ok(figures)
    }

    /// The same for card `rtl`.
    ///
    /// # Errors
    /// As [`rtl`].
    pub fn card(len_bytes: usize, frames: usize, rounds: usize) -> Result<CardFigures> {
        let shape = ShellShape::default();
        let (shell, whole) = (tops::shell(&shape, &|_, _, _| {})?, tops::card(&shape, &|_, _, _| {})?);
        let setup = setup(false);
        let wire = traffic(len_bytes, frames);
        let (shell_recording, _) = record(hybrid_card(&shell, &setup)?, &setup, &wire)?;
        let (recording, cycles) = record(rtl_card(&whole, &setup)?, &setup, &wire)?;
        let (bare, pins, rtl, shell_bare) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut figures = CardFigures { len_bytes, frames, cycles, bare, pins, rtl, shell: shell_bare };
        for _ in 0..rounds {
            figures.bare.push(play(rtl_card(&whole, &setup)?, &recording, true)?);
            figures.pins.push(play(rtl_card(&whole, &setup)?, &recording, false)?);
            figures.rtl.push(whole_run(rtl_card(&whole, &setup)?, &setup, &wire)?.0.as_secs_f64());
            figures.shell.push(play(hybrid_card(&shell, &setup)?, &shell_recording, true)?);
        }
        Ok(figures)
    }
}
