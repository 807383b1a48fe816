//! The QDMA engine's two witnesses against each other: the model and the RTL, driven alike.
//!
//! | file | concern |
//! |---|---|
//! | `engine` | what a QDMA under test offers |
//! | `model`, `rtl` | the model as one; the engine in RTL as one |

mod engine;
mod model;
#[cfg(feature = "rtl")]
mod rtl;

pub use engine::{Engine, Hold, Interrupt, Shape};
pub use model::{ModelEngine, Pace};
#[cfg(feature = "rtl")]
pub use rtl::{RtlEngine, RtlEngineConfig, RtlEngineError};
