//! What a driver and a shell do to a QDMA under test, and one engine to which it is done.

use models::stream::{C2hCompletion, C2hFrame, H2cFrame};
use models::time::Time;
use regs::context::{COMMAND_WORDS, ContextCommand, ContextOp, ContextSelector, FmapContext};
use regs::{FuncId, Qid, doorbell, qdma_csr as csr};

use super::engine::{Engine, Hold, Interrupt};
use super::memory::{Memory, Ring, Standing};

/// The function that programs the card.
pub const F0: FuncId = FuncId(0);

/// Polls of a context command before it counts as hung.
const POLLS_MAX: u32 = 10_000;

/// Anything that can be driven: one engine, or two at once.
pub trait Bed {
    /// Read a register of BAR0.
    fn read(&mut self, func: FuncId, offset: u32) -> u32;
    /// Write a register of BAR0.
    fn write(&mut self, func: FuncId, offset: u32, value: u32);
    /// Fresh host memory, see [`Memory::alloc`].
    fn alloc(&mut self, func: FuncId, len: usize, fill: u8) -> u64;
    /// See [`Memory::mark`].
    fn mark(&mut self, addr: u64, len: usize, standing: Standing);
    /// The CPU's store.
    fn put(&mut self, addr: u64, data: &[u8]);
    /// The CPU's load.
    fn get(&mut self, addr: u64, len: usize) -> Vec<u8>;
    /// See [`Memory::watch`].
    fn watch(&mut self, ring: Ring);
    /// A C2H frame, with a completion for `completion` if there is one.
    fn receive(&mut self, qid: Qid, data: &[u8], completion: Option<Qid>);
    /// Something did not go as it must: say so. Only the first is kept.
    fn wrong(&mut self, what: String);

    /// Store at a doorbell. A queue without a slot has none.
    fn ring(&mut self, func: FuncId, register: u32, rel_qid: u16, value: u32) {
        if let Some(offset) = doorbell::offset(register, rel_qid) {
            self.write(func, offset, value);
        }
    }

    /// A context command, and polls until it is done.
    fn command(&mut self, selector: ContextSelector, op: ContextOp, qid: u16) {
        self.write(F0, csr::IND_CTXT_CMD, ContextCommand { selector, op, qid }.to_word());
        for _ in 0..POLLS_MAX {
            if self.read(F0, csr::IND_CTXT_CMD) & 1 == 0 {
                return;
            }
        }
        self.wrong(format!("{op:?} of {selector:?} {qid} is busy after {POLLS_MAX} polls"));
    }

    /// Write a context, the bits of `mask` only; words that are not given are 0 in both.
    fn write_masked(&mut self, selector: ContextSelector, qid: u16, words: &[u32], mask: &[u32]) {
        for i in 0..COMMAND_WORDS {
            let word = |words: &[u32]| words.get(i).copied().unwrap_or(0);
            self.write(F0, csr::IND_CTXT_DATA + 4 * i as u32, word(words));
            self.write(F0, csr::IND_CTXT_MASK + 4 * i as u32, word(mask));
        }
        self.command(selector, ContextOp::Write, qid);
    }

    /// Write a context whole.
    fn write_context(&mut self, selector: ContextSelector, qid: u16, words: &[u32]) {
        self.write_masked(selector, qid, words, &[u32::MAX; COMMAND_WORDS]);
    }

    /// Read a context.
    fn read_context(&mut self, selector: ContextSelector, qid: u16) -> [u32; COMMAND_WORDS] {
        self.command(selector, ContextOp::Read, qid);
        std::array::from_fn(|i| self.read(F0, csr::IND_CTXT_DATA + 4 * i as u32))
    }

    /// Give a function its queues.
    fn fmap(&mut self, func: FuncId, qbase: u16, qmax: u16) {
        self.write_context(ContextSelector::Fmap, u16::from(func.0), &FmapContext { qbase, qmax }.to_words());
    }

    /// Set one entry of a table of 16.
    fn set_table(&mut self, table: u32, index: u8, value: u32) {
        self.write(F0, table + 4 * u32::from(index), value);
    }
}

/// One engine with its host memory.
pub struct Bench {
    /// The engine.
    pub engine: Box<dyn Engine>,
    /// Its memory.
    pub memory: Memory,
    /// Number of the next C2H frame.
    next_pkt_id: u16,
    /// The first thing that went wrong.
    pub wrong: Option<String>,
}

impl Bench {
    /// An engine just out of power-up.
    pub fn new(engine: Box<dyn Engine>) -> Bench {
        Bench { engine, memory: Memory::default(), next_pkt_id: 1, wrong: None }
    }

    /// Let so much time pass.
    pub fn run_ns(&mut self, ns: u64) {
        let until = self.engine.now().saturating_add(ns.saturating_mul(1000));
        self.engine.advance(until, &mut self.memory);
    }

    /// Let time pass until nothing goes on by itself; see [`Engine::settle`].
    pub fn settle(&mut self, quiet_ps: u64, limit_ps: u64) -> bool {
        self.engine.settle(quiet_ps, limit_ps, &mut self.memory)
    }

    /// Hold the engine up, or let go.
    pub fn hold(&mut self, place: Hold, on: bool) {
        self.engine.hold(place, on);
    }

    /// H2C frames since the last call.
    pub fn take_h2c(&mut self) -> Vec<H2cFrame> {
        std::iter::from_fn(|| self.engine.take_h2c()).collect()
    }

    /// Interrupts since the last call.
    pub fn take_interrupts(&mut self) -> Vec<Interrupt> {
        std::iter::from_fn(|| self.engine.take_interrupt()).collect()
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.engine.now()
    }
}

impl Bed for Bench {
    fn read(&mut self, func: FuncId, offset: u32) -> u32 {
        self.engine.read(func, offset, &mut self.memory)
    }

    fn write(&mut self, func: FuncId, offset: u32, value: u32) {
        self.engine.write(func, offset, value, &mut self.memory);
    }

    fn alloc(&mut self, func: FuncId, len: usize, fill: u8) -> u64 {
        self.memory.alloc(func, len, fill)
    }

    fn mark(&mut self, addr: u64, len: usize, standing: Standing) {
        self.memory.mark(addr, len, standing);
    }

    fn put(&mut self, addr: u64, data: &[u8]) {
        self.memory.put(addr, data);
    }

    fn get(&mut self, addr: u64, len: usize) -> Vec<u8> {
        self.memory.get(addr, len)
    }

    fn watch(&mut self, ring: Ring) {
        self.memory.watch(ring);
    }

    fn receive(&mut self, qid: Qid, data: &[u8], completion: Option<Qid>) {
        let pkt_id = self.next_pkt_id;
        self.next_pkt_id = self.next_pkt_id.wrapping_add(1);
        let completion = completion.map(|qid| C2hCompletion { qid, len_bytes: data.len() as u16, pkt_id });
        self.engine.receive(C2hFrame { data: data.to_vec(), qid }, completion);
    }

    fn wrong(&mut self, what: String) {
        self.wrong.get_or_insert_with(|| format!("{}: {what}", self.engine.name()));
    }
}
