//! Bring-up of a function, step by step in the vendor driver's order, and its undoing in reverse.

use alloc::vec::Vec;
use core::fmt;

use regs::{Bar, PortId, qdma_function, shell};

use crate::config::DeviceConfig;
use crate::context::Contexts;
use crate::csr::{self, Sizes};
use crate::error::{BringUpError, Cause};
use crate::platform::{DmaMemory, Interrupts, Mmio, MmioError, Platform, Vector};
use crate::{card_errors, cmac, rss};

/// One step of bring-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The configuration, vectors and sizes, before anything is written.
    Settings,
    /// The function's range of queues in the QDMA (FMAP).
    FunctionMap,
    /// The same in the shell.
    QueueConfig,
    /// RSS indirection table.
    RssTable,
    /// RSS key, if one is configured.
    RssKey,
    /// CSRs: written by function 0, read by others.
    Csrs,
    /// The CMAC of a port: set up by function 0, looked for by others.
    Cmac(PortId),
    /// Error interrupt: function 0.
    ErrorInterrupt,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Settings => f.write_str("the settings"),
            Step::FunctionMap => f.write_str("the function map"),
            Step::QueueConfig => f.write_str("the shell's queue range"),
            Step::RssTable => f.write_str("the RSS table"),
            Step::RssKey => f.write_str("the RSS key"),
            Step::Csrs => f.write_str("the CSRs"),
            Step::Cmac(port) => write!(f, "the CMAC of {port}"),
            Step::ErrorInterrupt => f.write_str("the error interrupt"),
        }
    }
}

/// How the function's vectors are used: queue vectors first, then the user interrupt, then function 0's error interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Vectors {
    queues: u16,
    granted: u16,
    reserved: u16,
    pub(crate) error: Option<Vector>,
}

impl Vectors {
    fn new(config: &DeviceConfig, granted: u16) -> Result<Self, Cause> {
        let reserved = if config.master { 2 } else { 1 };
        let queues = granted.saturating_sub(reserved);
        let error = if config.master && granted >= reserved { Some(Vector(granted - 1)) } else { None };
        let vectors = Self { queues, granted, reserved, error };
        if config.moderation.interrupt {
            vectors.check_queues()?;
        }
        Ok(vectors)
    }

    /// Is there a vector for queues?
    pub(crate) fn check_queues(self) -> Result<(), Cause> {
        let Self { granted, reserved, .. } = self;
        if self.queues == 0 { Err(Cause::NoVectors { granted, reserved }) } else { Ok(()) }
    }

    /// The vector of a queue; queues share when there are fewer vectors. 0, and unused, when everything is polled.
    pub(crate) fn of_queue(self, rel_qid: u16) -> Vector {
        Vector(rel_qid.checked_rem(self.queues).unwrap_or(0))
    }
}

/// What bring-up has found out.
pub(crate) struct Brought {
    pub(crate) sizes: Sizes,
    pub(crate) vectors: Vectors,
}

/// Do all steps. If one fails, it and those before it are undone, last first.
pub(crate) fn bring_up<P: Platform>(platform: &P, config: &DeviceConfig) -> Result<Brought, BringUpError> {
    let at = |step| move |cause| BringUpError { step, cause };
    let vectors = settings(platform, config).map_err(at(Step::Settings))?;
    let page_bytes = platform.dma().page_size();
    let mut sizes = None;
    if config.master {
        sizes = Some(Sizes::plan(config, page_bytes).map_err(at(Step::Settings))?);
    }
    let mut begun = Vec::new();
    for step in steps(config, vectors) {
        begun.push(step);
        if let Err(cause) = run(step, platform, config, vectors, &mut sizes) {
            undo(&begun, platform, config, vectors);
            return Err(BringUpError { step, cause });
        }
    }
    match sizes {
        Some(sizes) => Ok(Brought { sizes, vectors }),
        // `Csrs` is among the steps of every function and sets it.
        None => unreachable!("no sizes after {:?}", Step::Csrs),
    }
}

/// Take a function down for good: what bring-up did, backwards. CMACs stay as they are, others may use them. Every step is
/// tried; the first error is told.
pub(crate) fn tear_down<P: Platform>(platform: &P, config: &DeviceConfig, vectors: Vectors) -> Result<(), Cause> {
    let undone = |step: &Step| !matches!(step, Step::Cmac(_));
    let mut result = Ok(());
    for step in steps(config, vectors).into_iter().rev().filter(undone) {
        // Once more if it fails: there is no later attempt.
        let done = undo_step(step, platform, config, vectors);
        result = result.and(done.or_else(|_| undo_step(step, platform, config, vectors)));
    }
    result
}

fn settings<P: Platform>(platform: &P, config: &DeviceConfig) -> Result<Vectors, Cause> {
    config.check()?;
    Vectors::new(config, platform.interrupts().count())
}

fn steps(config: &DeviceConfig, vectors: Vectors) -> Vec<Step> {
    let mut steps = Vec::from([Step::FunctionMap, Step::QueueConfig, Step::RssTable]);
    if config.rss_key.is_some() {
        steps.push(Step::RssKey);
    }
    steps.push(Step::Csrs);
    steps.extend(config.ports.iter().map(|port| Step::Cmac(*port)));
    if vectors.error.is_some() {
        steps.push(Step::ErrorInterrupt);
    }
    steps
}

fn run<P: Platform>(
    step: Step,
    platform: &P,
    config: &DeviceConfig,
    vectors: Vectors,
    sizes: &mut Option<Sizes>,
) -> Result<(), Cause> {
    let mmio = platform.mmio();
    match step {
        Step::Settings => {}
        Step::FunctionMap => {
            contexts(platform, config).write_fmap(config.func, config.base(), config.queues)?;
        }
        Step::QueueConfig => write_qconf(mmio, config, config.queues)?,
        Step::RssTable => {
            let table = config.rss_table.map_or_else(|| rss::Table::equal(config.queues), Ok);
            rss::write_table(mmio, config.func, &table.map_err(crate::ConfigError::Rss)?)?;
        }
        Step::RssKey => {
            if let Some(key) = config.rss_key {
                rss::write_key(mmio, config.func, key)?;
            }
        }
        Step::Csrs => match sizes {
            Some(sizes) => csr::program(mmio, config.ip_version, sizes)?,
            None => *sizes = Some(Sizes::find(mmio, config, platform.dma().page_size())?),
        },
        Step::Cmac(port) if config.master => cmac::set_up(platform, config, port)?,
        Step::Cmac(port) => cmac::probe(mmio, port)?,
        Step::ErrorInterrupt => {
            if let Some(vector) = vectors.error {
                platform.interrupts().enable(vector)?;
                card_errors::set_up(mmio, config.ip_version, config.func, vector)?;
            }
        }
    }
    Ok(())
}

/// Undo what was begun. An error here changes nothing: the card doesn't answer, the cause is known already, and the next
/// bring-up clears before it sets.
fn undo<P: Platform>(begun: &[Step], platform: &P, config: &DeviceConfig, vectors: Vectors) {
    for step in begun.iter().rev() {
        let _ = undo_step(*step, platform, config, vectors);
    }
}

fn undo_step<P: Platform>(step: Step, platform: &P, config: &DeviceConfig, vectors: Vectors) -> Result<(), Cause> {
    let mmio = platform.mmio();
    match step {
        // Without queues nothing looks at these.
        Step::Settings | Step::RssTable | Step::RssKey | Step::Csrs => {}
        Step::FunctionMap => contexts(platform, config).clear_fmap(config.func)?,
        Step::QueueConfig => write_qconf(mmio, config, 0)?,
        Step::Cmac(port) if config.master => cmac::disable(mmio, port)?,
        Step::Cmac(_) => {}
        Step::ErrorInterrupt => {
            // The vector first: that works even if the card is gone.
            if let Some(vector) = vectors.error {
                platform.interrupts().disable(vector)?;
            }
            card_errors::disable(mmio)?;
        }
    }
    Ok(())
}

/// The shell's range of queues; no queues also clears the base.
pub(crate) fn write_qconf(mmio: &impl Mmio, config: &DeviceConfig, queues: u16) -> Result<(), MmioError> {
    let base = if queues == 0 { 0 } else { config.base() };
    let value = u32::from(base) << 16 | u32::from(queues);
    mmio.write32(Bar::Shell, shell::qdma_function(config.func) + qdma_function::QCONF, value)
}

pub(crate) fn contexts<'a, P: Platform>(platform: &'a P, config: &DeviceConfig) -> Contexts<'a, P> {
    Contexts::new(platform, config.timeouts.context_ns)
}
