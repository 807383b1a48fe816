//! What a report says.

use super::*;

/// Receive into a page behind headroom, then write 64 bytes past the buffer.
fn write_past_the_buffer() -> (Violation, u32) {
    let (memory, dma) = checked();
    let line = line!() + 1;
    let page = dma.alloc_page().expect("a page");
    let page = dma.map(page, Direction::FromDevice, 0).expect("mapped");
    memory.set_now(Time(16_000));
    let addr = dma.buffer_addr(&page, 256, 3072).0;
    memory.set_now(Time(1_100_000));
    memory.lend().write(F0, addr, &[1; 60]).expect("its buffer");
    memory.set_now(Time(1_200_000));
    memory.lend().write(F0, addr + 3136, &[1; 64]).expect("an IOMMU would let it through");
    (memory.violations().remove(0), line)
}

#[test]
fn what_where_when_and_whose_fault() {
    let (violation, line) = write_past_the_buffer();
    let file = file!();
    let text = violation.to_string();
    let mut lines = text.lines();
    let mut expect = |line: &str| assert_eq!(lines.next().unwrap_or_default(), line, "{text}");
    expect("host memory: dma-outside-buffer: DMA inside the page, but outside the buffer that was offered");
    expect("  what     DMA write of 64 bytes at 0x1000000d40, function 0, at 1200.000 ns");
    expect("  where    page 0x1000000000, offset 3392 to 3456; the buffer is 256 to 3328");
    let cells = "----================================================-!----------";
    expect(&format!("           |{cells}| 64 bytes each: = buffer, # access in it, ! access beside it"));
    expect("  owner    the device, mapped FromDevice, of function 0");
    expect(&format!("  origin   alloc, at 0.000 ns ({file}:{line}:20)"));
    expect(&format!("  CPU      buffer_addr of 3072 bytes at offset 256, at 16.000 ns ({file}:{}:20)", line + 3));
    expect("  device   DMA write of 60 bytes at offset 256, at 1100.000 ns");
    expect(&format!("  before   map of 0 bytes at offset 0, at 0.000 ns ({file}:{}:20)", line + 1));
    expect(&format!("  help     {}", Rule::DmaOutsideBuffer.advice()));
    assert_eq!(lines.next(), None);
}

#[test]
fn a_report_can_be_told_by_its_rule() {
    assert_eq!(write_past_the_buffer().0.rule_id(), "dma-outside-buffer");
}

#[test]
fn another_functions_memory_is_told_with_its_owner() {
    let (memory, dma) = checked();
    let (_page, addr) = device_page(&dma, Direction::FromDevice);
    let region = dma.alloc_coherent(64).expect("a region");
    let base = driver_core::Coherent::dma_addr(&region).0;
    for addr in [addr, base] {
        assert!(memory.lend().read(F1, addr, &mut [0; 8]).is_err());
    }
    for violation in memory.violations() {
        let text = violation.to_string();
        assert!(
            text.contains("of function 0") && text.contains(", function 1,") && text.contains("host_memory/tests/"),
            "{text}"
        );
    }
}

#[test]
fn dma_after_unmap_tells_who_unmapped_and_freed() {
    let (memory, dma) = checked();
    let (page, addr) = device_page(&dma, Direction::FromDevice);
    let unmap = line!() + 1;
    let page = dma.unmap(page, 0);
    dma.free_page(page);
    assert!(matches!(memory.lend().write(F0, addr, &[1]), Err(DmaFault::Unmapped { .. })));
    let text = memory.violations()[0].to_string();
    let at = |line: u32| format!("{}:{line}:", file!());
    assert!(text.contains(&at(unmap)) && text.contains(&at(unmap + 1)), "{text}");
    assert!(text.contains("nobody: the page was freed"), "{text}");
}

#[test]
fn a_leak_names_the_line_that_allocated() {
    let (memory, dma) = checked();
    let line = line!() + 1;
    let _page = dma.alloc_page().expect("a page");
    let text = memory.leaks()[0].to_string();
    assert!(text.contains("leaked-page") && text.contains(&format!("{}:{line}:", file!())), "{text}");
}

#[test]
fn history_is_the_last_eight_actions_oldest_first() {
    let (memory, dma) = checked();
    let (_page, addr) = device_page(&dma, Direction::FromDevice);
    for i in 0..20 {
        memory.set_now(Time(i));
        memory.lend().write(F0, addr + i, &[0]).expect("the device owns it");
    }
    let history = memory.leaks()[0].life.history.clone();
    assert_eq!(history.iter().map(|action| action.time.0).collect::<Vec<_>>(), (12..20).collect::<Vec<_>>());
}

#[test]
fn reports_beyond_the_first_of_a_rule_are_counted() {
    let (memory, _dma) = checked();
    for _ in 0..1_000 {
        assert!(memory.lend().read(F0, 0, &mut [0]).is_err());
    }
    assert_eq!(
        (memory.violations().len() as u64 + memory.violations_dropped(), memory.violations().len()),
        (1_000, 20)
    );
}

#[test]
fn checks_off_still_refuses_and_tells() {
    let memory = SharedMemory::new(false);
    let dma = memory.function(F0);
    let (page, addr) = device_page(&dma, Direction::ToDevice);
    assert!(memory.lend().write(F0, addr, &[0]).is_err());
    dma.free_page(dma.unmap(page, 0));
    assert!(memory.lend().read(F0, addr, &mut [0]).is_err());
    assert_eq!(broken(&memory), [Rule::DmaWrongDirection, Rule::DmaAfterUnmap]);
}

#[test]
fn each_sides_last_action_is_kept_however_long_ago() {
    let (memory, dma) = checked();
    let (mut page, addr) = device_page(&dma, Direction::FromDevice);
    memory.set_now(Time(5_000));
    memory.lend().write(F0, addr, &[0; 4]).expect("the device owns it");
    for i in 0..20 {
        memory.set_now(Time(10_000 + i));
        page = dma.sync_for_device(dma.sync_for_cpu(page, 0, 0), 0, 0).expect("mapped");
    }
    let life = memory.leaks()[0].life.clone();
    assert_eq!(life.last_device.map(|action| (action.time, action.len_bytes)), Some((Time(5_000), 4)));
    assert_eq!(life.last_cpu.map(|action| (action.time, action.deed)), Some((Time(10_019), Deed::SyncForDevice)));
}
