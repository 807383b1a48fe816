//! `case.toml`: what is run, and which files go in.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Digest, digest};

/// Where the expected values come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Measured on upstream's RTL by others: never to be blessed.
    UpstreamMeasured,
    /// Our two cards agreed, and a person looked.
    Ours,
}

impl Origin {
    /// As it stands in `case.toml` and `expected.txt`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Origin::UpstreamMeasured => "upstream-measured",
            Origin::Ours => "ours",
        }
    }
}

/// A golden case. The settings are words of the command line, and mean what they mean there; those left out are the
/// command's defaults.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Case {
    /// What the case shows, one sentence.
    pub about: String,
    /// Where the expected values come from.
    pub origin: Origin,
    /// `--shape`.
    pub shape: String,
    /// `--rss-key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_key: Option<String>,
    /// `--rss-table`: `equal N`, `weight …`, or the 128 entries separated by commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_table: Option<String>,
    /// `--rss-hash`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_hash: Option<String>,
    /// `--pace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<String>,
    /// `--runts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runts: Option<String>,
    /// `--stalls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<String>,
    /// `--xdp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xdp: Option<String>,
    /// `--seed`.
    pub seed: u64,
    /// Captures that go in, one for each port.
    pub input: Vec<Input>,
}

/// A capture that goes in at a port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Input {
    /// Port, first 0.
    pub port: u8,
    /// File name in the case's folder.
    pub file: String,
    /// Packets in it.
    pub frames: u64,
    /// [`digest`] of the file, so that a changed input is told as such and not as a card's fault.
    pub digest: String,
}

/// Why a case could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// A file of the case is not there or can't be read.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// `case.toml` says something that no case can.
    #[error("{}: {reason}", path.display())]
    Toml {
        /// Which.
        path: PathBuf,
        /// The parser's message, with line and column.
        reason: String,
    },
    /// An input is not the one that the expected values were made for.
    #[error("{}: its digest is {got}, case.toml says {expected}. Restore the file, or make the case anew with `onic golden new`", path.display())]
    InputChanged {
        /// Which.
        path: PathBuf,
        /// As in `case.toml`.
        expected: String,
        /// Of the file.
        got: Digest,
    },
}

impl Case {
    /// Reads `case.toml` in a case's folder, and checks the inputs' digests.
    ///
    /// # Errors
    /// A file is missing, damaged or changed.
    pub fn load(folder: &Path) -> Result<Self, CaseError> {
        let path = folder.join("case.toml");
        let text = fs::read_to_string(&path).map_err(|source| CaseError::File { path: path.clone(), source })?;
        let case = Self::parse(&text).map_err(|reason| CaseError::Toml { path: path.clone(), reason })?;
        for input in &case.input {
            let path = folder.join(&input.file);
            let bytes = fs::read(&path).map_err(|source| CaseError::File { path: path.clone(), source })?;
            let got = digest(&bytes);
            if got.to_string() != input.digest {
                return Err(CaseError::InputChanged { path, expected: input.digest.clone(), got });
            }
        }
        Ok(case)
    }

    /// # Errors
    /// The text is no TOML, a key is unknown or missing, or the inputs don't make sense.
    pub fn parse(text: &str) -> Result<Self, String> {
        let case: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        if case.input.is_empty() {
            return Err("a case needs at least one [[input]]".to_owned());
        }
        for (at, input) in case.input.iter().enumerate() {
            let outside = Path::new(&input.file).components().count() != 1 || input.file == "..";
            if outside {
                return Err(format!("input file `{}` must lie in the case's folder", input.file));
            }
            if case.input[..at].iter().any(|other| other.port == input.port) {
                return Err(format!("port {} has two inputs", input.port));
            }
        }
        Ok(case)
    }

    /// The text of `case.toml`: keys in the order of the struct, so that two cases differ only where they do.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = format!(
            "about = {}\norigin = {}\nshape = {}\n",
            quoted(&self.about),
            quoted(self.origin.name()),
            quoted(&self.shape)
        );
        let settings = [
            ("rss-key", &self.rss_key),
            ("rss-table", &self.rss_table),
            ("rss-hash", &self.rss_hash),
            ("pace", &self.pace),
            ("runts", &self.runts),
            ("stalls", &self.stalls),
            ("xdp", &self.xdp),
        ];
        for (name, value) in settings {
            if let Some(value) = value {
                text += &format!("{name} = {}\n", quoted(value));
            }
        }
        text += &format!("seed = {}\n", self.seed);
        for input in &self.input {
            text += &format!(
                "\n[[input]]\nport = {}\nfile = {}\nframes = {}\ndigest = {}\n",
                input.port,
                quoted(&input.file),
                input.frames,
                quoted(&input.digest)
            );
        }
        text
    }
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\u{:04x}", c as u32),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// The case folders in `root`, by name.
///
/// # Errors
/// `root` can't be listed.
pub fn list(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        if path.join("case.toml").is_file() {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case() -> Case {
        Case {
            about: "A \"quoted\" \\ sentence\non two lines.".to_owned(),
            origin: Origin::Ours,
            shape: "1x1,queues=8".to_owned(),
            rss_key: Some("0x00".to_owned()),
            rss_table: None,
            rss_hash: None,
            pace: Some("fast".to_owned()),
            runts: None,
            stalls: None,
            xdp: None,
            seed: 7,
            input: vec![Input { port: 0, file: "input.pcap".to_owned(), frames: 3, digest: "0".to_owned() }],
        }
    }

    #[test]
    fn text_and_back() {
        assert_eq!(Case::parse(&case().to_toml()), Ok(case()));
    }

    #[test]
    fn what_no_case_can_say_is_refused() {
        let text = case().to_toml();
        for (from, to, why) in [
            ("seed = 7", "sede = 7", "unknown field `sede`"),
            ("origin = \"ours\"", "origin = \"hearsay\"", "unknown variant `hearsay`"),
            ("input.pcap", "../input.pcap", "must lie in the case's folder"),
            ("[[input]]", "[[inputs]]", "unknown field `inputs`"),
        ] {
            let error = Case::parse(&text.replace(from, to)).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
