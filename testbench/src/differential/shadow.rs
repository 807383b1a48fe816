//! What the driver knows of its queues, and what it expects: a third witness beside the two engines, a few lines that count.
//!
//! Frames lined up at the C2H stream are followed in order, as the stream is. When both engines have settled,
//! [`Shadow::absorb`] works out how far they must have come, and what lies in which buffer.

use std::collections::VecDeque;

use regs::Qid;

use super::queue::{RxQueue, TxQueue, capacity};

/// Buffers that one frame may take.
pub const BUFFERS_MAX: usize = 31;

/// How much of an outcome two engines must share, when what caused it raced. Ordered: the more certain first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Certainty {
    /// All of it.
    #[default]
    Exact,
    /// That it happened, not how often.
    Presence,
    /// Nothing.
    Any,
}

/// How far two engines' status words of a completion ring may differ. Ordered: the more certain first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Word {
    /// Not at all.
    Exact,
    /// One notification, but of different moments of a burst.
    Moment,
    /// One may have notified where the other did not.
    Raced,
}

/// What a descriptor or completion queue can still do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Health {
    /// All.
    Runs,
    /// Its prefetch context is invalid: frames for it are lost.
    Off,
    /// It met an error and waits to be written anew.
    Failed,
}

/// A posted buffer.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// Where.
    pub addr: u64,
    /// Host memory refuses a part of it: what lies there is not looked at.
    pub missing: bool,
}

/// A receive queue that was started.
#[derive(Debug)]
pub struct Rx {
    /// The driver's side.
    pub queue: RxQueue,
    /// Its descriptor ring.
    pub desc: Health,
    /// Its completion ring.
    pub cmpl: Health,
    /// Buffers posted and not used, oldest first.
    pub posted: VecDeque<Buffer>,
    /// Buffers filled since both last settled.
    pub posted_in_round: usize,
    /// Low 64 bits of the completions that must lie in the ring unread, color and error left out, and whether with error.
    pub unread: VecDeque<(u64, bool)>,
    /// Completions read since both last settled: the card may meet the frames that follow before the doorbell that says so.
    pub read_in_round: usize,
    /// Buffers that frames lined up want.
    pub wanted: usize,
    /// Completions that frames lined up bring.
    pub due: usize,
    /// Frames came since both last settled.
    pub frames: u32,
    /// A CIDX doorbell was rung since both last settled.
    pub rung: bool,
    /// Frames and CIDX doorbells raced, so that the number of notifications is anybody's guess.
    pub raced: bool,
    /// A CIDX doorbell was ever rung, and its timer was not stopped since.
    pub monitored: bool,
    /// The last CIDX doorbell armed the interrupt.
    pub armed: bool,
    /// Its vector is beyond the table.
    pub bad_vector: bool,
    /// How far the status words of both may differ.
    pub word: Word,
    /// The status word that both last had.
    pub last_word: u64,
    /// Completions read since it was written.
    pub read_since_word: usize,
}

impl Rx {
    /// A queue just started.
    pub fn new(queue: RxQueue) -> Rx {
        Rx {
            queue,
            desc: Health::Runs,
            cmpl: Health::Runs,
            posted: VecDeque::new(),
            posted_in_round: 0,
            unread: VecDeque::new(),
            read_in_round: 0,
            wanted: 0,
            due: 0,
            frames: 0,
            rung: false,
            raced: false,
            monitored: false,
            armed: false,
            bad_vector: false,
            word: Word::Exact,
            last_word: 0,
            read_since_word: 0,
        }
    }

    /// All is well with it.
    pub fn runs(&self) -> bool {
        self.desc == Health::Runs && self.cmpl == Health::Runs
    }

    /// Buffers posted that no frame wants yet.
    pub fn free_buffers(&self) -> usize {
        self.posted.len().saturating_sub(self.wanted)
    }

    /// Completions that its ring still takes, whatever of this round's doorbells has arrived.
    pub fn free_entries(&self) -> usize {
        let taken = self.unread.len() + self.read_in_round + self.due;
        usize::from(capacity(self.queue.cmpl_entries)).saturating_sub(taken)
    }

    /// Descriptors that can still be posted.
    pub fn room(&self) -> usize {
        let ring = usize::from(capacity(self.queue.entries)).saturating_sub(self.posted.len());
        ring.min(self.queue.pool.len().saturating_sub(self.posted.len()))
    }

    /// The driver reads the oldest completion.
    pub fn read_one(&mut self) {
        self.unread.pop_front();
        self.queue.consume();
        self.read_in_round += 1;
    }

    /// Nothing of it moved since both last settled.
    pub fn is_quiet(&self) -> bool {
        self.frames == 0 && !self.rung && !self.raced
    }
}

/// A transmit queue that was started.
#[derive(Debug)]
pub struct Tx {
    /// The driver's side.
    pub queue: TxQueue,
    /// All is well with it.
    pub health: Health,
    /// Descriptors posted since both last settled: none is outstanding longer than that.
    pub posted: usize,
    /// Bytes of them.
    pub bytes: u64,
    /// Doorbells since both last settled.
    pub bells: u32,
    /// The doorbells of this round armed differently.
    pub mixed: bool,
    /// The last doorbell armed the interrupt.
    pub armed: bool,
    /// Its vector is beyond the table.
    pub bad_vector: bool,
    /// Frames that must come out, in order: data, metadata, error flag.
    pub expected: VecDeque<(Vec<u8>, u32, bool)>,
}

impl Tx {
    /// A queue just started.
    pub fn new(queue: TxQueue) -> Tx {
        Tx {
            queue,
            health: Health::Runs,
            posted: 0,
            bytes: 0,
            bells: 0,
            mixed: false,
            armed: false,
            bad_vector: false,
            expected: VecDeque::new(),
        }
    }

    /// Descriptors that can still be posted.
    pub fn room(&self) -> usize {
        usize::from(capacity(self.queue.entries)).saturating_sub(self.posted)
    }

    /// How far its status words and interrupts are certain.
    pub fn certainty(&self) -> Certainty {
        let sw = &self.queue.spec.sw;
        match self.bells {
            0 => Certainty::Exact,
            _ if !sw.wbi_chk && sw.wbi_intvl_en => Certainty::Any,
            1 => Certainty::Exact,
            _ if self.mixed => Certainty::Any,
            _ => Certainty::Presence,
        }
    }
}

/// A frame lined up at the C2H stream.
#[derive(Debug)]
pub struct Lined {
    /// Its queue, if one was started.
    pub slot: Option<usize>,
    /// Its bytes.
    pub data: Vec<u8>,
    /// Its completion's queue, if it has one: slot, and the entry's low 64 bits.
    pub completion: Option<(usize, u64)>,
}

/// Where a frame's bytes must lie now.
#[derive(Debug)]
pub struct Landed {
    /// Whose.
    pub qid: Qid,
    /// Each buffer with what must lie in it.
    pub parts: Vec<(u64, Vec<u8>)>,
}

/// All queues, by slot, and the stream.
#[derive(Debug, Default)]
pub struct Shadow {
    /// Receive queues.
    pub rx: Vec<Option<Rx>>,
    /// Transmit queues.
    pub tx: Vec<Option<Tx>>,
    /// Frames not known to be through.
    pub stream: VecDeque<Lined>,
}

impl Shadow {
    /// So many slots, nothing started.
    pub fn new(slots: usize) -> Shadow {
        Shadow {
            rx: (0..slots).map(|_| None).collect(),
            tx: (0..slots).map(|_| None).collect(),
            stream: VecDeque::new(),
        }
    }

    /// The slot for whose descriptors the stream waits. Only after [`Shadow::absorb`].
    pub fn blocked_by(&self) -> Option<usize> {
        self.stream.front().and_then(|lined| lined.slot)
    }

    /// Both engines have settled: take off the stream what must be through.
    pub fn absorb(&mut self) -> Vec<Landed> {
        let mut landed = Vec::new();
        while let Some(lined) = self.stream.front() {
            let rx = lined.slot.and_then(|slot| self.rx[slot].as_mut());
            let buffers = match rx {
                None => None,
                Some(rx) => {
                    let needed = rx.queue.buffers_of(lined.data.len());
                    let fits = rx.queue.buffer_bytes != 0 && needed <= BUFFERS_MAX;
                    match rx.desc {
                        Health::Off => None,
                        Health::Failed => Some(Vec::new()),
                        Health::Runs if !fits => None,
                        Health::Runs if needed > rx.posted.len() => return landed,
                        Health::Runs => Some(rx.posted.drain(..needed).collect()),
                    }
                }
            };
            let Some(lined) = self.stream.pop_front() else { return landed };
            self.settle_accounts(&lined);
            if let Some(buffers) = buffers {
                landed.extend(self.deliver(lined, &buffers));
            }
        }
        landed
    }

    /// The frame no longer waits.
    fn settle_accounts(&mut self, lined: &Lined) {
        if let Some(rx) = lined.slot.and_then(|slot| self.rx[slot].as_mut()) {
            rx.wanted = rx.wanted.saturating_sub(rx.queue.buffers_of(lined.data.len()));
        }
        if let Some(rx) = lined.completion.and_then(|(slot, _)| self.rx[slot].as_mut()) {
            rx.due = rx.due.saturating_sub(1);
        }
    }

    /// The frame is written, or its queue is in error; its completion follows.
    fn deliver(&mut self, lined: Lined, buffers: &[Buffer]) -> Option<Landed> {
        let rx = lined.slot.and_then(|slot| self.rx[slot].as_ref())?;
        let failed = rx.desc == Health::Failed;
        let (qid, bytes) = (rx.queue.spec.qid, usize::from(rx.queue.buffer_bytes).max(1));
        if let Some((slot, entry)) = lined.completion
            && let Some(rx) = self.rx[slot].as_mut()
            && rx.cmpl == Health::Runs
        {
            if rx.unread.len() < usize::from(capacity(rx.queue.cmpl_entries)) {
                rx.unread.push_back((entry, failed));
                rx.cmpl = if failed { Health::Failed } else { Health::Runs };
            } else {
                rx.cmpl = Health::Failed;
            }
        }
        let parts = buffers.iter().zip(lined.data.chunks(bytes));
        let parts = parts.filter(|(buffer, _)| !buffer.missing).map(|(buffer, part)| (buffer.addr, part.to_vec()));
        Some(Landed { qid, parts: parts.collect() })
    }

    /// A new round begins. Frames that wait still come in it.
    pub fn next_round(&mut self) {
        for rx in self.rx.iter_mut().flatten() {
            (rx.frames, rx.rung, rx.raced) = (rx.due as u32, false, false);
            (rx.posted_in_round, rx.read_in_round) = (0, 0);
        }
        for tx in self.tx.iter_mut().flatten() {
            (tx.posted, tx.bytes, tx.bells, tx.mixed) = (0, 0, 0, false);
        }
    }
}
