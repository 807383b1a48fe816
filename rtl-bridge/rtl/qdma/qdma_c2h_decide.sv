// Decides each C2H frame's fate in order, and pops its descriptors.
//
// A frame at hand is looked up (software context, prefetch context) again in each cycle until it is decided, so what it waits
// for may be a descriptor, a failure, or the end of its queue. The rules are in the header of qdma_c2h_write.
// Nothing is popped before all descriptors of the frame are ready. Then they are popped one a cycle. If the queue is stopped
// meanwhile, the addresses are taken back and the frame is decided anew; other changes do not touch it any more.
//
// Latency: verdict_valid_o in the cycle after a frame of one buffer was taken. Throughput: 1 frame of one buffer a cycle; a
// frame of n buffers takes n cycles, and up to n/2 more to find out n if n > 2 and fewer than 31 descriptors are ready.
// verdict_ready_i is honoured before the first pop.
// A frame for a queue beyond NumQueue is lost.
`include "onic_assert.svh"
`default_nettype none
module qdma_c2h_decide import qdma_pkg::*; import qdma_c2h_pkg::*; #(
  parameter int unsigned NumQueue = 512                // a power of two, 2 to 2048
) (
  input  wire                clk,
  input  wire                rstn,                     // synchronous, active low
  input  wire   [15:0][15:0] buffer_size_i,            // bytes, by index
  // Frames
  input  wire                frame_valid_i,
  input  wire frame_t        frame_i,
  output logic               frame_ready_o,
  // Look-up; a peek of another queue goes first
  input  wire                peek_i,
  input  wire qid_t          peek_qid_i,
  output qid_t               look_qid_o,
  input  wire desc_queue_t   look_i,
  input  wire                ctxt_valid_i,             // prefetch context of look_qid_o, one cycle later
  input  wire                ctxt_err_i,
  input  wire          [3:0] ctxt_size_index_i,
  // Descriptors
  output logic               pop_valid_o,
  output qid_t               pop_qid_o,
  output logic               demand_valid_o,
  output qid_t               demand_qid_o,
  output logic         [5:0] demand_count_o,
  // Addresses of the frame's buffers
  output logic               put_o,
  output addr_t              put_addr_o,
  output logic               undo_o,
  output logic         [4:0] undo_count_o,
  input  wire                room_i,                   // for BuffersMax
  // Verdicts
  output logic               verdict_valid_o,
  output verdict_t           verdict_o,
  input  wire                verdict_ready_i,
  output logic               popping_o,                // between a frame's first pop and its last
  output logic               at_hand_o,                // a frame is here that is not decided
  output logic               stopped_o                 // if not: the queue of the frame that was written last was stopped since
);
  // ---- The frame at hand ----
  logic   valid_q, looked_q;                           // looked: look_i is about it
  logic   enabled_q;                                   // its queue was seen enabled
  frame_t frame_q;
  wire    take  = !valid_q || verdict_valid_o;
  wire    here  = valid_q && looked_q;
  wire    known_queue = 32'(frame_q.qid) < NumQueue;

  assign frame_ready_o = take;
  assign look_qid_o    = peek_i ? peek_qid_i : take && frame_valid_i ? frame_i.qid : frame_q.qid;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      valid_q  <= 1'b0;
      looked_q <= 1'b0;
    end else begin
      if (take) valid_q <= frame_valid_i;
      looked_q <= !peek_i;
    end
    if (take && frame_valid_i) frame_q <= frame_i;
    enabled_q <= !take && (enabled_q || (here && enabled));
  end

  // ---- What becomes of it. Whether a frame of several buffers has enough descriptors takes a count, unless the queue has
  // enough for any frame. ----
  wire [15:0] size      = buffer_size_i[ctxt_size_index_i];
  wire [20:0] size_max  = {size, 5'd0} - 21'(size);    // of BuffersMax buffers
  wire        one       = frame_q.len <= size;
  wire        known;                                   // need is
  wire  [5:0] need;

  qdma_c2h_need u_need (
    .clk, .rstn, .run_i(here && !popping_o), .next_i(verdict_valid_o), .len_i(frame_q.len), .size_i(size),
    .known_o(known), .need_o(need));

  wire enabled   = known_queue && look_i.enabled && ctxt_valid_i;
  wire failed    = look_i.failed || ctxt_err_i;
  wire bad_count = size == '0 || 21'(frame_q.len) > size_max;
  wire wanted    = enabled && !failed && !bad_count;
  wire enough    = look_i.count >= 9'(BuffersMax) || (known && look_i.count >= 9'(need));
  wire lacking   = wanted && known && !enough;

  wire open      = here && !popping_o && verdict_ready_i;
  wire fail      = open && enabled && failed;
  wire lose      = open && (!enabled || (!failed && bad_count));
  wire start     = open && wanted && enough && room_i;

  // ---- Popping ----
  logic [4:0]  popped_q;                               // while popping
  logic [15:0] rest_q;                                 // bytes for which no buffer was popped
  logic [15:0] size_q;
  generation_t generation_q;
  wire [15:0]  room_now = popping_o ? size_q : size;
  wire intact = look_i.enabled && !look_i.failed && look_i.generation == generation_q && look_i.count != '0;
  wire go_on  = here && popping_o && intact;
  wire last   = popping_o ? rest_q <= size_q : one;

  assign pop_valid_o  = start || go_on;
  assign pop_qid_o    = frame_q.qid;
  assign put_o        = pop_valid_o;
  assign put_addr_o   = look_i.desc[63:0];
  assign undo_o       = here && popping_o && !intact;
  assign undo_count_o = popped_q;

  always_ff @(posedge clk) begin
    if (!rstn || undo_o)  popping_o <= 1'b0;
    else if (pop_valid_o) popping_o <= !last;
  end

  always_ff @(posedge clk) begin
    if (pop_valid_o) begin
      popped_q <= popping_o ? popped_q + 5'd1 : 5'd1;
      rest_q   <= (popping_o ? rest_q : frame_q.len) - room_now;
    end
    if (start) begin
      size_q       <= size;
      generation_q <= look_i.generation;
    end
  end

  // ---- After it: is its queue the one that it was? A failure does not touch a frame that is decided. ----
  assign at_hand_o = valid_q;
  assign stopped_o = !valid_q && looked_q && (!look_i.enabled || !ctxt_valid_i
                                              || (!look_i.failed && look_i.generation != generation_q));

  // ---- Verdict ----
  assign verdict_valid_o = fail || lose || (pop_valid_o && last);

  always_comb begin
    verdict_o = '{qid: frame_q.qid, func: look_i.func, len: frame_q.len, outcome: FrameWritten, why: DropNone, fault: FaultNone,
                  buffer_size: room_now, buffers: popping_o ? popped_q + 5'd1 : 5'd1};
    if (fail) begin
      verdict_o.outcome = FrameFailed;
      verdict_o.fault   = FaultDescResponse;
    end else if (lose) begin
      verdict_o.outcome = FrameLost;
      verdict_o.why     = enabled ? DropTooLong : enabled_q ? DropStopped : DropInvalidQueue;
      verdict_o.fault   = enabled && bad_count ? FaultDescCount : FaultNone;
    end
  end

  // ---- What the descriptor engine and the counters are told ----
  always_ff @(posedge clk) begin
    demand_valid_o <= here && !popping_o && lacking && rstn;
    if (here && !popping_o && lacking) begin
      demand_qid_o   <= frame_q.qid;
      demand_count_o <= need;
    end
  end

  `ONIC_ASSERT(OneVerdict_A, clk, rstn, $onehot0({fail, lose, start, go_on}), "two verdicts for one frame")
  `ONIC_ASSERT(VerdictRoom_A, clk, rstn, !verdict_valid_o || verdict_ready_i, "a verdict without room")
  `ONIC_ASSERT(PopReady_A, clk, rstn, !pop_valid_o || look_i.count != '0, "a descriptor was popped that is not ready")

  // ---- What a run should have seen ----
  always_ff @(posedge clk) begin
    if (rstn) begin
      WaitForDesc_C: cover (demand_valid_o);
      StopWhilePopping_C: cover (undo_o);
      BackToBack_C: cover (start && last && frame_valid_i);
    end
  end

  wire unused_look = ^{look_i.err, look_i.ring_base, look_i.ring_entries, look_i.pidx, look_i.head_index, look_i.desc[127:64],
                       look_i.wbi_chk, look_i.wbi_intvl_en, look_i.wbk_en, look_i.irq_en, look_i.irq_arm, look_i.int_aggr,
                       look_i.vector};
endmodule
`default_nettype wire
