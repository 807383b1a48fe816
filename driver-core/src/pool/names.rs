//! Which pages are a pool's: their device addresses, for a pool that must say which of them are still out.

use alloc::boxed::Box;

use crate::platform::DmaAddr;
use crate::sync::{AtomicU64, Ordering};

/// Slots that an address may lie in, from its own place on.
const WINDOW: usize = 16;

/// A set of page addresses. Its owner adds, anybody may remove.
///
/// A small hash table with a window of places for each address. An address that finds its window full is left out, and
/// from then on [`Names::is_complete`] is false: such pages are counted by the pool, but not named.
#[derive(Debug)]
pub(super) struct Names {
    /// Address + 1, or 0.
    places: Box<[AtomicU64]>,
    /// How many found no place.
    left_out: AtomicU64,
}

impl Names {
    /// Room for `pages`, with as much again to spare.
    pub(super) fn with_capacity(pages: usize) -> Self {
        let places = (2 * pages).next_power_of_two().max(WINDOW);
        Self { places: (0..places).map(|_| AtomicU64::new(0)).collect(), left_out: AtomicU64::new(0) }
    }

    fn window(&self, addr: DmaAddr) -> impl Iterator<Item = &AtomicU64> {
        // Pages lie a page or a power of two of them apart: a multiplication spreads them (Fibonacci hashing).
        let hash = (addr.0 >> 12).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let mask = self.places.len() - 1;
        (0..WINDOW).map(move |i| &self.places[(hash as usize).wrapping_add(i) & mask])
    }

    /// By the owner only.
    pub(super) fn add(&self, addr: DmaAddr) {
        match self.window(addr).find(|place| place.load(Ordering::Relaxed) == 0) {
            Some(place) => place.store(addr.0 + 1, Ordering::Relaxed),
            None => {
                self.left_out.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// An address is in it once, and whoever gives up its page is the only one to remove it.
    pub(super) fn remove(&self, addr: DmaAddr) {
        if let Some(place) = self.window(addr).find(|place| place.load(Ordering::Relaxed) == addr.0 + 1) {
            place.store(0, Ordering::Relaxed);
        }
    }

    /// Is it in it? True too if that can't be known.
    pub(super) fn may_hold(&self, addr: DmaAddr) -> bool {
        self.window(addr).any(|place| place.load(Ordering::Relaxed) == addr.0 + 1) || !self.is_complete()
    }

    /// Every page found a place so far.
    pub(super) fn is_complete(&self) -> bool {
        self.left_out.load(Ordering::Relaxed) == 0
    }

    /// All in it.
    pub(super) fn all(&self) -> impl Iterator<Item = DmaAddr> {
        self.places.iter().filter_map(|place| place.load(Ordering::Relaxed).checked_sub(1)).map(DmaAddr)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn what_was_added_and_not_removed_is_there() {
        let names = Names::with_capacity(64);
        for page in 0..64 {
            names.add(DmaAddr(page * 8192));
        }
        for page in (0..64).step_by(2) {
            names.remove(DmaAddr(page * 8192));
        }
        let mut all: Vec<u64> = names.all().map(|addr| addr.0 / 8192).collect();
        all.sort_unstable();
        assert!(names.is_complete());
        assert_eq!(all, (0..64).filter(|page| page % 2 == 1).collect::<Vec<_>>());
        assert!(!names.may_hold(DmaAddr(0)));
    }

    #[test]
    fn beyond_its_room_it_says_that_it_does_not_know() {
        let names = Names::with_capacity(8);
        (0..17).for_each(|page| names.add(DmaAddr(page * 4096)));
        assert!(!names.is_complete());
        assert!(names.may_hold(DmaAddr(1 << 40)));
    }
}
