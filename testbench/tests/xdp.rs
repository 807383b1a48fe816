//! `onic xdp`: objects and captured frames, as a user has them. What the programs do is read off their sources.

mod common;

use std::path::Path;

use common::{Folder, capture, schema};
use traces::read::{Event, Frame, Policy, Reader, Verdict};

fn object(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../xdp-vm/programs").join(name).display().to_string()
}

/// A frame of 60 bytes for `steer.c`, which looks at the first two.
fn steered(way: u8, to: u8) -> Vec<u8> {
    let mut frame = vec![0xee; 60];
    frame[..2].copy_from_slice(&[way, to]);
    frame
}

/// Interface, verdict and bytes of each frame.
fn frames(folder: &Folder, name: &str) -> Vec<(usize, Option<Verdict>, Vec<u8>)> {
    let mut reader = Reader::open(&folder.path(name), Policy::default()).expect("a capture");
    let mut frame = Frame::default();
    std::iter::from_fn(|| match reader.read(&mut frame).expect("whole") {
        Event::End => None,
        _ => Some((frame.interface as usize, frame.meta.verdict.clone(), frame.data.clone())),
    })
    .collect()
}

#[test]
fn list_names_maps_and_helpers() {
    let folder = Folder::new();
    let out = folder.onic(&["xdp", "list", &object("steer.o")]).code(0).out();
    assert!(out.contains("steer") && out.contains("redirect_map") && out.contains("sockets"), "{out}");
}

#[test]
fn list_says_all_that_keeps_a_program_from_loading() {
    let folder = Folder::new();
    let out = folder.onic(&["xdp", "list", &object("rejects.o")]).code(0).out();
    for what in ["type 30 BPF_MAP_TYPE_BLOOM_FILTER", "--map-size unsized=N", "helper 99 bpf_skc_lookup_tcp", "kfunc"] {
        assert!(out.contains(what), "no `{what}` in\n{out}");
    }
}

#[test]
fn helpers_are_those_that_load() {
    let folder = Folder::new();
    let json = folder.onic(&["xdp", "helpers", "--json"]).code(0).json();
    assert!(json["helpers"].as_array().expect("a list").iter().any(|helper| helper["name"] == "redirect_map"));
    assert!(json["map_types"].as_array().expect("a list").iter().any(|name| name == "LPM_TRIE"));
}

#[test]
fn verdicts_and_targets_are_counted() {
    let folder = Folder::new();
    let input = [steered(0, 17), steered(1, 2), steered(1, 3), steered(3, 1), steered(4, 0), steered(7, 9)];
    let name = folder.file("in.pcapng", &capture(&input));
    let args = ["xdp", "run", &object("steer.o"), &name, "--json", "--cpus", "2"];
    let maps = ["--map", "devices[2]=5", "--map", "cpus[1]=192", "--map", "sockets[0]=7"];
    let json = folder.onic(&[&args[..], &maps].concat()).code(0).json();
    let frames = |verdict: &str| json["verdicts"][verdict]["frames"].as_u64();
    assert_eq!((frames("REDIRECT"), frames("DROP"), frames("PASS")), (Some(4), Some(1), Some(1)));
    assert_eq!(
        json["targets"],
        serde_json::json!({ "interface 17": 1, "devices[2]: interface 5": 1, "cpus[1]: CPU 1": 1,
                            "sockets[0]: socket 7": 1 })
    );
    assert_eq!(json["trace"], serde_json::json!(["60 bytes, 9, text"]));
    schema::check(&folder.onic(&["schema", "xdp"]).code(0).json(), &json).expect("as its schema says");
}

#[test]
fn the_capture_has_each_frame_as_it_left_and_its_verdict() {
    let folder = Folder::new();
    // macswap.c: addresses change places, and back it goes.
    let frame: Vec<u8> = (0..64).collect();
    let name = folder.file("in.pcapng", &capture(std::slice::from_ref(&frame)));
    folder.onic(&["xdp", "run", &object("macswap.o"), &name, "-o", "out.pcapng", "--before"]).code(0);
    let swapped = [&frame[6..12], &frame[..6], &frame[12..]].concat();
    assert_eq!(frames(&folder, "out.pcapng"), [(0, None, frame), (1, Some(Verdict::Xdp(3)), swapped)]);
}

#[test]
fn maps_are_dumped_with_what_the_program_left_in_them() {
    let folder = Folder::new();
    let name = folder.file("in.pcapng", &capture(&[steered(5, 0)]));
    folder.onic(&["xdp", "run", &object("steer.o"), &name, "--dump-maps", "maps.json"]).code(0);
    let maps: serde_json::Value = serde_json::from_str(&folder.text("maps.json")).expect("JSON");
    // u64 time, the capture's, then u32 length and CPU.
    let time = 1_700_000_000_000_000_000_u64.to_le_bytes().map(|byte| format!("{byte:02x}")).concat();
    assert_eq!(maps["events"]["records"], serde_json::json!([format!("{time}3c00000000000000")]));
}

#[test]
fn a_fault_names_its_source_line() {
    let folder = Folder::new();
    let name = folder.file("in.pcapng", &capture(&[steered(0, 0)]));
    let program = format!("{}:walk", object("rejects.o"));
    folder.onic(&["xdp", "run", &program, &name]).code(1).says("rejects.c:58").says("packet+62 (len 60)");
}

#[test]
fn a_redirect_without_a_target_is_a_fault() {
    let folder = Folder::new();
    let name = folder.file("in.pcapng", &capture(&[steered(9, 0)]));
    folder.onic(&["xdp", "run", &object("steer.o"), &name]).code(1).says("no action or has no target");
}

#[test]
fn a_frame_that_takes_two_buffers_is_skipped_aloud() {
    let folder = Folder::new();
    let name = folder.file("in.pcapng", &capture(&[vec![8; 3520], vec![8; 3521]]));
    let ran = folder.onic(&["xdp", "run", &object("pass.o"), &name, "--json"]).code(2);
    assert_eq!((ran.json()["frames"].as_u64(), ran.json()["skipped"].as_u64()), (Some(1), Some(1)));
    ran.says("packet 2: 3521 bytes: a program sees frames of up to 3520");
}

#[test]
fn what_can_t_be_asked_is_refused_with_the_reason() {
    let folder = Folder::new();
    let name = folder.file("in.pcapng", &capture(&[steered(0, 0)]));
    let run = |object: &str, more: &[&str], says: &str| {
        folder.onic(&[&["xdp", "run", object, &name], more].concat()).code(2).says(says);
    };
    run(&object("vlan.o"), &[], "choose one of the programs push, pop");
    run(&object("steer.o"), &["--map", "nothing[0]=1"], "there is no map nothing; the program uses devices");
    run(&object("steer.o"), &["--map", "devices[x]=1"], "`x` is no key of 4 bytes");
    run(&object("steer.o"), &["--map", "devices[99]=1"], "map devices refuses [99]");
    run(&object("steer.o"), &["--map-size", "devices"], "is not NAME=N");
    run(&object("steer.o"), &["--queue", "3"], "--cpus 4");
    run(&object("steer.c"), &[], "not an EM_BPF object");
    run("nowhere.o", &[], "nowhere.o");
}

#[test]
fn an_output_takes_the_place_of_no_input() {
    let folder = Folder::new();
    let bytes = capture(&[steered(0, 0)]);
    let name = folder.file("in.pcapng", &bytes);
    for output in ["--out", "--dump-maps"] {
        folder.onic(&["xdp", "run", &object("pass.o"), &name, output, "./in.pcapng"]).code(2).says("would be lost");
    }
    assert_eq!(folder.read("in.pcapng"), bytes);
    folder.onic(&["xdp", "run", &object("pass.o"), "missing.pcap", "--out", "out.pcapng"]).code(2).says("missing.pcap");
    assert!(!folder.path("out.pcapng").exists());
}

#[test]
fn nothing_to_run_is_no_success() {
    let folder = Folder::new();
    let name = folder.file("in.pcapng", &capture(&[]));
    folder.onic(&["xdp", "run", &object("pass.o"), &name]).code(4);
}
