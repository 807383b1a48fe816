//! What the program says of itself: help, man page, completions, and the reference in docs/.

mod common;

use common::Folder;

#[test]
fn the_reference_is_not_stale() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let made = Folder::new().onic(&["markdown"]).code(0).out();
    assert!(
        committed == made,
        "docs/cli.md is stale: cargo run -p testbench --no-default-features -- markdown > docs/cli.md"
    );
}

#[test]
fn help_groups_the_commands() {
    let help = Folder::new().onic(&["--help"]).code(0).out();
    let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("no `{text}` in {help}"));
    assert!(at("Everyday:") < at("\n  replay "));
    assert!(at("\n  diff ") < at("Look:"));
    assert!(at("Look:") < at("\n  hash ") && at("\n  hash ") < at("Own RTL:"));
    assert!(at("Own RTL:") < at("\n  rtl "));
}

#[test]
fn generated_helpers_are_whole() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(folder.onic(&["completions", shell]).code(0).out().contains("golden"), "{shell}");
    }
    assert!(folder.onic(&["man"]).code(0).out().contains(".TH onic"));
}

#[test]
fn each_command_has_its_own_help() {
    let folder = Folder::new();
    for command in ["replay", "golden", "diff", "reduce", "schema", "hash"] {
        let help = folder.onic(&[command, "--help"]).code(0).out();
        assert!(!help.contains("Everyday:") && help.contains("Usage: onic"), "{help}");
    }
}
