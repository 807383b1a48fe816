//! MSI-X vectors of one function.

/// Index into the function's MSI-X table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Vector(pub u16);

/// A vector that the platform cannot give.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InterruptError {
    /// The function has fewer vectors.
    #[error("vector {vector} of {count}: the function has no such vector")]
    NoSuchVector {
        /// What was asked for.
        vector: u16,
        /// How many there are.
        count: u16,
    },
}

/// Mask and pending bits of one function's vectors. They live here, in front of the card: a card only emits.
pub trait Interrupts {
    /// How many vectors the function was granted.
    fn count(&self) -> u16;

    /// Unmask a vector. One that became pending while masked is taken at the next [`Interrupts::take`].
    ///
    /// # Errors
    /// [`InterruptError::NoSuchVector`].
    fn enable(&self, vector: Vector) -> Result<(), InterruptError>;

    /// Mask a vector: it may become pending but is not taken.
    ///
    /// # Errors
    /// [`InterruptError::NoSuchVector`].
    fn disable(&self, vector: Vector) -> Result<(), InterruptError>;

    /// The lowest unmasked pending vector, and clear its pending bit.
    fn take(&self) -> Option<Vector>;
}
