//! `ethtool -l` and `-L`.

use serde_json::json;

use super::{Ask, as_json, nothing_to_set, or_na};
use crate::console::Console;
use crate::console::commands::Said;

pub(super) fn show(console: &mut Console, ask: Ask<'_>) -> Said {
    ask.words.end()?;
    let channels = console.session.driver(ask.interface).channels();
    let other = channels.other;
    if ask.json {
        let object = json!({ "other-max": other, "combined-max": channels.max_combined,
                             "other-count": other, "combined-count": channels.combined });
        return Ok(as_json(ask.interface, object));
    }
    let block = |combined: u16| {
        format!("RX:\t\t{na}\nTX:\t\t{na}\nOther:\t\t{other}\nCombined:\t{combined}\n", na = or_na(None))
    };
    Ok(format!(
        "Channel parameters for {}:\nPre-set maximums:\n{}Current hardware settings:\n{}",
        ask.interface,
        block(channels.max_combined),
        block(channels.combined)
    ))
}

pub(super) fn set(console: &mut Console, mut ask: Ask<'_>) -> Said {
    let mut combined = None;
    while let Some(word) = ask.words.next() {
        match word {
            "combined" => combined = Some(ask.words.number("combined")?),
            "rx" | "tx" | "other" => {
                return Err(ask
                    .words
                    .usage(format_args!("{word}: queues come in pairs here, so only combined can be set")));
            }
            other => return Err(ask.words.usage(format_args!("-L knows no `{other}`"))),
        }
    }
    let combined = combined.ok_or_else(|| nothing_to_set(&ask.words))?;
    console.session.change(ask.interface, |driver| driver.set_channels(combined))?;
    Ok(String::new())
}
