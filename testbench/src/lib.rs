//! `onic`: the only place that joins a card, a driver and a trace.

pub mod actions;
pub mod bench;
pub mod benchmark;
pub mod card;
pub mod cli;
pub mod console;
pub mod counters;
pub mod differential;
pub mod doctor;
pub mod execute;
pub mod failure;
mod feed;
pub mod finding;
pub mod frames;
#[path = "../gallery/mod.rs"]
pub mod gallery;
pub mod golden;
pub mod golden_check;
pub mod host_memory;
pub mod hostile;
pub mod input;
pub mod junit;
pub mod outcome;
pub mod output;
pub mod pool_ring;
pub mod properties;
pub mod reduce;
#[cfg(feature = "rtl")]
pub mod rtl_hash;
pub mod run;
pub mod scoreboard;
pub mod session;
pub mod shape;
pub mod vectors;
pub mod waves;
pub mod workers;
