//! What a scenario leaves behind for the catchers: everything that any of them looks at, whatever the driver was.

use models::time::Time;
use regs::FuncId;

use super::excuse::Excuse;
use super::nic::{MacTotals, Totals};
use super::tamper::Fired;
use crate::host_memory::Violation;
use crate::outcome::{Outcome, Sum};
use crate::run::InFrame;

/// A frame that a driver took to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Posted {
    /// By which function.
    pub func: FuncId,
    /// On which queue, relative.
    pub queue: u16,
    /// Its number among all that were sent.
    pub number: u64,
    /// As it was given to the driver.
    pub data: Vec<u8>,
    /// When.
    pub time: Time,
}

/// Something that a driver told of its own accord: an error returned, a line in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// In its words.
    pub text: String,
    /// When.
    pub time: Time,
    /// Frames that it need not account for, having told. `None` for a telling that costs no frame: at probe, of settings and
    /// statistics, of errors that stop no queue, of a start that did not come about.
    pub excuse: Option<Excuse>,
}

/// Whether a driver has to tell of trouble.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Trouble {
    /// There is none: whatever it tells is an error of its own.
    #[default]
    None,
    /// There may be some.
    Possible,
    /// This is there, and it must say so.
    Certain(&'static str),
}

/// Something caught.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caught {
    /// By what, in a word.
    pub by: &'static str,
    /// Which page, queue, index, register or counter.
    pub place: String,
    /// The whole report.
    pub text: String,
    /// Position of the frame that it is about, among those given to the wire or to the driver.
    pub packet: Option<u64>,
    /// When.
    pub time: Option<Time>,
}

/// A function's books, held against what was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Books {
    /// Whose.
    pub func: FuncId,
    /// The driver's own.
    pub totals: Totals,
}

/// Readings of the MAC's statistics, one after the other, and what had crossed the wire by the last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MacReading {
    /// Whose.
    pub func: FuncId,
    /// What was shown.
    pub shown: MacTotals,
    /// What crossed the wire of the function's port.
    pub crossed: MacTotals,
    /// When.
    pub time: Time,
}

/// Everything.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Functions of the card.
    pub functions: u8,
    /// Frames given to the wires, in order.
    pub input: Vec<InFrame>,
    /// Frames handed up, frames that left, the card's observations, its name.
    pub outcome: Outcome,
    /// The card's own sum, where it could be read.
    pub counted: Option<Sum>,
    /// Frames that the drivers took to send.
    pub posted: Vec<Posted>,
    /// What the drivers told.
    pub told: Vec<Told>,
    /// What they had to tell of.
    pub trouble: Trouble,
    /// What the card did wrong of which they have to tell.
    pub fired: Vec<Fired>,
    /// Rules between kernel and driver that were broken, stalls, settings that are not what was said.
    pub seen: Vec<Caught>,
    /// What stopped a driver, and when.
    pub crash: Option<(String, Time)>,
    /// Broken rules of host memory.
    pub violations: Vec<Violation>,
    /// Mappings and regions that nobody ended.
    pub leaks: Vec<Violation>,
    /// Broken rules of the heap.
    pub heap_reports: Vec<String>,
    /// Blocks that nobody freed.
    pub heap_leaks: Vec<String>,
    /// Each function's books at the end.
    pub books: Vec<Books>,
    /// The MAC's statistics.
    pub mac: Vec<MacReading>,
    /// When it ended.
    pub end: Time,
}

impl Evidence {
    /// Frames of a function that its driver says it dropped.
    pub fn rx_dropped(&self, func: FuncId) -> u64 {
        self.books_of(func).map(|books| books.totals.rx_dropped).sum()
    }

    /// Frames taken to send that a function's driver says it gave up.
    pub fn tx_abandoned(&self, func: FuncId) -> u64 {
        self.books_of(func).map(|books| books.totals.tx_abandoned).sum()
    }

    fn books_of(&self, func: FuncId) -> impl Iterator<Item = &Books> {
        self.books.iter().filter(move |books| books.func == func)
    }
}
