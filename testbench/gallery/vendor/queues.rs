//! Contexts, and the start and stop of queues. Contexts are addressed by absolute queues, doorbells by the function's own.

use driver_core::{Clock as _, Coherent as _, DmaMemory as _, Interrupts as _, Platform as _, Vector};
use regs::context::{
    COMMAND_WORDS, CompletionContext, ContextCommand, ContextOp, ContextSelector, EntrySize, FmapContext,
    PrefetchContext, SwDescContext, TriggerMode,
};
use regs::qdma_csr::{self, ind_ctxt_cmd};
use regs::{Bar, cmac, shell};

use super::probe::{BUFFER, COMPLETION_RING, RX_RING, TX_RING};
use super::rx::{self, RxQueue};
use super::tx::{self, TxQueue};
use super::{Fault, Vendor};

/// How long a context command may take, ns.
const COMMAND_NS: u64 = 100_000_000;
/// How long the frames in flight at a stop may take, ns.
const DRAIN_NS: u64 = 500_000;
/// What may still be written after a queue was invalidated, ns.
const SETTLE_NS: u64 = 10_000;

use ContextSelector::{Completion, CreditC2h, CreditH2c, Fmap, HwDescC2h, HwDescH2c, Prefetch, SwDescC2h, SwDescH2c};

/// First absolute queue.
pub fn base(vendor: &Vendor) -> u16 {
    u16::from(vendor.config.func.0) * 64
}

fn command(vendor: &Vendor, selector: ContextSelector, op: ContextOp, qid: u16) -> Result<(), Fault> {
    let word = ContextCommand { selector, op, qid }.to_word();
    vendor.write(qdma_csr::IND_CTXT_CMD, word)?;
    let begun = vendor.now();
    while ind_ctxt_cmd::BUSY.is_set(vendor.read(qdma_csr::IND_CTXT_CMD)?) {
        if vendor.now().0 - begun.0 > COMMAND_NS * 1_000 {
            return Err(Fault::Card(format!("context command {word:#x} never ends")));
        }
        vendor.platform.clock().wait(100_000);
    }
    Ok(())
}

fn write(vendor: &Vendor, selector: ContextSelector, qid: u16, words: &[u32]) -> Result<(), Fault> {
    command(vendor, selector, ContextOp::Clear, qid)?;
    for i in 0..COMMAND_WORDS {
        vendor.write(qdma_csr::IND_CTXT_DATA + 4 * i as u32, words.get(i).copied().unwrap_or(0))?;
        vendor.write(qdma_csr::IND_CTXT_MASK + 4 * i as u32, u32::MAX)?;
    }
    command(vendor, selector, ContextOp::Write, qid)
}

pub(super) fn map_function(vendor: &Vendor) -> Result<(), Fault> {
    let map = FmapContext { qbase: base(vendor), qmax: vendor.config.queues };
    write(vendor, Fmap, vendor.config.func.0.into(), &map.to_words())
}

pub(super) fn unmap_function(vendor: &Vendor) -> Result<(), Fault> {
    command(vendor, Fmap, ContextOp::Clear, vendor.config.func.0.into())
}

/// Start every queue, then the port's receiver.
pub(super) fn open(vendor: &mut Vendor) -> Result<(), Fault> {
    crate::gallery::heap::deref(vendor.statistics, "netdev_stats");
    retry_parked(vendor)?;
    let opened = open_queues(vendor);
    if opened.is_err() {
        // What can't be stopped is kept.
        let _ = (vendor.ways.stop)(vendor);
    }
    opened
}

fn open_queues(vendor: &mut Vendor) -> Result<(), Fault> {
    for queue in 0..vendor.config.queues {
        open_tx(vendor, queue)?;
    }
    for queue in 0..vendor.config.queues {
        let parts = RxQueue::new(vendor, queue);
        match parts {
            Ok(rx) => (vendor.ways.open_rx)(vendor, rx)?,
            Err((fault, Some(rx))) => {
                (vendor.ways.undo_rx)(vendor, *rx);
                return Err(fault);
            }
            Err((fault, None)) => return Err(fault),
        }
    }
    listen(vendor, true)
}

fn open_tx(vendor: &mut Vendor, queue: u16) -> Result<(), Fault> {
    let tx = TxQueue::new(vendor, queue)?;
    let context = SwDescContext {
        func_id: vendor.config.func.0.into(),
        qen: true,
        wbi_chk: true,
        wbi_intvl_en: true,
        ring_size_index: TX_RING,
        desc_size: EntrySize::Bytes16,
        wbk_en: true,
        ring_base: tx.ring.dma_addr().0,
        vector: queue,
        ..SwDescContext::default()
    };
    let qid = base(vendor) + queue;
    vendor.tx[usize::from(queue)] = Some(tx);
    write(vendor, SwDescH2c, qid, &context.to_words())?;
    command(vendor, HwDescH2c, ContextOp::Clear, qid)?;
    command(vendor, CreditH2c, ContextOp::Clear, qid)
}

/// The queue is known before the card can interrupt for it.
pub fn open_rx(vendor: &mut Vendor, rx: RxQueue) -> Result<(), Fault> {
    let queue = rx.queue;
    vendor.rx[usize::from(queue)] = Some(rx);
    let contexts = rx_contexts(vendor, queue);
    start_rx(vendor, queue, &contexts)?;
    arm_rx(vendor, queue)?;
    vendor.breathe(500)
}

/// Contexts of a receive queue.
pub struct RxContexts {
    descriptors: SwDescContext,
    prefetch: PrefetchContext,
    completions: CompletionContext,
}

fn rx_contexts(vendor: &mut Vendor, queue: u16) -> RxContexts {
    let (ring, completions) = {
        let rx = vendor.rx_queue(queue);
        (rx.ring.dma_addr().0, rx.completions.dma_addr().0)
    };
    contexts_of(vendor, queue, ring, completions)
}

/// Contexts for rings at these addresses.
pub fn contexts_of(vendor: &Vendor, queue: u16, ring_base: u64, completions: u64) -> RxContexts {
    let func_id = vendor.config.func.0.into();
    RxContexts {
        descriptors: SwDescContext {
            func_id,
            qen: true,
            fcrd_en: true,
            ring_size_index: RX_RING,
            desc_size: EntrySize::Bytes8,
            wbk_en: true,
            ring_base,
            ..SwDescContext::default()
        },
        prefetch: PrefetchContext {
            buffer_size_index: BUFFER,
            pfch_en: true,
            valid: true,
            ..PrefetchContext::default()
        },
        completions: CompletionContext {
            en_stat_desc: true,
            en_int: true,
            trigger_mode: TriggerMode::UserTimerCount,
            func_id,
            color: true,
            ring_size_index: COMPLETION_RING,
            valid: true,
            vector: queue,
            ..CompletionContext::default()
        }
        .with_ring_base(completions),
    }
}

/// Write the card's side of a receive queue.
pub fn start_rx(vendor: &Vendor, queue: u16, contexts: &RxContexts) -> Result<(), Fault> {
    let qid = base(vendor) + queue;
    write(vendor, SwDescC2h, qid, &contexts.descriptors.to_words())?;
    command(vendor, HwDescC2h, ContextOp::Clear, qid)?;
    command(vendor, CreditC2h, ContextOp::Clear, qid)?;
    write(vendor, Prefetch, qid, &contexts.prefetch.to_words())?;
    write(vendor, Completion, qid, &contexts.completions.to_words())
}

fn arm_rx(vendor: &mut Vendor, queue: u16) -> Result<(), Fault> {
    // The vector is one of those that were granted.
    let _ = vendor.platform.interrupts().enable(Vector(queue));
    rx::publish(vendor, queue)?;
    rx::credit(vendor, queue, true)
}

/// Switch the function's port.
pub fn listen(vendor: &Vendor, on: bool) -> Result<(), Fault> {
    match vendor.config.own_port {
        Some(port) => vendor.write_shell(shell::cmac(port) + cmac::CONFIGURATION_RX_REG1, on.into()),
        None => Ok(()),
    }
}

/// Let nothing more in, let what is in flight end, stop the card's side of all queues, and only then give memory back.
pub fn stop(vendor: &mut Vendor) -> Result<(), Fault> {
    // A port that can't be switched off only means that frames keep coming until their queues are gone.
    let _ = listen(vendor, false);
    drain(vendor);
    let tx: Vec<TxQueue> = vendor.tx.iter_mut().filter_map(Option::take).collect();
    let rx: Vec<RxQueue> = vendor.rx.iter_mut().filter_map(Option::take).collect();
    for queue in 0..vendor.config.queues {
        // The vector is one of those that were granted.
        let _ = vendor.platform.interrupts().disable(Vector(queue));
    }
    vendor.scheduled.clear();
    vendor.parked.0.extend(tx);
    vendor.parked.1.extend(rx);
    retry_parked(vendor)
}

fn drain(vendor: &mut Vendor) {
    let begun = vendor.now();
    while vendor.now().0 - begun.0 < DRAIN_NS * 1_000 {
        vendor.platform.clock().wait(SETTLE_NS);
        let mut came = 0;
        for queue in 0..vendor.config.queues {
            if vendor.rx[usize::from(queue)].is_some() {
                came += rx::discard(vendor, queue);
            }
            if vendor.tx[usize::from(queue)].is_some() {
                // A queue that has failed is not drained.
                let _ = (vendor.ways.clean)(vendor, queue);
            }
        }
        if came == 0 && vendor.tx.iter().flatten().all(|tx| tx.slots.iter().all(Option::is_none)) {
            return;
        }
    }
}

/// Stop what is parked on the card and give it back; what can't be stopped stays parked with its memory.
fn retry_parked(vendor: &mut Vendor) -> Result<(), Fault> {
    let (tx, rx) = std::mem::take(&mut vendor.parked);
    let mut result = Ok(());
    let (mut stopped_tx, mut stopped_rx) = (Vec::new(), Vec::new());
    for queue in tx {
        match invalidate_tx(vendor, queue.queue) {
            Ok(()) => stopped_tx.push(queue),
            Err(fault) => {
                result = result.and(Err(fault));
                vendor.parked.0.push(queue);
            }
        }
    }
    for queue in rx {
        match invalidate_rx(vendor, queue.queue) {
            Ok(()) => stopped_rx.push(queue),
            Err(fault) => {
                result = result.and(Err(fault));
                vendor.parked.1.push(queue);
            }
        }
    }
    vendor.platform.clock().wait(SETTLE_NS);
    stopped_tx.into_iter().for_each(|queue| (vendor.ways.clear_tx)(vendor, queue));
    stopped_rx.into_iter().for_each(|queue| (vendor.ways.clear_rx)(vendor, queue));
    result
}

/// The card forgets a transmit queue.
pub fn invalidate_tx(vendor: &Vendor, queue: u16) -> Result<(), Fault> {
    let qid = base(vendor) + queue;
    [SwDescH2c, HwDescH2c, CreditH2c]
        .into_iter()
        .try_for_each(|selector| command(vendor, selector, ContextOp::Invalidate, qid))
}

/// The card forgets a receive queue.
pub fn invalidate_rx(vendor: &Vendor, queue: u16) -> Result<(), Fault> {
    let qid = base(vendor) + queue;
    [SwDescC2h, HwDescC2h, CreditC2h, Prefetch, Completion]
        .into_iter()
        .try_for_each(|selector| command(vendor, selector, ContextOp::Invalidate, qid))
}

/// Everything in a transmit queue is given back; frames that were never sent are counted.
pub fn clear_tx(vendor: &mut Vendor, mut queue: TxQueue) {
    for index in 0..queue.wrap() {
        if queue.slots[usize::from(index)].is_some() {
            vendor.totals.tx_abandoned += 1;
            tx::release(vendor, &mut queue, index);
        }
    }
}

/// Every page of a receive queue is unmapped and freed.
pub fn clear_rx(vendor: &mut Vendor, mut queue: RxQueue) {
    let dma = vendor.platform.dma();
    for page in queue.slots.iter_mut().filter_map(Option::take) {
        dma.free_page(dma.unmap(page, 0));
    }
}

/// Start a queue pair afresh.
pub(super) fn restart(vendor: &mut Vendor, queue: u16) -> Result<(), Fault> {
    let at = usize::from(queue);
    vendor.parked.0.extend(vendor.tx[at].take());
    vendor.parked.1.extend(vendor.rx[at].take());
    retry_parked(vendor)?;
    open_tx(vendor, queue)?;
    match RxQueue::new(vendor, queue) {
        Ok(rx) => (vendor.ways.open_rx)(vendor, rx),
        Err((fault, rx)) => {
            rx.into_iter().for_each(|rx| (vendor.ways.undo_rx)(vendor, *rx));
            Err(fault)
        }
    }
}

/// BAR0, for those who write doorbells.
pub(super) const DOORBELLS: Bar = Bar::Qdma;
