//! The MAC of one port: frames at the wire, length and FCS verdicts, statistics, control registers.
//!
//! Frames carry no FCS; lengths and bytes in statistics count it (+4), as the vendor's MAC does.
//!
//! Source: shell.md sections 4.5 and 13; registers, `regs/rdl/cmac.rdl`.

use std::collections::VecDeque;

use regs::{Access, Bar, PortId, cmac};

use super::counters::UNMAPPED;
use super::{Profile, ShellConfig, beats};
use crate::time::{Clock, Time};

const FCS_LEN_BYTES: usize = 4;
/// Statistics, 0x500…0x717, 8 bytes each.
const STATISTICS: usize = 67;
/// A statistics register has 48 bits and stops at its highest value.
const STATISTIC_MAX: u64 = (1 << 48) - 1;
/// Upper bounds of the size classes, FCS counted: 64, 65…127, …, 8192…9215.
const SIZE_CLASSES: [usize; 12] = [64, 127, 255, 511, 1023, 1518, 1522, 1548, 2047, 4095, 8191, 9215];

pub(super) struct Cmac {
    /// Frames announced at the wire, in order; their times do not overlap.
    wire: VecDeque<Announced>,
    announced_beats: u32,
    /// Edge of the MAC clock at which the wire is free again, and when that is.
    wire_free_edge: u64,
    wire_free_at: Time,
    /// Frames that left, until they are taken.
    sent: VecDeque<(Time, Vec<u8>)>,
    control: Vec<Control>,
    running: [u64; STATISTICS],
    snapshot: [u64; STATISTICS],
    rx_enabled: bool,
    tx_enabled: bool,
}

struct Announced {
    last_beat: Time,
    data: Vec<u8>,
    err: bool,
}

/// A control register that only stores, or that the data path looks at too.
struct Control {
    offset: u32,
    writable: u32,
    value: u32,
}

/// A frame that has arrived whole, with the MAC's verdict on its last beat.
pub(super) struct Arrived {
    pub(super) data: Vec<u8>,
    /// `tuser_err`.
    pub(super) err: bool,
}

impl Cmac {
    pub(super) fn new() -> Cmac {
        Cmac {
            wire: VecDeque::new(),
            announced_beats: 0,
            wire_free_edge: 0,
            wire_free_at: Clock::CMAC.edge(0),
            sent: VecDeque::new(),
            control: control_registers(),
            running: [0; STATISTICS],
            snapshot: [0; STATISTICS],
            rx_enabled: false,
            tx_enabled: false,
        }
    }

    /// Reset: registers and statistics. What is on the wire stays there.
    pub(super) fn clear(&mut self) {
        self.control = control_registers();
        (self.running, self.snapshot) = ([0; STATISTICS], [0; STATISTICS]);
        (self.rx_enabled, self.tx_enabled) = (false, false);
    }

    pub(super) fn announce(&mut self, start: Time, data: Vec<u8>, err: bool) {
        let first = match start <= self.wire_free_at {
            true => self.wire_free_edge,
            false => Clock::CMAC.edge_at_or_after(start),
        };
        let beats = beats(data.len());
        self.wire_free_edge = first + u64::from(beats);
        self.wire_free_at = Clock::CMAC.edge(self.wire_free_edge);
        self.announced_beats += beats;
        self.wire.push_back(Announced { last_beat: Clock::CMAC.edge(self.wire_free_edge - 1), data, err });
    }

    /// Frames announced that have not arrived whole.
    pub(super) fn announced(&self) -> usize {
        self.wire.len()
    }

    /// Their beats.
    pub(super) fn announced_beats(&self) -> u32 {
        self.announced_beats
    }

    pub(super) fn wire_free_at(&self) -> Time {
        self.wire_free_at
    }

    /// When the next announced frame's last beat arrives.
    pub(super) fn rx_due(&self) -> Time {
        self.wire.front().map_or(Time::NEVER, |frame| frame.last_beat)
    }

    /// Forget what is announced; how many frames that were.
    pub(super) fn forget_wire(&mut self, pool: &mut Vec<Vec<u8>>) -> u64 {
        let frames = self.wire.len() as u64;
        self.wire.drain(..).for_each(|frame| super::recycle_into(pool, frame.data));
        self.announced_beats = 0;
        frames
    }

    /// Take the next announced frame, judge it, and count it if the receiver is on.
    pub(super) fn arrive(&mut self, cfg: &ShellConfig) -> Option<Arrived> {
        let Announced { data, err, .. } = self.wire.pop_front()?;
        self.announced_beats -= beats(data.len());
        let len_bytes = data.len() + FCS_LEN_BYTES;
        let short = len_bytes < cfg.min_pkt_len as usize;
        let long = len_bytes > cfg.max_pkt_len as usize;
        match cfg.profile {
            // Simulation mode has no MAC: nothing but the source's own error flag. Source: shell.md section 13.
            Profile::Upstream => {
                self.count_rx(&data, short, long, err);
                Some(Arrived { data, err })
            }
            Profile::Corrected => {
                if self.rx_enabled {
                    self.count_rx(&data, short, long, err);
                }
                Some(Arrived { data, err: err || short || long })
            }
        }
    }

    /// A frame has left; its last beat at `time`.
    pub(super) fn send(&mut self, time: Time, data: Vec<u8>) {
        self.count_common(&data, cmac::STAT_TX_TOTAL_PKTS, true);
        self.count_kind(&data, cmac::STAT_TX_UNICAST);
        self.sent.push_back((time, data));
    }

    /// The next frame that left. `tuser_err` is constant 0.
    pub(super) fn left(&mut self) -> Option<(Time, Vec<u8>, bool)> {
        self.sent.pop_front().map(|(time, data)| (time, data, false))
    }

    pub(super) fn rx_enabled(&self) -> bool {
        self.rx_enabled
    }

    pub(super) fn tx_enabled(&self) -> bool {
        self.tx_enabled
    }

    fn count(&mut self, register: u32, amount: u64) {
        self.running[slot(register)] += amount;
    }

    fn count_rx(&mut self, data: &[u8], short: bool, long: bool, bad_fcs: bool) {
        let good = !(short || long || bad_fcs);
        self.count_common(data, cmac::STAT_RX_TOTAL_PKTS, good);
        if good {
            self.count_kind(data, cmac::STAT_RX_UNICAST);
            return self.count_in_range_error(data);
        }
        let mut count_if = |condition, register| self.running[slot(register)] += u64::from(condition);
        count_if(short && !bad_fcs, cmac::STAT_RX_UNDERSIZE);
        count_if(short && bad_fcs, cmac::STAT_RX_FRAGMENT);
        count_if(long && !bad_fcs, cmac::STAT_RX_OVERSIZE);
        count_if(long && bad_fcs, cmac::STAT_RX_JABBER);
        count_if(long, cmac::STAT_RX_TOOLONG);
        count_if(bad_fcs, cmac::STAT_RX_BAD_FCS);
        count_if(bad_fcs && !short && !long, cmac::STAT_RX_PKT_BAD_FCS);
    }

    /// Totals and size classes, which lie alike after the first register of either direction.
    fn count_common(&mut self, data: &[u8], total: u32, good: bool) {
        let len_bytes = data.len() + FCS_LEN_BYTES;
        let from_total = |register: u32| total + (register - cmac::STAT_TX_TOTAL_PKTS);
        self.count(total, 1);
        self.count(from_total(cmac::STAT_TX_TOTAL_BYTES), len_bytes as u64);
        self.count(from_total(cmac::STAT_TX_TOTAL_GOOD_PKTS), u64::from(good));
        self.count(from_total(cmac::STAT_TX_TOTAL_GOOD_BYTES), if good { len_bytes as u64 } else { 0 });
        let class = match SIZE_CLASSES.iter().position(|&highest| len_bytes <= highest) {
            _ if len_bytes < 64 => cmac::STAT_TX_PKT_SMALL,
            Some(class) => cmac::STAT_TX_PKT_64_BYTES + 8 * class as u32,
            None => cmac::STAT_TX_PKT_LARGE,
        };
        self.count(from_total(class), 1);
    }

    /// Unicast, multicast, broadcast, VLAN, pause: registers in one row after the first.
    fn count_kind(&mut self, data: &[u8], unicast: u32) {
        let register = |tx: u32| unicast + (tx - cmac::STAT_TX_UNICAST);
        let Some(header) = data.first_chunk::<14>() else { return };
        let to = match header {
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, ..] => cmac::STAT_TX_BROADCAST,
            [first, ..] if first & 1 == 1 => cmac::STAT_TX_MULTICAST,
            _ => cmac::STAT_TX_UNICAST,
        };
        self.count(register(to), 1);
        match [header[12], header[13]] {
            [0x81, 0x00] => self.count(register(cmac::STAT_TX_VLAN), 1),
            // MAC control: opcode 1 is pause, 0x101 priority pause (IEEE 802.3 31B, 802.1Q 36).
            [0x88, 0x08] => match data.get(14..16) {
                Some([0, 1]) => self.count(register(cmac::STAT_TX_PAUSE), 1),
                Some([1, 1]) => self.count(register(cmac::STAT_TX_USER_PAUSE), 1),
                _ => {}
            },
            _ => {}
        }
    }

    /// A type field up to 1500 is a length; it must agree with the frame, padding of short frames allowed for.
    fn count_in_range_error(&mut self, data: &[u8]) {
        let Some(header) = data.first_chunk::<14>() else { return };
        let (told, payload) = (u16::from_be_bytes([header[12], header[13]]) as usize, data.len() - 14);
        if told <= 1500 && told != payload && !(payload == 46 && told < 46) {
            self.count(cmac::STAT_RX_INRANGEERR, 1);
        }
    }

    /// A register read at a block-relative offset.
    pub(super) fn read(&self, offset: u32) -> u32 {
        match offset {
            cmac::CORE_VERSION => cmac::CORE_VERSION_RESET,
            cmac::STAT_RX_STATUS => cmac::STAT_RX_STATUS_RESET,
            cmac::TICK => 0,
            _ if is_statistic(offset) => {
                let value = self.snapshot[slot(offset)];
                if offset.is_multiple_of(8) { value as u32 } else { (value >> 32) as u32 }
            }
            _ => self.control.iter().find(|r| r.offset == offset).map_or(UNMAPPED, |r| r.value),
        }
    }

    /// A register write at a block-relative offset.
    pub(super) fn write(&mut self, offset: u32, value: u32) {
        if offset == cmac::TICK && cmac::tick::TICK_REG.is_set(value) {
            self.snapshot = self.running.map(|count| count.min(STATISTIC_MAX));
            self.running = [0; STATISTICS];
        }
        if let Some(register) = self.control.iter_mut().find(|r| r.offset == offset) {
            register.value = value & register.writable;
        }
        match offset {
            cmac::CONFIGURATION_RX_REG1 => self.rx_enabled = cmac::configuration_rx_reg1::CTL_RX_ENABLE.is_set(value),
            cmac::CONFIGURATION_TX_REG1 => self.tx_enabled = cmac::configuration_tx_reg1::CTL_TX_ENABLE.is_set(value),
            _ => {}
        }
    }
}

fn slot(register: u32) -> usize {
    ((register - cmac::STAT_TX_TOTAL_PKTS) / 8) as usize
}

/// Whether the map has a statistics register there: the ranges have holes.
fn is_statistic(offset: u32) -> bool {
    let low = offset & !7;
    offset.is_multiple_of(4)
        && matches!(low,
            cmac::STAT_TX_TOTAL_PKTS..=cmac::STAT_TX_PKT_SMALL
            | cmac::STAT_TX_BAD_FCS
            | cmac::STAT_TX_UNICAST..=cmac::STAT_TX_USER_PAUSE
            | cmac::STAT_RX_TOTAL_PKTS..=cmac::STAT_RX_TRUNCATED)
}

/// What software can write, from the map.
fn control_registers() -> Vec<Control> {
    let base = regs::shell::cmac(PortId(0));
    let block = base..base + cmac::SIZE_BYTES;
    let registers = regs::registers()
        .iter()
        .filter(|r| r.bar == Bar::Shell && block.contains(&r.offset) && r.offset - base != cmac::TICK);
    registers
        .flat_map(|r| {
            (0..r.count).map(move |i| (r.offset + i * r.stride - base, r.mask_of(Access::ReadWrite) as u32, r.reset))
        })
        .filter(|(_, writable, _)| *writable != 0)
        .map(|(offset, writable, reset)| Control { offset, writable, value: reset.unwrap_or(0) as u32 })
        .collect()
}
