//! The OpenNIC shell (BAR2): everything between the wire and the QDMA's streams, one module a stage.
//!
//! ```text
//! wire ─► cmac ─► box_322 ─► adapter_rx ─► box_250 ─► function (rss) ─► arbiter ─► QdmaStream (C2H)
//! wire ◄─ cmac ◄─ box_322 ◄─ adapter_tx ◄─ box_250 ◄─ h2c ◄───────────────────── QdmaStream (H2C)
//! ```
//!
//! Frames move whole, events carry picoseconds, and beats are counted rather than carried: a frame of n beats takes n
//! cycles of the clock it crosses. So a stalled QDMA fills the function's beat FIFO and then the receive buffer beat by
//! beat, and a frame that finds the buffer full is lost as in hardware. Latencies are plausible constants; nothing that
//! a frame carries depends on them.
//!
//! The caller owns time. [`Shell::step`] does all work due at or before `now`, in order of time, and
//! [`Shell::next_event`] says when there is work again. A frame that the QDMA stalled, and H2C frames, are asked for
//! again at each step: step the shell whenever the QDMA has done something.
//!
//! Buffers move and come back: a received frame's `Vec` goes to the QDMA and one of the QDMA's finished ones comes back
//! by [`Shell::recycle`]. In steady state nothing is allocated.
//!
//! Source: shell.md; corrected behaviour, DESIGN.md section 5; what differs from upstream, docs/quirks.md.

mod adapter_rx;
mod adapter_tx;
mod agenda;
mod arbiter;
mod box_250;
mod box_322;
mod cmac;
mod counters;
mod function;
mod h2c;
mod registers;
mod system_config;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use regs::{Bar, FuncId, PortId, packet_adapter, qdma_common};

use crate::observation::{Fate, Observation, Point};
use crate::stream::{C2hCompletion, C2hFrame, Offer, QdmaStream};
use crate::time::{Clock, Time};
use crate::user_box::{BoxFrame, Egress, UserBox};

use adapter_rx::AdapterRx;
use adapter_tx::AdapterTx;
use agenda::{Agenda, Event, Streams};
use arbiter::Arbiter;
pub use box_250::PassThrough;
use cmac::Cmac;
use counters::CounterPage;
use function::Function;
use h2c::H2c;
pub use registers::BusError;
use system_config::{Module, SystemConfig};

/// One beat: 64 bytes.
const BEAT_LEN_BYTES: usize = 64;
/// One cycle of `axis_aclk`.
const AXIS_PS: u64 = Clock::AXIS.num;

/// From the MAC through box 322 and the receive buffer into box 250. With the two below, 25 cycles of `axis_aclk` from MAC
/// to C2H handshake. The model spends all three behind the buffer. Source: shell.md section 19.
const ADAPTER_RX_LATENCY_PS: u64 = 14 * AXIS_PS;
/// Through box 250.
const BOX_250_LATENCY_PS: u64 = 4 * AXIS_PS;
/// From the beat that completes the header to the arbiter. Source: shell.md section 9.5.
const RSS_LATENCY_PS: u64 = 7 * AXIS_PS;
/// From H2C to the wire side of the TX buffer, the frame's own beats not counted. Source: shell.md section 19.
const ADAPTER_TX_LATENCY_PS: u64 = 12 * AXIS_PS;

/// Buffers kept for [`Shell::recycle`]; more are freed.
const POOL_FRAMES: usize = 4096;

/// Which OpenNIC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Profile {
    /// DESIGN.md section 5: upstream's defects mended.
    #[default]
    Corrected,
    /// Upstream as measured, each quirk that can be told from a frame and its spacing. The MAC registers are the
    /// harness's stand-in there, as upstream's simulation mode needs one, and pass every frame whatever they hold.
    Upstream,
}

/// A shell's shape.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShellConfig {
    /// PCIe functions, 1…4.
    pub functions: u8,
    /// Ethernet ports, 1…2.
    pub ports: u8,
    /// `NUM_QUEUE`, 1…2048. Configures the QDMA IP; the shell itself only checks its range.
    pub queues: u16,
    /// Shortest frame that the MAC finds right, bytes *with* FCS.
    pub min_pkt_len: u16,
    /// Longest frame that the MAC finds right, bytes *with* FCS. A limit at run time, at most [`ShellConfig::buffer_pkt_len`].
    pub max_pkt_len: u16,
    /// `MAX_PKT_LEN` as built: sizes the adapters' buffers, 256…9600.
    pub buffer_pkt_len: u16,
    /// Register 0x0.
    pub build_timestamp: u32,
    /// Corrected or upstream.
    pub profile: Profile,
    /// Initial and reset value of the low words of all 64-bit counters, so that a carry can be tried (ONIC-15).
    pub counter_preload: u32,
}

impl Default for ShellConfig {
    fn default() -> ShellConfig {
        ShellConfig {
            functions: 1,
            ports: 1,
            queues: 512,
            min_pkt_len: 64,
            max_pkt_len: 1518,
            buffer_pkt_len: 9600,
            build_timestamp: 0x0101_0000,
            profile: Profile::Corrected,
            counter_preload: 0,
        }
    }
}

/// A shape that no shell can have.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{parameter} = {value} is outside {lowest}…{highest}")]
pub struct ConfigError {
    /// Field of [`ShellConfig`].
    pub parameter: &'static str,
    /// What was asked.
    pub value: u32,
    /// Least allowed.
    pub lowest: u32,
    /// Greatest allowed.
    pub highest: u32,
}

impl ShellConfig {
    /// Beats of each adapter's buffer: the power of two that holds one and a half frames of `buffer_pkt_len`.
    ///
    /// Source: shell.md section 12.
    pub fn buffer_beats(&self) -> u32 {
        (3 * u32::from(self.buffer_pkt_len)).div_ceil(2 * BEAT_LEN_BYTES as u32).next_power_of_two()
    }

    /// Check the ranges of shell.md section 1.
    ///
    /// # Errors
    /// [`ConfigError`] names the first parameter out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let range = |parameter, value: u32, lowest, highest| {
            if (lowest..=highest).contains(&value) {
                Ok(())
            } else {
                Err(ConfigError { parameter, value, lowest, highest })
            }
        };
        range("functions", self.functions.into(), 1, 4)?;
        range("ports", self.ports.into(), 1, 2)?;
        range("queues", self.queues.into(), 1, 2048)?;
        range("min_pkt_len", self.min_pkt_len.into(), 64, 256)?;
        range("buffer_pkt_len", self.buffer_pkt_len.into(), 256, 9600)?;
        range("max_pkt_len", self.max_pkt_len.into(), 256, self.buffer_pkt_len.into())
    }
}

/// One port's stages.
struct Port {
    id: PortId,
    cmac: Cmac,
    rx: AdapterRx,
    tx: AdapterTx,
    counters: CounterPage,
    /// The frame that has left the receive buffer in part, and waits in or behind box 250.
    moving: Option<Moving>,
    /// When the reader of the receive buffer can go on.
    read_at: Time,
}

/// A frame between receive buffer and function.
struct Moving {
    /// The frame, until its first beat finds room.
    frame: Option<BoxFrame>,
    egress: Egress,
    /// Beats not yet in the function.
    beats_left: u32,
    /// The frame's first beats have already gone on to the QDMA: the rest follows without waiting for room.
    flowing: bool,
}

/// The frame whose beats are on their way into the QDMA.
struct C2hBusy {
    func: usize,
    completion: C2hCompletion,
    last_beat: Time,
}

/// Frames and their fates as seen at the monitors.
pub(crate) struct Observations {
    queue: VecDeque<Observation>,
    on: bool,
}

impl Observations {
    fn push(&mut self, time: Time, point: Point) {
        if self.on {
            self.queue.push_back(Observation { time, point });
        }
    }
}

/// The shell.
pub struct Shell {
    cfg: ShellConfig,
    now: Time,
    system: SystemConfig,
    ports: Vec<Port>,
    functions: Vec<Function>,
    arbiter: Arbiter,
    busy: Option<C2hBusy>,
    /// The QDMA answered "stall" to the granted function's frame.
    stalled: bool,
    /// Frames accepted by the QDMA: the next completion's `pkt_id` less 1.
    pkt_id: u16,
    h2c: H2c,
    common: CounterPage,
    box_250: Box<dyn UserBox>,
    observations: Observations,
    pool: Vec<Vec<u8>>,
    box_drops: Vec<(&'static str, u64)>,
    reset_losses: u64,
    /// When what is due, up to date between any two calls.
    agenda: Agenda,
    /// Upstream, quirks Q2 and Q13: an access that never got an answer blocks all later ones.
    wedged: bool,
}

impl Shell {
    /// A shell whose `powerup_rstn` rises at time 0, with the default plugin. Its modules are out of reset after about
    /// 105 cycles of 125 MHz (SYSTEM_STATUS says so); frames that come before are lost.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn new(cfg: ShellConfig) -> Result<Shell, ConfigError> {
        cfg.check()?;
        let common = page(regs::shell::QDMA_COMMON, &cfg);
        let ports = (0..cfg.ports).map(|id| Port::new(PortId(id), &cfg)).collect();
        let functions = (0..cfg.functions).map(|id| Function::new(FuncId(id), cfg.profile)).collect();
        let mut shell = Shell {
            now: Time::ZERO,
            system: SystemConfig::new(&cfg),
            ports,
            functions,
            arbiter: Arbiter::new(cfg.functions, cfg.profile),
            busy: None,
            stalled: false,
            pkt_id: 0,
            h2c: H2c::new(),
            common,
            box_250: Box::new(PassThrough::new(cfg.functions, cfg.ports)),
            observations: Observations { queue: VecDeque::new(), on: true },
            pool: Vec::new(),
            box_drops: Vec::new(),
            reset_losses: 0,
            agenda: Agenda::new(&cfg),
            wedged: false,
            cfg,
        };
        shell.update_agenda();
        Ok(shell)
    }

    /// The same with a user's plugin in box 250.
    #[must_use]
    pub fn with_box_250(mut self, plugin: Box<dyn UserBox>) -> Shell {
        self.box_250 = plugin;
        self
    }

    /// Its shape.
    pub fn config(&self) -> &ShellConfig {
        &self.cfg
    }

    /// Power-up reset at the present time. Frames inside, and those announced at the wire, are lost and counted in
    /// [`Shell::reset_losses`]; time, `pkt_id` order and buffers go on.
    pub fn reset(&mut self) {
        let now = self.now;
        self.system.power_up(now);
        for module in self.system.modules() {
            self.clear(module, now);
        }
        for port in &mut self.ports {
            self.reset_losses += port.cmac.forget_wire(&mut self.pool);
        }
        self.agenda.everything_changed();
        self.update_agenda();
        self.wedged = false;
    }

    /// Record observations (the default), or not. A bench that never takes them turns them off.
    pub fn observe(&mut self, on: bool) {
        self.observations.on = on;
    }

    /// What the monitors saw, oldest first.
    #[inline]
    pub fn pop_observation(&mut self) -> Option<Observation> {
        self.observations.queue.pop_front()
    }

    /// Frames inside, the announced ones at the wire included. 0 when drained.
    pub fn inside(&self) -> usize {
        let ports: usize = self.ports.iter().map(|p| p.cmac.announced() + p.rx_inside() + p.tx.inside()).sum();
        let functions: usize = self.functions.iter().map(Function::inside).sum();
        ports + functions + usize::from(self.busy.is_some()) + self.h2c.inside()
    }

    /// Frames lost in a reset of the stage they were in.
    pub fn reset_losses(&self) -> u64 {
        self.reset_losses
    }

    /// Frames that the plugin in box 250 dropped, by the name it gave.
    pub fn box_drops(&self) -> &[(&'static str, u64)] {
        &self.box_drops
    }

    /// An empty buffer for the next frame: one that came back, or a new one.
    #[inline]
    pub fn recycle(&mut self) -> Vec<u8> {
        self.pool.pop().unwrap_or_default()
    }

    /// Give back the buffer of a frame taken by [`Shell::wire_tx`].
    pub fn give_back(&mut self, buffer: Vec<u8>) {
        recycle_into(&mut self.pool, buffer);
    }

    /// Is there room now for a whole frame of `len_bytes`, behind those already announced? Longer ones than the whole
    /// buffer are let in: they are dropped and counted, whatever the room. Room comes with time as the buffer is read,
    /// not only at events: ask again at each step.
    ///
    /// # Panics
    /// Here and in the other functions that take a port: when the shell has no such port.
    #[inline]
    pub fn wire_room(&self, port: PortId, len_bytes: usize) -> bool {
        let port = &self.ports[port.0 as usize];
        let beats = beats(len_bytes);
        beats > port.rx.depth() || port.cmac.announced_beats() + port.rx.occupied(self.now) + beats <= port.rx.depth()
    }

    /// The first time at which a further frame can start at the wire: one beat after the last one's last.
    #[inline]
    pub fn wire_free_at(&self, port: PortId) -> Time {
        self.ports[port.0 as usize].cmac.wire_free_at()
    }

    /// A frame arrives: its first beat at `start` (or the first edge of the MAC clock at which the wire is free), one beat
    /// a cycle. `err`: its FCS is wrong.
    pub fn wire_rx(&mut self, start: Time, port: PortId, data: Vec<u8>, err: bool) {
        let p = port.0 as usize;
        self.ports[p].cmac.announce(start, data, err);
        // A frame behind others changes nothing that is due.
        if self.ports[p].cmac.announced() == 1 {
            self.agenda.port_changed(p);
            self.update_agenda();
        }
    }

    /// The next frame that left the port: when its last beat left, its bytes, `tuser_err` (constant 0, as upstream).
    pub fn wire_tx(&mut self, port: PortId) -> Option<(Time, Vec<u8>, bool)> {
        self.ports[port.0 as usize].cmac.left()
    }

    /// A frame waits for the QDMA, which stalled it. It is offered again at each [`Shell::step`].
    pub fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// When there is work next that does not wait for the QDMA.
    pub fn next_event(&self) -> Option<Time> {
        let (time, _) = self.agenda.first(self.streams());
        (time < Time::NEVER).then_some(time)
    }

    /// Do all work due at or before `now`, in order of time.
    pub fn step(&mut self, now: Time, qdma: &mut dyn QdmaStream) {
        loop {
            loop {
                let (time, event) = self.agenda.first(self.streams());
                if time > now || time == Time::NEVER {
                    break;
                }
                // An event that became possible late (a write, a stall that ended) happens now, not in the past.
                self.now = self.now.max(time);
                self.run(event, qdma);
                self.update_agenda();
            }
            self.now = self.now.max(now);
            // Both ask the QDMA; what it grants may make more work due.
            let offered = self.stalled && self.offer(qdma);
            let taken = self.h2c.is_waiting() && self.take_h2c(qdma);
            self.update_agenda();
            if !offered && !taken {
                return;
            }
        }
    }

    fn run(&mut self, event: Event, qdma: &mut dyn QdmaStream) {
        match event {
            Event::RxEnd(port) => self.rx_end(port),
            Event::Read(port) => self.read(port),
            Event::Decide(func) => {
                self.agenda.function_changed(func);
                self.functions[func].decide_last(self.now, &mut self.observations);
            }
            Event::C2hEnd => self.c2h_end(qdma),
            Event::Request => {
                self.request();
                if self.arbiter.due() <= self.now {
                    self.grant(qdma);
                }
            }
            Event::Grant => self.grant(qdma),
            Event::H2c => {
                if self.h2c.is_holding() {
                    self.h2c_enter();
                } else {
                    self.take_h2c(qdma);
                }
            }
            Event::TxEnd(port) => self.tx_end(port),
        }
    }

    fn update_agenda(&mut self) {
        self.agenda.update(&self.ports, &self.functions);
    }

    /// When the streams to and from the QDMA can go on.
    #[inline]
    fn streams(&self) -> Streams {
        Streams {
            c2h_end: self.busy.as_ref().map_or(Time::NEVER, |busy| busy.last_beat),
            grant: self.arbiter.due(),
            h2c: self.h2c_due(),
        }
    }

    /// A frame's last beat arrived at the MAC.
    fn rx_end(&mut self, p: usize) {
        let (now, profile) = (self.now, self.cfg.profile);
        self.agenda.port_changed(p);
        let port = &mut self.ports[p];
        let Some(arrived) = port.cmac.arrive(&self.cfg) else { return };
        let stages = [Module::Cmac(p), Module::Box322, Module::Box322Plugin, Module::Adapter(p)];
        if self.system.waits_for(&stages, now).is_some() {
            self.reset_losses += 1;
            return recycle_into(&mut self.pool, arrived.data);
        }
        let len_bytes = arrived.data.len() as u64;
        port.counters.add(packet_adapter::RX_WIRE_PACKETS, 1);
        let fate = if profile == Profile::Corrected && !port.cmac.rx_enabled() {
            port.counters.add(packet_adapter::RX_DROP_DISABLED, 1);
            recycle_into(&mut self.pool, arrived.data);
            Fate::Disabled
        } else {
            let (fate, refused) = port.rx.store(now, arrived.data, arrived.err, profile, &mut port.counters);
            if profile == Profile::Corrected {
                port.count_rx(fate, len_bytes);
            }
            if let Some(buffer) = refused {
                recycle_into(&mut self.pool, buffer);
            }
            fate
        };
        self.observations.push(now, Point::RxEnd { port: port.id, fate });
        // Mostly the reader waits for it, and there is no need to look for what is due next.
        if port.read_due() <= now {
            self.read(p);
        }
    }

    /// The receive buffer's reader can move a frame, or a part of one, to where box 250 sends it.
    fn read(&mut self, p: usize) {
        let now = self.now;
        self.agenda.port_changed(p);
        let port = &mut self.ports[p];
        if let Some(ready_at) = self.system.waits_for(&[Module::Box250, Module::Box250Plugin], now) {
            port.read_at = ready_at;
            return;
        }
        if port.moving.is_none() {
            let Some(mut frame) = port.rx.next_frame(port.id) else { return };
            let egress = self.box_250.from_port(port.id, &mut frame);
            let beats_left = beats(frame.data.len());
            port.moving = Some(Moving { frame: Some(frame), egress, beats_left, flowing: false });
        }
        match port.moving.as_ref().map(|m| m.egress) {
            Some(Egress::Function(func)) if func.0 < self.cfg.functions => self.read_to_function(p, func.0 as usize),
            Some(Egress::Port(to)) if to.0 < self.cfg.ports => self.read_to_port(p, to.0 as usize),
            Some(Egress::Drop(name)) => self.read_to_nowhere(p, name),
            _ => self.read_to_nowhere(p, "no such egress"),
        }
    }

    fn read_to_function(&mut self, p: usize, f: usize) {
        let now = self.now;
        self.agenda.function_changed(f);
        let (port, function) = (&mut self.ports[p], &mut self.functions[f]);
        let Some(moving) = &mut port.moving else { return };
        if let Some(ready_at) = self.system.waits_for(&[Module::Qdma], now) {
            port.read_at = ready_at;
            return;
        }
        let room = if moving.flowing { u32::MAX } else { function.room(port.id) };
        let beats = moving.beats_left.min(room);
        if beats == 0 {
            // Woken when the function has handed a frame on.
            port.read_at = Time::NEVER;
            return;
        }
        let whole = beats == moving.beats_left;
        moving.beats_left -= beats;
        match moving.frame.take() {
            Some(frame) => {
                if !self.enter_function(f, Some(PortId(p as u8)), frame, beats, whole) {
                    return self.ports[p].read_done(now);
                }
            }
            None if moving.flowing => {}
            None => function.more(now, beats, whole),
        }
        let port = &mut self.ports[p];
        if whole {
            port.read_done(now);
        } else {
            port.rx.read_beats(now, beats);
            // Woken when the function has handed a frame on.
            port.read_at = Time::NEVER;
        }
    }

    /// A frame's first beats enter a function. False when the function drops the frame.
    fn enter_function(&mut self, f: usize, from: Option<PortId>, frame: BoxFrame, beats: u32, whole: bool) -> bool {
        self.agenda.function_changed(f);
        let dropped = self.functions[f].enter(self.now, from, frame, beats, whole, &mut self.observations);
        let Some(buffer) = dropped else { return true };
        self.common.add(qdma_common::C2H_DROP_QUEUE_RANGE, 1);
        self.common.add(of_function(qdma_common::FUNCTION_C2H_DROP_QUEUE_RANGE, f), 1);
        recycle_into(&mut self.pool, buffer);
        false
    }

    fn read_to_port(&mut self, p: usize, to: usize) {
        let now = self.now;
        let beats = self.ports[p].moving.as_ref().map_or(0, |m| m.beats_left);
        match self.ports[to].tx.admit_at(beats, now, self.cfg.profile) {
            Some(at) if at <= now => {}
            at => {
                // Woken when a frame has left the port, at the latest.
                self.ports[p].read_at = at.unwrap_or(Time::NEVER);
                return;
            }
        }
        if let Some(frame) = self.ports[p].moving.as_mut().and_then(|m| m.frame.take()) {
            self.tx_enter(to, frame);
        }
        self.ports[p].read_done(now);
    }

    fn read_to_nowhere(&mut self, p: usize, name: &'static str) {
        if let Some(frame) = self.ports[p].moving.as_mut().and_then(|m| m.frame.take()) {
            self.drop_in_box(name, frame.data);
        }
        let now = self.now;
        self.ports[p].read_done(now);
    }

    fn drop_in_box(&mut self, name: &'static str, buffer: Vec<u8>) {
        recycle_into(&mut self.pool, buffer);
        match self.box_drops.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => self.box_drops.push((name, 1)),
        }
    }

    /// All functions whose next frame became ready in this cycle ask the arbiter, as one group.
    fn request(&mut self) {
        let mut group = 0;
        for (f, function) in self.functions.iter_mut().enumerate() {
            if function.request_due() <= self.now {
                function.requested();
                self.agenda.function_changed(f);
                group |= 1 << f;
            }
        }
        self.arbiter.request(self.now, group);
    }

    fn grant(&mut self, qdma: &mut dyn QdmaStream) {
        self.arbiter.grant();
        self.offer(qdma);
    }

    /// Offer the granted function's frame to the QDMA. True when it went.
    fn offer(&mut self, qdma: &mut dyn QdmaStream) -> bool {
        let now = self.now;
        let Some(f) = self.arbiter.granted() else { return false };
        let Some((qid, len_bytes)) = self.functions[f].head() else { return false };
        self.stalled = qdma.c2h_offer(now, qid, len_bytes) == Offer::Stall;
        if self.stalled {
            return false;
        }
        let Some(entry) = self.functions[f].leave() else { return false };
        self.agenda.function_changed(f);
        self.wake_readers(f, entry.filling);
        let last_beat = now + u64::from(entry.beats.max(1) - 1) * AXIS_PS;
        let mut data = entry.data;
        // Upstream's lengths may lag (Q4); the QDMA goes by the length.
        data.resize(len_bytes as usize, 0);
        qdma.c2h_frame(now, C2hFrame { data, qid });
        if self.pool.len() < POOL_FRAMES {
            self.pool.push(qdma.recycle());
        }
        self.pkt_id = self.pkt_id.wrapping_add(1);
        let completion = C2hCompletion { qid, len_bytes, pkt_id: self.pkt_id };
        self.busy = Some(C2hBusy { func: f, completion, last_beat });
        if last_beat == now {
            self.c2h_end(qdma);
        }
        for p in 0..self.ports.len() {
            self.read_if_next(p);
        }
        true
    }

    /// Read now, if that is what would come next anyway: while the function is full each frame that leaves lets one in, and
    /// there is no need to look for what is due.
    #[inline]
    fn read_if_next(&mut self, p: usize) {
        let now = self.now;
        let [rx_end, read, _] = self.ports[p].due();
        let is_first = read <= now && rx_end > now;
        if is_first && self.ports[..p].iter().all(|port| port.due().iter().all(|time| *time > now)) {
            self.read(p);
        }
    }

    /// A function has room again, and the frame that just left it may be followed by its own last beats.
    fn wake_readers(&mut self, f: usize, filling: Option<PortId>) {
        let now = self.now;
        for (p, port) in self.ports.iter_mut().enumerate() {
            let Some(moving) = &mut port.moving else { continue };
            if moving.egress != Egress::Function(FuncId(f as u8)) {
                continue;
            }
            self.agenda.port_changed(p);
            moving.flowing |= filling == Some(port.id);
            if port.read_at == Time::NEVER {
                port.read_at = port.rx.read_end().max(now);
            }
        }
    }

    /// The frame's last beat was accepted.
    fn c2h_end(&mut self, qdma: &mut dyn QdmaStream) {
        let Some(busy) = self.busy.take() else { return };
        qdma.c2h_completion(self.now, busy.completion);
        self.common.add(qdma_common::C2H_PACKETS, 1);
        self.common.add(of_function(qdma_common::FUNCTION_C2H_PACKETS, busy.func), 1);
        let next = self.now + AXIS_PS;
        self.functions[busy.func].eligible_from(next);
        self.agenda.function_changed(busy.func);
        self.arbiter.release(next);
    }

    fn tx_end(&mut self, p: usize) {
        let now = self.now;
        self.agenda.port_changed(p);
        let port = &mut self.ports[p];
        let Some(data) = port.tx.leave(now) else { return };
        port.counters.add(packet_adapter::TX_WIRE_PACKETS, 1);
        port.cmac.send(now, data);
        for (reader, port) in self.ports.iter_mut().enumerate() {
            if matches!(&port.moving, Some(m) if m.egress == Egress::Port(PortId(p as u8))) {
                self.agenda.port_changed(reader);
                port.read_at = port.read_at.min(now);
            }
        }
    }

    /// A module's reset begins: what it holds is lost, what its registers hold is as after power-up.
    fn clear(&mut self, module: Module, now: Time) {
        match module {
            Module::Qdma => self.clear_qdma(now),
            Module::Cmac(p) => {
                self.ports[p].cmac.clear();
                self.ports[p].tx.enable(self.cfg.profile == Profile::Upstream, now);
            }
            Module::Adapter(p) => self.clear_adapter(p, now),
            Module::Box250Plugin => self.box_250.reset(),
            Module::Box250 => {
                self.box_250.reset();
                for p in 0..self.ports.len() {
                    if let Some(moving) = &mut self.ports[p].moving
                        && let Some(frame) = moving.frame.take()
                    {
                        self.reset_losses += 1;
                        recycle_into(&mut self.pool, frame.data);
                        self.ports[p].read_done(now);
                    }
                }
            }
            Module::Box322 | Module::Box322Plugin => {}
        }
    }

    fn clear_qdma(&mut self, now: Time) {
        for function in &mut self.functions {
            self.reset_losses += function.clear(&mut self.pool) as u64;
        }
        // The frame whose beats were under way is cut; its completion never comes.
        self.reset_losses += u64::from(self.busy.take().is_some());
        self.reset_losses += self.h2c.clear(&mut self.pool) as u64;
        self.arbiter = Arbiter::new(self.cfg.functions, self.cfg.profile);
        self.stalled = false;
        self.pkt_id = 0;
        self.common.clear();
        for port in &mut self.ports {
            // Beats of a frame whose head the reset took go the same way.
            if matches!(&port.moving, Some(m) if m.frame.is_none()) {
                port.read_done(now);
            } else if port.moving.is_some() {
                port.read_at = now;
            }
        }
    }

    fn clear_adapter(&mut self, p: usize, now: Time) {
        let port = &mut self.ports[p];
        if let Some(moving) = port.moving.take() {
            match (moving.frame, moving.egress) {
                (Some(frame), _) => {
                    self.reset_losses += 1;
                    recycle_into(&mut self.pool, frame.data);
                }
                // Its head is in the function already: the model lets the rest follow rather than hand on half a frame.
                (None, Egress::Function(func)) if !moving.flowing => {
                    self.functions[func.0 as usize].more(now, moving.beats_left, true)
                }
                _ => {}
            }
        }
        self.reset_losses += (port.rx.clear(&mut self.pool) + port.tx.clear(&mut self.pool)) as u64;
        port.read_at = Time::ZERO;
        port.counters.clear();
    }
}

impl Port {
    fn new(id: PortId, cfg: &ShellConfig) -> Port {
        Port {
            id,
            cmac: Cmac::new(),
            rx: AdapterRx::new(cfg.buffer_beats()),
            // Upstream's simulation mode has no MAC that could be off.
            tx: AdapterTx::new(cfg.buffer_beats(), cfg.profile == Profile::Upstream),
            counters: page(regs::shell::packet_adapter(id), cfg),
            moving: None,
            read_at: Time::ZERO,
        }
    }

    /// When a frame arrives whole, when the reader has something to do, when a frame has left.
    #[inline]
    fn due(&self) -> [Time; 3] {
        [self.cmac.rx_due(), self.read_due(), self.tx.due()]
    }

    /// When the reader has something to do.
    #[inline]
    fn read_due(&self) -> Time {
        if self.moving.is_some() { self.read_at } else { self.rx.ready_at().max(self.read_at) }
    }

    /// The whole frame is read, or its last part will be, one beat a cycle from now on.
    fn read_done(&mut self, now: Time) {
        self.moving = None;
        self.read_at = self.rx.read_rest(now);
    }

    /// Received frames that have entered no function.
    fn rx_inside(&self) -> usize {
        self.rx.inside() + usize::from(matches!(&self.moving, Some(m) if m.frame.is_some()))
    }

    /// Corrected counting: each frame once, its own bytes (upstream's: [`AdapterRx::store`]).
    fn count_rx(&mut self, fate: Fate, len_bytes: u64) {
        let counters = &mut self.counters;
        let (packets, bytes) = match fate {
            Fate::Accepted => (packet_adapter::RX_PACKETS_RECEIVED, packet_adapter::RX_BYTES_RECEIVED),
            Fate::Error => (packet_adapter::RX_PACKETS_ERROR, packet_adapter::RX_BYTES_ERROR),
            _ => (packet_adapter::RX_PACKETS_DROPPED, packet_adapter::RX_BYTES_DROPPED),
        };
        counters.add(packets, 1);
        counters.add(bytes, len_bytes);
        match fate {
            Fate::Overflow => counters.add(packet_adapter::RX_DROP_OVERFLOW, 1),
            Fate::TooLong => counters.add(packet_adapter::RX_DROP_TOO_LONG, 1),
            _ => {}
        }
    }
}

/// The counters that the map has at `base` on a card of this shape.
fn page(base: u32, cfg: &ShellConfig) -> CounterPage {
    let registers = regs::registers().iter().filter(|r| {
        r.bar == Bar::Shell && (base..base + 0x1000).contains(&r.offset) && r.presence.on(cfg.functions, cfg.ports)
    });
    CounterPage::new(registers, base, cfg.counter_preload, cfg.profile)
}

/// A register of one function in the QDMA's common page; `register` is function 0's.
fn of_function(register: u32, f: usize) -> u32 {
    register + f as u32 * qdma_common::FUNCTION_C2H_PACKETS_STRIDE
}

/// Beats of a frame. An empty one still takes one.
fn beats(len_bytes: usize) -> u32 {
    len_bytes.div_ceil(BEAT_LEN_BYTES).max(1) as u32
}

fn recycle_into(pool: &mut Vec<Vec<u8>>, mut buffer: Vec<u8>) {
    if pool.len() < POOL_FRAMES {
        buffer.clear();
        pool.push(buffer);
    }
}
