//! What driver and card exchange in host memory: descriptors, completions and status words. All little endian.

use crate::bits::{bytes_of, layout, words_of};
use crate::context::CompletionQueueError;

layout! {
    /// H2C stream descriptor, 16 bytes: one frame to send.
    ///
    /// Layout: metadata (u32) + length (u16) + reserved (u16) + address (u64). Source: AMD PG302, H2C stream descriptor;
    /// open-nic-driver 3de2269 `qdma_access/qdma_export.c`, `qdma_pack_h2c_st_desc`.
    pub struct H2cDescriptor: [u32; 4] {
        /// Carried beside the frame. The shell takes its low 16 bits as the frame's length in bytes, so that it must
        /// equal `len_bytes`. Source: open-nic-shell 940907f `qdma_subsystem_h2c.sv`.
        metadata: u32 => 0[31:0],
        /// Bytes to read, 1…65535; 0 is an error. Ethernet header to payload, FCS left out.
        len_bytes: u16 => 1[15:0],
        /// Reserved; AMD's example design has SOP and EOP here, OpenNIC ignores it.
        flags: u16 => 1[31:16],
        /// DMA address of the frame.
        address: u64 => 2[63:0],
    }
}

layout! {
    /// C2H stream descriptor, 8 bytes: one buffer to fill. Its size is the queue's (`C2H_BUFFER_SIZE`).
    ///
    /// Source: AMD PG302, C2H stream descriptor; open-nic-driver `qdma_export.c`, `qdma_pack_c2h_st_desc`.
    pub struct C2hDescriptor: [u32; 2] {
        /// DMA address of the buffer.
        address: u64 => 0[63:0],
    }
}

layout! {
    /// Completion entry in OpenNIC's format, 8 bytes: one frame received.
    ///
    /// This is not AMD's standard format, which has a descriptor flag in bit 3 and the length in bits 19:4. Source:
    /// open-nic-shell 940907f `qdma_subsystem_c2h.sv`; open-nic-driver `qdma_export.h`; places of color and error as
    /// `CMPT_FORMAT` 0 says.
    pub struct Completion: [u32; 2] {
        /// Lap of the ring: 1 in the first, then toggling; stamped by the QDMA. An entry is new when it equals the color
        /// the reader expects.
        color: bool => 0[1:1],
        /// The QDMA met an error with this frame.
        err: bool => 0[2:2],
        /// Absolute queue.
        qid: u16 => 0[26:16],
        /// Frame length in bytes, FCS left out.
        len_bytes: u16 => 1[15:0],
        /// Running number of C2H frames over all queues, the first is 1, wrapping at 16 bits.
        pkt_id: u16 => 1[31:16],
    }
}

layout! {
    /// Status word of an H2C descriptor ring, 8 bytes in the ring's last entry.
    ///
    /// Upstream's driver headers name bits 15:0 `pidx`; they hold the error code. Source: AMD PG302, H2C status
    /// descriptor writeback.
    pub struct H2cStatus: [u32; 2] {
        /// Error of the queue; 0 is none.
        err: u8 => 0[1:0],
        /// Consumer index: descriptors before it have been sent.
        cidx: u16 => 0[31:16],
        /// Producer index that the card knows.
        pidx: u16 => 1[15:0],
    }
}

layout! {
    /// Status word of a completion ring, 8 bytes in the ring's last entry, written after the entries it covers.
    ///
    /// Source: AMD PG302, completion status structure; open-nic-driver `qdma_export.h`.
    pub struct CompletionStatus: [u32; 2] {
        /// Producer index: completions before it have been written.
        pidx: u16 => 0[15:0],
        /// Consumer index that the card knows.
        cidx: u16 => 0[31:16],
        /// Color of the present lap.
        color: bool => 1[0:0],
        /// Interrupt state: 0 ISR, 1 TRIG.
        int_state: u8 => 1[2:1],
        /// Why the queue stopped.
        err: CompletionQueueError => 1[4:3],
    }
}

macro_rules! in_memory {
    ($($name:ident: $bytes:literal),*) => {$(
        impl $name {
            /// Bytes in host memory.
            pub const SIZE_BYTES: usize = $bytes;

            /// Decodes the bytes as they lie in memory.
            #[inline]
            pub fn from_bytes(bytes: &[u8; $bytes]) -> Self {
                Self::from_words(&words_of(bytes))
            }

            /// Encodes the bytes as they lie in memory.
            #[inline]
            pub fn to_bytes(&self) -> [u8; $bytes] {
                bytes_of(self.to_words())
            }
        }
    )*};
}
in_memory!(H2cDescriptor: 16, C2hDescriptor: 8, Completion: 8, H2cStatus: 8, CompletionStatus: 8);

macro_rules! one_store {
    ($($name:ident),*) => {$(
        impl $name {
            /// From the value of one 64-bit little-endian load.
            #[inline]
            pub fn from_u64(value: u64) -> Self {
                Self::from_words(&[value as u32, (value >> 32) as u32])
            }

            /// To the value of one 64-bit little-endian store.
            #[inline]
            pub fn to_u64(&self) -> u64 {
                let [low, high] = self.to_words();
                u64::from(low) | u64::from(high) << 32
            }
        }
    )*};
}
one_store!(C2hDescriptor, Completion, H2cStatus, CompletionStatus);

#[cfg(test)]
mod tests {
    use super::*;

    /// onic_dma_trace.txt: `rd 0x01fd00000 16 3c0000003c0000000204890100000000`, written by onic.ko for a 60-byte frame
    /// at 0x01890402.
    #[test]
    fn h2c_descriptor_as_recorded() {
        let bytes = [0x3C, 0, 0, 0, 0x3C, 0, 0, 0, 0x02, 0x04, 0x89, 0x01, 0, 0, 0, 0];
        let descriptor = H2cDescriptor { metadata: 60, len_bytes: 60, flags: 0, address: 0x0189_0402 };
        assert_eq!(H2cDescriptor::from_bytes(&bytes), descriptor);
        assert_eq!(descriptor.to_bytes(), bytes);
    }

    /// onic_dma_trace.txt: `rd 0x01fa68000 8 00e1e61f00000000`, then the frame to 0x01fe6e100.
    #[test]
    fn c2h_descriptor_as_recorded() {
        let bytes = [0x00, 0xE1, 0xE6, 0x1F, 0, 0, 0, 0];
        assert_eq!(C2hDescriptor::from_bytes(&bytes).address, 0x1FE6_E100);
    }

    /// onic_dma_trace.txt: `wr 0x002882000 8 020000003c000000`, taken by onic.ko as 60 bytes.
    #[test]
    fn completion_as_recorded() {
        let seen = Completion::from_bytes(&[0x02, 0, 0, 0, 0x3C, 0, 0, 0]);
        assert_eq!(seen, Completion { color: true, len_bytes: 60, ..Completion::default() });
    }

    /// The shell's own user format: queue in 26:16, length in 47:32, running number in 63:48.
    #[test]
    fn completion_as_the_shell_builds_it() {
        let entry = Completion { color: false, err: true, qid: 0x7FF, len_bytes: 1514, pkt_id: 0xBEEF };
        assert_eq!(entry.to_u64(), 0xBEEF_05EA_07FF_0004);
        assert_eq!(Completion::from_u64(0xBEEF_05EA_07FF_0004), entry);
    }

    /// onic_dma_trace.txt: `wr 0x002883ff8 8 0200010001000000`, PIDX 2, CIDX 1, color 1.
    #[test]
    fn completion_status_as_recorded() {
        let status = CompletionStatus::from_bytes(&[0x02, 0, 0x01, 0, 0x01, 0, 0, 0]);
        assert_eq!(status, CompletionStatus { pidx: 2, cidx: 1, color: true, ..CompletionStatus::default() });
    }

    /// AMD's places: interrupt state 34:33, error 36:35.
    #[test]
    fn completion_status_error_and_state() {
        let status =
            CompletionStatus { int_state: 1, err: CompletionQueueError::Overflow, ..CompletionStatus::default() };
        assert_eq!(status.to_u64(), 0x1A_0000_0000);
    }

    /// AMD's places: error 1:0, CIDX 31:16, PIDX 47:32. The recorded dummy put an index in 15:0, which a card must not.
    #[test]
    fn h2c_status_keeps_the_index_out_of_the_error_bits() {
        let status = H2cStatus { err: 0, cidx: 3, pidx: 5 };
        assert_eq!(status.to_u64(), 0x0000_0005_0003_0000);
        assert_eq!(H2cStatus::from_u64(0x0000_0005_0003_0002).err, 2);
    }
}
