// First-word-fall-through FIFO between two clocks, storage in a memory, gray-coded pointers through two flops.
//
// Holds Depth words. 1 word in and 1 out per cycle of either clock. A word written is visible 3 to 4 rd_clk edges later;
// a word read gives its room back 3 to 4 wr_clk edges later, so wr_ready_o is pessimistic. Writing while wr_ready_o is
// low or reading while rd_valid_o is low is the user's mistake: it is ignored, and an assertion says so.
//
// Both resets must be low together for at least four cycles of the slower clock.
`include "onic_assert.svh"
`default_nettype none
module async_fifo #(
  parameter  int unsigned Width = 8,                  // bits
  parameter  int unsigned Depth = 16,                 // words, a power of two
  localparam int unsigned AddrWidth = $clog2(Depth)
) (
  // Write
  input  wire              wr_clk,
  input  wire              wr_rstn,
  input  wire              wr_en_i,
  input  wire  [Width-1:0] wr_data_i,
  output logic             wr_ready_o,
  // Read
  input  wire              rd_clk,
  input  wire              rd_rstn,
  output logic             rd_valid_o,
  output logic [Width-1:0] rd_data_o,
  input  wire              rd_en_i
);
  `ONIC_ASSERT_PARAM(Depth, Depth >= 4 && (Depth & (Depth - 1)) == 0, "Depth must be a power of two, at least 4")

  logic [Width-1:0] mem [Depth];

  // Pointers count modulo 2*Depth: equal means empty, Depth apart means full.
  logic [AddrWidth:0] wr_ptr_q, wr_ptr_seen;          // seen: in the other domain, a little late
  logic [AddrWidth:0] rd_ptr_q, rd_ptr_seen;

  wire wr = wr_en_i && wr_ready_o;
  wire rd = rd_en_i && rd_valid_o;

  assign wr_ready_o = wr_ptr_q - rd_ptr_seen != (AddrWidth + 1)'(Depth);
  assign rd_valid_o = rd_ptr_q != wr_ptr_seen;
  assign rd_data_o  = mem[rd_ptr_q[AddrWidth-1:0]];

  always_ff @(posedge wr_clk) begin
    if (!wr_rstn) wr_ptr_q <= '0;
    else if (wr)  wr_ptr_q <= wr_ptr_q + 1'b1;
    if (wr) mem[wr_ptr_q[AddrWidth-1:0]] <= wr_data_i;
  end

  always_ff @(posedge rd_clk) begin
    if (!rd_rstn) rd_ptr_q <= '0;
    else if (rd)  rd_ptr_q <= rd_ptr_q + 1'b1;
  end

  cdc_gray #(.Width(AddrWidth + 1)) u_wr_ptr (
    .src_clk(wr_clk), .src_rstn(wr_rstn), .count_i(wr_ptr_q), .dst_clk(rd_clk), .dst_rstn(rd_rstn), .count_o(wr_ptr_seen));
  cdc_gray #(.Width(AddrWidth + 1)) u_rd_ptr (
    .src_clk(rd_clk), .src_rstn(rd_rstn), .count_i(rd_ptr_q), .dst_clk(wr_clk), .dst_rstn(wr_rstn), .count_o(rd_ptr_seen));

  `ONIC_ASSERT(FifoFullWrite_A, wr_clk, wr_rstn, !(wr_en_i && !wr_ready_o), "write into a full FIFO")
  `ONIC_ASSERT(FifoEmptyRead_A, rd_clk, rd_rstn, !(rd_en_i && !rd_valid_o), "read from an empty FIFO")
  `ONIC_ASSERT(FifoDepth_A, wr_clk, wr_rstn, wr_ptr_q - rd_ptr_seen <= (AddrWidth + 1)'(Depth),
               "more words inside than the memory holds")
endmodule
`default_nettype wire
