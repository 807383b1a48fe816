//! The OpenNIC register map, once, for the driver, the models and the RTL.
//!
//! Registers are described in SystemRDL (`regs/rdl/*.rdl`); the Rust constants, the SystemVerilog package, the C header
//! and `docs/registers` are generated from it by `cargo run -p ci -- regs`. What lies in host memory or in QDMA context
//! RAM rather than at an address (descriptors, completions, status words, contexts) is described beside it, by hand,
//! with its source.
//!
//! Nothing here knows a card or a driver: it is names, offsets, bit positions and their meaning.
//!
//! ```
//! use regs::{FuncId, qdma_function, shell};
//! // Entry 3 of function 1's indirection table, in BAR2.
//! let offset = shell::qdma_function(FuncId(1))
//!     + qdma_function::INDIRECTION_TABLE
//!     + 3 * qdma_function::INDIRECTION_TABLE_STRIDE;
//! assert_eq!(offset, 0x240C);
//! ```
//!
//! The crate is `no_std`; the map walk (`walk`) needs the feature `std`.
#![cfg_attr(not(any(feature = "std", test)), no_std)]
#![forbid(unsafe_code)]

pub mod bits;
pub mod context;
pub mod descriptor;
pub mod doorbell;
mod field;
mod generated;
mod ids;
pub mod rss;
mod table;
#[cfg(any(feature = "std", test))]
pub mod walk;

pub use field::{Field, Field64};
pub use generated::{cmac, packet_adapter, qdma, qdma_common, qdma_csr, qdma_function, shell, system_config};
pub use ids::{Bar, FuncId, PortId, Qid};
pub use table::{
    Absent, Access, FieldInfo, Presence, Register, Standing, Unmapped, Walk, Window, register_at, registers, windows,
};
