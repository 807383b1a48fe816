//! The two engines, as tests want them.

use super::engine::{Engine, Shape};
use super::model::ModelEngine;

/// The QDMA model: the reference.
///
/// # Errors
/// None.
pub fn model(shape: &Shape) -> Result<Box<dyn Engine>, String> {
    Ok(Box::new(ModelEngine::new(shape)))
}

/// The engine in RTL, behind a host and streams as the shape's seed has them.
///
/// # Errors
/// Why it can't be had.
pub fn rtl(shape: &Shape) -> Result<Box<dyn Engine>, String> {
    with(shape, None)
}

/// The same with one of the faults that are planted in it, by its number.
///
/// # Errors
/// Why it can't be had.
pub fn rtl_with_fault(shape: &Shape, fault: u8) -> Result<Box<dyn Engine>, String> {
    with(shape, Some(fault))
}

#[cfg(not(feature = "rtl"))]
fn with(_shape: &Shape, _fault: Option<u8>) -> Result<Box<dyn Engine>, String> {
    Err("this build has no RTL".into())
}

/// Latency, read-ahead and stalls differ from seed to seed.
#[cfg(feature = "rtl")]
fn with(shape: &Shape, fault: Option<u8>) -> Result<Box<dyn Engine>, String> {
    use rtl_bridge::stall::Profile;
    use traces::synth::Rng;

    use super::rtl::{RtlEngine, RtlEngineConfig};
    use crate::card::{Fetch, Knobs, Link};

    let mut rng = Rng::named(shape.seed, "differential host");
    let latency_cycles = *rng.pick(&[16, 60, 250]);
    let knobs = Knobs {
        link: *rng.pick(&[Link::Ideal, Link::Ideal, Link::Pcie3x16]),
        fetch: *rng.pick(&[Fetch::Wire, Fetch::Hardware]),
        latency_cycles,
        spread_cycles: rng.below(u64::from(latency_cycles / 2)) as u32,
        reorder: rng.one_in(2),
    };
    let stalls = *rng.pick(&[
        Profile::None,
        Profile::None,
        Profile::Random { percent: 30 },
        Profile::Bursts { max_cycles: 40 },
        Profile::BetweenBeats,
    ]);
    let config = RtlEngineConfig { knobs, stalls, fault, ..RtlEngineConfig::default() };
    let engine = RtlEngine::new(shape, &config).map_err(|error| format!("{:#}", anyhow::Error::new(error)))?;
    Ok(Box::new(engine))
}
