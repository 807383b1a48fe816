//! Checks: `cargo run -p ci -- STEP [STEP …]`, and `all` for what a change has to pass.
//!
//! Knows commands, not code: each step runs what a person could type. Some steps skip, aloud, where their tools are missing;
//! with `--require` they fail instead.

mod regs;
mod steps;
mod xdp;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};

/// One step: its name, what it is, and what it does.
struct Step {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result<()>,
    /// Part of `all`.
    in_all: bool,
}

/// In the order of `all`: what fails fast comes first.
const STEPS: [Step; 17] = [
    Step { name: "fmt", about: "formatting of Rust and shell", run: steps::fmt, in_all: true },
    Step { name: "hygiene", about: "no machine's path, no registry host", run: steps::hygiene, in_all: true },
    Step {
        name: "licences",
        about: "every dependency's licence; cargo-deny where it is installed",
        run: steps::licences,
        in_all: true,
    },
    Step {
        name: "regs-check",
        about: "the register map's generated files are fresh",
        run: || regs::regs(true),
        in_all: true,
    },
    Step { name: "clippy", about: "clippy, warnings denied, with and without RTL", run: steps::clippy, in_all: true },
    Step { name: "docs", about: "rustdoc, warnings denied", run: steps::docs, in_all: true },
    Step { name: "lint", about: "Verilator's lint over every shape", run: steps::lint, in_all: false },
    Step { name: "test", about: "every member's tests, RTL lint included", run: steps::test, in_all: true },
    Step { name: "loom", about: "every order of events on driver-core's atomics", run: steps::loom, in_all: true },
    Step {
        name: "programs",
        about: "xdp-vm's programs compile to their committed objects",
        run: || xdp::programs(true),
        in_all: true,
    },
    Step { name: "oracle", about: "xdp-vm against the running kernel", run: xdp::oracle, in_all: true },
    Step { name: "cli-docs-check", about: "docs/cli.md is fresh", run: || steps::cli_docs(true), in_all: true },
    Step { name: "golden", about: "golden cases on both cards", run: steps::golden, in_all: false },
    Step { name: "bench", about: "the speed targets, quickly", run: steps::bench, in_all: false },
    Step { name: "regs", about: "make the register map's generated files", run: || regs::regs(false), in_all: false },
    Step { name: "cli-docs", about: "make docs/cli.md", run: || steps::cli_docs(false), in_all: false },
    Step {
        name: "programs-build",
        about: "make the objects of xdp-vm's programs",
        run: || xdp::programs(false),
        in_all: false,
    },
];

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--require") {
        words.retain(|word| word != "--require");
        steps::set_require();
    }
    // `regs --check` is how DESIGN names it.
    let words: Vec<&str> = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["regs", "--check"] => vec!["regs-check"],
        ref words => words.to_vec(),
    };
    let all = words == ["all"];
    let chosen: Vec<&Step> =
        STEPS.iter().filter(|step| if all { step.in_all } else { words.contains(&step.name) }).collect();
    if chosen.is_empty() || (!all && chosen.len() != words.len()) {
        eprintln!(
            "usage: cargo run -p ci -- [--require] STEP [STEP …]\n\n  all              what a change has to pass"
        );
        STEPS.iter().for_each(|step| eprintln!("  {:<16} {}", step.name, step.about));
        return ExitCode::from(2);
    }
    match chosen.into_iter().try_for_each(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(step: &Step) -> Result<()> {
    let begin = Instant::now();
    (step.run)().with_context(|| format!("step {}", step.name))?;
    eprintln!("ci: {} passed, {:.1} s", step.name, begin.elapsed().as_secs_f64());
    Ok(())
}
