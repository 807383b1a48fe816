//! Polling as Linux's NAPI does it: who polls when, how much at once, and when the card is asked to notify again.
//!
//! ```text
//!              interrupt, timer                     budget used up
//!   armed ───────── schedule ──────────► scheduled ◄──────────────┐
//!     ▲                                      │ poll ──────────────┤
//!     │            nothing left              │                    │
//!     ├──────────────────────────────────────┤                    │
//!     │                                      │ frames came,       │
//!     │  nothing came, deferrals used up     ▼ deferrals left     │
//!     └─────────────────────────────────── deferred ── timer ─────┘
//! ```
//!
//! The contract, as the kernel's documentation has it (`networking/napi`): a poll that used up its budget returns it, does
//! nothing else, and is called again; a poll that returns less has completed; a budget of 0 is for transmit completions
//! alone. Whether a completed poll asks for an interrupt is [`Napi`]'s to say, and only then is the doorbell armed
//! (`spec/driver.md` B-18, B-44). A frame that comes between the last look and the arming makes the card notify at once.

use crate::driver::QueuePair;
use crate::hook::XdpHook;
use crate::platform::{Clock, Platform};
use crate::ring::{PageSource, QueueFault, RxFrame};

/// Frames in one poll: Linux's NAPI weight.
pub const WEIGHT: usize = 64;

/// How long interrupts stay off while frames keep coming: Linux's `napi_defer_hard_irqs` and `gro_flush_timeout`. Both 0,
/// the default, arms at each completed poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Deferral {
    /// Completed polls without a frame before the card is armed again.
    pub polls: u32,
    /// From a completed poll to the next, ns.
    pub timeout_ns: u64,
}

/// What a pair's polls have counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NapiCounters {
    /// Polls.
    pub polls: u64,
    /// Those that used up their budget.
    pub budgets: u64,
    /// Those that completed and armed the card.
    pub completed: u64,
    /// Those that completed and left the card unarmed.
    pub deferred: u64,
}

/// What comes after a poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The budget was used up: poll again. No interrupt will come.
    Again,
    /// The card will notify.
    Armed,
    /// Poll again at that time, ns of the platform's clock. No interrupt will come before.
    Deferred {
        /// When.
        until_ns: u64,
    },
    /// The receive queue has failed and has nothing to wait for.
    Failed,
}

/// The state of one pair's polling.
#[derive(Clone, Debug, Default)]
pub struct Napi {
    scheduled: bool,
    deferral: Deferral,
    /// Completed polls that may still be deferred.
    deferrals_left: u32,
    deferred_until_ns: Option<u64>,
    counters: NapiCounters,
}

impl Napi {
    /// An interrupt has come, or a timer: a poll is due. False if one was due already.
    pub fn schedule(&mut self) -> bool {
        !core::mem::replace(&mut self.scheduled, true)
    }

    /// Is a poll due?
    pub fn is_scheduled(&self) -> bool {
        self.scheduled
    }

    /// How long interrupts stay off.
    pub fn deferral(&self) -> Deferral {
        self.deferral
    }

    /// Change how long interrupts stay off; counts from the next poll that finds frames.
    pub fn set_deferral(&mut self, deferral: Deferral) {
        self.deferral = deferral;
    }

    /// When the deferred poll is due, ns of the platform's clock.
    pub fn deferred_until_ns(&self) -> Option<u64> {
        self.deferred_until_ns
    }

    /// What was counted.
    pub fn counters(&self) -> NapiCounters {
        self.counters
    }

    /// A poll took `done` of `budget` frames: Linux's `napi_complete_done`, and what a driver does with its answer.
    fn finish(&mut self, done: usize, budget: usize, now_ns: impl FnOnce() -> u64) -> Next {
        if done >= budget {
            self.counters.budgets += 1;
            // Also of a poll that nobody had asked for: no interrupt will come.
            self.scheduled = true;
            return Next::Again;
        }
        self.scheduled = false;
        self.deferred_until_ns = None;
        if done > 0 {
            self.deferrals_left = self.deferral.polls;
        }
        if self.deferrals_left > 0 && self.deferral.timeout_ns > 0 {
            self.deferrals_left -= 1;
            self.counters.deferred += 1;
            let until_ns = now_ns().saturating_add(self.deferral.timeout_ns);
            self.deferred_until_ns = Some(until_ns);
            return Next::Deferred { until_ns };
        }
        self.counters.completed += 1;
        Next::Armed
    }
}

/// What a poll did. Each queue answers for itself: one that has failed does not hold up the other.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Polled {
    /// Frames received, those included with which the hook dealt; or what stopped the receive queue. Frames before that
    /// were handed up.
    pub received: Result<usize, QueueFault>,
    /// Frames that the card had sent; or what stopped the transmit queue.
    pub sent: Result<u16, QueueFault>,
    /// The transmit queue was stopped and is open again: its senders may go on.
    pub tx_woken: bool,
    /// What comes next.
    pub next: Next,
}

impl<P: Platform, S: PageSource<P::Dma>> QueuePair<P, S> {
    /// One poll: take back what was sent, receive up to `budget` frames through `hook` into `sink`, ring each doorbell that
    /// is owed once, and then wait for the card again if all is done.
    ///
    /// To be called when [`Napi::is_scheduled`], and from [`QueuePair::due_ns`] on. A poll that nobody asked for is harmless.
    pub fn poll<H: XdpHook<P::Dma>>(
        &mut self,
        budget: usize,
        hook: &mut H,
        sink: impl FnMut(&mut RxFrame<'_, P::Dma>),
    ) -> Polled {
        self.napi.counters.polls += 1;
        let sent = self.reap(hook);
        let received = if budget > 0 { self.receive(budget, hook, sink) } else { Ok(0) };
        let (received, next) = match received {
            // Only transmit completions were asked for: whatever was scheduled stays so.
            Ok(0) if budget == 0 => (Ok(0), Next::Again),
            Ok(done) => self.finish(done, budget),
            Err(fault) => self.fail(fault),
        };
        Polled { received, sent, tx_woken: self.tx.take_wake(), next }
    }

    /// When a poll is due without any interrupt, ns of the platform's clock: for transmit completions, or because
    /// interrupts are deferred. `None`: only an interrupt makes one due.
    pub fn due_ns(&self) -> Option<u64> {
        [self.tx.due_ns(), self.napi.deferred_until_ns].into_iter().flatten().min()
    }

    /// Take back what was sent; pages of either kind go home.
    fn reap<H: XdpHook<P::Dma>>(&mut self, hook: &mut H) -> Result<u16, QueueFault> {
        let dma = self.rx.platform();
        let sent = self.tx.reap_with(|page| hook.returned(dma.dma(), page));
        for page in self.tx.received_back() {
            self.rx.give_back(page);
        }
        sent
    }

    fn receive<H: XdpHook<P::Dma>>(
        &mut self,
        budget: usize,
        hook: &mut H,
        sink: impl FnMut(&mut RxFrame<'_, P::Dma>),
    ) -> Result<usize, QueueFault> {
        let Self { tx, rx, .. } = self;
        let redirected = rx.counters().xdp_redirect;
        let done = rx.receive(budget, hook, Some(tx), sink);
        if H::ACTIVE {
            // Whatever the poll came to, what it posted is published. A doorbell that fails shows in the queue's state.
            let _ = tx.flush();
            if rx.counters().xdp_redirect != redirected {
                hook.flush();
            }
        }
        done
    }

    fn finish(&mut self, done: usize, budget: usize) -> (Result<usize, QueueFault>, Next) {
        let clock = self.rx.platform();
        let next = self.napi.finish(done, budget, || clock.clock().now());
        match self.rx.complete(next == Next::Armed) {
            Ok(()) => (Ok(done), next),
            Err(fault) => self.fail(fault),
        }
    }

    fn fail(&mut self, fault: QueueFault) -> (Result<usize, QueueFault>, Next) {
        self.napi.scheduled = false;
        self.napi.deferred_until_ns = None;
        (Err(fault), Next::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFERRAL: Deferral = Deferral { polls: 2, timeout_ns: 100 };

    fn napi(deferral: Deferral) -> Napi {
        Napi { deferral, ..Napi::default() }
    }

    #[test]
    fn a_used_up_budget_stays_scheduled() {
        let mut napi = napi(DEFERRAL);
        assert!(napi.schedule());
        assert_eq!(napi.finish(64, 64, || panic!("nothing else is done")), Next::Again);
        assert!(napi.is_scheduled());
        assert!(!napi.schedule(), "it was scheduled already");
    }

    #[test]
    fn a_poll_that_nobody_asked_for_is_scheduled_once_it_uses_up_its_budget() {
        let mut napi = napi(Deferral::default());
        assert_eq!(napi.finish(64, 64, || panic!("no timer")), Next::Again);
        assert!(napi.is_scheduled());
    }

    #[test]
    fn without_deferral_a_completed_poll_arms() {
        let mut napi = napi(Deferral::default());
        napi.schedule();
        assert_eq!(napi.finish(63, 64, || panic!("no timer")), Next::Armed);
        assert!(!napi.is_scheduled());
    }

    /// As Linux counts: each poll with frames allows so many completions without an interrupt, that poll's included.
    #[test]
    fn interrupts_stay_off_while_frames_come_and_some_polls_longer() {
        let mut napi = napi(DEFERRAL);
        let until_ns = 107;
        let polls = [3, 5, 0, 0, 0, 1, 0, 0].map(|done| napi.finish(done, 64, || 7));
        let deferred = Next::Deferred { until_ns };
        assert_eq!(polls, [deferred, deferred, deferred, Next::Armed, Next::Armed, deferred, deferred, Next::Armed]);
    }

    #[test]
    fn deferral_needs_both_settings() {
        for deferral in [Deferral { polls: 0, ..DEFERRAL }, Deferral { timeout_ns: 0, ..DEFERRAL }] {
            assert_eq!(napi(deferral).finish(1, 64, || 0), Next::Armed);
        }
    }
}
