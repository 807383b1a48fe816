//! The behavioural OpenNIC card, in Rust: the shell (BAR2) and the QDMA (BAR0), with the stream seam between them.
//!
//! Modules stand in the order of a received frame's path. The shell and the QDMA never see each other but through
//! [`stream::QdmaStream`], so that a user's own shell, or RTL, fits where ours does.
#![forbid(unsafe_code)]

pub mod host_memory;
pub mod observation;
pub mod qdma;
pub mod rss;
pub mod shell;
pub mod stream;
pub mod time;
pub mod user_box;
