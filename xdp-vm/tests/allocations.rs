//! Running allocates nothing: not for the first frame, not for the thousandth, whatever the program does with it.

use std::hint::black_box;

use xdp_vm::{ANY, Loader, MapType, RxMeta, Vm, XdpBuff, XdpObject};

const FRAMES: u32 = 2000;

/// Frames that differ in length, in protocol, and in the bytes that our programs go by.
fn fill(page: &mut [u8], number: u32) -> usize {
    let spread = number.wrapping_mul(0x9e37_79b1);
    let len = 14 + spread as usize % 1500;
    let frame = &mut page[256..256 + len];
    frame.fill(number as u8);
    frame[..2].copy_from_slice(&spread.to_be_bytes()[..2]);
    frame[12..14].copy_from_slice(if number.is_multiple_of(5) { &[0x81, 0] } else { &[8, 0] });
    if len >= 42 {
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&(len as u16 - 14).to_be_bytes());
        frame[20..24].copy_from_slice(&[number as u8 & 0x60, 0, 64, [1, 4, 6, 17][number as usize % 4]]);
        frame[26..34].copy_from_slice(&[10, 0, 0, number as u8 & 7, 10, 0, 0, number as u8 >> 5]);
        frame[34..36].copy_from_slice(&[8, 0]);
    }
    len
}

/// Run the frames. Records are taken out of rings as a user would.
fn run(vm: &mut Vm, page: &mut [u8]) -> u64 {
    let mut insns = 0;
    for number in 0..FRAMES {
        let len = fill(page, number);
        let mut buff = XdpBuff::new(page, 256, len).expect("room for 1,514 bytes");
        let meta = RxMeta { ifindex: 1, queue: number % 3, cpu: number % 2, now_ns: u64::from(number) << 20 };
        let outcome = vm.run(&mut buff, &meta);
        assert!(outcome.fault().is_none());
        insns += outcome.insns;
        if number % 64 == 0 {
            for map in 0..vm.maps().len() as u32 {
                while vm.map_mut_by_id(map).is_some_and(|map| black_box(map.pop_record()).is_some()) {}
            }
            vm.trace().clear();
        }
    }
    insns
}

/// Targets and rules, so that more than misses happens.
fn populate(vm: &mut Vm) {
    for id in 0..vm.maps().len() as u32 {
        let Some(map) = vm.map_mut_by_id(id) else { continue };
        let (key, value) = (vec![0; map.spec().key_size as usize], vec![0; map.spec().value_size as usize]);
        if map.map_type().is_redirect_target() {
            for slot in 0u32..4 {
                map.update(&slot.to_le_bytes(), &value, ANY).expect("room for four");
            }
        } else if matches!(map.map_type(), MapType::Hash | MapType::LpmTrie) {
            map.update(&key, &value, ANY).expect("room for one");
        }
    }
}

macro_rules! programs {
    ($($name:literal: $($program:literal)+;)+) => {
        [$($(($name, $program, include_bytes!(concat!("../programs/", $name)).as_slice())),+),+]
    };
}

#[test]
fn no_program_of_ours_allocates_for_a_frame() {
    let programs = programs! {
        "drop.o": "drop";
        "pass.o": "pass";
        "count.o": "count";
        "filter.o": "filter";
        "macswap.o": "macswap";
        "vlan.o": "push" "pop";
        "rewrite.o": "rewrite";
        "echo.o": "echo";
        "ipip.o": "encap" "decap";
        "steer.o": "steer";
        "chain.o": "chain";
        "sum.o": "sum";
        "df.o": "df";
        "inner.o": "inner";
        "tables.o": "tables";
        "locked.o": "locked";
        "borders.o": "borders";
        "callbacks.o": "callbacks";
        "shelves.o": "shelved";
        "atomics.o": "atomics";
        "signed.o": "with_sign";
        "legacy.o": "legacy";
    };
    for (name, program, file) in programs {
        let object = XdpObject::parse(name, file).expect("an object of clang's");
        let loaded = Loader::new().program(program).cpus(2).load(&object);
        let mut vm = loaded.unwrap_or_else(|error| panic!("{error}"));
        populate(&mut vm);
        let mut page = vec![0; 4096];
        let mut insns = 0;
        let made = allocation_counter::measure(|| insns = run(&mut vm, &mut page));
        assert!(insns >= 2 * u64::from(FRAMES), "{name}, {program}: {insns} instructions");
        assert_eq!((made.count_total, made.bytes_total), (0, 0), "{name}, {program}: allocations, bytes");
    }
}

/// Try the alarm: what measures does see an allocation.
#[test]
fn an_allocation_would_be_seen() {
    let made = allocation_counter::measure(|| drop(black_box(vec![0u8; 100])));
    assert_eq!((made.count_total, made.bytes_total), (1, 100));
}
