//! An action with all that it drew: what is done with each card, word for word the same.

use std::fmt;

use driver_core::ethtool::{CoalesceChange, Fec, RingsChange, RssChange};
use regs::{FuncId, PortId};

use super::compare::Certainty;
use crate::console::Interface;
use crate::run::{HostFrame, InFrame};
use crate::shape::Pace;

/// Frames for both ways.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) wire: Vec<InFrame>,
    pub(super) host: Vec<HostFrame>,
    pub(super) pace: Pace,
}

/// A setting, in the driver's words.
#[derive(Clone, Debug)]
pub(super) enum Setting {
    Up,
    Down,
    Channels(u16),
    Rings(RingsChange),
    Mtu(u16),
    Coalesce(Option<u16>, CoalesceChange),
    Rss(Box<RssChange>),
    Fec(Fec),
    RestartRx(u16),
    RestartTx(u16),
}

/// A register access behind the driver's back, or a few that belong together.
#[derive(Clone, Debug)]
pub(super) enum Stray {
    /// The function's RSS table.
    Table(Box<[u16; driver_core::rss::TABLE_LEN]>),
    /// A BAR0 register written, or read.
    Qdma(u32, Option<u32>),
    /// A BAR2 register written, or read.
    Shell(u32, Option<u32>),
    /// The status register of the user boxes is read when they are through it.
    UserReset(u32),
    /// CIDX of a receive queue: one past the card's own, or this.
    Cidx(u16, Option<u16>),
}

/// What is done.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    /// Frames move, until nothing does.
    Traffic {
        load: Load,
        /// The host does not poll for so long, ns.
        withheld_ns: Option<u64>,
    },
    /// One setting of an interface.
    Set(Interface, Setting),
    /// Frames move, after so many ns the setting is made.
    Under { load: Load, after_ns: u64, interface: Interface, setting: Setting },
    /// The function's queue range says this (base, number) while frames move, then what it must.
    Range { func: FuncId, wrong: (u16, u16), right: (u16, u16), load: Load },
    /// A stray access; then, if so, a frame at the wire; at last the interface's failed queues are started afresh, and
    /// this one whether it has failed or not.
    Stray { func: FuncId, stray: Stray, then: Option<InFrame>, restart: Option<Setting> },
    /// Everything is read.
    Look,
}

impl Deed {
    /// What the cards must share afterwards.
    pub(super) fn certainty(&self) -> Certainty {
        match self {
            Deed::Traffic { load: Load { pace: Pace::Fast, .. }, .. } | Deed::Set(..) | Deed::Look => Certainty::Exact,
            Deed::Traffic { .. } => Certainty::Loose,
            Deed::Under { setting, .. } => match setting {
                Setting::Coalesce(..) => Certainty::Exact,
                Setting::Rss(_) => Certainty::Spread,
                _ => Certainty::Loose,
            },
            // Errors of one cause come together and are served in one go or two.
            Deed::Range { .. } | Deed::Stray { .. } => Certainty::Errors,
        }
    }

    /// The function whose setting changes while frames move.
    pub(super) fn changed(&self) -> Option<FuncId> {
        match self {
            Deed::Under { interface, .. } => Some(FuncId(interface.0)),
            _ => None,
        }
    }

    /// Frames that come with it.
    pub(super) fn load(&self) -> (&[InFrame], &[HostFrame]) {
        match self {
            Deed::Traffic { load, .. } | Deed::Under { load, .. } | Deed::Range { load, .. } => {
                (&load.wire, &load.host)
            }
            Deed::Stray { then, .. } => (then.as_slice(), &[]),
            Deed::Set(..) | Deed::Look => (&[], &[]),
        }
    }
}

/// In a line, for reports: frames are only counted.
impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deed::Traffic { load, withheld_ns } => {
                write!(f, "{load}")?;
                withheld_ns.map_or(Ok(()), |ns| write!(f, ", no poll for {ns} ns"))
            }
            Deed::Set(interface, setting) => write!(f, "{interface}: {setting:?}"),
            Deed::Under { load, after_ns, interface, setting } => {
                write!(f, "{load}, after {after_ns} ns {interface}: {setting:?}")
            }
            Deed::Range { func, wrong, load, .. } => write!(f, "{func}: queue range {wrong:?} for {load}"),
            Deed::Stray { func, stray, then, restart } => {
                write!(f, "{func}: {stray:?}")?;
                then.as_ref().map_or(Ok(()), |frame| write!(f, ", a frame of {} bytes", frame.data.len()))?;
                restart.as_ref().map_or(Ok(()), |setting| write!(f, ", {setting:?}"))
            }
            Deed::Look => f.write_str("a look"),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |port| self.wire.iter().filter(|frame| frame.port == PortId(port)).count();
        write!(f, "{} + {} frames at the wire, {} from the host, {:?}", at(0), at(1), self.host.len(), self.pace)
    }
}
