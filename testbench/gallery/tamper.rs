//! A card with a fault: a [`Layer`] that alters what the card behind it writes to host memory or answers to a read.
//!
//! Where a ring lies in host memory it learns from the contexts as they are programmed, like anything else on the bus could.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use models::host_memory::{DmaFault, HostMemory};
use models::time::Time;
use regs::context::{COMMAND_WORDS, CompletionContext, ContextCommand, ContextOp, ContextSelector, SwDescContext};
use regs::descriptor::{Completion, H2cStatus};
use regs::qdma_csr::{self, ind_ctxt_cmd};
use regs::{Bar, FuncId, Qid, system_config};

use crate::card::layer::{Layer, Layered};
use crate::card::{Card, CardError, Stop};

/// What is wrong with the card. By default nothing.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// SHELL_STATUS reads as if no CMAC ever left its reset.
    pub cmac_in_reset: bool,
    /// From the first transmit write-back on, none reaches the host until this time.
    pub hold_tx_status_until: Option<Time>,
    /// From the context command with this number on, counted from 0, commands have no effect and stay busy for so many ns.
    pub hang_commands: Option<(u64, u64)>,
    /// The completion with this number, over all queues and counted from 0, has its error bit set.
    pub error_completion: Option<u64>,
    /// The completion with this number tells this length.
    pub wrong_length: Option<(u64, u16)>,
    /// From the transmit write-back with this number on, its ring's status tells this consumer index, until that queue is
    /// started afresh.
    pub wrong_tx_cidx: Option<(u64, u16)>,
}

/// Something that the card did wrong, and that its driver has to tell of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fired {
    /// In words, with queue and entry.
    pub what: String,
    /// When.
    pub time: Time,
}

/// A ring that the card writes to: completions, or a transmit ring for its status word.
#[derive(Clone, Copy, Debug)]
struct Ring {
    qid: Qid,
    base: u64,
    size_index: u8,
}

#[derive(Default)]
struct State {
    faults: Faults,
    data: [u32; COMMAND_WORDS],
    commands: u64,
    hang_until: Option<Time>,
    /// The last command hangs.
    busy: bool,
    ring_sizes: BTreeMap<u8, u32>,
    completions: BTreeMap<Qid, Ring>,
    transmit: BTreeMap<Qid, Ring>,
    completion_count: u64,
    write_back_count: u64,
    /// The queue whose transmit status is wrong.
    wrong: Option<Qid>,
    /// The last write-back of each ring that was held.
    held: BTreeMap<u64, (FuncId, Vec<u8>)>,
    fired: Vec<Fired>,
    now: Time,
}

/// The faults of a card, from outside.
#[derive(Clone, Default)]
pub struct Handle(Arc<Mutex<State>>);

impl Handle {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What the card did wrong so far that its driver has to tell of.
    pub fn fired(&self) -> Vec<Fired> {
        self.lock().fired.clone()
    }

    /// Is the card withholding transmit write-backs?
    pub fn holds(&self) -> bool {
        let state = self.lock();
        state.faults.hold_tx_status_until.is_some_and(|until| state.now < until)
    }
}

/// `card` with these faults, and the handle to watch them by.
pub fn tamper(card: Box<dyn Card>, faults: Faults) -> (impl Card, Handle) {
    let state = Handle::default();
    state.lock().faults = faults;
    (Layered::new(card, Tampering { state: state.clone() }), state)
}

/// The faults, in front of a card.
struct Tampering {
    state: Handle,
}

/// Host memory, with the faults in between.
struct Between<'a> {
    memory: &'a mut dyn HostMemory,
    state: &'a Handle,
}

impl HostMemory for Between<'_> {
    fn read(&mut self, func: FuncId, addr: u64, buf: &mut [u8]) -> Result<(), DmaFault> {
        self.memory.read(func, addr, buf)
    }

    fn write(&mut self, func: FuncId, addr: u64, data: &[u8]) -> Result<(), DmaFault> {
        let altered = self.state.lock().alter(func, addr, data);
        match altered {
            Altered::Not => self.memory.write(func, addr, data),
            Altered::To(bytes) => self.memory.write(func, addr, &bytes),
            Altered::Held => Ok(()),
        }
    }
}

/// What became of a write.
enum Altered {
    Not,
    To(Vec<u8>),
    Held,
}

impl State {
    fn alter(&mut self, func: FuncId, addr: u64, data: &[u8]) -> Altered {
        if let Some((ring, slot)) = self.find(&self.completions, addr, 8)
            && slot + 1 < self.entries(ring)
        {
            return self.alter_completions(ring, slot, data);
        }
        if let Some((ring, slot)) = self.find(&self.transmit, addr, 16)
            && slot + 1 == self.entries(ring)
        {
            return self.alter_write_back(ring, func, addr, data);
        }
        Altered::Not
    }

    fn entries(&self, ring: Ring) -> u64 {
        self.ring_sizes.get(&ring.size_index).copied().unwrap_or(0).into()
    }

    /// The ring that has this address, and which of its entries that is.
    fn find(&self, rings: &BTreeMap<Qid, Ring>, addr: u64, entry_bytes: u64) -> Option<(Ring, u64)> {
        rings.values().find_map(|ring| {
            let slot = addr.checked_sub(ring.base)? / entry_bytes;
            (slot < self.entries(*ring)).then_some((*ring, slot))
        })
    }

    fn alter_completions(&mut self, ring: Ring, slot: u64, data: &[u8]) -> Altered {
        let mut bytes = data.to_vec();
        let mut changed = false;
        for (at, entry) in (slot..).zip(bytes.chunks_exact_mut(8)) {
            let number = self.completion_count;
            self.completion_count += 1;
            let Ok(raw) = <&[u8; 8]>::try_from(&*entry) else { continue };
            let mut completion = Completion::from_bytes(raw);
            let what = if self.faults.error_completion == Some(number) {
                completion.err = true;
                format!("{}, completion {at}: error bit set", ring.qid)
            } else if let Some((_, len_bytes)) = self.faults.wrong_length.filter(|(wanted, _)| *wanted == number) {
                completion.len_bytes = len_bytes;
                format!("{}, completion {at}: a length of {len_bytes} bytes", ring.qid)
            } else {
                continue;
            };
            entry.copy_from_slice(&completion.to_bytes());
            self.fired.push(Fired { what, time: self.now });
            changed = true;
        }
        if changed { Altered::To(bytes) } else { Altered::Not }
    }

    fn alter_write_back(&mut self, ring: Ring, func: FuncId, addr: u64, data: &[u8]) -> Altered {
        if self.faults.hold_tx_status_until.is_some_and(|until| self.now < until) {
            self.held.insert(addr, (func, data.to_vec()));
            return Altered::Held;
        }
        let number = self.write_back_count;
        self.write_back_count += 1;
        let (Some((from, cidx)), Some(raw)) = (self.faults.wrong_tx_cidx, data.first_chunk::<8>()) else {
            return Altered::Not;
        };
        if number == from {
            self.wrong = Some(ring.qid);
            self.fired.push(Fired { what: format!("{}, transmit status: cidx {cidx}", ring.qid), time: self.now });
        }
        if self.wrong != Some(ring.qid) {
            return Altered::Not;
        }
        Altered::To(H2cStatus { cidx, ..H2cStatus::from_bytes(raw) }.to_bytes().to_vec())
    }

    /// Look at a register write as it goes by.
    fn snoop(&mut self, offset: u32, value: u32) {
        let word =
            |first: u32, count: u32| (offset >= first && offset < first + 4 * count).then(|| (offset - first) / 4);
        if let Some(i) = word(qdma_csr::IND_CTXT_DATA, COMMAND_WORDS as u32) {
            self.data[i as usize] = value;
        } else if let Some(i) = word(qdma_csr::GLBL_RING_SIZE, 16) {
            self.ring_sizes.insert(i as u8, value & 0xffff);
        } else if offset == qdma_csr::IND_CTXT_CMD {
            self.context(ContextCommand::from_word(value));
        }
    }

    fn context(&mut self, command: ContextCommand) {
        let qid = Qid(command.qid);
        match (command.selector, command.op) {
            (ContextSelector::Completion, ContextOp::Write) => {
                let [words @ .., _, _] = self.data;
                let context = CompletionContext::from_words(&words);
                let ring = Ring { qid, base: context.ring_base(), size_index: context.ring_size_index };
                self.completions.insert(qid, ring);
            }
            (ContextSelector::SwDescH2c, ContextOp::Write) => {
                let context = SwDescContext::from_words(&self.data);
                self.wrong = self.wrong.filter(|wrong| *wrong != qid);
                self.transmit.insert(qid, Ring { qid, base: context.ring_base, size_index: context.ring_size_index });
            }
            _ => {}
        }
    }

    /// Does this command hang?
    fn hangs(&mut self) -> bool {
        let number = self.commands;
        self.commands += 1;
        self.busy = self.faults.hang_commands.is_some_and(|(from, ns)| {
            number >= from && self.now < *self.hang_until.get_or_insert(self.now.saturating_add(ns * 1_000))
        });
        self.busy
    }

    /// Held write-backs whose time has come.
    fn let_go(&mut self) -> Vec<(u64, FuncId, Vec<u8>)> {
        match self.faults.hold_tx_status_until {
            Some(until) if self.now < until => Vec::new(),
            _ => std::mem::take(&mut self.held).into_iter().map(|(addr, (func, data))| (addr, func, data)).collect(),
        }
    }
}

impl Tampering {
    /// Do something on the card while its faults are in between.
    fn with<R>(
        &mut self,
        card: &mut dyn Card,
        memory: &mut dyn HostMemory,
        call: impl FnOnce(&mut dyn Card, &mut dyn HostMemory) -> R,
    ) -> R {
        self.state.lock().now = card.now();
        let result = call(card, &mut Between { memory, state: &self.state });
        let let_go = {
            let mut state = self.state.lock();
            state.now = card.now();
            state.let_go()
        };
        for (addr, func, data) in let_go {
            // Of a ring that is gone by now nobody wants to know.
            let _ = memory.write(func, addr, &data);
        }
        result
    }
}

impl Layer for Tampering {
    fn advance(&mut self, card: &mut dyn Card, until: Time, memory: &mut dyn HostMemory) -> Result<Stop, CardError> {
        self.with(card, memory, |card, memory| card.advance(until, memory))
    }

    fn mmio_read(
        &mut self,
        card: &mut dyn Card,
        func: FuncId,
        bar: Bar,
        offset: u32,
        memory: &mut dyn HostMemory,
    ) -> Result<u32, CardError> {
        let value = self.with(card, memory, |card, memory| card.mmio_read(func, bar, offset, memory))?;
        let mut state = self.state.lock();
        if bar == Bar::Qdma && offset == qdma_csr::IND_CTXT_CMD {
            state.busy &= state.hang_until.is_some_and(|until| state.now < until);
            return Ok(if state.busy { ind_ctxt_cmd::BUSY.set(value, 1) } else { value });
        }
        let is_status = bar == Bar::Shell && offset == regs::shell::SYSTEM_CONFIG + system_config::SHELL_STATUS;
        Ok(if is_status && state.faults.cmac_in_reset { value & !0x110 } else { value })
    }

    fn mmio_write(
        &mut self,
        card: &mut dyn Card,
        func: FuncId,
        bar: Bar,
        offset: u32,
        value: u32,
        memory: &mut dyn HostMemory,
    ) -> Result<(), CardError> {
        if bar == Bar::Qdma {
            let mut state = self.state.lock();
            if offset == qdma_csr::IND_CTXT_CMD && state.hangs() {
                return Ok(());
            }
            state.snoop(offset, value);
        }
        self.with(card, memory, |card, memory| card.mmio_write(func, bar, offset, value, memory))
    }
}
