//! driver-core as a [`Nic`]: the driver that must be silent in every scenario, and some mutants' victim.

use std::sync::Arc;

use driver_core::rss::Table;
use driver_core::{
    Clock as _, Deferral, DeviceConfig, DmaMemory, Driver, Interrupts as _, Next, NoHook, Platform, QueueFault,
    Recovered, Side, TableEntry, TxError, TxFlow,
};
use models::time::Time;
use std::collections::BTreeSet;

use super::nic::{Failure, MacTotals, Nic, NicConfig, Polled, Received, Refusal, Timed, Totals, Work};
use super::seams::{Bent, BentDma};
use crate::pool_ring::PoolOn;

/// Every so many frames the stack keeps one's page until the next poll.
const KEPT_EVERY: u64 = 4;

type Page = <BentDma as DmaMemory>::Page;
/// The driver as every run has it: receive queues take their pages from a page pool.
type Core = Driver<Bent, PoolOn<BentDma>>;

/// The driver, and what a kernel would do around it.
pub struct TrueDriver {
    /// `None` once it is removed.
    driver: Option<Core>,
    /// How long its NAPI keeps interrupts off.
    deferral: Deferral,
    /// Transmit queues that have stopped the stack and not woken it yet.
    stopped: BTreeSet<u16>,
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
        // A thousand times what a reset takes; on RTL each further look costs a thousand cycles.
        device.timeouts.reset_ns = 2_000_000;
        let driver = Driver::bring_up(platform, device).map_err(|error| error.to_string())?;
        // Once frames have come, interrupts stay off for good.
        let deferral = config.deferred_ns.map(|timeout_ns| Deferral { polls: u32::MAX, timeout_ns });
        Ok(TrueDriver {
            driver: Some(driver),
            deferral: deferral.unwrap_or_default(),
            stopped: BTreeSet::new(),
            inbox: Vec::new(),
            kept: Vec::new(),
            frames: 0,
            last: Totals::default(),
        })
    }

    fn driver(&mut self) -> Result<&mut Core, String> {
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
        self.stopped.clear();
        let deferral = self.deferral;
        let driver = self.driver()?;
        driver.up_with(|_| PoolOn::default()).map_err(|error| error.to_string())?;
        driver.queues().iter_mut().for_each(|pair| pair.napi.set_deferral(deferral));
        Ok(())
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
        let Some(driver) = &mut self.driver else { return Vec::new() };
        let mut work = Vec::new();
        while let Some(vector) = driver.platform().interrupts().take() {
            if driver.error_vector() == Some(vector) {
                work.push(Work::Errors);
                continue;
            }
            for queue in
                (0..driver.config().queues).filter(|&queue| driver.vector_of(queue) == vector).collect::<Vec<_>>()
            {
                // One that is scheduled is polled anyway.
                if driver.pair(queue).is_some_and(|pair| pair.napi.schedule()) {
                    work.push(Work::Poll(queue));
                }
            }
        }
        work
    }

    fn poll(&mut self, queue: u16, budget: usize, _may_finish: bool) -> Result<Polled, Failure> {
        self.return_kept();
        let (inbox, kept, frames) = (&mut self.inbox, &mut self.kept, &mut self.frames);
        let Some(driver) = &mut self.driver else { return Ok(Polled { done: true, ..Polled::default() }) };
        let time = Time::from_ns(driver.platform().clock().now());
        let Some(pair) = driver.pair(queue) else { return Ok(Polled { done: true, ..Polled::default() }) };
        let polled = pair.poll(budget, &mut NoHook, |frame| {
            inbox.push(Received { queue, data: frame.segments().flatten().copied().collect(), time });
            *frames += 1;
            if frames.is_multiple_of(KEPT_EVERY)
                && let Ok(taken) = frame.take(0)
            {
                kept.push((queue, taken.page));
            }
        });
        if polled.tx_woken && pair.tx.flow() == TxFlow::Open {
            self.stopped.remove(&queue);
        }
        let trouble = polled.sent.err().map(|fault| Failure::of(queue, Side::Tx, format!("tx: {fault}")));
        match polled.received {
            Ok(work) => Ok(Polled { work, done: polled.next != Next::Again, rescheduled: false, trouble }),
            Err(fault) => {
                let fault = format!("rx: {fault}");
                Err(match trouble {
                    Some(trouble) => Failure::of_pair(queue, format!("{}; {fault}", trouble.text)),
                    None => Failure::of(queue, Side::Rx, fault),
                })
            }
        }
    }

    fn received(&mut self) -> Vec<Received> {
        std::mem::take(&mut self.inbox)
    }

    fn serve_errors(&mut self) -> Result<Option<String>, String> {
        let errors = self.driver()?.service_errors().map_err(|error| error.to_string())?;
        Ok(errors.filter(|errors| errors.root != 0).map(|errors| format!("card errors: {errors:?}")))
    }

    fn may_send(&mut self, queue: u16) -> bool {
        !self.stopped.contains(&queue)
    }

    fn send(&mut self, queue: u16, frame: &[u8], more: bool) -> Result<(), Refusal> {
        let tx = self.driver.as_mut().and_then(|driver| driver.tx(queue));
        let tx = tx.ok_or_else(|| Refusal::Dropped("the interface is down".into()))?;
        let failed = |fault: QueueFault| Refusal::Failed(Failure::of(queue, Side::Tx, fault.to_string()));
        let posted = tx.post(frame);
        if tx.flow() != TxFlow::Open {
            self.stopped.insert(queue);
        }
        match posted {
            // The stack has nothing more for a queue that is stopped.
            Ok(()) if more && tx.flow() == TxFlow::Open => Ok(()),
            Ok(()) => tx.flush().map_err(failed),
            Err(TxError::Full { .. }) => Err(Refusal::Busy),
            Err(TxError::Fault(fault)) => Err(failed(fault)),
            Err(other) => Err(Refusal::Dropped(other.to_string())),
        }
    }

    fn timer_ns(&mut self) -> Option<u64> {
        let driver = self.driver.as_mut()?;
        let now_ns = driver.platform().clock().now();
        let due = driver.queues().iter().filter_map(|pair| pair.due_ns()).min();
        due.map(|due_ns| due_ns.saturating_sub(now_ns))
    }

    /// Transmit completions are looked for with a budget of 0, as they are all that is due then.
    fn on_timer(&mut self) -> Timed {
        let Some(driver) = &mut self.driver else { return Timed::default() };
        let now_ns = driver.platform().clock().now();
        let (mut late, mut due) = (Vec::new(), Vec::new());
        for pair in driver.queues() {
            let is_due = |at: Option<u64>| at.is_some_and(|at| at <= now_ns);
            if is_due(pair.napi.deferred_until_ns()) && pair.napi.schedule() {
                due.push(pair.rx.rel_qid());
            } else if is_due(pair.tx.due_ns()) {
                late.push(pair.rx.rel_qid());
            }
        }
        let failures = late.into_iter().filter_map(|queue| match self.poll(queue, 0, true) {
            Ok(polled) => polled.trouble,
            Err(failure) => Some(failure),
        });
        Timed { failures: failures.collect(), due }
    }

    fn plans_polls(&self) -> bool {
        true
    }

    fn unfreed(&self) -> u64 {
        let Some(driver) = &self.driver else { return 0 };
        let totals = driver.tx_totals();
        totals.posted - totals.completed - totals.abandoned
    }

    fn recover(&mut self, _queue: u16) -> Result<(), Vec<Failure>> {
        self.return_kept();
        let recovered = self.driver.as_mut().map(Driver::recover).unwrap_or_default();
        self.stopped.retain(|queue| recovered.iter().all(|one| one.rel_qid != *queue));
        let failed = |one: Recovered| Some(Failure::of_pair(one.rel_qid, one.result.err()?.to_string()));
        let failures: Vec<Failure> = recovered.into_iter().filter_map(failed).collect();
        if failures.is_empty() { Ok(()) } else { Err(failures) }
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
