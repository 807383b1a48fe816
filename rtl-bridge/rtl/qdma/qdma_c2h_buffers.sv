// Addresses of popped buffers, from the decision to the write.
//
// Addresses are put in one by one and may be taken back before their frame's verdict is out; they are read by their place in
// the frame at hand, in the same cycle, and given up all at once at its end. Who reads knows from the verdict how many
// there are, so there is no empty flag.
`include "onic_assert.svh"
`default_nettype none
module qdma_c2h_buffers import qdma_pkg::*; import qdma_c2h_pkg::*; (
  input  wire        clk,
  input  wire        rstn,                             // synchronous, active low
  // In
  input  wire        put_i,
  input  wire addr_t put_addr_i,
  input  wire        undo_i,                           // the last undo_count_i go back; not with put_i
  input  wire  [4:0] undo_count_i,
  output logic       room_o,                           // a register: for BuffersMax more, whatever is put in this cycle
  // Out
  input  wire  [4:0] place_i,                          // 0: the oldest
  output addr_t      addr_o,
  input  wire        free_i,
  input  wire  [4:0] free_count_i
);
  localparam int unsigned Depth = 64;

  addr_t      mem [Depth];
  logic [5:0] wr_ptr_q, rd_ptr_q;
  logic [6:0] count_q;

  wire [6:0] count_d = count_q + 7'(put_i) - (undo_i ? 7'(undo_count_i) : 7'd0) - (free_i ? 7'(free_count_i) : 7'd0);

  assign addr_o = mem[rd_ptr_q + 6'(place_i)];

  always_ff @(posedge clk) begin
    if (!rstn) begin
      wr_ptr_q <= '0;
      rd_ptr_q <= '0;
      count_q  <= '0;
      room_o   <= 1'b0;
    end else begin
      wr_ptr_q <= wr_ptr_q + 6'(put_i) - (undo_i ? 6'(undo_count_i) : 6'd0);
      if (free_i) rd_ptr_q <= rd_ptr_q + 6'(free_count_i);
      count_q <= count_d;
      room_o  <= count_d < 7'(Depth - BuffersMax);
    end
  end

  always_ff @(posedge clk) if (put_i) mem[wr_ptr_q] <= put_addr_i;

  `ONIC_ASSERT(BuffersFull_A, clk, rstn, !(put_i && count_q == 7'(Depth)), "an address without room")
  `ONIC_ASSERT(BuffersUndo_A, clk, rstn, !(put_i && undo_i), "put and undo at once")
  `ONIC_ASSERT(BuffersCount_A, clk, rstn, count_d <= 7'(Depth), "more addresses left than were there")
endmodule
`default_nettype wire
