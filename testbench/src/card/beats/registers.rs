//! BAR2: one access at a time over AXI-Lite.

use regs::Bar;
use rtl_bridge::axil::{Master, Response};
use rtl_bridge::stall::Stall;
use rtl_bridge::verilated::{PortError, Simulation};

use crate::card::CardError;

/// The shell's registers.
pub(super) struct Registers {
    master: Master,
    response: Option<Response>,
}

impl Registers {
    pub(super) fn bind(simulation: &Simulation, stall: Stall) -> Result<Registers, PortError> {
        Ok(Registers { master: Master::bind(simulation, "s_axil_sim_", 0, 1, stall)?, response: None })
    }

    /// Forget the access under way: for a reset.
    pub(super) fn reset(&mut self, simulation: &mut Simulation) {
        self.master.reset(simulation);
        self.response = None;
    }

    /// No access is under way.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.master.is_idle()
    }

    /// Cycles since the access under way began.
    pub(super) fn waited_cycles(&self) -> u64 {
        self.master.waited_cycles()
    }

    pub(super) fn begin(&mut self, simulation: &mut Simulation, offset: u32, value: Option<u32>) {
        match value {
            None => self.master.read(simulation, offset),
            Some(value) => self.master.write(simulation, offset, value),
        }
    }

    /// Before an edge of `axil_aclk`. True if it brings the answer.
    pub(super) fn step(&mut self, simulation: &mut Simulation) -> bool {
        let response = self.master.step(simulation);
        self.response = response.or(self.response.take());
        response.is_some()
    }

    /// The answer to the access to `offset`, once.
    pub(super) fn answer(&mut self, offset: u32) -> Result<Option<u32>, CardError> {
        let refused = |response| Err(CardError::Bus { bar: Bar::Shell, offset, response });
        match self.response.take() {
            None => Ok(None),
            Some(Response::Okay(data)) => Ok(Some(data)),
            Some(Response::SlaveError) => refused("SLVERR"),
            Some(Response::DecodeError) => refused("DECERR"),
        }
    }
}
