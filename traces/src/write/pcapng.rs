//! The pcapng writer.
//!
//! One section, one interface for each [`Point`] (`if_tsresol` 9), one enhanced packet block for each frame. A frame
//! that was dropped stands on the drop point's interface, and is counted in the `epb_dropcount` of the next frame on the
//! interface where it is missing: its own port's for [`Point::PortDropped`], its function's for
//! [`Point::FunctionDropped`].
//!
//! | option | holds |
//! |---|---|
//! | `epb_flags` | direction, link-layer errors |
//! | `epb_packetid` | index in the input, first 0 |
//! | `epb_queue` | queue, relative to the function |
//! | `epb_verdict` | XDP verdict, kind 2 |
//! | `epb_dropcount` | frames dropped since the frame before on this interface, if any |
//! | `epb_hash` | Toeplitz, kind 5, most significant byte first: only the hash that others call so |
//! | comment | `hash= fn= cycle= drop=`, each where known |
//!
//! Source of the codes: draft-ietf-opsawg-pcapng, sections 4.2 and 4.3. How `tshark` filters by them:
//! `frame.interface_name`, `frame.packet_flags_direction`, `frame.packet_flags_crc_error`, `frame.packet_id`,
//! `frame.interface_queue`, `frame.verdict.ebpf_xdp`, `frame.drop_count`, `frame.comment`.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use super::len_u32;
use crate::Point;
use crate::read::Direction;

/// Link-layer error bits of `epb_flags`.
pub mod errors {
    /// Wrong FCS.
    pub const CRC: u32 = 1 << 24;
    /// Longer than the limit.
    pub const TOO_LONG: u32 = 1 << 25;
    /// Shorter than the limit.
    pub const TOO_SHORT: u32 = 1 << 26;
}

/// A frame to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Where it was seen.
    pub point: Point,
    /// Nanoseconds since 1970 UTC.
    pub time_ns: u64,
    /// Ethernet header to payload, FCS left out.
    pub data: &'a [u8],
    /// Its way at that point.
    pub direction: Option<Direction>,
    /// Bits of [`errors`].
    pub errors: u32,
    /// Index in the input, first 0.
    pub packet_id: Option<u64>,
    /// Queue, relative to the function.
    pub queue: Option<u32>,
    /// XDP verdict, `XDP_*` of Linux.
    pub xdp: Option<u64>,
    /// Hash as published by Microsoft, for `epb_hash`. OpenNIC's own is not Toeplitz as others know it: it goes into
    /// the comment.
    pub toeplitz: Option<u32>,
    /// The comment.
    pub comment: CommentFields<'a>,
}

impl<'a> Packet<'a> {
    /// A frame with nothing said of it.
    #[must_use]
    pub fn new(point: Point, time_ns: u64, data: &'a [u8]) -> Self {
        let comment = CommentFields::default();
        Self {
            point,
            time_ns,
            data,
            direction: None,
            errors: 0,
            packet_id: None,
            queue: None,
            xdp: None,
            toeplitz: None,
            comment,
        }
    }
}

/// The comment of a frame: what pcapng has no field for.
///
/// As text: `hash=08a4cc88 fn=0 cycle=90412 drop=rx_overflow`, unknown ones left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CommentFields<'a> {
    /// RSS hash, whichever function the card uses.
    pub hash: Option<u32>,
    /// PCIe function.
    pub func: Option<u8>,
    /// 250 MHz cycle of the frame's last beat.
    pub cycle: Option<u64>,
    /// Name of the reason why it was dropped. No blanks.
    pub drop: Option<&'a str>,
}

impl CommentFields<'_> {
    /// Nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == CommentFields::default()
    }
}

impl<'a> CommentFields<'a> {
    /// What a comment of ours says. Words that aren't ours are passed over.
    #[must_use]
    pub fn parse(comment: &'a str) -> Self {
        let mut fields = CommentFields::default();
        for word in comment.split_ascii_whitespace() {
            match word.split_once('=') {
                Some(("hash", value)) => fields.hash = u32::from_str_radix(value, 16).ok(),
                Some(("fn", value)) => fields.func = u8::from_str(value).ok(),
                Some(("cycle", value)) => fields.cycle = u64::from_str(value).ok(),
                Some(("drop", value)) => fields.drop = Some(value),
                _ => {}
            }
        }
        fields
    }
}

impl fmt::Display for CommentFields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut gap = "";
        let mut word = |f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>| {
            let result = write!(f, "{gap}{text}");
            gap = " ";
            result
        };
        if let Some(hash) = self.hash {
            word(f, format_args!("hash={hash:08x}"))?;
        }
        if let Some(func) = self.func {
            word(f, format_args!("fn={func}"))?;
        }
        if let Some(cycle) = self.cycle {
            word(f, format_args!("cycle={cycle}"))?;
        }
        if let Some(reason) = self.drop {
            word(f, format_args!("drop={reason}"))?;
        }
        Ok(())
    }
}

/// Writes a pcapng file.
pub struct PcapNg<W> {
    out: W,
    points: Vec<Point>,
    /// Drops on each point's interface that its next frame will tell.
    drops: Vec<u64>,
    /// The block being made, kept for its memory.
    block: Vec<u8>,
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const USER_APPLICATION: &[u8] = b"onic-cosim";

impl<W: Write> PcapNg<W> {
    /// Begins the file, with an interface for each point. [`Point::of_card`] gives those of a card.
    ///
    /// # Errors
    /// `out` can't be written.
    pub fn new(out: W, points: &[Point]) -> io::Result<Self> {
        let mut writer = Self { out, points: points.to_vec(), drops: vec![0; points.len()], block: Vec::new() };
        writer.section_header()?;
        for point in points {
            writer.interface(&point.to_string())?;
        }
        Ok(writer)
    }

    /// Writes a frame.
    ///
    /// # Errors
    /// `out` can't be written, or the point has no interface in this file.
    pub fn write(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        let interface = self.interface_of(packet.point).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{} is not an interface of this capture", packet.point))
        })?;
        let captured = len_u32(packet.data)?;
        self.begin(ENHANCED_PACKET);
        for word in [interface as u32, (packet.time_ns >> 32) as u32, packet.time_ns as u32, captured, captured] {
            self.block.extend_from_slice(&word.to_le_bytes());
        }
        self.block.extend_from_slice(packet.data);
        self.pad();
        let drops = std::mem::take(&mut self.drops[interface]);
        self.packet_options(packet, drops);
        self.count_drop(packet.point);
        self.end()
    }

    /// Counts a drop whose frame is not at hand, to be told by the next frame at `point` (a port or function).
    pub fn count_drops(&mut self, point: Point, frames: u64) {
        if let Some(interface) = self.interface_of(point) {
            self.drops[interface] += frames;
        }
    }

    /// Flushes, and gives the stream back.
    ///
    /// # Errors
    /// `out` can't be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn interface_of(&self, point: Point) -> Option<usize> {
        self.points.iter().position(|&known| known == point)
    }

    fn count_drop(&mut self, point: Point) {
        match point {
            Point::PortDropped(port) => self.count_drops(Point::Port(port), 1),
            Point::FunctionDropped(func) => self.count_drops(Point::Function(func), 1),
            Point::Port(_) | Point::Function(_) | Point::Interface(_) => {}
        }
    }

    fn section_header(&mut self) -> io::Result<()> {
        self.begin(SECTION_HEADER);
        self.block.extend_from_slice(&0x1a2b_3c4du32.to_le_bytes());
        self.block.extend_from_slice(&1u16.to_le_bytes());
        self.block.extend_from_slice(&0u16.to_le_bytes());
        // Section length not given: the file is written as a stream.
        self.block.extend_from_slice(&u64::MAX.to_le_bytes());
        self.option(4, USER_APPLICATION);
        self.end_of_options();
        self.end()
    }

    fn interface(&mut self, name: &str) -> io::Result<()> {
        self.begin(INTERFACE);
        // Link type Ethernet, reserved, no snap length.
        self.block.extend_from_slice(&1u16.to_le_bytes());
        self.block.extend_from_slice(&0u16.to_le_bytes());
        self.block.extend_from_slice(&0u32.to_le_bytes());
        self.option(2, name.as_bytes());
        self.option(9, &[9]); // if_tsresol: 10^-9 s
        self.end_of_options();
        self.end()
    }

    fn packet_options(&mut self, packet: &Packet<'_>, drops: u64) {
        let direction = match packet.direction {
            None => 0,
            Some(Direction::Inbound) => 1,
            Some(Direction::Outbound) => 2,
        };
        let empty = self.block.len();
        if !packet.comment.is_empty() {
            let comment = packet.comment.to_string();
            self.option(1, comment.as_bytes());
        }
        let flags: u32 = direction | packet.errors;
        if flags != 0 {
            self.option(2, &flags.to_le_bytes());
        }
        if let Some(hash) = packet.toeplitz {
            let [a, b, c, d] = hash.to_be_bytes();
            self.option(3, &[5, a, b, c, d]);
        }
        if drops != 0 {
            self.option(4, &drops.to_le_bytes());
        }
        if let Some(id) = packet.packet_id {
            self.option(5, &id.to_le_bytes());
        }
        if let Some(queue) = packet.queue {
            self.option(6, &queue.to_le_bytes());
        }
        if let Some(action) = packet.xdp {
            let mut verdict = [2; 9];
            verdict[1..].copy_from_slice(&action.to_le_bytes());
            self.option(7, &verdict);
        }
        if self.block.len() != empty {
            self.end_of_options();
        }
    }

    fn begin(&mut self, block_type: u32) {
        self.block.clear();
        self.block.extend_from_slice(&block_type.to_le_bytes());
        self.block.extend_from_slice(&[0; 4]); // the length, known at the end
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        // The longest value is a comment of four numbers and a drop reason's name.
        let len = value.len().min(usize::from(u16::MAX));
        self.block.extend_from_slice(&code.to_le_bytes());
        self.block.extend_from_slice(&(len as u16).to_le_bytes());
        self.block.extend_from_slice(&value[..len]);
        self.pad();
    }

    fn end_of_options(&mut self) {
        self.block.extend_from_slice(&[0; 4]);
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn end(&mut self) -> io::Result<()> {
        let length = len_u32(&self.block)? + 4;
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        self.block.extend_from_slice(&length.to_le_bytes());
        self.out.write_all(&self.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_say_what_is_known_and_are_read_back() {
        let comment =
            CommentFields { hash: Some(0x8a4_cc88), func: Some(1), cycle: Some(90_412), drop: Some("rx_overflow") };
        assert_eq!(comment.to_string(), "hash=08a4cc88 fn=1 cycle=90412 drop=rx_overflow");
        assert_eq!(CommentFields::parse(&comment.to_string()), comment);
        assert_eq!(CommentFields { cycle: Some(3), ..CommentFields::default() }.to_string(), "cycle=3");
        assert_eq!(CommentFields::parse("a note = of somebody hash=xyz"), CommentFields::default());
    }

    #[test]
    fn a_frame_at_an_unknown_point_is_refused() {
        let mut out = PcapNg::new(Vec::new(), &[Point::Port(0)]).unwrap();
        let error = out.write(&Packet::new(Point::Function(0), 0, &[0; 60])).unwrap_err();
        assert_eq!(error.to_string(), "fn0 is not an interface of this capture");
    }
}
