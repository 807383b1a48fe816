//! The host port's own rules, cycle by cycle, without pins.

use std::collections::BTreeMap;

use models::host_memory::{DmaFault, HostMemory};
use models::time::Time;
use regs::FuncId;
use rtl_bridge::stall::Profile;

use super::*;

const F0: FuncId = FuncId(0);
/// Memory goes from here on for [`LEN`] bytes; byte n holds the low bits of n / 4, so that every word is another one.
const BASE: u64 = 0x1_0000;
const LEN: usize = 0x1_0000;

/// Memory that notes its writes.
struct Memory {
    bytes: Vec<u8>,
    writes: Vec<(u64, Vec<u8>)>,
    /// Reads of this address are poisoned.
    bad: Option<u64>,
}

impl Memory {
    fn new() -> Memory {
        Memory { bytes: (0..LEN).map(|n| (n / 4) as u8).collect(), writes: Vec::new(), bad: None }
    }

    fn range(addr: u64, len_bytes: usize) -> Result<std::ops::Range<usize>, DmaFault> {
        let from = addr.checked_sub(BASE).and_then(|from| usize::try_from(from).ok());
        let range = from.map(|from| from..from + len_bytes).filter(|range| range.end <= LEN);
        range.ok_or(DmaFault::Unmapped { func: F0, addr, len_bytes })
    }
}

impl HostMemory for Memory {
    fn read(&mut self, _: FuncId, addr: u64, buf: &mut [u8]) -> Result<(), DmaFault> {
        if self.bad == Some(addr) {
            return Err(DmaFault::Poisoned { func: F0, addr, len_bytes: buf.len() });
        }
        buf.copy_from_slice(&self.bytes[Memory::range(addr, buf.len())?]);
        Ok(())
    }

    fn write(&mut self, _: FuncId, addr: u64, data: &[u8]) -> Result<(), DmaFault> {
        self.bytes[Memory::range(addr, data.len())?].copy_from_slice(data);
        self.writes.push((addr, data.to_vec()));
        Ok(())
    }
}

/// An answer as it came: when its first and last beats did, and what it held.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Came {
    first: u64,
    last: u64,
    beats: usize,
    data: Vec<u8>,
    fault: Option<ReadFault>,
}

/// A host and its memory, with a count of cycles.
struct Rig {
    side: HostSide,
    memory: Memory,
    cycle: u64,
}

impl Rig {
    fn new(config: HostPortConfig) -> Rig {
        Rig { side: HostSide::new(&config), memory: Memory::new(), cycle: 0 }
    }

    fn now(&self) -> Time {
        Time(self.cycle * CYCLE_PS)
    }

    /// Offer these reads on the data channel, one a cycle where they are taken, until all are answered: the answers by tag,
    /// and the tags in the order of the answers.
    fn run(&mut self, reads: &[ReadRequest]) -> (BTreeMap<u8, Came>, Vec<u8>) {
        let (mut came, mut order) = (BTreeMap::<u8, Came>::new(), Vec::new());
        let mut ahead = reads.iter();
        let mut offer = ahead.next();
        while offer.is_some() || !self.side.is_idle() {
            let now = self.now();
            if let Some(Answer { tag, data, last, fault }) = self.side.answer(ReadChannel::Data, now, &mut self.memory)
            {
                let entry = came.entry(tag).or_insert_with(|| Came { first: self.cycle, ..Came::default() });
                entry.last = self.cycle;
                entry.beats += 1;
                entry.data.extend_from_slice(data);
                entry.fault = fault;
                if last {
                    order.push(tag);
                }
            }
            if let Some(read) = offer
                && self.side.takes_read(ReadChannel::Data, now)
            {
                self.side.read(ReadChannel::Data, *read, now).expect("a read by the rules");
                offer = ahead.next();
            }
            self.cycle += 1;
        }
        (came, order)
    }

    /// Cycles until this many full beats are taken on `channel`, one after the other.
    fn write_beats(&mut self, channel: WriteChannel, beats: u64) -> u64 {
        let begin = self.cycle;
        let mut taken = 0;
        while taken < beats {
            let now = self.now();
            if self.side.takes_write(channel, now) {
                let beat = WriteBeat { addr: BASE + taken * 64 % LEN as u64, ..full(BASE) };
                self.side.write(channel, &beat, now, &mut self.memory).expect("a write by the rules");
                taken += 1;
            }
            self.cycle += 1;
        }
        self.cycle - begin
    }
}

fn exact() -> HostPortConfig {
    HostPortConfig { spread_cycles: 0, ..HostPortConfig::default() }
}

fn read(tag: u8, len_bytes: u16) -> ReadRequest {
    ReadRequest { func: F0, addr: BASE + 256 * u64::from(tag), len_bytes, tag }
}

fn full(addr: u64) -> WriteBeat<'static> {
    WriteBeat { func: F0, addr, data: &[0x5a; 64], be: u64::MAX, last: false }
}

#[test]
fn an_answer_comes_after_the_latency_with_the_bytes_asked_for() {
    let mut rig = Rig::new(exact());
    let (came, _) = rig.run(&[read(3, 100)]);
    assert_eq!((came[&3].first, came[&3].last, came[&3].beats), (250, 251, 2));
    assert_eq!(came[&3].data, rig.memory.bytes[768..868]);
}

#[test]
fn reads_one_a_cycle_are_answered_one_a_cycle() {
    let reads: Vec<_> = (0..=255).map(|tag| read(tag, 64)).collect();
    let (came, order) = Rig::new(exact()).run(&reads);
    assert!(came.iter().all(|(&tag, answer)| answer.first == 250 + u64::from(tag)));
    assert_eq!(order, (0..=255).collect::<Vec<u8>>());
}

#[test]
fn memory_is_read_when_the_answer_begins() {
    let mut rig = Rig::new(exact());
    rig.side.read(ReadChannel::Data, read(0, 4), Time::ZERO).expect("taken");
    rig.memory.bytes[..4].copy_from_slice(&[9; 4]);
    let due = Time(250 * CYCLE_PS);
    let answer = rig.side.answer(ReadChannel::Data, due, &mut rig.memory).expect("due");
    assert_eq!(answer.data, [9; 4]);
}

#[test]
fn a_spread_lets_answers_overtake_within_its_bounds() {
    let config = HostPortConfig { spread_cycles: 20, seed: 7, ..HostPortConfig::default() };
    let reads: Vec<_> = (0..=255).map(|tag| read(tag, 64)).collect();
    let (came, order) = Rig::new(config).run(&reads);
    for (&tag, answer) in &came {
        // The channel may be taken by others that were due before.
        let late = answer.first - u64::from(tag);
        assert!((230..=270 + 41).contains(&late), "tag {tag} after {late} cycles (seed 7)");
    }
    let place = |tag: u8| order.iter().position(|&other| other == tag).expect("answered");
    let overtaken = (0..=255).map(|tag| (0..tag).filter(|&older| place(older) > place(tag)).count()).max();
    assert!((1..=40).contains(&overtaken.unwrap_or(0)), "overtook {overtaken:?} (seed 7)");
    assert_eq!(order, Rig::new(config).run(&reads).1, "a seed is an order");
    assert_ne!(order, Rig::new(HostPortConfig { seed: 8, ..config }).run(&reads).1);
}

#[test]
fn without_reordering_the_order_of_requests_holds() {
    let config = HostPortConfig { spread_cycles: 20, reorder: false, ..HostPortConfig::default() };
    let reads: Vec<_> = (0..=255).map(|tag| read(tag, 64)).collect();
    assert_eq!(Rig::new(config).run(&reads).1, (0..=255).collect::<Vec<u8>>());
}

#[test]
fn answers_are_not_mixed() {
    let config = HostPortConfig { spread_cycles: 100, ..HostPortConfig::default() };
    let reads: Vec<_> =
        (0..16).map(|tag| ReadRequest { addr: BASE + 0x1000 * u64::from(tag), ..read(tag, 4096) }).collect();
    let (came, _) = Rig::new(config).run(&reads);
    assert!(came.values().all(|answer| answer.beats == 64 && answer.last == answer.first + 63), "{came:?}");
}

#[test]
fn what_memory_refuses_is_one_beat_without_data() {
    let mut rig = Rig::new(exact());
    let beyond = ReadRequest { addr: BASE + LEN as u64, ..read(5, 512) };
    let (came, _) = rig.run(&[beyond, read(6, 64)]);
    assert_eq!((came[&5].beats, came[&5].data.len(), came[&5].fault), (1, 0, Some(ReadFault::Unsupported)));
    assert_eq!((came[&6].data.len(), came[&6].fault), (64, None));
    assert_eq!(rig.side.traffic().reads_failed, 1);
}

#[test]
fn a_poisoned_answer_has_all_its_beats() {
    let mut rig = Rig::new(exact());
    rig.memory.bad = Some(BASE + 2 * 256);
    let (came, _) = rig.run(&[read(1, 200), read(2, 200), read(3, 200)]);
    assert_eq!((came[&2].beats, came[&2].fault), (4, Some(ReadFault::Poisoned)));
    assert_ne!(came[&2].data, rig.memory.bytes[512..712]);
    assert_eq!([came[&1].fault, came[&3].fault], [None; 2]);
}

#[test]
fn reads_against_the_rules_are_refused() {
    let mut rig = Rig::new(exact());
    let mut take = |request| rig.side.read(ReadChannel::Data, request, Time::ZERO);
    assert_eq!(take(read(0, 0)), Err(Rule::Length { len_bytes: 0 }));
    assert_eq!(take(read(0, 4097)), Err(Rule::Length { len_bytes: 4097 }));
    let crossing = ReadRequest { addr: BASE + 4090, ..read(0, 7) };
    assert_eq!(take(crossing), Err(Rule::ReadCrossesPage { addr: BASE + 4090, len_bytes: 7 }));
    assert_eq!(take(ReadRequest { len_bytes: 6, ..crossing }), Ok(()));
    assert_eq!(take(read(0, 64)), Err(Rule::TagInUse { tag: 0 }));
}

#[test]
fn a_tag_is_free_after_its_last_beat() {
    let mut rig = Rig::new(exact());
    rig.run(&[read(9, 64)]);
    assert_eq!(rig.side.read(ReadChannel::Data, read(9, 64), rig.now()), Ok(()));
}

#[test]
fn only_enabled_bytes_are_written() {
    let mut rig = Rig::new(exact());
    let data: [u8; 64] = std::array::from_fn(|n| n as u8);
    // Byte 0 lies in the page before, which is no matter, as it is not written.
    let beat = WriteBeat { func: F0, addr: BASE + 0xfff, data: &data, be: 0x8000_0000_0000_0f06, last: true };
    rig.side.write(WriteChannel::Payload, &beat, Time::ZERO, &mut rig.memory).expect("by the rules");
    let written: Vec<_> = rig.memory.writes.iter().map(|(addr, data)| (addr - BASE, &data[..])).collect();
    assert_eq!(written, [(0x1000, &[1, 2][..]), (0x1007, &[8, 9, 10, 11]), (0x103e, &[63])]);
}

#[test]
fn writes_against_the_rules_are_refused() {
    let mut rig = Rig::new(exact());
    let mut write = |beat| rig.side.write(WriteChannel::Payload, &beat, Time::ZERO, &mut rig.memory);
    assert_eq!(write(WriteBeat { be: 0, ..full(BASE) }), Err(Rule::NoBytes { addr: BASE }));
    let be = 0b11;
    let crossing = WriteBeat { be, ..full(BASE + 0xfff) };
    assert_eq!(write(crossing), Err(Rule::WriteCrossesPage { addr: BASE + 0xfff, be }));
    assert!(rig.memory.writes.is_empty());
}

#[test]
fn a_refused_write_is_counted_and_the_rest_go_on() {
    let mut rig = Rig::new(exact());
    for addr in [BASE, BASE + LEN as u64, BASE + 64] {
        rig.side.write(WriteChannel::Payload, &full(addr), Time::ZERO, &mut rig.memory).expect("posted");
    }
    assert_eq!(rig.memory.writes.iter().map(|(addr, _)| *addr).collect::<Vec<_>>(), [BASE, BASE + 64]);
    assert_eq!(rig.side.traffic().writes_refused, 1);
}

#[test]
fn an_ideal_link_takes_a_beat_a_cycle() {
    assert_eq!(Rig::new(exact()).write_beats(WriteChannel::Payload, 10_000), 10_000);
}

#[test]
fn a_pcie_link_takes_15_75_gb_a_second_headers_counted() {
    let config = HostPortConfig { link: Link::Pcie3x16, ..exact() };
    // Four beats to a TLP: 280 bytes for 256.
    let cycles = Rig::new(config).write_beats(WriteChannel::Payload, 10_000);
    let expected = 10_000 * 70 / 63;
    assert!((expected - 12..=expected).contains(&cycles), "{cycles} cycles, not {expected}");
    let reads: Vec<_> = (0..=255).map(|tag| ReadRequest { addr: BASE, ..read(tag, 4096) }).collect();
    let mut rig = Rig::new(config);
    rig.run(&reads);
    let expected = 250 + 256 * 16 * (256 + 24) / 63;
    assert!((expected - 12..=expected + 2).contains(&rig.cycle), "{} cycles, not {expected}", rig.cycle);
}

#[test]
fn stalls_hold_writes_and_reads_and_change_nothing_else() {
    let config = HostPortConfig { stalls: Profile::Random { percent: 50 }, seed: 3, ..exact() };
    let mut rig = Rig::new(config);
    let cycles = rig.write_beats(WriteChannel::Completions, 1_000);
    assert!((1_800..2_200).contains(&cycles), "{cycles} (seed 3)");
    let reads: Vec<_> = (0..64).map(|tag| read(tag, 64)).collect();
    let (came, order) = rig.run(&reads);
    assert_eq!((came.len(), order), (64, (0..64).collect::<Vec<u8>>()));
}

#[test]
fn no_beat_allocates() {
    let mut rig = Rig::new(HostPortConfig { spread_cycles: 50, link: Link::Pcie3x16, ..exact() });
    let mut quiet = Quiet;
    let allocations = allocation_counter::measure(|| {
        for cycle in 0..2_000 {
            let now = Time(cycle * CYCLE_PS);
            let _ = rig.side.answer(ReadChannel::Data, now, &mut quiet);
            if rig.side.takes_read(ReadChannel::Data, now) {
                let _ = rig.side.read(ReadChannel::Data, read(cycle as u8, 64), now);
            }
            if rig.side.takes_write(WriteChannel::Payload, now) {
                let _ = rig.side.write(WriteChannel::Payload, &full(BASE), now, &mut quiet);
            }
        }
    });
    assert_eq!(allocations.count_total, 0);
}

/// Memory that keeps nothing.
struct Quiet;

impl HostMemory for Quiet {
    fn read(&mut self, _: FuncId, _: u64, _: &mut [u8]) -> Result<(), DmaFault> {
        Ok(())
    }
    fn write(&mut self, _: FuncId, _: u64, _: &[u8]) -> Result<(), DmaFault> {
        Ok(())
    }
}
