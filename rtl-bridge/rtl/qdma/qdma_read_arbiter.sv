// Two readers share one read channel of host memory: requests in turn, answers back by tag.
//
// A reader's tags are 0 to 63; bit 6 of the tag on the channel says whose it is (0 reader 0, 1 reader 1). A request spends
// one cycle here, as does an answer; one of each a cycle. req_* are registers.
`include "onic_assert.svh"
`default_nettype none
module qdma_read_arbiter
  import qdma_pkg::*;
(
  input  wire                  clk,
  input  wire                  rstn,
  // Readers
  input  wire            [1:0] rd_valid_i,
  input  wire read_req_t [1:0] rd_i,
  output logic           [1:0] rd_ready_o,
  output read_rsp_t            rsp_o [2],
  // Channel
  output logic                 req_valid_o,
  output read_req_t            req_o,
  input  wire                  req_ready_i,
  input  wire                  rsp_valid_i,
  input  wire   [TagWidth-1:0] rsp_tag_i,
  input  wire          [511:0] rsp_data_i,
  input  wire                  rsp_last_i,
  input  wire            [1:0] rsp_status_i
);
  localparam int unsigned OwnerBit = TagWidth - 2;

  // ---- Requests ----
  logic      turn_q;                                   // who goes first if both ask
  wire       choice = rd_valid_i[turn_q] ? turn_q : !turn_q;
  wire       free   = !req_valid_o || req_ready_i;
  wire       take   = free && rd_valid_i != '0;
  read_req_t chosen;
  assign chosen     = rd_i[choice];
  assign rd_ready_o = free ? (choice ? 2'b10 : 2'b01) : 2'b00;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      req_valid_o <= 1'b0;
      turn_q      <= 1'b0;
    end else begin
      if (free) req_valid_o <= take;
      if (take) turn_q <= !choice;
    end
  end

  always_ff @(posedge clk) begin
    if (take) req_o <= '{func: chosen.func, addr: chosen.addr, len: chosen.len,
                         tag: {1'b0, choice, chosen.tag[OwnerBit-1:0]}};
  end

  // ---- Answers ----
  always_ff @(posedge clk) begin
    for (int unsigned r = 0; r < 2; r++) begin
      if (rstn && rsp_valid_i && rsp_tag_i[OwnerBit] == r[0]) begin
        rsp_o[r] <= '{valid: 1'b1, tag: {2'b00, rsp_tag_i[OwnerBit-1:0]}, data: rsp_data_i, last: rsp_last_i,
                      status: read_status_e'(rsp_status_i)};
      end else begin
        rsp_o[r].valid <= 1'b0;
      end
    end
  end

  `ONIC_ASSERT(ReaderTag_A, clk, rstn, !take || chosen.tag[TagWidth-1:OwnerBit] == '0, "a reader's tag is above 63")
  `ONIC_ASSERT(AnswerTag_A, clk, rstn, !rsp_valid_i || !rsp_tag_i[TagWidth-1], "an answer's tag is not one of ours")
endmodule
`default_nettype wire
