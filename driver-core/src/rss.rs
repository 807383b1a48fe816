//! Receive-side scaling: which queue a frame goes to.
//!
//! The card computes a 32-bit hash, takes its low 7 bits as the index into a table of 128 queues (counted from the
//! function's first), and adds the function's base. Key and table are written as `ethtool -X` gives them, and read back
//! from the card, so that what is shown is what is in force.
//!
//! A [`Key`] is `regs`': bytes in ethtool's order, registers, one number.

use regs::{Bar, FuncId};

use crate::platform::{Mmio, MmioError};

/// Entries of the indirection table.
pub const TABLE_LEN: usize = regs::qdma_function::INDIRECTION_TABLE_COUNT as usize;

pub use regs::rss::{KEY_LEN_BYTES, KEY_WORDS, Key, KeyError};

/// How a card hashes. The two agree on no input, so that neither is ever a silent default for the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HashFunction {
    /// OpenNIC's own: Toeplitz-like windows of the key, least significant bit first, over protocol, addresses and ports.
    OpenNic,
    /// Toeplitz as Microsoft published it.
    Microsoft,
}

impl HashFunction {
    /// The name that `ethtool -x` shows.
    pub const fn name(self) -> &'static str {
        match self {
            HashFunction::OpenNic => "opennic",
            HashFunction::Microsoft => "toeplitz",
        }
    }
}

/// What an OpenNIC card computes.
pub const CARD_HASH: HashFunction = HashFunction::OpenNic;

/// An RSS setting that was refused. Nothing was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RssError {
    /// An entry names a queue that the function doesn't have.
    #[error("indirection table entry {entry} names queue {queue}, but the function has queues 0 to {last}")]
    NoSuchQueue {
        /// Which of the 128.
        entry: usize,
        /// What it names.
        queue: u16,
        /// The last queue there is.
        last: u16,
    },
    /// The table has 128 entries.
    #[error("an indirection table has {TABLE_LEN} entries, not {len}")]
    TableLength {
        /// How many were given.
        len: usize,
    },
    /// The card has no such hash.
    #[error("the card computes the hash `{}`, not `{}`", CARD_HASH.name(), .asked.name())]
    HashFunction {
        /// What was asked for.
        asked: HashFunction,
    },
    /// Weights or a queue count from which no table can be made.
    #[error("a table needs at least one queue with a weight above 0")]
    Weights,
}

/// An indirection table: 128 queues, counted from the function's first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Table([u16; TABLE_LEN]);

impl Table {
    /// Entry i is queue i mod `queues`: the default, and `ethtool -X … equal N`.
    ///
    /// # Errors
    /// [`RssError::Weights`] for 0 queues.
    pub fn equal(queues: u16) -> Result<Self, RssError> {
        if queues == 0 {
            return Err(RssError::Weights);
        }
        // An index below 128 fits 16 bits.
        Ok(Table(core::array::from_fn(|entry| entry as u16 % queues)))
    }

    /// Shares in proportion to the weights, queue q having `weights[q]`: `ethtool -X … weight`. The runs are contiguous, as
    /// ethtool lays them: entry i is the first queue whose share, summed up, passes i/128.
    ///
    /// # Errors
    /// [`RssError::Weights`] if all weights are 0 or there are none.
    pub fn weighted(weights: &[u32]) -> Result<Self, RssError> {
        let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        if total == 0 || weights.len() > usize::from(u16::MAX) {
            return Err(RssError::Weights);
        }
        let mut table = [0; TABLE_LEN];
        let (mut queue, mut passed) = (0, u64::from(weights[0]));
        for (i, entry) in table.iter_mut().enumerate() {
            // i < 128 and passed <= total at the last queue, so the loop ends within the weights.
            while TABLE_LEN as u64 * passed <= i as u64 * total {
                queue += 1;
                passed += u64::from(weights[queue]);
            }
            *entry = queue as u16;
        }
        Ok(Table(table))
    }

    /// Take a table from a slice.
    ///
    /// # Errors
    /// [`RssError::TableLength`] unless it has exactly 128 entries.
    pub fn from_slice(entries: &[u16]) -> Result<Self, RssError> {
        entries.try_into().map(Table).map_err(|_| RssError::TableLength { len: entries.len() })
    }

    /// The entries.
    pub const fn entries(&self) -> &[u16; TABLE_LEN] {
        &self.0
    }

    /// Does every entry name a queue below `queues`?
    ///
    /// # Errors
    /// [`RssError::NoSuchQueue`] names the first that doesn't.
    pub fn check(&self, queues: u16) -> Result<(), RssError> {
        match self.0.iter().position(|queue| *queue >= queues) {
            None => Ok(()),
            Some(entry) => Err(RssError::NoSuchQueue { entry, queue: self.0[entry], last: queues.saturating_sub(1) }),
        }
    }
}

/// Write a table that was checked.
pub(crate) fn write_table(mmio: &impl Mmio, func: FuncId, table: &Table) -> Result<(), MmioError> {
    for (entry, queue) in table.0.iter().enumerate() {
        mmio.write32(Bar::Shell, table_offset(func, entry), u32::from(*queue))?;
    }
    Ok(())
}

/// Read the table in force. The upper half of each register is undefined (`spec/qdma.md` section 10) and is left out.
pub(crate) fn read_table(mmio: &impl Mmio, func: FuncId) -> Result<Table, MmioError> {
    let mut table = [0; TABLE_LEN];
    for (entry, queue) in table.iter_mut().enumerate() {
        *queue = (mmio.read32(Bar::Shell, table_offset(func, entry))? & 0xFFFF) as u16;
    }
    Ok(Table(table))
}

/// Write a key.
pub(crate) fn write_key(mmio: &impl Mmio, func: FuncId, key: Key) -> Result<(), MmioError> {
    for (word, value) in key.to_words().into_iter().enumerate() {
        mmio.write32(Bar::Shell, key_offset(func, word), value)?;
    }
    Ok(())
}

/// Read the key in force.
pub(crate) fn read_key(mmio: &impl Mmio, func: FuncId) -> Result<Key, MmioError> {
    let mut words = [0; KEY_WORDS];
    for (word, value) in words.iter_mut().enumerate() {
        *value = mmio.read32(Bar::Shell, key_offset(func, word))?;
    }
    Ok(Key::from_words(words))
}

fn table_offset(func: FuncId, entry: usize) -> u32 {
    regs::shell::qdma_function(func) + regs::qdma_function::INDIRECTION_TABLE + 4 * entry as u32
}

fn key_offset(func: FuncId, word: usize) -> u32 {
    regs::shell::qdma_function(func) + regs::qdma_function::HASH_KEY + 4 * word as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_differ_by_one_entry_at_most() {
        for queues in 1..=128 {
            let table = Table::equal(queues).unwrap();
            assert_eq!(table.check(queues), Ok(()));
            let shares = (0..queues).map(|q| table.entries().iter().filter(|entry| **entry == q).count());
            let (least, most) = (shares.clone().min().unwrap(), shares.max().unwrap());
            assert!(most - least <= 1, "{queues} queues: {least} to {most}");
        }
        assert_eq!(Table::equal(0), Err(RssError::Weights));
    }

    #[test]
    fn weights_are_shares() {
        let table = Table::weighted(&[1, 0, 3]).unwrap();
        let share = |q| table.entries().iter().filter(|entry| **entry == q).count();
        assert_eq!([share(0), share(1), share(2)], [32, 0, 96]);
        assert_eq!(Table::weighted(&[0, 0]), Err(RssError::Weights));
        assert_eq!(Table::weighted(&[]), Err(RssError::Weights));
        assert_eq!(Table::weighted(&[0, 5]).unwrap().entries(), &[1; TABLE_LEN]);
    }

    #[test]
    fn the_first_bad_entry_is_named() {
        let mut entries = [1; TABLE_LEN];
        entries[127] = 4;
        let table = Table::from_slice(&entries).unwrap();
        assert_eq!(table.check(4), Err(RssError::NoSuchQueue { entry: 127, queue: 4, last: 3 }));
        assert_eq!(table.check(5), Ok(()));
    }
}
