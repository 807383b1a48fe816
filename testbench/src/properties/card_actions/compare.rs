//! What two cards must share once both are at rest.
//!
//! Their clocks, latencies and read-ahead differ, so only what must hold whatever the timing is compared; *exactly* after
//! most actions, less after those on which timing decides ([`Certainty`]).
//!
//! | what | exact, errors | spread | loose |
//! |---|---|---|---|
//! | frames received, for each queue in order, byte for byte | as the specification says ([`World`]) | the changed function all of its frames, within a queue in order; others as before | none twice, none that was not sent; within a queue in order |
//! | frames sent, for each queue in order, byte for byte, and their port | all | all | as above |
//! | what registers read, what a driver refused and in which words, queues that were started afresh | the same | the same | whether it was refused |
//! | faults and error bits that the drivers logged | the same; which queue was first not, where one cause has several | the same | not, but only those of queues stopped under way |
//! | state of interfaces and queues; error registers at rest | the same | the same | the same |
//! | drops by name, and the QDMA's in all | by what they rose | by what they rose | not |
//! | `ethtool -S`, counts of queues | by what they rose, but for [`TIMING`] and [`ERROR_ROWS`] | without queues | not |
//! | RSS registers | the same | the same | the same |
//! | on each card alone: both sums, broken rules of host memory, pages out while nothing runs | hold | hold | hold |
//! | order between queues, times, number of interrupts, polls and doorbells | not | not | not |

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use regs::{FuncId, PortId};

use super::deed::Deed;
use super::side::{Account, Looked, Rows};
use super::world::World;
use crate::outcome::{Delivered, Sent};
use crate::properties::traffic;
use crate::run::{HostFrame, InFrame};

/// How much timing leaves the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) enum Certainty {
    /// All of it.
    #[default]
    Exact,
    /// All, but errors of one cause may be served in one go or in several.
    Errors,
    /// Nothing is lost, and nothing says which queue a frame takes: key or table change while it comes.
    Spread,
    /// A queue stops, starts or overflows while frames move.
    Loose,
}

/// Rows whose values are timing, by a part of their name, and why.
const TIMING: [(&str, &str); 6] = [
    ("rx_pp_", "how a page comes home depends on how many frames a poll finds"),
    ("_doorbells", "frames that a poll finds or a sender brings together are rung for together"),
    ("_credits", "completions that a poll finds together are returned together"),
    ("_full", "a ring is full when completions are seen late"),
    ("_stopped", "likewise"),
    ("_woken", "likewise"),
];

/// Rows that count how often an error bit was served: after one cause that raises a bit more than once, only whether.
const ERROR_ROWS: &str = "card_error_";

/// Errors that frames under way raise when their queue has gone, and of which it is timing whether they do.
const OF_STOPPED_QUEUES: [&str; 3] = ["completion for an invalid queue", "descriptor response", "first queue"];

fn is_timing(name: &str) -> bool {
    TIMING.iter().any(|(part, _)| name.contains(part))
}

/// Something differs.
pub(super) type Verdict = Result<(), String>;

/// A lane of frames: whose, and which queue.
type Lane = (FuncId, u16);

/// Compare what came of a deed; `before` is the world in which its frames moved.
pub(super) fn settled(
    names: [&str; 2],
    before: &World,
    deed: &Deed,
    accounts: &[Account; 2],
    risen: &[Rows; 2],
) -> Verdict {
    let certainty = deed.certainty();
    for (name, account) in names.into_iter().zip(accounts) {
        received(name, before, deed, certainty, account)?;
        sent(name, before, deed, certainty, account)?;
    }
    let [one, other] = accounts;
    let loose = certainty == Certainty::Loose;
    let words = |account: &Account| {
        let whole = |said: &String| if loose { said.starts_with("done").to_string() } else { said.clone() };
        account.said.iter().map(whole).collect::<Vec<_>>()
    };
    same(names, "answers", &words(one), &words(other))?;
    faults(names, certainty, [&one.faults, &other.faults])?;
    same(names, "state", &one.state, &other.state)?;
    counts(names, certainty, risen)
}

/// Frames that drivers handed up.
fn received(name: &str, world: &World, deed: &Deed, certainty: Certainty, account: &Account) -> Verdict {
    let mut got: BTreeMap<Lane, Vec<&[u8]>> = BTreeMap::new();
    for Delivered { func, queue, data, .. } in &account.record.delivered {
        got.entry((*func, *queue)).or_default().push(data);
    }
    let (wire, _) = deed.load();
    // Another function than the one whose table changes goes on as it was.
    let certain = |func: FuncId| match certainty {
        Certainty::Exact | Certainty::Errors => true,
        Certainty::Spread => deed.changed() != Some(func),
        Certainty::Loose => false,
    };
    let mut want: BTreeMap<Lane, Vec<&[u8]>> = BTreeMap::new();
    for frame in wire.iter().filter(|frame| certain(FuncId(frame.port.0))) {
        if let Some(lane) = fate(world, deed, frame) {
            want.entry(lane).or_default().push(&frame.data);
        }
    }
    let (due, got): (BTreeMap<_, _>, BTreeMap<_, _>) = got.into_iter().partition(|((func, _), _)| certain(*func));
    lanes(name, "received", &want, &due)?;
    let may = |func: FuncId| {
        let good = wire.iter().filter(move |frame| frame.port == PortId(func.0) && world.is_good(frame));
        good.map(|frame| frame.data.as_slice()).collect::<Vec<_>>()
    };
    let all = |func: FuncId| got.iter().filter(move |((of, _), _)| *of == func).flat_map(|(_, frames)| frames).copied();
    for ((func, queue), frames) in &got {
        if let Some(at) = out_of_order(frames, &may(*func)) {
            return Err(format!(
                "{name}: {func} queue {queue}: received: frame {at} is none of those that came, or late or again\n  {}",
                excerpt(frames[at])
            ));
        }
    }
    for func in (0..world.functions.len() as u8).map(FuncId).filter(|func| !certain(*func)) {
        let (mut have, mut of) = (all(func).collect::<Vec<_>>(), may(func));
        have.sort_unstable();
        of.sort_unstable();
        if out_of_order(&have, &of).is_some() {
            return Err(format!("{name}: {func}: received: a frame came twice"));
        }
        if certainty == Certainty::Spread && world.functions[usize::from(func.0)].up && have.len() != of.len() {
            return Err(format!("{name}: {func}: received: {} frames of {}", have.len(), of.len()));
        }
    }
    Ok(())
}

/// What becomes of a frame at the wire, where timing has no say.
fn fate(world: &World, deed: &Deed, frame: &InFrame) -> Option<Lane> {
    match deed {
        // It is sent to a queue that has failed.
        Deed::Stray { .. } => None,
        Deed::Range { func, wrong: (base, queues), right, .. } if frame.port == PortId(func.0) => {
            world.queue_of(frame).filter(|(_, entry)| base == &right.0 && entry < queues)
        }
        _ => world.queue_of(frame),
    }
}

/// Frames that left at the ports.
fn sent(name: &str, world: &World, deed: &Deed, certainty: Certainty, account: &Account) -> Verdict {
    let mut got: BTreeMap<Lane, Vec<&[u8]>> = BTreeMap::new();
    for Sent { port, data, err, .. } in &account.record.sent {
        let Some((func, queue, _)) = traffic::origin(data).filter(|(func, ..)| PortId(func.0) == *port && !err) else {
            return Err(format!(
                "{name}: {port}: a frame left that nobody sent there, error {err}\n  {}",
                excerpt(data)
            ));
        };
        got.entry((func, queue)).or_default().push(data);
    }
    let (_, host) = deed.load();
    let passes = |frame: &&HostFrame| match deed {
        Deed::Range { func, wrong: (_, queues), .. } => frame.func != *func || frame.queue < *queues,
        _ => world.functions[usize::from(frame.func.0)].up,
    };
    let mut want: BTreeMap<Lane, Vec<&[u8]>> = BTreeMap::new();
    for frame in host.iter().filter(passes) {
        want.entry((frame.func, frame.queue)).or_default().push(&frame.data);
    }
    if certainty != Certainty::Loose {
        return lanes(name, "sent", &want, &got);
    }
    for (lane, frames) in &got {
        if let Some(at) = out_of_order(frames, want.get(lane).map_or(&[], Vec::as_slice)) {
            let (func, queue) = lane;
            return Err(format!(
                "{name}: {func} queue {queue}: sent: frame {at} was not posted, or comes late or again"
            ));
        }
    }
    Ok(())
}

/// The first frame of `got` that is not in `of`, or not in its order.
fn out_of_order(got: &[&[u8]], of: &[&[u8]]) -> Option<usize> {
    let mut rest = of.iter();
    got.iter().position(|frame| !rest.any(|other| other == frame))
}

/// Every lane must hold what it should.
fn lanes(name: &str, what: &str, want: &BTreeMap<Lane, Vec<&[u8]>>, got: &BTreeMap<Lane, Vec<&[u8]>>) -> Verdict {
    let all: BTreeSet<&Lane> = want.keys().chain(got.keys()).collect();
    for lane in all {
        let [due, came] = [want, got].map(|lanes| lanes.get(lane).map_or(&[][..], Vec::as_slice));
        if let Some(at) = (0..due.len().max(came.len())).find(|&at| due.get(at) != came.get(at)) {
            let show = |list: &[&[u8]]| list.get(at).map_or("nothing".into(), |data| excerpt(data));
            let ((func, queue), count, have) = (lane, due.len(), came.len());
            return Err(format!(
                "{name}: {func} queue {queue}: {what}: frame {at} differs ({count} are due, {have} came)\n  due   {}\n  came  {}",
                show(due),
                show(came)
            ));
        }
    }
    Ok(())
}

/// A frame in a line.
fn excerpt(data: &[u8]) -> String {
    let head: Vec<String> = data.iter().take(32).map(|byte| format!("{byte:02x}")).collect();
    format!("{} bytes: {}{}", data.len(), head.join(" "), if data.len() > 32 { " …" } else { "" })
}

/// What the drivers logged.
fn faults(names: [&str; 2], certainty: Certainty, logged: [&[String]; 2]) -> Verdict {
    if certainty == Certainty::Loose {
        for (name, faults) in names.into_iter().zip(logged) {
            let known = |fault: &&String| OF_STOPPED_QUEUES.iter().any(|known| fault.contains(known));
            if let Some(fault) = faults.iter().find(|fault| !known(fault)) {
                return Err(format!("{name}: a fault that a queue stopped under way does not explain: {fault}"));
            }
        }
        return Ok(());
    }
    let kept = |faults: &[String]| {
        let first = |fault: &&String| certainty != Certainty::Errors || !fault.contains("first queue");
        faults.iter().filter(first).cloned().collect::<Vec<_>>()
    };
    same(names, "faults", &kept(logged[0]), &kept(logged[1]))
}

/// Counts by what they rose.
fn counts(names: [&str; 2], certainty: Certainty, risen: &[Rows; 2]) -> Verdict {
    if certainty == Certainty::Loose {
        return Ok(());
    }
    let skipped = |name: &str| {
        is_timing(name)
            || name.starts_with("drop qdma.")
            || (certainty == Certainty::Spread && name.contains("rx_queue_"))
    };
    rows(names, certainty, risen, skipped)?;
    // The two need not call a loss the same.
    let lost = |rows: &Rows| {
        rows.iter().filter(|(name, _)| name.starts_with("drop qdma.")).map(|(_, count)| count).sum::<u64>()
    };
    same(names, "frames that the QDMA lost", &[lost(&risen[0])], &[lost(&risen[1])])
}

/// `ethtool -S` and RSS registers; `certainty` is the least since the last look.
pub(super) fn looked(names: [&str; 2], certainty: Certainty, looked: [&Looked; 2], risen: &[Rows; 2]) -> Verdict {
    same(names, "RSS registers", &looked[0].rss, &looked[1].rss)?;
    if certainty == Certainty::Loose {
        return Ok(());
    }
    let skipped = |name: &str| is_timing(name) || (certainty == Certainty::Spread && name.contains("rx_queue_"));
    rows(names, certainty, risen, skipped)
}

fn rows(names: [&str; 2], certainty: Certainty, risen: &[Rows; 2], skipped: impl Fn(&str) -> bool) -> Verdict {
    let all: BTreeSet<&String> = risen.iter().flat_map(|rows| rows.keys()).collect();
    for row in all.into_iter().filter(|row| !skipped(row)) {
        let [mut one, mut other] = [&risen[0], &risen[1]].map(|rows| rows.get(row).copied().unwrap_or(0));
        if certainty != Certainty::Exact && row.contains(ERROR_ROWS) {
            (one, other) = (one.min(1), other.min(1));
        }
        if one != other {
            return Err(format!("{row} rose by {one} on {}, by {other} on {}", names[0], names[1]));
        }
    }
    Ok(())
}

/// What `now` has more than `before`; a count that fell counts as risen round 2^64, and so differs.
pub(super) fn risen(before: &Rows, now: &Rows) -> Rows {
    now.iter().map(|(name, count)| (name.clone(), count.wrapping_sub(before.get(name).copied().unwrap_or(0)))).collect()
}

fn same<T: PartialEq + Debug>(names: [&str; 2], what: &str, one: &[T], other: &[T]) -> Verdict {
    let Some(at) = (0..one.len().max(other.len())).find(|&at| one.get(at) != other.get(at)) else { return Ok(()) };
    let show = |list: &[T]| list.get(at).map_or("nothing".into(), |item| format!("{item:?}"));
    Err(format!("{what} differ\n  {:<6}  {}\n  {:<6}  {}", names[0], show(one), names[1], show(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["model", "rtl"];

    fn row(name: &str, count: u64) -> Rows {
        Rows::from([(name.to_string(), count)])
    }

    #[test]
    fn a_lost_a_doubled_and_a_late_frame_are_seen() {
        let of: [&[u8]; 3] = [&[1], &[2], &[3]];
        assert_eq!(out_of_order(&[&[1], &[3]], &of), None);
        assert_eq!(out_of_order(&[&[1], &[1]], &of), Some(1));
        assert_eq!(out_of_order(&[&[3], &[2]], &of), Some(1));
        let lane = |frames: &[&'static [u8]]| BTreeMap::from([((FuncId(0), 3), frames.to_vec())]);
        assert!(lanes("rtl", "received", &lane(&of), &lane(&of)).is_ok());
        let wrong = lanes("rtl", "received", &lane(&of), &lane(&of[..2])).unwrap_err();
        assert!(wrong.starts_with("rtl: function 0 queue 3: received: frame 2 differs (3 are due, 2 came)"), "{wrong}");
    }

    #[test]
    fn rows_of_timing_may_differ_and_no_others() {
        let compared =
            |name, certainty, one, other| counts(NAMES, certainty, &[row(name, one), row(name, other)]).is_ok();
        assert!(compared("onic0 rx_queue_0_doorbells", Certainty::Exact, 1, 2));
        assert!(!compared("onic0 rx_queue_0_frames", Certainty::Exact, 1, 2));
        assert!(compared("onic0 rx_queue_0_frames", Certainty::Spread, 1, 2));
        assert!(!compared("onic0 card_error_c2h", Certainty::Exact, 1, 2));
        assert!(compared("onic0 card_error_c2h", Certainty::Errors, 1, 2));
        assert!(!compared("onic0 card_error_c2h", Certainty::Errors, 0, 2));
        assert!(!compared("drop qdma.invalid_queue", Certainty::Errors, 1, 2));
        assert!(compared("drop port0.overflow", Certainty::Loose, 1, 2));
    }
}
