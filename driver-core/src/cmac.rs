//! The CMAC of one port: out of reset, RS-FEC, flow control, receiver and transmitter.
//!
//! Order and values are the vendor driver's (recorded, `spec/driver.md` section 3); what they mean is in AMD PG203.

use regs::{Bar, PortId, cmac, shell, system_config};

use crate::config::DeviceConfig;
use crate::error::Cause;
use crate::platform::{Clock, Mmio, MmioError, Platform};
use crate::wait::Backoff;

/// What the version register reads where there is a CMAC: 3.1.
const VERSION: u32 = 0x301;

/// Transmitter and receiver enable.
const ENABLE: u32 = 1;

/// The transmitter tells the other side of a remote fault until it is enabled.
const SEND_REMOTE_FAULT: u32 = 1 << 4;

/// Upstream's status bit reads "done" all through a software reset, and an access to the block in that time hangs the bus
/// for good (`spec/shell.md` Q1, Q2). The reset takes 110 cycles of axil_aclk, 880 ns; what is never touched earlier is safe
/// on cards that lie and on cards that don't.
const RESET_NS: u64 = 2_000;

/// Link status and alignment both good.
const STATUS_ALIGNED: u32 = 3;

/// RS-FEC of receiver and transmitter.
const RSFEC_BOTH: u32 = 3;

/// Correction, indication, and errors told as IEEE 802.3 has it.
const RSFEC_CORRECTION: u32 = 7;

/// Check that a CMAC is there.
pub(crate) fn probe(mmio: &impl Mmio, port: PortId) -> Result<(), Cause> {
    match mmio.read32(Bar::Shell, shell::cmac(port) + cmac::CORE_VERSION)? {
        VERSION => Ok(()),
        version => Err(Cause::NoCmac { port, version }),
    }
}

/// Reset a CMAC, set it up and enable its transmitter. The receiver of the function's own port stays off: it is switched on
/// when there are queues.
pub(crate) fn set_up<P: Platform>(platform: &P, config: &DeviceConfig, port: PortId) -> Result<(), Cause> {
    let mmio = platform.mmio();
    probe(mmio, port)?;
    reset(platform, port, config.timeouts.reset_ns)?;
    let write = |offset, value| mmio.write32(Bar::Shell, shell::cmac(port) + offset, value);
    // The vendor's driver writes nothing without RS-FEC. Whether a reset clears these registers is written nowhere.
    let (enable, correction) = if config.rs_fec { (RSFEC_BOTH, RSFEC_CORRECTION) } else { (0, 0) };
    write(cmac::RSFEC_CONFIG_ENABLE, enable)?;
    write(cmac::RSFEC_CONFIG_INDICATION_CORRECTION, correction)?;
    if config.own_port != Some(port) {
        write(cmac::CONFIGURATION_RX_REG1, ENABLE)?;
    }
    write(cmac::CONFIGURATION_TX_REG1, SEND_REMOTE_FAULT)?;
    write(cmac::CONFIGURATION_TX_REG1, ENABLE)?;
    set_up_flow_control(mmio, port)?;
    Ok(())
}

/// Pause frames of all classes, with the longest quanta and refresh times.
fn set_up_flow_control(mmio: &impl Mmio, port: PortId) -> Result<(), MmioError> {
    let write = |offset, value| mmio.write32(Bar::Shell, shell::cmac(port) + offset, value);
    write(cmac::CONFIGURATION_RX_FLOW_CONTROL_CONTROL_REG1, 0x3DFF)?;
    write(cmac::CONFIGURATION_RX_FLOW_CONTROL_CONTROL_REG2, 0x1_C631)?;
    for i in 0..cmac::CONFIGURATION_TX_FLOW_CONTROL_QUANTA_COUNT {
        write(cmac::CONFIGURATION_TX_FLOW_CONTROL_QUANTA + 4 * i, u32::MAX)?;
    }
    write(cmac::CONFIGURATION_TX_FLOW_CONTROL_QUANTA_REG5, 0xFFFF)?;
    for i in 0..cmac::CONFIGURATION_TX_FLOW_CONTROL_REFRESH_COUNT {
        write(cmac::CONFIGURATION_TX_FLOW_CONTROL_REFRESH + 4 * i, u32::MAX)?;
    }
    write(cmac::CONFIGURATION_TX_FLOW_CONTROL_REFRESH_REG5, 0xFFFF)?;
    write(cmac::CONFIGURATION_TX_FLOW_CONTROL_CONTROL_REG1, 0x1FF)
}

/// Ask for a reset and wait until it is over.
fn reset<P: Platform>(platform: &P, port: PortId, limit_ns: u64) -> Result<(), Cause> {
    let bit = 1 << (4 + 4 * u32::from(port.0));
    let mmio = platform.mmio();
    mmio.write32(Bar::Shell, shell::SYSTEM_CONFIG + system_config::SHELL_RESET, bit)?;
    platform.clock().wait(RESET_NS);
    let mut wait = Backoff::new(platform.clock(), limit_ns);
    while mmio.read32(Bar::Shell, shell::SYSTEM_CONFIG + system_config::SHELL_STATUS)? & bit == 0 {
        if !wait.again() {
            return Err(Cause::InReset { port, waited_ns: wait.waited_ns() });
        }
    }
    Ok(())
}

/// Switch the receiver: while it is off, frames are discarded and counted by the card.
pub(crate) fn enable_rx(mmio: &impl Mmio, port: PortId, on: bool) -> Result<(), MmioError> {
    mmio.write32(Bar::Shell, shell::cmac(port) + cmac::CONFIGURATION_RX_REG1, if on { ENABLE } else { 0 })
}

/// Is RS-FEC on, both ways?
pub(crate) fn rs_fec(mmio: &impl Mmio, port: PortId) -> Result<bool, MmioError> {
    Ok(mmio.read32(Bar::Shell, shell::cmac(port) + cmac::RSFEC_CONFIG_ENABLE)? & RSFEC_BOTH == RSFEC_BOTH)
}

/// Both directions off.
pub(crate) fn disable(mmio: &impl Mmio, port: PortId) -> Result<(), MmioError> {
    enable_rx(mmio, port, false)?;
    mmio.write32(Bar::Shell, shell::cmac(port) + cmac::CONFIGURATION_TX_REG1, 0)
}

/// Is the receiver aligned? Read twice: the first read tells what has been since the last one, and clears it.
pub(crate) fn link_up(mmio: &impl Mmio, port: PortId) -> Result<bool, MmioError> {
    let status = || mmio.read32(Bar::Shell, shell::cmac(port) + cmac::STAT_RX_STATUS);
    status()?;
    Ok(status()? & STATUS_ALIGNED == STATUS_ALIGNED)
}
