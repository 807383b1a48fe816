//! Checks of the tool itself: the register map walked over each card, the published hash vectors, the host's tools.

use anyhow::{Result, anyhow, ensure};
use driver_core::{Mmio as _, MmioError, Platform as _};
use models::rss::{self, Key, MicrosoftInput, OpennicInput};
use regs::walk::{Answer, Op, Options, Report, walk};
use regs::{Bar, FuncId, qdma, qdma_csr};

use crate::bench::Bench;
use crate::card::{Choice, Shape, qdma_config};

/// Walk the register map over a card that is fresh from reset.
///
/// # Errors
/// The card can't be had, or a register access hangs.
pub fn walk_registers(choice: &Choice, shape: &Shape, seed: u64) -> Result<Report> {
    let bench = Bench::new(choice.make(shape)?, shape.functions, true, 100_000);
    bench.reset()?;
    let platform = bench.function(FuncId(0));
    let mut options = Options::new(shape.functions, shape.ports, seed);
    options.expected = expected_of(shape);
    walk(&options, |op| match op {
        Op::Read { bar, offset } => answer(platform.mmio().read32(bar, offset).map(Answer::Data)),
        Op::Write { bar, offset, value } => {
            answer(platform.mmio().write32(bar, offset, value).map(|()| Answer::Written))
        }
    })
    .map_err(Into::into)
}

fn answer(result: Result<Answer, MmioError>) -> Result<Answer, MmioError> {
    match result {
        Err(MmioError::Bus { response: "DECERR", .. }) => Ok(Answer::DecodeError),
        Err(MmioError::Bus { .. }) => Ok(Answer::SlaveError),
        other => other,
    }
}

/// Identification registers whose value the card's shape decides. Source: qdma.md section 2.
fn expected_of(shape: &Shape) -> Vec<(Bar, u32, u32)> {
    let functions = u32::from(shape.functions);
    // Six bits for each function: a bitmap of the BARs that are the DMA's (BAR0) and the user's (BAR2).
    let per_function = |bits: u32| (0..functions).fold(0, |word, f| word | bits << (6 * f));
    let at = |offset, value| (Bar::Qdma, qdma::CSR + offset, value);
    vec![
        at(qdma_csr::PF_BARLITE_INT, per_function(1)),
        at(qdma_csr::PF_BARLITE_EXT, per_function(4)),
        at(qdma_csr::QDMA_CAP, u32::from(qdma_config(shape).num_queues)),
    ]
}

/// A published vector: source, destination, ports, then the Microsoft 4-tuple hash and OpenNIC's for TCP with the shell's
/// default key.
type PublishedVector = ([u8; 4], [u8; 4], u16, u16, u32, u32);

/// Source of the Microsoft column: "Verifying the RSS Hash Calculation"; of the OpenNIC column: upstream's RTL under
/// Verilator (case ONIC-07).
const PUBLISHED: [PublishedVector; 5] = [
    ([66, 9, 149, 187], [161, 142, 100, 80], 2794, 1766, 0x51cc_c178, 0x70a3_a741),
    ([199, 92, 111, 2], [65, 69, 140, 83], 14230, 4739, 0xc626_b0ea, 0x2dd3_f3b7),
    ([24, 19, 198, 95], [12, 22, 207, 184], 12898, 38024, 0x5c2b_394a, 0xafe6_f295),
    ([38, 27, 205, 30], [209, 142, 163, 6], 48228, 2217, 0xafc7_327f, 0x3272_a5a4),
    ([153, 39, 163, 191], [202, 188, 127, 2], 44251, 1303, 0x10e8_28a2, 0x08a6_001d),
];

/// Microsoft's key, as published.
const MICROSOFT_KEY: &str = "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa";

/// Both hash functions against what others published or measured.
///
/// # Errors
/// The first vector that disagrees.
pub fn hash_vectors() -> Result<()> {
    let published: Key = MICROSOFT_KEY.parse()?;
    for (source, destination, source_port, destination_port, toeplitz, card) in PUBLISHED {
        let input = MicrosoftInput::Ipv4Ports { source, destination, source_port, destination_port };
        let got = rss::microsoft(published.bytes(), &input);
        ensure!(got == toeplitz, "microsoft hash of {input}: {got:08x}, published {toeplitz:08x}");
        let input = OpennicInput::tuple(6, source, destination, source_port, destination_port);
        let got = rss::opennic(Key::DEFAULT.bytes(), &input);
        ensure!(got == card, "opennic hash of {input}: {got:08x}, measured {card:08x}");
    }
    Ok(())
}

/// The register walk as a check.
///
/// # Errors
/// The walk's findings.
pub fn registers_agree(choice: &Choice, shape: &Shape, seed: u64) -> Result<()> {
    let report = walk_registers(choice, shape, seed)?;
    if report.findings.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = report.findings.iter().take(10).map(ToString::to_string).collect();
    Err(anyhow!("{} findings on {}:\n  {}", report.findings.len(), choice.name, list.join("\n  ")))
}
