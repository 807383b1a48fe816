// Register page of one port's packet adapter: 64-bit counters, all of them in the MAC's clock.
//
// Every frame is counted once on each way:
//   RX_WIRE_PACKETS = received + dropped (overflow, too long) + error + disabled
//   TX frames from box 250 = sent + dropped (destination, too long);  sent = TX_WIRE_PACKETS + TX_INSIDE
// Reading a low word latches its high word; nothing is cleared but by the adapter's reset. Others read 0xDEADBEEF.
//
// TX ends arrive here through a FIFO (packet_adapter_tx), so a counter lags its event by a few cycles.
// Source: shell.md 7.3; from 0x80 on our own (docs/quirks.md).
`include "onic_assert.svh"
`default_nettype none
module packet_adapter_register (
  input  wire         axil_aclk,
  input  wire         axil_aresetn,
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
  input  wire         s_axil_rready,
  // Events
  input  wire         cmac_clk,
  input  wire         cmac_rstn,
  input  wire         cmac_pwr_rstn,
  input  wire         rx_end_valid_i,
  input  wire   [3:0] rx_end_reason_i,
  input  wire  [15:0] rx_end_len_i,
  input  wire  [15:0] rx_left_i,                      // frames that left to box 250, modulo 2^16
  input  wire         rx_wire_i,                      // a frame ended at the MAC's input
  input  wire         tx_end_valid_i,
  input  wire   [3:0] tx_end_reason_i,
  input  wire  [15:0] tx_end_len_i,
  input  wire         tx_handed_i,                    // a frame left to box 322
  input  wire         tx_wire_i                       // a frame left on the wire
);
  import packet_adapter_pkg::*;
  localparam logic [31:0] NoAnswer = 32'hDEAD_BEEF;

  logic        reg_wr, reg_rd;
  logic [11:0] reg_addr;
  logic [31:0] reg_wdata, reg_rdata;
  axil_regs #(.AddrWidth(12)) u_regs (
    .axil_aclk, .axil_aresetn,
    .s_axil_awvalid, .s_axil_awaddr, .s_axil_awready, .s_axil_wvalid, .s_axil_wdata, .s_axil_wready,
    .s_axil_bvalid, .s_axil_bresp, .s_axil_bready, .s_axil_arvalid, .s_axil_araddr, .s_axil_arready,
    .s_axil_rvalid, .s_axil_rdata, .s_axil_rresp, .s_axil_rready,
    .reg_clk(cmac_clk), .reg_rstn(cmac_rstn), .reg_wr, .reg_rd, .reg_addr, .reg_wdata, .reg_rdata
  );
  wire unused_write = ^{reg_wr, reg_wdata};           // the page is read-only

  // ---- Frames of before the reset, still in box 322 or the MAC, are not of the new count. ----
  logic [7:0] beyond_q, old_q;                        // frames there; those of them from before the reset
  wire  [7:0] beyond_d = beyond_q + 8'(tx_handed_i) - 8'(tx_wire_i);
  wire        tx_wire  = tx_wire_i && old_q == '0;
  always_ff @(posedge cmac_clk) begin
    beyond_q <= cmac_pwr_rstn ? beyond_d : '0;
    if (!cmac_pwr_rstn)  old_q <= '0;
    else if (!cmac_rstn) old_q <= beyond_d;
    else if (tx_wire_i && old_q != '0) old_q <= old_q - 1'b1;
  end

  // ---- Counters. Slot n is the 64-bit register at 8*n. ----
  import onic_regs_pkg::*;
  localparam int unsigned NumSlots = slot_of(PACKET_ADAPTER_TX_WIRE_PACKETS) + 1;
  localparam logic [NumSlots-1:0] Present = 23'b111_1111_0000_0011_1111_1111;   // no registers at 0x50 to 0x78

  function automatic int unsigned slot_of(logic [31:0] offset);
    return offset >> 3;
  endfunction

  wire rx_accept = rx_end_valid_i && rx_end_reason_i == ReasonAccepted;
  wire rx_error  = rx_end_valid_i && rx_end_reason_i == ReasonError;
  wire rx_over   = rx_end_valid_i && rx_end_reason_i == ReasonOverflow;
  wire rx_long   = rx_end_valid_i && rx_end_reason_i == ReasonTooLong;
  wire rx_off    = rx_end_valid_i && rx_end_reason_i == ReasonDisabled;
  wire tx_accept = tx_end_valid_i && tx_end_reason_i == ReasonAccepted;
  wire tx_dst    = tx_end_valid_i && tx_end_reason_i == ReasonTxDst;
  wire tx_long   = tx_end_valid_i && tx_end_reason_i == ReasonTxTooLong;

  logic [NumSlots-1:0]       inc, rd_low;
  logic [NumSlots-1:0][15:0] inc_by;
  always_comb begin
    inc    = '0;
    inc_by = {NumSlots{16'd1}};
    inc[slot_of(PACKET_ADAPTER_TX_PACKETS_SENT)]    = tx_accept;
    inc[slot_of(PACKET_ADAPTER_TX_BYTES_SENT)]      = tx_accept;
    inc[slot_of(PACKET_ADAPTER_TX_PACKETS_DROPPED)] = tx_dst || tx_long;
    inc[slot_of(PACKET_ADAPTER_TX_BYTES_DROPPED)]   = tx_dst || tx_long;
    inc[slot_of(PACKET_ADAPTER_RX_PACKETS_RECEIVED)]= rx_accept;
    inc[slot_of(PACKET_ADAPTER_RX_BYTES_RECEIVED)]  = rx_accept;
    inc[slot_of(PACKET_ADAPTER_RX_PACKETS_DROPPED)] = rx_over || rx_long;
    inc[slot_of(PACKET_ADAPTER_RX_BYTES_DROPPED)]   = rx_over || rx_long;
    inc[slot_of(PACKET_ADAPTER_RX_PACKETS_ERROR)]   = rx_error;
    inc[slot_of(PACKET_ADAPTER_RX_BYTES_ERROR)]     = rx_error;
    inc[slot_of(PACKET_ADAPTER_RX_DROP_OVERFLOW)]   = rx_over;
    inc[slot_of(PACKET_ADAPTER_RX_DROP_TOO_LONG)]   = rx_long;
    inc[slot_of(PACKET_ADAPTER_RX_DROP_DISABLED)]   = rx_off;
    inc[slot_of(PACKET_ADAPTER_TX_DROP_TOO_LONG)]   = tx_long;
    inc[slot_of(PACKET_ADAPTER_TX_DROP_DST)]        = tx_dst;
    inc[slot_of(PACKET_ADAPTER_RX_WIRE_PACKETS)]    = rx_wire_i;
    inc[slot_of(PACKET_ADAPTER_TX_WIRE_PACKETS)]    = tx_wire;
    inc_by[slot_of(PACKET_ADAPTER_TX_BYTES_SENT)]   = tx_end_len_i;
    inc_by[slot_of(PACKET_ADAPTER_TX_BYTES_DROPPED)]= tx_end_len_i;
    inc_by[slot_of(PACKET_ADAPTER_RX_BYTES_RECEIVED)]= rx_end_len_i;
    inc_by[slot_of(PACKET_ADAPTER_RX_BYTES_DROPPED)]= rx_end_len_i;
    inc_by[slot_of(PACKET_ADAPTER_RX_BYTES_ERROR)]  = rx_end_len_i;
  end

  logic [31:0] low [NumSlots], high [NumSlots];
  for (genvar n = 0; n < NumSlots; n++) begin : gen_slot
    if (Present[n]) begin : gen_counter
      assign rd_low[n] = reg_rd && reg_addr == 12'(8 * n);
      counter64 #(.IncWidth(16)) u_count (
        .clk(cmac_clk), .rstn(cmac_rstn), .inc_i(inc[n]), .inc_by_i(inc_by[n]), .rd_low_i(rd_low[n]),
        .low_o(low[n]), .high_o(high[n]));
    end else begin : gen_hole
      assign rd_low[n] = 1'b0;
      assign low[n]    = NoAnswer;
      assign high[n]   = NoAnswer;
      wire unused_hole = ^{inc[n], inc_by[n], rd_low[n]};
    end
  end

  // ---- Frames inside, as differences of counts modulo 2^16 ----
  logic [15:0] rx_in_q, tx_in_q, tx_out_q;
  always_ff @(posedge cmac_clk) begin
    if (!cmac_rstn) begin
      rx_in_q  <= '0;
      tx_in_q  <= '0;
      tx_out_q <= '0;
    end else begin
      if (rx_accept) rx_in_q  <= rx_in_q + 1'b1;
      if (tx_accept) tx_in_q  <= tx_in_q + 1'b1;
      if (tx_wire) tx_out_q <= tx_out_q + 1'b1;
    end
  end

  // ---- Read ----
  wire [11:3] slot = reg_addr[11:3];
  always_ff @(posedge cmac_clk) begin
    if (reg_rd) begin
      unique case (32'({reg_addr[11:3], 3'd0}))
        PACKET_ADAPTER_RX_INSIDE: reg_rdata <= reg_addr[2] ? '0 : {16'd0, rx_in_q - rx_left_i};
        PACKET_ADAPTER_TX_INSIDE: reg_rdata <= reg_addr[2] ? '0 : {16'd0, tx_in_q - tx_out_q};
        default: begin
          if (slot >= 9'(NumSlots)) reg_rdata <= NoAnswer;
          else                      reg_rdata <= reg_addr[2] ? high[slot[7:3]] : low[slot[7:3]];
        end
      endcase
      if (reg_addr[1:0] != '0) reg_rdata <= NoAnswer;
    end
  end
endmodule
`default_nettype wire
