//! The model and its driver for some seconds, for a profiler.
fn main() {
    let setup = testbench::benchmark::setup(false);
    let len = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(60);
    for _ in 0..std::env::args().nth(3).and_then(|a| a.parse().ok()).unwrap_or(5) {
        println!(
            "{:?}",
            testbench::benchmark::model_steady(
                &setup,
                testbench::benchmark::Way::Receive,
                len,
                std::env::args().nth(2).and_then(|a| a.parse().ok()).unwrap_or(500_000)
            )
        );
    }
}
