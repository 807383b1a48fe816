//! The frame that a program runs on, with room on both sides, and how far it may grow.
//!
//! ```text
//!   0        40              256                                     end of buffer
//!   ├ reserved ┼ headroom … meta ┼ data ──────────────► end ┼ room ─ tailroom 320 ┤
//! ```
//!
//! Limits and error numbers: Linux `net/core/filter.c`, `bpf_xdp_adjust_head`, `bpf_xdp_adjust_meta`,
//! `bpf_xdp_adjust_tail`.

use core::fmt;

use crate::errno;

/// Bytes at the buffer's start that no frame may grow into: Linux keeps its `xdp_frame` there.
pub const RESERVED_BYTES: usize = 40;

/// Bytes at the buffer's end that no frame may grow into: Linux's `skb_shared_info`.
pub const TAILROOM_BYTES: usize = 320;

/// What no frame may shrink below: an Ethernet header.
pub const FRAME_BYTES_MIN: usize = 14;

/// Most bytes of metadata, and a multiple of 4.
pub const META_BYTES_MAX: usize = 252;

/// Largest buffer: distance of two packet addresses of different age.
pub const BUFFER_BYTES_MAX: usize = 0x4_0000;

/// A frame can't lie there: `meta` before `start` before `end`, within a buffer of at most 256 KiB and clear of its
/// reserved bytes and tailroom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LayoutError {
    /// The buffer's length.
    pub buffer: usize,
    /// First byte of the frame.
    pub start: usize,
    /// Length of the frame.
    pub len: usize,
    /// Bytes of metadata.
    pub meta: usize,
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { buffer, start, len, meta } = self;
        write!(f, "a frame of {len} bytes at {start} with {meta} of metadata does not fit into a buffer of {buffer}")
    }
}

impl core::error::Error for LayoutError {}

/// A frame in its buffer: what Linux has as `xdp_buff`. Frames of several buffers are shown as their first one only.
///
/// # Invariants
/// `RESERVED_BYTES + meta <= start <= end <= buffer - TAILROOM_BYTES`.
#[derive(Debug)]
pub struct XdpBuff<'a> {
    bytes: &'a mut [u8],
    start: usize,
    end: usize,
    meta: usize,
}

impl<'a> XdpBuff<'a> {
    /// A frame of `len` bytes at `start` of a buffer.
    ///
    /// # Errors
    /// [`LayoutError`] if it does not fit.
    pub fn new(bytes: &'a mut [u8], start: usize, len: usize) -> Result<Self, LayoutError> {
        Self::with_meta(bytes, start, len, 0)
    }

    /// Likewise, with metadata right before it.
    ///
    /// # Errors
    /// [`LayoutError`] if it does not fit.
    pub fn with_meta(bytes: &'a mut [u8], start: usize, len: usize, meta: usize) -> Result<Self, LayoutError> {
        let buffer = bytes.len();
        let end = start.checked_add(len).filter(|end| end.saturating_add(TAILROOM_BYTES) <= buffer);
        let fits = meta <= META_BYTES_MAX && meta.is_multiple_of(4) && start >= RESERVED_BYTES + meta;
        match end {
            Some(end) if fits && buffer <= BUFFER_BYTES_MAX => Ok(Self { bytes, start, end, meta }),
            _ => Err(LayoutError { buffer, start, len, meta }),
        }
    }

    /// The frame.
    pub fn data(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// The metadata before it.
    pub fn metadata(&self) -> &[u8] {
        &self.bytes[self.start - self.meta..self.start]
    }

    /// Its first byte in the buffer.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Its length.
    pub fn len_bytes(&self) -> usize {
        self.end - self.start
    }

    /// The length of its metadata.
    pub fn meta_len(&self) -> usize {
        self.meta
    }

    pub(crate) fn end(&self) -> usize {
        self.end
    }

    pub(crate) fn first(&self) -> usize {
        self.start - self.meta
    }

    /// Metadata and frame.
    #[inline]
    pub(crate) fn window(&self) -> &[u8] {
        self.bytes.get(self.start - self.meta..self.end).unwrap_or(&[])
    }

    #[inline]
    pub(crate) fn window_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start - self.meta..self.end).unwrap_or(&mut [])
    }

    pub(crate) fn data_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    /// Move the frame's beginning; its metadata moves along.
    pub(crate) fn adjust_head(&mut self, by: i32) -> Result<(), i64> {
        let least = RESERVED_BYTES + self.meta;
        let start = moved(self.start, by).filter(|&start| start >= least && start + FRAME_BYTES_MIN <= self.end);
        let start = start.ok_or(errno::INVALID)?;
        self.bytes.copy_within(self.start - self.meta..self.start, start - self.meta);
        self.start = start;
        Ok(())
    }

    /// Move the metadata's beginning.
    pub(crate) fn adjust_meta(&mut self, by: i32) -> Result<(), i64> {
        let first = moved(self.first(), by).filter(|&first| first >= RESERVED_BYTES && first <= self.start);
        let meta = self.start - first.ok_or(errno::INVALID)?;
        if !meta.is_multiple_of(4) || meta > META_BYTES_MAX {
            return Err(errno::ACCESS);
        }
        self.meta = meta;
        Ok(())
    }

    /// Move the frame's end; bytes that come in are 0.
    pub(crate) fn adjust_tail(&mut self, by: i32) -> Result<(), i64> {
        let most = self.bytes.len() - TAILROOM_BYTES;
        let end = moved(self.end, by).filter(|&end| end <= most && end >= self.start + FRAME_BYTES_MIN);
        let end = end.ok_or(errno::INVALID)?;
        if end > self.end {
            self.bytes[self.end..end].fill(0);
        }
        self.end = end;
        Ok(())
    }
}

fn moved(from: usize, by: i32) -> Option<usize> {
    from.checked_add_signed(by as isize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// XDP-04: the headroom is 256 bytes less what is kept in it.
    #[test]
    fn the_head_moves_to_the_reserved_bytes_and_no_further() {
        for (by, ok) in [(-1, true), (-216, true), (-217, false), (-256, false), (-257, false), (46, true), (47, false)]
        {
            let mut page = vec![0xa5; 4096];
            let mut buff = XdpBuff::new(&mut page, 256, 60).unwrap();
            assert_eq!(buff.adjust_head(by).is_ok(), ok, "{by}");
            let want = if ok { (256 + by as isize) as usize } else { 256 };
            assert_eq!((buff.start(), buff.end()), (want, 316), "{by}");
        }
    }

    #[test]
    fn metadata_moves_with_the_head() {
        let mut page = vec![0; 4096];
        let mut buff = XdpBuff::new(&mut page, 256, 60).unwrap();
        assert_eq!(buff.adjust_meta(-8), Ok(()));
        buff.window_mut()[..8].copy_from_slice(b"metadata");
        assert_eq!(buff.adjust_head(-4), Ok(()));
        assert_eq!(buff.metadata(), b"metadata");
        assert_eq!(buff.adjust_meta(-3), Err(errno::ACCESS));
        assert_eq!(buff.adjust_meta(-300), Err(errno::INVALID));
        assert_eq!(buff.adjust_meta(12), Err(errno::INVALID));
        assert_eq!(buff.adjust_meta(8), Ok(()));
        assert_eq!(buff.meta_len(), 0);
    }

    #[test]
    fn the_tail_grows_with_zeros() {
        let mut page = vec![0xa5; 4096];
        let mut buff = XdpBuff::new(&mut page, 256, 60).unwrap();
        assert_eq!(buff.adjust_tail(3520 - 60), Ok(()));
        assert!(buff.data()[60..].iter().all(|byte| *byte == 0));
        assert_eq!(buff.adjust_tail(1), Err(errno::INVALID));
        assert_eq!(buff.adjust_tail(14 - 3520), Ok(()));
        assert_eq!(buff.adjust_tail(-1), Err(errno::INVALID));
        assert_eq!(buff.adjust_tail(i32::MIN), Err(errno::INVALID));
    }
}
