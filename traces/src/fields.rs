//! Which protocol field a byte of a frame lies in, and which flow the frame belongs to: what a report says of a
//! difference beside its offset.
//!
//! Names are Wireshark's display-filter names where it has one, so that they can be pasted into `tshark -Y`. Any bytes
//! may be given: a header that is cut or contradicts itself ends the decoding, and the rest is `payload`.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A field of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// Such as `ip.src`, `udp.length`, `payload`, `eth.padding`.
    pub name: &'static str,
    /// Its first byte, counted from the Ethernet header's.
    pub start: usize,
    /// Its length in bytes.
    pub len: usize,
}

impl Field {
    /// Its bytes, as far as `frame` has them.
    #[must_use]
    pub fn bytes<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        let end = (self.start + self.len).min(frame.len());
        frame.get(self.start..end).unwrap_or(&[])
    }
}

/// Every name that a field can have.
pub const NAMES: [&str; 54] = [
    "payload",
    "eth.padding",
    "eth.dst",
    "eth.src",
    "eth.type",
    "vlan.id",
    "arp.hw.type",
    "arp.proto.type",
    "arp.hw.size",
    "arp.proto.size",
    "arp.opcode",
    "arp.src.hw_mac",
    "arp.src.proto_ipv4",
    "arp.dst.hw_mac",
    "arp.dst.proto_ipv4",
    "ip.hdr_len",
    "ip.dsfield",
    "ip.len",
    "ip.id",
    "ip.frag_offset",
    "ip.ttl",
    "ip.proto",
    "ip.checksum",
    "ip.src",
    "ip.dst",
    "ip.options",
    "ipv6.flow",
    "ipv6.plen",
    "ipv6.nxt",
    "ipv6.hlim",
    "ipv6.src",
    "ipv6.dst",
    "ipv6.hopopts",
    "ipv6.routing",
    "ipv6.fraghdr",
    "ipv6.dstopts",
    "icmp.type",
    "icmp.code",
    "icmp.checksum",
    "udp.srcport",
    "udp.dstport",
    "udp.length",
    "udp.checksum",
    "gre.flags_and_version",
    "gre.proto",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.seq",
    "tcp.ack",
    "tcp.flags",
    "tcp.window_size_value",
    "tcp.checksum",
    "tcp.urgent_pointer",
    "tcp.options",
];

/// The field that byte `offset` of `frame` lies in. Past the end: `past the end`.
#[must_use]
pub fn at(frame: &[u8], offset: usize) -> Field {
    let past_the_end = Field { name: "past the end", start: frame.len(), len: 0 };
    decode(frame)
        .fields
        .into_iter()
        .find(|field| (field.start..field.start + field.len).contains(&offset))
        .unwrap_or(past_the_end)
}

/// All fields of `frame` in order, without gaps from byte 0 to the last.
#[must_use]
pub fn all(frame: &[u8]) -> Vec<Field> {
    decode(frame).fields
}

/// What a frame's headers say of where it belongs. Its text: `udp 10.0.0.1:7 > 10.0.0.2:9 vlan 5`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Flow {
    /// `udp`, `tcp`, `icmp`, `ip proto 132`, `arp`, `ethertype 0x88cc`, …
    pub protocol: String,
    /// Addresses, with ports if there are any.
    pub ends: Option<(String, String)>,
    /// Outermost first.
    pub vlans: Vec<u16>,
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.protocol)?;
        if let Some((from, to)) = &self.ends {
            write!(f, " {from} > {to}")?;
        }
        self.vlans.iter().try_for_each(|vlan| write!(f, " vlan {vlan}"))
    }
}

/// The flow of `frame`.
#[must_use]
pub fn flow(frame: &[u8]) -> Flow {
    decode(frame).flow
}

struct Decoder<'a> {
    frame: &'a [u8],
    /// Next byte to be named.
    at: usize,
    /// End of what the innermost length field covers.
    end: usize,
    fields: Vec<Field>,
    flow: Flow,
    addresses: Option<(String, String)>,
}

fn decode(frame: &[u8]) -> Decoder<'_> {
    let mut decoder =
        Decoder { frame, at: 0, end: frame.len(), fields: Vec::new(), flow: Flow::default(), addresses: None };
    decoder.ethernet();
    let end = decoder.end.max(decoder.at);
    decoder.take("payload", end - decoder.at);
    decoder.take("eth.padding", frame.len() - decoder.at);
    if decoder.flow.ends.is_none() {
        decoder.flow.ends = decoder.addresses.take();
    }
    decoder
}

impl<'a> Decoder<'a> {
    /// Names the next `len` bytes, as far as there are so many.
    fn take(&mut self, name: &'static str, len: usize) {
        let len = len.min(self.frame.len() - self.at);
        if len > 0 {
            self.fields.push(Field { name, start: self.at, len });
            self.at += len;
        }
    }

    fn take_all(&mut self, layout: &[(&'static str, usize)]) {
        for &(name, len) in layout {
            self.take(name, len);
        }
    }

    /// The header of `len` bytes that begins here, if the innermost length leaves room for it.
    fn header(&self, len: usize) -> Option<&'a [u8]> {
        if self.end - self.at < len { None } else { self.frame.get(self.at..self.at + len) }
    }

    fn u16_here(&self) -> Option<u16> {
        self.header(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn ethernet(&mut self) {
        self.flow.protocol = "ethernet".to_owned();
        self.take_all(&[("eth.dst", 6), ("eth.src", 6)]);
        while let Some(ethertype) = self.u16_here() {
            self.take("eth.type", 2);
            match ethertype {
                0x8100 | 0x88a8 => match self.u16_here() {
                    Some(tci) => self.flow.vlans.push(tci & 0xfff),
                    None => return,
                },
                0x0800 => return self.ipv4(),
                0x86dd => return self.ipv6(),
                0x0806 => return self.arp(),
                0..=1500 => {
                    self.flow.protocol = "802.3".to_owned();
                    return;
                }
                other => {
                    self.flow.protocol = format!("ethertype {other:#06x}");
                    return;
                }
            }
            self.take("vlan.id", 2);
        }
    }

    fn arp(&mut self) {
        self.flow.protocol = "arp".to_owned();
        self.take_all(&[
            ("arp.hw.type", 2),
            ("arp.proto.type", 2),
            ("arp.hw.size", 1),
            ("arp.proto.size", 1),
            ("arp.opcode", 2),
            ("arp.src.hw_mac", 6),
            ("arp.src.proto_ipv4", 4),
            ("arp.dst.hw_mac", 6),
            ("arp.dst.proto_ipv4", 4),
        ]);
        self.end = self.at; // ARP has no payload: what follows is padding
    }

    fn ipv4(&mut self) {
        self.flow.protocol = "ipv4".to_owned();
        let Some(header) = self.header(20) else { return };
        let header_len = 4 * usize::from(header[0] & 15);
        let total_len = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let fragment_offset = u16::from_be_bytes([header[6], header[7]]) & 0x1fff;
        let protocol = header[9];
        let address = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]).to_string();
        self.addresses = Some((address(12), address(16)));
        let begin = self.at;
        self.take_all(&[
            ("ip.hdr_len", 1),
            ("ip.dsfield", 1),
            ("ip.len", 2),
            ("ip.id", 2),
            ("ip.frag_offset", 2),
            ("ip.ttl", 1),
            ("ip.proto", 1),
            ("ip.checksum", 2),
            ("ip.src", 4),
            ("ip.dst", 4),
        ]);
        // An IHL under 5, or a length that the frame hasn't got, leaves the rest as payload.
        if header_len < 20 || total_len < header_len || begin + total_len > self.end {
            self.flow.protocol = format!("ip proto {protocol}");
            return;
        }
        self.end = begin + total_len;
        self.take("ip.options", header_len - 20);
        self.upper(protocol, fragment_offset != 0);
    }

    fn ipv6(&mut self) {
        self.flow.protocol = "ipv6".to_owned();
        let Some(header) = self.header(40) else { return };
        let payload_len = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let mut next = header[6];
        let address = |at: usize| {
            let bytes: [u8; 16] = header[at..at + 16].try_into().expect("16 of the 40 bytes");
            format!("[{}]", Ipv6Addr::from(bytes))
        };
        self.addresses = Some((address(8), address(24)));
        self.take_all(&[
            ("ipv6.flow", 4),
            ("ipv6.plen", 2),
            ("ipv6.nxt", 1),
            ("ipv6.hlim", 1),
            ("ipv6.src", 16),
            ("ipv6.dst", 16),
        ]);
        // 0 is a jumbogram: its length is in an option, and the frame ends where it ends.
        if payload_len != 0 && self.at + payload_len <= self.end {
            self.end = self.at + payload_len;
        }
        let mut later_fragment = false;
        while let Some((name, len)) = self.extension(next) {
            let Some(bytes) = self.header(len) else { break };
            if next == 44 {
                later_fragment = u16::from_be_bytes([bytes[2], bytes[3]]) & 0xfff8 != 0;
            }
            next = bytes[0];
            self.take(name, len);
        }
        self.upper(next, later_fragment);
    }

    /// Name and length of the IPv6 extension header of this number that begins here.
    fn extension(&self, number: u8) -> Option<(&'static str, usize)> {
        let head = self.header(8)?;
        let by_length = 8 + 8 * usize::from(head[1]);
        match number {
            0 => Some(("ipv6.hopopts", by_length)),
            43 => Some(("ipv6.routing", by_length)),
            44 => Some(("ipv6.fraghdr", 8)),
            60 => Some(("ipv6.dstopts", by_length)),
            _ => None,
        }
    }

    fn upper(&mut self, protocol: u8, later_fragment: bool) {
        let (name, has_ports) = match protocol {
            1 => ("icmp".to_owned(), false),
            6 => ("tcp".to_owned(), true),
            17 => ("udp".to_owned(), true),
            47 => ("gre".to_owned(), false),
            58 => ("icmpv6".to_owned(), false),
            other => (format!("ip proto {other}"), false),
        };
        self.flow.protocol = if later_fragment { format!("{name} fragment") } else { name };
        if later_fragment {
            return;
        }
        if let (true, Some(ports), Some((from, to))) = (has_ports, self.header(4), self.addresses.take()) {
            let port = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
            self.flow.ends = Some((format!("{from}:{}", port(0)), format!("{to}:{}", port(2))));
        }
        match protocol {
            1 | 58 if self.header(4).is_some() => {
                self.take_all(&[("icmp.type", 1), ("icmp.code", 1), ("icmp.checksum", 2)])
            }
            6 => self.tcp(),
            17 if self.header(8).is_some() => {
                self.take_all(&[("udp.srcport", 2), ("udp.dstport", 2), ("udp.length", 2), ("udp.checksum", 2)]);
            }
            47 if self.header(4).is_some() => self.take_all(&[("gre.flags_and_version", 2), ("gre.proto", 2)]),
            _ => {}
        }
    }

    fn tcp(&mut self) {
        let Some(header) = self.header(20) else { return };
        let header_len = 4 * usize::from(header[12] >> 4);
        let room = self.end - self.at;
        self.take_all(&[
            ("tcp.srcport", 2),
            ("tcp.dstport", 2),
            ("tcp.seq", 4),
            ("tcp.ack", 4),
            ("tcp.flags", 2),
            ("tcp.window_size_value", 2),
            ("tcp.checksum", 2),
            ("tcp.urgent_pointer", 2),
        ]);
        if (20..=room).contains(&header_len) {
            self.take("tcp.options", header_len - 20);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case ETH-02: a 60-byte UDP broadcast whose last 10 bytes are padding.
    const UDP_PADDED: [u8; 60] = {
        let head: [u8; 42] = [
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 0x24, 0xbd, 0x8f, 0x40, 0, 0x40,
            0x11, 0x68, 0x28, 10, 0, 0x0b, 0x12, 0xff, 0xff, 0xff, 0xff, 0x9c, 0x40, 0x34, 0x58, 0, 0x10, 0x17, 0x26,
        ];
        let mut frame = [0; 60];
        let mut at = 0;
        while at < head.len() {
            frame[at] = head[at];
            at += 1;
        }
        frame
    };

    #[test]
    fn padding_is_no_payload() {
        assert_eq!(at(&UDP_PADDED, 49), Field { name: "payload", start: 42, len: 8 });
        assert_eq!(at(&UDP_PADDED, 50), Field { name: "eth.padding", start: 50, len: 10 });
        assert_eq!(at(&UDP_PADDED, 60).name, "past the end");
        assert_eq!(flow(&UDP_PADDED).to_string(), "udp 10.0.11.18:40000 > 255.255.255.255:13400");
    }

    #[test]
    fn fields_leave_no_gap_whatever_the_bytes() {
        let mut rng = crate::synth::Rng::new(1);
        for round in 0..20_000 {
            let mut frame = UDP_PADDED.to_vec();
            frame.truncate(rng.below(61) as usize);
            for _ in 0..rng.below(4) {
                if let Some(last) = frame.len().checked_sub(1) {
                    let at = rng.below(last as u64 + 1) as usize;
                    frame[at] = rng.next_u64() as u8;
                }
            }
            let mut next = 0;
            for field in all(&frame) {
                assert!(NAMES.contains(&field.name), "{}", field.name);
                assert_eq!(field.start, next, "round {round}: {frame:02x?}");
                assert!(field.len > 0);
                next += field.len;
            }
            assert_eq!(next, frame.len(), "round {round}: {frame:02x?}");
        }
    }
}
