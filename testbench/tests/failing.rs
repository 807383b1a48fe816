//! A run on two cards that do differ: one model's counters do not start at zero, so that its books are wrong from the first
//! frame on. Found, reduced, written, read back and failing again. (RTL that differs is the alarm tests' matter.)

mod common;

use common::Folder;
use testbench::card::Choice;
use testbench::failure;
use testbench::golden::{self, Loaded};
use testbench::golden_check;
use testbench::reduce::Budget;
use testbench::session::{self, Session, Verdict};

fn wrong_books() -> Choice {
    let mut choice = Choice::named("model");
    choice.rtl.counter_preload = Some(1_000);
    choice
}

fn vlan() -> Loaded {
    golden::load(&common::golden().join("vlan")).expect("the case")
}

fn run(session: &Session<'_>) -> Verdict {
    session::run(session, &mut |_, _, _| {}).expect("both are models")
}

#[test]
fn any_frame_is_enough_and_one_is_left() {
    let loaded = vlan();
    let session = golden_check::session(&loaded, &wrong_books());
    let verdict = run(&session);
    let kind = verdict.findings.first().expect("they differ").kind.clone();
    assert_eq!(kind, "sum", "{:?}", verdict.findings);
    let mut told = 0;
    let reduced = failure::reduce(&session, &verdict, Budget::FAILURE, &mut |runs, _| told = runs)
        .expect("a smaller input shows it");
    assert_eq!((reduced.frames.len(), reduced.least, told), (1, true, reduced.runs));
    let again = run(&Session { wire: &reduced.frames, ..session.clone() });
    assert!(again.findings.iter().any(|finding| finding.kind == kind), "{:?}", again.findings);
    assert!(
        run(&golden_check::session(&loaded, &Choice::named("model"))).agreed(),
        "and without the fault all is well"
    );
}

#[test]
fn the_smallest_input_survives_its_file() {
    let folder = Folder::new();
    let loaded = vlan();
    let session = golden_check::session(&loaded, &wrong_books());
    let reduced = failure::reduce(&session, &run(&session), Budget::FAILURE, &mut |_, _| {}).expect("smaller");
    let names = failure::save_input(&folder.path("smallest.pcapng"), &reduced.frames).expect("the folder");
    let sources: Vec<_> = names.iter().map(|name| name.as_str().into()).collect();
    let read = testbench::input::read(&sources, &session.setup.shape, testbench::input::Runts::Keep).expect("ours");
    let frames = |frames: &[testbench::run::InFrame]| frames.iter().map(|frame| frame.data.clone()).collect::<Vec<_>>();
    assert_eq!(frames(&read.frames), frames(&reduced.frames));
    let again = run(&Session { wire: &read.frames, ..session.clone() });
    assert!(!again.agreed());
}

#[test]
fn frames_of_two_ports_make_two_files() {
    let folder = Folder::new();
    let loaded = golden::load(&common::golden().join("two-ports")).expect("the case");
    let names = failure::save_input(&folder.path("x.pcapng"), &loaded.input.frames).expect("the folder");
    assert!(names[0].ends_with("x.pcapng") && names[1].ends_with("x-port1.pcapng@1"), "{names:?}");
    let sources: Vec<_> = names.iter().map(|name| name.as_str().into()).collect();
    let read = testbench::input::read(&sources, &loaded.setup.shape, testbench::input::Runts::Keep).expect("ours");
    let of_port = |frames: &[testbench::run::InFrame], port| {
        frames.iter().filter(|f| f.port.0 == port).map(|f| f.data.clone()).collect::<Vec<_>>()
    };
    for port in 0..2 {
        assert_eq!(of_port(&read.frames, port), of_port(&loaded.input.frames, port));
    }
}
