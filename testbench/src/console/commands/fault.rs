//! `fault`: things that go wrong, while the card runs.

use models::qdma::{BusyPolls, Knob, NoDesc};

use super::{Call, Said, Spec, span_ns};
use crate::console::options::Words;
use crate::console::{CommandError, Console, WireFault};

pub(super) const SPEC: Spec = Spec {
    name: "fault",
    usage: &[
        "fault",
        "fault alloc N [after M]",
        "fault wire N flip[:BYTE[:BIT]]|fcs|cut:BYTES|drop",
        "fault host hold|go",
        "fault qdma late-payload|late-entry|late-dma TIME",
        "fault qdma context-busy POLLS|ever",
        "fault qdma no-desc stall|drop",
        "fault clear",
    ],
    about: "Things that go wrong, while the card runs",
    more: "alloc: the next N allocations of host memory fail, M from now on. wire: what befalls the \
           next N frames before they reach a port. host: the drivers poll nothing. qdma: DMA out of \
           order or after its queue was stopped, context commands that take long, what becomes of \
           frames without a descriptor. Faults of the RTL are chosen at the start: --tap, --rtl-fault, \
           --stalls.",
    background: false,
    run,
};

fn run(console: &mut Console, call: &Call<'_>) -> Said {
    let mut words = call.words();
    match words.next() {
        None => return Ok(show(console)),
        Some("alloc") => alloc(console, &mut words)?,
        Some("wire") => {
            let frames = words.number("N")?;
            let fault: WireFault = words.value("the fault")?;
            words.end()?;
            console.session.wire_faults.plan(frames, fault);
        }
        Some("host") => {
            let hold = match words.word("hold or go")? {
                "hold" => true,
                "go" => false,
                other => return Err(words.usage(format_args!("`{other}` is neither hold nor go"))),
            };
            words.end()?;
            console.session.hold_host(hold);
        }
        Some("qdma") => {
            let knob = knob(&mut words)?;
            words.end()?;
            turn(console, [knob])?;
        }
        Some("clear") => {
            words.end()?;
            console.session.wire_faults.clear();
            console.session.hold_host(false);
            console.session.bench().memory().fail_allocations(0, 0);
            turn(console, HARMLESS)?;
        }
        Some(other) => return Err(words.usage(format_args!("there is no fault `{other}`"))),
    }
    Ok(String::new())
}

/// The knobs of a QDMA at which nothing goes wrong.
const HARMLESS: [Knob; 5] = [
    Knob::LatePayloadPs(0),
    Knob::LateEntryPs(0),
    Knob::LateDmaAfterInvNs(0),
    Knob::ContextBusy(BusyPolls::Count(0)),
    Knob::NoDesc(NoDesc::Stall),
];

fn show(console: &Console) -> String {
    let faults = &console.session.wire_faults;
    let host = if console.session.is_host_held() { "held" } else { "polls" };
    let mut said =
        format!("wire  {} frames struck, {} to be struck yet\nhost  {host}\n", faults.struck(), faults.coming());
    let config = console.session.bench().card(|card| card.qdma().map(|qdma| qdma.config().clone()));
    if let Some(config) = config {
        let busy = match config.context_busy {
            BusyPolls::Count(polls) => polls.to_string(),
            BusyPolls::Never => "ever".into(),
        };
        said += &format!(
            "qdma  late-payload {}ns, late-entry {}ns, late-dma {}ns, context-busy {busy}, no-desc {:?}\n",
            config.late_payload_ps / 1_000,
            config.late_entry_ps / 1_000,
            config.late_dma_after_inv_ns,
            config.no_desc
        );
    }
    said
}

fn alloc(console: &mut Console, words: &mut Words<'_>) -> Result<(), CommandError> {
    let count = words.number("N")?;
    let first = if words.take("after") { words.number("M")? } else { 0 };
    words.end()?;
    console.session.bench().memory().fail_allocations(first, count);
    Ok(())
}

fn knob(words: &mut Words<'_>) -> Result<Knob, CommandError> {
    let name = words.word("the QDMA's knob")?;
    let value = words.word("its value")?;
    let ps = || Ok::<u64, CommandError>(span_ns(value)?.saturating_mul(1_000));
    match (name, value) {
        ("late-payload", _) => Ok(Knob::LatePayloadPs(ps()?)),
        ("late-entry", _) => Ok(Knob::LateEntryPs(ps()?)),
        ("late-dma", _) => Ok(Knob::LateDmaAfterInvNs(span_ns(value)?)),
        ("context-busy", "ever") => Ok(Knob::ContextBusy(BusyPolls::Never)),
        ("context-busy", polls) => match polls.parse() {
            Ok(polls) => Ok(Knob::ContextBusy(BusyPolls::Count(polls))),
            Err(_) => Err(words.usage(format_args!("`{polls}` is no number of polls, nor `ever`"))),
        },
        ("no-desc", "stall") => Ok(Knob::NoDesc(NoDesc::Stall)),
        ("no-desc", "drop") => Ok(Knob::NoDesc(NoDesc::Drop)),
        _ => Err(words.usage(format_args!("the QDMA has no `{name} {value}`"))),
    }
}

fn turn(console: &mut Console, knobs: impl IntoIterator<Item = Knob>) -> Result<(), CommandError> {
    console.session.bench().card(|card| match card.qdma() {
        Some(qdma) => {
            knobs.into_iter().for_each(|knob| qdma.turn(knob));
            Ok(())
        }
        None => Err(CommandError::failed("this card has no QDMA model whose faults could be chosen")),
    })
}
