//! Golden cases: `traces/golden/NAME/` with `case.toml`, the input captures, and `expected.txt`.
//!
//! [`Case`] says what is run, [`Expected`] what comes out, [`compare`] how a run differs from it and on which line.
//! [`built_in`] makes the inputs of the cases in this repository, and [`measured`] those whose expected values are
//! measurements on upstream's RTL and not ours. `cargo run -p traces --example make_golden` writes both.

pub mod built_in;
mod case;
mod compare;
mod expected;
pub mod measured;

pub use case::{Case, CaseError, Input, Origin, list};
pub use compare::{GoldenDifference, compare};
pub use expected::{Entry, Expected, ExpectedError, Group, Slot};
