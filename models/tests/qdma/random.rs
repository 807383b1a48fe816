//! Whatever a driver and a shell do: no panic, no endless work, and every frame ends somewhere.

use models::qdma::{IpVersion, Leftover, NoDesc, NotifyPolicy, QdmaConfig};
use models::stream::{C2hCompletion, C2hFrame, Offer, QdmaStream};
use proptest::prelude::*;
use regs::context::{ContextCommand, ContextOp, ContextSelector, TriggerMode};
use regs::{FuncId, Qid, qdma_csr as csr};

use crate::driver::*;

/// What can happen. Numbers are folded to what the bench has.
#[derive(Clone, Debug)]
enum Op {
    /// Any register, any value.
    Write {
        func: u8,
        word: u32,
        value: u32,
    },
    Read {
        func: u8,
        word: u32,
    },
    /// A doorbell near what is plausible.
    Doorbell {
        func: u8,
        rel_qid: u16,
        register: u32,
        value: u32,
    },
    /// A context command over whatever the data registers hold.
    Command {
        selector: u8,
        op: u8,
        qid: u16,
    },
    /// A queue set up properly, then left to the others.
    OpenRx {
        qid: u16,
        ring: u8,
    },
    OpenTx {
        qid: u16,
        ring: u8,
        count: u16,
    },
    StopRx {
        qid: u16,
    },
    Frame {
        qid: u16,
        len: u16,
    },
    /// A completion nobody asked for.
    Orphan {
        qid: u16,
        pkt_id: u16,
    },
    Take {
        count: u8,
    },
    Run {
        ns: u32,
    },
    Unmap {
        page: u64,
    },
    Reset,
}

fn op() -> impl Strategy<Value = Op> {
    let table = prop_oneof![csr::GLBL_RING_SIZE..csr::GLBL_RING_SIZE + 64, csr::C2H_TIMER_COUNT..csr::CMPT_FORMAT + 4];
    let word = prop_oneof![2 => table.prop_map(|o| o / 4), 1 => 0u32..0x10_000, 1 => any::<u32>().prop_map(|o| o / 4)];
    let value = prop_oneof![any::<u32>(), 0u32..70, Just(u32::MAX)];
    let qid = || 0u16..10;
    prop_oneof![
        3 => (0u8..3, word.clone(), value.clone()).prop_map(|(func, word, value)| Op::Write { func, word, value }),
        1 => (0u8..3, word).prop_map(|(func, word)| Op::Read { func, word }),
        6 => (0u8..2, qid(), 0u32..4, prop_oneof![value, (0u32..64).prop_map(|cidx| 0x1D00_0000 | cidx)])
            .prop_map(|(func, rel_qid, register, value)| Op::Doorbell { func, rel_qid, register, value }),
        3 => (0u8..16, 0u8..4, qid()).prop_map(|(selector, op, qid)| Op::Command { selector, op, qid }),
        3 => (0u16..8, 0u8..16).prop_map(|(qid, ring)| Op::OpenRx { qid, ring }),
        3 => (0u16..8, 0u8..16, 0u16..100).prop_map(|(qid, ring, count)| Op::OpenTx { qid, ring, count }),
        1 => (0u16..8).prop_map(|qid| Op::StopRx { qid }),
        8 => (qid(), prop_oneof![60u16..200, 0u16..10_000]).prop_map(|(qid, len)| Op::Frame { qid, len }),
        1 => (qid(), any::<u16>()).prop_map(|(qid, pkt_id)| Op::Orphan { qid, pkt_id }),
        4 => (0u8..40).prop_map(|count| Op::Take { count }),
        6 => (0u32..3000).prop_map(|ns| Op::Run { ns }),
        1 => (0u64..600).prop_map(|page| Op::Unmap { page }),
        1 => Just(Op::Reset),
    ]
}

fn config() -> impl Strategy<Value = QdmaConfig> {
    let ip = prop_oneof![Just(IpVersion::Q31), Just(IpVersion::Q40), Just(IpVersion::Q50)];
    (ip, any::<[bool; 6]>()).prop_map(|(ip, [drop, free, restart, late, order, fast])| QdmaConfig {
        ip,
        num_functions: 2,
        num_queues: 8,
        no_desc: if drop { NoDesc::Drop } else { NoDesc::Stall },
        notify: if free { NotifyPolicy::FreeRunning } else { NotifyPolicy::Strict },
        leftover: if restart { Leftover::RestartTimer } else { Leftover::NotifyAtOnce },
        late_dma_after_inv_ns: if late { 700 } else { 0 },
        late_entry_ps: if order { 40_000 } else { 0 },
        late_payload_ps: if order { 90_000 } else { 0 },
        read_latency_ps: if fast { 0 } else { 500_000 },
        write_latency_ps: if fast { 0 } else { 250_000 },
        link_ps_per_byte: if fast { 0 } else { 64 },
        c2h_buffer_beats: 64,
        h2c_buffer_beats: 64,
        ..QdmaConfig::default()
    })
}

fn apply(bench: &mut Bench, op: Op) {
    match op {
        Op::Write { func, word, value } => bench.write(FuncId(func), word.wrapping_mul(4), value),
        Op::Read { func, word } => {
            bench.read(FuncId(func), word.wrapping_mul(4));
        }
        Op::Doorbell { func, rel_qid, register, value } => {
            let offset = regs::doorbell::offset(4 * register, rel_qid).unwrap();
            bench.write(FuncId(func), offset, value);
        }
        Op::Command { selector, op, qid } => {
            let selector = ContextSelector::from_code(selector);
            let command = ContextCommand { selector, op: ContextOp::from_code(op), qid };
            bench.write(F0, csr::IND_CTXT_CMD, command.to_word());
        }
        Op::OpenRx { qid, ring } => {
            bench.set_table(csr::GLBL_RING_SIZE, u32::from(ring), 4 + 5 * u32::from(ring));
            bench.set_table(csr::C2H_BUFFER_SIZE, u32::from(ring), 512);
            bench.fmap(F0, 0, 8);
            let mode = TriggerMode::from_code(ring % 6);
            let options = RxOptions { ring_index: ring, buffer_index: ring, mode, ..RxOptions::default() };
            RxQueue::open(bench, F0, qid, 0, options);
        }
        Op::OpenTx { qid, ring, count } => {
            bench.set_table(csr::GLBL_RING_SIZE, u32::from(ring), 4 + 5 * u32::from(ring));
            bench.fmap(F0, 0, 8);
            let mut tx = TxQueue::open(bench, F0, qid, 0, ring);
            for n in 0..count.min(tx.usable() - 1) {
                tx.fill(bench, &numbered(u64::from(n), usize::from(n * 3)));
            }
            tx.kick(bench);
        }
        Op::StopRx { qid } => {
            for selector in [0, 2, 4, 7, 6].map(ContextSelector::from_code) {
                bench.command(selector, ContextOp::Invalidate, qid);
            }
        }
        Op::Frame { qid, len } => {
            if bench.offer(Qid(qid), usize::from(len)) != Offer::Stall {
                bench.force_frame(Qid(qid), &numbered(1, usize::from(len)));
            }
        }
        Op::Orphan { qid, pkt_id } => {
            let completion = C2hCompletion { qid: Qid(qid), len_bytes: 60, pkt_id };
            bench.qdma.c2h_completion(bench.now, completion);
        }
        Op::Take { count } => {
            for _ in 0..count {
                bench.take_tx();
            }
        }
        Op::Run { ns } => bench.run_ns(u64::from(ns)),
        Op::Unmap { page } => bench.host.unmap(0x1000_0000 + 4096 * page),
        Op::Reset => bench.qdma.reset(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_driver_and_any_shell(config in config(), ops in prop::collection::vec(op(), 1..120)) {
        let mut bench = Bench::new(config);
        for op in ops {
            apply(&mut bench, op);
            bench.check_conservation();
        }
        bench.run_ns(100_000);
        while bench.take_tx().is_some() {
            bench.run_ns(2000);
        }
        bench.check_conservation();
        prop_assert_eq!(bench.qdma.h2c_inside(), 0);
        // After a reset nothing of it is left and a plain driver gets its frames.
        bench.qdma.reset();
        prop_assert_eq!(bench.qdma.inside(), 0);
        bench.check_conservation();
    }

    /// Well-behaved traffic over random sizes, pauses and steps: everything arrives, in order, whatever the steps.
    #[test]
    fn a_good_driver_loses_nothing(
        size in 4u32..80,
        lengths in prop::collection::vec(0usize..1600, 1..200),
        pauses in prop::collection::vec(0u64..3000, 1..50),
        buffer in 128u32..2048,
        no_desc_drop in any::<bool>(),
    ) {
        let no_desc = if no_desc_drop { NoDesc::Drop } else { NoDesc::Stall };
        let mut bench = Bench::new(QdmaConfig { no_desc, ..QdmaConfig::default() });
        bench.set_table(csr::GLBL_RING_SIZE, 5, size);
        bench.set_table(csr::C2H_BUFFER_SIZE, 5, buffer);
        let options = RxOptions { ring_index: 5, buffer_index: 5, ..RxOptions::default() };
        let mut rx = RxQueue::open(&mut bench, F0, 0, 0, options);
        let capacity = size as usize - 2;
        let mut expected = std::collections::VecDeque::new();
        let mut pauses = pauses.iter().cycle();
        let mut busy = 0;
        let mut got = 0;
        for (n, len) in lengths.iter().enumerate() {
            let needed = len.div_ceil(buffer as usize).max(1);
            if needed > capacity {
                continue;
            }
            // A careful sender: never more buffers wanted than the ring holds.
            while busy + needed > capacity {
                bench.run_ns(2500);
                let read = rx.poll(&mut bench);
                for (entry, data) in read {
                    let want: Vec<u8> = expected.pop_front().unwrap();
                    busy -= want.len().div_ceil(buffer as usize).max(1);
                    got += 1;
                    prop_assert_eq!(usize::from(entry.len_bytes), want.len());
                    prop_assert_eq!(data, want);
                }
            }
            busy += needed;
            let data = numbered(n as u64, *len);
            prop_assert!(bench.receive(rx.qid, &data));
            expected.push_back(data);
            bench.run_ps(*pauses.next().unwrap() * 100);
        }
        bench.run_ns(10_000);
        for _ in 0..3 {
            for (_, data) in rx.poll(&mut bench) {
                prop_assert_eq!(Some(data), expected.pop_front());
                got += 1;
            }
            bench.run_ns(3000);
        }
        prop_assert!(expected.is_empty());
        prop_assert_eq!(bench.qdma.counters().c2h.frames_out, got);
        prop_assert_eq!(bench.qdma.inside(), 0);
    }
}

/// A frame whose completion never came, one with a wrong number, one for another queue.
#[test]
fn completions_that_do_not_fit() {
    let mut bench = Bench::new(QdmaConfig::default());
    bench.unmask_errors();
    let rx = RxQueue::open(&mut bench, F0, 0, 0, RxOptions::default());
    bench.run_ns(3000);
    let frame = |bench: &mut Bench| {
        bench.qdma.c2h_frame(bench.now, C2hFrame { data: numbered(1, 60), qid: rx.qid });
    };
    let completion = |bench: &mut Bench, qid, pkt_id| {
        bench.qdma.c2h_completion(bench.now, C2hCompletion { qid, len_bytes: 60, pkt_id });
    };
    frame(&mut bench);
    frame(&mut bench);
    completion(&mut bench, rx.qid, 2);
    bench.run_ns(5000);
    let count = |bench: &Bench, reason| bench.qdma.counters().c2h.dropped(reason);
    assert_eq!(count(&bench, models::qdma::DropReason::NoCompletion), 1);
    assert_eq!(bench.qdma.counters().c2h.frames_out, 1);
    completion(&mut bench, rx.qid, 2);
    bench.run_ns(5000);
    assert_eq!(bench.qdma.counters().completions_orphaned, 1);
    completion(&mut bench, Qid(1), 3);
    bench.run_ns(5000);
    assert_eq!(bench.qdma.counters().completions_orphaned, 1, "it waits for its frame");
    frame(&mut bench);
    bench.run_ns(5000);
    let expected = csr::c2h_error_status::QID_MISMATCH.mask() | csr::c2h_error_status::CMPT_INVALID_QUEUE.mask();
    assert_eq!(bench.read(F0, csr::C2H_ERROR_STATUS), expected);
    assert_eq!(bench.qdma.inside(), 0);
    bench.check_conservation();
}

/// Traffic both ways over 40 us; how the time between accesses is stepped is the caller's choice.
fn scripted(run: impl Fn(&mut Bench, u64)) -> (Bench, u64) {
    let mut bench = Bench::new(QdmaConfig::default());
    bench.set_table(csr::GLBL_RING_SIZE, 5, 64);
    let mut queues: Vec<RxQueue> = (0..3)
        .map(|q| RxQueue::open(&mut bench, F0, q, 0, RxOptions { vector: q, ring_index: 5, ..RxOptions::default() }))
        .collect();
    let mut tx = TxQueue::open(&mut bench, F0, 0, 0, 5);
    let mut sum = 0u64;
    for n in 0..200u64 {
        bench.receive(Qid((n * 7 % 3) as u16), &numbered(n, 60 + (n * 37 % 900) as usize));
        if n % 5 == 0 && tx.outstanding() < 40 {
            tx.fill(&mut bench, &numbered(n, 60 + n as usize % 190));
            tx.kick(&mut bench);
        }
        run(&mut bench, 200_000 + n % 7 * 10_000);
        if n % 11 == 10 {
            tx.reclaim(&bench);
            while let Some(frame) = bench.take_tx() {
                sum = sum.wrapping_mul(31).wrapping_add(frame.data.len() as u64);
            }
            for rx in &mut queues {
                for (entry, data) in rx.poll(&mut bench) {
                    sum = sum.wrapping_mul(31).wrapping_add(u64::from(entry.pkt_id) + data.len() as u64);
                }
            }
        }
    }
    run(&mut bench, 20_000_000);
    (bench, sum)
}

/// The same accesses at the same times give the same memory, interrupts and their times, however finely it is stepped.
#[test]
fn the_result_does_not_depend_on_the_steps() {
    let (fine, fine_sum) = scripted(|bench, ps| (0..ps / 1000).for_each(|_| bench.run_ns(1)));
    let (events, events_sum) = scripted(|bench, ps| bench.run_ps(ps));
    let (lumps, lumps_sum) = scripted(|bench, ps| {
        bench.now += ps;
        bench.qdma.step(bench.now, &mut bench.host);
        bench.run_ps(0);
    });
    assert!(events.interrupts.len() > 20);
    for (other, sum) in [(&fine, fine_sum), (&lumps, lumps_sum)] {
        assert_eq!(other.interrupts, events.interrupts);
        assert_eq!(other.qdma.counters(), events.qdma.counters());
        assert_eq!(sum, events_sum);
        assert!(other.host.same_as(&events.host), "host memory differs");
    }
}
