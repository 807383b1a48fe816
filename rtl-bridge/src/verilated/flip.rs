//! One bit flipped on an output stream's own pins, to try the alarm of whoever compares.
//!
//! The flip happens right after the evaluation that brings the beat to the pins and before it is recorded, so that waves,
//! adapters and the RTL's own neighbours all see the same wrong byte. It holds for as long as the beat does.

use super::{Output, Simulation, WideOutput};

/// A bit of one frame to be flipped, and where the stream stands. Set with [`Simulation::flip`].
#[derive(Clone, Debug)]
pub struct BitFlip {
    valid: Output<bool>,
    data: WideOutput,
    len: Output<u16>,
    bit: usize,
    /// Which beat of the frame is on the pins, when it is that frame.
    beat: Option<usize>,
    /// What `beat` will be once an edge at this time is over.
    next: Option<(u64, Option<usize>)>,
    /// The byte as the RTL has it.
    clean: Option<u8>,
}

impl BitFlip {
    /// Flip bit `bit` of a frame (bit 0 of byte 0 first), modulo the length that `len` shows with its first beat.
    pub fn new(valid: Output<bool>, data: WideOutput, len: Output<u16>, bit: usize) -> BitFlip {
        BitFlip { valid, data, len, bit, beat: None, next: None, clean: None }
    }

    /// From after the edge at `edge_ps` on the pins show this beat of the frame, or something else.
    pub fn follow(&mut self, edge_ps: u64, beat: Option<usize>) {
        self.next = Some((edge_ps, beat));
    }

    /// After an evaluation.
    pub(super) fn apply(&mut self, simulation: &mut Simulation) {
        if let Some((_, beat)) = self.next.take_if(|(edge_ps, _)| *edge_ps <= simulation.time_ps()) {
            (self.beat, self.clean) = (beat, None);
        }
        let (Some(beat), true) = (self.beat, simulation.get(self.valid)) else { return };
        let len_bits = 8 * usize::from(simulation.get(self.len)).max(1);
        let (byte, bit) = (self.bit % len_bits / 8, self.bit % 8);
        let width = self.data.len_bytes();
        if byte / width != beat {
            return;
        }
        // The RTL need not drive a beat anew that is held: what is flipped already stays so.
        let shown = simulation.bytes(&self.data)[byte % width];
        let clean = *self.clean.get_or_insert(shown);
        if shown == clean {
            simulation.disturb_byte(&self.data, byte % width, clean ^ (1 << bit));
        }
    }
}
