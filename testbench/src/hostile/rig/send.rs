//! Steps of a transmit queue.

use std::sync::Arc;

use driver_core::{DmaMemory as _, NoHook, Page as _, Platform as _, QueueFault, QueueState, TxCounters, TxError};

use super::super::card::Tx;
use super::super::oracle::Kinds;
use super::super::words::TxStatus;
use super::{FRAME_MIN, Known, Rig};

impl Rig {
    /// The card's side of the transmit queue under attack.
    pub(in crate::hostile) fn card_tx(&self) -> Tx {
        self.machine.card().queues[self.at()].tx
    }

    /// Frames that the driver may still take back.
    pub(in crate::hostile) fn outstanding(&self) -> u16 {
        self.known[self.at()].tx.outstanding()
    }

    /// Post a frame, copied or as a page that is lent.
    ///
    /// # Errors
    /// What the driver did that it must not.
    pub(in crate::hostile) fn post(&mut self) -> Result<bool, String> {
        if self.fault.is_some() {
            return Ok(false);
        }
        let len = self.rng.between(1, 300) as usize;
        let mut frame = self.rng.bytes(len);
        let at = self.at();
        let (was_full, lend) = (self.known[at].tx.is_full(), self.rng.one_in(4));
        let (begin, before) = {
            let card = self.machine.card();
            (card.log.len(), card.tx_status_word(at))
        };
        let platform = Arc::clone(self.driver.platform());
        let dma = platform.dma();
        let tx = self.driver.tx(self.rel_qid).ok_or("the queue is gone")?;
        let completed = tx.counters().completed;
        let posted = if lend {
            let mut page = dma.alloc_page().map_err(|error| error.to_string())?;
            page.bytes_mut()[..len].copy_from_slice(&frame);
            tx.post_page(page, 0, len).map_err(|refused| {
                dma.free_page(refused.page);
                refused.cause
            })
        } else {
            frame.resize(len.max(FRAME_MIN.into()), 0);
            tx.post(&frame[..len])
        };
        let taken = (tx.counters().completed - completed) as u16;
        let fault = match (posted, tx.state()) {
            (Err(TxError::Fault(fault)), _) | (_, QueueState::Faulted(fault)) => Some(fault),
            _ => None,
        };
        if let Err(cause) = &posted {
            self.tally.tx(cause);
        }
        if was_full {
            // A full ring is looked at before the frame goes in.
            self.judge_full(before, taken, fault)?;
        }
        if posted.is_ok() {
            self.known[at].tx.post();
            self.known[at].sent.push_back(Some(frame));
        }
        self.check_doorbells(begin, if was_full { 0 } else { taken }, fault)?;
        match posted {
            Ok(()) => Ok(fault.is_none()),
            Err(TxError::Full { .. }) if !self.known[at].tx.is_full() => {
                Err("the ring is said to be full, and is not".into())
            }
            Err(TxError::Full { .. } | TxError::Fault(_) | TxError::NoPage(_)) => Ok(false),
            Err(other) => Err(format!("a frame of {len} bytes is refused: {other}")),
        }
    }

    /// A post into a full ring looked at the status word.
    fn judge_full(&mut self, before: u64, taken: u16, fault: Option<QueueFault>) -> Result<(), String> {
        if fault.is_some_and(|fault| Kinds::of(&fault) == Kinds::DOORBELL) {
            // That is for `check_doorbells` to say.
            return Ok(());
        }
        let at = self.at();
        let after = if self.ambushed { self.machine.card().tx_status_word(at) } else { before };
        self.known[at].tx.judge(&[before, after], false, taken, fault)?;
        fault.map_or(Ok(()), |fault| self.ended(Err(fault)).map(|_| ()))
    }

    /// Doorbells of a step that had no need to look at the status word, or has been judged for it.
    fn check_doorbells(&mut self, begin: usize, taken: u16, fault: Option<QueueFault>) -> Result<(), String> {
        let at = self.at();
        let refused = self.known[at].tx.doorbells(&self.machine.card().log[begin..])?;
        match fault {
            Some(_) if self.fault.is_some() => Ok(()),
            Some(fault) if refused && Kinds::of(&fault) == Kinds::DOORBELL => self.ended(Err(fault)).map(|_| ()),
            Some(fault) => Err(format!("a post fails with `{fault}`, and no doorbell was refused")),
            None if refused => Err("a doorbell was refused, and the queue did not fail".into()),
            None if taken > 0 => Err(format!("{taken} frames are taken back by a post that has room")),
            None => Ok(()),
        }
    }

    /// Ring the doorbell for what was posted.
    ///
    /// # Errors
    /// What the driver did that it must not.
    pub(in crate::hostile) fn flush(&mut self) -> Result<(), String> {
        if self.fault.is_some() {
            return Ok(());
        }
        let begin = self.machine.card().log.len();
        let tx = self.driver.tx(self.rel_qid).ok_or("the queue is gone")?;
        let fault = tx.flush().err();
        self.check_doorbells(begin, 0, fault)
    }

    /// The driver looks for frames that are sent, and the oracle judges.
    ///
    /// # Errors
    /// What the driver did that it must not, or left undone.
    pub(in crate::hostile) fn reap(&mut self) -> Result<u16, String> {
        if self.fault.is_some() {
            return Ok(0);
        }
        let at = self.at();
        let (begin, before) = {
            let card = self.machine.card();
            (card.log.len(), card.tx_status_word(at))
        };
        let lent = self.rng.one_in(2);
        let platform = Arc::clone(self.driver.platform());
        let tx = self.driver.tx(self.rel_qid).ok_or("the queue is gone")?;
        let result = if lent { tx.reap_with(|page| platform.dma().free_page(page)) } else { tx.reap() };
        let card = self.machine.card();
        let oracle = &mut self.known[at].tx;
        let refused = oracle.doorbells(&card.log[begin..])?;
        let after = if self.ambushed { card.tx_status_word(at) } else { before };
        oracle.judge(&[before, after], refused, result.unwrap_or(0), result.err())?;
        drop(card);
        self.ended(result.map(usize::from))?;
        Ok(result.unwrap_or(0))
    }

    /// The card fetches up to `count` frames, as a correct one does, and they must be those that were posted.
    ///
    /// # Errors
    /// A frame that can't be fetched, or another one.
    pub(in crate::hostile) fn fetch(&mut self, count: u16) -> Result<(), String> {
        for _ in 0..count {
            let fetched = self.machine.card().fetch(self.at())?;
            let Some(fetched) = fetched else { break };
            let posted = self.known().sent.pop_front().ok_or("the card fetches a frame that nobody posted")?;
            if let Some(posted) = posted.filter(|posted| *posted != fetched) {
                return Err(format!("posted {} bytes, the card fetches {} others", posted.len(), fetched.len()));
            }
        }
        Ok(())
    }

    /// A look at the receive queue may have sent frames back, and taken others back that were sent.
    pub(super) fn sent_in_look(&mut self, begin: usize, before: TxCounters) -> Result<(), String> {
        let at = self.at();
        let tx = self.driver.tx(self.rel_qid).ok_or("the queue is gone")?;
        let (now, state) = (tx.counters(), tx.state());
        let card = self.machine.card();
        let Known { tx: oracle, sent, .. } = &mut self.known[at];
        oracle.take(TxStatus(card.tx_status_word(at)), (now.completed - before.completed) as u16)?;
        for _ in before.posted..now.posted {
            oracle.post();
            sent.push_back(None);
            self.sent_back = true;
            self.tally.sent_back += 1;
        }
        let refused = oracle.doorbells(&card.log[begin..])?;
        match state {
            QueueState::Faulted(QueueFault::Doorbell(_)) => self.sent_back = true,
            QueueState::Faulted(fault) => return Err(format!("the transmit queue fails with `{fault}`")),
            _ if refused => return Err("a doorbell was refused, and the transmit queue did not fail".into()),
            _ => {}
        }
        Ok(())
    }

    /// The card sends what a hook sent back, and the pages come home.
    pub(super) fn send_rest(&mut self) -> Result<(), String> {
        self.fetch(u16::MAX)?;
        self.due_tx_status();
        let pair = self.driver.pair(self.rel_qid).ok_or("the queue is gone")?;
        // Transmit completions alone.
        pair.poll(0, &mut NoHook, |_| {}).sent.map(|_| ()).map_err(|fault| format!("an honest status word: {fault}"))
    }

    /// The card writes the status word that is due.
    pub(in crate::hostile) fn due_tx_status(&mut self) {
        let word = self.card_tx().status().0;
        self.tx_status(word);
    }

    /// The card writes any status word.
    pub(in crate::hostile) fn tx_status(&mut self, word: u64) {
        self.machine.card().write_tx_status(self.at(), word);
    }
}
