//! Both witnesses on the same frames, and what they did differently.

use std::collections::BTreeMap;
use std::fmt;

use xdp_vm::CoverageReport;

use crate::kernel::{Kernel, KernelError};
use crate::simulated::{Simulated, VmError};
use crate::{Case, Contents, Input, Records, Seen};

/// Why a case did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The kernel's side could not be set up or run.
    #[error("kernel: {0}")]
    Kernel(#[from] KernelError),
    /// The VM's side could not be set up.
    #[error("vm: {0}")]
    Vm(#[from] VmError),
    /// They did differently.
    #[error("{0}")]
    Difference(Box<Difference>),
}

/// Something that the two did differently.
#[derive(Debug)]
pub struct Difference {
    /// The program.
    pub program: String,
    /// The frame, from 0. For a map: the first after which it differs.
    pub frame: usize,
    /// How many frames there are.
    pub frames: usize,
    /// The frame as it went in.
    pub input: Input,
    /// What the kernel returned for it.
    pub kernel: u32,
    /// What the VM returned.
    pub vm: Option<u32>,
    /// What differs.
    pub what: What,
}

/// What differs.
#[derive(Debug)]
pub enum What {
    /// The VM faulted.
    Fault(String),
    /// The return code.
    Returned,
    /// The frame's bytes or length: kernel, VM.
    Frame(Vec<u8>, Vec<u8>),
    /// The metadata's.
    Meta(Vec<u8>, Vec<u8>),
    /// The kernel has no such map.
    NoMap(String),
    /// A key or its values.
    Map {
        /// The map.
        map: String,
        /// The key.
        key: Vec<u8>,
        /// The kernel's values; nothing if the key isn't there.
        kernel: Option<Vec<Vec<u8>>>,
        /// The VM's.
        vm: Option<Vec<Vec<u8>>>,
    },
    /// A record of a ring buffer or perf event array.
    Record {
        /// The map.
        map: String,
        /// Which one since the last drain, from 0.
        number: usize,
        /// The kernel's, if there is one.
        kernel: Option<Vec<u8>>,
        /// The VM's.
        vm: Option<Vec<u8>>,
    },
}

/// What ran without a difference.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Frames.
    pub frames: usize,
    /// Frames by return code.
    pub returned: BTreeMap<u32, usize>,
    /// Entries of maps that were compared at the end.
    pub entries: usize,
    /// Records that were compared.
    pub records: usize,
    /// Which instructions ran.
    pub coverage: CoverageReport,
}

/// Run a case on both and compare everything.
///
/// # Errors
/// [`Failure::Difference`] for the first difference; the others for what kept it from being run.
pub fn compare(case: &Case, image: &[u8], inputs: &[Input], cpu: u32, cpus: u32) -> Result<Tally, Failure> {
    let run = |frames: usize| {
        let mut pair = Pair { kernel: Kernel::new(case, image)?, vm: Simulated::new(case, image, cpu, cpus)? };
        pair.run(case, &inputs[..frames], inputs.len())
    };
    match run(inputs.len()) {
        Err(Failure::Difference(last)) if matches!(last.what, What::Map { .. }) => {
            // Maps are compared at the end. The shortest run that ends with a difference tells which frame made it.
            let (mut without, mut with, mut found) = (0, inputs.len(), last);
            while with - without > 1 {
                let middle = without + (with - without) / 2;
                match run(middle) {
                    Err(Failure::Difference(difference)) => (with, found) = (middle, difference),
                    Err(other) => return Err(other),
                    Ok(_) => without = middle,
                }
            }
            Err(Failure::Difference(found))
        }
        ended => ended,
    }
}

struct Pair {
    kernel: Kernel,
    vm: Simulated,
}

impl Pair {
    fn run(&mut self, case: &Case, inputs: &[Input], frames: usize) -> Result<Tally, Failure> {
        let mut tally = Tally::default();
        let mut last = (0, None);
        for (frame, input) in inputs.iter().enumerate() {
            let kernel = self.kernel.run(input)?;
            let vm = self.vm.run(input);
            last = (kernel.returned, vm.as_ref().ok().map(|seen| seen.returned));
            *tally.returned.entry(kernel.returned).or_default() += 1;
            tally.frames += 1;
            let what = match vm {
                Err(fault) => Some(What::Fault(fault)),
                Ok(vm) => first_difference(kernel, vm),
            };
            let what = match what {
                None if input.drain => self.compare_records(&mut tally)?,
                what => what,
            };
            if let Some(what) = what {
                return Err(difference(case, inputs, frame, frames, last, what));
            }
        }
        let what = match self.compare_records(&mut tally)? {
            None => self.compare_maps(&mut tally)?,
            what => what,
        };
        match what {
            Some(what) => Err(difference(case, inputs, inputs.len().saturating_sub(1), frames, last, what)),
            None => {
                tally.coverage = self.vm.coverage();
                Ok(tally)
            }
        }
    }

    fn compare_records(&mut self, tally: &mut Tally) -> Result<Option<What>, KernelError> {
        let (kernel, vm) = (self.kernel.records()?, self.vm.records());
        tally.records += kernel.values().map(Vec::len).sum::<usize>();
        Ok(record_difference(&kernel, &vm, |map| self.kernel.pads_records(map)))
    }

    fn compare_maps(&self, tally: &mut Tally) -> Result<Option<What>, KernelError> {
        for (map, vm) in self.vm.maps() {
            let Some(kernel) = self.kernel.map(&map)? else { return Ok(Some(What::NoMap(map))) };
            tally.entries += kernel.len();
            if let Some(key) = differing_key(&kernel, &vm) {
                let (kernel, vm) = (kernel.get(&key).cloned(), vm.get(&key).cloned());
                return Ok(Some(What::Map { map, key, kernel, vm }));
            }
        }
        Ok(None)
    }
}

fn difference(
    case: &Case,
    inputs: &[Input],
    frame: usize,
    frames: usize,
    (kernel, vm): (u32, Option<u32>),
    what: What,
) -> Failure {
    let input = inputs.get(frame).cloned().unwrap_or_else(|| Input::plain(Vec::new()));
    Failure::Difference(Box::new(Difference {
        program: format!("{} of {}", case.program, case.object),
        frame,
        frames,
        input,
        kernel,
        vm,
        what,
    }))
}

fn first_difference(kernel: Seen, vm: Seen) -> Option<What> {
    if kernel.returned != vm.returned {
        Some(What::Returned)
    } else if kernel.meta != vm.meta {
        Some(What::Meta(kernel.meta, vm.meta))
    } else if kernel.frame != vm.frame {
        Some(What::Frame(kernel.frame, vm.frame))
    } else {
        None
    }
}

fn differing_key(kernel: &Contents, vm: &Contents) -> Option<Vec<u8>> {
    kernel.keys().chain(vm.keys()).find(|key| kernel.get(*key) != vm.get(*key)).cloned()
}

/// Perf events end with up to 7 bytes of nothing in particular.
fn record_difference(kernel: &Records, vm: &Records, pads: impl Fn(&str) -> bool) -> Option<What> {
    kernel.keys().chain(vm.keys()).find_map(|map| {
        let (theirs, ours) =
            (kernel.get(map).map_or(&[][..], Vec::as_slice), vm.get(map).map_or(&[][..], Vec::as_slice));
        let padding = if pads(map) { 7 } else { 0 };
        let same = |kernel: &[u8], vm: &[u8]| kernel.starts_with(vm) && kernel.len() - vm.len() <= padding;
        let number = (0..theirs.len().max(ours.len())).find(|&at| match (theirs.get(at), ours.get(at)) {
            (Some(kernel), Some(vm)) => !same(kernel, vm),
            _ => true,
        })?;
        let (kernel, vm) = (theirs.get(number).cloned(), ours.get(number).cloned());
        Some(What::Record { map: map.clone(), number, kernel, vm })
    })
}

/// A return code as people know it.
pub fn action_name(code: u32) -> String {
    match ["XDP_ABORTED", "XDP_DROP", "XDP_PASS", "XDP_TX", "XDP_REDIRECT"].get(code as usize) {
        Some(name) => (*name).to_string(),
        // Whatever else a program returns is most often the number of an error.
        None => format!("{}", code.cast_signed()),
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, frame, frames, input, kernel, vm, what } = self;
        let (len, meta) = (input.frame().len(), input.meta_len);
        writeln!(f, "{program}, frame {frame} of {frames} ({len} bytes, {meta} of metadata): {what}")?;
        let vm = vm.map_or_else(|| "a fault".to_string(), action_name);
        writeln!(f, "  verdicts  kernel {}, vm {vm}", action_name(*kernel))?;
        write!(f, "  frame in  {}", Hex(&input.frame()[..len.min(96)]))
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => write!(f, "the vm faults where the kernel runs: {fault}"),
            Self::Returned => f.write_str("the verdict differs"),
            Self::Frame(kernel, vm) => {
                let at = first_differing_byte(kernel, vm);
                write!(f, "the frame differs at byte {at} ({})", traces::fields::at(kernel, at).name)?;
                both(f, kernel, vm, at)
            }
            Self::Meta(kernel, vm) => {
                let at = first_differing_byte(kernel, vm);
                write!(f, "the metadata differs at byte {at}")?;
                both(f, kernel, vm, at)
            }
            Self::NoMap(map) => write!(f, "libbpf makes no map {map}"),
            Self::Map { map, key, kernel, vm } => {
                write!(f, "map {map} differs at key {}", Hex(key))?;
                values(f, "kernel", kernel.as_deref())?;
                values(f, "vm", vm.as_deref())
            }
            Self::Record { map, number, kernel, vm } => {
                write!(f, "map {map}: record {number} since the last drain differs")?;
                for (who, record) in [("kernel", kernel), ("vm", vm)] {
                    let text = record.as_ref().map_or_else(|| "none".to_string(), |bytes| Hex(bytes).to_string());
                    write!(f, "\n  {who:6}    {text}")?;
                }
                Ok(())
            }
        }
    }
}

fn first_differing_byte(kernel: &[u8], vm: &[u8]) -> usize {
    let same = kernel.iter().zip(vm).take_while(|(kernel, vm)| kernel == vm);
    same.count()
}

/// Lengths, and 16 bytes from a little before the place.
fn both(f: &mut fmt::Formatter<'_>, kernel: &[u8], vm: &[u8], at: usize) -> fmt::Result {
    let from = at.saturating_sub(4);
    for (who, bytes) in [("kernel", kernel), ("vm", vm)] {
        let shown = Hex(bytes.get(from..(from + 16).min(bytes.len())).unwrap_or(&[]));
        write!(f, "\n  {who:6}    {} bytes, from byte {from}: {shown}", bytes.len())?;
    }
    Ok(())
}

fn values(f: &mut fmt::Formatter<'_>, who: &str, values: Option<&[Vec<u8>]>) -> fmt::Result {
    let text = match values {
        None => "no such key".to_string(),
        Some(values) => values.iter().map(|value| Hex(value).to_string()).collect::<Vec<_>>().join(" | "),
    };
    write!(f, "\n  {who:6}    {text}")
}

/// Bytes with spaces between.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            write!(f, "{space}{byte:02x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(returned: u32, frame: &[u8], meta: &[u8]) -> Seen {
        Seen { returned, frame: frame.to_vec(), meta: meta.to_vec() }
    }

    /// The alarm is tried: each kind of difference is one.
    #[test]
    fn any_difference_is_seen() {
        let base = || seen(2, b"frame", b"meta");
        assert!(first_difference(base(), base()).is_none());
        assert!(matches!(first_difference(base(), seen(1, b"frame", b"meta")), Some(What::Returned)));
        assert!(matches!(first_difference(base(), seen(2, b"fraMe", b"meta")), Some(What::Frame(..))));
        assert!(matches!(first_difference(base(), seen(2, b"frame1", b"meta")), Some(What::Frame(..))));
        assert!(matches!(first_difference(base(), seen(2, b"frame", b"")), Some(What::Meta(..))));
    }

    #[test]
    fn a_key_on_one_side_only_is_a_difference() {
        let one: Contents = [(vec![1], vec![vec![0]])].into();
        let two: Contents = [(vec![1], vec![vec![0]]), (vec![2], vec![])].into();
        assert_eq!(differing_key(&one, &one), None);
        assert_eq!(differing_key(&one, &two), Some(vec![2]));
        assert_eq!(differing_key(&two, &one), Some(vec![2]));
    }

    #[test]
    fn padding_is_forgiven_where_it_belongs() {
        let records = |bytes: &[u8]| Records::from([("m".to_string(), vec![bytes.to_vec()])]);
        let differ = |kernel: &[u8], vm: &[u8], pads: bool| {
            record_difference(&records(kernel), &records(vm), |_| pads).is_some()
        };
        assert!(!differ(b"abc", b"abc", false));
        assert!(differ(b"abc\0", b"abc", false));
        assert!(!differ(b"abc\0", b"abc", true));
        assert!(differ(b"abc12345678", b"abc", true));
        assert!(differ(b"ab", b"abc", true));
        assert!(record_difference(&records(b"a"), &Records::new(), |_| false).is_some());
    }

    #[test]
    fn a_report_names_program_frame_byte_and_both_sides() {
        let what = What::Frame(vec![0; 60], [vec![0; 26], vec![9], vec![0; 33]].concat());
        let input = Input::plain(vec![0; 60]);
        let program = "p of p.o".to_string();
        let text = Difference { program, frame: 7, frames: 9, input, kernel: 3, vm: Some(3), what }.to_string();
        assert!(
            text.starts_with("p of p.o, frame 7 of 9 (60 bytes, 0 of metadata): the frame differs at byte 26"),
            "{text}"
        );
        assert!(text.contains("kernel XDP_TX, vm XDP_TX"), "{text}");
        assert!(text.contains("vm        60 bytes, from byte 22: 00 00 00 00 09 00"), "{text}");
    }
}
