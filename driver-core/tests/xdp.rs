//! Compiled programs in a queue's way: real objects on frames that a card has written. What they do is read off their
//! sources in `xdp-vm/programs`.

mod common;

use std::sync::Arc;

use common::{Mock, config, numbered};
use driver_core::hook::XdpHook;
use driver_core::xdp::{AttachError, Program, ProgramCounters, fits};
use driver_core::{BufferGeometry, DeviceConfig, Direction, Driver, KeptPages, RxCounters, TableEntry, WEIGHT};
use xdp_vm::{ANY, Loader, Target, XdpObject};

macro_rules! program {
    ($object:literal, $loader:expr) => {{
        let file = include_bytes!(concat!("../../xdp-vm/programs/", $object));
        let object = XdpObject::parse($object, file).expect("an object");
        Program::<Mock>::new($loader.load(&object).expect("it loads"), 7)
    }};
}

fn driver(mock: &Arc<Mock>, config: DeviceConfig) -> Driver<Mock> {
    let mut driver = Driver::bring_up(Arc::clone(mock), config).expect("bring-up");
    driver.up_with(|_| KeptPages::bidirectional()).expect("up");
    driver
}

/// A frame for `steer.c`, which looks at the first two bytes.
fn steered(way: u8, to: u8) -> Vec<u8> {
    let mut frame = vec![0xee; 60];
    frame[..2].copy_from_slice(&[way, to]);
    frame
}

/// Put frames through a program on queue 0: what passed, and what the queue counted.
fn run(program: &mut Program<Mock>, frames: &[Vec<u8>]) -> (Vec<Vec<u8>>, RxCounters, Vec<Vec<u8>>) {
    let mock = Mock::new(10);
    let mut driver = driver(&mock, config(1, 64));
    let pair = driver.pair(0).expect("a pair");
    frames.iter().for_each(|frame| assert!(mock.receive(0, frame)));
    let mut passed = Vec::new();
    let polled = pair.poll(WEIGHT, program, |frame| {
        let mut bytes = Vec::new();
        frame.append_to(&mut bytes);
        passed.push(bytes);
    });
    assert_eq!(polled.received, Ok(frames.len()));
    let (counters, sent) = (pair.rx.counters(), mock.transmit(0, 99));
    while let Some(redirected) = program.take_redirected() {
        pair.rx.give_back(redirected.frame.page);
    }
    let _ = pair.poll(WEIGHT, program, |_| {});
    driver.remove().expect("it goes");
    mock.assert_clean();
    (passed, counters, sent)
}

#[test]
fn a_program_that_passes_hands_frames_up_as_they_came() {
    let frames = [numbered(1, 60), numbered(2, 900)];
    let (passed, counters, _) = run(&mut program!("pass.o", Loader::new()), &frames);
    assert_eq!((passed, counters.xdp_pass), (frames.to_vec(), 2));
}

#[test]
fn a_program_that_drops_leaves_nothing() {
    let (passed, counters, _) = run(&mut program!("drop.o", Loader::new()), &[numbered(1, 60)]);
    assert_eq!((passed.len(), counters.xdp_drop, counters.xdp_aborted), (0, 1, 0));
}

#[test]
fn what_is_sent_back_has_the_bytes_that_the_program_wrote() {
    let frame: Vec<u8> = (0..64).collect();
    let (_, counters, sent) = run(&mut program!("macswap.o", Loader::new()), std::slice::from_ref(&frame));
    assert_eq!((sent, counters.xdp_tx), (vec![[&frame[6..12], &frame[..6], &frame[12..]].concat()], 1));
}

/// `vlan.c` push: four bytes more in front, the addresses moved, tag 0x8100 with VLAN 42 behind them.
#[test]
fn a_frame_that_grows_in_front_is_sent_longer() {
    let mut frame: Vec<u8> = (0..64).collect();
    frame[12..14].copy_from_slice(&[8, 0]);
    let (_, _, sent) = run(&mut program!("vlan.o", Loader::new().program("push")), std::slice::from_ref(&frame));
    assert_eq!(sent, [[&frame[..12], &[0x81, 0, 0, 42], &frame[12..]].concat()]);
}

#[test]
fn redirected_frames_wait_with_their_target_and_queue() {
    let mut program = program!("steer.o", Loader::new().cpus(2));
    program.vm().map_mut("sockets").expect("a map").update(&[0; 4], &[9, 0, 0, 0], ANY).expect("room");
    let mock = Mock::new(10);
    let mut driver = driver(&mock, config(1, 64));
    let pair = driver.pair(0).expect("a pair");
    for frame in [steered(0, 17), steered(4, 0)] {
        assert!(mock.receive(0, &frame));
    }
    let polled = pair.poll(WEIGHT, &mut program, |_| panic!("none passes"));
    assert_eq!((polled.received, pair.rx.counters().xdp_redirect, program.redirected()), (Ok(2), 2, 2));
    let first = program.take_redirected().expect("a frame");
    assert_eq!((first.target, first.rel_qid), (Target::Interface { ifindex: 17 }, 0));
    assert_eq!(first.frame.bytes(), steered(0, 17));
    let second = program.take_redirected().expect("another");
    assert!(matches!(second.target, Target::Socket { key: 0, socket: 9, .. }));
    for frame in [first.frame, second.frame] {
        pair.rx.give_back(frame.page);
    }
    driver.remove().expect("it goes");
    mock.assert_clean();
}

/// As frames of one poll that nobody takes: the next poll's are refused, and their pages stay.
#[test]
fn frames_that_nobody_takes_are_redirect_errors() {
    let mut program = program!("steer.o", Loader::new());
    let mock = Mock::new(10);
    let mut driver = driver(&mock, config(1, 256));
    let pair = driver.pair(0).expect("a pair");
    (0..WEIGHT + 3).for_each(|_| assert!(mock.receive(0, &steered(0, 17))));
    while pair.poll(WEIGHT, &mut program, |_| {}).received != Ok(0) {}
    let counters = pair.rx.counters();
    assert_eq!((counters.xdp_redirect, counters.xdp_redirect_errors), (WEIGHT as u64, 3));
    while let Some(redirected) = program.take_redirected() {
        pair.rx.give_back(redirected.frame.page);
    }
    driver.remove().expect("it goes");
    mock.assert_clean();
}

#[test]
fn what_the_verifier_would_refuse_is_aborted_and_told() {
    let mut program = program!("rejects.o", Loader::new().program("walk"));
    let (passed, counters, _) = run(&mut program, &[numbered(1, 60)]);
    assert_eq!((passed.len(), counters.xdp_drop, counters.xdp_aborted), (0, 1, 1));
    assert_eq!(program.counters().faults, 1);
    let fault = program.take_fault().expect("one");
    assert!(program.vm().describe(fault).to_string().contains("rejects.c:58"));
    assert_eq!(program.take_fault(), None);
}

#[test]
fn no_target_and_no_action_are_counted_apart_from_faults() {
    let mut program = program!("steer.o", Loader::new());
    // 9 returns XDP_REDIRECT without a target, 200 is no action.
    let (_, counters, _) = run(&mut program, &[steered(9, 0), steered(200, 0)]);
    assert_eq!((counters.xdp_aborted, program.counters().invalid, program.counters().faults), (2, 2, 0));
}

#[test]
fn instructions_are_counted() {
    // r0 = 2; exit: two of them.
    let mut program = program!("pass.o", Loader::new());
    run(&mut program, &[numbered(1, 60), numbered(2, 60), numbered(3, 60)]);
    let expected = ProgramCounters { runs: 3, insns: 6, insns_max: 2, ..ProgramCounters::default() };
    assert_eq!(program.counters(), expected);
}

#[test]
fn the_program_sees_queue_interface_and_time() {
    let mut program = program!("steer.o", Loader::new().cpus(4));
    program.set_time(1234);
    run(&mut program, &[steered(5, 0)]);
    let record = program.vm().map_mut("events").expect("a ring").pop_record().expect("an event").to_vec();
    assert_eq!(record, [&1234u64.to_le_bytes()[..], &60u32.to_le_bytes(), &0u32.to_le_bytes()].concat());
}

#[test]
fn a_frame_in_several_buffers_is_not_shown() {
    let mut program = program!("pass.o", Loader::new());
    let mock = Mock::new(10);
    let mut driver = driver(&mock, DeviceConfig { rx_buffer: TableEntry::Value(256), ..config(1, 16) });
    let pair = driver.pair(0).expect("a pair");
    assert!(mock.receive(0, &numbered(1, 600)));
    let _ = pair.poll(WEIGHT, &mut program, |_| panic!("nothing passes"));
    assert_eq!((program.counters().unseen, pair.rx.counters().xdp_aborted), (1, 1));
}

#[test]
fn frames_longer_than_a_buffer_refuse_a_program_with_the_limit() {
    let geometry = |hw, frame| BufferGeometry::new(4096, hw, frame).expect("a layout");
    assert_eq!(fits(geometry(2048, 1514), Direction::Bidirectional), Ok(()));
    assert_eq!(fits(geometry(2048, 2048), Direction::Bidirectional), Ok(()));
    let error = fits(geometry(2048, 2049), Direction::Bidirectional).expect_err("one byte too long");
    assert_eq!(error, AttachError::FrameTooLong { frame_len_bytes: 2049, hw_len_bytes: 2048 });
    assert!(error.to_string().contains("at most 2048"), "{error}");
    assert_eq!(fits(geometry(2048, 1514), Direction::FromDevice), Err(AttachError::OneWayPages));
}

/// A program is a hook like any other.
#[test]
fn a_program_is_a_hook() {
    fn is_hook<H: XdpHook<Mock>>(_: &H) -> bool {
        H::ACTIVE
    }
    assert!(is_hook(&program!("pass.o", Loader::new())));
}
