//! Receive-side scaling: which queue a frame goes to.
//!
//! The card computes a 32-bit hash, takes its low 7 bits as the index into a table of 128 queues (counted from the
//! function's first), and adds the function's base. Key and table are written as `ethtool -X` gives them, and read back
//! from the card, so that what is shown is what is in force.
//!
//! Bytes of a key are in ethtool's order: byte k is byte lane k mod 4 of register k / 4 (`spec/qdma.md` section 10).

use regs::{Bar, FuncId};

use crate::platform::{Mmio, MmioError};

/// Entries of the indirection table.
pub const TABLE_LEN: usize = regs::qdma_function::INDIRECTION_TABLE_COUNT as usize;

/// Bytes of the hash key.
pub const KEY_BYTES: usize = 40;

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
    /// The key has 40 bytes.
    #[error("an RSS key has {KEY_BYTES} bytes, not {len}")]
    KeyLength {
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

/// A hash key, in ethtool's byte order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key(pub [u8; KEY_BYTES]);

impl Key {
    /// The shell's own key after reset, `17:14:e3:d6:…:9c:7c` (`qdma_subsystem_function_register.sv`, last word first).
    pub const SHELL_DEFAULT: Key = Key::from_words([
        0xD6E3_1417,
        0x376C_C87E,
        0x011B_A7A6,
        0xDC1B_91BB,
        0x7872_E224,
        0xBFD0_404B,
        0x2603_74B8,
        0xD927_0F6F,
        0x18DC_4386,
        0x7C9C_37DE,
    ]);

    /// Take a key from a slice.
    ///
    /// # Errors
    /// [`RssError::KeyLength`] unless it has exactly 40 bytes.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, RssError> {
        bytes.try_into().map(Key).map_err(|_| RssError::KeyLength { len: bytes.len() })
    }

    /// The ten registers, the one at the lowest address first.
    pub const fn to_words(self) -> [u32; KEY_BYTES / 4] {
        let mut words = [0; KEY_BYTES / 4];
        let mut word = 0;
        while word < words.len() {
            let k = 4 * word;
            words[word] = u32::from_le_bytes([self.0[k], self.0[k + 1], self.0[k + 2], self.0[k + 3]]);
            word += 1;
        }
        words
    }

    /// The key that these ten registers hold.
    pub const fn from_words(words: [u32; KEY_BYTES / 4]) -> Self {
        let mut bytes = [0; KEY_BYTES];
        let mut k = 0;
        while k < KEY_BYTES {
            bytes[k] = words[k / 4].to_le_bytes()[k % 4];
            k += 1;
        }
        Key(bytes)
    }
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
    let mut words = [0; KEY_BYTES / 4];
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
    fn key_bytes_lie_in_the_registers_as_rss_02_says() {
        let key = Key(core::array::from_fn(|k| k as u8));
        assert_eq!(&key.to_words()[..2], &[0x0302_0100, 0x0706_0504]);
        assert_eq!(Key::from_words(key.to_words()), key);
    }

    #[test]
    fn the_shells_default_key_reads_as_onic_07_says() {
        let Key(bytes) = Key::SHELL_DEFAULT;
        assert_eq!(&bytes[..6], &[0x17, 0x14, 0xE3, 0xD6, 0x7E, 0xC8]);
        assert_eq!(&bytes[38..], &[0x9C, 0x7C]);
    }

    #[test]
    fn only_40_bytes_make_a_key() {
        for len in [0, 39, 41, 52] {
            assert_eq!(Key::from_slice(&[7; 64][..len]), Err(RssError::KeyLength { len }));
        }
        assert!(Key::from_slice(&[7; 40]).is_ok());
    }

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
