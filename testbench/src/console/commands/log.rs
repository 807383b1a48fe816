//! `log`: what the drivers had to say.

use super::{Call, Said, Spec};
use crate::console::Console;

pub(super) const SPEC: Spec = Spec {
    name: "log",
    usage: &["log", "log clear"],
    about: "What the drivers had to say: queue faults, errors of the card",
    more: "What nobody has cleared fails the session at its end.",
    background: false,
    run,
};

fn run(console: &mut Console, call: &Call<'_>) -> Said {
    let mut words = call.words();
    let clear = words.take("clear");
    words.end()?;
    let said = console.session.log().iter().map(|line| format!("{line}\n")).collect();
    if clear {
        console.session.clear_log();
        return Ok(String::new());
    }
    Ok(said)
}
