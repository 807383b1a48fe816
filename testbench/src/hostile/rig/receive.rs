//! Steps of a receive queue: a card's, one at a time, and the driver's looks.

use std::cell::RefCell;

use driver_core::{NoHook, QueueFault, RxFrame, XdpBuff};

use super::super::oracle::Look;
use super::super::platform::HostileDma;
use super::witness::Witness;
use super::{FRAME_MAX, FRAME_MIN, Known, Rig};

impl Rig {
    /// Bytes of a frame that the card's posted buffers hold, mostly short.
    pub(in crate::hostile) fn frame_len(&mut self) -> Option<u16> {
        let rx = self.card_rx();
        let room = u32::from(rx.posted()) * u32::from(rx.buffer);
        let most = room.min(FRAME_MAX.into()) as u16;
        let long = self.rng.one_in(4);
        let most = if long { most } else { most.min(300) };
        (most >= FRAME_MIN).then(|| self.rng.between(FRAME_MIN.into(), most.into()) as u16)
    }

    /// The card writes a frame's bytes into buffers. Returns the frame, for [`Rig::expect`].
    ///
    /// # Errors
    /// The buffers are not what the driver said.
    pub(in crate::hostile) fn payload(&mut self, len_bytes: u16) -> Result<Vec<u8>, String> {
        let frame = self.rng.bytes(len_bytes.into());
        self.machine.card().payload(self.at(), &frame)?;
        Ok(frame)
    }

    /// The frame at this entry must be handed up with these bytes.
    pub(in crate::hostile) fn expect(&mut self, index: u16, frame: Vec<u8>) {
        self.known().expected[usize::from(index)] = Some(frame);
    }

    /// The card writes the entry that is due for a frame of this length.
    pub(in crate::hostile) fn due_entry(&mut self, len_bytes: u16) {
        let rx = self.card_rx();
        self.entry(rx.next_entry, rx.entry(len_bytes).0);
        self.advance();
    }

    /// The card goes on to the next entry.
    pub(in crate::hostile) fn advance(&mut self) {
        let at = self.at();
        self.machine.card().queues[at].rx.advance();
    }

    /// The card writes any word as any entry.
    pub(in crate::hostile) fn entry(&mut self, index: u16, word: u64) {
        self.machine.card().write_entry(self.at(), index, word);
    }

    /// The card writes the status word that is due.
    pub(in crate::hostile) fn due_status(&mut self) {
        let word = self.card_rx().status().0;
        self.status(word);
    }

    /// The card writes any status word.
    pub(in crate::hostile) fn status(&mut self, word: u64) {
        self.machine.card().write_rx_status(self.at(), word);
    }

    /// A frame as a correct card brings it, if there is room for one.
    ///
    /// # Errors
    /// The buffers are not what the driver said.
    pub(in crate::hostile) fn good_frame(&mut self) -> Result<bool, String> {
        let Some(len_bytes) = self.frame_len().filter(|_| self.in_step) else { return Ok(false) };
        self.frame_of(len_bytes)?;
        // Moderation leaves some out.
        if !self.rng.one_in(4) {
            self.due_status();
        }
        Ok(true)
    }

    /// A frame and its entry.
    pub(super) fn frame_of(&mut self, len_bytes: u16) -> Result<(), String> {
        let index = self.card_rx().next_entry;
        let frame = self.payload(len_bytes)?;
        self.expect(index, frame);
        self.due_entry(len_bytes);
        Ok(())
    }

    /// The driver looks, and the oracle judges. A queue that has failed was looked at already.
    ///
    /// # Errors
    /// What the driver did that it must not, or left undone.
    pub(in crate::hostile) fn poll(&mut self, budget: usize) -> Result<usize, String> {
        if self.fault.is_some() {
            return Ok(0);
        }
        let at = self.at();
        let begin = {
            let card = self.machine.card();
            card.completion_words(at, &mut self.words);
            card.log.len()
        };
        let sent = self.driver.tx(self.rel_qid).ok_or("the queue is gone")?.counters();
        let result = self.look(budget)?;
        self.sent_in_look(begin, sent)?;
        let card = self.machine.card();
        let after = if self.ambushed {
            card.completion_words(at, &mut self.words_after);
            Some(&self.words_after[..])
        } else {
            None
        };
        let look = Look { before: &self.words, after, log: &card.log[begin..], budget, result };
        self.known[at].rx.judge(&look)?;
        drop(card);
        self.ended(result)
    }

    /// Poll the driver's queue, alone or with its pair and through a hook: what is handed up must have the bytes it
    /// should.
    fn look(&mut self, budget: usize) -> Result<Result<usize, QueueFault>, String> {
        let at = self.at();
        let Known { rx: oracle, expected, .. } = &mut self.known[at];
        let way = self.rng.below(if self.proving { 3 } else { 4 });
        let witness = RefCell::new(Witness {
            entry: oracle.cidx.into(),
            expected,
            machine: &self.machine,
            kept: &mut self.kept,
            rng: &mut self.rng,
            in_step: self.in_step,
            hooked: way == 3,
            wrong: None,
        });
        let pair = self.driver.pair(self.rel_qid).ok_or("the queue is gone")?;
        let sink = |frame: &mut RxFrame<'_, HostileDma>| witness.borrow_mut().sink(frame);
        let result = match way {
            0 | 1 => pair.rx.poll(budget, sink),
            2 => pair.poll(budget, &mut NoHook, sink).received,
            _ => {
                let mut hook = |buff: &mut XdpBuff<'_, HostileDma>| witness.borrow_mut().hook(buff);
                pair.poll(budget, &mut hook, sink).received
            }
        };
        witness.into_inner().wrong.map_or(Ok(result), Err)
    }

    /// Look until nothing more comes or the queue fails.
    ///
    /// # Errors
    /// As [`Rig::poll`].
    pub(in crate::hostile) fn poll_out(&mut self) -> Result<(), String> {
        let budget = self.known().expected.len() + 1;
        for _ in 0..8 {
            if self.poll(budget)? == 0 {
                break;
            }
        }
        // Once more without the card's hand in it: an illegal word that is still there must be seen now.
        self.calm();
        self.poll(budget).map(|_| ())
    }

    /// The card acts no more while the driver looks.
    pub(in crate::hostile) fn calm(&mut self) {
        self.machine.card().leave_ambush();
        self.ambushed = false;
    }
}
