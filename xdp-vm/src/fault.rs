//! What a program did that the kernel's verifier would not have let it do, and where.

use core::fmt;

use crate::bytecode::RawInsn;
use crate::helper::Helper;

/// What an address that can't be accessed is nearest to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The first page: most likely a lookup that found nothing.
    Null,
    /// The packet, counted from its first byte; metadata is negative.
    Packet {
        /// From the frame's first byte.
        offset: i64,
        /// The frame's length.
        len: u32,
    },
    /// The packet as it was before its borders were changed.
    StalePacket {
        /// From the frame's first byte as it is now.
        offset: i64,
    },
    /// The stack.
    Stack {
        /// From r10 of the function that runs.
        offset: i64,
    },
    /// `struct xdp_md`.
    Context {
        /// From its beginning.
        offset: u32,
    },
    /// A key shown to a callback.
    Key,
    /// A value, or what lies behind it.
    MapValue {
        /// The map.
        map: u32,
        /// From the value's beginning.
        offset: u32,
        /// The value's size.
        size: u32,
    },
    /// A map itself.
    MapHandle {
        /// The map.
        map: u32,
    },
    /// A function.
    Function,
    /// Nothing of the program's.
    Nowhere,
}

/// What went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access outside of what may be accessed.
    Access {
        /// The address in the program's eyes.
        address: u64,
        /// Bytes.
        len: u32,
        /// It was a write.
        write: bool,
        /// What it is nearest to.
        place: Place,
    },
    /// The instruction budget is used up.
    Budget,
    /// More than 8 functions deep.
    CallDepth,
    /// A callback that is no function.
    NotAFunction(u64),
    /// An argument of a helper that should be a map.
    NotAMap {
        /// The helper.
        helper: Helper,
        /// What was given.
        value: u64,
    },
    /// A helper that does not work on that type of map.
    MapType {
        /// The helper.
        helper: Helper,
        /// The map.
        map: u32,
    },
    /// An argument of a helper that should be the context.
    NotTheContext(Helper),
    /// Another argument that the verifier would refuse.
    Argument {
        /// The helper.
        helper: Helper,
        /// Which one, from 1.
        number: u8,
        /// What was given.
        value: u64,
    },
    /// The program ended with a ring buffer reservation open.
    ReservationLeft {
        /// The map.
        map: u32,
    },
    /// The program ended, or locked again, with a spin lock held; or unlocked one that it did not hold.
    SpinLock,
}

/// A fault: what, and at which instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// The function, as in [`crate::Vm::describe`].
    pub function: u32,
    /// The instruction, counted from the function's first.
    pub insn: u32,
    /// The instruction itself.
    pub raw: RawInsn,
}

/// A fault in words; [`crate::Vm::describe`] makes it.
pub struct FaultReport<'a> {
    pub(crate) vm: &'a crate::Vm,
    pub(crate) fault: Fault,
}

impl fmt::Display for FaultReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { function, insn, raw, .. } = self.fault;
        if let Some(function) = self.vm.functions.get(function as usize) {
            write!(f, "{}: ", function.name)?;
            write!(f, "insn {insn} ")?;
            if let Some(line) = function.line(insn as usize) {
                write!(f, "({line}) ")?;
            }
        }
        write!(f, "{raw}: ")?;
        self.kind(f)
    }
}

impl FaultReport<'_> {
    fn map(&self, map: u32) -> &str {
        self.vm.maps.get(map as usize).map_or("?", |map| map.name())
    }

    fn kind(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault.kind {
            FaultKind::Access { address, len, write, place } => {
                write!(f, "{} {len} bytes at ", if write { "writes" } else { "reads" })?;
                self.place(f, place, address)
            }
            FaultKind::Budget => f.write_str("the instruction budget is used up"),
            FaultKind::CallDepth => f.write_str("more than 8 functions deep"),
            FaultKind::NotAFunction(value) => write!(f, "the callback {value:#x} is no function"),
            FaultKind::NotAMap { helper, value } => write!(f, "bpf_{} of {value:#x}, which is no map", helper.name()),
            FaultKind::MapType { helper, map } => {
                write!(f, "bpf_{} does not work on map {}", helper.name(), self.map(map))
            }
            FaultKind::NotTheContext(helper) => write!(f, "bpf_{} wants the context", helper.name()),
            FaultKind::Argument { helper, number, value } => {
                write!(f, "bpf_{} can't have {value:#x} as argument {number}", helper.name())
            }
            FaultKind::ReservationLeft { map } => {
                write!(f, "ends with a record of {} neither submitted nor discarded", self.map(map))
            }
            FaultKind::SpinLock => f.write_str("a spin lock held at the end, taken twice, or not held"),
        }
    }

    fn place(&self, f: &mut fmt::Formatter<'_>, place: Place, address: u64) -> fmt::Result {
        match place {
            Place::Null => write!(f, "null {address:+}"),
            Place::Packet { offset, len } => write!(f, "packet{offset:+} (len {len})"),
            Place::StalePacket { offset } => write!(f, "packet{offset:+} by a pointer from before its borders changed"),
            Place::Stack { offset } => write!(f, "stack{offset:+}"),
            Place::Context { offset } => {
                write!(f, "context+{offset}, of which aligned words can be read and nothing written")
            }
            Place::Key => f.write_str("a key shown to a callback, which can only be read"),
            Place::MapValue { map, offset, size } => write!(f, "map {} value+{offset} of {size}", self.map(map)),
            Place::MapHandle { map } => write!(f, "map {} itself, not a value of it", self.map(map)),
            Place::Function => f.write_str("a function"),
            Place::Nowhere => write!(f, "{address:#x}, where nothing is"),
        }
    }
}
