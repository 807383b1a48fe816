//! Where shared state gets its atomics: from `core`, or from loom when its tests look at every order of events.
//!
//! `cfg(loom)` is set by hand for those tests only (`RUSTFLAGS='--cfg loom'`) and exchanges these names, nothing else.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

#[cfg(not(loom))]
pub(crate) use alloc::sync::Arc;
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
