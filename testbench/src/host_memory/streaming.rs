//! Streaming memory: pages behind their DMA addresses, and fragments of them.

use std::collections::VecDeque;

use driver_core::Direction;
use regs::FuncId;

use super::arena::PageBytes;
use super::page::{PAGE_SIZE, Part};
use super::rule::Rule;
use super::watch::{Stage, Watch, WatchId, Watches};

/// What the CPU reads where nothing was synced to it, and the device where nothing was synced to that.
pub const POISON: u8 = 0xa5;

pub(super) const STREAM_BASE: u64 = 0x10_0000_0000;
const STREAM_STRIDE: u64 = 2 * PAGE_SIZE as u64;
/// With checks on, how many addresses lie idle before the oldest is used again.
const IDLE_SLOTS: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    Free,
    Device,
    Cpu,
}

/// One mapping, or one fragment's share of it. Small, for a run goes through thousands of slots in a round, and each is
/// out of the cache when its turn comes.
pub(super) struct Slot {
    pub(super) func: FuncId,
    pub(super) owner: Owner,
    pub(super) direction: Direction,
    /// Which bytes of the page this is: all of them, what fragments have left of it, or one fragment.
    pub(super) part: Part,
    /// The page while the device owns it; with checks on, the CPU's copy. None while the CPU has it.
    pub(super) bytes: PageBytes,
    pub(super) watch: WatchId,
    /// Of a page: those that are out.
    pub(super) fragments: Option<Box<Fragments>>,
}

pub(super) struct Fragments(pub(super) Vec<Slot>);

impl Slot {
    const FREE: Slot = Slot {
        func: FuncId(0),
        owner: Owner::Free,
        direction: Direction::Bidirectional,
        part: Part::WHOLE,
        bytes: PageBytes::NONE,
        watch: WatchId::NOBODY,
        fragments: None,
    };

    /// May the device of `func` access it so?
    #[inline]
    pub(super) fn lets(&self, func: FuncId, writes: bool) -> bool {
        let forbidden = if writes { Direction::ToDevice } else { Direction::FromDevice };
        self.owner == Owner::Device && self.func == func && self.direction != forbidden
    }

    fn fragment(&self, wanted: impl Fn(&Slot) -> bool) -> Option<usize> {
        self.fragments.as_ref()?.0.iter().position(wanted)
    }

    /// Who has it, for a report.
    pub(super) fn owner_words(&self, watch: Option<&Watch>) -> String {
        match self.owner {
            Owner::Free if watch.is_some_and(|watch| watch.stage == Stage::Freed) => {
                format!("nobody: the page was freed; it was {}'s, mapped {:?}", self.func, self.direction)
            }
            Owner::Free => format!("nobody: the mapping has ended; it was {}'s, {:?}", self.func, self.direction),
            Owner::Device => format!("the device, mapped {:?}, of {}", self.direction, self.func),
            Owner::Cpu => format!("the CPU, mapped {:?}, of {}", self.direction, self.func),
        }
    }
}

/// A DMA address, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    slot: u32,
    /// Which of the page's fragments, if it lies in one.
    fragment: Option<u32>,
    /// What is accessed.
    pub(super) part: Part,
}

/// All pages.
#[derive(Default)]
pub(super) struct Streaming {
    pub(super) slots: Vec<Slot>,
    free_slots: VecDeque<u32>,
    pub(super) free_pages: Vec<PageBytes>,
    pub(super) pages_out: usize,
    pub(super) watches: Watches,
}

/// The address of byte 0 of a slot's page.
pub(super) fn slot_addr(slot: u32) -> u64 {
    STREAM_BASE + u64::from(slot) * STREAM_STRIDE
}

/// Which slot an address would belong to, and the offset in it. The offset may lie in the guard page.
pub(super) fn slot_of(addr: u64) -> Option<(usize, usize)> {
    let offset = addr.checked_sub(STREAM_BASE)?;
    Some((usize::try_from(offset / STREAM_STRIDE).ok()?, (offset % STREAM_STRIDE) as usize))
}

impl Streaming {
    pub(super) fn fresh_slot(&mut self, checks: bool) -> u32 {
        // The oldest free slot first: a stale address stays unmapped for as long as it can.
        let idle = if checks { IDLE_SLOTS } else { 0 };
        match self.free_slots.len() > idle {
            true => self.free_slots.pop_front().unwrap_or_default(),
            false => {
                self.slots.push(Slot::FREE);
                (self.slots.len() - 1) as u32
            }
        }
    }

    pub(super) fn fresh_page(&mut self) -> PageBytes {
        self.free_pages.pop().unwrap_or_else(|| PageBytes::filled(0))
    }

    /// A mapping has ended. What its page's watch knows stays with the slot until that is used again.
    pub(super) fn release_slot(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.owner = Owner::Free;
        slot.part = Part::WHOLE;
        if let Some(watch) = self.watches.get_mut(slot.watch) {
            watch.stage = Stage::Loose;
            self.free_pages.extend(watch.device_bytes.take());
        }
        self.free_slots.push_back(index);
    }

    /// Where in its page's list a fragment is.
    pub(super) fn fragment_index(&self, index: u32, part: Part) -> Option<usize> {
        self.slots.get(index as usize)?.fragment(|fragment| fragment.part == part)
    }

    /// The slot of a page or fragment that someone holds; `None` for a fragment whose page is gone.
    #[inline]
    pub(super) fn held(&mut self, index: u32, part: Part) -> Option<&mut Slot> {
        let page = self.slots.get_mut(index as usize)?;
        if page.part == part {
            return Some(page);
        }
        page.fragments.as_mut()?.0.iter_mut().find(|fragment| fragment.part == part)
    }

    /// The page comes from the device, as the CPU knows it.
    #[inline]
    pub(super) fn take_back(&mut self, index: u32, part: Part) -> PageBytes {
        // A page that the device owns has its bytes here; only a fragment whose page is gone has none.
        let Some(slot) = self.held(index, part) else { return PageBytes::filled(POISON) };
        slot.owner = Owner::Cpu;
        if slot.bytes.is_some() { slot.bytes.take() } else { PageBytes::filled(POISON) }
    }

    /// What is known of such a page or fragment; `None` with checks off.
    #[inline]
    pub(super) fn watched(&mut self, index: u32, part: Part) -> Option<(FuncId, Direction, &mut Watch)> {
        let slot = self.held(index, part)?;
        let (func, direction, watch) = (slot.func, slot.direction, slot.watch);
        Some((func, direction, self.watches.get_mut(watch)?))
    }

    /// The page or fragment that an access lies in, whoever's it is, and where in it: [`locate`](Self::locate) and
    /// [`at`](Self::at) in one, for where nobody watches.
    #[inline]
    pub(super) fn held_at(&mut self, addr: u64, len_bytes: usize) -> Option<(&mut Slot, Part)> {
        let (index, within) = slot_of(addr)?;
        let end = within.checked_add(len_bytes)?;
        let page = self.slots.get_mut(index)?;
        if end > PAGE_SIZE {
            return None;
        }
        let part = Part { start: within as u16, end: end as u16 };
        if page.part.contains(part) {
            return Some((page, part));
        }
        let fragments = page.fragments.as_mut()?.0.iter_mut();
        Some((fragments.into_iter().find(|fragment| fragment.part.contains(part))?, part))
    }

    /// Which page or fragment an access lies in, whoever's it is; `None` if it lies in none, or not wholly in one.
    #[inline]
    pub(super) fn locate(&self, addr: u64, len_bytes: usize) -> Option<Place> {
        let (index, within) = slot_of(addr)?;
        let end = within.checked_add(len_bytes)?;
        let page = self.slots.get(index)?;
        if end > PAGE_SIZE {
            return None;
        }
        let part = Part { start: within as u16, end: end as u16 };
        if page.part.contains(part) {
            return Some(Place { slot: index as u32, fragment: None, part });
        }
        let fragment = page.fragment(|fragment| fragment.part.contains(part))?;
        Some(Place { slot: index as u32, fragment: Some(fragment as u32), part })
    }

    /// What was located.
    #[inline]
    pub(super) fn at(&mut self, place: Place) -> (&mut Slot, &mut Watches) {
        let page = &mut self.slots[place.slot as usize];
        let slot = match place.fragment {
            Some(at) => &mut page.fragments.as_mut().map(|all| &mut all.0[..]).unwrap_or_default()[at as usize],
            None => page,
        };
        (slot, &mut self.watches)
    }

    /// Why the device may not go there, and the slot that it concerns. Slow, and asked only when it may not.
    pub(super) fn diagnose(&self, func: FuncId, addr: u64, len_bytes: usize) -> (Rule, Option<&Slot>) {
        let Some((index, within)) = slot_of(addr) else { return (Rule::DmaUnmapped, None) };
        let Some(page) = self.slots.get(index) else { return (Rule::DmaUnmapped, None) };
        if page.owner == Owner::Free {
            let freed = self.watches.get(page.watch).is_some_and(|watch| watch.stage == Stage::Freed);
            return (if freed { Rule::DmaAfterFree } else { Rule::DmaAfterUnmap }, Some(page));
        }
        let holds = |slot: &Slot| slot.part.range().contains(&within);
        let fragments = page.fragments.iter().flat_map(|fragments| &fragments.0);
        let piece = fragments.into_iter().find(|fragment| holds(fragment)).or(holds(page).then_some(page));
        let rule = match piece {
            _ if page.func != func => Rule::DmaWrongFunction,
            Some(piece) if within.saturating_add(len_bytes) > usize::from(piece.part.end) => Rule::DmaPastEnd,
            Some(piece) if piece.owner == Owner::Device => Rule::DmaWrongDirection,
            None if within >= PAGE_SIZE => Rule::DmaPastEnd,
            // Also where a fragment was joined and its page is not whole yet.
            _ => Rule::DmaWhileCpuOwns,
        };
        (rule, Some(piece.unwrap_or(page)))
    }
}
