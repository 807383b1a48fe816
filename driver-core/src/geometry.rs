//! Where in a page the card may write: headroom, hardware buffer, tailroom.
//!
//! ```text
//!   0          256                    256 + hw_len              page end
//!   ├ headroom ┼ hardware buffer ─────┼ (unused) ─ tailroom 320 ┤
//! ```
//!
//! The card knows no page: it writes up to the buffer size of its table (CSR 0xAB0…) from the descriptor's address on. The
//! vendor's driver programs 4096 bytes at offset 256 of a 4096-byte page, so that a long frame lands in the neighbour's
//! page (`spec/driver.md` B-21). Here such a set-up can't be built.

use core::ops::Range;

/// Room before the frame, for headers that XDP prepends: Linux's `XDP_PACKET_HEADROOM`.
pub const HEADROOM_BYTES: u16 = 256;

/// Room after the frame: Linux's shared info of a socket buffer on x86-64.
pub const TAILROOM_BYTES: u16 = 320;

/// The most buffers that the QDMA spreads one frame over (`spec/qdma.md` 5.3, AMD PG302).
pub const FRAME_BUFFERS_MAX: u16 = 31;

/// A buffer size that can't be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GeometryError {
    /// The card could write outside the page, or into the tailroom. Choose an entry of the buffer-size table that is no
    /// larger than `limit_bytes`.
    #[error(
        "a hardware buffer of {hw_len_bytes} bytes doesn't fit a page, or fragment, of {page_bytes}: with headroom {HEADROOM_BYTES} and \
         tailroom {TAILROOM_BYTES} at most {limit_bytes} bytes remain (rx_buffer)"
    )]
    PastPage {
        /// The buffer size from the card's table.
        hw_len_bytes: u16,
        /// Size of the page, or of the fragment that the queue's source gives.
        page_bytes: usize,
        /// The largest buffer that fits.
        limit_bytes: usize,
    },
    /// A buffer of no bytes, or one so small that the longest frame would need more than 31 of them.
    #[error(
        "a hardware buffer of {hw_len_bytes} bytes is too small: a frame may span {FRAME_BUFFERS_MAX} buffers, and {frame_len_bytes} bytes need more (rx_buffer)"
    )]
    TooSmall {
        /// The buffer size from the card's table.
        hw_len_bytes: u16,
        /// The longest frame, FCS left out.
        frame_len_bytes: u16,
    },
    /// The queue's source syncs less of a buffer than the card may write: the rest would be read from a stale cache.
    #[error(
        "the card writes {hw_len_bytes} bytes at {HEADROOM_BYTES}, but its page pool syncs bytes {start}..{end} only (offset, max_len)"
    )]
    Unsynced {
        /// The buffer size from the card's table.
        hw_len_bytes: u16,
        /// First byte that is synced.
        start: usize,
        /// First byte behind it that isn't.
        end: usize,
    },
}

/// A buffer layout that keeps the card inside the page.
///
/// # Invariants
/// `headroom + hw_len + tailroom <= page`, and the longest frame fits in at most 31 buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferGeometry {
    hw_len_bytes: u16,
    frame_len_bytes_max: u16,
}

impl BufferGeometry {
    /// Check a buffer size, as programmed in the card, against the page size and the longest frame (FCS left out).
    ///
    /// # Errors
    /// [`GeometryError`].
    pub fn new(page_bytes: usize, hw_len_bytes: u16, frame_len_bytes_max: u16) -> Result<Self, GeometryError> {
        let limit_bytes = page_bytes.saturating_sub(usize::from(HEADROOM_BYTES) + usize::from(TAILROOM_BYTES));
        if usize::from(hw_len_bytes) > limit_bytes {
            return Err(GeometryError::PastPage { hw_len_bytes, page_bytes, limit_bytes });
        }
        let reach = u32::from(hw_len_bytes) * u32::from(FRAME_BUFFERS_MAX);
        if hw_len_bytes == 0 || u32::from(frame_len_bytes_max) > reach {
            return Err(GeometryError::TooSmall { hw_len_bytes, frame_len_bytes: frame_len_bytes_max });
        }
        Ok(Self { hw_len_bytes, frame_len_bytes_max })
    }

    /// The same layout in a page, or a fragment of one, of another size.
    ///
    /// # Errors
    /// [`GeometryError::PastPage`] if the card would write outside it.
    pub fn within(self, room_bytes: usize) -> Result<Self, GeometryError> {
        Self::new(room_bytes, self.hw_len_bytes, self.frame_len_bytes_max)
    }

    /// The same, if a source that syncs this range of each buffer syncs all that the card may write.
    pub(crate) fn synced_by(self, Range { start, end }: Range<usize>) -> Result<Self, GeometryError> {
        let (first, len) = (usize::from(self.headroom()), self.hw_len_bytes);
        if start <= first && first + usize::from(len) <= end {
            return Ok(self);
        }
        Err(GeometryError::Unsynced { hw_len_bytes: len, start, end })
    }

    /// Offset in the page where the card begins to write.
    pub const fn headroom(self) -> u16 {
        HEADROOM_BYTES
    }

    /// Bytes that the card may write into one buffer.
    pub const fn hw_len_bytes(self) -> u16 {
        self.hw_len_bytes
    }

    /// The longest frame that this queue must be able to take, FCS left out.
    pub const fn frame_len_bytes_max(self) -> u16 {
        self.frame_len_bytes_max
    }

    /// Descriptors that a frame of this length uses up.
    pub const fn descriptors_for(self, frame_len_bytes: u16) -> u16 {
        // One buffer holds nearly every frame, and a division costs as much as much of a small frame's way.
        if frame_len_bytes != 0 && frame_len_bytes <= self.hw_len_bytes {
            return 1;
        }
        frame_len_bytes.div_ceil(self.hw_len_bytes)
    }

    /// Descriptors that the longest frame uses up.
    pub const fn descriptors_max(self) -> u16 {
        self.descriptors_for(self.frame_len_bytes_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vendors_4096_at_256_is_refused() {
        let refused = BufferGeometry::new(4096, 4096, 1518);
        assert_eq!(refused, Err(GeometryError::PastPage { hw_len_bytes: 4096, page_bytes: 4096, limit_bytes: 3520 }));
    }

    #[test]
    fn exactly_the_limit_fits_and_one_more_does_not() {
        assert!(BufferGeometry::new(4096, 3520, 1518).is_ok());
        assert!(BufferGeometry::new(4096, 3521, 1518).is_err());
    }

    #[test]
    fn half_a_page_takes_a_smaller_buffer() {
        let geometry = |hw_len_bytes| BufferGeometry::new(4096, hw_len_bytes, 1518).unwrap();
        assert_eq!(geometry(1472).within(2048), Ok(geometry(1472)));
        let refused = GeometryError::PastPage { hw_len_bytes: 1473, page_bytes: 2048, limit_bytes: 1472 };
        assert_eq!(geometry(1473).within(2048), Err(refused));
    }

    #[test]
    fn what_the_card_writes_has_to_be_synced() {
        let geometry = BufferGeometry::new(4096, 2048, 1518).unwrap();
        assert_eq!(geometry.synced_by(256..2304), Ok(geometry));
        for (start, end) in [(257, 4096), (256, 2303), (0, 2048)] {
            let refused = GeometryError::Unsynced { hw_len_bytes: 2048, start, end };
            assert_eq!(geometry.synced_by(start..end), Err(refused));
        }
    }

    #[test]
    fn descriptors_are_counted_up() {
        let geometry = BufferGeometry::new(4096, 2048, 9596).unwrap();
        assert_eq!([1, 2048, 2049, 4096, 9596].map(|len| geometry.descriptors_for(len)), [1, 1, 2, 2, 5]);
    }

    #[test]
    fn thirty_two_buffers_are_too_many() {
        assert!(BufferGeometry::new(4096, 256, 31 * 256).is_ok());
        assert!(BufferGeometry::new(4096, 256, 31 * 256 + 1).is_err());
        assert!(BufferGeometry::new(4096, 0, 0).is_err());
    }
}
