//! Where every frame is, at any time and at the end.

use std::fmt;

use driver_core::{Driver, Platform as _};
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
        sum.lost("host.abandoned", self.abandoned());
        if !self.is_quiet() {
            sum.inside = u64::try_from(sum.missing()).unwrap_or(0);
        }
        sum
    }

    /// Frames that the drivers gave up and the card never had.
    fn abandoned(&mut self) -> u64 {
        self.settle_abandoned();
        self.abandoned.never_taken + self.not_taken().min(self.unsettled())
    }

    /// Find out what became of the frames that the drivers gave up. The card may have taken some of them all the same, and
    /// only the total of what it took is known: it can be told while no other frame is under way. From then on the number
    /// stands, or it would explain away any frame that is lost later.
    pub(super) fn settle_abandoned(&mut self) {
        let given_up = self.unsettled();
        let mut pairs = self.drivers.iter_mut().flat_map(Driver::queues);
        if given_up == 0 || pairs.any(|pair| pair.tx.outstanding() > 0) {
            return;
        }
        self.abandoned.never_taken += self.not_taken().min(given_up);
        self.abandoned.settled += given_up;
    }

    /// Frames that were given up since the last time that it could be told.
    fn unsettled(&self) -> u64 {
        let given_up: u64 = self.drivers.iter().map(|driver| driver.tx_totals().abandoned).sum();
        given_up - self.abandoned.settled
    }

    /// Posted frames that the card has not taken, those left out that are known never to be.
    fn not_taken(&self) -> u64 {
        let taken = self.bench.card(|card| card.dma_counts().map(|counts| counts.h2c_taken));
        // A card that can't tell has had none of what was given up.
        let not_taken = taken.map_or(u64::MAX, |taken| self.tally.host_in.saturating_sub(taken));
        not_taken.saturating_sub(self.abandoned.never_taken)
    }

    /// Frames that the host posted and the shell never got.
    fn lost_before_shell(&mut self) -> u64 {
        let in_dma = self.bench.card(|card| card.dma_counts().map_or(0, |counts| counts.h2c_lost));
        self.abandoned() + in_dma
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
        let lost_before_shell = self.lost_before_shell();
        let error_entries = self.bench.card(|card| card.dma_counts().map_or(0, |counts| counts.c2h_error_entries));
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
            lost_before_shell,
            error_entries,
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
    /// Frames that the host made and the shell never got: given up by a driver, or lost by the DMA engine under a name. The
    /// card's counters know nothing of them.
    pub lost_before_shell: u64,
    /// Frames of which the host got no more than a completion with its error bit. The card's counters take them for frames
    /// that went out.
    pub error_entries: u64,
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
                ("made by the host", counters.host_in + self.lost_before_shell, self.by_monitors.host_in),
                ("to the host", counters.host_out, self.by_monitors.host_out + stopping + self.error_entries),
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

#[cfg(test)]
mod tests {
    use driver_core::Mmio as _;
    use regs::Bar;

    use super::*;
    use crate::card::Choice;
    use crate::frames::udp;
    use crate::run::{HostFrame, Setup};

    /// The transmit doorbell of queue 0 in BAR0.
    const H2C_PIDX: u32 = 0x1_8004;

    fn send(session: &mut Session, frames: u64) {
        let frame = |number| HostFrame { func: FuncId(0), queue: 0, data: udp(0, number, 100).expect("a frame") };
        session.send((0..frames).map(frame)).expect("up");
    }

    /// A session whose driver gave up 40 frames: those of a queue that a bad doorbell had stopped while they were under way.
    fn given_up() -> Session {
        let mut session = Session::start(&Choice::named("model"), &Setup::default()).expect("a card");
        send(&mut session, 100);
        session.wait_idle().expect("all through");
        send(&mut session, 40);
        session.bench.function(FuncId(0)).mmio().write32(Bar::Qdma, H2C_PIDX, 0xffff).expect("a doorbell");
        session.wait(10_000).expect("a card that runs");
        session.recover(Interface(0)).expect("a queue that starts afresh");
        session.clear_log();
        assert!(session.drivers[0].tx_totals().abandoned > 0, "a stopped queue sends nothing");
        session
    }

    #[test]
    fn what_a_driver_gave_up_has_a_name() {
        let mut session = given_up();
        send(&mut session, 50);
        session.wait_idle().expect("all through");
        let report = session.finish();
        assert!(report.is_clean(), "{report}");
        let wire_out = report.by_monitors.wire_out;
        assert_eq!((report.by_monitors.host_in, wire_out + report.lost_before_shell), (190, 190), "{report}");
    }

    #[test]
    fn what_is_lost_after_it_is_seen() {
        let mut session = given_up();
        send(&mut session, 50);
        // Counted as posted, and on no ring.
        session.tally.host_in += 1;
        session.wait_idle().expect("all through");
        let faults = session.finish().faults();
        assert!(
            faults.iter().any(|fault| fault.contains("by the port monitors 1 frames are unaccounted for")),
            "{faults:?}"
        );
        assert!(faults.iter().any(|fault| fault.starts_with("frames made by the host: ")), "{faults:?}");
    }
}
