// First-word-fall-through FIFO in one clock domain, storage in a memory.
//
// rd_data_o shows the oldest word while rd_valid_o is high; it is read from the memory directly, without an output
// register. 1 word in and 1 out per cycle; a word written is visible in the next cycle. Holds exactly Depth words.
// Writing when full or reading when empty is the user's mistake: it is ignored, and an assertion says so.
`include "onic_assert.svh"
`default_nettype none
module sync_fifo #(
  parameter  int unsigned Width = 8,                  // bits
  parameter  int unsigned Depth = 16,                 // words, a power of two
  localparam int unsigned AddrWidth = $clog2(Depth)
) (
  input  wire                clk,
  input  wire                rstn,                    // synchronous, active low
  // Write
  input  wire                wr_en_i,
  input  wire    [Width-1:0] wr_data_i,
  output logic               wr_ready_o,              // a register
  // Read
  output logic               rd_valid_o,
  output logic   [Width-1:0] rd_data_o,
  input  wire                rd_en_i,
  // Words inside, 0..Depth
  output logic [AddrWidth:0] count_o
);
  `ONIC_ASSERT_PARAM(Depth, Depth >= 2 && (Depth & (Depth - 1)) == 0, "Depth must be a power of two, at least 2")

  logic [Width-1:0]     mem [Depth];
  logic [AddrWidth-1:0] wr_ptr_q, rd_ptr_q;

  wire                wr      = wr_en_i && wr_ready_o;
  wire                rd      = rd_en_i && rd_valid_o;
  wire [AddrWidth:0]  count_d = count_o + (AddrWidth + 1)'(wr) - (AddrWidth + 1)'(rd);

  assign rd_data_o = mem[rd_ptr_q];

  always_ff @(posedge clk) begin
    if (!rstn) begin
      wr_ptr_q   <= '0;
      rd_ptr_q   <= '0;
      count_o    <= '0;
      wr_ready_o <= 1'b0;
      rd_valid_o <= 1'b0;
    end else begin
      if (wr) wr_ptr_q <= wr_ptr_q + 1'b1;
      if (rd) rd_ptr_q <= rd_ptr_q + 1'b1;
      count_o    <= count_d;
      wr_ready_o <= count_d != (AddrWidth + 1)'(Depth);
      rd_valid_o <= count_d != '0;
    end
  end

  always_ff @(posedge clk) if (wr) mem[wr_ptr_q] <= wr_data_i;

  `ONIC_ASSERT(FifoFullWrite_A, clk, rstn, !(wr_en_i && !wr_ready_o), "write into a full FIFO")
  `ONIC_ASSERT(FifoEmptyRead_A, clk, rstn, !(rd_en_i && !rd_valid_o), "read from an empty FIFO")
  `ONIC_ASSERT(FifoCount_A, clk, rstn, count_o[AddrWidth-1:0] == AddrWidth'(wr_ptr_q - rd_ptr_q),
               "the count disagrees with the pointers")
endmodule
`default_nettype wire
