//! Host memory of one engine under test: pages that are good, missing, poisoned or taken back.
//!
//! Two engines that are driven alike get the same addresses, so that their memories can be compared page by page. What can
//! be seen only while it happens is watched here: a completion must find its payload in memory, a status word the
//! completions that it tells of.

use std::collections::{BTreeMap, BTreeSet};

use models::host_memory::{DmaFault, HostMemory};
use regs::FuncId;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// Where the first page lies; below 4 GiB, as onic.ko wants its rings.
const FIRST_PAGE: u64 = 0x1000_0000 / PAGE;

/// The function as whose a card acts that was told a number above 255: nobody, whose every access is refused. Source:
/// docs/qdma-decisions.md 8.
const NOBODY: FuncId = FuncId(u8::MAX);

/// What a page is to the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It can be read and written.
    Good,
    /// Reads of it bring poisoned data; writes are taken.
    Poisoned,
    /// The IOMMU refuses it: a descriptor that names it is the driver's own fault.
    Missing,
    /// It was taken back: nothing may touch it any more.
    Freed,
}

struct Page {
    func: FuncId,
    standing: Standing,
    bytes: Box<[u8; PAGE as usize]>,
}

/// A completion ring whose order of writes is watched.
#[derive(Clone, Debug)]
pub struct Ring {
    /// Its first entry.
    pub base: u64,
    /// Bytes of an entry.
    pub entry_bytes: u64,
    /// Entries, the status entry included.
    pub entries: u16,
    /// The next entry to be written.
    written: u16,
    /// PIDX that the last status word told of.
    told: u16,
}

impl Ring {
    /// A ring in which nothing is written yet.
    pub fn new(base: u64, entry_bytes: u64, entries: u16) -> Ring {
        Ring { base, entry_bytes, entries, written: 0, told: 0 }
    }

    fn status_addr(&self) -> u64 {
        self.base + self.entry_bytes * u64::from(self.entries.saturating_sub(1))
    }

    /// Slots from what the last status word told of to `slot`.
    fn behind(&self, slot: u16) -> u32 {
        let usable = u32::from(self.entries.saturating_sub(1).max(1));
        (u32::from(slot) + usable - u32::from(self.told) % usable) % usable
    }

    /// Entries in this range were written.
    fn entries_written(&mut self, addr: u64, len: usize) {
        let end = (addr + len as u64).min(self.status_addr());
        if addr >= self.base && addr < end {
            let last = (end - self.base).div_ceil(self.entry_bytes) as u16;
            self.written = last % self.entries.saturating_sub(1).max(1);
        }
    }

    /// A status word was written: does it tell of entries that are not there?
    fn status_written(&mut self, pidx: u16) -> bool {
        let early = self.behind(pidx) > self.behind(self.written);
        self.told = pidx;
        early
    }
}

/// The memory.
#[derive(Default)]
pub struct Memory {
    pages: BTreeMap<u64, Page>,
    next: u64,
    /// Pages that the card wrote since [`Memory::take_written`].
    written: BTreeSet<u64>,
    /// Completion rings by the address of their status words.
    rings: BTreeMap<u64, Ring>,
    /// What must lie where when the completion at an address is written.
    promised: BTreeMap<u64, Vec<(u64, Vec<u8>)>>,
    /// What no card may do whatever its driver does, as sentences: DMA to memory taken back or never offered.
    violations: Vec<String>,
}

impl Memory {
    /// Fresh pages for `len` bytes, filled with `fill`, and a hole behind them.
    pub fn alloc(&mut self, func: FuncId, len: usize, fill: u8) -> u64 {
        let first = FIRST_PAGE + self.next;
        let count = (len.max(1) as u64).div_ceil(PAGE);
        self.next += count + 1;
        for page in first..first + count {
            let bytes = Box::new([fill; PAGE as usize]);
            self.pages.insert(page, Page { func, standing: Standing::Good, bytes });
        }
        first * PAGE
    }

    /// Pages at an address that somebody else chose, zeroed where they are new.
    pub fn lend(&mut self, func: FuncId, addr: u64, len: u64) {
        for page in pages_of(addr, len as usize) {
            let fresh = || Page { func, standing: Standing::Good, bytes: Box::new([0; PAGE as usize]) };
            self.pages.entry(page).or_insert_with(fresh);
        }
    }

    /// Change what the pages of a range are to the card.
    pub fn mark(&mut self, addr: u64, len: usize, standing: Standing) {
        for page in pages_of(addr, len) {
            if let Some(page) = self.pages.get_mut(&page) {
                page.standing = standing;
            }
        }
        if standing == Standing::Freed {
            self.rings.retain(|at, _| !(addr..addr + len as u64).contains(at));
        }
    }

    /// Watch the order of writes to a completion ring, until its memory is taken back.
    pub fn watch(&mut self, ring: Ring) {
        self.rings.insert(ring.status_addr(), ring);
    }

    /// When the completion at `entry` is written, these bytes must be there.
    pub fn promise(&mut self, entry: u64, parts: Vec<(u64, Vec<u8>)>) {
        self.promised.insert(entry, parts);
    }

    /// Forget all promises: both have settled.
    pub fn forget_promises(&mut self) {
        self.promised.clear();
    }

    /// Hold a write against what is watched.
    fn watch_write(&mut self, addr: u64, data: &[u8]) {
        let end = addr + data.len() as u64;
        let due: Vec<u64> = self.promised.range(addr..end).map(|(entry, _)| *entry).collect();
        for entry in due {
            let parts = self.promised.remove(&entry).unwrap_or_default();
            if parts.iter().any(|(at, part)| self.get(*at, part.len()) != *part) {
                self.violations.push(format!("the completion at {entry:#x} was written before its payload"));
            }
        }
        let status = self.rings.range(addr..).next().map(|(at, _)| *at);
        if let Some(at) = status
            && let Some(ring) = self.rings.get_mut(&at)
        {
            if addr == at && data.len() == 8 {
                if ring.status_written(u16::from_le_bytes([data[0], data[1]])) {
                    self.violations.push(format!("the status word at {at:#x} was written before its completions"));
                }
            } else {
                ring.entries_written(addr, data.len());
            }
        }
    }

    /// The CPU's own store.
    pub fn put(&mut self, addr: u64, data: &[u8]) {
        for (at, part) in cut(addr, data.len()) {
            if let Some(page) = self.pages.get_mut(&(at / PAGE)) {
                page.bytes[(at % PAGE) as usize..][..part.len()].copy_from_slice(&data[part]);
            }
        }
    }

    /// The CPU's own load. Bytes in no page read 0xEE.
    pub fn get(&self, addr: u64, len: usize) -> Vec<u8> {
        let mut out = vec![0xEE; len];
        for (at, part) in cut(addr, len) {
            if let Some(page) = self.pages.get(&(at / PAGE)) {
                out[part.clone()].copy_from_slice(&page.bytes[(at % PAGE) as usize..][..part.len()]);
            }
        }
        out
    }

    /// One page, if it is there and not taken back.
    pub fn page(&self, page: u64) -> Option<&[u8; PAGE as usize]> {
        self.pages.get(&page).filter(|page| page.standing != Standing::Freed).map(|page| &*page.bytes)
    }

    /// Pages that the card wrote since the last call.
    pub fn take_written(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.written)
    }

    /// The first thing that no card may do, and was done since the last call.
    pub fn take_violation(&mut self) -> Option<String> {
        let first = self.violations.drain(..).next();
        self.violations.clear();
        first
    }

    /// Whether an access may be done.
    fn check(&mut self, func: FuncId, addr: u64, len_bytes: usize, what: &str) -> Result<(), DmaFault> {
        let unmapped = DmaFault::Unmapped { func, addr, len_bytes };
        if addr.checked_add(len_bytes as u64).is_none() {
            self.violations.push(format!("{what} of {len_bytes} bytes at {addr:#x}: past the end of memory"));
            return Err(unmapped);
        }
        if func == NOBODY {
            return Err(unmapped);
        }
        let mut found = Standing::Good;
        for page in pages_of(addr, len_bytes) {
            let standing = match self.pages.get(&page) {
                Some(page) if page.func == func || page.standing == Standing::Missing => page.standing,
                Some(page) => {
                    let owner = page.func;
                    self.violations
                        .push(format!("{what} of {len_bytes} bytes at {addr:#x} by {func}: it is {owner}'s"));
                    return Err(unmapped);
                }
                None => {
                    self.violations.push(format!("{what} of {len_bytes} bytes at {addr:#x}: nobody offered it"));
                    return Err(unmapped);
                }
            };
            match standing {
                Standing::Freed => {
                    self.violations.push(format!("{what} of {len_bytes} bytes at {addr:#x}: it was taken back"));
                    return Err(unmapped);
                }
                Standing::Missing => return Err(unmapped),
                Standing::Poisoned => found = Standing::Poisoned,
                Standing::Good => {}
            }
        }
        if found == Standing::Poisoned { Err(DmaFault::Poisoned { func, addr, len_bytes }) } else { Ok(()) }
    }
}

impl HostMemory for Memory {
    fn read(&mut self, func: FuncId, addr: u64, buf: &mut [u8]) -> Result<(), DmaFault> {
        self.check(func, addr, buf.len(), "DMA read")?;
        for (at, part) in cut(addr, buf.len()) {
            if let Some(page) = self.pages.get(&(at / PAGE)) {
                buf[part.clone()].copy_from_slice(&page.bytes[(at % PAGE) as usize..][..part.len()]);
            }
        }
        Ok(())
    }

    fn write(&mut self, func: FuncId, addr: u64, data: &[u8]) -> Result<(), DmaFault> {
        match self.check(func, addr, data.len(), "DMA write") {
            Ok(()) | Err(DmaFault::Poisoned { .. }) => {}
            Err(fault) => return Err(fault),
        }
        self.written.extend(pages_of(addr, data.len()));
        self.watch_write(addr, data);
        self.put(addr, data);
        Ok(())
    }
}

/// Numbers of the pages that a range touches.
fn pages_of(addr: u64, len: usize) -> std::ops::RangeInclusive<u64> {
    addr / PAGE..=(addr + (len as u64).saturating_sub(1)) / PAGE
}

/// A range cut at page boundaries: address, and which bytes of the range.
fn cut(addr: u64, len: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = addr + done as u64;
        let part = (len - done).min((PAGE - at % PAGE) as usize);
        let range = done..done + part;
        done += part;
        (part != 0).then_some((at, range))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const F0: FuncId = FuncId(0);

    #[test]
    fn bytes_cross_pages() {
        let mut memory = Memory::default();
        let addr = memory.alloc(F0, 2 * PAGE as usize, 0xA5);
        memory.write(F0, addr + PAGE - 2, &[1, 2, 3]).unwrap();
        assert_eq!(memory.get(addr + PAGE - 3, 5), [0xA5, 1, 2, 3, 0xA5]);
        assert_eq!(memory.take_written(), BTreeSet::from([addr / PAGE, addr / PAGE + 1]));
    }

    #[test]
    fn what_was_taken_back_may_not_be_touched() {
        let mut memory = Memory::default();
        let addr = memory.alloc(F0, 1, 0);
        memory.mark(addr, 1, Standing::Freed);
        assert!(memory.read(F0, addr, &mut [0]).is_err());
        assert!(memory.take_violation().unwrap().ends_with("it was taken back"));
        assert_eq!(memory.take_violation(), None);
    }

    #[test]
    fn nobody_gets_anything_and_nobody_complains() {
        let mut memory = Memory::default();
        let addr = memory.alloc(F0, 1, 0);
        assert!(memory.write(NOBODY, addr, &[1]).is_err());
        assert_eq!((memory.get(addr, 1), memory.take_violation()), (vec![0], None));
    }

    #[test]
    fn a_missing_page_is_refused_without_more_ado() {
        let mut memory = Memory::default();
        let addr = memory.alloc(F0, 1, 0);
        memory.mark(addr, 1, Standing::Missing);
        assert!(memory.write(F0, addr, &[0]).is_err());
        assert_eq!(memory.take_violation(), None);
    }

    #[test]
    fn a_status_word_tells_of_what_is_there() {
        let mut memory = Memory::default();
        let addr = memory.alloc(F0, 64, 0);
        memory.watch(Ring::new(addr, 8, 4));
        memory.write(F0, addr, &[1; 16]).unwrap();
        memory.write(F0, addr + 24, &[2, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!(memory.take_violation(), None);
        memory.write(F0, addr + 24, &[0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        assert!(memory.take_violation().unwrap().ends_with("before its completions"));
    }

    #[test]
    fn a_completion_finds_its_payload() {
        let mut memory = Memory::default();
        let addr = memory.alloc(F0, 64, 0);
        memory.promise(addr + 8, vec![(addr + 32, vec![5; 4])]);
        memory.write(F0, addr + 32, &[5; 3]).unwrap();
        memory.write(F0, addr, &[1; 16]).unwrap();
        assert!(memory.take_violation().unwrap().ends_with("before its payload"));
    }

    #[test]
    fn poison_is_read_and_can_be_written_over() {
        let mut memory = Memory::default();
        let addr = memory.alloc(F0, 1, 0);
        memory.mark(addr, 1, Standing::Poisoned);
        assert!(matches!(memory.read(F0, addr, &mut [0]), Err(DmaFault::Poisoned { .. })));
        assert!(memory.write(F0, addr, &[7]).is_ok());
    }
}
