//! Behaviour of a user plugin in box 250 or box 322: frames in, frames out, registers.
//!
//! The default is upstream's pass-through plugin, function i ⇄ port i.

use regs::{FuncId, PortId};

/// A frame between packet adapter and function, with upstream's side band.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BoxFrame {
    /// The frame's bytes.
    pub data: Vec<u8>,
    /// `tuser_size`: length in bytes.
    pub tuser_size: u16,
    /// `tuser_src`, one-hot: bit f is function f, bit 6+p is port p.
    pub tuser_src: u16,
    /// `tuser_dst`, one-hot likewise. 0 from the shell; the box sets it.
    pub tuser_dst: u16,
}

/// Where a box sends a frame on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Egress {
    /// To a function's C2H side.
    Function(FuncId),
    /// To a port's packet adapter.
    Port(PortId),
    /// Nowhere: the box drops it, under this name.
    Drop(&'static str),
}

/// A user plugin's behaviour, called once a frame.
#[expect(clippy::wrong_self_convention, reason = "the frame comes from there; nothing is converted")]
pub trait UserBox: Send {
    /// A frame from a port's packet adapter, towards a function. Edit in place, name the egress.
    fn from_port(&mut self, port: PortId, frame: &mut BoxFrame) -> Egress;

    /// A frame from a function's H2C side, towards a port.
    fn from_function(&mut self, func: FuncId, frame: &mut BoxFrame) -> Egress;

    /// A register read at a box-relative offset. `None`: no such register.
    fn read(&mut self, offset: u32) -> Option<u32>;

    /// A register write at a box-relative offset.
    fn write(&mut self, offset: u32, value: u32);

    /// Back to the state after reset.
    fn reset(&mut self);
}
