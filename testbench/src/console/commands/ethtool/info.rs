//! `ethtool -i`.

use serde_json::json;

use super::{Ask, as_json};
use crate::console::Console;
use crate::console::commands::Said;

pub(super) fn show(console: &mut Console, ask: Ask<'_>) -> Said {
    ask.words.end()?;
    let info = console.session.driver(ask.interface).info().map_err(anyhow::Error::from)?;
    let firmware = format!("shell {:#010x}", info.build_timestamp);
    // Where a card of a testbench sits is made up; the function is not.
    let bus = format!("0000:01:00.{}", info.func.0);
    if ask.json {
        let object =
            json!({ "driver": info.driver, "version": info.version, "firmware-version": firmware, "bus-info": bus });
        return Ok(as_json(ask.interface, object));
    }
    Ok(format!(
        "driver: {}\nversion: {}\nfirmware-version: {firmware}\nexpansion-rom-version: \nbus-info: {bus}\n\
         supports-statistics: yes\nsupports-test: no\nsupports-eeprom-access: no\nsupports-register-dump: no\n\
         supports-priv-flags: no\n",
        info.driver, info.version
    ))
}
