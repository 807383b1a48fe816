//! Numbers in either byte order.

/// Byte order of a file or a section of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    Big,
    Little,
}

impl Order {
    /// # Panics
    /// If the two bytes are not all in `bytes`: the caller has checked the length.
    pub(super) fn u16_at(self, bytes: &[u8], at: usize) -> u16 {
        let raw = [bytes[at], bytes[at + 1]];
        match self {
            Order::Big => u16::from_be_bytes(raw),
            Order::Little => u16::from_le_bytes(raw),
        }
    }

    /// # Panics
    /// As [`Order::u16_at`].
    pub(super) fn u32_at(self, bytes: &[u8], at: usize) -> u32 {
        let raw = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match self {
            Order::Big => u32::from_be_bytes(raw),
            Order::Little => u32::from_le_bytes(raw),
        }
    }

    /// `None` if `bytes` isn't exactly 4 long.
    pub(super) fn u32_of(self, bytes: &[u8]) -> Option<u32> {
        (bytes.len() == 4).then(|| self.u32_at(bytes, 0))
    }

    /// `None` if `bytes` isn't exactly 8 long.
    pub(super) fn u64_of(self, bytes: &[u8]) -> Option<u64> {
        let raw: [u8; 8] = bytes.try_into().ok()?;
        Some(match self {
            Order::Big => u64::from_be_bytes(raw),
            Order::Little => u64::from_le_bytes(raw),
        })
    }
}
