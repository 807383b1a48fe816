//! Measured RSS hashes in the format of `opennic_rss.csv`: read, and held against a hash.
//!
//! Columns, named in the first line that is no comment: `seq,case,reset_before,gap,len,beats,key_hex,frame_hex,hash_hex,index`.
//! `key_hex` is the one 320-bit number, most significant byte first; `frame_hex` the first 128 bytes of the frame at most,
//! zeros behind them; `gap` idle cycles before the frame.

use std::fs;
use std::path::Path;

use models::rss::{self, Difference, Driven, Key, OpennicInput};

/// A file of vectors that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum VectorError {
    /// It can't be read.
    #[error("{path}")]
    Io {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A line is not what the header line promises.
    #[error("{path}:{line}: {why}")]
    Line {
        /// The file.
        path: String,
        /// From 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
}

/// One measured row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Line in the file, from 1.
    pub line: usize,
    /// What the frame is, as the file calls it.
    pub case: String,
    /// The block was reset before it.
    pub reset_before: bool,
    /// Idle cycles before it.
    pub gap_cycles: u64,
    /// Frame length.
    pub len_bytes: usize,
    /// Beats driven.
    pub beats: usize,
    /// The key.
    pub key: Key,
    /// First 128 bytes of the frame, or all of it.
    pub frame: Vec<u8>,
    /// The measured hash.
    pub hash: u32,
}

impl Row {
    /// The whole frame as it was driven: zeros behind the listed bytes.
    pub fn whole_frame(&self) -> Vec<u8> {
        let mut frame = self.frame.clone();
        frame.resize(self.len_bytes, 0);
        frame
    }
}

/// Read a file of vectors.
///
/// # Errors
/// [`VectorError`].
pub fn read(path: &Path) -> Result<Vec<Row>, VectorError> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|source| VectorError::Io { path: name.clone(), source })?;
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.trim().is_empty());
    let columns: Vec<&str> = lines.next().map(|(_, line)| line.split(',').collect()).unwrap_or_default();
    lines
        .map(|(number, line)| {
            let fields: Vec<&str> = line.split(',').collect();
            parse(&columns, &fields, number + 1).map_err(|why| VectorError::Line { path: name.clone(), line: number + 1, why })
        })
        .collect()
}

fn parse(columns: &[&str], fields: &[&str], line: usize) -> Result<Row, String> {
    let get = |name: &str| -> Result<&str, String> {
        let column = columns.iter().position(|c| *c == name).ok_or_else(|| format!("no column `{name}` in the header line"))?;
        fields.get(column).copied().ok_or_else(|| format!("ends before column `{name}`"))
    };
    let number = |name: &str| -> Result<u64, String> {
        get(name)?.parse().map_err(|_| format!("column `{name}` is no number"))
    };
    Ok(Row {
        line,
        case: get("case")?.to_string(),
        reset_before: number("reset_before")? != 0,
        gap_cycles: number("gap")?,
        len_bytes: number("len")? as usize,
        beats: number("beats")? as usize,
        key: format!("0x{}", get("key_hex")?).parse().map_err(|e: rss::KeyError| e.to_string())?,
        frame: hex(get("frame_hex")?).ok_or("column `frame_hex` is no row of hexadecimal bytes")?,
        hash: u32::from_str_radix(get("hash_hex")?, 16).map_err(|_| "column `hash_hex` is no hexadecimal number")?,
    })
}

/// Bytes from hexadecimal digits; blanks and colons between them are passed over.
pub fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> =
        text.chars().filter(|c| !c.is_whitespace() && *c != ':').map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// One row whose computed hash is not the measured one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The row's line.
    pub line: usize,
    /// The row's case.
    pub case: String,
    /// What upstream's RTL gave.
    pub measured: u32,
    /// What was computed.
    pub computed: u32,
    /// Why a corrected hash has to differ, if it has.
    pub reason: Option<Difference>,
}

/// What upstream's RTL would hash of each row, and why a corrected hash has to differ from it.
pub fn classify(rows: &[Row]) -> Vec<(OpennicInput, Option<Difference>)> {
    let driven: Vec<Driven<'_>> = rows
        .iter()
        .map(|row| Driven { frame: &row.frame, beats: row.beats, gap_cycles: row.gap_cycles, reset_before: row.reset_before })
        .collect();
    rss::classify_stream(&driven)
}

/// Hold computed hashes, one a row, against the measured ones.
pub fn compare(rows: &[Row], computed: &[u32]) -> Vec<Mismatch> {
    rows.iter()
        .zip(computed)
        .zip(classify(rows))
        .filter(|((row, computed), _)| row.hash != **computed)
        .map(|((row, &computed), (_, reason))| Mismatch { line: row.line, case: row.case.clone(), measured: row.hash, computed, reason })
        .collect()
}

/// The corrected model's hashes.
pub fn corrected(rows: &[Row]) -> Vec<u32> {
    rows.iter().map(|row| rss::opennic(row.key.bytes(), &OpennicInput::parse(&row.frame))).collect()
}

/// The upstream profile's hashes.
pub fn upstream(rows: &[Row]) -> Vec<u32> {
    classify(rows).iter().zip(rows).map(|((input, _), row)| rss::opennic(row.key.bytes(), input)).collect()
}
