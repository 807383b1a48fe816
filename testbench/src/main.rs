//! The `onic` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    testbench::cli::main().into()
}
