//! The four seams below the driver. Each is one trait in one file; nothing else crosses.

mod clock;
mod dma;
mod interrupts;
mod mmio;

pub use clock::Clock;
pub use dma::{Coherent, Direction, DmaAddr, DmaError, DmaMemory, MapError, Page};
pub use interrupts::{InterruptError, Interrupts, Vector};
pub use mmio::{Mmio, MmioError};

/// One PCI function and the machine it sits in.
pub trait Platform {
    /// Its registers.
    type Mmio: Mmio;
    /// The only source of time.
    type Clock: Clock;
    /// Its interrupts.
    type Interrupts: Interrupts;
    /// Its DMA space.
    type Dma: DmaMemory;

    /// The function's registers.
    fn mmio(&self) -> &Self::Mmio;
    /// The clock.
    fn clock(&self) -> &Self::Clock;
    /// The function's interrupts.
    fn interrupts(&self) -> &Self::Interrupts;
    /// The function's DMA space.
    fn dma(&self) -> &Self::Dma;
}
