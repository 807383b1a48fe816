//! Frames for the wire that a session sends in the background, once or again and again.

use std::borrow::Borrow;
use std::sync::Arc;

use models::time::Time;
use regs::PortId;

use super::wire_fault::WireFaults;
use crate::bench::Bench;
use crate::card::WireFrame;
use crate::feed::Feed;
use crate::run::InFrame;
use crate::shape::Pace;

/// How often a replay goes over its frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounds {
    /// So many times.
    Times(u64),
    /// Until it is stopped.
    Endless,
}

/// Frames to be replayed, and how.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// The frames, in the order of the capture.
    pub frames: Arc<[InFrame]>,
    /// When they start; as the session is set up, without.
    pub pace: Option<Pace>,
    /// How often.
    pub rounds: Rounds,
}

impl Traffic {
    /// Once, at the session's pace.
    pub fn new(frames: Vec<InFrame>) -> Traffic {
        Traffic { frames: frames.into(), pace: None, rounds: Rounds::Times(1) }
    }
}

/// A frame, shared with the input that it is of.
struct Shared {
    frames: Arc<[InFrame]>,
    at: usize,
}

impl Borrow<InFrame> for Shared {
    fn borrow(&self) -> &InFrame {
        &self.frames[self.at]
    }
}

/// Frames one after the other, round after round.
struct Frames {
    frames: Arc<[InFrame]>,
    at: usize,
    /// Rounds to come after this one; `None` if there is no end.
    more: Option<u64>,
}

impl Iterator for Frames {
    type Item = Shared;

    fn next(&mut self) -> Option<Shared> {
        if self.at == self.frames.len() {
            match &mut self.more {
                Some(0) => return None,
                Some(more) => *more -= 1,
                None => {}
            }
            self.at = 0;
        }
        self.at += 1;
        Some(Shared { frames: Arc::clone(&self.frames), at: self.at - 1 })
    }
}

/// A replay under way.
pub(super) struct Replay {
    frames: Frames,
    feed: Feed<Shared>,
    /// The frames have not all been handed out.
    more: bool,
}

impl Replay {
    pub(super) fn new(traffic: Traffic, pace: Pace, begin: Time, ports: usize) -> Replay {
        let (more, at) = match traffic.rounds {
            Rounds::Times(times) => (Some(times), traffic.frames.len()),
            Rounds::Endless => (None, 0),
        };
        // Nothing, however often, is nothing.
        let more = if traffic.frames.is_empty() { Some(0) } else { more };
        Replay { frames: Frames { frames: traffic.frames, at, more }, feed: Feed::new(pace, begin, ports), more: true }
    }

    /// The next frame for a port, as the faults leave it; one that they take away is passed over.
    pub(super) fn next(&mut self, port: PortId, buffer: Vec<u8>, faults: &mut WireFaults) -> Option<WireFrame> {
        let mut buffer = Some(buffer);
        loop {
            let frame = self.feed.next_for(usize::from(port.0), &mut self.frames, &mut self.more)?;
            let timed = self.feed.timed(frame.borrow(), buffer.take().unwrap_or_default());
            match faults.strike(timed) {
                Ok(frame) => return Some(frame),
                Err(lost) => buffer = Some(lost),
            }
        }
    }

    /// Every frame has gone to the wire.
    pub(super) fn is_done(&self) -> bool {
        !self.more && self.feed.is_empty()
    }

    /// It ends only when it is stopped.
    pub(super) fn is_endless(&self) -> bool {
        self.frames.more.is_none()
    }

    /// When the first frame that still waits at a wire starts.
    pub(super) fn first_start(&mut self, bench: &Bench) -> Time {
        self.feed.first_start(bench)
    }
}
