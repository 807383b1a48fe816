//! A small driver of our own that does what onic.ko does, in its order and with its structure, but without its mistakes: one
//! descriptor and one page at a time, queues behind pointers, cleaning from wherever it comes by.
//!
//! Each thing that the vendor's driver is known to do wrong is one of its [`Ways`]: a function, here a sound one. A mutant
//! replaces one of them by what the vendor does. Behaviour: driver.md sections 2 to 7.
//!
//! | file | concern |
//! |---|---|
//! | `probe` | from probe to remove: function map, CSRs, MAC, error interrupt |
//! | `queues` | contexts, start and stop of queues |
//! | `rx`, `tx` | the data paths |
//! | `control` | MTU, RSS table, statistics |

pub mod control;
pub mod probe;
pub mod queues;
pub mod rx;
pub mod tx;

use std::collections::BTreeSet;
use std::sync::Arc;

use driver_core::{Clock as _, DmaError, DmaMemory, Interrupts as _, Mmio as _, MmioError, Platform, Vector};
use models::time::Time;
use regs::descriptor::Completion;
use regs::{Bar, PortId};

use super::heap::{Block, Heap, deref};
use super::nic::{Failure, MacTotals, Nic, NicConfig, Polled, Received, Refusal, Timed, Totals, Work};
use super::seams::{Bent, BentDma};
use super::stage::Ground;
use rx::RxQueue;
use tx::TxQueue;

/// A page in the CPU's hands.
pub type Page = <BentDma as DmaMemory>::Page;
/// A page in the device's.
pub type DevicePage = <BentDma as DmaMemory>::DevicePage;
/// A ring.
pub type Coherent = <BentDma as DmaMemory>::Coherent;

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// What is left free in front of a received frame.
pub const HEADROOM: u16 = 256;
/// What the kernel writes behind a buffer that becomes a socket buffer: its shared info.
pub const SHARED_INFO: usize = 320;

/// What went wrong, in the driver's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// A register access.
    #[error(transparent)]
    Mmio(#[from] MmioError),
    /// DMA memory.
    #[error(transparent)]
    Dma(#[from] DmaError),
    /// The heap.
    #[error("no memory for {0}")]
    NoMemory(&'static str),
    /// The card did what can't be.
    #[error("{0}")]
    Card(String),
}

/// How a received frame lies in its pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// Bytes that the card may write into one, as programmed.
    pub hw_len_bytes: u16,
    /// Where in the page it begins to write.
    pub offset: u16,
}

/// Every strategy of which the vendor's driver has a broken form.
#[derive(Clone, Copy)]
pub struct Ways {
    /// Buffers of received frames.
    pub buffer: Buffer,
    /// Entries of the completion ring, as a multiple of the descriptor ring's.
    pub completions_per_descriptor: u16,
    /// The function map could not be written: undo what was done.
    pub undo_map: fn(&mut Vendor),
    /// Wait until a CMAC is out of its reset.
    pub wait_for_cmac: fn(&Vendor, PortId) -> Result<(), Fault>,
    /// There is no memory for the statistics: what probe returns.
    pub no_statistics: fn(Fault) -> Result<(), Fault>,
    /// Unload: give back the names of the interrupts.
    pub free_names: fn(&mut Vendor),
    /// Make a receive queue known and start it.
    pub open_rx: fn(&mut Vendor, RxQueue) -> Result<(), Fault>,
    /// A queue could not be started: give back what it has.
    pub undo_rx: fn(&mut Vendor, RxQueue),
    /// Stop all queues.
    pub stop: fn(&mut Vendor) -> Result<(), Fault>,
    /// What is left in a transmit queue that was stopped.
    pub clear_tx: fn(&mut Vendor, TxQueue),
    /// Give back the pages of a receive queue that was stopped.
    pub clear_rx: fn(&mut Vendor, RxQueue),
    /// The next completion of a receive queue; `first` of a poll or not.
    pub next: fn(&mut Vendor, u16, bool) -> Result<Option<Completion>, Fault>,
    /// Buffers that a frame of this length took.
    pub buffers_of: fn(u16, u16) -> u16,
    /// A frame was taken out of this slot: put a page there again. The old one comes with it.
    pub refill: fn(&mut Vendor, u16, u16, Page) -> Result<(), Fault>,
    /// There is no socket buffer for a frame. True to go on with the next.
    pub no_skb: fn(&mut Vendor) -> bool,
    /// Frames that a poll handles at a budget.
    pub within: fn(usize, usize) -> bool,
    /// A poll is over.
    pub finish: fn(&mut Vendor, u16, usize, usize, bool) -> Result<Polled, Fault>,
    /// What a poll does for transmit queues.
    pub clean_on_poll: fn(&mut Vendor, u16) -> Result<(), Fault>,
    /// Take back what the card has sent.
    pub clean: fn(&mut Vendor, u16) -> Result<(), Fault>,
    /// Pad a runt.
    pub pad: fn(&mut Vendor, &mut Vec<u8>, Block) -> Result<(), Refusal>,
    /// A frame could not be mapped.
    pub no_mapping: fn(&mut Vendor, u16) -> Result<(), Fault>,
    /// May the stack send?
    pub may_send: fn(&mut Vendor, u16) -> bool,
    /// When the transmit timer runs.
    pub timer_ns: fn(&Vendor) -> Option<u64>,
    /// Count frames of polls that ran at the same time, each of which found these counts.
    pub count: fn(&mut Totals, Totals, Totals),
    /// The card has told of an error.
    pub serve_errors: fn(&mut Vendor) -> Result<Option<String>, Fault>,
    /// The MAC's statistics.
    pub mac: fn(&mut Vendor) -> Result<Option<MacTotals>, Fault>,
    /// Set the MTU.
    pub set_mtu: fn(&mut Vendor, u16) -> Result<(), Fault>,
    /// Set the RSS table.
    pub set_table: fn(&mut Vendor, &[u16]) -> Result<(), Fault>,
    /// Take the function away.
    pub remove: fn(&mut Vendor) -> Result<(), Fault>,
}

impl Ways {
    /// All of them sound.
    pub const SOUND: Ways = Ways {
        buffer: Buffer { hw_len_bytes: 2048, offset: HEADROOM },
        completions_per_descriptor: 2,
        undo_map: probe::undo_map,
        wait_for_cmac: probe::wait_for_cmac,
        no_statistics: Err,
        free_names: probe::free_names,
        open_rx: queues::open_rx,
        undo_rx: queues::clear_rx,
        stop: queues::stop,
        clear_tx: queues::clear_tx,
        clear_rx: queues::clear_rx,
        next: rx::next,
        buffers_of: rx::buffers_of,
        refill: rx::refill,
        no_skb: rx::no_skb,
        within: rx::within,
        finish: rx::finish,
        clean_on_poll: tx::clean_own,
        clean: tx::clean,
        pad: tx::pad,
        no_mapping: tx::doorbell,
        may_send: tx::may_send,
        timer_ns: tx::timer_ns,
        count: control::count,
        serve_errors: probe::serve_errors,
        mac: control::mac,
        set_mtu: control::set_mtu,
        set_table: control::set_table,
        remove: probe::remove,
    };
}

/// The driver of one function.
pub struct Vendor {
    /// The function's seams.
    pub platform: Arc<Bent>,
    /// The kernel's heap.
    pub heap: Heap,
    /// What it was told.
    pub config: NicConfig,
    /// How it goes about things.
    pub ways: Ways,
    /// The QDMA's handle, set once BAR0 is mapped and the function map written.
    pub qdma: Option<()>,
    /// Per-CPU statistics.
    pub statistics: Option<Block>,
    /// Names of interrupts.
    pub names: Vec<Block>,
    /// Receive queues by their number.
    pub rx: Vec<Option<RxQueue>>,
    /// Transmit queues.
    pub tx: Vec<Option<TxQueue>>,
    /// Queues whose poll is scheduled.
    pub scheduled: BTreeSet<u16>,
    /// Queues that could not be stopped, with their memory.
    pub parked: (Vec<TxQueue>, Vec<RxQueue>),
    /// The card has asked for its errors to be looked at.
    pub errors_due: bool,
    /// Frames handed up.
    pub inbox: Vec<Received>,
    /// What the statistics show.
    pub totals: Totals,
    /// What the MAC has counted, put together from its readings.
    pub mac: MacTotals,
    /// MTU in force.
    pub mtu: u16,
}

impl Vendor {
    /// Probe a function.
    ///
    /// # Errors
    /// The driver's own words.
    pub fn probe(ground: Ground, ways: Ways) -> Result<Vendor, String> {
        let Ground { platform, heap, config } = ground;
        let queues = usize::from(config.queues);
        let mtu = config.mtu;
        let mut vendor = Vendor {
            platform,
            heap,
            config,
            ways,
            qdma: None,
            statistics: None,
            names: Vec::new(),
            rx: (0..queues).map(|_| None).collect(),
            tx: (0..queues).map(|_| None).collect(),
            scheduled: BTreeSet::new(),
            parked: Default::default(),
            errors_due: false,
            inbox: Vec::new(),
            totals: Totals::default(),
            mac: MacTotals::default(),
            mtu,
        };
        probe::probe(&mut vendor).map_err(|fault| fault.to_string())?;
        Ok(vendor)
    }

    /// The present.
    pub fn now(&self) -> Time {
        Time::from_ns(self.platform.clock().now())
    }

    /// The function's DMA space.
    pub fn dma(&self) -> &BentDma {
        self.platform.dma()
    }

    /// Write a register of the QDMA.
    pub fn write(&self, offset: u32, value: u32) -> Result<(), Fault> {
        Ok(self.platform.mmio().write32(Bar::Qdma, offset, value)?)
    }

    /// Read one.
    pub fn read(&self, offset: u32) -> Result<u32, Fault> {
        Ok(self.platform.mmio().read32(Bar::Qdma, offset)?)
    }

    /// Write a register of the shell.
    pub fn write_shell(&self, offset: u32, value: u32) -> Result<(), Fault> {
        Ok(self.platform.mmio().write32(Bar::Shell, offset, value)?)
    }

    /// Read one.
    pub fn read_shell(&self, offset: u32) -> Result<u32, Fault> {
        Ok(self.platform.mmio().read32(Bar::Shell, offset)?)
    }

    /// A receive queue, as the driver finds it: by a pointer.
    pub fn rx_queue(&mut self, queue: u16) -> &mut RxQueue {
        deref(self.rx.get_mut(usize::from(queue)).and_then(Option::as_mut), &format!("rx_queue[{queue}]"))
    }

    /// A transmit queue, likewise.
    pub fn tx_queue(&mut self, queue: u16) -> &mut TxQueue {
        deref(self.tx.get_mut(usize::from(queue)).and_then(Option::as_mut), &format!("tx_queue[{queue}]"))
    }

    /// The interrupt handler: it finds its queue by the vector's number.
    pub fn isr(&mut self) {
        while let Some(Vector(vector)) = self.platform.interrupts().take() {
            if self.error_vector() == Some(vector) {
                self.errors_due = true;
            } else {
                self.rx_queue(vector);
                self.scheduled.insert(vector);
            }
        }
    }

    /// The vector of errors: the last of function 0's.
    pub fn error_vector(&self) -> Option<u16> {
        (self.config.func.0 == 0).then(|| self.platform.interrupts().count().saturating_sub(1))
    }

    /// Time passes in the middle of something else, as it does on a machine with more than one CPU: interrupts come, and the
    /// polls that they ask for run.
    pub fn breathe(&mut self, ns: u64) -> Result<(), Fault> {
        self.platform.clock().wait(ns);
        self.isr();
        for queue in std::mem::take(&mut self.scheduled) {
            rx::poll(self, queue, 64, true)?;
        }
        Ok(())
    }
}

fn words<T>(result: Result<T, Fault>) -> Result<T, String> {
    result.map_err(|fault| fault.to_string())
}

/// The way out of any fault is a new pair, so the pair is what has failed.
fn failure(queue: u16, fault: &Fault) -> Failure {
    Failure::of_pair(queue, fault.to_string())
}

impl Nic for Vendor {
    fn up(&mut self) -> Result<(), String> {
        words(queues::open(self))
    }

    fn down(&mut self) -> Result<(), String> {
        words((self.ways.stop)(self))
    }

    fn remove(&mut self) -> Result<(), String> {
        words((self.ways.remove)(self))
    }

    fn interrupts(&mut self) -> Vec<Work> {
        self.isr();
        let errors = std::mem::take(&mut self.errors_due).then_some(Work::Errors);
        std::mem::take(&mut self.scheduled).into_iter().map(Work::Poll).chain(errors).collect()
    }

    fn poll(&mut self, queue: u16, budget: usize, may_finish: bool) -> Result<Polled, Failure> {
        rx::poll(self, queue, budget, may_finish).map_err(|fault| failure(queue, &fault))
    }

    fn poll_together(&mut self, queues: &[u16], budget: usize) -> Vec<Result<Polled, Failure>> {
        let polled = rx::poll_together(self, queues, budget);
        queues.iter().zip(polled).map(|(&queue, polled)| polled.map_err(|fault| failure(queue, &fault))).collect()
    }

    fn received(&mut self) -> Vec<Received> {
        std::mem::take(&mut self.inbox)
    }

    fn serve_errors(&mut self) -> Result<Option<String>, String> {
        words((self.ways.serve_errors)(self))
    }

    fn may_send(&mut self, queue: u16) -> bool {
        (self.ways.may_send)(self, queue)
    }

    fn send(&mut self, queue: u16, frame: &[u8], more: bool) -> Result<(), Refusal> {
        tx::send(self, queue, frame, more)
    }

    fn timer_ns(&mut self) -> Option<u64> {
        (self.ways.timer_ns)(self)
    }

    fn on_timer(&mut self) -> Timed {
        let mut timed = Timed::default();
        for queue in 0..self.config.queues {
            if self.tx[usize::from(queue)].is_some()
                && let Err(fault) = (self.ways.clean)(self, queue)
            {
                timed.failures.push(failure(queue, &fault));
            }
        }
        timed
    }

    fn unfreed(&self) -> u64 {
        self.tx.iter().flatten().map(|queue| queue.slots.iter().flatten().count() as u64).sum()
    }

    fn recover(&mut self, queue: u16) -> Result<(), Vec<Failure>> {
        queues::restart(self, queue).map_err(|fault| vec![failure(queue, &fault)])
    }

    fn totals(&mut self) -> Totals {
        control::totals(self)
    }

    fn mac(&mut self) -> Result<Option<MacTotals>, String> {
        words((self.ways.mac)(self))
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn set_mtu(&mut self, mtu: u16) -> Result<(), String> {
        words((self.ways.set_mtu)(self, mtu))
    }

    fn set_table(&mut self, entries: &[u16]) -> Result<(), String> {
        words((self.ways.set_table)(self, entries))
    }
}
