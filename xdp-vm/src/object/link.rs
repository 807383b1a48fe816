//! Linking: what a program can reach, copied together, with its references made numbers.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::elf::{RELOC_CALL, RELOC_LOAD, Relocation, Symbol};
use super::{Loader, XdpObject};
use crate::bytecode::{LDDW, RawInsn, class, jump, pseudo};
use crate::error::{InsnProblem, Problem, ProblemKind};
use crate::map::{MapSpec, MapType};
use crate::op::Span;
use crate::vm::{Function, INSNS_MAX, Line, Linked, Program};

/// `TYPE_ID_LOCAL`: a relocation whose value is the object's own.
const CORE_TYPE_ID_LOCAL: u32 = 6;

/// Which map of the linked program one of the object is.
#[derive(PartialEq)]
enum MapSource {
    /// By position in the definitions.
    Definition(usize),
    /// By position of its section.
    Data(usize),
}

/// Where an instruction's function reference goes.
struct Fixup {
    /// In the linked code.
    slot: usize,
    /// Position in [`Linker::reached`].
    function: usize,
}

pub(super) struct Linker<'o, 'f> {
    object: &'o XdpObject<'f>,
    loader: &'o Loader,
    linked: Linked,
    /// Functions of the object in the order of the linked ones.
    reached: Vec<usize>,
    /// Likewise, the other way round.
    numbers: BTreeMap<usize, usize>,
    /// Of these, how many were copied.
    copied: usize,
    maps: Vec<MapSource>,
    fixups: Vec<Fixup>,
    problems: Vec<Problem>,
}

impl<'o, 'f> Linker<'o, 'f> {
    pub(super) fn new(object: &'o XdpObject<'f>, loader: &'o Loader) -> Self {
        Self {
            object,
            loader,
            linked: Linked { license: object.license.clone(), ..Linked::default() },
            reached: Vec::new(),
            numbers: BTreeMap::new(),
            copied: 0,
            maps: Vec::new(),
            fixups: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Add a program, and all that it reaches.
    pub(super) fn link(&mut self, function: usize) {
        self.program(function);
        while self.copied < self.reached.len() {
            self.copy(self.copied);
            self.copied += 1;
        }
    }

    /// The linked program, with references between functions filled in.
    pub(super) fn finish(mut self) -> (Linked, Vec<Problem>) {
        for fixup in &self.fixups {
            let target = self.linked.functions[fixup.function].span.start as i64;
            // Code is limited to a million slots, or is refused.
            self.linked.code[fixup.slot].imm = (target - fixup.slot as i64 - 1) as i32;
        }
        (self.linked, self.problems)
    }

    fn program(&mut self, function: usize) {
        let number = self.reach(function) as u32;
        let def = &self.object.functions[function];
        if self.linked.programs.iter().any(|program| program.function == number) {
            return;
        }
        let section = self.object.elf.sections[def.section].name.clone();
        self.linked.programs.push(Program { name: def.name.clone(), section, function: number });
    }

    /// The linked number of a function.
    fn reach(&mut self, function: usize) -> usize {
        *self.numbers.entry(function).or_insert_with(|| {
            self.reached.push(function);
            self.reached.len() - 1
        })
    }

    fn copy(&mut self, number: usize) {
        let def = &self.object.functions[self.reached[number]];
        let section = &self.object.elf.sections[def.section];
        let bytes = section.data.get(def.span.start * 8..(def.span.start + def.span.len) * 8).unwrap_or(&[]);
        let start = self.linked.code.len();
        let lines = self.lines(def.section, def.span);
        let span = Span { start, len: bytes.len() / 8 };
        self.linked.functions.push(Function {
            name: def.name.clone(),
            span,
            stack_bytes: crate::memory::FRAME_BYTES,
            lines,
        });
        if span.len == 0 || start + span.len > INSNS_MAX {
            let problem = self.linked.problem(Some(number), None, ProblemKind::Length(span.len));
            self.problems.push(problem);
            self.linked.functions[number].span.len = 0;
            return;
        }
        self.linked.code.extend(RawInsn::from_slice(bytes));
        self.core_relocations(number, def.section, def.span);
        let from = def.span.start as u64 * 8;
        let inside = from..from + bytes.len() as u64;
        let mut related = alloc::vec![false; span.len];
        for relocation in section.relocations_in(inside) {
            // Within the function, so within `usize`.
            let at = ((relocation.offset - from) / 8) as usize;
            related[at] = true;
            if let Err(problem) = self.relocate(start + at, relocation) {
                self.complain(number, at, problem);
            }
        }
        self.local_calls(number, &related);
    }

    /// Calls and callbacks that the compiler has resolved within their section.
    fn local_calls(&mut self, number: usize, related: &[bool]) {
        let def = &self.object.functions[self.reached[number]];
        let (section, first) = (def.section, def.span.start as i64);
        let start = self.linked.functions[number].span.start;
        let mut at = 0;
        while at < related.len() {
            let raw = self.linked.code[start + at];
            if !related[at] && raw.refers_to_function() {
                let target = first + at as i64 + 1 + i64::from(raw.imm);
                match self.function_at(section, target) {
                    Some(function) => self.refer(start + at, function),
                    None => self.complain(number, at, InsnProblem::CallOut(raw.imm)),
                }
            }
            at += raw.slots();
        }
    }

    fn complain(&mut self, number: usize, at: usize, problem: InsnProblem) {
        let start = self.linked.functions[number].span.start;
        self.linked.bad.insert(start + at);
        let problem = self.linked.problem(Some(number), Some(at), ProblemKind::Insn(problem));
        self.problems.push(problem);
    }

    /// The function of the object that begins at a slot of a section.
    fn function_at(&self, section: usize, slot: i64) -> Option<usize> {
        let place = (section, usize::try_from(slot).ok()?);
        // Functions are listed by section and start.
        self.object.functions.binary_search_by_key(&place, |def| (def.section, def.span.start)).ok()
    }

    fn refer(&mut self, slot: usize, function: usize) {
        let function = self.reach(function);
        self.fixups.push(Fixup { slot, function });
    }

    fn relocate(&mut self, slot: usize, relocation: &Relocation) -> Result<(), InsnProblem> {
        let object = self.object;
        let Some(symbol) = object.elf.symbols.get(relocation.symbol) else {
            return Err(InsnProblem::Relocation("a symbol that there is not".to_string()));
        };
        let name = object.elf.symbol_name(symbol);
        let raw = self.linked.code[slot];
        let call = raw.code == class::JMP | jump::CALL;
        match (relocation.kind, symbol.section) {
            (RELOC_CALL, None) if call => Err(InsnProblem::KernelFunction(Some(name))),
            (_, None) => Err(InsnProblem::Extern(name)),
            (RELOC_CALL, Some(target)) if call => {
                let function = self.called(target, symbol, raw.imm);
                let function = function.ok_or(InsnProblem::CallOut(raw.imm))?;
                self.linked.code[slot].src = pseudo::CALL;
                self.refer(slot, function);
                Ok(())
            }
            (RELOC_LOAD, Some(target)) if raw.code == LDDW => self.relocate_load(slot, target, symbol, name),
            _ => Err(InsnProblem::Relocation(name)),
        }
    }

    /// A call counts from its own successor: -1 is the symbol itself.
    fn called(&self, section: usize, symbol: &Symbol, imm: i32) -> Option<usize> {
        let slot = i64::try_from(symbol.value / 8).ok()?.checked_add(i64::from(imm))?.checked_add(1)?;
        self.function_at(section, slot)
    }

    fn relocate_load(&mut self, slot: usize, target: usize, symbol: &Symbol, name: String) -> Result<(), InsnProblem> {
        let raw = self.linked.code[slot];
        let content = &self.object.elf.sections[target];
        // The immediate counts on from the symbol, in bytes.
        let place = symbol.value.wrapping_add(i64::from(raw.imm).cast_unsigned());
        if content.executable {
            let function = i64::try_from(place / 8).ok().and_then(|place| self.function_at(target, place));
            let function = function.filter(|_| place.is_multiple_of(8)).ok_or(InsnProblem::Relocation(name))?;
            self.linked.code[slot].src = pseudo::FUNC;
            self.refer(slot, function);
            return Ok(());
        }
        if content.is_data() {
            let offset = u32::try_from(place).map_err(|_| InsnProblem::ValueOffset(u32::MAX))?;
            let map = self.data_map(target);
            self.load_map(slot, pseudo::MAP_VALUE, map, offset)
        } else {
            let of_map = |def: &super::Definition| def.section == target && def.offset == place;
            let definition = self.object.maps.iter().position(of_map).ok_or(InsnProblem::Relocation(name))?;
            let map = self.map(definition);
            self.load_map(slot, pseudo::MAP, map, 0)
        }
    }

    fn load_map(&mut self, slot: usize, kind: u8, map: usize, offset: u32) -> Result<(), InsnProblem> {
        let Some(next) = self.linked.code.get_mut(slot + 1) else { return Err(InsnProblem::HalfImmediate) };
        next.imm = offset.cast_signed();
        let first = &mut self.linked.code[slot];
        (first.src, first.imm) = (kind, map as i32);
        Ok(())
    }

    /// The linked number of a data section.
    fn data_map(&mut self, section: usize) -> usize {
        if let Some(known) = self.maps.iter().position(|known| *known == MapSource::Data(section)) {
            return known;
        }
        let content = &self.object.elf.sections[section];
        if !content.relocations.is_empty() {
            let kind = ProblemKind::DataRelocations(content.name.clone());
            let problem = self.linked.problem(None, None, kind);
            self.problems.push(problem);
        }
        // Sections are limited to 64 MiB.
        let mut spec = MapSpec::new(&content.name, MapType::Array, 4, content.size as u32, 1);
        spec.read_only = content.is_read_only();
        spec.data = content.data.to_vec();
        for (name, value) in &self.loader.globals {
            let Some((place, offset, size)) = self.object.global(name) else { continue };
            if place == section && size == value.len() {
                spec.data.resize(content.size as usize, 0);
                if let Some(variable) = offset.checked_add(size).and_then(|end| spec.data.get_mut(offset..end)) {
                    variable.copy_from_slice(value);
                }
            }
        }
        self.maps.push(MapSource::Data(section));
        self.linked.maps.push(spec);
        self.maps.len() - 1
    }

    /// The linked number of a map; with it come the programs and maps that it holds from the beginning.
    fn map(&mut self, definition: usize) -> usize {
        if let Some(known) = self.maps.iter().position(|known| *known == MapSource::Definition(definition)) {
            return known;
        }
        let found = &self.object.maps[definition];
        let mut spec = match &found.spec {
            Ok(spec) => spec.clone(),
            Err(problem) => {
                let kind = ProblemKind::Map { name: found.name.clone(), problem: problem.clone() };
                let problem = self.linked.problem(None, None, kind);
                self.problems.push(problem);
                // A stand-in, so that what uses it is looked at as well.
                MapSpec::new(&found.name, MapType::Array, 4, 8, 1)
            }
        };
        if let Some((_, entries)) = self.loader.max_entries.iter().rev().find(|(name, _)| *name == found.name) {
            spec.max_entries = *entries;
        }
        if spec.map_type == MapType::PerfEventArray && spec.max_entries == 0 {
            spec.max_entries = self.loader.settings.cpus.max(1);
        }
        let initial = spec.initial.clone();
        let holds_maps = spec.map_type.holds_maps();
        self.maps.push(MapSource::Definition(definition));
        self.linked.maps.push(spec);
        let number = self.maps.len() - 1;
        for entry in initial {
            if holds_maps {
                if let Some(inner) = self.object.maps.iter().position(|map| map.name == entry.name) {
                    self.map(inner);
                }
            } else {
                let named = |def: &super::FunctionDef| def.name == entry.name;
                if let Some(function) = self.object.functions.iter().position(named) {
                    self.program(function);
                }
            }
        }
        number
    }

    fn core_relocations(&mut self, number: usize, section: usize, span: Span) {
        let name = &self.object.elf.sections[section].name;
        let inside = span.start as u64 * 8..(span.start + span.len) as u64 * 8;
        let count = self.object.ext.core(name, inside).filter(|kind| *kind != CORE_TYPE_ID_LOCAL).count();
        if count > 0 {
            let problem = self.linked.problem(Some(number), None, ProblemKind::CoreRelocations(count));
            self.problems.push(problem);
        }
    }

    fn lines(&self, section: usize, span: Span) -> Vec<Line> {
        let name = &self.object.elf.sections[section].name;
        let inside = span.start as u64 * 8..(span.start + span.len) as u64 * 8;
        let line = |(offset, (file, line)): &(u32, (Arc<str>, u32))| Line {
            insn: offset / 8 - span.start as u32,
            file: file.clone(),
            line: *line,
        };
        self.object.ext.lines(name, inside).map(line).collect()
    }
}
