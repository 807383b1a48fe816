//! The pcap format: one header, then records of 16 bytes and their data.
//!
//! Source: draft-ietf-opsawg-pcap. In the header's last word, bits 15:0 are the link type; if bit 26 is set, bits 31:28
//! are the length of the FCS in units of two bytes. The other upper bits mean nothing to us and are often set.

use super::bytes::Order;
use super::error::{Fault, Note, Refusal};
use super::source::Source;
use super::{Frame, LinkType, Packet, Policy, Step};

const HEADER_LEN: usize = 24;
const RECORD_LEN: usize = 16;
const FCS_PRESENT: u32 = 1 << 26;

/// Magic numbers as big-endian words, with what they say of the rest.
fn kind(magic: u32) -> Option<(Order, u32)> {
    Some(match magic {
        0xa1b2_c3d4 => (Order::Big, 1_000),
        0xd4c3_b2a1 => (Order::Little, 1_000),
        0xa1b2_3c4d => (Order::Big, 1),
        0x4d3c_b2a1 => (Order::Little, 1),
        _ => return None,
    })
}

pub(super) fn is_pcap(first: [u8; 4]) -> bool {
    kind(u32::from_be_bytes(first)).is_some()
}

/// State of a pcap file.
pub(super) struct State {
    order: Order,
    /// Nanoseconds in one unit of the sub-second field.
    tick_ns: u32,
    minor: u16,
    snap_len: u32,
    pub(super) link_type: LinkType,
    pub(super) fcs_len: u8,
}

impl State {
    /// Reads the header, of which `first` has been read already.
    pub(super) fn open(first: [u8; 4], source: &mut Source) -> Result<Self, Fault> {
        let mut header = [0; HEADER_LEN];
        header[..4].copy_from_slice(&first);
        let got = 4 + source.fill(&mut header[4..])?;
        if got < HEADER_LEN {
            return Err(Fault::Cut { what: "the file header", start: 0, wanted: HEADER_LEN as u64, got: got as u64 });
        }
        let (order, tick_ns) = kind(u32::from_be_bytes(first)).expect("the caller asked is_pcap");
        let (major, minor) = (order.u16_at(&header, 4), order.u16_at(&header, 6));
        if major != 2 {
            return Err(Fault::Version { format: "pcap", major, minor, known: "2.4" });
        }
        let network = order.u32_at(&header, 20);
        let fcs_len = if network & FCS_PRESENT == 0 { 0 } else { 2 * (network >> 28) as u8 };
        Ok(Self {
            order,
            tick_ns,
            minor,
            snap_len: order.u32_at(&header, 16),
            link_type: LinkType(network as u16),
            fcs_len,
        })
    }

    pub(super) fn snap_len(&self) -> u32 {
        self.snap_len
    }

    /// Next record.
    pub(super) fn next(&mut self, source: &mut Source, policy: &Policy, frame: &mut Frame) -> Result<Step, Fault> {
        let start = source.offset();
        let mut record = [0; RECORD_LEN];
        let got = source.fill(&mut record)?;
        if got == 0 {
            return Ok(Step::End);
        }
        if got < RECORD_LEN {
            return Err(Fault::Cut { what: "the packet header", start, wanted: RECORD_LEN as u64, got: got as u64 });
        }
        let (captured, original) = self.lengths(&record);
        frame.offset = start;
        frame.interface = 0;
        frame.time_ns = self.time(self.order.u32_at(&record, 0), self.order.u32_at(&record, 4));
        if captured > policy.max_packet_bytes {
            let why = Refusal::OverLimit { captured, limit: policy.max_packet_bytes };
            return Ok(Step::Refused { why, skip: u64::from(captured) });
        }
        let got = source.fill_vec(&mut frame.data, u64::from(captured))?;
        if got < u64::from(captured) {
            let what = "the packet";
            return Err(Fault::Cut {
                what,
                start,
                wanted: RECORD_LEN as u64 + u64::from(captured),
                got: RECORD_LEN as u64 + got,
            });
        }
        let over_snap = self.snap_len != 0 && captured > self.snap_len;
        let note = over_snap.then_some(Note::OverSnapLen);
        Ok(Step::Packet(Packet {
            captured,
            original,
            link_type: self.link_type,
            fcs_len: self.fcs_len,
            timed: true,
            note,
        }))
    }

    /// (captured, original). Files before version 2.4 were written with the two swapped, some or all of them.
    fn lengths(&self, record: &[u8; RECORD_LEN]) -> (u32, u32) {
        let (captured, original) = (self.order.u32_at(record, 8), self.order.u32_at(record, 12));
        let swapped = self.minor < 3 || (self.minor == 3 && captured > original);
        if swapped { (original, captured) } else { (captured, original) }
    }

    fn time(&self, seconds: u32, ticks: u32) -> Option<u64> {
        let nanoseconds = u64::from(ticks) * u64::from(self.tick_ns);
        (nanoseconds < 1_000_000_000).then(|| u64::from(seconds) * 1_000_000_000 + nanoseconds)
    }
}
