//! Objects as clang writes them: what programs they have, and a VM made from one of them.
//!
//! One broken or unsupported program does not spoil an object: only what the chosen program can reach is linked and
//! checked, as `libbpf` would with the others' autoload off.

mod btf;
mod bytes;
mod elf;
mod link;
mod maps;

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use btf::{Btf, BtfExt};
use elf::{Elf, Kind};
use link::Linker;
use maps::Definition;

use crate::error::{LoadError, ObjectError, ObjectProblem, Problem, ProblemKind};
use crate::helper::Helper;
use crate::op::Span;
use crate::vm::{Settings, Vm};

/// A function of the object.
#[derive(Clone, Debug)]
struct FunctionDef {
    name: String,
    section: usize,
    /// In slots of its section.
    span: Span,
}

/// A parsed object.
#[derive(Debug)]
pub struct XdpObject<'a> {
    name: String,
    elf: Elf<'a>,
    functions: Vec<FunctionDef>,
    maps: Vec<Definition>,
    ext: BtfExt,
    license: String,
}

/// What an object says of one of its programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramInfo {
    /// Its name.
    pub name: String,
    /// Its section.
    pub section: String,
    /// Instructions, called functions included.
    pub insns: usize,
    /// Maps that it uses, data sections included.
    pub maps: Vec<String>,
    /// Helpers that it calls, whether or not they are here, by number.
    pub helpers: Vec<i32>,
    /// What keeps it from being loaded as it is.
    pub problems: Vec<Problem>,
}

impl<'a> XdpObject<'a> {
    /// Read an object. `name` is for messages.
    ///
    /// # Errors
    /// [`ObjectError`] if it isn't a BPF object at all; what is wrong with single programs comes later.
    pub fn parse(name: &str, file: &'a [u8]) -> Result<Self, ObjectError> {
        let refuse = |problem| ObjectError { object: name.to_string(), problem };
        let elf = Elf::parse(file).map_err(refuse)?;
        let section = |name: &str| elf.section(name).map(|section| section.data);
        let btf = match section(".BTF") {
            Some(data) => Btf::parse(data).map_err(|why| refuse(ObjectProblem::Btf(why)))?,
            None => Btf::default(),
        };
        let ext = section(".BTF.ext").map_or_else(BtfExt::default, |data| BtfExt::parse(data, &btf));
        let license = section("license").unwrap_or(&[]);
        let license = license.split(|byte| *byte == 0).next().unwrap_or(&[]);
        let license = String::from_utf8_lossy(license).into_owned();
        let maps = maps::definitions(&elf, &btf);
        Ok(Self { name: name.to_string(), functions: functions(&elf), maps, ext, license, elf })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The license that it declares.
    pub fn license(&self) -> &str {
        &self.license
    }

    /// All programs, with what they need and what is in their way.
    pub fn programs(&self) -> Vec<ProgramInfo> {
        self.program_functions().map(|function| self.info(function)).collect()
    }

    /// Functions outside of `.text`; if there are none, those in it.
    fn program_functions(&self) -> impl Iterator<Item = usize> + '_ {
        let in_text = |function: &FunctionDef| self.elf.sections[function.section].name == ".text";
        let only_text = self.functions.iter().all(in_text);
        (0..self.functions.len()).filter(move |at| only_text || !in_text(&self.functions[*at]))
    }

    fn info(&self, function: usize) -> ProgramInfo {
        let loader = Loader::new();
        let mut linker = Linker::new(self, &loader);
        linker.link(function);
        let (mut linked, mut problems) = linker.finish();
        linked.check(&loader.settings, &mut problems);
        let calls = linked.code.iter().filter(|raw| raw.is_helper_call());
        let mut helpers: Vec<i32> = calls.map(|raw| raw.imm).collect();
        helpers.sort_unstable();
        helpers.dedup();
        ProgramInfo {
            name: self.functions[function].name.clone(),
            section: self.elf.sections[self.functions[function].section].name.clone(),
            insns: linked.code.len(),
            maps: linked.maps.iter().map(|spec| spec.name.clone()).collect(),
            helpers,
            problems,
        }
    }

    /// Global variables by name, with their size in bytes.
    pub fn globals(&self) -> Vec<(String, usize)> {
        let data = self.elf.symbols.iter().filter(|symbol| {
            symbol.kind == Kind::Data && symbol.section.is_some_and(|section| self.elf.sections[section].is_data())
        });
        data.map(|symbol| (symbol.name.clone(), symbol.size as usize)).collect()
    }

    /// The data section, offset and size of a global variable.
    fn global(&self, name: &str) -> Option<(usize, usize, usize)> {
        let symbol = self.elf.symbols.iter().find(|symbol| {
            let data = symbol.section.is_some_and(|section| self.elf.sections[section].is_data());
            symbol.name == name && symbol.kind == Kind::Data && data
        })?;
        Some((symbol.section?, symbol.value.try_into().ok()?, symbol.size.try_into().ok()?))
    }
}

/// Functions by section and place.
fn functions(elf: &Elf<'_>) -> Vec<FunctionDef> {
    const SLOT: u64 = 8;
    let mut found: Vec<FunctionDef> = Vec::new();
    for (section, content) in elf.sections.iter().enumerate().filter(|(_, content)| content.executable) {
        let mut starts: Vec<_> = elf
            .symbols
            .iter()
            .filter(|symbol| symbol.section == Some(section) && symbol.kind == Kind::Function)
            .filter(|symbol| symbol.value.is_multiple_of(SLOT) && symbol.value < content.data.len() as u64)
            .collect();
        starts.sort_by_key(|symbol| symbol.value);
        starts.dedup_by_key(|symbol| symbol.value);
        for (at, symbol) in starts.iter().enumerate() {
            // Functions do not overlap: a forged size ends where the next one begins.
            let next = starts.get(at + 1).map_or(content.data.len() as u64, |next| next.value);
            let len = if symbol.size == 0 { next - symbol.value } else { symbol.size.min(next - symbol.value) };
            let span = Span { start: (symbol.value / SLOT) as usize, len: (len / SLOT) as usize };
            found.push(FunctionDef { name: symbol.name.clone(), section, span });
        }
    }
    found
}

/// How a program is loaded.
///
/// ```
/// # let file = include_bytes!("../../programs/filter.o");
/// # let object = xdp_vm::XdpObject::parse("filter.o", file).unwrap();
/// let mut vm = xdp_vm::Loader::new()
///     .program("filter")
///     .global("drop_unknown", &1u32.to_le_bytes())
///     .max_entries("flows", 64)
///     .cpus(4)
///     .seed(7)
///     .load(&object)
///     .expect("all of it is there");
/// vm.map_mut("flows").expect("by name").update(&[0; 16], &[0; 16], xdp_vm::ANY).expect("room for 64");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Loader {
    program: Option<String>,
    also: Vec<String>,
    globals: Vec<(String, Vec<u8>)>,
    max_entries: Vec<(String, u32)>,
    settings: Settings,
}

impl Loader {
    /// The object's only program, one CPU, everything else as the object has it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Choose a program by its function's name.
    #[must_use]
    pub fn program(mut self, name: &str) -> Self {
        self.program = Some(name.to_string());
        self
    }

    /// Load another program beside it: for program arrays, device and CPU maps.
    #[must_use]
    pub fn also(mut self, name: &str) -> Self {
        self.also.push(name.to_string());
        self
    }

    /// Set a global variable, `const volatile` ones too.
    #[must_use]
    pub fn global(mut self, name: &str, value: &[u8]) -> Self {
        self.globals.push((name.to_string(), value.to_vec()));
        self
    }

    /// Set a map's number of entries.
    #[must_use]
    pub fn max_entries(mut self, map: &str, entries: u32) -> Self {
        self.max_entries.push((map.to_string(), entries));
        self
    }

    /// CPUs.
    #[must_use]
    pub fn cpus(mut self, cpus: u32) -> Self {
        self.settings.cpus = cpus;
        self
    }

    /// Where random numbers begin.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Most instructions of one run.
    #[must_use]
    pub fn insns_max(mut self, insns: u64) -> Self {
        self.settings.insns_max = insns;
        self
    }

    /// Most bytes of all maps together.
    #[must_use]
    pub fn map_bytes_max(mut self, bytes: u64) -> Self {
        self.settings.map_bytes_max = bytes;
        self
    }

    /// Make a VM of a program.
    ///
    /// # Errors
    /// [`LoadError`] with everything that is wrong.
    pub fn load(&self, object: &XdpObject<'_>) -> Result<Vm, LoadError> {
        let refuse = |problems| LoadError { object: object.name.clone(), problems };
        let mut problems = Vec::new();
        let chosen = self.choose(object).map_err(refuse)?;
        let mut linker = Linker::new(object, self);
        linker.link(chosen);
        for name in &self.also {
            match object.program_functions().find(|at| object.functions[*at].name == *name) {
                Some(function) => linker.link(function),
                None => problems.push(self.no_such(object, name)),
            }
        }
        let (linked, found) = linker.finish();
        problems.extend(found);
        problems.extend(self.unknown_names(object));
        // All at once: what linking found does not keep the rest from being looked at.
        let vm = Vm::assemble(linked, self.settings, &mut problems);
        vm.filter(|_| problems.is_empty()).ok_or_else(|| refuse(problems))
    }

    /// The program that was named, or the only one, or the only one for XDP.
    fn choose(&self, object: &XdpObject<'_>) -> Result<usize, Vec<Problem>> {
        if let Some(name) = &self.program {
            // In `.text` too, if that is what was asked for.
            let by_name = |at: &usize| object.functions[*at].name == *name;
            let found = object.program_functions().chain(0..object.functions.len()).find(by_name);
            return found.ok_or_else(|| vec![self.no_such(object, name)]);
        }
        let all: Vec<usize> = object.program_functions().collect();
        let for_xdp = |at: &&usize| object.elf.sections[object.functions[**at].section].name.starts_with("xdp");
        let xdp: Vec<&usize> = all.iter().filter(for_xdp).collect();
        match (all.as_slice(), xdp.as_slice()) {
            ([only], _) => Ok(*only),
            (_, [only]) => Ok(**only),
            _ => Err(vec![plain(ProblemKind::ChooseProgram(names(object)))]),
        }
    }

    fn no_such(&self, object: &XdpObject<'_>, name: &str) -> Problem {
        Problem {
            program: name.to_string(),
            section: "?".to_string(),
            ..plain(ProblemKind::NoSuchProgram(names(object)))
        }
    }

    /// Globals and maps that were set and aren't in the object.
    fn unknown_names(&self, object: &XdpObject<'_>) -> Vec<Problem> {
        let globals = self.globals.iter().filter_map(|(name, value)| match object.global(name) {
            None => Some(ProblemKind::NoSuchGlobal(name.clone())),
            Some((_, _, is)) if is != value.len() => {
                Some(ProblemKind::GlobalSize { name: name.clone(), is, given: value.len() })
            }
            Some(_) => None,
        });
        let maps = self.max_entries.iter().filter_map(|(name, _)| {
            let known = object.maps.iter().any(|map| map.name == *name);
            (!known).then(|| ProblemKind::NoSuchMap(name.clone()))
        });
        globals.chain(maps).map(plain).collect()
    }
}

fn names(object: &XdpObject<'_>) -> Vec<String> {
    object.program_functions().map(|at| object.functions[at].name.clone()).collect()
}

/// A problem of the object, of no program in particular.
fn plain(kind: ProblemKind) -> Problem {
    Problem { program: String::new(), section: String::new(), function: None, insn: None, line: None, kind }
}

impl ProgramInfo {
    /// Helpers that it calls and that aren't here.
    pub fn missing_helpers(&self) -> impl Iterator<Item = i32> + '_ {
        self.helpers.iter().copied().filter(|id| Helper::from_id(*id).is_none())
    }
}
