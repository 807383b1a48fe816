//! Verilator-built OpenNIC RTL, from Rust.
//!
//! From the bottom up:
//!
//! * [`build`]: SystemVerilog to a library, kept by content hash. `build.rs` uses the same code for the 1/1 card.
//! * [`tops`]: which tops there are, and how to get one: linked in, or built and loaded at run time.
//! * [`verilated`]: a running top. Context, ports by name, waves, coverage, assertions as errors.
//! * [`clock`]: edges of any number of clocks with exact rational periods.
//! * [`axis`], [`axil`]: AXI-Stream source, sink and monitor, AXI-Lite master; [`stall`]: when they hold back.
//!
//! All times are picoseconds as `u64`. This crate knows neither models nor driver-core. It is the only one with `unsafe`
//! code, and with C++: `cpp/top.h` is the whole of what crosses.

#[cfg(not(target_endian = "little"))]
compile_error!("wide RTL ports are shared with C++ as bytes of little-endian words");

pub mod axil;
pub mod axis;
#[path = "../build/mod.rs"]
pub mod build;
pub mod clock;
mod ffi;
pub mod stall;
mod timetable;
pub mod tops;
pub mod verilated;
