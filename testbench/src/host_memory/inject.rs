//! Requests for memory that fail when a test says so.

use std::ops::Range;

/// What a driver asks memory for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// A streaming page.
    Page,
    /// A coherent region.
    Coherent,
    /// A page's mapping.
    Mapping,
}

impl Request {
    /// All kinds.
    pub const ALL: [Request; 3] = [Request::Page, Request::Coherent, Request::Mapping];
}

/// Requests counted, and which of them fail.
#[derive(Default)]
pub(super) struct Inject {
    made: [u64; 3],
    fail: [Range<u64>; 3],
    /// Requests that were let fail.
    failed: u64,
    /// Pages and regions together.
    allocations: u64,
    fail_allocations: Range<u64>,
}

impl Inject {
    /// Let requests `first..first + count` of this kind fail, counted from now.
    pub(super) fn fail(&mut self, kind: Request, first: u64, count: u64) {
        self.fail[kind as usize] = ahead(self.made[kind as usize], first, count);
    }

    /// Likewise pages and regions alike.
    pub(super) fn fail_allocations(&mut self, first: u64, count: u64) {
        self.fail_allocations = ahead(self.allocations, first, count);
    }

    /// Nothing fails any more.
    pub(super) fn clear(&mut self) {
        self.fail = Default::default();
        self.fail_allocations = 0..0;
    }

    /// How many requests of this kind there were.
    pub(super) fn made(&self, kind: Request) -> u64 {
        self.made[kind as usize]
    }

    /// How many requests were let fail, of all kinds.
    pub(super) fn failed(&self) -> u64 {
        self.failed
    }

    /// Count a request. Does it fail?
    pub(super) fn fails(&mut self, kind: Request) -> bool {
        let made = &mut self.made[kind as usize];
        let mut fails = self.fail[kind as usize].contains(made);
        *made += 1;
        if kind != Request::Mapping {
            fails |= self.fail_allocations.contains(&self.allocations);
            self.allocations += 1;
        }
        self.failed += u64::from(fails);
        fails
    }
}

fn ahead(made: u64, first: u64, count: u64) -> Range<u64> {
    let first = made.saturating_add(first);
    first..first.saturating_add(count)
}
