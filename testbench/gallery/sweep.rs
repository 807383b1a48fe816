//! Drivers without fault through many seeds, on as many threads as there are CPUs. Each run is a machine of its own, and
//! what is found is told by seed, so that neither threads nor their order show in the result.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Caught, Scenario, Sound, try_sound};
use crate::card::Choice;
use crate::execute::ExecuteError;

/// Something caught on a driver without fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Alarm {
    /// Where it happened.
    pub scenario: &'static str,
    /// To whom.
    pub driver: Sound,
    /// With which seed.
    pub seed: u64,
    /// What.
    pub caught: Caught,
}

/// One scenario with the seeds `from..from + count`: the first thing caught with each seed that was not silent, in order of
/// the seeds. `progress` is told of each run that ends.
///
/// # Errors
/// [`ExecuteError`] if the card can't be had.
pub fn sweep(
    scenario: &Scenario,
    driver: Sound,
    card: &Choice,
    (from, count): (u64, u64),
    progress: &(dyn Fn() + Sync),
) -> Result<Vec<Alarm>, ExecuteError> {
    let next = AtomicU64::new(0);
    let found = Mutex::new(Vec::new());
    let work = || -> Result<(), ExecuteError> {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return Ok(());
            }
            let seed = from.saturating_add(at);
            if let Some(caught) = try_sound(scenario, driver, card, seed)?.into_iter().next() {
                let alarm = Alarm { scenario: scenario.name, driver, seed, caught };
                found.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(alarm);
            }
            progress();
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64).min(count).max(1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    let mut found = found.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    found.sort_by_key(|alarm| alarm.seed);
    Ok(found)
}
