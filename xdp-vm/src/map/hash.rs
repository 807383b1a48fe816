//! The index of hash maps: keys to slots, in an order that depends on nothing but what was done.
//!
//! All memory is taken at once and zeroed by the allocator, so a large map costs address space only until it is used.
//! Slots are numbered in the order in which they were first taken; a freed slot is the next one given out.

use alloc::vec;
use alloc::vec::Vec;

/// Links are slot numbers plus one; 0 ends a chain.
type Link = u32;

/// Recency of use, as a list through the slots.
struct Lru {
    newer: Vec<Link>,
    older: Vec<Link>,
    newest: Link,
    oldest: Link,
}

/// Keys of one size to slots.
pub(crate) struct HashIndex {
    key_size: usize,
    capacity: u32,
    keys: Vec<u8>,
    buckets: Vec<Link>,
    next: Vec<Link>,
    live: Vec<bool>,
    /// Slots from here on were never taken.
    fresh: u32,
    free: Link,
    count: u32,
    lru: Option<Lru>,
}

impl HashIndex {
    pub(crate) fn new(key_size: usize, capacity: u32, lru: bool) -> Self {
        let slots = capacity as usize;
        let lru = lru.then(|| Lru { newer: vec![0; slots], older: vec![0; slots], newest: 0, oldest: 0 });
        Self {
            key_size,
            capacity,
            keys: vec![0; slots * key_size],
            buckets: vec![0; slots.next_power_of_two()],
            next: vec![0; slots],
            live: vec![false; slots],
            fresh: 0,
            free: 0,
            count: 0,
            lru,
        }
    }

    /// Bytes that [`Self::new`] will take.
    pub(crate) fn bytes(key_size: u64, capacity: u64) -> u64 {
        // Key, up to 8 bytes of buckets, chain, two links of recency, liveness.
        capacity.saturating_mul(key_size + 8 + 4 + 8 + 1)
    }

    pub(crate) fn len(&self) -> u32 {
        self.count
    }

    /// The key in a slot that is in use.
    pub(crate) fn key(&self, slot: u32) -> Option<&[u8]> {
        let at = slot as usize;
        if *self.live.get(at)? { self.keys.get(at * self.key_size..(at + 1) * self.key_size) } else { None }
    }

    /// The first slot in use from `slot` on.
    pub(crate) fn next_live(&self, slot: u32) -> Option<u32> {
        (slot..self.fresh).find(|&slot| self.live[slot as usize])
    }

    pub(crate) fn find(&self, key: &[u8]) -> Option<u32> {
        let mut link = self.buckets[self.bucket(key)];
        while link != 0 {
            let at = link as usize - 1;
            if self.keys[at * self.key_size..][..self.key_size] == *key {
                return Some(link - 1);
            }
            link = self.next[at];
        }
        None
    }

    /// The slot was used: it is the last to be evicted.
    pub(crate) fn touch(&mut self, slot: u32) {
        if let Some(lru) = &mut self.lru {
            lru.unlink(slot + 1);
            lru.push(slot + 1);
        }
    }

    /// A slot for a key that isn't there. A full index has none, unless it evicts the entry used longest ago.
    pub(crate) fn insert(&mut self, key: &[u8]) -> Option<u32> {
        if self.count == self.capacity {
            let oldest = self.lru.as_ref()?.oldest;
            self.remove_slot(oldest.checked_sub(1)?);
        }
        let slot = if self.free != 0 {
            let slot = self.free - 1;
            self.free = self.next[slot as usize];
            slot
        } else {
            self.fresh += 1;
            self.fresh - 1
        };
        let at = slot as usize;
        self.keys[at * self.key_size..][..self.key_size].copy_from_slice(key);
        let bucket = self.bucket(key);
        self.next[at] = self.buckets[bucket];
        self.buckets[bucket] = slot + 1;
        self.live[at] = true;
        self.count += 1;
        if let Some(lru) = &mut self.lru {
            lru.push(slot + 1);
        }
        Some(slot)
    }

    /// Take a key out; its slot keeps its value until it is given out again, as in the kernel.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<u32> {
        let slot = self.find(key)?;
        self.remove_slot(slot);
        Some(slot)
    }

    fn remove_slot(&mut self, slot: u32) {
        let at = slot as usize;
        let bucket = self.bucket(&self.keys[at * self.key_size..][..self.key_size]);
        let after = self.next[at];
        if self.buckets[bucket] == slot + 1 {
            self.buckets[bucket] = after;
        } else {
            let mut link = self.buckets[bucket];
            while link != 0 {
                let here = link as usize - 1;
                if self.next[here] == slot + 1 {
                    self.next[here] = after;
                    break;
                }
                link = self.next[here];
            }
        }
        self.live[at] = false;
        self.next[at] = self.free;
        self.free = slot + 1;
        self.count -= 1;
        if let Some(lru) = &mut self.lru {
            lru.unlink(slot + 1);
        }
    }

    /// A multiply-and-fold hash: quick on the short keys that programs use, the same on every machine.
    fn bucket(&self, key: &[u8]) -> usize {
        const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut hash = key.len() as u64;
        let (words, rest) = key.as_chunks::<8>();
        for word in words {
            hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(MULTIPLIER);
            hash ^= hash >> 29;
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(MULTIPLIER);
        // Buckets are at most 2^31, so the upper half has all the bits that are needed.
        (hash >> 32) as usize & (self.buckets.len() - 1)
    }
}

impl Lru {
    fn push(&mut self, link: Link) {
        let at = link as usize - 1;
        self.newer[at] = 0;
        self.older[at] = self.newest;
        match self.newest {
            0 => self.oldest = link,
            newest => self.newer[newest as usize - 1] = link,
        }
        self.newest = link;
    }

    fn unlink(&mut self, link: Link) {
        let at = link as usize - 1;
        let (newer, older) = (self.newer[at], self.older[at]);
        match newer {
            0 => self.newest = older,
            newer => self.older[newer as usize - 1] = older,
        }
        match older {
            0 => self.oldest = newer,
            older => self.newer[older as usize - 1] = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_slot_is_the_next_given_out() {
        let mut index = HashIndex::new(4, 3, false);
        let slots: Vec<_> = (0u32..3).map(|key| index.insert(&key.to_le_bytes()).unwrap()).collect();
        assert_eq!(slots, [0, 1, 2]);
        assert_eq!(index.insert(&9u32.to_le_bytes()), None, "full");
        assert_eq!(index.remove(&1u32.to_le_bytes()), Some(1));
        assert_eq!(index.find(&1u32.to_le_bytes()), None);
        assert_eq!(index.insert(&9u32.to_le_bytes()), Some(1));
        assert_eq!(index.key(1), Some(&9u32.to_le_bytes()[..]));
    }

    #[test]
    fn eviction_takes_what_was_used_longest_ago() {
        let mut index = HashIndex::new(4, 3, true);
        for key in 0u32..3 {
            index.insert(&key.to_le_bytes());
        }
        index.touch(0);
        index.insert(&7u32.to_le_bytes()).unwrap();
        assert_eq!(index.find(&1u32.to_le_bytes()), None, "1 was the oldest");
        assert!([0, 2, 7u32].iter().all(|key| index.find(&key.to_le_bytes()).is_some()));
        assert_eq!(index.len(), 3);
    }
}
