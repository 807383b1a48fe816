//! What a card may do to host memory: the seam between a card and the memory that its driver lends it.

use regs::FuncId;

/// A DMA access that host memory refused. The card turns it into what PCIe would deliver: an unsupported request or
/// poisoned data for a read, a silently dropped write with the error logged for a posted write.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DmaFault {
    /// Some byte of the range lies in no live mapping of this function.
    #[error("{func}: DMA address {addr:#x}, {len_bytes} bytes: not mapped")]
    Unmapped {
        /// The function that asked.
        func: FuncId,
        /// First DMA address of the access.
        addr: u64,
        /// Length of the access.
        len_bytes: usize,
    },
    /// The mapping exists but not for this direction, or the CPU owns the page at present.
    #[error("{func}: DMA address {addr:#x}, {len_bytes} bytes: {why}")]
    Forbidden {
        /// The function that asked.
        func: FuncId,
        /// First DMA address of the access.
        addr: u64,
        /// Length of the access.
        len_bytes: usize,
        /// What rule it broke.
        why: &'static str,
    },
    /// The range is mapped, but its bytes are known to be bad: a read's answer comes marked as poisoned. Never of a write.
    #[error("{func}: DMA address {addr:#x}, {len_bytes} bytes: poisoned")]
    Poisoned {
        /// The function that asked.
        func: FuncId,
        /// First DMA address of the access.
        addr: u64,
        /// Length of the access.
        len_bytes: usize,
    },
}

/// Host memory as a card sees it: bytes at (function, DMA address).
///
/// Lent to a card for the length of one call, never owned by it. An access is all or nothing: a refused one leaves
/// `buf` and memory as they were. Aligned accesses of 8 bytes or fewer are single copies: the CPU sees all of it or
/// none; longer ones land in rising address order.
pub trait HostMemory {
    /// Fill `buf` from `addr`.
    ///
    /// # Errors
    /// [`DmaFault`] when any byte is out of bounds for this function.
    fn read(&mut self, func: FuncId, addr: u64, buf: &mut [u8]) -> Result<(), DmaFault>;

    /// Write `data` at `addr`.
    ///
    /// # Errors
    /// [`DmaFault`] when any byte is out of bounds for this function; nothing is written then.
    fn write(&mut self, func: FuncId, addr: u64, data: &[u8]) -> Result<(), DmaFault>;
}
