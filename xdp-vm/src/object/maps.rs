//! Map definitions: structures in `.maps` whose BTF says everything, the older `maps` sections, and data sections.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::btf::Btf;
use super::bytes::u32_at;
use super::elf::{Elf, RELOC_POINTER};
use crate::error::MapProblem;
use crate::map::{InitialValue, MapSpec, MapType};

/// A map of the object, and where code refers to it.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    /// Position in the object's sections.
    pub(super) section: usize,
    /// Offset in its section.
    pub(super) offset: u64,
    pub(super) spec: Result<MapSpec, MapProblem>,
}

/// All maps that an object defines.
pub(super) fn definitions(elf: &Elf<'_>, btf: &Btf<'_>) -> Vec<Definition> {
    let mut found = Vec::new();
    for (section, content) in elf.sections.iter().enumerate() {
        match content.name.as_str() {
            ".maps" => by_btf(elf, btf, section, &mut found),
            "maps" => by_struct(elf, section, &mut found),
            _ => {}
        }
    }
    found
}

fn by_btf(elf: &Elf<'_>, btf: &Btf<'_>, section: usize, found: &mut Vec<Definition>) {
    let variables = btf.variables(".maps");
    for symbol in elf.symbols.iter().filter(|symbol| symbol.section == Some(section) && !symbol.name.is_empty()) {
        // The offset that BTF has is left to the linker; the symbol's is right.
        let variable = variables.get(symbol.name.as_str());
        let spec = match variable {
            Some(type_id) => define(btf, &symbol.name, *type_id, true).map(|(mut spec, values)| {
                if let Some(offset) = values {
                    let from = symbol.value.saturating_add(u64::from(offset));
                    let end = symbol.value.saturating_add(symbol.size);
                    spec.initial = initial(elf, section, from, end);
                }
                spec
            }),
            None => Err(MapProblem::Definition("it has no BTF (compile with -g)")),
        };
        found.push(Definition { name: symbol.name.clone(), section, offset: symbol.value, spec });
    }
}

/// The definition in a structure's types; and where in the structure its initial values begin.
fn define(btf: &Btf<'_>, name: &str, type_id: u32, outer: bool) -> Result<(MapSpec, Option<u32>), MapProblem> {
    let members = btf.members(type_id).ok_or(MapProblem::Definition("it is no structure"))?;
    let mut map_type = 0;
    let mut spec = MapSpec::new(name, MapType::Array, 0, 0, 0);
    let mut values = None;
    for member in members {
        let number = || btf.number(member.type_id).ok_or(MapProblem::Definition("a field is no number"));
        let size = || {
            let size = btf.pointee(member.type_id).and_then(|to| btf.size(to));
            size.ok_or(MapProblem::Definition("key or value has no size"))
        };
        match member.name {
            "type" => map_type = number()?,
            "key_size" => spec.key_size = number()?,
            "value_size" => spec.value_size = number()?,
            "max_entries" => spec.max_entries = number()?,
            "map_flags" => spec.set_flags(number()?),
            "key" => spec.key_size = size()?,
            "value" => {
                spec.value_size = size()?;
                spec.has_lock = btf.pointee(member.type_id).is_some_and(|to| btf.has_lock(to));
            }
            // Where it lives and how it is pinned is the kernel's business.
            "numa_node" | "pinning" | "map_extra" => {}
            "values" if outer => {
                let to = btf
                    .array_pointee(member.type_id)
                    .ok_or(MapProblem::Definition("values is no array of pointers"))?;
                values = Some(member.offset_bytes);
                spec.value_size = 4;
                if btf.is_structure(to) {
                    spec.inner = Some(Box::new(define(btf, name, to, false)?.0));
                }
            }
            _ => return Err(MapProblem::Definition("a field that is unknown here")),
        }
    }
    spec.map_type = MapType::from_number(map_type).ok_or(MapProblem::Type(map_type))?;
    Ok((spec, values))
}

/// What the pointers of a definition's `values` point to, by name.
fn initial(elf: &Elf<'_>, section: usize, from: u64, end: u64) -> Vec<InitialValue> {
    let relocations = elf.sections[section].relocations_in(from..end);
    let inside = relocations.filter(|found| found.kind == RELOC_POINTER);
    let value = |found: &super::elf::Relocation| {
        let symbol = elf.symbols.get(found.symbol)?;
        // An index beyond 32 bits can't be within a section.
        Some(InitialValue { key: ((found.offset - from) / 8) as u32, name: elf.symbol_name(symbol) })
    };
    inside.filter_map(value).collect()
}

/// The older form: five words for each map, and whatever a loader of its own may have added, which must be 0.
fn by_struct(elf: &Elf<'_>, section: usize, found: &mut Vec<Definition>) {
    let data = elf.sections[section].data;
    for symbol in elf.symbols.iter().filter(|symbol| symbol.section == Some(section) && !symbol.name.is_empty()) {
        let word = |index: usize| {
            let at = usize::try_from(symbol.value).ok()?.checked_add(index * 4)?;
            u32_at(data, at)
        };
        let spec = || {
            let words: Option<Vec<u32>> = (0..5).map(word).collect();
            let words = words.ok_or(MapProblem::Definition("it is cut off"))?;
            let map_type = MapType::from_number(words[0]).ok_or(MapProblem::Type(words[0]))?;
            let mut spec = MapSpec::new(&symbol.name, map_type, words[1], words[2], words[3]);
            spec.set_flags(words[4]);
            Ok(spec)
        };
        found.push(Definition { name: symbol.name.clone(), section, offset: symbol.value, spec: spec() });
    }
}
