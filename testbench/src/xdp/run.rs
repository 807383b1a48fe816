//! Frames through a program, one by one, in a page laid out as the driver's.

use std::collections::BTreeMap;

use xdp_vm::{FRAME_BYTES_MIN, Outcome, RxMeta, TAILROOM_BYTES, Target, Verdict, XdpBuff};

use super::load::Subject;
use crate::host_memory::PAGE_SIZE;

/// Where a received frame begins in its page.
const HEADROOM_BYTES: usize = driver_core::HEADROOM_BYTES as usize;
/// Longest frame that lies in one page with room on both sides.
const FRAME_BYTES_MAX: usize = PAGE_SIZE - HEADROOM_BYTES - TAILROOM_BYTES;

/// What a program may say of a frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Action {
    /// Given up: a fault, an unknown number, or because it said so.
    Aborted,
    /// Forgotten.
    Drop,
    /// Handed to the stack.
    Pass,
    /// Sent back.
    Tx,
    /// Sent elsewhere.
    Redirect,
}

impl Action {
    /// All, by Linux's numbers.
    pub const ALL: [Action; 5] = [Action::Aborted, Action::Drop, Action::Pass, Action::Tx, Action::Redirect];

    /// Of an outcome.
    pub fn of(outcome: &Outcome) -> Action {
        match outcome.verdict {
            Verdict::Aborted(_) => Action::Aborted,
            Verdict::Drop => Action::Drop,
            Verdict::Pass => Action::Pass,
            Verdict::Tx => Action::Tx,
            Verdict::Redirect(_) => Action::Redirect,
        }
    }

    /// As in C, without `XDP_`.
    pub fn name(self) -> &'static str {
        match self {
            Action::Aborted => "ABORTED",
            Action::Drop => "DROP",
            Action::Pass => "PASS",
            Action::Tx => "TX",
            Action::Redirect => "REDIRECT",
        }
    }

    /// Linux's number.
    pub fn number(self) -> u64 {
        self as u64
    }
}

/// One frame, when its run is over.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The frame as the program left it.
    pub after: &'a [u8],
    /// How the run ended.
    pub outcome: Outcome,
}

/// A frame that a program can't be shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotRun {
    /// It takes more than one buffer.
    #[error("{0} bytes: a program sees frames of up to {FRAME_BYTES_MAX}, which lie in one buffer")]
    TooLong(usize),
    /// It has no Ethernet header.
    #[error("{0} bytes: a frame has an Ethernet header of {FRAME_BYTES_MIN}")]
    TooShort(usize),
}

/// Frames and their bytes as they came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// Frames.
    pub frames: u64,
    /// Bytes.
    pub bytes: u64,
}

/// What a program did to all frames.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By action.
    pub actions: BTreeMap<Action, Count>,
    /// Redirected frames by target, in words.
    pub targets: BTreeMap<String, u64>,
    /// Frames that the program was run on.
    pub frames: u64,
    /// Of those, frames that left with other bytes or another length.
    pub changed: u64,
    /// Instructions of all runs.
    pub insns: u64,
    /// Of the longest.
    pub insns_max: u64,
    /// What went wrong at run time, each kind and place once, with its count.
    pub faults: BTreeMap<String, u64>,
}

impl Subject {
    /// Run the program on a frame. `page` is storage, one for all frames.
    ///
    /// # Errors
    /// [`NotRun`].
    pub fn run<'a>(
        &mut self,
        frame: &[u8],
        meta: &RxMeta,
        page: &'a mut Vec<u8>,
        tally: &mut Tally,
    ) -> Result<Seen<'a>, NotRun> {
        match frame.len() {
            len if len > FRAME_BYTES_MAX => return Err(NotRun::TooLong(len)),
            len if len < FRAME_BYTES_MIN => return Err(NotRun::TooShort(len)),
            _ => {}
        }
        // What an earlier frame left in the page would be seen by a program that grows this one.
        page.clear();
        page.resize(PAGE_SIZE, 0);
        page[HEADROOM_BYTES..HEADROOM_BYTES + frame.len()].copy_from_slice(frame);
        let (outcome, start, len) = match XdpBuff::new(page, HEADROOM_BYTES, frame.len()) {
            Ok(mut buff) => (self.vm.run(&mut buff, meta), buff.start(), buff.len_bytes()),
            Err(_) => return Err(NotRun::TooLong(frame.len())),
        };
        let seen = Seen { after: page.get(start..start + len).unwrap_or(&[]), outcome };
        self.count(frame, &seen, tally);
        Ok(seen)
    }

    fn count(&self, before: &[u8], seen: &Seen<'_>, tally: &mut Tally) {
        let outcome = &seen.outcome;
        let count = tally.actions.entry(Action::of(outcome)).or_default();
        count.frames += 1;
        count.bytes += before.len() as u64;
        tally.frames += 1;
        tally.changed += u64::from(before != seen.after);
        tally.insns += outcome.insns;
        tally.insns_max = tally.insns_max.max(outcome.insns);
        match outcome.verdict {
            Verdict::Redirect(target) => *tally.targets.entry(self.target(target)).or_default() += 1,
            Verdict::Aborted(abort) if abort != xdp_vm::Abort::Returned => {
                let text = match outcome.fault() {
                    Some(fault) => self.vm.describe(fault).to_string(),
                    None => format!("it returned {}, which is no action or has no target", outcome.returned),
                };
                *tally.faults.entry(text).or_default() += 1;
            }
            _ => {}
        }
    }

    /// A target in words.
    fn target(&self, target: Target) -> String {
        let name = |map: u32| self.vm.maps().get(map as usize).map_or("?", |map| map.name());
        match target {
            Target::Interface { ifindex } => format!("interface {ifindex}"),
            Target::Device { map, key, ifindex, .. } => format!("{}[{key}]: interface {ifindex}", name(map)),
            Target::Broadcast { map, exclude_ingress } => {
                format!("all of {}{}", name(map), if exclude_ingress { " but the one it came from" } else { "" })
            }
            Target::Cpu { map, cpu, .. } => format!("{}[{cpu}]: CPU {cpu}", name(map)),
            Target::Socket { map, key, socket } => format!("{}[{key}]: socket {socket}", name(map)),
        }
    }
}
