//! What a run did to the input pins, and playing it again: from Rust, and from a bare C++ loop.
//!
//! This is for benchmarks. The bare loop is the honest opponent of everything that drives RTL from Rust: the same pin
//! values, the same evaluations, the same library, and nothing to decide. It reads no outputs, so it is a little faster
//! than any harness could be; that it computed the same is seen by [`BareLoop::run`]'s outputs at the end.

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

    /// The same from Rust, through pins: "pins only". The simulation is a new one of the same top, plusargs and seed.
    ///
    /// # Errors
    /// [`Stopped`].
    pub fn play(&self, simulation: &mut Simulation) -> Result<(), Box<Stopped>> {
        let inputs = simulation.all_inputs();
        let mut changes = self.changes.iter();
        for step in &self.steps {
            for change in changes.by_ref().take(step.changes) {
                let Some(input) = inputs.get(change.input) else { continue };
                simulation.set_bytes(input, &self.bytes[change.start..change.start + input.len_bytes()]);
            }
            simulation.eval(step.time_ps)?;
        }
        Ok(())
    }
}

/// A recording, ready for the C++ loop on one simulation.
pub struct BareLoop {
    replay: UniquePtr<ffi::Replay>,
    owner: u32,
    /// What the replay's addresses point into. Never touched again.
    _bytes: Vec<u8>,
}

impl BareLoop {
    /// For `simulation`, a new one of the top that was recorded.
    ///
    /// # Panics
    /// When the recording is of another top: the caller's mistake.
    pub fn new(recording: &Recording, simulation: &Simulation) -> BareLoop {
        let bytes = recording.bytes.clone();
        let inputs = simulation.all_inputs();
        let change = |change: &Change| {
            let (to, len) = inputs[change.input].range();
            ffi::ChangeInfo { to, from: bytes[change.start..change.start + len].as_ptr() as usize, bytes: len }
        };
        let changes: Vec<_> = recording.changes.iter().map(change).collect();
        let steps: Vec<_> = recording.steps.iter().map(|s| ffi::StepInfo { time_ps: s.time_ps, changes: s.changes }).collect();
        // SAFETY: `range` gives a port's own address and length; `from` points into `bytes`, whose buffer lives as long
        // as the loop and is not written; the recorder counts a step's changes as it appends them.
        let replay = unsafe { ffi::make_replay(&steps, &changes) };
        BareLoop { replay, owner: simulation.id, _bytes: bytes }
    }

    /// Run it, once: it starts from the state in which the recording began.
    ///
    /// # Errors
    /// [`Stopped`].
    ///
    /// # Panics
    /// On another simulation than the one it was made for.
    pub fn run(&self, simulation: &mut Simulation) -> Result<(), Box<Stopped>> {
        assert_eq!(self.owner, simulation.id, "a loop for another simulation");
        let Some(replay) = self.replay.as_ref() else { return Ok(()) };
        // SAFETY: the assertion says that the replay was made from this simulation's ports.
        let said_something = unsafe { ffi::run_replay(simulation.top.pin_mut(), replay) };
        if said_something { simulation.collect() } else { Ok(()) }
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
