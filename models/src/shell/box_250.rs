//! Box 250, the user box between packet adapters and functions: upstream's pass-through plugin.

use regs::{FuncId, PortId};

use crate::user_box::{BoxFrame, Egress, UserBox};

/// Function i ⇄ port i, placeholder registers. What upstream ships as `p2p`.
///
/// Source: shell.md sections 7 and 14.4. (Upstream never answers from 0x80 to 0xFFF, quirk Q13; the shell's `upstream`
/// profile sees to that.)
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PassThrough;

impl UserBox for PassThrough {
    fn from_port(&mut self, port: PortId, frame: &mut BoxFrame) -> Egress {
        frame.tuser_dst = 1 << port.0;
        Egress::Function(FuncId(port.0))
    }

    fn from_function(&mut self, func: FuncId, frame: &mut BoxFrame) -> Egress {
        frame.tuser_dst = 1 << (6 + func.0);
        Egress::Port(PortId(func.0))
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
