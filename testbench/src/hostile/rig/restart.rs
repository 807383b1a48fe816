//! The way back: a queue is started afresh, and a good frame passes.

use std::sync::atomic::Ordering;

use driver_core::{ChangeError, QueueState, TakenPage};

use super::super::card::Registers;
use super::Rig;
use crate::host_memory::CpuPage;

impl Rig {
    /// Start the queue afresh; on a card whose registers misbehave too, then set it right and take the device down and
    /// up.
    ///
    /// # Errors
    /// A start that fails on an honest card.
    pub(in crate::hostile) fn restart(&mut self, receive: bool, registers: Registers) -> Result<(), String> {
        self.machine.refuse_syncs.store(false, Ordering::Relaxed);
        let at = self.at();
        {
            let mut card = self.machine.card();
            card.set_registers(registers);
            card.queues[at].rx.derailed = !self.in_step;
        }
        let send_first = self.rng.one_in(2);
        if self.sent_back && registers == Registers::Honest && send_first && !self.tx_failed() {
            self.send_rest()?;
        }
        if registers == Registers::Honest {
            self.give_back_some();
        } else {
            // The queue may be lost, and its source with it.
            self.give_back();
        }
        let restart = |rig: &mut Rig| match receive {
            // A queue that has failed may as well be found by the driver itself.
            _ if rig.fault.is_some() && rig.rng.one_in(2) => rig.restart_failed(),
            true => rig.driver.restart_rx(rig.rel_qid),
            false => rig.driver.restart_tx(rig.rel_qid),
        };
        let mut result = restart(self);
        let mut recovered = false;
        self.tally.restarts += 1;
        if registers != Registers::Honest {
            if let Err(error) = &result {
                self.tally.change(error);
                // Once more: the queue is gone, or it can still not be stopped.
                if let Err(error) = restart(self) {
                    self.tally.change(&error);
                }
                result = self.recover();
                recovered = true;
            }
            self.machine.card().set_registers(Registers::Honest);
        }
        result.map_err(|error| format!("the queue can't be started afresh: {error}"))?;
        self.give_back();
        if recovered {
            return self.prove_all();
        }
        self.prove(receive, !receive)?;
        self.restart_sender()
    }

    fn tx_failed(&mut self) -> bool {
        let state = self.driver.tx(self.rel_qid).map(|tx| tx.state());
        !matches!(state, Some(QueueState::Running))
    }

    /// A transmit queue from which a hook sent frames: started afresh too, so that every case finds it in the same
    /// state. Pages of the receive queue that are still on their way go home by it.
    fn restart_sender(&mut self) -> Result<(), String> {
        if !self.sent_back {
            return Ok(());
        }
        if !self.tx_failed() && self.rng.one_in(2) {
            self.send_rest()?;
        }
        let result = self.driver.restart_tx(self.rel_qid);
        result.map_err(|error| format!("the transmit queue can't be started afresh: {error}"))?;
        self.prove(false, true)
    }

    /// Let the driver look for queues that have failed.
    fn restart_failed(&mut self) -> Result<(), ChangeError> {
        let found = self.driver.recover();
        let mut found = found.into_iter().filter(|found| found.rel_qid == self.rel_qid).peekable();
        if found.peek().is_none() {
            // It is gone already.
            return Err(ChangeError::NoSuchQueue { rel_qid: self.rel_qid });
        }
        // Both queues of a pair may have failed; one that can't be started takes the other with it.
        found.try_for_each(|found| found.result)
    }

    /// Down and up: first while the card still misbehaves, then when it is itself again. The second must work.
    fn recover(&mut self) -> Result<(), ChangeError> {
        self.tally.recoveries += 1;
        if let Err(error) = self.driver.down() {
            self.tally.stop(&error);
        }
        if let Err(error) = self.up() {
            self.tally.up(&error);
        }
        self.machine.card().set_registers(Registers::Honest);
        self.driver.down().map_err(ChangeError::Stop)?;
        self.up().map_err(ChangeError::Start)
    }

    /// Pages that sinks kept go back to the queue they came from, some before it ends and the others after.
    fn give_back_some(&mut self) {
        let keep = self.kept.len() / 2;
        let pages = self.kept.split_off(keep);
        self.free(pages);
    }

    fn give_back(&mut self) {
        let pages = std::mem::take(&mut self.kept);
        self.free(pages);
    }

    fn free(&mut self, pages: Vec<TakenPage<CpuPage>>) {
        // Cases keep pages only while their queue is there.
        let Some(rx) = self.driver.rx(self.rel_qid) else { return };
        pages.into_iter().for_each(|taken| rx.give_back(taken.page));
    }

    pub(super) fn prove_all(&mut self) -> Result<(), String> {
        let attacked = self.rel_qid;
        for rel_qid in 0..self.queues() {
            self.rel_qid = rel_qid;
            self.prove(true, true)?;
        }
        self.rel_qid = attacked;
        Ok(())
    }

    /// A good frame passes each way that is asked for, on a queue that was just started.
    fn prove(&mut self, receive: bool, send: bool) -> Result<(), String> {
        let queue = self.machine.card().queues[self.at()];
        (self.in_step, self.ambushed, self.fault) = (true, false, None);
        self.proving = true;
        if send {
            self.sent_back = false;
        }
        let explain = |why| format!("a good frame after the start: {why}");
        if receive {
            self.known().receive_started(&queue);
            self.good_receive().map_err(explain)?;
        }
        if send {
            self.known().send_started(&queue);
            self.good_send().map_err(explain)?;
        }
        self.proving = false;
        Ok(())
    }

    fn good_receive(&mut self) -> Result<(), String> {
        // Of one length for each driver, so that every case finds the queue in the same state.
        self.frame_of(self.proof_len_bytes)?;
        self.due_status();
        let count = self.poll(4)?;
        if let Some(fault) = self.fault {
            return Err(format!("the queue fails: {fault}"));
        }
        if count != 1 {
            return Err(format!("{count} frames are handed up"));
        }
        self.give_back();
        self.tally.good_frames += 1;
        Ok(())
    }

    fn good_send(&mut self) -> Result<(), String> {
        if !self.post()? {
            return Err("it is refused".into());
        }
        self.flush()?;
        self.fetch(1)?;
        self.due_tx_status();
        let count = self.reap()?;
        if count != 1 || self.fault.is_some() {
            return Err(format!("{count} frames are taken back"));
        }
        self.tally.good_frames += 1;
        Ok(())
    }
}
