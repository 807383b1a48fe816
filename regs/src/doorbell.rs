//! Doorbells: where they are and what is written to them.
//!
//! A doorbell counts queues from the *function's* base (`rel_qid`), contexts count them absolutely: the classic mix-up.

pub use crate::generated::doorbell::*;

use crate::context::TriggerMode;
use crate::generated::qdma;

/// Queues that have a slot; 2048.
pub const QUEUES: u32 = H2C_PIDX_COUNT;

/// Bytes from the start of BAR0 to the doorbell at `register` (for instance [`H2C_PIDX`]) of a function-relative queue,
/// or `None` for a queue without a slot.
pub const fn offset(register: u32, rel_qid: u16) -> Option<u32> {
    if (rel_qid as u32) < QUEUES { Some(qdma::DOORBELL + register + H2C_PIDX_STRIDE * rel_qid as u32) } else { None }
}

/// What is written to [`H2C_PIDX`]: descriptors up to, and without, `pidx` belong to the card.
///
/// Source: AMD PG302; open-nic-driver `onic_hardware.c`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct H2cPidx {
    /// New producer index, 0…N-2 of a ring of N entries.
    pub pidx: u16,
    /// Arm the queue's interrupt.
    pub irq_arm: bool,
}

/// What is written to [`C2H_PIDX`]: buffers up to, and without, `pidx` belong to the card.
///
/// Source: AMD PG302; open-nic-driver `onic_hardware.c`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct C2hPidx {
    /// New producer index, 0…N-2 of a ring of N entries.
    pub pidx: u16,
    /// Arm the queue's interrupt.
    pub irq_arm: bool,
}

/// What is written to [`COMPLETION_CIDX`]: completions up to, and without, `cidx` have been read. Ends the outstanding
/// notification.
///
/// Source: AMD PG302; open-nic-driver `onic_hardware.c`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CompletionCidx {
    /// New consumer index, 0…N-2 of a ring of N entries.
    pub cidx: u16,
    /// Index of the threshold, 0…15; counts only when the context has `full_upd`, as do the next three.
    pub counter_index: u8,
    /// Index of the timer, 0…15.
    pub timer_index: u8,
    /// When to notify.
    pub trigger_mode: TriggerMode,
    /// Write status words.
    pub en_stat_desc: bool,
    /// Arm the interrupt for the next notification.
    pub irq_arm: bool,
}

impl H2cPidx {
    /// From the word on the bus.
    pub const fn from_word(word: u32) -> Self {
        H2cPidx { pidx: h2c_pidx::PIDX.get(word) as u16, irq_arm: h2c_pidx::IRQ_ARM.is_set(word) }
    }

    /// To the word on the bus.
    pub const fn to_word(self) -> u32 {
        h2c_pidx::PIDX.set(h2c_pidx::IRQ_ARM.set(0, self.irq_arm as u32), self.pidx as u32)
    }
}

impl C2hPidx {
    /// From the word on the bus.
    pub const fn from_word(word: u32) -> Self {
        C2hPidx { pidx: c2h_pidx::PIDX.get(word) as u16, irq_arm: c2h_pidx::IRQ_ARM.is_set(word) }
    }

    /// To the word on the bus.
    pub const fn to_word(self) -> u32 {
        c2h_pidx::PIDX.set(c2h_pidx::IRQ_ARM.set(0, self.irq_arm as u32), self.pidx as u32)
    }
}

impl CompletionCidx {
    /// From the word on the bus.
    pub const fn from_word(word: u32) -> Self {
        CompletionCidx {
            cidx: completion_cidx::CIDX.get(word) as u16,
            counter_index: completion_cidx::COUNTER_INDEX.get(word) as u8,
            timer_index: completion_cidx::TIMER_INDEX.get(word) as u8,
            trigger_mode: TriggerMode::from_code(completion_cidx::TRIGGER_MODE.get(word) as u8),
            en_stat_desc: completion_cidx::EN_STAT_DESC.is_set(word),
            irq_arm: completion_cidx::IRQ_ARM.is_set(word),
        }
    }

    /// To the word on the bus. Indices above 15 are cut off.
    pub const fn to_word(self) -> u32 {
        let mut word = completion_cidx::CIDX.set(0, self.cidx as u32);
        word = completion_cidx::COUNTER_INDEX.set(word, self.counter_index as u32);
        word = completion_cidx::TIMER_INDEX.set(word, self.timer_index as u32);
        word = completion_cidx::TRIGGER_MODE.set(word, self.trigger_mode.code() as u32);
        word = completion_cidx::EN_STAT_DESC.set(word, self.en_stat_desc as u32);
        completion_cidx::IRQ_ARM.set(word, self.irq_arm as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// onic_probe_trace.txt: `0x018008 0x00000100`, the first refill of queue 0.
    #[test]
    fn c2h_pidx_as_recorded() {
        let word = C2hPidx { pidx: 256, irq_arm: false }.to_word();
        assert_eq!(word, 0x0000_0100);
        assert_eq!(offset(C2H_PIDX, 0), Some(0x1_8008));
    }

    /// onic_probe_trace.txt: `0x01807c 0x1d000000`, queue 7 armed after its start.
    #[test]
    fn completion_cidx_as_recorded() {
        let armed = CompletionCidx {
            cidx: 0,
            trigger_mode: TriggerMode::UserTimerCount,
            en_stat_desc: true,
            irq_arm: true,
            ..CompletionCidx::default()
        };
        assert_eq!(armed.to_word(), 0x1D00_0000);
        assert_eq!(CompletionCidx::from_word(0x1D00_0000), armed);
        assert_eq!(offset(COMPLETION_CIDX, 7), Some(0x1_807C));
    }

    /// spec: H2C PIDX at 0x18004 + 16 q, arm in bit 16.
    #[test]
    fn h2c_pidx_layout() {
        assert_eq!(H2cPidx { pidx: 0xFFE, irq_arm: true }.to_word(), 0x0001_0FFE);
        assert_eq!(H2cPidx::from_word(0x0001_0FFE), H2cPidx { pidx: 0xFFE, irq_arm: true });
        assert_eq!(offset(H2C_PIDX, 2047), Some(0x1_FFF4));
        assert_eq!(offset(H2C_PIDX, 2048), None);
    }

    #[test]
    fn index_fields_as_the_vendor_places_them() {
        let cidx = CompletionCidx { counter_index: 0xA, timer_index: 0x5, ..CompletionCidx::default() };
        assert_eq!(cidx.to_word(), 0x005A_0000);
    }
}
