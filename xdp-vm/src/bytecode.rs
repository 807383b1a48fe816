//! One BPF instruction as clang wrote it, its bit fields by name, and the text that faults and problems show.
//!
//! Source: RFC 9669, "BPF Instruction Set Architecture (ISA)": sections 3 (encoding), 4 (arithmetic, jumps), 5 (loads and
//! stores). Later additions of Linux that this VM refuses are in here by name, so that a refusal can say what it met.

use core::fmt;

/// Instruction classes, bits 2:0 of the opcode.
pub(crate) mod class {
    pub const LD: u8 = 0;
    pub const LDX: u8 = 1;
    pub const ST: u8 = 2;
    pub const STX: u8 = 3;
    pub const ALU: u8 = 4;
    pub const JMP: u8 = 5;
    pub const JMP32: u8 = 6;
    pub const ALU64: u8 = 7;
}

/// Arithmetic codes, bits 7:4 of the opcode.
pub(crate) mod alu {
    pub const ADD: u8 = 0x00;
    pub const SUB: u8 = 0x10;
    pub const MUL: u8 = 0x20;
    pub const DIV: u8 = 0x30;
    pub const OR: u8 = 0x40;
    pub const AND: u8 = 0x50;
    pub const LSH: u8 = 0x60;
    pub const RSH: u8 = 0x70;
    pub const NEG: u8 = 0x80;
    pub const MOD: u8 = 0x90;
    pub const XOR: u8 = 0xa0;
    pub const MOV: u8 = 0xb0;
    pub const ARSH: u8 = 0xc0;
    pub const END: u8 = 0xd0;
}

/// Jump codes, bits 7:4 of the opcode.
pub(crate) mod jump {
    pub const JA: u8 = 0x00;
    pub const JEQ: u8 = 0x10;
    pub const JGT: u8 = 0x20;
    pub const JGE: u8 = 0x30;
    pub const JSET: u8 = 0x40;
    pub const JNE: u8 = 0x50;
    pub const JSGT: u8 = 0x60;
    pub const JSGE: u8 = 0x70;
    pub const CALL: u8 = 0x80;
    pub const EXIT: u8 = 0x90;
    pub const JLT: u8 = 0xa0;
    pub const JLE: u8 = 0xb0;
    pub const JSLT: u8 = 0xc0;
    pub const JSLE: u8 = 0xd0;
    /// Linux's `may_goto`, in no standard.
    pub const JCOND: u8 = 0xe0;
}

/// Addressing modes of loads and stores, bits 7:5 of the opcode.
pub(crate) mod mode {
    pub const ABS: u8 = 0x20;
    pub const IND: u8 = 0x40;
    pub const MEM: u8 = 0x60;
    pub const MEMSX: u8 = 0x80;
    pub const ATOMIC: u8 = 0xc0;
}

/// Operations of an atomic instruction, in its immediate.
pub(crate) mod atomic {
    pub const FETCH: i32 = 0x01;
    pub const ADD: i32 = 0x00;
    pub const OR: i32 = 0x40;
    pub const AND: i32 = 0x50;
    pub const XOR: i32 = 0xa0;
    pub const XCHG: i32 = 0xe1;
    pub const CMPXCHG: i32 = 0xf1;
    /// Linux's load-acquire and store-release, in no standard.
    pub const LOAD_ACQ: i32 = 0x100;
    pub const STORE_REL: i32 = 0x110;
}

/// What the immediate of a 64-bit load stands for, in its source register field; and what a call calls.
pub(crate) mod pseudo {
    pub const MAP: u8 = 1;
    pub const MAP_VALUE: u8 = 2;
    pub const FUNC: u8 = 4;
    pub const CALL: u8 = 1;
    pub const KFUNC: u8 = 2;
}

/// The opcode of a 64-bit immediate load, the only instruction of two slots.
pub(crate) const LDDW: u8 = 0x18;

/// One instruction slot.
///
/// Layout: opcode (u8), destination register in bits 3:0 and source in bits 7:4 (u8), offset (i16), immediate (i32); 8
/// bytes, little-endian.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RawInsn {
    /// The opcode.
    pub code: u8,
    /// Destination register.
    pub dst: u8,
    /// Source register, or a pseudo source.
    pub src: u8,
    /// Offset of a jump in instructions, or of an access in bytes.
    pub off: i16,
    /// The immediate.
    pub imm: i32,
}

impl RawInsn {
    /// Bytes of one slot.
    pub const BYTES: usize = 8;

    /// Decode one slot.
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        Self {
            code: bytes[0],
            dst: bytes[1] & 15,
            src: bytes[1] >> 4,
            off: i16::from_le_bytes([bytes[2], bytes[3]]),
            imm: i32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
        }
    }

    /// The slot's bytes.
    pub fn to_bytes(self) -> [u8; 8] {
        let off = self.off.to_le_bytes();
        let imm = self.imm.to_le_bytes();
        [self.code, (self.dst & 15) | self.src << 4, off[0], off[1], imm[0], imm[1], imm[2], imm[3]]
    }

    /// All whole slots of a byte string.
    pub fn from_slice(bytes: &[u8]) -> impl Iterator<Item = Self> + '_ {
        bytes.as_chunks::<8>().0.iter().map(|slot| Self::from_bytes(*slot))
    }

    pub(crate) fn class(self) -> u8 {
        self.code & 7
    }

    /// A call of a function of the program's own.
    pub(crate) fn is_local_call(self) -> bool {
        self.code == class::JMP | jump::CALL && self.src == pseudo::CALL
    }

    /// A call of a helper.
    pub(crate) fn is_helper_call(self) -> bool {
        self.code == class::JMP | jump::CALL && self.src == 0
    }

    /// It names a function of the program's own by its distance: to call it, or to have it called back.
    pub(crate) fn refers_to_function(self) -> bool {
        self.is_local_call() || self.code == LDDW && self.src == pseudo::FUNC
    }

    /// Slots that it takes.
    pub(crate) fn slots(self) -> usize {
        if self.code == LDDW { 2 } else { 1 }
    }

    /// Second operand is a register.
    pub(crate) fn by_register(self) -> bool {
        self.code & 8 != 0
    }

    /// The code of an arithmetic instruction or a jump.
    pub(crate) fn operation(self) -> u8 {
        self.code & 0xf0
    }

    pub(crate) fn mode(self) -> u8 {
        self.code & 0xe0
    }

    /// Bytes that a load or store moves.
    pub(crate) fn access_bytes(self) -> usize {
        match self.code & 0x18 {
            0x00 => 4,
            0x08 => 2,
            0x10 => 1,
            _ => 8,
        }
    }

    /// A jump's distance: `gotol` has it in the immediate.
    pub(crate) fn distance(self) -> i64 {
        let long = self.class() == class::JMP32 && self.operation() == jump::JA;
        if long { i64::from(self.imm) } else { i64::from(self.off) }
    }
}

/// An instruction as the kernel's verifier log would put it, near enough to be recognised.
impl fmt::Display for RawInsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class() {
            class::ALU | class::ALU64 => self.fmt_alu(f),
            class::JMP | class::JMP32 => self.fmt_jump(f),
            class::LD if self.code == LDDW => match self.src {
                0 => write!(f, "r{} = {:#x} ll", self.dst, self.imm),
                pseudo::MAP => write!(f, "r{} = map {}", self.dst, self.imm),
                pseudo::MAP_VALUE => write!(f, "r{} = value of map {}", self.dst, self.imm),
                _ => write!(f, "r{} = function {:+}", self.dst, self.imm),
            },
            class::LDX if matches!(self.mode(), mode::MEM | mode::MEMSX) => {
                let sign = if self.mode() == mode::MEM { 'u' } else { 's' };
                let bits = self.access_bytes() * 8;
                write!(f, "r{} = *({sign}{bits} *)(r{} {:+})", self.dst, self.src, self.off)
            }
            class::ST if self.mode() == mode::MEM => {
                write!(f, "*(u{} *)(r{} {:+}) = {}", self.access_bytes() * 8, self.dst, self.off, self.imm)
            }
            class::STX if self.mode() == mode::MEM => {
                write!(f, "*(u{} *)(r{} {:+}) = r{}", self.access_bytes() * 8, self.dst, self.off, self.src)
            }
            class::STX if self.mode() == mode::ATOMIC => self.fmt_atomic(f),
            _ => write!(f, "opcode {:#04x}", self.code),
        }
    }
}

impl RawInsn {
    fn fmt_alu(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = if self.class() == class::ALU64 { 'r' } else { 'w' };
        let dst = self.dst;
        let op = match (self.operation(), self.off) {
            (alu::ADD, _) => "+=",
            (alu::SUB, _) => "-=",
            (alu::MUL, _) => "*=",
            (alu::DIV, 0) => "/=",
            (alu::DIV, _) => "s/=",
            (alu::OR, _) => "|=",
            (alu::AND, _) => "&=",
            (alu::LSH, _) => "<<=",
            (alu::RSH, _) => ">>=",
            (alu::MOD, 0) => "%=",
            (alu::MOD, _) => "s%=",
            (alu::XOR, _) => "^=",
            (alu::MOV, _) => "=",
            (alu::ARSH, _) => "s>>=",
            (alu::NEG, _) => return write!(f, "{w}{dst} = -{w}{dst}"),
            (alu::END, _) => {
                let kind = match (self.class(), self.by_register()) {
                    (class::ALU64, _) => "bswap",
                    (_, true) => "be",
                    (_, false) => "le",
                };
                return write!(f, "r{dst} = {kind}{} r{dst}", self.imm);
            }
            _ => return write!(f, "opcode {:#04x}", self.code),
        };
        if !self.by_register() {
            return write!(f, "{w}{dst} {op} {}", self.imm);
        }
        match (self.operation(), self.off) {
            (alu::MOV, off) if off != 0 => write!(f, "{w}{dst} {op} (s{off}){w}{}", self.src),
            _ => write!(f, "{w}{dst} {op} {w}{}", self.src),
        }
    }

    fn fmt_jump(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = match self.operation() {
            jump::JA => return write!(f, "goto {:+}", self.distance()),
            jump::CALL => match self.src {
                0 => return write!(f, "call {}", self.imm),
                _ => return write!(f, "call pc{:+}", self.imm),
            },
            jump::EXIT => return f.write_str("exit"),
            jump::JEQ => "==",
            jump::JGT => ">",
            jump::JGE => ">=",
            jump::JSET => "&",
            jump::JNE => "!=",
            jump::JSGT => "s>",
            jump::JSGE => "s>=",
            jump::JLT => "<",
            jump::JLE => "<=",
            jump::JSLT => "s<",
            jump::JSLE => "s<=",
            _ => return write!(f, "opcode {:#04x}", self.code),
        };
        let w = if self.class() == class::JMP { 'r' } else { 'w' };
        write!(f, "if {w}{} {op} ", self.dst)?;
        if self.by_register() {
            write!(f, "{w}{}", self.src)?;
        } else {
            write!(f, "{}", self.imm)?;
        }
        write!(f, " goto {:+}", self.off)
    }

    fn fmt_atomic(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.imm & !atomic::FETCH {
            atomic::ADD => "add",
            atomic::OR => "or",
            atomic::AND => "and",
            atomic::XOR => "xor",
            0xe0 => "xchg",
            0xf0 => "cmpxchg",
            _ => "?",
        };
        let fetch = if self.imm & atomic::FETCH != 0 { "fetch " } else { "" };
        let bits = self.access_bytes() * 8;
        write!(f, "lock {fetch}{name} *(u{bits} *)(r{} {:+}), r{}", self.dst, self.off, self.src)
    }
}
