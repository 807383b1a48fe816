//! The command line: parse, run, end with a code. One file a command.

pub mod args;
pub mod exit;
mod hash;
mod load;
mod progress;
mod replay;
mod table;

use clap::{CommandFactory, Parser};

use args::{Cli, Command};
use exit::{Exit, Failure};

/// Run the command that the process was started with.
pub fn main() -> Exit {
    let cli = match Cli::try_parse() {
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

fn dispatch(command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Replay(args) => replay::run(args),
        Command::Hash(args) => hash::run(args),
        Command::Completions { shell } => {
            clap_complete::generate(*shell, &mut Cli::command(), "onic", &mut std::io::stdout());
            Ok(Exit::Agreed)
        }
        Command::Man => {
            clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout())?;
            Ok(Exit::Agreed)
        }
        _ => todo!(),
    }
}
