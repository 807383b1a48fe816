//! One PCIe function's receive side in the QDMA subsystem: its registers, the hash, the queue choice, the beat FIFO.
//!
//! Source: shell.md sections 7.2, 9 and 11.1.

use std::collections::VecDeque;

use regs::{FuncId, PortId, Qid, qdma_function};

use super::counters::UNMAPPED;
use super::{
    ADAPTER_RX_LATENCY_PS, AXIS_PS, BOX_250_LATENCY_PS, Observations, Profile, RSS_LATENCY_PS, beats, recycle_into,
};
use crate::observation::{Fate, Point};
use crate::rss::upstream::HashBlock;
use crate::rss::{INDIRECTION_ENTRIES, Key, OpennicInput, Tables, indirection_index};
use crate::time::{Clock, Time};
use crate::user_box::BoxFrame;

/// Beats that wait behind a stalled QDMA outside the receive buffer: beat FIFO 34, the buffer's output 19, slices 5. Upstream
/// measured 122 one-beat frames with a buffer of 64. Source: shell.md section 12.2.
const CAPACITY_BEATS: u32 = 58;
/// A queue has 11 bits. Source: shell.md section 9.5.
const QID_MASK: u32 = 2047;

pub(super) struct Function {
    id: FuncId,
    profile: Profile,
    qconf: u32,
    table: [u16; INDIRECTION_ENTRIES],
    key: Key,
    tables: Tables,
    tables_stale: bool,
    /// Upstream's read register, whose upper half a table read leaves alone (Q16).
    read_register: u32,
    fifo: VecDeque<Entry>,
    occupied_beats: u32,
    /// The port from which the last entry's remaining beats come.
    filling: Option<PortId>,
    /// The head frame has asked the arbiter.
    has_requested: bool,
    eligible_at: Time,
    upstream: UpstreamHash,
}

/// Upstream's hash of the last entry depends on what follows it.
struct UpstreamHash {
    block: HashBlock,
    /// The edge after the last beat's.
    stream_end: Time,
    undecided: bool,
}

/// A frame in the function.
pub(super) struct Entry {
    pub(super) data: Vec<u8>,
    pub(super) beats: u32,
    /// Where its remaining beats come from, when it leaves before it is whole.
    pub(super) filling: Option<PortId>,
    tuser_size: u16,
    beats_in: u32,
    /// The edge at which its header is through the hash; never, as long as the header is not in.
    ready_at: Time,
    qid: Option<Qid>,
}

impl Function {
    pub(super) fn new(id: FuncId, profile: Profile) -> Function {
        Function {
            id,
            profile,
            qconf: qdma_function::QCONF_RESET,
            table: [0; INDIRECTION_ENTRIES],
            key: Key::DEFAULT,
            tables: Tables::new(Key::DEFAULT.bytes()),
            tables_stale: false,
            read_register: 0,
            fifo: VecDeque::new(),
            occupied_beats: 0,
            filling: None,
            has_requested: false,
            eligible_at: Time::ZERO,
            upstream: UpstreamHash { block: HashBlock::new(), stream_end: Time::ZERO, undecided: false },
        }
    }

    /// Reset: registers, and all frames inside. How many those were.
    pub(super) fn clear(&mut self, pool: &mut Vec<Vec<u8>>) -> usize {
        let frames = self.fifo.len();
        self.fifo.drain(..).for_each(|entry| recycle_into(pool, entry.data));
        *self = Function::new(self.id, self.profile);
        frames
    }

    pub(super) fn inside(&self) -> usize {
        self.fifo.len()
    }

    /// Beats that `port` can put in now. Frames of two ports do not mix.
    pub(super) fn room(&self, port: PortId) -> u32 {
        match self.filling {
            Some(other) if other != port => 0,
            _ => CAPACITY_BEATS.saturating_sub(self.occupied_beats),
        }
    }

    /// Whether a whole frame of `beats` can come in at once; one longer than the FIFO, when the FIFO is empty.
    pub(super) fn takes_whole(&self, beats: u32) -> bool {
        self.filling.is_none() && (self.occupied_beats == 0 || self.occupied_beats + beats <= CAPACITY_BEATS)
    }

    /// The queues' range: first, count.
    fn queues(&self) -> (u32, u32) {
        (qdma_function::qconf::QUEUE_BASE.get(self.qconf), qdma_function::qconf::NUM_QUEUES.get(self.qconf))
    }

    /// Whether an H2C frame of this queue is this function's. Upstream's sum wraps at 16 bits. Source: shell.md section 10.
    pub(super) fn owns(&self, qid: Qid) -> bool {
        let (base, count) = self.queues();
        let end = match self.profile {
            Profile::Corrected => base + count,
            Profile::Upstream => (base + count) & 0xffff,
        };
        (base..end).contains(&u32::from(qid.0))
    }

    /// A frame's first beats come in from `now` on, the rest later unless it is `whole`. Its buffer comes back when it is
    /// dropped, which happens once its header is there; beats still to come then go nowhere.
    pub(super) fn enter(
        &mut self,
        now: Time,
        from: Option<PortId>,
        frame: BoxFrame,
        beats_in: u32,
        whole: bool,
        observations: &mut Observations,
    ) -> Option<Vec<u8>> {
        let total = beats(frame.data.len());
        let mut qid = None;
        match self.profile {
            Profile::Corrected => {
                let input = OpennicInput::parse(&frame.data);
                qid = self.choose(now, &input, observations);
                if qid.is_none() {
                    return Some(frame.data);
                }
            }
            Profile::Upstream => self.hash_upstream(now, &frame.data, total, observations),
        }
        let (data, tuser_size) = (frame.data, frame.tuser_size);
        self.fifo.push_back(Entry {
            data,
            beats: total,
            filling: None,
            tuser_size,
            beats_in: 0,
            ready_at: Time::NEVER,
            qid,
        });
        self.filling = from;
        self.more(now, beats_in, whole);
        if self.profile == Profile::Upstream {
            self.expect_next(now, total, whole, observations);
        }
        None
    }

    /// Further beats of the last frame.
    pub(super) fn more(&mut self, now: Time, beats_in: u32, whole: bool) {
        self.occupied_beats += beats_in;
        if whole {
            self.filling = None;
        }
        let Some(entry) = self.fifo.back_mut() else { return };
        let header_beats = entry.beats.min(2);
        let missing = header_beats.saturating_sub(entry.beats_in);
        entry.beats_in += beats_in;
        if entry.ready_at == Time::NEVER && entry.beats_in >= header_beats {
            let header_in = now + u64::from(missing.max(1) - 1) * AXIS_PS;
            entry.ready_at = Clock::AXIS.align(header_in + ADAPTER_RX_LATENCY_PS + BOX_250_LATENCY_PS + RSS_LATENCY_PS);
        }
    }

    /// Hash, table, queue. `None`: the entry is outside the function's queues (corrected only; quirk Q20).
    fn choose(&mut self, now: Time, input: &OpennicInput, observations: &mut Observations) -> Option<Qid> {
        if std::mem::take(&mut self.tables_stale) {
            self.tables.rebuild(self.key.bytes());
        }
        let hash = self.tables.hash(input);
        let entry = self.table[indirection_index(hash)];
        let (base, count) = self.queues();
        let dropped = self.profile == Profile::Corrected && u32::from(entry) >= count;
        let fate = if dropped { Fate::QueueRange } else { Fate::Accepted };
        observations.push(now, Point::Rss { func: self.id, hash, entry, fate });
        (!dropped).then_some(Qid(((u32::from(entry) + base) & QID_MASK) as u16))
    }

    /// Upstream: this frame decides the fields of the one before, if they touch.
    fn hash_upstream(&mut self, now: Time, data: &[u8], total: u32, observations: &mut Observations) {
        let gap_cycles = Clock::AXIS.align(now).0.saturating_sub(self.upstream.stream_end.0) / AXIS_PS;
        let before = self.upstream.block.push(data, total as usize, gap_cycles);
        self.decide(now, before, observations);
    }

    fn expect_next(&mut self, now: Time, total: u32, whole: bool, observations: &mut Observations) {
        self.upstream.stream_end = Clock::AXIS.align(now) + u64::from(total) * AXIS_PS;
        self.upstream.undecided = true;
        if !whole {
            // Its beats do not come in consecutive cycles, so nothing follows it in time to lend or borrow a nibble.
            self.decide_last(now, observations);
        }
    }

    /// When nothing can follow the last frame without a gap any more.
    pub(super) fn decide_due(&self) -> Time {
        if self.upstream.undecided { self.upstream.stream_end + 1 } else { Time::NEVER }
    }

    /// Nothing followed the last frame.
    pub(super) fn decide_last(&mut self, now: Time, observations: &mut Observations) {
        let last = self.upstream.block.flush();
        self.decide(now, last, observations);
    }

    /// The last entry's fields are known.
    fn decide(&mut self, now: Time, input: Option<OpennicInput>, observations: &mut Observations) {
        self.upstream.undecided = false;
        let Some(input) = input else { return };
        let qid = self.choose(now, &input, observations);
        if let Some(entry) = self.fifo.back_mut() {
            entry.qid = qid;
            entry.ready_at = entry.ready_at.max(Clock::AXIS.align(now));
        }
    }

    /// When the head frame asks the arbiter.
    pub(super) fn request_due(&self) -> Time {
        match self.fifo.front() {
            Some(Entry { qid: Some(_), ready_at, .. }) if !self.has_requested => (*ready_at).max(self.eligible_at),
            _ => Time::NEVER,
        }
    }

    pub(super) fn requested(&mut self) {
        self.has_requested = true;
    }

    /// The last frame's last beat was accepted: the next frame may ask from `time` on.
    pub(super) fn eligible_from(&mut self, time: Time) {
        self.has_requested = false;
        self.eligible_at = Clock::AXIS.align(time);
    }

    /// Queue and length of the frame that the arbiter chose.
    pub(super) fn head(&self) -> Option<(Qid, u16)> {
        let entry = self.fifo.front()?;
        Some((entry.qid?, entry.tuser_size))
    }

    /// That frame goes, one beat a cycle from now on.
    pub(super) fn leave(&mut self) -> Option<Entry> {
        let mut entry = self.fifo.pop_front()?;
        // Beats come in no faster than they leave, so the room can be given at once.
        self.occupied_beats -= entry.beats_in;
        if self.fifo.is_empty() {
            entry.filling = self.filling.take();
        }
        Some(entry)
    }

    /// A register read at a function-relative offset. Address bits 1:0 and 11 of the table do not count.
    pub(super) fn read(&mut self, offset: u32) -> u32 {
        let value = match Target::of(offset) {
            Target::Qconf => self.qconf,
            Target::Table(n) => {
                let left_over = if self.profile == Profile::Upstream { self.read_register & 0xffff_0000 } else { 0 };
                left_over | u32::from(self.table[n])
            }
            Target::Key(i) => self.key.word(i),
            Target::None => UNMAPPED,
        };
        self.read_register = value;
        value
    }

    /// A register write at a function-relative offset.
    pub(super) fn write(&mut self, offset: u32, value: u32) {
        match Target::of(offset) {
            Target::Qconf => self.qconf = value,
            Target::Table(n) => self.table[n] = value as u16,
            Target::Key(i) => {
                self.key.set_word(i, value);
                self.tables_stale = true;
            }
            Target::None => {}
        }
    }
}

/// What a function-relative offset names.
enum Target {
    Qconf,
    Table(usize),
    Key(usize),
    None,
}

impl Target {
    fn of(offset: u32) -> Target {
        const TABLE_END: u32 = qdma_function::INDIRECTION_TABLE + 4 * qdma_function::INDIRECTION_TABLE_COUNT - 1;
        const KEY_END: u32 = qdma_function::HASH_KEY + 4 * qdma_function::HASH_KEY_COUNT - 1;
        match offset {
            qdma_function::QCONF => Target::Qconf,
            qdma_function::HASH_KEY..=KEY_END => Target::Key(((offset - qdma_function::HASH_KEY) / 4) as usize),
            // Bit 11 is not decoded: 0xC00… is the table again. Source: shell.md section 7.2.
            _ => match offset & !0x800 {
                table @ qdma_function::INDIRECTION_TABLE..=TABLE_END => {
                    Target::Table(((table - qdma_function::INDIRECTION_TABLE) / 4) as usize)
                }
                _ => Target::None,
            },
        }
    }
}
