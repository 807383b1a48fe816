//! Register access to one PCI function.

use regs::Bar;

/// A register access that did not come back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MmioError {
    /// The device did not answer within the platform's limit: the bus hangs, or the card is gone.
    #[error("{bar} offset {offset:#x}: no answer within {waited_ns} ns")]
    TimedOut {
        /// Register space.
        bar: Bar,
        /// Byte offset.
        offset: u32,
        /// How long it was waited for, in ns of the platform's clock.
        waited_ns: u64,
    },
    /// The interconnect refused the address (DECERR) or the device the access (SLVERR).
    #[error("{bar} offset {offset:#x}: the bus answered {response}")]
    Bus {
        /// Register space.
        bar: Bar,
        /// Byte offset.
        offset: u32,
        /// `"DECERR"` or `"SLVERR"`.
        response: &'static str,
    },
    /// The card itself stopped (an RTL assertion, `$fatal`). The platform holds the details.
    #[error("{bar} offset {offset:#x}: the card has stopped")]
    Stopped {
        /// Register space.
        bar: Bar,
        /// Byte offset.
        offset: u32,
    },
}

/// 32-bit little-endian register access at (BAR, byte offset), offset a multiple of 4. Usable from several threads.
pub trait Mmio: Sync {
    /// Read a register. A simulated card runs until it answers.
    ///
    /// # Errors
    /// [`MmioError`]; the value is not known then.
    fn read32(&self, bar: Bar, offset: u32) -> Result<u32, MmioError>;

    /// Write a register. Posted: it returns before the card has acted, and the order of writes is kept.
    ///
    /// # Errors
    /// [`MmioError::Stopped`] or [`MmioError::Bus`], where the platform learns of it at once; a posted write that fails
    /// later shows at the next read.
    fn write32(&self, bar: Bar, offset: u32, value: u32) -> Result<(), MmioError>;
}
