//! Where a receive queue gets its pages: each source that driver-core has, drawn once for each driver, so that whatever
//! a card does to a queue meets all of them.

use driver_core::pool::{Buffer, PagePool, PoolConfig, PoolStatistics};
use driver_core::{Direction, DmaError, HEADROOM_BYTES, KeptPages, PageSource, TAILROOM_BYTES};
use traces::synth::Rng;

use super::platform::HostileDma;
use crate::host_memory::{CpuPage, DevicePage};
use crate::pool_ring::ArrayRing;

type Pool = PagePool<HostileDma, ArrayRing<DevicePage>>;

/// Which source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Pages kept by the queue.
    Kept,
    /// A page pool.
    Pool,
    /// A page pool whose buffers are fragments.
    Fragments,
    /// The same, from which frames may be sent back.
    FragmentsBoth,
    /// Pages kept by the queue, from which frames may be sent back.
    KeptBoth,
    /// A page pool, likewise.
    PoolBoth,
}

impl Kind {
    /// Fragments only where more than one of them fits a page.
    pub(super) fn draw(rng: &mut Rng, buffer: u16) -> Kind {
        let all = [Kind::Kept, Kind::Pool, Kind::KeptBoth, Kind::PoolBoth, Kind::Fragments, Kind::FragmentsBoth];
        *rng.pick(if buffer <= 1024 { &all } else { &all[..4] })
    }
}

/// The source.
// The pool is the larger one; there is one source for each queue.
#[allow(clippy::large_enum_variant)]
pub(super) enum Supply {
    Kept(KeptPages<HostileDma>),
    Pool(Pool),
}

impl Supply {
    /// For a ring of so many entries and buffers of so many bytes.
    pub(super) fn new(kind: Kind, buffer: u16, entries: u16) -> Supply {
        let len_bytes = usize::from(HEADROOM_BYTES + buffer + TAILROOM_BYTES).next_multiple_of(64);
        let pool_size = usize::from(entries);
        let config = match kind {
            Kind::Kept => return Supply::Kept(KeptPages::default()),
            Kind::KeptBoth => return Supply::Kept(KeptPages::bidirectional()),
            Kind::PoolBoth => PoolConfig { pool_size, direction: Direction::Bidirectional, ..PoolConfig::default() },
            Kind::Pool => PoolConfig { pool_size, ..PoolConfig::default() },
            // Some more than the ring needs: sinks keep a few.
            Kind::Fragments | Kind::FragmentsBoth => PoolConfig {
                pool_size,
                direction: match kind {
                    Kind::FragmentsBoth => Direction::Bidirectional,
                    _ => Direction::FromDevice,
                },
                fragments_max: 2 * pool_size,
                buffer: Buffer::Fragment { len_bytes },
                ..PoolConfig::default()
            },
        };
        Supply::Pool(Pool::new(config).expect("a ring has entries, and pages come FromDevice"))
    }
}

impl PageSource<HostileDma> for Supply {
    fn direction(&self) -> Direction {
        match self {
            Supply::Kept(source) => source.direction(),
            Supply::Pool(source) => source.direction(),
        }
    }

    fn buffer_bytes(&self, dma: &HostileDma) -> usize {
        match self {
            Supply::Kept(source) => source.buffer_bytes(dma),
            Supply::Pool(source) => source.buffer_bytes(dma),
        }
    }

    fn statistics(&self) -> PoolStatistics {
        match self {
            Supply::Kept(source) => PageSource::<HostileDma>::statistics(source),
            Supply::Pool(source) => source.statistics(),
        }
    }

    fn acquire(&mut self, dma: &HostileDma) -> Result<DevicePage, DmaError> {
        match self {
            Supply::Kept(source) => source.acquire(dma),
            Supply::Pool(source) => source.acquire(dma),
        }
    }

    fn give_back(&mut self, dma: &HostileDma, page: CpuPage) {
        match self {
            Supply::Kept(source) => source.give_back(dma, page),
            Supply::Pool(source) => source.give_back(dma, page),
        }
    }

    fn retire(&mut self, dma: &HostileDma, page: DevicePage) {
        match self {
            Supply::Kept(source) => source.retire(dma, page),
            Supply::Pool(source) => source.retire(dma, page),
        }
    }

    fn drain(&mut self, dma: &HostileDma) {
        match self {
            Supply::Kept(source) => source.drain(dma),
            Supply::Pool(source) => source.drain(dma),
        }
    }
}
