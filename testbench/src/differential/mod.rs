//! The QDMA engine's two witnesses against each other: the model and the RTL, driven alike.
//!
//! | file | concern |
//! |---|---|
//! | `engine` | what a QDMA under test offers |
//! | `model` | the model as one |

mod engine;
mod model;

pub use engine::{Engine, Hold, Interrupt, Shape};
pub use model::{ModelEngine, Pace};
