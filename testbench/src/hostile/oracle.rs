//! What a look at a queue must end in, worked out from the words in memory and the doorbells seen, by the rules of
//! `spec/qdma.md` 5.1 to 5.6 and from none of the driver's code.
//!
//! Each word is one of three kinds:
//!
//! * **illegal**: a correct card never writes it, and whoever reads the ring can tell. The driver must end with a fault
//!   that names it, and no frame of it may be handed up.
//! * **indistinguishable**: a correct card may write the very same word, so that no reader can tell: an entry of the
//!   right color and queue with a length that the posted buffers hold (even if the bytes behind it never came, or the
//!   entry is one too many); an entry of the wrong color, which is one not yet written; a CIDX that lies among the
//!   frames posted (even if the card has not read them). The driver must take it for what it says and not fail.
//! * **without effect**: bits and fields that no reader has a use for: reserved bits, packet numbers, a status word's
//!   index inside the ring. Frames are found by color (5.6), so that such an index moves nothing, and neither "behind"
//!   (a status is written when moderation says so, 7.1) nor "ahead" (relaxed ordering, 5.5) is a fault by itself. They
//!   must change nothing.
//!
//! Indices are counted here as the ring is laid out, and lengths in whole buffers: the oracle and the driver share no
//! arithmetic.

use std::fmt;

use driver_core::QueueFault;

use super::card::Event;
use super::words::{Entry, Lap, RxStatus, TxStatus};

/// Buffers that one frame may use (`spec/qdma.md` 5.3).
const FRAME_BUFFERS_MAX: u16 = 31;

/// Kinds of [`QueueFault`], as a set.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Kinds(u16);

impl Kinds {
    pub(super) const STATUS: Kinds = Kinds(1);
    pub(super) const INDEX_RANGE: Kinds = Kinds(2);
    pub(super) const INDEX_JUMP: Kinds = Kinds(4);
    pub(super) const COMPLETION: Kinds = Kinds(8);
    pub(super) const LENGTH: Kinds = Kinds(16);
    pub(super) const WRONG_QUEUE: Kinds = Kinds(32);
    pub(super) const PAGE: Kinds = Kinds(64);
    pub(super) const DOORBELL: Kinds = Kinds(128);

    /// Which kind a fault is.
    pub(super) fn of(fault: &QueueFault) -> Kinds {
        match fault {
            QueueFault::Status { .. } => Kinds::STATUS,
            QueueFault::IndexRange { .. } => Kinds::INDEX_RANGE,
            QueueFault::IndexJump { .. } => Kinds::INDEX_JUMP,
            QueueFault::Completion { .. } => Kinds::COMPLETION,
            QueueFault::Length { .. } => Kinds::LENGTH,
            QueueFault::WrongQueue { .. } => Kinds::WRONG_QUEUE,
            QueueFault::Page(_) => Kinds::PAGE,
            QueueFault::Doorbell(_) => Kinds::DOORBELL,
        }
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn has(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }

    fn add(&mut self, other: Kinds) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 8] =
            ["Status", "IndexRange", "IndexJump", "Completion", "Length", "WrongQueue", "Page", "Doorbell"];
        let names = NAMES.iter().enumerate().filter(|(bit, _)| self.0 >> bit & 1 == 1).map(|(_, name)| name);
        f.debug_set().entries(names).finish()
    }
}

/// One look at a receive queue.
pub(super) struct Look<'a> {
    /// Words of the completion ring before it, status last.
    pub(super) before: &'a [u64],
    /// The same after it, if the card acted while it went on.
    pub(super) after: Option<&'a [u64]>,
    /// What happened in it.
    pub(super) log: &'a [Event],
    /// Most frames that were asked for.
    pub(super) budget: usize,
    /// What came of it.
    pub(super) result: Result<usize, QueueFault>,
}

/// The reader's side of a receive queue, as it must be.
#[derive(Clone, Copy, Debug)]
pub(super) struct RxOracle {
    lap: Lap,
    qid: u16,
    buffer: u16,
    /// Next entry to read, and its color.
    pub(super) cidx: u16,
    color: bool,
    /// CIDX that the card was told.
    credited: u16,
    /// Descriptors whose buffers came back, as an index; and PIDX that the card was told.
    consumed: u16,
    published: u16,
}

impl RxOracle {
    /// Of a queue that has just been started.
    pub(super) fn new(entries: u16, qid: u16, buffer: u16, published: u16) -> RxOracle {
        let lap = Lap::of(entries);
        RxOracle { lap, qid, buffer, cidx: 0, color: true, credited: 0, consumed: 0, published }
    }

    /// Is the next entry written, as its color says?
    fn claimed(&self, entry: Entry) -> bool {
        entry.color() == self.color
    }

    fn buffers(&self, entry: Entry) -> u16 {
        let (len, buffer) = (u32::from(entry.len_bytes()), u32::from(self.buffer));
        (len / buffer + u32::from(len % buffer != 0)) as u16
    }

    /// What is wrong with an entry that is claimed.
    fn wrong(&self, entry: Entry) -> Kinds {
        let mut wrong = Kinds::default();
        if entry.err() {
            wrong.add(Kinds::COMPLETION);
        }
        if entry.qid() != self.qid {
            wrong.add(Kinds::WRONG_QUEUE);
        }
        let buffers = self.buffers(entry);
        if buffers == 0 || buffers > FRAME_BUFFERS_MAX || buffers > self.lap.ahead(self.consumed, self.published) {
            wrong.add(Kinds::LENGTH);
        }
        wrong
    }

    fn wrong_status(&self, status: RxStatus) -> Kinds {
        let mut wrong = Kinds::default();
        if status.err() != 0 {
            wrong.add(Kinds::STATUS);
        }
        if status.pidx() >= self.lap.0 {
            wrong.add(Kinds::INDEX_RANGE);
        }
        wrong
    }

    /// Hold a look against the rules, and go on from where it ended. Says what was wrong with the words, if anything.
    ///
    /// # Errors
    /// What the driver did that it must not, or left undone.
    pub(super) fn judge(&mut self, look: &Look<'_>) -> Result<Kinds, String> {
        let status = usize::from(self.lap.0);
        let mut wrong = self.wrong_status(RxStatus(look.before[status]));
        let certain = look.after.is_none();
        if let Some(after) = look.after {
            wrong.add(self.wrong_status(RxStatus(after[status])));
        }
        let mut delivered = 0;
        let mut refused = Kinds::default();
        for event in look.log {
            match *event {
                Event::RxPidx(pidx) => self.publish(pidx)?,
                Event::RxCidx(cidx) => self.credit(cidx)?,
                Event::DoorbellRefused { tx: false } => refused.add(Kinds::DOORBELL),
                Event::SyncRefused => refused.add(Kinds::PAGE),
                Event::Delivered { len_bytes } => {
                    self.deliver(look, len_bytes)?;
                    delivered += 1;
                }
                _ => {}
            }
        }
        let next = self.words(look).filter(|entry| self.claimed(*entry)).map(|entry| self.wrong(entry));
        let mut waiting = false;
        for next in next {
            waiting = true;
            wrong.add(next);
        }
        match look.result {
            Err(fault) => {
                let kind = Kinds::of(&fault);
                let mut allowed = wrong;
                allowed.add(refused);
                if !allowed.has(kind) {
                    return Err(format!("the queue fails with `{fault}`, but what is wrong is {allowed:?}"));
                }
                Ok(kind)
            }
            Ok(count) if count != delivered => Err(format!("a look says {count} frames, but handed up {delivered}")),
            Ok(count) if count > look.budget => Err(format!("{count} frames, but only {} were asked for", look.budget)),
            Ok(_) if !refused.is_empty() => Err(format!("{refused:?} was refused, and the queue did not fail")),
            Ok(count) if certain && count < look.budget && waiting => {
                Err(format!("entry {} is written ({wrong:?} is wrong with it), and a look ends before it", self.cidx))
            }
            Ok(_) if certain && !self.wrong_status(RxStatus(look.before[status])).is_empty() => {
                Err(format!("{wrong:?} is wrong with the status word, and the queue did not fail"))
            }
            Ok(_) => Ok(Kinds::default()),
        }
    }

    /// The next entry, as it was before and as it was after.
    fn words(&self, look: &Look<'_>) -> impl Iterator<Item = Entry> + use<> {
        let at = usize::from(self.cidx);
        let after = look.after.map(|words| words[at]).filter(|word| *word != look.before[at]);
        [Some(look.before[at]), after].into_iter().flatten().map(Entry)
    }

    fn deliver(&mut self, look: &Look<'_>, len_bytes: usize) -> Result<(), String> {
        let good = |entry: &Entry| {
            self.claimed(*entry) && self.wrong(*entry).is_empty() && usize::from(entry.len_bytes()) == len_bytes
        };
        let Some(entry) = self.words(look).find(good) else {
            let word = look.before[usize::from(self.cidx)];
            return Err(format!("a frame of {len_bytes} bytes is handed up, but entry {} is {word:#018x}", self.cidx));
        };
        self.consumed = self.lap.step(self.consumed, self.buffers(entry));
        self.cidx = self.lap.step(self.cidx, 1);
        self.color ^= self.cidx == 0;
        Ok(())
    }

    fn publish(&mut self, pidx: u16) -> Result<(), String> {
        let (before, after) = (self.lap.ahead(self.consumed, self.published), self.lap.ahead(self.consumed, pidx));
        if pidx >= self.lap.0 || after < before {
            return Err(format!(
                "the driver moves PIDX from {} to {pidx}: {before} buffers, then {after}",
                self.published
            ));
        }
        self.published = pidx;
        Ok(())
    }

    fn credit(&mut self, cidx: u16) -> Result<(), String> {
        if cidx >= self.lap.0 || self.lap.ahead(self.credited, cidx) > self.lap.ahead(self.credited, self.cidx) {
            return Err(format!(
                "the driver moves CIDX from {} to {cidx}, having read up to {}",
                self.credited, self.cidx
            ));
        }
        self.credited = cidx;
        Ok(())
    }
}

/// The writer's side of a transmit queue, as it must be.
#[derive(Clone, Copy, Debug)]
pub(super) struct TxOracle {
    lap: Lap,
    /// Next descriptor to write, what the card was told, and the oldest that is not taken back.
    pub(super) posted: u16,
    published: u16,
    reaped: u16,
}

impl TxOracle {
    /// Of a queue that has just been started.
    pub(super) fn new(entries: u16) -> TxOracle {
        TxOracle { lap: Lap::of(entries), posted: 0, published: 0, reaped: 0 }
    }

    /// Frames posted and not taken back.
    pub(super) fn outstanding(&self) -> u16 {
        self.lap.ahead(self.reaped, self.posted)
    }

    /// No descriptor is free: one entry stays empty.
    pub(super) fn is_full(&self) -> bool {
        self.outstanding() == self.lap.0 - 1
    }

    /// The driver took one more frame.
    pub(super) fn post(&mut self) {
        self.posted = self.lap.step(self.posted, 1);
    }

    /// What is wrong with a status word.
    pub(super) fn wrong(&self, status: TxStatus) -> Kinds {
        let mut wrong = Kinds::default();
        if status.err() != 0 {
            wrong.add(Kinds::STATUS);
        }
        if status.cidx() >= self.lap.0 {
            wrong.add(Kinds::INDEX_RANGE);
        } else if self.moved(status) > self.lap.ahead(self.reaped, self.published) {
            wrong.add(Kinds::INDEX_JUMP);
        }
        wrong
    }

    fn moved(&self, status: TxStatus) -> u16 {
        self.lap.ahead(self.reaped, status.cidx())
    }

    /// The driver took frames back on its way to something else: no more than the status word says.
    ///
    /// # Errors
    /// It took more.
    pub(super) fn take(&mut self, status: TxStatus, taken: u16) -> Result<(), String> {
        if taken > self.moved(status) {
            return Err(format!("{taken} frames are taken back, the status word is {:#018x}", status.0));
        }
        self.reaped = self.lap.step(self.reaped, taken);
        Ok(())
    }

    /// Doorbells that the driver rang since the last time. Says whether one was refused.
    ///
    /// # Errors
    /// One that must not be.
    pub(super) fn doorbells(&mut self, log: &[Event]) -> Result<bool, String> {
        let mut refused = false;
        for event in log {
            match *event {
                Event::TxPidx(pidx) => {
                    let (from, to) = (self.lap.ahead(self.reaped, self.published), self.lap.ahead(self.reaped, pidx));
                    if pidx >= self.lap.0 || to < from || to > self.outstanding() {
                        return Err(format!(
                            "the driver moves PIDX from {} to {pidx}, posted {}",
                            self.published, self.posted
                        ));
                    }
                    self.published = pidx;
                }
                Event::DoorbellRefused { tx: true } => refused = true,
                _ => {}
            }
        }
        Ok(refused)
    }

    /// Hold a look at the status word against the rules. `words` are what it may have been; more than one if the card
    /// acted meanwhile. `taken` is how many frames the driver took back.
    ///
    /// # Errors
    /// What the driver did that it must not, or left undone.
    pub(super) fn judge(
        &mut self,
        words: &[u64],
        refused: bool,
        taken: u16,
        fault: Option<QueueFault>,
    ) -> Result<Kinds, String> {
        let mut wrong = Kinds::default();
        words.iter().for_each(|word| wrong.add(self.wrong(TxStatus(*word))));
        if refused {
            wrong.add(Kinds::DOORBELL);
        }
        let Some(fault) = fault else {
            let legal = |word: &&u64| self.wrong(TxStatus(**word)).is_empty() && self.moved(TxStatus(**word)) == taken;
            if refused || !words.iter().any(|word| legal(&word)) {
                let words: Vec<String> = words.iter().map(|word| format!("{word:#018x}")).collect();
                return Err(format!(
                    "{taken} frames are taken back, the status word is {}, {wrong:?} is wrong with it",
                    words.join(" or ")
                ));
            }
            self.reaped = self.lap.step(self.reaped, taken);
            return Ok(Kinds::default());
        };
        let kind = Kinds::of(&fault);
        if !wrong.has(kind) {
            return Err(format!("the queue fails with `{fault}`, but what is wrong is {wrong:?}"));
        }
        if taken != 0 {
            return Err(format!("the queue fails with `{fault}`, and yet took {taken} frames back"));
        }
        Ok(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look<'a>(before: &'a [u64], log: &'a [Event], result: Result<usize, QueueFault>) -> Look<'a> {
        Look { before, after: None, log, budget: 8, result }
    }

    /// A ring of 6 whose first entry is written.
    fn ring(first: Entry) -> [u64; 6] {
        [first.0, 0, 0, 0, 0, RxStatus::new(1, 0, true).0]
    }

    const LENGTH: QueueFault = QueueFault::Length { cidx: 0, len_bytes: 0, descriptors: 0, outstanding: 4 };

    #[test]
    fn a_good_entry_must_be_handed_up() {
        let words = ring(Entry::new(true, 3, 60, 1));
        let fresh = RxOracle::new(6, 3, 64, 4);
        let log = [Event::Delivered { len_bytes: 60 }, Event::RxCidx(1), Event::RxPidx(0)];
        assert_eq!({ fresh }.judge(&look(&words, &log, Ok(1))), Ok(Kinds::default()));
        assert!({ fresh }.judge(&look(&words, &[], Ok(0))).unwrap_err().contains("ends before it"));
        assert!({ fresh }.judge(&look(&words, &[], Err(LENGTH))).unwrap_err().contains("what is wrong is {}"));
    }

    #[test]
    fn an_entry_without_bytes_must_fail_the_queue() {
        let words = ring(Entry::new(true, 3, 0, 1));
        let fresh = RxOracle::new(6, 3, 64, 4);
        assert_eq!({ fresh }.judge(&look(&words, &[], Err(LENGTH))), Ok(Kinds::LENGTH));
        assert!({ fresh }.judge(&look(&words, &[], Ok(0))).is_err());
        let log = [Event::Delivered { len_bytes: 0 }];
        assert!({ fresh }.judge(&look(&words, &log, Ok(1))).unwrap_err().contains("handed up"));
    }

    #[test]
    fn an_entry_of_the_last_lap_is_none() {
        let words = ring(Entry::new(false, 3, 60, 1));
        let mut fresh = RxOracle::new(6, 3, 64, 4);
        assert_eq!(fresh.judge(&look(&words, &[], Ok(0))), Ok(Kinds::default()));
    }

    #[test]
    fn doorbells_out_of_order_are_seen() {
        let words = ring(Entry::new(false, 0, 60, 1));
        let judge = |event| RxOracle::new(6, 0, 64, 4).judge(&look(&words, &[event], Ok(0)));
        assert!(judge(Event::RxCidx(1)).unwrap_err().contains("having read up to 0"));
        assert!(judge(Event::RxPidx(2)).unwrap_err().contains("PIDX from 4 to 2"));
    }

    #[test]
    fn a_transmit_index_may_lie_among_the_published_only() {
        let mut oracle = TxOracle::new(6);
        (0..3).for_each(|_| oracle.post());
        assert_eq!(oracle.doorbells(&[Event::TxPidx(2)]), Ok(false));
        assert_eq!(oracle.wrong(TxStatus::new(3, 2)), Kinds::INDEX_JUMP);
        assert_eq!(oracle.wrong(TxStatus::new(5, 2)), Kinds::INDEX_RANGE);
        assert!({ oracle }.judge(&[TxStatus::new(2, 2).0], false, 1, None).is_err());
        assert_eq!(oracle.judge(&[TxStatus::new(2, 2).0], false, 2, None), Ok(Kinds::default()));
        assert_eq!(oracle.wrong(TxStatus::new(1, 2)), Kinds::INDEX_JUMP, "backwards");
    }
}
