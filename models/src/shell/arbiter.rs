//! Which function's frame goes to the QDMA next.
//!
//! Functions that ask in the same cycle form a group; groups are served in the order in which they came, and within one
//! the function that was chosen longest ago first. A function keeps the grant to its frame's last beat, stalls included.
//!
//! Source: shell.md section 11.2.

use std::collections::VecDeque;

use super::Profile;
use crate::time::Time;

pub(super) struct Arbiter {
    /// Functions of each group that still wait, one bit each, oldest group first.
    groups: VecDeque<u8>,
    /// Functions, the one chosen longest ago first.
    order: [u8; 4],
    granted: Option<u8>,
    /// When the next choice can be made.
    free_at: Time,
    /// Upstream with 3 functions: the group queue has 3 places and a pointer that counts to 4 (Q9).
    write_pointer: u8,
    loses_fourth: bool,
}

impl Arbiter {
    pub(super) fn new(functions: u8, profile: Profile) -> Arbiter {
        Arbiter {
            groups: VecDeque::with_capacity(4),
            order: [0, 1, 2, 3],
            granted: None,
            free_at: Time::ZERO,
            write_pointer: 0,
            loses_fourth: functions == 3 && profile == Profile::Upstream,
        }
    }

    /// The functions of `group` ask, in this cycle.
    pub(super) fn request(&mut self, now: Time, group: u8) {
        if group == 0 {
            return;
        }
        let queued = self.granted.is_some() || !self.groups.is_empty() || self.free_at > now;
        if self.loses_fourth && queued {
            let place = self.write_pointer;
            self.write_pointer = (self.write_pointer + 1) % 4;
            if place == 3 {
                return;
            }
        }
        self.groups.push_back(group);
    }

    /// When a choice can be made.
    pub(super) fn due(&self) -> Time {
        if self.granted.is_none() && !self.groups.is_empty() { self.free_at } else { Time::NEVER }
    }

    /// Choose. The function chosen goes to the end of the order at once.
    pub(super) fn grant(&mut self) {
        let Some(group) = self.groups.front_mut() else { return };
        let Some(at) = self.order.iter().position(|f| *group >> f & 1 == 1) else { return };
        let chosen = self.order[at];
        *group &= !(1 << chosen);
        if *group == 0 {
            self.groups.pop_front();
        }
        // A rotation by one place.
        for place in at..self.order.len() - 1 {
            self.order[place] = self.order[place + 1];
        }
        self.order[self.order.len() - 1] = chosen;
        self.granted = Some(chosen);
    }

    /// Who has the grant.
    pub(super) fn granted(&self) -> Option<usize> {
        self.granted.map(usize::from)
    }

    /// The granted frame's last beat was accepted; the next choice at `next`.
    pub(super) fn release(&mut self, next: Time) {
        self.granted = None;
        self.free_at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(arbiter: &mut Arbiter) -> Vec<u8> {
        std::iter::from_fn(|| {
            arbiter.grant();
            let granted = arbiter.granted;
            arbiter.release(Time::ZERO);
            granted
        })
        .collect()
    }

    #[test]
    fn within_a_group_the_one_chosen_longest_ago_goes_first() {
        let mut arbiter = Arbiter::new(4, Profile::Corrected);
        arbiter.request(Time::ZERO, 0b0010);
        assert_eq!(served(&mut arbiter), [1]);
        arbiter.request(Time::ZERO, 0b1111);
        assert_eq!(served(&mut arbiter), [0, 2, 3, 1]);
    }

    #[test]
    fn groups_go_in_the_order_in_which_they_came() {
        let mut arbiter = Arbiter::new(4, Profile::Corrected);
        for group in [0b1000, 0b0110, 0b0001] {
            arbiter.request(Time::ZERO, group);
        }
        assert_eq!(served(&mut arbiter), [3, 1, 2, 0]);
    }

    /// Q9: with three functions upstream loses each fourth group that has to wait. Corrected loses none.
    #[test]
    fn q9_three_functions_lose_requests_upstream() {
        let run = |profile| {
            let mut arbiter = Arbiter::new(3, profile);
            arbiter.request(Time::ZERO, 1);
            arbiter.grant();
            (0..4).for_each(|_| arbiter.request(Time::ZERO, 2));
            arbiter.release(Time::ZERO);
            served(&mut arbiter).len()
        };
        assert_eq!((run(Profile::Upstream), run(Profile::Corrected)), (3, 4));
    }
}
