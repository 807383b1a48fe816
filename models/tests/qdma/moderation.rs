//! Completion moderation: trigger modes, the outstanding rule, arming. qdma.md 7.1, 7.2; case RING-11.

use models::qdma::{Leftover, NotifyPolicy, QdmaConfig, TimerStart};
use regs::context::TriggerMode;
use regs::qdma_csr as csr;

use crate::driver::*;

fn queue(config: QdmaConfig, mode: TriggerMode) -> (Bench, RxQueue) {
    let mut bench = Bench::new(config);
    // Threshold 4, timer 1 us.
    bench.set_table(csr::C2H_COUNTER_THRESHOLD, 0, 4);
    let rx = RxQueue::open(&mut bench, F0, 0, 0, RxOptions { mode, ..RxOptions::default() });
    bench.run_ns(3000);
    (bench, rx)
}

fn frames(bench: &mut Bench, rx: &RxQueue, count: u64) {
    for n in 0..count {
        bench.receive(rx.qid, &numbered(n, 60));
    }
}

/// What `count` frames lead to within 600 ns and within 5 us: (status pidx, interrupts).
fn reaction(mode: TriggerMode, count: u64) -> [(u16, usize); 2] {
    let (mut bench, rx) = queue(QdmaConfig::default(), mode);
    frames(&mut bench, &rx, count);
    bench.run_ns(600);
    let soon = (rx.status(&bench).pidx, bench.interrupts.len());
    bench.run_ns(5000);
    [soon, (rx.status(&bench).pidx, bench.interrupts.len())]
}

#[test]
fn trigger_modes() {
    use TriggerMode::*;
    let silent = [(0, 0), (0, 0)];
    for mode in [Disabled, User, Unknown(6), Unknown(7)] {
        assert_eq!(reaction(mode, 5), silent, "{mode:?}");
    }
    assert_eq!(reaction(Every, 3), [(1, 1), (1, 1)], "the first notifies, the others wait for CIDX");
    assert_eq!(reaction(UserCount, 3), silent, "below the threshold");
    assert_eq!(reaction(UserCount, 4), [(4, 1), (4, 1)]);
    assert_eq!(reaction(UserTimer, 5), [(0, 0), (5, 1)], "count plays no part");
    assert_eq!(reaction(UserTimerCount, 3), [(0, 0), (3, 1)]);
    assert_eq!(reaction(UserTimerCount, 6), [(4, 1), (4, 1)]);
}

/// After the context is written nothing is sent until the first CIDX doorbell; then at once.
#[test]
fn a_new_queue_is_unarmed() {
    let mut bench = Bench::new(QdmaConfig::default());
    let mut rx = RxQueue::start(&mut bench, F0, 0, 0, RxOptions::default());
    rx.post(&mut bench, 256);
    frames(&mut bench, &rx, 100);
    bench.run_ns(10_000);
    assert_eq!((rx.status(&bench).pidx, bench.interrupts.len()), (0, 0));
    rx.arm(&mut bench);
    bench.run_ns(500);
    assert_eq!((rx.status(&bench).pidx, bench.interrupts.len()), (100, 1));
}

/// arm=0 (the PMD): status words, no interrupt; the outstanding rule holds all the same.
#[test]
fn without_arming_only_the_status_is_written() {
    let (mut bench, mut rx) = queue(QdmaConfig::default(), TriggerMode::UserTimerCount);
    rx.ring_cidx(&mut bench, 0, false);
    frames(&mut bench, &rx, 4);
    bench.run_ns(3000);
    frames(&mut bench, &rx, 4);
    bench.run_ns(3000);
    assert_eq!((rx.status(&bench).pidx, bench.interrupts.len()), (4, 0));
    assert_eq!(rx.reap(&bench).len(), 4);
    rx.ring_cidx(&mut bench, 4, false);
    bench.run_ns(3000);
    assert_eq!((rx.status(&bench).pidx, bench.interrupts.len()), (8, 0));
}

/// en_int=0 in the context wins over the doorbell's arm.
#[test]
fn the_context_can_turn_the_interrupt_off() {
    let mut bench = Bench::new(QdmaConfig::default());
    let rx = RxQueue::open(&mut bench, F0, 0, 0, RxOptions { en_int: false, ..RxOptions::default() });
    frames(&mut bench, &rx, 3);
    bench.run_ns(5000);
    assert_eq!((rx.status(&bench).pidx, bench.interrupts.len()), (3, 0));
}

/// Reading part of what is there: the doorbell shows that entries remain.
#[test]
fn leftovers_notify_at_once_or_restart_the_timer() {
    for (leftover, soon) in [(Leftover::NotifyAtOnce, 2), (Leftover::RestartTimer, 1)] {
        let (mut bench, mut rx) = queue(QdmaConfig { leftover, ..QdmaConfig::default() }, TriggerMode::UserTimer);
        frames(&mut bench, &rx, 5);
        bench.run_ns(3000);
        rx.reap_to(&bench, 3);
        rx.arm(&mut bench);
        bench.run_ns(500);
        assert_eq!(bench.interrupts.len(), soon, "{leftover:?}");
        bench.run_ns(1000);
        assert_eq!(bench.interrupts.len(), 2, "{leftover:?}: in the end always");
        assert_eq!(rx.status(&bench).cidx, 3);
    }
}

/// Mode 2 has no timer: fewer than the threshold stay silent, as AMD warns.
#[test]
fn count_mode_leaves_a_rest_unreported() {
    let (mut bench, mut rx) = queue(QdmaConfig::default(), TriggerMode::UserCount);
    frames(&mut bench, &rx, 7);
    bench.run_ns(3000);
    assert_eq!(rx.reap(&bench).len(), 4);
    rx.arm(&mut bench);
    bench.run_ns(5000);
    assert_eq!(bench.interrupts.len(), 1, "3 of 4 remain");
    frames(&mut bench, &rx, 1);
    bench.run_ns(5000);
    assert_eq!(bench.interrupts.len(), 2);
}

#[test]
fn the_timer_counts_from_the_first_or_the_last_entry() {
    for (timer_start, expected) in [(TimerStart::FirstUnread, true), (TimerStart::EveryEntry, false)] {
        let (mut bench, rx) = queue(QdmaConfig { timer_start, ..QdmaConfig::default() }, TriggerMode::UserTimer);
        for _ in 0..3 {
            frames(&mut bench, &rx, 1);
            bench.run_ns(600);
        }
        assert_eq!(!bench.interrupts.is_empty(), expected, "{timer_start:?}");
        bench.run_ns(2000);
        assert_eq!(bench.interrupts.len(), 1);
    }
}

/// full_upd: the doorbell's mode, counter and timer replace the context's.
#[test]
fn full_update_takes_everything_from_the_doorbell() {
    for full_upd in [false, true] {
        let mut bench = Bench::new(QdmaConfig::default());
        let rx = RxQueue::open(&mut bench, F0, 0, 0, RxOptions { full_upd, ..RxOptions::default() });
        let value = regs::doorbell::CompletionCidx {
            cidx: 0,
            counter_index: 7,
            timer_index: 9,
            trigger_mode: TriggerMode::UserCount,
            en_stat_desc: false,
            irq_arm: true,
        };
        let offset = regs::doorbell::offset(regs::doorbell::COMPLETION_CIDX, 0).unwrap();
        bench.write(F0, offset, value.to_word());
        let context = bench.cmpl(rx.qid);
        let seen = (context.counter_index, context.timer_index, context.trigger_mode, context.en_stat_desc);
        if full_upd {
            assert_eq!(seen, (7, 9, TriggerMode::UserCount, false));
        } else {
            assert_eq!(seen, (0, 0, TriggerMode::UserTimerCount, true));
        }
    }
}

/// Free running: every condition writes a status; interrupts still need arming.
#[test]
fn free_running_status() {
    let config = QdmaConfig { notify: NotifyPolicy::FreeRunning, ..QdmaConfig::default() };
    let (mut bench, rx) = queue(config, TriggerMode::Every);
    for n in 1..=5 {
        frames(&mut bench, &rx, 1);
        bench.run_ns(600);
        assert_eq!((rx.status(&bench).pidx, bench.interrupts.len()), (n, 1));
    }
}

/// The timer runs in the context while it runs, and the state bits follow.
#[test]
fn the_context_shows_timer_and_indices() {
    let (mut bench, mut rx) = queue(QdmaConfig::default(), TriggerMode::UserTimer);
    frames(&mut bench, &rx, 2);
    bench.run_ns(500);
    let context = bench.cmpl(rx.qid);
    assert_eq!((context.timer_running, context.pidx, context.cidx, context.color), (true, 2, 0, true));
    bench.run_ns(2000);
    assert!(!bench.cmpl(rx.qid).timer_running);
    rx.poll(&mut bench);
    assert_eq!(bench.cmpl(rx.qid).cidx, 2);
    let offset = regs::doorbell::offset(regs::doorbell::COMPLETION_CIDX, 0).unwrap();
    assert_eq!(bench.read(F0, offset), 2);
}

/// RING-11: a frame that arrives in any cycle around the re-arming doorbell is always announced, without further
/// traffic, in each mode that announces single frames.
#[test]
fn no_arrival_is_lost_around_rearming() {
    const CYCLE_PS: u64 = 4000;
    for mode in [TriggerMode::Every, TriggerMode::UserTimer, TriggerMode::UserTimerCount] {
        for leftover in [Leftover::NotifyAtOnce, Leftover::RestartTimer] {
            // An entry is written some 260 ns after its frame is handed over: sweep around that and around the hand-over.
            for offset in -128i64..=64 {
                let (mut bench, mut rx) = queue(QdmaConfig { leftover, ..QdmaConfig::default() }, mode);
                frames(&mut bench, &rx, 1);
                bench.run_ns(4000);
                let arm_at = 200 * CYCLE_PS;
                let arrive_at = (200 + offset) as u64 * CYCLE_PS;
                let (first, second) = (arm_at.min(arrive_at), arm_at.max(arrive_at));
                bench.run_ps(first);
                let mut got = 0;
                let mut act = |bench: &mut Bench, arm: bool| {
                    if arm {
                        got += rx.poll(bench).len();
                    } else {
                        frames(bench, &rx, 1);
                    }
                };
                act(&mut bench, arm_at <= arrive_at);
                bench.run_ps(second - first);
                act(&mut bench, arm_at > arrive_at);
                bench.run_ns(5000);
                let interrupts = bench.interrupts.len();
                got += rx.reap(&bench).len();
                assert_eq!(got, 2, "{mode:?} {leftover:?}: arrival {offset} cycles from arming");
                assert!(
                    interrupts >= 2 || got == 2 && interrupts == 1 && offset < 0,
                    "{mode:?} {offset}: {interrupts}"
                );
            }
        }
    }
}
