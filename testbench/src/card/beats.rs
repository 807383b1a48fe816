//! The shell in RTL, as the QDMA and the wire see it: beats on one side, whole frames on the other.
//!
//! [`ShellRtl`] runs a Verilated shell with upstream's simulation-mode ports (shell.md section 4) and joins it to any
//! [`QdmaStream`]. It holds the stall patterns, so that neither a model nor a QDMA ever pays for beats, and a user's own
//! shell fits where ours does. All outputs of such a shell are registered: outputs are read and inputs set before an
//! edge, and one evaluation an edge is enough.
//!
//! Order before an edge of `axis_aclk`: monitors, C2H, completions, H2C. Before an edge of `cmac_clk`: monitors, wire
//! in, wire out. Before an edge of `axil_aclk`: the register access under way.

use std::collections::VecDeque;
use std::str::FromStr;
use std::sync::{Arc, Mutex};

use models::observation::{Fate, Observation, Point};
use models::stream::{C2hCompletion, C2hFrame, Offer, QdmaStream};
use models::time::Time;
use regs::{Bar, FuncId, PortId, Qid};
use rtl_bridge::axil::{Master, Response};
use rtl_bridge::axis::{ProtocolError, Sink, Source, Taken};
use rtl_bridge::clock::{Clocks, Timing};
use rtl_bridge::stall::{Profile, Stall};
use rtl_bridge::tops::Library;
use rtl_bridge::verilated::{
    AnyOf, BitFlip, Input, Options, Output, PortError, Recording, Simulation, SimulationError, Stopped, WideOutput,
    Window,
};

use super::{CardError, Stalls, WireFrame};

/// One beat.
const BEAT_LEN_BYTES: usize = 64;
/// All clocks meet again after this time: 128, 64 and 165 cycles.
const COMMON_PERIOD_PS: u64 = 512_000;
/// As long as this, in `axis_aclk` cycles, may a frame be between two points of the shell that the pins show; a module's
/// reset takes 202. After that much silence nothing moves inside.
const QUIET_CYCLES: u64 = 1_000;
/// From the end of a frame in the receive buffer to `rx_room_beats` without its beats, in `cmac_clk` cycles, rounded up.
const ROOM_LAG_CYCLES: usize = 4;
/// Power-up reset in `axil_aclk` cycles, unless another length is asked for; then until all modules are out of it (105).
const RESET_CYCLES: u64 = 16;
const RESET_DONE_CYCLES: u64 = 130;

/// One cycle of `axis_aclk`.
const AXIS_PERIOD_PS: u64 = 4_000;

/// Ports that a shell can have.
const PORTS_MAX: usize = 2;

/// Numbers of the clocks.
const AXIL: usize = 0;
const AXIS: usize = 1;
const CMAC: usize = 2;

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
    /// Cycles of `axis_aclk` without progress, while progress is owed, that make a [`CardError::Hang`].
    pub hang_cycles: u64,
    /// Record the pins from the start, for a bare loop to play; put here when the shell goes.
    pub recording: Option<Arc<Mutex<Recording>>>,
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
            tap: None,
        }
    }
}

/// One fault in the C2H stream: a bit flipped on the RTL's own pins, so that waves show it; others between the pins and the
/// QDMA; and two that nobody should survive: a broken protocol, a stream that stands still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameTap {
    /// Which frame of the C2H stream, or of port 0's for [`TapKind::HoleInKeep`], counted from 0.
    pub frame: u64,
    /// What happens to it.
    pub kind: TapKind,
}

/// A tap that could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` is no tap: flip:FRAME[:BYTE[:BIT]], drop:FRAME, dup:FRAME, misroute:FRAME[:QID], keep:FRAME, \
         hold:FRAME (all count from 0)"
)]
pub struct ParseTapError(String);

impl FromStr for FrameTap {
    type Err = ParseTapError;

    fn from_str(text: &str) -> Result<FrameTap, ParseTapError> {
        let refused = || ParseTapError(text.to_string());
        let number = |part: &str| part.parse::<u64>().map_err(|_| refused());
        let short = |part: &str| u16::try_from(number(part)?).map_err(|_| refused());
        let parts: Vec<&str> = text.split(':').collect();
        let kind = match parts[..] {
            ["flip", _] => TapKind::FlipBit(0),
            ["flip", _, byte] => TapKind::FlipBit(8 * u32::from(short(byte)?)),
            ["flip", _, byte, bit @ ("0" | "1" | "2" | "3" | "4" | "5" | "6" | "7")] => {
                TapKind::FlipBit(8 * u32::from(short(byte)?) + u32::from(short(bit)?))
            }
            ["drop", _] => TapKind::Drop,
            ["dup" | "duplicate", _] => TapKind::Duplicate,
            ["misroute", _] => TapKind::MisrouteBeside,
            ["keep", _] => TapKind::HoleInKeep,
            ["hold", _] => TapKind::Hold,
            ["misroute", _, qid] => TapKind::Misroute(Qid(short(qid)?)),
            _ => return Err(refused()),
        };
        Ok(FrameTap { frame: number(parts[1])?, kind })
    }
}

/// What a [`FrameTap`] does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TapKind {
    /// Flip this bit of the frame (bit 0 of byte 0 first), modulo its length.
    FlipBit(u32),
    /// It never arrives, nor does its completion.
    Drop,
    /// It arrives twice.
    Duplicate,
    /// It arrives in this queue, its completion too.
    Misroute(Qid),
    /// The same, in the queue beside its own: 1 for 0, 0 for 1, 3 for 2, …
    MisrouteBeside,
    /// At the wire its last beat's `tkeep` has a hole: the RTL's assertions must see it.
    HoleInKeep,
    /// From this frame on nothing is taken out of the RTL any more: a hang.
    Hold,
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

/// The shell, running. In the order of use: what every edge looks at comes first, close together.
#[repr(C)]
pub struct ShellRtl {
    simulation: Simulation,
    now: Time,
    watch: Watch,
    /// The QDMA may have an H2C frame that was not there when it was asked last.
    ask_h2c: bool,
    qdma_touched: bool,
    gated: bool,
    /// A port at which a frame came out since the last [`ShellRtl::take_new_out`].
    new_out: Option<PortId>,
    hot: Hot,
    hot_ports: [HotPort; PORTS_MAX],
    clocks: Clocks,
    c2h: C2h,
    h2c: H2c,
    cpl: Cpl,
    ports: Vec<Port>,
    funcs: Vec<FuncMonitor>,
    h2c_drop: Option<Output<bool>>,
    master: Master,
    response: Option<Response>,
    observations: VecDeque<Observation>,
    /// They are kept.
    observes: bool,
    spare: Vec<Vec<u8>>,
    powerup_rstn: Input<bool>,
    reset_cycles: u64,
    recording: Option<Arc<Mutex<Recording>>>,
}

/// What is looked at before every edge of `axis_aclk`, side by side: the RTL leaves little in the cache between two edges.
struct Hot {
    /// Monitor pulses.
    monitors: Option<AnyOf>,
    c2h_tvalid: Output<bool>,
    cpl_tvalid: Output<bool>,
    /// The C2H side must be looked at whatever its pins say: a copy by the tap, a beat on hold.
    c2h_waits: bool,
    /// A beat is on hold until the QDMA has moved.
    c2h_rests: bool,
}

/// Frames on their way, and since when nothing was seen to move.
struct Watch {
    /// Frames that went in and whose end was not yet seen, as far as the monitors tell.
    inside: u64,
    /// `axis_aclk` cycles without a beat, a monitor's pulse or an offer.
    quiet_cycles: u64,
    /// `axis_aclk` cycles in which the RTL owed something and nothing moved.
    stuck_cycles: u64,
    hang_cycles: u64,
}

impl Watch {
    #[inline]
    fn moved(&mut self) {
        self.quiet_cycles = 0;
        self.stuck_cycles = 0;
    }

    fn entered(&mut self) {
        self.inside += 1;
        self.moved();
    }

    /// Saturating: a card that makes frames out of nothing is the scoreboard's business.
    fn left(&mut self) {
        self.inside = self.inside.saturating_sub(1);
        self.moved();
    }
}

/// One Ethernet port.
struct Port {
    id: PortId,
    rx: Source,
    tx: Sink,
    room: Option<Output<u16>>,
    rx_end: Option<EndMonitor>,
    tx_end: Option<EndMonitor>,
    queue: VecDeque<WireFrame>,
    out: VecDeque<WireFrame>,
    /// Most beats that the buffer was ever seen to have free.
    capacity_beats: u32,
    /// Beats of each frame that went in and whose end was not seen.
    under_way: VecDeque<u32>,
    under_way_beats: u32,
    /// Beats whose frame has ended but that `rx_room_beats` may not show yet, by age.
    settling: [u32; ROOM_LAG_CYCLES],
    /// Edges until all of them are in the room.
    settling_cycles: usize,
    /// The edge at which that was looked at last.
    looked: u64,
    /// After so many frames comes the one whose `tkeep` is to be broken.
    hole_in: Option<u64>,
}

/// What is looked at before every edge of a port's `cmac_clk`, side by side like [`Hot`].
struct HotPort {
    /// End of a frame in the receive side, a beat in the transmit side.
    pins: Option<AnyOf>,
    room: Option<Output<u16>>,
    rest: Rest,
    /// A frame is under way in the receive side.
    flows: bool,
    /// Edges so far.
    edges: u64,
}

/// What a port waits for while its pins say nothing. Two compares instead of a match: at a cold edge a jump table costs as
/// much as all the rest.
#[derive(Clone, Copy)]
struct Rest {
    /// The time of the frame at the head of the queue; never, if there is none.
    until: Time,
    /// After that, so many free beats in the receive buffer.
    room: u16,
}

impl Rest {
    /// The next edge may do something.
    const NONE: Rest = Rest { until: Time::ZERO, room: 0 };
}

impl HotPort {
    fn new(port: Option<&Port>, simulation: &Simulation) -> HotPort {
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
    fn is_silent(&self, simulation: &Simulation) -> bool {
        self.pins.as_ref().is_some_and(|pins| !simulation.any(pins))
    }

    /// While the pins say nothing, nothing can happen at the edge at `now`.
    #[inline]
    fn rests(&self, simulation: &Simulation, now: Time) -> bool {
        now < self.rest.until
            || self.rest.room > 0 && self.room.as_ref().is_some_and(|room| simulation.get(*room) < self.rest.room)
    }
}

struct EndMonitor {
    valid: Output<bool>,
    reason: Output<u8>,
}

struct FuncMonitor {
    valid: Output<bool>,
    hash: Output<u32>,
    entry: Output<u16>,
    drop: Output<bool>,
}

/// Host to card.
struct H2c {
    source: Source,
    qid: Input<u16>,
    metadata: Input<u32>,
    zero_byte: Input<bool>,
}

/// Card to host, data.
struct C2h {
    sink: Sink,
    gate: Gate,
    /// Frames that came whole.
    frames: u64,
    /// Beats taken of the frame at hand: runs of one each cycle, each with the time of the edge that took its last.
    runs: Vec<(Time, u16)>,
    /// The last of them, mostly the only one; not in `runs` yet. Empty before the first beat.
    run: (Time, u16),
    tap: Option<FrameTap>,
    /// A second copy that waits for the QDMA.
    copy: Option<C2hFrame>,
}

/// The QDMA's answer to the frame at hand.
struct Gate {
    qid: Output<u16>,
    len: Output<u16>,
    /// It has agreed.
    granted: bool,
    /// It will throw the frame away.
    discards: bool,
    /// The tap takes nothing any more.
    shut: bool,
    /// It holds the frame.
    held_by_qdma: bool,
    /// It has moved since it refused the frame: the answer may be another one now.
    ask_again: bool,
    /// A copy made by the tap goes first.
    blocked: bool,
    at_hand: (Qid, u16),
}

/// Card to host, completions. Each waits for its frame, which may be longer under way.
struct Cpl {
    tvalid: Output<bool>,
    tready: Input<bool>,
    tdata: WideOutput,
    qid: Output<u16>,
    stall: Stall,
    ready: bool,
    waiting: VecDeque<C2hCompletion>,
    /// For each frame that arrived and whose completion did not go on yet: what to do with it.
    due: VecDeque<CplAction>,
    /// Completions that the tap added, less those that it removed.
    renumber: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CplAction {
    Pass,
    Drop,
    Twice,
    To(Qid),
}

impl ShellRtl {
    /// Start a shell; call [`ShellRtl::reset`] before anything else.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(library: &Library, config: &RtlConfig) -> Result<ShellRtl, StartError> {
        let options =
            Options { plusargs: config.plusargs.clone(), seed: sub_seed(config.seed), waves: config.waves.clone() };
        let mut simulation = library.start(&options)?;
        if config.recording.is_some() {
            simulation.record_pins();
        }
        let clocks = add_clocks(&mut simulation, config)?;
        for (name, value) in [("cfg_min_pkt_len", config.min_pkt_len), ("cfg_max_pkt_len", config.max_pkt_len)] {
            let pin = simulation.input::<u16>(name)?;
            simulation.set(pin, value);
        }
        // To Verilator a clock that is high at the first evaluation has not risen: the first edge, and a reset of one cycle
        // with it, would be lost.
        simulation.eval(0)?;
        let stall = |name: &str| Stall::new(config.stalls, config.seed, name);
        let ports = (0..config.ports)
            .map(|port| Port::bind(&mut simulation, config, PortId(port)))
            .collect::<Result<Vec<_>, _>>()?;
        let funcs = (0..config.functions).map(|func| FuncMonitor::bind(&simulation, func, config.functions));
        let funcs = funcs.collect::<Result<Option<Vec<_>>, _>>()?.unwrap_or_default();
        let c2h = C2h::bind(&mut simulation, stall("c2h"), config.tap)?;
        c2h.tap_pins(&mut simulation)?;
        let cpl = Cpl::bind(&simulation, stall("cpl"))?;
        let h2c_drop = optional(simulation.output("mon_h2c_drop_valid"))?;
        let hot = Hot {
            monitors: pulses(&simulation, &funcs, &ports, h2c_drop, true),
            c2h_tvalid: c2h.sink.tvalid(),
            cpl_tvalid: cpl.tvalid,
            c2h_waits: false,
            c2h_rests: false,
        };
        Ok(ShellRtl {
            powerup_rstn: simulation.input("powerup_rstn")?,
            reset_cycles: config.reset_cycles.max(1),
            master: Master::bind(&simulation, "s_axil_sim_", 0, 1, stall("axil"))?,
            h2c: H2c::bind(&mut simulation, stall("h2c"))?,
            hot,
            ask_h2c: true,
            qdma_touched: false,
            c2h,
            cpl,
            h2c_drop,
            hot_ports: std::array::from_fn(|port| HotPort::new(ports.get(port), &simulation)),
            simulation,
            clocks,
            ports,
            funcs,
            response: None,
            gated: true,
            now: Time::ZERO,
            watch: Watch { inside: 0, quiet_cycles: 0, stuck_cycles: 0, hang_cycles: config.hang_cycles },
            observations: VecDeque::new(),
            observes: true,
            spare: Vec::new(),
            new_out: None,
            recording: config.recording.clone(),
        })
    }

    /// Power-up reset; ends when all modules are out of it. Frames inside are gone, those queued at the wire wait.
    ///
    /// # Errors
    /// [`CardError::Rtl`].
    pub fn reset(&mut self) -> Result<(), CardError> {
        self.forget();
        self.simulation.set(self.powerup_rstn, false);
        self.run_clocks(self.reset_cycles)?;
        self.simulation.set(self.powerup_rstn, true);
        // A short reset is made longer by each module's own generator, and takes a while to reach every clock domain.
        self.run_clocks(RESET_CYCLES.saturating_sub(self.reset_cycles))?;
        // Each clock domain has been in reset now; before that, assertions judge random contents.
        self.simulation.assertions(true);
        self.run_clocks(RESET_DONE_CYCLES)?;
        self.watch.moved();
        Ok(())
    }

    fn forget(&mut self) {
        let simulation = &mut self.simulation;
        self.master.reset(simulation);
        self.h2c.source.reset(simulation);
        self.c2h.sink.reset();
        self.c2h.gate.forget();
        self.hot.c2h_rests = false;
        self.c2h.copy = None;
        self.c2h.forget_beats();
        self.cpl.waiting.clear();
        self.cpl.due.clear();
        self.response = None;
        self.watch.inside = 0;
        self.hot_ports.iter_mut().for_each(|port| port.rest = Rest::NONE);
        for port in &mut self.ports {
            port.rx.reset(simulation);
            port.tx.reset();
            port.under_way.clear();
            port.under_way_beats = 0;
            port.settling = [0; ROOM_LAG_CYCLES];
            port.settling_cycles = 0;
        }
    }

    fn run_clocks(&mut self, axil_cycles: u64) -> Result<(), CardError> {
        let mut left = axil_cycles;
        while left > 0 {
            let edge = self.clocks.begin(&mut self.simulation).map_err(rtl_error)?;
            left -= u64::from(edge.has(AXIL));
            self.clocks.commit(&mut self.simulation, edge).map_err(rtl_error)?;
            self.now = Time(edge.time_ps);
        }
        Ok(())
    }

    /// The QDMA has done something: there may be room for a C2H frame that it refused and, if `sends`, an H2C frame.
    #[inline]
    pub fn qdma_moved(&mut self, sends: bool) {
        self.ask_h2c |= sends;
        self.c2h.gate.ask_again = true;
        self.hot.c2h_rests = false;
    }

    /// A C2H frame waits for the QDMA, which refused it.
    #[inline]
    pub fn waits_for_qdma(&self) -> bool {
        self.c2h.gate.held_by_qdma
    }

    /// The time of the last edge, or what [`ShellRtl::pass`] made of it.
    pub fn now(&self) -> Time {
        self.now
    }

    /// When the next edge of any clock is, and whether it is one of `axis_aclk`.
    #[inline]
    pub fn next_edge(&self) -> (Time, bool) {
        let edge = self.clocks.peek();
        (Time(edge.time_ps), edge.has(AXIS))
    }

    /// No edge until `until`: the present is then, if that is later.
    pub fn pass(&mut self, until: Time) {
        self.now = self.now.max(until);
    }

    /// One edge: all handshakes that it takes, then the edge itself. True: the QDMA was handed something, or something was
    /// taken from it, so that it may have work.
    ///
    /// # Errors
    /// [`CardError::Rtl`], and [`CardError::Hang`] when the RTL owes something and nothing has moved for too long.
    #[inline(always)]
    pub fn edge<Q: QdmaStream + ?Sized>(&mut self, qdma: &mut Q) -> Result<bool, CardError> {
        self.qdma_touched = false;
        let edge = self.clocks.begin(&mut self.simulation).map_err(rtl_error)?;
        self.now = Time(edge.time_ps);
        if edge.has(AXIS) {
            self.before_axis(qdma)?;
        }
        let mut ports = edge.rising >> CMAC;
        while ports != 0 {
            let index = ports.trailing_zeros() as usize;
            self.hot_ports[index].edges += 1;
            let hot = &self.hot_ports[index];
            if hot.is_silent(&self.simulation) {
                if hot.flows && self.step_mid_cmac(index) {
                    self.watch.moved();
                } else if !self.hot_ports[index].rests(&self.simulation, self.now) {
                    self.before_cmac(index)?;
                }
            } else {
                self.before_cmac(index)?;
            }
            ports &= ports - 1;
        }
        if edge.has(AXIL) && !self.master.is_idle() {
            self.before_axil()?;
        }
        self.clocks.commit(&mut self.simulation, edge).map_err(rtl_error)?;
        Ok(self.qdma_touched)
    }

    #[inline(never)]
    fn before_axil(&mut self) -> Result<(), CardError> {
        if let Some(response) = self.master.step(&mut self.simulation) {
            self.response = Some(response);
            self.watch.moved();
        } else if self.master.waited_cycles() > self.watch.hang_cycles / 2 {
            // Traffic elsewhere does not excuse it.
            self.master.reset(&mut self.simulation);
            let what = "onic_shell.s_axil_sim: a register access was not answered".to_string();
            return Err(CardError::Hang { cycles: self.watch.hang_cycles, at: self.now, what });
        }
        Ok(())
    }

    // ---- axis_aclk ----

    #[inline]
    fn before_axis<Q: QdmaStream + ?Sized>(&mut self, qdma: &mut Q) -> Result<(), CardError> {
        self.watch.quiet_cycles += 1;
        self.watch.stuck_cycles += 1;
        if self.hot.monitors.as_ref().is_none_or(|pulses| self.simulation.any(pulses)) {
            self.look_at_monitors();
        }
        if self.hot.c2h_rests {
            self.watch.quiet_cycles = 0;
            self.c2h.sink.hold_on(&self.simulation).map_err(protocol_error)?;
        } else if self.c2h.sink.mid_frame() && self.c2h.step_mid(&self.simulation, self.now) {
            self.watch.moved();
        } else if self.hot.c2h_waits || self.simulation.get(self.hot.c2h_tvalid) {
            self.step_c2h(qdma)?;
            self.hot.c2h_waits = self.c2h.copy.is_some() || self.c2h.sink.holds() || self.c2h.gate.held_by_qdma;
            // Nothing but the QDMA, which is not asked again before it has moved, can end this.
            self.hot.c2h_rests = self.c2h.gate.held_by_qdma && self.c2h.copy.is_none() && self.c2h.sink.holds();
        }
        // A frame that arrived may have been waited for.
        if self.simulation.get(self.hot.cpl_tvalid) || !self.cpl.waiting.is_empty() && !self.cpl.due.is_empty() {
            self.step_cpl(qdma);
        }
        if self.ask_h2c || !self.h2c.source.is_quiet() {
            self.step_h2c(qdma);
        }
        if self.watch.stuck_cycles > self.watch.hang_cycles {
            self.check_hang()?;
        }
        Ok(())
    }

    #[inline(never)]
    fn look_at_monitors(&mut self) {
        for (index, func) in self.funcs.iter().enumerate() {
            if self.simulation.get(func.valid) {
                let point = func.point(&self.simulation, FuncId(index as u8));
                if self.observes {
                    self.observations.push_back(Observation { time: self.now, point });
                }
                if matches!(point, Point::Rss { fate: Fate::QueueRange, .. }) {
                    self.watch.left();
                }
            }
        }
        for port in &self.ports {
            if let Some(fate) = port.tx_end.as_ref().and_then(|end| end.look(&self.simulation, tx_fate)) {
                if self.observes {
                    let point = Point::TxEnd { port: port.id, fate };
                    self.observations.push_back(Observation { time: self.now, point });
                }
                if fate != Fate::Accepted {
                    self.watch.left();
                }
            }
        }
        if self.h2c_drop.is_some_and(|pulse| self.simulation.get(pulse)) {
            if self.observes {
                self.observations.push_back(Observation { time: self.now, point: Point::H2cDrop });
            }
            self.watch.left();
        }
    }

    #[inline(never)]
    fn step_c2h<Q: QdmaStream + ?Sized>(&mut self, qdma: &mut Q) -> Result<(), CardError> {
        let c2h = &mut self.c2h;
        if c2h.copy.is_some() {
            self.qdma_touched = true;
            c2h.hand_over_copy(self.now, qdma, &mut self.cpl.due);
        }
        let C2h { sink, gate, .. } = c2h;
        let (now, watch) = (self.now, &mut self.watch);
        let taken = sink.step(&mut self.simulation, |simulation| {
            watch.quiet_cycles = 0;
            gate.ask(simulation, now, qdma)
        });
        let taken = taken.map_err(protocol_error)?;
        if taken == Taken::Nothing {
            return Ok(());
        }
        c2h.note_beat(self.now);
        if taken == Taken::Beat {
            self.watch.moved();
        } else {
            self.watch.left();
            let (data, _) = c2h.sink.take_frame(qdma.recycle());
            let (qid, copies) = c2h.deliver(data, self.now, qdma, &mut self.cpl.due)?;
            if self.observes {
                (0..copies).for_each(|_| self.observations.extend(c2h.crossing(qid)));
            }
            c2h.forget_beats();
        }
        c2h.follow(&mut self.simulation, self.now);
        Ok(())
    }

    #[inline(never)]
    fn step_cpl<Q: QdmaStream + ?Sized>(&mut self, qdma: &mut Q) {
        if self.simulation.get(self.cpl.tvalid) {
            self.cpl.take(&mut self.simulation);
            self.watch.moved();
        }
        while !self.cpl.due.is_empty() && !self.cpl.waiting.is_empty() {
            self.qdma_touched = true;
            self.cpl.hand_over(self.now, qdma);
        }
    }

    #[inline(never)]
    fn step_h2c<Q: QdmaStream + ?Sized>(&mut self, qdma: &mut Q) {
        if self.h2c.source.is_idle() {
            self.ask_h2c = qdma.h2c_peek(self.now).is_some();
        }
        if self.h2c.source.is_idle()
            && self.ask_h2c
            && let Some(frame) = qdma.h2c_take(self.now)
        {
            self.qdma_touched = true;
            let old = self.h2c.load(&mut self.simulation, frame);
            if old.capacity() > 0 {
                qdma.give_back(old);
            }
            self.watch.moved();
        }
        self.h2c.source.drive(&mut self.simulation);
        match self.h2c.source.look(&self.simulation) {
            Taken::Nothing => {}
            Taken::Beat => self.watch.moved(),
            Taken::LastBeat => self.watch.entered(),
        }
    }

    // ---- cmac_clk ----

    /// A beat within a frame goes in, and nothing else.
    #[inline(never)]
    fn step_mid_cmac(&mut self, index: usize) -> bool {
        self.ports[index].rx.step_mid(&mut self.simulation)
    }

    #[inline(never)]
    fn before_cmac(&mut self, index: usize) -> Result<(), CardError> {
        let port = &mut self.ports[index];
        if let Some(fate) = port.look_at_rx_end(&self.simulation, self.hot_ports[index].edges) {
            if self.observes {
                let point = Point::RxEnd { port: port.id, fate };
                self.observations.push_back(Observation { time: self.now, point });
            }
            if fate == Fate::Accepted { self.watch.moved() } else { self.watch.left() }
        }
        if port.rx.is_idle() && port.may_start(&self.simulation, self.now, self.gated) {
            let old = port.start_frame();
            if port.hole_in.as_mut().is_some_and(|frames| std::mem::replace(frames, frames.wrapping_sub(1)) == 0) {
                port.rx.break_tkeep();
            }
            if old.capacity() > 0 {
                self.spare.push(old);
            }
        }
        port.rx.drive(&mut self.simulation);
        match port.rx.look(&self.simulation) {
            Taken::Nothing => {}
            Taken::Beat => self.watch.moved(),
            Taken::LastBeat => self.watch.entered(),
        }
        let watch = &mut self.watch;
        let taken = port.tx.step(&mut self.simulation, |_| {
            watch.moved();
            true
        });
        if taken.map_err(protocol_error)? == Taken::LastBeat {
            self.watch.left();
            let (data, err) = port.tx.take_frame(recycled(&mut self.spare));
            port.out.push_back(WireFrame { data, err, time: self.now });
            self.new_out.get_or_insert(port.id);
        }
        let hot = &mut self.hot_ports[index];
        hot.rest = port.rest(self.now, self.gated);
        hot.flows = !port.rx.is_idle() && !port.tx.holds();
        Ok(())
    }

    // ---- Registers ----

    /// Begin a register access: a read, or a write of `value`. Then run edges until [`ShellRtl::answer`].
    ///
    /// # Panics
    /// While another one is under way.
    pub fn access(&mut self, offset: u32, value: Option<u32>) {
        self.watch.moved();
        match value {
            None => self.master.read(&mut self.simulation, offset),
            Some(value) => self.master.write(&mut self.simulation, offset, value),
        }
    }

    /// The answer to the access under way, once.
    ///
    /// # Errors
    /// [`CardError::Bus`]: the bus refused it.
    pub fn answer(&mut self, offset: u32) -> Result<Option<u32>, CardError> {
        let refused = |response| Err(CardError::Bus { bar: Bar::Shell, offset, response });
        match self.response.take() {
            None => Ok(None),
            Some(Response::Okay(data)) => Ok(Some(data)),
            Some(Response::SlaveError) => refused("SLVERR"),
            Some(Response::DecodeError) => refused("DECERR"),
        }
    }

    // ---- Wire ----

    /// See [`Card::gate_wire`](super::Card::gate_wire).
    pub fn gate_wire(&mut self, gated: bool) {
        self.gated = gated;
        self.hot_ports.iter_mut().for_each(|port| port.rest = Rest::NONE);
    }

    /// See [`Card::wire_in`](super::Card::wire_in). A port that the card lacks takes nothing.
    pub fn wire_in(&mut self, port: PortId, frame: WireFrame) {
        let index = usize::from(port.0);
        if let Some(port) = self.ports.get_mut(index) {
            self.watch.moved();
            port.queue.push_back(frame);
            self.hot_ports[index].rest = Rest::NONE;
        }
    }

    /// See [`Card::wire_queued`](super::Card::wire_queued).
    pub fn wire_queued(&self, port: PortId) -> usize {
        self.ports.get(usize::from(port.0)).map_or(0, |port| port.queue.len())
    }

    /// See [`Card::wire_out`](super::Card::wire_out).
    pub fn wire_out(&mut self, port: PortId) -> Option<WireFrame> {
        self.ports.get_mut(usize::from(port.0))?.out.pop_front()
    }

    /// Will [`ShellRtl::take_new_out`] have something to say?
    #[inline]
    pub fn has_new_out(&self) -> bool {
        self.new_out.is_some()
    }

    /// The first port at which a frame came out since the last call, if any did.
    #[inline]
    pub fn take_new_out(&mut self) -> Option<PortId> {
        self.new_out.take()
    }

    /// See [`Card::observe`](super::Card::observe). Frames that are lost are looked at all the same: they are not inside.
    pub fn observe(&mut self, on: bool) {
        self.observes = on;
        self.hot.monitors = pulses(&self.simulation, &self.funcs, &self.ports, self.h2c_drop, on);
    }

    /// See [`Card::observation`](super::Card::observation).
    pub fn observation(&mut self) -> Option<Observation> {
        self.observations.pop_front()
    }

    /// See [`Card::recycle`](super::Card::recycle).
    pub fn recycle(&mut self) -> Vec<u8> {
        recycled(&mut self.spare)
    }

    /// See [`Card::give_back`](super::Card::give_back).
    pub fn give_back(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }

    // ---- Rest ----

    /// Frames that the monitors saw enter and not leave.
    pub fn inside(&self) -> u64 {
        self.watch.inside
    }

    /// Nothing inside moves until something outside does: every frame has come out; or, should one be lost on the way
    /// against what the monitors say, nothing has stirred for longer than any frame takes.
    pub fn idle(&self) -> bool {
        let wanting = self.ports.iter().any(|port| !port.queue.is_empty() || !port.rx.is_idle());
        let busy = wanting || !self.h2c.source.is_idle() || !self.master.is_idle() || self.c2h.copy.is_some();
        let settled = self.watch.inside == 0 && self.cpl.due.is_empty() && self.cpl.waiting.is_empty();
        !busy && (settled || self.watch.quiet_cycles > QUIET_CYCLES)
    }

    /// Nothing has moved for longer than anything takes: edges may be left out.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.watch.quiet_cycles > QUIET_CYCLES && self.h2c.source.is_idle() && self.master.is_idle()
    }

    /// While quiet: stop the clocks for as many common periods as fit before `until` and before the next frame at the
    /// wire. What the clocks would have counted in that time is nothing that our shell shows.
    pub fn skip(&mut self, until: Time) {
        let mut until = until;
        for port in &self.ports {
            let due =
                if port.rx.is_idle() { port.queue.front().map_or(Time::NEVER, |frame| frame.time) } else { Time::ZERO };
            until = until.min(due);
        }
        let periods = until.0.saturating_sub(self.next_edge().0.0) / COMMON_PERIOD_PS;
        if periods > 0 && !self.simulation.records_at(until.0) && self.clocks.skip(periods * COMMON_PERIOD_PS) {
            self.now = Time(self.now.0 + periods * COMMON_PERIOD_PS);
        }
    }

    /// The simulation: waves, coverage, log.
    pub fn simulation(&mut self) -> &mut Simulation {
        &mut self.simulation
    }

    /// See [`Card::stalls`](super::Card::stalls).
    pub fn stalls(&self) -> Stalls {
        Stalls {
            wire_in: self.ports.iter().map(|port| port.rx.two_beat_stalls()).sum(),
            c2h: self.c2h.sink.two_beat_stalls(),
            h2c: self.h2c.source.two_beat_stalls(),
            wire_out: self.ports.iter().map(|port| port.tx.two_beat_stalls()).sum(),
        }
    }

    /// Evaluations so far.
    pub fn evals(&self) -> u64 {
        self.clocks.evals()
    }

    /// Nothing has moved for the hang limit. Whose turn is it?
    #[cold]
    fn check_hang(&mut self) -> Result<(), CardError> {
        let what = if self.h2c.source.is_presented() {
            Some("onic_shell.s_axis_qdma_h2c_sim: the RTL does not take a beat that is offered".to_string())
        } else if self.c2h.gate.held_by_qdma {
            None
        } else if self.c2h.sink.offers(&self.simulation) {
            Some("onic_shell.m_axis_qdma_c2h_sim: nobody takes a beat that is offered".to_string())
        } else {
            let waits = |port: &&Port| port.queue.front().is_some_and(|frame| frame.time <= self.now);
            let port = self.ports.iter().find(waits);
            port.map(|port| {
                format!(
                    "onic_shell.s_axis_cmac_rx_sim, port {}: a frame waits, the receive buffer does not empty",
                    port.id.0
                )
            })
        };
        let cycles = self.watch.stuck_cycles;
        self.watch.stuck_cycles = 0;
        what.map_or(Ok(()), |what| Err(CardError::Hang { cycles, at: self.now, what }))
    }
}

impl Drop for ShellRtl {
    fn drop(&mut self) {
        if let Some(recording) = self.recording.take()
            && let Ok(mut place) = recording.lock()
        {
            *place = self.simulation.take_recording();
        }
    }
}

impl Port {
    fn bind(simulation: &mut Simulation, config: &RtlConfig, id: PortId) -> Result<Port, PortError> {
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

    /// The end of a frame in the receive side, before the port's edge number `edge`; and the beats of those that ended a while
    /// ago are in the room by now.
    #[inline]
    fn look_at_rx_end(&mut self, simulation: &Simulation, edge: u64) -> Option<Fate> {
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
    fn may_start(&mut self, simulation: &Simulation, now: Time, gated: bool) -> bool {
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
    fn room_needed(&self, len_bytes: usize) -> u32 {
        // A frame that no buffer could hold goes when the buffer is empty, to be dropped there.
        beats(len_bytes).min(self.capacity_beats) + self.under_way_beats
    }

    /// What the port waits for from here on, if it has nothing under way.
    #[inline]
    fn rest(&self, now: Time, gated: bool) -> Rest {
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
    fn start_frame(&mut self) -> Vec<u8> {
        let Some(frame) = self.queue.pop_front() else { return Vec::new() };
        if self.rx_end.is_some() {
            let beats = beats(frame.data.len());
            self.under_way.push_back(beats);
            self.under_way_beats += beats;
        }
        self.rx.load(frame.data, frame.err)
    }
}

impl EndMonitor {
    fn bind(simulation: &Simulation, name: &str, index: u32, count: u32) -> Result<Option<EndMonitor>, PortError> {
        let valid = optional(simulation.output_of(&format!("{name}_valid"), index, count))?;
        let reason = optional(simulation.output_of(&format!("{name}_reason"), index, count))?;
        Ok(valid.zip(reason).map(|(valid, reason)| EndMonitor { valid, reason }))
    }

    #[inline]
    fn look(&self, simulation: &Simulation, meaning: fn(u8) -> Fate) -> Option<Fate> {
        simulation.get(self.valid).then(|| meaning(simulation.get(self.reason)))
    }
}

/// `mon_rx_end_reason`. Source: rtl/top/onic_shell.sv.
fn rx_fate(reason: u8) -> Fate {
    match reason {
        0 => Fate::Accepted,
        1 => Fate::Overflow,
        3 => Fate::TooLong,
        4 => Fate::Disabled,
        _ => Fate::Error,
    }
}

/// `mon_tx_end_reason`. Source: rtl/top/onic_shell.sv.
fn tx_fate(reason: u8) -> Fate {
    match reason {
        0 => Fate::Accepted,
        1 => Fate::Dst,
        _ => Fate::TooLong,
    }
}

impl FuncMonitor {
    fn bind(simulation: &Simulation, func: u8, count: u8) -> Result<Option<FuncMonitor>, PortError> {
        let (index, count) = (u32::from(func), u32::from(count));
        let Some(valid) = optional(simulation.output_of("mon_rss_valid", index, count))? else { return Ok(None) };
        Ok(Some(FuncMonitor {
            valid,
            hash: simulation.output_of("mon_rss_hash", index, count)?,
            entry: simulation.output_of("mon_rss_entry", index, count)?,
            drop: simulation.output_of("mon_rss_drop", index, count)?,
        }))
    }

    fn point(&self, simulation: &Simulation, func: FuncId) -> Point {
        let fate = if simulation.get(self.drop) { Fate::QueueRange } else { Fate::Accepted };
        Point::Rss { func, hash: simulation.get(self.hash), entry: simulation.get(self.entry), fate }
    }
}

impl H2c {
    fn bind(simulation: &mut Simulation, stall: Stall) -> Result<H2c, PortError> {
        const PREFIX: &str = "s_axis_qdma_h2c_sim_";
        Ok(H2c {
            source: Source::bind(simulation, PREFIX, 0, 1, stall)?,
            qid: simulation.input(&format!("{PREFIX}tuser_qid"))?,
            metadata: simulation.input(&format!("{PREFIX}tuser_mdata"))?,
            zero_byte: simulation.input(&format!("{PREFIX}tuser_zero_byte"))?,
        })
    }

    /// The next frame, with its side fields, which hold for all of it.
    fn load(&mut self, simulation: &mut Simulation, frame: models::stream::H2cFrame) -> Vec<u8> {
        simulation.set(self.qid, frame.qid.0);
        simulation.set(self.metadata, frame.metadata);
        simulation.set(self.zero_byte, frame.data.is_empty());
        self.source.load(frame.data, frame.err)
    }
}

impl Gate {
    /// No frame is at hand any more.
    fn forget(&mut self) {
        (self.granted, self.blocked) = (false, false);
        (self.held_by_qdma, self.ask_again) = (false, true);
    }

    /// Before a frame's first beat the QDMA is asked, until it agrees, again whenever it has moved. Then it has agreed to all
    /// of the frame.
    #[inline]
    fn ask<Q: QdmaStream + ?Sized>(&mut self, simulation: &Simulation, now: Time, qdma: &mut Q) -> bool {
        if self.shut {
            return false;
        }
        if !self.granted {
            if self.held_by_qdma && !self.ask_again && !self.blocked {
                return false;
            }
            self.ask_again = false;
            self.at_hand = (Qid(simulation.get(self.qid)), simulation.get(self.len));
            let (qid, len_bytes) = self.at_hand;
            let offer = if self.blocked { Offer::Stall } else { qdma.c2h_offer(now, qid, len_bytes) };
            self.granted = offer != Offer::Stall;
            self.discards = offer == Offer::Drop;
            self.held_by_qdma = !self.granted;
        }
        self.granted
    }
}

impl C2h {
    fn bind(simulation: &mut Simulation, stall: Stall, tap: Option<FrameTap>) -> Result<C2h, PortError> {
        const PREFIX: &str = "m_axis_qdma_c2h_sim_";
        Ok(C2h {
            sink: Sink::bind(simulation, PREFIX, 0, 1, stall)?,
            gate: Gate {
                qid: simulation.output(&format!("{PREFIX}ctrl_qid"))?,
                len: simulation.output(&format!("{PREFIX}ctrl_len"))?,
                granted: false,
                discards: false,
                shut: tap.is_some_and(|tap| tap.kind == TapKind::Hold && tap.frame == 0),
                held_by_qdma: false,
                ask_again: true,
                blocked: false,
                at_hand: (Qid(0), 0),
            },
            frames: 0,
            runs: Vec::new(),
            run: (Time::ZERO, 0),
            tap,
            copy: None,
        })
    }

    /// Let the tap's bit be flipped, if it is one that flips.
    fn tap_pins(&self, simulation: &mut Simulation) -> Result<(), PortError> {
        const PREFIX: &str = "m_axis_qdma_c2h_sim_";
        let Some(FrameTap { kind: TapKind::FlipBit(bit), .. }) = self.tap else { return Ok(()) };
        let (valid, data) =
            (simulation.output(&format!("{PREFIX}tvalid"))?, simulation.wide_output(&format!("{PREFIX}tdata"), 0, 1)?);
        simulation.flip(BitFlip::new(valid, data, self.gate.len, bit as usize));
        self.follow(simulation, Time::ZERO);
        Ok(())
    }

    /// Tell what flips bits which beat comes next.
    #[inline]
    fn follow(&self, simulation: &mut Simulation, edge: Time) {
        let Some(flip) = simulation.flip_mut() else { return };
        let beat = self.runs.iter().chain([&self.run]).map(|&(_, beats)| usize::from(beats)).sum();
        flip.follow(edge.0, self.tap.is_some_and(|tap| tap.frame == self.frames).then_some(beat));
    }

    /// The coming edge takes a beat within a frame that the QDMA has agreed to: most do, and need no more than this.
    #[inline(never)]
    fn step_mid(&mut self, simulation: &Simulation, now: Time) -> bool {
        let flows = self.gate.granted && self.tap.is_none() && self.sink.step_mid(simulation);
        if flows {
            self.note_beat(now);
        }
        flows
    }

    /// The frame at hand is through, or will never be.
    fn forget_beats(&mut self) {
        self.runs.clear();
        self.run = (Time::ZERO, 0);
    }

    /// The coming edge takes a beat.
    #[inline]
    fn note_beat(&mut self, now: Time) {
        match self.run {
            (last, beats) if beats > 0 && last + AXIS_PERIOD_PS == now => self.run = (now, beats + 1),
            (_, beats) => {
                if beats > 0 {
                    self.runs.push(self.run);
                }
                self.run = (now, 1);
            }
        }
    }

    /// The frame at hand, as it crossed to `qid`.
    fn crossing(&self, qid: Qid) -> impl Iterator<Item = Observation> {
        let ends = |at| at == self.runs.len();
        self.runs
            .iter()
            .chain([&self.run])
            .enumerate()
            .map(move |(at, &(time, beats))| Observation { time, point: Point::C2h { qid, beats, last: ends(at) } })
    }

    /// A whole frame, on to the QDMA, through the tap. Which queue it went to, and how often.
    fn deliver<Q: QdmaStream + ?Sized>(
        &mut self,
        data: Vec<u8>,
        now: Time,
        qdma: &mut Q,
        due: &mut VecDeque<CplAction>,
    ) -> Result<(Qid, usize), CardError> {
        self.gate.granted = false;
        let (mut qid, len_bytes) = self.gate.at_hand;
        if data.len() != usize::from(len_bytes) {
            let message = format!("C2H stream: ctrl_len is {len_bytes}, the beats hold {} bytes ({qid})", data.len());
            return Err(CardError::Rtl { at: now, message });
        }
        let tapped = self.tap.filter(|tap| tap.frame == self.frames).map(|tap| tap.kind);
        self.frames += 1;
        self.gate.shut = self.tap.is_some_and(|tap| tap.kind == TapKind::Hold && tap.frame <= self.frames);
        let mut action = CplAction::Pass;
        match tapped {
            None | Some(TapKind::FlipBit(_) | TapKind::HoleInKeep | TapKind::Hold) => {}
            Some(TapKind::Drop) => {
                due.push_back(CplAction::Drop);
                qdma.give_back(data);
                return Ok((qid, 0));
            }
            Some(TapKind::Duplicate) => {
                // Its completion goes on, twice, once the copy is there.
                self.copy = Some(C2hFrame { data: data.clone(), qid });
                self.gate.blocked = true;
                qdma.c2h_frame(now, C2hFrame { data, qid });
                return Ok((qid, 2));
            }
            Some(TapKind::Misroute(other)) => (qid, action) = (other, CplAction::To(other)),
            Some(TapKind::MisrouteBeside) => {
                qid = Qid(qid.0 ^ 1);
                action = CplAction::To(qid);
            }
        }
        due.push_back(action);
        qdma.c2h_frame(now, C2hFrame { data, qid });
        Ok((qid, usize::from(!self.gate.discards)))
    }

    fn hand_over_copy<Q: QdmaStream + ?Sized>(&mut self, now: Time, qdma: &mut Q, due: &mut VecDeque<CplAction>) {
        let Some(copy) = &self.copy else { return };
        if qdma.c2h_offer(now, copy.qid, copy.data.len() as u16) == Offer::Stall {
            return;
        }
        if let Some(copy) = self.copy.take() {
            (self.gate.blocked, self.gate.ask_again) = (false, true);
            qdma.c2h_frame(now, copy);
            due.push_back(CplAction::Twice);
        }
    }
}

impl Cpl {
    fn bind(simulation: &Simulation, stall: Stall) -> Result<Cpl, PortError> {
        const PREFIX: &str = "m_axis_qdma_cpl_sim_";
        let name = |signal: &str| format!("{PREFIX}{signal}");
        Ok(Cpl {
            tvalid: simulation.output(&name("tvalid"))?,
            tready: simulation.input(&name("tready"))?,
            tdata: simulation.wide_output(&name("tdata"), 0, 1)?,
            qid: simulation.output(&name("ctrl_qid"))?,
            stall,
            ready: false,
            waiting: VecDeque::new(),
            due: VecDeque::new(),
            renumber: 0,
        })
    }

    /// A completion is on offer: take it, unless the pattern holds. Layout: shell.md section 11.4.
    #[inline]
    fn take(&mut self, simulation: &mut Simulation) {
        let ready = !self.stall.holds(false);
        if ready != self.ready {
            self.ready = ready;
            simulation.set(self.tready, ready);
        }
        if ready {
            let data = simulation.bytes(&self.tdata);
            let half = |at: usize| u16::from_le_bytes([data[at], data[at + 1]]);
            let (len_bytes, pkt_id) = (half(4), half(6));
            self.waiting.push_back(C2hCompletion { qid: Qid(simulation.get(self.qid)), len_bytes, pkt_id });
        }
    }

    /// The oldest completion, whose frame has arrived. The tap's frames shift the numbers of those after them, as the
    /// QDMA counts what it sees.
    fn hand_over<Q: QdmaStream + ?Sized>(&mut self, now: Time, qdma: &mut Q) {
        let (Some(mut completion), Some(action)) = (self.waiting.pop_front(), self.due.pop_front()) else { return };
        completion.pkt_id = completion.pkt_id.wrapping_add(self.renumber);
        match action {
            CplAction::Pass => qdma.c2h_completion(now, completion),
            CplAction::Drop => self.renumber = self.renumber.wrapping_sub(1),
            CplAction::Twice => {
                qdma.c2h_completion(now, completion);
                completion.pkt_id = completion.pkt_id.wrapping_add(1);
                qdma.c2h_completion(now, completion);
                self.renumber = self.renumber.wrapping_add(1);
            }
            CplAction::To(qid) => qdma.c2h_completion(now, C2hCompletion { qid, ..completion }),
        }
    }
}

/// Beats of a frame; an empty one takes one, too.
fn beats(len_bytes: usize) -> u32 {
    len_bytes.div_ceil(BEAT_LEN_BYTES).max(1) as u32
}

/// The pulses of the monitors in `axis_aclk`: all, or those without which a lost frame would count as inside.
fn pulses(
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

fn recycled(spare: &mut Vec<Vec<u8>>) -> Vec<u8> {
    let mut buffer = spare.pop().unwrap_or_default();
    buffer.clear();
    buffer
}

/// A monitor that a user's RTL leaves out.
fn optional<T>(bound: Result<T, PortError>) -> Result<Option<T>, PortError> {
    match bound {
        Err(PortError::Unknown(_)) => Ok(None),
        other => other.map(Some),
    }
}

/// The 32 bits that Verilator takes, from all 64 of the run's.
fn sub_seed(seed: u64) -> u32 {
    (seed ^ (seed >> 32)) as u32
}

fn add_clocks(simulation: &mut Simulation, config: &RtlConfig) -> Result<Clocks, PortError> {
    let mut clocks = Clocks::new();
    let timing = |clock: models::time::Clock, phase_ps| Timing { num: clock.num, den: clock.den, phase_ps };
    let axil = simulation.input("axil_aclk")?;
    clocks.add(simulation, axil, timing(models::time::Clock::AXIL, config.phases_ps[AXIL]));
    let axis = simulation.input("axis_aclk")?;
    clocks.add(simulation, axis, timing(models::time::Clock::AXIS, config.phases_ps[AXIS]));
    for port in 0..config.ports {
        let cmac = simulation.input_of("cmac_clk", u32::from(port), u32::from(config.ports))?;
        let phase_ps = config.phases_ps.get(CMAC + usize::from(port)).copied().unwrap_or(0);
        clocks.add(simulation, cmac, timing(models::time::Clock::CMAC, phase_ps));
    }
    Ok(clocks)
}

fn rtl_error(stopped: Box<Stopped>) -> CardError {
    CardError::Rtl { at: Time(stopped.time_ps), message: stopped.to_string() }
}

fn protocol_error(error: ProtocolError) -> CardError {
    CardError::Rtl { at: Time(error.time_ps), message: error.to_string() }
}
