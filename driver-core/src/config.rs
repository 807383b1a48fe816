//! What a user chooses before the driver touches the card.

use alloc::vec;
use alloc::vec::Vec;

use regs::context::TriggerMode;
use regs::{FuncId, PortId};

use crate::rss;

/// Which QDMA IP answers at BAR0. CSR fields and error bits differ (`spec/qdma.md` section 0); contexts and doorbells
/// don't, as far as this driver uses them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IpVersion {
    /// QDMA 3.1 (Vivado 2018.3 to 2019.2): the dialect in which the vendor's driver is written.
    Q31,
    /// EQDMA 4.0 (2020.1 to 2022.1): what OpenNIC is built with.
    Q40,
    /// EQDMA 5.0 (2022.2 and later).
    Q50,
}

/// One entry of a 16-entry CSR table: which one, or which value it has to hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableEntry {
    /// The entry at this index, whatever it holds.
    Index(u8),
    /// An entry with this value. Function 0 programs one if the default table has none; other functions, which find the
    /// table as function 0 left it, are refused then.
    Value(u16),
}

/// Interrupt moderation of the receive queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moderation {
    /// Raise interrupts at all. Without them a queue must be polled; it loses nothing by it.
    pub interrupt: bool,
    /// The rule.
    pub mode: TriggerMode,
    /// Index into the timer table (CSR 0xA00…), 0…15. Index 0 holds 10 ticks: 1 us.
    pub timer_index: u8,
    /// Index into the counter table (CSR 0xA40…), 0…15. Index 0 holds 64 completions.
    pub counter_index: u8,
}

impl Moderation {
    /// Can it work?
    ///
    /// # Errors
    /// [`ConfigError::ModerationIndex`], or [`ConfigError::ModerationMode`] if some frames would never be told of.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Self { interrupt, mode, timer_index, counter_index } = *self;
        if timer_index > 15 || counter_index > 15 {
            return Err(ConfigError::ModerationIndex { timer_index, counter_index });
        }
        // OpenNIC's user logic triggers nothing, so that a rule without a timer leaves the last few frames untold.
        match mode {
            TriggerMode::Every | TriggerMode::UserTimer | TriggerMode::UserTimerCount => Ok(()),
            _ if !interrupt => Ok(()),
            _ => Err(ConfigError::ModerationMode { mode }),
        }
    }
}

/// How long the driver waits for the card, in ns of the platform's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// An indirect context command (the vendor's driver: 500 ms).
    pub context_ns: u64,
    /// A block to come out of reset (the vendor's driver: for ever).
    pub reset_ns: u64,
    /// Frames in flight, at a stop.
    pub quiesce_ns: u64,
    /// What may still be written after a queue was invalidated (`spec/qdma.md` 9.3): memory is kept that long.
    pub settle_ns: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { context_ns: 100_000_000, reset_ns: 100_000_000, quiesce_ns: 1_000_000, settle_ns: 10_000 }
    }
}

/// Everything that [`crate::Driver::bring_up`] needs to know of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceConfig {
    /// Which PCIe function.
    pub func: FuncId,
    /// This function programs what all share: CSRs, CMACs, the error interrupt. True for function 0.
    pub master: bool,
    /// The QDMA's dialect.
    pub ip_version: IpVersion,
    /// TX and RX queues, 1 or more.
    pub queues: u16,
    /// First absolute queue; by default 64 times the function, as the vendor's driver counts.
    pub queue_base: Option<u16>,
    /// Entries of a TX ring as the table holds them: the status entry included, and two fewer can be outstanding.
    pub tx_ring: TableEntry,
    /// Likewise of an RX descriptor ring and of its completion ring.
    pub rx_ring: TableEntry,
    /// Bytes the card may write into one receive buffer.
    pub rx_buffer: TableEntry,
    /// IP bytes in a frame: Ethernet header, VLAN tag and FCS left out. 68 or more.
    pub mtu: u16,
    /// The longest frame that the card's MAC lets through, FCS left out: the shell's `MAX_PKT_LEN` less 4. Receive rings are
    /// laid out for it, and no MTU above it is accepted.
    pub max_frame_len_bytes: u16,
    /// Frames to send that are shorter get zeros appended up to this length; 0 sends runts as they are.
    pub min_tx_frame_len_bytes: u16,
    /// RSS key in ethtool's byte order; by default the card keeps its own.
    pub rss_key: Option<rss::Key>,
    /// RSS table; by default entry i is queue i mod `queues`.
    pub rss_table: Option<rss::Table>,
    /// When receive queues notify.
    pub moderation: Moderation,
    /// CMACs of the card. Function 0 sets them up, others check that they are there.
    pub ports: Vec<PortId>,
    /// The port whose receiver follows this function: enabled once the queues are up, disabled before they go, so that
    /// frames meet ready queues or a counted drop. `None`: the port is shared, and its receiver is switched on in bring-up
    /// as the vendor's driver does.
    pub own_port: Option<PortId>,
    /// RS-FEC on every port that function 0 sets up.
    pub rs_fec: bool,
    /// Time-outs.
    pub timeouts: Timeouts,
}

impl DeviceConfig {
    /// The defaults for a function of a card with one port for each function: 8 queues, rings of 4096 (TX) and 1024 (RX)
    /// entries, 2048-byte buffers, MTU 1500.
    pub fn new(func: FuncId) -> Self {
        let port = PortId(func.0);
        Self {
            func,
            master: func.0 == 0,
            ip_version: IpVersion::Q40,
            queues: 8,
            queue_base: None,
            tx_ring: TableEntry::Value(4096),
            rx_ring: TableEntry::Value(1024),
            rx_buffer: TableEntry::Value(2048),
            mtu: 1500,
            max_frame_len_bytes: 1514,
            min_tx_frame_len_bytes: 60,
            rss_key: None,
            rss_table: None,
            moderation: Moderation {
                interrupt: true,
                mode: TriggerMode::UserTimerCount,
                timer_index: 0,
                counter_index: 0,
            },
            ports: vec![port],
            own_port: Some(port),
            rs_fec: true,
            timeouts: Timeouts::default(),
        }
    }

    /// First absolute queue.
    pub fn base(&self) -> u16 {
        self.queue_base.unwrap_or(u16::from(self.func.0) * QUEUES_PER_FUNCTION)
    }

    /// Check what can be checked without a card.
    ///
    /// # Errors
    /// [`ConfigError`], naming the field.
    pub fn check(&self) -> Result<(), ConfigError> {
        check_queues(self.queues, self.base())?;
        check_mtu(self.mtu, self.max_frame_len_bytes)?;
        self.moderation.check()?;
        check_padding(self.min_tx_frame_len_bytes, self.mtu)?;
        if let Some(port) = self.ports.iter().chain(&self.own_port).find(|port| port.0 > 1) {
            return Err(ConfigError::NoSuchPort { port: *port });
        }
        if self.func.0 > 3 {
            return Err(ConfigError::NoSuchFunction { func: self.func });
        }
        if let Some(table) = &self.rss_table {
            table.check(self.queues)?;
        }
        Ok(())
    }
}

/// The spacing of functions in the queue space, by the vendor driver's convention.
pub(crate) const QUEUES_PER_FUNCTION: u16 = 64;

/// Absolute queues that a QDMA can have.
pub(crate) const QUEUES_MAX: u32 = 2048;

/// Smallest MTU: what IPv4 asks of every host (RFC 791), and Linux's `ETH_MIN_MTU`.
pub const MTU_MIN: u16 = 68;

/// Largest MTU.
pub const MTU_MAX: u16 = 9600;

/// Ethernet header: two addresses and the type.
pub(crate) const ETH_HEADER_BYTES: u16 = 14;

/// The largest MTU on a card with this longest frame.
pub(crate) fn mtu_limit(max_frame_len_bytes: u16) -> u16 {
    max_frame_len_bytes.saturating_sub(ETH_HEADER_BYTES).min(MTU_MAX)
}

/// An MTU that is accepted is one that is in force: the driver sends it and the card passes it.
pub(crate) fn check_mtu(mtu: u16, max_frame_len_bytes: u16) -> Result<(), ConfigError> {
    let limit = mtu_limit(max_frame_len_bytes);
    if (MTU_MIN..=limit).contains(&mtu) { Ok(()) } else { Err(ConfigError::Mtu { mtu, limit, max_frame_len_bytes }) }
}

/// A frame padded to the minimum must still be one that the MTU allows.
pub(crate) fn check_padding(min_tx_frame_len_bytes: u16, mtu: u16) -> Result<(), ConfigError> {
    if min_tx_frame_len_bytes > mtu.saturating_add(ETH_HEADER_BYTES) {
        return Err(ConfigError::TxPadding { min_tx_frame_len_bytes, mtu });
    }
    Ok(())
}

pub(crate) fn check_queues(queues: u16, base: u16) -> Result<(), ConfigError> {
    if queues == 0 {
        return Err(ConfigError::NoQueues);
    }
    if u32::from(base) + u32::from(queues) > QUEUES_MAX {
        return Err(ConfigError::TooManyQueues { queues, base });
    }
    Ok(())
}

/// A configuration that can't work.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// A function without queues can do nothing.
    #[error("the function has no queues: ask for 1 or more (queues)")]
    NoQueues,
    /// The queue range runs past the QDMA's.
    #[error("{queues} queues from {base} on: the card has {QUEUES_MAX} (queues, queue_base)")]
    TooManyQueues {
        /// How many.
        queues: u16,
        /// The first.
        base: u16,
    },
    /// An MTU that could not be in force.
    #[error("MTU {mtu}: {MTU_MIN} to {limit} work on a card whose longest frame is {max_frame_len_bytes} bytes")]
    Mtu {
        /// Asked for.
        mtu: u16,
        /// The largest.
        limit: u16,
        /// The card's longest frame, FCS left out.
        max_frame_len_bytes: u16,
    },
    /// Padding past the MTU.
    #[error("frames can't be padded to {min_tx_frame_len_bytes} bytes with an MTU of {mtu} (min_tx_frame_len_bytes)")]
    TxPadding {
        /// Asked for.
        min_tx_frame_len_bytes: u16,
        /// The MTU.
        mtu: u16,
    },
    /// A function that no card has.
    #[error("{func}: a card has functions 0 to 3")]
    NoSuchFunction {
        /// Asked for.
        func: FuncId,
    },
    /// A port that no card has.
    #[error("{port}: a card has ports 0 and 1")]
    NoSuchPort {
        /// Asked for.
        port: PortId,
    },
    /// Timer and counter tables have 16 entries.
    #[error("moderation indices {timer_index} (timer) and {counter_index} (counter): each table has entries 0 to 15")]
    ModerationIndex {
        /// Asked for.
        timer_index: u8,
        /// Asked for.
        counter_index: u8,
    },
    /// A rule by which frames could wait for ever.
    #[error(
        "moderation {mode:?}: no interrupt is certain to come; Every, UserTimer and UserTimerCount work (moderation)"
    )]
    ModerationMode {
        /// Asked for.
        mode: TriggerMode,
    },
    /// The RSS table.
    #[error(transparent)]
    Rss(#[from] rss::RssError),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> DeviceConfig {
        DeviceConfig::new(FuncId(0))
    }

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(config().check(), Ok(()));
        assert_eq!(DeviceConfig::new(FuncId(1)).base(), 64);
    }

    #[test]
    fn no_queues_is_a_named_error() {
        assert_eq!(DeviceConfig { queues: 0, ..config() }.check(), Err(ConfigError::NoQueues));
    }

    #[test]
    fn queues_end_at_2048() {
        assert_eq!(DeviceConfig { queues: 64, queue_base: Some(1984), ..config() }.check(), Ok(()));
        assert!(DeviceConfig { queues: 65, queue_base: Some(1984), ..config() }.check().is_err());
        assert!(DeviceConfig { queues: u16::MAX, queue_base: Some(u16::MAX), ..config() }.check().is_err());
    }

    #[test]
    fn an_mtu_that_the_card_would_drop_is_refused() {
        let jumbo = DeviceConfig { max_frame_len_bytes: 9614, ..config() };
        for (mtu, accepted) in
            [(67, false), (68, true), (1000, true), (1500, true), (3498, true), (9600, true), (9601, false)]
        {
            assert_eq!(DeviceConfig { mtu, ..jumbo.clone() }.check().is_ok(), accepted, "MTU {mtu}");
        }
        assert!(DeviceConfig { mtu: 1501, ..config() }.check().is_err());
    }
}
