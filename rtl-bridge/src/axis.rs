//! AXI-Stream from Rust: source, sink and monitor on pins.
//!
//! All three work edge by edge and never wait. Before a rising edge a [`Source`] or [`Sink`] *drives* its inputs for that
//! edge and then *looks* whether the edge takes a beat: valid and ready as they stand. Where every output of the RTL is
//! registered the two can follow each other; else [`Clocks::settle`](crate::clock::Clocks::settle) goes between.
//!
//! Beats are little-endian: byte 0 of a frame in bits 7:0 of its first beat.

use crate::stall::Stall;
use crate::verilated::{Input, Output, PortError, Simulation, WideInput, WideOutput};

/// A broken rule of the stream protocol, seen at the pins.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{stream}: {rule}")]
pub struct ProtocolError {
    /// Prefix of the port names.
    pub stream: String,
    /// When the edge before the broken one was, ps.
    pub time_ps: u64,
    /// What was broken.
    pub rule: &'static str,
}

/// What an edge takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// Nothing.
    Nothing,
    /// A beat within a frame.
    Beat,
    /// A frame's last beat.
    LastBeat,
}

// ---- Source ----

/// Drives frames into the RTL, one at a time.
pub struct Source {
    tvalid: Input<bool>,
    tready: Option<Output<bool>>,
    tlast: Input<bool>,
    tdata: WideInput,
    tkeep: Option<Input<u64>>,
    mty: Option<Input<u8>>,
    err: Option<Input<bool>>,
    stall: Stall,
    frame: Vec<u8>,
    err_frame: bool,
    /// First byte of the beat at hand.
    offset: usize,
    active: bool,
    /// The beat at hand is on the pins.
    presented: bool,
    /// What `tvalid` is driven to.
    valid: bool,
    /// The side pins are as a full beat before the last one wants them.
    mid_beat: bool,
    /// Of the frame under way, `tkeep` is to break the protocol.
    holed: bool,
    two_beats: TwoBeatStalls,
}

/// Frames of two beats that were held between the two: there a shell is most easily led astray (quirk Q3), so that a test
/// wants to know how often it was tried.
#[derive(Clone, Copy, Debug, Default)]
struct TwoBeatStalls {
    /// The frame under way was held after its first beat.
    held: bool,
    frames: u64,
}

impl TwoBeatStalls {
    /// The frame is through.
    #[inline]
    fn end(&mut self, len_bytes: usize, width_bytes: usize) {
        self.frames += u64::from(self.held && len_bytes > width_bytes && len_bytes <= 2 * width_bytes);
        self.held = false;
    }
}

impl Source {
    /// Bind instance `index` of `count` of the stream whose ports begin with `prefix`: `tvalid`, `tdata` and `tlast`;
    /// `tready`, `tkeep`, `mty` (or `tuser_mty`) and `tuser_err` if the top has them.
    ///
    /// # Errors
    /// [`PortError`].
    pub fn bind(
        simulation: &mut Simulation,
        prefix: &str,
        index: u32,
        count: u32,
        stall: Stall,
    ) -> Result<Source, PortError> {
        let name = |signal: &str| format!("{prefix}{signal}");
        let tvalid = simulation.input_of(&name("tvalid"), index, count)?;
        let mty = optional(simulation.input_of(&name("mty"), index, count))?;
        simulation.set(tvalid, false);
        Ok(Source {
            tvalid,
            tready: optional(simulation.output_of(&name("tready"), index, count))?,
            tlast: simulation.input_of(&name("tlast"), index, count)?,
            tdata: simulation.wide_input(&name("tdata"), index, count)?,
            tkeep: optional(simulation.input_of(&name("tkeep"), index, count))?,
            mty: mty.or(optional(simulation.input_of(&name("tuser_mty"), index, count))?),
            err: optional(simulation.input_of(&name("tuser_err"), index, count))?,
            stall,
            frame: Vec::new(),
            err_frame: false,
            offset: 0,
            active: false,
            presented: false,
            valid: false,
            mid_beat: false,
            holed: false,
            two_beats: TwoBeatStalls::default(),
        })
    }

    /// Frames of two beats that the stall pattern held between the two.
    pub fn two_beat_stalls(&self) -> u64 {
        self.two_beats.frames
    }

    /// May [`Source::load`] be called?
    #[inline]
    pub fn is_idle(&self) -> bool {
        !self.active
    }

    /// The next frame. `err` sets `tuser_err` on its last beat. Returns the buffer of the frame before. An empty frame is
    /// one beat without bytes.
    ///
    /// # Panics
    /// While a frame is under way.
    pub fn load(&mut self, frame: Vec<u8>, err: bool) -> Vec<u8> {
        assert!(!self.active, "a frame is under way");
        self.active = true;
        self.offset = 0;
        self.err_frame = err;
        std::mem::replace(&mut self.frame, frame)
    }

    /// Break the protocol with the last beat of the frame under way: its `tkeep` is no run of ones. For a test of whoever
    /// should notice.
    pub fn break_tkeep(&mut self) {
        self.holed = true;
    }

    /// Idle, and `tvalid` is low: there is nothing to drive.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        !self.active && !self.valid
    }

    /// A beat is on the pins and was not taken yet.
    #[inline]
    pub fn is_presented(&self) -> bool {
        self.presented
    }

    /// The frame under way, or the last one.
    pub fn frame(&self) -> &[u8] {
        &self.frame
    }

    /// Forget the frame under way: for a reset.
    pub fn reset(&mut self, simulation: &mut Simulation) {
        self.active = false;
        self.presented = false;
        self.valid = false;
        simulation.set(self.tvalid, false);
    }

    /// [`Source::drive`] and [`Source::look`] in one, for the edge that most are while a long frame goes in: it takes a beat
    /// within the frame, as the last one did. False, and nothing done, if it is any other.
    #[inline]
    pub fn step_mid(&mut self, simulation: &mut Simulation) -> bool {
        let end = self.offset + self.tdata.len_bytes();
        let flows = self.active && self.valid && !self.presented && self.mid_beat && self.stall.is_none();
        if !flows || end >= self.frame.len() || self.tready.as_ref().is_some_and(|ready| !simulation.get(*ready)) {
            return false;
        }
        simulation.set_bytes(&self.tdata, &self.frame[self.offset..end]);
        self.offset = end;
        true
    }

    /// Set the pins for the next edge.
    #[inline]
    pub fn drive(&mut self, simulation: &mut Simulation) {
        if self.presented {
            return; // a beat that is offered stays as it is until it is taken
        }
        if self.active {
            if self.stall.holds(self.offset > 0) {
                self.two_beats.held |= self.offset > 0;
            } else {
                self.put_beat(simulation);
                self.presented = true;
            }
        }
        if self.valid != self.presented {
            self.valid = self.presented;
            simulation.set(self.tvalid, self.valid);
        }
    }

    /// In place of [`Source::drive`]: offer nothing new.
    pub fn rest(&mut self, simulation: &mut Simulation) {
        if self.valid && !self.presented {
            self.valid = false;
            simulation.set(self.tvalid, false);
        }
    }

    /// What the next edge takes.
    #[inline]
    pub fn look(&mut self, simulation: &Simulation) -> Taken {
        if !self.presented || self.tready.is_some_and(|ready| !simulation.get(ready)) {
            return Taken::Nothing;
        }
        self.presented = false;
        self.offset += self.tdata.len_bytes();
        if self.offset < self.frame.len() {
            return Taken::Beat;
        }
        self.active = false;
        self.two_beats.end(self.frame.len(), self.tdata.len_bytes());
        Taken::LastBeat
    }

    #[inline]
    fn put_beat(&mut self, simulation: &mut Simulation) {
        let width = self.tdata.len_bytes();
        let rest = &self.frame[self.offset..];
        if rest.len() > width {
            simulation.set_bytes(&self.tdata, &rest[..width]);
            if !self.mid_beat {
                self.mid_beat = true;
                self.put_side(simulation, width, false);
            }
        } else {
            // Bytes past the frame's end keep what the beat before left there, as they do in hardware.
            simulation.set_bytes(&self.tdata, rest);
            self.mid_beat = false;
            self.put_side(simulation, rest.len(), true);
        }
    }

    fn put_side(&mut self, simulation: &mut Simulation, len_bytes: usize, last: bool) {
        simulation.set(self.tlast, last);
        if let Some(tkeep) = self.tkeep {
            let holed = last && std::mem::take(&mut self.holed);
            simulation.set(tkeep, if holed { low_bits(len_bytes.max(3)) & !2 } else { low_bits(len_bytes) });
        }
        if let Some(mty) = self.mty {
            let width = self.tdata.len_bytes();
            simulation.set(mty, ((width - len_bytes) % width) as u8);
        }
        if let Some(err) = self.err {
            simulation.set(err, last && self.err_frame);
        }
    }
}

// ---- Monitor ----

/// Watches a stream, checks its protocol and puts its frames together. Drives nothing: it may sit on inputs and outputs.
///
/// Rules: a beat that is offered stays as it is until it is taken; `tkeep` is all ones but in the last beat, where it is
/// a run of low ones. `tready` may do as it likes.
pub struct Monitor {
    prefix: String,
    tvalid: Output<bool>,
    tready: Option<Output<bool>>,
    tlast: Output<bool>,
    tdata: WideOutput,
    tkeep: Option<Output<u64>>,
    mty: Option<Output<u8>>,
    err: Option<Output<bool>>,
    frame: Vec<u8>,
    frame_err: bool,
    mid_frame: bool,
    /// A beat is offered and not yet taken: `held`.
    holds: bool,
    held: Held,
}

/// A beat on hold.
#[derive(Default)]
struct Held {
    /// Its storage is kept from one beat to the next: at a slow reader, most beats are held.
    data: Vec<u8>,
    tkeep: u64,
    mty: u8,
    last: bool,
    err: bool,
}

impl Monitor {
    /// Bind instance `index` of `count` of the stream whose ports begin with `prefix`: `tvalid`, `tdata` and `tlast`;
    /// `tready`, `tkeep`, `mty` (or `tuser_mty`) and `tuser_err` if the top has them.
    ///
    /// # Errors
    /// [`PortError`].
    pub fn bind(simulation: &Simulation, prefix: &str, index: u32, count: u32) -> Result<Monitor, PortError> {
        let name = |signal: &str| format!("{prefix}{signal}");
        let mty = optional(simulation.watch_of(&name("mty"), index, count))?;
        Ok(Monitor {
            prefix: prefix.to_string(),
            tvalid: simulation.watch_of(&name("tvalid"), index, count)?,
            tready: optional(simulation.watch_of(&name("tready"), index, count))?,
            tlast: simulation.watch_of(&name("tlast"), index, count)?,
            tdata: simulation.watch_wide(&name("tdata"), index, count)?,
            tkeep: optional(simulation.watch_of(&name("tkeep"), index, count))?,
            mty: mty.or(optional(simulation.watch_of(&name("tuser_mty"), index, count))?),
            err: optional(simulation.watch_of(&name("tuser_err"), index, count))?,
            frame: Vec::new(),
            frame_err: false,
            mid_frame: false,
            holds: false,
            held: Held::default(),
        })
    }

    /// A beat is on offer.
    #[inline]
    pub fn offers(&self, simulation: &Simulation) -> bool {
        simulation.get(self.tvalid)
    }

    /// The next beat is not a frame's first.
    #[inline]
    pub fn mid_frame(&self) -> bool {
        self.mid_frame
    }

    /// What the next edge takes, with the pins as they stand.
    ///
    /// # Errors
    /// [`ProtocolError`].
    #[inline]
    pub fn look(&mut self, simulation: &Simulation) -> Result<Taken, ProtocolError> {
        let ready = self.tready.is_none_or(|ready| simulation.get(ready));
        self.look_at(simulation, self.offers(simulation), ready)
    }

    /// The same with `tvalid` and `tready` known.
    #[inline]
    fn look_at(&mut self, simulation: &Simulation, valid: bool, ready: bool) -> Result<Taken, ProtocolError> {
        if self.holds {
            self.check_held(simulation, valid)?;
        }
        if !valid {
            return Ok(Taken::Nothing);
        }
        if !ready {
            if !self.holds {
                self.hold(simulation);
            }
            return Ok(Taken::Nothing);
        }
        self.holds = false;
        self.take_beat(simulation)
    }

    /// The frame whose last beat was taken, in place of an empty buffer; and whether `tuser_err` was set on that beat.
    pub fn take_frame(&mut self, empty: Vec<u8>) -> (Vec<u8>, bool) {
        debug_assert!(empty.is_empty(), "frames are appended beat by beat");
        (std::mem::replace(&mut self.frame, empty), self.frame_err)
    }

    /// Forget the frame under way: for a reset.
    pub fn reset(&mut self) {
        self.frame.clear();
        self.mid_frame = false;
        self.holds = false;
    }

    fn take_beat(&mut self, simulation: &Simulation) -> Result<Taken, ProtocolError> {
        let data = simulation.bytes(&self.tdata);
        let last = simulation.get(self.tlast);
        let len = self.beat_len(simulation, last)?;
        match <&[u8; 64]>::try_from(&data[..len]) {
            Ok(beat) => self.frame.extend_from_slice(beat), // of known size: without a call
            Err(_) => self.frame.extend_from_slice(&data[..len]),
        }
        self.mid_frame = !last;
        if !last {
            return Ok(Taken::Beat);
        }
        self.frame_err = self.err.is_some_and(|err| simulation.get(err));
        Ok(Taken::LastBeat)
    }

    /// The beat on the pins, if it is full and not the frame's last.
    #[inline]
    fn take_mid_beat(&mut self, simulation: &Simulation) -> bool {
        let full = match (&self.tkeep, &self.mty) {
            (Some(tkeep), _) => simulation.get(*tkeep) == low_bits(self.tdata.len_bytes()),
            (None, Some(mty)) => simulation.get(*mty) == 0,
            (None, None) => true,
        };
        if !full || simulation.get(self.tlast) {
            return false;
        }
        let data = simulation.bytes(&self.tdata);
        match <&[u8; 64]>::try_from(data) {
            Ok(beat) => self.frame.extend_from_slice(beat), // of known size: without a call
            Err(_) => self.frame.extend_from_slice(data),
        }
        true
    }

    /// Bytes in the beat on the pins.
    fn beat_len(&self, simulation: &Simulation, last: bool) -> Result<usize, ProtocolError> {
        let width = self.tdata.len_bytes();
        let len = match (self.tkeep, self.mty) {
            (Some(tkeep), _) => {
                let keep = simulation.get(tkeep);
                let len = keep.trailing_ones() as usize;
                if keep != low_bits(len) || len > width {
                    return Err(self.error(simulation, "tkeep is no run of low ones"));
                }
                len
            }
            (None, Some(mty)) => width - (simulation.get(mty) as usize).min(width),
            (None, None) => width,
        };
        if !last && len != width {
            return Err(self.error(simulation, "a beat before the last one is not full"));
        }
        Ok(len)
    }

    fn hold(&mut self, simulation: &Simulation) {
        self.holds = true;
        self.held.data.clear();
        self.held.data.extend_from_slice(simulation.bytes(&self.tdata));
        self.held.tkeep = self.tkeep.map_or(0, |tkeep| simulation.get(tkeep));
        self.held.mty = self.mty.map_or(0, |mty| simulation.get(mty));
        self.held.last = simulation.get(self.tlast);
        self.held.err = self.err.is_some_and(|err| simulation.get(err));
    }

    fn check_held(&self, simulation: &Simulation, valid: bool) -> Result<(), ProtocolError> {
        let held = &self.held;
        let rule = if !valid {
            "tvalid fell before the beat was taken"
        } else if !same_beat(simulation.bytes(&self.tdata), &held.data) {
            "tdata changed while the beat was held"
        } else if self.tkeep.is_some_and(|tkeep| simulation.get(tkeep) != held.tkeep)
            || self.mty.is_some_and(|mty| simulation.get(mty) != held.mty)
        {
            "tkeep or mty changed while the beat was held"
        } else if simulation.get(self.tlast) != held.last {
            "tlast changed while the beat was held"
        } else if self.err.is_some_and(|err| simulation.get(err) != held.err) {
            "tuser_err changed while the beat was held"
        } else {
            return Ok(());
        };
        Err(self.error(simulation, rule))
    }

    #[cold]
    fn error(&self, simulation: &Simulation, rule: &'static str) -> ProtocolError {
        let stream = self.prefix.trim_end_matches('_').to_string();
        ProtocolError { stream, time_ps: simulation.time_ps(), rule }
    }
}

// ---- Sink ----

/// Takes frames out of the RTL: a [`Monitor`] that also drives `tready`.
pub struct Sink {
    monitor: Monitor,
    tready: Input<bool>,
    stall: Stall,
    /// What `tready` is driven to.
    ready: bool,
    two_beats: TwoBeatStalls,
}

impl Sink {
    /// Bind as [`Monitor::bind`] does; `tready` must be an input of the top.
    ///
    /// # Errors
    /// [`PortError`].
    pub fn bind(
        simulation: &mut Simulation,
        prefix: &str,
        index: u32,
        count: u32,
        stall: Stall,
    ) -> Result<Sink, PortError> {
        let tready = simulation.input_of(&format!("{prefix}tready"), index, count)?;
        simulation.set(tready, false);
        let monitor = Monitor::bind(simulation, prefix, index, count)?;
        Ok(Sink { monitor, tready, stall, ready: false, two_beats: TwoBeatStalls::default() })
    }

    /// Frames of two beats whose second one was on offer and not taken at once.
    pub fn two_beat_stalls(&self) -> u64 {
        self.two_beats.frames
    }

    /// A beat is on offer.
    #[inline]
    pub fn offers(&self, simulation: &Simulation) -> bool {
        self.monitor.offers(simulation)
    }

    /// The pin that says so, to ask it along with others.
    pub fn tvalid(&self) -> Output<bool> {
        self.monitor.tvalid
    }

    /// A beat was offered and not taken: [`Sink::look`] must be called at the next edge, whatever is on the pins.
    #[inline]
    pub fn holds(&self) -> bool {
        self.monitor.holds
    }

    /// One more edge of a beat on hold, with `tready` low as it is: less to do than for [`Sink::step`], and most edges of a
    /// stream whose reader is slow. That the beat is still offered is seen here, and that it is still the same by the
    /// [`Sink::step`] or [`Sink::look`] that ends the wait; a change that is undone before that is not seen.
    ///
    /// # Errors
    /// [`ProtocolError`].
    #[inline]
    pub fn hold_on(&mut self, simulation: &Simulation) -> Result<(), ProtocolError> {
        let valid = self.monitor.offers(simulation);
        self.two_beats.held |= valid && self.monitor.mid_frame;
        if valid { Ok(()) } else { self.monitor.check_held(simulation, valid) }
    }

    /// [`Sink::step`] for the edge that most are while a long frame comes out: it takes a beat within the frame, and the reader
    /// has agreed to all of it. False, and nothing done, if it is any other.
    #[inline]
    pub fn step_mid(&mut self, simulation: &Simulation) -> bool {
        let monitor = &mut self.monitor;
        let flows = self.ready && monitor.mid_frame && !monitor.holds && self.stall.is_none();
        flows && monitor.offers(simulation) && monitor.take_mid_beat(simulation)
    }

    /// The next beat is not a frame's first.
    #[inline]
    pub fn mid_frame(&self) -> bool {
        self.monitor.mid_frame
    }

    /// Set `tready` for the next edge: `willing`, unless the stall pattern holds.
    #[inline]
    pub fn drive(&mut self, simulation: &mut Simulation, willing: bool) {
        let ready = willing && !self.stall.holds(self.monitor.mid_frame);
        if ready != self.ready {
            self.ready = ready;
            simulation.set(self.tready, ready);
        }
    }

    /// What the next edge takes.
    ///
    /// # Errors
    /// [`ProtocolError`].
    #[inline]
    pub fn look(&mut self, simulation: &Simulation) -> Result<Taken, ProtocolError> {
        let valid = self.monitor.offers(simulation);
        self.look_at(simulation, valid)
    }

    #[inline]
    fn look_at(&mut self, simulation: &Simulation, valid: bool) -> Result<Taken, ProtocolError> {
        self.two_beats.held |= valid && !self.ready && self.monitor.mid_frame;
        let taken = self.monitor.look_at(simulation, valid, self.ready)?;
        if taken == Taken::LastBeat {
            self.two_beats.end(self.monitor.frame.len(), self.monitor.tdata.len_bytes());
        }
        Ok(taken)
    }

    /// One edge's work, where no output depends on an input: if a beat is on offer, `willing` says whether it may come; what
    /// the next edge takes. `tready` stays as it is while nothing is on offer.
    ///
    /// # Errors
    /// [`ProtocolError`].
    #[inline]
    pub fn step(
        &mut self,
        simulation: &mut Simulation,
        willing: impl FnOnce(&Simulation) -> bool,
    ) -> Result<Taken, ProtocolError> {
        let valid = self.monitor.offers(simulation);
        if valid {
            let willing = willing(simulation);
            self.drive(simulation, willing);
        } else if !self.monitor.holds {
            return Ok(Taken::Nothing);
        }
        self.look_at(simulation, valid)
    }

    /// See [`Monitor::take_frame`].
    pub fn take_frame(&mut self, empty: Vec<u8>) -> (Vec<u8>, bool) {
        self.monitor.take_frame(empty)
    }

    /// See [`Monitor::reset`].
    pub fn reset(&mut self) {
        self.monitor.reset();
    }
}

/// A port that a top may leave out.
fn optional<T>(bound: Result<T, PortError>) -> Result<Option<T>, PortError> {
    match bound {
        Err(PortError::Unknown(_)) => Ok(None),
        other => other.map(Some),
    }
}

/// Equal? The usual width is compared in place: a call would cost more than the compare.
#[inline]
fn same_beat(a: &[u8], b: &[u8]) -> bool {
    match (<&[u8; 64]>::try_from(a), <&[u8; 64]>::try_from(b)) {
        (Ok(a), Ok(b)) => a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0,
        _ => a == b,
    }
}

/// `count` ones from bit 0; all 64 from 64 on.
#[inline]
fn low_bits(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}
