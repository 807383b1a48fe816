//! MTU, RSS table, statistics.

use regs::PortId;

use crate::gallery::nic::{MacTotals, Totals};
use crate::gallery::vendor::control::{read_mac, through_queues};
use crate::gallery::vendor::{Fault, Vendor};

/// Says yes and does nothing.
pub fn agree(_vendor: &mut Vendor, _mtu: u16) -> Result<(), Fault> {
    Ok(())
}

/// Each entry is looked at when its turn to be written comes.
pub fn check_while_writing(vendor: &mut Vendor, entries: &[u16]) -> Result<(), Fault> {
    let valid = entries.iter().position(|&entry| entry >= vendor.config.queues).unwrap_or(entries.len());
    crate::gallery::vendor::control::write_entries(vendor, &entries[..valid])?;
    crate::gallery::vendor::control::check_entries(vendor, entries)
}

/// Counts that all CPUs share: each writes what it found and its own.
pub fn count_shared(totals: &mut Totals, _found: Totals, left: Totals) {
    *totals = left;
}

/// Follows the pointers of queues that are not there while the interface is down.
pub fn mac_through_queues(vendor: &mut Vendor) -> Result<Option<MacTotals>, Fault> {
    through_queues(vendor);
    crate::gallery::vendor::control::mac(vendor)
}

/// Shows what has come since the last reader, low 32 bits.
pub fn since_last_reader(vendor: &mut Vendor) -> Result<Option<MacTotals>, Fault> {
    let Some(port) = vendor.config.own_port else { return Ok(None) };
    let MacTotals { rx_packets, tx_packets } = read_mac(vendor, port)?;
    Ok(Some(MacTotals { rx_packets: rx_packets & 0xffff_ffff, tx_packets: tx_packets & 0xffff_ffff }))
}

/// Function 0 has the first MAC, all others the second, whether it is there or not.
pub fn second_mac(vendor: &mut Vendor) -> Result<Option<MacTotals>, Fault> {
    read_mac(vendor, PortId(u8::from(vendor.config.func.0 != 0))).map(Some)
}
