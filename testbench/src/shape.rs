//! What a run is asked for, in the words of the command line: shape, pace, RSS table, host profile. Parsing only.

use std::fmt;
use std::str::FromStr;

use driver_core::rss::{RssError, TABLE_LEN, Table};

use crate::card::Shape;

/// A word on the command line that can't be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}: {why}")]
pub struct BadOption {
    /// The option's value as given.
    pub what: String,
    /// What is wrong with it, and what would be right.
    pub why: String,
}

fn bad(what: &str, why: impl Into<String>) -> BadOption {
    BadOption { what: what.into(), why: why.into() }
}

/// Longest frame that any card can be set up for, FCS counted. Source: shell.md section 1.
pub const MAX_PKT_LEN: u16 = 9600;

impl Default for Shape {
    /// One function, one port, 8 queues, 64…1518 bytes on the wire, MTU 1500, rings of 1024.
    fn default() -> Shape {
        Shape { functions: 1, ports: 1, queues: 8, min_pkt_len: 64, max_pkt_len: 1518, mtu: 1500, ring: 1024 }
    }
}

impl FromStr for Shape {
    type Err = BadOption;

    /// `PFxPORTS[,queues=N,max-pkt=N,min-pkt=N,mtu=N,ring=N]`. The MTU follows max-pkt unless given.
    fn from_str(text: &str) -> Result<Shape, BadOption> {
        let mut shape = Shape::default();
        let mut mtu = None;
        let mut words = text.split(',');
        let size = words.next().unwrap_or_default();
        let counts = size.split_once('x').and_then(|(f, p)| Some((f.parse().ok()?, p.parse().ok()?)));
        (shape.functions, shape.ports) =
            counts.ok_or_else(|| bad(text, "starts with FUNCTIONSxPORTS, like 1x1 or 2x2"))?;
        for word in words {
            let (knob, value) = word.split_once('=').ok_or_else(|| bad(word, "is not KNOB=NUMBER"))?;
            let number: u16 = value.parse().map_err(|_| bad(word, "the number must lie in 0…65535"))?;
            match knob {
                "queues" => shape.queues = number,
                "max-pkt" => shape.max_pkt_len = number,
                "min-pkt" => shape.min_pkt_len = number,
                "mtu" => mtu = Some(number),
                "ring" => shape.ring = number,
                _ => return Err(bad(word, "knows only queues, max-pkt, min-pkt, mtu and ring")),
            }
        }
        shape.mtu = mtu.unwrap_or(shape.max_pkt_len.saturating_sub(18));
        shape.check()?;
        Ok(shape)
    }
}

impl Shape {
    /// Limits of the hardware. Source: shell.md section 1, driver.md section 1.
    fn check(&self) -> Result<(), BadOption> {
        let limit = |ok: bool, name: &str, value: u16, why: &str| {
            if ok { Ok(()) } else { Err(bad(&format!("{name}={value}"), why)) }
        };
        limit((1..=4).contains(&self.functions), "functions", self.functions.into(), "a card has 1 to 4")?;
        limit((1..=2).contains(&self.ports), "ports", self.ports.into(), "a card has 1 or 2")?;
        // Functions own 64 queues each, as the vendor's driver lays them out; one alone may have all of the QDMA's 512.
        let most = if self.functions == 1 { 512 } else { 64 };
        let why = format!("a function of {} has 1 to {most}", self.functions);
        limit((1..=most).contains(&self.queues), "queues", self.queues, &why)?;
        limit((64..=256).contains(&self.min_pkt_len), "min-pkt", self.min_pkt_len, "64 to 256, FCS counted")?;
        limit(
            (256..=MAX_PKT_LEN).contains(&self.max_pkt_len),
            "max-pkt",
            self.max_pkt_len,
            "256 to 9600, FCS counted",
        )?;
        limit(self.mtu >= 68, "mtu", self.mtu, "at least 68")?;
        let frame = u32::from(self.mtu) + 18;
        limit(
            frame <= u32::from(self.max_pkt_len),
            "mtu",
            self.mtu,
            &format!(
                "an MTU of {} makes frames of {frame} bytes with FCS, over max-pkt={}",
                self.mtu, self.max_pkt_len
            ),
        )?;
        limit(self.ring >= 4, "ring", self.ring, "at least 4 entries, the status entry counted")
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = Shape::default();
        write!(f, "{}x{}", self.functions, self.ports)?;
        let knobs = [
            ("queues", self.queues, base.queues),
            ("max-pkt", self.max_pkt_len, base.max_pkt_len),
            ("min-pkt", self.min_pkt_len, base.min_pkt_len),
            ("mtu", self.mtu, self.max_pkt_len.saturating_sub(18)),
            ("ring", self.ring, base.ring),
        ];
        knobs.iter().filter(|(_, value, default)| value != default).try_for_each(|(k, v, _)| write!(f, ",{k}={v}"))
    }
}

/// When frames start at the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pace {
    /// As soon as the receive buffer has room: nothing overflows.
    #[default]
    Fast,
    /// Back to back at 100 Gb/s.
    Line,
    /// One beat a cycle of cmac_clk, no gaps: faster than any wire.
    Bus,
    /// As the capture's times say, gaps cut to this many ns.
    Capture {
        /// The longest gap kept, ns.
        max_gap_ns: u64,
    },
    /// This many Mb/s on the wire.
    Rate {
        /// Mb/s.
        mbps: u64,
    },
}

impl FromStr for Pace {
    type Err = BadOption;

    /// `fast|line|bus|capture[:MAXGAP]|GBPS`; MAXGAP like `10us`, ns by default.
    fn from_str(text: &str) -> Result<Pace, BadOption> {
        match text {
            "fast" => Ok(Pace::Fast),
            "line" => Ok(Pace::Line),
            "bus" => Ok(Pace::Bus),
            "capture" => Ok(Pace::Capture { max_gap_ns: u64::MAX }),
            _ if text.starts_with("capture:") => Ok(Pace::Capture { max_gap_ns: parse_ns(&text[8..])? }),
            _ => match text.parse::<f64>() {
                Ok(gbps) if (0.001..=100.0).contains(&gbps) => Ok(Pace::Rate { mbps: (gbps * 1000.0).round() as u64 }),
                _ => Err(bad(text, "is none of fast, line, bus, capture[:MAXGAP], or a rate of 0.001 to 100 Gb/s")),
            },
        }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pace::Fast => f.write_str("fast"),
            Pace::Line => f.write_str("line"),
            Pace::Bus => f.write_str("bus"),
            Pace::Capture { max_gap_ns: u64::MAX } => f.write_str("capture"),
            Pace::Capture { max_gap_ns } => write!(f, "capture:{max_gap_ns}ns"),
            Pace::Rate { mbps } => write!(f, "{}", *mbps as f64 / 1000.0),
        }
    }
}

/// A span of time: a number with `ns`, `us`, `ms` or `s`; ns without.
pub(crate) fn parse_ns(text: &str) -> Result<u64, BadOption> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(bad(text, "has a unit other than ns, us, ms, s")),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(unit))
        .ok_or_else(|| bad(text, "is not a whole number with a unit"))
}

/// `--rss-table`: which queue each of the 128 entries names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TableSpec {
    /// `equal N`: entry i is i mod N.
    Equal(u16),
    /// `weight A B …`: queue i gets its share of the entries, in one run, as ethtool does.
    Weight(Vec<u16>),
    /// 128 entries, named one by one.
    List(Vec<u16>),
}

impl FromStr for TableSpec {
    type Err = BadOption;

    fn from_str(text: &str) -> Result<TableSpec, BadOption> {
        let numbers = |rest: &str| -> Result<Vec<u16>, BadOption> {
            rest.split([' ', ',', ':'])
                .filter(|word| !word.is_empty())
                .map(|word| word.parse().map_err(|_| bad(word, "is no queue number")))
                .collect()
        };
        let (kind, rest) = text.split_once([' ', '=', ':']).unwrap_or((text, ""));
        match kind {
            "equal" => match numbers(rest)?[..] {
                [n] if n > 0 => Ok(TableSpec::Equal(n)),
                _ => Err(bad(text, "equal takes one number of queues, at least 1")),
            },
            "weight" => {
                let weights = numbers(rest)?;
                if weights.iter().map(|&w| u32::from(w)).sum::<u32>() == 0 {
                    return Err(bad(text, "at least one weight must be more than 0"));
                }
                Ok(TableSpec::Weight(weights))
            }
            _ => {
                let list = numbers(text)?;
                if list.len() != TABLE_LEN {
                    return Err(bad(text, format!("a table has {TABLE_LEN} entries, not {}", list.len())));
                }
                Ok(TableSpec::List(list))
            }
        }
    }
}

impl fmt::Display for TableSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |list: &[u16]| list.iter().map(u16::to_string).collect::<Vec<_>>().join(",");
        match self {
            TableSpec::Equal(n) => write!(f, "equal:{n}"),
            TableSpec::Weight(w) => write!(f, "weight:{}", join(w)),
            TableSpec::List(l) => f.write_str(&join(l)),
        }
    }
}

impl TableSpec {
    /// The table.
    ///
    /// # Errors
    /// [`RssError`]; the words were checked when they were parsed, so it is one that no card can hold.
    pub fn table(&self) -> Result<Table, RssError> {
        match self {
            TableSpec::Equal(queues) => Table::equal(*queues),
            TableSpec::List(list) => Table::from_slice(list),
            TableSpec::Weight(weights) => Table::weighted(&weights.iter().map(|&w| u32::from(w)).collect::<Vec<_>>()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_reads_back_as_it_prints() {
        for text in ["1x1", "2x2,queues=16", "1x1,max-pkt=9600,ring=4096", "4x1,queues=3,mtu=1000"] {
            let shape: Shape = text.parse().expect(text);
            assert_eq!(shape.to_string().parse::<Shape>().expect("its own print"), shape);
        }
    }

    #[test]
    fn bad_shapes_name_the_knob() {
        for (text, word) in [
            ("5x1", "functions"),
            ("1x1,queues=0", "queues"),
            ("1x1,mtu=1501", "1519"),
            ("1x1,foo=1", "foo"),
            ("x", "FUNCTIONS"),
        ] {
            let error = text.parse::<Shape>().expect_err(text).to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn weights_share_the_table_as_ethtool_does() {
        let table = "weight 1 2 1".parse::<TableSpec>().expect("weights").table().expect("a table");
        let count = |q| table.entries().iter().filter(|&&e| e == q).count();
        assert_eq!([count(0), count(1), count(2)], [32, 64, 32]);
        assert!(table.entries().is_sorted());
    }

    #[test]
    fn paces() {
        assert_eq!("capture:10us".parse(), Ok(Pace::Capture { max_gap_ns: 10_000 }));
        assert_eq!("2.5".parse(), Ok(Pace::Rate { mbps: 2500 }));
        assert!("quick".parse::<Pace>().is_err());
        assert!("101".parse::<Pace>().is_err());
    }
}
