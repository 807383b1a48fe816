//! Bring-up, start, management and removal against registers that answer anything: each call ends with success or a
//! typed error, in bounded time, and leaves nothing behind; once the card is itself again, the driver works.

use std::sync::Arc;

use driver_core::rss::{Key, Table};
use driver_core::{DeviceConfig, Driver, KeptPages, TableEntry, TakenPage};
use regs::{Bar, FuncId, PortId, cmac, qdma_csr, shell, system_config};
use traces::synth::Rng;

use super::card::{Card, Event, Refusal, Registers};
use super::platform::{HostileDma, HostilePlatform, Machine};
use super::rig::TIMEOUTS;
use super::tally::Tally;
use super::{Campaign, Failed, unwound};
use crate::host_memory::{CpuPage, MemoryCounts, SharedMemory};

/// Simulated time that one call may take, in time-outs of a context command. The longest is a down that finds the card
/// hanging at each of its queues, twice over.
const CALL_TIMEOUTS: u64 = 64;

/// One way for registers to misbehave.
pub(super) fn draw(rng: &mut Rng) -> Registers {
    match rng.below(13) {
        8 | 9 => one_wrong(rng),
        10 => {
            let how = *rng.pick(&[Refusal::TimedOut, Refusal::Bus, Refusal::Stopped]);
            Registers::Deaf { bar: *rng.pick(&[Bar::Qdma, Bar::Shell]), how }
        }
        0 => Registers::Gone,
        1 => Registers::Busy,
        11 => Registers::BusyOn { h2c: rng.one_in(2) },
        2 | 3 => {
            let how = *rng.pick(&[Refusal::TimedOut, Refusal::Bus, Refusal::Stopped]);
            // Somewhere in a start, or near the beginning.
            let most = if rng.one_in(2) { 1000 } else { 100 };
            Registers::Refusing { after: rng.below(most) as u32, how }
        }
        4 => Registers::Lying { one_in: rng.between(1, 64) },
        5 => Registers::Stuck { word: *rng.pick(&[0, 1, 0x301, u32::MAX, 0xDEAD_BEEF]) },
        6 => Registers::Stuck { word: rng.next_u64() as u32 },
        _ => Registers::Mad,
    }
}

/// One of the registers whose answer decides something.
fn one_wrong(rng: &mut Rng) -> Registers {
    let port = PortId(rng.below(2) as u8);
    let (bar, offset) = *rng.pick(&[
        (Bar::Qdma, qdma_csr::IND_CTXT_CMD),
        (Bar::Qdma, qdma_csr::GLBL_RING_SIZE + 4),
        (Bar::Qdma, qdma_csr::C2H_BUFFER_SIZE + 16),
        (Bar::Qdma, qdma_csr::C2H_PREFETCH_CACHE_DEPTH),
        (Bar::Qdma, qdma_csr::C2H_COALESCE_DEPTH),
        (Bar::Qdma, qdma_csr::GLBL_ERROR_STATUS),
        (Bar::Qdma, qdma_csr::GLBL_ERROR_MASK),
        (Bar::Shell, shell::SYSTEM_CONFIG + system_config::SHELL_STATUS),
        (Bar::Shell, shell::cmac(port) + cmac::CORE_VERSION),
        (Bar::Shell, shell::cmac(port) + cmac::STAT_RX_STATUS),
    ]);
    let word = if rng.one_in(2) { *rng.pick(&[0, u32::MAX]) } else { rng.next_u64() as u32 };
    Registers::Wrong { bar, offset, word }
}

/// Register answers: try a campaign of bring-ups, and count what was reached.
///
/// # Errors
/// The first case in which the driver panics, hangs, or leaves something behind.
pub fn try_registers(campaign: &Campaign, progress: &mut dyn FnMut(u64)) -> Result<Tally, Box<Failed>> {
    let mut tally = Tally::default();
    let first = campaign.only.unwrap_or(0);
    let end = campaign.only.map_or(campaign.cases, |only| only + 1);
    for case in first..end {
        let mut rng = Rng::new(Rng::named(campaign.seed, "hostile registers").next_u64().wrapping_add(case));
        let mut trial = Trial::new(Rng::new(rng.next_u64()));
        let deed = format!("{:?}", trial.registers);
        unwound(|| trial.run(&mut tally)).map_err(|why| {
            let events = trial.machine.card().log.iter().map(Event::to_string).collect();
            Box::new(Failed { case, deed, why, events })
        })?;
        progress(case - first + 1);
    }
    Ok(tally)
}

/// What a function other than 0 counts on to find in the card's tables.
const RING: u16 = 64;
const BUFFER: u16 = 2048;

type HostileDriver = Driver<HostilePlatform, KeptPages<HostileDma>>;

/// A new card, a new host, and one driver's life on them.
struct Trial {
    rng: Rng,
    registers: Registers,
    config: DeviceConfig,
    memory: Arc<SharedMemory>,
    machine: Arc<Machine>,
    begun_ns: u64,
}

fn config(rng: &mut Rng) -> DeviceConfig {
    let master = !rng.one_in(3);
    let mut config = DeviceConfig::new(FuncId(u8::from(!master)));
    config.queues = rng.between(1, 4) as u16;
    config.timeouts = TIMEOUTS;
    config.rs_fec = rng.one_in(2);
    config.ports = if rng.one_in(2) { vec![PortId(0), PortId(1)] } else { vec![PortId(config.func.0)] };
    config.own_port = (!rng.one_in(4)).then_some(PortId(config.func.0));
    config.rss_key = rng.one_in(2).then_some(Key([7; 40]));
    let ring = if master { rng.between(4, 16) as u16 } else { RING };
    // By index a function takes whatever size the card says.
    let by_index = !master && rng.one_in(2);
    let entry = |index, value| if by_index { TableEntry::Index(index) } else { TableEntry::Value(value) };
    config.tx_ring = entry(1, ring);
    config.rx_ring = entry(1, ring);
    config.rx_buffer = entry(4, BUFFER);
    config
}

impl Trial {
    fn new(mut rng: Rng) -> Trial {
        let config = config(&mut rng);
        let memory = SharedMemory::new(true);
        let queues = config.queues.into();
        let card = Card::new(config.func, config.base(), queues, Arc::clone(&memory), rng.next_u64());
        let machine = Machine::new(config.func, card);
        Trial { registers: draw(&mut rng), rng, config, memory, machine, begun_ns: 0 }
    }

    fn run(&mut self, tally: &mut Tally) -> Result<(), String> {
        self.set(self.registers);
        if self.rng.one_in(3) {
            // Function 0 left sizes that few can use.
            let (ring, buffer) = (self.rng.below(40) as u16, self.rng.between(0, 5000) as u16);
            let buffer = if self.rng.one_in(2) { buffer / 32 } else { buffer };
            self.machine.card().set_sizes(ring, buffer);
        }
        if let Some(driver) = self.bring_up(tally)? {
            self.manage(driver, tally)?;
        }
        self.nothing_left()?;
        // The card is itself again: a second bring-up works, and queues start.
        self.set(Registers::Honest);
        self.machine.card().set_sizes(RING, BUFFER);
        let mut driver = self.bring_up(tally)?.ok_or("the second bring-up fails, on an honest card")?;
        driver.up().map_err(|error| format!("an honest card: {error}"))?;
        driver.remove().map_err(|error| format!("an honest card: {error}"))?;
        self.nothing_left()
    }

    fn set(&self, registers: Registers) {
        self.machine.card().set_registers(registers);
    }

    fn bring_up(&mut self, tally: &mut Tally) -> Result<Option<HostileDriver>, String> {
        let platform = HostilePlatform::new(Arc::clone(&self.machine), self.memory.function(self.config.func));
        let brought = HostileDriver::bring_up(Arc::new(platform), self.config.clone());
        self.in_time("bring-up")?;
        match brought {
            Ok(driver) => {
                tally.brought_up += 1;
                Ok(Some(driver))
            }
            Err(error) => {
                tally.refused += 1;
                tally.bring_up(&error);
                Ok(None)
            }
        }
    }

    /// Everything that a driver can be asked for, in any order, while the card misbehaves in one way after another;
    /// then its removal, on a card that is itself again or not.
    fn manage(&mut self, mut driver: HostileDriver, tally: &mut Tally) -> Result<(), String> {
        let mut kept: Vec<TakenPage<CpuPage>> = Vec::new();
        let rings = driver.tx_ring_entries().max(driver.rx_ring_entries());
        for _ in 0..self.rng.below(8) {
            self.ask(&mut driver, rings, &mut kept, tally)?;
            self.in_time("a call")?;
            if self.rng.one_in(3) {
                let registers = draw(&mut self.rng);
                self.set(registers);
            }
        }
        // What could not be stopped can be now.
        self.set(Registers::Honest);
        driver.down().map_err(|error| format!("an honest card: {error}"))?;
        if driver.parked() != 0 {
            return Err(format!("{} queues are kept after a down that worked", driver.parked()));
        }
        let hostile_end = self.rng.one_in(2);
        if hostile_end {
            self.set(self.registers);
        }
        match driver.remove() {
            Ok(()) => {}
            Err(error) if hostile_end => tally.change(&error),
            Err(error) => return Err(format!("an honest card: {error}")),
        }
        self.in_time("removal")
    }

    fn ask(
        &mut self,
        driver: &mut HostileDriver,
        rings: u16,
        kept: &mut Vec<TakenPage<CpuPage>>,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let rel_qid = self.rng.below(4) as u16;
        match self.rng.below(9) {
            // Rings of any size are tried elsewhere; here they would only cost time.
            0 | 1 if rings <= 64 => driver.up().err().iter().for_each(|error| tally.up(error)),
            2 => driver.down().err().iter().for_each(|error| tally.stop(error)),
            3 => driver.restart_rx(rel_qid).err().iter().for_each(|error| tally.change(error)),
            4 => driver.restart_tx(rel_qid).err().iter().for_each(|error| tally.change(error)),
            5 => {
                driver.link_up(PortId(0)).err().iter().for_each(|error| tally.mmio(error));
                driver.service_errors().err().iter().for_each(|error| tally.mmio(error));
            }
            6 => {
                driver.rss_table().err().iter().for_each(|error| tally.mmio(error));
                driver.rss_key().err().iter().for_each(|error| tally.mmio(error));
                driver.set_rss_key(Key([3; 40])).err().iter().for_each(|error| tally.change(error));
            }
            7 => {
                if let Ok(table) = Table::equal(driver.config().queues) {
                    driver.set_rss_table(&table).err().iter().for_each(|error| tally.change(error));
                }
                driver.set_queue_count(1 + rel_qid).err().iter().for_each(|error| tally.change(error));
            }
            _ => {
                for pair in driver.queues() {
                    // A card that was never honest has written nothing: a look finds an empty ring.
                    let looked = pair.rx.poll(8, |frame| kept.extend(frame.take(0)));
                    looked.err().iter().for_each(|fault| tally.fault(fault));
                    pair.tx.post(&[0; 60]).err().iter().for_each(|error| tally.tx(error));
                    pair.tx.reap().err().iter().for_each(|fault| tally.fault(fault));
                }
            }
        }
        Ok(())
    }

    /// A call has ended: soon enough?
    fn in_time(&mut self, what: &str) -> Result<(), String> {
        let now_ns = self.machine.now_ns();
        let took_ns = now_ns - self.begun_ns;
        self.begun_ns = now_ns;
        let limit_ns = CALL_TIMEOUTS * TIMEOUTS.context_ns;
        let what = if took_ns > limit_ns { what } else { return Ok(()) };
        let accesses = self.machine.card().accesses();
        Err(format!("{what} took {took_ns} ns, {limit_ns} are the most; {accesses} register accesses"))
    }

    fn nothing_left(&self) -> Result<(), String> {
        let left = self.memory.counts();
        if left != MemoryCounts::default() {
            let first = self.memory.leaks().into_iter().next().map_or(String::new(), |leak| format!("; {leak}"));
            return Err(format!("left behind: {left:?}{first}"));
        }
        let violations = self.memory.violations();
        violations.first().map_or(Ok(()), |violation| Err(violation.to_string()))
    }
}
