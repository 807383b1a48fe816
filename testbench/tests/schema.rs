//! What `--json` prints is what `onic schema` says, in each form that a command has.

mod common;

use common::{Folder, capture, case, schema, udp};

fn described(folder: &Folder, command: &str) -> serde_json::Value {
    folder.onic(&["schema", command]).code(0).json()
}

#[track_caller]
fn holds(schema: &serde_json::Value, json: &serde_json::Value) {
    schema::check(schema, json).unwrap_or_else(|why| panic!("{why}\n{json:#}"));
}

#[test]
fn replay() {
    let folder = Folder::new();
    let schema = described(&folder, "replay");
    for case_name in ["rss-mix", "errors", "runts", "two-ports"] {
        holds(&schema, &folder.onic(&["replay", &case(case_name), "--card", "model", "--json"]).code(0).json());
    }
    let whole = capture(&udp(4));
    let cut = folder.file("cut.pcapng", &whole[..whole.len() - 9]);
    let json = folder.onic(&["replay", &cut, "--card", "model", "--against", "none", "--json"]).code(2).json();
    holds(&schema, &json);
    assert_eq!((json["exit"].as_u64(), json["input"]["damage"].as_array().map(Vec::len)), (Some(2), Some(1)));
}

#[test]
fn golden() {
    let folder = Folder::new();
    let schema = described(&folder, "golden");
    let unreadable = folder.golden("measured-2");
    folder.file("measured-2/input.pcap", b"x");
    let json =
        folder.onic(&["golden", "check", &case("measured-3"), &unreadable, "--card", "model", "--json"]).code(2).json();
    holds(&schema, &json);
    assert_eq!((json["passed"].as_u64(), json["failed"].as_u64()), (Some(1), Some(1)));
    assert!(json["cases"][1]["error"].as_str().is_some_and(|error| error.contains("input.pcap")), "{json:#}");
}

#[test]
fn hash() {
    let folder = Folder::new();
    let schema = described(&folder, "hash");
    for args in [
        &["hash", "192.0.2.1:1000", "198.51.100.1:9", "udp", "--json"][..],
        &["hash", "192.0.2.1:1000", "198.51.100.1:9", "udp", "--queues", "8", "--json"],
        &["hash", "key", "--json"],
    ] {
        holds(&schema, &folder.onic(args).code(0).json());
    }
    if let Some(csv) = common::shared("vectors/opennic_rss.csv") {
        holds(&schema, &folder.onic(&["hash", "check", &csv.display().to_string(), "--json"]).code(0).json());
    }
}

#[test]
fn gen_regs_info_and_gallery() {
    let folder = Folder::new();
    for args in [
        &["gen", "udp", "--card", "model", "--count", "5", "--json"][..],
        &["regs", "--json"],
        &["regs", "QCONF", "--card", "model", "--json"],
        &["regs", "--walk", "--card", "model", "--json"],
        &["info", "--json"],
        &["gallery", "B-11", "B-20", "B-43", "--seeds", "1", "--json"],
    ] {
        holds(&described(&folder, args[0]), &folder.onic(args).code(0).json());
    }
}

/// The validator itself: what is left out, added, or of another kind is found.
#[test]
fn the_alarm() {
    let folder = Folder::new();
    let schema = described(&folder, "replay");
    let good = folder.onic(&["replay", &case("queues-1"), "--card", "model", "--json"]).code(0).json();
    holds(&schema, &good);
    let broken = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut json = good.clone();
        change(&mut json);
        schema::check(&schema, &json).expect_err("the change is found")
    };
    assert!(broken(&|json| json["version"] = 2.into()).contains("$.version"));
    assert!(broken(&|json| json["runs"][0]["seed"] = "1".into()).contains("$.runs[0].seed"));
    assert!(broken(&|json| json["runs"][0]["cards"][0]["wall_clock"] = 1.into()).contains("wall_clock"));
    assert!(broken(&|json| drop(json["input"].as_object_mut().unwrap().remove("damage"))).contains("no damage"));
    assert!(broken(&|json| json["runs"][0]["cards"][1]["counters"]["drops"]["x"] = (-1).into()).contains("drops.x"));
}
