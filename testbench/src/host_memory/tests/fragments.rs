//! Pages that are cut and joined again.

use super::*;

#[test]
fn a_fragment_is_a_page_of_its_own() {
    for checks in [false, true] {
        let memory = SharedMemory::new(checks);
        let dma = memory.function(F0);
        let mut page = mapped_page(&dma);
        let base = page.dma_addr().expect("mapped").0;
        let mut first = dma.split(&mut page, 2048).expect("half");
        assert_eq!((first.bytes().len(), page.bytes().len()), (2048, 2048));
        assert_eq!((first.dma_addr().expect("mapped").0, page.dma_addr().expect("mapped").0), (base, base + 2048));
        first.bytes_mut()[100..104].copy_from_slice(&[1, 2, 3, 4]);
        let first = dma.sync_for_device(first, 100, 4).expect("mapped");
        let page = dma.sync_for_device(page, 0, 2048).expect("mapped");
        let mut bytes = [0; 4];
        memory.lend().read(F0, base + 100, &mut bytes).expect("the device owns it");
        assert_eq!(bytes, [1, 2, 3, 4]);
        memory.lend().write(F0, base + 100, &[5; 4]).expect("the device owns it");
        memory.lend().write(F0, base + 2148, &[6; 4]).expect("the device owns it");
        assert_eq!(dma.sync_for_cpu(first, 100, 4).bytes()[100..104], [5; 4]);
        assert_eq!(dma.sync_for_cpu(page, 100, 4).bytes()[100..104], [6; 4]);
        assert!(memory.violations().is_empty());
    }
}

#[test]
fn each_fragment_has_its_own_owner() {
    let (memory, dma) = checked();
    let mut page = mapped_page(&dma);
    let fragment = dma.split(&mut page, 1024).expect("a quarter");
    let base = fragment.dma_addr().expect("mapped").0;
    let _rest = dma.sync_for_device(page, 0, 3072).expect("mapped");
    assert!(memory.lend().write(F0, base, &[0; 8]).is_err(), "the CPU owns the fragment");
    assert!(memory.lend().write(F0, base + 1024, &[0; 8]).is_ok(), "the device owns the rest");
    assert!(memory.lend().write(F0, base + 1020, &[0; 8]).is_err(), "across both");
    assert_eq!(broken(&memory), [Rule::DmaWhileCpuOwns, Rule::DmaPastEnd]);
}

#[test]
fn each_fragment_has_its_own_buffer() {
    let (memory, dma) = checked();
    let mut page = mapped_page(&dma);
    let fragments = [(); 2].map(|()| {
        let fragment = dma.split(&mut page, 2048).expect("half");
        dma.sync_for_device(fragment, 0, 0).expect("mapped")
    });
    let [_, second] = fragments.map(|fragment| dma.buffer_addr(&fragment, 256, 1024).0);
    memory.lend().write(F0, second, &[0; 1024]).expect("the device owns it");
    assert_eq!(broken(&memory), []);
    memory.lend().write(F0, second - 1, &[0; 1]).expect("an IOMMU would let it through");
    assert_eq!(broken(&memory), [Rule::DmaOutsideBuffer]);
}

#[test]
fn a_page_is_whole_when_its_last_fragment_is_back() {
    let (memory, dma) = checked();
    let mut page = mapped_page(&dma);
    let first = dma.split(&mut page, 2048).expect("half");
    let second = dma.split(&mut page, 2048).expect("the other half");
    assert_eq!((page.bytes().len(), memory.counts().fragments), (0, 2));
    assert!(dma.split(&mut page, 1).is_err(), "nothing is left");
    dma.join(&mut page, first).expect("its own");
    assert_eq!(page.bytes().len(), 0);
    dma.join(&mut page, second).expect("its own");
    assert_eq!(page.bytes().len(), PAGE_SIZE);
    dma.free_page(page);
    assert_eq!(memory.counts(), MemoryCounts::default());
    assert!(memory.violations().is_empty());
}

#[test]
fn what_is_no_fragment_of_the_page_is_refused() {
    let (memory, dma) = checked();
    let mut plain = page_with(&dma, 0);
    assert!(dma.split(&mut plain, 2048).is_err(), "not mapped");
    let (mut page, mut other) = (mapped_page(&dma), mapped_page(&dma));
    let mut fragment = dma.split(&mut page, 2048).expect("half");
    assert!(dma.split(&mut fragment, 1024).is_err(), "a fragment");
    assert!(dma.split(&mut page, 0).is_err());
    let refused = dma.join(&mut other, fragment).expect_err("of another page");
    dma.join(&mut page, refused.page).expect("its own");
    let whole = dma.join(&mut page, other).expect_err("no fragment").page;
    for page in [plain, page, whole] {
        dma.free_page(page);
    }
    assert!(memory.violations().is_empty());
}

#[test]
fn a_fragment_whose_page_is_gone_is_of_no_use() {
    let (memory, dma) = checked();
    let mut page = mapped_page(&dma);
    let fragment = dma.split(&mut page, 2048).expect("half");
    let addr = fragment.dma_addr().expect("mapped").0;
    let fragment = dma.sync_for_device(fragment, 0, 0).expect("mapped");
    dma.free_page(page);
    assert!(memory.lend().write(F0, addr, &[0]).is_err(), "its mapping is gone");
    let fragment = dma.sync_for_cpu(fragment, 0, 8);
    assert!(dma.sync_for_device(fragment, 0, 8).is_err());
    assert_eq!(broken(&memory), [Rule::FragmentsOut, Rule::DmaAfterFree]);
}

#[test]
fn a_fragment_that_is_unmapped_stays_mapped() {
    let (_memory, dma) = checked();
    let mut page = mapped_page(&dma);
    let fragment = dma.split(&mut page, 2048).expect("half");
    let fragment = dma.sync_for_device(fragment, 0, 0).expect("mapped");
    let fragment = dma.unmap(fragment, 0);
    assert!(fragment.dma_addr().is_some());
    dma.join(&mut page, fragment).expect("its own");
}
