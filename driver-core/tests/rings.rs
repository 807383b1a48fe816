//! Rings under an honest card: every frame once, in order, whole; wrap, full, budget, doorbells, pages.

mod common;

use std::collections::VecDeque;

use common::{Faults, Mock, config, driver_up, numbered};
use driver_core::{
    DeviceConfig, DmaError, DmaMemory, Driver, HEADROOM_BYTES, Page, QueueState, RxQueue, TableEntry, TxError, TxFlow,
};
use proptest::prelude::*;

const SIZES: [u16; 12] = [4, 5, 6, 7, 8, 16, 64, 65, 255, 1023, 1024, 4096];

/// Poll until nothing is left, and return the frames.
fn poll_all<S: driver_core::PageSource<Mock>>(rx: &mut RxQueue<Mock, S>, budget: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    loop {
        let done = rx
            .poll(budget, |frame| {
                let mut bytes = Vec::new();
                frame.append_to(&mut bytes);
                frames.push(bytes);
            })
            .expect("an honest card");
        if done < budget {
            return frames;
        }
    }
}

// ---- receive

#[test]
fn rings_of_any_size_wrap_over_many_laps() {
    for entries in SIZES {
        let mock = Mock::new(10);
        let mut driver = driver_up(&mock, config(1, entries));
        let rx = driver.rx(0).unwrap();
        let (mut sent, mut expected) = (0, 0);
        // Without pause: as many as fit, then all out, at three laps and a bit of phase shift each time.
        while sent < 3 * u32::from(entries) + 7 {
            while mock.receive(0, &numbered(sent, 60)) {
                sent += 1;
            }
            for frame in poll_all(rx, 64) {
                assert_eq!(frame, numbered(expected, 60), "ring of {entries}");
                expected += 1;
            }
        }
        assert_eq!(expected, sent, "ring of {entries}");
        drop(driver);
        mock.assert_clean();
    }
}

#[test]
fn a_ring_lends_out_two_less_than_its_entries() {
    for entries in SIZES {
        let mock = Mock::new(10);
        let _driver = driver_up(&mock, config(1, entries));
        assert_eq!(mock.buffers(0), entries - 2);
        let taken = (0..).take_while(|n| mock.receive(0, &numbered(*n, 60))).count();
        assert_eq!(taken, usize::from(entries - 2));
    }
}

fn receive_numbered(entries: u16, frames: u32) {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, entries));
    let rx = driver.rx(0).unwrap();
    let (mut sent, mut next) = (0, 0);
    while next < frames {
        // Bursts of 1 to 97 frames, so that every phase of ring and burst meets.
        for _ in 0..1 + sent % 97 {
            if sent == frames || !mock.receive(0, &numbered(sent, 60)) {
                break;
            }
            sent += 1;
        }
        rx.poll(64, |frame| {
            assert_eq!(frame.segment(0), numbered(next, 60), "frame {next}");
            assert_eq!(frame.pkt_id(), (next + 1) as u16, "packet ids wrap at 16 bits");
            next += 1;
        })
        .expect("an honest card");
    }
    assert_eq!((next, rx.counters().frames), (frames, u64::from(frames)));
    assert!(!rx.has_pending());
}

#[test]
fn seventy_thousand_frames_arrive_in_order() {
    receive_numbered(64, 70_000);
}

#[test]
fn twice_seventy_thousand_frames_arrive_in_order() {
    receive_numbered(4096, 140_000);
}

#[test]
fn a_frame_of_several_buffers_is_one_frame() {
    let mock = Mock::new(10);
    let jumbo =
        DeviceConfig { rx_buffer: TableEntry::Value(512), max_frame_len_bytes: 9596, mtu: 9000, ..config(1, 64) };
    let mut driver = driver_up(&mock, jumbo);
    let rx = driver.rx(0).unwrap();
    for (n, len) in (0..).zip([1, 511, 512, 513, 1024, 1025, 9596, 60, 9596, 9596]) {
        assert!(mock.receive(0, &numbered(n, len)));
        let mut seen = 0;
        rx.poll(64, |frame| {
            assert_eq!(frame.segment_count(), len.div_ceil(512));
            assert_eq!(frame.segments().map(<[u8]>::len).sum::<usize>(), len);
            let mut bytes = Vec::new();
            frame.append_to(&mut bytes);
            assert_eq!(bytes, numbered(n, len));
            seen += 1;
        })
        .unwrap();
        assert_eq!(seen, 1);
    }
}

/// The longest frame needs all buffers of the ring: none may be held back from the card.
#[test]
fn a_ring_that_just_holds_the_longest_frame_never_starves() {
    let mock = Mock::new(10);
    let tight = DeviceConfig { rx_buffer: TableEntry::Value(256), ..config(1, 8) };
    let mut driver = driver_up(&mock, tight);
    let rx = driver.rx(0).unwrap();
    for n in 0..100 {
        let len = if n % 2 == 0 { 1514 } else { 60 };
        assert!(mock.receive(0, &numbered(n, len)), "frame {n}: the card has {} buffers", mock.buffers(0));
        assert_eq!(poll_all(rx, 1).len(), 1);
    }
}

/// ONIC-02: three budgets and one frame, then silence.
#[test]
fn the_budget_is_exact_and_the_notification_is_asked_for_once() {
    let budget = 64;
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 1024));
    let rx = driver.rx(0).unwrap();
    for n in 0..3 * budget + 1 {
        assert!(mock.receive(0, &numbered(n, 60)));
    }
    mock.take_doorbells();
    let polls: Vec<usize> = (0..5).map(|_| rx.poll(budget as usize, |_| {}).unwrap()).collect();
    assert_eq!(polls, [64, 64, 64, 1, 0]);
    let cidx: Vec<u32> = mock.take_doorbells().into_iter().filter(|(at, _)| at % 16 == 12).map(|(_, v)| v).collect();
    // Credits at the end of each poll; armed (bit 28) only at the one that found the ring empty, and not again after it.
    assert_eq!(cidx, [0x0D00_0040, 0x0D00_0080, 0x0D00_00C0, 0x1D00_00C1]);
    assert!(mock.receive(0, &numbered(0, 60)));
    assert_eq!(rx.poll(64, |_| {}).unwrap(), 1);
    assert_eq!(mock.take_doorbells().last(), Some(&(0x1800C, 0x1D00_00C2)));
}

#[test]
fn a_budget_of_zero_takes_nothing() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 64));
    assert!(mock.receive(0, &numbered(0, 60)));
    mock.take_doorbells();
    assert_eq!(driver.rx(0).unwrap().poll(0, |_| panic!("a frame")), Ok(0));
    assert_eq!(mock.take_doorbells(), []);
    assert!(driver.rx(0).unwrap().has_pending());
}

/// RING-11: the frame comes between the last look and the arming doorbell. The card notifies because it is armed with
/// entries unread; the driver's part is to arm with the CIDX that it has really read.
#[test]
fn the_arming_doorbell_names_what_was_read() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 64));
    let rx = driver.rx(0).unwrap();
    assert!(mock.receive(0, &numbered(0, 60)));
    mock.take_doorbells();
    // While the sink runs, a second frame comes.
    rx.poll(64, |frame| {
        if frame.pkt_id() == 1 {
            assert!(mock.receive(0, &numbered(1, 60)));
        }
    })
    .unwrap();
    assert_eq!(mock.take_doorbells(), [(0x1800C, 0x1D00_0002)]);
}

/// The card's status and interrupt overtake the entry (relaxed ordering, B-41): without another CIDX the card would never
/// notify again, since it waits for the one that answers this notification.
#[test]
fn a_status_that_overtakes_its_entry_is_answered() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 8));
    let rx = driver.rx(0).unwrap();
    for lap in 0..3 {
        for _ in 0..7 {
            mock.take_doorbells();
            let held = mock.receive_late(0, &numbered(lap, 60));
            assert_eq!(rx.poll(64, |_| panic!("a frame that is not there yet")), Ok(0));
            let doorbells = mock.take_doorbells();
            assert!(matches!(doorbells[..], [(0x1800C, value)] if value >> 28 == 1), "{doorbells:x?}");
            mock.poke_completion(0, held.0, held.1);
            assert_eq!(rx.poll(64, |frame| assert_eq!(frame.segment(0), numbered(lap, 60))), Ok(1));
        }
    }
    // And a status that lags behind what the colors said asks for nothing.
    mock.take_doorbells();
    assert_eq!(rx.poll(64, |_| {}), Ok(0));
    assert_eq!(mock.take_doorbells(), []);
}

#[test]
fn pages_are_used_again_in_place() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 64));
    let rx = driver.rx(0).unwrap();
    let before = mock.state().allocations;
    for n in 0..10_000 {
        assert!(mock.receive(0, &numbered(n, 60)));
        assert_eq!(rx.poll(64, |_| {}), Ok(1));
    }
    assert_eq!(mock.state().allocations, before, "a steady state allocates nothing");
}

#[test]
fn a_kept_page_is_replaced_and_comes_back() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 16));
    let rx = driver.rx(0).unwrap();
    let mut kept = VecDeque::new();
    for n in 0..1000 {
        assert!(mock.receive(0, &numbered(n, 100)));
        rx.poll(64, |frame| {
            let page = frame.take(0).expect("memory");
            assert_eq!(page.offset, usize::from(HEADROOM_BYTES));
            assert!(frame.take(0).is_err(), "a page is taken once");
            assert_eq!(frame.segment(0), [], "a taken page is not seen any more");
            kept.push_back((n, page));
        })
        .unwrap();
        if kept.len() > 8 {
            let (n, page) = kept.pop_front().unwrap();
            assert_eq!(page.bytes(), numbered(n, 100), "a kept page is left alone by the card");
            rx.give_back(page.page);
        }
    }
    // 15 in the ring, 8 kept, 1 that went round.
    assert!(mock.state().pages_out <= 24, "{} pages", mock.state().pages_out);
    assert_eq!(rx.counters().pages_kept, 1000);
    for (_, page) in kept {
        rx.give_back(page.page);
    }
    driver.remove().unwrap();
    mock.assert_clean();
}

/// PP-04: memory runs out for a while. The sink can't keep pages, but frames go on and nothing is lost from the ring.
#[test]
fn without_memory_the_page_stays_in_the_ring() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 16));
    let rx = driver.rx(0).unwrap();
    mock.fail(Faults { no_memory: true, ..Faults::default() });
    for n in 0..100 {
        assert!(mock.receive(0, &numbered(n, 60)));
        rx.poll(64, |frame| {
            assert!(matches!(frame.take(0), Err(DmaError::OutOfMemory { .. })));
            assert_eq!(frame.segment(0), numbered(n, 60), "the frame can still be read");
        })
        .unwrap();
    }
    assert_eq!(rx.counters().alloc_failures, 100);
    mock.fail(Faults::default());
    assert!(mock.receive(0, &numbered(100, 60)));
    let mut page = None;
    rx.poll(64, |frame| page = frame.take(0).ok()).unwrap();
    assert_eq!(page.as_ref().map(|page| page.bytes().to_vec()), Some(numbered(100, 60)));
    mock.free_page(page.unwrap().page);
}

// ---- transmit

#[test]
fn a_full_ring_refuses_and_keeps_its_state() {
    for entries in SIZES {
        let mock = Mock::new(10);
        let mut driver = driver_up(&mock, config(1, entries));
        let tx = driver.tx(0).unwrap();
        let capacity = entries - 2;
        for n in 0..u32::from(capacity) {
            tx.post(&numbered(n, 60)).unwrap();
        }
        for _ in 0..3 {
            assert_eq!(tx.post(&numbered(9999, 60)), Err(TxError::Full { outstanding: capacity }));
        }
        assert_eq!((tx.room(), tx.counters().full), (0, 3));
        let frames = mock.transmit(0, usize::MAX);
        assert_eq!(frames, (0..u32::from(capacity)).map(|n| numbered(n, 60)).collect::<Vec<_>>());
        assert_eq!(tx.reap(), Ok(capacity));
        assert_eq!(tx.room(), capacity);
    }
}

fn transmit_numbered(entries: u16, frames: u32) {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, entries));
    let tx = driver.tx(0).unwrap();
    let (mut posted, mut next) = (0, 0);
    while next < frames {
        for _ in 0..1 + posted % 89 {
            if posted == frames || tx.post(&numbered(posted, 60)).is_err() {
                break;
            }
            posted += 1;
        }
        tx.flush().unwrap();
        for frame in mock.transmit(0, 1 + next as usize % 71) {
            assert_eq!(frame, numbered(next, 60));
            next += 1;
        }
        tx.reap().unwrap();
    }
    assert_eq!((tx.outstanding(), tx.counters().completed), (0, u64::from(frames)));
    check_tx_doorbells(&mock.take_doorbells(), entries, frames);
}

/// RING-13: each PIDX is new, they move forward only, and what they sum up to is what was posted.
fn check_tx_doorbells(doorbells: &[(u32, u32)], entries: u16, frames: u32) {
    let wrap = u32::from(entries) - 1;
    let mut total = 0;
    let mut last = 0;
    for (_, pidx) in doorbells.iter().filter(|(at, _)| at % 16 == 4) {
        let moved = (pidx + wrap - last) % wrap;
        assert!(moved > 0, "PIDX {pidx} is rung twice");
        total += moved;
        last = *pidx;
    }
    assert_eq!(total, frames, "every descriptor is published once");
}

#[test]
fn seventy_thousand_frames_leave_in_order() {
    transmit_numbered(64, 70_000);
}

#[test]
fn twice_seventy_thousand_frames_leave_in_order() {
    transmit_numbered(4096, 140_000);
}

#[test]
fn short_frames_are_padded_with_zeros() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 64));
    let tx = driver.tx(0).unwrap();
    tx.post(&[7; 1000]).unwrap();
    tx.flush().unwrap();
    mock.transmit(0, 1);
    // The second frame reuses the first one's page: the padding must not show it.
    for _ in 0..2 {
        tx.reap().unwrap();
        tx.post(&[1; 42]).unwrap();
        tx.flush().unwrap();
        let mut expected = vec![1; 42];
        expected.resize(60, 0);
        assert_eq!(mock.transmit(0, 1), [expected]);
    }
}

#[test]
fn runts_stay_runts_when_asked() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, DeviceConfig { min_tx_frame_len_bytes: 0, ..config(1, 64) });
    let tx = driver.tx(0).unwrap();
    tx.post(&[1; 14]).unwrap();
    tx.flush().unwrap();
    assert_eq!(mock.transmit(0, 1), [vec![1; 14]]);
}

/// ONIC-16: MTU + 14 goes, MTU + 15 doesn't; a VLAN tag comes on top; a new MTU counts at once.
#[test]
fn the_mtu_in_force_is_the_one_that_was_accepted() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, DeviceConfig { max_frame_len_bytes: 9614, ..config(1, 64) });
    for mtu in [1500, 1000, 68, 9600] {
        driver.set_mtu(mtu).unwrap();
        let limit = usize::from(mtu) + 14;
        let tx = driver.tx(0).unwrap();
        tx.post(&vec![1; limit]).unwrap();
        let refused = tx.post(&vec![1; limit + 1]);
        assert_eq!(refused, Err(TxError::TooLong { len_bytes: limit + 1, limit: mtu + 14 }));
        let mut tagged = vec![1; limit + 4];
        tagged[12..14].copy_from_slice(&[0x81, 0]);
        tx.post(&tagged).unwrap();
        assert!(mock.transmit(0, 9) == [vec![1; limit]], "a refusal publishes what came before");
        tx.flush().unwrap();
        assert!(mock.transmit(0, 9) == [tagged], "the tagged frame goes too");
        tx.reap().unwrap();
    }
    assert!(driver.set_mtu(9601).is_err());
    assert!(driver.set_mtu(67).is_err());
    assert_eq!(driver.config().mtu, 9600);
}

/// Slots for long frames can run out while descriptors are free: their sender is told to wait, and woken.
#[test]
fn a_sender_of_long_frames_is_woken_when_a_slot_is_free() {
    let mock = Mock::new(10);
    let jumbo = DeviceConfig { max_frame_len_bytes: 9596, mtu: 9582, ..config(1, 128) };
    let mut driver = driver_up(&mock, jumbo);
    let tx = driver.tx(0).unwrap();
    let posted = (0..).take_while(|n| tx.post(&numbered(*n, 9000)).is_ok()).count();
    assert!(
        posted < 126 && tx.room() >= tx.thresholds().wake_at,
        "{posted} frames: slots, not descriptors, are the limit"
    );
    assert!(matches!(tx.flow(), TxFlow::Stopped { .. }));
    tx.post(&numbered(0, 60)).expect("a short frame needs no slot");
    tx.flush().unwrap();
    assert_eq!((tx.reap(), tx.take_wake()), (Ok(0), false));
    mock.transmit(0, 1);
    assert_eq!((tx.reap(), tx.take_wake()), (Ok(1), true));
    assert_eq!((tx.flow(), tx.post(&numbered(1, 9000))), (TxFlow::Open, Ok(())));
}

#[test]
fn frames_longer_than_a_page_go_out_whole() {
    let mock = Mock::new(10);
    let jumbo = DeviceConfig { max_frame_len_bytes: 9596, mtu: 9582, ..config(1, 128) };
    let mut driver = driver_up(&mock, jumbo);
    let tx = driver.tx(0).unwrap();
    for n in 0..500 {
        let len = [60, 4096, 4097, 9596][n as usize % 4];
        tx.post(&numbered(n, len)).unwrap();
        tx.flush().unwrap();
        assert_eq!(mock.transmit(0, 1), [numbered(n, len)]);
    }
    // More at once than there are slots: refused, not overwritten.
    let posted = (0..100).take_while(|n| tx.post(&numbered(*n, 9000)).is_ok()).count();
    assert_eq!(posted, 32);
    let frames = mock.transmit(0, usize::MAX);
    assert_eq!(frames, (0..32).map(|n| numbered(n, 9000)).collect::<Vec<_>>());
}

#[test]
fn empty_frames_and_ranges_outside_the_page_are_refused() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 64));
    let tx = driver.tx(0).unwrap();
    assert!(matches!(tx.post(&[]), Err(TxError::Range { .. })));
    let mut page = mock.alloc_page().unwrap();
    for (offset, len) in [(0, 0), (4000, 97), (usize::MAX, 2), (0, 1515)] {
        let refused = tx.post_page(page, offset, len).expect_err("refused");
        assert!(matches!(refused.cause, TxError::Range { .. } | TxError::TooLong { .. }));
        page = refused.page;
    }
    mock.free_page(page);
    assert_eq!((tx.outstanding(), tx.counters().refused), (0, 5));
}

#[test]
fn a_lent_page_goes_out_and_comes_back() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 64));
    let tx = driver.tx(0).unwrap();
    let mut page = mock.alloc_page().unwrap();
    page.bytes_mut()[256..356].fill(9);
    tx.post_page(page, 256, 100).unwrap();
    tx.flush().unwrap();
    assert_eq!(mock.transmit(0, 1), [vec![9; 100]]);
    let mut back = Vec::new();
    tx.reap_with(|page| back.push(page)).unwrap();
    assert_eq!(back.len(), 1);
    assert_eq!(back[0].dma_addr(), None, "mapped for the frame only");
    mock.free_page(back.pop().unwrap());
}

/// A page that was received and kept is sent again with its mapping, the way XDP_TX will do.
#[test]
fn a_received_page_can_be_sent() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 64));
    let mut kept = None;
    assert!(mock.receive(0, &numbered(5, 60)));
    driver.rx(0).unwrap().poll(64, |frame| kept = frame.take(0).ok()).unwrap();
    let kept = kept.unwrap();
    let tx = driver.tx(0).unwrap();
    tx.post_page(kept.page, kept.offset, kept.len_bytes).unwrap();
    tx.flush().unwrap();
    assert_eq!(mock.transmit(0, 1), [numbered(5, 60)]);
    let mut back = None;
    tx.reap_with(|page| back = Some(page)).unwrap();
    driver.rx(0).unwrap().give_back(back.unwrap());
    driver.remove().unwrap();
    mock.assert_clean();
}

#[test]
fn no_memory_refuses_the_frame_and_publishes_the_ones_before() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 64));
    let tx = driver.tx(0).unwrap();
    tx.post(&numbered(0, 60)).unwrap();
    mock.fail(Faults { no_memory: true, ..Faults::default() });
    assert!(matches!(tx.post(&numbered(1, 60)), Err(TxError::NoPage(DmaError::OutOfMemory { .. }))));
    assert_eq!(mock.transmit(0, 9), [numbered(0, 60)]);
    assert_eq!(tx.state(), QueueState::Running);
}

// ---- against a model

/// What can happen to a TX queue.
#[derive(Clone, Copy, Debug)]
enum TxOp {
    Post { len: usize },
    Flush,
    Card { max: usize },
    Reap,
}

fn tx_op() -> impl Strategy<Value = TxOp> {
    prop_oneof![
        4 => (60usize..1514).prop_map(|len| TxOp::Post { len }),
        1 => Just(TxOp::Flush),
        2 => (0usize..40).prop_map(|max| TxOp::Card { max }),
        2 => Just(TxOp::Reap),
    ]
}

struct TxModel {
    mock: std::sync::Arc<Mock>,
    driver: Driver<Mock>,
    /// Posted and not yet sent, the first `published` of them known to the card.
    queued: VecDeque<Vec<u8>>,
    /// Sent and not yet reaped.
    sent: usize,
    capacity: usize,
    number: u32,
}

impl TxModel {
    fn apply(&mut self, op: TxOp) {
        let tx = self.driver.tx(0).unwrap();
        match op {
            TxOp::Post { len } => {
                let frame = numbered(self.number, len);
                // A full ring reaps by itself before it refuses.
                if self.queued.len() + self.sent == self.capacity {
                    self.sent = 0;
                }
                if self.queued.len() == self.capacity {
                    assert!(matches!(tx.post(&frame), Err(TxError::Full { .. })), "a full ring refuses");
                } else {
                    tx.post(&frame).expect("the model has room");
                    self.queued.push_back(frame);
                    self.number += 1;
                }
            }
            TxOp::Flush => tx.flush().unwrap(),
            TxOp::Card { max } => {
                for frame in self.mock.transmit(0, max) {
                    assert_eq!(Some(frame), self.queued.pop_front(), "in order, once, whole");
                    self.sent += 1;
                }
            }
            TxOp::Reap => {
                assert_eq!(usize::from(tx.reap().unwrap()), self.sent);
                self.sent = 0;
            }
        }
        let tx = self.driver.tx(0).unwrap();
        assert_eq!(usize::from(tx.outstanding()), self.queued.len() + self.sent);
    }
}

/// What can happen to an RX queue.
#[derive(Clone, Copy, Debug)]
enum RxOp {
    Card { len: usize },
    Poll { budget: usize },
    Keep,
    GiveBack,
}

fn rx_op() -> impl Strategy<Value = RxOp> {
    prop_oneof![
        5 => (1usize..1514).prop_map(|len| RxOp::Card { len }),
        3 => (0usize..20).prop_map(|budget| RxOp::Poll { budget }),
        1 => Just(RxOp::Keep),
        1 => Just(RxOp::GiveBack),
    ]
}

type Taken = driver_core::TakenPage<common::MockPage>;

struct RxModel {
    mock: std::sync::Arc<Mock>,
    driver: Driver<Mock>,
    coming: VecDeque<Vec<u8>>,
    /// Pages that were kept, each with what was in it then.
    kept: VecDeque<Vec<(Vec<u8>, Taken)>>,
    number: u32,
}

impl RxModel {
    fn apply(&mut self, op: RxOp) {
        let rx = self.driver.rx(0).unwrap();
        match op {
            RxOp::Card { len } => {
                let frame = numbered(self.number, len);
                if self.mock.receive(0, &frame) {
                    self.coming.push_back(frame);
                    self.number += 1;
                }
            }
            RxOp::Poll { budget } => {
                let expected = budget.min(self.coming.len());
                let done = rx.poll(budget, |frame| {
                    let mut bytes = Vec::new();
                    frame.append_to(&mut bytes);
                    assert_eq!(Some(bytes), self.coming.pop_front(), "in order, once, whole");
                });
                assert_eq!(done, Ok(expected));
            }
            RxOp::Keep => {
                rx.poll(1, |frame| {
                    self.coming.pop_front();
                    let count = frame.segment_count();
                    let take = |i| (frame.segment(i).to_vec(), frame.take(i).expect("memory"));
                    self.kept.push_back((0..count).map(take).collect());
                })
                .unwrap();
            }
            RxOp::GiveBack => {
                for (segment, page) in self.kept.pop_front().unwrap_or_default() {
                    assert_eq!(page.bytes(), segment, "the card leaves a kept page alone");
                    rx.give_back(page.page);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn tx_does_what_a_queue_does(entries in 4u16..40, ops in prop::collection::vec(tx_op(), 1..400)) {
        let mock = Mock::new(10);
        let driver = driver_up(&mock, config(1, entries.max(4)));
        let capacity = usize::from(entries) - 2;
        let mut model = TxModel { mock, driver, queued: VecDeque::new(), sent: 0, capacity, number: 0 };
        ops.into_iter().for_each(|op| model.apply(op));
        // Then all work drains.
        while !model.queued.is_empty() {
            model.apply(TxOp::Flush);
            model.apply(TxOp::Card { max: 7 });
        }
        model.apply(TxOp::Reap);
        let TxModel { mock, driver, .. } = model;
        driver.remove().unwrap();
        mock.assert_clean();
    }

    #[test]
    fn rx_does_what_a_queue_does(
        entries in 8u16..40,
        buffer in prop::sample::select(vec![256u16, 300, 512, 2048, 3520]),
        ops in prop::collection::vec(rx_op(), 1..400),
    ) {
        let mock = Mock::new(10);
        let config = DeviceConfig { rx_buffer: TableEntry::Value(buffer), ..config(1, entries) };
        let driver = driver_up(&mock, config);
        let mut model = RxModel { mock, driver, coming: VecDeque::new(), kept: VecDeque::new(), number: 0 };
        ops.into_iter().for_each(|op| model.apply(op));
        // Polls end, and the longest frame still has its buffers: safety first, then liveness.
        while !model.coming.is_empty() {
            model.apply(RxOp::Poll { budget: 5 });
        }
        prop_assert!(model.mock.receive(0, &numbered(0, 1514)));
        model.coming.push_back(numbered(0, 1514));
        model.apply(RxOp::Poll { budget: 5 });
        while !model.kept.is_empty() {
            model.apply(RxOp::GiveBack);
        }
        let RxModel { mock, driver, .. } = model;
        driver.remove().unwrap();
        mock.assert_clean();
    }
}
