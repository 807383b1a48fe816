//! Measured RSS hashes (the format of `opennic_rss.csv`, [`traces::golden::measured`]) held against a hash of ours.

use models::rss::{self, Difference, Driven, Key, OpennicInput};
use traces::golden::measured::Row;

/// One row whose computed hash is not the measured one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The row's number, from 0.
    pub row: usize,
    /// What upstream's RTL gave.
    pub measured: u32,
    /// What was computed.
    pub computed: u32,
    /// Why a corrected hash has to differ, if it has.
    pub reason: Option<Difference>,
}

/// The row's key. The file holds the one 320-bit number.
///
/// # Errors
/// A key that is none.
pub fn key(row: &Row) -> Result<Key, rss::KeyError> {
    format!("0x{}", row.key).parse()
}

/// What upstream's RTL would hash of each row, and why a corrected hash has to differ from it.
pub fn classify(rows: &[Row]) -> Vec<(OpennicInput, Option<Difference>)> {
    let driven: Vec<Driven<'_>> = rows
        .iter()
        .map(|row| Driven {
            frame: &row.head,
            beats: row.len_bytes.div_ceil(64),
            gap_cycles: row.gap_cycles.into(),
            reset_before: row.reset_before,
        })
        .collect();
    rss::classify_stream(&driven)
}

/// Hold computed hashes, one a row, against the measured ones.
pub fn compare(rows: &[Row], computed: &[u32]) -> Vec<Mismatch> {
    let reasons = classify(rows);
    (0..rows.len())
        .filter(|&row| rows[row].hash != computed[row])
        .map(|row| Mismatch { row, measured: rows[row].hash, computed: computed[row], reason: reasons[row].1 })
        .collect()
}

/// The corrected model's hashes.
///
/// # Errors
/// A key that is none.
pub fn corrected(rows: &[Row]) -> Result<Vec<u32>, rss::KeyError> {
    rows.iter().map(|row| Ok(rss::opennic(key(row)?.bytes(), &OpennicInput::parse(&row.head)))).collect()
}

/// The upstream profile's hashes.
///
/// # Errors
/// A key that is none.
pub fn upstream(rows: &[Row]) -> Result<Vec<u32>, rss::KeyError> {
    classify(rows).iter().zip(rows).map(|((input, _), row)| Ok(rss::opennic(key(row)?.bytes(), input))).collect()
}

/// Bytes from hexadecimal digits; blanks and colons between them are passed over.
pub fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.chars().filter(|c| !c.is_whitespace() && *c != ':').map(|c| c.to_digit(16).map(|d| d as u8));
    let digits: Vec<u8> = digits.collect::<Option<_>>()?;
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}
