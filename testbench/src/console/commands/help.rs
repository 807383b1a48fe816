//! `help`: the commands, or one of them.

use super::{COMMANDS, Call, Said, Spec, find};
use crate::console::Console;

pub(super) const SPEC: Spec = Spec {
    name: "help",
    usage: &["help [COMMAND]"],
    about: "The commands, or one of them",
    more: "",
    background: false,
    run,
};

/// What holds for every line.
const LINES: &str = "\nA line may have several commands, parted by `;`. `#` begins a comment, quotes are the shell's.\n\
    `! COMMAND` must fail; `repeat N …` does the rest of the line N times; `&` at the end of replay and gen puts them\n\
    in the background. DEV is onic0, onic1, …: function 0, 1, …; onic0 if it is left out.\n";

fn run(_: &mut Console, call: &Call<'_>) -> Said {
    let mut words = call.words();
    let name = words.next();
    words.end()?;
    if let Some(name) = name {
        let spec = find(name)?;
        let usage: String = spec.usage.iter().map(|line| format!("  {line}\n")).collect();
        let more = if spec.more.is_empty() { String::new() } else { folded(spec.more) };
        return Ok(format!("{}.\n{usage}{more}", spec.about));
    }
    let width = COMMANDS.iter().map(|spec| spec.name.len()).max().unwrap_or(0);
    let line = |spec: &&Spec| format!("{:<width$}  {}\n", spec.name, spec.about);
    Ok(COMMANDS.iter().map(line).collect::<String>() + LINES)
}

/// In lines of a hundred characters at most.
fn folded(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let full = lines.last().is_some_and(|line| line.chars().count() + word.chars().count() >= 100);
        if full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            *line += if line.is_empty() { "" } else { " " };
            *line += word;
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}
