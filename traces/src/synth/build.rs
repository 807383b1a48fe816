//! One frame of a kind, with an exact length.

use super::Rng;
use super::frame::{
    Ethernet, Ipv4, Ipv6, Network, arp_request, ethertype, gre, icmp_echo, icmpv6_echo, proto, tcp, udp,
};

/// What a frame carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// IPv4, UDP.
    Udp4,
    /// IPv4, TCP, now and then with options.
    Tcp4,
    /// IPv4, ICMP echo request.
    Icmp4,
    /// IPv4, SCTP header without a right CRC: only its ports matter here.
    Sctp4,
    /// IPv4, GRE around IPv4 and UDP.
    Gre4,
    /// IPv4, UDP 4789, VXLAN around a frame.
    Vxlan4,
    /// IPv4 with this IHL, 5 to 15, and UDP or TCP.
    Options4 {
        /// Header length in words of 4 bytes; others are taken for the nearest.
        ihl: u8,
    },
    /// IPv4 whose IHL is this, 0 to 4, and so invalid; the rest as if it were 5.
    BadIhl4 {
        /// Cut to 4.
        ihl: u8,
    },
    /// IPv4 and UDP, first fragment of a longer datagram.
    FragmentFirst4,
    /// IPv4, a later fragment: what stands behind the header are no ports.
    FragmentLater4,
    /// IPv6, UDP.
    Udp6,
    /// IPv6, TCP.
    Tcp6,
    /// IPv6, ICMPv6 echo request.
    Icmp6,
    /// IPv6 with hop-by-hop options, routing header and destination options, then UDP.
    Extensions6,
    /// IPv6 with a fragment header.
    Fragment6,
    /// ARP request.
    Arp,
    /// LLDP ethertype with noise.
    Lldp,
    /// MPLS label and IPv4.
    Mpls,
    /// 802.3 length field and LLC.
    Length8023,
}

/// The shortest frame of that kind in bytes, at least 60.
#[must_use]
pub fn shortest_len(kind: Kind, ethernet: &Ethernet) -> usize {
    frame(kind, ethernet, 0, &mut Rng::new(0)).len()
}

/// A frame of `len` bytes without FCS, or the kind's shortest if that is more; at most 65,535 are meant.
#[must_use]
pub fn frame(kind: Kind, ethernet: &Ethernet, len: usize, rng: &mut Rng) -> Vec<u8> {
    let room = len.saturating_sub(ethernet.header_len());
    let (ethertype, mut payload) = payload(kind, ethernet, room, rng);
    // ARP and LLC have no length to stretch: the rest of the frame is a trailer.
    payload.resize(payload.len().max(room), 0);
    ethernet.frame(ethertype, &payload)
}

fn payload(kind: Kind, ethernet: &Ethernet, room: usize, rng: &mut Rng) -> (u16, Vec<u8>) {
    match kind {
        Kind::Udp4 => (ethertype::IPV4, udp4(Ipv4::random(rng, proto::UDP), room, rng)),
        Kind::Tcp4 => (ethertype::IPV4, tcp4(Ipv4::random(rng, proto::TCP), room, rng)),
        Kind::Icmp4 => (ethertype::IPV4, icmp4(room, rng)),
        Kind::Sctp4 => (ethertype::IPV4, noise4(Ipv4::random(rng, proto::SCTP), room, 12, rng)),
        Kind::Gre4 => (ethertype::IPV4, gre4(room, rng)),
        Kind::Vxlan4 => (ethertype::IPV4, vxlan4(room, rng)),
        Kind::Options4 { ihl } => (ethertype::IPV4, options4(ihl, room, rng)),
        Kind::BadIhl4 { ihl } => (ethertype::IPV4, bad_ihl4(ihl, room, rng)),
        Kind::FragmentFirst4 => (ethertype::IPV4, fragment_first4(room, rng)),
        Kind::FragmentLater4 => {
            let offset = rng.between(1, 1_000) as u16;
            let network = Ipv4 {
                dont_fragment: false,
                fragment_offset: offset,
                more_fragments: rng.one_in(2),
                ..Ipv4::random(rng, proto::UDP)
            };
            (ethertype::IPV4, noise4(network, room, 8, rng))
        }
        Kind::Udp6 => (ethertype::IPV6, udp6(&Ipv6::random(rng, proto::UDP), room, rng)),
        Kind::Tcp6 => (ethertype::IPV6, tcp6(room, rng)),
        Kind::Icmp6 => (ethertype::IPV6, icmp6(room, rng)),
        Kind::Extensions6 => {
            let network = Ipv6::random(rng, proto::UDP).with_options(0, 8).with_options(43, 24).with_options(60, 16);
            (ethertype::IPV6, udp6(&network, room, rng))
        }
        Kind::Fragment6 => (ethertype::IPV6, fragment6(room, rng)),
        Kind::Arp => {
            let ends = rng.bytes(8);
            (
                ethertype::ARP,
                arp_request(ethernet, [ends[0], ends[1], ends[2], ends[3]], [ends[4], ends[5], ends[6], ends[7]]),
            )
        }
        Kind::Lldp => (ethertype::LLDP, rng.bytes(room.max(46))),
        Kind::Mpls => {
            let inner = udp4(Ipv4::random(rng, proto::UDP), room.saturating_sub(4), rng);
            (ethertype::MPLS, [&[0x00, 0x12, 0x31, 0x40][..], &inner].concat())
        }
        Kind::Length8023 => {
            let len = room.clamp(46, 1_500);
            (len as u16, [&[0x42, 0x42, 0x03][..], &rng.bytes(len - 3)].concat())
        }
    }
}

fn ports(rng: &mut Rng) -> (u16, u16) {
    (rng.between(1_024, 65_535) as u16, *rng.pick(&[53, 80, 443, 5_001, 8_080, 11_211]))
}

fn body(room: usize, headers: usize, rng: &mut Rng) -> Vec<u8> {
    rng.bytes(room.saturating_sub(headers))
}

fn udp_of(network: &impl Network, room: usize, header_len: usize, rng: &mut Rng) -> Vec<u8> {
    let (src, dst) = ports(rng);
    udp(network, src, dst, &body(room, header_len + 8, rng))
}

fn tcp_of(network: &impl Network, room: usize, header_len: usize, rng: &mut Rng) -> Vec<u8> {
    // NOP, NOP, timestamps.
    let options = [&[1, 1, 8, 10][..], &rng.bytes(8)].concat();
    let options = if rng.one_in(3) && room >= header_len + 32 { &options[..] } else { &[] };
    let seq = rng.next_u64() as u32;
    tcp(network, ports(rng), seq, options, &body(room, header_len + 20 + options.len(), rng))
}

fn udp4(network: Ipv4, room: usize, rng: &mut Rng) -> Vec<u8> {
    network.packet(&udp_of(&network, room, network.header_len(), rng))
}

fn tcp4(network: Ipv4, room: usize, rng: &mut Rng) -> Vec<u8> {
    network.packet(&tcp_of(&network, room, network.header_len(), rng))
}

fn udp6(network: &Ipv6, room: usize, rng: &mut Rng) -> Vec<u8> {
    network.packet(&udp_of(network, room, network.header_len(), rng))
}

fn tcp6(room: usize, rng: &mut Rng) -> Vec<u8> {
    let network = Ipv6::random(rng, proto::TCP);
    network.packet(&tcp_of(&network, room, network.header_len(), rng))
}

fn icmp4(room: usize, rng: &mut Rng) -> Vec<u8> {
    let network = Ipv4::random(rng, proto::ICMP);
    let (id, seq) = (rng.next_u64() as u16, rng.next_u64() as u16);
    network.packet(&icmp_echo(id, seq, &body(room, network.header_len() + 8, rng)))
}

fn icmp6(room: usize, rng: &mut Rng) -> Vec<u8> {
    let network = Ipv6::random(rng, proto::ICMPV6);
    let (id, seq) = (rng.next_u64() as u16, rng.next_u64() as u16);
    network.packet(&icmpv6_echo(&network, id, seq, &body(room, 48, rng)))
}

/// Noise of at least `least` bytes behind the header.
fn noise4(network: Ipv4, room: usize, least: usize, rng: &mut Rng) -> Vec<u8> {
    let len = room.saturating_sub(network.header_len()).max(least);
    network.packet(&rng.bytes(len))
}

fn gre4(room: usize, rng: &mut Rng) -> Vec<u8> {
    let outer = Ipv4::random(rng, proto::GRE);
    let inner = udp4(Ipv4::random(rng, proto::UDP), room.saturating_sub(24), rng);
    outer.packet(&gre(ethertype::IPV4, &inner))
}

fn vxlan4(room: usize, rng: &mut Rng) -> Vec<u8> {
    let outer = Ipv4 { dont_fragment: true, ..Ipv4::random(rng, proto::UDP) };
    let header = [8, 0, 0, 0, 0, 0x12, 0x34, 0];
    let ethernet = Ethernet::random(rng);
    let inner = udp4(Ipv4::random(rng, proto::UDP), room.saturating_sub(20 + 8 + 8 + 14), rng);
    let payload = [&header[..], &ethernet.frame_unpadded(ethertype::IPV4, &inner)].concat();
    outer.packet(&udp(&outer, rng.between(49_152, 65_535) as u16, 4_789, &payload))
}

fn options4(ihl: u8, room: usize, rng: &mut Rng) -> Vec<u8> {
    let words = usize::from(ihl.clamp(5, 15)) - 5;
    let has_room_for_tcp = room >= 20 + 4 * words + 20;
    let protocol = if has_room_for_tcp && rng.one_in(2) { proto::TCP } else { proto::UDP };
    // Router alert first where it fits, then NOPs.
    let mut options = vec![1; 4 * words];
    if words > 0 {
        options[..4].copy_from_slice(&[0x94, 4, 0, 0]);
    }
    let network = Ipv4 { options, ..Ipv4::random(rng, protocol) };
    if protocol == proto::UDP { udp4(network, room, rng) } else { tcp4(network, room, rng) }
}

fn bad_ihl4(ihl: u8, room: usize, rng: &mut Rng) -> Vec<u8> {
    let mut packet = udp4(Ipv4::random(rng, proto::UDP), room, rng);
    packet[0] = 0x40 | ihl.min(4);
    packet
}

/// The head of a datagram of 4,000 bytes.
fn fragment_first4(room: usize, rng: &mut Rng) -> Vec<u8> {
    let network = Ipv4 { dont_fragment: false, more_fragments: true, ..Ipv4::random(rng, proto::UDP) };
    let (src, dst) = ports(rng);
    let whole = udp(&network, src, dst, &rng.bytes(4_000));
    // Every fragment but the last holds a multiple of 8 bytes; what is left over becomes a trailer.
    let len = (room.saturating_sub(20) & !7).clamp(8, whole.len() & !7);
    network.packet(&whole[..len])
}

fn fragment6(room: usize, rng: &mut Rng) -> Vec<u8> {
    let network =
        Ipv6::random(rng, proto::UDP).with_fragment(rng.below(1_000) as u16, rng.one_in(2), rng.next_u64() as u32);
    let len = room.saturating_sub(network.header_len()).max(8);
    network.packet(&rng.bytes(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const KINDS: [Kind; 19] = [
        Kind::Udp4,
        Kind::Tcp4,
        Kind::Icmp4,
        Kind::Sctp4,
        Kind::Gre4,
        Kind::Vxlan4,
        Kind::Options4 { ihl: 15 },
        Kind::BadIhl4 { ihl: 4 },
        Kind::FragmentFirst4,
        Kind::FragmentLater4,
        Kind::Udp6,
        Kind::Tcp6,
        Kind::Icmp6,
        Kind::Extensions6,
        Kind::Fragment6,
        Kind::Arp,
        Kind::Lldp,
        Kind::Mpls,
        Kind::Length8023,
    ];

    #[test]
    fn lengths_come_out_as_asked() {
        let mut rng = Rng::new(3);
        for kind in KINDS {
            for tags in 0..3 {
                let mut ethernet = Ethernet::random(&mut rng);
                ethernet.tags = vec![(ethertype::VLAN, 5); tags];
                let least = shortest_len(kind, &ethernet);
                assert!((60..=160).contains(&least), "{kind:?} {least}");
                for len in [60, 64, 65, 127, 128, 129, 200, 1_514, 9_596] {
                    assert_eq!(frame(kind, &ethernet, len, &mut rng).len(), len.max(least), "{kind:?}");
                }
            }
        }
    }

    /// etherparse, which we don't build with, checks every length and checksum.
    #[test]
    fn etherparse_finds_lengths_and_checksums_right() {
        use etherparse::{NetSlice, SlicedPacket, TransportSlice};
        let mut rng = Rng::new(4);
        let mut checked = 0;
        for kind in [
            Kind::Udp4,
            Kind::Tcp4,
            Kind::Icmp4,
            Kind::Options4 { ihl: 15 },
            Kind::Udp6,
            Kind::Tcp6,
            Kind::Icmp6,
            Kind::Extensions6,
        ] {
            for _ in 0..200 {
                let len = rng.between(60, 1_514) as usize;
                let frame = frame(kind, &Ethernet::random(&mut rng), len, &mut rng);
                let packet = SlicedPacket::from_ethernet(&frame).unwrap_or_else(|error| panic!("{kind:?}: {error}"));
                match (packet.net.unwrap(), packet.transport.unwrap()) {
                    (NetSlice::Ipv4(net), transport) => {
                        let header = net.header().to_header();
                        assert_eq!(header.calc_header_checksum(), header.header_checksum);
                        check(&transport, |bytes| {
                            [
                                &header.source[..],
                                &header.destination,
                                &[0, header.protocol.0],
                                &(bytes as u16).to_be_bytes(),
                            ]
                            .concat()
                        });
                    }
                    (NetSlice::Ipv6(net), transport) => {
                        let (src, dst) = (net.header().source(), net.header().destination());
                        let next = net.payload().ip_number.0;
                        check(&transport, |bytes| {
                            [&src[..], &dst, &(bytes as u32).to_be_bytes(), &[0, 0, 0, next]].concat()
                        });
                    }
                    _ => panic!("{kind:?} is not IP"),
                }
                checked += 1;
            }
        }
        assert_eq!(checked, 1_600);

        fn check(transport: &TransportSlice<'_>, pseudo: impl Fn(usize) -> Vec<u8>) {
            use super::super::checksum;
            // A right checksum makes the sum over everything zero.
            let (bytes, with_pseudo) = match transport {
                TransportSlice::Udp(udp) => (udp.slice(), true),
                TransportSlice::Tcp(tcp) => (tcp.slice(), true),
                TransportSlice::Icmpv4(icmp) => (icmp.slice(), false),
                TransportSlice::Icmpv6(icmp) => (icmp.slice(), true),
                TransportSlice::Igmp(_) => panic!("none of these kinds"),
            };
            let pseudo = if with_pseudo { pseudo(bytes.len()) } else { Vec::new() };
            assert_eq!(checksum(&[&pseudo, bytes]), 0);
        }
    }
}
