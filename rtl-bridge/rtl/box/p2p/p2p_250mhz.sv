// Pass-through plugin of box 250: function i <-> port i, by wires, and the side band that the shell expects of a plugin.
//
// Upstream's plugin refuses unequal numbers of functions and ports; here:
//   * more functions than ports: function f >= NumPort has no port. Its H2C frames go, with tuser_dst 0, to the packet
//     adapter of port f mod NumPort, which drops them and counts them in TX_DROP_DST. It receives nothing.
//   * more ports than functions: port p >= NumFunc delivers to function p mod NumFunc, and sends nothing.
// Where streams meet they take turns, frame by frame.
//
// Sizes and tuser_src pass. TX: tuser_dst = the port's bit; RX: tuser_dst = the function's bit. There is no state in the
// path but the turn, so the plugin's reset cuts no frame. Source: shell.md 14.4.
`include "onic_assert.svh"
`default_nettype none
module p2p_250mhz #(
  parameter int unsigned NumFunc = 1,
  parameter int unsigned NumPort = 1
) (
  // From functions
  input  wire      [NumFunc-1:0] s_axis_qdma_h2c_tvalid,
  input  wire  [512*NumFunc-1:0] s_axis_qdma_h2c_tdata,
  input  wire   [64*NumFunc-1:0] s_axis_qdma_h2c_tkeep,
  input  wire      [NumFunc-1:0] s_axis_qdma_h2c_tlast,
  input  wire   [16*NumFunc-1:0] s_axis_qdma_h2c_tuser_size,
  input  wire   [16*NumFunc-1:0] s_axis_qdma_h2c_tuser_src,
  output logic     [NumFunc-1:0] s_axis_qdma_h2c_tready,
  // To functions
  output logic     [NumFunc-1:0] m_axis_qdma_c2h_tvalid,
  output logic [512*NumFunc-1:0] m_axis_qdma_c2h_tdata,
  output logic  [64*NumFunc-1:0] m_axis_qdma_c2h_tkeep,
  output logic     [NumFunc-1:0] m_axis_qdma_c2h_tlast,
  output logic  [16*NumFunc-1:0] m_axis_qdma_c2h_tuser_size,
  output logic  [16*NumFunc-1:0] m_axis_qdma_c2h_tuser_src,
  output logic  [16*NumFunc-1:0] m_axis_qdma_c2h_tuser_dst,
  input  wire      [NumFunc-1:0] m_axis_qdma_c2h_tready,
  // To packet adapters
  output logic     [NumPort-1:0] m_axis_adap_tx_250mhz_tvalid,
  output logic [512*NumPort-1:0] m_axis_adap_tx_250mhz_tdata,
  output logic  [64*NumPort-1:0] m_axis_adap_tx_250mhz_tkeep,
  output logic     [NumPort-1:0] m_axis_adap_tx_250mhz_tlast,
  output logic  [16*NumPort-1:0] m_axis_adap_tx_250mhz_tuser_size,
  output logic  [16*NumPort-1:0] m_axis_adap_tx_250mhz_tuser_src,
  output logic  [16*NumPort-1:0] m_axis_adap_tx_250mhz_tuser_dst,
  input  wire      [NumPort-1:0] m_axis_adap_tx_250mhz_tready,
  // From packet adapters
  input  wire      [NumPort-1:0] s_axis_adap_rx_250mhz_tvalid,
  input  wire  [512*NumPort-1:0] s_axis_adap_rx_250mhz_tdata,
  input  wire   [64*NumPort-1:0] s_axis_adap_rx_250mhz_tkeep,
  input  wire      [NumPort-1:0] s_axis_adap_rx_250mhz_tlast,
  input  wire   [16*NumPort-1:0] s_axis_adap_rx_250mhz_tuser_size,
  input  wire   [16*NumPort-1:0] s_axis_adap_rx_250mhz_tuser_src,
  output logic     [NumPort-1:0] s_axis_adap_rx_250mhz_tready,
  // Reset pair 0
  input  wire                    mod_rstn,
  output logic                   mod_rst_done,
  input  wire                    axil_aclk,
  input  wire                    axis_aclk
);
  localparam int unsigned UserWidth = 48;             // size, src, dst

  logic plugin_rstn, axis_rstn;
  mod_reset u_reset (
    .axil_aclk, .axil_aresetn(1'b1), .mod_rstn_i(mod_rstn), .rstn_o(plugin_rstn), .mod_rst_done_o(mod_rst_done)
  );
  cdc_reset u_axis_reset (.dst_clk(axis_aclk), .rstn_i(plugin_rstn), .rstn_o(axis_rstn));

  // ---- H2C: port p takes functions p, p + NumPort, ... ----
  for (genvar p = 0; p < NumPort; p++) begin : gen_tx
    localparam int unsigned Sources = p < NumFunc ? (NumFunc - p + NumPort - 1) / NumPort : 0;
    if (Sources == 0) begin : gen_idle
      assign m_axis_adap_tx_250mhz_tvalid[p]              = 1'b0;
      assign m_axis_adap_tx_250mhz_tdata[512*p +: 512]    = '0;
      assign m_axis_adap_tx_250mhz_tkeep[64*p +: 64]      = '0;
      assign m_axis_adap_tx_250mhz_tlast[p]               = 1'b0;
      assign m_axis_adap_tx_250mhz_tuser_size[16*p +: 16] = '0;
      assign m_axis_adap_tx_250mhz_tuser_src[16*p +: 16]  = '0;
      assign m_axis_adap_tx_250mhz_tuser_dst[16*p +: 16]  = '0;
      wire unused_ready = m_axis_adap_tx_250mhz_tready[p];
    end else begin : gen_path
      logic           [Sources-1:0] valid, last, ready;
      logic       [512*Sources-1:0] data;
      logic        [64*Sources-1:0] keep;
      logic [UserWidth*Sources-1:0] user;
      for (genvar i = 0; i < Sources; i++) begin : gen_source
        localparam int unsigned Func = p + i * NumPort;
        localparam logic [15:0] Dst  = Func < NumPort ? 16'(1) << (6 + p) : '0;
        assign valid[i]                        = s_axis_qdma_h2c_tvalid[Func];
        assign data[512*i +: 512]              = s_axis_qdma_h2c_tdata[512*Func +: 512];
        assign keep[64*i +: 64]                = s_axis_qdma_h2c_tkeep[64*Func +: 64];
        assign last[i]                         = s_axis_qdma_h2c_tlast[Func];
        assign user[UserWidth*i +: UserWidth]  = {s_axis_qdma_h2c_tuser_size[16*Func +: 16],
                                                  s_axis_qdma_h2c_tuser_src[16*Func +: 16], Dst};
        assign s_axis_qdma_h2c_tready[Func]    = ready[i];
      end
      axis_frame_mux #(.N(Sources), .UserWidth(UserWidth)) u_mux (
        .axis_aclk, .axis_aresetn(axis_rstn),
        .s_axis_tvalid(valid), .s_axis_tdata(data), .s_axis_tkeep(keep), .s_axis_tlast(last), .s_axis_tuser(user),
        .s_axis_tready(ready),
        .m_axis_tvalid(m_axis_adap_tx_250mhz_tvalid[p]), .m_axis_tdata(m_axis_adap_tx_250mhz_tdata[512*p +: 512]),
        .m_axis_tkeep(m_axis_adap_tx_250mhz_tkeep[64*p +: 64]), .m_axis_tlast(m_axis_adap_tx_250mhz_tlast[p]),
        .m_axis_tuser({m_axis_adap_tx_250mhz_tuser_size[16*p +: 16], m_axis_adap_tx_250mhz_tuser_src[16*p +: 16],
                       m_axis_adap_tx_250mhz_tuser_dst[16*p +: 16]}),
        .m_axis_tready(m_axis_adap_tx_250mhz_tready[p])
      );
    end
  end

  // ---- C2H: function f takes ports f, f + NumFunc, ... ----
  for (genvar f = 0; f < NumFunc; f++) begin : gen_rx
    localparam int unsigned Sources = f < NumPort ? (NumPort - f + NumFunc - 1) / NumFunc : 0;
    localparam logic [15:0] Dst     = 16'(1) << f;
    assign m_axis_qdma_c2h_tuser_dst[16*f +: 16] = Dst;
    if (Sources == 0) begin : gen_idle
      assign m_axis_qdma_c2h_tvalid[f]              = 1'b0;
      assign m_axis_qdma_c2h_tdata[512*f +: 512]    = '0;
      assign m_axis_qdma_c2h_tkeep[64*f +: 64]      = '0;
      assign m_axis_qdma_c2h_tlast[f]               = 1'b0;
      assign m_axis_qdma_c2h_tuser_size[16*f +: 16] = '0;
      assign m_axis_qdma_c2h_tuser_src[16*f +: 16]  = '0;
      wire unused_ready = m_axis_qdma_c2h_tready[f];
    end else begin : gen_path
      logic    [Sources-1:0] valid, last, ready;
      logic [512*Sources-1:0] data;
      logic  [64*Sources-1:0] keep;
      logic  [32*Sources-1:0] user;                   // size, src
      for (genvar i = 0; i < Sources; i++) begin : gen_source
        localparam int unsigned Port = f + i * NumFunc;
        assign valid[i]                           = s_axis_adap_rx_250mhz_tvalid[Port];
        assign data[512*i +: 512]                 = s_axis_adap_rx_250mhz_tdata[512*Port +: 512];
        assign keep[64*i +: 64]                   = s_axis_adap_rx_250mhz_tkeep[64*Port +: 64];
        assign last[i]                            = s_axis_adap_rx_250mhz_tlast[Port];
        assign user[32*i +: 32]                   = {s_axis_adap_rx_250mhz_tuser_size[16*Port +: 16],
                                                     s_axis_adap_rx_250mhz_tuser_src[16*Port +: 16]};
        assign s_axis_adap_rx_250mhz_tready[Port] = ready[i];
      end
      axis_frame_mux #(.N(Sources), .UserWidth(32)) u_mux (
        .axis_aclk, .axis_aresetn(axis_rstn),
        .s_axis_tvalid(valid), .s_axis_tdata(data), .s_axis_tkeep(keep), .s_axis_tlast(last), .s_axis_tuser(user),
        .s_axis_tready(ready),
        .m_axis_tvalid(m_axis_qdma_c2h_tvalid[f]), .m_axis_tdata(m_axis_qdma_c2h_tdata[512*f +: 512]),
        .m_axis_tkeep(m_axis_qdma_c2h_tkeep[64*f +: 64]), .m_axis_tlast(m_axis_qdma_c2h_tlast[f]),
        .m_axis_tuser({m_axis_qdma_c2h_tuser_size[16*f +: 16], m_axis_qdma_c2h_tuser_src[16*f +: 16]}),
        .m_axis_tready(m_axis_qdma_c2h_tready[f])
      );
    end
  end
endmodule
`default_nettype wire
