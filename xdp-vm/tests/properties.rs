//! Properties: arithmetic against wide integers, maps against the standard library's, and nothing that a file or a
//! program holds makes this crate panic or hang.

mod support;

use std::collections::BTreeMap;

use proptest::prelude::*;
use support::{EXIT, insn, lddw, load, mov, registers, run};
use xdp_vm::{Loader, MapError, MapSpec, MapType, RawInsn, RxMeta, Settings, Vm, XdpBuff, XdpObject};

/// One arithmetic instruction.
#[derive(Clone, Copy, Debug)]
struct Alu {
    operation: u8,
    wide: bool,
    signed: bool,
    /// Second operand: a register or a number.
    operand: Result<u8, i32>,
    dst: u8,
}

impl Alu {
    fn encode(self) -> RawInsn {
        let class = if self.wide { 7 } else { 4 };
        let off = i16::from(self.signed && matches!(self.operation, 3 | 9));
        match self.operand {
            Ok(src) => insn(self.operation << 4 | 8 | class, self.dst, src, off, 0),
            Err(imm) => insn(self.operation << 4 | class, self.dst, 0, off, imm),
        }
    }

    /// What it does, on 128 bits: operands as numbers, the result cut to the width.
    fn apply(self, registers: &mut [u64; 9]) {
        let bits = if self.wide { 64 } else { 32 };
        let modulus = 1i128 << bits;
        let unsigned = |value: i128| value.rem_euclid(modulus);
        let signed = |value: i128| {
            let value = unsigned(value);
            if value >= modulus / 2 { value - modulus } else { value }
        };
        let a = unsigned(i128::from(registers[usize::from(self.dst)]));
        let b = unsigned(match self.operand {
            Ok(src) => i128::from(registers[usize::from(src)]),
            Err(imm) => i128::from(imm),
        });
        let by = 1i128 << (b % bits);
        let result = match self.operation {
            0 => a + b,
            1 => a - b,
            // The product of two numbers of 64 bits may need 128 and a sign: only the lower half is wanted.
            2 => (a as u128).wrapping_mul(b as u128) as u64 as i128,
            3 if b == 0 => 0,
            3 if self.signed => signed(a) / signed(b),
            3 => a / b,
            4 => a | b,
            5 => a & b,
            6 => ((a as u128) << (b % bits)) as u64 as i128,
            7 => a / by,
            9 if b == 0 => a,
            9 if self.signed => signed(a) % signed(b),
            9 => a % b,
            10 => a ^ b,
            11 => b,
            // Towards minus infinity, as a shift with sign does.
            12 => signed(a).div_euclid(by),
            _ => unreachable!("not generated"),
        };
        registers[usize::from(self.dst)] = unsigned(result) as u64;
    }
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        any::<u32>().prop_map(u64::from),
        (0u64..70),
        (0u64..3).prop_map(|n| u64::MAX - n),
        Just(1 << 63),
        Just(1 << 31),
    ]
}

fn alu() -> impl Strategy<Value = Alu> {
    let operation = prop_oneof![0u8..8, 9u8..13];
    let immediate = prop_oneof![any::<i32>(), -3i32..70, Just(i32::MIN)];
    let operand = prop_oneof![(0u8..9).prop_map(Ok), immediate.prop_map(Err)];
    (operation, any::<bool>(), any::<bool>(), operand, 0u8..9).prop_map(|(operation, wide, signed, operand, dst)| Alu {
        operation,
        wide,
        signed,
        operand,
        dst,
    })
}

#[derive(Clone, Debug)]
enum MapOperation {
    Update(u8, u32, u64),
    Delete(u8),
    Lookup(u8),
}

fn map_operation() -> impl Strategy<Value = MapOperation> {
    prop_oneof![
        (0u8..12, any::<u32>(), 0u64..3).prop_map(|(key, value, flags)| MapOperation::Update(key, value, flags)),
        (0u8..12).prop_map(MapOperation::Delete),
        (0u8..12).prop_map(MapOperation::Lookup),
    ]
}

/// An instruction that is likely to be one: opcodes of ISA v1 to v4, registers that are there, short jumps.
fn likely() -> impl Strategy<Value = RawInsn> {
    let code = prop::sample::select(vec![
        0x07u8, 0x0f, 0x17, 0x1f, 0x27, 0x2f, 0x37, 0x3f, 0x47, 0x57, 0x67, 0x6f, 0x77, 0x7f, 0x97, 0x9f, 0xa7, 0xb7,
        0xbf, 0xc7, 0x04, 0x0c, 0x14, 0x1c, 0x34, 0x3c, 0xb4, 0xbc, 0x05, 0x15, 0x1d, 0x25, 0x2d, 0x45, 0x55, 0x5d,
        0x65, 0xa5, 0xad, 0xc5, 0x16, 0x26, 0x61, 0x69, 0x71, 0x79, 0x81, 0x89, 0x91, 0x62, 0x6a, 0x72, 0x7a, 0x63,
        0x6b, 0x73, 0x7b, 0xdb, 0xc3, 0x85, 0x95, 0x87, 0xd4, 0xdc, 0xd7,
    ]);
    let atomics = prop::sample::select(vec![0, 1, 0x40, 0x41, 0x50, 0x51, 0xa0, 0xa1, 0xe1, 0xf1]);
    let helpers = prop::sample::select(xdp_vm::Helper::ALL.iter().map(|helper| helper.id()).collect::<Vec<_>>());
    (code, 0u8..10, 0u8..11, -20i16..20, any::<i32>(), atomics, helpers).prop_map(
        |(code, dst, src, off, imm, atomic, helper)| match code {
            0x85 => insn(code, 0, 0, 0, helper),
            0x95 => EXIT,
            0xd4 | 0xdc | 0xd7 => insn(code, dst, 0, 0, 16),
            0x87 => insn(code, dst, 0, 0, 0),
            0x05 => insn(code, 0, 0, off, 0),
            0xdb | 0xc3 => insn(code, 10, dst, -(off.abs() + 1) * 8, atomic),
            // Most accesses go to the stack, so that programs get further than the first.
            0x61 | 0x69 | 0x71 | 0x79 | 0x81 | 0x89 | 0x91 => insn(code, dst, 10, -(off.abs() + 1) * 8, 0),
            0x62 | 0x6a | 0x72 | 0x7a => insn(code, 10, 0, -(off.abs() + 1) * 8, imm),
            0x63 | 0x6b | 0x73 | 0x7b => insn(code, 10, dst, -(off.abs() + 1) * 8, 0),
            _ if code & 8 != 0 => insn(code, dst, src, if code & 7 < 5 || code & 7 == 7 { 0 } else { off }, 0),
            _ => insn(code, dst, 0, if code & 7 < 5 || code & 7 == 7 { 0 } else { off }, imm),
        },
    )
}

/// Map 0 for programs that guess, and some of each other kind.
fn many_maps() -> Vec<MapSpec> {
    vec![
        MapSpec::new("m", MapType::Array, 4, 128, 1),
        MapSpec::new("hash", MapType::LruPerCpuHash, 8, 12, 4),
        MapSpec::new("ring", MapType::RingBuf, 0, 0, 4096),
        MapSpec::new("programs", MapType::ProgArray, 4, 4, 4),
        MapSpec::new("queue", MapType::Queue, 0, 4, 4),
        MapSpec::new("devices", MapType::DevMap, 4, 8, 4),
    ]
}

const OBJECTS: &[&[u8]] = &[
    include_bytes!("../programs/chain.o"),
    include_bytes!("../programs/count.o"),
    include_bytes!("../programs/filter.o"),
    include_bytes!("../programs/inner.o"),
    include_bytes!("../programs/legacy.o"),
    include_bytes!("../programs/rejects.o"),
    include_bytes!("../programs/rewrite.o"),
    include_bytes!("../programs/steer.o"),
    include_bytes!("../programs/sum.o"),
    include_bytes!("../programs/vlan.o"),
];

/// Load every program of an object, and run each on a frame. How many could be loaded.
fn exercise(file: &[u8]) -> usize {
    let Ok(object) = XdpObject::parse("mutant.o", file) else { return 0 };
    let mut loaded = 0;
    for program in object.programs() {
        let loader = Loader::new().program(&program.name).insns_max(20_000).map_bytes_max(1 << 24);
        let mut vm = match loader.load(&object) {
            Ok(vm) => vm,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                continue;
            }
        };
        loaded += 1;
        let mut page = vec![0; 4096];
        page[256] = 5;
        page[268..270].copy_from_slice(&[8, 0]);
        let mut buff = XdpBuff::new(&mut page, 256, 60).unwrap();
        let outcome = vm.run(&mut buff, &RxMeta::default());
        if let Some(fault) = outcome.fault() {
            assert!(!vm.describe(fault).to_string().is_empty());
        }
    }
    loaded
}

/// A bounded share in each run; `PROPTEST_CASES` asks for more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn arithmetic_is_that_of_wide_integers(start in prop::array::uniform9(number()), code in prop::collection::vec(alu(), 1..30)) {
        let mut want = start;
        let mut program = Vec::new();
        for (register, value) in start.iter().enumerate() {
            program.extend(lddw(register as u8, *value));
        }
        for step in &code {
            program.push(step.encode());
            step.apply(&mut want);
        }
        prop_assert_eq!(registers(&program), want);
    }

    #[test]
    fn a_hash_is_a_map(operations in prop::collection::vec(map_operation(), 1..100)) {
        let maps = vec![MapSpec::new("hash", MapType::Hash, 1, 4, 8)];
        let mut vm = Vm::from_bytecode(&[mov(0, 2), EXIT], maps, Settings::default()).unwrap();
        let map = vm.map_mut("hash").unwrap();
        let mut model = BTreeMap::new();
        for operation in operations {
            match operation {
                MapOperation::Update(key, value, flags) => {
                    let want = match (model.contains_key(&key), flags) {
                        (true, 1) => Err(MapError::Exists),
                        (false, 2) => Err(MapError::NoEntry),
                        (false, _) if model.len() == 8 => Err(MapError::TooBig),
                        _ => Ok(()),
                    };
                    prop_assert_eq!(map.update(&[key], &value.to_le_bytes(), flags), want);
                    if want.is_ok() {
                        model.insert(key, value);
                    }
                }
                MapOperation::Delete(key) => {
                    let want = model.remove(&key).map(drop).ok_or(MapError::NoEntry);
                    prop_assert_eq!(map.delete(&[key]), want);
                }
                MapOperation::Lookup(key) => {
                    let want = model.get(&key).map(|value| value.to_le_bytes());
                    prop_assert_eq!(map.lookup(&[key]).map(|found| found[0].to_vec()), want.map(|want| want.to_vec()));
                }
            }
            prop_assert_eq!(map.len(), model.len());
        }
        let mut keys: Vec<_> = map.keys().concat();
        keys.sort_unstable();
        prop_assert_eq!(keys, model.keys().copied().collect::<Vec<_>>());
    }

    #[test]
    fn random_slots_never_panic(slots in prop::collection::vec(any::<[u8; 8]>(), 0..40)) {
        let code: Vec<_> = slots.into_iter().map(RawInsn::from_bytes).collect();
        match load(&code) {
            Ok(mut vm) => drop(run(&mut vm)),
            Err(problems) => prop_assert!(problems.iter().all(|problem| !problem.to_string().is_empty())),
        }
    }

    #[test]
    fn likely_programs_never_panic(body in prop::collection::vec(likely(), 1..60), map in 0i32..6) {
        // Registers begin as what programs have: the context, maps, a value, the stack, a callback.
        let mut code = vec![
            insn(0x18, 1, 1, 0, map), insn(0, 0, 0, 0, 0),
            insn(0x18, 4, 2, 0, 0), insn(0, 0, 0, 0, 0),
            insn(0xbf, 2, 10, 0, 0), insn(0x07, 2, 0, 0, -64),
            insn(0xbf, 3, 10, 0, 0), insn(0x07, 3, 0, 0, -128),
        ];
        code.extend(body);
        code.extend([mov(0, 2), EXIT]);
        let settings = Settings { insns_max: 5_000, cpus: 2, ..Settings::default() };
        if let Ok(mut vm) = Vm::from_bytecode(&code, many_maps(), settings) {
            for _ in 0..3 {
                let outcome = run(&mut vm);
                if let Some(fault) = outcome.fault() {
                    prop_assert!(!vm.describe(fault).to_string().is_empty());
                }
            }
        }
    }

    #[test]
    fn mutated_objects_never_panic(
        which in 0..OBJECTS.len(),
        mutations in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
    ) {
        let mut file = OBJECTS[which].to_vec();
        for (at, byte) in mutations {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        exercise(&file);
    }
}

/// A share of the mutants must get through the loader, or nothing behind it is tried.
#[test]
fn many_mutants_load() {
    let mut state = 1u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    let rounds = 2000;
    let loaded = (0..rounds).filter(|round| {
        let mut file = OBJECTS[round % OBJECTS.len()].to_vec();
        for _ in 0..1 + random(4) {
            let at = random(file.len());
            file[at] = random(256) as u8;
        }
        exercise(&file) > 0
    });
    let loaded = loaded.count();
    println!("{loaded} of {rounds} mutants had a program that loads");
    assert!(loaded * 5 >= rounds, "{loaded} of {rounds}");
}

#[test]
fn the_objects_themselves_load() {
    assert!(OBJECTS.iter().map(|file| exercise(file)).sum::<usize>() >= 14);
}
