//! The other side: host memory, and a driver that posts descriptors and reads completions.

use std::collections::{BTreeMap, BTreeSet};

use models::host_memory::{DmaFault, HostMemory};
use models::qdma::{Qdma, QdmaConfig};
use models::stream::{C2hCompletion, C2hFrame, H2cFrame, Offer, QdmaStream};
use models::time::Time;
use regs::context::{
    CompletionContext, ContextCommand, ContextOp, ContextSelector, EntrySize, FmapContext, PrefetchContext,
    SwDescContext, TriggerMode,
};
use regs::descriptor::{Completion, CompletionStatus, H2cDescriptor, H2cStatus};
use regs::doorbell::{self, C2hPidx, CompletionCidx, H2cPidx};
use regs::{FuncId, Qid, qdma_csr as csr};

pub const F0: FuncId = FuncId(0);
const PAGE: u64 = 4096;

/// Host memory of 4 KiB pages, each mapped to one function. Unwritten bytes read 0.
#[derive(Default)]
pub struct Host {
    pages: BTreeMap<u64, (FuncId, Box<[u8; PAGE as usize]>)>,
    next_page: u64,
    /// Every write, when `logging`.
    pub log: Vec<(u64, Vec<u8>)>,
    pub logging: bool,
    /// Pages whose data are bad.
    poisoned: BTreeSet<u64>,
}

impl Host {
    pub fn map(&mut self, func: FuncId, addr: u64, len: usize) {
        for page in addr / PAGE..=(addr + len.max(1) as u64 - 1) / PAGE {
            self.pages.entry(page).or_insert_with(|| (func, Box::new([0; PAGE as usize])));
        }
    }

    /// From now on what is read of this page is poisoned.
    pub fn poison(&mut self, addr: u64) {
        self.poisoned.insert(addr / PAGE);
    }

    pub fn unmap(&mut self, addr: u64) {
        self.pages.remove(&(addr / PAGE));
    }

    /// Fresh zeroed pages with an unmapped one behind them.
    pub fn alloc(&mut self, func: FuncId, len: usize) -> u64 {
        let addr = 0x1000_0000 + self.next_page * PAGE;
        self.next_page += (len as u64).div_ceil(PAGE) + 1;
        self.map(func, addr, len);
        addr
    }

    pub fn bytes(&self, addr: u64, len: usize) -> Vec<u8> {
        let mut out = vec![0xEE; len];
        self.copy_out(addr, &mut out);
        out
    }

    /// Bytes in mapped pages; others are left as they are.
    fn copy_out(&self, addr: u64, out: &mut [u8]) {
        let mut done = 0;
        while done < out.len() {
            let at = addr + done as u64;
            let len = (out.len() - done).min((PAGE - at % PAGE) as usize);
            if let Some((_, page)) = self.pages.get(&(at / PAGE)) {
                out[done..done + len].copy_from_slice(&page[(at % PAGE) as usize..][..len]);
            }
            done += len;
        }
    }

    pub fn same_as(&self, other: &Host) -> bool {
        self.pages == other.pages
    }

    pub fn u64(&self, addr: u64) -> u64 {
        u64::from_le_bytes(self.bytes(addr, 8).try_into().unwrap())
    }

    /// The CPU's own store.
    pub fn put(&mut self, addr: u64, data: &[u8]) {
        let mut done = 0;
        while done < data.len() {
            let at = addr + done as u64;
            let len = (data.len() - done).min((PAGE - at % PAGE) as usize);
            if let Some((_, page)) = self.pages.get_mut(&(at / PAGE)) {
                page[(at % PAGE) as usize..][..len].copy_from_slice(&data[done..done + len]);
            }
            done += len;
        }
    }

    fn check(&self, func: FuncId, addr: u64, len_bytes: usize) -> Result<(), DmaFault> {
        let last = addr.checked_add(len_bytes.max(1) as u64 - 1);
        let mapped = last.is_some_and(|last| {
            (addr / PAGE..=last / PAGE).all(|page| self.pages.get(&page).is_some_and(|(owner, _)| *owner == func))
        });
        if mapped { Ok(()) } else { Err(DmaFault::Unmapped { func, addr, len_bytes }) }
    }
}

impl HostMemory for Host {
    fn read(&mut self, func: FuncId, addr: u64, buf: &mut [u8]) -> Result<(), DmaFault> {
        self.check(func, addr, buf.len())?;
        if (addr / PAGE..=(addr + buf.len().max(1) as u64 - 1) / PAGE).any(|page| self.poisoned.contains(&page)) {
            return Err(DmaFault::Poisoned { func, addr, len_bytes: buf.len() });
        }
        self.copy_out(addr, buf);
        Ok(())
    }

    fn write(&mut self, func: FuncId, addr: u64, data: &[u8]) -> Result<(), DmaFault> {
        self.check(func, addr, data.len())?;
        if self.logging {
            self.log.push((addr, data.to_vec()));
        }
        self.put(addr, data);
        Ok(())
    }
}

/// A QDMA, host memory, and the time.
pub struct Bench {
    pub qdma: Qdma,
    pub host: Host,
    pub now: Time,
    next_pkt_id: u16,
    /// Interrupts seen so far.
    pub interrupts: Vec<(FuncId, u16, Time)>,
}

impl Bench {
    /// Tables as onic.ko writes them: ring index 0 is 4096, 8 is 1024; timer 1 us, threshold 64; buffers 4096.
    pub fn new(config: QdmaConfig) -> Bench {
        let mut bench = Bench {
            qdma: Qdma::new(config),
            host: Host::default(),
            now: Time::ZERO,
            next_pkt_id: 1,
            interrupts: Vec::new(),
        };
        let rings = [4096, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 3072, 4096, 6144, 8192, 12288, 16384];
        let buffers = [4096, 256, 512, 1024, 2048, 3968, 4096, 4096, 4096, 4096, 4096, 4096, 4096, 8192, 9018, 16384];
        let timers = [10, 2, 4, 5, 8, 10, 15, 20, 25, 30, 50, 75, 100, 125, 150, 200];
        let counters = [64, 2, 4, 8, 16, 24, 32, 48, 80, 96, 112, 128, 144, 160, 176, 192];
        for i in 0..16 {
            bench.set_table(csr::GLBL_RING_SIZE, i, rings[i as usize]);
            bench.set_table(csr::C2H_BUFFER_SIZE, i, buffers[i as usize]);
            bench.set_table(csr::C2H_TIMER_COUNT, i, timers[i as usize]);
            bench.set_table(csr::C2H_COUNTER_THRESHOLD, i, counters[i as usize]);
        }
        bench.write(F0, csr::INTERRUPT_TIMER_TICK, 25);
        bench.write(F0, csr::GLBL_DSC_CFG, 0x30);
        bench.fmap(F0, 0, 64);
        bench
    }

    pub fn read(&mut self, func: FuncId, offset: u32) -> u32 {
        self.qdma.mmio_read(func, offset)
    }

    pub fn write(&mut self, func: FuncId, offset: u32, value: u32) {
        self.qdma.mmio_write(self.now, func, offset, value);
    }

    pub fn set_table(&mut self, table: u32, index: u32, value: u32) {
        self.write(F0, table + 4 * index, value);
    }

    /// All errors reported.
    pub fn unmask_errors(&mut self) {
        for mask in [
            csr::GLBL_DSC_ERROR_MASK,
            csr::GLBL_TRQ_ERROR_MASK,
            csr::C2H_ERROR_MASK,
            csr::H2C_ERROR_MASK,
            csr::GLBL_ERROR_MASK,
        ] {
            self.write(F0, mask, u32::MAX);
        }
    }

    /// Let time pass, an event at a time.
    pub fn run_ps(&mut self, ps: u64) {
        let until = self.now + ps;
        while let Some(at) = self.qdma.next_event().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.qdma.step(self.now, &mut self.host);
            self.take_interrupts();
        }
        self.now = until;
        self.qdma.step(self.now, &mut self.host);
        self.take_interrupts();
    }

    pub fn run_ns(&mut self, ns: u64) {
        self.run_ps(ns * 1000);
    }

    fn take_interrupts(&mut self) {
        while let Some(interrupt) = self.qdma.take_interrupt() {
            self.interrupts.push(interrupt);
        }
    }

    // ---- Context commands

    pub fn command(&mut self, selector: ContextSelector, op: ContextOp, qid: u16) {
        self.write(F0, csr::IND_CTXT_CMD, ContextCommand { selector, op, qid }.to_word());
    }

    pub fn write_context(&mut self, selector: ContextSelector, qid: u16, words: &[u32]) {
        for i in 0..8 {
            self.write(F0, csr::IND_CTXT_DATA + 4 * i, words.get(i as usize).copied().unwrap_or(0));
            self.write(F0, csr::IND_CTXT_MASK + 4 * i, u32::MAX);
        }
        self.command(selector, ContextOp::Write, qid);
    }

    pub fn read_context<const N: usize>(&mut self, selector: ContextSelector, qid: u16) -> [u32; N] {
        self.command(selector, ContextOp::Read, qid);
        std::array::from_fn(|i| self.read(F0, csr::IND_CTXT_DATA + 4 * i as u32))
    }

    pub fn fmap(&mut self, func: FuncId, qbase: u16, qmax: u16) {
        self.write_context(ContextSelector::Fmap, u16::from(func.0), &FmapContext { qbase, qmax }.to_words());
    }

    pub fn sw_c2h(&mut self, qid: Qid) -> SwDescContext {
        SwDescContext::from_words(&self.read_context(ContextSelector::SwDescC2h, qid.0))
    }

    pub fn sw_h2c(&mut self, qid: Qid) -> SwDescContext {
        SwDescContext::from_words(&self.read_context(ContextSelector::SwDescH2c, qid.0))
    }

    pub fn cmpl(&mut self, qid: Qid) -> CompletionContext {
        CompletionContext::from_words(&self.read_context(ContextSelector::Completion, qid.0))
    }

    // ---- The stream

    pub fn offer(&mut self, qid: Qid, len: usize) -> Offer {
        self.qdma.c2h_offer(self.now, qid, len as u16)
    }

    /// A frame and its completion, at once, whatever the QDMA thinks of it. Its packet id.
    pub fn force_frame(&mut self, qid: Qid, data: &[u8]) -> u16 {
        let mut buffer = self.qdma.recycle();
        buffer.extend_from_slice(data);
        self.qdma.c2h_frame(self.now, C2hFrame { data: buffer, qid });
        let pkt_id = self.next_pkt_id;
        self.next_pkt_id = self.next_pkt_id.wrapping_add(1);
        let completion = C2hCompletion { qid, len_bytes: data.len() as u16, pkt_id };
        self.qdma.c2h_completion(self.now, completion);
        pkt_id
    }

    /// Offer a frame until it is not held; false when the QDMA dropped it.
    pub fn receive(&mut self, qid: Qid, data: &[u8]) -> bool {
        for _ in 0..1000 {
            match self.offer(qid, data.len()) {
                Offer::Stall => self.run_ns(100),
                offer => {
                    self.force_frame(qid, data);
                    return offer == Offer::Ready;
                }
            }
        }
        panic!("the QDMA holds {qid} for ever");
    }

    pub fn take_tx(&mut self) -> Option<H2cFrame> {
        self.qdma.h2c_take(self.now)
    }

    /// `frames in = frames out + drops + inside`, each way.
    pub fn check_conservation(&self) {
        let counters = self.qdma.counters();
        let ways = [(&counters.c2h, self.qdma.c2h_inside()), (&counters.h2c, self.qdma.h2c_inside())];
        for (way, inside) in ways {
            assert_eq!(way.frames_in, way.frames_out + way.dropped_total() + inside as u64, "{way:?} inside {inside}");
        }
    }
}

/// What the RX queue's contexts say, where tests differ.
#[derive(Clone, Copy)]
pub struct RxOptions {
    pub ring_index: u8,
    pub buffer_index: u8,
    pub mode: TriggerMode,
    pub vector: u16,
    pub full_upd: bool,
    pub prefetch: bool,
    pub en_int: bool,
}

impl Default for RxOptions {
    fn default() -> Self {
        RxOptions {
            ring_index: 8,
            buffer_index: 8,
            mode: TriggerMode::UserTimerCount,
            vector: 0,
            full_upd: false,
            prefetch: true,
            en_int: true,
        }
    }
}

/// A driver's RX queue: descriptor ring, completion ring, buffers. One descriptor for one buffer slot.
pub struct RxQueue {
    pub func: FuncId,
    pub rel_qid: u16,
    pub qid: Qid,
    pub entries: u16,
    pub desc_ring: u64,
    pub cmpl_ring: u64,
    pub buffers: u64,
    pub buffer_bytes: u64,
    pub pidx: u16,
    /// Oldest descriptor in use.
    pub desc_cidx: u16,
    pub cidx: u16,
    pub color: bool,
    mode: TriggerMode,
}

impl RxQueue {
    /// Contexts in onic.ko's order (qdma.md 9.1), then no doorbell yet.
    pub fn start(bench: &mut Bench, func: FuncId, rel_qid: u16, qbase: u16, options: RxOptions) -> RxQueue {
        let qid = Qid(qbase + rel_qid);
        let entries = bench.read(F0, csr::GLBL_RING_SIZE + 4 * u32::from(options.ring_index)) as u16;
        let buffer_bytes = u64::from(bench.read(F0, csr::C2H_BUFFER_SIZE + 4 * u32::from(options.buffer_index)));
        let n = usize::from(entries);
        let queue = RxQueue {
            func,
            rel_qid,
            qid,
            entries,
            desc_ring: bench.host.alloc(func, 8 * n),
            cmpl_ring: bench.host.alloc(func, 8 * n),
            buffers: bench.host.alloc(func, n * buffer_bytes as usize),
            buffer_bytes,
            pidx: 0,
            desc_cidx: 0,
            cidx: 0,
            color: true,
            mode: options.mode,
        };
        for slot in 0..entries - 1 {
            let addr = queue.buffers + u64::from(slot) * buffer_bytes;
            bench.host.put(queue.desc_ring + 8 * u64::from(slot), &addr.to_le_bytes());
        }
        let sw = SwDescContext {
            func_id: u16::from(func.0),
            qen: true,
            fcrd_en: true,
            ring_size_index: options.ring_index,
            desc_size: EntrySize::Bytes8,
            wbk_en: true,
            ring_base: queue.desc_ring,
            ..SwDescContext::default()
        };
        let prefetch = PrefetchContext {
            buffer_size_index: options.buffer_index,
            pfch_en: options.prefetch,
            valid: true,
            ..PrefetchContext::default()
        };
        let cmpl = CompletionContext {
            en_stat_desc: true,
            en_int: options.en_int,
            trigger_mode: options.mode,
            func_id: u16::from(func.0),
            color: true,
            ring_size_index: options.ring_index,
            valid: true,
            full_upd: options.full_upd,
            vector: options.vector,
            ..CompletionContext::default()
        }
        .with_ring_base(queue.cmpl_ring);
        use ContextSelector as S;
        bench.command(S::SwDescC2h, ContextOp::Clear, qid.0);
        bench.write_context(S::SwDescC2h, qid.0, &sw.to_words());
        bench.command(S::HwDescC2h, ContextOp::Clear, qid.0);
        bench.command(S::CreditC2h, ContextOp::Clear, qid.0);
        bench.command(S::Prefetch, ContextOp::Clear, qid.0);
        bench.write_context(S::Prefetch, qid.0, &prefetch.to_words());
        bench.command(S::Completion, ContextOp::Clear, qid.0);
        bench.write_context(S::Completion, qid.0, &cmpl.to_words());
        queue
    }

    /// The same, all N-2 buffers posted and the completion queue armed.
    pub fn open(bench: &mut Bench, func: FuncId, rel_qid: u16, qbase: u16, options: RxOptions) -> RxQueue {
        let mut queue = RxQueue::start(bench, func, rel_qid, qbase, options);
        queue.post(bench, queue.entries - 2);
        queue.arm(bench);
        queue
    }

    pub fn stop(&self, bench: &mut Bench) {
        use ContextSelector as S;
        for selector in [S::SwDescC2h, S::HwDescC2h, S::CreditC2h, S::Prefetch, S::Completion] {
            bench.command(selector, ContextOp::Invalidate, self.qid.0);
        }
    }

    pub fn usable(&self) -> u16 {
        self.entries - 1
    }

    pub fn post(&mut self, bench: &mut Bench, count: u16) {
        self.pidx = (self.pidx + count) % self.usable();
        self.ring_pidx(bench, self.pidx);
    }

    pub fn ring_pidx(&self, bench: &mut Bench, pidx: u16) {
        let offset = doorbell::offset(doorbell::C2H_PIDX, self.rel_qid).unwrap();
        bench.write(self.func, offset, C2hPidx { pidx, irq_arm: false }.to_word());
    }

    pub fn arm(&self, bench: &mut Bench) {
        self.ring_cidx(bench, self.cidx, true);
    }

    pub fn ring_cidx(&self, bench: &mut Bench, cidx: u16, irq_arm: bool) {
        let value =
            CompletionCidx { cidx, trigger_mode: self.mode, en_stat_desc: true, irq_arm, ..CompletionCidx::default() };
        let offset = doorbell::offset(doorbell::COMPLETION_CIDX, self.rel_qid).unwrap();
        bench.write(self.func, offset, value.to_word());
    }

    pub fn status(&self, bench: &Bench) -> CompletionStatus {
        let raw = bench.host.u64(self.cmpl_ring + 8 * u64::from(self.entries - 1));
        assert_eq!(raw >> 37, 0, "slot N-1 holds a status word, not an entry: {raw:#x}");
        let status = CompletionStatus::from_u64(raw);
        assert!(status.pidx < self.usable(), "status pidx {} in a ring of {}", status.pidx, self.entries);
        status
    }

    pub fn entry(&self, bench: &Bench, slot: u16) -> Completion {
        Completion::from_u64(bench.host.u64(self.cmpl_ring + 8 * u64::from(slot)))
    }

    /// Read the entries that the status word covers: each one's color checked, its data fetched from the buffers that
    /// it used. Doorbells are the caller's affair.
    pub fn reap(&mut self, bench: &Bench) -> Vec<(Completion, Vec<u8>)> {
        let pidx = self.status(bench).pidx;
        self.reap_to(bench, pidx)
    }

    pub fn reap_to(&mut self, bench: &Bench, pidx: u16) -> Vec<(Completion, Vec<u8>)> {
        let mut out = Vec::new();
        while self.cidx != pidx {
            let entry = self.entry(bench, self.cidx);
            assert_eq!(entry.color, self.color, "color of slot {} of {}", self.cidx, self.entries);
            let mut data = Vec::new();
            loop {
                let left = usize::from(entry.len_bytes) - data.len();
                let buffer = self.buffers + u64::from(self.desc_cidx) * self.buffer_bytes;
                data.extend(bench.host.bytes(buffer, left.min(self.buffer_bytes as usize)));
                self.desc_cidx = (self.desc_cidx + 1) % self.usable();
                if data.len() >= usize::from(entry.len_bytes) {
                    break;
                }
            }
            out.push((entry, data));
            self.cidx = (self.cidx + 1) % self.usable();
            self.color ^= self.cidx == 0;
        }
        out
    }

    /// Reap, post as many buffers again, arm.
    pub fn poll(&mut self, bench: &mut Bench) -> Vec<(Completion, Vec<u8>)> {
        let before = self.desc_cidx;
        let out = self.reap(bench);
        let used = (self.desc_cidx + self.usable() - before) % self.usable();
        if used != 0 {
            self.post(bench, used);
        }
        self.arm(bench);
        out
    }
}

/// A driver's TX queue.
pub struct TxQueue {
    pub func: FuncId,
    pub rel_qid: u16,
    pub qid: Qid,
    pub entries: u16,
    pub ring: u64,
    pub data: u64,
    pub pidx: u16,
    pub cidx: u16,
}

/// Bytes of each TX slot's data area.
const TX_SLOT: u64 = 256;

impl TxQueue {
    /// Contexts in onic.ko's order. No doorbell.
    pub fn open(bench: &mut Bench, func: FuncId, rel_qid: u16, qbase: u16, ring_index: u8) -> TxQueue {
        TxQueue::open_with(bench, func, rel_qid, qbase, ring_index, |_| {})
    }

    pub fn open_with(
        bench: &mut Bench,
        func: FuncId,
        rel_qid: u16,
        qbase: u16,
        ring_index: u8,
        adjust: impl FnOnce(&mut SwDescContext),
    ) -> TxQueue {
        let qid = Qid(qbase + rel_qid);
        let entries = bench.read(F0, csr::GLBL_RING_SIZE + 4 * u32::from(ring_index)) as u16;
        let n = usize::from(entries);
        let ring = bench.host.alloc(func, 16 * n);
        let data = bench.host.alloc(func, TX_SLOT as usize * n);
        let mut sw = SwDescContext {
            func_id: u16::from(func.0),
            qen: true,
            wbi_chk: true,
            wbi_intvl_en: true,
            ring_size_index: ring_index,
            desc_size: EntrySize::Bytes16,
            wbk_en: true,
            ring_base: ring,
            ..SwDescContext::default()
        };
        adjust(&mut sw);
        bench.command(ContextSelector::SwDescH2c, ContextOp::Clear, qid.0);
        bench.write_context(ContextSelector::SwDescH2c, qid.0, &sw.to_words());
        bench.command(ContextSelector::HwDescH2c, ContextOp::Clear, qid.0);
        bench.command(ContextSelector::CreditH2c, ContextOp::Clear, qid.0);
        TxQueue { func, rel_qid, qid, entries, ring, data, pidx: 0, cidx: 0 }
    }

    pub fn usable(&self) -> u16 {
        self.entries - 1
    }

    pub fn outstanding(&self) -> u16 {
        (self.pidx + self.usable() - self.cidx) % self.usable()
    }

    /// Write the next descriptor; the doorbell comes later.
    pub fn fill(&mut self, bench: &mut Bench, data: &[u8]) {
        let addr = self.data + TX_SLOT * u64::from(self.pidx);
        bench.host.put(addr, data);
        let len = data.len() as u16;
        self.fill_raw(bench, H2cDescriptor { metadata: u32::from(len), len_bytes: len, flags: 0, address: addr });
    }

    pub fn fill_raw(&mut self, bench: &mut Bench, descriptor: H2cDescriptor) {
        bench.host.put(self.ring + 16 * u64::from(self.pidx), &descriptor.to_bytes());
        self.pidx = (self.pidx + 1) % self.usable();
    }

    pub fn kick(&self, bench: &mut Bench) {
        self.ring_pidx(bench, self.pidx);
    }

    pub fn ring_pidx(&self, bench: &mut Bench, pidx: u16) {
        let offset = doorbell::offset(doorbell::H2C_PIDX, self.rel_qid).unwrap();
        bench.write(self.func, offset, H2cPidx { pidx, irq_arm: true }.to_word());
    }

    pub fn status(&self, bench: &Bench) -> H2cStatus {
        let status = H2cStatus::from_u64(bench.host.u64(self.ring + 16 * u64::from(self.entries - 1)));
        assert!(status.cidx < self.usable(), "status cidx {} in a ring of {}", status.cidx, self.entries);
        status
    }

    pub fn reclaim(&mut self, bench: &Bench) {
        self.cidx = self.status(bench).cidx;
    }
}

/// A frame that carries its number.
pub fn numbered(number: u64, len: usize) -> Vec<u8> {
    let mut data = vec![number as u8; len];
    let n = len.min(8);
    data[..n].copy_from_slice(&number.to_le_bytes()[..n]);
    data
}

/// Vectors seen, without times.
pub fn vectors(bench: &Bench) -> Vec<(u8, u16)> {
    bench.interrupts.iter().map(|(func, vector, _)| (func.0, *vector)).collect()
}

/// The text of a shared vector file, or `None` with a line that says so.
pub fn shared_vector(name: &str) -> Option<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors").join(name);
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        println!("skipped: {} is not there", path.display());
    }
    text
}

/// Which of some numbers are there twice.
pub fn duplicates(numbers: impl Iterator<Item = u64>) -> BTreeSet<u64> {
    let mut seen = BTreeSet::new();
    numbers.filter(|n| !seen.insert(*n)).collect()
}
