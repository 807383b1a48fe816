//! Something that is not as it should be, told so that one need not look elsewhere: which packet, where, what both cards made
//! of it, and the cycle in the RTL.
//!
//! ```text
//! fn0 queue 3, packet 118 of 4096: payload differs at byte 62, 54 became 44
//!   expected  0x0030: … 00 00[54]…  (model, queue 3)
//!   got       0x0030: … 00 00[44]…  (hybrid, queue 3, cycle 90412)
//!   flow      udp 10.0.0.1:7 > 10.0.0.2:9
//! ```
//!
//! Packets and bytes count from 0, as everywhere. A cycle is one of axis_aclk, see [`cycle_before`].

use std::fmt::Write as _;

use models::observation::Fate;
use models::time::Time;
use regs::{FuncId, PortId};
use traces::align::{Class, Difference};

use crate::outcome::{Outcome, Path, cycle_before};
use crate::run::InFrame;
use crate::scoreboard::{Emerged, function_of};

/// How many packets that share a cause are named.
const NAMED: usize = 8;

/// Something that is not as it should be.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its kind, for scripts: a class of difference, `sum`, `memory`, `queue`, `counter`.
    pub kind: String,
    /// In a sentence or more, for people.
    pub text: String,
    /// Position of the input frame that it is about.
    pub input: Option<usize>,
    /// When, on the card under test: the cycle in which the wrong byte or else the frame's last beat left the shell; for a
    /// lost frame, in which it was last seen.
    pub cycle: Option<u64>,
    /// The edge that ends that cycle.
    pub edge: Option<Time>,
    /// The difference itself, where it is one between frames.
    pub difference: Option<Difference>,
}

impl Finding {
    /// One that is about no frame.
    pub fn new(kind: &str, text: String) -> Finding {
        Finding { kind: kind.into(), text, input: None, cycle: None, edge: None, difference: None }
    }

    /// The same, at a time.
    pub fn at(self, edge: Time) -> Finding {
        Finding { cycle: Some(cycle_before(edge)), edge: Some(edge), ..self }
    }
}

/// What differences are told from.
pub(crate) struct Teller<'a> {
    pub(crate) want: &'a [&'a Emerged],
    pub(crate) have: &'a [&'a Emerged],
    pub(crate) input: &'a [InFrame],
    pub(crate) got: &'a Outcome,
    pub(crate) expected: &'a Outcome,
    pub(crate) functions: u8,
}

impl Teller<'_> {
    /// A difference as a finding.
    pub(crate) fn tell(&self, difference: Difference) -> Finding {
        let original = difference.duplicate_of.and_then(|at| self.want.get(at)).and_then(|frame| frame.input);
        let position = difference.input.map(|at| at as usize).or(original);
        let last_seen = if difference.got.is_none() { self.last_seen(position) } else { None };
        let edge = self.edge(&difference).or(last_seen.as_ref().map(|&(time, _)| time));
        let mut text = format!("{}: {}", self.subject(&difference, position), what(&difference, self.want, self.have));
        let name = &self.expected.card;
        let _ = write!(
            text,
            "\n  expected  {}",
            side(self.frame(difference.expected, self.want), &difference, true, name, None)
        );
        let got = self.frame(difference.got, self.have);
        let name = match &last_seen {
            Some((_, place)) => format!("{}, last seen {place}", self.got.card),
            None => self.got.card.clone(),
        };
        let _ = write!(text, "\n  got       {}", side(got, &difference, false, &name, edge.map(cycle_before)));
        let _ = write!(text, "\n  flow      {}", difference.flow);
        if difference.count > 1 {
            let _ = write!(text, "\n  and       {}", self.others(&difference));
        }
        Finding {
            kind: difference.class.to_string(),
            text,
            input: position,
            cycle: edge.map(cycle_before).or(difference.cycle.filter(|_| difference.got.is_some())),
            edge,
            difference: Some(difference),
        }
    }

    fn frame<'f>(&self, index: Option<usize>, frames: &'f [&'f Emerged]) -> Option<&'f Emerged> {
        index.and_then(|at| frames.get(at)).copied()
    }

    fn subject(&self, difference: &Difference, position: Option<usize>) -> String {
        match position.and_then(|at| self.input.get(at)) {
            // Of a part of the input, as `--only` makes one, the number of frames says nothing.
            Some(frame) if frame.index >= self.input.len() as u64 => {
                format!("{}, packet {}", difference.lane, frame.index)
            }
            Some(frame) => format!("{}, packet {} of {}", difference.lane, frame.index, self.input.len()),
            None => format!("{}, a frame that belongs to no packet", difference.lane),
        }
    }

    /// The edge at which the frame got left the shell; with a byte, that byte's.
    fn edge(&self, difference: &Difference) -> Option<Time> {
        let frame = self.frame(difference.got, self.have)?;
        match (&frame.crossing, difference.byte) {
            (Some(crossing), Some(byte)) => Some(crossing.of_byte(byte)),
            (Some(crossing), None) => Some(crossing.last()),
            (None, _) => frame.queue.is_none().then_some(frame.time),
        }
    }

    /// Where the card's monitors saw a lost frame last. They count frames, they do not look into them.
    fn last_seen(&self, position: Option<usize>) -> Option<(Time, String)> {
        let at = position?;
        let port = self.input.get(at)?.port;
        let index = self.input[..at].iter().filter(|frame| frame.port == port).count();
        let paths = self.got.paths(|port| function_of(port, self.functions));
        // One that was accepted and never hashed has made its successors' hashes another frame's.
        let in_step = paths.iter().all(|path| path.rss.is_some() || path.fate != Fate::Accepted);
        let path = paths.into_iter().find(|path| path.port == port && path.index == index)?;
        let Path { port: PortId(port), time, fate, rss, hashed, .. } = path;
        match (rss, hashed) {
            (Some((FuncId(func), seen, entry)), Some(hashed)) if in_step => {
                Some((hashed, format!("in function {func} with hash {seen:08x}, table entry {entry}")))
            }
            _ => Some((time, format!("at the end of port {port}'s receive side, {}", fate.name()))),
        }
    }

    /// The frames that share the cause.
    fn others(&self, difference: &Difference) -> String {
        let input = |&(expected, got): &(Option<usize>, Option<usize>)| {
            let known = self.frame(expected, self.want).and_then(|frame| frame.input);
            known.or_else(|| self.frame(got, self.have).and_then(|frame| frame.input))
        };
        let mut named: Vec<String> = difference
            .others
            .iter()
            .filter_map(input)
            .filter_map(|at| self.input.get(at))
            .map(|frame| frame.index.to_string())
            .take(NAMED)
            .collect();
        if difference.others.len() > NAMED && !named.is_empty() {
            named.push("…".into());
        }
        let more = difference.count - 1;
        let frames = if more == 1 { "frame" } else { "frames" };
        match named.as_slice() {
            [] => format!("{more} more {frames} alike"),
            named => format!("{more} more {frames} alike: packets {}", named.join(", ")),
        }
    }
}

/// What has happened to the frame.
fn what(difference: &Difference, want: &[&Emerged], have: &[&Emerged]) -> String {
    let field = difference.field.unwrap_or_default();
    match (difference.class, difference.byte) {
        (Class::Lost, _) => "lost".into(),
        (Class::Extra, _) if difference.duplicate_of.is_some() => "came once too often".into(),
        (Class::Extra, _) => "came out, and nobody sent it".into(),
        (Class::Misrouted, _) => difference.lane_got.map_or("misrouted".into(), |lane| format!("misrouted to {lane}")),
        (Class::Reordered, _) => "out of order".into(),
        (Class::WrongLength, Some(byte)) => {
            let (expected, got) = (&difference.value_expected, &difference.value_got);
            format!("{got} bytes long in place of {expected}, differs from byte {byte} on")
        }
        (Class::Corrupt, Some(byte)) => {
            let value = |index: Option<usize>, frames: &[&Emerged]| {
                let frame = index.and_then(|at| frames.get(at));
                frame.and_then(|frame| frame.data.get(byte)).map_or("nothing".into(), |byte| format!("{byte:02x}"))
            };
            let (expected, got) = (value(difference.expected, want), value(difference.got, have));
            format!("{field} differs at byte {byte}, {expected} became {got}")
        }
        _ => format!("{field} differs"),
    }
}

/// One card's frame: what differs, its bytes there, and where it was.
fn side(frame: Option<&Emerged>, difference: &Difference, is_expected: bool, card: &str, cycle: Option<u64>) -> String {
    let value = if is_expected { &difference.value_expected } else { &difference.value_got };
    let value = match (difference.class, difference.field) {
        (Class::Side, Some(field)) => format!("{field} {value}  "),
        _ => String::new(),
    };
    let bytes = frame.map_or("nothing".into(), |frame| window(&frame.data, difference.byte));
    let place = frame.map_or(String::new(), |frame| match (frame.queue, frame.point.is_drop()) {
        (Some(queue), _) => format!(", queue {queue}"),
        (None, true) => format!(", {}", frame.point),
        (None, false) => String::new(),
    });
    let cycle = cycle.map_or(String::new(), |cycle| format!(", cycle {cycle}"));
    format!("{value}{bytes}  ({card}{place}{cycle})")
}

/// Sixteen bytes around the one that matters, which stands in brackets, with their offset.
fn window(data: &[u8], byte: Option<usize>) -> String {
    const SHOWN: usize = 16;
    let start = byte.unwrap_or(0).min(data.len()) / SHOWN * SHOWN;
    let mut text = format!("{start:#06x}:");
    for (at, value) in data.iter().enumerate().skip(start).take(SHOWN) {
        let before = match byte {
            Some(byte) if at == byte => '[',
            Some(byte) if at == byte + 1 => ']',
            _ => ' ',
        };
        let _ = write!(text, "{before}{value:02x}");
    }
    let last = data.len().min(start + SHOWN);
    match byte {
        Some(byte) if byte + 1 == last => text.push(']'),
        Some(byte) if byte >= data.len() => text += " [end]",
        _ => {}
    }
    let _ = write!(text, " ({} bytes)", data.len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_that_differs_stands_in_brackets() {
        let data: Vec<u8> = (0..20).collect();
        assert_eq!(window(&data, Some(17)), "0x0010: 10[11]12 13 (20 bytes)");
        assert_eq!(window(&data, Some(15)), "0x0000: 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e[0f] (20 bytes)");
        assert_eq!(window(&data, Some(19)), "0x0010: 10 11 12[13] (20 bytes)");
        assert_eq!(window(&data, Some(20)), "0x0010: 10 11 12 13 [end] (20 bytes)");
        assert_eq!(window(&[], None), "0x0000: (0 bytes)");
    }
}
