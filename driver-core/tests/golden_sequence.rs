//! The register sequence of probe, up, down and remove, held against the vendor driver's as it was recorded.
//!
//! The recording is `../shared/vectors/onic_probe_trace.txt`. Where we differ, we do so on purpose: [`deliberate`] applies
//! each difference to the recording, with its reason, and then the two must be the same, access by access.

mod common;

use std::path::PathBuf;
use std::sync::Arc;

use common::{Access, Mock};
use driver_core::{DeviceConfig, Driver, IpVersion, TableEntry};
use regs::{Bar, FuncId, PortId};

/// Accesses of one phase of the recording.
fn recorded(trace: &str, phase: u32) -> Vec<Access> {
    let mut inside = false;
    let mut accesses = Vec::new();
    for line in trace.lines() {
        if let Some(rest) = line.strip_prefix("# phase ") {
            inside = rest.split(':').next() == Some(phase.to_string().as_str());
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

/// The recording, changed to what we do instead.
fn deliberate(phase: u32, mut accesses: Vec<Access>) -> Vec<Access> {
    let qdma = |access: &Access, offset| access.bar == Bar::Qdma && access.offset == offset;
    // The dummy of the recording answers a context command with the command word; its value is not the driver's.
    for access in accesses.iter_mut().filter(|access| !access.write && qdma(access, 0x844)) {
        access.value = 0;
    }
    // Ring addresses are the allocator's: words 2 and 3 of software contexts, 1 and 2 of completion contexts.
    mask_addresses(&mut accesses);
    match phase {
        1 => {
            // Port 0's receiver is enabled at up, when there are queues: frames that come before meet a counted drop
            // instead of queues that don't exist (where the QDMA may stall, for every function).
            accesses.retain(|access| !(access.bar == Bar::Shell && access.offset == 0x8014));
        }
        2 => {
            for access in accesses.iter_mut().filter(|access| access.write) {
                match access.offset {
                    // All 1022 buffers instead of the first 256: those are there anyway.
                    0x18000.. if access.offset % 16 == 8 => access.value = 1022,
                    // Buffer size index 4, 2048 bytes, instead of 8, 4096: at offset 256 of a 4096-byte page the card would
                    // write past the page's end (driver.md B-21).
                    0x804 if access.value == 0x0800_0010 => access.value = 0x0800_0008,
                    _ => {}
                }
            }
            // The receiver, see phase 1.
            accesses.push(Access { bar: Bar::Shell, write: true, offset: 0x8014, value: 1 });
        }
        8 => {
            // The receiver goes first: what is in flight ends before the queues do (driver.md B-07).
            accesses.insert(0, Access { bar: Bar::Shell, write: true, offset: 0x8014, value: 0 });
        }
        _ => {}
    }
    accesses
}

/// Set the address words of contexts to 0, by looking at the command that follows the data words.
fn mask_addresses(accesses: &mut [Access]) {
    for end in 0..accesses.len() {
        let command = accesses[end];
        if !(command.write && command.bar == Bar::Qdma && command.offset == 0x844 && command.value >> 5 & 3 == 1) {
            continue;
        }
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

fn trace() -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors/onic_probe_trace.txt");
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        println!("skipped: the recording {} is not there", path.display());
    }
    text
}

/// The configuration of the recorded driver, as far as ours allows it.
fn config() -> DeviceConfig {
    DeviceConfig {
        ip_version: IpVersion::Q31,
        tx_ring: TableEntry::Index(0),
        rx_ring: TableEntry::Index(8),
        rx_buffer: TableEntry::Index(4),
        ports: vec![PortId(0), PortId(1)],
        ..DeviceConfig::new(FuncId(0))
    }
}

/// Our accesses, ready for comparison; doorbells, which the mock keeps apart, are put back by the caller.
fn ours(mock: &Mock) -> Vec<Access> {
    let mut accesses = mock.take_log();
    for access in accesses.iter_mut().filter(|access| !access.write && access.offset == 0x844) {
        access.value = 0;
    }
    mask_addresses(&mut accesses);
    accesses
}

fn assert_same(phase: u32, ours: &[Access], expected: &[Access]) {
    for (i, (ours, expected)) in ours.iter().zip(expected).enumerate() {
        assert_eq!(ours, expected, "phase {phase}, access {i}");
    }
    assert_eq!(ours.len(), expected.len(), "phase {phase}: number of accesses");
}

#[test]
fn probe_up_down_and_remove_follow_the_recording() {
    let Some(trace) = trace() else { return };
    let expected = |phase| deliberate(phase, recorded(&trace, phase));
    let mock = Mock::new(10);
    mock.log_doorbells(true);

    let mut driver = Driver::<Mock>::bring_up(Arc::clone(&mock), config()).expect("bring-up");
    assert_same(1, &ours(&mock), &expected(1));
    driver.up().expect("up");
    assert_same(2, &ours(&mock), &expected(2));
    driver.down().expect("down");
    assert_same(8, &ours(&mock), &expected(8));
    driver.remove().expect("remove");
    assert_same(9, &ours(&mock), &expected(9));
    mock.assert_clean();
}
