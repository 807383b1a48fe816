//! The page pool's recycle ring in the testbench: crossbeam's bounded queue of many producers and consumers.
//!
//! driver-core has a ring of its own for where there is no std ([`driver_core::pool::AtomicRing`]). This one carries any
//! page value, and pages that are still in it when it is dropped are dropped with it.

use crossbeam_queue::ArrayQueue;
use driver_core::DmaMemory;
use driver_core::pool::{PagePool, RecycleRing};

use crate::host_memory::FunctionDma;

/// See the [module](self).
#[derive(Debug)]
pub struct ArrayRing<T>(ArrayQueue<T>);

impl<T: Send> RecycleRing<T> for ArrayRing<T> {
    fn with_capacity(pages: usize) -> Self {
        // The queue refuses to be built for nothing.
        Self(ArrayQueue::new(pages.max(1)))
    }

    fn push(&self, page: T) -> Result<(), T> {
        self.0.push(page)
    }

    fn pop(&self) -> Option<T> {
        self.0.pop()
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// A page pool with this ring on any memory.
pub type PoolOn<D> = PagePool<D, ArrayRing<<D as DmaMemory>::DevicePage>>;

/// The page pool of one receive queue on the testbench's host memory.
pub type Pool = PoolOn<FunctionDma>;

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use driver_core::DmaMemory;
    use driver_core::pool::PoolConfig;
    use regs::FuncId;

    use super::*;
    use crate::host_memory::SharedMemory;

    #[test]
    fn pages_go_to_threads_and_come_home() {
        let memory = SharedMemory::new(true);
        let dma = Arc::new(memory.function(FuncId(0)));
        let mut pool = Pool::new(PoolConfig { pool_size: 64, ..PoolConfig::default() }).expect("a valid pool");
        for _ in 0..100 {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let page = pool.alloc(&dma).expect("a page");
                    let page = dma.sync_for_cpu(page, 256, 60);
                    let (dma, recycler) = (Arc::clone(&dma), pool.recycler());
                    thread::spawn(move || recycler.put(&dma, page, 60))
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            assert_eq!(pool.in_flight(), 0);
        }
        let recycle = pool.statistics().recycle;
        assert_eq!((recycle.ring, recycle.released_refcnt), (400, 0));
        pool.close(&dma);
        assert_eq!((memory.counts().pages_out, memory.counts().mappings), (0, 0));
        assert!(memory.violations().is_empty(), "{}", memory.violations()[0]);
    }

    #[test]
    fn fragments_of_one_page_come_home_from_anywhere() {
        let memory = SharedMemory::new(true);
        let dma = memory.function(FuncId(0));
        let mut pool = Pool::new(PoolConfig { fragments_max: 8, ..PoolConfig::default() }).expect("a valid pool");
        let fragments: Vec<_> = (0..4).map(|_| pool.alloc_fragment(&dma, 1024).expect("a fragment")).collect();
        for (i, fragment) in fragments.into_iter().enumerate() {
            let fragment = dma.sync_for_cpu(fragment, 0, 60);
            if i % 2 == 0 { pool.put(&dma, fragment, 60) } else { pool.recycler().put(&dma, fragment, 60) }
        }
        pool.close(&dma);
        assert_eq!((pool.in_flight(), memory.counts().pages_out), (0, 0));
        assert!(memory.violations().is_empty(), "{}", memory.violations()[0]);
    }
}
