//! A running top: pins of every width, errors, contexts, waves, coverage, the build's cache.

mod probe;

use probe::Probe;
use rtl_bridge::build::library::{Builder, Kind, clean_cache};
use rtl_bridge::tops;
use rtl_bridge::verilated::{BareLoop, Options, PortError, StopKind, Window};

/// A single one walks through a port and must come back in the same place: bit n is bit n%8 of byte n/8.
fn walk_wide(port: &str, width: usize) {
    let mut probe = Probe::start(&Options::default());
    let input = probe.simulation.wide_input(&format!("{port}_i"), 0, 1).expect("a port");
    let output = probe.simulation.wide_output(&format!("{port}_o"), 0, 1).expect("a port");
    assert_eq!(output.len_bytes(), width.div_ceil(8));
    for bit in 0..width {
        let mut bytes = vec![0u8; width.div_ceil(8)];
        bytes[bit / 8] = 1 << (bit % 8);
        probe.simulation.set_bytes(&input, &bytes);
        probe.run(4).expect("runs");
        assert_eq!(probe.simulation.bytes(&output), bytes, "{port}, bit {bit}");
        assert_eq!(probe.simulation.bits(&output).iter_ones().collect::<Vec<_>>(), [bit]);
    }
}

#[test]
fn wide_ports_keep_each_bit_in_its_place() {
    walk_wide("loop512", 512);
    walk_wide("loop320", 320);
    walk_wide("loop65", 65);
    walk_wide("loop64", 64);
}

#[test]
fn bits_beyond_a_ports_width_never_enter_it() {
    let mut probe = Probe::start(&Options::default());
    let input = probe.simulation.wide_input("loop65_i", 0, 1).expect("a port");
    let output = probe.simulation.wide_output("loop65_o", 0, 1).expect("a port");
    probe.simulation.set_bytes(&input, &[0xff; 9]);
    probe.drive::<u16>("loop11_i", 0xffff);
    probe.run(4).expect("runs");
    assert_eq!(probe.simulation.bytes(&output), [255, 255, 255, 255, 255, 255, 255, 255, 1]);
    assert_eq!(probe.read::<u16>("loop11_o"), 0x7ff);
}

#[test]
fn narrow_ports_of_each_storage_class() {
    let mut probe = Probe::start(&Options::default());
    for bit in 0..64 {
        let value = 1u64 << bit;
        probe.drive("loop64_i", value);
        probe.drive("loop32_i", value as u32);
        probe.drive("loop11_i", value as u16);
        probe.drive("loop1_i", value & 1 != 0);
        probe.run(4).expect("runs");
        assert_eq!(probe.read::<u64>("loop64_o"), value);
        assert_eq!(probe.read::<u32>("loop32_o"), value as u32);
        assert_eq!(probe.read::<u16>("loop11_o"), value as u16 & 0x7ff);
        assert_eq!(probe.read::<bool>("loop1_o"), value & 1 != 0);
    }
}

/// Instances packed into one port, at every alignment that our shapes have and some that they don't.
#[test]
fn packed_instances_are_bound_one_by_one() {
    for (port, count) in [
        ("loop512", 8),
        ("loop512", 16),
        ("loop512", 64),
        ("loop320", 5),
        ("loop320", 10),
        ("loop65", 5),
        ("loop64", 4),
    ] {
        let mut probe = Probe::start(&Options::default());
        let width = port[4..].parse::<u32>().expect("a width") / count;
        let mask = u64::MAX >> (64 - width);
        for index in 0..count {
            let pin = probe.simulation.input_of::<u64>(&format!("{port}_i"), index, count).expect("a port");
            probe.simulation.set(pin, 0x9e37_79b9_7f4a_7c15u64.rotate_left(index));
        }
        probe.run(4).expect("runs");
        for index in 0..count {
            let pin = probe.simulation.output_of::<u64>(&format!("{port}_o"), index, count).expect("a port");
            let expected = 0x9e37_79b9_7f4a_7c15u64.rotate_left(index) & mask;
            assert_eq!(probe.simulation.get(pin), expected, "{port}, instance {index} of {count}");
        }
    }
}

/// 40-bit instances lie across word borders: three words at once, at shifts 0, 8, 16, 24.
#[test]
fn straddling_instances_do_not_touch_their_neighbours() {
    let mut probe = Probe::start(&Options::default());
    let whole = probe.simulation.wide_output("loop320_o", 0, 1).expect("a port");
    let clear = probe.simulation.wide_input("loop320_i", 0, 1).expect("a port");
    for index in 0..8 {
        probe.simulation.set_bytes(&clear, &[0; 40]);
        let pin = probe.simulation.input_of::<u64>("loop320_i", index, 8).expect("a port");
        probe.simulation.set(pin, u64::MAX);
        probe.run(4).expect("runs");
        let ones: Vec<usize> = probe.simulation.bits(&whole).iter_ones().collect();
        let first = index as usize * 40;
        assert_eq!(ones, (first..first + 40).collect::<Vec<_>>(), "instance {index}");
    }
}

#[test]
fn a_wrong_name_direction_or_width_is_refused() {
    let probe = Probe::start(&Options::default());
    let simulation = &probe.simulation;
    assert_eq!(simulation.input::<bool>("nope").expect_err("unknown"), PortError::Unknown("nope".into()));
    let error = simulation.input::<bool>("loop1_o").expect_err("an output");
    assert_eq!(error.to_string(), "port `loop1_o` is an output");
    let error = simulation.output::<bool>("loop11_o").expect_err("too wide").to_string();
    assert_eq!(error, "port `loop11_o` is 11 bits wide, 11 each; at most 1 were expected");
    assert!(simulation.output_of::<u64>("loop64_o", 0, 3).is_err(), "64 bits are not three instances");
    assert!(simulation.output_of::<u64>("loop64_o", 4, 4).is_err(), "there is no fifth of four");
    assert!(simulation.wide_output("loop65_o", 0, 5).is_err(), "13 bits are no bytes");
}

#[test]
#[should_panic(expected = "a port of another simulation")]
fn a_port_serves_its_own_simulation_only() {
    let (one, two) = (Probe::start(&Options::default()), Probe::start(&Options::default()));
    let port = one.simulation.output::<bool>("loop1_o").expect("a port");
    two.simulation.get(port);
}

#[test]
fn an_assertion_is_an_error_with_time_path_and_message() {
    let mut probe = Probe::start(&Options::default());
    probe.drive::<u8>("provoke", 1);
    let error = (0..10).find_map(|_| probe.run(1).err()).expect("provoked");
    assert_eq!(error.kind, StopKind::Assertion);
    assert_eq!(error.path.as_deref(), Some("bridge_probe.inner.NeverProvoked_A"));
    assert_eq!(error.message, "provoke=0x1");
    assert_eq!(error.time_ps % 4000, 0, "at an edge of stream_clk");
    assert_eq!(error.time_ps, probe.simulation.time_ps());
    assert!(error.location.starts_with("bridge_probe.sv:"), "{}", error.location);
    // One report for each cause; the design itself goes on.
    probe.drive::<u8>("provoke", 0);
    probe.run(10).expect("no longer provoked");
}

#[test]
fn assertions_are_off_until_asked_for() {
    let mut probe = Probe::start(&Options::default());
    probe.simulation.assertions(false);
    probe.drive::<u8>("provoke", 1);
    probe.run(10).expect("off");
    probe.simulation.assertions(true);
    probe.run(10).expect_err("on");
}

#[test]
fn fatal_stop_and_finish_are_told_apart() {
    for (bit, kind, path, message) in [
        (1, StopKind::RtlFatal, Some("bridge_probe.inner"), "asked to die with provoke=0x2"),
        (2, StopKind::Finish, None, "the RTL ended the simulation"),
        (3, StopKind::Stop, None, "the RTL asked to stop"),
    ] {
        let mut probe = Probe::start(&Options::default());
        probe.drive::<u8>("provoke", 1 << bit);
        let error = (0..10).find_map(|_| probe.run(1).err()).expect("provoked");
        assert_eq!((error.kind, error.path.as_deref(), error.message.as_str()), (kind, path, message));
        assert!(error.time_ps > 0 && error.location.starts_with("bridge_probe.sv:"), "{error}");
        assert_eq!(probe.simulation.got_finish(), kind == StopKind::Finish);
    }
}

#[test]
fn logic_that_does_not_settle_ends_the_top_and_not_the_process() {
    let mut probe = Probe::start(&Options::default());
    probe.drive::<u8>("provoke", 1 << 6);
    let error = probe.run(4).expect_err("never settles");
    assert_eq!(error.kind, StopKind::Fatal);
    assert!(error.message.contains("did not converge"), "{error}");
    assert_eq!(probe.run(1).expect_err("dead").kind, StopKind::Fatal);
}

#[test]
fn prints_and_warnings_are_kept_in_order() {
    let mut probe = Probe::start(&Options { plusargs: vec!["+probe_say=42".into()], ..Options::default() });
    assert_eq!(probe.simulation.take_log(), ["probe says 42"]);
    probe.drive::<u8>("provoke", 0b11_0000);
    while probe.simulation.take_log().is_empty() {
        probe.run(1).expect("only prints");
    }
    probe.run(4).expect("only prints");
    let log = probe.simulation.take_log();
    assert!(log[0].contains("hello from bridge_probe.inner"), "{log:?}");
    assert!(log[1].contains("take care"), "{log:?}");
}

#[test]
fn the_seed_decides_what_registers_hold_before_reset() {
    let start = |seed| Probe::start(&Options { seed, ..Options::default() }).read::<u32>("unreset_o");
    assert_eq!(start(1), start(1));
    let values: Vec<u32> = (0..8).map(start).collect();
    let mut distinct = values.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 8, "{values:x?}");
}

#[test]
fn what_rtl_says_reaches_its_own_simulation_whoever_ran_before_in_the_thread() {
    /// Does the one print, and the other not? They run in turns, and nobody is asked in between.
    fn only_one_speaks(one: &mut Probe, two: &mut Probe) -> bool {
        for _ in 0..2 {
            two.run(12).expect("runs");
            one.run(12).expect("it only prints");
        }
        !one.simulation.take_log().is_empty() && two.simulation.take_log().is_empty()
    }
    let [mut one, mut two] = [(); 2].map(|()| Probe::start(&Options::default()));
    one.drive::<u8>("provoke", 1 << 4);
    assert!(only_one_speaks(&mut one, &mut two));
    // One that ends between two evaluations of another.
    let ended = Probe::start(&Options::default());
    one.run(12).expect("it only prints");
    drop(ended);
    one.run(12).expect("it only prints");
    assert!(only_one_speaks(&mut one, &mut two));
    // In a thread where another was last; and back in this one.
    let other_thread = move || {
        let mut three = Probe::start(&Options::default());
        assert!(only_one_speaks(&mut one, &mut three) && only_one_speaks(&mut one, &mut two));
        (one, two)
    };
    let (mut one, mut two) = std::thread::spawn(other_thread).join().expect("no panic");
    assert!(only_one_speaks(&mut one, &mut two));
}

#[test]
fn simulations_are_independent_of_each_other() {
    let mut one = Probe::start(&Options { seed: 1, ..Options::default() });
    let mut two = Probe::start(&Options { seed: 2, ..Options::default() });
    one.drive("loop32_i", 0x1111_1111u32);
    two.drive("loop32_i", 0x2222_2222u32);
    two.drive::<u8>("provoke", 1);
    for _ in 0..5 {
        one.run(1).expect("the other one is provoked");
        let _ = two.run(1);
    }
    assert_eq!((one.read::<u32>("loop32_o"), two.read::<u32>("loop32_o")), (0x1111_1111, 0x2222_2222));
    // And one may go on elsewhere.
    let value = std::thread::spawn(move || {
        one.drive("loop32_i", 7u32);
        one.run(5).expect("runs");
        one.read::<u32>("loop32_o")
    });
    two.drive::<u8>("provoke", 0);
    two.run(5).expect("runs");
    assert_eq!(value.join().expect("no panic"), 7);
}

/// fst files begin with a header block: type 0, length 329, then start and end time, big-endian.
fn fst_times(path: &std::path::Path) -> (u64, u64) {
    let bytes = std::fs::read(path).expect("written");
    assert_eq!(bytes[0], 0, "an FST header block");
    let number = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    (number(9), number(17))
}

#[test]
fn waves_hold_their_window_and_change_nothing() {
    let dir = tempfile::tempdir().expect("temporary folder");
    let path = dir.path().join("probe.fst");
    let run = |waves| {
        let mut probe = Probe::start(&Options { waves, ..Options::default() });
        for value in 0..100u32 {
            probe.drive("loop32_i", value);
            probe.run(3).expect("runs");
        }
        (
            probe.read::<u32>("loop32_o"),
            probe.read::<u32>("unreset_o"),
            probe.simulation.time_ps(),
            probe.clocks.evals(),
        )
    };
    let window = Window { path: path.clone(), from_ps: 100_000, until_ps: 200_000 };
    let (with, without) = (run(Some(window)), run(None));
    assert_eq!((with.0, with.1, with.2), (without.0, without.1, without.2));
    assert!(with.3 > without.3, "true clocks cost evaluations");
    let (first, last) = fst_times(&path);
    assert!((100_000..104_000).contains(&first) && (196_000..200_000).contains(&last), "{first} … {last}");
}

#[test]
fn files_that_cannot_be_written_are_said_to_be_so() {
    let mut probe = Probe::start(&Options::default());
    let nowhere = std::path::PathBuf::from("/nonexistent/folder/file");
    assert!(probe.simulation.write_coverage(&nowhere).is_err());
    assert!(probe.simulation.record(Window { path: nowhere, from_ps: 0, until_ps: u64::MAX }).is_err());
    probe.run(4).expect("the run goes on");
}

#[test]
fn coverage_counts_this_simulation_only() {
    let dir = tempfile::tempdir().expect("temporary folder");
    let count = |provoked: bool| {
        let mut probe = Probe::start(&Options::default());
        probe.drive("s_axis_tvalid", provoked);
        probe.drive("m_axis_tready", true);
        probe.run(40).expect("runs");
        let path = dir.path().join(format!("{provoked}.dat"));
        probe.simulation.write_coverage(&path).expect("writes");
        let text = std::fs::read_to_string(path).expect("written");
        let line = text.lines().find(|line| line.contains("StreamBeat_C")).expect("the cover point").to_string();
        line.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok()).expect("a count")
    };
    assert_eq!(count(false), 0);
    assert!(count(true) > 5);
}

#[test]
fn a_second_build_is_a_cache_hit() {
    tops::build_in(&probe::cache(), &probe::spec(), &|_, _, _| {}).expect("builds");
    let (library, cached) =
        tops::build_in(&probe::cache(), &probe::spec(), &|step, _, _| panic!("{step} of what is there"))
            .expect("is there");
    assert!(cached);
    assert_eq!(library.top_module(), "bridge_probe");
}

#[test]
fn the_hash_covers_contents_and_flags_but_no_place() {
    let toolchain = tops::toolchain().expect("tools");
    let builder = Builder {
        toolchain: &toolchain,
        cpp_dir: tops::crate_dir().join("cpp"),
        cache: probe::cache(),
        jobs: 1,
        progress: &|_, _, _| {},
    };
    let hash = |spec: &tops::TopSpec| builder.content_hash(spec, Kind::Loaded).expect("hashes");
    let original = hash(&probe::spec());

    let dir = tempfile::tempdir().expect("temporary folder");
    let copy = |change: &str| {
        for name in ["bridge_probe.f", "bridge_probe.sv"] {
            let text = std::fs::read_to_string(tops::crate_dir().join("tests/rtl").join(name)).expect("a file");
            std::fs::write(dir.path().join(name), text + change).expect("copied");
        }
        hash(&tops::TopSpec::new("bridge_probe", dir.path().join("bridge_probe.f")))
    };
    assert_eq!(copy(""), original);
    assert_ne!(copy("\n"), original);
    assert_ne!(hash(&probe::spec().define("X")), original);
    assert_ne!(hash(&probe::spec().parameter("P", 1)), original);
    assert_ne!(builder.content_hash(&probe::spec(), Kind::Linked).expect("hashes"), original);
}

#[test]
fn rtl_that_does_not_build_says_why_and_leaves_nothing() {
    let dir = tempfile::tempdir().expect("temporary folder");
    std::fs::write(dir.path().join("bad.f"), "bad.sv\n").expect("written");
    std::fs::write(dir.path().join("bad.sv"), "module bad (input wire a); assign b = ; endmodule\n").expect("written");
    let error = tops::build_in(&probe::cache(), &tops::TopSpec::new("bad", dir.path().join("bad.f")), &|_, _, _| {})
        .expect_err("a syntax error")
        .to_string();
    assert!(error.contains("Verilating bad failed") && error.contains("bad.sv:1"), "{error}");
    let left = std::fs::read_dir(probe::cache()).expect("the cache").filter_map(Result::ok);
    let own = format!(".{}.tmp", std::process::id());
    assert!(!left.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().ends_with(&own)));
}

#[test]
fn cleaning_takes_what_is_ours_and_leaves_what_is_linked() {
    let dir = tempfile::tempdir().expect("temporary folder");
    let names = ["0123456789abcdef01234567", "0123456789abcdef01234568", "0123456789abcdef01234567.99.tmp", "photos"];
    for name in names {
        std::fs::create_dir(dir.path().join(name)).expect("folder");
    }
    std::fs::write(dir.path().join(names[1]).join("libonic_top.a"), "").expect("file");
    assert_eq!(clean_cache(dir.path()).expect("cleans"), 2);
    let left = |name: &str| dir.path().join(name).exists();
    assert!(left(names[1]) && left("photos") && !left(names[0]) && !left(names[2]));
    assert_eq!(clean_cache(&dir.path().join("absent")).expect("nothing to do"), 0);
}

/// The three ways to run the same pins end in the same state.
#[test]
fn a_recording_plays_from_rust_and_from_cpp() {
    let library = probe::library();
    let start = || library.start(&Options { seed: 5, ..Options::default() }).expect("starts");
    let mut probe = Probe { simulation: start(), clocks: Default::default() };
    probe.simulation.record_pins();
    probe.add_clocks();
    probe.reset();
    for n in 0..50u32 {
        probe.drive("loop32_i", n * n);
        probe.drive("loop1_i", n % 3 == 0);
        let wide = probe.simulation.wide_input("loop512_i", 0, 1).expect("a port");
        probe.simulation.set_bytes(&wide, &n.to_le_bytes());
        probe.run(3).expect("runs");
    }
    let recording = probe.simulation.take_recording();
    assert_eq!(recording.evals() as u64, probe.clocks.evals());
    assert_eq!(recording.end_ps(), probe.simulation.time_ps());

    let mut from_rust = start();
    from_rust.assertions(true);
    let mut ended = [0; 2];
    recording.play(&mut from_rust, 7, || ended[0] += 1).expect("runs");
    let mut from_cpp = start();
    BareLoop::new(&recording, &from_cpp, 7).run(&mut from_cpp, || ended[1] += 1).expect("runs");
    assert_eq!(ended, [7, 7]);
    assert_eq!(from_rust.outputs(), probe.simulation.outputs());
    assert_eq!(from_cpp.outputs(), probe.simulation.outputs());
}

#[test]
fn a_bare_loop_stops_at_an_assertion() {
    let mut probe = Probe::start(&Options::default());
    probe.simulation.record_pins();
    probe.drive::<u8>("provoke", 1);
    let _ = probe.run(20);
    let recording = probe.simulation.take_recording();
    let mut simulation = probe::library().start(&Options::default()).expect("starts");
    simulation.assertions(true);
    let error = BareLoop::new(&recording, &simulation, 1).run(&mut simulation, || {}).expect_err("provoked");
    assert_eq!(error.kind, StopKind::Assertion);
}

#[test]
fn many_pins_are_asked_at_once() {
    let mut probe = Probe::start(&Options::default());
    let names = ["s_axis_tready", "m_axis_tvalid", "m_axis_tlast", "s_axil_bvalid", "s_axil_rvalid", "loop1_o"];
    let pins = names.map(|name| probe.simulation.output::<bool>(name).expect("a port"));
    let all = probe.simulation.any_of(&pins).expect("bytes");
    let quiet = probe.simulation.any_of(&pins[1..]).expect("bytes");
    for round in 0..40 {
        probe.drive("loop1_i", round % 3 == 0);
        probe.drive("s_axis_tvalid", round % 7 == 0);
        probe.drive("m_axis_tready", round % 5 < 3);
        probe.run(3).expect("runs");
        let one_by_one = |pins: &[_]| pins.iter().any(|&pin| probe.simulation.get(pin));
        assert_eq!(probe.simulation.any(&all), one_by_one(&pins), "round {round}");
        assert_eq!(probe.simulation.any(&quiet), one_by_one(&pins[1..]), "round {round}");
    }
    let wide = probe.simulation.output_of::<bool>("loop512_o", 0, 512).expect("a port");
    assert!(probe.simulation.any_of(&[wide]).is_none());
}
