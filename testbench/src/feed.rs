//! Frames on their way to the wire: which port each goes to, and when it may start there.

use std::borrow::Borrow;
use std::collections::VecDeque;

use models::time::Time;
use regs::PortId;

use crate::bench::Bench;
use crate::card::WireFrame;
use crate::run::InFrame;
use crate::shape::Pace;

/// Frames on their way to ports, in the order of the capture for each, with their start times. `F` is however the
/// frames are held: borrowed from an input, or shared with it.
pub(crate) struct Feed<F> {
    pace: Pace,
    waiting: Vec<VecDeque<F>>,
    /// When each port's next frame may start.
    next_start: Vec<Time>,
    begin: Time,
    /// Capture time that corresponds to `begin`, and how much of the gaps was cut so far.
    first_ns: Option<u64>,
    cut_ns: u64,
    last_ns: u64,
    /// Start times of the frames given to each port's wire that may still wait there, where the pace sets them.
    starts: Vec<VecDeque<Time>>,
}

impl<F: Borrow<InFrame>> Feed<F> {
    /// Nothing waits; the first frame starts at `begin` at the earliest.
    pub(crate) fn new(pace: Pace, begin: Time, ports: usize) -> Feed<F> {
        Feed {
            pace,
            waiting: (0..ports).map(|_| VecDeque::new()).collect(),
            next_start: vec![begin; ports],
            begin,
            first_ns: None,
            cut_ns: 0,
            last_ns: 0,
            starts: vec![VecDeque::new(); ports],
        }
    }

    /// No frame waits for its turn behind others.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.iter().all(VecDeque::is_empty)
    }

    /// How many ports it feeds.
    pub(crate) fn ports(&self) -> usize {
        self.waiting.len()
    }

    /// The next frame for a port; frames for others that come first are kept.
    pub(crate) fn next_for(&mut self, port: usize, wire: &mut dyn Iterator<Item = F>, more: &mut bool) -> Option<F> {
        if let Some(frame) = self.waiting[port].pop_front() {
            return Some(frame);
        }
        loop {
            let Some(frame) = wire.next() else {
                *more = false;
                return None;
            };
            let to = usize::from(frame.borrow().port.0);
            if to == port {
                return Some(frame);
            }
            // A port that the card doesn't have was refused when the input was read.
            if let Some(queue) = self.waiting.get_mut(to) {
                queue.push_back(frame);
            }
        }
    }

    /// As the wire takes it, in `buffer`.
    pub(crate) fn timed(&mut self, frame: &InFrame, mut buffer: Vec<u8>) -> WireFrame {
        buffer.clear();
        buffer.extend_from_slice(&frame.data);
        let time = self.start_of(frame);
        if time > Time::ZERO {
            self.starts[usize::from(frame.port.0)].push_back(time);
        }
        WireFrame { time, data: buffer, err: frame.err }
    }

    /// When the first frame that still waits at a wire starts; no later than now where the pace sets no times.
    pub(crate) fn first_start(&mut self, bench: &Bench) -> Time {
        let mut first = None;
        for (port, starts) in self.starts.iter_mut().enumerate().filter(|(_, starts)| !starts.is_empty()) {
            let entered = starts.len().saturating_sub(bench.wire_queued(PortId(port as u8)));
            starts.drain(..entered);
            first = first.into_iter().chain(starts.front().copied()).min();
        }
        first.unwrap_or(Time::ZERO)
    }

    fn start_of(&mut self, frame: &InFrame) -> Time {
        let port = usize::from(frame.port.0);
        // On the wire preamble, FCS and the least gap add 24 bytes. Source: IEEE 802.3.
        let bits = (frame.data.len() as u64 + 24) * 8;
        match self.pace {
            Pace::Fast | Pace::Bus => Time::ZERO,
            Pace::Line => self.take(port, bits * 10),
            Pace::Rate { mbps } => self.take(port, bits * 1_000_000 / mbps.max(1)),
            Pace::Capture { max_gap_ns } => self.capture_time(frame, max_gap_ns),
        }
    }

    fn take(&mut self, port: usize, duration_ps: u64) -> Time {
        let start = self.next_start[port];
        self.next_start[port] = start + duration_ps;
        start
    }

    /// The capture's own time, gaps over the limit cut; a time that goes backwards counts as no gap.
    fn capture_time(&mut self, frame: &InFrame, max_gap_ns: u64) -> Time {
        let Some(ns) = frame.time_ns else { return self.next_start[usize::from(frame.port.0)] };
        let first = *self.first_ns.get_or_insert(ns);
        let at = ns.saturating_sub(first).max(self.last_ns);
        self.cut_ns += (at - self.last_ns).saturating_sub(max_gap_ns);
        self.last_ns = at;
        self.begin.saturating_add((at - self.cut_ns).saturating_mul(1_000))
    }
}
