//! Random programs on the running kernel and in the VM: see [`xdp_oracle::random`].
//!
//! `XDP_ORACLE_SEED` chooses other ones, `XDP_ORACLE_PROGRAMS` how many.

mod support;

use std::collections::BTreeSet;

use support::{aloud, permitted, setting};
use traces::synth::Rng;
use xdp_oracle::{Case, Failure, compare, kernel, random};

const SEED: u64 = 0x0dd5_eed5;
const PROGRAMS: u64 = 200;
const FRAMES: usize = 32;

/// The first kernel with version 4 of the instruction set.
const SINCE: kernel::Version = (6, 6);

#[test]
fn random_programs_agree() {
    let test = "random_programs_agree";
    if !permitted(test, SINCE) {
        return;
    }
    let seed = setting("XDP_ORACLE_SEED").unwrap_or(SEED);
    let programs = setting("XDP_ORACLE_PROGRAMS").unwrap_or(PROGRAMS);
    let cpu = kernel::pin().unwrap_or_else(|error| panic!("{error}"));
    let cpus = kernel::cpus().unwrap_or_else(|error| panic!("{error}"));
    let case = Case::new("random.o", "random", &[]);
    let (mut insns, mut kinds) = (0, BTreeSet::new());
    for number in 0..programs {
        let mut rng = Rng::named(seed, &format!("program {number}"));
        let code = random::code(&mut rng);
        let inputs = random::inputs(&mut rng, FRAMES);
        let run = |code: &[random::Insn]| {
            let image = random::image(code).unwrap_or_else(|error| panic!("{error}"));
            compare(&case, &image, &inputs, cpu, cpus)
        };
        if let Err(failure) = run(&code) {
            let hint = format!("XDP_ORACLE_SEED={seed:#x} XDP_ORACLE_PROGRAMS={} cargo test -p xdp-oracle", number + 1);
            let least = random::reduce(&code, |code| matches!(run(code), Err(Failure::Difference(_))));
            let failure = run(&least).err().unwrap_or(failure);
            panic!(
                "program {number}, reduced: {failure}\n{}\n\nhint: {hint} --test instructions",
                random::listing(&least)
            );
        }
        insns += code.len();
        // Code, and what tells apart those that share one: offset 1 of a division, bits of a move, kind of an atomic.
        kinds.extend(code.iter().map(|insn| match insn[0] & 7 {
            4 | 7 => (insn[0], i32::from(insn[2])),
            3 => (insn[0], i32::from(insn[4])),
            _ => (insn[0], 0),
        }));
    }
    aloud(&format!(
        "xdp-oracle: {test}: seed {seed:#x}, {programs} programs, {insns} instructions of {} kinds, {FRAMES} frames each: no difference",
        kinds.len()
    ));
}
