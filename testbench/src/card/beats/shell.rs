//! `onic_shell`: the shell and its streams to a QDMA.

use models::stream::QdmaStream;
use rtl_bridge::axis::Taken;
use rtl_bridge::stall::Stall;
use rtl_bridge::tops::Library;
use rtl_bridge::verilated::Output;

use super::c2h::C2h;
use super::completions::Cpl;
use super::h2c::H2c;
use super::pins::ShellPins;
use super::{AXIS, RtlConfig, StartError, protocol_error};
use crate::card::{CardError, Stalls};

/// The shell, running, and its streams. In the order of use: what every edge looks at comes first, close together.
#[repr(C)]
pub struct ShellRtl {
    hot: Hot,
    /// The QDMA may have an H2C frame that was not there when it was asked last.
    ask_h2c: bool,
    qdma_touched: bool,
    /// Wire, registers, monitors, clocks.
    pub pins: ShellPins,
    c2h: C2h,
    h2c: H2c,
    cpl: Cpl,
}

/// What is looked at before every edge of `axis_aclk`, side by side: the RTL leaves little in the cache between two edges.
struct Hot {
    c2h_tvalid: Output<bool>,
    cpl_tvalid: Output<bool>,
    /// The C2H side must be looked at whatever its pins say: a copy by the tap, a beat on hold.
    c2h_waits: bool,
    /// A beat is on hold until the QDMA has moved.
    c2h_rests: bool,
}

impl ShellRtl {
    /// Start a shell; call [`ShellRtl::reset`] before anything else.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(library: &Library, config: &RtlConfig) -> Result<ShellRtl, StartError> {
        let mut pins = ShellPins::start(library, config)?;
        let simulation = &mut pins.simulation;
        let stall = |name: &str| Stall::new(config.stalls, config.seed, name);
        let c2h = C2h::bind(simulation, stall("c2h"), config.tap)?;
        c2h.tap_pins(simulation)?;
        let cpl = Cpl::bind(simulation, stall("cpl"))?;
        let h2c = H2c::bind(simulation, stall("h2c"))?;
        let (c2h_tvalid, cpl_tvalid) = (c2h.sink.tvalid(), cpl.tvalid);
        let hot = Hot { c2h_tvalid, cpl_tvalid, c2h_waits: false, c2h_rests: false };
        Ok(ShellRtl { hot, ask_h2c: true, qdma_touched: false, pins, c2h, h2c, cpl })
    }

    /// Power-up reset; ends when all modules are out of it. Frames inside are gone, those queued at the wire wait.
    ///
    /// # Errors
    /// [`CardError::Rtl`].
    pub fn reset(&mut self) -> Result<(), CardError> {
        self.forget();
        self.pins.reset()
    }

    fn forget(&mut self) {
        self.h2c.source.reset(&mut self.pins.simulation);
        self.c2h.sink.reset();
        self.c2h.gate.forget();
        self.hot.c2h_rests = false;
        self.c2h.copy = None;
        self.c2h.runs.clear();
        self.cpl.waiting.clear();
        self.cpl.due.clear();
    }

    /// The QDMA has done something: there may be room for a C2H frame that it refused and, if `sends`, an H2C frame.
    #[inline]
    pub fn qdma_moved(&mut self, sends: bool) {
        self.ask_h2c |= sends;
        self.c2h.gate.ask_again = true;
        self.hot.c2h_rests = false;
    }

    /// A C2H frame waits for the QDMA, which refused it.
    #[inline]
    pub fn waits_for_qdma(&self) -> bool {
        self.c2h.gate.held_by_qdma
    }

    /// One edge: all handshakes that it takes, then the edge itself. True: the QDMA was handed something, or something was
    /// taken from it, so that it may have work.
    ///
    /// # Errors
    /// [`CardError::Rtl`], and [`CardError::Hang`] when the RTL owes something and nothing has moved for too long.
    #[inline(always)]
    pub fn edge<Q: QdmaStream + ?Sized>(&mut self, qdma: &mut Q) -> Result<bool, CardError> {
        self.qdma_touched = false;
        let edge = self.pins.begin()?;
        if edge.has(AXIS) {
            self.before_axis(qdma)?;
        }
        self.pins.before_edge(edge)?;
        self.pins.commit(edge)?;
        Ok(self.qdma_touched)
    }

    #[inline(always)]
    fn before_axis<Q: QdmaStream + ?Sized>(&mut self, qdma: &mut Q) -> Result<(), CardError> {
        self.pins.before_axis();
        let pins = &mut self.pins;
        if self.hot.c2h_rests {
            pins.watch.quiet_cycles = 0;
            self.c2h.sink.hold_on(&pins.simulation).map_err(protocol_error)?;
        } else if self.c2h.sink.mid_frame() && self.c2h.step_mid(&pins.simulation, pins.now) {
            pins.watch.moved();
        } else if self.hot.c2h_waits || pins.simulation.get(self.hot.c2h_tvalid) {
            self.step_c2h(qdma)?;
            self.hot.c2h_waits = self.c2h.copy.is_some() || self.c2h.sink.holds() || self.c2h.gate.held_by_qdma;
            // Nothing but the QDMA, which is not asked again before it has moved, can end this.
            self.hot.c2h_rests = self.c2h.gate.held_by_qdma && self.c2h.copy.is_none() && self.c2h.sink.holds();
        }
        // A frame that arrived may have been waited for.
        if self.pins.simulation.get(self.hot.cpl_tvalid) || !self.cpl.waiting.is_empty() && !self.cpl.due.is_empty() {
            self.step_cpl(qdma);
        }
        if self.ask_h2c || !self.h2c.source.is_quiet() {
            self.step_h2c(qdma);
        }
        if self.pins.watch.stuck_cycles > self.pins.watch.hang_cycles {
            self.check_hang()?;
        }
        Ok(())
    }

    #[inline(never)]
    fn step_c2h<Q: QdmaStream + ?Sized>(&mut self, qdma: &mut Q) -> Result<(), CardError> {
        let (c2h, pins) = (&mut self.c2h, &mut self.pins);
        let now = pins.now;
        if c2h.copy.is_some() {
            self.qdma_touched = true;
            c2h.hand_over_copy(now, qdma, &mut self.cpl.due);
        }
        let (sink, gate, watch) = (&mut c2h.sink, &mut c2h.gate, &mut pins.watch);
        let taken = sink.step(&mut pins.simulation, |simulation| {
            watch.quiet_cycles = 0;
            gate.ask(simulation, now, qdma)
        });
        let taken = taken.map_err(protocol_error)?;
        if taken == Taken::Nothing {
            return Ok(());
        }
        c2h.runs.note(now);
        if taken == Taken::Beat {
            pins.watch.moved();
        } else {
            pins.watch.left();
            let (data, _) = c2h.sink.take_frame(qdma.recycle());
            let (qid, copies) = c2h.deliver(data, now, qdma, &mut self.cpl.due)?;
            if pins.observes {
                (0..copies).for_each(|_| pins.observations.extend(c2h.runs.crossing(qid)));
            }
            c2h.runs.clear();
        }
        c2h.follow(&mut pins.simulation, now);
        Ok(())
    }

    #[inline(never)]
    fn step_cpl<Q: QdmaStream + ?Sized>(&mut self, qdma: &mut Q) {
        if self.pins.simulation.get(self.cpl.tvalid) {
            self.cpl.take(&mut self.pins.simulation);
            self.pins.watch.moved();
        }
        while !self.cpl.due.is_empty() && !self.cpl.waiting.is_empty() {
            self.qdma_touched = true;
            self.cpl.hand_over(self.pins.now, qdma);
        }
    }

    #[inline(never)]
    fn step_h2c<Q: QdmaStream + ?Sized>(&mut self, qdma: &mut Q) {
        let (source, pins) = (&self.h2c.source, &mut self.pins);
        if source.is_idle() {
            self.ask_h2c = qdma.h2c_peek(pins.now).is_some();
        }
        if source.is_idle()
            && self.ask_h2c
            && let Some(frame) = qdma.h2c_take(pins.now)
        {
            self.qdma_touched = true;
            let old = self.h2c.load(&mut pins.simulation, frame);
            if old.capacity() > 0 {
                qdma.give_back(old);
            }
            pins.watch.moved();
        }
        self.h2c.source.drive(&mut pins.simulation);
        match self.h2c.source.look(&pins.simulation) {
            Taken::Nothing => {}
            Taken::Beat => pins.watch.moved(),
            Taken::LastBeat => pins.watch.entered(),
        }
    }

    /// Nothing inside moves until something outside does: every frame has come out; or, should one be lost on the way
    /// against what the monitors say, nothing has stirred for longer than any frame takes.
    pub fn idle(&self) -> bool {
        let busy = self.pins.is_busy() || !self.h2c.source.is_idle() || self.c2h.copy.is_some();
        let settled = self.pins.inside() == 0 && self.cpl.due.is_empty() && self.cpl.waiting.is_empty();
        !busy && (settled || self.pins.watch.is_quiet())
    }

    /// Nothing has moved for longer than anything takes: edges may be left out.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.pins.is_quiet() && self.h2c.source.is_idle()
    }

    /// See [`Card::stalls`](crate::card::Card::stalls).
    pub fn stalls(&self) -> Stalls {
        Stalls { c2h: self.c2h.sink.two_beat_stalls(), h2c: self.h2c.source.two_beat_stalls(), ..self.pins.stalls() }
    }

    /// Nothing has moved for the hang limit. Whose turn is it?
    #[cold]
    fn check_hang(&mut self) -> Result<(), CardError> {
        let what = if self.h2c.source.is_presented() {
            Some("s_axis_qdma_h2c_sim: the RTL does not take a beat that is offered".to_string())
        } else if self.c2h.gate.held_by_qdma {
            None
        } else if self.c2h.sink.offers(&self.pins.simulation) {
            Some("m_axis_qdma_c2h_sim: nobody takes a beat that is offered".to_string())
        } else {
            let stuck = |port: regs::PortId| {
                format!("s_axis_cmac_rx_sim, port {}: a frame waits, the receive buffer does not empty", port.0)
            };
            self.pins.full_port().map(stuck)
        };
        let error = what.map(|what| self.pins.hang(&what));
        self.pins.watch.stuck_cycles = 0;
        error.map_or(Ok(()), Err)
    }
}
