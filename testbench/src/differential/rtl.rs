//! The QDMA engine in RTL, alone, as an engine under test.
//!
//! The top is `qdma_engine`. Host port, registers and interrupts are those of card `rtl` ([`EnginePins`]); the shell's ends
//! of the three streams are here: frames in with their completions, frames out.

use std::collections::VecDeque;

use models::host_memory::HostMemory;
use models::stream::{C2hCompletion, C2hFrame, H2cFrame};
use models::time::{Clock, Time};
use regs::descriptor::Completion;
use regs::{FuncId, Qid};
use rtl_bridge::axis::{Sink, Source, Taken};
use rtl_bridge::clock::{Clocks, Timing};
use rtl_bridge::stall::{Profile, Stall};
use rtl_bridge::tops::{self, EngineShape, LoadError};
use rtl_bridge::verilated::{Input, Options, Output, PortError, Simulation, Stopped, WideInput, Window};

use super::engine::{Engine, Hold, Interrupt, Shape};
use crate::card::beats::StartError;
use crate::card::engine_pins::EnginePins;
use crate::card::host_port::{HostPortConfig, WriteChannel};
use crate::card::{CardError, Knobs};

/// Length of the reset, and from its end until the register port answers, cycles.
const RESET_CYCLES: u64 = 16;
/// Cycles after the reset in which the engine must have come to rest.
const SWEEP_CYCLES: u64 = 100_000;
/// Cycles without an answer after which a register access has failed.
const ACCESS_CYCLES: u64 = 100_000;

/// `ctrl_cmpt_type` of every completion that the shell sends. Source: shell.md section 11.4.
const HAS_PAYLOAD: u8 = 3;

/// How an engine is run.
#[derive(Clone, Debug, Default)]
pub struct RtlEngineConfig {
    /// The host, and how far the engine reads ahead.
    pub knobs: Knobs,
    /// On every stream, every channel of the host port, and interrupts.
    pub stalls: Profile,
    /// One planted fault, 11…20.
    pub fault: Option<u8>,
    /// Recorded window.
    pub waves: Option<Window>,
}

/// An engine that could not be had.
#[derive(Debug, thiserror::Error)]
pub enum RtlEngineError {
    /// It does not build.
    #[error(transparent)]
    Build(#[from] LoadError),
    /// It does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It stopped in its reset.
    #[error(transparent)]
    Stopped(#[from] CardError),
}

/// The engine, running.
pub struct RtlEngine {
    simulation: Simulation,
    clocks: Clocks,
    now: Time,
    engine: EnginePins,
    c2h: C2hSource,
    completions: CompletionSource,
    h2c: H2cSink,
    taken: VecDeque<H2cFrame>,
    error: Option<CardError>,
}

impl RtlEngine {
    /// An engine just out of power-up; its RTL is built if it is not there yet.
    ///
    /// # Errors
    /// [`RtlEngineError`].
    pub fn new(shape: &Shape, config: &RtlEngineConfig) -> Result<RtlEngine, RtlEngineError> {
        let top = EngineShape { queues: shape.queues, functions: shape.functions, faults: config.fault.is_some() };
        let library = tops::engine(&top, &|step, done, of| eprintln!("RTL engine: {step} ({done} of {of} done)"))?;
        let plusargs = config.fault.map(|fault| format!("+onic_fault={fault}")).into_iter().collect();
        let options = Options { plusargs, seed: shape.seed as u32, waves: config.waves.clone() };
        let mut engine = RtlEngine::start(library.start(&options).map_err(StartError::from)?, shape, config)?;
        engine.power_up()?;
        Ok(engine)
    }

    fn start(mut simulation: Simulation, shape: &Shape, config: &RtlEngineConfig) -> Result<RtlEngine, StartError> {
        let Clock { num, den, .. } = Clock::AXIS;
        let mut clocks = Clocks::new();
        let clk = simulation.input("clk")?;
        clocks.add(&mut simulation, clk, Timing { num, den, phase_ps: num });
        let stall = |name: &str| Stall::new(config.stalls, shape.seed, name);
        let host = HostPortConfig::new(&config.knobs, config.stalls, shape.seed);
        Ok(RtlEngine {
            clocks,
            now: Time::ZERO,
            engine: EnginePins::bind(&mut simulation, &host, &config.knobs.fetch.ahead())?,
            c2h: C2hSource::bind(&mut simulation, stall("c2h"))?,
            completions: CompletionSource::bind(&mut simulation, stall("cpl"))?,
            h2c: H2cSink::bind(&mut simulation, stall("h2c"))?,
            taken: VecDeque::new(),
            error: None,
            simulation,
        })
    }

    fn power_up(&mut self) -> Result<(), RtlEngineError> {
        let rstn = self.simulation.input::<bool>("rstn").map_err(StartError::from)?;
        self.simulation.set(rstn, false);
        self.run_clock(RESET_CYCLES)?;
        self.simulation.assertions(true);
        self.simulation.set(rstn, true);
        self.run_clock(RESET_CYCLES)?;
        // Memories are swept after the reset, and what comes meanwhile waits: a test that lets things settle would take
        // that for their end.
        for _ in 0..SWEEP_CYCLES {
            if self.engine.is_quiet(&self.simulation) {
                return Ok(());
            }
            self.run_clock(1)?;
        }
        let what = "qdma_engine: it is not idle after its reset".to_string();
        Err(CardError::Hang { cycles: SWEEP_CYCLES, at: self.now, what }.into())
    }

    fn run_clock(&mut self, cycles: u64) -> Result<(), CardError> {
        (0..cycles).try_for_each(|_| self.edge(|_| Ok(())))
    }

    /// What stopped it: an assertion, a broken rule of the host port or of a stream. Its time stands still then.
    pub fn error(&self) -> Option<&CardError> {
        self.error.as_ref()
    }

    /// The engine's pins: traffic over its host port.
    pub fn pins(&self) -> &EnginePins {
        &self.engine
    }

    /// One edge of the clock; `before` sets inputs and does what the edge takes.
    fn edge(&mut self, before: impl FnOnce(&mut RtlEngine) -> Result<(), CardError>) -> Result<(), CardError> {
        let stopped = |error: Box<Stopped>| CardError::Rtl { at: Time(error.time_ps), message: error.to_string() };
        let edge = self.clocks.begin(&mut self.simulation).map_err(stopped)?;
        self.now = Time(edge.time_ps);
        before(self)?;
        self.clocks.commit(&mut self.simulation, edge).map_err(stopped)
    }

    /// The next edge, unless the engine has stopped.
    fn step(&mut self, memory: &mut dyn HostMemory) {
        if self.error.is_none() {
            self.error = self.edge(|engine| engine.before_edge(memory)).err();
        }
    }

    fn before_edge(&mut self, memory: &mut dyn HostMemory) -> Result<(), CardError> {
        let simulation = &mut self.simulation;
        self.engine.before_edge(simulation, self.now, memory)?;
        let mut moved = self.c2h.step(simulation, &mut self.completions.waiting);
        moved |= self.completions.step(simulation);
        moved |= self.h2c.step(simulation, self.now, &mut self.taken)?;
        if moved {
            self.engine.note_move(self.now);
        }
        if self.engine.registers.waited_cycles() > ACCESS_CYCLES {
            let what = "qdma_engine.reg: a register access was not answered".to_string();
            return Err(CardError::Hang { cycles: ACCESS_CYCLES, at: self.now, what });
        }
        Ok(())
    }

    fn next_edge(&self) -> Time {
        Time(self.clocks.peek().time_ps)
    }
}

impl Engine for RtlEngine {
    fn name(&self) -> &'static str {
        "rtl"
    }

    fn now(&self) -> Time {
        self.now
    }

    /// A stopped engine reads all ones, as a device that has left the bus.
    fn read(&mut self, func: FuncId, offset: u32, memory: &mut dyn HostMemory) -> u32 {
        self.engine.registers.read(func, offset);
        loop {
            if let Some(value) = self.engine.registers.answer() {
                return value;
            }
            if self.error.is_some() {
                return u32::MAX;
            }
            self.step(memory);
        }
    }

    fn write(&mut self, func: FuncId, offset: u32, value: u32, _memory: &mut dyn HostMemory) {
        self.engine.post(func, offset, value);
    }

    fn advance(&mut self, until: Time, memory: &mut dyn HostMemory) {
        while self.error.is_none() && self.next_edge() <= until {
            self.step(memory);
        }
        self.now = self.now.max(until);
    }

    fn settle(&mut self, quiet_ps: u64, limit_ps: u64, memory: &mut dyn HostMemory) -> bool {
        let limit = self.now.saturating_add(limit_ps);
        self.engine.note_move(self.now);
        while self.error.is_none() {
            if self.engine.is_idle() && self.engine.silent_cycles(self.now) * Clock::AXIS.num > quiet_ps {
                return true;
            }
            if self.next_edge() > limit {
                return false;
            }
            self.step(memory);
        }
        false
    }

    fn receive(&mut self, frame: C2hFrame, completion: Option<C2hCompletion>) {
        let len = frame.data.len() as u16;
        self.c2h.waiting.push_back(Incoming { frame, len, completion });
    }

    fn receive_as(&mut self, frame: C2hFrame, ctrl_len: u16, completion: C2hCompletion) -> bool {
        self.c2h.waiting.push_back(Incoming { frame, len: ctrl_len, completion: Some(completion) });
        true
    }

    fn waiting(&self) -> usize {
        self.c2h.waiting.len() + usize::from(self.c2h.is_first)
    }

    fn hold(&mut self, place: Hold, on: bool) {
        match place {
            Hold::H2cStream => self.h2c.held = on,
            Hold::C2hStream => self.c2h.held = on,
            Hold::PayloadWrites => self.engine.host.shut(WriteChannel::Payload, on),
            Hold::CompletionWrites => self.engine.host.shut(WriteChannel::Completions, on),
        }
    }

    fn take_h2c(&mut self) -> Option<H2cFrame> {
        self.taken.pop_front()
    }

    fn take_interrupt(&mut self) -> Option<Interrupt> {
        let (func, vector, at) = self.engine.take_interrupt()?;
        Some(Interrupt { func, vector, at })
    }

    fn failed(&self) -> Option<String> {
        self.error.as_ref().map(ToString::to_string)
    }
}

/// A frame at the stream's end.
struct Incoming {
    frame: C2hFrame,
    /// `ctrl_len`.
    len: u16,
    completion: Option<C2hCompletion>,
}

/// `s_axis_c2h`.
struct C2hSource {
    source: Source,
    qid: Input<u16>,
    len: Input<u16>,
    has_cmpt: Input<bool>,
    waiting: VecDeque<Incoming>,
    /// Of the frame under way.
    completion: Option<C2hCompletion>,
    /// Its first beat was not taken yet.
    is_first: bool,
    /// Frames stop after their first beat.
    held: bool,
}

impl C2hSource {
    fn bind(simulation: &mut Simulation, stall: Stall) -> Result<C2hSource, PortError> {
        Ok(C2hSource {
            source: Source::bind(simulation, "s_axis_c2h_", 0, 1, stall)?,
            qid: simulation.input("s_axis_c2h_ctrl_qid")?,
            len: simulation.input("s_axis_c2h_ctrl_len")?,
            has_cmpt: simulation.input("s_axis_c2h_ctrl_has_cmpt")?,
            waiting: VecDeque::new(),
            completion: None,
            is_first: false,
            held: false,
        })
    }

    /// Before an edge. A frame's completion follows its last beat. True if a beat is taken.
    fn step(&mut self, simulation: &mut Simulation, completions: &mut VecDeque<C2hCompletion>) -> bool {
        if self.source.is_idle()
            && let Some(Incoming { mut frame, len, completion }) = self.waiting.pop_front()
        {
            simulation.set(self.qid, frame.qid.0);
            simulation.set(self.len, len);
            simulation.set(self.has_cmpt, completion.is_some());
            (self.completion, self.is_first) = (completion, true);
            if frame.data.is_empty() {
                // There is no beat without a byte.
                frame.data.push(0);
            }
            self.source.load(frame.data, false);
        }
        if self.source.is_quiet() {
            return false;
        }
        if self.held && !self.is_first && !self.source.is_presented() {
            self.source.rest(simulation);
            return false;
        }
        self.source.drive(simulation);
        let taken = self.source.look(simulation);
        self.is_first &= taken == Taken::Nothing;
        if taken == Taken::LastBeat {
            completions.extend(self.completion.take());
        }
        taken != Taken::Nothing
    }
}

/// `s_axis_cpl`. Layout of the data: shell.md section 11.4.
struct CompletionSource {
    tvalid: Input<bool>,
    tready: Output<bool>,
    tdata: WideInput,
    qid: Input<u16>,
    wait_pld_pkt_id: Input<u16>,
    stall: Stall,
    waiting: VecDeque<C2hCompletion>,
    /// The first of them is on the pins.
    offered: bool,
}

impl CompletionSource {
    fn bind(simulation: &mut Simulation, stall: Stall) -> Result<CompletionSource, PortError> {
        let kind: Input<u8> = simulation.input("s_axis_cpl_ctrl_cmpt_type")?;
        simulation.set(kind, HAS_PAYLOAD);
        Ok(CompletionSource {
            tvalid: simulation.input("s_axis_cpl_tvalid")?,
            tready: simulation.output("s_axis_cpl_tready")?,
            tdata: simulation.wide_input("s_axis_cpl_tdata", 0, 1)?,
            qid: simulation.input("s_axis_cpl_ctrl_qid")?,
            wait_pld_pkt_id: simulation.input("s_axis_cpl_ctrl_wait_pld_pkt_id")?,
            stall,
            waiting: VecDeque::new(),
            offered: false,
        })
    }

    /// Before an edge. True if a completion is taken.
    fn step(&mut self, simulation: &mut Simulation) -> bool {
        if !self.offered
            && let Some(completion) = self.waiting.front()
            && !self.stall.holds(false)
        {
            let C2hCompletion { qid: Qid(qid), len_bytes, pkt_id } = *completion;
            let user = Completion { qid, len_bytes, pkt_id, color: false, err: false };
            simulation.set_bytes(&self.tdata, &user.to_bytes());
            simulation.set(self.qid, completion.qid.0);
            simulation.set(self.wait_pld_pkt_id, completion.pkt_id);
            self.offered = true;
        }
        simulation.set(self.tvalid, self.offered);
        let taken = self.offered && simulation.get(self.tready);
        if taken {
            self.offered = false;
            self.waiting.pop_front();
        }
        taken
    }
}

/// `m_axis_h2c`.
struct H2cSink {
    sink: Sink,
    qid: Output<u16>,
    metadata: Output<u32>,
    /// Take nothing.
    held: bool,
}

impl H2cSink {
    fn bind(simulation: &mut Simulation, stall: Stall) -> Result<H2cSink, PortError> {
        Ok(H2cSink {
            sink: Sink::bind(simulation, "m_axis_h2c_", 0, 1, stall)?,
            qid: simulation.output("m_axis_h2c_tuser_qid")?,
            metadata: simulation.output("m_axis_h2c_tuser_mdata")?,
            held: false,
        })
    }

    /// Before an edge. True if a beat is taken.
    fn step(
        &mut self,
        simulation: &mut Simulation,
        now: Time,
        frames: &mut VecDeque<H2cFrame>,
    ) -> Result<bool, CardError> {
        let willing = !self.held;
        let taken = self.sink.step(simulation, |_| willing);
        let taken = taken.map_err(|error| CardError::Rtl { at: now, message: error.to_string() })?;
        if taken == Taken::LastBeat {
            let (data, err) = self.sink.take_frame(Vec::new());
            let (qid, metadata) = (Qid(simulation.get(self.qid)), simulation.get(self.metadata));
            frames.push_back(H2cFrame { data, qid, metadata, err });
        }
        Ok(taken != Taken::Nothing)
    }
}
