//! Frames on their way, and when anything moved last.

/// As long as this, in `axis_aclk` cycles, may a frame be between two points of the shell that the pins show; a module's
/// reset takes 202. After that much silence nothing moves inside.
const QUIET_CYCLES: u64 = 1_000;

/// Frames on their way, and since when nothing was seen to move.
pub(in crate::card) struct Watch {
    /// Frames that went in and whose end was not yet seen, as far as the monitors tell.
    pub(in crate::card) inside: u64,
    /// `axis_aclk` cycles without a beat, a monitor's pulse or an offer.
    pub(in crate::card) quiet_cycles: u64,
    /// `axis_aclk` cycles in which the RTL owed something and nothing moved.
    pub(in crate::card) stuck_cycles: u64,
    pub(in crate::card) hang_cycles: u64,
}

impl Watch {
    pub(in crate::card) fn new(hang_cycles: u64) -> Watch {
        Watch { inside: 0, quiet_cycles: 0, stuck_cycles: 0, hang_cycles }
    }

    /// A cycle of `axis_aclk` begins.
    #[inline]
    pub(in crate::card) fn tick(&mut self) {
        self.quiet_cycles += 1;
        self.stuck_cycles += 1;
    }

    /// Nothing has moved for longer than anything takes.
    #[inline]
    pub(in crate::card) fn is_quiet(&self) -> bool {
        self.quiet_cycles > QUIET_CYCLES
    }

    #[inline]
    pub(in crate::card) fn moved(&mut self) {
        self.quiet_cycles = 0;
        self.stuck_cycles = 0;
    }

    pub(in crate::card) fn entered(&mut self) {
        self.inside += 1;
        self.moved();
    }

    /// Saturating: a card that makes frames out of nothing is the scoreboard's business.
    pub(in crate::card) fn left(&mut self) {
        self.inside = self.inside.saturating_sub(1);
        self.moved();
    }
}
