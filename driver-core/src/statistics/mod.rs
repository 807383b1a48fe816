//! What a function has moved and lost: by queue, by worker, by port, and as `ethtool -S` and `ip -s` show it.
//!
//! | who counts | cell | one writer | read by |
//! |---|---|---|---|
//! | a queue | its own fields, then the cell of its number | the thread that has the queue | anybody |
//! | a worker | [`Worker`] | the queues that it drives | anybody |
//! | a port's MAC | [`MacStatistics`] | whoever collects, one at a time | the functions of that port |
//! | the shell | its registers | the card | read when asked |
//!
//! Every value is 64 bits, is read whole, and outlives a down and up. Bytes leave the FCS out, except in the MAC's rows,
//! which count as its registers do.

mod counters;
mod mac;
mod names;
mod snapshot;
mod workers;

pub use counters::{RxCounters, TxCounters};
pub use mac::MacStatistics;
pub use names::VENDOR_ROWS;
pub use snapshot::{LinkStatistics, PortPart, QueueStatistics, Row, Statistics};
pub use workers::{Traffic, Worker};

pub(crate) use counters::{PoolCell, RxCell, RxLedger, TxCell, TxLedger};
pub(crate) use snapshot::{Cells, Source, read, read_port};
