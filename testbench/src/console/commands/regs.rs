//! `regs`: the live card's registers, listed, read and written.

use driver_core::{Mmio as _, Platform as _};
use regs::{Access, Bar, FuncId, Register, registers};

use super::{Call, Said, Spec};
use crate::bench::FunctionPort;
use crate::cli::regs::{listing, matches, name_of, whole};
use crate::console::options::{Words, number};
use crate::console::{CommandError, Console};

pub(super) const SPEC: Spec = Spec {
    name: "regs",
    usage: &["regs [FILTER]", "regs read REGISTER", "regs write REGISTER VALUE"],
    about: "Registers of the live card",
    more: "As function 0 reads them: those whose name or address holds FILTER, or one, or one written. \
           REGISTER is BLOCK.NAME or NAME, [I] after it for an element, @N for function or port N; or \
           bar0:0x… or bar2:0x….",
    background: false,
    run,
};

fn run(console: &mut Console, call: &Call<'_>) -> Said {
    let mut words = call.words();
    let platform = console.session.bench().function(FuncId(0));
    let mmio = platform.mmio();
    match words.peek() {
        Some("read") => {
            words.next();
            let at = place(&mut words)?;
            words.end()?;
            Ok(format!("{:#010x}\n", mmio.read32(at.bar, at.offset).map_err(anyhow::Error::from)?))
        }
        Some("write") => {
            words.next();
            let at = place(&mut words)?;
            let value: u32 = words.number("VALUE")?;
            words.end()?;
            if at.read_only {
                return Err(CommandError::failed("it is read-only; its address (bar2:0x…) writes to it all the same"));
            }
            mmio.write32(at.bar, at.offset, value).map_err(anyhow::Error::from)?;
            Ok(String::new())
        }
        filter => {
            words.next();
            words.end()?;
            list(console, mmio, filter)
        }
    }
}

/// Every register that the card has and the filter lets through, with its value.
fn list(console: &Console, mmio: &FunctionPort, filter: Option<&str>) -> Said {
    let shape = &console.session.setup().shape;
    let here = |register: &&Register| register.presence.on(shape.functions, shape.ports);
    let found: Vec<&Register> = registers().iter().filter(|register| matches(register, filter)).filter(here).collect();
    let values: Vec<Option<u32>> =
        found.iter().map(|register| mmio.read32(register.bar, register.offset).ok()).collect();
    match &found[..] {
        [] => Err(CommandError::failed(format!(
            "this card has no register with `{}` in its name or address",
            filter.unwrap_or_default()
        ))),
        [register] => Ok(whole(register, Some(values[0]))),
        _ => Ok(listing(&found, Some(&values))),
    }
}

/// Where a register is.
struct Place {
    bar: Bar,
    offset: u32,
    read_only: bool,
}

fn place(words: &mut Words<'_>) -> Result<Place, CommandError> {
    let text = words.word("REGISTER")?;
    let bar = match text.split_once(':') {
        Some(("bar0", _)) => Some(Bar::Qdma),
        Some(("bar2", _)) => Some(Bar::Shell),
        _ => None,
    };
    if let (Some(bar), Some((_, address))) = (bar, text.split_once(':')) {
        let offset = number(address).and_then(|offset| u32::try_from(offset).ok());
        let offset = offset.ok_or_else(|| words.usage(format_args!("`{address}` is no address")))?;
        return Ok(Place { bar, offset, read_only: false });
    }
    by_name(text).map_err(CommandError::failed)
}

/// `BLOCK.NAME`, or `NAME` where one block alone has it; `[I]` for an element, `@N` for the N-th of its kind.
fn by_name(text: &str) -> Result<Place, String> {
    let (text, instance) = match text.split_once('@') {
        None => (text, 0),
        Some((name, n)) => (name, n.parse::<usize>().map_err(|_| format!("`{n}` is no function or port"))?),
    };
    let (name, index) = match text.split_once('[') {
        None => (text, 0),
        Some((name, rest)) => {
            let index = rest.strip_suffix(']').and_then(|index| index.parse::<u32>().ok());
            (name, index.ok_or_else(|| format!("`[{rest}` is no element"))?)
        }
    };
    let is_it = |register: &&Register| {
        register.name.eq_ignore_ascii_case(name)
            || format!("{}.{}", register.block, register.name).eq_ignore_ascii_case(name)
    };
    let found: Vec<&Register> = registers().iter().filter(is_it).collect();
    if let Some(other) = found.iter().find(|register| register.block != found[0].block) {
        return Err(format!("`{name}` is in {} and in {}: name the block too", found[0].block, other.block));
    }
    let Some(register) = found.get(instance) else {
        return Err(match found.len() {
            0 => format!("there is no register `{name}`"),
            n => format!("there are {n} of `{name}`, from @0 on"),
        });
    };
    let offset = register.offset_of(index).ok_or_else(|| format!("{} has no element {index}", name_of(register)))?;
    let read_only = register.fields.iter().all(|field| field.access == Access::ReadOnly);
    Ok(Place { bar: register.bar, offset, read_only })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(text: &str) -> Result<(Bar, u32), String> {
        by_name(text).map(|place| (place.bar, place.offset))
    }

    #[test]
    fn registers_go_by_name_element_and_instance() {
        let function = |func| regs::shell::qdma_function(FuncId(func));
        assert_eq!(offset("QCONF"), Ok((Bar::Shell, function(0) + regs::qdma_function::QCONF)));
        assert_eq!(offset("qdma_function.qconf@1"), Ok((Bar::Shell, function(1) + regs::qdma_function::QCONF)));
        let entry = function(0) + regs::qdma_function::INDIRECTION_TABLE + 4 * 127;
        assert_eq!(offset("INDIRECTION_TABLE[127]"), Ok((Bar::Shell, entry)));
    }

    #[test]
    fn what_names_no_register_says_why() {
        for (text, why) in [
            ("NO_SUCH", "no register"),
            ("QCONF@9", "from @0"),
            ("QCONF@x", "no function"),
            ("INDIRECTION_TABLE[128]", "no element 128"),
            ("INDIRECTION_TABLE[", "no element"),
        ] {
            let error = offset(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
