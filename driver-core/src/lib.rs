//! The OpenNIC driver, once, for a simulated card and a real one: bring-up, descriptor and completion rings, buffers,
//! RSS control.
//!
//! It sees the world through four traits, [`Mmio`], [`Clock`], [`Interrupts`] and [`DmaMemory`], bundled as a
//! [`Platform`]. Whoever supplies those four (the testbench, VFIO, a kernel) has a driver:
//!
//! ```no_run
//! # fn run<P: driver_core::Platform>(platform: P) -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use driver_core::{DeviceConfig, Driver, NoHook, WEIGHT};
//! use regs::FuncId;
//!
//! let mut driver = Driver::<P>::bring_up(Arc::new(platform), DeviceConfig::new(FuncId(0)))?;
//! driver.up()?;
//! for pair in driver.queues() {
//!     pair.tx.post(&[0; 60])?;
//!     pair.tx.flush()?;
//!     let polled = pair.poll(WEIGHT, &mut NoHook, |frame| println!("{} bytes", frame.len_bytes()));
//!     println!("{} frames, then {:?}", polled.received?, polled.next);
//! }
//! driver.remove()?;
//! # Ok(())
//! # }
//! ```
//!
//! What a card writes is never trusted: an index, a length or a color that can't be stops the queue with a [`QueueFault`].
//! What a caller does wrong is refused by a typed error before anything is written. Nothing is allocated for a frame once
//! the queues have run for a while.
//!
//! | file | concern |
//! |---|---|
//! | `config`, `tables`, `geometry` | what is asked for, and whether it can work |
//! | `bringup`, `csr`, `cmac`, `card_errors` | the card before its queues run |
//! | `context` | the card's side of a queue |
//! | `ring` | our side of a queue |
//! | `napi` | when it is polled |
//! | `hook` | who sees its frames first |
//! | `xdp` | compiled XDP programs as hooks |
//! | `pool` | where a receive queue's pages come from and go back to |
//! | `rss` | which queue a frame goes to |
//! | `ethtool` | settings as people ask for them |
//! | `statistics` | what was moved and lost |
//! | `driver` | all of it together |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bringup;
mod card_errors;
mod cmac;
mod config;
mod context;
mod csr;
mod driver;
mod error;
pub mod ethtool;
mod geometry;
pub mod hook;
mod napi;
mod platform;
pub mod pool;
mod ring;
pub mod rss;
pub mod statistics;
mod sync;
mod tables;
mod wait;
pub mod xdp;

pub use bringup::Step;
pub use card_errors::{CardErrors, Leaf};
pub use config::{ConfigError, DeviceConfig, IpVersion, MTU_MAX, MTU_MIN, Moderation, TableEntry, Timeouts};
pub use context::ContextError;
pub use driver::{Driver, QueuePair, Recovered, Side};
pub use error::{BringUpError, Cause, ChangeError, StopError, UpError};
pub use geometry::{BufferGeometry, FRAME_BUFFERS_MAX, GeometryError, HEADROOM_BYTES, TAILROOM_BYTES};
pub use hook::{AdjustError, NoHook, RedirectTarget, Verdict, XdpBuff, XdpFrame, XdpHook};
pub use napi::{Deferral, Napi, NapiCounters, Next, Polled, WEIGHT};
pub use platform::*;
pub use regs::context::TriggerMode;
pub use ring::{
    KeptPages, ModerationError, PageSource, PostError, QueueFault, QueueState, RxFrame, RxQueue, TakenPage,
    ThresholdError, Thresholds, TxError, TxFlow, TxQueue,
};
pub use statistics::{RxCounters, TxCounters};
pub use tables::{TableError, TableKind};
