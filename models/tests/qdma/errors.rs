//! The error tree and what each error does to its queue, and to no other. qdma.md section 8; stop: 9.3.

use models::qdma::{DropReason, ErrorLog, H2cDataFault, IpVersion, QdmaConfig};
use regs::context::{CompletionQueueError, ContextOp, ContextSelector as S, EntrySize};
use regs::descriptor::H2cDescriptor;
use regs::{FuncId, Qid, doorbell, qdma_csr as csr};

use crate::driver::*;

fn bench() -> Bench {
    bench_with(QdmaConfig::default())
}

fn bench_with(config: QdmaConfig) -> Bench {
    let mut bench = Bench::new(config);
    bench.unmask_errors();
    bench
}

/// A frame through RX queue 9 and one through TX queue 9: nothing that happened elsewhere concerns them.
fn others_work(bench: &mut Bench) {
    let mut rx = RxQueue::open(bench, F0, 9, 0, RxOptions::default());
    let mut tx = TxQueue::open(bench, F0, 9, 0, 1);
    tx.fill(bench, &numbered(9, 60));
    tx.kick(bench);
    assert!(bench.receive(rx.qid, &numbered(9, 60)));
    bench.run_ns(5000);
    assert_eq!(rx.poll(bench).len(), 1);
    assert_eq!(bench.take_tx().map(|frame| frame.data), Some(numbered(9, 60)));
    bench.check_conservation();
}

#[test]
fn status_is_write_one_to_clear_leaf_first() {
    let mut bench = bench();
    bench.write(F0, doorbell::offset(doorbell::C2H_PIDX, 64).unwrap(), 1);
    let (leaf, root) = (csr::glbl_trq_error_status::QID_RANGE.mask(), csr::glbl_error_status::TRQ.mask());
    bench.write(F0, csr::GLBL_ERROR_STATUS, root);
    assert_eq!(bench.read(F0, csr::GLBL_ERROR_STATUS), root, "the leaf holds it");
    bench.write(F0, csr::GLBL_TRQ_ERROR_STATUS, !leaf);
    assert_eq!(bench.read(F0, csr::GLBL_TRQ_ERROR_STATUS), leaf, "only ones clear");
    bench.write(F0, csr::GLBL_TRQ_ERROR_STATUS, leaf);
    assert_eq!(bench.read(F0, csr::GLBL_TRQ_ERROR_STATUS), 0);
    assert_eq!(bench.read(F0, csr::GLBL_TRQ_ERROR_LOG), 0);
    bench.write(F0, csr::GLBL_ERROR_STATUS, root);
    assert_eq!(bench.read(F0, csr::GLBL_ERROR_STATUS), 0);
}

/// The error interrupt: masked, unmasked, armed once.
#[test]
fn the_error_interrupt_disarms_itself() {
    let mut bench = Bench::new(QdmaConfig::default());
    let armed = csr::error_interrupt::VECTOR.set(csr::error_interrupt::ARM.mask(), 9);
    bench.write(F0, csr::ERROR_INTERRUPT, armed);
    let bad = |bench: &mut Bench| bench.write(F0, doorbell::offset(doorbell::H2C_PIDX, 64).unwrap(), 1);
    bad(&mut bench);
    bench.run_ns(100);
    assert!(bench.interrupts.is_empty(), "leaf masked");
    bench.write(F0, csr::GLBL_TRQ_ERROR_MASK, u32::MAX);
    bench.run_ns(100);
    assert!(bench.interrupts.is_empty(), "root masked");
    bench.write(F0, csr::GLBL_ERROR_MASK, csr::glbl_error_status::TRQ.mask());
    bench.run_ns(100);
    assert_eq!(vectors(&bench), [(0, 9)]);
    assert_eq!(bench.read(F0, csr::ERROR_INTERRUPT), armed & !csr::error_interrupt::ARM.mask());
    bad(&mut bench);
    bench.run_ns(100);
    assert_eq!(bench.interrupts.len(), 1, "not armed");
    bench.write(F0, csr::ERROR_INTERRUPT, armed);
    bench.run_ns(100);
    assert_eq!(bench.interrupts.len(), 2, "armed while an error stands");
}

/// onic.ko's mask 0xF misses EQDMA's queue range bit, and catches 3.1's.
#[test]
fn dialects_place_bits_differently() {
    for (ip, bit, root) in [(IpVersion::Q31, 1, 1 << 3), (IpVersion::Q40, 5, 0), (IpVersion::Q50, 5, 0)] {
        let mut bench = Bench::new(QdmaConfig { ip, ..QdmaConfig::default() });
        bench.write(F0, csr::GLBL_TRQ_ERROR_MASK, 0xF);
        bench.write(F0, doorbell::offset(doorbell::C2H_PIDX, 64).unwrap(), 1);
        assert_eq!(bench.read(F0, csr::GLBL_TRQ_ERROR_STATUS), 1 << bit, "{ip:?}");
        assert_eq!(bench.read(F0, csr::GLBL_ERROR_STATUS), root, "{ip:?}");
    }
    for (ip, root) in [(IpVersion::Q31, 1 << 11), (IpVersion::Q40, 1 << 16)] {
        let mut bench = bench_with(QdmaConfig { ip, ..QdmaConfig::default() });
        let mut tx = TxQueue::open(&mut bench, F0, 0, 0, 1);
        tx.fill(&mut bench, &[]);
        tx.kick(&mut bench);
        bench.run_ns(3000);
        assert_eq!(bench.read(F0, csr::GLBL_ERROR_STATUS), root, "{ip:?}: H2C stream");
    }
}

#[test]
fn queue_range() {
    let mut bench = bench();
    bench.fmap(F0, 500, 100);
    for rel_qid in [12, 99, 100, 2047] {
        bench.write(F0, csr::GLBL_TRQ_ERROR_STATUS, u32::MAX);
        bench.write(F0, doorbell::offset(doorbell::COMPLETION_CIDX, rel_qid).unwrap(), 0);
        let status = bench.read(F0, csr::GLBL_TRQ_ERROR_STATUS);
        assert_eq!(status, csr::glbl_trq_error_status::QID_RANGE.mask(), "relative queue {rel_qid}");
    }
    assert_eq!(bench.qdma.counters().doorbells_ignored, 4);
    // A function without a map owns nothing.
    bench.write(FuncId(3), doorbell::offset(doorbell::H2C_PIDX, 0).unwrap(), 0);
    let log = bench.read(F0, csr::GLBL_TRQ_ERROR_LOG);
    assert_eq!(csr::glbl_trq_error_log::FUNC.get(log), 0, "the first error stays");
    bench.fmap(F0, 0, 64);
    others_work(&mut bench);
}

/// PIDX beyond the ring, or past what is free.
#[test]
fn invalid_pidx_stops_the_queue() {
    for (posted, pidx) in [(0, 63), (0, 0xFFFF), (10, 5), (62, 0), (62, 5)] {
        let mut bench = bench();
        let mut tx = TxQueue::open(&mut bench, F0, 2, 0, 1);
        for n in 0..posted {
            tx.fill(&mut bench, &numbered(n, 60));
        }
        tx.kick(&mut bench);
        bench.run_ns(3000);
        tx.ring_pidx(&mut bench, pidx);
        bench.run_ns(3000);
        let what = format!("{posted} posted, then {pidx}");
        assert_eq!(
            bench.read(F0, csr::GLBL_DSC_ERROR_STATUS),
            csr::glbl_dsc_error_status::INVALID_PIDX.mask(),
            "{what}"
        );
        use csr::{glbl_dsc_error_log0 as log0, glbl_dsc_error_log1 as log1, glbl_dsc_error_log2 as log2};
        let logs = [csr::GLBL_DSC_ERROR_LOG0, csr::GLBL_DSC_ERROR_LOG1, csr::GLBL_DSC_ERROR_LOG2];
        let [l0, l1, l2] = logs.map(|offset| bench.read(F0, offset));
        assert_eq!((log0::VALID.get(l0), log0::SEL.get(l0), log0::QID.get(l0)), (1, 1, 2), "{what}");
        assert_eq!(log1::ERROR_TYPE.get(l1), 21);
        assert_eq!((log2::OLD_PIDX.get(l2), log2::NEW_PIDX.get(l2)), (posted as u32, u32::from(pidx)), "{what}");
        let context = bench.sw_h2c(Qid(2));
        assert_eq!((context.err, context.err_wb_sent, u64::from(context.pidx)), (1, true, posted), "{what}");
        assert_eq!(tx.status(&bench).err, 1, "forced write-back");
        // Frames that were already read go out; the queue gives nothing back and does nothing more.
        while bench.take_tx().is_some() {}
        bench.run_ns(3000);
        assert_eq!(tx.status(&bench).cidx, 0, "{what}");
        others_work(&mut bench);
        // Cleared and written again, it works.
        let mut tx = TxQueue::open(&mut bench, F0, 2, 0, 1);
        tx.fill(&mut bench, &numbered(1, 60));
        tx.kick(&mut bench);
        bench.run_ns(3000);
        assert_eq!(bench.take_tx().map(|frame| frame.data), Some(numbered(1, 60)));
    }
}

#[test]
fn invalid_pidx_of_a_receive_queue() {
    // Outside the ring; one more than fits; backwards.
    for pidx in [1023, 1022, 500] {
        invalid_receive_pidx(pidx);
    }
}

fn invalid_receive_pidx(pidx: u16) {
    let mut bench = bench();
    let mut rx = RxQueue::start(&mut bench, F0, 2, 0, RxOptions::default());
    rx.post(&mut bench, 1021);
    rx.arm(&mut bench);
    bench.run_ns(3000);
    rx.post(&mut bench, 0);
    assert_eq!(bench.read(F0, csr::GLBL_DSC_ERROR_STATUS), 0, "the same again is fine");
    if pidx == 1022 {
        // All N-2 posted: from here slot 0 is one too many.
        rx.post(&mut bench, 1);
        assert_eq!(bench.read(F0, csr::GLBL_DSC_ERROR_STATUS), 0);
        rx.ring_pidx(&mut bench, 0);
    } else {
        rx.ring_pidx(&mut bench, pidx);
    }
    assert_eq!(bench.read(F0, csr::GLBL_DSC_ERROR_STATUS), csr::glbl_dsc_error_status::INVALID_PIDX.mask());
    let log = bench.read(F0, csr::GLBL_DSC_ERROR_LOG0);
    assert_eq!(csr::glbl_dsc_error_log0::SEL.get(log), 0);
    // Its frames end as error completions and block nobody.
    for n in 0..3 {
        bench.receive(rx.qid, &numbered(n, 60));
    }
    bench.run_ns(5000);
    assert_error_completion(&mut bench, &mut rx, 3);
    others_work(&mut bench);
}

/// One entry with the error bit, status with error 2, an interrupt; the queue is invalid, the other frames dropped.
fn assert_error_completion(bench: &mut Bench, rx: &mut RxQueue, frames: u64) {
    let entry = rx.entry(bench, 0);
    assert!(entry.err && entry.color, "{entry:?}");
    let status = rx.status(bench);
    assert_eq!((status.pidx, status.err), (1, CompletionQueueError::Descriptor));
    assert_eq!(bench.interrupts.len(), 1);
    let context = bench.cmpl(rx.qid);
    assert_eq!((context.valid, context.err), (false, CompletionQueueError::Descriptor));
    assert_eq!(bench.qdma.counters().completions_with_error, 1);
    assert_eq!(bench.qdma.counters().c2h.dropped(DropReason::DmaFault), frames);
    assert_eq!(bench.qdma.counters().c2h.frames_out, 0);
    bench.interrupts.clear();
}

#[test]
fn a_receive_descriptor_that_cannot_be_read() {
    let mut bench = bench();
    let mut rx = RxQueue::start(&mut bench, F0, 2, 0, RxOptions::default());
    bench.host.unmap(rx.desc_ring);
    rx.post(&mut bench, 100);
    rx.arm(&mut bench);
    bench.receive(rx.qid, &numbered(0, 60));
    bench.receive(rx.qid, &numbered(1, 60));
    bench.run_ns(5000);
    assert_eq!(bench.read(F0, csr::GLBL_DSC_ERROR_STATUS), csr::glbl_dsc_error_status::UR_CA.mask());
    assert_eq!(csr::glbl_dsc_error_log0::QID.get(bench.read(F0, csr::GLBL_DSC_ERROR_LOG0)), 2);
    assert_eq!(bench.sw_c2h(rx.qid).err, 1);
    assert_error_completion(&mut bench, &mut rx, 2);
    let status = bench.read(F0, csr::C2H_ERROR_STATUS);
    let expected = csr::c2h_error_status::DESC_RSP.mask() | csr::c2h_error_status::CMPT_INVALID_QUEUE.mask();
    assert_eq!(status, expected);
    others_work(&mut bench);
}

#[test]
fn a_transmit_descriptor_that_cannot_be_read() {
    let mut bench = bench();
    let mut tx = TxQueue::open(&mut bench, F0, 2, 0, 8);
    tx.fill(&mut bench, &numbered(0, 60));
    // The first page of the ring; the status word lies in another.
    bench.host.unmap(tx.ring);
    tx.kick(&mut bench);
    bench.run_ns(5000);
    assert_eq!(bench.read(F0, csr::GLBL_DSC_ERROR_STATUS), csr::glbl_dsc_error_status::UR_CA.mask());
    assert_eq!(bench.take_tx(), None);
    assert_eq!((tx.status(&bench).err, tx.status(&bench).cidx), (1, 0));
    others_work(&mut bench);
}

/// Bad data are told apart from data that could not be had.
#[test]
fn poisoned_reads_have_bits_of_their_own() {
    use csr::glbl_dsc_error_status::{DAT_POISON, POISON};
    let status = |poison: fn(&mut Bench, &TxQueue)| {
        let mut bench = bench();
        let mut tx = TxQueue::open(&mut bench, F0, 2, 0, 8);
        tx.fill(&mut bench, &numbered(0, 60));
        poison(&mut bench, &tx);
        tx.kick(&mut bench);
        bench.run_ns(5000);
        bench.read(F0, csr::GLBL_DSC_ERROR_STATUS)
    };
    assert_eq!(status(|bench, tx| bench.host.poison(tx.ring)), POISON.mask());
    assert_eq!(status(|bench, tx| bench.host.poison(tx.data)), DAT_POISON.mask());
}

#[test]
fn transmit_data_that_cannot_be_read() {
    for fault in [H2cDataFault::SendWithError, H2cDataFault::Drop] {
        let mut bench = bench_with(QdmaConfig { h2c_data_fault: fault, ..QdmaConfig::default() });
        let mut tx = TxQueue::open(&mut bench, F0, 2, 0, 8);
        tx.fill(&mut bench, &numbered(0, 60));
        let nowhere = H2cDescriptor { metadata: 60, len_bytes: 60, flags: 0, address: 0xDEAD_0000 };
        tx.fill_raw(&mut bench, nowhere);
        tx.fill(&mut bench, &numbered(2, 60));
        tx.kick(&mut bench);
        bench.run_ns(5000);
        assert_eq!(bench.read(F0, csr::GLBL_DSC_ERROR_STATUS), csr::glbl_dsc_error_status::DMA.mask());
        assert_eq!(bench.take_tx().map(|frame| frame.err), Some(false), "the one before");
        let faulty = bench.take_tx().map(|frame| (frame.err, frame.data));
        let dropped = bench.qdma.counters().h2c.dropped(DropReason::DmaFault);
        match fault {
            H2cDataFault::SendWithError => assert_eq!((faulty, dropped), (Some((true, vec![0; 60])), 0)),
            H2cDataFault::Drop => assert_eq!((faulty, dropped), (None, 1)),
        }
        assert_eq!(bench.take_tx(), None, "the one behind was disowned");
        assert_eq!(bench.qdma.counters().h2c.dropped(DropReason::QueueStopped), 1);
        assert_eq!(tx.status(&bench).err, 2);
        assert_eq!(bench.qdma.inside(), 0);
        others_work(&mut bench);
    }
}

/// A posted write has no answer: the card counts, and thinks the frame delivered.
#[test]
fn a_payload_write_that_is_refused() {
    let mut bench = bench();
    let mut rx = RxQueue::open(&mut bench, F0, 2, 0, RxOptions::default());
    bench.run_ns(3000);
    bench.host.unmap(rx.buffers);
    bench.receive(rx.qid, &numbered(0, 60));
    bench.run_ns(5000);
    assert_eq!(bench.qdma.counters().writes_refused, 1);
    assert_eq!(bench.qdma.counters().c2h.frames_out, 1);
    assert_eq!(rx.status(&bench).pidx, 1);
    assert_eq!(rx.poll(&mut bench)[0].1, vec![0xEE; 60]);
    others_work(&mut bench);
}

#[test]
fn another_functions_memory_is_not_mapped() {
    let f1 = FuncId(1);
    let mut bench = bench_with(QdmaConfig { num_functions: 2, ..QdmaConfig::default() });
    bench.fmap(f1, 64, 8);
    let mut rx = RxQueue::start(&mut bench, f1, 0, 64, RxOptions::default());
    let theirs = bench.host.alloc(F0, 4096);
    bench.host.put(rx.desc_ring, &theirs.to_le_bytes());
    rx.post(&mut bench, 1);
    rx.arm(&mut bench);
    bench.receive(rx.qid, &numbered(0, 60));
    bench.run_ns(5000);
    assert_eq!(bench.qdma.counters().writes_refused, 1);
    assert_eq!(bench.host.bytes(theirs, 60), vec![0; 60]);
}

#[test]
fn a_descriptor_of_zero_length() {
    let mut bench = bench();
    let mut tx = TxQueue::open(&mut bench, F0, 2, 0, 8);
    tx.fill(&mut bench, &numbered(0, 60));
    tx.fill(&mut bench, &[]);
    tx.fill(&mut bench, &numbered(2, 60));
    tx.kick(&mut bench);
    bench.run_ns(5000);
    while bench.take_tx().is_some() {}
    bench.run_ns(5000);
    assert_eq!(bench.read(F0, csr::H2C_ERROR_STATUS), csr::h2c_error_status::ZERO_LENGTH.mask());
    assert_eq!(csr::h2c_first_error_qid::QID.get(bench.read(F0, csr::H2C_FIRST_ERROR_QID)), 2);
    assert_eq!(bench.qdma.counters().h2c.dropped(DropReason::ZeroLength), 1);
    assert_ne!(tx.status(&bench).err, 0);
    bench.check_conservation();
    others_work(&mut bench);
}

#[test]
fn contexts_that_ask_for_the_unsupported() {
    for adjust in [
        |sw: &mut regs::context::SwDescContext| sw.desc_size = EntrySize::Bytes8,
        |sw: &mut regs::context::SwDescContext| sw.bypass = true,
        |sw: &mut regs::context::SwDescContext| sw.is_mm = true,
    ] {
        let mut bench = bench();
        let mut tx = TxQueue::open_with(&mut bench, F0, 2, 0, 8, adjust);
        tx.fill(&mut bench, &numbered(0, 60));
        tx.kick(&mut bench);
        bench.run_ns(5000);
        assert_eq!(bench.read(F0, csr::GLBL_DSC_ERROR_STATUS), csr::glbl_dsc_error_status::PARAM.mask());
        assert_eq!(bench.take_tx(), None);
        others_work(&mut bench);
    }
}

/// A full completion ring: status with error 3 though one is outstanding, no interrupt; queue invalid.
#[test]
fn completion_ring_overflow() {
    let mut bench = bench();
    bench.set_table(csr::GLBL_RING_SIZE, 5, 16);
    let mut rx = RxQueue::open(&mut bench, F0, 2, 0, RxOptions::default());
    rx.stop(&mut bench);
    // The completion ring is smaller than the descriptor ring.
    let mut context = bench.cmpl(rx.qid);
    (context.ring_size_index, context.valid, context.cidx, context.pidx) = (5, true, 0, 0);
    let mut sw = bench.sw_c2h(rx.qid);
    (sw.qen, sw.pidx) = (true, 0);
    bench.command(S::HwDescC2h, ContextOp::Clear, 2);
    bench.write_context(S::SwDescC2h, 2, &sw.to_words());
    bench.write_context(S::Prefetch, 2, &[0x0800_0010, 0x2000]);
    bench.write_context(S::Completion, 2, &context.to_words());
    (rx.pidx, rx.entries) = (0, 1024);
    rx.post(&mut bench, 100);
    rx.arm(&mut bench);
    bench.receive(rx.qid, &numbered(0, 60));
    bench.run_ns(5000);
    assert_eq!(bench.interrupts.len(), 1, "outstanding from here on");
    for n in 1..16 {
        bench.receive(rx.qid, &numbered(n, 60));
    }
    bench.run_ns(5000);
    assert_eq!(bench.qdma.counters().c2h.frames_out, 14, "N-2");
    assert_eq!(bench.qdma.counters().c2h.dropped(DropReason::CompletionRingFull), 1);
    assert_eq!(bench.qdma.counters().c2h.dropped(DropReason::CompletionInvalidQueue), 1);
    let c2h = bench.read(F0, csr::C2H_ERROR_STATUS);
    use csr::c2h_error_status::{CMPT_INVALID_QUEUE, CMPT_QUEUE_FULL};
    assert_eq!(c2h, CMPT_QUEUE_FULL.mask() | CMPT_INVALID_QUEUE.mask());
    let first = bench.read(F0, csr::C2H_FIRST_ERROR_QID);
    use csr::c2h_first_error_qid as log;
    assert_eq!((log::QID.get(first), log::ERROR_TYPE.get(first)), (2, 13));
    rx.entries = 16;
    let status = rx.status(&bench);
    assert_eq!((status.pidx, status.err), (14, CompletionQueueError::Overflow));
    assert_eq!(bench.cmpl(rx.qid).err, CompletionQueueError::Overflow);
    assert_eq!(bench.interrupts.len(), 1);
    bench.interrupts.clear();
    others_work(&mut bench);
}

#[test]
fn a_bad_cidx_invalidates_the_queue() {
    for cidx in [4, 5, 1022, 1023, 0xFFFF] {
        let mut bench = bench();
        let rx = RxQueue::open(&mut bench, F0, 2, 0, RxOptions::default());
        for n in 0..3 {
            bench.receive(rx.qid, &numbered(n, 60));
        }
        bench.run_ns(5000);
        rx.ring_cidx(&mut bench, cidx, true);
        bench.run_ns(1000);
        assert_eq!(bench.read(F0, csr::C2H_ERROR_STATUS), csr::c2h_error_status::CMPT_BAD_CIDX.mask(), "{cidx}");
        let context = bench.cmpl(rx.qid);
        assert_eq!((context.valid, context.err, context.cidx), (false, CompletionQueueError::BadCidx, 0));
        assert_eq!(rx.status(&bench).err, CompletionQueueError::BadCidx);
        assert_eq!(bench.interrupts.len(), 2);
        // A doorbell to the invalid queue does nothing.
        rx.ring_cidx(&mut bench, 3, true);
        assert!(!bench.cmpl(rx.qid).valid);
        others_work(&mut bench);
    }
    // Backwards is past PIDX too.
    let mut bench = bench();
    let mut rx = RxQueue::open(&mut bench, F0, 2, 0, RxOptions::default());
    for n in 0..3 {
        bench.receive(rx.qid, &numbered(n, 60));
    }
    bench.run_ns(5000);
    rx.poll(&mut bench);
    rx.ring_cidx(&mut bench, 2, true);
    assert_eq!(bench.cmpl(rx.qid).err, CompletionQueueError::BadCidx);
}

#[test]
fn frames_for_nobody_are_dropped_and_counted() {
    let mut bench = bench();
    let stopped = RxQueue::open(&mut bench, F0, 2, 0, RxOptions::default());
    stopped.stop(&mut bench);
    for qid in [Qid(2), Qid(3), Qid(511), Qid(512), Qid(0xFFFF)] {
        assert!(!bench.receive(qid, &numbered(0, 60)), "{qid}");
    }
    bench.run_ns(5000);
    assert_eq!(bench.qdma.counters().c2h.dropped(DropReason::InvalidQueue), 5);
    assert_eq!(bench.qdma.counters().completions_dropped, 5);
    others_work(&mut bench);
}

/// A vector beyond the function's table: no interrupt, C2H bit 7.
#[test]
fn a_vector_beyond_the_table() {
    let mut bench = bench();
    let rx = RxQueue::open(&mut bench, F0, 2, 0, RxOptions { vector: 10, ..RxOptions::default() });
    bench.receive(rx.qid, &numbered(0, 60));
    bench.run_ns(5000);
    assert!(bench.interrupts.is_empty());
    assert_eq!(rx.status(&bench).pidx, 1);
    assert_eq!(bench.read(F0, csr::C2H_ERROR_STATUS), csr::c2h_error_status::MSI_INT_FAIL.mask());
    others_work(&mut bench);
}

#[test]
fn logs_hold_the_first_or_the_last_error() {
    for (error_log, qid) in [(ErrorLog::First, 1), (ErrorLog::Last, 2)] {
        let mut bench = bench_with(QdmaConfig { error_log, ..QdmaConfig::default() });
        for q in 1..=2 {
            let tx = TxQueue::open(&mut bench, F0, q, 0, 1);
            tx.ring_pidx(&mut bench, 1000);
        }
        let log = bench.read(F0, csr::GLBL_DSC_ERROR_LOG0);
        assert_eq!(csr::glbl_dsc_error_log0::QID.get(log), qid);
        bench.write(F0, csr::GLBL_DSC_ERROR_STATUS, u32::MAX);
        assert_eq!(bench.read(F0, csr::GLBL_DSC_ERROR_LOG0), 0);
    }
}

#[test]
fn doorbells_of_disabled_queues() {
    for error_on_disabled_doorbell in [false, true] {
        let mut bench = bench_with(QdmaConfig { error_on_disabled_doorbell, ..QdmaConfig::default() });
        for register in [doorbell::H2C_PIDX, doorbell::C2H_PIDX, doorbell::COMPLETION_CIDX] {
            bench.write(F0, doorbell::offset(register, 3).unwrap(), 1);
        }
        bench.run_ns(5000);
        let status = bench.read(F0, csr::GLBL_DSC_ERROR_STATUS);
        assert_eq!(status != 0, error_on_disabled_doorbell);
        assert_eq!(bench.qdma.counters().doorbells_ignored, 3);
        others_work(&mut bench);
    }
}

/// INV while frames are inside: by default no DMA afterwards, every frame accounted for.
#[test]
fn stopping_under_traffic() {
    let mut bench = bench();
    let mut rx = RxQueue::start(&mut bench, F0, 2, 0, RxOptions::default());
    rx.post(&mut bench, 50);
    rx.arm(&mut bench);
    let mut tx = TxQueue::open(&mut bench, F0, 2, 0, 8);
    for n in 0..30 {
        tx.fill(&mut bench, &numbered(n, 60));
    }
    tx.kick(&mut bench);
    bench.run_ns(1000);
    for n in 0..100 {
        bench.receive(rx.qid, &numbered(n, 60));
    }
    // In the middle: some landed, some on the link, the others wait for descriptors.
    bench.run_ns(400);
    rx.stop(&mut bench);
    for selector in [S::SwDescH2c, S::HwDescH2c, S::CreditH2c] {
        bench.command(selector, ContextOp::Invalidate, 2);
    }
    bench.host.logging = true;
    bench.run_ns(10_000);
    assert_eq!(bench.host.log, [], "no DMA after INV");
    while bench.take_tx().is_some() {}
    bench.run_ns(10_000);
    assert_eq!(bench.host.log, [], "no status either");
    let counters = bench.qdma.counters();
    assert!(counters.c2h.dropped(DropReason::QueueStopped) > 50);
    assert_eq!(bench.qdma.inside(), 0);
    bench.check_conservation();
    others_work(&mut bench);
}

/// The knob: data of frames that had descriptors come late, into memory that the driver may have freed.
#[test]
fn late_dma_after_invalidate() {
    let mut bench = bench_with(QdmaConfig { late_dma_after_inv_ns: 2000, ..QdmaConfig::default() });
    let rx = RxQueue::open(&mut bench, F0, 2, 0, RxOptions::default());
    bench.run_ns(3000);
    for n in 0..10 {
        bench.receive(rx.qid, &numbered(n + 1, 60));
    }
    bench.run_ns(10);
    let stopped = bench.now;
    rx.stop(&mut bench);
    bench.host.logging = true;
    bench.run_ns(1990);
    assert_eq!(bench.host.log, []);
    bench.run_ns(20);
    assert_eq!(bench.host.log.len(), 10, "payloads only, no completion");
    assert_eq!(bench.host.bytes(rx.buffers, 60), numbered(1, 60));
    assert!(bench.now - stopped > 2_000_000);
    assert_eq!(bench.qdma.counters().c2h.dropped(DropReason::QueueStopped), 10);
    bench.check_conservation();
}

/// Order knobs: status before entries, completion before payload.
#[test]
fn relaxed_ordering_knobs() {
    for (late_entry_ps, late_payload_ps) in [(0, 0), (3_000_000, 0), (0, 3_000_000)] {
        let mut bench = bench_with(QdmaConfig { late_entry_ps, late_payload_ps, ..QdmaConfig::default() });
        let rx = RxQueue::open(&mut bench, F0, 2, 0, RxOptions::default());
        bench.run_ns(3000);
        bench.receive(rx.qid, &numbered(7, 60));
        bench.run_ns(2500);
        assert_eq!(rx.status(&bench).pidx, 1);
        let entry = rx.entry(&bench, 0).color;
        let payload = bench.host.bytes(rx.buffers, 60) == numbered(7, 60);
        assert_eq!((entry, payload), (late_entry_ps == 0, late_payload_ps == 0));
        bench.run_ns(3000);
        assert!(rx.entry(&bench, 0).color);
        assert_eq!(bench.host.bytes(rx.buffers, 60), numbered(7, 60));
    }
}

/// The newest IP's host profile: without it every DMA fails, with it all is well.
#[test]
fn host_profile_requirement() {
    for written in [false, true] {
        let mut bench = bench_with(QdmaConfig { require_host_profile: true, ..QdmaConfig::default() });
        if written {
            bench.write_context(S::HostProfile, 0, &[]);
        }
        let mut tx = TxQueue::open(&mut bench, F0, 2, 0, 8);
        tx.fill(&mut bench, &numbered(0, 60));
        tx.kick(&mut bench);
        bench.run_ns(5000);
        assert_eq!(bench.take_tx().is_some(), written);
    }
}
