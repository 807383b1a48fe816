//! `stop`: no more traffic.

use super::{Call, Said, Spec};
use crate::console::Console;

pub(super) const SPEC: Spec = Spec {
    name: "stop",
    usage: &["stop"],
    about: "End what runs in the background",
    more: "Frames under way still come through: wait idle.",
    background: false,
    run,
};

fn run(console: &mut Console, call: &Call<'_>) -> Said {
    call.words().end()?;
    Ok(match console.session.stop() {
        0 => String::new(),
        left => format!("{left} frames from the host were not sent\n"),
    })
}
