//! The command line: parse, run, end with a code. One file a command.

// In place of std's, which panic when whoever reads our output has gone (`onic … | head`): commands then end as they would.
macro_rules! print {
    ($($text:tt)*) => { $crate::cli::put(format_args!($($text)*)) };
}
macro_rules! println {
    ($($text:tt)*) => { $crate::cli::put(format_args!("{}\n", format_args!($($text)*))) };
}

pub mod args;
mod bench;
mod bench_driver;
#[cfg(feature = "rtl")]
mod bench_line_rate;
#[cfg(feature = "rtl")]
mod bench_versus;
mod console;
mod diff;
pub mod exit;
mod failing;
mod gallery;
mod gen_udp;
mod golden;
mod hash;
mod help;
mod info;
mod load;
mod progress;
mod reduce;
pub(crate) mod regs;
mod replay;
mod report;
mod repro;
mod rtl;
mod schema;
mod table;
mod test;
mod xdp;

use clap::FromArgMatches;

use args::{Cli, Command};
use exit::{Exit, Failure};

use help::command;

/// Run the command that the process was started with.
pub fn main() -> Exit {
    let cli = match command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; clap prints each where it belongs.
            let _ = error.print();
            return if error.use_stderr() { Exit::BadInput } else { Exit::Agreed };
        }
    };
    match dispatch(&cli.command) {
        Ok(exit) => exit,
        Err(failure) => {
            failure.print();
            failure.exit
        }
    }
}

/// Write to standard output. That nobody reads it any more is no error of ours.
fn put(text: std::fmt::Arguments<'_>) {
    if let Err(error) = std::io::Write::write_fmt(&mut std::io::stdout(), text)
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        eprintln!("error: standard output: {error}");
    }
}

fn dispatch(asked: &Command) -> Result<Exit, Failure> {
    match asked {
        Command::Replay(args) => replay::run(args),
        Command::Golden(args) => golden::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Reduce(args) => reduce::run(args),
        Command::Hash(args) => hash::run(args),
        Command::Schema(args) => schema::run(args),
        Command::Markdown => {
            print!("{}", help::markdown());
            Ok(Exit::Agreed)
        }
        Command::Completions { shell } => {
            clap_complete::generate(*shell, &mut command(), "onic", &mut std::io::stdout());
            Ok(Exit::Agreed)
        }
        Command::Man => {
            clap_mangen::Man::new(command()).render(&mut std::io::stdout())?;
            Ok(Exit::Agreed)
        }
        Command::Gen(args) => gen_udp::run(args),
        Command::Test(args) => test::run(args),
        Command::Regs(args) => regs::run(args),
        Command::Info(args) => Ok(info::run(args)),
        Command::Rtl(args) => rtl::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Gallery(args) => gallery::run(args),
        Command::Console(args) => console::run(args),
        Command::Xdp(args) => xdp::run(args),
    }
}
