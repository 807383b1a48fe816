//! Rings round and round: three laps at every size that is worth trying, and then every byte of the ring's memory.
//!
//! Each engine goes round alone, checked against a count that is kept here; what then lies in the two rings must be the
//! same to the byte. The last frame of all comes alone, so that the status word tells of one moment only.

use regs::context::TriggerMode;
use regs::descriptor::{CompletionStatus, H2cStatus};

use super::bed::{Bed, Bench, F0};
use super::campaign::Maker;
use super::engine::Shape;
use super::queue::{RxQueue, RxSpec, Tables, TxQueue, TxSpec, capacity, user_bits};

/// Ring sizes, the status entry included: tiny and odd ones, around powers of two, and the largest the table holds.
/// Source: issue 4.
pub const SIZES: [u16; 22] =
    [3, 4, 5, 8, 16, 63, 64, 65, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 16384, 32768, 65533, 65534, 65535];

/// Laps of each ring.
pub const LAPS: u32 = 3;

/// Entries that go by without a look.
const CHUNK: u32 = 1000;

/// Long enough for host memory's latency and the timer in use, ps.
const QUIET_PS: u64 = 5_000_000;

/// An engine that goes on for so long goes on for ever, ps.
const LIMIT_PS: u64 = 10_000_000_000;

/// Go round on both engines and compare what lies in the rings. Frames that went round.
///
/// # Errors
/// What is wrong or differs, in a sentence.
pub fn agree(size: u16, shape: Shape, reference: Maker<'_>, tested: Maker<'_>) -> Result<u64, String> {
    let expected = run(&mut Bench::new(reference(&shape)?), size)?;
    let got = run(&mut Bench::new(tested(&shape)?), size)?;
    for (name, entry_bytes, want, have) in
        [("completion", 8, &expected.completion, &got.completion), ("H2C", 16, &expected.h2c, &got.h2c)]
    {
        if let Some(at) = (0..want.len()).find(|&at| want[at] != have[at]) {
            let slot = at / entry_bytes;
            let (one, other) = (want[at], have[at]);
            return Err(format!("{name} ring of {size}: slot {slot}, byte {at}: {one:#04x} and {other:#04x}"));
        }
    }
    Ok(expected.frames + got.frames)
}

/// Every size that both drivers' tables hold, and those of the issue between, each once.
pub fn all_sizes() -> Vec<u16> {
    let mut sizes: Vec<u16> = SIZES.into_iter().chain(Tables::ONIC.ring).chain(Tables::PMD_RINGS).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// What lies in the rings after the laps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rings {
    /// Completion ring, status word included.
    pub completion: Vec<u8>,
    /// H2C ring, status word included.
    pub h2c: Vec<u8>,
    /// Frames that went round, both ways.
    pub frames: u64,
}

/// Go round both rings of this size.
///
/// # Errors
/// What is wrong, in a sentence.
pub fn run(bench: &mut Bench, size: u16) -> Result<Rings, String> {
    let mut tables = Tables::ONIC;
    tables.ring[5] = size;
    tables.buffer[5] = 64;
    tables.program(bench);
    bench.fmap(F0, 0, 16);
    let laps = LAPS * u32::from(size - 1);
    // Each counter of 16 bits wraps where a ring is so large.
    let (completion, received) = receive(bench, &tables, laps + 1)?;
    let (h2c, sent) = transmit(bench, &tables, laps + 1)?;
    Ok(Rings { completion, h2c, frames: received + sent })
}

fn settle(bench: &mut Bench) -> Result<(), String> {
    if !bench.settle(QUIET_PS, LIMIT_PS) {
        return Err(format!("{}: it does not settle", bench.engine.name()));
    }
    let violation = bench.memory.take_violation();
    bench.wrong.take().or(violation).map_or(Ok(()), Err)
}

/// So many frames through one receive queue, as many under way as its rings hold.
fn receive(bench: &mut Bench, tables: &Tables, count: u32) -> Result<(Vec<u8>, u64), String> {
    let mut spec = RxSpec::onic(F0, 3, 0);
    (spec.desc_index, spec.buffer_index) = (5, 5);
    spec.cmpl.ring_size_index = 5;
    spec.cmpl.trigger_mode = TriggerMode::UserTimerCount;
    let mut queue = RxQueue::start(bench, tables, spec);
    let room = u32::from(capacity(queue.entries));
    queue.post(bench, room as u16);
    queue.arm(bench);
    let mut number = 0;
    while number < count {
        // The last frame comes alone.
        let burst = room.min(CHUNK).min(count - 1 - number).max(1);
        for n in number..number + burst {
            let len = 1 + n % 64;
            bench.receive(queue.spec.qid, &vec![n as u8; len as usize], Some(queue.spec.qid));
        }
        settle(bench)?;
        for n in number..number + burst {
            check_entry(bench, &queue, n)?;
            queue.consume();
        }
        number += burst;
        check_status(bench, &queue, number == count)?;
        queue.post(bench, burst as u16);
        queue.arm(bench);
        settle(bench)?;
    }
    let bytes = queue.entry_bytes() as usize * usize::from(queue.cmpl_entries);
    let ring = bench.memory.get(queue.cmpl_ring, bytes);
    queue.stop(bench);
    Ok((ring, count.into()))
}

fn check_entry(bench: &mut Bench, queue: &RxQueue, number: u32) -> Result<(), String> {
    let user = user_bits(queue.spec.qid, (1 + number % 64) as u16, (number + 1) as u16);
    let want = user | if queue.color { 2 } else { 0 };
    let got = queue.entry(bench, queue.cidx);
    if got == want {
        return Ok(());
    }
    let (name, size, slot) = (bench.engine.name(), queue.cmpl_entries, queue.cidx);
    Err(format!("{name}: ring of {size}: frame {number}, slot {slot}: completion {got:#018x}, due is {want:#018x}"))
}

/// The status word lies in slot N-1 and says nothing impossible; of the last frame it says all.
fn check_status(bench: &mut Bench, queue: &RxQueue, last: bool) -> Result<(), String> {
    let word = super::queue::u64_at(bench, queue.status_addr());
    let status = CompletionStatus::from_u64(word);
    let fits = status.pidx < queue.cmpl_entries - 1 && status.cidx < queue.cmpl_entries - 1;
    let newest = !last || status.pidx == queue.cidx && status.color == queue.color;
    if fits && newest && word >> 37 == 0 {
        return Ok(());
    }
    let (name, size) = (bench.engine.name(), queue.cmpl_entries);
    Err(format!("{name}: completion ring of {size}: status word {word:#018x} when {} were read", queue.cidx))
}

/// So many frames through one transmit queue.
fn transmit(bench: &mut Bench, tables: &Tables, count: u32) -> Result<(Vec<u8>, u64), String> {
    let mut spec = TxSpec::onic(F0, 4, 0);
    spec.sw.ring_size_index = 5;
    let mut queue = TxQueue::start(bench, tables, spec);
    let room = u32::from(capacity(queue.entries));
    let mut number = 0;
    while number < count {
        let burst = room.min(CHUNK).min(count - number);
        for n in number..number + burst {
            queue.send(bench, &frame(n));
        }
        queue.kick(bench);
        settle(bench)?;
        let frames = bench.take_h2c();
        if frames.len() as u32 != burst {
            let name = bench.engine.name();
            return Err(format!("{name}: H2C ring of {}: {} of {burst} frames came", queue.entries, frames.len()));
        }
        if let Some((n, _)) = (number..).zip(&frames).find(|(n, got)| got.data != frame(*n)) {
            return Err(format!("{}: H2C ring of {}: frame {n} differs", bench.engine.name(), queue.entries));
        }
        number += burst;
        let status = H2cStatus::from_u64(super::queue::u64_at(bench, queue.status_addr()));
        if (status.cidx, status.err) != (queue.pidx, 0) {
            let name = bench.engine.name();
            return Err(format!("{name}: H2C ring of {}: {status:?}, PIDX {}", queue.entries, queue.pidx));
        }
    }
    let ring = bench.memory.get(queue.ring, 16 * usize::from(queue.entries));
    queue.stop(bench);
    Ok((ring, count.into()))
}

/// A frame that carries its number.
fn frame(number: u32) -> Vec<u8> {
    let mut data = number.to_le_bytes().to_vec();
    data.resize(4 + (number % 61) as usize, number as u8);
    data
}

#[cfg(test)]
mod tests {
    use super::super::model::{ModelEngine, Pace};
    use super::*;

    #[test]
    fn both_paces_leave_the_same_rings() {
        let shape = Shape { queues: 512, functions: 2, seed: 1 };
        for size in [3, 4, 5, 8, 16, 63, 64, 65, 257] {
            let pace = Pace { access_ps: 12_000, step_ps: 70_000 };
            let other = ModelEngine::with("other", ModelEngine::config(&shape), pace);
            let rings = [ModelEngine::new(&shape), other]
                .map(|engine| run(&mut Bench::new(Box::new(engine)), size).unwrap_or_else(|text| panic!("{text}")));
            assert_eq!(rings[0], rings[1], "rings of {size}");
        }
    }
}
