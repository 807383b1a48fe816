//! Coherent memory: words cross both ways, whole.

use driver_core::Coherent;

use super::*;

#[test]
fn a_status_word_crosses_both_ways() {
    let (memory, dma) = checked();
    let region = dma.alloc_coherent(4096).expect("a region");
    memory.lend().write(F0, region.dma_addr().0 + 8, &0x1122_3344_5566_7788u64.to_le_bytes()).expect("mapped");
    assert_eq!(region.load64(8), 0x1122_3344_5566_7788);
    assert_eq!(region.load16(10), 0x5566);
    region.store32(12, 0xdead_beef);
    let mut word = [0; 8];
    memory.lend().read(F0, region.dma_addr().0 + 8, &mut word).expect("mapped");
    assert_eq!(word, 0xdead_beef_5566_7788u64.to_le_bytes());
}

#[test]
fn an_unaligned_write_leaves_its_neighbours_alone() {
    let (memory, dma) = checked();
    let region = dma.alloc_coherent(64).expect("a region");
    (0..8).for_each(|i| region.store64(8 * i, u64::MAX));
    memory.lend().write(F0, region.dma_addr().0 + 5, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]).expect("mapped");
    assert_eq!(region.load64(0).to_le_bytes(), [255, 255, 255, 255, 255, 1, 2, 3]);
    assert_eq!(region.load64(8).to_le_bytes(), [4, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(region.load64(16), u64::MAX);
}

#[test]
fn the_last_store_is_told() {
    let (memory, dma) = checked();
    let region = dma.alloc_coherent(64).expect("a region");
    memory.set_now(Time(7_000));
    region.store64(16, 1);
    assert!(memory.lend().read(F1, region.dma_addr().0, &mut [0; 8]).is_err());
    let report = memory.violations()[0].to_string();
    assert!(report.contains("CPU      store of 8 bytes at offset 16, at 7.000 ns"), "{report}");
}
