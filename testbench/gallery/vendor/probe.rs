//! From probe to remove. Register order: driver.md section 3.

use driver_core::{Clock as _, Interrupts as _, Platform as _, Vector};
use regs::{PortId, cmac, qdma_csr, qdma_function, shell, system_config};

use super::queues::{self, map_function, unmap_function};
use super::{Fault, Vendor};
use crate::gallery::heap::deref;

/// How long a block may stay in reset, ns: a thousand times what it takes.
const RESET_NS: u64 = 2_000_000;
/// Places in the CSR tables: transmit rings, receive rings, completion rings, buffers.
pub(super) const TX_RING: u8 = 0;
pub(super) const RX_RING: u8 = 8;
pub(super) const COMPLETION_RING: u8 = 9;
pub(super) const BUFFER: u8 = 8;

/// Leaves of the error tree: status, mask, errors that count, bit in the root. EQDMA's, which is what is under OpenNIC.
const LEAVES: [(u32, u32, u32, u32); 4] = [
    (qdma_csr::GLBL_DSC_ERROR_STATUS, qdma_csr::GLBL_DSC_ERROR_MASK, 0x03F9_037E, 2),
    (qdma_csr::GLBL_TRQ_ERROR_STATUS, qdma_csr::GLBL_TRQ_ERROR_MASK, 0xB3, 3),
    (qdma_csr::C2H_ERROR_STATUS, qdma_csr::C2H_ERROR_MASK, 0x3_F6DF, 8),
    (qdma_csr::H2C_ERROR_STATUS, qdma_csr::H2C_ERROR_MASK, 0x3F, 16),
];

pub(super) fn probe(vendor: &mut Vendor) -> Result<(), Fault> {
    match vendor.heap.alloc("netdev statistics") {
        Some(block) => vendor.statistics = Some(block),
        None => return (vendor.ways.no_statistics)(Fault::NoMemory("the statistics")),
    }
    let result = hardware(vendor);
    if result.is_err() {
        vendor.statistics.take().into_iter().for_each(|block| vendor.heap.free(block));
    }
    result
}

fn hardware(vendor: &mut Vendor) -> Result<(), Fault> {
    if let Err(fault) = map_function(vendor) {
        (vendor.ways.undo_map)(vendor);
        return Err(fault);
    }
    vendor.qdma = Some(());
    let result = after_map(vendor);
    if result.is_err() {
        // The cause is known; what can't be undone now is cleared by the next probe.
        let _ = unmap_function(vendor);
        (vendor.ways.free_names)(vendor);
    }
    result
}

fn after_map(vendor: &mut Vendor) -> Result<(), Fault> {
    let base = shell::qdma_function(vendor.config.func);
    let queues = vendor.config.queues;
    let qconf = u32::from(queues::base(vendor)) << 16 | u32::from(queues);
    vendor.write_shell(base + qdma_function::QCONF, qconf)?;
    for i in 0..qdma_function::INDIRECTION_TABLE_COUNT {
        let offset = base + qdma_function::INDIRECTION_TABLE + qdma_function::INDIRECTION_TABLE_STRIDE * i;
        vendor.write_shell(offset, i % u32::from(queues))?;
    }
    if vendor.config.func.0 == 0 {
        csrs(vendor)?;
        for port in vendor.config.ports.clone() {
            start_cmac(vendor, port)?;
        }
    }
    name_interrupts(vendor)?;
    if let Some(vector) = vendor.error_vector() {
        // The vector is one of those that were granted.
        let _ = vendor.platform.interrupts().enable(Vector(vector));
        error_interrupt(vendor, vector)?;
    }
    Ok(())
}

fn csrs(vendor: &Vendor) -> Result<(), Fault> {
    let ring = vendor.config.ring;
    let completions = ring * vendor.ways.completions_per_descriptor;
    let at = |first: u32, index: u8| first + 4 * u32::from(index);
    vendor.write(at(qdma_csr::GLBL_RING_SIZE, TX_RING), ring.into())?;
    vendor.write(at(qdma_csr::GLBL_RING_SIZE, RX_RING), ring.into())?;
    vendor.write(at(qdma_csr::GLBL_RING_SIZE, COMPLETION_RING), completions.into())?;
    vendor.write(at(qdma_csr::C2H_BUFFER_SIZE, BUFFER), vendor.ways.buffer.hw_len_bytes.into())?;
    // 100 ns ticks; ten of them, or 64 completions.
    vendor.write(qdma_csr::INTERRUPT_TIMER_TICK, 25)?;
    vendor.write(qdma_csr::C2H_TIMER_COUNT, 10)?;
    vendor.write(qdma_csr::C2H_COUNTER_THRESHOLD, 64)?;
    vendor.write(qdma_csr::GLBL_DSC_CFG, 0x30)
}

fn start_cmac(vendor: &Vendor, port: PortId) -> Result<(), Fault> {
    (vendor.ways.wait_for_cmac)(vendor, port)?;
    let at = |offset| shell::cmac(port) + offset;
    // It listens once its function has queues.
    vendor.write_shell(at(cmac::CONFIGURATION_RX_REG1), 0)?;
    vendor.write_shell(at(cmac::CONFIGURATION_TX_REG1), 1)
}

/// The bit of a port's CMAC in SHELL_RESET and SHELL_STATUS.
pub fn cmac_bit(port: PortId) -> u32 {
    1 << (4 + 4 * u32::from(port.0))
}

/// Reset a CMAC and wait for it, but not for ever.
pub fn wait_for_cmac(vendor: &Vendor, port: PortId) -> Result<(), Fault> {
    vendor.write_shell(shell::SYSTEM_CONFIG + system_config::SHELL_RESET, cmac_bit(port))?;
    let begun = vendor.now();
    let mut step_ns = 2_000;
    loop {
        vendor.platform.clock().wait(step_ns);
        step_ns = 50_000;
        if vendor.read_shell(shell::SYSTEM_CONFIG + system_config::SHELL_STATUS)? & cmac_bit(port) != 0 {
            return Ok(());
        }
        if vendor.now().0 - begun.0 > RESET_NS * 1_000 {
            return Err(Fault::Card(format!("the CMAC of {port} stays in reset")));
        }
    }
}

/// The function map was not written: there is nothing to take back.
pub fn undo_map(_vendor: &mut Vendor) {}

fn name_interrupts(vendor: &mut Vendor) -> Result<(), Fault> {
    for queue in 0..vendor.config.queues {
        let name = vendor.heap.alloc(&format!("the name of interrupt {queue}"));
        vendor.names.push(name.ok_or(Fault::NoMemory("an interrupt's name"))?);
    }
    Ok(())
}

/// Names go with their interrupts.
pub fn free_names(vendor: &mut Vendor) {
    vendor.names.drain(..).for_each(|block| vendor.heap.free(block));
}

fn route(vendor: &Vendor, vector: u16) -> u32 {
    u32::from(vendor.config.func.0) | u32::from(vector) << 12
}

/// Arms the error interrupt.
const ARM: u32 = 1 << 24;

fn error_interrupt(vendor: &Vendor, vector: u16) -> Result<(), Fault> {
    vendor.write(qdma_csr::ERROR_INTERRUPT, route(vendor, vector))?;
    for (_, mask, errors, root) in LEAVES {
        vendor.write(mask, errors)?;
        let roots = vendor.read(qdma_csr::GLBL_ERROR_MASK)?;
        vendor.write(qdma_csr::GLBL_ERROR_MASK, roots | 1 << root)?;
    }
    vendor.write(qdma_csr::ERROR_INTERRUPT, route(vendor, vector) | ARM)
}

/// Read what there is, clear it, leaves before the root, and arm again.
pub fn serve_errors(vendor: &mut Vendor) -> Result<Option<String>, Fault> {
    let Some(vector) = vendor.error_vector() else { return Ok(None) };
    let root = vendor.read(qdma_csr::GLBL_ERROR_STATUS)?;
    for (status, _, _, _) in LEAVES.into_iter().filter(|leaf| root & 1 << leaf.3 != 0) {
        let errors = vendor.read(status)?;
        vendor.write(status, errors)?;
    }
    vendor.write(qdma_csr::GLBL_ERROR_STATUS, root)?;
    vendor.write(qdma_csr::ERROR_INTERRUPT, route(vendor, vector) | ARM)?;
    Ok((root != 0).then(|| format!("card errors, root {root:#x}")))
}

/// Queues first, then what would let the card send for them, then the function itself.
pub fn remove(vendor: &mut Vendor) -> Result<(), Fault> {
    deref(vendor.qdma, "hw->qdma");
    let stopped = (vendor.ways.stop)(vendor);
    let taken = take_away(vendor);
    stopped.and(taken)
}

/// What probe made, backwards.
pub fn take_away(vendor: &mut Vendor) -> Result<(), Fault> {
    if vendor.error_vector().is_some() {
        vendor.write(qdma_csr::ERROR_INTERRUPT, 0)?;
    }
    vendor.write_shell(shell::qdma_function(vendor.config.func) + qdma_function::QCONF, 0)?;
    unmap_function(vendor)?;
    vendor.qdma = None;
    (vendor.ways.free_names)(vendor);
    vendor.statistics.take().into_iter().for_each(|block| vendor.heap.free(block));
    Ok(())
}
