//! `ethtool -g` and `-G`.

use driver_core::ethtool::RingsChange;
use serde_json::json;

use super::{Ask, as_json, nothing_to_set, or_na};
use crate::console::Console;
use crate::console::commands::Said;

pub(super) fn show(console: &mut Console, ask: Ask<'_>) -> Said {
    ask.words.end()?;
    let driver = console.session.driver(ask.interface);
    let (rings, buffer_bytes) = (driver.rings(), driver.geometry().hw_len_bytes());
    if ask.json {
        let object = json!({ "rx-max": rings.max(), "tx-max": rings.max(), "rx": rings.rx, "tx": rings.tx,
                             "rx-buf-len": buffer_bytes });
        return Ok(as_json(ask.interface, object));
    }
    let na = or_na(None);
    let block = |rx: u16, tx: u16| format!("RX:\t\t\t{rx}\nRX Mini:\t\t{na}\nRX Jumbo:\t\t{na}\nTX:\t\t\t{tx}\n");
    Ok(format!(
        "Ring parameters for {}:\nPre-set maximums:\n{}Current hardware settings:\n{}RX Buf Len:\t\t{buffer_bytes}\n",
        ask.interface,
        block(rings.max(), rings.max()),
        block(rings.rx, rings.tx)
    ))
}

pub(super) fn set(console: &mut Console, mut ask: Ask<'_>) -> Said {
    let mut change = RingsChange::default();
    while let Some(word) = ask.words.next() {
        match word {
            "rx" => change.rx = Some(ask.words.number("rx")?),
            "tx" => change.tx = Some(ask.words.number("tx")?),
            "rx-mini" | "rx-jumbo" | "rx-buf-len" => {
                return Err(ask.words.usage(format_args!("{word}: only rx and tx can be set")));
            }
            other => return Err(ask.words.usage(format_args!("-G knows no `{other}`"))),
        }
    }
    if change == RingsChange::default() {
        return Err(nothing_to_set(&ask.words));
    }
    console.session.change(ask.interface, |driver| driver.set_rings(change))?;
    Ok(String::new())
}
