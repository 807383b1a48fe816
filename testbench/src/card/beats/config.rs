//! How a top with our shell in it is run.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rtl_bridge::stall::Profile;
use rtl_bridge::tops::ShellShape;
use rtl_bridge::verilated::{PortError, Recording, SimulationError, Stopped, Window};

use super::FrameTap;
use crate::card::{RtlChoice, Shape};
use crate::execute::ExecuteError;

/// Power-up reset in `axil_aclk` cycles, unless another length is asked for.
pub(super) const RESET_CYCLES: u64 = 16;

/// How a shell in RTL is run.
#[derive(Clone, Debug)]
pub struct RtlConfig {
    /// PCIe functions of the top.
    pub functions: u8,
    /// Ethernet ports of the top.
    pub ports: u8,
    /// `cfg_min_pkt_len`, bytes with FCS.
    pub min_pkt_len: u16,
    /// `cfg_max_pkt_len`, bytes with FCS.
    pub max_pkt_len: u16,
    /// Initial state and stall patterns.
    pub seed: u64,
    /// On every stream and on register answers.
    pub stalls: Profile,
    /// Time of the first edge of `axil_aclk`, `axis_aclk`, and each port's `cmac_clk`, in ps.
    pub phases_ps: [u64; 4],
    /// How long `powerup_rstn` is low, in cycles of `axil_aclk`, at least 1.
    pub reset_cycles: u64,
    /// Plusargs for the RTL.
    pub plusargs: Vec<String>,
    /// Recorded window.
    pub waves: Option<Window>,
    /// Cycles of `axis_aclk` without progress, while progress is owed, that make a [`CardError::Hang`](crate::card::CardError::Hang).
    pub hang_cycles: u64,
    /// Record the pins from the start, for a bare loop to play; put here when the shell goes.
    pub recording: Option<Arc<Mutex<Recording>>>,
    /// Written when the top goes: user coverage.
    pub coverage: Option<PathBuf>,
    /// Something to break, so that the scoreboard's alarm can be tried.
    pub tap: Option<FrameTap>,
}

impl Default for RtlConfig {
    fn default() -> RtlConfig {
        RtlConfig {
            functions: 1,
            ports: 1,
            min_pkt_len: 64,
            max_pkt_len: 1518,
            seed: 0,
            stalls: Profile::None,
            phases_ps: [0; 4],
            reset_cycles: RESET_CYCLES,
            plusargs: Vec::new(),
            waves: None,
            hang_cycles: 100_000,
            recording: None,
            coverage: None,
            tap: None,
        }
    }
}

/// A shell that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The top lacks a port.
    #[error(transparent)]
    Port(#[from] PortError),
    /// Verilator or the waves file.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// The RTL stopped before its first edge: a parameter that it refuses.
    #[error(transparent)]
    Stopped(#[from] Box<Stopped>),
}

impl RtlConfig {
    /// The top that a choice names for a shape.
    pub fn top_of(rtl: &RtlChoice, shape: &Shape) -> ShellShape {
        ShellShape {
            functions: shape.functions,
            ports: shape.ports,
            faults: rtl.fault.is_some(),
            ..ShellShape::default()
        }
    }

    /// What a choice says for a shape.
    ///
    /// # Errors
    /// [`ExecuteError::Card`]: no such stall profile or tap.
    pub fn of(rtl: &RtlChoice, shape: &Shape) -> Result<RtlConfig, ExecuteError> {
        let refused = |error: &dyn std::fmt::Display| ExecuteError::Card(error.to_string());
        let mut plusargs = Vec::new();
        plusargs.extend(rtl.fault.map(|fault| format!("+onic_fault={fault}")));
        plusargs.extend(rtl.counter_preload.map(|value| format!("+onic_counter_preload={value:x}")));
        let defaults = RtlConfig::default();
        let (from_ps, until_ps) = rtl.wave_window.unwrap_or((0, u64::MAX));
        Ok(RtlConfig {
            functions: shape.functions,
            ports: shape.ports,
            min_pkt_len: shape.min_pkt_len,
            max_pkt_len: shape.max_pkt_len,
            seed: rtl.seed,
            stalls: rtl.stalls.parse().map_err(|error| refused(&error))?,
            tap: rtl.tap.as_deref().map(str::parse::<FrameTap>).transpose().map_err(|error| refused(&error))?,
            phases_ps: rtl.phases_ps,
            reset_cycles: rtl.reset_cycles.unwrap_or(defaults.reset_cycles),
            plusargs,
            hang_cycles: rtl.hang_cycles.unwrap_or(defaults.hang_cycles),
            waves: rtl.waves.clone().map(|path| Window { path, from_ps, until_ps }),
            coverage: rtl.coverage.clone(),
            ..defaults
        })
    }
}
