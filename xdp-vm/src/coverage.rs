//! Which instructions have run: asked for by whoever tests a program, with the feature `coverage`.

#[cfg(feature = "coverage")]
pub use notes::{Coverage, CoverageReport, Missed};

/// Who is told of each instruction that runs.
pub(crate) trait Watch {
    /// The instruction in this slot is about to run.
    fn at(&mut self, pc: usize);
}

/// Nobody.
impl Watch for () {
    #[inline(always)]
    fn at(&mut self, _: usize) {}
}

#[cfg(feature = "coverage")]
mod notes {
    use alloc::string::String;
    use alloc::vec;
    use alloc::vec::Vec;

    use super::Watch;
    use crate::error::SourceLine;

    /// The instructions of a VM that have run at least once. From [`Vm::coverage`](crate::Vm::coverage).
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Coverage {
        /// By slot.
        ran: Vec<bool>,
    }

    impl Coverage {
        pub(crate) fn new(slots: usize) -> Self {
            Self { ran: vec![false; slots] }
        }

        pub(crate) fn has(&self, pc: usize) -> bool {
            self.ran.get(pc).copied().unwrap_or(false)
        }
    }

    impl Watch for Coverage {
        fn at(&mut self, pc: usize) {
            // Of another VM it may be shorter.
            if let Some(ran) = self.ran.get_mut(pc) {
                *ran = true;
            }
        }
    }

    /// An instruction that did not run.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Missed {
        /// Its function.
        pub function: String,
        /// Counted from the function's first.
        pub insn: u32,
        /// Where it stands in the source.
        pub line: Option<SourceLine>,
    }

    /// What a [`Coverage`] says of its VM.
    #[derive(Clone, PartialEq, Eq, Debug, Default)]
    pub struct CoverageReport {
        /// Instructions of all functions that were loaded.
        pub insns: usize,
        /// Those that did not run, in order.
        pub missed: Vec<Missed>,
    }

    impl CoverageReport {
        /// Instructions that ran, in percent, rounded down; 100 of none.
        pub fn percent(&self) -> usize {
            let ran = self.insns - self.missed.len();
            (ran * 100).checked_div(self.insns).unwrap_or(100)
        }
    }
}
