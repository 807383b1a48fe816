//! The RSS hash key, in the three forms in which people meet it: bytes, registers, and one number.
//!
//! Byte k is byte lane k mod 4 of key register k / 4, so bit n of the shell's 320-bit key is bit n mod 8 of byte n / 8
//! (`spec/qdma.md` section 10; case RSS-02).

use core::fmt;
use core::str::FromStr;

/// Bytes of a key: 320 bits.
pub const KEY_LEN_BYTES: usize = 40;

/// Registers of a key.
pub const KEY_WORDS: usize = KEY_LEN_BYTES / 4;

/// A hash key, in the order in which `ethtool -X … hkey` takes its bytes.
///
/// Parsing takes `17:14:e3:…:7c` (ethtool), the same without colons, or `0x…`: the one 320-bit number as RTL writes it,
/// most significant digit first, so that its *last* two digits are byte 0. Always 40 bytes; a `0x` number may not be
/// shortened either, since a lost digit would shift the whole key.
///
/// ```
/// use regs::rss::Key;
/// let key: Key = "0x7c9c37de18dc4386d9270f6f260374b8bfd0404b7872e224dc1b91bb011ba7a6376cc87ed6e31417".parse()?;
/// assert_eq!(key, Key::DEFAULT);
/// assert_eq!(key.to_words()[0], 0xd6e3_1417);
/// assert!(key.to_string().starts_with("17:14:e3:d6:"));
/// # Ok::<(), regs::rss::KeyError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key(pub [u8; KEY_LEN_BYTES]);

/// What is no key. The key in force stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyError {
    /// Some other number of bytes.
    Length {
        /// What was given.
        len_bytes: usize,
    },
    /// An odd number of hexadecimal digits, so no number of bytes at all.
    OddDigits {
        /// What was given.
        digits: usize,
    },
    /// A character that is neither a hexadecimal digit nor a colon between two bytes.
    Character {
        /// The character.
        found: char,
        /// Its position, counted from 0.
        position: usize,
    },
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::Length { len_bytes } => write!(f, "a hash key has {KEY_LEN_BYTES} bytes, this has {len_bytes}"),
            KeyError::OddDigits { digits } => {
                write!(f, "a hash key has {} hexadecimal digits, this has {digits}", 2 * KEY_LEN_BYTES)
            }
            KeyError::Character { found, position } => write!(
                f,
                "{found:?} at character {position} is not part of a hash key (hexadecimal digits; colons between bytes)"
            ),
        }
    }
}

impl core::error::Error for KeyError {}

impl Key {
    /// The shell's key after reset.
    ///
    /// Source: `qdma_subsystem_function_register.sv`, last word first; as `ethtool -x` shows it, case ONIC-07.
    pub const DEFAULT: Key = Key::from_words([
        0xd6e3_1417,
        0x376c_c87e,
        0x011b_a7a6,
        0xdc1b_91bb,
        0x7872_e224,
        0xbfd0_404b,
        0x2603_74b8,
        0xd927_0f6f,
        0x18dc_4386,
        0x7c9c_37de,
    ]);

    /// Take a key from a slice.
    ///
    /// # Errors
    /// [`KeyError::Length`] unless it has exactly 40 bytes.
    pub fn from_slice(bytes: &[u8]) -> Result<Key, KeyError> {
        bytes.try_into().map(Key).map_err(|_| KeyError::Length { len_bytes: bytes.len() })
    }

    /// From the ten key registers, the one at the lowest address first.
    pub const fn from_words(words: [u32; KEY_WORDS]) -> Key {
        let mut bytes = [0; KEY_LEN_BYTES];
        let mut k = 0;
        while k < KEY_LEN_BYTES {
            bytes[k] = (words[k / 4] >> (8 * (k % 4))) as u8;
            k += 1;
        }
        Key(bytes)
    }

    /// The ten key registers.
    pub fn to_words(self) -> [u32; KEY_WORDS] {
        core::array::from_fn(|i| self.word(i))
    }

    /// The bytes.
    pub const fn bytes(&self) -> &[u8; KEY_LEN_BYTES] {
        &self.0
    }

    /// Key register `i`, 0…9.
    pub fn word(&self, i: usize) -> u32 {
        let b = &self.0[4 * i..4 * i + 4];
        u32::from_le_bytes([b[0], b[1], b[2], b[3]])
    }

    /// Write key register `i`, 0…9.
    pub fn set_word(&mut self, i: usize, value: u32) {
        self.0[4 * i..4 * i + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// To be shown as RTL writes it: `0x` and 80 digits, most significant first.
    pub fn number(&self) -> Number<'_> {
        Number(self)
    }
}

impl Default for Key {
    fn default() -> Key {
        Key::DEFAULT
    }
}

/// As `ethtool -x` prints it.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (k, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02x}", if k == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

/// [`Key::number`].
#[derive(Clone, Copy, Debug)]
pub struct Number<'a>(&'a Key);

impl fmt::Display for Number<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.0.0.iter().rev().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Key, KeyError> {
        let text = text.trim();
        match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(number) => {
                let mut bytes = hex_bytes(number, 2, false)?;
                bytes.reverse();
                Ok(Key(bytes))
            }
            None => hex_bytes(text, 0, text.contains(':')).map(Key),
        }
    }
}

/// Pairs of hexadecimal digits; with `colons`, one colon between each two pairs and nowhere else. `offset` is where `text`
/// begins in what was given.
fn hex_bytes(text: &str, offset: usize, colons: bool) -> Result<[u8; KEY_LEN_BYTES], KeyError> {
    let mut bytes = [0; KEY_LEN_BYTES];
    let mut digits = 0;
    for (position, found) in text.chars().enumerate() {
        let between = colons && position % 3 == 2;
        match found.to_digit(16) {
            Some(digit) if !between => {
                // Digits past the 80th are counted, and refused below.
                if let Some(byte) = bytes.get_mut(digits / 2) {
                    *byte = *byte << 4 | digit as u8;
                }
                digits += 1;
            }
            None if between && found == ':' => {}
            _ => return Err(KeyError::Character { found, position: position + offset }),
        }
    }
    match digits {
        _ if digits % 2 != 0 => Err(KeyError::OddDigits { digits }),
        _ if digits == 2 * KEY_LEN_BYTES => Ok(bytes),
        _ => Err(KeyError::Length { len_bytes: digits / 2 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_key_reads_as_ethtool_shows_it() {
        let text = Key::DEFAULT.to_string();
        assert!(text.starts_with("17:14:e3:d6:7e:c8:") && text.ends_with(":9c:7c"), "{text}");
        assert_eq!(
            Key::DEFAULT.number().to_string(),
            "0x7c9c37de18dc4386d9270f6f260374b8bfd0404b7872e224dc1b91bb011ba7a6376cc87ed6e31417"
        );
    }

    #[test]
    fn three_spellings_give_one_key() {
        let colons = Key::DEFAULT.to_string();
        for text in [colons.clone(), colons.replace(':', ""), colons.to_uppercase(), Key::DEFAULT.number().to_string()]
        {
            assert_eq!(text.parse(), Ok(Key::DEFAULT), "{text}");
        }
    }

    /// RSS-02: key 00 01 02 … 27 stands in the registers as 03020100, 07060504, …
    #[test]
    fn rss_02_bytes_stand_in_the_registers_little_endian() {
        let key = Key(std::array::from_fn(|k| k as u8));
        assert_eq!((key.word(0), key.word(1), key.word(9)), (0x0302_0100, 0x0706_0504, 0x2726_2524));
        let words: [u32; 10] = std::array::from_fn(|i| key.word(i));
        assert_eq!(Key::from_words(words), key);
    }

    /// RSS-13: keys of 0, 39, 41 and 52 bytes, odd hex, colons in the wrong place.
    #[test]
    fn rss_13_only_40_bytes_are_a_key() {
        for len_bytes in [0, 39, 41, 52] {
            assert_eq!(Key::from_slice(&[7; 64][..len_bytes]), Err(KeyError::Length { len_bytes }));
            for prefix in ["", "0x"] {
                let text = format!("{prefix}{}", "5a".repeat(len_bytes));
                assert_eq!(text.parse::<Key>(), Err(KeyError::Length { len_bytes }), "{text}");
            }
        }
        assert_eq!("5a".repeat(40)[1..].parse::<Key>(), Err(KeyError::OddDigits { digits: 79 }));
        assert_eq!("5a5:a".parse::<Key>(), Err(KeyError::Character { found: '5', position: 2 }));
        assert_eq!("0x5g".parse::<Key>(), Err(KeyError::Character { found: 'g', position: 3 }));
        assert_eq!("é".parse::<Key>(), Err(KeyError::Character { found: 'é', position: 0 }));
    }
}
