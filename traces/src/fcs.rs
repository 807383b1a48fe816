//! The frame check sequence of Ethernet: CRC-32 over the frame, sent least significant byte first.
//!
//! Source: IEEE 802.3 clause 3.2.9. `crc32fast` computes the same CRC (that of zlib: reflected 0x04C11DB7, preset and
//! inverted).

/// Length of an FCS, in bytes.
pub const LEN_BYTES: usize = 4;

/// The FCS of a frame, in wire order.
#[must_use]
pub fn of(frame: &[u8]) -> [u8; LEN_BYTES] {
    crc32fast::hash(frame).to_le_bytes()
}

/// Are the last four bytes the FCS of those before them?
#[must_use]
pub fn is_right(frame_and_fcs: &[u8]) -> bool {
    match frame_and_fcs.split_last_chunk::<LEN_BYTES>() {
        Some((frame, fcs)) => of(frame) == *fcs,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The CRC-32 check value of "123456789" is cbf43926 in every catalogue of CRCs.
    #[test]
    fn check_value() {
        assert_eq!(of(b"123456789"), [0x26, 0x39, 0xf4, 0xcb]);
    }

    #[test]
    fn one_flipped_bit_is_noticed_and_short_frames_are_wrong() {
        let mut frame = b"123456789\x26\x39\xf4\xcb".to_vec();
        assert!(is_right(&frame));
        frame[3] ^= 1;
        assert!(!is_right(&frame));
        assert!(!is_right(&frame[..3]));
    }
}
