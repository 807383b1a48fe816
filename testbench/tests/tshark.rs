//! Our captures in other people's tools: tshark reads and filters by each field, capinfos finds no error.

mod common;

use std::process::Command;

use common::{Folder, case};

/// Whether Wireshark's tools are here; says so if not.
fn there(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        println!("skipped: {tool} is not installed");
    }
    found
}

/// Frames that a display filter leaves.
fn count(folder: &Folder, file: &str, filter: &str) -> usize {
    let output = Command::new("tshark")
        .args(["-n", "-r", file, "-Y", filter, "-T", "fields", "-e", "frame.number"])
        .current_dir(folder.path("."))
        .output();
    let output = output.expect("tshark");
    assert!(output.status.success(), "{filter}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout.iter().filter(|&&byte| byte == b'\n').count()
}

fn total(json: &serde_json::Value, pointer: &str) -> usize {
    json.pointer(&format!("/runs/0/cards/0/{pointer}")).and_then(serde_json::Value::as_u64).unwrap_or(0) as usize
}

#[test]
fn each_field_filters() {
    if !there("tshark") {
        return;
    }
    let folder = Folder::new();
    let json =
        folder.onic(&["replay", &case("errors"), "--card", "model", "--out", "x.pcapng", "--json"]).code(0).json();
    let (out, errors) = (total(&json, "counters/host_out"), total(&json, "counters/drops/port0.error"));
    assert!(out > 0 && errors > 0, "{json:#}");
    let of = |filter: &str| count(&folder, "x.pcapng", filter);
    assert_eq!(of("frame.interface_name == \"fn0\""), out);
    assert_eq!(of("frame.interface_name == \"port0.dropped\""), errors);
    assert_eq!(of("frame.packet_flags_direction == 1"), out + errors);
    assert_eq!(of("frame.packet_flags_crc_error == 1"), errors);
    assert_eq!(of("frame.comment contains \"drop=error\""), errors);
    assert_eq!(of("frame.comment matches \"hash=[0-9a-f]{8} fn=0 cycle=[0-9]+\""), out);
    assert_eq!(of("frame.packet_id == 0"), 1);
    let queues = json["runs"][0]["cards"][0]["queues"].as_array().expect("queues").clone();
    assert!(queues.len() > 1);
    for queue in queues {
        let number = queue["queue"].as_u64().expect("a number");
        // tshark shows epb_queue of fn0's frames only: others have none.
        assert_eq!(of(&format!("frame.interface_queue == {number}")) as u64, queue["packets"].as_u64().unwrap());
    }
    // First input time (1700000000 s) plus simulated time, to the nanosecond.
    assert_eq!(of("frame.time_epoch >= 1700000000 && frame.time_epoch < 1700000001"), out + errors);
}

#[test]
fn the_tools_find_no_error_in_any_case() {
    if !there("tshark") || !there("capinfos") {
        return;
    }
    let folder = Folder::new();
    for name in ["errors", "jumbo", "runts", "two-ports", "vlan"] {
        let json =
            folder.onic(&["replay", &case(name), "--card", "model", "--out", "x.pcapng", "--json"]).code(0).json();
        let drops = json["runs"][0]["cards"][0]["monitors"]["drops"].as_object().expect("drops");
        let frames = total(&json, "counters/host_out") as u64
            + drops.values().filter_map(serde_json::Value::as_u64).sum::<u64>();
        let output = Command::new("capinfos")
            .args(["-M", "-c", "-I", "x.pcapng"])
            .current_dir(folder.path("."))
            .output()
            .expect("capinfos");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(text.contains(&format!("Number of packets:   {frames}")), "{name}, {frames} frames: {text}");
        assert!(text.contains("Name = port0.dropped") && text.contains("Time resolution = 0x09"), "{name}: {text}");
    }
}
