//! What is printed when a rule was broken: what, where, when, who had it, and what both sides did to it last.

use std::fmt;
use std::panic::Location;

use models::time::Time;
use regs::FuncId;

use super::page::{PAGE_SIZE, Part};
use super::rule::Rule;

/// What someone does to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deed {
    /// A page, or a region, is allocated.
    Alloc,
    /// A page is mapped.
    Map,
    /// A buffer of a page is written into a descriptor.
    Offer,
    /// A page is taken from the device.
    SyncForCpu,
    /// A page is handed to the device.
    SyncForDevice,
    /// A mapping is ended.
    Unmap,
    /// A fragment is cut off.
    Split,
    /// A fragment goes back to its page.
    Join,
    /// A page, or a region, is given back.
    Free,
    /// The CPU stores to coherent memory.
    Store,
    /// The device reads.
    DmaRead,
    /// The device writes.
    DmaWrite,
    /// The run ends.
    End,
}

impl Deed {
    /// As the call is named.
    pub const fn name(self) -> &'static str {
        match self {
            Deed::Alloc => "alloc",
            Deed::Map => "map",
            Deed::Offer => "buffer_addr",
            Deed::SyncForCpu => "sync_for_cpu",
            Deed::SyncForDevice => "sync_for_device",
            Deed::Unmap => "unmap",
            Deed::Split => "split",
            Deed::Join => "join",
            Deed::Free => "free",
            Deed::Store => "store",
            Deed::DmaRead => "DMA read",
            Deed::DmaWrite => "DMA write",
            Deed::End => "end of the run",
        }
    }

    /// Is it the device's?
    pub const fn is_dma(self) -> bool {
        matches!(self, Deed::DmaRead | Deed::DmaWrite)
    }

    const fn has_range(self) -> bool {
        !matches!(self, Deed::Alloc | Deed::Unmap | Deed::Join | Deed::Free | Deed::End)
    }
}

/// One thing that someone did to a page or region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Action {
    /// What.
    pub deed: Deed,
    /// Simulated time, as the host last saw it.
    pub time: Time,
    /// Where in the code, for the CPU's actions.
    pub location: Option<&'static Location<'static>>,
    /// First byte, counted from the start of the page or region.
    pub offset: u32,
    /// How many bytes.
    pub len_bytes: u32,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.deed.name())?;
        if self.deed.has_range() {
            write!(f, " of {} bytes at offset {}", self.len_bytes, self.offset)?;
        }
        write!(f, ", at {}", self.time)?;
        if let Some(location) = self.location {
            write!(f, " ({location})")?;
        }
        Ok(())
    }
}

/// What is known of a page or region: who has it, and what was done to it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Life {
    /// Who owns it, in words.
    pub owner: String,
    /// Who allocated it, or cut it off.
    pub allocated: Option<Action>,
    /// The CPU's last action.
    pub last_cpu: Option<Action>,
    /// The device's last action.
    pub last_device: Option<Action>,
    /// The last few of both, oldest first.
    pub history: Vec<Action>,
}

/// A broken rule: what, where, who had it, and what was last done to it.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Which.
    pub rule: Rule,
    /// Whose access it was, or whose memory has leaked.
    pub func: FuncId,
    /// First DMA address of the access, or of the page.
    pub addr: u64,
    /// Length of the access.
    pub len_bytes: usize,
    /// When, as the host last saw the time.
    pub time: Time,
    /// What was being done.
    pub deed: Deed,
    /// By which line, for the CPU's deeds.
    pub location: Option<&'static Location<'static>>,
    /// Where that is, in words.
    pub place: String,
    /// Buffer and access in their page, where that is worth a picture.
    pub(super) picture: Option<Picture>,
    /// Of the memory that was hit, or is nearest.
    pub life: Life,
}

impl Violation {
    /// The rule's id, which never changes.
    pub const fn rule_id(&self) -> &'static str {
        self.rule.id()
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { rule, func, addr, len_bytes, time, deed, life, .. } = self;
        writeln!(f, "host memory: {rule}")?;
        write!(f, "  what     {} of {len_bytes} bytes at {addr:#x}, {func}, at {time}", deed.name())?;
        if let Some(location) = self.location {
            write!(f, " ({location})")?;
        }
        write!(f, "\n  where    {}", self.place)?;
        if let Some(picture) = &self.picture {
            write!(f, "\n           {picture}")?;
        }
        write!(f, "\n  owner    {}", life.owner)?;
        let lines = [("origin", life.allocated), ("CPU", life.last_cpu), ("device", life.last_device)];
        for (side, action) in lines {
            if let Some(action) = action {
                write!(f, "\n  {side:<8} {action}")?;
            }
        }
        let told = lines.map(|(_, action)| action);
        for action in life.history.iter().filter(|action| !told.contains(&Some(**action))) {
            write!(f, "\n  before   {action}")?;
        }
        write!(f, "\n  help     {}", rule.advice())
    }
}

/// A page as a row of characters, 64 bytes each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Picture {
    pub(super) buffer: Part,
    pub(super) access: Part,
}

/// Bytes that one character stands for.
const CELL: usize = 64;

impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("|")?;
        for start in (0..PAGE_SIZE).step_by(CELL) {
            let cell = Part::WHOLE.within(start, CELL);
            let touches = |part: Part| !cell.overlap(part).is_empty();
            f.write_str(match (touches(self.access), touches(self.buffer)) {
                (true, true) => "#",
                (true, false) => "!",
                (false, true) => "=",
                (false, false) => "-",
            })?;
        }
        write!(f, "| {CELL} bytes each: = buffer, # access in it, ! access beside it")
    }
}

/// Broken rules so far. Of each rule the first few are kept, the others counted.
#[derive(Default)]
pub(super) struct Log {
    kept: Vec<Violation>,
    dropped: u64,
}

/// How many reports are kept of one rule.
const KEPT: usize = 20;

impl Log {
    pub(super) fn push(&mut self, violation: Violation) {
        if self.kept.iter().filter(|kept| kept.rule == violation.rule).count() < KEPT {
            self.kept.push(violation);
        } else {
            self.dropped += 1;
        }
    }

    pub(super) fn kept(&self) -> &[Violation] {
        &self.kept
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }
}
