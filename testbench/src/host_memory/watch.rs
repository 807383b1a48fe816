//! What the checker knows of each page, from its allocation until some time after it was freed.
//!
//! A watch belongs to a page (or fragment), not to a mapping: it goes on while the page is mapped here, unmapped, and
//! mapped there. A slot keeps its page's watch after the mapping has ended, so that DMA to a stale address can be told
//! whose it was.

use std::collections::VecDeque;

use regs::FuncId;

use super::page::{PageBytes, Part};
use super::report::{Action, Life};

/// How many past actions on a page are kept for a report.
const HISTORY: usize = 8;
/// How many freed pages are remembered at least.
const REMEMBERED: usize = 256;

/// Names a watch: its place, and which of the lives that it has watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WatchId {
    index: u32,
    life: u32,
}

impl WatchId {
    /// With checks off nobody watches.
    pub(super) const NOBODY: WatchId = WatchId { index: u32::MAX, life: 0 };
}

/// Where a page is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Allocated, not mapped.
    Loose,
    /// Mapped, in whoever's hands.
    Mapped,
    /// Given back.
    Freed,
}

/// What the checker knows of one page or fragment.
pub(super) struct Watch {
    life: u32,
    pub(super) stage: Stage,
    /// Who allocated it.
    pub(super) func: FuncId,
    /// While mapped: what the device sees.
    pub(super) device_bytes: Option<Box<PageBytes>>,
    /// Where the device may go.
    pub(super) buffer: Part,
    /// What was synced to the CPU when it got the page last: there both copies are known to have been equal.
    pub(super) seen: Part,
    /// What the device wrote, and no sync has brought to the CPU.
    pub(super) unseen: Part,
    allocated: Action,
    last_cpu: Option<Action>,
    last_device: Option<Action>,
    /// A ring; `next` is the oldest.
    recent: [Option<Action>; HISTORY],
    next: u8,
}

impl Watch {
    pub(super) fn note(&mut self, action: Action) {
        if action.deed.is_dma() {
            self.last_device = Some(action);
        } else {
            self.last_cpu = Some(action);
        }
        self.recent[usize::from(self.next)] = Some(action);
        self.next = (self.next + 1) % HISTORY as u8;
    }

    /// For a report.
    pub(super) fn life(&self, owner: String) -> Life {
        let (newer, older) = self.recent.split_at(usize::from(self.next));
        Life {
            owner,
            allocated: Some(self.allocated),
            last_cpu: self.last_cpu,
            last_device: self.last_device,
            history: older.iter().chain(newer).flatten().copied().collect(),
        }
    }

    /// The page is taken from the device: `part` becomes visible to the CPU.
    pub(super) fn bring(&mut self, cpu: &mut PageBytes, part: Part) {
        if let Some(device) = &self.device_bytes {
            cpu[part.range()].copy_from_slice(&device[part.range()]);
        }
        self.seen = part;
        if part.contains(self.unseen) {
            self.unseen = Part::EMPTY;
        }
    }

    /// The page is handed to the device: `part` becomes visible to it.
    pub(super) fn send(&mut self, cpu: &PageBytes, part: Part) {
        if let Some(device) = &mut self.device_bytes {
            device[part.range()].copy_from_slice(&cpu[part.range()]);
        }
        if part.contains(self.unseen) {
            self.unseen = Part::EMPTY;
        }
    }

    /// What the CPU changed in the device's buffer, other than in `synced`; empty if nothing.
    pub(super) fn changed_outside(&self, cpu: &PageBytes, synced: Part) -> Part {
        let Some(device) = &self.device_bytes else { return Part::EMPTY };
        let [before, behind] = self.seen.overlap(self.buffer).without(synced);
        before.difference(cpu, device).hull(behind.difference(cpu, device))
    }

    /// Would the device read something else here than what the CPU has written?
    pub(super) fn is_stale(&self, cpu: Option<&PageBytes>, part: Part) -> bool {
        match (cpu, &self.device_bytes) {
            (Some(cpu), Some(device)) if self.unseen.overlap(part).is_empty() => {
                cpu[part.range()] != device[part.range()]
            }
            _ => false,
        }
    }
}

/// All of them.
#[derive(Default)]
pub(super) struct Watches {
    all: Vec<Watch>,
    /// Of freed pages, oldest first.
    ended: VecDeque<u32>,
}

impl Watches {
    /// A page's life begins, as a whole page or as a fragment of one.
    pub(super) fn begin(&mut self, func: FuncId, stage: Stage, part: Part, allocated: Action) -> WatchId {
        let watch = Watch {
            life: 0,
            stage,
            func,
            device_bytes: None,
            buffer: part,
            seen: Part::EMPTY,
            unseen: Part::EMPTY,
            allocated,
            last_cpu: Some(allocated),
            last_device: None,
            recent: [None; HISTORY],
            next: 0,
        };
        if self.ended.len() > REMEMBERED
            && let Some(index) = self.ended.pop_front()
        {
            let life = self.all[index as usize].life.wrapping_add(1);
            self.all[index as usize] = Watch { life, ..watch };
            return WatchId { index, life };
        }
        self.all.push(watch);
        WatchId { index: (self.all.len() - 1) as u32, life: 0 }
    }

    /// A page's life ends.
    pub(super) fn end(&mut self, id: WatchId, action: Action) {
        if let Some(watch) = self.get_mut(id)
            && watch.stage != Stage::Freed
        {
            watch.note(action);
            watch.stage = Stage::Freed;
            self.ended.push_back(id.index);
        }
    }

    /// `None` with checks off, or when the page is long gone.
    pub(super) fn get(&self, id: WatchId) -> Option<&Watch> {
        self.all.get(id.index as usize).filter(|watch| watch.life == id.life)
    }

    pub(super) fn get_mut(&mut self, id: WatchId) -> Option<&mut Watch> {
        self.all.get_mut(id.index as usize).filter(|watch| watch.life == id.life)
    }

    /// Pages that are allocated and not mapped.
    pub(super) fn loose(&self) -> impl Iterator<Item = &Watch> {
        self.all.iter().filter(|watch| watch.stage == Stage::Loose)
    }
}
