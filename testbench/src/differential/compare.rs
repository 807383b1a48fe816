//! What two engines must share once both have settled.
//!
//! Their clocks, latencies and read-ahead differ, so only what must hold whatever the timing is compared. A *round* lasts
//! from one settling to the next.
//!
//! | what | how | why |
//! |---|---|---|
//! | H2C frames out: data, metadata, error flag, for each queue in order | exactly; also against what was posted | |
//! | H2C frames of a queue stopped in mid-flight | each side: what was posted, from the front | how many had left is timing |
//! | order of H2C frames of different queues | not | the round robin meets other moments |
//! | C2H payload, completion entries (packet ids too), everything else in pages that either wrote | exactly; payload also against what was sent | at this seam both number the same frames |
//! | number of completions, their user bits, color and error bit | also against the count of [`super::shadow`] | |
//! | completion status word, CIDX and error | exactly | |
//! | its PIDX and color | exactly, unless several frames came in the round, or one after a doorbell: then PIDX tells of no entry that was read before the word, nor of one that is not there | the word tells of the moment of the notification |
//! | its interrupt state | exactly, unless a doorbell raced with frames | |
//! | that a word tells of what is unread, and is younger than the last doorbell, in modes that leave nothing unannounced | on each side | |
//! | H2C status word, error | exactly | |
//! | its CIDX and PIDX | exactly, unless the queue has the interval only (`wbi_chk` = 0): then CIDX is less than an interval behind, on each side | the interval's phase is timing |
//! | interrupts, for each function and vector | their number, unless doorbells raced with frames: then whether there were any, and of a queue that only counts not; not for H2C queues with the interval only | each doorbell may find the last notification serviced or not, the count reached or not |
//! | time of interrupts and of everything else | not | time differs |
//! | error registers: global and leaf status, masks, error interrupt, all logs | exactly | errors are hazards: one at a time |
//! | LOG1's consumer index, for C2H queues | not | it stands where the read-ahead stands |
//! | CMPT_INVALID_QUEUE after a queue was stopped in mid-flight | not, and cleared | whether a completion was late is timing |
//! | counters of completions in, out, dropped, status words | by what they rose in the round, unless something raced or waits | |
//! | software contexts | exactly, but for `irq_arm` where interrupts are uncertain | |
//! | hardware contexts | `cidx` of H2C queues; of C2H queues when all descriptors are used up; credits used of queues at rest; the rest not | read-ahead |
//! | credit contexts | exactly | |
//! | prefetch contexts | what software wrote; counts that the engine keeps not | read-ahead |
//! | completion contexts | exactly, but for `int_st` where interrupts are uncertain | |
//! | contexts of a queue stopped in mid-flight | not, until it is written anew | where it stopped is timing |
//! | the good page before memory that is missing, in the round in which a receive queue of its function was so stopped | not, then it is filled anew | how far the frame came is timing |
//! | DMA to memory that was taken back, or that nobody offered | never, on either side | a stopped queue does no DMA |

use std::collections::{BTreeMap, BTreeSet};

use regs::context::{
    COMMAND_WORDS, CompletionContext, ContextSelector as S, HwDescContext, PrefetchContext, TriggerMode,
};
use regs::descriptor::{CompletionStatus, H2cStatus};
use regs::{FuncId, Qid, qdma_csr as csr};

use super::bed::{Bed, Bench, F0};
use super::memory::PAGE;
use super::pair::Pair;
use super::queue::Oddity;
use super::shadow::{Certainty, Health, Landed, Rx, Shadow, Tx, Word};

/// Error registers that must be the same, but for LOG1.
const ERROR_REGISTERS: [(&str, u32); 12] = [
    ("GLBL_DSC_ERROR_STATUS", csr::GLBL_DSC_ERROR_STATUS),
    ("GLBL_TRQ_ERROR_STATUS", csr::GLBL_TRQ_ERROR_STATUS),
    ("C2H_ERROR_STATUS", csr::C2H_ERROR_STATUS),
    ("H2C_ERROR_STATUS", csr::H2C_ERROR_STATUS),
    ("GLBL_ERROR_STATUS", csr::GLBL_ERROR_STATUS),
    ("ERROR_INTERRUPT", csr::ERROR_INTERRUPT),
    ("GLBL_DSC_ERROR_LOG0", csr::GLBL_DSC_ERROR_LOG0),
    ("GLBL_DSC_ERROR_LOG2", csr::GLBL_DSC_ERROR_LOG2),
    ("GLBL_TRQ_ERROR_LOG", csr::GLBL_TRQ_ERROR_LOG),
    ("C2H_FIRST_ERROR_QID", csr::C2H_FIRST_ERROR_QID),
    ("H2C_FIRST_ERROR_QID", csr::H2C_FIRST_ERROR_QID),
    ("C2H_DESC_DROP", csr::C2H_DESC_DROP),
];

/// Counters of the C2H engine, by what they rose.
const COUNTERS: [(&str, u32); 4] = [
    ("C2H_COMPLETIONS_IN", csr::C2H_COMPLETIONS_IN),
    ("C2H_COMPLETIONS_OUT", csr::C2H_COMPLETIONS_OUT),
    ("C2H_COMPLETIONS_DROPPED", csr::C2H_COMPLETIONS_DROPPED),
    ("C2H_STATUS_OUT", csr::C2H_STATUS_OUT),
];

/// Error bits that a driver or a shell can provoke, by the name of their status register. What is not here needs a shell
/// that breaks its stream's rules, hardware that fails, or more functions than these tests have. Source: qdma.md section 8.
pub const REACHABLE_ERRORS: [(&str, u32); 22] = [
    ("GLBL_DSC_ERROR_STATUS", 1),  // descriptor poisoned
    ("GLBL_DSC_ERROR_STATUS", 2),  // descriptor not readable
    ("GLBL_DSC_ERROR_STATUS", 4),  // context not supported
    ("GLBL_DSC_ERROR_STATUS", 16), // data poisoned
    ("GLBL_DSC_ERROR_STATUS", 20), // data not readable
    ("GLBL_DSC_ERROR_STATUS", 21), // invalid PIDX
    ("GLBL_TRQ_ERROR_STATUS", 0),  // no such register
    ("GLBL_TRQ_ERROR_STATUS", 5),  // queue of another
    ("C2H_ERROR_STATUS", 3),       // completion of another queue
    ("C2H_ERROR_STATUS", 4),       // frame for a failed queue
    ("C2H_ERROR_STATUS", 7),       // vector beyond the table
    ("C2H_ERROR_STATUS", 9),       // too many buffers
    ("C2H_ERROR_STATUS", 12),      // completion queue invalid
    ("C2H_ERROR_STATUS", 13),      // completion ring full
    ("C2H_ERROR_STATUS", 14),      // bad CIDX
    ("H2C_ERROR_STATUS", 0),       // zero length
    ("GLBL_ERROR_STATUS", 2),      // DSC
    ("GLBL_ERROR_STATUS", 3),      // TRQ
    ("GLBL_ERROR_STATUS", 8),      // C2H
    ("GLBL_ERROR_STATUS", 9),      // refused commands, by function
    ("GLBL_ERROR_STATUS", 10),
    ("GLBL_ERROR_STATUS", 16), // H2C
];

/// What the comparison remembers between rounds.
#[derive(Default)]
pub struct Ledger {
    /// Counters at the last settling, of both.
    counters: [[u32; COUNTERS.len()]; 2],
    /// What queues stopped in mid-flight may still send: all that was posted, by queue.
    pub torn_h2c: BTreeMap<Qid, Vec<Vec<u8>>>,
    /// Vectors of queues stopped in mid-flight.
    pub torn_vectors: BTreeSet<(FuncId, u16)>,
    /// A receive queue was stopped in mid-flight.
    pub torn_c2h: bool,
    /// Pages outside its own memory that its frames may have reached.
    pub torn_pages: BTreeSet<u64>,
    /// Error bits seen on both, by register.
    pub errors_seen: BTreeMap<(&'static str, u32), u64>,
    /// Error status at the last settling, to count each bit as it comes.
    last_errors: BTreeMap<&'static str, u32>,
}

/// Compare all that must be the same, after [`Shadow::absorb`] and before [`Shadow::next_round`].
pub fn settled(pair: &mut Pair, shadow: &mut Shadow, landed: &[Landed], ledger: &mut Ledger) {
    for bench in pair.each() {
        if let Some(failure) = bench.engine.failed().or_else(|| bench.memory.take_violation()) {
            bench.wrong(failure);
        }
    }
    payload(pair, landed);
    entries(pair, shadow);
    h2c_frames(pair, shadow, ledger);
    statuses(pair, shadow);
    announced(pair, shadow);
    intervals(pair, shadow);
    memory(pair, shadow, &ledger.torn_pages);
    interrupts(pair, shadow, ledger);
    errors(pair, ledger);
    counters(pair, shadow, ledger);
    ledger.torn_h2c.clear();
    ledger.torn_vectors.clear();
    ledger.torn_c2h = false;
    ledger.torn_pages.clear();
}

/// What was sent lies where it must.
fn payload(pair: &mut Pair, landed: &[Landed]) {
    for frame in landed {
        for (addr, part) in &frame.parts {
            for bench in pair.each() {
                let got = bench.memory.get(*addr, part.len());
                if let Some(at) = (0..part.len()).find(|&at| got[at] != part[at]) {
                    let (want, have) = (part[at], got[at]);
                    bench.wrong(format!(
                        "queue {}: {} bytes at {addr:#x}: byte {at} is {have:#04x}, sent was {want:#04x}",
                        frame.qid.0,
                        part.len()
                    ));
                    return;
                }
            }
        }
    }
}

/// Unread completions are what the count says.
fn entries(pair: &mut Pair, shadow: &Shadow) {
    let format = format_of(pair);
    // Those of a queue that belongs to nobody went nowhere.
    let written = |rx: &&Rx| !matches!(rx.queue.spec.oddity, Oddity::Function(_));
    for rx in shadow.rx.iter().flatten().filter(written) {
        let queue = &rx.queue;
        let (mut slot, mut color) = (queue.cidx, queue.color);
        for (number, (user, error)) in rx.unread.iter().enumerate() {
            let want = stamped(*user, format, color, *error);
            for bench in pair.each() {
                let got = queue.entry(bench, slot);
                if got != want {
                    bench.wrong(format!(
                        "queue {}: completion {number} of {} in slot {slot} of {} is {got:#018x}, due is {want:#018x}",
                        queue.spec.qid.0,
                        rx.unread.len(),
                        queue.cmpl_entries
                    ));
                    return;
                }
            }
            slot = super::queue::next(slot, queue.cmpl_entries);
            color ^= slot == 0;
        }
    }
}

/// Places of color and error bit, as the card has them.
fn format_of(pair: &mut Pair) -> (u32, u32) {
    use csr::cmpt_format as format;
    let value = pair.reference.read(F0, csr::CMPT_FORMAT);
    (format::COLOR_LOCATION.get(value), format::ERROR_LOCATION.get(value))
}

/// An entry's low 64 bits with color and error.
fn stamped(user: u64, (color_bit, error_bit): (u32, u32), color: bool, error: bool) -> u64 {
    let place = |bit: u32| 1u64.checked_shl(bit).unwrap_or(0);
    let (c, e) = (place(color_bit), place(error_bit));
    user & !(c | e) | if color { c } else { 0 } | if error { e } else { 0 }
}

/// H2C frames of a round: what was posted, in order for each queue.
fn h2c_frames(pair: &mut Pair, shadow: &mut Shadow, ledger: &Ledger) {
    let mut expected: BTreeMap<Qid, Vec<(Vec<u8>, u32, bool)>> = BTreeMap::new();
    for tx in shadow.tx.iter_mut().flatten() {
        expected.insert(tx.queue.spec.qid, tx.expected.drain(..).collect());
    }
    for bench in pair.each() {
        let mut got: BTreeMap<Qid, Vec<(Vec<u8>, u32, bool)>> = BTreeMap::new();
        for frame in bench.take_h2c() {
            got.entry(frame.qid).or_default().push((frame.data, frame.metadata, frame.err));
        }
        let queues: BTreeSet<Qid> = expected.keys().chain(got.keys()).copied().collect();
        for qid in queues {
            let have = got.get(&qid).map_or(&[][..], Vec::as_slice);
            if let Some(posted) = ledger.torn_h2c.get(&qid) {
                if !have.iter().zip(posted).all(|(frame, data)| frame.0 == *data) || have.len() > posted.len() {
                    bench.wrong(format!("queue {}: it was stopped, and sent what was not posted", qid.0));
                    return;
                }
                continue;
            }
            let want = expected.get(&qid).map_or(&[][..], Vec::as_slice);
            if let Some(text) = first_difference(want, have) {
                bench.wrong(format!("queue {}: H2C: {text}", qid.0));
                return;
            }
        }
    }
}

/// The first frame that differs.
fn first_difference(want: &[(Vec<u8>, u32, bool)], have: &[(Vec<u8>, u32, bool)]) -> Option<String> {
    let at = (0..want.len().max(have.len())).find(|&at| want.get(at) != have.get(at))?;
    let show = |list: &[(Vec<u8>, u32, bool)]| match list.get(at) {
        None => "nothing".into(),
        Some((data, metadata, err)) => {
            let head: Vec<String> = data.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
            format!("{} bytes, metadata {metadata:#x}, error {err}: {} …", data.len(), head.join(" "))
        }
    };
    let (count, came) = (want.len(), have.len());
    Some(format!("frame {at} of {count} differs ({came} came)\n  posted  {}\n  sent    {}", show(want), show(have)))
}

/// Status words where they may tell of different moments: each must be one that is possible.
fn statuses(pair: &mut Pair, shadow: &mut Shadow) {
    for rx in shadow.rx.iter_mut().flatten() {
        let queue = &rx.queue;
        let words = pair.each().map(|bench| super::queue::u64_at(bench, queue.status_addr()));
        rx.read_since_word += rx.read_in_round;
        if words[0] == words[1] {
            rx.word = Word::Exact;
            if words[0] != rx.last_word {
                (rx.last_word, rx.read_since_word) = (words[0], rx.read_in_round);
            }
            continue;
        }
        let now = match rx.frames {
            _ if rx.raced => Word::Raced,
            2.. => Word::Moment,
            1 if rx.rung => Word::Moment,
            _ => Word::Exact,
        };
        rx.word = now.max(rx.word);
        if rx.word == Word::Exact {
            continue;
        }
        let newest = super::queue::advance(queue.cidx, rx.unread.len() as u16, queue.cmpl_entries);
        for (bench, word) in pair.each().into_iter().zip(words) {
            let status = CompletionStatus::from_u64(word);
            // A word from before the last doorbell may still lie there: then it tells of entries read since.
            let behind = distance(status.pidx, newest, queue.cmpl_entries);
            let told_of = usize::from(behind) <= rx.unread.len() + rx.read_since_word;
            if status.pidx >= queue.cmpl_entries.saturating_sub(1) || !told_of {
                let (qid, pidx) = (queue.spec.qid.0, status.pidx);
                let (entries, unread) = (queue.cmpl_entries, rx.unread.len());
                bench.wrong(format!(
                    "queue {qid}: the status word says PIDX {pidx} of {entries}; the newest is {newest}, {unread} are unread"
                ));
                return;
            }
        }
    }
}

/// A queue that a doorbell was rung for, in a mode that leaves nothing unread without a word of it, has told of what is
/// unread: the last word is younger than the last doorbell.
fn announced(pair: &mut Pair, shadow: &Shadow) {
    let modes = [TriggerMode::Every, TriggerMode::UserTimer, TriggerMode::UserTimerCount];
    let due = |rx: &&Rx| {
        let cmpl = &rx.queue.spec.cmpl;
        let runs = rx.cmpl == Health::Runs && rx.monitored && rx.queue.spec.oddity == Oddity::None;
        runs && cmpl.en_stat_desc && modes.contains(&cmpl.trigger_mode) && !rx.unread.is_empty()
    };
    for rx in shadow.rx.iter().flatten().filter(due) {
        let queue = &rx.queue;
        for bench in pair.each() {
            let status = CompletionStatus::from_u64(super::queue::u64_at(bench, queue.status_addr()));
            if status.cidx != queue.cidx || status.pidx == queue.cidx {
                let (qid, unread) = (queue.spec.qid.0, rx.unread.len());
                bench.wrong(format!(
                    "queue {qid}: {unread} completions from slot {} on were not announced: {status:?}",
                    queue.cidx
                ));
                return;
            }
        }
    }
}

/// With the interval only, no queue that stands still has completed an interval since its last status word.
fn intervals(pair: &mut Pair, shadow: &Shadow) {
    let every = 4 << csr::glbl_dsc_cfg::WB_ACC_INTERVAL.get(pair.reference.read(F0, csr::GLBL_DSC_CFG));
    for tx in shadow.tx.iter().flatten().filter(|tx| tx.health == Health::Runs) {
        let (queue, sw) = (&tx.queue, &tx.queue.spec.sw);
        if sw.wbi_chk || !sw.wbi_intvl_en || !sw.wbk_en || queue.spec.oddity != Oddity::None {
            continue;
        }
        for bench in pair.each() {
            let status = H2cStatus::from_u64(super::queue::u64_at(bench, queue.status_addr()));
            let behind = distance(status.cidx, queue.pidx, queue.entries);
            if status.cidx >= queue.entries.saturating_sub(1).max(1) || u32::from(behind) >= every {
                let (qid, pidx) = (queue.spec.qid.0, queue.pidx);
                bench.wrong(format!("queue {qid}: {status:?} with PIDX {pidx}, and a word is due every {every}"));
                return;
            }
        }
    }
}

/// Slots from `from` to `to`.
fn distance(from: u16, to: u16, entries: u16) -> u16 {
    let usable = entries.saturating_sub(1).max(1);
    if to >= from { to - from } else { (u32::from(to) + u32::from(usable) - u32::from(from)) as u16 }
}

/// Bytes that may differ: where, and which bits.
fn masks(shadow: &Shadow) -> BTreeMap<u64, u8> {
    let mut masks = BTreeMap::new();
    let mut word = |addr: u64, mask: u64| {
        for (at, byte) in (addr..).zip(mask.to_le_bytes()) {
            *masks.entry(at).or_default() |= byte;
        }
    };
    for rx in shadow.rx.iter().flatten() {
        // PIDX and color; interrupt state where one may not have notified; CIDX too in the round in which doorbells raced.
        let mask = match rx.word {
            Word::Exact => continue,
            Word::Moment => 0x0001_0000_FFFF,
            Word::Raced if !rx.raced => 0x0007_0000_FFFF,
            Word::Raced => 0x0007_FFFF_FFFF,
        };
        word(rx.queue.status_addr(), mask);
    }
    for tx in shadow.tx.iter().flatten() {
        let sw = &tx.queue.spec.sw;
        if sw.wbi_intvl_en && !sw.wbi_chk {
            word(tx.queue.status_addr(), 0xFFFF_FFFF_0000);
        }
    }
    masks
}

/// Every page that either engine wrote, but for those where it is timing.
fn memory(pair: &mut Pair, shadow: &Shadow, torn: &BTreeSet<u64>) {
    let [mut pages, more] = pair.each().map(|bench| bench.memory.take_written());
    pages.extend(more);
    pages.retain(|page| !torn.contains(page));
    let masks = masks(shadow);
    for page in pages {
        let [expected, got] = [pair.reference.memory.page(page), pair.tested.memory.page(page)];
        let (Some(expected), Some(got)) = (expected, got) else { continue };
        if expected == got {
            continue;
        }
        let base = page * PAGE;
        let differs = |at: &usize| (expected[*at] ^ got[*at]) & !masks.get(&(base + *at as u64)).unwrap_or(&0) != 0;
        let Some(at) = (0..PAGE as usize).find(differs) else { continue };
        let word = |bytes: &[u8; PAGE as usize]| {
            let start = at / 8 * 8;
            bytes[start..start + 8].iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        let (expected, got) = (word(expected), word(got));
        let what = format!("host memory at {:#x}{}", base + (at / 8 * 8) as u64, place(shadow, base + at as u64));
        pair.differs(&what, &expected, &got);
        return;
    }
}

/// What lies at an address, for the report.
fn place(shadow: &Shadow, addr: u64) -> String {
    for rx in shadow.rx.iter().flatten() {
        let queue = &rx.queue;
        let bytes = queue.entry_bytes() * u64::from(queue.cmpl_entries);
        if (queue.cmpl_ring..queue.cmpl_ring + bytes).contains(&addr) {
            let slot = (addr - queue.cmpl_ring) / queue.entry_bytes();
            return format!(" (completion ring of queue {}, slot {slot} of {})", queue.spec.qid.0, queue.cmpl_entries);
        }
    }
    for tx in shadow.tx.iter().flatten() {
        let queue = &tx.queue;
        if (queue.ring..queue.ring + 16 * u64::from(queue.entries)).contains(&addr) {
            let slot = (addr - queue.ring) / 16;
            return format!(" (H2C ring of queue {}, slot {slot} of {})", queue.spec.qid.0, queue.entries);
        }
    }
    String::new()
}

/// Interrupts of the round, by function and vector.
fn interrupts(pair: &mut Pair, shadow: &Shadow, ledger: &Ledger) {
    let mut certainty: BTreeMap<(FuncId, u16), Certainty> = BTreeMap::new();
    let mut hold = |func, vector, level: Certainty| {
        let known = certainty.entry((func, vector)).or_default();
        *known = level.max(*known);
    };
    for rx in shadow.rx.iter().flatten().filter(|rx| rx.raced) {
        let cmpl = &rx.queue.spec.cmpl;
        // A count that is reached before the doorbell lands may not be reached after it.
        let counts = cmpl.trigger_mode == TriggerMode::UserCount;
        hold(rx.queue.spec.func, cmpl.vector, if counts { Certainty::Any } else { Certainty::Presence });
    }
    for tx in shadow.tx.iter().flatten() {
        hold(tx.queue.spec.func, tx.queue.spec.sw.vector, tx.certainty());
    }
    for (func, vector) in &ledger.torn_vectors {
        hold(*func, *vector, Certainty::Any);
    }
    let counts = pair.each().map(|bench| {
        let mut counts: BTreeMap<(FuncId, u16), u32> = BTreeMap::new();
        for interrupt in bench.take_interrupts() {
            *counts.entry((interrupt.func, interrupt.vector)).or_default() += 1;
        }
        counts
    });
    let places: BTreeSet<(FuncId, u16)> = counts.iter().flat_map(|counts| counts.keys().copied()).collect();
    for place in places {
        let [expected, got] = [0, 1].map(|side: usize| counts[side].get(&place).copied().unwrap_or(0));
        let same = match certainty.get(&place).copied().unwrap_or_default() {
            Certainty::Exact => expected == got,
            Certainty::Presence => (expected == 0) == (got == 0),
            Certainty::Any => true,
        };
        if !same {
            let (func, vector) = place;
            pair.differs(
                &format!("number of interrupts of {func}, vector {vector},"),
                &expected.to_string(),
                &got.to_string(),
            );
            return;
        }
    }
}

/// The error tree.
fn errors(pair: &mut Pair, ledger: &mut Ledger) {
    for (name, offset) in ERROR_REGISTERS {
        let late = if ledger.torn_c2h { csr::c2h_error_status::CMPT_INVALID_QUEUE.mask() } else { 0 };
        let ignored = match offset {
            csr::C2H_ERROR_STATUS => late,
            csr::GLBL_ERROR_STATUS if ledger.torn_c2h => csr::glbl_error_status::C2H_ST.mask(),
            csr::C2H_FIRST_ERROR_QID if ledger.torn_c2h => u32::MAX,
            _ => 0,
        };
        let value = |bench: &mut Bench| bench.read(F0, offset) & !ignored;
        pair.same(name, value, |value| format!("{value:#010x}"));
        if name.ends_with("STATUS") {
            note_errors(pair, ledger, name, offset);
        }
    }
    let sel = csr::glbl_dsc_error_log0::SEL.get(pair.reference.read(F0, csr::GLBL_DSC_ERROR_LOG0));
    let mask = if sel == 0 { csr::glbl_dsc_error_log1::ERROR_TYPE.mask() } else { u32::MAX };
    let value = |bench: &mut Bench| bench.read(F0, csr::GLBL_DSC_ERROR_LOG1) & mask;
    pair.same("GLBL_DSC_ERROR_LOG1", value, |value| format!("{value:#010x}"));
}

/// Count each error bit that both show and did not show before.
fn note_errors(pair: &mut Pair, ledger: &mut Ledger, name: &'static str, offset: u32) {
    let [one, other] = pair.each().map(|bench| bench.read(F0, offset));
    let now = one & other;
    let new = now & !ledger.last_errors.insert(name, now).unwrap_or(0);
    for bit in (0..32).filter(|bit| new >> bit & 1 == 1) {
        *ledger.errors_seen.entry((name, bit)).or_default() += 1;
    }
}

/// What the counters rose.
fn counters(pair: &mut Pair, shadow: &Shadow, ledger: &mut Ledger) {
    let now = pair.each().map(|bench| COUNTERS.map(|(_, offset)| bench.read(F0, offset)));
    let waits = !shadow.stream.is_empty() || ledger.torn_c2h;
    let raced = shadow.rx.iter().flatten().any(|rx| rx.raced);
    for (at, (name, offset)) in COUNTERS.into_iter().enumerate() {
        let rose = [0, 1].map(|side: usize| now[side][at].wrapping_sub(ledger.counters[side][at]));
        let skipped = match offset {
            csr::C2H_STATUS_OUT => raced || ledger.torn_c2h,
            _ => waits,
        };
        if !skipped {
            if rose[0] != rose[1] {
                pair.differs(&format!("what {name} rose in the round"), &rose[0].to_string(), &rose[1].to_string());
            }
            (0..2).for_each(|side| ledger.counters[side][at] = now[side][at]);
        } else if offset == csr::C2H_STATUS_OUT || ledger.torn_c2h {
            (0..2).for_each(|side| ledger.counters[side][at] = now[side][at]);
        }
    }
}

/// Contexts of a receive queue.
pub fn rx_contexts(pair: &mut Pair, rx: &Rx) {
    let qid = rx.queue.spec.qid.0;
    let sw = regs::context::SwDescContext::from_words(&[u32::MAX; COMMAND_WORDS]);
    context(pair, S::SwDescC2h, qid, sw.to_words());
    let used_up = rx.posted.is_empty() && rx.desc == Health::Runs;
    let hw = HwDescContext { cidx: if used_up { u16::MAX } else { 0 }, idl_stp_b: true, ..HwDescContext::default() };
    context(pair, S::HwDescC2h, qid, widen(hw.to_words()));
    context(pair, S::CreditC2h, qid, [u32::MAX; COMMAND_WORDS]);
    let mut prefetch = PrefetchContext::from_words(&[u32::MAX; 2]);
    (prefetch.num_pfch, prefetch.pfch_need, prefetch.in_prefetch, prefetch.sw_credit) = (0, 0, false, 0);
    context(pair, S::Prefetch, qid, widen(prefetch.to_words()));
    let mut cmpl = CompletionContext::from_words(&[u32::MAX; 6]);
    if rx.raced || rx.word == Word::Raced {
        cmpl.int_st = 0;
    }
    context(pair, S::Completion, qid, widen(cmpl.to_words()));
}

/// Contexts of a transmit queue.
pub fn tx_contexts(pair: &mut Pair, tx: &Tx) {
    let qid = tx.queue.spec.qid.0;
    let mut sw = regs::context::SwDescContext::from_words(&[u32::MAX; COMMAND_WORDS]);
    let interval_only = tx.queue.spec.sw.wbi_intvl_en && !tx.queue.spec.sw.wbi_chk;
    sw.irq_arm = tx.certainty() == Certainty::Exact && !interval_only;
    context(pair, S::SwDescH2c, qid, sw.to_words());
    let cidx = if tx.health == Health::Runs { u16::MAX } else { 0 };
    let hw = HwDescContext { cidx, idl_stp_b: true, ..HwDescContext::default() };
    context(pair, S::HwDescH2c, qid, widen(hw.to_words()));
    context(pair, S::CreditH2c, qid, [u32::MAX; COMMAND_WORDS]);
}

/// Words of a context as the window has them.
pub fn widen<const N: usize>(words: [u32; N]) -> [u32; COMMAND_WORDS] {
    std::array::from_fn(|at| words.get(at).copied().unwrap_or(0))
}

/// A context must be the same where `mask` is 1.
pub fn context(pair: &mut Pair, selector: S, qid: u16, mask: [u32; COMMAND_WORDS]) {
    let read = |bench: &mut Bench| {
        let words = bench.read_context(selector, qid);
        std::array::from_fn::<u32, COMMAND_WORDS, _>(|at| words[at] & mask[at])
    };
    let show = |words: &[u32; COMMAND_WORDS]| words.map(|word| format!("{word:08x}")).join(" ");
    pair.same(&format!("context {selector:?} of queue {qid}"), read, show);
}
