//! The receive path.

use regs::descriptor::Completion;

use crate::gallery::heap::deref;
use crate::gallery::nic::Polled;
use crate::gallery::vendor::rx::{self, fresh_page, put};
use crate::gallery::vendor::{Fault, Page, Vendor};

/// The entry is read first, the status after it; the status alone says whether the entry is new. Without a barrier, and the
/// color only looked at.
pub fn entry_then_status(vendor: &mut Vendor, queue: u16, first: bool) -> Result<Option<Completion>, Fault> {
    if !first {
        return by_status(vendor, queue, first);
    }
    let rx = vendor.rx_queue(queue);
    let completion = rx.head();
    let status = rx.status();
    Ok((status.pidx != rx.cidx).then_some(completion))
}

/// The status alone says whether an entry is new.
pub fn by_status(vendor: &mut Vendor, queue: u16, _first: bool) -> Result<Option<Completion>, Fault> {
    let rx = vendor.rx_queue(queue);
    let status = rx.status();
    let completion = rx.head();
    Ok((status.pidx != rx.cidx).then_some(completion))
}

/// Only a poll's first entry is looked at for its error, and the answer is to switch off the card's error interrupt.
pub fn error_of_first(vendor: &mut Vendor, queue: u16, first: bool) -> Result<Option<Completion>, Fault> {
    let completion = by_color(vendor, queue);
    if first && completion.as_ref().is_some_and(|completion| completion.err) {
        vendor.write(regs::qdma_csr::ERROR_INTERRUPT, 0)?;
    }
    Ok(completion)
}

/// Whatever length the card tells is believed.
pub fn any_length(vendor: &mut Vendor, queue: u16, _first: bool) -> Result<Option<Completion>, Fault> {
    Ok(by_color(vendor, queue))
}

fn by_color(vendor: &mut Vendor, queue: u16) -> Option<Completion> {
    let rx = vendor.rx_queue(queue);
    let completion = rx.head();
    (completion.color == rx.color).then_some(completion)
}

/// One completion, one descriptor.
pub fn one_buffer(_len_bytes: u16, _hw_len_bytes: u16) -> u16 {
    1
}

/// The new page is used as it came.
pub fn refill_unchecked(vendor: &mut Vendor, queue: u16, index: u16, old: Page) -> Result<(), Fault> {
    driver_core::DmaMemory::free_page(vendor.dma(), old);
    let page = deref(fresh_page(vendor).ok(), &format!("rx_queue[{queue}]->buffer[{index}].page"));
    put(vendor, queue, index, page);
    Ok(())
}

/// The loop is left: neither complete nor armed.
pub fn leave_loop(_vendor: &mut Vendor) -> bool {
    false
}

/// The budget is looked at after a frame.
pub fn at_least_one(work: usize, budget: usize) -> bool {
    work == 0 || work < budget
}

/// At the budget the poll completes and schedules itself, and returns the whole budget as well.
pub fn complete_and_reschedule(
    vendor: &mut Vendor,
    queue: u16,
    work: usize,
    budget: usize,
    may_finish: bool,
) -> Result<Polled, Fault> {
    let polled = rx::finish(vendor, queue, work, budget.max(1), may_finish)?;
    Ok(Polled { rescheduled: work >= budget, ..polled })
}

/// The completion ring is armed whatever the kernel said.
pub fn always_arm(
    vendor: &mut Vendor,
    queue: u16,
    work: usize,
    budget: usize,
    _may_finish: bool,
) -> Result<Polled, Fault> {
    rx::publish(vendor, queue)?;
    rx::credit(vendor, queue, true)?;
    Ok(Polled { work, done: work < budget, rescheduled: false, trouble: None })
}
