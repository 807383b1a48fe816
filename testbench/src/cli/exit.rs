//! How a command ends.

use std::process::ExitCode;

/// The exit codes of `onic`, for scripts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Exit {
    /// 0: everything compared agreed.
    Agreed,
    /// 4: nothing was compared, an empty capture included.
    NothingCompared,
    /// 2: bad usage, or input that is not whole or partly refused. The rest was run first.
    BadInput,
    /// 3: a tool is missing or a build failed.
    ToolMissing,
    /// 1: a difference, an RTL assertion, a hang, a memory-checker report, a broken sum, a failed check. Wins over all others.
    Difference,
}

impl Exit {
    /// The number.
    pub const fn code(self) -> u8 {
        match self {
            Exit::Agreed => 0,
            Exit::Difference => 1,
            Exit::BadInput => 2,
            Exit::ToolMissing => 3,
            Exit::NothingCompared => 4,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// An error that names its exit code and what to do about it.
#[derive(Debug)]
pub struct Failure {
    /// The code.
    pub exit: Exit,
    /// What to do, printed after `hint:`.
    pub hint: Option<String>,
    /// What went wrong, outermost step first.
    pub error: anyhow::Error,
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    /// What has no better code is bad input.
    fn from(error: E) -> Failure {
        Failure { exit: Exit::BadInput, hint: None, error: error.into() }
    }
}

impl From<crate::execute::ExecuteError> for Exit {
    fn from(error: crate::execute::ExecuteError) -> Exit {
        match error {
            crate::execute::ExecuteError::Card(_) => Exit::BadInput,
            crate::execute::ExecuteError::Build(_) => Exit::ToolMissing,
        }
    }
}

impl Failure {
    /// With another code.
    pub fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Failure {
        Failure { exit, hint: None, error: error.into() }
    }

    /// With a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// Print, and give back the code.
    pub fn printed(&self) -> Exit {
        self.print();
        self.exit
    }

    /// Print to stderr: the step, its causes, the hint.
    pub fn print(&self) {
        eprintln!("error: {}", self.error);
        self.error.chain().skip(1).for_each(|cause| eprintln!("  caused by: {cause}"));
        if let Some(hint) = &self.hint {
            eprintln!("hint: {hint}");
        }
    }
}
