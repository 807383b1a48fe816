//! The wire side: each port's frames in and out, beat by beat.

use std::collections::VecDeque;

use models::observation::Fate;
use models::time::Time;
use regs::PortId;
use rtl_bridge::axis::{Sink, Source};
use rtl_bridge::stall::Stall;
use rtl_bridge::verilated::{AnyOf, Output, PortError, Simulation};

use super::monitors::{EndMonitor, rx_fate};
use super::{RtlConfig, TapKind, optional};
use crate::card::WireFrame;

/// One beat.
const BEAT_LEN_BYTES: usize = 64;
/// From the end of a frame in the receive buffer to `rx_room_beats` without its beats, in `cmac_clk` cycles, rounded up.
const ROOM_LAG_CYCLES: usize = 4;

/// One Ethernet port.
pub(super) struct Port {
    pub(super) id: PortId,
    pub(super) rx: Source,
    pub(super) tx: Sink,
    pub(super) room: Option<Output<u16>>,
    pub(super) rx_end: Option<EndMonitor>,
    pub(super) tx_end: Option<EndMonitor>,
    pub(super) queue: VecDeque<WireFrame>,
    pub(super) out: VecDeque<WireFrame>,
    /// Most beats that the buffer was ever seen to have free.
    pub(super) capacity_beats: u32,
    /// Beats of each frame that went in and whose end was not seen.
    pub(super) under_way: VecDeque<u32>,
    pub(super) under_way_beats: u32,
    /// Beats whose frame has ended but that `rx_room_beats` may not show yet, by age.
    pub(super) settling: [u32; ROOM_LAG_CYCLES],
    /// Edges until all of them are in the room.
    pub(super) settling_cycles: usize,
    /// The edge at which that was looked at last.
    pub(super) looked: u64,
    /// After so many frames comes the one whose `tkeep` is to be broken.
    pub(super) hole_in: Option<u64>,
}

/// What is looked at before every edge of a port's `cmac_clk`, side by side: the RTL leaves little in the cache between
/// two edges.
pub(super) struct HotPort {
    /// End of a frame in the receive side, a beat in the transmit side.
    pub(super) pins: Option<AnyOf>,
    pub(super) room: Option<Output<u16>>,
    pub(super) rest: Rest,
    /// A frame is under way in the receive side.
    pub(super) flows: bool,
    /// Edges so far.
    pub(super) edges: u64,
}

/// What a port waits for while its pins say nothing. Two compares instead of a match: at a cold edge a jump table costs as
/// much as all the rest.
#[derive(Clone, Copy)]
pub(super) struct Rest {
    /// The time of the frame at the head of the queue; never, if there is none.
    until: Time,
    /// After that, so many free beats in the receive buffer.
    room: u16,
}

impl Rest {
    /// The next edge may do something.
    pub(super) const NONE: Rest = Rest { until: Time::ZERO, room: 0 };
}

impl HotPort {
    pub(super) fn new(port: Option<&Port>, simulation: &Simulation) -> HotPort {
        let ends = port.iter().filter_map(|port| port.rx_end.as_ref()).map(|end| end.valid);
        let pins: Vec<_> = ends.chain(port.map(|port| port.tx.tvalid())).collect();
        HotPort {
            pins: simulation.any_of(&pins),
            room: port.and_then(|port| port.room),
            rest: Rest::NONE,
            flows: false,
            edges: 0,
        }
    }

    /// The pins say nothing.
    #[inline]
    pub(super) fn is_silent(&self, simulation: &Simulation) -> bool {
        self.pins.as_ref().is_some_and(|pins| !simulation.any(pins))
    }

    /// While the pins say nothing, nothing can happen at the edge at `now`.
    #[inline]
    pub(super) fn rests(&self, simulation: &Simulation, now: Time) -> bool {
        now < self.rest.until
            || self.rest.room > 0 && self.room.as_ref().is_some_and(|room| simulation.get(*room) < self.rest.room)
    }
}

impl Port {
    pub(super) fn bind(simulation: &mut Simulation, config: &RtlConfig, id: PortId) -> Result<Port, PortError> {
        let (index, count) = (u32::from(id.0), u32::from(config.ports));
        let stall = |name: &str| Stall::new(config.stalls, config.seed, &format!("{name}{index}"));
        Ok(Port {
            id,
            rx: Source::bind(simulation, "s_axis_cmac_rx_sim_", index, count, stall("rx"))?,
            tx: Sink::bind(simulation, "m_axis_cmac_tx_sim_", index, count, stall("tx"))?,
            room: optional(simulation.output_of("rx_room_beats", index, count))?,
            rx_end: EndMonitor::bind(simulation, "mon_rx_end", index, count)?,
            tx_end: EndMonitor::bind(simulation, "mon_tx_end", index, count)?,
            queue: VecDeque::new(),
            out: VecDeque::new(),
            capacity_beats: 0,
            under_way: VecDeque::new(),
            under_way_beats: 0,
            settling: [0; ROOM_LAG_CYCLES],
            settling_cycles: 0,
            looked: 0,
            hole_in: config.tap.filter(|tap| tap.kind == TapKind::HoleInKeep && id.0 == 0).map(|tap| tap.frame),
        })
    }

    /// Forget what is under way: for a reset. What is queued outside waits.
    pub(super) fn reset(&mut self, simulation: &mut Simulation) {
        self.rx.reset(simulation);
        self.tx.reset();
        self.under_way.clear();
        self.under_way_beats = 0;
        self.settling = [0; ROOM_LAG_CYCLES];
        self.settling_cycles = 0;
    }

    /// The end of a frame in the receive side, before the port's edge number `edge`; and the beats of those that ended a while
    /// ago are in the room by now.
    #[inline]
    pub(super) fn look_at_rx_end(&mut self, simulation: &Simulation, edge: u64) -> Option<Fate> {
        let passed = edge - std::mem::replace(&mut self.looked, edge);
        for _ in 0..passed.min(self.settling_cycles as u64) {
            self.settling_cycles -= 1;
            let [.., oldest] = self.settling;
            self.under_way_beats -= oldest;
            self.settling.copy_within(..ROOM_LAG_CYCLES - 1, 1);
            self.settling[0] = 0;
        }
        let fate = self.rx_end.as_ref()?.look(simulation, rx_fate)?;
        self.settling[0] = self.under_way.pop_front().unwrap_or(0);
        self.settling_cycles = ROOM_LAG_CYCLES;
        Some(fate)
    }

    /// May the frame at the head of the queue begin with this edge?
    #[inline]
    pub(super) fn may_start(&mut self, simulation: &Simulation, now: Time, gated: bool) -> bool {
        let Some(frame) = self.queue.front() else { return false };
        if frame.time > now {
            return false;
        }
        let (true, Some(room)) = (gated, self.room) else { return true };
        let room = u32::from(simulation.get(room));
        self.capacity_beats = self.capacity_beats.max(room);
        room > 0 && room >= self.room_needed(frame.data.len())
    }

    /// Free beats with which a frame may begin.
    #[inline]
    pub(super) fn room_needed(&self, len_bytes: usize) -> u32 {
        // A frame that no buffer could hold goes when the buffer is empty, to be dropped there.
        beats(len_bytes).min(self.capacity_beats) + self.under_way_beats
    }

    /// What the port waits for from here on, if it has nothing under way.
    #[inline]
    pub(super) fn rest(&self, now: Time, gated: bool) -> Rest {
        if !self.rx.is_quiet() || self.settling_cycles > 0 || self.tx.holds() {
            return Rest::NONE;
        }
        match self.queue.front() {
            None => Rest { until: Time::NEVER, room: 0 },
            Some(frame) if frame.time > now => Rest { until: frame.time, room: 0 },
            Some(frame) if gated && self.room.is_some() => {
                // More room than there ever was changes what is needed.
                let needed = self.room_needed(frame.data.len()).min(self.capacity_beats + 1);
                Rest { until: Time::ZERO, room: needed.clamp(1, u32::from(u16::MAX)) as u16 }
            }
            Some(_) => Rest::NONE,
        }
    }

    #[inline(never)]
    pub(super) fn start_frame(&mut self) -> Vec<u8> {
        let Some(frame) = self.queue.pop_front() else { return Vec::new() };
        if self.rx_end.is_some() {
            let beats = beats(frame.data.len());
            self.under_way.push_back(beats);
            self.under_way_beats += beats;
        }
        self.rx.load(frame.data, frame.err)
    }
}

/// Beats of a frame; an empty one takes one, too.
fn beats(len_bytes: usize) -> u32 {
    len_bytes.div_ceil(BEAT_LEN_BYTES).max(1) as u32
}

pub(super) fn recycled(spare: &mut Vec<Vec<u8>>) -> Vec<u8> {
    let mut buffer = spare.pop().unwrap_or_default();
    buffer.clear();
    buffer
}
