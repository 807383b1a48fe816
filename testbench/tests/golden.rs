//! `onic golden` as a person uses it: check, change a byte, bless, new, diff. On the model alone, so that no RTL is needed.

mod common;

use common::{Folder, capture, case, schema, udp};

/// Cases whose result does not depend on our code.
const MEASURED: [&str; 5] = ["measured-1", "measured-2", "measured-3", "measured-4", "measured-5"];

#[test]
fn measured_cases_pass_on_the_model() {
    let folder = Folder::new();
    let cases = MEASURED.map(case);
    let mut args = vec!["golden", "check", "--card", "model"];
    args.extend(cases.iter().map(String::as_str));
    let ran = folder.onic(&args).code(0);
    assert!(ran.out().ends_with("golden: 5 passed, 0 failed, model and model\n"), "{}", ran.out());
    assert!(!folder.path("onic-out").exists(), "nothing failed");
}

#[test]
fn every_changed_byte_is_told_with_its_line() {
    let folder = Folder::new();
    let case = folder.golden("measured-2");
    let good = folder.text("measured-2/expected.txt");
    let positions = [
        0,
        good.find("origin").unwrap(),
        good.find("hash=").unwrap() + 7,
        good.rfind("bytes=").unwrap() + 9,
        good.len() - 1,
    ];
    for at in positions {
        let mut bytes = good.clone().into_bytes();
        bytes[at] ^= 1;
        folder.file("measured-2/expected.txt", &bytes);
        let ran =
            folder.onic(&["golden", "check", &case, "--card", "model"]).code(1).says("measured-2/expected.txt: line ");
        assert!(ran.out().contains("1/1 FAILED  measured-2"), "{}", ran.out());
    }
}

#[test]
fn a_changed_hash_is_told_with_line_packet_and_field() {
    let folder = Folder::new();
    let case = folder.golden("measured-2");
    let text = folder.text("measured-2/expected.txt");
    let (at, line) = text.lines().enumerate().find(|(_, line)| line.contains("in=port0/5 ")).expect("packet 5");
    let hash = &line[line.find("hash=").unwrap() + 5..][..8];
    folder.file("measured-2/expected.txt", text.replace(line, &line.replace(hash, "01234567")).as_bytes());
    let ran = folder.onic(&["golden", "check", &case, "--card", "model", "--json", "--junit", "j.xml"]).code(1);
    let wanted = format!("measured-2/expected.txt: line {}: ", at + 1);
    let ran = ran.says(&wanted).says("input frame port0/5, hash: expected 01234567, got ");
    let json = ran.json();
    let difference = &json["cases"][0]["differences"][0];
    assert_eq!((difference["line"].as_u64(), difference["field"].as_str()), (Some(at as u64 + 1), Some("hash")));
    assert_eq!((difference["input"].as_str(), difference["got"].as_str()), (Some("port0/5"), Some(hash)));
    let described = folder.onic(&["schema", "golden"]).code(0).json();
    schema::check(&described, &json).unwrap_or_else(|why| panic!("{why}"));
    let junit = folder.text("j.xml");
    assert!(junit.contains("tests=\"1\" failures=\"1\"") && junit.contains("hash: expected 01234567"), "{junit}");
    // The folder has what is needed to look into it, and the command in it fails again.
    for file in ["got.pcapng", "against.pcapng", "report.txt", "report.json"] {
        assert!(folder.path("onic-out/last-failure").join(file).is_file(), "{file}");
    }
    let repro = json["cases"][0]["repro"].as_str().expect("a repro");
    assert!(repro.ends_with("golden check measured-2 --card model"), "{repro}");
    folder.shell(repro).code(1).says(&wanted);
    folder.shell("sh onic-out/last-failure/repro.sh").code(1);
}

#[test]
fn a_changed_input_is_bad_input_and_no_difference() {
    let folder = Folder::new();
    let case = folder.golden("measured-3");
    let mut bytes = folder.read("measured-3/input.pcap");
    *bytes.last_mut().unwrap() ^= 0x80;
    folder.file("measured-3/input.pcap", &bytes);
    folder.onic(&["golden", "check", &case, "--card", "model"]).code(2).says("measured-3/input.pcap: its digest is ");
    // 1 wins over 2.
    let other = folder.golden("measured-2");
    folder.file("measured-2/expected.txt", b"nothing\n");
    folder
        .onic(&["golden", "check", &case, &other, "--card", "model"])
        .code(1)
        .says("line 1: not the title of a golden result");
}

#[test]
fn a_case_without_a_result_fails_with_what_to_do() {
    let folder = Folder::new();
    let case = folder.golden("measured-4");
    std::fs::remove_file(folder.path("measured-4/expected.txt")).unwrap();
    let ran = folder.onic(&["golden", "check", &case, "--card", "model"]).code(1);
    ran.says("measured-4: there is no expected.txt").says("hint: onic golden bless measured-4 --reason WHY");
}

#[test]
fn measured_results_are_never_blessed() {
    let folder = Folder::new();
    let case = folder.golden("measured-2");
    let before = folder.read("measured-2/expected.txt");
    let ran = folder.onic(&["golden", "bless", &case, "--card", "model", "--reason", "I like ours better"]).code(2);
    ran.says("its result was measured on upstream's RTL");
    assert_eq!(folder.read("measured-2/expected.txt"), before);
}

#[test]
fn new_check_change_diff_bless() {
    let folder = Folder::new();
    let input = folder.file("in.pcapng", &capture(&udp(40)));
    let ran =
        folder.onic(&["golden", "new", "mine", &input, "--card", "model", "--reason", "Forty datagrams."]).code(0);
    assert_eq!(ran.out(), "mine: 40 frames in, 40 out, expected.txt written\n");
    folder.onic(&["golden", "new", "mine", &input, "--card", "model", "--reason", "x"]).code(2).says("already there");
    folder.onic(&["golden", "check", "mine", "--card", "model"]).code(0);
    assert!(folder.text("mine/case.toml").contains("about = \"Forty datagrams.\"\norigin = \"ours\""));

    let good = folder.text("mine/expected.txt");
    let line = good.lines().find(|line| line.contains("in=port0/7 ")).expect("packet 7");
    let bad: Vec<&str> = good.lines().filter(|other| *other != line).collect();
    folder.file("mine/expected.txt", (bad.join("\n") + "\n").as_bytes());
    folder.onic(&["golden", "check", "mine", "--card", "model"]).code(1).says("mine/expected.txt: line ");
    let ran = folder.onic(&["golden", "diff", "mine", "--card", "model"]).code(1);
    assert!(ran.out().contains("was unreadable: line "), "{}", ran.out());

    folder.onic(&["golden", "bless", "mine", "--card", "model", "--reason", "  "]).code(2).says("--reason is empty");
    folder.onic(&["golden", "bless", "mine", "--card", "model", "--reason", "back to\nwhat it was"]).code(0);
    assert_eq!(folder.text("mine/expected.txt"), good);
    assert_eq!(folder.text("mine/history.txt"), "Forty datagrams.\nback to what it was\n");
    let ran = folder.onic(&["golden", "bless", "mine", "--card", "model", "--reason", "nothing to do"]).code(0);
    assert_eq!(ran.out(), "mine: unchanged\n");
    assert_eq!(folder.text("mine/history.txt").lines().count(), 2, "what changes nothing leaves no history");
    folder.onic(&["golden", "diff", "mine", "--card", "model"]).code(0);
}

#[test]
fn bless_shows_what_changes() {
    let folder = Folder::new();
    let input = folder.file("in.pcapng", &capture(&udp(16)));
    folder.onic(&["golden", "new", "mine", &input, "--card", "model", "--reason", "Sixteen."]).code(0);
    let good = folder.text("mine/expected.txt");
    let hash = &good[good.find("hash=").unwrap()..][..13];
    folder.file("mine/expected.txt", good.replacen(hash, "hash=00000001", 1).as_bytes());
    let ran = folder.onic(&["golden", "bless", "mine", "--card", "model", "--reason", "a new hash"]).code(0);
    assert!(
        ran.out().starts_with("mine: 1 differences\n  line ") && ran.out().contains("hash: expected 00000001, got "),
        "{}",
        ran.out()
    );
}

#[test]
fn two_ports_make_two_inputs() {
    let folder = Folder::new();
    let (a, b) = (folder.file("a.pcapng", &capture(&udp(5))), folder.file("b.pcapng", &capture(&udp(6))) + "@1");
    folder
        .onic(&["golden", "new", "two", &a, &b, "--card", "model", "--reason", "x"])
        .code(2)
        .says("the card has 1 port");
    folder
        .onic(&["golden", "new", "two", &a, &b, "--shape", "2x2", "--card", "model", "--reason", "Both ports."])
        .code(0);
    let expected = folder.text("two/expected.txt");
    assert!(
        expected.contains("in=port0/4 ") && expected.contains("in=port1/5 ") && expected.contains("\nfn1 q"),
        "{expected}"
    );
    folder.onic(&["golden", "check", "two", "--card", "model"]).code(0);
}

#[test]
fn what_is_no_case_is_bad_usage() {
    let folder = Folder::new();
    folder
        .onic(&["golden", "check", ".", "--card", "model"])
        .code(2)
        .says("neither a golden case nor a folder of them");
    folder.onic(&["golden", "check", "nowhere", "--card", "model"]).code(2);
    let case = folder.golden("measured-2");
    folder.onic(&["golden", "check", &case, "--card", "nonesuch"]).code(2).says("there is no card `nonesuch`");
}
