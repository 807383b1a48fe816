//! What of an ELF file matters for programs: sections, symbols, relocations.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use object::elf::{EM_BPF, ET_REL, SHF_EXECINSTR, SHT_NOBITS, SHT_PROGBITS};
use object::read::elf::ElfFile64;
use object::{
    LittleEndian, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionFlags, SectionIndex,
    SymbolKind,
};

use crate::error::ObjectProblem;

/// A forged size must not take the machine's memory.
const SECTION_BYTES_MAX: u64 = 64 << 20;

/// Likewise for all names together.
const NAME_BYTES_MAX: usize = 64 << 20;

/// `R_BPF_64_64`: a 64-bit load of an address.
pub(super) const RELOC_LOAD: u32 = 1;
/// `R_BPF_64_ABS64`: a pointer in data.
pub(super) const RELOC_POINTER: u32 = 2;
/// `R_BPF_64_32`: a call.
pub(super) const RELOC_CALL: u32 = 10;

/// `e_ident` of a 64-bit file: class and byte order at 4 and 5; machine at 18.
const CLASS_64: u8 = 2;
const DATA_MSB: u8 = 2;

#[derive(Debug)]
pub(super) struct Section<'a> {
    pub(super) name: String,
    /// Empty for `.bss`.
    pub(super) data: &'a [u8],
    pub(super) size: u64,
    pub(super) executable: bool,
    /// Ascending by offset.
    pub(super) relocations: Vec<Relocation>,
}

impl Section<'_> {
    /// It holds global variables.
    pub(super) fn is_data(&self) -> bool {
        let kind = |prefix: &str| {
            let rest = self.name.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        !self.executable && (kind(".rodata") || kind(".data") || kind(".bss"))
    }

    /// Relocations of a range of bytes.
    pub(super) fn relocations_in(&self, range: Range<u64>) -> impl Iterator<Item = &Relocation> {
        let from = self.relocations.partition_point(|found| found.offset < range.start);
        self.relocations[from..].iter().take_while(move |found| found.offset < range.end)
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.name.starts_with(".rodata")
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Relocation {
    pub(super) offset: u64,
    pub(super) symbol: usize,
    pub(super) kind: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Function,
    Data,
    Section,
    Other,
}

#[derive(Debug)]
pub(super) struct Symbol {
    pub(super) name: String,
    /// Position in [`Elf::sections`]; none for undefined symbols.
    pub(super) section: Option<usize>,
    pub(super) value: u64,
    pub(super) size: u64,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) struct Elf<'a> {
    pub(super) sections: Vec<Section<'a>>,
    /// By their number in the file.
    pub(super) symbols: Vec<Symbol>,
}

impl<'a> Elf<'a> {
    pub(super) fn parse(file: &'a [u8]) -> Result<Self, ObjectProblem> {
        let header = file.first_chunk::<20>().ok_or(ObjectProblem::NotBpf)?;
        if header[..4] != *b"\x7fELF" || header[4] != CLASS_64 {
            return Err(ObjectProblem::NotBpf);
        }
        if header[5] == DATA_MSB && u16::from_be_bytes([header[18], header[19]]) == EM_BPF.0 {
            return Err(ObjectProblem::BigEndian);
        }
        let elf = ElfFile64::<LittleEndian>::parse(file).map_err(|_| ObjectProblem::Elf("header or section table"))?;
        let header = elf.elf_header();
        let relocatable = header.e_type.get(LittleEndian) == ET_REL;
        if header.e_machine.get(LittleEndian) != EM_BPF || !relocatable {
            return Err(ObjectProblem::NotBpf);
        }
        let mut places = Vec::new();
        let mut sections = Vec::new();
        for section in elf.sections() {
            let Some(read) = read_section(&section)? else { continue };
            places.push(section.index());
            sections.push(read);
        }
        // Sections come by number.
        let place = |index: SectionIndex| places.binary_search_by_key(&index.0, |place: &SectionIndex| place.0).ok();
        let mut name_bytes = 0;
        let mut symbols = Vec::new();
        for symbol in elf.symbols() {
            // Symbols come by number; the first, which names nothing, is left out of the iteration.
            let number = symbol.index().0;
            while symbols.len() < number.min(file.len()) {
                symbols.push(Symbol { name: String::new(), section: None, value: 0, size: 0, kind: Kind::Other });
            }
            let kind = match symbol.kind() {
                SymbolKind::Text => Kind::Function,
                SymbolKind::Data | SymbolKind::Tls => Kind::Data,
                SymbolKind::Section => Kind::Section,
                _ => Kind::Other,
            };
            let name = symbol.name().map_err(|_| ObjectProblem::Elf("a symbol's name"))?;
            // Hostile files name one endless string many times.
            name_bytes += name.len();
            if name_bytes > NAME_BYTES_MAX {
                return Err(ObjectProblem::Elf("the symbols' names are longer than 64 MiB together"));
            }
            symbols.push(Symbol {
                name: name.to_string(),
                section: symbol.section_index().and_then(place),
                value: symbol.address(),
                size: symbol.size(),
                kind,
            });
        }
        Ok(Self { sections, symbols })
    }

    pub(super) fn section(&self, name: &str) -> Option<&Section<'a>> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// A symbol's name, or its section's for a section symbol.
    pub(super) fn symbol_name(&self, symbol: &Symbol) -> String {
        match symbol.section {
            Some(section) if symbol.name.is_empty() => self.sections[section].name.clone(),
            _ => symbol.name.clone(),
        }
    }
}

/// Sections of code, data and definitions; others are of no use here.
fn read_section<'a>(
    section: &object::read::elf::ElfSection64<'a, '_, LittleEndian>,
) -> Result<Option<Section<'a>>, ObjectProblem> {
    let SectionFlags::Elf { sh_type, sh_flags } = section.flags() else { return Ok(None) };
    if sh_type != SHT_PROGBITS && sh_type != SHT_NOBITS {
        return Ok(None);
    }
    let name = section.name().map_err(|_| ObjectProblem::Elf("a section's name"))?.to_string();
    if section.size() > SECTION_BYTES_MAX {
        return Err(ObjectProblem::SectionSize(name));
    }
    let data = section.data().map_err(|_| ObjectProblem::Elf("a section beyond the file's end"))?;
    let mut relocations = Vec::new();
    // Debug information has many and needs none here.
    if !name.starts_with(".debug") && !name.starts_with(".BTF") {
        for (offset, relocation) in section.relocations() {
            let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
            let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            relocations.push(Relocation { offset, symbol: symbol.0, kind: r_type.0 });
        }
    }
    relocations.sort_by_key(|found| found.offset);
    let executable = sh_flags.0 & SHF_EXECINSTR.0 != 0 && sh_type == SHT_PROGBITS;
    Ok(Some(Section { name, data, size: section.size(), executable, relocations }))
}
