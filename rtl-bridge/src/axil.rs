//! An AXI-Lite master on pins: one access at a time, without waiting.
//!
//! Called before each rising edge of the bus's clock. Address and data of a write are offered together, each until it is
//! taken; the answer is taken as soon as it is there, or later if the stall pattern holds.

use crate::stall::Stall;
use crate::verilated::{Input, Output, PortError, Simulation};

/// The bus's answer to an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Response {
    /// OKAY (or EXOKAY, which AXI-Lite has no use for); the data of a read, 0 for a write.
    Okay(u32),
    /// SLVERR: the slave refused.
    SlaveError,
    /// DECERR: no slave at this address.
    DecodeError,
}

impl Response {
    fn new(resp: u8, data: u32) -> Response {
        match resp & 3 {
            2 => Response::SlaveError,
            3 => Response::DecodeError,
            _ => Response::Okay(data),
        }
    }
}

/// What is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Access {
    None,
    Read { address: bool },
    Write { address: bool, data: bool },
}

/// The master.
pub struct Master {
    awvalid: Input<bool>,
    awaddr: Input<u32>,
    awready: Output<bool>,
    wvalid: Input<bool>,
    wdata: Input<u32>,
    wready: Output<bool>,
    bvalid: Output<bool>,
    bresp: Output<u8>,
    bready: Input<bool>,
    arvalid: Input<bool>,
    araddr: Input<u32>,
    arready: Output<bool>,
    rvalid: Output<bool>,
    rdata: Output<u32>,
    rresp: Output<u8>,
    rready: Input<bool>,
    stall: Stall,
    access: Access,
    /// Edges since the access began.
    waited: u64,
}

impl Master {
    /// Bind instance `index` of `count` of the bus whose ports begin with `prefix`.
    ///
    /// # Errors
    /// [`PortError`].
    pub fn bind(
        simulation: &Simulation,
        prefix: &str,
        index: u32,
        count: u32,
        stall: Stall,
    ) -> Result<Master, PortError> {
        let name = |signal: &str| format!("{prefix}{signal}");
        Ok(Master {
            awvalid: simulation.input_of(&name("awvalid"), index, count)?,
            awaddr: simulation.input_of(&name("awaddr"), index, count)?,
            awready: simulation.output_of(&name("awready"), index, count)?,
            wvalid: simulation.input_of(&name("wvalid"), index, count)?,
            wdata: simulation.input_of(&name("wdata"), index, count)?,
            wready: simulation.output_of(&name("wready"), index, count)?,
            bvalid: simulation.output_of(&name("bvalid"), index, count)?,
            bresp: simulation.output_of(&name("bresp"), index, count)?,
            bready: simulation.input_of(&name("bready"), index, count)?,
            arvalid: simulation.input_of(&name("arvalid"), index, count)?,
            araddr: simulation.input_of(&name("araddr"), index, count)?,
            arready: simulation.output_of(&name("arready"), index, count)?,
            rvalid: simulation.output_of(&name("rvalid"), index, count)?,
            rdata: simulation.output_of(&name("rdata"), index, count)?,
            rresp: simulation.output_of(&name("rresp"), index, count)?,
            rready: simulation.input_of(&name("rready"), index, count)?,
            stall,
            access: Access::None,
            waited: 0,
        })
    }

    /// Nothing is under way.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.access == Access::None
    }

    /// Edges since the access under way began.
    pub fn waited_cycles(&self) -> u64 {
        self.waited
    }

    /// Begin a read.
    ///
    /// # Panics
    /// While an access is under way.
    pub fn read(&mut self, simulation: &mut Simulation, address: u32) {
        assert!(self.is_idle(), "an access is under way");
        simulation.set(self.araddr, address);
        simulation.set(self.arvalid, true);
        self.access = Access::Read { address: true };
        self.waited = 0;
    }

    /// Begin a write.
    ///
    /// # Panics
    /// While an access is under way.
    pub fn write(&mut self, simulation: &mut Simulation, address: u32, data: u32) {
        assert!(self.is_idle(), "an access is under way");
        simulation.set(self.awaddr, address);
        simulation.set(self.awvalid, true);
        simulation.set(self.wdata, data);
        simulation.set(self.wvalid, true);
        self.access = Access::Write { address: true, data: true };
        self.waited = 0;
    }

    /// Forget the access under way: for a reset.
    pub fn reset(&mut self, simulation: &mut Simulation) {
        for pin in [self.awvalid, self.wvalid, self.bready, self.arvalid, self.rready] {
            simulation.set(pin, false);
        }
        self.access = Access::None;
    }

    /// Before a rising edge: drive, look, and return the answer if the edge takes one.
    #[inline]
    pub fn step(&mut self, simulation: &mut Simulation) -> Option<Response> {
        match self.access {
            Access::None => None,
            Access::Read { address } => self.step_read(simulation, address),
            Access::Write { address, data } => self.step_write(simulation, address, data),
        }
    }

    fn step_read(&mut self, simulation: &mut Simulation, address: bool) -> Option<Response> {
        self.waited += 1;
        simulation.set(self.arvalid, address);
        // The answer comes after the address was taken.
        let ready = !address && !self.stall.holds(false);
        self.access = Access::Read { address: address && !simulation.get(self.arready) };
        simulation.set(self.rready, ready);
        if !(ready && simulation.get(self.rvalid)) {
            return None;
        }
        self.access = Access::None;
        Some(Response::new(simulation.get(self.rresp), simulation.get(self.rdata)))
    }

    fn step_write(&mut self, simulation: &mut Simulation, address: bool, data: bool) -> Option<Response> {
        self.waited += 1;
        simulation.set(self.awvalid, address);
        simulation.set(self.wvalid, data);
        let ready = !address && !data && !self.stall.holds(false);
        self.access = Access::Write {
            address: address && !simulation.get(self.awready),
            data: data && !simulation.get(self.wready),
        };
        simulation.set(self.bready, ready);
        if !(ready && simulation.get(self.bvalid)) {
            return None;
        }
        self.access = Access::None;
        Some(Response::new(simulation.get(self.bresp), 0))
    }
}
