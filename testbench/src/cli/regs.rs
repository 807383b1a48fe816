//! `onic regs`: the map as a table, a walk over a card, or the values on a live one.

use anyhow::anyhow;
use driver_core::Platform as _;
use regs::{Access, Register, registers};
use serde_json::json;

use super::args::RegsArgs;
use super::exit::{Exit, Failure};
use super::table;
use crate::card::Choice;
use crate::doctor;
use crate::run::{Run, Setup};

pub(super) fn run(args: &RegsArgs) -> Result<Exit, Failure> {
    if args.walk {
        return walk(args);
    }
    let matching: Vec<&Register> =
        registers().iter().filter(|register| matches(register, args.filter.as_deref())).collect();
    if matching.is_empty() {
        let filter = args.filter.as_deref().unwrap_or_default();
        return Err(Failure::from(anyhow!("no register has `{filter}` in its name or address")).hint("onic regs"));
    }
    let values = args.card.as_deref().map(|card| read(card, args, &matching)).transpose()?;
    if args.json {
        let list: Vec<_> =
            matching.iter().enumerate().map(|(i, register)| as_json(register, values.as_ref().map(|v| v[i]))).collect();
        println!("{}", json!({ "version": 1, "registers": list }));
    } else if matching.len() == 1 {
        print!("{}", whole(matching[0], values.as_ref().map(|v| v[0])));
    } else {
        print!("{}", listing(&matching, values.as_deref()));
    }
    Ok(Exit::Agreed)
}

/// `block.NAME`, with the number of elements of an array.
pub(crate) fn name_of(register: &Register) -> String {
    let count = if register.count > 1 { format!("[{}]", register.count) } else { String::new() };
    format!("{}.{}{count}", register.block, register.name)
}

fn address_of(register: &Register) -> String {
    format!("{} {:#07x}", register.bar, register.offset)
}

/// Does a part of its name, or an address, name it?
pub(crate) fn matches(register: &Register, filter: Option<&str>) -> bool {
    let Some(filter) = filter else { return true };
    let wanted = filter.to_lowercase();
    if let Some(hex) = wanted.strip_prefix("0x") {
        return u32::from_str_radix(hex, 16).is_ok_and(|offset| register.contains(offset));
    }
    name_of(register).to_lowercase().contains(&wanted)
}

/// A table of registers, with values where they were read.
pub(crate) fn listing(list: &[&Register], values: Option<&[Option<u32>]>) -> String {
    let rows: Vec<Vec<String>> = list
        .iter()
        .enumerate()
        .map(|(i, register)| {
            let mut row = vec![address_of(register), name_of(register), access_of(register).into()];
            row.push(register.reset.map_or("-".into(), |reset| format!("{reset:#x}")));
            if let Some(values) = values {
                row.push(values[i].map_or("-".into(), |value| format!("{value:#010x}")));
            }
            row.push(register.summary.split(". ").next().unwrap_or_default().into());
            row
        })
        .collect();
    let header: &[&str] = match values {
        Some(_) => &["address", "register", "access", ">reset", ">value", "what it is"],
        None => &["address", "register", "access", ">reset", "what it is"],
    };
    table::print(header, &rows)
}

/// The widest access of any field.
fn access_of(register: &Register) -> &'static str {
    let has = |access| register.fields.iter().any(|field| field.access == access);
    match (has(Access::ReadWrite), has(Access::WriteOneToClear), has(Access::ReadOnly), has(Access::WriteOnly)) {
        (true, ..) => "rw",
        (_, true, ..) => "w1c",
        (_, _, true, true) => "ro/wo",
        (_, _, true, _) => "ro",
        _ => "wo",
    }
}

/// One register with its fields.
pub(crate) fn whole(register: &Register, value: Option<Option<u32>>) -> String {
    let mut out =
        format!("{}  {}  {}\n{}\n", address_of(register), name_of(register), access_of(register), register.summary);
    if let Some(Some(value)) = value {
        out += &format!("value {value:#010x}\n");
    }
    let rows: Vec<Vec<String>> = register
        .fields
        .iter()
        .map(|field| {
            let (lsb, width) = (field.bits.lsb, field.bits.width);
            let bits = if width == 1 { format!("{lsb}") } else { format!("{}:{lsb}", lsb + width - 1) };
            let now = value
                .flatten()
                .filter(|_| lsb + width <= 32)
                .map(|value| (u64::from(value) >> lsb) & (u64::MAX >> (64 - width)));
            let mut row = vec![bits, field.name.into(), format!("{:#x}", field.reset)];
            row.push(now.map_or("-".into(), |now| format!("{now:#x}")));
            row.push(format!("{} [{:?}: {}]", field.summary, field.standing, field.source));
            row
        })
        .collect();
    out += &table::print(&[">bits", "field", ">reset", ">now", "what it is"], &rows);
    out
}

fn as_json(register: &Register, value: Option<Option<u32>>) -> serde_json::Value {
    let fields: Vec<_> = register
        .fields
        .iter()
        .map(|f| {
            json!({ "name": f.name, "lsb": f.bits.lsb, "width": f.bits.width, "reset": f.reset, "summary": f.summary,
                    "source": f.source, "standing": format!("{:?}", f.standing).to_lowercase() })
        })
        .collect();
    json!({ "name": name_of(register), "bar": register.bar.number(), "offset": register.offset, "count": register.count,
            "stride": register.stride, "width_bits": register.width_bits, "access": access_of(register), "reset": register.reset,
            "value": value.flatten(), "fields": fields })
}

/// The first element of each register on a card after bring-up; none where it isn't there.
fn read(card: &str, args: &RegsArgs, list: &[&Register]) -> Result<Vec<Option<u32>>, Failure> {
    let setup = Setup { shape: args.shape.clone(), ..Setup::default() };
    let card = Choice::named(card).make(&setup.shape)?;
    let run = Run::start(card, &setup)?;
    let platform = run.bench().function(regs::FuncId(0));
    let shape = &setup.shape;
    use driver_core::Mmio as _;
    Ok(list
        .iter()
        .map(|register| {
            let here = register.presence.on(shape.functions, shape.ports);
            here.then(|| platform.mmio().read32(register.bar, register.offset).ok()).flatten()
        })
        .collect())
}

fn walk(args: &RegsArgs) -> Result<Exit, Failure> {
    let cards = args.card.as_ref().map_or(vec!["model".to_string(), "rtl".to_string()], |card| vec![card.clone()]);
    let mut exit = Exit::Agreed;
    let mut list = Vec::new();
    for card in cards {
        let report = doctor::walk_registers(&Choice::named(&card), &args.shape, args.seed)?;
        if !report.findings.is_empty() {
            exit = Exit::Difference;
        }
        if args.json {
            let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
            list.push(json!({ "card": card, "accesses": report.accesses, "findings": findings }));
        } else {
            println!("{card}: {} accesses, {} findings", report.accesses, report.findings.len());
            report.findings.iter().for_each(|finding| println!("  {finding}"));
        }
    }
    if args.json {
        println!("{}", json!({ "version": 1, "walks": list }));
    }
    Ok(exit)
}
