//! A card, whatever it is made of, as the testbench runs it.

#[cfg(feature = "rtl")]
pub mod beats;
mod choice;
#[cfg(feature = "rtl")]
pub mod engine_pins;
#[cfg(feature = "rtl")]
pub mod host_port;
#[cfg(feature = "rtl")]
pub mod hybrid;
mod knobs;
pub mod layer;
pub mod model;
#[cfg(feature = "rtl")]
pub mod register_port;
#[cfg(feature = "rtl")]
pub mod rtl;

use std::any::Any;

use models::host_memory::HostMemory;
use models::qdma::Qdma;
use models::time::Time;

pub use choice::{Choice, RtlChoice, qdma_config};
pub use knobs::{Ahead, Fetch, Knobs, Link};
pub use models::observation::{Fate, Observation, Point};
use regs::{Bar, FuncId, PortId};

use crate::outcome::cycle_before;

/// How many functions and ports, and their limits. `PFxPORTS[,queues=N,max-pkt=N,mtu=N,ring=N]` on the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// PCIe functions, 1…4.
    pub functions: u8,
    /// Ethernet ports, 1…2.
    pub ports: u8,
    /// Queues for each function that the driver sets up.
    pub queues: u16,
    /// Shortest frame the MAC takes, in bytes *with* FCS, as upstream's `MIN_PKT_LEN` counts.
    pub min_pkt_len: u16,
    /// Longest frame the MAC takes, in bytes *with* FCS, as upstream's `MAX_PKT_LEN` counts.
    pub max_pkt_len: u16,
    /// The driver's MTU: IP bytes, Ethernet header and FCS left out.
    pub mtu: u16,
    /// Entries of each ring as programmed in the table, the status entry included.
    pub ring: u16,
}

/// A frame at a port: wire side, FCS left out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WireFrame {
    /// Ethernet header to payload; no preamble, no FCS.
    pub data: Vec<u8>,
    /// The FCS was wrong (in), or `tuser_err` was set (out).
    pub err: bool,
    /// Not before this time does its first beat start (in); when its last beat left (out).
    pub time: Time,
}

/// What ended an [`Card::advance`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The time asked for has come.
    Deadline,
    /// The card emitted an MSI-X message.
    Interrupt {
        /// Who.
        func: FuncId,
        /// Index into the function's MSI-X table.
        vector: u16,
    },
    /// A frame left a port and waits in [`Card::wire_out`].
    Wire(PortId),
}

/// A card that stopped, or that did not answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CardError {
    /// The bus answered with an error.
    #[error("{bar} offset {offset:#x}: {response}")]
    Bus {
        /// Register space.
        bar: Bar,
        /// Byte offset.
        offset: u32,
        /// `"DECERR"` or `"SLVERR"`.
        response: &'static str,
    },
    /// A register access or a frame made no progress within the hang limit.
    #[error("no progress for {cycles} cycles, in cycle {} ({at}): {what}", cycle_before(*at))]
    Hang {
        /// The limit, `--hang-cycles`.
        cycles: u64,
        /// When.
        at: Time,
        /// What was waited for.
        what: String,
    },
    /// An assertion, `$fatal` or `$stop` in RTL.
    #[error("RTL stopped in cycle {} ({at}): {message}", cycle_before(*at))]
    Rtl {
        /// When.
        at: Time,
        /// Instance path and message, as the RTL printed them.
        message: String,
    },
}

/// Frames of two beats that were held between the two beats, on each stream of a card that has beats.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stalls {
    /// At the ports, in: the source paused.
    pub wire_in: u64,
    /// From the shell to the QDMA: the sink was not ready.
    pub c2h: u64,
    /// From the QDMA to the shell: the source paused.
    pub h2c: u64,
    /// At the ports, out: the sink was not ready.
    pub wire_out: u64,
}

/// Frames that a DMA engine had and lost, where its registers can't tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DmaCounts {
    /// From the host: all that it took, whatever then became of them.
    pub h2c_taken: u64,
    /// Of those, frames that it lost and the shell never got.
    pub h2c_lost: u64,
    /// To the host: completion entries whose error bit says that their frame is lost. Its registers count them among the
    /// others.
    pub c2h_error_entries: u64,
}

/// One OpenNIC card.
///
/// It owns its state but no host memory: that is lent to each call that may do DMA. MMIO writes only record; the work
/// (and its DMA) happens while time advances.
pub trait Card: Send + Any {
    /// `model`, `hybrid`, `rtl`, …
    fn name(&self) -> &str;

    /// Power-up reset, state as after it; time goes on.
    ///
    /// # Errors
    /// [`CardError`].
    fn reset(&mut self) -> Result<(), CardError>;

    /// The present.
    fn now(&self) -> Time;

    /// Run until `until`, or until the first interrupt or wire frame, whichever comes first. Their own times come with
    /// [`Card::take_interrupt`] and [`Card::wire_out`]; [`Card::now`] may be a little later, on a card that works in slices.
    ///
    /// # Errors
    /// [`CardError::Rtl`], [`CardError::Hang`].
    fn advance(&mut self, until: Time, memory: &mut dyn HostMemory) -> Result<Stop, CardError>;

    /// Read a register. Time passes until the card answers.
    ///
    /// # Errors
    /// [`CardError`].
    fn mmio_read(&mut self, func: FuncId, bar: Bar, offset: u32, memory: &mut dyn HostMemory)
    -> Result<u32, CardError>;

    /// Write a register. Posted.
    ///
    /// # Errors
    /// [`CardError`].
    fn mmio_write(
        &mut self,
        func: FuncId,
        bar: Bar,
        offset: u32,
        value: u32,
        memory: &mut dyn HostMemory,
    ) -> Result<(), CardError>;

    /// Interrupts raised since the last call, in order of time: those met while a register access ran are here too.
    fn take_interrupt(&mut self) -> Option<(FuncId, u16, Time)>;

    /// Hold each queued frame at the wire until the receive buffer has room for all of it (`--pace fast`), so that nothing
    /// overflows; or let frames come when they come.
    fn gate_wire(&mut self, gated: bool);

    /// A frame arrives at the port, after those before it, not before `frame.time`.
    fn wire_in(&mut self, port: PortId, frame: WireFrame);

    /// How many frames given to [`Card::wire_in`] have not yet entered the card.
    fn wire_queued(&self, port: PortId) -> usize;

    /// The next frame that left the port.
    fn wire_out(&mut self, port: PortId) -> Option<WireFrame>;

    /// Record what the monitors see (the default), or not, for a run in which nobody asks. A card may go on all the same.
    fn observe(&mut self, _on: bool) {}

    /// What the card's monitors saw since the last call, in order of time at each point. None from a user's RTL without
    /// monitors.
    fn observation(&mut self) -> Option<Observation>;

    /// Frames that the card's DMA engine lost, by reason, as it counts them itself and not by MMIO.
    fn drops(&self, each: &mut dyn FnMut(&'static str, u64));

    /// The QDMA model inside, for its own counters and for faults that can come while it runs. None from a card without one.
    fn qdma(&mut self) -> Option<&mut Qdma> {
        None
    }

    /// What the DMA engine counts by itself and not by MMIO. None from a card that can't tell.
    fn dma_counts(&mut self) -> Option<DmaCounts> {
        let counters = self.qdma()?.counters();
        Some(DmaCounts {
            h2c_taken: counters.h2c.frames_in,
            h2c_lost: counters.h2c.dropped_total(),
            c2h_error_entries: counters.completions_with_error,
        })
    }

    /// How often a stall pattern struck where it matters most. None on a card without beats.
    fn stalls(&self) -> Stalls {
        Stalls::default()
    }

    /// An empty buffer for the next frame in, from those the card has finished with.
    fn recycle(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Give back the buffer of a frame that [`Card::wire_out`] gave.
    fn give_back(&mut self, _buffer: Vec<u8>) {}

    /// Nothing inside moves until something from outside does.
    fn idle(&self) -> bool;

    /// The run is over: write out what was recorded. The card itself may live on, if somebody still holds it.
    fn close(&mut self) {}
}
