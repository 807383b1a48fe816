//! Compiled XDP programs on captured frames, without a card: what `onic xdp` does.
//!
//! ```text
//!   OBJ[:PROG] ─► load ─► Subject ◄─ maps: set before, shown after
//!   capture ────────────► run ─► one Seen a frame ─► Tally, capture with verdicts
//! ```

mod load;
pub mod maps;
mod run;

pub(crate) use load::read;
pub use load::{ObjectSpec, OpenError, Setup, Subject};
pub use run::{Action, Count, NotRun, Seen, Tally};
