//! The shell through its own interfaces: wire, BAR2, and a mock of the QDMA's streams.

mod properties;
mod receive;
mod registers;
mod support;
mod transmit;
mod upstream;
