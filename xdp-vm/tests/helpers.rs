//! Helpers that our own programs do not call, or not in every way, each from bytecode by hand.

mod support;

use proptest::prelude::*;
use support::{EXIT, call, fault, insn, mov};
use xdp_vm::{
    ANY, FaultKind, Interface, IpAddress, MapSpec, MapType, Neighbor, Place, RawInsn, Route, RxMeta, Settings, Vm,
    XdpBuff,
};

const EINVAL: u64 = -22i64 as u64;

/// r-`register` = r10 + `offset`.
fn stack(register: u8, offset: i32) -> [RawInsn; 2] {
    [insn(0xbf, register, 10, 0, 0), insn(0x07, register, 0, 0, offset)]
}

fn map(register: u8, number: i32) -> [RawInsn; 2] {
    [insn(0x18, register, 1, 0, number), insn(0, 0, 0, 0, 0)]
}

/// `*(u32 *)(r10 + offset) = value`.
fn word(offset: i16, value: i32) -> RawInsn {
    insn(0x62, 10, 0, offset, value)
}

/// Map 0 keeps r0; others follow.
fn vm(code: &[RawInsn], mut maps: Vec<MapSpec>) -> Vm {
    maps.insert(0, MapSpec::new("result", MapType::Array, 4, 8, 1));
    let keep = [insn(0x18, 9, 2, 0, 0), insn(0, 0, 0, 0, 0), insn(0x7b, 9, 0, 0, 0), mov(0, 2), EXIT];
    let settings = Settings { cpus: 2, seed: 1, insns_max: 10_000, ..Settings::default() };
    Vm::from_bytecode(&[code, &keep].concat(), maps, settings).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// r0 after the code.
fn result(vm: &mut Vm) -> u64 {
    let mut page = vec![0; 4096];
    let mut buff = XdpBuff::new(&mut page, 256, 60).unwrap();
    let outcome = vm.run(&mut buff, &RxMeta { ifindex: 1, queue: 0, cpu: 1, now_ns: 40_000_000 });
    if let Some(fault) = outcome.fault() {
        panic!("{}", vm.describe(fault));
    }
    u64::from_le_bytes(vm.map("result").unwrap().lookup(&[0; 4]).unwrap()[0].try_into().unwrap())
}

fn answer(code: &[RawInsn]) -> u64 {
    result(&mut vm(code, Vec::new()))
}

#[test]
fn what_is_simple() {
    for (helper, want) in [(5, 40_000_000), (8, 1), (42, 0), (118, 10), (125, 40_000_000), (160, 40_000_000), (188, 60)]
    {
        assert_eq!(answer(&[call(helper)]), want, "{helper}");
    }
    let mut random = vm(&[call(7)], Vec::new());
    let numbers: Vec<_> = (0..3).map(|_| result(&mut random)).collect();
    assert!(numbers.iter().all(|number| *number <= u64::from(u32::MAX)));
    let mut again = vm(&[call(7)], Vec::new());
    assert_eq!(numbers, (0..3).map(|_| result(&mut again)).collect::<Vec<_>>(), "the same seed");
}

#[test]
fn strings_compare() {
    let compare = |mine: &[u8; 4], theirs: &[u8; 4], len| {
        let code = [
            &[word(-8, i32::from_le_bytes(*mine)), word(-16, i32::from_le_bytes(*theirs))][..],
            &stack(1, -8),
            &[mov(2, len)],
            &stack(3, -16),
            &[call(182)],
        ];
        answer(&code.concat()).cast_signed()
    };
    assert_eq!(compare(b"abc\0", b"abc\0", 4), 0);
    assert_eq!(compare(b"abc\0", b"abd\0", 4), -1);
    assert_eq!(compare(b"abd\0", b"abc\0", 4), 1);
    assert_eq!(compare(b"abcx", b"abcy", 3), 0);
    assert_eq!(compare(b"ab\0x", b"ab\0y", 4), 0);
}

#[test]
fn queues_from_programs() {
    let maps = || vec![MapSpec::new("queue", MapType::Queue, 0, 4, 2)];
    let push = |value| [&[word(-4, value)][..], &map(1, 1), &stack(2, -4), &[mov(3, 0), call(87)]].concat();
    let mut full = vm(&[push(1), push(2), push(3)].concat(), maps());
    assert_eq!(result(&mut full), -7i64 as u64);
    let pop = |helper| [&map(1, 1)[..], &stack(2, -8), &[call(helper), insn(0x61, 0, 10, -8, 0)]].concat();
    assert_eq!(result(&mut vm(&[push(5), push(6), pop(89)].concat(), maps())), 5);
    assert_eq!(result(&mut vm(&[push(5), push(6), pop(88), pop(88)].concat(), maps())), 6);
    let empty = [&map(1, 1)[..], &stack(2, -8), &[call(88)]].concat();
    assert_eq!(result(&mut vm(&empty, maps())), -2i64 as u64);
}

#[test]
fn large_values_of_maps_with_data_fit() {
    let mut data = MapSpec::new("data", MapType::Array, 4, 400, 1);
    data.data = vec![3; 400];
    let mut queue = MapSpec::new("queue", MapType::Queue, 0, 300, 2);
    queue.read_only = true;
    let key = [&[word(-4, 0)][..], &map(1, 1), &stack(2, -4), &stack(3, -404), &[mov(4, 0), call(2)]].concat();
    let mut code = key;
    code.extend([&map(1, 2)[..], &stack(2, -304), &[mov(3, 0), call(87)]].concat());
    let mut vm = vm(&code, vec![data, queue]);
    assert_eq!(result(&mut vm), 0);
    assert_eq!(vm.map("queue").unwrap().len(), 1);
}

#[test]
fn values_of_other_cpus() {
    let maps = || vec![MapSpec::new("counters", MapType::PerCpuArray, 4, 8, 1)];
    let lookup = |cpu| {
        [
            &[word(-4, 0)][..],
            &map(1, 1),
            &stack(2, -4),
            &[mov(3, cpu), call(195), insn(0x15, 0, 0, 1, 0), insn(0x79, 0, 0, 0, 0)],
        ]
        .concat()
    };
    for (cpu, want) in [(0, 7), (1, 8), (2, 0)] {
        let mut vm = vm(&lookup(cpu), maps());
        for cpu in 0..2 {
            let value = u64::from(cpu + 7).to_le_bytes();
            vm.map_mut("counters").unwrap().update_cpu(&[0; 4], &value, ANY, cpu).unwrap();
        }
        assert_eq!(result(&mut vm), want);
    }
}

#[test]
fn updates_and_deletes_from_programs() {
    let maps = || vec![MapSpec::new("hash", MapType::Hash, 4, 4, 1)];
    let update = |key, flags| {
        [&[word(-4, key), word(-8, 9)][..], &map(1, 1), &stack(2, -4), &stack(3, -8), &[mov(4, flags), call(2)]]
            .concat()
    };
    let delete = |key| [&[word(-4, key)][..], &map(1, 1), &stack(2, -4), &[call(3)]].concat();
    for (code, want) in [
        (update(1, 0), 0),
        ([update(1, 0), update(1, 1)].concat(), -17),
        (update(1, 2), -2),
        (update(1, 9), -22),
        ([update(1, 0), update(2, 0)].concat(), -7),
        (delete(1), -2),
        ([update(1, 0), delete(1)].concat(), 0),
    ] {
        assert_eq!(result(&mut vm(&code, maps())) as i64, want);
    }
    let devices = vec![MapSpec::new("devices", MapType::DevMap, 4, 4, 1)];
    let mut refused = vm(&update(0, 0), devices);
    let mut page = vec![0; 4096];
    let outcome = refused.run(&mut XdpBuff::new(&mut page, 256, 60).unwrap(), &RxMeta::default());
    assert!(matches!(outcome.fault().unwrap().kind, FaultKind::MapType { map: 1, .. }));
}

#[test]
fn spin_locks_are_given_back() {
    let of_value = |helper| [insn(0x18, 1, 2, 0, 0), insn(0, 0, 0, 0, 0), call(helper)];
    assert_eq!(answer(&[of_value(93), of_value(94)].concat()), 0);
    for code in [of_value(93).to_vec(), of_value(94).to_vec(), [of_value(93), of_value(93)].concat()] {
        assert_eq!(fault(&[&code[..], &[mov(0, 2), EXIT]].concat()), FaultKind::SpinLock);
    }
}

#[test]
fn records_left_open_are_faults() {
    let maps = || vec![MapSpec::new("ring", MapType::RingBuf, 0, 0, 4096)];
    let reserve = [&map(1, 1)[..], &[mov(2, 16), mov(3, 0), call(131)]].concat();
    let mut left = vm(&reserve, maps());
    let mut page = vec![0; 4096];
    let mut buff = XdpBuff::new(&mut page, 256, 60).unwrap();
    let outcome = left.run(&mut buff, &RxMeta::default());
    assert_eq!(outcome.fault().unwrap().kind, FaultKind::ReservationLeft { map: 1 });
    assert_eq!(left.map_mut("ring").unwrap().pop_record(), None, "given up, not kept");
    let discard = [&reserve[..], &[insn(0xbf, 1, 0, 0, 0), mov(2, 0), call(133), mov(0, 0)]].concat();
    assert_eq!(result(&mut vm(&discard, maps())), 0);
    let output = [&[word(-4, 77)][..], &map(1, 1), &stack(2, -4), &[mov(3, 4), mov(4, 0), call(130)]].concat();
    let mut vm = vm(&output, maps());
    assert_eq!(result(&mut vm), 0);
    assert_eq!(vm.map_mut("ring").unwrap().pop_record(), Some(&77u32.to_le_bytes()[..]));
}

/// `bpf_fib_lookup` of 10.9.8.7 with these flags, and what is then in its structure.
fn fib(vm: &mut Vm) -> (u64, Vec<u8>) {
    let answer = result(vm);
    (answer, vm.map("params").unwrap().lookup(&[0; 4]).unwrap()[0].to_vec())
}

fn fib_vm(flags: i32, packet_len: u16) -> Vm {
    let code = [insn(0x18, 2, 2, 0, 1), insn(0, 0, 0, 0, 0), mov(3, 64), mov(4, flags), call(69)];
    let mut vm = vm(&code, vec![MapSpec::new("params", MapType::Array, 4, 64, 1)]);
    let mut params = [0; 64];
    params[0] = 2;
    params[6..8].copy_from_slice(&packet_len.to_le_bytes());
    params[8] = 1;
    params[32..36].copy_from_slice(&[10, 9, 8, 7]);
    vm.map_mut("params").unwrap().update(&[0; 4], &params, ANY).unwrap();
    vm
}

#[test]
fn routes() {
    assert_eq!(fib(&mut fib_vm(0, 0)).0, 5, "nothing is known: forwarding is off");
    assert_eq!(fib(&mut fib_vm(0x100, 0)).0, EINVAL);
    let known = |flags, packet_len| {
        let mut vm = fib_vm(flags, packet_len);
        let interface =
            |ifindex, mtu| Interface { ifindex, mtu, mac: [2, 0, 0, 0, 0, ifindex as u8], forwarding: true };
        vm.network().interfaces = vec![interface(1, 1500), interface(2, 1400)];
        vm
    };
    assert_eq!(fib(&mut known(0, 0)).0, 4, "no route");
    let gateway = IpAddress::V4([10, 0, 0, 1]);
    let routed = |flags, packet_len| {
        let mut vm = known(flags, packet_len);
        let route = |prefix, prefix_len, gateway| Route {
            prefix: IpAddress::V4(prefix),
            prefix_len,
            ifindex: 2,
            gateway,
            metric: 0,
        };
        vm.network().routes = vec![route([0; 4], 0, None), route([10, 0, 0, 0], 8, Some(gateway))];
        vm
    };
    assert_eq!(fib(&mut routed(0, 0)).0, 7, "no neighbour");
    assert_eq!(fib(&mut routed(4, 0)).0, 0, "none wanted");
    assert_eq!(fib(&mut routed(0, 1401)).0, 8, "too long");
    let mut vm = routed(0, 1400);
    vm.network().neighbors = vec![Neighbor { ifindex: 2, address: gateway, mac: [4; 6] }];
    let (answer, params) = fib(&mut vm);
    assert_eq!((answer, params[8], &params[32..36]), (0, 2, &[10, 0, 0, 1][..]));
    assert_eq!((&params[52..58], &params[58..64]), (&[2, 0, 0, 0, 0, 2][..], &[4; 6][..]));
}

#[test]
fn mtu() {
    let check = |difference, len| {
        answer(
            &[&[word(-4, len)][..], &[mov(2, 0)], &stack(3, -4), &[mov(4, difference), mov(5, 0), call(163)]].concat(),
        )
    };
    assert_eq!(check(0, 0), 0);
    assert_eq!(check(1514 - 60, 0), 0);
    assert_eq!(check(1514 - 59, 0), 1);
    assert_eq!((check(0, 1500), check(0, 1501), check(-1, 1501)), (0, 1, 0));
}

#[test]
fn trace_with_an_array() {
    // "%lld %08x" and two arguments.
    let mut code = vec![
        insn(0x7a, 10, 0, -16, -5),
        insn(0x7a, 10, 0, -8, 0xbeef),
        word(-32, i32::from_le_bytes(*b"%lld")),
        word(-28, i32::from_le_bytes(*b" %08")),
        word(-24, i32::from_le_bytes(*b"x\0\0\0")),
    ];
    code.extend([&stack(1, -32)[..], &[mov(2, 10)], &stack(3, -16), &[mov(4, 16), call(177)]].concat());
    let mut vm = vm(&code, Vec::new());
    assert_eq!(result(&mut vm), 11);
    assert_eq!(vm.trace().text(), "-5 0000beef");
}

#[test]
fn callbacks_see_whole_keys_and_no_more() {
    // For each entry of the hash: r0 = the key's byte at `offset`, which ends the walk; its count is the answer.
    let walk = |offset| {
        let mut code = vec![word(-8, 5), word(-4, 6), word(-12, 9)];
        code.extend([&map(1, 1)[..], &stack(2, -6), &stack(3, -12), &[mov(4, 0), call(2)]].concat());
        code.extend(map(1, 1));
        // The callback is behind the end, which is 5 slots.
        code.extend([insn(0x18, 2, 4, 0, 9), insn(0, 0, 0, 0, 0), mov(3, 0), mov(4, 0), call(164)]);
        code.extend([insn(0x18, 9, 2, 0, 0), insn(0, 0, 0, 0, 0), insn(0x7b, 9, 0, 0, 0), mov(0, 2), EXIT]);
        code.extend([insn(0x71, 0, 2, offset, 0), EXIT]);
        let result = MapSpec::new("result", MapType::Array, 4, 8, 1);
        let maps = vec![result, MapSpec::new("hash", MapType::Hash, 5, 4, 4)];
        Vm::from_bytecode(&code, maps, Settings::default()).unwrap_or_else(|problems| panic!("{problems:?}"))
    };
    assert_eq!(result(&mut walk(4)), 1);
    let mut page = vec![0; 4096];
    let outcome = walk(5).run(&mut XdpBuff::new(&mut page, 256, 60).unwrap(), &RxMeta::default());
    assert!(matches!(outcome.fault().unwrap().kind, FaultKind::Access { place: Place::Key, .. }));
}

/// A length that wraps around with the address is no small length.
#[test]
fn no_length_is_too_large_to_be_refused() {
    let ring = || MapSpec::new("ring", MapType::RingBuf, 0, 0, 4096);
    let reserve = [&map(1, 1)[..], &[mov(2, 16), mov(3, 0), call(131), insn(0xbf, 6, 0, 0, 0)]].concat();
    let of_record = [&reserve[..], &[insn(0xbf, 2, 6, 0, 0), insn(0x07, 2, 0, 0, 1)]].concat();
    let of_value = [insn(0x18, 2, 2, 0, 0), insn(0, 0, 0, 0, 1)].to_vec();
    let of_stack = stack(2, -8).to_vec();
    for data in [of_value, of_record, of_stack, vec![mov(2, -1)]] {
        let code = [&data[..], &map(1, 2), &[mov(3, -1), mov(4, 0), call(130)]].concat();
        let mut vm = vm(&code, vec![ring(), ring()]);
        let mut page = vec![0; 4096];
        let outcome = vm.run(&mut XdpBuff::new(&mut page, 256, 60).unwrap(), &RxMeta::default());
        assert!(matches!(outcome.fault().unwrap().kind, FaultKind::Access { len: u32::MAX, write: false, .. }));
    }
}

#[test]
fn arguments_that_are_no_maps_are_faults() {
    let lookup = [&[mov(1, 5)][..], &stack(2, -4), &[call(1), EXIT]].concat();
    assert!(matches!(fault(&lookup), FaultKind::NotAMap { value: 5, .. }));
    assert_eq!(fault(&[mov(1, 9), mov(2, 7), mov(3, 0), mov(4, 0), call(181), EXIT]), FaultKind::NotAFunction(7));
    assert!(matches!(fault(&[mov(1, 0), mov(2, 0), call(44), EXIT]), FaultKind::NotTheContext(_)));
}

/// A ones' complement sum the long way: all words added up, then the carries.
fn folded(words: impl Iterator<Item = u32>) -> u32 {
    let mut sum: u64 = words.map(u64::from).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u32
}

proptest! {
    #[test]
    fn checksum_differences(from in prop::collection::vec(any::<u32>(), 0..4), to in prop::collection::vec(any::<u32>(), 1..4), seed: u16) {
        let mut code = Vec::new();
        for (at, word_at) in from.iter().enumerate() {
            code.push(word(-64 + 4 * at as i16, word_at.cast_signed()));
        }
        for (at, word_at) in to.iter().enumerate() {
            code.push(word(-32 + 4 * at as i16, word_at.cast_signed()));
        }
        code.extend(stack(1, -64));
        code.push(mov(2, from.len() as i32 * 4));
        code.extend(stack(3, -32));
        code.extend([mov(4, to.len() as i32 * 4), mov(5, i32::from(seed)), call(28)]);
        let want = folded(to.iter().copied().chain(from.iter().map(|word| !word)).chain([u32::from(seed)]));
        // Both are zero in ones' complement.
        let zero = |sum: u64| if sum == 0xffff { 0 } else { sum };
        prop_assert_eq!(zero(answer(&code)), zero(u64::from(want)));
    }
}
