//! One read channel: reads under way, and the answer that is going out.

use std::collections::VecDeque;

use models::host_memory::{DmaFault, HostMemory};
use models::time::Time;
use regs::FuncId;
use rtl_bridge::stall::Stall;
use traces::synth::Rng;

use super::{BEAT_BYTES, CYCLE_PS, HostPortConfig, PAGE_BYTES, Rule, link};

/// A read. Source: `read_req_t` in rtl/qdma/qdma_pkg.sv.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadRequest {
    /// Who reads.
    pub func: FuncId,
    /// DMA address of the first byte.
    pub addr: u64,
    /// How many bytes, 1…4096, all in one page.
    pub len_bytes: u16,
    /// Comes back with the answer.
    pub tag: u8,
}

/// Why an answer has no data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadFault {
    /// Nobody answers at that address for that function.
    Unsupported,
    /// The data were damaged on their way, and say so.
    Poisoned,
}

/// A beat of an answer. Source: `read_rsp_t` in rtl/qdma/qdma_pkg.sv.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer<'a> {
    /// Of the request.
    pub tag: u8,
    /// At most 64 bytes, fewer only in the last beat; none where there are no data.
    pub data: &'a [u8],
    /// The answer's last beat.
    pub last: bool,
    /// Of the whole answer.
    pub fault: Option<ReadFault>,
}

/// A read that was taken and not answered.
#[derive(Clone, Copy)]
struct Pending {
    due: Time,
    request: ReadRequest,
}

/// The answer that is going out.
#[derive(Clone, Copy)]
struct Outgoing {
    addr: u64,
    tag: u8,
    fault: Option<ReadFault>,
    /// Bytes of all its beats, and of those that are out.
    len: usize,
    sent: usize,
}

/// The channel.
pub(super) struct Reads {
    latency_ps: u64,
    spread_cycles: u32,
    reorder: bool,
    rng: Rng,
    stall: Stall,
    /// By due time, of those due at one time by age.
    pending: VecDeque<Pending>,
    outgoing: Option<Outgoing>,
    /// The answer's data.
    page: Box<[u8; PAGE_BYTES]>,
    /// Bit n of all: tag n is in use.
    tags: [u64; 4],
}

impl Reads {
    pub(super) fn new(config: &HostPortConfig, name: &str, stall: Stall) -> Reads {
        let latency_cycles = config.latency_cycles.max(1);
        Reads {
            latency_ps: u64::from(latency_cycles) * CYCLE_PS,
            spread_cycles: config.spread_cycles.min(latency_cycles - 1),
            reorder: config.reorder,
            rng: Rng::named(config.seed, name),
            stall,
            // As many as there are tags: no read allocates.
            pending: VecDeque::with_capacity(256),
            outgoing: None,
            page: Box::new([0; PAGE_BYTES]),
            tags: [0; 4],
        }
    }

    pub(super) fn reset(&mut self) {
        self.pending.clear();
        self.outgoing = None;
        self.tags = [0; 4];
    }

    pub(super) fn is_idle(&self) -> bool {
        self.outgoing.is_none() && self.pending.is_empty()
    }

    /// When the next beat may go out.
    #[inline]
    pub(super) fn next_due(&self) -> Time {
        match self.outgoing {
            Some(_) => Time::ZERO,
            None => self.pending.front().map_or(Time::NEVER, |read| read.due),
        }
    }

    /// The stall pattern does not let the read on offer in.
    #[inline]
    pub(super) fn holds(&mut self) -> bool {
        self.stall.holds(false)
    }

    pub(super) fn take(&mut self, request: ReadRequest, now: Time) -> Result<(), Rule> {
        let ReadRequest { addr, len_bytes, tag, .. } = request;
        let len = usize::from(len_bytes);
        if !(1..=PAGE_BYTES).contains(&len) {
            return Err(Rule::Length { len_bytes });
        }
        if addr as usize % PAGE_BYTES + len > PAGE_BYTES {
            return Err(Rule::ReadCrossesPage { addr, len_bytes });
        }
        let (word, bit) = (&mut self.tags[usize::from(tag / 64)], 1 << (tag % 64));
        if *word & bit != 0 {
            return Err(Rule::TagInUse { tag });
        }
        *word |= bit;
        let due = now.saturating_add(self.latency_ps());
        self.plan(Pending { due, request });
        Ok(())
    }

    /// Of the next read: the latency, give or take the spread.
    fn latency_ps(&mut self) -> u64 {
        if self.spread_cycles == 0 {
            return self.latency_ps;
        }
        let spread = u64::from(self.spread_cycles);
        // `spread` is less than the latency.
        self.latency_ps + self.rng.between(0, 2 * spread) * CYCLE_PS - spread * CYCLE_PS
    }

    /// Put it where its time is: few steps from the end, as the spread is small against the latency.
    fn plan(&mut self, mut read: Pending) {
        if !self.reorder {
            read.due = read.due.max(self.pending.back().map_or(Time::ZERO, |last| last.due));
        }
        let later = self.pending.iter().rev().take_while(|other| other.due > read.due).count();
        self.pending.insert(self.pending.len() - later, read);
    }

    /// The next beat, which is due, and what it sends over the link.
    ///
    /// Not for a channel without one: then it is an empty answer to nobody.
    pub(super) fn beat(&mut self, now: Time, memory: &mut dyn HostMemory, failed: &mut u64) -> (Answer<'_>, usize) {
        debug_assert!(self.next_due() <= now, "no beat is due");
        let mut out = match self.outgoing.take() {
            Some(out) => out,
            None => self.begin(memory, failed),
        };
        let from = out.sent;
        out.sent = (from + BEAT_BYTES).min(out.len);
        let last = out.sent >= out.len;
        if last {
            self.tags[usize::from(out.tag / 64)] &= !(1 << (out.tag % 64));
        } else {
            self.outgoing = Some(out);
        }
        let data = &self.page[from..out.sent];
        let tlp_bytes = link::data_bytes(out.addr.wrapping_add(from as u64), data.len(), from > 0);
        (Answer { tag: out.tag, data, last, fault: out.fault }, tlp_bytes)
    }

    /// The next answer, its data read.
    fn begin(&mut self, memory: &mut dyn HostMemory, failed: &mut u64) -> Outgoing {
        let Some(Pending { request, .. }) = self.pending.pop_front() else {
            return Outgoing { addr: 0, tag: 0, fault: Some(ReadFault::Unsupported), len: 0, sent: 0 };
        };
        let ReadRequest { func, addr, len_bytes, tag } = request;
        let mut len = usize::from(len_bytes);
        let fault = match memory.read(func, addr, &mut self.page[..len]) {
            Ok(()) => None,
            Err(DmaFault::Poisoned { .. }) => {
                // What nobody may use.
                self.page[..len].fill(0xa5);
                Some(ReadFault::Poisoned)
            }
            Err(_) => {
                len = 0;
                Some(ReadFault::Unsupported)
            }
        };
        *failed += u64::from(fault.is_some());
        Outgoing { addr, tag, fault, len, sent: 0 }
    }
}
