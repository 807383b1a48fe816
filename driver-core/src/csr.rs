//! The CSRs that all functions share: tables, prefetch, coalescing, throttle. Function 0 writes them.
//!
//! Order and values are the vendor driver's (`spec/qdma.md` 4.1). Where EQDMA has other fields at the same offset than the
//! 3.1 core for which that driver was written (section 0 there), EQDMA gets the values of AMD's DPDK driver.

use regs::{Bar, qdma_csr};

use crate::config::{DeviceConfig, IpVersion};
use crate::error::Cause;
use crate::geometry::BufferGeometry;
use crate::platform::{Mmio, MmioError};
use crate::ring::Span;
use crate::tables::{self, Chosen, Table, TableKind};

/// A cycle of the QDMA's user clock, 250 MHz.
const CYCLE_NS: u32 = 4;

/// Ticks of 100 ns.
const TIMER_TICK_CYCLES: u32 = 100 / CYCLE_NS;

/// Fetch up to 64 descriptors at once, write back every 4.
const DSC_CFG: u32 = 6 << 3;

/// The sizes that this function's queues use, and the tables that hold them.
#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    pub(crate) tx_ring: Chosen,
    pub(crate) rx_ring: Chosen,
    pub(crate) rx_buffer: Chosen,
    pub(crate) tx_span: Span,
    pub(crate) rx_span: Span,
    pub(crate) geometry: BufferGeometry,
    rings: Table,
    buffers: Table,
}

impl Sizes {
    /// Choose entries of the vendor's tables, changing those that must be. Touches no card: function 0.
    pub(crate) fn plan(config: &DeviceConfig, page_bytes: usize) -> Result<Self, Cause> {
        Self::choose(config, page_bytes, tables::RING_SIZES, tables::BUFFER_SIZES, true)
    }

    /// Find entries in the tables as function 0 programmed them.
    pub(crate) fn find(mmio: &impl Mmio, config: &DeviceConfig, page_bytes: usize) -> Result<Self, Cause> {
        let rings = read_table(mmio, qdma_csr::GLBL_RING_SIZE)?;
        let buffers = read_table(mmio, qdma_csr::C2H_BUFFER_SIZE)?;
        Self::choose(config, page_bytes, rings, buffers, false)
    }

    /// The same tables, other entries of them.
    pub(crate) fn chosen_again(&self, config: &DeviceConfig, page_bytes: usize) -> Result<Self, Cause> {
        Self::choose(config, page_bytes, self.rings.values, self.buffers.values, false)
    }

    /// The ring sizes that the card has.
    pub(crate) fn ring_choices(&self) -> [u16; tables::LEN] {
        self.rings.values
    }

    fn choose(
        config: &DeviceConfig,
        page_bytes: usize,
        rings: [u16; tables::LEN],
        buffers: [u16; tables::LEN],
        may_program: bool,
    ) -> Result<Self, Cause> {
        let mut rings = Table::new(TableKind::RingSize, rings);
        let mut buffers = Table::new(TableKind::BufferSize, buffers);
        rings.reserve(config.tx_ring);
        rings.reserve(config.rx_ring);
        let tx_ring = rings.choose(config.tx_ring, may_program)?;
        let rx_ring = rings.choose(config.rx_ring, may_program)?;
        let rx_buffer = buffers.choose(config.rx_buffer, may_program)?;
        let geometry = BufferGeometry::new(page_bytes, rx_buffer.value, config.max_frame_len_bytes)?;
        Ok(Self {
            tx_ring,
            rx_ring,
            rx_buffer,
            tx_span: span(tx_ring, 1, config)?,
            rx_span: span(rx_ring, geometry.descriptors_max(), config)?,
            geometry,
            rings,
            buffers,
        })
    }
}

/// The ring, if the longest frame fits into it.
fn span(ring: Chosen, needed: u16, config: &DeviceConfig) -> Result<Span, Cause> {
    let too_small = |capacity| Cause::RingTooSmall {
        entries: ring.value,
        capacity,
        frame_len_bytes: config.max_frame_len_bytes,
        needed,
    };
    match Span::new(ring.value) {
        Some(span) if span.capacity() >= needed => Ok(span),
        Some(span) => Err(too_small(span.capacity())),
        None => Err(too_small(0)),
    }
}

/// Write all of them.
pub(crate) fn program(mmio: &impl Mmio, ip: IpVersion, sizes: &Sizes) -> Result<(), MmioError> {
    write_table(mmio, qdma_csr::GLBL_RING_SIZE, &sizes.rings.values)?;
    write_table(mmio, qdma_csr::C2H_BUFFER_SIZE, &sizes.buffers.values)?;
    mmio.write32(Bar::Qdma, qdma_csr::INTERRUPT_TIMER_TICK, TIMER_TICK_CYCLES)?;
    write_table(mmio, qdma_csr::C2H_TIMER_COUNT, &tables::TIMERS)?;
    write_table(mmio, qdma_csr::C2H_COUNTER_THRESHOLD, &tables::COUNTERS)?;
    mmio.write32(Bar::Qdma, qdma_csr::GLBL_DSC_CFG, DSC_CFG)?;
    program_prefetch(mmio, ip)?;
    let depth = mmio.read32(Bar::Qdma, qdma_csr::C2H_COALESCE_DEPTH)? & 0x3F;
    mmio.write32(Bar::Qdma, qdma_csr::C2H_COALESCE, depth << 26 | 25 << 14 | 5 << 2)?;
    mmio.write32(Bar::Qdma, qdma_csr::H2C_REQ_THROTTLE, throttle(ip))
}

fn program_prefetch(mmio: &impl Mmio, ip: IpVersion) -> Result<(), MmioError> {
    let cache = mmio.read32(Bar::Qdma, qdma_csr::C2H_PREFETCH_CACHE_DEPTH)? & 0xFF;
    let queues = cache / 2;
    let evict = queues.saturating_sub(2);
    match ip {
        // One register: free-list threshold 256, 8 descriptors a queue, and the two queue counts.
        IpVersion::Q31 => {
            mmio.write32(Bar::Qdma, qdma_csr::C2H_PREFETCH_CFG, evict << 25 | (queues & 0x7F) << 18 | 8 << 9 | 256)
        }
        // Three registers.
        IpVersion::Q40 | IpVersion::Q50 => {
            mmio.write32(Bar::Qdma, qdma_csr::C2H_PREFETCH_CFG, 256)?;
            mmio.write32(Bar::Qdma, qdma_csr::C2H_PREFETCH_CFG_1, evict << 16 | queues)?;
            mmio.write32(Bar::Qdma, qdma_csr::C2H_PREFETCH_CFG_2, 8)
        }
    }
}

/// 16 KiB of reads in flight, requests uncounted (3.1); 20 KiB (EQDMA).
fn throttle(ip: IpVersion) -> u32 {
    match ip {
        IpVersion::Q31 => 0x60 << 17 | 1 << 16 | 0x4000,
        IpVersion::Q40 | IpVersion::Q50 => 0xC0 << 19 | 1 << 18 | 0x5000,
    }
}

fn write_table(mmio: &impl Mmio, first: u32, values: &[u16; tables::LEN]) -> Result<(), MmioError> {
    (0..).zip(values).try_for_each(|(i, value)| mmio.write32(Bar::Qdma, first + 4 * i, u32::from(*value)))
}

/// Nanoseconds of a timer tick, as programmed.
pub(crate) fn tick_ns(mmio: &impl Mmio) -> Result<u32, MmioError> {
    mmio.read32(Bar::Qdma, qdma_csr::INTERRUPT_TIMER_TICK).map(|cycles| cycles.saturating_mul(CYCLE_NS))
}

pub(crate) fn read_table(mmio: &impl Mmio, first: u32) -> Result<[u16; tables::LEN], MmioError> {
    let mut values = [0; tables::LEN];
    for (i, value) in (0..).zip(&mut values) {
        *value = (mmio.read32(Bar::Qdma, first + 4 * i)? & 0xFFFF) as u16;
    }
    Ok(values)
}
