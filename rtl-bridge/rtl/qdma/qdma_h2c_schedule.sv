// Which H2C queue sends the next frame: round robin by frame over the queues that have descriptors.
//
// A queue with news waits in the list, in which it stands once. At its turn it is looked at; a cycle later its oldest
// descriptor is popped and becomes a frame, and the queue goes to the list's end if it has more. With nobody else in the
// list the same queue is looked at again at once: 1 frame a cycle, one queue or many, 2 cycles from a look to the frame.
// New queues enter before those that come back, which wait for it in a FIFO of their own.
//
// Back-pressure: while room_i or frame_ready_i is low the queue at its turn is looked at again each cycle, so a queue that
// stopped meanwhile is not popped. Neither depends on what the look says, nor does the next look.
// A descriptor of length 0 is not popped: all waits until the frames before it have ended (frames_ended_i); then it is
// reported.
// A queue in error is reported once for each time that it is found so, with the index at which it was first seen running
// before: nothing before that index is left to complete. A disabled one leaves the list.
`include "onic_assert.svh"
`default_nettype none
module qdma_h2c_schedule import qdma_pkg::*, qdma_h2c_pkg::*; #(
  parameter int unsigned NumQueue = 512                // 1 to 2048, a power of two
) (
  input  wire         clk,
  input  wire         rstn,
  // Descriptor queues
  input  wire         news_valid_i,
  input  wire qid_t   news_qid_i,
  output qid_t        look_qid_o,
  input  wire desc_queue_t look_i,                     // one cycle after look_qid_o
  output logic        pop_valid_o,
  output qid_t        pop_qid_o,
  // Frames, one for each pop, in its cycle
  input  wire         room_i,                          // for the longest frame; a register
  input  wire         frame_ready_i,                   // a register
  output logic        frame_valid_o,
  output fetch_t      fetch_o,
  output frame_t      frame_o,
  // Queues that can't go on
  input  wire         frames_ended_i,                  // each frame so far has ended
  output logic        zero_valid_o,                    // a descriptor of length 0
  output end_t        zero_o,
  input  wire         zero_ready_i,
  output logic        failed_valid_o,                  // a queue in error
  output failed_t     failed_o,
  input  wire         failed_ready_i,
  output logic        idle_o                           // no queue is in the list or looked at, no report waits
);
  `ONIC_ASSERT_PARAM(NumQueue, NumQueue >= 1 && NumQueue <= 2048 && (NumQueue & (NumQueue - 1)) == 0,
                     "NumQueue must be a power of two, 1 to 2048")
  localparam int unsigned ListDepth = NumQueue < 2 ? 2 : NumQueue;
  localparam int unsigned NumberWidth = $clog2(ListDepth);

  // ---- The list: queues that wait, then queues that come back. listed_q is 1 for those in either. ----
  logic [ListDepth-1:0] listed_q;
  logic news_valid_q;
  qid_t news_qid_q;
  logic list_valid, list_push, list_take, back_valid, back_ready, back_push, back_take;
  qid_t list_qid, list_push_qid, back_qid;
  wire [NumberWidth+1:0] unused_list_count;
  wire [2:0]           unused_back_count;
  wire                 list_ready;

  // Twice as deep as there are queues: with all of them in it, one that is taken may enter again in the same cycle.
  sync_fifo #(.Width(QidWidth), .Depth(2 * ListDepth)) u_list (
    .clk, .rstn,
    .wr_en_i(list_push), .wr_data_i(list_push_qid), .wr_ready_o(list_ready),
    .rd_valid_o(list_valid), .rd_data_o(list_qid), .rd_en_i(list_take), .count_o(unused_list_count)
  );
  sync_fifo #(.Width(QidWidth), .Depth(4)) u_back (
    .clk, .rstn,
    .wr_en_i(back_push), .wr_data_i(exam_qid_q), .wr_ready_o(back_ready),
    .rd_valid_o(back_valid), .rd_data_o(back_qid), .rd_en_i(back_take), .count_o(unused_back_count)
  );

  // ---- The queue at its turn: look_i is its answer ----
  logic exam_valid_q;
  qid_t exam_qid_q;
  wire  go      = room_i && frame_ready_i && back_ready && !zero_valid_q && !failed_valid_o;
  wire  ends    = exam_valid_q && go;                  // its turn ends in this cycle
  wire  step    = !exam_valid_q || go;                 // the next one is looked at

  wire  runs    = look_i.enabled && !look_i.failed && look_i.count != '0;
  wire  zero    = look_i.desc[47:32] == '0;
  wire  pop     = ends && runs && !zero;
  wire  more    = pop && look_i.count != 9'd1;
  wire  others  = list_valid || back_valid;

  assign list_take   = step && list_valid;
  assign look_qid_o  = !step ? exam_qid_q : list_valid ? list_qid : back_valid ? back_qid : exam_qid_q;
  assign pop_valid_o = pop;
  assign pop_qid_o   = exam_qid_q;

  // News of a queue that is looked at in this very cycle came too late for the look: it enters again.
  wire   back_looked = step && !list_valid && back_valid;                      // straight from the FIFO
  wire   news_late   = (list_take && list_qid == news_qid_q) || (back_looked && back_qid == news_qid_q);
  wire   news_push   = news_valid_q && (!listed_q[news_qid_q[NumberWidth-1:0]] || news_late);
  wire   back_move   = back_valid && !back_looked && !news_push;               // to the list's end
  assign back_take     = back_looked || back_move;
  assign list_push     = news_push || back_move;
  assign list_push_qid = news_push ? news_qid_q : back_qid;
  assign back_push     = more && others && !listed_q[exam_qid_q[NumberWidth-1:0]]
                         && !(news_push && news_qid_q == exam_qid_q);

  always_ff @(posedge clk) begin
    if (!rstn) begin
      news_valid_q <= 1'b0;
      exam_valid_q <= 1'b0;
      listed_q     <= '0;
    end else begin
      news_valid_q <= news_valid_i;
      if (step) exam_valid_q <= others || more;
      if (list_take)   listed_q[list_qid[NumberWidth-1:0]] <= 1'b0;
      if (back_looked) listed_q[back_qid[NumberWidth-1:0]] <= 1'b0;
      if (back_push)   listed_q[exam_qid_q[NumberWidth-1:0]] <= 1'b1;
      if (news_push)   listed_q[news_qid_q[NumberWidth-1:0]] <= 1'b1;
    end
    if (news_valid_i) news_qid_q <= news_qid_i;
    exam_qid_q <= look_qid_o;
  end

  // ---- The frame ----
  wire     [15:0] len        = look_i.desc[47:32];
  wire     [63:0] addr       = look_i.desc[127:64];
  wire     [12:0] page_room  = 13'd4096 - 13'(addr[11:0]);
  wire            breaks     = len > 16'(page_room);
  wire     [15:0] head_bytes = breaks ? 16'(page_room) : len;                  // up to the page's end
  wire     [15:0] tail_bytes = len - head_bytes;
  wire     [10:0] head_beats = 11'((head_bytes + 16'd63) >> 6);
  wire     [10:0] tail_beats = 11'((17'(tail_bytes) + 17'd63) >> 6);
  wire      [5:0] shift      = breaks ? head_bytes[5:0] : 6'd0;
  // The join of the last two beats leaves more than a beat if their bytes exceed 64.
  wire      [6:0] last_bytes = tail_bytes[5:0] == '0 ? 7'd64 : 7'(tail_bytes[5:0]);

  assign frame_valid_o = pop;
  assign fetch_o = '{func: look_i.func, addr: addr, len: len};
  assign frame_o = '{
    qid:        exam_qid_q,
    generation: look_i.generation,
    index:      look_i.head_index,
    next_index: ring_next(look_i.head_index, look_i.ring_entries),
    mdata:      look_i.desc[31:0],
    mty:        6'd0 - len[5:0],
    beats:      head_beats + tail_beats,
    shift:      shift,
    break_beat: 6'(head_beats - 11'd1),
    flush:      shift != '0 && 8'(shift) + 8'(last_bytes) > 8'd64
  };

  // ---- Where a queue's life began ----
  typedef struct packed {
    generation_t generation;
    index_t     index;
  } first_t;
  first_t first, first_d;
  wire    [NumberWidth-1:0]    first_index [1];
  logic   [$bits(first_t)-1:0] first_rdata [1];
  logic   first_live [1];
  wire    first_wr = exam_valid_q && look_i.enabled && !look_i.failed
                     && !(first_live[0] && first.generation == look_i.generation);

  assign first_index[0] = exam_qid_q[NumberWidth-1:0];
  assign first          = first_rdata[0];
  assign first_d        = '{generation: look_i.generation, index: look_i.head_index};
  qdma_queue_state #(.Width($bits(first_t)), .NumQueue(ListDepth), .Readers(1)) u_first (
    .clk, .rstn, .wr_i(first_wr), .wr_index_i(first_index[0]), .wr_data_i(first_d), .forget_i(1'b0), .forget_index_i('0),
    .rd_index_i(first_index), .rd_data_o(first_rdata), .rd_live_o(first_live)
  );

  // ---- Reports ----
  logic zero_valid_q;
  assign zero_valid_o = zero_valid_q && frames_ended_i;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      zero_valid_q   <= 1'b0;
      failed_valid_o <= 1'b0;
    end else begin
      if (ends && runs && zero)            zero_valid_q <= 1'b1;
      else if (zero_valid_o && zero_ready_i) zero_valid_q <= 1'b0;
      if (ends && look_i.failed)           failed_valid_o <= 1'b1;
      else if (failed_ready_i)             failed_valid_o <= 1'b0;
    end
    if (ends && runs && zero) begin
      zero_o <= '{qid: exam_qid_q, generation: look_i.generation, index: look_i.head_index,
                  next_index: look_i.head_index, how: EndZeroLength};
    end
    if (ends && look_i.failed) begin
      failed_o <= '{qid: exam_qid_q, generation: look_i.generation,
                    start_index: first_live[0] && first.generation + generation_t'(1) == look_i.generation ? first.index
                                                                                              : look_i.head_index};
    end
  end

  wire unused_look = ^{look_i.err, look_i.ring_base, look_i.pidx, look_i.desc[63:48], look_i.wbi_chk,
                       look_i.wbi_intvl_en, look_i.wbk_en, look_i.irq_en, look_i.irq_arm, look_i.int_aggr, look_i.vector};

  // ---- Idle ----
  assign idle_o = !news_valid_q && !list_valid && !back_valid && !exam_valid_q && !zero_valid_q && !failed_valid_o;

  // ---- Rules of use ----
  `ONIC_ASSERT(ListNotFull_A, clk, rstn, !list_push || list_ready, "the list of queues is full")
  `ONIC_ASSERT(QueueInRange_A, clk, rstn, !news_valid_i || 12'(news_qid_i) < 12'(NumQueue),
               "news of a queue beyond NumQueue")

  // ---- What a run should have seen ----
  always_ff @(posedge clk) begin
    if (rstn) begin
      AloneAgain_C: cover (more && !others);
      NewsMeetsLook_C: cover (news_push && news_late);
      NewsBeforeBack_C: cover (news_push && back_valid && !back_looked);
      ZeroWaits_C: cover (zero_valid_q && !frames_ended_i);
    end
  end
endmodule
`default_nettype wire
