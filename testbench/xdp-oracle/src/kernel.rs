//! The running kernel as a witness: libbpf loads, the verifier checks, `BPF_PROG_TEST_RUN` runs.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::rc::Rc;

use libbpf_rs::{
    ErrorKind, MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, OpenObject, PerfBuffer, PerfBufferBuilder,
    ProgramInput, ProgramType, RingBuffer, RingBufferBuilder,
};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::{Case, Contents, Entry, Input, Records, Seen};

/// What keeps a case from being run in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// libbpf or the kernel refused a step.
    #[error("{step}: {error}")]
    Step {
        /// What was to be done.
        step: String,
        /// What libbpf says.
        error: libbpf_rs::Error,
    },
    /// The case names something that isn't there.
    #[error("the object has no {0}")]
    Absent(String),
    /// The system refused.
    #[error("{step}: {error}")]
    System {
        /// What was to be done.
        step: &'static str,
        /// Why not.
        error: std::io::Error,
    },
}

fn step<T>(step: impl Into<String>, result: libbpf_rs::Result<T>) -> Result<T, KernelError> {
    result.map_err(|error| KernelError::Step { step: step.into(), error })
}

/// May this process use bpf(2)? Whatever else goes wrong is no matter of permission, and shows later.
///
/// # Errors
/// What the kernel says to the smallest possible map.
pub fn permitted() -> Result<(), libbpf_rs::Error> {
    let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as _,
        ..Default::default()
    };
    match MapHandle::create(MapType::Array, Some("oracle"), 4, 4, 1, &options) {
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied) => Err(error),
        // A kernel without the system call at all.
        Err(error) if error.to_string().contains("not implemented") => Err(error),
        _ => Ok(()),
    }
}

/// A kernel's version: 6.18 is `(6, 18)`.
pub type Version = (u32, u32);

/// The running kernel, as `uname -r` has it, and its version.
///
/// # Errors
/// The system's.
pub fn release() -> Result<(String, Version), KernelError> {
    let system = |error| KernelError::System { step: "read the kernel's release", error };
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").map_err(system)?;
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    Ok((text.trim().to_string(), version))
}

/// Pin this thread to the first CPU that it may use; that CPU.
///
/// # Errors
/// The system's.
pub fn pin() -> Result<u32, KernelError> {
    let system = |error: nix::Error| KernelError::System { step: "pin to a CPU", error: error.into() };
    let may = sched_getaffinity(Pid::from_raw(0)).map_err(system)?;
    let cpu = (0..CpuSet::count()).find(|cpu| may.is_set(*cpu).unwrap_or(false)).unwrap_or(0);
    let mut one = CpuSet::new();
    one.set(cpu).map_err(system)?;
    sched_setaffinity(Pid::from_raw(0), &one).map_err(system)?;
    Ok(cpu as u32)
}

/// How many CPUs per-CPU maps have values for.
///
/// # Errors
/// libbpf's.
pub fn cpus() -> Result<u32, KernelError> {
    step("count the CPUs", libbpf_rs::num_possible_cpus()).map(|cpus| cpus as u32)
}

type Shared = Rc<RefCell<Records>>;

/// A program in the kernel.
pub struct Kernel {
    // Before the object, whose maps they read.
    rings: Vec<RingBuffer<'static>>,
    events: Vec<PerfBuffer<'static>>,
    records: Shared,
    /// Kept open: a socket map forgets a socket that is closed.
    _sockets: Vec<OwnedFd>,
    program: String,
    object: Object,
    out: Vec<u8>,
}

/// What libbpf puts before `.bss` and its like.
const OBJECT_NAME: &str = "o";

/// Longest output: a page.
const OUT_BYTES: usize = 4096;

/// Size of `struct xdp_md`.
const CONTEXT_BYTES: usize = 24;

impl Kernel {
    /// Load a case.
    ///
    /// # Errors
    /// Whatever libbpf or the kernel refuses.
    pub fn new(case: &Case, image: &[u8]) -> Result<Self, KernelError> {
        let mut builder = ObjectBuilder::default();
        step("name the object", builder.name(OBJECT_NAME))?;
        let mut open = step(format!("open {}", case.object), builder.open_memory(image))?;
        for mut program in open.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            program.set_autoload(name == case.program || case.also.contains(&name.as_str()));
            program.set_prog_type(ProgramType::Xdp);
        }
        set_globals(case, image, &mut open)?;
        let object = step(format!("load {} of {}", case.program, case.object), open.load())?;
        let sockets = set_entries(case, &object)?;
        let records = Shared::default();
        let (rings, events) = (open_rings(&object, &records)?, open_events(&object, &records)?);
        let program = case.program.to_string();
        Ok(Self { rings, events, records, _sockets: sockets, program, object, out: vec![0; OUT_BYTES] })
    }

    /// Run one frame.
    ///
    /// # Errors
    /// The kernel's.
    pub fn run(&mut self, input: &Input) -> Result<Seen, KernelError> {
        let program = self.object.progs_mut().find(|program| program.name() == OsStr::new(&self.program));
        let program = program.ok_or_else(|| KernelError::Absent(self.program.clone()))?;
        let mut context = [0; CONTEXT_BYTES];
        // `data` is where the frame begins behind its metadata, `data_end` where it ends.
        context[..4].copy_from_slice(&(input.meta().len() as u32).to_le_bytes());
        context[4..8].copy_from_slice(&(input.bytes.len() as u32).to_le_bytes());
        let mut context_out = [0; CONTEXT_BYTES];
        let run = program.test_run(ProgramInput {
            context_in: Some(&mut context),
            context_out: Some(&mut context_out),
            data_in: Some(&input.bytes),
            data_out: Some(&mut self.out),
            repeat: 1,
            ..ProgramInput::default()
        });
        let (len, meta) = (input.frame().len(), input.meta_len);
        let run = step(format!("BPF_PROG_TEST_RUN of {len} bytes and {meta} of metadata"), run)?;
        let returned = run.return_value;
        let all = run.data.map(|data| data.to_vec()).unwrap_or_default();
        let data = u32::from_le_bytes([context_out[0], context_out[1], context_out[2], context_out[3]]) as usize;
        let (meta, frame) = all.split_at(data.min(all.len()));
        Ok(Seen { returned, frame: frame.to_vec(), meta: meta.to_vec() })
    }

    /// Records emitted since the last call.
    ///
    /// # Errors
    /// libbpf's.
    pub fn records(&mut self) -> Result<Records, KernelError> {
        for ring in &self.rings {
            step("read a ring buffer", ring.consume())?;
        }
        for events in &self.events {
            step("read perf events", events.consume())?;
        }
        Ok(self.records.take())
    }

    /// Do records of this map come out with padding behind them? Those of perf events do.
    pub fn pads_records(&self, map: &str) -> bool {
        find(&self.object, map).is_some_and(|map| map.map_type() == MapType::PerfEventArray)
    }

    /// A map's contents; nothing if there is no such map.
    ///
    /// # Errors
    /// The kernel's.
    pub fn map(&self, name: &str) -> Result<Option<Contents>, KernelError> {
        let Some(map) = find(&self.object, name) else { return Ok(None) };
        let mut contents = Contents::new();
        // The kernel lets nobody look a socket up, and what is in rings is compared as records.
        if matches!(map.map_type(), MapType::RingBuf | MapType::PerfEventArray | MapType::Xskmap) {
            return Ok(Some(contents));
        }
        for key in map.keys() {
            let per_cpu = map.map_type().is_percpu();
            let found = if per_cpu {
                map.lookup_percpu(&key, MapFlags::ANY)
            } else {
                map.lookup(&key, MapFlags::ANY).map(|found| found.map(|value| vec![value]))
            };
            let keys_only = matches!(map.map_type(), MapType::ProgArray | MapType::ArrayOfMaps | MapType::HashOfMaps);
            // Entries that aren't there have a key in arrays all the same.
            if let Some(values) = step(format!("look up in {name}"), found)? {
                contents.insert(key, if keys_only { Vec::new() } else { values });
            }
        }
        Ok(Some(contents))
    }
}

/// A map by the name that the VM has for it.
fn find<'a>(object: &'a Object, name: &str) -> Option<libbpf_rs::Map<'a>> {
    let internal = format!("{OBJECT_NAME}{name}");
    object.maps().find(|map| map.name() == OsStr::new(name) || map.name() == OsStr::new(&internal))
}

/// Global variables: by their symbols, in the data sections' initial values.
fn set_globals(case: &Case, image: &[u8], open: &mut OpenObject) -> Result<(), KernelError> {
    use object::{Object, ObjectSection, ObjectSymbol};
    let absent = |name: &str| KernelError::Absent(name.to_string());
    for (name, value) in &case.globals {
        let file = object::File::parse(image).map_err(|_| absent("ELF header"))?;
        let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name)).ok_or_else(|| absent(name))?;
        let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
        let section = section.ok_or_else(|| absent(name))?;
        let internal = format!("{OBJECT_NAME}{}", section.name().unwrap_or_default());
        let start = symbol.address() as usize;
        let mut map = open.maps_mut().find(|map| map.name() == OsStr::new(&internal)).ok_or_else(|| absent(name))?;
        let place = map.initial_value_mut().and_then(|bytes| bytes.get_mut(start..start + value.len()));
        place.ok_or_else(|| absent(name))?.copy_from_slice(value);
    }
    Ok(())
}

/// Map entries; the sockets that were made for them.
fn set_entries(case: &Case, object: &Object) -> Result<Vec<OwnedFd>, KernelError> {
    let absent = |name: &str| KernelError::Absent(name.to_string());
    let mut sockets = Vec::new();
    for (name, key, entry) in &case.entries {
        let map = find(object, name).ok_or_else(|| absent(name))?;
        let value = match entry {
            Entry::Value(value) => value.clone(),
            Entry::Program(program) => {
                let found = object.progs().find(|found| found.name() == OsStr::new(program));
                fd_value(found.ok_or_else(|| absent(program))?.as_fd().as_raw_fd())
            }
            Entry::Map(inner) => fd_value(find(object, inner).ok_or_else(|| absent(inner))?.as_fd().as_raw_fd()),
            Entry::Socket => {
                let socket = xdp_socket()?;
                let value = fd_value(socket.as_raw_fd());
                sockets.push(socket);
                value
            }
        };
        let done = if map.map_type().is_percpu() {
            map.update_percpu(key, &vec![value; cpus()? as usize], MapFlags::ANY)
        } else {
            map.update(key, &value, MapFlags::ANY)
        };
        step(format!("set an entry of {name}"), done)?;
    }
    Ok(sockets)
}

fn fd_value(fd: i32) -> Vec<u8> {
    fd.to_le_bytes().to_vec()
}

fn open_rings(object: &Object, records: &Shared) -> Result<Vec<RingBuffer<'static>>, KernelError> {
    let maps = object.maps().filter(|map| map.map_type() == MapType::RingBuf);
    maps.map(|map| {
        let (name, records) = (map.name().to_string_lossy().into_owned(), Rc::clone(records));
        let mut builder = RingBufferBuilder::new();
        let add = builder.add(&map, move |record: &[u8]| {
            records.borrow_mut().entry(name.clone()).or_default().push(record.to_vec());
            0
        });
        step("open a ring buffer", add)?;
        step("open a ring buffer", builder.build())
    })
    .collect()
}

fn open_events(object: &Object, records: &Shared) -> Result<Vec<PerfBuffer<'static>>, KernelError> {
    let maps = object.maps().filter(|map| map.map_type() == MapType::PerfEventArray);
    maps.map(|map| {
        let (name, records) = (map.name().to_string_lossy().into_owned(), Rc::clone(records));
        let builder = PerfBufferBuilder::new(&map).sample_cb(move |_, record: &[u8]| {
            records.borrow_mut().entry(name.clone()).or_default().push(record.to_vec());
        });
        step("open perf events", builder.build())
    })
    .collect()
}

/// An AF_XDP socket with a receive ring, which is all that a socket map asks for.
fn xdp_socket() -> Result<OwnedFd, KernelError> {
    let entries: u32 = 64;
    let system = |step| KernelError::System { step, error: std::io::Error::last_os_error() };
    // SAFETY: takes three numbers and no memory.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(system("make an AF_XDP socket"));
    }
    // SAFETY: `fd` was just made and belongs to nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let (value, len) = (&raw const entries, size_of::<u32>() as libc::socklen_t);
    // SAFETY: the kernel reads `len` bytes at `value`, a live variable of that size.
    let done = unsafe { libc::setsockopt(fd, libc::SOL_XDP, libc::XDP_RX_RING, value.cast(), len) };
    if done < 0 { Err(system("give an AF_XDP socket a ring")) } else { Ok(socket) }
}
