//! Frames of a case, each described by a few numbers that shrink.

use proptest::prelude::*;
use regs::{FuncId, PortId};
use traces::synth::{Ethernet, Kind, MIN_FRAME_LEN, Rng, ethertype, frame, mix};

use crate::run::{HostFrame, InFrame};

/// What a frame holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Content {
    /// Whole headers.
    Of(Kind),
    /// This ethertype, and noise behind it.
    Noise(u16),
}

/// VLAN tags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tags {
    None,
    One(u16),
    Two(u16, u16),
    QinQ(u16, u16),
}

/// One frame at the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FrameSpec {
    /// Modulo the card's ports.
    pub(super) port: u8,
    pub(super) content: Content,
    pub(super) tags: Tags,
    /// Without FCS. Under 60 it is a runt; a kind that needs more gets more.
    pub(super) len_bytes: u16,
    /// Its FCS is wrong.
    pub(super) err: bool,
    /// Of addresses, ports and payload.
    pub(super) seed: u64,
}

impl FrameSpec {
    /// Its bytes.
    pub(super) fn data(&self) -> Vec<u8> {
        let mut rng = Rng::new(self.seed);
        let ethernet = Ethernet::random(&mut rng);
        let ethernet = match self.tags {
            Tags::None => ethernet,
            Tags::One(tag) => ethernet.tagged(ethertype::VLAN, tag),
            Tags::Two(outer, inner) => ethernet.tagged(ethertype::VLAN, outer).tagged(ethertype::VLAN, inner),
            Tags::QinQ(outer, inner) => ethernet.tagged(ethertype::QINQ, outer).tagged(ethertype::VLAN, inner),
        };
        let len = usize::from(self.len_bytes);
        let mut data = match self.content {
            Content::Of(kind) => frame(kind, &ethernet, len, &mut rng),
            Content::Noise(ethertype) => {
                let noise = rng.bytes(len.saturating_sub(ethernet.header_len()));
                ethernet.frame_unpadded(ethertype, &noise)
            }
        };
        if len < MIN_FRAME_LEN || matches!(self.content, Content::Noise(_)) {
            data.truncate(len);
        }
        data
    }
}

/// All frames of a case, with their numbers. `pad`: runts get zeros up to 60 bytes, as a sending NIC makes them.
pub(super) fn frames(specs: &[FrameSpec], ports: u8, pad: bool) -> Vec<InFrame> {
    let numbered = specs.iter().enumerate();
    numbered
        .map(|(index, spec)| {
            let mut data = spec.data();
            if pad && data.len() < MIN_FRAME_LEN {
                data.resize(MIN_FRAME_LEN, 0);
            }
            InFrame { port: PortId(spec.port % ports), index: index as u64, time_ns: None, data, err: spec.err }
        })
        .collect()
}

/// Lengths around the last byte of a beat.
fn beat_edge(beats: impl Strategy<Value = u16>) -> impl Strategy<Value = u16> {
    (beats, 0u16..3).prop_map(|(beats, edge)| beats * 64 + edge - 1)
}

/// 60…9600 bytes, mostly short, beat edges more often than the rest. (Over 9596 the MAC finds it too long.)
pub(super) fn len_bytes() -> impl Strategy<Value = u16> {
    prop_oneof![
        6 => 60u16..=260,
        5 => beat_edge(1u16..=3),
        2 => beat_edge(1u16..=149),
        2 => 60u16..=1514,
        1 => 60u16..=9600,
    ]
}

/// Ethertypes in front of noise: those that a parser looks at, and some that none does.
const NOISE_TYPES: [u16; 6] = [ethertype::IPV4, ethertype::IPV6, ethertype::VLAN, ethertype::LLDP, 0x0000, 0xffff];

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        8 => proptest::sample::select(&mix::VALID[..]).prop_map(Content::Of),
        2 => (5u8..=15).prop_map(|ihl| Content::Of(Kind::Options4 { ihl })),
        1 => (0u8..=4).prop_map(|ihl| Content::Of(Kind::BadIhl4 { ihl })),
        1 => proptest::sample::select(&NOISE_TYPES[..])
            .prop_map(Content::Noise),
    ]
}

fn tags() -> impl Strategy<Value = Tags> {
    prop_oneof![
        6 => Just(Tags::None),
        3 => any::<u16>().prop_map(Tags::One),
        1 => any::<(u16, u16)>().prop_map(|(outer, inner)| Tags::Two(outer, inner)),
        1 => any::<(u16, u16)>().prop_map(|(outer, inner)| Tags::QinQ(outer, inner)),
    ]
}

/// A frame that a card takes.
pub(super) fn good_frame() -> impl Strategy<Value = FrameSpec> {
    (0u8..2, content(), tags(), len_bytes().prop_map(|len| len.min(9596)), any::<u64>()).prop_map(
        |(port, content, tags, len_bytes, seed)| FrameSpec { port, content, tags, len_bytes, err: false, seed },
    )
}

/// A frame of any sort: now and then a runt, one over-long, or one with a wrong FCS.
pub(super) fn any_frame() -> impl Strategy<Value = FrameSpec> {
    let len = prop_oneof![16 => len_bytes(), 1 => 1u16..60, 1 => 9597u16..=9600];
    (good_frame(), len, prop::bool::weighted(0.05)).prop_map(|(frame, len_bytes, err)| FrameSpec {
        len_bytes,
        err,
        ..frame
    })
}

/// One frame from the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HostSpec {
    /// Modulo the functions.
    pub(super) func: u8,
    /// Modulo the queues.
    pub(super) queue: u16,
    pub(super) len_bytes: u16,
    pub(super) seed: u64,
}

/// Where a host frame carries its origin: function, queue and number, in place of its source address.
pub(super) const ORIGIN: std::ops::Range<usize> = 6..12;

/// Function, queue, number among all of the case.
pub(super) type Origin = (FuncId, u16, u16);

/// Host frames, each marked with where it comes from.
pub(super) fn host_frames(specs: &[HostSpec], functions: u8, queues: u16) -> Vec<HostFrame> {
    let numbered = specs.iter().enumerate();
    numbered.map(|(number, spec)| host_frame_of(spec, number as u16, functions, queues)).collect()
}

/// One of them.
pub(super) fn host_frame_of(spec: &HostSpec, number: u16, functions: u8, queues: u16) -> HostFrame {
    let (func, queue) = (spec.func % functions, spec.queue % queues);
    let mut rng = Rng::new(spec.seed);
    let mut data = frame(Kind::Udp4, &Ethernet::random(&mut rng), spec.len_bytes.into(), &mut rng);
    let ([q0, q1], [n0, n1]) = (queue.to_be_bytes(), number.to_be_bytes());
    data[ORIGIN].copy_from_slice(&[0x02, func, q0, q1, n0, n1]);
    HostFrame { func: FuncId(func), queue, data }
}

/// The origin of a frame that the host made.
pub(super) fn origin(data: &[u8]) -> Option<Origin> {
    match data.get(ORIGIN)? {
        &[0x02, func, q0, q1, n0, n1] => {
            Some((FuncId(func), u16::from_be_bytes([q0, q1]), u16::from_be_bytes([n0, n1])))
        }
        _ => None,
    }
}

/// A frame of any sort from a seed, not longer than `max_bytes`, for lists that proptest does not make: sometimes a runt,
/// sometimes one with a wrong FCS.
pub(super) fn drawn_frame(rng: &mut Rng, ports: u8, max_bytes: u16) -> FrameSpec {
    let content = match rng.below(12) {
        0 => Content::Of(Kind::Options4 { ihl: rng.between(5, 15) as u8 }),
        1 => Content::Of(Kind::BadIhl4 { ihl: rng.below(5) as u8 }),
        2 => Content::Noise(*rng.pick(&NOISE_TYPES)),
        _ => Content::Of(*rng.pick(&mix::VALID)),
    };
    let mut tag = || rng.next_u64() as u16;
    let some = [tag(), tag()];
    let tags = match rng.below(11) {
        0..=5 => Tags::None,
        6..=8 => Tags::One(some[0]),
        9 => Tags::Two(some[0], some[1]),
        _ => Tags::QinQ(some[0], some[1]),
    };
    let len_bytes = match rng.below(40) {
        0 => rng.between(1, 59),
        1..=3 => rng.between(60, max_bytes.into()),
        4..=9 => 64 * rng.between(1, u64::from(max_bytes / 64)) + rng.below(3) - 1,
        10..=19 => 64 * rng.between(1, 3) + rng.below(3) - 1,
        _ => rng.between(60, 260),
    };
    FrameSpec {
        port: rng.below(ports.into()) as u8,
        content,
        tags,
        len_bytes: len_bytes.min(max_bytes.into()) as u16,
        err: rng.one_in(30),
        seed: rng.next_u64(),
    }
}

/// A frame from the host.
pub(super) fn host_frame() -> impl Strategy<Value = HostSpec> {
    (0u8..2, 0u16..16, len_bytes().prop_map(|len| len.min(9596)), any::<u64>())
        .prop_map(|(func, queue, len_bytes, seed)| HostSpec { func, queue, len_bytes, seed })
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest! {
        #[test]
        fn a_frame_is_as_long_as_it_says_or_as_its_headers_need(spec in any_frame()) {
            let len = usize::from(spec.len_bytes);
            let data = spec.data();
            prop_assert!(data.len() == len || (len >= 60 && data.len() > len && data.len() < 260), "{}", data.len());
        }

        #[test]
        fn an_origin_reads_back(specs in prop::collection::vec(host_frame(), 1..5)) {
            for (number, frame) in host_frames(&specs, 2, 3).iter().enumerate() {
                prop_assert_eq!(origin(&frame.data), Some((frame.func, frame.queue, number as u16)));
            }
        }
    }
}
