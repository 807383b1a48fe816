//! Each of our programs on the running kernel and in the VM.
//!
//! `XDP_ORACLE_SEED` and `XDP_ORACLE_FRAMES` choose other frames. Where bpf(2) is not permitted, or the kernel is older than
//! what a program needs, the tests say so and pass; with `XDP_ORACLE_REQUIRE=1` they fail instead.

mod support;

use std::sync::Once;

use support::{aloud, permitted, setting};
use traces::synth::Rng;
use xdp_oracle::compare::action_name;
use xdp_oracle::frames::{ADDRESSES, PORTS, captures, seeded};
use xdp_oracle::{Case, Entry, Failure, compare, freeze, kernel, root};

const SEED: u64 = 0x0dd5_eed5;
const FRAMES: usize = 3000;

/// Each return code of a case must occur so often.
const RETURNS_MIN: usize = 30;

/// That there are none is said once.
static CAPTURES: Once = Once::new();

/// And so many percent of its instructions must run.
const COVERAGE_MIN: usize = 95;

const ABORTED: u32 = 0;
const DROP: u32 = 1;
const PASS: u32 = 2;
const TX: u32 = 3;
const REDIRECT: u32 = 4;

fn image(case: &Case) -> Vec<u8> {
    let path = root().join("xdp-vm/programs").join(case.object);
    let file = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    freeze(&file)
}

/// One fact: on these frames kernel and VM do the same, and the frames are worth it.
fn agree(test: &str, case: &Case) {
    if !permitted(test, case.since) {
        return;
    }
    let seed = setting("XDP_ORACLE_SEED").unwrap_or(SEED);
    let count = setting("XDP_ORACLE_FRAMES").map_or(FRAMES, |count| count as usize);
    let mut inputs = seeded(seed, case.program, count, case.shape);
    let folder = root().join("../shared/captures/open");
    match captures(&folder) {
        Ok(found) => inputs.extend(found),
        Err(_) => CAPTURES.call_once(|| aloud("xdp-oracle: captures SKIPPED: ../shared/captures/open is not there")),
    }
    let repro = format!(
        "XDP_ORACLE_SEED={seed:#x} XDP_ORACLE_FRAMES={count} cargo test -p xdp-oracle --test programs -- --exact {test}"
    );
    let cpu = kernel::pin().unwrap_or_else(|error| panic!("{error}"));
    let cpus = kernel::cpus().unwrap_or_else(|error| panic!("{error}"));
    let tally = match compare(case, &image(case), &inputs, cpu, cpus) {
        Ok(tally) => tally,
        Err(Failure::Difference(difference)) => panic!("{difference}\n\nhint: {repro}"),
        Err(failure) => panic!("{}, {}: {failure}\n\nhint: {repro}", case.object, case.program),
    };
    let known = tally.returned.iter().filter(|(code, _)| **code <= REDIRECT);
    let mut returned: Vec<_> = known.map(|(code, count)| format!("{} {count}", action_name(*code))).collect();
    let others: usize = tally.returned.iter().filter(|(code, _)| **code > REDIRECT).map(|(_, count)| count).sum();
    if others > 0 {
        returned.push(format!("others {others}"));
    }
    aloud(&format!(
        "xdp-oracle: {test}: seed {seed:#x}, {} frames, {} entries, {} records: no difference; {}; {} % of {} instructions",
        tally.frames,
        tally.entries,
        tally.records,
        returned.join(", "),
        tally.coverage.percent(),
        tally.coverage.insns
    ));
    if count >= FRAMES {
        let missed = tally.coverage.missed.iter().map(|missed| match &missed.line {
            Some(line) => format!("{}:{}", line.file, line.line),
            None => format!("{} insn {}", missed.function, missed.insn),
        });
        let missed = missed.collect::<Vec<_>>().join(", ");
        let percent = tally.coverage.percent();
        let enough = case.part || percent >= COVERAGE_MIN;
        assert!(enough, "{test}: {percent} % of the instructions ran, not {missed}\n\nhint: {repro}");
        for code in case.returns {
            let found = tally.returned.get(code).copied().unwrap_or(0);
            assert!(found >= RETURNS_MIN, "{test}: {} only {found} times\n\nhint: {repro}", action_name(*code));
        }
    }
}

/// A test for each program, of that program's name.
macro_rules! cases {
    ($($name:ident => $case:expr;)+) => {
        $(
            #[test]
            fn $name() {
                agree(stringify!($name), &$case);
            }
        )+
    };
}

cases! {
    drop => Case::new("drop.o", "drop", &[DROP]);
    pass => Case::new("pass.o", "pass", &[PASS]);
    count => Case::new("count.o", "count", &[PASS]).global("limits", &words(&[64, 100, 1514]));
    filter => filtered(Case::new("filter.o", "filter", &[ABORTED, DROP, PASS, TX]));
    filter_drops_unknown => filtered(Case::new("filter.o", "filter", &[DROP, PASS])).global("drop_unknown", &words(&[1]));
    macswap => Case::new("macswap.o", "macswap", &[TX]);
    push => Case::new("vlan.o", "push", &[TX]);
    pop => Case::new("vlan.o", "pop", &[PASS]);
    rewrite => Case::new("rewrite.o", "rewrite", &[PASS, TX]);
    chain => Case { also: &["tcp", "again"], ..Case::new("chain.o", "chain", &[ABORTED, DROP, PASS, TX]) };
    sum => Case::new("sum.o", "sum", &[DROP, PASS, TX]).since((5, 18)).value("sums", &words(&[45]), &words(&[TX])).value("sums", &words(&[7]), &words(&[DROP])).shape(|rng, frame| small_sums(rng, frame));
    steer => steered();
    inner => Case::new("inner.o", "inner", &[PASS]).entry("tables", &words(&[0]), Entry::Map("first"));
    echo => Case::new("echo.o", "echo", &[DROP, PASS, TX]).shape(echo_requests);
    encap => tunnelled(Case::new("ipip.o", "encap", &[DROP, PASS, TX]));
    decap => Case::new("ipip.o", "decap", &[PASS]).shape(tunnels_end);
    df => Case::new("df.o", "df", &[PASS]);
    tables => Case::new("tables.o", "tables", &[0, 1]).shape(|rng, frame| two_random_bytes(rng, frame));
    rings => Case::new("tables.o", "tables", &[0]).part().shape(|rng, frame| frame[..2].copy_from_slice(&[0x38 | rng.below(8) as u8, rng.below(8) as u8]));
    callbacks => Case::new("callbacks.o", "callbacks", &[0, 1, PASS]).since((5, 17)).shape(|rng, frame| callbacks_called(rng, frame));
    shelved => shelves();
    borders => Case::new("borders.o", "borders", &[0, 1]).since((5, 18)).shape(|rng, frame| move_borders(rng, frame));
    atomics => Case::new("atomics.o", "atomics", &[DROP, PASS, TX]).shape(|rng, frame| frame[..14].copy_from_slice(&rng.bytes(14)));
    locked => Case::new("locked.o", "locked", &[DROP, PASS, TX]).shape(|rng, frame| two_random_bytes(rng, frame));
    with_sign => Case::new("signed.o", "with_sign", &[DROP, PASS, TX]).since((6, 6)).shape(two_operands);
    inner_without_entry => Case::new("inner.o", "inner", &[DROP]).part();
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Rules for a third of the flows of the pools, and for two prefixes.
fn filtered(mut case: Case) -> Case {
    let mut number = 0u32;
    for src in &ADDRESSES {
        for dst in &ADDRESSES {
            for (proto, ports) in [6u8, 17].iter().flat_map(|proto| PORTS.map(|port| (*proto, port))) {
                number += 1;
                let verdict = u64::from([PASS, DROP, TX][number as usize % 3]);
                let mut key = [&src[..], dst, &ports.to_be_bytes(), &PORTS[number as usize % 6].to_be_bytes()].concat();
                key.extend(u32::from(proto).to_le_bytes());
                let value = [verdict.to_le_bytes(), 0u64.to_le_bytes()].concat();
                case = case.value("flows", &key, &value);
            }
        }
    }
    let prefix = |len: u32, address: [u8; 4]| [&len.to_le_bytes()[..], &address].concat();
    case.value("sources", &prefix(8, [10, 0, 0, 0]), &words(&[DROP]))
        .value("sources", &prefix(24, [10, 1, 2, 0]), &words(&[TX]))
        .value("sources", &prefix(32, [192, 168, 7, 9]), &words(&[PASS]))
        .value("sources", &prefix(12, [172, 16, 0, 0]), &words(&[REDIRECT + 3]))
        .shape(cut_before_ports)
}

/// Now and then nothing is left of the ports.
fn cut_before_ports(rng: &mut Rng, frame: &mut Vec<u8>) {
    if rng.one_in(20) {
        frame.truncate(rng.between(34, 37) as usize);
    }
}

/// Few bytes that aren't 0, so that sums repeat.
fn small_sums(rng: &mut Rng, frame: &mut [u8]) {
    if rng.one_in(2) {
        frame.fill(0);
        frame[rng.below(14) as usize] = *rng.pick(&[45, 7, 46]);
    }
}

/// Each way that `steer` has, on targets that are there and on some that are not.
fn steered() -> Case {
    let case = Case::new("steer.o", "steer", &[ABORTED, DROP, PASS, REDIRECT])
        .value("devices", &words(&[3]), &words(&[1, 0]))
        .value("cpus", &words(&[1]), &words(&[192]))
        .entry("sockets", &words(&[0]), Entry::Socket);
    case.shape(|rng, frame| {
        frame[0] = rng.below(12) as u8;
        frame[1] = *rng.pick(&[0, 1, 3, 3, 7, 8, 255]);
    })
}

/// More of what `echo` answers, with header lengths that lie and what is cut off.
fn echo_requests(rng: &mut Rng, frame: &mut Vec<u8>) {
    if rng.one_in(2) && frame.len() >= 42 {
        frame[12..15].copy_from_slice(&[8, 0, *rng.pick(&[0x45, 0x45, 0x45, 0x46, 0x4f, 0x44])]);
        frame[20..22].copy_from_slice(&rng.pick(&[0x4000u16, 0, 0x2000]).to_be_bytes());
        frame[23] = 1;
        frame[34..36].copy_from_slice(&rng.pick(&[0x0800u16, 0x0800, 0x0801, 0]).to_be_bytes());
        if rng.one_in(16) {
            frame.truncate(41);
        }
    }
}

/// Tunnels to half of the addresses.
fn tunnelled(case: Case) -> Case {
    let half = ADDRESSES.iter().step_by(2).enumerate();
    half.fold(case, |case, (at, address)| {
        let tunnel = [&[192, 0, 2, 1, 198, 51, 100, at as u8][..], &[2, 0, 0, 0, 1, at as u8, 0, 0]].concat();
        case.value("tunnels", address, &tunnel)
    })
}

/// What `encap` makes, and the like.
fn tunnels_end(rng: &mut Rng, frame: &mut Vec<u8>) {
    if rng.one_in(2) && frame.len() >= 34 {
        frame[12..15].copy_from_slice(&[8, 0, *rng.pick(&[0x45, 0x45, 0x45, 0x46])]);
        frame[20..22].copy_from_slice(&rng.pick(&[0x4000u16, 0, 0x2000]).to_be_bytes());
        frame[23] = 4;
        if rng.one_in(8) {
            // Nothing behind the outer header: just long enough to lose it.
            frame.truncate(34);
        }
    }
}

/// By little, by about as much as there is room, by anything; and words that `borders` knows or nearly knows.
fn move_borders(rng: &mut Rng, frame: &mut [u8]) {
    let len = frame.len() as i64;
    let edge = *rng.pick(&[-len, 14 - len, 14, len, 3520 - len, -216, -256, -252, -255, 216, 256, len - 8, 0xffff]);
    let near = edge + rng.between(0, 8) as i64 - 4;
    let (little, any) = (rng.between(0, 64) as i64 - 32, rng.next_u64() as i64);
    let by = *rng.pick(&[near, near, little, any]);
    frame[0] = rng.below(8) as u8;
    frame[2..4].copy_from_slice(&(by as i16).to_le_bytes());
    if rng.one_in(2) {
        frame[4..12].copy_from_slice(*rng.pick(&[
            b"onic\0\0\0\0",
            b"onic-sim",
            b"oni\0abcd",
            b"onid\0\0\0\0",
            b"\xffnic\0\0\0\0",
        ]));
    }
}

fn callbacks_called(rng: &mut Rng, frame: &mut [u8]) {
    frame[..7].copy_from_slice(&rng.bytes(7));
    if rng.one_in(2) {
        // Small enough to end early.
        frame[5] = 0;
    }
}

/// One shelf under two keys, and loopback under two keys of eight.
fn shelves() -> Case {
    Case::new("shelves.o", "shelved", &[ABORTED, DROP, PASS, REDIRECT])
        .since((5, 19))
        .entry("shelves", &words(&[4]), Entry::Map("first_shelf"))
        .value("devices", &words(&[3]), &words(&[1, 0]))
        .value("devices", &words(&[0x103]), &words(&[1, 0]))
        .shape(|rng, frame| {
            frame[..4].copy_from_slice(&rng.bytes(4));
            if rng.one_in(2) {
                frame[1] = *rng.pick(&[0, 1, 2, 3, 4]);
            }
        })
}

/// Two numbers where `with_sign` looks for them, each of any size and now and then an edge, and room for its results.
fn two_operands(rng: &mut Rng, frame: &mut Vec<u8>) {
    if rng.one_in(10) {
        return;
    }
    frame.resize(224, 0x5a);
    for at in [16, 24] {
        let any = rng.next_u64() >> rng.below(64);
        let any = if rng.one_in(2) { any } else { any.wrapping_neg() };
        let edge = *rng.pick(&[0, u64::MAX, i64::MIN.cast_unsigned(), 0x8000_0000, 0xffff_ffff, 1 << 32, 0x80, 0x8000]);
        let operand = if rng.one_in(3) { edge } else { any };
        frame[at..at + 8].copy_from_slice(&operand.to_le_bytes());
    }
}

fn two_random_bytes(rng: &mut Rng, frame: &mut [u8]) {
    frame[..2].copy_from_slice(&rng.bytes(2));
}
