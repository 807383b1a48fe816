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
    pub const fn edge(self, n: u64) -> Time {
        Time(self.phase_ps + ((n as u128 * self.num as u128) / self.den as u128) as u64)
    }
}
