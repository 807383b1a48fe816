//! BAR0 of an engine in RTL: accesses one after the other over its register port.
//!
//! A write is posted: it waits here until the engine takes it, and what comes after it waits behind it. A read pushes the
//! writes before it, as PCIe has it, and is answered some cycles later.

use std::collections::VecDeque;

use regs::FuncId;
use rtl_bridge::verilated::{Input, Output, PortError, Simulation};

/// What the port's address pins hold. Beyond it BAR0 has nothing.
const SPACE_BYTES: u32 = 1 << 18;

/// One access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Access {
    func: FuncId,
    offset: u32,
    /// Of a write.
    value: Option<u32>,
}

/// What is on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nothing is on offer.
    Idle,
    /// The first of those that wait is on offer.
    Offered,
    /// A read was taken and not answered.
    Read,
}

/// The port.
pub struct RegisterPort {
    valid: Input<bool>,
    ready: Output<bool>,
    write: Input<bool>,
    func: Input<u8>,
    addr: Input<u32>,
    wdata: Input<u32>,
    rvalid: Output<bool>,
    rdata: Output<u32>,
    waiting: VecDeque<Access>,
    phase: Phase,
    /// What `valid` is driven to.
    offers: bool,
    answer: Option<u32>,
    /// Edges since the port moved on last.
    waited_cycles: u64,
}

impl RegisterPort {
    /// Bind the ports `reg_*`.
    ///
    /// # Errors
    /// [`PortError`].
    pub fn bind(simulation: &Simulation) -> Result<RegisterPort, PortError> {
        Ok(RegisterPort {
            valid: simulation.input("reg_valid_i")?,
            ready: simulation.output("reg_ready_o")?,
            write: simulation.input("reg_write_i")?,
            func: simulation.input("reg_func_i")?,
            addr: simulation.input("reg_addr_i")?,
            wdata: simulation.input("reg_wdata_i")?,
            rvalid: simulation.output("reg_rvalid_o")?,
            rdata: simulation.output("reg_rdata_o")?,
            waiting: VecDeque::new(),
            phase: Phase::Idle,
            offers: false,
            answer: None,
            waited_cycles: 0,
        })
    }

    /// Post a write. One that is no whole word of the space goes nowhere.
    pub fn post(&mut self, func: FuncId, offset: u32, value: u32) {
        if is_word(offset) {
            self.waiting.push_back(Access { func, offset, value: Some(value) });
        }
    }

    /// Begin a read; then run edges until [`RegisterPort::answer`]. What is no whole word of the space reads 0.
    pub fn read(&mut self, func: FuncId, offset: u32) {
        if is_word(offset) {
            self.waiting.push_back(Access { func, offset, value: None });
        } else {
            self.answer = Some(0);
        }
    }

    /// The answer to the read under way, once.
    pub fn answer(&mut self) -> Option<u32> {
        self.answer.take()
    }

    /// Nothing waits and nothing is under way.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.phase == Phase::Idle && !self.offers && self.waiting.is_empty()
    }

    /// Edges since the access under way began, or moved on.
    pub fn waited_cycles(&self) -> u64 {
        self.waited_cycles
    }

    /// Forget all that waits: for a reset.
    pub fn reset(&mut self, simulation: &mut Simulation) {
        self.waiting.clear();
        self.answer = None;
        self.waited_cycles = 0;
        self.phase = Phase::Idle;
        self.drive_valid(simulation, false);
    }

    #[inline]
    fn drive_valid(&mut self, simulation: &mut Simulation, offers: bool) {
        if self.offers != offers {
            self.offers = offers;
            simulation.set(self.valid, offers);
        }
    }

    /// Before an edge, while it is not idle: drive, look. True if it moves on.
    pub fn step(&mut self, simulation: &mut Simulation) -> bool {
        self.waited_cycles += 1;
        let moved = match self.phase {
            Phase::Read => self.take_answer(simulation),
            Phase::Idle => {
                self.offer(simulation);
                self.take(simulation)
            }
            Phase::Offered => self.take(simulation),
        };
        if moved {
            self.waited_cycles = 0;
        }
        moved
    }

    /// Put the next access on the pins.
    fn offer(&mut self, simulation: &mut Simulation) {
        let Some(&access) = self.waiting.front() else { return self.drive_valid(simulation, false) };
        self.drive_valid(simulation, true);
        simulation.set(self.func, access.func.0);
        simulation.set(self.addr, access.offset);
        simulation.set(self.write, access.value.is_some());
        simulation.set(self.wdata, access.value.unwrap_or(0));
        self.phase = Phase::Offered;
    }

    /// The edge takes what is on offer, if the engine is ready. The next one is offered at the edge after.
    fn take(&mut self, simulation: &Simulation) -> bool {
        if self.phase != Phase::Offered || !simulation.get(self.ready) {
            return false;
        }
        let reads = self.waiting.pop_front().is_some_and(|access| access.value.is_none());
        self.phase = if reads { Phase::Read } else { Phase::Idle };
        true
    }

    fn take_answer(&mut self, simulation: &mut Simulation) -> bool {
        self.drive_valid(simulation, false);
        let answers = simulation.get(self.rvalid);
        if answers {
            self.answer = Some(simulation.get(self.rdata));
            self.phase = Phase::Idle;
        }
        answers
    }
}

fn is_word(offset: u32) -> bool {
    offset.is_multiple_of(4) && offset < SPACE_BYTES
}
