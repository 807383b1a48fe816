// Brings a counter into another clock domain, gray coded, so that a sample taken mid-change is the old or the new value.
//
// Needs: count_i is a register of src_clk that changes by at most one per src_clk cycle (asserted). count_o lags by one
// src_clk edge and two dst_clk edges and then moves by any number of steps.
`include "onic_assert.svh"
`default_nettype none
module cdc_gray #(
  parameter int unsigned Width = 4                    // bits; the counter wraps at 2^Width
) (
  input  wire              src_clk,
  input  wire              src_rstn,
  input  wire  [Width-1:0] count_i,
  input  wire              dst_clk,
  input  wire              dst_rstn,
  output logic [Width-1:0] count_o
);
  logic [Width-1:0] gray_q, meta_q, seen_q;
  logic [Width-1:0] count_q;

  always_ff @(posedge src_clk) begin
    count_q <= src_rstn ? count_i : '0;
    gray_q  <= src_rstn ? count_i ^ (count_i >> 1) : '0;
  end

  always_ff @(posedge dst_clk) begin
    meta_q <= dst_rstn ? gray_q : '0;
    seen_q <= dst_rstn ? meta_q : '0;
  end

  // Binary bit i is the parity of gray bits i and up.
  always_comb begin
    count_o[Width-1] = seen_q[Width-1];
    for (int i = Width - 2; i >= 0; i--) count_o[i] = count_o[i+1] ^ seen_q[i];
  end

  `ONIC_ASSERT(GrayStep_A, src_clk, src_rstn, count_i == count_q || count_i == count_q + 1'b1,
               "the counter moved by more than one step")
endmodule
`default_nettype wire
