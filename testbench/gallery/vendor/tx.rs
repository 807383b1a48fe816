//! The transmit path: posting, doorbells, completions.

use driver_core::{Coherent as _, Direction, DmaMemory as _, Mmio as _, Page as _, Platform as _};
use regs::descriptor::{H2cDescriptor, H2cStatus};
use regs::doorbell::{self, H2cPidx};

use super::queues::{DOORBELLS, base};
use super::{Coherent, DevicePage, Fault, PAGE, Vendor, failure};
use crate::frames::MIN_FRAME;
use crate::gallery::heap::{Block, deref};
use crate::gallery::nic::Refusal;

/// How often completions are looked for while there are some to come, ns.
const TIMER_NS: u64 = 5_000;

/// A frame in the ring.
pub struct InRing {
    /// Its page.
    pub page: DevicePage,
    /// Its socket buffer.
    pub skb: Block,
}

/// A transmit queue.
pub struct TxQueue {
    /// Relative to the function.
    pub queue: u16,
    /// Descriptors.
    pub ring: Coherent,
    /// The frame at each descriptor.
    pub slots: Vec<Option<InRing>>,
    /// Next descriptor to write.
    pub pidx: u16,
    /// What the card was told.
    pub published: u16,
    /// Oldest not taken back.
    pub cidx: u16,
    /// The stack was told to wait.
    pub stopped: bool,
    /// Slots that a cleaner has passed and not yet emptied.
    pub late: Vec<u16>,
}

impl TxQueue {
    /// A ring.
    pub fn new(vendor: &Vendor, queue: u16) -> Result<TxQueue, Fault> {
        let entries = vendor.config.ring;
        let ring = vendor.dma().alloc_coherent(usize::from(entries) * 16)?;
        let slots = (0..entries - 1).map(|_| None).collect();
        Ok(TxQueue { queue, ring, slots, pidx: 0, published: 0, cidx: 0, stopped: false, late: Vec::new() })
    }

    /// First index that is none.
    pub fn wrap(&self) -> u16 {
        self.slots.len() as u16
    }

    /// The index after this one.
    pub fn after(&self, index: u16) -> u16 {
        (index + 1) % self.wrap()
    }

    /// Frames that can be posted.
    pub fn room(&self) -> u16 {
        self.wrap() - 1 - (self.pidx + self.wrap() - self.cidx) % self.wrap()
    }

    /// How far the card says that it is.
    pub fn status(&self) -> H2cStatus {
        H2cStatus::from_u64(self.ring.load64(usize::from(self.wrap()) * 16))
    }
}

/// May the stack send? A queue that filled up is stopped, and woken when a quarter of it is free.
pub fn may_send(vendor: &mut Vendor, queue: u16) -> bool {
    let Some(Some(tx)) = vendor.tx.get(usize::from(queue)) else { return false };
    !tx.stopped
}

/// Completions are owed as long as something is in a ring.
pub fn timer_ns(vendor: &Vendor) -> Option<u64> {
    let busy = vendor.tx.iter().flatten().any(|tx| tx.slots.iter().any(Option::is_some));
    busy.then_some(TIMER_NS)
}

/// Post a frame.
pub(super) fn send(vendor: &mut Vendor, queue: u16, frame: &[u8], more: bool) -> Result<(), Refusal> {
    let failed = |fault: Fault| Refusal::Failed(failure(queue, &fault));
    (vendor.ways.clean)(vendor, queue).map_err(failed)?;
    if vendor.tx_queue(queue).room() == 0 {
        return Err(Refusal::Busy);
    }
    let skb = deref(vendor.heap.alloc("the socket's skb"), "the stack's own skb");
    let mut data = frame.to_vec();
    if data.len() < MIN_FRAME {
        (vendor.ways.pad)(vendor, &mut data, skb)?;
    }
    if let Err(fault) = post(vendor, queue, &data, skb) {
        vendor.heap.free(skb);
        (vendor.ways.no_mapping)(vendor, queue).map_err(failed)?;
        return Err(Refusal::Dropped(fault.to_string()));
    }
    vendor.totals.tx_packets += 1;
    let tx = vendor.tx_queue(queue);
    tx.stopped = tx.room() == 0;
    if !more || vendor.tx_queue(queue).room() == 0 {
        doorbell(vendor, queue).map_err(failed)?;
    }
    Ok(())
}

/// Zeros up to the shortest frame. Without memory for them the frame is dropped, and that is its end.
pub fn pad(vendor: &mut Vendor, data: &mut Vec<u8>, skb: Block) -> Result<(), Refusal> {
    let Some(padding) = vendor.heap.alloc("padding") else {
        vendor.heap.free(skb);
        // Those before it wait for no one.
        for queue in 0..vendor.config.queues {
            doorbell(vendor, queue).map_err(|fault| Refusal::Failed(failure(queue, &fault)))?;
        }
        return Err(Refusal::Dropped("no memory to pad it".into()));
    };
    data.resize(MIN_FRAME, 0);
    vendor.heap.touch(skb);
    vendor.heap.free(padding);
    Ok(())
}

fn post(vendor: &mut Vendor, queue: u16, data: &[u8], skb: Block) -> Result<(), Fault> {
    vendor.heap.touch(skb);
    let dma = vendor.dma();
    let mut page = dma.alloc_page()?;
    let Some(room) = page.bytes_mut().get_mut(..data.len()) else {
        dma.free_page(page);
        return Err(Fault::Card(format!("a frame of {} bytes is longer than a page of {PAGE}", data.len())));
    };
    room.copy_from_slice(data);
    let page = dma.map(page, Direction::ToDevice, data.len()).map_err(|refused| {
        dma.free_page(refused.page);
        Fault::from(refused.cause)
    })?;
    let (len_bytes, address) = (data.len() as u16, dma.device_addr(&page).0);
    let [w0, w1, w2, w3] =
        H2cDescriptor { metadata: len_bytes.into(), len_bytes, flags: 0, address }.to_words().map(u64::from);
    let tx = vendor.tx_queue(queue);
    let offset = usize::from(tx.pidx) * 16;
    tx.ring.store64(offset, w1 << 32 | w0);
    tx.ring.store64(offset + 8, w3 << 32 | w2);
    let at = usize::from(tx.pidx);
    tx.slots[at] = Some(InRing { page, skb });
    tx.pidx = tx.after(tx.pidx);
    Ok(())
}

/// Tell the card of everything posted.
pub fn doorbell(vendor: &mut Vendor, queue: u16) -> Result<(), Fault> {
    let tx = vendor.tx_queue(queue);
    if tx.published == tx.pidx {
        return Ok(());
    }
    tx.published = tx.pidx;
    let word = H2cPidx { pidx: tx.pidx, irq_arm: false }.to_word();
    vendor.dma().dma_wmb();
    let offset =
        doorbell::offset(doorbell::H2C_PIDX, queue).ok_or_else(|| Fault::Card(format!("no doorbell for {queue}")))?;
    Ok(vendor.platform.mmio().write32(DOORBELLS, offset, word)?)
}

/// A poll cleans the transmit queue of its own number, if that is there.
pub fn clean_own(vendor: &mut Vendor, queue: u16) -> Result<(), Fault> {
    match vendor.tx[usize::from(queue)] {
        Some(_) => (vendor.ways.clean)(vendor, queue),
        None => Ok(()),
    }
}

/// Take back what the card says it has sent, if that can be true; wake the stack when there is room again.
pub fn clean(vendor: &mut Vendor, queue: u16) -> Result<(), Fault> {
    let qid = base(vendor) + queue;
    let mut tx = deref(vendor.tx[usize::from(queue)].take(), &format!("tx_queue[{queue}]"));
    let (to, wrap) = (tx.status().cidx, tx.wrap());
    let distance = |from: u16, to: u16| (to + wrap - from) % wrap;
    let result = if to >= wrap || distance(tx.cidx, to) > distance(tx.cidx, tx.published) {
        Err(Fault::Card(format!("queue {qid}: the card's index is {to}; {} to {} were given", tx.cidx, tx.published)))
    } else {
        vendor.dma().dma_rmb();
        while tx.cidx != to {
            let index = tx.cidx;
            release(vendor, &mut tx, index);
            tx.cidx = tx.after(tx.cidx);
        }
        Ok(())
    };
    if tx.room() >= tx.wrap() / 4 {
        tx.stopped = false;
    }
    vendor.tx[usize::from(queue)] = Some(tx);
    result
}

/// Give back the frame at an index.
pub fn release(vendor: &Vendor, tx: &mut TxQueue, index: u16) {
    let slot = tx.slots.get_mut(usize::from(index)).and_then(Option::take);
    let InRing { page, skb } = deref(slot, &format!("tx_queue[{}]->buffer[{index}].skb", tx.queue));
    let dma = vendor.dma();
    dma.free_page(dma.unmap(page, 0));
    vendor.heap.free(skb);
}
