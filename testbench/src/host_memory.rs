//! Host memory, one object for both sides, checking both.
//!
//! A card sees it as [`models::host_memory::HostMemory`] (bytes at a function's DMA address), a driver as
//! [`driver_core::DmaMemory`] (coherent regions and streaming pages). Every DMA access must lie inside a live mapping of
//! the right function and direction while the device owns it; pages are separated by unmapped guard pages; freed
//! memory is gone.
//!
//! With checks on, streaming memory is not coherent either: a mapped page has two copies, the CPU's and the device's, and
//! only a sync moves bytes between them, as on a machine with bounce buffers. What was never synced reads as poison.
//! With checks off (benchmarks) there is one copy, and hand-over moves a pointer.
//!
//! ```text
//!   coherent  COHERENT_BASE + n · 4 KiB        atomics, one guard page after each region, below 4 GiB
//!   streaming STREAM_BASE   + slot · 8 KiB     4 KiB page, 4 KiB guard
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard};

use driver_core::{Coherent, Direction, DmaAddr, DmaError, DmaMemory, MapError, Page};
use models::host_memory::{DmaFault, HostMemory};
use models::time::Time;
use regs::FuncId;

/// Bytes in a streaming page.
pub const PAGE_SIZE: usize = 4096;
/// What the CPU reads where nothing was synced to it, and the device where nothing was synced to that.
pub const POISON: u8 = 0xa5;

const COHERENT_BASE: u64 = 0x1000_0000;
const COHERENT_END: u64 = 0xf000_0000;
const STREAM_BASE: u64 = 0x10_0000_0000;
const STREAM_STRIDE: u64 = 2 * PAGE_SIZE as u64;
/// How many past actions on a page are kept for a report.
const HISTORY: usize = 6;

/// One thing that someone did to a page or region.
#[derive(Clone, Copy, Debug)]
pub struct Action {
    /// `map`, `sync_for_cpu`, `dma write`, …
    pub what: &'static str,
    /// Simulated time.
    pub time: Time,
    /// Where in the code, for the CPU's actions.
    pub location: Option<&'static Location<'static>>,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.what, self.time)?;
        if let Some(location) = self.location {
            write!(f, " ({location})")?;
        }
        Ok(())
    }
}

/// A broken rule: what, where, who had it, and what was last done to it.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The rule in a sentence.
    pub rule: &'static str,
    /// Whose DMA space.
    pub func: FuncId,
    /// First DMA address of the access, or of the page.
    pub addr: u64,
    /// Length of the access.
    pub len_bytes: usize,
    /// When.
    pub time: Time,
    /// Who owned the memory, in words.
    pub owner: String,
    /// What was done to it before, oldest first.
    pub history: Vec<Action>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "host memory: {}", self.rule)?;
        writeln!(
            f,
            "  where    {}, DMA address {:#x}, {} bytes, at {}",
            self.func, self.addr, self.len_bytes, self.time
        )?;
        write!(f, "  owner    {}", self.owner)?;
        for action in &self.history {
            write!(f, "\n  before   {action}")?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    Free,
    Device,
    Cpu,
}

/// A page's bytes, beginning at a cache line: a small frame behind its headroom touches one line, not two.
#[derive(Debug)]
#[repr(align(64))]
struct PageBytes([u8; PAGE_SIZE]);

/// Small, for a run goes through thousands of slots in a round, and each is out of the cache when its turn comes.
struct Slot {
    func: FuncId,
    owner: Owner,
    direction: Direction,
    /// The page while the device owns it; with checks on, the CPU's copy.
    bytes: Option<Box<PageBytes>>,
    /// With checks on, the device's copy while mapped.
    device_bytes: Option<Box<PageBytes>>,
    /// With checks on.
    history: Option<Box<History>>,
    /// Which bytes of the page this is: all of them, what fragments have left of it, or one fragment.
    part: Part,
    /// Of a page: those that are out.
    fragments: Option<Box<Vec<Slot>>>,
}

/// A range of a page's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Part {
    start: u16,
    end: u16,
}

impl Part {
    const WHOLE: Part = Part { start: 0, end: PAGE_SIZE as u16 };

    /// `offset` and `len_bytes` within this part, as a range of the page, cut off at the part's end.
    fn range(self, offset: usize, len_bytes: usize) -> std::ops::Range<usize> {
        let (start, end) = (usize::from(self.start), usize::from(self.end));
        let at = |offset: usize| start.saturating_add(offset).min(end);
        at(offset)..at(offset.saturating_add(len_bytes))
    }

    fn all(self) -> std::ops::Range<usize> {
        usize::from(self.start)..usize::from(self.end)
    }
}

/// What was last done to a page, oldest first.
struct History(VecDeque<Action>);

impl Slot {
    /// The fragment that holds this byte of the page.
    fn fragment_at(&mut self, within: usize) -> Option<&mut Slot> {
        self.fragments.as_deref_mut()?.iter_mut().find(|fragment| fragment.part.all().contains(&within))
    }

    /// What was done to it, oldest first.
    fn history(&self) -> Vec<Action> {
        self.history.iter().flat_map(|history| &history.0).copied().collect()
    }
}

impl std::ops::Deref for PageBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl std::ops::DerefMut for PageBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl PageBytes {
    fn filled(byte: u8) -> Box<PageBytes> {
        Box::new(PageBytes([byte; PAGE_SIZE]))
    }
}

struct Region {
    func: FuncId,
    base: u64,
    len_bytes: usize,
    live: bool,
    words: Arc<[AtomicU64]>,
    mapped: Action,
    freed: Option<Action>,
}

struct Inner {
    slots: Vec<Slot>,
    free_slots: VecDeque<u32>,
    free_pages: Vec<Box<PageBytes>>,
    pages_out: usize,
    regions: Vec<Region>,
    /// Region index + 1 for each 4 KiB of coherent space in use; 0 is a guard page.
    region_of: Vec<u32>,
    violations: Vec<Violation>,
    violations_dropped: u64,
    fail_allocations: Option<(u64, u64)>,
    allocations: u64,
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
    /// Live coherent regions.
    pub regions: usize,
}

impl SharedMemory {
    /// Empty memory, `checks` as the module says.
    pub fn new(checks: bool) -> Arc<SharedMemory> {
        Arc::new(SharedMemory {
            inner: Mutex::new(Inner {
                slots: Vec::new(),
                free_slots: VecDeque::new(),
                free_pages: Vec::new(),
                pages_out: 0,
                regions: Vec::new(),
                region_of: Vec::new(),
                violations: Vec::new(),
                violations_dropped: 0,
                fail_allocations: None,
                allocations: 0,
            }),
            now_ps: AtomicU64::new(0),
            checks,
        })
    }

    /// The card's view, for the length of one call into it.
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

    /// Broken rules so far, the first 100 of them.
    pub fn violations(&self) -> Vec<Violation> {
        self.lock().violations.clone()
    }

    /// Broken rules beyond the first 100: how many.
    pub fn violations_dropped(&self) -> u64 {
        self.lock().violations_dropped
    }

    /// What is held at present.
    pub fn counts(&self) -> MemoryCounts {
        let inner = self.lock();
        MemoryCounts {
            pages_out: inner.pages_out,
            mappings: inner.slots.iter().filter(|s| s.owner != Owner::Free).count(),
            regions: inner.regions.iter().filter(|r| r.live).count(),
        }
    }

    /// Mappings and regions that nobody ended, as violations that name the line which made them.
    pub fn leaks(&self) -> Vec<Violation> {
        let inner = self.lock();
        let now = self.now();
        let pages = inner.slots.iter().enumerate().filter(|(_, s)| s.owner != Owner::Free).map(|(slot, s)| Violation {
            rule: "a streaming mapping was never ended",
            func: s.func,
            addr: slot_addr(slot as u32),
            len_bytes: PAGE_SIZE,
            time: now,
            owner: owner_words(s),
            history: s.history(),
        });
        let regions = inner.regions.iter().filter(|r| r.live).map(|r| Violation {
            rule: "a coherent region was never freed",
            func: r.func,
            addr: r.base,
            len_bytes: r.len_bytes,
            time: now,
            owner: "the driver".into(),
            history: vec![r.mapped],
        });
        pages.chain(regions).collect()
    }

    /// Let allocations `first..first + count` (counted from now, pages and regions alike) fail.
    pub fn fail_allocations(&self, first: u64, count: u64) {
        let mut inner = self.lock();
        let base = inner.allocations;
        inner.fail_allocations = Some((base + first, base + first + count));
    }

    fn now(&self) -> Time {
        Time(self.now_ps.load(Ordering::Relaxed))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic elsewhere while the lock was held has already failed the run; the state is plain data.
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn action(&self, what: &'static str, location: Option<&'static Location<'static>>) -> Action {
        Action { what, time: self.now(), location }
    }
}

fn slot_addr(slot: u32) -> u64 {
    STREAM_BASE + u64::from(slot) * STREAM_STRIDE
}

fn owner_words(slot: &Slot) -> String {
    match slot.owner {
        Owner::Free => "nobody: the mapping has ended".into(),
        Owner::Device => format!("the device, mapped {:?}", slot.direction),
        Owner::Cpu => format!("the CPU, mapped {:?}", slot.direction),
    }
}

impl Inner {
    fn note(slot: &mut Slot, action: Action) {
        let History(history) =
            &mut **slot.history.get_or_insert_with(|| Box::new(History(VecDeque::with_capacity(HISTORY))));
        if history.len() == HISTORY {
            history.pop_front();
        }
        history.push_back(action);
    }

    fn violation(&mut self, violation: Violation) {
        if self.violations.len() < 100 {
            self.violations.push(violation);
        } else {
            self.violations_dropped += 1;
        }
    }

    fn allocation_fails(&mut self) -> bool {
        let n = self.allocations;
        self.allocations += 1;
        self.fail_allocations.is_some_and(|(from, to)| (from..to).contains(&n))
    }

    /// The page or fragment of a streaming address, and the offset in its page, if the whole access lies in it and it is of
    /// this function.
    fn slot_at(&mut self, func: FuncId, addr: u64, len_bytes: usize) -> Option<(&mut Slot, usize)> {
        let offset = addr.checked_sub(STREAM_BASE)?;
        let slot = usize::try_from(offset / STREAM_STRIDE).ok()?;
        let within = (offset % STREAM_STRIDE) as usize;
        let end = within.checked_add(len_bytes)?;
        let page = self.slots.get_mut(slot)?;
        let slot = match &page.fragments {
            Some(_) if within < usize::from(page.part.start) => page.fragment_at(within)?,
            _ => page,
        };
        (end <= usize::from(slot.part.end) && slot.func == func).then_some((slot, within))
    }

    /// Where in its page's list a fragment is.
    fn fragment_index(&self, index: u32, part: Part) -> Option<usize> {
        self.slots[index as usize].fragments.as_deref()?.iter().position(|fragment| fragment.part == part)
    }

    /// The slot of a page or fragment that someone holds; `None` for a fragment whose page is gone.
    fn held(&mut self, index: u32, part: Part) -> Option<&mut Slot> {
        let page = &mut self.slots[index as usize];
        if page.part == part {
            return Some(page);
        }
        page.fragments.as_deref_mut()?.iter_mut().find(|fragment| fragment.part == part)
    }

    fn region_at(&self, func: FuncId, addr: u64, len_bytes: usize) -> Option<(usize, usize)> {
        let page = usize::try_from(addr.checked_sub(COHERENT_BASE)? >> 12).ok()?;
        let index = (*self.region_of.get(page)?).checked_sub(1)? as usize;
        let region = &self.regions[index];
        let within = usize::try_from(addr - region.base).ok()?;
        let fits = within.checked_add(len_bytes)? <= region.len_bytes;
        (fits && region.func == func).then_some((index, within))
    }
}

/// Host memory as a card sees it.
pub struct CardView<'a> {
    inner: MutexGuard<'a, Inner>,
    shared: &'a SharedMemory,
}

impl CardView<'_> {
    #[cold]
    fn refuse(&mut self, func: FuncId, addr: u64, len_bytes: usize, rule: &'static str) -> DmaFault {
        let inner = &mut *self.inner;
        let (owner, history) = match addr.checked_sub(STREAM_BASE) {
            Some(offset) => match inner.slots.get((offset / STREAM_STRIDE) as usize) {
                Some(slot) => (format!("{}, of {}", owner_words(slot), slot.func), slot.history()),
                None => ("nobody: never mapped".into(), Vec::new()),
            },
            None => match inner.region_at(func, addr, 0) {
                Some((index, _)) => {
                    let region = &inner.regions[index];
                    let words = if region.live { "the driver" } else { "nobody: freed" };
                    (words.to_string(), [Some(region.mapped), region.freed].into_iter().flatten().collect())
                }
                None => ("nobody: no coherent region here".into(), Vec::new()),
            },
        };
        let time = self.shared.now();
        inner.violation(Violation { rule, func, addr, len_bytes, time, owner, history });
        DmaFault::Unmapped { func, addr, len_bytes }
    }

    fn forbid(&mut self, func: FuncId, addr: u64, len_bytes: usize, why: &'static str) -> DmaFault {
        let _ = self.refuse(func, addr, len_bytes, why);
        DmaFault::Forbidden { func, addr, len_bytes, why }
    }

    /// The slot, once it is certain that the device may access it so.
    fn device_slot(
        &mut self,
        func: FuncId,
        addr: u64,
        len_bytes: usize,
        writes: bool,
    ) -> Result<(&mut Slot, usize), DmaFault> {
        let Some((slot, _)) = self.inner.slot_at(func, addr, len_bytes) else {
            return Err(self.refuse(func, addr, len_bytes, "DMA outside every live mapping of this function"));
        };
        match (slot.owner, slot.direction, writes) {
            (Owner::Free, ..) => Err(self.refuse(func, addr, len_bytes, "DMA to a page whose mapping has ended")),
            (Owner::Cpu, ..) => Err(self.forbid(func, addr, len_bytes, "DMA to a page that the CPU owns")),
            (_, Direction::ToDevice, true) => {
                Err(self.forbid(func, addr, len_bytes, "DMA write to a page mapped ToDevice"))
            }
            (_, Direction::FromDevice, false) => {
                Err(self.forbid(func, addr, len_bytes, "DMA read of a page mapped FromDevice"))
            }
            _ => self.inner.slot_at(func, addr, len_bytes).ok_or(DmaFault::Unmapped { func, addr, len_bytes }),
        }
    }

    fn live_region(&mut self, func: FuncId, addr: u64, len_bytes: usize) -> Result<(usize, usize), DmaFault> {
        match self.inner.region_at(func, addr, len_bytes) {
            Some((index, within)) if self.inner.regions[index].live => Ok((index, within)),
            Some(_) => Err(self.refuse(func, addr, len_bytes, "DMA to coherent memory that was freed")),
            None => Err(self.refuse(func, addr, len_bytes, "DMA outside every live mapping of this function")),
        }
    }
}

impl HostMemory for CardView<'_> {
    fn read(&mut self, func: FuncId, addr: u64, buf: &mut [u8]) -> Result<(), DmaFault> {
        if addr >= STREAM_BASE {
            let (slot, within) = self.device_slot(func, addr, buf.len(), false)?;
            let bytes = slot.device_bytes.as_ref().or(slot.bytes.as_ref());
            // A page that the device owns has its bytes here: `map` and `sync_for_device` moved them in.
            let Some(bytes) = bytes else { return Err(self.refuse(func, addr, buf.len(), "page without memory")) };
            buf.copy_from_slice(&bytes[within..within + buf.len()]);
            return Ok(());
        }
        let (index, within) = self.live_region(func, addr, buf.len())?;
        read_words(&self.inner.regions[index].words, within, buf);
        Ok(())
    }

    fn write(&mut self, func: FuncId, addr: u64, data: &[u8]) -> Result<(), DmaFault> {
        if addr >= STREAM_BASE {
            let checks = self.shared.checks;
            let action = self.shared.action("DMA write", None);
            let (slot, within) = self.device_slot(func, addr, data.len(), true)?;
            if checks {
                Inner::note(slot, action);
            }
            let bytes = match &mut slot.device_bytes {
                Some(bytes) => Some(bytes),
                None => slot.bytes.as_mut(),
            };
            let Some(bytes) = bytes else { return Err(self.refuse(func, addr, data.len(), "page without memory")) };
            bytes[within..within + data.len()].copy_from_slice(data);
            return Ok(());
        }
        let (index, within) = self.live_region(func, addr, data.len())?;
        write_words(&self.inner.regions[index].words, within, data);
        Ok(())
    }
}

/// Copy out of atomic words; an aligned access of 8 bytes is one load.
fn read_words(words: &[AtomicU64], mut at: usize, mut buf: &mut [u8]) {
    while !buf.is_empty() {
        let word = words[at / 8].load(Ordering::Relaxed).to_le_bytes();
        let from = at % 8;
        let n = buf.len().min(8 - from);
        buf[..n].copy_from_slice(&word[from..from + n]);
        at += n;
        buf = &mut buf[n..];
    }
    fence(Ordering::Acquire);
}

/// Copy into atomic words, in rising order; an aligned access of 8 bytes is one store, a smaller one leaves its
/// neighbours alone even while the CPU writes them.
fn write_words(words: &[AtomicU64], mut at: usize, mut data: &[u8]) {
    while !data.is_empty() {
        let from = at % 8;
        let n = data.len().min(8 - from);
        let mut bytes = [0u8; 8];
        bytes[from..from + n].copy_from_slice(&data[..n]);
        let value = u64::from_le_bytes(bytes);
        if n == 8 {
            words[at / 8].store(value, Ordering::Release);
        } else {
            merge(&words[at / 8], mask_of(from, n), value);
        }
        at += n;
        data = &data[n..];
    }
}

fn mask_of(from: usize, n: usize) -> u64 {
    if n == 8 { u64::MAX } else { ((1u64 << (8 * n)) - 1) << (8 * from) }
}

fn merge(word: &AtomicU64, mask: u64, value: u64) {
    let _ = word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |old| Some((old & !mask) | (value & mask)));
}

/// One function's DMA space, for its driver.
#[derive(Clone)]
pub struct FunctionDma {
    shared: Arc<SharedMemory>,
    func: FuncId,
}

/// Coherent memory of the testbench.
pub struct CoherentRegion {
    shared: Arc<SharedMemory>,
    index: usize,
    base: u64,
    len_bytes: usize,
    words: Arc<[AtomicU64]>,
}

impl CoherentRegion {
    fn word(&self, offset: usize, size: usize) -> &AtomicU64 {
        assert!(
            offset.is_multiple_of(size) && offset + size <= self.len_bytes,
            "coherent access at {offset}, {size} bytes, of a region of {} bytes",
            self.len_bytes
        );
        &self.words[offset / 8]
    }
}

impl Coherent for CoherentRegion {
    fn dma_addr(&self) -> DmaAddr {
        DmaAddr(self.base)
    }

    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn load16(&self, offset: usize) -> u16 {
        (self.word(offset, 2).load(Ordering::Relaxed) >> (8 * (offset % 8))) as u16
    }

    fn load32(&self, offset: usize) -> u32 {
        (self.word(offset, 4).load(Ordering::Relaxed) >> (8 * (offset % 8))) as u32
    }

    fn load64(&self, offset: usize) -> u64 {
        self.word(offset, 8).load(Ordering::Relaxed)
    }

    fn store32(&self, offset: usize, value: u32) {
        let shift = 8 * (offset % 8);
        merge(self.word(offset, 4), 0xffff_ffff << shift, u64::from(value) << shift);
    }

    fn store64(&self, offset: usize, value: u64) {
        self.word(offset, 8).store(value, Ordering::Release);
    }
}

impl Drop for CoherentRegion {
    fn drop(&mut self) {
        let action = self.shared.action("free", None);
        let mut inner = self.shared.lock();
        let region = &mut inner.regions[self.index];
        region.live = false;
        region.freed = Some(action);
        // The storage goes with its last owner; a device that still writes here gets a fault and a report instead.
        region.words = Arc::from(Vec::new());
    }
}

/// A page that the CPU owns, or a fragment of one.
#[derive(Debug)]
pub struct CpuPage {
    /// A page's worth also for a fragment, whose bytes lie where they lie in its page.
    bytes: Box<PageBytes>,
    slot: Option<u32>,
    part: Part,
}

impl Page for CpuPage {
    fn bytes(&self) -> &[u8] {
        &self.bytes[self.part.all()]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.part.all()]
    }

    fn dma_addr(&self) -> Option<DmaAddr> {
        self.slot.map(|slot| DmaAddr(slot_addr(slot) + u64::from(self.part.start)))
    }
}

/// A page that the device owns, or a fragment of one.
#[derive(Debug)]
pub struct DevicePage {
    slot: u32,
    part: Part,
}

impl FunctionDma {
    fn fresh_slot(inner: &mut Inner) -> u32 {
        // The oldest free slot first: a stale address stays unmapped for as long as it can.
        match inner.free_slots.pop_front() {
            Some(slot) => slot,
            None => {
                inner.slots.push(Slot {
                    func: FuncId(0),
                    owner: Owner::Free,
                    direction: Direction::Bidirectional,
                    bytes: None,
                    device_bytes: None,
                    history: None,
                    part: Part::WHOLE,
                    fragments: None,
                });
                (inner.slots.len() - 1) as u32
            }
        }
    }

    fn fresh_page(inner: &mut Inner) -> Box<PageBytes> {
        inner.free_pages.pop().unwrap_or_else(|| PageBytes::filled(0))
    }

    fn take_back(
        &self,
        inner: &mut Inner,
        page: DevicePage,
        range: std::ops::Range<usize>,
        action: Action,
    ) -> Box<PageBytes> {
        let Some(slot) = inner.held(page.slot, page.part) else { return PageBytes::filled(POISON) };
        let mut bytes = slot.bytes.take().unwrap_or_else(|| PageBytes::filled(POISON));
        if self.shared.checks {
            if let Some(device) = &slot.device_bytes {
                bytes[range.clone()].copy_from_slice(&device[range]);
            }
            Inner::note(slot, action);
        }
        bytes
    }

    fn report_fragment(&self, inner: &mut Inner, index: u32, part: Part, rule: &'static str) {
        let slot = inner.held(index, part);
        let violation = slot.map(|slot| Violation {
            rule,
            func: slot.func,
            addr: slot_addr(index) + u64::from(part.start),
            len_bytes: part.all().len(),
            time: self.shared.now(),
            owner: owner_words(slot),
            history: slot.history(),
        });
        if let Some(violation) = violation {
            inner.violation(violation);
        }
    }

    /// The end of a mapping. Fragments that are still out lose theirs with it.
    fn release_slot(&self, inner: &mut Inner, index: u32) {
        let slot = &mut inner.slots[index as usize];
        slot.owner = Owner::Free;
        slot.part = Part::WHOLE;
        let func = slot.func;
        if let Some(out) = slot.fragments.take().filter(|out| !out.is_empty()) {
            inner.violation(Violation {
                rule: "a page was unmapped or freed while fragments of it were out",
                func,
                addr: slot_addr(index) + u64::from(out[0].part.start),
                len_bytes: out[0].part.all().len(),
                time: self.shared.now(),
                owner: format!("{} fragments are out, the first with {}", out.len(), owner_words(&out[0])),
                history: out[0].history(),
            });
        }
        let slot = &mut inner.slots[index as usize];
        if let Some(device) = slot.device_bytes.take() {
            inner.free_pages.push(device);
        }
        inner.free_slots.push_back(index);
    }
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
        let action = self.shared.action("alloc_coherent", Some(Location::caller()));
        let mut inner = self.shared.lock();
        let pages = len_bytes.div_ceil(PAGE_SIZE);
        let base = COHERENT_BASE + ((inner.region_of.len() as u64) << 12);
        if inner.allocation_fails() || base + ((pages as u64 + 1) << 12) > COHERENT_END {
            return Err(DmaError::OutOfMemory { len_bytes });
        }
        let words: Arc<[AtomicU64]> = (0..len_bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
        let index = inner.regions.len();
        inner.region_of.extend(std::iter::repeat_n(index as u32 + 1, pages));
        inner.region_of.push(0);
        let region = Region {
            func: self.func,
            base,
            len_bytes,
            live: true,
            words: Arc::clone(&words),
            mapped: action,
            freed: None,
        };
        inner.regions.push(region);
        Ok(CoherentRegion { shared: Arc::clone(&self.shared), index, base, len_bytes, words })
    }

    fn alloc_page(&self) -> Result<CpuPage, DmaError> {
        let mut inner = self.shared.lock();
        if inner.allocation_fails() {
            return Err(DmaError::OutOfMemory { len_bytes: PAGE_SIZE });
        }
        let mut bytes = Self::fresh_page(&mut inner);
        if self.shared.checks {
            bytes.fill(POISON);
        }
        inner.pages_out += 1;
        Ok(CpuPage { bytes, slot: None, part: Part::WHOLE })
    }

    fn free_page(&self, page: CpuPage) {
        let mut inner = self.shared.lock();
        if let Some(slot) = page.slot {
            if page.part.end != Part::WHOLE.end || inner.fragment_index(slot, page.part).is_some() {
                return self.report_fragment(
                    &mut inner,
                    slot,
                    page.part,
                    "a fragment was freed: it belongs to its page",
                );
            }
            self.release_slot(&mut inner, slot);
        }
        inner.pages_out = inner.pages_out.saturating_sub(1);
        inner.free_pages.push(page.bytes);
    }

    #[track_caller]
    fn map(&self, page: CpuPage, direction: Direction, len_bytes: usize) -> Result<DevicePage, MapError<CpuPage>> {
        if page.slot.is_some() {
            return Err(MapError { page, cause: DmaError::Invalid { why: "the page is mapped already" } });
        }
        if len_bytes > PAGE_SIZE {
            return Err(MapError { page, cause: DmaError::Invalid { why: "longer than a page" } });
        }
        let action = self.shared.action("map", Some(Location::caller()));
        let checks = self.shared.checks;
        let mut inner = self.shared.lock();
        let index = Self::fresh_slot(&mut inner);
        let mut device_bytes = checks.then(|| Self::fresh_page(&mut inner));
        let mut bytes = page.bytes;
        if let Some(device) = &mut device_bytes {
            device.fill(POISON);
            if direction == Direction::FromDevice {
                bytes.fill(POISON);
            } else {
                device[..len_bytes].copy_from_slice(&bytes[..len_bytes]);
            }
        }
        let slot = &mut inner.slots[index as usize];
        *slot = Slot {
            func: self.func,
            owner: Owner::Device,
            direction,
            bytes: Some(bytes),
            device_bytes,
            history: slot.history.take(),
            part: Part::WHOLE,
            fragments: None,
        };
        if checks {
            Inner::note(slot, action);
        }
        Ok(DevicePage { slot: index, part: Part::WHOLE })
    }

    fn device_addr(&self, page: &DevicePage) -> DmaAddr {
        DmaAddr(slot_addr(page.slot) + u64::from(page.part.start))
    }

    #[track_caller]
    fn sync_for_cpu(&self, page: DevicePage, offset: usize, len_bytes: usize) -> CpuPage {
        let action = self.shared.action("sync_for_cpu", Some(Location::caller()));
        let mut inner = self.shared.lock();
        let (index, part) = (page.slot, page.part);
        let bytes = self.take_back(&mut inner, page, part.range(offset, len_bytes), action);
        if let Some(slot) = inner.held(index, part) {
            slot.owner = Owner::Cpu;
        }
        CpuPage { bytes, slot: Some(index), part }
    }

    #[track_caller]
    fn sync_for_device(&self, page: CpuPage, offset: usize, len_bytes: usize) -> Result<DevicePage, MapError<CpuPage>> {
        let Some(index) = page.slot else {
            return Err(MapError {
                page,
                cause: DmaError::Invalid { why: "sync_for_device of a page that is not mapped" },
            });
        };
        let action = self.shared.action("sync_for_device", Some(Location::caller()));
        let checks = self.shared.checks;
        let mut inner = self.shared.lock();
        let Some(slot) = inner.held(index, page.part) else {
            return Err(MapError { page, cause: DmaError::Invalid { why: "a fragment whose page is gone" } });
        };
        if let Some(device) = &mut slot.device_bytes
            && slot.direction != Direction::FromDevice
        {
            let range = page.part.range(offset, len_bytes);
            device[range.clone()].copy_from_slice(&page.bytes[range]);
        }
        slot.owner = Owner::Device;
        slot.bytes = Some(page.bytes);
        if checks {
            Inner::note(slot, action);
        }
        Ok(DevicePage { slot: index, part: page.part })
    }

    #[track_caller]
    fn unmap(&self, page: DevicePage, len_bytes: usize) -> CpuPage {
        let action = self.shared.action("unmap", Some(Location::caller()));
        let mut inner = self.shared.lock();
        let (index, part) = (page.slot, page.part);
        let bytes = self.take_back(&mut inner, page, part.range(0, len_bytes), action);
        if inner.fragment_index(index, part).is_some() {
            self.report_fragment(&mut inner, index, part, "a fragment was unmapped: only its page has a mapping");
            if let Some(slot) = inner.held(index, part) {
                slot.owner = Owner::Cpu;
            }
            return CpuPage { bytes, slot: Some(index), part };
        }
        self.release_slot(&mut inner, index);
        CpuPage { bytes, slot: None, part: Part::WHOLE }
    }

    #[track_caller]
    fn split(&self, page: &mut CpuPage, len_bytes: usize) -> Result<CpuPage, DmaError> {
        let invalid = |why| Err(DmaError::Invalid { why });
        let Some(index) = page.slot else { return invalid("a page that is not mapped is split") };
        if len_bytes == 0 || len_bytes > page.part.all().len() {
            return invalid("a fragment of 0 bytes, or of more than are left of the page");
        }
        let action = self.shared.action("split", Some(Location::caller()));
        let mut inner = self.shared.lock();
        if inner.fragment_index(index, page.part).is_some() {
            return invalid("a fragment is split");
        }
        let part = Part { start: page.part.start, end: page.part.start + len_bytes as u16 };
        let mut bytes = Self::fresh_page(&mut inner);
        let mut device_bytes = self.shared.checks.then(|| Self::fresh_page(&mut inner));
        bytes[part.all()].copy_from_slice(&page.bytes[part.all()]);
        let slot = &mut inner.slots[index as usize];
        if let (Some(own), Some(pages)) = (&mut device_bytes, &slot.device_bytes) {
            own[part.all()].copy_from_slice(&pages[part.all()]);
        }
        let mut fragment = Slot {
            func: slot.func,
            owner: Owner::Cpu,
            direction: slot.direction,
            bytes: None,
            device_bytes,
            history: None,
            part,
            fragments: None,
        };
        if self.shared.checks {
            Inner::note(&mut fragment, action);
        }
        slot.part.start = part.end;
        page.part.start = part.end;
        slot.fragments.get_or_insert_default().push(fragment);
        Ok(CpuPage { bytes, slot: Some(index), part })
    }

    fn join(&self, page: &mut CpuPage, fragment: CpuPage) -> Result<(), MapError<CpuPage>> {
        let mut inner = self.shared.lock();
        let found = match (page.slot, fragment.slot) {
            (Some(index), Some(of)) if index == of => {
                inner.fragment_index(index, fragment.part).map(|at| (&mut inner.slots[index as usize], at))
            }
            _ => None,
        };
        let Some((slot, at)) = found else {
            let cause = DmaError::Invalid { why: "a page is joined that is no fragment of this one" };
            return Err(MapError { page: fragment, cause });
        };
        let Some(fragments) = &mut slot.fragments else { return Ok(()) };
        let joined = fragments.swap_remove(at);
        if fragments.is_empty() {
            slot.part = Part::WHOLE;
            page.part = Part::WHOLE;
        }
        inner.free_pages.extend(joined.device_bytes);
        inner.free_pages.push(fragment.bytes);
        Ok(())
    }

    fn dma_rmb(&self) {
        fence(Ordering::Acquire);
    }

    fn dma_wmb(&self) {
        fence(Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F0: FuncId = FuncId(0);
    const F1: FuncId = FuncId(1);

    fn page_with(dma: &FunctionDma, byte: u8) -> CpuPage {
        let mut page = dma.alloc_page().expect("a page");
        page.bytes_mut().fill(byte);
        page
    }

    #[test]
    fn a_status_word_crosses_both_ways() {
        let memory = SharedMemory::new(true);
        let region = memory.function(F0).alloc_coherent(4096).expect("a region");
        memory.lend().write(F0, region.dma_addr().0 + 8, &0x1122_3344_5566_7788u64.to_le_bytes()).expect("mapped");
        assert_eq!(region.load64(8), 0x1122_3344_5566_7788);
        assert_eq!(region.load16(10), 0x5566);
        region.store32(12, 0xdead_beef);
        let mut word = [0; 8];
        memory.lend().read(F0, region.dma_addr().0 + 8, &mut word).expect("mapped");
        assert_eq!(word, 0xdead_beef_5566_7788u64.to_le_bytes());
    }

    #[test]
    fn an_unaligned_write_leaves_its_neighbours_alone() {
        let memory = SharedMemory::new(true);
        let region = memory.function(F0).alloc_coherent(64).expect("a region");
        (0..8).for_each(|i| region.store64(8 * i, u64::MAX));
        memory.lend().write(F0, region.dma_addr().0 + 5, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]).expect("mapped");
        assert_eq!(region.load64(0).to_le_bytes(), [255, 255, 255, 255, 255, 1, 2, 3]);
        assert_eq!(region.load64(8).to_le_bytes(), [4, 5, 6, 7, 8, 9, 10, 11]);
        assert_eq!(region.load64(16), u64::MAX);
    }

    #[test]
    fn the_cpu_sees_only_what_was_synced() {
        let memory = SharedMemory::new(true);
        let dma = memory.function(F0);
        let page = dma.map(page_with(&dma, 7), Direction::FromDevice, 0).expect("mapped");
        let addr = dma.device_addr(&page).0;
        memory.lend().write(F0, addr + 256, &[1; 128]).expect("device owns it");
        let page = dma.sync_for_cpu(page, 256, 64);
        assert_eq!(page.bytes()[256..320], [1; 64]);
        assert_eq!(page.bytes()[320..384], [POISON; 64], "never synced");
        assert!(memory.violations().is_empty());
    }

    #[test]
    fn the_device_sees_only_what_was_synced() {
        let memory = SharedMemory::new(true);
        let dma = memory.function(F0);
        let page = dma.map(page_with(&dma, 7), Direction::ToDevice, 60).expect("mapped");
        let mut bytes = [0; 64];
        memory.lend().read(F0, dma.device_addr(&page).0, &mut bytes).expect("device owns it");
        assert_eq!(bytes[..60], [7; 60]);
        assert_eq!(bytes[60..], [POISON; 4]);
    }

    #[test]
    fn dma_to_a_page_that_the_cpu_owns_is_reported() {
        let memory = SharedMemory::new(true);
        let dma = memory.function(F0);
        let page = dma.map(page_with(&dma, 0), Direction::FromDevice, 0).expect("mapped");
        let addr = dma.device_addr(&page).0;
        let _page = dma.sync_for_cpu(page, 0, 0);
        assert!(matches!(memory.lend().write(F0, addr, &[1]), Err(DmaFault::Forbidden { .. })));
        let report = memory.violations()[0].to_string();
        assert!(report.contains("the CPU, mapped FromDevice") && report.contains("sync_for_cpu"), "{report}");
    }

    #[test]
    fn dma_after_unmap_names_the_unmap() {
        let memory = SharedMemory::new(true);
        let dma = memory.function(F0);
        let page = dma.map(page_with(&dma, 0), Direction::FromDevice, 0).expect("mapped");
        let addr = dma.device_addr(&page).0;
        dma.free_page(dma.unmap(page, 0));
        assert!(matches!(memory.lend().write(F0, addr, &[1]), Err(DmaFault::Unmapped { .. })));
        assert!(memory.violations()[0].to_string().contains("unmap at"));
        assert_eq!(memory.counts(), MemoryCounts::default());
    }

    #[test]
    fn a_write_past_the_page_faults() {
        let memory = SharedMemory::new(false);
        let dma = memory.function(F0);
        let page = dma.map(page_with(&dma, 0), Direction::FromDevice, 0).expect("mapped");
        let addr = dma.device_addr(&page).0 + PAGE_SIZE as u64 - 4;
        assert!(memory.lend().write(F0, addr, &[0; 5]).is_err());
        assert!(memory.lend().write(F0, addr, &[0; 4]).is_ok());
    }

    #[test]
    fn direction_and_function_are_enforced() {
        let memory = SharedMemory::new(true);
        let dma = memory.function(F0);
        let tx = dma.map(page_with(&dma, 0), Direction::ToDevice, 64).expect("mapped");
        let addr = dma.device_addr(&tx).0;
        assert!(memory.lend().write(F0, addr, &[0]).is_err(), "wrong direction");
        assert!(memory.lend().read(F1, addr, &mut [0]).is_err(), "wrong function");
        let region = memory.function(F1).alloc_coherent(64).expect("a region");
        assert!(memory.lend().read(F0, region.dma_addr().0, &mut [0]).is_err(), "wrong function");
        assert_eq!(memory.violations().len(), 3);
    }

    #[test]
    fn freed_coherent_memory_faults_and_leaks_name_their_line() {
        let memory = SharedMemory::new(true);
        let dma = memory.function(F0);
        let region = dma.alloc_coherent(64).expect("a region");
        let addr = region.dma_addr().0;
        assert_eq!(memory.leaks().len(), 1);
        assert!(memory.leaks()[0].to_string().contains(file!()));
        drop(region);
        assert!(memory.leaks().is_empty());
        assert!(memory.lend().write(F0, addr, &[0; 8]).is_err());
        assert!(memory.violations()[0].to_string().contains("freed"));
    }

    #[test]
    fn allocations_fail_on_request() {
        let memory = SharedMemory::new(true);
        let dma = memory.function(F0);
        memory.fail_allocations(1, 2);
        assert!(dma.alloc_page().is_ok());
        assert_eq!(dma.alloc_page().expect_err("the second"), DmaError::OutOfMemory { len_bytes: PAGE_SIZE });
        assert!(dma.alloc_coherent(64).is_err());
        assert!(dma.alloc_page().is_ok());
    }

    /// A page that the device had, in the CPU's hands and mapped.
    fn mapped_page(dma: &FunctionDma) -> CpuPage {
        let page = dma.map(page_with(dma, 0), Direction::Bidirectional, 0).expect("mapped");
        dma.sync_for_cpu(page, 0, 0)
    }

    #[test]
    fn a_fragment_is_a_page_of_its_own() {
        for checks in [false, true] {
            let memory = SharedMemory::new(checks);
            let dma = memory.function(F0);
            let mut page = mapped_page(&dma);
            let base = page.dma_addr().expect("mapped").0;
            let mut first = dma.split(&mut page, 2048).expect("half");
            assert_eq!((first.bytes().len(), page.bytes().len()), (2048, 2048));
            assert_eq!((first.dma_addr().expect("mapped").0, page.dma_addr().expect("mapped").0), (base, base + 2048));
            first.bytes_mut()[100..104].copy_from_slice(&[1, 2, 3, 4]);
            let first = dma.sync_for_device(first, 100, 4).expect("mapped");
            let page = dma.sync_for_device(page, 0, 2048).expect("mapped");
            let mut bytes = [0; 4];
            memory.lend().read(F0, base + 100, &mut bytes).expect("the device owns it");
            assert_eq!(bytes, [1, 2, 3, 4]);
            memory.lend().write(F0, base + 100, &[5; 4]).expect("the device owns it");
            memory.lend().write(F0, base + 2148, &[6; 4]).expect("the device owns it");
            assert_eq!(dma.sync_for_cpu(first, 100, 4).bytes()[100..104], [5; 4]);
            assert_eq!(dma.sync_for_cpu(page, 100, 4).bytes()[100..104], [6; 4]);
            assert!(memory.violations().is_empty());
        }
    }

    #[test]
    fn each_fragment_has_its_own_owner() {
        let memory = SharedMemory::new(true);
        let dma = memory.function(F0);
        let mut page = mapped_page(&dma);
        let fragment = dma.split(&mut page, 1024).expect("a quarter");
        let base = fragment.dma_addr().expect("mapped").0;
        let _rest = dma.sync_for_device(page, 0, 3072).expect("mapped");
        assert!(memory.lend().write(F0, base, &[0; 8]).is_err(), "the CPU owns the fragment");
        assert!(memory.lend().write(F0, base + 1024, &[0; 8]).is_ok(), "the device owns the rest");
        assert!(memory.lend().write(F0, base + 1020, &[0; 8]).is_err(), "across both");
    }

    #[test]
    fn a_page_is_whole_when_its_last_fragment_is_back() {
        let memory = SharedMemory::new(true);
        let dma = memory.function(F0);
        let mut page = mapped_page(&dma);
        let first = dma.split(&mut page, 2048).expect("half");
        let second = dma.split(&mut page, 2048).expect("the other half");
        assert_eq!(page.bytes().len(), 0);
        assert!(dma.split(&mut page, 1).is_err(), "nothing is left");
        dma.join(&mut page, first).expect("its own");
        assert_eq!(page.bytes().len(), 0);
        dma.join(&mut page, second).expect("its own");
        assert_eq!(page.bytes().len(), PAGE_SIZE);
        dma.free_page(page);
        assert_eq!(memory.counts(), MemoryCounts::default());
        assert!(memory.violations().is_empty());
    }

    #[test]
    fn what_is_no_fragment_of_the_page_is_refused() {
        let memory = SharedMemory::new(true);
        let dma = memory.function(F0);
        let mut plain = page_with(&dma, 0);
        assert!(dma.split(&mut plain, 2048).is_err(), "not mapped");
        let (mut page, mut other) = (mapped_page(&dma), mapped_page(&dma));
        let mut fragment = dma.split(&mut page, 2048).expect("half");
        assert!(dma.split(&mut fragment, 1024).is_err(), "a fragment");
        assert!(dma.split(&mut page, 0).is_err() && dma.split(&mut page, 2049).is_err());
        let refused = dma.join(&mut other, fragment).expect_err("of another page");
        dma.join(&mut page, refused.page).expect("its own");
        let whole = dma.join(&mut page, other).expect_err("no fragment").page;
        for page in [plain, page, whole] {
            dma.free_page(page);
        }
        assert!(memory.violations().is_empty());
    }

    #[test]
    fn a_page_freed_while_fragments_are_out_is_reported() {
        let memory = SharedMemory::new(true);
        let dma = memory.function(F0);
        let mut page = mapped_page(&dma);
        let fragment = dma.split(&mut page, 2048).expect("half");
        let addr = fragment.dma_addr().expect("mapped").0;
        let fragment = dma.sync_for_device(fragment, 0, 0).expect("mapped");
        dma.free_page(page);
        let report = memory.violations()[0].to_string();
        assert!(report.contains("fragments of it were out") && report.contains("split at"), "{report}");
        assert!(memory.lend().write(F0, addr, &[0]).is_err(), "its mapping is gone");
        let fragment = dma.sync_for_cpu(fragment, 0, 8);
        assert!(dma.sync_for_device(fragment, 0, 8).is_err());
    }

    #[test]
    fn a_fragment_that_is_freed_or_unmapped_is_reported() {
        let memory = SharedMemory::new(true);
        let dma = memory.function(F0);
        let mut page = mapped_page(&dma);
        let first = dma.split(&mut page, 2048).expect("half");
        let second = dma.split(&mut page, 2048).expect("half");
        let second = dma.sync_for_device(second, 0, 0).expect("mapped");
        dma.free_page(first);
        let second = dma.unmap(second, 0);
        assert!(second.dma_addr().is_some(), "still mapped");
        assert_eq!(memory.violations().len(), 2);
    }
}
