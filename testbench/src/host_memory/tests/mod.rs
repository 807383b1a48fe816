//! What both sides see, what is refused, and what is reported.

mod fragments;
mod inject;
mod ownership;
mod report;
mod rules;
mod words;

use std::sync::Arc;

use driver_core::{Direction, DmaMemory, Page};
use models::host_memory::{DmaFault, HostMemory};
use regs::FuncId;

use super::*;

const F0: FuncId = FuncId(0);
const F1: FuncId = FuncId(1);

/// Memory with checks on, and function 0's view of it.
fn checked() -> (Arc<SharedMemory>, FunctionDma) {
    let memory = SharedMemory::new(true);
    let dma = memory.function(F0);
    (memory, dma)
}

fn page_with(dma: &FunctionDma, byte: u8) -> CpuPage {
    let mut page = dma.alloc_page().expect("a page");
    page.bytes_mut().fill(byte);
    page
}

/// A mapped page that the device owns, and its address.
fn device_page(dma: &FunctionDma, direction: Direction) -> (DevicePage, u64) {
    let page = dma.map(page_with(dma, 0), direction, 0).expect("mapped");
    let addr = dma.device_addr(&page).0;
    (page, addr)
}

/// A mapped page that the device had, in the CPU's hands.
fn mapped_page(dma: &FunctionDma) -> CpuPage {
    dma.sync_for_cpu(device_page(dma, Direction::Bidirectional).0, 0, 0)
}

/// The rules that were broken, in order.
fn broken(memory: &SharedMemory) -> Vec<Rule> {
    memory.violations().iter().map(|violation| violation.rule).collect()
}
