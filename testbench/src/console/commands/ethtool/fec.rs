//! `ethtool --show-fec` and `--set-fec`.

use driver_core::ethtool::Fec;
use serde_json::json;

use super::{Ask, as_json, nothing_to_set};
use crate::console::Console;
use crate::console::commands::Said;

pub(super) fn show(console: &mut Console, ask: Ask<'_>) -> Said {
    ask.words.end()?;
    let fec = console.session.driver(ask.interface).link_settings().map_err(anyhow::Error::from)?.fec;
    if ask.json {
        return Ok(as_json(ask.interface, json!({ "config": [fec.to_string()], "active": fec.to_string() })));
    }
    Ok(format!(
        "FEC parameters for {}:\nSupported/Configured FEC encodings: {fec}\nActive FEC encoding: {fec}\n",
        ask.interface
    ))
}

pub(super) fn set(console: &mut Console, mut ask: Ask<'_>) -> Said {
    if !ask.words.take("encoding") {
        return Err(nothing_to_set(&ask.words));
    }
    let fec = match ask.words.word("rs or off")? {
        "rs" | "RS" => Fec::Rs,
        "off" | "Off" => Fec::Off,
        other => return Err(ask.words.usage(format_args!("a CMAC has rs and off, not `{other}`"))),
    };
    ask.words.end()?;
    console.session.change(ask.interface, |driver| driver.set_fec(fec))?;
    Ok(String::new())
}
