//! Instructions in the form that the interpreter runs: decoded and checked once, at load.
//!
//! Jumps hold where they go, immediates are extended, and each operation with each kind of operand is an entry of its own
//! in one dense enum, so that running an instruction is one table jump. Slots keep their numbers: instruction `n` of a
//! function is slot `n` here as there, and what a fault names can be found in the listing.

use crate::bytecode::{LDDW, RawInsn, alu, atomic, class, jump, mode, pseudo};
use crate::error::InsnProblem;
use crate::helper::Helper;

/// What an instruction does. `64` and `32` are the width, `Imm` and `Reg` the second operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Op {
    Add64Imm,
    Add64Reg,
    Add32Imm,
    Add32Reg,
    Sub64Imm,
    Sub64Reg,
    Sub32Imm,
    Sub32Reg,
    Mul64Imm,
    Mul64Reg,
    Mul32Imm,
    Mul32Reg,
    Div64Imm,
    Div64Reg,
    Div32Imm,
    Div32Reg,
    SDiv64Imm,
    SDiv64Reg,
    SDiv32Imm,
    SDiv32Reg,
    Or64Imm,
    Or64Reg,
    Or32Imm,
    Or32Reg,
    And64Imm,
    And64Reg,
    And32Imm,
    And32Reg,
    Lsh64Imm,
    Lsh64Reg,
    Lsh32Imm,
    Lsh32Reg,
    Rsh64Imm,
    Rsh64Reg,
    Rsh32Imm,
    Rsh32Reg,
    Mod64Imm,
    Mod64Reg,
    Mod32Imm,
    Mod32Reg,
    SMod64Imm,
    SMod64Reg,
    SMod32Imm,
    SMod32Reg,
    Xor64Imm,
    Xor64Reg,
    Xor32Imm,
    Xor32Reg,
    Mov64Imm,
    Mov64Reg,
    Mov32Imm,
    Mov32Reg,
    Arsh64Imm,
    Arsh64Reg,
    Arsh32Imm,
    Arsh32Reg,
    Neg64,
    Neg32,
    MovSx64From8,
    MovSx64From16,
    MovSx64From32,
    MovSx32From8,
    MovSx32From16,
    ToBe16,
    ToBe32,
    ToBe64,
    ToLe16,
    ToLe32,
    ToLe64,
    Swap16,
    Swap32,
    Swap64,
    Ja,
    Jeq64Imm,
    Jeq64Reg,
    Jeq32Imm,
    Jeq32Reg,
    Jgt64Imm,
    Jgt64Reg,
    Jgt32Imm,
    Jgt32Reg,
    Jge64Imm,
    Jge64Reg,
    Jge32Imm,
    Jge32Reg,
    Jset64Imm,
    Jset64Reg,
    Jset32Imm,
    Jset32Reg,
    Jne64Imm,
    Jne64Reg,
    Jne32Imm,
    Jne32Reg,
    Jsgt64Imm,
    Jsgt64Reg,
    Jsgt32Imm,
    Jsgt32Reg,
    Jsge64Imm,
    Jsge64Reg,
    Jsge32Imm,
    Jsge32Reg,
    Jlt64Imm,
    Jlt64Reg,
    Jlt32Imm,
    Jlt32Reg,
    Jle64Imm,
    Jle64Reg,
    Jle32Imm,
    Jle32Reg,
    Jslt64Imm,
    Jslt64Reg,
    Jslt32Imm,
    Jslt32Reg,
    Jsle64Imm,
    Jsle64Reg,
    Jsle32Imm,
    Jsle32Reg,
    Load8,
    Load16,
    Load32,
    Load64,
    LoadSx8,
    LoadSx16,
    LoadSx32,
    StoreImm8,
    StoreImm16,
    StoreImm32,
    StoreImm64,
    Store8,
    Store16,
    Store32,
    Store64,
    Atomic32,
    Atomic64,
    LoadImm64,
    Second,
    CallHelper,
    CallLocal,
    Exit,
}

/// One slot: 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Insn {
    pub(crate) op: Op,
    pub(crate) dst: u8,
    pub(crate) src: u8,
    /// A jump's or call's target as a slot of the whole code, or the offset of an access.
    pub(crate) off: i32,
    /// Immediate, as wide as the operation: sign-extended for 64 bits, zero-extended for 32. Of a helper call the
    /// [`Helper`], of an atomic the operation.
    pub(crate) imm: i64,
}

/// Where a function lies in the linked code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) len: usize,
}

/// Decode instruction `at` of the linked code, within its function.
///
/// `resolve` turns the pseudo sources of 64-bit loads into addresses.
pub(crate) fn decode(
    code: &[RawInsn],
    at: usize,
    function: Span,
    resolve: &dyn Fn(RawInsn, RawInsn, usize) -> Result<u64, InsnProblem>,
    starts: &dyn Fn(i64) -> bool,
) -> Result<Insn, InsnProblem> {
    let raw = code[at];
    let plain = |op, imm| Insn { op, dst: raw.dst, src: raw.src, off: i32::from(raw.off), imm };
    if raw.dst > 10 {
        return Err(InsnProblem::Register(raw.dst));
    }
    match raw.class() {
        class::ALU | class::ALU64 => {
            let op = decode_alu(raw)?;
            if raw.dst == 10 {
                return Err(InsnProblem::WritesFramePointer);
            }
            register(raw, raw.by_register() && raw.operation() != alu::END)?;
            let imm = if raw.class() == class::ALU64 { i64::from(raw.imm) } else { i64::from(raw.imm.cast_unsigned()) };
            Ok(plain(op, imm))
        }
        class::JMP | class::JMP32 => decode_jump(raw, at, function, starts),
        class::LD => {
            if raw.code != LDDW {
                return Err(match raw.mode() {
                    mode::ABS | mode::IND => InsnProblem::LegacyPacketAccess,
                    _ => InsnProblem::Opcode(raw.code),
                });
            }
            let next = code.get(at + 1).filter(|_| at + 1 < function.start + function.len);
            let next = *next.ok_or(InsnProblem::HalfImmediate)?;
            if (next.code, next.dst, next.src, next.off, raw.off) != (0, 0, 0, 0, 0) {
                return Err(InsnProblem::HalfImmediate);
            }
            if raw.dst == 10 {
                return Err(InsnProblem::WritesFramePointer);
            }
            Ok(Insn { imm: resolve(raw, next, at)?.cast_signed(), ..plain(Op::LoadImm64, 0) })
        }
        class::LDX => {
            let op = match (raw.mode(), raw.access_bytes()) {
                (mode::MEM, 1) => Op::Load8,
                (mode::MEM, 2) => Op::Load16,
                (mode::MEM, 4) => Op::Load32,
                (mode::MEM, _) => Op::Load64,
                (mode::MEMSX, 1) => Op::LoadSx8,
                (mode::MEMSX, 2) => Op::LoadSx16,
                (mode::MEMSX, 4) => Op::LoadSx32,
                _ => return Err(InsnProblem::Opcode(raw.code)),
            };
            register(raw, true)?;
            if raw.dst == 10 {
                return Err(InsnProblem::WritesFramePointer);
            }
            Ok(plain(op, 0))
        }
        class::ST => {
            if raw.mode() != mode::MEM || raw.src != 0 {
                return Err(InsnProblem::Opcode(raw.code));
            }
            let op = by_size(raw, [Op::StoreImm8, Op::StoreImm16, Op::StoreImm32, Op::StoreImm64]);
            Ok(plain(op, i64::from(raw.imm)))
        }
        _ => {
            register(raw, true)?;
            match raw.mode() {
                mode::MEM => Ok(plain(by_size(raw, [Op::Store8, Op::Store16, Op::Store32, Op::Store64]), 0)),
                mode::ATOMIC => decode_atomic(raw).map(|op| plain(op, i64::from(raw.imm))),
                _ => Err(InsnProblem::Opcode(raw.code)),
            }
        }
    }
}

fn by_size(raw: RawInsn, ops: [Op; 4]) -> Op {
    match raw.access_bytes() {
        1 => ops[0],
        2 => ops[1],
        4 => ops[2],
        _ => ops[3],
    }
}

/// A source register that is none, or one that is given where the instruction has no use for it.
fn register(raw: RawInsn, used: bool) -> Result<(), InsnProblem> {
    match used {
        true if raw.src > 10 => Err(InsnProblem::Register(raw.src)),
        false if raw.src != 0 => Err(InsnProblem::Reserved(raw.code)),
        _ => Ok(()),
    }
}

fn decode_atomic(raw: RawInsn) -> Result<Op, InsnProblem> {
    match raw.imm {
        atomic::LOAD_ACQ | atomic::STORE_REL => return Err(InsnProblem::AcquireRelease),
        atomic::XCHG | atomic::CMPXCHG => {}
        imm if matches!(imm & !atomic::FETCH, atomic::ADD | atomic::OR | atomic::AND | atomic::XOR) => {}
        imm => return Err(InsnProblem::Atomic(imm)),
    }
    let fetch = raw.imm & atomic::FETCH != 0 && raw.imm != atomic::CMPXCHG;
    if fetch && raw.src == 10 {
        return Err(InsnProblem::WritesFramePointer);
    }
    match raw.access_bytes() {
        4 => Ok(Op::Atomic32),
        8 => Ok(Op::Atomic64),
        _ => Err(InsnProblem::Opcode(raw.code)),
    }
}

fn decode_alu(raw: RawInsn) -> Result<Op, InsnProblem> {
    let wide = raw.class() == class::ALU64;
    let ops = match (raw.operation(), raw.off) {
        (alu::ADD, 0) => [Op::Add64Imm, Op::Add64Reg, Op::Add32Imm, Op::Add32Reg],
        (alu::SUB, 0) => [Op::Sub64Imm, Op::Sub64Reg, Op::Sub32Imm, Op::Sub32Reg],
        (alu::MUL, 0) => [Op::Mul64Imm, Op::Mul64Reg, Op::Mul32Imm, Op::Mul32Reg],
        (alu::DIV, 0) => [Op::Div64Imm, Op::Div64Reg, Op::Div32Imm, Op::Div32Reg],
        (alu::DIV, 1) => [Op::SDiv64Imm, Op::SDiv64Reg, Op::SDiv32Imm, Op::SDiv32Reg],
        (alu::OR, 0) => [Op::Or64Imm, Op::Or64Reg, Op::Or32Imm, Op::Or32Reg],
        (alu::AND, 0) => [Op::And64Imm, Op::And64Reg, Op::And32Imm, Op::And32Reg],
        (alu::LSH, 0) => [Op::Lsh64Imm, Op::Lsh64Reg, Op::Lsh32Imm, Op::Lsh32Reg],
        (alu::RSH, 0) => [Op::Rsh64Imm, Op::Rsh64Reg, Op::Rsh32Imm, Op::Rsh32Reg],
        (alu::MOD, 0) => [Op::Mod64Imm, Op::Mod64Reg, Op::Mod32Imm, Op::Mod32Reg],
        (alu::MOD, 1) => [Op::SMod64Imm, Op::SMod64Reg, Op::SMod32Imm, Op::SMod32Reg],
        (alu::XOR, 0) => [Op::Xor64Imm, Op::Xor64Reg, Op::Xor32Imm, Op::Xor32Reg],
        (alu::MOV, 0) => [Op::Mov64Imm, Op::Mov64Reg, Op::Mov32Imm, Op::Mov32Reg],
        (alu::ARSH, 0) => [Op::Arsh64Imm, Op::Arsh64Reg, Op::Arsh32Imm, Op::Arsh32Reg],
        (alu::NEG, 0) if !raw.by_register() => return Ok(if wide { Op::Neg64 } else { Op::Neg32 }),
        (alu::END, 0) => return decode_endian(raw, wide),
        (alu::MOV, 1) if wide && raw.by_register() && raw.imm != 0 => return Err(InsnProblem::AddressSpaceCast),
        (alu::MOV, bits) if raw.by_register() => {
            return match (wide, bits) {
                (true, 8) => Ok(Op::MovSx64From8),
                (true, 16) => Ok(Op::MovSx64From16),
                (true, 32) => Ok(Op::MovSx64From32),
                (false, 8) => Ok(Op::MovSx32From8),
                (false, 16) => Ok(Op::MovSx32From16),
                _ => Err(InsnProblem::Reserved(raw.code)),
            };
        }
        (alu::END.., 0) => return Err(InsnProblem::Opcode(raw.code)),
        _ => return Err(InsnProblem::Reserved(raw.code)),
    };
    if raw.by_register() && raw.imm != 0 {
        return Err(InsnProblem::Reserved(raw.code));
    }
    Ok(ops[usize::from(!wide) * 2 + usize::from(raw.by_register())])
}

fn decode_endian(raw: RawInsn, swap: bool) -> Result<Op, InsnProblem> {
    match (swap, raw.by_register(), raw.imm) {
        (true, false, 16) => Ok(Op::Swap16),
        (true, false, 32) => Ok(Op::Swap32),
        (true, false, 64) => Ok(Op::Swap64),
        (false, false, 16) => Ok(Op::ToLe16),
        (false, false, 32) => Ok(Op::ToLe32),
        (false, false, 64) => Ok(Op::ToLe64),
        (false, true, 16) => Ok(Op::ToBe16),
        (false, true, 32) => Ok(Op::ToBe32),
        (false, true, 64) => Ok(Op::ToBe64),
        _ => Err(InsnProblem::Reserved(raw.code)),
    }
}

fn decode_jump(raw: RawInsn, at: usize, function: Span, starts: &dyn Fn(i64) -> bool) -> Result<Insn, InsnProblem> {
    let wide = raw.class() == class::JMP;
    // Slots of a program are at most a million, so neither sum can overflow.
    let target = |distance: i64| {
        let target = at as i64 + 1 + distance;
        let inside = target >= function.start as i64 && target < (function.start + function.len) as i64;
        if inside { Ok(target as i32) } else { Err(InsnProblem::JumpOut(distance)) }
    };
    let insn = |op, off, imm| Ok(Insn { op, dst: raw.dst, src: raw.src, off, imm });
    let ops = match raw.operation() {
        jump::JA if raw.by_register() => return Err(InsnProblem::Opcode(raw.code)),
        jump::JA => return insn(Op::Ja, target(raw.distance())?, 0),
        jump::CALL if !wide => return Err(InsnProblem::Opcode(raw.code)),
        jump::CALL if raw.by_register() => return Err(InsnProblem::IndirectCall),
        jump::CALL => match raw.src {
            0 => {
                let helper = Helper::from_id(raw.imm).ok_or(InsnProblem::Helper(raw.imm))?;
                return insn(Op::CallHelper, 0, helper as i64);
            }
            pseudo::CALL => {
                let target = at as i64 + 1 + i64::from(raw.imm);
                return if starts(target) {
                    insn(Op::CallLocal, target as i32, 0)
                } else {
                    Err(InsnProblem::CallOut(raw.imm))
                };
            }
            pseudo::KFUNC => return Err(InsnProblem::KernelFunction(None)),
            _ => return Err(InsnProblem::Reserved(raw.code)),
        },
        jump::EXIT if wide && !raw.by_register() => return insn(Op::Exit, 0, 0),
        jump::JEQ => [Op::Jeq64Imm, Op::Jeq64Reg, Op::Jeq32Imm, Op::Jeq32Reg],
        jump::JGT => [Op::Jgt64Imm, Op::Jgt64Reg, Op::Jgt32Imm, Op::Jgt32Reg],
        jump::JGE => [Op::Jge64Imm, Op::Jge64Reg, Op::Jge32Imm, Op::Jge32Reg],
        jump::JSET => [Op::Jset64Imm, Op::Jset64Reg, Op::Jset32Imm, Op::Jset32Reg],
        jump::JNE => [Op::Jne64Imm, Op::Jne64Reg, Op::Jne32Imm, Op::Jne32Reg],
        jump::JSGT => [Op::Jsgt64Imm, Op::Jsgt64Reg, Op::Jsgt32Imm, Op::Jsgt32Reg],
        jump::JSGE => [Op::Jsge64Imm, Op::Jsge64Reg, Op::Jsge32Imm, Op::Jsge32Reg],
        jump::JLT => [Op::Jlt64Imm, Op::Jlt64Reg, Op::Jlt32Imm, Op::Jlt32Reg],
        jump::JLE => [Op::Jle64Imm, Op::Jle64Reg, Op::Jle32Imm, Op::Jle32Reg],
        jump::JSLT => [Op::Jslt64Imm, Op::Jslt64Reg, Op::Jslt32Imm, Op::Jslt32Reg],
        jump::JSLE => [Op::Jsle64Imm, Op::Jsle64Reg, Op::Jsle32Imm, Op::Jsle32Reg],
        jump::JCOND => return Err(InsnProblem::MayGoto),
        _ => return Err(InsnProblem::Opcode(raw.code)),
    };
    register(raw, raw.by_register())?;
    let imm = if wide { i64::from(raw.imm) } else { i64::from(raw.imm.cast_unsigned()) };
    insn(ops[usize::from(!wide) * 2 + usize::from(raw.by_register())], target(raw.distance())?, imm)
}
