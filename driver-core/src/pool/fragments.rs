//! Pages cut into fragments, each with its bias: how many of its fragments are out.

use alloc::vec::Vec;

use crate::platform::{DmaAddr, DmaError, DmaMemory, Page};

/// A page that was cut, or is about to be.
struct Parent<D: DmaMemory> {
    /// Device address of the whole page: that of `rest` moves on as it is cut.
    base: u64,
    /// What is left of it.
    rest: D::Page,
    /// Fragments that are out.
    bias: u32,
}

/// The pages of a pool that were cut.
///
/// # Invariants
/// A page in `cut` has a bias of 1 or more; `cut` is sorted by address. The bias of all together is `out`.
pub(super) struct Fragments<D: DmaMemory> {
    /// The page that the next fragment comes from.
    current: Option<Parent<D>>,
    /// Pages with too little left, or none.
    cut: Vec<Parent<D>>,
    out: usize,
}

impl<D: DmaMemory> Default for Fragments<D> {
    fn default() -> Self {
        Self { current: None, cut: Vec::new(), out: 0 }
    }
}

/// What joining a fragment did.
pub(super) enum Joined<P> {
    /// Others of its page are out, or its page has room for more.
    Kept,
    /// It was the last one out: the page is whole.
    Whole(P),
    /// No page of this pool has such a fragment.
    Foreign(P),
}

impl<D: DmaMemory> Fragments<D> {
    /// How many are out.
    pub(super) fn out(&self) -> usize {
        self.out
    }

    /// Is there a page at hand that no fragment is out of?
    pub(super) fn has_idle_page(&self) -> bool {
        self.current.as_ref().is_some_and(|parent| parent.bias == 0)
    }

    /// Room in the page at hand.
    pub(super) fn room(&self) -> usize {
        self.current.as_ref().map_or(0, |parent| parent.rest.bytes().len())
    }

    /// Cut a fragment off the page at hand.
    ///
    /// # Errors
    /// [`DmaError::Invalid`] if there is none, or too little of it.
    pub(super) fn cut(&mut self, dma: &D, len_bytes: usize) -> Result<D::Page, DmaError> {
        let Some(parent) = &mut self.current else { return Err(DmaError::Invalid { why: "no page to cut" }) };
        let fragment = dma.split(&mut parent.rest, len_bytes)?;
        parent.bias += 1;
        self.out += 1;
        Ok(fragment)
    }

    /// Go on with another page, whole and mapped. What was at hand waits for its fragments; one that nobody has a fragment
    /// of comes back.
    pub(super) fn replace(&mut self, page: D::Page) -> Option<D::Page> {
        let before = self.put_aside();
        let base = page.dma_addr().map_or(0, |addr| addr.0);
        self.current = Some(Parent { base, rest: page, bias: 0 });
        before
    }

    /// No fragment is cut from the page at hand any more.
    pub(super) fn put_aside(&mut self) -> Option<D::Page> {
        let parent = self.current.take()?;
        if parent.bias == 0 {
            return Some(parent.rest);
        }
        let at = self.cut.partition_point(|other| other.base < parent.base);
        self.cut.insert(at, parent);
        None
    }

    /// Is this the address of a fragment that is out?
    pub(super) fn holds(&self, dma: &D, addr: DmaAddr) -> bool {
        let size = dma.page_size() as u64;
        let within = |parent: &Parent<D>| parent.bias > 0 && (parent.base..parent.base + size).contains(&addr.0);
        self.current.as_ref().is_some_and(within) || self.at(addr).is_some_and(|at| within(&self.cut[at]))
    }

    /// The page in `cut` that begins at or before this address.
    fn at(&self, addr: DmaAddr) -> Option<usize> {
        self.cut.partition_point(|parent| parent.base <= addr.0).checked_sub(1)
    }

    /// A fragment is back.
    pub(super) fn join(&mut self, dma: &D, fragment: D::Page) -> Joined<D::Page> {
        let Some(addr) = fragment.dma_addr() else { return Joined::Foreign(fragment) };
        let fragment = match self.current.as_mut().filter(|parent| parent.bias > 0) {
            Some(parent) => match join(dma, parent, fragment) {
                Ok(()) => {
                    self.out -= 1;
                    return Joined::Kept;
                }
                Err(fragment) => fragment,
            },
            None => fragment,
        };
        self.join_cut(dma, addr, fragment)
    }

    fn join_cut(&mut self, dma: &D, addr: DmaAddr, fragment: D::Page) -> Joined<D::Page> {
        let Some(at) = self.at(addr) else { return Joined::Foreign(fragment) };
        if let Err(fragment) = join(dma, &mut self.cut[at], fragment) {
            return Joined::Foreign(fragment);
        }
        self.out -= 1;
        if self.cut[at].bias > 0 { Joined::Kept } else { Joined::Whole(self.cut.remove(at).rest) }
    }
}

fn join<D: DmaMemory>(dma: &D, parent: &mut Parent<D>, fragment: D::Page) -> Result<(), D::Page> {
    dma.join(&mut parent.rest, fragment).map_err(|refused| refused.page)?;
    parent.bias -= 1;
    Ok(())
}
