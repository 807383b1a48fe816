//! The generated map holds together, and is the one that upstream's driver uses.

use std::collections::HashSet;
use std::path::Path;

use regs::{Access, Bar, Register, Walk, qdma_function, register_at, registers, windows};

/// Every element's words, as (BAR, first byte, register).
fn words() -> impl Iterator<Item = (u8, u32, &'static Register)> {
    let elements = registers().iter().flat_map(|r| (0..r.count).map(move |i| (r, r.offset_of(i).unwrap())));
    elements.flat_map(|(r, at)| (0..u32::from(r.width_bits / 32)).map(move |half| (r.bar.number(), at + 4 * half, r)))
}

#[test]
fn offsets_ascend_and_do_not_overlap() {
    for pair in registers().windows(2) {
        let order = |r: &Register| (r.bar.number(), r.offset);
        assert!(
            order(&pair[0]) < order(&pair[1]),
            "{}.{} and {}.{}",
            pair[0].block,
            pair[0].name,
            pair[1].block,
            pair[1].name
        );
    }
    let mut seen = HashSet::new();
    for (bar, at, register) in words() {
        assert_eq!(at % 4, 0, "{}.{}", register.block, register.name);
        assert!(
            seen.insert((bar, at)),
            "two registers at BAR{bar} {at:#x}, one is {}.{}",
            register.block,
            register.name
        );
    }
    assert!(seen.len() > 1000, "the map has {} words", seen.len());
}

#[test]
fn every_register_lies_in_one_window_of_its_own() {
    for (bar, at, register) in words() {
        let own: Vec<_> = windows().iter().filter(|w| w.bar.number() == bar && w.contains(at)).collect();
        assert_eq!(own.len(), 1, "BAR{bar} {at:#x}");
        assert_eq!(own[0].block, Some(register.block), "BAR{bar} {at:#x}");
    }
}

#[test]
fn windows_are_disjoint_and_within_their_bar() {
    for pair in windows().windows(2).filter(|pair| pair[0].bar == pair[1].bar) {
        assert!(pair[0].base + pair[0].size_bytes <= pair[1].base, "{} runs into {}", pair[0].name, pair[1].name);
    }
    for window in windows() {
        assert!(window.base + window.size_bytes <= window.bar.size_bytes(), "{}", window.name);
    }
}

#[test]
fn fields_lie_within_their_register_and_apart() {
    for r in registers() {
        let mut taken = 0;
        for field in r.fields {
            let mask = field.bits.mask();
            assert_eq!(taken & mask, 0, "{}.{}.{} overlaps", r.block, r.name, field.name);
            assert!(r.width_bits == 64 || mask >> 32 == 0, "{}.{}.{} is too high", r.block, r.name, field.name);
            assert!(
                field.reset & !(mask >> field.bits.lsb) == 0,
                "{}.{}.{}: reset too large",
                r.block,
                r.name,
                field.name
            );
            taken |= mask;
        }
        assert_ne!(taken, 0, "{}.{} has no field", r.block, r.name);
    }
}

#[test]
fn names_are_unique() {
    let mut seen = HashSet::new();
    for r in registers() {
        assert!(seen.insert((r.block, r.name, r.presence)), "{}.{} twice", r.block, r.name);
        let fields: HashSet<_> = r.fields.iter().map(|f| f.name).collect();
        assert_eq!(fields.len(), r.fields.len(), "{}.{}", r.block, r.name);
    }
}

#[test]
fn every_fact_has_a_sentence_and_a_source() {
    for r in registers() {
        assert!(r.summary.len() > 5 && !r.source.is_empty(), "{}.{}", r.block, r.name);
        for f in r.fields {
            assert!(f.summary.ends_with(['.', ')']) && !f.source.is_empty(), "{}.{}.{}", r.block, r.name, f.name);
        }
    }
}

/// What resets or starts something is never written by the walk: these registers, and no others.
#[test]
fn side_effects_are_marked() {
    let marked: HashSet<_> = registers().iter().filter(|r| r.walk != Walk::Full).map(|r| r.name).collect();
    let expected = [
        "SYSTEM_RESET",
        "SHELL_RESET",
        "USER_RESET",
        "TICK",
        "IND_CTXT_CMD",
        "INDIRECTION_TABLE_ALIAS",
        "INTERRUPT_CIDX",
        "H2C_PIDX",
        "C2H_PIDX",
        "COMPLETION_CIDX",
    ];
    assert_eq!(marked, HashSet::from(expected));
}

/// The key as written in upstream's RTL, most significant digit first; register 0x600 holds the last word.
#[test]
fn the_default_key_is_upstreams() {
    let key = "7C9C37DE18DC4386D9270F6F260374B8BFD0404B7872E224DC1B91BB011BA7A6376CC87ED6E31417";
    let registers: String = qdma_function::HASH_KEY_RESET.iter().rev().map(|word| format!("{word:08X}")).collect();
    assert_eq!(registers, key);
}

/// One line of the recorded trace: `SEQ BAR rd|wr BYTES OFFSET VALUE`, offset and value in hex.
struct TraceAccess {
    number: u32,
    bar: Bar,
    write: bool,
    offset: u32,
    value: u32,
}

fn parse(line: &str) -> Option<TraceAccess> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [number, bar, kind, "4", offset, value] = words.as_slice() else { return None };
    let hex = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    Some(TraceAccess {
        number: number.parse().ok()?,
        bar: if *bar == "0" { Bar::Qdma } else { Bar::Shell },
        write: *kind == "wr",
        offset: hex(offset)?,
        value: hex(value)?,
    })
}

/// The unmodified driver's probe, traffic, ethtool and removal touch only registers of the map, and set only bits that
/// belong to a field.
#[test]
fn the_recorded_driver_stays_within_the_map() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors/onic_probe_trace.txt");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: {} is not there", path.display());
        return;
    };
    let lines: Vec<&str> = text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty()).collect();
    let trace: Vec<TraceAccess> =
        lines.iter().map(|l| parse(l).unwrap_or_else(|| panic!("not an access: {l}"))).collect();
    assert!(trace.len() > 1000, "{} accesses", trace.len());
    for a in &trace {
        let register = register_at(a.bar, a.offset);
        let Some(register) = register else { panic!("access {}: no register at {} {:#x}", a.number, a.bar, a.offset) };
        if a.write {
            let writable = register.mask_of(Access::ReadWrite) | register.mask_of(Access::WriteOnly);
            assert_eq!(
                u64::from(a.value) & !writable,
                0,
                "access {}: {}.{} gets {:#x}, outside its fields",
                a.number,
                register.block,
                register.name,
                a.value
            );
        }
    }
}
