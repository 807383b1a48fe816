//! Box 250, the user box between packet adapters and functions: upstream's pass-through plugin.

use regs::{FuncId, PortId};

use crate::user_box::{BoxFrame, Egress, UserBox};

/// Function i ⇄ port i, placeholder registers. What upstream ships as `p2p`.
///
/// Upstream refuses unequal numbers of functions and ports. Here, with fewer functions a port's frames go to function
/// `port mod functions`; with fewer ports a function beyond them has none: its frames meet an adapter with
/// `tuser_dst` 0, which drops and counts them.
///
/// Source: shell.md sections 7 and 14.4. (Upstream never answers from 0x80 to 0xFFF, quirk Q13; the shell's `upstream`
/// profile sees to that.)
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PassThrough {
    functions: u8,
    ports: u8,
}

impl PassThrough {
    /// For a card of so many functions and ports, each 1 or more.
    pub const fn new(functions: u8, ports: u8) -> PassThrough {
        PassThrough { functions, ports }
    }
}

impl UserBox for PassThrough {
    fn from_port(&mut self, port: PortId, frame: &mut BoxFrame) -> Egress {
        let func = port.0 % self.functions.max(1);
        frame.tuser_dst = 1 << func;
        Egress::Function(FuncId(func))
    }

    fn from_function(&mut self, func: FuncId, frame: &mut BoxFrame) -> Egress {
        let port = func.0 % self.ports.max(1);
        frame.tuser_dst = if func.0 < self.ports { 1 << (6 + port) } else { 0 };
        Egress::Port(PortId(port))
    }

    fn read(&mut self, offset: u32) -> Option<u32> {
        match offset {
            0x0000..=0x0fff => Some(0xb000 << 16 | offset),
            0x1000..=0x1fff => Some(0xd000 << 16 | offset & 0xfff),
            _ => None,
        }
    }

    fn write(&mut self, _offset: u32, _value: u32) {}

    fn reset(&mut self) {}
}
