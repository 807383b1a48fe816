//! `onic bench replay --versus cocotb` where there is no cocotb: skipped, aloud and without an error. With it, the command
//! itself is the test: each driver checks that every frame came.
#![cfg(feature = "rtl")]

mod common;

use common::{Folder, Ran};

/// Run the bench with this as the only `python3`, or with none.
fn versus(python: Option<&str>, environment: &str) -> Ran {
    let folder = Folder::new();
    let path = if let Some(script) = python {
        folder.file("python3", format!("#!/bin/sh\n{script}\n").as_bytes());
        "chmod +x python3; PATH=$PWD:/usr/bin:/bin"
    } else {
        "PATH=/nonexistent"
    };
    let onic = env!("CARGO_BIN_EXE_onic");
    folder.shell(&format!("{path} {environment} '{onic}' bench replay --versus cocotb --check --json")).code(0)
}

/// Nothing was measured, nothing was missed, and stderr has one sentence that says why.
#[track_caller]
fn skipped(ran: &Ran, why: &str) {
    let told: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("skipped: ")).collect();
    assert!(matches!(told[..], [line] if line.contains(why)), "no `{why}` in stderr:\n{}", ran.stderr);
    let json = ran.json();
    assert!(json["skipped"].as_str().is_some_and(|said| said.contains(why)), "{json:#}");
    assert_eq!(json["targets"].as_array().map(Vec::len), Some(0), "{json:#}");
}

#[test]
fn without_python() {
    skipped(&versus(None, ""), "python3 does not start");
    skipped(&versus(Some("echo broken >&2; exit 1"), ""), "broken");
}

#[test]
fn without_pip_or_its_packages() {
    let without_pip = r#"case "$*" in -c*) echo test-without-pip;; *) exit 1;; esac"#;
    skipped(&versus(Some(without_pip), ""), "neither pip nor venv");
    let without_wheels = r#"
        case "$*" in
          -c*) echo test-without-wheels;;
          *install*) echo "ERROR: no such wheel" >&2; exit 1;;
        esac"#;
    skipped(&versus(Some(without_wheels), ""), "ERROR: no such wheel");
}

#[test]
fn offline() {
    skipped(&versus(Some("echo test-offline"), "ONIC_OFFLINE=1"), "--offline");
}

#[test]
fn only_replay_has_an_opponent() {
    Folder::new().onic(&["bench", "driver", "--versus", "cocotb"]).code(2).says("bench replay --versus cocotb");
}
