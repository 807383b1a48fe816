//! Captures in and out, frames compared, and the golden cases.
//!
//! Nothing here knows what a card is: this crate moves frames between files and memory and says how two sequences of
//! frames differ. It uses nothing else of the workspace.
//!
//! | module | what it does |
//! |---|---|
//! | [`read`] | pcap and pcapng, any byte order and resolution, plain or gzip, from a file or standard input, as a stream |
//! | [`mod@write`] | pcapng with everything a replay knows of a frame, and plain pcap |
//! | [`align`] | two sequences of frames: lost, extra, reordered, misrouted, corrupt, wrong length |
//! | [`fields`] | which protocol field a byte offset lies in, and which flow a frame belongs to |
//! | [`golden`] | the format of `traces/golden/NAME/`: case, inputs, expected text |
//! | [`synth`] | seeded frames with right checksums, and the mixes that the golden cases are made of |
//! | [`fcs`] | the Ethernet CRC-32 |
//!
//! A frame's length never counts the FCS, and a frame's bytes never hold it: a declared FCS is checked and stripped on
//! reading.
//!
//! ```
//! use traces::read::{Event, Frame, Policy, Reader};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut file = Vec::new();
//! # let mut out = traces::write::Pcap::new(&mut file, traces::write::Resolution::Nanoseconds)?;
//! # out.write(1_700_000_000_000_000_001, &[0u8; 60])?;
//! let mut reader = Reader::new(std::io::Cursor::new(file), "demo.pcap", Policy::default())?;
//! let mut frame = Frame::default(); // one buffer for the whole file
//! loop {
//!     match reader.read(&mut frame)? {
//!         Event::Frame => println!("{:?} {} bytes", frame.time_ns, frame.data.len()),
//!         Event::Refused(refused) => eprintln!("{refused}"),
//!         Event::End => break,
//!     }
//! }
//! assert_eq!(reader.tally().frames, 1);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod align;
pub mod fcs;
pub mod fields;
pub mod golden;
pub mod point;
pub mod read;
pub mod synth;
pub mod write;

pub use point::Point;

/// The first 16 hexadecimal digits of a frame's BLAKE3 hash: what golden files and reports call its bytes.
#[must_use]
pub fn digest(bytes: &[u8]) -> Digest {
    let hash = blake3::hash(bytes);
    let mut head = [0; 8];
    head.copy_from_slice(&hash.as_bytes()[..8]);
    Digest(u64::from_be_bytes(head))
}

/// A [`digest`]: 64 bits, shown as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Digest(pub u64);

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
