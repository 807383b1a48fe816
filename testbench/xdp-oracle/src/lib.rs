//! `xdp-vm` against the running kernel: the same object, the same frames, and whatever the two do differently.
//!
//! ```text
//!                    ┌─ libbpf ─ kernel: verifier, JIT, BPF_PROG_TEST_RUN ─┐
//!   object ─ freeze ─┤                                                     ├─ compare
//!                    └─ xdp-vm: loader, interpreter ───────────────────────┘
//!   frames ──────────┘
//! ```
//!
//! Both witnesses are independent: libbpf has its own loader, the kernel its own helpers and maps, and no expected value
//! is worked out here. After each frame the return code, the frame and its metadata are compared, from time to time the
//! records of ring buffers and perf events, and at the end the contents of every map: keys, values, the values of each
//! CPU, global variables too. A difference in a map is traced to the first frame after which it shows.
//!
//! What would differ without meaning anything is taken out:
//! - Clock and random helpers: see [`freeze()`].
//! - CPU numbers: the run is pinned to one CPU, and the VM is told which.
//! - Values of program arrays and maps of maps: the kernel shows ids. Only keys are compared.
//!
//! What this oracle can't see:
//! - Where a redirected frame goes: `BPF_PROG_TEST_RUN` reports only the action. `xdp-vm/tests/programs.rs` checks targets.
//! - Second-stage programs in device and CPU maps, which `BPF_PROG_TEST_RUN` refuses.
//! - Receive queues other than 0 and interfaces other than loopback: frames come from loopback's queue 0.
//! - Answers of `bpf_fib_lookup` and `bpf_check_mtu` on real interfaces, and what `bpf_trace_printk` prints.
//! - Socket maps' entries, which nobody may look up.
//! - Map definitions in a section `maps`, which libbpf reads no more: `legacy.o`.
//! - Which entry an LRU map gives up: the kernel's order is approximate. Cases stay below capacity.
//! - Frames below 14 and above 3,520 bytes: the kernel refuses the former and makes fragments of the latter.
//! - Faults: what faults here the verifier refuses there, so any fault is a difference.
//!
//! | module | concern |
//! |---|---|
//! | [`frames`] | seeded frames, and those of captures |
//! | [`random`] | programs of random instructions |
//! | [`mod@freeze`] | clock and random helpers made constants |
//! | [`kernel`] | one witness |
//! | [`simulated`] | the other |
//! | [`mod@compare`] | what they did differently |

pub mod compare;
pub mod frames;
pub mod freeze;
pub mod kernel;
pub mod random;
pub mod simulated;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use compare::{Difference, Failure, Tally, compare};
pub use frames::Input;
pub use freeze::freeze;
use traces::synth::Rng;

/// What an entry of a map holds before the first frame.
#[derive(Clone, Debug)]
pub enum Entry {
    /// Bytes; in a per-CPU map on each CPU.
    Value(Vec<u8>),
    /// A program, in a program array.
    Program(&'static str),
    /// A map, in a map of maps.
    Map(&'static str),
    /// A socket, in a socket map.
    Socket,
}

/// One program of one object, and what is put around it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The file in `xdp-vm/programs`.
    pub object: &'static str,
    /// The program's function.
    pub program: &'static str,
    /// Programs that its program arrays need.
    pub also: &'static [&'static str],
    /// Global variables that are set.
    pub globals: Vec<(&'static str, Vec<u8>)>,
    /// Map entries that are set: map, key, content.
    pub entries: Vec<(&'static str, Vec<u8>, Entry)>,
    /// What makes a frame interesting for this program.
    pub shape: fn(&mut Rng, &mut Vec<u8>),
    /// Return codes of which each must occur often enough.
    pub returns: &'static [u32],
    /// It is about one part of the program; that the rest runs is another case's business.
    pub part: bool,
    /// The first kernel that has what the program needs.
    pub since: kernel::Version,
}

impl Case {
    const EMPTY: Self = Self {
        object: "",
        program: "",
        also: &[],
        globals: Vec::new(),
        entries: Vec::new(),
        shape: |_, _| (),
        returns: &[],
        part: false,
        since: (5, 15),
    };

    /// A program with nothing around it, on frames as they come.
    pub fn new(object: &'static str, program: &'static str, returns: &'static [u32]) -> Self {
        Self { object, program, returns, ..Self::EMPTY }
    }

    /// Set an entry of a map.
    #[must_use]
    pub fn entry(mut self, map: &'static str, key: &[u8], entry: Entry) -> Self {
        self.entries.push((map, key.to_vec(), entry));
        self
    }

    /// Set a value of a map.
    #[must_use]
    pub fn value(self, map: &'static str, key: &[u8], value: &[u8]) -> Self {
        self.entry(map, key, Entry::Value(value.to_vec()))
    }

    /// Set a global variable.
    #[must_use]
    pub fn global(mut self, name: &'static str, value: &[u8]) -> Self {
        self.globals.push((name, value.to_vec()));
        self
    }

    /// Be about one part of the program.
    #[must_use]
    pub fn part(self) -> Self {
        Self { part: true, ..self }
    }

    /// Need a kernel of this version or a newer one.
    #[must_use]
    pub fn since(self, since: kernel::Version) -> Self {
        Self { since, ..self }
    }

    /// Choose what makes its frames interesting.
    #[must_use]
    pub fn shape(mut self, shape: fn(&mut Rng, &mut Vec<u8>)) -> Self {
        self.shape = shape;
        self
    }
}

/// What a witness says of one frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// The return code.
    pub returned: u32,
    /// The frame afterwards.
    pub frame: Vec<u8>,
    /// Its metadata.
    pub meta: Vec<u8>,
}

/// A map's values by key: one, or one for each CPU; none where only the key can be compared.
pub type Contents = BTreeMap<Vec<u8>, Vec<Vec<u8>>>;

/// Records that were emitted: by map, in order.
pub type Records = BTreeMap<String, Vec<Vec<u8>>>;

/// The workspace's root.
pub fn root() -> PathBuf {
    // testbench/xdp-oracle lies two below it.
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new(".")).to_path_buf()
}
