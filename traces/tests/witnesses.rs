//! Two published readers beside ours, on every capture of the developers' set and on changed copies of them.
//!
//! Where a witness reads a file, ours must read the same bytes and times. Where it doesn't, the list below says so, and
//! it is the account that `src/read/mod.rs` gives: the test fails when either has grown stale.

mod common;

use std::io::Cursor;
use std::path::Path;

use common::{captures, read_all};
use traces::read::Policy;

/// (time in ns, bytes) of each packet, and how it ended.
#[derive(PartialEq, Eq, Debug)]
struct Account {
    packets: Vec<(Option<u64>, Vec<u8>)>,
    end: End,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Clean,
    /// One error, then nothing more.
    Error,
    /// Errors or refills without end: stopped by the test.
    Loop,
}

/// No file of the set has so many packets.
const MANY: usize = 2_000;

fn ours(bytes: &[u8]) -> Account {
    let read = read_all(bytes.to_vec(), Policy::lenient());
    let end = if read.error.is_some() { End::Error } else { End::Clean };
    Account { packets: read.frames.into_iter().map(|frame| (frame.time_ns, frame.data)).collect(), end }
}

fn pcap_file(bytes: &[u8]) -> Account {
    let mut packets = Vec::new();
    let mut errors = 0;
    if bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) {
        let Ok(mut reader) = pcap_file::pcapng::PcapNgReader::new(Cursor::new(bytes)) else {
            return Account { packets, end: End::Error };
        };
        while errors < MANY {
            use pcap_file::pcapng::Block;
            match reader.next_block() {
                None => break,
                Some(Ok(Block::EnhancedPacket(packet))) => {
                    packets.push((u64::try_from(packet.timestamp.as_nanos()).ok(), packet.data.to_vec()))
                }
                Some(Ok(_)) => {}
                Some(Err(_)) => errors += 1,
            }
        }
    } else {
        let Ok(mut reader) = pcap_file::pcap::PcapReader::new(Cursor::new(bytes)) else {
            return Account { packets, end: End::Error };
        };
        while errors < MANY {
            match reader.next_packet() {
                None => break,
                Some(Ok(packet)) => {
                    packets.push((u64::try_from(packet.timestamp.as_nanos()).ok(), packet.data.to_vec()))
                }
                Some(Err(_)) => errors += 1,
            }
        }
    }
    let end = match errors {
        0 => End::Clean,
        MANY => End::Loop,
        _ => End::Error,
    };
    Account { packets, end }
}

fn pcap_parser(bytes: &[u8]) -> Account {
    use pcap_parser::traits::PcapNGPacketBlock;
    use pcap_parser::{Block, PcapBlockOwned, PcapError};
    let mut packets = Vec::new();
    let mut refills = 0;
    let mut clocks: Vec<(u64, u64)> = Vec::new();
    let mut legacy_tick = 1_000;
    let Ok(mut reader) = pcap_parser::create_reader(65_536, Cursor::new(bytes.to_vec())) else {
        return Account { packets, end: End::Error };
    };
    let end = loop {
        match reader.next() {
            Ok((offset, block)) => {
                match block {
                    PcapBlockOwned::LegacyHeader(header) => {
                        legacy_tick = if header.is_nanosecond_precision() { 1 } else { 1_000 }
                    }
                    PcapBlockOwned::Legacy(packet) => {
                        let time = u64::from(packet.ts_sec) * 1_000_000_000 + u64::from(packet.ts_usec) * legacy_tick;
                        packets.push((Some(time), packet.data.to_vec()));
                    }
                    PcapBlockOwned::NG(Block::SectionHeader(_)) => clocks.clear(),
                    PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                        clocks.push((interface.ts_resolution().unwrap_or(1_000_000), interface.if_tsoffset as u64));
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                        let (resolution, offset) = clocks[packet.if_id as usize];
                        let (seconds, fraction) = packet.decode_ts(offset, resolution);
                        let time =
                            u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * (1_000_000_000 / resolution);
                        packets.push((Some(time), packet.packet_data().to_vec()));
                    }
                    PcapBlockOwned::NG(_) => {}
                }
                reader.consume(offset);
            }
            Err(PcapError::Eof) => break End::Clean,
            Err(PcapError::Incomplete(_)) if refills < MANY => {
                refills += 1;
                if reader.refill().is_err() {
                    break End::Error;
                }
            }
            Err(PcapError::Incomplete(_)) => break End::Loop,
            Err(_) => break End::Error,
        }
    };
    Account { packets, end }
}

/// How a witness differs from ours, in a word or two.
fn verdict(ours: &Account, witness: &Account) -> String {
    let mut words = Vec::new();
    if witness.end != ours.end {
        words.push(format!("{:?} end", witness.end));
    }
    let (a, b) = (ours.packets.len(), witness.packets.len());
    if a != b {
        words.push(format!("{b} of {a} packets"));
    }
    let pairs = || ours.packets.iter().zip(&witness.packets);
    if pairs().any(|(a, b)| a.1 != b.1) {
        words.push("other bytes".to_owned());
    }
    if pairs().any(|(a, b)| a.0 != b.0) {
        words.push("other times".to_owned());
    }
    words.join(", ")
}

fn changed(bytes: &[u8], name: &str) -> Vec<(String, Vec<u8>)> {
    let mut files = vec![(name.to_owned(), bytes.to_vec())];
    if name == "td_dns_udp.pcap" {
        for snap_len in [64u32, 0] {
            let mut copy = bytes.to_vec();
            copy[16..20].copy_from_slice(&snap_len.to_le_bytes());
            files.push((format!("{name}, snap length {snap_len}"), copy));
        }
    }
    if name == "td_dhcp-option-108.pcapng" {
        files.push((format!("{name}, cut"), bytes[..bytes.len() - 30].to_vec()));
    }
    files
}

/// (file, how pcap-file differs, how pcap-parser differs), where either does.
const KNOWN: &[(&str, &str, &str)] = &[
    ("qa_cut_mid_packet.pcap", "Loop end", ""),
    ("qa_two_if.pcapng", "other times", ""),
    ("sv_backwards_cut.pcap", "Loop end", ""),
    ("td_dhcp-option-108.pcapng", "other times", ""),
    ("td_dhcp-option-108.pcapng, cut", "Loop end, other times", ""),
    ("td_dns_udp.pcap, snap length 64", "Loop end, 0 of 2 packets", ""),
    ("td_dns_udp.pcap, snap length 0", "Loop end, 0 of 2 packets", ""),
    ("td_ipv6_jumbogram_1.pcap", "", "Error end, 0 of 1 packets"),
    ("td_stp-heapoverflow-1.pcap", "Loop end, 0 of 14 packets", ""),
    ("td_time_2107.pcapng", "other times", "other times"),
    ("td_timestamp_invalid_micro.pcap", "Loop end, 1 of 3 packets", "other times"),
];

/// The third witness, where it is installed: times and lengths as tshark prints them.
#[test]
fn tshark_agrees_on_times_and_lengths() {
    let Some(paths) = captures() else { return };
    // Those whose times the crates above get wrong, and one of each other kind.
    let chosen = [
        "qa_be_ns.pcap",
        "qa_two_if.pcapng",
        "td_dhcp-option-108.pcapng",
        "td_time_2107.pcapng",
        "td_isup.pcap",
        "td_stp-heapoverflow-1.pcap",
    ];
    for path in paths.iter().filter(|path| chosen.iter().any(|name| path.ends_with(name))) {
        let fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "frame.cap_len", "-r"];
        let output = match std::process::Command::new("tshark").args(fields).arg(path).output() {
            Ok(output) => output,
            Err(error) => {
                println!("skipped: tshark: {error}");
                return;
            }
        };
        let theirs = String::from_utf8(output.stdout).unwrap();
        let mut mine = String::new();
        for (time, data) in ours(&std::fs::read(path).unwrap()).packets {
            let time = time.unwrap();
            mine += &format!("{}.{:09}\t{}\n", time / 1_000_000_000, time % 1_000_000_000, data.len());
        }
        assert_eq!(mine, theirs, "{}", path.display());
    }
}

#[test]
fn witnesses_agree_where_they_can_read() {
    let Some(paths) = captures() else { return };
    let mut found = Vec::new();
    let mut agreed = 0;
    for path in paths {
        let name = Path::new(&path).file_name().unwrap().to_string_lossy().into_owned();
        for (name, bytes) in changed(&std::fs::read(&path).unwrap(), &name) {
            let ours = ours(&bytes);
            let row = (name, verdict(&ours, &pcap_file(&bytes)), verdict(&ours, &pcap_parser(&bytes)));
            agreed += usize::from(row.1.is_empty()) + usize::from(row.2.is_empty());
            if !(row.1.is_empty() && row.2.is_empty()) {
                println!("    {row:?},");
                found.push(row);
            }
        }
    }
    println!("{agreed} readings agree");
    let known: Vec<_> =
        KNOWN.iter().map(|(name, a, b)| ((*name).to_owned(), (*a).to_owned(), (*b).to_owned())).collect();
    assert_eq!(found, known);
    assert!(agreed >= 40, "{agreed}");
}
