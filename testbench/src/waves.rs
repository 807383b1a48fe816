//! Waves of a run that failed: the run is made again, and the RTL recorded around the cycle that was reported.
//!
//! Beside the FST lies a GTKWave save file: signals in the order of a frame's path, stage by stage, and the marker in the
//! reported cycle, just before the edge that ends it. A byte in a report is found at the marker in the `tdata` of the last
//! stage; `byte i` of a beat is bits `8i+7:8i`.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use models::time::Time;

use crate::card::{Choice, Shape};
use crate::execute::{ExecuteError, Job, execute};
use crate::finding::Finding;
use crate::outcome::{CYCLE_PS, cycle_before};
use crate::session::{Session, Verdict};

/// Cycles of axis_aclk kept before the reported one, and after.
pub const BEFORE_CYCLES: u64 = 2_000;
/// See [`BEFORE_CYCLES`].
pub const AFTER_CYCLES: u64 = 500;

/// Waves that could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum WavesError {
    /// Neither card is RTL.
    #[error("no waves: neither card is RTL")]
    NoRtl,
    /// The card can't be had.
    #[error(transparent)]
    Card(#[from] ExecuteError),
    /// A file can't be written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What was kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// The save file for GTKWave.
    pub save_file: PathBuf,
    /// First and last cycle; without, the whole run.
    pub cycles: Option<(u64, u64)>,
}

/// Make the run again, the RTL recorded into `path`; `copy` gets the same, with a save file of its own.
///
/// # Errors
/// [`WavesError`].
pub fn keep(
    session: &Session<'_>,
    verdict: &Verdict,
    path: &Path,
    copy: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<Kept, WavesError> {
    let is_rtl = |choice: &&Choice| choice.name != "model";
    let recorded =
        Some(&session.card).filter(is_rtl).or(session.against.as_ref().filter(is_rtl)).ok_or(WavesError::NoRtl)?;
    // Reports give the cycle of the card under test.
    let of_card = std::ptr::eq(recorded, &session.card);
    let at = verdict.findings.iter().find(|finding| finding.edge.is_some()).filter(|_| of_card);
    let edge = at.and_then(|finding| finding.edge);
    let window = edge.map(window_ps);
    let mut card = recorded.clone();
    card.rtl.waves = Some(path.to_path_buf());
    card.rtl.wave_window = window;
    card.rtl.coverage = None;
    let job = Job { card, setup: session.setup.clone(), wire: session.wire, host: session.host };
    execute(&job, progress)?;
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        |source| WavesError::File { path, source }
    };
    // They may be one file; copied upon itself it would be empty.
    if fs::canonicalize(path).ok() != fs::canonicalize(copy).ok() {
        fs::copy(path, copy).map_err(failed(copy))?;
    }
    let transmit = at.is_some_and(is_at_wire);
    for fst in [path, copy] {
        let name = fst.file_name().unwrap_or(fst.as_os_str()).to_string_lossy();
        let save_file = fst.with_extension("gtkw");
        fs::write(&save_file, save_file_text(&name, scope(&job.card), &session.setup.shape, transmit, edge))
            .map_err(failed(&save_file))?;
    }
    Ok(Kept {
        save_file: path.with_extension("gtkw"),
        cycles: window.map(|(from, until)| (from / CYCLE_PS, until / CYCLE_PS)),
    })
}

fn window_ps(edge: Time) -> (u64, u64) {
    let cycle = cycle_before(edge);
    (cycle.saturating_sub(BEFORE_CYCLES) * CYCLE_PS, (cycle + AFTER_CYCLES) * CYCLE_PS)
}

/// The shell in the RTL of a card.
fn scope(card: &Choice) -> &'static str {
    if card.name == "rtl" { "onic_card.u_shell" } else { "onic_shell" }
}

/// The frame in question left at a port.
fn is_at_wire(finding: &Finding) -> bool {
    finding.difference.as_ref().is_some_and(|difference| matches!(difference.lane.point, traces::Point::Port(_)))
}

/// A signal of the shell's top module.
struct Signal {
    name: &'static str,
    /// Bits of one instance.
    bits: u32,
    per: Per,
}

/// How often a signal is there: packed side by side, with a range even if there is one.
#[derive(Clone, Copy)]
enum Per {
    Card,
    Port,
    Func,
}

const fn card(name: &'static str, bits: u32) -> Signal {
    Signal { name, bits, per: Per::Card }
}

const fn port(name: &'static str, bits: u32) -> Signal {
    Signal { name, bits, per: Per::Port }
}

const fn func(name: &'static str, bits: u32) -> Signal {
    Signal { name, bits, per: Per::Func }
}

/// A stage of the path and what is to be seen there. Names are those in `rtl/top/onic_shell.sv`.
type Stage = (&'static str, &'static [Signal]);

const RECEIVE: [Stage; 6] = [
    (
        "wire in (cmac_clk)",
        &[
            port("cmac_clk", 1),
            port("s_axis_cmac_rx_sim_tvalid", 1),
            port("s_axis_cmac_rx_sim_tlast", 1),
            port("s_axis_cmac_rx_sim_tuser_err", 1),
            port("s_axis_cmac_rx_sim_tkeep", 64),
            port("s_axis_cmac_rx_sim_tdata", 512),
        ],
    ),
    (
        "MAC and box 322 to adapter (cmac_clk)",
        &[
            port("brx_tvalid", 1),
            port("brx_tlast", 1),
            port("brx_tuser_err", 1),
            port("brx_tdata", 512),
            port("rx_room_beats", 16),
            port("mon_rx_end_valid", 1),
            port("mon_rx_end_reason", 4),
        ],
    ),
    (
        "adapter to box 250 (axis_aclk)",
        &[
            card("axis_aclk", 1),
            port("arx_tvalid", 1),
            port("arx_tready", 1),
            port("arx_tlast", 1),
            port("arx_tuser_size", 16),
            port("arx_tuser_dst", 16),
            port("arx_tdata", 512),
        ],
    ),
    (
        "box 250 to function, hash and queue",
        &[
            func("c2h_tvalid", 1),
            func("c2h_tready", 1),
            func("c2h_tlast", 1),
            func("c2h_tuser_size", 16),
            func("c2h_tdata", 512),
            func("mon_rss_valid", 1),
            func("mon_rss_hash", 32),
            func("mon_rss_entry", 16),
            func("mon_rss_drop", 1),
        ],
    ),
    (
        "C2H to the QDMA",
        &[
            card("m_axis_qdma_c2h_sim_tvalid", 1),
            card("m_axis_qdma_c2h_sim_tready", 1),
            card("m_axis_qdma_c2h_sim_tlast", 1),
            card("m_axis_qdma_c2h_sim_mty", 6),
            card("m_axis_qdma_c2h_sim_ctrl_qid", 11),
            card("m_axis_qdma_c2h_sim_ctrl_len", 16),
            card("m_axis_qdma_c2h_sim_tdata", 512),
        ],
    ),
    (
        "completions",
        &[
            card("m_axis_qdma_cpl_sim_tvalid", 1),
            card("m_axis_qdma_cpl_sim_tready", 1),
            card("m_axis_qdma_cpl_sim_ctrl_qid", 11),
            card("m_axis_qdma_cpl_sim_ctrl_wait_pld_pkt_id", 16),
            card("m_axis_qdma_cpl_sim_tdata", 512),
        ],
    ),
];

const TRANSMIT: [Stage; 4] = [
    (
        "H2C from the QDMA (axis_aclk)",
        &[
            card("axis_aclk", 1),
            card("s_axis_qdma_h2c_sim_tvalid", 1),
            card("s_axis_qdma_h2c_sim_tready", 1),
            card("s_axis_qdma_h2c_sim_tlast", 1),
            card("s_axis_qdma_h2c_sim_tuser_qid", 11),
            card("s_axis_qdma_h2c_sim_tuser_mdata", 32),
            card("s_axis_qdma_h2c_sim_tdata", 512),
            card("mon_h2c_drop_valid", 1),
        ],
    ),
    (
        "function to box 250",
        &[
            func("h2c_tvalid", 1),
            func("h2c_tready", 1),
            func("h2c_tlast", 1),
            func("h2c_tuser_size", 16),
            func("h2c_tuser_dst", 16),
            func("h2c_tdata", 512),
        ],
    ),
    (
        "box 250 to adapter",
        &[
            port("atx_tvalid", 1),
            port("atx_tready", 1),
            port("atx_tlast", 1),
            port("atx_tuser_size", 16),
            port("atx_tuser_dst", 16),
            port("atx_tdata", 512),
            port("mon_tx_end_valid", 1),
            port("mon_tx_end_reason", 4),
        ],
    ),
    (
        "wire out (cmac_clk)",
        &[
            port("cmac_clk", 1),
            port("m_axis_cmac_tx_sim_tvalid", 1),
            port("m_axis_cmac_tx_sim_tready", 1),
            port("m_axis_cmac_tx_sim_tlast", 1),
            port("m_axis_cmac_tx_sim_tuser_err", 1),
            port("m_axis_cmac_tx_sim_tkeep", 64),
            port("m_axis_cmac_tx_sim_tdata", 512),
        ],
    ),
];

/// GTKWave's flags of a line: a value in hexadecimal, a single bit, a comment.
const HEX: &str = "@22";
const BIT: &str = "@28";
const COMMENT: &str = "@200";

/// The save file, for the FST `fst` in the same folder, in which the shell is `scope`. The stages of the direction in question come first.
fn save_file_text(fst: &str, scope: &str, shape: &Shape, transmit: bool, edge: Option<Time>) -> String {
    // The marker stands within the cycle, where all that its end takes is on the pins.
    let marker = edge.map(|edge| edge.0.saturating_sub(1));
    let start = marker.map_or(0, |marker| marker.saturating_sub(100 * CYCLE_PS));
    let mut text =
        format!("[*] onic: signals in the order of the path, the marker in the reported cycle\n[dumpfile] \"{fst}\"\n");
    // Zoom 2^9 ps a pixel: about eight pixels a cycle. Then the marker, and the 26 named ones, which are not set.
    let marker = marker.map_or("-1".into(), |marker| marker.to_string());
    let _ =
        writeln!(text, "[timestart] {start}\n[size] 1800 1000\n[pos] -1 -1\n*-9.000000 {marker}{}", " -1".repeat(26));
    let (first, second): (&[Stage], &[Stage]) = if transmit { (&TRANSMIT, &RECEIVE) } else { (&RECEIVE, &TRANSMIT) };
    for (stage, signals) in first.iter().chain(second) {
        let _ = writeln!(text, "{COMMENT}\n-{stage}");
        for signal in *signals {
            let name = signal.name_in(shape);
            let flags = if name.ends_with("[0]") || !name.ends_with(']') { BIT } else { HEX };
            let _ = writeln!(text, "{flags}\n{scope}.{name}");
        }
    }
    text
}

impl Signal {
    /// As GTKWave names it in a card of this shape: with its range, unless it is one bit without.
    fn name_in(&self, shape: &Shape) -> String {
        let bits = match self.per {
            Per::Card if self.bits == 1 => return self.name.into(),
            Per::Card => self.bits,
            Per::Port => self.bits * u32::from(shape.ports),
            Per::Func => self.bits * u32::from(shape.functions),
        };
        if bits == 1 { format!("{}[0]", self.name) } else { format!("{}[{}:0]", self.name, bits - 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_around_the_cycle_that_the_edge_ends() {
        assert_eq!(window_ps(Time(4_000 * 10_001)), (8_000 * 4_000, 10_500 * 4_000));
        assert_eq!(window_ps(Time(1)), (0, 500 * 4_000));
    }

    #[test]
    fn ranges_follow_the_shape() {
        let shape = Shape { functions: 2, ports: 1, ..Shape::default() };
        let names = [card("a", 1), card("b", 11), port("c", 1), port("d", 512), func("e", 1), func("f", 16)];
        assert_eq!(
            names.map(|signal| signal.name_in(&shape)),
            ["a", "b[10:0]", "c[0]", "d[511:0]", "e[1:0]", "f[31:0]"]
        );
    }

    #[test]
    fn the_marker_stands_before_the_edge() {
        let text = save_file_text("f.fst", "onic_shell", &Shape::default(), false, Some(Time(4_000_000)));
        assert!(text.contains("\n*-9.000000 3999999 -1 -1"), "{text}");
        assert!(text.find("s_axis_cmac_rx_sim_tdata") < text.find("m_axis_qdma_c2h_sim_tdata"));
        let text = save_file_text("f.fst", "onic_shell", &Shape::default(), true, None);
        assert!(text.find("s_axis_qdma_h2c_sim_tdata") < text.find("s_axis_cmac_rx_sim_tdata"));
    }
}
