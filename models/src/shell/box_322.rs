//! Box 322, the user box between MAC and packet adapter, in the MAC's clock. Only the default plugin: two register
//! slices each way and placeholder registers.
//!
//! Source: shell.md sections 7 and 14.4.

/// A register read at a box-relative offset. `None`: nothing answers.
pub(super) fn read(offset: u32) -> Option<u32> {
    match offset {
        0x0000..=0x0fff => Some(0xb001 << 16 | offset),
        0x1000..=0x1fff => Some(0xd000 << 16 | offset & 0xfff),
        _ => None,
    }
}
