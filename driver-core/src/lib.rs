//! The OpenNIC driver, once, for a simulated card and a real one: bring-up, descriptor and completion rings, buffers,
//! RSS control.
//!
//! It sees the world through four traits, [`Mmio`], [`Clock`], [`Interrupts`] and [`DmaMemory`], bundled as a
//! [`Platform`]. Whoever supplies those four (the testbench, VFIO, a kernel) has a driver.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod platform;

pub use platform::*;
