//! The command that makes a failing run happen again, whole and ready to paste.
//!
//! It is rebuilt from what was typed: each option that was given, by its long name, in the order of the help; then what has
//! to be set for one run out of many, or taken away because it only names an output.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// A command line of `onic`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Repro {
    program: String,
    words: Vec<String>,
    options: Vec<(String, Option<String>)>,
    inputs: Vec<String>,
}

impl Repro {
    /// What this process was started with.
    pub(super) fn of_this_process() -> Repro {
        Repro::of(&super::command(), std::env::args_os().collect())
    }

    /// `words` with nothing after them, for the program that this is.
    pub(super) fn command(words: &[&str]) -> Repro {
        let first = std::env::args_os().next();
        let words = words.iter().map(ToString::to_string).collect();
        Repro { program: program(first.as_ref()), words, options: Vec::new(), inputs: Vec::new() }
    }

    fn of(command: &Command, args: Vec<OsString>) -> Repro {
        let mut repro =
            Repro { program: program(args.first()), words: Vec::new(), options: Vec::new(), inputs: Vec::new() };
        let mut command = command.clone();
        command.build();
        if let Ok(matches) = command.clone().try_get_matches_from(args) {
            repro.add(&command, &matches);
        }
        repro
    }

    fn add(&mut self, command: &Command, matches: &ArgMatches) {
        for arg in command.get_arguments() {
            let id = arg.get_id().as_str();
            if matches.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            let values = matches.get_raw(id).into_iter().flatten().map(|value| value.to_string_lossy().into_owned());
            match arg.get_long() {
                None => self.inputs.extend(values),
                Some(long) if arg.get_action().takes_values() => {
                    values.for_each(|value| self.options.push((long.into(), Some(value))))
                }
                Some(long) => self.options.push((long.into(), None)),
            }
        }
        if let Some((name, matches)) = matches.subcommand()
            && let Some(command) = command.find_subcommand(name)
        {
            self.words.push(name.into());
            self.add(command, matches);
        }
    }

    /// The first of these options that was given.
    pub(super) fn given<'a>(&self, names: &[&'a str]) -> Option<&'a str> {
        names.iter().copied().find(|name| self.options.iter().any(|(known, _)| known == name))
    }

    /// With an option, in place of any of that name.
    pub(super) fn set(mut self, name: &str, value: impl Into<String>) -> Repro {
        let value = Some(value.into());
        match self.options.iter_mut().find(|(known, _)| known == name) {
            Some(option) => option.1 = value,
            None => self.options.push((name.into(), value)),
        }
        self
    }

    /// With an option, unless it is there.
    pub(super) fn or_set(self, name: &str, value: impl Into<String>) -> Repro {
        if self.options.iter().any(|(known, _)| known == name) { self } else { self.set(name, value) }
    }

    /// Without options that change nothing of the run, or that this one run has no use for.
    pub(super) fn without(mut self, names: &[&str]) -> Repro {
        self.options.retain(|(name, _)| !names.contains(&name.as_str()));
        self
    }

    /// For these inputs.
    pub(super) fn on(mut self, inputs: Vec<String>) -> Repro {
        self.inputs = inputs;
        self
    }

    /// For another command.
    pub(super) fn for_command(mut self, words: &[&str]) -> Repro {
        self.words = words.iter().map(ToString::to_string).collect();
        self
    }
}

impl fmt::Display for Repro {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quoted(&self.program))?;
        self.words.iter().chain(&self.inputs).try_for_each(|word| write!(f, " {}", quoted(word)))?;
        for (name, value) in &self.options {
            match value {
                // An option's value may begin with a dash, and then only this form is read back.
                Some(value) if value.starts_with('-') => write!(f, " --{name}={}", quoted(value))?,
                Some(value) => write!(f, " --{name} {}", quoted(value))?,
                None => write!(f, " --{name}")?,
            }
        }
        Ok(())
    }
}

/// The script at the repository's root where that is the current folder, else the program as it was called.
fn program(first: Option<&OsString>) -> String {
    if Path::new("onic").is_file() {
        return "./onic".into();
    }
    first.map_or_else(|| "onic".into(), |first| first.to_string_lossy().into_owned())
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@,+%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program's name depends on the folder; what follows it does not.
    fn of(line: &[&str]) -> Repro {
        let repro = Repro::of(&super::super::command(), line.iter().map(OsString::from).collect());
        Repro { program: "onic".into(), ..repro }
    }

    #[test]
    fn what_was_typed_comes_back() {
        let typed = ["onic", "replay", "a b.pcap@1", "--rss-table", "equal 3", "--seeds=1..9", "--json", "--shape=2x2"];
        let repro = of(&typed)
            .without(&["seeds", "jobs", "json"])
            .set("seed", "4")
            .or_set("card", "model")
            .or_set("shape", "1x1");
        assert_eq!(
            repro.to_string(),
            "onic replay 'a b.pcap@1' --shape 2x2 --rss-table 'equal 3' --seed 4 --card model"
        );
    }

    #[test]
    fn what_comes_back_parses_to_the_same() {
        let typed = ["onic", "golden", "check", "it's/here", "--card", "model", "--json"];
        let repro = of(&typed);
        assert_eq!(repro.to_string(), r"onic golden check 'it'\''s/here' --card model --json");
        assert_eq!(of(&["onic", "golden", "check", "it's/here", "--card", "model", "--json"]), repro);
    }
}
