//! Which simulation this thread evaluated last.
//!
//! Verilator's runtime keeps a pointer to the thread's context in thread-local storage, of which each shared object has its
//! own: setting it costs a call, for each evaluation. It is set already where a thread evaluates the same top again and
//! has called nothing else in between.

use std::cell::Cell;

thread_local! {
    /// Its id; none has 0.
    static LAST: Cell<u32> = const { Cell::new(0) };
}

/// This simulation is about to be evaluated: must its context be set first?
#[inline]
pub(super) fn enter(id: u32) -> bool {
    LAST.replace(id) != id
}

/// Another call is about to set a context.
pub(super) fn forget() {
    LAST.set(0);
}
