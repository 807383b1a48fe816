//! A capture file as one side of a comparison.

use crate::Point;
use crate::read::{Event, Frame, ReadError, Reader, Refused, Verdict};
use crate::write::CommentFields;

use super::{Item, Lane, Side};

/// A capture in memory.
#[derive(Debug, Default)]
pub struct Capture {
    /// Frames, with the place that their interface stands for.
    pub frames: Vec<(Point, Frame)>,
    /// Packets that are not frames; to be told, since they are not compared.
    pub refused: Vec<Refused>,
}

impl Capture {
    /// Reads to the end. If the file can't be read on, what was whole comes back with the error.
    pub fn read(mut reader: Reader) -> (Self, Option<ReadError>) {
        let mut capture = Self::default();
        loop {
            let mut frame = Frame::default();
            match reader.read(&mut frame) {
                Ok(Event::Frame) => capture.frames.push((point_of(&reader, &frame), frame)),
                Ok(Event::Refused(refused)) => capture.refused.push(refused),
                Ok(Event::End) => return (capture, None),
                Err(error) => return (capture, Some(error)),
            }
        }
    }

    /// The frames to compare, with all that the capture says of them.
    #[must_use]
    pub fn items(&self) -> Vec<Item<'_>> {
        self.frames.iter().map(|(point, frame)| item(*point, frame)).collect()
    }
}

/// Interfaces of our own captures are named after places; others are numbered.
fn point_of(reader: &Reader, frame: &Frame) -> Point {
    let name = reader.interfaces().get(frame.interface as usize).and_then(|interface| interface.name.as_deref());
    name.and_then(|name| name.parse().ok()).unwrap_or(Point::Interface(frame.interface))
}

fn item(point: Point, frame: &Frame) -> Item<'_> {
    let comment = frame.meta.comment.as_deref().map(CommentFields::parse).unwrap_or_default();
    let verdict = match frame.meta.verdict {
        Some(Verdict::Xdp(action)) => Some(action),
        _ => None,
    };
    Item {
        lane: Lane { point, queue: frame.meta.queue },
        data: &frame.data,
        input: frame.meta.packet_id,
        cycle: comment.cycle,
        side: Side { hash: comment.hash, verdict, err: Some(frame.err), time_ns: frame.time_ns, drop: comment.drop },
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::align::{Class, Ignore, compare};
    use crate::read::Policy;
    use crate::write::{Packet, Pcap, PcapNg, Resolution};

    fn of(bytes: Vec<u8>) -> Capture {
        let (capture, error) = Capture::read(Reader::new(Cursor::new(bytes), "test", Policy::default()).unwrap());
        assert!(error.is_none());
        capture
    }

    fn ours(queue: u32, hash: u32) -> Vec<u8> {
        let mut out = PcapNg::new(Vec::new(), &Point::of_card(1, 1)).unwrap();
        let comment = CommentFields { hash: Some(hash), cycle: Some(9), ..CommentFields::default() };
        out.write(&Packet { queue: Some(queue), comment, ..Packet::new(Point::Function(0), 1, &[5; 60]) }).unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn what_a_capture_says_is_compared() {
        let (a, other_hash, other_queue) = (of(ours(1, 2)), of(ours(1, 3)), of(ours(4, 2)));
        assert_eq!(compare(&a.items(), &a.items(), &Ignore::default()), []);
        let found = compare(&a.items(), &other_hash.items(), &Ignore::default());
        assert_eq!(
            (found.len(), found[0].class, found[0].field, found[0].cycle),
            (1, Class::Side, Some("hash"), Some(9))
        );
        let found = compare(&a.items(), &other_queue.items(), &Ignore::default());
        assert_eq!((found.len(), found[0].class), (1, Class::Misrouted));
    }

    #[test]
    fn time_and_padding_count_unless_ignored() {
        // 50 bytes of UDP in a frame padded to 60: ethertype IPv4, total length 36.
        let mut frame = [0u8; 60];
        frame[12..18].copy_from_slice(&[8, 0, 0x45, 0, 0, 36]);
        let plain = |time_ns, data: &[u8]| {
            let mut out = Pcap::new(Vec::new(), Resolution::Nanoseconds).unwrap();
            out.write(time_ns, data).unwrap();
            of(out.finish().unwrap())
        };
        let (padded, later, short) = (plain(1, &frame), plain(1_500_000_000, &frame), plain(1, &frame[..50]));
        let found = compare(&padded.items(), &later.items(), &Ignore::default());
        assert_eq!((found.len(), found[0].field, found[0].value_got.as_str()), (1, Some("time"), "1.500000000"));
        assert_eq!(compare(&padded.items(), &later.items(), &Ignore::fields(["time"])), []);
        let found = compare(&padded.items(), &short.items(), &Ignore::default());
        assert_eq!((found.len(), found[0].class), (1, Class::WrongLength));
        assert_eq!(compare(&padded.items(), &short.items(), &Ignore::fields(["padding"])), []);
    }

    #[test]
    fn a_plain_capture_compares_by_bytes_alone() {
        let mut out = Pcap::new(Vec::new(), Resolution::Nanoseconds).unwrap();
        out.write(1, &[5; 60]).unwrap();
        let (plain, ours) = (of(out.finish().unwrap()), of(ours(1, 2)));
        assert_eq!(compare(&plain.items(), &ours.items(), &Ignore::fields(["point", "queue"])), []);
    }
}
