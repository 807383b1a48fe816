//! What every top with the QDMA engine in it has: the host port, the register port, interrupts, and how far it reads ahead.

use std::collections::VecDeque;

use models::host_memory::HostMemory;
use models::time::{Clock, Time};
use regs::FuncId;
use rtl_bridge::stall::Stall;
use rtl_bridge::verilated::{Input, Output, PortError, Simulation};

use super::host_port::{HostPort, HostPortConfig};
use super::register_port::RegisterPort;
use super::{Ahead, CardError};

/// The engine's pins but for its streams.
pub struct EnginePins {
    /// Its host memory.
    pub host: HostPort,
    /// Its registers.
    pub registers: RegisterPort,
    irq_valid: Output<bool>,
    irq_func: Output<u8>,
    irq_vector: Output<u16>,
    irq_ready: Input<bool>,
    /// What `irq_ready` is driven to.
    takes_irq: bool,
    irq_stall: Stall,
    interrupts: VecDeque<(FuncId, u16, Time)>,
    /// Nothing is under way inside, no timer either.
    idle: Output<bool>,
    /// When anything was last seen to move.
    moved_at: Time,
}

impl EnginePins {
    /// Bind them.
    ///
    /// # Errors
    /// [`PortError`].
    pub fn bind(simulation: &mut Simulation, config: &HostPortConfig, ahead: &Ahead) -> Result<EnginePins, PortError> {
        for (name, value) in [
            ("cfg_c2h_ahead", ahead.c2h_ahead),
            ("cfg_h2c_ahead", ahead.h2c_ahead),
            ("cfg_fetches", ahead.fetches.into()),
            ("cfg_fetch_bytes", ahead.fetch_bytes),
            ("cfg_read_bytes", ahead.read_bytes),
            ("cfg_data_reads", ahead.data_reads),
        ] {
            let pin = simulation.input::<u16>(name)?;
            simulation.set(pin, value);
        }
        Ok(EnginePins {
            host: HostPort::bind(simulation, config)?,
            registers: RegisterPort::bind(simulation)?,
            irq_valid: simulation.output("irq_valid_o")?,
            irq_func: simulation.output("irq_func_o")?,
            irq_vector: simulation.output("irq_vector_o")?,
            irq_ready: simulation.input("irq_ready_i")?,
            takes_irq: false,
            irq_stall: Stall::new(config.stalls, config.seed, "irq"),
            interrupts: VecDeque::new(),
            idle: simulation.output("qdma_idle_o")?,
            moved_at: Time::ZERO,
        })
    }

    /// Forget all that is under way: for a reset of the engine.
    pub fn reset(&mut self, simulation: &mut Simulation) {
        self.host.reset(simulation);
        self.registers.reset(simulation);
    }

    /// Before an edge of the engine's clock at `now`, out of reset: all that it takes and brings. True if something moves.
    ///
    /// # Errors
    /// [`CardError::Rtl`]: the engine broke a rule of the host port.
    #[inline]
    pub fn before_edge(
        &mut self,
        simulation: &mut Simulation,
        now: Time,
        memory: &mut dyn HostMemory,
    ) -> Result<bool, CardError> {
        let host = self.host.before_edge(simulation, now, memory);
        let mut moved = host.map_err(|error| CardError::Rtl { at: error.at, message: error.to_string() })?;
        // After the writes of the same edge.
        if simulation.get(self.irq_valid) {
            moved |= self.take_interrupt_message(simulation, now);
        }
        if !self.registers.is_idle() {
            moved |= self.registers.step(simulation);
        }
        if moved {
            self.moved_at = now;
        }
        Ok(moved)
    }

    fn take_interrupt_message(&mut self, simulation: &mut Simulation, now: Time) -> bool {
        let takes = !self.irq_stall.holds(false);
        if self.takes_irq != takes {
            self.takes_irq = takes;
            simulation.set(self.irq_ready, takes);
        }
        if takes {
            let func = FuncId(simulation.get(self.irq_func));
            self.interrupts.push_back((func, simulation.get(self.irq_vector), now));
        }
        takes
    }

    /// Post a register write.
    pub fn post(&mut self, func: FuncId, offset: u32, value: u32) {
        self.registers.post(func, offset, value);
    }

    /// The next interrupt, without taking it.
    #[inline]
    pub fn peek_interrupt(&self) -> Option<(FuncId, u16, Time)> {
        self.interrupts.front().copied()
    }

    /// The next interrupt: function, vector, and when the engine sent it.
    pub fn take_interrupt(&mut self) -> Option<(FuncId, u16, Time)> {
        self.interrupts.pop_front()
    }

    /// No register access waits and no read is under way.
    pub fn is_idle(&self) -> bool {
        self.registers.is_idle() && self.host.is_idle()
    }

    /// Nothing is under way at the pins, nor inside, where no moderation timer runs either: its clock may stop.
    pub fn is_quiet(&self, simulation: &Simulation) -> bool {
        self.is_idle() && simulation.get(self.idle)
    }

    /// Somebody else moved something.
    #[inline]
    pub fn note_move(&mut self, now: Time) {
        self.moved_at = now;
    }

    /// Cycles since anything was last seen to move.
    pub fn silent_cycles(&self, now: Time) -> u64 {
        now.0.saturating_sub(self.moved_at.0) / Clock::AXIS.num
    }
}
