//! From an action and the state of things to what is done.

use driver_core::ethtool::{Choice, CoalesceChange, Fec, RingsChange, RssChange, TableChange};
use driver_core::rss::{HashFunction, Key, TABLE_LEN, Table};
use driver_core::{MTU_MIN, TriggerMode};
use regs::{FuncId, PortId, doorbell, shell};
use traces::synth::Rng;

use super::action::{Action, Kind};
use super::deed::{Deed, Load, Setting, Stray};
use super::world::World;
use crate::console::Interface;
use crate::properties::traffic::{self, HostSpec};
use crate::run::{HostFrame, InFrame};
use crate::shape::Pace;

/// Frames of a burst at the wire, and from the host.
const BURST: u64 = 24;
/// Most queues that are asked for: more take longer, and show no more.
const QUEUES_MAX: u64 = 12;
/// Ring sizes, from the card's table; the smallest ones run full soonest.
const RINGS: [u16; 6] = [64, 64, 64, 128, 192, 512];
/// More than a card holds of frames that no queue takes: the shell's buffer and the QDMA's.
const BUFFER_BYTES: u64 = 96 * 1024;
/// Base of a queue range in which no queue runs: past those of two functions.
const NOWHERE: u64 = 160;

/// What an action is here and now; `None` if it can't be done.
pub(super) fn draw(action: Action, world: &World) -> Option<Deed> {
    Draw { rng: Rng::new(action.seed), world }.deed(action.kind)
}

struct Draw<'a> {
    rng: Rng,
    world: &'a World,
}

impl Draw<'_> {
    fn deed(&mut self, kind: Kind) -> Option<Deed> {
        match kind {
            Kind::Receive => Some(self.traffic(BURST, 0)),
            Kind::Send => self.any_up().map(|_| self.traffic(0, BURST)),
            Kind::Both => self.any_up().map(|_| self.traffic(BURST, BURST)),
            Kind::Withhold => self.withhold(),
            Kind::Overrun => self.overrun(),
            Kind::Down => self.any_up().map(|at| Deed::Set(at, Setting::Down)),
            Kind::Up => self.any_down().map(|at| Deed::Set(at, Setting::Up)),
            Kind::Channels | Kind::Rings | Kind::Mtu | Kind::Key | Kind::Table | Kind::Fec => {
                let at = self.any();
                Some(Deed::Set(at, self.setting(kind, at)))
            }
            Kind::Moderation => {
                let at = self.any();
                Some(Deed::Set(at, self.moderation(at)))
            }
            Kind::Refused => {
                let at = self.any();
                Some(Deed::Set(at, self.refused(at)))
            }
            Kind::Restart => self.any_up().map(|at| Deed::Set(at, self.restart(at))),
            Kind::ModerationUnderLoad => {
                let at = self.any_up()?;
                let setting = self.moderation(at);
                Some(self.under(at, setting))
            }
            Kind::RssUnderLoad => {
                // With entries past the queues it is timing which frames are lost.
                let at = self.any_up().filter(|at| !self.world.of(*at).loose)?;
                let kind = *self.rng.pick(&[Kind::Key, Kind::Table]);
                let setting = self.setting(kind, at);
                Some(self.under(at, setting))
            }
            Kind::DownUnderLoad => self.any_up().map(|at| self.under(at, Setting::Down)),
            Kind::UpUnderLoad => self.any_down().map(|at| self.under(at, Setting::Up)),
            Kind::ChangeUnderLoad => {
                let at = self.any_up()?;
                let setting = match self.rng.below(6) {
                    0 => self.setting(Kind::Channels, at),
                    1 => self.setting(Kind::Rings, at),
                    2 => self.setting(Kind::Fec, at),
                    _ => self.restart(at),
                };
                Some(self.under(at, setting))
            }
            Kind::LooseTable => Some(self.loose_table()),
            Kind::ShortRange => self.range(true),
            Kind::StrayRange => self.range(false),
            Kind::WrongQueue => Some(self.wrong_queue()),
            Kind::BadCidx => self.bad_cidx(),
            Kind::BadPidxRx => self.bad_pidx_rx(),
            Kind::BadPidxTx => self.bad_pidx_tx(),
            Kind::UnknownRegister => Some(self.unknown_register()),
            Kind::UnknownShell => Some(self.unknown_shell()),
            Kind::UserReset => Some(self.user_reset()),
            Kind::Look => Some(Deed::Look),
        }
    }

    // ---- Whose

    fn functions(&self) -> u64 {
        self.world.functions.len() as u64
    }

    fn any(&mut self) -> Interface {
        Interface(self.rng.below(self.functions()) as u8)
    }

    fn any_up(&mut self) -> Option<Interface> {
        self.any_that(true)
    }

    fn any_down(&mut self) -> Option<Interface> {
        self.any_that(false)
    }

    fn any_that(&mut self, up: bool) -> Option<Interface> {
        let first = self.any().0;
        let count = self.functions() as u8;
        (0..count).map(|n| Interface((first + n) % count)).find(|at| self.world.of(*at).up == up)
    }

    fn queue(&mut self, at: Interface) -> u16 {
        self.rng.below(self.world.of(at).queues.into()) as u16
    }

    // ---- Traffic

    fn wire(&mut self, count: u64, most_bytes: u16) -> Vec<InFrame> {
        let specs: Vec<_> = (0..count)
            .map(|_| {
                // One past the longest shows that it is too long.
                let most_bytes = if self.rng.one_in(50) { most_bytes.saturating_add(4).min(9600) } else { most_bytes };
                traffic::drawn_frame(&mut self.rng, self.world.ports, most_bytes)
            })
            .collect();
        traffic::frames(&specs, self.world.ports, false)
    }

    /// From interfaces that are up.
    fn host(&mut self, count: u64) -> Vec<HostFrame> {
        (0..count)
            .map_while(|number| {
                let at = self.any_up()?;
                let function = self.world.of(at);
                let most = u64::from(function.mtu) + 14;
                let len = if self.rng.one_in(4) { most } else { most.min(300) };
                let spec = HostSpec {
                    func: at.0,
                    queue: self.rng.below(function.queues.into()) as u16,
                    len_bytes: self.rng.between(60, len.max(60)) as u16,
                    seed: self.rng.next_u64(),
                };
                Some(traffic::host_frame_of(&spec, number as u16, self.functions() as u8, function.queues))
            })
            .collect()
    }

    fn load(&mut self, wire: u64, host: u64) -> Load {
        let most = self.world.max_frame_bytes;
        Load { wire: self.wire(wire, most), host: self.host(host), pace: Pace::Fast }
    }

    fn some(&mut self, most: u64) -> u64 {
        if most == 0 { 0 } else { self.rng.between(1, most) }
    }

    fn traffic(&mut self, wire: u64, host: u64) -> Deed {
        let (wire, host) = (self.some(wire), self.some(host));
        Deed::Traffic { load: self.load(wire, host), withheld_ns: None }
    }

    fn withhold(&mut self) -> Option<Deed> {
        self.any_up()?;
        // Now and then more than a small ring takes.
        let wire = if self.rng.one_in(3) { 120 } else { BURST };
        let load = Load { wire: self.wire(wire, 260), host: self.host(BURST), pace: Pace::Fast };
        Some(Deed::Traffic { load, withheld_ns: Some(self.rng.between(1_000, 40_000)) })
    }

    /// Many long frames for one queue, as fast as the wire brings them.
    fn overrun(&mut self) -> Option<Deed> {
        let at = self.any_up()?;
        let most = self.world.max_frame_bytes;
        let shortest = most.min(1_500) - 64;
        let seed = self.rng.next_u64();
        let frame = |number: u64| {
            let mut rng = Rng::new(seed);
            let ethernet = traces::synth::Ethernet::random(&mut rng);
            let len = u64::from(shortest) + number % 64;
            let mut data = traces::synth::frame(traces::synth::Kind::Udp4, &ethernet, len as usize, &mut rng);
            let end = data.len();
            data[end - 8..].copy_from_slice(&number.to_be_bytes());
            InFrame { port: PortId(at.0), index: number, time_ns: None, data, err: false }
        };
        let frames = u64::from(self.world.of(at).rx_ring) + BUFFER_BYTES / u64::from(shortest) + 40;
        let load = Load { wire: (0..frames).map(frame).collect(), host: self.host(4), pace: Pace::Line };
        Some(Deed::Traffic { load, withheld_ns: Some(40_000 + 125 * frames) })
    }

    fn under(&mut self, interface: Interface, setting: Setting) -> Deed {
        let load = self.load(2 * BURST, 2 * BURST);
        Deed::Under { load, after_ns: self.rng.below(6_000), interface, setting }
    }

    // ---- Settings

    fn setting(&mut self, kind: Kind, at: Interface) -> Setting {
        let queues = self.world.of(at).queues;
        match kind {
            Kind::Channels => Setting::Channels(self.rng.between(1, QUEUES_MAX) as u16),
            Kind::Rings => {
                let mut size = || self.rng.one_in(2).then(|| *self.rng.pick(&RINGS));
                Setting::Rings(RingsChange { rx: size(), tx: size() })
            }
            Kind::Mtu => {
                let most = u64::from(self.world.max_frame_bytes) - 14;
                Setting::Mtu(self.rng.between(MTU_MIN.into(), most) as u16)
            }
            Kind::Key => {
                let mut key = [0; 40];
                self.rng.fill(&mut key);
                Setting::Rss(Box::new(RssChange { key: Some(Key(key)), ..RssChange::default() }))
            }
            Kind::Fec => Setting::Fec(if self.rng.one_in(2) { Fec::Rs } else { Fec::Off }),
            _ => {
                let table = match self.rng.below(4) {
                    0 => None,
                    1 => Table::equal(self.rng.between(1, queues.into()) as u16).ok(),
                    2 => {
                        let weights: Vec<u32> = (0..queues).map(|_| self.rng.below(5) as u32).collect();
                        Table::weighted(&weights).ok()
                    }
                    _ => Table::from_slice(&[(); TABLE_LEN].map(|()| self.rng.below(queues.into()) as u16)).ok(),
                };
                let table = Some(table.map_or(TableChange::Default, TableChange::Table));
                Setting::Rss(Box::new(RssChange { table, ..RssChange::default() }))
            }
        }
    }

    /// Rules by which no frame waits for ever.
    fn moderation(&mut self, at: Interface) -> Setting {
        let queue = if self.rng.one_in(2) { Some(self.queue(at)) } else { None };
        let mode = *self.rng.pick(&[TriggerMode::Every, TriggerMode::UserTimer, TriggerMode::UserTimerCount]);
        let mut index = || if self.rng.one_in(3) { None } else { Some(Choice::Index(self.rng.below(16) as u8)) };
        let (timer, counter) = (index(), index());
        Setting::Coalesce(queue, CoalesceChange { interrupt: None, mode: Some(mode), timer, counter })
    }

    fn refused(&mut self, at: Interface) -> Setting {
        let queues = self.world.of(at).queues;
        match self.rng.below(8) {
            0 => Setting::Channels(*self.rng.pick(&[0, 65, u16::MAX])),
            1 => Setting::Rings(RingsChange { rx: Some(100), tx: None }),
            2 => Setting::Mtu(*self.rng.pick(&[0, MTU_MIN - 1, self.world.max_frame_bytes - 13, u16::MAX])),
            3 => Setting::Coalesce(None, CoalesceChange { mode: Some(TriggerMode::User), ..CoalesceChange::default() }),
            4 => Setting::Coalesce(Some(queues), CoalesceChange::default()),
            5 => {
                let table = Table::equal(queues + 1).ok().map(TableChange::Table);
                Setting::Rss(Box::new(RssChange { table, ..RssChange::default() }))
            }
            6 => Setting::Rss(Box::new(RssChange { hash: Some(HashFunction::Microsoft), ..RssChange::default() })),
            _ => Setting::RestartRx(queues),
        }
    }

    fn restart(&mut self, at: Interface) -> Setting {
        let queue = self.queue(at);
        if self.rng.one_in(2) { Setting::RestartRx(queue) } else { Setting::RestartTx(queue) }
    }

    // ---- Behind the driver's back

    fn loose_table(&mut self) -> Deed {
        let at = self.any();
        let most = u64::from(self.world.of(at).queues) * 5 / 4 + 1;
        let table = [(); TABLE_LEN].map(|()| self.rng.below(most) as u16);
        Deed::Stray { func: FuncId(at.0), stray: Stray::Table(Box::new(table)), then: None, restart: None }
    }

    fn range(&mut self, short: bool) -> Option<Deed> {
        let at = self.any_up()?;
        let function = self.world.of(at);
        let (base, queues) = (function.base, function.queues);
        let wrong = if short {
            (base, self.rng.below(queues.into()) as u16)
        } else {
            (self.rng.between(NOWHERE, 400) as u16, queues)
        };
        let load = if short { self.load(BURST, BURST) } else { self.load(BURST, 0) };
        Some(Deed::Range { func: FuncId(at.0), wrong, right: (base, queues), load })
    }

    fn wrong_queue(&mut self) -> Deed {
        let at = self.any();
        let queues = u64::from(self.world.of(at).queues);
        let rel_qid = self.rng.between(queues, queues + 70) as u16;
        let register = *self.rng.pick(&[doorbell::H2C_PIDX, doorbell::C2H_PIDX, doorbell::COMPLETION_CIDX]);
        let value = self.rng.below(64) as u32;
        self.doorbell(at, register, rel_qid, value, None)
    }

    fn doorbell(&self, at: Interface, register: u32, rel_qid: u16, value: u32, restart: Option<Setting>) -> Deed {
        // A queue that a function may have has a doorbell.
        let offset = doorbell::offset(register, rel_qid).unwrap_or(0);
        Deed::Stray { func: FuncId(at.0), stray: Stray::Qdma(offset, Some(value)), then: None, restart }
    }

    fn bad_cidx(&mut self) -> Option<Deed> {
        let at = self.any_up()?;
        let queue = self.queue(at);
        let outside = self.rng.between(u64::from(self.world.of(at).rx_ring) - 1, u16::MAX.into()) as u16;
        let stray = Stray::Cidx(queue, self.rng.one_in(2).then_some(outside));
        let restart = Some(Setting::RestartRx(queue));
        Some(Deed::Stray { func: FuncId(at.0), stray, then: None, restart })
    }

    fn bad_pidx_rx(&mut self) -> Option<Deed> {
        let at = self.any_up()?;
        let queue = self.queue(at);
        let frame = self.frame_for(at, queue);
        let outside = self.rng.between(u64::from(self.world.of(at).rx_ring) - 1, u16::MAX.into()) as u32;
        let restart = Some(Setting::RestartRx(queue));
        let Deed::Stray { func, stray, restart, .. } = self.doorbell(at, doorbell::C2H_PIDX, queue, outside, restart)
        else {
            return None;
        };
        Some(Deed::Stray { func, stray, then: frame, restart })
    }

    fn bad_pidx_tx(&mut self) -> Option<Deed> {
        let at = self.any_up()?;
        let queue = self.queue(at);
        let outside = self.rng.between(u64::from(self.world.of(at).tx_ring) - 1, u16::MAX.into()) as u32;
        Some(self.doorbell(at, doorbell::H2C_PIDX, queue, outside, Some(Setting::RestartTx(queue))))
    }

    /// A frame that the function's table sends to this queue, if one is found.
    fn frame_for(&mut self, at: Interface, queue: u16) -> Option<InFrame> {
        (0..400).map(|_| traffic::drawn_frame(&mut self.rng, 1, 200)).find_map(|spec| {
            let frame = InFrame { port: PortId(at.0), index: 0, time_ns: None, data: spec.data(), err: false };
            (self.world.queue_of(&frame) == Some((FuncId(at.0), queue))).then_some(frame)
        })
    }

    fn unknown_register(&mut self) -> Deed {
        let at = self.any();
        let offset = match self.rng.below(4) {
            // Nothing within CSR space reads 0 and says nothing; beyond the doorbells neither.
            0 => 0x2600 + 4 * self.rng.below(0x100) as u32,
            1 => 0x2_0000 + 4 * self.rng.below(0x4000) as u32,
            _ => 0x3000 + 4 * self.rng.below((0x1_8000 - 0x3000) / 4) as u32,
        };
        let value = self.rng.one_in(2).then(|| self.rng.next_u64() as u32);
        Deed::Stray { func: FuncId(at.0), stray: Stray::Qdma(offset, value), then: None, restart: None }
    }

    /// Windows without registers: holes of the map, and blocks that only answer.
    fn unknown_shell(&mut self) -> Deed {
        let at = self.any();
        let (base, size) = *self.rng.pick(&[
            (0x6000, 0x2000),
            (shell::QDMA_1, shell::QDMA_1_SIZE_BYTES),
            (shell::BOX_250, 0x80),
            (shell::BOX_250_DUMMY, shell::BOX_250_DUMMY_SIZE_BYTES),
            (shell::BOX_322, 0x1000),
            (shell::BOX_322_DUMMY, shell::BOX_322_DUMMY_SIZE_BYTES),
            (0x40_0000 - 0x1000, 0x1000),
            (0x1_5000, 0x1000),
        ]);
        let offset = base + 4 * self.rng.below(u64::from(size / 4)) as u32;
        let value = self.rng.one_in(2).then(|| self.rng.next_u64() as u32);
        Deed::Stray { func: FuncId(at.0), stray: Stray::Shell(offset, value), then: None, restart: None }
    }

    fn user_reset(&mut self) -> Deed {
        let at = self.any();
        let bits = self.rng.next_u64() as u32 | *self.rng.pick(&[0, 1 << 30, 1 << 31, 3 << 30]);
        Deed::Stray { func: FuncId(at.0), stray: Stray::UserReset(bits), then: None, restart: None }
    }
}
