//! Our own programs, as clang compiled them, each against what its source says.

use xdp_vm::{
    ANY, Abort, FaultKind, LoadError, Loader, Map, MapSpec, MapType, Outcome, Place, RxMeta, Target, Verdict, Vm,
    XdpBuff, XdpObject,
};

macro_rules! object {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../programs/", $name)).as_slice())
    };
}

fn parse((name, file): (&'static str, &'static [u8])) -> XdpObject<'static> {
    XdpObject::parse(name, file).expect("an object of clang's")
}

fn load(file: (&'static str, &'static [u8]), loader: Loader) -> Vm {
    loader.load(&parse(file)).unwrap_or_else(|error| panic!("{error}"))
}

/// Run on a frame in a page full of 0xa5; the verdict and what the frame and its metadata are afterwards.
fn run_meta(vm: &mut Vm, frame: &[u8], meta: RxMeta) -> (Outcome, Vec<u8>, Vec<u8>) {
    let mut page = vec![0xa5; 4096];
    page[256..256 + frame.len()].copy_from_slice(frame);
    let mut buff = XdpBuff::new(&mut page, 256, frame.len()).unwrap();
    let outcome = vm.run(&mut buff, &meta);
    if let Some(fault) = outcome.fault() {
        eprintln!("{}", vm.describe(fault));
    }
    (outcome, buff.data().to_vec(), buff.metadata().to_vec())
}

fn run(vm: &mut Vm, frame: &[u8]) -> (Verdict, Vec<u8>) {
    let (outcome, after, _) = run_meta(vm, frame, RxMeta::default());
    (outcome.verdict, after)
}

/// An Ethernet and IPv4 frame of 60 bytes, UDP or TCP ports after the header, a right checksum.
fn ipv4(src: [u8; 4], dst: [u8; 4], proto: u8, ports: [u16; 2]) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0x12, 0x34, 0x40, 0, 64, proto]);
    frame[26..30].copy_from_slice(&src);
    frame[30..34].copy_from_slice(&dst);
    let sum = !ones(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame[34..36].copy_from_slice(&ports[0].to_be_bytes());
    frame[36..38].copy_from_slice(&ports[1].to_be_bytes());
    frame
}

/// RFC 1071's sum, bit by bit as it says.
fn ones(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn word(map: &Map, key: u32) -> Option<u64> {
    let value = map.lookup(&key.to_le_bytes())?;
    let mut bytes = [0; 8];
    bytes[..value[0].len().min(8)].copy_from_slice(&value[0][..value[0].len().min(8)]);
    Some(u64::from_le_bytes(bytes))
}

#[test]
fn drop_and_pass() {
    let frame = vec![7; 60];
    assert_eq!(run(&mut load(object!("drop.o"), Loader::new()), &frame), (Verdict::Drop, frame.clone()));
    assert_eq!(run(&mut load(object!("pass.o"), Loader::new()), &frame), (Verdict::Pass, frame.clone()));
}

#[test]
fn count_keeps_a_counter_for_each_cpu() {
    let mut vm = load(object!("count.o"), Loader::new().cpus(2).global("limits", &limits([64, 100, 1514])));
    for (len, cpu) in [(60, 0), (60, 1), (64, 1), (65, 0), (100, 1), (101, 0), (2000, 3)] {
        let (outcome, ..) = run_meta(&mut vm, &vec![0; len], RxMeta { cpu, ..RxMeta::default() });
        assert_eq!(outcome.verdict, Verdict::Pass);
    }
    let counters = vm.map("counters").unwrap();
    let of = |class: u32, cpu| {
        let value = counters.lookup_cpu(&class.to_le_bytes(), cpu).unwrap();
        let number = |at: usize| u64::from_le_bytes(value[at..at + 8].try_into().unwrap());
        (number(0), number(8))
    };
    assert_eq!([of(0, 0), of(0, 1)], [(1, 60), (2, 124)]);
    assert_eq!([of(1, 0), of(1, 1)], [(1, 65), (1, 100)]);
    assert_eq!([of(2, 0), of(2, 1)], [(1, 101), (0, 0)]);
    assert_eq!([of(3, 0), of(3, 1)], [(0, 0), (1, 2000)], "CPU 3 of 2 is CPU 1");
    assert_eq!(word(vm.map(".bss").unwrap(), 0), Some(60 + 60 + 64 + 65 + 100 + 101 + 2000));
    assert_eq!(word(vm.map(".data").unwrap(), 0), Some(2000));
}

fn limits(values: [u32; 3]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn filter_asks_flows_then_prefixes_then_the_global() {
    let frame = ipv4([10, 1, 2, 3], [192, 168, 0, 1], 17, [1000, 53]);
    let mut key = frame[26..34].to_vec();
    key.extend(&frame[34..38]);
    key.extend(17u32.to_le_bytes());
    for (unknown, verdict) in [(0u32, Verdict::Pass), (1, Verdict::Drop)] {
        let loader = Loader::new().program("filter").global("drop_unknown", &unknown.to_le_bytes());
        let mut vm = load(object!("filter.o"), loader);
        assert_eq!(run(&mut vm, &frame).0, verdict);
        let mut prefix = 24u32.to_le_bytes().to_vec();
        prefix.extend([10, 1, 2, 0]);
        vm.map_mut("sources").unwrap().update(&prefix, &3u32.to_le_bytes(), ANY).unwrap();
        assert_eq!(run(&mut vm, &frame).0, Verdict::Tx);
        assert_eq!(run(&mut vm, &ipv4([10, 1, 3, 3], [1; 4], 17, [1, 2])).0, verdict);
        let rule: Vec<u8> = [1u64, 0].iter().flat_map(|value| value.to_le_bytes()).collect();
        vm.map_mut("flows").unwrap().update(&key, &rule, ANY).unwrap();
        assert_eq!(run(&mut vm, &frame).0, Verdict::Drop);
        assert_eq!(run(&mut vm, &frame).0, Verdict::Drop);
        assert_eq!(vm.map("flows").unwrap().lookup(&key).unwrap()[0][8..], 2u64.to_le_bytes());
        assert_eq!(run(&mut vm, &frame[..37]).0, Verdict::Aborted(Abort::Returned), "ports cut off");
        assert_eq!(run(&mut vm, &frame[..33]).0, Verdict::Pass, "no whole header");
    }
}

#[test]
fn macswap_sends_back() {
    let frame: Vec<u8> = (0..60).collect();
    let mut want = frame.clone();
    want[..12].copy_from_slice(&[6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5]);
    assert_eq!(run(&mut load(object!("macswap.o"), Loader::new()), &frame), (Verdict::Tx, want));
}

#[test]
fn vlan_tags_go_on_and_off() {
    let frame: Vec<u8> = (0..60).collect();
    let mut push = load(object!("vlan.o"), Loader::new().program("push").global("vlan_id", &0x123u16.to_le_bytes()));
    let (verdict, tagged) = run(&mut push, &frame);
    let want = [&frame[..12], &[0x81, 0, 1, 0x23], &frame[12..]].concat();
    assert_eq!((verdict, &tagged), (Verdict::Tx, &want));
    let mut pop = load(object!("vlan.o"), Loader::new().program("pop"));
    let (outcome, plain, meta) = run_meta(&mut pop, &tagged, RxMeta::default());
    assert_eq!((outcome.verdict, plain, meta), (Verdict::Pass, frame.clone(), 0x123u32.to_le_bytes().to_vec()));
    assert_eq!(run(&mut pop, &frame), (Verdict::Pass, frame), "no tag, no change");
}

#[test]
fn rewrite_mends_the_checksum() {
    let mut vm = load(object!("rewrite.o"), Loader::new().global("new_address", &0xc0a8_0102u32.to_le_bytes()));
    for last in 0..=255 {
        let frame = ipv4([10, last, 2, 3], [192, last ^ 0x5a, 0, 1], 17, [1, 2]);
        let (verdict, after) = run(&mut vm, &frame);
        assert_eq!(verdict, Verdict::Tx);
        assert_eq!(after[30..34], [192, 168, 1, 2]);
        assert_eq!(ones(&after[14..34]), 0xffff, "{last}");
        assert_eq!((&after[..24], &after[34..]), (&frame[..24], &frame[34..]), "nothing else moved");
    }
}

#[test]
fn tail_calls_end_at_33() {
    let mut vm = load(object!("chain.o"), Loader::new().program("chain"));
    let names: Vec<_> = vm.programs().iter().map(|program| program.name.as_str()).collect();
    assert_eq!(names.first(), Some(&"chain"));
    assert!(names.contains(&"tcp") && names.contains(&"again"));
    assert_eq!(run(&mut vm, &ipv4([1; 4], [2; 4], 6, [1, 2])).0, Verdict::Drop);
    assert_eq!(run(&mut vm, &ipv4([1; 4], [2; 4], 1, [1, 2])).0, Verdict::Pass, "no such entry");
    assert_eq!(run(&mut vm, &ipv4([1; 4], [2; 4], 99, [1, 2])).0, Verdict::Pass, "no such index");
    assert_eq!(run(&mut vm, &ipv4([1; 4], [2; 4], 17, [1, 2])).0, Verdict::Tx);
    assert_eq!(word(vm.map(".bss").unwrap(), 0), Some(33), "the first call is one of them");
    // The user takes a program out, and puts another in.
    let tcp = vm.program_id("tcp").unwrap();
    vm.map_mut("protocols").unwrap().delete(&6u32.to_le_bytes()).unwrap();
    vm.map_mut("protocols").unwrap().update(&1u32.to_le_bytes(), &tcp.to_le_bytes(), ANY).unwrap();
    assert_eq!(run(&mut vm, &ipv4([1; 4], [2; 4], 6, [1, 2])).0, Verdict::Pass);
    assert_eq!(run(&mut vm, &ipv4([1; 4], [2; 4], 1, [1, 2])).0, Verdict::Drop);
}

#[test]
fn loops_call_back() {
    let mut vm = load(object!("sum.o"), Loader::new());
    let frame: Vec<u8> = (0..100).collect();
    assert_eq!(run(&mut vm, &frame).0, Verdict::Pass);
    assert_eq!(word(vm.map(".bss").unwrap(), 0), Some((0..100).sum()));
    for (sum, verdict) in [(1u32, 1u32), (4950, 3), (4951, 1)] {
        vm.map_mut("sums").unwrap().update(&sum.to_le_bytes(), &verdict.to_le_bytes(), ANY).unwrap();
    }
    assert_eq!(run(&mut vm, &frame).0, Verdict::Tx);
}

#[test]
fn redirects_have_targets() {
    let mut vm = load(object!("steer.o"), Loader::new().cpus(4));
    let steer = |vm: &mut Vm, first: u8, second: u8| {
        let mut frame = vec![0; 60];
        frame[..2].copy_from_slice(&[first, second]);
        run_meta(vm, &frame, RxMeta { ifindex: 2, queue: 5, cpu: 3, now_ns: 77 }).0.verdict
    };
    let map = |vm: &Vm, name| vm.map_id(name).unwrap();
    assert_eq!(steer(&mut vm, 0, 9), Verdict::Redirect(Target::Interface { ifindex: 9 }));
    assert_eq!(steer(&mut vm, 1, 3), Verdict::Drop, "nothing in the map: the flags' lower bits");
    vm.map_mut("devices").unwrap().update(&3u32.to_le_bytes(), &[8, 0, 0, 0, 1, 0, 0, 0], ANY).unwrap();
    let devices = map(&vm, "devices");
    let target = Target::Device { map: devices, key: 3, ifindex: 8, program: Some(0) };
    assert_eq!(steer(&mut vm, 1, 3), Verdict::Redirect(target));
    let target = Target::Broadcast { map: devices, exclude_ingress: true };
    assert_eq!(steer(&mut vm, 2, 0), Verdict::Redirect(target));
    assert_eq!(steer(&mut vm, 3, 1), Verdict::Pass);
    vm.map_mut("cpus").unwrap().update(&1u32.to_le_bytes(), &192u32.to_le_bytes(), ANY).unwrap();
    let target = Target::Cpu { map: map(&vm, "cpus"), cpu: 1, queue_size: 192, program: None };
    assert_eq!(steer(&mut vm, 3, 1), Verdict::Redirect(target));
    assert_eq!(steer(&mut vm, 4, 0), Verdict::Pass);
    vm.map_mut("sockets").unwrap().update(&5u32.to_le_bytes(), &1u32.to_le_bytes(), ANY).unwrap();
    let target = Target::Socket { map: map(&vm, "sockets"), key: 5, socket: 1 };
    assert_eq!(steer(&mut vm, 4, 0), Verdict::Redirect(target));
    assert_eq!(steer(&mut vm, 8, 0), Verdict::Aborted(Abort::Returned), "flags");
    assert_eq!(steer(&mut vm, 9, 0), Verdict::Aborted(Abort::NoTarget));
    assert_eq!(steer(&mut vm, 200, 0), Verdict::Aborted(Abort::UnknownAction(200)));
}

#[test]
fn events_come_out() {
    let mut vm = load(object!("steer.o"), Loader::new().cpus(4));
    let meta = RxMeta { ifindex: 2, queue: 5, cpu: 3, now_ns: 77 };
    let mut frame = vec![0xee; 60];
    frame[..2].copy_from_slice(&[5, 0]);
    assert_eq!(run_meta(&mut vm, &frame, meta).0.verdict, Verdict::Pass);
    let want = [&77u64.to_le_bytes()[..], &60u32.to_le_bytes(), &3u32.to_le_bytes()].concat();
    assert_eq!(vm.map_mut("events").unwrap().pop_record(), Some(&want[..]));
    assert_eq!(vm.map_mut("events").unwrap().pop_record(), None);
    frame[0] = 6;
    assert_eq!(run_meta(&mut vm, &frame, meta).0.verdict, Verdict::Pass);
    let want = [&3u32.to_le_bytes()[..], &0x1234u32.to_le_bytes(), &frame[..6]].concat();
    assert_eq!(vm.map_mut("samples").unwrap().pop_record(), Some(&want[..]));
    frame[..2].copy_from_slice(&[7, 0xab]);
    assert_eq!(run_meta(&mut vm, &frame, meta).0.verdict, Verdict::Pass);
    assert_eq!(vm.trace().text(), "60 bytes, ab, text");
    // A ring that nobody empties is full after 170 records of 24 bytes, and says so.
    frame[0] = 5;
    let passed = (0..200).filter(|_| run_meta(&mut vm, &frame, meta).0.verdict == Verdict::Pass).count();
    assert_eq!((passed, vm.map("events").unwrap().lost_records()), (4096 / 24, 200 - 4096 / 24));
}

#[test]
fn maps_of_the_old_form_and_maps_of_maps() {
    let mut vm = load(object!("legacy.o"), Loader::new());
    assert_eq!(run(&mut vm, &[0; 60]).0, Verdict::Pass);
    assert_eq!(word(vm.map("seen").unwrap(), 1), Some(2));
    assert_eq!(vm.programs()[0].section, "any_name_at_all");

    let mut vm = load(object!("inner.o"), Loader::new());
    let on_queue = |vm: &mut Vm, queue| run_meta(vm, &[0; 60], RxMeta { queue, ..RxMeta::default() }).0.verdict;
    assert_eq!(on_queue(&mut vm, 1), Verdict::Pass);
    assert_eq!(word(vm.map("first").unwrap(), 1), Some(1));
    assert_eq!(on_queue(&mut vm, 2), Verdict::Drop);
    let other = vm.add_map(MapSpec::new("other", MapType::Array, 4, 8, 2)).unwrap();
    vm.map_mut("tables").unwrap().update(&2u32.to_le_bytes(), &other.to_le_bytes(), ANY).unwrap();
    assert_eq!(on_queue(&mut vm, 2), Verdict::Pass);
    assert_eq!(word(vm.map("other").unwrap(), 1), Some(1));
}

/// The frame of `ipv4` with an ICMP message of 8 bytes behind its header: type, code, a right checksum, id 1, sequence 2.
fn icmp(kind: u8, code: u8) -> Vec<u8> {
    let mut frame = ipv4([10, 0, 0, 1], [10, 0, 0, 2], 1, [0, 0]);
    frame.truncate(42);
    frame[16..18].copy_from_slice(&[0, 28]);
    frame[34..].copy_from_slice(&[kind, code, 0, 0, 0, 1, 0, 2]);
    let sum = !ones(&frame[34..]);
    frame[36..38].copy_from_slice(&sum.to_be_bytes());
    right_header(&mut frame);
    frame
}

/// Give a header of 20 bytes its checksum.
fn right_header(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let sum = !ones(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}

#[test]
fn echo_answers_requests() {
    let mut vm = load(object!("echo.o"), Loader::new());
    let mut request = icmp(8, 0);
    assert_eq!(request[36..38], [0xf7, 0xfc], "0x0800 + 1 + 2");
    request[22] = 9;
    right_header(&mut request);
    let (verdict, reply) = run(&mut vm, &request);
    assert_eq!(verdict, Verdict::Tx);
    assert_eq!((&reply[..6], &reply[6..12]), (&request[6..12], &request[..6]));
    assert_eq!((&reply[26..30], &reply[30..34]), (&request[30..34], &request[26..30]));
    assert_eq!(reply[34..], [0, 0, 0xff, 0xfc, 0, 1, 0, 2], "0x0000 + 1 + 2");
    assert_eq!((reply[22], ones(&reply[14..34])), (64, 0xffff));
    assert_eq!((&reply[12..22], reply[23]), (&request[12..22], 1), "nothing else moved");
    assert_eq!(word(vm.map(".bss").unwrap(), 0), Some(1));
}

#[test]
fn echo_leaves_the_rest_alone() {
    let mut vm = load(object!("echo.o"), Loader::new());
    let with = |at: usize, byte: u8| {
        let mut frame = icmp(8, 0);
        frame[at] = byte;
        frame
    };
    for (what, frame, verdict) in [
        ("a reply", icmp(0, 0), Verdict::Pass),
        ("another code", icmp(8, 1), Verdict::Pass),
        ("UDP", with(23, 17), Verdict::Pass),
        ("IPv6 by version", with(14, 0x65), Verdict::Pass),
        ("ARP", with(13, 6), Verdict::Pass),
        ("a fragment", with(20, 0x20), Verdict::Pass),
        ("a header of 16 bytes", with(14, 0x44), Verdict::Drop),
        ("a message cut off", icmp(8, 0)[..41].to_vec(), Verdict::Drop),
        ("options where the frame ends", with(14, 0x46), Verdict::Drop),
    ] {
        assert_eq!(run(&mut vm, &frame), (verdict, frame), "{what}");
    }
    assert_eq!(word(vm.map(".bss").unwrap(), 0), Some(0));
}

/// The encapsulating program with a tunnel for 10.0.0.2.
fn tunnelling(loader: Loader) -> Vm {
    let mut vm = load(object!("ipip.o"), loader.program("encap"));
    let tunnel = [192, 0, 2, 1, 198, 51, 100, 0, 2, 0, 0, 0, 0, 9, 0, 0];
    vm.map_mut("tunnels").unwrap().update(&[10, 0, 0, 2], &tunnel, ANY).unwrap();
    vm
}

#[test]
fn encap_wraps_a_datagram() {
    let mut vm = tunnelling(Loader::new());
    let mut inner = ipv4([10, 0, 0, 1], [10, 0, 0, 2], 17, [5, 6]);
    let (verdict, outer) = run(&mut vm, &inner);
    assert_eq!(verdict, Verdict::Tx);
    assert_eq!(outer[..14], [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 0]);
    // DF as inside, so no identification. The sum: 4500 + 0042 + 4000 + 4004 + c000 + 0201 + c633 + 6400 = 2b17a.
    let header = [0x45, 0, 0, 66, 0, 0, 0x40, 0, 64, 4, 0x4e, 0x83, 192, 0, 2, 1, 198, 51, 100, 0];
    assert_eq!(outer[14..34], header);
    assert_eq!(outer[34..], inner[14..]);
    // Without DF each gets an identification of its own.
    inner[20] = 0;
    for id in 0..3 {
        let (_, outer) = run(&mut vm, &inner);
        assert_eq!((&outer[18..22], ones(&outer[14..34])), (&[0, id, 0, 0][..], 0xffff));
    }
    // A datagram of 30 bytes in a frame of 60: the padding stays behind.
    inner[17] = 30;
    let (_, outer) = run(&mut vm, &inner);
    assert_eq!((outer.len(), &outer[16..18], &outer[34..]), (64, &[0, 50][..], &inner[14..44]));
}

#[test]
fn encap_leaves_the_rest_alone() {
    let mut vm = tunnelling(Loader::new().global("mtu", &66u32.to_le_bytes()));
    let good = ipv4([10, 0, 0, 1], [10, 0, 0, 2], 17, [5, 6]);
    assert_eq!(run(&mut vm, &good).0, Verdict::Tx, "just short enough");
    let with = |at: usize, byte: u8| {
        let mut frame = good.clone();
        frame[at] = byte;
        frame
    };
    let longer = [&with(17, 47)[..], &[0]].concat();
    for (what, frame, verdict) in [
        ("no tunnel", with(33, 3), Verdict::Pass),
        ("no IPv4", with(12, 0x86), Verdict::Pass),
        ("another version", with(14, 0x65), Verdict::Pass),
        ("longer than the MTU", longer, Verdict::Pass),
        ("shorter than its header", with(17, 19), Verdict::Drop),
        ("longer than its frame", with(17, 47), Verdict::Drop),
    ] {
        assert_eq!(run(&mut vm, &frame), (verdict, frame), "{what}");
    }
}

#[test]
fn decap_takes_the_wrapping_off() {
    let inner = ipv4([10, 0, 0, 1], [10, 0, 0, 2], 17, [5, 6]);
    let (_, outer) = run(&mut tunnelling(Loader::new()), &inner);
    let mut vm = load(object!("ipip.o"), Loader::new().program("decap"));
    let (verdict, plain) = run(&mut vm, &outer);
    assert_eq!((verdict, &plain[..14], &plain[14..]), (Verdict::Pass, &outer[..14], &inner[14..]));
    for (what, at, byte) in [("a fragment", 20, 0x60), ("options", 14, 0x46), ("UDP", 23, 17), ("ARP", 13, 6)] {
        let mut other = outer.clone();
        other[at] = byte;
        assert_eq!(run(&mut vm, &other), (Verdict::Pass, other), "{what}");
    }
}

#[test]
fn df_counts_what_identifications_mean() {
    let mut vm = load(object!("df.o"), Loader::new().cpus(2));
    let mut see = |fragment: u16, id: u16, proto: u8, now_ns: u64, cpu: u32| {
        let mut frame = ipv4([10, 0, 0, 1], [10, 0, 0, 2], proto, [5, 6]);
        frame[18..20].copy_from_slice(&id.to_be_bytes());
        frame[20..22].copy_from_slice(&fragment.to_be_bytes());
        let (outcome, after, _) = run_meta(&mut vm, &frame, RxMeta { now_ns, cpu, ..RxMeta::default() });
        assert_eq!((outcome.verdict, after), (Verdict::Pass, frame));
    };
    const LIFETIME: u64 = 120_000_000_000;
    see(0x4000, 0, 17, 0, 0); // atomic, id 0
    see(0x4000, 7, 17, 0, 0); // atomic
    see(0x4000, 7, 17, 1, 0); // atomic: may repeat
    see(0, 7, 17, 2, 0); // the first that counts
    see(0, 7, 17, LIFETIME + 1, 0); // too early by 1 ns
    see(0, 7, 17, 2 * LIFETIME + 1, 0); // just late enough
    see(0x0005, 7, 17, 2 * LIFETIME + 2, 0); // a later fragment
    see(0x2000, 7, 17, 2 * LIFETIME + 3, 0); // a first fragment: too early
    see(0x6000, 8, 17, 0, 0); // DF, yet a fragment
    see(0, 7, 6, 3, 0); // another flow
    see(0, 0, 6, 4, 1); // id 0 that means something, on the other CPU
    let of = |cpu| numbers(vm.map("statistics").unwrap().lookup_cpu(&[0; 4], cpu).unwrap());
    // Datagrams, DF, atomic, of these id 0, of the others id 0, fragments, reused.
    assert_eq!(of(0), [10, 4, 3, 1, 0, 3, 2]);
    assert_eq!(of(1), [1, 0, 0, 0, 1, 0, 0]);
    let flow = |proto: u32| {
        let key = [&[10, 0, 0, 1, 10, 0, 0, 2][..], &proto.to_le_bytes()].concat();
        numbers(vm.map("flows").unwrap().lookup(&key).unwrap()[0])
    };
    assert_eq!([flow(17), flow(6)], [[5, 2], [2, 0]], "datagrams, reused");
    assert_eq!(vm.map("seen").unwrap().len(), 4);
}

fn numbers(value: &[u8]) -> Vec<u64> {
    value.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn atomics_change_and_tell() {
    const WORD: u64 = 0x8123_4567_89ab_cdef;
    const OPERAND: u64 = 0x00ff_ff00_f0f0_0f0f;
    const HALF: u32 = 0x8765_4321;
    type Results = (u64, u32);
    let operand = OPERAND as u32;
    let sum: Results = (0x8223_4468_7a9b_dcfe, 0x7855_5230);
    let or: Results = (0x81ff_ff67_f9fb_cfef, 0xf7f5_4f2f);
    let and: Results = (0x0023_4500_80a0_0d0f, 0x8060_0301);
    let xor: Results = (0x81dc_ba67_795b_c2e0, 0x7795_4c2e);
    let old = Some((WORD, HALF));
    for (key, flag, after, told) in [
        (0u8, 0, sum, None),
        (1, 0, or, None),
        (2, 0, and, None),
        (3, 0, xor, None),
        (4, 0, sum, old),
        (5, 0, or, old),
        (6, 0, and, old),
        (7, 0, xor, old),
        (8, 0, (OPERAND, operand), old),
        (9, 0, (WORD, HALF), old),
        (9, 1, (OPERAND, operand), old),
    ] {
        let mut vm = load(object!("atomics.o"), Loader::new());
        let value = [&WORD.to_le_bytes()[..], &[0; 8], &HALF.to_le_bytes(), &[0; 4]].concat();
        vm.map_mut("cells").unwrap().update(&u32::from(key).to_le_bytes(), &value, ANY).unwrap();
        let mut frame = vec![0; 60];
        frame[..2].copy_from_slice(&[key, flag]);
        frame[2..10].copy_from_slice(&OPERAND.to_le_bytes());
        let verdict = if told.is_some() { Verdict::Tx } else { Verdict::Pass };
        assert_eq!(run(&mut vm, &frame), (verdict, frame), "{key}");
        let (word, half) = told.unwrap_or_default();
        let halves = u64::from(half) << 32 | u64::from(after.1);
        let cell = vm.map("cells").unwrap().lookup(&u32::from(key).to_le_bytes()).unwrap();
        assert_eq!(numbers(cell[0]), [after.0, word, halves], "operation {key}, {flag}");
    }
}

#[test]
fn tables_answer_as_the_kernel_at_their_limits() {
    let mut vm = load(object!("tables.o"), Loader::new());
    let mut ask = |table: u8, operation: u8, key: u8| {
        let mut frame = vec![0; 60];
        frame[..2].copy_from_slice(&[table << 3 | operation, key]);
        run_meta(&mut vm, &frame, RxMeta::default()).0.returned.cast_signed()
    };
    const NO_ENTRY: i32 = -2;
    const TOO_BIG: i32 = -7;
    const AGAIN: i32 = -11;
    const EXISTS: i32 = -17;
    const INVALID: i32 = -22;
    const NO_SPACE: i32 = -28;
    // Hash, per-CPU hash: 16 entries, and one more.
    for table in [0, 1] {
        assert_eq!(ask(table, 3, 0), NO_ENTRY);
        (0..16).for_each(|key| assert_eq!(ask(table, 2, key), 0));
        assert_eq!(
            (ask(table, 2, 3), ask(table, 0, 16), ask(table, 6, 15), ask(table, 6, 16)),
            (EXISTS, TOO_BIG, 1, 0)
        );
        assert_eq!((ask(table, 5, 3), ask(table, 5, 3), ask(table, 0, 16)), (0, NO_ENTRY, 0));
        assert_eq!((ask(table, 4, 0), ask(table, 4, 0x20)), (INVALID, INVALID), "an unknown flag, a lock");
    }
    // Prefixes of 0 to 32 bits.
    (0..16).for_each(|len| assert_eq!(ask(3, 0, len), 0));
    assert_eq!((ask(3, 0, 16), ask(3, 0, 33), ask(3, 5, 33), ask(3, 5, 20)), (NO_SPACE, INVALID, INVALID, NO_ENTRY));
    assert_eq!((ask(3, 6, 33), ask(3, 6, 32)), (0, 1));
    // An array, with its order of checks.
    assert_eq!((ask(4, 0, 15), ask(4, 0, 16), ask(4, 2, 15), ask(4, 5, 15)), (0, TOO_BIG, EXISTS, INVALID));
    assert_eq!((ask(4, 4, 0x20), ask(4, 4, 0x3f)), (INVALID, TOO_BIG), "the index before the lock");
    // Queue and stack of 8.
    for table in [5, 6] {
        assert_eq!((ask(table, 3, 0), ask(table, 5, 0)), (NO_ENTRY, NO_ENTRY));
        (0..8).for_each(|_| assert_eq!(ask(table, 0, 0), 0));
        assert_eq!((ask(table, 0, 0), ask(table, 2, 0), ask(table, 3, 0), ask(table, 5, 0)), (TOO_BIG, 0, 0, 0));
    }
    // A ring of 4096: ten records of 408 bytes, then 8 and 7 more would fill it, which never happens; 8 still fit.
    (0..10).for_each(|_| assert_eq!(ask(7, 2, 0), 0));
    assert_eq!((ask(7, 2, 0), ask(7, 1, 7), ask(7, 1, 0)), (-1, AGAIN, 0));
    assert_eq!([4, 5, 6, 7].map(|what| ask(7, what, 0)), [4088, 4096, 0, 4088], "waiting, size, read, written");
}

#[cfg(feature = "coverage")]
#[test]
fn coverage_tells_what_did_not_run() {
    let mut vm = load(object!("echo.o"), Loader::new());
    let mut coverage = vm.coverage();
    assert_eq!(vm.covered(&coverage).percent(), 0);
    let mut see = |vm: &mut Vm, frame: &[u8]| {
        let mut page = vec![0; 4096];
        page[256..256 + frame.len()].copy_from_slice(frame);
        let mut buff = XdpBuff::new(&mut page, 256, frame.len()).unwrap();
        vm.run_covered(&mut buff, &RxMeta::default(), &mut coverage).verdict
    };
    assert_eq!(see(&mut vm, &[0; 60]), Verdict::Pass);
    assert_eq!(see(&mut vm, &icmp(8, 0)), Verdict::Tx);
    // The way to an answer passes all that there is. With a frame that is none, most is missed.
    assert_eq!(vm.covered(&coverage).missed, []);
    let mut other = vm.coverage();
    let mut page = vec![0; 4096];
    vm.run_covered(&mut XdpBuff::new(&mut page, 256, 60).unwrap(), &RxMeta::default(), &mut other);
    let report = vm.covered(&other);
    assert!(report.insns > 60 && report.percent() < 20, "{report:?}");
    let missed = &report.missed[0];
    assert_eq!((missed.function.as_str(), &*missed.line.as_ref().unwrap().file), ("echo", "bpf.h"));
}

#[test]
fn borders_go_so_far() {
    let mut vm = load(object!("borders.o"), Loader::new());
    let mut frame: Vec<u8> = (0..60).collect();
    let mut ask = |what: u8, by: i16, text: &[u8; 8]| {
        frame[0] = what;
        frame[2..4].copy_from_slice(&by.to_le_bytes());
        frame[4..12].copy_from_slice(text);
        let (outcome, after, meta) = run_meta(&mut vm, &frame, RxMeta::default());
        (outcome.returned.cast_signed(), after.len(), meta)
    };
    let none = Vec::new;
    const INVALID: i32 = -22;
    const ACCESS: i32 = -13;
    const REFUSED: (i32, usize) = (INVALID, 60);
    // A head of 14 to 60 + 256 - 40 bytes; metadata of 216, a multiple of 4; a tail up to 3,520.
    for (what, by, want) in [
        (0, 46, (0, 14)),
        (0, 47, REFUSED),
        (0, -216, (0, 276)),
        (0, -217, REFUSED),
        (2, -46, (0, 14)),
        (2, -47, REFUSED),
        (2, 3460, (0, 3520)),
        (2, 3461, REFUSED),
        (1, -217, REFUSED),
        (1, 4, REFUSED),
        (1, -3, (ACCESS, 60)),
    ] {
        let (answer, len, meta) = ask(what, by, b"........");
        assert_eq!(((answer, len), meta), (want, none()), "{what}, {by}");
    }
    let (answer, len, meta) = ask(1, -216, b"........");
    assert_eq!((answer, len, meta.len()), (0, 60, 216));
    assert_eq!(ask(3, -208, b"metadata"), (0, 268, b"metadata".to_vec()));
    assert_eq!(ask(3, -209, b"metadata"), (INVALID, 60, b"metadata".to_vec()));
    assert_eq!([ask(4, 52, b"........"), ask(4, 53, b"........")], [(0, 60, none()), (INVALID, 60, none())]);
    assert_eq!([ask(5, 52, b"........"), ask(5, 53, b"........")], [(0, 60, none()), (INVALID, 60, none())]);
    assert_eq!(ask(6, 0, b"........").0, 60);
    // Compared with "onic": by sign, up to the end of either.
    let texts = [b"onic\0...", b"onid\0...", b"onib\0...", b"oni\0....", b"onic....", b"\xffnic\0..."];
    assert_eq!(texts.map(|text| ask(7, 0, text).0), [0, 1, -1, -1, 1, 1]);
}

/// Run on a frame that begins so; what was returned.
fn returned(vm: &mut Vm, first: &[u8]) -> i32 {
    let mut frame = vec![0; 60];
    frame[..first.len()].copy_from_slice(first);
    run_meta(vm, &frame, RxMeta::default()).0.returned.cast_signed()
}

#[test]
fn callbacks_end_early_or_not() {
    let mut vm = load(object!("callbacks.o"), Loader::new());
    let mut sum = 0;
    // Operation, key, number, where to stop, value; the answer, and what the callbacks add up.
    let mut ask = |vm: &mut Vm, [operation, key, value]: [u8; 3], number: u16, stop: u16| {
        let answer =
            returned(vm, &[&[operation, key][..], &number.to_le_bytes(), &stop.to_le_bytes(), &[value]].concat());
        let all = word(vm.map(".bss").unwrap(), 0).unwrap();
        (answer, all - std::mem::replace(&mut sum, all))
    };
    for array in [0, 1] {
        assert_eq!(ask(&mut vm, [array, 0, 0], 0, 999), (8, 28), "0 to 7");
        assert_eq!(ask(&mut vm, [array, 0, 0], 0, 5), (3, 6), "each value is 1 now: 1, then 3, then 6");
    }
    for (key, value) in [(1, 10), (2, 20), (3, 30)] {
        assert_eq!(ask(&mut vm, [2, key, value], 0, 0), (0, 0));
    }
    assert_eq!(ask(&mut vm, [5, 0, 0], 0, 0), (3, (10 ^ 1) + (20 ^ 2) + (30 ^ 3)));
    assert_eq!(ask(&mut vm, [6, 0, 0], 0, 0), (3, 0), "those with odd keys are gone");
    assert_eq!(ask(&mut vm, [5, 0, 0], 0, 0), (1, 22 ^ 2));
    assert_eq!(ask(&mut vm, [7, 0, 0], 0, 0), (-22, 0), "flags");
    assert_eq!(ask(&mut vm, [8, 0, 0], 10, 999), (10, 45));
    assert_eq!(ask(&mut vm, [8, 0, 0], 10, 3), (4, 6));
    assert_eq!([2, 3].map(|over| ask(&mut vm, [9, 0, 0], over, 0)), [(3, 3), (-7, 0)], "2^23 times at most");
    assert_eq!(ask(&mut vm, [10, 0, 0], 5, 9), (-22, 0), "flags");
    assert_eq!(ask(&mut vm, [11, 0, 0], 3, 9), (3, (1 + 2) + 1), "0, 1 and 2 rounds, of which the last adds 0 and 1");
}

#[test]
fn shelves_hold_maps_and_cpus() {
    let mut vm = load(object!("shelves.o"), Loader::new().cpus(2));
    const DROP: i32 = 1;
    const PASS: i32 = 2;
    const REDIRECT: i32 = 4;
    let mut ask = |first: [u8; 4]| returned(&mut vm, &first);
    assert_eq!([ask([0, 1, 2, 7]), ask([0, 5, 2, 7]), ask([0, 1, 4, 7])], [PASS, DROP, 0], "no shelf; nothing on it");
    // Created, found; not there to be replaced; taken out, once.
    assert_eq!([ask([2, 9, 0, 5]), ask([2, 9, 0, 6]), ask([2, 8, 2, 5])], [0, PASS, -2]);
    assert_eq!([ask([3, 8, 0, 0]), ask([4, 0, 3, 50]), ask([4, 0, 4, 50])], [-2, PASS, 0]);
    assert_eq!([0, 1, 2].map(|cpu| ask([5, cpu, 3, 0])), [PASS, PASS, DROP], "two CPUs");
    assert_eq!([ask([6, 3, 1, 3]), ask([6, 3, 1, 32]), ask([7, 3, 0, 0])], [3, 0, DROP], "no device yet");
    vm.map_mut("devices").unwrap().update(&0x103u32.to_le_bytes(), &[8, 0, 0, 0, 0, 0, 0, 0], ANY).unwrap();
    assert_eq!(returned(&mut vm, &[6, 3, 1, 3]), REDIRECT);
    assert_eq!(word(vm.map("first_shelf").unwrap(), 2), Some(7));
    assert_eq!(numbers(vm.map("recent").unwrap().lookup(&9u32.to_le_bytes()).unwrap()[0]), [11]);
    assert_eq!(word(vm.map(".bss").unwrap(), 0), Some(50), "seen on CPU 0, nothing on CPU 1");
}

#[test]
fn locks_guard_a_pair() {
    let mut vm = load(object!("locked.o"), Loader::new());
    let mut see = |first: u8, len: usize| {
        let mut frame = vec![0; len];
        frame[0] = first;
        run(&mut vm, &frame).0
    };
    assert_eq!([see(3, 60), see(3, 100), see(4, 14)], [Verdict::Pass; 3]);
    assert_eq!(see(0x84, 60), Verdict::Tx, "replaced under its lock");
    assert_eq!([0, 1, 2, 5, 6, 7].map(|key| see(key, 60)), [Verdict::Pass; 6]);
    assert_eq!(see(8, 60), Verdict::Drop, "eight entries");
    let of = |key: u32| numbers(vm.map("pairs").unwrap().lookup(&key.to_le_bytes()).unwrap()[0]);
    // The lock is the lower half of the first word.
    assert_eq!([of(3), of(4), of(0)], [[2 << 32, 160], [0, 0], [1 << 32, 60]]);
}

/// What `with_sign` makes of two operands: its verdict and its 24 results.
fn with_sign(left: i64, right: i64) -> (Verdict, Vec<i64>) {
    let mut vm = load(object!("signed.o"), Loader::new());
    let mut frame = vec![0; 16 + 26 * 8];
    frame[16..24].copy_from_slice(&left.to_le_bytes());
    frame[24..32].copy_from_slice(&right.to_le_bytes());
    let (verdict, after) = run(&mut vm, &frame);
    (verdict, numbers(&after[32..]).into_iter().map(u64::cast_signed).collect())
}

#[test]
fn version_4_knows_signs() {
    let (verdict, results) = with_sign(-1000, 7);
    assert_eq!(verdict, Verdict::Tx);
    // 2^64 - 1000 and 2^32 - 1000 by 7; -1000 ends with the bytes fc 18.
    let (minus_142, minus_6) = (0xffff_ff72, 0xffff_fffa);
    assert_eq!(results[..8], [-142, -6, minus_142, minus_6, 2_635_249_153_387_078_659, 3, 613_566_613, 5]);
    assert_eq!(results[8..14], [0x18, -1000, -1000, 0x18, -1000, -1000]);
    assert_eq!(results[14..17], [0x18fc, 0x18fc_ffff, 0x18fc_ffff_ffff_ffff]);
    assert_eq!(results[17..], [-8, 0xffff_fff8, 0x18fc, 0xffff_fc18, 0x18, 0xffff_fc18, 5]);
    assert_eq!(with_sign(1, 1).1[23], 6, "no long jump");
    // By zero: 0, and the rest is all of it.
    let (verdict, results) = with_sign(-5, 0);
    assert_eq!((verdict, &results[..8]), (Verdict::Tx, &[0, -5, 0, 0xffff_fffb, 0, -5, 0, 0xffff_fffb][..]));
    // What has no positive counterpart stays.
    assert_eq!(with_sign(i64::MIN, -1).1[..2], [i64::MIN, 0]);
    assert_eq!(with_sign(0x8000_0000, -1).1[2..4], [0x8000_0000, 0]);
}

fn refused(file: (&'static str, &'static [u8]), loader: Loader) -> String {
    let error: LoadError = loader.load(&parse(file)).map(drop).expect_err("to be refused");
    error.to_string()
}

#[test]
fn one_bad_program_does_not_spoil_the_others() {
    let object = parse(object!("rejects.o"));
    let good: Vec<_> = object.programs().into_iter().filter(|program| program.problems.is_empty()).collect();
    let names: Vec<_> = good.iter().map(|program| program.name.as_str()).collect();
    assert_eq!(names, ["good", "walk"]);
    assert_eq!(object.license(), "Proprietary");
    let mut vm = load(object!("rejects.o"), Loader::new().program("good"));
    assert_eq!(run(&mut vm, &[0; 60]).0, Verdict::Pass);
}

#[test]
fn refusals_name_everything_at_once() {
    let many = refused(object!("rejects.o"), Loader::new().program("many"));
    let lines: Vec<_> = many.lines().collect();
    assert_eq!(lines.len(), 3, "{many}");
    let at = "rejects.o: program many (section xdp/many)";
    let has = |text: String| assert!(lines.iter().any(|line| line.starts_with(&text)), "{text}\nin\n{many}");
    has(format!("{at}: map conns: type 30 BPF_MAP_TYPE_BLOOM_FILTER is not supported"));
    has(format!("{at}: map unsized has max_entries 0: set it with --map-size unsized=N"));
    let helper = lines.iter().find(|line| line.contains("calls helper 99 bpf_skc_lookup_tcp")).unwrap();
    assert!(helper.contains("(rejects.c:") && helper.ends_with("see \"xdp helpers\""), "{helper}");

    let sized = refused(object!("rejects.o"), Loader::new().program("many").max_entries("unsized", 8));
    assert!(!sized.contains("unsized"), "{sized}");
}

#[test]
fn refusals_by_kind() {
    for (program, text) in [
        ("kfunc", "calls kernel function (kfunc) kernel_function; kfuncs are not supported"),
        ("kconfig", "needs the external symbol CONFIG_HZ"),
        ("core", "has 1 CO-RE relocations; not supported"),
        ("proprietary", "calls helper 6 bpf_trace_printk, which only GPL-compatible programs may"),
        ("absent", "is not in the object; it has good, many"),
    ] {
        let said = refused(object!("rejects.o"), Loader::new().program(program));
        assert!(said.contains(text), "{program}: {said}");
    }
    let said = refused(object!("vlan.o"), Loader::new());
    assert!(said.contains("choose one of the programs push, pop"), "{said}");
    let said = refused(object!("drop.o"), Loader::new().global("x", &[1]).max_entries("m", 1).also("y"));
    assert_eq!(said.lines().count(), 3, "{said}");
    let said = refused(object!("count.o"), Loader::new().global("largest", &[1]));
    assert!(said.contains("the global variable largest of 4 bytes, and 1 were given"), "{said}");
    for (file, text) in [(&b"\x7fELF"[..], "not an EM_BPF object"), (b"", "compile with clang -O2 -g -target bpf")] {
        assert!(XdpObject::parse("x", file).unwrap_err().to_string().contains(text));
    }
}

#[test]
fn faults_say_where() {
    let mut vm = load(object!("rejects.o"), Loader::new().program("walk"));
    assert_eq!(run(&mut vm, &[1; 63]).0, Verdict::Pass);
    let (outcome, ..) = run_meta(&mut vm, &[1; 60], RxMeta::default());
    let fault = outcome.fault().expect("byte 62 of 60");
    let place = Place::Packet { offset: 62, len: 60 };
    assert!(matches!(fault.kind, FaultKind::Access { len: 1, write: false, place: found, .. } if found == place));
    let said = vm.describe(fault).to_string();
    assert!(said.starts_with("walk: insn ") && said.contains("(rejects.c:"), "{said}");
    assert!(said.ends_with(" +62): reads 1 bytes at packet+62 (len 60)"), "{said}");
}

#[test]
fn programs_say_what_they_need() {
    let object = parse(object!("filter.o"));
    let [filter] = &object.programs()[..] else { panic!("one program") };
    assert_eq!((filter.name.as_str(), filter.section.as_str()), ("filter", "xdp/filter"));
    assert_eq!(filter.helpers, [1]);
    let mut maps = filter.maps.clone();
    maps.sort();
    assert_eq!(maps, [".rodata", "flows", "sources"]);
    assert_eq!(object.globals().iter().find(|global| global.0 == "drop_unknown").map(|global| global.1), Some(4));
}
