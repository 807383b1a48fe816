//! What we write is read back by ourselves and by Wireshark's tools, byte for byte the same on every run.

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use common::read_all;
use traces::Point;
use traces::read::{Direction, Policy, Verdict};
use traces::synth::{Rng, mix};
use traces::write::{CommentFields, Packet, Pcap, PcapNg, Resolution, errors};

/// Five frames that between them use every field.
fn capture() -> Vec<u8> {
    let mut out = PcapNg::new(Vec::new(), &Point::of_card(2, 2)).unwrap();
    let data = mix::everything(5, 200, &mut Rng::new(5));
    let time = 1_632_111_693_905_739_620;
    let packet =
        |at: usize, point| Packet { packet_id: Some(at as u64), ..Packet::new(point, time + at as u64, &data[at]) };
    let comment = CommentFields { hash: Some(0x8a4_cc88), func: Some(1), cycle: Some(90_412), drop: None };
    let inbound = Some(Direction::Inbound);
    out.write(&Packet { direction: inbound, ..packet(0, Point::Port(0)) }).unwrap();
    out.write(&Packet {
        direction: inbound,
        queue: Some(6),
        xdp: Some(2),
        toeplitz: Some(0x51cc_c178),
        comment,
        ..packet(1, Point::Function(1))
    })
    .unwrap();
    let dropped = CommentFields { drop: Some("rx_error"), ..CommentFields::default() };
    for at in [2, 3] {
        out.write(&Packet {
            direction: inbound,
            errors: errors::CRC,
            comment: dropped,
            ..packet(at, Point::PortDropped(0))
        })
        .unwrap();
    }
    out.write(&Packet { direction: Some(Direction::Outbound), ..packet(4, Point::Port(0)) }).unwrap();
    out.finish().unwrap()
}

#[test]
fn read_back() {
    let read = read_all(capture(), Policy::default());
    let frames = mix::everything(5, 200, &mut Rng::new(5));
    assert!(read.error.is_none() && read.refused.is_empty());
    assert_eq!(read.frames.iter().map(|frame| frame.data.clone()).collect::<Vec<_>>(), frames);
    let second = &read.frames[1];
    assert_eq!(second.time_ns, Some(1_632_111_693_905_739_621));
    assert_eq!(
        (second.meta.packet_id, second.meta.queue, second.meta.verdict.clone()),
        (Some(1), Some(6), Some(Verdict::Xdp(2)))
    );
    assert_eq!(second.meta.hash.as_ref().map(|hash| hash.value.clone()), Some(vec![0x51, 0xcc, 0xc1, 0x78]));
    assert_eq!(CommentFields::parse(second.meta.comment.as_deref().unwrap()).cycle, Some(90_412));
    assert!(read.frames[2].err && read.frames[3].err && !read.frames[4].err);
    assert_eq!(read.frames[4].meta.drop_count, Some(2), "both drops are told by the port's next frame");
    assert_eq!(read.frames[4].meta.direction(), Some(Direction::Outbound));
}

#[test]
fn the_same_bytes_every_time() {
    assert_eq!(capture(), capture());
    assert_eq!(
        traces::digest(&capture()).to_string(),
        "455922f34c8280cb",
        "the format of captures has changed: say so in the change log"
    );
}

#[test]
fn pcap_in_both_resolutions() {
    for (resolution, kept) in
        [(Resolution::Nanoseconds, 1_632_111_693_905_739_620), (Resolution::Microseconds, 1_632_111_693_905_739_000)]
    {
        let mut out = Pcap::new(Vec::new(), resolution).unwrap();
        out.write(1_632_111_693_905_739_620, &[3; 61]).unwrap();
        assert!(out.write(5_000_000_000_000_000_000, &[]).is_err(), "past 2106");
        let read = read_all(out.finish().unwrap(), Policy::default());
        assert_eq!((read.frames.len(), read.frames[0].time_ns, read.frames[0].data.len()), (1, Some(kept), 61));
    }
}

/// A file for a tool, gone when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("onic-traces-{}-{name}", std::process::id()));
        fs::write(&path, bytes).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A tool's lines on standard output and whether it complained; `None`, said aloud, if it isn't installed.
fn run(tool: &str, arguments: &[&str], file: &Scratch) -> Option<Vec<String>> {
    let output = match Command::new(tool).args(arguments).arg(&file.0).output() {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: {tool}: {error}");
            return None;
        }
    };
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool}: {complaint}");
    Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

#[test]
fn capinfos_finds_no_fault() {
    let file = Scratch::new("capinfos.pcapng", &capture());
    let Some(lines) = run("capinfos", &["-M", "-c", "-t", "-E"], &file) else { return };
    let text = lines.join("\n");
    assert!(text.contains("pcapng") && text.contains("Number of packets:   5"), "{text}");
}

/// Every field of DESIGN section 7 as a filter: it lets through the frames that it should.
#[test]
fn tshark_filters_by_each_field() {
    let file = Scratch::new("tshark.pcapng", &capture());
    let cases = [
        ("frame.interface_name == \"port0\"", "1 5"),
        ("frame.interface_name == \"fn1\"", "2"),
        ("frame.interface_name == \"port0.dropped\"", "3 4"),
        ("frame.packet_flags_direction == 1", "1 2 3 4"),
        ("frame.packet_flags_direction == 2", "5"),
        ("frame.packet_flags_crc_error == 1", "3 4"),
        ("frame.packet_id == 3", "4"),
        ("frame.interface_queue == 6", "2"),
        ("frame.verdict.ebpf_xdp == 2", "2"),
        ("frame.drop_count == 2", "5"),
        ("frame.comment contains \"hash=08a4cc88\"", "2"),
        ("frame.comment contains \"fn=1\"", "2"),
        ("frame.comment contains \"cycle=90412\"", "2"),
        ("frame.comment contains \"drop=rx_error\"", "3 4"),
        ("frame.time_epoch == 1632111693.905739620", "1"),
    ];
    for (filter, numbers) in cases {
        let Some(lines) = run("tshark", &["-Y", filter, "-T", "fields", "-e", "frame.number", "-r"], &file) else {
            return;
        };
        assert_eq!(lines.join(" "), numbers, "{filter}");
    }
}

/// tshark 4.0 has no filter for epb_hash, but its pcapng dissector shows the option.
#[test]
fn tshark_reads_pcap_too() {
    let mut out = Pcap::new(Vec::new(), Resolution::Nanoseconds).unwrap();
    out.write(1_632_111_693_905_739_620, &[3; 61]).unwrap();
    let file = Scratch::new("nano.pcap", &out.finish().unwrap());
    let Some(lines) = run("tshark", &["-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len", "-r"], &file) else {
        return;
    };
    assert_eq!(lines, ["1632111693.905739620\t61"]);
}
