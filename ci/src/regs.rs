//! `regs [--check]`: makes every generated form of the register map, or says which committed one is stale.
//!
//! The generator is Python (regs/export) with pinned packages, installed once into a private folder of the tree. Only who
//! changes the map needs it: what it makes is committed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// Everything generated lies in these folders, and nothing else does.
const FOLDERS: [&str; 4] = ["regs/src/generated", "regs/generated", "rtl-bridge/rtl/gen", "docs/registers"];

/// How a stale file is brought up to date.
const COMMAND: &str = "cargo run -p ci -- regs";

/// Makes the generated files; with `check` only compares them with those in the tree.
///
/// # Errors
/// A stale, missing or left-over file with `check`; Python or its packages missing; a map that breaks its own rules.
pub fn regs(check: bool) -> Result<()> {
    let root = root()?;
    let packages = packages(&root)?;
    let fresh = generate(&root, &packages)?;
    let committed = read_folders(&root)?;
    let stale = differences(&committed, &fresh);
    if check {
        ensure!(
            stale.is_empty(),
            "generated from the register map, and stale:\n  {}\nhint: {COMMAND}",
            stale.join("\n  ")
        );
        eprintln!("regs: {} generated files agree with regs/rdl", fresh.len());
        return Ok(());
    }
    replace(&root, &committed, &fresh)?;
    for line in &stale {
        eprintln!("regs: {line}");
    }
    eprintln!("regs: {} files generated, {} changed", fresh.len(), stale.len());
    Ok(())
}

/// The workspace's root, where this member's manifest lies in a folder of its own.
fn root() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).context("the ci member has no parent folder")
}

/// The folder with the pinned Python packages, installed when missing or when the pins changed.
fn packages(root: &Path) -> Result<PathBuf> {
    let pins = root.join("regs/export/requirements.txt");
    let wanted = fs::read_to_string(&pins).with_context(|| format!("{} can not be read", pins.display()))?;
    let folder = root.join(".tools/regs-python");
    let stamp = folder.join("requirements.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    eprintln!("regs: installing the map's generator into {}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    install(&pins, &folder)?;
    // Last, so that an installation that broke off is not taken for a whole one.
    fs::write(&stamp, wanted)?;
    Ok(folder)
}

/// Installs the pins by the system's pip, or where there is none by that of a private environment.
fn install(pins: &Path, folder: &Path) -> Result<()> {
    let has_pip =
        Command::new("python3").args(["-m", "pip", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let has_pip = has_pip.context("python3 is needed to generate the register map")?.success();
    let python = if has_pip {
        PathBuf::from("python3")
    } else {
        let environment = folder.join("venv");
        let made = Command::new("python3").args(["-m", "venv"]).arg(&environment).status()?;
        ensure!(made.success(), "python3 has neither pip nor venv\nhint: apt-get install python3-pip");
        environment.join("bin/python")
    };
    let status = Command::new(python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target"])
        .arg(folder)
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .arg("--requirement")
        .arg(pins)
        .status()?;
    ensure!(status.success(), "pip could not install {}", pins.display());
    Ok(())
}

/// Runs the generator; what it makes by path relative to the root.
fn generate(root: &Path, packages: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let out = root.join("target/regs-generated");
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    fs::create_dir_all(&out)?;
    let status = Command::new("python3")
        .arg("-B")
        .arg(root.join("regs/export/export.py"))
        .arg(root)
        .arg(&out)
        .env("PYTHONPATH", packages)
        .env("PYTHONHASHSEED", "0")
        .status()
        .context("python3 is needed to generate the register map")?;
    ensure!(status.success(), "regs/export/export.py refused the map");
    let fresh = read_folders(&out)?;
    ensure!(!fresh.is_empty(), "regs/export/export.py made no file");
    fs::remove_dir_all(&out)?;
    Ok(fresh)
}

/// All files of the generated folders below `base`, by relative path.
fn read_folders(base: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for folder in FOLDERS {
        let Ok(entries) = fs::read_dir(base.join(folder)) else { continue };
        for entry in entries {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { bail!("{folder}: a file name is no text") };
            let text = fs::read(entry.path()).with_context(|| format!("{folder}/{name} can not be read"))?;
            files.insert(format!("{folder}/{name}"), text);
        }
    }
    Ok(files)
}

/// What of `committed` is not as in `fresh`, a line each.
fn differences(committed: &BTreeMap<String, Vec<u8>>, fresh: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let changed = fresh.iter().filter_map(|(name, text)| match committed.get(name) {
        None => Some(format!("{name}: missing")),
        Some(old) if old != text => Some(format!("{name}: line {} differs", first_difference(old, text))),
        Some(_) => None,
    });
    let left_over =
        committed.keys().filter(|name| !fresh.contains_key(*name)).map(|name| format!("{name}: no longer generated"));
    changed.chain(left_over).collect()
}

/// The first line, from 1, in which two texts differ.
fn first_difference(old: &[u8], new: &[u8]) -> usize {
    let same = old.split(|b| *b == b'\n').zip(new.split(|b| *b == b'\n')).take_while(|(a, b)| a == b);
    same.count() + 1
}

/// Writes what changed and removes what is no longer generated; the rest keeps its time stamp, so that nothing is
/// rebuilt for it.
fn replace(root: &Path, committed: &BTreeMap<String, Vec<u8>>, fresh: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    for (name, text) in fresh {
        if committed.get(name) == Some(text) {
            continue;
        }
        let path = root.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, text).with_context(|| format!("{name} can not be written"))?;
    }
    for name in committed.keys().filter(|name| !fresh.contains_key(*name)) {
        fs::remove_file(root.join(name)).with_context(|| format!("{name} can not be removed"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(entries: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
        entries.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn each_kind_of_staleness_names_its_file() {
        let committed = files(&[("a", "1\n2\n3\n"), ("same", "x"), ("old", "")]);
        let fresh = files(&[("a", "1\n2\n4\n"), ("same", "x"), ("new", "")]);
        assert_eq!(differences(&committed, &fresh), ["a: line 3 differs", "new: missing", "old: no longer generated"]);
        assert!(differences(&fresh, &fresh).is_empty());
    }

    #[test]
    fn a_longer_file_differs_after_the_common_part() {
        assert_eq!(first_difference(b"1\n2", b"1\n2\n3"), 3);
    }
}
