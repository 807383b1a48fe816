//! Longest prefix match: a hash index of masked prefixes, asked once for each prefix length in use, longest first.
//!
//! A key is a prefix length (u32, in the machine's byte order) and the data in network order. Routing tables use few
//! lengths, so this is quicker than a tree, and it is exact.

use alloc::vec;
use alloc::vec::Vec;

use super::MapError;
use super::hash::HashIndex;

/// Longest data of a key: the kernel's `LPM_DATA_SIZE_MAX`.
pub(crate) const DATA_BYTES_MAX: usize = 256;

pub(crate) struct Lpm {
    index: HashIndex,
    data_bytes: usize,
    /// Each slot's key as it was given last, for whoever lists them: the kernel does not clear it behind the prefix.
    given: Vec<u8>,
    /// Prefixes of each length, by length.
    lengths: Vec<u32>,
}

/// A key with its data cleared behind the prefix.
type Masked = [u8; 4 + DATA_BYTES_MAX];

impl Lpm {
    pub(crate) fn new(key_size: usize, capacity: u32) -> Self {
        let data_bytes = key_size - 4;
        let given = vec![0; key_size * capacity as usize];
        Self {
            index: HashIndex::new(key_size, capacity, false),
            data_bytes,
            given,
            lengths: vec![0; data_bytes * 8 + 1],
        }
    }

    pub(crate) fn index(&self) -> &HashIndex {
        &self.index
    }

    /// The entry with the longest prefix of the key that is no longer than the key's own length.
    pub(crate) fn longest(&self, key: &[u8]) -> Option<u32> {
        let longest = self.prefix_len(key)?;
        (0..=longest).rev().filter(|&len| self.lengths[len] > 0).find_map(|len| {
            let masked = self.mask(key, len);
            self.index.find(&masked[..key.len()])
        })
    }

    pub(crate) fn exact(&self, key: &[u8]) -> Option<u32> {
        let masked = self.mask(key, self.prefix_len(key)?);
        self.index.find(&masked[..key.len()])
    }

    pub(crate) fn insert(&mut self, key: &[u8]) -> Result<u32, MapError> {
        let len = self.prefix_len(key).ok_or(MapError::Invalid)?;
        let masked = self.mask(key, len);
        let slot = self.index.insert(&masked[..key.len()]).ok_or(MapError::NoSpace)?;
        self.lengths[len] += 1;
        Ok(slot)
    }

    /// Remember how the key of a slot was given.
    pub(crate) fn set_given(&mut self, slot: u32, key: &[u8]) {
        self.given[slot as usize * key.len()..][..key.len()].copy_from_slice(key);
    }

    /// The key of a slot in use, as it was given.
    pub(crate) fn given(&self, slot: u32) -> Option<&[u8]> {
        let len = self.index.key(slot)?.len();
        self.given.get(slot as usize * len..)?.get(..len)
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<u32> {
        let len = self.prefix_len(key)?;
        let masked = self.mask(key, len);
        let slot = self.index.remove(&masked[..key.len()])?;
        self.lengths[len] -= 1;
        Some(slot)
    }

    /// Has the key as many bits as its prefix length says?
    pub(crate) fn is_key(&self, key: &[u8]) -> bool {
        self.prefix_len(key).is_some()
    }

    /// The key's prefix length, if there are so many bits.
    fn prefix_len(&self, key: &[u8]) -> Option<usize> {
        let len = u32::from_le_bytes(*key.first_chunk()?) as usize;
        (len <= self.data_bytes * 8).then_some(len)
    }

    fn mask(&self, key: &[u8], len: usize) -> Masked {
        let mut masked = [0; 4 + DATA_BYTES_MAX];
        // A prefix length is at most 2048.
        masked[..4].copy_from_slice(&(len as u32).to_le_bytes());
        let whole = len / 8;
        masked[4..4 + whole].copy_from_slice(&key[4..4 + whole]);
        if !len.is_multiple_of(8) {
            masked[4 + whole] = key[4 + whole] & !(0xff >> (len % 8));
        }
        masked
    }
}
