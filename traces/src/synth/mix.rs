//! Sequences of frames: the inputs of golden cases, and of any test that wants traffic of a sort.

use super::{Ethernet, Ipv4, Kind, MIN_FRAME_LEN, Rng, ethertype, frame, proto, udp};

/// Frames in the order that they are sent.
pub type Frames = Vec<Vec<u8>>;

/// Kinds that every part of the path takes as they are.
pub const VALID: [Kind; 19] = [
    Kind::Udp4,
    Kind::Udp4,
    Kind::Tcp4,
    Kind::Tcp4,
    Kind::Icmp4,
    Kind::Sctp4,
    Kind::Gre4,
    Kind::Vxlan4,
    Kind::Options4 { ihl: 6 },
    Kind::FragmentFirst4,
    Kind::FragmentLater4,
    Kind::Udp6,
    Kind::Tcp6,
    Kind::Icmp6,
    Kind::Extensions6,
    Kind::Fragment6,
    Kind::Arp,
    Kind::Mpls,
    Kind::Length8023,
];

/// A length from 60 to `max_len` bytes: half of them short, and the edges of a beat more often than the rest.
pub fn len(max_len: usize, rng: &mut Rng) -> usize {
    let highest = if rng.one_in(2) { max_len.min(260) } else { max_len };
    let len = rng.between(MIN_FRAME_LEN as u64, highest as u64) as usize;
    let len = if rng.one_in(4) { len.next_multiple_of(64) + rng.below(3) as usize - 1 } else { len };
    len.clamp(MIN_FRAME_LEN, max_len)
}

/// `count` frames of any of `kinds`, of every length to `max_len`.
pub fn of_kinds(kinds: &[Kind], count: usize, max_len: usize, rng: &mut Rng) -> Frames {
    (0..count)
        .map(|_| {
            let kind = *rng.pick(kinds);
            let ethernet = Ethernet::random(rng);
            let len = len(max_len, rng);
            frame(kind, &ethernet, len, rng)
        })
        .collect()
}

/// `count` valid frames of all sorts; every sixth has one VLAN tag, a few have two.
pub fn everything(count: usize, max_len: usize, rng: &mut Rng) -> Frames {
    (0..count)
        .map(|_| {
            let kind = *rng.pick(&VALID);
            let ethernet = random_tags(Ethernet::random(rng), rng);
            let len = len(max_len, rng);
            frame(kind, &ethernet, len, rng)
        })
        .collect()
}

fn random_tags(ethernet: Ethernet, rng: &mut Rng) -> Ethernet {
    match rng.below(24) {
        0..=3 => ethernet.tagged(ethertype::VLAN, rng.next_u64() as u16),
        4 => ethernet.tagged(ethertype::QINQ, rng.next_u64() as u16).tagged(ethertype::VLAN, rng.next_u64() as u16),
        5 => ethernet.tagged(ethertype::VLAN, rng.next_u64() as u16).tagged(ethertype::VLAN, rng.next_u64() as u16),
        _ => ethernet,
    }
}

/// `count` TCP segments of `flows` flows in random turn: a flow's frames meet again in one queue, in order.
pub fn tcp_flows(flows: usize, count: usize, rng: &mut Rng) -> Frames {
    struct Conversation {
        ethernet: Ethernet,
        network: Ipv4,
        ports: (u16, u16),
        seq: u32,
    }
    let mut open: Vec<Conversation> = (0..flows)
        .map(|_| Conversation {
            ethernet: Ethernet::random(rng),
            network: Ipv4 { dont_fragment: true, ..Ipv4::random(rng, proto::TCP) },
            ports: (rng.between(1_024, 65_535) as u16, *rng.pick(&[80, 443, 8_080])),
            seq: rng.next_u64() as u32,
        })
        .collect();
    (0..count)
        .map(|_| {
            let at = rng.below(open.len() as u64) as usize;
            let conversation = &mut open[at];
            let payload_len = len(1_514, rng).saturating_sub(54);
            let payload = rng.bytes(payload_len);
            let segment = super::tcp(&conversation.network, conversation.ports, conversation.seq, &[], &payload);
            conversation.seq = conversation.seq.wrapping_add(payload.len() as u32);
            conversation.network.id = conversation.network.id.wrapping_add(1);
            conversation.ethernet.frame(ethertype::IPV4, &conversation.network.packet(&segment))
        })
        .collect()
}

/// UDP frames of every length from 60 to 192 bytes, then of the lengths around each multiple of 64, up to `max_len`.
pub fn size_ladder(max_len: usize, rng: &mut Rng) -> Frames {
    let edges = (192 / 64 + 1..).map(|beats| 64 * beats).take_while(|len| len - 1 <= max_len);
    let lens = (MIN_FRAME_LEN..=192).chain(edges.flat_map(|len| [len - 1, len, len + 1])).filter(|&len| len < max_len);
    lens.chain([max_len]).map(|len| frame(Kind::Udp4, &Ethernet::random(rng), len, rng)).collect()
}

/// One flow under 24 VLAN ids and none, then tagged frames of other sorts, priority tags, and two or three tags.
pub fn vlan(rng: &mut Rng) -> Frames {
    let ethernet = Ethernet::random(rng);
    let network = Ipv4::random(rng, proto::UDP);
    let payload = rng.bytes(40);
    let packet = network.packet(&udp(&network, 4_000, 5_000, &payload));
    let mut frames: Frames = vec![ethernet.frame(ethertype::IPV4, &packet)];
    for bit in 0..12 {
        for id in [1u16 << bit, 0xfff >> bit] {
            frames.push(ethernet.clone().tagged(ethertype::VLAN, id).frame(ethertype::IPV4, &packet));
        }
    }
    for kind in VALID {
        for tags in 1..=3 {
            let mut tagged = Ethernet::random(rng);
            let outer = if rng.one_in(2) { ethertype::QINQ } else { ethertype::VLAN };
            tagged = tagged.tagged(if tags == 1 { ethertype::VLAN } else { outer }, rng.next_u64() as u16);
            for _ in 1..tags {
                tagged = tagged.tagged(ethertype::VLAN, rng.next_u64() as u16);
            }
            let len = len(600, rng);
            frames.push(frame(kind, &tagged, len, rng));
        }
    }
    // Priority tag: id 0, priority 7.
    frames.extend((0..8).map(|_| frame(Kind::Udp4, &Ethernet::random(rng).tagged(ethertype::VLAN, 0xe000), 64, rng)));
    frames
}

/// Datagrams cut into fragments, sent in order or not, IPv4 and IPv6, with whole ones of the same ends between.
pub fn fragments(rng: &mut Rng) -> Frames {
    let mut frames = Frames::new();
    for datagram in 0..24 {
        let ethernet = Ethernet::random(rng);
        let network = Ipv4 { dont_fragment: false, ..Ipv4::random(rng, proto::UDP) };
        let payload = rng.bytes(200 + 100 * datagram);
        let whole = udp(&network, 7_000, 9_000, &payload);
        let piece = 8 * rng.between(8, 60) as usize;
        let pieces: Vec<&[u8]> = whole.chunks(piece).collect();
        let mut of_this: Frames = pieces
            .iter()
            .enumerate()
            .map(|(at, bytes)| {
                let fragment = Ipv4 {
                    fragment_offset: (at * piece / 8) as u16,
                    more_fragments: at + 1 < pieces.len(),
                    ..network.clone()
                };
                ethernet.frame(ethertype::IPV4, &fragment.packet(bytes))
            })
            .collect();
        if datagram % 3 == 2 {
            of_this.reverse();
        }
        frames.append(&mut of_this);
        frames.push(ethernet.frame(ethertype::IPV4, &network.packet(&udp(&network, 7_000, 9_000, b"whole"))));
    }
    frames.extend(of_kinds(&[Kind::Fragment6], 30, 400, rng));
    frames
}

/// Every header length: 5 to 15 words at several frame lengths, and the invalid 0 to 4, untagged and tagged.
pub fn ip_options(rng: &mut Rng) -> Frames {
    let mut frames = Frames::new();
    for len in [60, 64, 65, 90, 128, 129, 300] {
        for ihl in 0..16 {
            let kind = if ihl < 5 { Kind::BadIhl4 { ihl } } else { Kind::Options4 { ihl } };
            for tags in 0..2 {
                let mut ethernet = Ethernet::random(rng);
                ethernet.tags = vec![(ethertype::VLAN, rng.next_u64() as u16); tags];
                frames.push(frame(kind, &ethernet, len, rng));
            }
        }
    }
    frames
}

/// IPv6 of all sorts, untagged and tagged.
pub fn ipv6(count: usize, rng: &mut Rng) -> Frames {
    const KINDS: [Kind; 5] = [Kind::Udp6, Kind::Tcp6, Kind::Icmp6, Kind::Extensions6, Kind::Fragment6];
    (0..count)
        .map(|_| {
            let kind = *rng.pick(&KINDS);
            let ethernet = Ethernet::random(rng);
            let ethernet =
                if rng.one_in(4) { ethernet.tagged(ethertype::VLAN, rng.next_u64() as u16) } else { ethernet };
            let len = len(1_514, rng);
            frame(kind, &ethernet, len, rng)
        })
        .collect()
}

/// Every length from 14 to 59 bytes twice, each between two good frames.
pub fn runts(rng: &mut Rng) -> Frames {
    let mut frames = Frames::new();
    for len in (14..MIN_FRAME_LEN).chain(14..MIN_FRAME_LEN) {
        let mut runt = frame(Kind::Udp4, &Ethernet::random(rng), MIN_FRAME_LEN, rng);
        runt.truncate(len);
        frames.push(runt);
        let good = self::len(200, rng);
        frames.push(frame(Kind::Udp4, &Ethernet::random(rng), good, rng));
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ladder_has_every_rung_once() {
        let lens: Vec<usize> = size_ladder(1_514, &mut Rng::new(1)).iter().map(Vec::len).collect();
        assert!(lens.windows(2).all(|pair| pair[0] < pair[1]), "{lens:?}");
        assert_eq!((lens[0], lens[132], lens[133], lens[lens.len() - 1]), (60, 192, 255, 1_514));
    }

    #[test]
    fn lengths_stay_within_and_meet_the_edges_of_beats() {
        let mut rng = Rng::new(2);
        let lens: Vec<usize> = (0..2_000).map(|_| len(1_514, &mut rng)).collect();
        assert!(lens.iter().all(|len| (60..=1_514).contains(len)));
        for edge in [63, 0, 1] {
            assert!(lens.iter().filter(|&len| len % 64 == edge).count() > 100);
        }
    }
}
