//! What came out of a card as a capture: `--out` and `--out-against`, and both sides in a failure's folder.
//!
//! One interface for each place of the card ([`traces::Point::of_card`]), frames in order of time, nanosecond times that
//! begin with the first input frame's own. Nothing but the outcome and the input goes into the file: the same run gives the
//! same bytes. Where a frame is known by its bytes alone (a card without monitors) the fields that only monitors know are
//! left out.

use std::io::{self, Write};

use models::observation::{Fate, Point as Seen};
use models::time::Time;
use traces::Point;
use traces::read::Direction;
use traces::write::{CommentFields, Packet, PcapNg, errors};

use crate::card::Shape;
use crate::outcome::Outcome;
use crate::run::InFrame;
use crate::scoreboard::{self, Emerged};

/// Write everything that came out of a run.
///
/// # Errors
/// `out` can't be written.
pub fn write<W: Write>(outcome: &Outcome, input: &[InFrame], shape: &Shape, out: W) -> io::Result<W> {
    let mut frames = scoreboard::emerged(outcome, input, shape.functions);
    // Stable: frames of one time and place keep their order.
    frames.sort_by_key(|frame| frame.time);
    let first_ns = input.iter().find_map(|frame| frame.time_ns).unwrap_or(0);
    let mut file = PcapNg::new(out, &Point::of_card(shape.ports, shape.functions))?;
    let mut unseen = drops_without_frame(outcome).into_iter().peekable();
    for frame in &frames {
        while let Some((_, point)) = unseen.next_if(|(time, _)| *time <= frame.time) {
            file.count_drops(point, 1);
        }
        file.write(&packet(frame, input, shape, first_ns))?;
    }
    file.finish()
}

/// Input frames as a capture of one port: what `onic reduce` writes and a failure's folder holds.
///
/// # Errors
/// `out` can't be written.
pub fn write_input<'a, W: Write>(frames: impl IntoIterator<Item = &'a InFrame>, port: u8, out: W) -> io::Result<W> {
    let mut file = PcapNg::new(out, &[Point::Port(port)])?;
    let mut last_ns = 0;
    for frame in frames {
        // A frame without a time of its own comes right after the one before it.
        last_ns = frame.time_ns.unwrap_or(last_ns);
        file.write(&Packet {
            direction: Some(Direction::Inbound),
            errors: if frame.err { errors::CRC } else { 0 },
            packet_id: Some(frame.index),
            ..Packet::new(Point::Port(port), last_ns, &frame.data)
        })?;
    }
    file.finish()
}

/// Host frames that the card lost: a monitor saw that, but not which they were.
fn drops_without_frame(outcome: &Outcome) -> Vec<(Time, Point)> {
    let lost = outcome.observations.iter().filter_map(|observation| match observation.point {
        Seen::TxEnd { port, fate } if fate != Fate::Accepted => Some((observation.time, Point::Port(port.0))),
        _ => None,
    });
    let mut lost: Vec<_> = lost.collect();
    lost.sort();
    lost
}

fn packet<'a>(frame: &'a Emerged, input: &[InFrame], shape: &Shape, first_ns: u64) -> Packet<'a> {
    let origin = frame.input.and_then(|at| input.get(at));
    let (func, direction) = match frame.point {
        Point::Function(func) | Point::FunctionDropped(func) => (Some(func), Direction::Inbound),
        Point::Port(_) => (None, Direction::Outbound),
        Point::PortDropped(_) | Point::Interface(_) => (None, Direction::Inbound),
    };
    let wrong_fcs = frame.err || (frame.point.is_drop() && origin.is_some_and(|frame| frame.err));
    Packet {
        direction: Some(direction),
        errors: error_bits(frame, wrong_fcs, shape),
        packet_id: origin.map(|frame| frame.index),
        queue: frame.queue.map(u32::from),
        comment: CommentFields { hash: frame.hash, func, cycle: Some(frame.cycle), drop: frame.drop },
        ..Packet::new(frame.point, first_ns.saturating_add(frame.time.as_ns()), &frame.data)
    }
}

/// What the MAC finds wrong with a frame. Lengths count the FCS there.
fn error_bits(frame: &Emerged, wrong_fcs: bool, shape: &Shape) -> u32 {
    let len = frame.data.len() + 4;
    let bit = |wrong: bool, bit: u32| if wrong { bit } else { 0 };
    bit(wrong_fcs, errors::CRC)
        | bit(len > usize::from(shape.max_pkt_len), errors::TOO_LONG)
        | bit(len < usize::from(shape.min_pkt_len), errors::TOO_SHORT)
}

#[cfg(test)]
mod tests {
    use models::observation::Observation;
    use regs::{FuncId, PortId};
    use traces::align::Capture;
    use traces::read::{Policy, Reader};

    use super::*;
    use crate::outcome::{Delivered, Sent};

    fn outcome() -> (Outcome, Vec<InFrame>) {
        let (port, func) = (PortId(0), FuncId(0));
        let frame = |index: u64, data: &[u8], err| InFrame {
            port,
            index,
            time_ns: Some(5_000_000_000),
            data: data.to_vec(),
            err,
        };
        let input = vec![frame(7, &[1; 60], true), frame(8, &[2; 60], false)];
        let at = |ns, point| Observation { time: Time::from_ns(ns), point };
        let outcome = Outcome {
            observations: vec![
                at(10, Seen::RxEnd { port, fate: Fate::Error }),
                at(20, Seen::RxEnd { port, fate: Fate::Accepted }),
                at(30, Seen::Rss { func, hash: 0xabcd, entry: 3, fate: Fate::Accepted }),
                at(35, Seen::TxEnd { port, fate: Fate::TooLong }),
            ],
            delivered: vec![Delivered { func, queue: 3, data: vec![2; 60], time: Time::from_ns(40), crossing: None }],
            sent: vec![Sent { port, data: vec![3; 60], err: false, time: Time::from_ns(50) }],
            ..Outcome::default()
        };
        (outcome, input)
    }

    #[test]
    fn every_field_is_in_the_file() {
        let (outcome, input) = outcome();
        let bytes = write(&outcome, &input, &Shape::default(), Vec::new()).expect("memory");
        let (capture, error) =
            Capture::read(Reader::new(io::Cursor::new(bytes), "test", Policy::default()).expect("ours"));
        assert!(error.is_none());
        let seen: Vec<_> = capture
            .frames
            .iter()
            .map(|(point, frame)| (*point, frame.time_ns, frame.meta.packet_id, frame.meta.queue))
            .collect();
        assert_eq!(
            seen,
            [
                (Point::PortDropped(0), Some(5_000_000_010), Some(7), None),
                (Point::Function(0), Some(5_000_000_040), Some(8), Some(3)),
                (Point::Port(0), Some(5_000_000_050), None, None),
            ]
        );
        let comments: Vec<_> =
            capture.frames.iter().map(|(_, frame)| frame.meta.comment.as_deref().unwrap_or("")).collect();
        assert_eq!(comments, ["cycle=2 drop=error", "hash=0000abcd fn=0 cycle=10", "cycle=12"]);
        assert_eq!(capture.frames[0].1.meta.flags, 1 | errors::CRC, "inbound, wrong FCS");
        assert_eq!(capture.frames[2].1.meta.flags, 2, "outbound");
        assert_eq!(capture.frames[2].1.meta.drop_count, Some(2), "one from the wire, one from the host");
    }

    #[test]
    fn an_input_goes_out_as_it_came_in() {
        let (_, input) = outcome();
        let bytes = write_input(&input, 0, Vec::new()).expect("memory");
        let reader = Reader::new(io::Cursor::new(bytes), "test", Policy::default()).expect("ours");
        let frames: Vec<_> = reader.map(|frame| frame.expect("whole").expect("taken")).collect();
        assert_eq!(
            frames.iter().map(|f| (f.err, f.data.as_slice())).collect::<Vec<_>>(),
            [(true, &[1u8; 60][..]), (false, &[2; 60])]
        );
    }
}
