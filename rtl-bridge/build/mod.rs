//! From SystemVerilog to a library: Verilate, write the wrapper, compile, keep by content hash.
//!
//! One code for two users. `build.rs` includes this module by path and makes the 1/1 card as a static archive; the
//! crate includes it as [`rtl_bridge::build`](crate::build) and makes every other shape, and later users' RTL, as a
//! shared object that is loaded at run time. Both land in `target/verilated/HASH` (or `$ONIC_CACHE/HASH`), where HASH
//! covers sources, flags, Verilator and compiler versions and this code's C++; a folder is written under another name
//! and renamed when whole, so that what has a hash's name is complete. No cargo profile enters the hash: neither a
//! profile nor a change of Rust builds RTL again.

pub mod library;
pub mod sources;
pub mod toolchain;
pub mod wrapper;

use std::path::PathBuf;

/// Why no library came of it. The command line ends with 3 on each of these.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A tool or header is not there. The hint is a command.
    #[error("{what}\nhint: {hint}")]
    Missing {
        /// What was looked for, and where.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// A Verilator that can't build this.
    #[error(
        "Verilator {major}.{minor:03} at {root} is too old: at least 5.020 is needed (Debian 12's package is 5.006)\n\
         hint: unset VERILATOR_ROOT and run ./onic, which brings the pinned Verilator into .tools/; or set it to the root of a newer one"
    )]
    TooOld {
        /// First number of its version.
        major: u32,
        /// Second number.
        minor: u32,
        /// Its root.
        root: String,
    },
    /// The RTL sources, as given, can't be built: a file is missing, a port is of a kind that has no address.
    #[error("{0}")]
    Sources(String),
    /// A tool ran and failed.
    #[error("{step} failed\n{log}")]
    Failed {
        /// What was being done.
        step: String,
        /// What the tool printed, cut to its first 4,000 bytes.
        log: String,
    },
    /// A file could not be read or written.
    #[error("{}: {cause}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
}

impl BuildError {
    /// For `map_err` on file operations.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> BuildError {
        let path = path.into();
        move |cause| BuildError::Io { path, cause }
    }
}
