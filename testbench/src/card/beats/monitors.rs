//! The shell's monitors: what became of each frame at each point.

use models::observation::{Fate, Point};
use regs::FuncId;
use rtl_bridge::verilated::{AnyOf, Output, PortError, Simulation};

use super::optional;
use super::wire::Port;

/// The end of each frame at one point.
pub(super) struct EndMonitor {
    pub(super) valid: Output<bool>,
    pub(super) reason: Output<u8>,
}

/// The hash and queue of each frame of a function.
pub(super) struct FuncMonitor {
    pub(super) valid: Output<bool>,
    pub(super) hash: Output<u32>,
    pub(super) entry: Output<u16>,
    pub(super) drop: Output<bool>,
}

impl EndMonitor {
    pub(super) fn bind(
        simulation: &Simulation,
        name: &str,
        index: u32,
        count: u32,
    ) -> Result<Option<EndMonitor>, PortError> {
        let valid = optional(simulation.output_of(&format!("{name}_valid"), index, count))?;
        let reason = optional(simulation.output_of(&format!("{name}_reason"), index, count))?;
        Ok(valid.zip(reason).map(|(valid, reason)| EndMonitor { valid, reason }))
    }

    #[inline]
    pub(super) fn look(&self, simulation: &Simulation, meaning: fn(u8) -> Fate) -> Option<Fate> {
        simulation.get(self.valid).then(|| meaning(simulation.get(self.reason)))
    }
}

/// `mon_rx_end_reason`. Source: rtl/top/onic_shell.sv.
pub(super) fn rx_fate(reason: u8) -> Fate {
    match reason {
        0 => Fate::Accepted,
        1 => Fate::Overflow,
        3 => Fate::TooLong,
        4 => Fate::Disabled,
        _ => Fate::Error,
    }
}

/// `mon_tx_end_reason`. Source: rtl/top/onic_shell.sv.
pub(super) fn tx_fate(reason: u8) -> Fate {
    match reason {
        0 => Fate::Accepted,
        1 => Fate::Dst,
        _ => Fate::TooLong,
    }
}

impl FuncMonitor {
    pub(super) fn bind(simulation: &Simulation, func: u8, count: u8) -> Result<Option<FuncMonitor>, PortError> {
        let (index, count) = (u32::from(func), u32::from(count));
        let Some(valid) = optional(simulation.output_of("mon_rss_valid", index, count))? else { return Ok(None) };
        Ok(Some(FuncMonitor {
            valid,
            hash: simulation.output_of("mon_rss_hash", index, count)?,
            entry: simulation.output_of("mon_rss_entry", index, count)?,
            drop: simulation.output_of("mon_rss_drop", index, count)?,
        }))
    }

    pub(super) fn point(&self, simulation: &Simulation, func: FuncId) -> Point {
        let fate = if simulation.get(self.drop) { Fate::QueueRange } else { Fate::Accepted };
        Point::Rss { func, hash: simulation.get(self.hash), entry: simulation.get(self.entry), fate }
    }
}

/// The pulses of the monitors in `axis_aclk`: all, or those without which a lost frame would count as inside.
pub(super) fn pulses(
    simulation: &Simulation,
    funcs: &[FuncMonitor],
    ports: &[Port],
    h2c_drop: Option<Output<bool>>,
    all: bool,
) -> Option<AnyOf> {
    let frames = funcs.iter().map(|func| if all { func.valid } else { func.drop });
    let ends = ports.iter().filter_map(|port| port.tx_end.as_ref().map(|end| end.valid));
    let pulses: Vec<_> = frames.chain(ends).chain(h2c_drop).collect();
    simulation.any_of(&pulses)
}
