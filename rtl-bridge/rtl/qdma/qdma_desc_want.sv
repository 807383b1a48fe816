// The queues that want to be looked at for a fetch, given out round robin.
//
// Any of Sets inputs puts a queue on the list in a cycle; a queue is on it once. pick_valid_o and pick_qid_o offer the next
// queue in ascending order, around; pick_i takes it off. A set in the cycle of the pick keeps the queue on the list, so
// no wish is lost. The list is a bit for each queue in words of 32; finding the next word that has any takes a cycle.
`default_nettype none
module qdma_desc_want import qdma_pkg::*; #(
  parameter int unsigned NumQueue = 512,               // a power of two, 1 to 2048
  parameter int unsigned Sets     = 4
) (
  input  wire  clk,
  input  wire  rstn,                                   // synchronous, active low
  input  wire  set_i          [Sets],
  input  wire qid_t set_qid_i [Sets],
  output logic pick_valid_o,
  output qid_t pick_qid_o,
  input  wire  pick_i,
  output logic idle_o                                  // the list is empty
);
  localparam int unsigned Words     = NumQueue > 32 ? NumQueue / 32 : 1;
  localparam int unsigned WordWidth = Words > 1 ? $clog2(Words) : 1;

  logic          [31:0] list_q [Words];
  logic          [63:0] any_q;                         // words that may have a bit set
  logic [WordWidth-1:0] word_q;                        // word that is being gone through
  logic          [31:0] left_q;                        // its bits not yet gone through

  // Lowest bit set, 0 if there is none.
  function automatic logic [4:0] lowest32(input logic [31:0] bits);
    logic [31:0] one;
    one = bits & -bits;
    return {|(one & 32'hFFFF_0000), |(one & 32'hFF00_FF00), |(one & 32'hF0F0_F0F0), |(one & 32'hCCCC_CCCC),
            |(one & 32'hAAAA_AAAA)};
  endfunction
  function automatic logic [5:0] lowest64(input logic [63:0] bits);
    return bits[31:0] != '0 ? {1'b0, lowest32(bits[31:0])} : {1'b1, lowest32(bits[63:32])};
  endfunction

  logic          [31:0] here;
  logic           [4:0] bit_index;
  logic          [63:0] after;                         // words behind the present one
  logic [WordWidth-1:0] next_word;

  always_comb begin
    here         = list_q[word_q] & left_q;
    bit_index    = lowest32(here);
    pick_valid_o = here != '0;
    pick_qid_o   = qid_t'({word_q, bit_index});
    after        = any_q & ~((64'd2 << word_q) - 64'd1);
    next_word    = WordWidth'(lowest64(after != '0 ? after : any_q));
  end

  assign idle_o = any_q == '0;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      for (int unsigned i = 0; i < Words; i++) list_q[i] <= '0;
      any_q  <= '0;
      word_q <= '0;
      left_q <= '1;
    end else begin
      if (pick_valid_o) begin
        if (pick_i) begin
          list_q[word_q][bit_index] <= 1'b0;
          left_q                    <= ~((32'd2 << bit_index) - 32'd1);
        end
      end else if (any_q != '0) begin
        if (list_q[word_q] == '0) any_q[6'(word_q)] <= 1'b0;
        word_q <= next_word;
        left_q <= '1;
      end
      for (int unsigned i = 0; i < Sets; i++) begin
        if (set_i[i]) begin
          list_q[WordWidth'(set_qid_i[i] >> 5)][set_qid_i[i][4:0]] <= 1'b1;
          any_q[6'(WordWidth'(set_qid_i[i] >> 5))]                 <= 1'b1;
        end
      end
    end
  end
endmodule
`default_nettype wire
