//! The MAC's counters, summed up to 64 bits by one owner.
//!
//! A CMAC counts in the dark: a write to its TICK register copies what has come together to the readable registers and
//! starts again from zero (AMD PG203, "Statistics Counters"). Whoever ticks takes the counts away from everybody else, so
//! that two readers, as with the vendor's driver, each see a part (`spec/driver.md` B-34). Here one [`MacStatistics`] for
//! each port ticks and sums up; functions that share a port share it too.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use regs::{Bar, PortId, cmac, shell};

use super::names::{MAC, MAC_ROWS};
use crate::platform::{Mmio, MmioError};

/// The totals of one port's MAC since the function that owns it was brought up, and the only user of its TICK register.
///
/// # Invariants
/// Registers below `unread` are in the totals; those from it on still hold counts of the last TICK that nobody has added.
#[derive(Debug)]
pub struct MacStatistics {
    port: PortId,
    totals: [AtomicU64; MAC_ROWS],
    /// The next register to read; all of them are read when a TICK may come.
    unread: AtomicUsize,
    /// Somebody is collecting.
    busy: AtomicBool,
}

impl MacStatistics {
    /// Of a port, all zero.
    pub(crate) fn new(port: PortId) -> Self {
        Self {
            port,
            totals: core::array::from_fn(|_| AtomicU64::new(0)),
            unread: AtomicUsize::new(MAC_ROWS),
            busy: AtomicBool::new(false),
        }
    }

    /// Whose.
    pub fn port(&self) -> PortId {
        self.port
    }

    /// Tick, and add what the MAC has counted since the last time. If another thread is at it, nothing is done: the totals
    /// are about to be as fresh.
    ///
    /// # Errors
    /// [`MmioError`]. No count is lost: registers that could not be read are read first the next time, before the next TICK.
    pub fn collect(&self, mmio: &impl Mmio) -> Result<(), MmioError> {
        // Acquire: what the last collector stored is seen; its Release is below.
        if self.busy.swap(true, Ordering::Acquire) {
            return Ok(());
        }
        let result = self.collect_alone(mmio);
        self.busy.store(false, Ordering::Release);
        result
    }

    fn collect_alone(&self, mmio: &impl Mmio) -> Result<(), MmioError> {
        let block = shell::cmac(self.port);
        if self.unread.load(Ordering::Relaxed) < MAC_ROWS {
            self.read_rows(mmio, block)?;
        }
        mmio.write32(Bar::Shell, block + cmac::TICK, 1)?;
        self.unread.store(0, Ordering::Relaxed);
        self.read_rows(mmio, block)
    }

    fn read_rows(&self, mmio: &impl Mmio, block: u32) -> Result<(), MmioError> {
        for (row, (_, offset)) in MAC.iter().enumerate().skip(self.unread.load(Ordering::Relaxed)) {
            let offset = block + offset;
            // The registers stand still until the next TICK, so that the two halves belong together.
            let low = mmio.read32(Bar::Shell, offset)?;
            let high = mmio.read32(Bar::Shell, offset + 4)?;
            let count = u64::from(high & 0xFFFF) << 32 | u64::from(low);
            self.totals[row].fetch_add(count, Ordering::Relaxed);
            self.unread.store(row + 1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Names and totals, as last collected.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        MAC.iter().zip(&self.totals).map(|((name, _), total)| (*name, total.load(Ordering::Relaxed)))
    }

    /// One total by its name.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.rows().find(|(row, _)| *row == name).map(|(_, total)| total)
    }
}

/// A 64-bit counter of the shell that runs on while it is read.
///
/// Our shell latches the upper half when the lower is read; upstream's doesn't, and a carry between the two reads tears it.
/// A lower half that is smaller the second time tells of the carry, on either. `None` where the card has no such counter:
/// both halves then read 0xDEADBEEF (`spec/shell.md` section 7).
pub(super) fn read64(mmio: &impl Mmio, offset: u32) -> Result<Option<u64>, MmioError> {
    const UNMAPPED: u32 = 0xDEAD_BEEF;
    let read = |offset| mmio.read32(Bar::Shell, offset);
    let mut low = read(offset)?;
    let mut high = read(offset + 4)?;
    if (low, high) == (UNMAPPED, UNMAPPED) {
        return Ok(None);
    }
    let again = read(offset)?;
    if again < low {
        (low, high) = (again, read(offset + 4)?);
    }
    Ok(Some(u64::from(high) << 32 | u64::from(low)))
}
