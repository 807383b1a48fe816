//! `rtl`: shell and QDMA in RTL, one top; only the host and the wire are Rust.
//!
//! ```text
//!   BAR0 ── register port ─► ┌───────────┐
//!   host memory ◄─ host port │ onic_card │ wire side ◄─► frames
//!   interrupts ◄─────────────└───────────┘ ◄── AXI-Lite ── BAR2
//! ```
//!
//! Wire side, BAR2 and the shell's monitors are the same code as `hybrid`'s ([`ShellPins`]), host port, BAR0 and interrupts
//! the same as those of the engine alone ([`EnginePins`]). Nothing here knows a descriptor.
//!
//! **Time.** Edge by edge. The engine's moderation timers count edges, so that time is passed without them only while the
//! engine says that it has nothing under way and no timer running (`qdma_idle_o`), and nothing has moved in the shell for
//! longer than anything takes there.
//!
//! **Registers.** A write to BAR0 is posted: it waits outside until the engine takes it. A read of either BAR pushes the
//! writes before it and runs until it is answered.
//!
//! **Frames inside** are counted by the monitors: in at a port or at the H2C stream, out at a port, at a drop, or when the
//! engine has written, or dropped, a frame's completion entry.

use models::host_memory::HostMemory;
use models::qdma::DropReason;
use models::time::{Clock, Time};
use regs::{Bar, FuncId, PortId, Qid};
use rtl_bridge::tops::{self, Library, ShellShape};
use rtl_bridge::verilated::{AnyOf, Output, PortError, Simulation};

use super::beats::{AXIS, RtlConfig, Runs, ShellPins, StartError, TapKind};
use super::engine_pins::EnginePins;
use super::host_port::HostPortConfig;
use super::{Card, CardError, Choice, DmaCounts, Knobs, Observation, Shape, Stalls, Stop, WireFrame};
use crate::execute::ExecuteError;

/// For so many cycles without a sign at any pin the card may be about to do something all the same, descriptors that a
/// doorbell has just announced among it.
const SETTLE_CYCLES: u64 = 64;

/// The card in RTL.
pub struct RtlCard {
    pins: ShellPins,
    engine: EnginePins,
    monitors: Monitors,
    /// Beats of the C2H frame at hand.
    runs: Runs,
    lost: Lost,
    /// Frames that the engine gave to the shell.
    h2c_sent: u64,
}

/// The engine's own monitors and those of its streams, each one cycle after what it shows. Source: rtl/top/onic_card.sv.
struct Monitors {
    any: Option<AnyOf>,
    c2h_beat: Output<bool>,
    c2h_last: Output<bool>,
    c2h_qid: Output<u16>,
    h2c_beat: Output<bool>,
    h2c_last: Output<bool>,
    cmpt_entry: Output<bool>,
    cmpt_entry_err: Output<bool>,
    cmpt_drop: Output<bool>,
    cmpt_drop_reason: Output<u8>,
    h2c_drop: Output<bool>,
}

/// Frames that the engine lost.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    /// C2H: a completion entry with the error bit is all that came of it.
    errors: u64,
    /// C2H without a completion entry, by `mon_cmpt_drop_reason`.
    completions: [u64; 16],
    /// Descriptors of which no frame came.
    h2c: u64,
}

/// The card that a choice names, its RTL built if it is not there yet.
///
/// # Errors
/// [`ExecuteError`].
pub fn make(choice: &Choice, shape: &Shape) -> Result<Box<dyn Card>, ExecuteError> {
    let config = RtlConfig::of(&choice.rtl, shape)?;
    if config.tap.is_some_and(|tap| tap.kind != TapKind::HoleInKeep) {
        let why =
            "--tap disturbs the stream between shell and QDMA, which card `rtl` keeps inside; only keep:N works there";
        return Err(ExecuteError::Card(why.into()));
    }
    let library =
        library(&RtlConfig::top_of(&choice.rtl, shape)).map_err(|error| ExecuteError::Build(error.to_string()))?;
    let card = RtlCard::new(&library, &config, &choice.rtl.knobs);
    Ok(Box::new(card.map_err(|error| ExecuteError::Card(error.to_string()))?))
}

/// The card of a shape; a build reports its steps as lines on stderr.
fn library(top: &ShellShape) -> Result<Library, tops::LoadError> {
    let size = format!("{}x{}", top.functions, top.ports);
    tops::card(top, &|step, done, of| eprintln!("RTL card {size}: {step} ({done} of {of} done)"))
}

impl RtlCard {
    /// Start a card from `library`.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn new(library: &Library, config: &RtlConfig, knobs: &Knobs) -> Result<RtlCard, StartError> {
        let mut pins = ShellPins::start(library, config)?;
        let host = HostPortConfig::new(knobs, config.stalls, config.seed);
        let engine = EnginePins::bind(&mut pins.simulation, &host, &knobs.fetch.ahead())?;
        let monitors = Monitors::bind(&pins.simulation)?;
        Ok(RtlCard { pins, engine, monitors, runs: Runs::default(), lost: Lost::default(), h2c_sent: 0 })
    }

    /// Wire, BAR2, clocks: for waves, coverage and log.
    pub fn pins(&mut self) -> &mut ShellPins {
        &mut self.pins
    }

    /// Host port, BAR0, interrupts.
    pub fn engine(&self) -> &EnginePins {
        &self.engine
    }

    /// The next edge, or a jump over many while nothing moves before `until`.
    #[inline]
    fn step(&mut self, until: Time, memory: &mut dyn HostMemory) -> Result<(), CardError> {
        if self.pins.is_quiet() && self.engine.is_quiet(&self.pins.simulation) {
            self.pins.skip(until);
        }
        let edge = self.pins.begin()?;
        if edge.has(AXIS) {
            self.before_axis(memory)?;
        }
        self.pins.before_edge(edge)?;
        self.pins.commit(edge)
    }

    #[inline]
    fn before_axis(&mut self, memory: &mut dyn HostMemory) -> Result<(), CardError> {
        self.pins.before_axis();
        if self.monitors.any.as_ref().is_none_or(|pulses| self.pins.simulation.any(pulses)) {
            self.look_at_monitors();
        }
        let (pins, engine) = (&mut self.pins, &mut self.engine);
        if engine.before_edge(&mut pins.simulation, pins.now, memory)? {
            pins.watch.moved();
        } else if engine.registers.waited_cycles() > pins.watch.hang_cycles / 2 {
            engine.registers.reset(&mut pins.simulation);
            return Err(pins.hang("reg: a register access was not answered"));
        }
        Ok(())
    }

    #[inline(never)]
    fn look_at_monitors(&mut self) {
        let (pins, monitors) = (&mut self.pins, &self.monitors);
        let simulation = &pins.simulation;
        if simulation.get(monitors.c2h_beat) {
            pins.watch.moved();
            self.runs.note(Time(pins.now.0 - Clock::AXIS.num));
            if simulation.get(monitors.c2h_last) {
                if pins.observes {
                    pins.observations.extend(self.runs.crossing(Qid(simulation.get(monitors.c2h_qid))));
                }
                self.runs.clear();
            }
        }
        if simulation.get(monitors.h2c_beat) {
            if simulation.get(monitors.h2c_last) {
                self.h2c_sent += 1;
                pins.watch.entered();
            } else {
                pins.watch.moved();
            }
        }
        if simulation.get(monitors.cmpt_entry) {
            pins.watch.left();
            self.lost.errors += u64::from(simulation.get(monitors.cmpt_entry_err));
        }
        if simulation.get(monitors.cmpt_drop) {
            pins.watch.left();
            self.lost.completions[usize::from(simulation.get(monitors.cmpt_drop_reason) & 15)] += 1;
        }
        if simulation.get(monitors.h2c_drop) {
            pins.watch.moved();
            self.lost.h2c += 1;
        }
        self.engine.note_move(pins.now);
    }

    /// All edges up to `until`, or, if `stops`, up to the first interrupt or wire frame, which it returns.
    fn edges(&mut self, until: Time, stops: bool, memory: &mut dyn HostMemory) -> Result<Option<Stop>, CardError> {
        loop {
            if stops && let Some(stop) = self.stop() {
                return Ok(Some(stop));
            }
            if self.pins.next_edge().0 > until {
                self.pins.pass(until);
                return Ok(None);
            }
            self.step(until, memory)?;
        }
    }

    /// An interrupt, or a wire frame that nobody was told of.
    #[inline]
    fn stop(&mut self) -> Option<Stop> {
        let interrupt = self.engine.peek_interrupt().map(|(func, vector, _)| Stop::Interrupt { func, vector });
        interrupt.or_else(|| self.pins.take_new_out().map(Stop::Wire))
    }

    /// An access to the shell, from its first beat to the answer; the writes posted before it go first.
    fn shell_access(&mut self, offset: u32, value: Option<u32>, memory: &mut dyn HostMemory) -> Result<u32, CardError> {
        while !self.engine.registers.is_idle() {
            self.step(Time::NEVER, memory)?;
        }
        self.pins.access(offset, value);
        loop {
            self.step(Time::NEVER, memory)?;
            if let Some(data) = self.pins.answer(offset)? {
                return Ok(data);
            }
        }
    }

    fn engine_read(&mut self, func: FuncId, offset: u32, memory: &mut dyn HostMemory) -> Result<u32, CardError> {
        self.engine.registers.read(func, offset);
        self.pins.watch.moved();
        loop {
            self.step(Time::NEVER, memory)?;
            if let Some(data) = self.engine.registers.answer() {
                return Ok(data);
            }
        }
    }
}

impl Monitors {
    fn bind(simulation: &Simulation) -> Result<Monitors, PortError> {
        let c2h_beat = simulation.output("mon_c2h_beat_valid")?;
        let h2c_beat = simulation.output("mon_h2c_beat_valid")?;
        let cmpt_entry = simulation.output("mon_cmpt_entry_valid")?;
        let cmpt_drop = simulation.output("mon_cmpt_drop_valid")?;
        let h2c_drop = simulation.output("mon_h2c_drop_qdma_valid")?;
        Ok(Monitors {
            any: simulation.any_of(&[c2h_beat, h2c_beat, cmpt_entry, cmpt_drop, h2c_drop]),
            c2h_beat,
            c2h_last: simulation.output("mon_c2h_beat_last")?,
            c2h_qid: simulation.output("mon_c2h_beat_qid")?,
            h2c_beat,
            h2c_last: simulation.output("mon_h2c_beat_last")?,
            cmpt_entry,
            cmpt_entry_err: simulation.output("mon_cmpt_entry_err")?,
            cmpt_drop,
            cmpt_drop_reason: simulation.output("mon_cmpt_drop_reason")?,
            h2c_drop,
        })
    }
}

/// `mon_cmpt_drop_reason`. Source: rtl/qdma/qdma_pkg.sv, `drop_e`.
fn drop_reason(reason: usize) -> DropReason {
    match reason {
        1 => DropReason::NoCompletion,
        3 => DropReason::CompletionInvalidQueue,
        4 => DropReason::CompletionRingFull,
        5 => DropReason::TooLong,
        6 => DropReason::QueueStopped,
        7 => DropReason::DmaFault,
        _ => DropReason::InvalidQueue,
    }
}

impl Card for RtlCard {
    fn name(&self) -> &str {
        "rtl"
    }

    fn reset(&mut self) -> Result<(), CardError> {
        self.engine.reset(&mut self.pins.simulation);
        self.runs.clear();
        self.pins.reset()
    }

    fn now(&self) -> Time {
        self.pins.now()
    }

    fn advance(&mut self, until: Time, memory: &mut dyn HostMemory) -> Result<Stop, CardError> {
        Ok(self.edges(until, true, memory)?.unwrap_or(Stop::Deadline))
    }

    fn mmio_read(
        &mut self,
        func: FuncId,
        bar: Bar,
        offset: u32,
        memory: &mut dyn HostMemory,
    ) -> Result<u32, CardError> {
        match bar {
            Bar::Shell => self.shell_access(offset, None, memory),
            Bar::Qdma => self.engine_read(func, offset, memory),
        }
    }

    /// A write to the shell takes until its answer, so that a refusal has somebody to go to.
    fn mmio_write(
        &mut self,
        func: FuncId,
        bar: Bar,
        offset: u32,
        value: u32,
        memory: &mut dyn HostMemory,
    ) -> Result<(), CardError> {
        match bar {
            Bar::Shell => self.shell_access(offset, Some(value), memory).map(|_| ()),
            Bar::Qdma => {
                self.engine.post(func, offset, value);
                self.pins.watch.moved();
                Ok(())
            }
        }
    }

    fn take_interrupt(&mut self) -> Option<(FuncId, u16, Time)> {
        self.engine.take_interrupt()
    }

    fn gate_wire(&mut self, gated: bool) {
        self.pins.gate_wire(gated);
    }

    fn wire_in(&mut self, port: PortId, frame: WireFrame) {
        self.pins.wire_in(port, frame);
    }

    fn wire_queued(&self, port: PortId) -> usize {
        self.pins.wire_queued(port)
    }

    fn wire_out(&mut self, port: PortId) -> Option<WireFrame> {
        self.pins.wire_out(port)
    }

    fn observe(&mut self, on: bool) {
        self.pins.observe(on);
    }

    fn observation(&mut self) -> Option<Observation> {
        self.pins.observation()
    }

    fn drops(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.lost.completions.iter().enumerate().for_each(|(reason, &frames)| each(drop_reason(reason).name(), frames));
        each(DropReason::DmaFault.name(), self.lost.errors);
        each(DropReason::ZeroLength.name(), self.lost.h2c);
    }

    /// What is still in the engine it has not taken: a queue that is stopped takes it back.
    fn dma_counts(&mut self) -> Option<DmaCounts> {
        let Lost { errors, h2c, .. } = self.lost;
        Some(DmaCounts { h2c_taken: self.h2c_sent + h2c, h2c_lost: h2c, c2h_error_entries: errors })
    }

    fn stalls(&self) -> Stalls {
        self.pins.stalls()
    }

    fn recycle(&mut self) -> Vec<u8> {
        self.pins.recycle()
    }

    fn give_back(&mut self, buffer: Vec<u8>) {
        self.pins.give_back(buffer);
    }

    fn idle(&self) -> bool {
        let busy = self.pins.is_busy() || !self.engine.is_idle() || self.pins.watch.quiet_cycles <= SETTLE_CYCLES;
        let still = self.pins.watch.is_quiet() && self.engine.is_quiet(&self.pins.simulation);
        !busy && (self.pins.inside() == 0 || still)
    }

    fn close(&mut self) {
        self.pins.close();
    }
}
