// Completions of the C2H stream: from the shell's completion of a frame to ring entry, status word and interrupt.
//
//   s_axis_cpl ──► qdma_completion_join ──► entry ─┐
//   frame_done ──►   (waits for payload)           │     ┌─► context memory (selector 6)
//   doorbell ──────────────────────────────────────┼─►op─┤ qdma_completion_update, qdma_moderation
//   context command ───────────────────────────────┤     └─► qdma_line_buffer ─► cmp, irq
//   qdma_timer_wheel ─► timer ─────────────────────┤
//   qdma_line_age ────► line that has waited ──────┘
//
// One operation a cycle reads, changes and writes one queue's context. An operation is: an entry, a CIDX doorbell, an expired
// timer, a context command, or the writing of a line that has waited. The context is read by a registered queue number and
// written at the end of the same cycle, so operations on one queue follow each other without a hazard (a block RAM needs one
// level of forwarding for that).
//
// Entries of a queue gather in a line of 64 bytes of its ring. A line goes to host memory when it is full, at the ring's end,
// before a status word or an interrupt of its queue, before a context command changes the queue, before a fence ends, and
// when it has waited (qdma_line_age). Only bytes not written before are written. Entries go before the status word that
// covers them, and the host port takes the status word before the interrupt is offered: one FIFO, in order.
//
// Latency: entry to cmp_valid_o 4 cycles when its line goes at once. Throughput: 1 completion a cycle, on one queue or many,
// while the other operations are rare; each of them takes one cycle. Back-pressure: cmp_ready_i and irq_ready_i hold back
// operations, and so s_axis_cpl, doorbells and commands; nothing is lost. frame_done is taken at once.
// Out of range: a completion for a queue that is not valid, or beyond NumQueue, is dropped (FaultCmptInvalidQueue), be its frame
// lost or not; that of a lost frame is dropped without a fault if the queue is valid; into a full ring, dropped, and the queue fails (FaultCmptRingFull); a doorbell beyond what is unread fails it (FaultBadCidx). A table
// entry below 3 is no ring: its queue has no status word either. Doorbells and commands are for queues below NumQueue.
// Left out: user triggers, interrupt aggregation, address translation. int_st of the context keeps the int_state of the last
// notification; until one was due it stays as software wrote it.
//
// Source: qdma.md 3.5, 5.4 to 5.6, 7, 8.
`include "onic_assert.svh"
`default_nettype none
module qdma_completion import qdma_pkg::*, qdma_completion_pkg::*; #(
  parameter int unsigned NumQueue = 512               // a power of two, 1 to 2048
) (
  input  wire                clk,
  input  wire                rstn,                    // synchronous, active low; power-up only
  input  wire config_t       config_i,
  // Context commands for selector 6. Selector 11 (timer), invalidate, is understood too: the queue's timer stops.
  input  wire                ctxt_valid_i,
  input  wire context_command_t ctxt_i,
  output logic               ctxt_done_o,             // one cycle
  output logic       [255:0] ctxt_rdata_o,            // CtxtRead: with ctxt_done_o
  // Fence: high until all entries joined, and all status words decided, before the pulse were taken by host memory
  input  wire                fence_i,
  output logic               fence_busy_o,            // from the cycle after the pulse
  // Doorbells, BellCmptCidx
  input  wire                bell_valid_i,
  input  wire doorbell_t     bell_i,
  output logic               bell_ready_o,
  // Consumer index of a queue, in the cycle after its number
  input  wire qid_t          cidx_qid_i,
  output index_t             cidx_o,
  // Completions from the shell: the low 8 bytes of an entry; color and error are stamped here
  input  wire                s_axis_cpl_tvalid,
  input  wire        [511:0] s_axis_cpl_tdata,
  input  wire          [1:0] s_axis_cpl_size,
  input  wire         [15:0] s_axis_cpl_dpar,
  input  wire         [10:0] s_axis_cpl_ctrl_qid,
  input  wire          [1:0] s_axis_cpl_ctrl_cmpt_type,
  input  wire         [15:0] s_axis_cpl_ctrl_wait_pld_pkt_id,
  input  wire          [2:0] s_axis_cpl_ctrl_port_id,
  input  wire                s_axis_cpl_ctrl_marker,
  input  wire                s_axis_cpl_ctrl_user_trig,
  input  wire          [2:0] s_axis_cpl_ctrl_col_idx,
  input  wire          [2:0] s_axis_cpl_ctrl_err_idx,
  input  wire                s_axis_cpl_ctrl_no_wrb_marker,
  output logic               s_axis_cpl_tready,
  // How frames went, in order of their packet ids
  input  wire                frame_done_valid_i,
  input  wire frame_done_t   frame_done_i,
  output logic               frame_done_ready_o,      // 1
  // Entries and status words to host memory
  output logic               cmp_valid_o,
  output write_t             cmp_o,
  input  wire                cmp_ready_i,
  // Interrupts, each after its status word was taken
  output logic               irq_valid_o,
  output interrupt_t         irq_o,
  input  wire                irq_ready_i,
  // Faults: of a queue, and of a completion that names another queue than its frame
  output fault_t             fault_o,
  output fault_t             join_fault_o,
  // Pulses for the counters, one event a cycle
  output logic               completion_in_o,         // taken from the shell
  output logic               completion_out_o,        // became a ring entry
  output logic               completion_error_o,      // which has the error bit; with completion_out_o
  output logic               completion_dropped_o,    // did not
  output drop_e              completion_why_o,        // why; with completion_dropped_o
  output logic               status_out_o,            // status word decided
  output logic               idle_o                   // nothing under way or waiting, no timer runs
);
  `ONIC_ASSERT_PARAM(NumQueue, NumQueue >= 1 && NumQueue <= 2048 && (NumQueue & (NumQueue - 1)) == 0,
                     "NumQueue must be a power of two, 1 to 2048")

  localparam int unsigned MemQueue   = NumQueue < 2 ? 2 : NumQueue;   // an index has at least a bit
  localparam int unsigned QueueWidth = $clog2(MemQueue);
  typedef logic [QueueWidth-1:0] queue_index_t;

  // ---- Fault for the alarm tests: 17 ends a fence at once. ----
  logic fault_fence;
`ifdef ONIC_FAULTS
  int unsigned fault;
  initial if (!$value$plusargs("onic_fault=%d", fault)) fault = 0;
  assign fault_fence = fault == 17;
`else
  assign fault_fence = 1'b0;
`endif

  // ---- Idle
  logic join_idle, timers_idle, age_idle, lines_idle;
  assign idle_o = join_idle && timers_idle && age_idle && lines_idle && !op_valid_q && !fence_busy_o && !drop_left_q;

  // ---- Operations to come
  assign frame_done_ready_o = 1'b1;
  logic         entry_valid, entry_ready, join_drop;
  outcome_e     entry_outcome;
  drop_e        entry_why, why;
  logic  [63:0] entry_data;
  qid_t         entry_qid;
  logic         expire_valid, expire_ready, line_valid, line_urgent, line_ready;
  queue_index_t expire_queue, line_queue;
  logic         room;

  qdma_completion_join u_join (
    .clk(clk), .rstn(rstn),
    .cpl_valid_i(s_axis_cpl_tvalid), .cpl_data_i(s_axis_cpl_tdata[63:0]), .cpl_qid_i(s_axis_cpl_ctrl_qid),
    .cpl_pkt_id_i(s_axis_cpl_ctrl_wait_pld_pkt_id), .cpl_ready_o(s_axis_cpl_tready),
    .frame_valid_i(frame_done_valid_i), .frame_i(frame_done_i),
    .entry_valid_o(entry_valid), .entry_data_o(entry_data), .entry_qid_o(entry_qid), .entry_outcome_o(entry_outcome), .entry_why_o(entry_why),
    .entry_ready_i(entry_ready), .drop_o(join_drop), .fault_o(join_fault_o), .idle_o(join_idle)
  );

  // ---- Choice: what is rare goes first; lines that may wait go last. An expired timer is left for a cycle while its queue
  // changes, which may restart or stop it.
  logic op_valid_q, op_valid_d;
  op_t  op_q, op_d;
  logic ctxt_pending_q, ctxt_take;

  always_comb begin
    op_valid_d   = 1'b0;
    op_d         = '0;
    ctxt_take    = 1'b0;
    bell_ready_o = 1'b0;
    expire_ready = 1'b0;
    line_ready   = 1'b0;
    entry_ready  = 1'b0;
    if (room) begin
      op_valid_d = 1'b1;
      if (ctxt_valid_i && !ctxt_pending_q) begin
        ctxt_take = 1'b1;
        op_d.kind = OpContext;
        op_d.qid  = ctxt_i.qid;
      end else if (bell_valid_i) begin
        bell_ready_o = 1'b1;
        op_d.kind    = OpBell;
        op_d.qid     = bell_i.qid;
        op_d.data    = 64'(bell_i.data);
      end else if (expire_valid && !(op_valid_q && op_q.qid == qid_t'(expire_queue))) begin
        expire_ready = 1'b1;
        op_d.kind    = OpTimer;
        op_d.qid     = qid_t'(expire_queue);
      end else if (line_valid && (line_urgent || !entry_valid)) begin
        line_ready = 1'b1;
        op_d.kind  = OpLine;
        op_d.qid   = qid_t'(line_queue);
      end else if (entry_valid) begin
        entry_ready = 1'b1;
        op_d.kind    = OpEntry;
        op_d.qid     = entry_qid;
        op_d.data    = entry_data;
        op_d.outcome = entry_outcome;
        op_d.why     = entry_why;
      end else begin
        op_valid_d = 1'b0;
      end
    end
  end

  always_ff @(posedge clk) begin
    if (!rstn) begin
      op_valid_q     <= 1'b0;
      ctxt_pending_q <= 1'b0;
    end else begin
      op_valid_q <= op_valid_d;
      if (ctxt_take)        ctxt_pending_q <= 1'b1;
      else if (ctxt_done_o) ctxt_pending_q <= 1'b0;
    end
    if (op_valid_d) op_q <= op_d;
  end

  // ---- The operation. A queue that was never written is all 0.
  queue_t              queue_mem [MemQueue];
  logic [MemQueue-1:0] known_q;
  queue_t              queue, queue_next;
  logic                in_range, queue_we, word_we, notice_valid, timer_start, timer_stop, drop;
  logic          [2:0] word_index;
  logic         [63:0] word;
  logic         [15:0] timer_ticks;
  notice_t             notice;
  fault_e              kind;
  wire queue_index_t   index = op_q.qid[QueueWidth-1:0];

  always_comb begin
    queue    = '0;
    in_range = 1'b0;
    if (op_valid_q) begin
      in_range = 32'(op_q.qid) < NumQueue;
      if (in_range && known_q[index]) queue = queue_mem[index];
    end
  end

  qdma_completion_update u_update (
    .config_i(config_i), .op_valid_i(op_valid_q), .op_i(op_q), .in_range_i(in_range), .ctxt_i(ctxt_i),
    .queue_i(queue), .queue_we_o(queue_we), .queue_o(queue_next),
    .word_we_o(word_we), .word_index_o(word_index), .word_o(word),
    .notice_valid_o(notice_valid), .notice_o(notice),
    .timer_start_o(timer_start), .timer_stop_o(timer_stop), .timer_ticks_o(timer_ticks), .fault_o(kind), .drop_o(drop),
    .why_o(why)
  );

  always_ff @(posedge clk) if (queue_we) queue_mem[index] <= queue_next;

  always_ff @(posedge clk) begin
    if (!rstn)         known_q <= '0;
    else if (queue_we) known_q[index] <= 1'b1;
  end

  wire ctxt_now = op_valid_q && op_q.kind == OpContext;

  always_ff @(posedge clk) begin
    ctxt_done_o <= rstn && ctxt_now;
    if (ctxt_now) ctxt_rdata_o <= 256'(queue.ctxt);
  end

  always_ff @(posedge clk) begin
    cidx_o <= 32'(cidx_qid_i) < NumQueue && known_q[cidx_qid_i[QueueWidth-1:0]] ?
              queue_mem[cidx_qid_i[QueueWidth-1:0]].ctxt.cidx : '0;
  end

  // ---- Timers, lines, the way out
  qdma_timer_wheel #(.NumQueue(MemQueue)) u_timers (
    .clk(clk), .rstn(rstn), .timer_tick_i(config_i.timer_tick),
    .start_i(timer_start), .stop_i(timer_stop), .queue_i(index), .ticks_i(timer_ticks),
    .expire_valid_o(expire_valid), .expire_queue_o(expire_queue), .expire_ready_i(expire_ready),
    .idle_o(timers_idle)
  );

  logic age_flush, age_busy, out_flush, out_busy;

  qdma_line_age #(.NumQueue(MemQueue)) u_age (
    .clk(clk), .rstn(rstn),
    .tick_count_i(config_i.coalesce[13:2]), .tick_value_i(config_i.coalesce[25:14]),
    .start_i(queue_we && queue.held == '0 && queue_next.held != '0),
    .end_i(queue_we && queue.held != '0 && queue_next.held == '0), .queue_i(index),
    .line_valid_o(line_valid), .line_urgent_o(line_urgent), .line_queue_o(line_queue), .line_ready_i(line_ready),
    .flush_i(age_flush), .flush_busy_o(age_busy), .idle_o(age_idle)
  );

  qdma_line_buffer #(.NumQueue(MemQueue)) u_lines (
    .clk(clk), .rstn(rstn),
    .word_we_i(word_we), .word_queue_i(index), .word_index_i(word_index), .word_i(word),
    .notice_valid_i(notice_valid), .notice_i(notice), .room_o(room),
    .cmp_valid_o(cmp_valid_o), .cmp_o(cmp_o), .cmp_ready_i(cmp_ready_i),
    .irq_valid_o(irq_valid_o), .irq_o(irq_o), .irq_ready_i(irq_ready_i),
    .flush_i(out_flush), .flush_busy_o(out_busy), .idle_o(lines_idle)
  );

  // ---- Fence: first the lines that wait, then what is on its way out. An operation takes effect on the ages in its own cycle
  // and is in the way out two cycles later; the steps between leave it that time.
  typedef enum logic [2:0] {FenceNone, FenceAge, FenceLines, FenceSettle, FenceOut, FenceDrain} fence_e;
  fence_e fence_q;

  assign age_flush    = fence_q == FenceAge;
  assign out_flush    = fence_q == FenceOut;
  assign fence_busy_o = fence_q != FenceNone;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      fence_q <= FenceNone;
    end else if (fence_i && !fault_fence) begin
      fence_q <= FenceAge;
    end else begin
      unique case (fence_q)
        FenceAge:    fence_q <= FenceLines;
        FenceLines:  if (!age_busy) fence_q <= FenceSettle;
        FenceSettle: fence_q <= FenceOut;
        FenceOut:    fence_q <= FenceDrain;
        FenceDrain:  if (!out_busy) fence_q <= FenceNone;
        default: ;
      endcase
    end
  end

  // ---- Faults and counts. The join and the ring may drop in the same cycle; the pulses then follow each other. No more than
  // one is ever left over: what the ring drops was joined a cycle before, and in that cycle the join dropped nothing.
  logic drop_left_q;

  always_ff @(posedge clk) begin
    if (!rstn) begin
      fault_o              <= '0;
      completion_in_o      <= 1'b0;
      completion_out_o     <= 1'b0;
      completion_dropped_o <= 1'b0;
      status_out_o         <= 1'b0;
      drop_left_q          <= 1'b0;
    end else begin
      fault_o.kind <= kind;
      if (kind != FaultNone) begin
        fault_o.qid  <= op_q.qid;
        fault_o.cidx <= queue.ctxt.cidx;
      end
      completion_in_o      <= s_axis_cpl_tvalid && s_axis_cpl_tready;
      completion_out_o     <= word_we;
      completion_dropped_o <= drop || join_drop || drop_left_q;
      status_out_o         <= notice_valid && notice.status;
      drop_left_q          <= (drop && join_drop) || (drop_left_q && (drop || join_drop));
    end
    completion_why_o <= drop ? why : DropLate;
    if (word_we) completion_error_o <= op_q.outcome == FrameFailed;
  end

  // What the shell says beyond queue, frame and data: sizes and places come from the context and its tables, and OpenNIC
  // has no markers and no user trigger.
  wire unused = ^{s_axis_cpl_tdata[511:64], s_axis_cpl_size, s_axis_cpl_dpar, s_axis_cpl_ctrl_cmpt_type,
                  s_axis_cpl_ctrl_port_id, s_axis_cpl_ctrl_marker, s_axis_cpl_ctrl_user_trig, s_axis_cpl_ctrl_col_idx,
                  s_axis_cpl_ctrl_err_idx, s_axis_cpl_ctrl_no_wrb_marker, bell_i.kind};

  `ONIC_ASSERT(BellKind_A, clk, rstn, !bell_valid_i || bell_i.kind == BellCmptCidx, "a doorbell for another engine")
  `ONIC_ASSERT(BellRange_A, clk, rstn, !bell_valid_i || 32'(bell_i.qid) < NumQueue, "a doorbell beyond the queues")
  `ONIC_ASSERT(TimerRuns_A, clk, rstn, !(op_valid_q && op_q.kind == OpTimer) || queue.ctxt.timer_running,
               "a timer ended that its context does not know")
  `ONIC_ASSERT(TimerRange_A, clk, rstn, !timer_start || in_range, "a timer without a queue")
  `ONIC_ASSERT(DropCount_A, clk, rstn, !(drop && join_drop && drop_left_q), "drops are lost to the counter")
  `ONIC_ASSERT_STABLE(IrqStable_A, clk, rstn, irq_valid_o, irq_ready_i, irq_o, $bits(interrupt_t),
                      "an interrupt changed while it waited")
endmodule
`default_nettype wire
