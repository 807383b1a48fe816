//! A top with our shell in it: beats on its pins, whole frames and register accesses on this side.
//!
//! Two tops have a shell. In `onic_shell` its streams to the QDMA are ports, in `onic_card` the QDMA is inside. Both have
//! the same clocks, wire side, registers and monitors, which are [`ShellPins`]'s. [`ShellRtl`] adds the streams and joins
//! them to any [`QdmaStream`](models::stream::QdmaStream), in beats as upstream's simulation-mode ports have them (shell.md
//! section 4). It holds the stall patterns, so that neither a model nor a QDMA ever pays for beats, and a user's own shell
//! fits where ours does.
//!
//! | file | part | who has it |
//! |---|---|---|
//! | `config`, `tap` | how it is run; a fault to be planted | both |
//! | `pins` | clocks, reset, and the parts below together | both |
//! | `wire` | frames at the ports | both |
//! | `registers` | BAR2 | both |
//! | `monitors`, `watch` | what became of each frame; silence and hangs | both |
//! | `runs` | when beats crossed between shell and QDMA | both |
//! | `c2h`, `completions`, `h2c` | the streams to the QDMA | `onic_shell` |
//! | `shell` | the streams and the rest together | `onic_shell` |
//!
//! All outputs of such a top are registered: outputs are read and inputs set before an edge, and one evaluation an edge is
//! enough. Order before an edge of `axis_aclk`: monitors, C2H, completions, H2C. Before an edge of `cmac_clk`: monitors,
//! wire in, wire out. Before an edge of `axil_aclk`: the register access under way.

mod c2h;
mod completions;
mod config;
mod h2c;
mod monitors;
mod pins;
mod registers;
mod runs;
mod shell;
mod tap;
mod watch;
mod wire;

use models::time::Time;
use rtl_bridge::axis::ProtocolError;
use rtl_bridge::verilated::{PortError, Stopped};

pub use self::config::{RtlConfig, StartError};
pub use self::pins::ShellPins;
pub(super) use self::runs::Runs;
pub use self::shell::ShellRtl;
pub use self::tap::{FrameTap, ParseTapError, TapKind};
use super::CardError;

/// Numbers of the clocks.
const AXIL: usize = 0;
/// See [`AXIL`].
pub(super) const AXIS: usize = 1;
/// Of port 0; see [`AXIL`].
const CMAC: usize = 2;

/// A monitor that a user's RTL leaves out.
pub(super) fn optional<T>(bound: Result<T, PortError>) -> Result<Option<T>, PortError> {
    match bound {
        Err(PortError::Unknown(_)) => Ok(None),
        other => other.map(Some),
    }
}

fn rtl_error(stopped: Box<Stopped>) -> CardError {
    CardError::Rtl { at: Time(stopped.time_ps), message: stopped.to_string() }
}

fn protocol_error(error: ProtocolError) -> CardError {
    CardError::Rtl { at: Time(error.time_ps), message: error.to_string() }
}
