//! The C header, which PeakRDL makes, places every register where the Rust table has it.

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use regs::{Bar, registers, windows};

/// A C path to a register's first element from the struct of its BAR, and its offset there.
fn assertions() -> String {
    let mut text = String::from("#include <stddef.h>\n#include \"onic_regs.h\"\n");
    for register in registers() {
        let window = windows().iter().find(|w| w.bar == register.bar && w.contains(register.offset));
        let window = window.expect("the map's own test says that each register has a window");
        let (top, place) = match (register.bar, window.presence) {
            (Bar::Qdma, _) => ("qdma_t", window.name.to_owned()),
            (Bar::Shell, regs::Presence::Always) => ("shell_t", window.name.to_owned()),
            (Bar::Shell, regs::Presence::Function(f)) => ("shell_t", format!("{}[{f}]", window.name)),
            (Bar::Shell, regs::Presence::Port(p)) => ("shell_t", format!("PORT[{p}].{}", window.name)),
        };
        let name = match (register.block, register.name.strip_prefix("FUNCTION")) {
            ("doorbell", _) => format!("QUEUE[0].{}", register.name),
            (_, Some(rest)) => {
                let (index, counter) = rest.split_once('_').expect("FUNCTIONn_COUNTER");
                if index.is_empty() { register.name.to_owned() } else { format!("FUNCTION[{index}].{counter}") }
            }
            _ => register.name.to_owned(),
        };
        let at = register.offset;
        writeln!(text, "_Static_assert(offsetof({top}, {place}.{name}) == {at:#x}, \"{place}.{name}\");").unwrap();
    }
    text
}

#[test]
fn the_c_header_compiles_and_agrees_with_the_table() {
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/generated");
    let mut compile = Command::new("cc");
    compile.args(["-std=gnu11", "-Wall", "-Werror", "-fsyntax-only", include, "-x", "c", "-"]);
    let Ok(mut child) = compile.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn() else {
        println!("skipped: no C compiler `cc`");
        return;
    };
    let text = assertions();
    assert!(text.lines().count() > 300, "{} lines", text.lines().count());
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
