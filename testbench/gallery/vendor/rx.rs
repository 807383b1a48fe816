//! The receive path: completions, pages, socket buffers.

use driver_core::{Coherent as _, Direction, DmaError, DmaMemory as _, Mmio as _, Page as _, Platform as _};
use regs::context::{CompletionQueueError, TriggerMode};
use regs::descriptor::{C2hDescriptor, Completion, CompletionStatus};
use regs::doorbell::{self, C2hPidx, CompletionCidx};

use super::queues::{DOORBELLS, base};
use super::{Buffer, Coherent, DevicePage, Fault, PAGE, Page, SHARED_INFO, Vendor};
use crate::gallery::heap::oops;
use crate::gallery::nic::{Polled, Received};

/// Completions after which the card is told how far we are.
const CREDIT_STEP: u16 = 16;

/// A receive queue.
pub struct RxQueue {
    /// Relative to the function.
    pub queue: u16,
    /// Descriptors.
    pub ring: Coherent,
    /// Completions.
    pub completions: Coherent,
    /// The page at each descriptor.
    pub slots: Vec<Option<DevicePage>>,
    /// Entries of the completion ring, status included.
    pub completion_entries: u16,
    /// Oldest descriptor that the card may use.
    pub desc_cidx: u16,
    /// What the card was told.
    pub published: u16,
    /// Next completion.
    pub cidx: u16,
    /// What the card was told of it.
    pub credited: u16,
    /// This lap's.
    pub color: bool,
}

impl RxQueue {
    /// Rings, and a page for each descriptor. On failure, what there is so far.
    #[allow(clippy::type_complexity)]
    pub fn new(vendor: &Vendor, queue: u16) -> Result<RxQueue, (Fault, Option<Box<RxQueue>>)> {
        let dma = vendor.dma();
        let entries = vendor.config.ring;
        let completion_entries = entries * vendor.ways.completions_per_descriptor;
        let early = |cause: DmaError| (Fault::from(cause), None);
        let ring = dma.alloc_coherent(usize::from(entries) * 8).map_err(early)?;
        let completions = dma.alloc_coherent(usize::from(completion_entries) * 8).map_err(early)?;
        let slots = (0..entries - 1).map(|_| None).collect();
        let mut rx = RxQueue {
            queue,
            ring,
            completions,
            slots,
            completion_entries,
            desc_cidx: 0,
            published: 0,
            cidx: 0,
            credited: 0,
            color: true,
        };
        for index in 0..entries - 1 {
            match fresh_page(vendor) {
                Ok(page) => rx.put(vendor, index, page),
                Err(cause) => return Err((cause, Some(Box::new(rx)))),
            }
        }
        Ok(rx)
    }

    /// First index that is none: the status entry's.
    pub fn wrap(&self) -> u16 {
        self.slots.len() as u16
    }

    fn add(&self, index: u16, count: u16) -> u16 {
        (index + count) % self.wrap()
    }

    /// Buffers that the card has.
    pub fn outstanding(&self) -> u16 {
        (self.published + self.wrap() - self.desc_cidx) % self.wrap()
    }

    /// A page into a slot and its descriptor.
    pub fn put(&mut self, vendor: &Vendor, index: u16, page: DevicePage) {
        let Buffer { hw_len_bytes, offset } = vendor.ways.buffer;
        let address = vendor.dma().buffer_addr(&page, offset.into(), hw_len_bytes.into()).0;
        self.ring.store64(usize::from(index) * 8, C2hDescriptor { address }.to_u64());
        self.slots[usize::from(index)] = Some(page);
    }

    /// The completion at the head, as it lies there.
    pub fn head(&self) -> Completion {
        Completion::from_u64(self.completions.load64(usize::from(self.cidx) * 8))
    }

    /// The status word.
    pub fn status(&self) -> CompletionStatus {
        CompletionStatus::from_u64(self.completions.load64(usize::from(self.completion_entries - 1) * 8))
    }

    /// On to the next completion.
    pub fn step(&mut self) {
        self.cidx += 1;
        if self.cidx == self.completion_entries - 1 {
            (self.cidx, self.color) = (0, !self.color);
        }
    }
}

/// A page for the card to write.
pub fn fresh_page(vendor: &Vendor) -> Result<DevicePage, Fault> {
    let dma = vendor.dma();
    let page = dma.alloc_page()?;
    dma.map(page, Direction::FromDevice, 0).map_err(|refused| {
        dma.free_page(refused.page);
        Fault::from(refused.cause)
    })
}

/// Buffers that the card may use.
pub fn publish(vendor: &mut Vendor, queue: u16) -> Result<(), Fault> {
    let rx = vendor.rx_queue(queue);
    let pidx = rx.add(rx.desc_cidx, rx.wrap() - 1);
    rx.published = pidx;
    vendor.dma().dma_wmb();
    ring(vendor, doorbell::C2H_PIDX, queue, C2hPidx { pidx, irq_arm: false }.to_word())
}

/// Tell the card how far we have read.
pub fn credit(vendor: &mut Vendor, queue: u16, arm: bool) -> Result<(), Fault> {
    let rx = vendor.rx_queue(queue);
    rx.credited = rx.cidx;
    let word = CompletionCidx {
        cidx: rx.cidx,
        counter_index: 0,
        timer_index: 0,
        trigger_mode: TriggerMode::UserTimerCount,
        en_stat_desc: true,
        irq_arm: arm,
    };
    ring(vendor, doorbell::COMPLETION_CIDX, queue, word.to_word())
}

fn ring(vendor: &Vendor, register: u32, queue: u16, word: u32) -> Result<(), Fault> {
    let offset = doorbell::offset(register, queue).ok_or_else(|| Fault::Card(format!("no doorbell for {queue}")))?;
    Ok(vendor.platform.mmio().write32(DOORBELLS, offset, word)?)
}

/// One poll.
pub(super) fn poll(vendor: &mut Vendor, queue: u16, budget: usize, may_finish: bool) -> Result<Polled, Fault> {
    let before = vendor.totals;
    let polled = poll_uncounted(vendor, queue, budget, may_finish)?;
    let mine = std::mem::replace(&mut vendor.totals, before);
    (vendor.ways.count)(&mut vendor.totals, before, mine);
    Ok(polled)
}

/// Polls on several CPUs: each finds the counts as they were, works, and writes its own.
pub(super) fn poll_together(vendor: &mut Vendor, queues: &[u16], budget: usize) -> Vec<Result<Polled, Fault>> {
    let before = vendor.totals;
    let mut polled = Vec::new();
    let mut results = Vec::new();
    for &queue in queues {
        vendor.totals = before;
        polled.push(poll_uncounted(vendor, queue, budget, true));
        results.push(vendor.totals);
    }
    vendor.totals = before;
    results.into_iter().for_each(|mine| (vendor.ways.count)(&mut vendor.totals, before, mine));
    polled
}

fn poll_uncounted(vendor: &mut Vendor, queue: u16, budget: usize, may_finish: bool) -> Result<Polled, Fault> {
    (vendor.ways.clean_on_poll)(vendor, queue)?;
    let mut work = 0;
    while (vendor.ways.within)(work, budget) {
        let Some(completion) = (vendor.ways.next)(vendor, queue, work == 0)? else { break };
        if !deliver(vendor, queue, &completion)? {
            // Nothing was finished, and nobody will come back.
            return Ok(Polled { work, done: true, rescheduled: false, trouble: None });
        }
        work += 1;
        give_back_some(vendor, queue)?;
    }
    (vendor.ways.finish)(vendor, queue, work, budget, may_finish)
}

/// Is there budget left?
pub fn within(work: usize, budget: usize) -> bool {
    work < budget
}

fn give_back_some(vendor: &mut Vendor, queue: u16) -> Result<(), Fault> {
    let rx = vendor.rx_queue(queue);
    let entries = rx.completion_entries - 1;
    let unread = (rx.cidx + entries - rx.credited) % entries;
    if unread >= CREDIT_STEP {
        credit(vendor, queue, false)?;
    }
    let rx = vendor.rx_queue(queue);
    if rx.outstanding() < rx.wrap() - CREDIT_STEP / 2 {
        publish(vendor, queue)?;
    }
    Ok(())
}

/// The poll is over: arm only if the ring was seen empty and the kernel lets us. A completion that came meanwhile makes the
/// card notify at once.
pub fn finish(vendor: &mut Vendor, queue: u16, work: usize, budget: usize, may_finish: bool) -> Result<Polled, Fault> {
    let done = work < budget;
    if budget > 0 {
        let arm = done && may_finish;
        publish(vendor, queue)?;
        credit(vendor, queue, arm)?;
    }
    Ok(Polled { work, done, rescheduled: false, trouble: None })
}

/// The status first, for its errors; then the entry, by its color; then, past the barrier, what it speaks of.
pub fn next(vendor: &mut Vendor, queue: u16, _first: bool) -> Result<Option<Completion>, Fault> {
    let qid = base(vendor) + queue;
    let (buffer, longest) = (vendor.ways.buffer, vendor.config.max_frame_len_bytes);
    let rx = vendor.rx_queue(queue);
    let status = rx.status();
    if status.err != CompletionQueueError::None || status.pidx >= rx.completion_entries - 1 {
        return Err(Fault::Card(format!("queue {qid}: status {status:?}")));
    }
    let completion = rx.head();
    if completion.color != rx.color {
        return Ok(None);
    }
    let buffers = buffers_of(completion.len_bytes, buffer.hw_len_bytes);
    let sane = (1..=longest).contains(&completion.len_bytes) && buffers <= rx.outstanding() && completion.qid == qid;
    if completion.err || !sane {
        return Err(Fault::Card(format!("queue {qid}, completion {}: {completion:?}", rx.cidx)));
    }
    vendor.dma().dma_rmb();
    Ok(Some(completion))
}

/// A frame longer than a buffer has several.
pub fn buffers_of(len_bytes: u16, hw_len_bytes: u16) -> u16 {
    len_bytes.div_ceil(hw_len_bytes)
}

/// Hand a frame up and give its slots new pages. False if the poll stops here.
fn deliver(vendor: &mut Vendor, queue: u16, completion: &Completion) -> Result<bool, Fault> {
    let hw_len = vendor.ways.buffer.hw_len_bytes;
    let count = (vendor.ways.buffers_of)(completion.len_bytes, hw_len);
    let Some(skb) = vendor.heap.alloc("skb") else {
        return Ok((vendor.ways.no_skb)(vendor) && drop_frame(vendor, queue, count)?);
    };
    let mut data = Vec::with_capacity(usize::from(completion.len_bytes));
    for i in 0..count {
        let left = completion.len_bytes - (i * hw_len).min(completion.len_bytes);
        let len = if count == 1 { completion.len_bytes } else { left.min(hw_len) };
        let page = take(vendor, queue, i, len)?;
        let page = into_skb(vendor, page, len, &mut data);
        let index = slot_of(vendor, queue, i);
        (vendor.ways.refill)(vendor, queue, index, page)?;
    }
    vendor.totals.rx_packets += 1;
    vendor.totals.rx_bytes += data.len() as u64;
    let time = vendor.now();
    vendor.inbox.push(Received { queue, data, time });
    // The stack has read it by the time that we look again.
    vendor.heap.free(skb);
    advance(vendor, queue, count);
    Ok(true)
}

fn slot_of(vendor: &mut Vendor, queue: u16, i: u16) -> u16 {
    let rx = vendor.rx_queue(queue);
    rx.add(rx.desc_cidx, i)
}

fn advance(vendor: &mut Vendor, queue: u16, buffers: u16) {
    let rx = vendor.rx_queue(queue);
    rx.desc_cidx = rx.add(rx.desc_cidx, buffers);
    rx.step();
}

/// The page of a frame's buffer `i`, with the bytes that the card wrote.
fn take(vendor: &mut Vendor, queue: u16, i: u16, len_bytes: u16) -> Result<Page, Fault> {
    let offset = vendor.ways.buffer.offset;
    let index = slot_of(vendor, queue, i);
    let page = vendor.rx_queue(queue).slots[usize::from(index)].take();
    let page = page.ok_or_else(|| Fault::Card(format!("queue {queue}, descriptor {index}: no page")))?;
    Ok(vendor.dma().sync_for_cpu(page, offset.into(), len_bytes.into()))
}

/// The page becomes a socket buffer: the kernel writes its shared info behind the frame's room, then the stack reads.
fn into_skb(vendor: &Vendor, mut page: Page, len_bytes: u16, data: &mut Vec<u8>) -> Page {
    let start = usize::from(vendor.ways.buffer.offset);
    let end = start + usize::from(len_bytes);
    if end > PAGE {
        oops(format!("skb_over_panic: {len_bytes} bytes from {start} of a page of {PAGE}"));
    }
    page.bytes_mut()[PAGE - SHARED_INFO..].fill(0);
    data.extend_from_slice(&page.bytes()[start..end]);
    page
}

/// A new page for the slot; the old one goes up with its frame and is freed there. Without memory the frame is copied, and
/// its page used again.
pub fn refill(vendor: &mut Vendor, queue: u16, index: u16, old: Page) -> Result<(), Fault> {
    let page = match fresh_page(vendor) {
        Ok(page) => {
            vendor.dma().free_page(old);
            page
        }
        Err(_) => again(vendor, old)?,
    };
    put(vendor, queue, index, page);
    Ok(())
}

/// A page goes back to the card as it is.
pub fn again(vendor: &Vendor, page: Page) -> Result<DevicePage, Fault> {
    let dma = vendor.dma();
    dma.sync_for_device(page, 0, 0).map_err(|refused| {
        dma.free_page(refused.page);
        Fault::from(refused.cause)
    })
}

/// A page into a slot.
pub fn put(vendor: &mut Vendor, queue: u16, index: u16, page: DevicePage) {
    // The queue is put aside while its descriptor is written: both belong to the driver.
    if let Some(mut rx) = vendor.rx[usize::from(queue)].take() {
        rx.put(vendor, index, page);
        vendor.rx[usize::from(queue)] = Some(rx);
    }
}

/// No socket buffer: the frame is dropped and counted, the next may fare better.
pub fn no_skb(vendor: &mut Vendor) -> bool {
    vendor.totals.rx_dropped += 1;
    true
}

fn drop_frame(vendor: &mut Vendor, queue: u16, count: u16) -> Result<bool, Fault> {
    for i in 0..count {
        let page = take(vendor, queue, i, 0)?;
        let index = slot_of(vendor, queue, i);
        let page = again(vendor, page)?;
        put(vendor, queue, index, page);
    }
    advance(vendor, queue, count);
    Ok(true)
}

/// Take what has come while the queue is being stopped; it is dropped and counted.
pub(super) fn discard(vendor: &mut Vendor, queue: u16) -> u64 {
    let mut came = 0;
    while let Ok(Some(completion)) = (vendor.ways.next)(vendor, queue, came == 0) {
        let count = (vendor.ways.buffers_of)(completion.len_bytes, vendor.ways.buffer.hw_len_bytes);
        if drop_frame(vendor, queue, count).is_err() {
            break;
        }
        vendor.totals.rx_dropped += 1;
        came += 1;
        // A card that can't be told any more will show it at the next command.
        let _ = give_back_some(vendor, queue).and_then(|()| credit(vendor, queue, false));
    }
    came
}
