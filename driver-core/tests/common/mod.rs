//! A platform made for tests: registers, DMA memory and a small card that fills and drains rings as a QDMA does.
//!
//! It has nothing of the driver's code: contexts, descriptors and completions are taken apart here with plain shifts, so
//! that a mistake in a shared layout shows. It panics when the driver breaks a rule (a page handed over twice, a write
//! outside a page), since every such panic is a failed test.
#![allow(dead_code)]

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use driver_core::{
    Clock, Coherent, DeviceConfig, Direction, DmaAddr, DmaError, DmaMemory, Driver, InterruptError, Interrupts,
    MapError, Mmio, MmioError, Page, Platform, TableEntry, Vector,
};
use regs::{Bar, FuncId};

pub const PAGE: usize = 4096;

/// Pages lie two pages apart, so that a write past one's end hits nothing.
const PAGE_BASE: u64 = 0x1_0000_0000;
const PAGE_STEP: u64 = 2 * PAGE as u64;

/// What a page holds before anybody writes: a byte that is never written is seen.
const POISON: u8 = 0xA5;

/// One register access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    pub bar: Bar,
    pub write: bool,
    pub offset: u32,
    pub value: u32,
}

/// What goes wrong, and when.
#[derive(Clone, Copy, Default, Debug)]
pub struct Faults {
    /// The n-th register access from now on (0 is the next) and those after it fail.
    pub mmio_from: Option<u64>,
    /// The n-th register access fails, and only that one.
    pub mmio_at: Option<u64>,
    /// The n-th context command and those after it stay busy.
    pub busy_from: Option<u64>,
    /// The n-th context command stays busy, and only that one.
    pub busy_at: Option<u64>,
    /// The n-th allocation, of pages or coherent memory, fails.
    pub alloc_at: Option<u64>,
    /// All allocations fail.
    pub no_memory: bool,
    /// Blocks never come out of reset.
    pub in_reset: bool,
    /// A frame arrives for this absolute queue just before the first of its contexts is invalidated.
    pub frame_at_stop: Option<u16>,
    /// Reads of a CMAC's version.
    pub cmac_version: Option<u32>,
}

#[derive(Default)]
struct Counts {
    mmio: u64,
    commands: u64,
    allocs: u64,
}

/// A queue as the card sees it.
#[derive(Default, Clone)]
struct Rings {
    h2c_pidx: u16,
    h2c_cidx: u16,
    c2h_pidx: u16,
    c2h_cidx: u16,
    cmpt_pidx: u16,
    cmpt_cidx: u16,
    color: bool,
    /// Stopped by an impossible doorbell: receive, transmit.
    dead: [bool; 2],
}

#[derive(Default)]
pub struct State {
    regs: HashMap<(u32, u32), u32>,
    pub log: Vec<Access>,
    pub faults: Faults,
    counts: Counts,
    contexts: BTreeMap<(u32, u32), [u32; 8]>,
    busy: bool,
    rings: HashMap<u16, Rings>,
    pub doorbells: Vec<(u32, u32)>,
    /// Millions of doorbells would fill the log: they go there on request only.
    doorbells_in_log: bool,
    /// The test writes things that can't be: doorbells that follow from them are not the driver's fault.
    pub lies: bool,
    pkt_id: u16,
    /// Bytes of pages that the device owns, by slot; `None` is a free slot or one that the CPU owns.
    device: Vec<Option<Box<[u8]>>>,
    /// Likewise of fragments, by slot and offset in the page.
    device_fragments: BTreeMap<(u32, usize), Box<[u8]>>,
    free_slots: Vec<u32>,
    mapped: usize,
    /// Dead once the driver has dropped its side.
    coherent: BTreeMap<u64, Weak<Vec<AtomicU64>>>,
    next_coherent: u64,
    pub pages_out: i64,
    pub allocations: u64,
    enabled: Vec<bool>,
}

/// The platform. All four seams are this one object.
pub struct Mock {
    state: Mutex<State>,
    now: AtomicU64,
    vectors: u16,
}

impl Mock {
    pub fn new(vectors: u16) -> Arc<Self> {
        let mut state = State { next_coherent: 0x10_0000, ..State::default() };
        state.regs.insert((0, 0xBE0), 16);
        state.regs.insert((0, 0xBE4), 16);
        state.enabled = vec![false; usize::from(vectors)];
        Arc::new(Self { state: Mutex::new(state), now: AtomicU64::new(0), vectors })
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Set what goes wrong; counting starts here.
    pub fn fail(&self, faults: Faults) {
        let mut state = self.state();
        state.counts = Counts::default();
        state.faults = faults;
    }

    pub fn mmio_count(&self) -> u64 {
        self.state().counts.mmio
    }

    pub fn command_count(&self) -> u64 {
        self.state().counts.commands
    }

    pub fn alloc_count(&self) -> u64 {
        self.state().counts.allocs
    }

    /// Doorbells go to the log too.
    pub fn log_doorbells(&self, on: bool) {
        self.state().doorbells_in_log = on;
    }

    pub fn take_log(&self) -> Vec<Access> {
        std::mem::take(&mut self.state().log)
    }

    /// Nothing is lent, mapped or enabled any more.
    pub fn assert_clean(&self) {
        let state = self.state();
        assert_eq!(state.pages_out, 0, "pages not given back");
        assert_eq!(state.mapped, 0, "mappings left");
        let live = state.coherent.values().filter(|words| words.strong_count() > 0).count();
        assert_eq!(live, 0, "coherent memory left");
        assert!(state.enabled.iter().all(|on| !on), "vectors left enabled: {:?}", state.enabled);
        for ((selector, qid), words) in &state.contexts {
            let live = match selector {
                0 | 1 => words[1] & 1 != 0,
                6 => words[3] >> 28 & 1 != 0,
                7 => words[1] >> 13 & 1 != 0,
                _ => false,
            };
            assert!(!live, "context {selector} of {qid} is still enabled");
        }
    }

    pub fn reg(&self, bar: u32, offset: u32) -> u32 {
        self.state().regs.get(&(bar, offset)).copied().unwrap_or(0)
    }

    pub fn context(&self, selector: u32, qid: u16) -> [u32; 8] {
        self.state().contexts.get(&(selector, u32::from(qid))).copied().unwrap_or_default()
    }

    pub fn vector_enabled(&self, vector: u16) -> bool {
        self.state().enabled[usize::from(vector)]
    }

    /// Registers as something else left them, in BAR0.
    pub fn state_tables(&self, values: &[(u32, u32)]) {
        self.state().regs.extend(values.iter().map(|(offset, value)| ((0, *offset), *value)));
    }

    /// A register of the shell, as the card has it.
    pub fn set_shell(&self, offset: u32, value: u32) {
        self.state().regs.insert((2, offset), value);
    }

    // ---- the card

    /// A frame arrives for an absolute queue. False if it has no room: too few buffers.
    pub fn receive(&self, qid: u16, frame: &[u8]) -> bool {
        let mut state = self.state();
        let id = state.pkt_id.wrapping_add(1);
        let done = state.receive(qid, frame, id);
        if done {
            state.pkt_id = id;
        }
        done
    }

    /// A frame arrives whose completion is held back, though the status word covers it. Returns the completion's index and
    /// value; until it is written, the entry has what it had before.
    pub fn receive_late(&self, qid: u16, frame: &[u8]) -> (u16, u64) {
        let (index, _) = self.next_completion(qid);
        let at = {
            let state = self.state();
            state.cmpt(qid).0 + 8 * u64::from(index)
        };
        let before = self.state().load64(at);
        assert!(self.receive(qid, frame));
        let state = self.state();
        let entry = state.load64(at);
        state.store64(at, before);
        (index, entry)
    }

    /// Buffers that the card may still use.
    pub fn buffers(&self, qid: u16) -> u16 {
        let state = self.state();
        let (_, entries) = state.sw_context(0, qid);
        let ring = &state.rings[&qid];
        distance(ring.c2h_cidx, ring.c2h_pidx, entries)
    }

    /// Take up to `max` frames that the driver has published, and write the new index back.
    pub fn transmit(&self, qid: u16, max: usize) -> Vec<Vec<u8>> {
        let mut state = self.state();
        let (base, entries) = state.sw_context(1, qid);
        let mut ring = state.rings.entry(qid).or_default().clone();
        let mut frames = Vec::new();
        if ring.dead[1] {
            return frames;
        }
        while ring.h2c_cidx != ring.h2c_pidx && frames.len() < max {
            let at = base + 16 * u64::from(ring.h2c_cidx);
            let (low, addr) = (state.load64(at), state.load64(at + 8));
            assert_eq!(low as u16, (low >> 32) as u16, "metadata and length must agree");
            frames.push(state.read_dma(addr, (low >> 32 & 0xFFFF) as usize));
            ring.h2c_cidx = (ring.h2c_cidx + 1) % (entries - 1);
        }
        let status = u64::from(ring.h2c_cidx) << 16 | u64::from(ring.h2c_pidx) << 32;
        state.store64(base + 16 * u64::from(entries - 1), status);
        state.rings.insert(qid, ring);
        frames
    }

    /// Overwrite the TX status word.
    pub fn poke_tx_status(&self, qid: u16, raw: u64) {
        let state = self.state();
        let (base, entries) = state.sw_context(1, qid);
        state.store64(base + 16 * u64::from(entries - 1), raw);
    }

    /// Overwrite the completion status word.
    pub fn poke_rx_status(&self, qid: u16, raw: u64) {
        let state = self.state();
        let (base, entries) = state.cmpt(qid);
        state.store64(base + 8 * u64::from(entries - 1), raw);
    }

    /// Overwrite a completion.
    pub fn poke_completion(&self, qid: u16, index: u16, raw: u64) {
        let state = self.state();
        let (base, _) = state.cmpt(qid);
        state.store64(base + 8 * u64::from(index), raw);
    }

    /// The card's next completion index and its color.
    pub fn next_completion(&self, qid: u16) -> (u16, bool) {
        let state = self.state();
        let ring = &state.rings[&qid];
        (ring.cmpt_pidx, ring.color)
    }

    pub fn take_doorbells(&self) -> Vec<(u32, u32)> {
        std::mem::take(&mut self.state().doorbells)
    }
}

fn distance(from: u16, to: u16, entries: u16) -> u16 {
    (u32::from(to) + u32::from(entries - 1) - u32::from(from)).rem_euclid(u32::from(entries - 1)) as u16
}

impl State {
    fn mmio(&mut self, bar: Bar, offset: u32) -> Result<(), MmioError> {
        let n = self.counts.mmio;
        self.counts.mmio += 1;
        if self.faults.mmio_from.is_some_and(|from| n >= from) || self.faults.mmio_at == Some(n) {
            return Err(MmioError::TimedOut { bar, offset, waited_ns: 1 });
        }
        Ok(())
    }

    fn command(&mut self, word: u32) {
        let n = self.counts.commands;
        self.counts.commands += 1;
        self.busy = self.faults.busy_from.is_some_and(|from| n >= from) || self.faults.busy_at == Some(n);
        if self.busy {
            return;
        }
        let key = (word >> 1 & 0xF, word >> 7 & 0x1FFF);
        if word >> 5 & 3 == 3
            && let Some(qid) = self.faults.frame_at_stop.take_if(|qid| u32::from(*qid) == key.1)
        {
            let id = self.pkt_id.wrapping_add(1);
            self.pkt_id = id;
            assert!(self.receive(qid, &numbered(id.into(), 60), id), "room for it");
        }
        let data: [u32; 8] = std::array::from_fn(|i| self.regs.get(&(0, 0x804 + 4 * i as u32)).copied().unwrap_or(0));
        match word >> 5 & 3 {
            0 => {
                self.contexts.insert(key, [0; 8]);
            }
            1 => {
                self.contexts.insert(key, data);
                match key.0 {
                    // A new ring starts at 0.
                    0 => self.ring(key.1).restart_rx(),
                    1 => self.ring(key.1).restart_tx(),
                    6 => self.ring(key.1).color = true,
                    _ => {}
                }
            }
            3 => {
                if let Some(words) = self.contexts.get_mut(&key) {
                    match key.0 {
                        0 | 1 => words[1] &= !1,
                        6 => words[3] &= !(1 << 28),
                        7 => words[1] &= !(1 << 13),
                        _ => {}
                    }
                }
            }
            _ => panic!("context read is not used"),
        }
    }

    fn ring(&mut self, qid: u32) -> &mut Rings {
        self.rings.entry(qid as u16).or_default()
    }

    fn doorbell(&mut self, offset: u32, value: u32) {
        self.doorbells.push((offset, value));
        let rel = (offset - 0x18000) / 16;
        // The function map says where this function's queues begin.
        let map = self.contexts.iter().find(|((selector, _), words)| *selector == 12 && words[1] != 0);
        let Some((_, map)) = map else { panic!("doorbell {offset:#x} of a function without queues") };
        assert!(rel < map[1], "doorbell of queue {rel}, the function has {}", map[1]);
        let qid = map[0] + rel;
        let (kind, limit) = match offset % 16 {
            4 => (0, self.sw_context(1, qid as u16).1),
            8 => (1, self.sw_context(0, qid as u16).1),
            _ => (2, self.cmpt(qid as u16).1),
        };
        let index = value as u16;
        assert!(index < limit - 1, "index {index} in a ring of {limit}");
        let ring = self.ring(qid);
        let possible = match kind {
            0 => {
                let more = distance(ring.h2c_pidx, index, limit);
                more + distance(ring.h2c_cidx, ring.h2c_pidx, limit) <= limit - 2
            }
            1 => {
                let more = distance(ring.c2h_pidx, index, limit);
                more + distance(ring.c2h_cidx, ring.c2h_pidx, limit) <= limit - 2
            }
            _ => distance(ring.cmpt_cidx, index, limit) <= distance(ring.cmpt_cidx, ring.cmpt_pidx, limit),
        };
        match (possible, kind) {
            (true, 0) => ring.h2c_pidx = index,
            (true, 1) => ring.c2h_pidx = index,
            (true, _) => ring.cmpt_cidx = index,
            (false, _) => self.impossible(qid as u16, kind, index),
        }
    }

    /// An index that can't be. From an honest card's driver that is a bug. A card that lied gets what it asked for; like a
    /// real one it stops the queue and says so in the status word.
    fn impossible(&mut self, qid: u16, kind: u32, index: u16) {
        assert!(self.lies, "doorbell {kind} of queue {qid}: index {index} can't be");
        self.ring(u32::from(qid)).dead[usize::from(kind == 0)] = true;
        if kind == 0 {
            let (base, entries) = self.sw_context(1, qid);
            self.store64(base + 16 * u64::from(entries - 1), 1);
        } else {
            let (base, entries) = self.cmpt(qid);
            self.store64(base + 8 * u64::from(entries - 1), 1 << 35);
        }
    }

    /// Base and entries of a descriptor ring, which must be enabled.
    fn sw_context(&self, selector: u32, qid: u16) -> (u64, u16) {
        let words = self.contexts.get(&(selector, u32::from(qid))).copied().unwrap_or_default();
        assert!(words[1] & 1 != 0, "queue {qid} selector {selector} is not enabled");
        (u64::from(words[2]) | u64::from(words[3]) << 32, self.ring_size(words[1] >> 12 & 0xF))
    }

    fn cmpt(&self, qid: u16) -> (u64, u16) {
        let words = self.contexts.get(&(6, u32::from(qid))).copied().unwrap_or_default();
        assert!(words[3] >> 28 & 1 != 0, "completion queue {qid} is not enabled");
        let base = (u64::from(words[1]) | u64::from(words[2] & 0x3FF_FFFF) << 32) << 6;
        (base, self.ring_size(words[0] >> 28))
    }

    fn ring_size(&self, index: u32) -> u16 {
        self.regs[&(0, 0x204 + 4 * index)] as u16
    }

    fn receive(&mut self, qid: u16, frame: &[u8], pkt_id: u16) -> bool {
        let (base, entries) = self.sw_context(0, qid);
        let (cmpt_base, cmpt_entries) = self.cmpt(qid);
        let index = self.contexts[&(7, u32::from(qid))][0] >> 1 & 0xF;
        let buffer = self.regs[&(0, 0xAB0 + 4 * index)] as usize;
        let mut ring = self.rings.entry(qid).or_default().clone();
        let needed = frame.len().div_ceil(buffer);
        if ring.dead[0] || needed > usize::from(distance(ring.c2h_cidx, ring.c2h_pidx, entries)) {
            return false;
        }
        let unread = distance(ring.cmpt_cidx, ring.cmpt_pidx, cmpt_entries);
        assert!(unread < cmpt_entries - 2 || self.lies, "the completion ring overflows");
        if unread >= cmpt_entries - 2 {
            return false;
        }
        for piece in frame.chunks(buffer) {
            let addr = self.load64(base + 8 * u64::from(ring.c2h_cidx));
            self.write_page(addr, piece);
            ring.c2h_cidx = (ring.c2h_cidx + 1) % (entries - 1);
        }
        let entry =
            u64::from(ring.color) << 1 | u64::from(qid) << 16 | (frame.len() as u64) << 32 | u64::from(pkt_id) << 48;
        self.store64(cmpt_base + 8 * u64::from(ring.cmpt_pidx), entry);
        ring.cmpt_pidx = (ring.cmpt_pidx + 1) % (cmpt_entries - 1);
        ring.color ^= ring.cmpt_pidx == 0;
        let status = u64::from(ring.cmpt_pidx) | u64::from(ring.cmpt_cidx) << 16 | u64::from(ring.color) << 32;
        self.store64(cmpt_base + 8 * u64::from(cmpt_entries - 1), status);
        self.rings.insert(qid, ring);
        true
    }

    fn coherent_at(&self, addr: u64) -> (Arc<Vec<AtomicU64>>, usize) {
        let (base, words) = self.coherent.range(..=addr).next_back().expect("coherent memory at that address");
        let words = words.upgrade().expect("coherent memory that is not freed");
        let word = ((addr - base) / 8) as usize;
        assert!(word < words.len() && addr.is_multiple_of(8), "coherent access at {addr:#x}");
        (words, word)
    }

    fn load64(&self, addr: u64) -> u64 {
        let (words, word) = self.coherent_at(addr);
        words[word].load(Ordering::Acquire)
    }

    fn store64(&self, addr: u64, value: u64) {
        let (words, word) = self.coherent_at(addr);
        words[word].store(value, Ordering::Release);
    }

    /// Bytes of a page that the device owns. `None` for one that it gave back by a lie: an IOMMU would refuse the access.
    fn page_mut(&mut self, addr: u64, len: usize) -> Option<&mut [u8]> {
        let slot = ((addr - PAGE_BASE) / PAGE_STEP) as usize;
        let offset = ((addr - PAGE_BASE) % PAGE_STEP) as usize;
        assert!(offset + len <= PAGE, "DMA at {addr:#x}, {len} bytes: past the page's end");
        let below = self.device_fragments.range_mut((slot as u32, 0)..=(slot as u32, offset)).next_back();
        if let Some(((_, start), bytes)) = below
            && offset + len <= start + bytes.len()
        {
            return Some(&mut bytes[offset - start..offset - start + len]);
        }
        let page = self.device[slot].as_mut();
        assert!(page.is_some() || self.lies, "DMA to a page that the device doesn't own");
        page.map(|page| &mut page[offset..offset + len])
    }

    fn write_page(&mut self, addr: u64, data: &[u8]) {
        if let Some(page) = self.page_mut(addr, data.len()) {
            page.copy_from_slice(data);
        }
    }

    fn read_dma(&mut self, addr: u64, len: usize) -> Vec<u8> {
        if addr >= PAGE_BASE {
            return self.page_mut(addr, len).map_or_else(Vec::new, |page| page.to_vec());
        }
        let words = (0..len.div_ceil(8)).flat_map(|i| self.load64(addr + 8 * i as u64).to_le_bytes());
        words.take(len).collect()
    }

    fn alloc(&mut self, len_bytes: usize) -> Result<(), DmaError> {
        let n = self.counts.allocs;
        self.counts.allocs += 1;
        if self.faults.no_memory || self.faults.alloc_at == Some(n) {
            return Err(DmaError::OutOfMemory { len_bytes });
        }
        self.allocations += 1;
        Ok(())
    }
}

impl Rings {
    fn restart_rx(&mut self) {
        (self.c2h_pidx, self.c2h_cidx, self.cmpt_pidx, self.cmpt_cidx) = (0, 0, 0, 0);
        self.dead[0] = false;
    }

    fn restart_tx(&mut self) {
        (self.h2c_pidx, self.h2c_cidx) = (0, 0);
        self.dead[1] = false;
    }
}

impl Platform for Mock {
    type Mmio = Mock;
    type Clock = Mock;
    type Interrupts = Mock;
    type Dma = Mock;

    fn mmio(&self) -> &Mock {
        self
    }
    fn clock(&self) -> &Mock {
        self
    }
    fn interrupts(&self) -> &Mock {
        self
    }
    fn dma(&self) -> &Mock {
        self
    }
}

impl Mmio for Mock {
    fn read32(&self, bar: Bar, offset: u32) -> Result<u32, MmioError> {
        let mut state = self.state();
        state.mmio(bar, offset)?;
        let key = (u32::from(bar.number()), offset);
        let value = match key {
            (0, 0x844) => state.regs.get(&key).copied().unwrap_or(0) | u32::from(state.busy),
            (2, 0x8024 | 0xC024) => state.faults.cmac_version.unwrap_or(0x301),
            (2, 0x8204 | 0xC204) => 3,
            (2, 0x10) if state.faults.in_reset => 0,
            _ => state.regs.get(&key).copied().unwrap_or(0),
        };
        state.log.push(Access { bar, write: false, offset, value });
        Ok(value)
    }

    fn write32(&self, bar: Bar, offset: u32, value: u32) -> Result<(), MmioError> {
        let mut state = self.state();
        state.mmio(bar, offset)?;
        let key = (u32::from(bar.number()), offset);
        match key {
            (0, 0x844) => state.command(value),
            (0, 0x18000..0x20000) => {
                state.doorbell(offset, value);
                if state.doorbells_in_log {
                    state.log.push(Access { bar, write: true, offset, value });
                }
                return Ok(());
            }
            // A reset ends at once, and status bits stay.
            (2, 0xC) => *state.regs.entry((2, 0x10)).or_default() |= value,
            _ => {}
        }
        state.regs.insert(key, value);
        state.log.push(Access { bar, write: true, offset, value });
        Ok(())
    }
}

impl Clock for Mock {
    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
    fn wait(&self, ns: u64) {
        self.now.fetch_add(ns, Ordering::Relaxed);
    }
}

impl Interrupts for Mock {
    fn count(&self) -> u16 {
        self.vectors
    }
    fn enable(&self, vector: Vector) -> Result<(), InterruptError> {
        self.set(vector, true)
    }
    fn disable(&self, vector: Vector) -> Result<(), InterruptError> {
        self.set(vector, false)
    }
    fn take(&self) -> Option<Vector> {
        None
    }
}

impl Mock {
    fn set(&self, vector: Vector, on: bool) -> Result<(), InterruptError> {
        let count = self.vectors;
        match self.state().enabled.get_mut(usize::from(vector.0)) {
            Some(enabled) => {
                *enabled = on;
                Ok(())
            }
            None => Err(InterruptError::NoSuchVector { vector: vector.0, count }),
        }
    }
}

/// Coherent memory: 64-bit atomics.
pub struct MockCoherent {
    base: u64,
    words: Arc<Vec<AtomicU64>>,
}

impl MockCoherent {
    fn word(&self, offset: usize) -> &AtomicU64 {
        &self.words[offset / 8]
    }
}

impl Coherent for MockCoherent {
    fn dma_addr(&self) -> DmaAddr {
        DmaAddr(self.base)
    }
    fn len_bytes(&self) -> usize {
        8 * self.words.len()
    }
    fn load16(&self, offset: usize) -> u16 {
        (self.word(offset).load(Ordering::Relaxed) >> (8 * (offset % 8))) as u16
    }
    fn load32(&self, offset: usize) -> u32 {
        (self.word(offset).load(Ordering::Relaxed) >> (8 * (offset % 8))) as u32
    }
    fn load64(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Relaxed)
    }
    fn store32(&self, offset: usize, value: u32) {
        let shift = 8 * (offset % 8);
        let old = self.word(offset).load(Ordering::Relaxed);
        self.word(offset).store(old & !(0xFFFF_FFFF << shift) | u64::from(value) << shift, Ordering::Relaxed);
    }
    fn store64(&self, offset: usize, value: u64) {
        self.word(offset).store(value, Ordering::Relaxed);
    }
}

/// Which part of its page a page value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// All of it from this offset on: 0 unless fragments are out.
    Rest { start: usize, out: usize },
    /// A fragment, from this offset on.
    Fragment { start: usize },
}

impl Part {
    const WHOLE: Part = Part::Rest { start: 0, out: 0 };

    fn start(self) -> usize {
        match self {
            Part::Rest { start, .. } | Part::Fragment { start } => start,
        }
    }
}

/// A page in the CPU's hands: all bytes of the page, or of the fragment.
#[derive(Debug)]
pub struct MockPage {
    bytes: Box<[u8]>,
    slot: Option<u32>,
    part: Part,
}

/// A page in the device's hands.
#[derive(Debug)]
pub struct MockDevicePage {
    slot: u32,
    part: Part,
}

impl MockPage {
    fn skipped(&self) -> usize {
        match self.part {
            Part::Rest { start, .. } => start,
            Part::Fragment { .. } => 0,
        }
    }
}

impl Page for MockPage {
    fn bytes(&self) -> &[u8] {
        &self.bytes[self.skipped()..]
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        let skipped = self.skipped();
        &mut self.bytes[skipped..]
    }
    fn dma_addr(&self) -> Option<DmaAddr> {
        self.slot.map(|slot| page_addr(slot) + self.part.start() as u64)
    }
}

fn page_addr(slot: u32) -> DmaAddr {
    DmaAddr(PAGE_BASE + u64::from(slot) * PAGE_STEP)
}

impl DmaMemory for Mock {
    type Coherent = MockCoherent;
    type Page = MockPage;
    type DevicePage = MockDevicePage;

    fn page_size(&self) -> usize {
        PAGE
    }

    fn alloc_coherent(&self, len_bytes: usize) -> Result<MockCoherent, DmaError> {
        let mut state = self.state();
        state.alloc(len_bytes)?;
        let base = state.next_coherent;
        // A guard page between two pieces.
        state.next_coherent += len_bytes.next_multiple_of(PAGE) as u64 + PAGE as u64;
        let words: Arc<Vec<AtomicU64>> = Arc::new((0..len_bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect());
        state.coherent.insert(base, Arc::downgrade(&words));
        Ok(MockCoherent { base, words })
    }

    fn alloc_page(&self) -> Result<MockPage, DmaError> {
        let mut state = self.state();
        state.alloc(PAGE)?;
        state.pages_out += 1;
        Ok(MockPage { bytes: vec![POISON; PAGE].into(), slot: None, part: Part::WHOLE })
    }

    fn free_page(&self, page: MockPage) {
        assert_eq!(page.part, Part::WHOLE, "a fragment, or a page whose fragments are out, is freed");
        let mut state = self.state();
        state.pages_out -= 1;
        if let Some(slot) = page.slot {
            state.mapped -= 1;
            state.free_slots.push(slot);
        }
    }

    fn map(&self, page: MockPage, _: Direction, _: usize) -> Result<MockDevicePage, MapError<MockPage>> {
        assert!(page.slot.is_none(), "a mapped page is mapped again");
        let mut state = self.state();
        let slot = state.free_slots.pop().unwrap_or_else(|| {
            state.device.push(None);
            state.device.len() as u32 - 1
        });
        state.device[slot as usize] = Some(page.bytes);
        state.mapped += 1;
        Ok(MockDevicePage { slot, part: Part::WHOLE })
    }

    fn device_addr(&self, page: &MockDevicePage) -> DmaAddr {
        page_addr(page.slot) + page.part.start() as u64
    }

    fn sync_for_cpu(&self, page: MockDevicePage, _: usize, _: usize) -> MockPage {
        let mut state = self.state();
        let bytes = match page.part {
            Part::Rest { .. } => state.device[page.slot as usize].take(),
            Part::Fragment { start } => state.device_fragments.remove(&(page.slot, start)),
        };
        MockPage { bytes: bytes.expect("the device owns the page"), slot: Some(page.slot), part: page.part }
    }

    fn sync_for_device(&self, page: MockPage, _: usize, _: usize) -> Result<MockDevicePage, MapError<MockPage>> {
        let Some(slot) = page.slot else {
            return Err(MapError { page, cause: DmaError::Invalid { why: "not mapped" } });
        };
        let mut state = self.state();
        let before = match page.part {
            Part::Rest { .. } => state.device[slot as usize].replace(page.bytes),
            Part::Fragment { start } => state.device_fragments.insert((slot, start), page.bytes),
        };
        assert!(before.is_none(), "two owners of one page");
        Ok(MockDevicePage { slot, part: page.part })
    }

    fn unmap(&self, page: MockDevicePage, _: usize) -> MockPage {
        assert_eq!(page.part, Part::WHOLE, "a fragment, or a page whose fragments are out, is unmapped");
        let mut state = self.state();
        let bytes = state.device[page.slot as usize].take().expect("the device owns the page");
        state.mapped -= 1;
        state.free_slots.push(page.slot);
        MockPage { bytes, slot: None, part: Part::WHOLE }
    }

    fn split(&self, page: &mut MockPage, len_bytes: usize) -> Result<MockPage, DmaError> {
        let (Part::Rest { start, out }, Some(_)) = (page.part, page.slot) else {
            return Err(DmaError::Invalid { why: "a fragment, or a page that is not mapped, is split" });
        };
        if len_bytes == 0 || start + len_bytes > PAGE {
            return Err(DmaError::Invalid { why: "a fragment of 0 bytes, or of more than are left" });
        }
        let bytes = page.bytes[start..start + len_bytes].into();
        page.part = Part::Rest { start: start + len_bytes, out: out + 1 };
        Ok(MockPage { bytes, slot: page.slot, part: Part::Fragment { start } })
    }

    fn join(&self, page: &mut MockPage, fragment: MockPage) -> Result<(), MapError<MockPage>> {
        let (Part::Rest { start, out: out @ 1.. }, Part::Fragment { .. }) = (page.part, fragment.part) else {
            return Err(MapError { page: fragment, cause: DmaError::Invalid { why: "no fragment of this page" } });
        };
        if page.slot != fragment.slot {
            return Err(MapError { page: fragment, cause: DmaError::Invalid { why: "a fragment of another page" } });
        }
        page.part = if out == 1 { Part::WHOLE } else { Part::Rest { start, out: out - 1 } };
        Ok(())
    }

    fn dma_rmb(&self) {
        std::sync::atomic::fence(Ordering::Acquire);
    }

    fn dma_wmb(&self) {
        std::sync::atomic::fence(Ordering::Release);
    }
}

/// A driver that is up, with rings of this many entries.
pub fn driver_up(mock: &Arc<Mock>, config: DeviceConfig) -> Driver<Mock> {
    let mut driver = Driver::bring_up(Arc::clone(mock), config).expect("bring-up");
    driver.up().expect("up");
    driver
}

/// Function 0 with `queues` queues and rings of `entries`.
pub fn config(queues: u16, entries: u16) -> DeviceConfig {
    DeviceConfig {
        queues,
        tx_ring: TableEntry::Value(entries),
        rx_ring: TableEntry::Value(entries),
        ..DeviceConfig::new(FuncId(0))
    }
}

/// A frame that can be told from all others: its number, then bytes that depend on number and place.
pub fn numbered(number: u32, len: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..len).map(|i| (i as u32).wrapping_mul(31).wrapping_add(number) as u8).collect();
    let n = len.min(4);
    frame[..n].copy_from_slice(&number.to_le_bytes()[..n]);
    frame
}
