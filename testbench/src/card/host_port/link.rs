//! The link's rate: one lane for each direction, with headers.

use models::time::Time;

use super::CYCLE_PS;

/// Counted for each posted write, completion with data and read request: framing, sequence number, header, LCRC.
pub const HEADER_BYTES: usize = 24;
/// Most data bytes of a TLP (MPS); none crosses a multiple of it.
const PAYLOAD_BYTES: u64 = 256;
/// Longest read request (MRRS).
const REQUEST_BYTES: usize = 512;
/// What a direction passes in a cycle: 15.75 GB/s.
const BYTES_PER_CYCLE: u64 = 63;
/// What it may lag behind.
const BUFFER_BYTES: u64 = 512;

/// One direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lane {
    /// When all that was sent is through, in units of 1/63 ps, of which a byte takes 4000.
    free_at: u64,
}

impl Lane {
    fn units(now: Time) -> u64 {
        now.0.saturating_mul(BYTES_PER_CYCLE)
    }

    /// May something more be sent at `now`?
    pub(super) fn has_room(&self, now: Time) -> bool {
        self.free_at <= Lane::units(now).saturating_add(BUFFER_BYTES * CYCLE_PS)
    }

    /// So many bytes, headers included, are sent.
    pub(super) fn send(&mut self, now: Time, bytes: usize) {
        self.free_at = self.free_at.max(Lane::units(now)).saturating_add(bytes as u64 * CYCLE_PS);
    }
}

/// What a read of `len_bytes` sends.
pub(super) fn read_request_bytes(len_bytes: usize) -> usize {
    len_bytes.div_ceil(REQUEST_BYTES) * HEADER_BYTES
}

/// What `len_bytes` at `addr` send: themselves, and a header for each TLP that begins with them. `goes_on`: they follow
/// upon bytes that were sent before.
pub(super) fn data_bytes(addr: u64, len_bytes: usize, goes_on: bool) -> usize {
    let block = |addr: u64| addr / PAYLOAD_BYTES;
    let last = addr.wrapping_add(len_bytes.max(1) as u64 - 1);
    let blocks = block(last).wrapping_sub(block(addr)) as usize + 1;
    let begun = goes_on && !addr.is_multiple_of(PAYLOAD_BYTES);
    len_bytes + (blocks - usize::from(begun)) * HEADER_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tlp_has_one_header_and_ends_at_256_bytes() {
        assert_eq!(data_bytes(0x1000, 64, false), 64 + 24);
        assert_eq!(data_bytes(0x1040, 64, true), 64, "the same TLP");
        assert_eq!(data_bytes(0x1100, 64, true), 64 + 24, "the next one");
        assert_eq!(data_bytes(0x10e0, 64, true), 64 + 24, "the next one, from its middle on");
        assert_eq!(data_bytes(0x10e0, 64, false), 64 + 48, "two of them");
        assert_eq!(data_bytes(u64::MAX - 3, 4, false), 4 + 24);
    }

    #[test]
    fn requests_are_cut_at_512_bytes() {
        assert_eq!([1, 512, 513, 4096].map(read_request_bytes), [24, 24, 48, 192]);
    }

    #[test]
    fn a_lane_passes_63_bytes_a_cycle() {
        let mut lane = Lane::default();
        let cycles = 100_000;
        let sent = (0..cycles).filter(|cycle| {
            let now = Time(cycle * CYCLE_PS);
            let sends = lane.has_room(now);
            if sends {
                lane.send(now, 88);
            }
            sends
        });
        let bytes = sent.count() as u64 * 88;
        assert!((cycles * 63..cycles * 63 + 1_000).contains(&bytes), "{bytes} bytes in {cycles} cycles");
    }

    #[test]
    fn a_pause_is_not_made_up_for() {
        let mut lane = Lane::default();
        let late = Time(1_000_000 * CYCLE_PS);
        let burst = std::iter::from_fn(|| lane.has_room(late).then(|| lane.send(late, 64))).count();
        assert_eq!(burst, 9, "512 bytes, and the one that fills them up");
    }
}
