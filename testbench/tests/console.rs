//! `onic console`: what scripts print is held to transcripts beside them, and how scripts end.
//!
//! A transcript holds only what no card may do otherwise, so that one file serves them all. After a wanted change
//! `ONIC_BLESS=1 cargo test -p testbench --test console` writes them anew, for a person to review.

mod common;

use std::path::{Path, PathBuf};

use common::{Folder, Ran, capture, udp};

fn manifest(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A folder in which `traces/…` is this repository's.
fn folder() -> Folder {
    let folder = Folder::new();
    std::os::unix::fs::symlink(manifest("../traces"), folder.path("traces")).expect("the temporary folder");
    folder
}

fn script(folder: &Folder, lines: &str, options: &[&str]) -> Ran {
    let name = folder.file("script.onic", lines.as_bytes());
    folder.onic(&[&["console", &name, "--card", "model"], options].concat())
}

/// Run a script that must end well, and compare what it says with the transcript beside it.
#[track_caller]
fn transcript(name: &str, options: &[&str], card: &str) {
    let folder = folder();
    let path = manifest(&format!("tests/console/{name}.onic"));
    let path_name = path.display().to_string();
    let ran = folder.onic(&[&["console", &path_name, "--card", card, "--echo"], options].concat()).code(0);
    let out: String = ran.out().lines().map(|line| format!("{}\n", without_chance(line))).collect();
    let expected = path.with_extension("txt");
    if std::env::var_os("ONIC_BLESS").is_some() {
        std::fs::write(&expected, out).expect("the tests' folder");
        return;
    }
    let expected = std::fs::read_to_string(&expected).unwrap_or_default();
    let mut last = "";
    for (number, (want, have)) in expected.lines().zip(out.lines()).enumerate() {
        if want.starts_with("> ") {
            last = want;
        }
        assert_eq!(want, have, "{name}, line {} of the transcript, after `{last}`", number + 1);
    }
    assert_eq!(expected.lines().count(), out.lines().count(), "{name}: lines");
}

/// A line without the value of a row of statistics that hangs on the cycle: how many frames one poll finds.
fn without_chance(line: &str) -> String {
    match line.split_once(": ") {
        Some((name, _)) if name.contains("rx_pp_") || name.ends_with("_doorbells") || name.ends_with("_credits") => {
            format!("{name}: *")
        }
        _ => line.into(),
    }
}

/// Every script, on a card.
fn transcripts(card: &str) {
    for name in ["settings", "traffic", "faults", "registers"] {
        transcript(name, &[], card);
    }
    // Each queue has the same rows.
    transcript("statistics", &["--shape", "1x1,queues=1"], card);
}

#[test]
fn transcripts_on_the_model() {
    transcripts("model");
}

#[cfg(feature = "rtl")]
#[test]
fn transcripts_on_the_rtl() {
    transcripts("hybrid");
}

/// The script that the README shows: queue count, key and table, replay, statistics, down under load a hundred times.
#[test]
fn the_example_on_the_model() {
    example("model");
}

#[cfg(feature = "rtl")]
#[test]
fn the_example_on_the_rtl() {
    example("hybrid");
}

#[track_caller]
fn example(card: &str) {
    let example = manifest("../docs/examples/console.onic").display().to_string();
    let ran = folder().onic(&["console", &example, "--card", card]).code(0);
    let out = ran.out();
    assert!(out.ends_with("memory    0 pages out, 0 mappings, 0 regions\n"), "{out}");
    assert!(out.contains("RX flow hash indirection table for onic0 with 4 RX ring(s):\n"), "{out}");
}

/// Two functions and two ports: each interface has its own port, settings and counts.
#[test]
fn interfaces_are_apart() {
    let lines = "ethtool -L onic1 combined 2\nip link set onic1 mtu 1000\nip link\nreplay c.pcapng@1\n\
                 expect -S stat_rx_total_pkts = 40 onic1\nexpect -S stat_rx_total_pkts = 0 onic0\n\
                 down onic1\nreplay c.pcapng\nexpect sum host = 80\nethtool -l onic0\n! ethtool -i onic2\n";
    let folder = folder();
    folder.file("c.pcapng", &capture(&udp(40)));
    let out = script(&folder, lines, &["--shape", "2x2"]).code(0).out();
    assert!(out.contains("3: onic1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1000"), "{out}");
    assert!(out.contains("2: onic0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500"), "{out}");
    assert!(out.contains("Combined:\t8\n"), "{out}");
    assert!(out.contains("there is no onic2: the card has onic0, onic1"), "{out}");
}

/// `ip -s` shows what the queues of `ethtool -S` add up to, after errors, drops and a down too.
#[test]
fn totals_are_the_sum_of_the_queues() {
    let lines = "replay traces/golden/rss-mix --loop --pace line &\ngen udp --count 500 &\nwait 50us\n\
                 fault wire 5 fcs\nwait 50us\ndown\nup\nethtool -L combined 3\nwait 50us\nstop\nwait idle\ngen udp --count 50\ndown\n\
                 set json on\nethtool -S\nip -s link\n";
    let out = script(&folder(), lines, &[]).code(0).out();
    let mut json = out.lines().filter(|line| line.starts_with('[')).map(|line| {
        let list: serde_json::Value = serde_json::from_str(line).expect("JSON");
        list[0].clone()
    });
    let (rows, link) = (json.next().expect("-S"), json.next().expect("ip"));
    let sum = |side: &str, what: &str| -> u64 {
        let is_it = |name: &str| name.starts_with(&format!("{side}_queue_")) && name.ends_with(&format!("_{what}"));
        let queues = rows.as_object().expect("rows").iter().filter(|(name, _)| is_it(name));
        // rx_queue_0_drops, not rx_queue_0_xdp_…: one underscore follows the number.
        let own = queues.filter(|(name, _)| name.matches('_').count() == 3);
        own.map(|(_, value)| value.as_u64().expect("a number")).sum()
    };
    let total = |side: &str, what: &str| link["stats64"][side][what].as_u64().expect("a number");
    for side in ["rx", "tx"] {
        for what in ["packets", "bytes"] {
            assert_eq!(total(side, what), sum(side, what), "{side} {what}");
        }
        assert_eq!(total(side, "dropped"), sum(side, "drops"), "{side} dropped");
    }
    // The port adds what no queue ever sees.
    let marked = rows["stat_adapt_rx_error"].as_u64().expect("a number");
    assert_eq!(total("rx", "errors"), sum("rx", "errors") + marked);
    assert!(marked > 0, "frames with a wrong FCS came through while the interface was up");
    assert!(total("rx", "packets") > 500 && total("rx", "dropped") > 0 && total("tx", "packets") >= 50);
}

#[test]
fn a_failing_line_names_itself_and_ends_the_script() {
    let ran = script(&folder(), "up\n\nethtool -X onic0 equal 99 # too many\nethtool -i\n", &[]).code(1);
    let line = "console: line 3: ethtool -X onic0 equal 99: onic0: indirection table entry 8 names queue 8, \
                but the function has queues 0 to 7\n";
    assert_eq!(ran.stderr, line);
    assert!(!ran.out().contains("driver:"), "{}", ran.out());
    assert!(ran.out().ends_with("memory    0 pages out, 0 mappings, 0 regions\n"), "it was ended all the same");
}

#[test]
fn bad_usage_is_2_and_names_what_would_be_right() {
    for (line, why) in [
        ("ethtol -i", "there is no command `ethtol`"),
        ("ethtool -z", "there is no -z here (help ethtool)"),
        ("replay", "FILE is missing (usage: replay FILE[@PORT]…"),
        ("replay 'a", "the ' at character 8 is never closed"),
        ("up &", "up can't run in the background"),
        ("wait soon", "has a unit other than ns, us, ms, s"),
        ("repeat x up", "repeat takes a number of times"),
        ("! ethtool -z", "there is no -z here"),
        ("replay x --loop", "--loop never ends: it takes & after it"),
        ("expect -S rx_xdp_pass ~ 1", "is none of = != < <= > >="),
        ("fault wire 1 fall", "is no fault of the wire"),
        ("regs write QCONF x", "is no number that fits"),
        ("ethtool -C tx-usecs 1", "only rx-usecs and rx-frames can be set"),
        ("ip addr", "ip link is"),
    ] {
        script(&folder(), line, &[])
            .code(2)
            .says(&format!("console: line 1: {}", line.trim_start_matches("! ").trim_end_matches(" &")))
            .says(why);
    }
}

#[test]
fn keep_going_runs_the_rest_and_the_gravest_code_wins() {
    let lines = "nonsense\n! up\nethtool -i\n";
    let ran =
        script(&folder(), lines, &["--keep-going"]).code(1).says("line 1: nonsense").says("line 2: up: must fail");
    assert!(ran.out().contains("driver: onic\n"), "{}", ran.out());
    script(&folder(), "nonsense\nethtool -i\n", &["--keep-going"]).code(2);
}

#[test]
fn a_failing_round_is_named() {
    let lines = "repeat 5 replay traces/golden/rss-mix --count 1; expect sum in < 3";
    script(&folder(), lines, &[]).code(1).says("line 1: round 3 of 5: expect sum in < 3: in is 3\n");
}

#[test]
fn lines_come_from_standard_input_and_quit_ends_them() {
    let ran =
        folder().onic_with(&["console", "-", "--card", "model"], b"ethtool -i\nquit; nonsense\nnonsense\n").code(0);
    assert!(ran.out().starts_with("driver: onic\n"), "{}", ran.out());
    folder().onic_with(&["console", "--card", "model"], b"").code(0);
    folder().onic(&["console", "no-such.onic", "--card", "model"]).code(2).says("no-such.onic");
    folder().onic(&["console", "-", "--card", "none"]).code(2).says("there is no card `none`");
}

/// A host that never looks again: what waits for it is told, and comes through once the session ends.
#[test]
fn a_wait_that_has_no_end_is_a_hang() {
    let lines = "fault host hold\nreplay traces/golden/rss-mix\nethtool -i\n";
    let ran =
        script(&folder(), lines, &["--hang-cycles", "100000"]).code(1).says("line 2").says("no progress for 100000");
    assert!(ran.out().contains("monitors  in 320 + made 0 = host 320"), "{}", ran.out());
    script(&folder(), "replay traces/golden/rss-mix --loop &\nwait idle", &[]).code(1).says("end it first (stop)");
}

/// What the drivers said and nobody cleared fails the session; frames that a stopped queue could not take do not.
#[test]
fn a_fault_that_nobody_read_fails_the_session() {
    let lines = "regs write bar0:0x1800c 0xffff\nwait 10us\nreplay traces/golden/rss-mix\nrecover\n";
    let ran = script(&folder(), lines, &[]).code(1);
    assert!(ran.out().contains("onic0: C2H: invalid CIDX (bit 14)"), "{}", ran.out());
    script(&folder(), &format!("{lines}log clear\n"), &[]).code(0);
}

/// Whatever goes wrong under load, every frame has an end with a name, and no memory is touched or kept that must not
/// be.
#[test]
fn faults_under_load_on_the_model() {
    faults_under_load("model");
}

#[cfg(feature = "rtl")]
#[test]
fn faults_under_load_on_the_rtl() {
    faults_under_load("hybrid");
}

#[track_caller]
fn faults_under_load(card: &str) {
    let path = manifest("tests/console/late.onic").display().to_string();
    folder().onic(&["console", &path, "--card", card, "--echo"]).code(0);
}

/// A frame that vanishes inside the card is an unaccounted one, whatever the lines said.
#[cfg(feature = "rtl")]
#[test]
fn a_frame_that_vanishes_fails_the_session() {
    let folder = folder();
    let name = folder.file("script.onic", b"replay traces/golden/rss-mix\n");
    let ran = folder.onic(&["console", &name, "--card", "hybrid", "--tap", "drop:7"]).code(1);
    assert!(ran.out().contains("1 frames are unaccounted for"), "{}", ran.out());
}
