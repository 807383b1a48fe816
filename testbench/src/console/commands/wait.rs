//! `wait`: let time pass.

use super::{Call, Said, Spec, span_ns};
use crate::console::Console;

pub(super) const SPEC: Spec = Spec {
    name: "wait",
    usage: &["wait TIME", "wait idle"],
    about: "Let simulated time pass",
    more: "So much (ns; us, ms and s after the number), or until all traffic is through. Between \
           commands time stands still.",
    background: false,
    run,
};

fn run(console: &mut Console, call: &Call<'_>) -> Said {
    let mut words = call.words();
    let span = words.word("TIME or idle")?;
    words.end()?;
    match span {
        "idle" => console.session.wait_idle()?,
        span => console.session.wait(span_ns(span)?)?,
    }
    Ok(String::new())
}
