//! Every capture in the developers' set is handled as its index says, and so are the odd files of the CAP cases.

mod common;

use std::io::Write;

use common::{Read, captures, pcap_one, read_all, shared};
use traces::read::{Fault, LinkType, Note, Policy, Reader, Refusal};

fn read_shared(name: &str, policy: Policy) -> Option<Read> {
    Some(read_all(std::fs::read(shared(&format!("captures/open/{name}"))?).unwrap(), policy))
}

/// (file, frames, refused, cut). Counts are `capinfos -M`'s, less the packets that are no whole Ethernet frame.
const INDEX: [(&str, usize, usize, bool); 28] = [
    ("qa_be_ns.pcap", 2, 0, false),
    ("qa_cut_mid_packet.pcap", 1, 0, true),
    ("qa_two_if.pcapng", 2, 1, false),
    ("sv_backwards_cut.pcap", 19, 0, true),
    ("sv_frag-eth-vlan-ipv6-tcp.pcap", 3, 0, false),
    ("sv_igmpv3_ipopts.pcap", 6, 0, false),
    ("sv_ipv4frags.pcap", 3, 0, false),
    ("sv_sll2.pcap", 0, 5, false),
    ("sv_vlan_and_qinq.pcap", 2, 0, false),
    ("td_LINKTYPE_RAW_ipv4.pcap", 0, 1, false),
    ("td_dhcp-option-108.pcapng", 2, 0, false),
    ("td_dns_udp.pcap", 2, 0, false),
    ("td_empty.pcap", 0, 0, false),
    ("td_gso-ipv4.pcap", 1, 0, false),
    ("td_ipv4_invalid_hdr_length.pcap", 1, 0, false),
    ("td_ipv6-routing-header.pcap", 4, 0, false),
    ("td_ipv6_jumbogram_1.pcap", 1, 0, false),
    ("td_isup.pcap", 6, 0, false),
    ("td_pppoe.pcap", 1, 0, false),
    ("td_stp-heapoverflow-1.pcap", 0, 14, false),
    ("td_tcp-handshake-nano.pcap", 0, 3, false),
    ("td_time_2107.pcapng", 1, 0, false),
    ("td_timestamp_invalid_micro.pcap", 0, 3, false),
    ("td_various_gre.pcap", 100, 0, false),
    ("td_vxlan.pcap", 10, 0, false),
    ("tr_test.pcap", 179, 0, false),
    ("tr_test_fragroute.pcap", 20, 0, false),
    ("tr_test_replay_exclude_be.pcap", 10, 0, false),
];

#[test]
fn every_capture_as_its_index_says() {
    let Some(files) = captures() else { return };
    let names: Vec<String> =
        files.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names, INDEX.map(|row| row.0), "the list is of the set as it is");
    for (name, frames, refused, cut) in INDEX {
        let read = read_shared(name, Policy::default()).unwrap();
        let is_cut = read.error.as_ref().is_some_and(|error| error.is_cut());
        assert_eq!((read.frames.len(), read.refused.len(), is_cut), (frames, refused, cut), "{name}: {read:?}");
        assert_eq!(read.error.is_some(), cut, "{name}");
    }
}

#[test]
fn a_cut_file_says_where_after_its_whole_packets() {
    let Some(read) = read_shared("qa_cut_mid_packet.pcap", Policy::default()) else { return };
    let error = read.error.unwrap().to_string();
    assert!(error.starts_with("test: at byte 320, after 1 whole packet: the file is cut: the packet at byte 138 needs 282 bytes and 182 are there"), "{error}");
    let read = read_shared("sv_backwards_cut.pcap", Policy::default()).unwrap();
    assert_eq!((read.error.as_ref().unwrap().offset, read.error.as_ref().unwrap().packets), (6_656, 19));
}

#[test]
fn other_link_types_are_refused_by_name_and_number() {
    for (name, what) in [
        ("td_LINKTYPE_RAW_ipv4.pcap", "link type RAW (101)"),
        ("td_tcp-handshake-nano.pcap", "link type LINUX_SLL (113)"),
        ("td_timestamp_invalid_micro.pcap", "link type LINUX_SLL (113)"),
        ("sv_sll2.pcap", "link type LINUX_SLL2 (276)"),
    ] {
        let Some(read) = read_shared(name, Policy::default()) else { return };
        assert_eq!(read.tally.refused.keys().collect::<Vec<_>>(), [what], "{name}");
        assert!(read.refused[0].to_string().starts_with("packet 1 at byte 24: "), "{}", read.refused[0]);
        let any = read_shared(name, Policy { any_link_type: true, ..Policy::default() }).unwrap();
        assert_eq!(any.frames.len(), read.refused.len(), "{name}: delivered when told to");
    }
}

#[test]
fn each_packet_has_the_link_type_and_clock_of_its_interface() {
    let Some(read) = read_shared("qa_two_if.pcapng", Policy::lenient()) else { return };
    let times: Vec<_> = read.frames.iter().map(|frame| frame.time_ns.unwrap() - 1_700_000_000_000_000_000).collect();
    assert_eq!(times, [1_000, 2, 3_000]);
    let read = read_shared("qa_two_if.pcapng", Policy::default()).unwrap();
    assert_eq!(read.refused[0].why, Refusal::LinkType(LinkType::RAW));
    assert_eq!(read.refused[0].index, 1);
}

#[test]
fn times_are_exact() {
    let Some(read) = read_shared("qa_be_ns.pcap", Policy::default()) else { return };
    let sub_second: Vec<_> = read.frames.iter().map(|frame| frame.time_ns.unwrap() % 1_000_000_000).collect();
    assert_eq!(sub_second, [123_456_789, 123_456_790]);
    let read = read_shared("td_time_2107.pcapng", Policy::default()).unwrap();
    assert!(read.frames[0].time_ns.unwrap() > u64::from(u32::MAX) * 1_000_000_000, "past 32 bits of seconds");
    // Case CAP-13: record bytes 37 42 c2 60 a9 38 15 07 of a nanosecond file.
    let mut file = pcap_one(65_535, 1, 60, 60, &[0; 60]);
    file[24..32].copy_from_slice(&[0x37, 0x42, 0xc2, 0x60, 0xa9, 0x38, 0x15, 0x07]);
    assert_eq!(read_all(file, Policy::default()).frames[0].time_ns, Some(1_623_343_671_118_831_273));
}

#[test]
fn an_impossible_time_is_no_time() {
    let Some(read) = read_shared("td_timestamp_invalid_micro.pcap", Policy::lenient()) else { return };
    assert_eq!(read.frames.len(), 3, "the packets are good");
    let bad = read.frames.iter().filter(|frame| frame.time_ns.is_none()).count() as u64;
    assert!(bad > 0);
    assert_eq!(read.tally.notes.get(&Note::BadTime), Some(&bad));
}

#[test]
fn long_frames_are_frames() {
    for (name, len) in [("td_gso-ipv4.pcap", 7_306), ("td_ipv6_jumbogram_1.pcap", 65_590)] {
        let Some(read) = read_shared(name, Policy::default()) else { return };
        assert_eq!(read.frames[0].data.len(), len);
    }
}

#[test]
fn truncated_packets_do_not_pass_for_whole() {
    let Some(read) = read_shared("td_stp-heapoverflow-1.pcap", Policy::default()) else { return };
    assert!(
        read.refused
            .iter()
            .all(|refused| matches!(refused.why, Refusal::Truncated { captured: 19, original: 262_144 })),
        "{:?}",
        read.refused
    );
    let read = read_shared("td_stp-heapoverflow-1.pcap", Policy { keep_truncated: true, ..Policy::default() }).unwrap();
    assert!(read.frames.iter().all(|frame| frame.data.len() == 19 && frame.original_len_bytes == 262_144));
}

/// Case CAP-02, and a snap length of 0: read, and noted.
#[test]
fn snap_lengths_that_do_not_hold() {
    let Some(path) = shared("captures/open/tr_test.pcap") else { return };
    for (snap_len, note, count) in [(64u32, Note::OverSnapLen, None), (0, Note::SnapLenZero, Some(1))] {
        let mut bytes = std::fs::read(&path).unwrap();
        let at = if bytes[0] == 0xd4 { snap_len.to_le_bytes() } else { snap_len.to_be_bytes() };
        bytes[16..20].copy_from_slice(&at);
        let read = read_all(bytes, Policy::default());
        assert_eq!(read.frames.len(), 179);
        let noted = read.tally.notes[&note];
        assert!(count.is_none_or(|count| count == noted) && noted > 0);
    }
}

#[test]
fn lengths_that_contradict_each_other_are_refused() {
    let one =
        |captured, original, data: &[u8]| read_all(pcap_one(65_535, 1, captured, original, data), Policy::default());
    assert_eq!(one(60, 40, &[0; 60]).refused[0].why, Refusal::CapturedOverOriginal { captured: 60, original: 40 });
    assert_eq!(one(0, 60, &[]).refused[0].why, Refusal::Empty);
    // A damaged length: told as such, then as the cut that it makes.
    let read = one(0xffff_fff0, 60, &[0; 60]);
    assert_eq!(read.refused[0].why, Refusal::OverLimit { captured: 0xffff_fff0, limit: 262_144 });
    assert!(read.error.unwrap().is_cut());
    assert!(one(61, 61, &[0; 60]).error.unwrap().is_cut());
}

#[test]
fn a_declared_fcs_is_checked_and_stripped() {
    const FCS_OF_4: u32 = 0x2400_0001;
    let frame: Vec<u8> = (0..60).collect();
    let mut with_fcs = [&frame[..], &traces::fcs::of(&frame)].concat();
    let read = read_all(pcap_one(65_535, FCS_OF_4, 64, 64, &with_fcs), Policy::default());
    assert_eq!((&read.frames[0].data, read.frames[0].err, read.frames[0].original_len_bytes), (&frame, false, 60));
    with_fcs[10] ^= 1;
    let read = read_all(pcap_one(65_535, FCS_OF_4, 64, 64, &with_fcs), Policy::default());
    assert_eq!((read.frames[0].data.len(), read.frames[0].err), (60, true));
    assert_eq!(read.tally.notes[&Note::BadFcs], 1);
    // A frame cut within its FCS loses what is there of it, unchecked.
    let read = read_all(pcap_one(65_535, FCS_OF_4, 62, 64, &with_fcs[..62]), Policy::lenient());
    assert_eq!((read.frames[0].data.len(), read.frames[0].err), (60, false));
    // Upper bits without the one that declares it mean nothing.
    let read = read_all(pcap_one(65_535, 0x3000_0001, 64, 64, &with_fcs), Policy::default());
    assert_eq!(read.frames[0].data.len(), 64);
    assert_eq!(read_all(pcap_one(65_535, FCS_OF_4, 4, 4, &[0; 4]), Policy::default()).refused[0].why, Refusal::Empty);
}

#[test]
fn gzip_is_transparent_and_a_cut_one_is_cut() {
    let plain = [pcap_one(65_535, 1, 60, 60, &[7; 60])].concat();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gz.write_all(&plain).unwrap();
    let packed = gz.finish().unwrap();
    let read = read_all(packed.clone(), Policy::default());
    assert_eq!((read.frames.len(), read.error.is_none()), (1, true));
    // Whatever is cut off, down to the gzip header: whole packets, then an error.
    for len in 2..packed.len() {
        let read = read_all(packed[..len].to_vec(), Policy::default());
        assert!(read.error.is_some(), "{len} of {} bytes", packed.len());
    }
    let mut damaged = packed;
    damaged[14] ^= 0xff;
    assert!(read_all(damaged, Policy::default()).error.is_some());
}

#[test]
fn other_files_are_told_by_what_they_are() {
    for (bytes, hint) in [
        (&b"snoop\0\0\0"[..], "snoop"),
        (b"\x28\xb5\x2f\xfd....", "zstd -d"),
        (b"\xa1\xb2\xcd\x34....", "editcap"),
        (b"GET / HTTP", "not a pcap or pcapng file"),
        (b"\xd4\xc3", "not a pcap or pcapng file"),
    ] {
        let error = read_all(bytes.to_vec(), Policy::default()).error.unwrap();
        assert!(error.to_string().contains(hint), "{error}");
    }
    assert!(matches!(read_all(Vec::new(), Policy::default()).error.unwrap().fault, Fault::NoBytes));
    let error = Reader::open("no/such/file".as_ref(), Policy::default()).err().unwrap();
    assert!(error.to_string().starts_with("no/such/file: at byte 0, after 0 whole packets: cannot open: "), "{error}");
}

#[test]
fn every_cut_of_a_file_is_noticed_unless_it_is_between_packets() {
    let Some(path) = shared("captures/open/td_dns_udp.pcap") else { return };
    let bytes = std::fs::read(path).unwrap();
    for len in 1..bytes.len() {
        let read = read_all(bytes[..len].to_vec(), Policy::default());
        let between = len == 24 || len == 138;
        assert_eq!(read.error.is_none(), between, "{len}");
        if len >= 4 && !between {
            let error = read.error.unwrap();
            assert!(error.is_cut() && error.offset == len as u64, "{len}: {error}");
        }
    }
}
