// Tags of the H2C data reads: which of 256 are free.
//
// A tag may be taken in each cycle in which ready_o is high, and one may be given back in each; one that is given back can
// be taken again in the next cycle. At most reads_i are out at a time. After reset the tags that were never used come
// from a counter, so the memory needs no start value.
`include "onic_assert.svh"
`default_nettype none
module qdma_h2c_tags import qdma_pkg::*; (
  input  wire                 clk,
  input  wire                 rstn,
  input  wire           [8:0] reads_i,                 // 1 to 256
  output logic                ready_o,
  output logic [TagWidth-1:0] tag_o,                   // the one that take_i takes
  input  wire                 take_i,
  input  wire                 give_i,
  input  wire  [TagWidth-1:0] give_tag_i
);
  localparam int unsigned NumTag = 2**TagWidth;

  logic [TagWidth:0]   fresh_q;                        // tags below were used before
  logic [TagWidth:0]   out_q;                          // tags out
  logic                used_valid;
  logic [TagWidth-1:0] used_tag;
  wire                 unused_ready;                   // NumTag tags at most
  wire [TagWidth:0]    unused_count;

  sync_fifo #(.Width(TagWidth), .Depth(NumTag)) u_used (
    .clk, .rstn,
    .wr_en_i(give_i), .wr_data_i(give_tag_i), .wr_ready_o(unused_ready),
    .rd_valid_o(used_valid), .rd_data_o(used_tag), .rd_en_i(take_i && used_valid), .count_o(unused_count)
  );

  assign ready_o = (used_valid || !fresh_q[TagWidth]) && out_q < reads_i;
  assign tag_o   = used_valid ? used_tag : fresh_q[TagWidth-1:0];

  always_ff @(posedge clk) begin
    if (!rstn) begin
      fresh_q <= '0;
      out_q   <= '0;
    end else begin
      if (take_i && !used_valid) fresh_q <= fresh_q + 1'b1;
      if (take_i != give_i)      out_q   <= take_i ? out_q + 1'b1 : out_q - 1'b1;
    end
  end

  `ONIC_ASSERT(TakeFree_A, clk, rstn, !take_i || ready_o, "a tag was taken while none is free")
  `ONIC_ASSERT(GiveOut_A, clk, rstn, !give_i || out_q != '0, "a tag came back while none is out")
endmodule
`default_nettype wire
