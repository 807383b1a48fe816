//! The steps of `xdp-vm` that need more than Rust: its programs compiled again, and the oracle on the running kernel.
//!
//! Both skip aloud where their tools are missing; with `--require` they fail instead.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::steps::{cargo, require, root};

/// A compiler that committed objects come from: what it calls itself, and the instruction set that it is asked for.
/// Another version writes other bytes.
struct Compiler {
    command: &'static str,
    version: &'static str,
    cpu: &'static str,
}

/// Debian 12's. The former ends at version 3 of the instruction set.
const CLANG_14: Compiler = Compiler { command: "clang-14", version: "Debian clang version 14.0.6", cpu: "v3" };
const CLANG_19: Compiler =
    Compiler { command: "clang-19", version: "Debian clang version 19.1.7 (3~deb12u1)", cpu: "v4" };

/// Sources that the newer one is for.
const V4: [&str; 1] = ["signed.c"];

/// Each program's committed object is what its source compiles to, byte for byte; without `check` make them.
pub fn programs(check: bool) -> Result<()> {
    let folder = root().join("xdp-vm/programs");
    let mut sources: Vec<PathBuf> = std::fs::read_dir(&folder)
        .with_context(|| folder.display().to_string())?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    sources.sort();
    ensure!(!sources.is_empty(), "{} holds no sources", folder.display());
    let (v4, v3): (Vec<_>, Vec<_>) = sources.into_iter().partition(|path| V4.iter().any(|name| path.ends_with(name)));
    build(&CLANG_14, &v3, check)?;
    build(&CLANG_19, &v4, check)
}

fn build(compiler: &Compiler, sources: &[PathBuf], check: bool) -> Result<()> {
    let Compiler { command, version, cpu } = compiler;
    let found = first_line(Command::new(command).arg("--version"));
    if found.as_deref() != Some(version) {
        let found = found.unwrap_or_else(|| "none".into());
        let text = format!("{} XDP programs not built: {command} is to be {version}, found {found}", sources.len());
        ensure!(check && !require(), "{text}\n\nhint: apt-get install {command}");
        eprintln!("ci: SKIPPED: {text}");
        return Ok(());
    }
    let made = root().join("target").join("xdp-programs");
    std::fs::create_dir_all(&made).with_context(|| made.display().to_string())?;
    let mut stale = Vec::new();
    for source in sources {
        let committed = source.with_extension("o");
        let name = committed.file_name().unwrap_or_default();
        let object = if check { made.join(name) } else { committed.clone() };
        compile(command, cpu, source, &object)?;
        if check && read(&object)? != read(&committed)? {
            stale.push(name.to_string_lossy().into_owned());
        }
    }
    ensure!(
        stale.is_empty(),
        "stale: {}\n\nhint: cargo run -p ci -- programs-build, and look at what has changed",
        stale.join(", ")
    );
    let what = if check { "are the committed bytes" } else { "are made" };
    eprintln!("ci: {} XDP programs by {version}, -mcpu={cpu}: {what}", sources.len());
    Ok(())
}

/// As `xdp-vm/programs/README.md` says. In the sources' folder, whose path is left out of the object.
fn compile(command: &str, cpu: &str, source: &Path, object: &Path) -> Result<()> {
    let folder = source.parent().context("a source lies in a folder")?;
    let status = Command::new(command)
        .args(["-O2", "-g", "-target", "bpf", "-Wall", "-Werror", "-Wno-unused"])
        .arg(format!("-mcpu={cpu}"))
        .arg(format!("-ffile-prefix-map={}=.", folder.display()))
        .arg("-c")
        .arg(source.file_name().unwrap_or_default())
        .arg("-o")
        .arg(object)
        .current_dir(folder)
        .status()
        .with_context(|| format!("{command} does not start"))?;
    ensure!(status.success(), "{command} refuses {}", source.display());
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| path.display().to_string())
}

fn first_line(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).lines().next()?.to_string())
}

/// `xdp-vm` against the running kernel; lints and docs of the oracle too, since the other steps leave it out.
pub fn oracle() -> Result<()> {
    if let Err(missing) = libbpf_tools() {
        ensure!(!require(), "the oracle is not built: {missing}");
        eprintln!("ci: SKIPPED: the oracle is not built: {missing}");
        return Ok(());
    }
    let package = ["--release", "--locked", "-p", "xdp-oracle"];
    cargo(&[&["clippy"][..], &package, &["--all-targets", "--", "-D", "warnings"]].concat(), &[])?;
    cargo(&[&["doc"][..], &package, &["--no-deps"]].concat(), &[("RUSTDOCFLAGS", "-D warnings")])?;
    let env: &[(&str, &str)] = if require() { &[("XDP_ORACLE_REQUIRE", "1")] } else { &[] };
    cargo(&[&["test"][..], &package].concat(), env)?;
    // What only the oracle asks of the VM has tests that only run with it.
    let coverage = ["-p", "xdp-vm", "--features", "coverage", "--test", "programs"];
    cargo(&[&["test", "--release", "--locked", "-q"][..], &coverage].concat(), &[])
}

/// What libbpf is built with: a C compiler that finds libelf and zlib, make, pkg-config.
fn libbpf_tools() -> Result<()> {
    let hint = "hint: apt-get install gcc make pkg-config libelf-dev zlib1g-dev";
    let starts = |program: &str, args: &[&str]| {
        let quiet = Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
        quiet.is_ok_and(|status| status.success())
    };
    let headers = ["-E", "-include", "libelf.h", "-include", "zlib.h", "-x", "c", "/dev/null"];
    for (what, there) in [
        ("make", starts("make", &["--version"])),
        ("pkg-config", starts("pkg-config", &["--version"])),
        ("a C compiler that finds libelf.h and zlib.h", starts("cc", &headers)),
    ] {
        if !there {
            bail!("{what} is missing\n\n{hint}");
        }
    }
    Ok(())
}
