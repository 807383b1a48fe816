//! The `onic` command.
fn main() {}
