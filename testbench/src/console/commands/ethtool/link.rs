//! `ethtool DEV`: the link.

use serde_json::json;

use super::{Ask, as_json};
use crate::console::Console;
use crate::console::commands::Said;

pub(super) fn show(console: &mut Console, ask: Ask<'_>) -> Said {
    ask.words.end()?;
    let driver = console.session.driver(ask.interface);
    let link = driver.link_settings().map_err(anyhow::Error::from)?;
    // As Linux: a link is there when there is light and the interface is up.
    let detected = link.detected && driver.is_up();
    let yes_no = |yes: bool| if yes { "yes" } else { "no" };
    let autoneg = if link.autoneg { "on" } else { "off" };
    let (speed, duplex) = match (detected, link.full_duplex) {
        (true, true) => (format!("{}Mb/s", link.speed_mbps), "Full"),
        (true, false) => (format!("{}Mb/s", link.speed_mbps), "Half"),
        (false, _) => ("Unknown!".into(), "Unknown! (255)"),
    };
    if ask.json {
        let object = json!({
            "speed": detected.then_some(link.speed_mbps), "duplex": detected.then_some(duplex),
            "auto-negotiation": link.autoneg, "port": "FIBRE", "link-detected": detected,
        });
        return Ok(as_json(ask.interface, object));
    }
    Ok(format!(
        "Settings for {}:\n\tSupported ports: [ FIBRE ]\n\tSupported link modes:   Not reported\n\
         \tSupported pause frame use: No\n\tSupports auto-negotiation: {}\n\tSupported FEC modes: RS\n\
         \tAdvertised link modes:  Not reported\n\tAdvertised pause frame use: No\n\
         \tAdvertised auto-negotiation: {}\n\tAdvertised FEC modes: Not reported\n\
         \tSpeed: {speed}\n\tDuplex: {duplex}\n\tAuto-negotiation: {autoneg}\n\tPort: FIBRE\n\tPHYAD: {}\n\
         \tTransceiver: internal\n\tLink detected: {}\n",
        ask.interface,
        yes_no(link.autoneg),
        yes_no(link.autoneg),
        link.port.0,
        yes_no(detected)
    ))
}
