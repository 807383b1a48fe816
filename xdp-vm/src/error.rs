//! What can be wrong with an object, all of it told at once, each with the place and the name.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::helper::helper_name;
use crate::map::MapType;

/// A line of the program's source, from the object's debug information (`clang -g`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceLine {
    /// File as the compiler was given it, without its folders.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Why an instruction can't run here.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum InsnProblem {
    /// There are registers 0 to 10.
    Register(u8),
    /// Register 10 can only be read.
    WritesFramePointer,
    /// A field that this opcode has no use for is not 0.
    Reserved(u8),
    /// No instruction of ISA v1 to v4.
    Opcode(u8),
    /// A 64-bit load without its second slot.
    HalfImmediate,
    /// Loads by `BPF_ABS` and `BPF_IND`, which are for socket filters.
    LegacyPacketAccess,
    /// Load-acquire or store-release.
    AcquireRelease,
    /// An atomic operation that there isn't.
    Atomic(i32),
    /// A cast between address spaces, which belongs to arenas.
    AddressSpaceCast,
    /// A jump out of the function, or into the second slot of a 64-bit load, by so many instructions.
    JumpOut(i64),
    /// A call to somewhere that is no function's start.
    CallOut(i32),
    /// A helper that this VM does not have.
    Helper(i32),
    /// A helper for GPL-compatible programs only, and the object's license.
    GplHelper(i32, String),
    /// A kernel function, by name where the object has it.
    KernelFunction(Option<String>),
    /// A call through a register.
    IndirectCall,
    /// `may_goto`.
    MayGoto,
    /// The function's last instruction is neither a jump nor `exit`.
    FallsOff,
    /// No such map.
    MapIndex(i32),
    /// An address behind the end of a map's value.
    ValueOffset(u32),
    /// A 64-bit load that stands for something unknown.
    PseudoSource(u8),
    /// A symbol that the kernel or the loader would have to supply.
    Extern(String),
    /// A relocation whose target is nothing that can be loaded: the symbol's name.
    Relocation(String),
}

impl fmt::Display for InsnProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Register(register) => write!(f, "uses register {register}; there are r0 to r10"),
            Self::WritesFramePointer => f.write_str("writes r10, which can only be read"),
            Self::Reserved(code) => write!(f, "has a reserved field that is not 0 (opcode {code:#04x})"),
            Self::Opcode(code) => write!(f, "has opcode {code:#04x}, which is not in ISA v1 to v4"),
            Self::HalfImmediate => f.write_str("is a 64-bit load without its second half"),
            Self::LegacyPacketAccess => f.write_str("is a packet load of socket filters (BPF_ABS, BPF_IND)"),
            Self::AcquireRelease => f.write_str("is a load-acquire or store-release; not supported"),
            Self::Atomic(imm) => write!(f, "is an unknown atomic operation {imm:#x}"),
            Self::AddressSpaceCast => f.write_str("casts between address spaces; arenas are not supported"),
            Self::JumpOut(by) => write!(f, "jumps by {by:+} out of its function or into a 64-bit load"),
            Self::CallOut(by) => write!(f, "calls by {by:+}, where no function begins"),
            Self::Helper(id) => match helper_name(*id) {
                Some(name) => write!(
                    f,
                    "calls helper {id} bpf_{name}, which this simulator does not implement; see \"xdp helpers\""
                ),
                None => write!(f, "calls helper {id}, which this simulator does not know; see \"xdp helpers\""),
            },
            Self::GplHelper(id, license) => write!(
                f,
                "calls helper {id} bpf_{}, which only GPL-compatible programs may; the license is \"{license}\"",
                helper_name(*id).unwrap_or("?")
            ),
            Self::KernelFunction(name) => {
                write!(f, "calls kernel function (kfunc) {}; kfuncs are not supported", name.as_deref().unwrap_or("?"))
            }
            Self::IndirectCall => f.write_str("calls through a register (callx); not supported"),
            Self::MayGoto => f.write_str("is may_goto; not supported"),
            Self::FallsOff => f.write_str("is its function's last, and neither a jump nor exit"),
            Self::MapIndex(index) => write!(f, "refers to map {index}, which there is not"),
            Self::ValueOffset(offset) => {
                write!(f, "takes the address of byte {offset} of a map's value, which is shorter")
            }
            Self::PseudoSource(source) => write!(f, "loads a 64-bit immediate of unknown kind {source}"),
            Self::Extern(name) => {
                write!(f, "needs the external symbol {name}; kconfig and ksym externs are not supported")
            }
            Self::Relocation(name) => write!(f, "refers to {name}, which is neither map, data nor function"),
        }
    }
}

/// Why a map can't be made.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MapProblem {
    /// A type that this VM does not have.
    Type(u32),
    /// Its size is left to the loader, and nobody has set it.
    NoMaxEntries,
    /// A key size that the type can't have.
    KeySize(u32),
    /// A value size that the type can't have.
    ValueSize(u32),
    /// A number of entries that the type can't have.
    MaxEntries(u32),
    /// Unknown flags.
    Flags(u32),
    /// It would need so many bytes; the limit covers all maps of a program.
    TooLarge {
        /// What it would need.
        bytes: u64,
        /// What is left of the limit.
        limit: u64,
    },
    /// A map of maps that does not say what the inner maps look like.
    NoInnerMap,
    /// Its definition is not understood: why.
    Definition(&'static str),
    /// An initial value names something that there isn't, or does not fit.
    InitialValue(String),
}

impl fmt::Display for MapProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(number) => match MapType::kernel_name(*number) {
                Some(name) => write!(f, "type {number} BPF_MAP_TYPE_{name} is not supported"),
                None => write!(f, "type {number} is not supported"),
            },
            Self::NoMaxEntries => f.write_str("has max_entries 0"),
            Self::KeySize(bytes) => write!(f, "a key of {bytes} bytes does not go with its type"),
            Self::ValueSize(bytes) => write!(f, "a value of {bytes} bytes does not go with its type"),
            Self::MaxEntries(entries) => write!(f, "{entries} entries do not go with its type"),
            Self::Flags(flags) => write!(f, "flags {flags:#x} are not supported"),
            Self::TooLarge { bytes, limit } => write!(f, "needs {bytes} bytes, and {limit} are left for maps"),
            Self::NoInnerMap => f.write_str("does not say what its inner maps are"),
            Self::Definition(why) => write!(f, "the definition is not understood: {why}"),
            Self::InitialValue(name) => write!(f, "the initial value {name} can't be stored"),
        }
    }
}

/// What is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ProblemKind {
    /// An instruction.
    Insn(InsnProblem),
    /// A map.
    Map {
        /// Its name.
        name: String,
        /// Why.
        problem: MapProblem,
    },
    /// Relocations against the running kernel's types.
    CoreRelocations(usize),
    /// A program or function longer than a million instructions, or empty.
    Length(usize),
    /// The object has no such program; these are there.
    NoSuchProgram(Vec<String>),
    /// Several programs, and none was chosen.
    ChooseProgram(Vec<String>),
    /// The object has no such global variable.
    NoSuchGlobal(String),
    /// A global's value has another size.
    GlobalSize {
        /// The variable.
        name: String,
        /// Its size in bytes.
        is: usize,
        /// What was given.
        given: usize,
    },
    /// Entries were set for a map that isn't used by the program.
    NoSuchMap(String),
    /// A data section holds pointers, which libbpf does not relocate either.
    DataRelocations(String),
}

/// One thing that is wrong, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The program that was asked for; empty if none was.
    pub program: String,
    /// Its section.
    pub section: String,
    /// The function, if it isn't the program's own.
    pub function: Option<String>,
    /// Instruction, counted from its function's first.
    pub insn: Option<usize>,
    /// Its source line.
    pub line: Option<SourceLine>,
    /// What it is.
    pub kind: ProblemKind,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.program.is_empty() {
            write!(f, "program {} (section {})", self.program, self.section)?;
            if let Some(function) = &self.function {
                write!(f, ", function {function}")?;
            }
            let of_the_program = matches!(
                self.kind,
                ProblemKind::CoreRelocations(_) | ProblemKind::Length(_) | ProblemKind::NoSuchProgram(_)
            );
            f.write_str(if of_the_program { " " } else { ": " })?;
        }
        if let Some(insn) = self.insn {
            write!(f, "insn {insn} ")?;
            if let Some(line) = &self.line {
                write!(f, "({line}) ")?;
            }
        }
        match &self.kind {
            ProblemKind::Insn(problem) => write!(f, "{problem}"),
            ProblemKind::Map { name, problem } => match problem {
                MapProblem::NoMaxEntries => write!(f, "map {name} {problem}: set it with --map-size {name}=N"),
                _ => write!(f, "map {name}: {problem}"),
            },
            ProblemKind::CoreRelocations(count) => write!(f, "has {count} CO-RE relocations; not supported"),
            ProblemKind::Length(insns) => write!(f, "has {insns} instructions; 1 to 1000000 are possible"),
            ProblemKind::NoSuchProgram(there) => write!(f, "is not in the object; it has {}", there.join(", ")),
            ProblemKind::ChooseProgram(there) => write!(f, "choose one of the programs {}", there.join(", ")),
            ProblemKind::NoSuchGlobal(name) => write!(f, "has no global variable {name}"),
            ProblemKind::GlobalSize { name, is, given } => {
                write!(f, "has the global variable {name} of {is} bytes, and {given} were given")
            }
            ProblemKind::NoSuchMap(name) => write!(f, "uses no map {name}"),
            ProblemKind::DataRelocations(section) => {
                write!(f, "uses {section}, which holds pointers; they are not supported")
            }
        }
    }
}

/// A program that can't be loaded: every reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadError {
    /// The object's name.
    pub object: String,
    /// At least one.
    pub problems: Vec<Problem>,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}: {problem}", self.object)?;
        }
        Ok(())
    }
}

impl core::error::Error for LoadError {}

/// A file that is no BPF object at all.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ObjectProblem {
    /// No ELF file for BPF, or not a relocatable one.
    NotBpf,
    /// A BPF object of the other byte order.
    BigEndian,
    /// The ELF structure is broken: where.
    Elf(&'static str),
    /// A section of more than 64 MiB.
    SectionSize(String),
    /// The debug information of types is broken, and maps can't be read without it.
    Btf(&'static str),
}

/// A file that is no BPF object, by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectError {
    /// The object's name.
    pub object: String,
    /// What is wrong with it.
    pub problem: ObjectProblem,
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.object)?;
        match &self.problem {
            ObjectProblem::NotBpf => f.write_str("not an EM_BPF object (compile with clang -O2 -g -target bpf)"),
            ObjectProblem::BigEndian => {
                f.write_str("big-endian BPF object; only little-endian ones run here (clang -target bpfel)")
            }
            ObjectProblem::Elf(what) => write!(f, "broken ELF file: {what}"),
            ObjectProblem::SectionSize(name) => write!(f, "section {name} is larger than 64 MiB"),
            ObjectProblem::Btf(what) => write!(f, "broken BTF: {what}"),
        }
    }
}

impl core::error::Error for ObjectError {}
