//! What helpers tell a program about the machine's network: interfaces, routes, neighbours. Set by whoever runs it.
//!
//! As long as nothing is set, `bpf_fib_lookup` answers 5 (forwarding disabled) and `bpf_check_mtu` takes every interface
//! for one with an MTU of 1500 bytes.

use alloc::vec::Vec;

/// An interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its index.
    pub ifindex: u32,
    /// Most bytes behind the Ethernet header.
    pub mtu: u32,
    /// Its address.
    pub mac: [u8; 6],
    /// Frames that come in here may be forwarded.
    pub forwarding: bool,
}

/// An address: IPv4 uses the first 4 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum IpAddress {
    /// IPv4.
    V4([u8; 4]),
    /// IPv6.
    V6([u8; 16]),
}

impl IpAddress {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::V4(bytes) => bytes,
            Self::V6(bytes) => bytes,
        }
    }

    fn begins_with(&self, prefix: &Self, len: u8) -> bool {
        let (whole, bits) = (usize::from(len / 8), len % 8);
        let (mine, other) = (self.bytes(), prefix.bytes());
        let same_family = mine.len() == other.len() && usize::from(len) <= mine.len() * 8;
        same_family
            && mine[..whole] == other[..whole]
            && (bits == 0 || (mine[whole] ^ other[whole]) & !(0xff >> bits) == 0)
    }
}

/// A route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// Destination.
    pub prefix: IpAddress,
    /// Bits of it that count.
    pub prefix_len: u8,
    /// Interface that it goes out on.
    pub ifindex: u32,
    /// The next hop, if it isn't the destination itself.
    pub gateway: Option<IpAddress>,
    /// Linux's metric.
    pub metric: u32,
}

/// A neighbour whose address is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbor {
    /// The interface that it is behind.
    pub ifindex: u32,
    /// Its address.
    pub address: IpAddress,
    /// Likewise.
    pub mac: [u8; 6],
}

/// All of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Network {
    /// Interfaces.
    pub interfaces: Vec<Interface>,
    /// Routes: the longest prefix wins, among equals the first.
    pub routes: Vec<Route>,
    /// Neighbours.
    pub neighbors: Vec<Neighbor>,
}

/// MTU of interfaces as long as none is described.
const DEFAULT_MTU: u32 = 1500;

/// Answers of `bpf_fib_lookup` (`include/uapi/linux/bpf.h`, `BPF_FIB_LKUP_RET_*`).
pub(crate) mod fib {
    pub(crate) const SUCCESS: u64 = 0;
    pub(crate) const NOT_FORWARDED: u64 = 4;
    pub(crate) const FORWARDING_DISABLED: u64 = 5;
    pub(crate) const NO_NEIGHBOR: u64 = 7;
    pub(crate) const FRAG_NEEDED: u64 = 8;
}

/// What a lookup found.
pub(crate) struct Hop {
    pub(crate) route: Route,
    pub(crate) mtu: u32,
    pub(crate) smac: [u8; 6],
    pub(crate) dmac: Option<[u8; 6]>,
}

impl Network {
    pub(crate) fn interface(&self, ifindex: u32) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.ifindex == ifindex)
    }

    pub(crate) fn mtu(&self, ifindex: u32) -> Option<u32> {
        if self.interfaces.is_empty() { Some(DEFAULT_MTU) } else { self.interface(ifindex).map(|found| found.mtu) }
    }

    pub(crate) fn hop(&self, to: IpAddress) -> Option<Hop> {
        let matching = self.routes.iter().filter(|route| to.begins_with(&route.prefix, route.prefix_len));
        // `max_by_key` takes the last of equals.
        let route = *matching.rev().max_by_key(|route| route.prefix_len)?;
        let out = self.interface(route.ifindex)?;
        let next = route.gateway.unwrap_or(to);
        let neighbor = self.neighbors.iter().find(|known| (known.ifindex, known.address) == (out.ifindex, next));
        Some(Hop { route, mtu: out.mtu, smac: out.mac, dmac: neighbor.map(|known| known.mac) })
    }
}
