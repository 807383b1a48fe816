//! `model`: the whole card in Rust, the shell model and the QDMA model joined at the stream seam.
//!
//! Event driven: it jumps to the next due time of shell, QDMA or wire, and from there does a slice of time at once, each
//! event at its own time within it. Interrupts and wire frames carry their own times; a driver that is told of them at the
//! end of the slice acts no later for it, since the host's interrupt latency is longer than a slice.

use std::collections::VecDeque;

use models::host_memory::HostMemory;
use models::qdma::Qdma;
use models::shell::{BusError, Shell};
use models::time::Time;
use regs::{Bar, FuncId, PortId};

use super::{Card, CardError, Observation, Stop, WireFrame};

/// The behavioural card.
pub struct ModelCard {
    shell: Shell,
    qdma: Qdma,
    now: Time,
    wire: Vec<VecDeque<WireFrame>>,
    gated: bool,
    out: Vec<VecDeque<WireFrame>>,
}

/// Time that a register access takes on the model: a round trip of PCIe and AXI-Lite, so that time passes in poll loops.
const MMIO_PS: u64 = 200_000;

/// How much time is done at once: 64 cycles of axis_aclk, less than any host's interrupt latency. Event by event the same
/// work takes twice as long.
const SLICE_PS: u64 = 256_000;

impl ModelCard {
    /// Join a shell and a QDMA.
    pub fn new(shell: Shell, qdma: Qdma, ports: u8) -> ModelCard {
        let n = usize::from(ports);
        ModelCard {
            shell,
            qdma,
            now: Time::ZERO,
            wire: vec![VecDeque::new(); n],
            gated: true,
            out: vec![VecDeque::new(); n],
        }
    }

    /// When the frame at the head of a port's queue starts, if nothing holds it.
    fn wire_due(&self, port: usize) -> Option<Time> {
        let frame = self.wire[port].front()?;
        let id = PortId(port as u8);
        if self.gated && !self.shell.wire_room(id, frame.data.len()) {
            return None;
        }
        Some(frame.time.max(self.shell.wire_free_at(id)).max(self.now))
    }

    fn next_event(&self) -> Time {
        let mut next =
            self.shell.next_event().unwrap_or(Time::NEVER).min(self.qdma.next_event().unwrap_or(Time::NEVER));
        for port in 0..self.wire.len() {
            next = next.min(self.wire_due(port).unwrap_or(Time::NEVER));
        }
        next
    }

    /// Do all that is due up to `until`, which is the present then.
    fn work(&mut self, until: Time, memory: &mut dyn HostMemory) {
        // The present is the slice's beginning until its work is done: no frame starts before it.
        for port in 0..self.wire.len() {
            while let Some(due) = self.wire_due(port)
                && due <= until
                && let Some(frame) = self.wire[port].pop_front()
            {
                self.shell.wire_rx(due, PortId(port as u8), frame.data, frame.err);
            }
        }
        self.shell.step(until, &mut self.qdma);
        self.qdma.step(until, memory);
        // What the QDMA did may have freed a stalled stream or brought up an H2C frame.
        while self.qdma.take_stream_change() {
            self.shell.step(until, &mut self.qdma);
            self.qdma.step(until, memory);
        }
        self.now = until;
    }

    /// Slice after slice, until `until` or until `stop` says so.
    fn run(
        &mut self,
        until: Time,
        memory: &mut dyn HostMemory,
        mut stop: impl FnMut(&mut ModelCard) -> Option<Stop>,
    ) -> Stop {
        loop {
            if let Some(stop) = stop(self) {
                return stop;
            }
            let next = self.next_event();
            if next > until {
                self.now = self.now.max(until);
                return Stop::Deadline;
            }
            self.work(next.max(self.now).saturating_add(SLICE_PS).min(until), memory);
        }
    }

    /// What a refused BAR2 access is to whoever made it. A bus that hangs shows at once: nobody has to wait for it here.
    fn refused(&self, error: BusError, offset: u32) -> CardError {
        match error {
            BusError::Decode { .. } => CardError::Bus { bar: Bar::Shell, offset, response: "DECERR" },
            BusError::NoAnswer { .. } => CardError::Hang { cycles: 0, at: self.now, what: error.to_string() },
        }
    }

    /// Move frames that have left the shell to their queues; the port of the first.
    fn collect_wire(&mut self) -> Option<PortId> {
        let mut first = None;
        for (port, out) in self.out.iter_mut().enumerate() {
            while let Some((time, data, err)) = self.shell.wire_tx(PortId(port as u8)) {
                out.push_back(WireFrame { data, err, time });
                first = first.or(Some(PortId(port as u8)));
            }
        }
        first
    }
}

impl Card for ModelCard {
    fn name(&self) -> &str {
        "model"
    }

    fn reset(&mut self) -> Result<(), CardError> {
        self.shell.reset();
        self.qdma.reset();
        Ok(())
    }

    fn now(&self) -> Time {
        self.now
    }

    fn advance(&mut self, until: Time, memory: &mut dyn HostMemory) -> Result<Stop, CardError> {
        Ok(self.run(until, memory, |card| match card.qdma.peek_interrupt() {
            Some((func, vector, _)) => Some(Stop::Interrupt { func, vector }),
            None => card.collect_wire().map(Stop::Wire),
        }))
    }

    fn mmio_read(
        &mut self,
        func: FuncId,
        bar: Bar,
        offset: u32,
        memory: &mut dyn HostMemory,
    ) -> Result<u32, CardError> {
        self.run(self.now + MMIO_PS, memory, |_| None);
        match bar {
            Bar::Qdma => Ok(self.qdma.mmio_read(func, offset)),
            Bar::Shell => self.shell.mmio_read(self.now, offset).map_err(|error| self.refused(error, offset)),
        }
    }

    fn mmio_write(
        &mut self,
        func: FuncId,
        bar: Bar,
        offset: u32,
        value: u32,
        _memory: &mut dyn HostMemory,
    ) -> Result<(), CardError> {
        match bar {
            Bar::Qdma => self.qdma.mmio_write(self.now, func, offset, value),
            Bar::Shell => {
                self.shell.mmio_write(self.now, offset, value).map_err(|error| self.refused(error, offset))?
            }
        }
        Ok(())
    }

    fn take_interrupt(&mut self) -> Option<(FuncId, u16, Time)> {
        self.qdma.take_interrupt()
    }

    fn gate_wire(&mut self, gated: bool) {
        self.gated = gated;
    }

    fn wire_in(&mut self, port: PortId, frame: WireFrame) {
        self.wire[usize::from(port.0)].push_back(frame);
    }

    fn wire_queued(&self, port: PortId) -> usize {
        self.wire[usize::from(port.0)].len()
    }

    fn wire_out(&mut self, port: PortId) -> Option<WireFrame> {
        self.out[usize::from(port.0)].pop_front()
    }

    fn observe(&mut self, on: bool) {
        self.shell.observe(on);
    }

    fn observation(&mut self) -> Option<Observation> {
        self.shell.pop_observation()
    }

    fn drops(&self, each: &mut dyn FnMut(&'static str, u64)) {
        let counters = self.qdma.counters();
        counters.c2h.drops().chain(counters.h2c.drops()).for_each(|(reason, frames)| each(reason.name(), frames));
        self.shell.box_drops().iter().for_each(|&(reason, frames)| each(reason, frames));
    }

    fn qdma(&mut self) -> Option<&mut Qdma> {
        Some(&mut self.qdma)
    }

    fn recycle(&mut self) -> Vec<u8> {
        self.shell.recycle()
    }

    fn give_back(&mut self, buffer: Vec<u8>) {
        self.shell.give_back(buffer);
    }

    fn idle(&self) -> bool {
        self.shell.inside() == 0
            && self.qdma.inside() == 0
            && !self.qdma.owes_dma()
            && self.wire.iter().all(VecDeque::is_empty)
    }
}
