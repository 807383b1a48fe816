//! What every top with our shell in it has: clocks, reset, wire side, registers, monitors.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use models::observation::{Fate, Observation, Point};
use models::time::Time;
use regs::{FuncId, PortId};
use rtl_bridge::axis::Taken;
use rtl_bridge::clock::{Clocks, Edge, Timing};
use rtl_bridge::stall::Stall;
use rtl_bridge::tops::Library;
use rtl_bridge::verilated::{AnyOf, Input, Options, Output, PortError, Recording, Simulation};

use super::config::RESET_CYCLES;
use super::monitors::{FuncMonitor, pulses, tx_fate};
use super::registers::Registers;
use super::watch::Watch;
use super::wire::{HotPort, Port, Rest, recycled};
use super::{AXIL, AXIS, CMAC, RtlConfig, StartError, optional, protocol_error, rtl_error};
use crate::card::{CardError, Stalls, WireFrame};

/// All clocks meet again after this time: 128, 64 and 165 cycles.
const COMMON_PERIOD_PS: u64 = 512_000;
/// From the end of the power-up reset, in `axil_aclk` cycles, until all modules are out of it (105).
const RESET_DONE_CYCLES: u64 = 130;
/// Ports that a shell can have.
const PORTS_MAX: usize = 2;

/// A top with our shell in it, but for what it has to do with a QDMA. In the order of use: what every edge looks at comes
/// first, close together.
#[repr(C)]
pub struct ShellPins {
    pub(in crate::card) simulation: Simulation,
    pub(in crate::card) now: Time,
    pub(in crate::card) watch: Watch,
    gated: bool,
    /// A port at which a frame came out since the last [`ShellPins::take_new_out`].
    new_out: Option<PortId>,
    /// Pulses of the monitors in `axis_aclk`.
    monitors: Option<AnyOf>,
    hot_ports: [HotPort; PORTS_MAX],
    clocks: Clocks,
    ports: Vec<Port>,
    funcs: Vec<FuncMonitor>,
    h2c_drop: Option<Output<bool>>,
    registers: Registers,
    pub(in crate::card) observations: VecDeque<Observation>,
    /// They are kept.
    pub(in crate::card) observes: bool,
    spare: Vec<Vec<u8>>,
    powerup_rstn: Input<bool>,
    reset_cycles: u64,
    /// For reports.
    top_module: String,
    recording: Option<Arc<Mutex<Recording>>>,
    /// Written when the top goes.
    coverage: Option<PathBuf>,
}

impl ShellPins {
    /// Start a top; call [`ShellPins::reset`] before anything else.
    pub(in crate::card) fn start(library: &Library, config: &RtlConfig) -> Result<ShellPins, StartError> {
        let options =
            Options { plusargs: config.plusargs.clone(), seed: sub_seed(config.seed), waves: config.waves.clone() };
        let mut simulation = library.start(&options)?;
        if config.recording.is_some() {
            simulation.record_pins();
        }
        let clocks = add_clocks(&mut simulation, config)?;
        for (name, value) in [("cfg_min_pkt_len", config.min_pkt_len), ("cfg_max_pkt_len", config.max_pkt_len)] {
            let pin = simulation.input::<u16>(name)?;
            simulation.set(pin, value);
        }
        // To Verilator a clock that is high at the first evaluation has not risen: the first edge, and a reset of one cycle
        // with it, would be lost.
        simulation.eval(0)?;
        let ports = (0..config.ports)
            .map(|port| Port::bind(&mut simulation, config, PortId(port)))
            .collect::<Result<Vec<_>, _>>()?;
        let funcs = (0..config.functions).map(|func| FuncMonitor::bind(&simulation, func, config.functions));
        let funcs = funcs.collect::<Result<Option<Vec<_>>, _>>()?.unwrap_or_default();
        let h2c_drop = optional(simulation.output("mon_h2c_drop_valid"))?;
        let registers = Registers::bind(&simulation, Stall::new(config.stalls, config.seed, "axil"))?;
        Ok(ShellPins {
            now: Time::ZERO,
            watch: Watch::new(config.hang_cycles),
            gated: true,
            new_out: None,
            monitors: pulses(&simulation, &funcs, &ports, h2c_drop, true),
            hot_ports: std::array::from_fn(|port| HotPort::new(ports.get(port), &simulation)),
            clocks,
            ports,
            funcs,
            h2c_drop,
            registers,
            observations: VecDeque::new(),
            observes: true,
            spare: Vec::new(),
            powerup_rstn: simulation.input("powerup_rstn")?,
            reset_cycles: config.reset_cycles.max(1),
            top_module: library.top_module(),
            recording: config.recording.clone(),
            coverage: config.coverage.clone(),
            simulation,
        })
    }

    /// Power-up reset; ends when all modules are out of it. Frames inside are gone, those queued at the wire wait. Who else
    /// is at the pins has forgotten what was under way.
    pub(in crate::card) fn reset(&mut self) -> Result<(), CardError> {
        self.forget();
        self.simulation.set(self.powerup_rstn, false);
        self.run_clocks(self.reset_cycles)?;
        self.simulation.set(self.powerup_rstn, true);
        // A short reset is made longer by each module's own generator, and takes a while to reach every clock domain.
        self.run_clocks(RESET_CYCLES.saturating_sub(self.reset_cycles))?;
        // Each clock domain has been in reset now; before that, assertions judge random contents.
        self.simulation.assertions(true);
        self.run_clocks(RESET_DONE_CYCLES)?;
        self.watch.moved();
        Ok(())
    }

    fn forget(&mut self) {
        let simulation = &mut self.simulation;
        self.registers.reset(simulation);
        self.watch.inside = 0;
        self.hot_ports.iter_mut().for_each(|port| port.rest = Rest::NONE);
        self.ports.iter_mut().for_each(|port| port.reset(simulation));
    }

    fn run_clocks(&mut self, axil_cycles: u64) -> Result<(), CardError> {
        let mut left = axil_cycles;
        while left > 0 {
            let edge = self.begin()?;
            left -= u64::from(edge.has(AXIL));
            self.commit(edge)?;
        }
        Ok(())
    }

    // ---- One edge ----

    /// The next edge: the present is then.
    #[inline(always)]
    pub(in crate::card) fn begin(&mut self) -> Result<Edge, CardError> {
        let edge = self.clocks.begin(&mut self.simulation).map_err(rtl_error)?;
        self.now = Time(edge.time_ps);
        Ok(edge)
    }

    /// All that it takes at the ports and registers.
    #[inline(always)]
    pub(in crate::card) fn before_edge(&mut self, edge: Edge) -> Result<(), CardError> {
        let mut ports = edge.rising >> CMAC;
        while ports != 0 {
            let index = ports.trailing_zeros() as usize;
            self.hot_ports[index].edges += 1;
            let hot = &self.hot_ports[index];
            if hot.is_silent(&self.simulation) {
                if hot.flows && self.step_mid_cmac(index) {
                    self.watch.moved();
                } else if !self.hot_ports[index].rests(&self.simulation, self.now) {
                    self.before_cmac(index)?;
                }
            } else {
                self.before_cmac(index)?;
            }
            ports &= ports - 1;
        }
        if edge.has(AXIL) && !self.registers.is_idle() {
            self.before_axil()?;
        }
        Ok(())
    }

    /// The edge itself.
    #[inline(always)]
    pub(in crate::card) fn commit(&mut self, edge: Edge) -> Result<(), CardError> {
        self.clocks.commit(&mut self.simulation, edge).map_err(rtl_error)
    }

    /// Before an edge of `axis_aclk`, first of all: what the monitors show.
    #[inline(always)]
    pub(in crate::card) fn before_axis(&mut self) {
        self.watch.tick();
        if self.monitors.as_ref().is_none_or(|pulses| self.simulation.any(pulses)) {
            self.look_at_monitors();
        }
    }

    #[inline(never)]
    fn before_axil(&mut self) -> Result<(), CardError> {
        if self.registers.step(&mut self.simulation) {
            self.watch.moved();
        } else if self.registers.waited_cycles() > self.watch.hang_cycles / 2 {
            // Traffic elsewhere does not excuse it.
            self.registers.reset(&mut self.simulation);
            return Err(self.hang("s_axil_sim: a register access was not answered"));
        }
        Ok(())
    }

    /// It has made no progress at one of its interfaces for the hang limit.
    #[cold]
    pub(in crate::card) fn hang(&self, what: &str) -> CardError {
        let what = format!("{}.{what}", self.top_module);
        CardError::Hang { cycles: self.watch.hang_cycles, at: self.now, what }
    }

    #[inline(never)]
    fn look_at_monitors(&mut self) {
        for (index, func) in self.funcs.iter().enumerate() {
            if self.simulation.get(func.valid) {
                let point = func.point(&self.simulation, FuncId(index as u8));
                if self.observes {
                    self.observations.push_back(Observation { time: self.now, point });
                }
                if matches!(point, Point::Rss { fate: Fate::QueueRange, .. }) {
                    self.watch.left();
                }
            }
        }
        for port in &self.ports {
            if let Some(fate) = port.tx_end.as_ref().and_then(|end| end.look(&self.simulation, tx_fate)) {
                if self.observes {
                    let point = Point::TxEnd { port: port.id, fate };
                    self.observations.push_back(Observation { time: self.now, point });
                }
                if fate != Fate::Accepted {
                    self.watch.left();
                }
            }
        }
        if self.h2c_drop.is_some_and(|pulse| self.simulation.get(pulse)) {
            if self.observes {
                self.observations.push_back(Observation { time: self.now, point: Point::H2cDrop });
            }
            self.watch.left();
        }
    }

    // ---- cmac_clk ----

    /// A beat within a frame goes in, and nothing else.
    #[inline(never)]
    fn step_mid_cmac(&mut self, index: usize) -> bool {
        self.ports[index].rx.step_mid(&mut self.simulation)
    }

    #[inline(never)]
    fn before_cmac(&mut self, index: usize) -> Result<(), CardError> {
        let port = &mut self.ports[index];
        if let Some(fate) = port.look_at_rx_end(&self.simulation, self.hot_ports[index].edges) {
            if self.observes {
                let point = Point::RxEnd { port: port.id, fate };
                self.observations.push_back(Observation { time: self.now, point });
            }
            if fate == Fate::Accepted { self.watch.moved() } else { self.watch.left() }
        }
        if port.rx.is_idle() && port.may_start(&self.simulation, self.now, self.gated) {
            let old = port.start_frame();
            if port.hole_in.as_mut().is_some_and(|frames| std::mem::replace(frames, frames.wrapping_sub(1)) == 0) {
                port.rx.break_tkeep();
            }
            if old.capacity() > 0 {
                self.spare.push(old);
            }
        }
        port.rx.drive(&mut self.simulation);
        match port.rx.look(&self.simulation) {
            Taken::Nothing => {}
            Taken::Beat => self.watch.moved(),
            Taken::LastBeat => self.watch.entered(),
        }
        let watch = &mut self.watch;
        let taken = port.tx.step(&mut self.simulation, |_| {
            watch.moved();
            true
        });
        if taken.map_err(protocol_error)? == Taken::LastBeat {
            self.watch.left();
            let (data, err) = port.tx.take_frame(recycled(&mut self.spare));
            port.out.push_back(WireFrame { data, err, time: self.now });
            self.new_out.get_or_insert(port.id);
        }
        let hot = &mut self.hot_ports[index];
        hot.rest = port.rest(self.now, self.gated);
        hot.flows = !port.rx.is_idle() && !port.tx.holds();
        Ok(())
    }

    // ---- Registers ----

    /// Begin a register access: a read, or a write of `value`. Then run edges until [`ShellPins::answer`].
    ///
    /// # Panics
    /// While another one is under way.
    pub fn access(&mut self, offset: u32, value: Option<u32>) {
        self.watch.moved();
        self.registers.begin(&mut self.simulation, offset, value);
    }

    /// The answer to the access under way, once.
    ///
    /// # Errors
    /// [`CardError::Bus`]: the bus refused it.
    pub fn answer(&mut self, offset: u32) -> Result<Option<u32>, CardError> {
        self.registers.answer(offset)
    }

    // ---- Wire ----

    /// See [`Card::gate_wire`](crate::card::Card::gate_wire).
    pub fn gate_wire(&mut self, gated: bool) {
        self.gated = gated;
        self.hot_ports.iter_mut().for_each(|port| port.rest = Rest::NONE);
    }

    /// See [`Card::wire_in`](crate::card::Card::wire_in). A port that the card lacks takes nothing.
    pub fn wire_in(&mut self, port: PortId, frame: WireFrame) {
        let index = usize::from(port.0);
        if let Some(port) = self.ports.get_mut(index) {
            self.watch.moved();
            port.queue.push_back(frame);
            self.hot_ports[index].rest = Rest::NONE;
        }
    }

    /// See [`Card::wire_queued`](crate::card::Card::wire_queued).
    pub fn wire_queued(&self, port: PortId) -> usize {
        self.ports.get(usize::from(port.0)).map_or(0, |port| port.queue.len())
    }

    /// See [`Card::wire_out`](crate::card::Card::wire_out).
    pub fn wire_out(&mut self, port: PortId) -> Option<WireFrame> {
        self.ports.get_mut(usize::from(port.0))?.out.pop_front()
    }

    /// Will [`ShellPins::take_new_out`] have something to say?
    #[inline]
    pub fn has_new_out(&self) -> bool {
        self.new_out.is_some()
    }

    /// The first port at which a frame came out since the last call, if any did.
    #[inline]
    pub fn take_new_out(&mut self) -> Option<PortId> {
        self.new_out.take()
    }

    /// See [`Card::observe`](crate::card::Card::observe). Frames that are lost are looked at all the same: they are not inside.
    pub fn observe(&mut self, on: bool) {
        self.observes = on;
        self.monitors = pulses(&self.simulation, &self.funcs, &self.ports, self.h2c_drop, on);
    }

    /// See [`Card::observation`](crate::card::Card::observation).
    pub fn observation(&mut self) -> Option<Observation> {
        self.observations.pop_front()
    }

    /// See [`Card::recycle`](crate::card::Card::recycle).
    pub fn recycle(&mut self) -> Vec<u8> {
        recycled(&mut self.spare)
    }

    /// See [`Card::give_back`](crate::card::Card::give_back).
    pub fn give_back(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }

    // ---- Time ----

    /// The time of the last edge, or what [`ShellPins::pass`] made of it.
    pub fn now(&self) -> Time {
        self.now
    }

    /// When the next edge of any clock is, and whether it is one of `axis_aclk`.
    #[inline]
    pub fn next_edge(&self) -> (Time, bool) {
        let edge = self.clocks.peek();
        (Time(edge.time_ps), edge.has(AXIS))
    }

    /// No edge until `until`: the present is then, if that is later.
    pub fn pass(&mut self, until: Time) {
        self.now = self.now.max(until);
    }

    /// While nothing moves: stop the clocks for as many common periods as fit before `until` and before the next frame at
    /// the wire. What the clocks would have counted in that time is nothing that our shell shows.
    pub fn skip(&mut self, until: Time) {
        let mut until = until;
        for port in &self.ports {
            let due =
                if port.rx.is_idle() { port.queue.front().map_or(Time::NEVER, |frame| frame.time) } else { Time::ZERO };
            until = until.min(due);
        }
        let periods = until.0.saturating_sub(self.next_edge().0.0) / COMMON_PERIOD_PS;
        if periods > 0 && !self.simulation.records_at(until.0) && self.clocks.skip(periods * COMMON_PERIOD_PS) {
            self.now = Time(self.now.0 + periods * COMMON_PERIOD_PS);
        }
    }

    // ---- Rest ----

    /// Frames that the monitors saw enter and not leave.
    pub fn inside(&self) -> u64 {
        self.watch.inside
    }

    /// Frames wait at a port or are on their way in, or a register access is under way.
    pub(in crate::card) fn is_busy(&self) -> bool {
        self.ports.iter().any(|port| !port.queue.is_empty() || !port.rx.is_idle()) || !self.registers.is_idle()
    }

    /// Nothing has moved for longer than anything takes, and no register access is under way.
    #[inline]
    pub(in crate::card) fn is_quiet(&self) -> bool {
        self.watch.is_quiet() && self.registers.is_idle()
    }

    /// The port at which a frame waits that nothing but a full receive buffer holds.
    pub(in crate::card) fn full_port(&self) -> Option<PortId> {
        let waits = |port: &&Port| port.queue.front().is_some_and(|frame| frame.time <= self.now);
        self.ports.iter().find(waits).map(|port| port.id)
    }

    /// The simulation: waves, coverage, log.
    pub fn simulation(&mut self) -> &mut Simulation {
        &mut self.simulation
    }

    /// See [`Card::stalls`](crate::card::Card::stalls), as far as the wire goes.
    pub fn stalls(&self) -> Stalls {
        Stalls {
            wire_in: self.ports.iter().map(|port| port.rx.two_beat_stalls()).sum(),
            wire_out: self.ports.iter().map(|port| port.tx.two_beat_stalls()).sum(),
            ..Stalls::default()
        }
    }

    /// The run is over: write out what was recorded.
    pub(in crate::card) fn close(&mut self) {
        self.simulation.close_waves();
        // Nobody is left to return an error to.
        if let Some(path) = self.coverage.take()
            && let Err(error) = self.simulation.write_coverage(&path)
        {
            eprintln!("warning: {error}");
        }
    }

    /// Evaluations so far.
    pub fn evals(&self) -> u64 {
        self.clocks.evals()
    }
}

impl Drop for ShellPins {
    fn drop(&mut self) {
        self.close();
        if let Some(recording) = self.recording.take()
            && let Ok(mut place) = recording.lock()
        {
            *place = self.simulation.take_recording();
        }
    }
}

/// The 32 bits that Verilator takes, from all 64 of the run's.
fn sub_seed(seed: u64) -> u32 {
    (seed ^ (seed >> 32)) as u32
}

fn add_clocks(simulation: &mut Simulation, config: &RtlConfig) -> Result<Clocks, PortError> {
    let mut clocks = Clocks::new();
    let timing = |clock: models::time::Clock, phase_ps| Timing { num: clock.num, den: clock.den, phase_ps };
    let axil = simulation.input("axil_aclk")?;
    clocks.add(simulation, axil, timing(models::time::Clock::AXIL, config.phases_ps[AXIL]));
    let axis = simulation.input("axis_aclk")?;
    clocks.add(simulation, axis, timing(models::time::Clock::AXIS, config.phases_ps[AXIS]));
    for port in 0..config.ports {
        let cmac = simulation.input_of("cmac_clk", u32::from(port), u32::from(config.ports))?;
        let phase_ps = config.phases_ps.get(CMAC + usize::from(port)).copied().unwrap_or(0);
        clocks.add(simulation, cmac, timing(models::time::Clock::CMAC, phase_ps));
    }
    Ok(clocks)
}
