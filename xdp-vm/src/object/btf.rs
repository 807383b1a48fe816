//! BTF, the types that clang leaves in an object, as far as maps, globals and source lines need it.
//!
//! Layouts: Linux `Documentation/bpf/btf.rst`, sections 2 (types) and 4 (`.BTF.ext`).

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use super::bytes::{u16_at, u32_at};

const MAGIC: u16 = 0xeb9f;

/// Types refer to each other; a forged circle must end.
const DEPTH_MAX: usize = 32;

/// One member of a structure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member<'a> {
    pub(super) name: &'a str,
    pub(super) type_id: u32,
    pub(super) offset_bytes: u32,
}

#[derive(Debug)]
enum Type {
    /// Integers, enumerations, floating point: a size.
    Sized(u32),
    Pointer(u32),
    Array {
        element: u32,
        count: u32,
    },
    /// Offset of its members in the types, and their number.
    Structure {
        size: u32,
        members: usize,
        count: usize,
        bitfields: bool,
    },
    /// `typedef`, `const`, `volatile`, `restrict`, tags.
    Alias(u32),
    Variable {
        name: u32,
        type_id: u32,
    },
    Section {
        name: u32,
        variables: usize,
        count: usize,
    },
    Function,
    Other,
}

/// All types of an object.
#[derive(Debug, Default)]
pub(super) struct Btf<'a> {
    raw: &'a [u8],
    strings: &'a [u8],
    /// By number less one: type 0 is `void`.
    types: Vec<Type>,
}

impl<'a> Btf<'a> {
    pub(super) fn parse(data: &'a [u8]) -> Result<Self, &'static str> {
        let field = |at| u32_at(data, at).map(|value| value as usize).ok_or("the header is cut off");
        if u16_at(data, 0) != Some(MAGIC) {
            return Err("no magic number");
        }
        let header = field(4)?;
        let part = |offset: usize, len: usize| {
            let start = header.checked_add(offset)?;
            data.get(start..start.checked_add(len)?)
        };
        let raw = part(field(8)?, field(12)?).ok_or("types beyond the section's end")?;
        let strings = part(field(16)?, field(20)?).ok_or("strings beyond the section's end")?;
        let mut btf = Self { raw, strings, types: Vec::new() };
        let mut at = 0;
        while at < raw.len() {
            let (parsed, len) = btf.read(at).ok_or("a type is cut off or unknown")?;
            btf.types.push(parsed);
            at += len;
        }
        Ok(btf)
    }

    fn read(&self, at: usize) -> Option<(Type, usize)> {
        const HEADER: usize = 12;
        let word = |index: usize| u32_at(self.raw, at + index * 4);
        let (name, info, size_or_type) = (word(0)?, word(1)?, word(2)?);
        let count = (info & 0xffff) as usize;
        let bitfields = info >> 31 != 0;
        let (parsed, extra) = match info >> 24 & 0x1f {
            1 => (Type::Sized(size_or_type), 4),
            2 => (Type::Pointer(size_or_type), 0),
            3 => (Type::Array { element: word(3)?, count: word(5)? }, 12),
            4 | 5 => (Type::Structure { size: size_or_type, members: at + HEADER, count, bitfields }, count * 12),
            6 => (Type::Sized(size_or_type), count * 8),
            7 => (Type::Other, 0),
            8..=11 | 18 => (Type::Alias(size_or_type), 0),
            12 => (Type::Function, 0),
            13 => (Type::Function, count * 8),
            14 => (Type::Variable { name, type_id: size_or_type }, 4),
            15 => (Type::Section { name, variables: at + HEADER, count }, count * 12),
            16 => (Type::Sized(size_or_type), 0),
            17 => (Type::Other, 4),
            19 => (Type::Sized(size_or_type), count * 12),
            _ => return None,
        };
        let len = HEADER + extra;
        (at + len <= self.raw.len()).then_some((parsed, len))
    }

    fn get(&self, id: u32) -> Option<&Type> {
        self.types.get((id as usize).checked_sub(1)?)
    }

    /// The type behind names and qualifiers.
    fn resolve(&self, mut id: u32) -> Option<&Type> {
        for _ in 0..DEPTH_MAX {
            match self.get(id)? {
                Type::Alias(of) | Type::Variable { type_id: of, .. } => id = *of,
                found => return Some(found),
            }
        }
        None
    }

    pub(super) fn string(&self, offset: u32) -> Option<&'a str> {
        string_at(self.strings, offset)
    }

    /// Variables of a section by name and type.
    pub(super) fn variables(&self, section: &str) -> BTreeMap<&'a str, u32> {
        let mut found = BTreeMap::new();
        for parsed in &self.types {
            let Type::Section { name, variables, count } = parsed else { continue };
            if self.string(*name) != Some(section) {
                continue;
            }
            for index in 0..*count {
                let Some(id) = u32_at(self.raw, variables + index * 12) else { continue };
                if let Some(Type::Variable { name, type_id }) = self.get(id) {
                    found.extend(self.string(*name).map(|name| (name, *type_id)));
                }
            }
        }
        found
    }

    /// Members of a structure, or of what a pointer points to.
    pub(super) fn members(&self, id: u32) -> Option<Vec<Member<'a>>> {
        let Type::Structure { members, count, bitfields, .. } = self.resolve(id)? else { return None };
        let member = |index: usize| {
            let at = members + index * 12;
            let bits = u32_at(self.raw, at + 8)?;
            // With bit fields the upper 8 bits are the field's width.
            let bits = if *bitfields { bits & 0xff_ffff } else { bits };
            Some(Member {
                name: self.string(u32_at(self.raw, at)?)?,
                type_id: u32_at(self.raw, at + 4)?,
                offset_bytes: bits / 8,
            })
        };
        (0..*count).map(member).collect()
    }

    /// The number that a map definition writes as a pointer to an array of so many elements.
    pub(super) fn number(&self, id: u32) -> Option<u32> {
        let Type::Pointer(to) = self.resolve(id)? else { return None };
        match self.resolve(*to)? {
            Type::Array { count, .. } => Some(*count),
            _ => None,
        }
    }

    pub(super) fn pointee(&self, id: u32) -> Option<u32> {
        match self.resolve(id)? {
            Type::Pointer(to) => Some(*to),
            _ => None,
        }
    }

    /// What an array of pointers points to.
    pub(super) fn array_pointee(&self, id: u32) -> Option<u32> {
        match self.resolve(id)? {
            Type::Array { element, .. } => self.pointee(*element),
            _ => None,
        }
    }

    pub(super) fn is_structure(&self, id: u32) -> bool {
        matches!(self.resolve(id), Some(Type::Structure { .. }))
    }

    /// Is it a structure with a spin lock in it? The kernel, too, goes by the type's name.
    pub(super) fn has_lock(&self, id: u32) -> bool {
        let is_lock = |id: u32| match self.resolve(id) {
            // A structure's first word, 12 bytes before its members, is its name.
            Some(Type::Structure { members, .. }) => {
                u32_at(self.raw, members - 12).and_then(|name| self.string(name)) == Some("bpf_spin_lock")
            }
            _ => false,
        };
        self.members(id).is_some_and(|members| members.iter().any(|member| is_lock(member.type_id)))
    }

    /// Bytes of a type.
    pub(super) fn size(&self, id: u32) -> Option<u32> {
        self.size_within(id, DEPTH_MAX)
    }

    fn size_within(&self, id: u32, depth: usize) -> Option<u32> {
        match self.resolve(id)? {
            Type::Sized(size) | Type::Structure { size, .. } => Some(*size),
            Type::Pointer(_) => Some(8),
            Type::Array { element, count } => self.size_within(*element, depth.checked_sub(1)?)?.checked_mul(*count),
            _ => None,
        }
    }
}

/// Longest name or path. Hostile files name one endless string many times.
const STRING_BYTES_MAX: usize = 4096;

fn string_at(strings: &[u8], offset: u32) -> Option<&str> {
    let rest = strings.get(offset as usize..)?;
    let rest = &rest[..rest.len().min(STRING_BYTES_MAX)];
    let end = rest.iter().position(|byte| *byte == 0)?;
    core::str::from_utf8(&rest[..end]).ok()
}

/// Records of each section, ascending by their instruction's offset in bytes.
type BySection<T> = BTreeMap<String, Vec<(u32, T)>>;

/// `.BTF.ext`: lines and relocations by instruction. Broken ones are as good as none: they only serve messages, and a
/// relocation that isn't told can't be.
#[derive(Debug, Default)]
pub(super) struct BtfExt {
    /// File and line.
    lines: BySection<(Arc<str>, u32)>,
    /// Kind of relocation.
    core: BySection<u32>,
}

/// The records of a range of a section.
fn within<'r, T>(
    records: &'r BySection<T>,
    section: &str,
    range: Range<u64>,
) -> impl Iterator<Item = &'r (u32, T)> + use<'r, T> {
    let all = records.get(section).map_or(&[][..], Vec::as_slice);
    let from = all.partition_point(|record| u64::from(record.0) < range.start);
    all[from..].iter().take_while(move |record| u64::from(record.0) < range.end)
}

impl BtfExt {
    pub(super) fn parse(data: &[u8], btf: &Btf<'_>) -> Self {
        let mut ext = Self::default();
        let Some(header) = u32_at(data, 4).filter(|_| u16_at(data, 0) == Some(MAGIC)) else { return ext };
        let part = |at: usize| {
            let offset = header.checked_add(u32_at(data, at)?)? as usize;
            let len = u32_at(data, at + 4)? as usize;
            data.get(offset..offset.checked_add(len)?)
        };
        let mut last: Option<(u32, Arc<str>)> = None;
        each_record(part(16).unwrap_or(&[]), btf, 16, |section, record| {
            let (Some(offset_bytes), Some(name), Some(line)) =
                (u32_at(record, 0), u32_at(record, 4), u32_at(record, 12))
            else {
                return;
            };
            // Lines of one file follow each other: they share its name.
            let file = match &last {
                Some((known, file)) if *known == name => file.clone(),
                _ => {
                    let path = btf.string(name).unwrap_or("?");
                    Arc::from(path.rsplit('/').next().unwrap_or(path))
                }
            };
            last = Some((name, file.clone()));
            // The lower 10 bits are the column.
            push(&mut ext.lines, section, offset_bytes, (file, line >> 10));
        });
        // Older compilers have a shorter header, without these.
        let core = if header >= 32 { part(24).unwrap_or(&[]) } else { &[] };
        each_record(core, btf, 16, |section, record| {
            if let (Some(offset_bytes), Some(kind)) = (u32_at(record, 0), u32_at(record, 12)) {
                push(&mut ext.core, section, offset_bytes, kind);
            }
        });
        ext.lines.values_mut().for_each(|lines| lines.sort_by_key(|line| line.0));
        ext.core.values_mut().for_each(|core| core.sort_by_key(|core| core.0));
        ext
    }

    /// Source lines of a range of a section: offset, file and line.
    pub(super) fn lines(
        &self,
        section: &str,
        range: Range<u64>,
    ) -> impl Iterator<Item = &(u32, (Arc<str>, u32))> + use<'_> {
        within(&self.lines, section, range)
    }

    /// Kinds of the relocations against the kernel's types in a range of a section.
    pub(super) fn core(&self, section: &str, range: Range<u64>) -> impl Iterator<Item = u32> + use<'_> {
        within(&self.core, section, range).map(|core| core.1)
    }
}

fn push<T>(records: &mut BySection<T>, section: &str, offset_bytes: u32, record: T) {
    match records.get_mut(section) {
        Some(known) => known.push((offset_bytes, record)),
        None => drop(records.insert(String::from(section), alloc::vec![(offset_bytes, record)])),
    }
}

/// A part of `.BTF.ext`: the size of a record, then for each section its name, a count, and so many records.
fn each_record(part: &[u8], btf: &Btf<'_>, size_min: usize, mut visit: impl FnMut(&str, &[u8])) {
    let Some(size) = u32_at(part, 0).map(|size| size as usize).filter(|size| *size >= size_min) else { return };
    let mut at = 4;
    while let (Some(name), Some(count)) = (u32_at(part, at), u32_at(part, at + 4)) {
        at += 8;
        let section = btf.string(name).unwrap_or("");
        for _ in 0..count {
            let Some(record) = at.checked_add(size).and_then(|end| part.get(at..end)) else { return };
            visit(section, record);
            at += size;
        }
    }
}
