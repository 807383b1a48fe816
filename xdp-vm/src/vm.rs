//! A loaded program with its maps, ready to run on frames.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use crate::buff::XdpBuff;
use crate::bytecode::{RawInsn, alu, class, jump, pseudo};
use crate::call::Machine;
use crate::coverage::Watch;
#[cfg(feature = "coverage")]
use crate::coverage::{Coverage, CoverageReport, Missed};
use crate::error::{InsnProblem, MapProblem, Problem, ProblemKind, SourceLine};
use crate::fault::{Fault, FaultKind, FaultReport};
use crate::helper::{Helper, gpl_compatible};
use crate::interpret;
use crate::map::{self, Map, MapSpec, MapType};
use crate::memory::{
    FRAME_BYTES, FRAMES, MAPS_MAX, Memory, STACK_BYTES, callback_address, handle_address, value_address,
};
use crate::network::Network;
use crate::op::{self, Insn, Op, Span};
use crate::trace::Trace;
use crate::verdict::{Abort, Outcome, RxMeta, Verdict, action};

/// Most instructions of all functions together.
pub(crate) const INSNS_MAX: usize = 1_000_000;

/// What a VM is made with, apart from the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// CPUs: values of per-CPU maps, and what `bpf_get_smp_processor_id` can answer. At least 1.
    pub cpus: u32,
    /// Where random numbers begin.
    pub seed: u64,
    /// Most instructions of one run.
    pub insns_max: u64,
    /// Most bytes of all maps together.
    pub map_bytes_max: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { cpus: 1, seed: 0, insns_max: 1 << 24, map_bytes_max: 1 << 31 }
    }
}

/// A function of the linked code.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) span: Span,
    /// Bytes below r10 that it uses, as far as its text tells: so many are cleared when it begins.
    pub(crate) stack_bytes: usize,
    /// Instruction from which on a source line holds, ascending.
    pub(crate) lines: Vec<Line>,
}

#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) insn: u32,
    pub(crate) file: Arc<str>,
    pub(crate) line: u32,
}

impl Function {
    /// The source line of an instruction, counted from the function's first.
    pub(crate) fn line(&self, insn: usize) -> Option<SourceLine> {
        let after = self.lines.partition_point(|line| line.insn as usize <= insn);
        let line = &self.lines[after.checked_sub(1)?];
        Some(SourceLine { file: String::from(&*line.file), line: line.line })
    }
}

/// A program: a function that can be started on a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// The section that it was in.
    pub section: String,
    pub(crate) function: u32,
}

/// Functions and maps with all references made numbers, not yet checked.
#[derive(Default)]
pub(crate) struct Linked {
    pub(crate) code: Vec<RawInsn>,
    pub(crate) functions: Vec<Function>,
    pub(crate) programs: Vec<Program>,
    pub(crate) maps: Vec<MapSpec>,
    pub(crate) license: String,
    /// Instructions that linking has already complained of: by slot.
    pub(crate) bad: BTreeSet<usize>,
}

/// A loaded program with its maps.
///
/// ```
/// use xdp_vm::{RawInsn, RxMeta, Settings, Verdict, Vm, XdpBuff};
///
/// // r0 = XDP_DROP; exit
/// let code = [[0xb7, 0, 0, 0, 1, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]].map(RawInsn::from_bytes);
/// let mut vm = Vm::from_bytecode(&code, Vec::new(), Settings::default()).expect("two good instructions");
/// let mut page = [0; 4096];
/// let mut buff = XdpBuff::new(&mut page, 256, 60).expect("room on both sides");
/// assert_eq!(vm.run(&mut buff, &RxMeta::default()).verdict, Verdict::Drop);
/// ```
pub struct Vm {
    code: Vec<Insn>,
    raw: Vec<RawInsn>,
    pub(crate) functions: Vec<Function>,
    programs: Vec<Program>,
    pub(crate) maps: Vec<Map>,
    settings: Settings,
    stack: Vec<u8>,
    calls: interpret::Calls,
    keys: Vec<u8>,
    key: Vec<u8>,
    value: Vec<u8>,
    random: u64,
    trace: Trace,
    network: Network,
    map_bytes: u64,
}

impl core::fmt::Debug for Vm {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Vm").field("programs", &self.programs).field("maps", &self.maps).finish_non_exhaustive()
    }
}

impl Vm {
    /// Bytecode by hand, one program: functions begin where they are called, and a 64-bit load with source register 1 or
    /// 2 names its map by index.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_bytecode(code: &[RawInsn], maps: Vec<MapSpec>, settings: Settings) -> Result<Self, Vec<Problem>> {
        let mut starts = vec![0];
        for (at, raw) in code.iter().enumerate() {
            if raw.refers_to_function() {
                starts.push(at as i64 + 1 + i64::from(raw.imm));
            }
        }
        starts.retain(|start| (0..code.len() as i64).contains(start));
        starts.sort_unstable();
        starts.dedup();
        let ends = starts[1.min(starts.len())..].iter().copied().chain([code.len() as i64]);
        let functions = starts.iter().zip(ends).enumerate().map(|(number, (&start, end))| Function {
            name: format!("f{number}"),
            span: Span { start: start as usize, len: (end - start) as usize },
            stack_bytes: FRAME_BYTES,
            lines: Vec::new(),
        });
        let program = Program { name: String::from("f0"), section: String::from("bytecode"), function: 0 };
        let linked = Linked {
            code: code.to_vec(),
            functions: functions.collect(),
            programs: vec![program],
            maps,
            license: String::from("GPL"),
            bad: BTreeSet::new(),
        };
        let mut problems = Vec::new();
        let vm = Self::assemble(linked, settings, &mut problems);
        vm.filter(|_| problems.is_empty()).ok_or(problems)
    }

    /// Check and decode; `problems` takes what is wrong, and then nothing comes back.
    pub(crate) fn assemble(mut linked: Linked, settings: Settings, problems: &mut Vec<Problem>) -> Option<Self> {
        let settings = Settings { cpus: settings.cpus.max(1), ..settings };
        let (code, map_bytes) = linked.check(&settings, problems);
        if !problems.is_empty() {
            return None;
        }
        let initial: Vec<_> = linked.maps.iter_mut().map(|spec| core::mem::take(&mut spec.initial)).collect();
        let mut vm = Self {
            code,
            raw: linked.code,
            functions: linked.functions,
            programs: linked.programs,
            maps: Vec::with_capacity(linked.maps.len()),
            settings,
            stack: vec![0; STACK_BYTES],
            calls: interpret::Calls::new(),
            // Never empty, so that a key's place can be told from its address.
            keys: vec![0; FRAMES * 8],
            key: Vec::new(),
            value: Vec::new(),
            random: settings.seed,
            trace: Trace::new(),
            network: Network::default(),
            map_bytes,
        };
        linked.maps.into_iter().for_each(|spec| vm.take_map(spec));
        vm.fill(&initial, problems);
        problems.is_empty().then_some(vm)
    }

    /// Entries that definitions give.
    fn fill(&mut self, initial: &[Vec<map::InitialValue>], problems: &mut Vec<Problem>) {
        for (at, entries) in initial.iter().enumerate() {
            for entry in entries {
                let holds_maps = self.maps[at].map_type().holds_maps();
                let number = if holds_maps { self.map_id(&entry.name) } else { self.program_id(&entry.name) };
                let stored = number.and_then(|number| {
                    self.maps[at].update(&entry.key.to_le_bytes(), &number.to_le_bytes(), map::ANY).ok()
                });
                if stored.is_none() {
                    let name = self.maps[at].name().into();
                    let kind = ProblemKind::Map { name, problem: MapProblem::InitialValue(entry.name.clone()) };
                    let Program { name: program, section, .. } = self.programs[0].clone();
                    problems.push(Problem { program, section, function: None, insn: None, line: None, kind });
                }
            }
        }
    }

    /// Run the program that was chosen: number 0.
    pub fn run(&mut self, buff: &mut XdpBuff<'_>, meta: &RxMeta) -> Outcome {
        self.run_program(0, buff, meta)
    }

    /// Run one of the programs. One that there isn't passes every frame.
    pub fn run_program(&mut self, program: u32, buff: &mut XdpBuff<'_>, meta: &RxMeta) -> Outcome {
        self.run_watched(program, buff, meta, &mut ())
    }

    fn run_watched<W: Watch>(&mut self, program: u32, buff: &mut XdpBuff<'_>, meta: &RxMeta, watch: &mut W) -> Outcome {
        let Some(entry) = self.programs.get(program as usize).map(|program| program.function) else {
            return Outcome::new(action::PASS as u32, None, 0);
        };
        let meta = RxMeta { cpu: meta.cpu % self.settings.cpus, ..*meta };
        let mut machine = Machine {
            mem: Memory::new(buff, &mut self.maps, &mut self.stack, &mut self.keys, meta.ifindex, meta.queue),
            programs: &self.programs,
            functions: self.functions.len(),
            key: &mut self.key,
            value: &mut self.value,
            random: &mut self.random,
            trace: &mut self.trace,
            network: &self.network,
            meta,
            redirect: None,
            tail_calls: 0,
            lock: None,
            reserved: false,
        };
        let budget = self.settings.insns_max;
        let ended = interpret::run(&self.code, &self.functions, entry, &mut machine, &mut self.calls, budget, watch);
        let (target, lock, reserved) = (machine.redirect, machine.lock, machine.reserved);
        let insns = budget - ended.as_ref().map_or_else(|stop| stop.left, |end| end.left);
        let left = if reserved { self.close_rings() } else { None };
        let ended = match ended {
            Ok(_) if lock.is_some() => Err((self.exit_of(entry), FaultKind::SpinLock)),
            Ok(end) => match left {
                Some(map) => Err((self.exit_of(entry), FaultKind::ReservationLeft { map })),
                None => Ok(end.value),
            },
            Err(stop) => Err((stop.pc, stop.kind)),
        };
        match ended {
            // The kernel takes the lower half of r0.
            Ok(returned) => Outcome::new(returned as u32, target, insns),
            Err((pc, kind)) => self.faulted(pc, kind, insns),
        }
    }

    fn faulted(&self, pc: usize, kind: FaultKind, insns: u64) -> Outcome {
        let within = |function: &Function| (function.span.start..function.span.start + function.span.len).contains(&pc);
        let function = self.functions.iter().position(within).unwrap_or(0);
        let start = self.functions.get(function).map_or(0, |function| function.span.start);
        // Both are below a million.
        let fault = Fault {
            kind,
            function: function as u32,
            insn: pc.saturating_sub(start) as u32,
            raw: self.raw.get(pc).copied().unwrap_or_default(),
        };
        Outcome { verdict: Verdict::Aborted(Abort::Fault(fault)), returned: 0, insns }
    }

    /// The last instruction of a function, to which faults at the end of a run are put down.
    fn exit_of(&self, function: u32) -> usize {
        self.functions.get(function as usize).map_or(0, |function| function.span.start + function.span.len - 1)
    }

    /// Give up records that were left open; the map of the first.
    fn close_rings(&mut self) -> Option<u32> {
        let mut left = None;
        for (at, map) in self.maps.iter_mut().enumerate() {
            if let Some(ring) = map.ring().filter(|ring| ring.is_open()) {
                ring.discard_open();
                left = left.or(Some(at as u32));
            }
        }
        left
    }

    /// A fault in words: function, instruction, source line, disassembly, and what the address is.
    pub fn describe(&self, fault: Fault) -> FaultReport<'_> {
        FaultReport { vm: self, fault }
    }

    /// Programs, by number: first the one that was chosen, then those that its maps or the loader's user brought.
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// The number of a program, to be put into program arrays; device and CPU maps take it plus one.
    pub fn program_id(&self, name: &str) -> Option<u32> {
        self.programs.iter().position(|program| program.name == name).map(|at| at as u32)
    }

    /// Maps, by number.
    pub fn maps(&self) -> &[Map] {
        &self.maps
    }

    /// The number of a map.
    pub fn map_id(&self, name: &str) -> Option<u32> {
        self.maps.iter().position(|map| map.name() == name).map(|at| at as u32)
    }

    /// A map by name.
    pub fn map(&self, name: &str) -> Option<&Map> {
        self.maps.get(self.map_id(name)? as usize)
    }

    /// A map by name, to change it.
    pub fn map_mut(&mut self, name: &str) -> Option<&mut Map> {
        self.map_mut_by_id(self.map_id(name)?)
    }

    /// A map by number, to change it.
    pub fn map_mut_by_id(&mut self, map: u32) -> Option<&mut Map> {
        self.maps.get_mut(map as usize)
    }

    /// Make another map, to be put into a map of maps by its number.
    ///
    /// # Errors
    /// Why there can't be such a map.
    pub fn add_map(&mut self, spec: MapSpec) -> Result<u32, MapProblem> {
        let left = self.settings.map_bytes_max.saturating_sub(self.map_bytes);
        self.map_bytes += spec.check(self.settings.cpus, left)?;
        if self.maps.len() >= MAPS_MAX {
            return Err(MapProblem::MaxEntries(spec.max_entries));
        }
        self.take_map(spec);
        Ok(self.maps.len() as u32 - 1)
    }

    /// Make a map that was checked, and room for its keys and values outside of it.
    fn take_map(&mut self, spec: MapSpec) {
        let (key_bytes, value_bytes) = (spec.key_size as usize, spec.value_size as usize);
        if key_bytes > self.key.len() {
            self.key.resize(key_bytes, 0);
            self.keys.resize(FRAMES * key_bytes.next_multiple_of(8), 0);
        }
        if value_bytes > self.value.len() {
            self.value.resize(value_bytes, 0);
        }
        self.maps.push(Map::new(spec, self.settings.cpus));
    }

    /// What programs printed.
    pub fn trace(&mut self) -> &mut Trace {
        &mut self.trace
    }

    /// What helpers know of the network.
    pub fn network(&mut self) -> &mut Network {
        &mut self.network
    }

    /// What it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

#[cfg(feature = "coverage")]
impl Vm {
    /// As [`Self::run`], and note which instructions run. Slower.
    pub fn run_covered(&mut self, buff: &mut XdpBuff<'_>, meta: &RxMeta, coverage: &mut Coverage) -> Outcome {
        self.run_watched(0, buff, meta, coverage)
    }

    /// For [`Self::run_covered`]: none has run yet.
    pub fn coverage(&self) -> Coverage {
        Coverage::new(self.code.len())
    }

    /// What has run and what has not, of all functions.
    pub fn covered(&self, coverage: &Coverage) -> CoverageReport {
        let mut report = CoverageReport::default();
        for function in &self.functions {
            let slots = function.span.start..function.span.start + function.span.len;
            for pc in slots.filter(|&pc| self.code.get(pc).is_some_and(|insn| insn.op != Op::Second)) {
                report.insns += 1;
                if !coverage.has(pc) {
                    let insn = pc - function.span.start;
                    let (name, line) = (function.name.clone(), function.line(insn));
                    report.missed.push(Missed { function: name, insn: insn as u32, line });
                }
            }
        }
        report
    }
}

impl Linked {
    /// A problem at an instruction of a function, or of the whole.
    pub(crate) fn problem(&self, function: Option<usize>, insn: Option<usize>, kind: ProblemKind) -> Problem {
        let (program, section) = match self.programs.first() {
            Some(program) => (program.name.clone(), program.section.clone()),
            None => (String::new(), String::new()),
        };
        let at = function.and_then(|function| self.functions.get(function));
        // A second program is said to be the one that has the problem, rather than a function of the first.
        let other = self.programs.iter().find(|program| Some(program.function as usize) == function);
        let (program, section) = other.map_or((program, section), |other| (other.name.clone(), other.section.clone()));
        Problem {
            function: at.map(|function| function.name.clone()).filter(|name| *name != program),
            line: at.zip(insn).and_then(|(function, insn)| function.line(insn)),
            program,
            section,
            insn,
            kind,
        }
    }

    /// Look at everything, and decode; the bytes that maps need. `problems` takes what is wrong.
    pub(crate) fn check(&mut self, settings: &Settings, problems: &mut Vec<Problem>) -> (Vec<Insn>, u64) {
        let insns = self.code.len();
        if insns == 0 || insns > INSNS_MAX {
            problems.push(self.problem(None, None, ProblemKind::Length(insns)));
            return (Vec::new(), 0);
        }
        let mut map_bytes = 0;
        for spec in &self.maps {
            match spec.check(settings.cpus.max(1), settings.map_bytes_max.saturating_sub(map_bytes)) {
                Ok(bytes) => map_bytes += bytes,
                Err(problem) => {
                    let kind = ProblemKind::Map { name: spec.name.clone(), problem };
                    problems.push(self.problem(None, None, kind));
                }
            }
        }
        if self.maps.len() > MAPS_MAX {
            let kind = ProblemKind::Insn(InsnProblem::MapIndex(self.maps.len() as i32));
            problems.push(self.problem(None, None, kind));
        }
        (self.decode(problems), map_bytes)
    }

    /// Decode everything. Instructions that can't be become `Second`, and a problem.
    fn decode(&mut self, problems: &mut Vec<Problem>) -> Vec<Insn> {
        const HOLE: Insn = Insn { op: Op::Second, dst: 0, src: 0, off: 0, imm: 0 };
        let mut code = vec![HOLE; self.code.len()];
        let gpl = gpl_compatible(&self.license);
        for number in 0..self.functions.len() {
            let span = self.functions[number].span;
            let mut at = span.start;
            let end = span.start + span.len;
            let mut last = None;
            while at < end {
                let raw = self.code[at];
                last = Some(at);
                let decoded = if self.bad.contains(&at) { Ok(HOLE) } else { self.decode_one(at, span, gpl) };
                match decoded {
                    Ok(insn) => code[at] = insn,
                    Err(problem) => {
                        problems.push(self.problem(Some(number), Some(at - span.start), ProblemKind::Insn(problem)))
                    }
                }
                at += raw.slots();
            }
            self.check_flow(number, &code, last, problems);
            self.functions[number].stack_bytes = self.stack_bytes(number);
        }
        code
    }

    fn decode_one(&self, at: usize, span: Span, gpl: bool) -> Result<Insn, InsnProblem> {
        let starts = |target: i64| self.function_at(target).is_some();
        let resolve = |raw: RawInsn, next: RawInsn, at: usize| self.resolve(raw, next, at);
        let mut insn = op::decode(&self.code, at, span, &resolve, &starts)?;
        if insn.op == Op::CallLocal {
            let function = self.function_at(i64::from(insn.off));
            // Just seen to be a start.
            insn.imm = function.unwrap_or(0) as i64;
        }
        if insn.op == Op::CallHelper {
            let refused = Helper::from_id(insn.imm as i32).filter(|helper| helper.gpl_only() && !gpl);
            if let Some(helper) = refused {
                return Err(InsnProblem::GplHelper(helper.id(), self.license.clone()));
            }
        }
        Ok(insn)
    }

    /// The function that begins at a slot. They lie one behind the other.
    fn function_at(&self, slot: i64) -> Option<usize> {
        let slot = usize::try_from(slot).ok()?;
        self.functions.binary_search_by_key(&slot, |function| function.span.start).ok()
    }

    /// The value of a 64-bit load.
    fn resolve(&self, raw: RawInsn, next: RawInsn, at: usize) -> Result<u64, InsnProblem> {
        let map = || {
            let spec = usize::try_from(raw.imm).ok().and_then(|map| self.maps.get(map));
            spec.map(|spec| (raw.imm.cast_unsigned(), spec)).ok_or(InsnProblem::MapIndex(raw.imm))
        };
        match raw.src {
            0 => Ok(u64::from(raw.imm.cast_unsigned()) | u64::from(next.imm.cast_unsigned()) << 32),
            pseudo::MAP => Ok(handle_address(map()?.0)),
            pseudo::MAP_VALUE => {
                let (map, spec) = map()?;
                let offset = next.imm.cast_unsigned();
                // Only arrays have a value at a known place.
                if spec.map_type != MapType::Array || offset >= spec.value_size {
                    return Err(InsnProblem::ValueOffset(offset));
                }
                Ok(value_address(map, u64::from(offset)))
            }
            pseudo::FUNC => {
                let target = at as i64 + 1 + i64::from(raw.imm);
                let function = self.function_at(target);
                function.map(|function| callback_address(function as u32)).ok_or(InsnProblem::CallOut(raw.imm))
            }
            source => Err(InsnProblem::PseudoSource(source)),
        }
    }

    /// Jumps land on instructions, and the last one does not run on.
    fn check_flow(&self, number: usize, code: &[Insn], last: Option<usize>, problems: &mut Vec<Problem>) {
        let span = self.functions[number].span;
        let mut at = span.start;
        let mut second = vec![false; span.len];
        while at < span.start + span.len {
            let slots = self.code[at].slots();
            if slots == 2 && at + 1 < span.start + span.len {
                second[at + 1 - span.start] = true;
            }
            at += slots;
        }
        for at in span.start..span.start + span.len {
            let raw = self.code[at];
            let jumps = matches!(raw.class(), class::JMP | class::JMP32)
                && !matches!(raw.operation(), jump::CALL | jump::EXIT)
                && !second[at - span.start]
                && code[at].op != Op::Second;
            if jumps && second[code[at].off as usize - span.start] {
                let kind = ProblemKind::Insn(InsnProblem::JumpOut(raw.distance()));
                problems.push(self.problem(Some(number), Some(at - span.start), kind));
            }
        }
        let ends = last.is_some_and(|last| matches!(code[last].op, Op::Exit | Op::Ja) || self.bad.contains(&last));
        if !ends {
            let last = last.map(|last| last - span.start);
            problems.push(self.problem(Some(number), last, ProblemKind::Insn(InsnProblem::FallsOff)));
        }
    }

    /// How far down a function uses its stack. A pointer that is made any other way than clang makes them could go
    /// anywhere. The verifier lets nobody read what was not written, so this is of matter to programs by hand only.
    fn stack_bytes(&self, number: usize) -> usize {
        let span = self.functions[number].span;
        let code = &self.code[span.start..span.start + span.len];
        let mut lowest = 0;
        for (at, raw) in code.iter().enumerate() {
            let access = matches!(raw.class(), class::LDX | class::ST | class::STX);
            let base = if raw.class() == class::LDX { raw.src } else { raw.dst };
            let other = if raw.class() == class::LDX { raw.dst } else { raw.src };
            let offset = match raw.class() {
                _ if raw.dst != 10 && raw.src != 10 => continue,
                _ if access && base == 10 && other != 10 => i32::from(raw.off),
                class::ALU64 if raw.operation() == alu::MOV && raw.off == 0 => {
                    let add = |next: &&RawInsn| next.code == class::ALU64 | alu::ADD && next.dst == raw.dst;
                    match code.get(at + 1).filter(add) {
                        Some(next) => next.imm,
                        None => return FRAME_BYTES,
                    }
                }
                _ => return FRAME_BYTES,
            };
            lowest = lowest.min(offset);
        }
        FRAME_BYTES.min(lowest.unsigned_abs() as usize)
    }
}
