//! Host memory, one object for both sides, checking both.
//!
//! A card sees it as [`models::host_memory::HostMemory`] (bytes at a function's DMA address), a driver as
//! [`driver_core::DmaMemory`] (coherent regions and streaming pages). Every DMA access must lie inside a live mapping
//! of the right function and direction while the device owns it; pages are separated by unmapped guard pages; freed
//! memory is gone.
//!
//! With checks on, streaming memory is not coherent either: a mapped page has two copies, the CPU's and the device's,
//! and only a sync moves bytes between them, as on a machine with bounce buffers. What was never synced reads as poison.
//! With checks off (benchmarks) there is one copy, and hand-over moves a pointer.
//!
//! ```text
//!   coherent  0x1000_0000    + n · 4 KiB       atomics, one guard page after each region, below 4 GiB
//!   streaming 0x10_0000_0000 + slot · 8 KiB    4 KiB page, 4 KiB guard
//! ```
//!
//! # The checker
//!
//! What can be broken is a [`Rule`]; each has an id that stays. Two kinds of DMA are told apart:
//!
//! * what an IOMMU would stop is **refused**, and reported: it changes nothing in memory;
//! * what an IOMMU, which knows pages only, would **let through** is done and reported: DMA beside the buffer that a
//!   descriptor offered ([`DmaMemory::buffer_addr`](driver_core::DmaMemory::buffer_addr) tells), a read of bytes that
//!   the CPU changed and never synced, an access to coherent memory that can be seen half done. The run goes on to show
//!   what comes of it.
//!
//! On the driver's side types do most of the work: a freed page, or one that the device has, is a value that nobody
//! holds, so it can be neither written nor freed twice. Memory that was freed is filled with poison before it is handed
//! out again; its addresses lie idle for a while, and what was known of it is remembered, so that DMA to a stale address
//! is told whose it was and who let go of it. What is left is reported: unsynced writes, ranges that leave their page,
//! pages of another function, fragments that outlive their page, and at the end whatever was not given back, with the
//! line that allocated it.
//!
//! ```text
//!   host memory: dma-outside-buffer: DMA inside the page, but outside the buffer that was offered
//!     what     DMA write of 64 bytes at 0x1000000d40, function 0, at 1200.000 ns
//!     where    page 0x1000000000, offset 3392 to 3456; the buffer is 256 to 3328
//!              |----================================================-!----------| 64 bytes each: = buffer, …
//!     owner    the device, mapped FromDevice, of function 0
//!     origin   alloc, at 0.000 ns (driver-core/src/ring/page_source.rs:46:24)
//!     CPU      buffer_addr of 3072 bytes at offset 256, at 16.000 ns (driver-core/src/ring/rx.rs:682:23)
//!     device   DMA write of 60 bytes at offset 256, at 1100.000 ns
//!     help     compare the buffer size that the card uses with the driver's geometry; …
//! ```

mod arena;
mod card;
mod coherent;
mod driver;
mod inject;
mod page;
mod report;
mod rule;
mod streaming;
mod tap;
mod watch;

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use models::time::Time;
use regs::FuncId;

pub use card::CardView;
pub use coherent::CoherentRegion;
pub use driver::{CpuPage, DevicePage, FunctionDma};
pub use inject::Request;
pub use page::PAGE_SIZE;
pub use report::{Action, Deed, Life, Violation};
pub use rule::Rule;
pub use streaming::POISON;
pub use tap::{DmaTap, TappedDma};

use card::Access;
use coherent::Regions;
use inject::Inject;
use page::Part;
use report::{Log, Picture};
use streaming::{Owner, STREAM_BASE, Slot, Streaming, slot_addr, slot_of};

#[derive(Default)]
struct Inner {
    streaming: Streaming,
    regions: Regions,
    log: Log,
    inject: Inject,
}

/// The object. Cheap to share; see the module.
pub struct SharedMemory {
    inner: Mutex<Inner>,
    now_ps: AtomicU64,
    checks: bool,
}

/// Counts for a report at the end of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryCounts {
    /// Pages that someone holds, mapped or not.
    pub pages_out: usize,
    /// Live streaming mappings.
    pub mappings: usize,
    /// Fragments that are out.
    pub fragments: usize,
    /// Live coherent regions.
    pub regions: usize,
}

impl SharedMemory {
    /// Empty memory, `checks` as the module says.
    pub fn new(checks: bool) -> Arc<SharedMemory> {
        Arc::new(SharedMemory { inner: Mutex::default(), now_ps: AtomicU64::new(0), checks })
    }

    /// The card's view, for the length of one call into it. It holds the lock: until it is dropped, no driver of this memory
    /// gets on, so none must be waited for.
    pub fn lend(&self) -> CardView<'_> {
        CardView { inner: self.lock(), shared: self }
    }

    /// One function's view, for its driver.
    pub fn function(self: &Arc<Self>, func: FuncId) -> FunctionDma {
        FunctionDma { shared: Arc::clone(self), func }
    }

    /// Tell the time, for reports.
    pub fn set_now(&self, now: Time) {
        self.now_ps.store(now.0, Ordering::Relaxed);
    }

    /// Broken rules so far, in the order in which they were broken. Of each rule the first 20 are kept.
    pub fn violations(&self) -> Vec<Violation> {
        self.lock().log.kept().to_vec()
    }

    /// How many more there were.
    pub fn violations_dropped(&self) -> u64 {
        self.lock().log.dropped()
    }

    /// All of it as text: broken rules, how many more there were, and at the end of a run what was not given back.
    pub fn reports(&self, at_the_end: bool) -> Vec<String> {
        let mut reports: Vec<String> = self.violations().iter().map(ToString::to_string).collect();
        match self.violations_dropped() {
            0 => {}
            more => reports.push(format!("host memory: and {more} more of the rules above were broken")),
        }
        if at_the_end {
            reports.extend(self.leaks().iter().map(ToString::to_string));
        }
        reports
    }

    /// What is held at present.
    pub fn counts(&self) -> MemoryCounts {
        let inner = self.lock();
        let mapped = || inner.streaming.slots.iter().filter(|slot| slot.owner != Owner::Free);
        MemoryCounts {
            pages_out: inner.streaming.pages_out,
            mappings: mapped().count(),
            fragments: mapped().flat_map(|slot| &slot.fragments).map(|fragments| fragments.0.len()).sum(),
            regions: inner.regions.all.iter().filter(|region| region.live).count(),
        }
    }

    /// What nobody gave back, as violations that name the line which allocated it. With checks off, lines are not
    /// known, and pages that are not mapped are only counted in [`SharedMemory::counts`].
    pub fn leaks(&self) -> Vec<Violation> {
        self.lock().leaks(self.now())
    }

    /// Let allocations `first..first + count` (counted from now, pages and regions alike) fail.
    pub fn fail_allocations(&self, first: u64, count: u64) {
        self.lock().inject.fail_allocations(first, count);
    }

    /// Let requests `first..first + count` of one kind (counted from now) fail: no memory, or no room in the IOMMU.
    pub fn fail(&self, kind: Request, first: u64, count: u64) {
        self.lock().inject.fail(kind, first, count);
    }

    /// No request fails any more.
    pub fn fail_nothing(&self) {
        self.lock().inject.clear();
    }

    /// Requests of one kind so far, those that failed included: what a test that lets each fail in turn counts up to.
    pub fn requests(&self, kind: Request) -> u64 {
        self.lock().inject.made(kind)
    }

    /// Requests that were let fail so far, of all kinds: whether a test that wants failures has had any.
    pub fn failed_requests(&self) -> u64 {
        self.lock().inject.failed()
    }

    fn now(&self) -> Time {
        Time(self.now_ps.load(Ordering::Relaxed))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic elsewhere while the lock was held has already failed the run; the state is plain data.
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn action(&self, deed: Deed, location: Option<&'static Location<'static>>) -> Action {
        Action { deed, time: self.now(), location, offset: 0, len_bytes: 0 }
    }
}

/// Reports are put together here, from both kinds of memory.
impl Inner {
    /// Report an access of the device, by the rule given, or by the first that forbids it.
    fn report_access(&mut self, access: Access, rule: Option<Rule>, time: Time) -> Rule {
        let Access { func, addr, len_bytes, deed } = access;
        let (found, place, life, picture) = match addr < STREAM_BASE {
            true => self.coherent_place(func, addr),
            false => self.streaming_place(func, addr, len_bytes),
        };
        let rule = rule.unwrap_or(found);
        self.log.push(Violation {
            rule,
            func,
            addr,
            len_bytes,
            time,
            deed,
            location: None,
            place,
            picture: picture.filter(|_| rule == Rule::DmaOutsideBuffer),
            life,
        });
        rule
    }

    fn coherent_place(&self, func: FuncId, addr: u64) -> (Rule, String, Life, Option<Picture>) {
        let (rule, region) = self.regions.diagnose(func, addr);
        let Some(region) = region else { return (rule, NOWHERE.into(), nobody(), None) };
        let (base, len_bytes) = (region.base, region.len_bytes);
        let place = format!("coherent region {base:#x} of {len_bytes} bytes, offset {}", addr - base);
        (rule, place, region.life(), None)
    }

    fn streaming_place(&self, func: FuncId, addr: u64, len_bytes: usize) -> (Rule, String, Life, Option<Picture>) {
        let (rule, slot) = self.streaming.diagnose(func, addr, len_bytes);
        let (Some(slot), Some((index, within))) = (slot, slot_of(addr)) else {
            return (rule, NOWHERE.into(), nobody(), None);
        };
        let watch = self.streaming.watches.get(slot.watch);
        let page = slot_addr(index as u32);
        let mut place = format!("page {page:#x}, offset {within} to {}", within.saturating_add(len_bytes));
        if slot.part != Part::WHOLE {
            place += &format!("; fragment {} to {}", slot.part.start, slot.part.end);
        }
        let mut picture = None;
        if let Some(watch) = watch
            && watch.buffer != Part::WHOLE
        {
            place += &format!("; the buffer is {} to {}", watch.buffer.start, watch.buffer.end);
            picture = Some(Picture { buffer: watch.buffer, access: Part::WHOLE.within(within, len_bytes) });
        }
        (rule, place, self.life(slot), picture)
    }

    fn life(&self, slot: &Slot) -> Life {
        let watch = self.streaming.watches.get(slot.watch);
        let owner = slot.owner_words(watch);
        watch.map_or_else(|| Life { owner: owner.clone(), ..Life::default() }, |watch| watch.life(owner.clone()))
    }

    /// Report a call of a driver that concerns a page or fragment which it holds.
    fn report_call(&mut self, rule: Rule, func: FuncId, index: u32, piece: Part, action: Action) {
        let Some(slot) = self.streaming.held(index, piece) else { return };
        let watch = slot.watch;
        let owner = slot.owner_words(None);
        let life = match self.streaming.watches.get(watch) {
            Some(watch) => watch.life(owner),
            None => Life { owner, ..Life::default() },
        };
        let (from, len_bytes) = (action.offset, action.len_bytes);
        let place = format!("page {:#x}, offset {from} to {}", slot_addr(index), from + len_bytes);
        self.log.push(Violation {
            rule,
            func,
            addr: slot_addr(index) + u64::from(from),
            len_bytes: len_bytes as usize,
            time: action.time,
            deed: action.deed,
            location: action.location,
            place,
            picture: None,
            life,
        });
    }

    fn report_fragments_out(&mut self, func: FuncId, index: u32, out: &[Slot], first: &Slot, action: Action) {
        let place = format!(
            "page {:#x}: {} fragments are out, the first is {} to {}",
            slot_addr(index),
            out.len(),
            first.part.start,
            first.part.end
        );
        self.log.push(Violation {
            rule: Rule::FragmentsOut,
            func,
            addr: slot_addr(index) + u64::from(first.part.start),
            len_bytes: first.part.len(),
            time: action.time,
            deed: action.deed,
            location: action.location,
            place,
            picture: None,
            life: self.life(first),
        });
    }

    fn leaks(&self, time: Time) -> Vec<Violation> {
        let leak = |rule, func, addr, len_bytes, place, life| Violation {
            rule,
            func,
            addr,
            len_bytes,
            time,
            deed: Deed::End,
            location: None,
            place,
            picture: None,
            life,
        };
        let mut leaks = Vec::new();
        let mapped = self.streaming.slots.iter().enumerate().filter(|(_, slot)| slot.owner != Owner::Free);
        for (index, slot) in mapped {
            let page = slot_addr(index as u32);
            let place = format!("page {page:#x}");
            leaks.push(leak(Rule::LeakedMapping, slot.func, page, PAGE_SIZE, place, self.life(slot)));
            for fragment in slot.fragments.iter().flat_map(|fragments| &fragments.0) {
                let Part { start, end } = fragment.part;
                let place = format!("page {page:#x}, fragment {start} to {end}");
                let (addr, len_bytes) = (page + u64::from(start), fragment.part.len());
                leaks.push(leak(Rule::LeakedFragment, slot.func, addr, len_bytes, place, self.life(fragment)));
            }
        }
        let owner = "the CPU, not mapped";
        leaks.extend(self.streaming.watches.loose().map(|watch| {
            leak(
                Rule::LeakedPage,
                watch.func,
                0,
                PAGE_SIZE,
                "a page without an address".into(),
                watch.life(owner.into()),
            )
        }));
        leaks.extend(self.regions.all.iter().filter(|region| region.live).map(|region| {
            let place = format!("coherent region {:#x} of {} bytes", region.base, region.len_bytes);
            leak(Rule::LeakedRegion, region.func, region.base, region.len_bytes, place, region.life())
        }));
        leaks
    }
}

/// Where there is nothing.
const NOWHERE: &str = "no page or region begins there or shortly before";

fn nobody() -> Life {
    Life { owner: "nobody".into(), ..Life::default() }
}

#[cfg(test)]
mod tests;
