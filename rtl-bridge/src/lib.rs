//! Verilator-built OpenNIC RTL, from Rust.
