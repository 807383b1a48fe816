// A context for each queue, in a memory with one write port and Readers registered read ports.
//
// Data are there in the cycle after the read, as they were before a write of the read's cycle, and stay until the next
// read. An entry that was never written since reset reads 0.
`default_nettype none
module qdma_context_mem #(
  parameter  int unsigned Width    = 8,                // bits
  parameter  int unsigned NumQueue = 512,              // a power of two
  parameter  int unsigned Readers  = 1,
  localparam int unsigned IndexWidth = NumQueue > 1 ? $clog2(NumQueue) : 1
) (
  input  wire                   clk,
  input  wire                   rstn,                  // synchronous, active low
  // Write
  input  wire                   wr_i,
  input  wire  [IndexWidth-1:0] wr_index_i,
  input  wire       [Width-1:0] wr_data_i,
  // Read
  input  wire                   rd_i       [Readers],
  input  wire  [IndexWidth-1:0] rd_index_i [Readers],
  output logic      [Width-1:0] rd_data_o  [Readers]
);
  logic    [Width-1:0] mem [NumQueue];
  logic [NumQueue-1:0] known_q;

  always_ff @(posedge clk) if (wr_i) mem[wr_index_i] <= wr_data_i;

  always_ff @(posedge clk) begin
    if (!rstn)     known_q             <= '0;
    else if (wr_i) known_q[wr_index_i] <= 1'b1;
  end

  for (genvar i = 0; i < Readers; i++) begin : gen_reader
    always_ff @(posedge clk) if (rd_i[i]) rd_data_o[i] <= known_q[rd_index_i[i]] ? mem[rd_index_i[i]] : '0;
  end
endmodule
`default_nettype wire
