//! `onic info`: versions, paths, caches, cards.

use serde_json::{Value, json};

use super::args::InfoArgs;
use super::exit::Exit;
use crate::card::Knobs;

pub(super) fn run(args: &InfoArgs) -> Exit {
    let rtl = rtl_info();
    if args.json {
        println!("{}", json!({ "version": 1, "onic": env!("CARGO_PKG_VERSION"), "cards": cards(), "rtl": rtl }));
        return Exit::Agreed;
    }
    println!("onic       {}", env!("CARGO_PKG_VERSION"));
    cards().iter().for_each(|(name, what)| println!("card       {name}: {what}"));
    println!("knobs      of card rtl, by --set: {}", Knobs::USAGE);
    println!("hash       opennic (every card); microsoft only by `onic hash`");
    match rtl.as_object() {
        None => println!("rtl        none: built without it (ONIC_NO_RTL=1)"),
        Some(entries) => {
            entries.iter().for_each(|(key, value)| println!("{key:<10} {}", value.as_str().unwrap_or_default()))
        }
    }
    Exit::Agreed
}

fn cards() -> Vec<(&'static str, &'static str)> {
    let mut cards = vec![("model", "all Rust; profiles corrected and upstream")];
    if cfg!(feature = "rtl") {
        cards.push(("hybrid", "QDMA model and our shell in RTL"));
        cards.push(("rtl", "our QDMA engine and our shell in RTL; the default"));
    }
    cards
}

#[cfg(feature = "rtl")]
fn rtl_info() -> Value {
    use rtl_bridge::tops;
    let toolchain = match tops::toolchain() {
        Ok(toolchain) => toolchain.identity().lines().collect::<Vec<_>>().join("; "),
        Err(error) => format!("not found, run-time builds will fail: {error}"),
    };
    let linked = tops::Library::linked();
    json!({
        "verilator": toolchain,
        "linked": format!("{} {}", linked.top_module(), linked.hash()),
        "cache": tops::cache_dir().display().to_string(),
    })
}

#[cfg(not(feature = "rtl"))]
fn rtl_info() -> Value {
    Value::Null
}
