//! The three numbers that are easily mixed up, each with a type of its own, and the BARs.

use core::fmt;

/// A PCIe function of the card, 0…3. Function f owns `qconf` window f and Ethernet port f in the default plugin.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FuncId(pub u8);

/// An Ethernet port (a CMAC), 0…1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PortId(pub u8);

/// An absolute hardware queue, 0…2047: what contexts and the stream side-band carry. Doorbells and the RSS
/// indirection table count from the function's base instead; those are plain `u16` named `rel_qid`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Qid(pub u16);

/// Which register space of a function an access goes to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Bar {
    /// BAR0: QDMA CSRs, indirect contexts and doorbells; 256 KiB.
    Qdma,
    /// BAR2: the OpenNIC shell; 4 MiB.
    Shell,
}

impl Bar {
    /// The PCI BAR number: 0 or 2.
    pub const fn number(self) -> u8 {
        match self {
            Bar::Qdma => 0,
            Bar::Shell => 2,
        }
    }
}

impl Bar {
    /// Bytes of the BAR: 256 KiB and 4 MiB, as the OpenNIC shell configures them for most boards.
    pub const fn size_bytes(self) -> u32 {
        match self {
            Bar::Qdma => 0x4_0000,
            Bar::Shell => 0x40_0000,
        }
    }
}

impl fmt::Display for FuncId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "function {}", self.0)
    }
}

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port {}", self.0)
    }
}

impl fmt::Display for Qid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue {}", self.0)
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BAR{}", self.number())
    }
}
