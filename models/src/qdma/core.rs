//! What all engines share: registers, errors, counters, link, present time, alarms and interrupts.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use regs::{FuncId, Qid};

use super::config::QdmaConfig;
use super::counters::Counters;
use super::csr::Csr;
use super::errors::{ErrorTree, Fault, Place};
use super::link::{Link, ReadKind};
use crate::host_memory::{DmaFault, HostMemory};
use crate::time::Time;

/// Something of one queue that is due at a time. The queue voids it by moving on to another number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Alarm {
    pub(super) at: Time,
    /// Ties go in the order in which they were set.
    sequence: u64,
    pub(super) kind: AlarmKind,
    pub(super) qid: Qid,
    pub(super) number: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum AlarmKind {
    /// A completion queue's moderation timer.
    Timer,
    /// A completion queue's notification, decided by a doorbell or an error.
    Notice,
}

/// DMA that an order knob, or the DMA of a stopped queue, puts off.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Deferred {
    at: Time,
    sequence: u64,
    func: FuncId,
    addr: u64,
    access: DeferredAccess,
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
enum DeferredAccess {
    Write(Vec<u8>),
    /// A read whose data nobody wants any more.
    Read(usize),
}

/// Why a read brought no data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReadFault {
    /// An unsupported request.
    Unsupported,
    /// Its data came marked as bad.
    Poisoned,
}

pub(super) struct Core {
    pub(super) config: QdmaConfig,
    pub(super) csr: Csr,
    pub(super) errors: ErrorTree,
    pub(super) link: Link,
    pub(super) counters: Counters,
    /// The counters when the card was last reset: MMIO counts from there.
    pub(super) counters_at_reset: Counters,
    /// The present of whatever runs: the time of a caller's access, or within a step that of the work being done.
    pub(super) now: Time,
    /// The latest time that anybody mentioned.
    latest: Time,
    /// Work before this time is done.
    stepped: Time,
    /// A read was issued, an alarm set or DMA deferred: other work than C2H frames may be due earlier than it was.
    pub(super) disturbed: bool,
    pub(super) interrupts: VecDeque<(FuncId, u16, Time)>,
    pub(super) host_profile_written: bool,
    alarms: BinaryHeap<Reverse<Alarm>>,
    deferred: BinaryHeap<Reverse<Deferred>>,
    sequence: u64,
    spare: Vec<Vec<u8>>,
}

/// Buffers kept for reuse; more than the stream buffers hold frames is of no use.
const SPARE_MAX: usize = 1024;

impl Core {
    pub(super) fn new(config: QdmaConfig) -> Core {
        Core {
            csr: Csr::new(&config),
            errors: ErrorTree::new(config.ip, config.error_log),
            link: Link::new(&config),
            counters: Counters::default(),
            counters_at_reset: Counters::default(),
            now: Time::ZERO,
            latest: Time::ZERO,
            stepped: Time::ZERO,
            disturbed: false,
            interrupts: VecDeque::new(),
            host_profile_written: false,
            alarms: BinaryHeap::new(),
            deferred: BinaryHeap::new(),
            sequence: 0,
            spare: Vec::new(),
            config,
        }
    }

    /// Registers, errors, link and all that is due; time and counters go on.
    pub(super) fn reset(&mut self) {
        self.csr.reset();
        self.errors.reset();
        self.link.reset();
        self.counters_at_reset = self.counters;
        self.interrupts.clear();
        self.host_profile_written = false;
        self.alarms.clear();
        self.deferred.clear();
    }

    /// A caller acts at `at`. Time does not go back, whatever it says.
    pub(super) fn access_at(&mut self, at: Time) {
        self.latest = self.latest.max(at);
        self.now = self.latest;
    }

    /// Work that was due at `at` runs. Accesses may have been recorded with later times: they do not delay it.
    pub(super) fn work_at(&mut self, at: Time) {
        self.stepped = self.stepped.max(at);
        self.now = self.stepped;
    }

    // ---- Alarms and deferred DMA

    pub(super) fn set_alarm(&mut self, at: Time, kind: AlarmKind, qid: Qid, number: u32) {
        self.sequence += 1;
        self.disturbed = true;
        self.alarms.push(Reverse(Alarm { at, sequence: self.sequence, kind, qid, number }));
    }

    pub(super) fn next_alarm(&self) -> Time {
        self.alarms.peek().map_or(Time::NEVER, |Reverse(alarm)| alarm.at)
    }

    pub(super) fn take_alarm(&mut self) -> Option<Alarm> {
        self.alarms.pop().map(|Reverse(alarm)| alarm)
    }

    pub(super) fn next_deferred(&self) -> Time {
        self.deferred.peek().map_or(Time::NEVER, |Reverse(deferred)| deferred.at)
    }

    pub(super) fn defer_write(&mut self, at: Time, func: FuncId, addr: u64, data: &[u8]) {
        self.defer(at, func, addr, DeferredAccess::Write(data.to_vec()));
    }

    pub(super) fn defer_read(&mut self, at: Time, func: FuncId, addr: u64, len_bytes: usize) {
        self.defer(at, func, addr, DeferredAccess::Read(len_bytes));
    }

    fn defer(&mut self, at: Time, func: FuncId, addr: u64, access: DeferredAccess) {
        self.sequence += 1;
        self.disturbed = true;
        self.deferred.push(Reverse(Deferred { at, sequence: self.sequence, func, addr, access }));
    }

    /// Perform the deferred access that is due first.
    pub(super) fn run_deferred(&mut self, memory: &mut dyn HostMemory) {
        let Some(Reverse(deferred)) = self.deferred.pop() else { return };
        match deferred.access {
            DeferredAccess::Write(data) => self.write_memory(memory, deferred.func, deferred.addr, &data),
            DeferredAccess::Read(len_bytes) => {
                let mut buf = self.spare_buffer(len_bytes);
                // Whoever wanted the data is gone, and so is whoever would report a fault; memory itself has seen it.
                let _ = self.read_memory(memory, deferred.func, deferred.addr, &mut buf);
                self.give_back(buf);
            }
        }
    }

    /// Issue a read on the link, now.
    pub(super) fn issue_read(&mut self, len_bytes: usize, qid: Qid, generation: u32, kind: ReadKind) {
        self.disturbed = true;
        self.link.issue(self.now, len_bytes, qid, generation, kind);
    }

    // ---- Host memory

    fn dma_allowed(&self) -> bool {
        !self.config.require_host_profile || self.host_profile_written
    }

    /// Read host memory.
    pub(super) fn read_memory(
        &mut self,
        memory: &mut dyn HostMemory,
        func: FuncId,
        addr: u64,
        buf: &mut [u8],
    ) -> Result<(), ReadFault> {
        let fault = match self.dma_allowed().then(|| memory.read(func, addr, buf)) {
            Some(Ok(())) => return Ok(()),
            Some(Err(DmaFault::Poisoned { .. })) => ReadFault::Poisoned,
            Some(Err(DmaFault::Unmapped { .. } | DmaFault::Forbidden { .. })) | None => ReadFault::Unsupported,
        };
        self.counters.reads_refused += 1;
        Err(fault)
    }

    /// Write host memory. Posted: a refused write is lost and only counted, as on PCIe.
    pub(super) fn write_memory(&mut self, memory: &mut dyn HostMemory, func: FuncId, addr: u64, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        if !self.dma_allowed() || memory.write(func, addr, data).is_err() {
            self.counters.writes_refused += 1;
        }
    }

    // ---- Errors and interrupts

    /// A queue met an error.
    pub(super) fn fault(&mut self, fault: Fault, place: Place) {
        let interrupt = self.errors.raise(fault, place);
        self.emit_error(interrupt);
    }

    /// A register access met an error.
    pub(super) fn fault_access(&mut self, fault: Fault, func: FuncId, offset: u32) {
        let interrupt = self.errors.raise_access(fault, func, offset);
        self.emit_error(interrupt);
    }

    /// The error interrupt, if there is one.
    pub(super) fn emit_error(&mut self, interrupt: Option<(FuncId, u16)>) {
        // A vector outside the table can't be reported as MSI failure: that error would come back here.
        if let Some((func, vector)) = interrupt
            && self.has_vector(func, vector)
        {
            self.emit(func, vector);
        }
    }

    /// A queue's interrupt.
    pub(super) fn interrupt(&mut self, func: FuncId, vector: u16, qid: Qid) {
        if self.has_vector(func, vector) {
            self.emit(func, vector);
        } else {
            self.fault(Fault::MsiFail, Place { qid, ..Place::default() });
        }
    }

    fn has_vector(&self, func: FuncId, vector: u16) -> bool {
        func.0 < self.config.num_functions && vector < self.config.msix_vectors[usize::from(func.0)]
    }

    fn emit(&mut self, func: FuncId, vector: u16) {
        self.counters.interrupts += 1;
        self.interrupts.push_back((func, vector, self.now));
    }

    // ---- Buffers

    /// A buffer of this length with arbitrary contents.
    pub(super) fn spare_buffer(&mut self, len_bytes: usize) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(len_bytes, 0);
        buffer
    }

    /// An empty buffer.
    pub(super) fn empty_buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    pub(super) fn give_back(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(buffer);
        }
    }
}
