//! The commands, one file for each or for a family. Each takes its words, acts on the session and returns what it says.

mod ethtool;
mod expect;
mod fault;
mod generate;
mod help;
mod interface;
mod ip;
mod log;
mod map;
mod quit;
mod recover;
mod regs;
mod replay;
mod set;
mod stats;
mod stop;
mod wait;

use super::options::Words;
use super::{CommandError, Console, Interface};

/// What a command returns: what it says, or why it didn't.
pub(super) type Said = Result<String, CommandError>;

/// A command of the console.
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// The forms it has, each a line.
    pub usage: &'static [&'static str],
    /// What it does, in a line.
    pub about: &'static str,
    /// What else is to be known of it; empty if that is all.
    pub more: &'static str,
    /// It may stand before `&`.
    pub background: bool,
    pub(super) run: fn(&mut Console, &Call<'_>) -> Said,
}

/// A command as it was called.
pub(super) struct Call<'a> {
    pub(super) spec: &'static Spec,
    pub(super) args: &'a [String],
    pub(super) background: bool,
}

impl<'a> Call<'a> {
    pub(super) fn words(&self) -> Words<'a> {
        Words::new(self.spec, self.args)
    }
}

/// All commands, in the order of the help.
pub static COMMANDS: [&Spec; 18] = [
    &replay::SPEC,
    &generate::SPEC,
    &ethtool::SPEC,
    &ip::SPEC,
    &interface::UP,
    &interface::DOWN,
    &wait::SPEC,
    &stop::SPEC,
    &stats::SPEC,
    &map::SPEC,
    &log::SPEC,
    &recover::SPEC,
    &regs::SPEC,
    &fault::SPEC,
    &expect::SPEC,
    &set::SPEC,
    &help::SPEC,
    &quit::SPEC,
];

/// A command by its name.
pub(super) fn find(name: &str) -> Result<&'static Spec, CommandError> {
    let found = COMMANDS.into_iter().find(|spec| spec.name == name || (name == "exit" && spec.name == "quit"));
    found.ok_or_else(|| CommandError::Usage(format!("there is no command `{name}`; help lists them")))
}

/// The interface that a word names; without a word, onic0.
fn interface_of(console: &Console, name: Option<&str>) -> Result<Interface, CommandError> {
    match name {
        None => Ok(Interface(0)),
        Some(name) => Ok(console.session.interface(name)?),
    }
}

/// A span of simulated time: a number with `ns`, `us`, `ms` or `s`; ns without.
fn span_ns(text: &str) -> Result<u64, CommandError> {
    crate::shape::parse_ns(text).map_err(|error| CommandError::Usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_name_a_usage_that_begins_with_it_and_a_line() {
        for spec in COMMANDS {
            assert!(find(spec.name).is_ok_and(|found| std::ptr::eq(found, spec)), "{}", spec.name);
            assert!(spec.usage.iter().all(|line| line.starts_with(spec.name)), "{}", spec.name);
            assert!(!spec.usage.is_empty() && !spec.about.is_empty() && spec.about.len() < 72, "{}", spec.name);
            assert!(spec.more.is_empty() || spec.more.ends_with('.'), "{}", spec.name);
        }
        assert!(find("exit").is_ok() && find("no-such").is_err());
    }
}
