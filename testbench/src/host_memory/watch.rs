//! What the checker knows of each page, from its allocation until some time after it was freed.
//!
//! A watch belongs to a page (or fragment), not to a mapping: it goes on while the page is mapped here, unmapped, and
//! mapped there. A slot keeps its page's watch after the mapping has ended, so that DMA to a stale address can be told
//! whose it was.

use std::collections::VecDeque;

use regs::FuncId;

use super::arena::PageBytes;
use super::page::Part;
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
    pub(super) device_bytes: Option<PageBytes>,
    /// Where the device may go.
    pub(super) buffer: Part,
    /// What was synced to the CPU when it got the page last: there both copies are known to have been equal.
    pub(super) seen: Part,
    /// What the device wrote, and no sync has brought to the CPU.
    pub(super) unseen: Part,
    allocated: Action,
    history: History,
}

/// The last few actions on a page, and of each side the last one, however long ago. Written at each DMA, so each action is
/// stored once.
struct History {
    /// A ring; `next` is the oldest.
    recent: [Option<Action>; HISTORY],
    next: u8,
    /// Where in the ring the last one of the CPU and of the device are; `HISTORY` if it is no longer there.
    last_at: [u8; 2],
    /// The last one of each that has dropped out of the ring.
    dropped: [Option<Action>; 2],
}

impl History {
    const EMPTY: History =
        History { recent: [None; HISTORY], next: 0, last_at: [HISTORY as u8; 2], dropped: [None; 2] };

    #[inline]
    fn push(&mut self, action: Action) {
        let at = self.next;
        let side = usize::from(action.deed.is_dma());
        let entry = &mut self.recent[usize::from(at)];
        if self.last_at[1 - side] == at {
            self.dropped[1 - side] = *entry;
            self.last_at[1 - side] = HISTORY as u8;
        }
        *entry = Some(action);
        self.last_at[side] = at;
        self.next = (at + 1) % HISTORY as u8;
    }

    /// The last action of the CPU (0) or of the device (1).
    fn last(&self, side: usize) -> Option<Action> {
        match self.recent.get(usize::from(self.last_at[side])) {
            Some(entry) => *entry,
            None => self.dropped[side],
        }
    }

    /// Oldest first.
    fn oldest_first(&self) -> impl Iterator<Item = Action> {
        let (newer, older) = self.recent.split_at(usize::from(self.next));
        older.iter().chain(newer).flatten().copied()
    }
}

impl Watch {
    #[inline]
    pub(super) fn note(&mut self, action: Action) {
        self.history.push(action);
    }

    /// For a report.
    pub(super) fn life(&self, owner: String) -> Life {
        Life {
            owner,
            allocated: Some(self.allocated),
            last_cpu: self.history.last(0).or(Some(self.allocated)),
            last_device: self.history.last(1),
            history: self.history.oldest_first().collect(),
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
        // Where nothing was changed, which is nearly always, one comparison tells.
        let looked_at = self.seen.overlap(self.buffer);
        if synced.contains(looked_at) || cpu[looked_at.range()] == device[looked_at.range()] {
            return Part::EMPTY;
        }
        let [before, behind] = looked_at.without(synced);
        before.difference(cpu, device).hull(behind.difference(cpu, device))
    }

    /// Would the device read something else here than what the CPU has written?
    pub(super) fn is_stale(&self, cpu: &PageBytes, part: Part) -> bool {
        match &self.device_bytes {
            Some(device) if cpu.is_some() && self.unseen.overlap(part).is_empty() => {
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
            history: History::EMPTY,
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

    #[inline]
    pub(super) fn get_mut(&mut self, id: WatchId) -> Option<&mut Watch> {
        self.all.get_mut(id.index as usize).filter(|watch| watch.life == id.life)
    }

    /// Pages that are allocated and not mapped.
    pub(super) fn loose(&self) -> impl Iterator<Item = &Watch> {
        self.all.iter().filter(|watch| watch.stage == Stage::Loose)
    }
}
