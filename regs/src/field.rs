//! Bit fields of registers.

/// A bit field of a 32-bit register: `lsb` is its lowest bit, `width` how many bits it has.
///
/// ```
/// use regs::qdma_function::qconf;
/// let word = qconf::QUEUE_BASE.set(0, 64) | qconf::NUM_QUEUES.set(0, 8);
/// assert_eq!(word, 0x0040_0008);
/// assert_eq!(qconf::QUEUE_BASE.get(word), 64);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// Lowest bit, 0…31.
    pub lsb: u8,
    /// Bits, 1…32.
    pub width: u8,
}

impl Field {
    /// A field of `width` bits from `lsb` up.
    ///
    /// # Panics
    /// When it does not lie in 32 bits. Fields are constants, so that stops the build.
    pub const fn new(lsb: u8, width: u8) -> Self {
        assert!(width >= 1 && lsb as u32 + width as u32 <= 32, "a field lies within its 32-bit register");
        Field { lsb, width }
    }

    /// Highest value the field holds.
    pub const fn max(self) -> u32 {
        u32::MAX >> (32 - self.width as u32)
    }

    /// The field's bits, in place.
    pub const fn mask(self) -> u32 {
        self.max() << self.lsb
    }

    /// The field's value in `word`.
    pub const fn get(self, word: u32) -> u32 {
        (word >> self.lsb) & self.max()
    }

    /// Whether any bit of the field is set in `word`; for fields of one bit, its value.
    pub const fn is_set(self, word: u32) -> bool {
        word & self.mask() != 0
    }

    /// `word` with the field replaced by `value`. Bits of `value` above [`Field::max`] are cut off, as a register cuts
    /// them: check first where that would matter.
    pub const fn set(self, word: u32, value: u32) -> u32 {
        (word & !self.mask()) | ((value & self.max()) << self.lsb)
    }
}

/// A bit field of a register of up to 64 bits, as the table of [`crate::registers`] lists them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field64 {
    /// Lowest bit, 0…63.
    pub lsb: u8,
    /// Bits, 1…64.
    pub width: u8,
}

impl Field64 {
    /// A field of `width` bits from `lsb` up.
    ///
    /// # Panics
    /// When it does not lie in 64 bits. Fields are constants, so that stops the build.
    pub const fn new(lsb: u8, width: u8) -> Self {
        assert!(width >= 1 && lsb as u32 + width as u32 <= 64, "a field lies within its register");
        Field64 { lsb, width }
    }

    /// The field's bits, in place.
    pub const fn mask(self) -> u64 {
        (u64::MAX >> (64 - self.width as u32)) << self.lsb
    }

    /// The field's value in `word`.
    pub const fn get(self, word: u64) -> u64 {
        (word & self.mask()) >> self.lsb
    }
}

#[cfg(test)]
mod tests {
    use super::{Field, Field64};

    #[test]
    fn a_field_touches_only_its_bits() {
        let f = Field::new(4, 8);
        assert_eq!(f.mask(), 0x0FF0);
        assert_eq!(f.set(0xFFFF_FFFF, 0), 0xFFFF_F00F);
        assert_eq!(f.get(0x0000_0A50), 0xA5);
        assert_eq!(f.set(0, 0x1FF), 0x0FF0, "bits above the field are cut off");
    }

    #[test]
    fn the_widest_fields_do_not_overflow() {
        assert_eq!(Field::new(0, 32).mask(), u32::MAX);
        assert_eq!(Field::new(31, 1).mask(), 0x8000_0000);
        assert_eq!(Field64::new(0, 64).mask(), u64::MAX);
        assert_eq!(Field64::new(0, 48).mask(), 0x0000_FFFF_FFFF_FFFF);
    }
}
