//! The CSR tables that queue contexts point into: ring sizes, buffer sizes, timers, counters. Sixteen entries each, one
//! set for the whole card.
//!
//! Function 0 programs them, the vendor's values first and then, in place of values that nobody asked for, the ones that
//! its configuration needs. Other functions read what is there. A size is thus always the one the card works with.

use crate::config::TableEntry;
use crate::ring::ENTRIES_MIN;

/// Entries of a table.
pub(crate) const LEN: usize = 16;

/// Which table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableKind {
    /// Entries of descriptor and completion rings (0x204…).
    RingSize,
    /// Bytes of receive buffers (0xAB0…).
    BufferSize,
}

impl core::fmt::Display for TableKind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            TableKind::RingSize => "ring-size table (tx_ring, rx_ring)",
            TableKind::BufferSize => "buffer-size table (rx_buffer)",
        })
    }
}

/// A table entry that can't be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TableError {
    /// Tables have entries 0 to 15.
    #[error("{table}: entry {index} is past the last, 15")]
    NoSuchEntry {
        /// Which table.
        table: TableKind,
        /// Asked for.
        index: u8,
    },
    /// A value that no queue can use.
    #[error("{table}: {value} is too small, {least} is the least")]
    TooSmall {
        /// Which table.
        table: TableKind,
        /// Asked for, or held by the entry asked for.
        value: u16,
        /// The least.
        least: u16,
    },
    /// Function 0 didn't program this value, and only it may.
    #[error("{table}: no entry holds {value}, and only function 0 may change that")]
    NotProgrammed {
        /// Which table.
        table: TableKind,
        /// Asked for.
        value: u16,
    },
    /// More different values were asked for than can be put in.
    #[error("{table}: no entry is left for {value}")]
    Full {
        /// Which table.
        table: TableKind,
        /// Asked for.
        value: u16,
    },
}

/// One table while its entries are being chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Table {
    kind: TableKind,
    pub(crate) values: [u16; LEN],
    /// Bit i: entry i is in use and stays as it is.
    used: u16,
}

/// An entry that was chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chosen {
    pub(crate) index: u8,
    pub(crate) value: u16,
}

impl Table {
    pub(crate) const fn new(kind: TableKind, values: [u16; LEN]) -> Self {
        Self { kind, values, used: 0 }
    }

    /// Keep an entry that is asked for by its index from being reprogrammed. To be called before the first
    /// [`Table::choose`]: a value that is asked for first must not go where another queue's index points.
    pub(crate) fn reserve(&mut self, wanted: TableEntry) {
        if let TableEntry::Index(index @ 0..16) = wanted {
            self.used |= 1 << index;
        }
    }

    /// Find an entry; with `may_program`, make one if there is none.
    pub(crate) fn choose(&mut self, wanted: TableEntry, may_program: bool) -> Result<Chosen, TableError> {
        let index = match wanted {
            TableEntry::Index(index) if usize::from(index) < LEN => index,
            TableEntry::Index(index) => return Err(TableError::NoSuchEntry { table: self.kind, index }),
            TableEntry::Value(value) => self.index_of(self.check(value)?, may_program)?,
        };
        self.used |= 1 << index;
        let value = self.check(self.values[usize::from(index)])?;
        Ok(Chosen { index, value })
    }

    fn check(&self, value: u16) -> Result<u16, TableError> {
        let least = match self.kind {
            TableKind::RingSize => ENTRIES_MIN,
            TableKind::BufferSize => 1,
        };
        if value < least { Err(TableError::TooSmall { table: self.kind, value, least }) } else { Ok(value) }
    }

    fn index_of(&mut self, value: u16, may_program: bool) -> Result<u8, TableError> {
        if let Some(index) = self.values.iter().position(|held| *held == value) {
            return Ok(index as u8);
        }
        if !may_program {
            return Err(TableError::NotProgrammed { table: self.kind, value });
        }
        // From the end: the vendor's driver and people's habits use the low ones.
        let index = (0..LEN).rev().find(|index| self.used & (1 << index) == 0);
        let index = index.ok_or(TableError::Full { table: self.kind, value })?;
        self.values[index] = value;
        Ok(index as u8)
    }
}

/// The vendor driver's ring sizes (`spec/qdma.md` 4.1).
pub(crate) const RING_SIZES: [u16; LEN] =
    [4096, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 3072, 4096, 6144, 8192, 12288, 16384];

/// The vendor driver's buffer sizes.
pub(crate) const BUFFER_SIZES: [u16; LEN] =
    [4096, 256, 512, 1024, 2048, 3968, 4096, 4096, 4096, 4096, 4096, 4096, 4096, 8192, 9018, 16384];

/// The vendor driver's timer counts, in ticks of 100 ns.
pub(crate) const TIMERS: [u16; LEN] = [10, 2, 4, 5, 8, 10, 15, 20, 25, 30, 50, 75, 100, 125, 150, 200];

/// The vendor driver's counter thresholds.
pub(crate) const COUNTERS: [u16; LEN] = [64, 2, 4, 8, 16, 24, 32, 48, 80, 96, 112, 128, 144, 160, 176, 192];

#[cfg(test)]
mod tests {
    use super::*;

    fn rings() -> Table {
        Table::new(TableKind::RingSize, RING_SIZES)
    }

    #[test]
    fn the_vendors_sizes_keep_their_indices() {
        assert_eq!(rings().choose(TableEntry::Value(4096), true), Ok(Chosen { index: 0, value: 4096 }));
        assert_eq!(rings().choose(TableEntry::Value(1024), true), Ok(Chosen { index: 8, value: 1024 }));
        assert_eq!(rings().choose(TableEntry::Index(13), false), Ok(Chosen { index: 13, value: 8192 }));
    }

    #[test]
    fn any_size_from_4_to_65535_can_be_had() {
        for value in 4..=u16::MAX {
            let mut table = rings();
            let chosen = table.choose(TableEntry::Value(value), true).unwrap();
            assert_eq!(table.values[usize::from(chosen.index)], value);
        }
        assert!(matches!(rings().choose(TableEntry::Value(3), true), Err(TableError::TooSmall { .. })));
    }

    #[test]
    fn a_second_size_does_not_overwrite_the_first() {
        let mut table = rings();
        let first = table.choose(TableEntry::Value(5), true).unwrap();
        let second = table.choose(TableEntry::Value(6), true).unwrap();
        assert_ne!(first.index, second.index);
        assert_eq!(table.values[usize::from(first.index)], 5);
    }

    #[test]
    fn an_entry_that_another_queue_uses_by_index_is_kept() {
        let mut table = rings();
        table.reserve(TableEntry::Index(15));
        assert_eq!(table.choose(TableEntry::Value(5), true), Ok(Chosen { index: 14, value: 5 }));
    }

    #[test]
    fn other_functions_only_find() {
        let refused = rings().choose(TableEntry::Value(5), false);
        assert_eq!(refused, Err(TableError::NotProgrammed { table: TableKind::RingSize, value: 5 }));
        let refused = rings().choose(TableEntry::Index(16), true);
        assert_eq!(refused, Err(TableError::NoSuchEntry { table: TableKind::RingSize, index: 16 }));
    }
}
