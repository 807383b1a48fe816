// Prefetch contexts (selector 7) of the C2H queues.
//
// Software's fields are stored; num_pfch, err and in_prefetch are the engine's: a read shows descriptors that are ready (up
// to 63), whether the descriptor queue has failed since the context was last written or cleared, and whether
// descriptors may be fetched ahead now. Unnamed bits read 0. INV clears valid only. A command takes 2 cycles.
//
// A look-up shows the context in the cycle after its queue was given, as it was before a command of that cycle.
// For a read, peek_o asks the user of the descriptor engine's look-up to look at ctxt_i.qid in this cycle.
//
// Source: qdma.md section 3.4; AMD PG302, C2H prefetch context structure.
`default_nettype none
module qdma_prefetch_context import qdma_pkg::*; #(
  parameter int unsigned NumQueue = 512                // a power of two, 2 to 2048
) (
  input  wire                    clk,
  input  wire                    rstn,                 // synchronous, active low: all contexts are 0
  // Commands
  input  wire                    ctxt_valid_i,
  input  wire context_command_t  ctxt_i,
  output logic                   ctxt_done_o,
  output logic           [255:0] ctxt_rdata_o,         // with ctxt_done_o
  output logic                   peek_o,
  input  wire desc_queue_t       peeked_i,             // one cycle after peek_o
  // Look-up of the frame decision
  input  wire qid_t              look_qid_i,
  output logic                   valid_o,
  output logic                   err_o,
  output logic             [3:0] buffer_size_index_o,
  // Look-up of the descriptor engine
  input  wire qid_t              pfch_qid_i,
  output logic                   pfch_may_o,           // the context is valid and without error: descriptors may be fetched
  output logic                   pfch_en_o,            // and ahead of frames
  // Queues that have changed, to see whether they failed
  input  wire                    news_valid_i,
  input  wire qid_t              news_qid_i,
  output qid_t                   look2_qid_o,
  input  wire desc_queue_t       look2_i,
  output logic                   idle_o                // no news is being looked at
);
  localparam int unsigned IndexWidth = $clog2(NumQueue);
  typedef logic [IndexWidth-1:0] queue_index_t;

  // Places of fields in the two words.
  localparam int unsigned BufferSizeLow = 1, NumPfchLow = 10, ErrBit = 26, PfchEnBit = 27, InPrefetchBit = 28, ValidBit = 45;
  localparam logic [63:0] Stored = 64'h0000_3FFF_E83F_03FF;

  // ---- Memory. INV is a write under a mask. ----
  logic [63:0]  stored, looked;
  wire          invalidate = ctxt_i.op == CtxtInvalidate;
  wire context_op_e op     = invalidate ? CtxtWrite : ctxt_i.op;
  wire [63:0]   data       = invalidate ? 64'd0 : ctxt_i.data[63:0];
  wire [63:0]   mask       = invalidate ? 64'd1 << ValidBit : ctxt_i.mask[63:0] & Stored;
  wire queue_index_t index = queue_index_t'(ctxt_i.qid);

  qdma_context_store #(.Depth(NumQueue), .Width(64)) u_store (
    .clk, .rstn,
    .valid_i(ctxt_valid_i), .op_i(op), .index_i(index), .data_i(data), .mask_i(mask),
    .done_o(ctxt_done_o), .rdata_o(stored),
    .look_i(1'b1), .look_index_i(queue_index_t'(look_qid_i)), .look_o(looked));

  assign valid_o             = looked[ValidBit];
  assign buffer_size_index_o = looked[BufferSizeLow +: 4];

  // ---- Read: the engine's own fields ----
  assign peek_o = ctxt_valid_i && !ctxt_done_o && ctxt_i.op == CtxtRead;

  logic [NumQueue-1:0] err_q;

  always_comb begin
    ctxt_rdata_o                 = 256'(stored);
    ctxt_rdata_o[NumPfchLow +: 6] = peeked_i.count > 9'd63 ? 6'd63 : peeked_i.count[5:0];
    ctxt_rdata_o[ErrBit]          = err_q[index];
    ctxt_rdata_o[InPrefetchBit]   = stored[ValidBit] && stored[PfchEnBit] && peeked_i.enabled && !peeked_i.failed;
  end

  // ---- Validity and enable, once more, for the descriptor engine ----
  logic [NumQueue-1:0] pfch_valid_q, pfch_en_q;
  wire                 change = ctxt_done_o && ctxt_i.op != CtxtRead;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      pfch_valid_q <= '0;
      pfch_en_q    <= '0;
    end else if (change) begin
      pfch_valid_q[index] <= op == CtxtWrite && (mask[ValidBit] ? data[ValidBit] : stored[ValidBit]);
      pfch_en_q[index]    <= op == CtxtWrite && (mask[PfchEnBit] ? data[PfchEnBit] : stored[PfchEnBit]);
    end
    pfch_may_o <= pfch_valid_q[queue_index_t'(pfch_qid_i)] && !err_q[queue_index_t'(pfch_qid_i)];
    pfch_en_o  <= pfch_en_q[queue_index_t'(pfch_qid_i)];
  end

  // ---- Queues in error. Only the failure itself counts, not each later look at a queue that has failed: software may clear
  // this context before the other. ----
  logic [NumQueue-1:0] failed_q;                       // as last seen
  logic         news_valid_q;
  queue_index_t news_index_q;
  assign look2_qid_o = news_qid_i;
  assign idle_o      = !news_valid_q;

  always_ff @(posedge clk) begin
    news_valid_q <= news_valid_i && rstn;
    news_index_q <= queue_index_t'(news_qid_i);
    err_o        <= err_q[queue_index_t'(look_qid_i)];
    if (!rstn) begin
      err_q    <= '0;
      failed_q <= '0;
    end else begin
      if (change && !invalidate) err_q[index] <= 1'b0;
      if (news_valid_q) begin
        failed_q[news_index_q] <= look2_i.failed;
        if (look2_i.failed && !failed_q[news_index_q]) err_q[news_index_q] <= 1'b1;
      end
    end
  end

  wire unused_bits = ^{look_qid_i, pfch_qid_i, ctxt_i.sel, ctxt_i.data[255:64], ctxt_i.mask[255:64], look2_i, peeked_i};
endmodule
`default_nettype wire
