//! pcapng as the draft has it: sections, interfaces, clocks, options, and blocks that are damaged.

mod common;

use common::{Block, enhanced, interface, read_all, section};
use traces::read::{Direction, Fault, Note, Policy, Refusal, Verdict};

const FRAME: [u8; 61] = [9; 61];

#[test]
fn both_byte_orders_and_sections_of_either() {
    let mut file = Vec::new();
    for big in [true, false, true] {
        file.extend(section(big));
        file.extend(interface(big, 1, 0, &[(2, b"eth0".to_vec()), (9, vec![9])]));
        file.extend(interface(big, 1, 0, &[(9, vec![0x8a])]));
        file.extend(enhanced(big, 0, 5_000_000_001, &FRAME, &[]));
        file.extend(enhanced(big, 1, 1_024, &FRAME, &[]));
    }
    let read = read_all(file, Policy::default());
    assert!(read.error.is_none(), "{:?}", read.error);
    let times: Vec<_> = read.frames.iter().map(|frame| (frame.interface, frame.time_ns.unwrap())).collect();
    assert_eq!(times, (0..3).flat_map(|n| [(2 * n, 5_000_000_001), (2 * n + 1, 1_000_000_000)]).collect::<Vec<_>>());
    assert!(read.frames.iter().all(|frame| frame.data == FRAME));
}

#[test]
fn options_of_a_packet() {
    for big in [true, false] {
        let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() }.to_vec();
        let long = |value: u64| if big { value.to_be_bytes() } else { value.to_le_bytes() }.to_vec();
        let options = [
            (1, b"a comment".to_vec()),
            (2, word(1 << 24 | 2)),
            (3, vec![5, 1, 2, 3, 4]),
            (4, long(3)),
            (5, long(77)),
            (6, word(6)),
            (7, [vec![2], long(1)].concat()),
            (0x8000, vec![1; 7]),
        ];
        let file = [section(big), interface(big, 1, 0, &[]), enhanced(big, 0, 0, &FRAME, &options)].concat();
        let frame = &read_all(file, Policy::default()).frames[0];
        assert!(frame.err, "the CRC error bit drives the error flag");
        let meta = &frame.meta;
        assert_eq!(meta.direction(), Some(Direction::Outbound));
        assert_eq!(
            (meta.comment.as_deref(), meta.drop_count, meta.packet_id, meta.queue),
            (Some("a comment"), Some(3), Some(77), Some(6))
        );
        assert_eq!((meta.hash.as_ref().unwrap().algorithm, &meta.hash.as_ref().unwrap().value), (5, &vec![1, 2, 3, 4]));
        assert_eq!(meta.verdict, Some(Verdict::Xdp(1)));
    }
}

#[test]
fn an_fcs_may_be_declared_for_the_interface_or_the_packet() {
    let with_fcs = [&FRAME[..], &traces::fcs::of(&FRAME)].concat();
    let flags = (4u32 << 5).to_le_bytes().to_vec();
    for (of_interface, of_packet) in
        [(vec![(13, vec![4])], vec![]), (vec![(13, vec![32])], vec![]), (vec![], vec![(2, flags)])]
    {
        let file =
            [section(false), interface(false, 1, 0, &of_interface), enhanced(false, 0, 0, &with_fcs, &of_packet)]
                .concat();
        let read = read_all(file, Policy::default());
        assert_eq!((&read.frames[0].data[..], read.frames[0].err), (&FRAME[..], false));
    }
}

#[test]
fn simple_and_old_packets() {
    let simple = Block::new(false).u32(100).bytes(&FRAME[..40]).build(3);
    let whole = Block::new(false).u32(61).bytes(&FRAME).build(3);
    let old = Block::new(false).u16(0).u16(2).u32(0).u32(1_000_000).u32(61).u32(61).bytes(&FRAME).build(2);
    let file = [section(false), interface(false, 1, 40, &[]), simple, interface(false, 1, 0, &[]), old].concat();
    let read = read_all(file, Policy::lenient());
    assert_eq!((read.frames[0].data.len(), read.frames[0].original_len_bytes, read.frames[0].time_ns), (40, 100, None));
    assert_eq!(read.tally.notes.get(&Note::BadTime), None, "a simple packet has no time, not a bad one");
    assert_eq!((read.frames[1].time_ns, read.frames[1].meta.drop_count), (Some(1_000_000_000), Some(2)));
    let file = [section(false), interface(false, 1, 0, &[]), whole].concat();
    assert_eq!(read_all(file, Policy::default()).frames[0].data, FRAME);
}

#[test]
fn other_blocks_are_passed_over_whatever_their_size() {
    let mut file = [section(false), interface(false, 1, 0, &[])].concat();
    for block_type in [4, 5, 7, 0x0bad_cafe] {
        file.extend(Block::new(false).bytes(&vec![0xee; 20 * 1024 * 1024 + 4]).build(block_type));
    }
    file.extend(enhanced(false, 0, 0, &vec![1; 200_000], &[]));
    let read = read_all(file, Policy::default());
    assert_eq!((read.frames.len(), read.error.is_none()), (1, true));
}

#[test]
fn what_is_wrong_with_a_packet_is_that_packets_matter() {
    let short = Block::new(false).u32(0).u32(0).build(6);
    let past = Block::new(false).u32(0).u32(0).u32(0).u32(500).u32(500).bytes(&FRAME).build(6);
    let long = Block::new(false).u32(0).u32(0).u32(0).u32(262_145).u32(262_145).bytes(&[0; 262_145]).build(6);
    let bad_option = Block::new(false).u32(0).u32(0).u32(0).u32(61).u32(61).bytes(&FRAME).u16(1).u16(400).build(6);
    let stranger = enhanced(false, 3, 0, &FRAME, &[]);
    let early = enhanced(false, 0, 0, &FRAME, &[]);
    let good = enhanced(false, 0, 0, &FRAME, &[]);
    let file =
        [section(false), early, interface(false, 1, 0, &[]), short, past, long, stranger, bad_option, good].concat();
    let read = read_all(file, Policy::default());
    let why: Vec<_> = read.refused.iter().map(|refused| refused.why).collect();
    assert_eq!(
        why,
        [
            Refusal::UnknownInterface { interface: 0, known: 0 },
            Refusal::DamagedBlock("shorter than an enhanced packet's fixed part"),
            Refusal::DamagedBlock("its captured length runs past the block"),
            Refusal::OverLimit { captured: 262_145, limit: 262_144 },
            Refusal::UnknownInterface { interface: 3, known: 1 },
        ]
    );
    assert_eq!((read.frames.len(), read.tally.notes[&Note::BadOptions]), (2, 1));
    assert!(read.error.is_none());
}

#[test]
fn lengths_that_lose_the_way_end_the_file() {
    let with = |at: usize, length: u32| {
        let mut file = [section(false), interface(false, 1, 0, &[]), enhanced(false, 0, 0, &FRAME, &[])].concat();
        let packet = 28 + 20;
        file[packet + at..packet + at + 4].copy_from_slice(&length.to_le_bytes());
        read_all(file, Policy::default()).error.unwrap()
    };
    for (length, why) in [(0, "less than"), (8, "less than"), (97, "multiple of 4"), (0x7fff_fff0, "over 16 MiB")] {
        let error = with(4, length);
        assert!(error.to_string().contains(why) && error.to_string().contains("at byte 48"), "{error}");
    }
    assert!(with(4, 1_000).is_cut());
    let error = with(92, 100);
    assert!(matches!(error.fault, Fault::BlockLength { start: 48, length: 96, .. }), "{error}");
    // A length that ends within the packet finds its trailer in the packet's data.
    assert!(matches!(with(4, 92).fault, Fault::BlockLength { start: 48, length: 92, .. }));
}

#[test]
fn a_section_without_a_byte_order_or_of_another_version() {
    let mut file = section(false);
    file[8] = 0;
    assert!(matches!(
        read_all(file, Policy::default()).error.unwrap().fault,
        Fault::ByteOrder { start: 0, magic: 0x003c_2b1a }
    ));
    let mut file = section(true);
    file[13] = 2;
    let error = read_all(file, Policy::default()).error.unwrap().to_string();
    assert!(error.contains("pcapng version 2.0 is not known; 1.0 is"), "{error}");
}

#[test]
fn interfaces_have_a_limit() {
    let mut file = section(false);
    let one = interface(false, 1, 0, &[]);
    for _ in 0..65_537 {
        file.extend_from_slice(&one);
    }
    let error = read_all(file, Policy::default()).error.unwrap();
    assert!(matches!(error.fault, Fault::Interfaces { limit: 65_536, .. }), "{error}");
}
