//! Upstream's hash block as it is: the fields it *really* takes, which depend on earlier frames and on spacing.
//!
//! It hashes a 64-byte payload buffer that a one-beat frame fills only in part (the tail is an earlier frame's), and a
//! VLAN nibble from a shift register that is usually, but not always, cleared before it is used. So the fields of a frame
//! are known only when it is known what follows it: [`HashBlock::push`] gives the fields of the frame *before*.
//!
//! Source: shell.md sections 9.1, 9.3 and 9.4, all measured on upstream's RTL.

use super::opennic::{OpennicInput, byte};

const BEAT_LEN_BYTES: usize = 64;

/// What happened between a frame's first and second beat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stall {
    /// The source paused: `tvalid` low.
    Valid,
    /// The sink paused: the second beat was presented, with its own `tlast`, and `tready` was low.
    Ready,
}

/// The block's state.
#[derive(Clone, Debug)]
pub struct HashBlock {
    /// P of section 9.1.
    payload: [u8; BEAT_LEN_BYTES],
    /// The last frame pushed: its VLAN nibble waits for what follows.
    pending: Option<Pending>,
}

#[derive(Clone, Debug)]
struct Pending {
    input: OpennicInput,
    nibble: u8,
    beats: usize,
    /// The nibble of the frame before it, if that had one beat and was accepted in the cycle before.
    nibble_before: u8,
    /// Its beats came in consecutive cycles.
    contiguous: bool,
}

impl Default for HashBlock {
    fn default() -> HashBlock {
        HashBlock::new()
    }
}

impl HashBlock {
    /// As after reset.
    pub fn new() -> HashBlock {
        HashBlock { payload: [0; BEAT_LEN_BYTES], pending: None }
    }

    /// Reset: payload buffer and VLAN history cleared, a frame still undecided forgotten.
    pub fn reset(&mut self) {
        *self = HashBlock::new();
    }

    /// A frame whose beats come in consecutive cycles, `gap_cycles` idle cycles after the last one's; the fields of that
    /// last one. `frame` may be cut after 128 bytes; what is missing of the first two beats counts as 0, as the bytes
    /// behind a frame's end do in the measurements.
    pub fn push(&mut self, frame: &[u8], beats: usize, gap_cycles: u64) -> Option<OpennicInput> {
        let (first, second) = beats_of(frame, beats);
        self.push_beats(first, second, beats, gap_cycles, true)
    }

    /// The same with a stall between the frame's first and second beat: the second beat's header bytes are not captured.
    /// A two-beat frame whose second beat was presented but not taken gives *two* results (quirk Q3): the second beat is
    /// read as a frame of its own. Results come in order, those of the frame before included.
    pub fn push_stalled(
        &mut self,
        frame: &[u8],
        beats: usize,
        gap_cycles: u64,
        stall: Stall,
    ) -> [Option<OpennicInput>; 2] {
        let (first, second) = beats_of(frame, beats);
        let before = self.push_beats(first, None, beats, gap_cycles, false);
        match (stall, beats, second) {
            (Stall::Ready, 2, Some(second)) => [before, self.push_beats(second, None, 1, 1, true)],
            _ => [before, None],
        }
    }

    /// Nothing follows in the next cycle: the fields of the frame that was pushed last.
    pub fn flush(&mut self) -> Option<OpennicInput> {
        self.pending.take().map(|pending| pending.input)
    }

    fn push_beats(
        &mut self,
        first: &[u8],
        second: Option<&[u8]>,
        beats: usize,
        gap_cycles: u64,
        contiguous: bool,
    ) -> Option<OpennicInput> {
        let back_to_back = gap_cycles == 0;
        let before = self.pending.take();
        let nibble_before = match &before {
            Some(p) if back_to_back && p.beats == 1 => p.nibble,
            _ => 0,
        };
        let input = self.parse(first, second);
        self.pending = Some(Pending { input, nibble: vlan_nibble(first), beats, nibble_before, contiguous });
        before.map(|p| OpennicInput { vlan_nibble: if back_to_back { p.vlan_term(beats) } else { 0 }, ..p.input })
    }

    /// Section 9.1. The payload buffer is filled as far as the beats reach and keeps the rest.
    fn parse(&mut self, first: &[u8], second: Option<&[u8]>) -> OpennicInput {
        let tagged = is_tagged(first);
        let start = if tagged { 18 } else { 14 };
        let ipv4 = super::opennic::ipv4_start(first).is_some();
        let filled = BEAT_LEN_BYTES - start;
        if tagged || ipv4 {
            for (k, at) in self.payload[..filled].iter_mut().enumerate() {
                *at = byte(first, start + k);
            }
        } else {
            self.payload.fill(0);
        }
        if let Some(second) = second {
            for (k, at) in self.payload[filled..].iter_mut().enumerate() {
                *at = byte(second, k);
            }
        }
        self.fields(ipv4)
    }

    fn fields(&self, ipv4: bool) -> OpennicInput {
        let p = &self.payload;
        let four = |at: usize| [p[at], p[at + 1], p[at + 2], p[at + 3]];
        let ihl = (p[0] & 15) as usize;
        let ports = if ihl >= 5 { four(4 * ihl) } else { [0; 4] };
        if ipv4 {
            OpennicInput { vlan_nibble: 0, protocol: p[9], source: four(12), destination: four(16), ports }
        } else {
            OpennicInput { ports, ..OpennicInput::default() }
        }
    }
}

impl Pending {
    /// Section 9.3: the nibble hashed with this frame when one of `next_beats` beats follows in the very next cycle.
    fn vlan_term(&self, next_beats: usize) -> u8 {
        match (self.beats, next_beats) {
            (1, 1) => self.nibble,
            (1, _) => self.nibble_before,
            (2, n) if n > 1 && self.contiguous => self.nibble,
            _ => 0,
        }
    }
}

/// The first two beats, as far as there are bytes.
fn beats_of(frame: &[u8], beats: usize) -> (&[u8], Option<&[u8]>) {
    let first = &frame[..frame.len().min(BEAT_LEN_BYTES)];
    let second = (beats > 1).then(|| frame.get(BEAT_LEN_BYTES..).unwrap_or(&[]));
    (first, second)
}

fn is_tagged(first: &[u8]) -> bool {
    [byte(first, 12), byte(first, 13)] == [0x81, 0x00]
}

/// VID bits 11:8, 0 for a frame without an 0x8100 tag.
fn vlan_nibble(first: &[u8]) -> u8 {
    if is_tagged(first) { byte(first, 14) & 15 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rss::{Key, opennic};

    /// ONIC-05: VID 0x500, 64-byte UDP frames: alone c5e438e4; three back to back 6927f412, 6927f412, c5e438e4.
    #[test]
    fn onic_05_q18_a_vlan_flow_hashes_two_ways() {
        let key: Key = "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa"
            .parse()
            .expect("40 bytes");
        let mut frame = vec![0; 12];
        frame.extend([0x81, 0, 0x05, 0, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0]);
        frame.extend([66, 9, 149, 187, 161, 142, 100, 80]);
        frame.extend(2794u16.to_be_bytes());
        frame.extend(1766u16.to_be_bytes());
        frame.resize(64, 0);
        let mut block = HashBlock::new();
        let mut hashes = Vec::new();
        for gap in [0, 0, 0, 1] {
            hashes.extend(block.push(&frame, 1, gap).map(|input| opennic(key.bytes(), &input)));
        }
        hashes.extend(block.flush().map(|input| opennic(key.bytes(), &input)));
        assert_eq!(hashes, [0x6927_f412, 0x6927_f412, 0xc5e4_38e4, 0xc5e4_38e4]);
    }

    #[test]
    fn any_length_and_beat_count_is_taken() {
        let mut block = HashBlock::new();
        for (len, beats) in [(0, 0), (0, 1), (13, 1), (64, 2), (64, 1), (200, 1), (5, 4)] {
            block.push(&vec![0x81; len], beats, 0);
            block.push_stalled(&vec![0x81; len], beats, 3, Stall::Ready);
        }
        assert!(block.flush().is_some());
        assert!(block.flush().is_none());
    }
}
