// MAC subsystem of one port: an AXI-Stream MAC in place of the vendor's CMAC, its registers and statistics, and the QSFP
// placeholder. Window: 0x0000 MAC (8 KiB), 0x2000 QSFP (4 KiB).
//
// Frames come and go without FCS and preamble; lengths here, limits and statistics count the 4 bytes of the FCS.
// See cmac_rx and cmac_tx for what happens to frames, cmac_register for the registers.
`default_nettype none
module cmac_subsystem #(
  parameter int unsigned PortId = 0
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
  input  wire          block_rstn,                    // this block's reset on axil_aclk
  // Streams
  input  wire          cmac_clk,
  input  wire          cmac_rstn,                     // this block's reset on cmac_clk
  input  wire          cmac_pwr_rstn,                 // power-up reset
  input  wire   [15:0] min_pkt_len_i,                 // bytes with FCS, quasi static
  input  wire   [15:0] max_pkt_len_i,
  input  wire          s_axis_tx_tvalid,
  input  wire  [511:0] s_axis_tx_tdata,
  input  wire   [63:0] s_axis_tx_tkeep,
  input  wire          s_axis_tx_tlast,
  input  wire          s_axis_tx_tuser_err,
  output logic         s_axis_tx_tready,
  output logic         m_axis_rx_tvalid,
  output logic [511:0] m_axis_rx_tdata,
  output logic  [63:0] m_axis_rx_tkeep,
  output logic         m_axis_rx_tlast,
  output logic         m_axis_rx_tuser_err,
  output logic         rx_disabled_o,                 // with m_axis_rx: a frame ended that was discarded
  output logic         rx_wire_o,                     // a frame ended at the input
  output logic         tx_wire_o,                     // a frame left
  // Wire
  output logic         m_axis_cmac_tx_tvalid,
  output logic [511:0] m_axis_cmac_tx_tdata,
  output logic  [63:0] m_axis_cmac_tx_tkeep,
  output logic         m_axis_cmac_tx_tlast,
  output logic         m_axis_cmac_tx_tuser_err,
  input  wire          m_axis_cmac_tx_tready,
  input  wire          s_axis_cmac_rx_tvalid,
  input  wire  [511:0] s_axis_cmac_rx_tdata,
  input  wire   [63:0] s_axis_cmac_rx_tkeep,
  input  wire          s_axis_cmac_rx_tlast,
  input  wire          s_axis_cmac_rx_tuser_err
);
  // ---- Windows: 0 MAC, 1 QSFP ----
  logic  [1:0]       awvalid, awready, wvalid, wready, bvalid, bready, arvalid, arready, rvalid, rready;
  logic  [1:0][31:0] awaddr, wdata, araddr, rdata;
  logic  [1:0] [1:0] bresp, rresp;
  axil_xbar #(
    .NumSlaves(2),
    .Base({32'h2000, 32'h0000}),
    .Size({32'h1000, 32'h2000})
  ) u_xbar (
    .axil_aclk, .axil_aresetn, .slave_live_i({block_rstn, 1'b1}),      // MAC registers answer for themselves
    .s_axil_awvalid, .s_axil_awaddr, .s_axil_awready, .s_axil_wvalid, .s_axil_wdata, .s_axil_wready,
    .s_axil_bvalid, .s_axil_bresp, .s_axil_bready, .s_axil_arvalid, .s_axil_araddr, .s_axil_arready,
    .s_axil_rvalid, .s_axil_rdata, .s_axil_rresp, .s_axil_rready,
    .m_axil_awvalid(awvalid), .m_axil_awaddr(awaddr), .m_axil_awready(awready), .m_axil_wvalid(wvalid),
    .m_axil_wdata(wdata), .m_axil_wready(wready), .m_axil_bvalid(bvalid), .m_axil_bresp(bresp), .m_axil_bready(bready),
    .m_axil_arvalid(arvalid), .m_axil_araddr(araddr), .m_axil_arready(arready), .m_axil_rvalid(rvalid),
    .m_axil_rdata(rdata), .m_axil_rresp(rresp), .m_axil_rready(rready)
  );

  logic        tx_enable, rx_enable, tick, tx_slot_present, rx_slot_present;
  logic  [5:0] tx_slot, rx_slot;
  logic [47:0] tx_count, rx_count;
  cmac_register u_register (
    .axil_aclk, .axil_aresetn,
    .s_axil_awvalid(awvalid[0]), .s_axil_awaddr(awaddr[0]), .s_axil_awready(awready[0]),
    .s_axil_wvalid(wvalid[0]), .s_axil_wdata(wdata[0]), .s_axil_wready(wready[0]),
    .s_axil_bvalid(bvalid[0]), .s_axil_bresp(bresp[0]), .s_axil_bready(bready[0]),
    .s_axil_arvalid(arvalid[0]), .s_axil_araddr(araddr[0]), .s_axil_arready(arready[0]),
    .s_axil_rvalid(rvalid[0]), .s_axil_rdata(rdata[0]), .s_axil_rresp(rresp[0]), .s_axil_rready(rready[0]),
    .cmac_clk, .cmac_rstn, .tx_enable_o(tx_enable), .rx_enable_o(rx_enable), .tick_o(tick),
    .tx_slot_o(tx_slot), .tx_slot_present_i(tx_slot_present), .tx_count_i(tx_count),
    .rx_slot_o(rx_slot), .rx_slot_present_i(rx_slot_present), .rx_count_i(rx_count)
  );

  axil_echo #(.Prefix(16'(32'hC028 + 32'h100 * PortId)), .AddrBits(12)) u_qsfp (
    .axil_aclk, .axil_aresetn,
    .s_axil_awvalid(awvalid[1]), .s_axil_awaddr(awaddr[1]), .s_axil_awready(awready[1]),
    .s_axil_wvalid(wvalid[1]), .s_axil_wdata(wdata[1]), .s_axil_wready(wready[1]),
    .s_axil_bvalid(bvalid[1]), .s_axil_bresp(bresp[1]), .s_axil_bready(bready[1]),
    .s_axil_arvalid(arvalid[1]), .s_axil_araddr(araddr[1]), .s_axil_arready(arready[1]),
    .s_axil_rvalid(rvalid[1]), .s_axil_rdata(rdata[1]), .s_axil_rresp(rresp[1]), .s_axil_rready(rready[1])
  );

  // ---- Frames ----
  logic        rx_stat_beat, rx_stat_first, tx_stat_beat, tx_stat_first;
  logic [15:0] rx_stat_len, tx_stat_len;
  cmac_rx u_rx (
    .cmac_clk, .cmac_rstn, .cmac_pwr_rstn, .enable_i(rx_enable), .min_len_i(min_pkt_len_i), .max_len_i(max_pkt_len_i),
    .s_axis_rx_tvalid(s_axis_cmac_rx_tvalid), .s_axis_rx_tdata(s_axis_cmac_rx_tdata), .s_axis_rx_tkeep(s_axis_cmac_rx_tkeep),
    .s_axis_rx_tlast(s_axis_cmac_rx_tlast), .s_axis_rx_tuser_err(s_axis_cmac_rx_tuser_err),
    .m_axis_rx_tvalid, .m_axis_rx_tdata, .m_axis_rx_tkeep, .m_axis_rx_tlast, .m_axis_rx_tuser_err,
    .disabled_o(rx_disabled_o), .wire_o(rx_wire_o),
    .stat_beat_o(rx_stat_beat), .stat_first_o(rx_stat_first), .stat_len_o(rx_stat_len)
  );
  cmac_tx u_tx (
    .cmac_clk, .cmac_rstn, .cmac_pwr_rstn, .enable_i(tx_enable),
    .s_axis_tx_tvalid, .s_axis_tx_tdata, .s_axis_tx_tkeep, .s_axis_tx_tlast, .s_axis_tx_tuser_err, .s_axis_tx_tready,
    .m_axis_tx_tvalid(m_axis_cmac_tx_tvalid), .m_axis_tx_tdata(m_axis_cmac_tx_tdata), .m_axis_tx_tkeep(m_axis_cmac_tx_tkeep),
    .m_axis_tx_tlast(m_axis_cmac_tx_tlast), .m_axis_tx_tuser_err(m_axis_cmac_tx_tuser_err),
    .m_axis_tx_tready(m_axis_cmac_tx_tready), .wire_o(tx_wire_o),
    .stat_beat_o(tx_stat_beat), .stat_first_o(tx_stat_first), .stat_len_o(tx_stat_len)
  );

  // ---- Statistics ----
  cmac_stats #(.CheckLength(1'b1)) u_rx_stats (
    .clk(cmac_clk), .rstn(cmac_rstn), .min_len_i(min_pkt_len_i), .max_len_i(max_pkt_len_i),
    .beat_i(rx_stat_beat), .first_i(rx_stat_first), .last_i(s_axis_cmac_rx_tlast), .head_i(s_axis_cmac_rx_tdata[127:0]),
    .len_i(rx_stat_len), .err_i(s_axis_cmac_rx_tuser_err),
    .tick_i(tick), .slot_i(rx_slot), .slot_present_o(rx_slot_present), .count_o(rx_count)
  );
  cmac_stats #(.CheckLength(1'b0)) u_tx_stats (
    .clk(cmac_clk), .rstn(cmac_rstn), .min_len_i(min_pkt_len_i), .max_len_i(max_pkt_len_i),
    .beat_i(tx_stat_beat), .first_i(tx_stat_first), .last_i(s_axis_tx_tlast), .head_i(s_axis_tx_tdata[127:0]),
    .len_i(tx_stat_len), .err_i(s_axis_tx_tuser_err),
    .tick_i(tick), .slot_i(tx_slot), .slot_present_o(tx_slot_present), .count_o(tx_count)
  );
endmodule
`default_nettype wire
