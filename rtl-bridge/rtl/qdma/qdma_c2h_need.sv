// How many buffers of size_i bytes hold len_i bytes, if up to 31 do: ceil(len / size), at least 1, without a divider.
//
// Up to 2 buffers: known_o in the first cycle. Else it counts down by two buffers a cycle, 15 cycles at most. known_o stays
// until next_i; it starts again if size_i changes meanwhile, so the answer is always one for the size beside it. If more than
// 31 are needed the answer is too small: who asks must know that himself.
`default_nettype none
module qdma_c2h_need (
  input  wire         clk,
  input  wire         rstn,                            // synchronous, active low
  input  wire         run_i,                           // len_i and size_i are a frame's; low: a pause
  input  wire         next_i,                          // its last cycle
  input  wire  [15:0] len_i,                           // bytes
  input  wire  [15:0] size_i,                          // bytes
  output logic        known_o,
  output logic  [5:0] need_o
);
  logic        counting_q;
  logic [15:0] size_q;
  logic [15:0] rest_q;                                 // bytes beyond the buffers that were counted
  logic  [4:0] counted_q;                              // even

  wire         fresh   = !counting_q || size_q != size_i;
  wire  [15:0] rest    = fresh ? len_i : rest_q;
  wire   [4:0] counted = fresh ? 5'd0 : counted_q;
  wire  [16:0] two     = {size_i, 1'b0};
  wire         in_one  = rest <= size_i;

  assign known_o = 17'(rest) <= two || counted == 5'd30;
  assign need_o  = 6'(counted) + (in_one ? 6'd1 : 6'd2);

  always_ff @(posedge clk) begin
    if (!rstn || next_i)        counting_q <= 1'b0;
    else if (run_i && !known_o) counting_q <= 1'b1;
  end

  always_ff @(posedge clk) begin
    if (run_i && !known_o) begin
      size_q    <= size_i;
      rest_q    <= rest - two[15:0];                   // two < rest here, so its bit 16 is 0
      counted_q <= counted + 5'd2;
    end
  end
endmodule
`default_nettype wire
