//! Each opcode against what RFC 9669 says of it; the numbers are worked out by hand.

mod support;

use support::{EXIT, call, fault, insn, lddw, load, mov, registers, run, value};
use xdp_vm::{FaultKind, InsnProblem, Place, ProblemKind, RawInsn, Verdict};

/// r1 after `r1 = a; r2 = b; (opcode) r1, r2`.
fn reg(code: u8, off: i16, a: u64, b: u64) -> u64 {
    registers(&[&lddw(1, a)[..], &lddw(2, b), &[insn(code, 1, 2, off, 0)]].concat())[1]
}

/// r1 after `r1 = a; (opcode) r1, imm`.
fn imm(code: u8, off: i16, a: u64, b: i32) -> u64 {
    registers(&[&lddw(1, a)[..], &[insn(code, 1, 0, off, b)]].concat())[1]
}

const A: u64 = 0xffff_fff0_8000_0007;

#[test]
fn arithmetic_of_64_bits() {
    // Opcode with immediate; with register it is 8 more.
    for (code, off, a, b, want) in [
        (0x07, 0, u64::MAX, 2, 1),
        (0x17, 0, 1, 2, u64::MAX),
        (0x27, 0, 1 << 63 | 3, 5, 1 << 63 | 15),
        (0x37, 0, u64::MAX, 16, u64::MAX >> 4),
        (0x37, 0, 7, 0, 0),
        (0x37, 1, (-13i64) as u64, 3, (-4i64) as u64),
        (0x37, 1, 13, -3, (-4i64) as u64),
        (0x37, 1, 1 << 63, -1, 1 << 63),
        (0x37, 1, 5, 0, 0),
        (0x47, 0, 0xf0, 0x0f, 0xff),
        (0x57, 0, A, 0xff, 7),
        (0x57, 0, A, -16, 0xffff_fff0_8000_0000),
        (0x67, 0, 1, 63, 1 << 63),
        (0x67, 0, 3, 65, 6),
        (0x77, 0, 1 << 63, 63, 1),
        (0x77, 0, 4, 65, 2),
        (0x97, 0, 17, 5, 2),
        (0x97, 0, 17, 0, 17),
        (0x97, 1, (-13i64) as u64, 3, (-1i64) as u64),
        (0x97, 1, 13, -3, 1),
        (0x97, 1, 1 << 63, -1, 0),
        (0x97, 1, (-13i64) as u64, 0, (-13i64) as u64),
        (0xa7, 0, A, -1, !A),
        (0xb7, 0, A, -2, (-2i64) as u64),
        (0xc7, 0, 1 << 63, 62, (-2i64) as u64),
        (0xc7, 0, 64, 66, 16),
    ] {
        assert_eq!(imm(code, off, a, b), want, "{code:#x} {a:#x} {b:#x}");
        assert_eq!(reg(code + 8, off, a, i64::from(b) as u64), want, "{:#x} {a:#x} {b:#x}", code + 8);
    }
    assert_eq!(imm(0x87, 0, 5, 0), (-5i64) as u64);
}

#[test]
fn arithmetic_of_32_bits_clears_the_upper_half() {
    for (code, off, a, b, want) in [
        (0x04, 0, 0x1_ffff_ffff, 2, 1),
        (0x14, 0, 1, 2, 0xffff_ffff),
        (0x24, 0, 0x9_8000_0003, 5, 0x8000_000f),
        (0x34, 0, A, 16, 0x0800_0000),
        (0x34, 0, A, 0, 0),
        (0x34, 1, 0x5_ffff_fff3, 3, 0xffff_fffc),
        (0x34, 1, 0x8000_0000, -1, 0x8000_0000),
        (0x44, 0, A, 0x10, 0x8000_0017),
        (0x54, 0, A, -1, 0x8000_0007),
        (0x64, 0, 1, 31, 0x8000_0000),
        (0x64, 0, 3, 33, 6),
        (0x74, 0, A, 31, 1),
        (0x94, 0, A, 4, 3),
        // The dividend is kept, and its upper half is cleared nevertheless.
        (0x94, 0, A, 0, 0x8000_0007),
        (0x94, 1, 0xffff_fff3, 3, 0xffff_ffff),
        (0x94, 1, 0x8000_0000, -1, 0),
        (0xa4, 0, A, -1, 0x7fff_fff8),
        (0xb4, 0, A, -2, 0xffff_fffe),
        (0xc4, 0, A, 31, 0xffff_ffff),
        (0xc4, 0, 0x4000_0000, 62, 1),
    ] {
        assert_eq!(imm(code, off, a, b), want, "{code:#x} {a:#x} {b:#x}");
        assert_eq!(reg(code + 8, off, a, i64::from(b) as u64), want, "{:#x} {a:#x} {b:#x}", code + 8);
    }
    assert_eq!(imm(0x84, 0, 0x1_0000_0005, 0), 0xffff_fffb);
}

#[test]
fn moves_with_sign() {
    let a = 0x8182_8384_8586_8788;
    for (code, bits, want) in [
        (0xbf, 0, a),
        (0xbf, 8, 0xffff_ffff_ffff_ff88),
        (0xbf, 16, 0xffff_ffff_ffff_8788),
        (0xbf, 32, 0xffff_ffff_8586_8788),
        (0xbc, 0, 0x8586_8788),
        (0xbc, 8, 0xffff_ff88),
        (0xbc, 16, 0xffff_8788),
    ] {
        assert_eq!(reg(code, bits, 0, a), want, "{code:#x} {bits}");
    }
}

#[test]
fn byte_order() {
    let a = 0x0102_0304_0506_0708;
    for (code, bits, want) in [
        (0xd4, 16, 0x0708),
        (0xd4, 32, 0x0506_0708),
        (0xd4, 64, a),
        (0xdc, 16, 0x0807),
        (0xdc, 32, 0x0807_0605),
        (0xdc, 64, 0x0807_0605_0403_0201),
        (0xd7, 16, 0x0807),
        (0xd7, 32, 0x0807_0605),
        (0xd7, 64, 0x0807_0605_0403_0201),
    ] {
        assert_eq!(imm(code, 0, a, bits), want, "{code:#x} {bits}");
    }
}

#[test]
fn conditions() {
    let minus = |n: i64| n as u64;
    // Opcode of 64 bits with immediate; a, b; taken with 64 bits, and with 32.
    for (code, a, b, wide, narrow) in [
        (0x15, 5, 5, true, true),
        (0x15, minus(-1), -1, true, true),
        (0x15, 0x1_0000_0005, 5, false, true),
        (0x25, 6, 5, true, true),
        (0x25, 5, 5, false, false),
        (0x25, minus(-1), 5, true, true),
        (0x25, 0x1_0000_0000, 5, true, false),
        (0x35, 5, 5, true, true),
        (0x35, 4, 5, false, false),
        (0x45, 6, 2, true, true),
        (0x45, 4, 2, false, false),
        (0x45, 1 << 40, -1, true, false),
        (0x55, 5, 6, true, true),
        (0x55, 0x1_0000_0005, 5, true, false),
        (0x65, 1, -1, true, true),
        (0x65, minus(-1), -1, false, false),
        (0x65, 0x8000_0000, 0, true, false),
        (0x75, minus(-1), -1, true, true),
        (0x75, minus(-2), -1, false, false),
        (0xa5, 1, -1, true, true),
        (0xa5, 5, 5, false, false),
        (0xb5, 5, 5, true, true),
        (0xb5, 6, 5, false, false),
        (0xc5, minus(-2), -1, true, true),
        (0xc5, 0x8000_0000, 0, false, true),
        (0xd5, minus(-1), -1, true, true),
        (0xd5, 0, -1, false, false),
    ] {
        for (code, want) in [(code, wide), (code + 1, narrow)] {
            let start = [&lddw(1, a)[..], &lddw(2, i64::from(b) as u64), &[mov(3, 1)]].concat();
            let taken = |jump| registers(&[&start[..], &[jump, mov(3, 0)]].concat())[3] == 1;
            assert_eq!(taken(insn(code, 1, 0, 1, b)), want, "{code:#x} {a:#x} {b:#x}");
            assert_eq!(taken(insn(code + 8, 1, 2, 1, 0)), want, "{:#x} {a:#x} {b:#x}", code + 8);
        }
    }
}

#[test]
fn jumps_without_condition() {
    let over = |jump| registers(&[mov(3, 1), jump, mov(3, 0)])[3];
    assert_eq!(over(insn(0x05, 0, 0, 1, 0)), 1);
    assert_eq!(over(insn(0x06, 0, 0, 0, 1)), 1, "gotol has its distance in the immediate");
    // Backwards: r3 counts to 5.
    assert_eq!(registers(&[mov(3, 0), insn(0x07, 3, 0, 0, 1), insn(0xa5, 3, 0, -2, 5)])[3], 5);
}

#[test]
fn loads_and_stores() {
    let bytes = 0x8182_8384_8586_8788u64;
    let stored = [&lddw(1, bytes)[..], &[insn(0x7b, 9, 1, 72, 0)]].concat();
    for (code, want) in [
        (0x71, 0x88),
        (0x69, 0x8788),
        (0x61, 0x8586_8788),
        (0x79, bytes),
        (0x91, 0xffff_ffff_ffff_ff88),
        (0x89, 0xffff_ffff_ffff_8788),
        (0x81, 0xffff_ffff_8586_8788),
    ] {
        assert_eq!(registers(&[&stored[..], &[insn(code, 3, 9, 72, 0)]].concat())[3], want, "{code:#x}");
    }
    let zero = [mov(1, 0), insn(0x7b, 9, 1, 72, 0)];
    for (code, want) in [(0x73, 0x88), (0x6b, 0x8788), (0x63, 0x8586_8788), (0x7b, bytes)] {
        let store = [&zero[..], &lddw(1, bytes), &[insn(code, 9, 1, 72, 0), insn(0x79, 3, 9, 72, 0)]].concat();
        assert_eq!(registers(&store)[3], want, "{code:#x}");
    }
    for (code, want) in [(0x72, 0xfe), (0x6a, 0xfffe), (0x62, 0xffff_fffe), (0x7a, u64::MAX - 1)] {
        let store = [&zero[..], &[insn(code, 9, 0, 72, -2), insn(0x79, 3, 9, 72, 0)]].concat();
        assert_eq!(registers(&store)[3], want, "{code:#x}");
    }
}

#[test]
fn atomics() {
    const OLD: u64 = 0x1111_1111_0000_00f0;
    const NEW: u64 = 0x2222_2222_0000_000f;
    // Operation; memory, source register and r0 afterwards, of 64 and of 32 bits.
    for (operation, memory, source, r0, memory32, source32, r032) in [
        (0x00, OLD + NEW, NEW, OLD, 0x1111_1111_0000_00ff, NEW, OLD),
        (0x01, OLD + NEW, OLD, OLD, 0x1111_1111_0000_00ff, 0xf0, OLD),
        (0x40, OLD | NEW, NEW, OLD, 0x1111_1111_0000_00ff, NEW, OLD),
        (0x41, OLD | NEW, OLD, OLD, 0x1111_1111_0000_00ff, 0xf0, OLD),
        (0x50, 0, NEW, OLD, 0x1111_1111_0000_0000, NEW, OLD),
        (0x51, 0, OLD, OLD, 0x1111_1111_0000_0000, 0xf0, OLD),
        (0xa0, OLD ^ NEW, NEW, OLD, 0x1111_1111_0000_00ff, NEW, OLD),
        (0xa1, OLD ^ NEW, OLD, OLD, 0x1111_1111_0000_00ff, 0xf0, OLD),
        (0xe1, NEW, OLD, OLD, 0x1111_1111_0000_000f, 0xf0, OLD),
        (0xf1, NEW, NEW, OLD, 0x1111_1111_0000_000f, NEW, 0xf0),
    ] {
        let start = [&lddw(1, OLD)[..], &[insn(0x7b, 9, 1, 72, 0)], &lddw(0, OLD), &lddw(2, NEW)].concat();
        for (code, want) in [(0xdb, (memory, source, r0)), (0xc3, (memory32, source32, r032))] {
            let after = registers(&[&start[..], &[insn(code, 9, 2, 72, operation), insn(0x79, 3, 9, 72, 0)]].concat());
            assert_eq!((after[3], after[2], after[0]), want, "{code:#x} {operation:#x}");
        }
    }
    // A comparison that fails leaves memory as it is, and tells what is there.
    let start = [&lddw(1, OLD)[..], &[insn(0x7b, 9, 1, 72, 0)], &lddw(0, 7), &lddw(2, NEW)].concat();
    for (code, found) in [(0xdb, OLD), (0xc3, 0xf0)] {
        let after = registers(&[&start[..], &[insn(code, 9, 2, 72, 0xf1), insn(0x79, 3, 9, 72, 0)]].concat());
        assert_eq!((after[3], after[0]), (OLD, found), "{code:#x}");
    }
}

#[test]
fn functions_have_frames_of_their_own() {
    // r6 = 6; call f; then r0 is 3, r6 still 6; f keeps r6 = 1 on its own stack.
    let code = [
        mov(6, 6),
        insn(0x7a, 10, 0, -8, 77),
        mov(1, 3),
        insn(0x85, 0, 1, 0, 3),
        insn(0x79, 7, 10, -8, 0),
        insn(0x0f, 0, 6, 0, 0),
        EXIT,
        mov(6, 1),
        insn(0x79, 0, 10, -8, 0),
        insn(0x0f, 0, 1, 0, 0),
        insn(0x7a, 10, 0, -8, 5),
        EXIT,
    ];
    let mut vm = load(&code).unwrap();
    assert_eq!(run(&mut vm).verdict, Verdict::Aborted(xdp_vm::Abort::UnknownAction(9)));
}

#[test]
fn eight_functions_deep_and_no_more() {
    // f calls itself r1 times.
    let code = |times| {
        [
            mov(1, times),
            insn(0x85, 0, 1, 0, 1),
            EXIT,
            mov(0, 2),
            insn(0x15, 1, 0, 2, 0),
            insn(0x07, 1, 0, 0, -1),
            insn(0x85, 0, 1, 0, -4),
            EXIT,
        ]
    };
    assert_eq!(run(&mut load(&code(6)).unwrap()).verdict, Verdict::Pass);
    assert_eq!(fault(&code(7)), FaultKind::CallDepth);
}

#[test]
fn the_context() {
    let word = |offset| registers(&[insn(0x61, 3, 1, offset, 0)])[3];
    assert_eq!([word(12), word(16), word(20)], [3, 4, 0]);
    assert_eq!(word(4) - word(0), 60);
    assert_eq!(word(8), word(0));
    // Byte 7 of the packet, by a pointer of 32 bits.
    assert_eq!(registers(&[insn(0x61, 3, 1, 0, 0), insn(0x71, 3, 3, 7, 0)])[3], 7);
    for bad in [
        insn(0x69, 3, 1, 0, 0),
        insn(0x79, 3, 1, 0, 0),
        insn(0x61, 3, 1, 2, 0),
        insn(0x61, 3, 1, 24, 0),
        insn(0x63, 1, 1, 0, 0),
    ] {
        assert!(matches!(fault(&[bad, EXIT]), FaultKind::Access { place: Place::Context { .. }, .. }), "{bad}");
    }
}

#[test]
fn accesses_stay_inside() {
    let place = |code: &[RawInsn]| match fault(&[code, &[EXIT]].concat()) {
        FaultKind::Access { place, .. } => place,
        other => panic!("{other:?}"),
    };
    let of_packet = |code, off| [insn(0x61, 3, 1, 0, 0), insn(code, 3, 3, off, 0)];
    assert_eq!(place(&of_packet(0x71, 60)), Place::Packet { offset: 60, len: 60 });
    assert_eq!(place(&of_packet(0x79, 53)), Place::Packet { offset: 53, len: 60 });
    assert_eq!(place(&of_packet(0x71, -1)), Place::Packet { offset: -1, len: 60 });
    assert_eq!(place(&[insn(0x71, 3, 10, 0, 0)]), Place::Stack { offset: 0 });
    assert_eq!(place(&[insn(0x79, 3, 10, -1, 0)]), Place::Stack { offset: -1 });
    assert_eq!(place(&[mov(3, 0), insn(0x71, 3, 3, 0, 0)]), Place::Null);
    assert_eq!(place(&[mov(3, -1), insn(0x71, 3, 3, 0, 0)]), Place::Nowhere);
    let map = |off| [&value(3)[..], &[insn(0x71, 3, 3, off, 0)]].concat();
    assert_eq!(place(&map(128)), Place::MapValue { map: 0, offset: 0, size: 128 });
    let handle = [insn(0x18, 3, 1, 0, 0), insn(0, 0, 0, 0, 0), insn(0x71, 3, 3, 0, 0)];
    assert_eq!(place(&handle), Place::MapHandle { map: 0 });
    // A pointer from before adjust_head.
    let stale = [insn(0xbf, 6, 1, 0, 0), insn(0x61, 7, 1, 0, 0), mov(2, -4), call(44), insn(0x71, 3, 7, 0, 0)];
    assert_eq!(place(&stale), Place::StalePacket { offset: 4 });
}

#[test]
fn endless_programs_end() {
    assert_eq!(fault(&[insn(0x05, 0, 0, -1, 0)]), FaultKind::Budget);
    let mut vm = load(&[insn(0x05, 0, 0, -1, 0)]).unwrap();
    assert_eq!(run(&mut vm).insns, 10_000);
}

#[test]
fn what_is_no_instruction_is_refused() {
    let refused = |code: &[RawInsn]| match load(code).map(drop).unwrap_err().swap_remove(0).kind {
        ProblemKind::Insn(problem) => problem,
        other => panic!("{other:?}"),
    };
    let one = |bad| refused(&[bad, mov(0, 2), EXIT]);
    assert_eq!(one(mov(10, 1)), InsnProblem::WritesFramePointer);
    assert_eq!(one(insn(0x79, 10, 1, 0, 0)), InsnProblem::WritesFramePointer);
    assert_eq!(one(mov(11, 1)), InsnProblem::Register(11));
    assert_eq!(one(insn(0xbf, 1, 12, 0, 0)), InsnProblem::Register(12));
    assert_eq!(one(insn(0x07, 1, 2, 0, 0)), InsnProblem::Reserved(0x07));
    assert_eq!(one(insn(0x07, 1, 0, 3, 0)), InsnProblem::Reserved(0x07));
    assert_eq!(one(insn(0xe7, 1, 0, 0, 0)), InsnProblem::Opcode(0xe7));
    assert_eq!(one(insn(0x20, 0, 0, 0, 0)), InsnProblem::LegacyPacketAccess);
    assert_eq!(one(insn(0xdb, 9, 2, 0, 0x100)), InsnProblem::AcquireRelease);
    assert_eq!(one(insn(0xdb, 9, 2, 0, 0x33)), InsnProblem::Atomic(0x33));
    assert_eq!(one(insn(0xd3, 9, 2, 0, 0)), InsnProblem::Opcode(0xd3));
    assert_eq!(one(insn(0xbf, 1, 2, 1, 1)), InsnProblem::AddressSpaceCast);
    assert_eq!(one(insn(0x05, 0, 0, 2, 0)), InsnProblem::JumpOut(2));
    assert_eq!(one(insn(0x15, 1, 0, -2, 0)), InsnProblem::JumpOut(-2));
    assert_eq!(one(insn(0x85, 0, 1, 0, 9)), InsnProblem::CallOut(9));
    assert_eq!(one(call(99)), InsnProblem::Helper(99));
    assert_eq!(one(insn(0x85, 0, 2, 0, 9)), InsnProblem::KernelFunction(None));
    assert_eq!(one(insn(0x8d, 1, 0, 0, 0)), InsnProblem::IndirectCall);
    assert_eq!(one(insn(0xe5, 0, 0, 0, 0)), InsnProblem::MayGoto);
    assert_eq!(one(insn(0x18, 1, 1, 0, 1)), InsnProblem::HalfImmediate);
    assert_eq!(refused(&[insn(0x18, 1, 1, 0, 1), insn(0, 0, 0, 0, 0), EXIT]), InsnProblem::MapIndex(1));
    assert_eq!(refused(&[insn(0x18, 1, 2, 0, 0), insn(0, 0, 0, 0, 128), EXIT]), InsnProblem::ValueOffset(128));
    assert_eq!(refused(&[mov(0, 2)]), InsnProblem::FallsOff);
    let into = [&[insn(0x05, 0, 0, 1, 0)][..], &lddw(1, 0), &[EXIT]].concat();
    assert_eq!(refused(&into), InsnProblem::JumpOut(1));
    assert!(matches!(load(&[]).map(drop).unwrap_err()[0].kind, ProblemKind::Length(0)));
}
