//! `onic schema COMMAND`: what a command's `--json` prints, as JSON Schema (draft 2020-12).
//!
//! The schemas are files of their own so that they can be fetched and diffed; `tests/schema.rs` holds real output of each
//! command against them.

use anyhow::anyhow;

use super::args::SchemaArgs;
use super::exit::{Exit, Failure};

/// Commands with `--json`, and their schemas.
const SCHEMAS: [(&str, &str); 9] = [
    ("replay", include_str!("schema/replay.json")),
    ("gen", include_str!("schema/gen.json")),
    ("golden", include_str!("schema/golden.json")),
    ("diff", include_str!("schema/diff.json")),
    ("hash", include_str!("schema/hash.json")),
    ("regs", include_str!("schema/regs.json")),
    ("info", include_str!("schema/info.json")),
    ("gallery", include_str!("schema/gallery.json")),
    ("xdp", include_str!("schema/xdp.json")),
];

pub(super) fn run(args: &SchemaArgs) -> Result<Exit, Failure> {
    match SCHEMAS.iter().find(|(command, _)| *command == args.command) {
        Some((_, schema)) => {
            print!("{schema}");
            Ok(Exit::Agreed)
        }
        None => {
            let known: Vec<&str> = SCHEMAS.iter().map(|(command, _)| *command).collect();
            Err(Failure::from(anyhow!("there is no schema of `{}`", args.command)).hint(known.join(", ")))
        }
    }
}
