//! Coherent memory: regions of atomic words that card and driver see at once.

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use driver_core::{Coherent, DmaAddr};
use models::time::Time;
use regs::FuncId;

use super::SharedMemory;
use super::page::PAGE_SIZE;
use super::report::{Action, Deed, Life};
use super::rule::Rule;

const COHERENT_BASE: u64 = 0x1000_0000;
const COHERENT_END: u64 = 0xf000_0000;

/// One region, also after it was freed.
pub(super) struct Region {
    pub(super) func: FuncId,
    pub(super) base: u64,
    pub(super) len_bytes: usize,
    pub(super) live: bool,
    pub(super) words: Arc<[AtomicU64]>,
    allocated: Action,
    freed: Option<Action>,
    pub(super) last_device: Option<Action>,
    last_store: Arc<LastStore>,
}

impl Region {
    /// For a report.
    pub(super) fn life(&self) -> Life {
        let last_cpu = self.freed.or_else(|| self.last_store.get()).unwrap_or(self.allocated);
        Life {
            owner: match self.live {
                true => format!("card and driver of {}, coherent", self.func),
                false => format!("nobody: freed; it was {}'s, coherent", self.func),
            },
            allocated: Some(self.allocated),
            last_cpu: Some(last_cpu),
            last_device: self.last_device,
            history: self.last_store.get().into_iter().collect(),
        }
    }
}

/// The CPU's last store to a region. The two halves may come from two stores at the same time; both are true.
#[derive(Default)]
struct LastStore {
    /// Offset · 16 + bytes; 0 before the first.
    what: AtomicU64,
    time_ps: AtomicU64,
}

impl LastStore {
    fn set(&self, offset: usize, len_bytes: usize, now: Time) {
        self.what.store((offset as u64) << 4 | len_bytes as u64, Ordering::Relaxed);
        self.time_ps.store(now.0, Ordering::Relaxed);
    }

    fn get(&self) -> Option<Action> {
        let what = self.what.load(Ordering::Relaxed);
        (what != 0).then(|| Action {
            deed: Deed::Store,
            time: Time(self.time_ps.load(Ordering::Relaxed)),
            location: None,
            offset: (what >> 4) as u32,
            len_bytes: (what & 15) as u32,
        })
    }
}

/// All regions.
#[derive(Default)]
pub(super) struct Regions {
    pub(super) all: Vec<Region>,
    /// Region index + 1 for each 4 KiB of coherent space in use; 0 is a guard page.
    of_page: Vec<u32>,
}

impl Regions {
    /// Zeroed memory; `None` when the space is used up.
    pub(super) fn alloc(&mut self, func: FuncId, len_bytes: usize, action: Action) -> Option<usize> {
        let pages = len_bytes.div_ceil(PAGE_SIZE);
        let base = COHERENT_BASE + ((self.of_page.len() as u64) << 12);
        if base + ((pages as u64 + 1) << 12) > COHERENT_END {
            return None;
        }
        let index = self.all.len();
        self.of_page.extend(std::iter::repeat_n(index as u32 + 1, pages));
        self.of_page.push(0);
        self.all.push(Region {
            func,
            base,
            len_bytes,
            live: true,
            words: (0..len_bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect(),
            allocated: action,
            freed: None,
            last_device: None,
            last_store: Arc::default(),
        });
        Some(index)
    }

    fn free(&mut self, index: usize, action: Action) {
        let region = &mut self.all[index];
        region.live = false;
        region.freed = Some(action);
        // The storage goes with its last owner; a device that still writes here gets a fault and a report instead.
        region.words = Arc::from(Vec::new());
    }

    /// The region that an access of this function may touch, and the offset in it.
    #[inline]
    pub(super) fn locate(&self, func: FuncId, addr: u64, len_bytes: usize) -> Option<(usize, usize)> {
        let page = usize::try_from(addr.checked_sub(COHERENT_BASE)? >> 12).ok()?;
        let index = (*self.of_page.get(page)?).checked_sub(1)? as usize;
        let region = &self.all[index];
        let within = usize::try_from(addr - region.base).ok()?;
        let fits = within.checked_add(len_bytes)? <= region.len_bytes;
        (fits && region.live && region.func == func).then_some((index, within))
    }

    /// Why the device may not go there, and the region that it concerns.
    pub(super) fn diagnose(&self, func: FuncId, addr: u64) -> (Rule, Option<&Region>) {
        let page = addr.checked_sub(COHERENT_BASE).and_then(|offset| usize::try_from(offset >> 12).ok());
        let of_page = |page: usize| self.of_page.get(page).and_then(|index| index.checked_sub(1));
        // Each region's guard page is the one behind it.
        let index = page
            .filter(|page| *page < self.of_page.len())
            .and_then(|page| of_page(page).or_else(|| of_page(page.checked_sub(1)?)));
        let Some(region) = index.map(|index| &self.all[index as usize]) else { return (Rule::DmaUnmapped, None) };
        let rule = match region {
            Region { live: false, .. } => Rule::DmaAfterFree,
            region if region.func != func => Rule::DmaWrongFunction,
            _ => Rule::DmaPastEnd,
        };
        (rule, Some(region))
    }
}

/// May the CPU see this access half done?
pub(super) fn is_torn(offset: usize, len_bytes: usize) -> bool {
    let within = offset % 8;
    if len_bytes > 8 { within != 0 } else { within + len_bytes > 8 }
}

/// Copy out of atomic words; an aligned access of 8 bytes is one load.
pub(super) fn read_words(words: &[AtomicU64], mut at: usize, mut buf: &mut [u8]) {
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
pub(super) fn write_words(words: &[AtomicU64], mut at: usize, mut data: &[u8]) {
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

/// Coherent memory of the testbench.
pub struct CoherentRegion {
    shared: Arc<SharedMemory>,
    index: usize,
    base: u64,
    len_bytes: usize,
    words: Arc<[AtomicU64]>,
    last_store: Arc<LastStore>,
}

impl CoherentRegion {
    pub(super) fn of(shared: &Arc<SharedMemory>, index: usize, region: &Region) -> CoherentRegion {
        CoherentRegion {
            shared: Arc::clone(shared),
            index,
            base: region.base,
            len_bytes: region.len_bytes,
            words: Arc::clone(&region.words),
            last_store: Arc::clone(&region.last_store),
        }
    }

    #[track_caller]
    fn word(&self, offset: usize, size: usize) -> &AtomicU64 {
        assert!(
            offset.is_multiple_of(size) && offset + size <= self.len_bytes,
            "coherent access at {offset}, {size} bytes, of a region of {} bytes",
            self.len_bytes
        );
        &self.words[offset / 8]
    }

    fn stored(&self, offset: usize, size: usize) {
        if self.shared.checks {
            self.last_store.set(offset, size, self.shared.now());
        }
    }
}

impl Coherent for CoherentRegion {
    fn dma_addr(&self) -> DmaAddr {
        DmaAddr(self.base)
    }

    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    #[track_caller]
    fn load16(&self, offset: usize) -> u16 {
        (self.word(offset, 2).load(Ordering::Relaxed) >> (8 * (offset % 8))) as u16
    }

    #[track_caller]
    fn load32(&self, offset: usize) -> u32 {
        (self.word(offset, 4).load(Ordering::Relaxed) >> (8 * (offset % 8))) as u32
    }

    #[track_caller]
    fn load64(&self, offset: usize) -> u64 {
        self.word(offset, 8).load(Ordering::Relaxed)
    }

    #[track_caller]
    fn store32(&self, offset: usize, value: u32) {
        let shift = 8 * (offset % 8);
        merge(self.word(offset, 4), 0xffff_ffff << shift, u64::from(value) << shift);
        self.stored(offset, 4);
    }

    #[track_caller]
    fn store64(&self, offset: usize, value: u64) {
        self.word(offset, 8).store(value, Ordering::Release);
        self.stored(offset, 8);
    }
}

impl Drop for CoherentRegion {
    fn drop(&mut self) {
        let action = self.shared.action(Deed::Free, None::<&'static Location<'static>>);
        self.shared.lock().regions.free(self.index, action);
    }
}
