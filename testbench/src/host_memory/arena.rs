//! Where the bytes of streaming pages lie: in large aligned pieces of memory, which the kernel may back by huge pages.
//!
//! A run goes round through thousands of pages, 32 MiB with rings of 1024, and each frame meets its page cold. In pages of
//! 4 KiB that would cost each of them a walk through the page tables beside the miss. Pages also lie a cache line further
//! apart than they are long: all frames begin at the same offset in their page, and would otherwise meet in a few sets of
//! every cache.
//!
//! The memory is the process's, as a heap's is. Pages come back to it when their owner drops them, and are handed out again
//! to any [`SharedMemory`](super::SharedMemory).

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard};

use super::page::PAGE_SIZE;

/// From one page to the next.
const STRIDE: usize = PAGE_SIZE + 64;
/// What huge pages are aligned to. One of another size would only make them fewer.
const HUGE: usize = 2 << 20;
/// Address space that is taken at once; memory comes when it is touched.
const PIECE: usize = 4 * HUGE;

type Place = [u8; STRIDE];

/// Pages that nobody has.
static FREE: Mutex<Vec<&'static mut Place>> = Mutex::new(Vec::new());

/// A page's bytes, beginning at a cache line: a small frame behind its headroom touches one line, not two. Or none at all
/// ([`PageBytes::NONE`]), which takes no more room and reads as an empty slice.
#[derive(Debug)]
pub(super) struct PageBytes(Option<&'static mut Place>);

impl PageBytes {
    /// No page.
    pub(super) const NONE: PageBytes = PageBytes(None);

    /// A page of this byte.
    #[cold]
    #[inline(never)]
    pub(super) fn filled(byte: u8) -> PageBytes {
        let mut free = free();
        if free.is_empty() {
            // Given out from the lowest address on.
            free.extend(piece().as_chunks_mut().0.iter_mut().rev());
        }
        let mut page = PageBytes(free.pop());
        drop(free);
        page.fill(byte);
        page
    }

    /// Is there a page?
    #[inline]
    pub(super) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// The page, of which nothing is left here.
    #[inline]
    pub(super) fn take(&mut self) -> PageBytes {
        PageBytes(self.0.take())
    }
}

impl Deref for PageBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |place| &place[..PAGE_SIZE])
    }
}

impl DerefMut for PageBytes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.as_mut().map_or(&mut [], |place| &mut place[..PAGE_SIZE])
    }
}

impl Drop for PageBytes {
    #[inline]
    fn drop(&mut self) {
        if let Some(place) = self.0.take() {
            give_back(place);
        }
    }
}

#[cold]
#[inline(never)]
fn give_back(place: &'static mut Place) {
    free().push(place);
}

fn free() -> MutexGuard<'static, Vec<&'static mut Place>> {
    // A list of places is whole between any two of its operations.
    FREE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Memory for more pages. A kernel that grants no huge pages gives small ones; without a mapping it comes from the heap.
fn piece() -> &'static mut [u8] {
    let Ok(map) = memmap2::MmapMut::map_anon(PIECE + HUGE) else { return vec![0; PIECE].leak() };
    #[cfg(target_os = "linux")]
    {
        // Advice: a kernel that does not take it changes nothing but speed.
        let _ = map.advise(memmap2::Advice::HugePage);
    }
    let map: &'static mut memmap2::MmapMut = Box::leak(Box::new(map));
    let begin = map.as_ptr().addr().next_multiple_of(HUGE) - map.as_ptr().addr();
    &mut map[begin..begin + PIECE]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_begins_at_a_cache_line_and_none_has_no_bytes() {
        let mut page = PageBytes::filled(7);
        assert!(page.as_ptr().addr().is_multiple_of(64));
        assert_eq!((page.len(), page[0], page[PAGE_SIZE - 1]), (PAGE_SIZE, 7, 7));
        let taken = page.take();
        assert_eq!((page.is_some(), page.len(), taken.len()), (false, 0, PAGE_SIZE));
    }

    #[test]
    fn more_pages_than_a_piece_has_do_not_overlap() {
        let mut pages: Vec<PageBytes> = (0..PIECE / STRIDE + 2).map(|n| PageBytes::filled(n as u8)).collect();
        assert!(pages.iter().enumerate().all(|(n, page)| page.iter().all(|byte| *byte == n as u8)));
        pages.sort_by_key(|page| page.as_ptr().addr());
        assert!(pages.windows(2).all(|two| two[1].as_ptr().addr() - two[0].as_ptr().addr() >= STRIDE));
    }
}
