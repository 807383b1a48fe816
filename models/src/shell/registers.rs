//! BAR2: which block answers an offset, and how.
//!
//! Source: shell.md section 7; the map itself, `regs/rdl/shell.rdl`.

use regs::{PortId, packet_adapter, qdma_common, shell as map, system_config};

use super::counters::UNMAPPED;
use super::system_config::{Bits, Module};
use super::{Profile, Shell, box_322, of_function};
use crate::time::Time;

/// A register access that the card did not answer with OKAY.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BusError {
    /// DECERR: the offset is in no window.
    #[error("BAR2 offset {offset:#x}: DECERR, no block answers there")]
    Decode {
        /// Byte offset.
        offset: u32,
    },
    /// Upstream profile only: no answer, now or to any later access (quirks Q2 and Q13). Power-up reset ends it.
    #[error("BAR2 offset {offset:#x}: no answer; the register bus hangs (quirks Q2, Q13)")]
    NoAnswer {
        /// Byte offset.
        offset: u32,
    },
}

/// What an offset names.
#[derive(Clone, Copy)]
enum Target {
    System(u32),
    Function(usize, u32),
    Common(u32),
    Cmac(usize, u32),
    Adapter(usize, u32),
    Box250(u32),
    Box322(u32),
    /// A block that always reads the same and ignores writes.
    Constant(u32),
}

impl Shell {
    /// Read a register. Step the shell to `now` first: what is not yet done is not yet counted.
    ///
    /// # Errors
    /// [`BusError`].
    pub fn mmio_read(&mut self, now: Time, offset: u32) -> Result<u32, BusError> {
        let now = now.max(self.now);
        let target = self.reach(offset)?;
        if self.is_in_reset(target, now) {
            return self.answer_in_reset(offset);
        }
        match target {
            Target::System(at) => Ok(self.read_system(now, at)),
            Target::Function(f, at) => Ok(self.functions[f].read(at)),
            Target::Common(at) => Ok(self.read_common(at)),
            Target::Cmac(p, at) => Ok(self.ports[p].cmac.read(at)),
            Target::Adapter(p, at) => Ok(self.read_adapter(p, at)),
            Target::Box250(at) => self.box_250.read(at).ok_or(BusError::Decode { offset }),
            Target::Box322(at) => box_322::read(at).ok_or(BusError::Decode { offset }),
            Target::Constant(value) => Ok(value),
        }
    }

    /// Write a register. What follows from it happens from `now` on.
    ///
    /// # Errors
    /// [`BusError`]; nothing is written then.
    pub fn mmio_write(&mut self, now: Time, offset: u32, value: u32) -> Result<(), BusError> {
        let now = now.max(self.now);
        let target = self.reach(offset)?;
        if self.is_in_reset(target, now) {
            return self.answer_in_reset(offset).map(|_| ());
        }
        match target {
            Target::System(at) => self.write_system(now, at, value),
            Target::Function(f, at) => self.functions[f].write(at, value),
            Target::Cmac(p, at) => {
                let port = &mut self.ports[p];
                port.cmac.write(at, value);
                if self.cfg.profile == Profile::Corrected {
                    port.tx.enable(port.cmac.tx_enabled(), now);
                }
            }
            Target::Box250(at) => {
                self.box_250.read(at).ok_or(BusError::Decode { offset })?;
                self.box_250.write(at, value);
            }
            Target::Box322(at) => {
                box_322::read(at).ok_or(BusError::Decode { offset })?;
            }
            Target::Common(_) | Target::Adapter(..) | Target::Constant(_) => {}
        }
        self.agenda.everything_changed();
        self.update_agenda();
        Ok(())
    }

    /// Decode, and notice upstream's dead ends.
    fn reach(&mut self, offset: u32) -> Result<Target, BusError> {
        let upstream = self.cfg.profile == Profile::Upstream;
        // Q13: with one QDMA only the first 0x80 bytes of the plugin's windows are wired, two windows for each function.
        let unwired = map::BOX_250 + 0x80..map::BOX_250 + 0x100 * u32::from(self.cfg.functions);
        if upstream && (self.wedged || unwired.contains(&offset)) {
            self.wedged = true;
            return Err(BusError::NoAnswer { offset });
        }
        self.decode(offset).ok_or(BusError::Decode { offset })
    }

    fn decode(&self, offset: u32) -> Option<Target> {
        const QDMA: u32 = map::qdma_function(regs::FuncId(0));
        const QDMA_1_END: u32 = map::QDMA_1 + map::QDMA_1_SIZE_BYTES - 1;
        match offset {
            map::SYSTEM_CONFIG..QDMA => Some(Target::System(offset)),
            QDMA..map::QDMA_COMMON => {
                let f = (offset - QDMA) / map::QDMA_FUNCTION_SIZE_BYTES;
                (f < u32::from(self.cfg.functions))
                    .then_some(Target::Function(f as usize, offset % map::QDMA_FUNCTION_SIZE_BYTES))
            }
            map::QDMA_COMMON..0x6000 => Some(Target::Common(offset - map::QDMA_COMMON)),
            0x8000..map::SYSMON => Some(self.decode_port(offset)),
            map::SYSMON..map::QDMA_1 | map::CMS..0x34_1000 => Some(Target::Constant(0)),
            map::QDMA_1..=QDMA_1_END => Some(echo(0, 12, offset - map::QDMA_1)),
            map::BOX_250..map::BOX_322 => Some(Target::Box250(offset - map::BOX_250)),
            map::BOX_322..map::CMS => Some(Target::Box322(offset - map::BOX_322)),
            _ => None,
        }
    }

    /// One of the two ports' 16 KiB: MAC, transceiver, adapter; placeholders where there is no port.
    fn decode_port(&self, offset: u32) -> Target {
        let p = (offset - 0x8000) / 0x4000;
        let port = PortId(p as u8);
        let present = port.0 < self.cfg.ports;
        match offset {
            _ if offset >= map::packet_adapter(port) => {
                let at = offset - map::packet_adapter(port);
                if present { Target::Adapter(p as usize, at) } else { echo(0xc100, 13, at) }
            }
            _ if !present => echo(0xc100, 13, offset - map::cmac(port)),
            _ if offset >= map::qsfp(port) => echo(0xc028 + 0x100 * p, 12, offset - map::qsfp(port)),
            _ => Target::Cmac(p as usize, offset - map::cmac(port)),
        }
    }

    fn is_in_reset(&self, target: Target, now: Time) -> bool {
        let module = match target {
            Target::System(_) | Target::Constant(_) => return false,
            Target::Function(..) | Target::Common(_) => Module::Qdma,
            Target::Cmac(p, _) => Module::Cmac(p),
            Target::Adapter(p, _) => Module::Adapter(p),
            Target::Box250(_) => Module::Box250,
            Target::Box322(_) => Module::Box322,
        };
        self.system.in_reset(module, now)
    }

    /// Corrected: an answer all the same. Upstream forgets the access, and the bus waits for ever (Q2).
    fn answer_in_reset(&mut self, offset: u32) -> Result<u32, BusError> {
        match self.cfg.profile {
            Profile::Corrected => Ok(UNMAPPED),
            Profile::Upstream => {
                self.wedged = true;
                Err(BusError::NoAnswer { offset })
            }
        }
    }

    fn read_system(&self, now: Time, at: u32) -> u32 {
        match at {
            system_config::BUILD_TIMESTAMP => self.cfg.build_timestamp,
            system_config::SYSTEM_STATUS => u32::from(self.system.all_done(now)),
            system_config::SHELL_STATUS => self.system.status(Bits::Shell, now),
            system_config::USER_STATUS => self.system.status(Bits::User, now),
            _ => UNMAPPED,
        }
    }

    fn write_system(&mut self, now: Time, at: u32, value: u32) {
        let modules = match at {
            system_config::SYSTEM_RESET => self.system.modules(),
            system_config::SHELL_RESET => self.system.named(Bits::Shell, value),
            system_config::USER_RESET => self.system.named(Bits::User, value),
            _ => return,
        };
        for module in modules {
            if self.system.request(module, now) {
                self.clear(module, now);
            }
        }
    }

    fn read_adapter(&mut self, p: usize, at: u32) -> u32 {
        let held = usize::from(self.h2c.holds_for(p));
        let port = &mut self.ports[p];
        let (rx_inside, tx_inside) = (port.rx_inside(), port.tx.inside() + held);
        port.counters.set(packet_adapter::RX_INSIDE, rx_inside);
        port.counters.set(packet_adapter::TX_INSIDE, tx_inside);
        port.counters.read(at)
    }

    fn read_common(&mut self, at: u32) -> u32 {
        for (f, function) in self.functions.iter().enumerate() {
            let leaving = matches!(&self.busy, Some(busy) if busy.func == f);
            self.common.set(of_function(qdma_common::FUNCTION_C2H_INSIDE, f), function.inside() + usize::from(leaving));
        }
        self.common.read(at)
    }
}

/// A placeholder's answer. Source: shell.md section 7.
fn echo(prefix: u32, bits: u32, at: u32) -> Target {
    Target::Constant(prefix << 16 | at & ((1 << bits) - 1))
}
