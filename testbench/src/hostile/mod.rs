//! A card that means harm: whatever it writes into host memory or answers to a register access, the driver neither
//! panics nor hangs nor touches memory outside its buffers; what is illegal ends with a queue error, and after a fresh
//! start a good frame passes.
//!
//! A case is a queue that was just started; a few frames as a correct card brings them; a deed, which is a mutation of
//! that run (more than half of the cases) or random words; looks of the driver until it is clear what came of it, with
//! and without a hook that sends frames back; a fresh start, one in sixteen on a card whose registers misbehave too,
//! with DMA of the old queue that is late; and a good frame, compared byte by byte. Each look is held against an oracle
//! that knows only the words in memory, the doorbells, and `spec/qdma.md`: it says whether a word is illegal, and then
//! the queue must fail and name it; or whether a correct card may write it, and then the queue must not.
//!
//! | file | concern |
//! |---|---|
//! | `words`, `card` | layouts by plain shifts; a card's side of the rings, step by step |
//! | `platform` | the driver's four seams with that card behind them, which may act between two loads |
//! | `deeds`, `attack` | what is done to a queue, and how |
//! | `oracle` | what a look must end in |
//! | `rig` | driver and card; each step judged |
//! | `supply` | where receive queues get their pages: each source that there is |
//! | `registers` | bring-up and management against registers that answer anything |
//! | `tally` | what was reached |

mod attack;
mod card;
mod deeds;
mod oracle;
mod platform;
mod registers;
mod rig;
mod supply;
mod tally;
mod words;

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use traces::synth::Rng;

use card::{Event, Registers};
use deeds::{RxDeed, TxDeed};
use rig::Rig;

pub use registers::try_registers;
pub use tally::{BY_REGISTERS, BY_RINGS, Ended, GOAL, Tally};

/// Cases on one driver. Then it is removed, and nothing may be left.
const CASES_PER_DRIVER: u64 = 128;

/// Which cases to try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Campaign {
    /// How many.
    pub cases: u64,
    /// Root of all that is random.
    pub seed: u64,
    /// Only the case of this number.
    pub only: Option<u64>,
}

/// A case that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failed {
    /// Its number.
    pub case: u64,
    /// What the card did.
    pub deed: String,
    /// What is wrong.
    pub why: String,
    /// What happened in it, oldest first.
    pub events: Vec<String>,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "case {}, {}: {}", self.case, self.deed, self.why)?;
        self.events.iter().try_for_each(|event| write!(f, "\n  {event}"))
    }
}

impl std::error::Error for Failed {}

/// Words in host memory: try a campaign, and count what was reached.
///
/// # Errors
/// The first case in which the driver does what it must not, leaves undone what it must, or panics.
pub fn try_rings(campaign: &Campaign, progress: &mut dyn FnMut(u64)) -> Result<Tally, Box<Failed>> {
    let mut total = Tally::default();
    let first = campaign.only.unwrap_or(0);
    let end = campaign.only.map_or(campaign.cases, |only| only + 1);
    let mut case = first;
    while case < end {
        // A driver's ways depend on the block that a case lies in, not on where the run began.
        let block = case / CASES_PER_DRIVER;
        let block_end = ((block + 1) * CASES_PER_DRIVER).min(end);
        let mut rng = Rng::named(campaign.seed, "hostile driver");
        let seed = rng.next_u64().wrapping_add(block);
        let at = |why| Box::new(Failed { case, deed: "bring-up".into(), why, events: Vec::new() });
        let mut rig = unwound(|| Rig::new(Rng::new(seed).next_u64())).map_err(at)?;
        while case < block_end {
            if let Err(failed) = try_case(&mut rig, campaign.seed, case) {
                // Whatever a panic left of the driver is not to be dropped as if it were whole.
                std::mem::forget(rig);
                return Err(failed);
            }
            case += 1;
            progress(case - first);
        }
        let last = case - 1;
        let tally = unwound(|| rig.end());
        let tally =
            tally.map_err(|why| Box::new(Failed { case: last, deed: "removal".into(), why, events: Vec::new() }))?;
        total += tally;
    }
    Ok(total)
}

fn try_case(rig: &mut Rig, seed: u64, case: u64) -> Result<(), Box<Failed>> {
    let mut rng = Rng::new(Rng::named(seed, "hostile case").next_u64().wrapping_add(case));
    let mut rng = Rng::new(rng.next_u64());
    let plan = Plan::draw(&mut rng, case, rig.queues());
    rig.begin(plan.rel_qid, rng.next_u64());
    unwound(|| plan.run(rig)).map_err(|why| {
        let events = rig.machine.card().log.iter().map(Event::to_string).collect();
        Box::new(Failed { case, deed: plan.to_string(), why, events })
    })
}

/// Run something that may panic; that is a failure like any other.
fn unwound<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(format!("panic: {}", panic_text(&*panic))))
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("with no text")
}

/// What a case does.
#[derive(Clone, Copy, Debug)]
struct Plan {
    rel_qid: u16,
    deed: Deed,
    /// How the card answers registers while the queue is started afresh.
    registers: Registers,
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    Rx(RxDeed),
    Tx(TxDeed),
}

impl Deed {
    fn name(self) -> &'static str {
        match self {
            Deed::Rx(deed) => deed.name(),
            Deed::Tx(deed) => deed.name(),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue {}, {}", self.rel_qid, self.deed.name())?;
        match self.registers {
            Registers::Honest => Ok(()),
            registers => write!(f, ", started afresh with registers {registers:?}"),
        }
    }
}

impl Plan {
    fn draw(rng: &mut Rng, case: u64, queues: u16) -> Plan {
        // 9 of 16: mutations.
        let mutation = case % 16 < 9;
        let deed = match (rng.below(3) < 2, mutation) {
            (true, true) => Deed::Rx(*rng.pick(&RxDeed::MUTATIONS)),
            (true, false) => Deed::Rx(*rng.pick(&RxDeed::RANDOM)),
            (false, true) => Deed::Tx(*rng.pick(&TxDeed::MUTATIONS)),
            (false, false) => Deed::Tx(*rng.pick(&TxDeed::RANDOM)),
        };
        let registers = if rng.one_in(16) { registers::draw(rng) } else { Registers::Honest };
        Plan { rel_qid: rng.below(queues.into()) as u16, deed, registers }
    }

    fn is_mutation(&self) -> bool {
        match self.deed {
            Deed::Rx(deed) => RxDeed::MUTATIONS.contains(&deed),
            Deed::Tx(deed) => TxDeed::MUTATIONS.contains(&deed),
        }
    }

    fn run(&self, rig: &mut Rig) -> Result<(), String> {
        match self.deed {
            Deed::Rx(deed) => rig.attack_rx(deed)?,
            Deed::Tx(deed) => rig.attack_tx(deed)?,
        }
        let failed = rig.fault.is_some();
        let tally = &mut rig.tally;
        tally.deed(self.deed.name(), failed);
        *(if failed { &mut tally.illegal } else { &mut tally.legal }) += 1;
        *(if self.is_mutation() { &mut tally.mutated } else { &mut tally.random }) += 1;
        rig.restart(matches!(self.deed, Deed::Rx(_)), self.registers)?;
        rig.check_memory()
    }
}
