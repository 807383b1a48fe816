// Ends of H2C descriptors: completion, status words, interrupts, and queues that fail.
//
//   frames taken, zero lengths ─► FIFO of 16 ─┐ one look-up a cycle   ┌─► done_*, stop_*, fault_o
//   queues due for a word ◄── due, failed ────┴──► look2 ──► settle ──┴─► status word ─► interrupt
//
// A frame taken by the shell completes its descriptor if the queue still runs in the generation in which it was popped.
// A word is due when wbi_intvl_en and 4 << wb_interval_i descriptors have completed since the last word, when wbi_chk and
// the ring has no more (done = pidx), and once when the queue has failed. A queue is due once at a time and its word says
// what is complete when it is sent; then, if armed, comes the interrupt, and only then the next queue's word.
// A queue that was stopped or restarted since gets no word. A frame with a data error, or a descriptor of length 0, stops its
// queue (err bit 1); nothing else is looked at until the desc engine has taken the stop.
//
// Word: 8 bytes at slot N-1 of the ring, little endian: err 1:0, cidx 31:16, pidx 47:32. It is left out if wbk_en is 0 or
// N is below 3; the interrupt is not. The ring base's low 4 bits count as 0.
// Throughput: 1 look-up a cycle; a word takes 3 cycles, of which frames lose 1. While frames come thick (8 in the FIFO)
// words keep 16 cycles' distance. Outputs to the host are registers.
//
// Fence: fence_busy_o stays high until the stop and the word that were decided before are taken, the word's interrupt with
// it. What other queues bring meanwhile does not prolong it.
// Source: qdma.md sections 5.5, 7.3 and 8.
`include "onic_assert.svh"
`default_nettype none
module qdma_h2c_writeback import qdma_pkg::*, qdma_h2c_pkg::*; #(
  parameter int unsigned NumQueue = 512                // 1 to 2048, a power of two
) (
  input  wire         clk,
  input  wire         rstn,                            // synchronous, active low, power-up only
  input  wire   [2:0] wb_interval_i,
  // Fence
  input  wire         fence_i,
  output logic        fence_busy_o,                    // from the same cycle on
  // Frames taken
  input  wire         end_valid_i,
  input  wire end_t   end_i,
  output logic        end_room_o,                      // room for two more
  output logic        ended_o,                         // one of them was looked at
  // From the scheduler
  input  wire         zero_valid_i,                    // no frame is on its way
  input  wire end_t   zero_i,
  output logic        zero_ready_o,                    // the queue has stopped
  input  wire         failed_valid_i,
  input  wire failed_t failed_i,
  output logic        failed_ready_o,
  // Descriptor queues
  output qid_t        look2_qid_o,
  input  wire desc_queue_t look2_i,                    // one cycle after look2_qid_o
  output logic        done_valid_o,
  output qid_t        done_qid_o,
  output index_t      done_cidx_o,
  output generation_t done_generation_o,
  output logic        stop_valid_o,
  output qid_t        stop_qid_o,
  output logic  [1:0] stop_err_o,
  input  wire         stop_ready_i,
  output logic        irq_disarm_valid_o,
  output qid_t        irq_disarm_qid_o,
  output logic        err_sent_valid_o,                // a failed queue's word goes out
  output qid_t        err_sent_qid_o,
  // Status words
  output logic        cmp_valid_o,
  output write_t      cmp_o,
  input  wire         cmp_ready_i,
  // Interrupts
  output logic        irq_valid_o,
  output interrupt_t  irq_o,
  input  wire         irq_ready_i,
  output fault_t      fault_o,
  output logic        idle_o                           // nothing is looked at, no word due, nothing offered
);
  localparam int unsigned ListDepth   = NumQueue < 2 ? 2 : NumQueue;
  localparam int unsigned NumberWidth = $clog2(ListDepth);
  localparam int unsigned EndDepth    = 16;
  localparam int unsigned Distance    = 16;            // cycles between words while frames come thick

  // ---- Faults for the alarm tests: 13 puts the word one slot early, 17 ends the fence at once and sends the words of
  // queues that have been stopped. ----
  logic fault_slot, fault_fence;
`ifdef ONIC_FAULTS
  int unsigned fault;
  initial if (!$value$plusargs("onic_fault=%d", fault)) fault = 0;
  assign fault_slot  = fault == 13;
  assign fault_fence = fault == 17;
`else
  assign fault_slot  = 1'b0;
  assign fault_fence = 1'b0;
`endif

  // ---- Frames that were taken ----
  logic end_valid, end_take;
  end_t end_head;
  wire [$clog2(EndDepth):0] end_count;
  wire  end_ready;

  sync_fifo #(.Width($bits(end_t)), .Depth(EndDepth)) u_ends (
    .clk, .rstn,
    .wr_en_i(end_valid_i), .wr_data_i(end_i), .wr_ready_o(end_ready),
    .rd_valid_o(end_valid), .rd_data_o(end_head), .rd_en_i(end_take), .count_o(end_count)
  );
  assign end_room_o = end_count < ($clog2(EndDepth) + 1)'(EndDepth - 2);

  // ---- Queues that are due for a word ----
  logic [ListDepth-1:0] due_q;
  logic due_valid, due_take, due_push;
  qid_t due_qid, due_push_qid;
  wire [NumberWidth:0] unused_due_count;
  wire  due_ready;

  sync_fifo #(.Width(QidWidth), .Depth(ListDepth)) u_due (
    .clk, .rstn,
    .wr_en_i(due_push), .wr_data_i(due_push_qid), .wr_ready_o(due_ready),
    .rd_valid_o(due_valid), .rd_data_o(due_qid), .rd_en_i(due_take), .count_o(unused_due_count)
  );

  // ---- Choice: whose queue is looked at ----
  logic       look_end_q, look_zero_q, look_word_q;    // what look2_i is the answer for
  end_t       end_q;
  qid_t       word_qid_q;
  logic       settle_q;                                // the stop was taken in the cycle before
  logic       word_free;
  logic [3:0] distance_q;                              // cycles until the next word if frames come thick
  logic       zero_done_q;

  // A frame that may stop its queue is settled before anything is looked at again.
  wire hold  = stop_valid_o || settle_q || ((look_end_q || look_zero_q) && end_q.how != EndSent);
  wire thick = end_count >= ($clog2(EndDepth) + 1)'(EndDepth / 2);
  wire look_word = !hold && due_valid && word_free && (!thick || distance_q == '0);
  wire look_end  = !hold && !look_word && end_valid;
  wire look_zero = !hold && !look_word && !end_valid && zero_valid_i && !zero_done_q;

  assign due_take    = look_word;
  assign end_take    = look_end;
  assign look2_qid_o = look_word ? due_qid : look_end ? end_head.qid : look_zero ? zero_i.qid : word_qid_q;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      look_end_q  <= 1'b0;
      look_zero_q <= 1'b0;
      look_word_q <= 1'b0;
      distance_q  <= '0;
    end else begin
      look_end_q  <= look_end;
      look_zero_q <= look_zero;
      look_word_q <= look_word;
      if (look_word)              distance_q <= 4'(Distance - 1);
      else if (distance_q != '0)  distance_q <= distance_q - 1'b1;
    end
    if (look_end)       end_q <= end_head;
    else if (look_zero) end_q <= zero_i;
    if (look_word) word_qid_q <= due_qid;
  end

  // ---- What is kept of a queue ----
  typedef struct packed {
    generation_t generation;                           // to which the rest belongs
    logic [9:0] since;                                 // descriptors completed since the last word, saturates
    index_t     done;                                  // descriptors before it are complete
    logic       told;                                  // the word of its failure was sent
  } kept_t;
  logic   kept_wr;
  kept_t  kept, kept_d;
  qid_t   qid;
  assign  qid = look_word_q ? word_qid_q : look_end_q || look_zero_q ? end_q.qid : failed_i.qid;
  wire    [NumberWidth-1:0] number = qid[NumberWidth-1:0];
  wire    [NumberWidth-1:0] kept_index [1];
  logic   [$bits(kept_t)-1:0] kept_rdata [1];
  logic   kept_live [1];

  assign kept_index[0] = number;
  qdma_queue_state #(.Width($bits(kept_t)), .NumQueue(ListDepth), .Readers(1)) u_kept (
    .clk, .rstn, .wr_i(kept_wr), .wr_index_i(number), .wr_data_i(kept_d), .forget_i(1'b0), .forget_index_i('0),
    .rd_index_i(kept_index), .rd_data_o(kept_rdata), .rd_live_o(kept_live)
  );
  assign kept = kept_rdata[0];
  wire kept_now    = kept_live[0] && kept.generation == look2_i.generation;
  // A failure begins a new generation: what was kept of the one before still says what is complete.
  wire kept_before = kept_live[0] && kept.generation + generation_t'(1) == look2_i.generation;

  // ---- A frame's or a descriptor's end ----
  wire  end_now  = look_end_q || look_zero_q;
  wire  alive    = look2_i.enabled && !look2_i.failed && look2_i.generation == end_q.generation;
  wire  complete = look_end_q && end_q.how == EndSent && alive;
  wire  stop     = end_now && end_q.how != EndSent && alive;
  wire  [9:0] since     = kept_now ? kept.since + 10'(kept.since != '1) : 10'd1;
  wire  [9:0] interval  = 10'd4 << wb_interval_i;
  wire  due_interval    = look2_i.wbi_intvl_en && since >= interval;
  wire  due_last        = look2_i.wbi_chk && end_q.next_index == look2_i.pidx;
  wire  due             = complete && (due_interval || due_last);

  assign ended_o      = look_end_q;
  assign done_valid_o = complete;
  assign done_qid_o   = end_q.qid;
  assign done_cidx_o  = end_q.next_index;
  assign done_generation_o = end_q.generation;

  // A failed queue is taken in when no look-up is to be settled. If nothing of its life is kept, it completed nothing.
  assign failed_ready_o = !end_now && !look_word_q;
  wire   failed         = failed_valid_i && failed_ready_o;
  wire   failed_new     = failed && !(kept_live[0] && (kept.generation == failed_i.generation
                                                       || kept.generation + generation_t'(1) == failed_i.generation));
  assign due_push       = (due || failed) && !due_q[number];
  assign due_push_qid   = qid;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      due_q <= '0;
    end else begin
      if (due_take) due_q[due_qid[NumberWidth-1:0]]      <= 1'b0;
      if (due_push) due_q[due_push_qid[NumberWidth-1:0]] <= 1'b1;
    end
  end

  // ---- Stop ----
  assign stop_err_o   = 2'b10;
  assign zero_ready_o = zero_done_q && !stop_valid_o && !settle_q;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      stop_valid_o <= 1'b0;
      settle_q     <= 1'b0;
      zero_done_q  <= 1'b0;
    end else begin
      if (stop)              stop_valid_o <= 1'b1;
      else if (stop_ready_i) stop_valid_o <= 1'b0;
      settle_q <= stop_valid_o && stop_ready_i;
      if (look_zero_q)       zero_done_q <= 1'b1;
      else if (zero_ready_o) zero_done_q <= 1'b0;
    end
    if (stop) stop_qid_o <= end_q.qid;
  end

  always_comb begin
    fault_o      = '0;
    fault_o.h2c  = 1'b1;
    fault_o.qid  = end_q.qid;
    fault_o.cidx = end_q.index;
    if (end_now) begin
      unique case (end_q.how)
        EndUnsupported: fault_o.kind = FaultDataRead;
        EndPoisoned:    fault_o.kind = FaultDataPoison;
        EndZeroLength:  fault_o.kind = alive ? FaultZeroLength : FaultNone;
        default:        fault_o.kind = FaultNone;
      endcase
    end
  end

  // ---- A word ----
  // In a failed queue the word says what the generation before has completed.
  wire    first_word = look2_i.failed && !(kept_now && kept.told);
  wire    word       = look_word_q && (fault_fence || (look2_i.enabled && (look2_i.failed ? first_word : kept_now)));
  index_t word_cidx;
  assign  word_cidx  = kept_now || kept_before ? kept.done : look2_i.head_index;
  wire    word_write = word && look2_i.wbk_en && look2_i.ring_entries >= 16'd3;
  wire    word_irq   = word && look2_i.irq_en && look2_i.irq_arm && !look2_i.int_aggr;
  wire    [15:0] slot = look2_i.ring_entries - (fault_slot ? 16'd2 : 16'd1);
  logic   irq_due_q;                                   // the interrupt comes when the word is taken

  always_comb begin
    kept_wr = complete || stop || word || failed_new;
    kept_d  = kept;
    if (failed_ready_o) begin
      kept_d = '{generation: failed_i.generation - generation_t'(1), since: '0, done: failed_i.start_index, told: 1'b0};
    end else if (look_word_q) begin
      kept_d.generation = look2_i.generation;
      kept_d.since      = '0;
      kept_d.done       = word_cidx;
      kept_d.told       = look2_i.failed;
    end else begin
      kept_d.generation = end_q.generation;
      kept_d.told       = 1'b0;
      kept_d.since      = complete ? since : '0;
      kept_d.done       = complete ? end_q.next_index : end_q.index;
    end
  end

  assign word_free          = !look_word_q && !cmp_valid_o && !irq_due_q;
  assign irq_valid_o        = irq_due_q && !cmp_valid_o;
  assign irq_disarm_valid_o = word_irq;
  assign irq_disarm_qid_o   = word_qid_q;
  assign err_sent_valid_o   = word_write && look2_i.failed;
  assign err_sent_qid_o     = word_qid_q;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      cmp_valid_o <= 1'b0;
      irq_due_q   <= 1'b0;
    end else begin
      if (word_write)       cmp_valid_o <= 1'b1;
      else if (cmp_ready_i) cmp_valid_o <= 1'b0;
      if (word_irq)                         irq_due_q <= 1'b1;
      else if (irq_valid_o && irq_ready_i)  irq_due_q <= 1'b0;
    end
    if (word_write) begin
      cmp_o.func       <= look2_i.func;
      cmp_o.addr       <= {look2_i.ring_base[63:4], 4'd0} + {44'd0, slot, 4'd0};
      cmp_o.data[63:0] <= {16'd0, look2_i.pidx, word_cidx, 14'd0, look2_i.err};
    end
    if (word_irq) irq_o <= '{func: look2_i.func, vector: look2_i.vector, qid: word_qid_q};
  end
  assign cmp_o.data[511:64] = '0;
  assign cmp_o.be           = 64'hff;
  assign cmp_o.last         = 1'b1;

  // ---- Idle ----
  assign idle_o = !end_valid && !due_valid && word_free && !end_now && !stop_valid_o && !settle_q && !zero_done_q;

  // ---- Fence ----
  // Between two words there is a cycle with neither word nor interrupt, and one stop follows another only when it was taken.
  logic fence_stop_q, fence_word_q;                    // a stop, a word of before the pulse is under way
  wire  stop_end  = stop_valid_o && stop_ready_i;
  wire  word_idle = !cmp_valid_o && !irq_due_q;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      fence_stop_q <= 1'b0;
      fence_word_q <= 1'b0;
    end else if (fence_i && !fault_fence) begin
      fence_stop_q <= stop || (stop_valid_o && !stop_end);
      fence_word_q <= word_write || word_irq || !word_idle;
    end else begin
      if (stop_end)  fence_stop_q <= 1'b0;
      if (word_idle) fence_word_q <= 1'b0;
    end
  end
  assign fence_busy_o = (fence_i && !fault_fence) || fence_stop_q || fence_word_q;

  wire unused_look = ^{look2_i.count, look2_i.desc};

  // ---- Rules of use ----
  `ONIC_ASSERT(EndRoom_A, clk, rstn, !end_valid_i || end_ready, "a frame was taken without room for its end")
  `ONIC_ASSERT(DueRoom_A, clk, rstn, !due_push || due_ready, "a queue is due twice")
  `ONIC_ASSERT(ZeroAlone_A, clk, rstn, !look_zero_q || !end_valid, "a zero length was reported while frames are on their way")
  `ONIC_ASSERT_STABLE(WordStable_A, clk, rstn, cmp_valid_o, cmp_ready_i, {cmp_o.func, cmp_o.addr, cmp_o.data[63:0]},
                      FuncWidth + 128, "a status word changed while it was stalled")
  `ONIC_ASSERT_STABLE(InterruptStable_A, clk, rstn, irq_valid_o, irq_ready_i, irq_o, $bits(interrupt_t),
                      "an interrupt changed while it was stalled")

  // ---- What a run should have seen ----
  always_ff @(posedge clk) begin
    if (rstn) begin
      LateFrame_C: cover (look_end_q && end_q.how == EndSent && !alive);
      StoppedWord_C: cover (look_word_q && !look2_i.enabled);
      FailedWord_C: cover (word && look2_i.failed);
      StopWaits_C: cover (stop_valid_o && !stop_ready_i);
    end
  end
endmodule
`default_nettype wire
