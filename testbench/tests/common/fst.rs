//! Values in an FST file, read without GTKWave, and the save file beside it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use fst_reader::{FstFilter, FstHierarchyEntry, FstReader, FstSignalHandle, FstSignalValue};

/// An FST file.
pub struct Fst {
    reader: FstReader<BufReader<File>>,
    /// Numbers of handles, which can't be copied.
    signals: BTreeMap<String, usize>,
}

impl Fst {
    /// Open a file and read the names in it.
    pub fn open(path: &Path) -> Fst {
        let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut reader = FstReader::open(BufReader::new(file)).expect("an FST file");
        let (mut scopes, mut signals) = (Vec::new(), BTreeMap::new());
        let each = |entry| match entry {
            FstHierarchyEntry::Scope { name, .. } => scopes.push(name),
            FstHierarchyEntry::UpScope => drop(scopes.pop()),
            FstHierarchyEntry::Var { name, handle, .. } => {
                signals.insert(format!("{}.{}", scopes.join("."), gtkwave_name(&name)), handle.get_index());
            }
            _ => {}
        };
        reader.read_hierarchy(each).expect("names");
        Fst { reader, signals }
    }

    /// First and last time, ps: the files' unit is asserted.
    pub fn times(&self) -> (u64, u64) {
        let header = self.reader.get_header();
        assert_eq!(header.timescale_exponent, -12, "picoseconds");
        (header.start_time, header.end_time)
    }

    /// There is a signal of this name.
    pub fn has(&self, name: &str) -> bool {
        self.signals.contains_key(name)
    }

    /// A signal's value at a time, as bytes: byte 0 is bits 7:0.
    pub fn value(&mut self, name: &str, time: u64) -> Vec<u8> {
        let index = *self.signals.get(name).unwrap_or_else(|| panic!("no signal {name}"));
        let mut bits = Vec::new();
        let each = |at: u64, _: FstSignalHandle, value: FstSignalValue<'_>| {
            if let (true, FstSignalValue::String(value)) = (at <= time, value) {
                bits = value.to_vec();
            }
            Ok::<(), ()>(())
        };
        self.reader
            .read_signals(&FstFilter::filter_signals(vec![FstSignalHandle::from_index(index)]), each)
            .expect("values");
        assert!(!bits.is_empty(), "{name} has no value at {time}");
        let byte = |bits: &[u8]| bits.iter().fold(0, |byte, &bit| byte << 1 | u8::from(bit == b'1'));
        bits.rchunks(8).map(byte).collect()
    }
}

/// `tdata [511:0]` is `tdata[511:0]` in GTKWave, and `tvalid [0:0]` is `tvalid[0]`.
fn gtkwave_name(name: &str) -> String {
    let name = name.replace(" [", "[");
    match name.split_once('[') {
        Some((base, range)) => match range.trim_end_matches(']').split_once(':') {
            Some((high, low)) if high == low => format!("{base}[{high}]"),
            _ => name,
        },
        None => name,
    }
}

/// What a save file says: the file, the marker, the signals in order.
pub struct SaveFile {
    /// Name of the FST.
    pub dumpfile: String,
    /// Time of the marker.
    pub marker: u64,
    /// Signals, first to last.
    pub signals: Vec<String>,
}

impl SaveFile {
    /// Read one.
    pub fn parse(text: &str) -> SaveFile {
        let dumpfile = text.lines().find_map(|line| line.strip_prefix("[dumpfile] \"")).expect("a dump file");
        let zoom = text.lines().find(|line| line.starts_with('*')).expect("a line with the marker");
        let marker = zoom.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("the marker is set");
        let signals = text.lines().filter(|line| !line.starts_with(['[', '*', '@', '-'])).map(str::to_owned).collect();
        SaveFile { dumpfile: dumpfile.trim_end_matches('"').into(), marker, signals }
    }
}
