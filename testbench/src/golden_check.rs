//! Golden cases checked: each card's facts held against `expected.txt`, and the cards against each other.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use traces::golden::{Expected, GoldenDifference, Origin, compare, list};

use crate::card::Choice;
use crate::execute::ExecuteError;
use crate::golden::{self, Loaded};
use crate::session::{self, Progress, Session, Side, Verdict};

/// Cases that come with the repository, from its root.
pub const CASES: &str = "traces/golden";

/// A case that was run on both cards.
#[derive(Debug)]
pub struct Ran {
    /// The case.
    pub loaded: Loaded,
    /// What the cards did, and what differs between them.
    pub verdict: Verdict,
    /// The cards' facts: of the one under test, and of the model.
    pub facts: [(String, Expected); 2],
}

/// What a case's `expected.txt` says, and what does not agree with it.
#[derive(Debug)]
pub struct Checked {
    /// The case, run.
    pub ran: Ran,
    /// Differences, each with the card that shows it.
    pub differences: Vec<(String, GoldenDifference)>,
}

impl Checked {
    /// Both cards did what is expected, and the same.
    pub fn passed(&self) -> bool {
        self.differences.is_empty() && self.ran.verdict.agreed()
    }
}

/// Why a case could not be checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The case can't be read, or an input is not the one it was made for.
    #[error("{0:#}")]
    Load(anyhow::Error),
    /// A card can't be had.
    #[error(transparent)]
    Card(#[from] ExecuteError),
    /// There is no expected result yet.
    #[error("{}: there is no expected.txt", folder.display())]
    NotBlessed {
        /// The case.
        folder: PathBuf,
    },
    /// The expected result is none that a run could have written.
    #[error("{}: {reason}", path.display())]
    Expected {
        /// The file.
        path: PathBuf,
        /// Where and why.
        reason: String,
    },
}

/// Where a case's expected result is.
pub fn expected_path(folder: &Path) -> PathBuf {
    folder.join("expected.txt")
}

/// The cases named, or all in [`CASES`] if none are. A folder of cases stands for all in it.
///
/// # Errors
/// A folder can't be listed, or holds no case.
pub fn cases(named: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let all = [PathBuf::from(CASES)];
    let mut found = Vec::new();
    for folder in if named.is_empty() { &all[..] } else { named } {
        if folder.join("case.toml").is_file() {
            found.push(folder.clone());
            continue;
        }
        let inside =
            list(folder).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?;
        if inside.is_empty() {
            let text = format!("{}: neither a golden case nor a folder of them", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        found.extend(inside);
    }
    Ok(found)
}

/// Run a case on `card` and on the model.
///
/// # Errors
/// [`CheckError::Load`], [`CheckError::Card`].
pub fn run(folder: &Path, card: &Choice, progress: Progress<'_>) -> Result<Ran, CheckError> {
    let loaded = golden::load(folder).map_err(CheckError::Load)?;
    if !loaded.input.is_whole() {
        let why = loaded
            .input
            .skips
            .values()
            .map(|skip| skip.first.clone())
            .chain(loaded.input.damage.iter().map(ToString::to_string));
        return Err(CheckError::Load(anyhow::anyhow!(
            "a case's input must be whole: {}",
            why.collect::<Vec<_>>().join("; ")
        )));
    }
    let verdict = session::run(&session(&loaded, card), progress)?;
    let functions = loaded.setup.shape.functions;
    let facts = |side: &Side| {
        (side.outcome.card.clone(), golden::facts(&side.outcome, &loaded.input.frames, functions, loaded.case.origin))
    };
    // A session against a card always gives both sides.
    let facts = [facts(&verdict.got), facts(verdict.against.as_ref().unwrap_or(&verdict.got))];
    Ok(Ran { loaded, verdict, facts })
}

/// The session of a case.
pub fn session<'a>(loaded: &'a Loaded, card: &Choice) -> Session<'a> {
    let with_case = |mut card: Choice| {
        golden::apply(loaded, &mut card);
        card
    };
    Session {
        card: with_case(card.clone()),
        against: Some(with_case(Choice::named("model"))),
        setup: loaded.setup.clone(),
        wire: &loaded.input.frames,
        host: &[],
    }
}

/// Read a case's expected result.
///
/// # Errors
/// [`CheckError::NotBlessed`], [`CheckError::Expected`].
pub fn expected(folder: &Path, origin: Origin) -> Result<Expected, CheckError> {
    let path = expected_path(folder);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(CheckError::NotBlessed { folder: folder.into() });
        }
        Err(error) => return Err(CheckError::Expected { path, reason: error.to_string() }),
    };
    let fail = |reason: String| CheckError::Expected { path: path.clone(), reason };
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        Err(error) => {
            let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count();
            return Err(fail(format!("line {line}: not UTF-8")));
        }
    };
    let expected = Expected::parse(text).map_err(|error| fail(error.to_string()))?;
    if expected.origin != origin {
        return Err(fail(format!("line 1: origin {}, and case.toml says {}", expected.origin.name(), origin.name())));
    }
    Ok(expected)
}

/// Run a case and hold both cards against its expected result.
///
/// # Errors
/// [`CheckError`].
pub fn check(folder: &Path, card: &Choice, progress: Progress<'_>) -> Result<Checked, CheckError> {
    let ran = run(folder, card, progress)?;
    let expected = expected(folder, ran.loaded.case.origin)?;
    // A difference that both cards show is one.
    let mut differences: Vec<(String, GoldenDifference)> = Vec::new();
    for (card, facts) in &ran.facts {
        for difference in compare(&expected, facts) {
            match differences.iter_mut().find(|(_, known)| *known == difference) {
                Some((cards, _)) if cards == card => {}
                Some((cards, _)) => *cards = format!("{cards} and {card}"),
                None => differences.push((card.clone(), difference)),
            }
        }
    }
    Ok(Checked { ran, differences })
}

impl CheckError {
    /// The case's input is not the one that its result was made for, or can't be read; the cards are not at fault.
    pub fn is_input(&self) -> bool {
        matches!(self, CheckError::Load(_))
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            CheckError::NotBlessed { folder } => Some(format!("onic golden bless {} --reason WHY", folder.display())),
            _ => None,
        }
    }
}
