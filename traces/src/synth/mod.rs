//! Seeded traffic: frames with right lengths and checksums, the same for the same seed for ever.
//!
//! [`frame`] makes one frame of a [`Kind`] and an exact length; [`mix`] makes the sequences that golden cases, property
//! tests and benches use. Nothing here depends on a crate whose next version might make other bytes.

mod build;
mod frame;
pub mod mix;
mod rng;

pub use build::{Kind, frame, shortest_len};
pub use frame::{
    Ethernet, Ipv4, Ipv6, MIN_FRAME_LEN, Network, arp_request, checksum, ethertype, gre, icmp_echo, icmpv6_echo, proto,
    tcp, udp,
};
pub use rng::Rng;
