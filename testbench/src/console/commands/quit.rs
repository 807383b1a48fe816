//! `quit`.

use super::{Call, Said, Spec};
use crate::console::Console;

pub(super) const SPEC: Spec = Spec {
    name: "quit",
    usage: &["quit"],
    about: "End the session, as the end of the script does",
    more: "Traffic ends, all that is under way comes through, sums and memory are looked at. `exit` is \
           the same.",
    background: false,
    run,
};

fn run(console: &mut Console, call: &Call<'_>) -> Said {
    call.words().end()?;
    console.quit = true;
    Ok(String::new())
}
