//! `ethtool -c` and `-C`: when receive queues notify.

use driver_core::TriggerMode;
use driver_core::ethtool::{Choice, CoalesceChange};
use serde_json::{Value, json};

use super::{Ask, as_json, nothing_to_set};
use crate::console::commands::Said;
use crate::console::{CommandError, Console};

/// Rows that ethtool has after `rx-frames`, and no OpenNIC card. An empty one parts the groups.
const ABSENT: [&str; 18] = [
    "rx-usecs-irq",
    "rx-frames-irq",
    "",
    "tx-usecs",
    "tx-frames",
    "tx-usecs-irq",
    "tx-frames-irq",
    "",
    "rx-usecs-low",
    "rx-frame-low",
    "tx-usecs-low",
    "tx-frame-low",
    "",
    "rx-usecs-high",
    "rx-frame-high",
    "tx-usecs-high",
    "tx-frame-high",
    "",
];

pub(super) fn show(console: &mut Console, ask: Ask<'_>) -> Said {
    ask.words.end()?;
    let coalesce = console.session.driver(ask.interface).coalesce(None).map_err(anyhow::Error::from)?;
    let usecs = usecs(coalesce.timer_ns);
    // By the card's rule one of the two, or both, may not count.
    let (timer, counter) = match coalesce.moderation.mode {
        _ if !coalesce.moderation.interrupt => (false, false),
        TriggerMode::UserTimerCount => (true, true),
        TriggerMode::UserTimer => (true, false),
        TriggerMode::UserCount => (false, true),
        _ => (false, false),
    };
    if ask.json {
        let object = json!({
            "adaptive-rx": false, "adaptive-tx": false,
            "rx-usecs": timer.then(|| json_usecs(coalesce.timer_ns)),
            "rx-frames": counter.then_some(coalesce.frames),
        });
        return Ok(as_json(ask.interface, object));
    }
    let or_na = |counts: bool, value: String| if counts { value } else { "n/a".into() };
    let mut said = format!(
        "Coalesce parameters for {}:\nAdaptive RX: off  TX: off\nstats-block-usecs:\tn/a\nsample-interval:\tn/a\n\
         pkt-rate-low:\t\tn/a\npkt-rate-high:\t\tn/a\n\nrx-usecs:\t{}\nrx-frames:\t{}\n",
        ask.interface,
        or_na(timer, usecs),
        or_na(counter, coalesce.frames.to_string())
    );
    for row in ABSENT {
        said += &if row.is_empty() { "\n".into() } else { format!("{row}:\tn/a\n") };
    }
    Ok(said)
}

pub(super) fn set(console: &mut Console, mut ask: Ask<'_>) -> Said {
    let mut change = CoalesceChange::default();
    while let Some(word) = ask.words.next() {
        match word {
            "rx-usecs" => change.timer = Some(Choice::Value(timer_ns(ask.words.word("rx-usecs")?)?)),
            "rx-frames" => change.counter = Some(Choice::Value(ask.words.number("rx-frames")?)),
            absent if ABSENT.contains(&absent) || absent.starts_with("adaptive-") => {
                return Err(ask.words.usage(format_args!("{absent}: only rx-usecs and rx-frames can be set")));
            }
            other => return Err(ask.words.usage(format_args!("-C knows no `{other}`"))),
        }
    }
    if change == CoalesceChange::default() {
        return Err(nothing_to_set(&ask.words));
    }
    console.session.change(ask.interface, |driver| driver.set_coalesce(None, &change))?;
    Ok(String::new())
}

/// Microseconds, with as many decimals as it takes: the card counts 100 ns.
fn usecs(ns: u32) -> String {
    format!("{}", f64::from(ns) / 1_000.0)
}

/// A whole number where it is one, as readers of ethtool's JSON expect.
fn json_usecs(ns: u32) -> Value {
    if ns.is_multiple_of(1_000) { (ns / 1_000).into() } else { (f64::from(ns) / 1_000.0).into() }
}

fn timer_ns(text: &str) -> Result<u32, CommandError> {
    let bad =
        || CommandError::Usage(format!("rx-usecs: `{text}` is no number of microseconds, of at most three decimals"));
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if part.is_empty() || part.len() > 3 || !part.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(bad());
    }
    let part: u32 = format!("{part:0<3}").parse().map_err(|_| bad())?;
    let whole: u32 = whole.parse().map_err(|_| bad())?;
    whole.checked_mul(1_000).and_then(|ns| ns.checked_add(part)).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_go_in_as_they_come_out() {
        for (text, ns) in [("1", 1_000), ("0.5", 500), ("2.25", 2_250), ("0", 0), ("100.001", 100_001)] {
            assert_eq!(timer_ns(text).expect(text), ns);
            assert_eq!(usecs(ns), text);
        }
        for text in ["", ".", "1.", "-1", "1.0001", "x", "1.x", "99999999999"] {
            assert!(timer_ns(text).is_err(), "{text}");
        }
    }
}
