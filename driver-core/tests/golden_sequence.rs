//! The register sequence of probe, up, statistics, RSS, down and removal, held against the vendor driver's as it was recorded.
//!
//! The recording, of function 0, is `../shared/vectors/onic_probe_trace.txt`. Where we differ, we do so on purpose:
//! [`DIFFERENCES`] lists each with its reason and applies it to the recording, and then the two must be the same, access by
//! access. A difference that is not listed fails, and so does one that is listed and changes nothing. `docs/register-order.md`
//! is the same list for people; `ONIC_WRITE_DOCS=1 cargo test -p driver-core --test golden_sequence` writes it.
//!
//! Of another function there is no recording. Its sequence follows from function 0's by [`of_function_1`], which does what
//! `spec/driver.md` section 3 says of functions that are not master.

mod common;

use std::path::PathBuf;
use std::sync::Arc;

use common::{Access, Mock};
use driver_core::{DeviceConfig, Driver, IpVersion, TableEntry};
use regs::{Bar, FuncId, PortId};

/// What the driver is doing, with the recording's phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Probe = 1,
    Up = 2,
    Link = 4,
    Statistics = 5,
    ShowRss = 6,
    SetRss = 7,
    Down = 8,
    Remove = 9,
}

const PHASES: [(Phase, &str); 8] = [
    (Phase::Probe, "probe"),
    (Phase::Up, "up"),
    (Phase::Link, "link query (`ethtool IF`)"),
    (Phase::Statistics, "statistics (`ethtool -S`)"),
    (Phase::ShowRss, "show RSS (`ethtool -x`)"),
    (Phase::SetRss, "set RSS (`ethtool -X … equal 4`)"),
    (Phase::Down, "down"),
    (Phase::Remove, "remove"),
];

/// Which functions a difference is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    All,
    /// Function 0.
    Master,
    /// Functions other than 0.
    Others,
}

impl Whose {
    fn has(self, func: FuncId) -> bool {
        match self {
            Whose::All => true,
            Whose::Master => func.0 == 0,
            Whose::Others => func.0 > 0,
        }
    }

    /// As the page says it.
    fn text(self) -> &'static str {
        match self {
            Whose::All => "",
            Whose::Master => " of function 0",
            Whose::Others => " of functions other than 0",
        }
    }
}

/// One thing that we do otherwise.
struct Difference {
    phase: Phase,
    /// Whose sequence differs.
    of: Whose,
    vendor: &'static str,
    ours: &'static str,
    why: &'static str,
    /// Change the vendor's sequence; how many accesses that were.
    apply: fn(&mut Vec<Access>, FuncId) -> usize,
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        phase: Phase::Probe,
        // Function 0 has set up both ports before another comes.
        of: Whose::Master,
        vendor: "enables the receiver of every port",
        ours: "leaves the receiver of the function's own port off",
        why: "Frames that come before there are queues meet a counted drop, not queues that don't exist: there the QDMA may \
              stall, for every function.",
        apply: |accesses, func| remove(accesses, |access| access.bar == Bar::Shell && access.offset == receiver(func)),
    },
    Difference {
        phase: Phase::Probe,
        of: Whose::Others,
        vendor: "assumes that the ring and buffer tables are as it programs them itself",
        ours: "reads both tables before the CMACs",
        why: "Function 0 may have been given other sizes, and may be another driver (DPDK). A size is the one that the card \
              works with.",
        apply: |accesses, _| {
            let tables = [(0x204, RING_SIZES), (0xAB0, BUFFER_SIZES)];
            let reads = tables.into_iter().flat_map(|(first, values)| {
                (0..).zip(values).map(move |(i, value)| read(Bar::Qdma, first + 4 * i, value))
            });
            let at = accesses.iter().position(|access| access.offset == 0x8024).expect("a CMAC is looked for");
            accesses.splice(at..at, reads).count();
            32
        },
    },
    Difference {
        phase: Phase::Up,
        of: Whose::All,
        vendor: "publishes 256 of the 1022 buffers it has posted (PIDX 256)",
        ours: "publishes all (PIDX 1022)",
        why: "They are there anyway, and a burst finds them.",
        apply: |accesses, _| {
            let c2h_pidx = |access: &Access| access.offset >= 0x18000 && access.offset % 16 == 8;
            change(accesses, c2h_pidx, |access| access.value = 1022)
        },
    },
    Difference {
        phase: Phase::Up,
        of: Whose::All,
        vendor: "receive buffers of 4096 bytes (table index 8)",
        ours: "receive buffers of 2048 bytes (table index 4)",
        why: "At offset 256 of a page of 4096 the card could write 256 bytes past the page's end (B-21).",
        apply: |accesses, _| {
            let prefetch = |access: &Access| (access.offset, access.value) == (0x804, 0x0800_0010);
            change(accesses, prefetch, |access| access.value = 0x0800_0008)
        },
    },
    Difference {
        phase: Phase::Up,
        of: Whose::All,
        vendor: "completion contexts whose moderation stays as it is written (full_upd 0)",
        ours: "completion contexts that take it from each doorbell (full_upd 1)",
        why: "Moderation can change while a queue runs (`ethtool -C`). A doorbell carries it in any case.",
        apply: |accesses, _| {
            let mut changed = 0;
            for at in 0..accesses.len() {
                // A completion context is written: its word 4 was the last one to be put into 0x814.
                if (accesses[at].offset, accesses[at].value & 0x7F) == (0x844, 0x2C) {
                    let word = accesses[..at].iter().rposition(|access| access.offset == 0x814).expect("a fifth word");
                    accesses[word].value |= 2;
                    changed += 1;
                }
            }
            changed
        },
    },
    Difference {
        phase: Phase::Up,
        of: Whose::All,
        vendor: "nothing after the last queue",
        ours: "enables the receiver of the function's own port",
        why: "See probe: now there are queues.",
        apply: |accesses, func| {
            accesses.push(write(Bar::Shell, receiver(func), 1));
            1
        },
    },
    Difference {
        phase: Phase::Statistics,
        of: Whose::All,
        vendor: "reads the lower 32 bits of each counter of the MAC",
        ours: "reads all 48 bits, and sums up to 64",
        why: "Bytes pass 32 bits in 0.34 s at 100 Gb/s, and a TICK takes the counts away from the next reader (B-34).",
        apply: |accesses, func| insert_after(accesses, |access| mac(access, func), |access| vec![high(access)]),
    },
    Difference {
        phase: Phase::Statistics,
        of: Whose::All,
        vendor: "reads the lower 32 bits of each counter of the packet adapter",
        ours: "reads the lower half, the upper, and the lower again",
        why: "The counters have 64 bits and run on; upstream's registers tear. A lower half that has become smaller tells of \
              the carry (ONIC-15).",
        apply: |accesses, func| {
            insert_after(accesses, |access| adapter(access, func), |access| vec![high(access), *access])
        },
    },
    Difference {
        phase: Phase::Statistics,
        of: Whose::All,
        vendor: "ends after 64 counters",
        ours: "reads the adapter's other 14 counters and the QDMA subsystem's 8",
        why: "Our shell says why it dropped a frame.",
        apply: |accesses, func| {
            let port = 0xB000 + 0x4000 * u32::from(func.0);
            let bytes = [0x08, 0x18, 0x28, 0x38, 0x48];
            let ours = (0x80..0xC8).step_by(8);
            let function = (0x5040..0x5060).step_by(8).map(|offset| offset + 0x20 * u32::from(func.0));
            let offsets: Vec<u32> = bytes.into_iter().chain(ours).map(|offset| port + offset).collect();
            let offsets: Vec<u32> = offsets.into_iter().chain((0x5000..0x5020).step_by(8)).chain(function).collect();
            let before = accesses.len();
            for low in offsets.into_iter().map(|offset| read(Bar::Shell, offset, 0)) {
                accesses.extend([low, high(&low), low]);
            }
            accesses.len() - before
        },
    },
    Difference {
        phase: Phase::Down,
        of: Whose::All,
        vendor: "stops the queues while frames come",
        ours: "disables the receiver of the function's own port first, and waits until what is in flight has ended",
        why: "A queue that is stopped under way leaves frames without a place, and memory that the card still writes to (B-07).",
        apply: |accesses, func| {
            accesses.insert(0, write(Bar::Shell, receiver(func), 0));
            1
        },
    },
];

/// The vendor's tables (`spec/qdma.md` 4.1).
const RING_SIZES: [u32; 16] =
    [4096, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 3072, 4096, 6144, 8192, 12288, 16384];
const BUFFER_SIZES: [u32; 16] =
    [4096, 256, 512, 1024, 2048, 3968, 4096, 4096, 4096, 4096, 4096, 4096, 4096, 8192, 9018, 16384];

// ---- accesses

fn read(bar: Bar, offset: u32, value: u32) -> Access {
    Access { bar, write: false, offset, value }
}

fn write(bar: Bar, offset: u32, value: u32) -> Access {
    Access { bar, write: true, offset, value }
}

/// The upper half of a counter, 0 in the recording.
fn high(low: &Access) -> Access {
    read(low.bar, low.offset + 4, 0)
}

/// The CMAC's receiver control.
fn receiver(func: FuncId) -> u32 {
    0x8014 + 0x4000 * u32::from(func.0)
}

fn mac(access: &Access, func: FuncId) -> bool {
    let port = 0x4000 * u32::from(func.0);
    access.bar == Bar::Shell && (0x8500 + port..0x8718 + port).contains(&access.offset)
}

fn adapter(access: &Access, func: FuncId) -> bool {
    let port = 0x4000 * u32::from(func.0);
    access.bar == Bar::Shell && (0xB000 + port..0xC000 + port).contains(&access.offset)
}

fn remove(accesses: &mut Vec<Access>, which: impl Fn(&Access) -> bool) -> usize {
    let before = accesses.len();
    accesses.retain(|access| !which(access));
    before - accesses.len()
}

fn change(accesses: &mut [Access], which: impl Fn(&Access) -> bool, how: impl Fn(&mut Access)) -> usize {
    accesses.iter_mut().filter(|access| access.write && which(access)).map(how).count()
}

fn insert_after(
    accesses: &mut Vec<Access>,
    which: impl Fn(&Access) -> bool,
    what: impl Fn(&Access) -> Vec<Access>,
) -> usize {
    let before = accesses.len();
    let with = |access: Access| {
        let more = if which(&access) { what(&access) } else { Vec::new() };
        std::iter::once(access).chain(more)
    };
    *accesses = std::mem::take(accesses).into_iter().flat_map(with).collect();
    accesses.len() - before
}

// ---- the recording

/// Accesses of one phase of the recording.
fn recorded(trace: &str, phase: Phase) -> Vec<Access> {
    let mut inside = false;
    let mut accesses = Vec::new();
    for line in trace.lines() {
        if let Some(rest) = line.strip_prefix("# phase ") {
            inside = rest.split(':').next() == Some((phase as u32).to_string().as_str());
        } else if inside && !line.starts_with('#') {
            accesses.push(parse(line));
        }
    }
    accesses
}

/// `SEQ BAR rd|wr BYTES OFFSET VALUE`
fn parse(line: &str) -> Access {
    let words: Vec<&str> = line.split_whitespace().collect();
    let hex = |word: &str| u32::from_str_radix(word.trim_start_matches("0x"), 16).expect("a hexadecimal number");
    Access {
        bar: if words[1] == "0" { Bar::Qdma } else { Bar::Shell },
        write: words[2] == "wr",
        offset: hex(words[4]),
        value: hex(words[5]),
    }
}

/// What depends on the run and not on the driver, set to 0: the dummy of the recording answers a context command with the
/// command word, and ring addresses are the allocator's.
fn normalize(accesses: &mut [Access]) {
    for access in accesses.iter_mut().filter(|access| !access.write && is_command(access)) {
        access.value = 0;
    }
    for end in 0..accesses.len() {
        let command = accesses[end];
        if !(command.write && is_command(&command) && command.value >> 5 & 3 == 1) {
            continue;
        }
        // Words 2 and 3 of software contexts, 1 and 2 of completion contexts.
        let words: &[u32] = match command.value >> 1 & 0xF {
            0 | 1 => &[0x80C, 0x810],
            6 => &[0x808, 0x80C],
            _ => &[],
        };
        for access in accesses[end.saturating_sub(16)..end].iter_mut().filter(|access| words.contains(&access.offset)) {
            access.value = 0;
        }
    }
}

fn is_command(access: &Access) -> bool {
    access.bar == Bar::Qdma && access.offset == 0x844
}

/// Function 1's sequence from function 0's: no CSRs, CMACs only looked for, no error interrupt; queues from 64 on, its own
/// number in contexts, its own page of the shell, its own port.
fn of_function_1(phase: Phase, accesses: &mut Vec<Access>) {
    accesses.retain(|access| match access.bar {
        Bar::Qdma => (0x800..0x848).contains(&access.offset) || access.offset >= 0x18000,
        Bar::Shell => {
            phase != Phase::Probe || (0x1000..0x2000).contains(&access.offset) || access.offset & 0x3FFF == 0x24
        }
    });
    let mut data = Vec::new();
    for at in 0..accesses.len() {
        let access = &mut accesses[at];
        match (access.bar, access.offset) {
            (Bar::Shell, 0x1000) => {
                access.value |= if access.value == 0 { 0 } else { 64 << 16 };
                access.offset += 0x1000;
            }
            (Bar::Shell, 0x1001..0x2000) => access.offset += 0x1000,
            (Bar::Shell, 0x8000..) if phase != Phase::Probe => access.offset += 0x4000,
            (Bar::Qdma, 0x804..0x824) => data.push(at),
            (Bar::Qdma, 0x844) => {
                let selector = access.value >> 1 & 0xF;
                // A function's map is found by the function, everything else by the queue.
                access.value += if selector == 12 { 1 << 7 } else { 64 << 7 };
                let word_0 = data.first().copied();
                data.clear();
                if let Some(word_0) = word_0 {
                    accesses[word_0].value |= match selector {
                        0 | 1 => 1 << 17,
                        6 => 1 << 5,
                        12 => 64,
                        _ => 0,
                    };
                }
            }
            _ => {}
        }
    }
}

/// What is expected of us: the vendor's sequence, with the differences of this phase.
fn expected(trace: &str, phase: Phase, func: FuncId) -> Vec<Access> {
    let mut accesses = recorded(trace, phase);
    if func.0 > 0 {
        of_function_1(phase, &mut accesses);
    }
    normalize(&mut accesses);
    let listed = DIFFERENCES.iter().filter(|difference| difference.phase == phase);
    for difference in listed.filter(|difference| difference.of.has(func)) {
        let changed = (difference.apply)(&mut accesses, func);
        assert!(changed > 0, "the listed difference `{}` changes nothing", difference.ours);
    }
    accesses
}

fn trace() -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors/onic_probe_trace.txt");
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        println!("skipped: the recording {} is not there", path.display());
    }
    text
}

/// The configuration of the recorded driver, as far as ours allows it.
fn config(func: FuncId) -> DeviceConfig {
    DeviceConfig {
        ip_version: IpVersion::Q31,
        tx_ring: TableEntry::Index(0),
        rx_ring: TableEntry::Index(8),
        rx_buffer: TableEntry::Index(4),
        ports: vec![PortId(0), PortId(1)],
        ..DeviceConfig::new(func)
    }
}

/// What we did since the last time.
fn ours(mock: &Mock) -> Vec<Access> {
    let mut accesses = mock.take_log();
    normalize(&mut accesses);
    accesses
}

fn assert_same(phase: Phase, func: FuncId, ours: &[Access], expected: &[Access]) {
    for (i, (ours, expected)) in ours.iter().zip(expected).enumerate() {
        assert_eq!(
            ours, expected,
            "{func}, {phase:?}, access {i}: not the vendor's, and not in the list of differences"
        );
    }
    assert_eq!(ours.len(), expected.len(), "{func}, {phase:?}: number of accesses");
}

/// A whole life, phase by phase.
fn follow(trace: &str, func: FuncId, mock: &Arc<Mock>) {
    mock.log_doorbells(true);
    let check = |phase| assert_same(phase, func, &ours(mock), &expected(trace, phase, func));
    let mut driver = Driver::<Mock>::bring_up(Arc::clone(mock), config(func)).expect("bring-up");
    check(Phase::Probe);
    driver.up().expect("up");
    check(Phase::Up);
    assert_eq!(driver.link_up(PortId(func.0)), Ok(true));
    check(Phase::Link);
    // The recording's dummy counts nothing and has no key, and the rows of our own shell are there and 0.
    driver.statistics().expect("statistics");
    check(Phase::Statistics);
    driver.rss().expect("RSS");
    check(Phase::ShowRss);
    driver.set_rss_table(&driver_core::rss::Table::equal(4).expect("4 queues")).expect("a table");
    check(Phase::SetRss);
    driver.down().expect("down");
    check(Phase::Down);
    driver.remove().expect("remove");
    check(Phase::Remove);
    mock.assert_clean();
}

#[test]
fn function_0_follows_the_recording() {
    let Some(trace) = trace() else { return };
    follow(&trace, FuncId(0), &Mock::new(10));
}

#[test]
fn function_1_follows_what_is_said_of_it() {
    let Some(trace) = trace() else { return };
    let mock = Mock::new(9);
    let table = |first: u32, values: [u32; 16]| (0..).zip(values).map(move |(i, value)| (first + 4 * i, value));
    mock.state_tables(&table(0x204, RING_SIZES).chain(table(0xAB0, BUFFER_SIZES)).collect::<Vec<_>>());
    follow(&trace, FuncId(1), &mock);
}

// ---- the list for people

fn page() -> String {
    let mut page = String::from(
        "# Where the register sequence differs from the vendor driver's\n\n\
         driver-core's accesses in a function's life are held against the vendor driver's (open-nic-driver 3de2269), as \
         recorded,\naccess by access. Everything not listed here is the same: registers, order and values. The list is the \
         test's own,\n`driver-core/tests/golden_sequence.rs`, which fails on any other difference and writes this page.\n\n\
         | phase | the vendor's driver | this driver | why |\n|---|---|---|---|\n",
    );
    for (phase, name) in PHASES {
        let listed: Vec<&Difference> = DIFFERENCES.iter().filter(|difference| difference.phase == phase).collect();
        if listed.is_empty() {
            page += &format!("| {name} | | the same | |\n");
        }
        for Difference { of, vendor, ours, why, .. } in listed {
            let who = of.text();
            page += &format!("| {name}{who} | {vendor} | {ours} | {why} |\n");
        }
    }
    page += "\nFunctions other than 0 were not recorded. Their sequence follows from function 0's: no CSRs, CMACs only looked \
             for, no\nerror interrupt. What is no access is not compared: this driver waits for a context command, a reset \
             and the end of\nwhat is in flight with a limit, and what fails is undone, last first.\n";
    page
}

#[test]
fn the_list_of_differences_is_the_one_in_the_docs() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/register-order.md");
    if std::env::var_os("ONIC_WRITE_DOCS").is_some() {
        std::fs::write(&path, page()).expect("docs/register-order.md");
    }
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == page(),
        "docs/register-order.md is not what the test lists; write it again:\n\
         ONIC_WRITE_DOCS=1 cargo test -p driver-core --test golden_sequence"
    );
}
