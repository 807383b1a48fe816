//! Host memory as a card sees it.

use std::sync::MutexGuard;

use models::host_memory::{DmaFault, HostMemory};
use regs::FuncId;

use super::arena::PageBytes;
use super::coherent::{is_torn, read_words, write_words};
use super::report::{Action, Deed};
use super::rule::Rule;
use super::streaming::{Place, STREAM_BASE};
use super::{Inner, SharedMemory};

/// Host memory, lent to a card for the length of one call.
pub struct CardView<'a> {
    pub(super) inner: MutexGuard<'a, Inner>,
    pub(super) shared: &'a SharedMemory,
}

/// One access.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) func: FuncId,
    pub(super) addr: u64,
    pub(super) len_bytes: usize,
    pub(super) deed: Deed,
}

impl CardView<'_> {
    /// Report an access that can't be done, and say so to the card.
    #[cold]
    fn refuse(&mut self, access: Access) -> DmaFault {
        let rule = self.inner.report_access(access, None, self.shared.now());
        let Access { func, addr, len_bytes, .. } = access;
        match rule {
            Rule::DmaWhileCpuOwns | Rule::DmaWrongDirection => {
                DmaFault::Forbidden { func, addr, len_bytes, why: rule.sentence() }
            }
            _ => DmaFault::Unmapped { func, addr, len_bytes },
        }
    }

    /// Report an access that is done all the same.
    #[cold]
    fn report(&mut self, access: Access, rule: Rule) {
        self.inner.report_access(access, Some(rule), self.shared.now());
    }

    /// Where it goes, if the device may access it so.
    #[inline]
    fn page(&mut self, access: Access) -> Option<Place> {
        let place = self.inner.streaming.locate(access.addr, access.len_bytes)?;
        let (slot, _) = self.inner.streaming.at(place);
        slot.lets(access.func, access.deed == Deed::DmaWrite).then_some(place)
    }

    /// A rule that the access breaks without being refused.
    #[inline]
    fn broken_by(&mut self, place: Place, deed: Deed) -> Option<Rule> {
        let (slot, watches) = self.inner.streaming.at(place);
        let watch = watches.get(slot.watch)?;
        if !watch.buffer.contains(place.part) {
            return Some(Rule::DmaOutsideBuffer);
        }
        let stale = deed == Deed::DmaRead && watch.is_stale(&slot.bytes, place.part);
        stale.then_some(Rule::DmaStaleRead)
    }

    fn action(&self, deed: Deed, offset: usize, len_bytes: usize) -> Action {
        Action { deed, time: self.shared.now(), location: None, offset: offset as u32, len_bytes: len_bytes as u32 }
    }

    /// The region and offset of an access to coherent memory, checked and noted.
    #[inline]
    fn region(&mut self, access: Access) -> Option<(usize, usize)> {
        let (index, within) = self.inner.regions.locate(access.func, access.addr, access.len_bytes)?;
        if self.shared.checks {
            if is_torn(within, access.len_bytes) {
                self.report(access, Rule::DmaTorn);
            }
            self.inner.regions.all[index].last_device = Some(self.action(access.deed, within, access.len_bytes));
        }
        Some((index, within))
    }

    /// With checks on: the device's copy of the page, after what lets an access through has been checked and the access
    /// noted.
    #[inline]
    fn device_bytes(&mut self, access: Access, place: Place) -> Option<&mut PageBytes> {
        if let Some(rule) = self.broken_by(place, access.deed) {
            self.report(access, rule);
        }
        let action = self.action(access.deed, place.part.start.into(), access.len_bytes);
        let (slot, watches) = self.inner.streaming.at(place);
        let watch = watches.get_mut(slot.watch)?;
        watch.note(action);
        if access.deed == Deed::DmaWrite {
            watch.unseen = watch.unseen.hull(place.part);
        }
        watch.device_bytes.as_mut()
    }

    /// The bytes that the device accesses, if it may.
    #[inline]
    fn bytes(&mut self, access: Access) -> Option<&mut [u8]> {
        if !self.shared.checks {
            let (slot, part) = self.inner.streaming.held_at(access.addr, access.len_bytes)?;
            // A page that the device owns has its bytes: `map` and `sync_for_device` moved them in.
            let may = slot.lets(access.func, access.deed == Deed::DmaWrite);
            return if may { slot.bytes.get_mut(part.range()) } else { None };
        }
        let place = self.page(access)?;
        self.device_bytes(access, place)?.get_mut(place.part.range())
    }
}

impl HostMemory for CardView<'_> {
    fn read(&mut self, func: FuncId, addr: u64, buf: &mut [u8]) -> Result<(), DmaFault> {
        let access = Access { func, addr, len_bytes: buf.len(), deed: Deed::DmaRead };
        if addr < STREAM_BASE {
            let Some((index, within)) = self.region(access) else { return Err(self.refuse(access)) };
            read_words(&self.inner.regions.all[index].words, within, buf);
            return Ok(());
        }
        let Some(bytes) = self.bytes(access) else { return Err(self.refuse(access)) };
        buf.copy_from_slice(bytes);
        Ok(())
    }

    fn write(&mut self, func: FuncId, addr: u64, data: &[u8]) -> Result<(), DmaFault> {
        let access = Access { func, addr, len_bytes: data.len(), deed: Deed::DmaWrite };
        if addr < STREAM_BASE {
            let Some((index, within)) = self.region(access) else { return Err(self.refuse(access)) };
            write_words(&self.inner.regions.all[index].words, within, data);
            return Ok(());
        }
        let Some(bytes) = self.bytes(access) else { return Err(self.refuse(access)) };
        bytes.copy_from_slice(data);
        Ok(())
    }
}
