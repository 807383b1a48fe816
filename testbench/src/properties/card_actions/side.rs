//! One of the two cards, with its drivers: deeds done, and what came of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use driver_core::{Mmio as _, Platform as _, TriggerMode, TxFlow};
use regs::doorbell::CompletionCidx;
use regs::{Bar, FuncId, doorbell, qdma_function, shell, system_config};

use super::deed::{Deed, Load, Setting, Stray};
use crate::card::Card;
use crate::console::{Interface, Record, Session, SessionError, Traffic};
use crate::outcome::Sum;
use crate::run::{InFrame, Setup};
use crate::shape::Pace;

/// After a stray access: until its error was served, ns.
const ERROR_NS: u64 = 20_000;
/// Until a reset of the user boxes is over, ns.
const RESET_NS: u64 = 10_000;

/// Error registers of the QDMA, as they stand when all errors are served.
const ERROR_REGISTERS: [(&str, u32); 7] = [
    ("GLBL_ERROR_STATUS", regs::qdma_csr::GLBL_ERROR_STATUS),
    ("GLBL_DSC_ERROR_STATUS", regs::qdma_csr::GLBL_DSC_ERROR_STATUS),
    ("GLBL_TRQ_ERROR_STATUS", regs::qdma_csr::GLBL_TRQ_ERROR_STATUS),
    ("C2H_ERROR_STATUS", regs::qdma_csr::C2H_ERROR_STATUS),
    ("H2C_ERROR_STATUS", regs::qdma_csr::H2C_ERROR_STATUS),
    ("ERROR_INTERRUPT", regs::qdma_csr::ERROR_INTERRUPT),
    ("GLBL_DSC_ERROR_LOG0", regs::qdma_csr::GLBL_DSC_ERROR_LOG0),
];

/// Counts by name.
pub(super) type Rows = BTreeMap<String, u64>;

/// What came of one deed.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Frames that came out.
    pub(super) record: Record,
    /// What was read or refused, in order.
    pub(super) said: Vec<String>,
    /// What the drivers logged, taken apart: each fault and each error bit once.
    pub(super) faults: Vec<String>,
    /// What drivers and monitors have counted since bring-up.
    pub(super) counts: Rows,
    /// The settings in force, and error registers.
    pub(super) state: Vec<String>,
}

/// What a look has read.
#[derive(Debug, Default)]
pub(super) struct Looked {
    /// Rows of `ethtool -S`, `onic<f>` before each.
    pub(super) rows: Rows,
    /// The RSS registers, as text.
    pub(super) rss: Vec<String>,
}

pub(super) struct Side {
    pub(super) name: String,
    pub(super) session: Session,
}

impl Side {
    /// Bring a card up.
    pub(super) fn start(card: Box<dyn Card>, setup: &Setup) -> Result<Side, String> {
        let name = card.name().to_string();
        let mut session = Session::start_with(card, setup).map_err(|error| in_full(&name, error))?;
        session.record();
        Ok(Side { name, session })
    }

    /// Do it, and come to rest.
    pub(super) fn act(&mut self, deed: &Deed) -> Result<Account, String> {
        let mut said = Vec::new();
        self.deed(deed, &mut said).map_err(|error| in_full(&self.name, error))?;
        self.account(said).map_err(|error| in_full(&self.name, error))
    }

    fn deed(&mut self, deed: &Deed, said: &mut Vec<String>) -> Result<(), SessionError> {
        match deed {
            Deed::Traffic { load, withheld_ns } => {
                if let Some(ns) = *withheld_ns {
                    self.session.hold_host(true);
                    self.load(load)?;
                    self.session.wait(ns)?;
                    self.session.hold_host(false);
                } else {
                    self.load(load)?;
                }
            }
            Deed::Set(interface, setting) => said.push(self.set(*interface, setting)),
            Deed::Under { load, after_ns, interface, setting } => {
                self.load(load)?;
                self.session.wait(*after_ns)?;
                said.push(self.set(*interface, setting));
            }
            Deed::Range { func, wrong, right, load } => {
                self.write_range(*func, *wrong)?;
                self.load(load)?;
                self.rest()?;
                self.write_range(*func, *right)?;
            }
            Deed::Stray { func, stray, then, restart } => {
                self.stray(*func, stray, said)?;
                self.rest()?;
                if let Some(frame) = then {
                    self.load(&Load { wire: vec![frame.clone()], host: Vec::new(), pace: Pace::Fast })?;
                    self.rest()?;
                }
                self.restart(Interface(func.0), restart.as_ref(), said)?;
            }
            Deed::Look => {}
        }
        self.rest()
    }

    fn load(&mut self, load: &Load) -> Result<(), SessionError> {
        let frames: Vec<InFrame> = load.wire.clone();
        self.session.replay(Traffic { pace: Some(load.pace), ..Traffic::new(frames) })?;
        self.session.send(load.host.iter().cloned())
    }

    /// Nothing moves any more, and errors are served.
    fn rest(&mut self) -> Result<(), SessionError> {
        self.session.wait_idle()?;
        self.session.wait(ERROR_NS)?;
        self.session.wait_idle()
    }

    /// `done`, or why not.
    fn set(&mut self, interface: Interface, setting: &Setting) -> String {
        let session = &mut self.session;
        let done = match setting {
            Setting::Up => session.up(interface),
            Setting::Down => session.down(interface),
            Setting::Channels(queues) => session.change(interface, |driver| driver.set_channels(*queues)),
            Setting::Rings(change) => session.change(interface, |driver| driver.set_rings(*change)),
            Setting::Mtu(mtu) => session.change(interface, |driver| driver.set_mtu(*mtu)),
            Setting::Coalesce(queue, change) => session.change(interface, |driver| driver.set_coalesce(*queue, change)),
            Setting::Rss(change) => session.change(interface, |driver| driver.set_rss(change)),
            Setting::Fec(fec) => session.change(interface, |driver| driver.set_fec(*fec)),
            Setting::RestartRx(queue) => session.change(interface, |driver| driver.restart_rx(*queue)),
            Setting::RestartTx(queue) => session.change(interface, |driver| driver.restart_tx(*queue)),
        };
        done.map_or_else(|error| in_full("refused", error), |()| "done".into())
    }

    /// Start afresh what has failed, and the queue that was meddled with if it has not.
    fn restart(
        &mut self,
        interface: Interface,
        meddled: Option<&Setting>,
        said: &mut Vec<String>,
    ) -> Result<(), SessionError> {
        let recovered = self.session.recover(interface)?;
        for queue in &recovered {
            let (side, number, fault) = (queue.side, queue.rel_qid, queue.fault);
            let result = queue.result.as_ref().map_or_else(ToString::to_string, |()| "runs again".into());
            said.push(format!("{side} queue {number}: {}: {result}", placeless(&fault.to_string())));
        }
        if let Some(setting) = meddled.filter(|_| recovered.is_empty()) {
            said.push(self.set(interface, setting));
        }
        Ok(())
    }

    fn write_range(&mut self, func: FuncId, (base, queues): (u16, u16)) -> Result<(), SessionError> {
        let value = u32::from(base) << 16 | u32::from(queues);
        let platform = self.session.bench().function(func);
        Ok(platform.mmio().write32(Bar::Shell, shell::qdma_function(func) + qdma_function::QCONF, value)?)
    }

    fn stray(&mut self, func: FuncId, stray: &Stray, said: &mut Vec<String>) -> Result<(), SessionError> {
        let platform = self.session.bench().function(func);
        let mmio = platform.mmio();
        let mut access = |bar, offset, value: Option<u32>| {
            let text = match value
                .map_or_else(|| mmio.read32(bar, offset), |value| mmio.write32(bar, offset, value).map(|()| 0))
            {
                Ok(read) => format!("{read:#010x}"),
                Err(error) => error.to_string(),
            };
            said.push(text);
        };
        match stray {
            Stray::Table(table) => {
                let base = shell::qdma_function(func) + qdma_function::INDIRECTION_TABLE;
                for (offset, entry) in (base..).step_by(4).zip(table.iter()) {
                    mmio.write32(Bar::Shell, offset, u32::from(*entry))?;
                }
            }
            Stray::Qdma(offset, value) => access(Bar::Qdma, *offset, *value),
            Stray::Shell(offset, value) => access(Bar::Shell, *offset, *value),
            Stray::UserReset(bits) => {
                mmio.write32(Bar::Shell, shell::SYSTEM_CONFIG + system_config::USER_RESET, *bits)?;
                self.session.wait(RESET_NS)?;
                let platform = self.session.bench().function(func);
                let status = shell::SYSTEM_CONFIG + system_config::USER_STATUS;
                said.push(format!("{:#010x}", platform.mmio().read32(Bar::Shell, status)?));
            }
            Stray::Cidx(queue, outside) => {
                let offset = doorbell::offset(doorbell::COMPLETION_CIDX, *queue).unwrap_or(0);
                // One past what the card has: it reads what it holds.
                let own = mmio.read32(Bar::Qdma, offset)?;
                let cidx = outside.unwrap_or((own as u16).wrapping_add(1));
                let word = CompletionCidx {
                    cidx,
                    trigger_mode: TriggerMode::Every,
                    en_stat_desc: true,
                    irq_arm: true,
                    ..CompletionCidx::default()
                };
                mmio.write32(Bar::Qdma, offset, word.to_word())?;
            }
        }
        Ok(())
    }

    fn account(&mut self, said: Vec<String>) -> Result<Account, SessionError> {
        let sum = self.session.sum_by_monitors();
        let mut counts: Rows = sum.drops.iter().map(|(name, count)| (format!("drop {name}"), *count)).collect();
        let moved = [("in at the wire", sum.wire_in), ("out at the wire", sum.wire_out), ("to the host", sum.host_out)];
        counts.extend(moved.map(|(name, count)| (name.to_string(), count)));
        let mut state = Vec::new();
        for interface in self.session.interfaces() {
            let driver = self.session.driver(interface);
            for queue in driver.queue_statistics() {
                let n = queue.rel_qid;
                counts
                    .extend(queue.rx.fields().map(|(name, value)| (format!("{interface} rx_queue_{n}_{name}"), value)));
                counts
                    .extend(queue.tx.fields().map(|(name, value)| (format!("{interface} tx_queue_{n}_{name}"), value)));
            }
            let config = driver.config();
            let (up, queues, mtu, rings) = (driver.is_up(), config.queues, config.mtu, driver.rings());
            let mut line =
                format!("{interface}: up {up}, {queues} queues, MTU {mtu}, rings {} and {}", rings.rx, rings.tx);
            for pair in driver.queues() {
                let stopped = if pair.tx.flow() == TxFlow::Open { "" } else { ", stopped" };
                let _ = write!(line, "; {} {:?}, {:?}{stopped}", pair.rel_qid(), pair.rx.state(), pair.tx.state());
            }
            state.push(line);
        }
        let platform = self.session.bench().function(FuncId(0));
        for (name, offset) in ERROR_REGISTERS {
            state.push(format!("{name} {:#010x}", platform.mmio().read32(Bar::Qdma, offset)?));
        }
        let faults = taken_apart(self.session.log());
        self.session.clear_log();
        Ok(Account { record: self.session.take_record(), said, faults, counts, state })
    }

    /// Read what takes long.
    pub(super) fn look(&mut self) -> Result<Looked, String> {
        self.look_at().map_err(|error| in_full(&self.name, error))
    }

    fn look_at(&mut self) -> Result<Looked, SessionError> {
        let mut looked = Looked::default();
        for interface in self.session.interfaces() {
            let driver = self.session.driver(interface);
            let rows = driver.statistics()?;
            looked.rows.extend(rows.rows().iter().map(|row| (format!("{interface} {}", row.name), row.value)));
            let rss = driver.rss()?;
            looked.rss.push(format!("{interface}: key {}, table {:?}", rss.key, rss.table.entries()));
        }
        Ok(looked)
    }

    /// What must hold of one card alone at rest: every frame has an end by both accounts, no rule of host memory is broken,
    /// and no page is out while nothing runs.
    pub(super) fn alone(&mut self, by_counters: bool) -> Result<(), String> {
        let name = self.name.clone();
        let mut wrong = Vec::new();
        let mut balance = |what: &str, sum: &Sum| {
            if sum.astray() != 0 {
                wrong.push(format!("{what} {} frames are unaccounted for: {sum}", sum.astray()));
            }
        };
        balance("by the monitors", &self.session.sum_by_monitors());
        if by_counters && let Some(sum) = self.session.sum_by_counters().map_err(|error| in_full(&name, error))? {
            balance("by the counters", &sum);
        }
        let memory = self.session.bench().memory();
        wrong.extend(memory.reports(false));
        let (counts, any_up) = (memory.counts(), self.any_up());
        if !any_up && (counts.pages_out, counts.mappings, counts.fragments) != (0, 0, 0) {
            wrong.push(format!("with all interfaces down host memory is held: {counts:?}"));
        }
        wrong.first().map_or(Ok(()), |first| Err(format!("{name}: {first}")))
    }

    fn any_up(&mut self) -> bool {
        let interfaces: Vec<Interface> = self.session.interfaces().collect();
        interfaces.into_iter().any(|interface| self.session.driver(interface).is_up())
    }

    /// End it: everything removed, and nothing wrong.
    pub(super) fn finish(self) -> Result<(), String> {
        let (name, report) = (self.name, self.session.finish());
        report.faults().first().map_or(Ok(()), |first| Err(format!("{name}: at the end: {first}")))
    }
}

/// A log line such as `onic0: C2H: invalid CIDX (bit 14); first queue 3` says several things; which lines they come in is
/// timing.
fn taken_apart(log: &[String]) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for line in log {
        let (who, what) = line.split_once(": ").unwrap_or(("", line));
        parts.extend(what.split("; ").map(|part| format!("{who}: {}", placeless(part))));
    }
    parts.sort();
    parts.dedup();
    parts
}

/// Where in its ring a completion lies is timing, once frames were lost to it.
fn placeless(fault: &str) -> String {
    const ERROR: &str = "has its error bit set";
    match fault.split_once("completion ") {
        Some((whose, rest)) if rest.ends_with(ERROR) => format!("{whose}a completion {ERROR}"),
        _ => fault.into(),
    }
}

/// An error with its causes.
fn in_full(name: &str, error: SessionError) -> String {
    format!("{name}: {}", crate::console::CommandError::from(error).in_full())
}
