//! The card's error tree: leaves that name an error, a root register that gathers them, one interrupt.
//!
//! Bits and masks differ between the 3.1 core, for which the vendor's driver was written, and EQDMA (`spec/qdma.md`
//! sections 0 and 8): with 3.1's masks an EQDMA never reports a queue out of range, nor anything of H2C.

use regs::{Bar, FuncId, qdma_csr};

use crate::config::IpVersion;
use crate::platform::{Mmio, MmioError, Vector};

/// Number of leaves.
pub const LEAVES: usize = 7;

/// Fires at the next error; the card clears it then.
const ARM: u32 = 1 << 24;

/// A status register that names errors, one a bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// What the register is about.
    pub name: &'static str,
    status: u32,
    mask: u32,
    /// Errors to report.
    enable: u32,
    /// Its bit in the root register.
    root: u32,
}

const fn leaf(name: &'static str, status: u32, mask: u32, enable: u32, root: u32) -> Leaf {
    Leaf { name, status, mask, enable, root: 1 << root }
}

/// The vendor's driver: order, masks and root bits.
const Q31: [Leaf; LEAVES] = [
    leaf("descriptor", qdma_csr::GLBL_DSC_ERROR_STATUS, qdma_csr::GLBL_DSC_ERROR_MASK, 0x01F9_023F, 2),
    leaf("target", qdma_csr::GLBL_TRQ_ERROR_STATUS, qdma_csr::GLBL_TRQ_ERROR_MASK, 0xF, 3),
    leaf("C2H", qdma_csr::C2H_ERROR_STATUS, qdma_csr::C2H_ERROR_MASK, 0xFEDB, 8),
    leaf("C2H fatal", qdma_csr::C2H_FATAL_STATUS, qdma_csr::C2H_FATAL_MASK, 0x7_DF1B, 8),
    leaf("H2C", qdma_csr::H2C_ERROR_STATUS, qdma_csr::H2C_ERROR_MASK, 0x1F, 11),
    leaf("RAM single-bit", qdma_csr::RAM_SBE_STATUS, qdma_csr::RAM_SBE_MASK, 0xFFFF_FF11, 0),
    leaf("RAM double-bit", qdma_csr::RAM_DBE_STATUS, qdma_csr::RAM_DBE_MASK, 0xFFFF_FF11, 1),
];

/// AMD's DPDK driver for EQDMA, plus descriptor bit 21, an invalid PIDX.
const EQDMA: [Leaf; LEAVES] = [
    leaf("descriptor", qdma_csr::GLBL_DSC_ERROR_STATUS, qdma_csr::GLBL_DSC_ERROR_MASK, 0x01F9_037E | 1 << 21, 2),
    leaf("target", qdma_csr::GLBL_TRQ_ERROR_STATUS, qdma_csr::GLBL_TRQ_ERROR_MASK, 0xB3, 3),
    leaf("C2H", qdma_csr::C2H_ERROR_STATUS, qdma_csr::C2H_ERROR_MASK, 0x3_F6DF, 8),
    leaf("C2H fatal", qdma_csr::C2H_FATAL_STATUS, qdma_csr::C2H_FATAL_MASK, 0x1F_DF1B, 8),
    leaf("H2C", qdma_csr::H2C_ERROR_STATUS, qdma_csr::H2C_ERROR_MASK, 0x3F, 16),
    leaf("RAM single-bit", qdma_csr::RAM_SBE_STATUS, qdma_csr::RAM_SBE_MASK, u32::MAX, 0),
    leaf("RAM double-bit", qdma_csr::RAM_DBE_STATUS, qdma_csr::RAM_DBE_MASK, u32::MAX, 1),
];

const fn leaves(ip: IpVersion) -> &'static [Leaf; LEAVES] {
    match ip {
        IpVersion::Q31 => &Q31,
        IpVersion::Q40 | IpVersion::Q50 => &EQDMA,
    }
}

/// What the card had to report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CardErrors {
    /// The root register, 0 if there was nothing.
    pub root: u32,
    leaves: &'static [Leaf; LEAVES],
    status: [u32; LEAVES],
}

impl CardErrors {
    /// The registers with errors, and their bits.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u32)> + '_ {
        self.leaves.iter().zip(self.status).filter(|(_, status)| *status != 0).map(|(leaf, status)| (leaf.name, status))
    }
}

/// Route errors to a vector and arm it last.
pub(crate) fn set_up(mmio: &impl Mmio, ip: IpVersion, func: FuncId, vector: Vector) -> Result<(), MmioError> {
    let route = u32::from(func.0) | u32::from(vector.0) << 12;
    mmio.write32(Bar::Qdma, qdma_csr::ERROR_INTERRUPT, route)?;
    for leaf in leaves(ip) {
        mmio.write32(Bar::Qdma, leaf.mask, leaf.enable)?;
        let roots = mmio.read32(Bar::Qdma, qdma_csr::GLBL_ERROR_MASK)?;
        mmio.write32(Bar::Qdma, qdma_csr::GLBL_ERROR_MASK, roots | leaf.root)?;
    }
    mmio.write32(Bar::Qdma, qdma_csr::ERROR_INTERRUPT, route | ARM)
}

/// No more error interrupts.
pub(crate) fn disable(mmio: &impl Mmio) -> Result<(), MmioError> {
    mmio.write32(Bar::Qdma, qdma_csr::ERROR_INTERRUPT, 0)
}

/// Read what there is, clear it (leaves before the root, which they would set again), and re-arm.
pub(crate) fn service(mmio: &impl Mmio, ip: IpVersion, func: FuncId, vector: Vector) -> Result<CardErrors, MmioError> {
    let leaves = leaves(ip);
    let root = mmio.read32(Bar::Qdma, qdma_csr::GLBL_ERROR_STATUS)?;
    let mut status = [0; LEAVES];
    for (leaf, status) in leaves.iter().zip(&mut status).filter(|(leaf, _)| root & leaf.root != 0) {
        *status = mmio.read32(Bar::Qdma, leaf.status)?;
        mmio.write32(Bar::Qdma, leaf.status, *status)?;
    }
    if root != 0 {
        mmio.write32(Bar::Qdma, qdma_csr::GLBL_ERROR_STATUS, root)?;
    }
    let route = u32::from(func.0) | u32::from(vector.0) << 12;
    mmio.write32(Bar::Qdma, qdma_csr::ERROR_INTERRUPT, route | ARM)?;
    Ok(CardErrors { root, leaves, status })
}
