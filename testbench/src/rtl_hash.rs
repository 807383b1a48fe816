//! Measured vectors through the hash block of our RTL, whole card around it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use driver_core::rss::Key;
use models::observation::Point;
use regs::PortId;
use traces::golden::measured::Row;

use crate::card::{Choice, Shape};
use crate::execute::{Job, execute};
use crate::run::{InFrame, Setup};
use crate::vectors;

/// The hash that the RTL gives each row's frame, in the order of the rows. Rows of one key go through one card, back to
/// back; a corrected hash owes nothing to the frames around it.
///
/// # Errors
/// The RTL can't be had, or a frame does not come through.
pub fn hashes(rows: &[Row]) -> Result<Vec<u32>> {
    let mut by_key: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    rows.iter().enumerate().for_each(|(at, row)| by_key.entry(&row.key).or_default().push(at));
    let mut hashes = vec![0; rows.len()];
    for places in by_key.values() {
        let rows: Vec<&Row> = places.iter().map(|&at| &rows[at]).collect();
        for (&at, hash) in places.iter().zip(one_key(&rows)?) {
            hashes[at] = hash;
        }
    }
    Ok(hashes)
}

fn one_key(rows: &[&Row]) -> Result<Vec<u32>> {
    let shape: Shape = "1x1,max-pkt=9600,ring=4096".parse()?;
    let wire: Vec<InFrame> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| InFrame {
            port: PortId(0),
            index: index as u64,
            time_ns: None,
            data: row.frame(),
            err: false,
        })
        .collect();
    let key = vectors::key(rows[0])?;
    let setup = Setup { shape, rss_key: Some(Key(*key.bytes())), ..Setup::default() };
    let job = Job { card: Choice::named("rtl"), setup, wire: &wire, host: &[] };
    let (outcome, error) = execute(&job, &mut |_| {})?;
    if let Some(error) = error {
        return Err(error).context(format!("key {key}"));
    }
    let hashes: Vec<u32> = outcome
        .observations
        .iter()
        .filter_map(|seen| if let Point::Rss { hash, .. } = seen.point { Some(hash) } else { None })
        .collect();
    ensure!(hashes.len() == rows.len(), "key {key}: {} hashes of {} frames", hashes.len(), rows.len());
    Ok(hashes)
}
