//! `onic rtl`: Verilated tops, built now or forgotten.

use super::args::{RtlAction, RtlArgs};
use super::exit::{Exit, Failure};

#[cfg(feature = "rtl")]
pub(super) fn run(args: &RtlArgs) -> Result<Exit, Failure> {
    use anyhow::Error;
    use rtl_bridge::tops;

    match &args.action {
        RtlAction::Build { shape } => {
            crate::card::Choice::named("rtl").make(shape)?;
            println!("{}x{}: ready, in {}", shape.functions, shape.ports, tops::cache_dir().display());
        }
        RtlAction::Clean => {
            let count = tops::clean().map_err(|error| Failure::new(Exit::ToolMissing, Error::new(error)))?;
            println!("{count} tops forgotten, from {}", tops::cache_dir().display());
        }
    }
    Ok(Exit::Agreed)
}

#[cfg(not(feature = "rtl"))]
pub(super) fn run(args: &RtlArgs) -> Result<Exit, Failure> {
    let what = match args.action {
        RtlAction::Build { .. } => "build",
        RtlAction::Clean => "clean",
    };
    Err(Failure::new(Exit::ToolMissing, anyhow::anyhow!("rtl {what}: this onic was built without RTL (ONIC_NO_RTL=1)")))
}
