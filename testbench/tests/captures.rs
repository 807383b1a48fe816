//! Captures from the field, and odd ones made of them, go through `onic replay` as `captures/open/INDEX.md` and the CAP cases
//! ask: the right code, the right words, no panic, no endless loop (each run has a time limit).

mod common;

use common::{Folder, Ran, shared};

/// File, code, what stderr says, frames that came out.
const INDEX: [(&str, i32, &str, u64); 28] = [
    ("qa_be_ns.pcap", 0, "", 2),
    ("qa_cut_mid_packet.pcap", 2, "at byte 320, after 1 whole packet: the file is cut", 1),
    ("qa_two_if.pcapng", 2, "1 of 3 packets skipped, link type RAW (101)", 2),
    ("sv_backwards_cut.pcap", 2, "at byte 6656, after 19 whole packets: the file is cut", 19),
    ("sv_frag-eth-vlan-ipv6-tcp.pcap", 0, "", 3),
    ("sv_igmpv3_ipopts.pcap", 0, "shorter than 60 bytes, padded", 6),
    ("sv_ipv4frags.pcap", 0, "", 3),
    ("sv_sll2.pcap", 2, "5 of 5 packets skipped, link type LINUX_SLL2 (276)", 0),
    ("sv_vlan_and_qinq.pcap", 0, "", 2),
    ("td_LINKTYPE_RAW_ipv4.pcap", 2, "1 of 1 packets skipped, link type RAW (101)", 0),
    ("td_dhcp-option-108.pcapng", 0, "", 2),
    ("td_dns_udp.pcap", 0, "", 2),
    ("td_empty.pcap", 4, "nothing is compared", 0),
    ("td_gso-ipv4.pcap", 2, "over-size: ", 0),
    ("td_ipv4_invalid_hdr_length.pcap", 0, "", 1),
    ("td_ipv6-routing-header.pcap", 0, "", 4),
    ("td_ipv6_jumbogram_1.pcap", 2, "65590 bytes, the card takes 1514, and none takes it", 0),
    ("td_isup.pcap", 0, "", 6),
    ("td_pppoe.pcap", 0, "shorter than 60 bytes, padded", 1),
    ("td_stp-heapoverflow-1.pcap", 2, "19 of 262144 bytes were captured", 0),
    ("td_tcp-handshake-nano.pcap", 2, "3 of 3 packets skipped, link type LINUX_SLL (113)", 0),
    ("td_time_2107.pcapng", 0, "", 1),
    ("td_timestamp_invalid_micro.pcap", 2, "link type LINUX_SLL (113)", 0),
    ("td_various_gre.pcap", 0, "", 100),
    ("td_vxlan.pcap", 0, "", 10),
    ("tr_test.pcap", 0, "", 179),
    ("tr_test_fragroute.pcap", 0, "", 20),
    ("tr_test_replay_exclude_be.pcap", 0, "", 10),
];

fn replay(folder: &Folder, file: &str, more: &[&str]) -> Ran {
    let mut args = vec!["replay", file, "--card", "model", "--json"];
    args.extend(more);
    folder.onic(&args)
}

fn delivered(json: &serde_json::Value) -> u64 {
    json["runs"][0]["cards"][0]["counters"]["host_out"].as_u64().expect("a number")
}

fn open(name: &str) -> Option<String> {
    Some(shared(&format!("captures/open/{name}"))?.display().to_string())
}

#[test]
fn every_capture_as_its_index_says() {
    let folder = Folder::new();
    for (name, code, says, out) in INDEX {
        let Some(path) = open(name) else { return };
        let ran = replay(&folder, &path, &[]).code(code).says(says);
        assert_eq!(delivered(&ran.json()), out, "{name}: {}", ran.stderr);
    }
}

#[test]
fn counted_skips_may_be_allowed_but_not_cut_files() {
    let folder = Folder::new();
    let Some(path) = open("qa_two_if.pcapng") else { return };
    replay(&folder, &path, &["--allow-skips"]).code(0).says("1 of 3 packets skipped");
    let path = open("sv_sll2.pcap").expect("beside the other");
    replay(&folder, &path, &["--allow-skips"]).code(4);
    let path = open("qa_cut_mid_packet.pcap").expect("beside the other");
    replay(&folder, &path, &["--allow-skips"]).code(2);
}

#[test]
fn a_long_frame_passes_where_the_shape_has_room_for_it() {
    let folder = Folder::new();
    let Some(path) = open("td_gso-ipv4.pcap") else { return };
    let ran = replay(&folder, &path, &["--shape", "1x1,max-pkt=9600"]).code(0);
    assert_eq!(delivered(&ran.json()), 1);
}

#[test]
fn runts_kept_are_dropped_by_the_mac_and_counted() {
    let folder = Folder::new();
    let Some(path) = open("td_pppoe.pcap") else { return };
    let json = replay(&folder, &path, &["--runts", "keep"]).code(0).says("kept as runts").json();
    assert_eq!(delivered(&json), 0);
    assert_eq!(json["runs"][0]["cards"][0]["counters"]["drops"]["port0.error"], 1);
}

/// CAP-02 and CAP-04: snap length patched, the file cut at every byte of its first packets.
#[test]
fn patched_and_cut_files_end() {
    let Some(path) = shared("captures/open/td_dns_udp.pcap") else { return };
    let folder = Folder::new();
    let good = std::fs::read(path).expect("the capture");
    for snap_len in [0u32, 64] {
        let mut patched = good.clone();
        patched[16..20].copy_from_slice(&snap_len.to_le_bytes());
        let file = folder.file("patched.pcap", &patched);
        assert_eq!(delivered(&replay(&folder, &file, &[]).code(0).json()), 2);
    }
    for len in (0..140).step_by(9) {
        let file = folder.file("cut.pcap", &good[..len]);
        let code = if len == 24 { 4 } else { 2 };
        folder.onic(&["replay", &file, "--card", "model"]).code(code);
    }
    // A length field that claims 4 GiB allocates nothing and ends.
    let mut huge = good;
    huge[32..36].fill(0xff);
    let file = folder.file("huge.pcap", &huge);
    replay(&folder, &file, &[]).code(2);
}

#[test]
fn standard_input_is_read() {
    let folder = Folder::new();
    let bytes = common::capture(&common::udp(9));
    let ran = folder.onic_with(&["replay", "-", "--card", "model", "--json"], &bytes).code(0);
    assert_eq!(delivered(&ran.json()), 9);
    folder.onic_with(&["replay", "-", "--card", "model"], b"no capture").code(2).says("not a pcap or pcapng file");
    folder.onic_with(&["replay", "-", "--card", "model"], b"").code(2).says("the file is empty");
}
