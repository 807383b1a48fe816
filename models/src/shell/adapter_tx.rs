//! The packet adapter's transmit side: a buffer of D beats that sends only whole frames.
//!
//! Corrected: a frame longer than the buffer, or not meant for this port, is dropped and counted. Upstream's buffer takes
//! a frame of more than D+1 beats in for ever (Q7).
//!
//! Source: shell.md section 12.1.

use std::collections::VecDeque;

use super::{ADAPTER_TX_LATENCY_PS, AXIS_PS, Profile, beats};
use crate::time::{Clock, Time};

/// Preamble, FCS and gap on the wire, beside the frame's own bytes.
const WIRE_OVERHEAD_LEN_BYTES: u64 = 24;
/// One byte at 100 Gb/s.
const WIRE_BYTE_PS: u64 = 80;

pub(super) struct AdapterTx {
    depth: u32,
    frames: VecDeque<Waiting>,
    occupied_beats: u32,
    /// The head frame's beats on the wire: first, last.
    sending: Option<(Time, Time)>,
    wire_free_at: Time,
    /// Upstream: an over-long frame fills the buffer and never leaves (Q7).
    stuck: bool,
    enabled: bool,
}

struct Waiting {
    data: Vec<u8>,
    sendable_at: Time,
}

impl AdapterTx {
    pub(super) fn new(depth: u32, enabled: bool) -> AdapterTx {
        AdapterTx {
            depth,
            frames: VecDeque::new(),
            occupied_beats: 0,
            sending: None,
            wire_free_at: Time::ZERO,
            stuck: false,
            enabled,
        }
    }

    /// Frames inside.
    pub(super) fn inside(&self) -> usize {
        self.frames.len()
    }

    /// D.
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// Drop everything. How many frames that were.
    pub(super) fn clear(&mut self, pool: &mut Vec<Vec<u8>>) -> usize {
        let frames = self.frames.len();
        self.frames.drain(..).for_each(|frame| super::recycle_into(pool, frame.data));
        (self.occupied_beats, self.sending, self.stuck) = (0, None, false);
        frames
    }

    /// The MAC takes frames, or holds `tready` low. A frame on the wire ends first.
    pub(super) fn enable(&mut self, on: bool, now: Time) {
        self.enabled = on;
        if self.sending.is_some_and(|(first, _)| !on && first > now) {
            self.sending = None;
        }
        self.schedule(now);
    }

    /// The earliest time at or after `now` at which a frame of `n` beats can start to enter without meeting a full buffer;
    /// `None` while that depends on frames not yet on the wire. What will be dropped needs no room.
    pub(super) fn admit_at(&self, n: u32, now: Time, profile: Profile) -> Option<Time> {
        if self.stuck {
            return None;
        }
        let over_long = n > self.depth;
        match profile {
            Profile::Corrected if over_long => return Some(now),
            // One beat more than the buffer holds waits in the slice before it, and passes.
            Profile::Upstream if over_long => return if self.frames.is_empty() { Some(now) } else { None },
            _ => {}
        }
        // Beats enter faster than they leave, so the last one decides.
        let missing = (self.occupied_beats + n).saturating_sub(self.depth);
        if missing == 0 {
            return Some(now);
        }
        let (first, last) = self.sending?;
        let head = beats(self.frames.front()?.data.len());
        if missing > head {
            return None;
        }
        let each = if head > 1 { (last - first).div_ceil(u64::from(head - 1)) } else { 0 };
        let room_at = first + u64::from(missing - 1) * each;
        let start = Time(room_at.0.saturating_sub(u64::from(n - 1) * AXIS_PS));
        Some(Clock::AXIS.align(start.max(now)))
    }

    /// A frame enters, one beat a cycle from `now` on.
    pub(super) fn enter(&mut self, now: Time, data: Vec<u8>, profile: Profile) {
        let n = beats(data.len());
        self.stuck |= profile == Profile::Upstream && n > self.depth + 1;
        self.occupied_beats += n;
        let sendable_at = now + u64::from(n - 1) * AXIS_PS + ADAPTER_TX_LATENCY_PS;
        self.frames.push_back(Waiting { data, sendable_at });
        self.schedule(now);
    }

    /// When the head frame's last beat leaves.
    pub(super) fn due(&self) -> Time {
        self.sending.map_or(Time::NEVER, |(_, last)| last)
    }

    /// The head frame has left.
    pub(super) fn leave(&mut self, now: Time) -> Option<Vec<u8>> {
        self.sending = None;
        let frame = self.frames.pop_front()?;
        self.occupied_beats -= beats(frame.data.len());
        self.schedule(now);
        Some(frame.data)
    }

    /// Put the head frame on the wire: one beat a MAC cycle, and no faster than 100 Gb/s.
    fn schedule(&mut self, now: Time) {
        let Some(head) = self.frames.front() else { return };
        if self.sending.is_some() || !self.enabled || (self.stuck && self.frames.len() == 1) {
            return;
        }
        let edge = Clock::CMAC.edge_at_or_after(head.sendable_at.max(self.wire_free_at).max(now));
        let first = Clock::CMAC.edge(edge);
        let last_edge = edge + u64::from(beats(head.data.len())) - 1;
        let wire_ps = (head.data.len() as u64 + WIRE_OVERHEAD_LEN_BYTES) * WIRE_BYTE_PS;
        self.wire_free_at = (first + wire_ps).max(Clock::CMAC.edge(last_edge + 1));
        self.sending = Some((first, Clock::CMAC.edge(last_edge)));
    }
}
