//! MTU, RSS table, statistics.

use driver_core::Platform as _;
use regs::{cmac, qdma_function, shell};

use super::{Fault, Vendor};
use crate::gallery::heap::deref;
use crate::gallery::nic::{MacTotals, Totals};

/// The smallest MTU. Source: IPv4, RFC 791.
const MTU_MIN: u16 = 68;
/// Ethernet header.
const HEADER: u16 = 14;

/// An MTU that is accepted is in force.
pub fn set_mtu(vendor: &mut Vendor, mtu: u16) -> Result<(), Fault> {
    let max = vendor.config.max_frame_len_bytes - HEADER;
    if !(MTU_MIN..=max).contains(&mtu) {
        return Err(Fault::Card(format!("MTU {mtu}: {MTU_MIN} to {max} work")));
    }
    vendor.mtu = mtu;
    Ok(())
}

/// Look at all of it, then write all of it.
pub fn set_table(vendor: &mut Vendor, entries: &[u16]) -> Result<(), Fault> {
    check_entries(vendor, entries)?;
    write_entries(vendor, entries)
}

/// Does every entry name a queue?
pub fn check_entries(vendor: &Vendor, entries: &[u16]) -> Result<(), Fault> {
    let queues = vendor.config.queues;
    match entries.iter().position(|&entry| entry >= queues) {
        Some(at) => Err(Fault::Card(format!("RSS entry {at} names queue {} of {queues}", entries[at]))),
        None => Ok(()),
    }
}

/// Write entries, the first one first.
pub fn write_entries(vendor: &Vendor, entries: &[u16]) -> Result<(), Fault> {
    let base = shell::qdma_function(vendor.config.func) + qdma_function::INDIRECTION_TABLE;
    (0..).zip(entries).try_for_each(|(i, &entry)| {
        vendor.write_shell(base + qdma_function::INDIRECTION_TABLE_STRIDE * i, entry.into())
    })
}

/// Each CPU has counts of its own, so nothing is lost: what it found is taken off what it leaves.
pub fn count(totals: &mut Totals, found: Totals, left: Totals) {
    totals.rx_packets += left.rx_packets - found.rx_packets;
    totals.rx_bytes += left.rx_bytes - found.rx_bytes;
    totals.rx_dropped += left.rx_dropped - found.rx_dropped;
    totals.tx_packets += left.tx_packets - found.tx_packets;
    totals.tx_abandoned += left.tx_abandoned - found.tx_abandoned;
}

/// They live apart from the queues, so that they can be read when there are none.
pub(super) fn totals(vendor: &mut Vendor) -> Totals {
    vendor.totals
}

/// The MAC's counts of a port since they were last read: TICK takes them and starts them afresh.
pub fn read_mac(vendor: &Vendor, port: regs::PortId) -> Result<MacTotals, Fault> {
    let at = |offset: u32| shell::cmac(port) + offset;
    vendor.write_shell(at(cmac::TICK), 1)?;
    driver_core::Clock::wait(vendor.platform.clock(), 1_000);
    let wide = |offset: u32| -> Result<u64, Fault> {
        Ok(u64::from(vendor.read_shell(at(offset + 4))?) << 32 | u64::from(vendor.read_shell(at(offset))?))
    };
    Ok(MacTotals { rx_packets: wide(cmac::STAT_RX_TOTAL_PKTS)?, tx_packets: wide(cmac::STAT_TX_TOTAL_PKTS)? })
}

/// What was counted since the driver came: what each reading shows is added up, in one place, for the function's own port.
pub fn mac(vendor: &mut Vendor) -> Result<Option<MacTotals>, Fault> {
    let Some(port) = vendor.config.own_port else { return Ok(None) };
    let more = read_mac(vendor, port)?;
    vendor.mac.rx_packets += more.rx_packets;
    vendor.mac.tx_packets += more.tx_packets;
    Ok(Some(vendor.mac))
}

/// What a reader of the queues' own statistics does: it follows their pointers.
pub fn through_queues(vendor: &mut Vendor) {
    for queue in 0..vendor.config.queues {
        deref(vendor.rx[usize::from(queue)].as_ref(), &format!("rx_queue[{queue}]"));
    }
}
