//! What ethtool asks of a driver, as plain values: `-i`, `-l/-L`, `-g/-G`, `-c/-C`, `-x/-X` and the link.
//!
//! Names and units are those of ethtool's manual page. Nothing is rounded: a value that the card's tables don't hold is
//! refused with the list of those that they do. The methods are [`crate::Driver`]'s.

use core::fmt;

use regs::context::TriggerMode;
use regs::{FuncId, PortId};

use crate::config::Moderation;
use crate::rss;

/// `ethtool -i`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriverInfo {
    /// Name of the driver.
    pub driver: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The shell's build time stamp, as its register holds it: to be shown in hexadecimal.
    pub build_timestamp: u32,
    /// The function. Where that lies on a bus is the platform's to know.
    pub func: FuncId,
    /// Rows of `-S`, ours included, at the present number of queues.
    pub n_stats: usize,
}

/// `ethtool -l`. Queues come in pairs, so that only `combined` counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Channels {
    /// Pairs that the function may have.
    pub max_combined: u16,
    /// Pairs that it has.
    pub combined: u16,
    /// Vectors of no queue: the user interrupt, and function 0's errors.
    pub other: u16,
}

/// `ethtool -g`, in entries as the card's table holds them: one of them is the status entry, and two fewer than these can be
/// outstanding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rings {
    /// RX descriptor ring, and its completion ring.
    pub rx: u16,
    /// TX ring.
    pub tx: u16,
    /// The card's table: the sizes there are.
    pub choices: Choices,
}

impl Rings {
    /// The largest size there is.
    pub fn max(&self) -> u16 {
        self.choices.0.into_iter().max().unwrap_or(0)
    }
}

/// `ethtool -G`: `None` stays as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RingsChange {
    /// RX entries.
    pub rx: Option<u16>,
    /// TX entries.
    pub tx: Option<u16>,
}

/// The 16 values of a table of the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choices(pub [u16; 16]);

/// Each value once, smallest first.
impl fmt::Display for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        List(&self.0.map(u32::from)).fmt(f)
    }
}

/// `ethtool -c` of one receive queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coalesce {
    /// The rule, and which entries of the tables it uses.
    pub moderation: Moderation,
    /// `rx-usecs`, here in ns: the timer.
    pub timer_ns: u32,
    /// `rx-frames`: the counter.
    pub frames: u16,
}

/// The card's timers and counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoalesceTables {
    /// Nanoseconds.
    pub timers_ns: [u32; 16],
    /// Frames.
    pub counters: Choices,
}

/// An entry of the card's timer or counter table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// By its index, 0 to 15.
    Index(u8),
    /// By its value, which must be there: ns of a timer, frames of a counter.
    Value(u32),
}

/// `ethtool -C`: `None` stays as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CoalesceChange {
    /// Raise interrupts at all.
    pub interrupt: Option<bool>,
    /// The rule.
    pub mode: Option<TriggerMode>,
    /// `rx-usecs`.
    pub timer: Option<Choice>,
    /// `rx-frames`.
    pub counter: Option<Choice>,
}

impl CoalesceTables {
    /// What a change makes of a setting.
    ///
    /// # Errors
    /// [`EthtoolError`] lists what there is.
    pub fn apply(&self, to: Moderation, change: &CoalesceChange) -> Result<Moderation, EthtoolError> {
        Ok(Moderation {
            interrupt: change.interrupt.unwrap_or(to.interrupt),
            mode: change.mode.unwrap_or(to.mode),
            timer_index: change.timer.map_or(Ok(to.timer_index), |choice| self.timer(choice))?,
            counter_index: change.counter.map_or(Ok(to.counter_index), |choice| self.counter(choice))?,
        })
    }

    /// What a setting means.
    pub fn describe(&self, moderation: Moderation) -> Coalesce {
        let timer_ns = self.timers_ns.get(usize::from(moderation.timer_index)).copied().unwrap_or(0);
        let frames = self.counters.0.get(usize::from(moderation.counter_index)).copied().unwrap_or(0);
        Coalesce { moderation, timer_ns, frames }
    }

    fn timer(&self, choice: Choice) -> Result<u8, EthtoolError> {
        let held = |asked| self.timers_ns.iter().position(|ns| *ns == asked);
        index(choice, held, |asked_ns| EthtoolError::Timer { asked_ns, timers_ns: self.timers_ns })
    }

    fn counter(&self, choice: Choice) -> Result<u8, EthtoolError> {
        let held = |asked| self.counters.0.iter().position(|count| u32::from(*count) == asked);
        index(choice, held, |asked| EthtoolError::Counter { asked, choices: self.counters })
    }
}

fn index(
    choice: Choice,
    held: impl Fn(u32) -> Option<usize>,
    refused: impl Fn(u32) -> EthtoolError,
) -> Result<u8, EthtoolError> {
    match choice {
        Choice::Index(index @ 0..16) => Ok(index),
        Choice::Index(index) => Err(EthtoolError::NoSuchEntry { index }),
        // A table has 16 entries.
        Choice::Value(asked) => held(asked).map(|index| index as u8).ok_or_else(|| refused(asked)),
    }
}

/// `ethtool -x`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rss {
    /// The hash that the card computes.
    pub hash: rss::HashFunction,
    /// The indirection table in force, as the card holds it.
    pub table: rss::Table,
    /// The key in force, likewise.
    pub key: rss::Key,
    /// Queues that the table may name.
    pub queues: u16,
}

/// An indirection table that is asked for.
// One is made for each command that a person types: its 256 bytes may lie in the enum.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableChange {
    /// `default`: entry i is queue i mod n, and follows the number of queues.
    Default,
    /// `equal N`, `weight …`, or entry by entry: stays until it is changed.
    Table(rss::Table),
}

/// `ethtool -X`: `None` stays as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RssChange {
    /// The hash function; only the card's own is accepted.
    pub hash: Option<rss::HashFunction>,
    /// The indirection table.
    pub table: Option<TableChange>,
    /// The key.
    pub key: Option<rss::Key>,
}

/// Forward error correction (`ethtool --show-fec`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fec {
    /// None.
    Off,
    /// Reed-Solomon (IEEE 802.3 clause 91).
    Rs,
}

impl fmt::Display for Fec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fec::Off => "Off",
            Fec::Rs => "RS",
        })
    }
}

/// `ethtool IF`. What a 100G CMAC can't change is here all the same: full duplex, no autonegotiation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkSettings {
    /// The port.
    pub port: PortId,
    /// Mb/s.
    pub speed_mbps: u32,
    /// Both ways at once.
    pub full_duplex: bool,
    /// Negotiated with the other side.
    pub autoneg: bool,
    /// As the card's registers have it.
    pub fec: Fec,
    /// The receiver is aligned: there is light and it makes sense.
    pub detected: bool,
}

/// A request that the card can't fulfil. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EthtoolError {
    /// A ring size that the card's table doesn't hold.
    #[error("{side} ring of {asked} entries: the card has {choices}")]
    RingSize {
        /// Which ring.
        side: crate::Side,
        /// Asked for.
        asked: u16,
        /// What there is.
        choices: Choices,
    },
    /// More queue pairs than the function may have, or none.
    #[error("{asked} combined channels: this function can have 1 to {max}")]
    Channels {
        /// Asked for.
        asked: u16,
        /// The most.
        max: u16,
    },
    /// A timer that the card's table doesn't hold.
    #[error("a timer of {asked_ns} ns: the card has {} ns", List(.timers_ns))]
    Timer {
        /// Asked for.
        asked_ns: u32,
        /// What there is.
        timers_ns: [u32; 16],
    },
    /// A counter that the card's table doesn't hold.
    #[error("a counter of {asked} frames: the card has {choices}")]
    Counter {
        /// Asked for.
        asked: u32,
        /// What there is.
        choices: Choices,
    },
    /// Tables have entries 0 to 15.
    #[error("table entry {index} is past the last, 15")]
    NoSuchEntry {
        /// Asked for.
        index: u8,
    },
    /// The function has no port of its own, so that it may not change one.
    #[error("this function has no port of its own (own_port)")]
    NoPort,
}

/// Numbers, each once, smallest first.
struct List<'a>(&'a [u32; 16]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values = *self.0;
        values.sort_unstable();
        for (i, value) in values.iter().enumerate().filter(|(i, value)| *i == 0 || values[i - 1] != **value) {
            write!(f, "{}{value}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> CoalesceTables {
        CoalesceTables {
            timers_ns: core::array::from_fn(|i| 100 * i as u32),
            counters: Choices(core::array::from_fn(|i| i as u16 + 1)),
        }
    }

    fn moderation() -> Moderation {
        Moderation { interrupt: true, mode: TriggerMode::UserTimerCount, timer_index: 3, counter_index: 4 }
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name() {
        let change = CoalesceChange { timer: Some(Choice::Value(500)), ..CoalesceChange::default() };
        let changed = tables().apply(moderation(), &change).unwrap();
        assert_eq!(changed, Moderation { timer_index: 5, ..moderation() });
        assert_eq!(tables().describe(changed).timer_ns, 500);
    }

    #[test]
    fn what_the_tables_lack_is_refused_with_a_list() {
        use alloc::string::ToString;
        let ask = |change| tables().apply(moderation(), &change).unwrap_err();
        let timer = ask(CoalesceChange { timer: Some(Choice::Value(150)), ..CoalesceChange::default() });
        assert!(timer.to_string().starts_with("a timer of 150 ns: the card has 0, 100, 200, "), "{timer}");
        let counter = ask(CoalesceChange { counter: Some(Choice::Value(17)), ..CoalesceChange::default() });
        assert!(counter.to_string().ends_with("14, 15, 16"), "{counter}");
        let entry = ask(CoalesceChange { counter: Some(Choice::Index(16)), ..CoalesceChange::default() });
        assert_eq!(entry, EthtoolError::NoSuchEntry { index: 16 });
    }

    #[test]
    fn a_value_that_a_table_holds_twice_is_listed_once() {
        use alloc::string::ToString;
        let mut values = [7; 16];
        values[3] = 5;
        assert_eq!(Choices(values).to_string(), "5, 7");
    }
}
