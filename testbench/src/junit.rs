//! JUnit reports, as CI systems read them. No times and no host: the same run gives the same file.

use std::fmt::{self, Write as _};
use std::io;
use std::path::Path;

/// How one check ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// As it should.
    Passed,
    /// It found something wrong: a line, and the whole text.
    Failed(String, String),
    /// It could not be made: why.
    Error(String),
    /// It was left out: why.
    Skipped(String),
}

/// One check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// What it belongs to, such as `golden`.
    pub class: String,
    /// Its name.
    pub name: String,
    /// How it ended.
    pub outcome: Outcome,
}

/// Checks that were made together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suite {
    /// Name.
    pub name: String,
    /// In the order they were made.
    pub checks: Vec<Check>,
}

impl Suite {
    /// A suite without checks.
    pub fn new(name: &str) -> Suite {
        Suite { name: name.into(), checks: Vec::new() }
    }

    /// Add a check.
    pub fn push(&mut self, class: &str, name: &str, outcome: Outcome) {
        self.checks.push(Check { class: class.into(), name: name.into(), outcome });
    }

    /// Write the report.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        std::fs::write(path, self.to_string())
    }

    fn count(&self, wanted: impl Fn(&Outcome) -> bool) -> usize {
        self.checks.iter().filter(|check| wanted(&check.outcome)).count()
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tests, failures) = (self.checks.len(), self.count(|o| matches!(o, Outcome::Failed(..))));
        let (errors, skipped) =
            (self.count(|o| matches!(o, Outcome::Error(_))), self.count(|o| matches!(o, Outcome::Skipped(_))));
        let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\"");
        writeln!(f, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        writeln!(f, "<testsuites {counts}>")?;
        writeln!(f, "  <testsuite name=\"{}\" {counts} skipped=\"{skipped}\">", escaped(&self.name))?;
        for check in &self.checks {
            write!(f, "    <testcase classname=\"{}\" name=\"{}\"", escaped(&check.class), escaped(&check.name))?;
            match &check.outcome {
                Outcome::Passed => writeln!(f, "/>")?,
                Outcome::Failed(line, text) => writeln!(
                    f,
                    ">\n      <failure message=\"{}\">{}</failure>\n    </testcase>",
                    escaped(line),
                    escaped(text)
                )?,
                Outcome::Error(why) => writeln!(f, ">\n      <error message=\"{}\"/>\n    </testcase>", escaped(why))?,
                Outcome::Skipped(why) => {
                    writeln!(f, ">\n      <skipped message=\"{}\"/>\n    </testcase>", escaped(why))?
                }
            }
        }
        writeln!(f, "  </testsuite>\n</testsuites>")
    }
}

/// Text for an attribute or an element. Characters that XML can't hold at all become U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' | '\r' => {
                let _ = write!(out, "&#{};", c as u32);
            }
            c if (c as u32) < 0x20 || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_texts() {
        let mut suite = Suite::new("golden");
        suite.push("golden", "a", Outcome::Passed);
        suite.push("golden", "b", Outcome::Failed("line 3: <hash>".into(), "x & y\n\u{1}".into()));
        suite.push("golden", "c", Outcome::Error("no \"card\"".into()));
        let text = suite.to_string();
        assert!(
            text.contains("<testsuite name=\"golden\" tests=\"3\" failures=\"1\" errors=\"1\" skipped=\"0\">"),
            "{text}"
        );
        assert!(text.contains("<failure message=\"line 3: &lt;hash&gt;\">x &amp; y&#10;\u{fffd}</failure>"), "{text}");
        assert!(text.contains("<error message=\"no &quot;card&quot;\"/>"), "{text}");
    }
}
