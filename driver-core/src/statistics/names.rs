//! The names of `ethtool -S`: the vendor driver's 71 in its order (`spec/driver.md` section 7), and those that only our shell
//! has.

use regs::{cmac, packet_adapter, qdma_common};

/// A name and the offset of its counter in its block.
pub(super) type Named = (&'static str, u32);

/// Rows of the MAC.
pub(super) const MAC_ROWS: usize = 59;

/// Rows 1 to 59: the MAC, 48 bits each, as they were at the last TICK.
pub(super) const MAC: [Named; MAC_ROWS] = [
    ("stat_tx_total_pkts", cmac::STAT_TX_TOTAL_PKTS),
    ("stat_tx_total_good_pkts", cmac::STAT_TX_TOTAL_GOOD_PKTS),
    ("stat_tx_total_bytes", cmac::STAT_TX_TOTAL_BYTES),
    ("stat_tx_total_good_bytes", cmac::STAT_TX_TOTAL_GOOD_BYTES),
    ("stat_tx_pkt_64_bytes", cmac::STAT_TX_PKT_64_BYTES),
    ("stat_tx_pkt_65_127_bytes", cmac::STAT_TX_PKT_65_127_BYTES),
    ("stat_tx_pkt_128_255_bytes", cmac::STAT_TX_PKT_128_255_BYTES),
    ("stat_tx_pkt_256_511_bytes", cmac::STAT_TX_PKT_256_511_BYTES),
    ("stat_tx_pkt_512_1023_bytes", cmac::STAT_TX_PKT_512_1023_BYTES),
    ("stat_tx_pkt_1024_1518_bytes", cmac::STAT_TX_PKT_1024_1518_BYTES),
    ("stat_tx_pkt_1519_1522_bytes", cmac::STAT_TX_PKT_1519_1522_BYTES),
    ("stat_tx_pkt_1523_1548_bytes", cmac::STAT_TX_PKT_1523_1548_BYTES),
    ("stat_tx_pkt_1549_2047_bytes", cmac::STAT_TX_PKT_1549_2047_BYTES),
    ("stat_tx_pkt_2048_4095_bytes", cmac::STAT_TX_PKT_2048_4095_BYTES),
    ("stat_tx_pkt_4096_8191_bytes", cmac::STAT_TX_PKT_4096_8191_BYTES),
    ("stat_tx_pkt_8192_9215_bytes", cmac::STAT_TX_PKT_8192_9215_BYTES),
    ("stat_tx_pkt_large", cmac::STAT_TX_PKT_LARGE),
    ("stat_tx_pkt_small", cmac::STAT_TX_PKT_SMALL),
    ("stat_tx_bad_fcs", cmac::STAT_TX_BAD_FCS),
    ("stat_tx_unicast", cmac::STAT_TX_UNICAST),
    ("stat_tx_multicast", cmac::STAT_TX_MULTICAST),
    ("stat_tx_broadcast", cmac::STAT_TX_BROADCAST),
    ("stat_tx_vlan", cmac::STAT_TX_VLAN),
    ("stat_tx_pause", cmac::STAT_TX_PAUSE),
    ("stat_tx_user_pause", cmac::STAT_TX_USER_PAUSE),
    ("stat_rx_total_pkts", cmac::STAT_RX_TOTAL_PKTS),
    ("stat_rx_total_good_pkts", cmac::STAT_RX_TOTAL_GOOD_PKTS),
    ("stat_rx_total_bytes", cmac::STAT_RX_TOTAL_BYTES),
    ("stat_rx_total_good_bytes", cmac::STAT_RX_TOTAL_GOOD_BYTES),
    ("stat_rx_pkt_64_bytes", cmac::STAT_RX_PKT_64_BYTES),
    ("stat_rx_pkt_65_127_bytes", cmac::STAT_RX_PKT_65_127_BYTES),
    ("stat_rx_pkt_128_255_bytes", cmac::STAT_RX_PKT_128_255_BYTES),
    ("stat_rx_pkt_256_511_bytes", cmac::STAT_RX_PKT_256_511_BYTES),
    ("stat_rx_pkt_512_1023_bytes", cmac::STAT_RX_PKT_512_1023_BYTES),
    ("stat_rx_pkt_1024_1518_bytes", cmac::STAT_RX_PKT_1024_1518_BYTES),
    ("stat_rx_pkt_1519_1522_bytes", cmac::STAT_RX_PKT_1519_1522_BYTES),
    ("stat_rx_pkt_1523_1548_bytes", cmac::STAT_RX_PKT_1523_1548_BYTES),
    ("stat_rx_pkt_1549_2047_bytes", cmac::STAT_RX_PKT_1549_2047_BYTES),
    ("stat_rx_pkt_2048_4095_bytes", cmac::STAT_RX_PKT_2048_4095_BYTES),
    ("stat_rx_pkt_4096_8191_bytes", cmac::STAT_RX_PKT_4096_8191_BYTES),
    ("stat_rx_pkt_8192_9215_bytes", cmac::STAT_RX_PKT_8192_9215_BYTES),
    ("stat_rx_pkt_large", cmac::STAT_RX_PKT_LARGE),
    ("stat_rx_pkt_small", cmac::STAT_RX_PKT_SMALL),
    ("stat_rx_undersize", cmac::STAT_RX_UNDERSIZE),
    ("stat_rx_fragment", cmac::STAT_RX_FRAGMENT),
    ("stat_rx_oversize", cmac::STAT_RX_OVERSIZE),
    ("stat_rx_toolong", cmac::STAT_RX_TOOLONG),
    ("stat_rx_jabber", cmac::STAT_RX_JABBER),
    ("stat_rx_bad_fcs", cmac::STAT_RX_BAD_FCS),
    ("stat_rx_pkt_bad_fcs", cmac::STAT_RX_PKT_BAD_FCS),
    ("stat_rx_stomped_fcs", cmac::STAT_RX_STOMPED_FCS),
    ("stat_rx_unicast", cmac::STAT_RX_UNICAST),
    ("stat_rx_multicast", cmac::STAT_RX_MULTICAST),
    ("stat_rx_broadcast", cmac::STAT_RX_BROADCAST),
    ("stat_rx_vlan", cmac::STAT_RX_VLAN),
    ("stat_rx_pause", cmac::STAT_RX_PAUSE),
    ("stat_rx_user_pause", cmac::STAT_RX_USER_PAUSE),
    ("stat_rx_inrangeerr", cmac::STAT_RX_INRANGEERR),
    ("stat_rx_truncated", cmac::STAT_RX_TRUNCATED),
];

/// Rows 60 to 64: the packet adapter, 64 bits each, since the card's reset.
pub(super) const ADAPTER: [Named; 5] = [
    ("stat_adapt_tx_sent", packet_adapter::TX_PACKETS_SENT),
    ("stat_adapt_tx_drop", packet_adapter::TX_PACKETS_DROPPED),
    ("stat_adapt_rx_recv", packet_adapter::RX_PACKETS_RECEIVED),
    ("stat_adapt_rx_drop", packet_adapter::RX_PACKETS_DROPPED),
    ("stat_adapt_rx_error", packet_adapter::RX_PACKETS_ERROR),
];

/// Rows that the vendor's driver has: 59, 5, and the 7 sums of the XDP hook's verdicts.
pub const VENDOR_ROWS: usize = 71;

/// Further counters of the adapter. The bytes exist upstream too; the rest is ours, from offset 0x80 on.
pub(super) const ADAPTER_OURS: [Named; 14] = [
    ("stat_adapt_tx_sent_bytes", packet_adapter::TX_BYTES_SENT),
    ("stat_adapt_tx_drop_bytes", packet_adapter::TX_BYTES_DROPPED),
    ("stat_adapt_rx_recv_bytes", packet_adapter::RX_BYTES_RECEIVED),
    ("stat_adapt_rx_drop_bytes", packet_adapter::RX_BYTES_DROPPED),
    ("stat_adapt_rx_error_bytes", packet_adapter::RX_BYTES_ERROR),
    ("stat_adapt_rx_drop_overflow", packet_adapter::RX_DROP_OVERFLOW),
    ("stat_adapt_rx_drop_too_long", packet_adapter::RX_DROP_TOO_LONG),
    ("stat_adapt_rx_drop_disabled", packet_adapter::RX_DROP_DISABLED),
    ("stat_adapt_tx_drop_too_long", packet_adapter::TX_DROP_TOO_LONG),
    ("stat_adapt_tx_drop_dst", packet_adapter::TX_DROP_DST),
    ("stat_adapt_rx_wire", packet_adapter::RX_WIRE_PACKETS),
    ("stat_adapt_tx_wire", packet_adapter::TX_WIRE_PACKETS),
    ("stat_adapt_rx_inside", packet_adapter::RX_INSIDE),
    ("stat_adapt_tx_inside", packet_adapter::TX_INSIDE),
];

/// The QDMA subsystem's common page, all functions: ours.
pub(super) const QDMA_COMMON: [Named; 4] = [
    ("stat_qdma_c2h_packets", qdma_common::C2H_PACKETS),
    ("stat_qdma_c2h_drop_queue_range", qdma_common::C2H_DROP_QUEUE_RANGE),
    ("stat_qdma_h2c_packets", qdma_common::H2C_PACKETS),
    ("stat_qdma_h2c_drop_no_function", qdma_common::H2C_DROP_NO_FUNCTION),
];

/// The same page, this function's part; offsets are function 0's.
pub(super) const QDMA_FUNCTION: [Named; 4] = [
    ("stat_func_c2h_packets", qdma_common::FUNCTION_C2H_PACKETS),
    ("stat_func_c2h_drop_queue_range", qdma_common::FUNCTION_C2H_DROP_QUEUE_RANGE),
    ("stat_func_h2c_packets", qdma_common::FUNCTION_H2C_PACKETS),
    ("stat_func_c2h_inside", qdma_common::FUNCTION_C2H_INSIDE),
];
