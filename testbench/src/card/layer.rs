//! A layer in front of a card: it sees what goes in and out, and may change it. What it has no opinion on goes through, so
//! that a layered card can all that the card can.

use models::host_memory::HostMemory;
use models::qdma::Qdma;
use models::time::Time;
use regs::{Bar, FuncId, PortId};

use super::{Card, CardError, DmaCounts, Observation, Stalls, Stop, WireFrame};

/// What a layer may change: the calls of [`Card`] of the same names, each with the card behind. By default nothing.
pub trait Layer: Send + 'static {
    /// [`Card::advance`].
    ///
    /// # Errors
    /// The card's.
    fn advance(&mut self, card: &mut dyn Card, until: Time, memory: &mut dyn HostMemory) -> Result<Stop, CardError> {
        card.advance(until, memory)
    }

    /// [`Card::mmio_read`].
    ///
    /// # Errors
    /// The card's.
    fn mmio_read(
        &mut self,
        card: &mut dyn Card,
        func: FuncId,
        bar: Bar,
        offset: u32,
        memory: &mut dyn HostMemory,
    ) -> Result<u32, CardError> {
        card.mmio_read(func, bar, offset, memory)
    }

    /// [`Card::mmio_write`].
    ///
    /// # Errors
    /// The card's.
    fn mmio_write(
        &mut self,
        card: &mut dyn Card,
        func: FuncId,
        bar: Bar,
        offset: u32,
        value: u32,
        memory: &mut dyn HostMemory,
    ) -> Result<(), CardError> {
        card.mmio_write(func, bar, offset, value, memory)
    }

    /// [`Card::take_interrupt`].
    fn take_interrupt(&mut self, card: &mut dyn Card) -> Option<(FuncId, u16, Time)> {
        card.take_interrupt()
    }

    /// [`Card::wire_in`].
    fn wire_in(&mut self, card: &mut dyn Card, port: PortId, frame: WireFrame) {
        card.wire_in(port, frame);
    }

    /// [`Card::wire_out`].
    fn wire_out(&mut self, card: &mut dyn Card, port: PortId) -> Option<WireFrame> {
        card.wire_out(port)
    }
}

/// A card with a layer in front of it.
pub struct Layered<L> {
    card: Box<dyn Card>,
    layer: L,
}

impl<L: Layer> Layered<L> {
    /// `layer` in front of `card`.
    pub fn new(card: Box<dyn Card>, layer: L) -> Layered<L> {
        Layered { card, layer }
    }
}

impl<L: Layer> Card for Layered<L> {
    fn name(&self) -> &str {
        self.card.name()
    }

    fn reset(&mut self) -> Result<(), CardError> {
        self.card.reset()
    }

    fn now(&self) -> Time {
        self.card.now()
    }

    fn advance(&mut self, until: Time, memory: &mut dyn HostMemory) -> Result<Stop, CardError> {
        self.layer.advance(&mut *self.card, until, memory)
    }

    fn mmio_read(
        &mut self,
        func: FuncId,
        bar: Bar,
        offset: u32,
        memory: &mut dyn HostMemory,
    ) -> Result<u32, CardError> {
        self.layer.mmio_read(&mut *self.card, func, bar, offset, memory)
    }

    fn mmio_write(
        &mut self,
        func: FuncId,
        bar: Bar,
        offset: u32,
        value: u32,
        memory: &mut dyn HostMemory,
    ) -> Result<(), CardError> {
        self.layer.mmio_write(&mut *self.card, func, bar, offset, value, memory)
    }

    fn take_interrupt(&mut self) -> Option<(FuncId, u16, Time)> {
        self.layer.take_interrupt(&mut *self.card)
    }

    fn gate_wire(&mut self, gated: bool) {
        self.card.gate_wire(gated);
    }

    fn wire_in(&mut self, port: PortId, frame: WireFrame) {
        self.layer.wire_in(&mut *self.card, port, frame);
    }

    fn wire_queued(&self, port: PortId) -> usize {
        self.card.wire_queued(port)
    }

    fn wire_out(&mut self, port: PortId) -> Option<WireFrame> {
        self.layer.wire_out(&mut *self.card, port)
    }

    fn observe(&mut self, on: bool) {
        self.card.observe(on);
    }

    fn observation(&mut self) -> Option<Observation> {
        self.card.observation()
    }

    fn drops(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.card.drops(each);
    }

    fn qdma(&mut self) -> Option<&mut Qdma> {
        self.card.qdma()
    }

    fn dma_counts(&mut self) -> Option<DmaCounts> {
        self.card.dma_counts()
    }

    fn stalls(&self) -> Stalls {
        self.card.stalls()
    }

    fn recycle(&mut self) -> Vec<u8> {
        self.card.recycle()
    }

    fn give_back(&mut self, buffer: Vec<u8>) {
        self.card.give_back(buffer);
    }

    fn idle(&self) -> bool {
        self.card.idle()
    }

    fn close(&mut self) {
        self.card.close();
    }
}
