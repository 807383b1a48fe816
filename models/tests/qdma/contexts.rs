//! The context window, identification, and register storage.

use models::qdma::{BusyPolls, IpVersion, Qdma, QdmaConfig};
use models::time::Time;
use regs::context::{
    CompletionContext, ContextOp, ContextSelector as S, HwDescContext, PrefetchContext, SwDescContext,
};
use regs::{Access, Bar, FuncId, Qid, Walk, qdma_csr as csr};

use crate::driver::*;

#[test]
fn clear_write_read_invalidate() {
    let mut bench = Bench::new(QdmaConfig::default());
    let sw = SwDescContext { qen: true, ring_base: 0xFFFF_F000, vector: 9, pidx: 7, func_id: 3, ..Default::default() };
    for selector in [S::SwDescC2h, S::SwDescH2c] {
        bench.write_context(selector, 5, &sw.to_words());
        assert_eq!(bench.read_context(selector, 5), sw.to_words());
        bench.command(selector, ContextOp::Invalidate, 5);
        let invalid = SwDescContext { qen: false, ..sw };
        assert_eq!(bench.read_context(selector, 5), invalid.to_words(), "only qen falls");
        bench.command(selector, ContextOp::Clear, 5);
        assert_eq!(bench.read_context::<8>(selector, 5), [0; 8]);
    }
    let cmpl = CompletionContext { valid: true, pidx: 0x123, cidx: 0x45, color: true, ..Default::default() };
    bench.write_context(S::Completion, 5, &cmpl.to_words());
    bench.command(S::Completion, ContextOp::Invalidate, 5);
    assert_eq!(bench.cmpl(Qid(5)), CompletionContext { valid: false, ..cmpl });
    let prefetch = PrefetchContext { valid: true, pfch_en: true, buffer_size_index: 8, ..Default::default() };
    bench.write_context(S::Prefetch, 5, &prefetch.to_words());
    bench.command(S::Prefetch, ContextOp::Invalidate, 5);
    let words = bench.read_context(S::Prefetch, 5);
    assert_eq!(PrefetchContext::from_words(&words), PrefetchContext { valid: false, ..prefetch });
    // Other queues never moved.
    for selector in [S::SwDescC2h, S::SwDescH2c, S::Completion, S::Prefetch] {
        for qid in [4, 6] {
            assert_eq!(bench.read_context::<8>(selector, qid), [0; 8]);
        }
    }
}

#[test]
fn the_mask_selects_bits() {
    let mut bench = Bench::new(QdmaConfig::default());
    bench.write_context(S::SwDescH2c, 1, &[0x1234, 0, 0xAAAA_A000]);
    bench.write(F0, csr::IND_CTXT_DATA, 0xFFFF_FFFF);
    bench.write(F0, csr::IND_CTXT_MASK, 0x0000_00F0);
    for word in 1..8 {
        bench.write(F0, csr::IND_CTXT_DATA + 4 * word, u32::MAX);
        bench.write(F0, csr::IND_CTXT_MASK + 4 * word, 0);
    }
    bench.command(S::SwDescH2c, ContextOp::Write, 1);
    assert_eq!(bench.read_context(S::SwDescH2c, 1), [0x12F4, 0, 0xAAAA_A000, 0, 0, 0, 0, 0]);
}

#[test]
fn busy_for_none_one_many_and_ever() {
    for polls in [0, 1, 7] {
        let mut bench = Bench::new(QdmaConfig { context_busy: BusyPolls::Count(polls), ..QdmaConfig::default() });
        bench.qdma.reset();
        bench.command(S::Fmap, ContextOp::Clear, 0);
        let busy = (0..20).take_while(|_| bench.read(F0, csr::IND_CTXT_CMD) & 1 == 1).count();
        assert_eq!(busy, polls as usize);
    }
    let mut bench = Bench::new(QdmaConfig::default());
    bench.qdma.set_context_busy(BusyPolls::Never);
    bench.write_context(S::Fmap, 0, &[0, 3]);
    assert!((0..5000).all(|_| bench.read(F0, csr::IND_CTXT_CMD) & 1 == 1));
    bench.qdma.set_context_busy(BusyPolls::Count(0));
    assert_eq!(bench.read_context(S::Fmap, 0), [0, 64], "it had no effect, and the next command works");
}

/// B-09: the n-th command of a queue's start hangs.
#[test]
fn one_command_can_hang() {
    let mut bench = Bench::new(QdmaConfig { context_hang_at: Some(2), ..QdmaConfig::default() });
    bench.qdma.reset();
    let mut busy = Vec::new();
    for _ in 0..4 {
        bench.command(S::Fmap, ContextOp::Clear, 0);
        busy.push(bench.read(F0, csr::IND_CTXT_CMD) & 1);
    }
    assert_eq!(busy, [0, 0, 1, 0]);
}

#[test]
fn a_command_while_busy_is_refused() {
    let mut bench = Bench::new(QdmaConfig { context_busy: BusyPolls::Count(3), ..QdmaConfig::default() });
    bench.qdma.reset();
    bench.write_context(S::Fmap, 0, &[0, 5]);
    bench.write_context(S::Fmap, 0, &[0, 6]);
    assert_eq!(bench.qdma.counters().context_commands_refused, 1);
    let status = bench.read(F0, csr::GLBL_ERROR_STATUS);
    assert_eq!(csr::glbl_error_status::IND_CTXT_CMD.get(status), 1, "function 0");
    while bench.read(F0, csr::IND_CTXT_CMD) & 1 == 1 {}
    assert_eq!(bench.read_context(S::Fmap, 0), [0, 5]);
}

#[test]
fn commands_to_nothing_are_refused() {
    let mut bench = Bench::new(QdmaConfig { num_queues: 16, ..QdmaConfig::default() });
    for (selector, qid) in [(S::SwDescC2h, 16), (S::Completion, 0x1FFF), (S::Fmap, 256), (S::Unknown(14), 0)] {
        let before = bench.qdma.counters().context_commands_refused;
        bench.command(selector, ContextOp::Write, qid);
        assert_eq!(bench.qdma.counters().context_commands_refused, before + 1, "{selector:?} {qid}");
    }
    bench.command(S::Timer, ContextOp::Invalidate, 0);
    bench.write_context(S::HostProfile, 0, &[1, 2, 3]);
    assert_eq!(bench.read_context::<3>(S::HostProfile, 0), [1, 2, 3]);
}

/// The hardware context shows where the card stands; clearing it starts the ring over.
#[test]
fn the_hardware_context_follows() {
    let mut bench = Bench::new(QdmaConfig::default());
    let mut tx = TxQueue::open(&mut bench, F0, 0, 0, 1);
    for n in 0..5 {
        tx.fill(&mut bench, &numbered(n, 60));
    }
    tx.kick(&mut bench);
    bench.run_ns(3000);
    let hw = HwDescContext::from_words(&bench.read_context(S::HwDescH2c, 0));
    assert_eq!((hw.cidx, hw.idl_stp_b), (5, true));
    let words = bench.read_context(S::HwDescC2h, 0);
    assert_eq!(HwDescContext::from_words(&words), HwDescContext::default());
}

/// A stale hardware index (the driver enables the queue first, then clears it) must not start a fetch.
#[test]
fn invalidating_a_hardware_context_clears_it() {
    let mut bench = Bench::new(QdmaConfig::default());
    bench.write_context(S::HwDescH2c, 3, &[7]);
    bench.command(S::HwDescH2c, ContextOp::Invalidate, 3);
    assert_eq!(bench.read_context::<2>(S::HwDescH2c, 3), [0; 2]);
}

#[test]
fn enabling_before_clearing_is_tolerated() {
    let mut bench = Bench::new(QdmaConfig::default());
    for round in 0..3 {
        let mut rx = RxQueue::open(&mut bench, F0, 0, 0, RxOptions::default());
        let mut tx = TxQueue::open(&mut bench, F0, 0, 0, 1);
        bench.run_ns(3000);
        for n in 0..7 {
            bench.receive(rx.qid, &numbered(n, 60));
            tx.fill(&mut bench, &numbered(n, 60));
        }
        tx.kick(&mut bench);
        bench.run_ns(5000);
        assert_eq!(rx.poll(&mut bench).len(), 7, "round {round}");
        for n in 0..7 {
            assert_eq!(bench.take_tx().map(|frame| frame.data), Some(numbered(n, 60)));
        }
        rx.stop(&mut bench);
        for selector in [S::SwDescH2c, S::HwDescH2c, S::CreditH2c] {
            bench.command(selector, ContextOp::Invalidate, 0);
        }
        let fetches = bench.qdma.counters().descriptor_fetches;
        bench.write_context(
            S::SwDescC2h,
            0,
            &SwDescContext { qen: true, fcrd_en: true, ..Default::default() }.to_words(),
        );
        bench.run_ns(5000);
        assert_eq!(bench.qdma.counters().descriptor_fetches, fetches);
    }
    assert_eq!(bench.qdma.counters().reads_refused, 0);
}

/// Every register of the map in BAR0: reset value, then walking ones and zeroes by access kind, and no aliasing.
#[test]
fn registers_are_as_the_map_says() {
    let mut qdma = Qdma::new(QdmaConfig::default());
    let words: Vec<_> = regs::registers()
        .iter()
        .filter(|r| r.bar == Bar::Qdma && r.offset < regs::qdma::DOORBELL)
        .flat_map(|r| (0..r.count).map(move |i| (r, i, r.offset_of(i).unwrap())))
        .collect();
    assert!(words.len() > 150);
    for (register, i, offset) in &words {
        if let Some(reset) = register.reset_of(*i) {
            assert_eq!(u64::from(qdma.mmio_read(F0, *offset)), reset, "{} [{i}] after reset", register.name);
        }
    }
    for (register, i, offset) in words.iter().filter(|(r, ..)| r.walk == Walk::Full) {
        let writable = register.mask_of(Access::ReadWrite) as u32;
        let fixed = qdma.mmio_read(F0, *offset) & !writable;
        for value in (0..32).map(|bit| 1 << bit).chain([0, u32::MAX]) {
            qdma.mmio_write(Time::ZERO, F0, *offset, value);
            let read = qdma.mmio_read(F0, *offset);
            assert_eq!(read, value & writable | fixed, "{} [{i}] <- {value:#x}", register.name);
            // ARM and the like stay 0 here: nothing is pending.
        }
        let own = 0x5A5A_0000 | *offset;
        qdma.mmio_write(Time::ZERO, F0, *offset, own);
    }
    for (register, i, offset) in words.iter().filter(|(r, ..)| r.walk == Walk::Full) {
        let writable = register.mask_of(Access::ReadWrite) as u32;
        let own = (0x5A5A_0000 | *offset) & writable;
        assert_eq!(qdma.mmio_read(F0, *offset) & writable, own, "{} [{i}] aliases another", register.name);
    }
    assert_eq!(qdma.counters().unmapped_accesses, 0);
}

#[test]
fn identification_follows_version_and_shape() {
    let word = |config: QdmaConfig, offset| Qdma::new(config).mmio_read(FuncId(0), offset);
    for (ip, code) in [(IpVersion::Q31, 0), (IpVersion::Q40, 1), (IpVersion::Q50, 2)] {
        let cap = word(QdmaConfig { ip, ..QdmaConfig::default() }, csr::MISC_CAP);
        assert_eq!(csr::misc_cap::IP_VERSION.get(cap), code);
    }
    let four = QdmaConfig { num_functions: 4, num_queues: 2048, ..QdmaConfig::default() };
    assert_eq!(word(four.clone(), csr::PF_BARLITE_INT), 0x41041);
    assert_eq!(word(four.clone(), csr::PF_BARLITE_EXT), 0x10_4104);
    assert_eq!(word(four, csr::QDMA_CAP), 2048);
}

/// A hole in CSR space reads 0 silently; beyond it the access is an error too.
#[test]
fn unmapped_accesses_are_counted() {
    let mut bench = Bench::new(QdmaConfig::default());
    assert_eq!(bench.read(F0, 0x2FFC), 0);
    assert_eq!(bench.read(F0, csr::GLBL_TRQ_ERROR_STATUS), 0);
    assert_eq!(bench.read(F0, 0x3000), 0);
    assert_eq!(bench.read(F0, csr::GLBL_TRQ_ERROR_STATUS), 1);
    bench.write(F0, 0x2_0000, 1);
    assert_eq!(bench.read(F0, 0x205), 0, "not a whole word");
    assert_eq!(bench.qdma.counters().unmapped_accesses, 4);
}

/// reset(): registers, contexts, frames; time and counters go on.
#[test]
fn reset_forgets_everything_but_counters() {
    let mut bench = Bench::new(QdmaConfig::default());
    let rx = RxQueue::open(&mut bench, F0, 0, 0, RxOptions::default());
    let mut tx = TxQueue::open(&mut bench, F0, 0, 0, 1);
    for n in 0..3 {
        tx.fill(&mut bench, &numbered(n, 60));
    }
    tx.kick(&mut bench);
    bench.receive(rx.qid, &numbered(0, 60));
    bench.run_ns(3000);
    bench.receive(rx.qid, &numbered(1, 60));
    assert_eq!(bench.qdma.inside(), 4);
    bench.qdma.reset();
    assert_eq!((bench.qdma.inside(), bench.qdma.next_event()), (0, None));
    bench.check_conservation();
    assert_eq!(bench.qdma.counters().c2h.frames_out, 1);
    assert_eq!(bench.read(F0, csr::C2H_COMPLETIONS_OUT), 0, "by MMIO from the reset on");
    assert_eq!(bench.read(F0, csr::GLBL_RING_SIZE), 0);
    assert_eq!(bench.sw_c2h(rx.qid), SwDescContext::default());
    assert_eq!(bench.take_tx(), None);
}
