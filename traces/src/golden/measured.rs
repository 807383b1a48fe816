//! Golden cases whose expected hashes and queues were measured on upstream's RTL, by others.
//!
//! The measurements are a CSV file with one row a frame (`opennic_rss.csv`, format `onic hash check`): the frame's first
//! 128 bytes, its length, the idle cycles before it, the key, and the hash that upstream's hash block gave. Upstream's
//! hash depends on what stands around a frame in three ways that a corrected card does not repeat (shell.md sections 9.1
//! and 9.3). Rows that may be touched by one of them are left out, by what their bytes and gaps say and never by their
//! result:
//!
//! - tagged and not IPv4;
//! - a VLAN nibble gets in: the frame's own or, if it is no longer than a beat, its neighbour's;
//! - one beat long, with the ports beyond that beat: upstream takes them from an earlier frame.

use super::built_in::{Made, pcap};
use super::{Case, Entry, Expected, Input, Origin, Slot};
use crate::{Point, digest};

/// Bytes in a beat of the 250 MHz stream.
const BEAT_LEN: usize = 64;
/// Most bytes of a frame that the file holds; those behind them were driven as 0.
const HEAD_LEN: usize = 128;

/// A row of the measurements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The block was reset before this frame.
    pub reset_before: bool,
    /// Idle cycles before the first beat.
    pub gap_cycles: u32,
    /// Frame length in bytes.
    pub len_bytes: usize,
    /// 80 hexadecimal digits: the key as one number.
    pub key: String,
    /// The first bytes of the frame, at most 128.
    pub head: Vec<u8>,
    /// Measured.
    pub hash: u32,
}

/// A line of the file that is no row.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct RowError {
    /// Line, first 1.
    pub line: usize,
    /// What is missing or wrong.
    pub reason: String,
}

/// Reads the CSV text. Lines that start with `#` are comments, the first other line names the columns.
///
/// # Errors
/// The first line that is no row.
pub fn parse(text: &str) -> Result<Vec<Row>, RowError> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.is_empty());
    let names: Vec<&str> = lines.next().map_or(Vec::new(), |(_, line)| line.split(',').collect());
    lines
        .map(|(at, line)| {
            let values: Vec<&str> = line.split(',').collect();
            parse_row(&names, &values).map_err(|reason| RowError { line: at + 1, reason })
        })
        .collect()
}

fn parse_row(names: &[&str], values: &[&str]) -> Result<Row, String> {
    let text = |name: &str| {
        let column = names.iter().position(|&column| column == name);
        column.and_then(|at| values.get(at)).copied().ok_or_else(|| format!("no column `{name}`"))
    };
    let number = |name: &str| text(name)?.parse::<u32>().map_err(|_| format!("`{name}` is no number"));
    let key = text("key_hex")?;
    if key.len() != 80 || !key.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err("`key_hex` is not 80 hexadecimal digits".to_owned());
    }
    let (len_bytes, head) =
        (number("len")? as usize, bytes_of_hex(text("frame_hex")?).ok_or("`frame_hex` is not hexadecimal")?);
    if len_bytes > usize::from(u16::MAX) || head.len() != len_bytes.min(HEAD_LEN) {
        return Err(format!("`frame_hex` has {} bytes, of a frame of {len_bytes}", head.len()));
    }
    Ok(Row {
        reset_before: text("reset_before")? == "1",
        gap_cycles: number("gap")?,
        len_bytes,
        key: key.to_owned(),
        head,
        hash: u32::from_str_radix(text("hash_hex")?, 16).map_err(|_| "`hash_hex` is not hexadecimal".to_owned())?,
    })
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    text.as_bytes().chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}

impl Row {
    /// The whole frame.
    #[must_use]
    pub fn frame(&self) -> Vec<u8> {
        let mut frame = self.head.clone();
        frame.resize(self.len_bytes, 0);
        frame
    }

    fn beats(&self) -> usize {
        self.len_bytes.div_ceil(BEAT_LEN)
    }

    fn ethertype_at(&self, at: usize) -> Option<u16> {
        self.head.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn is_tagged(&self) -> bool {
        self.ethertype_at(12) == Some(0x8100)
    }

    /// Upstream's "nibble": VLAN id bits 11:8.
    fn nibble(&self) -> u8 {
        if self.is_tagged() { self.head.get(14).map_or(0, |byte| byte & 15) } else { 0 }
    }

    /// Upstream takes part of the ports from behind the frame's only beat.
    fn has_stale_ports(&self) -> bool {
        let (type_at, ip_at) = if self.is_tagged() { (16, 18) } else { (12, 14) };
        if self.beats() > 1 || self.ethertype_at(type_at) != Some(0x0800) {
            return false;
        }
        let words = usize::from(self.head.get(ip_at).map_or(0, |byte| byte & 15));
        words >= 5 && ip_at + 4 * words + 4 > BEAT_LEN
    }
}

/// Is this row's hash the one that a corrected card computes? `before` and `after` are its neighbours in the file.
///
/// "After" follows in the very next cycle only if its gap is 0 and neither reset nor key change lies between: the
/// measurement put idle cycles there.
#[must_use]
pub fn is_free_of_neighbours(before: Option<&Row>, row: &Row, after: Option<&Row>) -> bool {
    let touching =
        |first: &Row, second: &Row| second.gap_cycles == 0 && !second.reset_before && first.key == second.key;
    let next = after.filter(|after| touching(row, after));
    let nibble = match (row.beats(), next.map(Row::beats)) {
        (1, Some(1)) => row.nibble(),
        (1, Some(_)) => before.filter(|before| before.beats() == 1 && touching(before, row)).map_or(0, Row::nibble),
        (2, Some(2..)) => row.nibble(),
        _ => 0,
    };
    let tagged_not_ipv4 = row.is_tagged() && row.ethertype_at(16) != Some(0x0800);
    nibble == 0 && !tagged_not_ipv4 && !row.has_stale_ports()
}

/// Rows with this key that [`is_free_of_neighbours`], in order.
#[must_use]
pub fn rows_of_key<'a>(rows: &'a [Row], key: &str) -> Vec<&'a Row> {
    let free = |at: usize| {
        let before = at.checked_sub(1).map(|at| &rows[at]);
        rows[at].key == key && is_free_of_neighbours(before, &rows[at], rows.get(at + 1))
    };
    (0..rows.len()).filter(|&at| free(at)).map(|at| &rows[at]).collect()
}

/// How the queues of a measured case are laid out. The hash is measured; the table is ours to choose.
struct Plan {
    name: &'static str,
    /// Keys are numbered by how many rows they have, most first, then as they come in the file.
    key_rank: usize,
    queues: u16,
    /// Entry of the indirection table by index.
    entry: fn(usize) -> u32,
    table: Table,
}

enum Table {
    Equal,
    List,
}

const PLANS: [Plan; 5] = [
    Plan { name: "measured-1", key_rank: 0, queues: 8, entry: |index| (index % 8) as u32, table: Table::Equal },
    Plan { name: "measured-2", key_rank: 1, queues: 16, entry: |index| (index % 16) as u32, table: Table::Equal },
    Plan { name: "measured-3", key_rank: 2, queues: 3, entry: |index| (index % 3) as u32, table: Table::Equal },
    // A table without order: index by 37, which visits all 128 entries.
    Plan {
        name: "measured-4",
        key_rank: 3,
        queues: 64,
        entry: |index| (index * 37 % 128 / 2) as u32,
        table: Table::List,
    },
    // Every index its own queue.
    Plan { name: "measured-5", key_rank: 4, queues: 128, entry: |index| 127 - index as u32, table: Table::List },
];

/// The measured cases, with their expected results, from the measurements.
#[must_use]
pub fn all(rows: &[Row]) -> Vec<(Made, Expected)> {
    let keys = keys_by_rows(rows);
    PLANS.iter().filter_map(|plan| Some(make(plan, rows, keys.get(plan.key_rank)?))).collect()
}

fn keys_by_rows(rows: &[Row]) -> Vec<&str> {
    let mut keys: Vec<(&str, usize)> = Vec::new();
    for row in rows {
        match keys.iter_mut().find(|(key, _)| *key == row.key) {
            Some((_, count)) => *count += 1,
            None => keys.push((&row.key, 1)),
        }
    }
    keys.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    keys.into_iter().map(|(key, _)| key).collect()
}

fn make(plan: &Plan, rows: &[Row], key: &str) -> (Made, Expected) {
    let chosen = rows_of_key(rows, key);
    let frames: Vec<Vec<u8>> = chosen.iter().map(|row| row.frame()).collect();
    let bytes = pcap(&frames);
    let mut expected = Expected::new(Origin::UpstreamMeasured);
    for (at, (row, frame)) in chosen.iter().zip(&frames).enumerate() {
        let entry = Entry {
            input: Some((Point::Port(0), at as u64)),
            len_bytes: frame.len() as u32,
            digest: digest(frame),
            hash: Some(row.hash),
            verdict: None,
        };
        expected.push(Point::Function(0), Slot::Queue((plan.entry)((row.hash & 127) as usize)), entry);
    }
    let input = Input {
        port: 0,
        file: "input.pcap".to_owned(),
        frames: frames.len() as u64,
        digest: digest(&bytes).to_string(),
    };
    let list = || (0..128).map(|index| (plan.entry)(index).to_string()).collect::<Vec<_>>().join(",");
    let case = Case {
        about: format!(
            "{} frames whose hash was measured on upstream's RTL under one key; queue = table[hash & 127].",
            frames.len()
        ),
        origin: Origin::UpstreamMeasured,
        shape: format!("1x1,queues={}", plan.queues),
        rss_key: Some(format!("0x{key}")),
        rss_table: Some(match plan.table {
            Table::Equal => format!("equal {}", plan.queues),
            Table::List => list(),
        }),
        rss_hash: Some("opennic".to_owned()),
        pace: None,
        runts: None,
        stalls: None,
        xdp: None,
        seed: 1,
        input: vec![input],
    };
    (Made { name: plan.name, case, files: vec![("input.pcap".to_owned(), bytes)] }, expected)
}
