//! The page pool on a memory that knows the owner of every byte: cases PP-01 to PP-04, Linux's semantics one fact a test,
//! and a property: whatever is asked of a pool, no page ever has two owners, and every page is accounted for.
#![cfg(not(loom))]

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use driver_core::pool::{
    AtomicRing, Buffer, CACHE_PAGES, Numbered, PagePool, PoolConfig, PoolError, PoolStatistics, REFILL_PAGES,
    RecycleRing, Recycler,
};
use driver_core::{Clock, Coherent, Direction, DmaAddr, DmaError, DmaMemory, MapError, Page, PageSource};
use proptest::prelude::*;

const PAGE: usize = 4096;
const BASE: u64 = 0x10_0000;

/// Who has a range of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    Cpu,
    Device,
}

#[derive(Clone, Debug, Default)]
struct Sheet {
    allocated: bool,
    mapped: bool,
    /// Where each range begins, to where it ends and whose it is. The rest of a cut page may be empty: it is not in here.
    owners: BTreeMap<usize, (usize, Owner)>,
    fragments: usize,
}

/// One call on the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Call {
    Alloc,
    Free,
    Map,
    Unmap,
    ForCpu(usize, usize),
    ForDevice(usize, usize),
}

#[derive(Default)]
struct State {
    sheets: Vec<Sheet>,
    log: Vec<Call>,
    /// Allocations that still succeed.
    allocations_left: Option<usize>,
}

/// Memory that panics when anybody has what somebody else has.
#[derive(Default)]
struct Memory(Mutex<State>);

/// A page, or a fragment of one, in the CPU's hands. `rest`: it may be cut.
#[derive(Debug)]
struct CpuPage {
    sheet: usize,
    range: Range<usize>,
    rest: bool,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct DevicePage {
    sheet: usize,
    range: Range<usize>,
}

impl Numbered for DevicePage {
    fn into_number(self) -> u64 {
        (self.sheet as u64) << 32 | (self.range.start as u64) << 16 | self.range.end as u64
    }
    fn from_number(number: u64) -> Self {
        let half = |shift: u32| (number >> shift & 0xFFFF) as usize;
        Self { sheet: (number >> 32) as usize, range: half(16)..half(0) }
    }
}

impl Memory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Let so many more allocations succeed.
    fn limit(&self, allocations: Option<usize>) {
        self.state().allocations_left = allocations;
    }

    fn take_log(&self) -> Vec<Call> {
        std::mem::take(&mut self.state().log)
    }

    fn allocated(&self) -> usize {
        self.state().sheets.iter().filter(|sheet| sheet.allocated).count()
    }

    /// A range changes hands.
    fn hand_over(&self, sheet: usize, range: &Range<usize>, from: Owner, to: Owner) {
        let mut state = self.state();
        if let Some(owner) = state.sheets[sheet].owners.get_mut(&range.start) {
            assert_eq!(*owner, (range.end, from), "sheet {sheet}, {range:?}");
            owner.1 = to;
        } else {
            assert!(range.is_empty(), "nobody has {range:?} of sheet {sheet}");
        }
    }
}

fn addr(sheet: usize, offset: usize) -> DmaAddr {
    DmaAddr(BASE + (2 * PAGE * sheet + offset) as u64)
}

impl Page for CpuPage {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
    fn dma_addr(&self) -> Option<DmaAddr> {
        Some(addr(self.sheet, self.range.start))
    }
}

/// No pool needs coherent memory.
struct NoCoherent;

impl Coherent for NoCoherent {
    fn dma_addr(&self) -> DmaAddr {
        DmaAddr(0)
    }
    fn len_bytes(&self) -> usize {
        0
    }
    fn load16(&self, _: usize) -> u16 {
        unreachable!("it has no bytes")
    }
    fn load32(&self, _: usize) -> u32 {
        unreachable!("it has no bytes")
    }
    fn load64(&self, _: usize) -> u64 {
        unreachable!("it has no bytes")
    }
    fn store32(&self, _: usize, _: u32) {}
    fn store64(&self, _: usize, _: u64) {}
}

fn invalid<T>(page: CpuPage, why: &'static str) -> Result<T, MapError<CpuPage>> {
    Err(MapError { page, cause: DmaError::Invalid { why } })
}

impl DmaMemory for Memory {
    type Coherent = NoCoherent;
    type Page = CpuPage;
    type DevicePage = DevicePage;

    fn page_size(&self) -> usize {
        PAGE
    }

    fn alloc_coherent(&self, len_bytes: usize) -> Result<NoCoherent, DmaError> {
        Err(DmaError::OutOfMemory { len_bytes })
    }

    fn alloc_page(&self) -> Result<CpuPage, DmaError> {
        let mut state = self.state();
        if let Some(left) = &mut state.allocations_left {
            *left = left.checked_sub(1).ok_or(DmaError::OutOfMemory { len_bytes: PAGE })?;
        }
        state.log.push(Call::Alloc);
        let free = state.sheets.iter().position(|sheet| !sheet.allocated);
        let sheet = free.unwrap_or(state.sheets.len());
        if free.is_none() {
            state.sheets.push(Sheet::default());
        }
        let owners = BTreeMap::from([(0, (PAGE, Owner::Cpu))]);
        state.sheets[sheet] = Sheet { allocated: true, mapped: false, owners, fragments: 0 };
        Ok(CpuPage { sheet, range: 0..PAGE, rest: true, bytes: vec![0; PAGE] })
    }

    fn free_page(&self, page: CpuPage) {
        let mut state = self.state();
        state.log.push(Call::Free);
        let sheet = &mut state.sheets[page.sheet];
        assert_eq!(sheet.owners, BTreeMap::from([(0, (PAGE, Owner::Cpu))]), "freed, but not whole or not the CPU's");
        assert_eq!(page.range, 0..PAGE, "a part of a page is freed");
        *sheet = Sheet::default();
    }

    fn map(&self, page: CpuPage, _: Direction, _: usize) -> Result<DevicePage, MapError<CpuPage>> {
        self.hand_over(page.sheet, &page.range, Owner::Cpu, Owner::Device);
        let mut state = self.state();
        state.log.push(Call::Map);
        let before = std::mem::replace(&mut state.sheets[page.sheet].mapped, true);
        assert!(!before, "mapped twice");
        Ok(DevicePage { sheet: page.sheet, range: page.range })
    }

    fn device_addr(&self, page: &DevicePage) -> DmaAddr {
        addr(page.sheet, page.range.start)
    }

    fn sync_for_cpu(&self, page: DevicePage, offset: usize, len: usize) -> CpuPage {
        self.hand_over(page.sheet, &page.range, Owner::Device, Owner::Cpu);
        self.state().log.push(Call::ForCpu(offset, len));
        let rest = page.range == (0..PAGE);
        CpuPage { sheet: page.sheet, bytes: vec![0; page.range.len()], range: page.range, rest }
    }

    fn sync_for_device(&self, page: CpuPage, offset: usize, len: usize) -> Result<DevicePage, MapError<CpuPage>> {
        if !self.state().sheets[page.sheet].mapped {
            return invalid(page, "not mapped");
        }
        self.hand_over(page.sheet, &page.range, Owner::Cpu, Owner::Device);
        self.state().log.push(Call::ForDevice(offset, len));
        Ok(DevicePage { sheet: page.sheet, range: page.range })
    }

    fn unmap(&self, page: DevicePage, _: usize) -> CpuPage {
        assert_eq!(page.range, 0..PAGE, "a fragment is unmapped");
        self.hand_over(page.sheet, &page.range, Owner::Device, Owner::Cpu);
        let mut state = self.state();
        state.log.push(Call::Unmap);
        state.sheets[page.sheet].mapped = false;
        CpuPage { sheet: page.sheet, range: page.range, rest: true, bytes: vec![0; PAGE] }
    }

    fn split(&self, page: &mut CpuPage, len: usize) -> Result<CpuPage, DmaError> {
        if !page.rest || len == 0 || len > page.range.len() {
            return Err(DmaError::Invalid { why: "can't be split so" });
        }
        let mut state = self.state();
        let sheet = &mut state.sheets[page.sheet];
        let middle = page.range.start + len;
        assert_eq!(sheet.owners.remove(&page.range.start), Some((page.range.end, Owner::Cpu)));
        sheet.owners.insert(page.range.start, (middle, Owner::Cpu));
        if middle < page.range.end {
            sheet.owners.insert(middle, (page.range.end, Owner::Cpu));
        }
        sheet.fragments += 1;
        let range = page.range.start..middle;
        page.range.start = middle;
        page.bytes.truncate(page.range.len());
        Ok(CpuPage { sheet: page.sheet, range, rest: false, bytes: vec![0; len] })
    }

    fn join(&self, page: &mut CpuPage, fragment: CpuPage) -> Result<(), MapError<CpuPage>> {
        if fragment.sheet != page.sheet || fragment.rest {
            return invalid(fragment, "no fragment of this page");
        }
        let mut state = self.state();
        let sheet = &mut state.sheets[page.sheet];
        assert_eq!(sheet.owners.remove(&fragment.range.start), Some((fragment.range.end, Owner::Cpu)));
        sheet.fragments -= 1;
        if sheet.fragments == 0 {
            sheet.owners = BTreeMap::from([(0, (PAGE, Owner::Cpu))]);
            page.range = 0..PAGE;
            page.bytes = vec![0; PAGE];
        }
        Ok(())
    }

    fn dma_rmb(&self) {}
    fn dma_wmb(&self) {}
}

/// A clock whose `wait` does one thing each time.
struct Waiting<F: Fn(u64)>(std::sync::atomic::AtomicU64, F);

impl<F: Fn(u64)> Waiting<F> {
    fn new(each: F) -> Self {
        Self(Default::default(), each)
    }
}

impl<F: Fn(u64)> Clock for Waiting<F> {
    fn now(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
    fn wait(&self, ns: u64) {
        let before = self.0.fetch_add(ns, std::sync::atomic::Ordering::Relaxed);
        (self.1)(before);
    }
}

type Pool = PagePool<Memory, AtomicRing<DevicePage>>;

fn pool(config: PoolConfig) -> (Arc<Memory>, Pool) {
    (Arc::default(), Pool::new(config).expect("a valid pool"))
}

fn small(pool_size: usize) -> PoolConfig {
    PoolConfig { pool_size, ..PoolConfig::default() }
}

/// A page that a frame came in.
fn received(memory: &Memory, pool: &mut Pool) -> CpuPage {
    let page = pool.alloc(memory).expect("a page");
    memory.sync_for_cpu(page, 256, 60)
}

fn end(memory: &Memory, pool: Pool) -> PoolStatistics {
    let counted = pool.destroy(memory, &Waiting::new(|_| {}), 1_000).expect("nothing out");
    assert_eq!(memory.allocated(), 0, "pages allocated and not freed");
    counted
}

#[test]
fn the_first_page_is_slow_and_brings_sixty_three_others() {
    let (memory, mut pool) = pool(PoolConfig::default());
    let page = received(&memory, &mut pool);
    assert_eq!(memory.allocated(), REFILL_PAGES);
    let more: Vec<_> = (1..REFILL_PAGES).map(|_| received(&memory, &mut pool)).collect();
    let alloc = pool.statistics().alloc;
    assert_eq!((alloc.slow, alloc.empty, alloc.fast, alloc.refill), (1, 1, 63, 0));
    [page].into_iter().chain(more).for_each(|page| pool.put(&memory, page, 0));
    assert_eq!(pool.statistics().recycle.cached, 64);
    end(&memory, pool);
}

#[test]
fn pages_beyond_the_cache_go_to_the_ring_and_beyond_the_ring_they_are_freed() {
    let (memory, mut pool) = pool(small(64));
    let pages: Vec<_> = (0..CACHE_PAGES + 64 + 10).map(|_| received(&memory, &mut pool)).collect();
    let before = memory.allocated();
    pages.into_iter().for_each(|page| pool.put(&memory, page, 0));
    // 54 of the last 64 pages had were still in the cache.
    let recycle = pool.statistics().recycle;
    assert_eq!(recycle.cached + recycle.ring + recycle.ring_full, 202);
    assert_eq!((recycle.ring, recycle.cache_full), (64, 202 - recycle.cached));
    assert_eq!(before - memory.allocated(), recycle.ring_full as usize);
    assert!(recycle.ring_full >= 10);
    end(&memory, pool);
}

#[test]
fn a_steady_state_maps_nothing() {
    let (memory, mut pool) = pool(PoolConfig::default());
    let page = received(&memory, &mut pool);
    pool.put(&memory, page, 0);
    memory.take_log();
    for _ in 0..1_000 {
        let page = received(&memory, &mut pool);
        pool.put(&memory, page, 0);
    }
    let log = memory.take_log();
    assert_eq!(log.len(), 2_000);
    assert!(log.iter().all(|call| matches!(call, Call::ForCpu(256, 60) | Call::ForDevice(256, 0))), "{:?}", &log[..2]);
    end(&memory, pool);
}

#[test]
fn only_what_was_written_is_synced_and_never_more_than_the_device_may_write() {
    let (memory, mut pool) = pool(PoolConfig { offset: 128, max_len: 1500, ..PoolConfig::default() });
    for (written, synced) in [(0, 0), (60, 60), (1500, 1500), (1501, 1500), (usize::MAX, 1500)] {
        let page = received(&memory, &mut pool);
        memory.take_log();
        pool.put(&memory, page, written);
        assert_eq!(memory.take_log(), [Call::ForDevice(128, synced)]);
        let page = received(&memory, &mut pool);
        memory.take_log();
        pool.recycler().put(&memory, page, written);
        assert_eq!(memory.take_log(), [Call::ForDevice(128, synced)]);
    }
    end(&memory, pool);
}

#[test]
fn pages_from_another_thread_are_had_again_after_one_refill() {
    let (memory, mut pool) = pool(small(128));
    let pages: Vec<_> = (0..REFILL_PAGES).map(|_| received(&memory, &mut pool)).collect();
    let (recycler, there) = (pool.recycler(), Arc::clone(&memory));
    thread::spawn(move || pages.into_iter().for_each(|page| recycler.put(&there, page, 0))).join().expect("recycled");
    assert_eq!(pool.in_flight(), 0);
    let page = received(&memory, &mut pool);
    let counted = pool.statistics();
    assert_eq!((counted.recycle.ring, counted.alloc.refill, counted.alloc.slow), (64, 1, 1));
    assert_eq!(memory.allocated(), REFILL_PAGES, "nothing new was allocated");
    pool.put(&memory, page, 0);
    end(&memory, pool);
}

/// PP-01: a pool with pages out names them, and they may still come home.
#[test]
fn pp_01_destroy_names_the_pages_that_are_out() {
    let (memory, mut pool) = pool(PoolConfig::default());
    let pages: Vec<_> = (0..3).map(|_| received(&memory, &mut pool)).collect();
    let mut addresses: Vec<_> = pages.iter().filter_map(Page::dma_addr).collect();
    let recycler = pool.recycler();
    let mut still_out = pool.destroy(&*memory, &Waiting::new(|_| {}), 1_000).expect_err("three are out");
    still_out.named.sort_unstable();
    addresses.sort_unstable();
    assert_eq!((still_out.count, &still_out.named), (3, &addresses));
    let words = still_out.to_string();
    assert!(words.contains("3 pages") && words.contains(&format!("{:#x}", addresses[0].0)), "{words}");
    assert_eq!(memory.allocated(), 3, "all others are freed");
    pages.into_iter().for_each(|page| recycler.put(&memory, page, 0));
    assert_eq!(recycler.held(), 0);
    end(&memory, *still_out.pool);
}

/// PP-01: a stop under load waits for the pages that are on their way.
#[test]
fn pp_01_destroy_waits_for_pages_on_their_way() {
    let (memory, mut pool) = pool(PoolConfig::default());
    let pages = Mutex::new((0..5).map(|_| received(&memory, &mut pool)).collect::<Vec<_>>());
    let recycler = pool.recycler();
    let clock = Waiting::new(|_| {
        let page = pages.lock().expect("one thread").pop();
        page.into_iter().for_each(|page| recycler.put(&memory, page, 0));
    });
    pool.destroy(&*memory, &clock, 1_000_000).expect("all came home");
    assert_eq!(memory.allocated(), 0);
}

/// PP-01: without a wait, an error lists eight and counts the rest.
#[test]
fn a_long_list_of_pages_is_cut_short() {
    let (memory, mut pool) = pool(PoolConfig::default());
    let pages: Vec<_> = (0..11).map(|_| received(&memory, &mut pool)).collect();
    let still_out = pool.destroy(&*memory, &Waiting::new(|_| {}), 0).expect_err("eleven are out");
    assert_eq!((still_out.count, still_out.named.len()), (11, 8));
    assert!(still_out.to_string().ends_with("and 3 more"), "{still_out}");
    let mut pool = *still_out.pool;
    pages.into_iter().for_each(|page| pool.put(&memory, page, 0));
    end(&memory, pool);
}

/// PP-02, PP-03: a queue that is started and stopped again and again, pages waiting in its ring and one kept across the
/// stop, loses none.
#[test]
fn pp_02_a_pool_that_is_rebuilt_a_thousand_times_loses_no_page() {
    let (memory, mut pool) = pool(small(64));
    for round in 0..1_000 {
        let ring: Vec<_> = (0..63).map(|_| pool.acquire(&memory).expect("a page")).collect();
        let kept = received(&memory, &mut pool);
        ring.into_iter().for_each(|page| pool.retire(&memory, page));
        pool.drain(&memory);
        assert_eq!((memory.allocated(), pool.in_flight()), (1, 1), "round {round}");
        if round % 2 == 0 {
            pool.give_back(&memory, kept);
        } else {
            // It comes home after the next start: to its own life.
            let page = pool.acquire(&memory).expect("a page");
            pool.give_back(&memory, kept);
            pool.retire(&memory, page);
            pool.drain(&memory);
        }
        assert_eq!((memory.allocated(), pool.in_flight()), (0, 0), "round {round}");
    }
}

/// PP-04: allocation fails for the n-th page: what was had before is used, and the next try works.
#[test]
fn pp_04_the_nth_allocation_fails() {
    for left in [0, 1, 17, 63] {
        let (memory, mut pool) = pool(PoolConfig::default());
        memory.limit(Some(left));
        let mut pages: Vec<_> = std::iter::from_fn(|| pool.alloc(&*memory).ok()).collect();
        assert_eq!(pages.len(), left);
        assert_eq!(pool.alloc(&*memory).err(), Some(DmaError::OutOfMemory { len_bytes: PAGE }));
        memory.limit(None);
        pages.push(pool.alloc(&*memory).expect("memory is back"));
        pages.into_iter().for_each(|page| pool.retire(&memory, page));
        end(&memory, pool);
    }
}

#[test]
fn a_page_of_another_pool_is_freed_there_where_it_strayed_to() {
    let (memory, mut ours) = pool(PoolConfig::default());
    let mut theirs = Pool::default();
    let page = received(&memory, &mut theirs);
    ours.put(&memory, page, 0);
    let page = received(&memory, &mut theirs);
    ours.recycler().put(&memory, page, 0);
    assert_eq!(ours.statistics().recycle.released_refcnt, 2);
    assert_eq!(theirs.in_flight(), 2, "their pool misses them");
    theirs.close(&memory);
    let addresses: Vec<_> = theirs.out().collect();
    assert_eq!((addresses.len(), memory.allocated()), (2, 0), "freed all the same, and known by name: {addresses:?}");
}

#[test]
fn a_page_is_cut_and_is_whole_again_when_its_last_fragment_is_back() {
    let (memory, mut pool) = pool(PoolConfig { fragments_max: 16, ..PoolConfig::default() });
    let fragments: Vec<_> = (0..4).map(|_| pool.alloc_fragment(&*memory, 1024).expect("a fragment")).collect();
    let addresses: Vec<_> = fragments.iter().map(|fragment| memory.device_addr(fragment).0).collect();
    assert!(addresses.windows(2).all(|pair| pair[0] + 1024 == pair[1]), "{addresses:x?}");
    assert_eq!(pool.in_flight(), 1);
    // In any order, here and from elsewhere.
    for (i, fragment) in fragments.into_iter().enumerate().rev() {
        let fragment = memory.sync_for_cpu(fragment, 0, 60);
        if i % 2 == 0 { pool.put(&memory, fragment, 0) } else { pool.recycler().put(&memory, fragment, 0) }
    }
    pool.close(&memory);
    assert_eq!((pool.in_flight(), memory.allocated()), (0, 0));
}

#[test]
fn no_more_fragments_are_out_than_their_way_home_holds() {
    let (memory, mut pool) = pool(PoolConfig { fragments_max: 3, ..PoolConfig::default() });
    let fragments: Vec<_> = (0..3).map(|_| pool.alloc_fragment(&*memory, 2048).expect("a fragment")).collect();
    assert!(matches!(pool.alloc_fragment(&*memory, 2048), Err(DmaError::OutOfMemory { len_bytes: 2048 })));
    let recycler = pool.recycler();
    fragments.into_iter().for_each(|fragment| recycler.put(&memory, memory.sync_for_cpu(fragment, 0, 0), 0));
    let fragment = pool.alloc_fragment(&*memory, 2048).expect("they are back");
    pool.retire(&memory, fragment);
    end(&memory, pool);
}

#[test]
fn a_queue_may_be_given_fragments() {
    let buffer = Buffer::Fragment { len_bytes: 2048 };
    let (memory, mut pool) = pool(PoolConfig { fragments_max: 64, buffer, ..PoolConfig::default() });
    assert_eq!(pool.buffer_bytes(&memory), 2048);
    let ring: Vec<_> = (0..10).map(|_| pool.acquire(&memory).expect("a fragment")).collect();
    assert_eq!(pool.in_flight(), 5);
    ring.into_iter().for_each(|page| pool.retire(&memory, page));
    end(&memory, pool);
}

#[test]
fn what_can_not_work_is_refused() {
    let refused = |config| Pool::new(config).err();
    assert_eq!(refused(PoolConfig { direction: Direction::ToDevice, ..small(64) }), Some(PoolError::Direction));
    assert_eq!(refused(small(0)), Some(PoolError::Size { pool_size: 0 }));
    assert_eq!(refused(small(32_769)), Some(PoolError::Size { pool_size: 32_769 }));
    let buffer = Buffer::Fragment { len_bytes: 2048 };
    assert_eq!(refused(PoolConfig { buffer, ..small(64) }), Some(PoolError::NoFragments));
}

#[test]
fn statistics_have_linuxs_names_in_its_order() {
    let names = PoolStatistics::default().named().map(|(name, _)| name);
    assert_eq!(names[..3], ["rx_pp_alloc_fast", "rx_pp_alloc_slow", "rx_pp_alloc_slow_ho"]);
    assert_eq!(names[10], "rx_pp_recycle_released_ref");
}

#[test]
fn the_ring_is_first_in_first_out_and_bounded() {
    let page = |sheet| DevicePage { sheet, range: 0..PAGE };
    let ring = AtomicRing::<DevicePage>::with_capacity(3);
    for lap in 0..10 {
        for i in 0..4 {
            assert!(ring.push(page(lap + i)).is_ok());
        }
        assert_eq!(ring.push(page(99)).map_err(|page| page.sheet), Err(99));
        assert_eq!(ring.len(), 4);
        for i in 0..4 {
            assert_eq!(ring.pop().map(|page| page.sheet), Some(lap + i));
        }
        assert!(ring.pop().is_none() && ring.is_empty());
    }
}

/// What a user may do.
#[derive(Clone, Debug)]
enum Step {
    Alloc,
    Fragment(usize),
    /// The n-th page in hand, and up to where it was written.
    PutHere(prop::sample::Index, usize),
    PutRemote(prop::sample::Index, usize),
    /// So many allocations succeed from here on, or all.
    Memory(Option<usize>),
    Close,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = any::<prop::sample::Index>;
    let step = prop_oneof![
        6 => Just(Step::Alloc),
        4 => prop::sample::select(vec![1, 64, 1000, 1024, 2048, 3000, 4095]).prop_map(Step::Fragment),
        4 => (index(), 0..5000_usize).prop_map(|(page, written)| Step::PutHere(page, written)),
        4 => (index(), 0..5000_usize).prop_map(|(page, written)| Step::PutRemote(page, written)),
        1 => prop::option::of(0..40_usize).prop_map(Step::Memory),
        1 => Just(Step::Close),
    ];
    prop::collection::vec(step, 1..300)
}

/// The oracle: what the test holds, by address, with the length. Nothing of the pool's code is in it.
#[derive(Default)]
struct Hands {
    held: BTreeMap<u64, (CpuPage, Recycler<Memory, AtomicRing<DevicePage>>)>,
    put: u64,
}

impl Hands {
    fn take(&mut self, memory: &Memory, pool: &Pool, page: DevicePage) {
        let at = memory.device_addr(&page).0;
        let page = memory.sync_for_cpu(page, 0, 0);
        let end = at + page.bytes().len() as u64;
        let below = self.held.range(..end).next_back();
        if let Some((start, (other, _))) = below {
            assert!(start + other.bytes().len() as u64 <= at, "{at:#x}..{end:#x} is already in hand");
        }
        self.held.insert(at, (page, pool.recycler()));
    }

    fn pick(&mut self, index: prop::sample::Index) -> Option<(CpuPage, Recycler<Memory, AtomicRing<DevicePage>>)> {
        let keys: Vec<u64> = self.held.keys().copied().collect();
        (!keys.is_empty()).then(|| self.held.remove(index.get(&keys))).flatten()
    }

    /// How many pages the things in hand are of.
    fn pages(&self) -> u64 {
        let mut pages: Vec<u64> = self.held.keys().map(|addr| (addr - BASE) / (2 * PAGE as u64)).collect();
        pages.dedup();
        pages.len() as u64
    }
}

fn run(steps: Vec<Step>) {
    const POOL_SIZE: usize = 16;
    let config = PoolConfig { pool_size: POOL_SIZE, fragments_max: 40, ..PoolConfig::default() };
    let mut most = 0;
    let (memory, mut pool) = pool(config);
    let mut hands = Hands::default();
    for step in steps {
        match step {
            Step::Alloc => {
                if let Ok(page) = pool.alloc(&*memory) {
                    hands.take(&memory, &pool, page);
                }
            }
            Step::Fragment(len_bytes) => {
                if let Ok(page) = pool.alloc_fragment(&*memory, len_bytes) {
                    hands.take(&memory, &pool, page);
                }
            }
            Step::PutHere(index, written) => {
                if let Some((page, _)) = hands.pick(index) {
                    hands.put += u64::from(page.bytes().len() == PAGE);
                    pool.put(&memory, page, written);
                }
            }
            Step::PutRemote(index, written) => {
                if let Some((page, recycler)) = hands.pick(index) {
                    hands.put += u64::from(page.bytes().len() == PAGE);
                    recycler.put(&memory, page, written);
                }
            }
            Step::Memory(left) => memory.limit(left),
            Step::Close => {
                pool.close(&memory);
                // All that is not in hand is freed, whatever way it went.
                assert_eq!((pool.in_flight(), memory.allocated() as u64), (hands.pages(), hands.pages()));
            }
        }
        assert!(pool.in_flight() >= hands.pages());
        most = most.max(pool.in_flight());
    }
    let out = hands.pages();
    let pool = match pool.destroy(&*memory, &Waiting::new(|_| {}), 0) {
        Ok(_) => {
            assert_eq!(out, 0, "destroyed with pages out");
            return;
        }
        Err(still_out) => still_out,
    };
    let named = pool.named.len() as u64;
    assert_eq!(pool.count, out);
    // A pool that had more pages than its size may know some of them by number only.
    assert!(named == out.min(8) || (most > POOL_SIZE as u64 && named < out.min(8)), "{named} of {out} pages are named");
    for (_, (page, recycler)) in hands.held {
        recycler.put(&memory, page, 0);
    }
    end(&memory, *pool.pool);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Alloc, cut, recycle here and elsewhere, fail, close, in any order: no byte is ever in two hands (the memory and the
    /// oracle both watch), in-flight is what is in hand, and at the end nothing is left.
    #[test]
    fn no_page_ever_has_two_owners(steps in steps()) {
        run(steps);
    }
}

/// Real threads: three take pages home while their pool runs, is closed and begins anew.
#[test]
fn four_threads_lose_no_page() {
    let (memory, mut pool) = pool(small(32));
    let (senders, threads): (Vec<_>, Vec<_>) = (0..3)
        .map(|_| {
            let (sender, receiver) =
                std::sync::mpsc::sync_channel::<(CpuPage, Recycler<Memory, AtomicRing<DevicePage>>)>(8);
            let memory = Arc::clone(&memory);
            let work = move || receiver.into_iter().for_each(|(page, recycler)| recycler.put(&memory, page, 0));
            (sender, thread::spawn(work))
        })
        .unzip();
    for i in 0..6_000 {
        let page = received(&memory, &mut pool);
        senders[i % 3].send((page, pool.recycler())).expect("a thread");
        if i % 500 == 499 {
            pool.close(&memory);
        }
    }
    drop(senders);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    end(&memory, pool);
}
