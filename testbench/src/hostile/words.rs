//! The words that a card writes into host memory, put together and taken apart by plain shifts.
//!
//! Written from `spec/qdma.md` 5.4 and 5.5 and from nothing else: neither `regs` nor driver-core is asked, so that a
//! field that both have in the wrong place is seen here.

/// A completion entry (`spec/qdma.md` 5.4): color in bit 1, error in bit 2, queue in 26:16, length in 47:32, number in
/// 63:48.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry(pub(super) u64);

impl Entry {
    pub(super) fn new(color: bool, qid: u16, len_bytes: u16, pkt_id: u16) -> Entry {
        let low = u64::from(color) << 1 | u64::from(qid & 0x7FF) << 16;
        Entry(low | u64::from(len_bytes) << 32 | u64::from(pkt_id) << 48)
    }

    pub(super) fn color(self) -> bool {
        self.0 >> 1 & 1 == 1
    }

    pub(super) fn err(self) -> bool {
        self.0 >> 2 & 1 == 1
    }

    /// Absolute.
    pub(super) fn qid(self) -> u16 {
        (self.0 >> 16 & 0x7FF) as u16
    }

    pub(super) fn len_bytes(self) -> u16 {
        (self.0 >> 32 & 0xFFFF) as u16
    }
}

/// Status word of a completion ring (5.5): PIDX in 15:0, CIDX in 31:16, color in 32, error in 36:35.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RxStatus(pub(super) u64);

impl RxStatus {
    pub(super) fn new(pidx: u16, cidx: u16, color: bool) -> RxStatus {
        RxStatus(u64::from(pidx) | u64::from(cidx) << 16 | u64::from(color) << 32)
    }

    pub(super) fn pidx(self) -> u16 {
        (self.0 & 0xFFFF) as u16
    }

    pub(super) fn err(self) -> u8 {
        (self.0 >> 35 & 3) as u8
    }

    pub(super) fn with_err(self, code: u8) -> RxStatus {
        RxStatus(self.0 | u64::from(code & 3) << 35)
    }
}

/// Status word of an H2C ring (5.5): error in 1:0, CIDX in 31:16, PIDX in 47:32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TxStatus(pub(super) u64);

impl TxStatus {
    pub(super) fn new(cidx: u16, pidx: u16) -> TxStatus {
        TxStatus(u64::from(cidx) << 16 | u64::from(pidx) << 32)
    }

    pub(super) fn err(self) -> u8 {
        (self.0 & 3) as u8
    }

    pub(super) fn cidx(self) -> u16 {
        (self.0 >> 16 & 0xFFFF) as u16
    }

    pub(super) fn with_err(self, code: u8) -> TxStatus {
        TxStatus(self.0 | u64::from(code & 3))
    }
}

/// Index arithmetic of a ring of `entries`, its status entry included: indices wrap at `entries - 1` (5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lap(pub(super) u16);

impl Lap {
    /// Of a ring of so many entries.
    pub(super) fn of(entries: u16) -> Lap {
        Lap(entries - 1)
    }

    pub(super) fn step(self, index: u16, by: u16) -> u16 {
        ((u32::from(index) + u32::from(by)) % u32::from(self.0)) as u16
    }

    pub(super) fn back(self, index: u16, by: u16) -> u16 {
        self.step(index, self.0 - by % self.0)
    }

    /// How far `to` is ahead of `from`.
    pub(super) fn ahead(self, from: u16, to: u16) -> u16 {
        ((u32::from(to) + u32::from(self.0) - u32::from(from)) % u32::from(self.0)) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recorded completion, `0x3C_0000_0002`: first lap, 60 bytes.
    #[test]
    fn an_entry_as_recorded() {
        assert_eq!(Entry::new(true, 0, 60, 0).0, 0x3C_0000_0002);
        assert_eq!(Entry(0x3C_0000_0002).len_bytes(), 60);
    }

    #[test]
    fn a_ring_of_four_wraps_at_three() {
        let lap = Lap::of(4);
        assert_eq!([lap.step(2, 1), lap.back(0, 1), lap.ahead(2, 1)], [0, 2, 2]);
    }
}
