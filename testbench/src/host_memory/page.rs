//! Pages, and parts of them. Their bytes lie in the [arena](super::arena).

use std::ops::Range;

/// Bytes in a streaming page.
pub const PAGE_SIZE: usize = 4096;

/// A range of a page's bytes.
///
/// # Invariants
/// `start <= end <= PAGE_SIZE`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Part {
    pub(super) start: u16,
    pub(super) end: u16,
}

impl Part {
    pub(super) const WHOLE: Part = Part { start: 0, end: PAGE_SIZE as u16 };
    pub(super) const EMPTY: Part = Part { start: 0, end: 0 };

    pub(super) fn len(self) -> usize {
        usize::from(self.end - self.start)
    }

    pub(super) fn is_empty(self) -> bool {
        self.start == self.end
    }

    pub(super) fn range(self) -> Range<usize> {
        usize::from(self.start)..usize::from(self.end)
    }

    /// `offset` and `len_bytes` counted from this part's first byte, as a part of the page, cut off at this one's end.
    pub(super) fn within(self, offset: usize, len_bytes: usize) -> Part {
        let at = |offset: usize| usize::from(self.start).saturating_add(offset).min(usize::from(self.end)) as u16;
        Part { start: at(offset), end: at(offset.saturating_add(len_bytes)) }
    }

    /// Does `offset + len_bytes`, counted from this part's first byte, stay in it?
    pub(super) fn fits(self, offset: usize, len_bytes: usize) -> bool {
        offset.checked_add(len_bytes).is_some_and(|end| end <= self.len())
    }

    pub(super) fn contains(self, other: Part) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    pub(super) fn overlap(self, other: Part) -> Part {
        let start = self.start.max(other.start);
        Part { start, end: self.end.min(other.end).max(start) }
    }

    /// The least part that holds both.
    pub(super) fn hull(self, other: Part) -> Part {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => Part { start: self.start.min(other.start), end: self.end.max(other.end) },
        }
    }

    /// What of this part lies before `other`, and what behind it.
    pub(super) fn without(self, other: Part) -> [Part; 2] {
        if other.is_empty() {
            return [self, Part::EMPTY];
        }
        let before = Part { start: self.start, end: other.start.clamp(self.start, self.end) };
        let behind = Part { start: other.end.clamp(self.start, self.end), end: self.end };
        [before, behind]
    }

    /// The least part of this one in which two pages differ; empty if they agree.
    pub(super) fn difference(self, a: &[u8], b: &[u8]) -> Part {
        let (a, b) = (&a[self.range()], &b[self.range()]);
        if a == b {
            return Part::EMPTY;
        }
        let differs = |(a, b): (&u8, &u8)| a != b;
        let first = a.iter().zip(b).position(differs).unwrap_or(0) as u16;
        let last = a.iter().zip(b).rposition(differs).unwrap_or(0) as u16;
        Part { start: self.start + first, end: self.start + last + 1 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part() -> impl Strategy<Value = Part> {
        (0..64u16, 0..64u16).prop_map(|(a, b)| Part { start: a.min(b), end: a.max(b) })
    }

    fn bytes(part: Part) -> Vec<usize> {
        part.range().collect()
    }

    proptest! {
        /// Against sets of byte numbers.
        #[test]
        fn parts_are_sets_of_bytes(a in part(), b in part()) {
            let both: Vec<_> = bytes(a).into_iter().filter(|i| bytes(b).contains(i)).collect();
            prop_assert_eq!(bytes(a.overlap(b)), both);
            let rest: Vec<_> = bytes(a).into_iter().filter(|i| !bytes(b).contains(i)).collect();
            let [before, behind] = a.without(b);
            let mut found = bytes(before);
            found.extend(bytes(behind));
            prop_assert_eq!(found, rest);
            prop_assert!(bytes(a).iter().chain(&bytes(b)).all(|i| a.hull(b).range().contains(i)));
        }
    }

    #[test]
    fn a_difference_is_as_small_as_can_be() {
        let (a, mut b) = ([0; 16], [0; 16]);
        b[5] = 1;
        b[9] = 1;
        assert_eq!(Part { start: 2, end: 16 }.difference(&a, &b), Part { start: 5, end: 10 });
        assert!(Part { start: 10, end: 16 }.difference(&a, &b).is_empty());
    }
}
