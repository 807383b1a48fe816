//! Records of changing length in a ring: ring buffers, and what `perf_event_output` leaves.
//!
//! ```text
//!   0                        size                       2 × size
//!   ├── records, wrapping ────┼── tail of the record that wraps ──┤
//! ```
//!
//! A record is one piece of memory even where the ring wraps: the kernel maps the pages twice, here the storage is twice
//! as long and a record that begins near the end runs on. Each record has a header of 8 bytes and is padded to 8.

use alloc::vec;
use alloc::vec::Vec;

const HEADER: u32 = 8;
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;

/// Reservations open at one time; a program that wants more gets none.
const OPEN_MAX: usize = 32;

/// A ring of records.
pub(crate) struct Ring {
    data: Vec<u8>,
    size: u32,
    /// Running positions, never wrapped; consumer is at most producer.
    producer: u64,
    consumer: u64,
    /// Reservations that were neither submitted nor discarded: offset and length of their payload.
    open: Vec<(u32, u32)>,
    lost: u64,
}

impl Ring {
    /// `size` is a power of two.
    pub(crate) fn new(size: u32) -> Self {
        let data = vec![0; size as usize * 2];
        Self { data, size, producer: 0, consumer: 0, open: Vec::with_capacity(OPEN_MAX), lost: 0 }
    }

    /// Take room for a record; the offset of its payload.
    pub(crate) fn reserve(&mut self, len: u32) -> Option<u32> {
        let whole = u64::from(HEADER) + u64::from(len).next_multiple_of(8);
        let used = self.producer - self.consumer;
        // As in the kernel, 8 bytes always stay free.
        if self.open.len() == OPEN_MAX || used + whole >= u64::from(self.size) || len >= DISCARDED {
            self.lost += 1;
            return None;
        }
        let at = self.offset(self.producer);
        self.set_header(at, len | BUSY);
        self.producer += whole;
        let payload = at + HEADER;
        self.data[payload as usize..][..len as usize].fill(0);
        self.open.push((payload, len));
        Some(payload)
    }

    /// End a reservation. False if there is none at that offset.
    pub(crate) fn commit(&mut self, payload: u32, discard: bool) -> bool {
        let Some(at) = self.open.iter().position(|open| open.0 == payload) else { return false };
        let (_, len) = self.open.swap_remove(at);
        self.set_header(payload - HEADER, if discard { len | DISCARDED } else { len });
        true
    }

    /// Payload bytes that the program may touch: within one open reservation.
    pub(crate) fn window(&self, offset: u32, len: usize) -> Option<core::ops::Range<usize>> {
        let end = u64::from(offset).checked_add(len as u64)?;
        let within = |open: &&(u32, u32)| offset >= open.0 && end <= u64::from(open.0) + u64::from(open.1);
        self.open.iter().find(within)?;
        Some(offset as usize..offset as usize + len)
    }

    /// Reservations that the program left open: the verifier would have refused it.
    pub(crate) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Give up what was left open, so that the consumer does not wait for it.
    pub(crate) fn discard_open(&mut self) {
        while let Some(&(payload, _)) = self.open.last() {
            self.commit(payload, true);
        }
    }

    pub(crate) fn data(&self) -> &[u8] {
        &self.data
    }

    pub(crate) fn data_mut(&mut self) -> &mut [u8] {
        &mut self.data
    }

    /// Take the oldest record that is complete; discarded ones are skipped.
    pub(crate) fn pop(&mut self) -> Option<&[u8]> {
        while self.consumer < self.producer {
            let at = self.offset(self.consumer);
            let header = self.header(at);
            if header & BUSY != 0 {
                return None;
            }
            let len = header & !DISCARDED;
            self.consumer += u64::from(HEADER) + u64::from(len).next_multiple_of(8);
            if header & DISCARDED == 0 {
                return Some(&self.data[(at + HEADER) as usize..][..len as usize]);
            }
        }
        None
    }

    /// Records that found no room.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// `bpf_ringbuf_query`: bytes waiting, size, consumer's and producer's position.
    pub(crate) fn query(&self, what: u64) -> u64 {
        match what {
            0 => self.producer - self.consumer,
            1 => u64::from(self.size),
            2 => self.consumer,
            3 => self.producer,
            _ => 0,
        }
    }

    fn offset(&self, position: u64) -> u32 {
        // Below `size`, a u32.
        (position & u64::from(self.size - 1)) as u32
    }

    fn header(&self, at: u32) -> u32 {
        self.data[at as usize..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
    }

    fn set_header(&mut self, at: u32, value: u32) {
        self.data[at as usize..][..4].copy_from_slice(&value.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Ring {
        fn output(&mut self, len: u32, fill: impl FnOnce(&mut [u8])) -> bool {
            let Some(payload) = self.reserve(len) else { return false };
            fill(&mut self.data[payload as usize..][..len as usize]);
            self.commit(payload, false)
        }
    }

    #[test]
    fn records_come_out_in_order_across_the_end() {
        let mut ring = Ring::new(64);
        for round in 0u8..50 {
            assert!(ring.output(13, |bytes| bytes.fill(round)));
            assert!(ring.output(9, |bytes| bytes.fill(round ^ 0xff)));
            assert!(!ring.output(17, |_| ()), "48 of 64 bytes are taken");
            assert_eq!(ring.pop(), Some(&[round; 13][..]));
            assert_eq!(ring.pop(), Some(&[round ^ 0xff; 9][..]));
            assert_eq!(ring.pop(), None);
        }
        assert_eq!(ring.lost(), 50);
    }

    #[test]
    fn a_ring_is_never_quite_full() {
        let mut ring = Ring::new(64);
        assert!(!ring.output(56, |_| ()), "all of it");
        assert!(ring.output(48, |_| ()));
        assert!(!ring.output(0, |_| ()));
    }

    #[test]
    fn an_open_reservation_holds_back_what_follows() {
        let mut ring = Ring::new(64);
        let first = ring.reserve(8).unwrap();
        assert!(ring.output(8, |bytes| bytes.fill(2)));
        assert_eq!(ring.pop(), None);
        assert_eq!(ring.window(first, 8), Some(8..16));
        assert_eq!(ring.window(first + 1, 8), None);
        assert!(ring.commit(first, true));
        assert!(!ring.commit(first, true), "once only");
        assert_eq!(ring.pop(), Some(&[2; 8][..]));
    }
}
