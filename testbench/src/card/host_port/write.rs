//! One write channel: posted, beat by beat.

use models::host_memory::HostMemory;
use regs::FuncId;
use rtl_bridge::stall::Stall;

use super::{BEAT_BYTES, PAGE_BYTES, Rule, link};

/// A beat of a write. Source: `write_t` in rtl/qdma/qdma_pkg.sv.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteBeat<'a> {
    /// Who writes.
    pub func: FuncId,
    /// DMA address of byte 0, which need not be written.
    pub addr: u64,
    /// The beat.
    pub data: &'a [u8; BEAT_BYTES],
    /// Bit i: byte i goes to `addr + i`. All of them lie in one page.
    pub be: u64,
    /// The next beat does not go on with this one's addresses.
    pub last: bool,
}

/// What a beat did.
pub(super) struct Written {
    /// Pieces that memory refused.
    pub(super) refused: u64,
    /// What went over the link.
    pub(super) tlp_bytes: usize,
}

/// The channel.
pub(super) struct Writes {
    stall: Stall,
    /// Nothing is taken until this is over.
    pub(super) shut: bool,
    /// Where the next beat goes on, after one that was not the last.
    goes_on_at: Option<(FuncId, u64)>,
}

impl Writes {
    pub(super) fn new(stall: Stall) -> Writes {
        Writes { stall, shut: false, goes_on_at: None }
    }

    pub(super) fn reset(&mut self) {
        self.goes_on_at = None;
    }

    /// The beat on offer is not let in.
    #[inline]
    pub(super) fn holds(&mut self) -> bool {
        self.shut || self.stall.holds(self.goes_on_at.is_some())
    }

    pub(super) fn take(&mut self, beat: &WriteBeat<'_>, memory: &mut dyn HostMemory) -> Result<Written, Rule> {
        let &WriteBeat { func, addr, data, be, last } = beat;
        if be == 0 {
            return Err(Rule::NoBytes { addr });
        }
        let page = |byte: u32| addr.wrapping_add(u64::from(byte)) / PAGE_BYTES as u64;
        if page(be.trailing_zeros()) != page(63 - be.leading_zeros()) {
            return Err(Rule::WriteCrossesPage { addr, be });
        }
        let mut written = Written { refused: 0, tlp_bytes: 0 };
        let mut left = be;
        while left != 0 {
            let from = left.trailing_zeros();
            let len = (left >> from).trailing_ones();
            let (at, bytes) = (addr.wrapping_add(u64::from(from)), &data[from as usize..(from + len) as usize]);
            let goes_on = self.goes_on_at == Some((func, at));
            written.tlp_bytes += link::data_bytes(at, bytes.len(), goes_on);
            written.refused += u64::from(memory.write(func, at, bytes).is_err());
            self.goes_on_at = Some((func, at.wrapping_add(bytes.len() as u64)));
            left = left.checked_shr(from + len).map_or(0, |rest| rest << (from + len));
        }
        if last {
            self.goes_on_at = None;
        }
        Ok(written)
    }
}
