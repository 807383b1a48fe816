//! Start and stop of queues.

use driver_core::{Coherent as _, DmaMemory as _, Interrupts as _, Platform as _, Vector};

use crate::gallery::heap::deref;
use crate::gallery::vendor::queues::{contexts_of, invalidate_rx, invalidate_tx, listen, start_rx};
use crate::gallery::vendor::rx::RxQueue;
use crate::gallery::vendor::tx::TxQueue;
use crate::gallery::vendor::{Fault, Vendor};
use regs::doorbell::{self, C2hPidx, CompletionCidx};

/// The completion queue is armed, and only then does the handler's pointer get its queue.
pub fn arm_before_known(vendor: &mut Vendor, mut queue: RxQueue) -> Result<(), Fault> {
    let number = queue.queue;
    let contexts = contexts_of(vendor, number, queue.ring.dma_addr().0, queue.completions.dma_addr().0);
    start_rx(vendor, number, &contexts)?;
    // The vector is one of those that were granted.
    let _ = vendor.platform.interrupts().enable(Vector(number));
    queue.published = queue.wrap() - 1;
    let pidx = C2hPidx { pidx: queue.published, irq_arm: false }.to_word();
    let cidx = CompletionCidx {
        trigger_mode: regs::context::TriggerMode::UserTimerCount,
        en_stat_desc: true,
        irq_arm: true,
        ..CompletionCidx::default()
    };
    for (register, word) in [(doorbell::C2H_PIDX, pidx), (doorbell::COMPLETION_CIDX, cidx.to_word())] {
        vendor.write(doorbell::offset(register, number).unwrap_or(0), word)?;
    }
    listen(vendor, true)?;
    vendor.breathe(5_000)?;
    vendor.rx[usize::from(number)] = Some(queue);
    Ok(())
}

/// What clears a queue finds it by a pointer that is not set yet, and so clears nothing.
pub fn undo_by_pointer(vendor: &mut Vendor, queue: RxQueue) {
    match vendor.rx[usize::from(queue.queue)].take() {
        Some(known) => crate::gallery::vendor::queues::clear_rx(vendor, known),
        None => std::mem::forget(queue),
    }
}

/// The queue's pointer is set once everything has gone well; if not, it is cleared by that pointer.
pub fn open_then_set(vendor: &mut Vendor, queue: RxQueue) -> Result<(), Fault> {
    let number = queue.queue;
    let contexts = contexts_of(vendor, number, queue.ring.dma_addr().0, queue.completions.dma_addr().0);
    match start_rx(vendor, number, &contexts) {
        Ok(()) => crate::gallery::vendor::queues::open_rx(vendor, queue),
        Err(fault) => {
            (vendor.ways.undo_rx)(vendor, queue);
            Err(fault)
        }
    }
}

/// Transmit queues go first, while receive polls still run and clean them all.
pub fn stop_tx_first(vendor: &mut Vendor) -> Result<(), Fault> {
    for queue in 0..vendor.config.queues {
        invalidate_tx(vendor, queue)?;
        if let Some(tx) = vendor.tx[usize::from(queue)].take() {
            (vendor.ways.clear_tx)(vendor, tx);
        }
        vendor.breathe(5_000)?;
    }
    crate::gallery::vendor::queues::stop(vendor)
}

/// Whatever the card answers, the queues are taken for stopped and their memory is freed at once: nothing is drained, nothing
/// waited for.
pub fn stop_unheard(vendor: &mut Vendor) -> Result<(), Fault> {
    for queue in 0..vendor.config.queues {
        let _ = invalidate_tx(vendor, queue);
        let _ = invalidate_rx(vendor, queue);
        if let Some(tx) = vendor.tx[usize::from(queue)].take() {
            (vendor.ways.clear_tx)(vendor, tx);
        }
        if let Some(rx) = vendor.rx[usize::from(queue)].take() {
            (vendor.ways.clear_rx)(vendor, rx);
        }
        let _ = vendor.platform.interrupts().disable(Vector(queue));
    }
    vendor.scheduled.clear();
    Ok(())
}

/// What is left in the ring is logged.
pub fn log_what_is_left(vendor: &mut Vendor, queue: TxQueue) {
    let TxQueue { ring, slots, .. } = queue;
    vendor.totals.tx_abandoned += slots.iter().flatten().count() as u64;
    drop(ring);
    slots.into_iter().for_each(std::mem::forget);
}

/// The pages are counted by the completion ring's entries.
pub fn clear_by_completions(vendor: &mut Vendor, mut queue: RxQueue) {
    let dma = vendor.platform.dma();
    for index in 0..usize::from(queue.completion_entries - 1) {
        let slot = deref(queue.slots.get_mut(index), &format!("rx_queue[{}]->buffer[{index}]", queue.queue));
        if let Some(page) = slot.take() {
            dma.free_page(dma.unmap(page, 0));
        }
    }
}

/// Every receive poll cleans every transmit queue, by its pointer.
pub fn clean_every_tx(vendor: &mut Vendor, _queue: u16) -> Result<(), Fault> {
    (0..vendor.config.queues).try_for_each(|queue| {
        vendor.tx_queue(queue);
        (vendor.ways.clean)(vendor, queue)
    })
}

/// The queues are stopped without a look at what is under way: nothing is drained.
pub fn stop_at_once(vendor: &mut Vendor) -> Result<(), Fault> {
    listen(vendor, false)?;
    for queue in 0..vendor.config.queues {
        invalidate_tx(vendor, queue)?;
        if let Some(tx) = vendor.tx[usize::from(queue)].take() {
            (vendor.ways.clear_tx)(vendor, tx);
        }
    }
    crate::gallery::vendor::queues::stop(vendor)
}
