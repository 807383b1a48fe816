//! Where every frame is, at any time and at the end.

use std::fmt;

use driver_core::Platform as _;
use regs::FuncId;

use super::{Interface, Session, SessionError};
use crate::counters;
use crate::host_memory::MemoryCounts;
use crate::outcome::Sum;

impl Session {
    /// The sum by the testbench's own count. Frames that are on their way count as inside.
    pub fn sum_by_monitors(&mut self) -> Sum {
        self.collect();
        let moved = self.moved();
        let mut sum = Sum {
            wire_in: moved.wire_in,
            host_in: moved.host_in,
            host_out: moved.host_out,
            wire_out: moved.wire_out,
            drops: self.tally.lost.drops.clone(),
            inside: 0,
        };
        self.bench.card(|card| card.drops(&mut |reason, frames| sum.lost(&format!("qdma.{reason}"), frames)));
        for driver in &self.drivers {
            sum.lost("host.stopping", driver.rx_totals().dropped_stopping);
        }
        // Of what the driver gave up the card may have taken some all the same; it alone knows.
        let abandoned = self.drivers.iter().map(|driver| driver.tx_totals().abandoned).sum();
        if abandoned > 0 {
            let taken = self.bench.card(|card| card.qdma().map(|qdma| qdma.counters().h2c.frames_in));
            sum.lost("host.abandoned", taken.map_or(abandoned, |taken| sum.host_in.saturating_sub(taken)));
        }
        if !self.is_quiet() {
            sum.inside = u64::try_from(sum.missing()).unwrap_or(0);
        }
        sum
    }

    /// The sum by the card's own counters; `None` from a card whose counters can't tell.
    ///
    /// # Errors
    /// [`SessionError::Mmio`].
    pub fn sum_by_counters(&self) -> Result<Option<Sum>, SessionError> {
        Ok(counters::read(self.bench.function(FuncId(0)).mmio(), &self.setup.shape)?)
    }

    /// What is held of host memory.
    pub fn memory(&self) -> MemoryCounts {
        self.bench.memory().counts()
    }

    /// End: no more traffic, wait until all is quiet, draw up the sums, remove the drivers, and look what of host
    /// memory is left. A card that has stopped is looked at all the same, as far as it goes.
    pub fn finish(mut self) -> Report {
        self.stop();
        self.host_held = false;
        let quiet = self.wait_idle();
        let by_counters = self.sum_by_counters();
        let by_monitors = self.sum_by_monitors();
        let removed = self.remove();
        let memory = self.bench.memory();
        let mut memory_reports: Vec<String> = memory.violations().iter().map(ToString::to_string).collect();
        if memory.violations_dropped() > 0 {
            memory_reports.push(format!("host memory: and {} more broken rules", memory.violations_dropped()));
        }
        memory_reports.extend(memory.leaks().iter().map(ToString::to_string));
        let (stopped, by_counters) = match (quiet.and(removed), by_counters) {
            (Err(error), counters) => (Some(error), counters.ok().flatten()),
            (Ok(()), Err(error)) => (Some(error), None),
            (Ok(()), Ok(counters)) => (None, counters),
        };
        Report {
            card: self.card.clone(),
            stopped: stopped.map(|error| crate::console::CommandError::from(error).in_full()),
            by_counters,
            by_monitors,
            memory: memory.counts(),
            memory_reports,
            log: std::mem::take(&mut self.log),
        }
    }

    /// All drivers, the last first; the first error of any.
    fn remove(&mut self) -> Result<(), SessionError> {
        let mut removed = Ok(());
        for driver in self.drivers.drain(..).rev() {
            let interface = Interface(driver.config().func.0);
            let gone = driver.remove().map_err(|source| SessionError::Change { interface, source });
            removed = removed.and(gone);
        }
        removed
    }
}

/// What a session leaves behind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The card's name.
    pub card: String,
    /// What kept the session from ending as it should: a card that has stopped or hangs.
    pub stopped: Option<String>,
    /// The sum by the card's own counters; `None` where they can't tell.
    pub by_counters: Option<Sum>,
    /// The sum by the testbench's own count.
    pub by_monitors: Sum,
    /// What is held of host memory once the drivers are gone.
    pub memory: MemoryCounts,
    /// Broken rules and leaks.
    pub memory_reports: Vec<String>,
    /// What the drivers said and nobody read.
    pub log: Vec<String>,
}

impl Report {
    /// What is wrong, a line each: broken sums, counts of card and testbench that differ, memory reports, unread
    /// faults.
    pub fn faults(&self) -> Vec<String> {
        let mut faults: Vec<String> = self.stopped.iter().cloned().collect();
        let sums = [("the card's counters", self.by_counters.as_ref()), ("the port monitors", Some(&self.by_monitors))];
        for (source, sum) in sums.into_iter().filter_map(|(source, sum)| Some((source, sum?))) {
            if sum.astray() != 0 {
                faults.push(format!("by {source} {} frames are unaccounted for: {sum}", sum.astray()));
            }
        }
        if let Some(counters) = &self.by_counters {
            let stopping = self.by_monitors.drops.get("host.stopping").copied().unwrap_or(0);
            let pairs = [
                ("in at the wire", counters.wire_in, self.by_monitors.wire_in),
                ("to the host", counters.host_out, self.by_monitors.host_out + stopping),
                ("out at the wire", counters.wire_out, self.by_monitors.wire_out),
            ];
            let differing = pairs.into_iter().filter(|(_, card, testbench)| card != testbench);
            faults.extend(differing.map(|(what, card, testbench)| {
                format!("frames {what}: the card counts {card}, the testbench {testbench}")
            }));
        }
        faults.extend(self.memory_reports.iter().cloned());
        faults.extend(self.log.iter().cloned());
        faults
    }

    /// Nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.faults().is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.by_counters {
            Some(sum) => writeln!(f, "counters  {sum}")?,
            None => writeln!(f, "counters  can't tell on this card")?,
        }
        writeln!(f, "monitors  {}", self.by_monitors)?;
        let MemoryCounts { pages_out, mappings, regions, .. } = self.memory;
        writeln!(f, "memory    {pages_out} pages out, {mappings} mappings, {regions} regions")?;
        self.faults().iter().try_for_each(|fault| writeln!(f, "{fault}"))
    }
}
