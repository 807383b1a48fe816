//! Our RTL is clean under Verilator's lint at its strictest, in every shape that a card can have.
//!
//! Waivers are lines in `rtl/top/onic_shell.vlt`, each with its reason; a warning that is not waived fails here.

use std::process::Command;

use rtl_bridge::tops;

/// Top modules and their file lists, in `rtl`.
const SHELL: (&str, &str) = ("onic_shell", "onic_shell.f");
const ENGINE: (&str, &str) = ("qdma_engine", "onic_qdma.f");
const CARD: (&str, &str) = ("onic_card", "onic_card.f");

/// Functions, ports, other parameters, defines.
type Variant = (u8, u8, &'static [&'static str], &'static [&'static str]);

const VARIANTS: [Variant; 11] = [
    (1, 1, &[], &[]),
    (2, 2, &[], &[]),
    (2, 1, &[], &[]),
    (1, 2, &[], &[]),
    (3, 2, &[], &[]),
    (4, 2, &[], &[]),
    (1, 1, &["-GMAX_PKT_LEN=9600"], &[]),
    (1, 1, &["-GMAX_PKT_LEN=256"], &[]),
    (1, 1, &["-GUSE_PHYS_FUNC=0"], &[]),
    (1, 1, &["-GNUM_QUEUE=2048"], &[]),
    (2, 2, &[], &["-DONIC_FAULTS"]),
];

/// Functions, other parameters and defines of the engine and of the card, which has a port for each function, two at most.
const QDMA_VARIANTS: [(u8, &[&str]); 9] = [
    (1, &[]),
    (2, &[]),
    (3, &[]),
    (4, &[]),
    (4, &["-GNUM_QUEUE=2048"]),
    (1, &["-GNUM_QUEUE=2"]),
    (1, &["-GC2H_AHEAD_MAX=64", "-GH2C_AHEAD_MAX=32"]),
    (1, &["-GC2H_AHEAD_MAX=32", "-GH2C_AHEAD_MAX=256"]),
    (2, &["-DONIC_FAULTS"]),
];

/// What Verilator says of a top at its strictest. `None`: nothing.
fn complaint((top, list): (&str, &str), arguments: &[String]) -> Option<String> {
    let toolchain = tops::toolchain().expect("a Verilator");
    let output = Command::new(&toolchain.verilator_bin)
        .current_dir(tops::crate_dir().join("rtl"))
        .env("VERILATOR_ROOT", &toolchain.verilator_root)
        .args(["--lint-only", "-Wall", "--assert", "--top-module", top, "-F", list])
        .args(arguments)
        .output()
        .expect("Verilator starts");
    let said = String::from_utf8_lossy(&output.stderr);
    (!output.status.success() || !said.is_empty()).then(|| format!("{top} {arguments:?}:\n{said}"))
}

fn strings(arguments: &[&str]) -> impl Iterator<Item = String> {
    arguments.iter().map(ToString::to_string)
}

#[test]
fn every_shape_is_lint_clean() {
    for (functions, ports, parameters, defines) in VARIANTS {
        let shape = [format!("-GNUM_PHYS_FUNC={functions}"), format!("-GNUM_CMAC_PORT={ports}")];
        let arguments: Vec<_> = shape.into_iter().chain(strings(parameters)).chain(strings(defines)).collect();
        assert_eq!(complaint(SHELL, &arguments), None);
    }
}

#[test]
fn every_engine_is_lint_clean() {
    for (functions, other) in QDMA_VARIANTS {
        let arguments: Vec<_> = [format!("-GNUM_PHYS_FUNC={functions}")].into_iter().chain(strings(other)).collect();
        assert_eq!(complaint(ENGINE, &arguments), None);
    }
}

#[test]
fn every_card_is_lint_clean() {
    for (functions, other) in QDMA_VARIANTS {
        let shape = [format!("-GNUM_PHYS_FUNC={functions}"), format!("-GNUM_CMAC_PORT={}", functions.min(2))];
        let arguments: Vec<_> = shape.into_iter().chain(strings(other)).collect();
        assert_eq!(complaint(CARD, &arguments), None);
    }
}

#[test]
fn a_shape_out_of_range_does_not_elaborate() {
    let engine =
        ["-GNUM_PHYS_FUNC=5", "-GNUM_QUEUE=3", "-GNUM_QUEUE=4096", "-GC2H_AHEAD_MAX=12", "-GH2C_AHEAD_MAX=512"];
    let shell = ["-GNUM_PHYS_FUNC=5", "-GNUM_CMAC_PORT=3", "-GNUM_QUEUE=3", "-GMAX_PKT_LEN=9601", "-GMIN_PKT_LEN=63"];
    let cases = [(SHELL, shell), (ENGINE, engine)];
    for (top, bad) in cases.into_iter().flat_map(|(top, all)| all.map(|bad| (top, bad))) {
        let toolchain = tops::toolchain().expect("a Verilator");
        let output = Command::new(&toolchain.verilator_bin)
            .current_dir(tops::crate_dir().join("rtl"))
            .env("VERILATOR_ROOT", &toolchain.verilator_root)
            .args(["--lint-only", "--top-module", top.0, "-F", top.1, bad])
            .output()
            .expect("Verilator starts");
        assert!(!output.status.success(), "{}: {bad} was taken", top.0);
        let said = String::from_utf8_lossy(&output.stderr);
        let parameter = bad.trim_start_matches("-G").split('=').next().unwrap_or_default();
        assert!(said.contains(parameter), "{} {bad}: the message names no parameter:\n{said}", top.0);
    }
}
