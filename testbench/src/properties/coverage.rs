//! What cases reached: named counts, some with a goal.

/// One thing that was reached, or should be.
#[derive(Clone, Debug)]
struct Point {
    name: String,
    goal: u64,
    count: u64,
}

/// Counts, in the order in which they were first named.
#[derive(Clone, Debug, Default)]
pub(super) struct Coverage(Vec<Point>);

impl Coverage {
    /// Nothing reached yet; each of `goals` is to be reached so many times.
    pub(super) fn with_goals(goals: impl IntoIterator<Item = (String, u64)>) -> Coverage {
        Coverage(goals.into_iter().map(|(name, goal)| Point { name, goal, count: 0 }).collect())
    }

    /// Reached `count` more times. A name that no goal has is only counted.
    pub(super) fn add(&mut self, name: &str, count: u64) {
        match self.0.iter_mut().find(|point| point.name == name) {
            Some(point) => point.count += count,
            None => self.0.push(Point { name: name.into(), goal: 0, count }),
        }
    }

    /// A line each.
    pub(super) fn lines(&self) -> Vec<String> {
        let width = self.0.iter().map(|point| point.name.len()).max().unwrap_or(0);
        self.0
            .iter()
            .map(|Point { name, goal, count }| match goal {
                0 => format!("{name:<width$}  {count:>9}"),
                _ => format!("{name:<width$}  {count:>9} of at least {goal}"),
            })
            .collect()
    }

    /// Goals that were missed.
    pub(super) fn missing(&self) -> Vec<String> {
        let missed = self.0.iter().filter(|point| point.count < point.goal);
        missed.map(|Point { name, goal, count }| format!("{name}: {count} of at least {goal}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_missed_until_it_is_reached() {
        let mut coverage = Coverage::with_goals([("runts".into(), 2)]);
        coverage.add("runts", 1);
        coverage.add("frames", 7);
        assert_eq!(coverage.missing(), ["runts: 1 of at least 2"]);
        coverage.add("runts", 1);
        assert!(coverage.missing().is_empty());
        assert_eq!(coverage.lines()[1], "frames          7");
    }
}
