//! The kernel's heap and its pointers, as far as a driver's mistakes with them show: allocations that fail on request, blocks
//! used after they were freed, blocks that nobody freed, pointers that are NULL.
//!
//! Rust would refuse most of these mistakes at compile time. The vendor's driver is C, so its mistakes are acted out: a
//! block is a number, a pointer an `Option`, and what would stop a kernel stops the driver's call.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A block of the heap. Copying it is copying a pointer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Block(u64);

#[derive(Default)]
struct Inner {
    /// What each block is for.
    live: BTreeMap<Block, String>,
    freed: BTreeMap<Block, String>,
    next: u64,
    /// Allocations whose name begins so fail, these ones of them, counted from 0.
    fail: Option<(String, std::ops::Range<u64>)>,
    asked: u64,
    reports: Vec<String>,
}

/// One machine's heap. Cheap to share.
#[derive(Clone, Default)]
pub struct Heap(Rc<RefCell<Inner>>);

impl Heap {
    /// A block, or nothing where it was asked to fail.
    pub fn alloc(&self, name: &str) -> Option<Block> {
        let mut inner = self.0.borrow_mut();
        if let Some((prefix, range)) = inner.fail.clone()
            && name.starts_with(&prefix)
        {
            inner.asked += 1;
            if range.contains(&(inner.asked - 1)) {
                return None;
            }
        }
        let block = Block(inner.next);
        inner.next += 1;
        inner.live.insert(block, name.to_string());
        Some(block)
    }

    /// Free a block.
    pub fn free(&self, block: Block) {
        let mut inner = self.0.borrow_mut();
        match inner.live.remove(&block) {
            Some(name) => {
                inner.freed.insert(block, name);
            }
            None => inner.report("freed twice", block),
        }
    }

    /// Read or write a block.
    pub fn touch(&self, block: Block) {
        let mut inner = self.0.borrow_mut();
        if !inner.live.contains_key(&block) {
            inner.report("used after it was freed", block);
        }
    }

    /// Let the allocations numbered `range` of those whose name begins with `prefix` fail, counted from now.
    pub fn fail(&self, prefix: &str, range: std::ops::Range<u64>) {
        let mut inner = self.0.borrow_mut();
        inner.fail = Some((prefix.to_string(), range));
        inner.asked = 0;
    }

    /// Broken rules so far.
    pub fn reports(&self) -> Vec<String> {
        self.0.borrow().reports.clone()
    }

    /// What was never freed.
    pub fn leaks(&self) -> Vec<String> {
        self.0.borrow().live.values().map(|name| format!("heap: {name} was never freed")).collect()
    }
}

impl Inner {
    fn report(&mut self, rule: &str, block: Block) {
        let name = self.freed.get(&block).map_or("a block that never was", String::as_str);
        self.reports.push(format!("heap: {name} was {rule}"));
    }
}

/// What stops a kernel: the payload with which a driver's call is unwound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Oops(pub String);

/// Stop the driver as a fault in a kernel would. No panic hook is called: it is part of the play.
pub fn oops(what: impl Into<String>) -> ! {
    std::panic::resume_unwind(Box::new(Oops(what.into())))
}

/// Follow a pointer.
pub fn deref<T>(pointer: Option<T>, name: &str) -> T {
    pointer.unwrap_or_else(|| oops(format!("NULL dereference: {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_used_after_its_end_is_told_by_its_name() {
        let heap = Heap::default();
        let block = heap.alloc("skb of frame 3").expect("no failure was asked for");
        heap.touch(block);
        assert_eq!(heap.leaks(), ["heap: skb of frame 3 was never freed"]);
        heap.free(block);
        heap.touch(block);
        heap.free(block);
        assert_eq!(
            heap.reports(),
            ["heap: skb of frame 3 was used after it was freed", "heap: skb of frame 3 was freed twice"]
        );
    }

    #[test]
    fn allocations_fail_by_name_and_number() {
        let heap = Heap::default();
        heap.fail("skb", 1..2);
        assert!(heap.alloc("skb 0").is_some() && heap.alloc("name").is_some());
        assert!(heap.alloc("skb 1").is_none());
        assert!(heap.alloc("skb 2").is_some());
    }
}
