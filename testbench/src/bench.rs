//! A card on a bench: the card, the host memory it is lent, its interrupts, and the four seams that a driver needs.
//!
//! One [`Bench`] is one simulated machine. Time passes only inside it: in [`Bench::advance`], in a register read, in
//! [`driver_core::Clock::wait`]. It is deterministic as long as one thread uses it; several may, for worker mode.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use driver_core::{Clock, InterruptError, Interrupts, Mmio, MmioError, Platform, Vector};
use models::time::Time;
use regs::{Bar, FuncId, PortId};

use crate::card::{Card, CardError, Observation, Stop, WireFrame};
use crate::host_memory::{FunctionDma, SharedMemory};

/// MSI-X vectors that OpenNIC's QDMA grants: 10 to function 0, 9 to the others. Source: qdma.md section 1.
pub const fn vectors_of(func: FuncId) -> u16 {
    if func.0 == 0 { 10 } else { 9 }
}

struct CardState {
    card: Box<dyn Card>,
    /// Interrupts that nobody was told of yet, with their times.
    raised: VecDeque<(FuncId, Time)>,
    error: Option<CardError>,
    /// What a stopped card's clock has gone on by, so that a driver's time-outs still end.
    stopped_ps: u64,
}

/// Mask and pending bits of one function.
#[derive(Default)]
struct VectorBits {
    enabled: AtomicU64,
    pending: AtomicU64,
}

/// One simulated machine with one card in it.
pub struct Bench {
    card: Mutex<CardState>,
    memory: Arc<SharedMemory>,
    vectors: Vec<VectorBits>,
    hang_ns: u64,
}

impl Bench {
    /// Put `card` into a machine. `hang_cycles` of axis_aclk (4 ns) are what a register access may take.
    pub fn new(card: Box<dyn Card>, functions: u8, check_memory: bool, hang_cycles: u64) -> Arc<Bench> {
        Arc::new(Bench {
            card: Mutex::new(CardState { card, raised: VecDeque::new(), error: None, stopped_ps: 0 }),
            memory: SharedMemory::new(check_memory),
            vectors: (0..functions).map(|_| VectorBits::default()).collect(),
            hang_ns: hang_cycles.saturating_mul(4),
        })
    }

    /// The host memory.
    pub fn memory(&self) -> &Arc<SharedMemory> {
        &self.memory
    }

    /// What a driver of `func` is given.
    pub fn function(self: &Arc<Self>, func: FuncId) -> FunctionPlatform {
        let dma = self.memory.function(func);
        FunctionPlatform { port: FunctionPort { bench: Arc::clone(self), func }, dma }
    }

    /// Power-up reset, and wait until every module is out of it, as a board has long been when its driver is loaded.
    ///
    /// # Errors
    /// [`CardError`]; [`CardError::Hang`] if a module stays in reset.
    pub fn reset(&self) -> Result<(), CardError> {
        self.with_card(|card, _| card.reset())?;
        let status = regs::shell::SYSTEM_CONFIG + regs::system_config::SYSTEM_STATUS;
        let limit = self.now().saturating_add(self.hang_ns.saturating_mul(1_000));
        while self.with_card(|card, memory| card.mmio_read(FuncId(0), Bar::Shell, status, &mut memory.lend()))? & 1 == 0
        {
            if self.now() > limit {
                let what = "SYSTEM_STATUS bit 0 after power-up".into();
                return Err(CardError::Hang { cycles: self.hang_ns / 4, at: self.now(), what });
            }
        }
        Ok(())
    }

    /// Run until `until` or the first interrupt or wire frame. Interrupts are already pending when it returns.
    ///
    /// # Errors
    /// [`CardError`].
    pub fn advance(&self, until: Time) -> Result<Stop, CardError> {
        self.with_card(|card, memory| {
            let stop = card.advance(until, &mut memory.lend())?;
            memory.set_now(card.now());
            Ok(stop)
        })
    }

    /// Simulated time.
    pub fn now(&self) -> Time {
        let state = self.lock();
        state.card.now().saturating_add(state.stopped_ps)
    }

    /// Give a frame to a port's wire.
    pub fn wire_in(&self, port: PortId, frame: WireFrame) {
        self.lock().card.wire_in(port, frame);
    }

    /// Give frames to a port's wire from `next` until `depth` of them wait there or there are no more.
    pub fn feed(&self, port: PortId, depth: usize, mut next: impl FnMut(Vec<u8>) -> Option<WireFrame>) {
        let mut state = self.lock();
        while state.card.wire_queued(port) < depth {
            let buffer = state.card.recycle();
            let Some(frame) = next(buffer) else { return };
            state.card.wire_in(port, frame);
        }
    }

    /// The next frame that left a port.
    pub fn wire_out(&self, port: PortId) -> Option<WireFrame> {
        self.lock().card.wire_out(port)
    }

    /// Give back the buffer of a frame that [`Bench::wire_out`] gave.
    pub fn give_back(&self, buffer: Vec<u8>) {
        self.lock().card.give_back(buffer);
    }

    /// Frames that wait outside a port.
    pub fn wire_queued(&self, port: PortId) -> usize {
        self.lock().card.wire_queued(port)
    }

    /// Hold frames at the wire until there is room for them.
    pub fn gate_wire(&self, gated: bool) {
        self.lock().card.gate_wire(gated);
    }

    /// Functions that raised interrupts since the last call, with the times, oldest first. Which vectors are pending,
    /// [`Interrupts::take`] says.
    pub fn drain_raised(&self, mut each: impl FnMut(FuncId, Time)) {
        loop {
            // The lock is let go in between: who is told may well ask for a register.
            let Some((func, time)) = self.lock().raised.pop_front() else { return };
            each(func, time);
        }
    }

    /// What the card's monitors saw, oldest first.
    pub fn drain_observations(&self, mut each: impl FnMut(Observation)) {
        let mut state = self.lock();
        while let Some(observation) = state.card.observation() {
            each(observation);
        }
    }

    /// Nothing inside the card moves until something from outside does.
    pub fn idle(&self) -> bool {
        self.lock().card.idle()
    }

    /// Why the card stopped, if it did.
    pub fn error(&self) -> Option<CardError> {
        self.lock().error.clone()
    }

    /// Let someone look at the card itself.
    pub fn card<R>(&self, look: impl FnOnce(&mut dyn Card) -> R) -> R {
        look(&mut *self.lock().card)
    }

    fn lock(&self) -> MutexGuard<'_, CardState> {
        self.card.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Call into the card, unless it has stopped; then note interrupts, and the error that stops it now.
    fn with_card<R>(
        &self,
        call: impl FnOnce(&mut dyn Card, &SharedMemory) -> Result<R, CardError>,
    ) -> Result<R, CardError> {
        let mut state = self.lock();
        if let Some(error) = &state.error {
            return Err(error.clone());
        }
        let result = call(&mut *state.card, &self.memory);
        while let Some((func, vector, time)) = state.card.take_interrupt() {
            self.raise(func, vector);
            state.raised.push_back((func, time));
        }
        if let Err(error @ (CardError::Rtl { .. } | CardError::Hang { .. })) = &result {
            state.error = Some(error.clone());
        }
        result
    }

    fn raise(&self, func: FuncId, vector: u16) {
        if let Some(bits) = self.vectors.get(usize::from(func.0))
            && vector < 64
        {
            bits.pending.fetch_or(1 << vector, Ordering::AcqRel);
        }
    }
}

/// Registers, clock and interrupts of one function.
#[derive(Clone)]
pub struct FunctionPort {
    bench: Arc<Bench>,
    func: FuncId,
}

impl FunctionPort {
    fn mmio_error(&self, bar: Bar, offset: u32, error: CardError) -> MmioError {
        match error {
            CardError::Bus { response, .. } => MmioError::Bus { bar, offset, response },
            CardError::Hang { .. } => MmioError::TimedOut { bar, offset, waited_ns: self.bench.hang_ns },
            CardError::Rtl { .. } => MmioError::Stopped { bar, offset },
        }
    }

    fn bits(&self, vector: Vector) -> Result<(&VectorBits, u64), InterruptError> {
        let count = self.count();
        let bits = self.bench.vectors.get(usize::from(self.func.0)).filter(|_| vector.0 < count);
        bits.map(|bits| (bits, 1 << vector.0)).ok_or(InterruptError::NoSuchVector { vector: vector.0, count })
    }
}

impl Mmio for FunctionPort {
    fn read32(&self, bar: Bar, offset: u32) -> Result<u32, MmioError> {
        self.bench
            .with_card(|card, memory| card.mmio_read(self.func, bar, offset, &mut memory.lend()))
            .map_err(|error| self.mmio_error(bar, offset, error))
    }

    fn write32(&self, bar: Bar, offset: u32, value: u32) -> Result<(), MmioError> {
        self.bench
            .with_card(|card, memory| card.mmio_write(self.func, bar, offset, value, &mut memory.lend()))
            .map_err(|error| self.mmio_error(bar, offset, error))
    }
}

impl Clock for FunctionPort {
    fn now(&self) -> u64 {
        self.bench.now().as_ns()
    }

    fn wait(&self, ns: u64) {
        let until = self.bench.now().saturating_add(ns.saturating_mul(1000));
        loop {
            match self.bench.advance(until) {
                Ok(Stop::Deadline) => return,
                Ok(_) => {}
                Err(_) => {
                    self.bench.lock().stopped_ps += ns.saturating_mul(1000);
                    return;
                }
            }
        }
    }
}

impl Interrupts for FunctionPort {
    fn count(&self) -> u16 {
        vectors_of(self.func)
    }

    fn enable(&self, vector: Vector) -> Result<(), InterruptError> {
        let (bits, bit) = self.bits(vector)?;
        bits.enabled.fetch_or(bit, Ordering::AcqRel);
        Ok(())
    }

    fn disable(&self, vector: Vector) -> Result<(), InterruptError> {
        let (bits, bit) = self.bits(vector)?;
        bits.enabled.fetch_and(!bit, Ordering::AcqRel);
        Ok(())
    }

    fn take(&self) -> Option<Vector> {
        let bits = self.bench.vectors.get(usize::from(self.func.0))?;
        let ready = bits.pending.load(Ordering::Acquire) & bits.enabled.load(Ordering::Acquire);
        if ready == 0 {
            return None;
        }
        let vector = ready.trailing_zeros();
        bits.pending.fetch_and(!(1 << vector), Ordering::AcqRel);
        Some(Vector(vector as u16))
    }
}

/// The four seams of one function.
#[derive(Clone)]
pub struct FunctionPlatform {
    port: FunctionPort,
    dma: FunctionDma,
}

impl Platform for FunctionPlatform {
    type Mmio = FunctionPort;
    type Clock = FunctionPort;
    type Interrupts = FunctionPort;
    type Dma = FunctionDma;

    fn mmio(&self) -> &FunctionPort {
        &self.port
    }

    fn clock(&self) -> &FunctionPort {
        &self.port
    }

    fn interrupts(&self) -> &FunctionPort {
        &self.port
    }

    fn dma(&self) -> &FunctionDma {
        &self.dma
    }
}
