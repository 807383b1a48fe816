// AXI-Lite slave for one block's registers, which live in another clock domain.
//
// The bus side runs on axil_aclk, the register side on reg_clk; any ratio and phase. One access is in progress at a
// time, a write before a read that came in the same cycle, so a read never sees another access's address (upstream's
// quirk Q12). Every access is answered:
//
//  * block running: reg_wr or reg_rd is high for one reg_clk cycle with reg_addr (and reg_wdata) valid. reg_rdata is
//    taken in the cycle after reg_rd, so the block decodes the address into one register. Response OKAY.
//  * block in reset (reg_rstn low): no pulse; reads answer 0xDEADBEEF, writes are ignored. Response OKAY (upstream never
//    answers, Q2).
//
// Decode errors are the crossbar's business. Byte strobes do not exist on this bus; all accesses are 32 bits.
// Latency: about 3 axil cycles + 4 reg_clk cycles. Needs both clocks running.
//
// Resets: axil_aresetn is the bus's reset (power-up), never the block's, so that the bus answers while the block is down.
`include "onic_assert.svh"
`default_nettype none
module axil_regs #(
  parameter int unsigned AddrWidth = 12              // bits of the address that the block decodes, from bit 0
) (
  // Bus
  input  wire                  axil_aclk,
  input  wire                  axil_aresetn,         // synchronous, active low
  input  wire                  s_axil_awvalid,
  input  wire           [31:0] s_axil_awaddr,        // relative to the block
  output logic                 s_axil_awready,
  input  wire                  s_axil_wvalid,
  input  wire           [31:0] s_axil_wdata,
  output logic                 s_axil_wready,
  output logic                 s_axil_bvalid,
  output logic           [1:0] s_axil_bresp,
  input  wire                  s_axil_bready,
  input  wire                  s_axil_arvalid,
  input  wire           [31:0] s_axil_araddr,
  output logic                 s_axil_arready,
  output logic                 s_axil_rvalid,
  output logic          [31:0] s_axil_rdata,
  output logic           [1:0] s_axil_rresp,
  input  wire                  s_axil_rready,
  // Registers
  input  wire                  reg_clk,
  input  wire                  reg_rstn,             // the block's reset, synchronous to reg_clk
  output logic                 reg_wr,               // one cycle
  output logic                 reg_rd,               // one cycle, never together with reg_wr
  output logic [AddrWidth-1:0] reg_addr,
  output logic          [31:0] reg_wdata,
  input  wire           [31:0] reg_rdata             // valid one cycle after reg_rd
);
  `ONIC_ASSERT_PARAM(AddrWidth, AddrWidth >= 3 && AddrWidth <= 31, "AddrWidth must be 3 to 31 bits")

  localparam logic [31:0] NoAnswer = 32'hDEAD_BEEF;
  localparam logic  [1:0] Okay     = 2'b00;

  // ---- Bus side: collect one access, send it as a toggle, wait for the toggle that comes back. ----
  typedef enum logic [1:0] {BusIdle, BusWait, BusRespond} bus_state_e;
  bus_state_e bus_state_q;

  logic                 have_aw_q, have_w_q, have_ar_q;  // halves of accesses taken from the bus, not yet started
  logic [AddrWidth-1:0] awaddr_q, araddr_q;
  logic          [31:0] wdata_q;
  logic                 req_toggle_q, req_write_q;
  logic [AddrWidth-1:0] req_addr_q;
  logic          [31:0] req_wdata_q;
  logic                 ack_toggle, ack_seen_q;
  logic          [31:0] ack_rdata_q;                     // register side; still while ack_toggle travels

  assign s_axil_awready = !have_aw_q && axil_aresetn;
  assign s_axil_wready  = !have_w_q && axil_aresetn;
  assign s_axil_arready = !have_ar_q && axil_aresetn;
  assign s_axil_bresp   = Okay;
  assign s_axil_rresp   = Okay;

  wire start_write = bus_state_q == BusIdle && have_aw_q && have_w_q;
  wire start_read  = bus_state_q == BusIdle && have_ar_q && !start_write;
  wire acked       = ack_toggle != ack_seen_q;
  wire responded   = (s_axil_bvalid && s_axil_bready) || (s_axil_rvalid && s_axil_rready);

  always_ff @(posedge axil_aclk) begin
    if (!axil_aresetn) begin
      have_aw_q     <= 1'b0;
      have_w_q      <= 1'b0;
      have_ar_q     <= 1'b0;
      bus_state_q   <= BusIdle;
      req_toggle_q  <= 1'b0;
      ack_seen_q    <= 1'b0;
      s_axil_bvalid <= 1'b0;
      s_axil_rvalid <= 1'b0;
    end else begin
      if (s_axil_awvalid && s_axil_awready) have_aw_q <= 1'b1;
      if (s_axil_wvalid && s_axil_wready)   have_w_q  <= 1'b1;
      if (s_axil_arvalid && s_axil_arready) have_ar_q <= 1'b1;
      if (start_write) begin
        have_aw_q <= 1'b0;
        have_w_q  <= 1'b0;
      end
      if (start_read) have_ar_q <= 1'b0;

      unique case (bus_state_q)
        BusIdle: if (start_write || start_read) begin
          bus_state_q  <= BusWait;
          req_toggle_q <= !req_toggle_q;
        end
        BusWait: if (acked) begin
          bus_state_q   <= BusRespond;
          ack_seen_q    <= ack_toggle;
          s_axil_bvalid <= req_write_q;
          s_axil_rvalid <= !req_write_q;
        end
        BusRespond: if (responded) begin
          bus_state_q   <= BusIdle;
          s_axil_bvalid <= 1'b0;
          s_axil_rvalid <= 1'b0;
        end
        default: bus_state_q <= BusIdle;
      endcase
    end
  end

  always_ff @(posedge axil_aclk) begin
    if (s_axil_awvalid && s_axil_awready) awaddr_q <= s_axil_awaddr[AddrWidth-1:0];
    if (s_axil_wvalid && s_axil_wready)   wdata_q  <= s_axil_wdata;
    if (s_axil_arvalid && s_axil_arready) araddr_q <= s_axil_araddr[AddrWidth-1:0];
    if (start_write || start_read) begin
      req_write_q <= start_write;
      req_addr_q  <= start_write ? awaddr_q : araddr_q;
      if (start_write) req_wdata_q <= wdata_q;
    end
    if (bus_state_q == BusWait && acked) s_axil_rdata <= ack_rdata_q;
  end

  // ---- Register side. It is reset with the bus, not with the block: it must answer for a block in reset. ----
  typedef enum logic [1:0] {RegIdle, RegPulse, RegTake} reg_state_e;
  reg_state_e reg_state_q;
  logic       reg_live_q;                                // reg_rd went out in the cycle before

  logic bus_rstn_reg;                                    // the bus's reset in the register domain
  logic req_toggle, req_seen_q, ack_toggle_q;

  cdc_reset u_bus_reset (.dst_clk(reg_clk), .rstn_i(axil_aresetn), .rstn_o(bus_rstn_reg));
  cdc_sync  u_request   (.dst_clk(reg_clk), .dst_rstn(bus_rstn_reg), .d_i(req_toggle_q), .q_o(req_toggle));
  cdc_sync  u_ack       (.dst_clk(axil_aclk), .dst_rstn(axil_aresetn), .d_i(ack_toggle_q), .q_o(ack_toggle));

  always_ff @(posedge reg_clk) begin
    reg_wr <= 1'b0;
    reg_rd <= 1'b0;
    if (!bus_rstn_reg) begin
      reg_state_q  <= RegIdle;
      req_seen_q   <= 1'b0;
      ack_toggle_q <= 1'b0;
    end else begin
      unique case (reg_state_q)
        RegIdle: if (req_toggle != req_seen_q) begin
          req_seen_q  <= req_toggle;
          reg_addr    <= req_addr_q;
          reg_wdata   <= req_wdata_q;
          reg_wr      <= reg_rstn && req_write_q;
          reg_rd      <= reg_rstn && !req_write_q;
          reg_state_q <= RegPulse;
        end
        RegPulse: reg_state_q <= RegTake;
        RegTake: begin
          ack_toggle_q <= !ack_toggle_q;
          // A read that the block's reset cut short answers like one that came during the reset.
          ack_rdata_q  <= reg_live_q && reg_rstn ? reg_rdata : NoAnswer;
          reg_state_q  <= RegIdle;
        end
        default: reg_state_q <= RegIdle;
      endcase
    end
  end

  always_ff @(posedge reg_clk) reg_live_q <= reg_rd;

  // ---- Rules of use ----
  `ONIC_ASSERT_STABLE(AxilAwStable_A, axil_aclk, axil_aresetn, s_axil_awvalid, s_axil_awready, s_axil_awaddr, 32,
                      "AW changed while it waited")
  `ONIC_ASSERT_STABLE(AxilWStable_A, axil_aclk, axil_aresetn, s_axil_wvalid, s_axil_wready, s_axil_wdata, 32,
                      "W changed while it waited")
  `ONIC_ASSERT_STABLE(AxilArStable_A, axil_aclk, axil_aresetn, s_axil_arvalid, s_axil_arready, s_axil_araddr, 32,
                      "AR changed while it waited")
  `ONIC_ASSERT(RegOnePulse_A, reg_clk, bus_rstn_reg, !(reg_wr && reg_rd), "read and write pulse in one cycle")

  // Address bits above AddrWidth are the crossbar's.
  wire unused_addr = ^{s_axil_awaddr[31:AddrWidth], s_axil_araddr[31:AddrWidth]};
endmodule
`default_nettype wire
