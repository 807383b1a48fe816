//! The steps that call other commands: formatting, lints, docs, RTL lint, tests, goldens, licences, repository hygiene.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail, ensure};

/// Licences that a dependency may carry. Each is permissive, so that a user's own tree stays free.
const LICENCES: [&str; 12] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "Unlicense",
    "0BSD",
    "CC0-1.0",
    "BSL-1.0",
];

/// `--require`: what a step lacks is an error, not a reason to skip.
static REQUIRE: AtomicBool = AtomicBool::new(false);

/// From now on a step that lacks its tools fails.
pub fn set_require() {
    REQUIRE.store(true, Ordering::Relaxed);
}

/// Does a step that lacks its tools fail?
pub fn require() -> bool {
    REQUIRE.load(Ordering::Relaxed)
}

/// The workspace's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_path_buf()
}

/// Run a command at the root; its output is the user's.
fn run(program: &str, args: &[&str]) -> Result<()> {
    eprintln!("ci: {program} {}", args.join(" "));
    let status = Command::new(program)
        .args(args)
        .current_dir(root())
        .status()
        .with_context(|| format!("{program} does not start"))?;
    ensure!(status.success(), "{program} {} ended with {status}", args.join(" "));
    Ok(())
}

/// cargo with the environment that denies warnings.
pub fn cargo(args: &[&str], env: &[(&str, &str)]) -> Result<()> {
    eprintln!("ci: cargo {}", args.join(" "));
    let mut command = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    let status =
        command.args(args).envs(env.iter().copied()).current_dir(root()).status().context("cargo does not start")?;
    ensure!(status.success(), "cargo {} ended with {status}", args.join(" "));
    Ok(())
}

/// Formatting, and the shell script.
pub fn fmt() -> Result<()> {
    cargo(&["fmt", "--all", "--", "--check"], &[])?;
    run("sh", &["-n", "onic"])?;
    if Command::new("shellcheck").arg("--version").output().is_ok() {
        run("shellcheck", &["onic", ".ci/run"])?;
    } else {
        eprintln!("ci: skipped: shellcheck is not installed");
    }
    Ok(())
}

/// The whole workspace but the oracle, which needs libelf and has a step of its own.
const MEMBERS: [&str; 3] = ["--workspace", "--exclude", "xdp-oracle"];

/// Clippy over everything, warnings denied; and what builds without Verilator and a C++ compiler.
pub fn clippy() -> Result<()> {
    let args = [&["clippy", "--release", "--locked"], &MEMBERS[..], &["--all-targets", "--", "-D", "warnings"]];
    cargo(&args.concat(), &[])?;
    let without_rtl = [
        "clippy",
        "--release",
        "--locked",
        "-p",
        "testbench",
        "--no-default-features",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    cargo(&without_rtl, &[("VERILATOR_ROOT", "/nonexistent"), ("CXX", "/nonexistent")])
}

/// rustdoc, warnings denied.
pub fn docs() -> Result<()> {
    let args = [&["doc", "--release", "--locked"], &MEMBERS[..], &["--no-deps"]];
    cargo(&args.concat(), &[("RUSTDOCFLAGS", "-D warnings")])
}

/// Verilator's lint over every shape, at its strictest.
pub fn lint() -> Result<()> {
    cargo(&["test", "--release", "--locked", "-q", "-p", "rtl-bridge", "--test", "lint"], &[])
}

/// Unit, property and doc tests of every member.
pub fn test() -> Result<()> {
    cargo(&[&["test", "--release", "--locked"], &MEMBERS[..]].concat(), &[])
}

/// Every order of events on driver-core's atomics. In a target folder of its own, or its flag would rebuild everything.
pub fn loom() -> Result<()> {
    let args = ["test", "--release", "--locked", "-q", "-p", "driver-core", "--test", "loom_recycle"];
    cargo(&[&args[..], &["--target-dir", "target/loom"]].concat(), &[("RUSTFLAGS", "--cfg loom")])
}

/// Golden cases on both cards.
pub fn golden() -> Result<()> {
    run("./onic", &["golden", "check"])
}

/// The speed targets, in half a minute.
pub fn bench() -> Result<()> {
    run("./onic", &["bench", "replay", "--quick", "--check"])
}

/// `docs/cli.md` is what the command prints.
pub fn cli_docs(check: bool) -> Result<()> {
    let output =
        Command::new("./onic").arg("markdown").current_dir(root()).output().context("./onic does not start")?;
    ensure!(output.status.success(), "./onic markdown failed: {}", String::from_utf8_lossy(&output.stderr));
    let path = root().join("docs/cli.md");
    if !check {
        return std::fs::write(&path, &output.stdout).with_context(|| path.display().to_string());
    }
    let committed = std::fs::read(&path).with_context(|| path.display().to_string())?;
    ensure!(committed == output.stdout, "docs/cli.md is stale: run `cargo run -p ci -- cli-docs`");
    Ok(())
}

/// Every dependency's licence, from cargo's own metadata.
pub fn licences() -> Result<()> {
    let args = ["metadata", "--format-version", "1", "--locked"];
    let output = Command::new("cargo").args(args).current_dir(root()).output().context("cargo does not start")?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).context("cargo metadata is no JSON")?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !package["license"].as_str().is_some_and(permitted))
        .map(|package| format!("{} {}: {}", package["name"], package["version"], package["license"]))
        .collect();
    ensure!(refused.is_empty(), "licences that are not on the list:\n{}", refused.join("\n"));
    eprintln!("ci: {} packages, all licences permitted", packages.len());
    if Command::new("cargo-deny").arg("--version").output().is_ok() {
        run("cargo-deny", &["deny", "check", "bans", "licenses", "sources"])?;
    }
    Ok(())
}

/// Some alternative of an SPDX expression is permitted: OR between groups, AND within.
fn permitted(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    // A parenthesised group such as `(MIT OR Apache-2.0) AND Unicode-3.0` needs each part permitted.
    expression.split(" AND ").all(|part| {
        part.trim_matches(['(', ')', ' '])
            .split(" OR ")
            .any(|name| LICENCES.contains(&name.trim_matches(['(', ')', ' '])))
    })
}

/// No path of one machine and no registry host in a committed file.
pub fn hygiene() -> Result<()> {
    let files =
        Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output().context("git does not start")?;
    // Split so that this list does not find itself.
    let forbidden: Vec<String> = [
        ["/wo", "rk/"],
        ["/ro", "ot/"],
        ["/ho", "me/"],
        ["crates", ".io/"],
        ["pypi", ".org"],
        ["pythonhosted", ".org"],
    ]
    .iter()
    .map(|parts| parts.concat())
    .collect();
    let mut found = Vec::new();
    for name in
        String::from_utf8_lossy(&files.stdout).split('\0').filter(|name| !name.is_empty() && *name != "Cargo.lock")
    {
        let Ok(text) = std::fs::read_to_string(root().join(name)) else { continue };
        for (number, line) in text.lines().enumerate() {
            if let Some(word) = forbidden.iter().find(|word| line.contains(word.as_str())) {
                found.push(format!("{name}:{}: {word}", number + 1));
            }
        }
    }
    if !found.is_empty() {
        bail!("paths of one machine, or registry hosts:\n{}", found.join("\n"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::permitted;

    #[test]
    fn licence_expressions() {
        for good in
            ["MIT", "MIT OR Apache-2.0", "MIT/Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0", "GPL-2.0 OR MIT"]
        {
            assert!(permitted(good), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "AGPL-3.0 OR LGPL-2.1", ""] {
            assert!(!permitted(bad), "{bad}");
        }
    }
}
