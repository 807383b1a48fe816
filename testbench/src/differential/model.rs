//! The QDMA model as an engine under test.

use std::collections::VecDeque;

use models::host_memory::HostMemory;
use models::qdma::{Qdma, QdmaConfig};
use models::stream::{C2hCompletion, C2hFrame, H2cFrame, Offer, QdmaStream};
use models::time::Time;
use regs::FuncId;

use super::engine::{Engine, Hold, Interrupt, Shape};

/// One beat of 64 bytes on a stream, ps: a cycle of 250 MHz.
const BEAT_PS: u64 = 4_000;

/// How the model is stepped. What a driver and a shell see must not depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Time that a register access takes, ps.
    pub access_ps: u64,
    /// Longest step, ps. Frames come and go at its ends.
    pub step_ps: u64,
}

impl Default for Pace {
    /// An access takes a cycle; steps go from event to event.
    fn default() -> Pace {
        Pace { access_ps: BEAT_PS, step_ps: u64::MAX }
    }
}

/// The model, with the shell's ends of its streams.
pub struct ModelEngine {
    name: &'static str,
    qdma: Qdma,
    pace: Pace,
    now: Time,
    waiting: VecDeque<(C2hFrame, Option<C2hCompletion>)>,
    /// When the C2H stream is free for the next frame.
    stream_free: Time,
    /// The stream's head was refused; only [`Qdma::take_stream_change`] ends that.
    refused: bool,
    held: bool,
    taken: VecDeque<H2cFrame>,
}

impl ModelEngine {
    /// A model of this shape.
    pub fn new(shape: &Shape) -> ModelEngine {
        ModelEngine::with("model", ModelEngine::config(shape), Pace::default())
    }

    /// The configuration that the RTL agrees with: the defaults where they do not matter.
    pub fn config(shape: &Shape) -> QdmaConfig {
        QdmaConfig { num_queues: shape.queues, num_functions: shape.functions, ..QdmaConfig::default() }
    }

    /// A model with another configuration, or stepped in another way.
    pub fn with(name: &'static str, config: QdmaConfig, pace: Pace) -> ModelEngine {
        ModelEngine {
            name,
            qdma: Qdma::new(config),
            pace,
            now: Time::ZERO,
            waiting: VecDeque::new(),
            stream_free: Time::ZERO,
            refused: false,
            held: false,
            taken: VecDeque::new(),
        }
    }

    /// When the frame at the stream's head can go in.
    fn next_offer(&self) -> Time {
        if self.waiting.is_empty() || self.refused { Time::NEVER } else { self.stream_free.max(self.now) }
    }

    /// When something happens next, [`Time::NEVER`] if nothing does by itself.
    fn next_event(&self) -> Time {
        self.qdma.next_event().unwrap_or(Time::NEVER).min(self.next_offer())
    }

    /// Offer the stream's head, if it is due.
    fn offer(&mut self) {
        while self.next_offer() <= self.now {
            let Some((frame, _)) = self.waiting.front() else { return };
            let (qid, len) = (frame.qid, frame.data.len());
            if self.qdma.c2h_offer(self.now, qid, len as u16) == Offer::Stall {
                self.refused = true;
                return;
            }
            let Some((frame, completion)) = self.waiting.pop_front() else { return };
            self.stream_free = self.now.saturating_add(BEAT_PS * (len.div_ceil(64).max(1) as u64));
            self.qdma.c2h_frame(self.now, frame);
            if let Some(completion) = completion {
                self.qdma.c2h_completion(self.now, completion);
            }
        }
    }

    /// Both streams, at the present.
    fn streams(&mut self) {
        self.refused &= !self.qdma.take_stream_change();
        self.offer();
        while !self.held
            && let Some(frame) = self.qdma.h2c_take(self.now)
        {
            self.taken.push_back(frame);
        }
    }

    /// One step, to the next event or as far as the pace allows, at most to `until`.
    fn step(&mut self, until: Time, memory: &mut dyn HostMemory) {
        let longest = self.now.saturating_add(self.pace.step_ps);
        let next = if self.pace.step_ps == u64::MAX { self.next_event() } else { longest };
        self.now = next.clamp(self.now, until);
        self.qdma.step(self.now, memory);
        self.streams();
    }
}

impl Engine for ModelEngine {
    fn name(&self) -> &'static str {
        self.name
    }

    fn now(&self) -> Time {
        self.now
    }

    fn read(&mut self, func: FuncId, offset: u32, memory: &mut dyn HostMemory) -> u32 {
        self.advance(self.now.saturating_add(self.pace.access_ps), memory);
        self.qdma.mmio_read(func, offset)
    }

    fn write(&mut self, func: FuncId, offset: u32, value: u32, memory: &mut dyn HostMemory) {
        self.advance(self.now.saturating_add(self.pace.access_ps), memory);
        self.qdma.mmio_write(self.now, func, offset, value);
    }

    fn advance(&mut self, until: Time, memory: &mut dyn HostMemory) {
        while self.now < until {
            self.step(until, memory);
        }
        self.qdma.step(self.now, memory);
        self.streams();
    }

    fn settle(&mut self, _quiet_ps: u64, limit_ps: u64, memory: &mut dyn HostMemory) -> bool {
        let limit = self.now.saturating_add(limit_ps);
        self.streams();
        while self.next_event() != Time::NEVER {
            if self.next_event() > limit {
                return false;
            }
            self.step(limit, memory);
        }
        true
    }

    fn receive(&mut self, frame: C2hFrame, completion: Option<C2hCompletion>) {
        self.waiting.push_back((frame, completion));
    }

    fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn hold(&mut self, place: Hold, on: bool) {
        if place == Hold::H2cStream {
            self.held = on;
        }
    }

    fn take_h2c(&mut self) -> Option<H2cFrame> {
        self.taken.pop_front()
    }

    fn take_interrupt(&mut self) -> Option<Interrupt> {
        let (func, vector, at) = self.qdma.take_interrupt()?;
        Some(Interrupt { func, vector, at })
    }
}
