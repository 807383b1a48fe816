//! Linux's error numbers (`include/uapi/asm-generic/errno-base.h`, `errno.h`), as programs get them, negated.

pub(crate) const PERMISSION: i64 = 1;
pub(crate) const NO_ENTRY: i64 = 2;
pub(crate) const TOO_BIG: i64 = 7;
pub(crate) const AGAIN: i64 = 11;
pub(crate) const ACCESS: i64 = 13;
pub(crate) const FAULT: i64 = 14;
pub(crate) const EXISTS: i64 = 17;
pub(crate) const NO_DEVICE: i64 = 19;
pub(crate) const INVALID: i64 = 22;
pub(crate) const NO_SPACE: i64 = 28;
pub(crate) const UNSUPPORTED: i64 = 95;
pub(crate) const FAMILY: i64 = 97;
