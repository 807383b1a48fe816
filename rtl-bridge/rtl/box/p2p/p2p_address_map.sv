// Register map of a pass-through box: placeholders at 0x0000 and 0x1000, 4 KiB each; decode error beyond.
//
// Upstream's 250 MHz plugin never answers 0x080-0x0FF and so hangs the bus (quirk Q13); here the placeholder echoes those too.
// Source: shell.md 7, 14.4.
`default_nettype none
module p2p_address_map #(
  parameter logic [15:0] Prefix      = 16'hB000,
  parameter logic [15:0] DummyPrefix = 16'hD000
) (
  input  wire         axil_aclk,
  input  wire         axil_aresetn,                   // the box's reset; the shell answers for a box in reset
  input  wire         s_axil_awvalid,
  input  wire  [31:0] s_axil_awaddr,
  output logic        s_axil_awready,
  input  wire         s_axil_wvalid,
  input  wire  [31:0] s_axil_wdata,
  output logic        s_axil_wready,
  output logic        s_axil_bvalid,
  output logic  [1:0] s_axil_bresp,
  input  wire         s_axil_bready,
  input  wire         s_axil_arvalid,
  input  wire  [31:0] s_axil_araddr,
  output logic        s_axil_arready,
  output logic        s_axil_rvalid,
  output logic [31:0] s_axil_rdata,
  output logic  [1:0] s_axil_rresp,
  input  wire         s_axil_rready
);
  logic  [1:0]       awvalid, awready, wvalid, wready, bvalid, bready, arvalid, arready, rvalid, rready;
  logic  [1:0][31:0] awaddr, wdata, araddr, rdata;
  logic  [1:0] [1:0] bresp, rresp;

  axil_xbar #(
    .NumSlaves(2),
    .Base({32'h1000, 32'h0000}),
    .Size({32'h1000, 32'h1000})
  ) u_xbar (
    .axil_aclk, .axil_aresetn,
    .s_axil_awvalid, .s_axil_awaddr, .s_axil_awready, .s_axil_wvalid, .s_axil_wdata, .s_axil_wready,
    .s_axil_bvalid, .s_axil_bresp, .s_axil_bready, .s_axil_arvalid, .s_axil_araddr, .s_axil_arready,
    .s_axil_rvalid, .s_axil_rdata, .s_axil_rresp, .s_axil_rready,
    .m_axil_awvalid(awvalid), .m_axil_awaddr(awaddr), .m_axil_awready(awready), .m_axil_wvalid(wvalid),
    .m_axil_wdata(wdata), .m_axil_wready(wready), .m_axil_bvalid(bvalid), .m_axil_bresp(bresp), .m_axil_bready(bready),
    .m_axil_arvalid(arvalid), .m_axil_araddr(araddr), .m_axil_arready(arready), .m_axil_rvalid(rvalid),
    .m_axil_rdata(rdata), .m_axil_rresp(rresp), .m_axil_rready(rready)
  );

  for (genvar i = 0; i < 2; i++) begin : gen_window
    axil_echo #(.Prefix(i == 0 ? Prefix : DummyPrefix), .AddrBits(12)) u_echo (
      .axil_aclk, .axil_aresetn,
      .s_axil_awvalid(awvalid[i]), .s_axil_awaddr(awaddr[i]), .s_axil_awready(awready[i]),
      .s_axil_wvalid(wvalid[i]), .s_axil_wdata(wdata[i]), .s_axil_wready(wready[i]),
      .s_axil_bvalid(bvalid[i]), .s_axil_bresp(bresp[i]), .s_axil_bready(bready[i]),
      .s_axil_arvalid(arvalid[i]), .s_axil_araddr(araddr[i]), .s_axil_arready(arready[i]),
      .s_axil_rvalid(rvalid[i]), .s_axil_rdata(rdata[i]), .s_axil_rresp(rresp[i]), .s_axil_rready(rready[i])
    );
  end
endmodule
`default_nettype wire
