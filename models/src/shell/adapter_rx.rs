//! The packet adapter's receive side: a buffer of D beats in the MAC's clock that drops whole frames, and its reader.
//!
//! Corrected: a frame goes on whole, or is dropped whole and counted once. Upstream's buffer rewinds, flags and queues
//! lengths a beat at a time; quirks Q4, Q5, Q10 and Q17 are reproduced from the same beat counts.
//!
//! Source: shell.md section 12.2.

use std::collections::VecDeque;

use regs::{PortId, packet_adapter};

use super::counters::CounterPage;
use super::{AXIS_PS, BEAT_LEN_BYTES, Profile, beats};
use crate::observation::Fate;
use crate::time::Time;
use crate::user_box::BoxFrame;

pub(super) struct AdapterRx {
    depth: u32,
    /// Whole frames that the reader has not begun.
    frames: VecDeque<Stored>,
    /// Beats of whole frames in the buffer, those of `reading` included.
    stored_beats: u32,
    /// The beats that the reader is taking out, or has taken.
    reading: Reading,
    /// Beats that the frame under the reader still has in the buffer after `reading`.
    unread_beats: u32,
    upstream: Upstream,
}

struct Stored {
    data: Vec<u8>,
    whole_at: Time,
}

/// `beats` beats leave, one an `axis_aclk` cycle from `start` on.
#[derive(Clone, Copy, Default)]
struct Reading {
    start: Time,
    beats: u32,
}

impl Reading {
    fn end(self) -> Time {
        self.start + u64::from(self.beats) * AXIS_PS
    }

    /// Beats gone at `time`.
    fn gone(self, time: Time) -> u32 {
        if self.beats == 0 || time < self.start {
            return 0;
        }
        u64::min((time - self.start) / AXIS_PS + 1, self.beats.into()) as u32
    }
}

/// What upstream's buffer remembers from one frame to the next, and should not.
#[derive(Default)]
struct Upstream {
    /// A last beat that arrived when the buffer was full left the drop flag set (Q5).
    drop_flag: bool,
    /// Lengths queued for frames that leave: one too many for each errored frame (Q4).
    lengths: VecDeque<u16>,
    /// Length of the frame before, of whatever fate (Q17).
    previous_len: u64,
    /// What the event queue of received frames shows (Q17).
    shown_len: u64,
    /// A beat of an over-long frame that the reader fetched too early (Q10).
    ghost: Option<Ghost>,
}

struct Ghost {
    beat: [u8; BEAT_LEN_BYTES],
    /// It stands before the next frame that is stored, rather than in place of its first beat.
    in_front: bool,
}

impl AdapterRx {
    pub(super) fn new(depth: u32) -> AdapterRx {
        AdapterRx {
            depth,
            frames: VecDeque::new(),
            stored_beats: 0,
            reading: Reading::default(),
            unread_beats: 0,
            upstream: Upstream::default(),
        }
    }

    /// D.
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// Beats in the buffer at `time`.
    pub(super) fn occupied(&self, time: Time) -> u32 {
        self.stored_beats - self.reading.gone(time)
    }

    /// Whole frames that the reader has not begun.
    pub(super) fn inside(&self) -> usize {
        self.frames.len()
    }

    /// Drop everything. How many frames that were.
    pub(super) fn clear(&mut self, pool: &mut Vec<Vec<u8>>) -> usize {
        let frames = self.frames.len();
        self.frames.drain(..).for_each(|frame| super::recycle_into(pool, frame.data));
        (self.stored_beats, self.reading, self.unread_beats) = (0, Reading::default(), 0);
        self.upstream = Upstream::default();
        frames
    }

    /// A frame whose last beat arrives at `last_beat`, its beats in consecutive cycles. Its fate, and its buffer if it was
    /// not kept. Upstream counts here, since its counts are no function of the frame's fate.
    pub(super) fn store(
        &mut self,
        last_beat: Time,
        data: Vec<u8>,
        err: bool,
        profile: Profile,
        counters: &mut CounterPage,
    ) -> (Fate, Option<Vec<u8>>) {
        let fate = match profile {
            Profile::Corrected => self.judge(last_beat, beats(data.len()), err),
            Profile::Upstream => self.judge_upstream(last_beat, &data, err, counters),
        };
        if fate != Fate::Accepted {
            return (fate, Some(data));
        }
        self.stored_beats += beats(data.len());
        self.frames.push_back(Stored { data, whole_at: last_beat });
        (fate, None)
    }

    /// The frame met a full buffer at some beat exactly when it did at its last: beats come in faster (322 MHz) than they
    /// leave (250 MHz), so while it arrives the buffer never empties by more than one beat for each that comes in.
    fn judge(&self, last_beat: Time, beats: u32, err: bool) -> Fate {
        if beats > self.depth {
            Fate::TooLong
        } else if self.occupied(last_beat) + beats > self.depth {
            Fate::Overflow
        } else if err {
            Fate::Error
        } else {
            Fate::Accepted
        }
    }

    fn judge_upstream(&mut self, last_beat: Time, data: &[u8], err: bool, counters: &mut CounterPage) -> Fate {
        let n = beats(data.len());
        let others = self.occupied(last_beat);
        // The buffer was full before the last beat, which set the flag and rewound what this frame had stored.
        let dropped_before = self.upstream.drop_flag || (n > 1 && others + n - 1 > self.depth);
        // At the last beat: with the frame rewound only the others' beats are there.
        let full = if dropped_before { others >= self.depth } else { others + n > self.depth };
        let fate = if dropped_before || full {
            Fate::Overflow
        } else if err {
            Fate::Error
        } else {
            Fate::Accepted
        };
        self.note_ghost(data, n, others);
        if full {
            // Q5: no event at all, and the flag stays for the next frame.
            self.upstream.drop_flag = true;
        } else {
            self.count_upstream(data.len(), dropped_before, err, counters);
        }
        self.upstream.previous_len = data.len() as u64;
        fate
    }

    /// An accepted last beat. Q4: its length is queued unless the flag was set before, stored or not.
    fn count_upstream(&mut self, len_bytes: usize, dropped_before: bool, err: bool, counters: &mut CounterPage) {
        let upstream = &mut self.upstream;
        upstream.drop_flag = false;
        // The length queue holds D + 2; more are lost (shell.md section 16).
        if !dropped_before && upstream.lengths.len() < self.depth as usize + 2 {
            upstream.lengths.push_back(len_bytes as u16);
        }
        if dropped_before || err {
            counters.add(packet_adapter::RX_PACKETS_DROPPED, 1);
            counters.add(packet_adapter::RX_BYTES_DROPPED, upstream.shown_len);
        } else {
            upstream.shown_len = upstream.previous_len;
            counters.add(packet_adapter::RX_PACKETS_RECEIVED, 1);
            counters.add(packet_adapter::RX_BYTES_RECEIVED, upstream.shown_len);
        }
        if err {
            counters.add(packet_adapter::RX_PACKETS_ERROR, 1);
            counters.add(packet_adapter::RX_BYTES_ERROR, upstream.shown_len);
        }
    }

    /// Q10: an over-long frame alone in the buffer fills it, which upstream's reader takes for a whole frame. Measured for
    /// D+1 and D+2 beats; longer frames are assumed to do as the latter.
    fn note_ghost(&mut self, data: &[u8], n: u32, others: u32) {
        if n > self.depth && others == 0 && !self.upstream.drop_flag {
            let mut beat = [0; BEAT_LEN_BYTES];
            beat.copy_from_slice(&data[..BEAT_LEN_BYTES]);
            self.upstream.ghost = Some(Ghost { beat, in_front: n == self.depth + 1 });
        }
    }

    /// When the reader can begin the next whole frame.
    pub(super) fn ready_at(&self) -> Time {
        self.frames.front().map_or(Time::NEVER, |frame| frame.whole_at.max(self.reading.end()))
    }

    /// When the reader has taken out what it began.
    pub(super) fn read_end(&self) -> Time {
        self.reading.end()
    }

    /// Begin the next frame: its bytes and side band, while its beats are still in the buffer.
    pub(super) fn next_frame(&mut self, port: PortId) -> Option<BoxFrame> {
        let mut data = self.frames.pop_front()?.data;
        self.unread_beats = beats(data.len());
        let mut tuser_size = data.len() as u16;
        if let Some(length) = self.upstream.lengths.pop_front() {
            tuser_size = length;
            self.haunt(&mut data);
        }
        Some(BoxFrame { data, tuser_size, tuser_src: 1 << (6 + port.0), tuser_dst: 0 })
    }

    fn haunt(&mut self, data: &mut Vec<u8>) {
        if let Some(ghost) = self.upstream.ghost.take() {
            let replaced = if ghost.in_front { 0 } else { data.len().min(BEAT_LEN_BYTES) };
            data.splice(..replaced, ghost.beat);
        }
    }

    /// The reader takes `beats` of them from `now` on.
    pub(super) fn read_beats(&mut self, now: Time, beats: u32) {
        let beats = beats.min(self.unread_beats);
        self.stored_beats -= self.reading.beats;
        self.unread_beats -= beats;
        self.reading = Reading { start: now, beats };
    }

    /// The reader takes the rest from `now` on; when it will have.
    pub(super) fn read_rest(&mut self, now: Time) -> Time {
        self.read_beats(now, self.unread_beats);
        self.reading.end()
    }
}
