//! What was reached, and how often: each error that a card can cause, each deed and what came of it.
//!
//! Names come from exhaustive matches: an error variant that is added to driver-core doesn't compile here until someone
//! has said whether a card can cause it.

use std::collections::BTreeMap;

use driver_core::{
    BringUpError, Cause, ChangeError, ContextError, GeometryError, MmioError, QueueFault, StopError, TableError,
    TxError, UpError,
};

/// Errors that a card can cause by what it writes into host memory, or by registers that misbehave while queues run: a
/// full run reaches each at least [`GOAL`] times.
pub const BY_RINGS: [&str; 24] = [
    "QueueFault::Status",
    "QueueFault::IndexRange",
    "QueueFault::IndexJump",
    "QueueFault::Completion",
    "QueueFault::Length",
    "QueueFault::WrongQueue",
    "QueueFault::Page",
    "QueueFault::Doorbell",
    "TxError::Full",
    "TxError::NoPage",
    "TxError::Fault",
    "StopError::Card",
    "ContextError::Busy",
    "ContextError::Mmio",
    "MmioError::TimedOut",
    "MmioError::Bus",
    "MmioError::Stopped",
    "ChangeError::Stop",
    "ChangeError::Start",
    "ChangeError::NoSuchQueue",
    "UpError::Queue",
    "UpError::Stop",
    "Cause::Context",
    "Cause::Queue",
];

/// Errors that a card can cause by what its registers answer, from bring-up to removal. Likewise.
pub const BY_REGISTERS: [&str; 27] = [
    "BringUpError",
    "Cause::Mmio",
    "Cause::Context",
    "Cause::NoCmac",
    "Cause::InReset",
    "Cause::Table",
    "Cause::Geometry",
    "Cause::RingTooSmall",
    "TableError::TooSmall",
    "TableError::NotProgrammed",
    "GeometryError::PastPage",
    "GeometryError::TooSmall",
    "ChangeError::Stop",
    "ChangeError::Start",
    "ChangeError::Mmio",
    "ChangeError::Context",
    "UpError::Queue",
    "UpError::Stop",
    "UpError::Port",
    "StopError::Card",
    "ContextError::Busy",
    "ContextError::Mmio",
    "MmioError::TimedOut",
    "MmioError::Bus",
    "MmioError::Stopped",
    "QueueFault::Doorbell",
    "ChangeError::NoSuchQueue",
];

/// How often each of [`BY_RINGS`] and [`BY_REGISTERS`] is reached in a full run, at least.
pub const GOAL: u64 = 100;

/// Cases of one deed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ended {
    /// Something was illegal, and the queue failed.
    pub failed: u64,
    /// Nothing was illegal, and nothing failed.
    pub passed: u64,
}

/// Counts of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Error variants, by name.
    pub errors: BTreeMap<&'static str, u64>,
    /// Cases by what the card did.
    pub deeds: BTreeMap<&'static str, Ended>,
    /// Cases that were mutations of a valid run.
    pub mutated: u64,
    /// Cases of random words.
    pub random: u64,
    /// Cases in which something was illegal, and the queue failed.
    pub illegal: u64,
    /// Cases in which nothing was, and the queue did not.
    pub legal: u64,
    /// Queues started afresh.
    pub restarts: u64,
    /// Good frames that went through afterwards, compared byte by byte.
    pub good_frames: u64,
    /// Frames that a hook sent back with the page that they came in.
    pub sent_back: u64,
    /// Starts that a hostile card refused, followed by a down and up that worked.
    pub recoveries: u64,
    /// Bring-ups that succeeded, on hostile registers and on honest ones behind them.
    pub brought_up: u64,
    /// Bring-ups that ended with an error.
    pub refused: u64,
}

impl Tally {
    /// Count an error and those below it.
    pub(super) fn note(&mut self, name: &'static str) {
        *self.errors.entry(name).or_default() += 1;
    }

    pub(super) fn deed(&mut self, name: &'static str, failed: bool) {
        let ended = self.deeds.entry(name).or_default();
        if failed { ended.failed += 1 } else { ended.passed += 1 }
    }

    pub(super) fn fault(&mut self, fault: &QueueFault) {
        let name = match fault {
            QueueFault::Status { .. } => "QueueFault::Status",
            QueueFault::IndexRange { .. } => "QueueFault::IndexRange",
            QueueFault::IndexJump { .. } => "QueueFault::IndexJump",
            QueueFault::Completion { .. } => "QueueFault::Completion",
            QueueFault::Length { .. } => "QueueFault::Length",
            QueueFault::WrongQueue { .. } => "QueueFault::WrongQueue",
            QueueFault::Page(_) => "QueueFault::Page",
            QueueFault::Doorbell(cause) => {
                self.mmio(cause);
                "QueueFault::Doorbell"
            }
        };
        self.note(name);
    }

    pub(super) fn mmio(&mut self, error: &MmioError) {
        self.note(match error {
            MmioError::TimedOut { .. } => "MmioError::TimedOut",
            MmioError::Bus { .. } => "MmioError::Bus",
            MmioError::Stopped { .. } => "MmioError::Stopped",
        });
    }

    pub(super) fn tx(&mut self, error: &TxError) {
        self.note(match error {
            TxError::Full { .. } => "TxError::Full",
            TxError::NoPage(_) => "TxError::NoPage",
            TxError::Fault(_) => "TxError::Fault",
            // The caller's, not the card's.
            TxError::TooLong { .. } => "TxError::TooLong",
            TxError::Range { .. } => "TxError::Range",
            TxError::Stopping => "TxError::Stopping",
        });
    }

    pub(super) fn context(&mut self, error: &ContextError) {
        match error {
            ContextError::Busy { .. } => self.note("ContextError::Busy"),
            ContextError::Mmio(cause) => {
                self.note("ContextError::Mmio");
                self.mmio(cause);
            }
        }
    }

    pub(super) fn stop(&mut self, error: &StopError) {
        match error {
            StopError::Card { cause, .. } => {
                self.note("StopError::Card");
                self.context(cause);
            }
            // The caller's.
            StopError::LentOut { .. } => self.note("StopError::LentOut"),
        }
    }

    pub(super) fn up(&mut self, error: &UpError) {
        match error {
            UpError::Queue { cause, .. } => {
                self.note("UpError::Queue");
                self.cause(cause);
            }
            UpError::Stop(cause) => {
                self.note("UpError::Stop");
                self.stop(cause);
            }
            UpError::Port { cause, .. } => {
                self.note("UpError::Port");
                self.mmio(cause);
            }
            // The caller's.
            UpError::AlreadyUp => self.note("UpError::AlreadyUp"),
        }
    }

    pub(super) fn change(&mut self, error: &ChangeError) {
        match error {
            ChangeError::Stop(cause) => {
                self.note("ChangeError::Stop");
                self.stop(cause);
            }
            ChangeError::Start(cause) => {
                self.note("ChangeError::Start");
                self.up(cause);
            }
            ChangeError::Mmio(cause) => {
                self.note("ChangeError::Mmio");
                self.mmio(cause);
            }
            ChangeError::Context(cause) => {
                self.note("ChangeError::Context");
                self.context(cause);
            }
            ChangeError::Remove(cause) => {
                self.note("ChangeError::Remove");
                self.cause(cause);
            }
            ChangeError::NoSuchQueue { .. } => self.note("ChangeError::NoSuchQueue"),
            ChangeError::Port { cause, .. } => {
                self.note("ChangeError::Port");
                self.cause(cause);
            }
            ChangeError::Queue(cause) => {
                self.note("ChangeError::Queue");
                self.fault(cause);
            }
            // The caller's.
            ChangeError::Ethtool(_) => self.note("ChangeError::Ethtool"),
            ChangeError::Refused(_) => self.note("ChangeError::Refused"),
            ChangeError::Config(_) => self.note("ChangeError::Config"),
            ChangeError::Rss(_) => self.note("ChangeError::Rss"),
            ChangeError::Up => self.note("ChangeError::Up"),
        }
    }

    pub(super) fn bring_up(&mut self, error: &BringUpError) {
        self.note("BringUpError");
        self.cause(&error.cause);
    }

    pub(super) fn cause(&mut self, cause: &Cause) {
        match cause {
            Cause::Mmio(cause) => {
                self.note("Cause::Mmio");
                self.mmio(cause);
            }
            Cause::Context(cause) => {
                self.note("Cause::Context");
                self.context(cause);
            }
            Cause::NoCmac { .. } => self.note("Cause::NoCmac"),
            Cause::InReset { .. } => self.note("Cause::InReset"),
            Cause::Table(cause) => {
                self.note("Cause::Table");
                self.note(match cause {
                    TableError::NoSuchEntry { .. } => "TableError::NoSuchEntry",
                    TableError::TooSmall { .. } => "TableError::TooSmall",
                    TableError::NotProgrammed { .. } => "TableError::NotProgrammed",
                    TableError::Full { .. } => "TableError::Full",
                });
            }
            Cause::Geometry(cause) => {
                self.note("Cause::Geometry");
                self.note(match cause {
                    GeometryError::PastPage { .. } => "GeometryError::PastPage",
                    GeometryError::TooSmall { .. } => "GeometryError::TooSmall",
                    GeometryError::Unsynced { .. } => "GeometryError::Unsynced",
                });
            }
            Cause::RingTooSmall { .. } => self.note("Cause::RingTooSmall"),
            Cause::Queue(cause) => {
                self.note("Cause::Queue");
                self.fault(cause);
            }
            // The platform's or the caller's, not the card's.
            Cause::Config(_) => self.note("Cause::Config"),
            Cause::Dma(_) => self.note("Cause::Dma"),
            Cause::Interrupt(_) => self.note("Cause::Interrupt"),
            Cause::NoVectors { .. } => self.note("Cause::NoVectors"),
        }
    }

    /// Those of `names` that were reached less than `goal` times.
    pub fn missing(&self, names: &[&str], goal: u64) -> Vec<String> {
        let count = |name: &str| self.errors.get(name).copied().unwrap_or(0);
        let missed = names.iter().filter(|name| count(name) < goal);
        missed.map(|name| format!("{name}: {} of at least {goal}", count(name))).collect()
    }

    /// The table, a line each.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.mutated + self.random > 0 {
            lines.extend(self.ring_lines());
        }
        if self.brought_up + self.refused > 0 {
            lines.push(format!("{} bring-ups succeeded, {} ended with an error", self.brought_up, self.refused));
        }
        lines.push(format!("{:<44} {:>9}", "error", "reached"));
        lines.extend(self.errors.iter().map(|(name, count)| format!("{name:<44} {count:>9}")));
        lines
    }

    fn ring_lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!("{} mutations of a valid run, {} of random words", self.mutated, self.random),
            format!(
                "{} illegal: the queue failed each time; {} legal or without effect: it never did",
                self.illegal, self.legal
            ),
            format!(
                "{} queues started afresh, {} more by down and up; {} good frames behind them, byte for byte",
                self.restarts, self.recoveries, self.good_frames
            ),
        ];
        lines.push(format!("{} frames sent back by a hook with the page that they came in", self.sent_back));
        lines.push(format!("{:<44} {:>9} {:>9}", "deed", "failed", "passed"));
        lines.extend(
            self.deeds.iter().map(|(name, ended)| format!("{name:<44} {:>9} {:>9}", ended.failed, ended.passed)),
        );
        lines
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        for (name, count) in other.errors {
            *self.errors.entry(name).or_default() += count;
        }
        for (name, ended) in other.deeds {
            let sum = self.deeds.entry(name).or_default();
            sum.failed += ended.failed;
            sum.passed += ended.passed;
        }
        self.mutated += other.mutated;
        self.random += other.random;
        self.illegal += other.illegal;
        self.legal += other.legal;
        self.restarts += other.restarts;
        self.recoveries += other.recoveries;
        self.sent_back += other.sent_back;
        self.good_frames += other.good_frames;
        self.brought_up += other.brought_up;
        self.refused += other.refused;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_counts_with_those_below_it() {
        let mut tally = Tally::default();
        let bus = MmioError::Bus { bar: regs::Bar::Qdma, offset: 4, response: "SLVERR" };
        let stop = StopError::Card { qid: regs::Qid(1), cause: ContextError::Mmio(bus) };
        tally.change(&ChangeError::Stop(stop));
        for name in ["ChangeError::Stop", "StopError::Card", "ContextError::Mmio", "MmioError::Bus"] {
            assert_eq!(tally.errors.get(name), Some(&1), "{name}");
        }
        assert_eq!(tally.missing(&BY_REGISTERS, 1).len(), BY_REGISTERS.len() - 4);
    }
}
