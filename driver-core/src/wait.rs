//! Waiting for the card: the first looks are close together, later ones further apart, and there is always an end.

use crate::platform::Clock;

/// First wait. A context command takes well under a microsecond on a card.
const FIRST_NS: u64 = 100;

/// Longest wait: what the vendor's driver waits between two looks.
const LONGEST_NS: u64 = 100_000;

/// A loop's patience.
pub(crate) struct Backoff<'a, C> {
    clock: &'a C,
    begun_ns: u64,
    limit_ns: u64,
    step_ns: u64,
}

impl<'a, C: Clock> Backoff<'a, C> {
    pub(crate) fn new(clock: &'a C, limit_ns: u64) -> Self {
        Self { clock, begun_ns: clock.now(), limit_ns, step_ns: FIRST_NS }
    }

    /// Wait a while and say whether to look again: once more after the limit has passed, and then no more.
    pub(crate) fn again(&mut self) -> bool {
        if self.waited_ns() >= self.limit_ns {
            return false;
        }
        self.clock.wait(self.step_ns);
        self.step_ns = (2 * self.step_ns).min(LONGEST_NS);
        true
    }

    /// Since the beginning.
    pub(crate) fn waited_ns(&self) -> u64 {
        self.clock.now().saturating_sub(self.begun_ns)
    }
}
