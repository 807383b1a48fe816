//! The golden cases of this repository: settings, and inputs made from a seed.
//!
//! Expected values of these cases are our two cards' agreement (`onic golden bless`); the inputs are here.

use std::io;

use super::{Case, Input, Origin};
use crate::Point;
use crate::digest;
use crate::read::Direction;
use crate::synth::mix::{self, Frames};
use crate::synth::{Kind, Rng};
use crate::write::{Packet, Pcap, PcapNg, Resolution, errors};

/// Time of the first frame of each input: 2023-11-14 22:13:20 UTC.
pub const FIRST_TIME_NS: u64 = 1_700_000_000_000_000_000;
/// Time between two frames of an input: 1 us and a bit, so that the nanoseconds are seen.
pub const GAP_NS: u64 = 1_009;

/// Seed of all built-in inputs. Each case takes a sequence of its own by its name.
const SEED: u64 = 0x0121_c051;

/// A case as it stands in its folder, less `expected.txt`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Made {
    /// Folder name.
    pub name: &'static str,
    /// `case.toml`.
    pub case: Case,
    /// (file name, contents).
    pub files: Vec<(String, Vec<u8>)>,
}

/// What goes in at one port.
enum Traffic {
    /// Good frames: pcap.
    Good(Frames),
    /// Frames with `epb_flags` error bits: pcapng.
    Flagged(Vec<(Vec<u8>, u32)>),
}

struct Recipe {
    name: &'static str,
    about: &'static str,
    shape: &'static str,
    rss_table: Option<&'static str>,
    runts: Option<&'static str>,
    stalls: Option<&'static str>,
    ports: Vec<Traffic>,
}

impl Recipe {
    fn new(
        name: &'static str,
        about: &'static str,
        shape: &'static str,
        frames: impl FnOnce(&mut Rng) -> Frames,
    ) -> Self {
        let mut rng = Rng::named(SEED, name);
        Self {
            name,
            about,
            shape,
            rss_table: None,
            runts: None,
            stalls: None,
            ports: vec![Traffic::Good(frames(&mut rng))],
        }
    }

    fn make(self) -> Made {
        let one_port = self.ports.len() == 1;
        let mut files = Vec::new();
        let mut inputs = Vec::new();
        for (port, traffic) in self.ports.iter().enumerate() {
            let stem = if one_port { "input".to_owned() } else { format!("port{port}") };
            let (file, frames, bytes) = match traffic {
                Traffic::Good(frames) => (format!("{stem}.pcap"), frames.len(), pcap(frames)),
                Traffic::Flagged(frames) => (format!("{stem}.pcapng"), frames.len(), pcapng(port as u8, frames)),
            };
            inputs.push(Input {
                port: port as u8,
                file: file.clone(),
                frames: frames as u64,
                digest: digest(&bytes).to_string(),
            });
            files.push((file, bytes));
        }
        let case = Case {
            about: self.about.to_owned(),
            origin: Origin::Ours,
            shape: self.shape.to_owned(),
            rss_key: None,
            rss_table: self.rss_table.map(str::to_owned),
            rss_hash: None,
            pace: None,
            runts: self.runts.map(str::to_owned),
            stalls: self.stalls.map(str::to_owned),
            xdp: None,
            seed: 1,
            input: inputs,
        };
        Made { name: self.name, case, files }
    }
}

/// All built-in cases but the measured ones, by name.
#[must_use]
pub fn all() -> Vec<Made> {
    let mut recipes = vec![
        Recipe::new(
            "rss-mix",
            "Valid frames of every sort over 8 queues: the first thing to run.",
            "1x1,queues=8",
            |rng| mix::everything(320, 1_514, rng),
        ),
        Recipe::new(
            "rss-tcp4",
            "64 TCP flows over 8 queues: each stays in one queue and in order.",
            "1x1,queues=8",
            |rng| mix::tcp_flows(64, 300, rng),
        ),
        Recipe::new(
            "size-ladder",
            "Every length to 192 bytes, then the edges of every beat to 1514.",
            "1x1,queues=8",
            |rng| mix::size_ladder(1_514, rng),
        ),
        Recipe::new(
            "vlan",
            "One flow under many VLAN ids stays in one queue; tagged frames that are not IPv4 go where hash 0 goes.",
            "1x1,queues=8",
            mix::vlan,
        ),
        Recipe::new(
            "ipv6",
            "IPv6 with and without extension headers, all with OpenNIC hash 0.",
            "1x1,queues=8",
            |rng| mix::ipv6(200, rng),
        ),
        Recipe::new(
            "fragments",
            "IPv4 fragments hash their payload as ports, as upstream does; IPv6 fragments hash to 0.",
            "1x1,queues=8",
            mix::fragments,
        ),
        Recipe::new(
            "ip-options",
            "IPv4 headers of 5 to 15 words and the invalid 0 to 4, within and across the first beat.",
            "1x1,queues=8",
            mix::ip_options,
        ),
        Recipe {
            runts: Some("keep"),
            ..Recipe::new(
                "runts",
                "Frames of 14 to 59 bytes are dropped and counted; those between them pass.",
                "1x1,queues=8",
                mix::runts,
            )
        },
        Recipe::new(
            "jumbo",
            "Frames to 9596 bytes through rings and buffers set up for them.",
            "1x1,queues=4,max-pkt=9600,mtu=9582",
            jumbo,
        ),
        Recipe::new("queues-1", "Everything into the only queue, in order.", "1x1,queues=1", |rng| {
            mix::everything(150, 600, rng)
        }),
        Recipe::new(
            "queues-3",
            "A queue count that is no power of two: 128 entries over 3 queues.",
            "1x1,queues=3",
            |rng| mix::everything(200, 600, rng),
        ),
        Recipe::new("queues-16", "16 queues, each hit several times.", "1x1,queues=16", |rng| {
            mix::of_kinds(&[Kind::Udp4, Kind::Tcp4], 400, 300, rng)
        }),
    ];
    recipes.push(Recipe {
        stalls: Some("between-beats"),
        ..Recipe::new(
            "stalls",
            "Frames of two and three beats, held between their beats on every stream: no queue depends on it.",
            "1x1,queues=8",
            |rng| mix::of_kinds(&[Kind::Udp4, Kind::Tcp4, Kind::Tcp6], 200, 192, rng),
        )
    });
    recipes.push(flagged_errors());
    recipes.push(two_ports());
    recipes.sort_by_key(|recipe| recipe.name);
    recipes.into_iter().map(Recipe::make).collect()
}

fn jumbo(rng: &mut Rng) -> Frames {
    let lens = [1_515, 2_048, 4_095, 4_096, 4_097, 8_191, 8_192, 8_193, 9_000, 9_014, 9_595, 9_596, 60, 9_596, 64];
    let mut frames = mix::of_kinds(&[Kind::Udp4, Kind::Tcp4], 20, 1_514, rng);
    for len in lens {
        let kind = *rng.pick(&[Kind::Udp4, Kind::Tcp4, Kind::Udp6]);
        let ethernet = crate::synth::Ethernet::random(rng);
        frames.push(crate::synth::frame(kind, &ethernet, len, rng));
    }
    frames
}

/// Every fifth frame came with a wrong FCS, at every length to three beats.
fn flagged_errors() -> Recipe {
    let name = "errors";
    let mut rng = Rng::named(SEED, name);
    let frames = mix::everything(240, 400, &mut rng)
        .into_iter()
        .enumerate()
        .map(|(at, frame)| (frame, if at % 5 == 3 || rng.one_in(9) { errors::CRC } else { 0 }))
        .collect();
    let about = "Frames with a wrong FCS are dropped and counted, wherever they stand among good ones.";
    Recipe {
        name,
        about,
        shape: "1x1,queues=8",
        rss_table: None,
        runts: None,
        stalls: None,
        ports: vec![Traffic::Flagged(frames)],
    }
}

fn two_ports() -> Recipe {
    let name = "two-ports";
    let (mut first, mut second) = (Rng::named(SEED, "two-ports 0"), Rng::named(SEED, "two-ports 1"));
    let ports = vec![
        Traffic::Good(mix::everything(160, 800, &mut first)),
        Traffic::Good(mix::everything(160, 800, &mut second)),
    ];
    let about = "Two ports and two functions at once: each port's frames reach its own function.";
    Recipe { name, about, shape: "2x2,queues=4", rss_table: None, runts: None, stalls: None, ports }
}

/// Frames as a pcap file, [`GAP_NS`] apart.
#[must_use]
pub fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let write = || -> io::Result<Vec<u8>> {
        let mut out = Pcap::new(Vec::new(), Resolution::Nanoseconds)?;
        for (time_ns, frame) in times().zip(frames) {
            out.write(time_ns, frame)?;
        }
        out.finish()
    };
    write().expect("memory can be written, and the times are of 2023")
}

fn pcapng(port: u8, frames: &[(Vec<u8>, u32)]) -> Vec<u8> {
    let point = Point::Port(port);
    let write = || -> io::Result<Vec<u8>> {
        let mut out = PcapNg::new(Vec::new(), &[point])?;
        for (time_ns, (frame, errors)) in times().zip(frames) {
            out.write(&Packet {
                direction: Some(Direction::Inbound),
                errors: *errors,
                ..Packet::new(point, time_ns, frame)
            })?;
        }
        out.finish()
    };
    write().expect("memory can be written")
}

fn times() -> impl Iterator<Item = u64> {
    (0..).map(|at| FIRST_TIME_NS + at * GAP_NS)
}
