// User box on the 322 MHz side, between packet adapters and MACs. Ports and parameters are upstream's, so that a plugin
// written for upstream fits: the plugin's two includes are compiled inside this module and see its ports.
//
//   box_322mhz_address_map_inst.vh   answers s_axil_* and declares the nets that the other include connects
//   user_plugin_322mhz_inst.vh       drives every stream output and mod_rst_done
//
// Both are found on the include path; box/p2p is the default plugin. Ports are packed, port 0 in the low bits; port p's
// streams are on cmac_clk[p]. RX has no tready: a plugin takes every beat. TX frames must stay without gaps inside.
// The box's own reset is generated here (net internal_box_rstn, on axil_aclk). Source: shell.md 14.2.
`default_nettype none
module box_322mhz #(
  parameter int MIN_PKT_LEN   = 64,                   // bytes with FCS, for the plugin
  parameter int MAX_PKT_LEN   = 1518,
  parameter int NUM_CMAC_PORT = 1
) (
  // Registers, addresses relative to the box
  input  wire                         s_axil_awvalid,
  input  wire                  [31:0] s_axil_awaddr,
  output wire                         s_axil_awready,
  input  wire                         s_axil_wvalid,
  input  wire                  [31:0] s_axil_wdata,
  output wire                         s_axil_wready,
  output wire                         s_axil_bvalid,
  output wire                   [1:0] s_axil_bresp,
  input  wire                         s_axil_bready,
  input  wire                         s_axil_arvalid,
  input  wire                  [31:0] s_axil_araddr,
  output wire                         s_axil_arready,
  output wire                         s_axil_rvalid,
  output wire                  [31:0] s_axil_rdata,
  output wire                   [1:0] s_axil_rresp,
  input  wire                         s_axil_rready,
  // From packet adapters
  input  wire     [NUM_CMAC_PORT-1:0] s_axis_adap_tx_322mhz_tvalid,
  input  wire [512*NUM_CMAC_PORT-1:0] s_axis_adap_tx_322mhz_tdata,
  input  wire  [64*NUM_CMAC_PORT-1:0] s_axis_adap_tx_322mhz_tkeep,
  input  wire     [NUM_CMAC_PORT-1:0] s_axis_adap_tx_322mhz_tlast,
  input  wire     [NUM_CMAC_PORT-1:0] s_axis_adap_tx_322mhz_tuser_err,
  output wire     [NUM_CMAC_PORT-1:0] s_axis_adap_tx_322mhz_tready,
  // To packet adapters
  output wire     [NUM_CMAC_PORT-1:0] m_axis_adap_rx_322mhz_tvalid,
  output wire [512*NUM_CMAC_PORT-1:0] m_axis_adap_rx_322mhz_tdata,
  output wire  [64*NUM_CMAC_PORT-1:0] m_axis_adap_rx_322mhz_tkeep,
  output wire     [NUM_CMAC_PORT-1:0] m_axis_adap_rx_322mhz_tlast,
  output wire     [NUM_CMAC_PORT-1:0] m_axis_adap_rx_322mhz_tuser_err,
  // To MACs
  output wire     [NUM_CMAC_PORT-1:0] m_axis_cmac_tx_tvalid,
  output wire [512*NUM_CMAC_PORT-1:0] m_axis_cmac_tx_tdata,
  output wire  [64*NUM_CMAC_PORT-1:0] m_axis_cmac_tx_tkeep,
  output wire     [NUM_CMAC_PORT-1:0] m_axis_cmac_tx_tlast,
  output wire     [NUM_CMAC_PORT-1:0] m_axis_cmac_tx_tuser_err,
  input  wire     [NUM_CMAC_PORT-1:0] m_axis_cmac_tx_tready,
  // From MACs
  input  wire     [NUM_CMAC_PORT-1:0] s_axis_cmac_rx_tvalid,
  input  wire [512*NUM_CMAC_PORT-1:0] s_axis_cmac_rx_tdata,
  input  wire  [64*NUM_CMAC_PORT-1:0] s_axis_cmac_rx_tkeep,
  input  wire     [NUM_CMAC_PORT-1:0] s_axis_cmac_rx_tlast,
  input  wire     [NUM_CMAC_PORT-1:0] s_axis_cmac_rx_tuser_err,
  // Resets: the plugin's pairs, and the box's own
  input  wire                   [7:0] mod_rstn,
  output wire                   [7:0] mod_rst_done,
  input  wire                         box_rstn,
  output wire                         box_rst_done,
  input  wire                         axil_aclk,
  input  wire     [NUM_CMAC_PORT-1:0] cmac_clk
);
  wire internal_box_rstn;

  mod_reset u_box_reset (
    .axil_aclk, .axil_aresetn(1'b1), .mod_rstn_i(box_rstn), .rstn_o(internal_box_rstn), .mod_rst_done_o(box_rst_done)
  );

  `include "box_322mhz_address_map_inst.vh"
  `include "user_plugin_322mhz_inst.vh"
endmodule
`default_nettype wire
