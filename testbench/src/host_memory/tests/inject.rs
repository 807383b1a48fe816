//! Requests that fail.

use driver_core::DmaError;

use super::*;

#[test]
fn allocations_fail_on_request() {
    let (memory, dma) = checked();
    memory.fail_allocations(1, 2);
    assert!(dma.alloc_page().is_ok());
    assert_eq!(dma.alloc_page().expect_err("the second"), DmaError::OutOfMemory { len_bytes: PAGE_SIZE });
    assert!(dma.alloc_coherent(64).is_err());
    assert!(dma.alloc_page().is_ok());
    assert_eq!(memory.failed_requests(), 2);
}

#[test]
fn each_kind_fails_by_itself() {
    for kind in Request::ALL {
        let (memory, dma) = checked();
        memory.fail(kind, 1, 1);
        let asked = (0..3).map(|_| {
            let page = dma.alloc_page();
            let region = dma.alloc_coherent(64).is_err();
            let mapping = dma.map(page_with(&SharedMemory::new(true).function(F0), 0), Direction::ToDevice, 0).is_err();
            [page.is_err(), region, mapping].map(|failed| failed as u32)
        });
        let failed = asked.fold([0; 3], |sum, one| [sum[0] + one[0], sum[1] + one[1], sum[2] + one[2]]);
        let expected = Request::ALL.map(|other| u32::from(other == kind));
        assert_eq!(failed, expected, "{kind:?}");
        assert_eq!(memory.failed_requests(), 1, "{kind:?}");
    }
}

#[test]
fn a_mapping_that_fails_returns_the_page() {
    let (memory, dma) = checked();
    memory.fail(Request::Mapping, 0, u64::MAX);
    let refused = dma.map(page_with(&dma, 9), Direction::ToDevice, 64).expect_err("no room");
    assert_eq!(refused.page.bytes(), [9; PAGE_SIZE]);
    memory.fail_nothing();
    dma.free_page(dma.unmap(dma.map(refused.page, Direction::ToDevice, 64).expect("room"), 0));
    assert_eq!(memory.requests(Request::Mapping), 2);
    assert!(memory.violations().is_empty() && memory.leaks().is_empty());
}
