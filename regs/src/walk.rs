//! Walks the whole map over a bus: is each register where the map says, does it do what the map says, and nothing else?
//!
//! Driver and model are built from one map, so they agree even where it is wrong. The walk is the independent witness: it
//! runs on the model and on the RTL, and whoever disagrees with the map is named. It wants a card after reset, with no
//! traffic, and leaves it with the values it found.
//!
//! ```
//! use regs::walk::{Answer, Op, Options, walk};
//! // A bus without a card behind it: each read answers DECERR.
//! let report = walk(&Options::new(1, 1, 7), |_: Op| Ok::<_, ()>(Answer::DecodeError)).unwrap();
//! assert!(report.findings.iter().any(|f| f.to_string().contains("system_config.BUILD_TIMESTAMP")));
//! ```

use core::fmt;
use std::string::String;
use std::vec::Vec;

use crate::table::{Absent, Access, Register, Unmapped, Walk, Window, registers, windows};
use crate::{Bar, register_at};

/// One access of 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Read.
    Read {
        /// Register space.
        bar: Bar,
        /// Bytes from the start of the BAR, a multiple of 4.
        offset: u32,
    },
    /// Write; the walk takes it for done when the next access is made.
    Write {
        /// Register space.
        bar: Bar,
        /// Bytes from the start of the BAR, a multiple of 4.
        offset: u32,
        /// What to write.
        value: u32,
    },
}

/// How the bus answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// A read with that value.
    Data(u32),
    /// A write that was taken.
    Written,
    /// Nobody answers at that address.
    DecodeError,
    /// Somebody does, with an error.
    SlaveError,
}

/// What a walk covers.
#[derive(Clone, Debug)]
pub struct Options {
    /// PCIe functions of the card, 1…4.
    pub functions: u8,
    /// Ethernet ports of the card, 1…2.
    pub ports: u8,
    /// Register spaces to walk.
    pub bars: Vec<Bar>,
    /// Decides every order and choice: the same seed gives the same accesses.
    pub seed: u64,
    /// Walk ones over every element of an array, not only over the first, the last and one in between. The other checks
    /// always cover all elements.
    pub every_element: bool,
    /// Reset values that the map leaves to the card's parameters: (space, byte offset, value).
    pub expected: Vec<(Bar, u32, u32)>,
}

impl Options {
    /// Both spaces of a card of that shape.
    pub fn new(functions: u8, ports: u8, seed: u64) -> Self {
        Options {
            functions,
            ports,
            bars: [Bar::Shell, Bar::Qdma].into(),
            seed,
            every_element: false,
            expected: Vec::new(),
        }
    }
}

/// What was checked when a finding was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Check {
    /// Value after reset.
    Reset,
    /// A write must not change it.
    ReadOnly,
    /// Each bit alone: writable bits hold it, others do not.
    WalkingOnes,
    /// A write to one register changes no other.
    Aliasing,
    /// Another way to the same register shows what was written.
    AliasOf,
    /// What a window answers where no register is.
    Unmapped,
    /// What answers in the window of a function or port that the card does not have.
    Absent,
    /// What answers outside every window.
    Outside,
    /// At the end each register has the value it had at the start.
    Restored,
}

/// One disagreement of card and map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What was checked.
    pub check: Check,
    /// Register space.
    pub bar: Bar,
    /// Bytes from the start of the BAR.
    pub offset: u32,
    /// `block.NAME[index]`, or the window's name, or empty outside all.
    pub name: String,
    /// What was written just before, if anything.
    pub written: Option<u32>,
    /// What the map says.
    pub expected: Answer,
    /// What the card did.
    pub got: Answer,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Data(value) => write!(f, "{value:#010x}"),
            Answer::Written => f.write_str("a write taken"),
            Answer::DecodeError => f.write_str("DECERR"),
            Answer::SlaveError => f.write_str("SLVERR"),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() { "no register" } else { &self.name };
        write!(
            f,
            "{} {:#x} ({name}), {:?}: expected {}, got {}",
            self.bar, self.offset, self.check, self.expected, self.got
        )?;
        match self.written {
            Some(value) => write!(f, ", after writing {value:#010x}"),
            None => Ok(()),
        }
    }
}

/// What a walk did and found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Reads and writes made.
    pub accesses: u64,
    /// 32-bit words of registers that the card has and the walk may touch.
    pub words: usize,
    /// Of those, words with writable bits.
    pub writable_words: usize,
    /// Addresses without a register that were tried.
    pub empty_addresses: usize,
    /// Disagreements, in the order they were found.
    pub findings: Vec<Finding>,
}

/// Walks the map over a bus.
///
/// # Errors
/// Only what `access` fails with, for instance a hang: the walk ends there. A card that disagrees is no error but a
/// [`Finding`].
pub fn walk<E>(options: &Options, access: impl FnMut(Op) -> Result<Answer, E>) -> Result<Report, E> {
    let words = words_of(options);
    let report = Report {
        words: words.len(),
        writable_words: words.iter().filter(|w| w.writable != 0).count(),
        ..Report::default()
    };
    let mut walker = Walker { access, report, rng: Rng(options.seed), options };
    let initial = walker.reset_values(&words)?;
    walker.read_only(&words, &initial)?;
    walker.walking_ones(&words, &initial)?;
    walker.aliasing(&words, &initial)?;
    walker.other_ways(&words, &initial)?;
    walker.empty_addresses()?;
    walker.restored(&words, &initial)?;
    Ok(walker.report)
}

/// One 32-bit word of a register element.
#[derive(Clone, Copy)]
struct Word {
    register: &'static Register,
    index: u32,
    offset: u32,
    /// Value after reset, unless the card's parameters decide it.
    reset: Option<u32>,
    /// Bits that keep what is written.
    writable: u32,
    /// Bits that a write may clear.
    clearable: u32,
}

impl Word {
    fn bar(&self) -> Bar {
        self.register.bar
    }

    /// What it reads after `value` was written over `before`.
    fn after(&self, before: u32, value: u32) -> u32 {
        (before & !self.writable & !(self.clearable & value)) | (value & self.writable)
    }

    fn may_write(&self) -> bool {
        self.register.walk == Walk::Full
    }
}

/// The words that a card of that shape has and the walk may read, in map order.
fn words_of(options: &Options) -> Vec<Word> {
    let present = registers().iter().filter(|r| {
        options.bars.contains(&r.bar) && r.presence.on(options.functions, options.ports) && r.walk != Walk::None
    });
    present.flat_map(|r| (0..r.count).flat_map(move |index| halves(options, r, index))).collect()
}

fn halves(options: &Options, register: &'static Register, index: u32) -> impl Iterator<Item = Word> {
    let halves = u32::from(register.width_bits / 32);
    (0..halves).filter_map(move |half| {
        let offset = register.offset_of(index)? + 4 * half;
        let word = |mask: u64| (mask >> (32 * half)) as u32;
        let parameter = options.expected.iter().find(|(bar, at, _)| (*bar, *at) == (register.bar, offset));
        let from_map = match register.reset_of(index) {
            Some(value) if register.varies.is_empty() => Some(word(value)),
            Some(_) => None,
            None => Some(register.reads_as.unwrap_or(0)),
        };
        Some(Word {
            register,
            index,
            offset,
            reset: parameter.map(|(_, _, value)| *value).or(from_map),
            writable: word(register.mask_of(Access::ReadWrite)),
            clearable: word(register.mask_of(Access::WriteOneToClear)),
        })
    })
}

struct Walker<'a, F> {
    access: F,
    report: Report,
    rng: Rng,
    options: &'a Options,
}

impl<E, F: FnMut(Op) -> Result<Answer, E>> Walker<'_, F> {
    fn read(&mut self, bar: Bar, offset: u32) -> Result<Answer, E> {
        self.report.accesses += 1;
        (self.access)(Op::Read { bar, offset })
    }

    fn write(&mut self, bar: Bar, offset: u32, value: u32) -> Result<Answer, E> {
        self.report.accesses += 1;
        (self.access)(Op::Write { bar, offset, value })
    }

    /// Reads a word and notes when it is not as expected.
    fn expect(&mut self, check: Check, word: &Word, written: Option<u32>, expected: u32) -> Result<(), E> {
        let got = self.read(word.bar(), word.offset)?;
        self.compare(check, word.bar(), word.offset, written, Answer::Data(expected), got);
        Ok(())
    }

    fn compare(&mut self, check: Check, bar: Bar, offset: u32, written: Option<u32>, expected: Answer, got: Answer) {
        if got != expected {
            let name = name_at(bar, offset);
            self.report.findings.push(Finding { check, bar, offset, name, written, expected, got });
        }
    }

    fn shuffled<'w>(&mut self, words: &'w [Word]) -> Vec<(usize, &'w Word)> {
        let mut order: Vec<_> = words.iter().enumerate().collect();
        self.rng.shuffle(&mut order);
        order
    }

    /// Reads everything once; what was read, which later checks take for the start.
    fn reset_values(&mut self, words: &[Word]) -> Result<Vec<u32>, E> {
        let mut initial: Vec<u32> = words.iter().map(|w| w.reset.unwrap_or(0)).collect();
        for (i, word) in self.shuffled(words) {
            let got = self.read(word.bar(), word.offset)?;
            if let Some(expected) = word.reset {
                self.compare(Check::Reset, word.bar(), word.offset, None, Answer::Data(expected), got);
            }
            if let (Answer::Data(value), Some(slot)) = (got, initial.get_mut(i)) {
                *slot = value;
            }
        }
        Ok(initial)
    }

    /// Words without writable bits keep their value, whatever is written.
    fn read_only(&mut self, words: &[Word], initial: &[u32]) -> Result<(), E> {
        for (i, word) in self.shuffled(words) {
            if !word.may_write() || word.writable != 0 {
                continue;
            }
            let before = initial.get(i).copied().unwrap_or(0);
            for value in [!before, u32::MAX, 0] {
                self.write(word.bar(), word.offset, value)?;
                self.expect(Check::ReadOnly, word, Some(value), word.after(before, value))?;
            }
        }
        Ok(())
    }

    /// Each bit alone, then none, then the value of before.
    fn walking_ones(&mut self, words: &[Word], initial: &[u32]) -> Result<(), E> {
        for (i, word) in self.shuffled(words) {
            if !word.may_write() || word.writable == 0 || !self.is_chosen(word) {
                continue;
            }
            let before = initial.get(i).copied().unwrap_or(0);
            let ones = (0..32).map(|bit| 1 << bit);
            for value in ones.chain([u32::MAX, 0, before]) {
                self.write(word.bar(), word.offset, value)?;
                self.expect(Check::WalkingOnes, word, Some(value), word.after(before, value))?;
            }
        }
        Ok(())
    }

    /// Of an array the first, the last, and about one in 32 others, unless all are asked for.
    fn is_chosen(&mut self, word: &Word) -> bool {
        let edge = word.index == 0 || word.index + 1 == word.register.count;
        self.options.every_element || edge || self.rng.below(32) == 0
    }

    /// No two registers share a bit, and no write reaches a register it is not for.
    ///
    /// Registers are numbered; in pass k those whose number has bit k get all ones, the others zeros, and then all are
    /// read. Any two differ in some pass, so whatever bits they share are seen there. Each pass is made twice with the
    /// order of the writes reversed, so that a write that reaches another register is not covered up by that one's own.
    fn aliasing(&mut self, words: &[Word], initial: &[u32]) -> Result<(), E> {
        let writable: Vec<(usize, Word)> =
            words.iter().copied().enumerate().filter(|(_, w)| w.may_write() && w.writable != 0).collect();
        let passes = usize::BITS - writable.len().leading_zeros();
        let mut order: Vec<usize> = (0..writable.len()).collect();
        for pass in 0..passes {
            self.rng.shuffle(&mut order);
            for _ in 0..2 {
                self.alias_pass(&writable, &order, pass, initial)?;
                order.reverse();
            }
        }
        self.others_untouched(words, initial)?;
        for (i, word) in &writable {
            self.write(word.bar(), word.offset, initial.get(*i).copied().unwrap_or(0))?;
        }
        Ok(())
    }

    fn alias_pass(&mut self, writable: &[(usize, Word)], order: &[usize], pass: u32, initial: &[u32]) -> Result<(), E> {
        let value = |number: usize| if number >> pass & 1 == 1 { u32::MAX } else { 0 };
        let numbered = || order.iter().filter_map(|n| writable.get(*n).map(|(i, word)| (*n, *i, word)));
        for (number, _, word) in numbered() {
            self.write(word.bar(), word.offset, value(number))?;
        }
        for (number, i, word) in numbered() {
            let before = initial.get(i).copied().unwrap_or(0);
            self.expect(Check::Aliasing, word, Some(value(number)), word.after(before, value(number)))?;
        }
        Ok(())
    }

    /// What can not be written has seen none of those writes. Other ways to a written register are left out.
    fn others_untouched(&mut self, words: &[Word], initial: &[u32]) -> Result<(), E> {
        for (i, word) in self.shuffled(words) {
            if (word.may_write() && word.writable != 0) || !word.register.alias_of.is_empty() {
                continue;
            }
            self.expect(Check::Aliasing, word, None, initial.get(i).copied().unwrap_or(0))?;
        }
        Ok(())
    }

    /// A register that is another way to a second one shows what is written there, and the other way round.
    fn other_ways(&mut self, words: &[Word], initial: &[u32]) -> Result<(), E> {
        for (i, word) in self.shuffled(words) {
            let Some(own) = original_of(words, word) else { continue };
            let before = initial.get(i).copied().unwrap_or(0);
            for (to, value) in [(word, !before), (&own, before)] {
                self.write(to.bar(), to.offset, value)?;
                self.expect(Check::AliasOf, word, Some(value), word.after(before, value))?;
                self.expect(Check::AliasOf, &own, Some(value), own.after(before, value))?;
            }
        }
        Ok(())
    }

    /// Addresses without a register: in windows, in windows that the card lacks, and outside all.
    fn empty_addresses(&mut self) -> Result<(), E> {
        let options = self.options;
        for window in windows().iter().filter(|w| options.bars.contains(&w.bar) && w.walk != Walk::None) {
            if window.presence.on(options.functions, options.ports) {
                self.window(window)?;
            } else {
                self.absent_window(window)?;
            }
        }
        for &bar in &options.bars {
            for (first, last) in gaps(bar) {
                self.outside(bar, first, last)?;
            }
        }
        Ok(())
    }

    fn window(&mut self, window: &Window) -> Result<(), E> {
        for offset in self.choose(window.base, window.base + window.size_bytes - 4) {
            if register_at(window.bar, offset).is_none() {
                let echo = |prefix: u16, bits: u8| echo(window, offset, prefix, bits);
                let expected = match window.unmapped {
                    Unmapped::Value(value) => Answer::Data(value),
                    Unmapped::Echo { prefix, bits } => echo(prefix, bits),
                };
                self.empty(Check::Unmapped, window.bar, offset, expected)?;
            }
        }
        Ok(())
    }

    fn absent_window(&mut self, window: &Window) -> Result<(), E> {
        for offset in self.choose(window.base, window.base + window.size_bytes - 4) {
            let expected = match window.absent {
                Absent::DecodeError => Answer::DecodeError,
                Absent::Echo { prefix, bits } => echo(window, offset, prefix, bits),
            };
            self.empty(Check::Absent, window.bar, offset, expected)?;
        }
        Ok(())
    }

    fn outside(&mut self, bar: Bar, first: u32, last: u32) -> Result<(), E> {
        let expected = match bar {
            Bar::Shell => Answer::DecodeError,
            Bar::Qdma => Answer::Data(0),
        };
        for offset in self.choose(first, last) {
            self.empty(Check::Outside, bar, offset, expected)?;
        }
        Ok(())
    }

    /// A read, a write that must have no effect, and a read again.
    fn empty(&mut self, check: Check, bar: Bar, offset: u32, expected: Answer) -> Result<(), E> {
        self.report.empty_addresses += 1;
        let got = self.read(bar, offset)?;
        self.compare(check, bar, offset, None, expected, got);
        let value = self.rng.next() as u32;
        let taken = match expected {
            Answer::DecodeError => Answer::DecodeError,
            _ => Answer::Written,
        };
        let got = self.write(bar, offset, value)?;
        self.compare(check, bar, offset, Some(value), taken, got);
        let got = self.read(bar, offset)?;
        self.compare(check, bar, offset, Some(value), expected, got);
        Ok(())
    }

    /// The first and the last word of a range and six in between.
    fn choose(&mut self, first: u32, last: u32) -> [u32; 8] {
        let words = (last - first) / 4 + 1;
        core::array::from_fn(|n| match n {
            0 => first,
            1 => last,
            _ => first + 4 * self.rng.below(words),
        })
    }

    /// After all of it, everything is as it was.
    fn restored(&mut self, words: &[Word], initial: &[u32]) -> Result<(), E> {
        for (i, word) in self.shuffled(words) {
            // Writes to addresses without a register may be logged there; the log is a register's business, not a fault.
            if word.clearable == 0 && !is_log(word) {
                self.expect(Check::Restored, word, None, initial.get(i).copied().unwrap_or(0))?;
            }
        }
        Ok(())
    }
}

/// Whether a word logs errors by itself.
fn is_log(word: &Word) -> bool {
    word.register.name.contains("ERROR_LOG")
}

/// What an echoing window answers.
fn echo(window: &Window, offset: u32, prefix: u16, bits: u8) -> Answer {
    let low = (offset - window.base) & ((1 << bits) - 1);
    Answer::Data(u32::from(prefix) << 16 | low)
}

/// The word to which `word` is another way.
fn original_of(words: &[Word], word: &Word) -> Option<Word> {
    let of = word.register;
    let same = |w: &&Word| {
        let r = w.register;
        !of.alias_of.is_empty()
            && (r.bar, r.block, r.name, r.presence) == (of.bar, of.block, of.alias_of, of.presence)
            && w.index == word.index
    };
    words.iter().find(same).copied()
}

/// What lies at an address, for people.
fn name_at(bar: Bar, offset: u32) -> String {
    if let Some(register) = register_at(bar, offset) {
        let index = (offset - register.offset) / register.stride;
        let element = if register.count > 1 { std::format!("[{index}]") } else { String::new() };
        return std::format!("{}.{}{element}", register.block, register.name);
    }
    let window = windows().iter().find(|w| w.bar == bar && w.contains(offset));
    window.map(|w| String::from(w.name)).unwrap_or_default()
}

/// Ranges of a BAR that no window has, first and last word of each. What a user plugin decodes is left out.
fn gaps(bar: Bar) -> Vec<(u32, u32)> {
    let mut gaps = Vec::new();
    let mut next = 0;
    for window in windows().iter().filter(|w| w.bar == bar) {
        if window.base > next {
            gaps.push((next, window.base - 4));
        }
        next = next.max(window.base + window.size_bytes.max(window.plugin_bytes));
    }
    if next < bar.size_bytes() {
        gaps.push((next, bar.size_bytes() - 4));
    }
    gaps
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, and the same everywhere.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `bound`, which is not 0; even enough for choosing addresses.
    fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u32
    }

    /// Fisher and Yates.
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i as u32 + 1) as usize;
            items.swap(i, j);
        }
    }
}

#[cfg(test)]
mod tests;
