//! `onic replay` from the outside: codes, selection, seeds, captures out, the failure folder, and that nothing depends on
//! anything but the command.

mod common;

use common::{Folder, capture, case, schema, udp};

#[test]
fn a_case_replays_and_agrees() {
    let folder = Folder::new();
    let ran = folder.onic(&["replay", &case("rss-mix"), "--card", "model"]).code(0);
    assert!(ran.out().contains("model and model agree on 320 frames"), "{}", ran.out());
    assert!(ran.out().lines().any(|line| line.starts_with("fn0 queue   7")), "{}", ran.out());
}

#[test]
fn usage_errors_are_2() {
    let folder = Folder::new();
    let input = folder.file("in.pcapng", &capture(&udp(3)));
    for (args, says) in [
        (&["replay"][..], "required"),
        (&["replay", "nowhere.pcap", "--card", "model"], "nowhere.pcap"),
        (&["replay", &input, "--card", "gold"], "there is no card `gold`"),
        (&["replay", &input, "--card", "model", "--shape", "9x9"], "functions"),
        (&["replay", &input, "--card", "model", "--seeds", "5"], "wants A..B"),
        (&["replay", &input, "--card", "model", "--seeds", "1..3", "--out", "x"], "of one run"),
        (&["replay", &input, "--card", "model", "--only", "3"], "--only 3"),
        (&["replay", "in.pcapng@1", "--card", "model"], "the card has 1 port"),
        (&["replay", &input, "--card", "model", "--tap", "flip:1"], "card `model` has none"),
        (&["replay", &input, "--card", "model", "--rtl-fault", "7"], "faults 1 to 6"),
        (&["replay", &input, "--card", "model", "--out", "nowhere/x.pcapng"], "there is no folder nowhere"),
        (&["replay", ".", "--card", "model"], "a folder, not a capture"),
        (&["replay", &case("rss-mix"), "--card", "model", "--shape", "2x2"], "has its own --shape"),
        (&["replay", &input, "--card", "model", "--rss-hash", "microsoft"], "hashes as Microsoft published"),
        (&["schema", "nonesuch"], "no schema of `nonesuch`"),
        (&["frobnicate"], "frobnicate"),
    ] {
        folder.onic(args).code(2).says(says);
    }
}

/// At 1 Mb/s frames of 1514 bytes start 12.3 ms apart, three times what counts as a hang.
#[test]
fn a_quiet_wire_is_no_hang() {
    let folder = Folder::new();
    let frames: Vec<Vec<u8>> = (0..3).map(|_| vec![0x55; 1514]).collect();
    let input = folder.file("in.pcapng", &capture(&frames));
    folder.onic(&["replay", &input, "--card", "model", "--pace", "0.001"]).code(0);
}

#[test]
fn the_hosts_cost_of_a_packet_takes_time() {
    let folder = Folder::new();
    let input = folder.file("in.pcapng", &capture(&udp(200)));
    let end_ps = |host_ns: &str| {
        let args = ["replay", &input, "--card", "model", "--shape", "1x1,queues=1", "--host-ns", host_ns, "--json"];
        folder.onic(&args).code(0).json()["runs"][0]["cards"][0]["end_ps"].as_u64().expect("a time")
    };
    // 200 packets of one queue at 1 us each; the last poll's cost comes after the last frame is out.
    assert!(end_ps("1000") > end_ps("0") + 100_000_000, "{} {}", end_ps("1000"), end_ps("0"));
}

#[test]
#[cfg(not(feature = "rtl"))]
fn a_card_that_needs_rtl_is_a_missing_tool() {
    let folder = Folder::new();
    let input = folder.file("in.pcapng", &capture(&udp(3)));
    folder.onic(&["replay", &input, "--card", "hybrid"]).code(3).says("hint: --card model");
    folder.onic(&["golden", "check", &case("measured-2"), "--card", "hybrid"]).code(3);
}

#[test]
fn only_and_count_choose_frames_by_their_index_in_the_whole_input() {
    let folder = Folder::new();
    let (a, b) = (folder.file("a.pcapng", &capture(&udp(5))), folder.file("b.pcapng", &capture(&udp(5)[3..])));
    let sizes = |args: &[&str]| {
        let mut all = vec!["replay", &a, &b, "--card", "model", "--json"];
        all.extend(args);
        let json = folder.onic(&all).code(0).json();
        let queues = json["runs"][0]["cards"][0]["queues"].as_array().expect("queues").clone();
        queues
            .iter()
            .map(|queue| (queue["packets"].as_u64().unwrap(), queue["bytes"].as_u64().unwrap()))
            .fold((0, 0), |s, q| (s.0 + q.0, s.1 + q.1))
    };
    // Frame n of udp() has 82 + n bytes; index 6 is the second frame of the second file, udp()[4].
    assert_eq!(sizes(&["--only", "6"]), (1, 86));
    assert_eq!(sizes(&["--count", "2"]), (2, 82 + 83));
    assert_eq!(sizes(&[]).0, 7);
}

#[test]
fn the_same_command_gives_the_same_bytes() {
    let folder = Folder::new();
    let case = case("errors");
    for name in ["a", "b"] {
        let (out, against) = (format!("{name}.pcapng"), format!("{name}-against.pcapng"));
        let ran = folder
            .onic(&["replay", &case, "--card", "model", "--out", &out, "--out-against", &against, "--json"])
            .code(0);
        folder.file(name, &ran.stdout);
    }
    assert_eq!(folder.read("a"), folder.read("b"), "JSON");
    assert_eq!(folder.read("a.pcapng"), folder.read("b.pcapng"));
    assert_eq!(folder.read("a.pcapng"), folder.read("a-against.pcapng"), "one model is like the other");
    // What went out is what a capture reader takes back, and the two sides have no difference.
    folder.onic(&["diff", "a.pcapng", "a-against.pcapng"]).code(0);
    let ran = folder.onic(&["replay", &case, "--card", "model", "--out", "-"]).code(0);
    assert_eq!(ran.stdout, folder.read("a.pcapng"), "nothing but the capture on stdout");
}

#[test]
fn seeds_run_each_and_the_report_is_in_their_order_whatever_the_threads() {
    let folder = Folder::new();
    let run = |jobs: &str| {
        folder
            .onic(&["replay", &case("queues-3"), "--card", "model", "--seeds", "3..9", "--jobs", jobs, "--json"])
            .code(0)
    };
    let (one, three) = (run("1"), run("3"));
    assert_eq!(one.stdout, three.stdout);
    let seeds: Vec<u64> =
        one.json()["runs"].as_array().unwrap().iter().map(|run| run["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds, [3, 4, 5, 6, 7, 8]);
    let text = folder.onic(&["replay", &case("queues-3"), "--card", "model", "--seeds", "3..5"]).code(0).out();
    assert_eq!(
        text.lines().map(|line| line.split(',').next().unwrap()).collect::<Vec<_>>(),
        ["seed 3: agreed", "seed 4: agreed"]
    );
}

/// An expected file that is not what comes out: told by line, kept, and failing again when pasted.
#[test]
fn an_expected_file_is_compared_and_a_failure_is_kept() {
    let folder = Folder::new();
    let input = folder.file("in.pcapng", &capture(&udp(20)));
    folder.onic(&["golden", "new", "mine", &input, "--card", "model", "--reason", "Twenty."]).code(0);
    let args = ["replay", &input, "--card", "model", "--expect", "mine/expected.txt"];
    folder.onic(&args).code(0);
    assert!(!folder.path("onic-out").exists());

    let good = folder.text("mine/expected.txt");
    let hash = &good[good.find("hash=").unwrap()..][..13];
    folder.file("mine/expected.txt", good.replacen(hash, "hash=00000001", 1).as_bytes());
    let ran = folder
        .onic(&[&args[..], &["--json", "--junit", "j.xml"]].concat())
        .code(1)
        .says("mine/expected.txt: line ")
        .says("expected 00000001, got");
    let json = ran.json();
    schema::check(&folder.onic(&["schema", "replay"]).json(), &json).unwrap_or_else(|why| panic!("{why}"));
    let repro = json["runs"][0]["repro"].as_str().expect("a repro");
    assert!(
        repro.ends_with("replay in.pcapng --card model --expect mine/expected.txt --against model --seed 1"),
        "{repro}"
    );
    assert!(ran.stderr.contains(&format!("hint: {repro}\n")), "{}", ran.stderr);
    let kept: serde_json::Value =
        serde_json::from_str(&folder.text("onic-out/last-failure/report.json")).expect("JSON");
    assert_eq!(kept, json, "the folder's report is the printed one");
    assert!(folder.text("onic-out/last-failure/report.txt").contains(repro));
    assert!(folder.text("j.xml").contains("<failure message="));
    folder.onic(&["diff", "onic-out/last-failure/got.pcapng", "onic-out/last-failure/against.pcapng"]).code(0);
    folder.shell(repro).code(1).says("expected 00000001, got");
    // A broken expected file is a difference too, and says where.
    folder.file("mine/expected.txt", b"# onic golden 1, origin: ours\nwhat?\n");
    folder.onic(&args).code(1).says("line 2");
}

/// What came from standard input is gone after the run: the folder keeps it, and the hint uses that.
#[test]
fn a_failure_on_standard_input_can_be_repeated() {
    let folder = Folder::new();
    let bytes = capture(&udp(6));
    folder.file("none.txt", b"# onic golden 1, origin: ours\n# place, queue or drop reason: frames, bytes\n");
    let ran = folder.onic_with(&["replay", "-", "--card", "model", "--expect", "none.txt", "--json"], &bytes).code(1);
    let repro = ran.json()["runs"][0]["repro"].as_str().expect("a repro").to_string();
    assert!(repro.contains("replay onic-out/last-failure/input.pcapng "), "{repro}");
    folder.shell(&repro).code(1).says("extra, input frame port0/0");
}

#[test]
fn a_failing_run_in_a_folder_that_cannot_be_written_still_is_a_difference() {
    let folder = Folder::new();
    folder.file("onic-out", b"a file where a folder should be");
    let bytes = folder.file("in.pcapng", &capture(&udp(2)));
    folder.file("none.txt", b"# onic golden 1, origin: ours\n# place, queue or drop reason: frames, bytes\n");
    folder.onic(&["replay", &bytes, "--card", "model", "--expect", "none.txt"]).code(1).says("onic-out/last-failure");
}
