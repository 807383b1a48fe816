//! BAR0's register file: which offsets are registers, what they hold, and the tables that contexts index.
//!
//! The list of registers comes from the map in `regs`; only what a register *does* is written here. Error registers
//! live in [`super::errors`], the context window in [`super::context`].
//!
//! Source: qdma.md sections 2 and 4.

use regs::qdma_csr as csr;
use regs::{Access, Bar, FuncId, Register};

use super::config::{IpVersion, QdmaConfig};
use super::counters::Counters;

/// Where CSR space ends and doorbells begin.
pub(super) const CSR_BYTES: u32 = regs::qdma::DOORBELL;

/// Offsets above this are not CSR space: an access there logs a target error (assumed, qdma.md 4).
const CSR_SPACE_END: u32 = 0x3000;

/// What the map says about one word.
#[derive(Clone, Copy, Default)]
struct Word {
    mapped: bool,
    /// Bits that a write changes.
    writable: u32,
    value: u32,
}

pub(super) struct Csr {
    words: Vec<Word>,
    reset: Vec<u32>,
    ip: IpVersion,
    prefetch_default: u16,
}

impl Csr {
    pub(super) fn new(config: &QdmaConfig) -> Csr {
        let mut words = vec![Word::default(); (CSR_SPACE_END / 4) as usize];
        for register in regs::registers().iter().filter(|r| r.bar == Bar::Qdma) {
            for element in 0..register.count {
                let offset = register.offset + element * register.stride;
                let value = register.reset_of(element).unwrap_or_default() as u32;
                if let Some(word) = words.get_mut((offset / 4) as usize) {
                    *word = Word { mapped: true, writable: writable(register), value };
                }
            }
        }
        let mut this = Csr { words, reset: Vec::new(), ip: config.ip, prefetch_default: config.prefetch_descriptors };
        this.identify(config);
        this.reset = this.words.iter().map(|word| word.value).collect();
        this
    }

    /// Values that depend on the card. Source: qdma.md section 2.
    fn identify(&mut self, config: &QdmaConfig) {
        let each_function = |bars: u32| (0..u32::from(config.num_functions)).fold(0, |v, f| v | bars << (6 * f));
        // 3.1 has another layout, in which 0 is a plain soft IP. EQDMA: release 2020.2 for 4.0, the newest known for 5.0.
        let misc_cap = match config.ip {
            IpVersion::Q31 => 0,
            IpVersion::Q40 => 0x0110_0000,
            IpVersion::Q50 => 0x0220_0000,
        };
        let values = [
            (csr::CONFIG_BLOCK_ID, 0x1FD3_0000 | u32::from(config.block_ident)),
            (csr::PF_BARLITE_INT, each_function(1)),
            (csr::PF_BARLITE_EXT, each_function(4)),
            (csr::QDMA_CAP, u32::from(config.num_queues)),
            (csr::MISC_CAP, misc_cap),
            (csr::C2H_PREFETCH_CACHE_DEPTH, u32::from(config.prefetch_cache_depth)),
            (csr::C2H_COALESCE_DEPTH, u32::from(config.coalesce_depth)),
        ];
        for (offset, value) in values {
            self.words[(offset / 4) as usize].value = value;
        }
    }

    pub(super) fn reset(&mut self) {
        for (word, &reset) in self.words.iter_mut().zip(&self.reset) {
            word.value = reset;
        }
    }

    /// Is there a register?
    pub(super) fn is_mapped(&self, offset: u32) -> bool {
        offset.is_multiple_of(4) && self.words.get((offset / 4) as usize).is_some_and(|word| word.mapped)
    }

    /// Does an access here, where no register is, log an error? Within CSR space it reads 0 silently.
    pub(super) fn is_outside(offset: u32) -> bool {
        (CSR_SPACE_END..CSR_BYTES).contains(&offset)
    }

    /// Bits that a write to this offset changes.
    pub(super) fn writable(&self, offset: u32) -> u32 {
        self.words.get((offset / 4) as usize).map_or(0, |word| word.writable)
    }

    /// Read a register; `counters` count from the last reset.
    pub(super) fn read(&self, func: FuncId, offset: u32, counters: &Counters, base: &Counters) -> u32 {
        let since = |now: u64, then: u64| now.wrapping_sub(then) as u32;
        use super::DropReason::NoDescriptor;
        match offset {
            csr::FUNCTION_RETURN => u32::from(func.0),
            csr::C2H_DESC_DROP => since(counters.c2h.dropped(NoDescriptor), base.c2h.dropped(NoDescriptor)),
            csr::C2H_COMPLETIONS_IN => since(counters.completions_in, base.completions_in),
            csr::C2H_COMPLETIONS_OUT => since(counters.completions_out, base.completions_out),
            csr::C2H_COMPLETIONS_DROPPED => since(counters.completions_dropped, base.completions_dropped),
            csr::C2H_STATUS_OUT => since(counters.status_writes, base.status_writes),
            _ => self.stored(offset),
        }
    }

    /// Write a register that is plain storage.
    pub(super) fn write(&mut self, offset: u32, value: u32) {
        if let Some(word) = self.words.get_mut((offset / 4) as usize) {
            word.value = word.value & !word.writable | value & word.writable;
        }
    }

    /// What a register holds. Registers that hold nothing read 0.
    pub(super) fn stored(&self, offset: u32) -> u32 {
        self.words.get((offset / 4) as usize).map_or(0, |word| word.value)
    }

    fn table(&self, base: u32, index: u8) -> u32 {
        self.words[(base / 4) as usize + usize::from(index & 15)].value
    }

    /// Entries of a ring, the status entry included, as the table says now.
    pub(super) fn ring_entries(&self, index: u8) -> u32 {
        self.table(csr::GLBL_RING_SIZE, index)
    }

    /// Bytes of a C2H buffer.
    pub(super) fn buffer_bytes(&self, index: u8) -> u32 {
        self.table(csr::C2H_BUFFER_SIZE, index)
    }

    /// A moderation timer, ps. Its tick counts cycles of the 250 MHz user clock.
    pub(super) fn timer_ps(&self, index: u8) -> u64 {
        let ticks = u64::from(self.table(csr::C2H_TIMER_COUNT, index));
        let cycles = u64::from(self.stored(csr::INTERRUPT_TIMER_TICK));
        ticks.saturating_mul(cycles).saturating_mul(crate::time::Clock::AXIS.num)
    }

    /// A moderation threshold, completions.
    pub(super) fn counter_threshold(&self, index: u8) -> u32 {
        self.table(csr::C2H_COUNTER_THRESHOLD, index)
    }

    /// H2C descriptors from one write-back to the next.
    pub(super) fn writeback_interval(&self) -> u32 {
        4 << csr::glbl_dsc_cfg::WB_ACC_INTERVAL.get(self.stored(csr::GLBL_DSC_CFG))
    }

    /// C2H descriptors to keep ready for a queue.
    pub(super) fn prefetch_descriptors(&self) -> u16 {
        let programmed = match self.ip {
            // 3.1 has the number in 0xB08[17:9].
            IpVersion::Q31 => self.stored(csr::C2H_PREFETCH_CFG) >> 9 & 0x1FF,
            _ => csr::c2h_prefetch_cfg_2::NUM.get(self.stored(csr::C2H_PREFETCH_CFG_2)),
        };
        if programmed == 0 { self.prefetch_default } else { programmed as u16 }
    }

    /// Bit positions of color and error in a completion: format 0, OpenNIC's.
    pub(super) fn completion_format(&self) -> (u32, u32) {
        use csr::cmpt_format as format;
        let value = self.stored(csr::CMPT_FORMAT);
        (format::COLOR_LOCATION.get(value), format::ERROR_LOCATION.get(value))
    }
}

fn writable(register: &Register) -> u32 {
    register.mask_of(Access::ReadWrite) as u32
}
