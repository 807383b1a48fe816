// 64-bit event counter that software reads as two 32-bit words without tearing.
//
// Counts up by inc_by_i in each cycle in which inc_i is high; wraps at 2^64. rd_low_i, high in the cycle in which software reads
// the low word, latches the high word that belongs to it: high_o is that latch, and so stays right until the next read
// of the low word. Reading never clears.
//
// +onic_counter_preload=HEX gives the low word's value after reset (0 without it), for tests of the carry.
`default_nettype none
module counter64 #(
  parameter int unsigned IncWidth = 1                 // bits of inc_by_i
) (
  input  wire                clk,
  input  wire                rstn,
  input  wire                inc_i,
  input  wire [IncWidth-1:0] inc_by_i,
  input  wire                rd_low_i,
  output logic        [31:0] low_o,
  output logic        [31:0] high_o
);
  logic [31:0] preload;
  initial begin
    if (!$value$plusargs("onic_counter_preload=%h", preload)) preload = '0;
  end

  logic [63:0] count_q;
  assign low_o = count_q[31:0];

  always_ff @(posedge clk) begin
    if (!rstn)      count_q <= {32'd0, preload};
    else if (inc_i) count_q <= count_q + 64'(inc_by_i);
  end

  always_ff @(posedge clk) begin
    if (!rstn)         high_o <= '0;
    else if (rd_low_i) high_o <= count_q[63:32];
  end
endmodule
`default_nettype wire
