//! From options to a session: cards, settings, input.

use std::path::Path;

use anyhow::{Context, anyhow};
use models::shell::Profile;
use regs::PortId;

use super::args::{CardArgs, HashArg, ProfileArg, RuntsArg};
use super::exit::{Exit, Failure};
use crate::card::{Choice, Knobs, RtlChoice, Shape};
use crate::execute::ExecuteError;
use crate::golden;
use crate::input::{self, Input, Runts, Source};
use crate::run::{HostProfile, Setup};
use crate::shape::TableSpec;

/// Settings and cards of a command.
pub(super) struct Cards {
    pub(super) card: Choice,
    pub(super) against: Option<Choice>,
    pub(super) setup: Setup,
}

/// Settings and cards from options.
pub(super) fn cards(args: &CardArgs) -> Result<Cards, Failure> {
    if args.rss_hash == HashArg::Microsoft {
        let error = anyhow!("no card here hashes as Microsoft published it; OpenNIC's hash is `opennic`");
        return Err(Failure::from(error).hint("onic hash computes both functions for a tuple or a frame"));
    }
    let rss_table = args.rss_table.as_ref().map(TableSpec::table).transpose().context("--rss-table")?;
    let setup = Setup {
        shape: args.shape.clone(),
        rss_key: args.rss_key.as_deref().map(golden::parse_key).transpose()?,
        rss_table,
        pace: args.pace,
        host: HostProfile { packet_ns: args.host_ns, ..HostProfile::default() },
        hang_cycles: args.hang_cycles,
        check_memory: !args.no_memory_checks,
        ..Setup::default()
    };
    refuse_deaf_alarms(args)?;
    let knobs = knobs(args)?;
    let against = (args.against != "none").then(|| choice(&args.against, args, knobs, false));
    Ok(Cards { card: choice(&args.card, args, knobs, true), against, setup })
}

/// An alarm that can't ring would look like one that had nothing to say.
fn refuse_deaf_alarms(args: &CardArgs) -> Result<(), Failure> {
    if let Some(fault) = args.rtl_fault
        && !(1..=6).contains(&fault)
        && !((11..=20).contains(&fault) && args.card == "rtl")
    {
        let error = anyhow!("--rtl-fault {fault}: the shell has faults 1 to 6, the engine of card `rtl` has 11 to 20");
        return Err(Failure::from(error).hint("--card rtl --against model"));
    }
    let asked = [("--tap", args.tap.is_some()), ("--rtl-fault", args.rtl_fault.is_some())];
    match asked.into_iter().find(|(_, given)| *given && args.card == "model") {
        None => Ok(()),
        Some((option, _)) => {
            let error = anyhow!("{option} breaks the RTL of the card under test, and card `model` has none");
            Err(Failure::from(error).hint("--card hybrid --against model"))
        }
    }
}

/// What `--set` says. A knob that no card of the command has would change nothing.
fn knobs(args: &CardArgs) -> Result<Knobs, Failure> {
    if !args.settings.is_empty() && ![&args.card, &args.against].contains(&&"rtl".to_string()) {
        let error = anyhow!("--set turns knobs of card `rtl`, and this runs on {} and {}", args.card, args.against);
        return Err(Failure::from(error).hint("--card rtl"));
    }
    Ok(Knobs::from_settings(args.settings.iter().map(String::as_str)).context("--set")?)
}

fn choice(name: &str, args: &CardArgs, knobs: Knobs, under_test: bool) -> Choice {
    let profile = match args.profile {
        ProfileArg::Corrected => Profile::Corrected,
        ProfileArg::Upstream => Profile::Upstream,
    };
    let rtl = RtlChoice {
        seed: args.seed,
        stalls: args.stalls.clone(),
        tap: args.tap.clone().filter(|_| under_test),
        fault: args.rtl_fault.filter(|_| under_test),
        hang_cycles: Some(args.hang_cycles),
        knobs,
        ..RtlChoice::default()
    };
    Choice { name: name.into(), profile, rtl }
}

/// Captures by name.
pub(super) fn input(names: &[String], args: &CardArgs) -> Result<Input, Failure> {
    let sources: Vec<Source> = names.iter().map(|name| Source::from(name.as_str())).collect();
    check_ports(&sources, &args.shape)?;
    if let Some(folder) = sources.iter().map(|source| &source.path).find(|path| path.is_dir()) {
        let error = anyhow!("{}: a folder, not a capture", folder.display());
        let hint = if folder.join("case.toml").is_file() {
            "a golden case is replayed alone"
        } else {
            "a golden case's folder has a case.toml"
        };
        return Err(Failure::from(error).hint(hint));
    }
    let runts = if args.runts == RuntsArg::Pad { Runts::Pad } else { Runts::Keep };
    Ok(input::read(&sources, &args.shape, runts)?)
}

/// Refuse ports that a shape has not.
pub(super) fn check_ports(sources: &[Source], shape: &Shape) -> Result<(), Failure> {
    match sources.iter().find(|source| source.port.0 >= shape.ports) {
        None => Ok(()),
        Some(Source { path, port: PortId(port) }) => {
            let error = anyhow!("{}@{port}: the card has {} port(s)", path.display(), shape.ports);
            let hint = if *port == 1 { "--shape 2x2 has ports 0 and 1" } else { "a card's ports are 0 and 1" };
            Err(Failure::new(Exit::BadInput, error).hint(hint))
        }
    }
}

/// A card that can't be had, with what to do about it.
pub(super) fn no_card(error: ExecuteError) -> Failure {
    let hint =
        matches!(error, ExecuteError::Build(_)).then_some("--card model needs neither Verilator nor a C++ compiler");
    let text = error.to_string();
    let failure = Failure::new(Exit::from(error), anyhow!(text));
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// A golden case's folder, if that is what the only input is.
pub(super) fn case_folder(names: &[String]) -> Option<&Path> {
    match names {
        [name] => Some(Path::new(name)).filter(|path| path.join("case.toml").is_file()),
        _ => None,
    }
}
