//! Strategies of the vendor's driver as the vendor has them. Each function takes the place of a sound one of the same shape
//! in [`Ways`](super::vendor::Ways); what is wrong with it says its doc, what came of it the row that uses it.

pub mod control;
pub mod probe;
pub mod queues;
pub mod rx;
pub mod tx;
