//! Acceptance checks 1 to 6 of qdma.md section 11, for any engine.
//!
//! Each takes an engine just out of power-up and says what is wrong with it.

use std::path::Path;

use models::time::Time;
use regs::context::{CompletionContext, ContextOp, ContextSelector as S, SwDescContext};
use regs::descriptor::{CompletionStatus, H2cDescriptor};
use regs::{Bar, FuncId, Qid, doorbell, qdma_csr as csr};

use super::bed::{Bed, Bench, F0};
use super::campaign::Maker;
use super::engine::Shape;
use super::laps;
use super::queue::{RxQueue, RxSpec, Tables, TxQueue, TxSpec, u64_at};

/// One check.
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// Try it: what was seen, for the report, or what is wrong.
    pub run: fn(Maker<'_>) -> Result<String, String>,
}

/// All of them.
pub const CHECKS: [Check; 6] = [
    Check { name: "golden-1-onic-probe-trace", run: onic_probe_trace },
    Check { name: "golden-2-pmd-attributes-and-context-wipe", run: pmd_attributes_and_context_wipe },
    Check { name: "golden-3-three-laps", run: three_laps },
    Check { name: "golden-4-function-1-doorbells-are-relative", run: function_1_doorbells_are_relative },
    Check { name: "golden-5-moderation", run: moderation },
    Check { name: "golden-6-no-overflow-while-cidx-is-withheld", run: no_overflow_while_cidx_is_withheld },
];

const SHAPE: Shape = Shape { queues: 512, functions: 2, seed: 1 };

/// Hold `what` against a value.
pub(super) fn expect<T: PartialEq + std::fmt::Debug>(what: &str, got: T, want: T) -> Result<(), String> {
    if got == want { Ok(()) } else { Err(format!("{what}: {got:x?}, must be {want:x?}")) }
}

fn bench(make: Maker<'_>, shape: Shape) -> Result<Bench, String> {
    Ok(Bench::new(make(&shape)?))
}

/// The bench with onic.ko's tables, and 64 queues for function 0.
pub(super) fn programmed(make: Maker<'_>) -> Result<Bench, String> {
    let mut bench = bench(make, SHAPE)?;
    Tables::ONIC.program(&mut bench);
    bench.fmap(F0, 0, 64);
    Ok(bench)
}

/// What the engine or its memory has to complain of.
pub(super) fn sound(bench: &mut Bench) -> Result<(), String> {
    let text = bench.engine.failed().or(bench.wrong.take()).or_else(|| bench.memory.take_violation());
    text.map_or(Ok(()), Err)
}

// ---- 1: the recorded probe

/// One BAR0 access of the recorded driver.
struct Access {
    seq: u64,
    write: bool,
    offset: u32,
    value: u32,
}

/// What the recording's card did by DMA.
enum Dma {
    Read(u64, Vec<u8>),
    Write(u64, Vec<u8>),
    Interrupt(u16),
}

fn number(text: &str) -> Result<u64, String> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    }
    .map_err(|error| format!("{text}: {error}"))
}

/// `SEQ BAR rd|wr BYTES OFFSET VALUE`, BAR0 only.
fn accesses(text: &str) -> Result<Vec<Access>, String> {
    let rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split_whitespace().collect());
    let rows = rows.filter(|row: &Vec<&str>| row.len() >= 6 && row[1] == "0");
    rows.map(|row| {
        let (offset, value) = (number(row[4])? as u32, number(row[5])? as u32);
        Ok(Access { seq: number(row[0])?, write: row[2] == "wr", offset, value })
    })
    .collect()
}

/// `SEQ rd|wr ADDRESS BYTES HEX` or `SEQ irq VECTOR`.
fn dma(text: &str) -> Result<Vec<(u64, Dma)>, String> {
    let byte = |digits: &[u8]| {
        let text = std::str::from_utf8(digits).map_err(|error| error.to_string())?;
        u8::from_str_radix(text, 16).map_err(|error| format!("{text}: {error}"))
    };
    let bytes = |hex: &str| hex.as_bytes().chunks(2).map(byte).collect::<Result<Vec<u8>, String>>();
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    rows.map(|line| {
        let row: Vec<&str> = line.split_whitespace().collect();
        let what = match row[..] {
            [_, "rd", addr, _, hex] => Dma::Read(number(addr)?, bytes(hex)?),
            [_, "wr", addr, _, hex] => Dma::Write(number(addr)?, bytes(hex)?),
            [_, "irq", vector] => Dma::Interrupt(number(vector)? as u16),
            _ => return Err(format!("{line}: no DMA")),
        };
        Ok((number(row[0])?, what))
    })
    .collect()
}

/// The text of a shared vector file.
fn vector_file(name: &str) -> Result<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors").join(name);
    std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Replay the whole recording of onic.ko: every register access, and the traffic of four pings.
fn onic_probe_trace(make: Maker<'_>) -> Result<String, String> {
    let (Ok(probe), Ok(traffic)) = (vector_file("onic_probe_trace.txt"), vector_file("onic_dma_trace.txt")) else {
        return Ok("skipped: the recording is not there".into());
    };
    let (probe, traffic) = (accesses(&probe)?, dma(&traffic)?);
    let mut replay = Replay { bench: bench(make, SHAPE)?, rings: Vec::new(), frames: 0 };
    // The driver wrote its C2H descriptors before the doorbell; the recording shows each when its card read it.
    for (_, op) in &traffic {
        if let Dma::Read(addr, data) = op
            && data.len() == 8
        {
            replay.lend(*addr, 8 * 1024);
            replay.bench.put(*addr, data);
        }
    }
    for access in &probe {
        replay.access(access).map_err(|text| format!("access {}: {text}", access.seq))?;
        let now: Vec<&Dma> = traffic.iter().filter(|(seq, _)| *seq == access.seq).map(|(_, op)| op).collect();
        if !now.is_empty() {
            replay.traffic(&now).map_err(|text| format!("after access {}: {text}", access.seq))?;
        }
    }
    let mut bench = replay.bench;
    for (name, status) in [("TRQ", csr::GLBL_TRQ_ERROR_STATUS), ("global", csr::GLBL_ERROR_STATUS)] {
        expect(&format!("{name} error status"), bench.read(F0, status), 0)?;
    }
    sound(&mut bench)?;
    Ok(format!("{} accesses, none unmapped; {} frames echoed", probe.len(), replay.frames))
}

/// The recording on its way through an engine.
struct Replay {
    bench: Bench,
    /// Completion rings, and whose they are.
    rings: Vec<(u64, Qid)>,
    frames: u64,
}

impl Replay {
    fn lend(&mut self, addr: u64, len: u64) {
        self.bench.memory.lend(F0, addr, len);
    }

    fn access(&mut self, access: &Access) -> Result<(), String> {
        let Access { offset, value, .. } = *access;
        self.bench.run_ns(200);
        let mapped = offset >= regs::qdma::DOORBELL
            || regs::registers().iter().any(|register| {
                register.bar == Bar::Qdma
                    && (0..register.count).any(|n| register.offset + n * register.stride == offset)
            });
        expect(&format!("{offset:#x} is a register"), mapped, true)?;
        if !access.write {
            let got = self.bench.read(F0, offset);
            // How deep prefetch cache and coalesce buffer are is the card's own; the recording's had 16 of both.
            let own = [csr::C2H_PREFETCH_CACHE_DEPTH, csr::C2H_COALESCE_DEPTH].contains(&offset);
            return if own {
                expect("a depth", got != 0, true)
            } else {
                expect(&format!("register {offset:#x}"), got, value)
            };
        }
        if offset == csr::IND_CTXT_CMD {
            self.note_rings(value);
        }
        self.bench.write(F0, offset, value);
        Ok(())
    }

    /// A context names a ring: lend its memory.
    fn note_rings(&mut self, command: u32) {
        let words: [u32; 8] = std::array::from_fn(|i| self.bench.read(F0, csr::IND_CTXT_DATA + 4 * i as u32));
        let qid = Qid((command >> 7) as u16);
        match command & 0x7E {
            0x2C => {
                let ring = CompletionContext::from_words(&std::array::from_fn(|i| words[i])).ring_base();
                self.rings.push((ring, qid));
                self.rings.sort_unstable();
                self.lend(ring, 8 * 1024);
            }
            0x20 | 0x22 => self.lend(SwDescContext::from_words(&words).ring_base, 16 * 4096),
            _ => {}
        }
    }

    /// The recorded card after one access: expect an H2C frame if it read one, echo what it sent to the host, and compare
    /// what then lies in host memory.
    fn traffic(&mut self, ops: &[&Dma]) -> Result<(), String> {
        let mut reads: Vec<&Vec<u8>> = Vec::new();
        let mut writes: Vec<(u64, &Vec<u8>)> = Vec::new();
        let mut vectors = Vec::new();
        for op in ops {
            match op {
                Dma::Read(addr, data) => {
                    self.lend(*addr, data.len() as u64);
                    self.bench.put(*addr, data);
                    reads.push(data);
                }
                Dma::Write(addr, data) => writes.push((*addr, data)),
                Dma::Interrupt(vector) => vectors.push(*vector),
            }
        }
        self.bench.run_ns(5000);
        // An H2C descriptor has 16 bytes, and its data come next.
        for pair in reads.windows(2).filter(|pair| pair[0].len() == H2cDescriptor::SIZE_BYTES) {
            let frame = self.bench.engine.take_h2c().ok_or("the recorded card read a frame here")?;
            expect("the frame", &frame.data, pair[1])?;
            expect("its metadata", frame.metadata as usize, pair[1].len())?;
        }
        // A received frame is a payload, an 8-byte completion, an 8-byte status.
        for frame in writes.windows(3).filter(|writes| writes[0].1.len() > 8) {
            self.echo([frame[0], frame[1], frame[2]])?;
        }
        self.bench.run_ns(5000);
        let seen: Vec<u16> = self.bench.take_interrupts().iter().map(|interrupt| interrupt.vector).collect();
        expect("vectors", seen, vectors)
    }

    fn echo(&mut self, writes: [(u64, &Vec<u8>); 3]) -> Result<(), String> {
        let [(payload_addr, payload), (entry_addr, entry), (status_addr, status)] = writes;
        let ring = self.rings.iter().rev().find(|(base, _)| *base <= entry_addr);
        let (_, qid) = *ring.ok_or("a completion outside every ring")?;
        self.lend(payload_addr, payload.len() as u64);
        self.bench.receive(qid, payload, Some(qid));
        self.bench.run_ns(5000);
        expect("the payload", &self.bench.get(payload_addr, payload.len()), payload)?;
        // The dummy left queue and packet number 0; color and length must agree.
        let theirs = entry.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let ours = u64_at(&mut self.bench, entry_addr);
        expect("the completion", ours & 0x0000_FFFF_0000_0007, theirs & 0x0000_FFFF_0000_0007)?;
        expect("the status word", &self.bench.get(status_addr, 8), status)?;
        self.frames += 1;
        Ok(())
    }
}

// ---- 2: the DPDK driver's probe

/// Q40 as the DPDK driver probes it: attributes, then 4096 context commands and the function maps in under 1 s.
fn pmd_attributes_and_context_wipe(make: Maker<'_>) -> Result<String, String> {
    let mut bench = bench(make, SHAPE)?;
    expect("magic", bench.read(F0, csr::CONFIG_BLOCK_ID) >> 16, 0x1FD3)?;
    let misc = bench.read(F0, csr::MISC_CAP);
    expect("IP version, EQDMA 4.0", misc >> 20 & 0xF, 1)?;
    expect("device type, soft IP", misc >> 28, 0)?;
    let bars = bench.read(F0, csr::PF_BARLITE_EXT);
    expect("user BARs of functions 0 and 1", [bars & 0x3F, bars >> 6 & 0x3F], [4, 4])?;
    expect("DMA BARs", bench.read(F0, csr::PF_BARLITE_INT), 0x41)?;
    expect("queues", bench.read(F0, csr::QDMA_CAP) & 0xFFF, 512)?;
    expect("both streams", bench.read(F0, csr::CHANNEL_MDMA) >> 16 & 3, 3)?;
    expect("own number", bench.read(FuncId(1), csr::FUNCTION_RETURN) & 0xFF, 1)?;
    let start = bench.now();
    for code in 0..8 {
        for qid in 0..512 {
            bench.command(S::from_code(code), ContextOp::Clear, qid);
        }
    }
    for func in 0..2 {
        bench.command(S::Fmap, ContextOp::Clear, func);
    }
    let took = bench.now() - start;
    expect("the wipe ends within 1 s", took < 1_000_000_000_000, true)?;
    expect("refused commands", bench.read(F0, csr::GLBL_ERROR_STATUS), 0)?;
    sound(&mut bench)?;
    Ok(format!("4098 context commands in {} us", took / 1_000_000))
}

// ---- 3: laps

/// Three laps of onic.ko's rings: H2C 4095 entries, completions 1023.
fn three_laps(make: Maker<'_>) -> Result<String, String> {
    let mut frames = 0;
    for size in [1024, 4096] {
        let mut bench = bench(make, SHAPE)?;
        frames += laps::run(&mut bench, size)?.frames;
        sound(&mut bench)?;
    }
    Ok(format!("{frames} frames round rings of 1024 and 4096"))
}

// ---- 4: functions

/// Function 1 counts from its own base; a doorbell beyond its queues is an error without effect.
fn function_1_doorbells_are_relative(make: Maker<'_>) -> Result<String, String> {
    use csr::{glbl_trq_error_log as log, glbl_trq_error_status::QID_RANGE};
    let f1 = FuncId(1);
    let mut bench = programmed(make)?;
    for mask in [csr::GLBL_TRQ_ERROR_MASK, csr::GLBL_ERROR_MASK] {
        bench.write(F0, mask, u32::MAX);
    }
    bench.fmap(f1, 64, 8);
    let mut mine = TxQueue::start(&mut bench, &Tables::ONIC, TxSpec::onic(f1, 0, 64));
    let theirs = TxQueue::start(&mut bench, &Tables::ONIC, TxSpec::onic(F0, 0, 0));
    mine.send(&mut bench, &[7; 60]);
    mine.kick(&mut bench);
    bench.run_ns(10_000);
    let frame = bench.engine.take_h2c().ok_or("queue 0 of function 1 sends nothing")?;
    expect("queue and data", (frame.qid, frame.data), (Qid(64), vec![7; 60]))?;
    let sw = |bench: &mut Bench, qid: Qid| SwDescContext::from_words(&bench.read_context(S::SwDescH2c, qid.0));
    expect("PIDX of queue 0 of function 0", sw(&mut bench, theirs.spec.qid).pidx, 0)?;

    let before = sw(&mut bench, Qid(64));
    let offset = doorbell::offset(doorbell::H2C_PIDX, 8).ok_or("no doorbell")?;
    bench.write(f1, offset, 1);
    expect("target errors", bench.read(F0, csr::GLBL_TRQ_ERROR_STATUS), QID_RANGE.mask())?;
    let logged = bench.read(F0, csr::GLBL_TRQ_ERROR_LOG);
    expect("logged function and address", (log::FUNC.get(logged), log::ADDRESS.get(logged)), (1, offset & 0x1_FFFF))?;
    expect("global errors", bench.read(F0, csr::GLBL_ERROR_STATUS), csr::glbl_error_status::TRQ.mask())?;
    bench.run_ns(10_000);
    expect("context of the last queue", sw(&mut bench, Qid(64)), before)?;
    expect("PIDX of the queue beyond", sw(&mut bench, Qid(72)).pidx, 0)?;
    expect("frames", bench.take_h2c().len(), 0)?;
    sound(&mut bench)?;
    Ok("queue 0 of function 1 is queue 64; its queue 8 is refused".into())
}

// ---- 5: moderation

/// A receive queue under a driver that polls: the bench of checks 5 and 6.
struct Polled {
    bench: Bench,
    rx: RxQueue,
}

impl Polled {
    fn new(make: Maker<'_>, posted: u16) -> Result<Polled, String> {
        let mut bench = programmed(make)?;
        let mut spec = RxSpec::onic(F0, 0, 0);
        spec.cmpl.vector = 3;
        let mut rx = RxQueue::start(&mut bench, &Tables::ONIC, spec);
        rx.post(&mut bench, posted);
        rx.arm(&mut bench);
        bench.run_ns(5_000);
        Ok(Polled { bench, rx })
    }

    fn receive(&mut self, count: usize) {
        for _ in 0..count {
            self.bench.receive(self.rx.spec.qid, &[5; 60], Some(self.rx.spec.qid));
        }
    }

    fn status(&mut self) -> CompletionStatus {
        CompletionStatus::from_u64(u64_at(&mut self.bench, self.rx.status_addr()))
    }

    /// Completions that the status word covers, at most so many.
    fn reap(&mut self, most: usize) -> usize {
        let pidx = self.status().pidx;
        let mut count = 0;
        while self.rx.cidx != pidx && count < most {
            self.rx.consume();
            count += 1;
        }
        count
    }

    /// Interrupts that came within so many ns; each must be the queue's.
    fn interrupts(&mut self, ns: u64) -> Result<Vec<Time>, String> {
        self.bench.run_ns(ns);
        let seen = self.bench.take_interrupts();
        match seen.iter().find(|interrupt| (interrupt.func, interrupt.vector) != (F0, 3)) {
            Some(other) => Err(format!("interrupt {other:?}, and the queue's vector is 3")),
            None => Ok(seen.iter().map(|interrupt| interrupt.at).collect()),
        }
    }
}

/// The moderation timer of onic.ko's tables, ns.
const TIMER_NS: u64 = 1_000;

/// Ticks of a timer that ends long after a doorbell's own notification: 20 us.
const LONG_TIMER: u32 = 200;

/// A posted write, or a doorbell and the notification that it sets off, takes no longer, ns.
const POSTED_NS: u64 = 2_500;

/// One packet, one interrupt after 1 us; a burst at the count; none before CIDX; with leftovers at once.
fn moderation(make: Maker<'_>) -> Result<String, String> {
    let mut bed = Polled::new(make, 1022)?;
    let begin = bed.bench.now();
    bed.receive(1);
    // The timer counts from the entry, which is written after the frame came.
    let seen = bed.interrupts(TIMER_NS + 2 * POSTED_NS)?;
    expect("interrupts for one frame", seen.len(), 1)?;
    let after = seen[0].0.saturating_sub(begin.0) / 1000;
    if !(TIMER_NS..=TIMER_NS + POSTED_NS).contains(&after) {
        return Err(format!("the interrupt came {after} ns after the frame, the timer is {TIMER_NS} ns"));
    }
    expect("completions", bed.reap(9), 1)?;

    // Fewer than the threshold and younger than the timer: it is the doorbell that announces them.
    bed.bench.set_table(csr::C2H_TIMER_COUNT, 0, LONG_TIMER);
    bed.receive(10);
    expect("interrupts before the CIDX doorbell", bed.interrupts(2 * POSTED_NS)?.len(), 0)?;
    expect("the status word", bed.status().pidx, 1)?;
    bed.rx.arm(&mut bed.bench);
    expect("leftovers notify at once", bed.interrupts(POSTED_NS)?.len(), 1)?;
    expect("completions", bed.reap(99), 10)?;

    bed.receive(200);
    expect("however many and however long, none before the doorbell", bed.interrupts(20_000)?.len(), 0)?;
    expect("the status word", bed.status().pidx, 11)?;
    bed.rx.arm(&mut bed.bench);
    expect("interrupts", bed.interrupts(POSTED_NS)?.len(), 1)?;
    expect("completions", bed.reap(999), 200)?;

    bed.rx.arm(&mut bed.bench);
    expect("nothing left, nothing sent", bed.interrupts(10_000)?.len(), 0)?;
    // The count comes long before the timer.
    bed.receive(64);
    expect("a burst of the threshold", bed.interrupts(10_000)?.len(), 1)?;
    expect("completions", bed.reap(99), 64)?;
    sound(&mut bed.bench)?;
    Ok(format!("one frame: interrupt {after} ns after it came"))
}

// ---- 6: overflow

/// onic.ko under overload (driver.md 4.1): frames come faster than it polls; a poll that uses up its budget gives no CIDX
/// back; never more than 383 buffers are posted. With one notification outstanding the ring never fills.
fn no_overflow_while_cidx_is_withheld(make: Maker<'_>) -> Result<String, String> {
    const BUDGET: usize = 32;
    let mut bed = Polled::new(make, 383)?;
    let mut read = 0;
    for _ in 0..300 {
        if bed.bench.engine.waiting() < 100 {
            bed.receive(40);
        }
        bed.bench.run_ns(400);
        let taken = bed.reap(BUDGET);
        read += taken;
        if taken != 0 {
            bed.rx.post(&mut bed.bench, taken as u16);
        }
        if taken < BUDGET {
            bed.rx.arm(&mut bed.bench);
        }
    }
    let errors = bed.bench.read(F0, csr::C2H_ERROR_STATUS);
    expect("C2H errors", errors, 0)?;
    expect("frames are read", read > 2_000, true)?;
    sound(&mut bed.bench)?;
    Ok(format!("{read} frames read, none lost to a full ring"))
}

#[cfg(test)]
mod tests {
    use super::super::makers::model;
    use super::super::memory::PAGE;
    use super::*;

    #[test]
    fn the_model_passes_all() {
        for check in CHECKS {
            let seen = (check.run)(&model).unwrap_or_else(|text| panic!("{}: {text}", check.name));
            println!("{}: {seen}", check.name);
        }
    }

    /// A page of memory is what the recording's rings are aligned to.
    #[test]
    fn lent_memory_begins_at_its_page() {
        let mut bench = bench(&model, SHAPE).unwrap();
        bench.memory.lend(F0, 5 * PAGE + 8, 1);
        bench.put(5 * PAGE, &[9]);
        assert_eq!(bench.get(5 * PAGE, 1), [9]);
    }
}
