//! The QDMA model as a driver sees it: registers, rings in host memory, interrupts. Nothing here looks inside.
//!
//! `driver` posts and checks rings like a driver would, over a small host memory of its own. `golden` holds the
//! acceptance checks of qdma.md section 11, one test each, by their numbers.

mod contexts;
mod driver;
mod errors;
mod golden;
mod moderation;
mod random;
mod rings;
