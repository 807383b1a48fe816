//! OpenNIC's hash: the fields it takes, a reference written to be read, and the tables that the model runs on.
//!
//! Bit b of byte j of a field with base B selects the 32-bit window of the key that starts at bit B + 8j + b; the hash is
//! the XOR of the windows of all bits that are 1. In other words: the input is one string of bits, least significant bit
//! of each wire byte first, and its bit n selects window n.
//!
//! Source: shell.md sections 9.1 and 9.2; what is corrected, DESIGN.md section 5.

use std::fmt;
use std::net::Ipv4Addr;

use bitvec::prelude::*;

use super::KEY_LEN_BYTES;

/// First window of each field. Source: shell.md section 9.2.
const PROTOCOL_BASE: usize = 4;
const SOURCE_BASE: usize = 12;
const DESTINATION_BASE: usize = 44;
const PORTS_BASE: usize = 76;
/// Length of the input: 4 + 8 + 32 + 32 + 32 bits.
const INPUT_BITS: usize = 108;

/// The fields that the card hashes. All zero, and so the hash, unless the frame is IPv4.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct OpennicInput {
    /// VID bits 11:8 in bits 3:0. Always 0 in corrected behaviour: VLAN ids never enter the hash.
    pub vlan_nibble: u8,
    /// IPv4 protocol.
    pub protocol: u8,
    /// Source address, wire order.
    pub source: [u8; 4],
    /// Destination address, wire order.
    pub destination: [u8; 4],
    /// The 4 bytes after the IPv4 header, whatever the protocol, and for later fragments too: ports where there are ports.
    /// 0 when IHL is below 5.
    pub ports: [u8; 4],
}

impl OpennicInput {
    /// The fields of a frame (Ethernet header first, no FCS), corrected: IPv4 untagged or behind one 0x8100 tag, else
    /// nothing; bytes past the frame's end count as 0.
    pub fn parse(frame: &[u8]) -> OpennicInput {
        let Some(start) = ipv4_start(frame) else {
            return OpennicInput::default();
        };
        let ihl = (byte(frame, start) & 15) as usize;
        if let Some(header) = frame.get(start..).and_then(|rest| rest.first_chunk::<24>())
            && ihl == 5
        {
            // Most frames: all of it is there, at fixed places.
            let [_, _, _, _, _, _, _, _, _, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3, p0, p1, p2, p3] = *header;
            let (source, destination, ports) = ([s0, s1, s2, s3], [d0, d1, d2, d3], [p0, p1, p2, p3]);
            return OpennicInput { vlan_nibble: 0, protocol, source, destination, ports };
        }
        OpennicInput {
            vlan_nibble: 0,
            protocol: byte(frame, start + 9),
            source: four(frame, start + 12),
            destination: four(frame, start + 16),
            ports: if ihl >= 5 { four(frame, start + 4 * ihl) } else { [0; 4] },
        }
    }

    /// The fields of an untagged frame with these headers.
    pub fn tuple(
        protocol: u8,
        source: [u8; 4],
        destination: [u8; 4],
        source_port: u16,
        destination_port: u16,
    ) -> OpennicInput {
        let (s, d) = (source_port.to_be_bytes(), destination_port.to_be_bytes());
        OpennicInput { vlan_nibble: 0, protocol, source, destination, ports: [s[0], s[1], d[0], d[1]] }
    }

    /// The 13 whole bytes, in the order of their windows.
    fn bytes(&self) -> [u8; 13] {
        let (s, d, p) = (self.source, self.destination, self.ports);
        [self.protocol, s[0], s[1], s[2], s[3], d[0], d[1], d[2], d[3], p[0], p[1], p[2], p[3]]
    }

    /// The input as one string of bits, bit n of which selects window n.
    fn bits(&self) -> BitArray<[u8; 14], Lsb0> {
        let mut bits = bitarr![u8, Lsb0; 0; INPUT_BITS];
        bits[..PROTOCOL_BASE].store_le(self.vlan_nibble & 15);
        bits[PROTOCOL_BASE..SOURCE_BASE].store_le(self.protocol);
        bits[SOURCE_BASE..DESTINATION_BASE].store_le(u32::from_le_bytes(self.source));
        bits[DESTINATION_BASE..PORTS_BASE].store_le(u32::from_le_bytes(self.destination));
        bits[PORTS_BASE..INPUT_BITS].store_le(u32::from_le_bytes(self.ports));
        bits
    }
}

impl fmt::Display for OpennicInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == OpennicInput::default() {
            return f.write_str("nothing (hash 0)");
        }
        let [a, b, c, d] = self.ports;
        write!(
            f,
            "protocol {}, {} > {}, 4 bytes after the IPv4 header {a:02x}{b:02x}{c:02x}{d:02x}",
            self.protocol,
            Ipv4Addr::from(self.source),
            Ipv4Addr::from(self.destination)
        )?;
        if self.vlan_nibble != 0 { write!(f, ", VID bits 11:8 {:#x}", self.vlan_nibble) } else { Ok(()) }
    }
}

/// Where the IPv4 header starts: byte 14, or 18 behind one 0x8100 tag. Two tags, 0x88a8, IPv6 and all else: nowhere.
pub(super) fn ipv4_start(frame: &[u8]) -> Option<usize> {
    match [byte(frame, 12), byte(frame, 13)] {
        [0x08, 0x00] => Some(14),
        [0x81, 0x00] if [byte(frame, 16), byte(frame, 17)] == [0x08, 0x00] => Some(18),
        _ => None,
    }
}

/// A byte of the frame, or 0 past its end.
pub(super) fn byte(frame: &[u8], offset: usize) -> u8 {
    frame.get(offset).copied().unwrap_or(0)
}

fn four(frame: &[u8], offset: usize) -> [u8; 4] {
    match frame.get(offset..offset + 4) {
        Some(b) => [b[0], b[1], b[2], b[3]],
        None => std::array::from_fn(|i| byte(frame, offset + i)),
    }
}

/// The reference: the definition, bit by bit. [`opennic`] and [`Tables`] are tested equal to it.
pub fn opennic_reference(key: &[u8; KEY_LEN_BYTES], input: &OpennicInput) -> u32 {
    let key = key.view_bits::<Lsb0>();
    let bits = input.bits();
    bits.iter_ones().fold(0, |hash, n| hash ^ key[n..n + 32].load_le::<u32>())
}

/// OpennicInput's hash under `key` (ethtool order). For many hashes under one key, build [`Tables`].
pub fn opennic(key: &[u8; KEY_LEN_BYTES], input: &OpennicInput) -> u32 {
    let nibble = (0..4).filter(|b| input.vlan_nibble >> b & 1 == 1).fold(0, |hash, b| hash ^ window(key, b));
    input.bytes().iter().enumerate().fold(nibble, |hash, (j, &byte)| {
        (0..8).filter(|b| byte >> b & 1 == 1).fold(hash, |hash, b| hash ^ window(key, PROTOCOL_BASE + 8 * j + b))
    })
}

/// Bits n+31…n of the key. The highest window asked for is 107, so 5 bytes from n/8 always exist.
fn window(key: &[u8; KEY_LEN_BYTES], n: usize) -> u32 {
    let at = n / 8;
    let five = [key[at], key[at + 1], key[at + 2], key[at + 3], key[at + 4], 0, 0, 0];
    (u64::from_le_bytes(five) >> (n % 8)) as u32
}

/// One key, made ready: for each input byte the XOR of its windows for each of its 256 values. 13 loads a hash.
#[derive(Clone)]
pub struct Tables {
    bytes: Box<[[u32; 256]; 13]>,
    nibble: [u32; 16],
}

impl Tables {
    /// The tables of `key`.
    pub fn new(key: &[u8; KEY_LEN_BYTES]) -> Tables {
        let mut tables = Tables { bytes: Box::new([[0; 256]; 13]), nibble: [0; 16] };
        tables.rebuild(key);
        tables
    }

    /// The tables of another key, in place.
    pub fn rebuild(&mut self, key: &[u8; KEY_LEN_BYTES]) {
        for (j, table) in self.bytes.iter_mut().enumerate() {
            fill(table, key, PROTOCOL_BASE + 8 * j);
        }
        fill(&mut self.nibble, key, 0);
    }

    /// The hash.
    pub fn hash(&self, input: &OpennicInput) -> u32 {
        let nibble = self.nibble[(input.vlan_nibble & 15) as usize];
        self.bytes.iter().zip(input.bytes()).fold(nibble, |hash, (table, byte)| hash ^ table[byte as usize])
    }
}

/// Each value's XOR is that of the value without its lowest bit, and one window more.
fn fill(table: &mut [u32], key: &[u8; KEY_LEN_BYTES], base: usize) {
    for value in 1..table.len() {
        table[value] = table[value & (value - 1)] ^ window(key, base + value.trailing_zeros() as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rss::Key;
    use proptest::prelude::*;

    const MICROSOFT_KEY: &str = "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa";

    type Row = ([u8; 4], u16, [u8; 4], u16, [u32; 4]);

    /// cases-open.md, "Reference numbers": OpenNIC TCP, UDP; default key TCP, UDP.
    const ROWS: [Row; 5] = [
        ([66, 9, 149, 187], 2794, [161, 142, 100, 80], 1766, [0x0420e0a2, 0xc5e438e4, 0x70a3a741, 0xeef7e1e4]),
        ([199, 92, 111, 2], 14230, [65, 69, 140, 83], 4739, [0x7361780d, 0xb2a5a04b, 0x2dd3f3b7, 0xb387b512]),
        ([24, 19, 198, 95], 12898, [12, 22, 207, 184], 38024, [0xadd887d3, 0x6c1c5f95, 0xafe6f295, 0x31b2b430]),
        ([38, 27, 205, 30], 48228, [209, 142, 163, 6], 2217, [0x043029df, 0xc5f4f199, 0x3272a5a4, 0xac26e301]),
        ([153, 39, 163, 191], 44251, [202, 188, 127, 2], 1303, [0xe235dfb1, 0x23f107f7, 0x08a6001d, 0x96f246b8]),
    ];

    #[test]
    fn onic_07_reference_numbers() {
        let microsoft: Key = MICROSOFT_KEY.parse().expect("40 bytes");
        for (source, sport, destination, dport, expected) in ROWS {
            let hash = |key: Key, protocol| {
                opennic(key.bytes(), &OpennicInput::tuple(protocol, source, destination, sport, dport))
            };
            let got = [hash(microsoft, 6), hash(microsoft, 17), hash(Key::DEFAULT, 6), hash(Key::DEFAULT, 17)];
            assert_eq!(got, expected, "{source:?}:{sport}");
        }
    }

    /// shell.md section 9.2, the worked example.
    #[test]
    fn worked_example_of_the_specification() {
        let input = OpennicInput::tuple(17, [24, 231, 42, 60], [201, 203, 68, 117], 0x0777, 0xbfdc);
        let hash = opennic(Key::DEFAULT.bytes(), &input);
        assert_eq!((hash, crate::rss::indirection_index(hash)), (0x08a4_cc88, 8));
    }

    /// A frame of IPv4 at `start` with this IHL, filled with its own offsets.
    fn frame(start: usize, ihl: u8, len: usize) -> Vec<u8> {
        let mut frame: Vec<u8> = (0..len).map(|k| k as u8).collect();
        frame[12..14].copy_from_slice(if start == 14 { &[8, 0] } else { &[0x81, 0] });
        if start == 18 {
            frame[16..18].copy_from_slice(&[8, 0]);
        }
        frame[start] = 0x40 | ihl;
        frame
    }

    #[test]
    fn ports_stand_after_the_header_whatever_its_length() {
        for start in [14, 18] {
            for ihl in 0..16u8 {
                let ports = OpennicInput::parse(&frame(start, ihl, 128)).ports;
                let at = start as u8 + 4 * ihl;
                assert_eq!(
                    ports,
                    if ihl < 5 { [0; 4] } else { [at, at + 1, at + 2, at + 3] },
                    "start {start}, IHL {ihl}"
                );
            }
        }
    }

    #[test]
    fn bytes_past_the_end_count_as_zero() {
        assert_eq!(OpennicInput::parse(&frame(14, 6, 40)).ports, [38, 39, 0, 0]);
        assert_eq!(OpennicInput::parse(&[]), OpennicInput::default());
        assert_eq!(OpennicInput::parse(&frame(14, 5, 20)[..13]), OpennicInput::default());
    }

    #[test]
    fn what_is_not_ipv4_hashes_to_zero() {
        for ethertype in [[0x86, 0xdd], [0x08, 0x06], [0x88, 0xa8], [0x81, 0x00]] {
            let mut f = frame(14, 5, 64);
            f[12..14].copy_from_slice(&ethertype);
            assert_eq!(OpennicInput::parse(&f), OpennicInput::default(), "{ethertype:02x?}");
        }
    }

    #[test]
    fn a_vlan_id_never_enters() {
        let (mut a, b) = (frame(18, 5, 64), frame(18, 5, 64));
        a[14..16].copy_from_slice(&[0xff, 0xff]);
        assert_eq!(OpennicInput::parse(&a), OpennicInput::parse(&b));
        assert_ne!(OpennicInput::parse(&a), OpennicInput::default());
    }

    proptest! {
        #[test]
        fn fast_equals_reference(key in any::<[u8; 40]>(), bytes in any::<[u8; 13]>(), vlan_nibble in 0u8..16) {
            let four = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
            let input = OpennicInput { vlan_nibble, protocol: bytes[0], source: four(1), destination: four(5), ports: four(9) };
            let reference = opennic_reference(&key, &input);
            prop_assert_eq!(opennic(&key, &input), reference);
            prop_assert_eq!(Tables::new(&key).hash(&input), reference);
        }

        #[test]
        fn any_bytes_parse(frame in proptest::collection::vec(any::<u8>(), 0..200)) {
            let input = OpennicInput::parse(&frame);
            prop_assert!(input.vlan_nibble == 0 && !input.to_string().is_empty());
        }
    }
}
