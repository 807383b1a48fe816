//! The PCIe link: when a posted write lands, when a read's data are there.
//!
//! Two directions, each busy for as long as its bytes take. Writes and reads of one direction finish in the order in
//! which they were issued, so that a plain queue holds what is on its way. Completion entries share transactions with
//! their neighbours, eight to one.

use std::collections::VecDeque;

use regs::descriptor::H2cDescriptor;
use regs::{FuncId, Qid};

use super::config::QdmaConfig;
use crate::time::Time;

/// A read on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    /// When its data are there. Host memory is read at this time.
    pub(super) done: Time,
    /// Whose.
    pub(super) qid: Qid,
    /// The queue's generation when it was issued: a stopped queue's reads are void.
    pub(super) generation: u32,
    /// What for.
    pub(super) kind: ReadKind,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ReadKind {
    /// So many C2H descriptors from the queue's fetch index on.
    C2hDescriptors(u16),
    /// So many H2C descriptors from the queue's fetch index on.
    H2cDescriptors(u16),
    /// The data of an H2C frame.
    H2cData(FuncId, H2cDescriptor),
}

pub(super) struct Link {
    read_latency_ps: u64,
    write_latency_ps: u64,
    ps_per_byte: u64,
    overhead_bytes: u64,
    max_payload_bytes: u64,
    /// When the card-to-host direction is free.
    up_free: Time,
    /// When the host-to-card direction is free.
    down_free: Time,
    reads: VecDeque<Read>,
}

impl Link {
    pub(super) fn new(config: &QdmaConfig) -> Link {
        Link {
            read_latency_ps: config.read_latency_ps,
            write_latency_ps: config.write_latency_ps,
            ps_per_byte: config.link_ps_per_byte,
            overhead_bytes: u64::from(config.tlp_overhead_bytes),
            max_payload_bytes: u64::from(config.max_payload_bytes),
            up_free: Time::ZERO,
            down_free: Time::ZERO,
            reads: VecDeque::with_capacity(64),
        }
    }

    /// Forget what was on its way.
    pub(super) fn reset(&mut self) {
        self.up_free = Time::ZERO;
        self.down_free = Time::ZERO;
        self.reads.clear();
    }

    /// When the card-to-host direction is free.
    pub(super) fn up_free(&self) -> Time {
        self.up_free
    }

    /// Post `len_bytes` of data; the time at which the last of them lands.
    pub(super) fn post(&mut self, now: Time, len_bytes: usize) -> Time {
        let len = len_bytes as u64;
        let tlps = if len <= self.max_payload_bytes { 1 } else { len.div_ceil(self.max_payload_bytes) };
        self.occupy_up(now, len + tlps * self.overhead_bytes);
        self.up_free.saturating_add(self.write_latency_ps)
    }

    /// Account for one completion entry, an eighth of a transaction.
    pub(super) fn post_entry(&mut self, now: Time, entry_bytes: usize) {
        self.occupy_up(now, entry_bytes as u64 + self.overhead_bytes / 8);
    }

    fn occupy_up(&mut self, now: Time, bytes: u64) {
        self.up_free = self.up_free.max(now).saturating_add(bytes.saturating_mul(self.ps_per_byte));
    }

    /// When a word posted now, in the order of earlier writes, lands.
    pub(super) fn landing(&self, now: Time) -> Time {
        now.saturating_add(self.write_latency_ps)
    }

    /// Issue a read of `len_bytes`.
    pub(super) fn issue(&mut self, now: Time, len_bytes: usize, qid: Qid, generation: u32, kind: ReadKind) {
        let bytes = (len_bytes as u64).saturating_add(self.overhead_bytes);
        let first = now.saturating_add(self.read_latency_ps).max(self.down_free);
        let done = first.saturating_add(bytes.saturating_mul(self.ps_per_byte));
        self.down_free = done;
        self.reads.push_back(Read { done, qid, generation, kind });
    }

    /// When another read would find the host-to-card direction without backlog: issued earlier it would only wait.
    pub(super) fn read_slot(&self, now: Time) -> Time {
        now.max(Time(self.down_free.0.saturating_sub(self.read_latency_ps)))
    }

    /// When the next read is done.
    pub(super) fn next_done(&self) -> Time {
        self.reads.front().map_or(Time::NEVER, |read| read.done)
    }

    /// The read that is done next.
    pub(super) fn take_done(&mut self) -> Option<Read> {
        self.reads.pop_front()
    }
}
