// Contexts that nobody but software uses: clear, write under a mask, read. INV is as CLR.
//
// A command takes 2 cycles; the rules of valid_i and done_o are qdma_pkg::context_command_t's. The memory is not reset: an
// entry reads 0 until it is written. A second read port shows an entry in the cycle after its index was given, as it
// was before a write of that cycle.
//
// Source: qdma.md section 3.
`default_nettype none
module qdma_context_store
  import qdma_pkg::*;
#(
  parameter  int unsigned Depth = 512,                 // entries
  parameter  int unsigned Width = 256,                 // bits of an entry
  localparam int unsigned IndexWidth = $clog2(Depth)
) (
  input  wire                   clk,
  input  wire                   rstn,
  // Command
  input  wire                   valid_i,
  input  wire context_op_e      op_i,
  input  wire  [IndexWidth-1:0] index_i,
  input  wire       [Width-1:0] data_i,
  input  wire       [Width-1:0] mask_i,
  output logic                  done_o,                // one cycle
  output logic      [Width-1:0] rdata_o,               // with done_o: the entry before the command
  // Second read port
  input  wire                   look_i,
  input  wire  [IndexWidth-1:0] look_index_i,
  output logic      [Width-1:0] look_o
);
  logic [Width-1:0] mem [Depth];
  logic [Depth-1:0] written_q;                         // entries that are not 0 by default
  logic [Width-1:0] old_q, look_q;
  logic             old_written_q, look_written_q;

  assign rdata_o = old_written_q ? old_q : '0;
  assign look_o  = look_written_q ? look_q : '0;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      done_o    <= 1'b0;
      written_q <= '0;
    end else begin
      done_o <= valid_i && !done_o;
      if (done_o && op_i != CtxtRead) written_q[index_i] <= op_i == CtxtWrite;
    end
  end

  always_ff @(posedge clk) begin
    if (valid_i && !done_o) begin
      old_q         <= mem[index_i];
      old_written_q <= written_q[index_i];
    end
    if (done_o && op_i == CtxtWrite) mem[index_i] <= (rdata_o & ~mask_i) | (data_i & mask_i);
    if (look_i) begin
      look_q         <= mem[look_index_i];
      look_written_q <= written_q[look_index_i];
    end
  end
endmodule
`default_nettype wire
