//! The card's error tree: leaves that name an error, a root register that gathers them, one interrupt.
//!
//! Bits and masks differ between the 3.1 core, for which the vendor's driver was written, and EQDMA (`spec/qdma.md`
//! sections 0 and 8): with 3.1's masks an EQDMA never reports a queue out of range, nor anything of H2C.

use core::fmt;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use regs::{Bar, FuncId, Qid, qdma_csr};

use crate::config::IpVersion;
use crate::platform::{Mmio, MmioError, Vector};

/// Number of leaves.
pub const LEAVES: usize = 7;

/// Fires at the next error; the card clears it then.
const ARM: u32 = 1 << 24;

/// Times that the tree is read again because an error came while it was being cleared. One that comes faster than it can be
/// cleared is left to the next interrupt.
const ROUNDS: usize = 4;

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
    /// Names of bits, for reports.
    bits: &'static [(u8, &'static str)],
}

impl Leaf {
    /// What a bit stands for; `None` for one that no document at hand names.
    pub fn name_of(&self, bit: u8) -> Option<&'static str> {
        self.bits.iter().find(|(at, _)| *at == bit).map(|(_, name)| *name)
    }
}

/// Bits of the descriptor register (`spec/qdma.md` sections 0 and 8).
const DSC_Q31: &[(u8, &str)] = &[
    (0, "poisoned read"),
    (1, "unsupported request or completer abort"),
    (2, "parameter mismatch"),
    (3, "address mismatch"),
    (4, "unexpected tag"),
    (5, "function-level reset"),
    (9, "timeout"),
];
const DSC_EQDMA: &[(u8, &str)] = &[
    (1, "poisoned read"),
    (2, "unsupported request or completer abort"),
    (3, "byte count mismatch"),
    (4, "parameter mismatch"),
    (5, "address mismatch"),
    (6, "unexpected tag"),
    (8, "function-level reset"),
    (9, "timeout"),
    (16, "poisoned data"),
    (19, "cancelled by function-level reset"),
    (20, "DMA engine"),
    (21, "invalid PIDX"),
    (22, "cancelled request"),
    (23, "double-bit"),
    (24, "single-bit"),
    (25, "port id"),
];
const TRQ_Q31: &[(u8, &str)] =
    &[(0, "unmapped register"), (1, "queue out of range"), (2, "access by a VF"), (3, "timeout")];
const TRQ_EQDMA: &[(u8, &str)] = &[
    (0, "unmapped register"),
    (1, "access by a VF"),
    (3, "timeout"),
    (4, "unmapped queue space"),
    (5, "queue out of range"),
    (7, "timeout in queue space"),
];
const C2H: &[(u8, &str)] = &[
    (0, "mty mismatch"),
    (1, "length mismatch"),
    (2, "shared completion"),
    (3, "queue mismatch"),
    (4, "descriptor response"),
    (6, "parity"),
    (7, "MSI failed"),
    (9, "descriptor count"),
    (10, "port id"),
    (12, "completion for an invalid queue"),
    (13, "completion ring full"),
    (14, "invalid CIDX"),
    (15, "completion parity"),
    (16, "available ring"),
    (17, "header, two bits"),
    (18, "header, one bit"),
    (19, "header parity"),
    (20, "header port id"),
];
const C2H_FATAL: &[(u8, &str)] = &[(0, "mty mismatch"), (1, "length mismatch"), (3, "queue mismatch")];
const H2C_Q31: &[(u8, &str)] = &[
    (0, "descriptor of length zero"),
    (1, "marker or SDI within a packet"),
    (2, "descriptor without DMA"),
    (3, "single-bit"),
    (4, "double-bit"),
];
const H2C_EQDMA: &[(u8, &str)] = &[
    (0, "descriptor of length zero"),
    (1, "marker or SDI within a packet"),
    (2, "descriptor without DMA"),
    (3, "double-bit"),
    (4, "single-bit"),
    (5, "parity"),
];

type Bits = &'static [(u8, &'static str)];

const fn leaf(name: &'static str, [status, mask]: [u32; 2], enable: u32, root: u32, bits: Bits) -> Leaf {
    Leaf { name, status, mask, enable, root: 1 << root, bits }
}

/// Status and mask registers.
const DSC: [u32; 2] = [qdma_csr::GLBL_DSC_ERROR_STATUS, qdma_csr::GLBL_DSC_ERROR_MASK];
const TRQ: [u32; 2] = [qdma_csr::GLBL_TRQ_ERROR_STATUS, qdma_csr::GLBL_TRQ_ERROR_MASK];
const C2H_LEAF: [u32; 2] = [qdma_csr::C2H_ERROR_STATUS, qdma_csr::C2H_ERROR_MASK];
const C2H_FATAL_LEAF: [u32; 2] = [qdma_csr::C2H_FATAL_STATUS, qdma_csr::C2H_FATAL_MASK];
const H2C_LEAF: [u32; 2] = [qdma_csr::H2C_ERROR_STATUS, qdma_csr::H2C_ERROR_MASK];
const SBE: [u32; 2] = [qdma_csr::RAM_SBE_STATUS, qdma_csr::RAM_SBE_MASK];
const DBE: [u32; 2] = [qdma_csr::RAM_DBE_STATUS, qdma_csr::RAM_DBE_MASK];

/// The vendor's driver: order, masks and root bits.
const Q31: [Leaf; LEAVES] = [
    leaf("descriptor", DSC, 0x01F9_023F, 2, DSC_Q31),
    leaf("target", TRQ, 0xF, 3, TRQ_Q31),
    leaf("C2H", C2H_LEAF, 0xFEDB, 8, C2H),
    leaf("C2H fatal", C2H_FATAL_LEAF, 0x7_DF1B, 8, C2H_FATAL),
    leaf("H2C", H2C_LEAF, 0x1F, 11, H2C_Q31),
    leaf("RAM single-bit", SBE, 0xFFFF_FF11, 0, &[]),
    leaf("RAM double-bit", DBE, 0xFFFF_FF11, 1, &[]),
];

/// AMD's DPDK driver for EQDMA, plus descriptor bit 21, an invalid PIDX.
const EQDMA: [Leaf; LEAVES] = [
    leaf("descriptor", DSC, 0x01F9_037E | 1 << 21, 2, DSC_EQDMA),
    leaf("target", TRQ, 0xB3, 3, TRQ_EQDMA),
    leaf("C2H", C2H_LEAF, 0x3_F6DF, 8, C2H),
    leaf("C2H fatal", C2H_FATAL_LEAF, 0x1F_DF1B, 8, C2H_FATAL),
    leaf("H2C", H2C_LEAF, 0x3F, 16, H2C_EQDMA),
    leaf("RAM single-bit", SBE, u32::MAX, 0, &[]),
    leaf("RAM double-bit", DBE, u32::MAX, 1, &[]),
];

const fn leaves(ip: IpVersion) -> &'static [Leaf; LEAVES] {
    match ip {
        IpVersion::Q31 => &Q31,
        IpVersion::Q40 | IpVersion::Q50 => &EQDMA,
    }
}

/// What the card had to report. `Display` is the line for a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CardErrors {
    /// The root register, 0 if there was nothing.
    pub root: u32,
    /// The queue of the first error that the card has kept one for.
    pub first_queue: Option<Qid>,
    leaves: &'static [Leaf; LEAVES],
    status: [u32; LEAVES],
}

impl CardErrors {
    fn none(leaves: &'static [Leaf; LEAVES]) -> Self {
        Self { root: 0, first_queue: None, leaves, status: [0; LEAVES] }
    }

    /// Was there nothing?
    pub fn is_empty(&self) -> bool {
        self.root == 0
    }

    /// The registers with errors, and their bits.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u32)> + '_ {
        self.with_leaves().map(|(leaf, status)| (leaf.name, status))
    }

    /// Every error: register, bit, and what the bit stands for.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u8, Option<&'static str>)> + '_ {
        self.with_leaves().flat_map(|(leaf, status)| {
            (0..32).filter(move |bit| status >> bit & 1 == 1).map(|bit| (leaf.name, bit, leaf.name_of(bit)))
        })
    }

    /// How many errors each register has, in the order of `LEAF_NAMES`.
    fn counts(&self) -> [u32; LEAVES] {
        self.status.map(u32::count_ones)
    }

    fn with_leaves(&self) -> impl Iterator<Item = (&'static Leaf, u32)> + '_ {
        self.leaves.iter().zip(self.status).filter(|(_, status)| *status != 0)
    }
}

/// Such as `target: queue out of range (bit 5); C2H: invalid CIDX (bit 14); first queue 3`.
impl fmt::Display for CardErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no card errors");
        }
        let mut before = "";
        for (leaf, bit, name) in self.named() {
            write!(f, "{before}{leaf}: {} (bit {bit})", name.unwrap_or("an error without a name"))?;
            before = "; ";
        }
        if before.is_empty() {
            // Root bits without a leaf of ours: bridge, fabric, indirect commands.
            write!(f, "root register {:#010x}", self.root)?;
        }
        match self.first_queue {
            Some(qid) => write!(f, "; first {qid}"),
            None => Ok(()),
        }
    }
}

/// Rows of `ethtool -S` that count what [`service`] found, one for each register, on the function that serves errors.
const LEAF_NAMES: [&str; LEAVES] = [
    "card_error_descriptor",
    "card_error_target",
    "card_error_c2h",
    "card_error_c2h_fatal",
    "card_error_h2c",
    "card_error_ram_single_bit",
    "card_error_ram_double_bit",
];

/// How many errors of each register were served, and those that nobody was told of yet because a service failed midway.
#[derive(Debug, Default)]
pub(crate) struct ErrorTotals {
    counts: [AtomicU64; LEAVES],
    owed: [AtomicU32; LEAVES],
    owed_root: AtomicU32,
    /// The first queue of what is owed, plus 1; 0 for none.
    owed_queue: AtomicU32,
}

impl ErrorTotals {
    pub(crate) fn add(&self, errors: &CardErrors) {
        for (total, count) in self.counts.iter().zip(errors.counts()) {
            total.fetch_add(u64::from(count), Ordering::Relaxed);
        }
    }

    /// Whoever is told next is told of these too.
    pub(crate) fn owe(&self, errors: &CardErrors) {
        for (owed, status) in self.owed.iter().zip(errors.status) {
            owed.fetch_or(status, Ordering::Relaxed);
        }
        self.owed_root.fetch_or(errors.root, Ordering::Relaxed);
        if let Some(Qid(qid)) = errors.first_queue {
            // One that is owed already came first.
            let _ = self.owed_queue.compare_exchange(0, u32::from(qid) + 1, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// What was found, with what is owed.
    pub(crate) fn with_owed(&self, mut errors: CardErrors) -> CardErrors {
        for (status, owed) in errors.status.iter_mut().zip(&self.owed) {
            *status |= owed.swap(0, Ordering::Relaxed);
        }
        errors.root |= self.owed_root.swap(0, Ordering::Relaxed);
        let owed_queue = self.owed_queue.swap(0, Ordering::Relaxed).checked_sub(1);
        // A queue has 13 bits.
        errors.first_queue = owed_queue.map(|qid| Qid(qid as u16)).or(errors.first_queue);
        errors
    }

    /// Names and totals, in the registers' order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        LEAF_NAMES.into_iter().zip(&self.counts).map(|(name, total)| (name, total.load(Ordering::Relaxed)))
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

/// Read what there is, clear it, and re-arm.
///
/// Leaves are cleared before the root, which they would set again, and only the bits that were read. An error that comes
/// between the two is seen by reading the root once more: were it left there, nothing would ever tell of it, since the
/// interrupt is armed only afterwards.
///
/// A register access that fails ends the clearing, not the service: the interrupt is armed, so that what is left fires at once,
/// and what was found until then is told.
pub(crate) fn service(
    mmio: &impl Mmio,
    ip: IpVersion,
    func: FuncId,
    vector: Vector,
) -> (CardErrors, Result<(), MmioError>) {
    let mut errors = CardErrors::none(leaves(ip));
    let cleared = clear_all(mmio, ip, &mut errors);
    let route = u32::from(func.0) | u32::from(vector.0) << 12;
    let armed = mmio.write32(Bar::Qdma, qdma_csr::ERROR_INTERRUPT, route | ARM);
    (errors, cleared.and(armed))
}

fn clear_all(mmio: &impl Mmio, ip: IpVersion, errors: &mut CardErrors) -> Result<(), MmioError> {
    for _ in 0..ROUNDS {
        let root = mmio.read32(Bar::Qdma, qdma_csr::GLBL_ERROR_STATUS)?;
        if root == 0 {
            break;
        }
        clear(mmio, ip, root, errors)?;
    }
    Ok(())
}

fn clear(mmio: &impl Mmio, ip: IpVersion, root: u32, errors: &mut CardErrors) -> Result<(), MmioError> {
    errors.root |= root;
    let leaves = errors.leaves.iter().zip(&mut errors.status);
    for (leaf, status) in leaves.filter(|(leaf, _)| root & leaf.root != 0) {
        let found = mmio.read32(Bar::Qdma, leaf.status)?;
        // Before the write: one whose answer got lost may have cleared it.
        *status |= found;
        if found != 0 && errors.first_queue.is_none() {
            // Before it is cleared: the card then takes the next error's.
            errors.first_queue = first_queue(mmio, ip, leaf)?;
        }
        mmio.write32(Bar::Qdma, leaf.status, found)?;
    }
    mmio.write32(Bar::Qdma, qdma_csr::GLBL_ERROR_STATUS, root)
}

/// The queue that the leaf's log register names. Of a doorbell outside every range there is only an address, and of 3.1's
/// descriptor log no layout is known.
fn first_queue(mmio: &impl Mmio, ip: IpVersion, leaf: &Leaf) -> Result<Option<Qid>, MmioError> {
    use qdma_csr::{c2h_first_error_qid, glbl_dsc_error_log0, h2c_first_error_qid};
    let (register, field) = match leaf.status {
        qdma_csr::GLBL_DSC_ERROR_STATUS if ip != IpVersion::Q31 => {
            (qdma_csr::GLBL_DSC_ERROR_LOG0, glbl_dsc_error_log0::QID)
        }
        qdma_csr::C2H_ERROR_STATUS => (qdma_csr::C2H_FIRST_ERROR_QID, c2h_first_error_qid::QID),
        qdma_csr::H2C_ERROR_STATUS => (qdma_csr::H2C_FIRST_ERROR_QID, h2c_first_error_qid::QID),
        _ => return Ok(None),
    };
    let log = mmio.read32(Bar::Qdma, register)?;
    // Only one of the three says whether it holds anything; the others belong to the status that was just read.
    let holds = register != qdma_csr::GLBL_DSC_ERROR_LOG0 || glbl_dsc_error_log0::VALID.is_set(log);
    // 13 bits.
    Ok(holds.then(|| Qid(field.get(log) as u16)))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use alloc::string::ToString;
    use alloc::vec::Vec;
    use core::cell::Cell;
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use super::*;

    /// The tree as a card has it: statuses are cleared by writing ones, a leaf sets its root bit again while it is set, and the
    /// interrupt fires, and disarms, when something is set while it is armed.
    #[derive(Default)]
    struct Tree {
        registers: BTreeMap<u32, u32>,
        accesses: u32,
        /// At this access another error comes: a leaf's status register, its bits, its root bit.
        late: Option<(u32, [u32; 3])>,
        /// This access fails.
        broken: Option<u32>,
        interrupts: u32,
    }

    struct Card(Mutex<Tree>);

    impl Tree {
        fn raise(&mut self, [status, bits, root]: [u32; 3]) {
            *self.registers.entry(status).or_default() |= bits;
            *self.registers.entry(qdma_csr::GLBL_ERROR_STATUS).or_default() |= root;
            self.notify();
        }

        fn notify(&mut self) {
            let root = self.registers.get(&qdma_csr::GLBL_ERROR_STATUS).copied().unwrap_or(0);
            let armed = self.registers.entry(qdma_csr::ERROR_INTERRUPT).or_default();
            if root != 0 && *armed & ARM != 0 {
                *armed &= !ARM;
                self.interrupts += 1;
            }
        }

        fn access(&mut self, bar: Bar, offset: u32) -> Result<(), MmioError> {
            if let Some((at, error)) = self.late
                && at == self.accesses
            {
                self.raise(error);
            }
            self.accesses += 1;
            match self.broken {
                Some(at) if at == self.accesses - 1 => Err(MmioError::TimedOut { bar, offset, waited_ns: 1 }),
                _ => Ok(()),
            }
        }

        fn set(&self, status: u32) -> u32 {
            self.registers.get(&status).copied().unwrap_or(0)
        }
    }

    impl Mmio for Card {
        fn read32(&self, bar: Bar, offset: u32) -> Result<u32, MmioError> {
            let mut tree = self.0.lock().unwrap();
            tree.access(bar, offset)?;
            Ok(tree.set(offset))
        }

        fn write32(&self, bar: Bar, offset: u32, value: u32) -> Result<(), MmioError> {
            let mut tree = self.0.lock().unwrap();
            tree.access(bar, offset)?;
            match offset {
                qdma_csr::ERROR_INTERRUPT => drop(tree.registers.insert(offset, value)),
                _ => *tree.registers.entry(offset).or_default() &= !value,
            }
            for leaf in &EQDMA {
                if tree.set(leaf.status) & leaf.enable != 0 {
                    *tree.registers.entry(qdma_csr::GLBL_ERROR_STATUS).or_default() |= leaf.root;
                }
            }
            tree.notify();
            Ok(())
        }
    }

    const QUEUE_RANGE: [u32; 3] = [qdma_csr::GLBL_TRQ_ERROR_STATUS, 1 << 5, 1 << 3];
    const INVALID_CIDX: [u32; 3] = [qdma_csr::C2H_ERROR_STATUS, 1 << 14, 1 << 8];

    fn serve(card: &Card) -> CardErrors {
        let (found, done) = service(card, IpVersion::Q40, FuncId(0), Vector(9));
        done.unwrap();
        found
    }

    /// Whichever access fails: what was found is told, by this service or the next, and the interrupt is armed unless it is
    /// the arming that failed.
    #[test]
    fn an_access_that_fails_loses_no_error() {
        let bits = |found: &CardErrors| found.iter().map(|(_, status)| status).fold(0, |all, status| all | status);
        let card = |broken| {
            let card = Card(Mutex::default());
            card.0.lock().unwrap().raise(QUEUE_RANGE);
            card.0.lock().unwrap().raise(INVALID_CIDX);
            card.0.lock().unwrap().registers.insert(qdma_csr::C2H_FIRST_ERROR_QID, 14 << 16 | 66);
            card.0.lock().unwrap().broken = broken;
            card
        };
        let whole = card(None);
        serve(&whole);
        let accesses = whole.0.lock().unwrap().accesses;
        assert!(accesses > 6, "{accesses} accesses are too few to be a service");
        for broken in 0..accesses {
            let card = card(Some(broken));
            let (found, done) = service(&card, IpVersion::Q40, FuncId(0), Vector(9));
            assert!(done.is_err(), "access {broken}");
            if broken + 1 < accesses {
                let tree = card.0.lock().unwrap();
                let armed = tree.set(qdma_csr::ERROR_INTERRUPT) & ARM != 0;
                assert!(armed || tree.interrupts == 1, "access {broken}: neither armed nor fired");
            }
            let totals = ErrorTotals::default();
            totals.owe(&found);
            let told = totals.with_owed(serve(&card));
            assert_eq!(bits(&told), QUEUE_RANGE[1] | INVALID_CIDX[1], "access {broken}");
            assert_eq!(told.first_queue, Some(Qid(66)), "access {broken}");
            assert!(totals.with_owed(serve(&card)).is_empty(), "told once");
        }
    }

    /// An error that comes while another is being served is told in the same breath or interrupts again, at whatever access
    /// it comes: also the same error, and one of the same register.
    #[test]
    fn an_error_that_comes_meanwhile_is_never_lost() {
        let again = [QUEUE_RANGE[0], 1 << 7, QUEUE_RANGE[2]];
        for late in [QUEUE_RANGE, INVALID_CIDX, again] {
            let served_at = Cell::new(0);
            for at in 0.. {
                let card = Card(Mutex::default());
                card.0.lock().unwrap().raise(QUEUE_RANGE);
                card.0.lock().unwrap().late = Some((at, late));
                let mut told = serve(&card).named().map(|(_, bit, _)| 1 << bit).fold(0, |all, bit: u32| all | bit);
                if card.0.lock().unwrap().accesses <= at {
                    break;
                }
                served_at.set(at);
                let interrupts = card.0.lock().unwrap().interrupts;
                for _ in 0..interrupts {
                    told |= serve(&card).named().map(|(_, bit, _)| 1 << bit).fold(0, |all, bit: u32| all | bit);
                }
                let tree = card.0.lock().unwrap();
                assert_eq!(told & late[1], late[1], "an error at access {at} was not told");
                assert_eq!(tree.set(qdma_csr::GLBL_ERROR_STATUS), 0, "access {at}");
                assert_eq!(
                    tree.set(qdma_csr::ERROR_INTERRUPT) & ARM,
                    ARM,
                    "access {at}: the next error must interrupt"
                );
            }
            assert!(served_at.get() >= 4, "too few accesses to be a service");
        }
    }

    #[test]
    fn a_report_names_register_bit_meaning_and_queue() {
        let card = Card(Mutex::default());
        card.0.lock().unwrap().raise(QUEUE_RANGE);
        card.0.lock().unwrap().raise(INVALID_CIDX);
        card.0.lock().unwrap().registers.insert(qdma_csr::C2H_FIRST_ERROR_QID, 14 << 16 | 66);
        let errors = serve(&card);
        let report = "target: queue out of range (bit 5); C2H: invalid CIDX (bit 14); first queue 66";
        assert_eq!(errors.to_string(), report);
        assert_eq!(serve(&card).to_string(), "no card errors");
    }

    /// Every bit that is reported has a name, except those of the RAMs, which name a memory.
    #[test]
    fn reported_bits_of_the_queue_engines_have_names() {
        for leaf in EQDMA.iter().filter(|leaf| ["descriptor", "target", "C2H", "H2C"].contains(&leaf.name)) {
            let nameless: Vec<u8> =
                (0..32).filter(|bit| leaf.enable >> bit & 1 == 1 && leaf.name_of(*bit).is_none()).collect();
            assert_eq!(nameless, [], "{}", leaf.name);
        }
    }
}
