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
// read, or half of what may be ahead) unless it takes all that is posted, or the queue has nothing left, or a frame waits.
// Up to 64 reads are in flight, fetches_i of one queue. Answers of different tags may come in any order; descriptors
// appear in ring order.
//
// Clear, invalidate, stop, failure: the queue's generation changes at once. Answers of an earlier generation are thrown
// away; fence_busy_o still waits for them.
//
// Look-up: look_qid_i -> look_o in the next cycle, with all pops up to and including the cycle in which the qid was given.
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
module qdma_desc_engine import qdma_pkg::*; #(
  parameter int unsigned NumQueue  = 512,              // 1 to 2048, a power of two
  parameter int unsigned DescBytes = 8,                // 8 (C2H) or 16 (H2C)
  parameter int unsigned AheadMax  = 256,              // entries of a queue's descriptor memory, a power of two, 8 to 256
  parameter bit          H2c       = 1'b0              // 0: done is what was popped; 1: done_* says it
) (
  input  wire            clk,
  input  wire            rstn,                         // synchronous, active low, power-up only
  // Settings
  input  config_t        config_i,
  input  wire      [8:0] ahead_i,                      // descriptors kept for a queue, 1 to AheadMax
  input  wire      [5:0] fetches_i,                    // reads in flight for one queue, 1 to 32
  input  wire     [12:0] fetch_bytes_i,                // longest read, 64 to 4096, a multiple of 64
  // Context commands: software, hardware and credit context of this direction
  input  wire            ctxt_valid_i,
  input  context_command_t ctxt_i,
  output logic           ctxt_done_o,
  output logic   [255:0] ctxt_rdata_o,                 // with ctxt_done_o, for CtxtRead
  // PIDX doorbells
  input  wire            bell_valid_i,
  input  doorbell_t      bell_i,
  output logic           bell_ready_o,
  // Fence
  input  wire            fence_i,                      // pulse
  output logic           fence_busy_o,                 // from the next cycle on, until reads sent before are answered
  // Descriptor reads, tags 0 to 63
  output logic           rd_valid_o,
  output read_req_t      rd_o,
  input  wire            rd_ready_i,
  input  read_rsp_t      rsp_i,                        // valid only for this instance's tags
  // C2H only: the prefetch context's enable, and what a waiting frame needs (H2C ties 1, and 0)
  output qid_t           pfch_qid_o,
  input  wire            pfch_en_i,                    // of pfch_qid_o, one cycle later
  input  wire            demand_valid_i,               // level: a frame of demand_qid_i waits
  input  qid_t           demand_qid_i,
  input  wire      [5:0] demand_count_i,               // descriptors it needs in all, those that are ready included
  // Look-up, pop
  input  qid_t           look_qid_i,
  output desc_queue_t    look_o,
  input  qid_t           look2_qid_i,
  output desc_queue_t    look2_o,                      // desc is 0
  input  wire            pop_valid_i,
  input  qid_t           pop_qid_i,
  // H2C only: descriptors before done_cidx_i are complete
  input  wire            done_valid_i,
  input  qid_t           done_qid_i,
  input  index_t         done_cidx_i,
  // A consumer met an error: err |= stop_err_i, the queue stops
  input  wire            stop_valid_i,
  input  qid_t           stop_qid_i,
  input  wire      [1:0] stop_err_i,
  output logic           stop_ready_o,
  // Queue has changed: descriptors came, or it failed, stopped, started
  output logic           news_valid_o,
  output qid_t           news_qid_o,
  // Interrupt sent: irq_arm is used up
  input  wire            irq_disarm_valid_i,
  input  qid_t           irq_disarm_qid_i,
  output fault_t         fault_o
);
  `ONIC_ASSERT_PARAM(NumQueue, NumQueue >= 1 && NumQueue <= 2048 && (NumQueue & (NumQueue - 1)) == 0,
                     "NumQueue must be a power of two, 1 to 2048")
  `ONIC_ASSERT_PARAM(DescBytes, DescBytes == 8 || DescBytes == 16, "DescBytes must be 8 or 16")
  `ONIC_ASSERT_PARAM(AheadMax, AheadMax >= 8 && AheadMax <= 256 && (AheadMax & (AheadMax - 1)) == 0,
                     "AheadMax must be a power of two, 8 to 256")

  assign ctxt_done_o  = 1'b0;
  assign ctxt_rdata_o = '0;
  assign bell_ready_o = 1'b0;
  assign fence_busy_o = 1'b0;
  assign rd_valid_o   = 1'b0;
  assign rd_o         = '0;
  assign pfch_qid_o   = '0;
  assign look_o       = '0;
  assign look2_o      = '0;
  assign stop_ready_o = 1'b0;
  assign news_valid_o = 1'b0;
  assign news_qid_o   = '0;
  assign fault_o      = '0;
endmodule
`default_nettype wire
