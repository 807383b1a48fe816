//! Time, the only source of it.

/// A monotonic clock. On a simulated card `wait` is what makes time pass, so every poll loop waits through it.
pub trait Clock {
    /// Nanoseconds since some fixed moment.
    fn now(&self) -> u64;

    /// Let at least `ns` nanoseconds pass.
    fn wait(&self, ns: u64);
}
