//! A card that writes what it likes: indices, lengths, colors, error bits. The driver never panics, never hands a page over
//! twice or out of bounds (the mock would panic), ends with a queue error, and a good frame passes after a restart.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{Mock, config, driver_up, numbered};
use driver_core::{Driver, QueueFault, QueueState, TxError};
use proptest::prelude::*;

const ENTRIES: u16 = 16;

fn setup() -> (Arc<Mock>, Driver<Mock>) {
    let mock = Mock::new(10);
    let driver = driver_up(&mock, config(1, ENTRIES));
    mock.state().lies = true;
    (mock, driver)
}

fn good_frame_passes(mock: &Arc<Mock>, driver: &mut Driver<Mock>) {
    assert!(mock.receive(0, &numbered(3, 60)));
    let mut seen = 0;
    driver.rx(0).unwrap().poll(64, |frame| seen += usize::from(frame.segment(0) == numbered(3, 60))).unwrap();
    assert_eq!(seen, 1);
    let tx = driver.tx(0).unwrap();
    tx.post(&numbered(4, 60)).unwrap();
    tx.flush().unwrap();
    assert_eq!(mock.transmit(0, 9), [numbered(4, 60)]);
    assert_eq!(tx.reap(), Ok(1));
}

/// A completion as the card writes it.
fn completion(color: bool, err: bool, qid: u16, len: u16) -> u64 {
    u64::from(color) << 1 | u64::from(err) << 2 | u64::from(qid) << 16 | u64::from(len) << 32
}

fn rx_fault(mock: &Arc<Mock>, driver: &mut Driver<Mock>) -> Option<QueueFault> {
    let result = driver.rx(0).unwrap().poll(64, |frame| {
        // Whatever is handed up can be read whole.
        assert_eq!(frame.segments().map(<[u8]>::len).sum::<usize>(), frame.len_bytes());
    });
    let fault = result.err()?;
    let rx = driver.rx(0).unwrap();
    assert_eq!(rx.state(), QueueState::Faulted(fault));
    assert_eq!(rx.poll(64, |_| panic!("a frame of a failed queue")), Err(fault), "a fault stays");
    driver.restart_rx(0).unwrap();
    good_frame_passes(mock, driver);
    Some(fault)
}

#[test]
fn each_lie_has_its_fault() {
    let posted = ENTRIES - 2;
    let length = |len_bytes, descriptors| QueueFault::Length { cidx: 0, len_bytes, descriptors, outstanding: posted };
    for (raw, fault) in [
        (completion(true, true, 0, 60), QueueFault::Completion { cidx: 0 }),
        (completion(true, false, 5, 60), QueueFault::WrongQueue { cidx: 0, qid: 5, expected: 0 }),
        (completion(true, false, 0, 0), length(0, 0)),
        (completion(true, false, 0, posted * 2048 + 1), length(posted * 2048 + 1, posted + 1)),
        (completion(true, false, 0, u16::MAX), length(u16::MAX, 32)),
    ] {
        let (mock, mut driver) = setup();
        mock.poke_completion(0, 0, raw);
        assert_eq!(rx_fault(&mock, &mut driver), Some(fault));
    }
    for (raw, fault) in [
        (u64::from(ENTRIES - 1), QueueFault::IndexRange { index: ENTRIES - 1, wrap: ENTRIES - 1 }),
        (0xFFFF, QueueFault::IndexRange { index: 0xFFFF, wrap: ENTRIES - 1 }),
        (1 << 35, QueueFault::Status { code: 1 }),
        (2 << 35, QueueFault::Status { code: 2 }),
        (3 << 35, QueueFault::Status { code: 3 }),
    ] {
        let (mock, mut driver) = setup();
        mock.poke_rx_status(0, raw);
        assert_eq!(rx_fault(&mock, &mut driver), Some(fault));
    }
}

#[test]
fn a_frame_that_was_there_before_the_lie_is_handed_up() {
    let (mock, mut driver) = setup();
    assert!(mock.receive(0, &numbered(1, 60)));
    mock.poke_completion(0, 1, completion(true, true, 0, 60));
    let mut seen = 0;
    let result = driver.rx(0).unwrap().poll(64, |_| seen += 1);
    assert_eq!((result, seen), (Err(QueueFault::Completion { cidx: 1 }), 1));
    assert_eq!(driver.rx(0).unwrap().counters().frames, 1);
}

/// The status says that there are completions, but their color says not: they are not touched, however long it lasts.
#[test]
fn a_wrong_color_is_never_accepted() {
    let (mock, mut driver) = setup();
    for lap in 0..4 {
        let (index, color) = mock.next_completion(0);
        mock.poke_completion(0, index, completion(!color, false, 0, 60));
        mock.poke_rx_status(0, u64::from((index + 1) % (ENTRIES - 1)) | u64::from(color) << 32);
        for _ in 0..100 {
            assert_eq!(driver.rx(0).unwrap().poll(64, |_| panic!("lap {lap}: a frame")), Ok(0));
        }
        // The rest of the lap, honestly.
        for _ in 0..ENTRIES - 1 {
            assert!(mock.receive(0, &numbered(0, 60)));
            assert_eq!(driver.rx(0).unwrap().poll(64, |_| {}), Ok(1));
        }
    }
}

/// Claims of more frames than there were buffers end with a fault, not with a page used twice.
#[test]
fn completions_without_buffers_are_refused() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 400));
    mock.state().lies = true;
    // 398 buffers, credits every 64 completions: 14 completions of 31 buffers outrun them.
    for index in 0..14 {
        mock.poke_completion(0, index, completion(true, false, 0, 31 * 2048));
    }
    let left = 398 - 12 * 31;
    let fault = QueueFault::Length { cidx: 12, len_bytes: 31 * 2048, descriptors: 31, outstanding: left };
    assert_eq!(rx_fault(&mock, &mut driver), Some(fault));
}

/// A QDMA spreads one frame over 31 buffers at most (`spec/qdma.md` 5.3), however many are posted.
#[test]
fn a_frame_of_32_buffers_is_refused() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 64));
    mock.state().lies = true;
    let len_bytes = 31 * 2048 + 1;
    mock.poke_completion(0, 0, completion(true, false, 0, len_bytes));
    let fault = QueueFault::Length { cidx: 0, len_bytes, descriptors: 32, outstanding: 62 };
    assert_eq!(rx_fault(&mock, &mut driver), Some(fault));
}

#[test]
fn a_tx_index_that_cannot_be_stops_the_queue() {
    for (raw, fault) in [
        (15 << 16, QueueFault::IndexRange { index: 15, wrap: 15 }),
        (0xFFFF << 16, QueueFault::IndexRange { index: 0xFFFF, wrap: 15 }),
        (5 << 16, QueueFault::IndexJump { from: 2, to: 5, moved: 3, outstanding: 2 }),
        // Backwards, B-28.
        (1 << 16, QueueFault::IndexJump { from: 2, to: 1, moved: 14, outstanding: 2 }),
        (3 << 16 | 1, QueueFault::Status { code: 1 }),
    ] {
        let (mock, mut driver) = setup();
        let tx = driver.tx(0).unwrap();
        for n in 0..4 {
            tx.post(&numbered(n, 60)).unwrap();
        }
        tx.flush().unwrap();
        mock.transmit(0, 2);
        assert_eq!(tx.reap(), Ok(2));
        mock.poke_tx_status(0, raw);
        assert_eq!(tx.reap(), Err(fault));
        assert_eq!(tx.post(&[1; 60]), Err(TxError::Fault(fault)));
        driver.restart_tx(0).unwrap();
        assert_eq!(driver.tx_totals().abandoned, 2);
        good_frame_passes(&mock, &mut driver);
        driver.remove().unwrap();
        mock.assert_clean();
    }
}

/// An index may not pass what was published, even if more is posted.
#[test]
fn unpublished_descriptors_cannot_be_done() {
    let (mock, mut driver) = setup();
    let tx = driver.tx(0).unwrap();
    tx.post(&numbered(0, 60)).unwrap();
    mock.poke_tx_status(0, 2 << 16);
    // `reap` publishes first: one is outstanding then.
    assert_eq!(tx.reap(), Err(QueueFault::IndexJump { from: 0, to: 2, moved: 2, outstanding: 1 }));
}

/// What a hostile card does to a run.
#[derive(Clone, Copy, Debug)]
enum Evil {
    Good {
        len: usize,
    },
    Completion {
        at: u16,
        flip: u64,
    },
    RawCompletion {
        at: u16,
        raw: u64,
    },
    /// The next entry, right but for its length.
    Length(u16),
    RxStatus(u64),
    TxStatus(u64),
    Post,
    Send {
        max: usize,
    },
}

fn evil() -> impl Strategy<Value = Evil> {
    prop_oneof![
        6 => (1usize..1514).prop_map(|len| Evil::Good { len }),
        // Mutations of a valid entry: one or two bits.
        2 => (0..ENTRIES - 1, 0u32..64, 0u32..64).prop_map(|(at, a, b)| Evil::Completion { at, flip: 1 << a | 1 << b }),
        1 => (0..ENTRIES - 1, any::<u64>()).prop_map(|(at, raw)| Evil::RawCompletion { at, raw }),
        2 => prop_oneof![Just(0), any::<u16>()].prop_map(Evil::Length),
        1 => any::<u64>().prop_map(Evil::RxStatus),
        1 => (0u64..32).prop_map(Evil::RxStatus),
        1 => any::<u64>().prop_map(Evil::TxStatus),
        1 => (0u64..20).prop_map(|cidx| Evil::TxStatus(cidx << 16)),
        3 => Just(Evil::Post),
        2 => (0usize..5).prop_map(|max| Evil::Send { max }),
    ]
}

/// One case; returns the faults that it met.
fn run(evils: &[Evil]) -> Vec<QueueFault> {
    let (mock, mut driver) = setup();
    let mut faults = Vec::new();
    for evil in evils {
        match *evil {
            Evil::Good { len } => {
                mock.receive(0, &numbered(1, len));
            }
            Evil::Completion { at, flip } => {
                let (_, color) = mock.next_completion(0);
                mock.poke_completion(0, at, completion(color, false, 0, 60) ^ flip);
            }
            Evil::Length(len) => {
                let (at, color) = mock.next_completion(0);
                mock.poke_completion(0, at, completion(color, false, 0, len));
            }
            Evil::RawCompletion { at, raw } => mock.poke_completion(0, at, raw),
            Evil::RxStatus(raw) => mock.poke_rx_status(0, raw),
            Evil::TxStatus(raw) => mock.poke_tx_status(0, raw),
            Evil::Post => {
                let _ = driver.tx(0).unwrap().post(&numbered(2, 100));
            }
            Evil::Send { max } => {
                mock.transmit(0, max);
            }
        }
        if let Err(fault) = driver.rx(0).unwrap().poll(8, |frame| assert!(frame.len_bytes() > 0)) {
            faults.push(fault);
            driver.restart_rx(0).unwrap();
        }
        if let Err(fault) = driver.tx(0).unwrap().reap() {
            faults.push(fault);
            driver.restart_tx(0).unwrap();
        }
    }
    // After the storm: both queues afresh, and honest frames pass.
    driver.restart_rx(0).unwrap();
    driver.restart_tx(0).unwrap();
    good_frame_passes(&mock, &mut driver);
    driver.remove().unwrap();
    mock.assert_clean();
    faults
}

fn name(fault: &QueueFault) -> &'static str {
    match fault {
        QueueFault::Status { .. } => "Status",
        QueueFault::IndexRange { .. } => "IndexRange",
        QueueFault::IndexJump { .. } => "IndexJump",
        QueueFault::Completion { .. } => "Completion",
        QueueFault::Length { .. } => "Length",
        QueueFault::WrongQueue { .. } => "WrongQueue",
        QueueFault::Page(_) => "Page",
        QueueFault::Doorbell(_) => "Doorbell",
    }
}

#[test]
fn any_storm_ends_in_faults_and_never_in_a_panic() {
    let mut reached = BTreeMap::<&str, u32>::new();
    let config = ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let counts = std::cell::RefCell::new(&mut reached);
    runner
        .run(&prop::collection::vec(evil(), 1..100), |evils| {
            for fault in run(&evils) {
                *counts.borrow_mut().entry(name(&fault)).or_default() += 1;
            }
            Ok(())
        })
        .unwrap();
    println!("faults reached: {reached:?}");
    for variant in ["Status", "IndexRange", "IndexJump", "Completion", "Length", "WrongQueue"] {
        assert!(reached.get(variant).is_some_and(|count| *count >= 20), "{variant} is hardly reached: {reached:?}");
    }
}
