//! What a map is to be: from an object, or written by hand.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::hash::HashIndex;
use super::lpm::DATA_BYTES_MAX;
use crate::error::MapProblem;

/// Map types of this VM, with Linux's numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
#[repr(u32)]
pub enum MapType {
    Hash = 1,
    Array = 2,
    ProgArray = 3,
    PerfEventArray = 4,
    PerCpuHash = 5,
    PerCpuArray = 6,
    LruHash = 9,
    LruPerCpuHash = 10,
    LpmTrie = 11,
    ArrayOfMaps = 12,
    HashOfMaps = 13,
    DevMap = 14,
    CpuMap = 16,
    XskMap = 17,
    Queue = 22,
    Stack = 23,
    DevMapHash = 25,
    RingBuf = 27,
}

/// Names by number, from 1 (`include/uapi/linux/bpf.h`, `enum bpf_map_type`).
const NAMES: [&str; 33] = [
    "HASH",
    "ARRAY",
    "PROG_ARRAY",
    "PERF_EVENT_ARRAY",
    "PERCPU_HASH",
    "PERCPU_ARRAY",
    "STACK_TRACE",
    "CGROUP_ARRAY",
    "LRU_HASH",
    "LRU_PERCPU_HASH",
    "LPM_TRIE",
    "ARRAY_OF_MAPS",
    "HASH_OF_MAPS",
    "DEVMAP",
    "SOCKMAP",
    "CPUMAP",
    "XSKMAP",
    "SOCKHASH",
    "CGROUP_STORAGE",
    "REUSEPORT_SOCKARRAY",
    "PERCPU_CGROUP_STORAGE",
    "QUEUE",
    "STACK",
    "SK_STORAGE",
    "DEVMAP_HASH",
    "STRUCT_OPS",
    "RINGBUF",
    "INODE_STORAGE",
    "TASK_STORAGE",
    "BLOOM_FILTER",
    "USER_RINGBUF",
    "CGRP_STORAGE",
    "ARENA",
];

impl MapType {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Hash,
        Self::Array,
        Self::ProgArray,
        Self::PerfEventArray,
        Self::PerCpuHash,
        Self::PerCpuArray,
        Self::LruHash,
        Self::LruPerCpuHash,
        Self::LpmTrie,
        Self::ArrayOfMaps,
        Self::HashOfMaps,
        Self::DevMap,
        Self::CpuMap,
        Self::XskMap,
        Self::Queue,
        Self::Stack,
        Self::DevMapHash,
        Self::RingBuf,
    ];

    /// The type of that number, if it is here.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.iter().copied().find(|map_type| *map_type as u32 == number)
    }

    /// A type's name in C without the prefix `BPF_MAP_TYPE_`, whether or not it is here.
    pub fn kernel_name(number: u32) -> Option<&'static str> {
        NAMES.get((number as usize).checked_sub(1)?).copied()
    }

    /// Each CPU has values of its own.
    pub fn is_per_cpu(self) -> bool {
        matches!(self, Self::PerCpuArray | Self::PerCpuHash | Self::LruPerCpuHash)
    }

    /// Its values are maps.
    pub fn holds_maps(self) -> bool {
        matches!(self, Self::ArrayOfMaps | Self::HashOfMaps)
    }

    /// `bpf_redirect_map` takes it.
    pub fn is_redirect_target(self) -> bool {
        matches!(self, Self::DevMap | Self::DevMapHash | Self::CpuMap | Self::XskMap)
    }
}

/// What an entry holds from the beginning: the definition's `values`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InitialValue {
    /// Its index.
    pub key: u32,
    /// The program's or map's name.
    pub name: String,
}

/// What a map is to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapSpec {
    /// Its name.
    pub name: String,
    /// Its type.
    pub map_type: MapType,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// Most entries; of a ring buffer its bytes.
    pub max_entries: u32,
    /// Linux's `map_flags`.
    pub flags: u32,
    /// Of a map of maps: what its entries are.
    pub inner: Option<Box<MapSpec>>,
    /// Programs or maps that it holds from the beginning.
    pub initial: Vec<InitialValue>,
    /// Bytes that its first value begins with: a data section.
    pub data: Vec<u8>,
    /// Programs may not write to it.
    pub read_only: bool,
    /// Its values have a spin lock, so that updates may ask for it.
    pub has_lock: bool,
}

/// `BPF_F_NO_PREALLOC`, `BPF_F_NO_COMMON_LRU`, `BPF_F_NUMA_NODE`, `BPF_F_RDONLY`, `BPF_F_WRONLY`, `BPF_F_ZERO_SEED`,
/// `BPF_F_RDONLY_PROG`, `BPF_F_WRONLY_PROG`, `BPF_F_MMAPABLE`, `BPF_F_INNER_MAP`: where and how the kernel stores it, or
/// who may use it; only `BPF_F_RDONLY_PROG` matters here.
const KNOWN_FLAGS: u32 = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | 0x1000;
const RDONLY_PROG: u32 = 0x80;

/// Longest key: a program keeps keys on its stack.
const KEY_BYTES_MAX: u32 = 512;

/// Slots, entries times CPUs, lie within one region of 4 GiB.
const VALUE_BYTES_MAX: u32 = 1 << 26;

impl MapSpec {
    /// A map of a type and sizes, with no flags and nothing in it.
    pub fn new(name: &str, map_type: MapType, key_size: u32, value_size: u32, max_entries: u32) -> Self {
        Self {
            name: String::from(name),
            map_type,
            key_size,
            value_size,
            max_entries,
            flags: 0,
            inner: None,
            initial: Vec::new(),
            data: Vec::new(),
            read_only: false,
            has_lock: false,
        }
    }

    /// Set Linux's `map_flags`, and what follows from them.
    pub(crate) fn set_flags(&mut self, flags: u32) {
        self.flags = flags;
        self.read_only = flags & RDONLY_PROG != 0;
    }

    /// Distance of two slots.
    pub(crate) fn stride(&self) -> usize {
        (self.value_size as usize).next_power_of_two().max(8)
    }

    /// Bytes that the map will take.
    pub(crate) fn bytes(&self, cpus: u32) -> u64 {
        let entries = u64::from(self.max_entries);
        let cpus = if self.map_type.is_per_cpu() { u64::from(cpus) } else { 1 };
        // Prefixes are kept as they were given, too.
        let given = if self.map_type == MapType::LpmTrie { u64::from(self.key_size) } else { 0 };
        match self.map_type {
            MapType::RingBuf => entries * 2,
            MapType::PerfEventArray => u64::from(super::PERF_RING_BYTES) * 2,
            _ => entries
                .saturating_mul(self.stride() as u64)
                .saturating_mul(cpus)
                .saturating_add(entries.saturating_mul(given))
                .saturating_add(HashIndex::bytes(u64::from(self.key_size), entries)),
        }
    }

    /// Can such a map be made? `left` is what remains of the limit on memory.
    ///
    /// # Errors
    /// The first thing that does not go together.
    pub(crate) fn check(&self, cpus: u32, left: u64) -> Result<u64, MapProblem> {
        use MapType as T;
        if self.max_entries == 0 {
            return Err(MapProblem::NoMaxEntries);
        }
        if self.flags & !KNOWN_FLAGS != 0 {
            return Err(MapProblem::Flags(self.flags));
        }
        let key_fits = match self.map_type {
            T::Hash | T::PerCpuHash | T::LruHash | T::LruPerCpuHash | T::HashOfMaps => {
                (1..=KEY_BYTES_MAX).contains(&self.key_size)
            }
            T::LpmTrie => (5..=4 + DATA_BYTES_MAX as u32).contains(&self.key_size),
            T::Queue | T::Stack | T::RingBuf => self.key_size == 0,
            _ => self.key_size == 4,
        };
        if !key_fits {
            return Err(MapProblem::KeySize(self.key_size));
        }
        let value_fits = match self.map_type {
            T::RingBuf => self.value_size == 0,
            T::ProgArray | T::PerfEventArray | T::XskMap | T::ArrayOfMaps | T::HashOfMaps => self.value_size == 4,
            T::DevMap | T::DevMapHash | T::CpuMap => matches!(self.value_size, 4 | 8),
            _ => (1..=VALUE_BYTES_MAX).contains(&self.value_size),
        };
        if !value_fits {
            return Err(MapProblem::ValueSize(self.value_size));
        }
        // A ring of the kernel is a power of two and whole pages; the latter is of no matter here, but a header must fit.
        let ring_fits = self.max_entries.is_power_of_two() && (4096..=1 << 30).contains(&self.max_entries);
        if self.map_type == T::RingBuf && !ring_fits {
            return Err(MapProblem::MaxEntries(self.max_entries));
        }
        if self.max_entries > 1 << 30 {
            return Err(MapProblem::MaxEntries(self.max_entries));
        }
        if self.map_type.holds_maps() && self.inner.is_none() && self.initial.is_empty() {
            return Err(MapProblem::NoInnerMap);
        }
        // Values are addressed by 32 bits within their map.
        let bytes = self.bytes(cpus);
        let limit = left.min(1 << 31);
        if bytes > limit { Err(MapProblem::TooLarge { bytes, limit }) } else { Ok(bytes) }
    }
}
