//! Maps: what programs keep between frames and share with whoever started them.
//!
//! A map's values are one piece of storage in which slot `s` begins at `s × stride`; the stride is the next power of two
//! of the value's size, so that one mask tells where in its value an address lies. Per-CPU maps have a slot for each
//! CPU: `s × cpus + cpu`.
//!
//! Errors have the kernel's numbers: `kernel/bpf/arraymap.c`, `hashtab.c`, `lpm_trie.c`, `queue_stack_maps.c`.

mod hash;
mod lpm;
mod ring;
mod spec;

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use hash::HashIndex;
use lpm::Lpm;
pub(crate) use ring::Ring;
pub use spec::{InitialValue, MapSpec, MapType};

use crate::errno;

/// Create or replace.
pub const ANY: u64 = 0;
/// Only create.
pub const NO_EXIST: u64 = 1;
/// Only replace.
pub const EXIST: u64 = 2;
/// The value's spin lock is taken for the copy: of no effect here, where nothing runs at the same time. Refused where
/// values have none.
const LOCK: u64 = 4;

/// Why an operation on a map was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// No such key.
    NoEntry,
    /// It is there already, and was to be created.
    Exists,
    /// The map is full, or the index behind its end.
    TooBig,
    /// The map is full, of prefixes or elements.
    NoSpace,
    /// The key, the value's size or the flags are wrong for this map.
    Invalid,
    /// This map has no such operation.
    Unsupported,
    /// Read-only data.
    ReadOnly,
}

impl MapError {
    /// The number that a program gets, negated, from the helper.
    pub const fn errno(self) -> i64 {
        match self {
            Self::NoEntry => errno::NO_ENTRY,
            Self::Exists => errno::EXISTS,
            Self::TooBig => errno::TOO_BIG,
            Self::NoSpace => errno::NO_SPACE,
            Self::Invalid => errno::INVALID,
            Self::Unsupported => errno::UNSUPPORTED,
            Self::ReadOnly => errno::PERMISSION,
        }
    }
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoEntry => "no such key",
            Self::Exists => "the key is there already",
            Self::TooBig => "the map is full, or the index lies behind its end",
            Self::NoSpace => "the map is full",
            Self::Invalid => "key, value or flags do not go with this map",
            Self::Unsupported => "this map has no such operation",
            Self::ReadOnly => "the map is read-only",
        })
    }
}

impl core::error::Error for MapError {}

/// How keys become slots.
enum Kind {
    Array,
    Hash(HashIndex),
    Lpm(Lpm),
    /// An array of which each entry is there or not: devices, CPUs, sockets, programs, maps.
    Sparse(Vec<bool>),
    Ring(Ring),
    Queue {
        head: u32,
        len: u32,
        stack: bool,
    },
}

/// One map.
pub struct Map {
    spec: MapSpec,
    kind: Kind,
    values: Vec<u8>,
    stride: usize,
    /// Slots of one entry: the number of CPUs, or 1.
    cpus: u32,
    /// Programs may write its values.
    writable: bool,
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map").field("spec", &self.spec).field("entries", &self.len()).finish_non_exhaustive()
    }
}

/// Bytes of a ring that keeps the events of one perf event array.
const PERF_RING_BYTES: u32 = 1 << 16;

impl Map {
    /// Make a map that [`MapSpec::check`] has found nothing wrong with.
    pub(crate) fn new(spec: MapSpec, cpus: u32) -> Self {
        let entries = spec.max_entries;
        let kind = match spec.map_type {
            MapType::Array | MapType::PerCpuArray => Kind::Array,
            MapType::Hash | MapType::PerCpuHash | MapType::DevMapHash | MapType::HashOfMaps => {
                Kind::Hash(HashIndex::new(spec.key_size as usize, entries, false))
            }
            MapType::LruHash | MapType::LruPerCpuHash => {
                Kind::Hash(HashIndex::new(spec.key_size as usize, entries, true))
            }
            MapType::LpmTrie => Kind::Lpm(Lpm::new(spec.key_size as usize, entries)),
            MapType::DevMap | MapType::CpuMap | MapType::XskMap | MapType::ProgArray | MapType::ArrayOfMaps => {
                Kind::Sparse(vec![false; entries as usize])
            }
            MapType::RingBuf => Kind::Ring(Ring::new(entries)),
            MapType::PerfEventArray => Kind::Ring(Ring::new(PERF_RING_BYTES)),
            MapType::Queue | MapType::Stack => Kind::Queue { head: 0, len: 0, stack: spec.map_type == MapType::Stack },
        };
        let cpus = if spec.map_type.is_per_cpu() { cpus } else { 1 };
        let stride = spec.stride();
        let slots = if matches!(kind, Kind::Ring(_)) { 0 } else { entries as usize * cpus as usize };
        let mut values = vec![0; slots * stride];
        let initial = spec.data.len().min(values.len());
        values[..initial].copy_from_slice(&spec.data[..initial]);
        // Devices, programs and maps are put in by the user only.
        let writable = !spec.read_only && !matches!(kind, Kind::Sparse(_)) && spec.map_type != MapType::DevMapHash;
        Self { spec, kind, values, stride, cpus, writable }
    }

    /// What it was made from.
    pub fn spec(&self) -> &MapSpec {
        &self.spec
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Its type.
    pub fn map_type(&self) -> MapType {
        self.spec.map_type
    }

    /// Entries in it.
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::Array => self.spec.max_entries as usize,
            Kind::Hash(index) => index.len() as usize,
            Kind::Lpm(lpm) => lpm.index().len() as usize,
            Kind::Sparse(present) => present.iter().filter(|present| **present).count(),
            Kind::Queue { len, .. } => *len as usize,
            Kind::Ring(_) => 0,
        }
    }

    /// Nothing in it?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// CPUs of which each has a value of its own, or 1.
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// All keys: arrays by index, others in the order of their slots.
    pub fn keys(&self) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        let mut from = 0;
        while let Some(slot) = self.next_slot(from) {
            keys.push(self.slot_key(slot));
            from = slot + 1;
        }
        keys
    }

    /// The values of a key: one, or one for each CPU.
    pub fn lookup(&self, key: &[u8]) -> Option<Vec<&[u8]>> {
        let slot = self.find(key)?;
        Some((0..self.cpus).map(|cpu| &self.values[self.place(slot, cpu)]).collect())
    }

    /// The value of a key on one CPU.
    pub fn lookup_cpu(&self, key: &[u8], cpu: u32) -> Option<&[u8]> {
        let slot = self.find(key)?;
        (cpu < self.cpus).then(|| &self.values[self.place(slot, cpu)])
    }

    /// Set the value of a key; in a per-CPU map on every CPU, as a user of the kernel's maps would.
    ///
    /// # Errors
    /// As the kernel's update: see [`MapError`].
    pub fn update(&mut self, key: &[u8], value: &[u8], flags: u64) -> Result<(), MapError> {
        self.store(key, value, flags, None)
    }

    /// Set the value of a key on one CPU of a per-CPU map.
    ///
    /// # Errors
    /// As [`Self::update`]; [`MapError::Invalid`] for a CPU that there isn't.
    pub fn update_cpu(&mut self, key: &[u8], value: &[u8], flags: u64, cpu: u32) -> Result<(), MapError> {
        if cpu >= self.cpus {
            return Err(MapError::Invalid);
        }
        self.store(key, value, flags, Some(cpu))
    }

    /// Take a key out.
    ///
    /// # Errors
    /// [`MapError::NoEntry`], or [`MapError::Invalid`] from an array, whose entries are always there.
    pub fn delete(&mut self, key: &[u8]) -> Result<(), MapError> {
        if key.len() != self.spec.key_size as usize {
            return Err(MapError::Invalid);
        }
        match &mut self.kind {
            Kind::Array => Err(MapError::Invalid),
            Kind::Lpm(lpm) if !lpm.is_key(key) => Err(MapError::Invalid),
            Kind::Hash(index) => index.remove(key).map(drop).ok_or(MapError::NoEntry),
            Kind::Lpm(lpm) => lpm.remove(key).map(drop).ok_or(MapError::NoEntry),
            Kind::Sparse(present) => {
                let entry = array_index(key).and_then(|at| present.get_mut(at as usize)).ok_or(MapError::Invalid)?;
                if core::mem::take(entry) { Ok(()) } else { Err(MapError::NoEntry) }
            }
            Kind::Ring(_) | Kind::Queue { .. } => Err(MapError::Unsupported),
        }
    }

    /// Take the oldest record of a ring buffer, or of the events of a perf event array, in which each begins with its CPU
    /// as a little-endian u32.
    pub fn pop_record(&mut self) -> Option<&[u8]> {
        match &mut self.kind {
            Kind::Ring(ring) => ring.pop(),
            _ => None,
        }
    }

    /// Records that found no room.
    pub fn lost_records(&self) -> u64 {
        match &self.kind {
            Kind::Ring(ring) => ring.lost(),
            _ => 0,
        }
    }

    /// Put an element into a queue or onto a stack; with `EXIST` a full one gives up its oldest.
    ///
    /// # Errors
    /// [`MapError::TooBig`] when it is full, [`MapError::Unsupported`] for other maps.
    pub fn push(&mut self, value: &[u8], flags: u64) -> Result<(), MapError> {
        let Kind::Queue { head, len, .. } = &mut self.kind else { return Err(MapError::Unsupported) };
        if value.len() != self.spec.value_size as usize || !matches!(flags, ANY | EXIST) {
            return Err(MapError::Invalid);
        }
        let entries = self.spec.max_entries;
        if *len == entries {
            if flags != EXIST {
                return Err(MapError::TooBig);
            }
            *head = (*head + 1) % entries;
            *len -= 1;
        }
        let slot = (u64::from(*head) + u64::from(*len)) % u64::from(entries);
        *len += 1;
        // Below `entries`, a u32.
        let place = self.place(slot as u32, 0);
        self.values[place].copy_from_slice(value);
        Ok(())
    }

    /// Look at the element that comes out next, and take it out if `take`.
    ///
    /// # Errors
    /// [`MapError::NoEntry`] when it is empty, [`MapError::Unsupported`] for other maps.
    pub fn pop(&mut self, take: bool) -> Result<&[u8], MapError> {
        let Kind::Queue { head, len, stack } = &mut self.kind else { return Err(MapError::Unsupported) };
        let last = len.checked_sub(1).ok_or(MapError::NoEntry)?;
        let entries = self.spec.max_entries;
        let slot = if *stack { ((u64::from(*head) + u64::from(last)) % u64::from(entries)) as u32 } else { *head };
        if take {
            *len = last;
            if !*stack {
                *head = (*head + 1) % entries;
            }
        }
        let place = self.place(slot, 0);
        Ok(&self.values[place])
    }

    fn store(&mut self, key: &[u8], value: &[u8], flags: u64, cpu: Option<u32>) -> Result<(), MapError> {
        let may_lock = matches!(self.spec.map_type, MapType::Array | MapType::Hash);
        let no_lock = may_lock && flags & LOCK != 0 && !self.spec.has_lock;
        let flags = if may_lock { flags & !LOCK } else { flags };
        let sizes = (key.len(), value.len()) == (self.spec.key_size as usize, self.spec.value_size as usize);
        if !sizes || flags > EXIST {
            return Err(MapError::Invalid);
        }
        let found = self.find_exact(key);
        match (&self.kind, found) {
            (Kind::Ring(_) | Kind::Queue { .. }, _) => return Err(MapError::Unsupported),
            (Kind::Lpm(lpm), _) if !lpm.is_key(key) => return Err(MapError::Invalid),
            (Kind::Hash(_), _) if no_lock => return Err(MapError::Invalid),
            (Kind::Array, None) => return Err(MapError::TooBig),
            (Kind::Sparse(_), None) if array_index(key).is_none_or(|at| at >= self.spec.max_entries) => {
                return Err(MapError::TooBig);
            }
            (_, Some(_)) if flags == NO_EXIST => return Err(MapError::Exists),
            (_, None) if flags == EXIST => return Err(MapError::NoEntry),
            // An array asks for the index first.
            (Kind::Array, _) if no_lock => return Err(MapError::Invalid),
            _ => {}
        }
        let slot = match (&mut self.kind, found) {
            (Kind::Hash(index), Some(slot)) => {
                index.touch(slot);
                slot
            }
            (_, Some(slot)) => slot,
            (Kind::Hash(index), None) => index.insert(key).ok_or(MapError::TooBig)?,
            (Kind::Lpm(lpm), None) => lpm.insert(key)?,
            (Kind::Sparse(present), None) => {
                let at = array_index(key).ok_or(MapError::Invalid)?;
                present[at as usize] = true;
                at
            }
            _ => return Err(MapError::Unsupported),
        };
        if let Kind::Lpm(lpm) = &mut self.kind {
            lpm.set_given(slot, key);
        }
        if found.is_none() {
            for cpu in 0..self.cpus {
                let place = self.place(slot, cpu);
                self.values[place].fill(0);
            }
        }
        for cpu in cpu.map_or(0..self.cpus, |cpu| cpu..cpu + 1) {
            let place = self.place(slot, cpu);
            self.values[place].copy_from_slice(value);
        }
        Ok(())
    }

    fn find(&self, key: &[u8]) -> Option<u32> {
        if key.len() != self.spec.key_size as usize {
            return None;
        }
        match &self.kind {
            Kind::Lpm(lpm) => lpm.longest(key),
            _ => self.find_exact(key),
        }
    }

    fn find_exact(&self, key: &[u8]) -> Option<u32> {
        match &self.kind {
            Kind::Array => array_index(key).filter(|&at| at < self.spec.max_entries),
            Kind::Hash(index) => index.find(key),
            Kind::Lpm(lpm) => lpm.exact(key),
            Kind::Sparse(present) => array_index(key).filter(|&at| present.get(at as usize) == Some(&true)),
            Kind::Ring(_) | Kind::Queue { .. } => None,
        }
    }

    /// The slot that a program's lookup finds. In an LRU map that counts as use.
    pub(crate) fn lookup_slot(&mut self, key: &[u8]) -> Option<u32> {
        let slot = self.find(key)?;
        if let Kind::Hash(index) = &mut self.kind {
            index.touch(slot);
        }
        Some(slot)
    }

    /// As [`Self::lookup_slot`] of an array, by index.
    pub(crate) fn array_slot(&self, index: u32) -> Option<u32> {
        match &self.kind {
            Kind::Array if index < self.spec.max_entries => Some(index),
            Kind::Sparse(present) if present.get(index as usize) == Some(&true) => Some(index),
            _ => None,
        }
    }

    /// Keys are indices.
    pub(crate) fn is_indexed(&self) -> bool {
        matches!(self.kind, Kind::Array | Kind::Sparse(_))
    }

    /// The offset of a slot's value in the map's addresses.
    pub(crate) fn slot_offset(&self, slot: u32, cpu: u32) -> u64 {
        let cpu = if self.cpus > 1 { cpu % self.cpus } else { 0 };
        (u64::from(slot) * u64::from(self.cpus) + u64::from(cpu)) * self.stride as u64
    }

    /// The first slot in use from `slot` on.
    pub(crate) fn next_slot(&self, slot: u32) -> Option<u32> {
        match &self.kind {
            Kind::Array => Some(slot).filter(|&slot| slot < self.spec.max_entries),
            Kind::Hash(index) => index.next_live(slot),
            Kind::Lpm(lpm) => lpm.index().next_live(slot),
            Kind::Sparse(present) => (slot..self.spec.max_entries).find(|&slot| present[slot as usize]),
            Kind::Ring(_) | Kind::Queue { .. } => None,
        }
    }

    /// The key of a slot in use.
    fn slot_key(&self, slot: u32) -> Vec<u8> {
        let mut key = vec![0; self.spec.key_size as usize];
        self.copy_slot_key(slot, &mut key);
        key
    }

    /// Copy the key of a slot in use to the beginning of `to`.
    pub(crate) fn copy_slot_key(&self, slot: u32, to: &mut [u8]) {
        let index = slot.to_le_bytes();
        let key = match &self.kind {
            Kind::Hash(hash) => hash.key(slot).unwrap_or(&[]),
            Kind::Lpm(lpm) => lpm.given(slot).unwrap_or(&[]),
            _ => &index[..],
        };
        let len = key.len().min(to.len());
        to[..len].copy_from_slice(&key[..len]);
    }

    pub(crate) fn ring(&mut self) -> Option<&mut Ring> {
        match &mut self.kind {
            Kind::Ring(ring) => Some(ring),
            _ => None,
        }
    }

    /// The bytes of an access by a program, if it lies within one value (or one reservation).
    #[inline]
    pub(crate) fn window(&self, offset: u32, len: usize) -> Option<Range<usize>> {
        if let Kind::Ring(ring) = &self.kind {
            return ring.window(offset, len);
        }
        let at = offset as usize;
        let within = at & (self.stride - 1);
        // Not as a sum, which a length from a program may overflow.
        let fits = len <= (self.spec.value_size as usize).saturating_sub(within);
        if fits && at < self.values.len() { Some(at..at + len) } else { None }
    }

    /// Where in its value an offset lies, for messages.
    pub(crate) fn offset_in_value(&self, offset: u32) -> u32 {
        if matches!(self.kind, Kind::Ring(_)) { offset } else { offset & (self.stride as u32).wrapping_sub(1) }
    }

    /// All bytes that windows index.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.kind {
            Kind::Ring(ring) => ring.data(),
            _ => &self.values,
        }
    }

    /// Likewise, to write; nothing for a program that may not.
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        match &mut self.kind {
            Kind::Ring(ring) => Some(ring.data_mut()),
            _ if self.writable => Some(&mut self.values),
            _ => None,
        }
    }

    fn place(&self, slot: u32, cpu: u32) -> Range<usize> {
        let at = (slot as usize * self.cpus as usize + cpu as usize) * self.stride;
        at..at + self.spec.value_size as usize
    }

    /// A value of 4 bytes in a sparse array or a hash of such.
    pub(crate) fn word(&self, slot: u32) -> u32 {
        let place = self.place(slot, 0);
        self.values[place].first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
    }

    /// The second 4 bytes of such a value, if it has them: the program of a device or CPU, plus one; 0 is none.
    pub(crate) fn second_word(&self, slot: u32) -> u32 {
        let place = self.place(slot, 0);
        self.values[place].get(4..8).and_then(|word| word.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word))
    }
}

fn array_index(key: &[u8]) -> Option<u32> {
    key.try_into().map(u32::from_le_bytes).ok()
}

#[cfg(test)]
mod tests;
