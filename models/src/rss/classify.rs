//! Where upstream's hash and the corrected one must differ, told from frame bytes and spacing alone.
//!
//! Model tests and RTL tests both ask here, so that "all rows but exactly these" is one list with a reason for each row,
//! and never a list of rows that happened to fail.

use super::opennic::{OpennicInput, byte, ipv4_start};
use super::upstream::HashBlock;

/// Why upstream's hash of a frame is not the corrected one. Each is a correction named in DESIGN.md section 5.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Difference {
    /// Tagged and not IPv4: upstream hashes payload bytes or a VLAN nibble, corrected hashes nothing.
    TaggedNotIpv4,
    /// Tagged IPv4 with a VLAN nibble in upstream's hash, its own or a neighbour's.
    VlanTerm,
    /// Untagged, with a neighbour's VLAN nibble.
    NeighbourNibble,
    /// IPv4 whose "ports" upstream took from behind the frame's end: an earlier frame's bytes.
    StaleTail,
}

impl Difference {
    /// One phrase for reports.
    pub const fn name(self) -> &'static str {
        match self {
            Difference::TaggedNotIpv4 => "tagged and not IPv4",
            Difference::VlanTerm => "tagged IPv4 with a VLAN term",
            Difference::NeighbourNibble => "untagged with a neighbour's VLAN nibble",
            Difference::StaleTail => "stale bytes behind the frame's end",
        }
    }
}

/// One frame as driven into a hash block.
#[derive(Clone, Copy, Debug)]
pub struct Driven<'a> {
    /// The frame, or its first 128 bytes.
    pub frame: &'a [u8],
    /// 64-byte beats driven.
    pub beats: usize,
    /// Idle cycles since the frame before, 0 for back to back.
    pub gap_cycles: u64,
    /// The block was drained and reset just before.
    pub reset_before: bool,
}

/// The reason why a hash of `upstream`'s fields is not the corrected hash of `frame`; `None` when they are the same fields.
///
/// `upstream` is what [`HashBlock`] says of the frame at its place in a stream, so it comes from frame bytes and gaps.
pub fn classify_difference(frame: &[u8], upstream: &OpennicInput) -> Option<Difference> {
    if OpennicInput::parse(frame) == *upstream {
        return None;
    }
    let tagged = [byte(frame, 12), byte(frame, 13)] == [0x81, 0x00];
    Some(match (tagged, ipv4_start(frame).is_some(), upstream.vlan_nibble != 0) {
        (true, false, _) => Difference::TaggedNotIpv4,
        (true, true, true) => Difference::VlanTerm,
        (false, _, true) => Difference::NeighbourNibble,
        (_, _, false) => Difference::StaleTail,
    })
}

/// Upstream's fields of each frame of a stream, in order, and why they differ from the corrected ones.
pub fn classify_stream(frames: &[Driven<'_>]) -> Vec<(OpennicInput, Option<Difference>)> {
    let mut block = HashBlock::new();
    let mut inputs = Vec::with_capacity(frames.len());
    for driven in frames {
        if driven.reset_before {
            inputs.extend(block.flush());
            block.reset();
        }
        inputs.extend(block.push(driven.frame, driven.beats, driven.gap_cycles));
    }
    inputs.extend(block.flush());
    // Each frame pushed gives its fields once: at the next push, or at a flush.
    assert_eq!(inputs.len(), frames.len());
    inputs.into_iter().zip(frames).map(|(input, driven)| (input, classify_difference(driven.frame, &input))).collect()
}
