//! Compiled XDP programs, loaded and run: the object file that `ip link set xdp obj` would take, in plain safe Rust.
//!
//! ```
//! use xdp_vm::{Loader, RxMeta, Verdict, XdpBuff, XdpObject};
//!
//! let file = include_bytes!("../programs/drop.o");
//! let object = XdpObject::parse("drop.o", file).expect("an object of clang's");
//! let mut vm = Loader::new().program("drop").load(&object).expect("nothing that isn't here");
//!
//! let mut page = [0; 4096];
//! let mut buff = XdpBuff::new(&mut page, 256, 60).expect("room on both sides");
//! assert_eq!(vm.run(&mut buff, &RxMeta::default()).verdict, Verdict::Drop);
//! ```
//!
//! What it promises:
//! - A program that the kernel accepts does here what it does there; what this VM does not have is refused at load, by
//!   name, all of it at once ([`LoadError`]). Nothing is left to chance at run time.
//! - Whatever the file holds, nothing panics, hangs, or touches memory that isn't the program's: addresses are synthetic
//!   (see `memory`), each access is checked exactly, each run has a budget. What the verifier would have refused is a
//!   typed [`Fault`] with instruction and source line. This is no verifier: a program that ran here may still be refused
//!   by a kernel.
//! - The same frames, seed and times give the same results: no address, clock or hash order of the host's is seen.
//! - Running allocates nothing.
//!
//! | file | concern |
//! |---|---|
//! | `object` | ELF, BTF, maps and globals; what belongs to a program; the loader |
//! | `bytecode`, `op` | instructions as written, and as run |
//! | `interpret`, `memory`, `fault` | running |
//! | `coverage` | which instructions have run; with the feature of that name |
//! | `helper`, `call` | which helpers there are, what they do |
//! | `map` | maps |
//! | `buff`, `verdict`, `network`, `trace` | what is around a program |
//! | `vm` | all of it together |
//!
//! Limits: little-endian objects; no kfuncs, CO-RE relocations beyond local type ids, kconfig or ksym externs, timers,
//! dynptrs, arenas, `callx`, `may_goto`, load-acquire and store-release; frames of one buffer.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod buff;
mod bytecode;
mod call;
mod coverage;
mod errno;
mod error;
mod fault;
mod helper;
mod interpret;
mod map;
mod memory;
mod network;
mod object;
mod op;
mod trace;
mod verdict;
mod vm;

pub use buff::{
    BUFFER_BYTES_MAX, FRAME_BYTES_MIN, LayoutError, META_BYTES_MAX, RESERVED_BYTES, TAILROOM_BYTES, XdpBuff,
};
pub use bytecode::RawInsn;
#[cfg(feature = "coverage")]
pub use coverage::{Coverage, CoverageReport, Missed};
pub use error::{InsnProblem, LoadError, MapProblem, ObjectError, ObjectProblem, Problem, ProblemKind, SourceLine};
pub use fault::{Fault, FaultKind, FaultReport, Place};
pub use helper::{Helper, helper_name};
pub use map::{ANY, EXIST, InitialValue, Map, MapError, MapSpec, MapType, NO_EXIST};
pub use network::{Interface, IpAddress, Neighbor, Network, Route};
pub use object::{Loader, ProgramInfo, XdpObject};
pub use trace::Trace;
pub use verdict::{Abort, Outcome, RxMeta, Target, Verdict};
pub use vm::{Program, Settings, Vm};
