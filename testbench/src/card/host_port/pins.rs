//! The host port on the engine's pins.

use models::host_memory::HostMemory;
use models::time::Time;
use regs::FuncId;
use rtl_bridge::verilated::{AnyOf, Input, Output, PortError, Simulation, WideInput, WideOutput};

use super::{
    Answer, BEAT_BYTES, HostPortConfig, HostPortError, HostSide, ReadChannel, ReadFault, ReadRequest, Rule, WriteBeat,
    WriteChannel,
};

/// The host port of one engine.
pub struct HostPort {
    /// Before this, at an edge with silent pins, there is nothing to do.
    wake: Time,
    /// Something is on offer; `None` where the pins can't be asked at once.
    offers: Option<AnyOf>,
    side: HostSide,
    reads: [ReadPins; 2],
    writes: [WritePins; 2],
}

/// `hp_*_req_*` and `hp_*_rsp_*`.
struct ReadPins {
    valid: Output<bool>,
    ready: Ready,
    func: Output<u8>,
    addr: Output<u64>,
    len: Output<u16>,
    tag: Output<u8>,
    /// What waits to be taken.
    held: Option<ReadRequest>,
    rsp_valid: Input<bool>,
    rsp_tag: Input<u8>,
    rsp_data: WideInput,
    rsp_last: Input<bool>,
    rsp_status: Input<u8>,
    /// What `rsp_valid` is driven to.
    answers: bool,
}

/// `hp_pay_*` or `hp_cmp_*`.
struct WritePins {
    valid: Output<bool>,
    ready: Ready,
    func: Output<u8>,
    addr: Output<u64>,
    data: WideOutput,
    be: Output<u64>,
    last: Output<bool>,
    /// What waits to be taken.
    held: Option<Held>,
}

/// A beat that waits to be taken.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Held {
    func: FuncId,
    addr: u64,
    data: [u8; BEAT_BYTES],
    be: u64,
    last: bool,
}

/// A ready pin, driven only when it changes.
struct Ready {
    pin: Input<bool>,
    driven: bool,
}

impl Ready {
    fn bind(simulation: &mut Simulation, name: &str) -> Result<Ready, PortError> {
        let pin = simulation.input(name)?;
        simulation.set(pin, false);
        Ok(Ready { pin, driven: false })
    }

    #[inline]
    fn drive(&mut self, simulation: &mut Simulation, ready: bool) {
        if self.driven != ready {
            self.driven = ready;
            simulation.set(self.pin, ready);
        }
    }
}

impl HostPort {
    /// Bind the ports `hp_desc_*`, `hp_data_*`, `hp_pay_*` and `hp_cmp_*`.
    ///
    /// # Errors
    /// [`PortError`].
    pub fn bind(simulation: &mut Simulation, config: &HostPortConfig) -> Result<HostPort, PortError> {
        let [desc, data] = ReadChannel::ALL;
        let [cmp, pay] = WriteChannel::ALL;
        let reads = [ReadPins::bind(simulation, desc.prefix())?, ReadPins::bind(simulation, data.prefix())?];
        let writes = [WritePins::bind(simulation, cmp.prefix())?, WritePins::bind(simulation, pay.prefix())?];
        let valids = [reads[0].valid, reads[1].valid, writes[0].valid, writes[1].valid];
        Ok(HostPort {
            wake: Time::ZERO,
            offers: simulation.any_of(&valids),
            side: HostSide::new(config),
            reads,
            writes,
        })
    }

    /// Forget all that is under way: for a reset of the engine.
    pub fn reset(&mut self, simulation: &mut Simulation) {
        self.side.reset();
        self.reads.iter_mut().for_each(|pins| pins.reset(simulation));
        self.writes.iter_mut().for_each(|pins| pins.held = None);
        self.wake = Time::ZERO;
    }

    /// What is behind the pins.
    pub fn side(&self) -> &HostSide {
        &self.side
    }

    /// Take no write on this channel any more, or go on.
    pub fn shut(&mut self, channel: WriteChannel, shut: bool) {
        self.side.shut(channel, shut);
    }

    /// No read is under way and no answer on the pins.
    pub fn is_idle(&self) -> bool {
        self.side.is_idle() && self.reads.iter().all(|pins| !pins.answers)
    }

    /// Before the edge at `now`, at which the engine is not in reset: set all inputs for it, and do what it takes. True if
    /// it takes or brings something.
    ///
    /// # Errors
    /// [`HostPortError`]: the engine broke a rule.
    #[inline]
    pub fn before_edge(
        &mut self,
        simulation: &mut Simulation,
        now: Time,
        memory: &mut dyn HostMemory,
    ) -> Result<bool, HostPortError> {
        if now < self.wake && self.offers.as_ref().is_some_and(|offers| !simulation.any(offers)) {
            return Ok(false);
        }
        self.work(simulation, now, memory)
    }

    #[inline(never)]
    fn work(
        &mut self,
        simulation: &mut Simulation,
        now: Time,
        memory: &mut dyn HostMemory,
    ) -> Result<bool, HostPortError> {
        let mut moved = false;
        for channel in ReadChannel::ALL {
            let pins = &mut self.reads[channel as usize];
            moved |= pins.answer(simulation, self.side.answer(channel, now, memory));
            moved |= pins.request(simulation, &mut self.side, channel, now).map_err(broken(channel.prefix(), now))?;
        }
        for channel in WriteChannel::ALL {
            let pins = &mut self.writes[channel as usize];
            let took = pins.write(simulation, &mut self.side, channel, now, memory);
            moved |= took.map_err(broken(channel.prefix(), now))?;
        }
        // While an answer is on the pins, it has to be taken off them.
        let answers = self.reads.iter().any(|pins| pins.answers);
        let held =
            self.reads.iter().any(|pins| pins.held.is_some()) || self.writes.iter().any(|pins| pins.held.is_some());
        self.wake = if answers || held { Time::ZERO } else { self.side.next_due() };
        Ok(moved)
    }
}

fn broken(port: &'static str, at: Time) -> impl Fn(Rule) -> HostPortError {
    move |rule| HostPortError { port, at, rule }
}

impl ReadPins {
    fn bind(simulation: &mut Simulation, prefix: &str) -> Result<ReadPins, PortError> {
        let name = |signal: &str| format!("{prefix}_{signal}");
        let ready = Ready::bind(simulation, &name("req_ready_i"))?;
        Ok(ReadPins {
            valid: simulation.output(&name("req_valid_o"))?,
            ready,
            func: simulation.output(&name("req_func_o"))?,
            addr: simulation.output(&name("req_addr_o"))?,
            len: simulation.output(&name("req_len_o"))?,
            tag: simulation.output(&name("req_tag_o"))?,
            held: None,
            rsp_valid: simulation.input(&name("rsp_valid_i"))?,
            rsp_tag: simulation.input(&name("rsp_tag_i"))?,
            rsp_data: simulation.wide_input(&name("rsp_data_i"), 0, 1)?,
            rsp_last: simulation.input(&name("rsp_last_i"))?,
            rsp_status: simulation.input(&name("rsp_status_i"))?,
            answers: false,
        })
    }

    fn reset(&mut self, simulation: &mut Simulation) {
        self.held = None;
        self.answer(simulation, None);
    }

    /// Drive the answer of the next edge. True if there is one.
    fn answer(&mut self, simulation: &mut Simulation, answer: Option<Answer<'_>>) -> bool {
        if let Some(Answer { tag, data, last, fault }) = answer {
            simulation.set(self.rsp_tag, tag);
            simulation.set_bytes(&self.rsp_data, data);
            simulation.set(self.rsp_last, last);
            simulation.set(self.rsp_status, status(fault));
        }
        if self.answers != answer.is_some() {
            self.answers = answer.is_some();
            simulation.set(self.rsp_valid, self.answers);
        }
        self.answers
    }

    /// Take the read on offer, or let it wait.
    fn request(
        &mut self,
        simulation: &mut Simulation,
        side: &mut HostSide,
        channel: ReadChannel,
        now: Time,
    ) -> Result<bool, Rule> {
        if !simulation.get(self.valid) {
            return if self.held.is_some() { Err(Rule::Withdrawn) } else { Ok(false) };
        }
        let request = ReadRequest {
            func: FuncId(simulation.get(self.func)),
            addr: simulation.get(self.addr),
            len_bytes: simulation.get(self.len),
            tag: simulation.get(self.tag),
        };
        if self.held.is_some_and(|held| held != request) {
            return Err(Rule::Withdrawn);
        }
        let takes = side.takes_read(channel, now);
        self.ready.drive(simulation, takes);
        self.held = (!takes).then_some(request);
        if takes {
            side.read(channel, request, now)?;
        }
        Ok(takes)
    }
}

/// `read_status_e`.
fn status(fault: Option<ReadFault>) -> u8 {
    match fault {
        None => 0,
        Some(ReadFault::Unsupported) => 1,
        Some(ReadFault::Poisoned) => 2,
    }
}

impl WritePins {
    fn bind(simulation: &mut Simulation, prefix: &str) -> Result<WritePins, PortError> {
        let name = |signal: &str| format!("{prefix}_{signal}");
        Ok(WritePins {
            ready: Ready::bind(simulation, &name("ready_i"))?,
            valid: simulation.output(&name("valid_o"))?,
            func: simulation.output(&name("func_o"))?,
            addr: simulation.output(&name("addr_o"))?,
            data: simulation.wide_output(&name("data_o"), 0, 1)?,
            be: simulation.output(&name("be_o"))?,
            last: simulation.output(&name("last_o"))?,
            held: None,
        })
    }

    /// Take the beat on offer, or let it wait.
    fn write(
        &mut self,
        simulation: &mut Simulation,
        side: &mut HostSide,
        channel: WriteChannel,
        now: Time,
        memory: &mut dyn HostMemory,
    ) -> Result<bool, Rule> {
        if !simulation.get(self.valid) {
            return if self.held.is_some() { Err(Rule::Withdrawn) } else { Ok(false) };
        }
        let takes = side.takes_write(channel, now);
        self.ready.drive(simulation, takes);
        let (func, addr) = (FuncId(simulation.get(self.func)), simulation.get(self.addr));
        let (be, last) = (simulation.get(self.be), simulation.get(self.last));
        // The port is 512 bits wide.
        let Ok(data) = <&[u8; BEAT_BYTES]>::try_from(simulation.bytes(&self.data)) else { return Ok(false) };
        if !takes || self.held.is_some() {
            let offer = Held { func, addr, data: *data, be, last };
            if self.held.is_some_and(|held| held != offer) {
                return Err(Rule::Withdrawn);
            }
            self.held = (!takes).then_some(offer);
        }
        if takes {
            side.write(channel, &WriteBeat { func, addr, data, be, last }, now, memory)?;
        }
        Ok(takes)
    }
}
