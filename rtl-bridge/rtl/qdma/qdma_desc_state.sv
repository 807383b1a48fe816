// Where each descriptor queue stands: origin, sent, delivered, popped, done.
//
// Each part is a memory with one writer; flush_i puts all parts but the origin back to the origin. Readers see a queue as
// it is in the cycle, before that cycle's writes. An origin that was never written is 0: the queue does not run.
//
// Why not let control write the start values into all parts: pops have no ready and may come in every cycle, so control
// could wait for ever for the write port.
`default_nettype none
module qdma_desc_state import qdma_pkg::*, qdma_desc_pkg::*; #(
  parameter int unsigned NumQueue = 512,               // a power of two
  parameter bit          H2c      = 1'b0               // 0: done is what was popped
) (
  input  wire        clk,
  input  wire        rstn,                             // synchronous, active low
  // Control
  input  wire        origin_wr_i,
  input  wire        flush_i,
  input  wire qid_t       control_qid_i,
  input  wire origin_t    origin_i,
  // Fetch
  input  wire        sent_wr_i,
  input  wire qid_t       sent_qid_i,
  input  wire sent_t      sent_i,
  // Retirement
  input  wire        delivered_wr_i,
  input  wire qid_t       delivered_qid_i,
  input  wire delivered_t delivered_i,
  // Pops
  input  wire        popped_wr_i,
  input  wire qid_t       popped_qid_i,
  input  wire popped_t    popped_i,
  // Completion of descriptors, H2C only
  input  wire        done_wr_i,
  input  wire qid_t       done_qid_i,
  input  wire index_t     done_i,
  // Read
  input  wire qid_t       qid_i   [Readers],
  output queue_t     queue_o [Readers]
);
  // Queues are 11 bits wide, whatever NumQueue is.
  wire unused_qid = ^{control_qid_i, sent_qid_i, delivered_qid_i, popped_qid_i, done_qid_i};

  localparam int unsigned IndexWidth = NumQueue > 1 ? $clog2(NumQueue) : 1;
  typedef logic [IndexWidth-1:0] place_t;

  place_t     place [Readers];
  origin_t    origin    [Readers];
  sent_t      sent      [Readers];
  delivered_t delivered [Readers];
  popped_t    popped    [Readers];
  index_t     done      [Readers];
  logic       origin_live [Readers], sent_live [Readers], delivered_live [Readers], popped_live [Readers];
  logic       done_live [Readers];

  qdma_queue_state #(.Width($bits(origin_t)), .NumQueue(NumQueue), .Readers(Readers)) u_origin (
    .clk, .rstn, .wr_i(origin_wr_i), .wr_index_i(place_t'(control_qid_i)), .wr_data_i(origin_i),
    .forget_i(1'b0), .forget_index_i('0),
    .rd_index_i(place), .rd_data_o(origin), .rd_live_o(origin_live));
  qdma_queue_state #(.Width($bits(sent_t)), .NumQueue(NumQueue), .Readers(Readers)) u_sent (
    .clk, .rstn, .wr_i(sent_wr_i), .wr_index_i(place_t'(sent_qid_i)), .wr_data_i(sent_i),
    .forget_i(flush_i), .forget_index_i(place_t'(control_qid_i)),
    .rd_index_i(place), .rd_data_o(sent), .rd_live_o(sent_live));
  qdma_queue_state #(.Width($bits(delivered_t)), .NumQueue(NumQueue), .Readers(Readers)) u_delivered (
    .clk, .rstn, .wr_i(delivered_wr_i), .wr_index_i(place_t'(delivered_qid_i)), .wr_data_i(delivered_i),
    .forget_i(flush_i), .forget_index_i(place_t'(control_qid_i)),
    .rd_index_i(place), .rd_data_o(delivered), .rd_live_o(delivered_live));
  qdma_queue_state #(.Width($bits(popped_t)), .NumQueue(NumQueue), .Readers(Readers)) u_popped (
    .clk, .rstn, .wr_i(popped_wr_i), .wr_index_i(place_t'(popped_qid_i)), .wr_data_i(popped_i),
    .forget_i(flush_i), .forget_index_i(place_t'(control_qid_i)),
    .rd_index_i(place), .rd_data_o(popped), .rd_live_o(popped_live));

  if (H2c) begin : gen_done
    qdma_queue_state #(.Width($bits(index_t)), .NumQueue(NumQueue), .Readers(Readers)) u_done (
      .clk, .rstn, .wr_i(done_wr_i), .wr_index_i(place_t'(done_qid_i)), .wr_data_i(done_i),
      .forget_i(flush_i), .forget_index_i(place_t'(control_qid_i)),
      .rd_index_i(place), .rd_data_o(done), .rd_live_o(done_live));
  end else begin : gen_done_is_popped
    for (genvar i = 0; i < Readers; i++) begin : gen_reader
      assign done[i]      = popped[i].index;
      assign done_live[i] = popped_live[i];
    end
    wire unused_done = ^{done_wr_i, done_qid_i, done_i};
  end

  for (genvar i = 0; i < Readers; i++) begin : gen_reader
    assign place[i] = place_t'(qid_i[i]);
    always_comb begin
      queue_o[i] = '0;
      if (origin_live[i]) queue_o[i].origin = origin[i];
      queue_o[i].sent.index      = queue_o[i].origin.start;
      queue_o[i].delivered.cidx  = queue_o[i].origin.start;
      queue_o[i].popped.index    = queue_o[i].origin.start;
      queue_o[i].done            = queue_o[i].origin.start;
      if (sent_live[i])      queue_o[i].sent      = sent[i];
      if (delivered_live[i]) queue_o[i].delivered = delivered[i];
      if (popped_live[i])    queue_o[i].popped    = popped[i];
      if (done_live[i])      queue_o[i].done      = done[i];
    end
  end
endmodule
`default_nettype wire
