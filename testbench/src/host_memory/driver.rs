//! Host memory as one function's driver has it.

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use driver_core::{Direction, DmaAddr, DmaError, DmaMemory, MapError, Page};
use regs::FuncId;

use super::arena::PageBytes;
use super::coherent::CoherentRegion;
use super::inject::Request;
use super::page::{PAGE_SIZE, Part};
use super::report::{Action, Deed};
use super::rule::Rule;
use super::streaming::{Fragments, Owner, POISON, Slot, slot_addr};
use super::watch::{Stage, WatchId};
use super::{Inner, SharedMemory};

/// One function's DMA space, for its driver.
#[derive(Clone)]
pub struct FunctionDma {
    pub(super) shared: Arc<SharedMemory>,
    pub(super) func: FuncId,
}

/// A page that the CPU owns, or a fragment of one.
#[derive(Debug)]
pub struct CpuPage {
    /// A page's worth also for a fragment, whose bytes lie where they lie in its page.
    bytes: PageBytes,
    home: Home,
    part: Part,
}

/// Where the checker finds what it knows of a page in the CPU's hands.
#[derive(Clone, Copy, Debug)]
enum Home {
    /// It is mapped.
    Mapped(u32),
    /// It is not; its watch.
    Loose(WatchId),
}

/// A page that the device owns, or a fragment of one.
#[derive(Debug)]
pub struct DevicePage {
    slot: u32,
    part: Part,
}

impl Page for CpuPage {
    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.bytes[self.part.range()]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.part.range()]
    }

    fn dma_addr(&self) -> Option<DmaAddr> {
        let index = self.slot()?;
        Some(DmaAddr(slot_addr(index) + u64::from(self.part.start)))
    }
}

impl CpuPage {
    fn slot(&self) -> Option<u32> {
        match self.home {
            Home::Mapped(index) => Some(index),
            Home::Loose(_) => None,
        }
    }
}

/// A call of the driver that the checker looks at.
#[derive(Clone, Copy)]
struct Call {
    deed: Deed,
    location: &'static Location<'static>,
    /// What it is about, in its page.
    part: Part,
}

impl FunctionDma {
    fn action(&self, call: Call) -> Action {
        let mut action = self.shared.action(call.deed, Some(call.location));
        (action.offset, action.len_bytes) = (call.part.start.into(), call.part.len() as u32);
        action
    }

    /// Report what a call does to a page or fragment.
    #[cold]
    fn report(&self, inner: &mut Inner, rule: Rule, index: u32, piece: Part, call: Call) {
        inner.report_call(rule, self.func, index, piece, self.action(call));
    }

    /// With checks on: is the page mapped for this function, and does the range stay in it?
    #[inline]
    fn check(&self, inner: &mut Inner, index: u32, piece: Part, range: (usize, usize), call: Call) {
        if !self.shared.checks {
            return;
        }
        if inner.streaming.held(index, piece).is_some_and(|slot| slot.func != self.func) {
            self.report(inner, Rule::ForeignPage, index, piece, call);
        }
        if !piece.fits(range.0, range.1) {
            self.report(inner, Rule::RangeOutsidePage, index, piece, call);
        }
    }

    /// A page comes from the device, with this range of it as the device left it.
    #[inline]
    fn take_back(&self, inner: &mut Inner, page: &DevicePage, range: (usize, usize), call: Call) -> PageBytes {
        let mut bytes = inner.streaming.take_back(page.slot, page.part);
        if self.shared.checks {
            let call = Call { part: page.part.within(range.0, range.1), ..call };
            self.check(inner, page.slot, page.part, range, call);
            if let Some((.., watch)) = inner.streaming.watched(page.slot, page.part) {
                watch.bring(&mut bytes, call.part);
                watch.note(self.action(call));
            }
        }
        bytes
    }

    /// With checks on: the call's part of a page goes to the device. Did the CPU change more of the device's buffer?
    fn send(&self, inner: &mut Inner, index: u32, page: &CpuPage, call: Call) {
        let Some((_, direction, watch)) = inner.streaming.watched(index, page.part) else { return };
        let mut changed = Part::EMPTY;
        if direction != Direction::ToDevice {
            changed = watch.changed_outside(&page.bytes, call.part);
        }
        if direction != Direction::FromDevice {
            watch.send(&page.bytes, call.part);
        }
        if changed.is_empty() {
            return watch.note(self.action(call));
        }
        self.report(inner, Rule::UnsyncedWrite, index, page.part, Call { part: changed, ..call });
        if let Some((.., watch)) = inner.streaming.watched(index, page.part) {
            watch.note(self.action(call));
        }
    }

    /// The end of a mapping. Fragments that are still out lose theirs with it.
    fn end_mapping(&self, inner: &mut Inner, index: u32, call: Call) {
        if let Some(out) = inner.streaming.slots[index as usize].fragments.take() {
            if let Some(first) = out.0.first() {
                inner.report_fragments_out(self.func, index, &out.0, first, self.action(call));
            }
            for fragment in out.0 {
                inner.streaming.watches.end(fragment.watch, self.action(call));
            }
        }
        inner.streaming.release_slot(index);
    }

    fn is_fragment(inner: &Inner, index: u32, part: Part) -> bool {
        // Nothing but the rest of a page, or all of it, ends with it and is in no list.
        part.end != Part::WHOLE.end || inner.streaming.fragment_index(index, part).is_some()
    }

    /// The buffer of a page that a descriptor names.
    #[track_caller]
    fn offer(&self, page: &DevicePage, offset: usize, len_bytes: usize) {
        let part = page.part.within(offset, len_bytes);
        let call = Call { deed: Deed::Offer, location: Location::caller(), part };
        let inner = &mut *self.shared.lock();
        self.check(inner, page.slot, page.part, (offset, len_bytes), call);
        if let Some((.., watch)) = inner.streaming.watched(page.slot, page.part) {
            watch.buffer = part;
            watch.note(self.action(call));
        }
    }
}

fn refused<P>(page: P, why: &'static str) -> MapError<P> {
    MapError { page, cause: DmaError::Invalid { why } }
}

impl DmaMemory for FunctionDma {
    type Coherent = CoherentRegion;
    type Page = CpuPage;
    type DevicePage = DevicePage;

    fn page_size(&self) -> usize {
        PAGE_SIZE
    }

    #[track_caller]
    fn alloc_coherent(&self, len_bytes: usize) -> Result<CoherentRegion, DmaError> {
        if len_bytes == 0 {
            return Err(DmaError::Invalid { why: "a coherent region of 0 bytes" });
        }
        let action = self.shared.action(Deed::Alloc, Some(Location::caller()));
        let inner = &mut *self.shared.lock();
        if inner.inject.fails(Request::Coherent) {
            return Err(DmaError::OutOfMemory { len_bytes });
        }
        let index = inner.regions.alloc(self.func, len_bytes, action).ok_or(DmaError::OutOfMemory { len_bytes })?;
        Ok(CoherentRegion::of(&self.shared, index, &inner.regions.all[index]))
    }

    #[track_caller]
    fn alloc_page(&self) -> Result<CpuPage, DmaError> {
        let action = self.shared.action(Deed::Alloc, Some(Location::caller()));
        let inner = &mut *self.shared.lock();
        if inner.inject.fails(Request::Page) {
            return Err(DmaError::OutOfMemory { len_bytes: PAGE_SIZE });
        }
        let mut bytes = inner.streaming.fresh_page();
        let mut watch = WatchId::NOBODY;
        if self.shared.checks {
            bytes.fill(POISON);
            watch = inner.streaming.watches.begin(self.func, Stage::Loose, Part::WHOLE, action);
        }
        inner.streaming.pages_out += 1;
        Ok(CpuPage { bytes, home: Home::Loose(watch), part: Part::WHOLE })
    }

    #[track_caller]
    fn free_page(&self, page: CpuPage) {
        let call = Call { deed: Deed::Free, location: Location::caller(), part: page.part };
        let inner = &mut *self.shared.lock();
        let watch = match page.home {
            Home::Loose(watch) => watch,
            Home::Mapped(index) => {
                self.check(inner, index, page.part, (0, 0), call);
                if Self::is_fragment(inner, index, page.part) {
                    return self.report(inner, Rule::FragmentAlone, index, page.part, call);
                }
                self.end_mapping(inner, index, call);
                inner.streaming.slots[index as usize].watch
            }
        };
        inner.streaming.watches.end(watch, self.action(call));
        inner.streaming.pages_out = inner.streaming.pages_out.saturating_sub(1);
        inner.streaming.free_pages.push(page.bytes);
    }

    #[track_caller]
    fn map(&self, page: CpuPage, direction: Direction, len_bytes: usize) -> Result<DevicePage, MapError<CpuPage>> {
        let Home::Loose(id) = page.home else { return Err(refused(page, "the page is mapped already")) };
        if len_bytes > PAGE_SIZE {
            return Err(refused(page, "longer than a page"));
        }
        let part = Part::WHOLE.within(0, len_bytes);
        let call = Call { deed: Deed::Map, location: Location::caller(), part };
        let inner = &mut *self.shared.lock();
        if inner.inject.fails(Request::Mapping) {
            return Err(MapError { page, cause: DmaError::OutOfMemory { len_bytes: PAGE_SIZE } });
        }
        let index = inner.streaming.fresh_slot(self.shared.checks);
        let mut bytes = page.bytes;
        if self.shared.checks {
            let mut device = inner.streaming.fresh_page();
            device.fill(POISON);
            let mut synced = part;
            if direction == Direction::FromDevice {
                bytes.fill(POISON);
                synced = Part::EMPTY;
            }
            if let Some(watch) = inner.streaming.watches.get_mut(id) {
                (watch.stage, watch.device_bytes) = (Stage::Mapped, Some(device));
                (watch.buffer, watch.seen, watch.unseen) = (Part::WHOLE, Part::EMPTY, Part::EMPTY);
                watch.send(&bytes, synced);
                watch.note(self.action(call));
            }
        }
        inner.streaming.slots[index as usize] = Slot {
            func: self.func,
            owner: Owner::Device,
            direction,
            part: Part::WHOLE,
            bytes,
            watch: id,
            fragments: None,
        };
        Ok(DevicePage { slot: index, part: Part::WHOLE })
    }

    fn device_addr(&self, page: &DevicePage) -> DmaAddr {
        DmaAddr(slot_addr(page.slot) + u64::from(page.part.start))
    }

    #[track_caller]
    fn buffer_addr(&self, page: &DevicePage, offset: usize, len_bytes: usize) -> DmaAddr {
        if self.shared.checks {
            self.offer(page, offset, len_bytes);
        }
        self.device_addr(page) + offset as u64
    }

    #[inline]
    #[track_caller]
    fn sync_for_cpu(&self, page: DevicePage, offset: usize, len_bytes: usize) -> CpuPage {
        let call = Call { deed: Deed::SyncForCpu, location: Location::caller(), part: page.part };
        let bytes = self.take_back(&mut self.shared.lock(), &page, (offset, len_bytes), call);
        CpuPage { bytes, home: Home::Mapped(page.slot), part: page.part }
    }

    #[inline]
    #[track_caller]
    fn sync_for_device(&self, page: CpuPage, offset: usize, len_bytes: usize) -> Result<DevicePage, MapError<CpuPage>> {
        let Home::Mapped(index) = page.home else {
            return Err(refused(page, "sync_for_device of a page that is not mapped"));
        };
        let part = page.part;
        let location = Location::caller();
        let inner = &mut *self.shared.lock();
        if self.shared.checks {
            let call = Call { deed: Deed::SyncForDevice, location, part: part.within(offset, len_bytes) };
            self.check(inner, index, part, (offset, len_bytes), call);
            self.send(inner, index, &page, call);
        }
        let Some(slot) = inner.streaming.held(index, part) else {
            return Err(refused(page, "a fragment whose page is gone"));
        };
        slot.owner = Owner::Device;
        slot.bytes = page.bytes;
        Ok(DevicePage { slot: index, part })
    }

    #[track_caller]
    fn unmap(&self, page: DevicePage, len_bytes: usize) -> CpuPage {
        let DevicePage { slot: index, part } = page;
        let call = Call { deed: Deed::Unmap, location: Location::caller(), part: part.within(0, len_bytes) };
        let inner = &mut *self.shared.lock();
        let bytes = self.take_back(inner, &page, (0, len_bytes), call);
        if Self::is_fragment(inner, index, part) {
            self.report(inner, Rule::FragmentAlone, index, part, call);
            return CpuPage { bytes, home: Home::Mapped(index), part };
        }
        let watch = inner.streaming.slots[index as usize].watch;
        self.end_mapping(inner, index, call);
        CpuPage { bytes, home: Home::Loose(watch), part: Part::WHOLE }
    }

    #[track_caller]
    fn split(&self, page: &mut CpuPage, len_bytes: usize) -> Result<CpuPage, DmaError> {
        let invalid = |why| Err(DmaError::Invalid { why });
        let Some(index) = page.slot() else { return invalid("a page that is not mapped is split") };
        if len_bytes == 0 || len_bytes > page.part.len() {
            return invalid("a fragment of 0 bytes, or of more than are left of the page");
        }
        let part = page.part.within(0, len_bytes);
        let call = Call { deed: Deed::Split, location: Location::caller(), part };
        let inner = &mut *self.shared.lock();
        self.check(inner, index, page.part, (0, len_bytes), call);
        if Self::is_fragment(inner, index, page.part) {
            return invalid("a fragment is split");
        }
        let streaming = &mut inner.streaming;
        let mut bytes = streaming.fresh_page();
        bytes[part.range()].copy_from_slice(&page.bytes[part.range()]);
        let mut watch = WatchId::NOBODY;
        if self.shared.checks {
            let mut device = streaming.fresh_page();
            device.fill(POISON);
            watch = streaming.watches.begin(self.func, Stage::Mapped, part, self.action(call));
            let whole = streaming.watches.get(streaming.slots[index as usize].watch);
            if let Some(whole) = whole.and_then(|whole| whole.device_bytes.as_ref()) {
                device[part.range()].copy_from_slice(&whole[part.range()]);
            }
            if let Some(watch) = streaming.watches.get_mut(watch) {
                watch.device_bytes = Some(device);
                watch.note(self.action(call));
            }
        }
        let slot = &mut streaming.slots[index as usize];
        slot.part.start = part.end;
        page.part.start = part.end;
        let (func, direction) = (slot.func, slot.direction);
        let fragment =
            Slot { func, owner: Owner::Cpu, direction, part, bytes: PageBytes::NONE, watch, fragments: None };
        slot.fragments.get_or_insert_with(|| Box::new(Fragments(Vec::new()))).0.push(fragment);
        if let Some((.., watch)) = streaming.watched(index, page.part) {
            watch.buffer = page.part;
        }
        Ok(CpuPage { bytes, home: Home::Mapped(index), part })
    }

    #[track_caller]
    fn join(&self, page: &mut CpuPage, fragment: CpuPage) -> Result<(), MapError<CpuPage>> {
        let call = Call { deed: Deed::Join, location: Location::caller(), part: fragment.part };
        let action = self.action(call);
        let inner = &mut *self.shared.lock();
        let index = page.slot().filter(|index| fragment.slot() == Some(*index));
        let at = index.and_then(|index| Some((index, inner.streaming.fragment_index(index, fragment.part)?)));
        let Some((index, at)) = at else {
            return Err(refused(fragment, "a page is joined that is no fragment of this one"));
        };
        let streaming = &mut inner.streaming;
        let slot = &mut streaming.slots[index as usize];
        let Some(fragments) = &mut slot.fragments else {
            return Err(refused(fragment, "a page is joined that has no fragments"));
        };
        let joined = fragments.0.swap_remove(at);
        if fragments.0.is_empty() {
            slot.part = Part::WHOLE;
            page.part = Part::WHOLE;
        }
        if let Some(watch) = streaming.watches.get_mut(joined.watch) {
            streaming.free_pages.extend(watch.device_bytes.take());
        }
        streaming.watches.end(joined.watch, action);
        streaming.free_pages.push(fragment.bytes);
        if let Some(watch) = streaming.watches.get_mut(streaming.slots[index as usize].watch) {
            (watch.buffer, watch.seen) = (page.part, Part::EMPTY);
            watch.note(action);
        }
        Ok(())
    }

    fn dma_rmb(&self) {
        fence(Ordering::Acquire);
    }

    fn dma_wmb(&self) {
        fence(Ordering::Release);
    }
}
