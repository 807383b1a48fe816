//! Frames from the inside out: a transport, in a network packet, in Ethernet. Lengths and checksums come out right.

use super::Rng;

/// IP protocol numbers.
pub mod proto {
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// IGMP.
    pub const IGMP: u8 = 2;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// GRE.
    pub const GRE: u8 = 47;
    /// ICMPv6.
    pub const ICMPV6: u8 = 58;
    /// SCTP.
    pub const SCTP: u8 = 132;
}

/// Ethertypes.
pub mod ethertype {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// 802.1Q tag.
    pub const VLAN: u16 = 0x8100;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// 802.1ad outer tag.
    pub const QINQ: u16 = 0x88a8;
    /// LLDP.
    pub const LLDP: u16 = 0x88cc;
    /// MPLS, unicast.
    pub const MPLS: u16 = 0x8847;
}

/// Shortest frame without FCS.
pub const MIN_FRAME_LEN: usize = 60;

/// The Internet checksum over `parts`, as if they stood together; all but the last must be of even length.
///
/// Source: RFC 1071.
#[must_use]
pub fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum: u64 = 0;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The Ethernet part of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ethernet {
    /// Destination.
    pub dst: [u8; 6],
    /// Source.
    pub src: [u8; 6],
    /// (tag protocol, tag control), outermost first.
    pub tags: Vec<(u16, u16)>,
}

impl Ethernet {
    /// Untagged, between two locally administered unicast addresses.
    #[must_use]
    pub fn random(rng: &mut Rng) -> Self {
        let mut address = || {
            let mut address = [0; 6];
            rng.fill(&mut address);
            address[0] = address[0] & !1 | 2;
            address
        };
        Self { dst: address(), src: address(), tags: Vec::new() }
    }

    /// With one more tag inside those there are.
    #[must_use]
    pub fn tagged(mut self, tag_protocol: u16, control: u16) -> Self {
        self.tags.push((tag_protocol, control));
        self
    }

    /// Header length in bytes.
    #[must_use]
    pub fn header_len(&self) -> usize {
        14 + 4 * self.tags.len()
    }

    /// The frame, as long as it comes out: under 60 bytes it is a runt.
    #[must_use]
    pub fn frame_unpadded(&self, ethertype: u16, payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::with_capacity((self.header_len() + payload.len()).max(MIN_FRAME_LEN));
        frame.extend_from_slice(&self.dst);
        frame.extend_from_slice(&self.src);
        for (tag_protocol, control) in &self.tags {
            frame.extend_from_slice(&tag_protocol.to_be_bytes());
            frame.extend_from_slice(&control.to_be_bytes());
        }
        frame.extend_from_slice(&ethertype.to_be_bytes());
        frame.extend_from_slice(payload);
        frame
    }

    /// The frame, padded with zeros to 60 bytes.
    #[must_use]
    pub fn frame(&self, ethertype: u16, payload: &[u8]) -> Vec<u8> {
        let mut frame = self.frame_unpadded(ethertype, payload);
        frame.resize(frame.len().max(MIN_FRAME_LEN), 0);
        frame
    }
}

/// An IPv4 header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ipv4 {
    /// Source address.
    pub src: [u8; 4],
    /// Destination address.
    pub dst: [u8; 4],
    /// Protocol of the payload.
    pub protocol: u8,
    /// Identification.
    pub id: u16,
    /// Don't fragment.
    pub dont_fragment: bool,
    /// More fragments follow.
    pub more_fragments: bool,
    /// In units of 8 bytes.
    pub fragment_offset: u16,
    /// Time to live.
    pub ttl: u8,
    /// Options, 0 to 40 bytes, padded with end-of-list to a multiple of 4.
    pub options: Vec<u8>,
}

impl Ipv4 {
    /// Random addresses and identification, nothing else special.
    #[must_use]
    pub fn random(rng: &mut Rng, protocol: u8) -> Self {
        let mut bytes = [0; 10];
        rng.fill(&mut bytes);
        // 10.x.x.x > 172.16.x.x: private, unicast.
        Self {
            src: [10, bytes[0], bytes[1], bytes[2]],
            dst: [172, 16, bytes[3], bytes[4]],
            protocol,
            id: u16::from_be_bytes([bytes[5], bytes[6]]),
            dont_fragment: bytes[7] & 1 == 1,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 64,
            options: Vec::new(),
        }
    }

    /// Header length in bytes, 20 to 60.
    #[must_use]
    pub fn header_len(&self) -> usize {
        20 + self.options.len().min(40).next_multiple_of(4)
    }

    /// Header and payload.
    #[must_use]
    pub fn packet(&self, payload: &[u8]) -> Vec<u8> {
        let header_len = self.header_len();
        let mut packet = vec![0; header_len];
        packet[0] = 0x40 | (header_len / 4) as u8;
        packet[2..4].copy_from_slice(&((header_len + payload.len()) as u16).to_be_bytes());
        packet[4..6].copy_from_slice(&self.id.to_be_bytes());
        let flags = u16::from(self.dont_fragment) << 14 | u16::from(self.more_fragments) << 13;
        packet[6..8].copy_from_slice(&(flags | self.fragment_offset & 0x1fff).to_be_bytes());
        packet[8] = self.ttl;
        packet[9] = self.protocol;
        packet[12..16].copy_from_slice(&self.src);
        packet[16..20].copy_from_slice(&self.dst);
        let options = &self.options[..self.options.len().min(40)];
        packet[20..20 + options.len()].copy_from_slice(options);
        let sum = checksum(&[&packet]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend_from_slice(payload);
        packet
    }
}

/// An IPv6 header with its extension headers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ipv6 {
    /// Source address.
    pub src: [u8; 16],
    /// Destination address.
    pub dst: [u8; 16],
    /// Extension headers in order: number, and everything behind the next-header byte (its length byte included).
    pub extensions: Vec<(u8, Vec<u8>)>,
    /// Protocol of the payload.
    pub protocol: u8,
    /// 20 bits.
    pub flow_label: u32,
}

impl Ipv6 {
    /// Random unique-local addresses, no extensions.
    #[must_use]
    pub fn random(rng: &mut Rng, protocol: u8) -> Self {
        let mut address = || {
            let mut address = [0; 16];
            rng.fill(&mut address);
            address[0] = 0xfd;
            address
        };
        let (src, dst) = (address(), address());
        Self { src, dst, extensions: Vec::new(), protocol, flow_label: rng.below(1 << 20) as u32 }
    }

    /// Hop-by-hop (0), routing (43) or destination options (60) of `len` bytes, a multiple of 8, filled with one PadN.
    #[must_use]
    pub fn with_options(mut self, number: u8, len: usize) -> Self {
        let len = len.next_multiple_of(8).clamp(8, 256);
        let mut body = vec![0; len - 1];
        body[0] = (len / 8 - 1) as u8;
        if number != 43 {
            body[1] = 1;
            body[2] = (len - 4) as u8;
        }
        self.extensions.push((number, body));
        self
    }

    /// A fragment header; `offset` in units of 8 bytes.
    #[must_use]
    pub fn with_fragment(mut self, offset: u16, more: bool, id: u32) -> Self {
        let word = (offset << 3 | u16::from(more)).to_be_bytes();
        let body = [&[0][..], &word, &id.to_be_bytes()].concat();
        self.extensions.push((44, body));
        self
    }

    /// Length of header and extensions in bytes.
    #[must_use]
    pub fn header_len(&self) -> usize {
        40 + self.extensions.iter().map(|(_, body)| body.len() + 1).sum::<usize>()
    }

    /// Headers and payload.
    #[must_use]
    pub fn packet(&self, payload: &[u8]) -> Vec<u8> {
        let numbers: Vec<u8> = self.extensions.iter().map(|(number, _)| *number).chain([self.protocol]).collect();
        let mut packet = (6 << 28 | self.flow_label & 0xf_ffff).to_be_bytes().to_vec();
        packet.extend_from_slice(&((self.header_len() - 40 + payload.len()) as u16).to_be_bytes());
        packet.extend_from_slice(&[numbers[0], 64]);
        packet.extend_from_slice(&self.src);
        packet.extend_from_slice(&self.dst);
        for ((_, body), next) in self.extensions.iter().zip(&numbers[1..]) {
            packet.push(*next);
            packet.extend_from_slice(body);
        }
        packet.extend_from_slice(payload);
        packet
    }
}

/// What goes into a transport's checksum beside itself.
pub trait Network {
    /// The pseudo-header for a transport packet of `len` bytes.
    fn pseudo_header(&self, len: usize) -> Vec<u8>;
}

impl Network for Ipv4 {
    fn pseudo_header(&self, len: usize) -> Vec<u8> {
        [&self.src[..], &self.dst, &[0, self.protocol], &(len as u16).to_be_bytes()].concat()
    }
}

impl Network for Ipv6 {
    fn pseudo_header(&self, len: usize) -> Vec<u8> {
        [&self.src[..], &self.dst, &(len as u32).to_be_bytes(), &[0, 0, 0, self.protocol]].concat()
    }
}

/// A UDP datagram. A checksum of 0 is sent as 0xffff (RFC 768).
#[must_use]
pub fn udp(network: &impl Network, src_port: u16, dst_port: u16, payload: &[u8]) -> Vec<u8> {
    let len = 8 + payload.len();
    let mut packet = [src_port.to_be_bytes(), dst_port.to_be_bytes(), (len as u16).to_be_bytes(), [0, 0]].concat();
    packet.extend_from_slice(payload);
    let sum = match checksum(&[&network.pseudo_header(len), &packet]) {
        0 => 0xffff,
        sum => sum,
    };
    packet[6..8].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// A TCP segment with ACK and PSH set; `options` padded to a multiple of 4.
#[must_use]
pub fn tcp(
    network: &impl Network,
    (src_port, dst_port): (u16, u16),
    seq: u32,
    options: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    let header_len = 20 + options.len().min(40).next_multiple_of(4);
    let mut packet = vec![0; header_len];
    packet[0..2].copy_from_slice(&src_port.to_be_bytes());
    packet[2..4].copy_from_slice(&dst_port.to_be_bytes());
    packet[4..8].copy_from_slice(&seq.to_be_bytes());
    packet[8..12].copy_from_slice(&seq.rotate_left(16).to_be_bytes());
    packet[12] = (header_len as u8 / 4) << 4;
    packet[13] = 0x18;
    packet[14..16].copy_from_slice(&0x2000u16.to_be_bytes());
    packet[20..20 + options.len().min(40)].copy_from_slice(&options[..options.len().min(40)]);
    packet.extend_from_slice(payload);
    let sum = checksum(&[&network.pseudo_header(packet.len()), &packet]);
    packet[16..18].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// An ICMP echo request.
#[must_use]
pub fn icmp_echo(id: u16, seq: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![8, 0, 0, 0];
    packet.extend_from_slice(&id.to_be_bytes());
    packet.extend_from_slice(&seq.to_be_bytes());
    packet.extend_from_slice(payload);
    let sum = checksum(&[&packet]);
    packet[2..4].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// An ICMPv6 echo request.
#[must_use]
pub fn icmpv6_echo(network: &Ipv6, id: u16, seq: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = icmp_echo(id, seq, payload);
    packet[0..4].copy_from_slice(&[128, 0, 0, 0]);
    let sum = checksum(&[&network.pseudo_header(packet.len()), &packet]);
    packet[2..4].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// A GRE packet, version 0 without options.
#[must_use]
pub fn gre(ethertype: u16, inner: &[u8]) -> Vec<u8> {
    [&[0, 0][..], &ethertype.to_be_bytes(), inner].concat()
}

/// An ARP request for an IPv4 address.
#[must_use]
pub fn arp_request(ethernet: &Ethernet, src: [u8; 4], dst: [u8; 4]) -> Vec<u8> {
    let head = [0, 1, 8, 0, 6, 4, 0, 1];
    [&head[..], &ethernet.src, &src, &[0; 6], &dst].concat()
}
