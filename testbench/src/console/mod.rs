//! `onic console` as a library: one live card, commands a line at a time, what they say as text.
//!
//! | file | concern |
//! |---|---|
//! | `session` | the card, its drivers, time: what commands act on |
//! | `traffic`, `wire_fault` | frames on their way to the wire, and what befalls them there |
//! | `parse` | a line into words |
//! | `options` | words into settings, so that each command reads its own the same way |
//! | `commands` | one file for each command, or family of commands |
//!
//! What commands of `ethtool` and `ip` print is laid out as those tools do, so that scripts written for them can read
//! it.

mod commands;
mod options;
mod parse;
mod session;
mod traffic;
mod wire_fault;

use crate::shape::Pace;

pub use commands::{COMMANDS, Spec};
pub use parse::{ParseError, Statement, parse};
pub use session::{Interface, Moved, Record, Report, Session, SessionError};
pub use traffic::{Rounds, Traffic};
pub use wire_fault::{WireFault, WireFaults};

/// A command that did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The line is no command, or not with these words. Nothing was done.
    #[error("{0}")]
    Usage(String),
    /// The card, the driver or an input refused, or a check did not hold.
    #[error(transparent)]
    Failed(#[from] anyhow::Error),
}

impl From<ParseError> for CommandError {
    fn from(error: ParseError) -> CommandError {
        CommandError::Usage(error.to_string())
    }
}

impl From<SessionError> for CommandError {
    fn from(error: SessionError) -> CommandError {
        CommandError::Failed(error.into())
    }
}

impl CommandError {
    /// A check that did not hold, or something refused, in a sentence.
    fn failed(why: impl Into<String>) -> CommandError {
        CommandError::Failed(anyhow::anyhow!(why.into()))
    }

    /// With its causes, on one line.
    pub fn in_full(&self) -> String {
        match self {
            CommandError::Usage(why) => why.clone(),
            CommandError::Failed(error) => {
                // A cause that its error tells already is not told twice.
                error.chain().map(ToString::to_string).fold(String::new(), |mut text, cause| {
                    if !text.ends_with(&cause) {
                        text += if text.is_empty() { "" } else { ": " };
                        text += &cause;
                    }
                    text
                })
            }
        }
    }
}

/// A command as it failed: what was typed, and why.
#[derive(Debug, thiserror::Error)]
#[error("{text}: {}", .cause.in_full())]
pub struct LineError {
    /// The command, of a line that may have several.
    pub text: String,
    /// Why.
    pub cause: CommandError,
}

/// What `set` sets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// When replayed frames start, unless a replay says otherwise.
    pub pace: Option<Pace>,
    /// JSON in place of text, from the commands that have it.
    pub json: bool,
}

/// Where what commands say goes, as they say it.
pub type Out<'a> = &'a mut dyn FnMut(&str);

/// Is there more to come?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Yes.
    Go,
    /// `quit`.
    Quit,
}

/// A session and the settings that commands share.
pub struct Console {
    /// The card.
    pub session: Session,
    /// What `set` sets.
    pub settings: Settings,
    quit: bool,
}

impl Console {
    /// A console on a live card.
    pub fn new(session: Session) -> Console {
        Console { session, settings: Settings::default(), quit: false }
    }

    /// Run a line.
    ///
    /// # Errors
    /// [`LineError`] of the first command that fails; those after it are not run.
    pub fn line(&mut self, line: &str, out: Out<'_>) -> Result<Next, LineError> {
        let statements = parse(line).map_err(|error| LineError { text: line.trim().into(), cause: error.into() })?;
        self.statements(&statements, out)?;
        Ok(if self.quit { Next::Quit } else { Next::Go })
    }

    fn statements(&mut self, statements: &[Statement], out: Out<'_>) -> Result<(), LineError> {
        for statement in statements {
            match statement {
                _ if self.quit => break,
                Statement::Repeat { times, body } => (1..=*times)
                    .try_for_each(|round| self.statements(body, out).map_err(|error| in_round(error, round, *times)))?,
                Statement::Run { text, words, background, negated } => {
                    let called = self.call(words, *background);
                    let said = if *negated { refusal(called) } else { called };
                    out(&said.map_err(|cause| LineError { text: text.clone(), cause })?);
                }
            }
        }
        Ok(())
    }

    fn call(&mut self, words: &[String], background: bool) -> Result<String, CommandError> {
        let (name, args) = words.split_first().map_or(("", &[][..]), |(name, args)| (name.as_str(), args));
        let spec = commands::find(name)?;
        if background && !spec.background {
            return Err(CommandError::Usage(format!("{name} can't run in the background; replay and gen can")));
        }
        let call = commands::Call { spec, args, background };
        (spec.run)(self, &call)
    }
}

/// Of a command that must fail: why it did.
fn refusal(called: Result<String, CommandError>) -> Result<String, CommandError> {
    match called {
        Err(CommandError::Failed(error)) => {
            Ok(format!("refused, as it must: {}\n", CommandError::Failed(error).in_full()))
        }
        // A typing error must not look like the refusal that was wanted.
        Err(usage) => Err(usage),
        Ok(_) => Err(CommandError::failed("must fail (`!`), but did not")),
    }
}

fn in_round(error: LineError, round: u64, times: u64) -> LineError {
    LineError { text: format!("round {round} of {times}: {}", error.text), cause: error.cause }
}
