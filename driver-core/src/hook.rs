//! The XDP hook: code that sees each received frame before it is handed up, and decides what becomes of it.
//!
//! A hook is lent to [`crate::QueuePair::poll`] for the length of one poll. With [`NoHook`] nothing of this is compiled in.
//!
//! ```text
//!   0        40              256                                     page end
//!   ├ reserved ┼ headroom … meta ┼ data ──────────────► end ┼ room ─ tailroom 320 ┤
//!              └ adjust_meta ─► ◄┘└ adjust_head   adjust_tail ┘
//! ```
//!
//! What a verdict does with the frame's page (`spec/driver.md` sections 6 and 10.6):
//!
//! | verdict | the page | counted as |
//! |---|---|---|
//! | pass | is shown to the sink | `xdp_pass` |
//! | drop | stays in the receive ring | `xdp_drop` |
//! | aborted | stays in the receive ring | `xdp_drop` and `xdp_aborted` |
//! | tx | goes to the transmit queue of the same pair, another takes its place, and it comes home when it was sent | `xdp_tx` |
//! | redirect | goes to [`XdpHook::redirect`], another takes its place | `xdp_redirect` |
//!
//! A frame that can't be sent or redirected (a full ring, no other page, several buffers) leaves its page in the receive
//! ring and counts as `xdp_tx_errors` or `xdp_redirect_errors`. Each frame that a hook saw thus counts once, apart from
//! `xdp_aborted`.

use crate::geometry::TAILROOM_BYTES;
use crate::platform::{DmaMemory, Page};
use crate::ring::Fragments;

/// Bytes at the page's start that no frame may grow into: Linux keeps its `xdp_frame` there.
pub const RESERVED_BYTES: usize = 40;

/// What no frame may shrink below: an Ethernet header.
pub const FRAME_BYTES_MIN: usize = 14;

/// Most bytes of metadata. A multiple of 4, as all lengths of metadata must be.
pub const META_BYTES_MAX: usize = 252;

/// What is to become of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Hand it up.
    Pass,
    /// Forget it.
    Drop,
    /// Send it back out of the queue with the same index.
    Tx,
    /// Give it to somebody else: [`XdpHook::redirect`] is called with the target.
    Redirect(RedirectTarget),
    /// The hook failed. As a drop, and counted apart.
    Aborted,
}

/// Where a redirected frame goes. The driver only carries it from the verdict to [`XdpHook::redirect`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RedirectTarget(pub u64);

/// Code that decides on received frames. A closure from `&mut XdpBuff` to a [`Verdict`] is one, without redirection.
pub trait XdpHook<D: DmaMemory> {
    /// False only for [`NoHook`]: the call and all that belongs to it are left out.
    const ACTIVE: bool = true;

    /// Look at a frame, change it, and decide.
    fn run(&mut self, buff: &mut XdpBuff<'_, D>) -> Verdict;

    /// Take a redirected frame, page and all: the page stays mapped and is the hook's from here on. Most give it to
    /// [`crate::TxQueue::xdp_xmit`] of another queue.
    ///
    /// # Errors
    /// The frame, if the target doesn't take it. Its page goes back to the queue that it came from.
    fn redirect(&mut self, target: RedirectTarget, frame: XdpFrame<D::Page>) -> Result<(), XdpFrame<D::Page>> {
        let _ = target;
        Err(frame)
    }

    /// The poll in which something was redirected is over: ring doorbells now (Linux's `xdp_do_flush`).
    fn flush(&mut self) {}

    /// A page that was lent to this pair's transmit queue, by [`crate::TxQueue::xdp_xmit`] or
    /// [`crate::TxQueue::post_page`], was sent: it has to go home. The default frees it.
    fn returned(&mut self, dma: &D, page: D::Page) {
        dma.free_page(page);
    }
}

/// No hook: every frame passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NoHook;

impl<D: DmaMemory> XdpHook<D> for NoHook {
    const ACTIVE: bool = false;

    fn run(&mut self, _: &mut XdpBuff<'_, D>) -> Verdict {
        Verdict::Pass
    }
}

impl<D: DmaMemory, F: FnMut(&mut XdpBuff<'_, D>) -> Verdict> XdpHook<D> for F {
    fn run(&mut self, buff: &mut XdpBuff<'_, D>) -> Verdict {
        self(buff)
    }
}

/// A change of a frame's borders that does not fit; nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AdjustError {
    /// The frame would begin before the reserved bytes and its metadata, or leave less than an Ethernet header.
    #[error("the frame can't begin at offset {asked}: {least} to {most} are possible")]
    Head {
        /// Offset in the page.
        asked: i64,
        /// First possible one.
        least: i64,
        /// Last possible one.
        most: i64,
    },
    /// The frame would end in the tailroom, or leave less than an Ethernet header.
    #[error("the frame can't end at offset {asked}: {least} to {most} are possible")]
    Tail {
        /// Offset in the page of the first byte behind it.
        asked: i64,
        /// First possible one.
        least: i64,
        /// Last possible one.
        most: i64,
    },
    /// Metadata of that length: a multiple of 4 up to 252 works, as far as there is headroom.
    #[error("{asked} bytes of metadata: multiples of 4 up to {most} are possible")]
    Meta {
        /// Length.
        asked: i64,
        /// The longest.
        most: i64,
    },
}

/// Where a frame lies in its pages.
///
/// # Invariants
/// `RESERVED_BYTES + meta_len <= start`, and `start + first_len` is at most the page's length less the tailroom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// First byte in the first page.
    pub(crate) start: u16,
    /// Bytes in the first page.
    pub(crate) first_len: u16,
    /// Bytes in the last page; the same as `first_len` where there is one.
    pub(crate) last_len: u16,
    /// All bytes. A hook may make a frame longer than 16 bits can say.
    pub(crate) len: u32,
    /// Bytes of metadata right before `start`.
    pub(crate) meta_len: u16,
    /// The hook had bytes to write: what it wrote must not stay in a cache when the card gets the pages back.
    pub(crate) written: bool,
}

/// A received frame in a hook's hands: Linux's `xdp_buff`.
///
/// Its first buffer is one piece with room on both sides. A frame of several buffers has the others as fragments.
pub struct XdpBuff<'a, D: DmaMemory> {
    pub(crate) page: &'a mut D::Page,
    pub(crate) fragments: Fragments<'a, D>,
    pub(crate) layout: Layout,
    pub(crate) rel_qid: u16,
    pub(crate) pkt_id: u16,
}

impl<D: DmaMemory> XdpBuff<'_, D> {
    /// The queue that it came in on, counted from the function's first.
    pub fn rel_qid(&self) -> u16 {
        self.rel_qid
    }

    /// The shell's packet number.
    pub fn pkt_id(&self) -> u16 {
        self.pkt_id
    }

    /// All bytes of the frame, those in fragments included.
    pub fn len_bytes(&self) -> usize {
        self.layout.len as usize
    }

    /// Does it lie in more than one buffer?
    pub fn is_multi_buffer(&self) -> bool {
        self.fragments.count() > 0
    }

    /// The frame's bytes in its first buffer.
    pub fn data(&self) -> &[u8] {
        let (start, end) = self.range();
        self.page.bytes().get(start..end).unwrap_or(&[])
    }

    /// Likewise, to write.
    pub fn data_mut(&mut self) -> &mut [u8] {
        let (start, end) = self.range();
        self.layout.written = true;
        self.page.bytes_mut().get_mut(start..end).unwrap_or(&mut [])
    }

    /// Buffers behind the first.
    pub fn fragment_count(&self) -> usize {
        self.fragments.count()
    }

    /// The frame's bytes in the buffer `i` behind the first; nothing if there is none.
    pub fn fragment(&self, i: usize) -> &[u8] {
        self.fragments.bytes(i, self.layout.last_len)
    }

    /// The metadata before the frame.
    pub fn meta(&self) -> &[u8] {
        let start = usize::from(self.layout.start);
        self.page.bytes().get(start - usize::from(self.layout.meta_len)..start).unwrap_or(&[])
    }

    /// Likewise, to write.
    pub fn meta_mut(&mut self) -> &mut [u8] {
        let (start, len) = (usize::from(self.layout.start), usize::from(self.layout.meta_len));
        self.layout.written = true;
        self.page.bytes_mut().get_mut(start - len..start).unwrap_or(&mut [])
    }

    /// How far the frame may grow at its beginning.
    pub fn headroom(&self) -> usize {
        usize::from(self.layout.start - self.layout.meta_len) - RESERVED_BYTES
    }

    /// How far the frame may grow at its end: in its last buffer.
    pub fn tailroom(&self) -> usize {
        (self.tail_limit() - self.tail()).max(0) as usize
    }

    /// Move the beginning: `delta` bytes less, or more if it is negative. New bytes hold what the page held; metadata moves
    /// along.
    ///
    /// # Errors
    /// [`AdjustError::Head`].
    pub fn adjust_head(&mut self, delta: i32) -> Result<(), AdjustError> {
        let Layout { start, first_len, meta_len, .. } = self.layout;
        let asked = i64::from(start) + i64::from(delta);
        let least = RESERVED_BYTES as i64 + i64::from(meta_len);
        let most = i64::from(start) + i64::from(first_len) - FRAME_BYTES_MIN as i64;
        if !(least..=most).contains(&asked) {
            return Err(AdjustError::Head { asked, least, most });
        }
        let meta = usize::from(start - meta_len)..usize::from(start);
        if meta_len > 0 {
            // Both in the page: between `least` and `most`.
            self.page.bytes_mut().copy_within(meta, asked as usize - usize::from(meta_len));
            self.layout.written = true;
        }
        self.layout.start = asked as u16;
        self.layout.first_len = (i64::from(first_len) - i64::from(delta)) as u16;
        self.layout.len = (i64::from(self.layout.len) - i64::from(delta)) as u32;
        if !self.is_multi_buffer() {
            self.layout.last_len = self.layout.first_len;
        }
        Ok(())
    }

    /// Move the end: `delta` bytes more, all zero, or less if it is negative. Of a frame in several buffers only the last
    /// buffer grows and shrinks, and one byte of it stays.
    ///
    /// # Errors
    /// [`AdjustError::Tail`].
    pub fn adjust_tail(&mut self, delta: i32) -> Result<(), AdjustError> {
        let tail = self.tail();
        let asked = tail + i64::from(delta);
        let (least, most) = (self.tail_floor(), self.tail_limit());
        if !(least..=most).contains(&asked) {
            return Err(AdjustError::Tail { asked, least, most });
        }
        let last_len = (i64::from(self.layout.last_len) + i64::from(delta)) as u16;
        let grown = tail as usize..(asked.max(tail)) as usize;
        if !grown.is_empty() {
            let bytes = match self.fragments.last_mut() {
                Some(page) => page.bytes_mut(),
                None => self.page.bytes_mut(),
            };
            bytes.get_mut(grown).unwrap_or(&mut []).fill(0);
            self.layout.written = true;
        }
        self.layout.last_len = last_len;
        self.layout.len = (i64::from(self.layout.len) + i64::from(delta)) as u32;
        if !self.is_multi_buffer() {
            self.layout.first_len = last_len;
        }
        Ok(())
    }

    /// Move the metadata's beginning: `delta` bytes less of them, or more if it is negative, which is how they come to be.
    ///
    /// # Errors
    /// [`AdjustError::Meta`].
    pub fn adjust_meta(&mut self, delta: i32) -> Result<(), AdjustError> {
        let asked = i64::from(self.layout.meta_len) - i64::from(delta);
        let room = usize::from(self.layout.start) - RESERVED_BYTES;
        let most = (room.min(META_BYTES_MAX) & !3) as i64;
        if !(0..=most).contains(&asked) || asked % 4 != 0 {
            return Err(AdjustError::Meta { asked, most });
        }
        self.layout.meta_len = asked as u16;
        Ok(())
    }

    fn range(&self) -> (usize, usize) {
        let start = usize::from(self.layout.start);
        (start, start + usize::from(self.layout.first_len))
    }

    /// Offset of the first byte behind the frame, in its last buffer.
    fn tail(&self) -> i64 {
        let start = if self.is_multi_buffer() { self.fragments.offset() } else { self.layout.start };
        i64::from(start) + i64::from(self.layout.last_len)
    }

    fn tail_floor(&self) -> i64 {
        match self.is_multi_buffer() {
            true => i64::from(self.fragments.offset()) + 1,
            false => i64::from(self.layout.start) + FRAME_BYTES_MIN as i64,
        }
    }

    /// Buffers are alike, so the first one's length is the last one's.
    fn tail_limit(&self) -> i64 {
        self.page.bytes().len() as i64 - i64::from(TAILROOM_BYTES)
    }
}

/// A frame that left its queue with its page: Linux's `xdp_frame`. Still mapped; whoever holds it owns the page.
#[derive(Debug)]
pub struct XdpFrame<P> {
    /// The page.
    pub page: P,
    /// First byte of the frame in it.
    pub offset: usize,
    /// Bytes of the frame.
    pub len_bytes: usize,
    /// Bytes of metadata right before it.
    pub meta_len_bytes: usize,
}

impl<P: Page> XdpFrame<P> {
    /// The frame's bytes.
    pub fn bytes(&self) -> &[u8] {
        self.page.bytes().get(self.offset..self.offset.saturating_add(self.len_bytes)).unwrap_or(&[])
    }

    /// Its metadata.
    pub fn meta(&self) -> &[u8] {
        self.page.bytes().get(self.offset.saturating_sub(self.meta_len_bytes)..self.offset).unwrap_or(&[])
    }
}
