//! The command line as types: each option once, with its doc, from which help, man page, completions and `docs/cli.md` come.

// These comments are help texts: what stands in brackets is an optional part of a word, not a link.
#![allow(rustdoc::broken_intra_doc_links)]

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::card::Shape;
use crate::shape::{Pace, TableSpec};

/// An OpenNIC card on your own machine: replay traffic through a behavioural model and Verilator-built RTL, and compare.
#[derive(Parser, Debug)]
#[command(name = "onic", version, propagate_version = true, max_term_width = 110, disable_help_subcommand = true)]
#[command(override_usage = "onic COMMAND [OPTIONS] [ARGS]")]
#[command(after_help = "Exit codes: 0 agreed; 1 a difference, assertion, hang or failed check; 2 bad usage or input; \
                        3 a tool is missing; 4 nothing was compared.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Every command, in the order of the help.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Everyday: replay captures, or a golden case's folder, in at the wire
    Replay(Box<ReplayArgs>),
    /// Everyday: make UDP frames on the host and send them through a card to the wire, or to a capture
    Gen(Box<GenArgs>),
    /// Everyday: goldens, properties and doctor; under 3 minutes without --full
    Test(Box<TestArgs>),
    /// Everyday: golden cases, the expected results under version control
    Golden(GoldenArgs),
    /// Everyday: compare two captures, aligned and classed
    Diff(DiffArgs),
    /// Everyday: shrink a failing capture to the least that still fails
    Reduce(Box<ReduceArgs>),
    /// Look: RSS hash of a tuple or frame, or check a table of measured hashes
    Hash(HashArgs),
    /// Look: the register map, or one register on a live card
    Regs(RegsArgs),
    /// Look: one live card, typed or from a script: traffic, ethtool, ip link, registers, faults
    Console(ConsoleArgs),
    /// Look: versions, paths, caches, and what a card offers
    Info(InfoArgs),
    /// Look: measure speed as a ratio against a named opponent
    Bench(BenchArgs),
    /// Look: the vendor driver's known faults, each made again and caught; and drivers without fault, in silence
    Gallery(GalleryArgs),
    /// Look: compiled XDP programs: what an object holds, what frames become of it, which helpers there are
    Xdp(XdpArgs),
    /// Look: JSON schema of a command's --json output
    Schema(SchemaArgs),
    /// Own RTL: the cache of Verilated tops
    Rtl(RtlArgs),
    /// Shell completions to stdout
    #[command(hide = true)]
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
    /// Man page to stdout
    #[command(hide = true)]
    Man,
    /// This reference as Markdown to stdout (docs/cli.md)
    #[command(hide = true)]
    Markdown,
}

/// Which cards a command runs on, and how.
#[derive(Args, Clone, Debug)]
pub struct CardArgs {
    /// The card under test: model (all Rust), hybrid (QDMA model + our shell RTL) or rtl (all RTL)
    #[arg(long, default_value = "rtl", value_name = "CARD")]
    pub card: String,
    /// The card to hold it against, or none
    #[arg(long, default_value = "model", value_name = "CARD|none")]
    pub against: String,
    /// Functions x ports and their limits: PFxPORTS[,queues=N,max-pkt=N,min-pkt=N,mtu=N,ring=N]
    #[arg(long, default_value = "1x1", value_name = "SHAPE")]
    pub shape: Shape,
    /// How the model behaves: corrected, or as upstream's shell ships
    #[arg(long, value_enum, default_value_t = ProfileArg::Corrected)]
    pub profile: ProfileArg,
    /// Hash key: 40 bytes as in ethtool, colons optional, or 0x… as the one number in RTL
    #[arg(long, value_name = "KEY")]
    pub rss_key: Option<String>,
    /// Indirection table: `equal N`, `weight W0 W1 …`, or 128 queue numbers
    #[arg(long, value_name = "TABLE")]
    pub rss_table: Option<TableSpec>,
    /// The hash function wanted; a card without it refuses
    #[arg(long, value_enum, default_value_t = HashArg::Opennic)]
    pub rss_hash: HashArg,
    /// When frames start at the wire: fast|line|bus|capture[:MAXGAP]|GBPS
    #[arg(long, default_value = "fast", value_name = "PACE")]
    pub pace: Pace,
    /// Frames under 60 bytes: pad them as a sending NIC would, or keep them as runts
    #[arg(long, value_enum, default_value_t = RuntsArg::Pad)]
    pub runts: RuntsArg,
    /// Stall pattern on every stream: none, random:PERCENT, bursts:MAX, every:N, between-beats
    #[arg(long, default_value = "none", value_name = "PROFILE")]
    pub stalls: String,
    /// Root seed of stalls, initial state and generated contents
    #[arg(long, default_value = "1", value_parser = parse_seed, value_name = "N")]
    pub seed: u64,
    /// Driver's cost for each packet, ns of simulated time
    #[arg(long, default_value_t = 0, value_name = "NS", value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub host_ns: u64,
    /// Time-out without progress, in cycles of axis_aclk
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000_000))]
    pub hang_cycles: u64,
    /// Do not check host memory accesses
    #[arg(long)]
    pub no_memory_checks: bool,
    /// Alarm test: disturb the N-th frame, from 0, on its way from RTL to QDMA: flip:N[:BYTE[:BIT]], drop:N, dup:N,
    /// misroute:N[:QID], hold:N (take nothing any more); or at the wire: keep:N (a tkeep that is no run of ones)
    #[arg(long, value_name = "TAP")]
    pub tap: Option<String>,
    /// Alarm test: switch on a fault of the RTL's fault build: 1…6 in the shell, 11…20 in the engine of card rtl
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=20))]
    pub rtl_fault: Option<u8>,
    /// A knob of card rtl: link=ideal|pcie3x16, fetch=wire|hardware, latency=CYCLES, latency-spread=CYCLES,
    /// reorder=on|off; once for each
    #[arg(long = "set", value_name = "KNOB=VALUE")]
    pub settings: Vec<String>,
}

/// Output files and forms.
#[derive(Args, Clone, Debug, Default)]
pub struct OutArgs {
    /// Everything that came out of the card, as pcapng
    #[arg(long, value_name = "F.pcapng")]
    pub out: Option<PathBuf>,
    /// The same for the card it is held against
    #[arg(long, value_name = "F.pcapng")]
    pub out_against: Option<PathBuf>,
    /// On a difference, run again and keep an FST wave window around it
    #[arg(long, value_name = "F.fst")]
    pub waves: Option<PathBuf>,
    /// User coverage of the RTL
    #[arg(long, value_name = "F")]
    pub coverage: Option<PathBuf>,
    /// JUnit report
    #[arg(long, value_name = "F")]
    pub junit: Option<PathBuf>,
    /// One JSON object to stdout in place of the table
    #[arg(long)]
    pub json: bool,
    /// Counted skips do not fail the run
    #[arg(long)]
    pub allow_skips: bool,
}

/// `onic replay`.
#[derive(Args, Clone, Debug)]
pub struct ReplayArgs {
    /// Captures (pcap, pcapng, .gz, - for stdin), each with @PORT if not port 0; or one golden case's folder
    #[arg(required = true, value_name = "FILE[@PORT]|CASE")]
    pub inputs: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub card: CardArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub out: OutArgs,
    /// Compare with this expected file (golden format)
    #[arg(long, value_name = "FILE")]
    pub expect: Option<PathBuf>,
    /// Only this packet of the input (index as reports give it)
    #[arg(long, value_name = "N")]
    pub only: Option<u64>,
    /// Only the first N packets
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// One run for each seed from A, B left out
    #[arg(long, value_name = "A..B")]
    pub seeds: Option<String>,
    /// How many runs at a time, with --seeds
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub jobs: usize,
}

/// `onic gen`.
#[derive(Args, Clone, Debug)]
pub struct GenArgs {
    /// udp
    #[arg(value_enum)]
    pub protocol: Protocol,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub card: CardArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub out: OutArgs,
    /// How many frames
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u64).range(..=10_000_000))]
    pub count: u64,
    /// UDP payload bytes
    #[arg(long, default_value_t = 18, value_name = "BYTES")]
    pub msg_size: usize,
    /// Flows, by source port
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub flows: u16,
    /// Write the frames to a capture and send nothing
    #[arg(long)]
    pub to_capture: bool,
}

/// What `onic gen` makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Protocol {
    /// IPv4 and UDP.
    Udp,
}

/// `onic test`.
#[derive(Args, Clone, Debug)]
pub struct TestArgs {
    /// Only checks whose name holds this
    pub filter: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub card: CardArgs,
    /// All properties and shapes, as CI does
    #[arg(long)]
    pub full: bool,
    /// Seeds for each property
    #[arg(long, value_name = "N")]
    pub seeds: Option<u32>,
    /// Only the case of this number, as a failing `hostile` prints it
    #[arg(long, value_name = "N")]
    pub only: Option<u64>,
    /// JUnit report
    #[arg(long, value_name = "F")]
    pub junit: Option<PathBuf>,
    /// List the checks
    #[arg(long)]
    pub list: bool,
}

/// `onic golden`.
#[derive(Args, Clone, Debug)]
pub struct GoldenArgs {
    #[command(subcommand)]
    #[allow(missing_docs)]
    pub action: GoldenAction,
}

/// What to do with golden cases.
#[derive(Subcommand, Clone, Debug)]
pub enum GoldenAction {
    /// Run each case on both cards and compare with its expected file
    Check {
        /// Case folders; all of traces/golden without
        cases: Vec<PathBuf>,
        /// The card under test, held against the model too
        #[arg(long, default_value = "rtl")]
        card: String,
        /// JUnit report
        #[arg(long, value_name = "F")]
        junit: Option<PathBuf>,
        /// One JSON object to stdout
        #[arg(long)]
        json: bool,
    },
    /// Accept what both cards now do, showing the difference
    Bless {
        /// Case folders, or a folder of them
        #[arg(required = true)]
        cases: Vec<PathBuf>,
        /// The card that has to agree with the model
        #[arg(long, default_value = "rtl")]
        card: String,
        /// Why the expected result changes; kept in the case
        #[arg(long)]
        reason: String,
    },
    /// Make a case from a capture
    New {
        /// The new case's folder
        case: PathBuf,
        /// Captures, FILE[@PORT]
        #[arg(required = true)]
        inputs: Vec<String>,
        /// The shape it runs on
        #[arg(long, default_value = "1x1")]
        shape: Shape,
        /// The card that has to agree with the model
        #[arg(long, default_value = "rtl")]
        card: String,
        /// What the case shows
        #[arg(long)]
        reason: String,
    },
    /// What bless would change
    Diff {
        /// Case folders; all of traces/golden without
        cases: Vec<PathBuf>,
        /// The card beside the model
        #[arg(long, default_value = "rtl")]
        card: String,
    },
}

/// `onic diff`.
#[derive(Args, Clone, Debug)]
pub struct DiffArgs {
    /// Expected
    pub a: PathBuf,
    /// Got
    pub b: PathBuf,
    /// What may differ: time, queue, hash, padding, point, verdict, err, drop, or a header field such as ip.checksum
    #[arg(long, value_delimiter = ',', value_name = "FIELD")]
    pub ignore: Vec<String>,
    /// One JSON object to stdout
    #[arg(long)]
    pub json: bool,
}

/// `onic reduce`.
#[derive(Args, Clone, Debug)]
pub struct ReduceArgs {
    /// The failing capture
    #[arg(required = true, value_name = "FILE[@PORT]")]
    pub inputs: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub card: CardArgs,
    /// Where to write the smallest input
    #[arg(long, default_value = "reduced.pcapng", value_name = "F.pcapng")]
    pub out: PathBuf,
    /// How many runs may be tried
    #[arg(long, default_value_t = 4_096, value_name = "N")]
    pub runs: u64,
}

/// `onic hash`.
#[derive(Args, Clone, Debug)]
pub struct HashArgs {
    /// `SRC[:PORT] DST[:PORT] [tcp|udp|PROTO]`, `frame HEX`, `check FILE.csv`, or `key` to print the key
    #[arg(required = true, num_args = 1..)]
    pub what: Vec<String>,
    /// opennic (the card's) or microsoft (Toeplitz as published)
    #[arg(long, value_enum)]
    pub function: Option<HashArg>,
    /// 40 bytes as in ethtool, or 0x… as the one number in RTL
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Queues of an equal table, to name the queue too
    #[arg(long, value_name = "N")]
    pub queues: Option<u16>,
    /// With `check`: upstream, corrected, or rtl (our hash block under Verilator)
    #[arg(long, default_value = "corrected")]
    pub profile: String,
    /// One JSON object to stdout
    #[arg(long)]
    pub json: bool,
}

/// `onic xdp`.
#[derive(Args, Clone, Debug)]
#[command(disable_help_subcommand = true)]
pub struct XdpArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: XdpCommand,
}

/// What `onic xdp` does.
#[derive(Subcommand, Clone, Debug)]
pub enum XdpCommand {
    /// Programs of an object file: sections, instructions, maps, helpers, and what keeps one from being loaded
    List {
        /// Object file of clang -O2 -g -target bpf
        object: PathBuf,
        /// One JSON object to stdout
        #[arg(long)]
        json: bool,
    },
    /// Run a program on captured frames, without a card: verdicts, maps, a capture of what became of them
    Run(Box<XdpRunArgs>),
    /// Helpers and map types that programs may use here
    Helpers {
        /// One JSON object to stdout
        #[arg(long)]
        json: bool,
    },
}

/// `onic xdp run`.
#[derive(Args, Clone, Debug)]
pub struct XdpRunArgs {
    /// Object file; the program's function too if it holds several
    #[arg(value_name = "OBJ[:PROG]")]
    pub object: String,
    /// Captures, one after the other; `-` is standard input
    #[arg(required = true, num_args = 1.., value_name = "CAPTURE")]
    pub captures: Vec<String>,
    /// Write the frames as the program left them, each with its verdict (epb_verdict)
    #[arg(short, long, value_name = "FILE.pcapng")]
    pub out: Option<PathBuf>,
    /// With --out: write each frame as it came too, on interface0; as it left, on interface1
    #[arg(long, requires = "out")]
    pub before: bool,
    /// Set an entry of a map first; numbers, addresses, prefixes, hex:BYTES, program names
    #[arg(long = "map", value_name = "NAME[KEY]=VALUE")]
    pub maps: Vec<String>,
    /// Entries of a map
    #[arg(long = "map-size", value_name = "NAME=N")]
    pub map_sizes: Vec<String>,
    /// Write the maps as JSON at the end; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub dump_maps: Option<PathBuf>,
    /// The queue that frames come in on, and the CPU that looks at it
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub queue: u32,
    /// The interface that frames come in on
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub ifindex: u32,
    /// CPUs: values of per-CPU maps
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub cpus: u32,
    /// Where random numbers begin
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// One JSON object to stdout
    #[arg(long)]
    pub json: bool,
}

/// `onic regs`.
#[derive(Args, Clone, Debug)]
pub struct RegsArgs {
    /// Only registers whose name or address holds this
    pub filter: Option<String>,
    /// Walk the map on a card: reset values, access, walking ones, aliasing
    #[arg(long)]
    pub walk: bool,
    /// Read the registers on this card after bring-up
    #[arg(long, value_name = "CARD")]
    pub card: Option<String>,
    /// Shape of that card
    #[arg(long, default_value = "1x1")]
    pub shape: Shape,
    /// Seed of the walk's order
    #[arg(long, default_value = "1", value_parser = parse_seed)]
    pub seed: u64,
    /// One JSON object to stdout
    #[arg(long)]
    pub json: bool,
}

/// `onic console`.
#[derive(Args, Clone, Debug)]
pub struct ConsoleArgs {
    /// Commands, a line each; - or nothing for standard input, with line editing on a terminal. `help` lists them
    #[arg(value_name = "SCRIPT|-")]
    pub script: Option<PathBuf>,
    /// The live card: model (all Rust), hybrid (QDMA model + our shell RTL) or rtl (all RTL)
    #[arg(long, default_value = "rtl", value_name = "CARD")]
    pub card: String,
    /// Functions x ports and their limits: PFxPORTS[,queues=N,max-pkt=N,min-pkt=N,mtu=N,ring=N]
    #[arg(long, default_value = "1x1", value_name = "SHAPE")]
    pub shape: Shape,
    /// How the model behaves: corrected, or as upstream's shell ships
    #[arg(long, value_enum, default_value_t = ProfileArg::Corrected)]
    pub profile: ProfileArg,
    /// When replayed frames start, unless told otherwise: fast|line|bus|capture[:MAXGAP]|GBPS
    #[arg(long, default_value = "fast", value_name = "PACE")]
    pub pace: Pace,
    /// Stall pattern on every stream: none, random:PERCENT, bursts:MAX, every:N, between-beats
    #[arg(long, default_value = "none", value_name = "PROFILE")]
    pub stalls: String,
    /// Root seed of stalls and initial state
    #[arg(long, default_value = "1", value_parser = parse_seed, value_name = "N")]
    pub seed: u64,
    /// Driver's cost for each packet, ns of simulated time
    #[arg(long, default_value_t = 0, value_name = "NS", value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub host_ns: u64,
    /// Time-out without progress, in cycles of axis_aclk
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000_000))]
    pub hang_cycles: u64,
    /// Do not check host memory accesses
    #[arg(long)]
    pub no_memory_checks: bool,
    /// Disturb the N-th frame on its way from RTL to QDMA, as `onic replay --tap` does
    #[arg(long, value_name = "TAP")]
    pub tap: Option<String>,
    /// Switch on a fault of the RTL's fault build: 1…6 in the shell, 11…20 in the engine of card rtl
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=20))]
    pub rtl_fault: Option<u8>,
    /// A knob of card rtl, as `onic replay --set` turns it
    #[arg(long = "set", value_name = "KNOB=VALUE")]
    pub settings: Vec<String>,
    /// Go on after a line that fails; the exit code is 1 (or 2) all the same
    #[arg(long)]
    pub keep_going: bool,
    /// Print each line before what it says
    #[arg(long)]
    pub echo: bool,
}

/// `onic info`.
#[derive(Args, Clone, Debug)]
pub struct InfoArgs {
    /// One JSON object to stdout
    #[arg(long)]
    pub json: bool,
}

/// `onic bench`.
#[derive(Args, Clone, Debug)]
pub struct BenchArgs {
    /// replay, driver or line-rate
    pub name: String,
    /// replay: measure card rtl against this instead, on the same top
    #[arg(long, value_enum, value_name = "OPPONENT")]
    pub versus: Option<VersusArg>,
    /// Compare with the targets, exit 1 when one is missed
    #[arg(long)]
    pub check: bool,
    /// Under 30 s
    #[arg(long)]
    pub quick: bool,
    /// One JSON object to stdout
    #[arg(long)]
    pub json: bool,
}

/// `onic gallery`.
#[derive(Args, Clone, Debug)]
pub struct GalleryArgs {
    /// Only these faults, with their whole reports: B-01 to B-45, P-1 to P-6
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// The card: model (all Rust), hybrid (QDMA model + our shell RTL) or rtl (all RTL)
    #[arg(long, default_value = "model", value_name = "CARD")]
    pub card: String,
    /// First seed
    #[arg(long, default_value = "1", value_parser = parse_seed)]
    pub seed: u64,
    /// Seeds of each scenario that the driver must be silent on: 1000 take half a minute on model, a quarter of an hour on
    /// hybrid
    #[arg(long, default_value = "1000", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// One JSON object to stdout
    #[arg(long)]
    pub json: bool,
}

/// `onic schema`.
#[derive(Args, Clone, Debug)]
pub struct SchemaArgs {
    /// replay, gen, golden, diff, hash, regs, info or gallery
    pub command: String,
}

/// `onic rtl`.
#[derive(Args, Clone, Debug)]
pub struct RtlArgs {
    #[command(subcommand)]
    #[allow(missing_docs)]
    pub action: RtlAction,
}

/// What to do about RTL builds.
#[derive(Subcommand, Clone, Debug)]
pub enum RtlAction {
    /// Build the top of a shape now
    Build {
        /// The shape
        #[arg(long, default_value = "1x1")]
        shape: Shape,
    },
    /// Forget all cached tops
    Clean,
}

/// Who card `rtl` is measured against.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum VersusArg {
    /// Two drivers in Python, a minimal one and one on cocotbext-axi; skipped, and said so, where they can't be had
    Cocotb,
}

/// corrected or upstream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ProfileArg {
    /// As our RTL: upstream's defects corrected
    Corrected,
    /// As upstream's shell ships
    Upstream,
}

/// Which hash function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum HashArg {
    /// The card's own
    Opennic,
    /// Toeplitz as published
    Microsoft,
}

/// Short frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum RuntsArg {
    /// Zeros up to 60 bytes
    Pad,
    /// As they are; the MAC drops them
    Keep,
}

/// A seed, decimal or 0x hexadecimal.
pub fn parse_seed(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("`{text}` is no number of 64 bits, decimal or 0x hexadecimal"))
}
