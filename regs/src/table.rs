//! The map as data: [`Register`] and [`Window`] rows for `onic regs`, the map walk and the tests.

use crate::{Bar, Field64};

/// What software may do with a field.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// Reads give the value, writes are ignored.
    ReadOnly,
    /// Reads give what was written or what the card put there.
    ReadWrite,
    /// Writes have an effect; what a read gives is [`Register::reads_as`] or 0.
    WriteOnly,
    /// Reads give the value; writing 1 to a bit clears it, 0 leaves it.
    WriteOneToClear,
}

/// How sure we are of a fact.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Standing {
    /// Seen on upstream's RTL in simulation, or on the bus while upstream's driver ran.
    Measured,
    /// Vendor text: documentation, or vendor source that was read but not run.
    Vendor,
    /// Recalled or inferred.
    Assumed,
    /// Defined by this project; upstream has nothing there.
    Ours,
}

/// What the map walk may do with a register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Walk {
    /// Read it and write any value.
    Full,
    /// Read it, never write it: a write has an effect beyond the register.
    ResetOnly,
    /// Leave it alone.
    None,
}

/// On which cards a register or window exists.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Presence {
    /// On all.
    Always,
    /// On cards with more functions than this number.
    Function(u8),
    /// On cards with more ports than this number.
    Port(u8),
}

impl Presence {
    /// Whether a card of so many functions and ports has it.
    pub const fn on(self, functions: u8, ports: u8) -> bool {
        match self {
            Presence::Always => true,
            Presence::Function(f) => f < functions,
            Presence::Port(p) => p < ports,
        }
    }
}

/// What a read finds in a window where no register is. Writes are ignored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unmapped {
    /// The same everywhere.
    Value(u32),
    /// `prefix << 16` and the low `bits` bits of the address within the window.
    Echo {
        /// Upper 16 bits of the answer.
        prefix: u16,
        /// How many address bits follow.
        bits: u8,
    },
}

/// What answers in a window of a function or port that the card does not have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Absent {
    /// The bus: DECERR.
    DecodeError,
    /// A placeholder: `prefix << 16` and the low `bits` bits of the address within the window.
    Echo {
        /// Upper 16 bits of the answer.
        prefix: u16,
        /// How many address bits follow.
        bits: u8,
    },
}

/// One field of a [`Register`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldInfo {
    /// The hardware's name.
    pub name: &'static str,
    /// Where it lies.
    pub bits: Field64,
    /// What software may do with it.
    pub access: Access,
    /// Its value after reset, not shifted.
    pub reset: u64,
    /// What it means.
    pub summary: &'static str,
    /// Where the fact comes from.
    pub source: &'static str,
    /// How sure it is.
    pub standing: Standing,
}

/// A register, or an array of equal registers, at its address in a BAR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Register {
    /// The block it belongs to, as the module of its constants is named.
    pub block: &'static str,
    /// The hardware's name.
    pub name: &'static str,
    /// Register space.
    pub bar: Bar,
    /// Bytes from the start of the BAR, of the first element.
    pub offset: u32,
    /// Elements; 1 when it is no array.
    pub count: u32,
    /// Bytes from one element to the next.
    pub stride: u32,
    /// 32, or 64 for two words, low one first.
    pub width_bits: u8,
    /// On which cards it exists.
    pub presence: Presence,
    /// Value once reset has finished and before traffic; `None` when nothing in it can be read.
    pub reset: Option<u64>,
    /// Value of each element after reset where they differ; otherwise empty.
    pub reset_by_index: &'static [u32],
    /// What a read gives when nothing in it can be read.
    pub reads_as: Option<u32>,
    /// The register of the same block to which this is another way; empty when to none.
    pub alias_of: &'static str,
    /// What the reset value depends on; empty when on nothing.
    pub varies: &'static str,
    /// What the map walk may do.
    pub walk: Walk,
    /// Fields, lowest first.
    pub fields: &'static [FieldInfo],
    /// What it is.
    pub summary: &'static str,
    /// Where the fact comes from.
    pub source: &'static str,
    /// How sure it is.
    pub standing: Standing,
}

impl Register {
    /// Bytes from the start of the BAR of element `index`, or `None` past the last.
    pub const fn offset_of(&self, index: u32) -> Option<u32> {
        if index < self.count { Some(self.offset + index * self.stride) } else { None }
    }

    /// What element `index` reads after reset; `None` when nothing in it can be read.
    pub fn reset_of(&self, index: u32) -> Option<u64> {
        let own = usize::try_from(index).ok().and_then(|i| self.reset_by_index.get(i));
        own.map(|word| u64::from(*word)).or(self.reset)
    }

    /// All bits of fields with that access.
    pub fn mask_of(&self, access: Access) -> u64 {
        self.fields.iter().filter(|f| f.access == access).fold(0, |mask, f| mask | f.bits.mask())
    }

    /// Whether a byte offset lies in one of its elements.
    pub const fn contains(&self, offset: u32) -> bool {
        let Some(past) = offset.checked_sub(self.offset) else { return false };
        past / self.stride < self.count && past % self.stride < self.width_bits as u32 / 8
    }
}

/// A range of addresses that one block answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Instance name, without the element's number.
    pub name: &'static str,
    /// The block whose registers lie here; `None` for a window without registers.
    pub block: Option<&'static str>,
    /// Register space.
    pub bar: Bar,
    /// Bytes from the start of the BAR.
    pub base: u32,
    /// How many bytes it answers.
    pub size_bytes: u32,
    /// How many bytes from `base` a user plugin decodes, when that is more than the default plugin answers; or 0.
    pub plugin_bytes: u32,
    /// On which cards it exists.
    pub presence: Presence,
    /// What a read finds where no register is.
    pub unmapped: Unmapped,
    /// What answers on cards without it.
    pub absent: Absent,
    /// [`Walk::None`] when the map walk leaves all of it alone.
    pub walk: Walk,
    /// What it is.
    pub summary: &'static str,
    /// Where the fact comes from.
    pub source: &'static str,
    /// How sure it is.
    pub standing: Standing,
}

impl Window {
    /// Whether a byte offset of its BAR lies in it.
    pub const fn contains(&self, offset: u32) -> bool {
        offset >= self.base && offset - self.base < self.size_bytes
    }
}

/// All registers of the card, by BAR and offset. Arrays are one row; what exists for each function or port has a row
/// for each.
pub fn registers() -> &'static [Register] {
    &crate::generated::table::REGISTERS
}

/// All windows of the card, by BAR and base.
pub fn windows() -> &'static [Window] {
    &crate::generated::table::WINDOWS
}

/// The register that a byte offset of a BAR belongs to, whatever the card's shape.
pub fn register_at(bar: Bar, offset: u32) -> Option<&'static Register> {
    registers().iter().find(|r| r.bar == bar && r.contains(offset))
}
