//! Queue contexts: the card's side of a ring, reached through one command register and eight data words.
//!
//! The vendor driver's order is kept: data and mask words in turns, then the command, then the busy bit until it falls
//! (`spec/qdma.md` section 3). Queues are absolute here; only doorbells count from the function's first.

use regs::context::{
    COMMAND_WORDS, CompletionContext, ContextCommand, ContextOp as Op, ContextSelector as Selector, FmapContext,
    PrefetchContext, SwDescContext,
};
use regs::qdma_csr::{self, ind_ctxt_cmd};
use regs::{Bar, FuncId, Qid};

use crate::platform::{Mmio, MmioError, Platform};
use crate::wait::Backoff;

/// A context command that did not end well.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ContextError {
    /// The busy bit never fell. Whether the command was carried out is not known.
    #[error("context command {command:#010x} is still busy after {waited_ns} ns")]
    Busy {
        /// The command word.
        command: u32,
        /// How long it was waited for.
        waited_ns: u64,
    },
    /// A register access.
    #[error(transparent)]
    Mmio(#[from] MmioError),
}

/// The indirect command port of one function.
pub(crate) struct Contexts<'a, P> {
    platform: &'a P,
    limit_ns: u64,
}

impl<'a, P: Platform> Contexts<'a, P> {
    pub(crate) fn new(platform: &'a P, limit_ns: u64) -> Self {
        Self { platform, limit_ns }
    }

    /// The function's range of queues, cleared first.
    pub(crate) fn write_fmap(&self, func: FuncId, base: u16, count: u16) -> Result<(), ContextError> {
        self.clear_fmap(func)?;
        let map = FmapContext { qbase: base, qmax: count };
        self.write(Selector::Fmap, u16::from(func.0), &map.to_words())
    }

    /// The function has no queues any more: its doorbells are refused.
    pub(crate) fn clear_fmap(&self, func: FuncId) -> Result<(), ContextError> {
        self.command(Selector::Fmap, Op::Clear, u16::from(func.0))
    }

    /// Enable a TX queue.
    pub(crate) fn start_tx(&self, qid: Qid, context: &SwDescContext) -> Result<(), ContextError> {
        self.renew(Selector::SwDescH2c, qid, &context.to_words())?;
        self.command(Selector::HwDescH2c, Op::Clear, qid.0)?;
        self.command(Selector::CreditH2c, Op::Clear, qid.0)
    }

    /// Enable an RX queue.
    pub(crate) fn start_rx(
        &self,
        qid: Qid,
        descriptors: &SwDescContext,
        prefetch: &PrefetchContext,
        completions: &CompletionContext,
    ) -> Result<(), ContextError> {
        self.renew(Selector::SwDescC2h, qid, &descriptors.to_words())?;
        self.command(Selector::HwDescC2h, Op::Clear, qid.0)?;
        self.command(Selector::CreditC2h, Op::Clear, qid.0)?;
        self.renew(Selector::Prefetch, qid, &prefetch.to_words())?;
        self.renew(Selector::Completion, qid, &completions.to_words())
    }

    /// Disable a TX queue, context by context; the first that fails ends it. The queue is not stopped then, whatever became of
    /// the others.
    pub(crate) fn stop_tx(&self, qid: Qid) -> Result<(), ContextError> {
        self.invalidate_all(qid, &[Selector::SwDescH2c, Selector::HwDescH2c, Selector::CreditH2c])
    }

    /// Disable an RX queue. See [`Contexts::stop_tx`].
    pub(crate) fn stop_rx(&self, qid: Qid) -> Result<(), ContextError> {
        use Selector::{Completion, CreditC2h, HwDescC2h, Prefetch, SwDescC2h};
        self.invalidate_all(qid, &[SwDescC2h, HwDescC2h, CreditC2h, Prefetch, Completion])
    }

    fn invalidate_all(&self, qid: Qid, selectors: &[Selector]) -> Result<(), ContextError> {
        selectors.iter().try_for_each(|selector| self.command(*selector, Op::Invalidate, qid.0))
    }

    fn renew(&self, selector: Selector, qid: Qid, words: &[u32]) -> Result<(), ContextError> {
        self.command(selector, Op::Clear, qid.0)?;
        self.write(selector, qid.0, words)
    }

    fn write(&self, selector: Selector, index: u16, words: &[u32]) -> Result<(), ContextError> {
        let mmio = self.platform.mmio();
        // Words beyond the context's length are zero.
        let words = words.iter().copied().chain(core::iter::repeat(0)).take(COMMAND_WORDS);
        for (i, word) in (0..).zip(words) {
            mmio.write32(Bar::Qdma, qdma_csr::IND_CTXT_DATA + 4 * i, word)?;
            mmio.write32(Bar::Qdma, qdma_csr::IND_CTXT_MASK + 4 * i, u32::MAX)?;
        }
        self.command(selector, Op::Write, index)
    }

    fn command(&self, selector: Selector, op: Op, qid: u16) -> Result<(), ContextError> {
        let command = ContextCommand { selector, op, qid }.to_word();
        let mmio = self.platform.mmio();
        mmio.write32(Bar::Qdma, qdma_csr::IND_CTXT_CMD, command)?;
        let mut wait = Backoff::new(self.platform.clock(), self.limit_ns);
        while ind_ctxt_cmd::BUSY.is_set(mmio.read32(Bar::Qdma, qdma_csr::IND_CTXT_CMD)?) {
            if !wait.again() {
                return Err(ContextError::Busy { command, waited_ns: wait.waited_ns() });
            }
        }
        Ok(())
    }
}
