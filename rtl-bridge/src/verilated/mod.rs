//! A running Verilated top.
//!
//! A [`Simulation`] owns one top with a Verilator context of its own; any number may live at once, on any threads. Its
//! pins are bound once by name ([`Simulation::input`], …) and then touched in place, without a call into C++.
//!
//! What RTL has to say comes out of [`Simulation::eval`]: a failed assertion, `$error`, `$fatal`, `$stop` and `$finish`
//! are a typed [`Stopped`]; what was only printed is in [`Simulation::take_log`].
//!
//! The published crate `verilated` (0.1.2, 2018) does not serve: it reaches Verilator only through global state, one
//! context for the process, and does not link against Verilator 5.
//!
//! ```
//! use rtl_bridge::tops::{self, ShellShape};
//! use rtl_bridge::verilated::Options;
//!
//! let library = tops::card(&ShellShape::default(), &|_, _, _| {})?; // linked in: no build, no loading
//! let mut card = library.start(&Options { seed: 7, ..Options::default() })?;
//! let clock = card.input::<bool>("axis_aclk")?;
//! card.set(clock, true);
//! card.eval(4000)?;
//! assert_eq!(card.time_ps(), 4000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod entered;
mod events;
mod flip;
mod port;
mod recording;

use std::path::{Path, PathBuf};
use std::pin::Pin;

use cxx::UniquePtr;

use crate::ffi::{Eval, bridge as ffi};
pub use events::{StopKind, Stopped};
pub use flip::BitFlip;
pub use port::{AnyOf, BitPins, Input, Output, PortError, PortInfo, Value, WideInput, WideOutput};
pub use recording::{BareLoop, Recording};

/// How a simulation starts.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `+name` and `+name=value`, without anything else before them.
    pub plusargs: Vec<String>,
    /// What registers and memories hold before reset, and what an X becomes. Same seed, same run.
    pub seed: u32,
    /// Record a window of the run.
    pub waves: Option<Window>,
}

/// A piece of the run, as an FST file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    /// The file, overwritten.
    pub path: PathBuf,
    /// First recorded time, ps.
    pub from_ps: u64,
    /// Nothing is recorded from here on, ps.
    pub until_ps: u64,
}

/// A simulation that could not be started, or an output file that could not be written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SimulationError {
    /// Verilator refused to make the model.
    #[error("top `{0}` could not be constructed")]
    Construction(String),
    /// A waves or coverage file.
    #[error("{} can't be written", .0.display())]
    Unwritable(PathBuf),
}

/// One top, running.
///
/// What each evaluation looks at lies in one cache line: the RTL leaves little in the cache between two edges.
#[repr(C, align(64))]
pub struct Simulation {
    /// What `top` points at, and its `onic::Eval`: asking the unique_ptr, and a virtual method through cxx, are calls that
    /// are too dear for each evaluation.
    raw: *mut ffi::Top,
    eval: Eval,
    time_ps: u64,
    /// Recording starts at this time; `u64::MAX` while no window is ahead or open.
    record_from_ps: u64,
    pins: Option<Box<recording::Recorder>>,
    flip: Option<Box<BitFlip>>,
    /// Ties ports to this simulation; no two in a process share it.
    id: u32,
    recording: bool,
    finished: bool,
    top: UniquePtr<ffi::Top>,
    ports: Vec<PortInfo>,
    window: Option<Window>,
    last_dump_ps: Option<u64>,
    log: Vec<String>,
    stopped: Option<Box<Stopped>>,
}

// SAFETY: a Verilated model with one thread keeps nothing in thread-local storage between calls but the pointer to the
// thread's context, and every call that runs Verilated code sets that pointer first (cpp/verilated_top.h), but for an
// evaluation that follows another of the same top in the same thread (`entered`). `Top` is owned by this value alone, and
// all methods that change it take `&mut self`.
unsafe impl Send for Simulation {}

impl Simulation {
    /// Take over a new top, whose factory's `onic::Eval` is `eval`. `name` is for error texts.
    ///
    /// # Safety
    /// `eval` is of the factory that made `top`.
    pub(crate) unsafe fn new(
        top: UniquePtr<ffi::Top>,
        eval: Eval,
        name: &str,
        options: &Options,
    ) -> Result<Simulation, SimulationError> {
        // First of all: making a top set a context, even where it failed and nothing is left of it.
        entered::forget();
        let top_ref = top.as_ref().ok_or_else(|| SimulationError::Construction(name.to_string()))?;
        let ports = (0..top_ref.port_count()).map(|index| PortInfo::new(ffi::describe_port(top_ref, index))).collect();
        let raw = top.as_mut_ptr();
        let mut simulation = Simulation {
            top,
            raw,
            eval,
            id: port::next_id(),
            ports,
            time_ps: 0,
            record_from_ps: u64::MAX,
            window: None,
            recording: false,
            last_dump_ps: None,
            finished: false,
            log: Vec::new(),
            stopped: None,
            pins: None,
            flip: None,
        };
        simulation.clear_inputs();
        if let Some(window) = &options.waves {
            simulation.record(window.clone())?;
        }
        Ok(simulation)
    }

    /// Let the design settle with the pins as they are, at `time_ps`, which never decreases.
    ///
    /// # Errors
    /// [`Stopped`], once for each cause. After a [`StopKind::Fatal`] the top is dead, and each call reports it again;
    /// after the others the caller may go on, to record some cycles more.
    #[inline]
    pub fn eval(&mut self, time_ps: u64) -> Result<(), Box<Stopped>> {
        self.time_ps = time_ps;
        if self.pins.is_some() {
            self.note_pins();
        }
        // SAFETY: `raw` is the address of the object that `top` owns and never lets go of, made by the factory that `eval` is
        // from; `&mut self` makes this the only access. No exception comes out of it: it is noexcept.
        let said_something = unsafe { (self.eval)(self.raw, time_ps, entered::enter(self.id)) };
        if self.flip.is_some() {
            self.apply_flip();
        }
        if time_ps >= self.record_from_ps {
            self.dump();
        }
        if said_something { self.collect() } else { Ok(()) }
    }

    /// The top, for any call but an evaluation.
    fn top(&mut self) -> Pin<&mut ffi::Top> {
        entered::forget();
        self.top.pin_mut()
    }

    /// Time of the last [`Simulation::eval`].
    #[inline]
    pub fn time_ps(&self) -> u64 {
        self.time_ps
    }

    /// Next time at which the RTL itself has something to do: `None` but for RTL with delays, built with `--timing`.
    pub fn next_slot(&mut self) -> Option<u64> {
        let slot = self.top().next_slot();
        (slot != u64::MAX).then_some(slot)
    }

    /// Assertions on or off; off at the start. Turn them on once every clock domain has been in reset: before that they
    /// judge random contents.
    pub fn assertions(&mut self, on: bool) {
        self.note_assertions(on);
        self.top().assertions(on);
    }

    /// RTL executed `$finish`.
    pub fn got_finish(&self) -> bool {
        self.finished
    }

    /// Lines that RTL printed and Verilator's warnings since the last call, oldest first.
    pub fn take_log(&mut self) -> Vec<String> {
        self.fetch_events();
        std::mem::take(&mut self.log)
    }

    /// Run `final` blocks. The last thing to do with a top that did not die.
    ///
    /// # Errors
    /// [`Stopped`] if they stop, too.
    pub fn finish(&mut self) -> Result<(), Box<Stopped>> {
        if self.top().finish() { self.collect() } else { Ok(()) }
    }

    /// Disturb an output stream from now on, in place of what was disturbed before.
    pub fn flip(&mut self, flip: BitFlip) {
        self.flip = Some(Box::new(flip));
    }

    /// What is disturbed, to be told where the stream stands.
    #[inline]
    pub fn flip_mut(&mut self) -> Option<&mut BitFlip> {
        self.flip.as_deref_mut()
    }

    #[cold]
    fn apply_flip(&mut self) {
        if let Some(mut flip) = self.flip.take() {
            flip.apply(self);
            self.flip = Some(flip);
        }
    }

    // ---- Waves and coverage ----

    /// Record a window from now on, or from its start, in place of the one that was set before.
    ///
    /// # Errors
    /// [`SimulationError::Unwritable`].
    pub fn record(&mut self, window: Window) -> Result<(), SimulationError> {
        self.close_waves();
        // Opened when the window begins; found out now whether that will work.
        std::fs::File::create(&window.path).map_err(|_| SimulationError::Unwritable(window.path.clone()))?;
        self.record_from_ps = window.from_ps;
        self.window = Some(window);
        Ok(())
    }

    /// Will an [`Simulation::eval`] at `time_ps` be recorded? A clock keeps its true shape then.
    #[inline]
    pub fn records_at(&self, time_ps: u64) -> bool {
        time_ps >= self.record_from_ps
    }

    /// When the last recorded step was.
    pub(crate) fn last_recorded_ps(&self) -> Option<u64> {
        self.last_dump_ps
    }

    /// End the recording and write its file out. Also done when the simulation goes.
    pub fn close_waves(&mut self) {
        if self.recording {
            self.top().trace_close();
            self.recording = false;
        }
        self.window = None;
        self.record_from_ps = u64::MAX;
        self.last_dump_ps = None;
    }

    #[cold]
    fn dump(&mut self) {
        let Some(window) = &self.window else { return };
        if self.time_ps >= window.until_ps {
            return self.close_waves();
        }
        if !self.recording {
            let path = window.path.to_string_lossy().into_owned();
            self.recording = ffi::open_trace(self.top(), &path);
            if !self.recording {
                self.log.push(format!("waves: {path} can't be opened"));
                return self.close_waves();
            }
        }
        // Verilator refuses to dump one time twice.
        if self.last_dump_ps.is_none_or(|last| last < self.time_ps) {
            let time_ps = self.time_ps;
            self.top().trace_dump(time_ps);
            self.last_dump_ps = Some(self.time_ps);
        }
    }

    /// Write the counts of all cover points so far, in the format of `verilator_coverage`.
    ///
    /// # Errors
    /// [`SimulationError::Unwritable`].
    pub fn write_coverage(&mut self, path: &Path) -> Result<(), SimulationError> {
        let unwritable = || SimulationError::Unwritable(path.to_path_buf());
        let name = path.to_str().ok_or_else(unwritable)?;
        // Verilator ends a run over a file it can't write, so that is found out first.
        std::fs::File::create(path).map_err(|_| unwritable())?;
        if ffi::write_coverage(self.top(), name) { Ok(()) } else { Err(unwritable()) }
    }

    // ---- What the RTL said ----

    #[cold]
    fn collect(&mut self) -> Result<(), Box<Stopped>> {
        self.fetch_events();
        match &self.stopped {
            // A dead top says it each time.
            Some(stopped) if stopped.kind == StopKind::Fatal => Err(stopped.clone()),
            Some(_) => self.stopped.take().map_or(Ok(()), Err),
            None => Ok(()),
        }
    }

    fn fetch_events(&mut self) {
        let Some(top) = self.top.as_ref() else { return };
        let all: Vec<_> = (0..top.event_count()).map(|index| ffi::describe_event(top, index)).collect();
        self.top().clear_events();
        let digest = events::digest(all);
        self.log.extend(digest.log);
        if let Some(first) = digest.first {
            self.finished |= first.kind == StopKind::Finish;
            if self.stopped.is_none() {
                self.stopped = Some(Box::new(first));
            }
        }
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.close_waves();
        // `top` goes after this.
        entered::forget();
    }
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation")
            .field("time_ps", &self.time_ps)
            .field("ports", &self.ports.len())
            .finish_non_exhaustive()
    }
}
