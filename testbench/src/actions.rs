//! Lists of actions from a seed, and how one that fails shrinks: what the differential tests of the QDMA engine and of
//! the whole card share.
//!
//! An action says what is wanted; whether it can be done is seen when its turn comes, so that any part of a list is a
//! list again: that is what makes failures shrink. Each carries a seed of its own for all that it draws.

use std::fmt;

use traces::synth::Rng;

/// One action.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Action<K> {
    /// What.
    pub kind: K,
    /// Root of what it draws.
    pub seed: u64,
}

impl<K: fmt::Debug> fmt::Debug for Action<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({:#x})", self.kind, self.seed)
    }
}

/// A list of actions on which two sides differ, as short as it could be made.
#[derive(Clone, Debug)]
pub struct Differs<K> {
    /// Which seed.
    pub seed: u64,
    /// What differs.
    pub message: String,
    /// The actions that are left.
    pub actions: Vec<Action<K>>,
    /// How many there were.
    pub of: usize,
}

impl<K: fmt::Debug> fmt::Display for Differs<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {:#x}: {}", self.seed, self.message)?;
        write!(f, "  {} of {} actions are enough:", self.actions.len(), self.of)?;
        self.actions.iter().try_for_each(|action| write!(f, " {action:?}"))
    }
}

/// Of a list of actions: what it reached, or a difference and how many actions it took.
pub type ListOutcome<T> = Result<T, (String, usize)>;

/// The actions of a run. Some kinds are off and others far up, differently in each run; `is_vital` are those without which
/// nothing moves, which are never off. `kinds` are all there are, with their weights in an even mix; `purpose` keeps the
/// lists of one test apart from those of another.
pub fn swarm<K: Copy>(
    purpose: &str,
    seed: u64,
    count: usize,
    kinds: &[(K, u32)],
    is_vital: impl Fn(K) -> bool,
) -> Vec<Action<K>> {
    let mut rng = Rng::named(seed, &format!("{purpose} weights"));
    let mut weigh = |&(kind, weight): &(K, u32)| {
        let factor = match rng.below(10) {
            0..=2 if !is_vital(kind) => 0,
            9 => 8,
            _ => 1,
        };
        (kind, factor * weight)
    };
    let weights: Vec<(K, u32)> = kinds.iter().map(&mut weigh).collect();
    let total: u32 = weights.iter().map(|(_, weight)| weight).sum();
    let mut rng = Rng::named(seed, &format!("{purpose} actions"));
    let mut draw = || {
        let kind = pick(&weights, rng.below(total.max(1).into()) as u32)?;
        Some(Action { kind, seed: rng.next_u64() })
    };
    (0..count).map_while(|_| draw()).collect()
}

/// The kind in whose share `at` lies.
fn pick<K: Copy>(weights: &[(K, u32)], mut at: u32) -> Option<K> {
    for &(kind, weight) in weights {
        if at < weight {
            return Some(kind);
        }
        at -= weight;
    }
    None
}

/// Run a list; if two sides differ on it, shrink it, at the cost of `runs` more.
///
/// # Errors
/// The list on which they differ.
pub fn run_and_shrink<K: Copy, T>(
    seed: u64,
    all: &[Action<K>],
    runs: usize,
    run: &dyn Fn(&[Action<K>]) -> ListOutcome<T>,
) -> Result<T, Box<Differs<K>>> {
    let of = all.len();
    match run(all) {
        Ok(reached) => Ok(reached),
        Err((message, 0)) => Err(Box::new(Differs { seed, message, actions: Vec::new(), of })),
        Err((message, done)) => {
            let (message, actions) = shrink(all[..done].to_vec(), message, runs, run);
            Err(Box::new(Differs { seed, message, actions, of }))
        }
    }
}

/// What kind of difference a message tells of: its first line without numbers.
fn kind_of(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    let words = first.split_whitespace().filter(|word| !word.bytes().any(|byte| byte.is_ascii_digit()));
    words.collect::<Vec<_>>().join(" ")
}

/// Leave out what is not needed for a difference of this kind: halves, then quarters, at last single actions.
fn shrink<A: Clone, T>(
    mut list: Vec<A>,
    mut message: String,
    most: usize,
    run: &dyn Fn(&[A]) -> ListOutcome<T>,
) -> (String, Vec<A>) {
    let kind = kind_of(&message);
    let mut chunk = list.len().div_ceil(2);
    let mut runs = 0;
    while chunk != 0 && runs < most {
        let mut at = 0;
        while at < list.len() && runs < most {
            let mut fewer = list.clone();
            fewer.drain(at..(at + chunk).min(list.len()));
            runs += 1;
            match run(&fewer) {
                Err((text, done)) if kind_of(&text) == kind => {
                    fewer.truncate(done);
                    (list, message) = (fewer, text);
                }
                Ok(_) | Err(_) => at += chunk,
            }
        }
        chunk = if chunk == 1 { 0 } else { chunk.div_ceil(2) };
    }
    (message, list)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [(char, u32); 3] = [('a', 10), ('b', 1), ('c', 5)];

    #[test]
    fn a_seed_gives_the_same_list_for_ever() {
        let list = |seed| swarm("test", seed, 50, &KINDS, |kind| kind == 'a');
        assert_eq!(list(7), list(7));
        assert_ne!(list(7), list(8));
        assert!((0..50).all(|seed| list(seed).iter().any(|action| action.kind == 'a')), "it is never off");
        assert!(swarm("test", 7, 50, &[] as &[(char, u32)], |_| true).is_empty());
    }

    #[test]
    fn what_is_not_needed_is_left_out() {
        let run = |list: &[u32]| match list.iter().position(|&action| action == 77) {
            Some(at) if list[..at].contains(&3) => Err((format!("differs in round {at}"), at + 1)),
            _ => Ok(()),
        };
        let (message, list) = shrink((0..100).collect(), "differs in round 77".into(), 400, &run);
        assert_eq!((message.as_str(), &list[..]), ("differs in round 1", &[3, 77][..]));
    }
}
