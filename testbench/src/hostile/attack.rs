//! How a hostile card does its deeds to a queue, and what comes before and behind them.

use std::sync::atomic::Ordering;

use super::card::{Refusal, Registers};
use super::deeds::{RxDeed, TxDeed};
use super::rig::{FRAME_MAX, FRAME_MIN, Rig};
use super::words::{RxStatus, TxStatus};

impl Rig {
    /// A valid run, the deed, what a card does next, and looks until it is clear what came of it.
    ///
    /// # Errors
    /// What the driver did that it must not, or left undone.
    pub(super) fn attack_rx(&mut self, deed: RxDeed) -> Result<(), String> {
        self.rx_run()?;
        self.rx_deed(deed)?;
        if self.rng.one_in(2) {
            let budget = self.rng.between(1, 8) as usize;
            self.poll(budget)?;
        }
        // Its next status word would hide the one that is wrong.
        let hides = matches!(deed, RxDeed::StatusRange | RxDeed::StatusError | RxDeed::RandomStatus);
        if self.fault.is_none() && !self.ambushed && !hides {
            // A card in which nothing else is broken goes on.
            for _ in 0..self.rng.below(3) {
                self.good_frame()?;
            }
        }
        self.poll_out()
    }

    /// Some frames as a correct card brings them; sometimes more than a lap of them.
    fn rx_run(&mut self) -> Result<(), String> {
        let entries = u64::from(self.card_rx().entries);
        let most = if self.rng.one_in(4) { 3 * entries } else { 4 };
        for _ in 0..self.rng.below(most + 1) {
            let came = self.good_frame()?;
            if !came || self.rng.one_in(2) {
                let budget = self.rng.between(1, 8) as usize;
                self.poll(budget)?;
            }
        }
        if self.rng.one_in(2) {
            self.poll(64)?;
        }
        match self.fault {
            Some(fault) => Err(format!("a valid run, and the queue fails: {fault}")),
            None => Ok(()),
        }
    }

    /// A length that a correct card may report now.
    fn due_len(&mut self) -> u16 {
        self.frame_len().unwrap_or(FRAME_MIN)
    }

    /// The bytes of a frame, if there is a buffer for it: the deed is in what follows.
    fn due_payload(&mut self) -> Result<(u16, Option<Vec<u8>>), String> {
        match self.frame_len() {
            Some(len) => Ok((len, Some(self.payload(len)?))),
            None => Ok((FRAME_MIN, None)),
        }
    }

    /// A frame whose entry is `change`d from what it should be.
    fn changed_entry(&mut self, change: impl FnOnce(&mut Rig, u64) -> u64) -> Result<(), String> {
        let (len, _) = self.due_payload()?;
        let rx = self.card_rx();
        let word = change(self, rx.entry(len).0);
        self.entry(rx.next_entry, word);
        self.advance();
        self.due_status();
        self.in_step = false;
        Ok(())
    }

    /// A frame with bits in it that no reader looks at: it must come through as if they were not there.
    fn decorated_frame(&mut self, entry_bits: u64, status_bits: u64) -> Result<(), String> {
        let (len, frame) = self.due_payload()?;
        let Some(frame) = frame else { return Ok(()) };
        let rx = self.card_rx();
        self.expect(rx.next_entry, frame);
        self.entry(rx.next_entry, rx.entry(len).0 ^ entry_bits);
        self.advance();
        let status = self.card_rx().status().0;
        self.status(status ^ status_bits);
        Ok(())
    }

    fn rx_deed(&mut self, deed: RxDeed) -> Result<(), String> {
        match deed {
            RxDeed::Color => self.changed_entry(|_, word| word ^ 1 << 1),
            RxDeed::ErrBit => self.changed_entry(|_, word| word | 1 << 2),
            RxDeed::LengthZero => self.changed_entry(|_, word| word & !(0xFFFF << 32)),
            RxDeed::LengthLong => self.changed_entry(|rig, word| rig.with_len(word, false)),
            RxDeed::LengthOther => self.changed_entry(|rig, word| rig.with_len(word, true)),
            RxDeed::WrongQueue => self.changed_entry(|rig, word| word ^ rig.rng.between(1, 0x7FF) << 16),
            RxDeed::Reserved => {
                // Bit 0, 15:3 and 31:27.
                let bits = self.rng.next_u64() & 0xF800_FFF9;
                self.decorated_frame(bits, 0)
            }
            RxDeed::PacketNumber => {
                let bits = self.rng.next_u64() << 48;
                self.decorated_frame(bits, 0)
            }
            RxDeed::StatusReserved => {
                // CIDX, interrupt state, and what lies above the error code.
                let bits = self.rng.next_u64() & 0xFFFF_FFE6_FFFF_0000;
                self.decorated_frame(0, bits)
            }
            RxDeed::StatusIndex => {
                let rx = self.card_rx();
                let pidx = self.rng.below(rx.lap().0.into()) as u16;
                let color = self.rng.one_in(2);
                self.good_frame()?;
                self.status(RxStatus::new(pidx, 0, color).0);
                Ok(())
            }
            RxDeed::StatusRange => {
                let lap = u64::from(self.card_rx().lap().0);
                let near = self.rng.one_in(2);
                let pidx = self.rng.between(lap, if near { lap + 2 } else { 0xFFFF }) as u16;
                self.good_frame()?;
                let color = self.card_rx().color;
                self.status(RxStatus::new(pidx, 0, color).0);
                Ok(())
            }
            RxDeed::StatusError => {
                self.good_frame()?;
                let code = self.rng.between(1, 3) as u8;
                let status = self.card_rx().status().with_err(code);
                self.status(status.0);
                Ok(())
            }
            RxDeed::EntryPlace => self.misplaced_entry(),
            RxDeed::Duplicate => self.duplicate(),
            RxDeed::StatusFirst | RxDeed::EntryFirst | RxDeed::Withheld | RxDeed::HalfEntry => self.disorder(deed),
            RxDeed::Flood => self.flood(),
            RxDeed::Scribble => {
                let (at, word) = (self.rng.next_u64() as u16, self.rng.next_u64());
                self.machine.card().scribble(self.rel_qid.into(), false, at, word);
                // The card would now write to wherever that is; it does nothing more.
                self.in_step = false;
                Ok(())
            }
            RxDeed::DoorbellRefused => {
                self.good_frame()?;
                let how = self.refusal();
                let after = self.rng.below(3) as u32;
                self.machine.card().set_registers(Registers::Refusing { after, how });
                Ok(())
            }
            RxDeed::SyncRefused => {
                self.good_frame()?;
                self.machine.refuse_syncs.store(true, Ordering::Relaxed);
                Ok(())
            }
            RxDeed::AmbushEntry | RxDeed::AmbushStatus | RxDeed::AmbushRandom => self.rx_ambush(deed),
            RxDeed::RandomEntry | RxDeed::RandomStatus | RxDeed::RandomRing => self.rx_random(deed),
        }
    }

    /// How the registers refuse.
    pub(super) fn refusal(&mut self) -> Refusal {
        *self.rng.pick(&[Refusal::Bus, Refusal::Stopped, Refusal::TimedOut])
    }

    /// Another length: any that a correct card could report, or one that is too long for what is posted.
    fn with_len(&mut self, word: u64, possible: bool) -> u64 {
        let rx = self.card_rx();
        let posted = u64::from(rx.posted()) * u64::from(rx.buffer);
        let len = if possible {
            self.rng.between(1, posted.clamp(1, 0xFFFF))
        } else {
            let low = (posted + 1).min(0xFFFF);
            // Just too long, far too long, or more than 31 buffers whatever is posted.
            match self.rng.below(3) {
                0 => low,
                1 => self.rng.between(low, 0xFFFF),
                _ => (31 * u64::from(rx.buffer) + 1).min(0xFFFF),
            }
        };
        word & !(0xFFFF << 32) | len << 32
    }

    /// The entry goes somewhere else: before or behind where it should, or into the status word.
    fn misplaced_entry(&mut self) -> Result<(), String> {
        let (len, _) = self.due_payload()?;
        let rx = self.card_rx();
        let by = self.rng.between(1, 3) as u16;
        let index = match self.rng.below(3) {
            0 => rx.lap().step(rx.next_entry, by),
            1 => rx.lap().back(rx.next_entry, by),
            _ => rx.lap().0,
        };
        self.entry(index, rx.entry(len).0);
        self.in_step = false;
        Ok(())
    }

    /// The last entry comes once more, at the next index, with the color that is due there.
    fn duplicate(&mut self) -> Result<(), String> {
        let len = self.due_len();
        self.good_frame()?;
        let rx = self.card_rx();
        let word = rx.entry(len).0;
        self.entry(rx.next_entry, word);
        self.advance();
        self.due_status();
        self.in_step = false;
        Ok(())
    }

    /// The right words in the wrong order, or one of them never.
    fn disorder(&mut self, deed: RxDeed) -> Result<(), String> {
        let Some(len) = self.frame_len() else { return Ok(()) };
        let rx = self.card_rx();
        let mut next = rx;
        next.advance();
        match deed {
            RxDeed::StatusFirst => {
                let frame = self.payload(len)?;
                self.expect(rx.next_entry, frame);
                self.status(next.status().0);
                self.poll(4)?;
                self.due_entry(len);
            }
            RxDeed::EntryFirst => {
                // What is handed up is what was in the buffers before: no reader can tell.
                self.due_entry(len);
                self.due_status();
                self.poll(4)?;
                self.in_step = false;
            }
            RxDeed::Withheld => {
                self.payload(len)?;
                self.advance();
                self.due_status();
                // Later entries come, but the reader waits for this one.
                self.due_entry(len);
                self.in_step = false;
            }
            _ => {
                let _ = self.payload(len)?;
                let first = self.rng.one_in(2);
                let word = rx.entry(len).0;
                let at = usize::from(self.rel_qid);
                self.machine.card().write_half(at, rx.next_entry, u8::from(first), word);
                self.poll(4)?;
                self.machine.card().write_half(at, rx.next_entry, u8::from(!first), word);
                self.advance();
                self.in_step = false;
            }
        }
        Ok(())
    }

    /// A whole lap of entries, each with the color that is due, for buffers that the card may not have.
    fn flood(&mut self) -> Result<(), String> {
        self.in_step = false;
        for _ in 0..self.card_rx().lap().0 {
            let len = self.rng.between(FRAME_MIN.into(), FRAME_MAX.into()) as u16;
            self.due_entry(len);
        }
        self.due_status();
        Ok(())
    }

    /// Words that change while the driver looks.
    fn rx_ambush(&mut self, deed: RxDeed) -> Result<(), String> {
        self.good_frame()?;
        let rx = self.card_rx();
        let due = rx.entry(self.due_len()).0;
        let loads = self.rng.below(6) as u32;
        let flipped = due ^ 1 << self.rng.below(64);
        let status = rx.status().0 ^ 1 << self.rng.below(64);
        let random = self.random_word(rx.color);
        let any = self.rng.below(rx.entries.into()) as u16;
        let (addr, word) = match deed {
            RxDeed::AmbushEntry if self.rng.one_in(2) => (rx.entry_addr(rx.next_entry), flipped),
            // The entry before is not taken yet: it changes under the reader's eyes.
            RxDeed::AmbushEntry => (rx.entry_addr(rx.lap().back(rx.next_entry, 1)), flipped),
            RxDeed::AmbushStatus => (rx.status_addr(), status),
            _ => (rx.entry_addr(any), random),
        };
        self.in_step = false;
        self.ambushed = true;
        self.machine.lie_in_ambush(loads, addr, word);
        self.poll(8)?;
        Ok(())
    }

    /// A word with random fields: mostly with a color that gets it looked at, and small enough to be taken for
    /// something.
    fn random_word(&mut self, color: bool) -> u64 {
        let word = self.rng.next_u64();
        let qid = u64::from(self.card_rx().qid);
        match self.rng.below(4) {
            0 => word,
            1 => word & !2 | u64::from(color) << 1,
            2 => word & !(2 | 0x7FF << 16) | u64::from(color) << 1 | qid << 16,
            _ => word & !(6 | 0x7FF << 16) | u64::from(color) << 1 | qid << 16,
        }
    }

    fn rx_random(&mut self, deed: RxDeed) -> Result<(), String> {
        self.in_step = false;
        let rx = self.card_rx();
        match deed {
            RxDeed::RandomEntry => {
                let word = self.random_word(rx.color);
                self.entry(rx.next_entry, word);
            }
            RxDeed::RandomStatus => {
                let word = self.random_status(rx.lap().0);
                self.status(word);
            }
            _ => {
                for index in 0..rx.lap().0 {
                    let word = self.random_word(rx.color ^ (index < rx.next_entry));
                    self.entry(index, word);
                }
                if self.rng.one_in(2) {
                    let word = self.random_status(rx.lap().0);
                    self.status(word);
                }
            }
        }
        Ok(())
    }

    /// Any word, or one whose index lies near the ring.
    fn random_status(&mut self, lap: u16) -> u64 {
        let word = self.rng.next_u64();
        if self.rng.one_in(2) { word } else { word & !0xFFFF | self.rng.below(u64::from(lap) + 2) }
    }

    /// The same for a transmit queue.
    ///
    /// # Errors
    /// What the driver did that it must not, or left undone.
    pub(super) fn attack_tx(&mut self, deed: TxDeed) -> Result<(), String> {
        self.tx_run()?;
        self.tx_deed(deed)?;
        if self.fault.is_none() && !self.ambushed && self.rng.one_in(2) {
            // A full ring is looked at by the post itself.
            for _ in 0..=self.card_tx().entries {
                if !self.post()? {
                    break;
                }
            }
        }
        for look in 0..4 {
            if look == 2 {
                self.calm();
            }
            self.reap()?;
        }
        Ok(())
    }

    /// Some frames as a correct card takes them, and some that it has not taken yet.
    fn tx_run(&mut self) -> Result<(), String> {
        let entries = u64::from(self.card_tx().entries);
        let most = if self.rng.one_in(4) { 3 * entries } else { 4 };
        for _ in 0..self.rng.below(most + 1) {
            self.post()?;
            if self.rng.one_in(2) {
                self.flush()?;
                let count = self.rng.below(4) as u16;
                self.fetch(count)?;
                self.due_tx_status();
            }
            if self.rng.one_in(4) {
                self.reap()?;
            }
        }
        self.post()?;
        self.flush()?;
        match self.fault {
            Some(fault) => Err(format!("a valid run, and the queue fails: {fault}")),
            None => Ok(()),
        }
    }

    fn tx_deed(&mut self, deed: TxDeed) -> Result<(), String> {
        let tx = self.card_tx();
        let due = tx.status();
        let lap = tx.lap();
        let by = self.rng.between(1, 3) as u16;
        match deed {
            TxDeed::Ahead => self.tx_status(TxStatus::new(lap.step(tx.pidx, by), tx.pidx).0),
            TxDeed::Back => {
                // Of what was taken back last, so that it is a step back for the driver too.
                self.reap()?;
                let reaped = lap.back(tx.pidx, self.outstanding());
                self.tx_status(TxStatus::new(lap.back(reaped, by), tx.pidx).0);
            }
            TxDeed::Range => {
                let near = self.rng.one_in(2);
                let low = u64::from(lap.0);
                let cidx = self.rng.between(low, if near { low + 2 } else { 0xFFFF }) as u16;
                self.tx_status(TxStatus::new(cidx, tx.pidx).0);
            }
            TxDeed::Error => {
                let code = self.rng.between(1, 3) as u8;
                self.tx_status(due.with_err(code).0);
            }
            TxDeed::Pidx => {
                let bits = self.rng.next_u64() & 0xFFFF_0000_0000;
                self.tx_status(due.0 ^ bits);
            }
            TxDeed::Reserved => {
                // Bits 15:2 and 63:48.
                let bits = self.rng.next_u64() & 0xFFFF_0000_0000_FFFC;
                self.tx_status(due.0 ^ bits);
            }
            TxDeed::Early => {
                let cidx = lap.back(tx.pidx, self.rng.below(u64::from(self.outstanding()) + 1) as u16);
                self.tx_status(TxStatus::new(cidx, tx.pidx).0);
            }
            TxDeed::Withheld => {
                self.fetch(u16::MAX)?;
            }
            TxDeed::DoorbellRefused => {
                let how = self.refusal();
                self.machine.card().set_registers(Registers::Refusing { after: 0, how });
                self.post()?;
                self.flush()?;
            }
            TxDeed::SyncRefused => {
                self.fetch(u16::MAX)?;
                self.due_tx_status();
                self.reap()?;
                self.machine.refuse_syncs.store(true, Ordering::Relaxed);
                self.post()?;
                self.machine.refuse_syncs.store(false, Ordering::Relaxed);
            }
            TxDeed::RandomStatus => {
                let word = self.random_tx_status(lap.0);
                self.tx_status(word);
            }
            TxDeed::Ambush | TxDeed::AmbushRandom => {
                self.fetch(u16::MAX)?;
                self.due_tx_status();
                let word = match deed {
                    TxDeed::Ambush => self.card_tx().status().0 ^ 1 << self.rng.below(64),
                    _ => self.random_tx_status(lap.0),
                };
                let loads = self.rng.below(2) as u32;
                self.ambushed = true;
                self.machine.lie_in_ambush(loads, tx.status_addr(), word);
                self.reap()?;
            }
        }
        Ok(())
    }

    /// Any word, or one whose index lies near the ring and whose error code is mostly 0.
    fn random_tx_status(&mut self, lap: u16) -> u64 {
        let word = self.rng.next_u64();
        if self.rng.one_in(4) {
            return word;
        }
        let err = if self.rng.one_in(4) { word & 3 } else { 0 };
        word & !0xFFFF_0003 | self.rng.below(u64::from(lap) + 2) << 16 | err
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::Entry;
    use super::*;

    #[test]
    fn reserved_bits_leave_every_field_alone() {
        let (entry, status) = (Entry::new(true, 5, 60, 1), TxStatus::new(3, 4));
        let decorated = Entry(entry.0 ^ 0xF800_FFF9);
        assert_eq!((decorated.color(), decorated.err(), decorated.qid()), (true, false, 5));
        assert_eq!(decorated.len_bytes(), 60);
        let decorated = TxStatus(status.0 ^ 0xFFFF_0000_0000_FFFC);
        assert_eq!((decorated.err(), decorated.cidx()), (0, 3));
        let decorated = RxStatus(RxStatus::new(3, 0, true).0 ^ 0xFFFF_FFE6_FFFF_0000);
        assert_eq!((decorated.err(), decorated.pidx()), (0, 3));
    }
}
