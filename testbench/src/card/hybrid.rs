//! `hybrid`: the QDMA model and the shell in RTL, joined at the stream seam by beat adapters.
//!
//! The RTL sets the pace: the QDMA is stepped at edges of `axis_aclk`, and does then what has become due since the last
//! time, each piece of work at its own time. While it sends, that is at every edge at which it has something to do; while
//! the RTL waits for it, when it may have made room; else, slice by slice: nobody sees a difference, and it is cheaper not
//! to leave the RTL's code so often. While nothing moves anywhere, time passes without edges.

use models::host_memory::HostMemory;
use models::qdma::{Qdma, QdmaConfig};
use models::time::Time;
use regs::{Bar, FuncId, PortId};
use rtl_bridge::tops::{self, Library, LoadError, ShellShape};

use super::beats::{RtlConfig, ShellRtl, StartError};
use super::{Card, CardError, Choice, Observation, Shape, Stalls, Stop, WireFrame};
use crate::execute::ExecuteError;

/// Time that a register access to the QDMA takes, as on the model.
const MMIO_PS: u64 = 200_000;

/// For how long the QDMA's work may be put off: less than any host's interrupt latency. Interrupts carry their own times.
const SLICE_PS: u64 = 256_000;

/// The card with our shell in RTL.
pub struct HybridCard {
    shell: ShellRtl,
    qdma: Qdma,
    /// When the QDMA is to be stepped next; too early is harmless.
    qdma_due: Time,
    /// Up to when the QDMA has been stepped.
    stepped: Time,
    /// When it has, or may have, something to do; not after `qdma_due`.
    wanted: Time,
    /// `qdma_due` was planned while the RTL waited for it.
    waited: bool,
    /// It had something to send when it was at work last.
    sends: bool,
    /// The QDMA was at work, or handed something, since somebody looked for interrupts.
    news: bool,
}

/// The card that a choice names, its RTL built if it is not there yet.
///
/// # Errors
/// [`ExecuteError`].
pub fn make(choice: &Choice, shape: &Shape, qdma: QdmaConfig) -> Result<Box<dyn Card>, ExecuteError> {
    let config = RtlConfig::of(&choice.rtl, shape)?;
    let library =
        library(&RtlConfig::top_of(&choice.rtl, shape)).map_err(|error| ExecuteError::Build(error.to_string()))?;
    let card = HybridCard::new(&library, &config, Qdma::new(qdma));
    Ok(Box::new(card.map_err(|error| ExecuteError::Card(error.to_string()))?))
}

/// The shell of a shape; a build reports its steps as lines on stderr.
fn library(top: &ShellShape) -> Result<Library, LoadError> {
    tops::shell(top, &|step, done, of| eprintln!("RTL {}x{}: {step} ({done} of {of} done)", top.functions, top.ports))
}

impl HybridCard {
    /// Join a QDMA and a shell that is started from `library`.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn new(library: &Library, config: &RtlConfig, qdma: Qdma) -> Result<HybridCard, StartError> {
        Ok(HybridCard {
            shell: ShellRtl::start(library, config)?,
            qdma,
            qdma_due: Time::ZERO,
            stepped: Time::ZERO,
            wanted: Time::ZERO,
            waited: false,
            sends: false,
            news: true,
        })
    }

    /// The shell, for its waves, coverage and log.
    pub fn shell(&mut self) -> &mut ShellRtl {
        &mut self.shell
    }

    /// Frames inside, as the monitors and the QDMA count them.
    pub fn inside(&self) -> u64 {
        self.shell.pins.inside() + self.qdma.inside() as u64
    }

    /// The next edge, or a jump over many while nothing moves before `until`. Inlined into the two loops that call it.
    #[inline(always)]
    fn step(&mut self, until: Time, memory: &mut dyn HostMemory) -> Result<(), CardError> {
        if self.shell.is_quiet() {
            self.shell.pins.skip(until.min(self.qdma_due));
        }
        let (time, is_axis) = self.shell.pins.next_edge();
        if is_axis && self.qdma_due <= time {
            self.step_qdma(time, memory);
        }
        let touched = self.shell.edge(&mut self.qdma)?;
        if touched || self.shell.waits_for_qdma() != self.waited {
            self.news |= touched;
            let wanted = if touched { self.wanted.min(self.now()) } else { self.wanted };
            self.plan_qdma(wanted);
        }
        Ok(())
    }

    /// All edges up to `until`, or, if `stops`, up to the first interrupt or wire frame, which it returns.
    fn edges(&mut self, until: Time, stops: bool, memory: &mut dyn HostMemory) -> Result<Option<Stop>, CardError> {
        loop {
            if stops
                && (self.news || self.shell.pins.has_new_out())
                && let Some(stop) = self.stop()
            {
                return Ok(Some(stop));
            }
            if self.shell.pins.next_edge().0 > until {
                return Ok(None);
            }
            self.step(until, memory)?;
        }
    }

    /// An interrupt, or a wire frame that nobody was told of.
    fn stop(&mut self) -> Option<Stop> {
        self.news = self.qdma.peek_interrupt().is_some();
        let interrupt = self.qdma.peek_interrupt().map(|(func, vector, _)| Stop::Interrupt { func, vector });
        interrupt.or_else(|| self.shell.pins.take_new_out().map(Stop::Wire))
    }

    #[inline(never)]
    fn step_qdma(&mut self, now: Time, memory: &mut dyn HostMemory) {
        self.qdma.step(now, memory);
        self.stepped = now;
        self.sends = self.qdma.h2c_busy();
        self.news = true;
        self.shell.qdma_moved(self.sends);
        self.plan_qdma(self.qdma.next_event().unwrap_or(Time::NEVER));
    }

    /// The QDMA has, or may have, something to do from `wanted` on.
    #[inline]
    fn plan_qdma(&mut self, wanted: Time) {
        self.wanted = wanted;
        self.waited = self.shell.waits_for_qdma();
        let slice = self.stepped.saturating_add(SLICE_PS);
        let put_off = match (self.sends, self.waited) {
            (true, _) => Time::ZERO,
            (false, true) => slice.min(self.qdma.next_room()),
            (false, false) => slice,
        };
        self.qdma_due = wanted.max(put_off);
    }

    /// Before a register access: the QDMA does what is due.
    fn catch_up(&mut self, memory: &mut dyn HostMemory) {
        if self.wanted < self.qdma_due {
            self.step_qdma(self.now(), memory);
        }
    }

    /// Run until `until`; interrupts and wire frames wait.
    fn run_until(&mut self, until: Time, memory: &mut dyn HostMemory) -> Result<(), CardError> {
        self.edges(until, false, memory)?;
        self.shell.pins.pass(until);
        if self.wanted <= until {
            self.step_qdma(until, memory);
        }
        Ok(())
    }

    /// A register access to the shell, from its first beat to the answer.
    fn shell_access(&mut self, offset: u32, value: Option<u32>, memory: &mut dyn HostMemory) -> Result<u32, CardError> {
        self.shell.pins.access(offset, value);
        loop {
            self.step(Time::NEVER, memory)?;
            if let Some(data) = self.shell.pins.answer(offset)? {
                return Ok(data);
            }
        }
    }
}

impl Card for HybridCard {
    fn name(&self) -> &str {
        "hybrid"
    }

    fn reset(&mut self) -> Result<(), CardError> {
        self.qdma.reset();
        self.news = true;
        (self.wanted, self.qdma_due) = (self.now(), self.now());
        self.shell.reset()
    }

    fn now(&self) -> Time {
        self.shell.pins.now()
    }

    fn advance(&mut self, until: Time, memory: &mut dyn HostMemory) -> Result<Stop, CardError> {
        if let Some(stop) = self.edges(until, true, memory)? {
            return Ok(stop);
        }
        self.run_until(until, memory)?;
        let interrupt = self.qdma.peek_interrupt().map(|(func, vector, _)| Stop::Interrupt { func, vector });
        Ok(interrupt.unwrap_or(Stop::Deadline))
    }

    fn mmio_read(
        &mut self,
        func: FuncId,
        bar: Bar,
        offset: u32,
        memory: &mut dyn HostMemory,
    ) -> Result<u32, CardError> {
        match bar {
            Bar::Shell => self.shell_access(offset, None, memory),
            Bar::Qdma => {
                self.run_until(self.now() + MMIO_PS, memory)?;
                Ok(self.qdma.mmio_read(func, offset))
            }
        }
    }

    /// A write to the shell takes until its answer, so that a refusal has somebody to go to.
    fn mmio_write(
        &mut self,
        func: FuncId,
        bar: Bar,
        offset: u32,
        value: u32,
        memory: &mut dyn HostMemory,
    ) -> Result<(), CardError> {
        match bar {
            Bar::Shell => self.shell_access(offset, Some(value), memory).map(|_| ()),
            Bar::Qdma => {
                self.catch_up(memory);
                self.qdma.mmio_write(self.now(), func, offset, value);
                self.sends = self.qdma.h2c_busy();
                self.news = true;
                self.plan_qdma(self.now());
                Ok(())
            }
        }
    }

    fn take_interrupt(&mut self) -> Option<(FuncId, u16, Time)> {
        self.qdma.take_interrupt()
    }

    fn gate_wire(&mut self, gated: bool) {
        self.shell.pins.gate_wire(gated);
    }

    fn wire_in(&mut self, port: PortId, frame: WireFrame) {
        self.shell.pins.wire_in(port, frame);
    }

    fn wire_queued(&self, port: PortId) -> usize {
        self.shell.pins.wire_queued(port)
    }

    fn wire_out(&mut self, port: PortId) -> Option<WireFrame> {
        self.shell.pins.wire_out(port)
    }

    fn observe(&mut self, on: bool) {
        self.shell.pins.observe(on);
    }

    fn observation(&mut self) -> Option<Observation> {
        self.shell.pins.observation()
    }

    fn drops(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let counters = self.qdma.counters();
        counters.c2h.drops().chain(counters.h2c.drops()).for_each(|(reason, frames)| each(reason.name(), frames));
    }

    fn stalls(&self) -> Stalls {
        self.shell.stalls()
    }

    /// Whoever asks may change what it does next.
    fn qdma(&mut self) -> Option<&mut Qdma> {
        self.shell.qdma_moved(true);
        (self.wanted, self.qdma_due) = (self.now(), self.now());
        Some(&mut self.qdma)
    }

    fn recycle(&mut self) -> Vec<u8> {
        self.shell.pins.recycle()
    }

    fn give_back(&mut self, buffer: Vec<u8>) {
        self.shell.pins.give_back(buffer);
    }

    fn idle(&self) -> bool {
        self.shell.idle() && self.qdma.inside() == 0 && !self.qdma.owes_dma()
    }

    fn close(&mut self) {
        self.shell.pins.close();
    }
}
