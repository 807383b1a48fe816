//! One case on one card, and what is wrong with what came out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use models::observation::Point;
use regs::{FuncId, PortId};

use super::bed::Bed;
use super::oracle::{self, Fate};
use super::traffic;
use crate::execute::{Hooks, Job, execute_with};
use crate::outcome::{Counts, Outcome};
use crate::run::{HostFrame, HostProfile, InFrame, Run, RunError};
use crate::scoreboard;
use crate::shape::Pace;

/// What goes through a card, and how.
#[derive(Clone, Copy)]
pub(super) struct Trial<'a> {
    pub(super) bed: &'a Bed,
    pub(super) pace: Pace,
    pub(super) host_profile: HostProfile,
    pub(super) wire: &'a [InFrame],
    pub(super) host: &'a [HostFrame],
}

impl<'a> Trial<'a> {
    /// These frames at the wire, as fast as they find room.
    pub(super) fn fast(bed: &'a Bed, wire: &'a [InFrame]) -> Trial<'a> {
        Trial { bed, pace: Pace::Fast, host_profile: HostProfile::default(), wire, host: &[] }
    }

    /// Run it.
    ///
    /// # Errors
    /// What stopped the run, in a sentence.
    pub(super) fn run(&self, card: &str) -> Result<Outcome, String> {
        self.run_with(card, &mut |_| Ok(()))
    }

    /// Run it, and look at the card while its queues still run.
    ///
    /// # Errors
    /// What stopped the run, in a sentence.
    pub(super) fn run_with(&self, card: &str, look: Look<'_>) -> Result<Outcome, String> {
        self.execute(card, None, look)
    }

    /// Run it on a card with RTL in it, and count the cycles in which the hash waited for a frame's second beat.
    ///
    /// # Errors
    /// What stopped the run, in a sentence.
    pub(super) fn run_covered(&self, card: &str, scratch: &Path) -> Result<(Outcome, u64), String> {
        let outcome = self.execute(card, Some(scratch), &mut |_| Ok(()))?;
        let points = fs::read(scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
        let _ = fs::remove_file(scratch); // only a left-over file if it stays
        Ok((outcome, cover_count(&String::from_utf8_lossy(&points), "GapBeforeSecond_C")))
    }

    fn execute(&self, card: &str, coverage: Option<&Path>, look: Look<'_>) -> Result<Outcome, String> {
        let mut setup = self.bed.setup();
        setup.pace = self.pace;
        setup.host = self.host_profile;
        let mut choice = self.bed.card(card);
        choice.rtl.coverage = coverage.map(Path::to_path_buf);
        let job = Job { card: choice, setup, wire: self.wire, host: self.host };
        let mut hands = Hands { bed: self.bed, look };
        match execute_with(&job, &mut hands, &mut |_| {}) {
            Ok((outcome, None)) => Ok(outcome),
            Ok((_, Some(error))) => Err(format!("{card}: {:#}", anyhow::Error::new(error))),
            Err(error) => Err(format!("{card}: {error}")),
        }
    }

    /// Hold what came out against itself and the specification: sums, memory, and for each queue what was delivered, in
    /// order; hashes; drops; and what left at the ports, in order for each queue that it came from. Only where nothing
    /// overflows.
    pub(super) fn check(&self, outcome: &Outcome) -> Result<(), String> {
        let mut wrong: Vec<String> = scoreboard::self_check(outcome).into_iter().map(|finding| finding.text).collect();
        self.check_received(outcome, &mut wrong);
        self.check_sent(outcome, &mut wrong);
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    fn check_received(&self, outcome: &Outcome, wrong: &mut Vec<String>) {
        let mut queues: BTreeMap<(FuncId, u16), Vec<&[u8]>> = BTreeMap::new();
        let mut hashes: BTreeMap<FuncId, Vec<(u32, u16)>> = BTreeMap::new();
        let mut drops = Counts::new();
        for frame in self.wire {
            match oracle::fate(self.bed, frame) {
                Fate::Error => *drops.entry(format!("port{}.error", frame.port.0)).or_default() += 1,
                Fate::Queue { func, hash, queue } => {
                    queues.entry((func, queue)).or_default().push(&frame.data);
                    hashes.entry(func).or_default().push((hash, queue));
                }
                Fate::QueueRange { func, hash, entry } => {
                    *drops.entry(format!("fn{}.queue_range", func.0)).or_default() += 1;
                    hashes.entry(func).or_default().push((hash, entry));
                }
            }
        }
        let card = &outcome.card;
        let got = delivered_by_queue(outcome);
        compare_lanes(
            card,
            "received",
            &queues,
            &got,
            |(func, queue)| format!("{func} queue {queue}"),
            |data| excerpt(data),
            wrong,
        );
        let name = |func: &FuncId| format!("{func}");
        compare_lanes(
            card,
            "hash",
            &hashes,
            &hashes_by_function(outcome),
            name,
            |(hash, entry)| format!("{hash:08x}, table entry {entry}"),
            wrong,
        );
        let sums = [("counters", outcome.by_counters.as_ref()), ("monitors", Some(&outcome.by_monitors))];
        for (source, sum) in sums.into_iter().filter_map(|(source, sum)| Some((source, sum?))) {
            if sum.drops != drops {
                wrong.push(format!("{card}: drops by {source}: expected {drops:?}, got {:?}", sum.drops));
            }
        }
    }

    fn check_sent(&self, outcome: &Outcome, wrong: &mut Vec<String>) {
        let lane = |data: &[u8]| traffic::origin(data).map(|(func, queue, _)| (func, queue));
        let mut expected: BTreeMap<_, Vec<(u8, &[u8])>> = BTreeMap::new();
        for frame in self.host {
            expected.entry(lane(&frame.data)).or_default().push((frame.func.0, &frame.data));
        }
        let mut got: BTreeMap<_, Vec<(u8, &[u8])>> = BTreeMap::new();
        for sent in &outcome.sent {
            let PortId(port) = sent.port;
            got.entry(lane(&sent.data)).or_default().push((port, &sent.data));
            if sent.err {
                wrong.push(format!("{}: a frame left port {port} marked as wrong", outcome.card));
            }
        }
        let name = |lane: &Option<(FuncId, u16)>| {
            lane.map_or("unknown origin".into(), |(func, queue)| format!("{func} queue {queue}"))
        };
        compare_lanes(
            &outcome.card,
            "sent",
            &expected,
            &got,
            name,
            |(port, data)| format!("port {port}: {}", excerpt(data)),
            wrong,
        );
    }

    /// What two cards did differently with frames that came in at the wire.
    pub(super) fn compare(&self, got: &Outcome, expected: &Outcome) -> Result<(), String> {
        let findings = scoreboard::compare(got, expected, self.wire, self.host, self.bed.width, self.pace);
        let texts: Vec<String> = findings.into_iter().map(|finding| finding.text).collect();
        if texts.is_empty() { Ok(()) } else { Err(texts.join("\n")) }
    }
}

/// A look at a run that is quiet.
pub(super) type Look<'a> = &'a mut dyn FnMut(&mut Run) -> Result<(), RunError>;

/// The bed's table at the start, a look at the end.
struct Hands<'a> {
    bed: &'a Bed,
    look: Look<'a>,
}

impl Hooks for Hands<'_> {
    fn started(&mut self, run: &mut Run) -> Result<(), RunError> {
        self.bed.write_table(run)
    }

    fn ended(&mut self, run: &mut Run) -> Result<(), RunError> {
        (self.look)(run)
    }
}

/// What each queue received, in order.
pub(super) fn delivered_by_queue(outcome: &Outcome) -> BTreeMap<(FuncId, u16), Vec<&[u8]>> {
    let mut queues: BTreeMap<_, Vec<&[u8]>> = BTreeMap::new();
    for frame in &outcome.delivered {
        queues.entry((frame.func, frame.queue)).or_default().push(&frame.data);
    }
    queues
}

/// Hash and table entry of each frame that reached a function, in order.
pub(super) fn hashes_by_function(outcome: &Outcome) -> BTreeMap<FuncId, Vec<(u32, u16)>> {
    let mut hashes: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for seen in &outcome.observations {
        if let Point::Rss { func, hash, entry, .. } = seen.point {
            hashes.entry(func).or_default().push((hash, entry));
        }
    }
    hashes
}

/// The first difference of each lane.
fn compare_lanes<K: Ord, T: PartialEq>(
    card: &str,
    what: &str,
    expected: &BTreeMap<K, Vec<T>>,
    got: &BTreeMap<K, Vec<T>>,
    name: impl Fn(&K) -> String,
    show: impl Fn(&T) -> String,
    wrong: &mut Vec<String>,
) {
    let mut lanes: Vec<&K> = expected.keys().chain(got.keys()).collect();
    lanes.sort();
    lanes.dedup();
    for lane in lanes {
        let side = |lanes: &'_ BTreeMap<K, Vec<T>>| lanes.get(lane).map_or(0, Vec::len);
        let (want, have) = (side(expected), side(got));
        let at = |lanes: &BTreeMap<K, Vec<T>>, i: usize| {
            lanes.get(lane).and_then(|list| list.get(i)).map_or("nothing".into(), &show)
        };
        let same =
            |i: &usize| expected.get(lane).and_then(|list| list.get(*i)) == got.get(lane).and_then(|list| list.get(*i));
        if let Some(i) = (0..want.max(have)).find(|i| !same(i)) {
            let line =
                format!("{card}: {}: {what}: frame {i} differs ({want} frames expected, {have} got)", name(lane));
            wrong.push(format!("{line}\n  expected  {}\n  got       {}", at(expected, i), at(got, i)));
        }
    }
}

/// A frame in a line.
fn excerpt(data: &[u8]) -> String {
    let bytes: Vec<String> = data.iter().take(48).map(|byte| format!("{byte:02x}")).collect();
    format!("{} bytes: {}{}", data.len(), bytes.join(" "), if data.len() > 48 { " …" } else { "" })
}

/// Sum of a cover point over its instances, from a file in `verilator_coverage`'s format: `C '…point…' COUNT` a line.
fn cover_count(file: &str, point: &str) -> u64 {
    let lines = file.lines().filter(|line| line.contains(point));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cover_points_are_summed_over_instances() {
        let file =
            "# SystemC::Coverage-3\nC 'o\x02cover\x01h\x02a.Gap_C' 3\nC 'h\x02b.Gap_C' 4\nC 'h\x02b.Other_C' 9\n";
        assert_eq!(cover_count(file, "Gap_C"), 7);
    }

    #[test]
    fn a_lane_that_differs_is_named_once() {
        let lanes = |frames: &[u8]| BTreeMap::from([(1u8, frames.to_vec())]);
        let mut wrong = Vec::new();
        let show = |byte: &u8| byte.to_string();
        compare_lanes(
            "model",
            "received",
            &lanes(&[1, 2, 3]),
            &lanes(&[1, 3]),
            |lane| format!("lane {lane}"),
            show,
            &mut wrong,
        );
        assert_eq!(wrong.len(), 1);
        assert!(wrong[0].contains("lane 1: received: frame 1 differs (3 frames expected, 2 got)"), "{}", wrong[0]);
    }
}
