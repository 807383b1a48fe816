//! The OpenNIC register map, once, for the driver, the models and the RTL.
//!
//! Registers are described in SystemRDL (`regs/rdl/*.rdl`); the Rust constants, the SystemVerilog package, the C header
//! and `docs/registers` are generated from it. What lies in host memory or in QDMA context RAM rather than at an
//! address (descriptors, completions, status words, contexts) is described beside it, by hand, with its source.
//!
//! Nothing here knows a card or a driver: it is names, offsets, bit positions and their meaning.
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

mod ids;

pub use ids::{Bar, FuncId, PortId, Qid};
