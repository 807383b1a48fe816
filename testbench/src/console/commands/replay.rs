//! `replay`: captures in at the wire.

use std::path::Path;

use anyhow::anyhow;
use regs::PortId;
use traces::golden::Case;

use super::{Call, Said, Spec};
use crate::console::{CommandError, Console, Rounds, Traffic};
use crate::input::{self, Input, Runts, Source};
use crate::shape::Pace;

pub(super) const SPEC: Spec = Spec {
    name: "replay",
    usage: &["replay FILE[@PORT]…|CASE [--pace PACE] [--times N | --loop] [--count N] [--runts pad|keep] [&]"],
    about: "Captures in at the wire",
    more: "CASE is a golden case's folder. With & it runs in the background, whenever time passes; \
           --loop goes round until `stop`. PACE: fast, line, bus, capture[:MAXGAP], or a rate in Gb/s.",
    background: true,
    run,
};

struct Asked {
    names: Vec<String>,
    pace: Option<Pace>,
    rounds: Rounds,
    count: Option<usize>,
    runts: Runts,
}

fn run(console: &mut Console, call: &Call<'_>) -> Said {
    let asked = asked(call)?;
    if asked.rounds == Rounds::Endless && !call.background {
        return Err(call.words().usage("--loop never ends: it takes & after it"));
    }
    let mut input = read(console, &asked)?;
    input.frames.truncate(asked.count.unwrap_or(usize::MAX));
    let mut said = notes(&input);
    let frames = input.frames.len();
    let pace = asked.pace.or(console.settings.pace);
    let before = (console.session.moved(), dropped(console));
    console.session.replay(Traffic { frames: input.frames.into(), pace, rounds: asked.rounds })?;
    if call.background {
        let times = match asked.rounds {
            Rounds::Times(1) => String::new(),
            Rounds::Times(times) => format!(", {times} times"),
            Rounds::Endless => ", again and again".into(),
        };
        return Ok(said + &format!("{frames} frames{times}, in the background\n"));
    }
    console.session.wait_idle()?;
    let moved = console.session.moved().since(before.0);
    said += &format!("{} frames in: {} to the host, {} to the wire", moved.wire_in, moved.host_out, moved.wire_out);
    match dropped(console) - before.1 {
        0 => {}
        dropped => said += &format!(", {dropped} dropped"),
    }
    Ok(said + "\n")
}

fn dropped(console: &mut Console) -> u64 {
    console.session.sum_by_monitors().drops.values().sum()
}

fn asked(call: &Call<'_>) -> Result<Asked, CommandError> {
    let mut words = call.words();
    let mut asked =
        Asked { names: Vec::new(), pace: None, rounds: Rounds::Times(1), count: None, runts: Runts::default() };
    while let Some(word) = words.next() {
        match word {
            "--pace" => asked.pace = Some(words.value("--pace")?),
            "--times" => asked.rounds = Rounds::Times(words.number("--times")?),
            "--loop" => asked.rounds = Rounds::Endless,
            "--count" => asked.count = Some(words.number("--count")?),
            "--runts" => match words.word("--runts")? {
                "pad" => asked.runts = Runts::Pad,
                "keep" => asked.runts = Runts::Keep,
                other => return Err(words.usage(format_args!("--runts: `{other}` is neither pad nor keep"))),
            },
            option if option.starts_with("--") => return Err(words.usage(format_args!("there is no {option}"))),
            name => asked.names.push(name.into()),
        }
    }
    if asked.names.is_empty() { Err(words.usage("FILE is missing")) } else { Ok(asked) }
}

fn read(console: &Console, asked: &Asked) -> Result<Input, CommandError> {
    let shape = &console.session.setup().shape;
    let sources = match &asked.names[..] {
        [name] if Path::new(name).join("case.toml").is_file() => case_sources(Path::new(name))?,
        names => names.iter().map(|name| Source::from(name.as_str())).collect(),
    };
    if let Some(Source { path, port }) = sources.iter().find(|source| source.port.0 >= shape.ports) {
        return Err(CommandError::failed(format!(
            "{}@{}: the card has {} port(s)",
            path.display(),
            port.0,
            shape.ports
        )));
    }
    let input = input::read(&sources, shape, asked.runts).map_err(anyhow::Error::from)?;
    match input.damage.into_iter().next() {
        // Half a capture is not what was asked for.
        Some(damage) => Err(anyhow!(damage).into()),
        None => Ok(Input { damage: Vec::new(), ..input }),
    }
}

/// A case's captures. Its other settings are not the live card's.
fn case_sources(folder: &Path) -> Result<Vec<Source>, CommandError> {
    let case = Case::load(folder).map_err(anyhow::Error::from)?;
    Ok(case.input.iter().map(|input| Source { path: folder.join(&input.file), port: PortId(input.port) }).collect())
}

/// What was left out or changed, a line a kind.
fn notes(input: &Input) -> String {
    let skips =
        input.skips.iter().map(|(kind, skip)| format!("{} packets skipped, {kind}: {}\n", skip.count, skip.first));
    let notes = input.notes.iter().map(|(note, count)| format!("{count} packets {note}\n"));
    skips.chain(notes).collect()
}
