//! Index arithmetic of a QDMA ring.
//!
//! ```text
//!   table value N = 6:   slot   0     1     2     3     4     5
//!                             [ e ] [ e ] [ e ] [ e ] [ e ] [status]
//!                               ^ indices wrap here ──────┘
//!   usable N-1 = 5 slots, one of them kept empty: at most N-2 = 4 outstanding
//! ```
//!
//! Source: qdma.md 5.1 (onic-netdev `onic_ring_full`; PG302).

/// A ring as the size table describes it at this moment. Tables may change under a live queue, so one is made for each
/// use and every index is checked against it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ring {
    usable: u16,
}

impl Ring {
    /// From a table value, the status entry included. `None` when not one entry could ever be outstanding (N < 3).
    pub(super) fn new(entries: u32) -> Option<Ring> {
        let entries = (entries & 0xFFFF) as u16;
        (entries >= 3).then(|| Ring { usable: entries - 1 })
    }

    /// Slot of the status entry, N-1.
    pub(super) fn status_slot(self) -> u16 {
        self.usable
    }

    /// Entries that can be outstanding, N-2.
    pub(super) fn capacity(self) -> u16 {
        self.usable - 1
    }

    /// Is this an index of an entry?
    pub(super) fn contains(self, index: u16) -> bool {
        index < self.usable
    }

    /// The slot after `index`.
    pub(super) fn next(self, index: u16) -> u16 {
        self.advance(index, 1)
    }

    /// The slot `n` after `index`.
    pub(super) fn advance(self, index: u16, n: u16) -> u16 {
        self.wrap(u32::from(index) + u32::from(n))
    }

    /// The slot `n` before `index`.
    pub(super) fn back(self, index: u16, n: u16) -> u16 {
        let n = self.wrap(u32::from(n));
        self.wrap(u32::from(index) + u32::from(self.usable - n))
    }

    /// Entries from `from` up to but without `to`.
    pub(super) fn distance(self, from: u16, to: u16) -> u16 {
        self.back(to, from)
    }

    /// Divisions are slow and indices are nearly always in range or one lap above it.
    fn wrap(self, index: u32) -> u16 {
        let usable = u32::from(self.usable);
        let wrapped = if index < usable {
            index
        } else if index < 2 * usable {
            index - usable
        } else {
            index % usable
        };
        wrapped as u16
    }

    /// Entries from `index` to the end of the ring's memory, without the status entry.
    pub(super) fn to_end(self, index: u16) -> u16 {
        self.usable.saturating_sub(index)
    }
}

/// Descriptors of `size_bytes` that one read from `addr` may bring: no more than `limit_bytes` hold, and none beyond the
/// 4 KiB boundary that a PCIe read must not cross. At least one, wherever a ring lies.
pub(super) fn batch(addr: u64, size_bytes: usize, limit_bytes: u16) -> u16 {
    let to_page = 4096 - (addr % 4096) as u16;
    (limit_bytes.min(to_page) / size_bytes as u16).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_of_two_holds_nothing() {
        assert_eq!([0, 1, 2].map(Ring::new), [None; 3]);
        assert_eq!(Ring::new(3).map(Ring::capacity), Some(1));
    }

    #[test]
    fn table_values_have_sixteen_bits() {
        assert_eq!(Ring::new(0x1_0004), Ring::new(4));
    }

    #[test]
    fn indices_wrap_before_the_status_slot() {
        let ring = Ring::new(5).unwrap();
        assert_eq!(ring.status_slot(), 4);
        assert_eq!(ring.next(3), 0);
        assert_eq!(ring.back(1, 3), 2);
        assert_eq!(ring.distance(3, 1), 2);
        assert_eq!(ring.distance(2, 2), 0);
        assert_eq!(ring.to_end(1), 3);
        assert!(!ring.contains(4));
    }

    #[test]
    fn a_batch_ends_at_the_page() {
        assert_eq!(batch(0x1000, 8, 512), 64);
        assert_eq!(batch(0x1FF0, 8, 512), 2);
        assert_eq!(batch(0x1FFC, 16, 512), 1, "a crooked ring still moves");
    }

    #[test]
    fn the_largest_ring_does_not_overflow() {
        let ring = Ring::new(0xFFFF).unwrap();
        assert_eq!(ring.advance(0xFFFD, 0xFFFE), 0xFFFD);
        assert_eq!(ring.distance(0xFFFF, 0xFFFF), 0);
        assert_eq!(ring.distance(0xFFFD, 0), 1);
    }
}
