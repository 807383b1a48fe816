//! The commands in their groups, for `onic --help` and for `docs/cli.md`. Both are made of the docs in `args.rs`.

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};

use super::args::Cli;

/// Groups, in the order of the help. A command's doc begins with the name of its group and a colon.
const GROUPS: [&str; 3] = ["Everyday", "Look", "Own RTL"];

/// What a group is for, in `docs/cli.md`.
const ABOUT_GROUPS: [&str; 3] = [
    "What most people need.",
    "What a card, a register, a frame or a build is like.",
    "For those who bring RTL of their own.",
];

/// The command line, its commands listed by group.
pub(super) fn command() -> Command {
    let mut command = Cli::command();
    let grouped = grouped(&command);
    let width = grouped.iter().map(|(_, name, _)| name.len()).max().unwrap_or(0);
    let mut listing = String::new();
    for group in GROUPS {
        listing += &format!("{group}:\n");
        for (_, name, about) in grouped.iter().filter(|(of, ..)| *of == group) {
            listing += &format!("  {name:<width$}  {about}\n");
        }
        listing += "\n";
    }
    for (_, name, about) in grouped {
        command = command.mut_subcommand(name, |sub| sub.about(about));
    }
    let template =
        format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{listing}Options:\n{{options}}{{after-help}}");
    command.help_template(StyledStr::from(template))
}

/// Group, name and doc of each command that is not hidden. One without a group is among the last.
fn grouped(command: &Command) -> Vec<(&'static str, String, String)> {
    let split = |sub: &Command| {
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        let found = GROUPS
            .into_iter()
            .find_map(|group| Some((group, about.strip_prefix(group)?.strip_prefix(": ")?.to_string())));
        let (group, about) = found.unwrap_or((GROUPS[GROUPS.len() - 1], about));
        let mut letters = about.chars();
        let about = letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default();
        (group, sub.get_name().to_string(), about)
    };
    command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(split).collect()
}

/// `docs/cli.md`.
pub(super) fn markdown() -> String {
    let by_group = grouped(&Cli::command());
    let mut command = command();
    command.build();
    let mut out = String::from(
        "# The command line\n\nMade by `onic markdown` from `testbench/src/cli/args.rs`; a test fails when it is stale.\n\
         `./onic` at the repository's root builds what is needed and runs `onic`.\n\n",
    );
    out += "Data go to stdout, everything else to stderr. Exit codes:\n\n| code | meaning |\n|---|---|\n\
            | 0 | everything compared agreed |\n\
            | 1 | a difference, an RTL assertion, a hang, a memory-checker report, a broken sum, a failed check |\n\
            | 2 | bad usage, or input that is not whole or partly refused (the rest is run first, and 1 wins; `--allow-skips` makes counted skips 0) |\n\
            | 3 | a tool is missing, or a build failed |\n\
            | 4 | nothing was compared, an empty capture included |\n";
    for (group, about) in GROUPS.into_iter().zip(ABOUT_GROUPS) {
        out += &format!("\n## {group}\n\n{about}\n");
        for (_, name, about) in by_group.iter().filter(|(of, ..)| *of == group) {
            if let Some(sub) = command.find_subcommand(name) {
                one(&mut out, sub, &format!("onic {name}"), about, 3);
            }
        }
    }
    out
}

/// A command and those below it.
fn one(out: &mut String, command: &Command, path: &str, about: &str, level: usize) {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    *out += &format!("\n{} `{path}`\n\n{about}.\n\n    {}\n", "#".repeat(level), usage.trim());
    let visible: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version"))
        .collect();
    if !visible.is_empty() {
        *out += "\n";
    }
    // What is named by its place comes first, as in the usage line.
    let (places, options): (Vec<&Arg>, Vec<&Arg>) = visible.into_iter().partition(|arg| arg.is_positional());
    places.into_iter().chain(options).for_each(|arg| *out += &item(arg));
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        one(out, sub, &format!("{path} {}", sub.get_name()), &about, level + 1);
    }
}

/// One argument as a line of a list.
fn item(arg: &Arg) -> String {
    let values =
        arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let name = match arg.get_long() {
        Some(long) if arg.get_action().takes_values() => format!("--{long} {values}"),
        Some(long) => format!("--{long}"),
        None => values,
    };
    let mut text = format!("- `{name}`: {}", arg.get_help().map(ToString::to_string).unwrap_or_default());
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    let choices: Vec<String> =
        arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    if arg.get_action().takes_values() && !choices.is_empty() {
        text += &format!(": {}", choices.join(", "));
    }
    if arg.get_action().takes_values() && !defaults.is_empty() {
        text += &format!(" (default {})", defaults.join(" "));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_group_and_a_line_in_the_help() {
        let help = command().render_help().to_string();
        for sub in Cli::command().get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(GROUPS.iter().any(|group| about.starts_with(&format!("{group}: "))), "{}: {about}", sub.get_name());
            assert_eq!(
                help.lines().filter(|line| line.starts_with(&format!("  {} ", sub.get_name()))).count(),
                1,
                "{help}"
            );
        }
        assert!(!help.contains("Everyday: "), "{help}");
    }

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }
}
