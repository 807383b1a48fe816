//! The error tree: leaf registers, the global register, first-error logs and the error interrupt.
//!
//! ```text
//!   event ─► leaf status (W1C) ─┬─ & leaf mask ─► global status (W1C) ─┬─ & global mask ─► armed? ─► interrupt, disarm
//!            + log              └ 0: stays silent                      └ 0: stays silent
//! ```
//!
//! A leaf that is still set and enabled sets its global bit again, which is why a driver clears the leaf first.
//!
//! Source: qdma.md section 8; logs 4 (positions vendor text, latching assumed).

use regs::qdma_csr as csr;
use regs::{Field, FuncId, Qid};

use super::config::{ErrorLog, IpVersion};
use super::core::ReadFault;

/// What can go wrong, in the words of the leaf registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// A descriptor read met an unsupported request.
    DescriptorRead,
    /// A descriptor read brought poisoned data.
    DescriptorPoison,
    /// A context asks for what this QDMA can't do: wrong descriptor size, bypass, memory-mapped.
    DescriptorParam,
    /// A data read met an unsupported request.
    DataRead,
    /// A data read brought poisoned data.
    DataPoison,
    /// A PIDX outside the ring, or more outstanding than the ring holds.
    InvalidPidx,
    /// A register access outside CSR space.
    CsrUnmapped,
    /// A doorbell for a queue that the function does not own.
    QidRange,
    /// The completion's queue differs from its frame's.
    QidMismatch,
    /// A C2H frame came to a queue in error.
    DescriptorResponse,
    /// An MSI-X vector beyond the function's table.
    MsiFail,
    /// A frame of too many descriptors.
    DescriptorCount,
    /// A completion for an invalid queue.
    CompletionInvalidQueue,
    /// A completion ring without room.
    CompletionRingFull,
    /// A CIDX beyond PIDX.
    BadCidx,
    /// An H2C descriptor with length 0.
    ZeroLength,
}

/// What a descriptor read that failed raises. A ring that vanished from the size table while it was read counts as one.
pub(super) fn of_fetch(read: Result<(), ReadFault>) -> Fault {
    match read {
        Err(ReadFault::Poisoned) => Fault::DescriptorPoison,
        Ok(()) | Err(ReadFault::Unsupported) => Fault::DescriptorRead,
    }
}

/// The leaves that this model sets; the others (RAM errors, fatal C2H errors) come after them and stay 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LeafId {
    Descriptor,
    Target,
    C2h,
    H2c,
}

struct Leaf {
    status_offset: u32,
    mask_offset: u32,
    /// Bit of the global register.
    root: u32,
    status: u32,
    mask: u32,
}

/// Where an error met a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// Whose queue.
    pub(super) qid: Qid,
    /// An H2C queue.
    pub(super) h2c: bool,
    /// The queue's consumer index.
    pub(super) cidx: u16,
    /// PIDX before and after a refused update.
    pub(super) pidx: (u16, u16),
}

pub(super) struct ErrorTree {
    ip: IpVersion,
    policy: ErrorLog,
    leaves: [Leaf; 9],
    status: u32,
    mask: u32,
    interrupt: u32,
    descriptor_log: [u32; 3],
    target_log: u32,
    c2h_first: u32,
    h2c_first: u32,
}

/// `value` at a field's place.
const fn at(field: Field, value: u32) -> u32 {
    value << field.lsb
}

const fn bit(field: Field) -> u32 {
    1 << field.lsb
}

const ARM: u32 = bit(csr::error_interrupt::ARM);

impl ErrorTree {
    pub(super) fn new(ip: IpVersion, policy: ErrorLog) -> ErrorTree {
        use csr::glbl_error_status as global;
        let root = |field: Field| u32::from(field.lsb);
        let h2c_root = if ip == IpVersion::Q31 { 11 } else { root(global::H2C_ST) };
        let leaf = |status_offset, mask_offset, root| Leaf { status_offset, mask_offset, root, status: 0, mask: 0 };
        ErrorTree {
            ip,
            policy,
            // In the order of `LeafId`, then the rest.
            leaves: [
                leaf(csr::GLBL_DSC_ERROR_STATUS, csr::GLBL_DSC_ERROR_MASK, root(global::DSC)),
                leaf(csr::GLBL_TRQ_ERROR_STATUS, csr::GLBL_TRQ_ERROR_MASK, root(global::TRQ)),
                leaf(csr::C2H_ERROR_STATUS, csr::C2H_ERROR_MASK, root(global::C2H_ST)),
                leaf(csr::H2C_ERROR_STATUS, csr::H2C_ERROR_MASK, h2c_root),
                leaf(csr::C2H_FATAL_STATUS, csr::C2H_FATAL_MASK, root(global::C2H_ST)),
                leaf(csr::RAM_SBE_STATUS, csr::RAM_SBE_MASK, root(global::RAM_SBE)),
                leaf(csr::RAM_DBE_STATUS, csr::RAM_DBE_MASK, root(global::RAM_DBE)),
                leaf(csr::RAM_SBE_STATUS_1, csr::RAM_SBE_MASK_1, root(global::RAM_SBE)),
                leaf(csr::RAM_DBE_STATUS_1, csr::RAM_DBE_MASK_1, root(global::RAM_DBE)),
            ],
            status: 0,
            mask: 0,
            interrupt: 0,
            descriptor_log: [0; 3],
            target_log: 0,
            c2h_first: 0,
            h2c_first: 0,
        }
    }

    pub(super) fn reset(&mut self) {
        *self = ErrorTree::new(self.ip, self.policy);
    }

    /// Leaf and bit of a fault in this dialect.
    fn position(&self, fault: Fault) -> (LeafId, u32) {
        use csr::{
            c2h_error_status as c2h, glbl_dsc_error_status as dsc, glbl_trq_error_status as trq,
            h2c_error_status as h2c,
        };
        let old = self.ip == IpVersion::Q31;
        let dialect = |old_bit: u32, field: Field| if old { old_bit } else { u32::from(field.lsb) };
        match fault {
            Fault::DescriptorRead => (LeafId::Descriptor, dialect(1, dsc::UR_CA)),
            Fault::DescriptorPoison => (LeafId::Descriptor, dialect(0, dsc::POISON)),
            Fault::DescriptorParam => (LeafId::Descriptor, dialect(2, dsc::PARAM)),
            Fault::DataRead => (LeafId::Descriptor, u32::from(dsc::DMA.lsb)),
            Fault::DataPoison => (LeafId::Descriptor, u32::from(dsc::DAT_POISON.lsb)),
            Fault::InvalidPidx => (LeafId::Descriptor, u32::from(dsc::INVALID_PIDX.lsb)),
            Fault::CsrUnmapped => (LeafId::Target, dialect(0, trq::CSR_UNMAPPED)),
            Fault::QidRange => (LeafId::Target, dialect(1, trq::QID_RANGE)),
            Fault::QidMismatch => (LeafId::C2h, u32::from(c2h::QID_MISMATCH.lsb)),
            Fault::DescriptorResponse => (LeafId::C2h, u32::from(c2h::DESC_RSP.lsb)),
            Fault::MsiFail => (LeafId::C2h, u32::from(c2h::MSI_INT_FAIL.lsb)),
            Fault::DescriptorCount => (LeafId::C2h, u32::from(c2h::DESC_COUNT.lsb)),
            Fault::CompletionInvalidQueue => (LeafId::C2h, u32::from(c2h::CMPT_INVALID_QUEUE.lsb)),
            Fault::CompletionRingFull => (LeafId::C2h, u32::from(c2h::CMPT_QUEUE_FULL.lsb)),
            Fault::BadCidx => (LeafId::C2h, u32::from(c2h::CMPT_BAD_CIDX.lsb)),
            Fault::ZeroLength => (LeafId::H2c, u32::from(h2c::ZERO_LENGTH.lsb)),
        }
    }

    /// A fault of a queue. Returns the error interrupt that it raises.
    pub(super) fn raise(&mut self, fault: Fault, place: Place) -> Option<(FuncId, u16)> {
        let (leaf, bit) = self.position(fault);
        if self.logs_now(leaf) {
            match leaf {
                LeafId::Descriptor => self.log_descriptor(bit, place),
                LeafId::C2h => {
                    use csr::c2h_first_error_qid as log;
                    self.c2h_first = at(log::QID, u32::from(place.qid.0)) | at(log::ERROR_TYPE, bit);
                }
                LeafId::H2c => {
                    use csr::h2c_first_error_qid as log;
                    self.h2c_first = at(log::QID, u32::from(place.qid.0)) | at(log::ERROR_TYPE, bit);
                }
                _ => {}
            }
        }
        self.set(leaf, bit)
    }

    /// A fault of a register access. Returns the error interrupt that it raises.
    pub(super) fn raise_access(&mut self, fault: Fault, func: FuncId, offset: u32) -> Option<(FuncId, u16)> {
        let (leaf, bit) = self.position(fault);
        if self.logs_now(leaf) {
            use csr::glbl_trq_error_log as log;
            // Codes of target and source are unknown: 0 for registers, 1 for queue space, source always 0 (assumed).
            let target = u32::from(fault != Fault::CsrUnmapped);
            self.target_log =
                at(log::ADDRESS, offset & 0x1_FFFF) | at(log::FUNC, u32::from(func.0)) | at(log::TARGET, target);
        }
        self.set(leaf, bit)
    }

    /// An indirect context command that this QDMA refuses. Only EQDMA reports it, at the root.
    pub(super) fn raise_command(&mut self, func: FuncId) -> Option<(FuncId, u16)> {
        let field = csr::glbl_error_status::IND_CTXT_CMD;
        if self.ip != IpVersion::Q31 && func.0 < field.width {
            self.status |= 1 << (field.lsb + func.0);
        }
        self.fire()
    }

    fn logs_now(&self, leaf: LeafId) -> bool {
        self.policy == ErrorLog::Last || self.leaves[leaf as usize].status == 0
    }

    fn log_descriptor(&mut self, bit: u32, place: Place) {
        use csr::{glbl_dsc_error_log0 as log0, glbl_dsc_error_log1 as log1, glbl_dsc_error_log2 as log2};
        self.descriptor_log = [
            at(log0::VALID, 1) | at(log0::SEL, u32::from(place.h2c)) | at(log0::QID, u32::from(place.qid.0)),
            at(log1::ERROR_TYPE, bit) | at(log1::CIDX, u32::from(place.cidx)),
            at(log2::OLD_PIDX, u32::from(place.pidx.0)) | at(log2::NEW_PIDX, u32::from(place.pidx.1)),
        ];
    }

    fn set(&mut self, leaf: LeafId, bit: u32) -> Option<(FuncId, u16)> {
        self.leaves[leaf as usize].status |= 1 << bit;
        self.gather();
        self.fire()
    }

    /// Leaves that are set and enabled set their roots.
    fn gather(&mut self) {
        for leaf in &self.leaves {
            if leaf.status & leaf.mask != 0 {
                self.status |= 1 << leaf.root;
            }
        }
    }

    /// The error interrupt, if something enabled is set and it is armed; it disarms itself.
    fn fire(&mut self) -> Option<(FuncId, u16)> {
        if self.status & self.mask == 0 || self.interrupt & ARM == 0 {
            return None;
        }
        self.interrupt &= !ARM;
        use csr::error_interrupt as reg;
        Some((super::dma_func(reg::FUNC.get(self.interrupt)), reg::VECTOR.get(self.interrupt) as u16))
    }

    /// A register of the tree, `None` for others.
    pub(super) fn read(&self, offset: u32) -> Option<u32> {
        Some(match offset {
            csr::GLBL_ERROR_STATUS => self.status,
            csr::GLBL_ERROR_MASK => self.mask,
            csr::ERROR_INTERRUPT => self.interrupt,
            csr::GLBL_DSC_ERROR_LOG0 => self.descriptor_log[0],
            csr::GLBL_DSC_ERROR_LOG1 => self.descriptor_log[1],
            csr::GLBL_DSC_ERROR_LOG2 => self.descriptor_log[2],
            csr::GLBL_TRQ_ERROR_LOG => self.target_log,
            csr::C2H_FIRST_ERROR_QID => self.c2h_first,
            csr::H2C_FIRST_ERROR_QID => self.h2c_first,
            _ => {
                let leaf = self.leaves.iter().find(|l| l.status_offset == offset || l.mask_offset == offset)?;
                if leaf.status_offset == offset { leaf.status } else { leaf.mask }
            }
        })
    }

    /// Write a register of the tree: `None` for others, else the error interrupt that the write lets out.
    pub(super) fn write(&mut self, offset: u32, value: u32, writable: u32) -> Option<Option<(FuncId, u16)>> {
        match offset {
            csr::GLBL_ERROR_STATUS => self.status &= !value,
            csr::GLBL_ERROR_MASK => self.mask = value & writable,
            csr::ERROR_INTERRUPT => self.interrupt = value & writable,
            _ => self.write_leaf(offset, value)?,
        }
        self.gather();
        Some(self.fire())
    }

    fn write_leaf(&mut self, offset: u32, value: u32) -> Option<()> {
        let index = self.leaves.iter().position(|l| l.status_offset == offset || l.mask_offset == offset)?;
        let leaf = &mut self.leaves[index];
        if leaf.mask_offset == offset {
            leaf.mask = value;
            return Some(());
        }
        leaf.status &= !value;
        if leaf.status == 0 {
            self.unlock(index);
        }
        Some(())
    }

    /// The log of a leaf whose status is clear again.
    fn unlock(&mut self, leaf: usize) {
        match leaf {
            i if i == LeafId::Descriptor as usize => self.descriptor_log = [0; 3],
            i if i == LeafId::Target as usize => self.target_log = 0,
            i if i == LeafId::C2h as usize => self.c2h_first = 0,
            i if i == LeafId::H2c as usize => self.h2c_first = 0,
            _ => {}
        }
    }
}
