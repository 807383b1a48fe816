//! What a page pool counts, under Linux's names.
//!
//! Source: Linux `Documentation/networking/page_pool.rst`, "Stats API and structures"; the names for `ethtool -S` are
//! those of its `page_pool_ethtool_stats`.

/// How pages were had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AllocStatistics {
    /// From the fast cache.
    pub fast: u64,
    /// From the platform. One such allocation fills the cache with several pages.
    pub slow: u64,
    /// From the platform, several pages in one piece. Always 0: pages here are single ones.
    pub slow_high_order: u64,
    /// The recycle ring was empty, so that the platform had to be asked.
    pub empty: u64,
    /// From the cache after it was filled from the recycle ring.
    pub refill: u64,
    /// Pages of the ring that lay on another memory node. Always 0: a platform here has one.
    pub waive: u64,
}

/// What became of pages that came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecycleStatistics {
    /// Put into the fast cache.
    pub cached: u64,
    /// The fast cache was full: the ring was tried.
    pub cache_full: u64,
    /// Put into the recycle ring.
    pub ring: u64,
    /// Freed, the ring was full.
    pub ring_full: u64,
    /// Freed because it can't be used again: in Linux somebody else still refers to it, here its mapping was ended, or it
    /// is not this pool's.
    pub released_refcnt: u64,
}

/// All of it. 64-bit, and never reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolStatistics {
    /// How pages were had.
    pub alloc: AllocStatistics,
    /// What became of pages that came back.
    pub recycle: RecycleStatistics,
}

impl PoolStatistics {
    /// Names and values, in Linux's order.
    pub fn named(&self) -> [(&'static str, u64); 11] {
        let Self { alloc, recycle } = self;
        [
            ("rx_pp_alloc_fast", alloc.fast),
            ("rx_pp_alloc_slow", alloc.slow),
            ("rx_pp_alloc_slow_ho", alloc.slow_high_order),
            ("rx_pp_alloc_empty", alloc.empty),
            ("rx_pp_alloc_refill", alloc.refill),
            ("rx_pp_alloc_waive", alloc.waive),
            ("rx_pp_recycle_cached", recycle.cached),
            ("rx_pp_recycle_cache_full", recycle.cache_full),
            ("rx_pp_recycle_ring", recycle.ring),
            ("rx_pp_recycle_ring_full", recycle.ring_full),
            ("rx_pp_recycle_released_ref", recycle.released_refcnt),
        ]
    }
}

impl core::ops::Add for PoolStatistics {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (a, b) = (self.alloc, other.alloc);
        let (c, d) = (self.recycle, other.recycle);
        Self {
            alloc: AllocStatistics {
                fast: a.fast + b.fast,
                slow: a.slow + b.slow,
                slow_high_order: a.slow_high_order + b.slow_high_order,
                empty: a.empty + b.empty,
                refill: a.refill + b.refill,
                waive: a.waive + b.waive,
            },
            recycle: RecycleStatistics {
                cached: c.cached + d.cached,
                cache_full: c.cache_full + d.cache_full,
                ring: c.ring + d.ring,
                ring_full: c.ring_full + d.ring_full,
                released_refcnt: c.released_refcnt + d.released_refcnt,
            },
        }
    }
}
