//! `onic`: the only place that joins a card, a driver and a trace.

pub mod bench;
pub mod card;
pub mod host_memory;
pub mod outcome;
pub mod run;
pub mod shape;
