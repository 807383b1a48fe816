//! What speed is measured by: the model with its driver, and RTL against a bare C++ loop over the same pins.
//!
//! A figure means something only as a ratio within one run: machines are shared and noisy. Opponents therefore take turns,
//! and the loop that RTL is held against is as fast as one can be: it plays the pin values that a run recorded, evaluation
//! by evaluation, on the same library, and decides nothing. Every run is timed in stretches ([`Runs`]), since a shared
//! machine is calm for a few milliseconds often and for a whole run seldom.

#[cfg(feature = "rtl")]
pub mod cocotb;
pub mod driver;
#[cfg(feature = "rtl")]
pub mod line_rate;

use std::time::Instant;

use models::observation::Observation;
use models::time::Time;
use regs::{FuncId, PortId};

use crate::card::{Choice, WireFrame};
use crate::frames;
use crate::run::{HostFrame, InFrame, Run, RunError, Setup, Sink};

/// Frame lengths measured, FCS left out.
pub const LENGTHS: [usize; 3] = [60, 512, 1514];

/// In how many stretches a run is timed.
const STRETCHES: usize = 128;

/// Seconds of each stretch of some runs that do the same work, in the order of the runs.
#[derive(Clone, Debug, Default)]
pub struct Runs(Vec<Vec<f64>>);

impl Runs {
    /// Seconds of a run at its best: of each stretch the shortest time that it took in any of the runs, summed.
    pub fn best(&self) -> f64 {
        let stretches = self.0.iter().map(Vec::len).min().unwrap_or(0);
        let shortest = |at: usize| self.0.iter().filter_map(|run| run.get(at)).copied().fold(f64::INFINITY, f64::min);
        (0..stretches).map(shortest).sum()
    }

    /// Seconds of each whole run.
    pub fn totals(&self) -> Vec<f64> {
        self.0.iter().map(|run| run.iter().sum()).collect()
    }

    #[cfg(feature = "rtl")]
    fn push(&mut self, run: Vec<f64>) {
        self.0.push(run);
    }
}

impl FromIterator<Vec<f64>> for Runs {
    fn from_iter<T: IntoIterator<Item = Vec<f64>>>(runs: T) -> Self {
        Self(runs.into_iter().collect())
    }
}

/// Times the stretches of one run.
struct Stopwatch {
    began: Instant,
    stretches: Vec<f64>,
}

impl Stopwatch {
    /// It runs from now on.
    fn start() -> Self {
        // One more: the tail of a run, when its last frame is through.
        Self { stretches: Vec::with_capacity(STRETCHES + 1), began: Instant::now() }
    }

    /// A stretch ends and the next begins.
    fn lap(&mut self) {
        let now = Instant::now();
        self.stretches.push((now - self.began).as_secs_f64());
        self.began = now;
    }
}

/// A run's frames are counted and dropped, and its stretches timed: one ends at each so many frames.
struct Counting {
    frames: u64,
    stretch_frames: u64,
    stopwatch: Stopwatch,
}

impl Counting {
    /// For a run of so many frames, which begins now.
    fn start(frames: usize) -> Self {
        Self { frames: 0, stretch_frames: frames.div_ceil(STRETCHES).max(1) as u64, stopwatch: Stopwatch::start() }
    }

    fn count(&mut self) {
        self.frames += 1;
        if self.frames.is_multiple_of(self.stretch_frames) {
            self.stopwatch.lap();
        }
    }

    /// The run is over.
    fn end(mut self) -> Vec<f64> {
        self.stopwatch.lap();
        self.stopwatch.stretches
    }
}

impl Sink for Counting {
    fn delivered(&mut self, _: FuncId, _: u16, _: Time, _: &mut dyn Iterator<Item = &[u8]>) {
        self.count();
    }

    fn sent(&mut self, _: PortId, frame: WireFrame) -> Option<Vec<u8>> {
        self.count();
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

/// What a steady run costs: time and heap allocations, bring-up and a warm-up left out.
#[derive(Clone, Debug)]
pub struct Steady {
    /// Seconds of its stretches.
    pub stretches: Vec<f64>,
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
    // Once around: queues and pools take their size.
    run.replay(&mut wire.iter(), &mut host.iter(), &mut Counting::start(packets))?;
    let mut sink = Counting::start(packets);
    let mut result = Ok(());
    let counted = allocation_counter::measure(|| {
        sink.stopwatch.began = Instant::now();
        result = run.replay(&mut wire.iter(), &mut host.iter(), &mut sink);
    });
    result?;
    let (delivered, stretches) = (sink.frames, sink.end());
    run.finish()?;
    Ok(Steady { stretches, allocations: counted.count_total, packets: packets as u64, delivered })
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
    use crate::card::{Card, Knobs, qdma_config};

    /// One frame length, opponents taking turns.
    #[derive(Clone, Debug)]
    pub struct RtlFigures {
        /// Frame length.
        pub len_bytes: usize,
        /// Frames in a run.
        pub frames: usize,
        /// Cycles of axis_aclk that were evaluated.
        pub cycles: u64,
        /// C++ over recorded pins.
        pub bare: Runs,
        /// Rust over recorded pins.
        pub pins: Runs,
        /// `hybrid`, host memory checks off.
        pub hybrid: Runs,
        /// `hybrid`, host memory checks on.
        pub hybrid_checked: Runs,
        /// `model`, host memory checks off.
        pub model: Runs,
    }

    impl RtlFigures {
        /// DESIGN section 9 (a): pins only from Rust over the bare loop, best against best.
        pub fn pins_ratio(&self) -> f64 {
            self.bare.best() / self.pins.best()
        }

        /// DESIGN section 9 (b): hybrid's packets/s over 1 / (1/bare + 1/model).
        pub fn hybrid_ratio(&self) -> f64 {
            (self.bare.best() + self.model.best()) / self.hybrid.best()
        }

        /// The bare loop's speed in its best whole run, cycles of axis_aclk a second.
        pub fn bare_cycles_per_second(&self) -> f64 {
            self.cycles as f64 / best(&self.bare.totals())
        }
    }

    /// One frame length on card `rtl`, opponents taking turns.
    #[derive(Clone, Debug)]
    pub struct CardFigures {
        /// Frame length.
        pub len_bytes: usize,
        /// Frames in a run.
        pub frames: usize,
        /// Cycles of axis_aclk that were evaluated.
        pub cycles: u64,
        /// C++ over recorded pins of the whole card.
        pub bare: Runs,
        /// Rust over recorded pins of the whole card.
        pub pins: Runs,
        /// `rtl`, host memory checks off.
        pub rtl: Runs,
        /// C++ over recorded pins of the shell alone, the same frames.
        pub shell: Runs,
    }

    impl CardFigures {
        /// DESIGN section 9 (a): pins only from Rust over the bare loop, best against best.
        pub fn pins_ratio(&self) -> f64 {
            self.bare.best() / self.pins.best()
        }

        /// The whole run, driver and host memory in it, over the bare loop, best against best.
        pub fn rtl_ratio(&self) -> f64 {
            self.bare.best() / self.rtl.best()
        }

        /// Of the card's evaluation time, what the shell alone does not take.
        pub fn engine_share(&self) -> f64 {
            1.0 - self.shell.best() / self.bare.best()
        }

        /// Cycles of axis_aclk a second of the best whole run.
        pub fn cycles_per_second(&self) -> f64 {
            self.cycles as f64 / best(&self.rtl.totals())
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
        let mut sink = Counting::start(wire.len());
        run.replay(&mut wire.iter(), &mut [].iter(), &mut sink)?;
        ensure!(sink.frames == wire.len() as u64, "{} of {} frames came through", sink.frames, wire.len());
        let recording = run.bench().card(|card| Ok::<_, anyhow::Error>(simulation(card)?.take_recording()))?;
        // axis_aclk rises at multiples of its period; other clocks' edges that fall there are evaluated with it.
        let cycles =
            recording.times_ps().filter(|time| time.is_multiple_of(models::time::Clock::AXIS.num)).count() as u64;
        Ok((recording, cycles))
    }

    /// Play recorded pins into a fresh card: seconds of the stretches.
    fn play(mut card: Box<dyn Card>, recording: &Recording, bare: bool) -> Result<Vec<f64>> {
        let simulation = simulation(card.as_mut())?;
        let mut stopwatch;
        let played = if bare {
            let replay = BareLoop::new(recording, simulation, STRETCHES);
            stopwatch = Stopwatch::start();
            replay.run(simulation, || stopwatch.lap())
        } else {
            stopwatch = Stopwatch::start();
            recording.play(simulation, STRETCHES, || stopwatch.lap())
        };
        played.map_err(|stopped| anyhow!("{stopped:?}"))?;
        Ok(stopwatch.stretches)
    }

    /// A whole run, from power-up to quiet: seconds of its stretches. Nobody asks what the monitors saw.
    ///
    /// # Errors
    /// [`RunError`].
    fn whole_run(mut card: Box<dyn Card>, setup: &Setup, wire: &[InFrame]) -> Result<Vec<f64>, RunError> {
        card.observe(false);
        let mut sink = Counting::start(wire.len());
        let mut run = Run::start(card, setup)?;
        run.replay(&mut wire.iter(), &mut [].iter(), &mut sink)?;
        let stretches = sink.end();
        run.finish()?;
        Ok(stretches)
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
            bare: Runs::default(),
            pins: Runs::default(),
            hybrid: Runs::default(),
            hybrid_checked: Runs::default(),
            model: Runs::default(),
        };
        for _ in 0..rounds {
            figures.bare.push(play(hybrid_card(&library, &fast)?, &recording, true)?);
            figures.pins.push(play(hybrid_card(&library, &fast)?, &recording, false)?);
            figures.hybrid.push(whole_run(hybrid_card(&library, &fast)?, &fast, &wire)?);
            let model = Choice::named("model").make(&fast.shape)?;
            figures.model.push(whole_run(model, &fast, &wire)?);
            figures.hybrid_checked.push(whole_run(hybrid_card(&library, &checked)?, &checked, &wire)?);
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
        let mut figures = CardFigures {
            len_bytes,
            frames,
            cycles,
            bare: Runs::default(),
            pins: Runs::default(),
            rtl: Runs::default(),
            shell: Runs::default(),
        };
        for _ in 0..rounds {
            figures.bare.push(play(rtl_card(&whole, &setup)?, &recording, true)?);
            figures.pins.push(play(rtl_card(&whole, &setup)?, &recording, false)?);
            figures.rtl.push(whole_run(rtl_card(&whole, &setup)?, &setup, &wire)?);
            figures.shell.push(play(hybrid_card(&shell, &setup)?, &shell_recording, true)?);
        }
        Ok(figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_at_its_best_takes_each_stretch_from_its_quickest_run() {
        let runs: Runs = [vec![1.0, 5.0, 2.0], vec![3.0, 1.0, 4.0]].into_iter().collect();
        assert_eq!((runs.best(), runs.totals()), (4.0, vec![8.0, 8.0]));
    }
}
