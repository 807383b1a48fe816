//! Host memory's checker at the end of a whole run: a driver and a card that are right but for one thing, what is reported,
//! and that a report is a finding, so that the command ends with 1.

use driver_core::{Direction, DmaMemory as _, Mmio as _, Platform as _};
use models::host_memory::HostMemory as _;
use regs::{Bar, FuncId, PortId};
use testbench::card::Choice;
use testbench::execute::{self, Hooks, Job};
use testbench::frames;
use testbench::run::{InFrame, Run, RunError, Setup};
use testbench::scoreboard;

const F0: FuncId = FuncId(0);

/// What is done to a machine while its queues run.
struct Plant {
    /// Before the first frame.
    first: fn(&mut Run),
    /// After the last.
    last: fn(&mut Run),
}

impl Hooks for Plant {
    fn started(&mut self, run: &mut Run) -> Result<(), RunError> {
        (self.first)(run);
        Ok(())
    }

    fn ended(&mut self, run: &mut Run) -> Result<(), RunError> {
        (self.last)(run);
        Ok(())
    }
}

fn nothing(_: &mut Run) {}

/// Twenty frames of `payload` bytes through the model. The texts of the findings of kind `memory`.
fn memory_findings(mut plant: Plant, shape: &str, payload: usize) -> Vec<String> {
    let wire: Vec<InFrame> = (0..20)
        .map(|index| {
            let data = frames::udp((index % 7) as u16, index, payload).expect("it fits");
            InFrame { port: PortId(0), index, time_ns: None, data, err: false }
        })
        .collect();
    let setup = Setup { shape: shape.parse().expect("a shape"), ..Setup::default() };
    let job = Job { card: Choice::named("model"), setup, wire: &wire, host: &[] };
    let (outcome, error) = execute::execute_with(&job, &mut plant, &mut |_| {}).expect("the model");
    assert!(error.is_none(), "{error:?}");
    let findings = scoreboard::self_check(&outcome).into_iter();
    findings.filter(|finding| finding.kind == "memory").map(|finding| finding.text).collect()
}

#[test]
fn a_run_that_is_right_has_nothing_to_report() {
    assert_eq!(memory_findings(Plant { first: nothing, last: nothing }, "1x1", 100), [""; 0]);
}

#[test]
fn a_page_that_is_forgotten_is_told_with_its_line() {
    let forget = |run: &mut Run| drop(run.bench().memory().function(F0).alloc_page());
    let found = memory_findings(Plant { first: forget, last: nothing }, "1x1", 100);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("leaked-page") && found[0].contains(file!()), "{}", found[0]);
}

#[test]
fn a_card_that_comes_too_late_is_told_who_unmapped() {
    let late = |run: &mut Run| {
        let memory = run.bench().memory();
        let dma = memory.function(F0);
        let page = dma.map(dma.alloc_page().expect("a page"), Direction::FromDevice, 0).expect("mapped");
        let addr = dma.device_addr(&page).0;
        dma.free_page(dma.unmap(page, 0));
        assert!(memory.lend().write(F0, addr, &[0; 64]).is_err());
    };
    let found = memory_findings(Plant { first: nothing, last: late }, "1x1", 100);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("dma-after-free") && found[0].contains("unmap, at"), "{}", found[0]);
}

/// `spec/driver.md` B-21: the card's table says more than the driver offers. Its own buffers are 2048 bytes behind 256.
#[test]
fn a_card_with_larger_buffers_than_the_driver_offers_leaves_them() {
    let enlarge = |run: &mut Run| {
        let function = run.bench().function(F0);
        for index in 0..16 {
            let offset = regs::qdma_csr::C2H_BUFFER_SIZE + 4 * index;
            function.mmio().write32(Bar::Qdma, offset, 4096).expect("a register");
        }
    };
    let found = memory_findings(Plant { first: enlarge, last: nothing }, "1x1,max-pkt=9600", 3_000);
    assert!(!found.is_empty() && found[0].contains("dma-outside-buffer"), "{found:?}");
    assert!(found[0].contains("the buffer is 256 to 2304"), "{}", found[0]);
    shown_in_the_walk_through(&found[0]);
}

/// Each line of the report stands in docs/debug-a-mismatch.md, but for words with digits, which change with the code.
fn shown_in_the_walk_through(report: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/debug-a-mismatch.md");
    let without_numbers = |line: &str| -> Vec<String> {
        let words = line.split_whitespace();
        words.filter(|word| !word.contains(|c: char| c.is_ascii_digit())).map(str::to_owned).collect()
    };
    let page = std::fs::read_to_string(path).expect("the page");
    let shown: Vec<_> = page.lines().map(without_numbers).collect();
    for line in report.lines() {
        assert!(shown.contains(&without_numbers(line)), "docs/debug-a-mismatch.md does not show this line: {line}");
    }
}
