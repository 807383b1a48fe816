//! The VM as a witness.

use xdp_vm::{
    ANY, Coverage, CoverageReport, LoadError, Loader, MapError, MapType, ObjectError, RxMeta, Vm, XdpBuff, XdpObject,
};

use crate::{Case, Contents, Entry, Input, Records, Seen};

/// As much as the kernel gives a frame in `BPF_PROG_TEST_RUN`.
const PAGE_BYTES: usize = 4096;
const HEADROOM_BYTES: usize = 256;

/// What keeps a case from being run in the VM.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    /// The file is refused.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The program is refused.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The case names a map or program that isn't there.
    #[error("the object has no {0}")]
    Absent(&'static str),
    /// An entry is refused.
    #[error("map {map}: {error}")]
    Entry {
        /// The map.
        map: &'static str,
        /// Why.
        error: MapError,
    },
}

/// A program in the VM.
pub struct Simulated {
    vm: Vm,
    coverage: Coverage,
    page: Vec<u8>,
    cpu: u32,
}

impl Simulated {
    /// Load a case; frames run on `cpu` of `cpus`.
    ///
    /// # Errors
    /// Whatever the VM refuses.
    pub fn new(case: &Case, image: &[u8], cpu: u32, cpus: u32) -> Result<Self, VmError> {
        let object = XdpObject::parse(case.object, image)?;
        let loader = Loader::new().program(case.program).cpus(cpus);
        let loader = case.globals.iter().fold(loader, |loader, (name, value)| loader.global(name, value));
        let mut vm = loader.load(&object)?;
        for (map, key, entry) in &case.entries {
            let value = match entry {
                Entry::Value(value) => value.clone(),
                Entry::Program(name) => vm.program_id(name).ok_or(VmError::Absent(name))?.to_le_bytes().to_vec(),
                Entry::Map(name) => vm.map_id(name).ok_or(VmError::Absent(name))?.to_le_bytes().to_vec(),
                // Any number is a socket here.
                Entry::Socket => 1u32.to_le_bytes().to_vec(),
            };
            let found = vm.map_mut(map).ok_or(VmError::Absent(map))?;
            found.update(key, &value, ANY).map_err(|error| VmError::Entry { map, error })?;
        }
        Ok(Self { coverage: vm.coverage(), vm, page: vec![0; PAGE_BYTES], cpu })
    }

    /// Run one frame; a fault in words is no answer that a kernel could give.
    ///
    /// # Errors
    /// The fault.
    pub fn run(&mut self, input: &Input) -> Result<Seen, String> {
        let start = HEADROOM_BYTES;
        let (meta, frame) = (input.meta(), input.frame());
        // Each run of the kernel's has a page of its own, cleared.
        self.page.fill(0);
        self.page[start - meta.len()..start].copy_from_slice(meta);
        self.page[start..start + frame.len()].copy_from_slice(frame);
        let mut buff = XdpBuff::with_meta(&mut self.page, start, frame.len(), meta.len())
            .map_err(|error| format!("the frame has no room: {error}"))?;
        // Loopback's queue 0, as in the kernel.
        let rx = RxMeta { ifindex: 1, queue: 0, cpu: self.cpu, now_ns: 0 };
        let outcome = self.vm.run_covered(&mut buff, &rx, &mut self.coverage);
        let seen = Seen { returned: outcome.returned, frame: buff.data().to_vec(), meta: buff.metadata().to_vec() };
        match outcome.fault() {
            Some(fault) => Err(self.vm.describe(fault).to_string()),
            None => Ok(seen),
        }
    }

    /// Which instructions have run. The one thing that only this witness can tell.
    pub fn coverage(&self) -> CoverageReport {
        self.vm.covered(&self.coverage)
    }

    /// Records emitted since the last call.
    pub fn records(&mut self) -> Records {
        let mut records = Records::new();
        for id in 0..self.vm.maps().len() as u32 {
            let Some(map) = self.vm.map_mut_by_id(id) else { continue };
            // Perf events begin with the CPU.
            let skip = if map.map_type() == MapType::PerfEventArray { 4 } else { 0 };
            let name = map.name().to_string();
            while let Some(record) = map.pop_record() {
                let record = record.get(skip..).unwrap_or(&[]).to_vec();
                records.entry(name.clone()).or_default().push(record);
            }
        }
        records
    }

    /// All maps' contents by name.
    pub fn maps(&self) -> Vec<(String, Contents)> {
        self.vm.maps().iter().map(|map| (map.name().to_string(), contents(map))).collect()
    }
}

fn contents(map: &xdp_vm::Map) -> Contents {
    use MapType as T;
    // The kernel lets nobody look a socket up.
    if map.map_type() == T::XskMap {
        return Contents::new();
    }
    let keys_only = matches!(map.map_type(), T::ProgArray | T::ArrayOfMaps | T::HashOfMaps);
    let values = |key: &[u8]| match map.lookup(key) {
        Some(values) if !keys_only => values.into_iter().map(<[u8]>::to_vec).collect(),
        _ => Vec::new(),
    };
    map.keys().into_iter().map(|key| (key.clone(), values(&key))).collect()
}
