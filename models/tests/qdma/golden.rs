//! Acceptance checks 1 to 6 of qdma.md section 11.

use models::qdma::{BusyPolls, DropReason, NotifyPolicy, QdmaConfig};
use models::stream::{Offer, QdmaStream};
use models::time::Time;
use regs::context::{ContextOp, ContextSelector};
use regs::{FuncId, Qid, doorbell, qdma_csr as csr};

use crate::driver::*;

/// One BAR0 access of the recorded driver.
struct Access {
    seq: u64,
    write: bool,
    offset: u32,
    value: u32,
}

fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

/// `SEQ BAR rd|wr BYTES OFFSET VALUE`, BAR0 only.
fn accesses(text: &str) -> Vec<Access> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split_whitespace().collect());
    let rows: Vec<Vec<&str>> = lines.filter(|row: &Vec<&str>| row.len() >= 6 && row[1] == "0").collect();
    rows.iter()
        .map(|row| Access {
            seq: number(row[0]),
            write: row[2] == "wr",
            offset: number(row[4]) as u32,
            value: number(row[5]) as u32,
        })
        .collect()
}

/// What the recording's card did by DMA: `SEQ rd|wr ADDRESS BYTES HEX` or `SEQ irq VECTOR`.
enum Dma {
    Read(u64, Vec<u8>),
    Write(u64, Vec<u8>),
    Interrupt(u16),
}

fn dma(text: &str) -> Vec<(u64, Dma)> {
    let bytes = |hex: &str| {
        hex.as_bytes().chunks(2).map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap()).collect()
    };
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    rows.map(|line| {
        let row: Vec<&str> = line.split_whitespace().collect();
        let what = match row[1] {
            "rd" => Dma::Read(number(row[2]), bytes(row[4])),
            "wr" => Dma::Write(number(row[2]), bytes(row[4])),
            _ => Dma::Interrupt(number(row[2]) as u16),
        };
        (number(row[0]), what)
    })
    .collect()
}

/// The recorded card after one access: expect an H2C frame if it read one, echo what it sent to the host, and compare
/// what then lies in host memory.
fn replay_dma(bench: &mut Bench, rings: &[(u64, Qid)], ops: &[(u64, Dma)]) {
    for (_, op) in ops {
        if let Dma::Read(addr, data) = op {
            bench.host.map(F0, *addr, data.len());
            bench.host.put(*addr, data);
        }
    }
    bench.run_ns(5000);
    let reads: Vec<&Vec<u8>> = ops
        .iter()
        .filter_map(|(_, op)| match op {
            Dma::Read(_, d) => Some(d),
            _ => None,
        })
        .collect();
    // An H2C descriptor has 16 bytes, and its data come next.
    for pair in reads.windows(2).filter(|pair| pair[0].len() == 16) {
        let frame = bench.take_tx().expect("the recorded card read a frame here");
        assert_eq!(&frame.data, pair[1]);
        assert_eq!(frame.metadata as usize, pair[1].len());
    }
    let writes: Vec<(u64, &Vec<u8>)> = ops
        .iter()
        .filter_map(|(_, op)| match op {
            Dma::Write(a, d) => Some((*a, d)),
            _ => None,
        })
        .collect();
    // A received frame is a payload, an 8-byte completion, an 8-byte status.
    for frame in writes.windows(3).filter(|w| w[0].1.len() > 8) {
        let [(payload_addr, payload), (entry_addr, entry), (status_addr, status)] = frame else { unreachable!() };
        let (_, qid) = rings.iter().rev().find(|(base, _)| base <= entry_addr).copied().unwrap();
        bench.host.map(F0, *payload_addr, payload.len());
        assert!(bench.receive(qid, payload));
        bench.run_ns(5000);
        assert_eq!(&bench.host.bytes(*payload_addr, payload.len()), *payload);
        // The dummy left queue and packet number 0; color and length must agree.
        let ours = bench.host.u64(*entry_addr);
        let theirs = u64::from_le_bytes(entry.as_slice().try_into().unwrap());
        assert_eq!(ours & 0x0000_FFFF_0000_0007, theirs & 0x0000_FFFF_0000_0007);
        assert_eq!(bench.host.bytes(*status_addr, 8), **status);
    }
    bench.run_ns(5000);
    let expected: Vec<u16> = ops
        .iter()
        .filter_map(|(_, op)| match op {
            Dma::Interrupt(v) => Some(*v),
            _ => None,
        })
        .collect();
    let seen: Vec<u16> = bench.interrupts.drain(..).map(|(_, vector, _)| vector).collect();
    assert_eq!(seen, expected);
}

/// Replay the whole recording of onic.ko: every register access, and the traffic of three pings.
#[test]
fn golden_1_onic_probe_trace() {
    let (Some(probe), Some(traffic)) = (shared_vector("onic_probe_trace.txt"), shared_vector("onic_dma_trace.txt"))
    else {
        return;
    };
    let config = QdmaConfig { coalesce_depth: 16, prefetch_cache_depth: 16, ..QdmaConfig::default() };
    let mut bench = Bench::new(config);
    bench.qdma.reset();
    let traffic = dma(&traffic);
    // The driver wrote its C2H descriptors before the doorbell; the recording shows each when its card read it.
    for (_, op) in &traffic {
        if let Dma::Read(addr, data) = op
            && data.len() == 8
        {
            bench.host.map(F0, *addr, 8 * 1024);
            bench.host.put(*addr, data);
        }
    }
    let mut rings = Vec::new();
    let mut replayed = 0;
    for access in accesses(&probe) {
        replayed += 1;
        bench.now += 200_000;
        if !access.write {
            assert_eq!(bench.read(F0, access.offset), access.value, "access {}", access.seq);
        } else {
            if access.offset == csr::IND_CTXT_CMD && access.value & 0x7E == 0x2C {
                // Completion context: remember whose ring lies where.
                let data: Vec<u32> = (0..6).map(|i| bench.read(F0, csr::IND_CTXT_DATA + 4 * i)).collect();
                let context = regs::context::CompletionContext::from_words(&data.try_into().unwrap());
                rings.push((context.ring_base(), Qid((access.value >> 7) as u16)));
                rings.sort_unstable();
                bench.host.map(F0, context.ring_base(), 8 * 1024);
            }
            if access.offset == csr::IND_CTXT_CMD && access.value & 0x7C == 0x20 {
                // Software context, either direction: the ring's memory.
                let lo = u64::from(bench.read(F0, csr::IND_CTXT_DATA + 8));
                let hi = u64::from(bench.read(F0, csr::IND_CTXT_DATA + 12));
                bench.host.map(F0, hi << 32 | lo, 16 * 4096);
            }
            bench.write(F0, access.offset, access.value);
        }
        let ops = traffic.iter().position(|(seq, _)| *seq == access.seq);
        if let Some(first) = ops {
            let count = traffic[first..].iter().take_while(|(seq, _)| *seq == access.seq).count();
            replay_dma(&mut bench, &rings, &traffic[first..first + count]);
        }
    }
    let counters = *bench.qdma.counters();
    assert!(replayed > 800, "{replayed} accesses");
    assert_eq!(counters.unmapped_accesses, 0);
    assert_eq!(counters.context_commands_refused, 0);
    assert_eq!((counters.h2c.frames_out, counters.c2h.frames_out), (4, 4));
    assert_eq!(counters.writes_refused, 0);
    assert_eq!(bench.read(F0, csr::GLBL_ERROR_STATUS), 0);
    bench.check_conservation();
    assert_eq!(bench.qdma.inside(), 0);
}

/// Q40 as the DPDK driver probes it: attributes, then 4096 context commands and the function maps in under 1 s.
#[test]
fn golden_2_pmd_attributes_and_context_wipe() {
    let config = QdmaConfig { context_busy: BusyPolls::Count(1), num_functions: 2, ..QdmaConfig::default() };
    let mut bench = Bench::new(config);
    bench.qdma.reset();
    assert_eq!(bench.read(F0, 0x000) >> 16, 0x1FD3, "magic");
    assert_eq!(bench.read(F0, 0x134) >> 20 & 0xF, 1, "EQDMA 4.0");
    assert_eq!(bench.read(F0, 0x134) >> 28, 0, "soft IP");
    assert_eq!(bench.read(F0, 0x10C) & 0x3F, 4, "user BAR is 2");
    assert_eq!(bench.read(F0, 0x10C) >> 6 & 0x3F, 4, "of function 1 too");
    assert_eq!(bench.read(F0, 0x104), 0x41);
    assert_eq!(bench.read(F0, 0x120) & 0xFFF, 512);
    assert_eq!(bench.read(F0, 0x118) >> 16 & 3, 3, "both streams");
    assert_eq!(bench.read(FuncId(1), 0x12C) & 0xFF, 1, "own number");

    let start = bench.now;
    let clear = |bench: &mut Bench, selector, index| {
        bench.command(selector, ContextOp::Clear, index);
        // The PMD polls every 10 us.
        for poll in 0.. {
            assert!(poll <= 1, "busy after {poll} polls");
            if bench.read(F0, csr::IND_CTXT_CMD) & 1 == 0 {
                break;
            }
            bench.now += 10_000_000;
        }
    };
    for code in 0..8 {
        for qid in 0..512 {
            clear(&mut bench, ContextSelector::from_code(code), qid);
        }
    }
    for func in 0..2 {
        clear(&mut bench, ContextSelector::Fmap, func);
    }
    assert!(bench.now - start < 1_000_000_000_000, "under 1 s of model time");
    assert_eq!(bench.qdma.counters().context_commands, 8 * 512 + 2 + 1, "and the bench's own function map");
    assert_eq!(bench.qdma.counters().context_commands_refused, 0);
}

/// Three laps of onic.ko's rings: TX 4095 entries, RX and completion 1023.
#[test]
fn golden_3_three_laps() {
    let mut bench = Bench::new(QdmaConfig::default());
    crate::rings::transmit_laps(&mut bench, 0, 3 * 4095 + 1);
    let mut bench = Bench::new(QdmaConfig::default());
    crate::rings::receive_laps(&mut bench, 8, 3 * 1023 + 1);
}

/// Function 1 counts from its own base; a doorbell beyond its queues is an error without effect.
#[test]
fn golden_4_function_1_doorbells_are_relative() {
    let f1 = FuncId(1);
    let mut bench = Bench::new(QdmaConfig { num_functions: 2, ..QdmaConfig::default() });
    bench.unmask_errors();
    bench.fmap(f1, 64, 8);
    let mut mine = TxQueue::open(&mut bench, f1, 0, 64, 1);
    let theirs = TxQueue::open(&mut bench, F0, 0, 0, 1);
    mine.fill(&mut bench, &numbered(7, 60));
    mine.kick(&mut bench);
    bench.run_ns(3000);
    let frame = bench.take_tx().expect("queue 0 of function 1 is queue 64");
    assert_eq!((frame.qid, frame.data), (Qid(64), numbered(7, 60)));
    assert_eq!(bench.sw_h2c(theirs.qid).pidx, 0, "queue 0 of function 0 did not move");

    let before = bench.sw_h2c(Qid(64));
    let offset = doorbell::offset(doorbell::H2C_PIDX, 8).unwrap();
    bench.write(f1, offset, 1);
    use csr::{glbl_trq_error_log as log, glbl_trq_error_status::QID_RANGE};
    assert_eq!(bench.read(F0, csr::GLBL_TRQ_ERROR_STATUS), QID_RANGE.mask());
    let logged = bench.read(F0, csr::GLBL_TRQ_ERROR_LOG);
    assert_eq!((log::FUNC.get(logged), log::ADDRESS.get(logged)), (1, offset & 0x1_FFFF));
    assert_eq!(bench.read(F0, csr::GLBL_ERROR_STATUS), csr::glbl_error_status::TRQ.mask());
    bench.run_ns(3000);
    assert_eq!(bench.sw_h2c(Qid(64)), before);
    assert_eq!(bench.sw_h2c(Qid(72)).pidx, 0);
    assert_eq!(bench.qdma.h2c_peek(bench.now), None);
}

/// One packet, one interrupt after 1 us; a burst at the count; none before CIDX; with leftovers at once.
#[test]
fn golden_5_moderation() {
    let mut bench = Bench::new(QdmaConfig::default());
    let mut rx = RxQueue::open(&mut bench, F0, 0, 0, RxOptions { vector: 3, ..RxOptions::default() });
    bench.run_ns(2000);

    // The entry is written a link and a write latency after the hand-over; the timer counts from there.
    bench.receive(rx.qid, &numbered(0, 60));
    while bench.qdma.counters().completions_out == 0 {
        bench.run_ns(1);
    }
    let written = bench.now;
    bench.run_ns(900);
    assert!(bench.interrupts.is_empty(), "not before the timer");
    assert_eq!(rx.status(&bench).pidx, 0, "nor the status");
    bench.run_ns(200);
    assert_eq!(vectors(&bench), [(0, 3)]);
    let after = bench.interrupts[0].2 - written;
    assert!((998_000..=1_000_000).contains(&after), "{after} ps");
    assert_eq!(rx.reap(&bench).len(), 1);

    // Fewer than the threshold and younger than the timer: it is the doorbell that announces them.
    for n in 0..10 {
        bench.receive(rx.qid, &numbered(n, 60));
    }
    bench.run_ns(500);
    assert_eq!(bench.interrupts.len(), 1, "none before the CIDX doorbell");
    assert_eq!(rx.status(&bench).pidx, 1, "nor a status");
    let doorbell = bench.now;
    rx.arm(&mut bench);
    bench.run_ns(400);
    assert_eq!(bench.interrupts.len(), 2, "leftovers notify at once");
    assert!(bench.interrupts[1].2 - doorbell < 400_000);
    assert_eq!(rx.reap(&bench).len(), 10);

    for n in 0..200 {
        bench.receive(rx.qid, &numbered(n, 60));
    }
    bench.run_ns(20_000);
    assert_eq!(bench.interrupts.len(), 2, "however many and however long, none before the doorbell");
    assert_eq!(rx.status(&bench).pidx, 11);
    rx.arm(&mut bench);
    bench.run_ns(400);
    assert_eq!((bench.interrupts.len(), rx.reap(&bench).len()), (3, 200));

    rx.arm(&mut bench);
    bench.run_ns(5000);
    assert_eq!(bench.interrupts.len(), 3, "nothing left, nothing sent");
    let burst = bench.now;
    for n in 0..64 {
        bench.receive(rx.qid, &numbered(n, 60));
    }
    bench.run_ns(990);
    assert_eq!(bench.interrupts.len(), 4, "the count comes before the timer");
    assert!(bench.interrupts[3].2 - burst < 1_000_000);
    assert_eq!(rx.reap(&bench).len(), 64);
}

/// onic.ko under overload (driver.md 4.1): frames come faster than it polls; a poll that uses up its budget gives no CIDX
/// back; never more than 383 buffers are posted. Frames read, and lost to a full ring.
fn overload(notify: NotifyPolicy) -> (u64, u64) {
    let mut bench = Bench::new(QdmaConfig { notify, ..QdmaConfig::default() });
    let mut rx = RxQueue::start(&mut bench, F0, 0, 0, RxOptions::default());
    rx.post(&mut bench, 383);
    rx.arm(&mut bench);
    bench.run_ns(2000);
    let mut read = 0;
    for number in 0..16_000 {
        if bench.offer(rx.qid, 60) == Offer::Ready {
            bench.force_frame(rx.qid, &numbered(number, 60));
        }
        if number % 40 != 0 {
            continue;
        }
        bench.run_ns(400);
        let pidx = rx.status(&bench).pidx;
        let behind = (pidx + rx.usable() - rx.cidx) % rx.usable();
        let stop = (rx.cidx + behind.min(32)) % rx.usable();
        let taken = rx.reap_to(&bench, stop).len();
        read += taken as u64;
        if taken != 0 {
            rx.post(&mut bench, taken as u16);
        }
        if behind < 32 {
            rx.arm(&mut bench);
        }
    }
    bench.check_conservation();
    (read, bench.qdma.counters().c2h.dropped(DropReason::CompletionRingFull))
}

/// Withholding CIDX overflows the ring only where the status runs free.
#[test]
fn golden_6_overflow_needs_a_free_running_status() {
    let (read, full) = overload(NotifyPolicy::Strict);
    assert_eq!(full, 0, "strict: {read} frames read");
    assert!(read > 5000);
    let (_, full) = overload(NotifyPolicy::FreeRunning);
    assert!(full > 0, "free running: the ring must overflow");
}

/// `Time` only moves forward, whatever a caller passes.
#[test]
fn time_never_goes_back() {
    let mut bench = Bench::new(QdmaConfig::default());
    bench.run_ns(10_000);
    bench.qdma.mmio_write(Time::ZERO, F0, csr::GLBL_SCRATCH, 1);
    bench.qdma.step(Time::ZERO, &mut bench.host);
    RxQueue::open(&mut bench, F0, 0, 0, RxOptions::default());
    assert!(bench.qdma.next_event().unwrap() > bench.now);
}
