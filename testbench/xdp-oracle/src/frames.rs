//! Frames for both witnesses: seeded ones of every kind that programs look at, and those of captures.
//!
//! Addresses, ports and ids come from small pools, so that flows repeat and entries of maps are hit. Each layer is wrong
//! now and then: lengths, checksums, versions, frames cut anywhere.

use std::path::Path;

use traces::read::{Event, Frame, Policy, Reader};
use traces::synth::Rng;

/// Shortest and longest frame that the kernel takes as one piece.
pub const FRAME_BYTES_MIN: usize = 14;
/// Likewise.
pub const FRAME_BYTES_MAX: usize = 3520;

/// IPv4 addresses that frames come from and go to.
pub const ADDRESSES: [[u8; 4]; 8] = [
    [10, 0, 0, 1],
    [10, 0, 0, 2],
    [10, 1, 2, 3],
    [192, 168, 0, 1],
    [192, 168, 7, 9],
    [172, 16, 0, 255],
    [203, 0, 113, 7],
    [0, 0, 0, 0],
];

/// Ports that they have.
pub const PORTS: [u16; 6] = [53, 80, 443, 1000, 40_000, 65_535];

/// A frame as it goes in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// Metadata and frame.
    pub bytes: Vec<u8>,
    /// Bytes of metadata.
    pub meta_len: usize,
    /// Records are taken out of ring buffers after it.
    pub drain: bool,
}

impl Input {
    /// A frame without metadata.
    pub fn plain(frame: Vec<u8>) -> Self {
        Self { bytes: frame, meta_len: 0, drain: false }
    }

    /// The metadata.
    pub fn meta(&self) -> &[u8] {
        &self.bytes[..self.meta_len]
    }

    /// The frame.
    pub fn frame(&self) -> &[u8] {
        &self.bytes[self.meta_len..]
    }
}

/// Frames of a seed, with what makes them interesting for a program.
pub fn seeded(seed: u64, purpose: &str, count: usize, shape: fn(&mut Rng, &mut Vec<u8>)) -> Vec<Input> {
    let mut rng = Rng::named(seed, purpose);
    (0..count)
        .map(|_| {
            let mut frame = build(&mut rng);
            shape(&mut rng, &mut frame);
            frame.truncate(FRAME_BYTES_MAX);
            frame.resize(frame.len().max(FRAME_BYTES_MIN), 0);
            // Up to what 256 bytes of headroom leave beside the 40 that are kept; seldom, as few drivers make any.
            let meta_len = if rng.one_in(16) { rng.between(1, 54) as usize * 4 } else { 0 };
            let mut bytes = rng.bytes(meta_len);
            // The page is shared: what metadata takes of it, the longest frames can't have.
            frame.truncate(FRAME_BYTES_MAX - meta_len);
            bytes.extend(frame);
            Input { bytes, meta_len, drain: rng.one_in(100) }
        })
        .collect()
}

/// The frames of every capture in a folder, as many as fit into one piece; what can't be read is left out.
///
/// # Errors
/// There is no such folder.
pub fn captures(folder: &Path) -> std::io::Result<Vec<Input>> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let mut inputs = Vec::new();
    for path in paths {
        // Some of these are broken on purpose; reading them right is the business of `traces`.
        let Ok(mut reader) = Reader::open(&path, Policy::lenient()) else { continue };
        let mut frame = Frame::default();
        loop {
            match reader.read(&mut frame) {
                Ok(Event::Frame) if (FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&frame.data.len()) => {
                    inputs.push(Input::plain(frame.data.clone()));
                }
                Ok(Event::End) | Err(_) => break,
                Ok(_) => {}
            }
        }
    }
    Ok(inputs)
}

fn build(rng: &mut Rng) -> Vec<u8> {
    if rng.one_in(20) {
        let len = rng.between(FRAME_BYTES_MIN as u64, 200) as usize;
        return rng.bytes(len);
    }
    let mut frame = Vec::with_capacity(128);
    for _ in 0..2 {
        frame.extend([2, 0, 0, 0, 0, rng.below(4) as u8]);
    }
    let tags = if rng.one_in(5) { 1 + rng.below(2) } else { 0 };
    for _ in 0..tags {
        frame.extend(rng.pick(&[0x8100u16, 0x8100, 0x88a8]).to_be_bytes());
        frame.extend((rng.next_u64() as u16).to_be_bytes());
    }
    match rng.below(20) {
        0 => {
            frame.extend([0x08, 0x06]);
            frame.extend(rng.bytes(46));
        }
        1 => {
            frame.extend((rng.next_u64() as u16).to_be_bytes());
            let len = rng.between(0, 100) as usize;
            frame.extend(rng.bytes(len));
        }
        2..=4 => {
            frame.extend([0x86, 0xdd]);
            ipv6(rng, &mut frame);
        }
        _ => {
            frame.extend([0x08, 0x00]);
            ipv4(rng, &mut frame);
        }
    }
    if rng.one_in(12) {
        // Cut anywhere.
        frame.truncate(rng.between(FRAME_BYTES_MIN as u64, frame.len() as u64) as usize);
    } else if !rng.one_in(4) && frame.len() < 60 {
        frame.resize(60, 0);
    }
    frame
}

/// Mostly short, now and then up to a full frame and beyond.
fn payload_len(rng: &mut Rng) -> usize {
    let most = *rng.pick(&[0, 8, 18, 64, 64, 256, 1472, 3400]);
    rng.between(0, most) as usize
}

fn ipv4(rng: &mut Rng, frame: &mut Vec<u8>) {
    let start = frame.len();
    // Options in one of eight; a length below the header's own once in a while.
    let words = match rng.below(32) {
        0 => rng.below(5),
        1..=4 => rng.between(6, 15),
        _ => 5,
    };
    let version = if rng.one_in(40) { rng.below(16) } else { 4 };
    let any = rng.next_u64() as u8;
    let protocol = *rng.pick(&[6, 6, 17, 17, 17, 1, 1, 4, 47, any]);
    // DF, MF and an offset: atomic datagrams, whole ones and fragments.
    let fragment = *rng.pick(&[0x4000, 0x4000, 0x4000, 0, 0, 0x2000, 0x2005, 0x00b9, 0x6000, 0x8000]);
    let id = match rng.below(4) {
        0 => 0,
        1 => rng.below(6) as u16,
        _ => rng.next_u64() as u16,
    };
    let ttl = *rng.pick(&[64, 64, 64, 255, 1, 0, any]);
    frame.extend([(version << 4 | words) as u8, *rng.pick(&[0, 0, 3, 0xb8]), 0, 0]);
    frame.extend(id.to_be_bytes());
    frame.extend(u16::to_be_bytes(fragment));
    frame.extend([ttl, protocol, 0, 0]);
    frame.extend(rng.pick(&ADDRESSES));
    frame.extend(rng.pick(&ADDRESSES));
    let options = (words as usize * 4).saturating_sub(20);
    frame.extend(rng.bytes(options));
    let header = start..frame.len();
    transport(rng, frame, protocol);
    let len = if rng.one_in(20) { rng.next_u64() as u16 } else { (frame.len() - start) as u16 };
    frame[start + 2..start + 4].copy_from_slice(&len.to_be_bytes());
    let sum = if rng.one_in(20) { rng.next_u64() as u16 } else { checksum(&frame[header]) };
    frame[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
}

fn ipv6(rng: &mut Rng, frame: &mut Vec<u8>) {
    let next = *rng.pick(&[6, 17, 58, 44, 0]);
    frame.extend([0x60, 0, 0, 0, 0, 0, next, 64]);
    let len_at = frame.len() - 4;
    for _ in 0..2 {
        frame.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, rng.below(8) as u8]);
    }
    let start = frame.len();
    transport(rng, frame, next);
    let len = (frame.len() - start) as u16;
    frame[len_at..len_at + 2].copy_from_slice(&len.to_be_bytes());
}

fn transport(rng: &mut Rng, frame: &mut Vec<u8>, protocol: u8) {
    let start = frame.len();
    match protocol {
        6 | 17 => {
            frame.extend(rng.pick(&PORTS).to_be_bytes());
            frame.extend(rng.pick(&PORTS).to_be_bytes());
            let rest = if protocol == 6 { 16 } else { 4 };
            frame.extend(rng.bytes(rest));
        }
        // Echo request more often than all else.
        1 => frame.extend([*rng.pick(&[8, 8, 8, 0, 3, 11, 13]), *rng.pick(&[0, 0, 0, 4]), 0, 0, 0, 1, 0, 2]),
        _ => {}
    }
    let len = payload_len(rng);
    frame.extend(rng.bytes(len));
    if protocol == 1 {
        let sum = if rng.one_in(10) { rng.next_u64() as u16 } else { checksum(&frame[start..]) };
        frame[start + 2..start + 4].copy_from_slice(&sum.to_be_bytes());
    }
}

/// The Internet checksum (RFC 1071) of bytes in which its own field is 0.
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)))
        .fold(0, u32::wrapping_add);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Input> {
        seeded(1, "test", 3000, |_, _| ())
    }

    #[test]
    fn the_same_seed_gives_the_same_frames() {
        assert_eq!(frames(), frames());
        assert_ne!(frames(), seeded(2, "test", 3000, |_, _| ()));
    }

    #[test]
    fn every_kind_is_there() {
        let frames = frames();
        let count = |is: &dyn Fn(&[u8]) -> bool| frames.iter().filter(|input| is(input.frame())).count();
        let ether = |frame: &[u8]| u16::from_be_bytes([frame[12], frame[13]]);
        let protocol = |frame: &[u8]| (ether(frame) == 0x0800).then(|| frame.get(23).copied()).flatten();
        for (what, least, found) in [
            ("one VLAN tag", 200, count(&|frame| ether(frame) == 0x8100)),
            ("IPv6", 200, count(&|frame| ether(frame) == 0x86dd)),
            ("ARP", 50, count(&|frame| ether(frame) == 0x0806)),
            ("TCP", 200, count(&|frame| protocol(frame) == Some(6))),
            ("UDP", 200, count(&|frame| protocol(frame) == Some(17))),
            ("ICMP", 200, count(&|frame| protocol(frame) == Some(1))),
            ("options", 100, count(&|frame| ether(frame) == 0x0800 && frame.get(14).is_some_and(|byte| *byte > 0x45))),
            ("fragments", 300, count(&|frame| protocol(frame).is_some() && frame[20] & 0x20 != 0)),
            ("below 60 bytes", 300, count(&|frame| frame.len() < 60)),
            ("above 1514 bytes", 50, count(&|frame| frame.len() > 1514)),
            ("metadata", 100, frames.iter().filter(|input| input.meta_len > 0).count()),
        ] {
            assert!(found >= least, "{what}: {found}");
        }
        assert!(frames.iter().all(|input| (FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&input.bytes.len())));
    }
}
