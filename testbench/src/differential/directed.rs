//! Directed checks, for any engine: rules that random actions meet too seldom, or whose outcome they can't pin down.
//!
//! Each takes an engine just out of power-up and says what is wrong with it, as the acceptance checks of [`super::golden`].

use regs::{Qid, qdma_csr as csr};

use super::bed::{Bed, F0};
use super::campaign::Maker;
use super::golden::{Check, expect, programmed, sound};

/// All of them.
pub const DIRECTED: [Check; 1] = [Check { name: "directed-fault-meets-clear", run: fault_meets_clear }];

/// Longer than anything takes that a check here does not wait for by itself, ns.
const LONG_NS: u64 = 10_000;

/// One cycle of the engine's clock, ns.
const CYCLE_NS: u64 = 4;

/// A fault that comes while its status is being cleared counts as later: status and log tell of it, and of it alone.
fn fault_meets_clear(make: Maker<'_>) -> Result<String, String> {
    use csr::c2h_first_error_qid as log;
    // No such queue runs: their completions are faults.
    const EARLIER: Qid = Qid(9);
    const LATER: Qid = Qid(10);
    let mut bench = programmed(make)?;
    let (mut before, mut after) = (0, 0);
    for cycles in 0..150 {
        bench.receive(EARLIER, &[1; 60], Some(EARLIER));
        bench.run_ns(LONG_NS);
        expect("the first fault's queue", log::QID.get(bench.read(F0, csr::C2H_FIRST_ERROR_QID)), EARLIER.0.into())?;
        bench.receive(LATER, &[1; 60], Some(LATER));
        bench.run_ns(CYCLE_NS * cycles);
        bench.write(F0, csr::C2H_ERROR_STATUS, u32::MAX);
        bench.run_ns(LONG_NS);
        let status = bench.read(F0, csr::C2H_ERROR_STATUS);
        let logged = log::QID.get(bench.read(F0, csr::C2H_FIRST_ERROR_QID));
        let want = if status == 0 { 0 } else { LATER.0.into() };
        expect(&format!("the queue in the log, status {status:#x}, {cycles} cycles on"), logged, want)?;
        if status == 0 { before += 1 } else { after += 1 }
        bench.write(F0, csr::C2H_ERROR_STATUS, u32::MAX);
    }
    expect("a fault comes before the write, and after", before != 0 && after != 0, true)?;
    sound(&mut bench)?;
    Ok(format!("of 150 writes {before} came after the fault, {after} before it or with it"))
}

#[cfg(test)]
mod tests {
    use super::super::makers::model;
    use super::*;

    #[test]
    fn the_model_passes_all() {
        for check in &DIRECTED {
            let seen = (check.run)(&model).unwrap_or_else(|text| panic!("{}: {text}", check.name));
            println!("{}: {seen}", check.name);
        }
    }
}
