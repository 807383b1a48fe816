//! The QDMA engine's two witnesses against each other: the model and the RTL, driven alike.
//!
//! | file | concern |
//! |---|---|
//! | `engine` | what a QDMA under test offers |
//! | `model`, `rtl` | the model as one; the engine in RTL as one |
//! | `memory`, `bed`, `pair` | host memory; what can be driven: one engine, or two at once |
//! | `queue` | a driver's queues |
//! | `action`, `driver`, `shadow` | what a driver and a shell do, from a seed; doing it; what they expect of it |
//! | `compare` | what two engines must share: the table |
//! | `golden` | the acceptance checks of qdma.md section 11 |
//! | `directed` | single rules, one check each |
//! | `laps` | rings round and round, byte for byte |
//! | `campaign` | many seeds; shrinking; what was reached |
//! | `makers` | the two engines, as tests want them |

mod action;
mod bed;
mod campaign;
mod compare;
mod directed;
mod driver;
mod engine;
mod golden;
mod laps;
mod makers;
mod memory;
mod model;
mod pair;
mod queue;
#[cfg(feature = "rtl")]
mod rtl;
mod shadow;

pub use action::{Action, Kind};
pub use campaign::{Differs, Maker, Outcome, run_seed};
pub use compare::REACHABLE_ERRORS;
pub use directed::DIRECTED;
pub use driver::Tally;
pub use engine::{Engine, Hold, Interrupt, Shape};
pub use golden::{CHECKS, Check};
pub use laps::{agree as laps_agree, all_sizes as lap_sizes};
pub use makers::{model, rtl, rtl_with_fault};
pub use model::{ModelEngine, Pace};
#[cfg(feature = "rtl")]
pub use rtl::{RtlEngine, RtlEngineConfig, RtlEngineError};
