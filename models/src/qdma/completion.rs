//! Completion rings: entries, status words, and when they and the interrupt may be sent.
//!
//! ```text
//!   context written      CIDX doorbell,           condition          status and
//!         │              nothing unread             holds            interrupt sent
//!         ▼                    ▼                      ▼                    ▼
//!     Unarmed ──doorbell──► Monitoring ──────────► Notifying ─────────► Outstanding ─┐
//!                              ▲                      (a doorbell's notice needs     │
//!                              └──── CIDX doorbell ─── the time of a posted write) ──┘
//! ```
//!
//! One notification at most is outstanding; the next CIDX doorbell services it. Conditions that come meanwhile are not
//! lost: the doorbell looks at them again.
//!
//! Source: qdma.md 3.5, 5.4 to 5.6, 7.1, 7.2, 8.

use regs::context::{CompletionContext, CompletionQueueError, TriggerMode};
use regs::descriptor::{Completion, CompletionStatus};
use regs::doorbell::CompletionCidx;
use regs::{FuncId, Qid};

use super::config::{Leftover, NotifyPolicy, TimerStart};
use super::core::{Alarm, AlarmKind, Core};
use super::errors::{Fault, Place};
use super::ring::Ring;
use crate::host_memory::HostMemory;
use crate::stream::C2hCompletion;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// Context written, no CIDX doorbell yet.
    #[default]
    Unarmed,
    /// A condition that holds notifies.
    Monitoring,
    /// A notification is decided and on its way.
    Notifying,
    /// A notification was sent and not yet serviced.
    Outstanding,
}

/// What became of a completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Delivery {
    /// The entry is in host memory, or on its way.
    Written,
    /// The queue is not valid.
    InvalidQueue,
    /// The ring is full; the queue is invalid now.
    RingFull,
}

/// Neighbouring entries on their way to host memory in one write.
///
/// One cache line for the bytes: entries that straddled two were a fifth of the whole cost of a small frame.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct EntryBuffer {
    bytes: [u8; 64],
    addr: u64,
    len: u8,
}

#[derive(Clone)]
struct CompletionQueue {
    ctx: CompletionContext,
    state: State,
    /// The last CIDX doorbell armed the interrupt.
    armed: bool,
    /// Number of the timer that runs, or of the notice on its way: alarms with others are void.
    alarm: u32,
    entries: EntryBuffer,
}

impl CompletionQueue {
    fn unread(&self, ring: Ring) -> u16 {
        ring.distance(self.ctx.cidx, self.ctx.pidx)
    }

    fn entry_bytes(&self) -> usize {
        self.ctx.entry_size.bytes() as usize
    }

    fn addr(&self, slot: u16) -> u64 {
        self.ctx.ring_base().wrapping_add(self.entry_bytes() as u64 * u64::from(slot))
    }

    fn func(&self) -> FuncId {
        super::dma_func(u32::from(self.ctx.func_id))
    }

    /// Void every alarm that is set.
    fn void_alarms(&mut self) {
        self.alarm = self.alarm.wrapping_add(1);
        self.ctx.timer_running = false;
    }

    fn has_timer(&self) -> bool {
        matches!(self.ctx.trigger_mode, TriggerMode::UserTimer | TriggerMode::UserTimerCount)
    }
}

pub(super) struct CompletionEngine {
    queues: Vec<CompletionQueue>,
    /// Queues with buffered entries.
    dirty: Vec<Qid>,
}

impl CompletionEngine {
    pub(super) fn new(num_queues: u16) -> CompletionEngine {
        let queue = CompletionQueue {
            ctx: CompletionContext::default(),
            state: State::default(),
            armed: false,
            alarm: 0,
            entries: EntryBuffer { bytes: [0; 64], addr: 0, len: 0 },
        };
        CompletionEngine { queues: vec![queue; usize::from(num_queues)], dirty: Vec::new() }
    }

    pub(super) fn reset(&mut self) {
        *self = CompletionEngine::new(self.queues.len() as u16);
    }

    // ---- Context memory

    pub(super) fn context(&self, qid: Qid) -> &CompletionContext {
        &self.queues[usize::from(qid.0)].ctx
    }

    /// The context was written or cleared: a new life, unarmed.
    pub(super) fn set_context(&mut self, qid: Qid, ctx: CompletionContext) {
        let queue = &mut self.queues[usize::from(qid.0)];
        queue.ctx = ctx;
        queue.void_alarms();
        queue.state = State::Unarmed;
        queue.armed = false;
    }

    pub(super) fn invalidate(&mut self, qid: Qid) {
        let queue = &mut self.queues[usize::from(qid.0)];
        queue.void_alarms();
        queue.ctx.valid = false;
        queue.state = State::Unarmed;
        queue.armed = false;
    }

    /// The timer context is invalidated: a timer that runs ends without effect. The next entry starts it anew.
    pub(super) fn stop_timer(&mut self, qid: Qid) {
        let queue = &mut self.queues[usize::from(qid.0)];
        // Only a timer: a notice that is on its way has an alarm too.
        if queue.ctx.timer_running {
            queue.void_alarms();
        }
    }

    // ---- Entries

    /// Write the completion of a frame. With `descriptor_error` the entry carries the error bit, and the queue fails.
    pub(super) fn deliver(
        &mut self,
        core: &mut Core,
        memory: &mut dyn HostMemory,
        completion: C2hCompletion,
        descriptor_error: bool,
    ) -> Delivery {
        let qid = completion.qid;
        let Some(queue) = self.queues.get_mut(usize::from(qid.0)).filter(|queue| queue.ctx.valid) else {
            core.fault(Fault::CompletionInvalidQueue, Place { qid, ..Place::default() });
            return Delivery::InvalidQueue;
        };
        let Some(ring) = Ring::new(core.csr.ring_entries(queue.ctx.ring_size_index))
            .filter(|ring| ring.contains(queue.ctx.pidx))
            .filter(|ring| queue.ctx.ovf_chk_dis || queue.unread(*ring) < ring.capacity())
        else {
            core.fault(Fault::CompletionRingFull, Place { qid, cidx: queue.ctx.cidx, ..Place::default() });
            self.fail(core, qid, CompletionQueueError::Overflow);
            return Delivery::RingFull;
        };
        write_entry(core, memory, queue, &mut self.dirty, completion, descriptor_error, ring);
        if descriptor_error {
            self.fail(core, qid, CompletionQueueError::Descriptor);
        } else if queue.state == State::Monitoring {
            self.entry_written(core, memory, qid, ring);
        }
        Delivery::Written
    }

    /// The completion of a lost frame: no entry, but that its queue is not valid is an error all the same.
    pub(super) fn lose(&self, core: &mut Core, qid: Qid) {
        if !self.queues.get(usize::from(qid.0)).is_some_and(|queue| queue.ctx.valid) {
            core.fault(Fault::CompletionInvalidQueue, Place { qid, ..Place::default() });
        }
    }

    /// Write all buffered entries to host memory.
    pub(super) fn flush(&mut self, core: &mut Core, memory: &mut dyn HostMemory) {
        while let Some(qid) = self.dirty.pop() {
            flush_queue(core, memory, &mut self.queues[usize::from(qid.0)]);
        }
    }

    // ---- Moderation

    /// A new entry of a queue that monitors may meet the trigger mode's condition, or start the timer.
    fn entry_written(&mut self, core: &mut Core, memory: &mut dyn HostMemory, qid: Qid, ring: Ring) {
        let queue = &mut self.queues[usize::from(qid.0)];
        if holds(core, queue, ring) {
            self.notify(core, memory, qid);
        } else if queue.has_timer() && (!queue.ctx.timer_running || core.config.timer_start == TimerStart::EveryEntry) {
            start_timer(core, queue, qid);
        }
    }

    /// A CIDX doorbell, already known to come from the queue's function.
    pub(super) fn doorbell(&mut self, core: &mut Core, qid: Qid, value: CompletionCidx) {
        let queue = &mut self.queues[usize::from(qid.0)];
        if !queue.ctx.valid {
            core.counters.doorbells_ignored += 1;
            return;
        }
        core.counters.doorbells += 1;
        queue.void_alarms();
        queue.state = State::Monitoring;
        queue.armed = value.irq_arm;
        let ring = Ring::new(core.csr.ring_entries(queue.ctx.ring_size_index));
        let Some(ring) = ring.filter(|ring| {
            ring.contains(value.cidx) && ring.distance(queue.ctx.cidx, value.cidx) <= queue.unread(*ring)
        }) else {
            core.fault(Fault::BadCidx, Place { qid, cidx: queue.ctx.cidx, ..Place::default() });
            self.fail(core, qid, CompletionQueueError::BadCidx);
            return;
        };
        queue.ctx.cidx = value.cidx;
        if queue.ctx.full_upd {
            queue.ctx.counter_index = value.counter_index;
            queue.ctx.timer_index = value.timer_index;
            queue.ctx.trigger_mode = value.trigger_mode;
            queue.ctx.en_stat_desc = value.en_stat_desc;
            queue.ctx.en_int = value.irq_arm;
        }
        self.serviced(core, qid, ring);
    }

    /// The outstanding notification was serviced: notify again at once, or go on monitoring.
    fn serviced(&mut self, core: &mut Core, qid: Qid, ring: Ring) {
        let queue = &mut self.queues[usize::from(qid.0)];
        if queue.unread(ring) == 0 {
            return;
        }
        let at_once = queue.has_timer() && core.config.leftover == Leftover::NotifyAtOnce;
        if at_once || holds(core, queue, ring) {
            self.notify_later(core, qid);
        } else if queue.has_timer() {
            start_timer(core, queue, qid);
        }
    }

    /// A timer or a notice is due.
    pub(super) fn alarm(&mut self, core: &mut Core, memory: &mut dyn HostMemory, alarm: Alarm) {
        let queue = &mut self.queues[usize::from(alarm.qid.0)];
        if queue.alarm != alarm.number {
            return;
        }
        if alarm.kind == AlarmKind::Timer {
            queue.ctx.timer_running = false;
            let unread =
                Ring::new(core.csr.ring_entries(queue.ctx.ring_size_index)).map_or(0, |ring| queue.unread(ring));
            if unread == 0 || queue.state != State::Monitoring {
                return;
            }
        }
        self.notify(core, memory, alarm.qid);
    }

    /// Notify when a posted write of now would land.
    fn notify_later(&mut self, core: &mut Core, qid: Qid) {
        let queue = &mut self.queues[usize::from(qid.0)];
        queue.void_alarms();
        queue.state = State::Notifying;
        let at = core.link.landing(core.now);
        core.set_alarm(at, AlarmKind::Notice, qid, queue.alarm);
    }

    /// Write the status word, after the entries that it covers, and send the interrupt.
    fn notify(&mut self, core: &mut Core, memory: &mut dyn HostMemory, qid: Qid) {
        let queue = &mut self.queues[usize::from(qid.0)];
        queue.void_alarms();
        flush_queue(core, memory, queue);
        let fires = queue.ctx.en_int && queue.armed && !queue.ctx.int_aggr && queue.state != State::Outstanding;
        queue.ctx.int_st = u8::from(!fires && queue.armed);
        write_status(core, memory, queue);
        queue.state = match core.config.notify {
            NotifyPolicy::Strict => State::Outstanding,
            NotifyPolicy::FreeRunning => State::Monitoring,
        };
        queue.armed = false;
        if fires {
            core.interrupt(queue.func(), queue.ctx.vector, qid);
        }
    }

    /// The queue met an error: it is invalid until it is cleared and written again. The status word says so, if one may
    /// be sent; of an overflow always. Source: qdma.md section 8, "Handling Exception Events".
    fn fail(&mut self, core: &mut Core, qid: Qid, error: CompletionQueueError) {
        let queue = &mut self.queues[usize::from(qid.0)];
        queue.ctx.valid = false;
        queue.ctx.err = error;
        let outstanding = queue.state == State::Outstanding;
        queue.void_alarms();
        if !outstanding || error == CompletionQueueError::Overflow {
            if !outstanding {
                queue.state = State::Notifying;
            }
            let at = core.link.landing(core.now);
            core.set_alarm(at, AlarmKind::Notice, qid, queue.alarm);
        }
    }
}

/// Put the entry into the queue's buffer, which makes the queue dirty, and advance PIDX and color.
#[inline]
fn write_entry(
    core: &mut Core,
    memory: &mut dyn HostMemory,
    queue: &mut CompletionQueue,
    dirty: &mut Vec<Qid>,
    completion: C2hCompletion,
    error: bool,
    ring: Ring,
) {
    let qid = completion.qid;
    let (addr, len) = (queue.addr(queue.ctx.pidx), queue.entry_bytes());
    let held = usize::from(queue.entries.len);
    if held != 0 && (queue.entries.addr.wrapping_add(held as u64) != addr || held + len > 64) {
        flush_queue(core, memory, queue);
    }
    let entries = &mut queue.entries;
    if entries.len == 0 {
        entries.addr = addr;
        dirty.push(qid);
    }
    let start = usize::from(entries.len);
    let bytes = &mut entries.bytes[start..start + len];
    let user =
        Completion { qid: qid.0, len_bytes: completion.len_bytes, pkt_id: completion.pkt_id, color: false, err: false };
    let stamps = stamps(core.csr.completion_format(), queue.ctx.color, error);
    let low = user.to_u64() & !stamps.0 | stamps.1;
    bytes[..8].copy_from_slice(&low.to_le_bytes());
    if len > 8 {
        // Longer entries carry 0 behind OpenNIC's.
        bytes[8..].fill(0);
    }
    entries.len += len as u8;
    core.link.post_entry(core.now, len);
    core.counters.completions_out += 1;

    queue.ctx.pidx = ring.next(queue.ctx.pidx);
    if queue.ctx.pidx == 0 {
        queue.ctx.color = !queue.ctx.color;
    }
}

/// Does the queue's trigger mode ask for a notification now?
fn holds(core: &Core, queue: &CompletionQueue, ring: Ring) -> bool {
    match queue.ctx.trigger_mode {
        TriggerMode::Every => true,
        TriggerMode::UserCount | TriggerMode::UserTimerCount => {
            u32::from(queue.unread(ring)) >= core.csr.counter_threshold(queue.ctx.counter_index)
        }
        _ => false,
    }
}

fn start_timer(core: &mut Core, queue: &mut CompletionQueue, qid: Qid) {
    queue.void_alarms();
    queue.ctx.timer_running = true;
    let at = core.now.saturating_add(core.csr.timer_ps(queue.ctx.timer_index));
    core.set_alarm(at, AlarmKind::Timer, qid, queue.alarm);
}

fn flush_queue(core: &mut Core, memory: &mut dyn HostMemory, queue: &mut CompletionQueue) {
    let len = usize::from(std::mem::take(&mut queue.entries.len));
    if len == 0 {
        return;
    }
    let (func, addr, bytes) = (queue.func(), queue.entries.addr, &queue.entries.bytes[..len]);
    if core.config.late_entry_ps == 0 {
        core.write_memory(memory, func, addr, bytes);
    } else {
        core.defer_write(core.now.saturating_add(core.config.late_entry_ps), func, addr, bytes);
    }
}

/// One 8-byte store into the ring's last slot.
fn write_status(core: &mut Core, memory: &mut dyn HostMemory, queue: &CompletionQueue) {
    let Some(ring) = Ring::new(core.csr.ring_entries(queue.ctx.ring_size_index)) else { return };
    if !queue.ctx.en_stat_desc {
        return;
    }
    let status = CompletionStatus {
        pidx: queue.ctx.pidx,
        cidx: queue.ctx.cidx,
        color: queue.ctx.color,
        int_state: queue.ctx.int_st,
        err: queue.ctx.err,
    };
    core.counters.status_writes += 1;
    core.link.post_entry(core.now, 8);
    core.write_memory(memory, queue.func(), queue.addr(ring.status_slot()), &status.to_bytes());
}

/// Mask and value of color and error in an entry's low 64 bits, where the completion format has them. OpenNIC's user bits
/// end there; a format that places them beyond finds nothing to stamp.
fn stamps((color_bit, error_bit): (u32, u32), color: bool, error: bool) -> (u64, u64) {
    let one = |bit: u32| 1u64.checked_shl(bit).unwrap_or(0);
    let (c, e) = (one(color_bit), one(error_bit));
    (c | e, if color { c } else { 0 } | if error { e } else { 0 })
}
