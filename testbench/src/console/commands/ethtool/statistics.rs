//! `ethtool -S`.

use serde_json::{Map, Value};

use super::{Ask, as_json};
use crate::console::Console;
use crate::console::commands::Said;

pub(super) fn show(console: &mut Console, ask: Ask<'_>) -> Said {
    ask.words.end()?;
    let statistics = console.session.driver(ask.interface).statistics().map_err(anyhow::Error::from)?;
    if ask.json {
        let rows: Map<String, Value> =
            statistics.rows().iter().map(|row| (row.name.to_string(), row.value.into())).collect();
        return Ok(as_json(ask.interface, Value::Object(rows)));
    }
    let rows: String = statistics.rows().iter().map(|row| format!("     {}: {}\n", row.name, row.value)).collect();
    Ok(format!("NIC statistics:\n{rows}"))
}
