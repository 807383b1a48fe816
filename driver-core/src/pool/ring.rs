//! The recycle ring: where pages wait that came back from other threads.

use alloc::boxed::Box;
use core::marker::PhantomData;

use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// A bounded queue that any thread puts pages into and the pool's thread takes them out of.
///
/// What was done before a `push` is seen after the `pop` that returns its page (release and acquire).
pub trait RecycleRing<T>: Send + Sync {
    /// Room for at least so many pages.
    fn with_capacity(pages: usize) -> Self;

    /// Put a page in.
    ///
    /// # Errors
    /// The page, if the ring is full.
    fn push(&self, page: T) -> Result<(), T>;

    /// The oldest page, if any. One thread at a time.
    fn pop(&self) -> Option<T>;

    /// Pages in it. Others may be at work: it is exact only while none are.
    fn len(&self) -> usize;

    /// No page in it; as exact as [`RecycleRing::len`].
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A page that is nothing but a number, as one is that the device owns: its bytes and its owner are the memory's business.
pub trait Numbered: Sized {
    /// Give the page up for its number, less than `u64::MAX`.
    fn into_number(self) -> u64;

    /// The page again. Each number that was given up makes one page, once.
    fn from_number(number: u64) -> Self;
}

/// A ring of atomic page numbers: no lock, no unsafe code, no std.
///
/// ```text
///   slots   [ 0 ][ n+1 ][ n+1 ][ 0 ]        0: empty
///              ▲ tail          ▲ head
/// ```
///
/// A producer claims a slot by advancing `head`, then fills it; the consumer empties a slot, then frees it by advancing
/// `tail`. A slot that is claimed and not yet filled looks empty: the pages behind it wait for a few instructions.
///
/// Pages that are in it when it is dropped are lost, for it holds numbers only.
#[derive(Debug)]
pub struct AtomicRing<T> {
    slots: Box<[AtomicU64]>,
    /// Slots ever claimed, wrapping.
    head: AtomicUsize,
    /// Slots ever emptied, wrapping.
    tail: AtomicUsize,
    _pages: PhantomData<fn(T) -> T>,
}

impl<T> AtomicRing<T> {
    fn slot(&self, count: usize) -> &AtomicU64 {
        // The length is a power of two, so that indices go on where the counts wrap.
        &self.slots[count & (self.slots.len() - 1)]
    }

    fn claim(&self) -> Option<usize> {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // Acquire: the slot was emptied before `tail` passed it.
            let used = head.wrapping_sub(self.tail.load(Ordering::Acquire));
            // A `head` read long ago may lie behind `tail`; the exchange would fail.
            if used >= self.slots.len() && used <= usize::MAX / 2 {
                return None;
            }
            match self.head.compare_exchange_weak(head, head.wrapping_add(1), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(head),
                Err(now) => head = now,
            }
        }
    }
}

impl<T: Numbered> RecycleRing<T> for AtomicRing<T> {
    fn with_capacity(pages: usize) -> Self {
        let slots = (0..pages.next_power_of_two()).map(|_| AtomicU64::new(0)).collect();
        Self { slots, head: AtomicUsize::new(0), tail: AtomicUsize::new(0), _pages: PhantomData }
    }

    fn push(&self, page: T) -> Result<(), T> {
        let Some(at) = self.claim() else { return Err(page) };
        // Release: whoever takes the number sees what was done to its page.
        self.slot(at).store(page.into_number().wrapping_add(1), Ordering::Release);
        Ok(())
    }

    fn pop(&self) -> Option<T> {
        let tail = self.tail.load(Ordering::Relaxed);
        let slot = self.slot(tail);
        let stored = slot.load(Ordering::Acquire);
        if stored == 0 {
            return None;
        }
        slot.store(0, Ordering::Relaxed);
        self.tail.store(tail.wrapping_add(1), Ordering::Release);
        Some(T::from_number(stored - 1))
    }

    fn len(&self) -> usize {
        let head = self.head.load(Ordering::Relaxed);
        head.wrapping_sub(self.tail.load(Ordering::Relaxed)).min(self.slots.len())
    }
}
