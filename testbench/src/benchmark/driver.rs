//! What the driver's receive path costs for each packet, by how it deals with pages.
//!
//! ```text
//!   generator ─► QDMA model ─► host memory ─► RxQueue::poll ─► sink ─► page back
//!   └────────── card's share ──────────────┘  └──────── driver's share ────────┘
//! ```
//!
//! In the loop are the QDMA model's C2H engine (descriptor fetch, payload, completions, notification), host memory and one
//! queue of driver-core, on one core. The shell and the wire are not: a generator hands frames to the QDMA in bursts. Both
//! shares are timed on their own, a burst at a time.
//!
//! Times are taken on plain host memory, checks off. What is counted (maps, syncs, bytes copied) is counted in a run of its
//! own, through a memory that counts, so that counting costs nothing where time is taken.

mod counting;

use std::any::Any;
use std::cell::Cell;
use std::hint::black_box;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use driver_core::{
    DeviceConfig, Direction, DmaError, DmaMemory, Driver, KeptPages, NoHook, PageSource, Platform, QueueFault,
    QueuePair, RxFrame, TableEntry, TakenPage, Verdict, XdpBuff, XdpHook,
};
use models::host_memory::HostMemory;
use models::qdma::{Qdma, QdmaConfig};
use models::shell::{Shell, ShellConfig};
use models::stream::{C2hCompletion, C2hFrame, Offer, QdmaStream};
use models::time::Time;
use regs::{Bar, FuncId, PortId, Qid};

use crate::bench::{Bench, FunctionPlatform};
use crate::card::{Card, CardError, Observation, Stop, WireFrame};
use crate::host_memory::PAGE_SIZE;
use crate::pool_ring::PoolOn;
use counting::{Counted, Counts};

/// Frame lengths measured: what lies in host memory.
pub const LENGTHS: [usize; 5] = [64, 250, 500, 1000, 1518];

/// Frames that the card receives before the driver polls: Linux's NAPI weight.
pub const BURST: usize = 64;

/// Entries of the ring, status included.
const RING: u16 = 1024;

/// What the driver does with a frame's page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Row {
    /// Look at the frame and leave its page in the ring: what a driver that does nothing else costs.
    InPlace,
    /// Copy the frame into a fresh buffer, use the page again in place.
    Copy,
    /// Allocate and map a page, unmap and free the one before, for each packet.
    Textbook,
    /// Hand the page up; another from the pool takes its place, and it comes back to the pool.
    Pool,
    /// The same behind a hook that looks at the frame and passes it.
    PoolHook,
}

impl Row {
    /// All, in the order of the table.
    pub const ALL: [Row; 5] = [Row::InPlace, Row::Copy, Row::Textbook, Row::Pool, Row::PoolHook];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Row::InPlace => "    in place: looked at and left",
            Row::Copy => "(a) copy to a fresh buffer, page reused in place",
            Row::Textbook => "(b) textbook: allocate, map, unmap, free",
            Row::Pool => "(c) page pool",
            Row::PoolHook => "(d) page pool, pass hook",
        }
    }

    /// For programs.
    pub fn id(self) -> &'static str {
        match self {
            Row::InPlace => "in_place",
            Row::Copy => "copy",
            Row::Textbook => "textbook",
            Row::Pool => "page_pool",
            Row::PoolHook => "page_pool_hook",
        }
    }
}

/// Time of one run, for each packet: that of its median burst, so that what else the machine did in between is left out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Times {
    /// In the driver, its sink and the way of the page back, ns.
    pub driver_ns: f64,
    /// That and the card, ns.
    pub all_ns: f64,
}

/// What one packet costs beside time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Costs {
    /// Heap allocations.
    pub allocations: f64,
    /// Pages mapped and unmapped.
    pub maps: f64,
    /// Syncs, both ways.
    pub syncs: f64,
    /// Bytes that the driver copied out of pages.
    pub copied_bytes: f64,
}

/// Why a length could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The card did not come up, or stopped.
    #[error("the card: {0}")]
    Card(String),
    /// The driver did not come up, or a queue failed.
    #[error("the driver: {0}")]
    Driver(String),
    /// Frames are missing.
    #[error("{came} of {sent} frames came through")]
    Lost {
        /// Handed to the driver.
        came: usize,
        /// Given to the card.
        sent: usize,
    },
}

/// The QDMA model with a generator in the shell's place. The shell model only answers register accesses.
struct Generator {
    shell: Shell,
    qdma: Qdma,
    now: Time,
    pkt_id: u16,
}

/// Simulated time after which a burst is in host memory: 64 frames, four descriptors to a fetch of 500 ns, take 8 us.
const BURST_PS: u64 = 20_000_000;

impl Generator {
    /// Frames arrive for queue 0, all alike: as many as the stream buffer has room for, at most `count`. How many that were.
    fn burst(&mut self, frame: &[u8], count: usize) -> Result<usize, BenchError> {
        let (qid, len_bytes) = (Qid(0), frame.len() as u16);
        for done in 0..count {
            match self.qdma.c2h_offer(self.now, qid, len_bytes) {
                Offer::Ready => {}
                Offer::Stall => return Ok(done),
                Offer::Drop => return Err(BenchError::Card("the QDMA drops a frame".into())),
            }
            let mut data = self.qdma.recycle();
            data.extend_from_slice(frame);
            self.pkt_id = self.pkt_id.wrapping_add(1);
            self.qdma.c2h_frame(self.now, C2hFrame { data, qid });
            self.qdma.c2h_completion(self.now, C2hCompletion { qid, len_bytes, pkt_id: self.pkt_id });
        }
        Ok(count)
    }

    fn run(&mut self, until: Time, memory: &mut dyn HostMemory) {
        self.qdma.step(until, memory);
        self.now = self.now.max(until);
    }
}

impl Card for Generator {
    fn name(&self) -> &str {
        "generator"
    }

    fn reset(&mut self) -> Result<(), CardError> {
        self.shell.reset();
        self.qdma.reset();
        Ok(())
    }

    fn now(&self) -> Time {
        self.now
    }

    fn advance(&mut self, until: Time, memory: &mut dyn HostMemory) -> Result<Stop, CardError> {
        self.shell.step(until, &mut self.qdma);
        self.run(until, memory);
        Ok(Stop::Deadline)
    }

    fn mmio_read(
        &mut self,
        func: FuncId,
        bar: Bar,
        offset: u32,
        memory: &mut dyn HostMemory,
    ) -> Result<u32, CardError> {
        self.advance(self.now + 200_000, memory)?;
        match bar {
            Bar::Qdma => Ok(self.qdma.mmio_read(func, offset)),
            Bar::Shell => {
                self.shell.mmio_read(self.now, offset).map_err(|_| CardError::Bus { bar, offset, response: "DECERR" })
            }
        }
    }

    fn mmio_write(
        &mut self,
        func: FuncId,
        bar: Bar,
        offset: u32,
        value: u32,
        _: &mut dyn HostMemory,
    ) -> Result<(), CardError> {
        match bar {
            Bar::Qdma => self.qdma.mmio_write(self.now, func, offset, value),
            Bar::Shell => self.shell.mmio_write(self.now, offset, value).map_err(|_| CardError::Bus {
                bar,
                offset,
                response: "DECERR",
            })?,
        }
        Ok(())
    }

    fn take_interrupt(&mut self) -> Option<(FuncId, u16, Time)> {
        // Polled: nobody waits for one.
        while self.qdma.take_interrupt().is_some() {}
        None
    }

    fn gate_wire(&mut self, _: bool) {}

    fn wire_in(&mut self, _: PortId, _: WireFrame) {}

    fn wire_queued(&self, _: PortId) -> usize {
        0
    }

    fn wire_out(&mut self, _: PortId) -> Option<WireFrame> {
        None
    }

    fn observation(&mut self) -> Option<Observation> {
        None
    }

    fn drops(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.qdma.counters().c2h.drops().for_each(|(reason, frames)| each(reason.name(), frames));
    }

    fn idle(&self) -> bool {
        self.qdma.inside() == 0
    }
}

/// A driver with one queue, and its card.
struct Stand<P: Platform, S: PageSource<P::Dma>> {
    bench: Arc<Bench>,
    driver: Driver<P, S>,
    frame: Vec<u8>,
}

impl<P: Platform, S: PageSource<P::Dma>> Stand<P, S> {
    fn new(
        len_bytes: usize,
        platform: impl FnOnce(FunctionPlatform) -> P,
        source: impl FnMut(u16) -> S,
    ) -> Result<Self, BenchError> {
        let shell = Shell::new(ShellConfig::default()).map_err(|error| BenchError::Card(error.to_string()))?;
        let card = Generator { shell, qdma: Qdma::new(QdmaConfig::default()), now: Time::ZERO, pkt_id: 0 };
        let bench = Bench::new(Box::new(card), 1, false, 1_000_000);
        bench.reset().map_err(|error| BenchError::Card(error.to_string()))?;
        let platform = Arc::new(platform(bench.function(FuncId(0))));
        let config = DeviceConfig {
            queues: 1,
            tx_ring: TableEntry::Value(RING),
            rx_ring: TableEntry::Value(RING),
            max_frame_len_bytes: 1518,
            ..DeviceConfig::new(FuncId(0))
        };
        let failed = |error: &dyn std::error::Error| BenchError::Driver(error.to_string());
        let mut driver = Driver::bring_up(platform, config).map_err(|error| failed(&error))?;
        driver.up_with(source).map_err(|error| failed(&error))?;
        // The first descriptors are fetched.
        bench.advance(bench.now() + BURST_PS).map_err(|error| failed(&error))?;
        Ok(Self { bench, driver, frame: (0..len_bytes).map(|at| at as u8).collect() })
    }

    /// The card's part of a burst.
    fn receive(&self, count: usize) -> Result<(), BenchError> {
        let mut left = count;
        while left > 0 {
            let done = self.bench.card(|card| match (card as &mut dyn Any).downcast_mut::<Generator>() {
                Some(generator) => generator.burst(&self.frame, left),
                None => Err(BenchError::Card("it is no generator".into())),
            })?;
            if done == 0 {
                return Err(BenchError::Card("the QDMA moves no more".into()));
            }
            left -= done;
            let until = self.bench.now() + BURST_PS;
            self.bench.advance(until).map_err(|error| BenchError::Card(error.to_string()))?;
        }
        Ok(())
    }

    /// As many bursts as `times` has room for, through `poll`, which says how many frames came.
    fn run(
        &mut self,
        times: &mut BurstTimes,
        poll: &mut impl FnMut(&mut QueuePair<P, S>) -> Result<usize, QueueFault>,
    ) -> Result<(), BenchError> {
        for (driver, all) in times.driver.iter_mut().zip(&mut times.all) {
            let begin = Instant::now();
            self.receive(BURST)?;
            let polled = Instant::now();
            let Some(pair) = self.driver.queues().first_mut() else {
                return Err(BenchError::Driver("it has no queue".into()));
            };
            let came = poll(pair).map_err(|fault| BenchError::Driver(fault.to_string()))?;
            let end = Instant::now();
            if came != BURST {
                return Err(BenchError::Lost { came, sent: BURST });
            }
            *driver = end - polled;
            *all = end - begin;
        }
        Ok(())
    }
}

/// What each burst took.
struct BurstTimes {
    driver: Vec<Duration>,
    all: Vec<Duration>,
}

impl BurstTimes {
    fn new(bursts: usize) -> Self {
        Self { driver: vec![Duration::ZERO; bursts], all: vec![Duration::ZERO; bursts] }
    }
}

/// ns of one packet in the median burst.
fn packet_ns(bursts: &mut [Duration]) -> f64 {
    bursts.sort_unstable();
    bursts.get(bursts.len() / 2).map_or(f64::NAN, |burst| burst.as_nanos() as f64 / BURST as f64)
}

/// Whoever gets the frame looks at its beginning.
fn look(bytes: &[u8]) {
    black_box(bytes.first());
}

/// A sink that keeps pages until the poll is over, as a stack does.
struct Stack<D: DmaMemory> {
    pages: Vec<TakenPage<D::Page>>,
}

impl<D: DmaMemory> Stack<D> {
    fn new() -> Self {
        Self { pages: Vec::with_capacity(2 * BURST) }
    }

    fn take(&mut self, frame: &mut RxFrame<'_, D>) {
        if let Ok(page) = frame.take(0) {
            look(page.bytes());
            self.pages.push(page);
        }
    }
}

/// One poll more than the burst, so that it completes and the queue is armed as at the end of every NAPI poll.
const BUDGET: usize = 2 * BURST;

fn looking<P: Platform, S: PageSource<P::Dma>>(pair: &mut QueuePair<P, S>) -> Result<usize, QueueFault> {
    pair.poll(BUDGET, &mut NoHook, |frame| look(frame.segment(0))).received
}

fn copying<P: Platform, S: PageSource<P::Dma>>(
    pair: &mut QueuePair<P, S>,
    copied: &Cell<u64>,
) -> Result<usize, QueueFault> {
    let polled = pair.poll(BUDGET, &mut NoHook, |frame| {
        let mut buffer = Vec::with_capacity(frame.len_bytes());
        // A buffer of the ring holds 2048 bytes: the frame lies in one.
        buffer.extend_from_slice(frame.segment(0));
        look(&buffer);
        copied.set(copied.get() + buffer.len() as u64);
    });
    polled.received
}

fn handing_up<P: Platform, S: PageSource<P::Dma>, H: XdpHook<P::Dma>>(
    pair: &mut QueuePair<P, S>,
    hook: &mut H,
    stack: &mut Stack<P::Dma>,
) -> Result<usize, QueueFault> {
    let polled = pair.poll(BUDGET, hook, |frame| stack.take(frame));
    for taken in stack.pages.drain(..) {
        pair.rx.give_back(taken.page);
    }
    polled.received
}

/// A hook that looks and passes.
struct Pass;

impl<D: DmaMemory> XdpHook<D> for Pass {
    fn run(&mut self, buff: &mut XdpBuff<'_, D>) -> Verdict {
        look(buff.data());
        Verdict::Pass
    }
}

/// The page source of a textbook's driver: every page is allocated, mapped, used once, unmapped and freed.
struct Textbook<D>(PhantomData<fn(&D)>);

impl<D: DmaMemory> PageSource<D> for Textbook<D> {
    fn acquire(&mut self, dma: &D) -> Result<D::DevicePage, DmaError> {
        let page = dma.alloc_page()?;
        dma.map(page, Direction::FromDevice, 0).map_err(|refused| refused.cause)
    }

    fn give_back(&mut self, dma: &D, page: D::Page) {
        // Freeing a mapped page unmaps it.
        dma.free_page(page);
    }

    fn retire(&mut self, dma: &D, page: D::DevicePage) {
        dma.free_page(dma.unmap(page, 0));
    }

    fn drain(&mut self, _: &D) {}
}

/// One run of a row.
struct Measured {
    times: Times,
    /// Heap allocations in the measured part.
    allocations: u64,
    packets: usize,
    copied_bytes: u64,
}

/// A row on a platform: a warm-up, then `settled`, the measured bursts, and `ended`.
fn measure<P: Platform>(
    row: Row,
    len_bytes: usize,
    bursts: usize,
    platform: impl FnOnce(FunctionPlatform) -> P,
    settled: impl FnOnce(),
    ended: impl FnOnce(),
) -> Result<Measured, BenchError>
where
    <P::Dma as DmaMemory>::DevicePage: Send,
{
    let pool = |_| PoolOn::<P::Dma>::default();
    let mut stack = Stack::<P::Dma>::new();
    let copied = Cell::new(0);
    let mut measured = match row {
        Row::InPlace => {
            let stand = Stand::new(len_bytes, platform, |_| KeptPages::<P::Dma>::default())?;
            steady(stand, bursts, settled, ended, |pair| looking(pair))
        }
        Row::Copy => {
            let stand = Stand::new(len_bytes, platform, |_| KeptPages::<P::Dma>::default())?;
            let settled = || {
                settled();
                copied.set(0);
            };
            steady(stand, bursts, settled, ended, |pair| copying(pair, &copied))
        }
        Row::Textbook => {
            let stand = Stand::new(len_bytes, platform, |_| Textbook::<P::Dma>(PhantomData))?;
            steady(stand, bursts, settled, ended, |pair| handing_up(pair, &mut NoHook, &mut stack))
        }
        Row::Pool => {
            let stand = Stand::new(len_bytes, platform, pool)?;
            steady(stand, bursts, settled, ended, |pair| handing_up(pair, &mut NoHook, &mut stack))
        }
        Row::PoolHook => {
            let stand = Stand::new(len_bytes, platform, pool)?;
            steady(stand, bursts, settled, ended, |pair| handing_up(pair, &mut Pass, &mut stack))
        }
    }?;
    measured.copied_bytes = copied.get();
    Ok(measured)
}

fn steady<P: Platform, S: PageSource<P::Dma>>(
    mut stand: Stand<P, S>,
    bursts: usize,
    settled: impl FnOnce(),
    ended: impl FnOnce(),
    mut poll: impl FnMut(&mut QueuePair<P, S>) -> Result<usize, QueueFault>,
) -> Result<Measured, BenchError> {
    stand.run(&mut BurstTimes::new(WARM_UP), &mut poll)?;
    settled();
    let mut times = BurstTimes::new(bursts);
    let mut result = Ok(());
    let counted = allocation_counter::measure(|| result = stand.run(&mut times, &mut poll));
    ended();
    result?;
    stand.driver.remove().map_err(|error| BenchError::Driver(error.to_string()))?;
    let BurstTimes { driver, all } = &mut times;
    Ok(Measured {
        times: Times { driver_ns: packet_ns(driver), all_ns: packet_ns(all) },
        allocations: counted.count_total,
        packets: bursts * BURST,
        copied_bytes: 0,
    })
}

/// Bursts before anything is measured: until packet numbers have wrapped, and every buffer of the card has its size.
const WARM_UP: usize = 0x1_0000 / BURST + 200;

/// A run of a row on plain memory: its times, and its heap allocations.
///
/// # Errors
/// [`BenchError`].
pub fn time(row: Row, len_bytes: usize, bursts: usize) -> Result<(Times, u64), BenchError> {
    let measured = measure(row, len_bytes, bursts, |platform| platform, || (), || ())?;
    Ok((measured.times, measured.allocations))
}

/// What a row costs beside time.
///
/// # Errors
/// [`BenchError`].
pub fn costs(row: Row, len_bytes: usize, bursts: usize) -> Result<Costs, BenchError> {
    let counts = Rc::new(Counts::default());
    let inside = Rc::clone(&counts);
    let counted = |platform| Counted::new(platform, inside);
    let measured = measure(row, len_bytes, bursts, counted, || counts.begin(), || counts.end())?;
    let each = |count: u64| count as f64 / measured.packets as f64;
    Ok(Costs {
        allocations: each(measured.allocations + counts.pages.get()),
        maps: each(counts.maps.get()),
        syncs: each(counts.syncs.get()),
        copied_bytes: each(measured.copied_bytes),
    })
}

/// The opponent of [`Row::Copy`]: nothing but allocate, copy and free, from pages that were just written, ns each.
pub fn bare(len_bytes: usize, bursts: usize) -> f64 {
    let frame: Vec<u8> = (0..len_bytes).map(|at| at as u8).collect();
    let range = 256..256 + len_bytes;
    let mut pages: Vec<Box<[u8]>> = (1..RING).map(|_| vec![0; PAGE_SIZE].into()).collect();
    let mut times = vec![Duration::ZERO; bursts];
    let mut at = 0;
    for spent in &mut times {
        let len = pages.len();
        let indices = (0..BURST).map(move |i| (at + i) % len);
        indices.clone().for_each(|i| pages[i][range.clone()].copy_from_slice(&frame));
        let begin = Instant::now();
        for i in indices {
            let mut buffer = Vec::with_capacity(len_bytes);
            buffer.extend_from_slice(&pages[i][range.clone()]);
            look(&buffer);
        }
        *spent = begin.elapsed();
        at = (at + BURST) % len;
    }
    packet_ns(&mut times)
}

/// One length: every row `rounds` times, taking turns, and the bare loop with them.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Frame length.
    pub len_bytes: usize,
    /// Packets in a run.
    pub packets: usize,
    /// ns for each packet of the bare loop.
    pub bare_ns: Vec<f64>,
    /// By row: times of each round, and the most heap allocations of any.
    pub rows: Vec<(Row, Vec<Times>, u64)>,
    /// By row.
    pub costs: Vec<Costs>,
}

impl Figures {
    /// The times that one row's share took, by round.
    pub fn driver_ns(&self, row: Row) -> Vec<f64> {
        self.times(row).map(|times| times.driver_ns).collect()
    }

    /// The times that one row took, card and driver, by round.
    pub fn all_ns(&self, row: Row) -> Vec<f64> {
        self.times(row).map(|times| times.all_ns).collect()
    }

    fn times(&self, row: Row) -> impl Iterator<Item = &Times> {
        self.rows.iter().filter(move |(of, ..)| *of == row).flat_map(|(_, times, _)| times)
    }
}

/// Measure one length.
///
/// # Errors
/// [`BenchError`].
pub fn measure_length(len_bytes: usize, bursts: usize, rounds: usize) -> Result<Figures, BenchError> {
    let mut rows: Vec<_> = Row::ALL.map(|row| (row, Vec::new(), 0)).into();
    let mut bare_ns = Vec::new();
    for _ in 0..rounds {
        bare_ns.push(bare(len_bytes, bursts));
        for (row, times, most) in &mut rows {
            let (measured, allocations) = time(*row, len_bytes, bursts)?;
            times.push(measured);
            *most = allocations.max(*most);
        }
    }
    let costs = Row::ALL.into_iter().map(|row| costs(row, len_bytes, 200)).collect::<Result<_, _>>()?;
    Ok(Figures { len_bytes, packets: bursts * BURST, bare_ns, rows, costs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_costs_what_it_is_known_for() {
        let of = |row| costs(row, 250, 8).expect("measured");
        assert_eq!(of(Row::InPlace), Costs { allocations: 0.0, maps: 0.0, syncs: 2.0, copied_bytes: 0.0 });
        assert_eq!(of(Row::Copy), Costs { allocations: 1.0, maps: 0.0, syncs: 2.0, copied_bytes: 250.0 });
        // A map and an unmap for each packet.
        assert_eq!(of(Row::Textbook), Costs { allocations: 1.0, maps: 2.0, syncs: 1.0, copied_bytes: 0.0 });
        assert_eq!(of(Row::Pool), Costs { allocations: 0.0, maps: 0.0, syncs: 2.0, copied_bytes: 0.0 });
        assert_eq!(of(Row::PoolHook), of(Row::Pool));
    }

    #[test]
    fn page_pool_receive_allocates_nothing_in_steady_state() {
        for len_bytes in LENGTHS {
            let (_, allocations) = time(Row::Pool, len_bytes, 100).expect("measured");
            assert_eq!(allocations, 0, "{len_bytes} bytes");
        }
    }
}
