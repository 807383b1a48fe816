//! Receive-side scaling: the card's hash and the published Toeplitz hash, under two names.
//!
//! [`opennic`] is what OpenNIC's shell computes: windows of the key move *up* from bit 0 and the input runs from the least
//! significant bit of each wire byte. [`microsoft`] is the Toeplitz hash that Microsoft published. They share a key and
//! nothing else; no function here chooses between them for the caller, and a report names the one it used.
//!
//! A key is 40 bytes in the order in which `ethtool -X` takes them. Byte k stands in register k/4, byte lane k%4
//! (little endian), so bit n of the shell's 320-bit key number is bit n%8 of byte n/8.
//!
//! ```
//! use models::rss::{self, Key, MicrosoftInput, OpennicInput};
//!
//! let key: Key = "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa".parse()?;
//! let (source, destination) = ([66, 9, 149, 187], [161, 142, 100, 80]);
//! let card = OpennicInput::tuple(6, source, destination, 2794, 1766);
//! let published = MicrosoftInput::Ipv4Ports { source, destination, source_port: 2794, destination_port: 1766 };
//! assert_eq!(rss::opennic(key.bytes(), &card), 0x0420_e0a2);
//! assert_eq!(rss::microsoft(key.bytes(), &published), 0x51cc_c178);
//! # Ok::<(), rss::KeyError>(())
//! ```
//!
//! Source: shell.md section 9; cases ONIC-07, RSS-01, RSS-02, RSS-06, RSS-10, RSS-11, RSS-13.

mod classify;
mod microsoft;
mod opennic;
pub mod upstream;

use std::fmt;

pub use classify::{Difference, Driven, classify_difference, classify_stream};
pub use microsoft::{MicrosoftInput, microsoft, microsoft_reference};
pub use opennic::{OpennicInput, Tables, opennic, opennic_reference};
pub use regs::rss::{KEY_LEN_BYTES, Key, KeyError};

/// Entries of an indirection table. Source: shell.md section 7.2.
pub const INDIRECTION_ENTRIES: usize = 128;

/// The indirection entry that a hash selects: its low 7 bits, never the whole hash modulo something (RSS-04).
pub const fn indirection_index(hash: u32) -> usize {
    (hash & 127) as usize
}

/// Which hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum HashFunction {
    /// The card's own: [`opennic`].
    Opennic,
    /// Toeplitz as published: [`microsoft`].
    Microsoft,
}

impl HashFunction {
    /// Its name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            HashFunction::Opennic => "opennic",
            HashFunction::Microsoft => "microsoft",
        }
    }
}

/// The fields of one frame that one hash function uses. `Display` names them, so that a report can say which rule was used.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HashInput {
    /// For [`opennic`].
    Opennic(OpennicInput),
    /// For [`microsoft`].
    Microsoft(MicrosoftInput),
}

impl HashInput {
    /// The fields that `function` takes from `frame`. Bytes past the frame's end count as 0.
    pub fn parse(function: HashFunction, frame: &[u8]) -> HashInput {
        match function {
            HashFunction::Opennic => HashInput::Opennic(OpennicInput::parse(frame)),
            HashFunction::Microsoft => HashInput::Microsoft(MicrosoftInput::parse(frame)),
        }
    }

    /// The hash of these fields, by the function they were taken for.
    pub fn hash(&self, key: &[u8; KEY_LEN_BYTES]) -> u32 {
        match self {
            HashInput::Opennic(input) => opennic(key, input),
            HashInput::Microsoft(input) => microsoft(key, input),
        }
    }
}

impl fmt::Display for HashInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HashInput::Opennic(input) => input.fmt(f),
            HashInput::Microsoft(input) => input.fmt(f),
        }
    }
}
