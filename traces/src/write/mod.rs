//! Writing captures: [`pcapng`](PcapNg) with all that a replay knows of a frame, and plain [`pcap`](Pcap).
//!
//! Both write the same bytes for the same calls on every machine: little-endian, no host name, no clock.

mod pcap;
mod pcapng;

pub use pcap::{Pcap, Resolution};
pub use pcapng::{CommentFields, Packet, PcapNg, errors};

use std::io;

/// A frame longer than any block's length field: a mistake of the caller, since no reader would take it back.
fn len_u32(bytes: &[u8]) -> io::Result<u32> {
    u32::try_from(bytes.len()).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "frame of 4 GiB or more"))
}
