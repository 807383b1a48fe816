//! Card `rtl` against two drivers of the same top in Python, on cocotb: testbench/benches/cocotb.
//!
//! All three take the same frames of 60 bytes in at the wire and out of the rings in host memory, of `onic_card` 1x1 with
//! 8 queues under one Verilator. Time counts from the first frame at the wire to the last one out of a ring; bring-up and
//! the start of Python are left out, and so is the check that every frame came with its bytes, which each of them makes.
//!
//! Python's packages, pinned by hash, go to `.tools/cocotb`. Where they can't be had nothing is measured, and that is said.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail, ensure};
use driver_core::{Mmio as _, Platform as _};
use models::observation::Observation;
use models::time::Time;
use regs::{Bar, FuncId, PortId};
use rtl_bridge::tops::{self, ShellShape, TopSpec};

use super::{median, setup, traffic};
use crate::card::{Choice, Fetch, Knobs, WireFrame};
use crate::run::{InFrame, Run, Sink};

/// Length of every frame, FCS left out.
pub const LEN_BYTES: usize = 60;
/// Runs of card `rtl` for each one of the opponents: they are short.
pub const RTL_RUNS: usize = 3;

/// Who drives the card in Python.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opponent {
    /// Plain signal accesses, written by hand.
    Minimal,
    /// Built on cocotbext-axi.
    Axi,
}

impl Opponent {
    /// Both.
    pub const ALL: [Opponent; 2] = [Opponent::Minimal, Opponent::Axi];

    /// As opponents.py calls it.
    const fn module(self) -> &'static str {
        match self {
            Opponent::Minimal => "minimal",
            Opponent::Axi => "axi",
        }
    }

    /// In reports.
    pub const fn name(self) -> &'static str {
        match self {
            Opponent::Minimal => "cocotb, minimal",
            Opponent::Axi => "cocotb, cocotbext-axi",
        }
    }
}

/// One run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Wall time.
    pub seconds: f64,
    /// Cycles of axis_aclk in it.
    pub cycles: u64,
}

/// What one turn of all three took.
#[derive(Clone, PartialEq, Debug)]
pub struct Round {
    /// Card `rtl`, host memory checks off, several times.
    pub rtl: Vec<Sample>,
    /// The same with checks, as `onic replay` has them.
    pub checked: Sample,
    /// Each of [`Opponent::ALL`].
    pub opponents: [Sample; 2],
}

impl Round {
    /// Median of the round's runs of card `rtl`, seconds.
    pub fn rtl_seconds(&self) -> f64 {
        median(&self.rtl.iter().map(|sample| sample.seconds).collect::<Vec<_>>())
    }

    /// How many times as long an opponent takes.
    pub fn ratio(&self, opponent: Opponent) -> f64 {
        self.opponents[opponent as usize].seconds / self.rtl_seconds()
    }
}

/// Why there are no opponents.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// Something is missing that nobody needs for anything else. Said, and no error.
    #[error("{0}")]
    Skipped(String),
    /// They should run and don't.
    #[error(transparent)]
    Failed(#[from] anyhow::Error),
}

/// Python with its packages, and the card built for it.
pub struct Opponents {
    python: Python,
    program: PathBuf,
    /// Stimulus and figures of the runs.
    folder: PathBuf,
}

impl Opponents {
    /// Bring Python's packages and the model, if they are not there yet. What takes long is said on stderr.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub fn bring() -> Result<Opponents, Unavailable> {
        let tools = workspace().join(".tools/cocotb");
        let python = Python::bring(&tools)?;
        let program = build(&python)?;
        let folder = tools.join(format!("run-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(Opponents { python, program, folder })
    }

    /// Let all three run, taking turns, `rounds` times with `frames` frames. `progress` is told how many runs are done and
    /// how many there will be.
    ///
    /// # Errors
    /// A run failed, or lost a frame.
    pub fn measure(&self, frames: usize, rounds: usize, mut progress: impl FnMut(u64, u64)) -> Result<Vec<Round>> {
        let wire = traffic(LEN_BYTES, frames);
        let stimulus = self.folder.join("frames");
        fs::write(&stimulus, stimulus_of(&wire)).with_context(|| stimulus.display().to_string())?;
        let total = ((RTL_RUNS + 1 + Opponent::ALL.len()) * rounds) as u64;
        let mut done = 0;
        let mut counted = |sample: Result<Sample>| {
            done += 1;
            progress(done, total);
            sample
        };
        let mut measured = Vec::new();
        for _ in 0..rounds {
            let mut opponents = [Sample { seconds: f64::NAN, cycles: 0 }; 2];
            let mut rtl = Vec::new();
            for _ in 0..RTL_RUNS {
                rtl.push(counted(run_rtl(&wire, false))?);
            }
            let checked = counted(run_rtl(&wire, true))?;
            for opponent in Opponent::ALL {
                opponents[opponent as usize] = counted(self.run(opponent, &stimulus, frames))?;
            }
            measured.push(Round { rtl, checked, opponents });
        }
        Ok(measured)
    }

    fn run(&self, opponent: Opponent, stimulus: &Path, frames: usize) -> Result<Sample> {
        let figures = self.folder.join("figures.json");
        let mut command = self.python.script(&["run", opponent.module()]);
        command.arg(&self.program).arg(stimulus).arg(&figures);
        run(&mut command).with_context(|| opponent.name())?;
        let text = fs::read_to_string(&figures).with_context(|| figures.display().to_string())?;
        parse_figures(&text, frames).with_context(|| format!("{}: {text}", opponent.name()))
    }
}

impl Drop for Opponents {
    fn drop(&mut self) {
        // Only tidiness is lost when this fails.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The workspace: run-time builds need the checkout that the program was built from, and so do these.
fn workspace() -> &'static Path {
    let rtl = tops::crate_dir();
    rtl.parent().unwrap_or(rtl)
}

/// A Python with the pinned packages.
struct Python {
    packages: PathBuf,
    scripts: PathBuf,
}

impl Python {
    /// Packages in a folder of their own for each Python and each set of pins.
    fn bring(tools: &Path) -> Result<Python, Unavailable> {
        let scripts = workspace().join("testbench/benches/cocotb");
        let pins = scripts.join("requirements.txt");
        let tag = python_tag()?;
        let python = Python { packages: tools.join(tag), scripts };
        let wanted = fs::read_to_string(&pins).with_context(|| pins.display().to_string())?;
        let stamp = python.packages.join("requirements.txt");
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return python.checked();
        }
        if std::env::var_os("ONIC_OFFLINE").is_some_and(|offline| offline == "1") {
            let why = "cocotb is not in .tools/cocotb, and --offline forbids to fetch it";
            return Err(Unavailable::Skipped(why.into()));
        }
        eprintln!("cocotb: installing Python packages into .tools/cocotb");
        if python.packages.exists() {
            fs::remove_dir_all(&python.packages).with_context(|| python.packages.display().to_string())?;
        }
        install(&pins, tools, &python.packages)?;
        // Last, so that an installation that broke off is not taken for a whole one.
        fs::write(&stamp, wanted).with_context(|| stamp.display().to_string())?;
        python.checked()
    }

    /// If the packages can run at all.
    fn checked(self) -> Result<Python, Unavailable> {
        let output = self.script(&["check"]).output().context("python3")?;
        if output.status.success() { Ok(self) } else { Err(skipped("cocotb can't run here", &output)) }
    }

    /// opponents.py with arguments.
    fn script(&self, args: &[&str]) -> Command {
        let mut command = Command::new("python3");
        // No bytecode beside the sources.
        command.arg("-B").arg(self.scripts.join("opponents.py")).args(args);
        command.env("PYTHONPATH", &self.packages).stdin(Stdio::null());
        command
    }
}

/// Implementation and version, as wheels are named by it.
fn python_tag() -> Result<String, Unavailable> {
    let output = Command::new("python3")
        .args(["-c", "import sys, platform; print(sys.implementation.cache_tag, platform.machine(), sep='-')"])
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).trim().to_string()),
        Ok(output) => Err(skipped("python3 does not start", &output)),
        Err(error) => Err(Unavailable::Skipped(format!("python3 does not start: {error}"))),
    }
}

/// Install the pins by the system's pip, or where there is none by that of a private environment.
fn install(pins: &Path, tools: &Path, packages: &Path) -> Result<(), Unavailable> {
    let output = |command: &mut Command| command.stdin(Stdio::null()).output().context("python3");
    let has_pip = output(Command::new("python3").args(["-m", "pip", "--version"]))?.status.success();
    let python = if has_pip {
        PathBuf::from("python3")
    } else {
        let environment = tools.join("venv");
        let made = output(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        if !made.status.success() {
            let why = "python3 has neither pip nor venv (Debian's packages are python3-pip and python3-venv)";
            return Err(Unavailable::Skipped(why.into()));
        }
        environment.join("bin/python")
    };
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", "--no-deps"]);
    pip.args(["--require-hashes", "--only-binary", ":all:", "--target"]).arg(packages).arg("-r").arg(pins);
    let installed = output(pip.env("PIP_ROOT_USER_ACTION", "ignore"))?;
    if installed.status.success() { Ok(()) } else { Err(skipped("pip can't install cocotb", &installed)) }
}

/// What a program said last is why.
fn skipped(what: &str, output: &Output) -> Unavailable {
    Unavailable::Skipped(format!("{what}: {}", last_line(&output.stderr)))
}

fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it says nothing").to_string()
}

/// The top that card `rtl` has, for cocotb: where its simulator is.
fn build(python: &Python) -> Result<PathBuf> {
    let toolchain = tops::toolchain()?;
    let mut command = python.script(&["build", "--cxx", &toolchain.cxx]);
    command.arg("--verilator").arg(&toolchain.verilator_root).arg("--models").arg(tops::cache_dir());
    for (name, value) in TopSpec::card(tops::crate_dir(), &ShellShape::default()).parameters {
        command.arg("--parameter").arg(format!("{name}={value}"));
    }
    // Its steps go to stderr as they are done.
    let output = command.stderr(Stdio::inherit()).output().context("python3")?;
    ensure!(output.status.success(), "the card could not be built for cocotb");
    Ok(PathBuf::from(String::from_utf8(output.stdout).context("the model's path")?.trim_end()))
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().context("python3")?;
    if output.status.success() {
        return Ok(());
    }
    bail!("{}", String::from_utf8_lossy(&output.stderr).trim_end())
}

/// Of each frame its length, 2 bytes little endian, and its bytes: what card.py reads.
fn stimulus_of(wire: &[InFrame]) -> Vec<u8> {
    wire.iter()
        .flat_map(|frame| (frame.data.len() as u16).to_le_bytes().into_iter().chain(frame.data.clone()))
        .collect()
}

/// What card.py writes once every frame has come.
fn parse_figures(text: &str, frames: usize) -> Result<Sample> {
    let json: serde_json::Value = serde_json::from_str(text)?;
    let packets = json["packets"].as_u64();
    ensure!(packets == Some(frames as u64), "{packets:?} of {frames} frames came through");
    let (seconds, cycles) = (json["seconds"].as_f64(), json["cycles"].as_u64());
    let (seconds, cycles) = seconds.zip(cycles).context("no figures")?;
    ensure!(seconds > 0.0, "it took no time");
    Ok(Sample { seconds, cycles })
}

/// One run of card `rtl` with driver-core: as far ahead as the line needs, reads answered in order after 250 cycles, as
/// the opponents do it.
///
/// # Errors
/// The card could not be made or stopped, or a frame is missing or changed.
pub fn run_rtl(wire: &[InFrame], check_memory: bool) -> Result<Sample> {
    let setup = setup(check_memory);
    let mut choice = Choice::named("rtl");
    choice.rtl.knobs = Knobs { fetch: Fetch::Wire, spread_cycles: 0, reorder: false, ..Knobs::default() };
    let mut card = choice.make(&setup.shape)?;
    card.observe(false);
    let mut run = Run::start(card, &setup)?;
    // The driver asks for 8 descriptors kept ready for each queue, as the vendor's PMD does; with 0 the pins decide.
    run.bench().function(FuncId(0)).mmio().write32(Bar::Qdma, regs::qdma_csr::C2H_PREFETCH_CFG_2, 0)?;
    let mut arrived = Arrived::new(wire);
    let (began, began_at) = (Instant::now(), run.bench().now());
    run.replay(&mut wire.iter(), &mut [].iter(), &mut arrived)?;
    run.finish()?;
    let (last, last_at) = arrived.last.context("not all frames came through")?;
    arrived.check(wire)?;
    Ok(Sample {
        seconds: (last - began).as_secs_f64(),
        cycles: (last_at.0 - began_at.0) / models::time::Clock::AXIS.num,
    })
}

/// Frames as they came out of the rings, copied as the opponents do.
struct Arrived {
    bytes: Vec<u8>,
    /// Where each frame ends in them.
    ends: Vec<usize>,
    expected: usize,
    /// When the last one came.
    last: Option<(Instant, Time)>,
}

impl Arrived {
    fn new(wire: &[InFrame]) -> Arrived {
        let bytes = wire.iter().map(|frame| frame.data.len()).sum();
        Arrived {
            bytes: Vec::with_capacity(bytes),
            ends: Vec::with_capacity(wire.len()),
            expected: wire.len(),
            last: None,
        }
    }

    /// Every frame must have come, with its own bytes.
    fn check(&self, wire: &[InFrame]) -> Result<()> {
        let mut begin = 0;
        let mut got: Vec<&[u8]> = Vec::with_capacity(self.ends.len());
        for &end in &self.ends {
            got.push(&self.bytes[begin..end]);
            begin = end;
        }
        let mut sent: Vec<&[u8]> = wire.iter().map(|frame| &frame.data[..]).collect();
        got.sort_unstable();
        sent.sort_unstable();
        ensure!(got.len() == sent.len(), "{} of {} frames came through", got.len(), sent.len());
        if got == sent { Ok(()) } else { Err(anyhow!("frames came through with other bytes")) }
    }
}

impl Sink for Arrived {
    fn delivered(&mut self, _: FuncId, _: u16, time: Time, segments: &mut dyn Iterator<Item = &[u8]>) {
        segments.for_each(|segment| self.bytes.extend_from_slice(segment));
        self.ends.push(self.bytes.len());
        if self.ends.len() == self.expected {
            self.last = Some((Instant::now(), time));
        }
    }

    fn sent(&mut self, _: PortId, frame: WireFrame) -> Option<Vec<u8>> {
        Some(frame.data)
    }

    fn observed(&mut self, _: Observation) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(seconds: f64) -> Sample {
        Sample { seconds, cycles: 1 }
    }

    #[test]
    fn a_ratio_is_of_one_round() {
        let round = Round {
            rtl: vec![sample(0.5), sample(0.1), sample(0.2)],
            checked: sample(0.3),
            opponents: [sample(4.0), sample(30.0)],
        };
        assert_eq!((round.ratio(Opponent::Minimal), round.ratio(Opponent::Axi)), (20.0, 150.0));
    }

    #[test]
    fn frames_have_their_length_before_them() {
        let wire = traffic(LEN_BYTES, 2);
        let stimulus = stimulus_of(&wire);
        assert_eq!(stimulus.len(), 2 * (2 + LEN_BYTES));
        assert_eq!((&stimulus[..2], &stimulus[2..62]), (&[60, 0][..], &wire[0].data[..]));
    }

    #[test]
    fn figures_of_fewer_frames_are_none() {
        let text = r#"{"packets": 3, "seconds": 0.5, "cycles": 9}"#;
        assert_eq!(parse_figures(text, 3).expect("figures"), Sample { seconds: 0.5, cycles: 9 });
        assert!(parse_figures(text, 4).is_err());
        assert!(parse_figures(r#"{"packets": 3, "seconds": 0.0, "cycles": 9}"#, 3).is_err());
        assert!(parse_figures("{", 3).is_err());
    }

    #[test]
    fn a_frame_that_came_twice_or_changed_is_found() {
        let wire = traffic(LEN_BYTES, 3);
        let came = |order: &[usize]| {
            let mut arrived = Arrived::new(&wire);
            for &at in order {
                arrived.delivered(
                    FuncId(0),
                    0,
                    Time::ZERO,
                    &mut [&wire[at].data[..20], &wire[at].data[20..]].into_iter(),
                );
            }
            arrived
        };
        assert!(came(&[2, 0, 1]).check(&wire).is_ok() && came(&[2, 0, 1]).last.is_some());
        assert!(came(&[2, 0, 0]).check(&wire).is_err());
        assert!(came(&[2, 0]).check(&wire).is_err() && came(&[2, 0]).last.is_none());
        let mut changed = came(&[0, 1, 2]);
        changed.bytes[100] ^= 1;
        assert!(changed.check(&wire).is_err());
    }

    #[test]
    fn the_last_thing_said_is_why() {
        assert_eq!(last_line(b"one\nERROR: no such wheel\n\n"), "ERROR: no such wheel");
        assert_eq!(last_line(b""), "it says nothing");
    }
}
