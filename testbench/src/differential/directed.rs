//! Directed checks, for any engine: rules that random actions meet too seldom, or whose outcome they can't pin down.
//!
//! Each takes an engine just out of power-up and says what is wrong with it, as the acceptance checks of [`super::golden`].

use models::stream::{C2hCompletion, C2hFrame};
use regs::context::{ContextOp, ContextSelector as S, TriggerMode};
use regs::descriptor::H2cStatus;
use regs::doorbell::CompletionCidx;
use regs::{Qid, qdma_csr as csr};

use super::bed::{Bed, Bench, F0};
use super::campaign::Maker;
use super::engine::{Hold, Shape};
use super::golden::{Check, expect, programmed, sound};
use super::queue::{RxQueue, RxSpec, Tables, TxQueue, TxSpec, u64_at, user_bits};

/// All of them.
pub const DIRECTED: [Check; 6] = [
    Check { name: "directed-fault-meets-clear", run: fault_meets_clear },
    Check { name: "directed-writeback-interval", run: writeback_interval },
    Check { name: "directed-length-mismatch", run: length_mismatch },
    Check { name: "directed-command-amid-traffic", run: command_amid_traffic },
    Check { name: "directed-command-amid-a-frame", run: command_amid_a_frame },
    Check { name: "directed-timers", run: timers },
];

/// Longer than anything takes that a check here does not wait for by itself, ns.
const LONG_NS: u64 = 10_000;

/// One cycle of the engine's clock, ns.
const CYCLE_NS: u64 = 4;

/// A fault that comes while its status is being cleared counts as later: status and log tell of it, and of it alone.
fn fault_meets_clear(make: Maker<'_>) -> Result<String, String> {
    use csr::c2h_first_error_qid as log;
    // No such queue runs: their completions are faults.
    const EARLIER: Qid = Qid(9);
    const LATER: Qid = Qid(10);
    let mut bench = programmed(make)?;
    let (mut before, mut after) = (0, 0);
    for cycles in 0..150 {
        bench.receive(EARLIER, &[1; 60], Some(EARLIER));
        bench.run_ns(LONG_NS);
        expect("the first fault's queue", log::QID.get(bench.read(F0, csr::C2H_FIRST_ERROR_QID)), EARLIER.0.into())?;
        bench.receive(LATER, &[1; 60], Some(LATER));
        bench.run_ns(CYCLE_NS * cycles);
        bench.write(F0, csr::C2H_ERROR_STATUS, u32::MAX);
        bench.run_ns(LONG_NS);
        let status = bench.read(F0, csr::C2H_ERROR_STATUS);
        let logged = log::QID.get(bench.read(F0, csr::C2H_FIRST_ERROR_QID));
        let want = if status == 0 { 0 } else { LATER.0.into() };
        expect(&format!("the queue in the log, status {status:#x}, {cycles} cycles on"), logged, want)?;
        if status == 0 {
            before += 1
        } else {
            after += 1
        }
        bench.write(F0, csr::C2H_ERROR_STATUS, u32::MAX);
    }
    expect("a fault comes before the write, and after", before != 0 && after != 0, true)?;
    sound(&mut bench)?;
    Ok(format!("of 150 writes {before} came after the fault, {after} before it or with it"))
}

/// Longer than host memory's latency, ps.
const QUIET_PS: u64 = 5_000_000;

/// An engine that goes on for so long goes on for ever, ps.
const LIMIT_PS: u64 = 1_000_000_000;

/// With the interval only, a status word comes with the descriptor that completes an interval, and with no other.
fn writeback_interval(make: Maker<'_>) -> Result<String, String> {
    const WORDS: u16 = 3;
    let mut bench = programmed(make)?;
    for code in 0..8 {
        let every: u16 = 4 << code;
        bench.write(F0, csr::GLBL_DSC_CFG, u32::from(Tables::ONIC.dsc_cfg as u16 | code));
        let mut spec = TxSpec::onic(F0, code, 0);
        (spec.sw.ring_size_index, spec.sw.wbi_chk) = (8, false);
        let mut tx = TxQueue::start(&mut bench, &Tables::ONIC, spec);
        let mut told = 0;
        for _ in 0..WORDS {
            for (count, what) in [(every - 1, "one descriptor before the interval's end"), (1, "at the interval's end")]
            {
                for _ in 0..count {
                    tx.send(&mut bench, &[7; 60]);
                }
                tx.kick(&mut bench);
                expect("it settles", bench.settle(QUIET_PS, LIMIT_PS), true)?;
                expect("frames", bench.take_h2c().len(), usize::from(count))?;
                if count == 1 {
                    told = tx.pidx;
                }
                let status = H2cStatus::from_u64(u64_at(&mut bench, tx.status_addr()));
                expect(&format!("CIDX of the status word {what} of {every}"), status.cidx, told)?;
            }
        }
        tx.stop(&mut bench);
    }
    sound(&mut bench)?;
    Ok(format!("{WORDS} words at each interval from 4 to 512"))
}

/// A C2H frame's beats disagree with the length that the shell says: the smaller of both is written, and the error says so.
/// The next frame is none the worse.
fn length_mismatch(make: Maker<'_>) -> Result<String, String> {
    const BUFFER_BYTES: usize = 256;
    const UNWRITTEN: u8 = 0xA5;
    let mut bench = programmed(make)?;
    let mut spec = RxSpec::onic(F0, 0, 0);
    // The ring's pool is its own size; each frame meets fresh buffers.
    (spec.buffer_index, spec.pool) = (1, 1022);
    let mut rx = RxQueue::start(&mut bench, &Tables::ONIC, spec);
    rx.post(&mut bench, rx.pool.len().min(1022) as u16);
    rx.arm(&mut bench);
    let frames: [usize; 11] = [60, 64, 65, 128, 130, 256, 257, 500, 1024, 1500, 4000];
    let mut tried = 0;
    let mut buffer = 0;
    for bytes in frames {
        for said in [0, 1, bytes - 1, bytes, bytes + 1, bytes.saturating_sub(64), bytes + 64, bytes + 300] {
            let data: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
            for len in [said, bytes] {
                let pkt_id = (tried + 1) as u16;
                let frame = C2hFrame { data: data.clone(), qid: rx.spec.qid };
                let completion = C2hCompletion { qid: rx.spec.qid, len_bytes: len as u16, pkt_id };
                if !bench.engine.receive_as(frame, len as u16, completion) {
                    return Ok("nothing to try: its frames have the length that they say".into());
                }
                expect("it settles", bench.settle(QUIET_PS, LIMIT_PS), true)?;
                let what = format!("of a frame of {bytes} bytes, said to be {len}");
                for at in 0..len.div_ceil(BUFFER_BYTES).max(1) {
                    let first = at * BUFFER_BYTES;
                    let mut want = vec![UNWRITTEN; BUFFER_BYTES];
                    let written = bytes.min(len).saturating_sub(first).min(BUFFER_BYTES);
                    want[..written].copy_from_slice(&data[first.min(bytes)..][..written]);
                    expect(&format!("buffer {at} {what}"), bench.get(rx.pool[buffer], BUFFER_BYTES), want)?;
                    bench.put(rx.pool[buffer], &[UNWRITTEN; BUFFER_BYTES]);
                    buffer = (buffer + 1) % rx.pool.len();
                }
                let color = if rx.color { 2 } else { 0 };
                let entry = rx.entry(&mut bench, rx.cidx);
                expect(&format!("the completion {what}"), entry, user_bits(rx.spec.qid, len as u16, pkt_id) | color)?;
                rx.consume();
                rx.arm(&mut bench);
                rx.post(&mut bench, len.div_ceil(BUFFER_BYTES).max(1) as u16);
                let status = bench.read(F0, csr::C2H_ERROR_STATUS);
                bench.write(F0, csr::C2H_ERROR_STATUS, u32::MAX);
                // A frame said to have no byte is one beat.
                let agrees = bytes == len || len == 0 && bytes <= 64;
                let want = if agrees { 0 } else { csr::c2h_error_status::LEN_MISMATCH.mask() };
                expect(&format!("C2H errors {what}"), status, want)?;
                tried += 1;
            }
        }
    }
    sound(&mut bench)?;
    Ok(format!("{tried} frames"))
}

/// A context command may take so long, ns, whatever others do: host memory's latency and more.
const COMMAND_NS: u64 = 8_000;

/// A command, and that it is done in time.
fn timely(bench: &mut Bench, selector: S, op: ContextOp, qid: Qid) -> Result<u64, String> {
    let begin = bench.now();
    bench.command(selector, op, qid.0);
    sound(bench)?;
    let took = (bench.now() - begin) / 1000;
    expect(&format!("{op:?} of {selector:?} is done in {COMMAND_NS} ns (it took {took})"), took <= COMMAND_NS, true)?;
    Ok(took)
}

/// A command waits for what was under way when it was given, and not for what other queues bring meanwhile: one that sends a
/// frame a cycle must not hold it up.
fn command_amid_traffic(make: Maker<'_>) -> Result<String, String> {
    const FRAMES: u16 = 4_000;
    let mut longest = 0;
    // Host and stalls differ from seed to seed.
    for seed in 0..8 {
        let mut bench = Bench::new(make(&Shape { queues: 512, functions: 2, seed })?);
        Tables::ONIC.program(&mut bench);
        bench.fmap(F0, 0, 64);
        let mut tx = TxQueue::start(&mut bench, &Tables::ONIC, TxSpec::onic(F0, 1, 0));
        let other = TxQueue::start(&mut bench, &Tables::ONIC, TxSpec::onic(F0, 2, 0));
        for _ in 0..FRAMES {
            tx.send(&mut bench, &[3; 60]);
        }
        // Frames wait inside, and then leave as fast as the stream takes them.
        bench.hold(Hold::H2cStream, true);
        tx.kick(&mut bench);
        bench.run_ns(LONG_NS);
        bench.hold(Hold::H2cStream, false);
        for (selector, op) in [(S::SwDescH2c, ContextOp::Invalidate), (S::SwDescH2c, ContextOp::Clear)] {
            longest = longest.max(timely(&mut bench, selector, op, other.spec.qid)?);
        }
        expect("it settles", bench.settle(QUIET_PS, LIMIT_PS), true)?;
        expect("frames", bench.take_h2c().len(), FRAMES.into())?;
        sound(&mut bench)?;
    }
    Ok(format!("a command took {longest} ns at most"))
}

/// A command needs nothing of the shell: neither for the queue of a frame that it has begun, which is then lost, nor for
/// another one, which leaves the frame alone.
fn command_amid_a_frame(make: Maker<'_>) -> Result<String, String> {
    let mut bench = programmed(make)?;
    let mut longest = 0;
    for (number, bytes) in [65, 128, 300, 1500, 5000, 9000].into_iter().enumerate() {
        let data: Vec<u8> = (0..bytes).map(|at| (at % 241) as u8).collect();
        let mut queues = [0, 1, 2].map(|at| {
            let mut rx = RxQueue::start(&mut bench, &Tables::ONIC, RxSpec::onic(F0, 3 * number as u16 + at, 0));
            rx.post(&mut bench, 8);
            rx.arm(&mut bench);
            rx
        });
        let [stopped, running, bystander] = &mut queues;
        for (rx, whole) in [(&mut *running, true), (stopped, false)] {
            bench.hold(Hold::C2hStream, true);
            bench.receive(rx.spec.qid, &data, Some(rx.spec.qid));
            bench.run_ns(LONG_NS);
            let command = if whole { &*bystander } else { &*rx };
            for selector in [S::SwDescC2h, S::HwDescC2h, S::CreditC2h, S::Prefetch, S::Completion] {
                longest = longest.max(timely(&mut bench, selector, ContextOp::Invalidate, command.spec.qid)?);
            }
            command.free(&mut bench);
            bench.hold(Hold::C2hStream, false);
            expect("it settles", bench.settle(QUIET_PS, LIMIT_PS), true)?;
            if whole {
                let parts = data.chunks(rx.buffer_bytes.into()).zip(&rx.pool);
                for (part, buffer) in parts {
                    expect("the frame of the queue that runs", &bench.get(*buffer, part.len()), &part.to_vec())?;
                }
                let id = rx.entry(&mut bench, rx.cidx) >> 48;
                expect("its completion", id != 0, true)?;
            }
            sound(&mut bench)?;
        }
        // The stream is in step: the next frame is whole.
        bench.receive(running.spec.qid, &data, Some(running.spec.qid));
        expect("it settles", bench.settle(QUIET_PS, LIMIT_PS), true)?;
        let used = data.len().div_ceil(running.buffer_bytes.into());
        for (part, buffer) in data.chunks(running.buffer_bytes.into()).zip(&running.pool[used..]) {
            expect("the frame after it", &bench.get(*buffer, part.len()), &part.to_vec())?;
        }
        sound(&mut bench)?;
    }
    Ok(format!("a command took {longest} ns at most"))
}

/// How late a timer may be, ns, with what a frame and a notification take.
const LATE_NS: u64 = 3_000;

/// Time for a few frames, ns, and short of what a round of the wheel takes, 4096 cycles.
const SHORT_NS: u64 = 3_000;

/// A timer ends at its length, be it longer or shorter than the one before, which was stopped and still lies in the wheel.
fn timers(make: Maker<'_>) -> Result<String, String> {
    let mut bench = programmed(make)?;
    let mut spec = RxSpec::onic(F0, 0, 0);
    (spec.cmpl.trigger_mode, spec.cmpl.full_upd) = (TriggerMode::UserTimerCount, true);
    let mut rx = RxQueue::start(&mut bench, &Tables::ONIC, spec);
    rx.post(&mut bench, 1022);
    bench.write(F0, csr::INTERRUPT_TIMER_TICK, 1);
    bench.set_table(csr::C2H_COUNTER_THRESHOLD, 0, 3);
    let mut worst = 0;
    for (number, ticks) in
        [4000, 250, 60_000, 20, 3900, 1000, 5000, 4097, 1, 100, 4096, 4090, 3900, 600, 9000, 3].into_iter().enumerate()
    {
        bench.set_table(csr::C2H_TIMER_COUNT, 0, ticks);
        let value = CompletionCidx {
            cidx: rx.cidx,
            trigger_mode: TriggerMode::UserTimerCount,
            en_stat_desc: true,
            irq_arm: true,
            ..CompletionCidx::default()
        };
        rx.ring_cidx(&mut bench, value);
        bench.run_ns(SHORT_NS);
        bench.take_interrupts();
        let begin = bench.now();
        // By turns the timer is stopped by the count and stays where it is in the wheel, or ends.
        let frames = if number % 2 == 0 { 3 } else { 1 };
        for _ in 0..frames {
            bench.receive(rx.spec.qid, &[1; 60], Some(rx.spec.qid));
        }
        bench.run_ns(if frames == 1 { 4 * u64::from(ticks) + LONG_NS } else { SHORT_NS });
        let seen = bench.take_interrupts();
        expect(&format!("interrupts with a timer of {ticks} cycles"), seen.len(), 1)?;
        let length = if frames == 1 { 4 * u64::from(ticks) } else { 0 };
        let after = seen[0].at.0.saturating_sub(begin.0) / 1000;
        if !(length..=length + LATE_NS).contains(&after) {
            return Err(format!("a timer of {ticks} cycles, {length} ns, ended {after} ns after the frame"));
        }
        worst = worst.max(after - length);
        (0..frames).for_each(|_| rx.consume());
    }
    sound(&mut bench)?;
    Ok(format!("{worst} ns late at most, the frame's own time included"))
}

#[cfg(test)]
mod tests {
    use super::super::makers::model;
    use super::*;

    #[test]
    fn the_model_passes_all() {
        for check in &DIRECTED {
            let seen = (check.run)(&model).unwrap_or_else(|text| panic!("{}: {text}", check.name));
            println!("{}: {seen}", check.name);
        }
    }
}
