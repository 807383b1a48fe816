//! Knobs of card `rtl`, as `--set KNOB=VALUE` turns them: how far the engine reads ahead, and what its host is like.
//!
//! ```
//! use testbench::card::{Fetch, Knobs, Link};
//!
//! let mut knobs = Knobs::default();
//! knobs.turn("fetch=wire")?;
//! knobs.turn("link=pcie3x16")?;
//! knobs.turn("latency=300")?;
//! assert_eq!((knobs.fetch, knobs.link, knobs.latency_cycles), (Fetch::Wire, Link::Pcie3x16, 300));
//! # Ok::<(), testbench::shape::BadOption>(())
//! ```

use crate::shape::BadOption;

/// The link between the engine and host memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Link {
    /// One beat of 64 bytes a cycle on each channel, without headers.
    #[default]
    Ideal,
    /// PCIe 3.0, 16 lanes: 15.75 GB/s each way, TLP headers counted.
    Pcie3x16,
}

/// How far the engine reads ahead: two sets of its `cfg_*` pins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fetch {
    /// Enough to hold the line at 250 cycles of latency: 256 descriptors a queue, 8 reads of them in flight.
    Wire,
    /// As far as the vendor's text says that silicon does: one read in flight, 64 C2H or 32 H2C descriptors at most, data
    /// reads of 512 bytes. An estimate.
    #[default]
    Hardware,
}

/// Values of the engine's `cfg_*` pins. Source: rtl/qdma/qdma_engine.sv.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ahead {
    /// C2H descriptors kept for a queue, 1…256.
    pub c2h_ahead: u16,
    /// H2C descriptors kept for a queue, 1…256.
    pub h2c_ahead: u16,
    /// Descriptor reads in flight for one queue, 1…32.
    pub fetches: u8,
    /// Longest descriptor read, 64…4096, a multiple of 64.
    pub fetch_bytes: u16,
    /// Longest data read (MRRS), 64…4096, a multiple of 64.
    pub read_bytes: u16,
    /// Data reads in flight, 1…256.
    pub data_reads: u16,
}

impl Fetch {
    /// The set.
    ///
    /// Of `hardware`: 64 C2H descriptors of 8 bytes or 32 H2C ones of 16 are one read of 512 bytes. How many of them are
    /// kept ready for a queue beyond that, 8, is what the prefetch register says (qdma.md 7.5).
    pub const fn ahead(self) -> Ahead {
        match self {
            Fetch::Wire => Ahead {
                c2h_ahead: 256,
                h2c_ahead: 256,
                fetches: 8,
                fetch_bytes: 512,
                read_bytes: 4096,
                data_reads: 256,
            },
            Fetch::Hardware => {
                Ahead { c2h_ahead: 64, h2c_ahead: 32, fetches: 1, fetch_bytes: 512, read_bytes: 512, data_reads: 256 }
            }
        }
    }
}

/// All of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Knobs {
    /// `link=ideal|pcie3x16`.
    pub link: Link,
    /// `fetch=wire|hardware`.
    pub fetch: Fetch,
    /// `latency=N`: from a read to its answer, cycles of `axis_aclk`, on average; 1…100000.
    pub latency_cycles: u32,
    /// `latency-spread=N`: each answer is up to so many cycles early or late; less than `latency`.
    pub spread_cycles: u32,
    /// `reorder=on|off`: answers may overtake one another.
    pub reorder: bool,
}

impl Default for Knobs {
    fn default() -> Knobs {
        Knobs { link: Link::Ideal, fetch: Fetch::Hardware, latency_cycles: 250, spread_cycles: 8, reorder: true }
    }
}

/// Longest latency that can be asked for, cycles.
const LATENCY_MAX: u32 = 100_000;

impl Knobs {
    /// What `--set` may hold.
    pub const USAGE: &str =
        "link=ideal|pcie3x16, fetch=wire|hardware, latency=CYCLES, latency-spread=CYCLES, reorder=on|off";

    /// All settings of a command line, one after the other.
    ///
    /// # Errors
    /// [`BadOption`] for the first that can't be used.
    pub fn from_settings<'a>(settings: impl IntoIterator<Item = &'a str>) -> Result<Knobs, BadOption> {
        let mut knobs = Knobs::default();
        settings.into_iter().try_for_each(|setting| knobs.turn(setting))?;
        if knobs.spread_cycles >= knobs.latency_cycles {
            let what = format!("latency-spread={}", knobs.spread_cycles);
            return Err(BadOption { what, why: format!("must be less than latency={}", knobs.latency_cycles) });
        }
        Ok(knobs)
    }

    /// Turn one: `KNOB=VALUE`.
    ///
    /// # Errors
    /// [`BadOption`], with what may stand there.
    pub fn turn(&mut self, setting: &str) -> Result<(), BadOption> {
        let bad = |why: &str| BadOption { what: setting.to_string(), why: why.to_string() };
        let (knob, value) = setting.split_once('=').ok_or_else(|| bad("is not KNOB=VALUE"))?;
        let cycles = |low: u32| match value.parse::<u32>() {
            Ok(cycles) if (low..=LATENCY_MAX).contains(&cycles) => Ok(cycles),
            _ => Err(bad(&format!("a number of cycles from {low} to {LATENCY_MAX}"))),
        };
        match (knob, value) {
            ("link", "ideal") => self.link = Link::Ideal,
            ("link", "pcie3x16") => self.link = Link::Pcie3x16,
            ("link", _) => return Err(bad("a link is ideal or pcie3x16")),
            ("fetch", "wire") => self.fetch = Fetch::Wire,
            ("fetch", "hardware") => self.fetch = Fetch::Hardware,
            ("fetch", _) => return Err(bad("a fetch depth is wire or hardware")),
            ("latency", _) => self.latency_cycles = cycles(1)?,
            ("latency-spread", _) => self.spread_cycles = cycles(0)?,
            ("reorder", "on") => self.reorder = true,
            ("reorder", "off") => self.reorder = false,
            ("reorder", _) => return Err(bad("reorder is on or off")),
            _ => return Err(bad(&format!("there are: {}", Knobs::USAGE))),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_setting_says_what_would_be_right() {
        let why = |setting: &str| Knobs::from_settings([setting]).expect_err("refused").to_string();
        for (setting, hint) in [
            ("fetch", "KNOB=VALUE"),
            ("fetch=far", "wire or hardware"),
            ("link=pcie5", "ideal or pcie3x16"),
            ("latency=0", "from 1 to 100000"),
            ("latency-spread=250", "less than latency=250"),
            ("reorder=yes", "on or off"),
            ("depth=3", "latency-spread=CYCLES"),
        ] {
            assert!(why(setting).contains(hint), "{}", why(setting));
        }
    }

    #[test]
    fn the_last_setting_of_a_knob_holds() {
        let knobs = Knobs::from_settings(["latency=10", "latency-spread=0", "latency=20"]).expect("accepted");
        assert_eq!((knobs.latency_cycles, knobs.spread_cycles), (20, 0));
    }
}
