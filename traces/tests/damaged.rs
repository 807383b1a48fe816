//! Files damaged at random: no panic, no loop, no length believed.
//!
//! Valid files are changed in a few places each, or cut; the sequence is fixed, the time limit ends it early on a slow
//! machine (and says so), and `ONIC_FUZZ_SECONDS` makes it longer.

mod common;

use std::time::{Duration, Instant};

use common::{Block, captures, enhanced, interface, read_all, section};
use traces::read::Policy;
use traces::synth::{Rng, mix};
use traces::write::{Packet, Pcap, PcapNg, Resolution};
use traces::{Point, golden};

/// Small files of every format.
fn seeds() -> Vec<Vec<u8>> {
    let frames = mix::everything(6, 200, &mut Rng::new(1));
    let mut pcap = Pcap::new(Vec::new(), Resolution::Microseconds).unwrap();
    let mut pcapng = PcapNg::new(Vec::new(), &Point::of_card(2, 1)).unwrap();
    for (at, frame) in frames.iter().enumerate() {
        pcap.write(at as u64, frame).unwrap();
        pcapng
            .write(&Packet { packet_id: Some(at as u64), queue: Some(1), ..Packet::new(Point::Port(0), 1, frame) })
            .unwrap();
    }
    let both_orders = [false, true].map(|big| {
        let simple = Block::new(big).u32(60).bytes(&[1; 60]).build(3);
        let old = Block::new(big).u16(0).u16(2).u32(0).u32(1).u32(61).u32(61).bytes(&[2; 61]).build(2);
        let options = [(9, vec![0x8a]), (14, vec![1; 8]), (13, vec![4])];
        [
            section(big),
            interface(big, 1, 100, &options),
            enhanced(big, 0, 1, &frames[0], &[(7, vec![2; 9])]),
            simple,
            old,
        ]
        .concat()
    });
    let mut files = vec![pcap.finish().unwrap(), pcapng.finish().unwrap(), both_orders.concat()];
    for path in captures().unwrap_or_default() {
        let bytes = std::fs::read(path).unwrap();
        files.push(bytes[..bytes.len().min(4_096)].to_vec());
    }
    files
}

fn damage(bytes: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..rng.between(1, 6) {
        // Headers are where the damage tells: half of it goes into the first 100 bytes.
        let reach = if rng.one_in(2) { bytes.len().min(100) } else { bytes.len() };
        let at = rng.below(reach as u64) as usize;
        match rng.below(8) {
            0 => bytes[at] = 0xff,
            1 => bytes[at] = 0,
            2 => bytes.truncate(at.max(1)),
            3 => {
                let word = rng.pick(&[0u32, 1, 0x7fff_ffff, 0xffff_ffff, 12, 262_145]).to_le_bytes();
                let end = (at + 4).min(bytes.len());
                bytes[at..end].copy_from_slice(&word[..end - at]);
            }
            4 => {
                let piece = bytes[at..(at + 32).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => bytes[at] ^= 1 << rng.below(8),
        }
    }
}

#[test]
fn readers_survive_whatever_is_in_the_file() {
    let seconds = std::env::var("ONIC_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let limit = Duration::from_secs(seconds);
    let begin = Instant::now();
    let files = seeds();
    let mut rng = Rng::new(0xdead);
    let (mut rounds, mut frames, mut refused, mut errors) = (0u64, 0, 0, 0);
    while rounds < 60_000 * seconds / 10 && begin.elapsed() < limit {
        let mut bytes = rng.pick(&files).clone();
        damage(&mut bytes, &mut rng);
        let policy = if rng.one_in(2) { Policy::default() } else { Policy::lenient() };
        let read = read_all(bytes.clone(), policy);
        let total: usize = read.frames.iter().map(|frame| frame.data.len()).sum();
        assert!(total <= bytes.len(), "more came out than was in");
        for frame in &read.frames {
            // What goes on to reports must stand anything, too.
            let _ = (traces::fields::flow(&frame.data).to_string(), traces::fields::at(&frame.data, 40));
        }
        frames += read.frames.len();
        refused += read.refused.len();
        errors += usize::from(read.error.is_some());
        rounds += 1;
    }
    println!("{rounds} damaged files in {:?}: {frames} frames, {refused} refused, {errors} errors", begin.elapsed());
    assert!(rounds > 500, "too slow to mean anything: {rounds} rounds");
    assert!(frames > 0 && refused > 0 && errors > 0, "the damage must reach all three ends");
}

#[test]
fn golden_texts_survive_damage() {
    let mut expected = golden::Expected::new(golden::Origin::Ours);
    for n in 0..10 {
        let entry =
            golden::Entry { input: None, len_bytes: n, digest: traces::digest(&[n as u8]), hash: None, verdict: None };
        expected.push(Point::Function(0), golden::Slot::Queue(n % 3), entry);
    }
    let text = expected.to_string();
    let mut rng = Rng::new(2);
    for _ in 0..5_000 {
        let mut bytes = text.clone().into_bytes();
        damage(&mut bytes, &mut rng);
        let _ = golden::Expected::parse(&String::from_utf8_lossy(&bytes));
        let _ = golden::Case::parse(&String::from_utf8_lossy(&bytes));
    }
}
