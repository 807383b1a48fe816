//! The transmit path.

use crate::frames::MIN_FRAME;
use crate::gallery::heap::{Block, deref};
use crate::gallery::nic::Refusal;
use crate::gallery::vendor::tx::release;
use crate::gallery::vendor::{Fault, Vendor};

/// The helper that pads frees the buffer when it fails, and the caller goes on with it.
pub fn pad_and_go_on(vendor: &mut Vendor, data: &mut Vec<u8>, skb: Block) -> Result<(), Refusal> {
    match vendor.heap.alloc("padding") {
        Some(padding) => vendor.heap.free(padding),
        None => vendor.heap.free(skb),
    }
    data.resize(MIN_FRAME, 0);
    Ok(())
}

/// The frame is dropped, and those before it that wait for its doorbell are forgotten.
pub fn return_early(_vendor: &mut Vendor, _queue: u16) -> Result<(), Fault> {
    Ok(())
}

/// The stack is never told to wait.
pub fn always(_vendor: &mut Vendor, _queue: u16) -> bool {
    true
}

/// There is no timer.
pub fn no_timer(_vendor: &Vendor) -> Option<u64> {
    None
}

/// The card's index is believed.
pub fn trust_cidx(vendor: &mut Vendor, queue: u16) -> Result<(), Fault> {
    let Some(mut tx) = vendor.tx[usize::from(queue)].take() else { return Ok(()) };
    let to = tx.status().cidx;
    // The work is counted in 16 bits, and wraps.
    let work = to.wrapping_sub(tx.cidx);
    let work = if to >= tx.cidx || to >= tx.wrap() { work } else { work.wrapping_add(tx.wrap()) };
    for _ in 0..work {
        let index = tx.cidx;
        release(vendor, &mut tx, index);
        tx.cidx = tx.after(tx.cidx);
    }
    vendor.tx[usize::from(queue)] = Some(tx);
    Ok(())
}

/// The cleaner's index moves on and its lock is open before its last stores are seen: a slot that it is about to empty is
/// posted to again, and the new frame is freed in the old one's place. What a machine with weak ordering makes of a lock
/// that is given back without release, played by one thread.
pub fn release_late(vendor: &mut Vendor, queue: u16) -> Result<(), Fault> {
    let mut tx = deref(vendor.tx[usize::from(queue)].take(), &format!("tx_queue[{queue}]"));
    let (wrap, cidx, pidx) = (tx.wrap(), tx.cidx, tx.pidx);
    let ahead = |index: u16| (index + wrap - cidx) % wrap;
    let (posted_again, still): (Vec<u16>, Vec<u16>) = tx.late.drain(..).partition(|&index| ahead(index) < ahead(pidx));
    posted_again.into_iter().for_each(|index| release(vendor, &mut tx, index));
    tx.late = still;
    let to = tx.status().cidx;
    while tx.cidx != to {
        tx.late.push(tx.cidx);
        tx.cidx = tx.after(tx.cidx);
    }
    tx.stopped = false;
    vendor.tx[usize::from(queue)] = Some(tx);
    Ok(())
}
