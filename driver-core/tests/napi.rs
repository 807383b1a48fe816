//! A pair's polls: the NAPI contract, deferral, transmit completions with one owner, stop and wake, doorbells that are
//! never owed for long.

mod common;

use common::{Faults, Mock, config, driver_up, numbered};
use driver_core::{
    ConfigError, Deferral, DmaError, DmaMemory, Moderation, ModerationError, Next, NoHook, Page, Polled, QueueFault,
    Thresholds, TriggerMode, TxError, TxFlow, WEIGHT,
};
use proptest::prelude::*;

/// CIDX doorbells of queue 0: index and arm bit.
fn credits(mock: &Mock) -> Vec<(u16, bool)> {
    let doorbells = mock.take_doorbells().into_iter().filter(|(offset, _)| *offset == 0x1800C);
    doorbells.map(|(_, value)| (value as u16, value >> 28 & 1 == 1)).collect()
}

/// PIDX doorbells of transmit queue 0.
fn published(mock: &Mock) -> Vec<u16> {
    mock.take_doorbells().into_iter().filter(|(offset, _)| *offset == 0x18004).map(|(_, value)| value as u16).collect()
}

fn receive(mock: &Mock, frames: u32) {
    (0..frames).for_each(|n| assert!(mock.receive(0, &numbered(n, 60))));
}

// ---- the contract

#[test]
fn a_used_up_budget_is_returned_and_nothing_is_armed() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 1024));
    let pair = driver.pair(0).unwrap();
    receive(&mock, 2 * WEIGHT as u32);
    mock.take_doorbells();
    pair.napi.schedule();
    for _ in 0..2 {
        let polled = pair.poll(WEIGHT, &mut NoHook, |_| {});
        assert_eq!((polled.received, polled.next), (Ok(WEIGHT), Next::Again));
        assert!(pair.napi.is_scheduled());
    }
    assert_eq!(credits(&mock), [(64, false), (128, false)]);
    // The ring is empty, and only the poll that saw it so completes.
    let polled = pair.poll(WEIGHT, &mut NoHook, |_| {});
    assert_eq!((polled.received, polled.next), (Ok(0), Next::Armed));
    assert!(!pair.napi.is_scheduled());
    assert_eq!(credits(&mock), [(128, true)]);
}

/// B-18: netpoll asks for transmit completions only.
#[test]
fn a_budget_of_0_takes_back_what_was_sent_and_leaves_the_rest() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 64));
    let pair = driver.pair(0).unwrap();
    pair.tx.post(&numbered(7, 60)).unwrap();
    pair.tx.flush().unwrap();
    assert_eq!(mock.transmit(0, 9).len(), 1);
    receive(&mock, 1);
    pair.napi.schedule();
    mock.take_doorbells();
    let polled = pair.poll(0, &mut NoHook, |_| panic!("a frame"));
    assert_eq!(polled, Polled { received: Ok(0), sent: Ok(1), tx_woken: false, next: Next::Again });
    assert!(pair.napi.is_scheduled() && pair.rx.has_pending());
    assert_eq!(mock.take_doorbells(), []);
}

/// A poll of any length returns credits on its way: the card never runs out of them while the driver works.
#[test]
fn credits_go_back_within_a_long_poll() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 1024));
    let pair = driver.pair(0).unwrap();
    receive(&mock, 1000);
    mock.take_doorbells();
    let polled = pair.poll(4096, &mut NoHook, |_| {});
    assert_eq!((polled.received, polled.next), (Ok(1000), Next::Armed));
    let credits = credits(&mock);
    assert_eq!(credits.len(), 16);
    assert!(credits.iter().zip(1u16..).take(15).all(|((cidx, armed), n)| (*cidx, *armed) == (64 * n, false)));
    assert_eq!(credits.last(), Some(&(1000, true)));
}

/// The last look is before the arming doorbell, which names what was read: the card sees that a frame has come since.
#[test]
fn a_frame_between_the_last_look_and_the_arming_is_left_to_the_card() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 64));
    let pair = driver.pair(0).unwrap();
    receive(&mock, 1);
    mock.take_doorbells();
    let late = mock.receive_late(0, &numbered(1, 60));
    let polled = pair.poll(WEIGHT, &mut NoHook, |_| {});
    assert_eq!((polled.received, polled.next), (Ok(1), Next::Armed));
    assert_eq!(credits(&mock), [(1, true)]);
    mock.poke_completion(0, late.0, late.1);
    assert_eq!(pair.poll(WEIGHT, &mut NoHook, |_| {}).received, Ok(1));
}

/// B-44: while frames keep coming no interrupt is asked for; credits go back all the same, and at the end one is.
#[test]
fn deferred_polls_return_credits_and_arm_at_the_end() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 64));
    let pair = driver.pair(0).unwrap();
    pair.napi.set_deferral(Deferral { polls: 2, timeout_ns: 20_000 });
    mock.take_doorbells();
    let mut polls = Vec::new();
    for frames in [3, 1, 0, 0, 0] {
        receive(&mock, frames);
        let polled = pair.poll(WEIGHT, &mut NoHook, |_| {});
        assert_eq!(polled.received, Ok(frames as usize));
        polls.push(polled.next);
        let due = match polled.next {
            Next::Deferred { until_ns } => Some(until_ns),
            _ => None,
        };
        assert_eq!(pair.due_ns(), due);
    }
    let deferred = Next::Deferred { until_ns: 20_000 + now(&mock) };
    assert_eq!(polls, [deferred, deferred, deferred, Next::Armed, Next::Armed]);
    assert_eq!(credits(&mock), [(3, false), (4, false), (4, true)]);
    let counters = pair.napi.counters();
    assert_eq!((counters.polls, counters.deferred, counters.completed), (5, 3, 2));
}

fn now(mock: &Mock) -> u64 {
    driver_core::Clock::now(mock)
}

#[test]
fn a_failed_receive_queue_does_not_hold_up_transmission() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 64));
    let pair = driver.pair(0).unwrap();
    mock.state().lies = true;
    mock.poke_rx_status(0, 1 << 35);
    pair.napi.schedule();
    for n in 0..3 {
        pair.tx.post(&numbered(n, 60)).unwrap();
        pair.tx.flush().unwrap();
        mock.transmit(0, 9);
        let polled = pair.poll(WEIGHT, &mut NoHook, |_| {});
        assert!(matches!(polled.received, Err(QueueFault::Status { .. })));
        assert_eq!((polled.sent, polled.next), (Ok(1), Next::Failed));
    }
    assert!(!pair.napi.is_scheduled());
}

// ---- moderation

#[test]
fn a_new_moderation_goes_with_the_next_doorbell_and_at_once() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 64));
    let rx = driver.rx(0).unwrap();
    mock.take_doorbells();
    let quick = Moderation { interrupt: true, mode: TriggerMode::UserTimer, timer_index: 7, counter_index: 3 };
    rx.set_moderation(quick).unwrap();
    // Mode 4, timer 7, counter 3, status, armed as before.
    assert_eq!(mock.take_doorbells(), [(0x1800C, 0x1C73_0000)]);
    receive(&mock, 1);
    rx.poll(64, |_| {}).unwrap();
    assert_eq!(mock.take_doorbells(), [(0x1800C, 0x1C73_0001)]);
    let polled = Moderation { interrupt: false, ..quick };
    rx.set_moderation(polled).unwrap();
    assert_eq!(mock.take_doorbells(), [(0x1800C, 0x0C73_0001)]);
}

#[test]
fn a_moderation_by_which_frames_could_wait_for_ever_is_refused() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 64));
    let rx = driver.rx(0).unwrap();
    let before = rx.moderation();
    mock.take_doorbells();
    for mode in [TriggerMode::Disabled, TriggerMode::User, TriggerMode::UserCount] {
        let refused = rx.set_moderation(Moderation { mode, ..before });
        assert_eq!(refused, Err(ModerationError::Config(ConfigError::ModerationMode { mode })));
        rx.set_moderation(Moderation { mode, interrupt: false, ..before }).unwrap();
        rx.set_moderation(before).unwrap();
    }
    mock.take_doorbells();
    for index in [16, 255] {
        assert!(rx.set_moderation(Moderation { timer_index: index, ..before }).is_err());
        assert!(rx.set_moderation(Moderation { counter_index: index, ..before }).is_err());
    }
    assert_eq!((rx.moderation(), mock.take_doorbells()), (before, vec![]));
}

// ---- transmit: one owner, stop and wake, the timer

/// B-42: a poll of one pair looks at its own ring only.
#[test]
fn completions_are_taken_back_by_their_own_pair_only() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(4, 64));
    for queue in 0..4 {
        let tx = driver.tx(queue).unwrap();
        tx.post(&numbered(0, 60)).unwrap();
        tx.flush().unwrap();
        mock.transmit(queue, 9);
    }
    assert_eq!(driver.pair(2).unwrap().poll(WEIGHT, &mut NoHook, |_| {}).sent, Ok(1));
    let outstanding: Vec<u16> = driver.queues().iter().map(|pair| pair.tx.outstanding()).collect();
    assert_eq!(outstanding, [1, 1, 0, 1]);
}

/// B-25: a full ring stops its senders and wakes them once, when a quarter of it is free.
#[test]
fn a_full_ring_stops_and_wakes_its_senders_once() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 66));
    let pair = driver.pair(0).unwrap();
    for n in 0..63 {
        pair.tx.post(&numbered(n, 60)).unwrap();
        assert_eq!(pair.tx.flow(), TxFlow::Open);
    }
    pair.tx.post(&numbered(63, 60)).unwrap();
    assert_eq!(pair.tx.flow(), TxFlow::Stopped { room: 0, wake_at: 16 });
    let mut woken = Vec::new();
    for frames in [15, 1, 1, 47] {
        mock.transmit(0, frames);
        woken.push(pair.poll(0, &mut NoHook, |_| {}).tx_woken);
    }
    assert_eq!(woken, [false, true, false, false]);
    assert_eq!(pair.tx.flow(), TxFlow::Open);
    assert_eq!((pair.tx.counters().stopped, pair.tx.counters().woken), (1, 1));
}

#[test]
fn thresholds_that_can_not_work_are_refused() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 16));
    let tx = driver.tx(0).unwrap();
    for (stop_below, wake_at) in [(0, 4), (5, 4), (1, 15), (15, 15)] {
        assert!(tx.set_thresholds(Thresholds { stop_below, wake_at }).is_err(), "{stop_below} and {wake_at}");
    }
    tx.set_thresholds(Thresholds { stop_below: 5, wake_at: 14 }).unwrap();
    for n in 0..9 {
        tx.post(&numbered(n, 60)).unwrap();
    }
    assert_eq!(tx.flow(), TxFlow::Open);
    tx.post(&numbered(9, 60)).unwrap();
    assert_eq!(tx.flow(), TxFlow::Stopped { room: 4, wake_at: 14 });
    // Stopped is advice: as long as a descriptor is free the frame goes.
    tx.post(&numbered(10, 60)).unwrap();
}

/// B-26: with no receive traffic and no further frame, the timer says when to look; nothing outstanding, no timer.
#[test]
fn an_outstanding_frame_has_a_time_to_be_looked_for() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 64));
    let pair = driver.pair(0).unwrap();
    pair.tx.set_completion_ns(3_000);
    assert_eq!(pair.due_ns(), None);
    let begin = now(&mock);
    pair.tx.post(&numbered(0, 60)).unwrap();
    pair.tx.flush().unwrap();
    assert_eq!(pair.due_ns(), Some(begin + 3_000));
    // A second frame does not put it off.
    driver_core::Clock::wait(&*mock, 1_000);
    pair.tx.post(&numbered(1, 60)).unwrap();
    pair.tx.flush().unwrap();
    assert_eq!(pair.due_ns(), Some(begin + 3_000));
    driver_core::Clock::wait(&*mock, 2_000);
    mock.transmit(0, 1);
    assert_eq!(pair.poll(0, &mut NoHook, |_| {}).sent, Ok(1));
    assert_eq!(pair.due_ns(), Some(begin + 6_000), "one is still outstanding");
    mock.transmit(0, 1);
    assert_eq!(pair.poll(0, &mut NoHook, |_| {}).sent, Ok(1));
    assert_eq!(pair.due_ns(), None);
}

// ---- doorbells

/// B-24: whatever ends a burst early, what was posted before is published.
#[test]
fn every_early_return_publishes_what_was_posted() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 64));
    let tx = driver.tx(0).unwrap();
    let page = mock.alloc_page().unwrap();
    type Refusal<'a> = Box<dyn FnMut(&mut driver_core::TxQueue<Mock>) -> TxError + 'a>;
    let mut refusals: Vec<Refusal<'_>> = vec![
        Box::new(|tx| tx.post(&[0; 1515]).unwrap_err()),
        Box::new(|tx| tx.post(&[]).unwrap_err()),
        Box::new(|tx| {
            mock.fail(Faults { no_memory: true, ..Faults::default() });
            let refused = tx.post(&[0; 60]).unwrap_err();
            mock.fail(Faults::default());
            refused
        }),
    ];
    let mut sent = 0;
    for refuse in &mut refusals {
        tx.post(&numbered(sent, 60)).unwrap();
        assert_eq!(published(&mock), [], "a burst is under way");
        refuse(tx);
        sent += 1;
        assert_eq!(published(&mock), [sent as u16]);
    }
    tx.post(&numbered(sent, 60)).unwrap();
    let refused = tx.post_page(page, 4000, 200).unwrap_err();
    assert_eq!(published(&mock), [sent as u16 + 1]);
    mock.free_page(refused.page);
}

/// A page lent to a queue that has to make room by itself is not lost to its lender.
#[test]
fn a_lent_page_waits_for_its_lender() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 4));
    let tx = driver.tx(0).unwrap();
    for n in 0..2u8 {
        let mut page = mock.alloc_page().unwrap();
        page.bytes_mut()[..60].fill(n);
        tx.post_page(page, 0, 60).unwrap();
    }
    mock.transmit(0, 9);
    // The ring is full until the queue looks for itself.
    tx.post(&numbered(0, 60)).unwrap();
    let mut back = Vec::new();
    tx.reap_with(|page| back.push(page)).unwrap();
    assert_eq!(back.iter().map(|page| page.bytes()[0]).collect::<Vec<_>>(), [0, 1]);
    back.into_iter().for_each(|page| mock.free_page(page));
    drop(driver);
    mock.assert_clean();
}

#[test]
fn no_memory_is_a_named_refusal() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 16));
    mock.fail(Faults { no_memory: true, ..Faults::default() });
    let refused = driver.tx(0).unwrap().post(&numbered(0, 60));
    assert_eq!(refused, Err(TxError::NoPage(DmaError::OutOfMemory { len_bytes: common::PAGE })));
}

/// A failed queue fails once, however often it is flushed, and waits for nothing.
#[test]
fn a_failed_queue_rings_no_more() {
    let mock = Mock::new(10);
    let mut driver = driver_up(&mock, config(1, 64));
    let tx = driver.tx(0).unwrap();
    tx.post(&numbered(0, 60)).unwrap();
    mock.fail(Faults { mmio_at: Some(0), ..Faults::default() });
    let fault = tx.flush().unwrap_err();
    mock.take_doorbells();
    for _ in 0..3 {
        assert_eq!(tx.flush(), Err(fault));
    }
    assert_eq!(mock.take_doorbells(), []);
    assert_eq!((tx.counters().faults, tx.due_ns()), (1, None));
}

// ---- against a model

/// What can happen to a pair.
#[derive(Clone, Copy, Debug)]
enum Op {
    Arrive { frames: u8 },
    Post { frames: u8 },
    Send { frames: u8 },
    Poll { budget: u8 },
    Wait { ns: u16 },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (1u8..20).prop_map(|frames| Op::Arrive { frames }),
        3 => (1u8..20).prop_map(|frames| Op::Post { frames }),
        2 => (1u8..20).prop_map(|frames| Op::Send { frames }),
        4 => (0u8..20).prop_map(|budget| Op::Poll { budget }),
        1 => (1u16..5_000).prop_map(|ns| Op::Wait { ns }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Polls take exactly what is there up to the budget; they are scheduled after it if and only if it was used up; armed
    /// and deferred follow Linux's count; and a timer runs if and only if something is owed.
    #[test]
    fn polls_keep_the_contract(
        entries in 8u16..64,
        deferrals in 0u32..3,
        ops in prop::collection::vec(op(), 1..300),
    ) {
        let mock = Mock::new(10);
        let mut driver = driver_up(&mock, config(1, entries));
        let pair = driver.pair(0).unwrap();
        pair.napi.set_deferral(Deferral { polls: deferrals, timeout_ns: 700 });
        let (mut waiting, mut posted, mut sent, mut left) = (0usize, 0u16, 0u16, 0u32);
        for op in ops {
            match op {
                Op::Arrive { frames } => {
                    waiting += (0..frames).take_while(|n| mock.receive(0, &numbered(u32::from(*n), 60))).count();
                    // Otherwise a poll comes before the interrupt.
                    if frames % 2 == 0 {
                        pair.napi.schedule();
                    }
                }
                Op::Post { frames } => for n in 0..frames {
                    if posted == entries - 2 {
                        // A full ring looks for itself.
                        (posted, sent) = (posted - sent, 0);
                    }
                    prop_assert_eq!(pair.tx.post(&numbered(u32::from(n), 60)).is_ok(), posted < entries - 2);
                    posted = (posted + 1).min(entries - 2);
                },
                Op::Send { frames } => {
                    pair.tx.flush().unwrap();
                    sent += mock.transmit(0, usize::from(frames)).len() as u16;
                }
                Op::Poll { budget } => {
                    let budget = usize::from(budget);
                    let took = budget.min(waiting);
                    let polled = pair.poll(budget, &mut NoHook, |_| {});
                    prop_assert_eq!(polled.received, Ok(took));
                    prop_assert_eq!(polled.sent, Ok(sent));
                    waiting -= took;
                    (posted, sent) = (posted - sent, 0);
                    if took > 0 && took < budget {
                        left = deferrals;
                    }
                    let defer = took < budget && left > 0;
                    left -= u32::from(defer);
                    match polled.next {
                        Next::Again => prop_assert_eq!(took, budget),
                        Next::Armed => prop_assert!(took < budget && !defer),
                        Next::Deferred { until_ns } => prop_assert!(defer && until_ns == now(&mock) + 700),
                        Next::Failed => prop_assert!(false, "an honest card"),
                    }
                    if budget > 0 {
                        prop_assert_eq!(pair.napi.is_scheduled(), took == budget);
                    }
                    prop_assert_eq!(pair.rx.is_armed() && polled.next == Next::Armed, polled.next == Next::Armed);
                }
                Op::Wait { ns } => driver_core::Clock::wait(&*mock, u64::from(ns)),
            }
            prop_assert_eq!(pair.tx.outstanding(), posted);
        }
        pair.tx.flush().unwrap();
        prop_assert_eq!(pair.tx.due_ns().is_some(), posted > 0);
    }
}
