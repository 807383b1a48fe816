//! Statistics as they are shown: the rows of `ethtool -S`, the totals of `ip -s`, and the cells that they come from.

use alloc::borrow::Cow;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use regs::{FuncId, packet_adapter, qdma_common, shell};

use super::mac::read64;
use super::names::{ADAPTER, ADAPTER_OURS, MAC, Named, QDMA_COMMON, QDMA_FUNCTION};
use super::{MacStatistics, PoolCell, RxCell, RxCounters, RxLedger, Traffic, TxCell, TxCounters, TxLedger, Worker};
use crate::platform::{Mmio, MmioError};
use crate::pool::PoolStatistics;

/// One row of `ethtool -S`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its value.
    pub value: u64,
}

impl Row {
    pub(crate) fn new(name: impl Into<Cow<'static, str>>, value: u64) -> Self {
        Self { name: name.into(), value }
    }
}

/// All rows of `ethtool -S`, in order: the vendor driver's 71, then ours.
///
/// Rows of the MAC and the adapter are those of the function's own port ([`crate::DeviceConfig::own_port`]). A function
/// without one reads no port's registers: there these rows are 0. Counters that only our shell has are left out on a card
/// without them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statistics {
    rows: Vec<Row>,
}

impl Statistics {
    /// The rows.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The names, as ethtool asks for them first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|row| &*row.name)
    }

    /// The values, in the order of the names.
    pub fn values(&self) -> impl Iterator<Item = u64> + '_ {
        self.rows.iter().map(|row| row.value)
    }

    /// One value by its name.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.rows.iter().find(|row| row.name == name).map(|row| row.value)
    }
}

/// What the queues of one number have counted since bring-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueStatistics {
    /// Counted from the function's first.
    pub rel_qid: u16,
    /// Receive queue.
    pub rx: RxCounters,
    /// Transmit queue.
    pub tx: TxCounters,
}

impl QueueStatistics {
    /// The same as Linux counts it.
    pub fn traffic(&self) -> Traffic {
        Traffic::of(&self.rx, &self.tx)
    }
}

/// What the card counts for a function that no queue ever sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortPart {
    /// Frames that the MAC marked in error.
    pub rx_errors: u64,
    /// Frames for which the card had no room, that were too long, or whose RSS entry named no queue of the function.
    pub rx_missed: u64,
    /// Multicast frames received.
    pub multicast: u64,
}

/// The totals of `ip -s link`: each is the sum of the queues and of what the port adds.
///
/// The port's part is since the card's reset, and 0 for a function without a port of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkStatistics {
    /// All queues.
    pub queues: Traffic,
    /// The card.
    pub port: PortPart,
}

impl LinkStatistics {
    /// RX packets.
    pub fn rx_packets(&self) -> u64 {
        self.queues.rx_packets
    }

    /// RX bytes.
    pub fn rx_bytes(&self) -> u64 {
        self.queues.rx_bytes
    }

    /// RX errors: faults of queues, and frames that the MAC marked.
    pub fn rx_errors(&self) -> u64 {
        self.queues.rx_errors.wrapping_add(self.port.rx_errors)
    }

    /// RX dropped: frames that reached the host and went no further.
    pub fn rx_dropped(&self) -> u64 {
        self.queues.rx_dropped
    }

    /// RX missed: frames that the card had no place for.
    pub fn rx_missed(&self) -> u64 {
        self.port.rx_missed
    }

    /// RX multicast.
    pub fn multicast(&self) -> u64 {
        self.port.multicast
    }

    /// TX packets.
    pub fn tx_packets(&self) -> u64 {
        self.queues.tx_packets
    }

    /// TX bytes.
    pub fn tx_bytes(&self) -> u64 {
        self.queues.tx_bytes
    }

    /// TX errors: faults of queues.
    pub fn tx_errors(&self) -> u64 {
        self.queues.tx_errors
    }

    /// TX dropped: refused or abandoned.
    pub fn tx_dropped(&self) -> u64 {
        self.queues.tx_dropped
    }
}

/// The cells of one queue number.
#[derive(Debug, Default)]
struct QueueCells {
    rx: Arc<RxCell>,
    tx: Arc<TxCell>,
    pool: Arc<PoolCell>,
}

/// The cells of a function: one set for each queue number that ever ran, one for each worker.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    queues: Vec<QueueCells>,
    workers: Vec<Arc<Worker>>,
}

impl Cells {
    /// For a new receive queue of this number.
    pub(crate) fn rx_ledger(&mut self, rel_qid: u16, source: &PoolStatistics) -> RxLedger {
        let worker = self.worker(0);
        let cells = self.cells(rel_qid);
        RxLedger::new(Arc::clone(&cells.rx), Arc::clone(&cells.pool), worker, source)
    }

    /// For a new transmit queue.
    pub(crate) fn tx_ledger(&mut self, rel_qid: u16) -> TxLedger {
        let worker = self.worker(0);
        TxLedger::new(Arc::clone(&self.cells(rel_qid).tx), worker)
    }

    fn cells(&mut self, rel_qid: u16) -> &QueueCells {
        let at = usize::from(rel_qid);
        if self.queues.len() <= at {
            self.queues.resize_with(at + 1, Default::default);
        }
        &self.queues[at]
    }

    /// A worker's cell, made at its first use.
    pub(crate) fn worker(&mut self, index: usize) -> Arc<Worker> {
        if self.workers.len() <= index {
            self.workers.resize_with(index + 1, Default::default);
        }
        Arc::clone(&self.workers[index])
    }

    /// All workers so far, by index.
    pub(crate) fn workers(&self) -> impl Iterator<Item = Traffic> + '_ {
        self.workers.iter().map(|worker| worker.traffic())
    }

    /// Page pools of all queues together, under Linux's names.
    pub(crate) fn pools(&self) -> Vec<Row> {
        let names = PoolStatistics::default().named().map(|(name, _)| name);
        let mut sums = names.map(|_| 0u64);
        for queue in &self.queues {
            sums.iter_mut().zip(queue.pool.load()).for_each(|(sum, value)| *sum = sum.wrapping_add(value));
        }
        names.into_iter().zip(sums).map(|(name, value)| Row::new(name, value)).collect()
    }

    /// The first `count` queue numbers, and those beyond them that ever ran.
    pub(crate) fn queues(&self, count: u16) -> Vec<QueueStatistics> {
        (0..count.max(self.queues.len() as u16)).map(|rel_qid| self.queue(rel_qid)).collect()
    }

    fn queue(&self, rel_qid: u16) -> QueueStatistics {
        let cells = self.queues.get(usize::from(rel_qid));
        let (rx, tx) = cells.map(|cells| (cells.rx.load(), cells.tx.load())).unwrap_or_default();
        QueueStatistics { rel_qid, rx, tx }
    }
}

/// Where the rows come from.
pub(crate) struct Source<'a, M> {
    pub(crate) mmio: &'a M,
    pub(crate) func: FuncId,
    pub(crate) mac: Option<&'a MacStatistics>,
    pub(crate) queues: &'a [QueueStatistics],
    /// Further rows, between the card's and the queues'.
    pub(crate) software: Vec<Row>,
}

/// Read all rows.
pub(crate) fn read<M: Mmio>(source: Source<'_, M>) -> Result<Statistics, MmioError> {
    let mut rows = Vec::new();
    vendor_mac(&source, &mut rows)?;
    vendor_adapter(&source, &mut rows)?;
    vendor_xdp(source.queues, &mut rows);
    ours(&source, &mut rows)?;
    rows.extend(source.software);
    source.queues.iter().for_each(|queue| queue_rows(queue, &mut rows));
    Ok(Statistics { rows })
}

fn vendor_mac<M: Mmio>(source: &Source<'_, M>, rows: &mut Vec<Row>) -> Result<(), MmioError> {
    match source.mac {
        Some(mac) => {
            mac.collect(source.mmio)?;
            rows.extend(mac.rows().map(|(name, value)| Row::new(name, value)));
        }
        None => rows.extend(MAC.iter().map(|(name, _)| Row::new(*name, 0))),
    }
    Ok(())
}

fn vendor_adapter<M: Mmio>(source: &Source<'_, M>, rows: &mut Vec<Row>) -> Result<(), MmioError> {
    for (name, offset) in ADAPTER {
        let value = match source.mac {
            Some(mac) => read64(source.mmio, shell::packet_adapter(mac.port()) + offset)?,
            None => None,
        };
        rows.push(Row::new(name, value.unwrap_or(0)));
    }
    Ok(())
}

/// Sums of the hook's verdicts over all queues.
fn vendor_xdp(queues: &[QueueStatistics], rows: &mut Vec<Row>) {
    let rx: RxCounters = queues.iter().map(|queue| queue.rx).sum();
    let tx: TxCounters = queues.iter().map(|queue| queue.tx).sum();
    rows.extend([
        Row::new("rx_xdp_redirect", rx.xdp_redirect),
        Row::new("rx_xdp_pass", rx.xdp_pass),
        Row::new("rx_xdp_drop", rx.xdp_drop),
        Row::new("rx_xdp_tx", rx.xdp_tx),
        Row::new("rx_xdp_tx_errors", rx.xdp_tx_errors),
        Row::new("tx_xdp_xmit", tx.xdp_xmit),
        Row::new("tx_xdp_xmit_errors", tx.xdp_xmit_errors),
    ]);
}

fn ours<M: Mmio>(source: &Source<'_, M>, rows: &mut Vec<Row>) -> Result<(), MmioError> {
    let mut block = |base: u32, named: &[Named]| -> Result<(), MmioError> {
        for (name, offset) in named {
            if let Some(value) = read64(source.mmio, base + offset)? {
                rows.push(Row::new(*name, value));
            }
        }
        Ok(())
    };
    if let Some(mac) = source.mac {
        block(shell::packet_adapter(mac.port()), &ADAPTER_OURS)?;
    }
    block(shell::QDMA_COMMON, &QDMA_COMMON)?;
    block(function_page(source.func), &QDMA_FUNCTION)
}

/// The common page, moved on to a function's part.
fn function_page(func: FuncId) -> u32 {
    shell::QDMA_COMMON + u32::from(func.0) * qdma_common::FUNCTION_C2H_PACKETS_STRIDE
}

/// A queue pair: what everybody looks for first, then the rest under its own names.
fn queue_rows(queue: &QueueStatistics, rows: &mut Vec<Row>) {
    let traffic = queue.traffic();
    let n = queue.rel_qid;
    let rx = [
        ("packets", traffic.rx_packets),
        ("bytes", traffic.rx_bytes),
        ("drops", traffic.rx_dropped),
        ("errors", traffic.rx_errors),
    ];
    let rx_rest = queue.rx.fields().filter(|(name, _)| !matches!(*name, "frames" | "bytes" | "faults"));
    rows.extend(rx.into_iter().chain(rx_rest).map(|(name, value)| Row::new(format!("rx_queue_{n}_{name}"), value)));
    let tx = [
        ("packets", traffic.tx_packets),
        ("bytes", traffic.tx_bytes),
        ("drops", traffic.tx_dropped),
        ("errors", traffic.tx_errors),
    ];
    let tx_rest = queue.tx.fields().filter(|(name, _)| !matches!(*name, "completed" | "completed_bytes" | "faults"));
    rows.extend(tx.into_iter().chain(tx_rest).map(|(name, value)| Row::new(format!("tx_queue_{n}_{name}"), value)));
}

/// What the port adds to the totals of `ip -s`.
pub(crate) fn read_port(mmio: &impl Mmio, func: FuncId, mac: Option<&MacStatistics>) -> Result<PortPart, MmioError> {
    let range = read64(mmio, function_page(func) + qdma_common::FUNCTION_C2H_DROP_QUEUE_RANGE)?.unwrap_or(0);
    let Some(mac) = mac else { return Ok(PortPart { rx_missed: range, ..PortPart::default() }) };
    mac.collect(mmio)?;
    let adapter = |offset| read64(mmio, shell::packet_adapter(mac.port()) + offset).map(Option::unwrap_or_default);
    Ok(PortPart {
        rx_errors: adapter(packet_adapter::RX_PACKETS_ERROR)?,
        rx_missed: adapter(packet_adapter::RX_PACKETS_DROPPED)?.wrapping_add(range),
        multicast: mac.get("stat_rx_multicast").unwrap_or(0),
    })
}
