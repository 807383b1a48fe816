//! Card to host, completions.

use std::collections::VecDeque;

use models::stream::{C2hCompletion, QdmaStream};
use models::time::Time;
use regs::Qid;
use rtl_bridge::stall::Stall;
use rtl_bridge::verilated::{Input, Output, PortError, Simulation, WideOutput};

/// Card to host, completions. Each waits for its frame, which may be longer under way.
pub(super) struct Cpl {
    pub(super) tvalid: Output<bool>,
    pub(super) tready: Input<bool>,
    pub(super) tdata: WideOutput,
    pub(super) qid: Output<u16>,
    pub(super) stall: Stall,
    pub(super) ready: bool,
    pub(super) waiting: VecDeque<C2hCompletion>,
    /// For each frame that arrived and whose completion did not go on yet: what to do with it.
    pub(super) due: VecDeque<CplAction>,
    /// Completions that the tap added, less those that it removed.
    pub(super) renumber: u16,
}

/// What the tap does with a completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CplAction {
    Pass,
    Drop,
    Twice,
    To(Qid),
}

impl Cpl {
    pub(super) fn bind(simulation: &Simulation, stall: Stall) -> Result<Cpl, PortError> {
        const PREFIX: &str = "m_axis_qdma_cpl_sim_";
        let name = |signal: &str| format!("{PREFIX}{signal}");
        Ok(Cpl {
            tvalid: simulation.output(&name("tvalid"))?,
            tready: simulation.input(&name("tready"))?,
            tdata: simulation.wide_output(&name("tdata"), 0, 1)?,
            qid: simulation.output(&name("ctrl_qid"))?,
            stall,
            ready: false,
            waiting: VecDeque::new(),
            due: VecDeque::new(),
            renumber: 0,
        })
    }

    /// A completion is on offer: take it, unless the pattern holds. Layout: shell.md section 11.4.
    #[inline]
    pub(super) fn take(&mut self, simulation: &mut Simulation) {
        let ready = !self.stall.holds(false);
        if ready != self.ready {
            self.ready = ready;
            simulation.set(self.tready, ready);
        }
        if ready {
            let data = simulation.bytes(&self.tdata);
            let half = |at: usize| u16::from_le_bytes([data[at], data[at + 1]]);
            let (len_bytes, pkt_id) = (half(4), half(6));
            self.waiting.push_back(C2hCompletion { qid: Qid(simulation.get(self.qid)), len_bytes, pkt_id });
        }
    }

    /// The oldest completion, whose frame has arrived. The tap's frames shift the numbers of those after them, as the
    /// QDMA counts what it sees.
    pub(super) fn hand_over<Q: QdmaStream + ?Sized>(&mut self, now: Time, qdma: &mut Q) {
        let (Some(mut completion), Some(action)) = (self.waiting.pop_front(), self.due.pop_front()) else { return };
        completion.pkt_id = completion.pkt_id.wrapping_add(self.renumber);
        match action {
            CplAction::Pass => qdma.c2h_completion(now, completion),
            CplAction::Drop => self.renumber = self.renumber.wrapping_sub(1),
            CplAction::Twice => {
                qdma.c2h_completion(now, completion);
                completion.pkt_id = completion.pkt_id.wrapping_add(1);
                qdma.c2h_completion(now, completion);
                self.renumber = self.renumber.wrapping_add(1);
            }
            CplAction::To(qid) => qdma.c2h_completion(now, C2hCompletion { qid, ..completion }),
        }
    }
}
