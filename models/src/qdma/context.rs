//! The window to context memory: data, mask and command registers.
//!
//! A command latches data and mask when it is written and takes effect at once; its busy bit is then shown for as many
//! polls as the configuration says. A command that never ends has no effect.
//!
//! Source: qdma.md section 3.

use std::collections::BTreeMap;

use regs::context::{
    COMMAND_WORDS, CompletionContext, ContextCommand, ContextOp, ContextSelector, CreditContext, FmapContext,
    HwDescContext, PrefetchContext, SwDescContext,
};
use regs::qdma_csr as csr;
use regs::{FuncId, Qid};

use super::Qdma;
use super::config::BusyPolls;

type Words = [u32; COMMAND_WORDS];

/// The window's own state.
#[derive(Default)]
pub(super) struct Window {
    data: Words,
    mask: Words,
    command: u32,
    busy: Option<Busy>,
    /// Commands written since reset.
    commands: u64,
    /// Contexts that nothing in this model looks at: interrupt aggregation, PASID, host profile, function status.
    storage: BTreeMap<(u8, u16), Words>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Busy {
    /// So many polls more.
    Polls(u32),
    Forever,
}

impl Window {
    /// Read one of the window's registers, `None` for others. Polling the command register wears its busy bit off.
    pub(super) fn read(&mut self, offset: u32) -> Option<u32> {
        if let Some(word) = word_of(csr::IND_CTXT_DATA, offset) {
            return Some(self.data[word]);
        }
        if let Some(word) = word_of(csr::IND_CTXT_MASK, offset) {
            return Some(self.mask[word]);
        }
        (offset == csr::IND_CTXT_CMD).then(|| self.command | u32::from(self.poll()))
    }

    fn poll(&mut self) -> bool {
        match self.busy {
            Some(Busy::Polls(n)) if n > 1 => self.busy = Some(Busy::Polls(n - 1)),
            Some(Busy::Polls(_)) => self.busy = None,
            Some(Busy::Forever) => {}
            None => return false,
        }
        true
    }

    /// Write data or mask; false for other registers.
    pub(super) fn write(&mut self, offset: u32, value: u32) -> bool {
        if let Some(word) = word_of(csr::IND_CTXT_DATA, offset) {
            self.data[word] = value;
        } else if let Some(word) = word_of(csr::IND_CTXT_MASK, offset) {
            self.mask[word] = value;
        } else {
            return false;
        }
        true
    }

    /// Data where the mask is 1, else what was there.
    fn merge<const N: usize>(&self, old: [u32; N]) -> [u32; N] {
        const { assert!(N <= COMMAND_WORDS) };
        let mut words = old;
        for (i, word) in words.iter_mut().enumerate() {
            *word = *word & !self.mask[i] | self.data[i] & self.mask[i];
        }
        words
    }

    fn show<const N: usize>(&mut self, words: [u32; N]) {
        const { assert!(N <= COMMAND_WORDS) };
        self.data = [0; COMMAND_WORDS];
        self.data[..N].copy_from_slice(&words);
    }
}

/// Which of eight words from `base` on.
fn word_of(base: u32, offset: u32) -> Option<usize> {
    let word = (offset.checked_sub(base)? / 4) as usize;
    (word < COMMAND_WORDS).then_some(word)
}

impl Qdma {
    /// A write of the command register.
    pub(super) fn context_command(&mut self, func: FuncId, value: u32) {
        if matches!(self.window.busy, Some(Busy::Polls(_))) {
            self.refuse_command(func);
            return;
        }
        let number = self.window.commands;
        self.window.commands += 1;
        self.window.command = value & !1;
        let config = &self.core.config;
        let hangs = config.context_hang_at == Some(number) || config.context_busy == BusyPolls::Never;
        self.window.busy = match config.context_busy {
            _ if hangs => Some(Busy::Forever),
            BusyPolls::Count(n) if n > 0 => Some(Busy::Polls(n)),
            _ => None,
        };
        if hangs {
            return;
        }
        if self.execute(ContextCommand::from_word(value)) {
            self.core.counters.context_commands += 1;
        } else {
            self.refuse_command(func);
        }
    }

    fn refuse_command(&mut self, func: FuncId) {
        self.core.counters.context_commands_refused += 1;
        let interrupt = self.core.errors.raise_command(func);
        self.core.emit_error(interrupt);
    }

    /// Do it; false when there is no such context.
    fn execute(&mut self, ContextCommand { selector, op, qid: index }: ContextCommand) -> bool {
        use ContextSelector as S;
        let qid = Qid(index);
        match selector {
            S::Unknown(_) => return false,
            S::Fmap if usize::from(index) < self.fmap.len() => self.fmap_command(op, index),
            S::Fmap => return false,
            S::Timer if op == ContextOp::Invalidate && self.exists(qid) => self.cmpl.stop_timer(qid),
            S::Timer => return false,
            S::Interrupt | S::Pasid | S::HostProfile | S::FunctionStatus if self.exists(qid) => {
                self.storage_command(selector, op, index);
            }
            _ if !self.exists(qid) => return false,
            S::SwDescC2h | S::SwDescH2c => self.sw_command(selector == S::SwDescH2c, op, qid),
            S::HwDescC2h | S::HwDescH2c => self.hw_command(selector == S::HwDescH2c, op, qid),
            S::CreditC2h | S::CreditH2c => self.credit_command(selector == S::CreditH2c, op, qid),
            S::Completion => self.completion_command(op, qid),
            S::Prefetch => self.prefetch_command(op, qid),
            S::Interrupt | S::Pasid | S::HostProfile | S::FunctionStatus => return false,
        }
        true
    }

    fn exists(&self, qid: Qid) -> bool {
        qid.0 < self.core.config.num_queues
    }

    fn sw_command(&mut self, h2c: bool, op: ContextOp, qid: Qid) {
        let old = if h2c { *self.h2c.sw(qid) } else { *self.c2h.sw(qid) };
        let core = &mut self.core;
        match (op, h2c) {
            (ContextOp::Read, _) => self.window.show(old.to_words()),
            (ContextOp::Write, _) => {
                let new = SwDescContext::from_words(&self.window.merge(old.to_words()));
                if h2c { self.h2c.set_sw(core, qid, new) } else { self.c2h.set_sw(core, qid, new) }
            }
            (_, true) => self.h2c.disable(core, qid, op == ContextOp::Clear),
            (_, false) => self.c2h.disable(core, qid, op == ContextOp::Clear),
        }
    }

    fn hw_command(&mut self, h2c: bool, op: ContextOp, qid: Qid) {
        let old = if h2c { self.h2c.hw(qid) } else { self.c2h.hw(qid) };
        let new = match op {
            ContextOp::Read => return self.window.show(old.to_words()),
            ContextOp::Write => HwDescContext::from_words(&self.window.merge(old.to_words())),
            // It has no valid bit: to invalidate it is to clear it (assumed).
            ContextOp::Clear | ContextOp::Invalidate => HwDescContext::default(),
        };
        if h2c { self.h2c.set_hw(&mut self.core, qid, new) } else { self.c2h.set_hw(&mut self.core, qid, new) }
    }

    fn credit_command(&mut self, h2c: bool, op: ContextOp, qid: Qid) {
        let old = if h2c { *self.h2c.credit(qid) } else { *self.c2h.credit(qid) };
        let new = match op {
            ContextOp::Read => return self.window.show(old.to_words()),
            ContextOp::Write => CreditContext::from_words(&self.window.merge(old.to_words())),
            ContextOp::Clear | ContextOp::Invalidate => CreditContext::default(),
        };
        if h2c { self.h2c.set_credit(qid, new) } else { self.c2h.set_credit(&mut self.core, qid, new) }
    }

    fn prefetch_command(&mut self, op: ContextOp, qid: Qid) {
        let old = self.c2h.prefetch(qid);
        let new = match op {
            ContextOp::Read => return self.window.show(old.to_words()),
            ContextOp::Write => PrefetchContext::from_words(&self.window.merge(old.to_words())),
            ContextOp::Clear => PrefetchContext::default(),
            ContextOp::Invalidate => PrefetchContext { valid: false, ..old },
        };
        self.c2h.set_prefetch(&mut self.core, qid, new);
    }

    fn completion_command(&mut self, op: ContextOp, qid: Qid) {
        let old = *self.cmpl.context(qid);
        let new = match op {
            ContextOp::Read => return self.window.show(old.to_words()),
            ContextOp::Write => CompletionContext::from_words(&self.window.merge(old.to_words())),
            ContextOp::Clear => CompletionContext::default(),
            ContextOp::Invalidate => return self.cmpl.invalidate(qid),
        };
        self.cmpl.set_context(qid, new);
    }

    fn fmap_command(&mut self, op: ContextOp, func: u16) {
        let old = self.fmap[usize::from(func)];
        self.fmap[usize::from(func)] = match op {
            ContextOp::Read => return self.window.show(old.to_words()),
            ContextOp::Write => FmapContext::from_words(&self.window.merge(old.to_words())),
            ContextOp::Clear | ContextOp::Invalidate => FmapContext::default(),
        };
    }

    fn storage_command(&mut self, selector: ContextSelector, op: ContextOp, index: u16) {
        let key = (selector.code(), index);
        let old = self.window.storage.get(&key).copied().unwrap_or_default();
        match op {
            ContextOp::Read => self.window.show(old),
            ContextOp::Write => {
                self.core.host_profile_written |= key == (ContextSelector::HostProfile.code(), 0);
                let new = self.window.merge(old);
                self.window.storage.insert(key, new);
            }
            ContextOp::Clear | ContextOp::Invalidate => {
                self.window.storage.remove(&key);
            }
        }
    }
}
