//! `onic reduce`: the least part of a failing capture that still fails.

use anyhow::{Context, anyhow};

use super::args::ReduceArgs;
use super::exit::{Exit, Failure};
use super::progress::Progress;
use super::repro::Repro;
use super::{load, report};
use crate::failure;
use crate::golden::{self, Loaded};
use crate::reduce::Budget;
use crate::run::Setup;
use crate::session::{self, Session};

pub(super) fn run(args: &ReduceArgs) -> Result<Exit, Failure> {
    let mut cards = load::cards(&args.card)?;
    let mut case = None;
    let input = match load::case_folder(&args.inputs) {
        Some(folder) => {
            let mut loaded = golden::load(folder)?;
            golden::apply(&loaded, &mut cards.card);
            if let Some(card) = &mut cards.against {
                golden::apply(&loaded, card);
            }
            let Setup { host, hang_cycles, check_memory, .. } = cards.setup;
            cards.setup = Setup { host, hang_cycles, check_memory, ..loaded.setup.clone() };
            let input = std::mem::take(&mut loaded.input);
            case = Some(loaded);
            input
        }
        None => load::input(&args.inputs, &args.card)?,
    };
    report::input_lines(&input).iter().for_each(|line| eprintln!("{line}"));
    let session =
        Session { card: cards.card, against: cards.against, setup: cards.setup, wire: &input.frames, host: &[] };
    let mut progress = Progress::new();
    let verdict =
        session::run(&session, &mut |card, done, total| progress.at(card, done, total)).map_err(load::no_card)?;
    let Some(first) = verdict.findings.first() else {
        progress.finish();
        eprintln!("note: these {} frames do not fail: nothing to reduce", input.frames.len());
        return Ok(Exit::NothingCompared);
    };
    eprintln!("note: looking for the least input that fails so: {}", first.text);
    let budget = Budget { runs: args.runs, ..Budget::COMMAND };
    let reduced = failure::reduce(&session, &verdict, budget, &mut |run, _| progress.at("reducing", run, args.runs));
    progress.finish();
    let reduced = reduced.ok_or_else(|| anyhow!("this failure is about the whole input"))?;
    let names = failure::save_input(&args.out, &reduced.frames).with_context(|| args.out.display().to_string())?;
    let least = if reduced.least {
        "none of them can be left out"
    } else {
        "the runs ended before it was the least; --runs allows more"
    };
    println!("{} of {} frames, {} runs: {least}", reduced.frames.len(), input.frames.len(), reduced.runs);
    println!("{}", replay(case.as_ref(), args, names));
    // It fails still, and that is what was asked for; but scripts must not take a failing input for a good one.
    Ok(Exit::Difference)
}

fn replay(case: Option<&Loaded>, args: &ReduceArgs, names: Vec<String>) -> Repro {
    let repro = Repro::of_this_process().for_command(&["replay"]).without(&["out", "runs"]).on(names);
    let repro = repro.or_set("card", &args.card.card).or_set("against", &args.card.against);
    match case {
        Some(case) => super::failing::with_settings(repro, case),
        None => repro.set("seed", args.card.seed.to_string()),
    }
}
