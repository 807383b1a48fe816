//! What a program costs: `cargo test -p xdp-vm --release --test speed -- --ignored --nocapture`.

use std::time::Instant;

use xdp_vm::{Loader, RxMeta, XdpBuff, XdpObject};

/// Short, so that some of them are not disturbed by whatever else the machine does.
const ROUNDS: u32 = 1_000;
const REPEATS: u32 = 1_000;

#[test]
#[ignore = "a measurement, for a quiet machine"]
fn nanoseconds_for_each_frame() {
    for (name, program, file) in [
        ("drop.o", "drop", &include_bytes!("../programs/drop.o")[..]),
        ("count.o", "count", include_bytes!("../programs/count.o")),
        ("macswap.o", "macswap", include_bytes!("../programs/macswap.o")),
        ("filter.o", "filter", include_bytes!("../programs/filter.o")),
        ("rewrite.o", "rewrite", include_bytes!("../programs/rewrite.o")),
        ("vlan.o", "push", include_bytes!("../programs/vlan.o")),
        ("sum.o", "sum", include_bytes!("../programs/sum.o")),
    ] {
        let object = XdpObject::parse(name, file).unwrap();
        let mut vm = Loader::new().program(program).load(&object).unwrap();
        let mut page = vec![0; 4096];
        page[268..270].copy_from_slice(&[8, 0]);
        page[270] = 0x45;
        page[279] = 17;
        let mut insns = 0;
        let best = (0..REPEATS).map(|_| {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                let mut buff = XdpBuff::new(&mut page, 256, 60).unwrap();
                insns = vm.run(&mut buff, &RxMeta::default()).insns;
            }
            start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
        });
        let best = best.fold(f64::MAX, f64::min);
        println!("{program:8} {best:7.1} ns, {insns:4} instructions, {:.2} ns each", best / insns as f64);
    }
}
