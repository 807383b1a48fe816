//! Checks: `cargo run -p ci -- STEP`.

mod regs;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["regs"] => regs::regs(false),
        ["regs", "--check"] => regs::regs(true),
        _ => {
            eprintln!("usage: cargo run -p ci -- STEP\n\n  regs [--check]   the register map's generated files");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
