//! The stream seam: QDMA ⇄ shell, frame by frame.
//!
//! Its unit is a whole frame with its side fields, completions apart. Beats exist only in RTL: adapters in testbench
//! translate between this seam and upstream's simulation-mode ports, so that the model never pays for them.
//!
//! Source of the side fields: `open_nic_shell` simulation-mode ports, shell.md sections 4.2 to 4.4.

use regs::Qid;

use crate::time::Time;

/// A frame on its way from host memory to the wire (H2C), as it leaves the QDMA.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct H2cFrame {
    /// The bytes that the descriptor's length fetched.
    pub data: Vec<u8>,
    /// Absolute queue.
    pub qid: Qid,
    /// Descriptor metadata. OpenNIC's shell takes bits 15:0 as THE frame length, whatever `data` holds.
    pub metadata: u32,
    /// The QDMA met an error in this frame. Upstream's shell ignores it.
    pub err: bool,
}

/// A frame on its way from the wire to host memory (C2H), as the shell hands it to the QDMA.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct C2hFrame {
    /// The frame, `ctrl_len` bytes of it.
    pub data: Vec<u8>,
    /// Absolute queue.
    pub qid: Qid,
}

/// A completion that the shell hands to the QDMA beside the frame, one for each frame, in the same order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct C2hCompletion {
    /// Absolute queue (`ctrl_qid`).
    pub qid: Qid,
    /// Frame length in bytes, FCS left out (`tdata[47:32]`).
    pub len_bytes: u16,
    /// Frame number over all queues, first 1, wraps at 16 bits (`tdata[63:48]`, `ctrl_wait_pld_pkt_id`).
    pub pkt_id: u16,
}

/// The QDMA's answer before a frame's first beat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer {
    /// Hand it over now.
    Ready,
    /// Hold it, and everything behind it, and ask again.
    Stall,
    /// Hand it over; the QDMA counts it and throws it away.
    Drop,
}

/// The QDMA as a shell sees it.
///
/// Time is the simulated time of the hand-over; the QDMA may do its DMA later, in its own step. Buffers are swapped
/// rather than allocated: a frame's `Vec` travels on with it, and [`QdmaStream::recycle`] brings one back.
pub trait QdmaStream {
    /// May a frame of `len_bytes` for `qid` begin?
    fn c2h_offer(&mut self, now: Time, qid: Qid, len_bytes: u16) -> Offer;

    /// The frame, whole. Only after [`Offer::Ready`] or [`Offer::Drop`] for the same frame.
    fn c2h_frame(&mut self, now: Time, frame: C2hFrame);

    /// The frame's completion, at or after its last beat.
    fn c2h_completion(&mut self, now: Time, completion: C2hCompletion);

    /// The next H2C frame whose data are there, without taking it.
    fn h2c_peek(&mut self, now: Time) -> Option<&H2cFrame>;

    /// Take it. To the driver a frame taken is a frame completed.
    fn h2c_take(&mut self, now: Time) -> Option<H2cFrame>;

    /// An empty buffer to fill, from frames that this QDMA has finished with, or a new one.
    fn recycle(&mut self) -> Vec<u8>;

    /// Give back the buffer of an H2C frame that has left.
    fn give_back(&mut self, buffer: Vec<u8>);
}
