//! The pcapng format: sections of blocks, each block with its length at both ends.
//!
//! Source: draft-ietf-opsawg-pcapng. Read: section header, interface description, enhanced, simple and (obsolete) packet
//! blocks. Every other block is passed over, whatever its size.

use super::bytes::Order;
use super::error::{Fault, Note, Refusal};
use super::frame::{Direction, Hash, Meta, Verdict};
use super::source::Source;
use super::{Frame, Interface, LinkType, Packet, Policy, Step};

/// Block types.
mod block {
    pub const SECTION_HEADER: u32 = 0x0a0d_0d0a;
    pub const INTERFACE: u32 = 1;
    pub const OBSOLETE_PACKET: u32 = 2;
    pub const SIMPLE_PACKET: u32 = 3;
    pub const ENHANCED_PACKET: u32 = 6;
}

/// Option codes: the draft's sections 3.5, 4.2, 4.3.
mod option {
    pub const END: u16 = 0;
    pub const COMMENT: u16 = 1;
    pub const EPB_FLAGS: u16 = 2;
    pub const EPB_HASH: u16 = 3;
    pub const EPB_DROP_COUNT: u16 = 4;
    pub const EPB_PACKET_ID: u16 = 5;
    pub const EPB_QUEUE: u16 = 6;
    pub const EPB_VERDICT: u16 = 7;
    pub const IF_NAME: u16 = 2;
    pub const IF_TS_RESOL: u16 = 9;
    pub const IF_FCS_LEN: u16 = 13;
    pub const IF_TS_OFFSET: u16 = 14;
}

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Type and length in front, length again behind.
const FRAMING_LEN: u32 = 12;
/// Larger than any packet of [`Policy::max_packet_bytes`] with its options: only damage makes a known block so long.
const MAX_KNOWN_BLOCK: u32 = 16 * 1024 * 1024;
/// Interfaces are the one thing that a reader keeps, so there is a limit to them.
const MAX_INTERFACES: usize = 65_536;
/// `epb_flags` bits that say the frame was bad on the wire: 24 CRC, 25 too long, 26 too short, 27 gap, 28 unaligned,
/// 29 start delimiter, 30 preamble, 31 symbol.
const LINK_ERRORS: u32 = 0xff00_0000;

pub(super) fn is_pcapng(first: [u8; 4]) -> bool {
    u32::from_be_bytes(first) == block::SECTION_HEADER
}

/// How an interface counts time.
#[derive(Clone, Copy, Debug)]
struct Clock {
    /// `if_tsresol` as it stands: bit 7 tells powers of 2 from powers of 10.
    resolution: u8,
    /// `if_tsoffset`, seconds.
    offset_s: i64,
}

impl Default for Clock {
    fn default() -> Self {
        Self { resolution: 6, offset_s: 0 }
    }
}

impl Clock {
    /// Nanoseconds since 1970, or `None` if that is no `u64`.
    fn to_ns(self, ticks: u64) -> Option<u64> {
        let exponent = u32::from(self.resolution & 0x7f);
        let ns = if self.resolution & 0x80 != 0 {
            (u128::from(ticks) * 1_000_000_000) >> exponent
        } else if exponent <= 9 {
            u128::from(ticks) * 10u128.pow(9 - exponent)
        } else {
            // Finer than any u64 count can make a nanosecond of: 0.
            10u128.checked_pow(exponent - 9).map_or(0, |divisor| u128::from(ticks) / divisor)
        };
        let ns = i128::try_from(ns).ok()? + i128::from(self.offset_s) * 1_000_000_000;
        u64::try_from(ns).ok()
    }
}

/// State of a pcapng file.
pub(super) struct State {
    order: Order,
    section: u32,
    /// Interfaces of this section are `interfaces[first_interface..]` of the reader's list.
    first_interface: usize,
    clocks: Vec<Clock>,
    pub(super) interfaces: Vec<Interface>,
    body: Vec<u8>,
    /// The four bytes that told us the format are a block's type, already read.
    type_ahead: Option<[u8; 4]>,
    pub(super) damaged_options: bool,
}

impl State {
    pub(super) fn open(first: [u8; 4]) -> Self {
        Self {
            order: Order::Little,
            section: 0,
            first_interface: 0,
            clocks: Vec::new(),
            interfaces: Vec::new(),
            body: Vec::new(),
            type_ahead: Some(first),
            damaged_options: false,
        }
    }

    /// Goes on to the next packet, over all blocks between.
    pub(super) fn next(&mut self, source: &mut Source, policy: &Policy, frame: &mut Frame) -> Result<Step, Fault> {
        loop {
            let Some((block_type, start)) = self.next_block(source)? else { return Ok(Step::End) };
            frame.offset = start;
            match block_type {
                block::INTERFACE if self.interfaces.len() >= MAX_INTERFACES => {
                    return Err(Fault::Interfaces { start, limit: MAX_INTERFACES });
                }
                block::INTERFACE => self.interface(),
                block::ENHANCED_PACKET => return Ok(self.enhanced_packet(policy, frame)),
                block::OBSOLETE_PACKET => return Ok(self.obsolete_packet(policy, frame)),
                block::SIMPLE_PACKET => return Ok(self.simple_packet(policy, frame)),
                _ => {}
            }
        }
    }

    /// Type and start of the next block; its body is in `self.body` if the type is a known one.
    fn next_block(&mut self, source: &mut Source) -> Result<Option<(u32, u64)>, Fault> {
        let ahead = self.type_ahead.take();
        let start = source.offset() - if ahead.is_some() { 4 } else { 0 };
        let mut head = [0; 8];
        let have = ahead.map_or(0, |first| {
            head[..4].copy_from_slice(&first);
            4
        });
        let got = have + source.fill(&mut head[have..])?;
        if got == 0 {
            return Ok(None);
        }
        let cut = |what, wanted, got: u64| Fault::Cut { what, start, wanted, got };
        if got < head.len() {
            return Err(cut("the block header", head.len() as u64, got as u64));
        }
        // A section header's type reads the same in both orders, so its order is asked first.
        let is_section = is_pcapng([head[0], head[1], head[2], head[3]]);
        let mut taken = head.len() as u64;
        if is_section {
            let mut magic = [0; 4];
            let got = source.fill(&mut magic)?;
            if got < magic.len() {
                return Err(cut("the section header", 28, taken + got as u64));
            }
            taken += magic.len() as u64;
            self.begin_section(magic, start)?;
        }
        let (block_type, length) = (self.order.u32_at(&head, 0), self.order.u32_at(&head, 4));
        check_length(block_type, length, start)?;
        let body_len = u64::from(length) - taken - 4;
        let known =
            is_section || matches!(block_type, block::INTERFACE..=block::SIMPLE_PACKET | block::ENHANCED_PACKET);
        let got = if known { source.fill_vec(&mut self.body, body_len)? } else { source.skip(body_len)? };
        let mut trailer = [0; 4];
        let got = taken + got + if got == body_len { source.fill(&mut trailer)? as u64 } else { 0 };
        if got < u64::from(length) {
            return Err(cut("the block", u64::from(length), got));
        }
        if self.order.u32_at(&trailer, 0) != length {
            let why = "the length behind the block is another";
            return Err(Fault::BlockLength { block_type, start, length, why });
        }
        if is_section {
            self.check_version()?;
        }
        Ok(Some((block_type, start)))
    }

    fn begin_section(&mut self, magic: [u8; 4], start: u64) -> Result<(), Fault> {
        self.order = match u32::from_be_bytes(magic) {
            BYTE_ORDER_MAGIC => Order::Big,
            magic if magic.swap_bytes() == BYTE_ORDER_MAGIC => Order::Little,
            magic => return Err(Fault::ByteOrder { start, magic }),
        };
        self.section += 1;
        self.first_interface = self.interfaces.len();
        self.clocks.clear();
        Ok(())
    }

    /// The body of a section header from behind the magic: major, minor, section length, options.
    fn check_version(&self) -> Result<(), Fault> {
        let (major, minor) = match self.body.get(..4) {
            Some(version) => (self.order.u16_at(version, 0), self.order.u16_at(version, 2)),
            None => (0, 0),
        };
        if major == 1 { Ok(()) } else { Err(Fault::Version { format: "pcapng", major, minor, known: "1.0" }) }
    }

    fn interface(&mut self) {
        let body = std::mem::take(&mut self.body);
        let mut clock = Clock::default();
        let mut interface = Interface { section: self.section, id: self.clocks.len() as u32, ..Interface::default() };
        if body.len() >= 8 {
            interface.link_type = LinkType(self.order.u16_at(&body, 0));
            interface.snap_len = self.order.u32_at(&body, 4);
            let order = self.order;
            let whole = for_each_option(order, &body[8..], |code, value| match (code, value) {
                (option::IF_NAME, name) => interface.name = Some(String::from_utf8_lossy(name).into_owned()),
                (option::IF_TS_RESOL, [resolution]) => clock.resolution = *resolution,
                (option::IF_TS_OFFSET, seconds) => clock.offset_s = order.u64_of(seconds).unwrap_or(0) as i64,
                // The draft has said "bits" and "bytes" of this one: 4 and 32 are the same FCS.
                (option::IF_FCS_LEN, [32]) => interface.fcs_len = 4,
                (option::IF_FCS_LEN, [length]) => interface.fcs_len = *length,
                _ => {}
            });
            self.damaged_options |= !whole;
        } else {
            // Kept, so that the numbers of the interfaces behind it stay right; its packets are refused by link type.
            interface.link_type = LinkType(u16::MAX);
            self.damaged_options = true;
        }
        self.body = body;
        self.clocks.push(clock);
        self.interfaces.push(interface);
    }

    fn enhanced_packet(&mut self, policy: &Policy, frame: &mut Frame) -> Step {
        const HEAD: usize = 20;
        if self.body.len() < HEAD {
            return damaged("shorter than an enhanced packet's fixed part");
        }
        let id = self.order.u32_at(&self.body, 0);
        let ticks = u64::from(self.order.u32_at(&self.body, 4)) << 32 | u64::from(self.order.u32_at(&self.body, 8));
        let lengths = (self.order.u32_at(&self.body, 12), self.order.u32_at(&self.body, 16));
        self.packet(policy, frame, id, Some(ticks), lengths, HEAD)
    }

    fn obsolete_packet(&mut self, policy: &Policy, frame: &mut Frame) -> Step {
        const HEAD: usize = 20;
        if self.body.len() < HEAD {
            return damaged("shorter than a packet block's fixed part");
        }
        let id = u32::from(self.order.u16_at(&self.body, 0));
        let drops = self.order.u16_at(&self.body, 2);
        let ticks = u64::from(self.order.u32_at(&self.body, 4)) << 32 | u64::from(self.order.u32_at(&self.body, 8));
        let lengths = (self.order.u32_at(&self.body, 12), self.order.u32_at(&self.body, 16));
        let step = self.packet(policy, frame, id, Some(ticks), lengths, HEAD);
        // 0xffff: the count isn't known.
        if drops != u16::MAX && frame.meta.drop_count.is_none() {
            frame.meta.drop_count = Some(u64::from(drops));
        }
        step
    }

    /// A simple packet belongs to the section's first interface, has no time, and its captured length is what the
    /// interface's snap length leaves of the original one.
    fn simple_packet(&mut self, policy: &Policy, frame: &mut Frame) -> Step {
        const HEAD: usize = 4;
        if self.body.len() < HEAD {
            return damaged("shorter than a simple packet's fixed part");
        }
        let original = self.order.u32_at(&self.body, 0);
        let snap_len = self.interfaces.get(self.first_interface).map_or(0, |interface| interface.snap_len);
        let captured = if snap_len == 0 { original } else { original.min(snap_len) };
        self.packet(policy, frame, 0, None, (captured, original), HEAD)
    }

    fn packet(
        &mut self,
        policy: &Policy,
        frame: &mut Frame,
        id: u32,
        ticks: Option<u64>,
        (captured, original): (u32, u32),
        head: usize,
    ) -> Step {
        let known = self.clocks.len() as u32;
        let Some(clock) = self.clocks.get(id as usize) else {
            return refused(Refusal::UnknownInterface { interface: id, known });
        };
        let index = self.first_interface + id as usize;
        let interface = &self.interfaces[index];
        frame.interface = index as u32;
        frame.time_ns = ticks.and_then(|ticks| clock.to_ns(ticks));
        if captured > policy.max_packet_bytes {
            return refused(Refusal::OverLimit { captured, limit: policy.max_packet_bytes });
        }
        let end = head + captured as usize;
        let Some(data) = self.body.get(head..end) else {
            return damaged("its captured length runs past the block");
        };
        frame.data.clear();
        frame.data.extend_from_slice(data);
        let mut fcs_len = interface.fcs_len;
        let mut whole = true;
        // Nothing follows a simple packet's data but padding, in which an option cannot be told from noise.
        if ticks.is_some() {
            let options = self.body.get(end.next_multiple_of(4)..).unwrap_or(&[]);
            whole = read_packet_options(self.order, options, &mut frame.meta);
        }
        frame.err = frame.meta.flags & LINK_ERRORS != 0;
        if let declared @ 1.. = (frame.meta.flags >> 5 & 0xf) as u8 {
            fcs_len = declared;
        }
        self.damaged_options |= !whole;
        let over_snap = interface.snap_len != 0 && captured > interface.snap_len;
        let note = over_snap.then_some(Note::OverSnapLen);
        Step::Packet(Packet {
            captured,
            original,
            link_type: interface.link_type,
            fcs_len,
            timed: ticks.is_some(),
            note,
        })
    }
}

fn refused(why: Refusal) -> Step {
    Step::Refused { why, skip: 0 }
}

fn damaged(what: &'static str) -> Step {
    refused(Refusal::DamagedBlock(what))
}

fn check_length(block_type: u32, length: u32, start: u64) -> Result<(), Fault> {
    let least = if block_type == block::SECTION_HEADER { FRAMING_LEN + 4 } else { FRAMING_LEN };
    let known =
        matches!(block_type, block::SECTION_HEADER | block::INTERFACE..=block::SIMPLE_PACKET | block::ENHANCED_PACKET);
    let why = if length < least {
        "less than a block's own framing"
    } else if !length.is_multiple_of(4) {
        "not a multiple of 4"
    } else if known && length > MAX_KNOWN_BLOCK {
        "over 16 MiB for a block of this type"
    } else {
        return Ok(());
    };
    Err(Fault::BlockLength { block_type, start, length, why })
}

/// Calls `each` for every option up to the end mark; false if one runs past the block.
fn for_each_option(order: Order, mut rest: &[u8], mut each: impl FnMut(u16, &[u8])) -> bool {
    while rest.len() >= 4 {
        let (code, len) = (order.u16_at(rest, 0), usize::from(order.u16_at(rest, 2)));
        if code == option::END {
            return true;
        }
        let Some(value) = rest.get(4..4 + len) else { return false };
        each(code, value);
        rest = rest.get((4 + len).next_multiple_of(4)..).unwrap_or(&[]);
    }
    rest.is_empty()
}

fn read_packet_options(order: Order, options: &[u8], meta: &mut Meta) -> bool {
    for_each_option(order, options, |code, value| match (code, value) {
        // Of several comments the first that our writer could have made wins.
        (option::COMMENT, text) if meta.comment.is_none() => {
            meta.comment = Some(String::from_utf8_lossy(text).into_owned())
        }
        (option::EPB_FLAGS, flags) => meta.flags = order.u32_of(flags).unwrap_or(0),
        (option::EPB_HASH, [algorithm, hash @ ..]) => {
            meta.hash = Some(Hash { algorithm: *algorithm, value: hash.to_vec() })
        }
        (option::EPB_DROP_COUNT, count) => meta.drop_count = order.u64_of(count),
        (option::EPB_PACKET_ID, id) => meta.packet_id = order.u64_of(id),
        (option::EPB_QUEUE, queue) => meta.queue = order.u32_of(queue),
        (option::EPB_VERDICT, [kind, verdict @ ..]) => meta.verdict = Some(read_verdict(order, *kind, verdict)),
        _ => {}
    })
}

fn read_verdict(order: Order, kind: u8, verdict: &[u8]) -> Verdict {
    match (kind, order.u64_of(verdict)) {
        (1, Some(action)) => Verdict::Tc(action),
        (2, Some(action)) => Verdict::Xdp(action),
        _ => Verdict::Other { kind, value: verdict.to_vec() },
    }
}

impl Meta {
    /// Bits 1:0 of `epb_flags`.
    #[must_use]
    pub fn direction(&self) -> Option<Direction> {
        match self.flags & 3 {
            1 => Some(Direction::Inbound),
            2 => Some(Direction::Outbound),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    #[test]
    fn resolutions() {
        let ns = |resolution, offset_s, ticks| Clock { resolution, offset_s }.to_ns(ticks);
        assert_eq!(ns(6, 0, 5), Some(5_000));
        assert_eq!(ns(9, 0, u64::MAX), Some(u64::MAX));
        assert_eq!(ns(0, 0, 7), Some(7_000_000_000));
        assert_eq!(ns(12, 0, 7_999), Some(7));
        assert_eq!(ns(127, 0, u64::MAX), Some(0), "10^-127 s");
        assert_eq!(ns(0x80, 0, 3), Some(3_000_000_000));
        assert_eq!(ns(0x8a, 0, 1_025), Some(1_000_976_562), "1/1024 s");
        assert_eq!(ns(0xff, 0, u64::MAX), Some(0));
    }

    #[test]
    fn offsets_and_what_is_no_time() {
        let ns = |offset_s, ticks| Clock { resolution: 6, offset_s }.to_ns(ticks);
        assert_eq!(ns(1, 1), Some(1_000_001_000));
        assert_eq!(ns(-1, 2_000_000), Some(1_000_000_000));
        assert_eq!(ns(-3, 2_000_000), None, "before 1970");
        assert_eq!(ns(i64::MIN, 0), None);
        assert_eq!(ns(i64::MAX, u64::MAX), None);
        assert_eq!(ns(0, u64::MAX), None, "past 2554");
    }
}
