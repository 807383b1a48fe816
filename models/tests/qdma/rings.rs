//! Rings: wraparound, the status slot, full and empty, several buffers for a frame, order between queues.
//! Cases RING-01 to RING-05, RING-09, RING-14.

use models::host_memory::HostMemory;
use models::qdma::{DropReason, NoDesc, QdmaConfig};
use models::stream::{Offer, QdmaStream};
use regs::context::TriggerMode;
use regs::{Qid, qdma_csr as csr};

use crate::driver::*;

const SIZES: [u16; 15] = [4, 5, 8, 16, 63, 64, 65, 255, 256, 257, 1023, 1024, 1025, 4095, 4096];

/// Send `total` numbered frames through one TX queue, as many in flight as fit; check order, status, and slot N-1.
pub fn transmit_laps(bench: &mut Bench, ring_index: u8, total: u64) {
    let mut tx = TxQueue::open(bench, F0, 0, 0, ring_index);
    let (mut sent, mut taken) = (0, 0);
    while taken < total {
        let mut filled = 0;
        while tx.outstanding() < tx.usable() - 1 && sent < total && filled < 200 {
            tx.fill(bench, &numbered(sent, 60));
            sent += 1;
            filled += 1;
        }
        if filled != 0 {
            tx.kick(bench);
        }
        while taken < sent {
            bench.run_ns(500);
            while let Some(frame) = bench.take_tx() {
                assert_eq!(frame.data, numbered(taken, 60), "ring of {}, frame {taken}", tx.entries);
                taken += 1;
                bench.qdma.give_back(frame.data);
            }
        }
        bench.run_ns(300);
        tx.reclaim(bench);
        assert_eq!(tx.outstanding(), 0, "wbi_chk reports the last");
    }
    assert_eq!(bench.qdma.counters().h2c.frames_out, total);
    assert_eq!(bench.read(F0, csr::GLBL_DSC_ERROR_STATUS), 0);
    bench.check_conservation();
}

/// The same towards the host. Colors and the status slot are checked by the mock at each poll.
pub fn receive_laps(bench: &mut Bench, ring_index: u8, total: u64) {
    let options = RxOptions { ring_index, buffer_index: 15, ..RxOptions::default() };
    // Small buffers, so that large rings fit.
    bench.set_table(csr::C2H_BUFFER_SIZE, 15, 64);
    let mut rx = RxQueue::open(bench, F0, 0, 0, options);
    bench.run_ns(2000);
    let (mut sent, mut read) = (0, 0u64);
    while read < total {
        let burst = (total - sent).min(u64::from(rx.usable() - 1)).min(200);
        for _ in 0..burst {
            assert!(bench.receive(rx.qid, &numbered(sent, 60)));
            sent += 1;
        }
        bench.run_ns(4000);
        for (entry, data) in rx.poll(bench) {
            assert_eq!(data, numbered(read, 60), "ring of {}, frame {read}", rx.entries);
            assert_eq!((entry.qid, entry.len_bytes, entry.err), (rx.qid.0, 60, false));
            assert_eq!(entry.pkt_id, (read + 1) as u16);
            read += 1;
        }
    }
    let guard = rx.cmpl_ring + 8 * u64::from(rx.entries);
    let to_page_end = (4096 - guard % 4096) % 4096;
    assert!(bench.host.bytes(guard, to_page_end as usize).iter().all(|b| *b == 0), "nothing behind the ring");
    assert_eq!(bench.qdma.counters().c2h.frames_out, total);
    assert_eq!(bench.qdma.counters().writes_refused, 0);
    assert_eq!(bench.read(F0, csr::C2H_ERROR_STATUS), 0);
    bench.check_conservation();
    assert_eq!(bench.qdma.inside(), 0);
}

#[test]
fn transmit_wraps_at_every_ring_size() {
    for size in SIZES {
        let mut bench = Bench::new(QdmaConfig::default());
        bench.set_table(csr::GLBL_RING_SIZE, 5, u32::from(size));
        transmit_laps(&mut bench, 5, 3 * u64::from(size) + 2);
    }
}

#[test]
fn receive_wraps_at_every_ring_size() {
    for size in SIZES {
        let mut bench = Bench::new(QdmaConfig::default());
        bench.set_table(csr::GLBL_RING_SIZE, 5, u32::from(size));
        receive_laps(&mut bench, 5, 3 * u64::from(size) + 2);
    }
}

/// RING-01, RING-02: indices, packet ids and counts past every 16-bit width.
#[test]
fn transmit_goes_past_65536_frames() {
    for (index, size) in [(5, 64), (6, 4096)] {
        let mut bench = Bench::new(QdmaConfig::default());
        bench.set_table(csr::GLBL_RING_SIZE, index, size);
        transmit_laps(&mut bench, index as u8, 70_000);
    }
}

#[test]
fn receive_goes_past_65536_frames() {
    for (index, size) in [(5, 64), (6, 1025)] {
        let mut bench = Bench::new(QdmaConfig::default());
        bench.set_table(csr::GLBL_RING_SIZE, index, size);
        receive_laps(&mut bench, index as u8, 70_000);
    }
}

/// RING-05: after a lap, slot N-1 holds a status word and the others entries, for each entry size.
#[test]
fn the_status_slot_is_never_an_entry() {
    let mut bench = Bench::new(QdmaConfig::default());
    bench.set_table(csr::GLBL_RING_SIZE, 5, 8);
    let mut rx = RxQueue::open(&mut bench, F0, 0, 0, RxOptions { ring_index: 5, ..RxOptions::default() });
    bench.host.logging = true;
    let slot = rx.cmpl_ring + 8 * 7;
    for n in 0..21 {
        bench.receive(rx.qid, &numbered(n, 60));
        bench.run_ns(3000);
        assert_eq!(rx.poll(&mut bench).len(), 1);
    }
    for (addr, data) in &bench.host.log {
        let end = addr + data.len() as u64;
        let whole = (*addr, data.len()) == (slot, 8);
        assert!(whole || end <= slot || *addr > slot, "{addr:#x} {data:02x?}");
    }
}

/// RING-04: a full TX ring takes N-2 descriptors; one more is refused by the QDMA and the ring's owner knows.
#[test]
fn full_is_not_empty() {
    let mut bench = Bench::new(QdmaConfig::default());
    bench.set_table(csr::GLBL_RING_SIZE, 5, 16);
    let mut tx = TxQueue::open(&mut bench, F0, 0, 0, 5);
    for n in 0..14 {
        tx.fill(&mut bench, &numbered(n, 60));
    }
    tx.kick(&mut bench);
    bench.run_ns(3000);
    assert_eq!(tx.status(&bench).cidx, 0, "nothing taken, nothing complete");
    for n in 0..14 {
        assert_eq!(bench.take_tx().map(|frame| frame.data), Some(numbered(n, 60)));
    }
    assert_eq!(bench.take_tx(), None);
    bench.run_ns(1000);
    tx.reclaim(&bench);
    assert_eq!(tx.outstanding(), 0);
    assert_eq!(bench.read(F0, csr::GLBL_DSC_ERROR_STATUS), 0);
}

/// A table that is too small for any ring: an error at the doorbell, no DMA.
#[test]
fn rings_of_less_than_three_entries_hold_nothing() {
    for size in [0, 1, 2] {
        let mut bench = Bench::new(QdmaConfig::default());
        bench.set_table(csr::GLBL_RING_SIZE, 5, 16);
        let mut tx = TxQueue::open(&mut bench, F0, 0, 0, 5);
        let rx = RxQueue::start(&mut bench, F0, 1, 0, RxOptions { ring_index: 5, ..RxOptions::default() });
        bench.set_table(csr::GLBL_RING_SIZE, 5, size);
        tx.fill(&mut bench, &numbered(0, 60));
        tx.kick(&mut bench);
        rx.ring_pidx(&mut bench, 1);
        rx.ring_cidx(&mut bench, 0, true);
        bench.run_ns(5000);
        let invalid = csr::glbl_dsc_error_status::INVALID_PIDX.mask();
        assert_eq!(bench.read(F0, csr::GLBL_DSC_ERROR_STATUS), invalid, "size {size}");
        assert_eq!(bench.qdma.counters().descriptor_fetches, 0);
        assert!(!bench.cmpl(rx.qid).valid);
    }
}

/// The table counts when a ring is used, not when its context was written (qdma.md 4.1).
#[test]
fn ring_sizes_are_read_when_used() {
    let mut bench = Bench::new(QdmaConfig::default());
    bench.set_table(csr::GLBL_RING_SIZE, 5, 64);
    let mut tx = TxQueue::open(&mut bench, F0, 0, 0, 5);
    bench.set_table(csr::GLBL_RING_SIZE, 5, 8);
    tx.entries = 8;
    for lap in 0..3 {
        for n in 0..6 {
            tx.fill(&mut bench, &numbered(lap * 6 + n, 60));
        }
        tx.kick(&mut bench);
        bench.run_ns(3000);
        for n in 0..6 {
            assert_eq!(bench.take_tx().map(|frame| frame.data), Some(numbered(lap * 6 + n, 60)));
        }
        bench.run_ns(1000);
        tx.reclaim(&bench);
        assert_eq!(tx.outstanding(), 0);
    }
}

/// qdma.md 5.3: ceil(len/bufsz) buffers, one completion; writes stop at 4 KiB boundaries.
#[test]
fn a_long_frame_takes_several_buffers() {
    let mut bench = Bench::new(QdmaConfig::default());
    bench.set_table(csr::GLBL_RING_SIZE, 5, 64);
    // Buffers of 3000 bytes cross pages.
    bench.set_table(csr::C2H_BUFFER_SIZE, 5, 3000);
    for prefetch in [true, false] {
        let options = RxOptions { ring_index: 5, buffer_index: 5, prefetch, ..RxOptions::default() };
        let mut rx = RxQueue::open(&mut bench, F0, u16::from(prefetch), 0, options);
        bench.host.logging = true;
        let lengths = [1, 60, 2999, 3000, 3001, 6000, 6001, 9600, 65_535];
        let mut used = 0;
        for (n, len) in lengths.into_iter().enumerate() {
            let data: Vec<u8> = (0..len).map(|i| (i * 7 + n) as u8).collect();
            assert!(bench.receive(rx.qid, &data));
            bench.run_ns(20_000);
            let before = rx.desc_cidx;
            let got = rx.poll(&mut bench);
            assert_eq!(got.len(), 1, "one completion for {len} bytes");
            assert_eq!(usize::from(got[0].0.len_bytes), len);
            assert!(got[0].1 == data, "{len} bytes");
            let own = (rx.desc_cidx + rx.usable() - before) % rx.usable();
            assert_eq!(usize::from(own), len.div_ceil(3000));
            used += own;
        }
        assert_eq!(used, 1 + 1 + 1 + 1 + 2 + 2 + 3 + 4 + 22);
        for (addr, data) in &bench.host.log {
            assert!(addr % 4096 + data.len() as u64 <= 4096, "{addr:#x} + {} crosses a page", data.len());
        }
    }
}

/// More buffers than one frame may take, or buffers of no size: dropped before it begins, with a name.
#[test]
fn a_frame_too_long_for_its_buffers_is_dropped() {
    for bytes in [64, 0] {
        let mut bench = Bench::new(QdmaConfig::default());
        bench.set_table(csr::C2H_BUFFER_SIZE, 5, 64);
        let rx = RxQueue::open(&mut bench, F0, 0, 0, RxOptions { buffer_index: 5, ..RxOptions::default() });
        bench.set_table(csr::C2H_BUFFER_SIZE, 5, bytes);
        assert_eq!(bench.offer(rx.qid, 31 * 64), if bytes == 0 { Offer::Drop } else { Offer::Ready });
        assert_eq!(bench.offer(rx.qid, 31 * 64 + 1), Offer::Drop);
        assert!(!bench.receive(rx.qid, &numbered(0, 31 * 64 + 1)));
        bench.run_ns(5000);
        assert_eq!(bench.qdma.counters().c2h.dropped(DropReason::TooLong), 1);
        assert_eq!(bench.read(F0, csr::C2H_ERROR_STATUS), csr::c2h_error_status::DESC_COUNT.mask());
        bench.check_conservation();
    }
}

/// A queue without descriptors holds everything behind it; a doorbell lets it all go, in order.
#[test]
fn stall_holds_other_queues_and_loses_nothing() {
    let mut bench = Bench::new(QdmaConfig::default());
    let mut dry = RxQueue::start(&mut bench, F0, 0, 0, RxOptions::default());
    dry.arm(&mut bench);
    let mut other = RxQueue::open(&mut bench, F0, 1, 0, RxOptions::default());
    bench.receive(dry.qid, &numbered(0, 60));
    let mut held = 1;
    while bench.offer(other.qid, 60) == Offer::Ready {
        bench.force_frame(other.qid, &numbered(held, 60));
        held += 1;
    }
    assert_eq!(held, 512, "the stream buffer's beats");
    bench.run_ns(10_000);
    assert_eq!(bench.qdma.counters().c2h.frames_out, 0, "head of line");
    assert_eq!(bench.qdma.inside(), 512);
    assert!(!bench.qdma.take_stream_change());
    dry.post(&mut bench, 1);
    bench.run_ns(10_000);
    assert!(bench.qdma.take_stream_change(), "the shell may look again");
    assert_eq!(dry.poll(&mut bench).len(), 1);
    let first = other.poll(&mut bench).len();
    bench.run_ns(1000);
    assert_eq!((first, other.poll(&mut bench).len()), (64, 511 - 64), "at the threshold, then the rest");
    assert_eq!(bench.qdma.inside(), 0);
}

/// `NoDesc::Drop`: exactly as many frames as descriptors are kept, the rest are counted at 0xB10, others unaffected.
/// What a frame meets is decided when its turn comes, not when it arrives.
#[test]
fn a_queue_that_starts_while_its_frame_waits_gets_it() {
    let mut bench = Bench::new(QdmaConfig::default());
    let mut empty = RxQueue::start(&mut bench, F0, 0, 0, RxOptions::default());
    bench.force_frame(Qid(0), &numbered(0, 60));
    bench.force_frame(Qid(1), &numbered(1, 60));
    bench.run_ns(3000);
    let mut late = RxQueue::open(&mut bench, F0, 1, 0, RxOptions::default());
    bench.run_ns(3000);
    assert_eq!(bench.qdma.c2h_inside(), 2, "both wait for the first queue's descriptors");
    empty.post(&mut bench, 8);
    bench.run_ns(5000);
    assert_eq!(late.reap(&bench).len(), 1);
    assert_eq!(bench.qdma.c2h_inside(), 0);
}

#[test]
fn drop_counts_what_finds_no_descriptor() {
    let mut bench = Bench::new(QdmaConfig { no_desc: NoDesc::Drop, ..QdmaConfig::default() });
    let mut rx = RxQueue::start(&mut bench, F0, 0, 0, RxOptions::default());
    rx.arm(&mut bench);
    let mut other = RxQueue::open(&mut bench, F0, 1, 0, RxOptions::default());
    rx.post(&mut bench, 10);
    let kept: Vec<bool> = (0..15).map(|n| bench.receive(rx.qid, &numbered(n, 60))).collect();
    assert_eq!(kept.iter().filter(|kept| **kept).count(), 10, "{kept:?}");
    assert!(bench.receive(other.qid, &numbered(99, 60)));
    bench.run_ns(5000);
    let got = rx.poll(&mut bench);
    assert!(got.iter().map(|(_, data)| data.clone()).eq((0..10).map(|n| numbered(n, 60))));
    assert_eq!(other.poll(&mut bench).len(), 1);
    assert_eq!(bench.read(F0, csr::C2H_DESC_DROP), 5);
    assert_eq!(bench.read(F0, csr::C2H_COMPLETIONS_IN), 16);
    assert_eq!(bench.read(F0, csr::C2H_COMPLETIONS_OUT), 11);
    assert_eq!(bench.read(F0, csr::C2H_COMPLETIONS_DROPPED), 5);
    assert_eq!(bench.qdma.counters().c2h.dropped(DropReason::NoDescriptor), 5);
    bench.check_conservation();
    rx.post(&mut bench, 1);
    assert!(bench.receive(rx.qid, &numbered(20, 60)), "posted again, taken again");
}

/// Queues take turns; each keeps its order.
#[test]
fn transmit_queues_take_turns() {
    let mut bench = Bench::new(QdmaConfig::default());
    let mut queues: Vec<TxQueue> = (0..4).map(|q| TxQueue::open(&mut bench, F0, q, 0, 8)).collect();
    for tx in &mut queues {
        for n in 0..100 {
            tx.fill(&mut bench, &numbered(n, 60));
        }
        tx.kick(&mut bench);
    }
    let mut next = [0; 4];
    let mut order = Vec::new();
    for _ in 0..50 {
        bench.run_ns(1000);
        while let Some(frame) = bench.take_tx() {
            let q = usize::from(frame.qid.0);
            assert_eq!(frame.data, numbered(next[q], 60));
            next[q] += 1;
            order.push(q);
        }
    }
    assert_eq!(next, [100; 4]);
    // Queue 0's descriptors are there first; once all have some, and until the first has none left, they alternate.
    let middle = &order[200..360];
    for window in middle.windows(4) {
        assert_eq!(duplicates(window.iter().map(|q| *q as u64)).len(), 0, "{middle:?}");
    }
}

/// RING-09: however many completions are held back, each frame is given back once.
#[test]
fn the_status_word_may_jump_any_distance() {
    let mut bench = Bench::new(QdmaConfig::default());
    let mut tx = TxQueue::open(&mut bench, F0, 0, 0, 1);
    let mut number = 0;
    for count in [1, 2, 61, 62] {
        for _ in 0..count {
            tx.fill(&mut bench, &numbered(number, 60));
            number += 1;
        }
        tx.kick(&mut bench);
        bench.run_ns(3000);
        while bench.take_tx().is_some() {}
        bench.run_ns(1000);
        let before = tx.outstanding();
        tx.reclaim(&bench);
        assert_eq!((before, tx.outstanding()), (count, 0));
    }
}

/// qdma.md 7.3: without wbi_chk the status follows at the interval only.
#[test]
fn write_back_interval() {
    let mut bench = Bench::new(QdmaConfig::default());
    let mut tx = TxQueue::open_with(&mut bench, F0, 0, 0, 8, |sw| sw.wbi_chk = false);
    for n in 0..11 {
        tx.fill(&mut bench, &numbered(n, 60));
    }
    tx.kick(&mut bench);
    bench.run_ns(3000);
    let mut seen = Vec::new();
    while bench.take_tx().is_some() {
        bench.run_ns(1000);
        seen.push(tx.status(&bench).cidx);
    }
    assert_eq!(seen, [0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8], "every 4 descriptors");
}

/// An H2C queue interrupts when it is enabled and armed, once for each arming.
#[test]
fn transmit_interrupt_is_armed_by_the_doorbell() {
    let mut bench = Bench::new(QdmaConfig::default());
    let mut tx = TxQueue::open_with(&mut bench, F0, 0, 0, 8, |sw| (sw.irq_en, sw.vector) = (true, 5));
    for n in 0..8 {
        tx.fill(&mut bench, &numbered(n, 60));
    }
    tx.kick(&mut bench);
    bench.run_ns(3000);
    while bench.take_tx().is_some() {
        bench.run_ns(1000);
    }
    assert_eq!(vectors(&bench), [(0, 5)], "two status words, one arming");
    assert!(!bench.sw_h2c(Qid(0)).irq_arm);
}

/// The frame goes as long as its descriptor says, the metadata beside it untouched.
#[test]
fn metadata_is_carried_not_checked() {
    let mut bench = Bench::new(QdmaConfig::default());
    let mut tx = TxQueue::open(&mut bench, F0, 0, 0, 8);
    let addr = bench.host.alloc(F0, 4096);
    bench.host.write(F0, addr, &[0x5A; 100]).unwrap();
    let descriptor = regs::descriptor::H2cDescriptor { metadata: 0xBEEF_0040, len_bytes: 100, flags: 3, address: addr };
    tx.fill_raw(&mut bench, descriptor);
    tx.kick(&mut bench);
    bench.run_ns(3000);
    let frame = bench.take_tx().unwrap();
    assert_eq!((frame.metadata, frame.data, frame.err), (0xBEEF_0040, vec![0x5A; 100], false));
}

/// DMA comes in batches: far fewer reads and writes than frames.
#[test]
fn descriptors_and_entries_come_in_batches() {
    let mut bench = Bench::new(QdmaConfig::default());
    let options = RxOptions { mode: TriggerMode::UserTimerCount, ..RxOptions::default() };
    let rx = RxQueue::open(&mut bench, F0, 0, 0, options);
    bench.run_ns(2000);
    bench.host.logging = true;
    for n in 0..512 {
        bench.force_frame(rx.qid, &numbered(n, 60));
    }
    // One step over all of it, as a card that jumps far ahead does.
    bench.now += 50_000_000;
    bench.qdma.step(bench.now, &mut bench.host);
    assert_eq!(bench.qdma.counters().c2h.frames_out, 512);
    assert!(bench.qdma.counters().descriptor_fetches < 40, "{}", bench.qdma.counters().descriptor_fetches);
    let entries = bench.host.log.iter().filter(|(addr, _)| (rx.cmpl_ring..rx.cmpl_ring + 8184).contains(addr));
    assert!(entries.count() <= 512 / 8 + 2);
}

/// Buffers go round: once warm, every buffer handed out has been used before, both ways.
#[test]
fn buffers_are_reused() {
    let mut bench = Bench::new(QdmaConfig::default());
    let mut rx = RxQueue::open(&mut bench, F0, 0, 0, RxOptions::default());
    let mut tx = TxQueue::open(&mut bench, F0, 0, 0, 8);
    for round in 0..20 {
        for n in 0..64 {
            let buffer = bench.qdma.recycle();
            assert!(buffer.is_empty());
            assert!(round < 2 || buffer.capacity() >= 60, "round {round}: a new buffer");
            bench.qdma.give_back(buffer);
            bench.receive(rx.qid, &numbered(n, 60));
            tx.fill(&mut bench, &numbered(n, 60));
        }
        tx.kick(&mut bench);
        bench.run_ns(4000);
        assert_eq!(rx.poll(&mut bench).len(), 64);
        let frames: Vec<_> = std::iter::from_fn(|| bench.take_tx()).collect();
        assert_eq!(frames.len(), 64);
        frames.into_iter().for_each(|frame| bench.qdma.give_back(frame.data));
        bench.run_ns(500);
        tx.reclaim(&bench);
    }
}
