//! Our RTL is clean under Verilator's lint at its strictest, in every shape that a card can have.
//!
//! Waivers are lines in `rtl/top/onic_shell.vlt`, each with its reason; a warning that is not waived fails here.

use std::process::Command;

use rtl_bridge::tops;

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

#[test]
fn every_shape_is_lint_clean() {
    let toolchain = tops::toolchain().expect("a Verilator");
    for (functions, ports, parameters, defines) in VARIANTS {
        let output = Command::new(&toolchain.verilator_bin)
            .current_dir(tops::crate_dir().join("rtl"))
            .env("VERILATOR_ROOT", &toolchain.verilator_root)
            .args(["--lint-only", "-Wall", "--assert", "--top-module", "onic_shell", "-F", "onic_shell.f"])
            .args([format!("-GNUM_PHYS_FUNC={functions}"), format!("-GNUM_CMAC_PORT={ports}")])
            .args(parameters)
            .args(defines)
            .output()
            .expect("Verilator starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{functions}x{ports} {parameters:?} {defines:?}:\n{said}");
    }
}

#[test]
fn a_shape_out_of_range_does_not_elaborate() {
    let toolchain = tops::toolchain().expect("a Verilator");
    for bad in ["-GNUM_PHYS_FUNC=5", "-GNUM_CMAC_PORT=3", "-GNUM_QUEUE=3", "-GMAX_PKT_LEN=9601", "-GMIN_PKT_LEN=63"] {
        let output = Command::new(&toolchain.verilator_bin)
            .current_dir(tops::crate_dir().join("rtl"))
            .env("VERILATOR_ROOT", &toolchain.verilator_root)
            .args(["--lint-only", "--top-module", "onic_shell", "-F", "onic_shell.f", bad])
            .output()
            .expect("Verilator starts");
        assert!(!output.status.success(), "{bad} was taken");
        let said = String::from_utf8_lossy(&output.stderr);
        let parameter = bad.trim_start_matches("-G").split('=').next().unwrap_or_default();
        assert!(said.contains(parameter), "{bad}: the message names no parameter:\n{said}");
    }
}
