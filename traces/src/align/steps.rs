//! Two sequences of keys, laid side by side.
//!
//! Close sequences get a shortest edit script (Myers, "An O(ND) difference algorithm", 1986), which finds the one lost
//! frame among a thousand equal ones' neighbours. When they are further apart than [`MAX_EDITS`], equal keys are paired by
//! occurrence and the longest rising run of pairs is kept: O(n log n) whatever the input.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

/// Edits up to which the shortest script is looked for: bounds time and memory (about 4 MB).
const MAX_EDITS: usize = 1_000;

/// One stretch of two aligned sequences.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Equal elements.
    Same(usize, usize),
    /// Elements of the first and of the second that have no partner here; one of the two may be empty.
    Gap(Range<usize>, Range<usize>),
}

/// Aligns `a` with `b`. The steps cover both, in order.
#[must_use]
pub fn align<K: Eq + Hash>(a: &[K], b: &[K]) -> Vec<Step> {
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let tail = a[head..].iter().rev().zip(b[head..].iter().rev()).take_while(|(x, y)| x == y).count();
    let (inner_a, inner_b) = (&a[head..a.len() - tail], &b[head..b.len() - tail]);
    let inner = shortest(inner_a, inner_b).unwrap_or_else(|| by_occurrence(inner_a, inner_b));
    let pairs = (0..head)
        .map(|i| (i, i))
        .chain(inner.into_iter().map(|(i, j)| (i + head, j + head)))
        .chain((0..tail).map(|i| (a.len() - tail + i, b.len() - tail + i)));
    with_gaps(pairs, a.len(), b.len())
}

fn with_gaps(pairs: impl Iterator<Item = (usize, usize)>, a_len: usize, b_len: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    let (mut next_a, mut next_b) = (0, 0);
    for (i, j) in pairs {
        if i > next_a || j > next_b {
            steps.push(Step::Gap(next_a..i, next_b..j));
        }
        steps.push(Step::Same(i, j));
        (next_a, next_b) = (i + 1, j + 1);
    }
    if next_a < a_len || next_b < b_len {
        steps.push(Step::Gap(next_a..a_len, next_b..b_len));
    }
    steps
}

/// Pairs of a longest common subsequence, or `None` if that takes more than [`MAX_EDITS`] edits.
fn shortest<K: Eq>(a: &[K], b: &[K]) -> Option<Vec<(usize, usize)>> {
    // Diagonal k = x - y is stored at k + offset; furthest[k] is the largest x reached on it.
    let max = (a.len() + b.len()).min(MAX_EDITS);
    let offset = max + 1;
    let mut furthest = vec![0usize; 2 * max + 3];
    let mut history: Vec<Vec<usize>> = Vec::new();
    for edits in 0..=max {
        history.push(furthest[offset - edits.min(offset)..=offset + edits].to_vec());
        for k in diagonals(edits) {
            let at = (offset as isize + k) as usize;
            let down = k == -(edits as isize) || (k != edits as isize && furthest[at - 1] < furthest[at + 1]);
            let mut x = if edits == 0 {
                0
            } else if down {
                furthest[at + 1]
            } else {
                furthest[at - 1] + 1
            };
            let mut y = (x as isize - k) as usize;
            // Diagonals that have left the square stay where they are; they lead nowhere.
            while x < a.len() && y < b.len() && a[x] == b[y] {
                x += 1;
                y += 1;
            }
            furthest[at] = x;
            if x >= a.len() && y >= b.len() {
                return Some(walk_back(&history, a.len(), b.len()));
            }
        }
    }
    None
}

fn diagonals(edits: usize) -> impl Iterator<Item = isize> {
    (-(edits as isize)..=edits as isize).step_by(2)
}

/// From the end to the start, one edit at a time. `history[d]` holds diagonals -d..=d as they were before edit d.
fn walk_back(history: &[Vec<usize>], a_len: usize, b_len: usize) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let (mut x, mut y) = (a_len, b_len);
    for edits in (1..history.len()).rev() {
        let before = |k: isize| history[edits][(k + edits as isize) as usize];
        let k = x as isize - y as isize;
        let down = k == -(edits as isize) || (k != edits as isize && before(k - 1) < before(k + 1));
        let (from_x, from_k) = if down { (before(k + 1), k + 1) } else { (before(k - 1), k - 1) };
        let from_y = (from_x as isize - from_k) as usize;
        let after_edit = if down { (from_x, from_y + 1) } else { (from_x + 1, from_y) };
        while x > after_edit.0 && y > after_edit.1 {
            x -= 1;
            y -= 1;
            pairs.push((x, y));
        }
        (x, y) = (from_x, from_y);
    }
    while x > 0 && y > 0 {
        x -= 1;
        y -= 1;
        pairs.push((x, y));
    }
    pairs.reverse();
    pairs
}

/// The n-th of a key in `a` with the n-th in `b`, less the pairs that cross.
fn by_occurrence<K: Eq + Hash>(a: &[K], b: &[K]) -> Vec<(usize, usize)> {
    let mut places: HashMap<&K, Vec<usize>> = HashMap::new();
    for (j, key) in b.iter().enumerate().rev() {
        places.entry(key).or_default().push(j);
    }
    let pairs: Vec<(usize, usize)> =
        a.iter().enumerate().filter_map(|(i, key)| Some((i, places.get_mut(key)?.pop()?))).collect();
    longest_rising(&pairs)
}

/// The longest subsequence of `pairs` whose second members rise.
fn longest_rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // ends[n]: index of the pair with the smallest second member that ends a rising run of n + 1.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; pairs.len()];
    for (at, pair) in pairs.iter().enumerate() {
        let run = ends.partition_point(|&end| pairs[end].1 < pair.1);
        before[at] = run.checked_sub(1).map(|shorter| ends[shorter]);
        if run == ends.len() { ends.push(at) } else { ends[run] = at }
    }
    let mut run = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(at) = next {
        run.push(pairs[at]);
        next = before[at];
    }
    run.reverse();
    run
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::Rng;

    fn same(steps: &[Step]) -> Vec<(usize, usize)> {
        steps.iter().filter_map(|step| if let Step::Same(i, j) = step { Some((*i, *j)) } else { None }).collect()
    }

    #[test]
    fn one_lost_among_equals_is_found_where_it_was() {
        assert_eq!(
            align(b"AABA", b"ABA"),
            [Step::Same(0, 0), Step::Gap(1..2, 1..1), Step::Same(2, 1), Step::Same(3, 2)]
        );
        assert_eq!(align(b"", b"xy"), [Step::Gap(0..0, 0..2)]);
        assert_eq!(align::<u8>(b"", b""), []);
    }

    /// Against the table of the textbook: the script is a shortest one, its pairs are equal and rising, nothing is left out.
    #[test]
    fn scripts_are_shortest() {
        let mut rng = Rng::new(7);
        for _ in 0..2_000 {
            let mut word = || {
                let len = rng.below(12);
                (0..len).map(|_| rng.below(3) as u8).collect::<Vec<_>>()
            };
            let (a, b) = (word(), word());
            let pairs = same(&align(&a, &b));
            assert!(pairs.iter().all(|&(i, j)| a[i] == b[j]));
            assert!(pairs.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
            assert_eq!(pairs.len(), common_length(&a, &b), "{a:?} {b:?}");
            assert!(by_occurrence(&a, &b).len() <= pairs.len());
        }
    }

    fn common_length(a: &[u8], b: &[u8]) -> usize {
        let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in 0..a.len() {
            for j in 0..b.len() {
                table[i + 1][j + 1] = if a[i] == b[j] { table[i][j] + 1 } else { table[i][j + 1].max(table[i + 1][j]) };
            }
        }
        table[a.len()][b.len()]
    }

    /// Two unlike sequences of 200,000 take the fallback; the time limit is the test's own.
    #[test]
    fn far_apart_is_still_fast() {
        let a: Vec<u64> = (0..200_000).collect();
        let b: Vec<u64> = (0..200_000).map(|n| if n % 3 == 0 { n + 1_000_000 } else { n }).collect();
        let begin = std::time::Instant::now();
        assert_eq!(same(&align(&a, &b)).len(), 133_333);
        assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
    }
}
