//! Who sees the frames of a look: a sink, or a hook and then a sink.

use std::sync::atomic::Ordering;

use driver_core::{RedirectTarget, RxFrame, TakenPage, Verdict, XdpBuff};
use traces::synth::Rng;

use super::super::card::Event;
use super::super::platform::{HostileDma, Machine};
use crate::host_memory::CpuPage;

/// Who sees the frames of a look.
pub(super) struct Witness<'a> {
    /// The entry that is due, of those that are `expected`.
    pub(super) entry: usize,
    pub(super) expected: &'a mut [Option<Vec<u8>>],
    pub(super) machine: &'a Machine,
    pub(super) kept: &'a mut Vec<TakenPage<CpuPage>>,
    pub(super) rng: &'a mut Rng,
    pub(super) in_step: bool,
    /// A hook sees them first.
    pub(super) hooked: bool,
    pub(super) wrong: Option<String>,
}

impl Witness<'_> {
    /// A frame is there, with these bytes.
    fn seen(&mut self, len_bytes: usize, bytes: &[u8]) {
        self.machine.card().log.push(Event::Delivered { len_bytes });
        let expected = self.expected[self.entry].take().filter(|_| self.in_step);
        self.entry = (self.entry + 1) % (self.expected.len() - 1);
        self.complain(check_bytes(len_bytes, bytes, expected.as_deref()));
    }

    /// The first complaint is the one to tell.
    fn complain(&mut self, why: Option<String>) {
        self.wrong = self.wrong.take().or(why);
    }

    pub(super) fn sink(&mut self, frame: &mut RxFrame<'_, HostileDma>) {
        let mut bytes = Vec::with_capacity(frame.len_bytes());
        frame.append_to(&mut bytes);
        if self.hooked {
            self.complain(check_bytes(frame.len_bytes(), &bytes, None));
        } else {
            self.seen(frame.len_bytes(), &bytes);
        }
        if !frame.segment(frame.segment_count()).is_empty() || !frame.segment(usize::MAX).is_empty() {
            self.complain(Some("a frame has bytes behind its last segment".into()));
        }
        if self.rng.one_in(8) && !self.machine.refuse_syncs.load(Ordering::Relaxed) {
            let segment = self.rng.below(frame.segment_count() as u64) as usize;
            self.kept.extend(frame.take(segment));
        }
    }

    /// A hook that moves a frame's borders as far as it is let, and drops some.
    pub(super) fn hook(&mut self, buff: &mut XdpBuff<'_, HostileDma>) -> Verdict {
        let mut bytes = buff.data().to_vec();
        (0..buff.fragment_count()).for_each(|i| bytes.extend_from_slice(buff.fragment(i)));
        self.seen(buff.len_bytes(), &bytes);
        let delta = |rng: &mut Rng| rng.below(600) as i32 - 300;
        if self.rng.one_in(2) {
            // A border that can't be there is refused, which is the hook's to know.
            let _ = buff.adjust_head(delta(self.rng));
            let _ = buff.adjust_meta(delta(self.rng));
            let _ = buff.adjust_tail(delta(self.rng));
            buff.meta_mut().fill(0x5A);
            buff.data_mut().fill(0xC3);
        }
        match self.rng.below(8) {
            0 => Verdict::Drop,
            1 => Verdict::Aborted,
            // A page that leaves the ring is another's to hand over.
            _ if self.machine.refuse_syncs.load(Ordering::Relaxed) => Verdict::Pass,
            2..=4 => Verdict::Tx,
            // Nobody takes it: its page goes home.
            5 => Verdict::Redirect(RedirectTarget(0)),
            _ => Verdict::Pass,
        }
    }
}

fn check_bytes(len_bytes: usize, bytes: &[u8], expected: Option<&[u8]>) -> Option<String> {
    if bytes.len() != len_bytes {
        return Some(format!("a frame says {len_bytes} bytes and has {}", bytes.len()));
    }
    let expected = expected?;
    let at = bytes.iter().zip(expected).position(|(got, want)| got != want);
    match at {
        Some(at) => Some(format!("a good frame of {} bytes differs at byte {at}", expected.len())),
        None if bytes.len() != expected.len() => {
            Some(format!("a good frame of {} bytes is handed up with {}", expected.len(), bytes.len()))
        }
        None => None,
    }
}
