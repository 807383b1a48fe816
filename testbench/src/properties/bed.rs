//! The conditions of a case: a card's shape, key and table, its stalls, seeds and clock phases.

use std::fmt;

use driver_core::rss::{Key, TABLE_LEN, Table};
use proptest::prelude::*;
use regs::{Bar, FuncId};
use traces::synth::Rng;

use crate::card::{Choice, Shape};
use crate::run::{Run, RunError, Setup};
use driver_core::{Mmio as _, Platform as _};

/// What a case runs on. Everything long is made from a small number, so that a failing case prints in a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Bed {
    /// As many functions as ports, 1 or 2.
    pub(super) width: u8,
    /// For each function.
    pub(super) queues: u16,
    /// Bytes with FCS.
    pub(super) max_pkt_len: u16,
    /// Entries, status included.
    pub(super) ring: u16,
    /// Seed of a random key; the shell's own without.
    pub(super) key: Option<u64>,
    pub(super) table: TablePlan,
    pub(super) timing: Timing,
}

/// What no result may depend on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Timing {
    pub(super) stalls: Stalls,
    /// Of stalls, and of what registers hold before reset.
    pub(super) seed: u64,
    /// Phases of the clocks, ps: axil, axis, cmac 0, cmac 1.
    pub(super) phases_ps: [u64; 4],
    /// Length of the power-up reset in cycles of axil_aclk.
    pub(super) reset_cycles: u64,
}

/// How a table is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TablePlan {
    /// Entry i is i mod queues: what a driver sets unasked.
    Equal,
    /// Random entries among the queues.
    Random(u64),
    /// Random entries, some of them past the queues: frames that select one are lost and counted.
    Loose(u64),
}

/// A stall pattern, in the words of the command line. Kept apart from the RTL's, so that cases can be made without RTL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stalls {
    None,
    Random(u8),
    Bursts(u16),
    Every(u16),
    BetweenBeats,
}

impl fmt::Display for Stalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stalls::None => f.write_str("none"),
            Stalls::Random(percent) => write!(f, "random:{percent}"),
            Stalls::Bursts(max_cycles) => write!(f, "bursts:{max_cycles}"),
            Stalls::Every(n) => write!(f, "every:{n}"),
            Stalls::BetweenBeats => f.write_str("between-beats"),
        }
    }
}

impl Timing {
    /// Nothing stalls, all clocks begin together.
    pub(super) fn plain(seed: u64) -> Timing {
        Timing { stalls: Stalls::None, seed, phases_ps: [0; 4], reset_cycles: 16 }
    }

    /// Any.
    pub(super) fn any(rng: &mut Rng) -> Timing {
        let stalls = match rng.below(6) {
            0 => Stalls::None,
            1 => Stalls::Bursts(rng.between(1, 20) as u16),
            2 => Stalls::Every(rng.between(2, 8) as u16),
            3 => Stalls::BetweenBeats,
            _ => Stalls::Random(rng.between(1, 70) as u8),
        };
        Timing { stalls, seed: rng.next_u64(), phases_ps: phases(rng), reset_cycles: *rng.pick(&[1, 2, 3, 16, 40]) }
    }
}

/// Phases within a cycle of each clock, ps.
fn phases(rng: &mut Rng) -> [u64; 4] {
    [rng.below(8_000), rng.below(4_000), rng.below(3_103), rng.below(3_103)]
}

impl Bed {
    /// One function and port, equal table, own key, no stalls.
    pub(super) fn plain(queues: u16) -> Bed {
        Bed {
            width: 1,
            queues,
            max_pkt_len: 1518,
            ring: 1024,
            key: None,
            table: TablePlan::Equal,
            timing: Timing::plain(1),
        }
    }

    pub(super) fn shape(&self) -> Shape {
        Shape {
            functions: self.width,
            ports: self.width,
            queues: self.queues,
            max_pkt_len: self.max_pkt_len,
            mtu: self.max_pkt_len - 18,
            ring: self.ring,
            ..Shape::default()
        }
    }

    /// The key in force, in ethtool's order.
    pub(super) fn key(&self) -> [u8; 40] {
        let Some(seed) = self.key else { return Key::DEFAULT.0 };
        let mut key = [0; 40];
        Rng::named(seed, "key").fill(&mut key);
        key
    }

    /// The table in force.
    pub(super) fn table(&self) -> [u16; TABLE_LEN] {
        let random = |seed, below: u16| {
            let mut rng = Rng::named(seed, "table");
            [(); TABLE_LEN].map(|()| rng.below(below.into()) as u16)
        };
        match self.table {
            TablePlan::Equal => std::array::from_fn(|i| i as u16 % self.queues),
            TablePlan::Random(seed) => random(seed, self.queues),
            TablePlan::Loose(seed) => random(seed, self.queues + self.queues / 4 + 1),
        }
    }

    /// What the driver is told. A table with entries past the queues it would refuse: see [`Bed::write_table`].
    pub(super) fn setup(&self) -> Setup {
        let table = match self.table {
            TablePlan::Random(_) => Table::from_slice(&self.table()).ok(),
            TablePlan::Equal | TablePlan::Loose(_) => None,
        };
        Setup { shape: self.shape(), rss_key: self.key.map(|_| Key(self.key())), rss_table: table, ..Setup::default() }
    }

    /// A table that no driver sets is written behind its back.
    pub(super) fn write_table(&self, run: &mut Run) -> Result<(), RunError> {
        let TablePlan::Loose(_) = self.table else { return Ok(()) };
        for func in (0..self.width).map(FuncId) {
            let platform = run.bench().function(func);
            let base = regs::shell::qdma_function(func) + regs::qdma_function::INDIRECTION_TABLE;
            for (i, entry) in self.table().into_iter().enumerate() {
                let offset = base + regs::qdma_function::INDIRECTION_TABLE_STRIDE * i as u32;
                platform.mmio().write32(Bar::Shell, offset, entry.into())?;
            }
        }
        Ok(())
    }

    /// A card of this name under these conditions.
    pub(super) fn card(&self, name: &str) -> Choice {
        let mut choice = Choice::named(name);
        choice.rtl.seed = self.timing.seed;
        choice.rtl.stalls = self.timing.stalls.to_string();
        choice.rtl.phases_ps = self.timing.phases_ps;
        choice.rtl.reset_cycles = Some(self.timing.reset_cycles);
        choice
    }
}

/// Stall patterns, each as often.
pub(super) fn stalls() -> impl Strategy<Value = Stalls> {
    prop_oneof![
        Just(Stalls::None),
        (1u8..=70).prop_map(Stalls::Random),
        (1u16..=20).prop_map(Stalls::Bursts),
        (2u16..=8).prop_map(Stalls::Every),
        Just(Stalls::BetweenBeats),
    ]
}

fn timing() -> impl Strategy<Value = Timing> {
    (stalls(), any::<u64>(), [0u64..8_000, 0..4_000, 0..3_103, 0..3_103]).prop_map(|(stalls, seed, phases_ps)| Timing {
        stalls,
        seed,
        phases_ps,
        reset_cycles: 16,
    })
}

fn table() -> impl Strategy<Value = TablePlan> {
    prop_oneof![
        Just(TablePlan::Equal),
        any::<u64>().prop_map(TablePlan::Random),
        any::<u64>().prop_map(TablePlan::Loose)
    ]
}

/// Any card that takes frames of every length.
pub(super) fn bed() -> impl Strategy<Value = Bed> {
    (1u8..=2, 1u16..=16, prop::option::of(any::<u64>()), table(), timing()).prop_map(
        |(width, queues, key, table, timing)| Bed { width, queues, max_pkt_len: 9600, ring: 256, key, table, timing },
    )
}
