//! A list of a fixed length that shrinks to ever fewer elements: halves first, then quarters, at last single ones; then
//! the elements that are left shrink by themselves. proptest's own vectors keep their least length, and leave out one
//! by one.

use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// `count` values of `element`.
pub(super) fn shrinking<S: Strategy>(element: S, count: usize) -> Shrinking<S> {
    Shrinking { element, count }
}

#[derive(Clone, Debug)]
pub(super) struct Shrinking<S> {
    element: S,
    count: usize,
}

impl<S: Strategy> Strategy for Shrinking<S> {
    type Tree = ListTree<S::Tree>;
    type Value = Vec<S::Value>;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let elements: Vec<S::Tree> =
            (0..self.count).map(|_| self.element.new_tree(runner)).collect::<Result<_, _>>()?;
        let kept = (0..elements.len()).collect();
        Ok(ListTree { elements, kept, next: Step::LeaveOut { at: 0, count: self.count.div_ceil(2) }, last: None })
    }
}

#[derive(Clone, Debug)]
pub(super) struct ListTree<T> {
    elements: Vec<T>,
    /// Indices of elements that are still in, rising.
    kept: Vec<usize>,
    next: Step,
    last: Option<Undo>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Leave out `count` kept ones from the `at`-th on.
    LeaveOut { at: usize, count: usize },
    /// Shrink the `at`-th kept one.
    Shrink { at: usize },
}

#[derive(Clone, Debug)]
enum Undo {
    /// These were left out before the `at`-th.
    LeftOut { at: usize, indices: Vec<usize> },
    /// This one was shrunk.
    Shrunk { index: usize },
}

impl<T: ValueTree> ValueTree for ListTree<T> {
    type Value = Vec<T::Value>;

    fn current(&self) -> Vec<T::Value> {
        self.kept.iter().map(|&index| self.elements[index].current()).collect()
    }

    fn simplify(&mut self) -> bool {
        loop {
            match self.next {
                Step::LeaveOut { at, count } if at < self.kept.len() => {
                    let indices = self.kept.drain(at..(at + count).min(self.kept.len())).collect();
                    self.last = Some(Undo::LeftOut { at, indices });
                    return true;
                }
                Step::LeaveOut { count: 0 | 1, .. } => self.next = Step::Shrink { at: 0 },
                Step::LeaveOut { count, .. } => self.next = Step::LeaveOut { at: 0, count: count.div_ceil(2) },
                Step::Shrink { at } => {
                    let Some(&index) = self.kept.get(at) else { return false };
                    if self.elements[index].simplify() {
                        self.last = Some(Undo::Shrunk { index });
                        return true;
                    }
                    self.next = Step::Shrink { at: at + 1 };
                }
            }
        }
    }

    fn complicate(&mut self) -> bool {
        match self.last.take() {
            None => false,
            Some(Undo::LeftOut { at, indices }) => {
                let count = indices.len();
                self.kept.splice(at..at, indices);
                if let Step::LeaveOut { count: step, .. } = self.next {
                    self.next = Step::LeaveOut { at: at + count, count: step };
                }
                true
            }
            Some(Undo::Shrunk { index }) => {
                let back = self.elements[index].complicate();
                self.last = back.then_some(Undo::Shrunk { index });
                back
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestError};

    use super::*;

    #[test]
    fn only_what_is_needed_is_left() {
        let config = Config { failure_persistence: None, max_shrink_iters: 600, ..Config::default() };
        let mut runner =
            TestRunner::new_with_rng(config, proptest::test_runner::TestRng::deterministic_rng(Default::default()));
        let result = runner.run(&shrinking(0u32..1_000, 100), |list| {
            let high: Vec<_> = list.iter().filter(|&&value| value >= 500).collect();
            if high.len() >= 3 { Err(TestCaseError::fail("three")) } else { Ok(()) }
        });
        let Err(TestError::Fail(_, least)) = result else { panic!("it fails") };
        assert_eq!(least, [500, 500, 500]);
    }
}
