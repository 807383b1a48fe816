//! Probe, errors, remove.

use driver_core::{Clock as _, Platform as _};
use regs::{PortId, qdma_function, shell, system_config};

use crate::gallery::heap::deref;
use crate::gallery::vendor::probe::{cmac_bit, take_away};
use crate::gallery::vendor::{Fault, Vendor};

/// The error path goes through a handle that is set later.
pub fn undo_through_handle(vendor: &mut Vendor) {
    deref(vendor.qdma, "hw->qdma");
}

/// Waits for the status bit, as long as it takes.
pub fn wait_for_ever(vendor: &Vendor, port: PortId) -> Result<(), Fault> {
    vendor.write_shell(shell::SYSTEM_CONFIG + system_config::SHELL_RESET, cmac_bit(port))?;
    while vendor.read_shell(shell::SYSTEM_CONFIG + system_config::SHELL_STATUS)? & cmac_bit(port) == 0 {
        vendor.platform.clock().wait(20_000_000);
    }
    Ok(())
}

/// The error code was never set: probe says that it went well, and there is no device.
pub fn succeed_without(_cause: Fault) -> Result<(), Fault> {
    Ok(())
}

/// The names stay.
pub fn keep_names(vendor: &mut Vendor) {
    vendor.names.clear();
}

/// Logs, and neither reads nor clears nor arms anything.
pub fn only_log(_vendor: &mut Vendor) -> Result<Option<String>, Fault> {
    Ok(Some("error interrupt".into()))
}

/// The shell forgets the function's queues before they are stopped.
pub fn qconf_first(vendor: &mut Vendor) -> Result<(), Fault> {
    vendor.write_shell(shell::qdma_function(vendor.config.func) + qdma_function::QCONF, 0)?;
    let stopped = (vendor.ways.stop)(vendor);
    take_away(vendor)?;
    stopped
}
