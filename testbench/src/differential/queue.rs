//! A driver's queues: their rings in host memory, their contexts, and where it stands in them.
//!
//! What may be posted or rung is the caller's affair: a driver under test does wrong things too.

use regs::context::{
    CompletionContext, ContextOp, ContextSelector as S, EntrySize, PrefetchContext, SwDescContext, TriggerMode,
};
use regs::descriptor::{Completion, H2cDescriptor};
use regs::doorbell::{self, C2hPidx, CompletionCidx, H2cPidx};
use regs::{FuncId, Qid, qdma_csr as csr};

use super::bed::Bed;
use super::memory::{PAGE, Ring, Standing};

/// Bytes of buffers that one receive queue has at most.
const POOL_BYTES: u64 = 256 * 1024;

/// Buffers that one receive queue has at most, unless the caller wants another number.
pub const POOL_MAX: u16 = 64;

/// Bytes that one transmit queue has for the data of its frames.
pub const DATA_BYTES: u64 = 256 * 1024;

/// Byte of memory that nobody has written.
const UNWRITTEN: u8 = 0xA5;

/// The tables of the card, as the driver last programmed them.
#[derive(Clone, Debug)]
pub struct Tables {
    /// Ring sizes, status entry included.
    pub ring: [u16; 16],
    /// C2H buffer sizes, bytes.
    pub buffer: [u16; 16],
    /// Moderation timers, ticks.
    pub timer: [u16; 16],
    /// Moderation thresholds, completions.
    pub counter: [u16; 16],
    /// Cycles of a tick.
    pub tick: u32,
    /// Register GLBL_DSC_CFG.
    pub dsc_cfg: u32,
    /// Places of color and error bit in a completion entry.
    pub format: (u16, u16),
    /// Register C2H_PREFETCH_CFG_2.
    pub prefetch: u32,
    /// Register C2H_COALESCE.
    pub coalesce: u32,
}

impl Tables {
    /// As onic.ko writes them. Source: qdma.md 4.1.
    pub const ONIC: Tables = Tables {
        ring: [4096, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 3072, 4096, 6144, 8192, 12288, 16384],
        buffer: [4096, 256, 512, 1024, 2048, 3968, 4096, 4096, 4096, 4096, 4096, 4096, 4096, 8192, 9018, 16384],
        timer: [10, 2, 4, 5, 8, 10, 15, 20, 25, 30, 50, 75, 100, 125, 150, 200],
        counter: [64, 2, 4, 8, 16, 24, 32, 48, 80, 96, 112, 128, 144, 160, 176, 192],
        tick: 25,
        dsc_cfg: 0x30,
        format: (1, 2),
        prefetch: 0,
        coalesce: 0x8006_4014,
    };

    /// Ring sizes as the DPDK driver writes them. Source: qdma.md 4.1.
    pub const PMD_RINGS: [u16; 16] =
        [2049, 65, 129, 193, 257, 385, 513, 769, 1025, 1537, 3073, 4097, 6145, 8193, 12289, 16385];

    /// Write all of them.
    pub fn program(&self, bed: &mut dyn Bed) {
        let tables = [
            (csr::GLBL_RING_SIZE, &self.ring),
            (csr::C2H_BUFFER_SIZE, &self.buffer),
            (csr::C2H_TIMER_COUNT, &self.timer),
            (csr::C2H_COUNTER_THRESHOLD, &self.counter),
        ];
        for (table, values) in tables {
            for (index, value) in (0..).zip(values) {
                bed.set_table(table, index, u32::from(*value));
            }
        }
        bed.write(super::bed::F0, csr::INTERRUPT_TIMER_TICK, self.tick);
        bed.write(super::bed::F0, csr::GLBL_DSC_CFG, self.dsc_cfg);
        bed.write(super::bed::F0, csr::C2H_PREFETCH_CFG_2, self.prefetch);
        bed.write(super::bed::F0, csr::C2H_COALESCE, self.coalesce);
        self.program_format(bed);
    }

    /// Write the completion format.
    pub fn program_format(&self, bed: &mut dyn Bed) {
        let (color, error) = self.format;
        let value = csr::cmpt_format::COLOR_LOCATION.set(0, u32::from(color));
        let value = csr::cmpt_format::ERROR_LOCATION.set(value, u32::from(error));
        bed.write(super::bed::F0, csr::CMPT_FORMAT, value);
    }

    /// The longest that an engine waits for by itself, ps: a moderation timer, or an entry's neighbours.
    pub fn longest_wait_ps(&self) -> u64 {
        let ticks = self.timer.iter().copied().max().unwrap_or(0);
        let coalesce = (self.coalesce >> 2 & 0xFFF) * (self.coalesce >> 14 & 0xFFF);
        let cycles = u64::from(ticks) * u64::from(self.tick.max(1)) + u64::from(coalesce);
        cycles * models::time::Clock::AXIS.num
    }
}

/// The slot after `index` in a ring of `entries`, status entry included.
pub fn next(index: u16, entries: u16) -> u16 {
    advance(index, 1, entries)
}

/// The slot `n` after `index`.
pub fn advance(index: u16, n: u16, entries: u16) -> u16 {
    ((u32::from(index) + u32::from(n)) % u32::from(entries.saturating_sub(1).max(1))) as u16
}

/// Entries that can be outstanding in a ring of `entries`.
pub fn capacity(entries: u16) -> u16 {
    entries.saturating_sub(2)
}

/// How a receive queue is set up.
#[derive(Clone, Debug)]
pub struct RxSpec {
    /// Whose.
    pub func: FuncId,
    /// The function's number for it.
    pub rel_qid: u16,
    /// The card's number for it.
    pub qid: Qid,
    /// Index of the descriptor ring's size.
    pub desc_index: u8,
    /// Index of the buffer size.
    pub buffer_index: u8,
    /// Offset of the rings in their first pages, a multiple of 64.
    pub ring_offset: u64,
    /// Bits of the descriptor ring's base that count as 0.
    pub base_bits: u64,
    /// Offset of the completion ring beyond that, a multiple of 4: its context has no lower bits.
    pub cmpl_offset: u64,
    /// Buffers to go round with.
    pub pool: u16,
    /// Offset of each buffer from where its memory starts.
    pub buffer_offset: u64,
    /// Its descriptor engine reads ahead.
    pub prefetch: bool,
    /// Fetches are metered.
    pub fcrd_en: bool,
    /// What the software context says beyond that.
    pub oddity: Oddity,
    /// The completion ring's context; base, color, function and validity are filled in.
    pub cmpl: CompletionContext,
}

/// A software context that asks for what this QDMA can't do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Oddity {
    /// None: all is well.
    #[default]
    None,
    /// Descriptors of another size.
    DescriptorSize,
    /// Descriptors from user logic.
    Bypass,
    /// A memory-mapped queue.
    MemoryMapped,
    /// A function with this number, which is nobody; the completion context says so too.
    Function(u16),
}

impl Oddity {
    /// The context with it.
    fn apply(self, sw: &mut SwDescContext) {
        match self {
            Oddity::None => {}
            Oddity::DescriptorSize => sw.desc_size = EntrySize::Bytes32,
            Oddity::Bypass => sw.bypass = true,
            Oddity::MemoryMapped => sw.is_mm = true,
            Oddity::Function(number) => sw.func_id = number,
        }
    }
}

impl RxSpec {
    /// As onic.ko sets its queues up: combo moderation, rings of size index 8, buffers of 4 KiB.
    pub fn onic(func: FuncId, rel_qid: u16, qbase: u16) -> RxSpec {
        RxSpec {
            func,
            rel_qid,
            qid: Qid(qbase + rel_qid),
            desc_index: 8,
            buffer_index: 8,
            ring_offset: 0,
            base_bits: 0,
            cmpl_offset: 0,
            pool: POOL_MAX,
            buffer_offset: 0,
            prefetch: true,
            fcrd_en: true,
            oddity: Oddity::None,
            cmpl: CompletionContext {
                en_stat_desc: true,
                en_int: true,
                trigger_mode: TriggerMode::UserTimerCount,
                ring_size_index: 8,
                ..CompletionContext::default()
            },
        }
    }
}

/// A receive queue.
#[derive(Debug)]
pub struct RxQueue {
    /// How it was set up.
    pub spec: RxSpec,
    /// Size of the descriptor ring.
    pub entries: u16,
    /// Size of the completion ring.
    pub cmpl_entries: u16,
    /// Bytes of a buffer.
    pub buffer_bytes: u16,
    /// The descriptor ring.
    pub desc_ring: u64,
    /// The completion ring.
    pub cmpl_ring: u64,
    /// Buffers to go round with.
    pub pool: Vec<u64>,
    /// All its memory.
    regions: Vec<(u64, usize)>,
    /// Next descriptor to fill.
    pub pidx: u16,
    /// Descriptors filled ever.
    filled: usize,
    /// Next completion to read.
    pub cidx: u16,
    /// Its color.
    pub color: bool,
}

impl RxQueue {
    /// Allocate its memory and write its contexts, in onic.ko's order (qdma.md 9.1). No doorbell.
    pub fn start(bed: &mut dyn Bed, tables: &Tables, spec: RxSpec) -> RxQueue {
        let entries = tables.ring[usize::from(spec.desc_index)];
        let cmpl_entries = tables.ring[usize::from(spec.cmpl.ring_size_index)];
        let buffer_bytes = tables.buffer[usize::from(spec.buffer_index)];
        let mut regions = Vec::new();
        let mut alloc = |bed: &mut dyn Bed, len: u64, fill| {
            let addr = bed.alloc(spec.func, len as usize, fill);
            regions.push((addr, len as usize));
            addr
        };
        let desc_bytes = spec.ring_offset + 8 * u64::from(entries);
        let desc_ring = alloc(bed, desc_bytes, 0) + spec.ring_offset;
        let entry_bytes = u64::from(spec.cmpl.entry_size.bytes());
        let cmpl_offset = spec.ring_offset + spec.cmpl_offset;
        let cmpl_ring = alloc(bed, cmpl_offset + entry_bytes * u64::from(cmpl_entries), 0) + cmpl_offset;
        // Buffers lie at odd places, a few bytes apart.
        let stride = u64::from(buffer_bytes) + spec.buffer_offset;
        let count = u64::from(spec.pool.min(entries.saturating_sub(1))).min(POOL_BYTES / stride.max(1)).max(1);
        let base = alloc(bed, count * stride + spec.buffer_offset, UNWRITTEN) + spec.buffer_offset;
        let queue = RxQueue {
            entries,
            cmpl_entries,
            buffer_bytes,
            desc_ring,
            cmpl_ring,
            pool: (0..count).map(|i| base + i * stride).collect(),
            regions,
            pidx: 0,
            filled: 0,
            cidx: 0,
            color: true,
            spec,
        };
        bed.watch(Ring::new(cmpl_ring, entry_bytes, cmpl_entries));
        queue.write_contexts(bed);
        queue
    }

    fn write_contexts(&self, bed: &mut dyn Bed) {
        let (spec, qid) = (&self.spec, self.spec.qid.0);
        let mut sw = SwDescContext {
            func_id: u16::from(spec.func.0),
            qen: true,
            fcrd_en: spec.fcrd_en,
            ring_size_index: spec.desc_index,
            desc_size: EntrySize::Bytes8,
            wbk_en: true,
            ring_base: self.desc_ring | spec.base_bits,
            ..SwDescContext::default()
        };
        spec.oddity.apply(&mut sw);
        let cmpl = CompletionContext { func_id: sw.func_id, color: true, valid: true, ..spec.cmpl }
            .with_ring_base(self.cmpl_ring);
        bed.command(S::SwDescC2h, ContextOp::Clear, qid);
        bed.write_context(S::SwDescC2h, qid, &sw.to_words());
        bed.command(S::HwDescC2h, ContextOp::Clear, qid);
        bed.command(S::CreditC2h, ContextOp::Clear, qid);
        bed.command(S::Prefetch, ContextOp::Clear, qid);
        bed.write_context(S::Prefetch, qid, &self.prefetch_context().to_words());
        bed.command(S::Completion, ContextOp::Clear, qid);
        bed.write_context(S::Completion, qid, &cmpl.to_words());
    }

    fn prefetch_context(&self) -> PrefetchContext {
        PrefetchContext {
            buffer_size_index: self.spec.buffer_index,
            pfch_en: self.spec.prefetch,
            valid: true,
            ..PrefetchContext::default()
        }
    }

    /// Invalidate its contexts, in onic.ko's order.
    pub fn stop(&self, bed: &mut dyn Bed) {
        self.stop_descriptors(bed);
        self.stop_completions(bed);
    }

    /// Invalidate its contexts but the completion ring's.
    pub fn stop_descriptors(&self, bed: &mut dyn Bed) {
        for selector in [S::SwDescC2h, S::HwDescC2h, S::CreditC2h, S::Prefetch] {
            bed.command(selector, ContextOp::Invalidate, self.spec.qid.0);
        }
    }

    /// Invalidate the completion ring's context.
    pub fn stop_completions(&self, bed: &mut dyn Bed) {
        bed.command(S::Completion, ContextOp::Invalidate, self.spec.qid.0);
    }

    /// Take its memory back.
    pub fn free(&self, bed: &mut dyn Bed) {
        self.regions.iter().for_each(|(addr, len)| bed.mark(*addr, *len, Standing::Freed));
    }

    /// Make the page of the next descriptor bad.
    pub fn spoil_next(&self, bed: &mut dyn Bed, standing: Standing) {
        bed.mark(self.desc_addr(self.pidx) / PAGE * PAGE, 1, standing);
    }

    /// Write the software context's error away with PIDX at `pidx`. Until [`RxQueue::begin_again`] the ring must not be read.
    pub fn clear_error(&self, bed: &mut dyn Bed, pidx: u16) {
        bed.mark(self.desc_ring, self.desc_bytes(), Standing::Freed);
        clear_error(bed, S::SwDescC2h, self.spec.qid, pidx);
    }

    /// Begin again at the ring's first entry, with no descriptor posted. The doorbell comes later.
    pub fn begin_again(&mut self, bed: &mut dyn Bed) {
        bed.mark(self.desc_ring, self.desc_bytes(), Standing::Good);
        clear_error(bed, S::SwDescC2h, self.spec.qid, 0);
        bed.command(S::HwDescC2h, ContextOp::Clear, self.spec.qid.0);
        bed.command(S::Prefetch, ContextOp::Clear, self.spec.qid.0);
        bed.write_context(S::Prefetch, self.spec.qid.0, &self.prefetch_context().to_words());
        self.pidx = 0;
    }

    /// Invalidate the prefetch context. Until [`RxQueue::prefetch_again`] the ring must not be read.
    pub fn unprefetch(&self, bed: &mut dyn Bed) {
        bed.command(S::Prefetch, ContextOp::Invalidate, self.spec.qid.0);
        bed.mark(self.desc_ring, self.desc_bytes(), Standing::Freed);
    }

    /// Write the prefetch context again.
    pub fn prefetch_again(&self, bed: &mut dyn Bed) {
        bed.mark(self.desc_ring, self.desc_bytes(), Standing::Good);
        bed.write_context(S::Prefetch, self.spec.qid.0, &self.prefetch_context().to_words());
    }

    fn desc_bytes(&self) -> usize {
        8 * usize::from(self.entries)
    }

    fn desc_addr(&self, slot: u16) -> u64 {
        self.desc_ring + 8 * u64::from(slot)
    }

    /// The next buffer of the pool.
    pub fn next_buffer(&self) -> u64 {
        self.pool[self.filled % self.pool.len()]
    }

    /// Fill the next descriptor. The doorbell comes later.
    pub fn fill(&mut self, bed: &mut dyn Bed, buffer: u64) {
        bed.put(self.desc_addr(self.pidx), &buffer.to_le_bytes());
        self.pidx = next(self.pidx, self.entries);
        self.filled += 1;
    }

    /// The doorbell of the descriptor ring.
    pub fn ring_pidx(&self, bed: &mut dyn Bed, pidx: u16, irq_arm: bool) {
        bed.ring(self.spec.func, doorbell::C2H_PIDX, self.spec.rel_qid, C2hPidx { pidx, irq_arm }.to_word());
    }

    /// The doorbell of the completion ring.
    pub fn ring_cidx(&self, bed: &mut dyn Bed, value: CompletionCidx) {
        bed.ring(self.spec.func, doorbell::COMPLETION_CIDX, self.spec.rel_qid, value.to_word());
    }

    /// Read the completion ring's doorbell back: it has landed when this returns.
    pub fn read_cidx(&self, bed: &mut dyn Bed) {
        if let Some(offset) = doorbell::offset(doorbell::COMPLETION_CIDX, self.spec.rel_qid) {
            bed.read(self.spec.func, offset);
        }
    }

    /// The doorbell as onic.ko rings it: its own index, armed.
    pub fn arm(&self, bed: &mut dyn Bed) {
        let trigger_mode = self.spec.cmpl.trigger_mode;
        let value = CompletionCidx {
            cidx: self.cidx,
            trigger_mode,
            en_stat_desc: true,
            irq_arm: true,
            ..CompletionCidx::default()
        };
        self.ring_cidx(bed, value);
    }

    /// Fill and ring `count` descriptors.
    pub fn post(&mut self, bed: &mut dyn Bed, count: u16) {
        for _ in 0..count {
            self.fill(bed, self.next_buffer());
        }
        self.ring_pidx(bed, self.pidx, false);
    }

    /// Bytes of a completion entry.
    pub fn entry_bytes(&self) -> u64 {
        u64::from(self.spec.cmpl.entry_size.bytes())
    }

    /// Where a slot of the completion ring lies.
    pub fn cmpl_addr(&self, slot: u16) -> u64 {
        self.cmpl_ring + self.entry_bytes() * u64::from(slot)
    }

    /// Where the status word lies.
    pub fn status_addr(&self) -> u64 {
        self.cmpl_addr(self.cmpl_entries.saturating_sub(1))
    }

    /// Low 64 bits of the completion at `slot`.
    pub fn entry(&self, bed: &mut dyn Bed, slot: u16) -> u64 {
        u64_at(bed, self.cmpl_addr(slot))
    }

    /// Step over one completion.
    pub fn consume(&mut self) {
        self.cidx = next(self.cidx, self.cmpl_entries);
        self.color ^= self.cidx == 0;
    }

    /// Buffers that a frame takes.
    pub fn buffers_of(&self, len: usize) -> usize {
        len.div_ceil(usize::from(self.buffer_bytes).max(1)).max(1)
    }
}

/// How a transmit queue is set up.
#[derive(Clone, Debug)]
pub struct TxSpec {
    /// Whose.
    pub func: FuncId,
    /// The function's number for it.
    pub rel_qid: u16,
    /// The card's number for it.
    pub qid: Qid,
    /// Offset of the ring in its first page, a multiple of 64.
    pub ring_offset: u64,
    /// Bits of its base that count as 0.
    pub base_bits: u64,
    /// What the software context asks for that this QDMA can't do.
    pub oddity: Oddity,
    /// Its software context; base, function, descriptor size and enable are filled in.
    pub sw: SwDescContext,
}

impl TxSpec {
    /// As onic.ko sets its queues up: status words, no interrupt.
    pub fn onic(func: FuncId, rel_qid: u16, qbase: u16) -> TxSpec {
        TxSpec {
            func,
            rel_qid,
            qid: Qid(qbase + rel_qid),
            ring_offset: 0,
            base_bits: 0,
            oddity: Oddity::None,
            sw: SwDescContext { wbi_chk: true, wbi_intvl_en: true, wbk_en: true, ..SwDescContext::default() },
        }
    }
}

/// A transmit queue.
#[derive(Debug)]
pub struct TxQueue {
    /// How it was set up.
    pub spec: TxSpec,
    /// Size of the ring.
    pub entries: u16,
    /// The ring.
    pub ring: u64,
    /// Memory for frames' data.
    pub data: u64,
    /// Bytes of it handed out ever.
    given: u64,
    regions: Vec<(u64, usize)>,
    /// Next descriptor to fill.
    pub pidx: u16,
}

impl TxQueue {
    /// Allocate its memory and write its contexts, in onic.ko's order. No doorbell.
    pub fn start(bed: &mut dyn Bed, tables: &Tables, spec: TxSpec) -> TxQueue {
        let entries = tables.ring[usize::from(spec.sw.ring_size_index)];
        let bytes = spec.ring_offset + 16 * u64::from(entries);
        let ring = bed.alloc(spec.func, bytes as usize, 0);
        let data = bed.alloc(spec.func, DATA_BYTES as usize, UNWRITTEN);
        let regions = vec![(ring, bytes as usize), (data, DATA_BYTES as usize)];
        let ring = ring + spec.ring_offset;
        let queue = TxQueue { entries, ring, data, given: 0, regions, pidx: 0, spec };
        let mut sw = SwDescContext {
            func_id: u16::from(queue.spec.func.0),
            qen: true,
            desc_size: EntrySize::Bytes16,
            ring_base: queue.ring | queue.spec.base_bits,
            ..queue.spec.sw
        };
        queue.spec.oddity.apply(&mut sw);
        let qid = queue.spec.qid.0;
        bed.command(S::SwDescH2c, ContextOp::Clear, qid);
        bed.write_context(S::SwDescH2c, qid, &sw.to_words());
        bed.command(S::HwDescH2c, ContextOp::Clear, qid);
        bed.command(S::CreditH2c, ContextOp::Clear, qid);
        queue
    }

    /// Invalidate its contexts, in onic.ko's order.
    pub fn stop(&self, bed: &mut dyn Bed) {
        for selector in [S::SwDescH2c, S::HwDescH2c, S::CreditH2c] {
            bed.command(selector, ContextOp::Invalidate, self.spec.qid.0);
        }
    }

    /// Take its memory back.
    pub fn free(&self, bed: &mut dyn Bed) {
        self.regions.iter().for_each(|(addr, len)| bed.mark(*addr, *len, Standing::Freed));
    }

    /// Make the page of the next descriptor bad.
    pub fn spoil_next(&self, bed: &mut dyn Bed, standing: Standing) {
        bed.mark(self.desc_addr(self.pidx) / PAGE * PAGE, 1, standing);
    }

    /// See [`RxQueue::clear_error`].
    pub fn clear_error(&self, bed: &mut dyn Bed, pidx: u16) {
        bed.mark(self.ring, 16 * usize::from(self.entries), Standing::Freed);
        clear_error(bed, S::SwDescH2c, self.spec.qid, pidx);
    }

    /// See [`RxQueue::begin_again`].
    pub fn begin_again(&mut self, bed: &mut dyn Bed) {
        bed.mark(self.ring, 16 * usize::from(self.entries), Standing::Good);
        clear_error(bed, S::SwDescH2c, self.spec.qid, 0);
        bed.command(S::HwDescH2c, ContextOp::Clear, self.spec.qid.0);
        bed.put(self.status_addr(), &[0; 8]);
        self.pidx = 0;
    }

    fn desc_addr(&self, slot: u16) -> u64 {
        self.ring + 16 * u64::from(slot)
    }

    /// Where the status word lies.
    pub fn status_addr(&self) -> u64 {
        self.desc_addr(self.entries.saturating_sub(1))
    }

    /// Put a frame's bytes into the queue's data memory, which is used in turn.
    pub fn store(&mut self, bed: &mut dyn Bed, data: &[u8]) -> u64 {
        let len = data.len() as u64;
        if self.given % DATA_BYTES + len > DATA_BYTES {
            self.given = self.given.next_multiple_of(DATA_BYTES);
        }
        let addr = self.data + self.given % DATA_BYTES;
        self.given += len;
        bed.put(addr, data);
        addr
    }

    /// Fill the next descriptor. The doorbell comes later.
    pub fn fill(&mut self, bed: &mut dyn Bed, descriptor: H2cDescriptor) {
        bed.put(self.desc_addr(self.pidx), &descriptor.to_bytes());
        self.pidx = next(self.pidx, self.entries);
    }

    /// Store a frame and fill the next descriptor for it, as onic.ko does.
    pub fn send(&mut self, bed: &mut dyn Bed, data: &[u8]) {
        let address = self.store(bed, data);
        let len_bytes = data.len() as u16;
        self.fill(bed, H2cDescriptor { metadata: u32::from(len_bytes), len_bytes, flags: 0, address });
    }

    /// The doorbell.
    pub fn ring_pidx(&self, bed: &mut dyn Bed, pidx: u16, irq_arm: bool) {
        bed.ring(self.spec.func, doorbell::H2C_PIDX, self.spec.rel_qid, H2cPidx { pidx, irq_arm }.to_word());
    }

    /// The doorbell at its own index.
    pub fn kick(&self, bed: &mut dyn Bed) {
        self.ring_pidx(bed, self.pidx, true);
    }
}

/// Write PIDX and a software context's error field, which becomes 0; all else stays.
fn clear_error(bed: &mut dyn Bed, selector: S, qid: Qid, pidx: u16) {
    let words = SwDescContext { pidx, ..SwDescContext::default() }.to_words();
    let mask = SwDescContext { pidx: u16::MAX, err: 3, ..SwDescContext::default() }.to_words();
    bed.write_masked(selector, qid.0, &words, &mask);
}

/// Eight bytes of host memory.
pub fn u64_at(bed: &mut dyn Bed, addr: u64) -> u64 {
    let raw = bed.get(addr, 8);
    raw.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// A completion's user bits, color and error left out: what the shell said of the frame.
pub fn user_bits(qid: Qid, len_bytes: u16, pkt_id: u16) -> u64 {
    Completion { qid: qid.0, len_bytes, pkt_id, color: false, err: false }.to_u64()
}
