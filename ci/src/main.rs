//! Checks: `cargo run -p ci -- STEP`.
fn main() {}
