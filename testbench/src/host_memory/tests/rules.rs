//! Each rule is broken once, and once its legal neighbour is done. What is broken is reported, and nothing else; the
//! neighbour is silent.

use super::*;

/// What someone does to fresh memory; leaks are looked for after it.
type Deed = fn(&SharedMemory, &FunctionDma);

/// Rules, each with a way to break it and a way that is just right.
const CASES: &[(Rule, Deed, Deed)] = &[
    (Rule::DmaUnmapped, reads_nowhere, reads_a_region),
    (Rule::DmaPastEnd, reads_past_a_region, reads_a_region),
    (Rule::DmaPastEnd, writes_past_a_page, writes_to_the_end_of_a_page),
    (Rule::DmaPastEnd, writes_into_a_guard_page, writes_to_the_end_of_a_page),
    (Rule::DmaAfterUnmap, writes_after_unmap, writes_to_the_end_of_a_page),
    (Rule::DmaAfterFree, writes_after_free, writes_to_the_end_of_a_page),
    (Rule::DmaAfterFree, reads_a_freed_region, reads_a_region),
    (Rule::DmaWrongFunction, reads_as_another_function, reads_a_region),
    (Rule::DmaWrongFunction, writes_as_another_function, writes_to_the_end_of_a_page),
    (Rule::DmaWrongDirection, writes_what_it_may_read, writes_to_the_end_of_a_page),
    (Rule::DmaWrongDirection, reads_what_it_may_write, sends_from_a_bidirectional_page),
    (Rule::DmaWhileCpuOwns, writes_while_the_cpu_owns, writes_when_it_owns_again),
    (Rule::DmaOutsideBuffer, writes_into_headroom, writes_the_whole_buffer),
    (Rule::DmaOutsideBuffer, writes_into_tailroom, writes_the_whole_buffer),
    (Rule::DmaOutsideBuffer, reads_past_a_frame, reads_a_frame),
    (Rule::DmaStaleRead, sends_with_an_unsynced_header, sends_with_a_synced_header),
    (Rule::DmaStaleRead, maps_less_than_it_sends, reads_a_frame),
    (Rule::DmaTorn, writes_a_torn_word, writes_half_a_word),
    (Rule::UnsyncedWrite, recycles_what_it_changed, recycles_what_it_changed_and_synced),
    (Rule::UnsyncedWrite, recycles_what_it_changed_behind_its_sync, recycles_what_it_only_read),
    (Rule::RangeOutsidePage, offers_a_page_behind_headroom, offers_the_rest_of_a_page),
    (Rule::RangeOutsidePage, syncs_past_the_page, syncs_the_whole_page),
    (Rule::ForeignPage, syncs_another_functions_page, maps_another_functions_page),
    (Rule::FragmentsOut, frees_a_page_whose_fragment_is_out, frees_a_page_whose_fragment_is_back),
    (Rule::FragmentAlone, frees_a_fragment, frees_a_page_whose_fragment_is_back),
    (Rule::FragmentAlone, unmaps_a_fragment, frees_a_page_whose_fragment_is_back),
    (Rule::LeakedMapping, forgets_a_mapped_page, maps_another_functions_page),
    (Rule::LeakedPage, forgets_a_page, maps_another_functions_page),
    (Rule::LeakedFragment, forgets_a_fragment, frees_a_page_whose_fragment_is_back),
    (Rule::LeakedRegion, forgets_a_region, reads_a_region),
];

/// What is reported on the way, and what at the end.
fn reports_of(deed: Deed) -> [Vec<Violation>; 2] {
    let (memory, dma) = checked();
    deed(&memory, &dma);
    [memory.violations(), memory.leaks()]
}

fn rules_of(reports: &[Violation]) -> Vec<Rule> {
    reports.iter().map(|report| report.rule).collect()
}

fn text_of(reports: &[Violation]) -> String {
    reports.iter().map(|report| format!("{report}\n")).collect()
}

#[test]
fn each_rule_is_broken_by_something() {
    for rule in Rule::ALL {
        assert!(CASES.iter().any(|(broken, ..)| broken == rule), "{rule}");
    }
}

#[test]
fn what_is_broken_is_reported_and_nothing_else() {
    for (i, (rule, breaks, _)) in CASES.iter().enumerate() {
        let [violations, leaks] = reports_of(*breaks);
        let text = text_of(&violations) + &text_of(&leaks);
        match rule.id().starts_with("leaked-") {
            // A page whose fragment is lost is lost as well.
            true => assert!(violations.is_empty() && rules_of(&leaks).contains(rule), "case {i}: {text}"),
            false => assert_eq!(rules_of(&violations), [*rule], "case {i}: {text}"),
        }
    }
}

#[test]
fn the_legal_neighbour_is_silent() {
    for (i, (rule, _, legal)) in CASES.iter().enumerate() {
        let text = reports_of(*legal).map(|reports| text_of(&reports)).concat();
        assert!(text.is_empty(), "case {i}, {rule}:\n{text}");
    }
}

fn free(dma: &FunctionDma, page: DevicePage) {
    dma.free_page(dma.unmap(page, 0));
}

/// A page that frames are received into, behind 256 bytes of headroom, and the address in its descriptor.
fn receive_page(dma: &FunctionDma) -> (DevicePage, u64) {
    let (page, _) = device_page(dma, Direction::Bidirectional);
    let addr = dma.buffer_addr(&page, 256, 2048).0;
    (page, addr)
}

fn reads_nowhere(memory: &SharedMemory, _: &FunctionDma) {
    let _ = memory.lend().read(F0, 0x1234, &mut [0; 8]);
}

fn reads_a_region(memory: &SharedMemory, dma: &FunctionDma) {
    let region = dma.alloc_coherent(64).expect("a region");
    memory.lend().read(F0, driver_core::Coherent::dma_addr(&region).0, &mut [0; 64]).expect("its own");
}

fn reads_past_a_region(memory: &SharedMemory, dma: &FunctionDma) {
    let region = dma.alloc_coherent(64).expect("a region");
    let _ = memory.lend().read(F0, driver_core::Coherent::dma_addr(&region).0 + 56, &mut [0; 16]);
}

fn reads_a_freed_region(memory: &SharedMemory, dma: &FunctionDma) {
    let region = dma.alloc_coherent(64).expect("a region");
    let addr = driver_core::Coherent::dma_addr(&region).0;
    drop(region);
    let _ = memory.lend().read(F0, addr, &mut [0; 16]);
}

fn reads_as_another_function(memory: &SharedMemory, dma: &FunctionDma) {
    let region = dma.alloc_coherent(64).expect("a region");
    let _ = memory.lend().read(F1, driver_core::Coherent::dma_addr(&region).0, &mut [0; 16]);
}

fn writes_as_another_function(memory: &SharedMemory, dma: &FunctionDma) {
    let (page, addr) = device_page(dma, Direction::FromDevice);
    let _ = memory.lend().write(F1, addr, &[0; 16]);
    free(dma, page);
}

fn writes_past_a_page(memory: &SharedMemory, dma: &FunctionDma) {
    let (page, addr) = device_page(dma, Direction::FromDevice);
    let _ = memory.lend().write(F0, addr + 4088, &[0; 9]);
    free(dma, page);
}

fn writes_into_a_guard_page(memory: &SharedMemory, dma: &FunctionDma) {
    let (page, addr) = device_page(dma, Direction::FromDevice);
    let _ = memory.lend().write(F0, addr + 4100, &[0; 9]);
    free(dma, page);
}

fn writes_to_the_end_of_a_page(memory: &SharedMemory, dma: &FunctionDma) {
    let (page, addr) = device_page(dma, Direction::FromDevice);
    memory.lend().write(F0, addr + 4088, &[0; 8]).expect("its own");
    free(dma, page);
}

fn writes_after_unmap(memory: &SharedMemory, dma: &FunctionDma) {
    let (page, addr) = device_page(dma, Direction::FromDevice);
    let page = dma.unmap(page, 0);
    let _ = memory.lend().write(F0, addr, &[0; 8]);
    dma.free_page(page);
}

fn writes_after_free(memory: &SharedMemory, dma: &FunctionDma) {
    let (page, addr) = device_page(dma, Direction::FromDevice);
    free(dma, page);
    let _ = memory.lend().write(F0, addr, &[0; 8]);
}

fn writes_what_it_may_read(memory: &SharedMemory, dma: &FunctionDma) {
    let (page, addr) = device_page(dma, Direction::ToDevice);
    let _ = memory.lend().write(F0, addr, &[0; 8]);
    free(dma, page);
}

fn reads_what_it_may_write(memory: &SharedMemory, dma: &FunctionDma) {
    let (page, addr) = device_page(dma, Direction::FromDevice);
    let _ = memory.lend().read(F0, addr, &mut [0; 8]);
    free(dma, page);
}

fn sends_from_a_bidirectional_page(memory: &SharedMemory, dma: &FunctionDma) {
    let (page, addr) = receive_page(dma);
    memory.lend().write(F0, addr, &[1; 100]).expect("its own");
    // Handed over unread: what the device reads is what it wrote.
    let page = dma.sync_for_cpu(page, 0, 0);
    let page = dma.sync_for_device(page, 0, 0).expect("mapped");
    let addr = dma.buffer_addr(&page, 256, 100).0;
    memory.lend().read(F0, addr, &mut [0; 100]).expect("its own");
    free(dma, page);
}

fn writes_while_the_cpu_owns(memory: &SharedMemory, dma: &FunctionDma) {
    let (page, addr) = device_page(dma, Direction::FromDevice);
    let page = dma.sync_for_cpu(page, 0, 64);
    let _ = memory.lend().write(F0, addr, &[0; 8]);
    dma.free_page(page);
}

fn writes_when_it_owns_again(memory: &SharedMemory, dma: &FunctionDma) {
    let (page, addr) = device_page(dma, Direction::FromDevice);
    let page = dma.sync_for_cpu(page, 0, 64);
    let page = dma.sync_for_device(page, 0, 0).expect("mapped");
    memory.lend().write(F0, addr, &[0; 8]).expect("its own");
    free(dma, page);
}

fn writes_into_headroom(memory: &SharedMemory, dma: &FunctionDma) {
    let (page, addr) = receive_page(dma);
    memory.lend().write(F0, addr - 1, &[0; 8]).expect("an IOMMU would let it through");
    free(dma, page);
}

fn writes_into_tailroom(memory: &SharedMemory, dma: &FunctionDma) {
    let (page, addr) = receive_page(dma);
    memory.lend().write(F0, addr + 2041, &[0; 8]).expect("an IOMMU would let it through");
    free(dma, page);
}

fn writes_the_whole_buffer(memory: &SharedMemory, dma: &FunctionDma) {
    let (page, addr) = receive_page(dma);
    memory.lend().write(F0, addr, &[0; 2048]).expect("its own");
    free(dma, page);
}

/// A frame of 100 bytes in a page of its own, offered to be sent.
fn send_page(dma: &FunctionDma, mapped_len: usize) -> (DevicePage, u64) {
    let page = dma.map(page_with(dma, 1), Direction::ToDevice, mapped_len).expect("mapped");
    let addr = dma.buffer_addr(&page, 0, 100).0;
    (page, addr)
}

fn reads_a_frame(memory: &SharedMemory, dma: &FunctionDma) {
    let (page, addr) = send_page(dma, 100);
    memory.lend().read(F0, addr, &mut [0; 100]).expect("its own");
    free(dma, page);
}

fn reads_past_a_frame(memory: &SharedMemory, dma: &FunctionDma) {
    let (page, addr) = send_page(dma, 100);
    memory.lend().read(F0, addr, &mut [0; 101]).expect("an IOMMU would let it through");
    free(dma, page);
}

fn maps_less_than_it_sends(memory: &SharedMemory, dma: &FunctionDma) {
    let (page, addr) = send_page(dma, 99);
    memory.lend().read(F0, addr, &mut [0; 100]).expect("an IOMMU would let it through");
    free(dma, page);
}

/// Receive a frame, put a header of 14 bytes before it, and send both.
fn send_with_header(memory: &SharedMemory, dma: &FunctionDma, synced: (usize, usize)) {
    let (page, addr) = receive_page(dma);
    memory.lend().write(F0, addr, &[1; 100]).expect("its own");
    let mut page = dma.sync_for_cpu(page, 256, 100);
    page.bytes_mut()[242..256].fill(2);
    let page = dma.sync_for_device(page, synced.0, synced.1).expect("mapped");
    let addr = dma.buffer_addr(&page, 242, 114).0;
    memory.lend().read(F0, addr, &mut [0; 114]).expect("its own");
    free(dma, page);
}

fn sends_with_an_unsynced_header(memory: &SharedMemory, dma: &FunctionDma) {
    send_with_header(memory, dma, (256, 100));
}

fn sends_with_a_synced_header(memory: &SharedMemory, dma: &FunctionDma) {
    send_with_header(memory, dma, (242, 114));
}

fn writes_a_torn_word(memory: &SharedMemory, dma: &FunctionDma) {
    let region = dma.alloc_coherent(64).expect("a region");
    memory.lend().write(F0, driver_core::Coherent::dma_addr(&region).0 + 4, &[0; 8]).expect("its own");
}

fn writes_half_a_word(memory: &SharedMemory, dma: &FunctionDma) {
    let region = dma.alloc_coherent(64).expect("a region");
    memory.lend().write(F0, driver_core::Coherent::dma_addr(&region).0 + 4, &[0; 4]).expect("its own");
}

/// Receive a frame, change bytes of it, and give the page back with a sync of some.
fn recycle(memory: &SharedMemory, dma: &FunctionDma, changed: std::ops::Range<usize>, synced: (usize, usize)) {
    let (page, addr) = receive_page(dma);
    memory.lend().write(F0, addr, &[1; 100]).expect("its own");
    let mut page = dma.sync_for_cpu(page, 256, 100);
    page.bytes_mut()[changed].fill(2);
    free(dma, dma.sync_for_device(page, synced.0, synced.1).expect("mapped"));
}

fn recycles_what_it_changed(memory: &SharedMemory, dma: &FunctionDma) {
    recycle(memory, dma, 256..268, (0, 0));
}

fn recycles_what_it_changed_behind_its_sync(memory: &SharedMemory, dma: &FunctionDma) {
    recycle(memory, dma, 350..356, (256, 64));
}

fn recycles_what_it_changed_and_synced(memory: &SharedMemory, dma: &FunctionDma) {
    recycle(memory, dma, 240..268, (240, 28));
}

fn recycles_what_it_only_read(memory: &SharedMemory, dma: &FunctionDma) {
    recycle(memory, dma, 0..0, (0, 0));
}

fn offers_a_page_behind_headroom(_: &SharedMemory, dma: &FunctionDma) {
    let (page, _) = device_page(dma, Direction::FromDevice);
    dma.buffer_addr(&page, 256, 4096);
    free(dma, page);
}

fn offers_the_rest_of_a_page(_: &SharedMemory, dma: &FunctionDma) {
    let (page, _) = device_page(dma, Direction::FromDevice);
    dma.buffer_addr(&page, 256, 3840);
    free(dma, page);
}

fn syncs_past_the_page(_: &SharedMemory, dma: &FunctionDma) {
    let (page, _) = device_page(dma, Direction::FromDevice);
    dma.free_page(dma.sync_for_cpu(page, usize::MAX, 2));
}

fn syncs_the_whole_page(_: &SharedMemory, dma: &FunctionDma) {
    let (page, _) = device_page(dma, Direction::FromDevice);
    dma.free_page(dma.sync_for_cpu(page, 0, PAGE_SIZE));
}

fn syncs_another_functions_page(_: &SharedMemory, dma: &FunctionDma) {
    let other = FunctionDma { shared: Arc::clone(&dma.shared), func: F1 };
    let page = dma.sync_for_device(mapped_page(&other), 0, 0).expect("mapped");
    free(&other, page);
}

fn maps_another_functions_page(_: &SharedMemory, dma: &FunctionDma) {
    let other = FunctionDma { shared: Arc::clone(&dma.shared), func: F1 };
    let page = dma.map(page_with(&other, 0), Direction::ToDevice, 0).expect("mapped");
    free(dma, page);
}

fn frees_a_page_whose_fragment_is_out(_: &SharedMemory, dma: &FunctionDma) {
    let mut page = mapped_page(dma);
    let _fragment = dma.split(&mut page, 2048).expect("half");
    dma.free_page(page);
}

fn frees_a_page_whose_fragment_is_back(_: &SharedMemory, dma: &FunctionDma) {
    let mut page = mapped_page(dma);
    let fragment = dma.split(&mut page, 2048).expect("half");
    dma.join(&mut page, fragment).expect("its own");
    dma.free_page(page);
}

fn frees_a_fragment(_: &SharedMemory, dma: &FunctionDma) {
    let mut page = mapped_page(dma);
    let fragment = dma.split(&mut page, 2048).expect("half");
    dma.free_page(fragment);
}

fn unmaps_a_fragment(_: &SharedMemory, dma: &FunctionDma) {
    let mut page = mapped_page(dma);
    let fragment = dma.split(&mut page, 2048).expect("half");
    let fragment = dma.unmap(dma.sync_for_device(fragment, 0, 0).expect("mapped"), 0);
    dma.join(&mut page, fragment).expect("its own");
    dma.free_page(page);
}

fn forgets_a_mapped_page(_: &SharedMemory, dma: &FunctionDma) {
    let _page = device_page(dma, Direction::FromDevice);
}

fn forgets_a_page(_: &SharedMemory, dma: &FunctionDma) {
    let _page = dma.alloc_page();
}

fn forgets_a_fragment(_: &SharedMemory, dma: &FunctionDma) {
    let mut page = mapped_page(dma);
    let _fragment = dma.split(&mut page, 2048).expect("half");
}

fn forgets_a_region(_: &SharedMemory, dma: &FunctionDma) {
    std::mem::forget(dma.alloc_coherent(64));
}
