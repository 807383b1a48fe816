//! A driver and a shell that do what a list of actions says, to two engines at once.
//!
//! What can't be done when its turn comes is left out. A *hazard* is done between two settlings, so that errors come one
//! at a time and logs have one first error; everything else runs into whatever is under way.

use std::collections::BTreeMap;

use regs::context::{
    CompletionContext, ContextCommand, ContextOp, ContextSelector as S, EntrySize, SwDescContext, TriggerMode,
};
use regs::descriptor::H2cDescriptor;
use regs::doorbell::{self, CompletionCidx};
use regs::{FuncId, Qid, qdma_csr as csr};
use traces::synth::Rng;

use super::action::{Action, Kind};
use super::bed::{Bed, F0};
use super::compare::{self, Ledger};
use super::engine::{Engine, Hold, Shape};
use super::memory::{PAGE, Standing};
use super::pair::Pair;
use super::queue::{
    DATA_BYTES, Oddity, POOL_MAX, RxQueue, RxSpec, Tables, TxQueue, TxSpec, advance, capacity, user_bits,
};
use super::shadow::{Buffer, Health, Lined, Rx, Shadow, Tx};

/// Queues of each direction.
const SLOTS: usize = 8;

/// Frames lined up behind one that waits, at most.
const BEHIND_MAX: usize = 8;

/// Frames of one action, at most.
const BURST: u64 = 24;

/// Host memory's longest latency and then some, ps. Settling waits longer than this and any timer.
const LATENCY_PS: u64 = 2_000_000;

/// A timer that ends long after a frame's completion was written, and the tests' longest one.
const LONG_TIMER_TICKS: u32 = 60_000;

/// An engine that goes on for so long, ps, goes on for ever.
const LIMIT_PS: u64 = 4_000_000_000;

/// Byte of the good page before memory that is missing or poisoned.
const GOOD: u8 = 0x5A;

/// What a run did.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Actions that took effect, by kind.
    pub actions: BTreeMap<Kind, u64>,
    /// Frames lined up and posted.
    pub packets: u64,
    /// Error bits seen on both, by register and bit.
    pub errors: BTreeMap<(&'static str, u32), u64>,
    /// Settlings.
    pub rounds: u64,
}

/// The run.
pub struct Driver {
    pair: Pair,
    shadow: Shadow,
    ledger: Ledger,
    tables: Tables,
    shape: Shape,
    /// Base and number of each function's queues.
    fmap: Vec<(u16, u16)>,
    /// Memory of each function that host memory refuses.
    missing: Vec<u64>,
    /// Memory of each function whose data are bad.
    poisoned: Vec<u64>,
    /// Number of the next C2H frame.
    next_pkt_id: u16,
    tally: Tally,
}

impl Driver {
    /// Two engines of one shape, just out of power-up, with tables and function maps programmed.
    pub fn new(reference: Box<dyn Engine>, tested: Box<dyn Engine>, shape: Shape) -> Driver {
        let mut pair = Pair::new(reference, tested);
        let mut rng = Rng::named(shape.seed, "differential tables");
        let tables = random_tables(&mut rng);
        tables.program(&mut pair);
        let mut regions = |standing| {
            (0..shape.functions)
                .map(|func| {
                    // A good page before them, for data that begin well.
                    let addr = pair.alloc(FuncId(func), 17 * PAGE as usize, GOOD);
                    pair.mark(addr + PAGE, 16 * PAGE as usize, standing);
                    addr + PAGE
                })
                .collect()
        };
        let (missing, poisoned) = (regions(Standing::Missing), regions(Standing::Poisoned));
        let mut driver = Driver {
            pair,
            shadow: Shadow::new(SLOTS),
            ledger: Ledger::default(),
            tables,
            shape,
            fmap: vec![(0, 0); usize::from(shape.functions)],
            missing,
            poisoned,
            next_pkt_id: 1,
            tally: Tally::default(),
        };
        for func in 0..shape.functions {
            driver.map_function(func, &mut rng);
        }
        driver
    }

    /// Do one action.
    ///
    /// # Errors
    /// The first difference, or the first thing that is wrong with either engine.
    pub fn apply(&mut self, action: Action) -> Result<(), String> {
        let mut rng = Rng::new(action.seed);
        if self.perform(action.kind, &mut rng).is_some() {
            *self.tally.actions.entry(action.kind).or_default() += 1;
        }
        self.verdict()
    }

    /// Let go of everything, settle, and look at all that is left.
    ///
    /// # Errors
    /// As [`Driver::apply`].
    pub fn finish(mut self) -> Result<Tally, String> {
        self.settle();
        if self.shadow.blocked_by().is_some() {
            self.feed(&mut Rng::new(0));
            self.settle();
        }
        self.inspect_all();
        self.verdict()?;
        self.tally.errors = self.ledger.errors_seen;
        Ok(self.tally)
    }

    fn verdict(&mut self) -> Result<(), String> {
        self.pair.take_wrong().map_or(Ok(()), Err)
    }

    /// Let both settle, and compare. Nothing to do if nothing was done since.
    fn settle(&mut self) {
        if !self.pair.take_touched() {
            return;
        }
        self.pair.hold(Hold::H2cStream, false);
        self.let_writes_go();
        let quiet = self.tables.longest_wait_ps() + LATENCY_PS;
        for bench in self.pair.each() {
            if !bench.settle(quiet, LIMIT_PS) {
                bench.wrong(format!("it goes on for {} us, and should have settled", LIMIT_PS / 1_000_000));
            }
        }
        self.pair.each().into_iter().for_each(|bench| bench.memory.forget_promises());
        let landed = self.shadow.absorb();
        compare::settled(&mut self.pair, &mut self.shadow, &landed, &mut self.ledger);
        self.inspect_dirty();
        self.shadow.next_round();
        self.tally.rounds += 1;
        self.pair.take_touched();
    }

    /// End what holds writes up: a context command waits for what was written before it, for as long as that is held up.
    fn let_writes_go(&mut self) {
        for place in [Hold::PayloadWrites, Hold::CompletionWrites] {
            self.pair.hold(place, false);
        }
    }

    /// Contexts of queues that moved in the round.
    fn inspect_dirty(&mut self) {
        for rx in self.shadow.rx.iter().flatten().filter(|rx| !rx.is_quiet() || rx.posted_in_round != 0) {
            compare::rx_contexts(&mut self.pair, rx);
        }
        for tx in self.shadow.tx.iter().flatten().filter(|tx| tx.bells != 0) {
            compare::tx_contexts(&mut self.pair, tx);
        }
    }

    fn inspect_all(&mut self) {
        for rx in self.shadow.rx.iter().flatten() {
            compare::rx_contexts(&mut self.pair, rx);
        }
        for tx in self.shadow.tx.iter().flatten() {
            compare::tx_contexts(&mut self.pair, tx);
        }
        for register in regs::registers().iter().filter(|register| register.bar == regs::Bar::Qdma) {
            for element in 0..register.count {
                self.compare_register(register.offset + element * register.stride);
            }
        }
    }

    /// A register that nothing else compares.
    fn compare_register(&mut self, offset: u32) {
        let elsewhere = (csr::IND_CTXT_DATA..=csr::IND_CTXT_CMD).contains(&offset)
            || offset == csr::GLBL_DSC_ERROR_LOG1
            || [csr::C2H_COMPLETIONS_IN, csr::C2H_COMPLETIONS_OUT, csr::C2H_COMPLETIONS_DROPPED, csr::C2H_STATUS_OUT]
                .contains(&offset);
        if offset < regs::qdma::DOORBELL && !elsewhere {
            self.pair.read(F0, offset);
        }
    }

    /// Do something that wants both engines settled before and after.
    fn hazard<T>(&mut self, deed: impl FnOnce(&mut Driver) -> T) -> T {
        self.settle();
        let result = deed(self);
        self.settle();
        result
    }

    /// `None` when it could not be done.
    fn perform(&mut self, kind: Kind, rng: &mut Rng) -> Option<()> {
        match kind {
            Kind::StartRx => self.start_rx(rng, Start::default()),
            Kind::StartTx => self.start_tx(rng, Start::default()),
            Kind::StopRx => self.stop_rx(rng),
            Kind::StopTx => self.stop_tx(rng),
            Kind::TearRx => self.tear_rx(rng),
            Kind::TearTx => self.tear_tx(rng),
            Kind::Remap => self.remap(rng),
            Kind::Tables => self.retable(rng),
            Kind::Post => self.post(rng),
            Kind::Receive => self.receive(rng),
            Kind::Send => self.send(rng),
            Kind::Poll => self.poll(rng),
            Kind::PollRunning => self.poll_running(rng),
            Kind::StopTimer => self.stop_timer(rng),
            Kind::Starve => self.starve(rng),
            Kind::Feed => self.feed(rng),
            Kind::Pause => {
                self.pair.run_ns(rng.between(1, 3000));
                Some(())
            }
            Kind::Settle => {
                self.settle();
                Some(())
            }
            Kind::HoldH2c => {
                self.pair.hold(Hold::H2cStream, true);
                Some(())
            }
            Kind::HoldPayload => {
                self.pair.hold(Hold::PayloadWrites, true);
                Some(())
            }
            Kind::HoldCompletion => {
                self.pair.hold(Hold::CompletionWrites, true);
                Some(())
            }
            Kind::Unprefetch => self.unprefetch(rng),
            Kind::BadPidxRx => self.bad_pidx_rx(rng),
            Kind::BadPidxTx => self.bad_pidx_tx(rng),
            Kind::BadCidx => self.bad_cidx(rng),
            Kind::Overflow => self.overflow(rng),
            Kind::MissingBuffer => self.missing_buffer(rng),
            Kind::MissingData => self.bad_data(rng, Standing::Missing),
            Kind::PoisonedData => self.bad_data(rng, Standing::Poisoned),
            Kind::MissingRingRx => self.bad_ring_rx(rng, Standing::Missing),
            Kind::MissingRingTx => self.bad_ring_tx(rng, Standing::Missing),
            Kind::PoisonedRingRx => self.bad_ring_rx(rng, Standing::Poisoned),
            Kind::PoisonedRingTx => self.bad_ring_tx(rng, Standing::Poisoned),
            Kind::ZeroLength => self.zero_length(rng),
            Kind::TooLong => self.too_long(rng),
            Kind::BadVector => self.bad_vector(rng),
            Kind::ReviveRx => self.revive_rx(rng),
            Kind::ReviveTx => self.revive_tx(rng),
            Kind::WrongContext => self.wrong_context(rng),
            Kind::WrongFunction => self.wrong_function(rng),
            Kind::TinyRing => self.tiny_ring(rng),
            Kind::FrameForNobody => self.frame_for_nobody(rng),
            Kind::FrameForFailed => self.frame_for_failed(rng),
            Kind::NoCompletion => self.no_completion(rng),
            Kind::WrongCompletion => self.wrong_completion(rng),
            Kind::UnknownRegister => self.unknown_register(rng),
            Kind::WrongQueue => self.wrong_queue(rng),
            Kind::IdleDoorbell => self.idle_doorbell(rng),
            Kind::BadCommand => self.bad_command(rng),
            Kind::StoreContext => self.store_context(rng),
            Kind::StoreRegister => self.store_register(rng),
            Kind::SetMasks => self.set_masks(rng),
            Kind::ClearErrors => self.clear_errors(rng),
            Kind::ArmErrors => self.arm_errors(rng),
            Kind::Inspect => {
                self.inspect(rng);
                Some(())
            }
        }
    }

    // ---- Slots

    fn slot(&self, rng: &mut Rng) -> usize {
        rng.below(SLOTS as u64) as usize
    }

    /// Function, relative and absolute queue of a slot.
    fn place(&self, slot: usize) -> (FuncId, u16, Qid) {
        let functions = usize::from(self.shape.functions);
        let (func, rel_qid) = (slot % functions, (slot / functions) as u16);
        (FuncId(func as u8), rel_qid, Qid(self.fmap[func].0 + rel_qid))
    }

    /// A receive queue that was started and is as wanted, any of them.
    fn find_rx(&self, rng: &mut Rng, wanted: impl Fn(&Rx) -> bool) -> Option<usize> {
        let fit = |slot: &usize| self.shadow.rx[*slot].as_ref().is_some_and(&wanted);
        pick(rng, (0..SLOTS).filter(fit).collect())
    }

    fn find_tx(&self, rng: &mut Rng, wanted: impl Fn(&Tx) -> bool) -> Option<usize> {
        let fit = |slot: &usize| self.shadow.tx[*slot].as_ref().is_some_and(&wanted);
        pick(rng, (0..SLOTS).filter(fit).collect())
    }

    fn rx(&mut self, slot: usize) -> Option<(&mut Rx, &mut Pair)> {
        Some((self.shadow.rx[slot].as_mut()?, &mut self.pair))
    }

    fn tx(&mut self, slot: usize) -> Option<(&mut Tx, &mut Pair)> {
        Some((self.shadow.tx[slot].as_mut()?, &mut self.pair))
    }

    // ---- Life of a queue

    fn start_rx(&mut self, rng: &mut Rng, start: Start) -> Option<()> {
        let slot = match start.slot {
            Some(slot) => slot,
            None => self.slot(rng),
        };
        if self.shadow.rx[slot].is_some() {
            self.stop_rx_slot(slot, rng)?;
        }
        self.let_writes_go();
        let spec = self.rx_spec(slot, rng, &start);
        let bad_vector = start.bad_vector;
        let mut rx = Rx::new(RxQueue::start(&mut self.pair, &self.tables, spec));
        rx.bad_vector = bad_vector;
        let whole = start.oddity == Oddity::None && !start.tiny;
        self.shadow.rx[slot] = Some(rx);
        if whole && !bad_vector {
            // As onic.ko: buffers first, then the doorbell that arms.
            let room = self.shadow.rx[slot].as_ref().map_or(0, Rx::room);
            self.post_some(slot, (rng.below(room as u64 + 1)) as usize);
            if !rng.one_in(4) {
                self.doorbell(slot, rng);
            }
        }
        Some(())
    }

    fn rx_spec(&mut self, slot: usize, rng: &mut Rng, start: &Start) -> RxSpec {
        let (func, rel_qid, qid) = self.place(slot);
        let table = self.vectors(func);
        let vector = if start.bad_vector { table + rng.below(8) as u16 } else { rng.below(table.into()) as u16 };
        let ring = |rng: &mut Rng| if start.tiny { TINY_INDEX } else { rng.below(u64::from(TINY_INDEX)) as u8 };
        RxSpec {
            func,
            rel_qid,
            qid,
            desc_index: ring(rng),
            buffer_index: rng.below(16) as u8,
            ring_offset: 64 * if rng.one_in(3) { rng.below(64) } else { 0 },
            base_bits: if rng.one_in(4) { rng.below(8) } else { 0 },
            cmpl_offset: if rng.one_in(4) { 4 * rng.below(16) } else { 0 },
            pool: POOL_MAX,
            buffer_offset: if rng.one_in(2) { 0 } else { rng.below(256) },
            prefetch: !rng.one_in(4),
            fcrd_en: !rng.one_in(8),
            oddity: start.oddity,
            cmpl: CompletionContext {
                en_stat_desc: !rng.one_in(8),
                en_int: start.bad_vector || !rng.one_in(5),
                trigger_mode: TriggerMode::from_code(*rng.pick(&[1, 1, 2, 2, 4, 4, 5, 5, 5, 0, 3, 6, 7])),
                counter_index: rng.below(16) as u8,
                timer_index: rng.below(16) as u8,
                ring_size_index: if start.tiny { rng.below(16) as u8 } else { ring(rng) },
                entry_size: *rng.pick(&[
                    EntrySize::Bytes8,
                    EntrySize::Bytes8,
                    EntrySize::Bytes16,
                    EntrySize::Bytes32,
                    EntrySize::Bytes64,
                ]),
                full_upd: rng.one_in(4),
                vector,
                int_aggr: !start.bad_vector && rng.one_in(16),
                dir_c2h: rng.one_in(2),
                ..CompletionContext::default()
            },
        }
    }

    /// Entries of a function's MSI-X table.
    fn vectors(&self, func: FuncId) -> u16 {
        if func == F0 { 10 } else { 9 }
    }

    fn start_tx(&mut self, rng: &mut Rng, start: Start) -> Option<()> {
        let slot = match start.slot {
            Some(slot) => slot,
            None => self.slot(rng),
        };
        if self.shadow.tx[slot].is_some() {
            self.stop_tx_slot(slot);
        }
        let (func, rel_qid, qid) = self.place(slot);
        let table = self.vectors(func);
        let mut spec = TxSpec::onic(func, rel_qid, 0);
        spec.qid = qid;
        spec.ring_offset = 64 * if rng.one_in(3) { rng.below(64) } else { 0 };
        spec.base_bits = if rng.one_in(4) { rng.below(16) } else { 0 };
        spec.oddity = start.oddity;
        spec.sw.ring_size_index = if start.tiny { TINY_INDEX } else { rng.below(TINY_INDEX.into()) as u8 };
        spec.sw.wbi_chk = start.bad_vector || !rng.one_in(5);
        spec.sw.wbi_intvl_en = !rng.one_in(4);
        spec.sw.wbk_en = !rng.one_in(8);
        spec.sw.irq_en = start.bad_vector || rng.one_in(2);
        spec.sw.vector = if start.bad_vector { table + rng.below(8) as u16 } else { rng.below(table.into()) as u16 };
        spec.sw.int_aggr = !start.bad_vector && rng.one_in(16);
        self.let_writes_go();
        let mut tx = Tx::new(TxQueue::start(&mut self.pair, &self.tables, spec));
        tx.bad_vector = start.bad_vector;
        self.shadow.tx[slot] = Some(tx);
        Some(())
    }

    /// Stop a queue that is quiet, and take its memory back.
    fn stop_rx_slot(&mut self, slot: usize, rng: &mut Rng) -> Option<()> {
        self.settle();
        // Frames behind another queue's meet what runs when their turn comes; keep them apart from the next life.
        if self.shadow.blocked_by().is_some_and(|blocker| blocker != slot) {
            return None;
        }
        // Frames that wait for the queue are lost. Their completions meet a completion queue that is valid, or one that is
        // not: an error.
        let completions_first = rng.one_in(2);
        if completions_first {
            let (rx, pair) = self.rx(slot)?;
            rx.queue.stop_completions(pair);
            rx.cmpl = Health::Failed;
            self.settle();
        }
        let rx = self.shadow.rx[slot].take()?;
        rx.queue.stop_descriptors(&mut self.pair);
        self.settle();
        if !completions_first {
            rx.queue.stop_completions(&mut self.pair);
        }
        rx.queue.free(&mut self.pair);
        self.settle();
        Some(())
    }

    fn stop_rx(&mut self, rng: &mut Rng) -> Option<()> {
        let slot = self.find_rx(rng, |_| true)?;
        self.stop_rx_slot(slot, rng)
    }

    fn stop_tx_slot(&mut self, slot: usize) -> Option<()> {
        self.settle();
        let tx = self.shadow.tx[slot].take()?;
        tx.queue.stop(&mut self.pair);
        tx.queue.free(&mut self.pair);
        Some(())
    }

    fn stop_tx(&mut self, rng: &mut Rng) -> Option<()> {
        let slot = self.find_tx(rng, |_| true)?;
        self.stop_tx_slot(slot)
    }

    /// Stop a receive queue in mid-flight: from then on nothing may touch its memory.
    fn tear_rx(&mut self, rng: &mut Rng) -> Option<()> {
        let slot = self.find_rx(rng, |rx| rx.runs() && !rx.bad_vector)?;
        if !self.shadow.stream.iter().any(|lined| lined.slot == Some(slot)) {
            self.line_up_some(slot, rng)?;
        }
        self.tear_down_c2h(slot)
    }

    fn tear_down_c2h(&mut self, slot: usize) -> Option<()> {
        // Late completions meet an invalid queue or not: keep that out of the error tree.
        self.pair.write(F0, csr::ERROR_INTERRUPT, 0);
        if self.waits_elsewhere(slot) {
            return None;
        }
        let rx = self.shadow.rx[slot].take()?;
        self.let_writes_go();
        rx.queue.stop(&mut self.pair);
        rx.queue.free(&mut self.pair);
        self.ledger.torn_c2h = true;
        // A frame that was torn may have come as far as the good page before those missing, or not.
        let shared = self.missing[usize::from(rx.queue.spec.func.0)] - PAGE;
        self.ledger.torn_pages.insert(shared / PAGE);
        self.ledger.torn_vectors.insert((rx.queue.spec.func, rx.queue.spec.cmpl.vector));
        self.settle();
        self.pair.put(shared, &[GOOD; PAGE as usize]);
        self.pair.write(F0, csr::C2H_ERROR_STATUS, csr::c2h_error_status::CMPT_INVALID_QUEUE.mask());
        self.pair.write(F0, csr::GLBL_ERROR_STATUS, csr::glbl_error_status::C2H_ST.mask());
        self.settle();
        Some(())
    }

    /// The stream waits, or may, for another queue's descriptors.
    fn waits_elsewhere(&self, slot: usize) -> bool {
        let short = |lined: &Lined| {
            lined.slot.is_some_and(|other| {
                other != slot && self.shadow.rx[other].as_ref().is_some_and(|rx| rx.wanted > rx.posted.len())
            })
        };
        self.shadow.stream.iter().any(short)
    }

    fn tear_tx(&mut self, rng: &mut Rng) -> Option<()> {
        let slot = self.find_tx(rng, |tx| tx.health == Health::Runs && !tx.bad_vector)?;
        if self.shadow.tx[slot].as_ref().is_some_and(|tx| tx.expected.is_empty()) {
            self.send_some(slot, rng)?;
        }
        let tx = self.shadow.tx[slot].take()?;
        self.let_writes_go();
        tx.queue.stop(&mut self.pair);
        tx.queue.free(&mut self.pair);
        let spec = &tx.queue.spec;
        self.ledger.torn_vectors.insert((spec.func, spec.sw.vector));
        self.ledger.torn_h2c.insert(spec.qid, tx.expected.into_iter().map(|(data, ..)| data).collect());
        self.settle();
        Some(())
    }

    /// Give a function other queues, when none of its own runs.
    fn remap(&mut self, rng: &mut Rng) -> Option<()> {
        let func = rng.below(self.shape.functions.into()) as u8;
        let mine = |slot: &usize| self.place(*slot).0 == FuncId(func);
        let slots: Vec<usize> = (0..SLOTS).filter(mine).collect();
        self.settle();
        if self.shadow.blocked_by().is_some() {
            return None;
        }
        for slot in slots {
            if self.shadow.rx[slot].is_some() {
                self.stop_rx_slot(slot, rng)?;
            }
            if self.shadow.tx[slot].is_some() {
                self.stop_tx_slot(slot)?;
            }
        }
        if rng.one_in(2) {
            let op = *rng.pick(&[ContextOp::Clear, ContextOp::Invalidate]);
            self.pair.command(S::Fmap, op, func.into());
        }
        self.map_function(func, rng);
        Some(())
    }

    /// A function's queues lie in a region of its own; its count may reach beyond the last queue.
    fn map_function(&mut self, func: u8, rng: &mut Rng) {
        let region = self.shape.queues / u16::from(self.shape.functions);
        let used = SLOTS.div_ceil(usize::from(self.shape.functions)) as u16;
        let base = u16::from(func) * region + rng.below(u64::from(region - used + 1)) as u16;
        let count = used + *rng.pick(&[0, 1, 3, 60, 600]);
        self.pair.fmap(FuncId(func), base, count);
        self.fmap[usize::from(func)] = (base, count);
    }

    /// Change tables that no queue uses at present: those of the card, when all queues are stopped.
    fn retable(&mut self, rng: &mut Rng) -> Option<()> {
        self.settle();
        if self.shadow.blocked_by().is_some() {
            return None;
        }
        for slot in 0..SLOTS {
            if self.shadow.rx[slot].is_some() {
                self.stop_rx_slot(slot, rng)?;
            }
            if self.shadow.tx[slot].is_some() {
                self.stop_tx_slot(slot)?;
            }
        }
        self.tables = random_tables(rng);
        self.tables.program(&mut self.pair);
        Some(())
    }

    // ---- Traffic

    fn post(&mut self, rng: &mut Rng) -> Option<()> {
        let slot = self.find_rx(rng, |rx| rx.runs() && rx.room() != 0)?;
        let room = self.shadow.rx[slot].as_ref()?.room();
        let count = if rng.one_in(2) { room } else { rng.between(1, room as u64) as usize };
        self.post_some(slot, count);
        Some(())
    }

    /// Post so many buffers of the pool. Buffers that frames of this round fill must not be handed out again before they
    /// were looked at.
    fn post_some(&mut self, slot: usize, count: usize) {
        let pool = self.shadow.rx[slot].as_ref().map_or(0, |rx| rx.queue.pool.len());
        let fresh = self.shadow.rx[slot].as_ref().map_or(0, |rx| rx.posted_in_round + rx.posted.len());
        if fresh + count > pool {
            self.settle();
        }
        let Some((rx, pair)) = self.rx(slot) else { return };
        for _ in 0..count.min(rx.room()) {
            let addr = rx.queue.next_buffer();
            rx.queue.fill(pair, addr);
            rx.posted.push_back(Buffer { addr, missing: false });
            rx.posted_in_round += 1;
        }
        rx.queue.ring_pidx(pair, rx.queue.pidx, false);
    }

    fn receive(&mut self, rng: &mut Rng) -> Option<()> {
        let slot = self.find_rx(rng, |rx| rx.runs() && rx.free_buffers() != 0 && rx.free_entries() != 0)?;
        self.line_up_some(slot, rng)
    }

    /// Frames for a queue that has buffers and completions for all of them.
    fn line_up_some(&mut self, slot: usize, rng: &mut Rng) -> Option<()> {
        if self.shadow.rx[slot].as_ref()?.bad_vector {
            return self.hazard(|driver| driver.line_up_safely(slot, rng));
        }
        self.line_up_safely(slot, rng)
    }

    fn line_up_safely(&mut self, slot: usize, rng: &mut Rng) -> Option<()> {
        if self.shadow.blocked_by().is_some() && self.shadow.stream.len() > BEHIND_MAX {
            return None;
        }
        let burst = burst(rng);
        let mut done = None;
        for _ in 0..burst {
            let rx = self.shadow.rx[slot].as_ref()?;
            let most = rx.free_buffers().min(super::shadow::BUFFERS_MAX) * usize::from(rx.queue.buffer_bytes);
            if most == 0 || rx.free_entries() == 0 {
                break;
            }
            let len = if rng.one_in(24) { 0 } else { frame_len(rng, rx.queue.buffer_bytes).clamp(1, most) };
            self.line_up(slot, rng.bytes(len), Some(slot));
            done = Some(());
        }
        done
    }

    /// One frame, whatever becomes of it.
    fn line_up(&mut self, slot: usize, data: Vec<u8>, completion: Option<usize>) {
        let qid = self.place(slot).2;
        let completion_qid = completion.map(|slot| self.place(slot).2);
        let pkt_id = self.next_pkt_id;
        self.next_pkt_id = self.next_pkt_id.wrapping_add(1);
        self.pair.receive(qid, &data, completion_qid);
        self.tally.packets += 1;
        if completion == Some(slot) {
            self.promise(slot, &data);
        }
        let known = self.shadow.rx[slot].is_some().then_some(slot);
        let completion =
            completion.zip(completion_qid).map(|(slot, qid)| (slot, user_bits(qid, data.len() as u16, pkt_id)));
        if let Some(rx) = &mut self.shadow.rx[slot] {
            rx.wanted += rx.queue.buffers_of(data.len());
            rx.frames += 1;
        }
        if let Some(rx) = completion.and_then(|(slot, _)| self.shadow.rx[slot].as_mut()) {
            rx.due += 1;
            if Some(slot) != completion.map(|(slot, _)| slot) {
                rx.frames += 1;
            }
        }
        self.shadow.stream.push_back(Lined { slot: known, data, completion });
    }

    /// What must lie in which buffers when the frame's completion is written, if all goes well.
    fn promise(&mut self, slot: usize, data: &[u8]) {
        let Some(rx) = self.shadow.rx[slot].as_ref().filter(|rx| rx.runs() && rx.queue.buffer_bytes != 0) else {
            return;
        };
        let (queue, needed) = (&rx.queue, rx.queue.buffers_of(data.len()));
        if rx.posted.len() < rx.wanted + needed || rx.free_entries() == 0 {
            return;
        }
        let buffers = rx.posted.iter().skip(rx.wanted).zip(data.chunks(usize::from(queue.buffer_bytes)));
        let parts: Vec<(u64, Vec<u8>)> =
            buffers.filter(|(buffer, _)| !buffer.missing).map(|(buffer, part)| (buffer.addr, part.to_vec())).collect();
        let entry = queue.cmpl_addr(advance(queue.cidx, (rx.unread.len() + rx.due) as u16, queue.cmpl_entries));
        self.pair.each().into_iter().for_each(|bench| bench.memory.promise(entry, parts.clone()));
    }

    fn send(&mut self, rng: &mut Rng) -> Option<()> {
        let slot = self.find_tx(rng, |tx| tx.health == Health::Runs && capacity(tx.queue.entries) != 0)?;
        if self.shadow.tx[slot].as_ref()?.bad_vector {
            return self.hazard(|driver| driver.send_some(slot, rng));
        }
        self.send_some(slot, rng)
    }

    fn send_some(&mut self, slot: usize, rng: &mut Rng) -> Option<()> {
        let tx = self.shadow.tx[slot].as_ref()?;
        if tx.room() == 0 || tx.bytes > DATA_BYTES / 4 {
            self.settle();
        }
        let (tx, pair) = self.tx(slot)?;
        let burst = burst(rng).min(tx.room() as u64);
        let irq_arm = !rng.one_in(4);
        let each = rng.one_in(2);
        let mut sent = 0;
        for _ in 0..burst {
            if tx.bytes > DATA_BYTES / 4 {
                break;
            }
            let len = if rng.one_in(16) { long_len(rng) } else { frame_len(rng, 2048).max(1) };
            let data = rng.bytes(len);
            let address = tx.queue.store(pair, &data);
            // Upstream's shell wants the length here; the engine only carries it.
            let metadata = if rng.one_in(4) { rng.next_u64() as u32 } else { len as u32 };
            tx.queue
                .fill(pair, H2cDescriptor { metadata, len_bytes: len as u16, flags: rng.below(65536) as u16, address });
            tx.posted += 1;
            tx.bytes += len as u64 + 4096;
            tx.expected.push_back((data, metadata, false));
            sent += 1;
            if each {
                ring_tx(tx, pair, irq_arm);
            }
        }
        if !each {
            ring_tx(tx, pair, irq_arm);
        }
        self.tally.packets += sent;
        (sent != 0).then_some(())
    }

    /// Read some completions and tell the card.
    fn poll(&mut self, rng: &mut Rng) -> Option<()> {
        let slot = self.find_rx(rng, |rx| rx.cmpl == Health::Runs && capacity(rx.queue.cmpl_entries) != 0)?;
        let rx = self.shadow.rx[slot].as_ref()?;
        if rx.bad_vector {
            return self.hazard(|driver| driver.poll_slot(slot, rng));
        }
        if !rx.is_quiet() {
            self.settle();
        }
        self.poll_slot(slot, rng)
    }

    fn poll_slot(&mut self, slot: usize, rng: &mut Rng) -> Option<()> {
        let (rx, _) = self.rx(slot)?;
        let count = match rng.below(3) {
            0 => rng.below(rx.unread.len() as u64 + 1) as usize,
            _ => rx.unread.len(),
        };
        for _ in 0..count {
            rx.read_one();
        }
        self.doorbell(slot, rng);
        Some(())
    }

    /// The CIDX doorbell at the driver's index. No frame of the queue is under way.
    fn doorbell(&mut self, slot: usize, rng: &mut Rng) {
        let Some((rx, pair)) = self.rx(slot) else { return };
        let spec = &mut rx.queue.spec.cmpl;
        // Without full_upd the card must not look at these but CIDX and arm.
        let value = CompletionCidx {
            cidx: rx.queue.cidx,
            counter_index: rng.below(16) as u8,
            timer_index: rng.below(16) as u8,
            trigger_mode: TriggerMode::from_code(rng.below(6) as u8),
            en_stat_desc: !rng.one_in(4),
            irq_arm: !rng.one_in(4),
        };
        if spec.full_upd {
            (spec.trigger_mode, spec.timer_index) = (value.trigger_mode, value.timer_index);
            spec.en_stat_desc = value.en_stat_desc;
        }
        rx.armed = value.irq_arm;
        (rx.rung, rx.monitored) = (true, true);
        rx.queue.ring_cidx(pair, value);
        // It has landed before a frame that comes later, so that nothing races: see PollRunning for that. It waits for
        // completions before it, and those for whoever holds them up.
        pair.hold(Hold::CompletionWrites, false);
        rx.queue.read_cidx(pair);
    }

    /// A CIDX doorbell while frames come: it gives back what was read when both had last settled, which may be nothing.
    fn poll_running(&mut self, rng: &mut Rng) -> Option<()> {
        let wanted = |rx: &Rx| rx.runs() && !rx.bad_vector && rx.frames != 0 && !rx.queue.spec.cmpl.full_upd;
        let slot = self.find_rx(rng, wanted)?;
        let (rx, pair) = self.rx(slot)?;
        let known = rx.unread.len();
        for _ in 0..rng.below(known as u64 + 1) {
            rx.read_one();
        }
        let value = CompletionCidx { cidx: rx.queue.cidx, irq_arm: rx.armed, ..CompletionCidx::default() };
        (rx.rung, rx.raced, rx.monitored) = (true, true, true);
        rx.queue.ring_cidx(pair, value);
        Some(())
    }

    /// A frame whose completion starts a timer, which is stopped long before it ends: nothing announces the completion but
    /// the next one, or a doorbell.
    fn stop_timer(&mut self, rng: &mut Rng) -> Option<()> {
        self.settle();
        if self.shadow.blocked_by().is_some() {
            return None;
        }
        let timed = [TriggerMode::UserTimer, TriggerMode::UserTimerCount];
        let slot = self.find_rx(rng, |rx| {
            let fits = rx.free_buffers() != 0 && rx.free_entries() != 0 && rx.queue.buffer_bytes != 0;
            rx.runs() && !rx.bad_vector && fits && timed.contains(&rx.queue.spec.cmpl.trigger_mode)
        })?;
        let index = self.shadow.rx[slot].as_ref()?.queue.spec.cmpl.timer_index;
        self.pair.set_table(csr::C2H_TIMER_COUNT, index, LONG_TIMER_TICKS);
        self.line_up(slot, rng.bytes(1), Some(slot));
        self.pair.run_ns(LATENCY_PS / 1000 * 3);
        let qid = self.place(slot).2;
        self.pair.command(S::Timer, ContextOp::Invalidate, qid.0);
        self.rx(slot)?.0.monitored = false;
        self.pair.set_table(csr::C2H_TIMER_COUNT, index, self.tables.timer[usize::from(index)].into());
        self.settle();
        Some(())
    }

    /// A frame for which there are too few descriptors: it and all behind it wait.
    fn starve(&mut self, rng: &mut Rng) -> Option<()> {
        let wanted = |rx: &Rx| {
            let needed = rx.free_buffers() + 1;
            rx.runs()
                && !rx.bad_vector
                && rx.free_entries() != 0
                && rx.queue.buffer_bytes != 0
                && needed <= super::shadow::BUFFERS_MAX.min(capacity(rx.queue.entries).into())
                && needed * usize::from(rx.queue.buffer_bytes) <= 16 * 1024
        };
        self.settle();
        if self.shadow.blocked_by().is_some() {
            return None;
        }
        let slot = self.find_rx(rng, wanted)?;
        let rx = self.shadow.rx[slot].as_ref()?;
        let len = rx.free_buffers() * usize::from(rx.queue.buffer_bytes) + 1;
        self.line_up(slot, rng.bytes(len), Some(slot));
        Some(())
    }

    /// End the wait: post what is missing, or stop the queue.
    fn feed(&mut self, rng: &mut Rng) -> Option<()> {
        self.settle();
        let slot = self.shadow.blocked_by()?;
        if rng.one_in(3) {
            return self.stop_rx_slot(slot, rng);
        }
        let room = self.shadow.rx[slot].as_ref()?.room();
        let lacks = self.shadow.rx[slot].as_ref().map_or(0, |rx| rx.wanted.saturating_sub(rx.posted.len()));
        if lacks > room {
            return self.stop_rx_slot(slot, rng);
        }
        self.post_some(slot, room);
        Some(())
    }

    /// A receive queue's prefetch context is invalid for a while. Its ring must not be read, whatever the doorbell says; a
    /// frame that comes is lost. Then all goes on as if nothing had been.
    fn unprefetch(&mut self, rng: &mut Rng) -> Option<()> {
        self.settle();
        if self.shadow.blocked_by().is_some() {
            return None;
        }
        let slot = self.find_rx(rng, |rx| rx.runs() && !rx.bad_vector)?;
        let (rx, pair) = self.rx(slot)?;
        rx.queue.unprefetch(pair);
        rx.desc = Health::Off;
        let room = rx.room();
        if room != 0 {
            self.post_some(slot, rng.between(1, room as u64) as usize);
        }
        self.line_up(slot, rng.bytes(1), Some(slot));
        self.settle();
        let (rx, pair) = self.rx(slot)?;
        rx.queue.prefetch_again(pair);
        rx.desc = Health::Runs;
        Some(())
    }

    // ---- Errors of a queue

    fn bad_pidx_rx(&mut self, rng: &mut Rng) -> Option<()> {
        self.settle();
        if self.shadow.blocked_by().is_some() {
            return None;
        }
        let slot = self.find_rx(rng, |_| true)?;
        self.hazard(|driver| {
            let (rx, pair) = driver.rx(slot)?;
            let entries = rx.queue.entries;
            // Outside the ring; or so far that more would be outstanding than it holds.
            let pidx = match rx.posted.len() {
                outstanding if outstanding != 0 && rng.one_in(2) => {
                    let most = capacity(entries) as usize;
                    let step = rng.between((most - outstanding + 1) as u64, most as u64);
                    advance(rx.queue.pidx, step as u16, entries)
                }
                _ => beyond(entries, rng),
            };
            rx.desc = Health::Failed;
            rx.posted.clear();
            rx.posted_in_round += 1;
            rx.queue.ring_pidx(pair, pidx, false);
            Some(())
        })
    }

    fn bad_pidx_tx(&mut self, rng: &mut Rng) -> Option<()> {
        // Of a queue that has failed, too: it does not fail a second time.
        let slot = self.find_tx(rng, |_| true)?;
        self.hazard(|driver| {
            let (tx, pair) = driver.tx(slot)?;
            let pidx = beyond(tx.queue.entries, rng);
            tx.health = Health::Failed;
            tx.bells += 1;
            tx.queue.ring_pidx(pair, pidx, true);
            Some(())
        })
    }

    fn bad_cidx(&mut self, rng: &mut Rng) -> Option<()> {
        let slot = self.find_rx(rng, |rx| rx.runs() && !rx.bad_vector)?;
        self.hazard(|driver| {
            let (rx, pair) = driver.rx(slot)?;
            let entries = rx.queue.cmpl_entries;
            let unread = rx.unread.len() as u16;
            let cidx = if rng.one_in(2) && unread < capacity(entries) {
                advance(rx.queue.cidx, rng.between(u64::from(unread) + 1, u64::from(capacity(entries))) as u16, entries)
            } else {
                beyond(entries, rng)
            };
            rx.cmpl = Health::Failed;
            rx.rung = true;
            rx.queue.ring_cidx(pair, CompletionCidx { cidx, irq_arm: rng.one_in(2), ..CompletionCidx::default() });
            Some(())
        })
    }

    /// More frames than the completion ring takes.
    fn overflow(&mut self, rng: &mut Rng) -> Option<()> {
        self.settle();
        if self.shadow.blocked_by().is_some() {
            return None;
        }
        let wanted =
            |rx: &Rx| rx.runs() && !rx.bad_vector && rx.posted.len() > rx.free_entries() && rx.queue.buffer_bytes != 0;
        let slot = self.find_rx(rng, wanted)?;
        let free = self.shadow.rx[slot].as_ref()?.free_entries();
        // The last one that fits may notify before the ring is found full, or after: let it be first.
        for number in 0..=free {
            if number == free {
                self.settle();
            }
            let len = rng.between(1, 64).min(self.shadow.rx[slot].as_ref()?.queue.buffer_bytes.into()) as usize;
            self.line_up(slot, rng.bytes(len), Some(slot));
        }
        self.settle();
        Some(())
    }

    /// A buffer that host memory refuses: the frame's bytes are lost, and nobody is told.
    fn missing_buffer(&mut self, rng: &mut Rng) -> Option<()> {
        let slot = self.find_rx(rng, |rx| rx.runs() && rx.room() != 0)?;
        let func = self.place(slot).0;
        let missing = self.missing[usize::from(func.0)];
        let (rx, pair) = self.rx(slot)?;
        // All of it, or what comes after a good page's end.
        let bytes = u64::from(rx.queue.buffer_bytes);
        let addr = if rng.one_in(2) { missing + rng.below(4096) } else { missing - rng.below(bytes.min(4096)) };
        rx.queue.fill(pair, addr);
        rx.posted.push_back(Buffer { addr, missing: true });
        rx.posted_in_round += 1;
        rx.queue.ring_pidx(pair, rx.queue.pidx, false);
        Some(())
    }

    /// A frame whose data can't be read.
    fn bad_data(&mut self, rng: &mut Rng, standing: Standing) -> Option<()> {
        let slot = self.find_tx(rng, |tx| tx.health == Health::Runs && capacity(tx.queue.entries) != 0)?;
        let func = usize::from(self.place(slot).0.0);
        let region = if standing == Standing::Missing { self.missing[func] } else { self.poisoned[func] };
        self.hazard(|driver| {
            let (tx, pair) = driver.tx(slot)?;
            let len = frame_len(rng, 2048).clamp(1, 9600);
            let address =
                if rng.one_in(2) { region + rng.below(4096) } else { region - rng.below(len.min(4096) as u64) };
            let metadata = rng.next_u64() as u32;
            tx.queue.fill(pair, H2cDescriptor { metadata, len_bytes: len as u16, flags: 0, address });
            tx.expected.push_back((vec![0; len], metadata, true));
            tx.health = Health::Failed;
            ring_tx(tx, pair, true);
            Some(())
        })
    }

    /// A descriptor that can't be read. Only the next one, and only when it is the only one: how far others were read is
    /// the engine's affair.
    fn bad_ring_rx(&mut self, rng: &mut Rng, standing: Standing) -> Option<()> {
        self.settle();
        if self.shadow.blocked_by().is_some() {
            return None;
        }
        let slot = match self.find_rx(rng, |rx| rx.runs() && !rx.bad_vector && rx.posted.is_empty() && rx.room() != 0) {
            Some(slot) => slot,
            None => {
                let slot = self.find_rx(rng, |rx| rx.runs() && !rx.bad_vector && rx.room() != 0)?;
                self.use_up(slot, rng)?;
                slot
            }
        };
        self.hazard(|driver| {
            let prefetch =
                driver.shadow.rx[slot].as_ref().is_some_and(|rx| rx.queue.spec.prefetch || !rx.queue.spec.fcrd_en);
            let (rx, pair) = driver.rx(slot)?;
            rx.queue.spoil_next(pair, standing);
            let addr = rx.queue.next_buffer();
            rx.queue.fill(pair, addr);
            rx.queue.ring_pidx(pair, rx.queue.pidx, false);
            rx.posted_in_round += 1;
            rx.desc = Health::Failed;
            if !prefetch {
                // Nothing is read before a frame wants it.
                driver.line_up(slot, rng.bytes(60), Some(slot));
            }
            Some(())
        })
    }

    /// Frames until no descriptor is left.
    fn use_up(&mut self, slot: usize, rng: &mut Rng) -> Option<()> {
        let rx = self.shadow.rx[slot].as_ref()?;
        if rx.posted.len() > rx.free_entries() || rx.queue.buffer_bytes == 0 {
            return None;
        }
        for _ in 0..self.shadow.rx[slot].as_ref()?.posted.len() {
            self.line_up(slot, rng.bytes(1), Some(slot));
        }
        self.settle();
        Some(())
    }

    fn bad_ring_tx(&mut self, rng: &mut Rng, standing: Standing) -> Option<()> {
        let slot =
            self.find_tx(rng, |tx| tx.health == Health::Runs && !tx.bad_vector && capacity(tx.queue.entries) != 0)?;
        self.hazard(|driver| {
            let (tx, pair) = driver.tx(slot)?;
            tx.queue.spoil_next(pair, standing);
            tx.queue.send(pair, &rng.bytes(60));
            tx.health = Health::Failed;
            ring_tx(tx, pair, true);
            Some(())
        })
    }

    fn zero_length(&mut self, rng: &mut Rng) -> Option<()> {
        let slot =
            self.find_tx(rng, |tx| tx.health == Health::Runs && !tx.bad_vector && capacity(tx.queue.entries) != 0)?;
        self.hazard(|driver| {
            let (tx, pair) = driver.tx(slot)?;
            let address = tx.queue.data;
            tx.queue.fill(pair, H2cDescriptor { metadata: 0, len_bytes: 0, flags: 0, address });
            tx.health = Health::Failed;
            ring_tx(tx, pair, true);
            Some(())
        })
    }

    /// A frame of more buffers than one may take.
    fn too_long(&mut self, rng: &mut Rng) -> Option<()> {
        self.settle();
        if self.shadow.blocked_by().is_some() {
            return None;
        }
        let wanted =
            |rx: &Rx| rx.desc == Health::Runs && usize::from(rx.queue.buffer_bytes) * super::shadow::BUFFERS_MAX < 9600;
        let slot = self.find_rx(rng, wanted)?;
        self.hazard(|driver| {
            let bytes = usize::from(driver.shadow.rx[slot].as_ref()?.queue.buffer_bytes);
            let len = bytes * super::shadow::BUFFERS_MAX + 1 + rng.below(64) as usize;
            driver.line_up(slot, rng.bytes(len), Some(slot));
            Some(())
        })
    }

    /// A queue whose vector is beyond the function's table.
    fn bad_vector(&mut self, rng: &mut Rng) -> Option<()> {
        let start = Start { bad_vector: true, ..Start::default() };
        if rng.one_in(2) {
            let slot = self.slot(rng);
            self.start_rx(rng, Start { slot: Some(slot), ..start })?;
            self.post_some(slot, 4);
            // Arm it, then a frame: the notification has nowhere to go.
            self.hazard(|driver| driver.doorbell(slot, rng));
            self.line_up_some(slot, rng)
        } else {
            let slot = self.slot(rng);
            self.start_tx(rng, Start { slot: Some(slot), ..start })?;
            self.hazard(|driver| driver.send_some(slot, rng))
        }
    }

    /// A failed queue's error is written away, with descriptors posted. It must not look at its ring before a doorbell.
    fn revive_rx(&mut self, rng: &mut Rng) -> Option<()> {
        self.settle();
        if self.shadow.blocked_by().is_some() {
            return None;
        }
        let wanted = |rx: &Rx| {
            rx.desc == Health::Failed && rx.queue.spec.oddity == Oddity::None && capacity(rx.queue.entries) != 0
        };
        let slot = self.find_rx(rng, wanted)?;
        let (rx, pair) = self.rx(slot)?;
        let ahead = rng.below(u64::from(rx.queue.entries) - 1) as u16;
        rx.queue.clear_error(pair, ahead);
        self.settle();
        let (rx, pair) = self.rx(slot)?;
        rx.queue.begin_again(pair);
        rx.posted.clear();
        rx.desc = Health::Runs;
        let room = self.shadow.rx[slot].as_ref()?.room();
        self.post_some(slot, rng.between(1, room as u64) as usize);
        Some(())
    }

    fn revive_tx(&mut self, rng: &mut Rng) -> Option<()> {
        self.settle();
        let wanted = |tx: &Tx| {
            tx.health == Health::Failed && tx.queue.spec.oddity == Oddity::None && capacity(tx.queue.entries) != 0
        };
        let slot = self.find_tx(rng, wanted)?;
        let (tx, pair) = self.tx(slot)?;
        let ahead = rng.below(u64::from(tx.queue.entries) - 1) as u16;
        tx.queue.clear_error(pair, ahead);
        self.settle();
        let (tx, pair) = self.tx(slot)?;
        tx.queue.begin_again(pair);
        tx.health = Health::Runs;
        Some(())
    }

    /// A context that asks for what this QDMA can't do: seen when its first descriptor is wanted.
    fn wrong_context(&mut self, rng: &mut Rng) -> Option<()> {
        let oddity = *rng.pick(&[Oddity::DescriptorSize, Oddity::Bypass, Oddity::MemoryMapped]);
        self.start_odd(rng, oddity)
    }

    /// A queue that belongs to a function that does not exist: its descriptors can't be read, and nobody hears of it by a
    /// status word or an interrupt. The low byte of its number is a function of the card.
    fn wrong_function(&mut self, rng: &mut Rng) -> Option<()> {
        let number = 256 * rng.between(1, 15) as u16 + rng.below(self.shape.functions.into()) as u16;
        self.start_odd(rng, Oddity::Function(number))
    }

    /// A queue whose first descriptor is its last, as its context is odd.
    fn start_odd(&mut self, rng: &mut Rng, oddity: Oddity) -> Option<()> {
        let slot = self.slot(rng);
        let start = Start { slot: Some(slot), oddity, ..Start::default() };
        if rng.one_in(2) {
            self.start_tx(rng, start)?;
            self.hazard(|driver| {
                let (tx, pair) = driver.tx(slot)?;
                tx.health = Health::Failed;
                tx.queue.send(pair, &rng.bytes(60));
                ring_tx(tx, pair, true);
                Some(())
            })
        } else {
            self.start_rx(rng, start)?;
            self.hazard(|driver| {
                let (rx, pair) = driver.rx(slot)?;
                rx.desc = Health::Failed;
                let prefetch = rx.queue.spec.prefetch || !rx.queue.spec.fcrd_en;
                let addr = rx.queue.next_buffer();
                rx.queue.fill(pair, addr);
                rx.queue.ring_pidx(pair, rx.queue.pidx, false);
                rx.posted_in_round += 1;
                if !prefetch {
                    driver.line_up(slot, rng.bytes(60), Some(slot));
                }
                Some(())
            })
        }
    }

    /// Rings that hold nothing: any doorbell is wrong, any completion one too many.
    fn tiny_ring(&mut self, rng: &mut Rng) -> Option<()> {
        let slot = self.slot(rng);
        let start = Start { slot: Some(slot), tiny: true, ..Start::default() };
        if rng.one_in(2) {
            self.start_tx(rng, start)?;
            self.hazard(|driver| {
                let (tx, pair) = driver.tx(slot)?;
                tx.health = Health::Failed;
                tx.bells += 1;
                tx.queue.ring_pidx(pair, rng.below(3) as u16, true);
                Some(())
            })
        } else {
            self.start_rx(rng, start)?;
            self.hazard(|driver| {
                let (rx, pair) = driver.rx(slot)?;
                rx.desc = Health::Failed;
                rx.posted_in_round += 1;
                rx.queue.ring_pidx(pair, rng.below(3) as u16, false);
                Some(())
            })
        }
    }

    // ---- Frames that don't fit

    /// A frame whose queue does not run, or does not exist.
    fn frame_for_nobody(&mut self, rng: &mut Rng) -> Option<()> {
        if self.shadow.blocked_by().is_some() && self.shadow.stream.len() > BEHIND_MAX {
            return None;
        }
        let len = frame_len(rng, 2048).clamp(1, 9600);
        let idle = pick(rng, (0..SLOTS).filter(|slot| self.shadow.rx[*slot].is_none()).collect());
        match idle {
            // Behind a frame that waits it could meet a queue started meanwhile.
            Some(slot) if self.shadow.stream.is_empty() => {
                self.hazard(|driver| driver.line_up(slot, rng.bytes(len), Some(slot)));
            }
            _ => {
                // Behind a frame that waits it is an error in the round in which that one goes on.
                let qid = Qid(rng.between(u64::from(self.shape.queues), 2047) as u16);
                self.pair.receive(qid, &rng.bytes(len), Some(qid));
                self.next_pkt_id = self.next_pkt_id.wrapping_add(1);
                self.tally.packets += 1;
                self.shadow.stream.push_back(Lined { slot: None, data: Vec::new(), completion: None });
            }
        }
        Some(())
    }

    /// A frame for a queue in error.
    fn frame_for_failed(&mut self, rng: &mut Rng) -> Option<()> {
        self.settle();
        if self.shadow.blocked_by().is_some() {
            return None;
        }
        let wanted =
            |rx: &Rx| !rx.runs() && (rx.desc == Health::Failed || !rx.posted.is_empty() && rx.queue.buffer_bytes != 0);
        let slot = self.find_rx(rng, wanted)?;
        self.hazard(|driver| driver.line_up(slot, rng.bytes(1), Some(slot)));
        Some(())
    }

    /// A frame that never gets its completion. The next one's shows that it is gone.
    fn no_completion(&mut self, rng: &mut Rng) -> Option<()> {
        let slot = self.find_rx(rng, |rx| rx.runs() && rx.free_buffers() != 0 && rx.queue.buffer_bytes != 0)?;
        if self.shadow.blocked_by().is_some() {
            return None;
        }
        self.line_up(slot, rng.bytes(1), None);
        Some(())
    }

    /// A completion for another queue than its frame's.
    fn wrong_completion(&mut self, rng: &mut Rng) -> Option<()> {
        self.settle();
        if self.shadow.blocked_by().is_some() {
            return None;
        }
        let slot = self.find_rx(rng, |rx| rx.runs() && rx.free_buffers() != 0 && rx.queue.buffer_bytes != 0)?;
        let other = self.find_rx(rng, |rx| rx.runs() && !rx.bad_vector && rx.free_entries() != 0)?;
        if slot == other {
            return None;
        }
        self.hazard(|driver| driver.line_up(slot, rng.bytes(1), Some(other)));
        Some(())
    }

    // ---- Registers

    fn unknown_register(&mut self, rng: &mut Rng) -> Option<()> {
        let func = FuncId(rng.below(self.shape.functions.into()) as u8);
        let offset = match rng.below(4) {
            // Nothing within CSR space reads 0 and says nothing.
            0 => 0x2600 + 4 * rng.below(0x100) as u32,
            // Beyond the doorbells neither.
            1 => 0x2_0000 + 4 * rng.below(0x4000) as u32,
            _ => 0x3000 + 4 * rng.below((0x1_8000 - 0x3000) / 4) as u32,
        };
        self.hazard(|driver| {
            if rng.one_in(2) {
                driver.pair.read(func, offset);
            } else {
                driver.pair.write(func, offset, rng.next_u64() as u32);
            }
        });
        Some(())
    }

    /// A doorbell of a queue that the function does not have.
    fn wrong_queue(&mut self, rng: &mut Rng) -> Option<()> {
        let func = rng.below(self.shape.functions.into()) as usize;
        let (base, count) = self.fmap[func];
        let first = count.min(self.shape.queues - base);
        let rel_qid = rng.between(u64::from(first), (u64::from(first) + 40).min(2047)) as u16;
        let register = *rng.pick(&[doorbell::H2C_PIDX, doorbell::C2H_PIDX, doorbell::COMPLETION_CIDX]);
        self.hazard(|driver| driver.pair.ring(FuncId(func as u8), register, rel_qid, rng.next_u64() as u32));
        Some(())
    }

    /// A doorbell that means nothing: of a queue that does not run, or of an interrupt ring.
    fn idle_doorbell(&mut self, rng: &mut Rng) -> Option<()> {
        let slot = self.slot(rng);
        let (func, rel_qid, _) = self.place(slot);
        let value = rng.next_u64() as u32;
        let mut registers = vec![doorbell::INTERRUPT_CIDX];
        if self.shadow.rx[slot].is_none() {
            registers.extend([doorbell::C2H_PIDX, doorbell::COMPLETION_CIDX]);
        }
        if self.shadow.tx[slot].is_none() {
            registers.push(doorbell::H2C_PIDX);
        }
        let register = *rng.pick(&registers);
        self.hazard(|driver| driver.pair.ring(func, register, rel_qid, value));
        Some(())
    }

    /// A command to nothing.
    fn bad_command(&mut self, rng: &mut Rng) -> Option<()> {
        let func = FuncId(rng.below(self.shape.functions.into()) as u8);
        let any = |rng: &mut Rng| ContextOp::from_code(rng.below(4) as u8);
        let beyond = |rng: &mut Rng, from: u16, to: u16| rng.between(from.into(), to.into()) as u16;
        let queues = self.shape.queues;
        let command = match rng.below(4) {
            0 => ContextCommand { selector: S::Unknown(*rng.pick(&[14, 15])), op: any(rng), qid: rng.below(8) as u16 },
            1 => ContextCommand { selector: S::Fmap, op: any(rng), qid: beyond(rng, 256, 1000) },
            2 if rng.one_in(2) => ContextCommand { selector: S::Timer, op: any(rng), qid: beyond(rng, queues, 8191) },
            2 => ContextCommand { selector: S::Timer, op: ContextOp::from_code(rng.below(3) as u8), qid: 0 },
            _ => {
                let selector = S::from_code(rng.below(8) as u8);
                ContextCommand { selector, op: any(rng), qid: beyond(rng, queues, 8191) }
            }
        };
        self.hazard(|driver| {
            driver.pair.write(func, csr::IND_CTXT_CMD, command.to_word());
            driver.wait_idle();
        });
        Some(())
    }

    fn wait_idle(&mut self) {
        for _ in 0..1000 {
            if self.pair.read(F0, csr::IND_CTXT_CMD) & 1 == 0 {
                return;
            }
        }
        self.pair.wrong("a refused context command is busy for ever".into());
    }

    /// What is written to the context of a queue that does not run is read back, under any mask.
    fn store_context(&mut self, rng: &mut Rng) -> Option<()> {
        let slot = pick(rng, (0..SLOTS).filter(|slot| self.is_idle(*slot)).collect())?;
        let qid = self.place(slot).2.0;
        let mut words: [u32; 8] = std::array::from_fn(|_| rng.next_u64() as u32);
        let mut mask: [u32; 8] = std::array::from_fn(|_| *rng.pick(&[u32::MAX, u32::MAX, 0, 0x00FF_FF00]));
        let selector = *rng.pick(&[
            S::SwDescC2h,
            S::SwDescH2c,
            S::HwDescC2h,
            S::HwDescH2c,
            S::CreditC2h,
            S::CreditH2c,
            S::Completion,
            S::Prefetch,
            S::Interrupt,
            S::Pasid,
            S::HostProfile,
            S::FunctionStatus,
        ]);
        // It must stay at rest, and bits that the card keeps itself are left alone.
        let kept = match selector {
            S::SwDescC2h | S::SwDescH2c => SwDescContext { qen: true, err: 3, ..SwDescContext::default() }.to_words(),
            S::HwDescC2h | S::HwDescH2c => [0, u32::MAX, 0, 0, 0, 0, 0, 0],
            S::Completion => {
                compare::widen(CompletionContext { valid: true, ..CompletionContext::default() }.to_words())
            }
            S::Prefetch => [0xF43F_FC00, 0x3FFF, 0, 0, 0, 0, 0, 0],
            _ => [0; 8],
        };
        for at in 0..8 {
            words[at] &= !kept[at];
            mask[at] |= kept[at];
        }
        self.let_writes_go();
        self.pair.command(selector, ContextOp::Clear, qid);
        self.pair.write_masked(selector, qid, &words, &mask);
        let defined = match selector {
            S::SwDescC2h | S::SwDescH2c => SwDescContext::from_words(&[u32::MAX; 8]).to_words(),
            // What the engine shows itself is 0 at rest, or its own affair.
            S::HwDescC2h | S::HwDescH2c => [u32::MAX, 0x200, 0, 0, 0, 0, 0, 0],
            S::Completion => compare::widen(CompletionContext::from_words(&[u32::MAX; 6]).to_words()),
            S::Prefetch => compare::widen(regs::context::PrefetchContext::from_words(&[u32::MAX; 2]).to_words()),
            _ => [u32::MAX; 8],
        };
        compare::context(&mut self.pair, selector, qid, defined);
        let op = *rng.pick(&[ContextOp::Clear, ContextOp::Invalidate]);
        self.pair.command(selector, op, qid);
        compare::context(&mut self.pair, selector, qid, defined);
        self.pair.command(selector, ContextOp::Clear, qid);
        Some(())
    }

    fn is_idle(&self, slot: usize) -> bool {
        self.shadow.rx[slot].is_none() && self.shadow.tx[slot].is_none() && self.shadow.stream.is_empty()
    }

    /// Registers that only store.
    fn store_register(&mut self, rng: &mut Rng) -> Option<()> {
        let plain = [csr::GLBL_SCRATCH, csr::H2C_REQ_THROTTLE, csr::C2H_PREFETCH_CFG, csr::GLBL_INTERRUPT_CFG];
        let offset = *rng.pick(&plain);
        self.pair.write(F0, offset, rng.next_u64() as u32);
        let func = FuncId(rng.below(self.shape.functions.into()) as u8);
        self.pair.read(func, offset);
        self.pair.read(func, csr::FUNCTION_RETURN);
        Some(())
    }

    /// Which errors are reported.
    fn set_masks(&mut self, rng: &mut Rng) -> Option<()> {
        let offset = *rng.pick(&[
            csr::GLBL_DSC_ERROR_MASK,
            csr::GLBL_TRQ_ERROR_MASK,
            csr::C2H_ERROR_MASK,
            csr::H2C_ERROR_MASK,
            csr::GLBL_ERROR_MASK,
        ]);
        let value = if rng.one_in(3) { rng.next_u64() as u32 } else { u32::MAX };
        self.hazard(|driver| {
            driver.pair.write(F0, offset, value);
            driver.pair.read(F0, offset);
        });
        Some(())
    }

    /// Write status registers back, all of them or one, in either order.
    fn clear_errors(&mut self, rng: &mut Rng) -> Option<()> {
        let mut leaves =
            vec![csr::GLBL_DSC_ERROR_STATUS, csr::GLBL_TRQ_ERROR_STATUS, csr::C2H_ERROR_STATUS, csr::H2C_ERROR_STATUS];
        let at = if rng.one_in(4) { 0 } else { leaves.len() };
        leaves.insert(at, csr::GLBL_ERROR_STATUS);
        if rng.one_in(3) {
            leaves = vec![*rng.pick(&leaves)];
        }
        let bits = if rng.one_in(3) { rng.next_u64() as u32 } else { u32::MAX };
        self.hazard(|driver| leaves.iter().for_each(|leaf| driver.pair.write(F0, *leaf, bits)));
        Some(())
    }

    /// Arm the error interrupt.
    fn arm_errors(&mut self, rng: &mut Rng) -> Option<()> {
        use csr::error_interrupt as reg;
        let func = rng.below(self.shape.functions.into()) as u32;
        let value = reg::FUNC.set(0, func);
        let value = reg::VECTOR.set(value, rng.below(12) as u32);
        let value = reg::ARM.set(value, 1);
        self.hazard(|driver| driver.pair.write(F0, csr::ERROR_INTERRUPT, value));
        Some(())
    }

    /// Look at contexts and doorbells in mid-run.
    fn inspect(&mut self, rng: &mut Rng) {
        self.settle();
        let slot = self.slot(rng);
        let (func, rel_qid, _) = self.place(slot);
        if let Some(offset) = doorbell::offset(doorbell::COMPLETION_CIDX, rel_qid)
            && self.shadow.rx[slot].is_some()
        {
            self.pair.read(func, offset);
        }
        if let Some(rx) = &self.shadow.rx[slot] {
            compare::rx_contexts(&mut self.pair, rx);
        }
        if let Some(tx) = &self.shadow.tx[slot] {
            compare::tx_contexts(&mut self.pair, tx);
        }
    }
}

/// What is special about a queue to start.
#[derive(Clone, Copy, Default)]
struct Start {
    /// Which slot, or any.
    slot: Option<usize>,
    /// Its vector is beyond the table.
    bad_vector: bool,
    /// Its descriptor ring is too small to hold anything.
    tiny: bool,
    /// Its software context asks for what can't be done.
    oddity: Oddity,
}

/// Ring size index of rings too small to hold anything.
const TINY_INDEX: u8 = 15;

/// Tables with rings of all sorts; the last entry holds nothing.
fn random_tables(rng: &mut Rng) -> Tables {
    let rings = [3, 4, 5, 6, 7, 8, 9, 16, 17, 33, 63, 64, 65, 100, 127, 257, 600, 1025];
    let buffers = [64, 100, 128, 200, 256, 300, 512, 777, 1000, 1024, 2048, 3000, 4096, 4097, 9018, 16384];
    let mut tables = Tables::ONIC;
    tables.ring = std::array::from_fn(|_| *rng.pick(&rings));
    tables.ring[usize::from(TINY_INDEX)] = rng.below(3) as u16;
    tables.buffer = std::array::from_fn(|_| *rng.pick(&buffers));
    tables.timer = std::array::from_fn(|_| rng.below(20) as u16);
    tables.counter = std::array::from_fn(|_| *rng.pick(&[0, 1, 2, 3, 4, 8, 16, 64]));
    // 0 is what the register holds after a reset.
    tables.tick = if rng.one_in(6) { 0 } else { rng.between(1, 8) as u32 };
    tables.dsc_cfg = rng.below(8) as u32 | 0x30;
    tables.prefetch = *rng.pick(&[0, 0, 1, 2, 3, 8, 63]);
    // How long entries may wait for their neighbours: tick count and value, at most 1000 cycles.
    tables.coalesce = if rng.one_in(3) { 0 } else { (rng.below(16) << 2 | rng.below(64) << 14) as u32 };
    tables.format = *rng.pick(&[(1, 2), (1, 2), (1, 2), (3, 5), (15, 12), (27, 31), (60, 0), (200, 2)]);
    tables
}

/// Lengths worth trying: around beats and buffers, and any.
fn frame_len(rng: &mut Rng, buffer_bytes: u16) -> usize {
    let around = |rng: &mut Rng, at: u64| at.saturating_sub(1) + rng.below(3);
    let len = match rng.below(8) {
        0 => rng.between(1, 64),
        1 => {
            let beats = rng.between(1, 24);
            around(rng, 64 * beats)
        }
        2 => {
            let buffers = rng.between(1, 4);
            around(rng, u64::from(buffer_bytes) * buffers)
        }
        3 => around(rng, 4096),
        4 => rng.between(1, 9600),
        _ => rng.between(60, 1518),
    };
    len.min(16 * 1024) as usize
}

/// Lengths of H2C frames beyond what a card sends: a descriptor's length has 16 bits.
fn long_len(rng: &mut Rng) -> usize {
    match rng.below(3) {
        0 => rng.between(65_535 - 130, 65_535) as usize,
        _ => rng.between(16 * 1024, 65_535) as usize,
    }
}

/// Frames of one action: few, or many.
fn burst(rng: &mut Rng) -> u64 {
    let most = if rng.one_in(3) { BURST } else { 3 };
    rng.between(1, most)
}

/// An index outside a ring.
fn beyond(entries: u16, rng: &mut Rng) -> u16 {
    rng.between(u64::from(entries.saturating_sub(1)), 0xFFFF) as u16
}

/// Ring a transmit queue's doorbell at the driver's index.
fn ring_tx(tx: &mut Tx, pair: &mut Pair, irq_arm: bool) {
    tx.mixed |= tx.bells != 0 && tx.armed != irq_arm;
    tx.armed = irq_arm;
    tx.bells += 1;
    tx.queue.ring_pidx(pair, tx.queue.pidx, irq_arm);
}

fn pick(rng: &mut Rng, slots: Vec<usize>) -> Option<usize> {
    if slots.is_empty() { None } else { Some(*rng.pick(&slots)) }
}
