//! What a run did to the input pins, and playing it again: from Rust, and from a bare C++ loop.
//!
//! This is for benchmarks. The bare loop is the honest opponent of everything that drives RTL from Rust: the same pin
//! values, the same evaluations, the same library, assertions on from the same evaluation, and nothing to decide. It reads
//! no outputs, so it is a little faster than any harness could be; that it computed the same is seen by
//! [`BareLoop::run`]'s outputs at the end. Both go through the recording in stretches, and say when each has ended: whoever
//! times them can compare the same stretch of several runs.

use cxx::UniquePtr;

use super::port::WideInput;
use super::{Simulation, Stopped};
use crate::ffi::bridge as ffi;

/// Inputs that changed, evaluation by evaluation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recording {
    steps: Vec<Step>,
    changes: Vec<Change>,
    bytes: Vec<u8>,
    switches: Vec<Switch>,
}

/// Assertions were turned on or off before evaluation `step`: they cost a good part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Switch {
    step: usize,
    on: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Step {
    time_ps: u64,
    changes: usize,
}

/// Input `input` takes the bytes from `start` on, as many as it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Change {
    input: usize,
    start: usize,
}

/// A recording under way.
pub(super) struct Recorder {
    recording: Recording,
    inputs: Vec<WideInput>,
    /// What each input held at the last evaluation; one that was not looked at yet is empty.
    last: Vec<Vec<u8>>,
}

impl Recording {
    /// How many evaluations.
    pub fn evals(&self) -> usize {
        self.steps.len()
    }

    /// When each of them was, ps.
    pub fn times_ps(&self) -> impl Iterator<Item = u64> + '_ {
        self.steps.iter().map(|step| step.time_ps)
    }

    /// When the last one was, ps; 0 if none was.
    pub fn end_ps(&self) -> u64 {
        self.steps.last().map_or(0, |step| step.time_ps)
    }

    /// After which evaluations each of `stretches` parts of the recording ends, as even as they can be.
    fn ends(&self, stretches: usize) -> impl Iterator<Item = usize> {
        let (evals, stretches) = (self.evals(), stretches.max(1));
        (1..=stretches).map(move |stretch| evals * stretch / stretches)
    }

    /// The same from Rust, through pins: "pins only". The simulation is a new one of the same top, plusargs and seed.
    /// `ended` is called after each of `stretches` even parts.
    ///
    /// # Errors
    /// [`Stopped`].
    pub fn play(
        &self,
        simulation: &mut Simulation,
        stretches: usize,
        mut ended: impl FnMut(),
    ) -> Result<(), Box<Stopped>> {
        let inputs = simulation.all_inputs();
        let mut changes = self.changes.iter();
        let mut switches = self.switches.iter().peekable();
        let mut steps = self.steps.iter().enumerate();
        let mut played = 0;
        for end in self.ends(stretches) {
            for (number, step) in steps.by_ref().take(end - played) {
                while let Some(switch) = switches.next_if(|switch| switch.step <= number) {
                    simulation.assertions(switch.on);
                }
                for change in changes.by_ref().take(step.changes) {
                    let Some(input) = inputs.get(change.input) else { continue };
                    simulation.set_bytes(input, &self.bytes[change.start..change.start + input.len_bytes()]);
                }
                simulation.eval(step.time_ps)?;
            }
            played = end;
            ended();
        }
        Ok(())
    }
}

/// A recording, ready for the C++ loop on one simulation.
pub struct BareLoop {
    /// Cut where assertions are switched and where stretches end.
    parts: Vec<Part>,
    owner: u32,
    /// What the replay's addresses point into. Never touched again.
    _bytes: Vec<u8>,
}

struct Part {
    replay: UniquePtr<ffi::Replay>,
    then: Then,
}

/// What comes after a part.
#[derive(Clone, Copy)]
enum Then {
    Switch(bool),
    StretchEnds,
}

impl BareLoop {
    /// For `simulation`, a new one of the top that was recorded; in as many even `stretches`.
    ///
    /// # Panics
    /// When the recording is of another top: the caller's mistake.
    pub fn new(recording: &Recording, simulation: &Simulation, stretches: usize) -> BareLoop {
        let bytes = recording.bytes.clone();
        let inputs = simulation.all_inputs();
        let change = |change: &Change| {
            let (to, len) = inputs[change.input].range();
            ffi::ChangeInfo { to, from: bytes[change.start..change.start + len].as_ptr() as usize, bytes: len }
        };
        let switches = recording.switches.iter().map(|switch| (switch.step, Then::Switch(switch.on)));
        let mut cuts: Vec<_> = switches.chain(recording.ends(stretches).map(|end| (end, Then::StretchEnds))).collect();
        // Stable: switches at one evaluation keep their order.
        cuts.sort_by_key(|(step, _)| *step);
        let mut parts = Vec::with_capacity(cuts.len());
        let (mut step, mut first_change) = (0, 0);
        for (end, then) in cuts {
            let steps = &recording.steps[step..end];
            let count: usize = steps.iter().map(|step| step.changes).sum();
            let changes: Vec<_> = recording.changes[first_change..first_change + count].iter().map(change).collect();
            let steps: Vec<_> =
                steps.iter().map(|s| ffi::StepInfo { time_ps: s.time_ps, changes: s.changes }).collect();
            // SAFETY: `range` gives a port's own address and length; `from` points into `bytes`, whose buffer lives as
            // long as the loop and is not written; `changes` are as many as `steps` count.
            parts.push(Part { replay: unsafe { ffi::make_replay(&steps, &changes) }, then });
            (step, first_change) = (end, first_change + count);
        }
        BareLoop { parts, owner: simulation.id, _bytes: bytes }
    }

    /// Run it, once: it starts from the state in which the recording began. `ended` is called after each stretch.
    ///
    /// # Errors
    /// [`Stopped`].
    ///
    /// # Panics
    /// On another simulation than the one it was made for.
    pub fn run(&self, simulation: &mut Simulation, mut ended: impl FnMut()) -> Result<(), Box<Stopped>> {
        assert_eq!(self.owner, simulation.id, "a loop for another simulation");
        for part in &self.parts {
            if let Some(replay) = part.replay.as_ref() {
                // SAFETY: the assertion says that the replay was made from this simulation's ports.
                if unsafe { ffi::run_replay(simulation.top(), replay) } {
                    simulation.collect()?;
                }
            }
            match part.then {
                Then::Switch(on) => simulation.assertions(on),
                Then::StretchEnds => ended(),
            }
        }
        Ok(())
    }
}

impl Simulation {
    /// Note every input pin at each evaluation from now on. Slow; for benchmarks.
    pub fn record_pins(&mut self) {
        let inputs = self.all_inputs();
        let last = vec![Vec::new(); inputs.len()];
        self.pins = Some(Box::new(Recorder { recording: Recording::default(), inputs, last }));
    }

    /// What was recorded; recording ends.
    pub fn take_recording(&mut self) -> Recording {
        self.pins.take().map(|recorder| recorder.recording).unwrap_or_default()
    }

    /// All outputs at present, by name: to compare two runs.
    pub fn outputs(&self) -> Vec<(String, Vec<u8>)> {
        let outputs = self.ports().iter().filter(|port| !port.is_input);
        let read = |name: &str| self.wide_output(name, 0, 1).map(|pin| self.bytes(&pin).to_vec()).unwrap_or_default();
        outputs.map(|port| (port.name.clone(), read(&port.name))).collect()
    }

    fn all_inputs(&self) -> Vec<WideInput> {
        let names = self.ports.iter().filter(|port| port.is_input).map(|port| &port.name);
        names.filter_map(|name| self.wide_input(name, 0, 1).ok()).collect()
    }

    pub(super) fn note_assertions(&mut self, on: bool) {
        if let Some(recorder) = &mut self.pins {
            let step = recorder.recording.steps.len();
            recorder.recording.switches.push(Switch { step, on });
        }
    }

    #[cold]
    pub(super) fn note_pins(&mut self) {
        let Some(mut recorder) = self.pins.take() else { return };
        let Recorder { recording, inputs, last } = &mut *recorder;
        let before = recording.changes.len();
        for (input, (pin, last)) in inputs.iter().zip(last.iter_mut()).enumerate() {
            let now = pin.driven(self);
            if now != last {
                last.clear();
                last.extend_from_slice(now);
                recording.changes.push(Change { input, start: recording.bytes.len() });
                recording.bytes.extend_from_slice(now);
            }
        }
        recording.steps.push(Step { time_ps: self.time_ps, changes: recording.changes.len() - before });
        self.pins = Some(recorder);
    }
}
