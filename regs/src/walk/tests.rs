//! The walk against a card made of the map, whole and with one fault at a time: it must stay silent on the one and name
//! the fault in the other.

use std::collections::HashMap;

use super::*;
use crate::table::FieldInfo;
use crate::{FuncId, PortId, cmac, packet_adapter, qdma_csr, qdma_function, shell, system_config};

/// A register file that does what the map says, apart from its faults.
struct Card {
    functions: u8,
    ports: u8,
    values: HashMap<(u8, u32), u32>,
    faults: Vec<Fault>,
    log: Vec<Op>,
}

/// One thing that this card does wrong; offsets are in BAR2.
#[derive(Clone, Copy)]
enum Fault {
    /// A word starts with another value.
    Reset(u32, u32),
    /// Every bit of a word can be written.
    AllWritable(u32),
    /// These bits of a word always read 0.
    StuckAtZero(u32, u32),
    /// Accesses to the first go to the second.
    Shared(u32, u32),
    /// Writes to the first also go to the second.
    Spills(u32, u32),
    /// A word does not exist: reads this, ignores writes.
    Gone(u32, u32),
    /// Nothing answers DECERR; reads give 0.
    NoDecodeError,
}

impl Card {
    fn new(functions: u8, ports: u8, faults: &[Fault]) -> Self {
        let mut values = HashMap::new();
        for register in registers() {
            for index in 0..register.count {
                let Some(reset) = register.reset_of(index) else { continue };
                let at = register.offset_of(index).unwrap();
                values.insert((register.bar.number(), at), reset as u32);
                values.insert(
                    (register.bar.number(), at + 4 * u32::from(register.width_bits == 64)),
                    (reset >> (register.width_bits - 32)) as u32,
                );
            }
        }
        for fault in faults {
            if let Fault::Reset(at, value) = fault {
                values.insert((2, *at), *value);
            }
        }
        Card { functions, ports, values, faults: faults.to_vec(), log: Vec::new() }
    }

    fn access(&mut self, op: Op) -> Result<Answer, ()> {
        self.log.push(op);
        Ok(match op {
            Op::Read { bar, offset } => self.read(bar, self.redirected(bar, offset)),
            Op::Write { bar, offset, value } => {
                let spills: Vec<u32> = self
                    .faults
                    .iter()
                    .filter_map(|f| match f {
                        Fault::Spills(from, to) if bar == Bar::Shell && *from == offset => Some(*to),
                        _ => None,
                    })
                    .collect();
                for to in spills {
                    self.write(bar, to, value);
                }
                self.write(bar, self.redirected(bar, offset), value)
            }
        })
    }

    fn redirected(&self, bar: Bar, offset: u32) -> u32 {
        let fault = self.faults.iter().find_map(|f| match f {
            Fault::Shared(from, to) if bar == Bar::Shell && *from == offset => Some(*to),
            _ => None,
        });
        fault.unwrap_or(offset)
    }

    fn has(&self, pick: impl Fn(&Fault) -> Option<u32>) -> Option<u32> {
        self.faults.iter().find_map(pick)
    }

    fn read(&self, bar: Bar, offset: u32) -> Answer {
        let gone = self.has(|f| match f {
            Fault::Gone(at, value) if bar == Bar::Shell && *at == offset => Some(*value),
            _ => None,
        });
        if let Some(value) = gone {
            return Answer::Data(value);
        }
        let Some(register) = register_at(bar, offset).filter(|r| r.presence.on(self.functions, self.ports)) else {
            return self.nothing(bar, offset);
        };
        if let Some(value) = register.reads_as {
            return Answer::Data(value);
        }
        let stuck = self.has(|f| match f {
            Fault::StuckAtZero(at, mask) if bar == Bar::Shell && *at == offset => Some(*mask),
            _ => None,
        });
        let value = self.values.get(&(bar.number(), storage(register, offset))).copied().unwrap_or(0);
        Answer::Data(value & !stuck.unwrap_or(0))
    }

    fn write(&mut self, bar: Bar, offset: u32, value: u32) -> Answer {
        let Some(register) = register_at(bar, offset).filter(|r| r.presence.on(self.functions, self.ports)) else {
            return match self.nothing(bar, offset) {
                Answer::Data(_) => Answer::Written,
                other => other,
            };
        };
        let half = (offset - register.offset) % register.stride / 4;
        let mask = |access| (register.mask_of(access) >> (32 * half)) as u32;
        let all = self.has(|f| match f {
            Fault::AllWritable(at) if bar == Bar::Shell && *at == offset => Some(u32::MAX),
            _ => None,
        });
        let keep = all.unwrap_or(mask(Access::ReadWrite));
        let cleared = mask(Access::WriteOneToClear) & value;
        let slot = self.values.entry((bar.number(), storage(register, offset))).or_insert(0);
        *slot = (*slot & !keep & !cleared) | (value & keep);
        Answer::Written
    }

    /// The answer where no register is, written from spec/shell.md 7 and not by the walk's own rules.
    fn nothing(&self, bar: Bar, offset: u32) -> Answer {
        if bar == Bar::Qdma {
            return Answer::Data(0);
        }
        let echo = |prefix: u32, mask: u32| Answer::Data(prefix << 16 | offset & mask);
        match offset {
            0x0_0000..=0x0_0FFF | 0x0_5000..=0x0_5FFF => Answer::Data(0xDEAD_BEEF),
            0x0_1000..=0x0_4FFF if offset >> 12 <= u32::from(self.functions) => Answer::Data(0xDEAD_BEEF),
            0x0_C000..=0x0_EFFF if self.ports == 1 => echo(0xC100, 0x1FFF),
            0x0_F000..=0x0_FFFF if self.ports == 1 => echo(0xC100, 0xFFF),
            0x0_A000..=0x0_AFFF => echo(0xC028, 0xFFF),
            0x0_E000..=0x0_EFFF => echo(0xC128, 0xFFF),
            0x0_8000..=0x0_FFFF => Answer::Data(0xDEAD_BEEF),
            0x1_0000..=0x1_1FFF | 0x30_0000..=0x34_0FFF => Answer::Data(0),
            0x1_2000..=0x1_4FFF => echo(0, 0xFFF),
            0x10_0000..=0x10_0FFF => echo(0xB000, 0xFFF),
            0x20_0000..=0x20_0FFF => echo(0xB001, 0xFFF),
            0x10_1000..=0x10_1FFF | 0x20_1000..=0x20_1FFF => echo(0xD000, 0xFFF),
            _ if self.faults.iter().any(|f| matches!(f, Fault::NoDecodeError)) => Answer::Data(0),
            _ => Answer::DecodeError,
        }
    }
}

/// Where a word is kept: the indirection table's second view has no storage of its own.
fn storage(register: &Register, offset: u32) -> u32 {
    if register.alias_of.is_empty() { offset } else { offset - 0x800 }
}

fn run(card: &mut Card, seed: u64) -> Report {
    let options = Options::new(card.functions, card.ports, seed);
    walk(&options, |op| card.access(op)).unwrap()
}

/// All findings of a card with these faults, as text.
fn findings(faults: &[Fault]) -> Vec<Finding> {
    run(&mut Card::new(1, 1, faults), 3).findings
}

/// The fault is found by that check at that offset of BAR2.
fn assert_found(faults: &[Fault], check: Check, offset: u32) {
    let found = findings(faults);
    let hit = found.iter().any(|f| (f.check, f.bar, f.offset) == (check, Bar::Shell, offset));
    assert!(hit, "{check:?} at {offset:#x} is not among {} findings, the first {:?}", found.len(), found.first());
}

const FUNCTION_0: u32 = 0x1000;

#[test]
fn a_card_as_the_map_says_has_no_findings() {
    for (functions, ports) in [(1, 1), (2, 2), (4, 1)] {
        for seed in 0..4 {
            let report = run(&mut Card::new(functions, ports, &[]), seed);
            assert_eq!(report.findings, [], "{functions} functions, {ports} ports, seed {seed}");
        }
    }
}

/// Counted by hand from spec/shell.md and driver.md, so that a walk that skips most of the map is noticed.
#[test]
fn the_walk_covers_the_whole_of_bar2() {
    let options = Options { bars: [Bar::Shell].into(), ..Options::new(1, 1, 0) };
    let mut card = Card::new(1, 1, &[]);
    let report = walk(&options, |op| card.access(op)).unwrap();
    let function = 1 + 128 + 128 + 10;
    let common = 2 * (4 + 4);
    let mac = 6 + 2 * 5 + 4 + 2 * (25 + 34);
    assert_eq!(report.words, 7 + function + common + mac + 2 * 19);
    assert_eq!(report.writable_words, 1 + 128 + 10 + 2 + 3 + 2 * 5 + 2 + 1 + 128);
    assert!(report.empty_addresses > 100, "{}", report.empty_addresses);
}

#[test]
fn each_seed_has_its_order_and_keeps_it() {
    let log = |seed| {
        let mut card = Card::new(2, 2, &[]);
        run(&mut card, seed);
        card.log
    };
    assert_eq!(log(1), log(1));
    assert_ne!(log(1), log(2));
}

#[test]
fn the_card_is_left_as_it_was() {
    let mut card = Card::new(2, 2, &[]);
    let before = card.values.clone();
    run(&mut card, 5);
    let changed: Vec<_> = before.iter().filter(|(at, value)| card.values.get(at) != Some(value)).collect();
    assert_eq!(changed, []);
}

#[test]
fn a_wrong_reset_value_is_found() {
    let at = FUNCTION_0 + qdma_function::HASH_KEY + 4;
    assert_found(&[Fault::Reset(at, 0x1234_5678)], Check::Reset, at);
}

#[test]
fn a_counter_that_can_be_written_is_found() {
    let at = shell::packet_adapter(PortId(0)) + packet_adapter::TX_PACKETS_SENT + 4;
    assert_found(&[Fault::AllWritable(at)], Check::ReadOnly, at);
}

#[test]
fn a_stuck_bit_is_found() {
    let at = FUNCTION_0 + qdma_function::QCONF;
    assert_found(&[Fault::StuckAtZero(at, 1 << 17)], Check::WalkingOnes, at);
    // Within an array, where not every element walks: the all-ones pass sees it.
    let at = FUNCTION_0 + qdma_function::INDIRECTION_TABLE + 4 * 77;
    assert_found(&[Fault::StuckAtZero(at, 1 << 3)], Check::Aliasing, at);
}

#[test]
fn a_bit_that_should_not_exist_is_found() {
    let at = shell::cmac(PortId(0)) + cmac::CONFIGURATION_RX_REG1;
    assert_found(&[Fault::AllWritable(at)], Check::WalkingOnes, at);
}

#[test]
fn two_registers_in_one_place_are_found() {
    let (key, entry) = (FUNCTION_0 + qdma_function::HASH_KEY + 36, FUNCTION_0 + qdma_function::INDIRECTION_TABLE + 20);
    let found = findings(&[Fault::Shared(key, entry), Fault::AllWritable(entry)]);
    let aliased = |at| found.iter().any(|f| f.check == Check::Aliasing && f.offset == at);
    assert!(aliased(key) || aliased(entry), "{:?}", found.first());
}

#[test]
fn neighbours_in_a_table_in_one_place_are_found() {
    for (a, b) in [(0, 64), (5, 7), (126, 127)] {
        let entry = |i: u32| FUNCTION_0 + qdma_function::INDIRECTION_TABLE + 4 * i;
        let found = findings(&[Fault::Shared(entry(a), entry(b))]);
        assert!(
            found.iter().any(|f| f.check == Check::Aliasing && [entry(a), entry(b)].contains(&f.offset)),
            "{a} and {b}"
        );
    }
}

#[test]
fn a_write_that_reaches_another_register_is_found() {
    let (from, to) = (FUNCTION_0 + qdma_function::QCONF, shell::cmac(PortId(0)) + cmac::CONFIGURATION_TX_REG1);
    assert_found(&[Fault::Spills(from, to)], Check::Aliasing, to);
    assert_found(&[Fault::Spills(to, from)], Check::Aliasing, from);
}

#[test]
fn a_missing_second_view_of_the_table_is_found() {
    let at = FUNCTION_0 + qdma_function::INDIRECTION_TABLE_ALIAS + 4 * 9;
    assert_found(&[Fault::Gone(at, 0xDEAD_BEEF)], Check::AliasOf, at);
}

#[test]
fn a_readable_reset_register_is_found() {
    let at = shell::SYSTEM_CONFIG + system_config::SYSTEM_RESET;
    assert_found(&[Fault::Gone(at, 0)], Check::Reset, at);
}

#[test]
fn an_answer_where_nobody_is_is_found() {
    assert_found(&[Fault::NoDecodeError], Check::Outside, 0x6000);
    assert_found(&[Fault::NoDecodeError], Check::Absent, 0x2000);
    assert_found(&[Fault::Gone(0x0_1FFC, 0)], Check::Unmapped, 0x0_1FFC);
    assert_found(&[Fault::Gone(0x0_FFFC, 0)], Check::Absent, 0x0_FFFC);
}

/// A card with one function walked as one with two: the second one's registers are missing.
#[test]
fn a_card_of_another_shape_is_found() {
    let mut card = Card::new(1, 1, &[]);
    let report = walk(&Options::new(2, 1, 0), |op| card.access(op)).unwrap();
    let base = shell::qdma_function(FuncId(1));
    assert!(report.findings.iter().any(|f| f.offset == base && f.got == Answer::DecodeError));
}

#[test]
fn values_that_depend_on_the_card_are_checked_when_given() {
    // Two functions have DMA BARs in PF_BARLITE_INT; this card says one.
    let expected = (Bar::Qdma, qdma_csr::PF_BARLITE_INT, 0x41);
    let options = Options { expected: [expected].into(), ..Options::new(1, 1, 0) };
    let mut card = Card::new(1, 1, &[]);
    let found = walk(&options, |op| card.access(op)).unwrap().findings;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].expected, found[0].got), (Answer::Data(0x41), Answer::Data(0x1)));
}

#[test]
fn a_hang_ends_the_walk() {
    let mut left = 100;
    let result = walk(&Options::new(1, 1, 0), |_| {
        left -= 1;
        if left == 0 { Err("hang") } else { Ok(Answer::Data(0)) }
    });
    assert_eq!(result, Err("hang"));
}

#[test]
fn a_finding_says_where_and_what() {
    let at = FUNCTION_0 + qdma_function::HASH_KEY + 4;
    let found = findings(&[Fault::Reset(at, 0)]);
    assert_eq!(
        found[0].to_string(),
        "BAR2 0x1604 (qdma_function.HASH_KEY[1]), Reset: expected 0x376cc87e, got 0x00000000"
    );
}

/// The table's fields have the access kinds the walk relies on.
#[test]
fn no_register_mixes_clearing_with_writing() {
    let kinds = |fields: &[FieldInfo], access| fields.iter().any(|f| f.access == access);
    for r in registers() {
        let both = kinds(r.fields, Access::ReadWrite) && kinds(r.fields, Access::WriteOneToClear);
        assert!(!both, "{}.{}: clearing bits are written by a read-modify-write of the others", r.block, r.name);
    }
}
