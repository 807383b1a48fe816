//! Pages of 64-bit counters, as the packet adapters and the QDMA subsystem's common page have them.

use regs::{Register, Standing};

use super::Profile;

/// Slots of a page: offsets 0x00…0xC7, 8 bytes each.
const SLOTS: usize = 25;
/// What no register answers. Source: shell.md section 7.
pub(super) const UNMAPPED: u32 = 0xdead_beef;

/// Counters by their block-relative offset. Each is two words, low one first; reading the low word latches the high one,
/// so that a carry between the two reads tears nothing. (Upstream has no latch.) Reading clears nothing.
pub(super) struct CounterPage {
    values: [u64; SLOTS],
    latched_high: [u32; SLOTS],
    /// Bit n: slot n exists.
    exists: u32,
    preload: u32,
    latches: bool,
}

impl CounterPage {
    /// The counters among `registers` of a page at `base`. Upstream lacks those that are ours.
    pub(super) fn new<'a>(
        registers: impl Iterator<Item = &'a Register>,
        base: u32,
        preload: u32,
        profile: Profile,
    ) -> CounterPage {
        let exists = registers
            .filter(|r| profile == Profile::Corrected || r.standing != Standing::Ours)
            .flat_map(|r| (0..r.count).map(move |i| (r.offset + i * r.stride - base) / 8))
            .filter(|slot| (*slot as usize) < SLOTS)
            .fold(0, |exists, slot| exists | 1 << slot);
        let latches = profile == Profile::Corrected;
        CounterPage { values: [u64::from(preload); SLOTS], latched_high: [0; SLOTS], exists, preload, latches }
    }

    /// As after reset.
    pub(super) fn clear(&mut self) {
        self.values = [u64::from(self.preload); SLOTS];
        self.latched_high = [0; SLOTS];
    }

    /// Count. `offset` is one of the page's constants in `regs`.
    pub(super) fn add(&mut self, offset: u32, amount: u64) {
        let value = &mut self.values[offset as usize / 8];
        *value = value.wrapping_add(amount);
    }

    /// Show a level rather than a count: 32 bits.
    pub(super) fn set(&mut self, offset: u32, level: usize) {
        self.values[offset as usize / 8] = level as u64 & u64::from(u32::MAX);
    }

    /// A 32-bit read.
    pub(super) fn read(&mut self, offset: u32) -> u32 {
        let slot = offset as usize / 8;
        if !offset.is_multiple_of(4) || slot >= SLOTS || self.exists >> slot & 1 == 0 {
            return UNMAPPED;
        }
        let high = (self.values[slot] >> 32) as u32;
        match (offset.is_multiple_of(8), self.latches) {
            (true, _) => {
                self.latched_high[slot] = high;
                self.values[slot] as u32
            }
            (false, true) => self.latched_high[slot],
            (false, false) => high,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regs::{Bar, PortId, packet_adapter, shell};

    fn page(preload: u32, profile: Profile) -> CounterPage {
        let base = shell::packet_adapter(PortId(0));
        let registers =
            regs::registers().iter().filter(|r| r.bar == Bar::Shell && (base..base + 0x1000).contains(&r.offset));
        CounterPage::new(registers, base, preload, profile)
    }

    /// ONIC-15: a counter at 2^32-1, one frame more, read in halves around the carry.
    #[test]
    fn onic_15_a_carry_between_the_halves_tears_nothing() {
        let mut page = page(u32::MAX, Profile::Corrected);
        assert_eq!(page.read(packet_adapter::RX_PACKETS_RECEIVED), u32::MAX);
        page.add(packet_adapter::RX_PACKETS_RECEIVED, 1);
        assert_eq!(page.read(packet_adapter::RX_PACKETS_RECEIVED + 4), 0, "the half that belongs to the low word read");
        assert_eq!(page.read(packet_adapter::RX_PACKETS_RECEIVED), 0);
        assert_eq!(page.read(packet_adapter::RX_PACKETS_RECEIVED + 4), 1);
    }

    #[test]
    fn upstream_tears_and_lacks_our_counters() {
        let mut page = page(u32::MAX, Profile::Upstream);
        assert_eq!(page.read(packet_adapter::TX_PACKETS_SENT), u32::MAX);
        page.add(packet_adapter::TX_PACKETS_SENT, 1);
        assert_eq!(page.read(packet_adapter::TX_PACKETS_SENT + 4), 1);
        assert_eq!(page.read(packet_adapter::RX_DROP_OVERFLOW), UNMAPPED);
    }

    #[test]
    fn holes_read_as_unmapped() {
        let mut page = page(0, Profile::Corrected);
        for offset in [0x50, 0x7c, 0xc8, 0x21, 0xffc] {
            assert_eq!(page.read(offset), UNMAPPED, "{offset:#x}");
        }
        assert_eq!((page.read(packet_adapter::TX_INSIDE), page.read(packet_adapter::TX_INSIDE + 4)), (0, 0));
    }
}
