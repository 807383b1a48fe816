//! Card to host, data: frames out of the shell's C2H stream, through the tap, to the QDMA.

use std::collections::VecDeque;

use models::stream::{C2hFrame, Offer, QdmaStream};
use models::time::Time;
use regs::Qid;
use rtl_bridge::axis::Sink;
use rtl_bridge::stall::Stall;
use rtl_bridge::verilated::{BitFlip, Output, PortError, Simulation};

use super::completions::CplAction;
use super::runs::Runs;
use super::{FrameTap, TapKind};
use crate::card::CardError;

/// Card to host, data.
pub(super) struct C2h {
    pub(super) sink: Sink,
    pub(super) gate: Gate,
    /// Frames that came whole.
    pub(super) frames: u64,
    /// When its beats were taken.
    pub(super) runs: Runs,
    pub(super) tap: Option<FrameTap>,
    /// A second copy that waits for the QDMA.
    pub(super) copy: Option<C2hFrame>,
}

/// The QDMA's answer to the frame at hand.
pub(super) struct Gate {
    pub(super) qid: Output<u16>,
    pub(super) len: Output<u16>,
    /// It has agreed.
    pub(super) granted: bool,
    /// It will throw the frame away.
    pub(super) discards: bool,
    /// The tap takes nothing any more.
    pub(super) shut: bool,
    /// It holds the frame.
    pub(super) held_by_qdma: bool,
    /// It has moved since it refused the frame: the answer may be another one now.
    pub(super) ask_again: bool,
    /// A copy made by the tap goes first.
    pub(super) blocked: bool,
    pub(super) at_hand: (Qid, u16),
}

impl Gate {
    /// No frame is at hand any more.
    pub(super) fn forget(&mut self) {
        (self.granted, self.blocked) = (false, false);
        (self.held_by_qdma, self.ask_again) = (false, true);
    }

    /// Before a frame's first beat the QDMA is asked, until it agrees, again whenever it has moved. Then it has agreed to all
    /// of the frame.
    #[inline]
    pub(super) fn ask<Q: QdmaStream + ?Sized>(&mut self, simulation: &Simulation, now: Time, qdma: &mut Q) -> bool {
        if self.shut {
            return false;
        }
        if !self.granted {
            if self.held_by_qdma && !self.ask_again && !self.blocked {
                return false;
            }
            self.ask_again = false;
            self.at_hand = (Qid(simulation.get(self.qid)), simulation.get(self.len));
            let (qid, len_bytes) = self.at_hand;
            let offer = if self.blocked { Offer::Stall } else { qdma.c2h_offer(now, qid, len_bytes) };
            self.granted = offer != Offer::Stall;
            self.discards = offer == Offer::Drop;
            self.held_by_qdma = !self.granted;
        }
        self.granted
    }
}

impl C2h {
    pub(super) fn bind(simulation: &mut Simulation, stall: Stall, tap: Option<FrameTap>) -> Result<C2h, PortError> {
        const PREFIX: &str = "m_axis_qdma_c2h_sim_";
        Ok(C2h {
            sink: Sink::bind(simulation, PREFIX, 0, 1, stall)?,
            gate: Gate {
                qid: simulation.output(&format!("{PREFIX}ctrl_qid"))?,
                len: simulation.output(&format!("{PREFIX}ctrl_len"))?,
                granted: false,
                discards: false,
                shut: tap.is_some_and(|tap| tap.kind == TapKind::Hold && tap.frame == 0),
                held_by_qdma: false,
                ask_again: true,
                blocked: false,
                at_hand: (Qid(0), 0),
            },
            frames: 0,
            runs: Runs::default(),
            tap,
            copy: None,
        })
    }

    /// Let the tap's bit be flipped, if it is one that flips.
    pub(super) fn tap_pins(&self, simulation: &mut Simulation) -> Result<(), PortError> {
        const PREFIX: &str = "m_axis_qdma_c2h_sim_";
        let Some(FrameTap { kind: TapKind::FlipBit(bit), .. }) = self.tap else { return Ok(()) };
        let (valid, data) =
            (simulation.output(&format!("{PREFIX}tvalid"))?, simulation.wide_output(&format!("{PREFIX}tdata"), 0, 1)?);
        simulation.flip(BitFlip::new(valid, data, self.gate.len, bit as usize));
        self.follow(simulation, Time::ZERO);
        Ok(())
    }

    /// Tell what flips bits which beat comes next.
    #[inline]
    pub(super) fn follow(&self, simulation: &mut Simulation, edge: Time) {
        let Some(flip) = simulation.flip_mut() else { return };
        let tapped = self.tap.is_some_and(|tap| tap.frame == self.frames);
        flip.follow(edge.0, tapped.then(|| self.runs.beats()));
    }

    /// The coming edge takes a beat within a frame that the QDMA has agreed to: most do, and need no more than this.
    #[inline(never)]
    pub(super) fn step_mid(&mut self, simulation: &Simulation, now: Time) -> bool {
        let flows = self.gate.granted && self.tap.is_none() && self.sink.step_mid(simulation);
        if flows {
            self.runs.note(now);
        }
        flows
    }

    /// A whole frame, on to the QDMA, through the tap. Which queue it went to, and how often.
    pub(super) fn deliver<Q: QdmaStream + ?Sized>(
        &mut self,
        data: Vec<u8>,
        now: Time,
        qdma: &mut Q,
        due: &mut VecDeque<CplAction>,
    ) -> Result<(Qid, usize), CardError> {
        self.gate.granted = false;
        let (mut qid, len_bytes) = self.gate.at_hand;
        if data.len() != usize::from(len_bytes) {
            let message = format!("C2H stream: ctrl_len is {len_bytes}, the beats hold {} bytes ({qid})", data.len());
            return Err(CardError::Rtl { at: now, message });
        }
        let tapped = self.tap.filter(|tap| tap.frame == self.frames).map(|tap| tap.kind);
        self.frames += 1;
        self.gate.shut = self.tap.is_some_and(|tap| tap.kind == TapKind::Hold && tap.frame <= self.frames);
        let mut action = CplAction::Pass;
        match tapped {
            None | Some(TapKind::FlipBit(_) | TapKind::HoleInKeep | TapKind::Hold) => {}
            Some(TapKind::Drop) => {
                due.push_back(CplAction::Drop);
                qdma.give_back(data);
                return Ok((qid, 0));
            }
            Some(TapKind::Duplicate) => {
                // Its completion goes on, twice, once the copy is there.
                self.copy = Some(C2hFrame { data: data.clone(), qid });
                self.gate.blocked = true;
                qdma.c2h_frame(now, C2hFrame { data, qid });
                return Ok((qid, 2));
            }
            Some(TapKind::Misroute(other)) => (qid, action) = (other, CplAction::To(other)),
            Some(TapKind::MisrouteBeside) => {
                qid = Qid(qid.0 ^ 1);
                action = CplAction::To(qid);
            }
        }
        due.push_back(action);
        qdma.c2h_frame(now, C2hFrame { data, qid });
        Ok((qid, usize::from(!self.gate.discards)))
    }

    pub(super) fn hand_over_copy<Q: QdmaStream + ?Sized>(
        &mut self,
        now: Time,
        qdma: &mut Q,
        due: &mut VecDeque<CplAction>,
    ) {
        let Some(copy) = &self.copy else { return };
        if qdma.c2h_offer(now, copy.qid, copy.data.len() as u16) == Offer::Stall {
            return;
        }
        if let Some(copy) = self.copy.take() {
            (self.gate.blocked, self.gate.ask_again) = (false, true);
            qdma.c2h_frame(now, copy);
            due.push_back(CplAction::Twice);
        }
    }
}
