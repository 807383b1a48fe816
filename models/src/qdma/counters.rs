//! Every frame's end has a name and a counter.
//!
//! For each direction, at any time: `frames_in = frames_out + Σ drops + frames inside` (DESIGN section 10).

/// Why the QDMA lost a frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum DropReason {
    /// No descriptor was posted for it ([`super::NoDesc::Drop`]).
    NoDescriptor,
    /// Its queue was not enabled, or does not exist, when it came.
    InvalidQueue,
    /// Its queue was stopped while it was inside.
    QueueStopped,
    /// Its queue is in error, or its descriptor fetch or its H2C data read failed.
    DmaFault,
    /// The data were written, but the completion queue was not valid.
    CompletionInvalidQueue,
    /// The data were written, but the completion ring was full.
    CompletionRingFull,
    /// It would take more buffers than one frame may, or the queue's buffer size is 0.
    TooLong,
    /// The shell never sent a completion for it.
    NoCompletion,
    /// An H2C descriptor with length 0.
    ZeroLength,
    /// The card was reset while it was inside.
    Reset,
}

impl DropReason {
    /// All of them, in order.
    pub const ALL: [DropReason; 10] = [
        DropReason::NoDescriptor,
        DropReason::InvalidQueue,
        DropReason::QueueStopped,
        DropReason::DmaFault,
        DropReason::CompletionInvalidQueue,
        DropReason::CompletionRingFull,
        DropReason::TooLong,
        DropReason::NoCompletion,
        DropReason::ZeroLength,
        DropReason::Reset,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::NoDescriptor => "no_descriptor",
            DropReason::InvalidQueue => "invalid_queue",
            DropReason::QueueStopped => "queue_stopped",
            DropReason::DmaFault => "dma_fault",
            DropReason::CompletionInvalidQueue => "completion_invalid_queue",
            DropReason::CompletionRingFull => "completion_ring_full",
            DropReason::TooLong => "too_long",
            DropReason::NoCompletion => "no_completion",
            DropReason::ZeroLength => "zero_length",
            DropReason::Reset => "reset",
        }
    }
}

/// Frames of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DirectionCounters {
    /// Frames that entered: handed over by the shell (C2H), or descriptors taken up (H2C).
    pub frames_in: u64,
    /// Frames that left: completion entry written without error (C2H), or taken by the shell (H2C).
    pub frames_out: u64,
    /// Bytes of the frames that left, FCS left out.
    pub bytes_out: u64,
    drops: [u64; DropReason::ALL.len()],
}

impl DirectionCounters {
    /// Frames lost for one reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// Frames lost, all reasons.
    pub fn dropped_total(&self) -> u64 {
        self.drops.iter().sum()
    }

    /// Each reason with its count, zeroes too, in a fixed order.
    pub fn drops(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().map(|&reason| (reason, self.dropped(reason)))
    }

    pub(super) fn drop_one(&mut self, reason: DropReason) {
        self.drops[reason as usize] += 1;
    }

    pub(super) fn out(&mut self, len_bytes: usize) {
        self.frames_out += 1;
        self.bytes_out += len_bytes as u64;
    }
}

/// What a QDMA counted since it was made; a reset does not clear it. The counters that hardware has are also readable
/// by MMIO, there counted from the last reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Card to host.
    pub c2h: DirectionCounters,
    /// Host to card.
    pub h2c: DirectionCounters,
    /// Completions that the shell handed over. MMIO 0xB34.
    pub completions_in: u64,
    /// Completion entries written, those with the error bit included. MMIO 0xB38.
    pub completions_out: u64,
    /// Completions dropped, for whatever reason. MMIO 0xB3C.
    pub completions_dropped: u64,
    /// Completion entries written with the error bit; each one's frame counts as a drop.
    pub completions_with_error: u64,
    /// Completions dropped because no frame with their packet id waited; also in `completions_dropped`.
    pub completions_orphaned: u64,
    /// Status words written to completion rings. MMIO 0xB40.
    pub status_writes: u64,
    /// Status words written to H2C rings.
    pub writebacks: u64,
    /// C2H descriptors fetched.
    pub c2h_descriptors: u64,
    /// H2C descriptors fetched.
    pub h2c_descriptors: u64,
    /// Descriptor fetches, either direction.
    pub descriptor_fetches: u64,
    /// Interrupts emitted.
    pub interrupts: u64,
    /// Doorbells accepted.
    pub doorbells: u64,
    /// Doorbells discarded: outside the function's queues, disabled queue, or no such doorbell.
    pub doorbells_ignored: u64,
    /// Posted writes that host memory refused. The card cannot know: the frame counts as delivered.
    pub writes_refused: u64,
    /// Reads that host memory refused.
    pub reads_refused: u64,
    /// Context commands that took effect.
    pub context_commands: u64,
    /// Context commands with an unknown context, a queue out of range, or written while busy: no effect.
    pub context_commands_refused: u64,
    /// Register accesses at offsets where no register is.
    pub unmapped_accesses: u64,
}
