//! The card's own books, read by MMIO as a driver would: what came in, what went out, what was lost and why.

use driver_core::{Mmio, MmioError};
use regs::{Bar, FuncId, PortId, packet_adapter, qdma_common, qdma_csr, shell};

use crate::card::Shape;
use crate::outcome::Sum;

/// What upstream's shell reads where it has no register.
const UNMAPPED: u32 = 0xdead_beef;

/// Read the sum of one run off a card that was reset before it. `None` from a card without counters of our kind:
/// upstream's own can't tell what became of a frame (shell.md Q5, Q17).
///
/// # Errors
/// [`MmioError`].
pub fn read(mmio: &impl Mmio, shape: &Shape) -> Result<Option<Sum>, MmioError> {
    let probe = [qdma_common::C2H_PACKETS, qdma_common::C2H_PACKETS + 4]
        .map(|offset| mmio.read32(Bar::Shell, shell::QDMA_COMMON + offset));
    if let [Ok(UNMAPPED), Ok(UNMAPPED)] = probe {
        return Ok(None);
    }
    let mut sum = Sum::default();
    for port in (0..shape.ports).map(PortId) {
        let adapter = |offset| shell64(mmio, shell::packet_adapter(port) + offset);
        sum.wire_in += adapter(packet_adapter::RX_WIRE_PACKETS)?;
        sum.wire_out += adapter(packet_adapter::TX_WIRE_PACKETS)?;
        sum.inside += adapter(packet_adapter::RX_INSIDE)? + adapter(packet_adapter::TX_INSIDE)?;
        sum.lost(&format!("port{}.overflow", port.0), adapter(packet_adapter::RX_DROP_OVERFLOW)?);
        sum.lost(&format!("port{}.too_long", port.0), adapter(packet_adapter::RX_DROP_TOO_LONG)?);
        sum.lost(&format!("port{}.disabled", port.0), adapter(packet_adapter::RX_DROP_DISABLED)?);
        sum.lost(&format!("port{}.error", port.0), adapter(packet_adapter::RX_PACKETS_ERROR)?);
        sum.lost(&format!("port{}.tx_dst", port.0), adapter(packet_adapter::TX_DROP_DST)?);
        sum.lost(&format!("port{}.tx_too_long", port.0), adapter(packet_adapter::TX_DROP_TOO_LONG)?);
    }
    let common = |offset| shell64(mmio, shell::QDMA_COMMON + offset);
    sum.host_in = common(qdma_common::H2C_PACKETS)?;
    sum.lost("no_function", common(qdma_common::H2C_DROP_NO_FUNCTION)?);
    for func in (0..shape.functions).map(FuncId) {
        let at = |base: u32| base + u32::from(func.0) * qdma_common::FUNCTION_C2H_PACKETS_STRIDE;
        sum.lost(&format!("fn{}.queue_range", func.0), common(at(qdma_common::FUNCTION_C2H_DROP_QUEUE_RANGE))?);
        sum.inside += common(at(qdma_common::FUNCTION_C2H_INSIDE))?;
    }
    let qdma = |offset| mmio.read32(Bar::Qdma, offset).map(u64::from);
    let (came, out, lost) = (
        qdma(qdma_csr::C2H_COMPLETIONS_IN)?,
        qdma(qdma_csr::C2H_COMPLETIONS_OUT)?,
        qdma(qdma_csr::C2H_COMPLETIONS_DROPPED)?,
    );
    sum.host_out = out;
    sum.lost("qdma.completions_dropped", lost);
    sum.inside += came.saturating_sub(out + lost);
    Ok(Some(sum))
}

/// A 64-bit counter of the shell: low word first, which holds the high one still.
fn shell64(mmio: &impl Mmio, offset: u32) -> Result<u64, MmioError> {
    let low = mmio.read32(Bar::Shell, offset)?;
    let high = mmio.read32(Bar::Shell, offset + 4)?;
    Ok(u64::from(high) << 32 | u64::from(low))
}
