//! What a reader says of bad input: a refusal is one packet's, an error ends the file, a note is worth counting.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use super::LinkType;

/// Why one packet was not delivered. The packets after it are read all the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
pub enum Refusal {
    /// The packet has no Ethernet header. Convert the capture, or read it with [`Policy::any_link_type`](super::Policy).
    #[error("link type {0} has no Ethernet header and cannot go out on an Ethernet wire")]
    LinkType(LinkType),
    /// The capture holds only the packet's head (snap length).
    #[error("truncated: {captured} of {original} bytes were captured; sent as it is it would be another frame")]
    Truncated {
        /// Bytes in the file.
        captured: u32,
        /// Bytes that were on the wire.
        original: u32,
    },
    /// More bytes were captured than were on the wire, which cannot be.
    #[error("{captured} bytes captured of a packet of {original} bytes: one of the two is wrong")]
    CapturedOverOriginal {
        /// Bytes in the file.
        captured: u32,
        /// Bytes that the file says were on the wire.
        original: u32,
    },
    /// Longer than any frame can be: most likely a damaged length.
    #[error("{captured} captured bytes are over the limit of {limit}")]
    OverLimit {
        /// Bytes in the file.
        captured: u32,
        /// [`Policy::max_packet_bytes`](super::Policy).
        limit: u32,
    },
    /// A packet of no bytes, or of nothing but an FCS: a wire has no such thing.
    #[error("the packet has no bytes")]
    Empty,
    /// pcapng: the packet names an interface that no block has described.
    #[error("interface {interface} is not described; the section has {known}")]
    UnknownInterface {
        /// The packet's interface number.
        interface: u32,
        /// Interfaces described so far in this section.
        known: u32,
    },
    /// pcapng: the block is well framed, its contents are not.
    #[error("packet block is damaged: {0}")]
    DamagedBlock(&'static str),
}

impl Refusal {
    /// The kind, for counting: numbers left out, the link type kept.
    #[must_use]
    pub fn kind(&self) -> String {
        match self {
            Refusal::LinkType(link_type) => format!("link type {link_type}"),
            Refusal::Truncated { .. } => "truncated".to_owned(),
            Refusal::CapturedOverOriginal { .. } => "captured over original length".to_owned(),
            Refusal::OverLimit { .. } => "over the length limit".to_owned(),
            Refusal::Empty => "empty".to_owned(),
            Refusal::UnknownInterface { .. } => "unknown interface".to_owned(),
            Refusal::DamagedBlock(_) => "damaged block".to_owned(),
        }
    }
}

/// A [`Refusal`] and the packet it is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Packet's index in the file, first 0. (Wireshark's number is one more, and so is the printed one.)
    pub index: u64,
    /// Byte in the (unpacked) file where the packet's record begins.
    pub offset: u64,
    /// Why.
    pub why: Refusal,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "packet {} at byte {}: {}", self.index + 1, self.offset, self.why)
    }
}

/// Something odd that does not keep a packet from being delivered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Note {
    /// The pcap file's snap length is 0; read as "no limit", as libpcap does. In pcapng that is what 0 means.
    SnapLenZero,
    /// Captured length over the file's own snap length; delivered, as tcpdump and Wireshark do.
    OverSnapLen,
    /// The time cannot be: sub-second part past a second, before 1970 or after 2554. The frame has no time.
    BadTime,
    /// A declared FCS is wrong; the frame's error flag is set.
    BadFcs,
    /// An FCS of a length other than 4 was declared; stripped, but not checked.
    UncheckedFcs,
    /// pcapng: an option runs past its block; it and those after it are left out.
    BadOptions,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Note::SnapLenZero => "snap length 0, read as no limit",
            Note::OverSnapLen => "captured length over the snap length",
            Note::BadTime => "invalid time",
            Note::BadFcs => "wrong FCS",
            Note::UncheckedFcs => "FCS of another length than 4, not checked",
            Note::BadOptions => "damaged options",
        })
    }
}

/// What a reader has met so far. `frames + refused` is the number of packets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Frames delivered.
    pub frames: u64,
    /// Their bytes, FCS left out.
    pub bytes: u64,
    /// Packets refused, by [`Refusal::kind`].
    pub refused: BTreeMap<String, u64>,
    /// Oddities. [`Note::SnapLenZero`] once for each file, the others once for each packet.
    pub notes: BTreeMap<Note, u64>,
}

impl Tally {
    /// Packets refused, all kinds.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.refused.values().sum()
    }

    pub(super) fn note(&mut self, note: Note) {
        *self.notes.entry(note).or_default() += 1;
    }
}

/// Why a file could not be read on.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The file could not be opened.
    #[error("cannot open: {0}")]
    Open(#[source] io::Error),
    /// Reading failed.
    #[error("cannot read: {0}")]
    Io(#[source] io::Error),
    /// The gzip stream is damaged.
    #[error("gzip data are damaged: {0}. Unpack with gzip to see how much is whole")]
    Gzip(#[source] io::Error),
    /// Not one byte.
    #[error("the file is empty, without even a capture's header")]
    NoBytes,
    /// The first bytes are no capture's. `hint` says what they are, if that is known.
    #[error("not a pcap or pcapng file: it starts with {first:02x?}{hint}")]
    NotACapture {
        /// The first bytes, at most four.
        first: Vec<u8>,
        /// What it looks like and what to do, or nothing.
        hint: &'static str,
    },
    /// A format version that nobody has defined.
    #[error("{format} version {major}.{minor} is not known; {known} is")]
    Version {
        /// `pcap` or `pcapng`.
        format: &'static str,
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
        /// What can be read.
        known: &'static str,
    },
    /// The file ends within a header, a packet or a block.
    #[error(
        "the file is cut: {what} at byte {start} needs {wanted} bytes and {got} are there. Copy the capture again, or go on with the whole packets"
    )]
    Cut {
        /// What was being read.
        what: &'static str,
        /// Where it begins.
        start: u64,
        /// How long it says it is, in bytes.
        wanted: u64,
        /// How much of it is there.
        got: u64,
    },
    /// pcapng: a block length that cannot be, after which the next block cannot be found.
    #[error(
        "block of type {block_type:#010x} at byte {start} says it is {length} bytes long: {why}. Nothing behind it can be found; repair the file with `pcapfix` or capture again"
    )]
    BlockLength {
        /// Block type.
        block_type: u32,
        /// Where the block begins.
        start: u64,
        /// Its total length field.
        length: u32,
        /// What is wrong with it.
        why: &'static str,
    },
    /// pcapng: more interfaces than anybody has.
    #[error(
        "interface description at byte {start} is over the limit of {limit} interfaces; split the file with `editcap`"
    )]
    Interfaces {
        /// Where its block begins.
        start: u64,
        /// The limit.
        limit: usize,
    },
    /// pcapng: the byte-order magic of a section is neither order's.
    #[error("section header at byte {start} has byte-order magic {magic:#010x}, neither 0x1a2b3c4d nor its reverse")]
    ByteOrder {
        /// Where the section begins.
        start: u64,
        /// The magic, read as big-endian.
        magic: u32,
    },
}

/// A [`Fault`], where it lies, and what was read before it. It ends the file; whole packets before it were delivered.
#[derive(Debug)]
pub struct ReadError {
    /// File name as given, `-` for standard input.
    pub name: String,
    /// Byte in the (unpacked) file up to which reading came. For a cut file: its length.
    pub offset: u64,
    /// The offset counts unpacked bytes, for the file is compressed.
    pub unpacked: bool,
    /// Whole packets met before, refused ones included.
    pub packets: u64,
    /// What is wrong.
    pub fault: Fault,
}

impl ReadError {
    /// The file simply ends too early: what came before is good.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        matches!(self.fault, Fault::Cut { .. })
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name == "-" { "standard input" } else { &self.name };
        write!(f, "{name}: at byte {}", self.offset)?;
        if self.unpacked {
            write!(f, " of the unpacked data")?;
        }
        let plural = if self.packets == 1 { "" } else { "s" };
        write!(f, ", after {} whole packet{plural}: {}", self.packets, self.fault)
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.fault)
    }
}
