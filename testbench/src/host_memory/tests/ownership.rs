//! Streaming pages: what each side sees, and when the device may go where.

use super::*;

#[test]
fn the_cpu_sees_only_what_was_synced() {
    let (memory, dma) = checked();
    let (page, addr) = device_page(&dma, Direction::FromDevice);
    memory.lend().write(F0, addr + 256, &[1; 128]).expect("device owns it");
    let page = dma.sync_for_cpu(page, 256, 64);
    assert_eq!(page.bytes()[256..320], [1; 64]);
    assert_eq!(page.bytes()[320..384], [POISON; 64], "never synced");
    assert!(memory.violations().is_empty());
}

#[test]
fn the_device_sees_only_what_was_synced() {
    let (memory, dma) = checked();
    let page = dma.map(page_with(&dma, 7), Direction::ToDevice, 60).expect("mapped");
    let mut bytes = [0; 64];
    memory.lend().read(F0, dma.device_addr(&page).0, &mut bytes).expect("device owns it");
    assert_eq!(bytes[..60], [7; 60]);
    assert_eq!(bytes[60..], [POISON; 4]);
}

#[test]
fn with_checks_off_there_is_one_copy() {
    let memory = SharedMemory::new(false);
    let dma = memory.function(F0);
    let (page, addr) = device_page(&dma, Direction::FromDevice);
    memory.lend().write(F0, addr, &[1; 128]).expect("device owns it");
    assert_eq!(dma.sync_for_cpu(page, 0, 0).bytes()[..128], [1; 128]);
}

#[test]
fn a_refused_access_changes_nothing() {
    for checks in [false, true] {
        let memory = SharedMemory::new(checks);
        let dma = memory.function(F0);
        let page = dma.sync_for_cpu(device_page(&dma, Direction::FromDevice).0, 0, PAGE_SIZE);
        let before = page.bytes().to_vec();
        let addr = page.dma_addr().expect("mapped").0;
        let refused = memory.lend().write(F0, addr, &[1; 8]);
        assert!(matches!(refused, Err(DmaFault::Forbidden { .. })), "{refused:?}");
        let page = dma.sync_for_device(page, 0, 0).expect("mapped");
        assert!(memory.lend().write(F0, addr + PAGE_SIZE as u64 - 4, &[1; 5]).is_err());
        assert_eq!(dma.sync_for_cpu(page, 0, PAGE_SIZE).bytes(), before);
    }
}

#[test]
fn a_stale_address_is_not_soon_used_again() {
    let (memory, dma) = checked();
    let (page, addr) = device_page(&dma, Direction::ToDevice);
    let mut page = dma.unmap(page, 0);
    for _ in 0..64 {
        let mapped = dma.map(page, Direction::ToDevice, 0).expect("mapped");
        assert_ne!(dma.device_addr(&mapped).0, addr);
        page = dma.unmap(mapped, 0);
    }
    assert!(memory.lend().read(F0, addr, &mut [0]).is_err());
    assert_eq!(broken(&memory), [Rule::DmaAfterUnmap]);
}
