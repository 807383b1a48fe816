// Placeholder for a register window that the shell does not implement: answers every access, remembers nothing.
//
// Writes are ignored. A read returns Prefix in the high half and the low AddrBits of the window-relative address in the
// low half, as upstream's placeholders do in simulation; with AddrBits 0 it is the constant {Prefix, 0}, which is how the vendor
// IP windows (monitor, management, flash) read 0. Response OKAY always. Latency 1 cycle.
// Source: shell.md section 7.
`include "onic_assert.svh"
`default_nettype none
module axil_echo #(
  parameter logic [15:0] Prefix   = 16'h0000,
  parameter int unsigned AddrBits = 12                // 0 to 16
) (
  input  wire         axil_aclk,
  input  wire         axil_aresetn,                   // the bus's reset
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
  `ONIC_ASSERT_PARAM(AddrBits, AddrBits <= 16, "AddrBits must be 0 to 16")

  localparam logic [31:0] AddrMask = (32'd1 << AddrBits) - 1;

  logic have_aw_q, have_w_q;
  assign s_axil_awready = axil_aresetn && !have_aw_q;
  assign s_axil_wready  = axil_aresetn && !have_w_q;
  assign s_axil_arready = axil_aresetn && !s_axil_rvalid;
  assign s_axil_bvalid  = have_aw_q && have_w_q;
  assign s_axil_bresp   = 2'b00;
  assign s_axil_rresp   = 2'b00;

  wire take_ar = s_axil_arvalid && s_axil_arready;

  always_ff @(posedge axil_aclk) begin
    if (!axil_aresetn) begin
      have_aw_q     <= 1'b0;
      have_w_q      <= 1'b0;
      s_axil_rvalid <= 1'b0;
    end else begin
      if (s_axil_bvalid) begin
        if (s_axil_bready) begin
          have_aw_q <= 1'b0;
          have_w_q  <= 1'b0;
        end
      end else begin
        if (s_axil_awvalid) have_aw_q <= 1'b1;
        if (s_axil_wvalid)  have_w_q  <= 1'b1;
      end
      s_axil_rvalid <= take_ar || (s_axil_rvalid && !s_axil_rready);
    end
  end

  always_ff @(posedge axil_aclk) begin
    if (take_ar) s_axil_rdata <= {Prefix, 16'd0} | (s_axil_araddr & AddrMask);
  end

  // Nothing that is written matters.
  wire unused_write = ^{s_axil_awaddr, s_axil_wdata};
endmodule
`default_nettype wire
