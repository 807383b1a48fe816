//! What drivers are put through. Each scenario is a set-up and a play, both drawn from a seed; drivers and mutants go through
//! the same ones.

use models::qdma::{BusyPolls, QdmaConfig};
use models::time::Time;
use regs::{Bar, PortId, doorbell};
use traces::synth::Rng;

use super::evidence::Trouble;
use super::seams::Bend;
use super::stage::{Conditions, Over, Stage};
use super::tamper::Faults;
use crate::card::{Choice, Shape};
use crate::frames;

/// One scenario.
pub struct Scenario {
    /// In a word or two.
    pub name: &'static str,
    /// What happens, in a sentence.
    pub doc: &'static str,
    /// The set-up.
    pub conditions: fn(&mut Rng) -> Conditions,
    /// The play.
    pub play: fn(&mut Stage<'_>, &mut Rng) -> Result<(), Over>,
}

impl Scenario {
    /// Its card has as many functions as ports: a shape whose RTL the other checks need too. Others are built when they are
    /// first asked for, which takes minutes.
    pub fn is_square(&self) -> bool {
        let Shape { functions, ports, .. } = (self.conditions)(&mut Rng::new(0)).shape;
        functions == ports
    }

    /// Its card can be had: what the QDMA model's knobs do, a QDMA in RTL does not.
    pub fn runs_on(&self, card: &Choice) -> bool {
        card.has_qdma_model() || (self.conditions)(&mut Rng::new(0)).qdma == QdmaConfig::default()
    }
}

const PORT: PortId = PortId(0);
/// Payload of the longest frame at an MTU of 1500.
const PAYLOAD_MAX: u64 = 1_472;

fn plain(_rng: &mut Rng) -> Conditions {
    Conditions::default()
}

/// Frames for the wire, of many flows and lengths.
fn traffic(rng: &mut Rng, count: u64) -> Vec<Vec<u8>> {
    of_lengths(rng, count, 8, PAYLOAD_MAX)
}

fn of_lengths(rng: &mut Rng, count: u64, low: u64, high: u64) -> Vec<Vec<u8>> {
    (0..count)
        .filter_map(|number| frames::udp(rng.below(64) as u16, number, rng.between(low, high) as usize).ok())
        .collect()
}

/// Any order.
fn mix<T>(rng: &mut Rng, list: &mut [T]) {
    (1..list.len()).rev().for_each(|i| list.swap(i, rng.below(i as u64 + 1) as usize));
}

fn payloads(rng: &mut Rng, count: u64) -> Vec<usize> {
    (0..count).map(|_| rng.between(18, PAYLOAD_MAX) as usize).collect()
}

/// Send on every queue in bursts.
fn send_bursts(stage: &mut Stage<'_>, rng: &mut Rng, bursts: u64) {
    for _ in 0..bursts {
        let queue = rng.below(stage.queues().into()) as u16;
        let count = rng.between(1, 6);
        let lengths = payloads(rng, count);
        stage.send(0, queue, &lengths);
    }
}

/// Probe and up. False where one of them was refused, as it may be.
fn start(stage: &mut Stage<'_>) -> Result<bool, Over> {
    Ok(stage.probe(0)? && stage.up(0)?)
}

/// Traffic both ways, laps of all rings, down, up again, and more.
pub const STEADY: Scenario = Scenario {
    name: "steady",
    doc: "traffic both ways over several laps of the rings, down, up, and more of it",
    conditions: plain,
    play: |stage, rng| {
        if !start(stage)? {
            return Ok(());
        }
        let count = rng.between(150, 200);
        stage.wire(PORT, traffic(rng, count), 100);
        send_bursts(stage, rng, 50);
        stage.settle()?;
        stage.down(0)?;
        if stage.up(0)? {
            stage.wire(PORT, traffic(rng, 20), 500);
            send_bursts(stage, rng, 5);
            stage.settle()?;
        }
        Ok(())
    },
};

/// Completions that land after the status that covers them.
pub const LATE_ENTRIES: Scenario = Scenario {
    name: "late entries",
    doc: "relaxed ordering: completion entries land after the status word that covers them",
    conditions: |rng| Conditions {
        qdma: QdmaConfig { late_entry_ps: rng.between(1, 5) * 1_000_000, ..QdmaConfig::default() },
        ..Conditions::default()
    },
    play: |stage, rng| {
        if start(stage)? {
            let gap_ns = rng.between(50, 1_000);
            stage.wire(PORT, traffic(rng, 160), gap_ns);
            stage.settle()?;
        }
        Ok(())
    },
};

/// The card writes while the driver reads.
pub const SLOW_LOADS: Scenario = Scenario {
    name: "slow loads",
    doc: "each load from a ring takes 1.5 to 4 us, in which the card writes on",
    conditions: |rng| Conditions { bend: Bend::SlowLoads(rng.between(1_500, 4_000)), ..Conditions::default() },
    play: |stage, rng| {
        if start(stage)? {
            let gap_ns = rng.between(200, 600);
            stage.wire(PORT, traffic(rng, 180), gap_ns);
            stage.settle()?;
            for _ in 0..20 {
                // Polls that no interrupt asked for, as busy polling makes them.
                let gap_ns = rng.between(1_000, 2_500);
                stage.wire(PORT, traffic(rng, 6), gap_ns);
                for _ in 0..4 {
                    let queue = rng.below(stage.queues().into()) as u16;
                    stage.poll(0, queue, 16)?;
                }
            }
            stage.settle()?;
        }
        Ok(())
    },
};

/// Frames longer than a page.
pub const JUMBO: Scenario = Scenario {
    name: "jumbo",
    doc: "frames of 3400 to 9000 bytes among short ones",
    conditions: |_| Conditions {
        shape: Shape { queues: 2, ring: 64, max_pkt_len: 9_600, ..Shape::default() },
        ..Conditions::default()
    },
    play: |stage, rng| {
        if start(stage)? {
            let mut list = of_lengths(rng, 6, 3_360, 3_760);
            list.extend(of_lengths(rng, 6, 3_810, 4_050));
            list.extend(of_lengths(rng, 6, 4_200, 9_000));
            list.extend(of_lengths(rng, 20, 8, 200));
            mix(rng, &mut list);
            stage.wire(PORT, list, 500);
            stage.settle()?;
        }
        Ok(())
    },
};

/// Frames of two buffers each.
pub const TWO_BUFFERS: Scenario = Scenario {
    name: "two buffers",
    doc: "frames of 2100 to 3400 bytes, longer than a receive buffer and shorter than a page, among short ones",
    conditions: |_| Conditions {
        shape: Shape { queues: 2, ring: 64, max_pkt_len: 9_600, ..Shape::default() },
        ..Conditions::default()
    },
    play: |stage, rng| {
        if start(stage)? {
            let mut list = of_lengths(rng, 20, 2_060, 3_360);
            list.extend(of_lengths(rng, 30, 8, 200));
            mix(rng, &mut list);
            stage.wire(PORT, list, 500);
            stage.settle()?;
        }
        Ok(())
    },
};

/// More frames than the budget; and no budget.
pub const BUDGET: Scenario = Scenario {
    name: "budget",
    doc: "bursts longer than NAPI's budget, and a poll with a budget of 0 in between",
    conditions: |rng| Conditions { budget: rng.between(4, 16) as usize, ..Conditions::default() },
    play: |stage, rng| {
        if start(stage)? {
            for _ in 0..3 {
                let count = rng.between(40, 70);
                stage.wire(PORT, traffic(rng, count), 0);
                stage.run_for(6_000)?;
                for queue in 0..stage.queues() {
                    stage.poll(0, queue, 0)?;
                }
                stage.settle()?;
            }
        }
        Ok(())
    },
};

/// The host ends no poll.
pub const DEFERRED: Scenario = Scenario {
    name: "deferred",
    doc: "the host polls every 10 us and ends no poll, so that it wants no interrupts",
    conditions: |_| Conditions { deferred: true, ..Conditions::default() },
    play: |stage, rng| {
        if start(stage)? {
            let gap_ns = rng.between(300, 2_000);
            stage.wire(PORT, traffic(rng, 100), gap_ns);
            // The host goes on polling; longer than the frames take.
            stage.run_for(100 * gap_ns + 100_000)?;
        }
        Ok(())
    },
};

/// Frames are there before the queues are.
pub const EARLY: Scenario = Scenario {
    name: "early frames",
    doc: "frames wait at the wire while the interface comes up",
    conditions: plain,
    play: |stage, rng| {
        if stage.probe(0)? {
            // The port listens only once there are queues; before that the card drops and counts them. How long that takes
            // differs: a driver that finds a context command busy sleeps, so some frames come for two milliseconds.
            let (count, gap_ns) = if rng.one_in(2) { (100, rng.between(500, 1_500)) } else { (500, 4_000) };
            stage.wire(PORT, traffic(rng, count), gap_ns);
            if stage.up(0)? {
                stage.settle()?;
            }
        }
        Ok(())
    },
};

/// The interface goes down in the middle of it all.
pub const DOWN_UNDER_LOAD: Scenario = Scenario {
    name: "down under load",
    doc: "the interface is taken down and up while frames come and go, with DMA up to 5 us after the queues are stopped",
    conditions: |rng| Conditions {
        qdma: QdmaConfig { late_dma_after_inv_ns: rng.between(500, 5_000), ..QdmaConfig::default() },
        ..Conditions::default()
    },
    play: |stage, rng| {
        if !start(stage)? {
            return Ok(());
        }
        for _ in 0..2 {
            stage.wire(PORT, traffic(rng, 120), 150);
            send_bursts(stage, rng, 20);
            stage.run_for(rng.between(4_000, 14_000))?;
            stage.down(0)?;
            if !stage.up(0)? {
                return Ok(());
            }
        }
        stage.settle()
    },
};

/// The interface goes down with frames that were not sent.
pub const UNSENT: Scenario = Scenario {
    name: "unsent frames",
    doc: "the card withholds its transmit write-backs, and the interface is taken down",
    conditions: |_| Conditions {
        faults: Faults { hold_tx_status_until: Some(Time::NEVER), ..Faults::default() },
        ..Conditions::default()
    },
    play: |stage, rng| {
        if start(stage)? {
            send_bursts(stage, rng, 8);
            stage.run_for(rng.between(5_000, 20_000))?;
            stage.down(0)?;
        }
        Ok(())
    },
};

/// The ring fills.
pub const FULL: Scenario = Scenario {
    name: "full ring",
    doc: "the card withholds its transmit write-backs for 100 us while more is sent than the ring holds",
    conditions: |rng| Conditions {
        faults: Faults {
            hold_tx_status_until: Some(Time::from_ns(rng.between(300_000, 400_000))),
            ..Faults::default()
        },
        ..Conditions::default()
    },
    play: |stage, rng| {
        if start(stage)? {
            let count = rng.between(90, 150);
            let lengths = payloads(rng, count);
            let queue = rng.below(stage.queues().into()) as u16;
            stage.send(0, queue, &lengths);
            stage.settle()?;
        }
        Ok(())
    },
};

/// A few frames go out, none come in.
pub const ONE_WAY: Scenario = Scenario {
    name: "one way",
    doc: "a few frames are sent and none is received",
    conditions: plain,
    play: |stage, rng| {
        if start(stage)? {
            send_bursts(stage, rng, 3);
            stage.settle()?;
        }
        Ok(())
    },
};

/// Memory fails where frames are sent.
pub const TX_SHORTAGE: Scenario = Scenario {
    name: "no memory to send",
    doc: "the last page of a burst can't be had, and then the padding of a runt",
    conditions: |_| Conditions { trouble: Trouble::Possible, ..Conditions::default() },
    play: |stage, rng| {
        if !start(stage)? {
            return Ok(());
        }
        let queue = rng.below(stage.queues().into()) as u16;
        let count = rng.between(3, 8);
        let lengths = payloads(rng, count);
        // A driver that keeps its pages asks for one only while it has none.
        stage.bench().memory().fail_allocations(count - 1, 1);
        stage.send(0, queue, &lengths);
        stage.settle()?;
        stage.bench().memory().fail_allocations(u64::MAX / 2, 0);
        stage.heap().fail("padding", 1..2);
        stage.send(0, queue, &[10, 12, 9]);
        stage.settle()
    },
};

/// Memory fails where frames are received.
pub const RX_SHORTAGE: Scenario = Scenario {
    name: "no memory to receive",
    doc: "pages, and then socket buffers, can't be had for a while",
    conditions: |_| Conditions { trouble: Trouble::Possible, ..Conditions::default() },
    play: |stage, rng| {
        if !start(stage)? {
            return Ok(());
        }
        stage.bench().memory().fail_allocations(rng.between(1, 8), rng.between(3, 20));
        stage.wire(PORT, traffic(rng, 40), 300);
        stage.settle()?;
        stage.heap().fail("skb", rng.between(1, 10)..rng.between(12, 20));
        stage.wire(PORT, traffic(rng, 40), 300);
        stage.settle()
    },
};

/// A context command never ends while the queues are started.
pub const HANG_AT_UP: Scenario = Scenario {
    name: "hang at up",
    doc: "one context command of the queues' start never ends; the second attempt goes well",
    conditions: |rng| Conditions {
        qdma: QdmaConfig { context_hang_at: Some(rng.between(11, 24)), ..QdmaConfig::default() },
        trouble: Trouble::Certain("a context command that never ends"),
        ..Conditions::default()
    },
    play: |stage, rng| {
        if stage.probe(0)? && (stage.up(0)? || stage.up(0)?) {
            stage.wire(PORT, traffic(rng, 20), 300);
            stage.settle()?;
        }
        Ok(())
    },
};

/// No page for a descriptor while the queues are started.
pub const NO_PAGE_AT_UP: Scenario = Scenario {
    name: "no page at up",
    doc: "pages of the queues' start can't be had from one on; the second attempt goes well",
    conditions: |_| Conditions { trouble: Trouble::Certain("a page that can't be had"), ..Conditions::default() },
    play: |stage, rng| {
        if !stage.probe(0)? {
            return Ok(());
        }
        // A pool that allocates several at once does without a single one.
        stage.bench().memory().fail_allocations(rng.between(6, 120), u64::MAX / 2);
        let is_up = stage.up(0)?;
        stage.bench().memory().fail_allocations(u64::MAX / 2, 0);
        if is_up || stage.up(0)? {
            stage.wire(PORT, traffic(rng, 20), 300);
            stage.settle()?;
        }
        Ok(())
    },
};

/// The busy bit never falls.
pub const BUSY: Scenario = Scenario {
    name: "busy for ever",
    doc: "the busy bit of context commands never falls",
    conditions: |_| Conditions {
        qdma: QdmaConfig { context_busy: BusyPolls::Never, ..QdmaConfig::default() },
        trouble: Trouble::Certain("a context command that never ends"),
        ..Conditions::default()
    },
    play: |stage, _| stage.probe(0).map(|_| ()),
};

/// The CMAC stays in reset.
pub const NO_CMAC: Scenario = Scenario {
    name: "CMAC in reset",
    doc: "the CMAC's status bit never rises",
    conditions: |_| Conditions {
        faults: Faults { cmac_in_reset: true, ..Faults::default() },
        trouble: Trouble::Certain("a CMAC that stays in reset"),
        ..Conditions::default()
    },
    play: |stage, _| stage.probe(0).map(|_| ()),
};

/// Memory fails at probe.
pub const NO_MEMORY: Scenario = Scenario {
    name: "no memory at probe",
    doc: "the statistics' memory can't be had at probe; the interface is opened all the same where there is one",
    conditions: |_| Conditions { trouble: Trouble::Possible, ..Conditions::default() },
    play: |stage, rng| {
        stage.heap().fail("netdev statistics", 0..1);
        if start(stage)? {
            stage.wire(PORT, traffic(rng, 5), 300);
            stage.settle()?;
        }
        Ok(())
    },
};

/// The card reports errors, more than once.
pub const CARD_ERRORS: Scenario = Scenario {
    name: "card errors",
    doc: "doorbells of queues that the function does not have, twice, with time between them",
    conditions: plain,
    play: |stage, rng| {
        if !start(stage)? {
            return Ok(());
        }
        for _ in 0..2 {
            let queue = rng.between(u64::from(stage.queues()), 60) as u16;
            let offset = doorbell::offset(doorbell::C2H_PIDX, queue).unwrap_or(0);
            stage.fire(&format!("queue {queue} of {}: a doorbell out of range", stage.queues()));
            stage.poke(0, Bar::Qdma, offset, 1)?;
            stage.run_for(20_000)?;
        }
        stage.wire(PORT, traffic(rng, 10), 300);
        stage.settle()
    },
};

/// A completion with its error bit set.
pub const BAD_COMPLETION: Scenario = Scenario {
    name: "error completion",
    doc: "one completion in the middle of a burst has its error bit set",
    conditions: |rng| Conditions {
        faults: Faults { error_completion: Some(rng.between(21, 38)), ..Faults::default() },
        ..Conditions::default()
    },
    play: |stage, rng| {
        if start(stage)? {
            stage.wire(PORT, traffic(rng, 20), 300);
            stage.settle()?;
            // The first of a poll is no better than the rest.
            stage.wire(PORT, traffic(rng, 40), 0);
            stage.settle()?;
        }
        Ok(())
    },
};

/// A completion whose length can't be.
pub const BAD_LENGTH: Scenario = Scenario {
    name: "wrong length",
    doc: "one completion tells a length that 31 buffers, the most that a frame can have, do not hold",
    conditions: |rng| Conditions {
        faults: Faults {
            wrong_length: Some((rng.between(5, 30), rng.between(31 * 2_048 + 1, 65_535) as u16)),
            ..Faults::default()
        },
        ..Conditions::default()
    },
    play: |stage, rng| {
        if start(stage)? {
            stage.wire(PORT, traffic(rng, 40), 300);
            stage.settle()?;
        }
        Ok(())
    },
};

/// A transmit status whose index can't be.
pub const BAD_STATUS: Scenario = Scenario {
    name: "wrong index",
    doc: "one transmit write-back names an index that the ring does not have",
    conditions: |rng| Conditions {
        faults: Faults {
            wrong_tx_cidx: Some((rng.between(0, 3), rng.between(63, 65_535) as u16)),
            ..Faults::default()
        },
        ..Conditions::default()
    },
    play: |stage, rng| {
        if start(stage)? {
            send_bursts(stage, rng, 20);
            stage.settle()?;
        }
        Ok(())
    },
};

/// What an administrator does.
pub const SETTINGS: Scenario = Scenario {
    name: "settings",
    doc: "statistics while the interface is down, the MTU, and RSS tables of which one is bad near its end",
    conditions: |_| Conditions { trouble: Trouble::Possible, ..Conditions::default() },
    play: |stage, rng| {
        if !stage.probe(0)? {
            return Ok(());
        }
        stage.read_mac(0)?;
        let mtu = rng.between(68, 1_400) as u16;
        if stage.call(0, |nic| nic.set_mtu(mtu))?.is_ok() {
            let is = stage.call(0, |nic| nic.mtu())?;
            if is != mtu {
                stage.see("setting", format!("fn0 mtu {is}"), format!("an MTU of {mtu} was accepted, and is {is}"));
            }
        }
        let before = stage.table(0);
        let mut table: Vec<u16> = (0..before.len()).map(|_| rng.below(stage.queues().into()) as u16).collect();
        let bad = table.len() - 1 - rng.below(8) as usize;
        table[bad] = stage.queues();
        let refused = stage.call(0, |nic| nic.set_table(&table))?;
        let after = stage.table(0);
        if let (Err(why), Some(at)) = (refused, (0..before.len()).find(|&at| before[at] != after[at])) {
            let text = format!("a table was refused ({why}), and entry {at} has changed all the same");
            stage.see("setting", format!("fn0 RSS entry {at}"), text);
        }
        Ok(())
    },
};

/// Two readers of the statistics.
pub const TWO_READERS: Scenario = Scenario {
    name: "two readers",
    doc: "two readers of the MAC's statistics, one often and one at the end",
    conditions: plain,
    play: |stage, rng| {
        if start(stage)? {
            for _ in 0..3 {
                let count = rng.between(5, 20);
                stage.wire(PORT, traffic(rng, count), 200);
                send_bursts(stage, rng, 3);
                stage.settle()?;
                stage.read_mac(0)?;
            }
            stage.read_mac(0)?;
        }
        Ok(())
    },
};

/// Queues polled at the same time.
pub const TWO_CPUS: Scenario = Scenario {
    name: "two CPUs",
    doc: "queues whose interrupts come together are polled at the same time, each by its CPU",
    conditions: |_| Conditions { together: true, ..Conditions::default() },
    play: |stage, rng| {
        if start(stage)? {
            for _ in 0..4 {
                stage.wire(PORT, traffic(rng, 24), 0);
                stage.settle()?;
            }
        }
        Ok(())
    },
};

/// A function goes while it sends.
pub const UNBIND: Scenario = Scenario {
    name: "unbind under load",
    doc: "two functions send and receive; one of them is removed in the middle",
    conditions: |_| Conditions {
        shape: Shape { functions: 2, ports: 2, queues: 2, ring: 64, ..Shape::default() },
        ..Conditions::default()
    },
    play: |stage, rng| {
        for func in 0..2 {
            if !(stage.probe(func)? && stage.up(func)?) {
                return Ok(());
            }
        }
        stage.wire(PortId(0), traffic(rng, 30), 300);
        for _ in 0..10 {
            for func in 0..2 {
                let lengths = payloads(rng, 3);
                stage.send(func, rng.below(2) as u16, &lengths);
            }
        }
        stage.run_for(rng.between(100, 1_500))?;
        stage.remove(1)?;
        stage.settle()
    },
};

/// No queue can be stopped.
pub const HANG_AT_DOWN: Scenario = Scenario {
    name: "hang at down",
    doc: "for 3 s from the first context command of the queues' stop on, none has an effect, while frames still come",
    conditions: |_| Conditions {
        // Drivers need 26 commands to come up: the map's 2, and 4 and 8 for each queue's two directions.
        faults: Faults { hang_commands: Some((26, 3_000_000_000)), ..Faults::default() },
        trouble: Trouble::Certain("a context command that never ends"),
        ..Conditions::default()
    },
    play: |stage, rng| {
        if start(stage)? {
            stage.wire(PORT, traffic(rng, 100), 150);
            send_bursts(stage, rng, 10);
            stage.run_for(rng.between(5_000, 15_000))?;
            stage.down(0)?;
            stage.wire(PORT, traffic(rng, 20), 150);
            // Until the card takes commands again, which whoever has kept its queues can give it then.
            stage.run_for(4_000_000_000)?;
        }
        Ok(())
    },
};

/// A function without a port.
pub const NO_PORT: Scenario = Scenario {
    name: "two functions, one port",
    doc: "the second function of a card with one port reads its statistics",
    conditions: |_| Conditions {
        shape: Shape { functions: 2, ports: 1, queues: 2, ring: 64, ..Shape::default() },
        trouble: Trouble::Possible,
        ..Conditions::default()
    },
    play: |stage, rng| {
        for func in 0..2 {
            if !(stage.probe(func)? && stage.up(func)?) {
                return Ok(());
            }
        }
        stage.wire(PORT, traffic(rng, 20), 300);
        stage.settle()?;
        stage.read_mac(0)?;
        stage.read_mac(1)
    },
};

/// All of them.
pub const ALL: &[&Scenario] = &[
    &STEADY,
    &LATE_ENTRIES,
    &SLOW_LOADS,
    &JUMBO,
    &TWO_BUFFERS,
    &BUDGET,
    &DEFERRED,
    &EARLY,
    &DOWN_UNDER_LOAD,
    &UNSENT,
    &FULL,
    &ONE_WAY,
    &TX_SHORTAGE,
    &RX_SHORTAGE,
    &HANG_AT_UP,
    &NO_PAGE_AT_UP,
    &BUSY,
    &NO_CMAC,
    &NO_MEMORY,
    &CARD_ERRORS,
    &BAD_COMPLETION,
    &BAD_LENGTH,
    &BAD_STATUS,
    &SETTINGS,
    &TWO_READERS,
    &TWO_CPUS,
    &UNBIND,
    &HANG_AT_DOWN,
    &NO_PORT,
];
