//! Plain frames that the host makes: IPv4 and UDP, a number in each payload. The DF-aware builder is a later part.

use etherparse::PacketBuilder;

/// Shortest frame a NIC sends, FCS left out. Source: IEEE 802.3, 64 bytes with FCS.
pub const MIN_FRAME: usize = 60;

/// Headers in front of a UDP payload: Ethernet 14, IPv4 20, UDP 8.
pub const UDP_HEADERS: usize = 42;

/// One UDP frame of flow `flow` (by source port) with `payload` bytes, the first eight of which are `number`, padded to 60.
/// Fewer than eight payload bytes carry the number's low bytes.
///
/// # Errors
/// etherparse's, where the payload is too long for an IPv4 datagram.
pub fn udp(flow: u16, number: u64, payload: usize) -> Result<Vec<u8>, etherparse::err::packet::BuildWriteError> {
    let mut bytes: Vec<u8> = (0..payload).map(|i| i as u8).collect();
    let n = payload.min(8);
    bytes[..n].copy_from_slice(&number.to_le_bytes()[..n]);
    let builder = PacketBuilder::ethernet2([0x02, 0, 0, 0, 0, 1], [0x02, 0, 0, 0, 0, 2])
        .ipv4([192, 0, 2, 1], [198, 51, 100, 1], 64)
        .udp(10_000u16.wrapping_add(flow), 9);
    let mut frame = Vec::with_capacity(builder.size(payload).max(MIN_FRAME));
    builder.write(&mut frame, &bytes)?;
    if frame.len() < MIN_FRAME {
        frame.resize(MIN_FRAME, 0);
    }
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_datagram_is_padded_with_zeros() {
        let frame = udp(3, 0x0102, 2).expect("fits");
        assert_eq!(frame.len(), MIN_FRAME);
        assert_eq!(frame[UDP_HEADERS..], [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn the_longest_datagram_is_65507_bytes() {
        assert!(udp(0, 0, 65_507).is_ok());
        assert!(udp(0, 0, 65_508).is_err());
    }
}
