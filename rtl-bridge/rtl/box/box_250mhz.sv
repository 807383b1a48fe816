// User box on the 250 MHz side, between functions and packet adapters. Ports and parameters are upstream's, so that a
// plugin written for upstream fits: the plugin's two includes are compiled inside this module and see its ports.
//
//   box_250mhz_address_map_inst.vh   answers s_axil_* and declares the nets that the other include connects
//   user_plugin_250mhz_inst.vh       drives every stream output and mod_rst_done
//
// Both are found on the include path; box/p2p is the default plugin. Instances are packed, function or port 0 in the low
// bits. The box's own reset is generated here (net internal_box_rstn, on axil_aclk).
//
// Stream rules: shell.md section 6. tuser_dst is 0 on what leaves the shell, and the plugin sets it for what goes to the
// packet adapters. Source: shell.md 14.1.
`default_nettype none
module box_250mhz #(
  parameter int MIN_PKT_LEN   = 64,                   // bytes with FCS, for the plugin
  parameter int MAX_PKT_LEN   = 1518,
  parameter int USE_PHYS_FUNC = 1,
  parameter int NUM_PHYS_FUNC = 1,
  parameter int NUM_QDMA      = 1,
  parameter int NUM_CMAC_PORT = 1
) (
  // Registers, addresses relative to the box
  input  wire                                   s_axil_awvalid,
  input  wire                            [31:0] s_axil_awaddr,
  output wire                                   s_axil_awready,
  input  wire                                   s_axil_wvalid,
  input  wire                            [31:0] s_axil_wdata,
  output wire                                   s_axil_wready,
  output wire                                   s_axil_bvalid,
  output wire                             [1:0] s_axil_bresp,
  input  wire                                   s_axil_bready,
  input  wire                                   s_axil_arvalid,
  input  wire                            [31:0] s_axil_araddr,
  output wire                                   s_axil_arready,
  output wire                                   s_axil_rvalid,
  output wire                            [31:0] s_axil_rdata,
  output wire                             [1:0] s_axil_rresp,
  input  wire                                   s_axil_rready,
  // From functions
  input  wire      [NUM_PHYS_FUNC*NUM_QDMA-1:0] s_axis_qdma_h2c_tvalid,
  input  wire  [512*NUM_PHYS_FUNC*NUM_QDMA-1:0] s_axis_qdma_h2c_tdata,
  input  wire   [64*NUM_PHYS_FUNC*NUM_QDMA-1:0] s_axis_qdma_h2c_tkeep,
  input  wire      [NUM_PHYS_FUNC*NUM_QDMA-1:0] s_axis_qdma_h2c_tlast,
  input  wire   [16*NUM_PHYS_FUNC*NUM_QDMA-1:0] s_axis_qdma_h2c_tuser_size,
  input  wire   [16*NUM_PHYS_FUNC*NUM_QDMA-1:0] s_axis_qdma_h2c_tuser_src,
  input  wire   [16*NUM_PHYS_FUNC*NUM_QDMA-1:0] s_axis_qdma_h2c_tuser_dst,
  output wire      [NUM_PHYS_FUNC*NUM_QDMA-1:0] s_axis_qdma_h2c_tready,
  // To functions
  output wire      [NUM_PHYS_FUNC*NUM_QDMA-1:0] m_axis_qdma_c2h_tvalid,
  output wire  [512*NUM_PHYS_FUNC*NUM_QDMA-1:0] m_axis_qdma_c2h_tdata,
  output wire   [64*NUM_PHYS_FUNC*NUM_QDMA-1:0] m_axis_qdma_c2h_tkeep,
  output wire      [NUM_PHYS_FUNC*NUM_QDMA-1:0] m_axis_qdma_c2h_tlast,
  output wire   [16*NUM_PHYS_FUNC*NUM_QDMA-1:0] m_axis_qdma_c2h_tuser_size,
  output wire   [16*NUM_PHYS_FUNC*NUM_QDMA-1:0] m_axis_qdma_c2h_tuser_src,
  output wire   [16*NUM_PHYS_FUNC*NUM_QDMA-1:0] m_axis_qdma_c2h_tuser_dst,
  input  wire      [NUM_PHYS_FUNC*NUM_QDMA-1:0] m_axis_qdma_c2h_tready,
  // To packet adapters
  output wire               [NUM_CMAC_PORT-1:0] m_axis_adap_tx_250mhz_tvalid,
  output wire           [512*NUM_CMAC_PORT-1:0] m_axis_adap_tx_250mhz_tdata,
  output wire            [64*NUM_CMAC_PORT-1:0] m_axis_adap_tx_250mhz_tkeep,
  output wire               [NUM_CMAC_PORT-1:0] m_axis_adap_tx_250mhz_tlast,
  output wire            [16*NUM_CMAC_PORT-1:0] m_axis_adap_tx_250mhz_tuser_size,
  output wire            [16*NUM_CMAC_PORT-1:0] m_axis_adap_tx_250mhz_tuser_src,
  output wire            [16*NUM_CMAC_PORT-1:0] m_axis_adap_tx_250mhz_tuser_dst,
  input  wire               [NUM_CMAC_PORT-1:0] m_axis_adap_tx_250mhz_tready,
  // From packet adapters
  input  wire               [NUM_CMAC_PORT-1:0] s_axis_adap_rx_250mhz_tvalid,
  input  wire           [512*NUM_CMAC_PORT-1:0] s_axis_adap_rx_250mhz_tdata,
  input  wire            [64*NUM_CMAC_PORT-1:0] s_axis_adap_rx_250mhz_tkeep,
  input  wire               [NUM_CMAC_PORT-1:0] s_axis_adap_rx_250mhz_tlast,
  input  wire            [16*NUM_CMAC_PORT-1:0] s_axis_adap_rx_250mhz_tuser_size,
  input  wire            [16*NUM_CMAC_PORT-1:0] s_axis_adap_rx_250mhz_tuser_src,
  input  wire            [16*NUM_CMAC_PORT-1:0] s_axis_adap_rx_250mhz_tuser_dst,
  output wire               [NUM_CMAC_PORT-1:0] s_axis_adap_rx_250mhz_tready,
  // Resets: the plugin's pairs, and the box's own
  input  wire                            [15:0] mod_rstn,
  output wire                            [15:0] mod_rst_done,
  input  wire                                   box_rstn,
  output wire                                   box_rst_done,
  input  wire                                   axil_aclk,
  input  wire                                   axis_aclk
);
  wire internal_box_rstn;

  mod_reset u_box_reset (
    .axil_aclk, .axil_aresetn(1'b1), .mod_rstn_i(box_rstn), .rstn_o(internal_box_rstn), .mod_rst_done_o(box_rst_done)
  );

  `include "box_250mhz_address_map_inst.vh"
  `include "user_plugin_250mhz_inst.vh"
endmodule
`default_nettype wire
