// Completions of the C2H stream: from the shell's completion of a frame to ring entry, status word and interrupt.
//
//   s_axis_cpl ──► qdma_completion_join ──► entry ─┐
//   frame_done ──►   (waits for payload)           │     ┌─► context memory (selector 6)
//   doorbell ──────────────────────────────────────┼─►op─┤ qdma_completion_update, qdma_moderation
//   context command ───────────────────────────────┤     └─► qdma_completion_lines ─► qdma_completion_out ─► cmp, irq
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
// operations, and so s_axis_cpl, frame_done, doorbells and commands; nothing is lost. frame_done is taken without completions
// for FrameDepth frames; then it waits for s_axis_cpl.
// Out of range: a completion for a queue that is not valid, or beyond NumQueue, is dropped (FaultCmptInvalidQueue); into a full
// ring, dropped, and the queue fails (FaultCmptRingFull); a doorbell beyond what is unread fails it (FaultBadCidx). A table
// entry below 3 is no ring: its queue has no status word either. Doorbells and commands are for queues below NumQueue.
// Left out: user triggers, interrupt aggregation, address translation. int_st of the context stays as software wrote it.
//
// Source: qdma.md 3.5, 5.4 to 5.6, 7, 8.
`include "onic_assert.svh"
`default_nettype none
module qdma_completion import qdma_pkg::*; #(
  parameter int unsigned NumQueue = 512               // a power of two, 2 to 2048
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
  output logic               frame_done_ready_o,
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
  output logic               completion_dropped_o,    // did not
  output logic               status_out_o             // status word decided
);
  `ONIC_ASSERT_PARAM(NumQueue, NumQueue >= 2 && NumQueue <= 2048 && (NumQueue & (NumQueue - 1)) == 0,
                     "NumQueue must be a power of two, 2 to 2048")

  // Ports only, so that the engine can be wired: nothing is taken, nothing is done.
  assign ctxt_done_o = 1'b0;
  assign ctxt_rdata_o = '0;
  assign fence_busy_o = 1'b0;
  assign bell_ready_o = 1'b0;
  assign cidx_o = '0;
  assign s_axis_cpl_tready = 1'b0;
  assign frame_done_ready_o = 1'b0;
  assign cmp_valid_o = 1'b0;
  assign cmp_o = '0;
  assign irq_valid_o = 1'b0;
  assign irq_o = '0;
  assign fault_o = '0;
  assign join_fault_o = '0;
  assign completion_in_o = 1'b0;
  assign completion_out_o = 1'b0;
  assign completion_dropped_o = 1'b0;
  assign status_out_o = 1'b0;
  wire unused = ^{clk, rstn, config_i, ctxt_valid_i, ctxt_i, fence_i, bell_valid_i, bell_i, cidx_qid_i, s_axis_cpl_tvalid,
                  s_axis_cpl_tdata, s_axis_cpl_size, s_axis_cpl_dpar, s_axis_cpl_ctrl_qid, s_axis_cpl_ctrl_cmpt_type,
                  s_axis_cpl_ctrl_wait_pld_pkt_id, s_axis_cpl_ctrl_port_id, s_axis_cpl_ctrl_marker,
                  s_axis_cpl_ctrl_user_trig, s_axis_cpl_ctrl_col_idx, s_axis_cpl_ctrl_err_idx,
                  s_axis_cpl_ctrl_no_wrb_marker, frame_done_valid_i, frame_done_i, cmp_ready_i, irq_ready_i};
endmodule
`default_nettype wire
