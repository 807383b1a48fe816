//! The interpreter: one table jump for each instruction, nothing allocated, every access checked.

use crate::bytecode::atomic;
use crate::call::{Flow, Machine};
use crate::coverage::Watch;
use crate::fault::FaultKind;
use crate::helper::Helper;
use crate::memory::{CONTEXT, FRAME_BYTES, FRAMES, STACK, handle_address, value_address};
use crate::op::{Insn, Op};
use crate::vm::Function;

/// Registers: 11, and 5 more so that a register number, which has 4 bits, needs no check.
type Registers = [u64; 16];

/// Who is returned to.
#[derive(Clone, Copy)]
enum Caller {
    /// A function.
    Function,
    /// `bpf_loop`, in call `index` of `count`.
    Loop { function: u32, index: u64, count: u64, context: u64 },
    /// `bpf_for_each_map_elem`, at `slot` on call number `done`.
    Each { function: u32, map: u32, slot: u32, done: u64, context: u64 },
}

/// What a call keeps: r6 to r9 and where it came from.
#[derive(Clone, Copy)]
struct Frame {
    caller: Caller,
    return_pc: usize,
    saved: [u64; 4],
}

const NO_FRAME: Frame = Frame { caller: Caller::Function, return_pc: 0, saved: [0; 4] };

/// The functions that run now. Kept between runs, so that it needs no setting up.
pub(crate) struct Calls {
    frames: [Frame; FRAMES],
    /// Frames below the one that runs.
    depth: usize,
}

impl Calls {
    pub(crate) fn new() -> Self {
        Self { frames: [NO_FRAME; FRAMES], depth: 0 }
    }
}

/// Where and why running ended before its time.
pub(crate) struct Stop {
    pub(crate) pc: usize,
    pub(crate) kind: FaultKind,
    /// Of the budget.
    pub(crate) left: u64,
}

/// How it ended in time.
pub(crate) struct Return {
    /// r0.
    pub(crate) value: u64,
    /// Of the budget.
    pub(crate) left: u64,
}

/// Run from the start of a function until it returns, for at most `budget` instructions.
pub(crate) fn run<W: Watch>(
    code: &[Insn],
    functions: &[Function],
    entry: u32,
    machine: &mut Machine<'_, '_>,
    calls: &mut Calls,
    budget: u64,
    watch: &mut W,
) -> Result<Return, Stop> {
    // In a variable of its own: it is counted down by each instruction.
    let mut left = budget;
    let mut regs: Registers = [0; 16];
    calls.depth = 0;
    regs[1] = CONTEXT;
    let mut pc = enter(&mut regs, calls, functions, entry, machine);
    loop {
        // Decoding lets no function run on beyond its end.
        let Some(insn) = code.get(pc) else { return Err(Stop { pc, kind: FaultKind::Budget, left }) };
        if left == 0 {
            return Err(Stop { pc, kind: FaultKind::Budget, left });
        }
        left -= 1;
        watch.at(pc);
        let here = pc;
        pc += 1;
        macro_rules! dst {
            () => {
                regs[usize::from(insn.dst & 15)]
            };
        }
        macro_rules! src {
            () => {
                regs[usize::from(insn.src & 15)]
            };
        }
        // 32-bit operations clear the upper half of their result.
        macro_rules! imm64 {
            ($f:expr) => {
                dst!() = $f(dst!(), insn.imm.cast_unsigned())
            };
        }
        macro_rules! reg64 {
            ($f:expr) => {
                dst!() = $f(dst!(), src!())
            };
        }
        macro_rules! imm32 {
            ($f:expr) => {
                dst!() = u64::from($f(dst!() as u32, insn.imm as u32))
            };
        }
        macro_rules! reg32 {
            ($f:expr) => {
                dst!() = u64::from($f(dst!() as u32, src!() as u32))
            };
        }
        macro_rules! jump64 {
            (imm, $f:expr) => {
                if condition(dst!(), insn.imm.cast_unsigned(), $f) {
                    pc = insn.off as usize;
                }
            };
            (reg, $f:expr) => {
                if condition(dst!(), src!(), $f) {
                    pc = insn.off as usize;
                }
            };
        }
        macro_rules! jump32 {
            (imm, $f:expr) => {
                if condition(dst!() as u32, insn.imm as u32, $f) {
                    pc = insn.off as usize;
                }
            };
            (reg, $f:expr) => {
                if condition(dst!() as u32, src!() as u32, $f) {
                    pc = insn.off as usize;
                }
            };
        }
        macro_rules! fault {
            ($result:expr) => {
                match $result {
                    Ok(value) => value,
                    Err(kind) => return Err(Stop { pc: here, kind, left }),
                }
            };
        }
        // What an access that fails was about is found out apart, so that one that works stays in registers.
        macro_rules! loaded {
            ($address:expr) => {{
                let address = $address;
                let Some(bytes) = machine.mem.get(address) else {
                    return Err(Stop { pc: here, kind: machine.mem.violation(address, width(insn.op), false), left });
                };
                bytes
            }};
        }
        macro_rules! stored {
            ($address:expr, $bytes:expr) => {{
                let address = $address;
                if !machine.mem.set(address, $bytes) {
                    return Err(Stop { pc: here, kind: machine.mem.violation(address, width(insn.op), true), left });
                }
            }};
        }
        macro_rules! load {
            ($unsigned:ty) => {
                dst!() = u64::from(<$unsigned>::from_le_bytes(loaded!(offset(src!(), insn))))
            };
        }
        macro_rules! load_signed {
            ($signed:ty) => {{
                let value = <$signed>::from_le_bytes(loaded!(offset(src!(), insn)));
                dst!() = i64::from(value).cast_unsigned();
            }};
        }
        macro_rules! store {
            ($unsigned:ty, $value:expr) => {
                stored!(offset(dst!(), insn), ($value as $unsigned).to_le_bytes())
            };
        }
        match insn.op {
            Op::Add64Imm => imm64!(u64::wrapping_add),
            Op::Add64Reg => reg64!(u64::wrapping_add),
            Op::Add32Imm => imm32!(u32::wrapping_add),
            Op::Add32Reg => reg32!(u32::wrapping_add),
            Op::Sub64Imm => imm64!(u64::wrapping_sub),
            Op::Sub64Reg => reg64!(u64::wrapping_sub),
            Op::Sub32Imm => imm32!(u32::wrapping_sub),
            Op::Sub32Reg => reg32!(u32::wrapping_sub),
            Op::Mul64Imm => imm64!(u64::wrapping_mul),
            Op::Mul64Reg => reg64!(u64::wrapping_mul),
            Op::Mul32Imm => imm32!(u32::wrapping_mul),
            Op::Mul32Reg => reg32!(u32::wrapping_mul),
            Op::Div64Imm => imm64!(div64),
            Op::Div64Reg => reg64!(div64),
            Op::Div32Imm => imm32!(div32),
            Op::Div32Reg => reg32!(div32),
            Op::SDiv64Imm => imm64!(sdiv64),
            Op::SDiv64Reg => reg64!(sdiv64),
            Op::SDiv32Imm => imm32!(sdiv32),
            Op::SDiv32Reg => reg32!(sdiv32),
            Op::Or64Imm => imm64!(|a: u64, b: u64| a | b),
            Op::Or64Reg => reg64!(|a: u64, b: u64| a | b),
            Op::Or32Imm => imm32!(|a: u32, b: u32| a | b),
            Op::Or32Reg => reg32!(|a: u32, b: u32| a | b),
            Op::And64Imm => imm64!(|a: u64, b: u64| a & b),
            Op::And64Reg => reg64!(|a: u64, b: u64| a & b),
            Op::And32Imm => imm32!(|a: u32, b: u32| a & b),
            Op::And32Reg => reg32!(|a: u32, b: u32| a & b),
            Op::Lsh64Imm => imm64!(shl64),
            Op::Lsh64Reg => reg64!(shl64),
            Op::Lsh32Imm => imm32!(shl32),
            Op::Lsh32Reg => reg32!(shl32),
            Op::Rsh64Imm => imm64!(shr64),
            Op::Rsh64Reg => reg64!(shr64),
            Op::Rsh32Imm => imm32!(shr32),
            Op::Rsh32Reg => reg32!(shr32),
            Op::Mod64Imm => imm64!(rem64),
            Op::Mod64Reg => reg64!(rem64),
            Op::Mod32Imm => imm32!(rem32),
            Op::Mod32Reg => reg32!(rem32),
            Op::SMod64Imm => imm64!(srem64),
            Op::SMod64Reg => reg64!(srem64),
            Op::SMod32Imm => imm32!(srem32),
            Op::SMod32Reg => reg32!(srem32),
            Op::Xor64Imm => imm64!(|a: u64, b: u64| a ^ b),
            Op::Xor64Reg => reg64!(|a: u64, b: u64| a ^ b),
            Op::Xor32Imm => imm32!(|a: u32, b: u32| a ^ b),
            Op::Xor32Reg => reg32!(|a: u32, b: u32| a ^ b),
            Op::Mov64Imm => imm64!(second),
            Op::Mov64Reg => reg64!(second),
            Op::Mov32Imm => imm32!(second),
            Op::Mov32Reg => reg32!(second),
            Op::Arsh64Imm => imm64!(sar64),
            Op::Arsh64Reg => reg64!(sar64),
            Op::Arsh32Imm => imm32!(sar32),
            Op::Arsh32Reg => reg32!(sar32),
            Op::Jeq64Imm => jump64!(imm, |a, b| a == b),
            Op::Jeq64Reg => jump64!(reg, |a, b| a == b),
            Op::Jeq32Imm => jump32!(imm, |a, b| a == b),
            Op::Jeq32Reg => jump32!(reg, |a, b| a == b),
            Op::Jgt64Imm => jump64!(imm, |a, b| a > b),
            Op::Jgt64Reg => jump64!(reg, |a, b| a > b),
            Op::Jgt32Imm => jump32!(imm, |a, b| a > b),
            Op::Jgt32Reg => jump32!(reg, |a, b| a > b),
            Op::Jge64Imm => jump64!(imm, |a, b| a >= b),
            Op::Jge64Reg => jump64!(reg, |a, b| a >= b),
            Op::Jge32Imm => jump32!(imm, |a, b| a >= b),
            Op::Jge32Reg => jump32!(reg, |a, b| a >= b),
            Op::Jset64Imm => jump64!(imm, |a, b| a & b != 0),
            Op::Jset64Reg => jump64!(reg, |a, b| a & b != 0),
            Op::Jset32Imm => jump32!(imm, |a, b| a & b != 0),
            Op::Jset32Reg => jump32!(reg, |a, b| a & b != 0),
            Op::Jne64Imm => jump64!(imm, |a, b| a != b),
            Op::Jne64Reg => jump64!(reg, |a, b| a != b),
            Op::Jne32Imm => jump32!(imm, |a, b| a != b),
            Op::Jne32Reg => jump32!(reg, |a, b| a != b),
            Op::Jsgt64Imm => jump64!(imm, |a, b| (a.cast_signed()) > (b.cast_signed())),
            Op::Jsgt64Reg => jump64!(reg, |a, b| (a.cast_signed()) > (b.cast_signed())),
            Op::Jsgt32Imm => jump32!(imm, |a, b| (a.cast_signed()) > (b.cast_signed())),
            Op::Jsgt32Reg => jump32!(reg, |a, b| (a.cast_signed()) > (b.cast_signed())),
            Op::Jsge64Imm => jump64!(imm, |a, b| (a.cast_signed()) >= (b.cast_signed())),
            Op::Jsge64Reg => jump64!(reg, |a, b| (a.cast_signed()) >= (b.cast_signed())),
            Op::Jsge32Imm => jump32!(imm, |a, b| (a.cast_signed()) >= (b.cast_signed())),
            Op::Jsge32Reg => jump32!(reg, |a, b| (a.cast_signed()) >= (b.cast_signed())),
            Op::Jlt64Imm => jump64!(imm, |a, b| a < b),
            Op::Jlt64Reg => jump64!(reg, |a, b| a < b),
            Op::Jlt32Imm => jump32!(imm, |a, b| a < b),
            Op::Jlt32Reg => jump32!(reg, |a, b| a < b),
            Op::Jle64Imm => jump64!(imm, |a, b| a <= b),
            Op::Jle64Reg => jump64!(reg, |a, b| a <= b),
            Op::Jle32Imm => jump32!(imm, |a, b| a <= b),
            Op::Jle32Reg => jump32!(reg, |a, b| a <= b),
            Op::Jslt64Imm => jump64!(imm, |a, b| (a.cast_signed()) < (b.cast_signed())),
            Op::Jslt64Reg => jump64!(reg, |a, b| (a.cast_signed()) < (b.cast_signed())),
            Op::Jslt32Imm => jump32!(imm, |a, b| (a.cast_signed()) < (b.cast_signed())),
            Op::Jslt32Reg => jump32!(reg, |a, b| (a.cast_signed()) < (b.cast_signed())),
            Op::Jsle64Imm => jump64!(imm, |a, b| (a.cast_signed()) <= (b.cast_signed())),
            Op::Jsle64Reg => jump64!(reg, |a, b| (a.cast_signed()) <= (b.cast_signed())),
            Op::Jsle32Imm => jump32!(imm, |a, b| (a.cast_signed()) <= (b.cast_signed())),
            Op::Jsle32Reg => jump32!(reg, |a, b| (a.cast_signed()) <= (b.cast_signed())),

            Op::Neg64 => dst!() = dst!().wrapping_neg(),
            Op::Neg32 => dst!() = u64::from((dst!() as u32).wrapping_neg()),
            Op::MovSx64From8 => dst!() = i64::from(src!() as i8).cast_unsigned(),
            Op::MovSx64From16 => dst!() = i64::from(src!() as i16).cast_unsigned(),
            Op::MovSx64From32 => dst!() = i64::from(src!() as i32).cast_unsigned(),
            Op::MovSx32From8 => dst!() = u64::from(i32::from(src!() as i8).cast_unsigned()),
            Op::MovSx32From16 => dst!() = u64::from(i32::from(src!() as i16).cast_unsigned()),
            Op::ToBe16 => dst!() = u64::from((dst!() as u16).swap_bytes()),
            Op::ToBe32 => dst!() = u64::from((dst!() as u32).swap_bytes()),
            Op::ToBe64 | Op::Swap64 => dst!() = dst!().swap_bytes(),
            // The program's world is little-endian, whatever the host is.
            Op::ToLe16 => dst!() &= 0xffff,
            Op::ToLe32 => dst!() &= 0xffff_ffff,
            Op::ToLe64 => {}
            Op::Swap16 => dst!() = u64::from((dst!() as u16).swap_bytes()),
            Op::Swap32 => dst!() = u64::from((dst!() as u32).swap_bytes()),
            Op::Ja => pc = insn.off as usize,
            Op::Load8 => load!(u8),
            Op::Load16 => load!(u16),
            Op::Load32 => load!(u32),
            Op::Load64 => load!(u64),
            Op::LoadSx8 => load_signed!(i8),
            Op::LoadSx16 => load_signed!(i16),
            Op::LoadSx32 => load_signed!(i32),
            Op::StoreImm8 => store!(u8, insn.imm),
            Op::StoreImm16 => store!(u16, insn.imm),
            Op::StoreImm32 => store!(u32, insn.imm),
            Op::StoreImm64 => store!(u64, insn.imm),
            Op::Store8 => store!(u8, src!()),
            Op::Store16 => store!(u16, src!()),
            Op::Store32 => store!(u32, src!()),
            Op::Store64 => store!(u64, src!()),
            Op::Atomic32 => {
                let address = offset(dst!(), insn);
                let old = u64::from(u32::from_le_bytes(loaded!(address)));
                let new = atomic_result(insn, old, src!(), regs[0] & 0xffff_ffff);
                stored!(address, (new as u32).to_le_bytes());
                fetch(&mut regs, insn, old);
            }
            Op::Atomic64 => {
                let address = offset(dst!(), insn);
                let old = u64::from_le_bytes(loaded!(address));
                let new = atomic_result(insn, old, src!(), regs[0]);
                stored!(address, new.to_le_bytes());
                fetch(&mut regs, insn, old);
            }
            Op::LoadImm64 => {
                dst!() = insn.imm.cast_unsigned();
                pc += 1;
            }
            // Decoding lets no jump come here.
            Op::Second => {}
            Op::CallLocal => {
                fault!(push(&mut regs, calls, Caller::Function, pc));
                // The function's number: linking has put it there.
                pc = enter(&mut regs, calls, functions, insn.imm as u32, machine);
            }
            Op::CallHelper => {
                let Some(helper) = Helper::from_id(insn.imm as i32) else { continue };
                let flow = fault!(machine.call(helper, [regs[1], regs[2], regs[3], regs[4], regs[5]]));
                match flow {
                    Flow::Value(value) => regs[0] = value,
                    Flow::TailCall(function) => {
                        regs[1] = CONTEXT;
                        pc = enter(&mut regs, calls, functions, function, machine);
                    }
                    Flow::Loop { function, count, context } => {
                        let caller = Caller::Loop { function, index: 0, count, context };
                        fault!(push(&mut regs, calls, caller, pc));
                        (regs[1], regs[2]) = (0, context);
                        pc = enter(&mut regs, calls, functions, function, machine);
                    }
                    Flow::Each { function, map, context } => {
                        let caller = Caller::Each { function, map, slot: 0, done: 0, context };
                        fault!(push(&mut regs, calls, caller, pc));
                        pc = match show_entry(&mut regs, calls, machine) {
                            Some(function) => enter(&mut regs, calls, functions, function, machine),
                            None => finish(&mut regs, calls, machine, 0),
                        };
                    }
                }
            }
            Op::Exit => {
                let Some(below) = calls.depth.checked_sub(1) else {
                    return Ok(Return { value: regs[0], left });
                };
                pc = match calls.frames[below].caller {
                    Caller::Function => {
                        let result = regs[0];
                        finish(&mut regs, calls, machine, result)
                    }
                    Caller::Loop { function, index, count, context } => {
                        let index = index + 1;
                        if regs[0] == 0 && index < count {
                            calls.frames[below].caller = Caller::Loop { function, index, count, context };
                            (regs[1], regs[2]) = (index, context);
                            enter(&mut regs, calls, functions, function, machine)
                        } else {
                            finish(&mut regs, calls, machine, index)
                        }
                    }
                    Caller::Each { function, map, slot, done, context } => {
                        calls.frames[below].caller =
                            Caller::Each { function, map, slot: slot + 1, done: done + 1, context };
                        let next = if regs[0] == 0 { show_entry(&mut regs, calls, machine) } else { None };
                        match next {
                            Some(function) => enter(&mut regs, calls, functions, function, machine),
                            None => finish(&mut regs, calls, machine, done + 1),
                        }
                    }
                };
            }
        }
    }
}

/// Begin a function in the frame of the current depth; its first instruction.
fn enter(
    regs: &mut Registers,
    calls: &mut Calls,
    functions: &[Function],
    function: u32,
    machine: &mut Machine<'_, '_>,
) -> usize {
    let frame = calls.depth * FRAME_BYTES;
    machine.mem.stack_len = frame + FRAME_BYTES;
    regs[10] = STACK + (frame + FRAME_BYTES) as u64;
    // A function number comes from linking, or was checked as a callback or as a program's.
    let Some(function) = functions.get(function as usize) else { return usize::MAX };
    let top = frame + FRAME_BYTES;
    machine.mem.stack[top - function.stack_bytes..top].fill(0);
    function.span.start
}

fn push(regs: &mut Registers, calls: &mut Calls, caller: Caller, return_pc: usize) -> Result<(), FaultKind> {
    // The program itself is the first of the frames, and has none to return to.
    if calls.depth == FRAMES - 1 {
        return Err(FaultKind::CallDepth);
    }
    calls.frames[calls.depth] = Frame { caller, return_pc, saved: [regs[6], regs[7], regs[8], regs[9]] };
    calls.depth += 1;
    Ok(())
}

/// Return to the frame below with a result; where it goes on.
fn finish(regs: &mut Registers, calls: &mut Calls, machine: &mut Machine<'_, '_>, result: u64) -> usize {
    calls.depth -= 1;
    let frame = calls.frames[calls.depth];
    machine.mem.hide_key(calls.depth);
    regs[0] = result;
    regs[6..10].copy_from_slice(&frame.saved);
    let len = (calls.depth + 1) * FRAME_BYTES;
    machine.mem.stack_len = len;
    regs[10] = STACK + len as u64;
    frame.return_pc
}

/// Set the arguments for the next entry of the map that the topmost caller walks; the function to call with it.
fn show_entry(regs: &mut Registers, calls: &mut Calls, machine: &mut Machine<'_, '_>) -> Option<u32> {
    let below = calls.depth.checked_sub(1)?;
    let Caller::Each { function, map, slot, done, context } = calls.frames[below].caller else { return None };
    let found = machine.mem.maps.get(map as usize)?;
    let slot = found.next_slot(slot)?;
    let offset = found.slot_offset(slot, machine.meta.cpu);
    calls.frames[below].caller = Caller::Each { function, map, slot, done, context };
    regs[1] = handle_address(map);
    regs[2] = machine.mem.show_key(below, map, slot);
    regs[3] = value_address(map, offset);
    regs[4] = context;
    Some(function)
}

/// Bytes that a load or store moves.
fn width(op: Op) -> usize {
    match op {
        Op::Load8 | Op::LoadSx8 | Op::Store8 | Op::StoreImm8 => 1,
        Op::Load16 | Op::LoadSx16 | Op::Store16 | Op::StoreImm16 => 2,
        Op::Load64 | Op::Store64 | Op::StoreImm64 | Op::Atomic64 => 8,
        _ => 4,
    }
}

#[inline(always)]
fn offset(base: u64, insn: &Insn) -> u64 {
    base.wrapping_add(i64::from(insn.off).cast_unsigned())
}

/// Gives the operands of a condition their type.
#[inline(always)]
fn condition<T>(a: T, b: T, test: impl FnOnce(T, T) -> bool) -> bool {
    test(a, b)
}

/// What an atomic operation leaves in memory; `compare` is r0.
fn atomic_result(insn: &Insn, old: u64, operand: u64, compare: u64) -> u64 {
    match insn.imm as i32 {
        atomic::XCHG => operand,
        atomic::CMPXCHG => {
            if old == compare {
                operand
            } else {
                old
            }
        }
        operation => match operation & !atomic::FETCH {
            atomic::ADD => old.wrapping_add(operand),
            atomic::OR => old | operand,
            atomic::AND => old & operand,
            _ => old ^ operand,
        },
    }
}

/// What an atomic operation leaves in a register: the old value, if it asks for it.
fn fetch(regs: &mut Registers, insn: &Insn, old: u64) {
    match insn.imm as i32 {
        atomic::CMPXCHG => regs[0] = old,
        operation if operation & atomic::FETCH != 0 => regs[usize::from(insn.src & 15)] = old,
        _ => {}
    }
}

// Division by zero gives 0, a remainder by zero the dividend (RFC 9669, section 4.1).

fn div64(a: u64, b: u64) -> u64 {
    a.checked_div(b).unwrap_or(0)
}

fn div32(a: u32, b: u32) -> u32 {
    a.checked_div(b).unwrap_or(0)
}

fn rem64(a: u64, b: u64) -> u64 {
    a.checked_rem(b).unwrap_or(a)
}

fn rem32(a: u32, b: u32) -> u32 {
    a.checked_rem(b).unwrap_or(a)
}

// The smallest number by -1 overflows: it is its own quotient, and leaves 0.

fn sdiv64(a: u64, b: u64) -> u64 {
    if b == 0 { 0 } else { a.cast_signed().wrapping_div(b.cast_signed()).cast_unsigned() }
}

fn sdiv32(a: u32, b: u32) -> u32 {
    if b == 0 { 0 } else { a.cast_signed().wrapping_div(b.cast_signed()).cast_unsigned() }
}

fn srem64(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { a.cast_signed().wrapping_rem(b.cast_signed()).cast_unsigned() }
}

fn srem32(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { a.cast_signed().wrapping_rem(b.cast_signed()).cast_unsigned() }
}

// Shifts count modulo the width.

fn shl64(a: u64, b: u64) -> u64 {
    a.wrapping_shl(b as u32)
}

fn shl32(a: u32, b: u32) -> u32 {
    a.wrapping_shl(b)
}

fn shr64(a: u64, b: u64) -> u64 {
    a.wrapping_shr(b as u32)
}

fn shr32(a: u32, b: u32) -> u32 {
    a.wrapping_shr(b)
}

fn sar64(a: u64, b: u64) -> u64 {
    a.cast_signed().wrapping_shr(b as u32).cast_unsigned()
}

fn sar32(a: u32, b: u32) -> u32 {
    a.cast_signed().wrapping_shr(b).cast_unsigned()
}

fn second<T>(_: T, b: T) -> T {
    b
}
