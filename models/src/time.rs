//! Simulated time: whole picoseconds, and clocks as exact rationals.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Picoseconds since the simulation began. 64 bits last 213 days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(pub u64);

impl Time {
    /// The beginning.
    pub const ZERO: Time = Time(0);
    /// Later than anything.
    pub const NEVER: Time = Time(u64::MAX);

    /// A time from whole nanoseconds.
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns * 1000)
    }

    /// Whole nanoseconds, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1000
    }

    /// `self + ps`, stopping at [`Time::NEVER`].
    pub const fn saturating_add(self, ps: u64) -> Time {
        Time(self.0.saturating_add(ps))
    }
}

impl Add<u64> for Time {
    type Output = Time;
    fn add(self, ps: u64) -> Time {
        Time(self.0 + ps)
    }
}

impl AddAssign<u64> for Time {
    fn add_assign(&mut self, ps: u64) {
        self.0 += ps;
    }
}

impl Sub for Time {
    type Output = u64;
    fn sub(self, earlier: Time) -> u64 {
        self.0 - earlier.0
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} ns", self.0 / 1000, self.0 % 1000)
    }
}

/// A clock whose period is `num / den` picoseconds, exactly. Edge n (counted from 0) rises at `phase + n·num/den`,
/// rounded down to a picosecond, so that no error adds up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    /// Period numerator, ps.
    pub num: u64,
    /// Period denominator.
    pub den: u64,
    /// Time of edge 0, ps.
    pub phase_ps: u64,
}

impl Clock {
    /// `axis_aclk`, 250 MHz: 4000 ps.
    pub const AXIS: Clock = Clock { num: 4000, den: 1, phase_ps: 0 };
    /// `axil_aclk`, 125 MHz: 8000 ps.
    pub const AXIL: Clock = Clock { num: 8000, den: 1, phase_ps: 0 };
    /// `cmac_clk`, 322.265625 MHz: 102400/33 ps.
    pub const CMAC: Clock = Clock { num: 102_400, den: 33, phase_ps: 0 };

    /// When edge `n` rises.
    #[inline]
    pub const fn edge(self, n: u64) -> Time {
        // 64 bits do until the product overflows, after weeks of simulated time; 128-bit division costs ten times more.
        let ps = match n.checked_mul(self.num) {
            Some(product) => product / self.den,
            None => (n as u128 * self.num as u128 / self.den as u128) as u64,
        };
        Time(self.phase_ps + ps)
    }

    /// The number of the first edge at or after `time`.
    #[inline]
    pub const fn edge_at_or_after(self, time: Time) -> u64 {
        // floor(n·num/den) >= ps exactly when n·num/den >= ps, since ps is whole.
        let ps = time.0.saturating_sub(self.phase_ps);
        match ps.checked_mul(self.den) {
            Some(product) => product.div_ceil(self.num),
            None => (ps as u128 * self.den as u128).div_ceil(self.num as u128) as u64,
        }
    }

    /// `time`, or the first edge after it.
    #[inline]
    pub const fn align(self, time: Time) -> Time {
        self.edge(self.edge_at_or_after(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_never_drift() {
        assert_eq!(Clock::CMAC.edge(33), Time(102_400));
        assert_eq!(Clock::CMAC.edge(33 * 1_000_000_000), Time(102_400 * 1_000_000_000));
        assert_eq!(Clock::CMAC.edge(33 * 10_000_000_000_000), Time(102_400 * 10_000_000_000_000), "past 64 bits");
    }

    #[test]
    fn the_edge_at_or_after_an_edge_is_itself() {
        for n in [0, 1, 2, 32, 33, 1_000_003, 33 * 10_000_000_000_000 + 1] {
            let edge = Clock::CMAC.edge(n);
            assert_eq!(Clock::CMAC.edge_at_or_after(edge), n);
            assert_eq!(Clock::CMAC.edge_at_or_after(edge + 1), n + 1);
        }
        assert_eq!(Clock::AXIS.align(Time(4001)), Time(8000));
    }
}
