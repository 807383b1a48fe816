//! The Toeplitz hash as Microsoft published it, and the fields it takes.
//!
//! Most significant bit first, the key's first byte leftmost: the usual RSS of other cards. OpenNIC computes something
//! else; this one is for reports and captures that other tools read.
//!
//! Rules here, where the publication leaves a choice: VLAN tags are skipped; a fragment (the first one too) is hashed by
//! its addresses only (RSS-06); IPv6 extension headers are skipped, and behind a fragment header addresses only (RSS-10);
//! tunnels by their outer headers (RSS-11); addresses come from the fixed header, never from a routing header or an option.
//!
//! Source: learn.microsoft.com, "RSS Hashing Functions", "RSS Hashing Types", "Verifying the RSS Hash Calculation".

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use bitvec::prelude::*;

use super::KEY_LEN_BYTES;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// The fields hashed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MicrosoftInput {
    /// Neither IPv4 nor IPv6, or cut short: hash 0.
    Nothing,
    /// IPv4 addresses only: not TCP or UDP, or a fragment.
    Ipv4 {
        /// Source address, wire order.
        source: [u8; 4],
        /// Destination address, wire order.
        destination: [u8; 4],
    },
    /// IPv4 with TCP or UDP.
    Ipv4Ports {
        /// Source address, wire order.
        source: [u8; 4],
        /// Destination address, wire order.
        destination: [u8; 4],
        /// Source port.
        source_port: u16,
        /// Destination port.
        destination_port: u16,
    },
    /// IPv6 addresses only.
    Ipv6 {
        /// Source address, wire order.
        source: [u8; 16],
        /// Destination address, wire order.
        destination: [u8; 16],
    },
    /// IPv6 with TCP or UDP.
    Ipv6Ports {
        /// Source address, wire order.
        source: [u8; 16],
        /// Destination address, wire order.
        destination: [u8; 16],
        /// Source port.
        source_port: u16,
        /// Destination port.
        destination_port: u16,
    },
}

impl MicrosoftInput {
    /// The fields of a frame (Ethernet header first, no FCS). What is cut short is taken as far as it is whole.
    pub fn parse(frame: &[u8]) -> MicrosoftInput {
        match network_layer(frame) {
            Some((0x0800, packet)) => ipv4(packet).unwrap_or(MicrosoftInput::Nothing),
            Some((0x86dd, packet)) => ipv6(packet).unwrap_or(MicrosoftInput::Nothing),
            _ => MicrosoftInput::Nothing,
        }
    }

    /// Append the input, wire order, to a buffer of 36 bytes; how many there are.
    fn write(&self, out: &mut [u8; 36]) -> usize {
        let mut len_bytes = 0;
        let mut put = |bytes: &[u8]| {
            out[len_bytes..len_bytes + bytes.len()].copy_from_slice(bytes);
            len_bytes += bytes.len();
        };
        match self {
            MicrosoftInput::Nothing => {}
            MicrosoftInput::Ipv4 { source, destination } | MicrosoftInput::Ipv4Ports { source, destination, .. } => {
                put(source);
                put(destination);
            }
            MicrosoftInput::Ipv6 { source, destination } | MicrosoftInput::Ipv6Ports { source, destination, .. } => {
                put(source);
                put(destination);
            }
        }
        if let MicrosoftInput::Ipv4Ports { source_port, destination_port, .. }
        | MicrosoftInput::Ipv6Ports { source_port, destination_port, .. } = self
        {
            put(&source_port.to_be_bytes());
            put(&destination_port.to_be_bytes());
        }
        len_bytes
    }
}

impl fmt::Display for MicrosoftInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            MicrosoftInput::Nothing => f.write_str("nothing (hash 0)"),
            MicrosoftInput::Ipv4 { source, destination } => {
                write!(f, "addresses {} > {}", Ipv4Addr::from(source), Ipv4Addr::from(destination))
            }
            MicrosoftInput::Ipv4Ports { source, destination, source_port, destination_port } => {
                let (source, destination) = (Ipv4Addr::from(source), Ipv4Addr::from(destination));
                write!(f, "addresses and ports {source}:{source_port} > {destination}:{destination_port}")
            }
            MicrosoftInput::Ipv6 { source, destination } => {
                write!(f, "addresses {} > {}", Ipv6Addr::from(source), Ipv6Addr::from(destination))
            }
            MicrosoftInput::Ipv6Ports { source, destination, source_port, destination_port } => {
                let (source, destination) = (Ipv6Addr::from(source), Ipv6Addr::from(destination));
                write!(f, "addresses and ports [{source}]:{source_port} > [{destination}]:{destination_port}")
            }
        }
    }
}

/// Ethertype behind any VLAN tags, and what follows it.
fn network_layer(frame: &[u8]) -> Option<(u16, &[u8])> {
    let mut at = 12;
    loop {
        let ethertype = u16::from_be_bytes(*frame.get(at..)?.first_chunk()?);
        match ethertype {
            // Each round moves on 4 bytes, so a frame of nothing but tags ends.
            0x8100 | 0x88a8 | 0x9100 => at += 4,
            _ => return Some((ethertype, &frame[at + 2..])),
        }
    }
}

fn ipv4(packet: &[u8]) -> Option<MicrosoftInput> {
    let header: &[u8; 20] = packet.first_chunk()?;
    let header_len_bytes = 4 * (header[0] & 15) as usize;
    if header[0] >> 4 != 4 || header_len_bytes < 20 {
        return None;
    }
    let source = [header[12], header[13], header[14], header[15]];
    let destination = [header[16], header[17], header[18], header[19]];
    // More-fragments flag, or an offset.
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let ports = if fragment { None } else { ports(header[9], packet.get(header_len_bytes..)) };
    Some(match ports {
        None => MicrosoftInput::Ipv4 { source, destination },
        Some((source_port, destination_port)) => {
            MicrosoftInput::Ipv4Ports { source, destination, source_port, destination_port }
        }
    })
}

fn ipv6(packet: &[u8]) -> Option<MicrosoftInput> {
    let header: &[u8; 40] = packet.first_chunk()?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let source = std::array::from_fn(|k| header[8 + k]);
    let destination = std::array::from_fn(|k| header[24 + k]);
    let ports = upper_layer(header[6], &packet[40..]).and_then(|(protocol, rest)| ports(protocol, Some(rest)));
    Some(match ports {
        None => MicrosoftInput::Ipv6 { source, destination },
        Some((source_port, destination_port)) => {
            MicrosoftInput::Ipv6Ports { source, destination, source_port, destination_port }
        }
    })
}

/// The protocol behind the extension headers, and its bytes. `None` for a fragment, and when a header is cut short.
///
/// Source: RFC 8200 section 4 (length in 8-byte units, the first not counted); RFC 4302 (AH: 4-byte units, less 2).
fn upper_layer(mut next_header: u8, mut rest: &[u8]) -> Option<(u8, &[u8])> {
    const FRAGMENT: u8 = 44;
    const AUTHENTICATION: u8 = 51;
    loop {
        let len_bytes = match next_header {
            0 | 43 | 60 | 135 | 139 | 140 => 8 * (*rest.get(1)? as usize + 1),
            AUTHENTICATION => 4 * (*rest.get(1)? as usize + 2),
            FRAGMENT => return None,
            protocol => return Some((protocol, rest)),
        };
        next_header = rest[0];
        rest = rest.get(len_bytes..)?;
    }
}

fn ports(protocol: u8, segment: Option<&[u8]>) -> Option<(u16, u16)> {
    if protocol != TCP && protocol != UDP {
        return None;
    }
    let p: &[u8; 4] = segment?.first_chunk()?;
    Some((u16::from_be_bytes([p[0], p[1]]), u16::from_be_bytes([p[2], p[3]])))
}

/// The reference: the definition, bit by bit. [`microsoft`] is tested equal to it.
pub fn microsoft_reference(key: &[u8; KEY_LEN_BYTES], input: &MicrosoftInput) -> u32 {
    let mut bytes = [0; 36];
    let len_bytes = input.write(&mut bytes);
    let key = key.view_bits::<Msb0>();
    bytes[..len_bytes].view_bits::<Msb0>().iter_ones().fold(0, |hash, n| hash ^ key[n..n + 32].load_be::<u32>())
}

/// The published Toeplitz hash of these fields under `key` (first byte leftmost, ethtool order).
pub fn microsoft(key: &[u8; KEY_LEN_BYTES], input: &MicrosoftInput) -> u32 {
    let mut bytes = [0; 36];
    let len_bytes = input.write(&mut bytes);
    let mut hash = 0;
    // The windows of input byte j are the 8 shifts of key bytes j…j+4. j is at most 35, so they exist.
    for (j, &byte) in bytes[..len_bytes].iter().enumerate() {
        let five = u64::from_be_bytes([0, 0, 0, key[j], key[j + 1], key[j + 2], key[j + 3], key[j + 4]]);
        let mut left = byte;
        while left != 0 {
            let b = left.leading_zeros();
            hash ^= (five >> (8 - b)) as u32;
            left ^= 0x80 >> b;
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rss::Key;
    use proptest::prelude::*;

    fn key() -> Key {
        "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa".parse().expect("40 bytes")
    }

    /// Source and port, destination and port, hash of the 4-tuple, of the 2-tuple.
    type Row = ([u8; 4], u16, [u8; 4], u16, u32, u32);

    /// Microsoft, "Verifying the RSS Hash Calculation", IPv4.
    #[test]
    fn rss_01_published_ipv4_vectors() {
        let rows: [Row; 5] = [
            ([66, 9, 149, 187], 2794, [161, 142, 100, 80], 1766, 0x51ccc178, 0x323e8fc2),
            ([199, 92, 111, 2], 14230, [65, 69, 140, 83], 4739, 0xc626b0ea, 0xd718262a),
            ([24, 19, 198, 95], 12898, [12, 22, 207, 184], 38024, 0x5c2b394a, 0xd2d0a5de),
            ([38, 27, 205, 30], 48228, [209, 142, 163, 6], 2217, 0xafc7327f, 0x82989176),
            ([153, 39, 163, 191], 44251, [202, 188, 127, 2], 1303, 0x10e828a2, 0x5d1809c5),
        ];
        for (source, source_port, destination, destination_port, ports, addresses) in rows {
            let four = MicrosoftInput::Ipv4Ports { source, destination, source_port, destination_port };
            let two = MicrosoftInput::Ipv4 { source, destination };
            assert_eq!((microsoft(key().bytes(), &four), microsoft(key().bytes(), &two)), (ports, addresses), "{four}");
        }
    }

    /// The same document, IPv6.
    #[test]
    fn rss_01_published_ipv6_vectors() {
        let rows = [
            ("3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 0x40207d3d, 0x2cc18cd5),
            ("3ffe:501:8::260:97ff:fe40:efab", 14230, "ff02::1", 4739, 0xdde51bbf, 0x0f0c461c),
            ("3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, "fe80::200:f8ff:fe21:67cf", 38024, 0x02d1feef, 0x4b61e985),
        ];
        for (source, source_port, destination, destination_port, ports, addresses) in rows {
            let octets = |text: &str| text.parse::<Ipv6Addr>().expect("an address").octets();
            let (source, destination) = (octets(source), octets(destination));
            let four = MicrosoftInput::Ipv6Ports { source, destination, source_port, destination_port };
            let two = MicrosoftInput::Ipv6 { source, destination };
            assert_eq!((microsoft(key().bytes(), &four), microsoft(key().bytes(), &two)), (ports, addresses), "{four}");
        }
    }

    fn ipv4_frame(tags: usize, flags_and_offset: u16, protocol: u8) -> Vec<u8> {
        let mut frame = vec![0; 12];
        for _ in 0..tags {
            frame.extend([0x81, 0x00, 0x01, 0x23]);
        }
        frame.extend([0x08, 0x00, 0x45, 0, 0, 40, 0, 1]);
        frame.extend(flags_and_offset.to_be_bytes());
        frame.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x12, 0x34, 0x56, 0x78]);
        frame
    }

    #[test]
    fn rss_06_fragments_hash_addresses_only() {
        let addresses = MicrosoftInput::Ipv4 { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
        for flags in [0x2000, 0x2010, 0x0010] {
            assert_eq!(MicrosoftInput::parse(&ipv4_frame(0, flags, UDP)), addresses, "{flags:#x}");
        }
        assert_ne!(MicrosoftInput::parse(&ipv4_frame(0, 0x4000, UDP)), addresses, "DF is no fragment");
        assert_eq!(MicrosoftInput::parse(&ipv4_frame(0, 0, 47)), addresses, "GRE has no ports (RSS-11)");
    }

    #[test]
    fn tags_are_skipped() {
        let plain = MicrosoftInput::parse(&ipv4_frame(0, 0, TCP));
        assert!(matches!(plain, MicrosoftInput::Ipv4Ports { source_port: 0x1234, destination_port: 0x5678, .. }));
        assert_eq!(MicrosoftInput::parse(&ipv4_frame(1, 0, TCP)), plain);
        assert_eq!(MicrosoftInput::parse(&ipv4_frame(2, 0, TCP)), plain);
    }

    fn ipv6_frame(first: u8, extensions: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, first, 64]);
        frame.extend([1; 16]);
        frame.extend([2; 16]);
        frame.extend(extensions);
        frame.extend([0x12, 0x34, 0x56, 0x78]);
        frame
    }

    #[test]
    fn rss_10_extension_headers_are_skipped() {
        let hop_then_routing = [43, 0, 0, 0, 0, 0, 0, 0, UDP, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let authentication = [TCP, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for (first, extensions) in [(UDP, &[][..]), (0, &hop_then_routing), (51, &authentication)] {
            let input = MicrosoftInput::parse(&ipv6_frame(first, extensions));
            assert!(
                matches!(input, MicrosoftInput::Ipv6Ports { source_port: 0x1234, destination_port: 0x5678, .. }),
                "{first}: {input}"
            );
        }
        let addresses = MicrosoftInput::Ipv6 { source: [1; 16], destination: [2; 16] };
        for (first, extensions) in
            [(44, &[UDP, 0, 0, 0, 0, 0, 0, 0][..]), (58, &[]), (0, &[UDP, 255, 0, 0, 0, 0, 0, 0])]
        {
            assert_eq!(MicrosoftInput::parse(&ipv6_frame(first, extensions)), addresses, "{first}");
        }
    }

    proptest! {
        #[test]
        fn fast_equals_reference(key in any::<[u8; 40]>(), source in any::<[u8; 16]>(), destination in any::<[u8; 16]>(),
                                 source_port in any::<u16>(), destination_port in any::<u16>()) {
            let input = MicrosoftInput::Ipv6Ports { source, destination, source_port, destination_port };
            prop_assert_eq!(microsoft(&key, &input), microsoft_reference(&key, &input));
            let input = MicrosoftInput::Ipv4 { source: [source[0]; 4], destination: [destination[0]; 4] };
            prop_assert_eq!(microsoft(&key, &input), microsoft_reference(&key, &input));
        }

        #[test]
        fn any_bytes_parse(mut frame in proptest::collection::vec(any::<u8>(), 0..200), v6 in any::<bool>()) {
            if frame.len() > 14 {
                frame[12..15].copy_from_slice(if v6 { &[0x86, 0xdd, 0x60] } else { &[0x08, 0x00, 0x45] });
            }
            prop_assert!(!MicrosoftInput::parse(&frame).to_string().is_empty());
        }
    }
}
