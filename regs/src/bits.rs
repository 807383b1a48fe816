//! How the hand-written layouts are declared: one line a field, with its place, decoded and encoded by one rule.
//!
//! A layout is a few little-endian 32-bit words. A field is named by its first word and its bits counted from there, as
//! the vendor's tables do; a field that runs on into the next word has a high bit above 31.

/// A value that a field of a layout holds.
pub trait FieldValue: Copy {
    /// Bits of the widest field that the type can hold.
    const BITS: u32;
    /// From the field's bits; the widest field of the type's layouts fits.
    fn from_bits(bits: u64) -> Self;
    /// To the field's bits, lowest first.
    fn to_bits(self) -> u64;
}

impl FieldValue for bool {
    const BITS: u32 = 1;
    #[inline]
    fn from_bits(bits: u64) -> Self {
        bits != 0
    }
    #[inline]
    fn to_bits(self) -> u64 {
        u64::from(self)
    }
}

macro_rules! unsigned_values {
    ($($int:ty),*) => {$(
        impl FieldValue for $int {
            const BITS: u32 = <$int>::BITS;
            #[inline]
    fn from_bits(bits: u64) -> Self {
                // Lossless: a layout gives each field a type that holds its width, and `layout!` refuses others.
                bits as $int
            }
            #[inline]
    fn to_bits(self) -> u64 {
                u64::from(self)
            }
        }
    )*};
}
unsigned_values!(u8, u16, u32, u64);

/// The bits `high:low`, counted from the start of `word`, of a layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// First word.
    pub word: u8,
    /// Highest bit; 32…63 when the field runs on into the next word.
    pub high: u8,
    /// Lowest bit, 0…31.
    pub low: u8,
}

impl Place {
    /// Bits `high:low` of `word`, checked to lie in one word or two of `words`.
    ///
    /// # Panics
    /// Otherwise; places are constants, so that stops the build.
    pub const fn new(word: u8, high: u8, low: u8, words: usize) -> Self {
        assert!(low <= high && low < 32 && high < 64, "a field lies in one word or two");
        assert!(word as usize * 32 + (high as usize) < words * 32, "a field lies within its layout");
        Place { word, high, low }
    }

    /// The same for a field that is held as a `T`, checked to be wide enough.
    ///
    /// # Panics
    /// Otherwise; places are constants, so that stops the build.
    pub const fn of<T: FieldValue>(word: u8, high: u8, low: u8, words: usize) -> Self {
        let place = Place::new(word, high, low, words);
        assert!(place.width() <= T::BITS, "the type holds the field");
        place
    }

    /// Bits of the field.
    pub const fn width(self) -> u32 {
        (self.high - self.low) as u32 + 1
    }

    /// Highest value that fits.
    pub const fn max(self) -> u64 {
        u64::MAX >> (64 - self.width())
    }

    /// The field's value.
    #[inline]
    pub fn get(self, words: &[u32]) -> u64 {
        (self.pair(words) >> self.low) & self.max()
    }

    /// Puts the low bits of `value` into the field; higher ones are cut off.
    #[inline]
    pub fn set(self, words: &mut [u32], value: u64) {
        let mask = self.max() << self.low;
        let merged = (self.pair(words) & !mask) | ((value << self.low) & mask);
        if let Some(first) = words.get_mut(usize::from(self.word)) {
            *first = merged as u32;
        }
        if self.runs_on()
            && let Some(second) = words.get_mut(usize::from(self.word) + 1)
        {
            *second = (merged >> 32) as u32;
        }
    }

    const fn runs_on(self) -> bool {
        self.high > 31
    }

    /// The field's first word, and the second above it if the field runs on.
    #[inline]
    fn pair(self, words: &[u32]) -> u64 {
        let word = |index: usize| words.get(index).map_or(0, |word| u64::from(*word));
        let first = word(usize::from(self.word));
        if self.runs_on() { first | word(usize::from(self.word) + 1) << 32 } else { first }
    }
}

/// Declares a layout: a struct with a line for each field, `to_words`, `from_words` and `overflow`.
macro_rules! layout {
    (
        $(#[$meta:meta])*
        pub struct $name:ident : [u32; $words:literal] {
            $( $(#[$field_meta:meta])* $field:ident : $ty:ty => $word:literal [ $high:literal : $low:literal ], )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $ty, )*
        }

        impl $name {
            /// 32-bit words of the layout.
            pub const WORDS: usize = $words;

            /// Where each field lies, in order.
            pub const PLACES: &'static [(&'static str, $crate::bits::Place)] = &[
                $( (stringify!($field), $crate::bits::Place::of::<$ty>($word, $high, $low, $words)), )*
            ];

            /// Decodes the words. Bits without a field are not kept.
            #[inline]
            pub fn from_words(words: &[u32; $words]) -> Self {
                $name {
                    $( $field: {
                        const PLACE: $crate::bits::Place = $crate::bits::Place::of::<$ty>($word, $high, $low, $words);
                        <$ty as $crate::bits::FieldValue>::from_bits(PLACE.get(words))
                    }, )*
                }
            }

            /// Encodes the words; bits without a field are 0. A value too large for its field is cut off: see
            /// `overflow`.
            #[inline]
            pub fn to_words(&self) -> [u32; $words] {
                let mut words = [0; $words];
                $( {
                    const PLACE: $crate::bits::Place = $crate::bits::Place::of::<$ty>($word, $high, $low, $words);
                    PLACE.set(&mut words, $crate::bits::FieldValue::to_bits(self.$field));
                } )*
                words
            }

            /// The first field whose value does not fit, by name.
            pub fn overflow(&self) -> Option<&'static str> {
                $( {
                    const PLACE: $crate::bits::Place = $crate::bits::Place::of::<$ty>($word, $high, $low, $words);
                    if $crate::bits::FieldValue::to_bits(self.$field) > PLACE.max() {
                        return Some(stringify!($field));
                    }
                } )*
                None
            }
        }
    };
}
pub(crate) use layout;

/// Words to the bytes that lie in memory, little endian.
#[inline]
pub(crate) fn bytes_of<const WORDS: usize, const BYTES: usize>(words: [u32; WORDS]) -> [u8; BYTES] {
    const { assert!(WORDS * 4 == BYTES) };
    let mut bytes = [0; BYTES];
    for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Bytes as they lie in memory, little endian, to words.
#[inline]
pub(crate) fn words_of<const WORDS: usize, const BYTES: usize>(bytes: &[u8; BYTES]) -> [u32; WORDS] {
    const { assert!(WORDS * 4 == BYTES) };
    let mut words = [0; WORDS];
    for (word, from) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*from);
    }
    words
}
