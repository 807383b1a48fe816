//! What a function has counted.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Driver;
use crate::platform::{MmioError, Platform};
use crate::ring::PageSource;
use crate::statistics::{
    self, LinkStatistics, MacStatistics, QueueStatistics, Row, RxCounters, Source, Statistics, Traffic, TxCounters,
    Worker,
};

impl<P: Platform, S: PageSource<P::Dma>> Driver<P, S> {
    /// All rows of `ethtool -S`. Works while the device is down, and while queues are lent out.
    ///
    /// # Errors
    /// [`MmioError`]; no MAC count is lost by it.
    pub fn statistics(&self) -> Result<Statistics, MmioError> {
        statistics::read(Source {
            mmio: self.platform.mmio(),
            func: self.config.func,
            mac: self.mac.as_deref(),
            queues: &self.queue_statistics(),
            software: self.software_rows(),
        })
    }

    /// Rows that neither the card nor a queue counts.
    fn software_rows(&self) -> Vec<Row> {
        let mut rows = self.cells.pools();
        if self.vectors.error.is_some() {
            rows.extend(self.card_errors.rows().map(|(name, value)| Row::new(name, value)));
        }
        rows
    }

    /// The totals of `ip -s link`.
    ///
    /// # Errors
    /// [`MmioError`].
    pub fn link_statistics(&self) -> Result<LinkStatistics, MmioError> {
        let port = statistics::read_port(self.platform.mmio(), self.config.func, self.mac.as_deref())?;
        Ok(LinkStatistics { queues: self.traffic(), port })
    }

    /// Queue by queue: those that the function has, and those that it had. Touches no card.
    pub fn queue_statistics(&self) -> Vec<QueueStatistics> {
        self.cells.queues(self.config.queues)
    }

    /// Worker by worker, by index. Their sum is that of the queues once every queue has ended its last poll.
    pub fn worker_statistics(&self) -> Vec<Traffic> {
        self.cells.workers().collect()
    }

    /// All queues together.
    pub fn traffic(&self) -> Traffic {
        self.queue_statistics().iter().map(QueueStatistics::traffic).sum()
    }

    /// The cell of a worker, made at its first use: what [`crate::QueuePair::assign`] takes. Worker 0 is whoever drives queues that
    /// were assigned to nobody.
    pub fn worker(&mut self, index: usize) -> Arc<Worker> {
        self.cells.worker(index)
    }

    /// What all transmit queues have counted since bring-up, those lent out included.
    pub fn tx_totals(&self) -> TxCounters {
        self.queue_statistics().iter().map(|queue| queue.tx).sum()
    }

    /// What all receive queues have counted since bring-up, those lent out included.
    pub fn rx_totals(&self) -> RxCounters {
        self.queue_statistics().iter().map(|queue| queue.rx).sum()
    }

    /// The MAC counters of the function's port, if it has one. Hand it to other functions on that port.
    pub fn mac_statistics(&self) -> Option<&Arc<MacStatistics>> {
        self.mac.as_ref()
    }

    /// Show the MAC counters of a port that another function owns: one owner of TICK for each port.
    pub fn share_mac_statistics(&mut self, owner: &Arc<MacStatistics>) {
        self.mac = Some(Arc::clone(owner));
    }
}
