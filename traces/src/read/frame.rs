//! A packet as read, with everything the file says of it.

/// One frame of a capture.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Frame {
    /// Ethernet header to payload, trailing padding included, FCS left out.
    pub data: Vec<u8>,
    /// Length on the wire in bytes, FCS left out; more than `data.len()` only with [`Policy::keep_truncated`](super::Policy).
    pub original_len_bytes: u32,
    /// Nanoseconds since 1970 UTC. `None` if the file gives no time (simple packet blocks) or an impossible one.
    pub time_ns: Option<u64>,
    /// Index of the packet in the file, refused ones counted, first 0.
    pub index: u64,
    /// Byte of the (unpacked) file where the packet's record begins.
    pub offset: u64,
    /// Index into [`Reader::interfaces`](super::Reader::interfaces).
    pub interface: u32,
    /// Bad on the wire: a declared FCS is wrong, or `epb_flags` has a link-layer error bit.
    pub err: bool,
    /// pcapng options; all empty for pcap.
    pub meta: Meta,
}

/// What a pcapng packet's options say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Meta {
    /// `epb_flags` as it stands, 0 if absent.
    pub flags: u32,
    /// `epb_packetid`. In our captures: the frame's index in the input.
    pub packet_id: Option<u64>,
    /// `epb_queue`. In our captures: relative to the function.
    pub queue: Option<u32>,
    /// `epb_verdict`.
    pub verdict: Option<Verdict>,
    /// `epb_dropcount`: frames lost on this interface since the frame before.
    pub drop_count: Option<u64>,
    /// `epb_hash`.
    pub hash: Option<Hash>,
    /// The first comment.
    pub comment: Option<String>,
}

/// Which way a frame went at its interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Into the card's wire, or into a function's host memory.
    Inbound,
    /// Out on the wire, or out of host memory.
    Outbound,
}

/// What became of a frame, `epb_verdict`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// `TC_ACT_*` of Linux.
    Tc(u64),
    /// `XDP_*` of Linux: 0 aborted, 1 drop, 2 pass, 3 tx, 4 redirect.
    Xdp(u64),
    /// Hardware's or somebody's own.
    Other {
        /// First byte of the option.
        kind: u8,
        /// The rest.
        value: Vec<u8>,
    },
}

/// `epb_hash`: of the packet, by some algorithm.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hash {
    /// 2 is CRC-32, 5 Toeplitz.
    pub algorithm: u8,
    /// The value as it stands in the file.
    pub value: Vec<u8>,
}

/// An interface of a capture. A pcap file has one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Interface {
    /// pcapng section, first 1; 0 for pcap.
    pub section: u32,
    /// Number in its section.
    pub id: u32,
    /// What its packets begin with.
    pub link_type: super::LinkType,
    /// Longest capture in bytes, 0 for no limit.
    pub snap_len: u32,
    /// `if_name`.
    pub name: Option<String>,
    /// Length of the FCS that each packet ends with, in bytes; 0 for none.
    pub fcs_len: u8,
}
