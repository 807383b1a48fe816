//! `ethtool -x` and `-X`: which queue a frame goes to.

use driver_core::ethtool::{RssChange, TableChange};
use driver_core::rss::{HashFunction, Key, TABLE_LEN, Table};
use serde_json::json;

use super::{Ask, as_json, nothing_to_set};
use crate::console::commands::Said;
use crate::console::options::Words;
use crate::console::{CommandError, Console};

/// Both names that a reader may look for; the card computes one of them.
const FUNCTIONS: [HashFunction; 2] = [HashFunction::OpenNic, HashFunction::Microsoft];

/// Entries in a row, as ethtool prints them.
const IN_A_ROW: usize = 8;

pub(super) fn show(console: &mut Console, ask: Ask<'_>) -> Said {
    ask.words.end()?;
    let rss = console.session.driver(ask.interface).rss().map_err(anyhow::Error::from)?;
    if ask.json {
        let object = json!({ "rss-indirection-table": rss.table.entries().to_vec(), "rss-hash-key": rss.key.0.to_vec(),
                             "rss-hash-function": rss.hash.name() });
        return Ok(as_json(ask.interface, object));
    }
    let mut said = format!("RX flow hash indirection table for {} with {} RX ring(s):\n", ask.interface, rss.queues);
    for (row, entries) in rss.table.entries().chunks(IN_A_ROW).enumerate() {
        said += &format!("{:5}: ", row * IN_A_ROW);
        entries.iter().for_each(|entry| said += &format!(" {entry:5}"));
        said += "\n";
    }
    said += &format!("RSS hash key:\n{}\nRSS hash function:\n", rss.key);
    for function in FUNCTIONS {
        said += &format!("    {}: {}\n", function.name(), if function == rss.hash { "on" } else { "off" });
    }
    Ok(said)
}

pub(super) fn set(console: &mut Console, mut ask: Ask<'_>) -> Said {
    let change = change(&mut ask.words)?;
    if change == RssChange::default() {
        return Err(nothing_to_set(&ask.words));
    }
    console.session.change(ask.interface, |driver| driver.set_rss(&change))?;
    Ok(String::new())
}

/// How a table is described; it is made once all words are read, since `start` may come after it.
enum Spread {
    Default,
    Equal(u16),
    Weights(Vec<u32>),
}

fn change(words: &mut Words<'_>) -> Result<RssChange, CommandError> {
    let mut change = RssChange::default();
    let (mut spread, mut start) = (None, None);
    while let Some(word) = words.next() {
        let again = match word {
            "default" => spread.replace(Spread::Default).is_some(),
            "equal" => spread.replace(Spread::Equal(words.number("equal")?)).is_some(),
            "weight" => spread.replace(Spread::Weights(weights(words)?)).is_some(),
            "start" => start.replace(words.number::<u16>("start")?).is_some(),
            "hkey" => change.key.replace(key(words)?).is_some(),
            "hfunc" => change.hash.replace(function(words)?).is_some(),
            "context" | "delete" | "xfrm" => {
                return Err(CommandError::failed(format!(
                    "{word}: the card has one table and one key, no further contexts"
                )));
            }
            other => return Err(words.usage(format_args!("-X knows no `{other}`"))),
        };
        if again {
            return Err(words.usage(format_args!("{word}: the table, key and function can be given once each")));
        }
    }
    change.table = match (spread, start) {
        (None, None) => None,
        (Some(Spread::Default), None) => Some(TableChange::Default),
        (Some(Spread::Equal(queues)), start) => Some(shifted(Table::equal(queues), start)?),
        (Some(Spread::Weights(weights)), start) => Some(shifted(Table::weighted(&weights), start)?),
        (None | Some(Spread::Default), Some(_)) => return Err(words.usage("start goes with equal or weight")),
    };
    Ok(change)
}

/// The table with `start` added to each of its queues.
fn shifted(table: Result<Table, driver_core::rss::RssError>, start: Option<u16>) -> Result<TableChange, CommandError> {
    let mut entries: [u16; TABLE_LEN] = *table.map_err(anyhow::Error::from)?.entries();
    entries.iter_mut().for_each(|entry| *entry = entry.saturating_add(start.unwrap_or(0)));
    Ok(TableChange::Table(Table::from_slice(&entries).map_err(anyhow::Error::from)?))
}

/// Numbers up to the next word that is none.
fn weights(words: &mut Words<'_>) -> Result<Vec<u32>, CommandError> {
    let mut weights = Vec::new();
    while words.peek().is_some_and(|word| word.starts_with(|first: char| first.is_ascii_digit() || first == '-')) {
        weights.push(words.number("weight")?);
    }
    if weights.is_empty() { Err(words.usage("weight takes numbers")) } else { Ok(weights) }
}

fn key(words: &mut Words<'_>) -> Result<Key, CommandError> {
    let text = words.word("hkey")?;
    text.parse().map_err(|error: driver_core::rss::KeyError| CommandError::failed(format!("hkey: {error}")))
}

/// The two that have names here; any other is unknown rather than refused by the card.
fn function(words: &mut Words<'_>) -> Result<HashFunction, CommandError> {
    let name = words.word("hfunc")?;
    let found = FUNCTIONS.into_iter().find(|function| function.name() == name);
    found.ok_or_else(|| {
        CommandError::failed(format!("hfunc: there is no hash function `{name}`; ethtool -x lists them"))
    })
}
