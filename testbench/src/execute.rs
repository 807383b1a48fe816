//! From a job (which card, how set up, which frames) to its outcome.

use std::collections::{BTreeMap, VecDeque};

use driver_core::Platform as _;
use models::observation::{Fate, Observation, Point};
use models::time::Time;
use regs::{FuncId, PortId, Qid};

use crate::card::{Card, Choice, WireFrame};
use crate::counters;
use crate::outcome::{Crossing, Delivered, Outcome, Sent, Sum};
use crate::run::{HostFrame, InFrame, Run, RunError, Setup, Sink};

/// One run to be done.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// On which card.
    pub card: Choice,
    /// Set up how.
    pub setup: Setup,
    /// Frames for the wire.
    pub wire: &'a [InFrame],
    /// Frames from the host.
    pub host: &'a [HostFrame],
}

/// A card that can't be had.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// No such card, or not with these options.
    #[error("{0}")]
    Card(String),
    /// A tool is missing or the RTL does not build.
    #[error("{0}")]
    Build(String),
}

/// Run a job. A run that ended early gives what it had done so far, and why it ended.
///
/// # Errors
/// [`ExecuteError`] before the run has begun.
pub fn execute(job: &Job<'_>, progress: &mut dyn FnMut(u64)) -> Result<(Outcome, Option<RunError>), ExecuteError> {
    execute_with(job, &mut NoHooks, progress)
}

/// Someone who does more to a run than its setup says.
pub trait Hooks {
    /// The queues run, no frame has come.
    ///
    /// # Errors
    /// [`RunError`] ends the run.
    fn started(&mut self, _run: &mut Run) -> Result<(), RunError> {
        Ok(())
    }

    /// All is quiet, the queues still run.
    ///
    /// # Errors
    /// [`RunError`], with which the run has ended then.
    fn ended(&mut self, _run: &mut Run) -> Result<(), RunError> {
        Ok(())
    }
}

struct NoHooks;

impl Hooks for NoHooks {}

/// As [`execute`], with a hand in it.
///
/// # Errors
/// [`ExecuteError`] before the run has begun.
pub fn execute_with(
    job: &Job<'_>,
    hooks: &mut dyn Hooks,
    progress: &mut dyn FnMut(u64),
) -> Result<(Outcome, Option<RunError>), ExecuteError> {
    let card = job.card.make(&job.setup.shape)?;
    let outcome = Outcome { card: card.name().to_string(), ..Outcome::default() };
    let mut recorder = Recorder { outcome, crossings: Crossings::default(), progress };
    let error = run(card, job, hooks, &mut recorder).err();
    Ok((recorder.outcome, error))
}

fn run(card: Box<dyn Card>, job: &Job<'_>, hooks: &mut dyn Hooks, recorder: &mut Recorder<'_>) -> Result<(), RunError> {
    let mut run = Run::start(card, &job.setup)?;
    recorder.crossings.bases = run.drivers().iter().map(|driver| driver.config().base()).collect();
    hooks.started(&mut run)?;
    let result = run.replay(&mut job.wire.iter(), &mut job.host.iter(), recorder);
    settle(&mut run, job, recorder, result.is_ok())?;
    result?;
    hooks.ended(&mut run)?;
    let bench = run.bench().clone();
    let finished = run.finish();
    bench.drain_observations(|observation| recorder.observed(observation));
    // A driver that could not stop keeps its memory, rightly: nothing of that is a leak.
    recorder.outcome.memory_reports = bench.memory().reports(finished.is_ok());
    finished.map(|_| ())
}

/// Draw up both sums while the device is still up: a device going down resets nothing, but it loses what is in flight.
fn settle(run: &mut Run, job: &Job<'_>, recorder: &mut Recorder<'_>, whole: bool) -> Result<(), RunError> {
    let tally = run.tally().clone();
    let outcome = &mut recorder.outcome;
    outcome.end = tally.end;
    outcome.queue_errors = tally.queue_errors.clone();
    let bench = run.bench().clone();
    let mut sum = Sum {
        wire_in: tally.wire_in,
        host_in: tally.host_in,
        host_out: tally.host_out,
        wire_out: tally.wire_out,
        ..Sum::default()
    };
    let shape = &job.setup.shape;
    sum.wire_in -= (0..shape.ports).map(|port| bench.wire_queued(PortId(port)) as u64).sum::<u64>();
    for observation in &outcome.observations {
        if let Some(reason) = lost(observation) {
            sum.lost(&reason, 1);
        }
    }
    outcome.stalls = bench.card(|card| card.stalls());
    bench.card(|card| card.drops(&mut |reason, frames| sum.lost(&format!("qdma.{reason}"), frames)));
    // A run that was stopped leaves frames inside; only the card knows how many, and it may not answer any more.
    if !whole {
        sum.inside = u64::try_from(sum.missing()).unwrap_or(0);
        outcome.by_monitors = sum;
        outcome.memory_reports = bench.memory().reports(false);
        return Ok(());
    }
    outcome.by_monitors = sum;
    outcome.by_counters = counters::read(bench.function(FuncId(0)).mmio(), shape)?;
    Ok(())
}

/// The name under which a frame seen by a monitor was lost, the same as its counter's.
pub(crate) fn lost(observation: &Observation) -> Option<String> {
    match observation.point {
        Point::RxEnd { port, fate } if fate != Fate::Accepted => Some(format!("port{}.{}", port.0, fate.name())),
        Point::TxEnd { port, fate } if fate != Fate::Accepted => Some(format!("port{}.tx_{}", port.0, fate.name())),
        Point::Rss { func, fate, .. } if fate != Fate::Accepted => Some(format!("fn{}.{}", func.0, fate.name())),
        Point::H2cDrop => Some("no_function".into()),
        _ => None,
    }
}

struct Recorder<'a> {
    outcome: Outcome,
    crossings: Crossings,
    progress: &'a mut dyn FnMut(u64),
}

impl Sink for Recorder<'_> {
    fn delivered(&mut self, func: FuncId, queue: u16, time: Time, segments: &mut dyn Iterator<Item = &[u8]>) {
        let data = segments.fold(Vec::new(), |mut data, segment| {
            data.extend_from_slice(segment);
            data
        });
        let crossing = self.crossings.take(func, queue, data.len());
        self.outcome.delivered.push(Delivered { func, queue, data, time, crossing });
    }

    fn sent(&mut self, port: PortId, frame: WireFrame) -> Option<Vec<u8>> {
        self.outcome.sent.push(Sent { port, data: frame.data, err: frame.err, time: frame.time });
        None
    }

    fn observed(&mut self, observation: Observation) {
        match observation.point {
            Point::C2h { qid, beats, last } => self.crossings.note(observation.time, qid, beats, last),
            _ => self.outcome.observations.push(observation),
        }
    }

    fn progress(&mut self, done: u64) {
        (self.progress)(done);
    }
}

/// Frames between the shell and the driver: the n-th that crossed to a queue is the n-th that the driver takes out of it.
#[derive(Default)]
struct Crossings {
    /// First absolute queue of each function.
    bases: Vec<u16>,
    under_way: Crossing,
    waiting: BTreeMap<Qid, VecDeque<Crossing>>,
}

impl Crossings {
    /// Frames do not mix on this stream.
    fn note(&mut self, time: Time, qid: Qid, beats: u16, last: bool) {
        self.under_way.push(time, beats);
        if last {
            let crossing = std::mem::take(&mut self.under_way);
            self.waiting.entry(qid).or_default().push_back(crossing);
        }
    }

    /// Of a frame that was taken out. The DMA engine may have lost some before it; those of another length are told apart.
    fn take(&mut self, func: FuncId, queue: u16, len_bytes: usize) -> Option<Crossing> {
        let qid = Qid(self.bases.get(usize::from(func.0))? + queue);
        let waiting = self.waiting.get_mut(&qid)?;
        let at = waiting.iter().position(|crossing| crossing.beats() == len_bytes.div_ceil(64).max(1))?;
        waiting.drain(..=at).next_back()
    }
}
