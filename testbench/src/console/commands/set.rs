//! `set`: settings that later commands share.

use super::{Call, Said, Spec};
use crate::console::Console;

pub(super) const SPEC: Spec = Spec {
    name: "set",
    usage: &["set", "set pace PACE", "set json on|off", "set host-ns NS"],
    about: "Settings of later commands",
    more: "pace: when replayed frames start. json: from ethtool and ip. host-ns: what a packet costs \
           the driver in simulated time.",
    background: false,
    run,
};

/// What the command line allows too.
const HOST_NS_MAX: u64 = 1_000_000;

fn run(console: &mut Console, call: &Call<'_>) -> Said {
    let mut words = call.words();
    let Some(knob) = words.next() else {
        let pace = console.settings.pace.unwrap_or(console.session.setup().pace);
        let json = if console.settings.json { "on" } else { "off" };
        return Ok(format!("pace     {pace}\njson     {json}\nhost-ns  {}\n", console.session.setup().host.packet_ns));
    };
    match knob {
        "pace" => console.settings.pace = Some(words.value("pace")?),
        "json" => match words.word("on or off")? {
            "on" => console.settings.json = true,
            "off" => console.settings.json = false,
            other => return Err(words.usage(format_args!("json: `{other}` is neither on nor off"))),
        },
        "host-ns" => match words.number("host-ns")? {
            ns @ 0..=HOST_NS_MAX => console.session.set_packet_ns(ns),
            ns => return Err(words.usage(format_args!("host-ns: {ns} is more than {HOST_NS_MAX}"))),
        },
        other => return Err(words.usage(format_args!("there is no setting `{other}`"))),
    }
    words.end()?;
    Ok(String::new())
}
