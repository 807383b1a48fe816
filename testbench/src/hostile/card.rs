//! The card's side of the queues: it learns of rings by register writes, as a card does, and moves frames correctly
//! until it is told otherwise.
//!
//! It does nothing by itself. Each step of a frame (payload, completion entry, status word) is a call of its own, so
//! that whoever plays the villain leaves one out, does two the wrong way round, or writes another word.

use std::fmt;
use std::sync::Arc;

use models::host_memory::{DmaFault, HostMemory};
use regs::context::{ContextCommand, ContextOp, ContextSelector};
use regs::{Bar, FuncId, PortId, cmac, doorbell, qdma, qdma_csr, shell, system_config};
use traces::synth::Rng;

use super::words::{Entry, Lap, RxStatus, TxStatus};
use crate::host_memory::SharedMemory;

/// Register accesses in one case after which the driver counts as hanging: a hundred times what any needs.
const ACCESSES_MAX: u64 = 1_000_000;

/// Bytes of a C2H descriptor, of an H2C descriptor, of a completion (`spec/qdma.md` 5.2 to 5.4).
const C2H_DESC_BYTES: u64 = 8;
const H2C_DESC_BYTES: u64 = 16;
const ENTRY_BYTES: u64 = 8;

/// How a register access fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// No answer within the platform's limit.
    TimedOut,
    /// SLVERR.
    Bus,
    /// The card has stopped.
    Stopped,
}

/// How the card answers register accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Registers {
    /// As it should.
    Honest,
    /// Pulled out: reads give all ones, writes go nowhere.
    Gone,
    /// Context commands are never done; all else is as it should be.
    Busy,
    /// Context commands of one direction are never done: H2C, or all others.
    BusyOn { h2c: bool },
    /// The access after `after` more, and all that follow, are refused.
    Refusing { after: u32, how: Refusal },
    /// One read in `one_in` gives a random word; writes do what they should.
    Lying { one_in: u64 },
    /// Every read gives this word; writes do what they should.
    Stuck { word: u32 },
    /// This register reads so; all else is as it should be.
    Wrong { bar: Bar, offset: u32, word: u32 },
    /// One register space refuses; the other is as it should be.
    Deaf { bar: Bar, how: Refusal },
    /// Each access is refused, and each read answered, in one of these ways at random. Writes that are not refused do
    /// what they should: a card that loses single ones looks like a correct one.
    Mad,
}

/// What happened, in order: for the oracle, and to be read when a case fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The driver gave receive buffers up to this index.
    RxPidx(u16),
    /// The driver gave completions back up to this index.
    RxCidx(u16),
    /// The driver gave frames to send up to this index.
    TxPidx(u16),
    /// A doorbell was refused: a transmit queue's, or a receive queue's.
    DoorbellRefused { tx: bool },
    /// A page could not be handed back to the device.
    SyncRefused,
    /// A frame of so many bytes was handed up.
    Delivered { len_bytes: usize },
    /// The card wrote a frame's bytes into so many buffers from this descriptor on.
    Payload { first: u16, buffers: u16 },
    /// The card wrote a completion entry.
    Entry { index: u16, word: u64 },
    /// The card wrote half of a completion entry: 0 the low, 1 the high 32 bits.
    HalfEntry { index: u16, half: u8, word: u32 },
    /// The card wrote the status word of a completion ring.
    RxStatus(u64),
    /// The card wrote the status word of an H2C ring.
    TxStatus(u64),
    /// The card fetched a frame to send.
    Fetched { index: u16, len_bytes: usize },
    /// The card wrote a word into a descriptor ring.
    Scribble { offset: u64, word: u64 },
    /// The card was set to write a word at a later load of the driver's.
    Ambush { loads: u32, addr: u64, word: u64 },
    /// The card's registers changed their ways.
    Registers(Registers),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::RxPidx(pidx) => write!(f, "driver  gives buffers up to {pidx}"),
            Event::RxCidx(cidx) => write!(f, "driver  gives completions back up to {cidx}"),
            Event::TxPidx(pidx) => write!(f, "driver  gives frames up to {pidx}"),
            Event::DoorbellRefused { tx } => {
                write!(f, "card    refuses a {} doorbell", if *tx { "transmit" } else { "receive" })
            }
            Event::SyncRefused => f.write_str("host    refuses to hand a page over"),
            Event::Delivered { len_bytes } => write!(f, "driver  hands up {len_bytes} bytes"),
            Event::Payload { first, buffers } => {
                write!(f, "card    fills {buffers} buffers from descriptor {first} on")
            }
            Event::Entry { index, word } => write!(f, "card    entry {index} = {word:#018x}"),
            Event::HalfEntry { index, half, word } => {
                write!(f, "card    entry {index}, {} half = {word:#010x}", if *half == 0 { "low" } else { "high" })
            }
            Event::RxStatus(word) => write!(f, "card    completion status = {word:#018x}"),
            Event::TxStatus(word) => write!(f, "card    H2C status = {word:#018x}"),
            Event::Fetched { index, len_bytes } => write!(f, "card    fetches {len_bytes} bytes, descriptor {index}"),
            Event::Scribble { offset, word } => write!(f, "card    descriptor ring, byte {offset} = {word:#018x}"),
            Event::Ambush { loads, addr, word } => {
                write!(f, "card    will write {word:#018x} to {addr:#x}, {loads} loads on")
            }
            Event::Registers(registers) => write!(f, "card    registers: {registers:?}"),
        }
    }
}

/// A receive queue: descriptor ring and completion ring.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Rx {
    pub(super) enabled: bool,
    pub(super) qid: u16,
    ring: u64,
    /// Entries of either ring, status included.
    pub(super) entries: u16,
    pub(super) completions: u64,
    /// Bytes of a buffer.
    pub(super) buffer: u16,
    /// From the doorbell.
    pub(super) pidx: u16,
    /// Next descriptor to use.
    pub(super) next_desc: u16,
    /// Next entry to write, and its color.
    pub(super) next_entry: u16,
    pub(super) color: bool,
    /// From the doorbell.
    cidx: u16,
    pkt_id: u16,
    /// It no longer knows which buffers are its own: it writes into none.
    pub(super) derailed: bool,
}

impl Rx {
    pub(super) fn lap(&self) -> Lap {
        Lap::of(self.entries)
    }

    /// Buffers that it may use.
    pub(super) fn posted(&self) -> u16 {
        self.lap().ahead(self.next_desc, self.pidx)
    }

    /// The entry that is due for a frame of this length.
    pub(super) fn entry(&self, len_bytes: u16) -> Entry {
        Entry::new(self.color, self.qid, len_bytes, self.pkt_id)
    }

    /// The status word that is due.
    pub(super) fn status(&self) -> RxStatus {
        RxStatus::new(self.next_entry, self.cidx, self.color)
    }

    pub(super) fn entry_addr(&self, index: u16) -> u64 {
        self.completions + ENTRY_BYTES * u64::from(index)
    }

    pub(super) fn status_addr(&self) -> u64 {
        self.entry_addr(self.entries - 1)
    }

    /// One more entry is written.
    pub(super) fn advance(&mut self) {
        self.next_entry = self.lap().step(self.next_entry, 1);
        self.color ^= self.next_entry == 0;
        self.pkt_id = self.pkt_id.wrapping_add(1);
    }
}

/// A transmit queue.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Tx {
    pub(super) enabled: bool,
    ring: u64,
    pub(super) entries: u16,
    /// From the doorbell.
    pub(super) pidx: u16,
    /// Next descriptor to fetch.
    pub(super) cidx: u16,
}

impl Tx {
    pub(super) fn lap(&self) -> Lap {
        Lap::of(self.entries)
    }

    pub(super) fn status(&self) -> TxStatus {
        TxStatus::new(self.cidx, self.pidx)
    }

    pub(super) fn status_addr(&self) -> u64 {
        self.ring + H2C_DESC_BYTES * u64::from(self.entries - 1)
    }
}

/// Both queues of one index.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Queue {
    pub(super) rx: Rx,
    pub(super) tx: Tx,
}

/// A word that the card will write when the driver has made some more loads of coherent memory.
#[derive(Clone, Copy, Debug)]
struct Ambush {
    loads: u32,
    addr: u64,
    word: u64,
}

/// The card.
pub(super) struct Card {
    func: FuncId,
    base: u16,
    memory: Arc<SharedMemory>,
    ring_sizes: [u16; 16],
    buffer_sizes: [u16; 16],
    data: [u32; 8],
    last_command: u32,
    pub(super) queues: Vec<Queue>,
    registers: Registers,
    rng: Rng,
    accesses: u64,
    ambush: Option<Ambush>,
    /// A receive queue that was just invalidated: what it still writes is late, and must find its memory.
    late: Option<Rx>,
    late_faults: Vec<DmaFault>,
    pub(super) log: Vec<Event>,
}

impl Card {
    /// A card that has had its power-up reset, with the vendor's tables in it (`spec/qdma.md` 4.1), which function 0
    /// overwrites and others find.
    pub(super) fn new(func: FuncId, base: u16, queues: usize, memory: Arc<SharedMemory>, seed: u64) -> Card {
        Card {
            func,
            base,
            memory,
            ring_sizes: [4096, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 3072, 4096, 6144, 8192, 12288, 16384],
            buffer_sizes: [
                4096, 256, 512, 1024, 2048, 3968, 4096, 4096, 4096, 4096, 4096, 4096, 4096, 8192, 9018, 16384,
            ],
            data: [0; 8],
            last_command: 0,
            queues: vec![Queue::default(); queues],
            registers: Registers::Honest,
            rng: Rng::new(seed),
            accesses: 0,
            ambush: None,
            late: None,
            late_faults: Vec::new(),
            log: Vec::new(),
        }
    }

    /// Function 0 left these sizes in entry 1 of the ring table and in entry 4 of the buffer table.
    pub(super) fn set_sizes(&mut self, ring: u16, buffer: u16) {
        self.ring_sizes[1] = ring;
        self.buffer_sizes[4] = buffer;
    }

    /// A new case: the log begins anew.
    pub(super) fn begin(&mut self, seed: u64) {
        self.rng = Rng::new(seed);
        self.accesses = 0;
        self.ambush = None;
        self.log.clear();
    }

    pub(super) fn set_registers(&mut self, registers: Registers) {
        self.registers = registers;
        self.log.push(Event::Registers(registers));
    }

    /// What the memory refused to a correct card that was only late: the driver freed it too early.
    pub(super) fn late_faults(&self) -> &[DmaFault] {
        &self.late_faults
    }

    /// Register accesses of this case.
    pub(super) fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Read a register.
    pub(super) fn read(&mut self, bar: Bar, offset: u32) -> Result<u32, Refusal> {
        let registers = self.access(bar)?;
        let honest = self.honest(bar, offset);
        Ok(match registers {
            Registers::Gone => u32::MAX,
            Registers::Busy if (bar, offset) == (Bar::Qdma, qdma_csr::IND_CTXT_CMD) => 1,
            Registers::BusyOn { h2c }
                if (bar, offset) == (Bar::Qdma, qdma_csr::IND_CTXT_CMD) && self.last_is_h2c() == h2c =>
            {
                1
            }
            Registers::Lying { one_in } if self.rng.one_in(one_in) => self.rng.next_u64() as u32,
            Registers::Stuck { word } => word,
            Registers::Wrong { bar: wrong_bar, offset: at, word } if (bar, offset) == (wrong_bar, at) => word,
            _ => honest,
        })
    }

    /// Write a register.
    pub(super) fn write(&mut self, bar: Bar, offset: u32, value: u32) -> Result<(), Refusal> {
        let rings = bar == Bar::Qdma && offset >= qdma::DOORBELL;
        if let Err(how) = self.access(bar) {
            if rings {
                let tx = (offset - qdma::DOORBELL) % doorbell::H2C_PIDX_STRIDE == doorbell::H2C_PIDX;
                self.log.push(Event::DoorbellRefused { tx });
            }
            return Err(how);
        }
        match bar {
            _ if self.registers == Registers::Gone => {}
            Bar::Qdma if rings => self.ring(offset - qdma::DOORBELL, value),
            Bar::Qdma => self.write_csr(offset, value),
            _ => {}
        }
        Ok(())
    }

    /// Is the last context command about the H2C side of a queue?
    fn last_is_h2c(&self) -> bool {
        use ContextSelector::{CreditH2c, HwDescH2c, SwDescH2c};
        matches!(ContextCommand::from_word(self.last_command).selector, SwDescH2c | HwDescH2c | CreditH2c)
    }

    /// One more access; how is it to be answered?
    fn access(&mut self, bar: Bar) -> Result<Registers, Refusal> {
        self.accesses += 1;
        assert!(self.accesses < ACCESSES_MAX, "the driver hangs: {ACCESSES_MAX} register accesses in one case");
        if let Registers::Refusing { after, how } = &mut self.registers {
            if *after == 0 {
                return Err(*how);
            }
            *after -= 1;
        }
        match self.registers {
            Registers::Mad => {}
            Registers::Deaf { bar: deaf, how } if deaf == bar => return Err(how),
            registers => return Ok(registers),
        }
        Ok(match self.rng.below(64) {
            0 => return Err(*self.rng.pick(&[Refusal::TimedOut, Refusal::Bus, Refusal::Stopped])),
            1 => Registers::Gone,
            2 => Registers::Busy,
            3..=8 => Registers::Lying { one_in: 1 },
            _ => Registers::Honest,
        })
    }

    fn honest(&self, bar: Bar, offset: u32) -> u32 {
        let table = |first: u32| (offset.wrapping_sub(first) / 4) as usize;
        match bar {
            Bar::Qdma => match offset {
                qdma_csr::C2H_PREFETCH_CACHE_DEPTH => 16,
                qdma_csr::C2H_COALESCE_DEPTH => 32,
                _ if table(qdma_csr::GLBL_RING_SIZE) < 16 => self.ring_sizes[table(qdma_csr::GLBL_RING_SIZE)].into(),
                _ if table(qdma_csr::C2H_BUFFER_SIZE) < 16 => {
                    self.buffer_sizes[table(qdma_csr::C2H_BUFFER_SIZE)].into()
                }
                _ => 0,
            },
            _ if offset == shell::SYSTEM_CONFIG + system_config::SHELL_STATUS => u32::MAX,
            _ if [0, 1].iter().any(|port| offset == shell::cmac(PortId(*port)) + cmac::CORE_VERSION) => 0x301,
            _ if [0, 1].iter().any(|port| offset == shell::cmac(PortId(*port)) + cmac::STAT_RX_STATUS) => 3,
            _ => 0,
        }
    }

    fn write_csr(&mut self, offset: u32, value: u32) {
        let table = |first: u32| (offset.wrapping_sub(first) / 4) as usize;
        match offset {
            qdma_csr::IND_CTXT_CMD => {
                self.last_command = value;
                self.command(ContextCommand::from_word(value));
            }
            _ if table(qdma_csr::IND_CTXT_DATA) < 8 => self.data[table(qdma_csr::IND_CTXT_DATA)] = value,
            _ if table(qdma_csr::GLBL_RING_SIZE) < 16 => {
                self.ring_sizes[table(qdma_csr::GLBL_RING_SIZE)] = value as u16;
            }
            _ if table(qdma_csr::C2H_BUFFER_SIZE) < 16 => {
                self.buffer_sizes[table(qdma_csr::C2H_BUFFER_SIZE)] = value as u16;
            }
            _ => {}
        }
    }

    /// A context command: layouts of `spec/qdma.md` 3.1, 3.4, 3.5.
    fn command(&mut self, command: ContextCommand) {
        let rel_qid = usize::from(command.qid.wrapping_sub(self.base));
        let data = self.data;
        let ring_size = |index: u32| self.ring_sizes[(index & 15) as usize];
        let Some(queue) = self.queues.get_mut(rel_qid) else { return };
        let Queue { rx, tx } = queue;
        match (command.selector, command.op) {
            (ContextSelector::SwDescH2c, ContextOp::Write) => {
                let ring = u64::from(data[2]) | u64::from(data[3]) << 32;
                *tx = Tx { enabled: data[1] & 1 == 1, ring, entries: ring_size(data[1] >> 12), ..Tx::default() };
            }
            (ContextSelector::SwDescH2c, _) => tx.enabled = false,
            (ContextSelector::SwDescC2h, ContextOp::Write) => {
                let ring = u64::from(data[2]) | u64::from(data[3]) << 32;
                let pkt_id = rx.pkt_id.wrapping_add(1);
                let (entries, qid) = (ring_size(data[1] >> 12), command.qid);
                *rx = Rx { ring, entries, qid, pkt_id, color: true, ..Rx::default() };
            }
            (ContextSelector::Prefetch, ContextOp::Write) => {
                rx.buffer = self.buffer_sizes[(data[0] >> 1 & 15) as usize];
            }
            (ContextSelector::Completion, ContextOp::Write) => {
                // Bits 63:6 of the address in words 1 and 2.
                rx.completions = u64::from(data[1]) << 6 | u64::from(data[2] & 0x03FF_FFFF) << 38;
                rx.color = data[0] >> 27 & 1 == 1;
                rx.enabled = data[3] >> 28 & 1 == 1;
            }
            (ContextSelector::Completion, ContextOp::Invalidate) if rx.enabled => {
                self.late = Some(*rx);
                rx.enabled = false;
            }
            (ContextSelector::Completion, _) => rx.enabled = false,
            _ => {}
        }
    }

    fn ring(&mut self, offset: u32, value: u32) {
        let index = (value & 0xFFFF) as u16;
        let Some(queue) = self.queues.get_mut((offset / doorbell::H2C_PIDX_STRIDE) as usize) else { return };
        match offset % doorbell::H2C_PIDX_STRIDE {
            doorbell::H2C_PIDX => {
                queue.tx.pidx = index;
                self.log.push(Event::TxPidx(index));
            }
            doorbell::C2H_PIDX => {
                queue.rx.pidx = index;
                self.log.push(Event::RxPidx(index));
            }
            doorbell::COMPLETION_CIDX => {
                queue.rx.cidx = index;
                self.log.push(Event::RxCidx(index));
            }
            _ => {}
        }
    }

    /// Time passes: DMA that was on its way when a queue was invalidated arrives now (`spec/qdma.md` 9.3).
    pub(super) fn time_passes(&mut self) {
        let Some(rx) = self.late.take() else { return };
        let memory = Arc::clone(&self.memory);
        let mut memory = memory.lend();
        let mut desc = [0; 8];
        if rx.posted() > 0 && !rx.derailed {
            let wrote =
                memory.read(self.func, rx.ring + C2H_DESC_BYTES * u64::from(rx.next_desc), &mut desc).and_then(|()| {
                    memory.write(self.func, u64::from_le_bytes(desc), &[0xEE; 60][..60.min(rx.buffer.into())])
                });
            self.late_faults.extend(wrote.err());
        }
        let wrote = memory.write(self.func, rx.entry_addr(rx.next_entry), &rx.entry(60).0.to_le_bytes());
        self.late_faults.extend(wrote.err());
    }

    /// Write a frame's bytes into the buffers that are next.
    ///
    /// # Errors
    /// There are too few, or the memory refuses what the driver said is there.
    pub(super) fn payload(&mut self, rel_qid: usize, frame: &[u8]) -> Result<(), String> {
        let rx = &mut self.queues[rel_qid].rx;
        let buffers = frame.len().div_ceil(usize::from(rx.buffer.max(1))) as u16;
        if buffers > rx.posted() {
            return Err(format!("{buffers} buffers are needed, {} are posted", rx.posted()));
        }
        let first = rx.next_desc;
        let memory = Arc::clone(&self.memory);
        let mut memory = memory.lend();
        for part in frame.chunks(rx.buffer.into()) {
            let mut desc = [0; 8];
            memory
                .read(self.func, rx.ring + C2H_DESC_BYTES * u64::from(rx.next_desc), &mut desc)
                .and_then(|()| memory.write(self.func, u64::from_le_bytes(desc), part))
                .map_err(|fault| format!("a buffer that the driver gave: {fault}"))?;
            rx.next_desc = rx.lap().step(rx.next_desc, 1);
        }
        self.log.push(Event::Payload { first, buffers });
        Ok(())
    }

    /// Write a completion entry.
    pub(super) fn write_entry(&mut self, rel_qid: usize, index: u16, word: u64) {
        let rx = self.queues[rel_qid].rx;
        self.store(rx.entry_addr(index), &word.to_le_bytes());
        self.log.push(Event::Entry { index, word });
    }

    /// Write half of a completion entry, as no QDMA does.
    pub(super) fn write_half(&mut self, rel_qid: usize, index: u16, half: u8, word: u64) {
        let rx = self.queues[rel_qid].rx;
        let word = (word >> (32 * half)) as u32;
        self.store(rx.entry_addr(index) + 4 * u64::from(half), &word.to_le_bytes());
        self.log.push(Event::HalfEntry { index, half, word });
    }

    /// Write the status word of a completion ring.
    pub(super) fn write_rx_status(&mut self, rel_qid: usize, word: u64) {
        self.store(self.queues[rel_qid].rx.status_addr(), &word.to_le_bytes());
        self.log.push(Event::RxStatus(word));
    }

    /// Write the status word of an H2C ring.
    pub(super) fn write_tx_status(&mut self, rel_qid: usize, word: u64) {
        self.store(self.queues[rel_qid].tx.status_addr(), &word.to_le_bytes());
        self.log.push(Event::TxStatus(word));
    }

    /// Write a word anywhere in a descriptor ring, its status word left out.
    pub(super) fn scribble(&mut self, rel_qid: usize, on_tx: bool, at: u16, word: u64) {
        let Queue { rx, tx } = self.queues[rel_qid];
        let (ring, words) = if on_tx { (tx.ring, 2 * (tx.entries - 1)) } else { (rx.ring, rx.entries - 1) };
        let offset = 8 * u64::from(at % words);
        self.store(ring + offset, &word.to_le_bytes());
        self.log.push(Event::Scribble { offset, word });
    }

    /// Write a word when the driver has made `loads` more loads.
    pub(super) fn lie_in_ambush(&mut self, loads: u32, addr: u64, word: u64) {
        self.ambush = Some(Ambush { loads, addr, word });
        self.log.push(Event::Ambush { loads, addr, word });
    }

    /// Write it no more.
    pub(super) fn leave_ambush(&mut self) {
        self.ambush = None;
    }

    /// The driver is about to load a word. Says whether more ambushes wait.
    pub(super) fn before_load(&mut self) -> bool {
        match &mut self.ambush {
            Some(ambush) if ambush.loads > 0 => ambush.loads -= 1,
            Some(ambush) => {
                let Ambush { addr, word, .. } = *ambush;
                self.ambush = None;
                self.store(addr, &word.to_le_bytes());
            }
            None => {}
        }
        self.ambush.is_some()
    }

    /// Words of a completion ring as they are in memory, the status word last.
    pub(super) fn completion_words(&self, rel_qid: usize, words: &mut Vec<u64>) {
        let rx = &self.queues[rel_qid].rx;
        let mut bytes = vec![0; 8 * usize::from(rx.entries)];
        // A ring that was never set up has no words, and nothing to be judged.
        let _ = self.memory.lend().read(self.func, rx.completions, &mut bytes);
        words.clear();
        words.extend(
            bytes.chunks_exact(8).map(|word| word.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))),
        );
    }

    /// The status word of an H2C ring as it is in memory.
    pub(super) fn tx_status_word(&self, rel_qid: usize) -> u64 {
        let mut bytes = [0; 8];
        let _ = self.memory.lend().read(self.func, self.queues[rel_qid].tx.status_addr(), &mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Fetch the next frame to send, if there is one.
    ///
    /// # Errors
    /// The memory refuses what the driver said is there, or the descriptor contradicts itself.
    pub(super) fn fetch(&mut self, rel_qid: usize) -> Result<Option<Vec<u8>>, String> {
        let tx = &mut self.queues[rel_qid].tx;
        if tx.cidx == tx.pidx {
            return Ok(None);
        }
        let memory = Arc::clone(&self.memory);
        let mut memory = memory.lend();
        let mut desc = [0; 16];
        let refused = |fault: DmaFault| format!("a frame that the driver gave: {fault}");
        memory.read(self.func, tx.ring + H2C_DESC_BYTES * u64::from(tx.cidx), &mut desc).map_err(refused)?;
        // `spec/qdma.md` 5.2: metadata in bytes 0…3, length in 4 and 5, address in 8…15.
        let metadata = u32::from_le_bytes([desc[0], desc[1], desc[2], desc[3]]);
        let len = u16::from_le_bytes([desc[4], desc[5]]);
        if metadata != u32::from(len) || len == 0 {
            return Err(format!("descriptor {}: length {len}, metadata {metadata}", tx.cidx));
        }
        let addr = desc[8..].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let mut frame = vec![0; len.into()];
        memory.read(self.func, addr, &mut frame).map_err(refused)?;
        self.log.push(Event::Fetched { index: tx.cidx, len_bytes: frame.len() });
        tx.cidx = tx.lap().step(tx.cidx, 1);
        Ok(Some(frame))
    }

    /// The rings are where the driver said, so that a store can only fail while a queue is down; nobody looks then.
    fn store(&self, addr: u64, bytes: &[u8]) {
        let _ = self.memory.lend().write(self.func, addr, bytes);
    }
}
