//! What should come out of a card, written from the specification alone: nothing here comes from the models or the RTL,
//! so that an error which those two share still shows.

use regs::{FuncId, PortId};

use super::bed::Bed;
use crate::run::InFrame;

/// OpenNIC's hash of a frame, corrected (DESIGN.md section 5).
///
/// Fields: shell.md section 9.1, IPv4 untagged or behind one 0x8100 tag, a byte past the frame's end is 0. Function:
/// section 9.2, the input as one string of bits, least significant bit of each byte first, after four zero bits in the
/// place of the VLAN id; bit n of it selects bits n+31…n of the key.
pub(super) fn hash(key: &[u8; 40], frame: &[u8]) -> u32 {
    let at = |i: usize| frame.get(i).copied().unwrap_or(0);
    let ip = match (at(12), at(13), at(16), at(17)) {
        (0x08, 0x00, ..) => 14,
        (0x81, 0x00, 0x08, 0x00) => 18,
        _ => return 0,
    };
    let words = usize::from(at(ip) % 16);
    let ports = if words < 5 { [0; 4] } else { [0, 1, 2, 3].map(|i| at(ip + 4 * words + i)) };
    let fields = [ip + 9].into_iter().chain(ip + 12..ip + 20).map(at).chain(ports);
    let bits = fields.flat_map(|byte| (0..8).map(move |b| byte >> b & 1 == 1));
    let key_bit = |n: usize| u32::from(key[n / 8] >> (n % 8) & 1);
    let window = |n: usize| (0..32).fold(0, |window, i| window | key_bit(n + i) << i);
    bits.enumerate().filter(|(_, is_one)| *is_one).fold(0, |hash, (n, _)| hash ^ window(n + 4))
}

/// What should become of a frame at the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// The MAC finds it wrong; it is dropped there.
    Error,
    /// It has a hash, and goes to this queue.
    Queue { func: FuncId, hash: u32, queue: u16 },
    /// It has a hash, and the table names no queue of the function; it is dropped there.
    QueueRange { func: FuncId, hash: u32, entry: u16 },
}

/// What should become of a frame, on a card that has room for it. Shapes as wide as they are long: port n goes to
/// function n.
pub(super) fn fate(bed: &Bed, frame: &InFrame) -> Fate {
    let on_wire = frame.data.len() + 4;
    if frame.err || on_wire < 64 || on_wire > usize::from(bed.max_pkt_len) {
        return Fate::Error;
    }
    let PortId(port) = frame.port;
    let func = FuncId(port);
    let hash = hash(&bed.key(), &frame.data);
    let entry = bed.table()[(hash % 128) as usize];
    if entry < bed.queues { Fate::Queue { func, hash, queue: entry } } else { Fate::QueueRange { func, hash, entry } }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source: shell.md section 9.2 (default key), measured on upstream's RTL.
    #[test]
    fn the_measured_example() {
        let mut frame = vec![0; 60];
        frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
        frame[23] = 17;
        frame[26..34].copy_from_slice(&[24, 231, 42, 60, 201, 203, 68, 117]);
        frame[34..38].copy_from_slice(&[0x07, 0x77, 0xbf, 0xdc]);
        assert_eq!(hash(&driver_core::rss::Key::DEFAULT.0, &frame), 0x08a4_cc88);
    }

    #[test]
    fn what_is_not_ipv4_hashes_to_nothing() {
        let mut frame = vec![0xff; 60];
        frame[12..18].copy_from_slice(&[0x81, 0x00, 0x0f, 0xff, 0x86, 0xdd]);
        assert_eq!(hash(&[0xff; 40], &frame), 0);
    }
}
