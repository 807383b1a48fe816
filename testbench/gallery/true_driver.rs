//! driver-core as a [`Nic`]: the driver that must be silent in every scenario, and some mutants' victim.

use std::sync::Arc;

use driver_core::rss::Table;
use driver_core::{Clock as _, DeviceConfig, DmaMemory, Driver, Interrupts as _, Platform, TableEntry, TxError};
use models::time::Time;

use super::nic::{MacTotals, Nic, NicConfig, Polled, Received, Refusal, Totals, Work};
use super::seams::Bent;

/// How often transmit completions are looked for while there are some to come, ns: OpenNIC has no interrupt for them.
const REAP_NS: u64 = 2_000;
/// Every so many frames the stack keeps one's page until the next poll.
const KEPT_EVERY: u64 = 4;

type Page = <<Bent as Platform>::Dma as DmaMemory>::Page;

/// The driver, and what a kernel would do around it.
pub struct TrueDriver {
    /// `None` once it is removed.
    driver: Option<Driver<Bent>>,
    inbox: Vec<Received>,
    /// Pages that the stack kept, with their queues.
    kept: Vec<(u16, Page)>,
    frames: u64,
    last: Totals,
}

impl TrueDriver {
    /// Probe.
    ///
    /// # Errors
    /// The driver's own words.
    pub fn probe(platform: Arc<Bent>, config: &NicConfig) -> Result<TrueDriver, String> {
        let mut device = DeviceConfig {
            queues: config.queues,
            tx_ring: TableEntry::Value(config.ring),
            rx_ring: TableEntry::Value(config.ring),
            mtu: config.mtu,
            max_frame_len_bytes: config.max_frame_len_bytes,
            ports: config.ports.clone(),
            own_port: config.own_port,
            ..DeviceConfig::new(config.func)
        };
        device.moderation.interrupt = config.interrupts;
        // A thousand times what a reset takes; on RTL each further look costs a thousand cycles.
        device.timeouts.reset_ns = 2_000_000;
        let driver = Driver::bring_up(platform, device).map_err(|error| error.to_string())?;
        Ok(TrueDriver { driver: Some(driver), inbox: Vec::new(), kept: Vec::new(), frames: 0, last: Totals::default() })
    }

    fn driver(&mut self) -> Result<&mut Driver<Bent>, String> {
        self.driver.as_mut().ok_or_else(|| "the function was removed".to_string())
    }

    /// The stack has done with the pages that it kept.
    fn return_kept(&mut self) {
        let Some(driver) = &mut self.driver else { return };
        for (queue, page) in self.kept.drain(..) {
            match driver.rx(queue) {
                Some(rx) => rx.give_back(page),
                None => driver.platform().dma().free_page(page),
            }
        }
    }
}

impl Nic for TrueDriver {
    fn up(&mut self) -> Result<(), String> {
        self.driver()?.up().map_err(|error| error.to_string())
    }

    fn down(&mut self) -> Result<(), String> {
        self.return_kept();
        self.driver()?.down().map_err(|error| error.to_string())
    }

    fn remove(&mut self) -> Result<(), String> {
        self.return_kept();
        // What it has counted goes with it, but for the frames of its last moments.
        let stopped = self.driver()?.down().map_err(|error| error.to_string());
        self.last = self.totals();
        let driver = self.driver.take().ok_or_else(|| "the function was removed".to_string())?;
        driver.remove().map_err(|error| error.to_string()).and(stopped)
    }

    fn interrupts(&mut self) -> Vec<Work> {
        let Some(driver) = &self.driver else { return Vec::new() };
        let mut work = Vec::new();
        while let Some(vector) = driver.platform().interrupts().take() {
            if driver.error_vector() == Some(vector) {
                work.push(Work::Errors);
            } else {
                let queues = (0..driver.config().queues).filter(|&queue| driver.vector_of(queue) == vector);
                work.extend(queues.map(Work::Poll));
            }
        }
        work
    }

    fn poll(&mut self, queue: u16, budget: usize, _may_finish: bool) -> Result<Polled, String> {
        self.return_kept();
        let (inbox, kept, frames) = (&mut self.inbox, &mut self.kept, &mut self.frames);
        let Some(driver) = &mut self.driver else { return Ok(Polled { done: true, ..Polled::default() }) };
        let time = Time::from_ns(driver.platform().clock().now());
        let Some(rx) = driver.rx(queue) else { return Ok(Polled { done: true, ..Polled::default() }) };
        let work = rx.poll(budget, |frame| {
            inbox.push(Received { queue, data: frame.segments().flatten().copied().collect(), time });
            *frames += 1;
            if frames.is_multiple_of(KEPT_EVERY)
                && let Ok(taken) = frame.take(0)
            {
                kept.push((queue, taken.page));
            }
        });
        let work = work.map_err(|fault| fault.to_string())?;
        Ok(Polled { work, done: work < budget, rescheduled: false })
    }

    fn received(&mut self) -> Vec<Received> {
        std::mem::take(&mut self.inbox)
    }

    fn serve_errors(&mut self) -> Result<Option<String>, String> {
        let errors = self.driver()?.service_errors().map_err(|error| error.to_string())?;
        Ok(errors.filter(|errors| errors.root != 0).map(|errors| format!("card errors: {errors:?}")))
    }

    fn may_send(&mut self, queue: u16) -> bool {
        let Some(tx) = self.driver.as_mut().and_then(|driver| driver.tx(queue)) else { return false };
        tx.room() > 0 || (tx.reap().is_ok() && tx.room() > 0)
    }

    fn send(&mut self, queue: u16, frame: &[u8], more: bool) -> Result<(), Refusal> {
        let tx = self.driver.as_mut().and_then(|driver| driver.tx(queue));
        let tx = tx.ok_or_else(|| Refusal::Dropped("the interface is down".into()))?;
        let failed = |error: &dyn std::fmt::Display| Refusal::Failed(error.to_string());
        match tx.post(frame) {
            Ok(()) if more => Ok(()),
            Ok(()) => tx.flush().map_err(|fault| failed(&fault)),
            Err(TxError::Full { .. }) => Err(Refusal::Busy),
            Err(TxError::Fault(fault)) => Err(failed(&fault)),
            Err(other) => Err(Refusal::Dropped(other.to_string())),
        }
    }

    fn timer_ns(&self) -> Option<u64> {
        (self.unfreed() > 0).then_some(REAP_NS)
    }

    fn on_timer(&mut self) -> Result<(), String> {
        let mut result = Ok(());
        for pair in self.driver()?.queues() {
            result = result.and(pair.tx.reap().map(|_| ()).map_err(|fault| format!("tx {}: {fault}", pair.tx.qid())));
        }
        result
    }

    fn unfreed(&self) -> u64 {
        let Some(driver) = &self.driver else { return 0 };
        let totals = driver.tx_totals();
        totals.posted - totals.completed - totals.abandoned
    }

    fn recover(&mut self, queue: u16) -> Result<(), String> {
        self.return_kept();
        let driver = self.driver()?;
        driver.restart_tx(queue).and_then(|()| driver.restart_rx(queue)).map_err(|error| error.to_string())
    }

    fn totals(&mut self) -> Totals {
        let Some(driver) = &self.driver else { return self.last };
        let (rx, tx) = (driver.rx_totals(), driver.tx_totals());
        Totals {
            rx_packets: rx.frames,
            rx_bytes: rx.bytes,
            rx_dropped: rx.dropped_stopping,
            tx_packets: tx.posted,
            tx_abandoned: tx.abandoned,
        }
    }

    fn mac(&mut self) -> Result<Option<MacTotals>, String> {
        let driver = self.driver()?;
        if driver.config().own_port.is_none() {
            return Ok(None);
        }
        let shown = driver.statistics().map_err(|error| error.to_string())?;
        let (rx, tx) = (shown.get("stat_rx_total_pkts"), shown.get("stat_tx_total_pkts"));
        Ok(rx.zip(tx).map(|(rx_packets, tx_packets)| MacTotals { rx_packets, tx_packets }))
    }

    fn mtu(&self) -> u16 {
        self.driver.as_ref().map_or(0, |driver| driver.config().mtu)
    }

    fn set_mtu(&mut self, mtu: u16) -> Result<(), String> {
        self.driver()?.set_mtu(mtu).map_err(|error| error.to_string())
    }

    fn set_table(&mut self, entries: &[u16]) -> Result<(), String> {
        let table = Table::from_slice(entries).map_err(|error| error.to_string())?;
        self.driver()?.set_rss_table(&table).map_err(|error| error.to_string())
    }
}
