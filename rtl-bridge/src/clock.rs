//! Edges of any number of clocks with exact rational periods, in order of time.
//!
//! What a cycle costs is mostly the number of evaluations, so there are as few as can be: edges that coincide share one,
//! and since nothing waits for a falling edge, a clock is lowered in the evaluation of another clock's next edge. Only a
//! clock that must rise again before any other one did gets a falling edge of its own. While waves are recorded each
//! clock keeps its true shape, and inputs are shown up to 1 ns before the edge that takes them. Neither changes what the
//! design does, as long as it uses rising edges only; for a design that doesn't, see [`Clocks::true_shape`].
//!
//! One step is three calls. [`Clocks::begin`] says which clocks rise next and when; then the caller looks at outputs and
//! sets inputs for that edge; [`Clocks::commit`] raises the clocks and evaluates. Where no output depends on an input
//! within a cycle that is all; else [`Clocks::settle`] goes between driving and looking.

use crate::timetable::Timetable;
use crate::verilated::{BitPins, Input, Simulation, Stopped};

/// A clock's timing. Edge n, counted from 0, rises at `phase_ps + n · num / den`, rounded down to a picosecond, so that no
/// error adds up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Period numerator, ps. At least `2 · den`: no clock is faster than 500 GHz.
    pub num: u64,
    /// Period denominator.
    pub den: u64,
    /// Time of edge 0.
    pub phase_ps: u64,
}

/// Clocks that rise together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// When.
    pub time_ps: u64,
    /// Bit n: clock n, in the order of [`Clocks::add`].
    pub rising: u32,
}

impl Edge {
    pub(crate) const NEVER: Edge = Edge { time_ps: u64::MAX, rising: 0 };

    /// Does clock `n` rise?
    #[inline]
    pub const fn has(self, clock: usize) -> bool {
        self.rising >> clock & 1 != 0
    }
}

impl Default for Clocks {
    fn default() -> Clocks {
        Clocks::new()
    }
}

struct Clock {
    pin: Input<bool>,
    half_ps: u64,
    /// When it falls, or fell.
    fall_ps: u64,
}

/// All clocks of a simulation, at most 32.
pub struct Clocks {
    timetable: Timetable,
    /// All their pins, if they can be driven at once.
    pins: Option<BitPins>,
    /// Bit n: clock n is high now.
    high: u32,
    true_shape: bool,
    /// Those that are high rose at this time, which is not in their `fall_ps` yet.
    rose_ps: Option<u64>,
    evals: u64,
    clocks: Vec<Clock>,
}

impl Clocks {
    /// No clocks yet.
    pub fn new() -> Clocks {
        Clocks {
            clocks: Vec::new(),
            pins: None,
            timetable: Timetable::default(),
            high: 0,
            rose_ps: None,
            true_shape: false,
            evals: 0,
        }
    }

    /// Add a clock; returns its number. Its pin is driven low. All clocks are added before the first edge.
    ///
    /// # Panics
    /// On a timing that breaks [`Timing`]'s rules, and on a 33rd clock: both are the caller's constants.
    pub fn add(&mut self, simulation: &mut Simulation, pin: Input<bool>, timing: Timing) -> usize {
        let Timing { num, den, .. } = timing;
        assert!(den > 0 && num >= 2 * den, "a clock of {num}/{den} ps");
        assert!(self.clocks.len() < 32, "more than 32 clocks");
        simulation.set(pin, false);
        self.clocks.push(Clock { pin, half_ps: num / den / 2, fall_ps: 0 });
        let pins: Vec<_> = self.clocks.iter().map(|clock| clock.pin).collect();
        self.pins = simulation.bit_pins(&pins);
        self.timetable.add(timing);
        self.clocks.len() - 1
    }

    /// Let each clock fall where it should, waves or not: for RTL that uses falling edges. Costs up to half the speed.
    pub fn true_shape(&mut self, on: bool) {
        self.true_shape = on;
    }

    /// Evaluations so far.
    pub fn evals(&self) -> u64 {
        self.evals
    }

    /// The next rising edge, without doing anything. [`u64::MAX`] without clocks.
    #[inline]
    pub fn peek(&self) -> Edge {
        self.timetable.next()
    }

    /// Let time pass without edges: a whole number of periods of every clock, so that all keep their phases. For a design
    /// in which nothing moves, for as long as its own counters do not matter. Returns false, and does nothing, if
    /// `ps` is not such a time.
    pub fn skip(&mut self, ps: u64) -> bool {
        self.timetable.skip(ps)
    }

    /// Do what falls due before the next rising edge, and say which that is.
    ///
    /// # Errors
    /// [`Stopped`].
    #[inline]
    pub fn begin(&mut self, simulation: &mut Simulation) -> Result<Edge, Box<Stopped>> {
        let edge = self.timetable.next();
        if self.true_shape || simulation.records_at(edge.time_ps) {
            self.fall_before(simulation, edge.time_ps)?;
        } else if self.high & edge.rising != 0 {
            self.fall_alone(simulation, edge.rising)?;
        }
        Ok(edge)
    }

    /// Let outputs follow inputs, within the cycle: for RTL with paths from an input to an output.
    ///
    /// # Errors
    /// [`Stopped`].
    pub fn settle(&mut self, simulation: &mut Simulation) -> Result<(), Box<Stopped>> {
        self.evals += 1;
        simulation.eval(simulation.time_ps())
    }

    /// Raise the clocks of `edge`, the one that [`Clocks::begin`] returned, and evaluate.
    ///
    /// # Errors
    /// [`Stopped`].
    #[inline(always)]
    pub fn commit(&mut self, simulation: &mut Simulation, edge: Edge) -> Result<(), Box<Stopped>> {
        let shaped = self.true_shape || simulation.records_at(edge.time_ps);
        match &self.pins {
            Some(pins) if !shaped => {
                simulation.set_bits(pins, edge.rising);
                self.high = edge.rising;
                self.rose_ps = Some(edge.time_ps);
            }
            _ => self.move_pins(simulation, edge, shaped)?,
        }
        self.timetable.step();
        self.evals += 1;
        simulation.eval(edge.time_ps)
    }

    /// Raise and lower pins one by one; `shaped`: each falls at its own time.
    fn move_pins(&mut self, simulation: &mut Simulation, edge: Edge, shaped: bool) -> Result<(), Box<Stopped>> {
        self.note_falls();
        let mut falling = self.high & !edge.rising;
        if shaped {
            self.show_inputs(simulation, edge.time_ps)?;
            falling &= self.due_to_fall(edge.time_ps);
        }
        self.high = self.high & !falling | edge.rising;
        for (n, clock) in self.clocks.iter_mut().enumerate() {
            if edge.has(n) {
                simulation.set(clock.pin, true);
                clock.fall_ps = edge.time_ps + clock.half_ps;
            } else if falling >> n & 1 != 0 {
                simulation.set(clock.pin, false);
            }
        }
        Ok(())
    }

    /// When each clock that is high falls.
    fn note_falls(&mut self) {
        let Some(rose_ps) = self.rose_ps.take() else { return };
        for (n, clock) in self.clocks.iter_mut().enumerate() {
            if self.high >> n & 1 != 0 {
                clock.fall_ps = rose_ps + clock.half_ps;
            }
        }
    }

    /// Bit n: clock n's falling edge is at `time_ps` or was before.
    #[cold]
    fn due_to_fall(&self, time_ps: u64) -> u32 {
        let due = |(n, clock): (usize, &Clock)| u32::from(clock.fall_ps <= time_ps) << n;
        self.clocks.iter().enumerate().map(due).fold(0, |all, bit| all | bit)
    }

    /// Clocks that are still high and must rise next have had no other clock's edge to fall with.
    fn fall_alone(&mut self, simulation: &mut Simulation, rising: u32) -> Result<(), Box<Stopped>> {
        self.note_falls();
        let mut time_ps = simulation.time_ps();
        for (n, clock) in self.clocks.iter().enumerate() {
            if self.high & rising & 1 << n != 0 {
                simulation.set(clock.pin, false);
                time_ps = time_ps.max(clock.fall_ps);
            }
        }
        self.high &= !rising;
        self.evals += 1;
        simulation.eval(time_ps)
    }

    /// Falling edges before `until_ps`, each at its time.
    #[cold]
    fn fall_before(&mut self, simulation: &mut Simulation, until_ps: u64) -> Result<(), Box<Stopped>> {
        self.note_falls();
        loop {
            let high = self.high;
            let due =
                |(n, clock): (usize, &Clock)| (high >> n & 1 != 0 && clock.fall_ps < until_ps).then_some(clock.fall_ps);
            let Some(time_ps) = self.clocks.iter().enumerate().filter_map(due).min() else { return Ok(()) };
            for (n, clock) in self.clocks.iter().enumerate() {
                if high >> n & 1 != 0 && clock.fall_ps == time_ps {
                    simulation.set(clock.pin, false);
                    self.high &= !(1 << n);
                }
            }
            self.evals += 1;
            // A clock may be overdue when recording begins in the middle of its high half.
            simulation.eval(time_ps.max(simulation.time_ps()))?;
        }
    }

    /// Inputs are set just before the edge that takes them. In waves that would look as if they came with it.
    #[cold]
    fn show_inputs(&mut self, simulation: &mut Simulation, edge_ps: u64) -> Result<(), Box<Stopped>> {
        const SHOWN_BEFORE_PS: u64 = 1000;
        let Some(last_ps) = simulation.last_recorded_ps() else { return Ok(()) };
        let time_ps = edge_ps.saturating_sub(SHOWN_BEFORE_PS).max(last_ps + 1);
        if time_ps >= edge_ps {
            return Ok(());
        }
        self.evals += 1;
        simulation.eval(time_ps)
    }
}
