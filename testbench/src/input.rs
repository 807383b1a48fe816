//! Captures into frames for the wire: what a NIC can take, and a count of what it can't.

use std::collections::BTreeMap;
use std::path::PathBuf;

use regs::PortId;
use traces::read::{Event, Frame, Policy, ReadError, Reader};

use crate::card::Shape;
use crate::frames::MIN_FRAME;
use crate::run::InFrame;
use crate::shape::MAX_PKT_LEN;

/// A capture and the port where it goes in: `FILE[@PORT]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// The file, or `-`.
    pub path: PathBuf,
    /// The port.
    pub port: PortId,
}

impl From<&str> for Source {
    /// What follows the last `@` is the port if it is a number; a file name may hold an `@` otherwise.
    fn from(text: &str) -> Source {
        match text.rsplit_once('@').and_then(|(path, port)| Some((path, port.parse().ok()?))) {
            Some((path, port)) => Source { path: path.into(), port: PortId(port) },
            None => Source { path: text.into(), port: PortId(0) },
        }
    }
}

/// Short frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Runts {
    /// Zeros up to 60 bytes, as a sending NIC does.
    #[default]
    Pad,
    /// As they are; the MAC drops them.
    Keep,
}

/// Packets of one kind that were not sent, with the first of them as an example.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skip {
    /// How many.
    pub count: u64,
    /// The first one, in a sentence.
    pub first: String,
}

/// Input read.
#[derive(Debug, Default)]
pub struct Input {
    /// Frames, file after file.
    pub frames: Vec<InFrame>,
    /// Packets that can't be sent, by kind.
    pub skips: BTreeMap<String, Skip>,
    /// Files that end in the middle, or are damaged. Whole packets before that are in `frames`.
    pub damage: Vec<ReadError>,
    /// Things worth a line that keep nothing from being sent.
    pub notes: BTreeMap<String, u64>,
    /// Packets in all files, skipped ones too.
    pub packets: u64,
}

impl Input {
    /// Everything in the files was sent.
    pub fn is_whole(&self) -> bool {
        self.skips.is_empty() && self.damage.is_empty()
    }

    fn skip(&mut self, kind: String, first: impl FnOnce() -> String) {
        self.skips.entry(kind).or_insert_with(|| Skip { count: 0, first: first() }).count += 1;
    }
}

/// Read captures for a card of this shape.
///
/// # Errors
/// A file that can't be opened or is no capture at all. One that is cut is no error here: see [`Input::damage`].
pub fn read(sources: &[Source], shape: &Shape, runts: Runts) -> Result<Input, ReadError> {
    let mut input = Input::default();
    for source in sources {
        let reader = Reader::open(&source.path, Policy::default())?;
        read_one(reader, source.port, shape, runts, &mut input);
    }
    Ok(input)
}

fn read_one(mut reader: Reader, port: PortId, shape: &Shape, runts: Runts, input: &mut Input) {
    let name = reader.name().to_string();
    let longest = usize::from(shape.max_pkt_len) - 4;
    let mut frame = Frame::default();
    // Numbers go on from file to file, so that one names one packet of the whole input.
    let earlier = input.packets;
    loop {
        match reader.read(&mut frame) {
            Ok(Event::End) => break,
            Err(error) => {
                input.damage.push(error);
                break;
            }
            Ok(Event::Refused(refused)) => {
                input.packets += 1;
                input.skip(refused.why.kind(), || format!("{name}: {refused}"));
            }
            Ok(Event::Frame) => {
                input.packets += 1;
                take(&mut frame, &name, port, longest, runts, earlier, input);
            }
        }
    }
    for (note, count) in &reader.tally().notes {
        *input.notes.entry(note.to_string()).or_default() += count;
    }
}

fn take(frame: &mut Frame, name: &str, port: PortId, longest: usize, runts: Runts, earlier: u64, input: &mut Input) {
    let len = frame.data.len();
    if len > longest {
        let number = frame.index + 1;
        let more = if len + 4 <= usize::from(MAX_PKT_LEN) {
            format!(" (--shape …,max-pkt={})", len + 4)
        } else {
            ", and none takes it".into()
        };
        let why = format!("{name}: packet {number}: {len} bytes, the card takes {longest}{more}");
        input.skip("over-size".into(), || why);
        return;
    }
    if len < MIN_FRAME {
        let note =
            if runts == Runts::Pad { "shorter than 60 bytes, padded" } else { "shorter than 60 bytes, kept as runts" };
        *input.notes.entry(note.into()).or_default() += 1;
        if runts == Runts::Pad {
            frame.data.resize(MIN_FRAME, 0);
        }
    }
    let data = std::mem::take(&mut frame.data);
    input.frames.push(InFrame { port, index: earlier + frame.index, time_ns: frame.time_ns, data, err: frame.err });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_follows_the_last_at_sign() {
        assert_eq!(Source::from("a.pcap@1"), Source { path: "a.pcap".into(), port: PortId(1) });
        assert_eq!(Source::from("me@home.pcap"), Source { path: "me@home.pcap".into(), port: PortId(0) });
    }
}
