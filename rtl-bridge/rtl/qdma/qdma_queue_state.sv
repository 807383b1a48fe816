// A few bits for each queue, with a way to forget them.
//
// One write port, Readers read ports that show the entry in the same cycle (before a write of that cycle). An entry that was
// not written since reset or since it was forgotten is not live. Writing and forgetting one entry in a cycle forgets it.
`default_nettype none
module qdma_queue_state #(
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
  // Forget
  input  wire                   forget_i,
  input  wire  [IndexWidth-1:0] forget_index_i,
  // Read
  input  wire  [IndexWidth-1:0] rd_index_i [Readers],
  output logic      [Width-1:0] rd_data_o  [Readers],
  output logic                  rd_live_o  [Readers]
);
  logic [Width-1:0] mem [NumQueue];
  logic [NumQueue-1:0] live_q;

  always_ff @(posedge clk) if (wr_i) mem[wr_index_i] <= wr_data_i;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      live_q <= '0;
    end else begin
      if (wr_i)     live_q[wr_index_i]     <= 1'b1;
      if (forget_i) live_q[forget_index_i] <= 1'b0;
    end
  end

  for (genvar i = 0; i < Readers; i++) begin : gen_reader
    assign rd_data_o[i] = mem[rd_index_i[i]];
    assign rd_live_o[i] = live_q[rd_index_i[i]];
  end
endmodule
`default_nettype wire
