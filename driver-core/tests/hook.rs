//! The XDP hook: verdicts, what they do with the page, borders that can be moved, and pages that come home.

mod common;

use std::sync::Arc;

use common::{Faults, Mock, MockPage, config, numbered};
use driver_core::hook::{META_BYTES_MAX, RESERVED_BYTES};
use driver_core::{
    AdjustError, DeviceConfig, Driver, KeptPages, NoHook, RedirectTarget, RxCounters, TableEntry, TakenPage, TxError,
    TxQueue, Verdict, WEIGHT, XdpBuff, XdpFrame, XdpHook,
};
use proptest::prelude::*;

/// A driver whose pages may be sent from.
fn driver(mock: &Arc<Mock>, config: DeviceConfig) -> Driver<Mock> {
    let mut driver = Driver::bring_up(Arc::clone(mock), config).expect("bring-up");
    driver.up_with(|_| KeptPages::bidirectional()).expect("up");
    driver
}

/// A closure that is known to be a hook.
fn hook(decide: impl FnMut(&mut XdpBuff<'_, Mock>) -> Verdict) -> impl XdpHook<Mock> {
    decide
}

/// The frame's number.
fn number(data: &[u8]) -> u32 {
    u32::from_le_bytes([data[0], data[1], data[2], data[3]])
}

fn xdp(counters: RxCounters) -> [u64; 7] {
    [
        counters.xdp_pass,
        counters.xdp_drop,
        counters.xdp_tx,
        counters.xdp_tx_errors,
        counters.xdp_redirect,
        counters.xdp_redirect_errors,
        counters.xdp_aborted,
    ]
}

#[test]
fn each_verdict_is_counted_once_and_only_passed_frames_are_handed_up() {
    let mock = Mock::new(10);
    let mut driver = driver(&mock, config(1, 64));
    let pair = driver.pair(0).unwrap();
    (0..10).for_each(|n| assert!(mock.receive(0, &numbered(n, 60))));
    let mut verdicts = hook(|buff| match number(buff.data()) % 5 {
        0 => Verdict::Pass,
        1 => Verdict::Drop,
        2 => Verdict::Aborted,
        3 => Verdict::Tx,
        // A closure can't redirect.
        _ => Verdict::Redirect(RedirectTarget(3)),
    });
    let mut passed = Vec::new();
    let polled = pair.poll(WEIGHT, &mut verdicts, |frame| passed.push(number(frame.segment(0))));
    assert_eq!((polled.received, passed), (Ok(10), vec![0, 5]));
    assert_eq!(xdp(pair.rx.counters()), [2, 4, 2, 0, 0, 2, 2]);
    assert_eq!(pair.rx.counters().frames, 10);
    assert_eq!(mock.transmit(0, 9), [numbered(3, 60), numbered(8, 60)]);
    // The pages come home with the next poll, and the ring is whole.
    let _ = pair.poll(WEIGHT, &mut verdicts, |_| {});
    assert_eq!(pair.tx.outstanding(), 0);
    driver.remove().unwrap();
    mock.assert_clean();
}

#[test]
fn without_a_hook_nothing_is_counted_for_it() {
    let mock = Mock::new(10);
    let mut driver = driver(&mock, config(1, 64));
    let pair = driver.pair(0).unwrap();
    assert!(mock.receive(0, &numbered(0, 60)));
    assert_eq!(pair.poll(WEIGHT, &mut NoHook, |_| {}).received, Ok(1));
    assert_eq!(xdp(pair.rx.counters()), [0; 7]);
}

/// B-45: one doorbell a poll, however many frames it sent back.
#[test]
fn frames_sent_back_share_a_doorbell() {
    let mock = Mock::new(10);
    let mut driver = driver(&mock, config(1, 256));
    let pair = driver.pair(0).unwrap();
    (0..64).for_each(|n| assert!(mock.receive(0, &numbered(n, 60))));
    mock.take_doorbells();
    let _ = pair.poll(WEIGHT, &mut hook(|_| Verdict::Tx), |_| {});
    let rung: Vec<u32> = mock.take_doorbells().into_iter().filter(|(at, _)| *at == 0x18004).map(|(_, v)| v).collect();
    assert_eq!(rung, [64]);
}

/// B-13, 10.6: a full transmit ring leaves the page in the receive ring and counts an error; no page is lost or taken twice.
#[test]
fn a_full_transmit_ring_drops_and_counts() {
    let mock = Mock::new(10);
    let ring = DeviceConfig { tx_ring: TableEntry::Value(8), ..config(1, 64) };
    let mut driver = driver(&mock, ring);
    let pair = driver.pair(0).unwrap();
    let mut sent = 0;
    for round in 0..50 {
        (0..10).for_each(|n| assert!(mock.receive(0, &numbered(10 * round + n, 60))));
        let polled = pair.poll(WEIGHT, &mut hook(|_| Verdict::Tx), |_| panic!("a frame"));
        assert_eq!(polled.received, Ok(10));
        let frames = mock.transmit(0, 9);
        assert_eq!(frames, (0..6).map(|n| numbered(10 * round + n, 60)).collect::<Vec<_>>());
        sent += frames.len() as u64;
    }
    assert_eq!(xdp(pair.rx.counters()), [0, 0, sent, 500 - sent, 0, 0, 0]);
    // 63 in the ring, 6 under way.
    assert!(mock.state().pages_out <= 63 + 6 + 1, "{} pages", mock.state().pages_out);
    driver.remove().unwrap();
    mock.assert_clean();
}

/// B-14: no page to take the place of one that is sent: the frame is dropped and the ring stays whole.
#[test]
fn without_another_page_nothing_is_sent() {
    let mock = Mock::new(10);
    let mut driver = driver(&mock, config(1, 16));
    let pair = driver.pair(0).unwrap();
    mock.fail(Faults { no_memory: true, ..Faults::default() });
    for n in 0..40 {
        assert!(mock.receive(0, &numbered(n, 60)), "frame {n}");
        assert_eq!(pair.poll(WEIGHT, &mut hook(|_| Verdict::Tx), |_| {}).received, Ok(1));
    }
    assert_eq!(xdp(pair.rx.counters()), [0, 0, 0, 40, 0, 0, 0]);
    assert_eq!(mock.transmit(0, 99).len(), 0);
}

/// B-31: from pages that only the card may write nothing is sent.
#[test]
fn pages_of_one_direction_are_not_sent_from() {
    let mock = Mock::new(10);
    let mut driver = common::driver_up(&mock, config(1, 16));
    let pair = driver.pair(0).unwrap();
    assert!(mock.receive(0, &numbered(0, 60)));
    let _ = pair.poll(WEIGHT, &mut hook(|_| Verdict::Tx), |_| {});
    assert_eq!(xdp(pair.rx.counters()), [0, 0, 0, 1, 0, 0, 0]);
}

/// B-30: a short frame is padded, with zeros and not with what the page held.
#[test]
fn a_short_frame_is_padded() {
    let mock = Mock::new(10);
    let mut driver = driver(&mock, config(1, 16));
    let pair = driver.pair(0).unwrap();
    assert!(mock.receive(0, &[7; 100]));
    let mut shorten = hook(|buff| {
        buff.adjust_tail(-58).unwrap();
        Verdict::Tx
    });
    let _ = pair.poll(WEIGHT, &mut shorten, |_| {});
    let mut expected = vec![7; 42];
    expected.resize(60, 0);
    assert_eq!(mock.transmit(0, 9), [expected]);
}

#[test]
fn frames_of_several_buffers_are_shown_whole_and_not_sent() {
    let mock = Mock::new(10);
    let jumbo = DeviceConfig { rx_buffer: TableEntry::Value(256), ..config(1, 16) };
    let mut driver = driver(&mock, jumbo);
    let pair = driver.pair(0).unwrap();
    let mut seen = Vec::new();
    // Around the ring's end too.
    for n in 0..20 {
        assert!(mock.receive(0, &numbered(n, 1000)));
        let mut look = hook(|buff| {
            assert!(buff.is_multi_buffer());
            assert_eq!((buff.fragment_count(), buff.len_bytes()), (3, 1000));
            let mut bytes = buff.data().to_vec();
            (0..4).for_each(|i| bytes.extend_from_slice(buff.fragment(i)));
            assert_eq!(bytes, numbered(n, 1000));
            if n % 2 == 0 { Verdict::Pass } else { Verdict::Tx }
        });
        let polled = pair.poll(WEIGHT, &mut look, |frame| {
            let mut bytes = Vec::new();
            frame.append_to(&mut bytes);
            seen.push(bytes);
        });
        assert_eq!(polled.received, Ok(1));
    }
    assert_eq!(seen, (0..20).step_by(2).map(|n| numbered(n, 1000)).collect::<Vec<_>>());
    assert_eq!(xdp(pair.rx.counters()), [10, 0, 0, 10, 0, 0, 0]);
}

// ---- borders

/// Run `change` on a frame of `len` bytes in a page of its own, and return what is handed up: bytes and metadata.
fn changed(len: usize, change: impl FnMut(&mut XdpBuff<'_, Mock>)) -> (Vec<u8>, Vec<u8>) {
    changed_in(2048, len, change)
}

fn changed_in(buffer: u16, len: usize, mut change: impl FnMut(&mut XdpBuff<'_, Mock>)) -> (Vec<u8>, Vec<u8>) {
    let mock = Mock::new(10);
    let mut driver = driver(&mock, DeviceConfig { rx_buffer: TableEntry::Value(buffer), ..config(1, 16) });
    let pair = driver.pair(0).unwrap();
    assert!(mock.receive(0, &numbered(1, len)));
    let mut found = (Vec::new(), Vec::new());
    let mut run = hook(|buff| {
        change(buff);
        Verdict::Pass
    });
    let _ = pair.poll(WEIGHT, &mut run, |frame| {
        frame.append_to(&mut found.0);
        found.1.extend_from_slice(frame.meta());
        assert_eq!(frame.len_bytes(), found.0.len());
    });
    found
}

#[test]
fn a_header_is_prepended_and_another_taken_off() {
    let (bytes, _) = changed(60, |buff| {
        buff.adjust_head(-4).unwrap();
        buff.data_mut()[..4].copy_from_slice(&[0xAA; 4]);
    });
    assert_eq!((&bytes[..4], &bytes[4..]), (&[0xAA; 4][..], &numbered(1, 60)[..]));
    let (bytes, _) = changed(60, |buff| buff.adjust_head(14).unwrap());
    assert_eq!(bytes, numbered(1, 60)[14..]);
}

#[test]
fn a_frame_can_not_grow_into_what_is_not_its_own() {
    changed(60, |buff| {
        assert_eq!(buff.headroom(), 256 - RESERVED_BYTES);
        assert_eq!(buff.adjust_head(-217), Err(AdjustError::Head { asked: 39, least: 40, most: 302 }));
        assert_eq!(buff.adjust_head(47), Err(AdjustError::Head { asked: 303, least: 40, most: 302 }));
        assert_eq!(buff.tailroom(), 4096 - 320 - 256 - 60);
        assert_eq!(buff.adjust_tail(3461), Err(AdjustError::Tail { asked: 3777, least: 270, most: 3776 }));
        assert_eq!(buff.adjust_tail(-47), Err(AdjustError::Tail { asked: 269, least: 270, most: 3776 }));
        assert!(buff.adjust_head(i32::MIN).is_err() && buff.adjust_tail(i32::MAX).is_err());
        // To the limits themselves.
        buff.adjust_head(-216).unwrap();
        buff.adjust_tail(3460).unwrap();
        assert_eq!((buff.headroom(), buff.tailroom(), buff.len_bytes()), (0, 0, 3776 - 40));
        buff.adjust_tail(14 - 3736).unwrap();
        assert_eq!(buff.data().len(), 14);
    });
}

#[test]
fn a_grown_tail_is_zero() {
    let (bytes, _) = changed(60, |buff| {
        buff.adjust_tail(-10).unwrap();
        buff.adjust_tail(20).unwrap();
    });
    assert_eq!((&bytes[..50], &bytes[50..]), (&numbered(1, 60)[..50], &[0; 20][..]));
}

#[test]
fn the_last_buffer_of_several_grows_and_shrinks() {
    let (bytes, _) = changed_in(256, 600, |buff| {
        assert!(buff.adjust_tail(-88).is_err(), "one byte of the last buffer stays");
        buff.adjust_tail(-87).unwrap();
        buff.adjust_tail(300).unwrap();
        buff.adjust_head(100).unwrap();
    });
    assert_eq!(bytes.len(), 600 - 87 + 300 - 100);
    assert_eq!(&bytes[..413], &numbered(1, 600)[100..513]);
    assert_eq!(bytes[413..], [0; 300]);
}

#[test]
fn metadata_moves_with_the_frame_and_is_handed_up() {
    let (bytes, meta) = changed(60, |buff| {
        assert_eq!(buff.meta(), []);
        for wrong in [-1, -2, -256, 4, i32::MIN, i32::MAX] {
            assert!(buff.adjust_meta(wrong).is_err(), "{wrong}");
        }
        buff.adjust_meta(-8).unwrap();
        buff.meta_mut().copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        buff.adjust_head(-20).unwrap();
        buff.adjust_meta(4).unwrap();
        assert_eq!(buff.headroom(), 256 - 20 - 4 - RESERVED_BYTES);
    });
    assert_eq!((bytes.len(), meta), (80, vec![5, 6, 7, 8]));
    changed(60, |buff| {
        let most = (256 - RESERVED_BYTES).min(META_BYTES_MAX) as i32 & !3;
        buff.adjust_meta(-most).unwrap();
        assert!(buff.adjust_meta(-4).is_err());
        assert!(buff.adjust_head(-4).is_err(), "the metadata is in the way");
    });
}

// ---- redirection

/// Sends redirected frames out of a queue of another driver's, as devmap does.
struct Forward<'a> {
    to: &'a mut TxQueue<Mock>,
    targets: Vec<u64>,
    flushes: u32,
}

impl XdpHook<Mock> for Forward<'_> {
    fn run(&mut self, buff: &mut XdpBuff<'_, Mock>) -> Verdict {
        Verdict::Redirect(RedirectTarget(u64::from(number(buff.data()))))
    }

    fn redirect(&mut self, target: RedirectTarget, frame: XdpFrame<MockPage>) -> Result<(), XdpFrame<MockPage>> {
        let (offset, len_bytes, meta_len_bytes) = (frame.offset, frame.len_bytes, frame.meta_len_bytes);
        self.to.xdp_xmit(frame).map_err(|refused| XdpFrame {
            page: refused.page,
            offset,
            len_bytes,
            meta_len_bytes,
        })?;
        self.targets.push(target.0);
        Ok(())
    }

    fn flush(&mut self) {
        self.flushes += 1;
        self.to.flush().expect("a doorbell");
    }
}

/// Pages that were sent for somebody else.
#[derive(Default)]
struct Home(Vec<MockPage>);

impl XdpHook<Mock> for Home {
    fn run(&mut self, _: &mut XdpBuff<'_, Mock>) -> Verdict {
        Verdict::Pass
    }

    fn returned(&mut self, _: &Mock, page: MockPage) {
        self.0.push(page);
    }
}

/// B-12: frames that the target refuses stay their owner's, and each page goes home once.
#[test]
fn a_redirected_page_goes_out_elsewhere_and_comes_home() {
    let mock = Mock::new(10);
    let ring = DeviceConfig { tx_ring: TableEntry::Value(8), ..config(2, 64) };
    let mut driver = driver(&mock, ring);
    let mut pairs = driver.take_queues();
    for round in 0..30u32 {
        let (first, second) = pairs.split_at_mut(1);
        let (from, to) = (&mut first[0], &mut second[0]);
        (0..10).for_each(|n| assert!(mock.receive(0, &numbered(10 * round + n, 60))));
        let mut forward = Forward { to: &mut to.tx, targets: Vec::new(), flushes: 0 };
        let polled = from.poll(WEIGHT, &mut forward, |_| panic!("a frame"));
        assert_eq!(polled.received, Ok(10));
        // Six descriptors, one doorbell (a full ring rings by itself, and the flush finds nothing left).
        assert_eq!((forward.targets.len(), forward.flushes), (6, 1));
        assert_eq!(mock.transmit(1, 9), (0..6).map(|n| numbered(10 * round + n, 60)).collect::<Vec<_>>());
        let mut home = Home::default();
        let polled = to.poll(WEIGHT, &mut home, |_| {});
        assert_eq!((polled.sent, home.0.len()), (Ok(6), 6));
        home.0.into_iter().for_each(|page| from.rx.give_back(page));
    }
    assert_eq!(xdp(pairs[0].rx.counters()), [0, 0, 0, 0, 180, 120, 0]);
    assert_eq!((pairs[1].tx.counters().xdp_xmit, pairs[1].tx.counters().xdp_xmit_errors), (180, 120));
    driver.return_queues(pairs);
    driver.remove().unwrap();
    mock.assert_clean();
}

/// A redirected frame that is refused is one loss, whatever it was refused for.
#[test]
fn a_refused_redirection_is_one_dropped_frame() {
    let mock = Mock::new(10);
    let mut driver = driver(&mock, config(2, 64));
    let mut pairs = driver.take_queues();
    assert!(mock.receive(0, &numbered(0, 60)));
    let mut kept = None;
    pairs[0].rx.poll(1, |frame| kept = frame.take(0).ok()).unwrap();
    let TakenPage { page, offset, .. } = kept.unwrap();
    let len_bytes = 1515;
    let refused = pairs[1].tx.xdp_xmit(XdpFrame { page, offset, len_bytes, meta_len_bytes: 0 }).unwrap_err();
    assert_eq!(refused.cause, TxError::TooLong { len_bytes, limit: 1514 });
    let counters = pairs[1].tx.counters();
    assert_eq!((counters.xdp_xmit_errors, counters.refused, counters.dropped()), (1, 0, 1));
    pairs[0].rx.give_back(refused.page);
    driver.return_queues(pairs);
    driver.remove().unwrap();
    mock.assert_clean();
}

/// A stop finds pages of the receive ring in the transmit ring: they are freed with the rest, each once.
#[test]
fn a_stop_with_frames_under_way_loses_no_page() {
    let mock = Mock::new(10);
    let mut driver = driver(&mock, config(1, 32));
    let pair = driver.pair(0).unwrap();
    (0..20).for_each(|n| assert!(mock.receive(0, &numbered(n, 60))));
    let _ = pair.poll(WEIGHT, &mut hook(|_| Verdict::Tx), |_| {});
    mock.transmit(0, 5);
    driver.restart_tx(0).unwrap();
    let pair = driver.pair(0).unwrap();
    (0..20).for_each(|n| assert!(mock.receive(0, &numbered(n, 60))));
    let _ = pair.poll(WEIGHT, &mut hook(|_| Verdict::Tx), |_| {});
    assert!(matches!(pair.tx.post(&[]), Err(TxError::Range { .. })));
    driver.remove().unwrap();
    mock.assert_clean();
}

// ---- against a model

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Whatever the verdicts, ring sizes and the card's pace: each frame has one fate, those sent back leave in order and
    /// once, and no page is lost.
    #[test]
    fn every_frame_has_one_fate(
        rx_ring in 8u16..64,
        tx_ring in 4u16..64,
        rounds in prop::collection::vec((0u8..30, 0usize..30, any::<u64>()), 1..60),
    ) {
        let mock = Mock::new(10);
        let rings = DeviceConfig { tx_ring: TableEntry::Value(tx_ring), ..config(1, rx_ring) };
        let mut driver = driver(&mock, rings);
        let pair = driver.pair(0).unwrap();
        let (mut next, mut seen) = (0u32, 0u64);
        let (mut passed, mut wanted, mut sent) = (Vec::new(), Vec::new(), Vec::new());
        for (arrivals, departures, verdicts) in rounds {
            for _ in 0..arrivals {
                next += u32::from(mock.receive(0, &numbered(next, 60)));
            }
            let polled = pair.poll(WEIGHT, &mut hook(|buff: &mut XdpBuff<'_, Mock>| {
                let n = number(buff.data());
                seen += 1;
                match verdicts >> (2 * (n % 32)) & 3 {
                    0 => Verdict::Pass,
                    1 => Verdict::Drop,
                    _ => {
                        wanted.push(n);
                        Verdict::Tx
                    }
                }
            }), |frame| passed.push(number(frame.segment(0))));
            prop_assert!(polled.received.is_ok() && polled.sent.is_ok());
            sent.extend(mock.transmit(0, departures).iter().map(|frame| number(frame)));
        }
        sent.extend(mock.transmit(0, usize::MAX).iter().map(|frame| number(frame)));
        let counters = pair.rx.counters();
        prop_assert_eq!(counters.frames, seen);
        prop_assert_eq!(counters.xdp_pass, passed.len() as u64);
        prop_assert_eq!(counters.xdp_tx, sent.len() as u64);
        prop_assert_eq!(counters.xdp_tx + counters.xdp_tx_errors, wanted.len() as u64);
        prop_assert_eq!(counters.xdp_pass + counters.xdp_drop + wanted.len() as u64, seen);
        prop_assert!(sent.is_sorted() && sent.iter().all(|n| wanted.contains(n)), "in order, and only what was to go");
        driver.remove().unwrap();
        mock.assert_clean();
    }
}
