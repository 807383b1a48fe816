// Descriptor queues of one direction: contexts, doorbells, fetch from host memory, look-up and pop.
//
// A queue runs from its first accepted PIDX doorbell after its software context was written with qen = 1. Posted
// descriptors are then read from the ring, from the hardware context's cidx on, into a memory of AheadMax entries for
// each queue, where a consumer looks at the oldest one and pops it:
//
//   context commands, doorbells, stops ─► qdma_desc_control ── run, generation, origin ──► all
//   qdma_desc_want (list, round robin) ─► qdma_desc_fetch ── read, tag ─► host memory
//   host memory ── answer ─► qdma_desc_tags ── at its reserved place ─► qdma_desc_store ─► look-up, pop
//
// Fetch: room in the queue's memory is reserved when the read is sent, so answers always have a place. A read ends at the
// ring's end, a 4 KiB boundary, fetch_bytes_i or the last posted descriptor. It waits until it is worth a batch (a whole
// read, or a quarter of what may be ahead) unless it takes all that is posted, or the queue has nothing left, or a frame waits.
// Up to 64 reads are in flight, fetches_i of one queue. Answers of different tags may come in any order; descriptors
// appear in ring order.
//
// Clear, invalidate, stop, failure: the queue's generation changes at once. Answers of an earlier generation are thrown
// away; fence_busy_o still waits for them.
//
// Look-up: look_qid_i -> look_o in the next cycle, with all pops up to and including the cycle in which the qid was given.
// enabled is qen alone: a queue that was written but not rung is enabled and has no descriptors.
// 1 look-up and 1 pop a cycle, also all of one queue. Fields other than enabled, failed, err, generation, count and
// head_index are void while the queue is neither enabled nor failed; desc is void while count is 0. A pop follows its
// look-up within a few cycles; a pop of a queue without descriptors, or of a queue that stopped meanwhile, is ignored.
// done_* of a queue that does not run is ignored.
// news_* pulses once or more after each change, and a look-up of the pulse's cycle shows it.
//
// Out of range: a ring of fewer than 3 entries, or cidx or pidx outside the ring: no fetch. PIDX outside the ring or more
// outstanding than it holds: FaultInvalidPidx, err bit 0. Descriptor size not DescBytes, bypass or is_mm: FaultDescParam
// at the first fetch, err bit 0. A read that fails: FaultDescRead or FaultDescPoison, err bit 0, cidx stays. A fault's cidx is
// the hardware context's. The ring base's bits below DescBytes are taken as 0. qid beyond NumQueue: its low bits are used.
//
// Source: qdma.md sections 3.1 to 3.3, 5 and 6; AMD PG302.
`include "onic_assert.svh"
`default_nettype none
module qdma_desc_engine import qdma_pkg::*, qdma_desc_pkg::*; #(
  parameter int unsigned NumQueue  = 512,              // 1 to 2048, a power of two
  parameter int unsigned DescBytes = 8,                // 8 (C2H) or 16 (H2C)
  parameter int unsigned AheadMax  = 256,              // entries of a queue's descriptor memory, a power of two, 32 to 256
  parameter bit          H2c       = 1'b0              // 0: done is what was popped; 1: done_* says it
) (
  input  wire            clk,
  input  wire            rstn,                         // synchronous, active low, power-up only
  // Settings
  input  wire config_t        config_i,
  input  wire      [8:0] ahead_i,                      // descriptors kept for a queue, 1 to AheadMax
  input  wire      [5:0] fetches_i,                    // reads in flight for one queue, 1 to 32
  input  wire     [12:0] fetch_bytes_i,                // longest read, 64 to 4096, a multiple of 64
  // Context commands: software, hardware and credit context of this direction
  input  wire            ctxt_valid_i,
  input  wire context_command_t ctxt_i,
  output logic           ctxt_done_o,
  output logic   [255:0] ctxt_rdata_o,                 // with ctxt_done_o, for CtxtRead
  // PIDX doorbells
  input  wire            bell_valid_i,
  input  wire doorbell_t      bell_i,
  output logic           bell_ready_o,
  // Fence
  input  wire            fence_i,                      // pulse
  output logic           fence_busy_o,                 // from the next cycle on, until reads sent before are answered
  // Descriptor reads, tags 0 to 63
  output logic           rd_valid_o,
  output read_req_t      rd_o,
  input  wire            rd_ready_i,
  input  wire read_rsp_t      rsp_i,                        // valid only for this instance's tags
  // C2H only: what the prefetch context allows, and what a waiting frame needs (H2C ties 1, and 0)
  output qid_t           pfch_qid_o,
  input  wire            pfch_may_i,                   // any fetch; of pfch_qid_o, one cycle later
  input  wire            pfch_en_i,                    // one ahead of frames; the same
  input  wire            pfch_new_i,                   // they may be others from the next cycle on
  input  wire qid_t           pfch_new_qid_i,
  input  wire            demand_valid_i,               // level: a frame of demand_qid_i waits
  input  wire qid_t           demand_qid_i,
  input  wire      [5:0] demand_count_i,               // descriptors it needs in all, those that are ready included
  // Look-up, pop
  input  wire qid_t           look_qid_i,
  output desc_queue_t    look_o,
  input  wire qid_t           look2_qid_i,
  output desc_queue_t    look2_o,                      // desc is 0
  input  wire            pop_valid_i,
  input  wire qid_t           pop_qid_i,
  // H2C only: descriptors before done_cidx_i are complete
  input  wire            done_valid_i,
  input  wire qid_t           done_qid_i,
  input  wire index_t         done_cidx_i,
  input  wire generation_t    done_generation_i,       // of the queue to which they belonged
  // A consumer met an error: err |= stop_err_i, the queue stops
  input  wire            stop_valid_i,
  input  wire qid_t           stop_qid_i,
  input  wire      [1:0] stop_err_i,
  output logic           stop_ready_o,
  // Queue has changed: descriptors came, or it failed, stopped, started
  output logic           news_valid_o,
  output qid_t           news_qid_o,
  // Interrupt sent: irq_arm is used up
  input  wire            irq_disarm_valid_i,
  input  wire qid_t           irq_disarm_qid_i,
  // Status word with the error was sent: err_wb_sent
  input  wire            err_sent_valid_i,
  input  wire qid_t           err_sent_qid_i,
  output fault_t         fault_o,
  output logic           idle_o                        // no read is under way or will be sent until an input asks for it
);
  `ONIC_ASSERT_PARAM(NumQueue, NumQueue >= 1 && NumQueue <= 2048 && (NumQueue & (NumQueue - 1)) == 0,
                     "NumQueue must be a power of two, 1 to 2048")
  `ONIC_ASSERT_PARAM(DescBytes, DescBytes == 8 || DescBytes == 16, "DescBytes must be 8 or 16")
  `ONIC_ASSERT_PARAM(AheadMax, AheadMax >= 32 && AheadMax <= 256 && (AheadMax & (AheadMax - 1)) == 0,
                     "AheadMax must be a power of two, 32 to 256")

  // ---- Faults for the alarm tests: 11 wraps rings at N, 15 loses room for a descriptor at every 4th pop, 17 ends fences at
  // once. ----
  logic        fault_wrap, fault_fence;
  logic [15:0] fault_leak;
`ifdef ONIC_FAULTS
  int unsigned fault;
  logic [17:0] fault_pops_q;
  initial if (!$value$plusargs("onic_fault=%d", fault)) fault = 0;
  always_ff @(posedge clk) fault_pops_q <= rstn ? fault_pops_q + 18'(popped_wr) : '0;
  assign fault_wrap  = fault == 11;
  assign fault_leak  = fault == 15 ? fault_pops_q[17:2] : 16'd0;
  assign fault_fence = fault == 17;
`else
  assign fault_wrap  = 1'b0;
  assign fault_leak  = 16'd0;
  assign fault_fence = 1'b0;
`endif

  // ---- Idle ----
  logic control_idle, want_idle, fetch_idle, tags_idle;
  assign idle_o = control_idle && want_idle && fetch_idle && tags_idle && !news_valid_o;

  // ---- Where the queues stand. ----
  qid_t       qid   [Readers];
  queue_t     queue [Readers];
  logic       control, flush, control_news;
  origin_t    origin;
  logic       sent_wr, delivered_wr, popped_wr;
  sent_t      sent;
  delivered_t delivered;
  popped_t    popped;

  assign qid[AtLook]  = look_qid_i;
  assign qid[AtLook2] = look2_qid_i;
  assign qid[AtPop]   = pop_qid_i;

  qdma_desc_state #(.NumQueue(NumQueue), .H2c(H2c)) u_state (
    .clk, .rstn,
    .origin_wr_i(control), .flush_i(flush), .control_qid_i(qid[AtControl]), .origin_i(origin),
    .sent_wr_i(sent_wr), .sent_qid_i(qid[AtFetch]), .sent_i(sent),
    .delivered_wr_i(delivered_wr), .delivered_qid_i(qid[AtRetire]), .delivered_i(delivered),
    .popped_wr_i(popped_wr), .popped_qid_i(pop_qid_i), .popped_i(popped),
    .done_wr_i(done_wr), .done_qid_i(done_qid_i), .done_i(done_cidx_i),
    .qid_i(qid), .queue_o(queue));

  // ---- Pop. The look-up port AtPop shows the queue before it. ----
  slot_t left;                                         // in use after the pop

  always_comb begin
    popped_wr = pop_valid_i && queue[AtPop].origin.run && queue[AtPop].popped.slot != queue[AtPop].delivered.slot;
    popped    = '{index: ring_next(queue[AtPop].popped.index,
                                   config_i.ring_size[queue[AtPop].origin.ring_select] + 16'(fault_wrap)),
                  slot: queue[AtPop].popped.slot + 9'd1};
    left      = queue[AtPop].sent.slot - popped.slot;
  end

  // ---- Control ----
  logic      failed, impossible;
  logic      software_rd  [3];
  qid_t      software_qid [3];
  software_t software     [3];
  qid_t      look_qid_q   [2];
  logic      arm          [2];
  generation_t failed_generation;
  fault_e    failed_fault;

  assign software_rd[0]  = 1'b1;
  assign software_rd[1]  = 1'b1;
  assign software_qid[0] = look_qid_i;
  assign software_qid[1] = look2_qid_i;
  assign software_qid[2] = qid[AtFetch];

  qdma_desc_control #(.NumQueue(NumQueue), .DescBytes(DescBytes), .H2c(H2c)) u_control (
    .clk, .rstn, .config_i,
    .ctxt_valid_i, .ctxt_i, .ctxt_done_o, .ctxt_rdata_o,
    .bell_valid_i, .bell_i, .bell_ready_o,
    .stop_valid_i, .stop_qid_i, .stop_err_i, .stop_ready_o,
    .irq_disarm_valid_i, .irq_disarm_qid_i, .err_sent_valid_i, .err_sent_qid_i,
    .failed_i(failed), .failed_qid_i(qid[AtRetire]), .failed_generation_i(failed_generation),
    .failed_fault_i(failed_fault), .impossible_i(impossible), .impossible_qid_i(qid[AtFetch]),
    .qid_o(qid[AtControl]), .queue_i(queue[AtControl]),
    .control_o(control), .flush_o(flush), .origin_o(origin), .news_o(control_news), .fault_o, .idle_o(control_idle),
    .rd_i(software_rd), .rd_qid_i(software_qid), .rd_o(software), .arm_qid_i(look_qid_q), .arm_o(arm));

  // ---- Fetch. Back on the list: what control changed, an answered read, room after a pop, a new demand, a prefetch
  // context that was written. ----
  logic pick_valid, pick, again;
  qid_t pick_qid, again_qid;
  logic want     [6];
  qid_t want_qid [6];
  logic       demand_valid_q;
  qid_t       demand_qid_q;
  logic [5:0] demand_count_q;

  always_ff @(posedge clk) begin
    demand_valid_q <= rstn && demand_valid_i;
    if (demand_valid_i) begin
      demand_qid_q   <= demand_qid_i;
      demand_count_q <= demand_count_i;
    end
  end

  assign want[0]     = control;
  assign want_qid[0] = qid[AtControl];
  assign want[1]     = delivered_wr;
  assign want_qid[1] = qid[AtRetire];
  assign want[2]     = popped_wr && queue[AtPop].sent.wake && left <= queue[AtPop].sent.wake_used;
  assign want_qid[2] = pop_qid_i;
  assign want[3]     = demand_valid_i && !(demand_valid_q && demand_qid_q == demand_qid_i && demand_count_q == demand_count_i);
  assign want_qid[3] = demand_qid_i;
  assign want[4]     = again;
  assign want_qid[4] = again_qid;
  assign want[5]     = pfch_new_i;
  assign want_qid[5] = pfch_new_qid_i;

  qdma_desc_want #(.NumQueue(NumQueue), .Sets(6)) u_want (
    .clk, .rstn, .set_i(want), .set_qid_i(want_qid),
    .pick_valid_o(pick_valid), .pick_qid_o(pick_qid), .pick_i(pick), .idle_o(want_idle));

  logic       tag_free, tag_take;
  logic [5:0] tag;
  tag_t       tag_entry;

  assign pfch_qid_o = qid[AtFetch];

  qdma_desc_fetch #(.DescBytes(DescBytes), .AheadMax(AheadMax), .H2c(H2c)) u_fetch (
    .clk, .rstn, .config_i, .ahead_i, .fetches_i, .fetch_bytes_i,
    .pick_valid_i(pick_valid), .pick_qid_i(pick_qid), .pick_o(pick), .again_valid_o(again), .again_qid_o(again_qid),
    .context_rd_o(software_rd[2]), .qid_o(qid[AtFetch]), .software_i(software[2]), .queue_i(queue[AtFetch]),
    .pop_i(popped_wr && pop_qid_i == qid[AtFetch]), .pfch_may_i, .pfch_en_i, .demand_valid_i, .demand_qid_i,
    .demand_count_i, .control_i(control), .control_qid_i(qid[AtControl]),
    .sent_wr_o(sent_wr), .sent_o(sent), .impossible_o(impossible),
    .tag_free_i(tag_free), .tag_i(tag), .tag_take_o(tag_take), .tag_o(tag_entry),
    .rd_valid_o, .rd_o, .rd_ready_i, .idle_o(fetch_idle), .fault_wrap_i(fault_wrap), .fault_leak_i(fault_leak));

  // ---- Answers ----
  logic  store_wr;
  slot_t store_slot, store_count;

  qdma_desc_tags #(.DescBytes(DescBytes)) u_tags (
    .clk, .rstn,
    .free_o(tag_free), .tag_o(tag), .take_i(tag_take), .take_tag_i(tag_entry),
    .rsp_i, .answer_qid_o(qid[AtAnswer]), .answer_origin_i(queue[AtAnswer].origin),
    .store_wr_o(store_wr), .store_slot_o(store_slot), .store_count_o(store_count),
    .retire_qid_o(qid[AtRetire]), .retire_origin_i(queue[AtRetire].origin),
    .retire_delivered_i(queue[AtRetire].delivered), .control_i(control),
    .delivered_wr_o(delivered_wr), .delivered_o(delivered),
    .failed_o(failed), .failed_generation_o(failed_generation), .failed_fault_o(failed_fault),
    .fence_i, .fence_busy_o, .fault_fence_i(fault_fence), .idle_o(tags_idle));

  // Retirement rests while control changes a queue, so there is one piece of news in a cycle.
  always_ff @(posedge clk) begin
    news_valid_o <= rstn && (control_news || delivered_wr);
    if (control_news || delivered_wr) news_qid_o <= control_news ? qid[AtControl] : qid[AtRetire];
  end

  // ---- Done. It counts only for a queue that runs as it did then: one that was flushed has begun anew. ----
  logic done_wr;
  assign qid[AtDone] = done_qid_i;
  assign done_wr     = done_valid_i && queue[AtDone].origin.run && queue[AtDone].origin.generation == done_generation_i;

  // ---- Look-up: the queue as it is in the cycle of look_qid_i, and as the cycle's pop leaves it. ----
  popped_t      look_popped  [2];
  generation_t  generation_q [2];
  index_t       head_index_q [2];
  slot_t        count_q      [2];
  logic [127:0] look_desc;
  desc_queue_t  look         [2];

  for (genvar i = 0; i < 2; i++) begin : gen_look
    assign look_popped[i] = popped_wr && pop_qid_i == qid[AtLook + i] ? popped : queue[AtLook + i].popped;

    always_ff @(posedge clk) begin
      look_qid_q[i]   <= qid[AtLook + i];
      generation_q[i] <= queue[AtLook + i].origin.generation;
      head_index_q[i] <= look_popped[i].index;
      count_q[i]      <= queue[AtLook + i].origin.run ? queue[AtLook + i].delivered.slot - look_popped[i].slot : '0;
    end

    always_comb begin
      look[i].enabled      = software[i].ctxt.qen;
      look[i].err          = software[i].ctxt.err;
      look[i].failed       = look[i].err != '0;
      look[i].generation   = generation_q[i];
      look[i].func         = dma_func(software[i].ctxt.func);
      look[i].ring_base    = software[i].ctxt.ring_base;
      look[i].ring_entries = config_i.ring_size[software[i].ctxt.ring_select];
      look[i].pidx         = software[i].ctxt.pidx;
      look[i].head_index   = head_index_q[i];
      look[i].count        = count_q[i];
      look[i].desc         = i == 0 ? look_desc : '0;
      look[i].wbi_chk      = software[i].ctxt.wbi_chk;
      look[i].wbi_intvl_en = software[i].ctxt.wbi_intvl_en;
      look[i].wbk_en       = software[i].ctxt.wbk_en;
      look[i].irq_en       = software[i].ctxt.irq_en;
      look[i].irq_arm      = arm[i];
      look[i].int_aggr     = software[i].ctxt.int_aggr;
      look[i].vector       = software[i].ctxt.vector;
    end
  end
  assign look_o  = look[0];
  assign look2_o = look[1];

  qdma_desc_store #(.NumQueue(NumQueue), .DescBytes(DescBytes), .AheadMax(AheadMax)) u_store (
    .clk, .wr_i(store_wr), .wr_qid_i(qid[AtAnswer]), .wr_slot_i(store_slot), .wr_count_i(store_count),
    .wr_data_i(rsp_i.data), .rd_qid_i(look_qid_i), .rd_slot_i(look_popped[0].slot), .rd_data_o(look_desc));

  `ONIC_ASSERT(DescInUse_A, clk, rstn, !popped_wr || left <= 9'(AheadMax - 1), "more descriptors in use than there is room for")
endmodule
`default_nettype wire
