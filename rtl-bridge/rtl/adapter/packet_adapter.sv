// Packet adapter of one port: frame buffers between the MAC's clock and 250 MHz, both ways, and their counters.
//
// Receive stores whole frames and drops whole frames (packet_adapter_rx); transmit sends whole frames without gaps
// (packet_adapter_tx). Both buffers hold 2^ceil(log2(1.5 * MAX_PKT_LEN / 64)) beats.
//
// A reset forgets what is stored and clears the counters, but a frame that has begun to leave is finished first; live_o rises when
// the reset is over on all sides.
//
// rx_disabled_i, a pulse for each frame that the MAC discarded, must come in the cycle in which the frame's last beat would
// have been on s_axis_rx: then mon_rx_end keeps the order of arrival. (With a plugin that delays frames, ends of
// discarded frames come early by that delay.)
`include "onic_assert.svh"
`default_nettype none
module packet_adapter #(
  parameter int unsigned PortId      = 0,
  parameter int unsigned MAX_PKT_LEN = 1518
) (
  input  wire          axil_aclk,
  input  wire          axil_aresetn,
  input  wire          s_axil_awvalid,
  input  wire   [31:0] s_axil_awaddr,
  output logic         s_axil_awready,
  input  wire          s_axil_wvalid,
  input  wire   [31:0] s_axil_wdata,
  output logic         s_axil_wready,
  output logic         s_axil_bvalid,
  output logic   [1:0] s_axil_bresp,
  input  wire          s_axil_bready,
  input  wire          s_axil_arvalid,
  input  wire   [31:0] s_axil_araddr,
  output logic         s_axil_arready,
  output logic         s_axil_rvalid,
  output logic  [31:0] s_axil_rdata,
  output logic   [1:0] s_axil_rresp,
  input  wire          s_axil_rready,
  // 250 MHz side
  input  wire          axis_aclk,
  input  wire          axis_rstn,
  input  wire          axis_pwr_rstn,                 // power-up reset, also below; follows frames through other resets
  input  wire          s_axis_tx_tvalid,
  input  wire  [511:0] s_axis_tx_tdata,
  input  wire   [63:0] s_axis_tx_tkeep,
  input  wire          s_axis_tx_tlast,
  input  wire   [15:0] s_axis_tx_tuser_size,
  input  wire   [15:0] s_axis_tx_tuser_dst,
  output logic         s_axis_tx_tready,
  output logic         m_axis_rx_tvalid,
  output logic [511:0] m_axis_rx_tdata,
  output logic  [63:0] m_axis_rx_tkeep,
  output logic         m_axis_rx_tlast,
  output logic  [15:0] m_axis_rx_tuser_size,
  output logic  [15:0] m_axis_rx_tuser_src,
  output logic  [15:0] m_axis_rx_tuser_dst,
  input  wire          m_axis_rx_tready,
  output logic         mon_tx_end_valid,
  output logic   [3:0] mon_tx_end_reason,
  // 322 MHz side
  input  wire          cmac_clk,
  input  wire          cmac_rstn,
  input  wire          cmac_pwr_rstn,
  output logic         live_o,                        // cmac_clk: out of reset
  output logic         m_axis_tx_tvalid,
  output logic [511:0] m_axis_tx_tdata,
  output logic  [63:0] m_axis_tx_tkeep,
  output logic         m_axis_tx_tlast,
  output logic         m_axis_tx_tuser_err,
  input  wire          m_axis_tx_tready,
  input  wire          s_axis_rx_tvalid,
  input  wire  [511:0] s_axis_rx_tdata,
  input  wire   [63:0] s_axis_rx_tkeep,
  input  wire          s_axis_rx_tlast,
  input  wire          s_axis_rx_tuser_err,
  input  wire          rx_disabled_i,                 // the MAC discarded a frame
  input  wire          rx_wire_i,                     // a frame ended at the MAC's input
  input  wire          tx_wire_i,                     // a frame left on the wire
  output logic  [15:0] rx_room_beats,
  output logic         mon_rx_end_valid,
  output logic   [3:0] mon_rx_end_reason
);
  import packet_adapter_pkg::*;
  localparam int unsigned Depth     = buffer_depth_beats(MAX_PKT_LEN);
  localparam int unsigned RoomWidth = $clog2(Depth) + 1;

  // ---- Receive ----
  logic                 rx_end_valid, rx_disabled_q, rx_live;
  logic           [3:0] rx_end_reason;
  logic          [15:0] rx_end_len, rx_left;
  logic [RoomWidth-1:0] rx_room;

  packet_adapter_rx #(.PortId(PortId), .Depth(Depth)) u_rx (
    .cmac_clk, .cmac_rstn, .cmac_pwr_rstn,
    .s_axis_rx_tvalid, .s_axis_rx_tdata, .s_axis_rx_tkeep, .s_axis_rx_tlast, .s_axis_rx_tuser_err,
    .end_valid_o(rx_end_valid), .end_reason_o(rx_end_reason), .end_len_o(rx_end_len),
    .room_beats_o(rx_room), .left_o(rx_left), .live_o(rx_live),
    .axis_aclk, .axis_rstn, .axis_pwr_rstn,
    .m_axis_rx_tvalid, .m_axis_rx_tdata, .m_axis_rx_tkeep, .m_axis_rx_tlast, .m_axis_rx_tuser_size, .m_axis_rx_tuser_src,
    .m_axis_rx_tuser_dst, .m_axis_rx_tready
  );
  assign rx_room_beats = 16'(rx_room);

  // A frame discarded by the MAC ends here like the others.
  always_ff @(posedge cmac_clk) rx_disabled_q <= rx_disabled_i;
  assign mon_rx_end_valid  = rx_end_valid || rx_disabled_q;
  assign mon_rx_end_reason = rx_disabled_q ? ReasonDisabled : rx_end_reason;

  // ---- Transmit ----
  logic        tx_end_valid, tx_handed, tx_live;
  logic  [3:0] tx_end_reason;
  logic [15:0] tx_end_len;

  packet_adapter_tx #(.PortId(PortId), .Depth(Depth)) u_tx (
    .axis_aclk, .axis_rstn, .axis_pwr_rstn,
    .s_axis_tx_tvalid, .s_axis_tx_tdata, .s_axis_tx_tkeep, .s_axis_tx_tlast, .s_axis_tx_tuser_size, .s_axis_tx_tuser_dst,
    .s_axis_tx_tready,
    .mon_end_valid_o(mon_tx_end_valid), .mon_end_reason_o(mon_tx_end_reason),
    .end_valid_o(tx_end_valid), .end_reason_o(tx_end_reason), .end_len_o(tx_end_len),
    .handed_o(tx_handed), .live_o(tx_live), .cmac_clk, .cmac_rstn, .cmac_pwr_rstn,
    .m_axis_tx_tvalid, .m_axis_tx_tdata, .m_axis_tx_tkeep, .m_axis_tx_tlast, .m_axis_tx_tuser_err, .m_axis_tx_tready
  );

  always_ff @(posedge cmac_clk) live_o <= cmac_rstn && rx_live && tx_live;

  packet_adapter_register u_register (
    .axil_aclk, .axil_aresetn,
    .s_axil_awvalid, .s_axil_awaddr, .s_axil_awready, .s_axil_wvalid, .s_axil_wdata, .s_axil_wready,
    .s_axil_bvalid, .s_axil_bresp, .s_axil_bready, .s_axil_arvalid, .s_axil_araddr, .s_axil_arready,
    .s_axil_rvalid, .s_axil_rdata, .s_axil_rresp, .s_axil_rready,
    .cmac_clk, .cmac_rstn(live_o), .cmac_pwr_rstn,
    .rx_end_valid_i(mon_rx_end_valid), .rx_end_reason_i(mon_rx_end_reason), .rx_end_len_i(rx_end_len), .rx_left_i(rx_left),
    .rx_wire_i, .tx_end_valid_i(tx_end_valid), .tx_end_reason_i(tx_end_reason), .tx_end_len_i(tx_end_len),
    .tx_handed_i(tx_handed), .tx_wire_i
  );

  `ONIC_ASSERT(RxOneEnd_A, cmac_clk, cmac_rstn, !(rx_end_valid && rx_disabled_q), "two frames end in one cycle")
endmodule
`default_nettype wire
