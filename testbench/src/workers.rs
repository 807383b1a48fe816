//! Worker mode: one thread for each pair of queues, as a host with a core for each has it. For throughput; what a run means
//! is the single-threaded [`Run::replay`]'s business.
//!
//! ```text
//!            jobs: poll, frames to send, pages back             wire in
//!   worker ◄──────────────────────────────────────── card's ───────────► card
//!     │     ──────────────────────────────────────►  thread ◄───────────
//!     │          reports: frames in their pages         │        wire out
//!     └── registers and DMA memory of its own queues ───┴── (one lock)
//! ```
//!
//! The card's thread alone makes time pass. It feeds the wire, tells a worker of its queue's interrupts, and hands frames to
//! the sink. A worker owns its pair of queues for the length of the replay. A received frame crosses with its pages, and
//! they come back the same way; nothing is copied and no page has two owners.
//!
//! A worker that panics ends the run: the others end what they have begun, and the panic goes on in the caller.
//!
//! Each queue's frames are those of the single-threaded run, in the same order. How queues interleave, and at what simulated
//! time a frame is fetched, is up to the machine's scheduler. Workers have no simulated time, so that the host's latency and
//! cost don't count, and only [`Pace::Fast`] works, with which nothing overflows.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

use crossbeam_channel::{Receiver, Sender, TryRecvError, unbounded};
use driver_core::{
    DmaMemory, Interrupts as _, Next, NoHook, Platform as _, QueueFault, RxFrame, TakenPage, TxError, TxFlow, Vector,
    WEIGHT,
};
use models::time::Time;
use regs::{FuncId, PortId, Qid};

use crate::bench::Bench;
use crate::feed::Feed;
use crate::run::{CardPair, Dma, HostFrame, InFrame, Run, RunError, Sink, note_fault};
use crate::shape::Pace;

/// Frames from the host that wait at a worker.
const BACKLOG: u64 = 512;
/// How long the card runs at a stretch while workers want its registers, ps.
const SLICE_PS: u64 = 2_000_000;

/// What the card's thread wants of a worker. Each job is answered once, in [`Report::Done`].
enum Job<'a> {
    /// The queue's interrupt has come, or a deferral has ended.
    Poll,
    /// It is time to look for transmit completions.
    Look,
    /// Frames to send, in order.
    Send(Vec<&'a HostFrame>),
    /// Frames that were looked at: their pages go home.
    GiveBack(Batch),
}

/// What a worker tells.
enum Report {
    /// Frames that came.
    Frames { worker: usize, time: Time, frames: Batch },
    /// So many jobs are done, and this is how the pair stands.
    Done { worker: usize, jobs: usize, stand: Stand, error: Option<WorkerError> },
    /// It panics: nothing more comes of it, and what it owes is never answered.
    Died { worker: usize },
}

/// Tells of a worker's panic, which nobody would hear of otherwise: the card's thread waits for answers.
struct LastWord {
    worker: usize,
    reports: Sender<Report>,
}

impl Drop for LastWord {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = self.reports.send(Report::Died { worker: self.worker });
        }
    }
}

/// What stopped a queue, or a frame that can't be sent.
enum WorkerError {
    Fault {
        side: &'static str,
        qid: Qid,
        fault: QueueFault,
    },
    /// The worker's frame with this number, from 0.
    Refused {
        frame: u64,
        source: TxError,
    },
}

/// How a pair stands when its worker has nothing to do.
#[derive(Clone, Copy, Default)]
struct Stand {
    /// Frames that were given to the worker and are not posted.
    backlog: usize,
    /// Frames posted since it began.
    posted: u64,
    /// Frames that the card has.
    outstanding: u16,
    /// A frame lies in the receive ring.
    pending: bool,
    /// When to look for transmit completions, ns.
    look_ns: Option<u64>,
    /// When to poll although no interrupt has come, ns.
    poll_ns: Option<u64>,
}

type PageOf<D> = <D as DmaMemory>::Page;

/// A frame's bytes in one of its buffers.
enum Piece {
    Page(TakenPage<PageOf<Dma>>),
    /// There was no page to take its place.
    Copy(Vec<u8>),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Piece::Page(page) => page.bytes(),
            Piece::Copy(bytes) => bytes,
        }
    }
}

/// Frames of one poll, one behind the other.
#[derive(Default)]
struct Batch {
    pieces: Vec<Piece>,
    /// Where each frame's pieces end.
    ends: Vec<usize>,
}

impl Batch {
    fn take(&mut self, frame: &mut RxFrame<'_, Dma>) {
        for i in 0..frame.segment_count() {
            let piece = match frame.take(i) {
                Ok(page) => Piece::Page(page),
                Err(_) => Piece::Copy(frame.segment(i).to_vec()),
            };
            self.pieces.push(piece);
        }
        self.ends.push(self.pieces.len());
    }

    fn frames(&self) -> impl Iterator<Item = &[Piece]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.pieces[start..*end])
    }
}

/// One thread's side.
struct Worker<'a> {
    index: usize,
    pair: CardPair,
    bench: Arc<Bench>,
    jobs: Receiver<Job<'a>>,
    reports: Sender<Report>,
    backlog: VecDeque<&'a HostFrame>,
    posted: u64,
    /// Batches that came back empty, to be filled again.
    spare: Vec<Batch>,
    error: Option<WorkerError>,
}

impl<'a> Worker<'a> {
    /// Work until no more jobs can come, and give the queues back.
    fn work(mut self) -> CardPair {
        let _last_word = LastWord { worker: self.index, reports: self.reports.clone() };
        let (mut scheduled, mut done) = (false, 0);
        loop {
            // While there is more to poll, jobs are done in between: pages come home, or ever more would be wanted.
            let job = match scheduled {
                true => self.jobs.try_recv(),
                false => self.jobs.recv().map_err(|_| TryRecvError::Disconnected),
            };
            done += usize::from(job.is_ok());
            match job {
                Ok(Job::Poll) => scheduled = true,
                Ok(Job::Look) => self.look(),
                Ok(Job::Send(frames)) => self.backlog.extend(frames),
                Ok(Job::GiveBack(frames)) => self.give_back(frames),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return self.pair,
            }
            if scheduled {
                scheduled = self.poll() == Next::Again;
            }
            self.transmit();
            if !scheduled {
                self.report(std::mem::take(&mut done));
            }
        }
    }

    /// One poll; what came goes to the card's thread.
    fn poll(&mut self) -> Next {
        let mut frames = self.spare.pop().unwrap_or_default();
        let time = self.bench.now();
        self.pair.napi.schedule();
        let polled = self.pair.poll(WEIGHT, &mut NoHook, |frame| frames.take(frame));
        self.note("tx", polled.sent.err());
        self.note("rx", polled.received.err());
        if frames.ends.is_empty() {
            self.spare.push(frames);
        } else {
            self.tell(Report::Frames { worker: self.index, time, frames });
        }
        polled.next
    }

    /// Look for transmit completions only.
    fn look(&mut self) {
        let polled = self.pair.poll(0, &mut NoHook, |_| {});
        self.note("tx", polled.sent.err());
    }

    /// Post what waits, as long as the queue is open.
    fn transmit(&mut self) {
        while let Some(&frame) = self.backlog.front() {
            if self.pair.tx.flow() != TxFlow::Open {
                self.look();
            }
            if self.pair.tx.flow() != TxFlow::Open {
                break;
            }
            match self.pair.tx.post(&frame.data) {
                Ok(()) => self.posted += 1,
                Err(TxError::Full { .. }) => break,
                Err(source) => {
                    self.error.get_or_insert(WorkerError::Refused { frame: self.posted, source });
                    self.backlog.clear();
                    break;
                }
            }
            self.backlog.pop_front();
        }
        let rung = self.pair.tx.flush();
        self.note("tx", rung.err());
    }

    fn give_back(&mut self, mut frames: Batch) {
        for piece in frames.pieces.drain(..) {
            if let Piece::Page(taken) = piece {
                self.pair.rx.give_back(taken.page);
            }
        }
        frames.ends.clear();
        self.spare.push(frames);
    }

    fn note(&mut self, side: &'static str, fault: Option<QueueFault>) {
        if let Some(fault) = fault {
            self.error.get_or_insert(WorkerError::Fault { side, qid: self.pair.rx.qid(), fault });
        }
    }

    fn report(&mut self, jobs: usize) {
        let Self { pair, backlog, posted, .. } = self;
        let stand = Stand {
            backlog: backlog.len(),
            posted: *posted,
            outstanding: pair.tx.outstanding(),
            pending: pair.rx.has_pending(),
            look_ns: pair.tx.due_ns(),
            poll_ns: pair.napi.deferred_until_ns(),
        };
        let error = self.error.take();
        self.tell(Report::Done { worker: self.index, jobs, stand, error });
    }

    fn tell(&self, report: Report) {
        // The card's thread listens until every worker has ended.
        let _ = self.reports.send(report);
    }
}

/// The card's thread's view of a worker.
struct Lane<'a> {
    func: FuncId,
    queue: u16,
    vector: Vector,
    jobs: Sender<Job<'a>>,
    /// Jobs that were given and not answered.
    unanswered: usize,
    /// Its worker has panicked.
    dead: bool,
    /// Frames to send that were given.
    given: u64,
    stand: Stand,
}

impl<'a> Lane<'a> {
    fn give(&mut self, job: Job<'a>) {
        if self.dead {
            return;
        }
        self.unanswered += 1;
        // A worker listens for as long as its lane is there, or says that it has died.
        let _ = self.jobs.send(job);
    }

    /// Nothing is owed, neither by the worker nor to it.
    fn is_quiet(&self) -> bool {
        let Stand { backlog, outstanding, pending, .. } = self.stand;
        self.unanswered == 0 && backlog == 0 && outstanding == 0 && !pending
    }

    /// Is a poll due without an interrupt? Whichever it is, it is due once.
    fn expired(&mut self, now_ns: u64) -> Option<Job<'a>> {
        let due = |at: &mut Option<u64>| at.take_if(|at| *at <= now_ns).is_some();
        if due(&mut self.stand.poll_ns) {
            Some(Job::Poll)
        } else if due(&mut self.stand.look_ns) {
            Some(Job::Look)
        } else {
            None
        }
    }
}

/// All workers, seen from the card's thread.
struct Crew<'a> {
    lanes: Vec<Lane<'a>>,
    reports: Receiver<Report>,
    /// A frame from the host whose worker has enough to do.
    held: Option<&'a HostFrame>,
    host_done: bool,
    /// What ends the replay.
    error: Option<RunError>,
}

impl<'a> Crew<'a> {
    /// A worker has panicked: there is no point in going on.
    fn has_died(&self) -> bool {
        self.lanes.iter().any(|lane| lane.dead)
    }

    fn is_busy(&self) -> bool {
        self.lanes.iter().any(|lane| lane.unanswered > 0)
    }

    fn is_quiet(&self) -> bool {
        self.host_done && self.held.is_none() && self.lanes.iter().all(Lane::is_quiet)
    }

    /// Is nothing in any ring, now that the card is idle? Nor will anything move any more if a worker has died.
    fn still_quiet(&mut self, run: &mut Run, sink: &mut dyn Sink) -> bool {
        self.lanes.iter_mut().for_each(|lane| lane.give(Job::Look));
        while self.is_busy() {
            self.listen(run, true, sink);
        }
        self.has_died() || self.is_quiet()
    }

    /// Hand frames from the host to their workers, as many as they have room for.
    fn feed(&mut self, host: &mut dyn Iterator<Item = &'a HostFrame>) {
        let mut parcels: Vec<Vec<&HostFrame>> = self.lanes.iter().map(|_| Vec::new()).collect();
        while let Some(frame) = self.held.take().or_else(|| host.next()) {
            let at = self.lanes.iter().position(|lane| (lane.func, lane.queue) == (frame.func, frame.queue));
            // No queue has that number: as in the single-threaded run, there is nobody to send it.
            let Some(at) = at else { continue };
            if self.lanes[at].given - self.lanes[at].stand.posted + parcels[at].len() as u64 >= BACKLOG {
                self.held = Some(frame);
                break;
            }
            parcels[at].push(frame);
        }
        self.host_done = self.held.is_none();
        for (lane, parcel) in self.lanes.iter_mut().zip(parcels).filter(|(_, parcel)| !parcel.is_empty()) {
            lane.given += parcel.len() as u64;
            lane.give(Job::Send(parcel));
        }
    }

    /// Poll where an interrupt or a timer says so.
    fn schedule(&mut self, run: &mut Run) -> Result<(), RunError> {
        let mut raised = Vec::new();
        run.bench.drain_raised(|func, _| raised.push(func));
        for func in raised {
            let Some(driver) = run.drivers.get(usize::from(func.0)) else { continue };
            while let Some(vector) = driver.platform().interrupts().take() {
                if driver.error_vector() == Some(vector) {
                    let errors = driver.service_errors()?;
                    run.tally.queue_errors.extend(errors.map(|errors| format!("card errors: {errors}")));
                    continue;
                }
                let lanes = self.lanes.iter_mut().filter(|lane| (lane.func, lane.vector) == (func, vector));
                lanes.for_each(|lane| lane.give(Job::Poll));
            }
        }
        let now_ns = run.bench.now().as_ns();
        for lane in &mut self.lanes {
            if let Some(job) = lane.expired(now_ns) {
                lane.give(job);
            }
        }
        Ok(())
    }

    /// Take in what workers tell; with `wait`, at least one of it.
    fn listen(&mut self, run: &mut Run, wait: bool, sink: &mut dyn Sink) {
        let first = if wait { self.reports.recv().ok() } else { None };
        let mut next = first.or_else(|| self.reports.try_recv().ok());
        while let Some(report) = next {
            self.hear(run, report, sink);
            next = self.reports.try_recv().ok();
        }
    }

    fn hear(&mut self, run: &mut Run, report: Report, sink: &mut dyn Sink) {
        match report {
            Report::Frames { worker, time, frames } => {
                let lane = &mut self.lanes[worker];
                for pieces in frames.frames() {
                    run.tally.host_out += 1;
                    sink.delivered(lane.func, lane.queue, time, &mut pieces.iter().map(Piece::bytes));
                }
                lane.give(Job::GiveBack(frames));
            }
            Report::Done { worker, jobs, stand, error } => {
                let lane = &mut self.lanes[worker];
                lane.unanswered -= jobs;
                run.tally.host_in += stand.posted - lane.stand.posted;
                lane.stand = stand;
                match error {
                    Some(WorkerError::Fault { side, qid, fault }) => {
                        note_fault(&mut run.tally.queue_errors, side, qid, fault);
                    }
                    Some(WorkerError::Refused { frame, source }) => {
                        self.error.get_or_insert(RunError::Tx { index: frame as usize, source });
                    }
                    None => {}
                }
            }
            Report::Died { worker } => {
                let lane = &mut self.lanes[worker];
                (lane.dead, lane.unanswered) = (true, 0);
            }
        }
    }

    /// The next time that something is due, ps.
    fn next_due(&self) -> Time {
        let due = self.lanes.iter().flat_map(|lane| [lane.stand.look_ns, lane.stand.poll_ns]).flatten().min();
        due.map_or(Time::NEVER, |ns| Time(ns.saturating_mul(1_000)))
    }
}

impl Run {
    /// As [`Run::replay`], one thread for each pair of queues.
    ///
    /// # Errors
    /// [`RunError`]; [`RunError::WorkerPace`] for any pace but [`Pace::Fast`]. The queues are back in any case.
    ///
    /// # Panics
    /// As a worker or `sink` does. The queues of a worker that panicked are gone.
    pub fn replay_with_workers<'a>(
        &mut self,
        wire: &mut dyn Iterator<Item = &'a InFrame>,
        host: &mut dyn Iterator<Item = &'a HostFrame>,
        sink: &mut dyn Sink,
    ) -> Result<(), RunError> {
        if self.setup.pace != Pace::Fast {
            return Err(RunError::WorkerPace);
        }
        thread::scope(|scope| {
            let (tell, reports) = unbounded();
            let mut crew = Crew { lanes: Vec::new(), reports, held: None, host_done: false, error: None };
            let mut threads: Vec<Vec<ScopedJoinHandle<'_, CardPair>>> = Vec::new();
            for driver in &mut self.drivers {
                let func = driver.config().func;
                let pairs = driver.take_queues();
                let spawn = |mut pair: CardPair| {
                    let queue = pair.rx.rel_qid();
                    // Worker 0 counts for whoever drives queues without a thread.
                    pair.assign(&driver.worker(usize::from(queue) + 1));
                    let (give, jobs) = unbounded();
                    let worker = Worker {
                        index: crew.lanes.len(),
                        pair,
                        bench: Arc::clone(&self.bench),
                        jobs,
                        reports: tell.clone(),
                        backlog: VecDeque::new(),
                        posted: 0,
                        spare: Vec::new(),
                        error: None,
                    };
                    let stand = Stand::default();
                    let vector = driver.vector_of(queue);
                    crew.lanes.push(Lane {
                        func,
                        queue,
                        vector,
                        jobs: give,
                        unanswered: 0,
                        dead: false,
                        given: 0,
                        stand,
                    });
                    scope.spawn(|| worker.work())
                };
                threads.push(pairs.into_iter().map(spawn).collect());
            }
            let result = conduct(self, &mut crew, wire, host, sink);
            dismiss(self, crew, threads, sink);
            result
        })
    }
}

/// The card's thread, until nothing moves any more.
fn conduct<'a>(
    run: &mut Run,
    crew: &mut Crew<'a>,
    wire: &mut dyn Iterator<Item = &'a InFrame>,
    host: &mut dyn Iterator<Item = &'a HostFrame>,
    sink: &mut dyn Sink,
) -> Result<(), RunError> {
    let ports = run.setup.shape.ports;
    let mut feed = Feed::new(Pace::Fast, run.bench.now(), usize::from(ports));
    let mut wire_done = false;
    run.last_progress = run.bench.now();
    loop {
        if !wire_done || !feed.is_empty() {
            wire_done |= !run.feed_wire(&mut feed, wire);
        }
        crew.feed(host);
        crew.schedule(run)?;
        let busy = crew.is_busy();
        let idle = run.bench.idle() && (0..ports).all(|port| run.bench.wire_queued(PortId(port)) == 0);
        if !busy && idle && wire_done && feed.is_empty() && crew.is_quiet() {
            // What a worker told of its rings may be old: a frame can have come whose interrupt is still being put off.
            if crew.still_quiet(run, sink) {
                break;
            }
        }
        if !busy {
            run.bench.advance(crew.next_due().min(run.hang_deadline()))?;
        } else if !run.bench.idle() {
            // Workers wait for the card meanwhile, which is behind one lock: it is let go of often.
            run.bench.advance(run.bench.now() + SLICE_PS)?;
            thread::yield_now();
        }
        crew.listen(run, busy && run.bench.idle(), sink);
        run.collect(sink);
        if let Some(error) = crew.error.take() {
            return Err(error);
        }
        if crew.has_died() {
            break;
        }
        // Time that passes while workers are busy says nothing.
        if !crew.is_busy() {
            run.watch(sink)?;
        } else {
            run.last_progress = run.bench.now();
        }
    }
    run.tally.end = run.bench.now();
    Ok(())
}

/// Let every worker end what it has begun, take all pages home, and give the queues back to their drivers. Then a worker's
/// panic goes on.
fn dismiss(run: &mut Run, mut crew: Crew<'_>, threads: Vec<Vec<ScopedJoinHandle<'_, CardPair>>>, sink: &mut dyn Sink) {
    while crew.is_busy() {
        crew.listen(run, true, sink);
    }
    drop(crew);
    let mut panic = None;
    for (driver, threads) in run.drivers.iter_mut().zip(threads) {
        for thread in threads {
            match thread.join() {
                Ok(mut pair) => {
                    pair.assign(&driver.worker(0));
                    driver.return_queues([pair]);
                }
                Err(cause) => panic = panic.or(Some(cause)),
            }
        }
    }
    if let Some(cause) = panic {
        std::panic::resume_unwind(cause);
    }
}
