//! The alarms: what goes wrong between the RTL and the QDMA, or inside the RTL, is reported for what it is, once, with the
//! packet, the byte or field, both values, the queue and the cycle. Nothing here knows how a fault is made.
//!
//! Frames that cross to the QDMA are those of the input, in its order, on a card with one port and no drops.
#![cfg(feature = "rtl")]

mod common;
#[path = "common/fst.rs"]
mod fst;

use std::sync::Mutex;

use common::{Folder, Ran};
use fst::{Fst, SaveFile};
use rtl_bridge::tops::{self, ShellShape};
use serde_json::Value;
use traces::align::Capture;
use traces::golden::{Case, Entry, Expected, Slot};
use traces::read::{Policy, Reader};
use traces::synth::{Rng, mix};
use traces::{Point, digest, fields};

const TDATA: &str = "onic_shell.m_axis_qdma_c2h_sim_tdata[511:0]";
const CYCLE_PS: u64 = 4_000;

/// An input and where each of its frames goes.
struct Input {
    folder: Folder,
    name: String,
    frames: Vec<Vec<u8>>,
    queues: Vec<u64>,
}

impl Input {
    /// What is known of it comes from a run without any fault.
    fn new(folder: Folder, name: String) -> Input {
        folder.onic(&["replay", &name, "--card", "hybrid", "--out", "good.pcapng"]).code(0);
        let (frames, queues) =
            by_packet(folder.read("good.pcapng")).into_iter().map(|(_, data, queue)| (data, queue)).unzip();
        Input { folder, name, frames, queues }
    }

    fn golden(name: &str) -> Input {
        let folder = Folder::new();
        let name = folder.golden(name);
        Input::new(folder, name)
    }

    fn random(seed: u64) -> Input {
        let folder = Folder::new();
        let name = folder.file("random.pcapng", &common::capture(&mix::everything(120, 700, &mut Rng::new(seed))));
        Input::new(folder, name)
    }

    /// Run with a tap: exit code 1, and the one report.
    fn tapped(&self, tap: &str, more: &[&str]) -> Report {
        let mut args = vec!["replay", self.name.as_str(), "--card", "hybrid", "--tap", tap, "--json"];
        args.extend(more);
        Report::only(&self.folder.onic(&args).code(1))
    }
}

/// (packet, bytes, queue) of a capture's frames that reached a queue, in the order of packets.
fn by_packet(capture: Vec<u8>) -> Vec<(u64, Vec<u8>, u64)> {
    let reader = Reader::new(std::io::Cursor::new(capture), "capture", Policy::default()).expect("ours");
    let (capture, error) = Capture::read(reader);
    assert!(error.is_none());
    let mut frames: Vec<_> = capture
        .frames
        .into_iter()
        .filter_map(|(_, frame)| Some((frame.meta.packet_id?, frame.data, u64::from(frame.meta.queue?))))
        .collect();
    frames.sort();
    frames
}

/// The report of a run that has one.
struct Report {
    json: Value,
    text: String,
}

impl Report {
    fn only(ran: &Ran) -> Report {
        let json = ran.json();
        let findings = json["runs"][0]["findings"].as_array().expect("findings").clone();
        assert_eq!(findings.len(), 1, "one cause, one report:\n{}", ran.stderr);
        let errors = ran.stderr.lines().filter(|line| line.starts_with("error:")).count();
        assert_eq!(errors, 1, "{}", ran.stderr);
        let text = findings[0]["text"].as_str().expect("a text").to_owned();
        assert!(ran.stderr.contains(&text), "{}", ran.stderr);
        Report { json: findings[0].clone(), text }
    }

    fn number(&self, field: &str) -> u64 {
        self.json[field].as_u64().unwrap_or_else(|| panic!("{field} in {}", self.json))
    }

    fn word(&self, field: &str) -> &str {
        self.json[field].as_str().unwrap_or_else(|| panic!("{field} in {}", self.json))
    }

    /// It says so to people, too.
    #[track_caller]
    fn says(&self, text: &str) -> &Report {
        assert!(self.text.contains(text), "no `{text}` in\n{}", self.text);
        self
    }

    /// Of this kind, about this packet, expected in this queue; and it has a cycle of the card under test.
    #[track_caller]
    fn is(&self, kind: &str, packet: u64, queue: u64) -> &Report {
        assert_eq!(
            (self.word("kind"), self.number("packet"), self.number("queue")),
            (kind, packet, queue),
            "{}",
            self.text
        );
        self.says(&format!("queue {queue}, packet {packet} of ")).says(&format!("cycle {}", self.number("cycle")))
    }
}

// ---- (a) One frame disturbed inside the RTL's stream ----

fn inputs() -> [Input; 3] {
    [Input::golden("rss-mix"), Input::golden("stalls"), Input::random(0x5eed)]
}

#[test]
fn a_flipped_bit_is_a_byte_of_a_packet() {
    for input in inputs() {
        for (packet, byte, bit) in [(0, 0, 0), (17, 62, 4), (40, 63, 7), (61, 130, 1)] {
            let frame = &input.frames[packet];
            let at = byte % frame.len();
            let report = input.tapped(&format!("flip:{packet}:{byte}:{bit}"), &[]);
            report.is("corrupt", packet as u64, input.queues[packet]);
            let field = fields::at(frame, at);
            assert_eq!((report.number("byte"), report.word("field")), (at as u64, field.name), "{}", report.text);
            let (was, is) = (frame[at], frame[at] ^ 1 << bit);
            report.says(&format!("{} differs at byte {at}, {was:02x} became {is:02x}", field.name));
            report.says(&format!("[{was:02x}]")).says(&format!("[{is:02x}]"));
            assert_ne!(report.word("expected"), report.word("got"));
        }
    }
}

#[test]
fn a_dropped_frame_is_one_lost_frame() {
    for input in inputs() {
        for packet in [0, 33, input.frames.len() - 1] {
            let report = input.tapped(&format!("drop:{packet}"), &[]);
            report.is("lost", packet as u64, input.queues[packet]);
            assert_eq!(report.number("count"), 1, "frames behind it are not lost");
            report.says("last seen in function 0 with hash").says("1 frame missing");
        }
    }
}

#[test]
fn a_duplicated_frame_is_one_extra_frame() {
    for input in inputs() {
        let report = input.tapped("dup:33", &[]);
        report.is("extra", 33, input.queues[33]).says("came once too often").says("1 frame too many");
    }
}

#[test]
fn a_misrouted_frame_is_told_with_both_queues() {
    for input in inputs() {
        for (tap, packet, to) in [("misroute:33", 33, input.queues[33] ^ 1), ("misroute:4:5", 4, 5)] {
            let report = input.tapped(tap, &[]);
            report.is("misrouted", packet as u64, input.queues[packet]);
            assert_eq!((report.word("field"), report.number("queue_got")), ("queue", to), "{}", report.text);
            report.says(&format!("misrouted to fn0 queue {to}"));
        }
    }
}

#[test]
fn the_hint_makes_it_fail_again() {
    let input = Input::golden("rss-mix");
    let ran = input.folder.onic(&["replay", &input.name, "--card", "hybrid", "--tap", "flip:0:30"]).code(1);
    let hint = ran.stderr.lines().find_map(|line| line.strip_prefix("hint: ")).expect("a hint");
    let again = input.folder.shell(hint).code(1);
    assert!(again.stderr.contains("packet 0 of 1: "), "{}", again.stderr);
}

#[test]
fn a_tap_that_is_none_is_refused() {
    let folder = Folder::new();
    let name = folder.file("in.pcapng", &common::capture(&common::udp(3)));
    folder.onic(&["replay", &name, "--card", "hybrid", "--tap", "eat:1"]).code(2).says("is no tap");
}

// ---- (b) Faults inside the RTL ----

/// The build with the faults in it, made before anything is timed.
fn fault_build(functions: u8, ports: u8) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let shape = ShellShape { functions, ports, faults: true, ..ShellShape::default() };
    tops::shell(&shape, &|_, _, _| {}).unwrap_or_else(|error| panic!("{error}"));
}

/// A golden case with one of the faults switched on.
struct Faulty {
    folder: Folder,
    name: String,
    fault: String,
    expected: Expected,
    report: Report,
}

impl Faulty {
    /// Both the other card and the expected file must see it.
    fn run(name: &str, fault: u8) -> Faulty {
        let ports = Case::load(&common::golden().join(name)).expect("a case").input.len() as u8;
        fault_build(ports, ports);
        let folder = Folder::new();
        let (name, fault) = (folder.golden(name), fault.to_string());
        let report =
            Report::only(&folder.onic(&["replay", &name, "--card", "hybrid", "--rtl-fault", &fault, "--json"]).code(1));
        let file = format!("{name}/expected.txt");
        let expected = Expected::parse(&folder.text(&file)).expect("an expected file");
        let alone =
            ["replay", &name, "--card", "hybrid", "--rtl-fault", &fault, "--against", "none", "--expect", &file];
        folder.onic(&alone).code(1).says("expected.txt: ");
        Faulty { folder, name, fault, expected, report }
    }

    /// The entry of the reported packet in the expected file, with function and queue.
    fn entry(&self) -> (u8, u64, &Entry) {
        let packet = self.report.number("packet");
        let case = Case::load(&self.folder.path(&self.name)).expect("a case");
        let mut index = packet;
        let port = case.input.iter().find(|input| {
            let here = index < input.frames;
            index -= if here { 0 } else { input.frames };
            here
        });
        let of_packet = Some((Point::Port(port.expect("a packet of the case").port), index));
        let entries =
            self.expected.groups.iter().flat_map(|(group, entries)| entries.iter().map(move |entry| (group, entry)));
        let (group, entry) =
            entries.into_iter().find(|(_, entry)| entry.input == of_packet).expect("the packet is expected");
        match (group.point, &group.slot) {
            (Point::Function(func), Slot::Queue(queue)) => (func, u64::from(*queue), entry),
            other => panic!("{other:?} is no queue"),
        }
    }

    /// It is about the frame and the queue that the expected file has for the packet.
    #[track_caller]
    fn is(&self, kind: &str) -> &Faulty {
        let (func, queue, _) = self.entry();
        self.report.is(kind, self.report.number("packet"), queue);
        assert_eq!(self.report.word("place"), format!("fn{func}"));
        self
    }

    /// Where the reported packet's frame is in the output that was kept.
    fn places_in_output(&self) -> Vec<u64> {
        let (_, _, entry) = self.entry();
        let capture = self.folder.read("onic-out/last-failure/got.pcapng");
        let reader = Reader::new(std::io::Cursor::new(capture), "got", Policy::default()).expect("ours");
        let (capture, _) = Capture::read(reader);
        let of_frame = capture.frames.iter().filter(|(_, frame)| digest(&frame.data) == entry.digest);
        of_frame.filter_map(|(_, frame)| frame.meta.queue.map(u64::from)).collect()
    }

    /// The repro line fails as well.
    fn fails_again(&self) {
        let script = self.folder.text("onic-out/last-failure/repro.sh");
        let line = script.lines().find(|line| !line.starts_with('#')).expect("a command");
        assert!(line.contains(&format!("--rtl-fault {}", self.fault)), "{line}");
        self.folder.shell(line).code(1);
    }
}

#[test]
fn fault_1_sends_frames_to_wrong_queues() {
    for case in ["rss-mix", "measured-1"] {
        let faulty = Faulty::run(case, 1);
        let to = faulty.is("misrouted").report.number("queue_got");
        assert_eq!(faulty.places_in_output(), [to]);
        faulty.fails_again();
    }
}

#[test]
fn fault_2_gives_another_hash() {
    let faulty = Faulty::run("rss-mix", 2);
    let (_, _, entry) = faulty.is("side field").entry();
    let hash = format!("{:08x}", entry.hash.expect("a hash is expected"));
    assert_eq!((faulty.report.word("field"), faulty.report.word("expected")), ("hash", hash.as_str()));
    assert_ne!(faulty.report.word("got"), hash);
    faulty.report.says("hash differs").says(&hash);
    faulty.fails_again();
}

#[test]
fn fault_3_takes_the_last_byte() {
    let faulty = Faulty::run("size-ladder", 3);
    let (_, _, entry) = faulty.is("wrong length").entry();
    let len = u64::from(entry.len_bytes);
    assert_eq!(faulty.report.word("expected"), len.to_string());
    assert_eq!(faulty.report.word("got"), (len - 1).to_string());
    assert_eq!(faulty.report.number("byte"), len - 1);
    faulty.fails_again();
}

#[test]
fn fault_4_sends_a_ports_frames_to_the_other_function() {
    let faulty = Faulty::run("two-ports", 4);
    let (func, ..) = faulty.is("misrouted").entry();
    assert_eq!((func, faulty.report.word("place_got")), (1, "fn0"));
    let of_port_1 = Case::load(&common::golden().join("two-ports")).expect("a case").input[1].frames;
    assert_eq!(faulty.report.number("count"), of_port_1, "{}", faulty.report.text);
    faulty.fails_again();
}

#[test]
fn fault_5_loses_frames_that_nobody_counts() {
    let faulty = Faulty::run("rss-mix", 5);
    faulty.is("lost");
    assert!(faulty.places_in_output().is_empty());
    let lost = faulty.report.number("count");
    assert_eq!(lost, faulty.expected.frames() as u64 / 8);
    faulty.report.says(&format!("{lost} frames missing"));
    faulty.fails_again();
}

#[test]
fn fault_6_gives_a_frame_its_predecessors_queue() {
    let faulty = Faulty::run("stalls", 6);
    let to = faulty.is("misrouted").report.number("queue_got");
    assert_eq!(faulty.places_in_output(), [to]);
    faulty.fails_again();
}

// ---- Waves ----

#[test]
fn the_reported_byte_is_in_tdata_at_the_marked_cycle() {
    // A byte of the first beat, of a later one, and of one that was held between the beats.
    for (case, packet, byte) in [("rss-mix", 17, 62), ("rss-mix", 5, 200), ("stalls", 40, 70)] {
        let input = Input::golden(case);
        let report = input.tapped(&format!("flip:{packet}:{byte}:4"), &["--waves", "w.fst"]);
        let (byte, cycle) = (report.number("byte") as usize, report.number("cycle"));
        let frame = &input.frames[packet];
        let flipped = frame[byte] ^ 1 << 4;

        let save_file = SaveFile::parse(&input.folder.text("w.gtkw"));
        assert_eq!(save_file.dumpfile, "w.fst");
        let mut fst = Fst::open(&input.folder.path("w.fst"));
        for time in [cycle * CYCLE_PS, save_file.marker] {
            let tdata = fst.value(TDATA, time);
            assert_eq!(tdata[byte % 64], flipped, "{case}, packet {packet} at {time} ps: {tdata:02x?}");
            // And it is that beat: its other bytes are the frame's.
            let beat = &frame[byte / 64 * 64..frame.len().min(byte / 64 * 64 + 64)];
            assert_eq!(beat.iter().zip(&tdata).filter(|(a, b)| a != b).count(), 1);
        }
        for taken in ["tvalid", "tready"] {
            assert_eq!(fst.value(&format!("onic_shell.m_axis_qdma_c2h_sim_{taken}"), save_file.marker), [1], "{taken}");
        }
        let last = byte / 64 == (frame.len() - 1) / 64;
        assert_eq!(fst.value("onic_shell.m_axis_qdma_c2h_sim_tlast", save_file.marker), [u8::from(last)]);
    }
}

#[test]
fn waves_hold_the_window_and_the_path() {
    let input = Input::golden("rss-mix");
    let report = input.tapped("flip:310:1", &["--waves", "w.fst"]);
    let cycle = report.number("cycle");
    let fst = Fst::open(&input.folder.path("w.fst"));
    let (start, end) = fst.times();
    // The window begins and ends with the edges of whichever clock comes next.
    assert!((cycle - 2_000) * CYCLE_PS <= start && start < (cycle - 1_998) * CYCLE_PS, "{start} for cycle {cycle}");
    assert!((cycle + 498) * CYCLE_PS < end && end < (cycle + 500) * CYCLE_PS, "{end} for cycle {cycle}");

    let save_file = SaveFile::parse(&input.folder.text("w.gtkw"));
    assert_eq!(save_file.marker / CYCLE_PS, cycle);
    let missing: Vec<_> = save_file.signals.iter().filter(|name| !fst.has(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let place =
        |part: &str| save_file.signals.iter().position(|name| name.contains(part)).unwrap_or_else(|| panic!("{part}"));
    let path =
        ["s_axis_cmac_rx", "mon_rx_end", "arx_tdata", "mon_rss_hash", "qdma_c2h_sim_tdata", "qdma_cpl_sim_tdata"];
    assert!(path.map(place).is_sorted(), "along the path: {:?}", save_file.signals);

    // The failure folder has them, too, under names of its own.
    let kept = SaveFile::parse(&input.folder.text("onic-out/last-failure/waves.gtkw"));
    assert_eq!((kept.dumpfile.as_str(), kept.marker), ("waves.fst", save_file.marker));
    assert_eq!(input.folder.read("onic-out/last-failure/waves.fst"), input.folder.read("w.fst"));
}

#[test]
fn waves_of_two_ports_have_their_signals() {
    fault_build(2, 2);
    let folder = Folder::new();
    let name = folder.golden("two-ports");
    folder.onic(&["replay", &name, "--card", "hybrid", "--rtl-fault", "4", "--waves", "w.fst"]).code(1);
    let (fst, save_file) = (Fst::open(&folder.path("w.fst")), SaveFile::parse(&folder.text("w.gtkw")));
    let missing: Vec<_> = save_file.signals.iter().filter(|name| !fst.has(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_run_that_agrees_leaves_no_waves() {
    let input = Input::golden("queues-1");
    input.folder.onic(&["replay", &input.name, "--card", "hybrid", "--waves", "w.fst"]).code(0);
    assert!(!input.folder.path("w.fst").exists() && !input.folder.path("onic-out").exists());
}

// ---- RTL that stops, or stands still ----

#[test]
fn an_assertion_is_told_with_cycle_and_instance() {
    let input = Input::golden("rss-mix");
    let report = input.tapped("keep:5", &["--waves", "w.fst"]);
    assert_eq!(report.word("kind"), "stopped");
    let cycle = report.number("cycle");
    report.says(&format!("hybrid: RTL stopped in cycle {cycle} "));
    // An instance path that ends with the assertion's name, its message, once, and the source line.
    let (_, told) = report.text.split_once("assertion failed in ").expect("an assertion");
    let path = told.split(':').next().expect("a path");
    assert!(path.starts_with("onic_shell.gen_port[0].") && path.ends_with("_A"), "{path}");
    assert!(told.contains("tkeep") && told.matches(path).count() == 1 && told.contains(".sv:"), "{told}");
    let (start, end) = Fst::open(&input.folder.path("w.fst")).times();
    assert!(start / CYCLE_PS <= cycle && cycle <= end / CYCLE_PS, "{start} to {end} ps for cycle {cycle}");
}

#[test]
fn a_stream_that_stands_still_is_a_hang() {
    let input = Input::golden("rss-mix");
    let report = input.tapped("hold:5", &["--hang-cycles", "3000"]);
    assert_eq!(report.word("kind"), "stopped");
    report.says("hybrid: no progress for 3000 cycles, in cycle").says("onic_shell.m_axis_qdma_c2h_sim: ");
    // Found when its time was over, and no later; frames go in at the wire until the buffer is full.
    let good = input.tapped("flip:5", &[]).number("cycle");
    assert!((good + 2_900..good + 3_600).contains(&report.number("cycle")), "{}", report.text);
}

// ---- Coverage ----

#[test]
fn coverage_is_written() {
    let folder = Folder::new();
    folder.onic(&["replay", &common::case("rss-mix"), "--card", "hybrid", "--coverage", "cov.dat"]).code(0);
    let text = folder.text("cov.dat");
    let counts = text.lines().filter(|line| line.starts_with("C '")).map(|line| {
        let count = line.rsplit(' ').next().and_then(|word| word.parse::<u64>().ok());
        count.unwrap_or_else(|| panic!("{line}"))
    });
    let counts: Vec<u64> = counts.collect();
    assert!(counts.iter().any(|&count| count > 0), "{text}");
    folder
        .onic(&["replay", &common::case("rss-mix"), "--card", "hybrid", "--tap", "keep:5", "--coverage", "stopped.dat"])
        .code(1);
    assert!(folder.text("stopped.dat").contains("\nC '"), "of a run that stopped, too");
    folder
        .onic(&["replay", &common::case("rss-mix"), "--card", "hybrid", "--coverage", "no/such/folder/cov.dat"])
        .code(2)
        .says("cov.dat");
    folder
        .onic(&["replay", &common::case("rss-mix"), "--card", "model", "--coverage", "cov.dat"])
        .code(2)
        .says("has none");
}

// ---- The walk-through ----

/// The page with the output of each of its commands as it is now.
fn walk_through(page: &str, folder: &Folder) -> String {
    let mut made = String::new();
    let mut in_console = false;
    for line in page.lines() {
        match line {
            "```console" => in_console = true,
            "```" => in_console = false,
            _ => {}
        }
        match line.strip_prefix("$ ").filter(|_| in_console) {
            Some(command) => {
                let ran = folder.shell(command);
                let out = ran.out();
                let shown = out.lines().chain(ran.stderr.lines()).filter(|line| !is_progress(line));
                made += &shown.fold(format!("{line}\n"), |made, line| made + line + "\n");
            }
            None if in_console && line != "```console" => {} // the output that stood here
            None => made += &format!("{line}\n"),
        }
    }
    made
}

/// A line like `hybrid: 20 of 320 frames` is printed when a machine is slow.
fn is_progress(line: &str) -> bool {
    line.split_once(": ").is_some_and(|(who, rest)| {
        let mut words = rest.split(' ');
        let counts = words.next().is_some_and(|word| word.parse::<u64>().is_ok()) && words.next() == Some("of");
        counts && !who.contains(' ')
    })
}

/// Without the numbers of cycles, which move with the RTL: after the word, a line has no digits.
fn without_cycles(text: &str) -> String {
    let masked = text.lines().map(|line| match line.find("cycle") {
        Some(at) => line[..at].to_owned() + &line[at..].replace(|c: char| c.is_ascii_digit(), ""),
        None => line.to_owned(),
    });
    masked.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_walk_through_is_what_happens() {
    fault_build(1, 1);
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/debug-a-mismatch.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let folder = Folder::new();
    let golden = folder.path("traces/golden");
    std::fs::create_dir_all(&golden).expect("the temporary folder");
    folder.golden("rss-mix");
    std::fs::rename(folder.path("rss-mix"), golden.join("rss-mix")).expect("the temporary folder");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_onic"), folder.path("onic")).expect("the temporary folder");
    let made = walk_through(&page, &folder);
    if std::env::var_os("ONIC_WRITE_DOCS").is_some() {
        return std::fs::write(&path, &made).expect("the page");
    }
    assert!(
        without_cycles(&page) == without_cycles(&made),
        "docs/debug-a-mismatch.md is stale: ONIC_WRITE_DOCS=1 cargo test -p testbench --test alarms walk_through\n{made}"
    );
}
