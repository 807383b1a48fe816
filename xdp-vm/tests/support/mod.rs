//! Bytecode by hand: a tiny assembler, and a way to see registers.
#![allow(dead_code)]

use xdp_vm::{FaultKind, MapSpec, MapType, Outcome, Problem, RawInsn, RxMeta, Settings, Vm, XdpBuff};

pub fn insn(code: u8, dst: u8, src: u8, off: i16, imm: i32) -> RawInsn {
    RawInsn { code, dst, src, off, imm }
}

/// A 64-bit immediate load of two slots.
pub fn lddw(dst: u8, value: u64) -> [RawInsn; 2] {
    [insn(0x18, dst, 0, 0, value as u32 as i32), insn(0, 0, 0, 0, (value >> 32) as u32 as i32)]
}

/// The address of the value of map 0.
pub fn value(dst: u8) -> [RawInsn; 2] {
    [insn(0x18, dst, 2, 0, 0), insn(0, 0, 0, 0, 0)]
}

pub fn mov(dst: u8, imm: i32) -> RawInsn {
    insn(0xb7, dst, 0, 0, imm)
}

pub fn call(helper: i32) -> RawInsn {
    insn(0x85, 0, 0, 0, helper)
}

pub const EXIT: RawInsn = RawInsn { code: 0x95, dst: 0, src: 0, off: 0, imm: 0 };

/// Map 0: one value of 128 bytes.
pub fn maps() -> Vec<MapSpec> {
    vec![MapSpec::new("m", MapType::Array, 4, 128, 1)]
}

pub fn load(code: &[RawInsn]) -> Result<Vm, Vec<Problem>> {
    let settings = Settings { insns_max: 10_000, map_bytes_max: 1 << 22, ..Settings::default() };
    Vm::from_bytecode(code, maps(), settings)
}

pub fn run(vm: &mut Vm) -> Outcome {
    let mut page = vec![0xa5; 4096];
    for (at, byte) in page[256..316].iter_mut().enumerate() {
        *byte = at as u8;
    }
    let mut buff = XdpBuff::new(&mut page, 256, 60).unwrap();
    vm.run(&mut buff, &RxMeta { ifindex: 3, queue: 4, cpu: 0, now_ns: 99 })
}

/// Run code between `r9 = value of map 0` and an end that keeps r0 to r8 in the value; those registers.
pub fn registers(code: &[RawInsn]) -> [u64; 9] {
    let mut all = value(9).to_vec();
    all.extend(code);
    all.extend((0..9).map(|register| insn(0x7b, 9, register, i16::from(register) * 8, 0)));
    all.extend([mov(0, 2), EXIT]);
    let mut vm = load(&all).unwrap_or_else(|problems| panic!("{problems:?}"));
    let outcome = run(&mut vm);
    if let Some(fault) = outcome.fault() {
        panic!("{}", vm.describe(fault));
    }
    let kept = vm.map("m").unwrap().lookup(&[0; 4]).unwrap()[0];
    core::array::from_fn(|register| u64::from_le_bytes(kept[register * 8..][..8].try_into().unwrap()))
}

pub fn fault(code: &[RawInsn]) -> FaultKind {
    let mut vm = load(code).unwrap_or_else(|problems| panic!("{problems:?}"));
    run(&mut vm).fault().expect("a fault").kind
}
